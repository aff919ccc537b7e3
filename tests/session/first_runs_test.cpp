// First runs of the TPC-H queries in SQL: what machine code they have made, and when. Kernels come
// with the code that was foreseen from the columns (runtime/run/forecast.cpp), all of a query's in
// one module; what a launch has to make besides, and what was made for nothing, is counted. The
// counts repeat exactly and may only go down.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "libraries/base/system/files.h"
#include "runtime/data/sources.h"
#include "runtime/session/session.h"
#include "ssb/source.h"
#include "tests/planner/support.h"
#include "tpch/source.h"

namespace rndn::runtime {
namespace {

using planner::installed, planner::installed_folder;

struct Made {
  size_t launched = 0;  // kernels
  size_t late = 0;      // codes that launches made
  size_t unused = 0;    // codes that were foreseen and that no launch had use for
  size_t again = 0;     // programs compiled anew in the run: a group was foreseen as it was not
  auto operator<=>(const Made&) const = default;
};

// Every query once in one session.
Made first_runs(unsigned threads, std::vector<std::string>& late) {
  auto source = tpch::open_source("tpch:0.01", {.progress = false});
  EXPECT_TRUE(source) << source.error().message;
  auto device = DeviceChoice::start("sim", "", [](const std::string&) {});
  EXPECT_TRUE(device);
  Session session(*source, *std::move(device),
                  SessionOptions{.planner = installed(), .say = [](const std::string&) {}});
  Made made;
  for (int query = 1; query <= 22; ++query) {
    const auto text = read_file(fmt::format("{}/tpch/sql/q{:02}.sql", RNDN_SOURCE_DIR, query));
    EXPECT_TRUE(text);
    RunOptions options;
    options.threads = threads;
    options.reports = true;
    const auto outcome = session.run(split_sql("q", "q.sql", *text)[0], options);
    EXPECT_TRUE(outcome) << outcome.error().message;
    if (!outcome) continue;
    uint64_t begin = UINT64_MAX, outlined = 0;  // the run's begin; the end of the last outlining
    for (const Timings::Event& e : outcome->reports[0].timings.events()) {
      if (e.phase == Phase::overhead && e.detail == "run") begin = std::min(begin, e.start_ns);
      if (e.phase != Phase::outliner || e.start_ns < begin || e.start_ns < outlined) continue;
      ++made.again;
      outlined = e.start_ns + e.duration_ns;
    }
    for (const KernelReport& k : outcome->reports[0].kernels) {
      if (k.kind != "outlined") continue;
      made.launched += k.launches > 0;
      made.late += k.late;
      made.unused += k.late >= k.launches;
      if (k.late) late.push_back(fmt::format("q{:02} {}", query, k.name));
    }
  }
  return made;
}

TEST(FirstRuns, HaveTheCodeThatWasForeseen) {
  REQUIRE_PLANNER();
  std::vector<std::string> late;
  const Made made = first_runs(1, late);
  // How many rows an operator leaves is known when it has run, and results of few are not narrowed.
  EXPECT_LE(made.late, 8u) << fmt::format("{}", fmt::join(late, ", "));
  EXPECT_LE(made.unused, 8u);
  EXPECT_LE(made.again, 1u) << "q13 groups what a join by an operator leaves";
  EXPECT_GE(made.launched, 100u) << "what was foreseen ran";
  EXPECT_EQ(first_runs(2, late), made) << "it hangs on the number of threads";
}

// The code of kernels of operators comes with the program. What is still assembled is counted, whoever has it in files.
TEST(FirstRuns, AssembleNoKernelOfOperators) {
  REQUIRE_PLANNER();
  const auto open = [](const data::Scheme& scheme) {
    return data::open_source({.data = fmt::format("{}:0.01", scheme.name)}, {&scheme, 1}, {.progress = false});
  };
  auto tpch_tables = open(tpch::scheme), ssb_tables = open(ssb::scheme);
  ASSERT_TRUE(tpch_tables && ssb_tables);
  auto device = DeviceChoice::start("sim", "", [](const std::string&) {});
  ASSERT_TRUE(device);
  Session session(*tpch_tables, *std::move(device),
                  SessionOptions{.planner = installed(), .say = [](const std::string&) {}});
  std::vector<std::string> late;
  size_t launched = 0;
  const auto run = [&](const std::string& name, const std::string& text) {
    RunOptions options;
    options.reports = true;
    const auto outcome = session.run(split_sql("q", "q.sql", text)[0], options);
    ASSERT_TRUE(outcome) << name << ": " << outcome.error().message;
    for (const KernelReport& k : outcome->reports[0].kernels) {
      if (k.kind == "outlined") continue;
      launched += k.launches;
      if (k.late) late.push_back(name + " " + k.name);
    }
  };
  const auto run_file = [&](const std::string& name) {
    const auto text = read_file(fmt::format("{}/{}.sql", RNDN_SOURCE_DIR, name));
    ASSERT_TRUE(text) << text.error().message;
    run(name, *text);
  };
  for (int query = 1; query <= 22; ++query) run_file(fmt::format("tpch/sql/q{:02}", query));
  for (const char* renewed : {"customer", "part", "supplier"}) ASSERT_TRUE(session.set_source(*ssb_tables, renewed));
  for (const auto& [flight, queries] : {std::pair(1, 3), {2, 3}, {3, 4}, {4, 3}})
    for (int query = 1; query <= queries; ++query) run_file(fmt::format("ssb/sql/q{}.{}", flight, query));
  EXPECT_EQ(late.size(), 0u) << fmt::format("{}", fmt::join(late, "\n"));
  EXPECT_GE(launched, 60u);
}

// A group that is foreseen to be no fold may have been all that the program's kernels did.
TEST(FirstRuns, NeedNoKernelWhereOperatorsDoAll) {
  REQUIRE_PLANNER();
  auto source = tpch::open_source("tpch:0.01", {.progress = false});
  ASSERT_TRUE(source) << source.error().message;
  auto device = DeviceChoice::start("sim", "", [](const std::string&) {});
  ASSERT_TRUE(device);
  Session session(*source, *std::move(device),
                  SessionOptions{.planner = installed(), .say = [](const std::string&) {}});
  for (const auto& [text, wanted] :
       {std::pair("select count(distinct l_orderkey) as n from lineitem", "n\r\n15000\r\n"),
        std::pair("select count(distinct o_custkey) as n from orders", "n\r\n1000\r\n")}) {
    const auto outcome = session.run(split_sql("q", "q.sql", text)[0], {});
    ASSERT_TRUE(outcome) << outcome.error().message;
    const auto csv = print_result(outcome->results, Format::csv);
    ASSERT_TRUE(csv);
    EXPECT_EQ(*csv, wanted);
  }
}

}  // namespace
}  // namespace rndn::runtime
