// Values of Arrow arrays, put into columns.
//
//   for (const Piece& p : pieces) put_values(p, format, column, failure);     // any thread, any order
//   text_of(array, format, row)                                               // of text, a row's
//
// Vectors of DuckDB are arrays, too: arrow_types.h has layouts for what differs.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/data/arrow_types.h"
#include "runtime/data/column.h"

namespace rndn::data {

inline constexpr uint64_t longest_text = (1 << 24) - 1;           // bytes
inline constexpr uint64_t longest_pad = (uint64_t{1} << 40) - 1;  // bytes, all of a column's text

inline bool bit(const void* bits, uint64_t at) {
  return static_cast<const uint8_t*>(bits)[at / 8] >> (at % 8) & 1;
}

// Rows of an array, from `first` on (which counts the array's own offset).
struct Piece {
  const ArrowArray* array;
  uint64_t first, rows;
  uint64_t at;       // the row of the column that the first one is
  uint64_t pad = 0;  // where its characters go

  const void* buffer(int64_t i) const { return i < array->n_buffers ? array->buffers[i] : nullptr; }
  // Null: all are there.
  const void* validity() const {
    return array->null_count == 0 || array->n_buffers == 0 ? nullptr : array->buffers[0];
  }
  template <class T>
  const T* values() const {
    return static_cast<const T*>(buffer(1)) + first;
  }
};

struct FailedRow {
  uint64_t row;
  std::string reason;
};

// The first of the failures that threads meet.
class FirstFailedRow {
 public:
  void meet(uint64_t row, std::string reason) {
    std::lock_guard lock(mutex_);
    if (!first_ || row < first_->row) first_ = FailedRow{row, std::move(reason)};
  }
  const std::optional<FailedRow>& get() const { return first_; }

 private:
  std::mutex mutex_;
  std::optional<FailedRow> first_;
};

inline bool is_there(const Piece& p, uint64_t i) {
  const void* validity = p.validity();
  return !validity || bit(validity, p.first + i);
}

// What is wrong with an array of the type, of which rows up to `end` are wanted, as far as its
// records tell: counts, offsets and pointers. How long buffers are they do not say. Empty: nothing.
std::string flaw_of(const ArrowArray* array, const ArrowType& type, uint64_t end);
// The same of the places of its texts, in one pass over them; a failure names the row.
void check_texts(const Piece& p, const ArrowFormat& format, FirstFailedRow& failure);
// Whether texts whose places are right are UTF-8.
void check_utf8(const Piece& p, const ArrowFormat& format, FirstFailedRow& failure);

// The rows of the piece, of any layout but text, where the column has them. What stands under
// missing values is left to mark_missing.
void put_values(const Piece& p, const ArrowFormat& format, Column& out, FirstFailedRow& failure);
// Which of them are there, in a validity that the column has; zeros in place of the others.
void mark_missing(const Piece& p, const ArrowFormat& format, Column& out);
// A validity without missing rows is none.
void keep_validity_if_needed(Column& column);

// The text of a row, counted as the array does; only where it is not missing.
std::string_view text_of(const ArrowArray& array, const ArrowFormat& format, uint64_t row);
inline bool is_text(const ArrowFormat& format) {
  return format.layout == ArrowLayout::text || format.layout == ArrowLayout::view ||
         format.layout == ArrowLayout::pointers;
}

}  // namespace rndn::data
