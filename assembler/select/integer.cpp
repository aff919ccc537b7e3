// Integer arithmetic, bits, comparison and selection (selection, both families): add to max, products, logic, shifts, bit fields, setp, set, selp, slct.
//
// 64-bit operations work on the halves of a pair; 8- and 16-bit sources are extended first, since the upper bits of their registers are undefined.
#include <bit>

#include "assembler/select/select.h"

namespace rndn::assembler {

using ptx::Opcode;
using ptx::Type;
using OperandKind = ptx::Operand;

void Selector::arithmetic(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  const ptx::Operand& oa = p_.operand(i, 1);
  if (i.mods.sat) {  // add and sub of s32
    Op b = source(p_.operand(i, 2), i.type);
    if (i.op == Opcode::sub) {  // a - b = a + ~b + 1: what saturates is ~(~a + b)
      Op t = temp(), s = temp();
      invert(t.reg, source(oa, i.type));
      add_saturated(s.reg, t, b);
      return invert(d, s);
    }
    return add_saturated(d, source(oa, i.type), b);
  }
  if (is_wide(i.type)) {
    Wide a = source64(oa);
    switch (i.op) {
      case Opcode::add: add64(d, a, source64(p_.operand(i, 2)), false); return;
      case Opcode::sub: add64(d, a, source64(p_.operand(i, 2)), true); return;
      case Opcode::neg: add64(d, {gpr(isa::RZ), gpr(isa::RZ)}, a, true); return;
      case Opcode::abs: {
        Op t = temp(2);
        uint32_t p = temp_predicate();
        add64(t.reg, {gpr(isa::RZ), gpr(isa::RZ)}, a, true);
        Op hi = as_register(a.hi);
        setp(p, isa::PT, Cmp::LT, hi, gpr(isa::RZ), true, 0, predicate(isa::PT));
        select(d, t, a.lo, predicate(p));
        select(d + 1, gpr(t.reg + 1), hi, predicate(p));
        return;
      }
      case Opcode::min:
      case Opcode::max: {
        Op t = temp(2);
        min_max64(t.reg, a, source64(p_.operand(i, 2)), i.op == Opcode::max, ptx::is_signed(i.type));
        mov(d, t);
        mov(d + 1, gpr(t.reg + 1));
        return;
      }
      default: return unsupported(i);
    }
  }
  switch (i.op) {
    case Opcode::add: add(d, source(oa, i.type), source(p_.operand(i, 2), i.type)); return;
    case Opcode::sub: add(d, source(oa, i.type), negate(source(p_.operand(i, 2), i.type))); return;
    case Opcode::neg: add(d, gpr(isa::RZ), negate(source(oa, i.type))); return;
    case Opcode::abs: abs32(d, extended(oa, i.type)); return;
    case Opcode::min:
    case Opcode::max: {
      Op a = extended(oa, i.type), b = extended(p_.operand(i, 2), i.type);
      min_max(d, a, b, i.op == Opcode::max, ptx::is_signed(i.type));
      return;
    }
    default: unsupported(i);
  }
}

// High 64 bits of a product.
void Selector::mul_hi64(uint32_t d, Wide a, Wide b, bool is_signed) {
  Op product = temp(2);
  // Schoolbook on 32-bit halves; no sum overflows 64 bits.
  Op al = as_register(a.lo), ah = as_register(a.hi), bl = as_register(b.lo), bh = as_register(b.hi);
  const Op zero = gpr(isa::RZ);
  Op w0 = temp(2), c1 = temp(2), w1 = temp(2), c2 = temp(2), w2 = temp(2), c3 = temp(2), w3 = temp(2), c4 = temp(2);
  mad_wide(w0.reg, al, bl, {zero, zero}, false);
  mov(c1.reg, gpr(w0.reg + 1)), mov(c1.reg + 1, zero);
  mad_wide(w1.reg, ah, bl, {c1, gpr(c1.reg + 1)}, false);
  mov(c2.reg, w1), mov(c2.reg + 1, zero);
  mad_wide(w2.reg, al, bh, {c2, gpr(c2.reg + 1)}, false);
  mov(c3.reg, gpr(w1.reg + 1)), mov(c3.reg + 1, zero);
  mad_wide(w3.reg, ah, bh, {c3, gpr(c3.reg + 1)}, false);
  mov(c4.reg, gpr(w2.reg + 1)), mov(c4.reg + 1, zero);
  add64(product.reg, {w3, gpr(w3.reg + 1)}, {c4, gpr(c4.reg + 1)}, false);
  if (is_signed) {  // minus b where a < 0, minus a where b < 0
    for (auto [sign, l, h] : {std::tuple{ah, bl, bh}, std::tuple{bh, al, ah}}) {
      Op mask = temp(), x = temp(2), next = temp(2);
      shift_right(mask.reg, sign, immediate(31), true);
      logic(x.reg, l, mask, 0xc0);
      logic(x.reg + 1, h, mask, 0xc0);
      add64(next.reg, {product, gpr(product.reg + 1)}, {x, gpr(x.reg + 1)}, true);
      product = next;
    }
  }
  mov(d, product);
  mov(d + 1, gpr(product.reg + 1));
}

void Selector::multiply(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  const bool is_signed = ptx::is_signed(i.type), has_addend = i.op == Opcode::mad;
  const ptx::Operand &oa = p_.operand(i, 1), &ob = p_.operand(i, 2);
  const uint32_t bytes = ptx::type_bytes(i.type);
  using ptx::MulPart;
  if (bytes == 8) {
    // Of two that are one word extended likewise it is one of words.
    if (i.mods.part == MulPart::lo)
      if (const Factor a = factor(oa), b = factor(ob); const uint32_t both = a.extends & b.extends)
        return mad_wide(d, a.low, b.low, has_addend ? source64(p_.operand(i, 3)) : Wide{rz, rz}, !(both & by_zeros));
    Wide a = source64(oa), b = source64(ob);
    Op product = temp(2);
    if (i.mods.part == MulPart::lo) {
      mul64(product.reg, a, b);
    } else {
      mul_hi64(product.reg, a, b, is_signed);
    }
    if (has_addend) {
      add64(d, {product, gpr(product.reg + 1)}, source64(p_.operand(i, 3)), false);
    } else {
      mov(d, product);
      mov(d + 1, gpr(product.reg + 1));
    }
    return;
  }
  if (bytes == 4) {
    Op a = source(oa, i.type), b = source(ob, i.type);
    if (i.mods.part == MulPart::lo) return mad(d, a, b, has_addend ? source(p_.operand(i, 3), i.type) : gpr(isa::RZ));
    if (i.mods.part == MulPart::hi) {
      if (!has_addend) return mul_hi(d, a, b, is_signed);
      Op t = temp();
      mul_hi(t.reg, a, b, is_signed);
      if (i.mods.sat) return add_saturated(d, t, source(p_.operand(i, 3), i.type));
      return add(d, t, source(p_.operand(i, 3), i.type));
    }
    Wide c = has_addend ? source64(p_.operand(i, 3)) : Wide{gpr(isa::RZ), gpr(isa::RZ)};
    return mad_wide(d, a, b, c, is_signed);
  }
  Op a = extended(oa, i.type), b = extended(ob, i.type);
  if (i.mods.part == MulPart::hi) {
    Op t = temp();
    mad(t.reg, a, b, gpr(isa::RZ));
    if (!has_addend) return shift_right(d, t, immediate(16), is_signed);
    Op u = temp();
    shift_right(u.reg, t, immediate(16), is_signed);
    return add(d, u, source(p_.operand(i, 3), i.type));
  }
  mad(d, a, b, has_addend ? source(p_.operand(i, 3), i.mods.part == MulPart::wide ? Type::u32 : i.type) : gpr(isa::RZ));
}

Selector::Factor Selector::factor(const ptx::Operand& o) {
  if (o.kind == OperandKind::immediate) {
    uint32_t extends = 0;
    if (o.value >= 0 && o.value <= UINT32_MAX) extends |= by_zeros;
    if (o.value >= INT32_MIN && o.value <= INT32_MAX) extends |= by_sign;
    return {o.value == 0 ? rz : immediate(static_cast<int32_t>(o.value)), extends};
  }
  if (o.kind != OperandKind::reg) return {};
  const Register& r = registers_[o.id];
  return {r.low_word != UINT32_MAX ? registers_[r.low_word].lo : r.lo, r.extends};
}

void Selector::mul64(uint32_t d, Wide a, Wide b) {
  if (literal(a.lo) && literal(a.hi)) std::swap(a, b);
  if (literal(b.lo) && literal(b.hi))
    if (const uint64_t v = uint64_t{amount(b.hi)} << 32 | amount(b.lo); std::has_single_bit(v))
      return v == 1 ? mov64(d, a) : shift_left64(d, a, immediate(std::countr_zero(v)));
  if (!is_register(a.lo) || !is_register(a.hi)) std::swap(a, b);
  if (!is_zero(b.lo)) return multiply_words(d, a, b);
  mov(d, rz);
  mad(d + 1, a.lo, b.hi, rz);
}

// testp on the bits: exponent and mantissa fields.
void Selector::test_class(const ptx::Instruction& i) {
  const uint32_t d = registers_[p_.operand(i, 0).id].first;
  const bool wide = i.type == Type::f64;
  Op high, low = rz;
  if (wide) {
    Wide a = source64(p_.operand(i, 1));
    high = as_register(a.hi), low = as_register(a.lo);
  } else {
    high = as_register(source(p_.operand(i, 1), i.type));
  }
  const uint32_t exponent_one = wide ? 0x00100000 : 0x00800000, infinity = wide ? 0x7ff00000 : 0x7f800000;
  Op magnitude = temp(), any = magnitude;
  logic(magnitude.reg, high, immediate(0x7fffffff), 0xc0);
  auto compare = [&](Cmp c, uint32_t with) {
    if (!wide) return setp(d, isa::PT, c, magnitude, immediate(static_cast<int32_t>(with)), false, 0, pt());
    Wide limit{rz, with ? immediate(static_cast<int32_t>(with)) : rz};
    setp64(d, isa::PT, c, {low, magnitude}, limit, false, 0, pt());
  };
  switch (i.mods.mode) {
    case 1: return compare(Cmp::LT, infinity);  // finite
    case 2: return compare(Cmp::EQ, infinity);  // infinite
    case 3: return compare(Cmp::LE, infinity);  // number
    case 4: return compare(Cmp::GT, infinity);  // notanumber
    case 5:                                     // normal: the exponent is neither 0 nor all ones; or zero
    case 6: {                                   // subnormal
      if (wide) {
        any = temp();
        logic(any.reg, magnitude, low, 0xfc);
      }
      uint32_t zero = temp_predicate();
      setp(zero, isa::PT, i.mods.mode == 5 ? Cmp::EQ : Cmp::NE, any, rz, false, 0, pt());
      if (i.mods.mode == 6)
        return setp(d, isa::PT, Cmp::LT, magnitude, immediate(static_cast<int32_t>(exponent_one)), false, 0,
                    predicate(zero));
      Op less = temp();
      add(less.reg, magnitude, immediate(-static_cast<int64_t>(exponent_one)));
      return setp(d, isa::PT, Cmp::LT, less, immediate(static_cast<int32_t>(infinity - exponent_one)), false, 1,
                  predicate(zero));
    }
    default: return unsupported(i);
  }
}

// bmsk and szext: one instruction each on the targets that have them.
void Selector::integer_extras(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  Op a = as_register(source(p_.operand(i, 1), i.type)), b = plain(source(p_.operand(i, 2), Type::u32));
  Emitted e = i.op == Opcode::bmsk
                  ? emit(Mnemonic::BMSK, {gpr(d), a, b})
                  : emit(Mnemonic::SGXT, {gpr(d), a, b.kind == isa::OperandKind::constant ? as_register(b) : b})
                        .mod(ModifierKind::Signed, ptx::is_signed(i.type));
  e.mod(ModifierKind::Wrap, i.mods.shift == ptx::ShiftMode::wrap);
}

// The sum of two's complement numbers, at the limits when it does not fit.
void Selector::add_saturated(uint32_t d, Op a, Op b) {
  a = as_register(plain(a)), b = as_register(plain(b));
  Op sum = temp(), x = temp(), y = temp(), both = temp(), limit = temp();
  uint32_t over = temp_predicate();
  add(sum.reg, a, b);
  logic(x.reg, sum, a, 0x3c);
  logic(y.reg, sum, b, 0x3c);
  logic(both.reg, x, y, 0xc0);  // the sign differs from both
  setp(over, isa::PT, Cmp::LT, both, rz, true, 0, pt());
  shift_right(limit.reg, a, immediate(31), true);
  Op most = temp();
  logic(most.reg, limit, immediate(0x7fffffff), 0x3c);
  select(d, most, sum, predicate(over));
}

void Selector::min_max64(uint32_t d, Wide a, Wide b, bool max, bool is_signed) {
  uint32_t p = temp_predicate();
  setp64(p, isa::PT, max ? Cmp::GT : Cmp::LT, a, b, is_signed, 0, pt());
  select(d, a.lo, b.lo, predicate(p));
  select(d + 1, a.hi, b.hi, predicate(p));
}

bool Selector::shift_left_words(uint32_t d, Wide a, Op n) {
  if (!literal(n) || amount(n) < 32) return false;
  if (amount(n) > 63)
    mov(d + 1, rz);
  else if (amount(n) == 32)
    mov(d + 1, a.lo);
  else
    shift_left(d + 1, a.lo, immediate(amount(n) - 32));
  mov(d, rz);
  return true;
}

bool Selector::shift_right_words(uint32_t d, Wide a, Op n, bool is_signed) {
  if (!literal(n) || amount(n) < 32) return false;
  Op hi = as_register(a.hi);
  uint32_t k = amount(n) - 32;
  if (k > 31 && !is_signed)
    mov(d, rz);
  else if (k == 0)
    mov(d, hi);
  else
    shift_right(d, hi, immediate(k), is_signed);
  is_signed ? shift_right(d + 1, hi, immediate(31), true) : mov(d + 1, rz);
  return true;
}

void Selector::bits(const ptx::Instruction& i) {
  const ptx::Operand &o0 = p_.operand(i, 0), &o1 = p_.operand(i, 1);
  const uint32_t d = destination(o0);
  const uint32_t bytes = ptx::type_bytes(i.type);
  auto halves = [&](auto&& f) {  // applies a 32-bit operation to both halves
    Wide a = source64(o1);
    Wide b = i.operand_count > 2 ? source64(p_.operand(i, 2)) : Wide{};
    f(d, a.lo, b.lo);
    f(d + 1, a.hi, b.hi);
  };
  switch (i.op) {
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_: {
      const uint8_t lut = i.op == Opcode::and_ ? 0xc0 : i.op == Opcode::or_ ? 0xfc : 0x3c;
      if (i.type == Type::pred)
        return predicate_logic(d, source_predicate(o1), source_predicate(p_.operand(i, 2)),
                               i.op == Opcode::and_  ? '&'
                               : i.op == Opcode::or_ ? '|'
                                                     : '^');
      // A literal of 64 bits often leaves a half alone, or says what it is.
      const auto half = [&](uint32_t r, Op a, Op b) {
        if (is_zero(a)) std::swap(a, b);
        const bool ones = is_immediate(b) && static_cast<uint32_t>(b.value) == UINT32_MAX;
        if (is_zero(b)) return mov(r, i.op == Opcode::and_ ? rz : a);
        if (ones && i.op == Opcode::and_) return mov(r, a);
        logic(r, a, b, lut);
      };
      if (bytes == 8) return halves(half);
      return logic(d, source(o1, i.type), source(p_.operand(i, 2), i.type), lut);
    }
    case Opcode::not_:
      if (i.type == Type::pred) return predicate_logic(d, negate(source_predicate(o1)), predicate(isa::PT), '&');
      if (bytes == 8) return halves([&](uint32_t r, Op a, Op) { invert(r, a); });
      return invert(d, source(o1, i.type));
    case Opcode::cnot: {
      uint32_t p = temp_predicate();
      if (bytes == 8) {
        setp64(p, isa::PT, Cmp::EQ, source64(o1), {gpr(isa::RZ), gpr(isa::RZ)}, false, 0, predicate(isa::PT));
        select(d, gpr(isa::RZ), immediate(1), predicate(p, true));
        return mov(d + 1, gpr(isa::RZ));
      }
      setp(p, isa::PT, Cmp::EQ, extended(o1, i.type), gpr(isa::RZ), false, 0, predicate(isa::PT));
      return select(d, gpr(isa::RZ), immediate(1), predicate(p, true));
    }
    case Opcode::lop3: {
      const ptx::Operand& lut = p_.operand(i, 4);
      return logic3(d, source(o1, i.type), source(p_.operand(i, 2), i.type), source(p_.operand(i, 3), i.type),
                    static_cast<uint8_t>(lut.value));
    }
    case Opcode::shl: {
      Op n = source(p_.operand(i, 2), Type::u32);
      if (bytes == 8) return shift_left64(d, source64(o1), n);
      return shift_left(d, source(o1, i.type), n);  // 16 bits: what is shifted past bit 15 is never looked at
    }
    case Opcode::shr: {
      Op n = source(p_.operand(i, 2), Type::u32);
      if (bytes == 8) return shift_right64(d, source64(o1), n, ptx::is_signed(i.type));
      return shift_right(d, extended(o1, i.type), n, ptx::is_signed(i.type));
    }
    case Opcode::shf:
      return funnel(d, source(o1, i.type), source(p_.operand(i, 2), i.type), source(p_.operand(i, 3), Type::u32),
                    i.mods.mode == 2, i.mods.shift == ptx::ShiftMode::wrap);
    case Opcode::prmt:
      return permute(d, source(o1, i.type), source(p_.operand(i, 2), i.type), source(p_.operand(i, 3), Type::u32),
                     i.mods.mode);
    case Opcode::popc:
      if (bytes == 8) {
        Wide a = source64(o1);
        Op x = temp(), y = temp();
        popc(x.reg, a.lo);
        popc(y.reg, a.hi);
        return add(d, x, y);
      }
      return popc(d, source(o1, i.type));
    case Opcode::brev:
      if (bytes == 8) {
        Wide a = source64(o1);
        Op x = temp(), y = temp();
        reverse(x.reg, a.hi);
        reverse(y.reg, a.lo);
        mov(d, x);
        return mov(d + 1, y);
      }
      return reverse(d, source(o1, i.type));
    case Opcode::clz:
    case Opcode::bfind: {
      const bool is_signed = i.op == Opcode::bfind && ptx::is_signed(i.type),
                 amount = i.op == Opcode::bfind && i.mods.mode == 1;
      Op t = temp();
      if (bytes == 4) {
        if (i.op == Opcode::bfind) return find_leading(d, source(o1, i.type), is_signed, amount);
        find_leading(t.reg, source(o1, i.type), false, false);  // -1 for zero: 31 - (-1) = 32
        return add(d, immediate(31), negate(t));
      }
      Wide a = source64(o1);
      Op lo = as_register(a.lo), hi = as_register(a.hi);
      if (is_signed) {  // the leading bit that differs from the sign
        Op mask = temp(), l = temp(), h = temp();
        shift_right(mask.reg, hi, immediate(31), true);
        logic(l.reg, lo, mask, 0x3c);
        logic(h.reg, hi, mask, 0x3c);
        lo = l, hi = h;
      }
      // The index in the high word + 32 when that is not zero, else the index in the low word (-1 for none).
      Op x = temp(), y = temp(), z = temp(), r = temp();
      uint32_t p = temp_predicate();
      find_leading(x.reg, hi, false, false);
      find_leading(y.reg, lo, false, false);
      add(z.reg, x, immediate(32));
      setp(p, isa::PT, Cmp::EQ, hi, gpr(isa::RZ), false, 0, predicate(isa::PT));
      if (i.op == Opcode::bfind && !amount) return select(d, y, z, predicate(p));
      select(r.reg, y, z, predicate(p));
      if (i.op == Opcode::clz) return add(d, immediate(63), negate(r));
      Op s = temp();  // shift amount: 63 - index, still -1 for none
      uint32_t none_found = temp_predicate();
      add(s.reg, immediate(63), negate(r));
      setp(none_found, isa::PT, Cmp::EQ, r, immediate(-1), false, 0, predicate(isa::PT));
      return select(d, r, s, predicate(none_found));
    }
    case Opcode::bfe:
      if (bytes == 8)
        return bit_extract64(d, source64(o1), source(p_.operand(i, 2), Type::u32), source(p_.operand(i, 3), Type::u32),
                             ptx::is_signed(i.type));
      return bit_extract(d, source(o1, i.type), source(p_.operand(i, 2), Type::u32),
                         source(p_.operand(i, 3), Type::u32), ptx::is_signed(i.type));
    case Opcode::bfi:
      if (bytes == 8)
        return bit_insert64(d, source64(o1), source64(p_.operand(i, 2)), source(p_.operand(i, 3), Type::u32),
                            source(p_.operand(i, 4), Type::u32));
      return bit_insert(d, source(o1, i.type), source(p_.operand(i, 2), i.type), source(p_.operand(i, 3), Type::u32),
                        source(p_.operand(i, 4), Type::u32));
    default: unsupported(i);
  }
}

void Selector::compare(const ptx::Instruction& i) {
  if (i.op == Opcode::selp || i.op == Opcode::slct) {
    const uint32_t d = destination(p_.operand(i, 0));
    Op p;
    if (i.op == Opcode::selp) {
      p = source_predicate(p_.operand(i, 3));
    } else {
      uint32_t t = temp_predicate();
      Op c = as_register(source(p_.operand(i, 3), i.type2));
      if (i.type2 == Type::f32)
        emit(Mnemonic::FSETP, {predicate(t), predicate(isa::PT), c, gpr(isa::RZ), predicate(isa::PT)})
            .mod(ModifierKind::FloatCompare, 6)
            .mod(ModifierKind::FTZ, i.mods.ftz);
      else
        setp(t, isa::PT, Cmp::GE, c, gpr(isa::RZ), true, 0, predicate(isa::PT));
      p = predicate(t);
    }
    if (is_wide(i.type)) {
      Wide a = source64(p_.operand(i, 1)), b = source64(p_.operand(i, 2));
      select(d, a.lo, b.lo, p);
      return select(d + 1, a.hi, b.hi, p);
    }
    return select(d, source(p_.operand(i, 1), i.type), source(p_.operand(i, 2), i.type), p);
  }
  // setp, set
  const bool is_set = i.op == Opcode::set;
  const Type type = is_set ? i.type2 : i.type;
  uint32_t p = isa::PT, q = isa::PT, first = i.destination_count;
  if (is_set) {
    p = temp_predicate();
  } else {
    if (p_.operand(i, 0).kind == OperandKind::reg) p = registers_[p_.operand(i, 0).id].first;
    if (i.destination_count > 1 && p_.operand(i, 1).kind == OperandKind::reg) q = registers_[p_.operand(i, 1).id].first;
  }
  uint32_t combine = 0;
  Op with = predicate(isa::PT);
  if (i.mods.combine != ptx::Combine::none) {
    combine = static_cast<uint32_t>(i.mods.combine) - static_cast<uint32_t>(ptx::Combine::and_);
    with = source_predicate(p_.operand(i, first + 2));
  }
  Cmp c = comparison(i.mods.compare);
  const bool is_signed = ptx::is_signed(type) && i.mods.compare != ptx::Compare::lo &&
                         i.mods.compare != ptx::Compare::ls && i.mods.compare != ptx::Compare::hi &&
                         i.mods.compare != ptx::Compare::hs;
  const ptx::Operand &oa = p_.operand(i, first), &ob = p_.operand(i, first + 1);
  if (type == Type::f32) {
    Op a = source_float(oa, type, i.mods.ftz, true), b = source_float(ob, type, i.mods.ftz, true);
    if (!is_register(a) && is_register(b)) std::swap(a, b), c = mirrored(c);
    emit(Mnemonic::FSETP, {predicate(p), predicate(q), as_register(a), b, with})
        .mod(ModifierKind::FloatCompare, static_cast<uint32_t>(c))
        .mod(ModifierKind::Bool, combine)
        .mod(ModifierKind::FTZ, i.mods.ftz);
  } else if (type == Type::f64) {
    Op a = source_float(oa, type, false, true), b = source_float(ob, type, false, true);
    if (!is_register(a) && is_register(b)) std::swap(a, b), c = mirrored(c);
    if (!is_register(a)) {
      Op t = temp(2);
      if (is_immediate(a))
        mov(t.reg, gpr(isa::RZ)), mov(t.reg + 1, a);
      else
        mov(t.reg, a), mov(t.reg + 1, constant(a.bank, a.value + 4));
      a = t;
    }
    emit(Mnemonic::DSETP, {predicate(p), predicate(q), a, b, with})
        .mod(ModifierKind::FloatCompare, static_cast<uint32_t>(c))
        .mod(ModifierKind::Bool, combine);
  } else if (is_wide(type)) {
    setp64(p, q, c, source64(oa), source64(ob), is_signed, combine, with);
  } else if (ptx::is_floating(type)) {
    return unsupported(i);
  } else {
    setp(p, q, c, extended(oa, type), extended(ob, type), is_signed, combine, with);
  }
  if (is_set) {
    const uint32_t d = destination(p_.operand(i, 0));
    if (i.type == Type::f32)
      select(d, gpr(isa::RZ), immediate(0x3f800000), predicate(p, true));
    else
      select(d, gpr(isa::RZ), immediate(-1), predicate(p, true));
  }
}

}  // namespace rndn::assembler
