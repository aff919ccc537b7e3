// Arrow's formats, a row each, and how the values of arrays and of DuckDB's vectors lie.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/types.h"
#include "runtime/data/arrow_abi.h"
#include "runtime/data/schema.h"

namespace rndn::data {

// How the elements of an Arrow array lie.
enum class ArrowLayout : uint8_t {
  none,     // no values: all are missing
  bits,     // one bit each
  bytes,    // bool, one byte each
  signed_,  // integers of `bytes`
  unsigned_,
  floats,
  decimal,  // integers of `bytes`, 2 to 32
  text,     // offsets of `bytes` and characters
  view,     // records of 16 bytes, and characters apart
  pointers,  // the same with an address in place of where the characters are
};

struct ArrowFormat {
  std::string_view text;  // of the record; ends in `:` or `,` where more follows
  std::string_view name;  // as people call it
  ArrowLayout layout;
  uint8_t bytes;
  hir::BasicType stored;
  Meaning meaning = Meaning::number;
  int64_t mul = 1, div = 1;  // stored = value * mul / div, which must be whole
};

// What becomes of a column.
struct ArrowType {
  const ArrowFormat* format = nullptr;  // of the values, with a dictionary of these
  std::optional<Decimal> decimal;
  const ArrowFormat* codes = nullptr;  // of a dictionary's indices; null: no dictionary
};

// Of a format whose values may be beyond 64 bits: the one that keeps them in 64 bits, or in 128.
// Null: none is.
const ArrowFormat* narrow_format(const ArrowFormat& format);
const ArrowFormat* wide_format(const ArrowFormat& format);

// The type of a column, or, where there is none, why in `refused`: the type by its name.
std::optional<ArrowType> arrow_type(const ArrowSchema& schema, std::string& refused);

}  // namespace rndn::data
