// Joins loads and stores of neighbouring words of shared and local memory: four of 32 bits or two of 64 at an address that is a multiple of 16, or two of 32
// bits at a multiple of 8, become one of a vector. An access of a warp takes as many cycles as there are banks in conflict, and structures of four words that
// lanes read next to each other, word by word, have four in each. Likewise two words of constant memory, where the code has to load them: at places that are
// known they are operands.
//
// Loads take place where the first of them stood, stores where the last stood, within a piece of code without branches. Loads of a space wait for no store to
// it, nor for anything that threads or lanes do together; stores also wait for no load. Addresses are one register with one value, or one variable, and an offset.
// What a load writes is not named between the first load and its own place; what a store writes is not changed until the last, and is no part of another vector, which
// would take a copy.
//
// Addresses: how many of a register's lowest bits are zero, whatever it holds, is the least that any of its definitions says, from 16 bytes downwards until nothing
// changes (Aho, Lam, Sethi, Ullman: Compilers, 9.4: constant propagation, here with exponents of two). Variables lie where the kernel's layout has them anyway.
//
// Invariant: the result has the meaning of the input, and passes the PTX verifier.
// Cost: linear in the function (`most_pending` for each access), and at most `most_rounds` over its definitions where words lie next to each other.
// Left out: global memory, where nothing is known of what pointers point to; guarded accesses, generic addresses, bytes and halves.
#include "ptx/transform/vectorize_memory.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "ptx/layout.h"
#include "ptx/traits.h"

namespace rndn::ptx {
namespace {

using ptx::Opcode;
using ptx::Operand;
using ptx::RegisterId;
using ptx::Space;
using ptx::Type;

constexpr uint32_t widest = 16;       // bytes of an access
constexpr uint32_t reach = 96;        // instructions between the first and the last
constexpr size_t most_pending = 64;   // accesses that wait for their neighbours
constexpr uint32_t most_rounds = 16;  // over the definitions

// By how many zeros addresses end.
class Alignment {
 public:
  static constexpr uint8_t most = std::countr_zero(widest);
  Alignment(const ptx::Module& m, const ptx::Function& f)
      : m_(m),
        f_(f),
        shared_(lay_out_shared(m, f)),
        local_(lay_out_local(m, f)),
        constants_(lay_out_constants(m)),
        zeros_(f.registers.size(), most) {
    uint32_t rounds = 0;
    for (bool again = true; again;) {
      again = false;
      if (++rounds > most_rounds) {
        zeros_.assign(f.registers.size(), 0);
        break;
      }
      for (const ptx::Instruction& i : f.instructions) {
        for (uint32_t k = 0; k < i.destination_count; ++k) {
          const Operand& to = f.operand(i, k);
          if (to.kind == Operand::reg) again |= lower(to, i.destination_count == 1 ? of_result(i) : 0);
          if (to.kind == Operand::vector)
            for (uint32_t e = 0; e < to.count; ++e) again |= lower(f.vector_elements[to.id + e], 0);
        }
      }
    }
  }
  // Of the address without its offset.
  uint8_t of_base(const Operand& address) const {
    return address.kind == Operand::address_var ? of_variable(address.variable_id(), 0) : zeros_[address.id];
  }

 private:
  bool lower(const Operand& to, uint8_t zeros) {
    if (to.kind != Operand::reg || zeros_[to.id] <= zeros) return false;
    zeros_[to.id] = zeros;
    return true;
  }
  static uint8_t of_number(int64_t v) {
    return v ? static_cast<uint8_t>(std::min<int>(most, std::countr_zero(static_cast<uint64_t>(v)))) : most;
  }
  // Of so many bytes into a variable.
  uint8_t of_variable(ptx::VariableId id, int64_t at) const {
    const ptx::Variable& v = m_.variables[id];
    if (v.space == Space::shared) return of_number(shared_.offsets[index(id)] + at);
    if (v.space == Space::constant) return of_number(constants_.offsets[index(id)] + at);
    if (v.space == Space::local && !v.external) return of_number(local_.offsets[index(id)] + at);
    return std::min(of_number(v.align ? v.align : std::max(1u, ptx::type_bytes(v.type))), of_number(at));
  }
  uint8_t of(const Operand& o) const {
    switch (o.kind) {
      case Operand::reg: return zeros_[o.id];
      case Operand::immediate: return of_number(o.value);
      case Operand::variable: return of_variable(o.variable_id(), o.value);
      default: return 0;
    }
  }
  uint8_t of_result(const ptx::Instruction& i) const {
    const auto s = [&](uint32_t k) { return of(f_.operand(i, k)); };
    const auto sum = [](int a, int b) { return static_cast<uint8_t>(std::clamp<int>(a + b, 0, most)); };
    const uint32_t bytes = ptx::type_bytes(i.type);
    if (bytes < 4 || ptx::is_floating(i.type) || i.mods.sat) return i.op == Opcode::mov ? s(1) : 0;
    const bool low = i.mods.part == ptx::MulPart::lo || i.mods.part == ptx::MulPart::wide;
    switch (i.op) {
      case Opcode::mov:
      case Opcode::cvta: return s(1);
      case Opcode::cvt: return ptx::type_bytes(i.type2) >= 4 && !ptx::is_floating(i.type2) ? s(1) : 0;
      case Opcode::add:
      case Opcode::sub: return i.mods.carry_out ? 0 : std::min(s(1), s(2));
      case Opcode::min:
      case Opcode::max:
      case Opcode::selp:
      case Opcode::or_:
      case Opcode::xor_: return std::min(s(1), s(2));
      case Opcode::and_: return std::max(s(1), s(2));
      case Opcode::mul: return low ? sum(s(1), s(2)) : 0;
      case Opcode::mad: return low && !i.mods.carry_out ? std::min(sum(s(1), s(2)), s(3)) : 0;
      case Opcode::shl:
        return f_.operand(i, 2).kind == Operand::immediate
                   ? sum(s(1), static_cast<int>(std::clamp<int64_t>(f_.operand(i, 2).value, 0, most)))
                   : s(1);
      default: return 0;
    }
  }

  const ptx::Module& m_;
  const ptx::Function& f_;
  const SharedLayout shared_;
  const LocalLayout local_;
  const ConstantLayout constants_;
  std::vector<uint8_t> zeros_;  // by register
};

// Accesses that become one, by their addresses.
struct Group {
  std::vector<uint32_t> at;  // instructions
  uint32_t place = 0;        // where they go
};

class Planner {
 public:
  Planner(const ptx::Module& m, const ptx::Function& f) : m_(m), f_(f) {}

  std::vector<Group> run() {
    if (!has_neighbours()) return {};
    read_.assign(f_.registers.size(), 0), written_.assign(f_.registers.size(), 0);
    in_vector_.assign(f_.registers.size(), false), awaited_.assign(f_.registers.size(), false);
    for (const Operand& o : f_.vector_elements)
      if (o.kind == Operand::reg) in_vector_[o.id] = true;
    std::vector<bool> begins(f_.instructions.size() + 1);
    for (const ptx::Label& l : f_.labels)
      if (l.at < begins.size()) begins[l.at] = true;
    for (uint32_t k = 0; k < f_.instructions.size(); ++k) {
      if (begins[k]) flush_all();
      const ptx::Instruction& i = f_.instructions[k];
      for (uint32_t n = 0; n < i.destination_count; ++n) before_write(f_.operand(i, n));
      look_at(k, i);
      for (uint32_t n = 0; n < i.operand_count; ++n) touch(k, f_.operand(i, n), n < i.destination_count);
      if (!is_none(i.guard)) read_[index(i.guard)] = k + 1;
    }
    flush_all();
    return std::move(groups_);
  }

 private:
  struct Access {
    uint32_t at;
    uint32_t bytes;
    Operand address;
    uint32_t version;  // of the address' register: one beyond its last write
    uint32_t touched;  // loads: one beyond where what it writes was named before
    RegisterId value;
  };
  static constexpr uint32_t spaces = 3;
  static uint32_t number(Space s) { return s == Space::shared ? 0 : s == Space::local ? 1 : 2; }

  // Whether the register's value is known before the kernel runs.
  bool is_known(uint32_t reg, int steps = 8) {
    constexpr uint32_t none = UINT32_MAX, several = UINT32_MAX - 1;
    if (definition_.empty()) {
      definition_.assign(f_.registers.size(), none);
      for (uint32_t k = 0; k < f_.instructions.size(); ++k)
        for (uint32_t n = 0; n < f_.instructions[k].destination_count; ++n)
          if (const Operand& o = f_.operand(f_.instructions[k], n); o.kind == Operand::reg)
            definition_[o.id] = definition_[o.id] == none ? k : several;
    }
    const uint32_t at = definition_[reg];
    if (at >= several || steps == 0) return false;
    const ptx::Instruction& i = f_.instructions[at];
    if (i.op != Opcode::mov && i.op != Opcode::cvta && i.op != Opcode::add) return false;
    for (uint32_t n = 1; n < i.operand_count; ++n) {
      const Operand& o = f_.operand(i, n);
      if (o.kind == Operand::reg ? !is_known(o.id, steps - 1)
                                 : o.kind != Operand::immediate && o.kind != Operand::variable)
        return false;
    }
    return true;
  }

  // Of shared, local or constant memory, of words, nothing special; its address and what moves.
  std::optional<Access> access(uint32_t k, const ptx::Instruction& i) {
    const bool load = i.op == Opcode::ld, constant = i.mods.space == Space::constant;
    if ((!load && i.op != Opcode::st) || (i.mods.space != Space::shared && i.mods.space != Space::local && !constant))
      return {};
    const uint32_t bytes = ptx::type_bytes(i.type);
    if ((bytes != 4 && bytes != 8) || !is_none(i.guard) || i.mods.vector != 1 || i.mods.cache != ptx::Cache::none ||
        (i.mods.semantics != ptx::Semantics::none && i.mods.semantics != ptx::Semantics::weak) || i.operand_count != 2)
      return {};
    const Operand &value = f_.operand(i, load ? 0 : 1), &address = f_.operand(i, load ? 1 : 0);
    if (value.kind != Operand::reg || ptx::type_bytes(f_.registers[value.reg_id()].type) != bytes) return {};
    if (address.kind == Operand::address_var && !constant) return Access{k, bytes, address, 0, 0, value.reg_id()};
    if (address.kind != Operand::address_reg || address.id == value.id) return {};
    if (constant && (bytes != 4 || is_known(address.id))) return {};
    return Access{k, bytes, address, 0, 0, value.reg_id()};
  }
  static bool same_base(const Operand& a, const Operand& b) { return a.kind == b.kind && a.id == b.id; }

  // Whether two accesses of a kind follow each other that are not of one place: most functions have none.
  bool has_neighbours() {
    std::optional<Access> last[2][spaces];
    for (uint32_t k = 0; k < f_.instructions.size(); ++k) {
      const ptx::Instruction& i = f_.instructions[k];
      if (i.op != Opcode::ld && i.op != Opcode::st) continue;
      const std::optional<Access> x = access(k, i);
      if (!x) continue;
      std::optional<Access>& before = last[i.op == Opcode::st][number(i.mods.space)];
      if (before && k - before->at <= reach && before->bytes == x->bytes && !(before->address == x->address))
        return true;
      before = x;
    }
    return false;
  }

  void look_at(uint32_t k, const ptx::Instruction& i) {
    if (!may_be_copied(f_, i) || i.mods.semantics > ptx::Semantics::weak) return flush_all();
    const bool load = i.op == Opcode::ld || i.op == Opcode::ldu;
    if (!load && i.op != Opcode::st && i.op != Opcode::atom && i.op != Opcode::red) return;
    const auto concerns = [&](Space s) { return i.mods.space == s || i.mods.space == Space::generic; };
    std::optional<Access> x = access(k, i);
    for (const Space s : {Space::shared, Space::local}) {
      if (!concerns(s)) continue;
      if (!load) flush(loads_[number(s)], true);
      std::vector<Access>& stores = stores_[number(s)];
      if (load || !x || (!stores.empty() && !follows(stores, *x))) flush(stores, false);
    }
    if (!x) return;
    if (x->address.kind == Operand::address_reg) x->version = written_[x->address.id];
    x->touched = std::max(read_[index(x->value)], written_[index(x->value)]);
    std::vector<Access>& list = (load ? loads_ : stores_)[number(i.mods.space)];
    if (list.size() == most_pending) flush(list, load);
    list.push_back(*x);
    if (load) return;
    awaited_[index(x->value)] = true;
    if (x->address.kind == Operand::address_reg) awaited_[x->address.id] = true;
  }
  // Stores take place before what they read changes.
  void before_write(const Operand& o) {
    if (o.kind == Operand::vector)
      for (uint32_t e = 0; e < o.count; ++e) before_write(f_.vector_elements[o.id + e]);
    if (o.kind == Operand::reg && awaited_[o.id])
      for (std::vector<Access>& list : stores_) flush(list, false);
  }
  // Behind the same base, at another place than all of them.
  bool follows(const std::vector<Access>& stores, const Access& x) const {
    const uint32_t version = x.address.kind == Operand::address_reg ? written_[x.address.id] : 0;
    return std::ranges::all_of(stores, [&](const Access& s) {
      return same_base(s.address, x.address) && s.version == version &&
             (s.address.value + s.bytes <= x.address.value || x.address.value + x.bytes <= s.address.value);
    });
  }
  void touch(uint32_t k, const Operand& o, bool destination) {
    if (o.kind == Operand::reg)
      (destination ? written_ : read_)[o.id] = k + 1;
    else if (o.kind == Operand::address_reg)
      read_[o.id] = k + 1;
    else if (o.kind == Operand::vector)
      for (uint32_t e = 0; e < o.count; ++e) touch(k, f_.vector_elements[o.id + e], destination);
  }

  void flush_all() {
    for (uint32_t s = 0; s < spaces; ++s) flush(loads_[s], true), flush(stores_[s], false);
  }
  void flush(std::vector<Access>& list, bool load) {
    if (!load)
      for (const Access& x : list) {
        awaited_[index(x.value)] = false;
        if (x.address.kind == Operand::address_reg) awaited_[x.address.id] = false;
      }
    if (list.size() > 1) join(list, load);
    list.clear();
  }
  void join(std::vector<Access>& list, bool load) {
    std::ranges::stable_sort(list, [](const Access& a, const Access& b) {
      return std::tuple(a.address.kind, a.address.id, a.version, a.bytes, a.address.value) <
             std::tuple(b.address.kind, b.address.id, b.version, b.bytes, b.address.value);
    });
    for (size_t k = 0; k < list.size();) {
      size_t taken = 1;
      const bool constant = f_.instructions[list[k].at].mods.space == Space::constant;
      for (uint32_t width = constant ? widest / 2 : widest; width > list[k].bytes && taken == 1; width /= 2)
        if (const uint32_t n = width / list[k].bytes; fits(std::span(list).subspan(k), n, width, load)) {
          Group g;
          for (uint32_t e = 0; e < n; ++e) g.at.push_back(list[k + e].at);
          g.place = load ? std::ranges::min(g.at) : std::ranges::max(g.at);
          for (uint32_t e = 0; e < n && !load; ++e) {  // they are read there
            read_[index(list[k + e].value)] = std::max(read_[index(list[k + e].value)], g.place + 1);
            if (list[k].address.kind == Operand::address_reg)
              read_[list[k].address.id] = std::max(read_[list[k].address.id], g.place + 1);
          }
          groups_.push_back(std::move(g));
          taken = n;
        }
      k += taken;
    }
  }
  // Whether the first n of them are neighbours that can go to one place.
  bool fits(std::span<const Access> list, uint32_t n, uint32_t width, bool load) {
    if (list.size() < n || list[0].address.value % width) return false;
    list = list.first(n);
    uint32_t first = UINT32_MAX, last = 0;
    for (uint32_t e = 0; e < n; ++e) {
      const Access &x = list[e], &a = list[0];
      if (!same_base(x.address, a.address) || x.version != a.version || x.bytes != a.bytes ||
          x.address.value != a.address.value + static_cast<int64_t>(e) * a.bytes)
        return false;
      first = std::min(first, x.at), last = std::max(last, x.at);
    }
    if (last - first > reach) return false;
    for (const Access& x : list)
      if (load ? x.touched > first : in_vector_[index(x.value)]) return false;
    if (!alignment_) alignment_.emplace(m_, f_);
    return width <= 1u << alignment_->of_base(list[0].address);
  }

  const ptx::Module& m_;
  const ptx::Function& f_;
  std::optional<Alignment> alignment_;
  std::vector<uint32_t> read_, written_;                // by register: one beyond the last instruction that did
  std::vector<bool> in_vector_;                         // by register: has its place beside others already
  std::vector<bool> awaited_;                           // by register: a pending store reads it
  std::vector<uint32_t> definition_;                    // by register: the instruction; see is_known
  std::vector<Access> loads_[spaces], stores_[spaces];  // pending; of shared, local, constant memory
  std::vector<Group> groups_;
};

void apply(const ptx::Function& from, const std::vector<Group>& groups, ptx::Function& to) {
  constexpr uint32_t nothing = UINT32_MAX, gone = UINT32_MAX - 1;
  std::vector<uint32_t> fate(from.instructions.size(), nothing);  // index into groups where they take place
  for (uint32_t g = 0; g < groups.size(); ++g) {
    for (uint32_t at : groups[g].at) fate[at] = gone;
    fate[groups[g].place] = g;
  }
  std::vector<uint32_t> place(from.instructions.size() + 1);
  to.instructions.clear();
  for (uint32_t k = 0; k < from.instructions.size(); ++k) {
    place[k] = static_cast<uint32_t>(to.instructions.size());
    if (fate[k] == gone) continue;
    ptx::Instruction i = from.instructions[k];
    if (fate[k] != nothing) {
      const Group& g = groups[fate[k]];
      const bool load = i.op == Opcode::ld;
      Operand address = from.operand(from.instructions[g.at[0]], load ? 1 : 0);
      Operand values{.kind = Operand::vector,
                     .count = static_cast<uint8_t>(g.at.size()),
                     .id = static_cast<uint32_t>(to.vector_elements.size())};
      for (uint32_t at : g.at) {
        const ptx::Instruction& x = from.instructions[at];
        to.vector_elements.push_back(from.operand(x, load ? 0 : 1));
        if (x.type != i.type) i.type = ptx::type_bytes(i.type) == 4 ? Type::b32 : Type::b64;
      }
      i.mods.vector = values.count;
      i.first_operand = static_cast<uint32_t>(to.operands.size());
      to.operands.push_back(load ? values : address);
      to.operands.push_back(load ? address : values);
    }
    to.instructions.push_back(i);
  }
  place.back() = static_cast<uint32_t>(to.instructions.size());
  for (ptx::Label& l : to.labels)
    if (l.at < place.size()) l.at = place[l.at];
  for (ptx::Location& l : to.locations)
    if (l.at < place.size()) l.at = place[l.at];
}

}  // namespace

Result<std::optional<ptx::Module>> vectorize_memory(const ptx::Module& module) {
  std::optional<ptx::Module> result;
  for (size_t n = 0; n < module.functions.size(); ++n) {
    const ptx::Function& f = module.functions[n];
    if (!f.is_entry) continue;
    const std::vector<Group> groups = Planner(module, f).run();
    if (groups.empty()) continue;
    if (!result) result = module;
    apply(f, groups, result->functions[n]);
  }
  return result;
}

}  // namespace rndn::ptx
