// Columns on the host: logical type apart from physical encoding (design.md, decision 8).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontend/types.h"

namespace rndn::data {

// How elements are stored. Only `plain` is produced so far; code generation reads the others through its load template.
enum class Encoding : uint8_t {
  plain,       // the logical type's own width: bool/char/i8 1, i16 2, i32/f32/date/month/minute/second 4, i64/f64/time/dt 8 bytes
  dictionary,  // text: codes of `width` bytes into `dictionary`
  text,        // text: 8 bytes, offset << 24 | length into `pad` (high cardinality; length < 2^24)
};

struct Statistics {       // of the stored integers; floats: min/max only, as f64
  bool known = false;
  int64_t min = 0, max = 0;
  double float_min = 0, float_max = 0;
  bool sorted = false;    // ascending
  bool dense = false;     // min..max, each exactly once
};

// Distinct values of a text column, in order of first occurrence; a code is a position here.
struct Dictionary {
  std::vector<std::string> values;
};

uint32_t plain_width(hir::BasicType type);  // bytes per element; complex 16; text 8

struct Column {
  hir::BasicType type{};            // logical element type (foreign keys: of the key)
  Encoding encoding = Encoding::plain;
  uint32_t width = 0;               // bytes per element as stored
  uint64_t rows = 0;
  std::shared_ptr<std::vector<std::byte>> data;   // rows * width bytes
  std::shared_ptr<Dictionary> dictionary;         // dictionary
  std::shared_ptr<std::string> pad;               // text
  Statistics statistics;
  // Foreign key: row numbers of the referenced rows (i32 when fewer than 2^31 rows), rows * 4 or 8 bytes.
  bool is_foreign_key = false;
  std::string foreign_table;
  std::shared_ptr<std::vector<std::byte>> foreign_rows;

  template <class T>
  const T* as() const { return reinterpret_cast<const T*>(data->data()); }
  std::string_view text_at(uint64_t row) const;   // text columns
};

}  // namespace rndn::data
