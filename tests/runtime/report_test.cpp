// The report of times: keys of the contract, phases that add up.
#include "runtime/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rndn::runtime::report_test {
namespace {

void spin_us(int us) {
  auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (std::chrono::steady_clock::now() < until) {
  }
}

RunReport sample(uint32_t run) {
  RunReport r{.program = "q\"6",
              .run = run,
              .arch = "sm_86",
              .device = "simulator",
              .backend = "rndn",
              .timings = {},
              .kernels = {},
              .fallbacks = {}};
  {
    auto frontend = r.timings.measure(Phase::frontend);
    spin_us(50);
    auto select = r.timings.measure(Phase::select);
    spin_us(50);
  }
  {
    auto overhead = r.timings.measure(Phase::overhead, "run");
    spin_us(20);
    {
      auto transfer = r.timings.measure(Phase::transfer);
      spin_us(100);
    }
    spin_us(60);
    r.timings.credit(Phase::kernels, 40000);
    r.timings.on_device({Phase::kernels, r.timings.now() - 50000, 40000, "main_1"});
    r.timings.add_overlap(Phase::data, 12345);
  }
  r.kernels.push_back({"main_1", "outlined", 32, 72, 210, 2, 40000, 1684000, 2000000});
  return r;
}

void check_group(const nlohmann::json& group, std::vector<std::string> phases, bool overlap) {
  uint64_t sum = 0;
  ASSERT_EQ(group.at("phases").size(), phases.size());
  for (const std::string& p : phases) sum += group.at("phases").at(p).get<uint64_t>();
  EXPECT_EQ(sum, group.at("total_ns").get<uint64_t>() + (overlap ? group.at("overlap_ns").get<uint64_t>() : 0));
  EXPECT_GT(group.at("total_ns").get<uint64_t>(), 50000u);
}

void check_run(const nlohmann::json& j, int run) {
  EXPECT_EQ(j.at("program"), "q\"6");
  EXPECT_EQ(j.at("run"), run);
  EXPECT_EQ(j.at("arch"), "sm_86");
  EXPECT_EQ(j.at("device"), "simulator");
  EXPECT_EQ(j.at("backend"), "rndn");
  check_group(j.at("compile"),
              {"planner", "translate", "frontend", "outliner", "ptx", "structure", "select", "allocate", "schedule",
               "peephole", "encode", "load"},
              false);
  check_group(j.at("execute"), {"transfer", "data", "kernels", "library", "cpu", "overhead"}, true);
  EXPECT_EQ(j["execute"]["overlap_ns"], 12345);
  EXPECT_EQ(j["execute"]["phases"]["data"], 12345);
  EXPECT_GE(j["execute"]["phases"]["kernels"].get<uint64_t>(), 40000u);
  ASSERT_EQ(j.at("kernels").size(), 1u);
  EXPECT_EQ(j["kernels"][0].dump(),
            "{\"floor_bytes\":1684000,\"instructions\":210,\"kind\":\"outlined\",\"launches\":2,\"name\":\"main_1\","
            "\"ns\":40000,\"registers\":32,"
            "\"shared_bytes\":72}");
}

TEST(Report, JsonOfOneRunIsAnObjectThatAddsUp) {
  std::vector<RunReport> runs = {sample(1)};
  check_run(nlohmann::json::parse(report(runs, TimeFormat::json)), 1);
}

TEST(Report, JsonOfSeveralRunsIsAnArray) {
  std::vector<RunReport> runs = {sample(1), sample(2)};
  auto j = nlohmann::json::parse(report(runs, TimeFormat::json));
  ASSERT_TRUE(j.is_array());
  ASSERT_EQ(j.size(), 2u);
  check_run(j[0], 1);
  check_run(j[1], 2);
}

TEST(Report, TraceIsChromeJsonWithEveryEvent) {
  std::vector<RunReport> runs = {sample(1), sample(2)};
  auto j = nlohmann::json::parse(report(runs, TimeFormat::trace));
  size_t host = 0, device = 0, threads = 0;
  for (const auto& e : j.at("traceEvents")) {
    threads += e.at("name") == "thread_name";
    if (e.at("ph") != "X") continue;
    EXPECT_GT(e.at("dur").get<double>(), 0);
    (e.at("tid") == 1 ? host : device) += 1;
    if (e.at("tid") != 2) continue;
    EXPECT_EQ(e.at("name"), "main_1");
    EXPECT_EQ(e.at("cat"), "kernels");
    EXPECT_DOUBLE_EQ(e.at("dur").get<double>(), 40);
  }
  EXPECT_EQ(host, runs[0].timings.events().size() + runs[1].timings.events().size());
  EXPECT_EQ(device, 2u);
  EXPECT_EQ(threads, 4u) << "host and device of either run";
}

TEST(Report, TextNamesTheRunAndItsKernels) {
  std::vector<RunReport> runs = {sample(1)};
  runs[0].fallbacks = {"q06.hir:3:4: `order`"};
  runs[0].host_work = {"elements moved: `reverse`"};
  runs[0].texts_walked = 77;
  runs[0].columns_encoded = 5;
  runs[0].column_bytes = 1234567;
  runs[0].pinned_column_bytes = 1000000;
  runs[0].mapped_column_bytes = 2500000;
  std::string text = report(runs, TimeFormat::text);
  EXPECT_NE(text.find("q\"6 run 1 on simulator (sm_86, rndn)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nmain_1  outlined      0.040 ms         2         32     210      1.684 MB      50.0\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\nhost work: elements moved: `reverse`\n"), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(report(runs, TimeFormat::json)).at("host_work"), nlohmann::json(runs[0].host_work));
  EXPECT_NE(text.find("texts that the host read: 77\n"), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(report(runs, TimeFormat::json)).at("texts_walked"), 77);
  EXPECT_NE(text.find("columns that the host encoded: 5\n"), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(report(runs, TimeFormat::json)).at("columns_encoded"), 5);
  EXPECT_NE(text.find("columns to the device: 1.235 MB, 1.000 MB of them from pinned memory\n"), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(report(runs, TimeFormat::json)).at("column_bytes"), 1234567);
  EXPECT_EQ(nlohmann::json::parse(report(runs, TimeFormat::json)).at("pinned_column_bytes"), 1000000);
  EXPECT_NE(text.find("columns that kernels read in the host's memory: 2.500 MB\n"), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(report(runs, TimeFormat::json)).at("mapped_column_bytes"), 2500000);
  EXPECT_NE(text.find("fallback to the reference interpreter: q06.hir:3:4: `order`\n"), std::string::npos) << text;
}

TEST(Report, HtmlIsSelfContainedAndEscaped) {
  std::vector<RunReport> runs = {sample(1)};
  runs[0].program = "<script>";
  std::string text = report(runs, TimeFormat::html);
  EXPECT_EQ(text.find("<script>"), std::string::npos);
  EXPECT_EQ(text.find("http"), std::string::npos);
  EXPECT_NE(text.find("&lt;script&gt; run 1"), std::string::npos);
  EXPECT_NE(text.find("main_1"), std::string::npos);
  EXPECT_NE(text.find("<title>device: main_1: 0.040 ms</title>"), std::string::npos);
  EXPECT_EQ(text.find("<h3>"), std::string::npos) << "bars of one run compare nothing";
}

TEST(Report, HtmlOfSeveralRunsBeginsWithABarForEach) {
  std::vector<RunReport> runs = {sample(1), sample(2)};
  const std::string text = report(runs, TimeFormat::html);
  const std::string bars = text.substr(0, text.find("<h2>"));
  for (const char* part : {"<h3>Compile</h3>", "<h3>Execute</h3>", "q&quot;6 run 1</text>", "q&quot;6 run 2</text>",
                           "<title>kernels: 0.040 ms</title>", "</span> schedule"})
    EXPECT_NE(bars.find(part), std::string::npos) << part;
}

// All numbers that stand between `before` and `after`.
std::vector<double> numbers(const std::string& text, const std::string& before, const std::string& after) {
  std::vector<double> found;
  for (size_t at = 0; (at = text.find(before, at)) != text.npos;) {
    at += before.size();
    size_t used = 0;
    const double number = std::stod(text.substr(at), &used);
    if (text.compare(at + used, after.size(), after) == 0) found.push_back(number);
  }
  return found;
}

// A chart of hardly any time has an end.
TEST(Report, HtmlOfOneShortEvent) {
  RunReport r = sample(1);
  r.timings = {};
  { auto nothing = r.timings.measure(Phase::frontend); }
  EXPECT_NE(report({&r, 1}, TimeFormat::html).find("</svg>"), std::string::npos);
}

TEST(Report, HtmlHasAnAxisATotalAndRoomForItsLabels) {
  std::vector<RunReport> runs = {sample(1), sample(2)};
  runs[1].program = "ssb q4.3 joins over a folder";
  const std::string text = report(runs, TimeFormat::html);
  // What the run took besides its phases is not all of it.
  EXPECT_EQ(text.find("overhead run"), std::string::npos);
  EXPECT_NE(text.find("<title>run: "), std::string::npos);
  for (const char* part :
       {"<p>Total: ", "\">0.00 ms</text>", "<th class=n title=\"bytes that it must read and write at least\">floor"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  // The axis: marks at equal distances, within the chart.
  const std::string chart = text.substr(text.find("<h2>"), text.find("</svg>", text.find("<h2>")) - text.find("<h2>"));
  const std::vector<double> marks = numbers(chart, "<path d=\"M", " 0V");
  ASSERT_GE(marks.size(), 4u);
  ASSERT_LE(marks.size(), 11u);
  for (size_t i = 0; i < marks.size(); ++i) EXPECT_NEAR(marks[i], static_cast<double>(i) * marks[1], 0.1) << i;
  EXPECT_LE(marks.back(), 1000);
  // Bars begin behind the longest label (6 units a letter) and leave room for the total.
  const std::string bars = text.substr(0, text.find("<h2>"));
  for (const double x : numbers(bars, "<rect x=\"", "\""))
    EXPECT_GT(x, 6.0 * static_cast<double>(runs[1].program.size() + 6));
  for (const double x : numbers(bars, "</g><text x=\"", "\"")) EXPECT_LT(x, 900);
  // A narrow window scrolls tables by themselves.
  size_t tables = 0, wrapped = 0;
  for (size_t at = 0; (at = text.find("<table>", at)) != text.npos; ++at)
    ++tables, wrapped += text.compare(at - 13, 13, "<div class=t>") == 0;
  EXPECT_EQ(tables, 6u);
  EXPECT_EQ(wrapped, tables);
  EXPECT_NE(text.find(".t{overflow-x:auto}"), std::string::npos);
}

}  // namespace
}  // namespace rndn::runtime::report_test
