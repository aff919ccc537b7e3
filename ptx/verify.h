// What is wrong with one instruction: shared by verify() and by the parser, which adds the position.
#pragma once
#include <array>
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
// Operands that are right whatever else the instruction has, for a parser that remembers them likewise: registers of a fitting type, constants
// that fit their place. check_operands says more of all others.
struct PlainOperands {
  struct Place {
    TypeSet registers = 0;  // types
    Operand::Kind kind = Operand::none;
    bool negated = false, constants = false;
  };
  std::array<Place, 8> at;
  bool takes(uint32_t k, const Function& f, const Operand& o) const {
    const Place& p = at[k];
    if (o.kind == Operand::immediate) return p.constants && !o.negated;
    return o.kind == p.kind && (p.registers & type_bit(f.registers[o.reg_id()].type)) && (!o.negated || p.negated);
  }
};
PlainOperands plain_operands(const Instruction& instruction, const Places& places);
std::string check_operands(const Module& module, const Function& function, const Instruction& instruction,
                           const Form& form, const Places& places);

}  // namespace rndn::ptx
