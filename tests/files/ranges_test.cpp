// Row groups that filters exclude are not read, whatever else a session reads of the table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "libraries/base/system/files.h"
#include "runtime/planner/duckdb.h"
#include "runtime/session/session.h"
#include "tests/planner/support.h"

namespace rndn::runtime {
namespace {

using planner::installed;
using planner::installed_folder;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uint64_t group_rows = 2048, groups = 10;

class Ranges : public testing::Test {
 protected:
  // The file is written once, for all tests: none of them changes it.
  static void SetUpTestSuite() {
    if (installed_folder().empty() && installed().named.empty()) return;
    folder_ = testing::TempDir() + "rndn_ranges_" + std::to_string(getpid()) + "/";
    fs::create_directories(folder_);
    // Most columns ascend; `s` has no value in every second row group, `f` has NaN in one.
    auto duckdb = planner::Duckdb::open(planner::installed(), 2, planner::Duckdb::Access::files);
    ASSERT_TRUE(duckdb) << duckdb.error().message;
    auto written = (*duckdb)->run(in_folder(fmt::format(
        "COPY (SELECT i AS id, CAST(i AS INTEGER) AS k, CAST(i % 7 AS TINYINT) AS small, "
        "DATE '2020-01-01' + CAST(i // 16 AS INTEGER) AS day, "
        "TIMESTAMP '2020-01-01 00:00:00' + to_minutes(i) AS moment, "
        "CAST(CAST(i AS DECIMAL(12,2)) / 4 AS DECIMAL(12,2)) AS money, CAST(i AS DECIMAL(38,3)) AS "
        "wide, "
        "CAST(i AS UBIGINT) + 9223372036854775808 AS big, "
        "CASE WHEN i = {} THEN CAST('nan' AS DOUBLE) ELSE CAST(i AS DOUBLE) END AS f, "
        "'t' || lpad(CAST(i AS VARCHAR), 8, '0') AS text, i >= 4096 AS late, "
        "CASE WHEN i // {} % 2 = 0 THEN i END AS s, 1234605616436508552 + i AS odd "
        "FROM range({}) r(i)) TO '$t.parquet' (ROW_GROUP_SIZE {})",
        5 * group_rows + 3, group_rows, groups * group_rows, group_rows)));
    ASSERT_TRUE(written) << written.error().message;
  }
  static void TearDownTestSuite() {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  void SetUp() override { REQUIRE_PLANNER(); }

  std::unique_ptr<Session> open(uint64_t least_saved, const char* device = "cpu") {
    auto choice = DeviceChoice::start(device, "", [](const std::string&) {});
    CHECK(choice, "{}", choice.error().message);
    return std::make_unique<Session>(
        nullptr, *std::move(choice),
        SessionOptions{.file_cache = "",
                       .planner = planner::installed(),
                       .say = [this](const std::string& s) { said_ += s; },
                       .least_saved = least_saved});
  }
  static std::string in_folder(std::string text) {
    for (size_t at; (at = text.find('$')) != text.npos;) text.replace(at, 1, folder_);
    return text;
  }
  std::string run(Session& session, const std::string& text) {
    said_.clear();
    auto outcome = session.run(split_sql("q", "<q>", in_folder(text))[0], {});
    if (!outcome) return said_ + outcome.error().message;
    auto printed = print(*outcome, Format::csv);
    if (!printed) return printed.error().message;
    std::string all = *printed;
    std::erase(all, '\r');
    return all;
  }
  // Rows of the table that the query is to read.
  uint64_t rows_read(Session& session, const std::string& text) {
    Timings timings;
    auto query = session.prepare_sql(split_sql("q", "<q>", in_folder(text))[0],
                                     SqlQueries::Until::program, timings);
    if (!query) return UINT64_MAX;
    if (!(*query)->ranges) return groups * group_rows;
    const auto& [table, source] = *(*query)->ranges->begin();
    return *source->rows(table);
  }

  static std::string folder_;
  std::string said_;
};
std::string Ranges::folder_;

// A file of its own each, so that nothing of it is in memory; the answer is that of a session that
// reads all. One session for all: to open the planner costs as much as all queries of a filter.
TEST_F(Ranges, FiltersLeaveRowGroups) {
  const auto all = open(UINT64_MAX);
  const struct {
    const char* filter;
    uint64_t groups;
  } rows[] = {
      {"k = 5000", 1},
      {"5000 = k", 1},
      {"k < 2048", 1},
      {"k <= 2048", 2},
      {"2048 > k", 1},
      {"k > 18431", 1},
      {"k >= 18431", 2},
      {"k <> 5000", 10},
      {"k BETWEEN 3000 AND 5000", 2},
      {"k IN (1, 2, 20000)", 2},
      {"k = 1 OR k = 20000 OR k = 20001", 2},
      {"(k < 10 AND id < 10) OR (k > 20000 AND id > 20000)", 2},
      {"k < 3000 AND id >= 2048", 1},
      {"k < 0", 0},
      {"small = 3", 10},
      {"small > 6", 0},
      {"day = DATE '2020-03-01'", 1},
      {"day >= DATE '2023-06-01'", 1},
      {"moment < TIMESTAMP '2020-01-02 00:00:00'", 1},
      {"money = 1000.25", 1},
      {"money > 5119", 1},
      {"wide < 100", 1},
      {"big < 9223372036854777000", 1},
      {"f < 100", 2},  // the group with NaN has no bounds
      {"f = 5000", 2},
      {"f > 20000", 10},  // NaN is above
      {"text = 't00005000'", 1},
      {"text < 't00002048'", 1},
      {"text IN ('a', 't00000007', 't00019999')", 2},
      {"s IS NULL", 5},
      {"s IS NOT NULL", 5},
      {"s > 0", 5},
      {"s > 4096 AND s < 8000", 1},
      {"k % 2 = 0", 10},
      {"k < id", 10},
  };
  const auto some = open(1);
  const std::string of_all = run(*all, "SELECT count(*) AS n, sum(k) AS k FROM '$t.parquet'");
  int number = 0;
  for (const auto& [filter, left] : rows) {
    const std::string file = fmt::format("own{}.parquet", number++);
    fs::copy_file(folder_ + "t.parquet", folder_ + file);
    const auto query = [&](const std::string& of) {
      return fmt::format(
          "SELECT count(*) AS n, sum(id) AS ids, min(text) AS first, max(day) AS last, sum(money) "
          "AS m, count(s) AS c, max(f) AS f FROM '${}' WHERE {}",
          of, filter);
    };
    EXPECT_EQ(rows_read(*some, query(file)), left * group_rows) << filter;
    const std::string expected = run(*all, query("t.parquet"));
    EXPECT_THAT(expected, testing::StartsWith("n,ids,")) << filter;
    EXPECT_EQ(run(*some, query(file)), expected) << filter;
    EXPECT_EQ(run(*some, query(file)), expected) << filter << ", again";
    // Some rows are not all: whoever needs all gets them.
    EXPECT_EQ(run(*some, "SELECT count(*) AS n, sum(k) AS k FROM '$" + file + "'"), of_all)
        << filter;
    EXPECT_EQ(run(*some, query(file)), expected) << filter << ", after all";
    fs::remove(folder_ + file);
  }
}

TEST_F(Ranges, EveryScanOfATableCounts) {
  const auto some = open(1);
  EXPECT_EQ(
      rows_read(*some,
                "SELECT count(*) FROM '$t.parquet' a JOIN '$t.parquet' b ON a.k = b.k + 10000 "
                "WHERE a.k > 18431 AND b.k < 100"),
      2 * group_rows);
  EXPECT_EQ(rows_read(*some,
                      "SELECT (SELECT count(*) FROM '$t.parquet' WHERE k < 10), (SELECT max(id) "
                      "FROM '$t.parquet')"),
            groups * group_rows);
  EXPECT_EQ(run(*some,
                "WITH x AS (SELECT * FROM '$t.parquet' WHERE k BETWEEN 4096 AND 4099) "
                "SELECT count(*) AS n, count(DISTINCT a.day) AS d FROM x a, x b"),
            "n,d\n16,1\n");
}

// Rent until it costs as much as to buy.
TEST_F(Ranges, WhoReadsMuchReadsAll) {
  const auto some = open(1);
  size_t alone = 0;
  for (int i = 0; i < 20; ++i)
    alone += rows_read(*some, fmt::format("SELECT sum(id) FROM '$t.parquet' WHERE k = {}",
                                          3000 + i)) == group_rows;
  EXPECT_GE(alone, groups - 1);  // row groups differ by some bytes
  EXPECT_LE(alone, groups + 1);
  const auto none = open(1 << 20);
  EXPECT_EQ(rows_read(*none, "SELECT sum(id) FROM '$t.parquet' WHERE k = 1"), groups * group_rows)
      << "it saves little";
}

TEST_F(Ranges, ColumnsInMemoryAreUsed) {
  const auto some = open(1);
  run(*some, "SELECT sum(k) FROM '$t.parquet'");
  EXPECT_EQ(rows_read(*some, "SELECT sum(id) FROM '$t.parquet' WHERE k = 1"), groups * group_rows);
  EXPECT_EQ(rows_read(*some, "SELECT sum(odd) FROM '$t.parquet' WHERE day = DATE '2020-01-02'"),
            group_rows);
}

TEST_F(Ranges, OfSeveralFiles) {
  const auto all = open(UINT64_MAX);
  fs::create_directories(folder_ + "d");
  for (int f = 0; f < 4; ++f)
    ASSERT_EQ(
        run(*all, fmt::format("COPY (SELECT i + {} AS k FROM range(1000) r(i)) TO '$d/{}.parquet'",
                              1000 * f, f)),
        "");
  const auto some = open(1);
  const std::string query =
      "SELECT count(*) AS n, min(k) AS k FROM '$d/*.parquet' WHERE k >= 2500 AND k < 2600";
  EXPECT_EQ(rows_read(*some, query), 1000u);
  EXPECT_EQ(run(*some, query), "n,k\n100,2500\n");
}

TEST_F(Ranges, OnTheDevice) {
  const auto some = open(1, "sim");
  const std::string query =
      "SELECT day, count(*) AS n FROM '$t.parquet' WHERE k BETWEEN 4100 AND 4115 GROUP BY day "
      "ORDER BY day";
  const std::string expected = run(*open(UINT64_MAX), query);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(run(*some, query), expected);
  EXPECT_EQ(run(*some, "SELECT count(*) AS n FROM '$t.parquet' WHERE k < 0"), "n\n0\n");
  EXPECT_EQ(run(*some, "SELECT count(*) AS n, count(DISTINCT day) AS d FROM '$t.parquet'"),
            fmt::format("n,d\n{},{}\n", groups * group_rows, groups * group_rows / 16));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run(*some, query), expected);
}

// What a footer says wrongly of the rows that are read is noticed.
TEST_F(Ranges, AFooterThatIsWrong) {
  std::string bytes = *read_file(folder_ + "t.parquet");
  const auto bound = [](int64_t value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const std::string greatest = bound(1234605616436508552 + 2047),
                    lower = bound(1234605616436508552 + 2000);
  size_t changed = 0;
  for (size_t at = bytes.size() / 2; (at = bytes.find(greatest, at)) != bytes.npos; ++changed)
    bytes.replace(at, 8, lower);
  ASSERT_GE(changed, 1u);
  ASSERT_TRUE(write_file(folder_ + "wrong.parquet", bytes));
  const auto some = open(1);
  EXPECT_THAT(run(*some, "SELECT sum(odd) FROM '$wrong.parquet' WHERE k = 1"),
              HasSubstr("column `odd` has values or nulls that the footer denies"));
  EXPECT_EQ(run(*some, "SELECT max(odd) AS m FROM '$wrong.parquet' WHERE k = 3000"),
            fmt::format("m\n{}\n", 1234605616436508552 + 3000));
}

// What cannot be decoded is told of the row group by its number in the file.
TEST_F(Ranges, DamagedRowGroups) {
  std::string bytes = *read_file(folder_ + "t.parquet");
  for (size_t i = bytes.size() / 3; i < bytes.size() / 2; ++i) bytes[i] = '\x7f';
  ASSERT_TRUE(write_file(folder_ + "bad.parquet", bytes));
  const auto some = open(1);
  EXPECT_EQ(run(*some, "SELECT count(*) AS n FROM '$bad.parquet' WHERE k < 10"), "n\n10\n");
  EXPECT_THAT(run(*some, "SELECT sum(id) FROM '$bad.parquet' WHERE k BETWEEN 8300 AND 8310"),
              testing::ContainsRegex("bad.parquet: column `[a-z]+`, row group 4: "));
}

}  // namespace
}  // namespace rndn::runtime
