// Word to instruction: the row is found by the low (Volta) or top (Pascal) 12 bits, then by its fixed bits. Exact: a word with a bit
// set that no field of the row explains, or with a reserved modifier value, is no instruction. encode() of the result gives the word back.
#include <cstring>

#include "assembler/isa/index.h"

namespace rndn::isa {
namespace {

int64_t sign_extend(uint64_t value, unsigned width) {
  uint64_t sign = uint64_t{1} << (width - 1);
  return static_cast<int64_t>((value ^ sign) - sign);
}

Operand decode_operand(const Slot& slot, const Form& form, const Instruction& instruction, const Word& w,
                       uint64_t address) {
  Operand o;
  auto field = [&](unsigned lo, unsigned width) { return get_bits(w, lo, width); };
  switch (slot.kind) {
    case SlotKind::none: return o;
    case SlotKind::gpr:
      o.kind = OperandKind::gpr;
      o.reg = static_cast<uint32_t>(field(slot.lo, 8));
      break;
    case SlotKind::predicate:
      o.kind = OperandKind::predicate;
      o.reg = static_cast<uint32_t>(field(slot.lo, 3));
      break;
    case SlotKind::predicate_inverted:
      o.kind = OperandKind::predicate;
      o.reg = 7 - static_cast<uint32_t>(field(slot.lo, 3));
      break;
    case SlotKind::uniform:
      o.kind = OperandKind::uniform;
      o.reg = static_cast<uint32_t>(field(slot.lo, 6));
      break;
    case SlotKind::uniform_predicate:
      o.kind = OperandKind::uniform_predicate;
      o.reg = static_cast<uint32_t>(field(slot.lo, 3));
      break;
    case SlotKind::uniform_predicate_inverted:
      o.kind = OperandKind::uniform_predicate;
      o.reg = 7 - static_cast<uint32_t>(field(slot.lo, 3));
      break;
    case SlotKind::barrier:
      o.kind = OperandKind::barrier;
      o.reg = static_cast<uint32_t>(field(slot.lo, 4));
      break;
    case SlotKind::immediate:
      o.kind = OperandKind::immediate;
      o.value = static_cast<int64_t>(field(slot.lo, slot.width));
      break;
    case SlotKind::immediate_signed:
      o.kind = OperandKind::immediate;
      o.value = sign_extend(field(slot.lo, slot.width), slot.width);
      break;
    case SlotKind::immediate_split:
      o.kind = OperandKind::immediate;
      o.value = static_cast<int64_t>(field(slot.lo, slot.width) | field(slot.second, 8 - slot.width) << slot.width);
      break;
    case SlotKind::half_20:
      o.kind = OperandKind::immediate;
      o.value = static_cast<int64_t>(field(slot.lo, 9) << 6 | field(slot.second, 1) << 15);
      break;
    case SlotKind::immediate_20:
      o.kind = OperandKind::immediate;
      o.value = sign_extend(field(20, 19) | field(56, 1) << 19, 20);
      break;
    case SlotKind::float_20:
      o.kind = OperandKind::immediate;
      o.value = static_cast<int64_t>(field(20, 19) << 12 | field(56, 1) << 31);
      break;
    case SlotKind::constant:
    case SlotKind::constant_20: {
      bool volta = slot.kind == SlotKind::constant;
      o.kind = OperandKind::constant;
      o.value = static_cast<int64_t>(field(volta ? 40 : 20, 14) << 2);
      o.bank = static_cast<uint8_t>(field(volta ? 54 : 34, 5));
      break;
    }
    case SlotKind::constant_indexed:
    case SlotKind::constant_uniform:
    case SlotKind::constant_bytes:
    case SlotKind::constant_ldc: {
      bool ldc = slot.kind == SlotKind::constant_ldc;
      o.kind = OperandKind::constant;
      if (slot.kind == SlotKind::constant_uniform)
        o.uniform = static_cast<uint8_t>(field(24, 6));
      else if (slot.kind != SlotKind::constant_bytes)
        o.reg = static_cast<uint32_t>(field(ldc ? 8 : 24, 8));
      // An addend of a register is signed, an offset by itself reaches all 64 KB: of `ld.const` at 0xfffc of a variable, ptxas 11.8 makes c[0x3][-0x4],
      // of 0x9000 beyond a register c[0x3][R6+-0x7000] with 0x10000 added to R6.
      const uint64_t offset = field(ldc ? 20 : 38, 16);
      o.value = o.reg == RZ && o.uniform == URZ ? static_cast<int64_t>(offset) : sign_extend(offset, 16);
      o.bank = static_cast<uint8_t>(field(ldc ? 36 : 54, 5));
      break;
    }
    case SlotKind::special:
      o.kind = OperandKind::special;
      o.value = static_cast<int64_t>(field(slot.lo, 8));
      break;
    case SlotKind::scoreboard:
      o.kind = OperandKind::scoreboard;
      o.value = static_cast<int64_t>(field(slot.lo, 3));
      break;
    case SlotKind::address: {
      o.kind = OperandKind::address;
      if (slot.lo != no_bit) o.reg = static_cast<uint32_t>(field(slot.lo, 8));
      bool has_uniform = slot.uniform != no_bit;
      if (has_uniform) o.uniform = static_cast<uint8_t>(field(slot.uniform, 6));
      if (slot.flag != no_bit) o.descriptor = field(slot.flag, 1) != 0;
      o.wide = slot.span == Span_::two;
      for (uint32_t i = 0; i < form.mod_count; ++i)
        if (form.mods[i].kind == ModifierKind::E) o.wide = instruction.modifiers[i] != 0;
      if (slot.style == Style::base_32) o.wide = false;
      uint64_t raw = field(slot.second, slot.width);
      bool absolute = o.reg == RZ && (!has_uniform || o.descriptor) && !o.wide;
      o.value = absolute ? static_cast<int64_t>(raw << slot.scale)
                         : sign_extend(raw, slot.width) * (int64_t{1} << slot.scale);
      return o;
    }
    case SlotKind::label:
      o.kind = OperandKind::label;
      o.value = static_cast<int64_t>(address + 16) + sign_extend(field(34, 48), 48) * 4;
      return o;
    case SlotKind::label_split:
      o.kind = OperandKind::label;
      o.value = static_cast<int64_t>(address + 16) + sign_extend(field(16, 8) | field(34, 48) << 8, 56) * 4;
      return o;
    case SlotKind::label_short:
      o.kind = OperandKind::label;
      o.value = static_cast<int64_t>(address + 16) + sign_extend(field(34, 30), 30) * 4;
      return o;
    case SlotKind::label_bytes:
      o.kind = OperandKind::label;
      o.value = static_cast<int64_t>(address + 16) + sign_extend(field(24, 58), 58);
      return o;
    case SlotKind::label_pascal:
      o.kind = OperandKind::label;
      o.value = static_cast<int64_t>(address + 8) + sign_extend(field(20, 24), 24);
      if (o.value % 32 == 0 && !slot.scale) o.value += 8;
      return o;
    case SlotKind::label_absolute:
      o.kind = OperandKind::label;
      o.value = static_cast<int64_t>(field(20, 32));
      return o;
  }
  if (slot.neg != no_bit) o.negated = field(slot.neg, 1) != 0;
  if (slot.abs != no_bit) o.absolute = field(slot.abs, 1) != 0;
  if (slot.part != no_bit) o.part = field(slot.part, slot.part_width) & 15;
  return o;
}

}  // namespace

namespace {

// The instruction of a word that matches the row; false when a modifier has a value that does not exist.
bool decode_as(FormId id, const Word& word, uint64_t address, Instruction& d) {
  const Form& form = form_row(id);
  uint64_t seen[2] = {};  // modifiers, eight to a word
  for (uint32_t i = 0; i < form.mod_count; ++i) {
    const Mod& m = form.mods[i];
    uint64_t value = get_bits(word, m.lo, m.width);
    if (m.second != no_bit) value |= get_bits(word, m.second, 1) << m.width;
    if (!m.texts[value]) return false;
    seen[i / 8] |= value << i % 8 * 8;
  }
  std::memcpy(d.modifiers.data(), seen, sizeof d.modifiers);
  d.form = id;
  d.mnemonic = form.mnemonic;
  d.operand_count = form.slot_count;
  d.guard = PT;
  d.guard_negated = false;
  if (!form.no_guard) {
    const uint64_t guard = word.lo >> (form.pascal ? 16 : 12);
    d.guard = guard & 7;
    d.guard_negated = guard >> 3 & 1;
  }
  const uint64_t control = form.pascal ? word.hi : word.hi >> 41;
  d.control = {.stall = static_cast<uint8_t>(control & 15),
               .yield = (control >> 4 & 1) != 0,
               .write_barrier = static_cast<uint8_t>(control >> 5 & 7),
               .read_barrier = static_cast<uint8_t>(control >> 8 & 7),
               .wait_mask = static_cast<uint8_t>(control >> 11 & 63),
               .reuse = static_cast<uint8_t>(control >> 17 & 15)};
  for (uint32_t k = 0; k < form.slot_count; ++k) {
    const Slot& slot = form.slots[k];
    // Most are plain registers.
    if (slot.kind == SlotKind::gpr && slot.part == no_bit) {
      Operand& o = d.operands[k];
      o = {};
      o.kind = OperandKind::gpr;
      o.reg = static_cast<uint32_t>(get_bits(word, slot.lo, 8));
      if (slot.neg != no_bit) o.negated = get_bits(word, slot.neg, 1) != 0;
      if (slot.abs != no_bit) o.absolute = get_bits(word, slot.abs, 1) != 0;
      if (slot.style == Style::not_rz && o.reg == RZ) return false;
    } else if (slot.style == Style::repeat) {
      d.operands[k] = d.operands[k - 1];
    } else {
      d.operands[k] = decode_operand(slot, form, d, word, address);
    }
  }
  for (uint32_t k = form.slot_count; k < max_operands; ++k) d.operands[k] = {};
  return true;
}

// The same of a word whose fields were chosen at will, but for registers that RZ is none of.
Instruction decode_any(FormId id, Word word) {
  const Form& form = form_row(id);
  Instruction in;
  for (uint32_t k = 0; k < form.slot_count; ++k)
    if (form.slots[k].style == Style::not_rz) set_bits(word, form.slots[k].lo, 1, 0);
  const bool made = decode_as(id, word, 0, in);
  CHECK(made, "{}", form.name);
  return in;
}

}  // namespace

bool decode(const Target& target, Word word, uint64_t address, Instruction& instruction) {
  for (const Candidate& c : word_index().by_word(target.family, word.lo))
    if (!(((word.lo ^ c.match.lo) & c.mask.lo) | ((word.hi ^ c.match.hi) & c.mask.hi)) && (c.targets & target.bit) &&
        decode_as(c.form, word, address, instruction))
      return true;
  return false;
}

Instruction random_instruction(FormId id, uint64_t seed) {
  const Form& form = form_row(id);
  auto next = [&seed] {  // splitmix64
    uint64_t z = seed += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  };
  Word w{form.match.lo | (next() & ~form.mask.lo), form.match.hi | (next() & ~form.mask.hi)};
  if (form.pascal) w.hi &= 0x1fffff;
  for (uint32_t i = 0; i < form.mod_count; ++i) {
    const Mod& m = form.mods[i];
    uint64_t value;
    do value = next() & bits_mask(m.width);
    while (!m.texts[value]);
    set_bits(w, m.lo, m.width, value);
  }
  return decode_any(id, w);
}

Instruction sample_instruction(FormId id) {
  Instruction in = decode_any(id, form_index().encoding(id).bits);
  in.guard = PT;
  in.control = {.stall = 1};
  for (uint32_t k = 0; k < in.operand_count; ++k) {
    Operand& o = in.operands[k];
    switch (o.kind) {
      case OperandKind::gpr: o.reg = 4 * (k + 1); break;
      case OperandKind::predicate:
      case OperandKind::uniform_predicate: o.reg = k % 7; break;
      case OperandKind::uniform: o.reg = 4 * (k + 1); break;
      case OperandKind::barrier: o.reg = k; break;
      case OperandKind::constant: o.bank = 3, o.value = 0x24; break;
      case OperandKind::address:
        if (form_row(id).slots[k].lo != no_bit) o.reg = 4 * (k + 1);
        o.descriptor = form_row(id).slots[k].flag != no_bit;
        if (o.uniform != URZ) o.uniform = static_cast<uint8_t>(4 * (k + 2));
        break;
      default: break;
    }
  }
  return in;
}

}  // namespace rndn::isa
