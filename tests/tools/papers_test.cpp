// The benchmarks of papers: their tables are complete, what they compute is checked, and a wrong
// answer is told.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "runtime/device/forwarding_device.h"
#include "runtime/simulator/simulator_device.h"
#include "runtime/simulator/streams.h"
#include "tools/copy_speed.h"
#include "tools/papers/made_tables.h"
#include "tools/papers/papers.h"
#include "tools/papers/pipelines.h"

namespace rndn::test::papers_test {
namespace {

using namespace tools::papers;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The simulator, with a clock that is the host's, or with a fault in what goes to it or comes from
// it.
class BenchDevice final : public device::ForwardingDevice {
 public:
  enum class Fault : uint8_t { none, sent, received };
  // Of what a test does to launches, and sees of them.
  struct Launches {
    uint64_t count = 0, fails = UINT64_MAX;  // the launch of this number fails, once
    Cause why = Cause::other;
    std::set<std::string> lost;  // kernels whose results go where nobody looks
    uint64_t lost_from = 0;      // of three launches of one: the first of these
    std::map<std::string, uint64_t> of_kernel{};
  };
  BenchDevice(std::unique_ptr<device::Device> simulator, bool has_clock, Fault fault,
              std::shared_ptr<Launches> launches = std::make_shared<Launches>())
      : ForwardingDevice(*simulator),
        simulator_(std::move(simulator)),
        info_(to_.info()),
        fault_(fault),
        launches_(std::move(launches)) {
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
  Result<device::KernelHandle> find_kernel(device::ModuleHandle module, const std::string& name) override {
    ASSIGN_OR_RETURN(const device::KernelHandle kernel, to_.find_kernel(module, name));
    names_[kernel] = name;
    return kernel;
  }
  Result<void> launch(device::KernelHandle kernel, device::Dim3 grid, device::Dim3 block, uint32_t shared,
                      std::span<const std::byte> parameters) override {
    if (launches_->count++ == launches_->fails) return world_error("launch: no such luck").as(launches_->why);
    const std::string& name = names_[kernel];
    if (!launches_->lost.contains(name) || launches_->of_kernel[name]++ % 3 < launches_->lost_from)
      return to_.launch(kernel, grid, block, shared, parameters);
    if (!elsewhere_) {
      ASSIGN_OR_RETURN(elsewhere_, to_.allocate(1 << 20));
    }
    std::vector<std::byte> other(parameters.begin(), parameters.end());
    std::memcpy(other.data() + 5 * 8, &elsewhere_, 8);  // `out` of tools/papers/pipelines.cpp
    return to_.launch(kernel, grid, block, shared, other);
  }

 private:
  std::unique_ptr<device::Device> simulator_;
  device::Info info_;
  const Fault fault_;
  std::shared_ptr<Launches> launches_;
  std::map<device::KernelHandle, std::string> names_;
  device::Address elsewhere_ = 0;
};

using Launches = BenchDevice::Launches;
std::unique_ptr<Harness> harness_on(bool has_clock, BenchDevice::Fault fault, std::vector<std::string> figures = {},
                                    std::shared_ptr<Launches> launches = std::make_shared<Launches>()) {
  auto simulator = runtime::open_simulator("sm_90");
  EXPECT_TRUE(simulator.ok());
  Settings settings{.warm_up = 0, .runs = 1, .figures = std::move(figures)};
  settings.flags.device = "sim";
  settings.flags.limits.seconds = 60;
  auto choice = runtime::DeviceChoice::of(
      std::make_unique<BenchDevice>(*std::move(simulator), has_clock, fault, std::move(launches)));
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
  row.by = Ratio::error, row.goal = 200;
  EXPECT_EQ(row.ratio(), -200) << "6 foretold of 2";
  EXPECT_TRUE(row.meets_goal()) << "either way";
  row.goal = 199;
  EXPECT_FALSE(row.meets_goal());
  row.by = Ratio::share;
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

// A case that failed is neither right nor wrong, and says why on its line.
TEST(PapersTables, WhatFailedSaysWhy) {
  Figures figures({"paper", "a", "b"});
  figures.add({.figure = "Fig 1", .what = "x", .base = exactly(6), .ours = exactly(2), .goal = 2, .failed = "no way"});
  EXPECT_TRUE(figures.all_right());
  EXPECT_FALSE(figures.all_measured());
  EXPECT_FALSE(figures.rows()[0].meets_goal());
  EXPECT_THAT(figures.tsv({}), HasSubstr("\tno\tfailed: no way\n"));
  EXPECT_THAT(figures.json({}), HasSubstr(R"("right":false,"wrong":"","failed":"no way"})"));
  figures.add({.figure = "Fig 1", .what = "y", .wrong = "fused: row 3", .failed = "over:\n\tline"});
  EXPECT_THAT(figures.tsv({}), HasSubstr("\tfused: row 3; failed: over:  line\n"));
  Figures less({"paper", "a", "b"});
  less.add({.figure = "Fig 3", .what = "z", .left_out = "no such thing"});
  EXPECT_TRUE(less.all_measured());
  EXPECT_THAT(less.tsv({}), HasSubstr("\tleft out: no such thing\n"));
  EXPECT_THAT(less.json({}), HasSubstr(R"("right":false,"wrong":"","left_out":"no such thing"})"));
  EXPECT_EQ(named({{"a", ""}, {"b", "row 1"}, {"c", "row 2"}}), "b: row 1; c: row 2");
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
  const tools::NamedSource right = program("right", "@sum(k)"), wrong = program("wrong", "@max(k)");
  const std::string one = "one: result 0, row 0: 3 in place of 6", two = "two: result 0, row 0: 3 in place of 6";
  for (const auto& [sides, told] :
       {std::pair{std::vector{Side{right, {}, "one"}, Side{right, {}, "two"}}, std::string()},
        {std::vector{Side{right, {}, "one"}, Side{wrong, {}, "two"}}, two},
        {std::vector{Side{wrong, {}, "one"}, Side{right, {}, "two"}}, one},
        {std::vector{Side{wrong, {}, "one"}, Side{wrong, {}, "two"}}, one + "; " + two}}) {
    auto compared = harness->compare(*session, sides, check);
    ASSERT_TRUE(compared.ok()) << compared.error().message;
    EXPECT_EQ(compared->wrong, told);
    EXPECT_EQ(compared->sides[0].launches, 1u);
  }
}

// Bytes are of all launches, and of each as many as it has.
TEST(PapersHarness, EveryLaunchMovesItsBytes) {
  const auto harness = harness_of();
  const MadeColumn column{"k", hir::BasicType::i32, [](uint64_t i) { return static_cast<int64_t>(i * 7919 % 4099); }};
  const auto session = harness->session(source_of({{"t", 4000, {column}}, {"u", 3000, {column}}}));
  auto program = [](const std::string& types, const std::string& body, const std::string& results) {
    return tools::NamedSource{"p", "p.hir", "module m { import Builtin.*; def main() : " + types + R"( {
        t:table = @load_table(`t:sym);
        k:i32 = check_cast(@column_value(t, `k:sym), i32);
        u:table = @load_table(`u:sym);
        m:i32 = check_cast(@column_value(u, `k:sym), i32);
        )" + body + "return " + results + "; } }"};
  };
  const std::string many = "many:? = @order(k, 1:bool); ", few = "few:? = @order(m, 1:bool); ";
  const Side sides[] = {{program("i64", many, "many"), {}, "many"},
                        {program("i64", few, "few"), {}, "few"},
                        {program("i64, i64", many + few, "many, few"), {}, "both"}};
  auto compared = harness->compare(*session, sides,
                                   [](const tools::Session::Outcome&) -> Result<std::string> { return std::string(); });
  ASSERT_TRUE(compared.ok()) << compared.error().message;
  ASSERT_EQ(compared->failed, "");
  ASSERT_EQ(compared->wrong, "");
  const std::vector<Measured>& of = compared->sides;
  EXPECT_GT(of[1].floor_bytes, 0u);
  EXPECT_EQ(of[2].floor_bytes, of[0].floor_bytes + of[1].floor_bytes);
  EXPECT_TRUE(std::any_of(of[2].kernels.begin(), of[2].kernels.end(), [](const runtime::KernelReport& k) {
    return k.kind == "library" && k.launches > 1 && k.all_floor_bytes > k.floor_bytes &&
           k.all_floor_bytes < k.floor_bytes * k.launches;
  })) << "a kernel that both have";
}

// Columns go by the device's second stream, in every run anew, and are counted; kernels alone are measured without it.
TEST(PapersHarness, WholeRunsHaveBothStreams) {
  auto simulator = runtime::open_simulator("sm_90");
  ASSERT_TRUE(simulator.ok());
  runtime::StreamsDevice streams(**simulator, {.seed = 1});
  auto harness = Harness::open(tools::DeviceChoice{runtime::DeviceChoice::of(
                                   std::make_unique<device::WithStreams<device::ForwardingDevice>>(streams))},
                               Settings{.warm_up = 1, .runs = 2});
  ASSERT_TRUE(harness.ok());
  const auto source =
      source_of({{"t", 1 << 16, {{"k", hir::BasicType::i32, [](uint64_t i) { return static_cast<int64_t>(i % 7); }}}}});
  const tools::NamedSource program{
      "p", "p.hir",
      "module m { import Builtin.*; def main() : i64 { t:table = @load_table(`t:sym); k:i32 = "
      "check_cast(@column_value(t, `k:sym), i32); w:i64 = check_cast(k, i64); r:i64 = "
      "@sum(w); return r; } }"};
  int64_t sum = 0;
  for (int64_t i = 0; i < 1 << 16; ++i) sum += i % 7;
  unsigned runs = 0;
  auto check = [&](const tools::Session::Outcome& o) -> Result<std::string> {
    ++runs;
    return difference(o.results, {Answer::of(std::vector<int64_t>{sum})});
  };
  for (const bool both : {false, true}) {
    auto session = both ? (*harness)->whole_session(source) : Result((*harness)->session(source));
    ASSERT_TRUE(session.ok());
    const uint64_t waits = streams.waits();
    const Way way{session->get(), program, {}, "way"};
    auto done = (*harness)->whole_runs({&way, 1}, check);
    ASSERT_TRUE(done.ok()) << done.error().message;
    EXPECT_EQ(done->wrong + done->failed, "");
    EXPECT_EQ(done->ways[0].sent_bytes, uint64_t{4} << 16) << "in the last run";
    EXPECT_EQ(streams.waits() > waits, both);
  }
  EXPECT_EQ(runs, 2 * 3u);
}

// As `in_turns` shows them.
TEST(PapersHarness, TheHeadSaysWhatIsShown) {
  for (const auto& [runs, dropped] : {std::pair{4u, false}, {5u, true}}) {
    auto simulator = runtime::open_simulator("sm_90");
    auto harness = Harness::open(tools::DeviceChoice{runtime::DeviceChoice::of(*std::move(simulator))},
                                 Settings{.warm_up = 2, .runs = runs});
    ASSERT_TRUE(harness.ok());
    const std::string told = (*harness)->facts("c", "d").back().second;
    EXPECT_THAT(told, HasSubstr(std::to_string(runs) + " after 2 that do not count"));
    EXPECT_EQ(told.find("highest and lowest dropped") != told.npos, dropped) << told;
    EXPECT_EQ(tools::spread_of(std::vector<double>(runs)).count, dropped ? runs - 2 : runs);
  }
}

// A device that copies in no time.
class NoTime final : public device::ForwardingDevice {
 public:
  explicit NoTime(device::Device& to) : ForwardingDevice(to), info_(to.info()) { info_.is_simulator = false; }
  const device::Info& info() const override { return info_; }
  Result<device::Address> allocate(uint64_t) override { return device::Address{256}; }
  Result<void> free(device::Address) override { return {}; }
  Result<void> fill(device::Address, device::Filling, uint64_t) override { return {}; }
  Result<void> copy(device::Address, device::Address, uint64_t) override { return {}; }
  Result<uint32_t> record_mark() override { return 0; }
  Result<uint64_t> elapsed_ns(uint32_t, uint32_t) override { return 0; }

 private:
  device::Info info_;
};

TEST(PapersHarness, ACopyInNoTimeHasASpeed) {
  auto simulator = runtime::open_simulator("sm_90");
  ASSERT_TRUE(simulator.ok());
  EXPECT_EQ(*tools::copy_speed(**simulator), 0) << "it has no clock";
  NoTime device(**simulator);
  const auto speed = tools::copy_speed(device);
  ASSERT_TRUE(speed.ok());
  EXPECT_TRUE(std::isfinite(*speed));
  EXPECT_GT(*speed, 0);
}

// The first case fails in its last run, and what was wrong before is told; the next case is measured.
TEST(PapersHarness, ACaseThatFailsIsOne) {
  const unsigned sizes[] = {8};
  auto measured = [&](BenchDevice::Fault fault, uint64_t fails, Cause why, Figures& figures) {
    auto launches = std::make_shared<Launches>();
    launches->fails = fails, launches->why = why;
    const auto harness = harness_on(true, fault, {"4"}, launches);
    const bool is_ok = measure_kernel_weaver(*harness, sizes, figures).ok();
    return std::pair(is_ok, launches->count);
  };
  Figures all = kernel_weaver_table();
  EXPECT_TRUE(measured(BenchDevice::Fault::none, UINT64_MAX, Cause::other, all).first);
  ASSERT_EQ(all.rows().size(), 2u);
  EXPECT_TRUE(all.all_measured());

  Figures one = kernel_weaver_table();
  EXPECT_TRUE(measured(BenchDevice::Fault::none, 0, Cause::other, one).first);
  ASSERT_EQ(one.rows().size(), 2u);
  EXPECT_THAT(one.rows()[0].failed, HasSubstr("launch: no such luck"));
  EXPECT_EQ(one.rows()[0].ours.count, 0u);
  EXPECT_EQ(one.rows()[1].failed, "");
  EXPECT_GT(one.rows()[1].ours.count, 0u);
  EXPECT_TRUE(one.all_right());

  // Launches of one case: those of both sides, three times.
  Figures wrong = kernel_weaver_table();
  const uint64_t count = measured(BenchDevice::Fault::sent, UINT64_MAX, Cause::other, wrong).second;
  Figures both = kernel_weaver_table();
  EXPECT_TRUE(measured(BenchDevice::Fault::sent, count - 1, Cause::other, both).first);
  ASSERT_EQ(both.rows().size(), 2u);
  EXPECT_THAT(both.rows()[1].wrong, AllOf(HasSubstr("unfused: result"), HasSubstr("; fused: result")));
  EXPECT_THAT(both.rows()[1].failed, HasSubstr("launch: no such luck"));

  // Without the device nothing goes on; what was measured is there.
  Figures lost = kernel_weaver_table();
  EXPECT_FALSE(measured(BenchDevice::Fault::none, 0, Cause::device_lost, lost).first);
  ASSERT_EQ(lost.rows().size(), 1u);
  EXPECT_THAT(lost.rows()[0].failed, HasSubstr("launch: no such luck"));
}

TEST(PapersMultiBsp, ACaseThatFailsIsOne) {
  auto launches = std::make_shared<Launches>();
  launches->fails = 0;
  const auto harness = harness_on(false, BenchDevice::Fault::none, {"9"}, launches);
  Figures figures = multi_bsp_table();
  const unsigned sizes[] = {6};
  ASSERT_TRUE(measure_multi_bsp(*harness, sizes, figures).ok());
  ASSERT_EQ(figures.rows().size(), 14u);
  EXPECT_THAT(figures.rows()[0].failed, HasSubstr("launch: no such luck"));
  for (size_t r = 1; r < 14; ++r) {
    EXPECT_EQ(figures.rows()[r].failed, "") << figures.rows()[r].what;
    EXPECT_EQ(figures.rows()[r].wrong, "") << figures.rows()[r].what;
  }
}

// A command's end, by its rows.
TEST(PapersTables, ExitCodes) {
  Settings settings;
  const auto folder = std::filesystem::temp_directory_path() / ("rndn-papers-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  settings.flags.output = folder;
  const FigureRow right{.figure = "1", .what = "r"}, wrong{.figure = "1", .wrong = "w"},
      failed{.figure = "1", .failed = "f"};
  const Result<void> well, badly = world_error("lost");
  auto code = [&](const std::vector<FigureRow>& rows, const Result<void>& done) {
    std::filesystem::remove(folder / "paper.tsv");
    Figures figures({"paper", "a", "b"});
    for (const FigureRow& r : rows) figures.add(r);
    const Result<int> ended = finish(figures, settings, {}, done);
    EXPECT_EQ(std::filesystem::exists(folder / "paper.tsv"), done.ok() || !rows.empty());
    return ended ? *ended : ended.error().exit_code();
  };
  EXPECT_EQ(code({right}, well), 0);
  EXPECT_EQ(code({right, failed}, well), 3);
  EXPECT_EQ(code({failed, wrong}, well), 70);
  EXPECT_EQ(code({right}, badly), 3);
  EXPECT_EQ(code({wrong}, badly), 70);
  EXPECT_EQ(code({}, badly), 3);
  std::filesystem::remove_all(folder);
}

TEST(PapersKernelWeaver, OnlyWhatIsWantedRuns) {
  auto launches_of = [](std::vector<std::string> figures) {
    auto launches = std::make_shared<Launches>();
    const auto harness = harness_on(false, BenchDevice::Fault::none, std::move(figures), launches);
    Figures table = kernel_weaver_table();
    const unsigned sizes[] = {8};
    EXPECT_TRUE(measure_kernel_weaver(*harness, sizes, table).ok());
    return launches->count;
  };
  const uint64_t four = launches_of({"4"}), sixteen = launches_of({"16"}), both = launches_of({"4", "16"});
  EXPECT_GT(four, 0u);
  EXPECT_LE(four + sixteen, both + both / 10);
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

TEST(PapersMultiBsp, WithoutASizeThatFitsThereIsNoTable) {
  const auto harness = harness_on(true, BenchDevice::Fault::none, {"9"});
  Figures figures = multi_bsp_table();
  const unsigned sizes[] = {30};
  const auto done = measure_multi_bsp(*harness, sizes, figures);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().exit_code(), 3);
  EXPECT_THAT(done.error().message, HasSubstr("no size fits: 2^30 rows do not fit: "));
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

// What ways of one warp or one row have counted, but not stored, is not right because another way stored it: from
// the first run of three on, or in the last, which are checked.
TEST(PapersHorseqc, EveryWayStoresItself) {
  for (const uint64_t from : {0, 2}) {
    auto launches = std::make_shared<Launches>();
    launches->lost = {"atomic", "local"}, launches->lost_from = from;
    const auto harness = harness_on(true, BenchDevice::Fault::none, {"17"}, launches);
    Figures figures = horseqc_table();
    ASSERT_TRUE(measure_horseqc(*harness, {.rows = 2000}, 0, figures).ok());
    EXPECT_EQ(launches->of_kernel["atomic"], 6 * 3u) << "checked, timed and checked";
    size_t wrong = 0;
    for (const FigureRow& r : figures.rows()) {
      const bool is_lost = (r.what.ends_with(", atomic") || r.what.ends_with(", local")) &&
                           r.what.find("<= 0 of") == r.what.npos;  // nothing is selected of either
      EXPECT_EQ(r.wrong.empty(), !is_lost) << r.what << ": " << r.wrong;
      EXPECT_EQ(r.wrong.find("the result is wrong") != r.wrong.npos, is_lost) << r.what;
      wrong += is_lost;
    }
    EXPECT_EQ(wrong, 5 * 2u);
  }
}

// Every launch takes a microsecond; two without a mark between them are a millisecond apart.
class SlowHost final : public device::ForwardingDevice {
 public:
  explicit SlowHost(std::unique_ptr<device::Device> simulator)
      : ForwardingDevice(*simulator), simulator_(std::move(simulator)), info_(to_.info()) {
    info_.is_simulator = false;
  }
  const device::Info& info() const override { return info_; }
  Result<void> launch(device::KernelHandle kernel, device::Dim3 grid, device::Dim3 block, uint32_t shared,
                      std::span<const std::byte> parameters) override {
    now_ += std::exchange(after_launch_, true) ? 1'001'000 : 1'000;
    ++launches;
    return to_.launch(kernel, grid, block, shared, parameters);
  }
  Result<uint32_t> record_mark() override {
    after_launch_ = false;
    marks_.push_back(now_);
    return static_cast<uint32_t>(marks_.size() - 1);
  }
  Result<uint64_t> elapsed_ns(uint32_t from, uint32_t to) override { return marks_.at(to) - marks_.at(from); }
  uint64_t launches = 0;

 private:
  std::unique_ptr<device::Device> simulator_;
  device::Info info_;
  std::vector<uint64_t> marks_;
  uint64_t now_ = 0;
  bool after_launch_ = false;
};

// Kernels alone, as ours are measured: what lies between them is none of it.
TEST(PapersHorseqc, SeveralPassesAreTheirKernels) {
  auto made = std::make_unique<SlowHost>(*runtime::open_simulator("sm_90"));
  SlowHost& device = *made;
  auto harness = Harness::open(tools::DeviceChoice{runtime::DeviceChoice::of(std::move(made))}, Settings{});
  ASSERT_TRUE(harness.ok());
  const auto source = source_of({{"t", 100, {{"k", hir::BasicType::i32, [](uint64_t) { return int64_t{1}; }}}}});
  const std::string names[] = {"k", "k", "k"};
  const auto columns = source->columns("t", names);
  ASSERT_TRUE(columns.ok());
  const auto pipelines = Pipelines::make(**harness, *(*columns)[0], *(*columns)[1], *(*columns)[2]);
  ASSERT_TRUE(pipelines.ok()) << pipelines.error().message;
  const Pipelines::Way& way = Pipelines::ways()[0];
  ASSERT_EQ(way.name, "multi-pass");
  device.launches = 0;
  const auto ms = (*pipelines)->run(way, 1);
  ASSERT_TRUE(ms.ok()) << ms.error().message;
  EXPECT_GE(device.launches, 3u);
  EXPECT_NEAR(*ms, static_cast<double>(device.launches) * 1e-3, 1e-9);
  const auto written = (*pipelines)->written(way, 1);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(*written, std::vector<int64_t>(100, 1));
}

TEST(PapersHorseqc, QueriesAreChosen) {
  auto chosen = [](std::vector<std::string> figures, const std::vector<std::string>& list) {
    Settings settings;
    settings.figures = std::move(figures);
    const auto found = horseqc_queries(settings, list);
    if (found) return fmt::format("{}", fmt::join(*found, " "));
    EXPECT_EQ(found.error().exit_code(), 2);
    return found.error().message;
  };
  for (const char* form : {"6", "q6", "q06", "06"}) EXPECT_EQ(chosen({}, {form}), "q06");
  EXPECT_EQ(chosen({"19"}, {"q1.1", "4.2-4.3"}), "q1.1 q4.2 q4.3");
  EXPECT_EQ(chosen({"20"}, {"4-6", "21"}), "q04 q05 q06 q21");
  EXPECT_EQ(chosen({"20"}, {}), "q01 q04 q05 q06 q07 q09 q13 q17 q18 q19 q21");
  EXPECT_EQ(chosen({"17"}, {}), "");
  EXPECT_EQ(chosen({"20"}, {"q03"}),
            "there is no query q03 (there are: q01, q04, q05, q06, q07, q09, q13, q17, q18, q19, q21)");
  EXPECT_THAT(chosen({"19"}, {"q06"}), HasSubstr("there is no query q06 (there are: q1.1, "));
  for (const char* none : {"", "q", "-", "6-", "6-4", "x", "6 "})
    EXPECT_THAT(chosen({}, {none}), HasSubstr("there is no query"));
  EXPECT_THAT(chosen({"17"}, {"6"}), HasSubstr("figures 19, 20, 22 and table1"));
}

#define NEEDS_PLANNER                                                                 \
  if (!std::filesystem::exists(RNDN_BIN_DIR "/../share/duckdb/libduckdb-planner.so")) \
  GTEST_SKIP() << "skipped: the planner of SQL is not installed (tools/sql-planner does that)"

TEST(PapersHorseqc, QueriesBesideDuckdb) {
  NEEDS_PLANNER;
  const auto harness = harness_of({"19", "20", "22", "table1"});
  Figures figures = horseqc_table();
  auto done = measure_horseqc(*harness, {.scale = 0.01, .queries = {"q1.1", "q06"}}, 1e9, figures);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_TRUE(figures.all_right()) << figures.tsv({});
  EXPECT_EQ(rows_of(figures, "Fig 19").size(), 3u);
  EXPECT_EQ(rows_of(figures, "Fig 20").size(), 3u);
  EXPECT_EQ(rows_of(figures, "Fig 22").size(), 1u);
  ASSERT_EQ(rows_of(figures, "Table 1").size(), 2u);
  for (const FigureRow& r : rows_of(figures, "Table 1"))
    EXPECT_GT(r.base.median, r.ours.median) << "fused passes are fewer";
}

// Columns leave the host in every run, by ranges in less memory than they have.
TEST(PapersHorseqc, WholeRuns) {
  NEEDS_PLANNER;
  const auto harness = harness_of({"21"});
  Figures figures = horseqc_table();
  auto done = measure_horseqc(*harness, {.scale = 0.03}, 1e9, figures);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_TRUE(figures.all_right() && figures.all_measured()) << figures.tsv({});
  const std::vector<FigureRow> rows = rows_of(figures, "Fig 21");
  ASSERT_EQ(rows.size(), 3 * 3 * 2u);
  EXPECT_NEAR(rows[12].base.median, rows[13].base.median, 1e-9) << "megabytes at 1 GB/s are milliseconds";
  EXPECT_GT(rows[12].base.median, rows[0].base.median * 3.5) << "of four times the rows";
  EXPECT_GT(rows[13].ours.median, 0);
  EXPECT_LT(rows[13].ours.median, rows[17].ours.median) << "blocks of 0.5 MB take less memory than those of 8 MB";
}

TEST(PapersYinYang, TheTableIsComplete) {
  NEEDS_PLANNER;
  const auto harness = harness_of();
  model::Calibration model;
  for (const model::RateRow& row : model::rate_rows)
    model.of(row.rate) = {{.at = 1, .median = 1e9, .low = 1e9, .high = 1e9}};
  for (const model::Rate rate : {model::Rate::launch, model::Rate::graph_node, model::Rate::wait, model::Rate::overlap})
    model.of(rate) = {{.median = 0.5, .low = 0.5, .high = 0.5}};
  model::Calibration other = model;
  other.facts = {{"device", "GTX 480"}};
  other.of(model::Rate::host_pinned)[0].median = 5e8;
  Figures figures = yin_yang_table();
  auto done = measure_yin_yang(
      *harness, {.scale = 0.01, .rows = 3000, .keys = 1 << 14, .queries = {"q2.1"}, .models = {model, other}}, figures);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_TRUE(figures.all_right() && figures.all_measured()) << figures.tsv({});
  const std::vector<FigureRow> packed = rows_of(figures, "Fig 6a"), sizes = rows_of(figures, "Table 4");
  ASSERT_EQ(packed.size(), 3u);
  EXPECT_GT(*packed[0].ratio(), 2) << "bytes that are sent";
  EXPECT_EQ(rows_of(figures, "Fig 6b").size(), 3 * 2u);
  EXPECT_EQ(rows_of(figures, "Fig 6c").size(), 3u);
  EXPECT_EQ(rows_of(figures, "Fig 13").size(), 4 + 2 + 2u);
  EXPECT_EQ(rows_of(figures, "Fig 14").size(), 2u);
  ASSERT_EQ(sizes.size(), 10u);
  EXPECT_NEAR(*sizes[5].ratio(), 12.5, 0.1) << "0 to 10 in 4 of 32 bits";
  EXPECT_EQ(sizes[9].left_out, "no encoding has runs");
  // What is foretold hangs on what is faster.
  const std::vector<FigureRow> beside = rows_of(figures, "Fig 15"), doubled = rows_of(figures, "Fig 16");
  ASSERT_EQ(beside.size(), 1u);
  EXPECT_THAT(beside[0].what, HasSubstr("for GTX 480 and here"));
  ASSERT_EQ(doubled.size(), 2u);
  EXPECT_NEAR(beside[0].base.median - beside[0].ours.median, packed[0].base.median, 1e-6)
      << "half of 1 GB/s: as many milliseconds more as megabytes";
  EXPECT_NEAR(doubled[0].base.median - doubled[0].ours.median, packed[0].base.median / 2, 1e-6);
  EXPECT_LT(doubled[1].ours.median, doubled[1].base.median);
}

TEST(PapersYinYang, OtherDataAreWrongAnswers) {
  const auto harness = harness_on(true, BenchDevice::Fault::sent, {"13"});
  Figures figures = yin_yang_table();
  ASSERT_TRUE(measure_yin_yang(*harness, {.rows = 3000, .keys = 1024, .models = {{}}}, figures).ok());
  ASSERT_EQ(figures.rows().size(), 7u);
  for (const FigureRow& r : figures.rows()) EXPECT_NE(r.wrong, "") << r.what;
}

}  // namespace
}  // namespace rndn::test::papers_test
