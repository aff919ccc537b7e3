// See build.h.
#include "assembler/build.h"

namespace rndn::assembler {

using isa::Mnemonic;
using isa::ModifierKind;

isa::Operand address(uint32_t reg, int64_t offset, bool wide, bool descriptor) {
  isa::Operand o{.kind = isa::OperandKind::address, .reg = reg, .value = offset};
  o.wide = wide;
  if (descriptor) o.descriptor = true, o.uniform = descriptor_register;
  return o;
}

uint32_t new_gpr(Function& f, uint32_t width, bool temporary) {
  // Units of a wide value are numbered from a multiple of its width, so that the same arithmetic works before and after allocation.
  while (f.gprs.size() % width != 0) f.gprs.push_back({static_cast<uint32_t>(f.gprs.size()), 1, true, false});
  uint32_t first = static_cast<uint32_t>(f.gprs.size());
  for (uint32_t w = 0; w < width; ++w) f.gprs.push_back({first, static_cast<uint8_t>(width), temporary, false});
  return isa::first_virtual + first;
}
uint32_t new_predicate(Function& f, bool temporary) {
  f.temporary_predicate.push_back(temporary);
  return isa::first_virtual + static_cast<uint32_t>(f.temporary_predicate.size() - 1);
}

void describe(Inst& inst) {
  const isa::Instruction& s = inst.sass;
  for (uint32_t k = 0; k < s.operand_count; ++k) {
    Use& u = inst.uses[k];
    u.access = isa::access(s, k);
    u.file = isa::register_file(s, k);
    u.count = static_cast<uint8_t>(isa::register_count(s, k));
  }
  inst.latency = isa::latency_class(s);
  inst.reads_carry = isa::reads_carry(s);
  inst.writes_carry = isa::writes_carry(s);
  inst.uniform_guard = isa::guard_is_uniform(s.form);
  using L = isa::LatencyClass;
  switch (inst.latency) {
    case L::global_load: inst.memory = Memory::global_load; break;
    case L::global_store:
    case L::global_atomic: inst.memory = Memory::global_store, inst.pinned = true; break;
    case L::shared_load: inst.memory = Memory::shared_load; break;
    case L::shared_store:
    case L::shared_atomic: inst.memory = Memory::shared_store, inst.pinned = true; break;
    case L::local_load: inst.memory = Memory::local_load; break;
    case L::local_store: inst.memory = Memory::local_store, inst.pinned = true; break;
    case L::constant_load: inst.memory = Memory::constant_load; break;
    case L::barrier:
    case L::fence:
    case L::branch:
    case L::convergence:
    case L::wait:
    case L::async_copy:
    case L::shuffle:
    case L::nop:
      inst.memory = inst.latency == L::shuffle ? Memory::none : Memory::fence;
      inst.pinned = true;
      break;
    default: break;
  }
}

bool try_make_inst(const isa::Target& target, Mnemonic mnemonic, std::initializer_list<isa::Operand> operands,
                   Inst& inst) {
  if (!isa::make(target, mnemonic, {operands.begin(), operands.size()}, inst.sass)) return false;
  describe(inst);
  return true;
}

Inst make_inst(const isa::Target& target, Mnemonic mnemonic, std::initializer_list<isa::Operand> operands) {
  Inst inst;
  bool made = try_make_inst(target, mnemonic, operands, inst);
  if (!made) {
    std::string kinds;
    for (const isa::Operand& o : operands) kinds += fmt::format(" {}", static_cast<int>(o.kind));
    CHECK(made, "{} has no form of {} with operand kinds{}", target.name, isa::mnemonic_name(mnemonic), kinds);
  }
  return inst;
}

void use_wide_form(const isa::Target& target, isa::Instruction& inst) {
  // The opcodes differ by 12: F2I 0x305 and 0x311, I2F 0x306 and 0x312, F2F 0x304 and 0x310, FRND 0x307 and 0x313.
  isa::Instruction probe = inst, found;
  for (uint32_t k = 0; k < probe.operand_count; ++k)
    if (probe.operands[k].kind == isa::OperandKind::gpr) probe.operands[k].reg = 0;
  probe.guard = isa::PT;
  isa::Word word;
  CHECK(isa::encode(target, probe, 0, word));
  if ((word.lo & 0x1ff) >= 0x110) return;
  word.lo += 0xc;
  CHECK(isa::decode(target, word, 0, found) && found.mnemonic == inst.mnemonic);
  inst.form = found.form;
}

Inst spill_load(const isa::Target& target, uint32_t reg, uint32_t width, uint32_t offset) {
  Inst i = make_inst(target, Mnemonic::LDL, {gpr(reg), address(stack_register, offset, false, false)});
  isa::set_modifier(i.sass, ModifierKind::Size, width == 1 ? 4 : width == 2 ? 5 : 6);
  describe(i);
  return i;
}
Inst spill_store(const isa::Target& target, uint32_t reg, uint32_t width, uint32_t offset) {
  Inst i = make_inst(target, Mnemonic::STL, {address(stack_register, offset, false, false), gpr(reg)});
  isa::set_modifier(i.sass, ModifierKind::Size, width == 1 ? 4 : width == 2 ? 5 : 6);
  describe(i);
  return i;
}
Inst gpr_from_predicate(const isa::Target& target, uint32_t reg, uint32_t p) {
  return make_inst(target, Mnemonic::SEL, {gpr(reg), gpr(isa::RZ), immediate(1), predicate(p, true)});
}
Inst predicate_from_gpr(const isa::Target& target, uint32_t p, uint32_t reg) {
  Inst i = make_inst(target, Mnemonic::ISETP,
                     {predicate(p), predicate(isa::PT), gpr(reg), gpr(isa::RZ), predicate(isa::PT)});
  isa::set_modifier(i.sass, ModifierKind::Compare, 5);
  return i;
}
std::vector<Inst> stack_prologue(const isa::Target& target, uint32_t frame_bytes) {
  std::vector<Inst> code;
  code.push_back(make_inst(target, Mnemonic::MOV, {gpr(stack_register), constant(0, target.stack_offset)}));
  if (target.family == isa::Family::volta)
    code.push_back(make_inst(target, Mnemonic::IADD3,
                             {gpr(stack_register), predicate(isa::PT), predicate(isa::PT), gpr(stack_register),
                              immediate(-static_cast<int64_t>(frame_bytes)), gpr(isa::RZ)}));
  else
    code.push_back(
        make_inst(target, Mnemonic::IADD32I,
                  {gpr(stack_register), gpr(stack_register), immediate(-static_cast<int64_t>(frame_bytes))}));
  return code;
}

}  // namespace rndn::assembler
