// What holds for the integers that a kernel makes, from what holds for its inputs: bounds (selections stay within their
// source, dates give years), and whether they ascend. Operators sort and hash fewer bits of keys whose bounds are known,
// so a bound that does not hold is a wrong answer.
#pragma once
#include <span>
#include <vector>

#include "outliner/outliner.h"
#include "runtime/memory/device_value.h"

namespace rndn::runtime {

// All integers that the type stores. Unknown for floats, complex numbers and text.
Bounds limits(hir::BasicType type);

// What is known of the elements of an argument.
struct Interval {
  hir::BasicType type{};
  Bounds bounds;
};
// Where the elements lie that a builtin makes of such arguments (cells of lists, for the each family), as elements of
// type `result`; unknown where they may wrap or no rule says. `longest`: an upper bound of the elements of any vector.
Bounds bounds_of_call(hir::Builtin builtin, hir::BasicType result, std::span<const Interval> arguments,
                      uint64_t longest);

// What is known of the elements of every variable of a kernel. elements_of_geometry: an upper bound of them.
struct VariableBounds {
  Bounds bounds;
  bool ascending = false;  // as Item::ascending
};
std::vector<VariableBounds> bounds_in(const hir::Program& program, const hir::Function& f,
                                      uint64_t elements_of_geometry, const std::vector<ItemPtr>& inputs);
// The same, kept for arguments of which the same is known.
struct KeptBounds {
  struct Argument {
    Bounds bounds;
    uint64_t capacity = 0;
    bool ascending = false;
    bool operator==(const Argument&) const = default;
  };
  uint64_t elements = 0;
  std::vector<Argument> arguments;
  std::vector<VariableBounds> found;  // empty: nothing is kept
};
const std::vector<VariableBounds>& bounds_in(KeptBounds& kept, const hir::Program& program, const hir::Function& f,
                                             uint64_t elements_of_geometry, const std::vector<ItemPtr>& inputs);
// Gives it to the results.
void set_bounds(const hir::Function& f, std::span<const VariableBounds> known, const std::vector<ItemPtr>& outputs);

}  // namespace rndn::runtime
