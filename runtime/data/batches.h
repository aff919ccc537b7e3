// Tables whose columns come in batches of rows, from several threads at once and in no order.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<TableLoader> loader, open_batches("t", std::move(source)));
//
// The reader of files behind a BatchSource decodes on all cores; each batch goes into its place in
// the columns on the thread that decoded it. Text gets a dictionary on the way: each thread numbers
// the texts that it meets, and the numbers are joined at the end, in the order in which the texts
// first stand in the column, whatever thread came first. Where a column has too many distinct texts
// (dictionary_limit), its remaining batches are copied as they are. Cost: one pass over what is
// read, one over the columns for their statistics, one over codes of text.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/arrow_types.h"
#include "runtime/data/source.h"

namespace rndn::data {

// Values side by side, as the column's ArrowFormat says, and a bit for each that is there.
struct BatchVector {
  const void* values;
  const void* validity;  // null: all are there
};
// Valid during the call.
struct Batch {
  uint64_t first, rows;  // rows of the table
  std::span<const BatchVector> columns;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  struct Column {
    std::string name;
    ArrowType type;
  };
  std::vector<Column> columns;
  std::vector<TableSchema::Refused> refused;
  std::string place;  // for messages: "orders.parquet"

  virtual Result<uint64_t> rows() = 0;
  virtual std::optional<uint64_t> rows_at_hand() const = 0;
  // Calls `begin` with the number of rows, then `take` until it has seen each of them once.
  using Begin = std::function<Result<void>(uint64_t rows)>;
  using Take = std::function<Result<void>(const Batch&)>;
  virtual Result<void> read(std::span<const size_t> columns, const Begin& begin,
                            const Take& take) = 0;
  // Columns that the source makes itself, whole and with their statistics, before `read` is asked
  // for those that it leaves out. `shown`, if there is one, hears of each as TableLoader::load says.
  virtual Result<std::vector<std::optional<data::Column>>> make(std::span<const size_t> columns,
                                                                const Shown&) {
    return std::vector<std::optional<data::Column>>(columns.size());
  }
  // As TableLoader has them; only where `make` makes all of the columns.
  virtual std::vector<RowRange> ranges(std::span<const size_t>) const { return {}; }
  virtual std::unique_ptr<BatchSource> of_ranges(std::span<const size_t>) const { return nullptr; }
  virtual std::string describe(uint64_t row) = 0;  // "orders.parquet: row 17"
  // Names the contents, for a cache; empty: not to be cached.
  virtual std::string fingerprint() const = 0;
};

// Errors of fault input where there is no column that SQL has a type for, or two have one name.
Result<std::unique_ptr<TableLoader>> open_batches(const std::string& table,
                                                  std::unique_ptr<BatchSource> source);

}  // namespace rndn::data
