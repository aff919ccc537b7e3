#include "runtime/planner/shadow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/planner/database.h"

namespace rndn::planner {
namespace {

// Values of a type, made from x, a whole number in a column's stored scale: days, microseconds,
// 10^-scale.
struct Shape {
  sql::TypeId type;
  uint64_t most;       // distinct values that fit in any case
  const char* values;  // {0}: x, {1}: the type's name, {2}: 10^scale
  // What x may be. Statistics of a file that is damaged may go beyond it.
  int64_t least = INT64_MIN, greatest = INT64_MAX;
};
constexpr uint64_t any = UINT64_MAX;
constexpr uint64_t day = 86400000000;  // microseconds
// Dates of the planner reach from 5,877,641 before to 5,881,580 after Christ, timestamps from
// 290,308 to 294,246.
constexpr int64_t most_days = 2'140'000'000, most_microseconds = 9'200'000'000'000'000'000;
constexpr Shape shapes[] = {
    {sql::TypeId::boolean, 2, "{0} % 2 = 1"},
    {sql::TypeId::tinyint, 127, "CAST({0} AS {1})", INT8_MIN, INT8_MAX},
    {sql::TypeId::smallint, 32767, "CAST({0} AS {1})", INT16_MIN, INT16_MAX},
    {sql::TypeId::integer, any, "CAST({0} AS {1})", INT32_MIN, INT32_MAX},
    {sql::TypeId::bigint, any, "CAST({0} AS {1})"},
    {sql::TypeId::utinyint, 255, "CAST({0} AS {1})", 0, UINT8_MAX},
    {sql::TypeId::usmallint, 65535, "CAST({0} AS {1})", 0, UINT16_MAX},
    {sql::TypeId::uinteger, any, "CAST({0} AS {1})", 0, UINT32_MAX},
    {sql::TypeId::ubigint, any, "CAST({0} AS {1})", 0, INT64_MAX},
    {sql::TypeId::real, any, "CAST({0} AS {1})"},
    {sql::TypeId::double_, any, "CAST({0} AS {1})"},
    {sql::TypeId::decimal, any, "CAST(CAST({0} AS DOUBLE) / {2} AS {1})"},
    {sql::TypeId::hugeint, any, "CAST({0} AS {1})"},
    {sql::TypeId::varchar, any, "'v' || {0}"},
    {sql::TypeId::date, any, "DATE '1970-01-01' + CAST({0} AS INTEGER)", -most_days, most_days},
    {sql::TypeId::time, day, "CAST(make_timestamp(CAST({0} AS BIGINT)) AS TIME)", 0, day - 1},
    {sql::TypeId::timestamp, any, "make_timestamp(CAST({0} AS BIGINT))", -most_microseconds,
     most_microseconds},
    {sql::TypeId::timestamptz, any, "CAST(make_timestamp(CAST({0} AS BIGINT)) AS {1})",
     -most_microseconds, most_microseconds},
    {sql::TypeId::interval, any, "to_microseconds(CAST({0} AS BIGINT))"},
};
#define SQL_TYPE(id, name, horseir) +1
static_assert(std::size(shapes) == 0
#include "frontend/sql/types.def"
);
#undef SQL_TYPE

// An expression over the row number # for a column of a table with `rows` rows: `distinct` values,
// evenly apart from the least to the greatest where these are known; empty for a column of which
// nothing is.
std::string column_expression(const sql::Column& column, uint64_t rows, double factor) {
  if (!column.distinct) return "";
  const auto shape = std::find_if(std::begin(shapes), std::end(shapes),
                                  [&](const Shape& s) { return s.type == column.type.id; });
  const double unit =
      std::pow(10.0, column.type.id == sql::TypeId::decimal ? column.type.scale : 0);
  uint64_t distinct = std::min(scaled(column.distinct, factor), rows);
  distinct = std::min(distinct, shape->most);
  if (column.type.id == sql::TypeId::decimal && column.type.width < 5)
    distinct = std::min(distinct, static_cast<uint64_t>(std::pow(10.0, column.type.width)) - 1);
  distinct = std::max<uint64_t>(distinct, 1);
  std::string x = fmt::format("(# % {})", distinct);
  if (column.float_min && column.float_max &&
      std::isfinite(*column.float_max - *column.float_min)) {
    x = fmt::format("({:e} + {} * {:e})", *column.float_min, x,
                    (*column.float_max - *column.float_min) / distinct);
  } else if (column.min && column.max && column.type.id != sql::TypeId::boolean) {
    int64_t least = shape->least, greatest = shape->greatest;
    if (column.type.id == sql::TypeId::decimal && column.type.width <= 18) {
      // By so much less that it does not become one digit more on its way through a double.
      const double beyond = std::pow(10.0, column.type.width);
      greatest = static_cast<int64_t>(beyond) - 1 - static_cast<int64_t>(beyond * 1e-15);
      least = -greatest;
    }
    least = std::clamp(*column.min, least, greatest);
    greatest = std::clamp(*column.max, least, greatest);
    const uint64_t span = static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least);
    // 64 bits where neither the product nor the sum overflows: 128 take ten times as long.
    const bool is_wide = span > UINT64_MAX / 4 / shadow_rows;
    if (span)
      x = fmt::format(fmt::runtime(is_wide
                                       ? "(CAST({} AS HUGEINT) + CAST({} AS HUGEINT) * {} // {})"
                                       : "({} + {} * {} // {})"),
                      least, x, span, std::max<uint64_t>(distinct - 1, 1));
  }
  return fmt::format(fmt::runtime(shape->values), x, sql::type_name(column.type), unit);
}

std::string with_row_number(std::string values, std::string_view number) {
  if (values.empty()) return "NULL";
  return values.replace(values.find('#'), 1, number);
}

}  // namespace

double shadow_factor(const sql::Catalog& catalog) {
  uint64_t largest = 0;
  for (const sql::Table& table : catalog.tables) largest = std::max(largest, table.rows);
  return largest <= shadow_rows ? 1
                                : static_cast<double>(shadow_rows) / static_cast<double>(largest);
}

uint64_t scaled(uint64_t count, double factor) {
  if (count <= shadow_floor) return count;
  return std::max(shadow_floor,
                  static_cast<uint64_t>(std::llround(static_cast<double>(count) * factor)));
}

bool Shadow::has_columns_of(const Shadow& other) const {
  return std::equal(columns.begin(), columns.end(), other.columns.begin(), other.columns.end(),
                    [](const Column& a, const Column& b) { return a.name == b.name && a.type == b.type; });
}

Shadow shadow_of(const sql::Table& table, double factor) {
  Shadow shadow{.columns = {}, .rows = scaled(table.rows, factor)};
  for (const sql::Column& column : table.columns)
    // The planner folds what cannot be null: one is, where some may be.
    shadow.columns.push_back({.name = quote_name(column.name),
                              .type = sql::type_name(column.type),
                              .values = column_expression(column, shadow.rows, factor),
                              .ends_null = column.has_nulls});
  return shadow;
}

std::string statements_of(const std::string& table, const Shadow& shadow) {
  std::string columns, values;
  for (const Shadow::Column& c : shadow.columns) {
    const char* comma = columns.empty() ? "" : ", ";
    columns += fmt::format("{}{} {}", comma, c.name, c.type);
    const std::string value = with_row_number(c.values, "i");
    values += comma + (c.ends_null ? fmt::format("CASE WHEN i + 1 < {} THEN {} END", shadow.rows, value)
                                   : value);
  }
  const std::string name = quote_name(table);
  std::string text = fmt::format("CREATE OR REPLACE TABLE {} ({});\n", name, columns);
  if (shadow.rows)
    text += fmt::format("INSERT INTO {} SELECT {} FROM range({}) r(i);\n", name, values, shadow.rows);
  return text;
}

std::string statements_of(const std::string& table, const Shadow& shadow, const Shadow& made) {
  constexpr size_t part = 3;  // a column alone costs as much as 3 in a table
  if (!shadow.has_columns_of(made) || shadow.rows != made.rows) return statements_of(table, shadow);
  std::string text;
  size_t changed = 0;
  for (size_t c = 0; c < shadow.columns.size(); ++c) {
    const Shadow::Column& column = shadow.columns[c];
    if (column == made.columns[c]) continue;
    if (column.ends_null || ++changed * part > shadow.columns.size())
      return statements_of(table, shadow);
    text += fmt::format(
        "CREATE OR REPLACE SEQUENCE rndn_row MINVALUE 0 START 0;\n"
        "ALTER TABLE {} ALTER COLUMN {} SET DATA TYPE {} USING {};\n",
        quote_name(table), column.name, column.type,
        with_row_number(column.values, "nextval('rndn_row')"));
  }
  return text;
}

}  // namespace rndn::planner
