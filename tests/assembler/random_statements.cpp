#include "tests/assembler/random_statements.h"

#include <fmt/format.h>

#include "tests/assembler/random_programs.h"
#include "tests/support/ptx_rows.h"

namespace rndn::testing::random_ptx {

Kind kind_of(Type t) {
  switch (t) {
    case Type::pred: return P;
    case Type::f16: return H;
    case Type::f16x2: return H2;
    case Type::bf16: return B;
    case Type::bf16x2: return B2;
    case Type::f32: return F;
    case Type::f64: return D;
    default: return type_bytes(t) <= 2 ? I16 : type_bytes(t) == 4 ? I32 : I64;
  }
}

namespace {

// What the table of operations is not used for: memory, cooperation and control have statements of their own. fns is not assembled.
bool has_own_statement(Opcode op) {
  switch (op) {
    case Opcode::mov:
    case Opcode::cvta:
    case Opcode::isspacep:
    case Opcode::ld:
    case Opcode::ldu:
    case Opcode::st:
    case Opcode::prefetch:
    case Opcode::prefetchu:
    case Opcode::applypriority:
    case Opcode::discard:
    case Opcode::createpolicy:  // whose value is the target's own
    case Opcode::elect:
    case Opcode::atom:
    case Opcode::red:
    case Opcode::cp:
    case Opcode::shfl:
    case Opcode::vote:
    case Opcode::match:
    case Opcode::activemask:
    case Opcode::redux:
    case Opcode::bar:
    case Opcode::barrier:
    case Opcode::membar:
    case Opcode::fence:
    case Opcode::bra:
    case Opcode::call:
    case Opcode::ret:
    case Opcode::exit:
    case Opcode::trap:
    case Opcode::brkpt:
    case Opcode::nanosleep:
    case Opcode::addc:
    case Opcode::subc:
    case Opcode::madc:
    case Opcode::fns:
    case Opcode::alloca_:
    case Opcode::stacksave: return true;
    default: return false;
  }
}

constexpr ModifierSet one(uint32_t bit) { return ModifierSet{1} << bit; }
constexpr ModifierSet approximate = one(modifier::approx) | one(modifier::full);
constexpr ModifierSet roundings =
    one(modifier::rn) | one(modifier::rz) | one(modifier::rm) | one(modifier::rp) | approximate;

// Forms of an opcode that a target has and that are defined to the last bit.
std::vector<std::vector<Choice>> operations(uint32_t sm) {
  std::vector<std::vector<Choice>> all;
  for (size_t o = 0; o < opcode_count; ++o) {
    const Opcode op = static_cast<Opcode>(o);
    if (has_own_statement(op)) continue;
    // ptxas has instructions for Pascal that the simulator does not know.
    if (sm < 70 && is_video(op) && video_parts(op) == 1) continue;
    std::vector<Choice> of;
    for (const Form& f : forms(op)) {
      const bool open = (f.required & approximate) && !(f.required & roundings & ~approximate);
      const bool plain = std::string_view(f.operands).find_first_not_of(":|?twsubpPi") == std::string_view::npos;
      if (op == Opcode::mad24 && (f.required | f.allowed) & one(modifier::sat)) continue;  // not assembled
      Places p;
      for (uint32_t n = 0; !places(f, n, p);) ++n;
      if (f.sm <= sm && f.ptx <= program_version && !open && plain && p.destinations > 0 &&
          !(f.required & one(modifier::cc)))
        of.push_back({op, &f});
    }
    if (!of.empty()) all.push_back(of);
  }
  return all;
}
}  // namespace

Statements::Statements(Module& module, uint64_t seed, std::string name)
    : m_(module), name_(std::move(name)), state_(seed * 0x9e3779b97f4a7c15u + 0x1234567u) {
  static thread_local std::map<uint32_t, std::vector<std::vector<Choice>>> tables;
  auto [it, fresh] = tables.try_emplace(m_.target);
  if (fresh) it->second = operations(m_.target);
  table_ = &it->second;
}

// ---- chance
uint64_t Statements::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
uint32_t Statements::bit_of(uint64_t set) {
  uint32_t n = pick(static_cast<size_t>(std::popcount(set)));
  while (n-- > 0) set &= set - 1;
  return static_cast<uint32_t>(std::countr_zero(set));
}

// ---- functions, registers, instructions
void Statements::begin(bool entry, const std::string& name) {
  index_ = static_cast<uint32_t>(m_.functions.size());
  m_.functions.emplace_back();
  f_ = {};
  f_.name = name;
  f_.is_entry = entry;
  f_.visible = entry;
  pool_ = {};
  regions_.clear();
  loops_.clear();
  meet_ = false, tile_ = 1, mask_ = 0;
  weight_ = 1;
  numbers_ = {};
}
void Statements::end() {
  for (const auto& [label, at] : placed_) f_.labels[static_cast<LabelId>(label)].at = at;
  placed_.clear();
  m_.functions[index_] = std::move(f_);
}
uint32_t Statements::fresh(Type type) {
  const Type declared = type == Type::bf16 ? Type::b16 : type == Type::bf16x2 ? Type::b32 : type;
  const uint32_t n = numbers_[static_cast<size_t>(declared)]++;
  return static_cast<uint32_t>(index(f_.add_register(declared, fmt::format("%{}_{}", type_name(declared), n))));
}
Type Statements::declared_type(Kind k) {
  Type t = kind_type[k];
  if (k == I16) t = any({Type::b16, Type::b16, Type::u16, Type::s16});
  if (k == I32) t = any({Type::b32, Type::b32, Type::u32, Type::s32});
  if (k == I64) t = any({Type::b64, Type::b64, Type::u64, Type::s64});
  if (k == H && chance(2)) t = Type::b16;
  if ((k == H2 || k == F) && chance(6)) t = Type::b32;
  return t;
}
uint32_t Statements::add_variable(Space space, Type type, uint64_t count, uint32_t align, bool own) {
  Variable v{space, type, fmt::format("{}_v{}", name_, m_.variables.size()), align, count};
  v.function = own ? index_ : UINT32_MAX;
  return static_cast<uint32_t>(index(m_.variables.add(std::move(v))));
}
void Statements::emit(Opcode op, Type type, const Modifiers& mods, const Operands& destinations,
                      const Operands& sources, Type type2) {
  Instruction i;
  i.op = op;
  i.type = type;
  i.type2 = type2;
  i.mods = mods;
  i.guard = guard_;
  i.guard_negated = guard_negated_;
  i.operand_count = static_cast<uint8_t>(destinations.size() + sources.size());
  i.destination_count = static_cast<uint8_t>(destinations.size());
  i.line = frame_ ? program_frame : 0;
  i.first_operand = static_cast<uint32_t>(f_.operands.size());
  for (const Operand& o : destinations) f_.operands.push_back(o);
  for (const Operand& o : sources) f_.operands.push_back(o);
  f_.instructions.push_back(i);
}
// A temporary with the result.
uint32_t Statements::make(Opcode op, Type type, const Modifiers& mods, const Operands& sources, Type result,
                          Type type2) {
  const uint32_t r = fresh(result == Type::none ? type : result);
  const bool kept = frame_;
  frame_ = true;
  emit(op, type, mods, {reg(r)}, sources, type2);
  frame_ = kept;
  return r;
}
uint32_t Statements::compare(Compare c, Type type, const Operand& a, const Operand& b) {
  return make(Opcode::setp, type, {.compare = c}, {a, b}, Type::pred);
}
Operand Statements::vector(const Operands& elements) {
  Operand v{.kind = Operand::vector,
            .count = static_cast<uint8_t>(elements.size()),
            .id = static_cast<uint32_t>(f_.vector_elements.size())};
  f_.vector_elements.append({elements.begin(), elements.size()});
  return v;
}
uint32_t Statements::label() {
  return static_cast<uint32_t>(index(f_.labels.add({fmt::format("L{}", f_.labels.size()), UINT32_MAX})));
}
void Statements::branch(uint32_t to, uint32_t guard, bool negated) {
  const auto kept = std::pair(guard_, guard_negated_);
  guard_ = guard == UINT32_MAX ? rndn::none<RegisterId>() : static_cast<RegisterId>(guard), guard_negated_ = negated;
  emit(Opcode::bra, Type::none, {}, {}, {{.kind = Operand::label, .id = to}});
  std::tie(guard_, guard_negated_) = kept;
}
// Elements of a vector have one type.
Operand Statements::uniform_vector(Operands elements) {
  Type first = Type::none;
  bool same = true;
  for (const Operand& e : elements) {
    const Type t = e.kind == Operand::reg ? declared(e.id) : Type::none;
    if (first == Type::none) first = t;
    same &= t == first && t != Type::none;
  }
  if (same || first == Type::none) return vector(elements);
  const Type bits = bits_type(type_bytes(first));
  for (Operand& e : elements)
    if (e.kind != Operand::reg || declared(e.id) != bits) e = reg(make(Opcode::mov, bits, {}, {e}));
  return vector(elements);
}

// ---- values
uint32_t Statements::source(Kind k) {
  std::vector<Var>& pool = pool_[k];
  for (uint32_t tries = 0;; ++tries) {
    const Var& v = pool[chance(3) ? pick(pool.size()) : pool.size() - 1 - pick(std::min<size_t>(pool.size(), 5))];
    if (!uniform_only_ || v.uniform) return v.reg;
    if (tries < 50) continue;
    for (const Var& u : pool)
      if (u.uniform) return u.reg;
    return constant_register(k);
  }
}
// A register with a constant, moved there by any type of its bits. The selection of instructions knows what is in it and puts it where it is read.
uint32_t Statements::constant_register(Kind k) {
  const uint32_t r = fresh(declared_type(k));
  const auto kept = std::pair(guard_, guard_negated_);
  guard_ = rndn::none<RegisterId>(), guard_negated_ = false;
  if (k == P) {
    emit(Opcode::setp, Type::u32, {.compare = Compare::lt}, {reg(r)}, {reg(a_), imm(static_cast<int64_t>(pick(9)))});
  } else if (k == H || k == B) {
    emit(Opcode::mov, Type::b16, {}, {reg(r)}, {imm(pick(0x7c00) | pick(2) << 15)});
  } else if (k == H2 || k == B2) {
    emit(Opcode::mov, Type::b32, {}, {reg(r)}, {imm(int64_t{pick(0x7c00)} << 16 | pick(0x7c00) | pick(2) << 15)});
  } else {
    Type type = kind_type[k];
    if (k == I16) type = any({Type::b16, Type::u16, Type::s16});
    if (k == I32) type = any({Type::b32, Type::u32, Type::s32});
    if (k == I64) type = any({Type::b64, Type::u64, Type::s64});
    emit(Opcode::mov, type, {}, {reg(r)}, {constant(type)});
  }
  std::tie(guard_, guard_negated_) = kept;
  return r;
}
Operand Statements::constant(Type type) {
  const uint32_t bits = 8 * type_bytes(type);
  if (type == Type::f32) {
    static constexpr uint32_t special[] = {0,          0x80000000, 0x3f800000, 0xbf000000, 0x7f800000, 0xff800000,
                                           0x7fc00000, 1,          0x00800000, 0x4b000000, 0x34000001, 0x477fff00};
    return imm(chance(2) ? special[pick(std::size(special))] : (next() & 0xffffffff));
  }
  if (type == Type::f64) {
    static constexpr uint64_t special[] = {
        0, 0x8000000000000000, 0x3ff0000000000000, 0xbfe0000000000000, 0x7ff0000000000000, 0x7ff8000000000000,
        1, 0x41dfffffffc00000, 0x40091eb851eb851f};
    return imm(static_cast<int64_t>(chance(2) ? special[pick(std::size(special))] : next()));
  }
  uint64_t v = 0;
  switch (pick(5)) {
    case 0: v = pick(8); break;
    case 1: v = uint64_t{1} << pick(bits); break;
    case 2: v = (uint64_t{1} << pick(bits)) - 1; break;
    case 3: v = ~uint64_t{pick(100)}; break;
    default: v = next() >> pick(bits); break;
  }
  if (bits < 64) {
    v &= (uint64_t{1} << bits) - 1;
    if (is_signed(type) && v >> (bits - 1)) v |= ~uint64_t{0} << bits;
  }
  return imm(static_cast<int64_t>(v));
}
// A source of the type; in ld, st and cvt (`wider`) the register may be wider.
Operand Statements::value(Type type, bool constants, bool wider) {
  Kind k = kind_of(type);
  if (is_integer(type) && wider)
    k = type_bytes(type) == 1 ? any({I16, I32}) : chance(4) ? static_cast<Kind>(std::min<int>(k + 1, I64)) : k;
  const bool can = k != P && k != H && k != H2 && k != B && k != B2;
  if (constants && can && chance(5)) return constant(type);
  return reg(k != P && chance(12) ? constant_register(k) : source(k));
}
// Where a result of the kind goes: a variable that lives on, or a new one that add() makes known.
uint32_t Statements::target(Kind k, bool must_live) {
  std::vector<uint32_t> candidates;
  for (const Var& v : pool_[k])
    if (!v.fixed && (v.uniform ? uniform_only_ && meet_ : !uniform_only_)) candidates.push_back(v.reg);
  if (!candidates.empty() && (must_live || chance(2))) return candidates[pick(candidates.size())];
  if (must_live) return UINT32_MAX;
  const uint32_t r = fresh(declared_type(k));
  pending_.push_back({k, {.reg = r, .uniform = uniform_only_ && meet_}});
  return r;
}
void Statements::add_targets() {
  for (auto& [kind, var] : pending_) pool_[kind].push_back(var);
  pending_.clear();
}
// The bits of a value as an integer register, NaNs made one.
uint32_t Statements::bits_of(Kind k, uint32_t r) {
  switch (k) {
    case P: return make(Opcode::selp, Type::b32, {}, {imm(1), imm(0), reg(r)});
    case F: {
      const uint32_t p = compare(Compare::nan, Type::f32, reg(r), reg(r));
      return make(Opcode::selp, Type::b32, {}, {imm(0x7fc00000), reg(r), reg(p)});
    }
    case D: {
      const uint32_t p = compare(Compare::nan, Type::f64, reg(r), reg(r));
      return make(Opcode::selp, Type::b64, {}, {imm(0x7ff8000000000000), reg(r), reg(p)});
    }
    case H:
    case B: {
      const uint32_t magnitude = make(Opcode::and_, Type::b16, {}, {reg(r), imm(0x7fff)});
      const uint32_t p = compare(Compare::gt, Type::u16, reg(magnitude), imm(k == H ? 0x7c00 : 0x7f80));
      return make(Opcode::selp, Type::b16, {}, {imm(k == H ? 0x7e00 : 0x7fc0), reg(r), reg(p)});
    }
    case H2:
    case B2: {
      const uint32_t low = fresh(Type::b16), high = fresh(Type::b16);
      emit(Opcode::mov, Type::b32, {}, {vector({reg(low), reg(high)})}, {reg(r)});
      const Kind half = k == H2 ? H : B;
      const uint32_t a = bits_of(half, low), b = bits_of(half, high);
      return make(Opcode::mov, Type::b32, {}, {uniform_vector({reg(a), reg(b)})});
    }
    default: return r;
  }
}

// ---- operations of the table
void Statements::operation() {
  const std::vector<Choice>& of = (*table_)[pick(table_->size())];
  const Choice& choice = of[pick(of.size())];
  const Form& form = *choice.form;
  Instruction i;
  i.op = choice.op;
  i.type = type_of(form.types);
  i.type2 = type_of(form.types2);
  i.mods = modifiers(choice.op, form);
  Places p;
  uint32_t least = 0;
  while (!places(form, least, p)) ++least;
  Places more;
  if (chance(3) && places(form, least + 1, more)) p = more;
  i.operand_count = p.count;
  if (ptx::find_form(i) == nullptr) return;
  const bool brain = kind_of(i.type) == B || kind_of(i.type2) == B;
  // ptxas 11.8 takes no wider registers beside bfloat16, and none where a mode names the types.
  const bool wider = i.op == Opcode::cvt && !brain && i.mods.mode == 0;
  // ptxas 11.8 guards only a part of what it makes of a testp and of a set to f32.
  const bool guarded = !uniform_only_ && i.op != Opcode::testp && i.op != Opcode::set && chance(7);
  Operands destinations, sources;
  bool has_register = false;
  for (uint32_t k = p.destinations; k < p.count; ++k) {
    const Type t = place_type(p.at[k].kind, i);
    if (p.at[k].kind == 'i') {
      sources.push_back(imm(pick(256)));
    } else if (p.at[k].kind == 'P') {
      sources.push_back(reg(source(P)));
      sources.back().negated = chance(2);
    } else {
      // Not everything is constant.
      const bool constants = (has_register || k + 1 < p.count) && !wider && i.op != Opcode::testp &&
                             !is_video(i.op);  // ptxas takes no constants there
      Operand o = value(t, constants, wider);
      if (k + 1 == p.count && !has_register && o.kind != Operand::reg) o = reg(source(kind_of(t)));
      const bool field = i.op == Opcode::bfe || i.op == Opcode::bfi;  // ptxas takes constants of eight bits only
      if (p.at[k].kind == 'u' && o.kind == Operand::immediate && (field || chance(2)))
        o.value = pick(chance(4) ? 256 : 70);
      has_register |= o.kind == Operand::reg;
      sources.push_back(o);
    }
  }
  define(i, sources);
  const uint32_t guard = guarded ? source(P) : 0;
  for (uint32_t k = 0; k < p.destinations; ++k) {
    const Type t = place_type(p.at[k].kind, i);
    Kind kind = kind_of(t);
    if (wider && is_integer(t))
      kind = type_bytes(t) == 1 ? any({I16, I32}) : chance(4) && kind < I64 ? static_cast<Kind>(kind + 1) : kind;
    uint32_t r = target(kind, guarded);
    if (r == UINT32_MAX) return pending_.clear();
    if (k == 1 && r == destinations[0].id) {
      if (guarded) return pending_.clear();
      r = fresh(Type::pred), pending_.push_back({P, {.reg = r, .uniform = uniform_only_ && meet_}});
    }
    destinations.push_back(reg(r));
  }
  if (p.destinations == 2 && chance(8)) destinations[0] = {.kind = Operand::sink};
  if (guarded) guard_ = static_cast<RegisterId>(guard), guard_negated_ = chance(2);
  emit(i.op, i.type, i.mods, destinations, sources, i.type2);
  guard_ = rndn::none<RegisterId>(), guard_negated_ = false;
  if (destinations[0].kind == Operand::sink)
    std::erase_if(pending_, [&](const auto& x) { return x.second.reg != destinations[1].id; });
  add_targets();
}
Modifiers Statements::modifiers(Opcode op, const Form& form) {
  Modifiers m;
  ModifierSet left = form.required & ~approximate;
  auto take = [&](ModifierSet from) {
    const std::vector<Modifiers> all = settings(op, bit_of(from));
    if (!all.empty()) m = merged(m, all[pick(all.size())]);
  };
  while (left) {
    const ModifierSet group = modifier_groups(left & -left);
    take(left & group);
    left &= ~group;
  }
  left = form.allowed & ~modifier_groups(form.required) & ~approximate & ~one(modifier::cc);
  while (left) {
    const ModifierSet group = modifier_groups(left & -left);
    if ((left & group & roundings) || chance(3)) take(left & group);
    left &= ~group;
  }
  return m;
}
// Operands for which PTX does not say what happens are replaced.
void Statements::define(const Instruction& i, Operands& sources) {
  const Type bits = bits_type(type_bytes(i.type));
  if ((i.op == Opcode::div || i.op == Opcode::rem) && is_integer(i.type)) {
    if (sources[1].kind == Operand::reg)
      sources[1] = reg(make(Opcode::or_, bits, {}, {sources[1], imm(1)}));
    else if (sources[1].value == 0)
      sources[1].value = 3;
  }
  if (i.op == Opcode::fns && sources[1].kind == Operand::reg)
    sources[1] = reg(make(Opcode::and_, Type::b32, {}, {sources[1], imm(31)}));
  else if (i.op == Opcode::fns)
    sources[1].value &= 31;
  if (i.op == Opcode::bfe || i.op == Opcode::bfi)  // 0 to 255
    for (size_t k = sources.size() - 2; k < sources.size(); ++k)
      if (sources[k].kind == Operand::reg)
        sources[k] = reg(make(Opcode::and_, Type::b32, {}, {sources[k], imm(any({31, 63, 127, 255}))}));
  if (i.op == Opcode::copysign && sources[0].kind == Operand::reg)
    sources[0] = reg(bits_of(kind_of(i.type), sources[0].id));
  if ((i.op == Opcode::min || i.op == Opcode::max) && is_floating(i.type) &&
      i.mods.mode >= 96)  // .xorsign.abs sees the sign of a NaN
    for (Operand& o : sources)
      if (o.kind == Operand::reg) o = reg(bits_of(kind_of(i.type), o.id));
}

// ---- moves between kinds
void Statements::pack() {
  switch (pick(6)) {
    case 0: return result(I32, Type::b32, {uniform_vector({reg(source(I16)), reg(source(I16))})});
    case 1: return result(I64, Type::b64, {uniform_vector({reg(source(I32)), reg(source(I32))})});
    case 2: return result(H2, Type::b32, {uniform_vector({reg(source(H)), reg(source(H))})});
    case 3: return halves(I32, I16, Type::b32);
    case 4: return halves(I64, I32, Type::b64);
    default: return halves(H2, H, Type::b32);
  }
}
void Statements::result(Kind k, Type type, const Operands& sources) {
  emit(Opcode::mov, type, {}, {reg(target(k, false))}, sources);
  add_targets();
}
void Statements::halves(Kind from, Kind to, Type type) {
  const uint32_t s = source(from), a = target(to, false);
  uint32_t b = target(to, false);
  if (a == b || declared(a) != declared(b))
    std::erase_if(pending_, [&](const auto& x) { return x.second.reg == b && b != a; }),
        b = fresh(declared(a)), pending_.push_back({to, {.reg = b, .uniform = uniform_only_ && meet_}});
  emit(Opcode::mov, type, {}, {vector({reg(a), reg(b)})}, {reg(s)});
  add_targets();
}
void Statements::change_kind() {
  static constexpr std::pair<Kind, Kind> ways[] = {{F, I32}, {I32, F}, {D, I64},  {I64, D},
                                                   {H, I16}, {I16, H}, {H2, I32}, {I32, H2}};
  static constexpr std::pair<Kind, Kind> brain[] = {{B, I16}, {I16, B}, {B2, I32}, {I32, B2}};
  auto [from, to] = m_.target >= 80 && chance(4) ? brain[pick(4)] : ways[pick(8)];
  const uint32_t s = bits_of(from, source(from));
  result(to, bits_type(type_bytes(kind_type[to])), {reg(s)});
}
void Statements::special() {
  using S = SpecialRegister;
  const S s = uniform_only_ ? any({S::ctaid_x, S::ntid_x, S::nctaid_x, S::ctaid_y, S::ntid_z, S::nctaid_y})
                            : any({S::tid_x, S::laneid, S::lanemask_eq, S::lanemask_le, S::lanemask_lt, S::lanemask_ge,
                                   S::lanemask_gt, S::tid_y, S::ctaid_x});
  result(I32, Type::u32, {{.kind = Operand::special, .id = static_cast<uint32_t>(s)}});
}

// ---- memory
// An address of `bytes` bytes in the region, aligned so.
Operand Statements::address(const Region& r, bool generic, uint32_t bytes) {
  const uint32_t offset = pick(r.bytes / bytes) * bytes;
  if (!generic && r.variable != UINT32_MAX && chance(2))
    return {.kind = Operand::address_var, .id = r.variable, .value = offset};
  const uint32_t base = generic ? r.generic : r.base;
  if (chance(2)) return {.kind = Operand::address_reg, .id = base, .value = offset};
  const int64_t away = chance(3) ? any<int64_t>({16, 4096, -64, 0x7ff00, 1 << 20}) : 0;
  const uint32_t masked = make(Opcode::and_, Type::b32, {}, {reg(source(I32)), imm((r.bytes - 1) & ~(bytes - 1))});
  uint32_t at = 0;
  if (!generic && r.base32 != UINT32_MAX && chance(2)) {
    at = make(Opcode::add, Type::u32, {}, {reg(r.base32), reg(masked)});
    if (away) at = make(Opcode::add, Type::s32, {}, {reg(at), imm(away)});
  } else {
    const uint32_t wide = make(Opcode::cvt, Type::u64, {}, {reg(masked)}, Type::u64, Type::u32);
    at = make(Opcode::add, Type::s64, {}, {reg(base), reg(wide)});
    if (away) at = make(Opcode::add, Type::s64, {}, {reg(at), imm(away)});
  }
  return {.kind = Operand::address_reg, .id = at, .value = -away};
}
const Statements::Region& Statements::region(bool written) {
  for (;;) {
    const Region& r = regions_[pick(regions_.size())];
    if (!written || r.writable) return r;
  }
}
// Modifiers of an access, for its space or for a generic address.
bool Statements::access(Opcode op, const Region& r, Modifiers& m, Type& type, bool& generic) {
  const std::span<const Form> all = forms(op);
  const Form& form = all[pick(all.size())];
  if (form.sm > m_.target) return false;
  const ModifierSet spaces = one(modifier::param) | one(modifier::local) | one(modifier::shared) |
                             one(modifier::global) | one(modifier::constant);
  const ModifierSet mine = one(modifier::param + static_cast<uint32_t>(r.space) - static_cast<uint32_t>(Space::param));
  generic = !(form.required & spaces) && r.space != Space::constant && chance(3);
  if (!generic && !(form.allowed & mine)) return false;
  if (!generic && (form.required & spaces) && !(form.required & mine)) return false;
  if ((form.required & one(modifier::nc)) && r.writable) return false;
  if (op == Opcode::ldu && r.writable) return false;
  Form narrowed = form;
  narrowed.allowed &= ~spaces;
  narrowed.required &= ~spaces;
  m = modifiers(op, narrowed);
  // Of stack and blocks only plain accesses are told apart by a generic address.
  m.space = generic ? Space::generic : r.space;
  type = type_of(form.types);
  if (m.vector * type_bytes(type) > 16) return false;
  if (m.vector == 2 && type_bytes(type) == 1 && chance(2)) return false;
  return true;
}
Kind Statements::memory_kind(Type type) {
  if (type == Type::f32 || type == Type::f64) return kind_of(type);
  if (type == Type::b32) return any({I32, I32, F, H2});
  if (type == Type::b64) return any({I64, I64, D});
  if (type == Type::b16) return any({I16, I32, H});
  if (type_bytes(type) == 1) return any({I16, I32});
  const Kind k = kind_of(type);
  return chance(4) && k < I64 ? static_cast<Kind>(k + 1) : k;
}
void Statements::load() {
  const Region& r = region(false);
  const Opcode op = chance(12) ? Opcode::ldu : Opcode::ld;
  Modifiers m;
  Type type{};
  bool generic = false;
  if (!access(op, r, m, type, generic)) return;
  const Operand at = address(r, generic, m.vector * type_bytes(type));
  const bool guarded = m.vector == 1 && chance(6);
  const uint32_t guard = source(P);
  const Kind kind = memory_kind(type);
  Operands elements;
  for (uint32_t k = 0; k < m.vector; ++k) {
    uint32_t d = k == 0 ? target(kind, guarded) : UINT32_MAX;
    if (d == UINT32_MAX && guarded) return;
    if (d == UINT32_MAX) d = fresh(declared(elements[0].id)), pending_.push_back({kind, {.reg = d}});
    elements.push_back(reg(d));
  }
  if (guarded) guard_ = static_cast<RegisterId>(guard), guard_negated_ = chance(2);
  emit(op, type, m, {m.vector > 1 ? vector(elements) : elements[0]}, {at});
  guard_ = rndn::none<RegisterId>(), guard_negated_ = false;
  add_targets();
}
void Statements::store() {
  const Region& r = region(true);
  Modifiers m;
  Type type{};
  bool generic = false;
  if (!access(Opcode::st, r, m, type, generic)) return;
  Operands elements;
  const Kind kind = memory_kind(type);
  for (uint32_t k = 0; k < m.vector; ++k) {
    elements.push_back(kind <= I64 && type_bytes(type) >= 4 && !is_floating(type) && chance(6)
                           ? constant(type)
                           : reg(bits_of(kind, source(kind))));
    if (is_floating(type)) {
      const uint32_t f = make(Opcode::mov, bits_type(type_bytes(type)), {}, {elements.back()}, type);
      elements.back() = reg(f);
    }
  }
  const Operand value = m.vector == 1 ? elements[0] : uniform_vector(elements);
  const Operand at = address(r, generic, m.vector * type_bytes(type));
  if (chance(6)) guard_ = static_cast<RegisterId>(source(P)), guard_negated_ = chance(2);
  emit(Opcode::st, type, m, {}, {at, value});
  guard_ = rndn::none<RegisterId>(), guard_negated_ = false;
}
// Atomics on words of the thread's own, whose old values count.
void Statements::atomic() {
  const std::span<const Form> all = forms(Opcode::atom);
  const Form& form = all[pick(all.size())];
  if (form.sm > m_.target || (form.required & one(modifier::mode0)) != 0) return;
  Form narrowed = form;
  const ModifierSet spaces = one(modifier::shared) | one(modifier::global);
  const ModifierSet order = one(modifier::relaxed) | one(modifier::acquire) | one(modifier::release) |
                            one(modifier::acq_rel) | one(modifier::cta) | one(modifier::gpu) | one(modifier::sys);
  narrowed.allowed &= ~spaces & ~order;
  Modifiers m = modifiers(Opcode::atom, narrowed);
  const Type type = type_of(form.types);
  if (is_floating(type) && type != Type::f32 && type != Type::f64) return;
  if (type_bytes(type) < 4) return;
  if (m_.target >= 70 && chance(4)) {
    m.semantics = any({Semantics::relaxed, Semantics::acquire, Semantics::release, Semantics::acq_rel});
    m.scope = any({Scope::cta, Scope::gpu, Scope::sys});
  }
  Operand at;
  if (is_floating(type)) {  // words of their own, so that no NaN's bits are seen
    m.space = Space::global;
    at = {.kind = Operand::address_reg, .id = float_words_, .value = type == Type::f32 ? 0 : 8};
  } else {
    const Region& r = regions_[chance(2) ? row_region_ : shared_region_];
    const bool generic = chance(4);
    m.space = generic ? Space::generic : r.space;
    at = address(r, generic, type_bytes(type));
    if (at.kind == Operand::address_var) return;
  }
  Operands sources = {at, value(type, true, false)};
  if (m.atomic == AtomicOp::cas) sources.push_back(value(type, true, false));
  emit(Opcode::atom, type, m, {reg(target(kind_of(type), false))}, sources);
  add_targets();
}
// Atomics on words that all threads share: one operation per word, results not used.
void Statements::count() {
  const uint32_t n = pick(counters_.size());
  const Counter& c = counters_[n];
  const bool block = has_block_counters_ && chance(2);
  Modifiers m;
  m.atomic = c.op;
  const bool generic = chance(5);
  m.space = generic ? Space::generic : block ? Space::shared : Space::global;
  const Operand at{.kind = Operand::address_reg,
                   .id = block ? (generic ? block_counters_generic_ : block_counters_)
                               : (generic ? counters_generic_ : counter_words_),
                   .value = 8 * n};
  const Operand v = c.bound ? imm(c.bound) : value(c.type, true, false);
  if (chance(5)) guard_ = static_cast<RegisterId>(source(P)), guard_negated_ = chance(2);
  if (chance(3))
    emit(Opcode::atom, c.type, m, {reg(fresh(c.type))}, {at, v});
  else
    emit(Opcode::red, c.type, m, {}, {at, v});
  guard_ = rndn::none<RegisterId>(), guard_negated_ = false;
}
void Statements::carry_chain() {
  const Type type = any({Type::u32, Type::s32, Type::u64, Type::s64});
  const Kind kind = kind_of(type);
  const bool mixed = chance(3), differences = chance(3);
  const uint32_t steps = 1 + pick(3);
  Modifiers m;
  m.carry_out = true;
  std::vector<Operands> of;
  for (uint32_t k = 0; k <= steps; ++k)
    of.push_back({value(type, k > 0, false), reg(source(kind)), value(type, true, false)});
  std::vector<bool> products, subtracts;
  for (uint32_t k = 0; k <= steps; ++k) {
    subtracts.push_back(mixed ? chance(2) : differences);
    products.push_back(!subtracts.back() && chance(3));
  }
  for (uint32_t k = 0; k <= steps; ++k) {
    Modifiers now = k < steps ? m : Modifiers{};
    Opcode op = k == 0 ? (subtracts[k] ? Opcode::sub : Opcode::add) : subtracts[k] ? Opcode::subc : Opcode::addc;
    Operands sources = of[k];
    if (products[k]) {
      op = k == 0 ? Opcode::mad : Opcode::madc;
      now.part = any({MulPart::lo, MulPart::hi});
    } else {
      sources.pop_back();
    }
    const uint32_t d = fresh(type);
    frame_ = true;
    emit(op, type, now, {reg(d)}, sources);
    frame_ = false;
    pending_.push_back({kind, {.reg = d}});
  }
  add_targets();
}
void Statements::order() {
  Modifiers m;
  const Region& r = regions_[row_region_];
  switch (pick(4)) {
    case 0: m.scope = any({Scope::cta, Scope::gpu, Scope::sys}); return emit(Opcode::membar, Type::none, m, {}, {});
    case 1:
      if (m_.target < 70) return;
      m.scope = any({Scope::cta, Scope::gpu, Scope::sys});
      m.semantics = any({Semantics::sc, Semantics::acq_rel});
      return emit(Opcode::fence, Type::none, m, {}, {});
    case 2:
      m.mode = static_cast<uint8_t>(1 + pick(2));
      m.space = Space::global;
      return emit(Opcode::prefetch, Type::none, m, {}, {address(r, false, 4)});
    default: {
      const Region& any_region = regions_[pick(regions_.size())];
      if (any_region.space == Space::constant) return;
      m.space = any({Space::global, Space::shared, Space::local});
      emit(Opcode::isspacep, Type::none, m, {reg(target(P, false))}, {reg(any_region.generic)});
      return add_targets();
    }
  }
}

}  // namespace rndn::testing::random_ptx
