#include "runtime/adbc/objects.h"

#include <algorithm>
#include <cmath>

#include "libraries/base/report/utf8.h"
#include "libraries/base/report/version.h"
#include "runtime/adbc/database.h"
#include "runtime/adbc/nested.h"
#include "runtime/planner/database.h"

namespace rndn::adbc {
namespace {

using sql::TypeId;

Nested int32(const char* name) { return Nested::number(name, "i", 4); }
Nested int16(const char* name) { return Nested::number(name, "s", 2); }
Nested int64(const char* name) { return Nested::number(name, "l", 8); }

// % is any text, _ a character: a byte where there is none in UTF-8.
bool is_like(std::string_view text, std::string_view pattern) {
  const auto behind = [&](size_t i) { return i + std::max<size_t>(1, utf8_length(text.substr(i))); };
  size_t at = 0, p = 0, star = pattern.npos, from = 0;
  while (at < text.size()) {
    if (p < pattern.size() && pattern[p] == '%') {
      star = p++;
      from = at;
    } else if (p < pattern.size() && pattern[p] == '_') {
      at = behind(at), ++p;
    } else if (p < pattern.size() && pattern[p] == text[at]) {
      ++at, ++p;
    } else if (star != pattern.npos) {
      p = star + 1;
      at = from = behind(from);
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('%', p) == pattern.npos;
}
bool fits(const char* pattern, std::string_view text) {
  return !pattern || is_like(text, pattern);
}

constexpr const char *table_type = "TABLE", *view_type = "VIEW";
struct Thing {
  std::string name;
  const char* type;
};
std::vector<Thing> things(runtime::Session& session, const Filter& filter) {
  std::vector<Thing> found;
  const auto add = [&](const std::string& name, const char* type) {
    const bool is_wanted = !filter.types || std::find(filter.types->begin(), filter.types->end(),
                                                      type) != filter.types->end();
    if (is_wanted && fits(filter.table, name)) found.push_back({name, type});
  };
  for (const sql::Table& table : session.queries().catalog().tables) add(table.name, table_type);
  for (const planner::View& view : session.queries().views()) add(view.name, view_type);
  return found;
}

// The one catalog, whose one schema `fill` fills, where the filter has them.
template <class Fill>
Result<void> in_schema(Nested& root, const Filter& filter, bool has_schemas, Fill&& fill) {
  if (!fits(filter.catalog, catalog_name)) return {};
  root[0].add(catalog_name);
  if (!has_schemas) {
    root[1].add_null();
  } else {
    if (fits(filter.schema, schema_name)) {
      Nested& schema = root[1][0];
      schema[0].add(schema_name);
      RETURN_IF_ERROR(fill(schema[1]));
      schema.end();
    }
    root[1].end();
  }
  root.end();
  return {};
}

}  // namespace

ArrowArrayStream info(std::span<const uint32_t> codes) {
  struct Row {
    uint32_t code;
    uint8_t kind;  // 0 text, 1 bool, 2 int64
    std::string text;
    int64_t number = 0;
  };
  const Row rows[] = {{0, 0, "rndn"},
                      {1, 0, std::string(version())},
                      {3, 1, "", 1},  // SQL
                      {4, 1, "", 0},  // Substrait
                      {100, 0, "rndn ADBC driver"},
                      {101, 0, std::string(version())},
                      {103, 2, "", ADBC_VERSION_1_1_0}};
  std::vector<Nested> kinds;
  kinds.push_back(Nested::text("string_value"));
  kinds.push_back(Nested::bits("bool_value"));
  kinds.push_back(int64("int64_value"));
  kinds.push_back(int32("int32_bitmask"));
  kinds.push_back(Nested::list("string_list", Nested::text("item")));
  std::vector<Nested> entry;
  entry.push_back(int32("key").required());
  entry.push_back(Nested::list("value", int32("item")));
  kinds.push_back(Nested::list("int32_to_int32_list_map",
                               Nested::record("entries", std::move(entry)).required(), "+m"));
  std::vector<Nested> columns;
  columns.push_back(Nested::number("info_name", "I", 4).required());
  columns.push_back(Nested::one_of("info_value", std::move(kinds)));
  Nested root = Nested::table(std::move(columns));
  for (const Row& row : rows) {
    if (!codes.empty() && std::find(codes.begin(), codes.end(), row.code) == codes.end()) continue;
    root[0].add(int64_t{row.code});
    Nested& value = root[1][row.kind];
    if (row.kind == 0) value.add(row.text);
    if (row.kind == 1) value.add_bit(row.number != 0);
    if (row.kind == 2) value.add(row.number);
    root[1].end_one_of(row.kind);
    root.end();
  }
  return std::move(root).stream();
}

ArrowArrayStream table_types() {
  std::vector<Nested> columns;
  columns.push_back(Nested::text("table_type").required());
  Nested root = Nested::table(std::move(columns));
  for (const char* type : {table_type, view_type}) {
    root[0].add(type);
    root.end();
  }
  return std::move(root).stream();
}

Result<std::optional<std::vector<sql::ResultColumn>>> table_columns(runtime::Session& session,
                                                                    const std::string& name) {
  for (const sql::Table& table : session.queries().catalog().tables) {
    if (!planner::is_same_name(table.name, name)) continue;
    std::vector<sql::ResultColumn> columns;
    for (const sql::Column& c : table.columns) columns.push_back({.name = c.name, .type = c.type});
    return std::optional(std::move(columns));
  }
  if (!session.has_table(name)) return std::optional<std::vector<sql::ResultColumn>>();
  ASSIGN_OR_RETURN(auto columns,
                   session.result_columns(
                       runtime::split_sql("view", "<" + name + ">",
                                          "SELECT * FROM " + planner::quote_name(name))[0],
                       {}));
  return std::optional(std::move(columns));
}

Result<ArrowArrayStream> objects(runtime::Session& session, int depth, const Filter& filter) {
  // The columns that are not filled: what SQL does not have here.
  std::vector<Nested> column;
  column.push_back(Nested::text("column_name").required());
  column.push_back(int32("ordinal_position"));
  column.push_back(Nested::text("remarks"));
  column.push_back(int16("xdbc_data_type"));
  column.push_back(Nested::text("xdbc_type_name"));
  column.push_back(int32("xdbc_column_size"));
  column.push_back(int16("xdbc_decimal_digits"));
  column.push_back(int16("xdbc_num_prec_radix"));
  column.push_back(int16("xdbc_nullable"));
  column.push_back(Nested::text("xdbc_column_def"));
  column.push_back(int16("xdbc_sql_data_type"));
  column.push_back(int16("xdbc_datetime_sub"));
  column.push_back(int32("xdbc_char_octet_length"));
  for (const char* name :
       {"xdbc_is_nullable", "xdbc_scope_catalog", "xdbc_scope_schema", "xdbc_scope_table"})
    column.push_back(Nested::text(name));
  column.push_back(Nested::bits("xdbc_is_autoincrement"));
  column.push_back(Nested::bits("xdbc_is_generatedcolumn"));
  enum { column_name, position, type_name = 4, size, digits, column_fields = 19 };

  std::vector<Nested> usage;
  usage.push_back(Nested::text("fk_catalog"));
  usage.push_back(Nested::text("fk_db_schema"));
  usage.push_back(Nested::text("fk_table").required());
  usage.push_back(Nested::text("fk_column_name").required());
  std::vector<Nested> constraint;
  constraint.push_back(Nested::text("constraint_name"));
  constraint.push_back(Nested::text("constraint_type").required());
  constraint.push_back(
      Nested::list("constraint_column_names", Nested::text("item")).required());
  constraint.push_back(
      Nested::list("constraint_column_usage", Nested::record("item", std::move(usage))));
  std::vector<Nested> table;
  table.push_back(Nested::text("table_name").required());
  table.push_back(Nested::text("table_type").required());
  table.push_back(Nested::list("table_columns", Nested::record("item", std::move(column))));
  table.push_back(Nested::list("table_constraints", Nested::record("item", std::move(constraint))));
  std::vector<Nested> schema;
  schema.push_back(Nested::text("db_schema_name"));
  schema.push_back(Nested::list("db_schema_tables", Nested::record("item", std::move(table))));
  std::vector<Nested> catalog;
  catalog.push_back(Nested::text("catalog_name"));
  catalog.push_back(Nested::list("catalog_db_schemas", Nested::record("item", std::move(schema))));
  Nested root = Nested::table(std::move(catalog));

  // A view whose query no longer has an answer has columns that are not known.
  const auto add_columns = [&](Nested& list, const std::string& name) -> Result<void> {
    const auto known = table_columns(session, name);
    if (!known && known.error().fault != Fault::input) return known.error();
    if (!known || !*known) {
      list.add_null();
      return {};
    }
    const std::vector<sql::ResultColumn>* const columns = &**known;
    for (size_t i = 0; i < columns->size(); ++i) {
      const sql::ResultColumn& c = (*columns)[i];
      if (!fits(filter.column, c.name)) continue;
      Nested& row = list[0];
      for (size_t f = 0; f < column_fields; ++f) {
        if (f == column_name)
          row[f].add(c.name);
        else if (f == position)
          row[f].add(static_cast<int64_t>(i + 1));
        else if (f == type_name)
          row[f].add(sql::type_name(c.type));
        else if (f == size && c.type.id == TypeId::decimal)
          row[f].add(int64_t{c.type.width});
        else if (f == digits && c.type.id == TypeId::decimal)
          row[f].add(int64_t{c.type.scale});
        else
          row[f].add_null();
      }
      row.end();
    }
    list.end();
    return {};
  };
  const auto add_keys = [&](Nested& list, const std::string& name) {
    const sql::Table* known = session.queries().catalog().find(name);
    if (!known) return;
    const auto begin = [&](const char* kind, std::span<const std::string> columns) {
      list[0][0].add_null();
      list[0][1].add(kind);
      for (const std::string& c : columns) list[0][2][0].add(c);
      list[0][2].end();
    };
    if (!known->primary.empty()) {
      begin("PRIMARY KEY", known->primary);
      list[0][3].add_null();
      list[0].end();
    }
    for (const sql::Column& c : known->columns) {
      if (c.foreign_table.empty()) continue;
      begin("FOREIGN KEY", {&c.name, 1});
      Nested& used = list[0][3][0];
      used[0].add(catalog_name);
      used[1].add(schema_name);
      used[2].add(c.foreign_table);
      used[3].add(c.foreign_key);
      used.end();
      list[0][3].end();
      list[0].end();
    }
  };
  RETURN_IF_ERROR(in_schema(root, filter, depth != 1, [&](Nested& tables) -> Result<void> {
    if (depth == 2) {
      tables.add_null();
      return {};
    }
    for (const Thing& thing : things(session, filter)) {
      Nested& row = tables[0];
      row[0].add(thing.name);
      row[1].add(thing.type);
      if (depth == 3) {
        row[2].add_null();
        row[3].add_null();
      } else {
        RETURN_IF_ERROR(add_columns(row[2], thing.name));
        add_keys(row[3], thing.name);
        row[3].end();
      }
      row.end();
    }
    tables.end();
    return {};
  }));
  return std::move(root).stream();
}

// ---- statistics

namespace {
// The keys that the specification has for adbc.statistic.distinct_count and so on.
enum Statistic : int16_t {
  distinct_count = 1,
  max_value = 3,
  min_value = 4,
  null_count = 5,
  row_count = 6
};
}  // namespace

// The specification's own names have their keys by it; a driver lists what it adds: nothing.
ArrowArrayStream statistic_names() {
  std::vector<Nested> columns;
  columns.push_back(Nested::text("statistic_name").required());
  columns.push_back(int16("statistic_key").required());
  Nested root = Nested::table(std::move(columns));
  return std::move(root).stream();
}

Result<ArrowArrayStream> statistics(runtime::Session& session, const Filter& filter, bool at_hand) {
  enum : uint8_t { as_int64, as_uint64, as_float64, as_binary };
  std::vector<Nested> kinds;
  kinds.push_back(int64("int64"));
  kinds.push_back(Nested::number("uint64", "L", 8));
  kinds.push_back(Nested::number("float64", "g", 8));
  kinds.push_back(Nested::bytes("binary"));
  std::vector<Nested> statistic;
  statistic.push_back(Nested::text("table_name").required());
  statistic.push_back(Nested::text("column_name"));
  statistic.push_back(int16("statistic_key").required());
  statistic.push_back(Nested::one_of("statistic_value", std::move(kinds)).required());
  statistic.push_back(Nested::bits("statistic_is_approximate").required());
  std::vector<Nested> schema;
  schema.push_back(Nested::text("db_schema_name"));
  schema.push_back(Nested::list("db_schema_statistics",
                                Nested::record("item", std::move(statistic)))
                       .required());
  std::vector<Nested> catalog;
  catalog.push_back(Nested::text("catalog_name"));
  catalog.push_back(
      Nested::list("catalog_db_schemas", Nested::record("item", std::move(schema))).required());
  Nested root = Nested::table(std::move(catalog));

  const auto put = [&](Nested& list, const Thing& of, const std::string* column, int16_t key,
                       std::optional<int64_t> whole, double real, bool is_approximate) {
    Nested& row = list[0];
    row[0].add(of.name);
    column ? row[1].add(*column) : row[1].add_null();
    row[2].add(int64_t{key});
    if (whole)
      row[3][as_int64].add(*whole);
    else
      row[3][as_float64].add_float(real);
    row[3].end_one_of(whole ? as_int64 : as_float64);
    row[4].add_bit(is_approximate);
    row.end();
  };
  RETURN_IF_ERROR(in_schema(root, filter, true, [&](Nested& list) -> Result<void> {
    const std::shared_ptr<data::Source> source = session.source();
    Filter tables = filter;
    tables.types = {table_type};
    for (const Thing& thing : things(session, tables)) {
      std::optional<uint64_t> count = source->rows_at_hand(thing.name);
      if (!count && !at_hand) {
        ASSIGN_OR_RETURN(count, source->rows(thing.name));
      }
      if (count)
        put(list, thing, nullptr, row_count, static_cast<int64_t>(*count), 0, false);
      runtime::SqlCatalog known(source);
      const std::vector<sql::Column> columns = known.catalog().find(thing.name)->columns;
      for (const sql::Column& named : columns) {
        if (at_hand && !source->is_loaded(thing.name, named.name)) continue;
        ASSIGN_OR_RETURN([[maybe_unused]] const bool learnt,
                         known.learn({{thing.name, {named.name}}}));
        ASSIGN_OR_RETURN(const auto column, source->column(thing.name, named.name));
        const sql::Column& c = *known.catalog().find(thing.name)->find(named.name);
        const auto* validity = column->validity.get();
        const int64_t missing =
            validity ? std::count(validity->begin(), validity->end(), std::byte{0}) : 0;
        put(list, thing, &c.name, null_count, missing, 0, false);
        if (c.unique)
          put(list, thing, &c.name, distinct_count, static_cast<int64_t>(column->rows), 0, false);
        else if (c.distinct)
          put(list, thing, &c.name, distinct_count, {}, static_cast<double>(c.distinct), true);
        // Zeros stand under missing values, and count among the bounds.
        const bool is_bound = c.has_nulls;
        const double unit = c.type.id == TypeId::decimal ? std::pow(10.0, c.type.scale) : 1;
        const auto bound = [&](int16_t key, std::optional<int64_t> whole,
                               std::optional<double> real) {
          if (whole && unit != 1)
            put(list, thing, &c.name, key, {}, static_cast<double>(*whole) / unit, true);
          else if (whole)
            put(list, thing, &c.name, key, whole, 0, is_bound);
          else if (real)
            put(list, thing, &c.name, key, {}, *real, is_bound);
        };
        bound(min_value, c.min, c.float_min);
        bound(max_value, c.max, c.float_max);
      }
    }
    list.end();
    return {};
  }));
  return std::move(root).stream();
}

}  // namespace rndn::adbc
