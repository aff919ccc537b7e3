// The rows of opcodes.def as constexpr tables: what printer, parser, verifier and interpreter share.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "ptx/ir.h"

namespace rndn::ptx {

// Sets of types; bit n is Type n.
using TypeSet = uint32_t;
constexpr TypeSet type_bit(Type t) { return TypeSet{1} << static_cast<uint32_t>(t); }

// Sets of modifier values, one bit per value (or per values that no row tells apart).
using ModifierSet = uint64_t;
namespace modifier {
enum : uint32_t {
  rn,
  rz,
  rm,
  rp,
  to_integer,  // rounding: rni rzi rmi rpi
  approx,
  full,  // share a group with rounding
  ftz,
  sat,
  cc,
  sync,
  uni,
  to,  // flags
  cmp_eq,
  cmp_order,
  cmp_unsigned,
  cmp_float,  // eq ne | lt le gt ge | lo ls hi hs | equ .. nan
  combine,    //
  lo,
  hi,
  wide,  // part
  param,
  local,
  shared,
  global,
  constant,  // space
  ca,
  cg,
  cs,
  lu_cv,
  wb_wt,
  nc,  // cache
  weak,
  relaxed,
  acquire,
  release,
  acq_rel,
  sc,
  volatile_,  // semantics
  cta,
  gpu,
  sys,  // scope
  atomic_add,
  atomic_minmax,
  atomic_incdec,
  atomic_logic,
  atomic_exch,
  atomic_cas,
  shuffle,
  vote_pred,
  vote_ballot,
  wrap,
  clamp,
  v2,
  v4,  //
  mode0,
  mode1,
  mode2,
  mode3,
  mode4,
  mode5,
  mode6,  // Modifiers::mode / 32
  count
};
}  // namespace modifier
static_assert(modifier::count <= 64);

struct Form {
  TypeSet types, types2;
  ModifierSet required, allowed;
  const char* operands;
  uint8_t ptx, sm;
};
struct Mode {
  Opcode op;
  uint8_t value;
  std::string_view text;
};

inline constexpr size_t opcode_count = 0
#define OPCODE(...) +1
#include "ptx/opcodes.def"
    ;

std::span<const Form> forms(Opcode op);
std::span<const Mode> modes(Opcode op);
std::string_view mode_text(Opcode op, uint8_t value);
inline bool mode_follows_type(Opcode op) {  // prmt.b32.f4e, prefetch.global.L1, barrier.sync.aligned
  return op == Opcode::prmt || op == Opcode::prefetch || op == Opcode::prefetchu || op == Opcode::barrier ||
         op == Opcode::applypriority || op == Opcode::discard;
}

inline constexpr bool is_video(Opcode op) { return op >= Opcode::vadd && op <= Opcode::vset4; }
// Into how many parts it takes its words.
inline uint32_t video_parts(Opcode op) { return op <= Opcode::vmad ? 1 : opcode_name(op).ends_with('2') ? 2 : 4; }
// What a video instruction's suffix says.
struct VideoSuffix {
  bool is_signed = false, a_signed = false, b_signed = false;  // the result, of vset as a, and of vmad if any is
  bool sat = false, wrap = false;
  bool plus_one = false;     // vmad.po
  uint32_t shift = 0;        // vmad.shr7
  std::string_view what;     // of the opcode: "absdiff"
  std::string_view compare;  // "lt"
  std::string_view second;   // "add", "min", "max"
  uint32_t parts = 1;        // of 32 bits: 1, 2, 4
};
VideoSuffix video_suffix(const Instruction& i);

// The modifiers that `m` carries, as a set; the group (mutually exclusive values) that a set touches.
ModifierSet modifier_set(const Modifiers& m);
ModifierSet modifier_groups(ModifierSet set);

// The form that an instruction's types, modifiers and operand count select, or null. Operand kinds are the verifier's
// matter. `after`: the next one that they select.
const Form* find_form(const Instruction& i, const Form* after = nullptr);

// One operand place of a form, after leaving out optional places that an instruction with `operand_count` operands does
// not have.
struct Place {
  char kind = 0;  // letter of opcodes.def
  bool destination = false;
  bool bar = false;  // printed after '|'
};
struct Places {
  uint8_t count = 0, destinations = 0;
  Place at[8];
};
// False when the form cannot have that many operands.
bool places(const Form& form, uint32_t operand_count, Places& out);

Type widened(Type t);                              // u16 -> u32, ...
Type place_type(char kind, const Instruction& i);  // the type of the operand at a place; none for labels, addresses
// The type that operand k has in instruction i by its row: the base for its registers' widths and for immediates.
Type operand_type(const Instruction& i, uint32_t k);

// Names of modifier values, as printed without the dot; empty for none.
std::string_view name(Rounding v);
std::string_view name(Compare v);
std::string_view name(Combine v);
std::string_view name(MulPart v);
std::string_view name(Space v);
std::string_view name(Cache v);
std::string_view name(Semantics v);
std::string_view name(Scope v);
std::string_view name(AtomicOp v);
std::string_view name(ShuffleMode v);
std::string_view name(VoteMode v);
std::string_view name(ShiftMode v);

}  // namespace rndn::ptx
