// What ptxas 11.8 is known to do wrong with valid PTX: kernels with such an instruction are not compared with its code. Each rule says what it does and
// how that was found.
#pragma once
#include <string>

#include "ptx/ir.h"

namespace rndn::testing {

// Why ptxas's code of the kernel, and of the functions whose names begin with its own and `_`, is not asked for the target; null when it is. `unknown`:
// the simulator found no instruction in a word of it.
const char* ptxas_fault(const ptx::Module& module, const std::string& kernel, uint32_t sm, bool unknown);

}  // namespace rndn::testing
