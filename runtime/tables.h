// Where programs get their tables: a source of the data registry, or none.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/ir.h"
#include "libraries/base/timing.h"
#include "runtime/data/source.h"
#include "runtime/reference/reference.h"

namespace rndn::runtime {

// Tables of a source; thread-safe as the source is.
class SourceTables final : public reference::Tables {
 public:
  explicit SourceTables(std::shared_ptr<data::Source> source) : source_(std::move(source)) {}
  Result<void> open(std::string_view table) const override;
  Result<std::vector<std::string>> column_names(std::string_view table) const override;
  Result<uint64_t> rows(std::string_view table) const override;
  Result<std::shared_ptr<const data::Column>> column(std::string_view table, std::string_view column) const override;
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view table) const override;
  Result<void> prefetch(std::string_view table, std::span<const std::string> columns) const override;

 private:
  std::shared_ptr<data::Source> source_;
};

// No tables: every request says which flag is missing (fault usage).
class NoTables final : public reference::Tables {
 public:
  Result<void> open(std::string_view table) const override;
  Result<std::vector<std::string>> column_names(std::string_view table) const override;
  Result<uint64_t> rows(std::string_view table) const override;
  Result<std::shared_ptr<const data::Column>> column(std::string_view table, std::string_view column) const override;
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view table) const override;
};

// Other tables, with the time of loading measured as Phase::data.
class TimedTables final : public reference::Tables {
 public:
  TimedTables(const reference::Tables& tables, Timings& timings) : tables_(tables), timings_(timings) {}
  Result<void> open(std::string_view table) const override { return tables_.open(table); }
  Result<std::vector<std::string>> column_names(std::string_view table) const override {
    return tables_.column_names(table);
  }
  Result<uint64_t> rows(std::string_view table) const override;
  Result<std::shared_ptr<const data::Column>> column(std::string_view table, std::string_view column) const override;
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view table) const override;
  Result<void> prefetch(std::string_view table, std::span<const std::string> columns) const override;

 private:
  const reference::Tables& tables_;
  Timings& timings_;
};

// The columns that main asks for, per table, in the order of their first use; those whose names are literals. A hint for prefetch.
std::map<std::string, std::vector<std::string>> columns_read(const hir::Program& program);

}  // namespace rndn::runtime
