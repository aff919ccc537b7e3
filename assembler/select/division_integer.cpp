// Division and remainder of integers, and the choice of the division for each type (selection, both families).
//
// 32 bits: a reciprocal estimate from the function unit, one Newton step in integers, at most two corrections: the sequence that the vendor's compiler
// uses. 64 bits: the same with two Newton steps. Quotient and remainder by zero are all ones, as in ptxas's code (11.8 to 13.0, every type, target and
// level); PTX leaves them open.
#include "assembler/select/select.h"

namespace rndn::assembler {

using ptx::Opcode;
using ptx::Type;
using OperandKind = ptx::Operand;

void Selector::divide(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  const bool rem = i.op == Opcode::rem;
  if (i.type == Type::f32 || i.type == Type::f64) {
    if (rem) return unsupported(i);
    if (i.type == Type::f32 && (i.mods.approx || i.mods.full)) {
      Op a = source(p_.operand(i, 1), i.type), b = as_register(source(p_.operand(i, 2), i.type));
      // The last product may become one operation with a sum, as in ptxas's code.
      const auto quotient = [&](const Op& reciprocal, const Op& of) {
        emit(Mnemonic::FMUL, {gpr(d), reciprocal, of}).mod(ModifierKind::FTZ, i.mods.ftz);
        f_.insts.back().contractible = options_.contract;
      };
      // Divisors beyond 2^126 would have a reciprocal that is flushed to zero, subnormal ones an infinite one: scale both operands.
      if (i.mods.ftz && i.mods.approx) {
        Op r = temp();
        emit(Mnemonic::MUFU, {r, b}).mod(ModifierKind::Function, 4);
        return quotient(r, a);
      }
      if (guard_.reg == isa::PT) {
        const uint32_t large = new_predicate(f_, false), usual = new_predicate(f_, false);
        // Divisors beyond 2^126 give zero where the quotient is approximate (PTX ISA, div.approx).
        if (i.mods.full) compare_magnitude(large, b, greater, most_inverted);
        compare_magnitude(usual, b, not_less, least_normal);
        const Op x = changeable(a), y = changeable(b), r = temp();
        for (const auto& [p, factor] : {std::pair{predicate(large), quarter}, {predicate(usual, true), two_24}}) {
          if (p.reg == large && !i.mods.full) continue;
          for (const Op o : {x, y}) {
            emit(Mnemonic::FMUL, {o, o, immediate(factor)}).mod(ModifierKind::FTZ, i.mods.ftz);
            only_if(p);
          }
        }
        emit(Mnemonic::MUFU, {r, y}).mod(ModifierKind::Function, 4);
        return quotient(r, x);
      }
      Op x = as_register(a), scale = temp(), sa = temp(), sb = temp(), r = temp();
      uint32_t large = temp_predicate(), small = temp_predicate();
      if (i.mods.full) compare_magnitude(large, b, greater, most_inverted);
      compare_magnitude(small, b, less, least_normal);
      Op one = temp(), s1 = temp();
      mov(one.reg, immediate(0x3f800000));
      select(s1.reg, one, immediate(two_24), predicate(small, true));
      i.mods.full ? select(scale.reg, s1, immediate(quarter), predicate(large, true)) : mov(scale.reg, s1);
      emit(Mnemonic::FMUL, {sa, x, scale}).mod(ModifierKind::FTZ, i.mods.ftz);
      emit(Mnemonic::FMUL, {sb, b, scale}).mod(ModifierKind::FTZ, i.mods.ftz);
      emit(Mnemonic::MUFU, {r, sb}).mod(ModifierKind::Function, 4);
      return quotient(r, sa);
    }
    if (!divide_or_root(i)) unsupported(i);
    return;
  }
  const bool is_signed = ptx::is_signed(i.type);
  if (is_wide(i.type)) {
    const auto pair = [&](uint32_t k) {
      const Wide w = source64(p_.operand(i, k));
      return pair_register({as_register(w.lo), as_register(w.hi)});
    };
    const Op a = pair(1), b = pair(2), t = gpr(new_gpr(f_, 2, false));
    shared_code(integer_division(rem, is_signed), t, a, b);
    mov(d, t);
    return mov(d + 1, gpr(t.reg + 1));
  }
  Op t = temp();
  divide32(rem ? isa::RZ : t.reg, rem ? t.reg : isa::RZ, extended(p_.operand(i, 1), i.type),
           extended(p_.operand(i, 2), i.type), is_signed);
  mov(d, t);
}

// Unsigned: a reciprocal estimate q0 = trunc(2^32 / b - small) from the single-precision unit, one Newton step in integers, then at most two
// corrections of the quotient (the sequence that the vendor's compiler uses; exact for all operands, and all ones for a zero divisor).
void Selector::divide32(uint32_t quotient, uint32_t remainder, Op a0, Op b0, bool is_signed) {
  Op a = as_register(a0), b = as_register(b0);
  Op ua = a, ub = b;
  if (is_signed) {
    ua = temp(), ub = temp();
    abs32(ua.reg, a);
    abs32(ub.reg, b);
  }
  Op fb = temp(), r = temp(), bumped = temp(), q0 = temp(), e = temp(), h = temp(), q1 = temp(), q = temp(),
     rest = temp();
  int_to_float(fb.reg, 32, ub, 32, false, 2);
  emit(Mnemonic::MUFU, {r, fb}).mod(ModifierKind::Function, 4);
  add(bumped.reg, r, immediate(0x0ffffffe));
  float_to_int(q0.reg, 32, false, bumped, 32, 3, true);
  Op minus_b = temp();
  add(minus_b.reg, gpr(isa::RZ), negate(ub));
  mad(e.reg, minus_b, q0, gpr(isa::RZ));  // -b * q0 = 2^32 - b * q0
  mul_hi(h.reg, q0, e, false);
  add(q1.reg, q0, h);  // refined 2^32 / b
  mul_hi(q.reg, q1, ua, false);
  mad(rest.reg, minus_b, q, ua);  // a - b * q
  // Up to two corrections.
  Op r1 = temp(), q_1 = temp(), r1s = temp(), qs = temp();
  uint32_t p1 = temp_predicate(), p2 = temp_predicate();
  setp(p1, isa::PT, Cmp::GE, rest, ub, false, 0, predicate(isa::PT));
  add(r1s.reg, rest, negate(ub));
  add(qs.reg, q, immediate(1));
  select(r1.reg, r1s, rest, predicate(p1));
  select(q_1.reg, qs, q, predicate(p1));
  Op r2s = temp(), q2s = temp(), r2 = temp(), q2 = temp();
  setp(p2, isa::PT, Cmp::GE, r1, ub, false, 0, predicate(isa::PT));
  add(r2s.reg, r1, negate(ub));
  add(q2s.reg, q_1, immediate(1));
  select(r2.reg, r2s, r1, predicate(p2));
  select(q2.reg, q2s, q_1, predicate(p2));
  uint32_t zero = temp_predicate();
  setp(zero, isa::PT, Cmp::EQ, ub, gpr(isa::RZ), false, 0, predicate(isa::PT));
  if (quotient != isa::RZ) {
    Op result = q2;
    if (is_signed) {
      Op sign = temp(), n = temp(), s = temp();
      uint32_t negative = temp_predicate();
      logic(sign.reg, a, b, 0x3c);
      setp(negative, isa::PT, Cmp::LT, sign, gpr(isa::RZ), true, 0, predicate(isa::PT));
      add(n.reg, gpr(isa::RZ), negate(q2));
      select(s.reg, n, q2, predicate(negative));
      result = s;
    }
    select(quotient, result, immediate(-1), predicate(zero, true));
  }
  if (remainder != isa::RZ) {
    Op result = r2;
    if (is_signed) {
      Op n = temp(), s = temp();
      uint32_t negative = temp_predicate();
      setp(negative, isa::PT, Cmp::LT, a, gpr(isa::RZ), true, 0, predicate(isa::PT));
      add(n.reg, gpr(isa::RZ), negate(r2));
      select(s.reg, n, r2, predicate(negative));
      result = s;
    }
    select(remainder, result, immediate(-1), predicate(zero, true));
  }
}

// 64 bits, the same method: the reciprocal from the single-precision unit as a 64-bit integer, two Newton steps, two corrections.
void Selector::divide64(Op result, Op a0, Op b0, bool remainder, bool is_signed) {
  const Op zero = gpr(isa::RZ);
  auto pair_of = [&](Op t) { return Wide{gpr(t.reg), high_word(t)}; };
  auto select64 = [&](uint32_t d, Wide x, Wide y, Op p) { select(d, x.lo, y.lo, p), select(d + 1, x.hi, y.hi, p); };
  const Wide a = pair_of(a0), b = pair_of(b0);
  Wide ua = a, ub = b;
  const Op sign = temp();
  if (is_signed) {
    remainder ? mov(sign.reg, a.hi) : logic(sign.reg, a.hi, b.hi, 0x3c);
    auto magnitude = [&](Wide x) {
      Op t = temp(2), r = temp(2);
      uint32_t p = temp_predicate();
      add64(t.reg, {zero, zero}, x, true);
      setp(p, isa::PT, Cmp::LT, x.hi, zero, true, 0, predicate(isa::PT));
      select64(r.reg, pair_of(t), x, predicate(p));
      return pair_of(r);
    };
    ua = magnitude(a), ub = magnitude(b);
  }
  const uint32_t by_zero = temp_predicate();  // asked here, where the divisor is needed anyway
  setp64(by_zero, isa::PT, Cmp::EQ, b, {zero, zero}, false, 0, predicate(isa::PT));
  // High 64 bits of an unsigned 64 x 64 product.
  auto mul_high = [&](Wide x, Wide y) {
    Op w0 = temp(2), c1 = temp(2), w1 = temp(2), c2 = temp(2), w2 = temp(2), c3 = temp(2), w3 = temp(2), c4 = temp(2),
       r = temp(2);
    mad_wide(w0.reg, x.lo, y.lo, {zero, zero}, false);
    mov(c1.reg, gpr(w0.reg + 1)), mov(c1.reg + 1, zero);
    mad_wide(w1.reg, x.hi, y.lo, pair_of(c1), false);
    mov(c2.reg, w1), mov(c2.reg + 1, zero);
    mad_wide(w2.reg, x.lo, y.hi, pair_of(c2), false);
    mov(c3.reg, gpr(w1.reg + 1)), mov(c3.reg + 1, zero);
    mad_wide(w3.reg, x.hi, y.hi, pair_of(c3), false);
    mov(c4.reg, gpr(w2.reg + 1)), mov(c4.reg + 1, zero);
    add64(r.reg, pair_of(w3), pair_of(c4), false);
    return pair_of(r);
  };
  auto negated = [&](Wide x) {
    Op r = temp(2);
    add64(r.reg, {zero, zero}, x, true);
    return pair_of(r);
  };
  auto product = [&](Wide x, Wide y) {
    Op r = temp(2);
    mul64(r.reg, x, y);
    return pair_of(r);
  };
  auto sum = [&](Wide x, Wide y, bool subtract) {
    Op r = temp(2);
    add64(r.reg, x, y, subtract);
    return pair_of(r);
  };
  Op fb = temp(), r = temp(), bumped = temp(), q0 = temp(2);
  int_to_float(fb.reg, 32, gpr(ub.lo.reg), 64, false, 2);
  emit(Mnemonic::MUFU, {r, fb}).mod(ModifierKind::Function, 4);
  add(bumped.reg, r, immediate(0x1ffffffe));
  float_to_int(q0.reg, 64, false, bumped, 32, 3, false);
  Wide x = pair_of(q0);
  for (int step = 0; step < 2; ++step) x = sum(x, mul_high(x, negated(product(ub, x))), false);
  Wide q = mul_high(x, ua);
  Wide rest = sum(ua, product(ub, q), true);
  for (int step = 0; step < 2; ++step) {
    uint32_t p = temp_predicate();
    setp64(p, isa::PT, Cmp::GE, rest, ub, false, 0, predicate(isa::PT));
    const auto corrected = [&](Wide v, Wide next) {
      Op n = temp(2);
      select64(n.reg, next, v, predicate(p));
      return pair_of(n);
    };
    if (!remainder) q = corrected(q, sum(q, {immediate(1), zero}, false));
    if (remainder || step == 0) rest = corrected(rest, sum(rest, ub, true));
  }
  const auto with_sign = [&](Wide v) {
    if (!is_signed) return v;
    uint32_t p = temp_predicate();
    Op s = temp(2);
    setp(p, isa::PT, Cmp::LT, sign, zero, true, 0, predicate(isa::PT));
    select64(s.reg, negated(v), v, predicate(p));
    return pair_of(s);
  };
  select64(result.reg, with_sign(remainder ? rest : q), {immediate(-1), immediate(-1)}, predicate(by_zero, true));
}

}  // namespace rndn::assembler
