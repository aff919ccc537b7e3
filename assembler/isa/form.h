// The format of a row: one instruction form as data. Private to this folder.
//
// A form is a set of fixed bits (`match` under `mask`), operand slots and modifiers, each a bit field. Every bit of the word belongs to
// exactly one of: fixed bits, a slot, a modifier, the guard, the scheduling control. So decode followed by encode gives the same bits, and a
// word with an unknown bit set matches no row. Fields take positions in the 128-bit word; Pascal uses bits 0..63 (control: 64..84).
//
// Rows are built at compile time by chained calls (Builder); static_asserts in forms_*.cpp check that no two fields of a row overlap and
// that no word matches two rows of one target.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "assembler/isa/isa.h"

namespace rndn::isa {

enum class SlotKind : uint8_t {
  none,
  gpr,                 // 8 bits at lo
  predicate,           // 3 bits at lo, negate bit `neg`
  predicate_inverted,  // stored as 7 - p (memory instructions)
  uniform,             // 6 bits at lo
  uniform_predicate,   // 3 bits at lo, negate bit `neg`
  uniform_predicate_inverted,  // stored as 7 - p (products by four warps)
  barrier,             // 4 bits at lo
  immediate,           // `width` bits at lo
  immediate_signed,    // sign-extended
  immediate_split,     // low `width` bits at lo, the rest at `second` (PLOP3's table)
  immediate_20,        // Pascal: 19 bits at 20, sign at 56; two's complement
  half_20,             // Pascal: bits 14..6 of an f16 at lo, sign at `second`
  float_20,            // Pascal: bits 30..12 of the word at 20, sign at 56 (f32; or the high word of f64)
  constant,            // Volta: offset/4 in 40..53, bank 54..58
  constant_indexed,    // Volta LDC: register 24..31, byte offset 38..53, bank 54..58
  constant_bytes,      // Volta ULDC: byte offset 38..53, bank 54..58
  constant_uniform,    // the same behind a uniform register 24..29
  constant_20,         // Pascal: offset/4 in 20..33, bank 34..38
  constant_ldc,        // Pascal LDC: register 8..15, byte offset 20..35 signed, bank 36..40
  special,             // 8 bits at lo
  address,         // register at lo (no_bit: none), signed offset at `second` of `width` bits; UR at `uniform`, descriptor bit `flag`
  label,           // Volta sm_8x: offset/4 in 34..81, from the next instruction
  label_split,     // sm_90: the same, low 8 bits in 16..23
  label_short,     // BSSY: offset/4 in 34..63
  label_bytes,     // LEPC: bytes in 24..81
  label_pascal,    // 24 bits at 20, bytes, from address + 8; bundle heads are addressed by the bundle
  label_absolute,  // Pascal: 32 bits at 20
  scoreboard,      // 3 bits at lo
};

// How an immediate prints, how a negation prints.
enum class Style : uint8_t {
  plain,  // unsigned hexadecimal; sign as -
  f32,
  f64,
  f16,
  invert,       // ~ for a negation
  invert_by_x,  // ~ when the X modifier is set
  decimal,
  p_mask,     // preceded by the literal PR (P2R)
  pr_before,  // preceded by PR (R2P)
  cc_before,  // preceded by CC (CSETP)
  hex20,      // Pascal: 20 bits unsigned
  base_32,    // address: a register of 32 bits beside a uniform pair
  no_urz,     // address: URZ is not printed
  rpc_half,   // RPCMOV: Rpc.LO or Rpc.HI
  relative,   // BRX: the distance from the next instruction
  repeat,     // no field: prints the operand before it again (BAR with both in one register)
  sign,       // followed by .SIGN: the sign bit is the operand
  not_rz,     // a register, and RZ is none here
  row,        // followed by .ROW or .COL: the order of a matrix
  column,
  bracket,     // in brackets: a uniform register with an address
  policy,      // desc[UR]: how long what is copied stays in a cache
  matrix,      // gdesc[UR]: where matrices lie; a negation, and parts: one is transposed, the second is negated
};

// When a slot is printed.
enum class Show : uint8_t { always, optional, with_x, with_ex, with_bar_red, unless_sx32, never };

// Consecutive registers that a slot covers.
enum class Span_ : uint8_t {
  one,
  two,
  four,
  size,  // by Size: 64 two, 128 four
  atom,
  vector,  // by AtomType
  dest,
  source,  // by DestSize, SourceSize
  f64_dest,
  f64_source,  // by DestFormat, SourceFormat
  wide,        // by Wide
  matrices,    // by Matrices: 1 two, 2 four
  tile,        // by Shape: 64 rows of 32 bits, or of half as many, shared by 128 threads
  half_tile,
  cas,
  cas_result,  // compare-and-swap of Pascal and sm_75: compare and swap in consecutive registers
};

inline constexpr uint8_t no_bit = 255;

struct Slot {
  SlotKind kind = SlotKind::none;
  uint8_t lo = 0, width = 0;
  uint8_t second = 0;  // address: first bit of the offset; immediate_split, half_20: of the upper part
  uint8_t uniform = no_bit;  // address: first bit of the uniform register
  uint8_t flag = no_bit;     // address: descriptor bit
  uint8_t scale = 0;  // address: the offset is in units of 1 << scale; label_pascal: 1 = no rule for bundle heads
  uint8_t neg = no_bit, abs = no_bit;
  uint8_t part = no_bit, part_width = 0;
  uint8_t part_base = 0;  // which text table
  Style style = Style::plain;
  Show show = Show::always;
  Access access = Access::read;
  Span_ span = Span_::one;
  uint8_t initial = 255;  // default register (make)
  bool initial_negated = false;

  constexpr Slot n(uint8_t bit) const {
    Slot s = *this;
    s.neg = bit;
    return s;
  }
  constexpr Slot a(uint8_t bit) const {
    Slot s = *this;
    s.abs = bit;
    return s;
  }
  constexpr Slot inv(uint8_t bit) const {
    Slot s = *this;
    s.neg = bit;
    s.style = Style::invert;
    return s;
  }
  constexpr Slot nx(uint8_t bit) const {
    Slot s = *this;
    s.neg = bit;
    s.style = Style::invert_by_x;
    return s;
  }
  constexpr Slot with(Span_ w) const {
    Slot s = *this;
    s.span = w;
    return s;
  }
  constexpr Slot as(Style w) const {
    Slot s = *this;
    s.style = w;
    return s;
  }
  constexpr Slot when(Show w) const {
    Slot s = *this;
    s.show = w;
    return s;
  }
  constexpr Slot rw(Access w) const {
    Slot s = *this;
    s.access = w;
    return s;
  }
  constexpr Slot half(uint8_t bit, uint8_t w = 1, uint8_t table = 0) const {
    Slot s = *this;
    s.part = bit;
    s.part_width = w;
    s.part_base = table;
    return s;
  }
  constexpr Slot opt(uint8_t reg, bool negated = false) const {
    Slot s = *this;
    s.show = Show::optional;
    s.initial = reg;
    s.initial_negated = negated;
    return s;
  }
  constexpr Slot def(uint8_t reg, bool negated = false) const {
    Slot s = *this;
    s.initial = reg;
    s.initial_negated = negated;
    return s;
  }
};

// A modifier: a bit field and the text of each of its values; a null text is a value that does not exist.
struct Mod {
  ModifierKind kind{};
  uint8_t lo = 0, width = 0, initial = 0;
  const char* const* texts = nullptr;
  uint8_t second = no_bit;  // first bit of an upper part, one bit wide (fields that the encoding splits)
};

struct Form {
  Mnemonic mnemonic{};
  const char* name = "";
  uint32_t targets = 0;
  bool pascal = false;
  bool uniform_guard = false;
  bool no_guard = false;  // Pascal: SSY, PBK, CAL and the like cannot be predicated
  uint8_t slot_count = 0, mod_count = 0;
  LatencyClass latency{};
  Provenance provenance = Provenance::ptxas;
  Word match, mask;  // the word matches when (word & mask) == match
  std::array<Slot, max_operands> slots{};
  std::array<Mod, max_modifiers> mods{};
};

std::span<const Form> volta_forms();
std::span<const Form> pascal_forms();
const Form& form_row(FormId id);

// --- Bits -------------------------------------------------------------------------------------------------------------------
constexpr uint64_t bits_mask(unsigned width) { return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1; }
constexpr uint64_t get_bits(const Word& w, unsigned lo, unsigned width) {
  uint64_t v = lo >= 64 ? w.hi >> (lo - 64) : lo == 0 ? w.lo : (w.lo >> lo) | (w.hi << (64 - lo));
  if (lo < 64 && lo + width <= 64) v = w.lo >> lo;
  return v & bits_mask(width);
}
constexpr void set_bits(Word& w, unsigned lo, unsigned width, uint64_t value) {
  for (unsigned done = 0; done < width;) {
    unsigned at = lo + done;
    unsigned shift = at % 64, n = 64 - shift < width - done ? 64 - shift : width - done;
    uint64_t m = bits_mask(n) << shift;
    uint64_t& half = at < 64 ? w.lo : w.hi;
    half = (half & ~m) | ((value >> done << shift) & m);
    done += n;
  }
}

// --- Fields ------------------------------------------------------------------------------------------------------------------
// Calls f(lo, width) for every bit field of the slot.
template <class F>
constexpr void slot_fields(const Slot& s, F&& f) {
  switch (s.kind) {
    case SlotKind::none: return;
    case SlotKind::gpr: f(s.lo, 8); break;
    case SlotKind::predicate:
    case SlotKind::predicate_inverted:
    case SlotKind::uniform_predicate:
    case SlotKind::uniform_predicate_inverted: f(s.lo, 3); break;
    case SlotKind::uniform: f(s.lo, 6); break;
    case SlotKind::barrier: f(s.lo, 4); break;
    case SlotKind::immediate:
    case SlotKind::immediate_signed: f(s.lo, s.width); break;
    case SlotKind::immediate_split:
      f(s.lo, s.width);
      f(s.second, 8 - s.width);
      break;
    case SlotKind::half_20:
      f(s.lo, 9);
      f(s.second, 1);
      break;
    case SlotKind::immediate_20:
    case SlotKind::float_20:
      f(20, 19);
      f(56, 1);
      break;
    case SlotKind::constant:
      f(40, 14);
      f(54, 5);
      break;
    case SlotKind::constant_indexed:
      f(24, 8);
      f(38, 16);
      f(54, 5);
      break;
    case SlotKind::constant_uniform: f(24, 6); [[fallthrough]];
    case SlotKind::constant_bytes:
      f(38, 16);
      f(54, 5);
      break;
    case SlotKind::constant_20:
      f(20, 14);
      f(34, 5);
      break;
    case SlotKind::constant_ldc:
      f(8, 8);
      f(20, 16);
      f(36, 5);
      break;
    case SlotKind::special: f(s.lo, 8); break;
    case SlotKind::address:
      if (s.lo != no_bit) f(s.lo, 8);
      if (s.width) f(s.second, s.width);
      if (s.uniform != no_bit) f(s.uniform, 6);
      if (s.flag != no_bit) f(s.flag, 1);
      break;
    case SlotKind::label: f(34, 48); break;
    case SlotKind::label_split:
      f(34, 48);
      f(16, 8);
      break;
    case SlotKind::label_short: f(34, 30); break;
    case SlotKind::label_bytes: f(24, 58); break;
    case SlotKind::label_pascal: f(20, 24); break;
    case SlotKind::label_absolute: f(20, 32); break;
    case SlotKind::scoreboard: f(s.lo, 3); break;
  }
  if (s.neg != no_bit) f(s.neg, 1);
  if (s.abs != no_bit) f(s.abs, 1);
  if (s.part != no_bit) f(s.part, s.part_width);
}

// --- Building rows -------------------------------------------------------------------------------------------------------------
constexpr Slot make_slot(SlotKind kind, uint8_t lo, Access access) {
  Slot s;
  s.kind = kind;
  s.lo = lo;
  s.access = access;
  return s;
}

struct Builder {
  Form f;
  bool overlaps = false;

  constexpr Builder fix(unsigned lo, unsigned width, uint64_t value) const {
    Builder b = *this;
    set_bits(b.f.match, lo, width, value);
    return b;
  }
  constexpr Builder slot(const Slot& s) const {
    Builder b = *this;
    b.f.slots[b.f.slot_count++] = s;
    return b;
  }
  template <class... S>
  constexpr Builder slots(const S&... s) const {
    Builder b = *this;
    ((b.f.slots[b.f.slot_count++] = s), ...);
    return b;
  }
  template <class... M>
  constexpr Builder mods(const M&... m) const {
    Builder b = *this;
    ((b.f.mods[b.f.mod_count++] = m), ...);
    return b;
  }
  constexpr Builder on(uint32_t targets) const {
    Builder b = *this;
    b.f.targets = targets;
    return b;
  }
  constexpr Builder unguarded() const {
    Builder b = *this;
    b.f.no_guard = true;
    return b;
  }
  constexpr Builder guard_uniform() const {
    Builder b = *this;
    b.f.uniform_guard = true;
    return b;
  }
  constexpr Builder from(Provenance p) const {
    Builder b = *this;
    b.f.provenance = p;
    return b;
  }
  // The finished row: bits of no field are fixed.
  constexpr Form done() const {
    Form r = f;
    Word fields;
    bool bad = false;
    auto claim = [&](unsigned lo, unsigned width) {
      if (get_bits(fields, lo, width) != 0) bad = true;
      set_bits(fields, lo, width, ~uint64_t{0});
      if (get_bits(r.match, lo, width) != 0) bad = true;  // a fixed bit inside a field
    };
    if (r.pascal) {
      claim(64, 21);
      if (!r.no_guard) claim(16, 4);
    } else {
      claim(105, 21);
      claim(12, 4);
    }
    for (unsigned k = 0; k < r.slot_count; ++k) slot_fields(r.slots[k], claim);
    for (unsigned k = 0; k < r.mod_count; ++k) {
      claim(r.mods[k].lo, r.mods[k].width);
      if (r.mods[k].second != no_bit) claim(r.mods[k].second, 1);
    }
    r.mask = {~fields.lo, ~fields.hi};
    if (bad) r.slot_count = 99;  // caught by rows_are_sound
    return r;
  }
};

template <size_t N>
struct Table {
  std::array<Form, N> rows{};
  size_t count = 0;
  constexpr void add(const Builder& b) { rows[count++] = b.done(); }
};

template <class T>
constexpr bool rows_are_sound(const T& table) {
  for (size_t i = 0; i < table.count; ++i)
    if (table.rows[i].slot_count > max_operands || table.rows[i].mod_count > max_modifiers || !table.rows[i].targets)
      return false;
  return true;
}
// The first pair of rows that a word can match both, or {count, count}.
template <class T>
constexpr std::array<size_t, 2> ambiguous_rows(const T& table) {
  for (size_t i = 0; i < table.count; ++i)
    for (size_t j = i + 1; j < table.count; ++j) {
      const Form &a = table.rows[i], &b = table.rows[j];
      if ((a.targets & b.targets) == 0) continue;
      if ((((a.match.lo ^ b.match.lo) & a.mask.lo & b.mask.lo) | ((a.match.hi ^ b.match.hi) & a.mask.hi & b.mask.hi)) ==
          0)
        return {i, j};
    }
  return {table.count, table.count};
}

}  // namespace rndn::isa
