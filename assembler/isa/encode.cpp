// Instruction to word, driven by the row. Every field is range-checked: what does not fit makes encode() return false, never a wrong word.
#include "assembler/isa/index.h"

namespace rndn::isa {
namespace {

bool fits_unsigned(uint64_t value, unsigned width) { return value <= bits_mask(width); }
bool fits_signed(int64_t value, unsigned width) {
  int64_t limit = int64_t{1} << (width - 1);
  return value >= -limit && value < limit;
}

// Distance from `base` to the target, in bytes.
bool encode_label(const Slot& slot, const Operand& o, uint64_t address, Word& w) {
  int64_t target = o.value;
  switch (slot.kind) {
    case SlotKind::label:
    case SlotKind::label_split:
    case SlotKind::label_short: {
      int64_t rel = target - static_cast<int64_t>(address + 16);
      if (rel & 3) return false;
      int64_t words = rel / 4;
      if (slot.kind == SlotKind::label_short) {
        if (!fits_signed(words, 30)) return false;
        set_bits(w, 34, 30, static_cast<uint64_t>(words));
      } else if (slot.kind == SlotKind::label) {
        if (!fits_signed(words, 48)) return false;
        set_bits(w, 34, 48, static_cast<uint64_t>(words));
      } else {
        if (!fits_signed(words, 56)) return false;
        set_bits(w, 16, 8, static_cast<uint64_t>(words));
        set_bits(w, 34, 48, static_cast<uint64_t>(words >> 8));
      }
      return true;
    }
    case SlotKind::label_pascal: {
      if (target % 32 == 8 && !slot.scale) target -= 8;  // the first instruction of a bundle is addressed by the bundle
      int64_t rel = target - static_cast<int64_t>(address + 8);
      if (!fits_signed(rel, 24)) return false;
      set_bits(w, 20, 24, static_cast<uint64_t>(rel));
      return true;
    }
    case SlotKind::label_absolute:
      if (target < 0 || !fits_unsigned(static_cast<uint64_t>(target), 32)) return false;
      set_bits(w, 20, 32, static_cast<uint64_t>(target));
      return true;
    default: return false;
  }
}

bool encode_operand(const Slot& slot, const Operand& o, uint64_t address, Word& w) {
  bool negated = o.negated, absolute = o.absolute;
  switch (slot.kind) {
    case SlotKind::none: return o.kind == OperandKind::none || slot.style == Style::repeat;
    case SlotKind::gpr:
      if (o.kind != OperandKind::gpr || o.reg > 255) return false;
      set_bits(w, slot.lo, 8, o.reg);
      break;
    case SlotKind::predicate:
    case SlotKind::predicate_inverted:
      if (o.kind != OperandKind::predicate || o.reg > 7) return false;
      set_bits(w, slot.lo, 3, slot.kind == SlotKind::predicate ? o.reg : 7 - o.reg);
      break;
    case SlotKind::uniform:
      if (o.kind != OperandKind::uniform || o.reg > 63) return false;
      set_bits(w, slot.lo, 6, o.reg);
      break;
    case SlotKind::uniform_predicate:
      if (o.kind != OperandKind::uniform_predicate || o.reg > 7) return false;
      set_bits(w, slot.lo, 3, o.reg);
      break;
    case SlotKind::barrier:
      if (o.kind != OperandKind::barrier || o.reg > 15) return false;
      set_bits(w, slot.lo, 4, o.reg);
      break;
    case SlotKind::immediate:
    case SlotKind::immediate_signed:
    case SlotKind::immediate_split:
    case SlotKind::immediate_20:
    case SlotKind::float_20:
      if (o.kind != OperandKind::immediate || !encode_immediate(slot, o.value, w)) return false;
      break;
    case SlotKind::constant:
    case SlotKind::constant_20: {
      // Offsets of 0x8000 and more print as negative numbers; both ways of giving them are taken.
      if (o.kind != OperandKind::constant || o.reg != RZ || (o.value & 3) || o.value < -0x8000 || o.value > 0xffff ||
          o.bank > 31)
        return false;
      uint64_t words = static_cast<uint64_t>(o.value) >> 2 & 0x3fff;
      set_bits(w, slot.kind == SlotKind::constant ? 40 : 20, 14, words);
      set_bits(w, slot.kind == SlotKind::constant ? 54 : 34, 5, o.bank);
      break;
    }
    case SlotKind::constant_indexed:
    case SlotKind::constant_bytes:
    case SlotKind::constant_ldc: {
      if (o.kind != OperandKind::constant || o.value < -0x8000 || o.value > 0xffff || o.bank > 31) return false;
      bool ldc = slot.kind == SlotKind::constant_ldc;
      if (slot.kind == SlotKind::constant_bytes) {
        if (o.reg != RZ) return false;
      } else {
        if (o.reg > 255) return false;
        set_bits(w, ldc ? 8 : 24, 8, o.reg);
      }
      set_bits(w, ldc ? 20 : 38, 16, static_cast<uint64_t>(o.value));
      set_bits(w, ldc ? 36 : 54, 5, o.bank);
      break;
    }
    case SlotKind::special:
      if (o.kind != OperandKind::special || o.value < 0 || o.value > 255) return false;
      set_bits(w, slot.lo, 8, static_cast<uint64_t>(o.value));
      break;
    case SlotKind::scoreboard:
      if (o.kind != OperandKind::scoreboard || o.value < 0 || o.value > 7) return false;
      set_bits(w, slot.lo, 3, static_cast<uint64_t>(o.value));
      break;
    case SlotKind::address: {
      if (o.kind != OperandKind::address || o.reg > 255 || o.negated || o.absolute) return false;
      set_bits(w, slot.lo, 8, o.reg);
      int64_t offset = o.value;
      if (offset & ((1 << slot.scale) - 1)) return false;
      offset >>= slot.scale;
      // With no register to add to, the offset is an unsigned address.
      if (!fits_signed(offset, slot.width) &&
          !(o.reg == RZ && offset >= 0 && fits_unsigned(static_cast<uint64_t>(offset), slot.width)))
        return false;
      set_bits(w, slot.second, slot.width, static_cast<uint64_t>(offset));
      if (slot.uniform != no_bit) {
        if (o.uniform > 63) return false;
        set_bits(w, slot.uniform, 6, o.uniform);
      } else if (o.uniform != URZ) {
        return false;
      }
      if (slot.flag != no_bit)
        set_bits(w, slot.flag, 1, o.descriptor);
      else if (o.descriptor)
        return false;
      return true;
    }
    default:
      if (o.kind != OperandKind::label) return false;
      return encode_label(slot, o, address, w);
  }
  if (negated && slot.neg == no_bit) return false;
  if (absolute && slot.abs == no_bit) return false;
  if (o.part && (slot.part == no_bit || o.part > bits_mask(slot.part_width))) return false;
  if (slot.neg != no_bit) set_bits(w, slot.neg, 1, negated);
  if (slot.abs != no_bit) set_bits(w, slot.abs, 1, absolute);
  if (slot.part != no_bit) set_bits(w, slot.part, slot.part_width, o.part);
  return true;
}

}  // namespace

bool encode_immediate(const Slot& slot, int64_t value, Word& w) {
  switch (slot.kind) {
    case SlotKind::immediate:
    case SlotKind::immediate_signed:
      // 32 bits may be given as a signed or an unsigned number; narrower unsigned fields take unsigned numbers only.
      if (slot.width == 32) {
        if (!fits_signed(value, 33) || value >= int64_t{1} << 32 || value < -(int64_t{1} << 31)) return false;
      } else if (slot.kind == SlotKind::immediate_signed
                     ? !fits_signed(value, slot.width)
                     : value < 0 || !fits_unsigned(static_cast<uint64_t>(value), slot.width)) {
        return false;
      }
      set_bits(w, slot.lo, slot.width, static_cast<uint64_t>(value));
      return true;
    case SlotKind::immediate_split:
      if (value < 0 || value > 255) return false;
      set_bits(w, slot.lo, slot.width, static_cast<uint64_t>(value));
      set_bits(w, slot.second, 8 - slot.width, static_cast<uint64_t>(value) >> slot.width);
      return true;
    case SlotKind::immediate_20: {
      if (value >= int64_t{1} << 32 || value < -(int64_t{1} << 31)) return false;
      int64_t v = static_cast<int32_t>(static_cast<uint32_t>(value));
      if (!fits_signed(v, 20)) return false;
      set_bits(w, 20, 19, static_cast<uint64_t>(v));
      set_bits(w, 56, 1, v < 0);
      return true;
    }
    case SlotKind::float_20: {
      if (value >= int64_t{1} << 32 || value < -(int64_t{1} << 31)) return false;
      uint32_t v = static_cast<uint32_t>(value);
      if (v & 0xfff) return false;
      set_bits(w, 20, 19, v >> 12);
      set_bits(w, 56, 1, v >> 31);
      return true;
    }
    default: return false;
  }
}

bool encode(const Target& target, const Instruction& instruction, uint64_t address, Word& word) {
  if (is_none(instruction.form) || index(instruction.form) >= form_count()) return false;
  const Form& form = form_row(instruction.form);
  if (!(form.targets & target.bit) || instruction.operand_count != form.slot_count || instruction.guard > 7)
    return false;
  Word w = form.match;
  const Control& c = instruction.control;
  if (c.stall > 15 || c.write_barrier > 7 || c.read_barrier > 7 || c.wait_mask > 63 || c.reuse > 15) return false;
  if (form.no_guard) {
    if (instruction.guard != PT || instruction.guard_negated) return false;
  } else if (form.pascal) {
    set_bits(w, 16, 3, instruction.guard);
    set_bits(w, 19, 1, instruction.guard_negated);
  }
  if (form.pascal) {
    set_bits(w, 64, 4, c.stall);
    set_bits(w, 68, 1, c.yield);
    set_bits(w, 69, 3, c.write_barrier);
    set_bits(w, 72, 3, c.read_barrier);
    set_bits(w, 75, 6, c.wait_mask);
    set_bits(w, 81, 4, c.reuse);
  } else {
    set_bits(w, 12, 3, instruction.guard);
    set_bits(w, 15, 1, instruction.guard_negated);
    set_bits(w, 105, 4, c.stall);
    set_bits(w, 109, 1, c.yield);
    set_bits(w, 110, 3, c.write_barrier);
    set_bits(w, 113, 3, c.read_barrier);
    set_bits(w, 116, 6, c.wait_mask);
    set_bits(w, 122, 4, c.reuse);
  }
  for (uint32_t i = 0; i < form.mod_count; ++i) {
    const Mod& m = form.mods[i];
    unsigned width = m.width + (m.second != no_bit);
    uint8_t value = instruction.modifiers[i];
    if (value > bits_mask(width) || !m.texts[value]) return false;
    set_bits(w, m.lo, m.width, value);
    if (m.second != no_bit) set_bits(w, m.second, 1, value >> m.width);
  }
  for (uint32_t k = 0; k < form.slot_count; ++k)
    if (!encode_operand(form.slots[k], instruction.operands[k], address, w)) return false;
  word = w;
  return true;
}

}  // namespace rndn::isa
