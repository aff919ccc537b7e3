// Rows of one or two tables in parts by a hash of their keys, on the host: equal keys are in parts
// of the same number.
//
//   RowParts left({key}, as, 64), right({other_key}, as, 64);
//   left.rows(3), right.rows(3);       // ascending; no other pairs of rows can be equal
//
// Keys are hashed as the elements of the types `as`, in which both sides are compared: 1, 1.0 and
// -0.0 beside 0.0 are equal. Words are mixed as by SplitMix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014). Without keys all rows are in part 0.
// Cost: one pass over the keys on all cores, and a counting sort of the rows.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/data/value.h"

namespace rndn::runtime {

class RowParts {
 public:
  // `keys`: vectors of `rows` elements, of real numbers, calendar values or text. Parts: 2^bits.
  RowParts(std::span<const data::Value> keys, std::span<const hir::BasicType> as, uint64_t rows,
           unsigned bits);

  std::span<const uint32_t> rows(size_t part) const {
    return std::span(rows_).subspan(begins_[part], begins_[part + 1] - begins_[part]);
  }

 private:
  std::vector<uint64_t> begins_;
  std::vector<uint32_t> rows_;
};

}  // namespace rndn::runtime
