// What instructions read and write, and all else that passes ask about them: gathered once, after selection, in one walk over the code.
//
// Facts of an instruction begin as a record that its form's row gives; the registers are added. survey() gathers them, lists the units of every
// instruction (ir.h), and notes per unit how many read it, where it is written, and whether it is read in a block that has not written it before.
// Passes that add or change an instruction ask for its facts, and list its units, again. Cost: O(operands).
#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <vector>

#include "assembler/build.h"
#include "assembler/isa/latencies.h"
#include "assembler/passes.h"
#include "libraries/base/check.h"
#include "libraries/base/lazy_table.h"

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
  for (L c : {L::barrier, L::fence, L::branch, L::convergence, L::wait, L::async_copy, L::nop})
    set(c, Memory::fence, true);
  for (L c : {L::branch, L::barrier, L::fence, L::wait}) table[static_cast<size_t>(c)].stalls = true;
  return table;
}();

// What a row says about every instruction of its form.
struct FormFacts {
  // An operand that names registers.
  struct Named {
    Range range;  // of register 0, and of one register where modifiers decide about the width
    uint8_t operand = 0;
    uint8_t left_out = 0;  // the zero or true register
    bool asks = false;     // modifiers decide about the width
  };
  Facts prototype;                // what holds for all
  std::array<Named, 10> named{};  // reads, then writes; no row names more
  uint8_t reads = 0, count = 0;
  uint8_t addresses = 0;  // operands that may name a uniform register too
  Range guard;
  bool asks_target = false;     // who announces its results, and reads late
  bool asks_modifiers = false;  // its latency, or whether it touches the condition code
  bool writes_uniform = false;
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
    form.named[k] = {.range = Range(0, x.width ? x.width : 1, static_cast<Range::File>(x.file), x.operand),
                     .operand = x.operand,
                     .left_out = left_out[x.file],
                     .asks = x.width == 0};
    form.writes_uniform |= k >= row.named_reads && x.file >= Range::uniform;
  }
  form.reads = row.named_reads, form.count = row.named_count;
  form.addresses = row.addresses;
  form.guard = Range(0, 1, row.uniform_guard ? Range::uniform_predicate : Range::predicate, Range::guard_operand);
  form.asks_modifiers = row.latency == L::cs2r || row.carry;
  form.asks_target = row.latency == L::fp64 || row.latency == L::register_to_uniform;
  Facts& facts = form.prototype;
  const ClassFacts& c = class_facts[static_cast<size_t>(row.latency)];
  const isa::Scoreboards scoreboards = isa::scoreboards(target, row.latency);
  facts.latency = row.latency;
  facts.memory = c.memory;
  facts.pinned = c.pinned;
  facts.generic = row.mnemonic == Mnemonic::LD || row.mnemonic == Mnemonic::ST || row.mnemonic == Mnemonic::ATOM;
  facts.announced = scoreboards.write;
  facts.late = scoreboards.read || row.latency == L::fence;  // CCTL has an address
  facts.copies = row.mnemonic == Mnemonic::MOV && (row.gprs & 2);
  facts.ordered = c.memory != Memory::none || c.pinned || row.latency == L::vote;
  facts.late_carry = row.carry && row.mnemonic == Mnemonic::IMNMX;
  if (row.latency == L::convergence && target.family == isa::Family::volta) {
    facts.least_stall = row.mnemonic == Mnemonic::BSSY ? 2 : 12;
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

inline Facts facts_of(const isa::Target& target, const Inst& inst, const FormFacts& form) {
  const isa::Instruction& s = inst.sass;
  Facts facts = form.prototype;
  Range* at = facts.ranges.data();
  const auto add_named = [&](const FormFacts::Named* x, const FormFacts::Named* end) {
    for (; x < end; ++x) {
      const uint32_t reg = s.operands[x->operand].reg;
      *at = x->range.of_register(reg);
      if (x->asks) *at = at->of_width(std::max(1u, isa::register_count(s, x->operand)));
      at += reg != x->left_out;
    }
  };
  const FormFacts::Named* const named = form.named.data();
  add_named(named, named + form.reads);
  for (uint32_t set = form.addresses; set; set &= set - 1) {
    const uint32_t k = static_cast<uint32_t>(std::countr_zero(set));
    if (const isa::Operand& o = s.operands[k]; o.uniform != isa::URZ)
      *at++ = Range(o.uniform, o.descriptor ? 2 : 1, Range::uniform, k);
  }
  *at = form.guard.of_register(s.guard);
  facts.guarded = s.guard != isa::PT;
  at += facts.guarded;
  facts.read_count = static_cast<uint8_t>(at - facts.ranges.data());
  add_named(named + form.reads, named + form.count);
  facts.count = static_cast<uint8_t>(at - facts.ranges.data());
  if (inst.pinned | inst.cooperative)
    facts.pinned |= inst.pinned, facts.cooperative = inst.cooperative, facts.ordered = true;
  if (form.writes_uniform)
    for (Range r : facts.writes()) facts.writes_elsewhere |= !r.allocated();
  if (form.asks_modifiers) {
    if (facts.latency == L::cs2r) facts.latency = isa::latency_class(s);
    facts.reads_carry = isa::reads_carry(s), facts.writes_carry = isa::writes_carry(s);
  }
  if (form.asks_target) {
    const isa::Scoreboards scoreboards = isa::scoreboards(target, facts.latency);
    facts.announced = scoreboards.write, facts.late = scoreboards.read;
  }
  facts.announced &= facts.count > facts.read_count;
  return facts;
}

// Appends the lists of instructions.
class Lister {
 public:
  explicit Lister(Function& f) : f_(f), u_(f.units) {}
  // Numbers all units anew and forgets all lists.
  void start() {
    u_.predicates = static_cast<uint32_t>(f_.temporary_predicate.size());
    u_.first_gpr = u_.predicates + Units::others;
    u_.items.clear();
    u_.begin.resize(f_.insts.size());
    number();
  }
  void number() {
    base_ = {u_.first_gpr - isa::first_virtual, 0u - isa::first_virtual, u_.predicates, u_.predicates + isa::URZ};
    carry_ = u_.first_gpr - 1;
  }
  // use(unit, written) for each.
  template <class F>
  void add(InstId i, const Facts& x, F&& use) {
    RawVector<uint32_t>& items = u_.items;
    const size_t used = items.size();
    items.resize(used + x.most_units());
    uint32_t *const list = items.data() + used, *at = list + 1;
    u_.begin[index(i)] = static_cast<uint32_t>(used);
    if (x.reads_carry) *at++ = carry_;
    uint32_t* writes = nullptr;
    const Range* r = x.ranges.data();
    const Range *const first_write = r + x.read_count, *const end = r + x.count;
    for (;; ++r) {
      if (r == first_write) {
        writes = at;
        if (x.writes_carry) *at++ = carry_;
      }
      if (r == end) break;
      if (r->allocated() && r->reg() < isa::first_virtual) continue;
      uint32_t u = r->reg() + base_[r->file()];
      for (const uint32_t last = u + r->width() - 1;; ++u) {
        *at++ = u;
        use(u, writes != nullptr);
        if (u == last) break;
      }
    }
    if (x.guarded)
      for (uint32_t* w = writes; w < at; ++w)
        if (u_.is_allocated(*w) &&
            !(u_.is_gpr(*w) ? f_.gprs[*w - u_.first_gpr].temporary : bool{f_.temporary_predicate[*w]}))
          *w |= Units::lasts;
    *list = static_cast<uint32_t>(writes - list - 1) | static_cast<uint32_t>(at - writes) << 16;
    items.resize(static_cast<size_t>(at - items.data()));
  }

 private:
  Function& f_;
  Units& u_;
  std::array<uint32_t, 4> base_{};  // by file
  uint32_t carry_ = 0;
};

}  // namespace

Facts facts_of(const isa::Target& target, const Inst& inst) {
  return facts_of(target, inst, form_facts().get(inst.sass.form, target));
}

Survey survey(Function& f) {
  f.facts.clear();
  f.facts.reserve(f.insts.size() + f.insts.size() / 4 + 64);
  f.facts.resize(f.insts.size());
  Lister lister(f);
  lister.start();
  f.units.items.reserve(f.insts.size() * 8);
  f.units.count = f.units.first_gpr + static_cast<uint32_t>(f.gprs.size());
  Survey survey{.units = f.arena->make_span<UnitUse>(f.units.count, UnitUse{})};
  const AllFormFacts& forms = form_facts();
  for (BlockId b : f.layout) {
    const uint32_t block = index(b);
    for (InstId i : f.blocks[b].code) {
      Facts& x = *new (&f.facts[index(i)]) Facts(facts_of(*f.target, f[i], forms.get(f[i].sass.form, *f.target)));
      bool crosses = false;
      lister.add(i, x, [&](uint32_t unit, bool written) {
        UnitUse& u = survey.units[unit];
        if (written) {
          u.several |= u.inst != UINT32_MAX;
          u.inst = index(i), u.block = block;
          return;
        }
        ++u.readers;
        if (u.block == block || !f.units.is_allocated(unit)) return;
        survey.crossing += f.units.is_gpr(unit) && !u.crosses;
        u.crosses = crosses = true;
      });
      x.crosses = crosses;
    }
    if (f.blocks[b].predicate >= isa::first_virtual)
      ++survey.units[f.units.of(Range::predicate, f.blocks[b].predicate)].readers;
  }
  return survey;
}

void list_units(Function& f) {
  Lister lister(f);
  lister.start();
  for (BlockId b : f.layout)
    for (InstId i : f.blocks[b].code) lister.add(i, f.facts[index(i)], [](uint32_t, bool) {});
}

void list_units(Function& f, InstId i) {
  Lister lister(f);
  lister.number();
  if (f.units.begin.size() <= index(i)) f.units.begin.resize(index(i) + 1);
  lister.add(i, f.facts[index(i)], [](uint32_t, bool) {});
}

}  // namespace rndn::assembler
