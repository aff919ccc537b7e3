// Calls of .func with a body become copies of the body. See inline_calls.cpp.
#pragma once
#include <optional>

#include "libraries/base/errors/result.h"
#include "ptx/ir.h"

namespace rndn::ptx {

// The module with all calls of its entries inlined; its .func remain, and nothing calls them. None where no entry calls a function or has variables for
// arguments. Fails (fault input) with function and line for recursion, functions without a body and calls through registers.
Result<std::optional<ptx::Module>> inline_calls(const ptx::Module& module);

}  // namespace rndn::ptx
