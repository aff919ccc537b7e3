// Columns on the host: logical type apart from physical encoding (docs/decisions.md, 8).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontend/types.h"
#include "runtime/data/bytes.h"

namespace rndn::data {

// How elements are stored. Only `plain` is produced so far; code generation reads the others through its load template.
enum class Encoding : uint8_t {
  plain,  // the logical type's own width: bool/char/i8 1, i16 2, i32/f32/date/month/minute/second 4, i64/f64/time/dt 8
          // bytes
  dictionary,  // text: codes of `width` bytes into `dictionary`
  text,        // text: 8 bytes, offset << 24 | length into `pad` (high cardinality; length < 2^24)
};

struct
    Statistics {  // of the stored elements, those of missing rows (0) included: integers, codes of a dictionary; floats:
                  // min/max only, as f64, of what is not NaN
  bool known = false;  // false for text without a dictionary, complex, empty columns, and floats that are all NaN
  int64_t min = 0, max = 0;
  double float_min = 0, float_max = 0;
  bool sorted = false;  // ascending, equal neighbours allowed; floats: and no NaN
  bool dense = false;   // min..max, each exactly once
  bool unique = false;  // ascending and no value twice; not said of columns in another order unless they are dense
  // Of i128, of which nothing above is known.
  bool wide_known = false;
  __int128 wide_min = 0, wide_max = 0;
};

// Distinct values of a text column; a code is a position here. Those that are made of a source are in byte order, so
// that groups and orders of texts are those of codes.
struct Dictionary {
  std::vector<std::string> values;
};

// Elements of one vector at most, on every device: a program that asks for more is wrong, no size in bytes can overflow, and kernels number elements
// in 32 bits, also those of a tile that reaches beyond the end.
inline constexpr uint64_t longest_vector = (uint64_t{1} << 32) - (uint64_t{1} << 16);

uint32_t plain_width(hir::BasicType type);  // bytes per element; complex 16; text 8

struct Column {
  hir::BasicType type{};  // logical element type (foreign keys: of the key)
  Encoding encoding = Encoding::plain;
  uint32_t width = 0;  // bytes per element as stored
  uint64_t rows = 0;
  std::shared_ptr<Bytes> data;             // rows * width bytes
  std::shared_ptr<Dictionary> dictionary;        // dictionary
  std::shared_ptr<Bytes> pad;                    // text
  Statistics statistics;
  // One byte per row: 1, or 0 where the value is missing; null: none is. Missing elements are stored as zero, missing
  // texts as empty ones, which is what HorseIR takes them for.
  std::shared_ptr<Bytes> validity;
  bool has_nulls() const { return validity != nullptr; }
  // Foreign key: row numbers of the referenced rows (i32 when fewer than 2^31 rows), rows * 4 or 8 bytes.
  bool is_foreign_key = false;
  std::string foreign_table;
  std::shared_ptr<Bytes> foreign_rows;
  bool is_part = false;  // some rows of another column, whose memory it has

  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data->data());
  }
  std::string_view text_at(uint64_t row) const;  // text columns
  uint32_t code_at(uint64_t row) const;          // dictionaries
  uint64_t foreign_row(uint64_t row) const;      // foreign keys whose foreign_rows are there
};

// What a program may ask of a column of a table.
enum class ColumnPart : uint8_t {
  values,             // an error where one is missing, but in text
  values_with_zeros,  // zero where one is missing; of a foreign key plain values
  validity            // bool: whether there is a value
};

// A column of bool; it shares the column's validity.
Column validity_of(const Column& column, unsigned threads = 0);

// Zeros that the system gives when they are first touched, so that many threads that fill them share that cost.
std::shared_ptr<Bytes> zeros(size_t size);
// An empty column of `rows` elements, all bytes zero.
Column make_column(hir::BasicType type, uint64_t rows, Encoding encoding = Encoding::plain, uint32_t width = 0);
// Bytes of a dictionary code: 1, 2 or 4.
uint32_t code_width(uint64_t distinct_values);
// Bytes of a foreign row: 4 when the referenced table has fewer than 2^31 rows, else 8.
uint32_t foreign_row_width(uint64_t referenced_rows);
// Fills column.statistics from its data, in one pass (and a bitmap of rows bits, where `dense` hangs on it). Integers
// are read as signed, chars too as all integers of the language; bool and codes as unsigned.
void compute_statistics(Column& column, unsigned threads = 0);

// The same of a column that comes in ranges of rows: each is looked at while it is in the cache, and all are joined in
// their order.
struct RangeStatistics {
  uint64_t rows = 0;
  bool any = false;                      // saw something that is not NaN
  bool ascending = true, strict = true;  // each above the one before
  int64_t min = 0, max = 0, first = 0, last = 0;
  double float_min = 0, float_max = 0, float_first = 0, float_last = 0;
  __int128 wide_min = 0, wide_max = 0;
};
RangeStatistics scan_range(const Column& column, uint64_t first, uint64_t last);
void join_statistics(Column& column, const std::vector<RangeStatistics>& ranges);

}  // namespace rndn::data
