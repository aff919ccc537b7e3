// f16, f16x2, bf16 and bf16x2 (selection, both families): arithmetic, comparison, minimum, and conversions to and from these types.
//
// One value lies in the lower half of a register whose upper half is undefined: instructions for pairs then read the lower half twice (.H0_H0). Signs
// are changed on the bits. Targets that lack an operation are refused by the PTX verifier, but for f16 conversions of Pascal, which go through f32.
#include "assembler/select/select.h"

namespace rndn::assembler {

using ptx::Opcode;
using ptx::Type;

namespace {
bool is_pair(Type t) { return t == Type::f16x2 || t == Type::bf16x2; }
bool is_bfloat(Type t) { return t == Type::bf16 || t == Type::bf16x2; }
}  // namespace

// A source of a packed instruction.
Op Selector::half_source(const ptx::Operand& o, Type type) {
  Op a = as_register(source(o, is_pair(type) ? Type::b32 : Type::b16));
  a.part = is_pair(type) ? 0 : 2;
  return a;
}

void Selector::half_modifiers(Emitted e, const ptx::Instruction& i) {
  if (i.mods.ftz) e.mod(ModifierKind::FTZ, 1);
  if (i.mods.sat) e.mod(ModifierKind::SAT, 1);
  if (is_bfloat(i.type)) e.mod(ModifierKind::Pack, 1);
}

void Selector::half_arithmetic(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  auto src = [&](uint32_t k) { return half_source(p_.operand(i, k), i.type); };
  switch (i.op) {
    case Opcode::add: return half_modifiers(emit(Mnemonic::HADD2, {gpr(d), src(1), src(2)}), i);
    case Opcode::sub: return half_modifiers(emit(Mnemonic::HADD2, {gpr(d), src(1), negate(src(2))}), i);
    case Opcode::mul: return half_modifiers(emit(Mnemonic::HMUL2, {gpr(d), src(1), src(2)}), i);
    case Opcode::fma:
      if (i.mods.mode == 1) return half_modifiers(emit(Mnemonic::HFMA2, {gpr(d), src(1), src(2), src(3), pt()}), i);
      return half_modifiers(emit(Mnemonic::HFMA2, {gpr(d), src(1), src(2), src(3)}), i);
    case Opcode::min:
    case Opcode::max: {
      Emitted e = emit(Mnemonic::HMNMX2, {gpr(d), src(1), src(2), pt(i.op == Opcode::max)});
      half_modifiers(e, i);
      if (i.mods.mode == 1) e.mod(ModifierKind::NaN, 1);
      return;
    }
    case Opcode::neg:
    case Opcode::abs: {
      Op a = as_register(source(p_.operand(i, 1), is_pair(i.type) ? Type::b32 : Type::b16));
      if (i.mods.ftz) {  // the addition flushes
        a.part = is_pair(i.type) ? 0 : 2;
        Op zero = rz;
        zero.part = 2;
        emit(Mnemonic::HADD2, {gpr(d), i.op == Opcode::neg ? negate(a) : absolute(a), negate(zero)})
            .mod(ModifierKind::FTZ, 1);
        return;
      }
      const bool negative = i.op == Opcode::neg;
      return logic(d, a, immediate(static_cast<int32_t>(negative ? 0x80008000 : 0x7fff7fff)), negative ? 0x3c : 0xc0);
    }
    case Opcode::tanh:
    case Opcode::ex2: {
      if (t_.family != isa::Family::volta || is_bfloat(i.type)) return unsupported(i);
      Op a = as_register(source(p_.operand(i, 1), is_pair(i.type) ? Type::b32 : Type::b16));
      const uint32_t function = i.op == Opcode::tanh ? 9 : 2;
      auto half_of = [&](uint32_t to, uint32_t part) {
        Op from = a;
        from.part = static_cast<uint8_t>(part);
        emit(Mnemonic::MUFU, {gpr(to), from}).mod(ModifierKind::Function, function).mod(ModifierKind::HalfFormat, 1);
      };
      if (!is_pair(i.type)) return half_of(d, 0);
      Op low = temp(), high = temp();
      half_of(low.reg, 0);
      half_of(high.reg, 1);
      return permute(d, low, high, immediate(0x5410), 0);
    }
    default: return unsupported(i);
  }
}

// setp and set on halves.
void Selector::half_compare(const ptx::Instruction& i) {
  const bool is_set = i.op == Opcode::set;
  const Type type = is_set ? i.type2 : i.type;
  const uint32_t first = i.destination_count;
  uint32_t combine = 0;
  Op with = pt();
  if (i.mods.combine != ptx::Combine::none) {
    combine = static_cast<uint32_t>(i.mods.combine) - static_cast<uint32_t>(ptx::Combine::and_);
    with = source_predicate(p_.operand(i, first + 2));
  }
  if (type == Type::bf16) {  // as f32, which has the same exponent
    Op wide[2];
    for (uint32_t k = 0; k < 2; ++k) {
      wide[k] = temp();
      shift_left(wide[k].reg, as_register(source(p_.operand(i, first + k), Type::b16)), immediate(16));
    }
    emit(Mnemonic::FSETP, {predicate(registers_[p_.operand(i, 0).id].first), pt(), wide[0], wide[1], with})
        .mod(ModifierKind::FloatCompare, static_cast<uint32_t>(comparison(i.mods.compare)))
        .mod(ModifierKind::Bool, combine);
    return;
  }
  Op a = half_source(p_.operand(i, first), type), b = half_source(p_.operand(i, first + 1), type);
  Emitted e;
  const bool masks = is_set && !is_half(i.type);  // set.u32: all ones, in each half of a pair
  const uint32_t flag = masks && !is_pair(type) ? temp_predicate() : isa::PT;
  if (flag != isa::PT) {
    e = emit(Mnemonic::HSETP2, {predicate(flag), pt(), a, b, with});
  } else if (masks) {
    e = emit(Mnemonic::HSET2, {gpr(destination(p_.operand(i, 0))), a, b, with}).mod(ModifierKind::BF, 0);
  } else if (is_set) {
    e = emit(Mnemonic::HSET2, {gpr(destination(p_.operand(i, 0))), a, b, with}).mod(ModifierKind::BF, 1);
  } else {
    e = emit(Mnemonic::HSETP2, {predicate(registers_[p_.operand(i, 0).id].first), pt(), a, b, with});
  }
  e.mod(ModifierKind::FloatCompare, static_cast<uint32_t>(comparison(i.mods.compare))).mod(ModifierKind::Bool, combine);
  if (i.mods.ftz) e.mod(ModifierKind::FTZ, 1);
  if (flag != isa::PT) select(destination(p_.operand(i, 0)), as_register(immediate(-1)), rz, predicate(flag));
}

// f32 to a half (or two: a to the upper, b to the lower).
void Selector::pack_halves(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  const bool two = is_pair(i.type);
  Op a = two ? as_register(source(p_.operand(i, 1), Type::f32)) : rz;
  Op b = as_register(source(p_.operand(i, two ? 2 : 1), Type::f32));
  emit(Mnemonic::F2FP, {gpr(d), a, b})
      .mod(ModifierKind::Pack, is_bfloat(i.type))
      .mod(ModifierKind::Rounding, float_rounding(i.mods.rounding));
}

}  // namespace rndn::assembler
