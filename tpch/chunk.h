// Makes any column of a range of rows, alone. The heart of the generator: chunk.cpp has one recipe per column.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tpch/columns.h"
#include "tpch/random.h"
#include "tpch/text_pool.h"

namespace rndn::tpch {

// The sizes that depend on the scale factor.
struct Sizes {
  explicit Sizes(double scale);
  uint64_t suppliers, parts, customers, orders;
  int64_t clerks;
  // Rows of the table, or for partsupp and lineitem of the table that drives it: part (four rows each), orders (one to
  // seven).
  uint64_t driving_rows(Table table) const;
};
// Says what is wrong with a scale factor.
Result<void> check_scale(double scale);

// A range of rows of a driving table (region, nation, supplier, part, customer, orders) with the rows of partsupp or
// lineitem that belong to them. Columns are made on demand and kept until the next `start`; recipes use the columns
// they depend on. Not thread-safe: one per thread.
class Chunk {
 public:
  static constexpr uint64_t preferred_rows = 1024;  // driving rows; keeps a chunk's numbers in the second-level cache

  // `pool` may be null as long as no comment is asked for.
  Chunk(const Sizes& sizes, const TextPool* pool);

  void start(uint64_t first, uint64_t count);
  uint64_t first() const { return first_; }
  uint64_t count() const { return count_; }
  // One number per row of the column's table, as its Form says; valid until the next `start`.
  std::span<const int64_t> column(ColumnId id);
  uint64_t rows(Table table);
  // Appends the text of a value of a column with a text form.
  char* write_text(const ColumnInfo& info, int64_t value, char* out) const;
  static constexpr size_t longest_text = 208;  // bytes that write_text needs

 private:
  void make(ColumnId id, std::vector<int64_t>& out);
  template <class F>
  void each_row(Stream stream, F&& value, std::vector<int64_t>& out);
  template <class F>
  void each_child(Stream stream, uint32_t draws, F&& value, std::vector<int64_t>& out);
  void draw(Stream stream, int64_t low, int64_t high, std::vector<int64_t>& out);
  void draw_lines(uint32_t seed, int64_t low, int64_t high, std::vector<int64_t>& out);
  void cut_comments(Stream stream, int average_length, std::vector<int64_t>& out);
  void make_addresses(uint32_t seed, std::vector<int64_t>& out);
  void make_phones(uint32_t seed, ColumnId nation, std::vector<int64_t>& out);
  void make_supplier_comments(std::vector<int64_t>& out);
  std::span<const uint8_t> line_counts();

  struct Made {
    bool valid = false;
    std::vector<int64_t> values;
  };
  const Sizes sizes_;
  const TextPool* pool_;
  uint64_t first_ = 0, count_ = 0;
  std::vector<Made> made_;            // by ColumnId
  std::vector<uint8_t> line_counts_;  // per order; empty: not made
  uint64_t lines_ = 0;
  std::string text_;  // of the columns of form `made`
};

// Lines of the orders [first, first + count): the rows of lineitem that belong to them.
uint64_t count_lines(uint64_t first, uint64_t count);

}  // namespace rndn::tpch
