// See operands.h.
#include "assembler/machine/operands.h"

#include <new>

#include "assembler/isa/make.h"

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
  CHECK(f.gprs.size() < Range::max_register - isa::first_virtual - 4, "too many registers");
  // Units of a wide value are numbered from a multiple of its width, so that the same arithmetic works before and after allocation.
  while (f.gprs.size() & (width - 1))
    f.gprs.push_back({static_cast<uint32_t>(f.gprs.size()), 1, true, false});
  const uint32_t first = static_cast<uint32_t>(f.gprs.size());
  uint32_t units = width;
  do f.gprs.push_back({first, static_cast<uint8_t>(width), temporary, false});
  while (--units);
  return isa::first_virtual + first;
}
uint32_t new_predicate(Function& f, bool temporary) {
  if (f.predicates.empty()) f.predicates.reserve(64);
  f.predicates.push_back({.temporary = temporary});
  return isa::first_virtual + static_cast<uint32_t>(f.predicates.size() - 1);
}

InstId add_inst(Function& f, const Inst& inst) {
  const InstId id = static_cast<InstId>(f.insts.size());
  f.insts.push_back(inst);
  new (&f.facts.push()) Facts(facts_of(*f.target, f.insts.back()));
  if (f.allocated) f.registers.set(id, f.facts.back(), [](Range&) {});
  return id;
}

Inst make_inst(const isa::Target& target, Mnemonic mnemonic, std::initializer_list<isa::Operand> operands,
               isa::FormCache* forms) {
  Inst inst;
  const std::span<const isa::Operand> list(operands.begin(), operands.size());
  const bool made = forms ? isa::make(target, mnemonic, list, inst.sass, *forms) != nullptr
                          : isa::make(target, mnemonic, list, inst.sass);
  if (!made) {
    std::string kinds;
    for (const isa::Operand& o : operands) kinds += fmt::format(" {}", static_cast<int>(o.kind));
    CHECK(made, "{} has no form of {} with operand kinds{}", target.name, isa::mnemonic_name(mnemonic), kinds);
  }
  return inst;
}

Inst spill_load(const isa::Target& target, uint32_t reg, uint32_t width, uint32_t offset) {
  Inst i = make_inst(target, Mnemonic::LDL, {gpr(reg), address(stack_register, offset, false, false)});
  isa::set_modifier(i.sass, ModifierKind::Size, width == 1 ? 4 : width == 2 ? 5 : 6);
  return i;
}
Inst spill_store(const isa::Target& target, uint32_t reg, uint32_t width, uint32_t offset) {
  Inst i = make_inst(target, Mnemonic::STL, {address(stack_register, offset, false, false), gpr(reg)});
  isa::set_modifier(i.sass, ModifierKind::Size, width == 1 ? 4 : width == 2 ? 5 : 6);
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
