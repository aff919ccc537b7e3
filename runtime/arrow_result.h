// Results of SQL queries in Arrow's form (runtime/data/arrow_abi.h).
//
//   ASSIGN_OR_RETURN(ArrowArrayStream stream, ArrowResult::batches({grid}));
//
// A stream of batches, each made when it is asked for. Numbers lie where the result has them; text,
// bits, decimals and integers that are kept in another width are made, for the rows of the batch, and
// go with it. So a stream holds no more beside the result than the batches that its reader keeps.
// `make` has all rows in one piece, as tables are kept. Types: SQL's own; DECIMAL and HUGEINT are
// decimal128, TIME time64[us], TIMESTAMP timestamp[us], with the zone UTC for TIMESTAMPTZ, VARCHAR
// utf8 (large_utf8 from 2 GiB on).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/sql/translate.h"
#include "libraries/base/errors/result.h"
#include "runtime/data/arrow_abi.h"
#include "runtime/print_result.h"

namespace rndn::runtime {

class ArrowResult {
 public:
  enum class Texts : uint8_t { as_needed, large };  // large: large_utf8, also of few
  static Result<std::shared_ptr<const ArrowResult>> make(const Grid& grid,
                                                         Texts texts = Texts::as_needed);

  struct Column {
    std::string name, format;
    int64_t missing = 0;
    std::vector<const void*> buffers;                 // the bitmap of validity first
    std::vector<std::shared_ptr<const void>> owners;  // of the buffers
  };
  std::vector<Column> columns;
  uint64_t rows = 0;

  // Rows of a batch: a row group of Parquet files as DuckDB writes them, so that one comes of each.
  static constexpr uint64_t batch_rows = 122'880;
  // The rows of results of the same columns; of each, one batch where it has no row.
  static Result<ArrowArrayStream> batches(std::vector<Grid> results,
                                          uint64_t most_rows = batch_rows);
  // What is made already.
  static ArrowArrayStream stream(std::vector<std::shared_ptr<const ArrowResult>> results);
  static ArrowSchema schema(std::shared_ptr<const ArrowResult> result);
};

}  // namespace rndn::runtime
