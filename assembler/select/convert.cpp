// mov, cvt and cvta (selection, both families).
//
// An integer result narrower than its register is extended to it by the signedness of its type. Conversions to 8 and 16 bits saturate in two steps.
#include "assembler/select/select.h"

namespace rndn::assembler {

using ptx::Opcode;
using ptx::Type;
using OperandKind = ptx::Operand;

// `elements` side by side in the `bytes` (2, 4, 8) at d, which is none of them.
void Selector::pack(uint32_t d, const ptx::Operand& elements, uint32_t bytes) {
  const uint32_t size = bytes / elements.count, words = bytes == 8 ? 2 : 1, per_word = elements.count / words;
  auto element = [&](uint32_t e) {
    const Op o = source(p_.vector_elements[elements.id + e], size == 1 ? Type::b8 : size == 2 ? Type::b16 : Type::b32);
    return size == 4 ? o : as_register(o);
  };
  for (uint32_t w = 0; w < words; ++w) {
    const uint32_t e = w * per_word;
    if (per_word == 1) {
      mov(d + w, element(e));
    } else if (per_word == 2) {
      permute(d + w, element(e), element(e + 1), immediate(size == 1 ? 0x0040 : 0x5410), 0);
    } else {
      Op low = temp(), high = temp();
      permute(low.reg, element(e), element(e + 1), immediate(0x0040), 0);
      permute(high.reg, element(e + 2), element(e + 3), immediate(0x0040), 0);
      permute(d + w, low, high, immediate(0x5410), 0);
    }
  }
}

void Selector::unpack(const ptx::Operand& elements, const ptx::Operand& from, Type type) {
  const uint32_t bytes = ptx::type_bytes(type), size = bytes / elements.count;
  Wide a{};
  if (bytes == 8)
    a = source64(from);
  else
    a.lo = source(from, type);
  if (size < 4) a = {as_register(a.lo), bytes == 8 ? as_register(a.hi) : Op{}};
  for (uint32_t e = 0; e < elements.count; ++e) {
    const ptx::Operand& to = p_.vector_elements[elements.id + e];
    if (to.kind != OperandKind::reg) continue;
    const Op word = e * size < 4 ? a.lo : a.hi;
    const uint32_t shift = 8 * (e * size % 4);
    if (size == 1) {  // registers of elements may be wider
      Op t = shift ? temp() : word;
      if (shift) shift_right(t.reg, word, immediate(shift), false);
      logic(destination(to), t, immediate(0xff), 0xc0);
    } else if (shift) {
      shift_right(destination(to), word, immediate(shift), false);
    } else {
      mov(destination(to), word);
    }
  }
}

void Selector::convert(const ptx::Instruction& i) {
  const ptx::Operand &o0 = p_.operand(i, 0), &o1 = p_.operand(i, 1);
  if (i.op == Opcode::cvta) return convert_address(i);
  if (i.op == Opcode::mov) {
    if (i.type == Type::pred) return predicate_logic(destination(o0), source_predicate(o1), predicate(isa::PT), '&');
    if (o0.kind == OperandKind::vector) return unpack(o0, o1, i.type);
    if (o1.kind == OperandKind::vector) return pack(destination(o0), o1, ptx::type_bytes(i.type));
    const uint32_t d = destination(o0);
    if (is_wide(i.type)) {
      if (o1.kind == OperandKind::special) return special_register(d, static_cast<ptx::SpecialRegister>(o1.id));
      Wide a = source64(o1);
      if (is_register(a.lo) && a.lo.reg == d) return;
      return mov64(d, a);
    }
    if (o1.kind == OperandKind::special) {
      if (o0.kind == OperandKind::reg && registers_[o0.id].copy_of != UINT32_MAX) return;
      return special_register(d, static_cast<ptx::SpecialRegister>(o1.id));
    }
    Op a = source(o1, i.type);
    if (is_register(a) && a.reg == d) return;
    return mov(d, a);
  }
  // cvt
  const Type to = i.type, from = i.type2;
  const uint32_t d = destination(o0);
  const uint32_t register_bytes = ptx::type_bytes(p_.registers[o0.reg_id()].type);
  const uint32_t to_bits = 8 * ptx::type_bytes(to), from_bits = 8 * ptx::type_bytes(from);
  if (to == Type::f16x2 || to == Type::bf16 || to == Type::bf16x2) return pack_halves(i);
  if (from == Type::bf16) return shift_left(d, source(o1, Type::b16), immediate(16));
  if (to_bits > 64 || from_bits > 64) return unsupported(i);
  if (!ptx::is_floating(to) && !ptx::is_floating(from)) {
    Wide a = from_bits == 64 ? source64(o1) : Wide{source(o1, from), gpr(isa::RZ)};
    if (i.mods.sat) {
      if (from_bits == 64 || to_bits == 64) return saturate_wide(i, d) ? void() : unsupported(i);
      Op x = a.lo;
      if (from_bits < 32) x = temp(), extend(x.reg, a.lo, from_bits, ptx::is_signed(from));
      const bool s = ptx::is_signed(from);
      if (ptx::is_signed(to)) {
        const int64_t most = (int64_t{1} << (to_bits - 1)) - 1;
        if (s) {
          Op y = temp();
          min_max(y.reg, x, immediate(-most - 1), true, true);
          x = y;
        }
        Op z = temp();
        min_max(z.reg, x, immediate(most), false, s);
        x = z;
      } else {
        if (s) {
          Op y = temp();
          min_max(y.reg, x, gpr(isa::RZ), true, true);
          x = y;
        }
        if (to_bits < 32) {
          Op z = temp();
          min_max(z.reg, x, immediate((int64_t{1} << to_bits) - 1), false, false);
          x = z;
        }
      }
      mov(d, x);
      return register_bytes == 8 ? fill_high_word(d, to) : void();
    }
    const bool wide_result = register_bytes == 8;
    // The value modulo 2^to_bits, extended to the register by the destination's signedness.
    Op low = a.lo;
    // The narrower type's sign fills the destination's bits; those of a wider register are the destination's own (`cvt.u16.s8` of -1 is 0xffff there).
    const bool widens = from_bits < 32 && to_bits > from_bits;
    const bool narrows =
        to_bits < 32 && register_bytes * 8 > to_bits && (!widens || (ptx::is_signed(from) && !ptx::is_signed(to)));
    auto extend_low = [&](uint32_t bits, Type type, bool last) {
      const Op t = last ? gpr(d) : temp();
      extend(t.reg, low, bits, ptx::is_signed(type));
      low = t;
    };
    if (widens) extend_low(from_bits, from, !wide_result && !narrows);
    if (narrows) extend_low(to_bits, to, !wide_result);
    if (!wide_result) return widens || narrows ? void() : mov(d, low);
    if (to_bits == 64 && from_bits == 64) {
      mov(d, a.lo);
      return mov(d + 1, a.hi);
    }
    const bool sign = to_bits == 64 ? ptx::is_signed(from) : ptx::is_signed(to);
    if (sign) {
      Op x = as_register(low);
      mov(d, x);
      return shift_right(d + 1, x, immediate(31), true);
    }
    mov(d, low);
    return mov(d + 1, gpr(isa::RZ));
  }
  if (ptx::is_floating(to) && !ptx::is_floating(from)) {
    const uint32_t target = i.mods.sat ? temp(to_bits == 64 ? 2 : 1).reg : d;
    Op a;
    uint32_t bits = from_bits;
    if (from_bits == 64) {
      a = pair_register(source64(o1));
    } else {
      a = from_bits < 32 ? extended(o1, from) : source(o1, from);
      bits = 32;
    }
    int_to_float(target, to_bits, as_register(a), bits, ptx::is_signed(from), float_rounding(i.mods.rounding));
    if (i.mods.sat) saturate_float(d, gpr(target), to, i.mods.ftz);
    return;
  }
  // Float sources.
  auto float_source = [&] {
    if (from != Type::f64) return as_register(source(o1, from));
    Op a = source_f64(o1);
    if (is_register(a)) return a;
    return pair_register(is_immediate(a) ? Wide{gpr(isa::RZ), a} : Wide{a, constant(a.bank, a.value + 4)});
  };
  if (!ptx::is_floating(to)) {
    Op a = float_source();
    const uint32_t rounding = integral_rounding(i.mods.rounding);
    const bool s = ptx::is_signed(to);
    if (to_bits == 64) return float_to_int(d, 64, s, a, from_bits, rounding, i.mods.ftz);
    if (to_bits == 32) {
      float_to_int(d, 32, s, a, from_bits, rounding, i.mods.ftz);
    } else if (converts_to_narrow(to_bits,
                                  from_bits)) {  // F2I saturates; what it leaves above is not relied on, as by ptxas
      const bool extends = register_bytes * 8 > to_bits;
      const Op narrow = extends ? temp() : gpr(d);
      float_to_int(narrow.reg, to_bits, s, a, from_bits, rounding, i.mods.ftz);
      if (extends) extend(d, narrow, to_bits, s);
    } else {
      Op t = temp(), u = temp();  // saturate in two steps
      float_to_int(t.reg, 32, s, a, from_bits, rounding, i.mods.ftz);
      if (s) min_max(u.reg, t, immediate(-(1 << (to_bits - 1))), true, true);
      // Of a double NaN the top bit alone is left (PTX ISA, cvt); a word's top bit saturates to all ones when it is unsigned.
      const bool nan_differs = from == Type::f64 && !s;
      const Op clamped = nan_differs ? temp() : gpr(d);
      min_max(clamped.reg, s ? u : t, immediate((1 << (s ? to_bits - 1 : to_bits)) - 1), false, s);
      if (nan_differs) {
        const uint32_t nan = temp_predicate();
        emit(Mnemonic::DSETP, {predicate(nan), pt(), a, a, pt()}).mod(ModifierKind::FloatCompare, 8);
        select(d, immediate(1 << (to_bits - 1)), clamped, predicate(nan));
      }
    }
    return register_bytes == 8 ? fill_high_word(d, to) : void();
  }
  // Float to float.
  Op a = float_source();
  const bool integral = i.mods.rounding >= ptx::Rounding::rni;
  if (i.mods.sat && to == from && !integral) return saturate_float(d, a, to, i.mods.ftz);
  uint32_t target = d;
  if (i.mods.sat) target = temp(to_bits == 64 ? 2 : 1).reg;
  if (to == from) {
    if (integral) {
      round_to_integral(target, a, to_bits, integral_rounding(i.mods.rounding), i.mods.ftz);
    } else if (to == Type::f64) {
      mov(target, a);
      mov(target + 1, high_word(a));
    } else if (to == Type::f32) {
      emit(Mnemonic::FADD, {gpr(target), a, negate(gpr(isa::RZ))}).mod(ModifierKind::FTZ, i.mods.ftz);
    } else {
      mov(target, a);
    }
  } else {
    const uint32_t rounding = float_rounding(i.mods.rounding);
    bool ftz = i.mods.ftz;
    if (to == Type::f16 && ftz) {
      // F2F.FTZ flushes subnormal halves as well (H200: 1331 of gpu_programs), which PTX does not ask for: only what it reads is flushed, and that
      // shows only where rounding goes away from zero.
      ftz = false;
      if (i.mods.rounding == ptx::Rounding::rm || i.mods.rounding == ptx::Rounding::rp) {
        const Op flushed = temp();
        emit(Mnemonic::FADD, {flushed, a, negate(gpr(isa::RZ))}).mod(ModifierKind::FTZ, 1);
        a = flushed;
      }
    }
    float_to_float(target, to_bits, a, from_bits, rounding, ftz);
  }
  if (i.mods.sat) saturate_float(d, gpr(target), to, i.mods.ftz);
}

// To [0, 1]; NaN gives 0.
void Selector::saturate_float(uint32_t d, Op a, Type type, bool ftz) {
  if (type == Type::f16) {
    a.part = 2;
    Op zero = rz;
    zero.part = 2;
    emit(Mnemonic::HADD2, {gpr(d), a, negate(zero)}).mod(ModifierKind::SAT, 1);
  } else if (type == Type::f32) {
    emit(Mnemonic::FADD, {gpr(d), a, negate(rz)}).mod(ModifierKind::SAT, 1).mod(ModifierKind::FTZ, ftz);
  } else {
    Op low = temp(2), high = temp(2), one = f64_literal(0x3ff00000);
    min_max_f64(low.reg, a, f64_literal(0), true);
    min_max_f64(high.reg, low, one, false);
    mov(d, high);
    mov(d + 1, gpr(high.reg + 1));
  }
}

// Saturating conversions between integers of which one has 64 bits.
bool Selector::saturate_wide(const ptx::Instruction& i, uint32_t d) {
  const Type to = i.type, from = i.type2;
  const uint32_t to_bits = 8 * ptx::type_bytes(to), from_bits = 8 * ptx::type_bytes(from);
  const bool s = ptx::is_signed(from);
  Wide a;
  if (from_bits == 64) {
    a = source64(p_.operand(i, 1));
  } else {
    Op low = as_register(extended(p_.operand(i, 1), from)), high = rz;
    if (s) {
      high = temp();
      shift_right(high.reg, low, immediate(31), true);
    }
    a = {low, high};
  }
  auto clamp = [&](int64_t limit, bool max, bool is_signed) {
    Op t = temp(2);
    min_max64(t.reg, {as_register(a.lo), as_register(a.hi)}, source64({OperandKind::immediate, false, 0, 0, limit}),
              max, is_signed);
    a = {t, gpr(t.reg + 1)};
  };
  if (s && !ptx::is_signed(to)) clamp(0, true, true);
  if (s && ptx::is_signed(to) && to_bits < 64) clamp(-(int64_t{1} << (to_bits - 1)), true, true);
  if (ptx::is_signed(to)) {
    if (to_bits < 64 || !s) clamp(to_bits < 64 ? (int64_t{1} << (to_bits - 1)) - 1 : INT64_MAX, false, s);
  } else if (to_bits < 64) {
    clamp((int64_t{1} << to_bits) - 1, false, false);
  }
  const uint32_t register_bytes = ptx::type_bytes(p_.registers[p_.operand(i, 0).reg_id()].type);
  mov(d, a.lo);
  if (register_bytes == 8) mov(d + 1, a.hi);
  return true;
}

// Generic addresses: global ones are the same, shared and local ones are offset by the start of their window.
void Selector::convert_address(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  ptx::Space space = i.mods.space;
  // The parameters of functions are local variables by now.
  if (space == ptx::Space::param && p_.operand(i, 1).kind == OperandKind::variable) space = ptx::Space::local;
  Wide a = source64(p_.operand(i, 1));
  if (i.mods.space == ptx::Space::global) {
    if (is_register(a.lo) && a.lo.reg == d) return;  // shares its source's register
    mov(d, a.lo);
    return mov(d + 1, a.hi);
  }
  Wide base;
  if (space == ptx::Space::constant || space == ptx::Space::param) {
    base = generic_base(space);
    if (is_immediate(base.lo)) return unsupported(i, "parameters have no generic address");
  } else {
    family_cvta_base(space, base);
  }
  Op t = temp(2);
  if (i.mods.to) {
    add64(t.reg, a, base, true);
  } else {
    add64(t.reg, {as_register(a.lo), as_register(a.hi)}, base, false);
  }
  mov(d, t);
  mov(d + 1, gpr(t.reg + 1));
}

// What turns addresses of a constant bank into generic ones (ptxas's code reads the same words); an immediate where there is nothing of the kind.
Wide Selector::generic_base(ptx::Space space) {
  const bool parameters = space == ptx::Space::param;
  const uint32_t at = parameters ? t_.generic_parameters_offset : t_.generic_constants_offset;
  if (at == 0) return {immediate(0), immediate(0)};
  const Wide base{constant(0, at), constant(0, at + 4)};
  if (!parameters || t_.generic_parameters_from == 0) return base;
  Op t = temp(2);
  add64(t.reg, {as_register(base.lo), as_register(base.hi)},
        source64({OperandKind::immediate, false, 0, 0, -static_cast<int64_t>(t_.generic_parameters_from)}), false);
  return {t, gpr(t.reg + 1)};
}

// isspacep of .const and .param: whether the distance from the start is within the bank's bytes.
void Selector::is_in_bank(const ptx::Instruction& i) {
  const bool parameters = i.mods.space == ptx::Space::param;
  const Wide base = generic_base(i.mods.space);
  if (is_immediate(base.lo)) return unsupported(i, "parameters have no generic address");
  const Wide a = source64(p_.operand(i, 1));
  Op distance = temp(2);
  add64(distance.reg, {as_register(a.lo), as_register(a.hi)}, base, true);
  uint32_t first = parameters ? t_.parameter_base : 0, bytes = 0x10000;
  if (parameters) {
    bytes = 0;
    for (size_t k = 0; k < p_.parameters.size(); ++k)
      bytes = std::max(
          bytes, parameter_offsets_[k] + ptx::type_bytes(p_.parameters[k].type) * std::max(p_.parameters[k].count, 1u));
  }
  Op from = temp(2);
  add64(from.reg, {distance, gpr(distance.reg + 1)},
        source64({OperandKind::immediate, false, 0, 0, -static_cast<int64_t>(first)}), false);
  setp64(registers_[p_.operand(i, 0).id].first, isa::PT, Cmp::LT, {from, gpr(from.reg + 1)},
         source64({OperandKind::immediate, false, 0, 0, bytes}), false, 0, pt());
}

void Selector::variable_address(uint32_t d, ptx::VariableId v) {
  for (uint32_t word = 0; word < 2; ++word) {
    mov_symbol(d + word);
    f_.insts.back().symbol = v, f_.insts.back().symbol_high = word;
  }
}

}  // namespace rndn::assembler
