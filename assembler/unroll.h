// Small counted loops run several iterations between two tests. See unroll.cpp.
#pragma once
#include "libraries/base/result.h"
#include "ptx/ir.h"

namespace rndn::assembler {

// What does the same wherever it runs and however often: nothing that knows of other lanes, the time or where it stands in the code, and nothing that becomes
// long code. Memory it may touch.
bool may_be_copied(const ptx::Function& f, const ptx::Instruction& i);

// True when some loop of an entry is to be unrolled.
bool has_loops_to_unroll(const ptx::Module& module);

// The module with all of them unrolled.
Result<ptx::Module> unroll(const ptx::Module& module);

}  // namespace rndn::assembler
