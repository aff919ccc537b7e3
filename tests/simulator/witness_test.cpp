// ptxas's code in the simulator against the PTX interpreter running the same PTX text: every buffer must end up the same, on every target,
// with the hazard checks silent. The two share no code.
#include <variant>

#include "libraries/base/errors/diagnostic.h"
#include "ptx/interpreter/interpreter.h"
#include "ptx/parse.h"
#include "tests/simulator/support.h"

namespace rndn::sim::witness_test {
namespace {

using Words = std::vector<uint32_t>;
// A buffer of device memory with its contents, or a 32-bit number.
using Argument = std::variant<Words, uint32_t>;

struct Case {
  const char* file;
  const char* kernel;
  uint32_t grid, block, dynamic;
  std::vector<Argument> arguments;
  uint32_t first_target = 60;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.kernel; }

// Random words, and those at which conversions and products change their mind.
Words words(size_t n, uint32_t seed) {
  constexpr uint32_t special[] = {0,          1,          0xffffffff, 0x7fffffff, 0x80000000, 0x7f,
                                  0x80,       0xff80,     0xff7f,     0x7fff,     0x8000,     0xffff8000,
                                  0xffff7fff, 0x10000,    0x3f800000, 0xbf800000, 0x43000000, 0xc3000000,
                                  0x437f8000, 0x3f000000, 0x40200000, 0x7f800000, 0x7fc00000, 0x01000001,
                                  0x01000003, 0xfeffffff, 0x4b800001, 0x00000001, 0x46fffe80, 0xc7000080};
  Words v(n);
  uint64_t state = seed;
  for (uint32_t& x : v) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const uint32_t r = static_cast<uint32_t>(state >> 32);
    x = r % 3 == 0 ? special[r / 3 % std::size(special)] : r % 3 == 1 ? r : r >> (r & 31);
  }
  return v;
}
Words small_words(size_t n, uint32_t limit) {
  Words v = words(n, 77);
  for (uint32_t& x : v) x = x % limit + 1;
  return v;
}
Words pairs_of_lanes() {
  Words v(32);
  for (uint32_t i = 0; i < 32; ++i) v[i] = 2 * (i * 5 % 32) + (i & 1);
  return v;
}

std::vector<Case> cases() {
  const Words zero32(32), zero64(64);
  return {
      {"witness.ptx", "narrow", 1, 96, 0, {words(4 * 96, 1), Words(16 * 96)}},
      {"witness.ptx", "products", 1, 96, 0, {words(4 * 96, 2), Words(16 * 96)}},
      {"witness.ptx", "shared_atomics", 1, 96, 0, {words(4 * 96, 3), zero32}},
      {"kernels.ptx", "block_sum", 4, 256, 0, {words(1000, 4), Words(4), 1000u}},
      {"kernels.ptx", "collatz", 6, 64, 0, {small_words(333, 97), Words(333), 333u}},
      {"kernels.ptx", "shuffles", 2, 64, 0, {words(128, 5), Words(5 * 128)}},
      {"kernels.ptx", "atomics", 8, 256, 0, {words(2000, 6), Words(16), Words(12), 2000u}},
      {"kernels.ptx", "last_block", 20, 64, 0, {Words(20), Words(1)}},
      {"kernels.ptx", "chain", 20, 32, 0, {Words(40)}},
      {"kernels.ptx", "reverse", 1, 96, 16 * 96, {words(4 * 96, 8), Words(4 * 96)}},
      {"divergent_sync.ptx", "divshfl", 1, 32, 0, {pairs_of_lanes(), Words(32)}, 80},
      {"divergent_sync.ptx", "splitmask", 1, 64, 0, {words(64, 9), Words(8 * 64)}, 80},
  };
}

Parameters parameters_of(const Case& c, const std::vector<uint64_t>& places) {
  Parameters p;
  for (size_t i = 0; i < c.arguments.size(); ++i)
    if (std::holds_alternative<Words>(c.arguments[i]))
      p.add(places[i]);
    else
      p.add(std::get<uint32_t>(c.arguments[i]));
  return p;
}

// The buffers after the kernel has run in the interpreter. `spaces` of kernels.ptx and its function are left out: their indirect branch and
// register parameters are not in our subset of PTX.
std::vector<Words> interpreted(const Case& c, std::string text) {
  const size_t from = text.find(".func ("), to = text.find(".visible .entry last_block");
  if (from != std::string::npos && to != std::string::npos) text.erase(from, to - from);
  SourceManager sources;
  DiagnosticSink sink;
  const ptx::Module module = ptx::parse(sources.add(c.file, text), sources, sink);
  EXPECT_FALSE(sink.has_errors()) << render(sink, sources);
  ptx::Memory memory;
  std::vector<uint64_t> places;
  for (const Argument& a : c.arguments) {
    places.push_back(0);
    if (const Words* w = std::get_if<Words>(&a)) {
      places.back() = memory.allocate(w->size() * 4);
      memory.write(places.back(), std::as_bytes(std::span(*w)));
    }
  }
  const Parameters parameters = parameters_of(c, places);
  ptx::Launch launch;
  launch.grid = {c.grid, 1, 1};
  launch.block = {c.block, 1, 1};
  launch.dynamic_shared = c.dynamic;
  launch.parameters = parameters.bytes();
  const auto stats = ptx::interpret(module, c.kernel, launch, memory);
  EXPECT_TRUE(stats.ok()) << stats.error().message;
  std::vector<Words> out;
  for (size_t i = 0; i < places.size(); ++i)
    if (const Words* w = std::get_if<Words>(&c.arguments[i])) {
      out.emplace_back(w->size());
      memory.read(places[i], std::as_writable_bytes(std::span(out.back())));
    }
  return out;
}

class Witness : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Kernels, Witness, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.kernel); });

TEST_P(Witness, SimulatorAndInterpreterAgree) {
  const Case& c = GetParam();
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const auto text = read_file(std::string(RNDN_SOURCE_DIR) + "/tests/simulator/" + c.file);
  ASSERT_TRUE(text.ok()) << text.error().message;
  const std::vector<Words> expected = interpreted(c, *text);
  if (HasFailure()) return;
  bool changed = false;
  for (size_t i = 0, b = 0; i < c.arguments.size(); ++i)
    if (const Words* w = std::get_if<Words>(&c.arguments[i])) changed |= expected[b++] != *w;
  EXPECT_TRUE(changed) << "the kernel does nothing";
  for (const std::string& target : all_targets) {
    if (std::stoul(target.substr(3)) < c.first_target) continue;
    SCOPED_TRACE(target);
    const auto cubin = assemble_with_ptxas(ptxas, *text, target, "--fmad=false");
    ASSERT_FALSE(cubin.empty());
    Machine m(target, 1 << 22);
    const auto module = m.load(cubin);
    ASSERT_TRUE(module.ok()) << module.error().message;
    std::vector<uint64_t> places;
    for (const Argument& a : c.arguments)
      places.push_back(std::holds_alternative<Words>(a) ? upload(m, std::get<Words>(a)) : 0);
    Options options;
    options.check_hazards = options.deterministic = true;
    options.max_warp_instructions = 5'000'000;
    std::vector<Report> reports;
    const auto result = m.launch(*module, c.kernel, {c.grid, 1, 1}, {c.block, 1, 1}, c.dynamic,
                                 parameters_of(c, places).bytes(), options, &reports);
    for (const Report& r : reports) ADD_FAILURE() << r.text();
    EXPECT_TRUE(result.ok()) << result.error().message;
    for (size_t i = 0, b = 0; i < places.size(); ++i) {
      if (!std::holds_alternative<Words>(c.arguments[i])) continue;
      const Words got = download<uint32_t>(m, places[i], expected[b].size());
      size_t differ = 0;
      for (size_t k = 0; k < got.size(); ++k)
        if (got[k] != expected[b][k] && ++differ <= 3)
          ADD_FAILURE() << fmt::format("argument {} word {}: interpreter {:#x}, simulator {:#x}", i, k, expected[b][k],
                                       got[k]);
      ++b;
    }
  }
}

}  // namespace
}  // namespace rndn::sim::witness_test
