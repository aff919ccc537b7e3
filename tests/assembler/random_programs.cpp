#include "tests/assembler/random_programs.h"

#include <fmt/format.h>

#include <bit>
#include <map>
#include <span>

#include "ptx/interpreter/interpreter.h"
#include "tests/support/ptx_rows.h"

namespace rndn::testing {
namespace {

using namespace ptx;
using Operands = std::vector<Operand>;

// Kinds of registers: those of one kind can stand for each other. x2: two halves in 32 bits.
enum Kind : uint8_t { P, I16, I32, I64, H, H2, B, B2, F, D, kinds };
constexpr Type kind_type[kinds] = {Type::pred,  Type::b16,  Type::b32,    Type::b64, Type::f16,
                                   Type::f16x2, Type::bf16, Type::bf16x2, Type::f32, Type::f64};

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
bool is_integer(Type t) { return is_bits(t) || is_signed(t) || is_unsigned(t); }
Type bits_type(uint32_t bytes) {
  return bytes == 1 ? Type::b8 : bytes == 2 ? Type::b16 : bytes == 4 ? Type::b32 : Type::b64;
}
Operand reg(uint32_t id) { return {.kind = Operand::reg, .id = id}; }
Operand imm(int64_t value) { return {.kind = Operand::immediate, .value = value}; }

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

bool is_simd_video(Opcode op) {
  const std::string_view name = opcode_name(op);
  return name[0] == 'v' && (name.back() == '2' || name.back() == '4');
}

constexpr ModifierSet one(uint32_t bit) { return ModifierSet{1} << bit; }
constexpr ModifierSet approximate = one(modifier::approx) | one(modifier::full);
constexpr ModifierSet roundings =
    one(modifier::rn) | one(modifier::rz) | one(modifier::rm) | one(modifier::rp) | approximate;

struct Choice {
  Opcode op;
  const Form* form;
};

// Forms of an opcode that a target has and that are defined to the last bit.
std::vector<std::vector<Choice>> operations(uint32_t sm) {
  std::vector<std::vector<Choice>> all;
  for (size_t o = 0; o < opcode_count; ++o) {
    const Opcode op = static_cast<Opcode>(o);
    if (has_own_statement(op)) continue;
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

class Generator {
 public:
  Generator(Module& module, uint64_t seed, std::string name)
      : m_(module), name_(std::move(name)), state_(seed * 0x9e3779b97f4a7c15u + 0x1234567u) {
    static thread_local std::map<uint32_t, std::vector<std::vector<Choice>>> tables;
    auto [it, fresh] = tables.try_emplace(m_.target);
    if (fresh) it->second = operations(m_.target);
    table_ = &it->second;
  }

  void kernel() {
    for (uint32_t n = chance(3) ? 1 + pick(2) : 0; n > 0; --n) function();
    begin(true, name_);
    f_.parameters = {{Type::u64, "in"}, {Type::u64, "out"}, {Type::u32, "a"}, {Type::u64, "b"},
                     {Type::u16, "c"},  {Type::f32, "d"},   {Type::f64, "e"}, {Type::b8, "f", 8, 16}};
    if (chance(4)) f_.required_threads = {program_threads, 1, 1};
    if (chance(6)) f_.max_registers = 24 + 8 * pick(6);
    const bool early = chance(5);
    left_ = 8 + pick(chance(6) ? 120 : 50);
    prologue();
    meet_ = !early;
    while (left_ > 0) {
      statement(0);
      if (early && chance(10)) early_exit();
    }
    epilogue();
    end();
  }

 private:
  struct Var {
    uint32_t reg;
    bool fixed = false;    // not to be written again: addresses, counters of loops
    bool uniform = false;  // the same in all lanes of a block
  };
  struct Region {
    Space space;
    uint32_t base, generic;        // registers with its address
    uint32_t base32 = UINT32_MAX;  // shared: the address in 32 bits
    uint32_t variable = UINT32_MAX;
    uint32_t bytes = 0;  // a power of two
    bool writable = false;
  };
  struct Loop {
    uint32_t again, out;
    bool meet;
  };
  struct Counter {
    AtomicOp op;
    Type type;
    int64_t bound;
  };
  struct Callee {
    uint32_t index;
    std::vector<Type> parameters;
    Type result;
  };
  using Pools = std::array<std::vector<Var>, kinds>;

  // ---- chance
  uint64_t next() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint32_t pick(size_t n) { return static_cast<uint32_t>(next() % n); }
  bool chance(uint32_t of) { return pick(of) == 0; }
  template <class T>
  T any(std::initializer_list<T> list) {
    return list.begin()[pick(list.size())];
  }
  uint32_t bit_of(uint64_t set) {
    uint32_t n = pick(static_cast<size_t>(std::popcount(set)));
    while (n-- > 0) set &= set - 1;
    return static_cast<uint32_t>(std::countr_zero(set));
  }
  Type type_of(TypeSet set) { return static_cast<Type>(bit_of(set)); }

  // ---- functions, registers, instructions
  void begin(bool entry, const std::string& name) {
    index_ = static_cast<uint32_t>(m_.functions.size());
    m_.functions.emplace_back();
    f_ = {};
    f_.name = name;
    f_.is_entry = entry;
    f_.visible = entry;
    pool_ = {};
    regions_.clear();
    loops_.clear();
    meet_ = false;
    weight_ = 1;
    numbers_ = {};
  }
  void end() {
    for (const auto& [label, at] : placed_) f_.labels[static_cast<LabelId>(label)].at = at;
    placed_.clear();
    m_.functions[index_] = std::move(f_);
  }
  uint32_t fresh(Type type) {
    const Type declared = type == Type::bf16 ? Type::b16 : type == Type::bf16x2 ? Type::b32 : type;
    const uint32_t n = numbers_[static_cast<size_t>(declared)]++;
    return static_cast<uint32_t>(index(f_.add_register(declared, fmt::format("%{}_{}", type_name(declared), n))));
  }
  Type declared_type(Kind k) {
    Type t = kind_type[k];
    if (k == I16) t = any({Type::b16, Type::b16, Type::u16, Type::s16});
    if (k == I32) t = any({Type::b32, Type::b32, Type::u32, Type::s32});
    if (k == I64) t = any({Type::b64, Type::b64, Type::u64, Type::s64});
    if (k == H && chance(2)) t = Type::b16;
    if ((k == H2 || k == F) && chance(6)) t = Type::b32;
    return t;
  }
  uint32_t add_variable(Space space, Type type, uint64_t count, uint32_t align, bool own) {
    Variable v{space, type, fmt::format("{}_v{}", name_, m_.variables.size()), align, count};
    v.function = own ? index_ : UINT32_MAX;
    return static_cast<uint32_t>(index(m_.variables.add(std::move(v))));
  }
  void emit(Opcode op, Type type, const Modifiers& mods, const Operands& destinations, const Operands& sources,
            Type type2 = Type::none) {
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
  uint32_t make(Opcode op, Type type, const Modifiers& mods, const Operands& sources, Type result = Type::none,
                Type type2 = Type::none) {
    const uint32_t r = fresh(result == Type::none ? type : result);
    const bool kept = frame_;
    frame_ = true;
    emit(op, type, mods, {reg(r)}, sources, type2);
    frame_ = kept;
    return r;
  }
  uint32_t compare(Compare c, Type type, const Operand& a, const Operand& b) {
    return make(Opcode::setp, type, {.compare = c}, {a, b}, Type::pred);
  }
  Operand vector(const Operands& elements) {
    Operand v{.kind = Operand::vector,
              .count = static_cast<uint8_t>(elements.size()),
              .id = static_cast<uint32_t>(f_.vector_elements.size())};
    f_.vector_elements.append({elements.begin(), elements.size()});
    return v;
  }
  uint32_t label() {
    return static_cast<uint32_t>(index(f_.labels.add({fmt::format("L{}", f_.labels.size()), UINT32_MAX})));
  }
  void place(uint32_t label) { placed_[label] = static_cast<uint32_t>(f_.instructions.size()); }
  void branch(uint32_t to, uint32_t guard = UINT32_MAX, bool negated = false) {
    const auto kept = std::pair(guard_, guard_negated_);
    guard_ = guard == UINT32_MAX ? rndn::none<RegisterId>() : static_cast<RegisterId>(guard), guard_negated_ = negated;
    emit(Opcode::bra, Type::none, {}, {}, {{.kind = Operand::label, .id = to}});
    std::tie(guard_, guard_negated_) = kept;
  }

  Type declared(uint32_t r) const { return f_.registers[static_cast<RegisterId>(r)].type; }
  // Elements of a vector have one type.
  Operand uniform_vector(Operands elements) {
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
  uint32_t source(Kind k) {
    std::vector<Var>& pool = pool_[k];
    for (uint32_t tries = 0;; ++tries) {
      const Var& v = pool[chance(3) ? pick(pool.size()) : pool.size() - 1 - pick(std::min<size_t>(pool.size(), 5))];
      if (!uniform_only_ || v.uniform) return v.reg;
      if (tries < 50) continue;
      for (const Var& u : pool)
        if (u.uniform) return u.reg;
      return uniform_value(k);
    }
  }
  // A new value that all lanes share, when there is none of the kind.
  uint32_t uniform_value(Kind k) {
    const uint32_t r = fresh(kind_type[k]);
    if (k == P)
      emit(Opcode::setp, Type::u32, {.compare = Compare::lt}, {reg(r)}, {reg(a_), imm(static_cast<int64_t>(pick(9)))});
    else if (k == H || k == B)
      emit(Opcode::mov, Type::b16, {}, {reg(r)}, {imm(pick(0x7c00))});
    else if (k == H2 || k == B2)
      emit(Opcode::mov, Type::b32, {}, {reg(r)}, {imm(int64_t{pick(0x7c00)} << 16 | pick(0x7c00))});
    else
      emit(Opcode::mov, kind_type[k], {}, {reg(r)}, {constant(kind_type[k])});
    return r;
  }
  Operand constant(Type type) {
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
  Operand value(Type type, bool constants, bool wider) {
    Kind k = kind_of(type);
    if (is_integer(type) && wider)
      k = type_bytes(type) == 1 ? any({I16, I32}) : chance(4) ? static_cast<Kind>(std::min<int>(k + 1, I64)) : k;
    const bool can = k != P && k != H && k != H2 && k != B && k != B2;
    if (constants && can && chance(5)) return constant(type);
    return reg(source(k));
  }
  // Where a result of the kind goes: a variable that lives on, or a new one that add() makes known.
  uint32_t target(Kind k, bool must_live) {
    std::vector<uint32_t> candidates;
    for (const Var& v : pool_[k])
      if (!v.fixed && (v.uniform ? uniform_only_ && meet_ : !uniform_only_)) candidates.push_back(v.reg);
    if (!candidates.empty() && (must_live || chance(2))) return candidates[pick(candidates.size())];
    if (must_live) return UINT32_MAX;
    const uint32_t r = fresh(declared_type(k));
    pending_.push_back({k, {.reg = r, .uniform = uniform_only_ && meet_}});
    return r;
  }
  void add_targets() {
    for (auto& [kind, var] : pending_) pool_[kind].push_back(var);
    pending_.clear();
  }
  void know(Kind k, uint32_t r, bool fixed = false, bool uniform = false) { pool_[k].push_back({r, fixed, uniform}); }

  // The bits of a value as an integer register, NaNs made one.
  uint32_t bits_of(Kind k, uint32_t r) {
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
  void operation() {
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
                               !is_simd_video(i.op);  // ptxas takes no constants there
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
  Modifiers modifiers(Opcode op, const Form& form) {
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
  void define(const Instruction& i, Operands& sources) {
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
  }

  // ---- moves between kinds
  void pack() {
    switch (pick(6)) {
      case 0: return result(I32, Type::b32, {uniform_vector({reg(source(I16)), reg(source(I16))})});
      case 1: return result(I64, Type::b64, {uniform_vector({reg(source(I32)), reg(source(I32))})});
      case 2: return result(H2, Type::b32, {uniform_vector({reg(source(H)), reg(source(H))})});
      case 3: return halves(I32, I16, Type::b32);
      case 4: return halves(I64, I32, Type::b64);
      default: return halves(H2, H, Type::b32);
    }
  }
  void result(Kind k, Type type, const Operands& sources) {
    emit(Opcode::mov, type, {}, {reg(target(k, false))}, sources);
    add_targets();
  }
  void halves(Kind from, Kind to, Type type) {
    const uint32_t s = source(from), a = target(to, false);
    uint32_t b = target(to, false);
    if (a == b || declared(a) != declared(b))
      std::erase_if(pending_, [&](const auto& x) { return x.second.reg == b && b != a; }),
          b = fresh(declared(a)), pending_.push_back({to, {.reg = b, .uniform = uniform_only_ && meet_}});
    emit(Opcode::mov, type, {}, {vector({reg(a), reg(b)})}, {reg(s)});
    add_targets();
  }
  void change_kind() {
    static constexpr std::pair<Kind, Kind> ways[] = {{F, I32}, {I32, F}, {D, I64},  {I64, D},
                                                     {H, I16}, {I16, H}, {H2, I32}, {I32, H2}};
    static constexpr std::pair<Kind, Kind> brain[] = {{B, I16}, {I16, B}, {B2, I32}, {I32, B2}};
    auto [from, to] = m_.target >= 80 && chance(4) ? brain[pick(4)] : ways[pick(8)];
    const uint32_t s = bits_of(from, source(from));
    result(to, bits_type(type_bytes(kind_type[to])), {reg(s)});
  }
  void special() {
    using S = SpecialRegister;
    const S s = uniform_only_ ? any({S::ctaid_x, S::ntid_x, S::nctaid_x, S::ctaid_y, S::ntid_z, S::nctaid_y})
                              : any({S::tid_x, S::laneid, S::lanemask_eq, S::lanemask_le, S::lanemask_lt,
                                     S::lanemask_ge, S::lanemask_gt, S::tid_y, S::ctaid_x});
    result(I32, Type::u32, {{.kind = Operand::special, .id = static_cast<uint32_t>(s)}});
  }

  // ---- memory
  // An address of `bytes` bytes in the region, aligned so.
  Operand address(const Region& r, bool generic, uint32_t bytes) {
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
  const Region& region(bool written) {
    for (;;) {
      const Region& r = regions_[pick(regions_.size())];
      if (!written || r.writable) return r;
    }
  }
  // Modifiers of an access, for its space or for a generic address.
  bool access(Opcode op, const Region& r, Modifiers& m, Type& type, bool& generic) {
    const std::span<const Form> all = forms(op);
    const Form& form = all[pick(all.size())];
    if (form.sm > m_.target) return false;
    const ModifierSet spaces = one(modifier::param) | one(modifier::local) | one(modifier::shared) |
                               one(modifier::global) | one(modifier::constant);
    const ModifierSet mine =
        one(modifier::param + static_cast<uint32_t>(r.space) - static_cast<uint32_t>(Space::param));
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
  Kind memory_kind(Type type) {
    if (type == Type::f32 || type == Type::f64) return kind_of(type);
    if (type == Type::b32) return any({I32, I32, F, H2});
    if (type == Type::b64) return any({I64, I64, D});
    if (type == Type::b16) return any({I16, I32, H});
    if (type_bytes(type) == 1) return any({I16, I32});
    const Kind k = kind_of(type);
    return chance(4) && k < I64 ? static_cast<Kind>(k + 1) : k;
  }
  void load() {
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
  void store() {
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
  void atomic() {
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
  void count() {
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
  void carry_chain() {
    const Type type = any({Type::u32, Type::s32, Type::u64, Type::s64});
    const Kind kind = kind_of(type);
    const bool subtract = chance(3);
    const uint32_t steps = 1 + pick(3);
    Modifiers m;
    m.carry_out = true;
    std::vector<Operands> of;
    for (uint32_t k = 0; k <= steps; ++k)
      of.push_back({value(type, k > 0, false), reg(source(kind)), value(type, true, false)});
    std::vector<bool> products;
    for (uint32_t k = 0; k <= steps; ++k) products.push_back(!subtract && chance(3));
    for (uint32_t k = 0; k <= steps; ++k) {
      Modifiers now = k < steps ? m : Modifiers{};
      Opcode op = k == 0 ? (subtract ? Opcode::sub : Opcode::add) : subtract ? Opcode::subc : Opcode::addc;
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
  void order() {
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

  // ---- whole warps and blocks, where all lanes come
  void warp() {
    const Operand all = imm(0xffffffff);
    Modifiers m;
    m.sync = true;
    switch (pick(m_.target >= 80 ? 5 : m_.target >= 70 ? 4 : 3)) {
      case 0: {
        m.shuffle = any({ShuffleMode::up, ShuffleMode::down, ShuffleMode::bfly, ShuffleMode::idx});
        const Kind kind = any({I32, F});
        const Operand lane =
            chance(2) ? imm(pick(32)) : reg(make(Opcode::and_, Type::b32, {}, {reg(source(I32)), imm(31)}));
        const int64_t clamp = m.shuffle == ShuffleMode::up ? any<int64_t>({0, 0x1c00, 0x1800, 0x1000, 0x1e00})
                                                           : any<int64_t>({31, 31, 0x1c1f, 0x181f, 0x101f, 0x1e1f});
        Operands d = {reg(target(kind, false))};
        if (chance(2)) d.push_back(reg(target(P, false)));
        emit(Opcode::shfl, Type::b32, m, d, {reg(source(kind)), lane, imm(clamp), all});
        break;
      }
      case 1: {
        m.vote = any({VoteMode::all, VoteMode::any, VoteMode::uni, VoteMode::ballot});
        Operand p = reg(source(P));
        p.negated = chance(2);
        const bool ballot = m.vote == VoteMode::ballot;
        emit(Opcode::vote, ballot ? Type::b32 : Type::pred, m, {reg(target(ballot ? I32 : P, false))}, {p, all});
        break;
      }
      case 2: {
        m.mode = 32;  // bar.warp.sync
        emit(Opcode::bar, Type::none, m, {}, {all});
        break;
      }
      case 3: {
        const Kind kind = any({I32, I64});
        m.mode = chance(2) ? 1 : 32;
        const uint32_t few = kind == I32 ? make(Opcode::and_, Type::b32, {}, {reg(source(I32)), imm(3)}) : source(I64);
        Operands d = {reg(target(I32, false))};
        if (m.mode == 32 && chance(2)) d.push_back(reg(target(P, false)));
        emit(Opcode::match, kind == I32 ? Type::b32 : Type::b64, m, d, {reg(few), all});
        break;
      }
      default: {
        m.atomic = any({AtomicOp::add, AtomicOp::min, AtomicOp::max, AtomicOp::and_, AtomicOp::or_, AtomicOp::xor_});
        const bool logic = m.atomic >= AtomicOp::and_;
        emit(Opcode::redux, logic ? Type::b32 : any({Type::u32, Type::s32}), m, {reg(target(I32, false))},
             {reg(source(I32)), all});
      }
    }
    add_targets();
  }
  void barrier() {
    const bool kept = frame_;
    frame_ = true;
    Modifiers m;
    m.sync = true;
    emit(Opcode::bar, Type::none, m, {}, chance(3) ? Operands{imm(pick(3)), imm(program_threads)} : Operands{imm(0)});
    frame_ = kept;
  }
  // Each thread leaves a word for another.
  void exchange() {
    if (chance(3)) {
      Modifiers m;
      Operand p = reg(source(P));
      p.negated = chance(2);
      const uint8_t mode = any<uint8_t>({64, 96, 97});
      m.mode = mode;
      emit(Opcode::bar, mode == 64 ? Type::u32 : Type::pred, m, {reg(target(mode == 64 ? I32 : P, false))},
           {imm(0), p});
      return add_targets();
    }
    const Kind kind = any({I32, I64});
    const Type type = kind_type[kind];
    const uint32_t mine = make(Opcode::mad, Type::u32, {.part = MulPart::lo}, {reg(tid_), imm(8), reg(exchange32_)});
    const uint32_t moved = make(Opcode::add, Type::u32, {}, {reg(tid_), imm(1 + pick(63))});
    const uint32_t other_thread = make(Opcode::and_, Type::b32, {}, {reg(moved), imm(program_threads - 1)});
    const uint32_t other =
        make(Opcode::mad, Type::u32, {.part = MulPart::lo}, {reg(other_thread), imm(8), reg(exchange32_)});
    const Modifiers shared{.space = Space::shared};
    emit(Opcode::st, type, shared, {}, {{.kind = Operand::address_reg, .id = mine}, reg(source(kind))});
    barrier();
    emit(Opcode::ld, type, shared, {reg(target(kind, false))}, {{.kind = Operand::address_reg, .id = other}});
    add_targets();
    barrier();
  }
  void copy_asynchronously() {
    if (m_.target < 80) return;
    const uint32_t bytes = any({4u, 8u, 16u});
    Modifiers m;
    m.mode = 1;
    const Region &to = regions_[shared_region_], &from = regions_[0];
    emit(Opcode::cp, Type::none, m, {},
         {{.kind = Operand::address_reg, .id = to.base, .value = pick(to.bytes / bytes) * bytes},
          {.kind = Operand::address_reg, .id = from.base, .value = pick(from.bytes / bytes) * bytes},
          imm(bytes)});
    m.mode = 33;
    emit(Opcode::cp, Type::none, m, {}, {});
  }

  // ---- control
  struct Scope_ {
    explicit Scope_(Generator& g) : g_(g), meet_(g.meet_), weight_(g.weight_) {
      for (size_t k = 0; k < kinds; ++k) sizes_[k] = g.pool_[k].size();
    }
    ~Scope_() {
      for (size_t k = 0; k < kinds; ++k) g_.pool_[k].resize(sizes_[k]);
      g_.meet_ = meet_, g_.weight_ = weight_;
    }
    Generator& g_;
    bool meet_;
    uint32_t weight_;
    std::array<size_t, kinds> sizes_{};
  };
  void block(uint32_t depth) {
    Scope_ scope(*this);
    for (uint32_t n = 1 + pick(5); n > 0; --n) statement(depth);
  }
  // A predicate; `together`: the same in all lanes.
  uint32_t condition(bool together) {
    const bool kept = uniform_only_;
    uniform_only_ = together;
    uint32_t p = 0;
    if (chance(3)) {
      p = source(P);
    } else {
      const uint32_t x = source(I32);
      const uint32_t low = make(Opcode::shr, Type::u32, {}, {reg(x), imm(pick(12))});
      const uint32_t few = make(Opcode::and_, Type::b32, {}, {reg(low), imm(any({1, 3, 3, 7}))});
      p = compare(any({Compare::eq, Compare::ne, Compare::lt, Compare::ge}), Type::s32, reg(few), imm(pick(3)));
    }
    uniform_only_ = kept;
    return p;
  }
  void control(uint32_t depth) {
    const bool together = meet_ && chance(3);
    switch (pick(8)) {
      case 0:
      case 1: {  // if
        const uint32_t out = label();
        branch(out, condition(together), chance(2));
        {
          Scope_ scope(*this);
          meet_ = meet_ && together;
          block(depth + 1);
        }
        return place(out);
      }
      case 2:
      case 3: {  // if, else
        const uint32_t other = label(), out = label();
        branch(other, condition(together), chance(2));
        {
          Scope_ scope(*this);
          meet_ = meet_ && together;
          block(depth + 1);
          branch(out);
          place(other);
          block(depth + 1);
        }
        return place(out);
      }
      case 4:
      case 5: {  // loop
        if (weight_ > 30) return operation();
        const uint32_t counter = fresh(Type::u32), most = 1 + pick(4);
        Operand limit = imm(most);
        if (!together && chance(2)) limit = reg(make(Opcode::and_, Type::b32, {}, {reg(source(I32)), imm(3)}));
        emit(Opcode::mov, Type::u32, {}, {reg(counter)}, {imm(0)});
        const uint32_t head = label(), again = label(), out = label();
        const bool test_first = limit.kind == Operand::reg || chance(3);
        place(head);
        if (test_first) branch(out, compare(Compare::ge, Type::u32, reg(counter), limit));
        {
          Scope_ scope(*this);
          // Without a limit of the lane's own the lanes stay together unless one breaks out.
          meet_ = meet_ && together;
          weight_ *= 3;
          know(I32, counter, true, meet_);
          loops_.push_back({again, out, meet_});
          block(depth + 1);
          loops_.pop_back();
          place(again);
        }
        emit(Opcode::add, Type::u32, {}, {reg(counter)}, {reg(counter), imm(1)});
        if (test_first)
          branch(head);
        else
          branch(head, compare(Compare::lt, Type::u32, reg(counter), imm(most)));
        return place(out);
      }
      case 6: {  // leave a loop or go on with its next round
        if (loops_.empty()) return operation();
        const Loop& loop = loops_[chance(3) ? pick(loops_.size()) : loops_.size() - 1];
        if (loop.meet) return operation();
        return branch(chance(2) ? loop.out : loop.again, condition(false), chance(2));
      }
      default: {  // switch
        const bool kept = uniform_only_;
        uniform_only_ = together;
        const uint32_t x = make(Opcode::and_, Type::b32, {}, {reg(source(I32)), imm(3)});
        uniform_only_ = kept;
        const uint32_t cases = 2 + pick(3), out = label();
        std::vector<uint32_t> at;
        for (uint32_t c = 0; c < cases; ++c) {
          at.push_back(label());
          branch(at.back(), compare(Compare::eq, Type::u32, reg(x), imm(c)));
        }
        branch(out);
        Scope_ scope(*this);
        meet_ = meet_ && together;
        for (uint32_t c = 0; c < cases; ++c) {
          place(at[c]);
          block(depth + 2);
          if (!chance(4)) branch(out);
        }
        place(out);
      }
    }
  }
  void early_exit() {
    const uint32_t on = label();
    branch(on, condition(false), chance(2));
    const uint32_t v = bits_of(F, source(F));
    emit(Opcode::st, Type::b32, {.space = Space::global}, {},
         {{.kind = Operand::address_reg, .id = row_, .value = 0}, reg(v)});
    finish_words();
    emit(chance(2) ? Opcode::ret : Opcode::exit, Type::none, {}, {}, {});
    place(on);
  }
  void call() {
    if (callees_.empty()) return operation();
    const Callee& c = callees_[pick(callees_.size())];
    Operands results, arguments;
    const Modifiers m{.space = Space::param};
    for (Type t : c.parameters) {
      const uint32_t v = add_variable(Space::param, t, 0, 0, true);
      emit(Opcode::st, t, m, {}, {{.kind = Operand::address_var, .id = v}, reg(source(kind_of(t)))});
      arguments.push_back({.kind = Operand::variable, .id = v});
    }
    const uint32_t r = add_variable(Space::param, c.result, 0, 0, true);
    results.push_back({.kind = Operand::variable, .id = r});
    Operands sources = {{.kind = Operand::function, .id = c.index}};
    sources.insert(sources.end(), arguments.begin(), arguments.end());
    emit(Opcode::call, Type::none, {.uni = chance(2)}, results, sources);
    emit(Opcode::ld, c.result, m, {reg(target(kind_of(c.result), false))}, {{.kind = Operand::address_var, .id = r}});
    add_targets();
  }
  void statement(uint32_t depth) {
    if (left_ > 0) --left_;
    if (left_ == 0 && depth > 0) return operation();
    const uint32_t way = pick(100);
    if (meet_ && chance(9)) {
      uniform_only_ = true;
      if (chance(6))
        special();
      else
        operation();
      uniform_only_ = false;
      return;
    }
    const bool kernel = f_.is_entry;
    if (way < 46) return operation();
    if (way < 50) return pack();
    if (way < 55) return change_kind();
    if (way < 57) return special();
    if (way < 63) return kernel ? load() : operation();
    if (way < 69) return kernel ? store() : operation();
    if (way < 72) return kernel ? atomic() : operation();
    if (way < 75) return kernel ? count() : operation();
    if (way < 78) return carry_chain();
    if (way < 80) return call();
    if (way < 82) return kernel ? order() : operation();
    if (way < 86) return meet_ ? warp() : operation();
    if (way < 88) return meet_ ? exchange() : operation();
    if (way < 89) return kernel ? copy_asynchronously() : operation();
    return depth < 4 ? control(depth) : operation();
  }

  // ---- frames
  uint32_t parameter(uint32_t n, Type type, int64_t offset = 0) {
    return make(Opcode::ld, type, {.space = Space::param}, {{.kind = Operand::parameter, .id = n, .value = offset}});
  }
  // Values of every kind, from a few integers.
  void fill_pools(bool many) {
    for (uint32_t n = 2 + pick(many ? 12 : 3); n > 0; --n)
      know(I16, make(Opcode::cvt, Type::u16, {}, {reg(source(I32))}, Type::u16, Type::u32));
    for (uint32_t n = 2 + pick(many ? 16 : 3); n > 0; --n)
      know(F, chance(2)
                  ? make(Opcode::cvt, Type::f32, {.rounding = Rounding::rn}, {reg(source(I32))}, Type::f32, Type::s32)
                  : make(Opcode::mov, Type::b32, {}, {reg(source(I32))}, Type::f32));
    for (uint32_t n = 1 + pick(many ? 12 : 3); n > 0; --n)
      know(D, chance(2)
                  ? make(Opcode::cvt, Type::f64, {.rounding = Rounding::rn}, {reg(source(I32))}, Type::f64, Type::s32)
                  : make(Opcode::mov, Type::b64, {}, {reg(source(I64))}, Type::f64));
    for (uint32_t n = 1 + pick(3); n > 0; --n)
      know(H, chance(2)
                  ? make(Opcode::cvt, Type::f16, {.rounding = Rounding::rn}, {reg(source(F))}, Type::f16, Type::f32)
                  : make(Opcode::mov, Type::b16, {}, {reg(source(I16))}, Type::f16));
    for (uint32_t n = 1 + pick(2); n > 0; --n)
      know(H2, make(Opcode::mov, Type::b32, {}, {reg(source(I32))}, Type::f16x2));
    know(B, make(Opcode::mov, Type::b16, {}, {reg(source(I16))}, Type::bf16));
    know(B2, make(Opcode::mov, Type::b32, {}, {reg(source(I32))}, Type::bf16x2));
    for (uint32_t n = 2 + pick(many ? 12 : 3); n > 0; --n)
      know(P, compare(any({Compare::lt, Compare::gt, Compare::ne}), Type::s32, reg(source(I32)), constant(Type::s32)));
  }
  void prologue() {
    frame_ = true;
    const bool many = chance(5);
    const uint32_t in = parameter(0, Type::u64), out = parameter(1, Type::u64);
    a_ = parameter(2, Type::u32);
    know(I32, a_, true, true);
    know(I64, parameter(3, Type::u64), true, true);
    know(I16, parameter(4, Type::u16), true, true);
    know(F, parameter(5, Type::f32), true, true);
    know(D, parameter(6, Type::f64), true, true);
    know(I32, parameter(7, Type::u32, 4 * pick(4)), true, true);
    const uint32_t in_global = make(Opcode::cvta, Type::u64, {.space = Space::global, .to = true}, {reg(in)});
    const uint32_t out_global = make(Opcode::cvta, Type::u64, {.space = Space::global, .to = true}, {reg(out)});
    tid_ = make(Opcode::mov, Type::u32, {},
                {{.kind = Operand::special, .id = static_cast<uint32_t>(SpecialRegister::tid_x)}});
    const uint32_t block = make(Opcode::mov, Type::u32, {},
                                {{.kind = Operand::special, .id = static_cast<uint32_t>(SpecialRegister::ctaid_x)}});
    know(I32, block, true, true);
    know(I32, tid_, true);
    const uint32_t thread =
        make(Opcode::mad, Type::u32, {.part = MulPart::lo}, {reg(block), imm(program_threads), reg(tid_)});
    row_ = make(Opcode::mad, Type::u32, {.part = MulPart::wide}, {reg(thread), imm(program_row_bytes), reg(out_global)},
                Type::u64);
    auto generic = [&](Space s, uint32_t r) { return make(Opcode::cvta, Type::u64, {.space = s}, {reg(r)}); };
    auto moved = [&](uint32_t r, int64_t by) { return make(Opcode::add, Type::s64, {}, {reg(r), imm(by)}); };
    counter_words_ = moved(out_global, int64_t{program_blocks} * program_threads * program_row_bytes);
    counters_generic_ = generic(Space::global, counter_words_);
    for (uint32_t n = 0; n < program_counters; ++n) {
      Counter c{any({AtomicOp::add, AtomicOp::add, AtomicOp::min, AtomicOp::max, AtomicOp::and_, AtomicOp::or_,
                     AtomicOp::xor_, AtomicOp::inc, AtomicOp::dec}),
                Type::u32, 0};
      if (c.op == AtomicOp::add) c.type = any({Type::u32, Type::s32, Type::u64});
      if (c.op == AtomicOp::min || c.op == AtomicOp::max) c.type = any({Type::u32, Type::s32, Type::u64, Type::s64});
      if (c.op >= AtomicOp::and_) c.type = any({Type::b32, Type::b64});
      if (c.op == AtomicOp::inc || c.op == AtomicOp::dec) c.type = Type::u32, c.bound = 1 + pick(40);
      counters_.push_back(c);
    }
    // Values of the thread's own, from the input.
    const uint32_t mine = make(Opcode::and_, Type::b32, {}, {reg(thread), imm(127)});
    const uint32_t in_row =
        make(Opcode::mad, Type::u32, {.part = MulPart::wide}, {reg(mine), imm(32), reg(in_global)}, Type::u64);
    for (uint32_t n = 0; n < 2; ++n)
      know(I32, make(Opcode::ld, Type::u32, {.space = Space::global},
                     {{.kind = Operand::address_reg, .id = in_row, .value = 4 * pick(8)}}));
    for (uint32_t n = 1 + pick(many ? 20 : 3); n > 0; --n)
      know(I64, make(Opcode::ld, Type::b64, {.space = Space::global},
                     {{.kind = Operand::address_reg, .id = in_row, .value = 8 * pick(4)}}));
    for (uint32_t n = 2 + pick(many ? 24 : 4); n > 0; --n)
      know(I32, make(any({Opcode::add, Opcode::sub}), Type::u32, {}, {reg(source(I32)), reg(source(I32))}));
    know(I16, make(Opcode::ld, Type::u16, {.space = Space::global},
                   {{.kind = Operand::address_reg, .id = in_row, .value = 2 * pick(16)}}));
    know(P, compare(Compare::gt, Type::u32, reg(a_), imm(pick(9))), true, true);
    fill_pools(many);
    // Regions: input, own row, own stack, own part of shared memory, constants, a variable.
    regions_.push_back(
        {Space::global, in_global, generic(Space::global, in_global), UINT32_MAX, UINT32_MAX, program_in_bytes, false});
    const uint32_t scratch = moved(row_, 640);
    row_region_ = static_cast<uint32_t>(regions_.size());
    regions_.push_back({Space::global, scratch, generic(Space::global, scratch), UINT32_MAX, UINT32_MAX, 128, true});
    float_words_ = moved(row_, 832);
    const uint32_t stack = add_variable(Space::local, Type::b8, 64, 16, true);
    const uint32_t stack_at = make(Opcode::mov, Type::u64, {}, {{.kind = Operand::variable, .id = stack}});
    for (uint32_t at = 0; at < 64; at += 8)
      emit(Opcode::st, Type::b64, {.space = Space::local}, {},
           {{.kind = Operand::address_var, .id = stack, .value = at}, reg(source(I64))});
    regions_.push_back({Space::local, stack_at, generic(Space::local, stack_at), UINT32_MAX, stack, 64, true});
    const uint32_t shared = add_variable(Space::shared, Type::b8, 64 * program_threads, 16, true);
    const uint32_t shared_at = make(Opcode::mov, Type::u32, {}, {{.kind = Operand::variable, .id = shared}});
    const uint32_t own32 = make(Opcode::mad, Type::u32, {.part = MulPart::lo}, {reg(tid_), imm(64), reg(shared_at)});
    const uint32_t own64 = make(Opcode::cvt, Type::u64, {}, {reg(own32)}, Type::u64, Type::u32);
    for (uint32_t at = 0; at < 64; at += 8)
      emit(Opcode::st, Type::b64, {.space = Space::shared}, {},
           {{.kind = Operand::address_reg, .id = own32, .value = at}, reg(source(I64))});
    shared_region_ = static_cast<uint32_t>(regions_.size());
    regions_.push_back({Space::shared, own64, generic(Space::shared, own64), own32, UINT32_MAX, 64, true});
    for (Space s : {Space::constant, Space::global}) {
      const uint32_t table = add_variable(s, Type::b8, 128, 16, false);
      Variable& v = m_.variables[static_cast<VariableId>(table)];
      for (uint32_t k = 0; k < 128; ++k) v.initial.push_back(static_cast<std::byte>(next()));
      const uint32_t at = make(Opcode::mov, Type::u64, {}, {{.kind = Operand::variable, .id = table}});
      regions_.push_back({s, at, s == Space::global ? generic(s, at) : at, UINT32_MAX, table, 128, false});
    }
    exchange32_ =
        make(Opcode::mov, Type::u32, {},
             {{.kind = Operand::variable, .id = add_variable(Space::shared, Type::b64, program_threads, 8, true)}});
    has_block_counters_ = chance(3);
    if (has_block_counters_) {
      const uint32_t v = add_variable(Space::shared, Type::b64, program_counters, 8, true);
      block_counters_ = make(Opcode::mov, Type::u64, {}, {{.kind = Operand::variable, .id = v}});
      block_counters_generic_ = generic(Space::shared, block_counters_);
      const uint32_t first = compare(Compare::eq, Type::u32, reg(tid_), imm(0));
      guard_ = static_cast<RegisterId>(first);
      for (uint32_t n = 0; n < program_counters; ++n)
        emit(Opcode::st, Type::u64, {.space = Space::shared}, {},
             {{.kind = Operand::address_var, .id = v, .value = 8 * n}, imm(5)});
      guard_ = rndn::none<RegisterId>();
      barrier();
    }
    frame_ = false;
  }
  // Sums of floats leave no NaN's bits.
  void finish_words() {
    const Modifiers global{.space = Space::global};
    for (Type t : {Type::f32, Type::f64}) {
      const Operand at{.kind = Operand::address_reg, .id = float_words_, .value = t == Type::f32 ? 0 : 8};
      const uint32_t v = bits_of(kind_of(t), make(Opcode::ld, t, global, {at}));
      emit(Opcode::st, bits_type(type_bytes(t)), global, {}, {at, reg(v)});
    }
  }
  void epilogue() {
    if (has_block_counters_ && meet_) {
      barrier();
      for (uint32_t n = 0; n < 3; ++n)
        know(I64, make(Opcode::ld, Type::u64, {.space = Space::shared},
                       {{.kind = Operand::address_reg, .id = block_counters_, .value = 8 * pick(program_counters)}}));
    }
    finish_words();
    const Modifiers global{.space = Space::global};
    uint32_t at = 0;
    uint32_t sum = UINT32_MAX;
    for (size_t k = 0; k < kinds; ++k)
      for (const Var& v : pool_[k]) {
        if (chance(6)) continue;
        const Kind kind = static_cast<Kind>(k);
        uint32_t bits = bits_of(kind, v.reg);
        const uint32_t bytes = kind == P ? 4 : type_bytes(kind_type[k]);
        if (at + 8 <= 632 && chance(2)) {
          at = (at + bytes - 1) / bytes * bytes;
          emit(Opcode::st, bits_type(bytes), global, {},
               {{.kind = Operand::address_reg, .id = row_, .value = at}, reg(bits)});
          at += bytes;
          continue;
        }
        if (bytes == 8)
          bits = make(Opcode::cvt, Type::u32, {},
                      {reg(make(Opcode::mul, Type::u64, {.part = MulPart::hi}, {reg(bits), imm(0x9e3779b97f4a7c15)}))},
                      Type::u32, Type::u64);
        if (bytes == 2) bits = make(Opcode::cvt, Type::u32, {}, {reg(bits)}, Type::u32, Type::u16);
        sum = sum == UINT32_MAX
                  ? bits
                  : make(Opcode::mad, Type::u32, {.part = MulPart::lo}, {reg(sum), imm(checksum_factor), reg(bits)});
      }
    if (sum != UINT32_MAX)
      emit(Opcode::st, Type::b32, global, {}, {{.kind = Operand::address_reg, .id = row_, .value = 636}, reg(sum)});
    emit(Opcode::ret, Type::none, {}, {}, {});
  }
  void function() {
    begin(false, fmt::format("{}_f{}", name_, callees_.size()));
    Callee c{index_, {Type::b32}, any({Type::u32, Type::b64, Type::f32, Type::f64, Type::s32})};
    for (uint32_t n = pick(4); n > 0; --n)
      c.parameters.push_back(any({Type::b32, Type::s32, Type::b64, Type::f32, Type::f64, Type::u64}));
    for (uint32_t k = 0; k < c.parameters.size(); ++k) {
      f_.parameters.push_back({c.parameters[k], fmt::format("p{}", k)});
      know(kind_of(c.parameters[k]), parameter(k, c.parameters[k]));
    }
    f_.results.push_back({c.result, "result"});
    a_ = source(I32);
    know(I64, make(Opcode::mul, Type::u32, {.part = MulPart::wide}, {reg(source(I32)), imm(0x9e3779b1)}, Type::u64));
    fill_pools(false);
    left_ = 3 + pick(12);
    while (left_ > 0) statement(1);
    emit(Opcode::st, c.result, {.space = Space::param}, {},
         {{.kind = Operand::parameter, .id = static_cast<uint32_t>(c.parameters.size())},
          reg(source(kind_of(c.result)))});
    emit(Opcode::ret, Type::none, {}, {}, {});
    end();
    callees_.push_back(c);
  }

  Module& m_;
  const std::string name_;
  uint64_t state_;
  const std::vector<std::vector<Choice>>* table_ = nullptr;
  Function f_;
  uint32_t index_ = 0;
  Pools pool_;
  std::vector<std::pair<Kind, Var>> pending_;
  std::array<uint32_t, 32> numbers_{};
  std::map<uint32_t, uint32_t> placed_;
  std::vector<Region> regions_;
  std::vector<Loop> loops_;
  std::vector<Counter> counters_;
  std::vector<Callee> callees_;
  RegisterId guard_ = rndn::none<RegisterId>();
  bool guard_negated_ = false, frame_ = false, uniform_only_ = false, meet_ = false, has_block_counters_ = false;
  uint32_t left_ = 0, weight_ = 1;
  uint32_t a_ = 0, tid_ = 0, row_ = 0, counter_words_ = 0, counters_generic_ = 0, float_words_ = 0, exchange32_ = 0,
           block_counters_ = 0, block_counters_generic_ = 0, row_region_ = 0, shared_region_ = 0;
};

}  // namespace

Module program_module(uint32_t sm) {
  Module m;
  m.version = program_version;
  m.target = sm;
  return m;
}

void add_random_kernel(Module& module, uint64_t seed, const std::string& name) {
  Generator(module, seed, name).kernel();
}

std::array<uint64_t, 8> program_parameters(uint64_t in, uint64_t out) {
  return {
      in, out, 5, 0x123456789abcdef0, 0x40490fdb0000beef, 0x4005bf0a8b145769, 0xfedcba9876543210, 0x00ff00ff7f800001};
}

std::vector<uint64_t> program_input(uint64_t seed) {
  static constexpr uint64_t special[] = {0,
                                         1,
                                         31,
                                         0x7f,
                                         0x80,
                                         0xffff,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0xffffffffffffffff,
                                         0x3ff0000000000000,
                                         0xbff0000000000000,
                                         0x7ff0000000000000,
                                         0xfff0000000000000,
                                         0x7ff8000000000000,
                                         0x0010000000000000,
                                         0x3f800000bf800000,
                                         0x7f800000ff800000,
                                         0x7fc0000000000001,
                                         0x00800000007fffff,
                                         0x4f0000004effffff,
                                         0x3c00bc007c00fc00,
                                         0x7e00000103ff0400,
                                         0x3f80bf807f80ff80};
  std::vector<uint64_t> words(program_in_bytes / 8);
  uint64_t state = seed;
  auto next = [&] {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  for (uint64_t& w : words) {
    switch (next() % 5) {
      case 0: w = special[next() % std::size(special)]; break;
      case 1: w = next(); break;
      case 2: w = next() >> next() % 64; break;
      case 3:
        w = std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(next() % 2000001) - 1000000) / 64);
        break;
      default:
        w = uint64_t{std::bit_cast<uint32_t>(static_cast<float>(static_cast<int64_t>(next() % 2001) - 1000) / 16)}
                << 32 |
            std::bit_cast<uint32_t>(static_cast<float>(next() % 4096));
    }
  }
  return words;
}

Result<std::vector<uint64_t>> interpreted(const ptx::Module& module, const std::string& kernel,
                                          const std::vector<uint64_t>& in, uint64_t seed) {
  ptx::Memory memory;
  const uint64_t in_at = memory.allocate(program_in_bytes), out_at = memory.allocate(program_out_bytes);
  memory.write(in_at, std::as_bytes(std::span(in)));
  const auto parameters = program_parameters(in_at, out_at);
  ptx::Launch launch;
  launch.grid = {program_blocks, 1, 1};
  launch.block = {program_threads, 1, 1};
  launch.parameters = std::as_bytes(std::span(parameters));
  launch.seed = seed;
  launch.max_instructions = 20'000'000;
  auto stats = ptx::interpret(module, kernel, launch, memory);
  if (!stats) return stats.error();
  std::vector<uint64_t> out(program_out_bytes / 8);
  memory.read(out_at, std::as_writable_bytes(std::span(out)));
  return out;
}

}  // namespace rndn::testing
