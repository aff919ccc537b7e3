// Division, reciprocal and square root of floating-point numbers, rounded as IEEE 754 says for all operands (selection, both families).
//
// Each is inline code for operands whose exponents keep every step in the normal range, and a branch to code for all other operands, which stands once in
// the kernel where several places need it (subroutine.cpp).
//   Fast paths: an estimate from the function unit, Newton's iteration, and a last step with the exact remainder (fma), after Markstein, "Computation of
//   elementary functions on the IBM RISC System/6000 processor", 1990, and Cornea, Harrison and Tang, "Scientific computing on Itanium-based
//   systems", chapter 8.
//   Slow path of f64 division: both significands are divided in [1, 2), then scaled by 2^k. A subnormal result is rounded once: the quotient is
//   rounded to the grid of the result, and its remainder, which is exact, tells whether the neighbour on the grid is nearer.
//   Slow path of f32 division: in f64. A quotient of two 24-bit significands is never close enough to a midpoint of 25 bits or less for the
//   rounding to 53 bits to matter.
//   Slow paths of square roots: scaled by an even power of two; results are never subnormal.
//   Zero, infinity, NaN: the dividend times the reciprocal of the divisor's class (infinity, zero, NaN, one), whose rules are the same. They come first,
//   and where no lane has other operands, the rest is passed over: zeros are what slow paths meet most (gradients, sparse data).
// A reciprocal is the quotient of one, with a fast path of its own. A NaN's payload is the unit's. Roundings other than to nearest correct its result by its remainder.
#include "assembler/select/select.h"

namespace rndn::assembler {

namespace {
constexpr uint32_t rcp = 4, rsq = 5, rcp64h = 6, rsq64h = 7;  // functions of MUFU
}  // namespace

// A value that later blocks read: no temporary.
Op Selector::lasting(Op o, uint32_t width) {
  if (is_register(o) && !o.negated && !o.absolute &&
      (o.reg == isa::RZ || !f_.gprs[o.reg - isa::first_virtual].temporary))
    return o;
  Op t = gpr(new_gpr(f_, width, false));
  if (width == 1) {
    mov(t.reg, o);
  } else {
    mov(t.reg, gpr(o.reg == isa::RZ ? isa::RZ : o.reg));
    mov(t.reg + 1, gpr(o.reg == isa::RZ ? isa::RZ : o.reg + 1));
  }
  return t;
}

// An f64 source as a register pair.
Op Selector::source_pair(const ptx::Operand& o) {
  if (o.kind == ptx::Operand::immediate && o.value == 0) return f64_literal(0);
  return pair_register(source64(o));
}
Op Selector::f64_literal(uint32_t high) {
  Op t = temp(2);
  mov(t.reg, gpr(isa::RZ));
  mov(t.reg + 1, high ? immediate(static_cast<int32_t>(high)) : gpr(isa::RZ));
  return t;
}

Op Selector::f64_addend(uint32_t high) {  // Pascal's addend is no literal
  return t_.family == isa::Family::volta ? immediate(static_cast<int32_t>(high))
                                         : constant(2, bank2(uint64_t{high} << 32, 8));
}

// q = a / b, rounded to nearest, for operands that keep all steps normal.
void Selector::quotient_f64(Op q, Op a, Op b) {
  Op one = f64_addend(0x3ff00000), r = temp(2), e = temp(2), e2 = temp(2), r1 = temp(2), e3 = temp(2), r2 = temp(2),
     q0 = temp(2), rest = temp(2);
  mov(r.reg, immediate(1));
  emit(Mnemonic::MUFU, {high_word(r), high_word(b)}).mod(ModifierKind::Function, rcp64h);
  emit(Mnemonic::DFMA, {e, r, negate(b), one});
  emit(Mnemonic::DFMA, {e2, e, e, e});
  emit(Mnemonic::DFMA, {r1, r, e2, r});
  emit(Mnemonic::DFMA, {e3, r1, negate(b), one});
  emit(Mnemonic::DFMA, {r2, r1, e3, r1});
  emit(Mnemonic::DMUL, {q0, a, r2});
  emit(Mnemonic::DFMA, {rest, q0, negate(b), a});
  emit(Mnemonic::DFMA, {q, r2, rest, q0});
}

// Code that only the lanes with p run; ends in a landing block where all go on.
template <class F>
void Selector::only_where(Op p, F&& body) {
  const RegionId outer = f_.blocks[block_].innermost;
  BlockId slow = new_block(), landing = new_block();
  RegionId region = open_region(landing);
  seal_branch(negate(p), landing, slow);
  start(slow, region);
  body();
  seal(landing);
  join(landing, region);
  f_.blocks[landing].innermost = outer;
}

// Code that is passed over where none of the lanes that run it together has p. All go the same way, so that no lane has to be met behind it.
template <class F>
void Selector::where_any(Op p, F&& body) {
  const RegionId region = f_.blocks[block_].innermost;
  const uint32_t any = new_predicate(f_, false);
  emit(Mnemonic::VOTE, {none(), predicate(any), p}).mod(ModifierKind::VoteMode, 1);
  f_.insts.back().cooperative = true;
  const BlockId some = new_block(), behind = new_block();
  seal_branch(predicate(any, true), behind, some);
  start(some, region);
  body();
  seal(behind);
  start(behind, region);
}

void Selector::divide_f64(uint32_t d, Op a0, Op b0) {
  Op a = lasting(a0, 2), b = lasting(b0, 2), q = gpr(new_gpr(f_, 2, false)), safe = temp();
  const uint32_t large = temp_predicate(), quick = new_predicate(f_, false);
  quotient_f64(q, a, b);
  // The vendor's test, on high words as f32: the quotient is normal and no NaN, nor is the divisor one or infinite (zero times it would be NaN),
  // and the dividend is large enough for the remainder to be normal.
  emit(Mnemonic::FFMA, {safe, rz, high_word(b), high_word(q)});
  emit(Mnemonic::FSETP, {predicate(large), pt(), absolute(high_word(a)), immediate(0x03600000), pt()})
      .mod(ModifierKind::FloatCompare, greater_or_nan);
  emit(Mnemonic::FSETP, {predicate(quick), pt(), absolute(safe), immediate(0x00100000), predicate(large)})
      .mod(ModifierKind::FloatCompare, greater);
  only_where(predicate(quick, true), [&] { shared_code(Shared::divide_f64, q, a, b); });
  mov(d, q);
  mov(d + 1, gpr(q.reg + 1));
}

// What is needed again is little at a time: places that call it keep so many registers free.
void Selector::divide_f64_slow(Op q, Op a, Op b) {
  const Op pt = predicate(isa::PT);
  const auto compare = [&](uint32_t code, Op u, Op v) {
    const uint32_t p = temp_predicate();
    emit(Mnemonic::DSETP, {predicate(p), pt, u, v, pt}).mod(ModifierKind::FloatCompare, code);
    return p;
  };
  const auto choose = [&](Op u, Op v, uint32_t p) {  // p ? u : v
    Op t = temp(2);
    select(t.reg, u, v, predicate(p));
    select(t.reg + 1, high_word(u), high_word(v), predicate(p));
    return t;
  };
  const auto magnitude = [&](Op x) {  // its high word
    Op high = gpr(new_gpr(f_, 1, false));
    logic(high.reg, high_word(x), immediate(0x7fffffff), 0xc0);
    return high;
  };
  // Zero, infinity, NaN.
  const auto is_special = [&](Op x, Op high) {
    Op any = temp();
    const uint32_t zero = temp_predicate(), p = temp_predicate();
    logic(any.reg, high, gpr(x.reg), 0xfc);
    setp(zero, isa::PT, Cmp::EQ, any, rz, false, 0, pt);
    setp(p, isa::PT, Cmp::GE, high, immediate(0x7ff00000), false, 1, predicate(zero));
    return p;
  };
  const Op b_high = magnitude(b);
  const uint32_t b_special = is_special(b, b_high), any_special = new_predicate(f_, false);
  Op one = temp(), divisor = temp(), inverse = temp(2), product = temp(2), sum_nan = temp(2);
  logic3(one.reg, high_word(b), immediate(INT32_MIN), immediate(0x3ff00000), 0xea);
  select(divisor.reg, high_word(b), one, predicate(b_special));
  mov(inverse.reg, rz);
  emit(Mnemonic::MUFU, {high_word(inverse), divisor}).mod(ModifierKind::Function, rcp64h);
  emit(Mnemonic::DMUL, {product, a, inverse});
  // The unit sees the high word only: a NaN whose payload is in the low word looks like an infinity.
  emit(Mnemonic::DADD, {sum_nan, a, b});
  const uint32_t b_nan = compare(8, b, b);
  select(q.reg, sum_nan, product, predicate(b_nan));
  select(q.reg + 1, high_word(sum_nan), high_word(product), predicate(b_nan));
  const Op a_high = magnitude(a);
  predicate_logic(any_special, predicate(is_special(a, a_high)), predicate(b_special), '|');
  where_any(predicate(any_special, true), [&] {
    // Significands in [1, 2), and exponents.
    struct Scaled {
      Op significand, exponent;
    };
    const auto split = [&](Op x, Op high) {
      Scaled s{temp(2), temp()};
      Op scaled = temp(2), word = temp(), raw = temp(), less54 = temp();
      const uint32_t small = temp_predicate();
      setp(small, isa::PT, Cmp::LT, high, immediate(0x00100000), false, 0, pt);
      emit(Mnemonic::DMUL, {scaled, x, immediate(0x43500000)});  // 2^54
      select(s.significand.reg, scaled, x, predicate(small));
      select(word.reg, high_word(scaled), high_word(x), predicate(small));
      bit_extract(raw.reg, word, immediate(20), immediate(11), false);
      add(less54.reg, raw, immediate(-54));
      select(s.exponent.reg, less54, raw, predicate(small));
      logic3(s.significand.reg + 1, word, immediate(0x000fffff), immediate(0x3ff00000), 0xea);
      return s;
    };
    const Scaled x = split(a, a_high), y = split(b, b_high);
    Op m = temp(2), k0 = temp(), k1 = temp(), k = temp();
    add(k0.reg, x.exponent, negate(y.exponent));
    min_max(k1.reg, k0, immediate(-1100), true, true);
    min_max(k.reg, k1, immediate(1100), false, true);
    quotient_f64(m, x.significand, y.significand);
    // Below `least` = 2^(-1022 - k) the result is subnormal; its grid is least * 2^-52.
    const auto power = [&](Op field) {  // the number with this exponent field
      Op t = temp(2);
      mov(t.reg, rz);
      shift_left(t.reg + 1, field, immediate(20));
      return t;
    };
    Op f0 = temp(), f = temp();
    add(f0.reg, immediate(1), negate(k));
    min_max(f.reg, f0, immediate(1), true, true);
    const auto least_times = [&](int exponent) {
      Op scaled = temp();
      add(scaled.reg, f, immediate(exponent));
      return power(scaled);
    };
    const Op least = power(f), sum = temp(2), z = temp(2), rest = temp(2), bound = temp(2), above = temp(2),
             below = temp(2);
    const uint32_t normal = compare(greater_equal, m, least);
    emit(Mnemonic::DADD, {sum, m, least});
    emit(Mnemonic::DADD, {z, sum, negate(least)});
    emit(Mnemonic::DFMA, {rest, z, negate(y.significand), x.significand});
    emit(Mnemonic::DMUL, {bound, y.significand, least_times(-53)});
    const uint32_t up = compare(greater, rest, bound), down = compare(less, rest, negate(bound));
    const Op grid = least_times(-52);
    emit(Mnemonic::DADD, {above, z, grid});
    emit(Mnemonic::DADD, {below, z, negate(grid)});
    const Op rounded = choose(m, choose(above, choose(below, z, down), up), normal);
    // Times 2^k in two steps, the second with the sign, which the product for zeros has too; only overflow rounds.
    Op half_k = temp(), other_k = temp(), e1 = temp(), e2 = temp(), first = temp(2), finite = temp(2);
    shift_right(half_k.reg, k, immediate(1), true);
    add(other_k.reg, k, negate(half_k));
    add(e1.reg, half_k, immediate(1023));
    emit(Mnemonic::DMUL, {first, rounded, power(e1)});
    add(e2.reg, other_k, immediate(1023));
    const Op s2 = power(e2), signed_s2 = temp(2);
    mov(signed_s2.reg, rz);
    logic3(signed_s2.reg + 1, high_word(q), immediate(INT32_MIN), high_word(s2), 0xea);
    emit(Mnemonic::DMUL, {finite, first, signed_s2});
    select(q.reg, q, finite, predicate(any_special));
    select(q.reg + 1, high_word(q), high_word(finite), predicate(any_special));
  });
}

void Selector::divide_f32(uint32_t d, Op a0, Op b0, bool ftz) {
  Op a = lasting(a0, 1), b = lasting(b0, 1), q = gpr(new_gpr(f_, 1, false));
  const uint32_t slow = new_predicate(f_, false);
  emit(Mnemonic::FCHK, {predicate(slow), a, b});  // whether a step may leave the normal range
  Op r = temp(), e = temp(), r1 = temp(), q0 = temp(), rest = temp();
  emit(Mnemonic::MUFU, {r, b}).mod(ModifierKind::Function, rcp);
  emit(Mnemonic::FFMA, {e, r, negate(b), immediate(0x3f800000)});
  emit(Mnemonic::FFMA, {r1, r, e, r});
  emit(Mnemonic::FMUL, {q0, a, r1});
  emit(Mnemonic::FFMA, {rest, q0, negate(b), a});
  emit(Mnemonic::FFMA, {q, r1, rest, q0});
  only_where(predicate(slow), [&] { shared_code(ftz ? Shared::divide_f32_ftz : Shared::divide_f32, q, a, b); });
  mov(d, q);
}

// The quotient of one, with a step less: the estimate's error is known exactly.
void Selector::reciprocal_f32(uint32_t d, Op b0, bool ftz) {
  Op b = lasting(b0, 1), q = gpr(new_gpr(f_, 1, false));
  const uint32_t slow = new_predicate(f_, false);
  // Exponent fields 1 .. 252: neither the divisor nor its reciprocal is subnormal, nor the products on the way.
  Op shifted = temp(), exponent = temp(), r = temp(), e = temp();
  add(shifted.reg, b, immediate(0x01800000));
  logic(exponent.reg, shifted, immediate(0x7f800000), 0xc0);
  setp(slow, isa::PT, Cmp::LT, exponent, immediate(0x02000000), false, 0, pt());
  emit(Mnemonic::MUFU, {r, b}).mod(ModifierKind::Function, rcp);
  emit(Mnemonic::FFMA, {e, r, negate(b), immediate(0x3f800000)});
  emit(Mnemonic::FFMA, {q, r, e, r});
  only_where(predicate(slow), [&] {
    const Op one = gpr(new_gpr(f_, 1, false));
    mov(one.reg, immediate(0x3f800000));
    shared_code(ftz ? Shared::divide_f32_ftz : Shared::divide_f32, q, one, b);
  });
  mov(d, q);
}

void Selector::reciprocal_f64(uint32_t d, Op b0) {
  Op b = lasting(b0, 2), q = gpr(new_gpr(f_, 2, false)), r = temp(2), e = temp(2), e2 = temp(2), r1 = temp(2),
     e3 = temp(2);
  const uint32_t quick = new_predicate(f_, false);
  // The vendor's test: neither the divisor nor its reciprocal is subnormal. Any low word will do for the estimate.
  add(r.reg, high_word(b), immediate(0x00300402));
  emit(Mnemonic::FSETP, {predicate(quick), pt(), absolute(gpr(r.reg)), immediate(0x00400402), pt()})
      .mod(ModifierKind::FloatCompare, not_less);
  emit(Mnemonic::MUFU, {high_word(r), high_word(b)}).mod(ModifierKind::Function, rcp64h);
  emit(Mnemonic::DFMA, {e, r, negate(b), f64_addend(0x3ff00000)});
  emit(Mnemonic::DFMA, {e2, e, e, e});
  emit(Mnemonic::DFMA, {r1, r, e2, r});
  emit(Mnemonic::DFMA, {e3, r1, negate(b), f64_addend(0x3ff00000)});
  emit(Mnemonic::DFMA, {q, r1, e3, r1});
  only_where(predicate(quick, true), [&] {
    const Op one = gpr(new_gpr(f_, 2, false));
    mov(one.reg, rz);
    mov(one.reg + 1, immediate(0x3ff00000));
    shared_code(Shared::divide_f64, q, one, b);
  });
  mov(d, q);
  mov(d + 1, gpr(q.reg + 1));
}

void Selector::divide_f32_slow(Op q, Op a, Op b, bool ftz) {
  const Op pt = predicate(isa::PT);
  Op x = a, y = b;
  auto flushed = [&](Op o) {
    Op t = gpr(new_gpr(f_, 1, false));
    emit(Mnemonic::FADD, {t, o, negate(gpr(isa::RZ))}).mod(ModifierKind::FTZ, 1);
    return t;
  };
  if (ftz) x = flushed(x), y = flushed(y);
  auto special = [&](Op o) {  // |bits| - 1 wraps around for zero
    uint32_t p = temp_predicate();
    Op bits = temp(), less_one = temp();
    logic(bits.reg, o, immediate(0x7fffffff), 0xc0);
    add(less_one.reg, bits, immediate(-1));
    setp(p, isa::PT, Cmp::GE, less_one, immediate(0x7f7fffff), false, 0, pt);
    return p;
  };
  const uint32_t sx = special(x), sy = special(y), any_special = new_predicate(f_, false);
  predicate_logic(any_special, predicate(sx), predicate(sy), '|');
  Op unit = temp(), divisor = temp(), inverse = temp();
  logic3(unit.reg, y, immediate(INT32_MIN), immediate(0x3f800000), 0xea);
  select(divisor.reg, y, unit, predicate(sy));
  emit(Mnemonic::MUFU, {inverse, divisor}).mod(ModifierKind::Function, rcp);
  emit(Mnemonic::FMUL, {q, x, inverse});
  where_any(predicate(any_special, true), [&] {
    Op wide_x = temp(2), wide_y = temp(2), wide_q = temp(2), finite = temp();
    float_to_float(wide_x.reg, 64, x, 32, 0, false);
    float_to_float(wide_y.reg, 64, y, 32, 0, false);
    quotient_f64(wide_q, wide_x, wide_y);
    float_to_float(finite.reg, 32, wide_q, 64, 0, false);
    select(q.reg, q, ftz ? flushed(finite) : finite, predicate(any_special));
  });
}

// s = the root of v, rounded to nearest, for operands that keep all steps normal.
void Selector::root_f64(Op s, Op v) {
  Op y0 = temp(2), yy = temp(2), e = temp(2), c = temp(2), ye = temp(2), y = temp(2), s0 = temp(2), h = temp(2),
     rest = temp(2);
  mov(y0.reg, rz);
  emit(Mnemonic::MUFU, {high_word(y0), high_word(v)}).mod(ModifierKind::Function, rsq64h);
  emit(Mnemonic::DMUL, {yy, y0, y0});
  emit(Mnemonic::DFMA, {e, yy, negate(v), f64_addend(0x3ff00000)});
  emit(Mnemonic::DFMA, {c, e, f64_literal(0x3fd80000), f64_addend(0x3fe00000)});
  emit(Mnemonic::DMUL, {ye, y0, e});
  emit(Mnemonic::DFMA, {y, c, ye, y0});
  emit(Mnemonic::DMUL, {s0, v, y});
  emit(Mnemonic::DMUL, {h, y, immediate(0x3fe00000)});
  emit(Mnemonic::DFMA, {rest, s0, negate(s0), v});
  emit(Mnemonic::DFMA, {s, rest, h, s0});
}

void Selector::sqrt_f64(uint32_t d, Op x0) {
  Op x = lasting(x0, 2), root = gpr(new_gpr(f_, 2, false));
  const Op pt = predicate(isa::PT);
  const uint32_t slow = new_predicate(f_, false);
  // Positive, exponent field 54 .. 2046.
  Op shifted = temp();
  add(shifted.reg, high_word(x), immediate(-0x03600000));
  setp(slow, isa::PT, Cmp::GE, shifted, immediate(0x7ff00000 - 0x03600000), false, 0, pt);
  root_f64(root, x);
  only_where(predicate(slow), [&] { shared_code(Shared::root_f64, root, x, none()); });
  mov(d, root);
  mov(d + 1, gpr(root.reg + 1));
}

void Selector::root_f64_slow(Op root, Op x) {
  const Op pt = predicate(isa::PT);
  Op other = temp(2), nan = temp();
  const uint32_t positive = temp_predicate(), negative = temp_predicate(), finite = new_predicate(f_, false);
  emit(Mnemonic::DADD, {other, x, negate(rz)});  // zero, infinity, a quiet NaN
  emit(Mnemonic::DSETP, {predicate(positive), pt, x, rz, pt}).mod(ModifierKind::FloatCompare, greater);
  setp(finite, isa::PT, Cmp::LT, high_word(x), immediate(0x7ff00000), false, 0, predicate(positive));
  emit(Mnemonic::DSETP, {predicate(negative), pt, x, rz, pt}).mod(ModifierKind::FloatCompare, less);
  select(root.reg, rz, other, predicate(negative));
  mov(nan.reg, immediate(0x7ff80000));
  select(root.reg + 1, nan, high_word(other), predicate(negative));
  where_any(predicate(finite), [&] {
    Op scaled = temp(2), s = temp(2), small = temp(2);
    emit(Mnemonic::DMUL, {scaled, x, immediate(0x46b00000)});  // 2^108
    root_f64(s, scaled);
    emit(Mnemonic::DMUL, {small, s, immediate(0x3c900000)});  // 2^-54
    select(root.reg, small, root, predicate(finite));
    select(root.reg + 1, high_word(small), high_word(root), predicate(finite));
  });
}

// s = the root of v, rounded to nearest, for operands that keep all steps normal.
void Selector::root_f32(Op s, Op v) {
  Op y = temp(), g = temp(), h = temp(), rest = temp();
  emit(Mnemonic::MUFU, {y, v}).mod(ModifierKind::Function, rsq);
  emit(Mnemonic::FMUL, {g, v, y});
  emit(Mnemonic::FMUL, {h, y, immediate(0x3f000000)});
  emit(Mnemonic::FFMA, {rest, g, negate(g), v});
  emit(Mnemonic::FFMA, {s, rest, h, g});
}

void Selector::sqrt_f32(uint32_t d, Op x0, bool ftz) {
  Op x = lasting(x0, 1), root = gpr(new_gpr(f_, 1, false));
  const Op pt = predicate(isa::PT);
  const uint32_t slow = new_predicate(f_, false);
  Op shifted = temp();
  add(shifted.reg, x, immediate(-0x0d000000));
  setp(slow, isa::PT, Cmp::GE, shifted, immediate(0x7f800000 - 0x0d000000), false, 0, pt);
  root_f32(root, x);
  only_where(predicate(slow), [&] { shared_code(ftz ? Shared::root_f32_ftz : Shared::root_f32, root, x, none()); });
  mov(d, root);
}

void Selector::root_f32_slow(Op root, Op x, bool ftz) {
  const Op pt = predicate(isa::PT);
  Op v = x;
  if (ftz) {
    v = temp();
    emit(Mnemonic::FADD, {v, x, negate(rz)}).mod(ModifierKind::FTZ, 1);
  }
  Op scaled = temp(), s = temp(), finite = temp(), other = temp(), t = temp(), nan = temp();
  uint32_t positive = temp_predicate(), in_range = temp_predicate(), negative = temp_predicate();
  emit(Mnemonic::FMUL, {scaled, v, immediate(0x5f800000)});  // 2^64
  root_f32(s, scaled);
  emit(Mnemonic::FMUL, {finite, s, immediate(0x2f800000)});  // 2^-32
  emit(Mnemonic::FADD, {other, v, negate(rz)});
  emit(Mnemonic::FSETP, {predicate(positive), pt, v, rz, pt}).mod(ModifierKind::FloatCompare, greater);
  setp(in_range, isa::PT, Cmp::LT, v, immediate(0x7f800000), false, 0, predicate(positive));
  emit(Mnemonic::FSETP, {predicate(negative), pt, v, rz, pt}).mod(ModifierKind::FloatCompare, less);
  select(t.reg, finite, other, predicate(in_range));
  mov(nan.reg, immediate(0x7fffffff));
  select(root.reg, nan, t, predicate(negative));
}

// q is a / b rounded to nearest, or the root of a (then b is q). Rounds it as wanted instead: the sign of the remainder a - q * b, which an fma
// rounded away from zero keeps, tells on which side of the exact value q lies, and its neighbour there is one unit of its bits away. Overflow,
// underflow and zeros follow the same rule; an infinity or NaN that is exact has a NaN for a remainder and stays.
void Selector::round_directed(Op q, Op a, Op b, bool wide, ptx::Rounding rounding, bool root) {
  const Op pt = predicate(isa::PT), rz = gpr(isa::RZ);
  const Mnemonic fma = wide ? Mnemonic::DFMA : Mnemonic::FFMA, compare = wide ? Mnemonic::DSETP : Mnemonic::FSETP;
  constexpr uint32_t down = 1, up = 2;  // codes of rounding
  const Op above = temp(wide ? 2 : 1), below = temp(wide ? 2 : 1), one = temp(), minus_one = temp();
  const uint32_t positive = temp_predicate(), negative = temp_predicate();
  emit(fma, {above, q, negate(b), a}).mod(ModifierKind::Rounding, up);
  emit(fma, {below, q, negate(b), a}).mod(ModifierKind::Rounding, down);
  emit(compare, {predicate(positive), pt, above, rz, pt}).mod(ModifierKind::FloatCompare, greater);
  emit(compare, {predicate(negative), pt, below, rz, pt}).mod(ModifierKind::FloatCompare, less);
  mov(one.reg, immediate(1));
  mov(minus_one.reg, immediate(-1));
  Op some = temp(), error = temp();
  select(some.reg, one, rz, predicate(positive));
  select(error.reg, minus_one, some, predicate(negative));
  const auto times_sign_of = [&](Op x, Op high) {
    Op sign = temp(), flipped = temp(), result = temp();
    shift_right(sign.reg, high, immediate(31), true);
    logic(flipped.reg, x, sign, 0x3c);
    add(result.reg, flipped, negate(sign));
    return result;
  };
  const auto limited = [&](Op x, bool max) {
    Op result = temp();
    min_max(result.reg, x, rz, max, true);
    return result;
  };
  const Op q_high = gpr(q.reg + (wide ? 1 : 0));
  if (!root)
    error = times_sign_of(error, gpr(b.reg + (wide ? 1 : 0)));  // which side: the sign of the exact value less q
  if (rounding != ptx::Rounding::rz) error = limited(error, rounding == ptx::Rounding::rp);
  Op step = times_sign_of(error, q_high);
  if (rounding == ptx::Rounding::rz) step = limited(step, false);
  if (!wide) return add(q.reg, q, step);
  Op step_high = temp(), sum = temp(2);
  shift_right(step_high.reg, step, immediate(31), true);
  add64(sum.reg, {q, q_high}, {step, step_high}, false);
  mov(q.reg, sum);
  mov(q.reg + 1, gpr(sum.reg + 1));
}

// div, rcp, sqrt rounded as IEEE 754 says; rsqrt of f64, as the reciprocal of the root. False when the instruction is another.
bool Selector::divide_or_root(const ptx::Instruction& i) {
  if (!expands_to_branches(i) || !ptx::is_floating(i.type)) return false;
  const uint32_t d = destination(p_.operand(i, 0));
  if (d == isa::RZ) return true;
  const bool wide = i.type == ptx::Type::f64, directed = i.mods.rounding != ptx::Rounding::rn && !i.mods.approx,
             flushes = i.mods.ftz && !wide;
  const auto flushed = [&](Op o) {
    Op t = gpr(new_gpr(f_, 1, false));
    emit(Mnemonic::FADD, {t, o, negate(gpr(isa::RZ))}).mod(ModifierKind::FTZ, 1);
    return t;
  };
  const auto src = [&](uint32_t k) {
    if (wide) return source_pair(p_.operand(i, k));
    Op o = as_register(source(p_.operand(i, k), i.type));
    return directed && flushes ? flushed(o) : o;
  };
  const auto one = [&] { return wide ? f64_literal(0x3ff00000) : as_register(immediate(0x3f800000)); };
  const auto divide = [&](uint32_t q, Op a, Op b) {
    wide ? divide_f64(q, a, b) : divide_f32(q, a, b, flushes && !directed);
  };
  const auto root = [&](uint32_t q, Op x) { wide ? sqrt_f64(q, x) : sqrt_f32(q, x, flushes && !directed); };
  const auto invert = [&](uint32_t q, Op b) {
    wide ? reciprocal_f64(q, b) : reciprocal_f32(q, b, flushes && !directed);
  };
  if (i.op == ptx::Opcode::rsqrt) {
    Op x = src(1), y = gpr(new_gpr(f_, 2, false));
    root(y.reg, x);
    invert(d, y);
    return true;
  }
  if (i.op != ptx::Opcode::div && i.op != ptx::Opcode::rcp && i.op != ptx::Opcode::sqrt) return false;
  const bool is_root = i.op == ptx::Opcode::sqrt;
  if (i.op == ptx::Opcode::rcp && !directed) {
    invert(d, src(1));
    return true;
  }
  Op a = i.op == ptx::Opcode::rcp ? one() : src(1), b = is_root ? Op{} : src(i.op == ptx::Opcode::rcp ? 1 : 2);
  if (!directed) {
    is_root ? root(d, a) : divide(d, a, b);
    return true;
  }
  a = lasting(a, wide ? 2 : 1);
  if (!is_root) b = lasting(b, wide ? 2 : 1);
  Op q = gpr(new_gpr(f_, wide ? 2 : 1, false));
  is_root ? root(q.reg, a) : divide(q.reg, a, b);
  round_directed(q, a, is_root ? q : b, wide, i.mods.rounding, is_root);
  if (flushes) q = flushed(q);
  mov(d, q);
  if (wide) mov(d + 1, gpr(q.reg + 1));
  return true;
}

}  // namespace rndn::assembler
