// What ptxas 11.8 is known to do wrong with valid PTX: kernels with such an instruction are not compared with its code. Each rule says what it does and
// how that was found.
#pragma once
#include <string>

#include "ptx/ir.h"

namespace rndn::testing {

// What a run of ptxas's code has shown: no more than that it ended, a word that the simulator knows no instruction for, or a result that differs.
enum class Seen : uint8_t { nothing, unknown_word, difference };

// Why ptxas's code of the kernel, and of the functions whose names begin with its own and `_`, says nothing on the target; null when it should be right.
const char* ptxas_fault(const ptx::Module& module, const std::string& kernel, uint32_t sm, Seen seen = Seen::nothing);

}  // namespace rndn::testing
