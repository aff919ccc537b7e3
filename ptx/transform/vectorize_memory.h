// Loads and stores of neighbouring words become one. See vectorize_memory.cpp.
#pragma once
#include <optional>

#include "libraries/base/errors/result.h"
#include "ptx/ir.h"

namespace rndn::ptx {

// The module with the accesses of its entries joined that are to be; none where there are none.
Result<std::optional<ptx::Module>> vectorize_memory(const ptx::Module& module);

}  // namespace rndn::ptx
