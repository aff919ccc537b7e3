// The benchmarks of papers: their tables are complete, what they compute is checked, and a wrong
// answer is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "runtime/device/forwarding_device.h"
#include "runtime/simulator/simulator_device.h"
#include "tools/papers/made_tables.h"
#include "tools/papers/papers.h"

namespace rndn::test::papers_test {
namespace {

using namespace tools::papers;
using ::testing::HasSubstr;

// The simulator, with a clock that is the host's, or with a fault in what goes to it or comes from
// it.
class BenchDevice final : public device::ForwardingDevice {
 public:
  enum class Fault : uint8_t { none, sent, received };
  BenchDevice(std::unique_ptr<device::Device> simulator, bool has_clock, Fault fault)
      : ForwardingDevice(*simulator), simulator_(std::move(simulator)), info_(to_.info()), fault_(fault) {
    info_.is_simulator = !has_clock;
    info_.memory_bytes = uint64_t{8} << 30;
  }
  const device::Info& info() const override { return info_; }
  // Every word of a column is one more.
  Result<void> copy_to_device(device::Address to, const void* from, uint64_t bytes) override {
    if (fault_ != Fault::sent || bytes < 256) return to_.copy_to_device(to, from, bytes);
    std::vector<uint32_t> words(bytes / 4);
    std::memcpy(words.data(), from, words.size() * 4);
    for (uint32_t& word : words) ++word;
    return to_.copy_to_device(to, words.data(), words.size() * 4);
  }
  // One number in the middle of a result is another.
  Result<void> copy_to_host(void* to, device::Address from, uint64_t bytes) override {
    RETURN_IF_ERROR(to_.copy_to_host(to, from, bytes));
    if (fault_ == Fault::received && bytes >= 256) static_cast<char*>(to)[bytes / 16 * 8] ^= 1;
    return {};
  }

 private:
  std::unique_ptr<device::Device> simulator_;
  device::Info info_;
  const Fault fault_;
};

std::unique_ptr<Harness> harness_on(bool has_clock, BenchDevice::Fault fault, std::vector<std::string> figures = {}) {
  auto simulator = runtime::open_simulator("sm_90");
  EXPECT_TRUE(simulator.ok());
  Settings settings{.warm_up = 0, .runs = 1, .figures = std::move(figures)};
  settings.flags.device = "sim";
  settings.flags.limits.seconds = 60;
  auto choice = runtime::DeviceChoice::of(std::make_unique<BenchDevice>(*std::move(simulator), has_clock, fault));
  auto harness = Harness::open(tools::DeviceChoice{std::move(choice)}, std::move(settings));
  EXPECT_TRUE(harness.ok());
  return *std::move(harness);
}
std::unique_ptr<Harness> harness_of(std::vector<std::string> figures = {}) {
  return harness_on(false, BenchDevice::Fault::none, std::move(figures));
}

std::vector<FigureRow> rows_of(const Figures& figures, std::string_view figure) {
  std::vector<FigureRow> rows;
  for (const FigureRow& r : figures.rows())
    if (r.figure == figure) rows.push_back(r);
  return rows;
}

TEST(PapersTables, RatiosAndGoals) {
  FigureRow row{.base = exactly(6), .ours = exactly(2)};
  EXPECT_EQ(row.ratio(), 3);
  EXPECT_FALSE(row.meets_goal()) << "it has none";
  row.goal = 3;
  EXPECT_TRUE(row.meets_goal());
  row.goal = 3.01;
  EXPECT_FALSE(row.meets_goal());
  row.by = Ratio::speed;
  EXPECT_EQ(row.ratio(), 300);
  row.by = Ratio::share, row.goal = 34;
  EXPECT_NEAR(*row.ratio(), 33.3, 0.1);
  EXPECT_TRUE(row.meets_goal()) << "at most";
  row.goal = 33;
  EXPECT_FALSE(row.meets_goal());
  row.goal = 34, row.wrong = "row 3";
  EXPECT_FALSE(row.meets_goal()) << "the time of a wrong answer counts nothing";
  row.ours = {};
  EXPECT_FALSE(row.ratio());

  Figures figures({"paper", "a", "b"});
  figures.add({.figure = "Fig 1",
               .what = "x",
               .rows = 5,
               .base = {.median = 6, .low = 5, .high = 7, .count = 3},
               .ours = exactly(2.5),
               .unit = "ms",
               .paper = "2.89",
               .goal = 2});
  EXPECT_TRUE(figures.all_right());
  EXPECT_EQ(figures.tsv({{"device", "D"}, {"runs", "3"}}),
            "# device D; runs 3.\nfigure\tcase\trows\ta\tb\tunit\tratio\tpaper\tgoal\tmet\tanswer\n"
            "Fig 1\tx\t5\t6 (5 to 7)\t2.500\tms\t2.40\t2.89\t>= 2\tyes\tright\n");
  EXPECT_EQ(
      figures.json({{"device", "D"}}),
      "{\"facts\":{\"device\":\"D\"},\"rows\":[\n{\"figure\":\"Fig 1\",\"case\":\"x\",\"rows\":5,"
      "\"base\":{\"median\":6,\"low\":5,\"high\":7},\"ours\":{\"median\":2.5,\"low\":2.5,\"high\":2.5},\"unit\":\"ms\","
      "\"ratio\":2.4,\"paper\":\"2.89\",\"goal\":2,\"met\":true,\"right\":true,\"wrong\":\"\"}\n]}\n");
  figures.add({.figure = "Fig 2", .what = "y", .wrong = "row 1"});
  EXPECT_FALSE(figures.all_right());
}

TEST(PapersTables, AnswersDiffer) {
  using data::vector_of;
  using enum hir::BasicType;
  const std::vector<Answer> wanted = {Answer::of(std::vector<int64_t>{1, 2, -3}), Answer::of(std::vector<double>{0.5})};
  const auto floats = vector_of<double>(f64, {0.5 + 1e-14});
  EXPECT_EQ(difference({vector_of<int32_t>(i32, {1, 2, -3}), floats}, wanted), "");
  EXPECT_EQ(difference({vector_of<int64_t>(i64, {1, 2, -3}), floats}, wanted), "");
  EXPECT_THAT(difference({vector_of<int32_t>(i32, {1, 2, 3}), floats}, wanted), HasSubstr("row 2: 3 in place of -3"));
  EXPECT_THAT(difference({vector_of<int32_t>(i32, {1, 2}), floats}, wanted), HasSubstr("2 rows in place of 3"));
  EXPECT_THAT(difference({floats, floats}, wanted), HasSubstr("1 rows"));
  EXPECT_THAT(difference({vector_of<int32_t>(i32, {1, 2, -3})}, wanted), HasSubstr("1 results"));
  for (const double other : {0.5 + 1e-11, std::nan("")})
    EXPECT_THAT(difference({vector_of<int32_t>(i32, {1, 2, -3}), vector_of<double>(f64, {other})}, wanted),
                HasSubstr("row 0"));
  EXPECT_THAT(difference({vector_of<int32_t>(i32, {1, 2, -3}), vector_of<int64_t>(i64, {0})}, wanted),
              HasSubstr("another type"));
}

TEST(PapersTables, DataAreSpreadAsTheySay) {
  for (const unsigned bits : {0u, 1u, 2u, 5u, 10u}) {
    std::set<uint64_t> seen;
    bool moves = false;
    for (uint64_t i = 0; i < uint64_t{1} << bits; ++i)
      seen.insert(shuffled(3, i, bits)), moves |= shuffled(3, i, bits) != i;
    EXPECT_EQ(seen.size(), uint64_t{1} << bits);
    EXPECT_EQ(*seen.rbegin(), (uint64_t{1} << bits) - 1);
    EXPECT_TRUE(moves || bits <= 2);
  }
  for (const Spreading s : {Spreading::uniform, Spreading::normal, Spreading::pareto}) {
    double before = -1;
    for (int i = 0; i < 1000; ++i) {
      const double q = quantile(s, (i + 0.5) / 1000);
      EXPECT_GE(q, before);
      EXPECT_LT(q, 1);
      before = q;
    }
  }
  EXPECT_EQ(quantile(Spreading::uniform, 0.3), 0.3);
  EXPECT_NEAR(quantile(Spreading::normal, 0.5), 0.5, 1e-9);
  EXPECT_NEAR(quantile(Spreading::normal, 0.8413447), 0.625, 1e-6) << "one deviation above the mean";
  EXPECT_NEAR(quantile(Spreading::pareto, 0.8), 0.2, 1e-12);
  EXPECT_NE(random_at(1, 5), random_at(1, 6));
  EXPECT_NE(random_at(1, 5), random_at(2, 5));
}

TEST(PapersHarness, SidesTakeTurns) {
  const auto harness = harness_on(true, BenchDevice::Fault::none);
  std::string order;
  double a = 0, b = 10;
  const Harness::Body bodies[] = {[&]() -> Result<double> { return order += 'a', ++a; },
                                  [&]() -> Result<double> { return order += 'b', ++b; }};
  auto one = harness->in_turns(bodies);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(order, "ab");
  Settings settings{.warm_up = 1, .runs = 3};
  auto simulator = runtime::open_simulator("sm_90");
  auto again = Harness::open(tools::DeviceChoice{runtime::DeviceChoice::of(
                                 std::make_unique<BenchDevice>(*std::move(simulator), true, BenchDevice::Fault::none))},
                             settings);
  order.clear(), a = 0, b = 10;
  auto spreads = (*again)->in_turns(bodies);
  ASSERT_TRUE(spreads.ok());
  EXPECT_EQ(order, "abababab");
  EXPECT_EQ((*spreads)[0].median, 3) << "2, 3, 4: the first does not count";
  EXPECT_EQ((*spreads)[1].low, 12);
  EXPECT_EQ((*spreads)[1].high, 14);
}

// What one side alone gets wrong is told.
TEST(PapersHarness, EverySideIsChecked) {
  const auto harness = harness_of();
  const auto session = harness->session(
      source_of({{"t", 4, {{"k", hir::BasicType::i32, [](uint64_t i) { return static_cast<int64_t>(i); }}}}}));
  auto program = [](const std::string& name, const std::string& what) {
    return tools::NamedSource{name, name,
                              "module m { import Builtin.*; def main() : i32 { t:table = @load_table(`t:sym); k:i32 = "
                              "check_cast(@column_value(t, `k:sym), i32); r:? = " +
                                  what + "; return r; } }"};
  };
  auto check = [](const tools::Session::Outcome& o) -> Result<std::string> {
    return difference(o.results, {Answer::of(std::vector<int64_t>{6})});
  };
  const Side right{program("right", "@sum(k)"), {}}, wrong{program("other", "@max(k)"), {}};
  for (const auto& [sides, told] : {std::pair{std::vector{right, right}, ""},
                                    {std::vector{right, wrong}, "other: result 0, row 0: 3 in place of 6"},
                                    {std::vector{wrong, right}, "other: result 0, row 0: 3 in place of 6"}}) {
    auto compared = harness->compare(*session, sides, check);
    ASSERT_TRUE(compared.ok()) << compared.error().message;
    EXPECT_EQ(compared->wrong, told);
    EXPECT_EQ(compared->sides[0].launches, 1u);
  }
}

TEST(PapersKernelWeaver, TheTableIsComplete) {
  const auto harness = harness_of();
  Figures figures = kernel_weaver_table();
  const unsigned sizes[] = {10};
  auto done = measure_kernel_weaver(*harness, sizes, figures);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_TRUE(figures.all_right()) << figures.tsv({});
  EXPECT_EQ(rows_of(figures, "Fig 4").size(), 2u);
  EXPECT_EQ(rows_of(figures, "Fig 20").size(), 3u);
  const std::vector<FigureRow> patterns = rows_of(figures, "Fig 16");
  ASSERT_EQ(patterns.size(), 10u);  // five patterns, stored and summed
  for (size_t p = 0; p < 10; ++p) {
    EXPECT_EQ(patterns[p].what[0], "abcde"[p / 2]);
    EXPECT_EQ(patterns[p].goal.has_value(), p % 2 == 1) << patterns[p].what;
    EXPECT_EQ(patterns[p].base.count, 0u) << "the simulator has no clock";
  }
  EXPECT_EQ(rows_of(figures, "Fig 17").size(), 10u);
  EXPECT_EQ(rows_of(figures, "Fig 19").size(), 20u);
  EXPECT_EQ(rows_of(figures, "Table 3").size(), 20u);
  const std::vector<FigureRow> bytes = rows_of(figures, "Fig 18");
  ASSERT_EQ(bytes.size(), 30u);
  for (const FigureRow& r : bytes) {
    if (r.what.ends_with(", sectors")) {
      EXPECT_GT(r.ours.median, 0) << r.what;
      continue;
    }
    EXPECT_GT(r.base.median, r.ours.median) << r.what << ": fused is less";
  }
  for (const FigureRow& r : rows_of(figures, "Table 3")) EXPECT_GT(r.ours.median, 0) << r.what;
}

TEST(PapersKernelWeaver, OtherDataAreWrongAnswers) {
  const auto harness = harness_on(true, BenchDevice::Fault::sent, {"16"});
  Figures figures = kernel_weaver_table();
  const unsigned sizes[] = {10};
  ASSERT_TRUE(measure_kernel_weaver(*harness, sizes, figures).ok());
  for (const FigureRow& r : figures.rows()) EXPECT_NE(r.wrong, "") << r.figure << " " << r.what;
  EXPECT_FALSE(figures.all_right());
  EXPECT_THAT(figures.tsv({}), HasSubstr("in place of"));
}

TEST(PapersMultiBsp, TheTableIsComplete) {
  const auto harness = harness_of();
  Figures figures = multi_bsp_table();
  const unsigned sizes[] = {8, 10};
  auto done = measure_multi_bsp(*harness, sizes, figures);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_TRUE(figures.all_right()) << figures.tsv({});
  EXPECT_EQ(rows_of(figures, "Fig 16").size(), 2u);
  EXPECT_EQ(rows_of(figures, "Fig 9").size(), 2 * 14u);
  EXPECT_EQ(rows_of(figures, "Figs 10 to 14").size(), 2 * 2 * 9u);
  for (const FigureRow& r : rows_of(figures, "Fig 9")) {
    EXPECT_EQ(r.unit, "MB");
    EXPECT_GT(r.base.median, 0) << r.what;
    EXPECT_GT(r.ours.median, 0) << r.what;
  }
}

TEST(PapersMultiBsp, EveryOperatorsResultIsLookedAt) {
  const auto harness = harness_on(true, BenchDevice::Fault::received, {"9"});
  Figures figures = multi_bsp_table();
  const unsigned sizes[] = {10};
  ASSERT_TRUE(measure_multi_bsp(*harness, sizes, figures).ok());
  ASSERT_EQ(figures.rows().size(), 14u);
  for (const FigureRow& r : figures.rows()) {
    EXPECT_NE(r.wrong, "") << r.what;
    EXPECT_FALSE(r.meets_goal());
  }
  EXPECT_EQ(figures.rows()[3].goal, 50) << "of joins whose keys repeat";
}

TEST(PapersHorseqc, SelectionsAndGroups) {
  const auto harness = harness_of({"17", "18", "27"});
  Figures figures = horseqc_table();
  auto done = measure_horseqc(*harness, {.rows = 2000, .groups = 8}, 1e9, figures);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_TRUE(figures.all_right()) << figures.tsv({});
  // Of a case: beside the transfer, beside an operator at a time, bytes, and the paper's other
  // ways.
  struct Expected {
    const char* figure;
    size_t cases, lines;
  };
  for (const auto& [figure, cases, lines] : {Expected{"Fig 17", 6, 6}, {"Fig 27", 6, 5}, {"Fig 18", 2, 3}}) {
    const std::vector<FigureRow> rows = rows_of(figures, figure);
    ASSERT_EQ(rows.size(), cases * lines) << figure;
    for (size_t i = 0; i < rows.size(); i += lines) {
      EXPECT_EQ(rows[i].goal, 100) << "of the transfer";
      EXPECT_GT(rows[i].base.median, 0);
      EXPECT_GT(rows[i + 2].base.median, rows[i + 2].ours.median) << rows[i + 2].what;
    }
  }
  // Three columns of 2,000 rows of 4 bytes at 1 GB/s, and little more.
  EXPECT_NEAR(rows_of(figures, "Fig 17")[0].base.median, 24e-3, 3e-3);
}

TEST(PapersHorseqc, OtherDataAreWrongAnswers) {
  const auto harness = harness_on(true, BenchDevice::Fault::sent, {"17", "18", "27"});
  Figures figures = horseqc_table();
  ASSERT_TRUE(measure_horseqc(*harness, {.rows = 2000, .groups = 2}, 0, figures).ok());
  for (const FigureRow& r : figures.rows()) {
    if (r.what.find("<= 0 of") != r.what.npos) continue;  // nothing is selected of either
    EXPECT_NE(r.wrong, "") << r.figure << " " << r.what;
  }
}

TEST(PapersHorseqc, QueriesBesideDuckdb) {
  if (!std::filesystem::exists(RNDN_BIN_DIR "/../share/duckdb/libduckdb-planner.so"))
    GTEST_SKIP() << "skipped: the planner of SQL is not installed (tools/sql-planner does that)";
  const auto harness = harness_of({"19", "20", "table1"});
  Figures figures = horseqc_table();
  auto done = measure_horseqc(*harness, {.scale = 0.01, .queries = {"q1.1", "q06"}}, 1e9, figures);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_TRUE(figures.all_right()) << figures.tsv({});
  EXPECT_EQ(rows_of(figures, "Fig 19").size(), 3u);
  EXPECT_EQ(rows_of(figures, "Fig 20").size(), 3u);
  ASSERT_EQ(rows_of(figures, "Table 1").size(), 2u);
  for (const FigureRow& r : rows_of(figures, "Table 1"))
    EXPECT_GT(r.base.median, r.ours.median) << "fused passes are fewer";
}

}  // namespace
}  // namespace rndn::test::papers_test
