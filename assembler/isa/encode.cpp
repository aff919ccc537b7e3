// Instruction to word, driven by the row. Every field is range-checked: what does not fit makes encode() return false, never a wrong word.
// Fields of a row do not overlap and its fixed bits leave them zero (rows_are_sound), so that a field is put in by one shift and one or; none but
// the labels crosses from one half of the word to the other.
#include <bit>
#include <cstring>

#include "assembler/isa/index.h"

namespace rndn::isa {
namespace {

bool fits_unsigned(uint64_t value, unsigned width) { return value <= bits_mask(width); }
bool fits_signed(int64_t value, unsigned width) {
  int64_t limit = int64_t{1} << (width - 1);
  return value >= -limit && value < limit;
}

// A word under construction. Both halves change without an index, so that they stay in registers.
struct Bits {
  uint64_t low, high;
  void flip(unsigned lo, uint64_t value) {
    const uint64_t shifted = value << lo % 64;
    low ^= lo < 64 ? shifted : 0, high ^= lo < 64 ? 0 : shifted;
  }
  void put(unsigned lo, uint64_t value) { flip(lo, value); }  // where all bits are zero
  void put(unsigned lo, unsigned width, uint64_t value) { put(lo, value & bits_mask(width)); }
};

// Distance from `base` to the target, in bytes.
bool encode_label(const Slot& slot, const Operand& o, uint64_t address, Bits& w) {
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
        w.put(34, 30, static_cast<uint64_t>(words));
        return true;
      }
      if (!fits_signed(words, slot.kind == SlotKind::label ? 48 : 56)) return false;
      if (slot.kind == SlotKind::label_split) {
        w.put(16, 8, static_cast<uint64_t>(words));
        words >>= 8;
      }
      w.put(34, 30, static_cast<uint64_t>(words));
      w.put(64, 18, static_cast<uint64_t>(words >> 30));
      return true;
    }
    case SlotKind::label_bytes: {
      const int64_t rel = target - static_cast<int64_t>(address + 16);
      if (!fits_signed(rel, 58)) return false;
      w.put(24, 40, static_cast<uint64_t>(rel));
      w.put(64, 18, static_cast<uint64_t>(rel >> 40));
      return true;
    }
    case SlotKind::label_pascal: {
      if (target % 32 == 8 && !slot.scale) target -= 8;  // the first instruction of a bundle is addressed by the bundle
      int64_t rel = target - static_cast<int64_t>(address + 8);
      if (!fits_signed(rel, 24)) return false;
      w.put(20, 24, static_cast<uint64_t>(rel));
      return true;
    }
    case SlotKind::label_absolute:
      if (target < 0 || !fits_unsigned(static_cast<uint64_t>(target), 32)) return false;
      w.put(20, static_cast<uint64_t>(target));
      return true;
    default: return false;
  }
}

bool put_immediate(const Slot& slot, int64_t value, Bits& w) {
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
      w.put(slot.lo, slot.width, static_cast<uint64_t>(value));
      return true;
    case SlotKind::immediate_split:
      if (value < 0 || value > 255) return false;
      w.put(slot.lo, slot.width, static_cast<uint64_t>(value));
      w.put(slot.second, 8 - slot.width, static_cast<uint64_t>(value) >> slot.width);
      return true;
    case SlotKind::half_20:
      if (value < 0 || value > 0xffff || (value & 0x3f)) return false;
      w.put(slot.lo, 9, static_cast<uint64_t>(value) >> 6);
      w.put(slot.second, 1, static_cast<uint64_t>(value) >> 15);
      return true;
    case SlotKind::immediate_20: {
      if (value >= int64_t{1} << 32 || value < -(int64_t{1} << 31)) return false;
      int64_t v = static_cast<int32_t>(static_cast<uint32_t>(value));
      if (!fits_signed(v, 20)) return false;
      w.put(20, 19, static_cast<uint64_t>(v));
      w.put(56, 1, v < 0);
      return true;
    }
    case SlotKind::float_20: {
      if (value >= int64_t{1} << 32 || value < -(int64_t{1} << 31)) return false;
      uint32_t v = static_cast<uint32_t>(value);
      if (v & 0xfff) return false;
      w.put(20, 19, v >> 12);
      w.put(56, 1, v >> 31);
      return true;
    }
    default: return false;
  }
}

bool encode_operand(const Slot& slot, const Operand& o, uint64_t address, Bits& w) {
  switch (slot.kind) {
    case SlotKind::none: return o.kind == OperandKind::none || slot.style == Style::repeat;
    case SlotKind::gpr:
      if (o.kind != OperandKind::gpr || o.reg > 255 || (slot.style == Style::not_rz && o.reg == RZ)) return false;
      w.put(slot.lo, 8, o.reg);
      break;
    case SlotKind::predicate:
    case SlotKind::predicate_inverted:
      if (o.kind != OperandKind::predicate || o.reg > 7) return false;
      w.put(slot.lo, 3, slot.kind == SlotKind::predicate ? o.reg : 7 - o.reg);
      break;
    case SlotKind::uniform:
      if (o.kind != OperandKind::uniform || o.reg > 63) return false;
      w.put(slot.lo, 6, o.reg);
      break;
    case SlotKind::uniform_predicate:
    case SlotKind::uniform_predicate_inverted:
      if (o.kind != OperandKind::uniform_predicate || o.reg > 7) return false;
      w.put(slot.lo, 3, slot.kind == SlotKind::uniform_predicate ? o.reg : 7 - o.reg);
      break;
    case SlotKind::barrier:
      if (o.kind != OperandKind::barrier || o.reg > 15) return false;
      w.put(slot.lo, 4, o.reg);
      break;
    case SlotKind::immediate:
    case SlotKind::immediate_signed:
    case SlotKind::immediate_split:
    case SlotKind::half_20:
    case SlotKind::immediate_20:
    case SlotKind::float_20:
      if (o.kind != OperandKind::immediate || !put_immediate(slot, o.value, w)) return false;
      break;
    case SlotKind::constant:
    case SlotKind::constant_20: {
      // Both ways of giving offsets of 0x8000 and more are taken: as they are, and as the negative numbers that are printed.
      if (o.kind != OperandKind::constant || o.reg != RZ || (o.value & 3) || o.value < -0x8000 || o.value > 0xffff ||
          o.bank > 31)
        return false;
      uint64_t words = static_cast<uint64_t>(o.value) >> 2 & 0x3fff;
      w.put(slot.kind == SlotKind::constant ? 40 : 20, 14, words);
      w.put(slot.kind == SlotKind::constant ? 54 : 34, 5, o.bank);
      break;
    }
    case SlotKind::constant_indexed:
    case SlotKind::constant_uniform:
    case SlotKind::constant_bytes:
    case SlotKind::constant_ldc: {
      if (o.kind != OperandKind::constant || o.value < -0x8000 || o.value > 0xffff || o.bank > 31) return false;
      bool ldc = slot.kind == SlotKind::constant_ldc;
      if (slot.kind == SlotKind::constant_bytes || slot.kind == SlotKind::constant_uniform) {
        if (o.reg != RZ || o.uniform > URZ) return false;
        if (slot.kind == SlotKind::constant_uniform)
          w.put(24, 6, o.uniform);
        else if (o.uniform != URZ)
          return false;
      } else {
        if (o.reg > 255) return false;
        w.put(ldc ? 8 : 24, 8, o.reg);
      }
      w.put(ldc ? 20 : 38, 16, static_cast<uint64_t>(o.value));
      w.put(ldc ? 36 : 54, 5, o.bank);
      break;
    }
    case SlotKind::special:
      if (o.kind != OperandKind::special || o.value < 0 || o.value > 255) return false;
      w.put(slot.lo, 8, static_cast<uint64_t>(o.value));
      break;
    case SlotKind::scoreboard:
      if (o.kind != OperandKind::scoreboard || o.value < 0 || o.value > 7) return false;
      w.put(slot.lo, 3, static_cast<uint64_t>(o.value));
      break;
    case SlotKind::address: {
      if (o.kind != OperandKind::address || o.reg > 255 || o.negated || o.absolute) return false;
      if (slot.lo != no_bit)
        w.put(slot.lo, 8, o.reg);
      else if (o.reg != RZ)
        return false;
      int64_t offset = o.value;
      if (offset & ((1 << slot.scale) - 1)) return false;
      offset >>= slot.scale;
      // With no register to add to, the offset is an unsigned address.
      if (!fits_signed(offset, slot.width) &&
          !(o.reg == RZ && offset >= 0 && fits_unsigned(static_cast<uint64_t>(offset), slot.width)))
        return false;
      w.put(slot.second, slot.width, static_cast<uint64_t>(offset));
      if (slot.uniform != no_bit) {
        if (o.uniform > 63) return false;
        w.put(slot.uniform, 6, o.uniform);
      } else if (o.uniform != URZ) {
        return false;
      }
      if (slot.flag != no_bit)
        w.put(slot.flag, 1, o.descriptor);
      else if (o.descriptor)
        return false;
      return true;
    }
    default:
      if (o.kind != OperandKind::label) return false;
      return encode_label(slot, o, address, w);
  }
  if (!o.negated && !o.absolute && o.part == 0) return true;
  if (o.negated && slot.neg == no_bit) return false;
  if (o.absolute && slot.abs == no_bit) return false;
  if (o.part && (slot.part == no_bit || o.part > bits_mask(slot.part_width))) return false;
  if (slot.neg != no_bit) w.put(slot.neg, uint64_t{o.negated});
  if (slot.abs != no_bit) w.put(slot.abs, uint64_t{o.absolute});
  if (slot.part != no_bit) w.put(slot.part, slot.part_width, o.part);
  return true;
}

}  // namespace

bool encode_immediate(const Slot& slot, int64_t value, Word& w) {
  Bits bits{w.lo, w.hi};
  if (!put_immediate(slot, value, bits)) return false;
  w = {bits.low, bits.high};
  return true;
}

static_assert(max_modifiers % 4 == 0);

bool encode(const Target& target, const Instruction& instruction, uint64_t address, Word& word) {
  const FormIndex& rows = form_index();
  if (index(instruction.form) >= rows.size()) return false;  // none, too
  const FormEncoding& encoding = rows.encoding(instruction.form);
  if (!(encoding.targets & target.bit) || instruction.operand_count != encoding.slot_count || instruction.guard > 7)
    return false;
  Bits w{encoding.bits.lo, encoding.bits.hi};
  const Control& c = instruction.control;
  constexpr uint64_t control_bits = 0x0f'3f'07'07'01'0f;  // of the fields, the first one lowest
  static_assert(sizeof(Control) == 6 && std::endian::native == std::endian::little);
  uint64_t fields = 0;
  std::memcpy(&fields, &c, sizeof c);
  if (fields & ~control_bits) return false;
  // Control fields and guard lie alike in both families, at different places.
  const uint64_t control = uint64_t{c.stall} | uint64_t{c.yield} << 4 | uint64_t{c.write_barrier} << 5 |
                           uint64_t{c.read_barrier} << 8 | uint64_t{c.wait_mask} << 11 | uint64_t{c.reuse} << 17;
  w.high |= control << (encoding.pascal ? 64 - 64 : 105 - 64);
  if (encoding.no_guard) {
    if (instruction.guard != PT || instruction.guard_negated) return false;
  } else {
    w.low |= (instruction.guard | uint64_t{instruction.guard_negated} << 3) << (encoding.pascal ? 16 : 12);
  }
  // The modifiers that differ from the row's own.
  for (uint32_t first = 0; first < encoding.mod_count; first += 4) {
    uint32_t given, initial;
    std::memcpy(&given, instruction.modifiers.data() + first, 4);
    std::memcpy(&initial, encoding.modifiers.data() + first, 4);
    for (uint32_t differ = given ^ initial; differ;) {
      const uint32_t at = static_cast<uint32_t>(std::countr_zero(differ)) & ~7u, i = first + at / 8;
      differ &= ~(0xffu << at);
      if (i >= encoding.mod_count) continue;
      const Mod& m = encoding.form->mods[i];
      const uint32_t value = given >> at & 0xff, change = value ^ (initial >> at & 0xff);
      if (value >> (m.width + (m.second != no_bit)) || !m.texts[value]) return false;
      w.flip(m.lo, change & bits_mask(m.width));
      if (m.second != no_bit) w.flip(m.second, change >> m.width);
    }
  }
  const FormEncoding::Register* r = encoding.registers.data();
  const Operand* o = instruction.operands.data();
  for (const Operand* const end = o + encoding.slot_count; o < end; ++o, ++r) {
    const uint32_t head = head_of(*o), sign = head & r->sign;
    if ((head ^ sign) == r->head && o->reg <= r->highest) {
      w.put(r->lo, o->reg ^ r->flip);
      if (sign) w.put(r->negation, 1);
    } else {
      const auto k = static_cast<uint32_t>(r - encoding.registers.data());
      const Slot& slot = encoding.form->slots[k];
      if (!encode_operand(slot, *o, address, w)) return false;
    }
  }
  word = {w.low, w.high};
  return true;
}

}  // namespace rndn::isa
