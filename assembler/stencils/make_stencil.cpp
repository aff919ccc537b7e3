// Makes the stencil of a statement (stencils.h).
//
// What it does: builds a function of this statement alone, over registers of the same types, and has it selected, laid out and timed as any other.
// Its operands then lie in registers of a fixed place, all else in scratch registers behind them. Where a field of the machine words holds such a number
// is found by encoding the instruction with another one: the bits that change are the hole. Literals that the shape leaves open are tried with two
// values; what is selected must be the same but for them.
//
// What follows a stencil is unknown. Fixed latencies are over at its end; scoreboards under way there are told of (Stencil::pending), all of them at
// once where it has branches inside.
// Cost: O(instructions) of the stencil; several microseconds.
#include <algorithm>
#include <bit>

#include "assembler/machine/operands.h"
#include "assembler/stencils/stencils.h"
#include "ptx/traits.h"

namespace rndn::assembler {

using enum ptx::Trait;
using ptx::expands_to_branches, ptx::may_be_copied, ptx::traits_of;
namespace {

using OperandKind = ptx::Operand;
using isa::Mnemonic;

// Where registers lie while the stencil is made.
constexpr uint32_t operand_base = 8, operand_units = 4, scratch_base = operand_base + operand_units * most_operands,
                   scratch_end = 254, no_place = UINT32_MAX;
constexpr uint8_t no_scoreboard = 7;

using Literals = std::array<int64_t, most_operands>;

// The statement alone.
struct Trial {
  ptx::Module module;
  Flow flow;
  FlowItem item;
  std::array<uint32_t, most_operands> registers{};  // of operands: of the function
  Function f;

  void build(const ptx::Module& from, const ptx::Function& function, const Shape& shape, const Literals& literals,
             Arena& arena) {
    module.version = from.version, module.target = from.target, module.address_size = from.address_size;
    module.functions.resize(1);
    ptx::Function& p = module.functions[0];
    p.name = function.name;
    p.parameters.push_back({ptx::Type::b8, "parameters", 8, 4096});
    uint32_t k = 0;
    // What lies at the beginning of the frame, of the bank.
    ptx::VariableId local = none<ptx::VariableId>(), constant = none<ptx::VariableId>();
    const auto first_variable = [&](ptx::Space space, ptx::VariableId& id) {
      if (is_none(id)) {
        ptx::Variable v;
        v.space = space, v.type = ptx::Type::b8, v.name = "first", v.count = 8;
        id = module.variables.add(std::move(v));
      }
      return index(id);
    };
    const auto register_of = [&](const Shape::Operand& o) {
      registers[k] = o.same != k ? registers[o.same]
                                 : index(p.registers.add({o.type, false, static_cast<uint32_t>(p.registers.size())}));
      return registers[k];
    };
    const auto operand = [&](const ptx::Operand& o) {
      ptx::Operand x = o;
      const Shape::Operand& s = shape.operands[++k];
      switch (s.kind) {
        case Shape::reg: x.id = register_of(s); break;
        case Shape::address:
        case Shape::offset_exact: x.id = register_of(s), x.value = literals[k]; break;
        case Shape::literal:
        case Shape::exact:
          if (o.kind == OperandKind::variable) x.kind = OperandKind::immediate;
          if (o.kind == OperandKind::address_var) x.kind = OperandKind::address_imm;
          x.id = 0, x.value = literals[k];
          break;
        case Shape::parameter: x.id = 0, x.value = s.low; break;
        case Shape::symbol: {
          ptx::Variable v;
          v.space = ptx::Space::global, v.type = ptx::Type::b8, v.name = "variable", v.count = 8;
          x.id = index(module.variables.add(std::move(v)));
          break;
        }
        case Shape::local: x.id = first_variable(ptx::Space::local, local), x.value = s.low; break;
        case Shape::constant: x.id = first_variable(ptx::Space::constant, constant), x.value = s.low; break;
        default: break;
      }
      return x;
    };
    ptx::Instruction i = *shape.inst;
    if (shape.operands[0].kind == Shape::reg)
      item.guard = static_cast<ptx::RegisterId>(register_of(shape.operands[0])),
      item.negated = shape.operands[0].negated;
    i.guard = item.guard, i.guard_negated = item.negated;
    i.first_operand = 0;
    for (uint32_t n = 0; n < i.operand_count; ++n) {
      ptx::Operand o = function.operand(*shape.inst, n);
      if (o.kind != OperandKind::vector) {
        p.operands.push_back(operand(o));
        continue;
      }
      const uint32_t first = o.id;
      o.id = static_cast<uint32_t>(p.vector_elements.size());
      for (uint32_t e = 0; e < o.count; ++e) p.vector_elements.push_back(operand(function.vector_elements[first + e]));
      p.operands.push_back(o);
    }
    p.instructions.push_back(i);
    item.one_address = shape.one_address;
    flow.alone = true;
    flow.blocks.add(arena), flow.blocks.add(arena);
    FlowBlock& block = flow.blocks[BlockId{0}];
    block.items = FlowItems(&item, 1);
    block.convergent = shape.convergent;
    block.next = BlockId{1};
    static constexpr std::array<BlockId, 2> layout = {BlockId{0}, BlockId{1}};
    flow.layout = arena.copy(std::span<const BlockId>(layout));
  }
};

// A number in an instruction that follows a literal of the statement: its value is sign * literal + add.
struct Follows {
  uint32_t inst, operand, slot;  // operand: of the instruction
  int64_t add;
  int8_t sign;
};

bool has_value(isa::OperandKind kind) {
  return kind == isa::OperandKind::immediate || kind == isa::OperandKind::address;
}

// Whether two selections are the same but for values that follow open literals; those are told of.
bool compare(const Trial& a, const Trial& b, const Shape& shape, const Literals& in_a, const Literals& in_b,
             std::vector<Follows>& follows) {
  const Function &x = a.f, &y = b.f;
  if (x.insts.size() != y.insts.size() || x.blocks.size() != y.blocks.size() || x.layout != y.layout ||
      x.gprs.size() != y.gprs.size() || x.predicates.size() != y.predicates.size() || x.constants != y.constants)
    return false;
  for (uint32_t k = 0; k < x.blocks.size(); ++k) {
    const Block &s = x.blocks[BlockId{k}], &t = y.blocks[BlockId{k}];
    if (s.code != t.code || s.predicate != t.predicate || s.negated != t.negated || s.taken != t.taken ||
        s.next != t.next)
      return false;
  }
  for (uint32_t k = 0; k < x.insts.size(); ++k) {
    const isa::Instruction &s = x.insts[k].sass, &t = y.insts[k].sass;
    if (s.form != t.form || s.guard != t.guard || s.guard_negated != t.guard_negated || s.modifiers != t.modifiers)
      return false;
    for (uint32_t o = 0; o < s.operand_count; ++o) {
      isa::Operand u = s.operands[o], v = t.operands[o];
      const int64_t first = u.value, second = v.value;
      u.value = v.value = 0;
      if (!(u == v)) return false;
      if (first == second) continue;
      if (!has_value(u.kind)) return false;
      bool found = false;
      for (uint32_t n = 1; n < shape.count && !found; ++n) {
        const Shape::Operand& of = shape.operands[n];
        if (of.kind != Shape::literal && of.kind != Shape::address) continue;
        const uint32_t slot = Stencil::first_operand + 2 * n + (of.kind == Shape::address);
        // Immediates are words, addresses numbers.
        const auto same = [&](int64_t p, int64_t q) {
          return u.kind == isa::OperandKind::immediate ? static_cast<uint32_t>(p) == static_cast<uint32_t>(q) : p == q;
        };
        for (const int8_t sign : {int8_t{1}, int8_t{-1}}) {
          const int64_t add = u.kind == isa::OperandKind::address ? first - sign * in_a[n] : 0;
          if (found || !same(first, sign * in_a[n] + add) || !same(second, sign * in_b[n] + add)) continue;
          follows.push_back({k, o, slot, add, sign});
          found = true;
        }
      }
      if (!found) return false;
    }
  }
  return true;
}

// What is known of a register's place.
struct Owner {
  uint8_t slot = Stencil::scratch;
  uint32_t add = 0;
};
constexpr Owner nobody{UINT8_MAX};
Owner owner(uint32_t place) {
  if (place >= scratch_base) return {Stencil::scratch, place - scratch_base};
  const uint32_t operand = (place - operand_base) / operand_units;
  return {static_cast<uint8_t>(Stencil::first_operand + 2 * operand), (place - operand_base) % operand_units};
}

struct Maker {
  const isa::Target& t;
  const Shape& shape;
  Trial& trial;
  const std::vector<Follows>& follows;
  StencilCache& cache;
  isa::FormCache& forms;
  Function& f = trial.f;
  Stencil s{};
  std::vector<uint32_t> places = {};            // by GPR unit
  std::vector<uint32_t> predicate_places = {};  // by virtual predicate
  std::array<Owner, 8> predicate_owners = [] {  // by place
    std::array<Owner, 8> owners;
    owners.fill(nobody);
    return owners;
  }();
  // Scratch registers by offset: until which place in the code they are taken, at least; of predicates by place.
  std::array<uint32_t, scratch_end - scratch_base> taken_until = {};
  std::array<uint32_t, 8> predicate_taken_until = {};
  std::vector<uint32_t> last_use = {}, last_predicate_use =
                                           {};  // by unit of the value's first, by virtual predicate: place in the code
  uint32_t now = 0;                             // place in the code, from 1 on
  uint32_t scratch_used = 0, predicates_used = 0, operand_predicates = 0;
  std::vector<Stencil::Patch> patches = {};

  bool place_operands() {
    places.assign(f.gprs.size(), no_place), predicate_places.assign(f.predicates.size(), no_place);
    // As selection places the registers of a statement alone: in their order.
    const ptx::Function& p = trial.module.functions[0];
    std::vector<uint32_t> first_of(p.registers.size());
    uint32_t units = 0, predicates = 0;
    for (uint32_t r = 0; r < p.registers.size(); ++r) {
      const ptx::Type type = p.registers[ptx::RegisterId{r}].type;
      const uint32_t words = std::max(ptx::type_bytes(type) / 4, 1u);
      if (type == ptx::Type::pred) {
        first_of[r] = predicates++;
      } else {
        units = (units + words - 1) / words * words;
        first_of[r] = units, units += words;
      }
    }
    for (uint32_t k = 0; k < shape.count; ++k) {
      const Shape::Operand& o = shape.operands[k];
      if (!o.is_register() || o.same != k) continue;
      const uint32_t first = first_of[trial.registers[k]];
      if (o.type == ptx::Type::pred) {
        if (predicates_used == isa::PT) return false;
        predicate_owners[predicates_used] = {static_cast<uint8_t>(Stencil::first_operand + 2 * k), 0};
        predicate_places[first] = predicates_used++;
        continue;
      }
      const uint32_t words = std::max(ptx::type_bytes(o.type) / 4, 1u);
      CHECK(f.gprs[first].first == first && f.gprs[first].width == words, "registers of a statement lie elsewhere");
      for (uint32_t w = 0; w < words; ++w) places[first + w] = operand_base + operand_units * k + w;
    }
    operand_predicates = predicates_used;
    return true;
  }
  // Where values that are no operands are named last, in the order of the code; nowhere in code that goes back: there they keep their registers.
  void find_last_uses() {
    last_use.assign(f.gprs.size(), UINT32_MAX), last_predicate_use.assign(f.predicates.size(), UINT32_MAX);
    std::vector<uint32_t> position(f.blocks.size());
    for (uint32_t k = 0; k < f.layout.size(); ++k) position[index(f.layout[k])] = k;
    for (BlockId b : f.layout) {
      bool back = false;
      for_each_successor(f.blocks[b], [&](BlockId to) { back |= position[index(to)] <= position[index(b)]; });
      if (back) return;
    }
    uint32_t at = 0;
    for (BlockId b : f.layout) {
      for (InstId id : f.blocks[b].code) {
        ++at;
        for (Range r : f.facts[index(id)].all()) {
          if (r.reg() < isa::first_virtual) continue;
          const uint32_t v = r.reg() - isa::first_virtual;
          if (r.file() == Range::gpr)
            last_use[f.gprs[v].first] = at;
          else if (r.file() == Range::predicate)
            last_predicate_use[v] = at;
        }
      }
      ++at;
      if (f.blocks[b].predicate >= isa::first_virtual)
        last_predicate_use[f.blocks[b].predicate - isa::first_virtual] = at;
    }
  }
  bool place_scratch(uint32_t unit) {
    const GprUnit& of = f.gprs[f.gprs[unit].first];
    const auto is_free = [&](uint32_t at) {
      for (uint32_t w = 0; w < of.width; ++w)
        if (taken_until[at + w] >= now) return false;
      return true;
    };
    for (uint32_t at = 0; at + of.width <= taken_until.size(); at += of.width) {
      if (!is_free(at)) continue;
      for (uint32_t w = 0; w < of.width; ++w) {
        places[of.first + w] = scratch_base + at + w;
        taken_until[at + w] = last_use[of.first];
      }
      scratch_used = std::max(scratch_used, at + of.width);
      return true;
    }
    return false;
  }
  bool place(Range& r) {
    if (r.reg() < isa::first_virtual) return true;
    const uint32_t v = r.reg() - isa::first_virtual;
    if (r.file() == Range::gpr) {
      if (places[v] == no_place && !place_scratch(v)) return false;
      r.set_reg(places[v]);
    } else if (r.file() == Range::predicate) {
      if (!place_predicate(v)) return false;
      r.set_reg(predicate_places[v]);
    }
    return true;
  }
  bool place_predicate(uint32_t v) {
    if (predicate_places[v] != no_place) return true;
    for (uint32_t at = operand_predicates; at < isa::PT; ++at) {
      if (predicate_taken_until[at] >= now) continue;
      predicate_owners[at] = {Stencil::scratch_predicate, at - operand_predicates};
      s.scratch_predicates = std::max(s.scratch_predicates, static_cast<uint8_t>(at - operand_predicates + 1));
      predicate_taken_until[at] = last_predicate_use[v];
      predicate_places[v] = at;
      return true;
    }
    return false;
  }
  // Of registers, predicates and barriers all bits are in the mask; of wider numbers the upper ones may be lost behind it.
  static bool takes_whole(const Stencil::Patch& p) {
    return p.flip == 0 && p.add == 0 && (p.mask <= 0xff || p.mask == UINT32_MAX || uint64_t{p.mask} << p.shift >> 63);
  }
  bool make_plain(std::span<const isa::Word> words) {
    if (words.size() != 1) return false;
    constexpr uint32_t upper = 4;
    uint32_t lower_count = 0, upper_count = 0;
    s.plain.word = words[0];
    for (const Stencil::Patch& p : patches) {
      if (!takes_whole(p)) return false;
      const uint32_t k = p.half ? upper + upper_count++ : lower_count++;
      if (k >= (p.half ? s.plain.slots.size() : upper)) return false;
      s.plain.slots[k] = p.slot, s.plain.factors[k] = uint64_t{1} << p.shift;
    }
    return true;
  }
  // Registers for all that the code names.
  bool allocate() {
    if (!place_operands()) return false;
    f.facts.clear();
    f.facts.reserve(f.insts.size() + 16);
    for (const Inst& inst : f.insts) new (&f.facts.push()) Facts(facts_of(t, inst));
    f.registers.start(f.insts.size(), f.insts.size() * 5);
    find_last_uses();
    bool fits = true;
    for (BlockId b : f.layout) {
      for (InstId id : f.blocks[b].code) {
        ++now;
        isa::Instruction& sass = f[id].sass;
        f.registers.set(id, f.facts[index(id)], [&](Range& r) {
          if (!fits || !(fits = place(r)) || !r.allocated()) return;
          (r.guard() ? sass.guard : sass.operands[r.operand()].reg) = r.reg();
        });
        if (!fits) return false;
      }
      ++now;
      uint32_t& p = f.blocks[b].predicate;
      if (p >= isa::first_virtual) {
        if (!place_predicate(p - isa::first_virtual)) return false;
        p = predicate_places[p - isa::first_virtual];
      }
    }
    f.allocated = true, f.registers_used = scratch_end;
    s.scratch_units = static_cast<uint8_t>(scratch_used);
    return true;
  }

  // The only bits of two words that differ, if they are neighbours in one half: false otherwise.
  static bool hole(const isa::Word& a, const isa::Word& b, uint32_t at, uint32_t ones, Stencil::Patch& patch) {
    const uint64_t low = a.lo ^ b.lo, high = a.hi ^ b.hi, bits = low | high;
    if (!low == !high || bits == 0) return false;
    const uint32_t shift = static_cast<uint32_t>(std::countr_zero(bits)),
                   width = 64 - shift - static_cast<uint32_t>(std::countl_zero(bits));
    if (static_cast<uint32_t>(std::popcount(bits)) != width || width > 32 || (ones && width != ones)) return false;
    patch.half = static_cast<uint16_t>(2 * at + (low == 0)), patch.shift = static_cast<uint8_t>(shift);
    patch.mask = width == 32 ? UINT32_MAX : (1u << width) - 1;
    return true;
  }
  bool encode(uint32_t at, InstId id, uint32_t target, isa::Word& word) {
    const uint64_t address = isa::instruction_address(t, at);
    isa::Instruction x = f[id].sass;
    x.control = f.facts[index(id)].control;
    for (uint32_t o = 0; o < x.operand_count; ++o)
      if (x.operands[o].kind == isa::OperandKind::label)
        x.operands[o].value = static_cast<int64_t>(isa::instruction_address(t, target));
    // Numbers to be filled in are zero.
    struct Number {
      uint32_t operand;  // or: the guard
      Owner of;
      uint32_t other;  // another number that is encoded, less one bit than the field has
      uint32_t bits;
    };
    std::array<Number, isa::max_operands + 1> numbers;
    uint32_t count = 0, literal = no_place;
    int64_t literal_at = 0;
    constexpr uint32_t the_guard = isa::max_operands;
    const auto reg_of = [&](uint32_t operand) -> uint32_t& {
      return operand == the_guard ? x.guard : x.operands[operand].reg;
    };
    for (uint32_t o = 0; o < x.operand_count; ++o) {
      isa::Operand& y = x.operands[o];
      switch (y.kind) {
        case isa::OperandKind::gpr:
        case isa::OperandKind::address:
        case isa::OperandKind::constant:
          if (y.reg != isa::RZ && y.reg != stack_register) {
            if (y.reg < operand_base) return false;
            numbers[count++] = {o, owner(y.reg), 0xfe, 7};
          }
          if (y.kind == isa::OperandKind::constant && y.bank == 2) literal = o, literal_at = y.value, y.value = 0;
          break;
        case isa::OperandKind::predicate:
          if (y.reg == isa::PT) break;
          if (predicate_owners[y.reg].slot == nobody.slot) {
            CHECK(x.mnemonic == Mnemonic::BAR, "a predicate that nobody has");  // P0, at which only BAR.RED looks
            break;
          }
          numbers[count++] = {o, predicate_owners[y.reg], 6, 2};
          break;
        case isa::OperandKind::barrier: numbers[count++] = {o, {Stencil::barrier, y.reg}, 14, 3}; break;
        case isa::OperandKind::uniform_predicate:
          if (y.reg != isa::PT) return false;
          break;
        default: break;
      }
    }
    if (x.guard != isa::PT) numbers[count++] = {the_guard, predicate_owners[x.guard], 6, 2};
    for (uint32_t n = 0; n < count; ++n) reg_of(numbers[n].operand) = 0;
    for (const Follows& l : follows)
      if (l.inst == index(id)) x.operands[l.operand].value = 0;
    if (!isa::encode(t, x, address, word)) return false;
    const auto add = [&](Stencil::Patch p, const isa::Word& other, uint32_t ones, uint32_t below) {
      if (!hole(word, other, at, ones, p)) return false;
      p.shift = static_cast<uint8_t>(p.shift - below), p.mask = p.mask << below | ((1u << below) - 1);
      patches.push_back(p);
      return true;
    };
    for (uint32_t n = 0; n < count; ++n) {
      const Number& number = numbers[n];
      reg_of(number.operand) = number.other;
      isa::Word other;
      const bool encoded = isa::encode(t, x, address, other);
      reg_of(number.operand) = 0;
      const Stencil::Patch p{0, 0, number.of.add, 0, number.of.slot, 0};
      if (!encoded || !add(p, other, number.bits, 1)) return false;
    }
    if (literal != no_place) {
      x.operands[literal].value = 0xfffc;
      isa::Word other;
      const bool encoded = isa::encode(t, x, address, other);
      x.operands[literal].value = 0;
      const Stencil::Patch p{0, 0, static_cast<uint32_t>(literal_at / 4), 0, Stencil::literal_pool, 0};
      if (!encoded || !add(p, other, 14, 0)) return false;
    }
    for (const Follows& l : follows) {
      if (l.inst != index(id)) continue;
      x.operands[l.operand].value = -1;
      isa::Word other;
      const bool encoded = isa::encode(t, x, address, other);
      x.operands[l.operand].value = 0;
      const uint32_t flip = l.sign < 0 ? UINT32_MAX : 0;
      const Stencil::Patch p{0, flip, static_cast<uint32_t>(l.add) - flip, 0, static_cast<uint8_t>(l.slot), 0};
      const uint32_t bits = x.operands[l.operand].kind == isa::OperandKind::immediate ? 32 : 24;
      if (!encoded || !add(p, other, bits, 0)) return false;
    }
    return true;
  }

  // Scoreboards that are under way where the last of n instructions has issued.
  void find_pending(const Code& code, uint32_t n, std::vector<Stencil::Pending>& pending) {
    if (code.blocks.size() > 2) {
      for (uint32_t k = 0; k < n; ++k) {
        const isa::Control& c = f.facts[index(code.order[k])].control;
        for (uint8_t b : {c.write_barrier, c.read_barrier})
          if (b != no_scoreboard) s.waits_behind |= static_cast<uint8_t>(1u << b);
      }
      return;
    }
    for (uint32_t k = 0; k < n; ++k) {
      const InstId id = code.order[k];
      const isa::Control& c = f.facts[index(id)].control;
      std::erase_if(pending, [&](const Stencil::Pending& p) { return c.wait_mask >> p.scoreboard & 1; });
      const RegisterLists::List list = f.registers.of(id);
      const auto under_way = [&](std::span<const uint16_t> registers, uint8_t scoreboard, bool reads) {
        if (scoreboard == no_scoreboard) return;
        bool any = false;
        for (uint32_t r : registers) {
          Owner of;
          if (r == stack_register) continue;  // written where the kernel begins
          if (RegisterLists::file_of(r) == Range::gpr)
            of = owner(r);
          else if (RegisterLists::file_of(r) == Range::predicate)
            of = predicate_owners[r - RegisterLists::base[Range::predicate]];
          else
            continue;
          if (of.slot == nobody.slot) continue;
          const uint8_t operand = of.slot < Stencil::first_operand
                                      ? Stencil::no_operand
                                      : static_cast<uint8_t>((of.slot - Stencil::first_operand) / 2);
          const Stencil::Pending p{operand, scoreboard, reads};
          if (std::ranges::none_of(pending, [&](const Stencil::Pending& q) {
                return q.operand == p.operand && q.scoreboard == p.scoreboard && q.reads == p.reads;
              }))
            pending.push_back(p);
          any = true;
        }
        if (!any && !reads) s.waits_behind |= static_cast<uint8_t>(1u << scoreboard);
      };
      under_way(list.all_writes(), c.write_barrier, false);
      under_way(list.sources(f.facts[index(id)]), c.read_barrier, true);
    }
  }

  void note(uint32_t at, InstId id, std::vector<Stencil::Note>& notes) {
    const Inst& inst = f[id];
    const auto add = [&](Stencil::Note::What what) { notes.push_back({what, static_cast<uint16_t>(at)}); };
    switch (inst.sass.mnemonic) {
      case Mnemonic::EXIT: add(Stencil::Note::exit); break;
      case Mnemonic::BSSY: s.crs = true; break;
      case Mnemonic::S2R:
        if (inst.sass.operands[1].value >= 0x25 && inst.sass.operands[1].value <= 0x27) add(Stencil::Note::block_index);
        break;
      default: break;
    }
    if (f.facts[index(id)].cooperative) add(Stencil::Note::cooperative);
    if (!is_none(inst.symbol)) add(inst.symbol_high ? Stencil::Note::symbol_high : Stencil::Note::symbol_low);
  }

  const Stencil* run() {
    if (f.calls || f.collective || f.dynamic_stack || !f.subroutines.empty()) return nullptr;
    // The descriptor is loaded at the kernel's entry.
    std::vector<InstId>& entry = f.blocks[f.layout[0]].code;
    if (!entry.empty() && f[entry[0]].sass.mnemonic == Mnemonic::ULDC &&
        f[entry[0]].sass.operands[0].reg == descriptor_register)
      entry.erase(entry.begin()), s.descriptor = true;
    for (const Region& r : f.regions) s.depth = std::max(s.depth, static_cast<uint8_t>(r.depth + 1));
    if (!allocate()) return nullptr;
    Code code = lay_out(f, forms, {});
    assign_barriers(f, code);
    // But for the exit behind it.
    CHECK(code.blocks.back().begin + 1 == code.order.size(), "more than an exit behind a statement");
    const uint32_t n = code.blocks.back().begin;
    if (n > 1024) return nullptr;
    std::vector<isa::Word> words(n);
    std::vector<Stencil::Note> notes;
    std::vector<Stencil::Pending> pending;
    bool late = false;
    for (uint32_t k = 0; k < n; ++k) {
      const InstId id = code.order[k];
      const Mnemonic m = f[id].sass.mnemonic;
      if (!encode(k, id, code.targets[k], words[k])) return nullptr;
      if (code.targets[k] != UINT32_MAX && t.family == isa::Family::pascal) return nullptr;
      note(k, id, notes);
      if (m == Mnemonic::EXIT || m == Mnemonic::BAR || m == Mnemonic::B2R) {
        if (late && t.family == isa::Family::pascal) return nullptr;  // each would count from the one before
        late = true;
        s.restarts |= m != Mnemonic::B2R;
      }
      s.cycles += f.facts[index(id)].control.stall;
    }
    if (code.blocks.size() > 2) s.cycles = 0;
    s.ends_slowly = late;
    find_pending(code, n, pending);
    for (uint32_t k = 0; k < shape.count; ++k) {
      const Shape::Operand& o = shape.operands[k];
      if (!o.is_register()) continue;
      s.registers |= 1u << k;
      (k > 0 && k <= shape.destinations ? s.writes : s.reads) |= 1u << k;
    }
    s.operands = static_cast<uint8_t>(shape.count);
    s.barriers = static_cast<uint8_t>(f.barriers), s.block_z = f.uses_ctaid_z;
    s.meets = traits_of(*shape.inst) & waits_for;
    Arena& arena = cache.arena();
    s.words = arena.copy(std::span<const isa::Word>(words)).data(), s.size = static_cast<uint16_t>(n);
    s.patches = arena.copy(std::span<const Stencil::Patch>(patches)).data();
    s.patch_count = static_cast<uint16_t>(patches.size());
    s.is_plain = make_plain(words);
    s.scratch_mask = s.scratch_units || s.scratch_predicates ? 0xff : 0;
    s.unusual = !f.constants.empty() || s.depth || s.ends_slowly;
    s.leaves_behind = !pending.empty() || !notes.empty() || s.waits_behind || s.restarts;
    s.notes = arena.copy(std::span<const Stencil::Note>(notes));
    s.literals = arena.copy(std::span<const std::byte>(f.constants));
    s.pending = arena.copy(std::span<const Stencil::Pending>(pending));
    return &(arena.make_span<Stencil>(1)[0] = s);
  }
};

}  // namespace

const Stencil* make_stencil(const ptx::Module& module, const ptx::Function& function, const Shape& shape,
                            const Options& options, isa::FormCache& forms, Arena& scratch, SelectionRoom& room,
                            StencilCache& cache, bool& exact) {
  ArenaScope scope(scratch);
  std::array<Literals, 2> literals{};
  bool open = false;
  for (uint32_t k = 0; k < shape.count; ++k) {
    const Shape::Operand& o = shape.operands[k];
    const int64_t own = o.kind == Shape::offset_exact || o.kind == Shape::symbol
                            ? static_cast<int32_t>(o.high)
                            : static_cast<int64_t>(uint64_t{o.high} << 32 | o.low);
    const bool is_open = o.kind == Shape::literal || o.kind == Shape::address;
    open |= is_open;
    // Two numbers of which nothing is known; of the class of the shape. Their difference tells operands apart. One offset is negative: where it is added to a
    // register of 64 bits, it has a high word.
    for (uint32_t n = 0; n < 2; ++n) {
      const uint32_t offset = (n ? 0x6780u : 0x3450u) + k * (n ? 0x1c0u : 0x40u);
      if (!is_open)
        literals[n][k] = own;
      else if (o.kind == Shape::address || o.near)
        literals[n][k] = n && !o.near ? -int64_t{offset} : offset;
      else
        literals[n][k] = static_cast<int64_t>(uint64_t{o.high} << 32 | ((n ? 0x9abcdef2u : 0x12345677u) + offset));
    }
  }
  exact = false;
  std::array<Trial, 2> trials;
  for (uint32_t n = 0; n < (open ? 2 : 1); ++n) {
    Trial& trial = trials[n];
    trial.build(module, function, shape, literals[n], scratch);
    Result<Function> f =
        select(trial.module, trial.module.functions[0], trial.flow, ptx::SharedLayout{}, options, forms, scratch, room);
    if (!f) return nullptr;
    trial.f = *std::move(f);
  }
  std::vector<Follows> follows;
  if (open && !compare(trials[0], trials[1], shape, literals[0], literals[1], follows)) {
    exact = true;
    return nullptr;
  }
  Maker maker{*options.target, shape, trials[0], follows, cache, forms};
  const Stencil* made = maker.run();
  exact = open && !made;
  return made;
}

}  // namespace rndn::assembler
