// What instructions read and write, and all else that passes ask about them: gathered once, after selection, in one walk over the code.
//
// Facts of an instruction begin as a record that its form's row gives; the registers are added. survey() gathers them, lists the units of every
// instruction (ir.h), and notes per unit how many read it, where it is written, and whether it is read in a block that has not written it before.
// Passes that add or change an instruction ask for its facts, and list its units, again. Cost: O(operands).
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "assembler/isa/latencies.h"
#include "assembler/machine/inst_facts.h"
#include "assembler/machine/operands.h"
#include "libraries/base/containers/lazy_table.h"
#include "libraries/base/errors/check.h"

namespace rndn::assembler {

using isa::Mnemonic;
using L = isa::LatencyClass;

namespace {

struct ClassFacts {
  Memory memory = Memory::none;
  bool pinned = false;  // has an effect besides its registers
  bool stalls = false;  // isa::minimum_stall may ask for more than one cycle
};
constexpr std::array<ClassFacts, isa::latency_class_count> class_facts = [] {
  std::array<ClassFacts, isa::latency_class_count> table{};
  auto set = [&](L c, Memory memory, bool pinned) {
    table[static_cast<size_t>(c)].memory = memory, table[static_cast<size_t>(c)].pinned = pinned;
  };
  set(L::global_load, Memory::global_load, false);
  set(L::global_store, Memory::global_store, true);
  set(L::global_atomic, Memory::global_store, true);
  set(L::shared_load, Memory::shared_load, false);
  set(L::shared_store, Memory::shared_store, true);
  set(L::shared_atomic, Memory::shared_store, true);
  set(L::local_load, Memory::local_load, false);
  set(L::local_store, Memory::local_store, true);
  set(L::constant_load, Memory::constant_load, false);
  set(L::shuffle, Memory::none, true);
  set(L::async_copy, Memory::copy, true);
  for (L c : {L::barrier, L::fence, L::branch, L::convergence, L::wait, L::nop}) set(c, Memory::fence, true);
  for (L c : {L::branch, L::barrier, L::fence, L::wait}) table[static_cast<size_t>(c)].stalls = true;
  return table;
}();

// What a row says about every instruction of its form.
struct FormFacts {
  // An operand that names registers.
  struct Named {
    Range range;  // of register 0, and of one register where the width varies
    isa::RowFacts::Width width;
    uint8_t operand = 0;
    uint8_t left_out = 0;  // the zero or true register
  };
  Facts prototype;                // what holds for all
  std::array<Named, 10> named{};  // reads, then writes; no row names more
  uint8_t reads = 0, count = 0;
  uint8_t addresses = 0;  // operands that may name a uniform register too
  Range guard;
  bool asks = false;  // the instruction decides about its latency, the condition code or what is written elsewhere
};

// `target`: any of the form's family.
void facts_of_form(isa::FormId id, const isa::Target& target, FormFacts& form) {
  const isa::RowFacts& row = isa::row_facts(id);
  constexpr std::array<uint8_t, 4> left_out = {isa::RZ, isa::PT, isa::URZ, isa::PT};  // by file
  CHECK(row.named_count <= form.named.size() &&
            row.named_count + std::popcount(row.addresses) + 1u <= form.prototype.ranges.size(),
        "a row names more registers than there is room for");
  for (uint32_t k = 0; k < row.named_count; ++k) {
    const isa::RowFacts::Named& x = row.named[k];
    const isa::RowFacts::Width width = row.widths[x.operand];
    form.named[k] = {.range = Range(0, width.varies ? 1 : width.of({}), static_cast<Range::File>(x.file), x.operand),
                     .width = width,
                     .operand = x.operand,
                     .left_out = left_out[x.file]};
    form.asks |= k >= row.named_reads && x.file >= Range::uniform;
  }
  form.reads = row.named_reads, form.count = row.named_count;
  form.addresses = row.addresses;
  form.guard = Range(0, 1, row.uniform_guard ? Range::uniform_predicate : Range::predicate, Range::guard_operand);
  form.asks |= row.latency == L::cs2r || row.carry || row.latency == L::fp64 || row.latency == L::register_to_uniform;
  Facts& facts = form.prototype;
  const ClassFacts& c = class_facts[static_cast<size_t>(row.latency)];
  const isa::Scoreboards scoreboards = isa::scoreboards(target, row.latency);
  facts.latency = row.latency;
  facts.memory = c.memory;
  // Ends a group of copies: it stays behind them, and before those of the next, as they are among themselves.
  if (row.mnemonic == Mnemonic::LDGDEPBAR) facts.memory = Memory::shared_store;
  facts.pinned = c.pinned;
  facts.generic = row.mnemonic == Mnemonic::LD || row.mnemonic == Mnemonic::ST || row.mnemonic == Mnemonic::ATOM;
  facts.announced = scoreboards.write;
  facts.late = scoreboards.read || row.latency == L::fence;  // CCTL has an address
  facts.copies = row.mnemonic == Mnemonic::MOV && (row.gprs & 2);
  constexpr Mnemonic combining[] = {Mnemonic::IADD3, Mnemonic::IADD, Mnemonic::LOP3, Mnemonic::LOP, Mnemonic::PLOP3,
                                    Mnemonic::PSETP, Mnemonic::FADD, Mnemonic::DADD, Mnemonic::F2I};
  facts.combines = std::ranges::find(combining, row.mnemonic) != std::end(combining);
  facts.ordered = c.memory != Memory::none || c.pinned || is_of_lanes(row.latency);
  facts.late_carry = row.carry && row.mnemonic == Mnemonic::IMNMX;
  if (row.latency == L::convergence && target.family == isa::Family::volta) {
    facts.least_stall = row.mnemonic == Mnemonic::BSSY || row.mnemonic == Mnemonic::BMOV ? 2 : 12;
  } else if (c.stalls) {
    isa::Instruction any;
    any.form = id, any.mnemonic = row.mnemonic;
    facts.least_stall = isa::minimum_stall(target, any);
  }
}

// By FormId; a form is of one family.
class AllFormFacts {
 public:
  const FormFacts& get(isa::FormId form, const isa::Target& target) const {
    return made_.get(index(form), [&] {
      FormFacts facts;
      facts_of_form(form, target, facts);
      return facts;
    });
  }

 private:
  LazyTable<FormFacts> made_{isa::form_count()};
};
const AllFormFacts& form_facts() {
  static const AllFormFacts all;
  return all;
}

// Facts of the instruction; what it reads and writes in the order of lists: carry(), range(r), writes() between.
template <class List>
inline void gather(const isa::Target& target, const Inst& inst, const FormFacts& form, Facts& facts, List& list) {
  const isa::Instruction& s = inst.sass;
  facts = form.prototype;
  if (form.asks) [[unlikely]] {
    if (facts.latency == L::cs2r) facts.latency = isa::latency_class(s);
    facts.reads_carry = isa::reads_carry(s), facts.writes_carry = isa::writes_carry(s);
    const isa::Scoreboards scoreboards = isa::scoreboards(target, facts.latency);
    facts.announced = scoreboards.write, facts.late = scoreboards.read || facts.latency == L::fence;
    if (facts.reads_carry) list.carry();
  }
  Range* at = facts.ranges.data();
  const auto add = [&](Range r) { *at++ = r, list.range(r); };
  const auto named = [&](const FormFacts::Named* x, const FormFacts::Named* end) {
    for (; x < end; ++x) {
      const uint32_t reg = s.operands[x->operand].reg;
      if (reg == x->left_out) continue;
      Range r = x->range.of_register(reg);
      if (x->width.varies) r = r.of_width(x->width.ask ? isa::register_count(s, x->operand) : x->width.of(s));
      add(r);
    }
  };
  const FormFacts::Named *const first = form.named.data(), *const first_write = first + form.reads;
  named(first, first_write);
  for (uint32_t set = form.addresses; set; set &= set - 1) {
    const uint32_t k = static_cast<uint32_t>(std::countr_zero(set));
    if (const isa::Operand& o = s.operands[k]; o.uniform != isa::URZ)
      add(Range(o.uniform, o.descriptor ? 2 : 1, Range::uniform, k));
  }
  facts.guarded = s.guard != isa::PT;
  if (facts.guarded) add(form.guard.of_register(s.guard));
  facts.read_count = static_cast<uint8_t>(at - facts.ranges.data());
  list.writes();
  if (facts.writes_carry) list.carry();
  named(first_write, first + form.count);
  facts.count = static_cast<uint8_t>(at - facts.ranges.data());
  facts.announced &= facts.count > facts.read_count;
  if (inst.pinned | inst.cooperative)
    facts.pinned |= inst.pinned, facts.cooperative = inst.cooperative, facts.ordered = true;
  facts.read_only = inst.read_only;
  if (form.asks) [[unlikely]]
    for (Range r : facts.writes()) facts.writes_elsewhere |= !r.allocated();
}

// How units are numbered.
struct Numbering {
  explicit Numbering(const Units& u)
      : base{u.first_gpr - isa::first_virtual, 0u - isa::first_virtual, u.predicates, u.predicates + isa::URZ},
        carry(u.first_gpr - 1) {}
  std::array<uint32_t, 4> base;  // of units of registers, by file
  uint32_t carry;
};

// The list of an instruction as it is made.
struct List {
  const Numbering& numbering;
  uint32_t *const begin, *at = begin + 1, *first_write = nullptr;
  void carry() { *at++ = numbering.carry; }
  void writes() { first_write = at; }
  void range(Range r) {
    if (r.allocated() && r.reg() < isa::first_virtual) [[unlikely]]
      return;
    const uint32_t u = r.reg() + numbering.base[r.file()];
    for (uint32_t w = 0; w < 4; ++w) at[w] = u + w;  // what is too much is written over
    at += r.width();
  }
};
// For those who want facts alone.
struct NoList {
  void carry() {}
  void writes() {}
  void range(Range) {}
};

// Numbers all units anew and forgets all lists.
void start_lists(Function& f) {
  Units& u = f.units;
  u.predicates = static_cast<uint32_t>(f.predicates.size());
  u.first_gpr = u.predicates + Units::others;
  u.items.clear();
  u.begin.resize(f.insts.size());
}
// Room for a list at the end, with so many words.
inline List begin_list(Function& f, const Numbering& numbering, InstId i, size_t words) {
  const size_t used = f.units.items.size();
  f.units.begin[index(i)] = static_cast<uint32_t>(used);
  return {numbering, f.units.items.extend(words)};
}
// Ends the list that was begun last. Guarded writes whose old values live on are marked.
inline void end_list(Function& f, const List& list, bool guarded) {
  const Units& u = f.units;
  if (guarded)
    for (uint32_t* w = list.first_write; w < list.at; ++w)
      if (u.is_allocated(*w) && !(u.is_gpr(*w) ? f.gprs[*w - u.first_gpr].temporary : f.predicates[*w].temporary))
        *w |= Units::lasts;
  *list.begin = static_cast<uint32_t>(list.first_write - list.begin - 1) |
                static_cast<uint32_t>(list.at - list.first_write) << 16;
  f.units.items.resize(static_cast<size_t>(list.at - f.units.items.data()));
}
// What a subroutine's call and return read and write besides their operands, of which they write none.
size_t words_of_subroutine(const Function& f, const Inst& inst) {
  return inst.call < Call::subroutine ? 0 : f.subroutines[inst.callee].words();
}
void add_subroutine(const Function& f, const Inst& inst, List& list) {
  if (inst.call < Call::subroutine) return;
  const Subroutine& s = f.subroutines[inst.callee];
  const bool calls = inst.call == Call::subroutine;
  for (Range r : calls ? s.reads : s.results) list.range(r);
  list.writes();
  if (calls)
    for (Range r : s.writes) list.range(r);
}
void append_list(Function& f, const Numbering& numbering, InstId i) {
  const Facts& x = f.facts[index(i)];
  List list = begin_list(f, numbering, i, x.most_units() + words_of_subroutine(f, f[i]));
  if (x.reads_carry) list.carry();
  for (Range r : x.reads()) list.range(r);
  list.writes();
  if (x.writes_carry) list.carry();
  for (Range r : x.writes()) list.range(r);
  add_subroutine(f, f[i], list);
  end_list(f, list, x.guarded);
}

}  // namespace

Facts facts_of(const isa::Target& target, const Inst& inst) {
  Facts facts;
  NoList none;
  gather(target, inst, form_facts().get(inst.sass.form, target), facts, none);
  return facts;
}

Survey survey(Function& f) {
  f.facts.clear();
  f.facts.reserve(f.insts.size() + f.insts.size() / 4 + 64);
  f.facts.resize(f.insts.size());
  start_lists(f);
  f.units.items.reserve(f.insts.size() * 8 + 64);
  f.units.count = f.units.first_gpr + static_cast<uint32_t>(f.gprs.size());
  Survey survey{.units = f.arena->make_span<UnitUse>(f.units.count, UnitUse{})};
  const AllFormFacts& forms = form_facts();
  const Numbering numbering(f.units);
  const Inst* const insts = f.insts.data();
  Facts* const all_facts = f.facts.data();
  UnitUse* const uses = survey.units.data();
  const uint32_t first_gpr = f.units.first_gpr;
  uint32_t crossing = 0;
  for (BlockId b : f.layout) {
    const uint32_t block = index(b);
    for (InstId id : f.blocks[b].code) {
      const uint32_t i = index(id);
      Facts& x = all_facts[i];
      List list = begin_list(f, numbering, id, 4 * x.ranges.size() + 3 + words_of_subroutine(f, insts[i]));
      gather(*f.target, insts[i], forms.get(insts[i].sass.form, *f.target), x, list);
      add_subroutine(f, insts[i], list);
      bool crosses = false;
      for (const uint32_t* u = list.begin + 1; u < list.first_write; ++u) {
        UnitUse& use = uses[*u];
        ++use.readers;
        const bool from_elsewhere = (use.block != block) & f.units.is_allocated(*u);  // follows no pattern: no branches
        crossing += from_elsewhere & (*u >= first_gpr) & !use.crosses;
        use.crosses |= from_elsewhere, crosses |= from_elsewhere;
      }
      const bool zero = x.copies & (x.read_count == x.guarded);  // of RZ
      survey.zeros |= zero;
      for (const uint32_t* w = list.first_write; w < list.at; ++w) {
        UnitUse& use = uses[*w];
        use.zero = zero & (use.zero | (use.inst == UINT32_MAX));
        use.several |= use.inst != UINT32_MAX;
        use.inst = i, use.block = block;
      }
      x.crosses = crosses;
      end_list(f, list, x.guarded);
    }
    if (f.blocks[b].predicate >= isa::first_virtual)
      ++uses[f.units.of(Range::predicate, f.blocks[b].predicate)].readers;
  }
  survey.crossing = crossing;
  return survey;
}

void list_units(Function& f) {
  start_lists(f);
  const Numbering numbering(f.units);
  for (BlockId b : f.layout)
    for (InstId i : f.blocks[b].code) append_list(f, numbering, i);
}

void list_units(Function& f, InstId i) {
  if (f.units.begin.size() <= index(i)) f.units.begin.resize(index(i) + 1);
  append_list(f, Numbering(f.units), i);
}

}  // namespace rndn::assembler
