#include "runtime/tables.h"

namespace rndn::runtime {

Result<void> SourceTables::open(std::string_view table) const {
  RETURN_IF_ERROR(source_->schema().table(table));
  return {};
}

Result<std::vector<std::string>> SourceTables::column_names(std::string_view table) const {
  ASSIGN_OR_RETURN(const data::TableSchema* schema, source_->schema().table(table));
  std::vector<std::string> names;
  for (const data::ColumnSchema& c : schema->columns) names.push_back(c.name);
  return names;
}

Result<uint64_t> SourceTables::rows(std::string_view table) const { return source_->rows(table); }

Result<std::shared_ptr<const data::Column>> SourceTables::column(std::string_view table,
                                                                 std::string_view column) const {
  return source_->column(table, column);
}

Result<std::shared_ptr<const data::Column>> SourceTables::key_column(std::string_view table) const {
  ASSIGN_OR_RETURN(const data::TableSchema* schema, source_->schema().table(table));
  if (schema->primary.size() != 1) return input_error("table `{}` has no primary key of one column", table);
  return source_->column(table, schema->primary.front());
}

Result<void> SourceTables::prefetch(std::string_view table, std::span<const std::string> columns) const {
  RETURN_IF_ERROR(source_->columns(table, columns));
  return {};
}

namespace {
Error missing() { return usage_error("this program loads tables: give --data tpch:SF or --data FOLDER"); }
}  // namespace

Result<void> NoTables::open(std::string_view) const { return missing(); }
Result<std::vector<std::string>> NoTables::column_names(std::string_view) const { return missing(); }
Result<uint64_t> NoTables::rows(std::string_view) const { return missing(); }
Result<std::shared_ptr<const data::Column>> NoTables::column(std::string_view, std::string_view) const {
  return missing();
}
Result<std::shared_ptr<const data::Column>> NoTables::key_column(std::string_view) const { return missing(); }

}  // namespace rndn::runtime
