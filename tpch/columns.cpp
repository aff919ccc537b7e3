#include "tpch/columns.h"

#include <array>

namespace rndn::tpch {
namespace {

constexpr ColumnInfo integer() { return {.form = Form::integer}; }
constexpr ColumnInfo cents() { return {.form = Form::cents}; }
constexpr ColumnInfo date() { return {.form = Form::date}; }
constexpr ColumnInfo flag() { return {.form = Form::flag}; }
constexpr ColumnInfo phone() { return {.form = Form::phone}; }
constexpr ColumnInfo colors() { return {.form = Form::colors}; }
constexpr ColumnInfo comment() { return {.form = Form::comment}; }
constexpr ColumnInfo made() { return {.form = Form::made}; }
constexpr ColumnInfo choice(const std::span<const std::string_view>& words) {
  return {.form = Form::choice, .words = &words};
}
constexpr ColumnInfo numbered(std::string_view prefix, int digits) {
  return {.form = Form::numbered, .prefix = prefix, .digits = digits};
}
constexpr ColumnInfo named(Table table, std::string_view name, ColumnInfo info) {
  info.table = table;
  info.name = name;
  return info;
}

constexpr ColumnInfo infos[] = {
#define COLUMN(table, name, form) named(Table::table, #name, form),
#include "tpch/columns.def"
#undef COLUMN
};
constexpr size_t column_count = std::size(infos);

constexpr auto all_ids = [] {
  std::array<ColumnId, column_count> ids{};
  for (uint32_t i = 0; i < column_count; ++i) ids[i] = static_cast<ColumnId>(i);
  return ids;
}();

constexpr std::string_view table_names[] = {"region",   "nation",   "supplier", "part",
                                            "partsupp", "customer", "orders",   "lineitem"};

}  // namespace

const ColumnInfo& column_info(ColumnId id) { return infos[index(id)]; }

std::span<const ColumnId> columns_of(Table table) {
  size_t first = 0;
  while (infos[first].table != table) ++first;
  size_t last = first;
  while (last < column_count && infos[last].table == table) ++last;
  return std::span(all_ids).subspan(first, last - first);
}

std::string_view table_name(Table table) { return table_names[static_cast<size_t>(table)]; }

bool find_table(std::string_view name, Table& table) {
  for (size_t i = 0; i < std::size(table_names); ++i) {
    if (table_names[i] == name) {
      table = static_cast<Table>(i);
      return true;
    }
  }
  return false;
}

}  // namespace rndn::tpch
