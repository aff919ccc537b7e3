// What is wrong with one instruction: shared by verify() and by the parser, which adds the position.
#pragma once
#include <string>

#include "ptx/ir.h"

namespace rndn::ptx {

// Empty when the instruction is right, else one sentence (lower case, no full stop). Never reads out of bounds,
// whatever the ids are.
std::string check_instruction(const Module& module, const Function& function, const Instruction& instruction);

}  // namespace rndn::ptx
