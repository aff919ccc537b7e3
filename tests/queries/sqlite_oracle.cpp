#include "tests/queries/sqlite_oracle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <ctime>

#include "runtime/data/schema.h"
#include "tpch/source.h"

namespace rndn::testing {

std::string iso_date(int64_t days) {
  time_t seconds = days * 86400;
  struct tm parts {};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

namespace {

void execute(sqlite3* database, const std::string& sql) {
  char* message = nullptr;
  int code = sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &message);
  ASSERT_EQ(code, SQLITE_OK) << sql << ": " << (message ? message : "");
}

void bind(sqlite3_stmt* statement, int at, const data::Column& column, uint64_t row) {
  using hir::BasicType;
  switch (column.type) {
    case BasicType::f64: sqlite3_bind_double(statement, at, column.as<double>()[row]); break;
    case BasicType::boolean: sqlite3_bind_int(statement, at, column.as<uint8_t>()[row]); break;
    case BasicType::i32: sqlite3_bind_int(statement, at, column.as<int32_t>()[row]); break;
    case BasicType::i64: sqlite3_bind_int64(statement, at, column.as<int64_t>()[row]); break;
    case BasicType::character: sqlite3_bind_text(statement, at, column.as<char>() + row, 1, SQLITE_TRANSIENT); break;
    case BasicType::date:
      sqlite3_bind_text(statement, at, iso_date(column.as<int32_t>()[row]).c_str(), -1, SQLITE_TRANSIENT);
      break;
    default: {
      ASSERT_TRUE(hir::is_text(column.type)) << hir::basic_type_name(column.type);
      std::string_view text = column.text_at(row);
      sqlite3_bind_text(statement, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    }
  }
}

}  // namespace

SqliteOracle::SqliteOracle(double scale) { load_tpch(scale); }

void SqliteOracle::load_tpch(double scale) {
  auto source = tpch::open_source(fmt::format("tpch:{}", scale), {.progress = false});
  ASSERT_TRUE(source.ok()) << source.error().message;
  load(**source, {"lineitem(l_orderkey)", "lineitem(l_partkey, l_suppkey)", "orders(o_orderkey)", "orders(o_custkey)",
                  "customer(c_custkey)", "part(p_partkey)", "partsupp(ps_partkey, ps_suppkey)", "supplier(s_suppkey)",
                  "nation(n_nationkey)", "region(r_regionkey)"});
}

SqliteOracle::SqliteOracle(data::Source& source, const std::vector<std::string>& indexes) { load(source, indexes); }

void SqliteOracle::load(data::Source& source, const std::vector<std::string>& indexes) {
  sqlite3_open(":memory:", &database_);
  execute(database_, "PRAGMA case_sensitive_like = ON");
  for (const data::TableSchema& table : source.schema().tables) {
    std::string names, marks;
    std::vector<std::string> columns;
    for (const data::ColumnSchema& c : table.columns) {
      names += (names.empty() ? "" : ", ") + c.name;
      marks += marks.empty() ? "?" : ", ?";
      columns.push_back(c.name);
    }
    execute(database_, fmt::format("CREATE TABLE {} ({})", table.name, names));
    auto data = source.columns(table.name, columns);
    ASSERT_TRUE(data.ok()) << data.error().message;
    sqlite3_stmt* insert = nullptr;
    sqlite3_prepare_v2(database_, fmt::format("INSERT INTO {} VALUES ({})", table.name, marks).c_str(), -1, &insert,
                       nullptr);
    execute(database_, "BEGIN");
    for (uint64_t row = 0; row < (*data)[0]->rows; ++row) {
      for (size_t c = 0; c < data->size(); ++c) bind(insert, static_cast<int>(c) + 1, *(*data)[c], row);
      ASSERT_EQ(sqlite3_step(insert), SQLITE_DONE);
      sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    execute(database_, "COMMIT");
  }
  for (const std::string& index : indexes)
    execute(database_, fmt::format("CREATE INDEX i{} ON {}", std::hash<std::string>()(index), index));
  execute(database_, "ANALYZE");
}

SqliteOracle::~SqliteOracle() { sqlite3_close(database_); }

Rows SqliteOracle::query(const std::string& sql) {
  Rows result;
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr);
  EXPECT_EQ(code, SQLITE_OK) << sqlite3_errmsg(database_);
  if (code != SQLITE_OK) return result;
  int columns = sqlite3_column_count(statement);
  for (int c = 0; c < columns; ++c) result.names.push_back(sqlite3_column_name(statement, c));
  while (sqlite3_step(statement) == SQLITE_ROW) {
    std::vector<Cell> row;
    for (int c = 0; c < columns; ++c) {
      switch (sqlite3_column_type(statement, c)) {
        case SQLITE_INTEGER: row.emplace_back(static_cast<int64_t>(sqlite3_column_int64(statement, c))); break;
        case SQLITE_FLOAT: row.emplace_back(sqlite3_column_double(statement, c)); break;
        case SQLITE_NULL: row.emplace_back(0.0); break;  // a sum over no rows; HorseIR has no null
        default: row.emplace_back(std::string(reinterpret_cast<const char*>(sqlite3_column_text(statement, c))));
      }
    }
    result.rows.push_back(std::move(row));
  }
  sqlite3_finalize(statement);
  return result;
}

}  // namespace rndn::testing
