// The programs of TPC-H and SSB on the simulator against the reference interpreter: all of each runs on the device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "libraries/base/system/files.h"
#include "runtime/data/tables.h"
#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "ssb/source.h"
#include "tests/operators/counting_device.h"
#include "tests/support/status.h"
#include "tests/support/targets.h"
#include "tpch/source.h"

namespace rndn::runtime::benchmark_programs_test {
namespace {

struct Program {
  const data::Scheme* scheme;
  double scale;
  std::string item, file;
  size_t kernels;       // of the program
  size_t launches = 0;  // with fused operators, those of the library too; 0: not counted
  bool may_be_empty = false;
};
void PrintTo(const Program& program, std::ostream* out) { *out << program.item; }

// Per query: kernels of the program that run on the device, all that were planned. What is fused makes them fewer, and then the new number is
// written here. Nothing falls back to the interpreter.
std::vector<Program> tpch_programs() {
  constexpr size_t kernels[] = {4, 9, 5, 5, 8, 1, 7, 11, 4, 4, 6, 3, 6, 3, 6, 6, 7, 3, 3, 9, 13, 5};
  std::vector<Program> all;
  for (int q = 1; q <= 22; ++q)
    all.push_back(
        {&tpch::scheme, 0.01, fmt::format("q{:02}", q), fmt::format("tpch/queries/q{:02}.hir", q), kernels[q - 1]});
  return all;
}
// SSB's dimensions are small: at 0.02 all queries but two have rows. A join by keys takes as many launches as one by declared keys: tables of
// rows by key are kept, or not needed.
struct SsbQuery {
  const char* name;
  size_t launches, kernels_by_keys, kernels_by_joins;
};
constexpr SsbQuery ssb_queries[] = {{"1.1", 2, 2, 3}, {"1.2", 2, 2, 3}, {"1.3", 2, 2, 3}, {"2.1", 4, 5, 7}, {"2.2", 4, 5, 7},
                                    {"2.3", 4, 5, 7}, {"3.1", 7, 6, 8}, {"3.2", 7, 6, 8}, {"3.3", 7, 4, 8}, {"3.4", 7, 4, 8},
                                    {"4.1", 5, 5, 9}, {"4.2", 6, 6, 10}, {"4.3", 8, 7, 10}};

std::vector<Program> ssb_programs() {
  std::vector<Program> all;
  for (const SsbQuery& q : ssb_queries) {
    const bool is_rare = std::string_view("3.3 3.4").find(q.name) != std::string_view::npos;
    all.push_back({&ssb::scheme, 0.02, fmt::format("ssb q{} keys", q.name),
                   fmt::format("ssb/queries/keys/q{}.hir", q.name), q.kernels_by_keys, q.launches, is_rare});
    all.push_back({&ssb::joins_scheme, 0.02, fmt::format("ssb q{} joins", q.name),
                   fmt::format("ssb/queries/joins/q{}.hir", q.name), q.kernels_by_joins, q.launches, is_rare});
  }
  return all;
}

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

class ProgramsOnSimulator : public ::testing::TestWithParam<std::tuple<Program, std::string>> {
 protected:
  void SetUp() override {
    const Program& program = std::get<0>(GetParam());
    std::shared_ptr<data::Source>& source = sources_[program.scheme];
    if (!source) {
      auto opened = data::open_source({.data = fmt::format("{}:{}", program.scheme->name, program.scale)},
                                      {program.scheme, 1}, {});
      ASSERT_TRUE(opened.ok()) << opened.error().message;
      source = *opened;
    }
    source_ = source;
  }
  static void TearDownTestSuite() { sources_.clear(); }
  static inline std::map<const data::Scheme*, std::shared_ptr<data::Source>> sources_;
  std::shared_ptr<data::Source> source_;
};

TEST_P(ProgramsOnSimulator, AgreeWithTheReferenceInterpreter) {
  const auto& [program, target] = GetParam();
  const size_t seed = std::hash<std::string>()(program.item);
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  const std::string path = RNDN_SOURCE_DIR "/" + program.file;
  auto text = read_file(path);
  ASSERT_TRUE(text.ok()) << text.error().message;
  CompileOptions options;
  options.target = target;
  options.schema = &source_->schema();
  // What is counted is counted without fused operators; the scans' and the last blocks' fences are tried with weak memory, and so are folds apart and
  // wide sums, which larger tables have.
  enum class Way { plain, fused, weak };
  for (const Way way : {Way::plain, Way::fused, Way::weak}) {
    const bool fuse = way == Way::fused || (way == Way::weak && seed % 2 == 0);
    SCOPED_TRACE(fuse ? "with fused operators" : "without fused operators");
    SCOPED_TRACE(way == Way::weak ? "weak memory" : "memory in order");
    options.fuse_operators = fuse;
    auto compiled = compile(sources.add(path, *text), sources, options, sink, timings);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message << render(sink, sources);

    data::SourceTables tables(source_);
    sim::Options checks;
    checks.check_hazards = checks.check_races = way != Way::weak;
    checks.weak_memory = way == Way::weak;
    checks.seed = seed;
    auto simulator = open_simulator(target, checks);
    ASSERT_TRUE(simulator.ok());
    operators::test::CountingDevice device(std::move(*simulator));
    Engine engine(device, tables);
    EngineOptions how{.allow_fallback = false};
    if (way == Way::weak) how.most_rows_of_selective_folds = 0;
    if (way == Way::fused) how.transfer = Transfer::mapped;  // kernels read columns where the host has them
    auto plan = engine.plan(*compiled, sources, how, timings);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    auto want = reference::run(compiled->program, tables, sources, nullptr);
    ASSERT_TRUE(want.ok()) << want.error().message;
    auto right = to_grid(want->at(0));
    ASSERT_TRUE(right.ok());
    if (!program.may_be_empty) {
      ASSERT_GT(right->rows, 0u) << "an empty answer proves little";
    }

    std::vector<KernelReport> kernels;
    // The second time with the first one's buffers; the third time with its answers to what operators ask, so that only the results are waited for.
    const int runs = way == Way::fused ? 3 : 2;
    for (int run = 0; run < runs; ++run) {
      kernels.clear();
      device.start();
      std::vector<std::string> met;
      uint64_t texts_walked = 0;
      auto got = engine.run(**plan, timings, nullptr, &kernels, &met, &texts_walked);
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_EQ(met, std::vector<std::string>{});
      if (run == 2) {
        EXPECT_EQ(device.waits, 1u);
        EXPECT_EQ(device.copies, 0u);
      }
      if (run > 0) {  // what is made of text columns is kept
        EXPECT_EQ(texts_walked, 0u);
      }
      ASSERT_EQ(got->size(), 1u);
      auto grid = to_grid(got->front());
      ASSERT_TRUE(grid.ok()) << grid.error().message;
      expect_same(*grid, *right);
    }
    // Planned for the device and launched there, not refused when its sizes were known.
    size_t launched = 0, fused = 0, all = 0;
    for (const KernelReport& k : kernels) {
      EXPECT_FALSE(k.name.starts_with("convert_") || k.name.starts_with("decode_"))
          << k.name << ": nothing is widened on the device";
      all += k.launches;
      if (k.kind == "outlined") launched += k.launches;
      if (k.kind == "fused") fused += k.launches;
    }
    EXPECT_EQ(launched, (*plan)->device_kernels());
    EXPECT_EQ(engine.mapped_column_bytes() > 0, way == Way::fused);
    // A group that its keys' bounds allow no fold of is compiled again, and may be a fused operator then.
    if (compiled->outlined.folds.empty()) {
      EXPECT_EQ(fused > 0, !compiled->fusions.groups.empty());
    }
    if (!fuse) {
      EXPECT_EQ(fused, 0u);
    }
    if (way == Way::fused && program.launches) {
      EXPECT_EQ(all, program.launches);
    }
    if (way != Way::plain) continue;

    const size_t fallbacks = (*plan)->fallbacks().size();
    fmt::print("{} on {}: {} kernels on the device, {} fallbacks\n", program.item, target, launched, fallbacks);
    EXPECT_EQ(launched, program.kernels);
    EXPECT_EQ(fallbacks, 0u) << fmt::format("{}", fmt::join((*plan)->fallbacks(), "\n"));
    if (HasFailure()) return;
    testing::record_status("query", program.item, target, "simulator");
    testing::record_status("count", "fallbacks of " + program.item, target, fmt::format("{}", fallbacks));
  }
}

// Of the second run of a program, whose kernels are made for what the first one found.
struct Cost {
  uint64_t launches = 0, instructions = 0, sectors = 0;
  uint32_t registers = 0, shared_bytes = 0;  // of the first kernel of the program
  std::string result;
};
void cost_of(const data::Scheme& scheme, const std::string& size, const std::string& file, const char* target,
             EngineOptions how, Cost& cost) {
  auto source = data::open_source({.data = fmt::format("{}:{}", scheme.name, size)}, {&scheme, 1}, {});
  ASSERT_TRUE(source.ok()) << source.error().message;
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  auto text = read_file(RNDN_SOURCE_DIR "/" + file);
  ASSERT_TRUE(text.ok()) << text.error().message;
  CompileOptions options;
  options.target = target;
  options.schema = &(*source)->schema();
  auto compiled = compile(sources.add(file, *text), sources, options, sink, timings);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  data::SourceTables tables(*source);
  auto simulator = open_simulator(target, {});
  ASSERT_TRUE(simulator.ok());
  operators::test::CountingDevice device(std::move(*simulator));
  Engine engine(device, tables);
  how.graphs = false;
  auto plan = engine.plan(*compiled, sources, how, timings);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  std::vector<KernelReport> kernels;
  for (int run = 0; run < 2; ++run) {
    device.start();
    kernels.clear();
    auto got = engine.run(**plan, timings, nullptr, &kernels);
    ASSERT_TRUE(got.ok()) << got.error().message;
    auto shown = print_result(*got, Format::json);
    ASSERT_TRUE(shown.ok());
    cost.result = *shown;
  }
  cost.launches = device.launches, cost.instructions = device.instructions, cost.sectors = device.sectors;
  cost.registers = kernels.front().registers, cost.shared_bytes = kernels.front().shared_bytes;
}

// Exact counts of cached runs: a program by joins moves and computes little more than the one by declared keys.
TEST(SsbJoins, CostLittleMoreThanDeclaredKeys) {
  for (const SsbQuery& q : ssb_queries) {
    SCOPED_TRACE(q.name);
    Cost keys, joins;
    cost_of(ssb::scheme, "0.02", fmt::format("ssb/queries/keys/q{}.hir", q.name), "sm_90", {}, keys);
    cost_of(ssb::joins_scheme, "0.02", fmt::format("ssb/queries/joins/q{}.hir", q.name), "sm_90", {}, joins);
    if (HasFatalFailure()) return;
    fmt::print("q{}: {} and {} launches, {} and {} instructions of warps, {} and {} sectors\n", q.name, keys.launches,
               joins.launches, keys.instructions, joins.instructions, keys.sectors, joins.sectors);
    EXPECT_EQ(joins.launches, keys.launches);
    EXPECT_LE(joins.sectors, keys.sectors * 1.27);            // 1.26 in q1.1, which looks up a day, and at most 1.04 otherwise
    EXPECT_LE(joins.instructions, keys.instructions * 1.77);  // 1.76 in q4.3
  }
}

// Five sums of floats in four groups of 180 that there may be, of 60,175 rows. The four have copies in shared memory where a block may have so much.
TEST(FloatSums, OfQuery1) {
  struct Most {
    const char* target;
    uint64_t instructions;  // of warps
    uint32_t registers;
    bool has_copies;
  };
  for (const Most& most : {Most{"sm_61", 582864, 62, false}, {"sm_75", 513876, 54, true}, {"sm_90", 556374, 54, true}}) {
    SCOPED_TRACE(most.target);
    Cost cost;
    cost_of(tpch::scheme, "0.01", "tpch/queries/q01.hir", most.target, {}, cost);
    if (HasFatalFailure()) return;
    fmt::print("{}: {} instructions of warps, {} registers\n", most.target, cost.instructions, cost.registers);
    EXPECT_EQ(cost.shared_bytes > 40u << 10, most.has_copies) << cost.shared_bytes;
    EXPECT_LE(cost.registers, most.registers);
    EXPECT_LE(cost.instructions, most.instructions);
  }
}

std::string case_name(const ::testing::TestParamInfo<std::tuple<Program, std::string>>& info) {
  const std::string& item = std::get<0>(info.param).item;
  std::string name = item.substr(item.find('q')) + "_" + std::get<1>(info.param);
  for (char& c : name)
    if (c == '.' || c == ' ') c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Tpch, ProgramsOnSimulator,
                         ::testing::Combine(::testing::ValuesIn(tpch_programs()),
                                            ::testing::ValuesIn(isa::target_names())),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Ssb, ProgramsOnSimulator,
                         ::testing::Combine(::testing::ValuesIn(ssb_programs()),
                                            ::testing::ValuesIn(isa::target_names())),
                         case_name);

}  // namespace
}  // namespace rndn::runtime::benchmark_programs_test
