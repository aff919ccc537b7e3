// Names and tables of the PTX IR: everything here is expanded from opcodes.def or is a list of spellings.
#include "ptx/ir.h"

#include "ptx/opcodes.h"

namespace rndn::ptx {
namespace {

constexpr std::string_view type_names[] = {"",    "pred", "b8",    "b16",  "b32",    "b64", "b128",
                                           "u8",  "u16",  "u32",   "u64",  "s8",     "s16", "s32",
                                           "s64", "f16",  "f16x2", "bf16", "bf16x2", "f32", "f64"};

constexpr std::string_view opcode_names[] = {
#define OPCODE(name, text) text,
#include "ptx/opcodes.def"
};

constexpr std::string_view special_names[] = {"",
                                              "%tid.x",
                                              "%tid.y",
                                              "%tid.z",
                                              "%ntid.x",
                                              "%ntid.y",
                                              "%ntid.z",
                                              "%ctaid.x",
                                              "%ctaid.y",
                                              "%ctaid.z",
                                              "%nctaid.x",
                                              "%nctaid.y",
                                              "%nctaid.z",
                                              "%laneid",
                                              "%warpid",
                                              "%nwarpid",
                                              "%smid",
                                              "%nsmid",
                                              "%gridid",
                                              "%lanemask_eq",
                                              "%lanemask_le",
                                              "%lanemask_lt",
                                              "%lanemask_ge",
                                              "%lanemask_gt",
                                              "%clock",
                                              "%clock_hi",
                                              "%clock64",
                                              "%globaltimer",
                                              "%globaltimer_lo",
                                              "%globaltimer_hi",
                                              "%dynamic_smem_size",
                                              "%total_smem_size",
                                              "%reserved_smem_offset_1",
                                              "%envreg0",
                                              "%envreg1",
                                              "%envreg2",
                                              "%envreg3",
                                              "%envreg4",
                                              "%envreg5",
                                              "%envreg6",
                                              "%envreg7",
                                              "%envreg8",
                                              "%envreg9",
                                              "%envreg10",
                                              "%envreg11",
                                              "%envreg12",
                                              "%envreg13",
                                              "%envreg14",
                                              "%envreg15",
                                              "%envreg16",
                                              "%envreg17",
                                              "%envreg18",
                                              "%envreg19",
                                              "%envreg20",
                                              "%envreg21",
                                              "%envreg22",
                                              "%envreg23",
                                              "%envreg24",
                                              "%envreg25",
                                              "%envreg26",
                                              "%envreg27",
                                              "%envreg28",
                                              "%envreg29",
                                              "%envreg30",
                                              "%envreg31"};
static_assert(std::size(special_names) == special_register_count);

// The vocabulary of opcodes.def.
constexpr TypeSet NONE = type_bit(Type::none), PRED = type_bit(Type::pred), B8 = type_bit(Type::b8),
                  B16 = type_bit(Type::b16), B32 = type_bit(Type::b32), B64 = type_bit(Type::b64),
                  U8 = type_bit(Type::u8), U16 = type_bit(Type::u16), U32 = type_bit(Type::u32),
                  U64 = type_bit(Type::u64), S8 = type_bit(Type::s8), S16 = type_bit(Type::s16),
                  S32 = type_bit(Type::s32), S64 = type_bit(Type::s64), F16 = type_bit(Type::f16),
                  F16X2 = type_bit(Type::f16x2), BF16 = type_bit(Type::bf16), BF16X2 = type_bit(Type::bf16x2),
                  F32 = type_bit(Type::f32), F64 = type_bit(Type::f64);
constexpr TypeSet INT8 = U8 | S8, INT16 = U16 | S16, INT32 = U32 | S32, INT64 = U64 | S64;
constexpr TypeSet MEM = B8 | B16 | B32 | B64 | INT8 | INT16 | INT32 | INT64 | F32 | F64;

constexpr ModifierSet bit(uint32_t n) { return ModifierSet{1} << n; }
constexpr ModifierSet RN = bit(modifier::rn), RZ = bit(modifier::rz), RM = bit(modifier::rm), RP = bit(modifier::rp),
                      RND = RN | RZ | RM | RP;
constexpr ModifierSet RNDI = bit(modifier::to_integer);
constexpr ModifierSet APPROX = bit(modifier::approx), FULL = bit(modifier::full), FTZ = bit(modifier::ftz);
constexpr ModifierSet SAT = bit(modifier::sat), CC = bit(modifier::cc), SYNC = bit(modifier::sync),
                      UNI = bit(modifier::uni);
constexpr ModifierSet TO = bit(modifier::to), CMP_EQ = bit(modifier::cmp_eq), CMP_ORDER = bit(modifier::cmp_order);
constexpr ModifierSet CMP_UNSIGNED = bit(modifier::cmp_unsigned), CMP_FLOAT = bit(modifier::cmp_float);
constexpr ModifierSet COMBINE = bit(modifier::combine), LO = bit(modifier::lo), HI = bit(modifier::hi),
                      WIDE = bit(modifier::wide);
constexpr ModifierSet PARAM = bit(modifier::param), LOCAL = bit(modifier::local), SHARED = bit(modifier::shared);
constexpr ModifierSet GLOBAL = bit(modifier::global), CONSTANT = bit(modifier::constant);
constexpr ModifierSet CA = bit(modifier::ca), CG = bit(modifier::cg), CS = bit(modifier::cs), NC = bit(modifier::nc);
constexpr ModifierSet LD_CACHE = CA | CG | CS | bit(modifier::lu_cv), ST_CACHE = CG | CS | bit(modifier::wb_wt);
constexpr ModifierSet WEAK = bit(modifier::weak), RELAXED = bit(modifier::relaxed), ACQUIRE = bit(modifier::acquire);
constexpr ModifierSet RELEASE = bit(modifier::release), ACQ_REL = bit(modifier::acq_rel), SC = bit(modifier::sc);
constexpr ModifierSet VOLATILE = bit(modifier::volatile_), CTA = bit(modifier::cta), GPU = bit(modifier::gpu);
constexpr ModifierSet SYS = bit(modifier::sys), SCOPES = CTA | GPU | SYS;
constexpr ModifierSet ADD = bit(modifier::atomic_add), MINMAX = bit(modifier::atomic_minmax);
constexpr ModifierSet INCDEC = bit(modifier::atomic_incdec), LOGIC = bit(modifier::atomic_logic);
constexpr ModifierSet EXCH = bit(modifier::atomic_exch), CAS = bit(modifier::atomic_cas);
constexpr ModifierSet ATOM_MODS = GLOBAL | SHARED | RELAXED | ACQUIRE | RELEASE | ACQ_REL | SCOPES;
constexpr ModifierSet RED_MODS = GLOBAL | SHARED | RELAXED | RELEASE | SCOPES;
constexpr ModifierSet SHUFFLE = bit(modifier::shuffle), VOTE_PRED = bit(modifier::vote_pred);
constexpr ModifierSet VOTE_BALLOT = bit(modifier::vote_ballot), WRAP = bit(modifier::wrap),
                      CLAMP = bit(modifier::clamp);
constexpr ModifierSet V2 = bit(modifier::v2), V4 = bit(modifier::v4);
constexpr ModifierSet MODES = bit(modifier::mode0), MODES_32 = bit(modifier::mode1);
constexpr ModifierSet MODES_64 = bit(modifier::mode2), MODES_96 = bit(modifier::mode3);
constexpr ModifierSet MODES_128 = bit(modifier::mode4), MODES_160 = bit(modifier::mode5);
constexpr ModifierSet MODES_192 = bit(modifier::mode6);

// Values of one group exclude each other.
constexpr ModifierSet groups[] = {RND | RNDI | APPROX | FULL,
                                  CMP_EQ | CMP_ORDER | CMP_UNSIGNED | CMP_FLOAT,
                                  COMBINE,
                                  LO | HI | WIDE,
                                  PARAM | LOCAL | SHARED | GLOBAL | CONSTANT,
                                  CA | CG | CS | bit(modifier::lu_cv) | bit(modifier::wb_wt),
                                  NC,
                                  WEAK | RELAXED | ACQUIRE | RELEASE | ACQ_REL | SC | VOLATILE,
                                  SCOPES,
                                  ADD | MINMAX | INCDEC | LOGIC | EXCH | CAS,
                                  SHUFFLE,
                                  VOTE_PRED | VOTE_BALLOT,
                                  WRAP | CLAMP,
                                  V2 | V4,
                                  MODES | MODES_32 | MODES_64 | MODES_96 | MODES_128 | MODES_160 | MODES_192,
                                  FTZ,
                                  SAT,
                                  CC,
                                  SYNC,
                                  UNI,
                                  TO};

struct OwnedForm {
  Opcode op;
  Form form;
};
constexpr OwnedForm all_forms[] = {
#define FORM(op, types, types2, required, allowed, operands, ptx, sm) \
  {Opcode::op, {types, types2, required, (required) | (allowed), operands, ptx, sm}},
#include "ptx/opcodes.def"
};
constexpr Mode all_modes[] = {
#define MODE(op, value, text) {Opcode::op, value, text},
#include "ptx/opcodes.def"
};

// Forms without their owner, and where each opcode's begin.
struct Tables {
  Form forms[std::size(all_forms)]{};
  uint16_t first_form[opcode_count + 1]{};
  uint16_t first_mode[opcode_count + 1]{};
};
constexpr Tables make_tables() {
  Tables t;
  size_t f = 0, m = 0;
  for (size_t op = 0; op < opcode_count; ++op) {
    t.first_form[op] = static_cast<uint16_t>(f);
    t.first_mode[op] = static_cast<uint16_t>(m);
    while (f < std::size(all_forms) && static_cast<size_t>(all_forms[f].op) == op) t.forms[f] = all_forms[f].form, ++f;
    while (m < std::size(all_modes) && static_cast<size_t>(all_modes[m].op) == op) ++m;
  }
  t.first_form[opcode_count] = static_cast<uint16_t>(f);
  t.first_mode[opcode_count] = static_cast<uint16_t>(m);
  return t;
}
constexpr Tables tables = make_tables();
static_assert(tables.first_form[opcode_count] == std::size(all_forms),
              "a FORM row stands below another opcode's OPCODE row");
static_assert(tables.first_mode[opcode_count] == std::size(all_modes),
              "a MODE row stands below another opcode's OPCODE row");

constexpr std::string_view rounding_names[] = {"", "rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"};
constexpr std::string_view compare_names[] = {"",   "eq",  "ne",  "lt",  "le",  "gt",  "ge",  "lo",  "ls", "hi",
                                              "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
constexpr std::string_view combine_names[] = {"", "and", "or", "xor"};
constexpr std::string_view part_names[] = {"", "lo", "hi", "wide"};
constexpr std::string_view space_names[] = {"", "reg", "param", "local", "shared", "global", "const"};
constexpr std::string_view cache_names[] = {"", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"};
constexpr std::string_view semantics_names[] = {"",        "weak",    "relaxed", "acquire",
                                                "release", "acq_rel", "sc",      "volatile"};
constexpr std::string_view scope_names[] = {"", "cta", "cluster", "gpu", "sys"};
constexpr std::string_view atomic_names[] = {"", "add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"};
constexpr std::string_view shuffle_names[] = {"", "up", "down", "bfly", "idx"};
constexpr std::string_view vote_names[] = {"", "all", "any", "uni", "ballot"};
constexpr std::string_view shift_names[] = {"", "wrap", "clamp"};

template <class E, size_t N>
std::string_view pick(const std::string_view (&table)[N], E v) {
  return static_cast<size_t>(v) < N ? table[static_cast<size_t>(v)] : "?";
}

}  // namespace

std::string_view register_prefix(Type type) {
  if (type == Type::pred) return "%p";
  if (type == Type::f32) return "%f";
  if (type == Type::f64) return "%fd";
  return type_bytes(type) == 8 ? "%rd" : type_bytes(type) == 4 ? "%r" : "%rs";
}
std::string register_name(const Function& f, RegisterId id) {
  const Register& r = f.registers[id];
  return r.named ? f.register_names[r.number] : std::string(register_prefix(r.type)) + std::to_string(r.number);
}

std::string_view type_name(Type t) { return pick(type_names, t); }

BarrierStep barrier_step(const Instruction& i) {
  using S = BarrierStep;
  static constexpr struct {
    Opcode op;
    uint8_t mode;
    S step;
  } rows[] = {
      {Opcode::mbarrier, 1, {.what = S::init}},
      {Opcode::mbarrier, 32, {.what = S::arrive}},
      {Opcode::mbarrier, 33, {.what = S::arrive, .drops = true}},
      {Opcode::mbarrier, 64, {.what = S::arrive}},  // .noComplete: what does not complete a phase anyway
      {Opcode::mbarrier, 65, {.what = S::arrive, .drops = true}},
      {Opcode::mbarrier, 96, {.what = S::test}},
      {Opcode::mbarrier, 128, {.what = S::test, .parity = true}},
      {Opcode::mbarrier, 160, {.what = S::invalidate}},
      {Opcode::mbarrier_try_wait, 0, {.what = S::test}},  // it need not wait
      {Opcode::mbarrier_try_wait, 1, {.what = S::test, .parity = true}},
      {Opcode::mbarrier_expect_tx, 0, {.what = S::count_bytes, .expects = true}},
      {Opcode::mbarrier_complete_tx, 0, {.what = S::count_bytes, .completes = true}},
      {Opcode::mbarrier_arrive_expect_tx, 0, {.what = S::arrive, .expects = true}},
      {Opcode::mbarrier_drop_expect_tx, 0, {.what = S::arrive, .drops = true, .expects = true}},
      {Opcode::cp, 96, {.what = S::count_bytes}},  // cp.async.mbarrier.arrive: expected and arrived at once
      {Opcode::cp, 97, {.what = S::arrive}},
      {Opcode::cp_async_bulk, 1, {.what = S::count_bytes, .completes = true}},
      {Opcode::cp_async_bulk, 2, {.what = S::count_bytes, .completes = true}},
  };
  for (const auto& row : rows)
    if (row.op == i.op && row.mode == i.mods.mode) return row.step;
  return {};
}

std::string_view opcode_name(Opcode op) { return pick(opcode_names, op); }
std::string_view special_register_name(SpecialRegister r) { return pick(special_names, r); }

std::string_view name(Rounding v) { return pick(rounding_names, v); }
std::string_view name(Compare v) { return pick(compare_names, v); }
std::string_view name(Combine v) { return pick(combine_names, v); }
std::string_view name(MulPart v) { return pick(part_names, v); }
std::string_view name(Space v) { return pick(space_names, v); }
std::string_view name(Cache v) { return pick(cache_names, v); }
std::string_view name(Semantics v) { return pick(semantics_names, v); }
std::string_view name(Scope v) { return pick(scope_names, v); }
std::string_view name(AtomicOp v) { return pick(atomic_names, v); }
std::string_view name(ShuffleMode v) { return pick(shuffle_names, v); }
std::string_view name(VoteMode v) { return pick(vote_names, v); }
std::string_view name(ShiftMode v) { return pick(shift_names, v); }

std::span<const Form> forms(Opcode op) {
  size_t i = static_cast<size_t>(op);
  return {tables.forms + tables.first_form[i], tables.forms + tables.first_form[i + 1]};
}
std::span<const Mode> modes(Opcode op) {
  size_t i = static_cast<size_t>(op);
  return {all_modes + tables.first_mode[i], all_modes + tables.first_mode[i + 1]};
}
std::string_view mode_text(Opcode op, uint8_t value) {
  for (const Mode& m : modes(op))
    if (m.value == value) return m.text;
  return "";
}

ModifierSet modifier_set(const Modifiers& m) {
  ModifierSet s = 0;
  auto from = [&](uint32_t first, uint32_t value) { s |= bit(first + value); };
  if (m.rounding != Rounding::none)
    from(modifier::rn, std::min(static_cast<uint32_t>(m.rounding) - 1, modifier::to_integer - modifier::rn));
  if (m.approx) s |= APPROX;
  if (m.full) s |= FULL;
  if (m.ftz) s |= FTZ;
  if (m.sat) s |= SAT;
  if (m.carry_out) s |= CC;
  if (m.sync) s |= SYNC;
  if (m.uni) s |= UNI;
  if (m.to) s |= TO;
  if (m.compare >= Compare::equ)
    s |= CMP_FLOAT;
  else if (m.compare >= Compare::lo)
    s |= CMP_UNSIGNED;
  else if (m.compare >= Compare::lt)
    s |= CMP_ORDER;
  else if (m.compare != Compare::none)
    s |= CMP_EQ;
  if (m.combine != Combine::none) s |= COMBINE;
  if (m.part != MulPart::none) from(modifier::lo, static_cast<uint32_t>(m.part) - 1);
  if (m.space >= Space::param)
    from(modifier::param, static_cast<uint32_t>(m.space) - static_cast<uint32_t>(Space::param));
  switch (m.cache) {
    case Cache::none: break;
    case Cache::ca: s |= CA; break;
    case Cache::cg: s |= CG; break;
    case Cache::cs: s |= CS; break;
    case Cache::lu:
    case Cache::cv: s |= bit(modifier::lu_cv); break;
    case Cache::wb:
    case Cache::wt: s |= bit(modifier::wb_wt); break;
    case Cache::nc: s |= NC; break;
  }
  if (m.semantics != Semantics::none) from(modifier::weak, static_cast<uint32_t>(m.semantics) - 1);
  if (m.scope == Scope::cta) s |= CTA;
  if (m.scope == Scope::gpu) s |= GPU;
  if (m.scope == Scope::sys) s |= SYS;
  switch (m.atomic) {
    case AtomicOp::none: break;
    case AtomicOp::add: s |= ADD; break;
    case AtomicOp::min:
    case AtomicOp::max: s |= MINMAX; break;
    case AtomicOp::inc:
    case AtomicOp::dec: s |= INCDEC; break;
    case AtomicOp::and_:
    case AtomicOp::or_:
    case AtomicOp::xor_: s |= LOGIC; break;
    case AtomicOp::exch: s |= EXCH; break;
    case AtomicOp::cas: s |= CAS; break;
  }
  if (m.shuffle != ShuffleMode::none) s |= SHUFFLE;
  if (m.vote == VoteMode::ballot)
    s |= VOTE_BALLOT;
  else if (m.vote != VoteMode::none)
    s |= VOTE_PRED;
  if (m.shift != ShiftMode::none) from(modifier::wrap, static_cast<uint32_t>(m.shift) - 1);
  if (m.vector == 2) s |= V2;
  if (m.vector == 4) s |= V4;
  if (m.mode != 0) s |= bit(modifier::mode0 + m.mode / 32);
  return s;
}

ModifierSet modifier_groups(ModifierSet set) {
  ModifierSet all = 0;
  for (ModifierSet g : groups)
    if (set & g) all |= g;
  return all;
}

// False when the form cannot have that many operands; else how many of its optional places they fill.
static bool counts(const Form& form, uint32_t operand_count, uint32_t& keep) {
  uint32_t fixed = 0, optional = 0;
  for (const char* c = form.operands; *c; ++c) {
    if (*c == '?')
      --fixed, ++optional;
    else if (*c != ':' && *c != '|')
      ++fixed;
  }
  keep = operand_count - fixed;
  return operand_count >= fixed && operand_count <= fixed + optional;
}

bool places(const Form& form, uint32_t operand_count, Places& out) {
  uint32_t keep;  // optional places present: the first ones
  if (!counts(form, operand_count, keep)) return false;
  out = {};
  bool destination = true, bar = false;
  for (const char* c = form.operands; *c; ++c) {
    if (*c == ':') {
      destination = false;
      out.destinations = out.count;
    } else if (*c == '|') {
      bar = true;
    } else {
      bool is_optional = c[1] == '?';
      if (!is_optional || keep > 0) {
        if (is_optional) --keep;
        out.at[out.count++] = {*c, destination, bar};
      }
      if (is_optional) ++c;
      bar = false;
    }
  }
  return true;
}

const Form* find_form(const Instruction& i, const Form* after) {
  const ModifierSet present = modifier_set(i.mods);
  const std::span<const Form> all = forms(i.op);
  for (const Form& f : after ? all.subspan(static_cast<size_t>(after - all.data()) + 1) : all) {
    if (!(f.types & type_bit(i.type)) || !(f.types2 & type_bit(i.type2)) || (present & ~f.allowed)) continue;
    bool complete = true;
    if (f.required & ~present)
      for (ModifierSet g : groups)
        if ((f.required & g) && !(present & f.required & g)) complete = false;
    if (!complete) continue;
    uint32_t optional;
    if (f.operands[0] == '*' || counts(f, i.operand_count, optional)) return &f;
  }
  return nullptr;
}

Type widened(Type t) {
  switch (t) {
    case Type::b8: return Type::b16;
    case Type::b16: return Type::b32;
    case Type::b32: return Type::b64;
    case Type::b64: return Type::b128;
    case Type::u8: return Type::u16;
    case Type::u16: return Type::u32;
    case Type::u32: return Type::u64;
    case Type::s8: return Type::s16;
    case Type::s16: return Type::s32;
    case Type::s32: return Type::s64;
    default: return Type::none;
  }
}

Type place_type(char kind, const Instruction& i) {
  switch (kind) {
    case 't':
    case 'm':
    case 'v': return i.type;
    case 's': return i.type2;
    case 'w': return widened(i.type);
    case 'i':
    case 'u': return Type::u32;
    case 'b': return Type::b32;
    case 'q': return Type::b64;
    case 'h': return Type::b16;
    case 'f': return Type::f32;
    case 'p':
    case 'P': return Type::pred;
    default: return Type::none;
  }
}

Type operand_type(const Instruction& i, uint32_t k) {
  const Form* f = find_form(i);
  Places p;
  if (!f || f->operands[0] == '*' || !places(*f, i.operand_count, p) || k >= p.count) return Type::none;
  return place_type(p.at[k].kind, i);
}

}  // namespace rndn::ptx
