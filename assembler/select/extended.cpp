// Integer operations that no single instruction does (selection, both families): additions with carry, 24-bit products, sums of absolute differences,
// dot products of bytes, bit fields of 64 bits.
//
// PTX's condition code CC.CF, which no register names, lives in a 32-bit register of the function: 0 or 1. Its second one holds the opposite, the borrow:
// a subtraction leaves no borrow as carry and takes a carry for no borrow, so that sums and differences may stand in one chain (the manual speaks of
// "carry-in/carry-out or borrow-in/borrow-out", PTX ISA, 9.7.2; ptxas's code for sm_61 to sm_90 does so and CGBN's negation rests on it). A link
// writes its own form, and the other one where some chain of the function mixes them. A carry out of a + b + c is found by comparison: a sum that wraps
// around is less than its addend. That costs two more instructions than a carry chain in hardware, and survives whatever the assembler puts between
// the links.
#include "assembler/select/select.h"

namespace rndn::assembler {

using ptx::Opcode;

void Selector::extended_arithmetic(const ptx::Instruction& i) {
  switch (i.op) {
    case Opcode::mul24:
    case Opcode::mad24: return multiply24(i);
    case Opcode::sad: return sum_absolute_difference(i);
    case Opcode::dp4a:
    case Opcode::dp2a: return dot_product(i);
    default: return add_with_carry(i);
  }
}

// Whether a sum may take what a difference has left, or a difference what a sum has. What comes from another block may be either.
bool Selector::mixes_carries() const {
  enum { unknown, sum, difference };
  for (BlockId b : flow_.layout) {
    int left = unknown;
    for (const FlowItem& item : flow_.blocks[b].items) {
      const ptx::Instruction& i = p_.instructions[item.inst];
      const bool takes = i.op == Opcode::addc || i.op == Opcode::subc || i.op == Opcode::madc;
      const int own = i.op == Opcode::sub || i.op == Opcode::subc ? difference : sum;
      if (takes && left != own) return true;
      if (i.mods.carry_out) left = is_none(i.guard) || left == own ? own : unknown;
    }
  }
  return false;
}

// add.cc, addc, sub.cc, subc, mad.cc, madc.
void Selector::add_with_carry(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  const bool subtract = i.op == Opcode::sub || i.op == Opcode::subc;
  const bool product = i.op == Opcode::mad || i.op == Opcode::madc;
  const bool carry_in = i.op == Opcode::addc || i.op == Opcode::subc || i.op == Opcode::madc;
  const Op rz = gpr(isa::RZ), pt = predicate(isa::PT);
  if (i.mods.sat || i.mods.part == ptx::MulPart::wide) return unsupported(i);
  if (carry_.kind == isa::OperandKind::none) {
    carry_ = gpr(new_gpr(f_, 1, false)), borrow_ = gpr(new_gpr(f_, 1, false));
    mixes_carries_ = mixes_carries();
    // Read before any write of it in the text: PTX leaves its value open, but the registers must have one.
    if (carry_in) mov(carry_.reg, rz), mov(borrow_.reg, as_register(immediate(1)));
  }
  const Op link = subtract ? borrow_ : carry_;
  const bool wide = ptx::type_bytes(i.type) == 8;
  auto pair = [](Op o) { return Wide{o, high_word(o)}; };
  Op x, y, sum, total;
  uint32_t first = temp_predicate(), second = temp_predicate();
  if (wide) {
    x = temp(2), y = temp(2), sum = temp(2), total = temp(2);
    auto copy = [&](Op to, Wide w) { mov(to.reg, w.lo), mov(to.reg + 1, w.hi); };
    if (product) {
      if (i.mods.part == ptx::MulPart::hi)
        mul_hi64(x.reg, source64(p_.operand(i, 1)), source64(p_.operand(i, 2)), ptx::is_signed(i.type));
      else
        mul64(x.reg, source64(p_.operand(i, 1)), source64(p_.operand(i, 2)));
      copy(y, source64(p_.operand(i, 3)));
    } else {
      copy(x, source64(p_.operand(i, 1)));
      copy(y, source64(p_.operand(i, 2)));
    }
    add64(sum.reg, pair(x), pair(y), subtract);
    if (i.mods.carry_out)
      setp64(first, isa::PT, Cmp::LT, subtract ? pair(x) : pair(sum), subtract ? pair(y) : pair(x), false, 0, pt);
    if (carry_in) {
      Op c = temp(2);
      mov(c.reg, link), mov(c.reg + 1, rz);
      add64(total.reg, pair(sum), pair(c), subtract);
      if (i.mods.carry_out)
        setp64(second, isa::PT, Cmp::LT, subtract ? pair(sum) : pair(total), subtract ? pair(c) : pair(sum), false, 0,
               pt);
    } else {
      total = sum;
    }
  } else {
    x = temp(), y = temp(), sum = temp(), total = temp();
    if (product) {
      Op a = source(p_.operand(i, 1), i.type), b = source(p_.operand(i, 2), i.type);
      if (i.mods.part == ptx::MulPart::hi)
        mul_hi(x.reg, a, b, ptx::is_signed(i.type));
      else
        mad(x.reg, a, b, rz);
      mov(y.reg, source(p_.operand(i, 3), i.type));
    } else {
      mov(x.reg, source(p_.operand(i, 1), i.type));
      mov(y.reg, source(p_.operand(i, 2), i.type));
    }
    add(sum.reg, x, subtract ? negate(y) : y);
    if (i.mods.carry_out) setp(first, isa::PT, Cmp::LT, subtract ? x : sum, subtract ? y : x, false, 0, pt);
    if (carry_in) {
      add(total.reg, sum, subtract ? negate(link) : link);
      if (i.mods.carry_out)
        setp(second, isa::PT, Cmp::LT, subtract ? sum : total, subtract ? link : sum, false, 0, pt);
    } else {
      total = sum;
    }
  }
  if (i.mods.carry_out) {
    uint32_t any = first;
    if (carry_in) any = temp_predicate(), predicate_logic(any, predicate(first), predicate(second), '|');
    const Op one = as_register(immediate(1));
    select(link.reg, one, rz, predicate(any));
    if (mixes_carries_) select((subtract ? carry_ : borrow_).reg, rz, one, predicate(any));
  }
  if (d == isa::RZ) return;
  mov(d, total);
  if (wide) mov(d + 1, gpr(total.reg + 1));
}

void Selector::multiply24(const ptx::Instruction& i) {
  if (i.mods.sat) return unsupported(i);
  const uint32_t d = destination(p_.operand(i, 0));
  const bool is_signed = ptx::is_signed(i.type), has_addend = i.op == Opcode::mad24;
  const Op rz = gpr(isa::RZ);
  auto low24 = [&](uint32_t k) {
    Op t = temp(), a = as_register(source(p_.operand(i, k), i.type));
    if (is_signed)
      bit_extract(t.reg, a, immediate(0), immediate(24), true);
    else
      logic(t.reg, a, immediate(0xffffff), 0xc0);
    return t;
  };
  Op a = low24(1), b = low24(2), c = has_addend ? source(p_.operand(i, 3), i.type) : rz;
  if (i.mods.part != ptx::MulPart::hi) return mad(d, a, b, c);
  Op product = temp(2), part = temp(2);  // bits 16 to 47
  mad_wide(product.reg, a, b, {rz, rz}, is_signed);
  shift_right64(part.reg, {product, gpr(product.reg + 1)}, immediate(16), is_signed);
  add(d, part, c);
}

void Selector::sum_absolute_difference(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  const bool is_signed = ptx::is_signed(i.type);
  if (ptx::type_bytes(i.type) == 8) {
    Wide a = source64(p_.operand(i, 1)), b = source64(p_.operand(i, 2));
    Op high = temp(2), low = temp(2), difference = temp(2);
    auto pair = [](Op o) { return Wide{o, high_word(o)}; };
    min_max64(high.reg, a, b, true, is_signed);
    min_max64(low.reg, a, b, false, is_signed);
    add64(difference.reg, pair(high), pair(low), true);
    return add64(d, pair(difference), source64(p_.operand(i, 3)), false);
  }
  Op a = extended(p_.operand(i, 1), i.type), b = extended(p_.operand(i, 2), i.type);
  Op high = temp(), low = temp(), difference = temp();
  min_max(high.reg, a, b, true, is_signed);
  min_max(low.reg, a, b, false, is_signed);
  add(difference.reg, high, negate(low));
  add(d, difference, source(p_.operand(i, 3), i.type));
}

// The types are of the elements of the first and the second operand.
void Selector::dot_product(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  const bool signed_a = ptx::is_signed(i.type), signed_b = ptx::is_signed(i.type2), two = i.op == Opcode::dp2a;
  Op a = as_register(source(p_.operand(i, 1), ptx::Type::b32)),
     b = as_register(source(p_.operand(i, 2), ptx::Type::b32));
  Op sum = as_register(source(p_.operand(i, 3), ptx::Type::b32));
  if (!two && t_.has(isa::Feature::byte_products)) {
    emit(Mnemonic::IDP, {gpr(d), a, b, sum}).mod(ModifierKind::SignedA, signed_a).mod(ModifierKind::SignedB, signed_b);
    return;
  }
  const int n = two ? 2 : 4, bits = two ? 16 : 8, from = two && i.mods.part == ptx::MulPart::hi ? 16 : 0;
  for (int k = 0; k < n; ++k) {
    Op x = temp(), y = temp(), next = temp();
    bit_extract(x.reg, a, immediate(bits * k), immediate(bits), signed_a);
    bit_extract(y.reg, b, immediate(from + 8 * k), immediate(8), signed_b);
    mad(next.reg, x, y, sum);
    sum = next;
  }
  mov(d, sum);
}

// bfe.u64, bfe.s64: shifted down, then all but `length` bits cleared or filled with the highest of them.
void Selector::bit_extract64(uint32_t d, Wide a, Op position, Op length, bool is_signed) {
  Op from = temp(), n = temp(), shifted = temp(2);
  logic(from.reg, as_register(position), immediate(0xff), 0xc0);
  logic(n.reg, as_register(length), immediate(0xff), 0xc0);
  auto pair = [](Op o) { return Wide{o, high_word(o)}; };
  shift_right64(shifted.reg, pair(pair_register({as_register(a.lo), as_register(a.hi)})), from, is_signed);
  Op capped = temp(), rest = temp(), up = temp(2), result = temp(2);
  min_max(capped.reg, n, immediate(64), false, false);
  add(rest.reg, immediate(64), negate(capped));
  shift_left64(up.reg, pair(shifted), rest);  // by 64 for an empty field: zero
  shift_right64(result.reg, pair(up), rest, is_signed);
  mov(d, result);
  mov(d + 1, gpr(result.reg + 1));
}

void Selector::bit_insert64(uint32_t d, Wide value, Wide base, Op position, Op length) {
  Op from = temp(), n = temp(), one = temp(2), power = temp(2), ones = temp(2), mask = temp(2), moved = temp(2);
  auto pair = [](Op o) { return Wide{o, high_word(o)}; };
  logic(from.reg, as_register(position), immediate(0xff), 0xc0);
  logic(n.reg, as_register(length), immediate(0xff), 0xc0);
  mov(one.reg, immediate(1)), mov(one.reg + 1, gpr(isa::RZ));
  shift_left64(power.reg, pair(one), n);  // 0 for 64 and more: all ones below
  add64(ones.reg, pair(power), {immediate(-1), immediate(-1)}, false);
  shift_left64(mask.reg, pair(ones), from);
  shift_left64(moved.reg, pair(pair_register({as_register(value.lo), as_register(value.hi)})), from);
  Op low = as_register(base.lo), high = as_register(base.hi);
  Op result = temp(2);
  logic3(result.reg, moved, mask, low, 0xe2);
  logic3(result.reg + 1, gpr(moved.reg + 1), gpr(mask.reg + 1), high, 0xe2);
  mov(d, result);
  mov(d + 1, gpr(result.reg + 1));
}

// vabsdiff4: |a - b| of each byte, as four bytes or added to c.
void Selector::byte_differences(const ptx::Instruction& i) {
  const ptx::VideoSuffix v = ptx::video_suffix(i);
  const bool is_signed = v.a_signed, add_up = !v.second.empty();
  const uint32_t d = destination(p_.operand(i, 0));
  const Op a = as_register(source(p_.operand(i, 1), ptx::Type::b32)),
           b = as_register(source(p_.operand(i, 2), ptx::Type::b32));
  Op result = add_up ? as_register(source(p_.operand(i, 3), ptx::Type::b32)) : rz;
  if (!is_signed || t_.family == isa::Family::volta) {
    Emitted e = emit(Mnemonic::VABSDIFF4, {gpr(d), a, b, result}).mod(ModifierKind::ACC, add_up);
    if (is_signed) e.mod(ModifierKind::Signed, 1);
    return;
  }
  for (uint32_t k = 0; k < 4; ++k) {
    Op x = temp(), y = temp(), high = temp(), low = temp(), difference = temp();
    bit_extract(x.reg, a, immediate(8 * k), immediate(8), is_signed);
    bit_extract(y.reg, b, immediate(8 * k), immediate(8), is_signed);
    min_max(high.reg, x, y, true, true);
    min_max(low.reg, x, y, false, true);
    add(difference.reg, high, negate(low));
    Op sum = k == 3 ? gpr(d) : temp();
    if (add_up) {
      add(sum.reg, result, difference);
    } else {
      Op shifted = difference;
      if (k) shifted = temp(), shift_left(shifted.reg, difference, immediate(8 * k));
      logic(sum.reg, result, shifted, 0xfc);
    }
    result = sum;
  }
}

}  // namespace rndn::assembler
