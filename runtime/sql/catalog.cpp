#include "runtime/sql/catalog.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "libraries/base/report/utf8.h"

namespace rndn::runtime {
namespace {

using hir::BasicType;

// What SQL makes of a HorseIR type: the type, and the integer in SQL's scale that a stored 1 stands
// for.
struct Row {
  BasicType stored;
  sql::TypeId type;
  int64_t unit = 1;
};
constexpr Row rows[] = {
    {BasicType::boolean, sql::TypeId::boolean},
    {BasicType::character, sql::TypeId::varchar},
    {BasicType::i8, sql::TypeId::tinyint},
    {BasicType::i16, sql::TypeId::smallint},
    {BasicType::i32, sql::TypeId::integer},
    {BasicType::i64, sql::TypeId::bigint},
    {BasicType::i128, sql::TypeId::hugeint},
    {BasicType::f32, sql::TypeId::real},
    {BasicType::f64, sql::TypeId::double_},
    {BasicType::sym, sql::TypeId::varchar},
    {BasicType::str, sql::TypeId::varchar},
    {BasicType::date, sql::TypeId::date},
    {BasicType::minute, sql::TypeId::time, 1'000'000},  // seconds, milliseconds to microseconds
    {BasicType::second, sql::TypeId::time, 1'000'000},
    {BasicType::time, sql::TypeId::time, 1'000},
    {BasicType::dt, sql::TypeId::timestamp, 1'000},
};

// What it makes of integers that stand for something else.
struct MeaningRow {
  data::Meaning meaning;
  sql::TypeId type;
};
constexpr MeaningRow meanings[] = {
    {data::Meaning::u8, sql::TypeId::utinyint},
    {data::Meaning::u16, sql::TypeId::usmallint},
    {data::Meaning::u32, sql::TypeId::uinteger},
    {data::Meaning::u64, sql::TypeId::ubigint},
    {data::Meaning::hugeint, sql::TypeId::hugeint},
    {data::Meaning::time, sql::TypeId::time},
    {data::Meaning::timestamp, sql::TypeId::timestamp},
    {data::Meaning::timestamp_utc, sql::TypeId::timestamptz},
};

const Row* row_of(BasicType type) {
  auto it = std::find_if(std::begin(rows), std::end(rows),
                         [&](const Row& row) { return row.stored == type; });
  return it == std::end(rows) ? nullptr : it;
}

void take_statistics(sql::Column& column, const data::Column& data,
                     std::optional<uint64_t> referenced) {
  const data::Statistics& s = data.statistics;
  column.has_nulls = data.has_nulls();
  column.distinct = data.rows;
  auto at_most = [&](uint64_t count) { column.distinct = std::min(column.distinct, count); };
  if (referenced) at_most(*referenced);
  if (data.encoding == data::Encoding::dictionary) {
    at_most(data.dictionary->values.size());
    column.unique = !column.has_nulls && data.dictionary->values.size() == data.rows;
    return;  // codes have no order
  }
  if (s.wide_known) {
    column.wide_min = s.wide_min;
    column.wide_max = s.wide_max;
  }
  if (!s.known) return;
  column.ascending = s.sorted;
  column.unique = !column.has_nulls && (s.unique || s.dense);
  if (hir::is_float(data.type)) {
    column.float_min = s.float_min;
    column.float_max = s.float_max;
    if (column.type.id != sql::TypeId::decimal) return;
    const double unit = std::pow(10.0, column.type.scale);
    column.min = std::llround(s.float_min * unit);
    column.max = std::llround(s.float_max * unit);
    at_most(static_cast<uint64_t>(*column.max - *column.min) + 1);
    return;
  }
  if (const uint64_t range = static_cast<uint64_t>(s.max) - static_cast<uint64_t>(s.min);
      range < data.rows)
    at_most(range + 1);
  if (data.type == BasicType::character) return;  // a text in SQL
  int64_t least, greatest;
  if (__builtin_mul_overflow(s.min, sql_unit(data.type), &least)) return;
  if (__builtin_mul_overflow(s.max, sql_unit(data.type), &greatest)) return;
  column.min = least;
  column.max = greatest;
}

}  // namespace

int64_t sql_unit(BasicType stored) {
  const Row* row = row_of(stored);
  return row ? row->unit : 1;
}

SqlCatalog::SqlCatalog(std::shared_ptr<data::Source> source) : source_(std::move(source)) {
  if (source_)
    for (const data::TableSchema& table : source_->schema().tables) add(table);
}

void SqlCatalog::set_source(std::shared_ptr<data::Source> source, std::string_view renewed) {
  source_ = std::move(source);
  std::erase_if(catalog_.tables, [&](const sql::Table& table) {
    if (table.name != renewed && source_ && source_->schema().find(table.name)) return false;
    known_.erase(table.name);
    return true;
  });
  if (source_)
    for (const data::TableSchema& table : source_->schema().tables)
      if (!catalog_.find(table.name)) add(table);
}

// What no statement can name is not there.
void SqlCatalog::add(const data::TableSchema& from) {
  if (!is_speakable(from.name)) return;
  sql::Table table{.name = from.name,
                   .rows = source_->rows_at_hand(from.name).value_or(0),
                   .primary = from.primary};
  for (const data::TableSchema::Refused& c : from.refused) table.refused.push_back({c.name, c.type});
  for (const data::ColumnSchema& c : from.columns) {
    if (!is_speakable(c.name)) continue;
    const Row* row = row_of(c.type);
    if (!row) {
      table.refused.push_back({c.name, std::string(hir::basic_type_name(c.type))});
      continue;
    }
    sql::Type type{row->type};
    for (const MeaningRow& meant : meanings)
      if (meant.meaning == c.meaning) type.id = meant.type;
    if (c.decimal) type = {sql::TypeId::decimal, c.decimal->precision, c.decimal->scale};
    table.columns.push_back({.name = c.name,
                             .type = type,
                             .stored = c.type,
                             .foreign_table = c.foreign_table,
                             .foreign_key = c.foreign_key});
  }
  catalog_.tables.push_back(std::move(table));
}

void SqlCatalog::take_facts(const std::string& name, std::span<const std::string> columns,
                            std::span<const data::RowRange> ranges) {
  const auto table = std::find_if(catalog_.tables.begin(), catalog_.tables.end(),
                                  [&](const sql::Table& t) { return t.name == name; });
  if (table == catalog_.tables.end()) return;
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto column = std::find_if(table->columns.begin(), table->columns.end(),
                                     [&](const sql::Column& c) { return c.name == columns[i]; });
    if (column == table->columns.end()) continue;
    std::vector<const data::ColumnFacts*> facts;  // where there is a value
    column->has_nulls = false;
    for (const data::RowRange& range : ranges) {
      const data::ColumnFacts& f = range.columns[i];
      column->has_nulls |= f.nulls != uint64_t{0};
      if (f.nulls != range.rows) facts.push_back(&f);
    }
    column->distinct = std::max<uint64_t>(table->rows, 1);
    const auto all = [&](auto member, auto& least, auto& greatest) {
      if (facts.empty() || !std::all_of(facts.begin(), facts.end(), [&](const auto* f) { return (f->*member).has_value(); })) return false;
      auto bounds = *(facts[0]->*member);
      for (const data::ColumnFacts* f : facts) {
        bounds.first = std::min(bounds.first, (f->*member)->first);
        bounds.second = std::max(bounds.second, (f->*member)->second);
      }
      least = bounds.first;
      greatest = bounds.second;
      return true;
    };
    if (all(&data::ColumnFacts::floats, column->float_min, column->float_max)) continue;
    std::optional<__int128> least, greatest;
    if (!all(&data::ColumnFacts::integers, least, greatest)) continue;
    // Zero stands where a value is missing.
    if (column->has_nulls) {
      least = std::min<__int128>(*least, 0);
      greatest = std::max<__int128>(*greatest, 0);
    }
    if (column->stored == BasicType::i128) {
      column->wide_min = least;
      column->wide_max = greatest;
      continue;
    }
    if (*least < INT64_MIN || *greatest > INT64_MAX) continue;
    column->min = static_cast<int64_t>(*least);
    column->max = static_cast<int64_t>(*greatest);
    const uint64_t range = static_cast<uint64_t>(*column->max) - static_cast<uint64_t>(*column->min);
    if (range < column->distinct) column->distinct = range + 1;
  }
}

Result<bool> SqlCatalog::learn(const std::map<std::string, std::set<std::string>>& columns,
                               const data::Shown& shown) {
  bool learnt = false;
  for (sql::Table& table : catalog_.tables) {
    auto wanted = columns.find(table.name);
    if (wanted == columns.end()) continue;
    auto [known, is_new] = known_.try_emplace(table.name);
    std::vector<std::string> missing;
    std::set_difference(wanted->second.begin(), wanted->second.end(), known->second.begin(),
                        known->second.end(), std::back_inserter(missing));
    if (!is_new && missing.empty()) continue;
    ASSIGN_OR_RETURN(auto loaded, source_->columns(table.name, missing, shown));
    ASSIGN_OR_RETURN(table.rows, source_->rows(table.name));
    for (size_t i = 0; i < missing.size(); ++i) {
      auto column = std::find_if(table.columns.begin(), table.columns.end(),
                                 [&](const sql::Column& c) { return c.name == missing[i]; });
      if (column == table.columns.end()) continue;
      std::optional<uint64_t> referenced;
      if (!column->foreign_table.empty()) {
        ASSIGN_OR_RETURN(referenced, source_->rows(column->foreign_table));
      }
      take_statistics(*column, *loaded[i], referenced);
      if (table.primary.size() == 1 && table.primary[0] == column->name)
        column->unique = true;  // the source has checked it
      known->second.insert(missing[i]);
    }
    learnt = true;
  }
  return learnt;
}

}  // namespace rndn::runtime
