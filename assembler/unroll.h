// Small counted loops run several iterations between two tests. See unroll.cpp.
#pragma once
#include "libraries/base/result.h"
#include "ptx/ir.h"

namespace rndn::assembler {

// True when some loop of an entry is to be unrolled.
bool has_loops_to_unroll(const ptx::Module& module);

// The module with all of them unrolled.
Result<ptx::Module> unroll(const ptx::Module& module);

}  // namespace rndn::assembler
