#include "runtime/data/tables.h"

#include <algorithm>

#include "frontend/column_reads.h"

namespace rndn::data {

Result<std::shared_ptr<const Column>> Tables::part(std::string_view table, std::string_view column,
                                                   ColumnPart part) const {
  ASSIGN_OR_RETURN(std::shared_ptr<const Column> found, this->column(table, column));
  return part == ColumnPart::validity ? std::make_shared<const Column>(validity_of(*found)) : found;
}

Result<void> SourceTables::open(std::string_view table) const {
  RETURN_IF_ERROR(source_->schema().table(table));
  return {};
}

Result<std::vector<std::string>> SourceTables::column_names(std::string_view table) const {
  ASSIGN_OR_RETURN(const TableSchema* schema, source_->schema().table(table));
  std::vector<std::string> names;
  for (const ColumnSchema& c : schema->columns) names.push_back(c.name);
  return names;
}

Result<uint64_t> SourceTables::rows(std::string_view table) const { return source_->rows(table); }

Result<std::shared_ptr<const Column>> SourceTables::column(std::string_view table, std::string_view column) const {
  return source_->complete_column(table, column);
}

Result<std::shared_ptr<const Column>> SourceTables::part(std::string_view table, std::string_view column,
                                                         ColumnPart part) const {
  return source_->part(table, column, part);
}

Result<std::shared_ptr<const Column>> SourceTables::key_column(std::string_view table) const {
  ASSIGN_OR_RETURN(const TableSchema* schema, source_->schema().table(table));
  if (schema->primary.size() != 1) return input_error("table `{}` has no primary key of one column", table);
  return source_->complete_column(table, schema->primary.front());
}

Result<void> SourceTables::prefetch(std::string_view table, std::span<const std::string> columns) const {
  RETURN_IF_ERROR(source_->columns(table, columns));
  return {};
}

Result<uint64_t> rows_of(const Value& table, const Tables& tables) {
  return table.file ? table.file->rows(table.file->schema().tables[0].name) : tables.rows(table.source);
}

Result<std::vector<std::string>> names_of(const Value& table, const Tables& tables) {
  if (!table.file) return tables.column_names(table.source);
  std::vector<std::string> names;
  for (const ColumnSchema& column : table.file->schema().tables[0].columns) names.push_back(column.name);
  return names;
}

Result<Value> column_of(const Value& table, const std::string& column, const Tables& tables,
                        std::optional<hir::BasicType> as, ColumnPart part) {
  if (table.file) return FileColumn{table.file, column, part}.value(as);
  ASSIGN_OR_RETURN(std::shared_ptr<const Column> loaded, tables.part(table.source, column, part));
  if (!loaded->is_foreign_key || part != ColumnPart::values) return from_column(*loaded);
  ASSIGN_OR_RETURN(std::shared_ptr<const Column> key, tables.key_column(loaded->foreign_table));
  return enumeration_of(*loaded, *key);
}

Result<Value> with_columns(Value value, const Tables& tables) {
  if (value.kind == Value::ktable) {
    ASSIGN_OR_RETURN(Value keys, with_columns(value.parts()[0], tables));
    ASSIGN_OR_RETURN(Value values, with_columns(value.parts()[1], tables));
    return ktable(std::move(keys), std::move(values));
  }
  if (value.kind != Value::table || value.source.empty()) return value;
  ASSIGN_OR_RETURN(std::vector<std::string> names, names_of(value, tables));
  // A hint; what goes wrong is said of the column where it does.
  if (value.file)
    (void)value.file->columns(value.file->schema().tables[0].name, names).ok();
  else
    (void)tables.prefetch(value.source, names).ok();
  std::vector<Value> columns;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(Value column, column_of(value, name, tables));
    columns.push_back(std::move(column));
  }
  return table(std::move(names), std::move(columns));
}

namespace {
Error missing() { return usage_error("this program loads tables: give --data or --table"); }
}  // namespace

Result<void> NoTables::open(std::string_view) const { return missing(); }
Result<std::vector<std::string>> NoTables::column_names(std::string_view) const { return missing(); }
Result<uint64_t> NoTables::rows(std::string_view) const { return missing(); }
Result<std::shared_ptr<const Column>> NoTables::column(std::string_view, std::string_view) const { return missing(); }
Result<std::shared_ptr<const Column>> NoTables::key_column(std::string_view) const { return missing(); }

Result<uint64_t> TimedTables::rows(std::string_view table) const {
  auto scope = timings_.measure(Phase::data, table);
  return tables_.rows(table);
}
Result<std::shared_ptr<const Column>> TimedTables::column(std::string_view table, std::string_view column) const {
  auto scope = timings_.measure(Phase::data, fmt::format("{}.{}", table, column));
  return tables_.column(table, column);
}
Result<std::shared_ptr<const Column>> TimedTables::part(std::string_view table, std::string_view column,
                                                        ColumnPart part) const {
  auto scope = timings_.measure(Phase::data, fmt::format("{}.{}", table, column));
  return tables_.part(table, column, part);
}
Result<std::shared_ptr<const Column>> TimedTables::key_column(std::string_view table) const {
  auto scope = timings_.measure(Phase::data, table);
  return tables_.key_column(table);
}
Result<void> TimedTables::prefetch(std::string_view table, std::span<const std::string> columns) const {
  auto scope = timings_.measure(Phase::data, table);
  return tables_.prefetch(table, columns);
}

ColumnsRead columns_read(const hir::Program& program) {
  ColumnsRead read;
  const hir::ColumnReads all = hir::column_reads(program);
  const auto names_of = [&](const hir::ColumnReads::Table& table) -> std::vector<std::string>& {
    return (table.is_file ? read.files : read.tables)[table.name];
  };
  for (const hir::ColumnReads::Table& table : all.tables) (void)names_of(table);
  for (const hir::ColumnRead& c : all.columns) {
    std::vector<std::string>& names = names_of(all.tables[c.table]);
    if (std::find(names.begin(), names.end(), c.column) == names.end()) names.push_back(c.column);
  }
  return read;
}

void prefetch(const ColumnsRead& columns, const Tables& tables) {
  for (const auto& [table, names] : columns.tables)
    if (!names.empty()) (void)tables.prefetch(table, names).ok();
  for (const auto& [path, names] : columns.files)
    if (names.size() > 1)  // one may be read as another type
      if (auto file = tables.files().open(path)) (void)(*file)->columns((*file)->schema().tables[0].name, names).ok();
}

}  // namespace rndn::data
