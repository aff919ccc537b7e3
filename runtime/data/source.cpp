// The registry of loaded columns: what is loaded when, and which checks its keys have passed.
#include "runtime/data/source.h"

#include <algorithm>
#include <cstdio>

#include "runtime/data/keys.h"

namespace rndn::data {

void SourceOptions::tell(const std::string& message) const {
  if (note)
    note(message);
  else
    std::fprintf(stderr, "note: %s\n", message.c_str());
}

Result<Column> TableLoader::load_as(size_t table, size_t column, hir::BasicType type) {
  const TableSchema& schema = this->schema().tables[table];
  return input_error("column `{}` of table `{}` cannot be read as {}", schema.columns[column].name, schema.name,
                     hir::basic_type_name(type));
}

Result<uint64_t> Source::rows(std::string_view table) {
  ASSIGN_OR_RETURN(const TableSchema* schema, this->schema().table(table));
  const size_t at = schema - this->schema().tables.data();
  std::lock_guard lock(mutex_);
  if (auto known = rows_.find(at); known != rows_.end()) return known->second;
  ASSIGN_OR_RETURN(uint64_t rows, loader_->rows(at));
  rows_[at] = rows;
  return rows;
}

std::optional<uint64_t> Source::rows_at_hand(std::string_view table) const {
  const TableSchema* found = schema().find(table);
  if (!found) return std::nullopt;
  const size_t at = found - schema().tables.data();
  std::lock_guard lock(mutex_);
  if (auto known = rows_.find(at); known != rows_.end()) return known->second;
  return loader_->rows_at_hand(at);
}

Result<std::shared_ptr<const Column>> Source::column(std::string_view table, std::string_view column) {
  std::string name(column);
  Result<std::vector<std::shared_ptr<const Column>>> found = columns(table, {&name, 1});
  if (!found) return found.error();
  return (*found)[0];
}

Result<std::vector<std::shared_ptr<const Column>>> Source::columns(std::string_view table,
                                                                   std::span<const std::string> names,
                                                                   const Shown& shown) {
  ASSIGN_OR_RETURN(const TableSchema* schema, this->schema().table(table));
  const size_t at = schema - this->schema().tables.data();
  std::vector<size_t> positions;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const ColumnSchema* column, this->schema().column(*schema, name));
    positions.push_back(schema->position(*column));
  }
  std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(load(at, positions, shown));
  std::vector<std::shared_ptr<const Column>> found;
  for (size_t position : positions) {
    RETURN_IF_ERROR(resolve(at, position));
    found.push_back(columns_.at({at, position}));
  }
  return found;
}

Result<std::shared_ptr<const Column>> Source::complete_column(std::string_view table, std::string_view name) {
  {
    std::lock_guard lock(mutex_);
    if (const auto of = complete_.find(table); of != complete_.end())
      if (const auto known = of->second.find(name); known != of->second.end()) return known->second;
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const Column> found, column(table, name));
  RETURN_IF_ERROR(complete(*found, table, name));
  std::lock_guard lock(mutex_);
  if (found->is_foreign_key && !found->foreign_rows) {
    const TableSchema& schema = *this->schema().find(table);  // empty texts are values here
    const Key key(&schema - this->schema().tables.data(), schema.position(*schema.find(name)));
    RETURN_IF_ERROR(resolve(key.first, key.second, true));
    found = columns_.at(key);
  }
  complete_[std::string(table)][std::string(name)] = found;
  return found;
}

Result<std::shared_ptr<const Column>> Source::part(std::string_view table, std::string_view name, ColumnPart part,
                                                   std::optional<hir::BasicType> as) {
  if (part != ColumnPart::validity && as) return column_as(table, name, *as, part);
  if (part == ColumnPart::values) return complete_column(table, name);
  ASSIGN_OR_RETURN(std::shared_ptr<const Column> found, column(table, name));
  if (part == ColumnPart::values_with_zeros) return found;
  const TableSchema& schema = *this->schema().find(table);
  std::lock_guard lock(mutex_);
  std::shared_ptr<const Column>& kept =
      validities_[{&schema - this->schema().tables.data(), schema.position(*schema.find(name))}];
  if (!kept) kept = std::make_shared<const Column>(validity_of(*found));
  return kept;
}

Result<std::shared_ptr<const Column>> Source::column_as(std::string_view table, std::string_view name,
                                                        hir::BasicType type, ColumnPart part) {
  ASSIGN_OR_RETURN(const TableSchema* schema, this->schema().table(table));
  ASSIGN_OR_RETURN(const ColumnSchema* column, this->schema().column(*schema, name));
  if (column->type == type) return this->part(table, name, part);
  const size_t at = schema - this->schema().tables.data(), position = schema->position(*column);
  std::shared_ptr<const Column> found;
  {
    std::lock_guard lock(mutex_);
    std::shared_ptr<const Column>& kept = columns_as_[{at, position, type}];
    if (!kept) {
      Result<Column> loaded = loader_->load_as(at, position, type);
      if (!loaded) return loaded.error();
      kept = std::make_shared<const Column>(*std::move(loaded));
    }
    found = kept;
  }
  if (part == ColumnPart::values) RETURN_IF_ERROR(complete(*found, table, name));
  return found;
}

Result<void> Source::complete(const Column& column, std::string_view table, std::string_view name) const {
  const uint64_t row = first_missing(column);
  if (row == no_row) return {};
  const TableSchema& schema = *this->schema().find(table);
  const uint64_t missing = std::count(column.validity->begin(), column.validity->end(), std::byte{0});
  std::lock_guard lock(mutex_);  // the loader may open the file to find the place
  return input_error(
      "{}: column `{}` has no value here{}; HorseIR has no missing values; `@column_value(t, c, 1:bool)` has zeros there",
      loader_->describe(&schema - this->schema().tables.data(), schema.position(*schema.find(name)), row), name,
      missing == 1 ? "" : fmt::format(", nor in {} more rows", missing - 1));
}

bool Source::is_loaded(std::string_view table, std::string_view column) const {
  const TableSchema* schema = this->schema().find(table);
  const ColumnSchema* found = schema ? schema->find(column) : nullptr;
  if (!found) return false;
  std::lock_guard lock(mutex_);
  return columns_.contains({schema - this->schema().tables.data(), schema->position(*found)});
}

Result<std::vector<RowRange>> Source::ranges(std::string_view table,
                                             std::span<const std::string> names) const {
  ASSIGN_OR_RETURN(const TableSchema* schema, this->schema().table(table));
  std::vector<size_t> positions;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const ColumnSchema* column, this->schema().column(*schema, name));
    positions.push_back(schema->position(*column));
  }
  return ranges_at(schema - this->schema().tables.data(), positions);
}

Result<std::shared_ptr<Source>> Source::of_ranges(std::string_view table,
                                                  std::span<const size_t> ranges) const {
  ASSIGN_OR_RETURN(const TableSchema* schema, this->schema().table(table));
  auto loader = loader_of_ranges(schema - this->schema().tables.data(), ranges);
  if (!loader) return Error{Fault::internal, fmt::format("ranges of table `{}`, which has none", table)};
  return std::make_shared<Source>(std::move(loader));
}

std::vector<std::shared_ptr<const Column>> Source::loaded() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<const Column>> all;
  for (const auto* columns : {&columns_, &validities_})
    for (const auto& [key, column] : *columns)
      if (column) all.push_back(column);
  for (const auto& [key, column] : columns_as_)
    if (column) all.push_back(column);
  return all;
}

bool Source::replace(const Column& column, const std::shared_ptr<const Column>& with) {
  std::lock_guard lock(mutex_);
  bool found = false;
  const auto in = [&](auto& columns) {
    for (auto& [key, kept] : columns)
      if (kept.get() == &column) kept = with, found = true;
  };
  in(columns_);
  in(columns_as_);
  for (auto& [table, columns] : complete_) in(columns);
  return found;
}

Result<void> Source::load(size_t table, std::span<const size_t> positions, const Shown& shown) {
  const TableSchema& schema = this->schema().tables[table];
  std::vector<size_t> wanted(positions.begin(), positions.end()), missing;
  const bool check = !schema.primary.empty() && !loader_->keys_hold(table) && !checked_.contains(table);
  if (check)
    for (const std::string& name : schema.primary) wanted.push_back(schema.position(*schema.find(name)));
  for (size_t position : wanted)
    if (!columns_.contains({table, position}) && std::find(missing.begin(), missing.end(), position) == missing.end())
      missing.push_back(position);
  if (!missing.empty()) {
    ASSIGN_OR_RETURN(std::vector<Column> loaded, shown ? loader_->load(table, missing, shown) : loader_->load(table, missing));
    rows_[table] = loaded[0].rows;
    for (size_t i = 0; i < missing.size(); ++i)
      columns_[{table, missing[i]}] = std::make_shared<const Column>(std::move(loaded[i]));
  }
  if (check) {
    RETURN_IF_ERROR(check_primary(table));
    checked_.insert(table);
  }
  return {};
}

// What a schema says of its keys others rely on.
Result<void> Source::check_primary(size_t table) const {
  const TableSchema& schema = this->schema().tables[table];
  std::vector<const Column*> key;
  std::string name;
  size_t position = 0;
  for (const std::string& part : schema.primary) {
    position = schema.position(*schema.find(part));
    key.push_back(columns_.at({table, position}).get());
    name += (name.empty() ? "" : ", ") + part;
    if (const uint64_t row = first_missing(*key.back()); row != no_row)
      return input_error("{}: `{}` has no value here; the primary key of table `{}` needs one",
                         loader_->describe(table, position, row), part, schema.name);
  }
  const uint64_t row = first_repeated(key);
  if (row == no_row) return {};
  std::string value;
  for (const Column* column : key) value += (value.empty() ? "" : ", ") + value_text(*column, row);
  return input_error("{}: {} stands a second time in `{}`, the primary key of table `{}`",
                     loader_->describe(table, schema.position(*schema.find(schema.primary[0])), row), value, name,
                     schema.name);
}

// Gives a foreign key its row numbers. The parent's key is needed as loaded only, so that keys may refer to each other in a circle.
// One that misses values has row numbers only where empty texts are values, too.
Result<void> Source::resolve(size_t table, size_t position, bool with_missing) {
  const Column& child = *columns_.at({table, position});
  if (!child.is_foreign_key || child.foreign_rows || (child.has_nulls() && !with_missing)) return {};
  const Schema& schema = this->schema();
  const ColumnSchema& column = schema.tables[table].columns[position];
  const TableSchema& parent = *schema.find(column.foreign_table);
  const size_t parent_table = &parent - schema.tables.data(),
               parent_key = parent.position(*parent.find(column.foreign_key));
  RETURN_IF_ERROR(load(parent_table, {&parent_key, 1}));

  std::string child_name = schema.tables[table].name + "." + column.name,
              parent_name = parent.name + "." + column.foreign_key;
  auto describe = [&](bool in_parent, uint64_t row) {
    return in_parent ? loader_->describe(parent_table, parent_key, row) : loader_->describe(table, position, row);
  };
  Column resolved = child;  // shares the data
  ASSIGN_OR_RETURN(resolved.foreign_rows, find_foreign_rows(child, *columns_.at({parent_table, parent_key}),
                                                            {child_name, parent_name}, describe));
  if (const FormsKept* kept = child.data ? child.data->forms() : nullptr)  // the parent decides, too
    resolved.foreign_rows->keep_forms({kept->directory, child_name + ".rows", "rows of " + kept->origin});
  columns_[{table, position}] = std::make_shared<const Column>(std::move(resolved));
  return {};
}

}  // namespace rndn::data
