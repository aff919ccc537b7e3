// Loads, stores and atomics (selection, both families): addresses, vectors, parameters, and the loop for atomics that the target lacks.
//
// An address is a register and an offset of 24 bits; larger offsets are added first. Vectors of small elements are one access and shifts.
#include "assembler/select.h"

namespace rndn::assembler {

using ptx::Opcode;
using ptx::Type;
using OperandKind = ptx::Operand;

namespace {
uint32_t size_code(Type t) {
  switch (t) {
    case Type::u8:
    case Type::b8: return 0;
    case Type::s8: return 1;
    case Type::u16:
    case Type::b16:
    case Type::f16:
    case Type::bf16: return 2;
    case Type::s16: return 3;
    default: return ptx::type_bytes(t) == 4 ? 4 : ptx::type_bytes(t) == 8 ? 5 : 6;
  }
}
}  // namespace

Op Selector::address_of(const ptx::Instruction& i, const ptx::Operand& o) {
  const bool wide = i.mods.space == ptx::Space::global || i.mods.space == ptx::Space::generic;
  const bool descriptor = wide && t_.family == isa::Family::volta;
  if (descriptor) uses_descriptor_ = true;
  const int64_t reach = (int64_t{1} << 23) - 1;
  switch (o.kind) {
    case OperandKind::address_reg: {
      uint32_t r = o.id;
      int64_t offset = o.value;
      while (wide && !is_none(derived_[r].base) && std::abs(offset + derived_[r].offset) <= reach) {
        offset += derived_[r].offset;
        r = index(derived_[r].base);
      }
      const Alias& alias = aliases_[r];
      ptx::Operand reg{OperandKind::reg, false, 0, r, 0};
      if (wide) {
        Wide base = source64(reg);
        Op pair = pair_register(base);
        if (std::abs(offset) > reach) {
          Op t = temp(2);
          add64(t.reg, {pair, gpr(pair.reg + 1)}, source64({OperandKind::immediate, false, 0, 0, offset}), false);
          pair = t, offset = 0;
        }
        return address(pair.reg, offset, true, descriptor);
      }
      if (alias.kind != Alias::none && is_immediate(alias.lo))
        return address(isa::RZ, alias.lo.value + offset, false, false);
      Op base = as_register(source(reg, Type::u32));
      if (std::abs(offset) > reach) {
        Op t = temp();
        add(t.reg, base, immediate(offset));
        base = t, offset = 0;
      }
      return address(base.reg, offset, false, false);
    }
    case OperandKind::address_var:
    case OperandKind::variable: {
      const ptx::Variable& v = m_.variables[o.variable_id()];
      if (v.space == ptx::Space::shared && i.mods.space == ptx::Space::shared)
        return address(isa::RZ, t_.shared_base + shared_.offsets[o.id] + o.value, false, false);
      if (v.space == ptx::Space::local && i.mods.space == ptx::Space::local)
        return address(stack_register, local_offsets_[o.id] + o.value, false, false);
      if (v.space == ptx::Space::global && wide) {
        Op t = temp(2);
        variable_address(t.reg, v.name, o.value);
        return address(t.reg, 0, true, descriptor);
      }
      break;
    }
    case OperandKind::address_imm:
      if (!wide) return address(isa::RZ, o.value, false, false);
      return address(pair_register(source64({OperandKind::immediate, false, 0, 0, o.value})).reg, 0, true, descriptor);
    default: break;
  }
  unsupported(i, "address");
  return address(isa::RZ, 0, wide, descriptor);
}

void Selector::memory(const ptx::Instruction& i) {
  const uint32_t bytes = ptx::type_bytes(i.type);
  if (i.op == Opcode::atom || i.op == Opcode::red) {
    const bool result = i.op == Opcode::atom && p_.operand(i, 0).kind == OperandKind::reg;
    const uint32_t d = result ? destination(p_.operand(i, 0)) : isa::RZ;
    const uint32_t first = i.op == Opcode::atom ? 1 : 0;
    auto data = [&](uint32_t k) -> Op {
      if (k >= i.operand_count) return Op{};
      return bytes == 8 ? pair_register(source64(p_.operand(i, k))) : as_register(source(p_.operand(i, k), i.type));
    };
    Op at = address_of(i, p_.operand(i, first));
    if (i.mods.space == ptx::Space::generic) return unsupported(i, "atomics need a state space");
    Op value = data(first + 1), swap = data(first + 2);
    return atomic(i, d, at, value, swap);
  }
  if (i.op == Opcode::st) {
    const ptx::Operand& value = p_.operand(i, 1);
    if (i.mods.space == ptx::Space::param || i.mods.space == ptx::Space::constant) return unsupported(i);
    Op at = address_of(i, p_.operand(i, 0));
    if (value.kind != OperandKind::vector) {
      Op data = bytes == 8 ? pair_register(source64(value)) : as_register(source(value, i.type));
      return store(i, at, data, size_code(i.type));
    }
    const uint32_t total = bytes * value.count;
    if (total > 16 || bytes < 4) return unsupported(i);
    Op data = temp(total / 4);
    for (uint32_t e = 0; e < value.count; ++e) {
      const ptx::Operand& o = p_.vector_elements[value.id + e];
      if (bytes == 4) {
        mov(data.reg + e, source(o, i.type));
      } else {
        Wide w = source64(o);
        mov(data.reg + 2 * e, w.lo);
        mov(data.reg + 2 * e + 1, w.hi);
      }
    }
    return store(i, at, data, total == 8 ? 5 : 6);
  }
  // Loads.
  const ptx::Operand &o0 = p_.operand(i, 0), &from = p_.operand(i, 1);
  if (i.mods.space == ptx::Space::param || i.mods.space == ptx::Space::constant) {
    if (i.mods.space == ptx::Space::constant) return unsupported(i);
    if (from.kind != OperandKind::parameter) return unsupported(i);
    uint32_t offset = t_.parameter_base + parameter_offsets_[from.id] + static_cast<uint32_t>(from.value);
    auto one = [&](const ptx::Operand& o, uint32_t at) {
      if (o.kind != OperandKind::reg) return;
      const uint32_t d = destination(o), register_bytes = ptx::type_bytes(p_.registers[o.reg_id()].type);
      if (bytes < 4) {
        load_constant(d, 0, at, gpr(isa::RZ), size_code(i.type));
      } else {
        mov(d, constant(0, at));
        if (bytes == 8) return mov(d + 1, constant(0, at + 4));
      }
      if (register_bytes == 8) {
        if (ptx::is_signed(i.type))
          shift_right(d + 1, gpr(d), immediate(31), true);
        else
          mov(d + 1, gpr(isa::RZ));
      }
    };
    if (o0.kind == OperandKind::vector) {
      for (uint32_t e = 0; e < o0.count; ++e) one(p_.vector_elements[o0.id + e], offset + e * bytes);
      return;
    }
    if (aliases_[o0.id].kind != Alias::none) return;
    return one(o0, offset);
  }
  Op at = address_of(i, from);
  if (o0.kind != OperandKind::vector) {
    const uint32_t register_bytes =
        o0.kind == OperandKind::reg ? ptx::type_bytes(p_.registers[o0.reg_id()].type) : bytes;
    const uint32_t d = o0.kind == OperandKind::reg ? destination(o0) : isa::RZ;
    load(i, d, size_code(i.type), at);
    if (register_bytes == 8 && bytes < 8 && d != isa::RZ) {
      if (ptx::is_signed(i.type))
        shift_right(d + 1, gpr(d), immediate(31), true);
      else
        mov(d + 1, gpr(isa::RZ));
    }
    return;
  }
  const uint32_t total = bytes * o0.count;
  if (total > 16) return unsupported(i);
  const ptx::Operand* e = &p_.vector_elements[o0.id];
  if (bytes >= 4) {
    const uint32_t words = bytes / 4, width = total / 4;
    bool grouped = true;  // prepare() gave the results consecutive registers
    for (uint32_t k = 0; k < o0.count; ++k)
      grouped &= e[k].kind == OperandKind::reg && registers_[e[k].id] == registers_[e[0].id] + k * words;
    grouped = grouped && f_.gprs[registers_[e[0].id] - isa::first_virtual].width == width &&
              (registers_[e[0].id] - isa::first_virtual) == f_.gprs[registers_[e[0].id] - isa::first_virtual].first;
    if (grouped) return load(i, registers_[e[0].id], width == 2 ? 5 : 6, at);
    Op t = temp(width);
    load(i, t.reg, width == 2 ? 5 : 6, at);
    for (uint32_t k = 0; k < o0.count; ++k)
      if (e[k].kind == OperandKind::reg)
        for (uint32_t w = 0; w < words; ++w) mov(destination(e[k]) + w, gpr(t.reg + k * words + w));
    return;
  }
  // Small elements: one access, then fields.
  Op t = temp(total <= 4 ? 1 : 2);
  load(i, t.reg, total == 2 ? 2 : total == 4 ? 4 : 5, at);
  for (uint32_t k = 0; k < o0.count; ++k) {
    if (e[k].kind != OperandKind::reg) continue;
    const uint32_t bit = k * bytes * 8;
    Op word = gpr(t.reg + bit / 32), field = word;
    if (bit % 32) {
      field = temp();
      shift_right(field.reg, word, immediate(bit % 32), false);
    }
    extend(destination(e[k]), field, bytes * 8, ptx::is_signed(i.type));
    if (ptx::type_bytes(p_.registers[e[k].reg_id()].type) == 8) return unsupported(i);
  }
}

uint32_t Selector::atom_op(ptx::AtomicOp op) {
  using A = ptx::AtomicOp;
  switch (op) {
    case A::min: return 1;
    case A::max: return 2;
    case A::inc: return 3;
    case A::dec: return 4;
    case A::and_: return 5;
    case A::or_: return 6;
    case A::xor_: return 7;
    case A::exch: return 8;
    default: return 0;
  }
}

void Selector::load_constant(uint32_t d, uint32_t bank, uint32_t offset, Op index, uint32_t size) {
  Op c = constant(bank, offset);
  c.reg = index.reg;
  emit(Mnemonic::LDC, {gpr(d), c}).mod(ModifierKind::Size, size);
}

// --- atomics that the target lacks ----------------------------------------------------------------------------------------------------------

// old = [at]; do new = op(old); while another thread came between. No lane waits for another.
void Selector::compare_and_swap_loop(const ptx::Instruction& i, uint32_t d, Op at, Op data) {
  const bool wide = ptx::type_bytes(i.type) == 8;
  const uint32_t width = wide ? 2 : 1;
  // Values that cross blocks are no temporaries.
  Op old = gpr(new_gpr(f_, width, false)), value = gpr(new_gpr(f_, width, false)), base = gpr(at.reg);
  uint32_t done = new_predicate(f_, false);
  if (at.reg != isa::RZ && at.reg >= isa::first_virtual)
    base = gpr(new_gpr(f_, 1, false)), mov(base.reg, gpr(at.reg)), at.reg = base.reg;
  for (uint32_t w = 0; w < width; ++w) mov(value.reg + w, gpr(data.reg == isa::RZ ? isa::RZ : data.reg + w));
  emit(Mnemonic::LDS, {old, at}).mod(ModifierKind::Size, wide ? 5 : 4);
  const RegionId outer = f_.blocks[block_].innermost;
  BlockId loop = new_block(), landing = new_block(), after = landing;
  RegionId region = open_region(landing);
  seal(loop);
  start(loop, region);
  ++f_.blocks[loop].loop_depth;
  Op next = gpr(new_gpr(f_, width, false)), seen = gpr(new_gpr(f_, width, false));
  combine(i, next.reg, old, value);
  shared_compare_and_swap(seen.reg, at, old, next, wide);
  if (wide)
    setp64(done, isa::PT, Cmp::EQ, {seen, gpr(seen.reg + 1)}, {old, gpr(old.reg + 1)}, false, 0, predicate(isa::PT));
  else
    setp(done, isa::PT, Cmp::EQ, seen, old, false, 0, predicate(isa::PT));
  for (uint32_t w = 0; w < width; ++w) mov(old.reg + w, gpr(seen.reg + w));
  seal_branch(predicate(done, true), loop, landing);
  join(landing, region);
  f_.blocks[after].innermost = outer;
  if (d != isa::RZ)
    for (uint32_t w = 0; w < width; ++w) mov(d + w, gpr(old.reg + w));
}
void Selector::combine(const ptx::Instruction& i, uint32_t d, Op a, Op b) {
  using A = ptx::AtomicOp;
  const Wide wa{a, gpr(a.reg + 1)}, wb{b, gpr(b.reg + 1)};
  if (i.type == Type::f64) {
    if (i.mods.atomic == A::add)
      emit(Mnemonic::DADD, {gpr(d), a, b});
    else
      unsupported(i);
    return;
  }
  if (i.type == Type::f32) {
    if (i.mods.atomic == A::add)
      emit(Mnemonic::FADD, {gpr(d), a, b});
    else
      unsupported(i);
    return;
  }
  switch (i.mods.atomic) {
    case A::add: return add64(d, wa, wb, false);
    case A::min:
    case A::max: return min_max64(d, wa, wb, i.mods.atomic == A::max, ptx::is_signed(i.type));
    case A::and_:
    case A::or_:
    case A::xor_: {
      const uint8_t lut = i.mods.atomic == A::and_ ? 0xc0 : i.mods.atomic == A::or_ ? 0xfc : 0x3c;
      logic(d, wa.lo, wb.lo, lut);
      return logic(d + 1, wa.hi, wb.hi, lut);
    }
    default: return unsupported(i);
  }
}

}  // namespace rndn::assembler
