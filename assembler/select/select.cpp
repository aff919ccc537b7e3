// Instruction selection, the part that both families share.
//
// What it does: walks the blocks that flow/structurize.cpp made and emits SASS over virtual registers for every PTX instruction. A PTX register is a
// value of 1, 2 or 4 units (8- and 16-bit registers take a whole unit whose upper bits are undefined: readers extend).
//
// Cheap forwarding while walking, all on registers with a single unguarded definition: copies share their source's register, as do reads of a special
// register that one in the entry or before in the block has read; constants, sizes of block and grid and
// 32-bit or f64 parameters become operands of their users (constant bank or immediate), `base + constant` becomes an address offset, and the
// results of vector loads are named inside the loaded quad. The negative and the magnitude of a float are the float with a sign where its reader has
// room. Definitions that lose all their users this way are removed as dead code. In loops the definition must dominate its readers, so that none reads the
// value of the round before.
//
// Invariant: an expansion writes its destination last, or only after it has read the sources that the destination may be; what it writes before
// are temporaries. Temporaries are computed without the guard, so that their lives stay short; memory operations and final writes carry it.
// Cost: O(instructions).
#include "assembler/select/select.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

namespace rndn::assembler {

using ptx::Opcode;
using ptx::Type;
using OperandKind = ptx::Operand;

Selector::Selector(const ptx::Module& module, const ptx::Function& function, const Flow& flow,
                   const ptx::SharedLayout& shared, const Options& options, isa::FormCache& forms, Arena& arena)
    : m_(module),
      p_(function),
      flow_(flow),
      shared_(shared),
      options_(options),
      t_(*options.target),
      forms_(forms),
      arena_(arena) {}

// --- services ---------------------------------------------------------------------------------------------------------------------

// Literals of these are the high words of doubles.
static bool is_wide_float(Mnemonic m) {
  return m == Mnemonic::DADD || m == Mnemonic::DMUL || m == Mnemonic::DFMA || m == Mnemonic::DSETP ||
         m == Mnemonic::DMNMX || m == Mnemonic::DSET;
}

// An immediate that the form has no room for goes to a register, but for a move's: that register would be filled by the same move.
Emitted Selector::emit_with_copies(Mnemonic m, std::span<const Op> operands) {
  isa::Instruction made;
  const bool move = m == Mnemonic::MOV || m == Mnemonic::MOV32I;
  std::array<Op, isa::max_operands> copy{};
  std::copy(operands.begin(), operands.end(), copy.begin());
  bool found = false;
  for (size_t k = move ? 0 : operands.size(); k-- > 0 && !found;) {
    if (!is_immediate(copy[k]) && copy[k].kind != isa::OperandKind::constant) continue;
    Op original = copy[k];
    // Pascal's literals of 32 bits that the form has no room for stay in the constant bank.
    if (t_.family == isa::Family::pascal && is_immediate(original) && !is_wide_float(m)) {
      copy[k] = constant(2, 0);
      if (isa::make(t_, m, {copy.data(), operands.size()}, made)) {
        copy[k].value = bank2(static_cast<uint32_t>(plain(original).value), 4);
        found = isa::make(t_, m, {copy.data(), operands.size()}, made);
        continue;
      }
    }
    copy[k] = gpr(isa::RZ);
    if (isa::make(t_, m, {copy.data(), operands.size()}, made)) {
      copy[k] = as_register(original);
      found = isa::make(t_, m, {copy.data(), operands.size()}, made);
    } else {
      copy[k] = original;
    }
  }
  if (found) {
    Inst& inst = add_blank();
    inst.sass = made;
    return place(inst, isa::row_facts(made.form));
  }
  std::string kinds;
  for (const Op& o : operands) kinds += fmt::format(" {}", static_cast<int>(o.kind));
  if (error_.empty())
    unsupported_here(fmt::format("{} has no form of {} with operand kinds{}", t_.name, isa::mnemonic_name(m), kinds));
  return {};
}

// Gives the instruction made last what it has of the statement.
Emitted Selector::place(Inst& inst, const isa::RowFacts& row) {
  inst.line = current_ ? current_->line : 0;
  if (f_.calls)
    for (uint32_t k = 0; k < inst.sass.operand_count; ++k)
      if (inst.sass.operands[k].descriptor) inst.sass.operands[k].uniform = descriptor_;
  if (guard_.reg != isa::PT) guard(inst, row);
  return {&inst.sass, &row};
}

void Selector::enter(BlockId b) {
  std::vector<InstId>& code = f_.blocks[block_].code;
  const size_t made = f_.insts.size() - placed_, before = code.size();
  code.resize(before + made);
  for (size_t k = 0; k < made; ++k) code[before + k] = static_cast<InstId>(placed_ + k);
  placed_ += static_cast<uint32_t>(made);
  block_ = b;
}

// Gives the instruction the guard of the statement, unless it computes temporaries alone.
void Selector::guard(Inst& inst, const isa::RowFacts& row) {
  const auto each = [](uint32_t set, auto&& use) {
    for (; set; set &= set - 1) use(static_cast<uint32_t>(std::countr_zero(set)));
  };
  // Pure computations of temporaries run unguarded.
  bool writes = false, only_temporaries = true;
  each(row.writes & row.gprs, [&](uint32_t k) {
    const uint32_t r = inst.sass.operands[k].reg;
    if (r == isa::RZ) return;
    writes = true;
    if (r < isa::first_virtual || !f_.gprs[r - isa::first_virtual].temporary) only_temporaries = false;
  });
  each(row.writes & row.predicates, [&](uint32_t k) {
    const uint32_t r = inst.sass.operands[k].reg;
    if (r == isa::PT) return;
    writes = true;
    if (r < isa::first_virtual || !f_.predicates[r - isa::first_virtual].temporary) only_temporaries = false;
  });
  // What such a computation reads may have been written under this guard alone: then it has no value for the other lanes.
  bool conditional = false;
  const auto ranges = [&](uint32_t set, auto&& use) {
    each(set & (row.gprs | row.predicates), [&](uint32_t k) {
      const uint32_t r = inst.sass.operands[k].reg, bit = 1u << k;
      if (r < isa::first_virtual) return;
      const bool p = (row.predicates & bit) != 0;
      const uint32_t n = p ? 1 : row.widths[k].ask ? isa::register_count(inst.sass, k) : row.widths[k].of(inst.sass);
      for (uint32_t w = 0; w < n; ++w) use(2 * (r + w) + p);
    });
  };
  const bool memory = row.addresses != 0;
  if (writes && only_temporaries && !memory && !conditional_.empty())
    ranges(row.reads, [&](uint32_t r) {
      conditional |= r / 64 < is_conditional_.size() && (is_conditional_[r / 64] >> r % 64 & 1);
    });
  if (!writes || !only_temporaries || memory || conditional) {
    inst.sass.guard = guard_.reg, inst.sass.guard_negated = guard_.negated;
    const auto mark = [&](uint32_t r) { mark_conditional(r); };
    ranges(row.writes, mark);
    // Modifiers are set after this, that of a load's width, too: the whole value, then.
    each(row.writes & row.gprs, [&](uint32_t k) {
      const uint32_t r = inst.sass.operands[k].reg - isa::first_virtual;
      if (r >= f_.gprs.size()) return;
      for (uint32_t w = r + 1; w < f_.gprs[r].first + f_.gprs[r].width; ++w) mark(2 * (w + isa::first_virtual));
    });
  }
}

Op Selector::plain(Op o) {
  if (is_immediate(o) && o.negated) o.negated = false, o.value = static_cast<int32_t>(-static_cast<uint32_t>(o.value));
  return o;
}
Op Selector::copied(Op o) {
  if (is_zero(o)) return gpr(isa::RZ);
  Op source = is_immediate(o) ? plain(o) : o;
  source.negated = source.absolute = false;
  Op t = temp();
  mov(t.reg, source);
  if (!is_immediate(o)) t.negated = o.negated, t.absolute = o.absolute;
  return t;
}
Op Selector::keep_register(Op o) {
  if (is_register(o)) return o;
  bool negative = o.negated;
  o.negated = false;
  Op t = as_register(o);
  t.negated = negative;
  return t;
}
Op Selector::pair_register(Wide w) {
  if (is_register(w.lo) && is_register(w.hi)) {
    if (w.lo.reg == isa::RZ && w.hi.reg == isa::RZ) return gpr(isa::RZ);
    if (w.lo.reg >= isa::first_virtual && w.hi.reg == w.lo.reg + 1 && (w.lo.reg % 2) == 0 &&
        f_.gprs[w.lo.reg - isa::first_virtual].width >= 2 && !w.lo.negated)
      return w.lo;
  }
  Op t = temp(2);
  mov64(t.reg, w);
  return t;
}

void Selector::unsupported(const ptx::Instruction& i, std::string_view why) {
  if (!error_.empty()) return;
  error_line_ = i.line;
  std::string text = ptx::print(m_, p_, i);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  size_t from = text.find_first_not_of(" \t\n");
  error_ = fmt::format("function {}, line {}: unsupported instruction `{}`{}{} on {}", p_.name, i.line,
                       from == std::string::npos ? text : text.substr(from), why.empty() ? "" : ": ", why, t_.name);
}
void Selector::unsupported_here(std::string_view why) {
  if (current_)
    unsupported(*current_, why);
  else if (error_.empty())
    error_ = fmt::format("function {}: {}", p_.name, why);
}

uint32_t Selector::destination(const ptx::Operand& o) {
  if (o.kind == OperandKind::sink) return isa::RZ;
  return registers_[o.id].first;
}

Op Selector::other_source(const ptx::Operand& o, Type type) {
  switch (o.kind) {
    case OperandKind::immediate: {
      uint64_t v = static_cast<uint64_t>(o.value);
      if (ptx::type_bytes(type) == 2 && !ptx::is_signed(type)) v &= 0xffff;
      return static_cast<uint32_t>(v) == 0 ? gpr(isa::RZ) : immediate(static_cast<int32_t>(v));
    }
    case OperandKind::special: {
      Op t = temp();
      special_register(t.reg, static_cast<ptx::SpecialRegister>(o.id));
      return t;
    }
    case OperandKind::variable: {
      const ptx::Variable& v = m_.variables[o.variable_id()];
      if (v.space == ptx::Space::shared) return immediate(t_.shared_base + shared_.offsets[o.id] + o.value);
      if (v.space == ptx::Space::constant) {
        const int64_t at = constants_.offsets[o.id] + o.value;
        return at ? immediate(at) : gpr(isa::RZ);
      }
      if (v.space == ptx::Space::local) {
        Op t = temp();
        add(t.reg, gpr(stack_register), immediate(local_.offsets[o.id] + o.value));
        return t;
      }
      break;
    }
    case OperandKind::parameter: return immediate(t_.parameter_base + parameter_offsets_[o.id] + o.value);
    default: break;
  }
  unsupported_here("operand");
  return gpr(isa::RZ);
}

Wide Selector::other_source64(const ptx::Operand& o) {
  switch (o.kind) {
    case OperandKind::immediate: {
      auto half = [](uint32_t v) { return v == 0 ? gpr(isa::RZ) : immediate(static_cast<int32_t>(v)); };
      return {half(static_cast<uint32_t>(o.value)), half(static_cast<uint32_t>(static_cast<uint64_t>(o.value) >> 32))};
    }
    case OperandKind::special: {
      Op t = temp(2);
      special_register(t.reg, static_cast<ptx::SpecialRegister>(o.id));
      return {t, gpr(t.reg + 1)};
    }
    case OperandKind::variable: {
      const ptx::Variable& v = m_.variables[o.variable_id()];
      if (v.space == ptx::Space::shared || v.space == ptx::Space::local || v.space == ptx::Space::constant)
        return {source(o, Type::u32), gpr(isa::RZ)};
      if (v.space == ptx::Space::global) {
        Op t = temp(2);
        variable_address(t.reg, o.variable_id());
        if (o.value == 0) return {t, gpr(t.reg + 1)};
        Op sum = temp(2);
        add64(sum.reg, {t, gpr(t.reg + 1)}, source64({OperandKind::immediate, false, 0, 0, o.value}), false);
        return {sum, gpr(sum.reg + 1)};
      }
      break;
    }
    case OperandKind::parameter: return {source(o, Type::u32), gpr(isa::RZ)};
    default: break;
  }
  unsupported_here("operand");
  return {gpr(isa::RZ), gpr(isa::RZ)};
}

uint32_t Selector::bank2(uint64_t bits, uint32_t bytes) {
  std::vector<std::byte>& c = f_.constants;
  for (size_t at = 0; at + bytes <= c.size(); at += bytes)
    if (std::memcmp(&c[at], &bits, bytes) == 0) return static_cast<uint32_t>(at);
  while (c.size() % bytes) c.push_back(std::byte{0});
  size_t at = c.size();
  c.resize(at + bytes);
  std::memcpy(&c[at], &bits, bytes);
  return static_cast<uint32_t>(at);
}

Op Selector::source_f64(const ptx::Operand& o) {
  if (o.kind == OperandKind::immediate) {
    uint64_t bits = static_cast<uint64_t>(o.value);
    if (bits == 0) return gpr(isa::RZ);
    const bool narrow =
        t_.family == isa::Family::volta ? static_cast<uint32_t>(bits) == 0 : (bits & 0x00000fffffffffff) == 0;
    if (narrow) return immediate(static_cast<int32_t>(bits >> 32));
    return constant(2, bank2(bits, 8));
  }
  if (o.kind == OperandKind::reg && registers_[o.id].alias == Register::f64) return registers_[o.id].lo;
  Wide w = source64(o);
  if (w.lo.kind == isa::OperandKind::constant) return w.lo;
  if (is_immediate(w.lo) || is_immediate(w.hi)) return pair_register(w);
  return w.lo;
}

Op Selector::source_float(const ptx::Operand& o, Type type, bool flushes, bool absolute) {
  if (o.kind == OperandKind::reg) {
    bool negates = false, is_absolute = false;
    uint32_t id = o.id;
    for (int steps = 0; registers_[id].sign_of != UINT32_MAX && steps < 8; ++steps) {
      const Register& r = registers_[id];
      if ((r.flushes && !flushes) || (r.absolute && !absolute)) break;
      negates ^= r.negates && !is_absolute, is_absolute |= r.absolute;  // what is below an absolute value has no sign
      id = r.sign_of;
    }
    const Register& of = registers_[id];
    if (id != o.id && of.alias == Register::none) {
      Op x = gpr(of.first);
      x.negated = negates, x.absolute = is_absolute;
      return x;
    }
  }
  return type == Type::f64 ? source_f64(o) : source(o, type);
}

Op Selector::source_predicate(const ptx::Operand& o) {
  if (o.kind == OperandKind::immediate) return predicate(isa::PT, o.value == 0 ? !o.negated : o.negated);
  if (o.kind != OperandKind::reg) {
    unsupported_here("predicate operand");
    return predicate(isa::PT);
  }
  return predicate(registers_[o.id].first, o.negated);
}

Op Selector::extended_narrow(const ptx::Operand& o, Type type) {
  Op a = source(o, type);
  if (is_immediate(a)) {  // of a register with another sign, too: `mov.b16 %a, 0xffb9; setp.lt.s16 ..`
    const uint32_t unused = 64 - 8 * ptx::type_bytes(type);
    const uint64_t high = static_cast<uint64_t>(a.value) << unused;
    a.value = ptx::is_signed(type) ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused);
    return a;
  }
  if (is_zero(a)) return a;
  Op t = temp();
  extend(t.reg, a, 8 * ptx::type_bytes(type), ptx::is_signed(type));
  return t;
}

// --- control flow inside expansions -------------------------------------------------------------------------------------------------

BlockId Selector::new_block() {
  Block b;
  take_room(b.code);
  b.loop_depth = f_.blocks[block_].loop_depth;
  b.line = b.end_line = current_ ? current_->line : f_.blocks[block_].line;
  b.innermost = f_.blocks[block_].innermost;
  return f_.blocks.add(std::move(b));
}
void Selector::seal(BlockId next) { f_.blocks[block_].next = next; }
void Selector::seal_branch(Op p, BlockId taken, BlockId next) {
  Block& b = f_.blocks[block_];
  b.predicate = p.reg, b.negated = p.negated, b.taken = taken, b.next = next;
  if (current_) b.end_line = current_->line;
}
RegionId Selector::open_region(BlockId landing) {
  Region r{block_, landing, f_.blocks[block_].innermost, 0};
  if (!is_none(r.parent)) r.depth = f_.regions[r.parent].depth + 1;
  RegionId id = f_.regions.add(r);
  f_.blocks[block_].opens.push_back(id);
  return id;
}
void Selector::start(BlockId b, RegionId innermost) {
  f_.layout.push_back(b);
  f_.blocks[b].innermost = innermost;
  enter(b);
}
void Selector::join(BlockId landing, RegionId region) {
  f_.layout.push_back(landing);
  f_.blocks[landing].joins = region;
  f_.blocks[landing].innermost = f_.regions[region].parent;
  enter(landing);
}

// --- the walk -------------------------------------------------------------------------------------------------------------------------

void Selector::prepare() {
  const size_t n = p_.registers.size();
  registers_ = arena_.make_raw<Register>(n);
  Register* const registers = registers_.data();
  static constexpr Register blank;
  const ptx::Register* const declared = p_.registers.raw().data();
  for (uint32_t r = 0; r < n; ++r) {
    std::memcpy(static_cast<void*>(&registers[r]), &blank, offsetof(Register, lo));
    registers[r].bytes = static_cast<uint8_t>(ptx::type_bytes(declared[r].type));
  }
  struct Converted {
    uint32_t result, source;  // registers of a cvta
  };
  std::vector<Converted> converted;
  for (BlockId b : flow_.layout) {
    // In a loop, a read that the only definition does not dominate may still see the value of the round before.
    const auto read = [&](uint32_t id) {
      Register& r = registers[id];
      r.read = true;
      if (flow_.loops && r.definitions == 1 && r.defined_in != index(b))
        r.read_early |= !flow_.dominators.dominates(r.defined_in, index(b));
    };
    if (!is_none(flow_.blocks[b].predicate)) registers[index(flow_.blocks[b].predicate)].read = true;
    for (const FlowItem& item : flow_.blocks[b].items) {
      if (!is_none(item.guard)) registers[index(item.guard)].read = true;
      const ptx::Instruction& i = p_.instructions[item.inst];
      const ptx::Operand* const first = p_.operands.data() + i.first_operand;
      const ptx::Operand *const sources = first + i.destination_count, *const end = first + i.operand_count;
      const ptx::Operand* o = sources;
      for (; o < end; ++o)
        if (o->kind == OperandKind::reg)
          read(o->id);
        else if (o->kind == OperandKind::address_reg)
          read(o->id), registers[o->id].pointer = true;
        else if (o->kind == OperandKind::vector)
          for (uint32_t e = 0; e < o->count; ++e)
            if (p_.vector_elements[o->id + e].kind == OperandKind::reg) read(p_.vector_elements[o->id + e].id);
      const auto define = [&](uint32_t id) {
        Register& r = registers[id];
        if (r.definitions < 2) ++r.definitions;
        r.read_early |= r.read;
        r.defined_in = index(b);
      };
      for (o = first; o < sources; ++o) {
        if (o->kind == OperandKind::reg)
          define(o->id);
        else if (o->kind == OperandKind::vector)
          for (uint32_t e = 0; e < o->count; ++e)
            if (p_.vector_elements[o->id + e].kind == OperandKind::reg) define(p_.vector_elements[o->id + e].id);
      }
      if (i.op == Opcode::mad)
        for (o = first; o < end; ++o)
          if (o->kind == OperandKind::reg) registers[o->id].pointer = true;
      if (i.op == Opcode::cvta && first[0].kind == OperandKind::reg && first[1].kind == OperandKind::reg)
        converted.push_back({first[0].id, first[1].id});
    }
  }
  // What only additions use after its conversion can stay in the constant bank.
  for (size_t k = converted.size(); k-- > 0;)
    if (registers[converted[k].result].pointer) registers[converted[k].source].pointer = true;
  // Parameters and local variables.
  parameter_offsets_ = arena_.make_raw<uint32_t>(p_.parameters.size());
  ptx::lay_out_parameters(p_, [&](uint32_t k, uint32_t at, uint32_t) { parameter_offsets_[k] = at; });
  constants_ = ptx::lay_out_constants(m_);
  if (constants_.bytes > 65536)
    unsupported_here(fmt::format("{} bytes of .const variables, at most 65536", constants_.bytes));
  local_ = ptx::lay_out_local(m_, p_);
  f_.local_bytes = local_.bytes, f_.dynamic_stack = local_.dynamic;

  if (flow_.alone) {
    for (Register& r : registers_) r.definitions = 2, r.read = true;
    return place_registers();
  }
  for (BlockId b : flow_.layout)
    for (const FlowItem& item : flow_.blocks[b].items) {
      const ptx::Instruction& i = p_.instructions[item.inst];
      const bool forwards = i.op == Opcode::mov || i.op == Opcode::ld || i.op == Opcode::add || i.op == Opcode::cvta ||
                            i.op == Opcode::neg || i.op == Opcode::abs || i.op == Opcode::cvt || i.op == Opcode::and_ ||
                            i.op == Opcode::shr;
      if (forwards && is_none(item.guard) && i.destination_count == 1) forward(i, b);
    }
  place_registers();
}

// Of a thread, so that one read will do (optimize/rematerialize.cpp has the same of machine instructions).
static bool never_changes(ptx::SpecialRegister r) {
  using S = ptx::SpecialRegister;
  switch (r) {
    case S::tid_x:
    case S::tid_y:
    case S::tid_z:
    case S::ctaid_x:
    case S::ctaid_y:
    case S::ctaid_z:
    case S::laneid:
    case S::lanemask_eq:
    case S::lanemask_lt:
    case S::lanemask_le:
    case S::lanemask_gt:
    case S::lanemask_ge: return true;
    default: return false;
  }
}

// How the result of 64 bits extends its low word: a set of Extension. The register has this value alone.
uint8_t Selector::extension_of(const ptx::Instruction& i) const {
  const auto narrow = [](Type t) -> uint8_t {
    return ptx::is_floating(t) || ptx::type_bytes(t) > 4 ? 0 : ptx::is_signed(t) ? by_sign : by_zeros;
  };
  const auto literal = [&](int64_t least) {
    const ptx::Operand& o = p_.operand(i, 2);
    return o.kind == OperandKind::immediate && o.value >= least;
  };
  switch (i.op) {
    case Opcode::ld: return narrow(i.type);
    case Opcode::cvt: return ptx::is_floating(i.type) || i.mods.sat ? 0 : narrow(i.type2);
    case Opcode::and_: return literal(0) && p_.operand(i, 2).value <= UINT32_MAX ? by_zeros : 0;
    case Opcode::shr: return !literal(32) ? 0 : ptx::is_signed(i.type) ? by_sign : by_zeros;
    default: return 0;
  }
}

// What the unguarded instruction's result can be where it is read, so that perhaps nobody needs the instruction.
void Selector::forward(const ptx::Instruction& i, BlockId block) {
  const ptx::Operand& to = p_.operand(i, 0);
  const uint32_t type_bytes = ptx::type_bytes(i.type);
  if (to.kind == OperandKind::vector) {
    // Names the results inside the loaded group.
    if (i.op != Opcode::ld || i.mods.space == ptx::Space::param || i.mods.space == ptx::Space::constant ||
        to.count * type_bytes > 16 || type_bytes < 4)
      return;
    const std::span<const ptx::Operand> results(&p_.vector_elements[to.id], to.count);
    for (const ptx::Operand& o : results) {
      if (o.kind != OperandKind::reg) return;
      const Register& r = registers_[o.id];
      if (r.copy_of != UINT32_MAX || r.alias != Register::none || r.bytes != type_bytes || r.first != UINT32_MAX)
        return;
    }
    const uint32_t words = type_bytes / 4, first = new_gpr(f_, to.count * words, false);
    for (uint32_t e = 0; e < to.count; ++e) registers_[results[e].id].first = first + e * words;
    return;
  }
  if (to.kind != OperandKind::reg || i.operand_count < 2) return;
  Register& d = registers_[to.id];
  if (d.definitions != 1) return;
  const ptx::Operand& s = p_.operand(i, 1);
  const auto is_alias = [&](Register::Alias kind, Op lo, Op hi) { d.alias = kind, d.lo = lo, d.hi = hi; };
  // Another register that has but one value, of the same size; neither is read where it still has that of the round of a loop before.
  const auto stands = [&] {
    return registers_[s.id].definitions == 1 && !registers_[s.id].read_early && !d.read_early;
  };
  const auto copies = [&] {
    if (s.kind == OperandKind::reg && stands() && registers_[s.id].bytes == d.bytes &&
        p_.registers[s.reg_id()].type != Type::pred)
      d.copy_of = s.id;
  };
  if (d.bytes == 8) d.extends = extension_of(i);
  switch (i.op) {
    case Opcode::cvt:
      if (d.extends && s.kind == OperandKind::reg && ptx::type_bytes(i.type2) == 4 && registers_[s.id].bytes == 4 &&
          stands())
        d.low_word = s.id;
      return;
    case Opcode::mov: {
      if (s.kind == OperandKind::special && d.bytes == 4 && type_bytes == 4)
        if (const uint32_t at = bank_of(static_cast<ptx::SpecialRegister>(s.id)); at != no_bank)
          return is_alias(Register::value32, constant(0, at), rz);
      if (s.kind == OperandKind::special && d.bytes == 4 && type_bytes == 4 &&
          never_changes(static_cast<ptx::SpecialRegister>(s.id))) {
        Reader& first = first_reader_[s.id];
        // Nothing but memory lives across a call of a function of the driver, and nobody has saved this.
        if (first.reg != UINT32_MAX && !flow_.calls && (first.block == flow_.layout[0] || first.block == block))
          d.copy_of = first.reg;
        else
          first = {to.id, block};
        return;
      }
      if (s.kind == OperandKind::variable && m_.variables[s.variable_id()].space == ptx::Space::constant &&
          d.bytes == type_bytes && type_bytes >= 4)
        if (const int64_t at = constants_.offsets[s.id] + s.value; at >= 0)
          return is_alias(d.bytes == 8 ? Register::value64 : Register::value32, at ? immediate(at) : rz, rz);
      if (s.kind != OperandKind::immediate || i.type == Type::pred) return copies();
      const uint64_t bits = static_cast<uint64_t>(s.value);
      if (d.bytes <= 4) return is_alias(Register::value32, source(s, i.type), rz);
      if (i.type == Type::f64) {
        if (bits == 0) return is_alias(Register::value64, rz, rz);
        if ((bits & 0x00000fffffffffff) == 0)
          return is_alias(Register::f64, immediate(static_cast<int32_t>(bits >> 32)), rz);
        return is_alias(Register::f64, constant(2, bank2(bits, 8)), rz);
      }
      if (d.bytes == 8) {
        const Wide w = source64(s);
        is_alias(Register::value64, w.lo, w.hi);
      }
      return;
    }
    case Opcode::ld: {
      if (i.mods.space != ptx::Space::param || s.kind != OperandKind::parameter || type_bytes < 4 ||
          d.bytes != type_bytes)
        return;
      const uint32_t offset = t_.parameter_base + parameter_offsets_[s.id] + static_cast<uint32_t>(s.value);
      if (d.bytes == 4) is_alias(Register::value32, constant(0, offset), rz);
      if (d.bytes == 8 && offset % 8 == 0 && (i.type == Type::f64 || !d.pointer))
        is_alias(Register::value64, constant(0, offset), constant(0, offset + 4));
      return;
    }
    case Opcode::cvta:
      if (i.mods.space == ptx::Space::global) copies();
      return;
    case Opcode::neg:
    case Opcode::abs:
      if ((i.type == Type::f32 || i.type == Type::f64) && s.kind == OperandKind::reg && stands() &&
          registers_[s.id].bytes == d.bytes)
        d.sign_of = s.id, d.negates = i.op == Opcode::neg, d.absolute = !d.negates, d.flushes = i.mods.ftz;
      return;
    case Opcode::add:
      if (d.bytes == 8 && !ptx::is_floating(i.type) && s.kind == OperandKind::reg && stands() && !i.mods.carry_out)
        if (const ptx::Operand& c = p_.operand(i, 2);
            c.kind == OperandKind::immediate && c.value == static_cast<int32_t>(c.value))
          d.base = s.reg_id(), d.offset = static_cast<int32_t>(c.value);
      return;
    default: return;
  }
}

// Gives every PTX register its virtual registers: those of copies are their source's.
void Selector::place_registers() {
  Register* const registers = registers_.data();
  const ptx::Register* const declared = p_.registers.raw().data();
  const uint32_t n = static_cast<uint32_t>(registers_.size());
  const auto place = [&](uint32_t id) {
    Register& r = registers[id];
    if (r.first != UINT32_MAX) return;
    r.first =
        declared[id].type == Type::pred ? new_predicate(f_, false) : new_gpr(f_, r.bytes <= 4 ? 1 : r.bytes / 4, false);
  };
  bool all = true;
  for (uint32_t id = 0; id < n; ++id) {
    Register& r = registers[id];
    if (r.definitions == 0 && r.copy_of == UINT32_MAX && r.first == UINT32_MAX) {
      all = false;
      continue;
    }
    if (r.copy_of == UINT32_MAX) {
      place(id);
      continue;
    }
    uint32_t root = id;
    for (int steps = 0; registers[root].copy_of != UINT32_MAX && steps < 1000; ++steps) root = registers[root].copy_of;
    place(root);
    if (root == id) continue;
    const Register& from = registers[root];
    r.first = from.first, r.alias = from.alias, r.lo = from.lo, r.hi = from.hi;
    if (is_none(r.base)) r.base = from.base, r.offset = from.offset;
    r.extends = from.extends, r.low_word = from.low_word;
    r.sign_of = from.sign_of, r.negates = from.negates, r.absolute = from.absolute, r.flushes = from.flushes;
  }
  // Never defined: any value will do, but it must have a place.
  for (uint32_t id = 0; id < n && !all; ++id) place(id);
  for (uint32_t id = 0; id < n; ++id)
    if (Register& r = registers[id]; r.alias == Register::none)
      r.lo = gpr(r.first), r.hi = r.bytes <= 4 ? rz : gpr(r.first + 1);
}

void Selector::take_room(std::vector<InstId>& code) {
  if (room_->code.empty()) return;
  code = std::move(room_->code.back());
  code.clear();
  room_->code.pop_back();
}

Result<Function> Selector::run(SelectionRoom& room) {
  room_ = &room;
  f_.target = &t_;
  f_.source = &p_;
  f_.arena = &arena_;
  conditional_.reserve(32);
  f_.insts = std::move(room.insts);
  f_.insts.clear();
  f_.insts.reserve(p_.instructions.size() * 3 + 16);
  f_.blocks.raw().reserve(flow_.blocks.size() + 8);
  f_.layout.reserve(flow_.layout.size() + 8);
  f_.gprs.reserve(p_.registers.size() * 2 + p_.instructions.size() + 16);
  f_.max_registers = register_limit(p_, options_);
  f_.calls = flow_.calls;
  f_.alone = flow_.alone;
  if (f_.calls) descriptor_ = called_descriptor_register;
  f_.shared_bytes = shared_.bytes;
  f_.uses_shared = shared_.any;
  if (!p_.is_entry) return input_error("function {}: unsupported .func: only entries are assembled", p_.name);
  // Blocks with the ids of the flow graph; expansions add more.
  for (uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    const FlowBlock& x = flow_.blocks[BlockId{b}];
    Block y;
    y.line = x.line, y.loop_depth = x.loop_depth, y.innermost = x.innermost, y.joins = x.joins;
    y.convergent = x.convergent;
    take_room(y.code);
    f_.blocks.add(std::move(y));
  }
  f_.regions = flow_.regions;
  block_ = flow_.layout[0];
  prepare();
  find_meetings();
  find_shared_code();
  for (BlockId b : flow_.layout) {
    const FlowBlock& x = flow_.blocks[b];
    enter(b);
    f_.layout.push_back(b);
    convergent_ = x.convergent, split_ = x.split;
    for (uint32_t r : conditional_) is_conditional_[r / 64] = 0;
    conditional_.clear();
    if (flow_.alone)  // any register may have been written under this guard alone
      for (const Register& r : registers_) {
        const bool is_predicate = r.bytes == 0;
        for (uint32_t w = 0; w < std::max(r.bytes / 4u, 1u); ++w) mark_conditional(2 * (r.first + w) + is_predicate);
      }
    const std::span<const FlowItem> items(x.items.begin(), x.items.size());
    for (size_t k = 0; k < items.size(); ++k) {
      if (const size_t n = meet_as_one(items.subspan(k)); n != 0)
        meet_once(items.subspan(k, n)), k += n - 1;
      else
        statement(items[k]);
      if (!error_.empty()) return Error{Fault::input, error_, error_line_};
    }
    guard_ = predicate(isa::PT);
    Block& y = f_.blocks[block_];
    if (!is_none(x.predicate)) y.predicate = registers_[index(x.predicate)].first, y.negated = x.negated;
    y.uniform_branch = x.uniform_branch;
    y.taken = x.taken, y.next = x.next, y.end_line = x.end_line;
    for (RegionId r : x.opens) f_.regions[r].entry = block_;
    y.opens.assign(x.opens.begin(), x.opens.end());
  }
  make_subroutines();
  finish();
  if (!error_.empty()) return Error{Fault::input, error_, error_line_};
  return std::move(f_);
}

// A call of a function of the driver by the target's ABI: parameters in R4 and up, each aligned to its size, the result in R4; on Volta and later
// the place to return to in R20, R21. Nothing but memory is alive across it (inline_calls.cpp), and every step is a block of its own, so that no
// pass changes the order or puts a value into these registers.
void Selector::call_driver(const ptx::Instruction& i) {
  const uint32_t d = i.destination_count;
  const ptx::Function& g = m_.functions[p_.operand(i, d).id];
  const RegionId inner = f_.blocks[block_].innermost;
  auto step = [&](auto&& body) {
    const BlockId b = new_block();
    seal(b);
    start(b, inner);
    body();
  };
  auto access = [&](const ptx::Operand& o, uint32_t reg, uint32_t words, bool load) {
    for (uint32_t w = 0; w < words; ++w)
      step([&] {
        const Op at = address(stack_register, local_.offsets[o.id] + o.value + 4 * w, false, false);
        if (load)
          emit(Mnemonic::LDL, {gpr(reg + w), at}).mod(ModifierKind::Size, 4);
        else
          emit(Mnemonic::STL, {at, gpr(reg + w)}).mod(ModifierKind::Size, 4);
        f_.insts.back().pinned = true;
      });
  };
  uint32_t reg = 4;
  for (uint32_t k = 0; k < g.parameters.size(); ++k) {
    const uint32_t words = (ptx::type_bytes(g.parameters[k].type) + 3) / 4;
    reg = (reg + words - 1) / words * words;
    access(p_.operand(i, d + 1 + k), reg, words, true);
    reg += words;
  }
  if (t_.family == isa::Family::volta)
    for (uint32_t w = 0; w < 2; ++w)
      step([&] {
        mov_symbol(20 + w);
        f_.insts.back().call = w ? Call::return_high : Call::return_low;
        f_.insts.back().pinned = true;
      });
  if (f_.dynamic_stack)  // the callee's frame lies below what the thread has taken; allocate_registers sets R1 back
    step([&] {
      emit(Mnemonic::LDL, {gpr(stack_register), address(stack_register, 0, false, false)}).mod(ModifierKind::Size, 4);
      f_.insts.back().pinned = true;
    });
  step([&] {
    call_absolute();
    f_.insts.back().call = Call::function;
    f_.insts.back().callee = p_.operand(i, d).id;
    f_.insts.back().pinned = true;
  });
  if (d) access(p_.operand(i, 0), 4, (ptx::type_bytes(g.results[0].type) + 3) / 4, false);
  step([] {});
}

void Selector::finish() {
  current_ = nullptr;
  if (uses_descriptor_) {
    enter(f_.layout[0]);
    emit(Mnemonic::ULDC, {uniform(descriptor_), constant(0, t_.descriptor_offset)}).mod(ModifierKind::Size, 5);
    enter(block_);
    std::vector<InstId>& code = f_.blocks[block_].code;
    std::rotate(code.begin(), code.end() - 1, code.end());
  }
  enter(block_);
}

void Selector::statement(const FlowItem& item) {
  const ptx::Instruction& i = p_.instructions[item.inst];
  current_ = &i;
  one_address_ = item.one_address && (convergent_ || !item.one_read);
  guard_ = is_none(item.guard) ? predicate(isa::PT) : predicate(registers_[index(item.guard)].first, item.negated);
  statement(i);
  // Lanes may have left, or come.
  if (i.op == Opcode::exit || i.op == Opcode::ret || i.op == Opcode::trap || ptx::is_block_barrier(i) ||
      ptx::is_warp_operation(i))
    leader_ = {};
}
void Selector::statement(const ptx::Instruction& i) {
  switch (i.op) {
    case Opcode::add:
    case Opcode::sub:
    case Opcode::neg:
    case Opcode::abs:
    case Opcode::min:
    case Opcode::max:
      if (is_half(i.type))
        half_arithmetic(i);
      else if (i.mods.carry_out)
        extended_arithmetic(i);
      else if (ptx::is_floating(i.type))
        float_arithmetic(i);
      else
        arithmetic(i);
      break;
    case Opcode::addc:
    case Opcode::subc:
    case Opcode::madc:
    case Opcode::mul24:
    case Opcode::mad24:
    case Opcode::sad:
    case Opcode::dp4a:
    case Opcode::dp2a: extended_arithmetic(i); break;
    case Opcode::mul:
    case Opcode::mad:
      if (is_half(i.type))
        half_arithmetic(i);
      else if (i.mods.carry_out)
        extended_arithmetic(i);
      else if (ptx::is_floating(i.type))
        float_arithmetic(i);
      else
        multiply(i);
      break;
    case Opcode::fma:
    case Opcode::copysign: is_half(i.type) ? half_arithmetic(i) : float_arithmetic(i); break;
    case Opcode::div:
    case Opcode::rem: divide(i); break;
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
    case Opcode::not_:
    case Opcode::cnot:
    case Opcode::lop3:
    case Opcode::shl:
    case Opcode::shr:
    case Opcode::shf:
    case Opcode::prmt:
    case Opcode::popc:
    case Opcode::clz:
    case Opcode::brev:
    case Opcode::bfind:
    case Opcode::bfe:
    case Opcode::bfi: bits(i); break;
    case Opcode::setp:
    case Opcode::set:
      if (is_half(i.op == Opcode::set ? i.type2 : i.type))
        half_compare(i);
      else
        compare(i);
      break;
    case Opcode::selp:
    case Opcode::slct: compare(i); break;
    case Opcode::mov:
    case Opcode::cvt:
    case Opcode::cvta: convert(i); break;
    case Opcode::ld:
    case Opcode::ldu:
    case Opcode::st:
    case Opcode::atom:
    case Opcode::red: memory(i); break;
    case Opcode::cp: copy_to_shared(i); break;
    case Opcode::prefetch:
    case Opcode::prefetchu: prefetch(i); break;
    case Opcode::applypriority:  // hints of which nothing is made: what is discarded may keep its value
    case Opcode::discard: break;
    case Opcode::isspacep:
      if (i.mods.space == ptx::Space::constant || i.mods.space == ptx::Space::param)
        is_in_bank(i);
      else
        is_space(registers_[p_.operand(i, 0).id].first, source64(p_.operand(i, 1)), i.mods.space);
      break;
    case Opcode::testp: test_class(i); break;
    case Opcode::bmsk:
    case Opcode::szext: integer_extras(i); break;
    case Opcode::nanosleep: {
      Op t = source(p_.operand(i, 0), Type::u32);
      Emitted sleep = emit(Mnemonic::NANOSLEEP, {is_immediate(t) ? t : as_register(t)});
      if (t_.has(isa::Feature::sleeps_by_lanes)) break;
      sleep.mod(ModifierKind::SleepMode, 1);  // the warp, which then goes on with its other lanes
      emit(Mnemonic::YIELD);
      break;
    }
    case Opcode::match: match(i); break;
    case Opcode::redux: reduce_warp(i); break;
    case Opcode::membar:
    case Opcode::fence:
    case Opcode::griddepcontrol:
    case Opcode::bar:
    case Opcode::barrier:
    case Opcode::shfl:
    case Opcode::vote:
    case Opcode::activemask: cooperate(i); break;
    case Opcode::rcp:
    case Opcode::sqrt:
    case Opcode::rsqrt:
    case Opcode::sin:
    case Opcode::cos:
    case Opcode::lg2:
    case Opcode::tanh:
    case Opcode::ex2: is_half(i.type) ? half_arithmetic(i) : transcendental(i); break;
    case Opcode::call: call_driver(i); break;
    case Opcode::vabsdiff4: byte_differences(i); break;
    case Opcode::pmevent:
      if (t_.family == isa::Family::volta)
        emit(Mnemonic::PMTRIG,
             {immediate(i.mods.mode ? p_.operand(i, 0).value : int64_t{1} << p_.operand(i, 0).value)}),
            f_.insts.back().pinned = true;
      break;  // Pascal: nobody counts
    case Opcode::ret:
    case Opcode::exit: emit(Mnemonic::EXIT); break;
    case Opcode::brkpt:
    case Opcode::trap: emit(Mnemonic::BPT, {immediate(1)}).mod(ModifierKind::TrapMode, 3); break;
    default: unsupported(i);
  }
}

Result<Function> select(const ptx::Module& m, const ptx::Function& p, const Flow& flow, const ptx::SharedLayout& shared,
                        const Options& o, isa::FormCache& forms, Arena& arena, SelectionRoom& room) {
  return o.target->family == isa::Family::volta ? select_volta(m, p, flow, shared, o, forms, arena, room)
                                                : select_pascal(m, p, flow, shared, o, forms, arena, room);
}

}  // namespace rndn::assembler
