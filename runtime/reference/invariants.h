// What must hold of the result of an order, a grouping or a join, whatever has made it: looked at
// without doing the work again.
//
//   const Held held = check_operator(hir::Builtin::order, {column, directions}, permutation);
//   held.broken;                       // "rows 3 and 7 stand in the wrong order", or empty
//
// order, top: every row once, neighbours in order, equal rows by number; of the first k rows no other
// one comes before the last of them. group: every row in one cell, ascending, rows of a cell equal to
// its key, keys ascending and all different. join_index: every pair matches, pairs ascend by right
// and then left row, and there are as many as the keys of both sides have in common.
// Each of these has one answer for which that holds. Cost: linear, but that pairs of a join with
// comparisons other than `eq` are counted one by one, up to `most_candidates`.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "frontend/builtins.h"
#include "runtime/data/value.h"

namespace rndn::reference {

struct Held {
  bool known = false;    // the builtin is one of these, and its arguments are vectors
  bool complete = true;  // false: of a join, what pairs are missing was not looked at
  uint64_t rows = 0;     // of the result
  std::string broken;    // a phrase on what does not hold; empty: all does
};

inline constexpr uint64_t most_candidates = uint64_t{1} << 26;

Held check_operator(hir::Builtin builtin, std::span<const data::Value> arguments, const data::Value& result);

}  // namespace rndn::reference
