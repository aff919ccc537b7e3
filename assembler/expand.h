// Instructions that the targets have no machine instructions for, as PTX of simpler ones.
#pragma once
#include "libraries/base/result.h"
#include "ptx/ir.h"

namespace rndn::assembler {

// True when some instruction is to be expanded.
bool has_expansions(const ptx::Module& module);

// The module with all of them expanded. Fails (fault input) with function and line for what no target has.
Result<ptx::Module> expand(const ptx::Module& module);

}  // namespace rndn::assembler
