// Statements of our own, as DuckDB plans and answers them (record.py writes the .json files): the
// translated plans give the same rows on the reference interpreter and, without fallback, on the
// simulator. Those of statements.sql are over TPC-H, where NULLIF, outer joins and aggregates of
// nothing make nulls; those of overflow.sql over numbers at the ends of their types: where DuckDB
// raises an error, so do we; the others over the tables of nulls/, whose columns hold some.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "libraries/base/system/files.h"
#include "runtime/data/tables.h"
#include "tests/queries/answers.h"
#include "tests/sql_translate/translated.h"
#include "tests/support/status.h"
#include "tpch/source.h"

namespace rndn::testing::statements_test {
namespace {

using Json = nlohmann::json;

const Cell null_cell("a null");

std::vector<std::vector<Cell>> rows_of(const Json& json) {
  std::vector<std::vector<Cell>> rows;
  for (const Json& row : json) {
    rows.emplace_back();
    for (const Json& cell : row) {
      if (cell.is_null())
        rows.back().push_back(null_cell);
      else if (cell.is_string())
        rows.back().emplace_back(cell.get<std::string>());
      else if (cell.is_number_integer())
        rows.back().emplace_back(cell.get<int64_t>());
      else
        rows.back().emplace_back(cell.get<double>());
    }
  }
  return rows;
}

std::string first_difference(std::vector<std::vector<Cell>> got,
                             std::vector<std::vector<Cell>> wanted, bool ordered) {
  if (got.size() != wanted.size())
    return fmt::format("{} rows, expected {}", got.size(), wanted.size());
  if (!ordered)
    for (auto* rows : {&got, &wanted})
      std::sort(rows->begin(), rows->end(),
                [](const auto& a, const auto& b) { return text(a) < text(b); });
  for (size_t r = 0; r < got.size(); ++r) {
    const bool alike = got[r].size() == wanted[r].size() &&
                       std::equal(got[r].begin(), got[r].end(), wanted[r].begin(),
                                  [](const Cell& a, const Cell& b) { return same(a, b); });
    if (!alike) return fmt::format("row {} is {}, expected {}", r, text(got[r]), text(wanted[r]));
  }
  return {};
}

struct Suite {
  const char* name;
  size_t least;  // statements
  Result<std::shared_ptr<data::Source>> (*open)();
};

Result<std::shared_ptr<data::Source>> with_nulls() {
  return data::open_folder(RNDN_SOURCE_DIR "/tests/sql_translate/nulls");
}

const Suite suites[] = {
    {"statements", 80, [] { return tpch::open_source("tpch:0.01"); }},
    {"nulls", 60, with_nulls},
    {"windows", 40, with_nulls},
    {"sets", 65, with_nulls},
    {"overflow", 60, [] { return data::open_folder(RNDN_SOURCE_DIR "/tests/sql_translate/overflow"); }},
};

class Statements : public ::testing::TestWithParam<Suite> {
 protected:
  void SetUp() override {
    const Suite& suite = GetParam();
    const Result<std::string> file =
        read_file(fmt::format(RNDN_SOURCE_DIR "/tests/sql_translate/{}.json", suite.name));
    ASSERT_TRUE(file.ok());
    statements_ = Json::parse(*file);
    ASSERT_GT(statements_.size(), suite.least);
    auto source = suite.open();
    ASSERT_TRUE(source.ok()) << source.error().message;
    source_ = *source;
  }

  template <class Run>
  void all(Run run) {
    for (const Json& statement : statements_) {
      const auto sql = statement["sql"].get<std::string>();
      SCOPED_TRACE(sql);
      const Result<sql::Plan> plan = sql::read_plan(statement["plan"].dump());
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      const Result<sql::Catalog> catalog = catalog_of(*source_, *plan);
      ASSERT_TRUE(catalog.ok()) << catalog.error().message;
      const Result<sql::Translation> t = sql::translate(*plan, *catalog);
      ASSERT_TRUE(t.ok()) << t.error().message;
      const Result<Rows> got = run(*t);
      if (statement.contains("error")) {
        EXPECT_FALSE(got.ok()) << "DuckDB: " << statement["error"] << t->program;
        if (!got.ok()) {
          EXPECT_NE(got.error().subject, "") << got.error().message;
        }
        continue;
      }
      ASSERT_TRUE(got.ok()) << got.error().message << t->program;
      EXPECT_EQ(
          first_difference(got->rows, rows_of(statement["rows"]), sql.find("order by") != sql.npos),
          "")
          << t->program;
    }
  }

  Json statements_;
  std::shared_ptr<data::Source> source_;
};

INSTANTIATE_TEST_SUITE_P(Own, Statements, ::testing::ValuesIn(suites),
                         [](const auto& suite) { return std::string(suite.param.name); });

TEST_P(Statements, AnswerAsDuckDbOnTheReferenceInterpreter) {
  all([this](const sql::Translation& t) {
    return run_on_reference(t, source_->schema(), data::SourceTables(source_), null_cell);
  });
}

TEST_P(Statements, AnswerAsDuckDbOnTheSimulator) {
  all([this](const sql::Translation& t) {
    return run_on_simulator(t, source_->schema(), data::SourceTables(source_), "sm_86", null_cell);
  });
  if (!HasFailure())
    record_status("count", fmt::format("SQL statements that answer as DuckDB, {}", GetParam().name),
                  "sm_86", fmt::format("{}", statements_.size()));
}

}  // namespace
}  // namespace rndn::testing::statements_test
