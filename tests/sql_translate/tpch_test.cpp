// The 22 queries in our own words of SQL (tpch/sql), planned (plans/, by DuckDB 2.0.1 with the
// profile of runtime/planner), translated and run: the rows are those of SQLite, which reads the
// specification's wording on the same generated data.
#include <gtest/gtest.h>

#include "libraries/base/system/files.h"
#include "runtime/data/tables.h"
#include "tests/queries/answers.h"
#include "tests/sql_translate/translated.h"
#include "tpch/source.h"

namespace rndn::testing {
namespace {

class Translated : public ::testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() {
    oracle_ = std::make_unique<SqliteOracle>(scale);
    auto source = tpch::open_source(fmt::format("tpch:{}", scale));
    ASSERT_TRUE(source.ok()) << source.error().message;
    source_ = *source;
  }
  static void TearDownTestSuite() {
    oracle_.reset();
    source_.reset();
  }
  static double chosen_scale() {
    const char* text = std::getenv("RNDN_QUERY_SCALE");
    return text ? std::strtod(text, nullptr) : 0.01;
  }
  static std::string file(const char* form) {
    return fmt::format(fmt::runtime(form), RNDN_SOURCE_DIR, GetParam());
  }

  Result<sql::Translation> translation() {
    ASSIGN_OR_RETURN(const std::string json,
                     read_file(file("{}/tests/sql_translate/plans/q{:02}.json")));
    ASSIGN_OR_RETURN(const sql::Plan plan, sql::read_plan(json));
    ASSIGN_OR_RETURN(const sql::Catalog catalog, catalog_of(*source_, plan));
    return sql::translate(plan, catalog, wanted_.names);
  }
  void SetUp() override {
    const Result<std::string> text = read_file(file("{}/tests/queries/sql/q{:02}.sql"));
    ASSERT_TRUE(text.ok());
    specification_ = *text;
    wanted_ = oracle_->query(specification_);
    ASSERT_GT(wanted_.rows.size(), 0u) << "an empty answer proves little";
  }

  static inline const double scale = chosen_scale();
  static std::unique_ptr<SqliteOracle> oracle_;
  static std::shared_ptr<data::Source> source_;
  std::string specification_;
  Rows wanted_;
};
std::unique_ptr<SqliteOracle> Translated::oracle_;
std::shared_ptr<data::Source> Translated::source_;

TEST_P(Translated, AgreesWithSqliteOnTheReferenceInterpreter) {
  const Result<sql::Translation> t = translation();
  ASSERT_TRUE(t.ok()) << t.error().message;
  const Result<Rows> got = run_on_reference(*t, source_->schema(), data::SourceTables(source_));
  ASSERT_TRUE(got.ok()) << got.error().message << t->program;
  ASSERT_EQ(difference(*got, wanted_, specification_), "") << t->program;
}

TEST_P(Translated, AgreesWithSqliteOnTheSimulator) {
  if (scale > 0.01) GTEST_SKIP() << "skipped: the simulator at scale 0.01 only";
  const Result<sql::Translation> t = translation();
  ASSERT_TRUE(t.ok()) << t.error().message;
  const Result<Rows> got =
      run_on_simulator(*t, source_->schema(), data::SourceTables(source_), "sm_90");
  ASSERT_TRUE(got.ok()) << got.error().message << t->program;
  ASSERT_EQ(difference(*got, wanted_, specification_), "") << t->program;
}

INSTANTIATE_TEST_SUITE_P(Tpch, Translated, ::testing::Range(1, 23),
                         [](const auto& info) { return fmt::format("q{:02}", info.param); });

}  // namespace
}  // namespace rndn::testing
