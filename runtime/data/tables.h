// Where programs get their tables: a source of the data registry, or none.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/ir.h"
#include "libraries/base/report/timing.h"
#include "runtime/data/sources.h"
#include "runtime/data/value.h"

namespace rndn::data {

// Where load_table and column_value get their data. Implemented over the data registry (below) and by tests.
// Errors are finished sentences: an unknown table or column is the input's fault, missing --data the usage's.
class Tables {
 public:
  explicit Tables(SourceOptions for_files = {}) : files_(std::move(for_files)) {}
  virtual ~Tables() = default;
  // What load_csv reads.
  virtual Files& files() const { return files_; }
  // Succeeds when the table exists; loads nothing.
  virtual Result<void> open(std::string_view table) const = 0;
  virtual Result<std::vector<std::string>> column_names(std::string_view table) const = 0;
  virtual Result<uint64_t> rows(std::string_view table) const = 0;
  // Loads the column when it is not there yet.
  virtual Result<std::shared_ptr<const Column>> column(std::string_view table, std::string_view column) const = 0;
  // A part of the column; here: of tables in which no value is missing.
  virtual Result<std::shared_ptr<const Column>> part(std::string_view table, std::string_view column,
                                                     ColumnPart part) const;
  // Whether the column is in memory already.
  virtual bool is_loaded(std::string_view table, std::string_view column) const {
    return (void)table, (void)column, false;
  }
  // The key column that foreign keys into this table refer to (its single primary key).
  virtual Result<std::shared_ptr<const Column>> key_column(std::string_view table) const = 0;
  // A hint: these columns will be asked for, and are cheaper to load together.
  virtual Result<void> prefetch(std::string_view table, std::span<const std::string> columns) const {
    (void)table, (void)columns;
    return {};
  }
  // From now on `with` is given for the column: the same elements, kept in another way. False: it is not among those kept here.
  virtual bool replace(const Column& column, std::shared_ptr<const Column> with) const {
    return (void)column, (void)with, false;
  }

 private:
  mutable Files files_;
};

// What is known and loaded of a table with a `source`: of load_table or load_csv.
Result<uint64_t> rows_of(const Value& table, const Tables& tables);
Result<std::vector<std::string>> names_of(const Value& table, const Tables& tables);
// A column of a file is read as the type `as`, if there is one.
Result<Value> column_of(const Value& table, const std::string& column, const Tables& tables,
                        std::optional<hir::BasicType> as = {}, ColumnPart part = ColumnPart::values);
// The value with the columns of such a table, or of a ktable of such; another as it is.
Result<Value> with_columns(Value value, const Tables& tables);

// Tables of a source; thread-safe as the source is.
class SourceTables final : public Tables {
 public:
  explicit SourceTables(std::shared_ptr<Source> source, SourceOptions for_files = {})
      : Tables(std::move(for_files)), source_(std::move(source)) {}
  Result<void> open(std::string_view table) const override;
  Result<std::vector<std::string>> column_names(std::string_view table) const override;
  Result<uint64_t> rows(std::string_view table) const override;
  Result<std::shared_ptr<const Column>> column(std::string_view table, std::string_view column) const override;
  Result<std::shared_ptr<const Column>> part(std::string_view table, std::string_view column,
                                             ColumnPart part) const override;
  Result<std::shared_ptr<const Column>> key_column(std::string_view table) const override;
  Result<void> prefetch(std::string_view table, std::span<const std::string> columns) const override;
  bool is_loaded(std::string_view table, std::string_view column) const override {
    return source_->is_loaded(table, column);
  }
  bool replace(const Column& column, std::shared_ptr<const Column> with) const override {
    return source_->replace(column, std::move(with));
  }

 private:
  std::shared_ptr<Source> source_;
};

// Tables of which some are those of other sources, each the table of its name.
class OverlaidTables final : public Tables {
 public:
  using Sources = std::map<std::string, std::shared_ptr<Source>, std::less<>>;
  OverlaidTables(const Tables& all, const Sources& others) : all_(all) {
    for (const auto& [name, source] : others) others_.emplace(name, source);
  }
  Files& files() const override { return all_.files(); }
  Result<void> open(std::string_view table) const override { return of(table).open(table); }
  Result<std::vector<std::string>> column_names(std::string_view table) const override {
    return of(table).column_names(table);
  }
  Result<uint64_t> rows(std::string_view table) const override { return of(table).rows(table); }
  Result<std::shared_ptr<const Column>> column(std::string_view table, std::string_view column) const override {
    return of(table).column(table, column);
  }
  Result<std::shared_ptr<const Column>> part(std::string_view table, std::string_view column,
                                             ColumnPart part) const override {
    return of(table).part(table, column, part);
  }
  Result<std::shared_ptr<const Column>> key_column(std::string_view table) const override {
    return of(table).key_column(table);
  }
  bool is_loaded(std::string_view table, std::string_view column) const override {
    return of(table).is_loaded(table, column);
  }
  Result<void> prefetch(std::string_view table, std::span<const std::string> columns) const override {
    return of(table).prefetch(table, columns);
  }
  bool replace(const Column& column, std::shared_ptr<const Column> with) const override {
    for (const auto& [name, other] : others_)
      if (other.replace(column, with)) return true;
    return all_.replace(column, std::move(with));
  }

 private:
  const Tables& of(std::string_view table) const {
    const auto other = others_.find(table);
    return other == others_.end() ? all_ : other->second;
  }
  const Tables& all_;
  std::map<std::string, SourceTables, std::less<>> others_;
};

// No tables: every request says which flag is missing (fault usage).
class NoTables final : public Tables {
 public:
  using Tables::Tables;
  Result<void> open(std::string_view table) const override;
  Result<std::vector<std::string>> column_names(std::string_view table) const override;
  Result<uint64_t> rows(std::string_view table) const override;
  Result<std::shared_ptr<const Column>> column(std::string_view table, std::string_view column) const override;
  Result<std::shared_ptr<const Column>> key_column(std::string_view table) const override;
};

// Other tables, with the time of loading measured as Phase::data.
class TimedTables final : public Tables {
 public:
  TimedTables(const Tables& tables, Timings& timings) : tables_(tables), timings_(timings) {}
  Files& files() const override { return tables_.files(); }
  Result<void> open(std::string_view table) const override { return tables_.open(table); }
  Result<std::vector<std::string>> column_names(std::string_view table) const override {
    return tables_.column_names(table);
  }
  Result<uint64_t> rows(std::string_view table) const override;
  Result<std::shared_ptr<const Column>> column(std::string_view table, std::string_view column) const override;
  Result<std::shared_ptr<const Column>> part(std::string_view table, std::string_view column,
                                             ColumnPart part) const override;
  Result<std::shared_ptr<const Column>> key_column(std::string_view table) const override;
  Result<void> prefetch(std::string_view table, std::span<const std::string> columns) const override;

 private:
  const Tables& tables_;
  Timings& timings_;
};

// The columns that main asks for, per table of load_table and file of load_csv, in the order of their first use; those whose names are
// literals. A hint for what is cheaper to load together.
struct ColumnsRead {
  std::map<std::string, std::vector<std::string>> tables, files;
};
ColumnsRead columns_read(const hir::Program& program);
// Loads them; what goes wrong is met again, and said, where a column is asked for.
void prefetch(const ColumnsRead& columns, const Tables& tables);

}  // namespace rndn::data
