// Faults put into query 6's machine code on purpose: one wait removed, or one stall count lowered. On the simulator with hazard checks every such
// fault is reported, or it changes nothing: a silent wrong answer is the one outcome that may not be.
#include <gtest/gtest.h>

#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"
#include "libraries/base/system/files.h"
#include "runtime/data/tables.h"
#include "runtime/engine.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/support/status.h"
#include "tests/support/targets.h"
#include "tpch/source.h"

namespace rndn::testing {
namespace {

struct Fault {
  size_t instruction;
  uint8_t wait_bit;  // 255: the stall count is lowered to 1 instead
};

class Faults : public ::testing::TestWithParam<std::string> {};

TEST_P(Faults, AreReportedOrHarmless) {
  const isa::Target& target = *isa::find_target(GetParam());
  auto source = tpch::open_source("tpch:0.001");
  ASSERT_TRUE(source.ok());
  data::SourceTables tables(*source);
  SourceManager sources;
  Result<std::string> text = read_file(RNDN_SOURCE_DIR "/tpch/queries/q06.hir");
  ASSERT_TRUE(text.ok());
  runtime::CompileOptions options;
  options.target = GetParam();
  options.schema = &(*source)->schema();
  DiagnosticSink sink;
  Timings timings;
  Result<runtime::Compiled> compiled = runtime::compile(sources.add("q06.hir", *text), sources, options, sink, timings);
  ASSERT_TRUE(compiled.ok());
  Result<cubin::Image> image = cubin::read(compiled->cubin);
  ASSERT_TRUE(image.ok());
  ASSERT_EQ(image->kernels.size(), 1u);
  std::vector<isa::Located> words = isa::unpack(target, image->kernels[0].code);
  std::vector<isa::Instruction> code(words.size());
  for (size_t i = 0; i < words.size(); ++i) ASSERT_TRUE(isa::decode(target, words[i].word, words[i].address, code[i]));

  // The revenue of the code with the faults, or nothing when a check fires.
  auto run = [&](const std::vector<isa::Instruction>& instructions) -> std::optional<double> {
    std::vector<isa::Word> encoded(instructions.size());
    for (size_t i = 0; i < encoded.size(); ++i)
      EXPECT_TRUE(isa::encode(target, instructions[i], words[i].address, encoded[i]));
    cubin::Image changed = *image;
    changed.kernels[0].code = isa::pack(target, encoded);
    runtime::Compiled with_fault = *compiled;
    with_fault.cubin = cubin::write(changed);
    sim::Options checks;
    checks.check_hazards = true;
    checks.deterministic = true;
    checks.max_warp_instructions = 20'000'000;
    auto device = runtime::open_simulator(GetParam(), checks);
    if (!device.ok()) return std::nullopt;
    runtime::Engine engine(**device, tables);
    auto plan = engine.plan(with_fault, sources, {}, timings);
    if (!plan.ok()) return std::nullopt;
    auto results = engine.run(**plan, timings);
    if (!results.ok()) return std::nullopt;
    return (*results)[0].parts()[0].as<double>()[0];
  };

  std::optional<double> right = run(code);
  ASSERT_TRUE(right.has_value()) << "the code without a fault must pass";
  std::vector<Fault> faults;
  for (size_t i = 0; i < code.size(); ++i) {
    for (uint8_t b = 0; b < 6; ++b)
      if (code[i].control.wait_mask >> b & 1) faults.push_back({i, b});
    if (code[i].control.stall > 2 && i % 4 == 0) faults.push_back({i, 255});
  }
  int waits = 0, waits_caught = 0, stalls = 0, stalls_caught = 0;
  for (const Fault& f : faults) {
    std::vector<isa::Instruction> changed = code;
    if (f.wait_bit == 255)
      changed[f.instruction].control.stall = 1;
    else
      changed[f.instruction].control.wait_mask &= static_cast<uint8_t>(~(1u << f.wait_bit));
    std::optional<double> revenue = run(changed);
    (f.wait_bit == 255 ? stalls : waits) += 1;
    if (!revenue)
      (f.wait_bit == 255 ? stalls_caught : waits_caught) += 1;
    else
      EXPECT_EQ(*revenue, *right) << "a fault at instruction " << f.instruction << " gave a silent wrong answer";
  }
  EXPECT_GT(waits_caught, 0);
  EXPECT_GT(stalls_caught, 0);
  std::printf("%s: %d of %d removed waits and %d of %d lowered stalls reported\n", GetParam().c_str(), waits_caught,
              waits, stalls_caught, stalls);
  record_status("count", "faults in q06 reported: removed waits", GetParam(),
                fmt::format("{} of {}", waits_caught, waits));
  record_status("count", "faults in q06 reported: lowered stalls", GetParam(),
                fmt::format("{} of {}", stalls_caught, stalls));
}

INSTANTIATE_TEST_SUITE_P(Query6, Faults, ::testing::ValuesIn(isa::target_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace rndn::testing
