// Making machine instructions: operands, registers, and the few fixed sequences that passes after selection need.
#pragma once
#include <initializer_list>
#include <vector>

#include "assembler/machine/ir.h"

namespace rndn::assembler {

// --- Operands
inline isa::Operand gpr(uint32_t reg) { return {.kind = isa::OperandKind::gpr, .reg = reg}; }
inline isa::Operand predicate(uint32_t reg, bool negated = false) {
  return {.kind = isa::OperandKind::predicate, .negated = negated, .reg = reg};
}
inline isa::Operand immediate(int64_t value) { return {.kind = isa::OperandKind::immediate, .value = value}; }
inline isa::Operand constant(uint32_t bank, int64_t offset) {
  return {.kind = isa::OperandKind::constant, .bank = static_cast<uint8_t>(bank), .reg = isa::RZ, .value = offset};
}
inline isa::Operand special(uint32_t number) { return {.kind = isa::OperandKind::special, .value = number}; }
inline isa::Operand uniform(uint32_t reg) { return {.kind = isa::OperandKind::uniform, .reg = reg}; }
inline isa::Operand negate(isa::Operand o) {
  o.negated = !o.negated;
  return o;
}
inline isa::Operand absolute(isa::Operand o) {
  o.absolute = true;
  o.negated = false;
  return o;
}
inline bool is_register(const isa::Operand& o) { return o.kind == isa::OperandKind::gpr; }
inline bool is_immediate(const isa::Operand& o) { return o.kind == isa::OperandKind::immediate; }
inline bool is_zero(const isa::Operand& o) { return is_register(o) && o.reg == isa::RZ; }  // the register
// Of a predicate operand that decides nothing.
inline bool is_true(const isa::Operand& o) { return o.reg == isa::PT && !o.negated; }
inline bool is_false(const isa::Operand& o) { return o.reg == isa::PT && o.negated; }
// [reg + offset]; `wide`: reg is a pair. `descriptor`: through the memory descriptor of Volta and later.
isa::Operand address(uint32_t reg, int64_t offset, bool wide, bool descriptor);

// --- Registers: returns the first virtual register number
uint32_t new_gpr(Function& f, uint32_t width, bool temporary);
uint32_t new_predicate(Function& f, bool temporary);

// The instruction with these operands; CHECKs that the target has a form for them (selection asks only for forms that exist).
Inst make_inst(const isa::Target& target, isa::Mnemonic mnemonic, std::initializer_list<isa::Operand> operands,
               isa::FormCache* forms = nullptr);

// --- Sequences of the register allocator
Inst spill_load(const isa::Target& target, uint32_t reg, uint32_t width, uint32_t offset);   // LDL reg, [R1 + offset]
Inst spill_store(const isa::Target& target, uint32_t reg, uint32_t width, uint32_t offset);  // STL [R1 + offset], reg
Inst gpr_from_predicate(const isa::Target& target, uint32_t reg, uint32_t predicate);        // reg = predicate ? 1 : 0
Inst predicate_from_gpr(const isa::Target& target, uint32_t predicate, uint32_t reg);        // predicate = reg != 0
std::vector<Inst> stack_prologue(const isa::Target& target, uint32_t frame_bytes);  // R1 = top of the stack - frame

}  // namespace rndn::assembler
