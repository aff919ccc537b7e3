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
// (which the parser makes fit their place), what has an address in the right space. check_operands says more of all others.
struct PlainOperands {
  struct Place {
    uint16_t kinds = 0;      // bits of Operand::Kind
    bool negated = false;    // predicates, too
    Type type = Type::none;  // of constants
    TypeSet registers = 0;   // types
    TypeSet addresses = 0;   // types of registers in brackets
    Space space = Space::generic;
    bool takes(const Module& m, const Function& f, const Operand& o) const {
      if (!(kinds >> o.kind & 1) || (o.negated && !(negated && o.kind == Operand::reg))) return false;
      switch (o.kind) {
        case Operand::reg: return registers & type_bit(f.registers[o.reg_id()].type);
        case Operand::address_reg: return addresses & type_bit(f.registers[o.reg_id()].type);
        case Operand::special: return special_register_bytes(static_cast<SpecialRegister>(o.id)) == type_bytes(type);
        case Operand::address_var: return space == Space::generic || m.variables[o.variable_id()].space == space;
        default: return true;
      }
    }
  };
  std::array<Place, 8> at;
  Place element;  // of a vector
};
PlainOperands plain_operands(const Instruction& instruction, const Places& places);
std::string check_operands(const Module& module, const Function& function, const Instruction& instruction,
                           const Form& form, const Places& places);

}  // namespace rndn::ptx
