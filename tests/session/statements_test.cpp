// Statements that make, fill and drop tables and views, and what is said of those that cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/data/sources.h"
#include "runtime/session/session.h"
#include "tests/planner/support.h"

namespace rndn::runtime {
namespace {

using planner::installed, planner::installed_folder;
using testing::HasSubstr, testing::ElementsAre;
namespace fs = std::filesystem;

class Statements : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    REQUIRE_PLANNER();
    session_ = open();
  }
  std::unique_ptr<Session> open() {
    auto device = DeviceChoice::start(GetParam(), "", [](const std::string&) {});
    EXPECT_TRUE(device);
    return std::make_unique<Session>(
        nullptr, *std::move(device),
        SessionOptions{.planner = installed(),
                       .say = [this](const std::string& text) { said_ += text; }});
  }
  // The last statement's result as csv without its head, a line per row; else what is wrong.
  std::string run(const std::string& text) {
    said_.clear();
    std::string out;
    for (const NamedSource& statement : split_sql("q", "q.sql", text)) {
      auto outcome = session_->run(statement, {});
      if (!outcome) return outcome.error().message + said_;
      out = *print(*outcome, Format::csv);
    }
    std::string rows;
    for (size_t at = out.find('\n'); at != out.npos && at + 1 < out.size();) {
      const size_t end = out.find("\r\n", at + 1);
      rows += (rows.empty() ? "" : " ") + out.substr(at + 1, end - at - 1);
      at = end == out.npos ? end : end + 1;
    }
    return rows;
  }

  std::string said_;
  std::unique_ptr<Session> session_;
};

// Tables of rows by key are kept with their columns: what a statement changes is looked up as it is from then on.
TEST_P(Statements, JoinsFollowWhatChangesInTheirTables) {
  run("CREATE TABLE d AS SELECT CAST(range * 3 AS INTEGER) AS k, CAST(range AS INTEGER) AS w FROM range(500)");
  run("CREATE TABLE f AS SELECT CAST(range % 1700 AS INTEGER) AS k, CAST(range AS INTEGER) AS v FROM range(4000)");
  const auto expect = [&](const std::string& all, const std::string& some) {
    for (int again = 0; again < 4; ++again) {
      EXPECT_EQ(run("SELECT count(*), sum(w), sum(v) FROM f JOIN d ON f.k = d.k"), all) << again;
      EXPECT_EQ(run("SELECT count(*), sum(w), sum(v) FROM f JOIN d ON f.k = d.k WHERE w % 5 = 2"), some) << again;
    }
  };
  const auto join = [](int64_t first, int64_t step, int64_t rows, bool only_some) {
    int64_t count = 0, w = 0, v = 0;
    for (int64_t i = 0; i < 4000; ++i)
      for (int64_t row = 0; row < rows; ++row)
        if (first + row * step == i % 1700 && (!only_some || row % 5 == 2)) ++count, w += row, v += i;
    return fmt::format("{},{},{}", count, w, v);
  };
  expect(join(0, 3, 500, false), join(0, 3, 500, true));
  run("INSERT INTO d VALUES (1500, 500), (1503, 501), (1506, 502)");
  expect(join(0, 3, 503, false), join(0, 3, 503, true));
  run("CREATE OR REPLACE TABLE d AS SELECT CAST(range * 2 + 1 AS INTEGER) AS k, CAST(range AS INTEGER) AS w FROM range(500)");
  expect(join(1, 2, 500, false), join(1, 2, 500, true));
  // A row for each key, then one whose key is there already.
  run("CREATE OR REPLACE TABLE d AS SELECT CAST(range AS INTEGER) AS k, CAST(range AS INTEGER) AS w FROM range(1700)");
  expect(join(0, 1, 1700, false), join(0, 1, 1700, true));
  run("INSERT INTO d VALUES (0, 3)");
  const auto plus = [](const std::string& before) {
    int64_t count = 0, w = 0, v = 0;
    std::sscanf(before.c_str(), "%ld,%ld,%ld", &count, &w, &v);
    return fmt::format("{},{},{}", count + 3, w + 9, v + 0 + 1700 + 3400);
  };
  expect(plus(join(0, 1, 1700, false)), join(0, 1, 1700, true));
}

TEST_P(Statements, TablesTakeRows) {
  run("CREATE TABLE t AS SELECT 1 AS a, 'x' AS b, CAST(1.5 AS DECIMAL(9,2)) AS c");
  EXPECT_EQ(run("INSERT INTO t VALUES (2, NULL, 2.25), (3, 'z', NULL); SELECT * FROM t ORDER BY a"),
            "1,x,1.50 2,,2.25 3,z,");
  // By name, in another order; with casts; from the table itself.
  run("INSERT INTO t (c, a) SELECT c * 2, a + 10 FROM t WHERE a < 3");
  EXPECT_EQ(run("SELECT * FROM t WHERE a > 9 ORDER BY a"), "11,,3.00 12,,4.50");
  run("INSERT INTO t (b) SELECT 1 FROM t LIMIT 0");
  EXPECT_EQ(run("SELECT count(*) FROM t"), "5");
  run("INSERT INTO t (b, a) (SELECT 'w', 99)");
  EXPECT_EQ(run("SELECT * FROM t WHERE a = 99"), "99,w,");
  const struct {
    const char *text, *said;
  } wrong[] = {
      {"INSERT INTO t VALUES (1)", "q.sql:1:15: error: the query has 1 column, and 3 are wanted"},
      {"INSERT INTO t (a, A) VALUES (1, 2)", "column `A` is named twice"},
      {"INSERT INTO t (d) VALUES (1)", "q.sql:1:13: error: `t` has no column `d`"},
      {"INSERT INTO u VALUES (1)", "there is no table `u`"},
      {"INSERT INTO t SELECT * FROM x", "q.sql:1:29: error: there is no table `x`"},
      {"INSERT INTO t (a) VALUES ('x')", "x"},
      {"INSERT t VALUES (1)", "expected INTO"},
      {"INSERT INTO t DEFAULT VALUES", "expected a query or VALUES"},
      {"CREATE TABLE t AS SELECT 1 AS a", "there is a table `t` already"},
      {"CREATE TABLE u (a INT)", "types are those of the query"},
      {"CREATE TABLE u (a, b) AS SELECT 1", "2 columns are named, and the query has 1"},
      {"DROP TABLE u", "there is no table `u`"},
      {"DROP VIEW t", "there is no view `t`"},
      {"DROP SCHEMA s", "expected TABLE, VIEW or TYPE"},
      {"UPDATE t SET a = 1", "q.sql:1:1: error: `UPDATE` is not supported"},
  };
  for (const auto& [text, said] : wrong) EXPECT_THAT(run(text), HasSubstr(said)) << text;
  EXPECT_EQ(run("SELECT count(*) FROM t"), "6") << "nothing of what failed is left";
  EXPECT_EQ(run("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS z; SELECT count(a) FROM t"), "6");
  EXPECT_EQ(run("CREATE OR REPLACE TABLE t (p, q) AS SELECT 1, 2; SELECT p + q FROM t"), "3");
  EXPECT_EQ(run("DROP TABLE t; DROP TABLE IF EXISTS t; SHOW TABLES"), "");
}

// Integers of 128 bits, also where the first rows need but 64.
TEST_P(Statements, TablesHoldWideIntegers) {
  run("CREATE TABLE wide AS SELECT 1::HUGEINT m, 18446744073709551615::UBIGINT u");
  run("INSERT INTO wide VALUES (100000000000000000000, 7)");
  EXPECT_EQ(run("SELECT sum(m), max(u) FROM wide"), "100000000000000000001,18446744073709551615");
  EXPECT_EQ(run("SELECT m, u FROM wide WHERE m > 1"), "100000000000000000000,7");
  EXPECT_THAT(run("PREPARE p AS INSERT INTO wide VALUES (?)"), HasSubstr("only queries can be prepared"));
}

TEST_P(Statements, TypesOrderTheirTexts) {
  run("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); CREATE TABLE t AS SELECT * FROM (VALUES "
      "('ok'), ('happy'), ('sad'), (NULL)) AS q(m)");
  EXPECT_EQ(run("SELECT m::mood AS x FROM t ORDER BY x DESC NULLS LAST"), "happy ok sad ");
  EXPECT_EQ(run("SELECT max(m::mood), min(m::mood) FROM t WHERE m::mood < 'happy'::mood"), "ok,sad");
  EXPECT_THAT(run("SELECT 'odd'::mood FROM t"), HasSubstr("odd"));
  EXPECT_THAT(run("SELECT (m || 'x')::mood FROM t"), HasSubstr("a text is no value of the ENUM"));
  EXPECT_THAT(run("CREATE TYPE mood AS ENUM ('x')"), HasSubstr("there is a type `mood` already"));
  EXPECT_EQ(run("CREATE TYPE IF NOT EXISTS mood AS ENUM ('x'); CREATE OR REPLACE TYPE mood AS ENUM "
                "('happy', 'ok', 'sad'); SELECT max(m::mood) FROM t"),
            "sad");
  EXPECT_THAT(run("CREATE TYPE u AS ENUM ('x', 'y', 'x')"), HasSubstr("'x' stands there twice"));
  EXPECT_THAT(run("CREATE TYPE u AS ENUM (1)"), HasSubstr("expected a text in quotes"));
  EXPECT_THAT(run("DROP TYPE mood; SELECT m::mood FROM t"), HasSubstr("mood"));
  EXPECT_THAT(run("DROP TYPE mood"), HasSubstr("there is no type `mood`"));
  EXPECT_EQ(run("DROP TYPE IF EXISTS mood; SELECT count(m) FROM t"), "3");
}

TEST_P(Statements, WhatIsNotThereIsRefusedByName) {
  run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'x'), (2, 'y')) AS q(a, b)");
  const std::string samples = "samples (TABLESAMPLE, USING SAMPLE) have no translation";
  for (const char* sample : {"TABLESAMPLE 10%", "TABLESAMPLE RESERVOIR(1 ROWS)", "USING SAMPLE 1", "USING SAMPLE 50%"})
    EXPECT_THAT(run(std::string("SELECT count(*) FROM t ") + sample), HasSubstr(samples)) << sample;
  EXPECT_THAT(run("SELECT a, x FROM t, unnest(string_split(b, ',')) AS u(x)"),
              HasSubstr("UNNEST in FROM of another table's columns has no translation"));
  EXPECT_THAT(run("PIVOT t ON b USING sum(a)"), HasSubstr("PIVOT t ON k IN ('a', 'b') USING sum(v)"));
  EXPECT_THAT(run("SELECT * FROM (WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) "
                  "SELECT * FROM r) AS q"),
              HasSubstr("WITH RECURSIVE within a query has no translation"));
}

// A query without a table has a row of its own.
TEST_P(Statements, ARowWithoutATableIsLookedFor) {
  run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'x'), (2, 'y')) AS q(a, b)");
  EXPECT_EQ(run("SELECT CASE WHEN 'x' IN (SELECT b FROM t) THEN 'in' ELSE 'out' END"), "in");
  EXPECT_EQ(run("SELECT CASE WHEN 'z' IN (SELECT b FROM t) THEN 'in' ELSE 'out' END"), "out");
  EXPECT_EQ(run("SELECT 5 WHERE EXISTS (SELECT 1 FROM t WHERE a = 2)"), "5");
}

TEST_P(Statements, ViewsAreTheirQueries) {
  run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'x'), (2, 'y')) AS q(a, b)");
  run("CREATE VIEW v AS SELECT a + 1 AS c, b FROM t; CREATE VIEW w (n) AS SELECT sum(c) FROM v");
  EXPECT_EQ(run("SELECT n FROM w"), "5");
  EXPECT_EQ(run("INSERT INTO t VALUES (9, 'z'); SELECT n FROM w"), "15") << "it is asked anew";
  EXPECT_EQ(run("SELECT V.b FROM V JOIN v AS u ON u.c = V.c WHERE u.c > 5"), "z");
  EXPECT_EQ(run("DESCRIBE w"), "n,HUGEINT,");
  EXPECT_EQ(run("SHOW TABLES"), "t,2,3 v,, w,,");
  EXPECT_THAT(run("INSERT INTO v VALUES (1, 'x')"), HasSubstr("not added to views"));
  EXPECT_THAT(run("CREATE VIEW v AS SELECT 1"), HasSubstr("there is a view `v` already"));
  EXPECT_THAT(run("CREATE TABLE v AS SELECT 1"), HasSubstr("there is a view `v` already"));
  EXPECT_THAT(run("CREATE VIEW t AS SELECT 1"), HasSubstr("there is a table `t` already"));
  EXPECT_THAT(run("CREATE VIEW z AS SELECT q FROM t"),
              HasSubstr("q.sql:1:25: error: there is no column `q`"));
  EXPECT_THAT(run("CREATE VIEW z AS SELECT $1"), HasSubstr("a parameter has no value"));
  EXPECT_THAT(run("SELECT * FROM z"), HasSubstr("there is no table `z`"));
  // One cannot be of itself, directly or not, and the old one stays.
  EXPECT_THAT(run("CREATE OR REPLACE VIEW v AS SELECT n AS c FROM w"), HasSubstr("no table `v`"));
  EXPECT_EQ(run("SELECT n FROM w"), "15");
  EXPECT_EQ(run("CREATE OR REPLACE VIEW v AS SELECT 7 AS c; SELECT n FROM w"), "7");
}

// What is wrong is said where it stands: in the statement, or in the view that it names.
TEST_P(Statements, PlacesInViews) {
  run("CREATE TABLE t AS SELECT 1 AS a, 0 AS z");
  run("SELECT 1; CREATE VIEW v AS SELECT a, a // z AS q FROM t");
  const std::string told = run("SELECT sum(q) FROM v");
  EXPECT_THAT(told, HasSubstr("a // z AS q"));
  EXPECT_THAT(told, HasSubstr("q.sql:1:"));
  run("CREATE TABLE u AS SELECT 5 AS a; CREATE VIEW first AS SELECT 1 AS one; "
      "CREATE VIEW second AS SELECT a FROM u; DROP TABLE u");
  EXPECT_THAT(run("SELECT * FROM second"),
              testing::AllOf(HasSubstr("there is no table `u`"), HasSubstr("VIEW second AS")));
  EXPECT_EQ(run("SELECT * FROM first"), "1") << "others go on";
  EXPECT_THAT(run("SELECT b FROM first"), HasSubstr("q.sql:1:8: error: there is no column `b`"));
  EXPECT_EQ(run("CREATE TABLE u AS SELECT 6 AS a; SELECT * FROM second"), "6");
}

// However long a statement is, places in it are no places in a view.
TEST_P(Statements, PlacesInViewsOfLongStatements) {
  run("CREATE TABLE t AS SELECT 1 AS a, 0 AS z; CREATE VIEW v AS SELECT a, a // z AS q FROM t");
  EXPECT_THAT(run("SELECT sum(q) FROM v"), HasSubstr("a // z AS q"));
  const std::string space(1'200'000, ' ');
  EXPECT_THAT(run("SELECT sum(q)" + space + "FROM v"), HasSubstr("a // z AS q"));
  EXPECT_THAT(run("SELECT a" + space + "\n, b FROM v"),
              HasSubstr("q.sql:2:3: error: there is no column `b`"));
  EXPECT_THAT(run("SELECT a" + space + "\n, a // (a - 1) FROM v"), HasSubstr("\n  , a // (a - 1) FROM v"));
  EXPECT_THAT(run("SELECT sum(q) FROM v"), HasSubstr("a // z AS q"));
}

// A condition that can fail counts for the rows that all others keep, wherever they stand.
TEST_P(Statements, ConditionsThatFailComeLast) {
  run("CREATE TABLE t AS SELECT * FROM (VALUES (0, 5), (7, 7), (13, 9)) AS v(month, n)");
  const std::string fails = "year(make_date(2020, month, n)) = 2020", guard = "abs(month - 6) < 6";
  EXPECT_EQ(run("SELECT n FROM t WHERE " + guard + " AND " + fails), "7");
  EXPECT_EQ(run("SELECT n FROM t WHERE " + fails + " AND " + guard), "7");
  run("CREATE TABLE u AS SELECT n, n AS day FROM t");
  EXPECT_EQ(run("SELECT u.n FROM u LEFT JOIN t ON u.n = t.n AND year(make_date(2020, month, day)) = 2020 "
                "AND abs(month + day - 14) < 1 WHERE t.n IS NOT NULL"),
            "7");
  EXPECT_EQ(run("SELECT n FROM t WHERE n = 9 OR (" + fails + " AND " + guard + ")"), "7 9");
  EXPECT_THAT(run("SELECT n FROM t WHERE " + fails), HasSubstr("a date is out of range"));
  // However deep they lie.
  std::string deep = fails;
  for (int i = 0; i < 60; ++i)
    deep = "((" + deep + " AND n <> " + std::to_string(i + 10) + ") OR n = 9)";
  EXPECT_EQ(run("SELECT n FROM t WHERE " + deep + " AND " + guard), "7");
  // Two that fail: the first of the text guards the second.
  EXPECT_EQ(run("SELECT n FROM t WHERE 100 // (n - 7) < 0 IS NULL AND 1 // (n - 6) = 1"), "");
}

// A mask that selects itself, and is read for all rows in the same kernel.
TEST_P(Statements, MasksOfSelectionsStayWhatTheyAre) {
  run("CREATE TABLE q AS SELECT * FROM (VALUES ('a', DATE '2020-01-01'), ('a', NULL), (NULL, NULL), ('b', NULL)) "
      "AS v(s, d); CREATE TABLE e AS SELECT * FROM q WHERE s = 'z'");
  EXPECT_EQ(run("SELECT e.s FROM e WHERE e.d IN (SELECT q.d FROM q WHERE e.s = q.s) "
                "UNION ALL SELECT lpad(q.s, 3, '*') FROM q"),
            "**a **a  **b");
}

// Recursion is what names the table where tables stand; what would stand for all steps is refused.
TEST_P(Statements, RecursionAsDuckDbReadsIt) {
  EXPECT_EQ(run("WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT 2 AS x) SELECT * FROM x"), "1 2");
  EXPECT_EQ(run("WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 4) SELECT * FROM t"),
            "1 2 3 4");
  EXPECT_THAT(
      run("WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 4 LIMIT 1) SELECT * FROM t"),
      HasSubstr("LIMIT or OFFSET in a recursive query is not allowed"));
  EXPECT_THAT(run("WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t WHERE x < 4 EXCEPT SELECT 2) "
                  "SELECT * FROM t"),
              HasSubstr("error"));
}

// Parts of intervals, moments and series beyond 64 bits are errors, or what they are, and wrap nowhere.
TEST_P(Statements, IntervalsAndSeriesDoNotWrap) {
  run("CREATE TABLE n AS SELECT 5124095576030432 AS h, 9223372036854775807 AS m, 294247 AS y, 2000000000 AS k");
  for (const char* what : {"to_hours(h)", "to_microseconds(m) + INTERVAL 1 MICROSECOND", "epoch_us(to_months(k))"})
    EXPECT_THAT(run(std::string("SELECT ") + what + " FROM n"), HasSubstr("out of range")) << what;
  EXPECT_THAT(run("SELECT make_timestamp(y, 12, 31, 0, 0, 0.0) FROM n"), HasSubstr("a moment is out of range"));
  EXPECT_EQ(run("SELECT unnest(generate_series(-m, m, 4611686018427387904)) FROM n"),
            "-9223372036854775807 -4611686018427387903 1 4611686018427387905");
  EXPECT_EQ(run("SELECT unnest(range(m - 1, -m)) FROM n"), "");
  run("CREATE TABLE w AS SELECT TIMESTAMP '290000-01-01 (BC)' AS a, TIMESTAMP '290000-01-01' AS b");
  EXPECT_EQ(run("SELECT (b - a)::VARCHAR FROM w"), "211840284 days");
}

// What is wrong with an INSERT is told in its own words.
TEST_P(Statements, PlacesInInserts) {
  run("CREATE TABLE t AS SELECT 1::TINYINT AS a, DATE '2020-01-01' AS d");
  EXPECT_EQ(run("INSERT INTO t (a) SELECT 300"),
            "q.sql:1:1: error: a value of type INTEGER does not fit TINYINT\n"
            "  INSERT INTO t (a) SELECT 300\n"
            "  ^~~~~~~~~~~~~~~~~~~~~~~~~~~~\n");
  EXPECT_THAT(run("SELECT 1; INSERT INTO t (a)\n  VALUES (7 // 0), (301)"),
              HasSubstr("q.sql:2:11: error: division by zero\n    VALUES (7 // 0), (301)\n"));
  EXPECT_EQ(run("SELECT 1; INSERT INTO t (a)\n  VALUES (7), (301)"),
            "q.sql:1:11: error: a value of type INTEGER does not fit TINYINT\n"
            "  SELECT 1; INSERT INTO t (a)\n"
            "            ^~~~~~~~~~~~~~~~~\n");
  EXPECT_THAT(run("INSERT INTO t (d) SELECT 1"),
              HasSubstr("q.sql:1:1: error: the cast from INTEGER to DATE has no translation"));
  EXPECT_THAT(run("INSERT INTO t (a) SELECT 9223372036854775807 + x FROM (SELECT 1 AS x) AS q"),
              HasSubstr("q.sql:1:46: error: the result of + does not fit BIGINT"));
  EXPECT_THAT(run("INSERT INTO t (a) SELECT nothing"), HasSubstr("q.sql:1:26: error:"));
  EXPECT_EQ(run("SELECT count(*) FROM t"), "1");
}

TEST_P(Statements, ViewsOfFilesAndOfTheClock) {
  const fs::path folder = testing::TempDir() + "rndn_views_" + std::to_string(getpid());
  fs::create_directories(folder);
  const std::string file = (folder / "x.csv").string();
  std::ofstream(file) << "a,b\n1,2\n";
  run("CREATE VIEW v AS SELECT a + b AS s FROM read_csv('" + file + "', header = true)");
  run("CREATE VIEW r AS SELECT random() < 2 AS x, '" + file + "' AS f");
  EXPECT_EQ(run("SELECT s FROM v"), "3");
  std::ofstream(file) << "a,b\n5,6\n7,8\n";
  EXPECT_EQ(run("SELECT sum(s) FROM v"), "26") << "the file has changed";
  fs::remove_all(folder);
}

// What no statement can name is no table of SQL, and does not keep the others from being asked.
TEST_P(Statements, NamesThatNoTextHas) {
  const fs::path folder = testing::TempDir() + "rndn_names_" + std::to_string(getpid());
  fs::create_directories(folder);
  std::ofstream(folder / "t.csv") << "a,b\n1,2\n";
  std::ofstream(folder / "x\xffy.csv") << "a\n1\n";
  std::ofstream(folder / "m.csv") << "2020-01\n";
  auto source = data::open_folder(folder.string(), {.note = [](const std::string&) {}});
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_TRUE(session_->set_source(*source));
  EXPECT_EQ(run("SELECT a + b FROM t"), "3");
  EXPECT_THAT(run("SHOW TABLES"), testing::Not(HasSubstr("x")));
  const std::string said = "the name of a table is a text in UTF-8, not empty and without bytes of 0";
  for (const std::string& name : {std::string("a\0b", 3), std::string("\xff"), std::string()}) {
    const auto named = data::open_table(name, (folder / "t.csv").string(), {}, "");
    ASSERT_FALSE(named);
    EXPECT_EQ(named.error().message, said);
    EXPECT_EQ(named.error().exit_code(), 2);
  }
  // A table without a column that SQL has a type for.
  std::ofstream(folder / "schema.json")
      << R"({"tables":[{"name":"m","file":"m.csv","header":false,"columns":[{"name":"k","type":"month"}]},)"
         R"({"name":"t","file":"t.csv","header":true,"columns":[{"name":"a","type":"i64"},{"name":"b","type":"i64"}]}]})";
  source = data::open_folder(folder.string(), {.note = [](const std::string&) {}});
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_TRUE(session_->set_source(*source));
  EXPECT_EQ(run("SELECT a + b FROM t"), "3");
  EXPECT_THAT(run("SELECT * FROM m"),
              testing::AllOf(HasSubstr("there is no table `m`"),
                             HasSubstr("no column of `m` has a type that SQL has")));
  fs::remove_all(folder);
}

TEST_P(Statements, TablesOfStatementsOutliveOthersThatComeAndGo) {
  run("CREATE TABLE t AS SELECT 4 AS a; CREATE VIEW v AS SELECT a FROM t");
  auto other = open();
  other.swap(session_);
  run("CREATE TABLE s AS SELECT 5 AS b");
  const std::shared_ptr<data::Source> source = session_->source();
  other.swap(session_);
  ASSERT_TRUE(session_->set_source(source, "s"));
  EXPECT_EQ(run("SELECT a + b FROM v, s"), "9");
  ASSERT_TRUE(session_->set_source(nullptr));
  EXPECT_EQ(run("SELECT a FROM v"), "4");
  EXPECT_THAT(run("SELECT b FROM s"), HasSubstr("there is no table `s`"));
}

INSTANTIATE_TEST_SUITE_P(Devices, Statements, testing::Values("cpu", "sim"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rndn::runtime
