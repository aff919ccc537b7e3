// Arithmetic of f32 and f64 and the functions of the special function unit (selection, both families).
//
// FP32 and FP64 instructions take a constant or an immediate in one place only: operands are swapped where the operation commutes, the rest go to
// registers. An f64 immediate is the high word of a literal whose low word is zero. The function unit flushes subnormal arguments: the forms without
// .ftz scale them up and the result back.
#include "assembler/select/select.h"

namespace rndn::assembler {

using ptx::Opcode;
using ptx::Type;
using OperandKind = ptx::Operand;

void Selector::float_arithmetic(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  const uint32_t rounding = float_rounding(i.mods.rounding);
  const auto may_contract = [&] {
    if (options_.contract && i.mods.rounding == ptx::Rounding::none) f_.insts.back().contractible = true;
  };
  auto finish = [&](Emitted e) {
    may_contract();
    e.mod(ModifierKind::Rounding, rounding);
    if (i.mods.ftz) e.mod(ModifierKind::FTZ, 1);
    if (i.mods.sat) e.mod(ModifierKind::SAT, 1);
  };
  const auto negated = [](Op o) {  // an immediate's sign is in its bits
    if (is_immediate(o)) return immediate(static_cast<int32_t>(static_cast<uint32_t>(o.value) ^ 0x80000000u));
    return negate(o);
  };
  // A product has one sign, at its second factor (Pascal has room for it nowhere else).
  const auto one_sign = [&](Op& a, Op& b) {
    if (a.negated) a.negated = false, b = negated(b);
  };
  if (i.type == Type::f32) {
    auto src = [&](uint32_t k, bool absolute = false) {
      return source_float(p_.operand(i, k), Type::f32, i.mods.ftz, absolute);
    };
    // The second operand may be anything, the first is a register.
    auto two = [&](Mnemonic m, Op a, Op b, bool commutes = true) {
      if (!is_register(a) && is_register(b) && commutes) std::swap(a, b);
      return emit(m, {gpr(d), as_register(a), b});
    };
    switch (i.op) {
      case Opcode::add: return finish(two(Mnemonic::FADD, src(1, true), src(2, true)));
      case Opcode::sub: return finish(two(Mnemonic::FADD, src(1, true), negated(src(2, true))));
      case Opcode::mul: {
        Op a = src(1), b = src(2);
        if (!is_register(a)) std::swap(a, b);
        a = as_register(a);
        one_sign(a, b);
        return finish(emit(Mnemonic::FMUL, {gpr(d), a, b}));
      }
      case Opcode::fma:
      case Opcode::mad: {
        Op a = src(1), b = src(2), c = src(3);
        if (!is_register(a)) std::swap(a, b);
        a = as_register(a);
        if (!is_register(b) && !is_register(c)) c = as_register(c);
        one_sign(a, b);
        return finish(emit(Mnemonic::FFMA, {gpr(d), a, b, c}));
      }
      case Opcode::neg:
      case Opcode::abs: {
        Op a = as_register(source(p_.operand(i, 1), Type::f32));
        Emitted e = emit(Mnemonic::FADD, {gpr(d), i.op == Opcode::neg ? negate(a) : absolute(a), negate(gpr(isa::RZ))});
        if (i.mods.ftz) e.mod(ModifierKind::FTZ, 1);
        return;
      }
      case Opcode::min:
      case Opcode::max: {
        Op a = src(1, true), b = src(2, true);
        if (!is_register(a)) std::swap(a, b);
        Emitted e = emit(Mnemonic::FMNMX, {gpr(d), as_register(a), b, predicate(isa::PT, i.op == Opcode::max)});
        if (i.mods.ftz) e.mod(ModifierKind::FTZ, 1);
        if (i.mods.mode == 1) {
          if (t_.family != isa::Family::volta) return unsupported(i);
          e.mod(ModifierKind::NaN, 1);
        }
        return;
      }
      case Opcode::copysign: {  // the sign of the first, the rest of the second
        Op t = temp();
        logic(t.reg, as_register(source(p_.operand(i, 1), Type::f32)), immediate(INT32_MIN), 0xc0);
        Op u = temp();
        logic(u.reg, as_register(source(p_.operand(i, 2), Type::f32)), immediate(0x7fffffff), 0xc0);
        return logic(d, t, u, 0xfc);
      }
      default: return unsupported(i);
    }
  }
  if (i.type != Type::f64) return unsupported(i);
  auto src = [&](uint32_t k) { return source_f64(p_.operand(i, k)); };
  auto with_sign = [&](uint32_t k, bool absolute = false) {
    return source_float(p_.operand(i, k), Type::f64, false, absolute);
  };
  // FP64 sources: a pair, or in one slot a constant or the high word of a literal.
  auto pair = [&](Op o) {
    if (is_register(o)) return o;
    Op t = temp(2);
    if (is_immediate(o)) {
      mov(t.reg, gpr(isa::RZ));
      mov(t.reg + 1, o);
    } else {
      Op hi = o;
      hi.value += 4, hi.negated = hi.absolute = false;
      Op lo = o;
      lo.negated = lo.absolute = false;
      mov(t.reg, lo);
      mov(t.reg + 1, hi);
      t.negated = o.negated, t.absolute = o.absolute;
    }
    return t;
  };
  auto two = [&](Mnemonic m, Op a, Op b) {
    if (!is_register(a)) std::swap(a, b);
    return emit(m, {gpr(d), pair(a), b}).mod(ModifierKind::Rounding, rounding);
  };
  switch (i.op) {
    case Opcode::add: two(Mnemonic::DADD, with_sign(1, true), with_sign(2, true)); return may_contract();
    case Opcode::sub: two(Mnemonic::DADD, with_sign(1, true), negated(with_sign(2, true))); return may_contract();
    case Opcode::mul: {
      Op a = with_sign(1), b = with_sign(2);
      if (!is_register(a)) std::swap(a, b);
      a = pair(a);
      one_sign(a, b);
      emit(Mnemonic::DMUL, {gpr(d), a, b}).mod(ModifierKind::Rounding, rounding);
      return may_contract();
    }
    case Opcode::fma:
    case Opcode::mad: {
      Op a = with_sign(1), b = with_sign(2), c = with_sign(3);
      if (!is_register(a)) std::swap(a, b);
      a = pair(a);
      one_sign(a, b);
      if (!is_register(b) && !is_register(c)) c = pair(c);
      if (t_.family == isa::Family::pascal && is_immediate(c)) c = pair(c);  // Pascal's addend: register or constant
      emit(Mnemonic::DFMA, {gpr(d), a, b, c}).mod(ModifierKind::Rounding, rounding);
      return;
    }
    case Opcode::neg:
    case Opcode::abs: {  // on the bits: the payload of a NaN survives
      Wide a = source64(p_.operand(i, 1));
      Op hi = as_register(a.hi);
      mov(d, a.lo);
      logic(d + 1, hi, immediate(i.op == Opcode::neg ? INT32_MIN : 0x7fffffff), i.op == Opcode::neg ? 0x3c : 0xc0);
      return;
    }
    case Opcode::min:
    case Opcode::max: {
      Op t = temp(2);
      min_max_f64(t.reg, pair(src(1)), pair(src(2)), i.op == Opcode::max);
      mov(d, t);
      mov(d + 1, gpr(t.reg + 1));
      return;
    }
    case Opcode::copysign: {
      Wide a = source64(p_.operand(i, 1)), b = source64(p_.operand(i, 2));
      Op t = temp(), u = temp();
      logic(t.reg, as_register(a.hi), immediate(INT32_MIN), 0xc0);
      logic(u.reg, as_register(b.hi), immediate(0x7fffffff), 0xc0);
      mov(d, b.lo);
      logic(d + 1, t, u, 0xfc);
      return;
    }
    default: unsupported(i);
  }
}

void Selector::compare_magnitude(uint32_t p, Op a, uint32_t code, int32_t bound) {
  emit(Mnemonic::FSETP, {predicate(p), pt(), absolute(a), immediate(bound), pt()})
      .mod(ModifierKind::FloatCompare, code);
}
// A copy of the value that a guarded instruction may change.
Op Selector::changeable(Op o) {
  const Op x = gpr(new_gpr(f_, 1, false));
  mov(x.reg, o);
  return x;
}
// Puts the instruction made last, of an unguarded statement, under a guard.
void Selector::only_if(Op p) {
  isa::Instruction& s = f_.insts.back().sass;
  s.guard = p.reg, s.guard_negated = p.negated;
}

void Selector::transcendental(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  if (divide_or_root(i)) return;
  if (i.type == Type::f64 && i.mods.approx && i.mods.ftz && (i.op == Opcode::rcp || i.op == Opcode::rsqrt)) {
    // The unit reads and makes high words; the low word of the result is zero.
    Op x = pair_register(source64(p_.operand(i, 1)));
    emit(Mnemonic::MUFU, {gpr(d + 1), high_word(x)}).mod(ModifierKind::Function, i.op == Opcode::rcp ? 6 : 7);
    return mov(d, gpr(isa::RZ));
  }
  if (i.type != Type::f32 || !i.mods.approx) return unsupported(i);
  uint32_t function = 0;
  switch (i.op) {
    case Opcode::rcp: function = 4; break;
    case Opcode::sqrt: function = 8; break;
    case Opcode::rsqrt: function = 5; break;
    case Opcode::sin: function = 1; break;
    case Opcode::cos: function = 0; break;
    case Opcode::lg2: function = 3; break;
    case Opcode::ex2: function = 2; break;
    case Opcode::tanh: function = 9; break;
    default: return unsupported(i);
  }
  Op a = as_register(source(p_.operand(i, 1), i.type));
  if (i.op == Opcode::sin || i.op == Opcode::cos) {  // both of one angle as a rule: it is reduced once
    const ptx::Operand& angle = p_.operand(i, 1);
    const bool stays =
        angle.kind == ptx::Operand::reg && registers_[angle.id].definitions == 1 && !registers_[angle.id].read_early;
    if (!stays || reduced_.block != block_ || reduced_.angle != angle.id) {
      const Op argument = mufu_argument(a, function);
      if (!stays || guard_.reg != isa::PT)
        return void(emit(Mnemonic::MUFU, {gpr(d), argument}).mod(ModifierKind::Function, function));
      f_.gprs[argument.reg - isa::first_virtual].temporary = false;
      reduced_ = {block_, angle.id, argument};
    }
    emit(Mnemonic::MUFU, {gpr(d), reduced_.argument}).mod(ModifierKind::Function, function);
    return;
  }
  if (i.mods.ftz || i.op == Opcode::tanh) {
    emit(Mnemonic::MUFU, {gpr(d), mufu_argument(a, function)}).mod(ModifierKind::Function, function);
    return;
  }
  // The unit flushes subnormal arguments: scale them up and the result back.
  const bool ex2 = i.op == Opcode::ex2;
  if (guard_.reg == isa::PT) {
    const uint32_t small = new_predicate(f_, false);
    emit(Mnemonic::FSETP, {predicate(small), pt(), ex2 ? a : absolute(a),
                           immediate(ex2 ? static_cast<int32_t>(0xc2fc0000) : least_normal), pt()})
        .mod(ModifierKind::FloatCompare, less);
    const Op x = changeable(a), y = gpr(d);
    const auto scale = [&](Op o, int32_t factor, uint32_t p) {
      emit(Mnemonic::FMUL, {o, o, immediate(factor)});
      only_if(predicate(p));
    };
    scale(x, ex2 ? 0x3f000000 : two_24, small);
    uint32_t large = isa::PT;
    if (i.op == Opcode::rcp) {  // and makes no subnormal results
      large = new_predicate(f_, false);
      compare_magnitude(large, a, greater, most_inverted);
      scale(x, quarter, large);
    }
    emit(Mnemonic::MUFU, {y, mufu_argument(x, function)}).mod(ModifierKind::Function, function);
    switch (i.op) {
      case Opcode::rcp:  // 1/x = 2^24 / (2^24 x)
        scale(y, two_24, small);
        return scale(y, quarter, large);
      case Opcode::sqrt: return scale(y, 0x39800000, small);                                               // 2^-12
      case Opcode::rsqrt: return scale(y, 0x45800000, small);                                              // 2^12
      case Opcode::lg2: emit(Mnemonic::FADD, {y, y, immediate(static_cast<int32_t>(0xc1c00000))}); break;  // - 24
      default: emit(Mnemonic::FMUL, {y, y, y}); break;  // ex2: squared
    }
    return only_if(predicate(small));
  }
  uint32_t small = temp_predicate();
  Op x = temp(), y = temp();
  if (i.op == Opcode::rcp) {
    const Op one = as_register(immediate(0x3f800000)), up = temp(), factor = temp();
    const uint32_t large = temp_predicate();
    compare_magnitude(small, a, less, least_normal);
    compare_magnitude(large, a, greater, most_inverted);
    select(up.reg, one, immediate(two_24), predicate(small, true));
    select(factor.reg, up, immediate(quarter), predicate(large, true));
    emit(Mnemonic::FMUL, {x, a, factor});
    emit(Mnemonic::MUFU, {y, x}).mod(ModifierKind::Function, function);
    emit(Mnemonic::FMUL, {gpr(d), y, factor});
    return;
  }
  Op scaled = temp(), fixed = temp();
  Emitted test =
      emit(Mnemonic::FSETP, {predicate(small), predicate(isa::PT), ex2 ? a : absolute(a),
                             immediate(ex2 ? static_cast<int32_t>(0xc2fc0000) : 0x00800000), predicate(isa::PT)});
  test.mod(ModifierKind::FloatCompare, 1);
  emit(Mnemonic::FMUL, {scaled, a, immediate(ex2 ? 0x3f000000 : 0x4b800000)});
  select(x.reg, scaled, a, predicate(small));
  emit(Mnemonic::MUFU, {y, mufu_argument(x, function)}).mod(ModifierKind::Function, function);
  switch (i.op) {
    case Opcode::sqrt: emit(Mnemonic::FMUL, {fixed, y, immediate(0x39800000)}); break;                       // 2^-12
    case Opcode::rsqrt: emit(Mnemonic::FMUL, {fixed, y, immediate(0x45800000)}); break;                      // 2^12
    case Opcode::lg2: emit(Mnemonic::FADD, {fixed, y, immediate(static_cast<int32_t>(0xc1c00000))}); break;  // - 24
    default: emit(Mnemonic::FMUL, {fixed, y, y}); break;  // ex2: squared
  }
  select(d, fixed, y, predicate(small));
}

}  // namespace rndn::assembler
