// Kernels that were made for vectors of one length, given one with a single element: spread.cpp.
#pragma once
#include "outliner/outliner.h"

namespace rndn::outliner {

// Whether the kernel computes the same from as many copies of the parameter's element as the other vectors of its size
// have. Parameters that are asked together (`single`) have one element each.
bool may_be_spread(const hir::Program& program, const Kernel& kernel, const ShapeTable& shapes,
                   std::span<const hir::VariableId> single);

}  // namespace rndn::outliner
