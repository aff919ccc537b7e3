// The programs of TPC-H and SSB on the reference interpreter against SQLite on the same generated data: two engines that share nothing but the
// generator, one reading HorseIR, one reading SQL.
#include <gtest/gtest.h>

#include "libraries/base/system/files.h"
#include "runtime/data/tables.h"
#include "ssb/source.h"
#include "tests/queries/answers.h"
#include "tests/support/status.h"
#include "tpch/source.h"

namespace rndn::testing {
namespace {

struct Program {
  std::string item;           // of the status
  std::string program, text;  // files
  bool may_be_empty = false;
};
void PrintTo(const Program& program, std::ostream* out) { *out << program.item; }

// A benchmark's tables, and SQLite's copy of them.
class Oracle {
 public:
  // 0.01, or what RNDN_QUERY_SCALE says: CTest runs 0.1 under the label `slow`.
  static double scale() {
    const char* text = std::getenv("RNDN_QUERY_SCALE");
    return text ? std::strtod(text, nullptr) : 0.01;
  }
  Oracle(const data::Scheme& scheme, double scale, const std::vector<std::string>& indexes) {
    auto source =
        data::open_source({.data = fmt::format("{}:{}", scheme.name, scale)}, {&scheme, 1}, {.progress = false});
    EXPECT_TRUE(source.ok()) << source.error().message;
    source_ = *source;
    sqlite_ =
        indexes.empty() ? std::make_unique<SqliteOracle>(scale) : std::make_unique<SqliteOracle>(*source_, indexes);
  }
  // With `tables` the program reads those of another source, which are the same.
  void check(const Program& program, std::shared_ptr<data::Source> tables = nullptr) {
    if (!tables) tables = source_;
    Result<std::string> text = read_file(RNDN_SOURCE_DIR "/" + program.program),
                        sql = read_file(RNDN_SOURCE_DIR "/" + program.text);
    ASSERT_TRUE(text.ok() && sql.ok()) << program.program;
    Result<Rows> got = run_program(*text, tables->schema(), data::SourceTables(tables));
    ASSERT_TRUE(got.ok()) << got.error().message;
    Rows wanted = sqlite_->query(*sql);
    if (!program.may_be_empty) {
      ASSERT_GT(wanted.rows.size(), 0u) << "an empty answer proves little";
    }
    ASSERT_EQ(difference(*got, wanted, *sql), "");
    record_status("query", program.item, scale() == 0.01 ? "any" : fmt::format("scale {}", scale()), "cpu");
  }

 private:
  std::shared_ptr<data::Source> source_;
  std::unique_ptr<SqliteOracle> sqlite_;
};

class TpchQueries : public ::testing::TestWithParam<Program> {
 protected:
  static void SetUpTestSuite() {
    oracle_ = std::make_unique<Oracle>(tpch::scheme, Oracle::scale(), std::vector<std::string>{});
  }
  static void TearDownTestSuite() { oracle_.reset(); }
  static inline std::unique_ptr<Oracle> oracle_;
};

// SSB's dimensions are small: at 0.02 all queries but two have rows.
class SsbQueries : public ::testing::TestWithParam<Program> {
 protected:
  static void SetUpTestSuite() {
    const double scale = 2 * Oracle::scale();
    oracle_ = std::make_unique<Oracle>(
        ssb::scheme, scale,
        std::vector<std::string>{"customer(c_custkey)", "supplier(s_suppkey)", "part(p_partkey)", "date(d_datekey)"});
    auto joins =
        data::open_source({.data = fmt::format("ssb-joins:{}", scale)}, {&ssb::joins_scheme, 1}, {.progress = false});
    ASSERT_TRUE(joins.ok()) << joins.error().message;
    joins_ = *joins;
  }
  static void TearDownTestSuite() { oracle_.reset(), joins_.reset(); }
  static inline std::unique_ptr<Oracle> oracle_;
  static inline std::shared_ptr<data::Source> joins_;
};

TEST_P(TpchQueries, ReferenceInterpreterAgreesWithSqlite) { oracle_->check(GetParam()); }

TEST_P(SsbQueries, ReferenceInterpreterAgreesWithSqlite) {
  oracle_->check(GetParam(), GetParam().item.ends_with("joins") ? joins_ : nullptr);
}

std::vector<Program> tpch_programs() {
  std::vector<Program> all;
  for (int q = 1; q <= 22; ++q)
    all.push_back({fmt::format("q{:02}", q), fmt::format("tpch/queries/q{:02}.hir", q),
                   fmt::format("tests/queries/sql/q{:02}.sql", q)});
  return all;
}
std::vector<Program> ssb_programs() {
  std::vector<Program> all;
  for (const char* form : {"keys", "joins"})
    for (const char* q : {"1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "3.1", "3.2", "3.3", "3.4", "4.1", "4.2", "4.3"})
      all.push_back({fmt::format("ssb q{} {}", q, form), fmt::format("ssb/queries/{}/q{}.hir", form, q),
                     fmt::format("ssb/sql/q{}.sql", q), std::string_view("3.3 3.4").find(q) != std::string_view::npos});
  return all;
}
std::string case_name(const ::testing::TestParamInfo<Program>& info) {
  std::string name = info.param.item.substr(info.param.item.find('q'));
  for (char& c : name)
    if (c == '.' || c == ' ') c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Tpch, TpchQueries, ::testing::ValuesIn(tpch_programs()), case_name);
INSTANTIATE_TEST_SUITE_P(Ssb, SsbQueries, ::testing::ValuesIn(ssb_programs()), case_name);

}  // namespace
}  // namespace rndn::testing
