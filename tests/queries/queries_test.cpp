// The TPC-H programs on the reference interpreter against SQLite on the same generated data: two engines that share nothing but the generator,
// one reading HorseIR, one reading SQL.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "frontend/frontend.h"
#include "libraries/base/files.h"
#include "runtime/tables.h"
#include "tests/queries/sqlite_oracle.h"
#include "tests/support/status.h"
#include "tpch/source.h"

namespace rndn::testing {
namespace {

// The elements of a result column as cells.
std::vector<Cell> cells(const reference::Value& column) {
  using hir::BasicType;
  std::vector<Cell> out;
  for (uint64_t i = 0; i < column.size; ++i) {
    switch (column.type) {
      case BasicType::f64: out.emplace_back(column.as<double>()[i]); break;
      case BasicType::f32: out.emplace_back(static_cast<double>(column.as<float>()[i])); break;
      case BasicType::i16: out.emplace_back(static_cast<int64_t>(column.as<int16_t>()[i])); break;
      case BasicType::i32: out.emplace_back(static_cast<int64_t>(column.as<int32_t>()[i])); break;
      case BasicType::i64: out.emplace_back(column.as<int64_t>()[i]); break;
      case BasicType::date: out.emplace_back(iso_date(column.as<int32_t>()[i])); break;
      case BasicType::character: out.emplace_back(std::string(1, static_cast<char>(column.as<int8_t>()[i]))); break;
      default: out.emplace_back(column.text(i));
    }
  }
  return out;
}

Rows rows_of(const reference::Value& table) {
  Rows rows;
  if (table.kind != reference::Value::table) return rows;
  rows.names = *table.names;
  std::vector<std::vector<Cell>> columns;
  for (const reference::Value& c : table.parts()) columns.push_back(cells(c));
  for (size_t r = 0; !columns.empty() && r < columns[0].size(); ++r) {
    rows.rows.emplace_back();
    for (auto& column : columns) rows.rows.back().push_back(column[r]);
  }
  return rows;
}

bool same(const Cell& a, const Cell& b) {
  if (std::holds_alternative<std::string>(a) || std::holds_alternative<std::string>(b)) return a == b;
  auto number = [](const Cell& c) {
    return std::holds_alternative<double>(c) ? std::get<double>(c) : static_cast<double>(std::get<int64_t>(c));
  };
  double x = number(a), y = number(b);
  return std::abs(x - y) <= 1e-9 * std::max(std::abs(x), std::abs(y));
}

std::string text(const std::vector<Cell>& row) {
  std::string out;
  for (const Cell& c : row) out += std::visit([](const auto& x) { return fmt::format("{}|", x); }, c);
  return out;
}

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
  static constexpr double scale = 0.01;
  static std::unique_ptr<SqliteOracle> oracle_;
  static std::shared_ptr<data::Source> source_;
};
std::unique_ptr<SqliteOracle> Queries::oracle_;
std::shared_ptr<data::Source> Queries::source_;

TEST_P(Queries, ReferenceInterpreterAgreesWithSqlite) {
  std::string path = fmt::format("{}/tpch/queries/q{:02}.hir", RNDN_SOURCE_DIR, GetParam());
  SourceManager sources;
  Result<std::string> program_text = read_file(path);
  ASSERT_TRUE(program_text.ok()) << program_text.error().message;
  FileId file = sources.add(path, *program_text);
  DiagnosticSink sink;
  Timings timings;
  hir::Options options;
  options.schema = &source_->schema();
  options.strict = true;
  hir::Program program = hir::run(file, sources, options, sink, timings);
  ASSERT_FALSE(sink.has_errors()) << render(sink, sources);
  EXPECT_TRUE(sink.diagnostics().empty()) << render(sink, sources);

  runtime::SourceTables tables(source_);
  Result<std::vector<reference::Value>> results = reference::run(program, tables, sources, nullptr);
  ASSERT_TRUE(results.ok()) << results.error().message;
  ASSERT_EQ(results->size(), 1u);
  Rows got = rows_of((*results)[0]);

  Result<std::string> sql = read_file(fmt::format("{}/tests/queries/sql/q{:02}.sql", RNDN_SOURCE_DIR, GetParam()));
  ASSERT_TRUE(sql.ok());
  Rows wanted = oracle_->query(*sql);
  ASSERT_GT(wanted.rows.size(), 0u) << "an empty answer proves little";
  EXPECT_EQ(got.names, wanted.names);
  ASSERT_EQ(got.rows.size(), wanted.rows.size());
  for (size_t r = 0; r < wanted.rows.size(); ++r) {
    bool equal = got.rows[r].size() == wanted.rows[r].size();
    for (size_t c = 0; equal && c < wanted.rows[r].size(); ++c) equal = same(got.rows[r][c], wanted.rows[r][c]);
    ASSERT_TRUE(equal) << "row " << r << ": got " << text(got.rows[r]) << ", SQLite says " << text(wanted.rows[r]);
  }
  record_status("query", fmt::format("q{:02}", GetParam()), "any", "cpu");
}

INSTANTIATE_TEST_SUITE_P(Tpch, Queries, ::testing::Range(1, 23),
                         [](const auto& info) { return fmt::format("q{:02}", info.param); });

}  // namespace
}  // namespace rndn::testing
