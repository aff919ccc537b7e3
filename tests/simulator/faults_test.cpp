// The hazard checks against seeded faults: in code of the reference assembler, on which they are silent, one wait or one stall count is
// taken away; the checks must notice. A stall may be longer than its results need, so only a share of those faults is one.
#include <map>

#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"
#include "tests/simulator/support.h"

namespace rndn::sim::faults_test {
namespace {

struct Outcome {
  bool reported = false, right = false;
  std::string text;
};

// block_sum of 1000 values.
Outcome run_block_sum(const std::string& target, const std::vector<std::byte>& cubin) {
  Outcome outcome;
  Machine m(target, 1 << 20);
  const auto module = m.load(cubin);
  EXPECT_TRUE(module.ok()) << module.error().message;
  if (!module) return outcome;
  std::vector<uint32_t> in(1000), expected(4);
  for (uint32_t i = 0; i < in.size(); ++i) expected[i / 256] += in[i] = i * 2654435761u;
  const uint64_t a = upload(m, in), b = upload(m, std::vector<uint32_t>(4));
  Options options;
  options.check_hazards = options.deterministic = true;
  options.max_warp_instructions = 1'000'000;
  std::vector<Report> reports;
  const auto result = m.launch(*module, "block_sum", {4, 1, 1}, {256, 1, 1}, 0,
                               Parameters().add(a).add(b).add(1000u).bytes(), options, &reports);
  outcome.reported = !reports.empty();
  if (outcome.reported) outcome.text = reports[0].text();
  EXPECT_EQ(result.ok(), reports.empty());
  outcome.right = download<uint32_t>(m, b, 4) == expected;
  return outcome;
}

class Faults : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, Faults, testing::ValuesIn(all_targets), [](const auto& info) { return info.param; });

TEST_P(Faults, MissingWaitsAndStallsAreNoticed) {
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const auto source = read_file(std::string(RNDN_SOURCE_DIR) + "/tests/simulator/kernels.ptx");
  ASSERT_TRUE(source.ok());
  const auto cubin = assemble_with_ptxas(ptxas, *source, GetParam());
  ASSERT_FALSE(cubin.empty());
  auto image = cubin::read(cubin);
  ASSERT_TRUE(image.ok()) << image.error().message;
  std::erase_if(image->kernels, [](const cubin::Kernel& k) { return k.name != "block_sum"; });
  ASSERT_EQ(image->kernels.size(), 1u);
  image->variables.clear();
  const isa::Target& target = *isa::find_target(GetParam());
  const std::vector<std::byte> original = image->kernels[0].code;
  const auto words = isa::unpack(target, original);
  std::vector<isa::Word> plain;
  for (const auto& w : words) plain.push_back(w.word);
  const auto mutate = [&](size_t i, const isa::Instruction& in) {
    isa::Word word;
    EXPECT_TRUE(isa::encode(target, in, words[i].address, word));
    auto changed = plain;
    changed[i] = word;
    image->kernels[0].code = isa::pack(target, changed);
    return run_block_sum(GetParam(), cubin::write(*image));
  };
  uint32_t waits = 0, waits_noticed = 0, stalls = 0, stalls_noticed = 0;
  bool padding = false;
  for (size_t i = 0; i < words.size() && !padding; ++i) {
    isa::Instruction in;
    ASSERT_TRUE(isa::decode(target, words[i].word, words[i].address, in));
    // After the last EXIT comes padding.
    if (in.mnemonic == isa::Mnemonic::EXIT && in.guard == isa::PT) padding = true;
    if (i == 0) {
      const Outcome same = mutate(i, in);
      ASSERT_FALSE(same.reported) << same.text;
      ASSERT_TRUE(same.right);
    }
    for (uint32_t bit = 0; bit < 6; ++bit) {
      if (!(in.control.wait_mask >> bit & 1)) continue;
      isa::Instruction fault = in;
      fault.control.wait_mask &= static_cast<uint8_t>(~(1u << bit));
      const Outcome o = mutate(i, fault);
      ++waits;
      waits_noticed += o.reported;
      // Unnoticed means that the old value was never used.
      EXPECT_TRUE(o.reported || o.right) << isa::text(target, in);
    }
    if (in.control.stall >= 4 && in.mnemonic != isa::Mnemonic::NOP && in.mnemonic != isa::Mnemonic::BRA &&
        in.mnemonic != isa::Mnemonic::BAR) {
      isa::Instruction fault = in;
      fault.control.stall = 1;
      const Outcome o = mutate(i, fault);
      ++stalls;
      stalls_noticed += o.reported;
      EXPECT_TRUE(o.reported || o.right) << isa::text(target, in);
    }
  }
  RecordProperty("waits", static_cast<int>(waits));
  RecordProperty("waits_noticed", static_cast<int>(waits_noticed));
  RecordProperty("stalls", static_cast<int>(stalls));
  RecordProperty("stalls_noticed", static_cast<int>(stalls_noticed));
  std::printf("%s: %u of %u missing waits noticed, %u of %u shortened stalls\n", GetParam().c_str(), waits_noticed,
              waits, stalls_noticed, stalls);
  EXPECT_GE(waits, 3u);
  EXPECT_GE(waits_noticed * 10, waits * 8);
  EXPECT_GE(stalls, 4u);
  EXPECT_GE(stalls_noticed * 2, stalls);
}

}  // namespace
}  // namespace rndn::sim::faults_test
