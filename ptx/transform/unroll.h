// Small counted loops run several iterations between two tests. See unroll.cpp.
#pragma once
#include <optional>

#include "libraries/base/errors/result.h"
#include "ptx/ir.h"

namespace rndn::ptx {

// The module with the loops of its entries unrolled that are to be; none where there are none.
Result<std::optional<ptx::Module>> unroll(const ptx::Module& module);

}  // namespace rndn::ptx
