#include "runtime/print_sql.h"

#include <algorithm>

#include "runtime/text/text_functions.h"

namespace rndn::runtime {
namespace {

using data::Value;

// value * 10^-scale.
std::string decimal_text(__int128 value, unsigned scale) {
  const auto bits = static_cast<unsigned __int128>(value);
  std::string digits = fmt::format("{}", value < 0 ? 0 - bits : bits);
  if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
  if (scale) digits.insert(digits.size() - scale, ".");
  return (value < 0 ? "-" : "") + digits;
}

}  // namespace

std::string sql_text(sql::Type type, const Value& values, uint64_t i) {
  switch (type.id) {
    case sql::TypeId::boolean: return values.as<uint8_t>()[i] ? "true" : "false";
    case sql::TypeId::decimal:
      return decimal_text(
          hir::is_wide(values.type) ? values.as<__int128>()[i] : integer_at(values, i), type.scale);
    case sql::TypeId::date: return text::date_text(integer_at(values, i));
    case sql::TypeId::time: return text::time_text(integer_at(values, i));
    case sql::TypeId::timestamp: return text::timestamp_text(integer_at(values, i));
    case sql::TypeId::timestamptz: {
      const std::string text = text::timestamp_text(integer_at(values, i));
      return text.ends_with("infinity") ? text : text + "+00";
    }
    case sql::TypeId::interval: return text::interval_text(values.as<__int128>()[i]);
    default: return element_text(values, i, true);
  }
}

Result<Grid> sql_grid(const Value& table, std::span<const sql::ResultColumn> columns) {
  ASSIGN_OR_RETURN(Grid all, to_grid(table));
  Grid grid;
  grid.rows = all.rows;
  for (const sql::ResultColumn& column : columns) {
    if (std::max(column.values, column.valid.value_or(0)) >= all.columns.size())
      return Error{Fault::internal,
                   fmt::format("the program of a query has no column for `{}`", column.name)};
    grid.names.push_back(column.name);
    grid.types.push_back(sql::type_name(column.type));
    grid.columns.push_back(all.columns[column.values]);
    SqlCells cells{.type = column.type, .valid = {}};
    if (column.valid) cells.valid = all.columns[*column.valid];
    grid.sql.emplace_back(std::move(cells));
  }
  return grid;
}

}  // namespace rndn::runtime
