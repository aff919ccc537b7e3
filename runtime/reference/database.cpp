// Tables, dictionaries and enumerations (docs/horseir.md, "Builtins: tables").
#include <algorithm>
#include <set>
#include <unordered_map>

#include "runtime/reference/builtins.h"

namespace rndn::reference {

using hir::BasicType;

namespace {

Result<std::string> text_scalar(std::string_view function, const Value& v) {
  if (!v.is_text_vector() || v.size != 1) return input_error("`{}` expects one symbol, got {}", function, describe(v));
  return v.text(0);
}

Result<Value> load_table(Context& context, Arguments a) {
  ASSIGN_OR_RETURN(std::string name, text_scalar("load_table", a[0]));
  RETURN_IF_ERROR(context.tables.open(name));
  Value v;
  v.kind = Value::table;
  v.source = name;
  return v;
}

Result<Value> one_column(Context& context, const Value& table, const std::string& name, data::ColumnPart part) {
  if (!table.source.empty())
    return column_of(table, name, context.tables, context.expected ? std::optional(*context.expected) : std::nullopt,
                     part);
  const std::vector<std::string>& names = *table.names;
  auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return input_error("the table has no column `{}`", name);
  const Value& column = table.parts()[static_cast<size_t>(at - names.begin())];
  if (part == data::ColumnPart::validity)  // nothing is missing here
    return make<uint8_t>(BasicType::boolean, std::vector<uint8_t>(length(column), 1));
  if (part == data::ColumnPart::values_with_zeros && column.kind == Value::enumeration)
    return enumerated_values("column_value", column);
  return column;
}

// One name gives the column, several give a list of columns.
Result<Value> column_value(Context& context, Arguments a) {
  if (a[0].kind != Value::table) return input_error("`column_value` expects a table, got {}", describe(a[0]));
  if (!a[1].is_text_vector()) return input_error("`column_value` expects symbols, got {}", describe(a[1]));
  auto part = data::ColumnPart::values;
  if (a.size() == 3) {
    ASSIGN_OR_RETURN(const int64_t with_zeros, integer_scalar("column_value", a[2]));
    if (with_zeros) part = data::ColumnPart::values_with_zeros;
  }
  if (a[1].size == 1) return one_column(context, a[0], a[1].text(0), part);
  context.expected = nullptr;
  std::vector<Value> columns;
  for (uint64_t i = 0; i < a[1].size; ++i) {
    ASSIGN_OR_RETURN(Value column, one_column(context, a[0], a[1].text(i), part));
    columns.push_back(std::move(column));
  }
  return list(std::move(columns));
}

Result<Value> column_valid(Context& context, Arguments a) {
  if (a[0].kind != Value::table) return input_error("`column_valid` expects a table, got {}", describe(a[0]));
  ASSIGN_OR_RETURN(const std::string name, text_scalar("column_valid", a[1]));
  context.expected = nullptr;
  return one_column(context, a[0], name, data::ColumnPart::validity);
}

// A table whose columns are loaded when they are asked for. They have the types that the file shows; as_type reads their fields again
// where a program names another.
Result<Value> load_csv(Context& context, Arguments a) {
  if (!a[0].is_text_vector() || a[0].size != 1)
    return input_error("`load_csv` expects the name of one file, got {}", describe(a[0]));
  Value v;
  v.kind = Value::table;
  v.source = a[0].text(0);
  ASSIGN_OR_RETURN(v.file, context.tables.files().open(v.source));
  return v;
}

Result<Value> table_(Context&, Arguments a) {
  if (!a[0].is_text_vector()) return input_error("`table` expects symbols as column names, got {}", describe(a[0]));
  std::vector<Value> columns = a[1].kind == Value::list ? a[1].parts() : std::vector<Value>{a[1]};
  std::vector<std::string> names;
  for (uint64_t i = 0; i < a[0].size; ++i) names.push_back(a[0].text(i));
  if (names.size() != columns.size())
    return input_error("`table` expects as many names as columns, got {} and {}", names.size(), columns.size());
  std::set<std::string> distinct(names.begin(), names.end());
  if (distinct.size() != names.size()) return input_error("`table` expects distinct column names");
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].is_vector() && columns[i].kind != Value::enumeration)
      return input_error("`table` expects vectors as columns, column `{}` is {}", names[i], describe(columns[i]));
    if (length(columns[i]) != length(columns[0]))
      return input_error("`table` expects columns of one length: `{}` has {} elements, `{}` has {}", names[0],
                         length(columns[0]), names[i], length(columns[i]));
  }
  return table(std::move(names), std::move(columns));
}

Result<Value> ktable_(Context& context, Arguments a) {
  uint64_t rows[2];
  for (int i = 0; i < 2; ++i) {
    if (a[static_cast<size_t>(i)].kind != Value::table)
      return input_error("`ktable` expects two tables, got {}", describe(a[static_cast<size_t>(i)]));
    const Value& t = a[static_cast<size_t>(i)];
    if (t.source.empty()) {
      rows[i] = length(t);
    } else {
      ASSIGN_OR_RETURN(rows[i], rows_of(t, context.tables));
    }
  }
  if (rows[0] != rows[1])
    return input_error("`ktable` expects tables of one length, got {} and {} rows", rows[0], rows[1]);
  return ktable(a[0], a[1]);
}

Result<Value> enum_(Context&, Arguments a) {
  ASSIGN_OR_RETURN(std::vector<Value> keys, key_columns("enum", a[0]));
  ASSIGN_OR_RETURN(std::vector<Value> values, key_columns("enum", a[1]));
  if (keys.size() != values.size()) return input_error("`enum` expects keys and values of one type");
  std::vector<BasicType> types;
  for (size_t c = 0; c < keys.size(); ++c) {
    if (keys[c].type != values[c].type)
      return input_error("`enum` expects keys and values of one type, got {} and {}", describe(keys[c]),
                         describe(values[c]));
    types.push_back(keys[c].type);
  }
  std::vector<std::string> known = row_keys(keys, types, nullptr), wanted = row_keys(values, types, nullptr);
  std::unordered_map<std::string_view, int64_t> first;
  for (size_t i = 0; i < known.size(); ++i) first.emplace(known[i], static_cast<int64_t>(i));
  std::vector<int64_t> rows(wanted.size(), static_cast<int64_t>(known.size()));
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto it = first.find(wanted[i]);
    if (it != first.end()) rows[i] = it->second;
  }
  return enumeration(a[0], make<int64_t>(BasicType::i64, rows));
}

Result<Value> dict_(Context&, Arguments a) {
  auto entries = [](const Value& v) { return v.is_vector() || v.kind == Value::list ? length(v) : 1; };
  if (entries(a[0]) != entries(a[1]))
    return input_error("`dict` expects as many keys as values, got {} and {}", entries(a[0]), entries(a[1]));
  return dict(a[0], a[1]);
}

Result<Value> keys(Context& context, Arguments a) {
  const Value& v = a[0];
  switch (v.kind) {
    case Value::enumeration:
    case Value::ktable: return v.parts()[0];
    case Value::dict:
      return v.parts()[0].is_vector() || v.parts()[0].kind == Value::list ? v.parts()[0] : list({v.parts()[0]});
    case Value::table: {
      if (v.source.empty()) return vector_of_texts(BasicType::sym, *v.names);
      ASSIGN_OR_RETURN(std::vector<std::string> names, names_of(v, context.tables));
      return vector_of_texts(BasicType::sym, std::move(names));
    }
    default: return input_error("`keys` is not defined for {}", describe(v));
  }
}

Result<Value> values(Context& context, Arguments a) {
  const Value& v = a[0];
  switch (v.kind) {
    case Value::enumeration:
    case Value::ktable: return v.parts()[1];
    case Value::dict: return v.parts()[1].kind == Value::list ? v.parts()[1] : list({v.parts()[1]});
    case Value::table: {
      ASSIGN_OR_RETURN(const Value whole, with_columns(v, context.tables));
      return list(whole.parts());
    }
    default: return input_error("`values` is not defined for {}", describe(v));
  }
}

Result<Value> fetch(Context&, Arguments a) {
  if (a[0].kind != Value::enumeration) return input_error("`fetch` expects an enum, got {}", describe(a[0]));
  return enumerated_values("fetch", a[0]);
}

Result<Value> meta(Context& context, Arguments a) {
  auto describe_columns = [&](const Value& t, std::vector<std::string>& names,
                              std::vector<std::string>& types) -> Result<void> {
    if (t.file) {  // known without its columns
      for (const data::ColumnSchema& c : t.file->schema().tables[0].columns) {
        names.push_back(c.name);
        types.emplace_back(hir::basic_type_name(c.type));
      }
      return {};
    }
    ASSIGN_OR_RETURN(Value column_names, keys(context, {&t, 1}));
    ASSIGN_OR_RETURN(Value columns, values(context, {&t, 1}));
    for (size_t i = 0; i < columns.parts().size(); ++i) {
      names.push_back(column_names.text(i));
      const Value& c = columns.parts()[i];
      types.push_back(c.kind == Value::enumeration ? fmt::format("enum<{}>", hir::basic_type_name(c.parts()[0].type))
                                                   : std::string(hir::basic_type_name(c.type)));
    }
    return {};
  };
  std::vector<std::string> kinds, names, types;
  if (a[0].kind == Value::table) {
    RETURN_IF_ERROR(describe_columns(a[0], names, types));
  } else if (a[0].kind == Value::ktable) {
    RETURN_IF_ERROR(describe_columns(a[0].parts()[0], names, types));
    kinds.resize(names.size(), "key");
    RETURN_IF_ERROR(describe_columns(a[0].parts()[1], names, types));
    kinds.resize(names.size(), "value");
  } else {
    return input_error("`meta` expects a table, got {}", describe(a[0]));
  }
  std::vector<std::string> heads;
  std::vector<Value> columns;
  auto add = [&](const char* head, std::vector<std::string> texts) {
    heads.push_back(head);
    columns.push_back(vector_of_texts(BasicType::sym, std::move(texts)));
  };
  size_t rows = names.size();
  if (!kinds.empty()) add("kind", std::move(kinds));
  add("name", std::move(names));
  add("type", std::move(types));
  add("attributes", std::vector<std::string>(rows));
  return table(std::move(heads), std::move(columns));
}

}  // namespace

Result<Value> enumerated_values(std::string_view function, const Value& enumeration) {
  const Value& keys = enumeration.parts()[0];
  if (!keys.is_vector())
    return input_error("`{}` expects an enum over a vector, got one over {}", function, describe(keys));
  std::vector<int64_t> rows = elements<int64_t>(enumeration.parts()[1]);
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] < 0 || rows[i] >= static_cast<int64_t>(keys.size))
      return input_error("`{}`: value {} of the enum is not among its keys", function, i);
  return gather(keys, rows);
}

Result<Value> as_type(const Value& column, BasicType type) { return column.fields->value(type); }

std::span<const BuiltinEntry> database_builtins() {
  static constexpr BuiltinEntry entries[] = {
      {"load_table", load_table},
      {"load_csv", load_csv},
      {"column_value", column_value},
      {"column_valid", column_valid},
      {"table", table_},
      {"ktable", ktable_},
      {"enum", enum_},
      {"dict", dict_},
      {"keys", keys},
      {"values", values},
      {"fetch", fetch},
      {"meta", meta},
  };
  return entries;
}

}  // namespace rndn::reference
