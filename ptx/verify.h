// What is wrong with one instruction: shared by verify() and by the parser, which adds the position.
#pragma once
#include <string>

#include "ptx/opcodes.h"

namespace rndn::ptx {

// Empty when the instruction is right, else one sentence (lower case, no full stop). Never reads out of bounds,
// whatever the ids are.
std::string check_instruction(const Module& module, const Function& function, const Instruction& instruction);

// The two halves of it, for a parser that remembers the first one per mnemonic and operand count: all but the operands (sets `form`),
// and the operands. The second does not ask whether labels are defined, since they may be defined later.
std::string check_head(const Module& module, const Function& function, const Instruction& instruction,
                       const Form*& form);
std::string check_operands(const Module& module, const Function& function, const Instruction& instruction,
                           const Form& form, const Places& places);

}  // namespace rndn::ptx
