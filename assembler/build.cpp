// See build.h.
#include "assembler/build.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include "assembler/isa/latencies.h"

namespace rndn::assembler {

using isa::Mnemonic;
using isa::ModifierKind;
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
  Facts prototype;                                   // what holds for all
  std::array<Named, 2 * isa::max_operands> named{};  // reads, then writes
  uint8_t reads = 0, count = 0;
  uint8_t addresses = 0;  // operands that may name a uniform register too
  Range guard;
  bool asks_target = false;     // who announces its results, and reads late
  bool asks_modifiers = false;  // its latency, or whether it touches the condition code
  bool writes_uniform = false;
};

FormFacts facts_of_form(isa::FormId id) {
  const isa::RowFacts& row = isa::row_facts(id);
  FormFacts form;
  constexpr std::array<uint8_t, 4> left_out = {isa::RZ, isa::PT, isa::URZ, isa::PT};  // by file
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
  const isa::Target* target = nullptr;  // any of the family
  for (const isa::Target& t : isa::known_targets())
    if (t.family == isa::form_family(id)) target = &t;
  Facts& facts = form.prototype;
  const ClassFacts& c = class_facts[static_cast<size_t>(row.latency)];
  const isa::Scoreboards scoreboards = isa::scoreboards(*target, row.latency);
  facts.latency = row.latency;
  facts.memory = c.memory;
  facts.pinned = c.pinned;
  facts.generic = row.mnemonic == Mnemonic::LD || row.mnemonic == Mnemonic::ST || row.mnemonic == Mnemonic::ATOM;
  facts.announced = scoreboards.write;
  facts.late = scoreboards.read || row.latency == L::fence;  // CCTL has an address
  facts.copies = row.mnemonic == Mnemonic::MOV && (row.gprs & 2);
  facts.late_carry = row.carry && row.mnemonic == Mnemonic::IMNMX;
  if (row.latency == L::convergence && target->family == isa::Family::volta) {
    facts.least_stall = row.mnemonic == Mnemonic::BSSY ? 2 : 12;
  } else if (c.stalls) {
    isa::Instruction any;
    any.form = id, any.mnemonic = row.mnemonic;
    facts.least_stall = isa::minimum_stall(*target, any);
  }
  return form;
}

// By FormId; made once, on first use.
const std::vector<FormFacts>& form_facts() {
  static const std::vector<FormFacts> forms = [] {
    std::vector<FormFacts> all;
    all.reserve(isa::form_count());
    for (uint32_t id = 0; id < isa::form_count(); ++id) all.push_back(facts_of_form(isa::FormId{id}));
    return all;
  }();
  return forms;
}

Facts facts_of(const isa::Target& target, const Inst& inst, const FormFacts& form) {
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
  facts.pinned |= inst.pinned;
  facts.cooperative = inst.cooperative;
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

}  // namespace

isa::Operand address(uint32_t reg, int64_t offset, bool wide, bool descriptor) {
  isa::Operand o{.kind = isa::OperandKind::address, .reg = reg, .value = offset};
  o.wide = wide;
  if (descriptor) o.descriptor = true, o.uniform = descriptor_register;
  return o;
}

uint32_t new_gpr(Function& f, uint32_t width, bool temporary) {
  CHECK(f.gprs.size() < Range::max_register - isa::first_virtual - 4, "too many registers");
  // Units of a wide value are numbered from a multiple of its width, so that the same arithmetic works before and after allocation.
  while (f.gprs.size() % width != 0) f.gprs.push_back({static_cast<uint32_t>(f.gprs.size()), 1, true, false});
  uint32_t first = static_cast<uint32_t>(f.gprs.size());
  for (uint32_t w = 0; w < width; ++w) f.gprs.push_back({first, static_cast<uint8_t>(width), temporary, false});
  return isa::first_virtual + first;
}
uint32_t new_predicate(Function& f, bool temporary) {
  f.temporary_predicate.push_back(temporary);
  return isa::first_virtual + static_cast<uint32_t>(f.temporary_predicate.size() - 1);
}

Facts facts_of(const isa::Target& target, const Inst& inst) {
  return facts_of(target, inst, form_facts()[index(inst.sass.form)]);
}

void gather_facts(Function& f) {
  const FormFacts* const forms = form_facts().data();
  f.facts.clear();
  f.facts.reserve(f.insts.size() + f.insts.size() / 4 + 64);
  for (const Inst& inst : f.insts) new (&f.facts.push()) Facts(facts_of(*f.target, inst, forms[index(inst.sass.form)]));
}

void RegisterLists::set(InstId i, const Facts& x) {
  if (begin_.size() <= index(i)) begin_.resize(index(i) + 1);
  if (used_ + x.most_units() > items_.size()) items_.resize(2 * (used_ + x.most_units()));
  begin_[index(i)] = static_cast<uint32_t>(used_);
  uint16_t *const list = items_.data() + used_, *next = list + 1;
  const auto add = [&](const Range* r, const Range* end) {
    for (; r < end; ++r) {
      uint32_t number = base[r->file()] + r->reg();
      *next++ = static_cast<uint16_t>(number);
      for (uint32_t w = r->width(); w > 1; --w) *next++ = static_cast<uint16_t>(++number);
    }
  };
  const Range* const ranges = x.ranges.data();
  add(ranges, ranges + x.read_count);
  const uint16_t* const writes = next;
  add(ranges + x.read_count, ranges + x.count);
  *list = static_cast<uint16_t>((writes - list - 1) | (next - writes) << 8);
  used_ = static_cast<size_t>(next - items_.data());
}

InstId add_inst(Function& f, const Inst& inst) {
  const InstId id = static_cast<InstId>(f.insts.size());
  f.insts.push_back(inst);
  new (&f.facts.push()) Facts(facts_of(*f.target, f.insts.back()));
  if (f.allocated) f.registers.set(id, f.facts.back());
  return id;
}

Inst make_inst(const isa::Target& target, Mnemonic mnemonic, std::initializer_list<isa::Operand> operands,
               isa::FormCache* forms) {
  Inst inst;
  const std::span<const isa::Operand> list(operands.begin(), operands.size());
  const bool made =
      forms ? isa::make(target, mnemonic, list, inst.sass, *forms) : isa::make(target, mnemonic, list, inst.sass);
  if (!made) {
    std::string kinds;
    for (const isa::Operand& o : operands) kinds += fmt::format(" {}", static_cast<int>(o.kind));
    CHECK(made, "{} has no form of {} with operand kinds{}", target.name, isa::mnemonic_name(mnemonic), kinds);
  }
  return inst;
}

Inst spill_load(const isa::Target& target, uint32_t reg, uint32_t width, uint32_t offset) {
  Inst i = make_inst(target, Mnemonic::LDL, {gpr(reg), address(stack_register, offset, false, false)});
  isa::set_modifier(i.sass, ModifierKind::Size, width == 1 ? 4 : width == 2 ? 5 : 6);
  return i;
}
Inst spill_store(const isa::Target& target, uint32_t reg, uint32_t width, uint32_t offset) {
  Inst i = make_inst(target, Mnemonic::STL, {address(stack_register, offset, false, false), gpr(reg)});
  isa::set_modifier(i.sass, ModifierKind::Size, width == 1 ? 4 : width == 2 ? 5 : 6);
  return i;
}
Inst gpr_from_predicate(const isa::Target& target, uint32_t reg, uint32_t p) {
  return make_inst(target, Mnemonic::SEL, {gpr(reg), gpr(isa::RZ), immediate(1), predicate(p, true)});
}
Inst predicate_from_gpr(const isa::Target& target, uint32_t p, uint32_t reg) {
  Inst i = make_inst(target, Mnemonic::ISETP,
                     {predicate(p), predicate(isa::PT), gpr(reg), gpr(isa::RZ), predicate(isa::PT)});
  isa::set_modifier(i.sass, ModifierKind::Compare, 5);
  return i;
}
std::vector<Inst> stack_prologue(const isa::Target& target, uint32_t frame_bytes) {
  std::vector<Inst> code;
  code.push_back(make_inst(target, Mnemonic::MOV, {gpr(stack_register), constant(0, target.stack_offset)}));
  if (target.family == isa::Family::volta)
    code.push_back(make_inst(target, Mnemonic::IADD3,
                             {gpr(stack_register), predicate(isa::PT), predicate(isa::PT), gpr(stack_register),
                              immediate(-static_cast<int64_t>(frame_bytes)), gpr(isa::RZ)}));
  else
    code.push_back(
        make_inst(target, Mnemonic::IADD32I,
                  {gpr(stack_register), gpr(stack_register), immediate(-static_cast<int64_t>(frame_bytes))}));
  return code;
}

}  // namespace rndn::assembler
