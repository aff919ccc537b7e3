// See build.h.
#include "assembler/build.h"

#include <array>
#include <bit>

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

void describe(Inst& inst) {
  const isa::Instruction& s = inst.sass;
  const isa::RowFacts& row = isa::row_facts(s.form);
  for (uint32_t k = 0; k < s.operand_count; ++k) {
    const uint32_t bit = 1u << k;
    Use& u = inst.uses[k];
    u = Use{};
    if (!((row.reads | row.writes) & bit)) continue;
    u.access = row.reads & row.writes & bit ? isa::Access::read_write
               : row.writes & bit           ? isa::Access::write
                                            : isa::Access::read;
    u.file = row.gprs & bit                 ? isa::RegisterFile::gpr
             : row.predicates & bit         ? isa::RegisterFile::predicate
             : row.uniforms & bit           ? isa::RegisterFile::uniform
             : row.uniform_predicates & bit ? isa::RegisterFile::uniform_predicate
             : row.other_files & bit        ? isa::RegisterFile::barrier
                                            : isa::RegisterFile::none;
    const uint32_t width = row.modified_widths & bit ? isa::register_count(s, k) : row.widths[k];
    u.count = static_cast<uint8_t>(u.file == isa::RegisterFile::none ? 0 : width) & 7;
  }
  inst.latency = row.latency == isa::LatencyClass::cs2r ? isa::latency_class(s) : row.latency;
  if (row.carry) inst.reads_carry = isa::reads_carry(s), inst.writes_carry = isa::writes_carry(s);
  inst.uniform_guard = row.uniform_guard;
  const ClassFacts& c = class_facts[static_cast<size_t>(inst.latency)];
  inst.memory = c.memory;
  inst.pinned |= c.pinned;
}

Facts facts_of(const isa::Target& target, const Inst& inst) {
  const isa::Instruction& s = inst.sass;
  const isa::RowFacts& row = isa::row_facts(s.form);
  Facts facts;
  Range* at = facts.ranges.data();
  const auto add = [&](uint32_t reg, uint32_t width, uint32_t file, uint32_t operand) {
    *at++ = Range(reg, width, static_cast<Range::File>(file), operand);
  };
  uint32_t files = 0;  // or of the numbers of those named last: 2 and 3 are not allocated
  const auto add_named = [&](const isa::RowFacts::Named* x, const isa::RowFacts::Named* end) {
    constexpr std::array<uint8_t, 4> always = {isa::RZ, isa::PT, isa::URZ, isa::PT};  // by file: zero and true
    files = 0;
    for (; x < end; ++x) {
      const uint32_t reg = s.operands[x->operand].reg;
      if (reg == always[x->file]) continue;
      files |= x->file;
      add(reg, x->width ? x->width : isa::register_count(s, x->operand), x->file, x->operand);
    }
  };
  const isa::RowFacts::Named* const named = row.named.data();
  add_named(named, named + row.named_reads);
  for (uint32_t set = row.addresses; set; set &= set - 1) {
    const uint32_t k = static_cast<uint32_t>(std::countr_zero(set));
    if (const isa::Operand& o = s.operands[k]; o.uniform != isa::URZ)
      add(o.uniform, o.descriptor ? 2 : 1, Range::uniform, k);
  }
  const bool guarded = s.guard != isa::PT;
  if (guarded) add(s.guard, 1, row.uniform_guard ? Range::uniform_predicate : Range::predicate, Range::guard_operand);
  const uint8_t read_count = static_cast<uint8_t>(at - facts.ranges.data());
  add_named(named + row.named_reads, named + row.named_count);
  const uint8_t count = static_cast<uint8_t>(at - facts.ranges.data());
  const L latency = row.latency == L::cs2r ? isa::latency_class(s) : row.latency;
  const ClassFacts& c = class_facts[static_cast<size_t>(latency)];
  const isa::Scoreboards scoreboards = isa::scoreboards(target, latency);
  facts.read_count = read_count, facts.count = count;
  facts.latency = latency;
  facts.memory = c.memory;
  facts.pinned = c.pinned | inst.pinned;
  facts.cooperative = inst.cooperative;
  facts.guarded = guarded;
  facts.generic = (s.mnemonic == Mnemonic::LD) | (s.mnemonic == Mnemonic::ST) | (s.mnemonic == Mnemonic::ATOM);
  facts.announced = scoreboards.write & (count > read_count);
  facts.late = scoreboards.read | (latency == L::fence);  // CCTL has an address
  facts.copies = (s.mnemonic == Mnemonic::MOV) & (s.operands[1].kind == isa::OperandKind::gpr);
  facts.writes_elsewhere = files >= Range::uniform;
  if (row.carry) {
    facts.reads_carry = isa::reads_carry(s), facts.writes_carry = isa::writes_carry(s);
    facts.late_carry = s.mnemonic == Mnemonic::IMNMX;
  }
  if (latency == L::convergence && target.family == isa::Family::volta)
    facts.least_stall = s.mnemonic == Mnemonic::BSSY ? 2 : 12;
  else if (c.stalls)
    facts.least_stall = isa::minimum_stall(target, s);
  return facts;
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

InstId add_inst(Function& f, Inst inst) {
  const InstId id = static_cast<InstId>(f.insts.size());
  f.facts.push_back(facts_of(*f.target, inst));
  f.insts.push_back(std::move(inst));
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
