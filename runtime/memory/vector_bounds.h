// The least and the greatest elements of a column's vectors, by which kernels skip tiles (ptx/codegen/skips.cpp).
//
// In: a column of integers, calendar values or floats, with its statistics. Out: {least, greatest} of each bounds_rows rows, as kernels read them, or why
// there are none. Whether they are worth a test is told first, from a sample of vectors: the share of the column's elements that lie within a vector's
// bounds, which is the share of vectors that a search for one element would not skip. One element far from all others changes that little, as it would not
// a part of the range. Beyond most_spanned there are none, and what has them costs nothing.
// NaN is not looked at; missing elements are zeros; -0 and 0 are equal, either is a bound.
// Cost: the sample; then one pass on all cores, of an ascending column the first and the last element of each vector. They are kept beside the column where
// a cache has it with its version (runtime/data/cache.h). Left out: texts, i128, bools, rows of foreign keys, parts of a column that does not ascend.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "libraries/base/system/parallel.h"
#include "runtime/data/column.h"

namespace rndn::runtime {

// Of fewer rows, all tiles are read at once.
inline constexpr uint64_t least_bounded_rows = 1 << 15;
// Of the elements, in a vector's bounds: where it is more, no tile is tested.
inline constexpr double most_spanned = 0.5;

struct Spanned {
  double share = 1;    // of elements in a vector's bounds, on average
  std::string reason;  // a phrase: what that decides; empty: the column has no bounds
};
Spanned spanned_of(const data::Column& column);

struct VectorBounds {
  std::shared_ptr<const data::Bytes> bytes;  // null: they are worth nothing, or there are none
  bool made = false;                         // for this call, from the elements
};
// pool may be null.
VectorBounds vector_bounds_of(const data::Column& column, ThreadPool* pool);

// Those that were asked for, as long as their columns are there.
class ColumnBounds {
 public:
  const VectorBounds& of(const std::shared_ptr<const data::Column>& column, ThreadPool* pool);
  // `to` has the elements that `from` had, and its bounds.
  void move(const data::Column* from, const std::shared_ptr<const data::Column>& to);

 private:
  struct Known {
    std::weak_ptr<const data::Column> column;
    VectorBounds bounds;
  };
  std::map<const data::Column*, Known> known_;
};

}  // namespace rndn::runtime
