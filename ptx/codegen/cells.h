// Reductions of cells as they are planned (plan_cells.cpp) and written (cells.cpp). Private to this folder.
#pragma once
#include <vector>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {

inline bool reduces(const CellReduction& r) { return r.value >= 0 || r.count >= 0; }

struct Bundle {  // the reductions of one argument
  hir::VariableId argument{};
  bool selected = false;                  // its elements are masked
  std::vector<Accumulator> accumulators;  // CellReduction::value and count are indices into them
  std::vector<const CellReduction*> reductions;
  Marks wanted, needed;  // steps and variables that make its elements
};
struct Store {
  const CellReduction* reduction;
  const CellReduction::Store* store;
};
std::vector<Store> stores_of(const Bundle& bundle);
struct Family {
  std::vector<Bundle> members;
  uint32_t first_slot = 0, first_store = 0;  // of the first member; the next ones follow
  const Bundle& shape() const { return members[0]; }
  uint32_t slots() const { return static_cast<uint32_t>(shape().accumulators.size()); }
  uint32_t stores() const { return static_cast<uint32_t>(stores_of(shape()).size()); }
};

// By variable: the reductions of cells evaluate it for every element, itself or on the way to their arguments.
Marks evaluated_with_cells(const Emitter& e);

// The bundles of all reductions that read their elements, in families; numbers the reductions' accumulators within their bundle.
std::vector<Family> families_of(Emitter& e);

}  // namespace rndn::codegen
