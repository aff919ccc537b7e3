// What holds for the integers that a kernel makes, from what holds for its inputs: bounds (selections stay within their source, dates give years), and
// whether they ascend. Operators sort and
// hash fewer bits of keys whose bounds are known. Private to this folder.
#pragma once
#include <vector>

#include "outliner/outliner.h"
#include "runtime/memory/device_value.h"

namespace rndn::runtime {

// elements_of_geometry: an upper bound of them.
void set_bounds(const hir::Program& program, const hir::Function& f, uint64_t elements_of_geometry,
                const std::vector<ItemPtr>& inputs, const std::vector<ItemPtr>& outputs);

}  // namespace rndn::runtime
