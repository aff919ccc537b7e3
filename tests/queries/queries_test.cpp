// The TPC-H programs on the reference interpreter against SQLite on the same generated data: two engines that share nothing but the generator,
// one reading HorseIR, one reading SQL.
#include <gtest/gtest.h>

#include "libraries/base/system/files.h"
#include "runtime/data/tables.h"
#include "tests/queries/answers.h"
#include "tests/support/status.h"
#include "tpch/source.h"

namespace rndn::testing {
namespace {

class Queries : public ::testing::TestWithParam<int> {
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
  // 0.01, or what RNDN_QUERY_SCALE says: CTest runs 0.1 under the label `slow`.
  static double chosen_scale() {
    const char* text = std::getenv("RNDN_QUERY_SCALE");
    return text ? std::strtod(text, nullptr) : 0.01;
  }
  static inline const double scale = chosen_scale();
  static std::unique_ptr<SqliteOracle> oracle_;
  static std::shared_ptr<data::Source> source_;
};
std::unique_ptr<SqliteOracle> Queries::oracle_;
std::shared_ptr<data::Source> Queries::source_;

TEST_P(Queries, ReferenceInterpreterAgreesWithSqlite) {
  std::string path = fmt::format("{}/tpch/queries/q{:02}.hir", RNDN_SOURCE_DIR, GetParam());
  Result<std::string> program_text = read_file(path);
  ASSERT_TRUE(program_text.ok()) << program_text.error().message;
  Result<Rows> got = run_program(*program_text, source_->schema(), data::SourceTables(source_));
  ASSERT_TRUE(got.ok()) << got.error().message;
  Result<std::string> sql = read_file(fmt::format("{}/tests/queries/sql/q{:02}.sql", RNDN_SOURCE_DIR, GetParam()));
  ASSERT_TRUE(sql.ok());
  Rows wanted = oracle_->query(*sql);
  ASSERT_GT(wanted.rows.size(), 0u) << "an empty answer proves little";
  ASSERT_EQ(difference(*got, wanted, *sql), "");
  record_status("query", fmt::format("q{:02}", GetParam()), scale == 0.01 ? "any" : fmt::format("scale {}", scale),
                "cpu");
}

INSTANTIATE_TEST_SUITE_P(Tpch, Queries, ::testing::Range(1, 23),
                         [](const auto& info) { return fmt::format("q{:02}", info.param); });

}  // namespace
}  // namespace rndn::testing
