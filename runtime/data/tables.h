// Where programs get their tables: a source of the data registry, or none.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/ir.h"
#include "libraries/base/report/timing.h"
#include "runtime/data/source.h"

namespace rndn::data {

// Where load_table and column_value get their data. Implemented over the data registry (below) and by tests.
// Errors are finished sentences: an unknown table or column is the input's fault, missing --data the usage's.
class Tables {
 public:
  virtual ~Tables() = default;
  // Succeeds when the table exists; loads nothing.
  virtual Result<void> open(std::string_view table) const = 0;
  virtual Result<std::vector<std::string>> column_names(std::string_view table) const = 0;
  virtual Result<uint64_t> rows(std::string_view table) const = 0;
  // Loads the column when it is not there yet.
  virtual Result<std::shared_ptr<const Column>> column(std::string_view table, std::string_view column) const = 0;
  // The key column that foreign keys into this table refer to (its single primary key).
  virtual Result<std::shared_ptr<const Column>> key_column(std::string_view table) const = 0;
  // A hint: these columns will be asked for, and are cheaper to load together.
  virtual Result<void> prefetch(std::string_view table, std::span<const std::string> columns) const {
    (void)table, (void)columns;
    return {};
  }
};

// Tables of a source; thread-safe as the source is.
class SourceTables final : public Tables {
 public:
  explicit SourceTables(std::shared_ptr<Source> source) : source_(std::move(source)) {}
  Result<void> open(std::string_view table) const override;
  Result<std::vector<std::string>> column_names(std::string_view table) const override;
  Result<uint64_t> rows(std::string_view table) const override;
  Result<std::shared_ptr<const Column>> column(std::string_view table, std::string_view column) const override;
  Result<std::shared_ptr<const Column>> key_column(std::string_view table) const override;
  Result<void> prefetch(std::string_view table, std::span<const std::string> columns) const override;

 private:
  std::shared_ptr<Source> source_;
};

// No tables: every request says which flag is missing (fault usage).
class NoTables final : public Tables {
 public:
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
  Result<void> open(std::string_view table) const override { return tables_.open(table); }
  Result<std::vector<std::string>> column_names(std::string_view table) const override {
    return tables_.column_names(table);
  }
  Result<uint64_t> rows(std::string_view table) const override;
  Result<std::shared_ptr<const Column>> column(std::string_view table, std::string_view column) const override;
  Result<std::shared_ptr<const Column>> key_column(std::string_view table) const override;
  Result<void> prefetch(std::string_view table, std::span<const std::string> columns) const override;

 private:
  const Tables& tables_;
  Timings& timings_;
};

// The columns that main asks for, per table, in the order of their first use; those whose names are literals. A hint for prefetch.
std::map<std::string, std::vector<std::string>> columns_read(const hir::Program& program);

}  // namespace rndn::data
