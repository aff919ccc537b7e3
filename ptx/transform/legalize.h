// Instructions that the targets have no machine instructions for, as PTX of simpler ones.
#pragma once
#include <optional>

#include "libraries/base/errors/result.h"
#include "ptx/ir.h"

namespace rndn::ptx {

// The module with all of them expanded; none where there are none. Fails (fault input) with function and line for what no target has.
Result<std::optional<ptx::Module>> expand(const ptx::Module& module);

}  // namespace rndn::ptx
