// Schema look-ups, the JSON form, and its checks. Messages name the table and column at fault; JSON's own errors have a
// position.
#include "runtime/data/schema.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "libraries/base/errors/diagnostic.h"

namespace rndn::data {

using Json = nlohmann::ordered_json;

const ColumnSchema* TableSchema::find(std::string_view column) const {
  auto it = std::find_if(columns.begin(), columns.end(), [&](const ColumnSchema& c) { return c.name == column; });
  return it == columns.end() ? nullptr : &*it;
}

void TableSchema::set_file(std::string_view name) {
  file = name;
  const size_t dot = name.rfind('.');
  std::string extension(name.substr(std::min(dot, name.size())));
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  quoted = extension == ".csv";
  delimiter = quoted ? ',' : extension == ".tsv" ? '\t' : '|';
}

const TableSchema* Schema::find(std::string_view table) const {
  auto it = std::find_if(tables.begin(), tables.end(), [&](const TableSchema& t) { return t.name == table; });
  return it == tables.end() ? nullptr : &*it;
}

namespace {

std::string others(std::string_view word, const std::vector<std::string_view>& known) {
  return known.empty() ? "; there is none" : alternatives(word, known);
}

std::vector<std::string_view> names_of(const TableSchema& table) {
  std::vector<std::string_view> names;
  for (const ColumnSchema& column : table.columns) names.push_back(column.name);
  return names;
}

}  // namespace

Result<const TableSchema*> Schema::table(std::string_view name) const {
  if (const TableSchema* table = find(name)) return table;
  return input_error("there is no table `{}`{}", name, others(name, table_names()));
}

Result<const ColumnSchema*> Schema::column(const TableSchema& table, std::string_view name) const {
  if (const ColumnSchema* column = table.find(name)) return column;
  return input_error("table `{}` has no column `{}`{}", table.name, name, others(name, names_of(table)));
}

bool Schema::find_column(std::string_view table, std::string_view column, Column& out) const {
  const TableSchema* t = find(table);
  const ColumnSchema* c = t ? t->find(column) : nullptr;
  if (!c) return false;
  out = {.type = c->type, .is_foreign_key = c->is_foreign_key(), .foreign_table = c->foreign_table};
  return true;
}

std::vector<std::string_view> Schema::table_names() const {
  std::vector<std::string_view> names;
  for (const TableSchema& table : tables) names.push_back(table.name);
  return names;
}

std::vector<std::string_view> Schema::column_names(std::string_view table) const {
  const TableSchema* t = find(table);
  return t ? names_of(*t) : std::vector<std::string_view>();
}

namespace {

std::vector<std::string_view> type_names() {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < hir::basic_type_count; ++i)
    names.push_back(hir::basic_type_name(static_cast<hir::BasicType>(i)));
  return names;
}

constexpr int most_digits = 15;  // that f64 keeps

// Types that HorseIR does not have: what it sees, and what they are in SQL.
struct MeantType {
  std::string_view name;
  hir::BasicType type;
  Meaning meaning;
};
constexpr MeantType meant_types[] = {{"timestamp", hir::BasicType::i64, Meaning::timestamp},
                                     {"timestamptz", hir::BasicType::i64, Meaning::timestamp_utc},
                                     {"dt utc", hir::BasicType::dt, Meaning::timestamp_utc}};

// "decimal(15,2)".
std::optional<Decimal> parse_decimal(const std::string& text) {
  int precision = 0, scale = 0, end = 0;
  if (std::sscanf(text.c_str(), "decimal(%2d,%2d)%n", &precision, &scale, &end) != 2 ||
      end != static_cast<int>(text.size()) || precision < 1 || precision > most_digits || scale < 0 ||
      scale > precision)
    return std::nullopt;
  return Decimal{static_cast<uint8_t>(precision), static_cast<uint8_t>(scale)};
}

// Walks the JSON; the first thing wrong ends it.
class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  Result<Schema> read(const Json& json) {
    Schema schema;
    if (!json.is_object() || !json.contains("tables") || !json["tables"].is_array())
      return fail("expected an object with a list `tables`");
    RETURN_IF_ERROR(only(json, {"tables"}, "the schema"));
    // Foreign keys may refer to tables that come later: they are checked at the end.
    std::unordered_set<std::string> names;
    for (const Json& table : json["tables"]) {
      RETURN_IF_ERROR(read_table(table, schema));
      const std::string& name = schema.tables.back().name;
      if (!names.insert(name).second) return fail("table `{}`: the name is used twice", name);
    }
    for (const TableSchema& table : schema.tables) RETURN_IF_ERROR(check_foreign(table, schema));
    return schema;
  }

 private:
  template <class... Args>
  Error fail(fmt::format_string<Args...> format, Args&&... args) const {
    return input_error("{}: {}", file_, fmt::format(format, std::forward<Args>(args)...));
  }

  Result<void> only(const Json& object, std::initializer_list<std::string_view> keys, const std::string& where) const {
    for (const auto& item : object.items())
      if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
        return fail("{}: unknown key `{}`{}", where, item.key(), others(item.key(), keys));
    return {};
  }

  Result<std::string> text(const Json& object, const char* key, const std::string& where) const {
    auto it = object.find(key);
    if (it == object.end() || !it->is_string() || it->get_ref<const std::string&>().empty())
      return fail("{}: expected a text `{}`", where, key);
    return it->get<std::string>();
  }

  Result<void> flag(const Json& object, const char* key, const std::string& where, bool& value) const {
    auto it = object.find(key);
    if (it == object.end()) return {};
    if (!it->is_boolean()) return fail("{}: `{}` must be true or false", where, key);
    value = it->get<bool>();
    return {};
  }

  Result<void> read_table(const Json& json, Schema& schema) const {
    std::string where = fmt::format("table {}", schema.tables.size() + 1);
    if (!json.is_object()) return fail("{}: expected an object", where);
    TableSchema table;
    ASSIGN_OR_RETURN(table.name, text(json, "name", where));
    where = fmt::format("table `{}`", table.name);
    RETURN_IF_ERROR(
        only(json, {"name", "file", "delimiter", "header", "quoted", "columns", "primary", "foreign"}, where));

    table.set_file(table.name + ".tbl");
    if (json.contains("file")) {
      ASSIGN_OR_RETURN(std::string file, text(json, "file", where));
      table.set_file(file);
    }
    if (json.contains("delimiter")) {
      ASSIGN_OR_RETURN(std::string delimiter, text(json, "delimiter", where));
      if (delimiter.size() != 1 || delimiter == "\"" || delimiter == "\n" || delimiter == "\r")
        return fail("{}: `delimiter` must be one character other than a quote or an end of line", where);
      table.delimiter = delimiter[0];
    }
    RETURN_IF_ERROR(flag(json, "header", where, table.header));
    RETURN_IF_ERROR(flag(json, "quoted", where, table.quoted));
    if (!json.contains("columns") || !json["columns"].is_array() || json["columns"].empty())
      return fail("{}: expected a list `columns` with at least one column", where);
    std::unordered_map<std::string, size_t> positions;  // of columns, by name
    for (const Json& column : json["columns"]) {
      RETURN_IF_ERROR(read_column(column, table, where));
      const std::string& name = table.columns.back().name;
      if (!positions.emplace(name, table.columns.size() - 1).second)
        return fail("{}: column `{}`: the name is used twice", where, name);
    }

    for (const char* list : {"primary", "foreign"})
      if (json.contains(list) && !json[list].is_array()) return fail("{}: `{}` must be a list", where, list);
    if (json.contains("primary")) {
      for (const Json& name : json["primary"]) {
        if (!name.is_string()) return fail("{}: `primary` must list names of columns", where);
        if (!positions.contains(name.get_ref<const std::string&>()))
          return fail("{}: `primary` names the column `{}`, which it does not have", where, name.get<std::string>());
        const hir::BasicType type = table.columns[positions.at(name.get_ref<const std::string&>())].type;
        if (type == hir::BasicType::complex || hir::is_wide(type))
          return fail("{}: the primary key `{}` is of type {}", where, name.get<std::string>(),
                      hir::basic_type_name(type));
        table.primary.push_back(name.get<std::string>());
      }
    }
    if (json.contains("foreign"))
      for (const Json& foreign : json["foreign"]) RETURN_IF_ERROR(read_foreign(foreign, table, positions, where));
    schema.tables.push_back(std::move(table));
    return {};
  }

  Result<void> read_column(const Json& json, TableSchema& table, const std::string& table_name) const {
    std::string where = fmt::format("{}: column {}", table_name, table.columns.size() + 1);
    if (!json.is_object()) return fail("{}: expected an object", where);
    ColumnSchema column;
    ASSIGN_OR_RETURN(column.name, text(json, "name", where));
    where = fmt::format("{}: column `{}`", table_name, column.name);
    RETURN_IF_ERROR(only(json, {"name", "type", "format"}, where));
    ASSIGN_OR_RETURN(std::string type, text(json, "type", where));
    if (type.starts_with("decimal")) {
      column.decimal = parse_decimal(type);
      if (!column.decimal)
        return fail("{}: expected decimal(precision,scale) with 1 to {} digits, got `{}`", where, most_digits, type);
      column.type = hir::BasicType::f64;
    } else if (const auto meant = std::find_if(std::begin(meant_types), std::end(meant_types),
                                               [&](const MeantType& t) { return t.name == type; });
               meant != std::end(meant_types)) {
      column.type = meant->type;
      column.meaning = meant->meaning;
    } else if (!hir::parse_basic_type(type, column.type)) {
      return fail("{}: unknown type `{}`{}", where, type, alternatives(type, type_names()));
    }
    if (json.contains("format")) {
      if (column.type != hir::BasicType::date && column.type != hir::BasicType::dt)
        return fail("{}: `format` is for the types date and dt", where);
      ASSIGN_OR_RETURN(std::string format, text(json, "format", where));
      if (!parse_date_format(format, column.format))
        return fail("{}: `format` is %Y-%m-%d, %d-%m-%Y or %m-%d-%Y, with - / or . between, not `{}`", where, format);
    }
    table.columns.push_back(std::move(column));
    return {};
  }

  Result<void> read_foreign(const Json& json, TableSchema& table,
                            const std::unordered_map<std::string, size_t>& positions,
                            const std::string& table_name) const {
    std::string where = table_name + ": `foreign`";
    if (!json.is_object()) return fail("{}: expected objects", where);
    RETURN_IF_ERROR(only(json, {"column", "table", "key"}, where));
    ASSIGN_OR_RETURN(std::string name, text(json, "column", where));
    auto position = positions.find(name);
    if (position == positions.end()) return fail("{} names the column `{}`, which it does not have", where, name);
    ColumnSchema* column = &table.columns[position->second];
    if (column->is_foreign_key()) return fail("{} names the column `{}` twice", where, name);
    ASSIGN_OR_RETURN(column->foreign_table, text(json, "table", where));
    ASSIGN_OR_RETURN(column->foreign_key, text(json, "key", where));
    return {};
  }

  Result<void> check_foreign(const TableSchema& table, const Schema& schema) const {
    for (const ColumnSchema& column : table.columns) {
      if (!column.is_foreign_key()) continue;
      std::string where = fmt::format("table `{}`: foreign key `{}`", table.name, column.name);
      Result<const TableSchema*> target = schema.table(column.foreign_table);
      if (!target) return fail("{}: {}", where, target.error().message);
      Result<const ColumnSchema*> key = schema.column(**target, column.foreign_key);
      if (!key) return fail("{}: {}", where, key.error().message);
      // Row numbers of references are found by equality of 64 bits, which floats are no good for.
      if (hir::is_float(column.type) || column.type == hir::BasicType::complex || hir::is_wide(column.type))
        return fail("{} is of type {}; keys are integers, dates, times, or text", where,
                    hir::basic_type_name(column.type));
      if ((*key)->type != column.type)
        return fail("{} is of type {}, `{}.{}` of type {}", where, hir::basic_type_name(column.type),
                    column.foreign_table, column.foreign_key, hir::basic_type_name((*key)->type));
    }
    return {};
  }

  std::string_view file_;
};

}  // namespace

bool Decimal::holds(double value) const {
  // At most 15 digits, so both sides are exact below 10^precision, and the quotient is the number's nearest float.
  const double unit = std::pow(10.0, scale), whole = std::nearbyint(value * unit);
  return std::fabs(whole) < std::pow(10.0, precision) && whole / unit == value;
}

std::string type_text(const ColumnSchema& column) {
  for (const MeantType& t : meant_types)
    if (t.type == column.type && t.meaning == column.meaning) return std::string(t.name);
  return column.decimal ? fmt::format("decimal({},{})", column.decimal->precision, column.decimal->scale)
                        : std::string(hir::basic_type_name(column.type));
}

Result<Schema> parse_schema(std::string_view text, std::string_view name) {
  // The library reports through an exception; it ends here.
  try {
    return Reader(name).read(Json::parse(text));
  } catch (const nlohmann::json::parse_error& error) {
    size_t at = std::min<size_t>(error.byte ? error.byte - 1 : 0, text.size());
    size_t line = 1 + std::count(text.begin(), text.begin() + at, '\n');
    size_t line_start = text.substr(0, at).rfind('\n') + 1;  // npos + 1 = 0
    std::string_view what = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ...; last read: ...": the
    // reason only.
    if (size_t reason = what.find("syntax error"); reason != what.npos) what.remove_prefix(reason);
    return input_error("{}:{}:{}: {}", name, line, at - line_start + 1, what);
  } catch (const nlohmann::json::exception& error) {
    return input_error("{}: {}", name, error.what());
  }
}

std::string schema_text(const Schema& schema) {
  Json tables = Json::array();
  for (const TableSchema& table : schema.tables) {
    Json columns = Json::array(), foreign = Json::array();
    for (const ColumnSchema& column : table.columns) {
      columns.push_back({{"name", column.name}, {"type", type_text(column)}});
      if (column.format != DateFormat()) columns.back()["format"] = date_format_text(column.format);
      if (column.is_foreign_key())
        foreign.push_back({{"column", column.name}, {"table", column.foreign_table}, {"key", column.foreign_key}});
    }
    Json out = {{"name", table.name},
                {"file", table.file},
                {"delimiter", std::string(1, table.delimiter)},
                {"header", table.header}};
    TableSchema by_name;
    by_name.set_file(table.file);
    if (table.quoted != by_name.quoted) out["quoted"] = table.quoted;
    out["columns"] = std::move(columns);
    out["primary"] = table.primary;
    out["foreign"] = std::move(foreign);
    tables.push_back(std::move(out));
  }
  return Json{{"tables", tables}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rndn::data
