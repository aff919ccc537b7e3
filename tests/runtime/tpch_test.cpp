// The TPC-H programs on the simulator against the reference interpreter: all of each runs on the device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "libraries/base/system/files.h"
#include "runtime/data/tables.h"
#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/support/status.h"
#include "tests/support/targets.h"
#include "tpch/source.h"

namespace rndn::runtime {
namespace {

constexpr double scale = 0.01;

// Per query: kernels of the program that run on the device, all that were planned. What is fused makes them fewer, and then the new number is
// written here. Nothing falls back to the interpreter.
constexpr size_t kernels_of[] = {4, 9, 5, 5, 8, 1, 7, 11, 4, 4, 6, 3, 6, 3, 6, 6, 7, 3, 3, 9, 13, 5};

// Floats to a relative error of 1e-9, everything else exactly; rows in order.
void expect_same(const Grid& got, const Grid& want) {
  ASSERT_EQ(got.names, want.names);
  ASSERT_EQ(got.types, want.types);
  ASSERT_EQ(got.rows, want.rows);
  for (uint64_t i = 0; i < want.rows; ++i)
    for (size_t k = 0; k < want.columns.size(); ++k) {
      const std::string a = element_text(got.columns[k], i, true), b = element_text(want.columns[k], i, true);
      if (a == b) continue;
      ASSERT_TRUE(hir::is_float(want.columns[k].type))
          << "row " << i << " " << want.names[k] << ": " << a << ", not " << b;
      const double x = std::strtod(a.c_str(), nullptr), y = std::strtod(b.c_str(), nullptr);
      ASSERT_LE(std::abs(x - y), 1e-9 * std::max(std::abs(x), std::abs(y)))
          << "row " << i << " " << want.names[k] << ": " << a << ", not " << b;
    }
}

class TpchOnSimulator : public ::testing::TestWithParam<std::tuple<int, std::string>> {
 protected:
  static void SetUpTestSuite() {
    auto source = tpch::open_source(fmt::format("tpch:{}", scale));
    ASSERT_TRUE(source.ok()) << source.error().message;
    source_ = *source;
  }
  static void TearDownTestSuite() { source_.reset(); }
  static std::shared_ptr<data::Source> source_;
};
std::shared_ptr<data::Source> TpchOnSimulator::source_;

TEST_P(TpchOnSimulator, AgreesWithTheReferenceInterpreter) {
  const auto [query, target] = GetParam();
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  const std::string path = fmt::format("{}/tpch/queries/q{:02}.hir", RNDN_SOURCE_DIR, query);
  auto text = read_file(path);
  ASSERT_TRUE(text.ok()) << text.error().message;
  CompileOptions options;
  options.target = target;
  options.schema = &source_->schema();
  // What is counted is counted without fused operators; the scans' and the last blocks' fences are tried with weak memory.
  enum class Way { plain, fused, weak };
  for (const Way way : {Way::plain, Way::fused, Way::weak}) {
    const bool fuse = way == Way::fused || (way == Way::weak && query % 2 == 0);
    SCOPED_TRACE(fuse ? "with fused operators" : "without fused operators");
    SCOPED_TRACE(way == Way::weak ? "weak memory" : "memory in order");
    options.fuse_operators = fuse;
    auto compiled = compile(sources.add(path, *text), sources, options, sink, timings);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message << render(sink, sources);

    data::SourceTables tables(source_);
    sim::Options checks;
    checks.check_hazards = checks.check_races = way != Way::weak;
    checks.weak_memory = way == Way::weak;
    checks.seed = static_cast<uint64_t>(query);
    auto device = open_simulator(target, checks);
    ASSERT_TRUE(device.ok());
    Engine engine(**device, tables);
    auto plan = engine.plan(*compiled, sources, {.allow_fallback = false}, timings);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    auto want = reference::run(compiled->program, tables, sources, nullptr);
    ASSERT_TRUE(want.ok()) << want.error().message;
    auto right = to_grid(want->at(0));
    ASSERT_TRUE(right.ok());
    ASSERT_GT(right->rows, 0u) << "an empty answer proves little";

    std::vector<KernelReport> kernels;
    for (int run = 0; run < 2; ++run) {  // the second time with the first one's buffers
      kernels.clear();
      std::vector<std::string> met;
      uint64_t texts_walked = 0;
      auto got = engine.run(**plan, timings, nullptr, &kernels, &met, &texts_walked);
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_EQ(met, std::vector<std::string>{});
      if (run == 1) {  // what is made of text columns is kept
        EXPECT_EQ(texts_walked, 0u);
      }
      ASSERT_EQ(got->size(), 1u);
      auto grid = to_grid(got->front());
      ASSERT_TRUE(grid.ok()) << grid.error().message;
      expect_same(*grid, *right);
    }
    // Planned for the device and launched there, not refused when its sizes were known.
    size_t launched = 0, fused = 0;
    for (const KernelReport& k : kernels) {
      EXPECT_FALSE(k.name.starts_with("convert_") || k.name.starts_with("decode_"))
          << k.name << ": nothing is widened on the device";
      if (k.kind == "outlined") launched += k.launches;
      if (k.kind == "fused") fused += k.launches;
    }
    EXPECT_EQ(launched, (*plan)->device_kernels());
    // A group that its keys' bounds allow no fold of is compiled again, and may be a fused operator then.
    if (compiled->outlined.folds.empty()) {
      EXPECT_EQ(fused > 0, !compiled->fusions.groups.empty());
    }
    if (!fuse) {
      EXPECT_EQ(fused, 0u);
    }
    if (way != Way::plain) continue;

    const size_t fallbacks = (*plan)->fallbacks().size();
    fmt::print("q{:02} on {}: {} kernels on the device, {} fallbacks\n", query, target, launched, fallbacks);
    EXPECT_EQ(launched, kernels_of[query - 1]);
    EXPECT_EQ(fallbacks, 0u) << fmt::format("{}", fmt::join((*plan)->fallbacks(), "\n"));
    if (HasFailure()) return;
    testing::record_status("query", fmt::format("q{:02}", query), target, "simulator");
    testing::record_status("count", fmt::format("fallbacks of q{:02}", query), target, fmt::format("{}", fallbacks));
  }
}

INSTANTIATE_TEST_SUITE_P(Tpch, TpchOnSimulator,
                         ::testing::Combine(::testing::Range(1, 23), ::testing::ValuesIn(isa::target_names())),
                         [](const auto& info) {
                           return fmt::format("q{:02}_{}", std::get<0>(info.param), std::get<1>(info.param));
                         });

}  // namespace
}  // namespace rndn::runtime
