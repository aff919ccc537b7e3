// Columns of generated tables on their way into memory: what TPC-H and what is made of the same
// streams of random numbers (ssb/) share.
//
//   const Sizes sizes(scale);
//   make_columns({.table = "orders", ..}, sizes, recipes, false, threads, progress);
//
// All columns of a table are filled in one parallel pass over its chunks (chunk.h).
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/column.h"
#include "runtime/data/schema.h"
#include "tpch/chunk.h"

namespace rndn::tpch {

struct Recipe {
  const data::ColumnSchema* schema = nullptr;
  // One number per row of the chunk. `scratch` may hold them; they are valid until its next use.
  std::function<std::span<const int64_t>(Chunk&, std::vector<int64_t>& scratch)> values;
  // Text: appends what a number stands for, at most Chunk::longest_text bytes.
  std::function<char*(const Chunk&, int64_t value, char* out)> write_text = {};
  // Text of few values: one more than the greatest number that stands for one; else 0.
  uint64_t range = 0;
  bool cents = false;                                       // f64: numbers are hundredths
  std::function<int64_t(int64_t key)> referenced_row = {};  // foreign keys
};

// The rows of a table, by the chunks of the table that drives it.
struct Extent {
  std::string_view table;
  double scale = 0;  // for messages
  uint64_t driving_rows = 0;
  std::function<uint64_t(uint64_t first, uint64_t count)> rows;  // that belong to driving rows
};

// Keys of orders are 32 bits wide: an error where they do not fit.
Result<void> check_order_keys(std::string_view table, const Sizes& sizes, double scale);

// The columns in the order of their recipes, with statistics. Foreign keys carry their referenced
// rows. `needs_pool`: recipes read the text pool. Memory that is not there is an error of the
// world.
Result<std::vector<data::Column>> make_columns(const Extent& extent, const Sizes& sizes,
                                               std::span<const Recipe> recipes, bool needs_pool,
                                               unsigned threads, bool progress);

}  // namespace rndn::tpch
