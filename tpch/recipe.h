// Columns of generated tables on their way into memory or files: what TPC-H and what is made of the
// same streams of random numbers (ssb/) share.
//
//   TableRecipe orders{.name = "orders", .scale = 1, .sizes = Sizes(1), ..};
//   make_columns(orders, threads, progress);
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
  bool cents = false;       // f64: numbers are hundredths
  bool reads_pool = false;  // numbers are pieces of the text pool, or text is made of it
  std::function<int64_t(int64_t key)> referenced_row = {};  // foreign keys
};

// A table of one scale, or some of its columns; rows are made by the chunks of the table that drives it.
struct TableRecipe {
  std::string name;
  double scale = 0;  // for messages
  Sizes sizes;
  uint64_t driving_rows = 0;
  std::function<uint64_t(uint64_t first, uint64_t count)> rows_of;  // that belong to driving rows
  std::vector<Recipe> columns;

  uint64_t rows() const;  // may cost a pass over the driving rows
  bool needs_pool() const;
};

// Columns of a table of TPC-H, in the order of their names. The schema outlives the recipe.
Result<TableRecipe> recipe_of(Table table, const data::Schema& schema, std::span<const std::string> names, double scale);

// Keys of orders are 32 bits wide: an error where they do not fit.
Result<void> check_order_keys(std::string_view table, const Sizes& sizes, double scale);

// The columns in the order of their recipes, with statistics. Foreign keys carry their referenced
// rows. Memory that is not there is an error of the world.
Result<std::vector<data::Column>> make_columns(const TableRecipe& table, unsigned threads, bool progress);

// Writes DIRECTORY/NAME.tbl for every table, and schema.json, with which the folder is a source; makes
// the directory. `what` is named on stderr when it takes longer than a second.
Result<void> write_folder(std::string_view what, std::span<const TableRecipe> tables, const data::Schema& schema,
                          const std::string& directory, unsigned threads, bool progress);

}  // namespace rndn::tpch
