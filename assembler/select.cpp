// Instruction selection, the part that both families share.
//
// What it does: walks the blocks that structure.cpp made and emits SASS over virtual registers for every PTX instruction. A PTX register is a
// value of 1, 2 or 4 units (8- and 16-bit registers take a whole unit whose upper bits are undefined: readers extend).
//
// Cheap forwarding while walking, all on registers with a single unguarded definition: copies share their source's register, constants and
// 32-bit or f64 parameters become operands of their users (constant bank or immediate), `base + constant` becomes an address offset, and the
// results of vector loads are named inside the loaded quad. Definitions that lose all their users this way are removed as dead code.
//
// Invariant: an expansion writes its destination last, or only after it has read the sources that the destination may be; what it writes before
// are temporaries. Temporaries are computed without the guard, so that their lives stay short; memory operations and final writes carry it.
// Cost: O(instructions).
#include "assembler/select.h"

#include <bit>

namespace rndn::assembler {

using ptx::Opcode;
using ptx::Type;
using OperandKind = ptx::Operand;

SharedLayout lay_out_shared(const ptx::Module& module) {
  SharedLayout layout;
  layout.offsets.assign(module.variables.size(), 0);
  auto align_up = [](uint64_t x, uint64_t a) { return a ? (x + a - 1) / a * a : x; };
  uint64_t at = 0;
  for (uint32_t v = 0; v < module.variables.size(); ++v) {
    const ptx::Variable& x = module.variables[ptx::VariableId{v}];
    if (x.space != ptx::Space::shared || x.count == UINT64_MAX) continue;
    layout.any = true;
    uint64_t bytes = ptx::type_bytes(x.type) * (x.count ? x.count : 1);
    at = align_up(at, x.align ? x.align : ptx::type_bytes(x.type));
    layout.offsets[v] = static_cast<uint32_t>(at);
    at += bytes;
    if (at > UINT32_MAX / 2) at = UINT32_MAX / 2;
  }
  layout.bytes = static_cast<uint32_t>(at);
  for (uint32_t v = 0; v < module.variables.size(); ++v) {  // extern arrays start after the sized variables
    const ptx::Variable& x = module.variables[ptx::VariableId{v}];
    if (x.space == ptx::Space::shared && x.count == UINT64_MAX)
      layout.any = true, layout.offsets[v] = static_cast<uint32_t>(align_up(at, 16));
  }
  return layout;
}

Selector::Selector(const ptx::Module& module, const ptx::Function& function, const Flow& flow,
                   const SharedLayout& shared, const Options& options)
    : m_(module), p_(function), flow_(flow), shared_(shared), options_(options), t_(*options.target) {}

// --- services ---------------------------------------------------------------------------------------------------------------------

Emitted Selector::emit(Mnemonic m, std::initializer_list<Op> operands) {
  f_.insts.emplace_back();
  isa::Instruction made;
  if (!isa::make(t_, m, {operands.begin(), operands.size()}, made)) {
    // An immediate that the form has no room for goes to a register.
    std::array<Op, isa::max_operands> copy{};
    std::copy(operands.begin(), operands.end(), copy.begin());
    f_.insts.pop_back();
    bool found = false;
    for (size_t k = operands.size(); k-- > 0 && !found;) {
      if (!is_immediate(copy[k]) && copy[k].kind != isa::OperandKind::constant) continue;
      Op original = copy[k];
      copy[k] = gpr(isa::RZ);
      if (isa::make(t_, m, {copy.data(), operands.size()}, made)) {
        copy[k] = as_register(original);
        found = isa::make(t_, m, {copy.data(), operands.size()}, made);
      } else {
        copy[k] = original;
      }
    }
    f_.insts.emplace_back();
    if (!found) made = {};
    if (found) return place(made);
    std::string kinds;
    for (const Op& o : operands) kinds += fmt::format(" {}", static_cast<int>(o.kind));
    if (error_.empty())
      unsupported_here(fmt::format("{} has no form of {} with operand kinds{}", t_.name, isa::mnemonic_name(m), kinds));
    return {nullptr};
  }
  return place(made);
}

Emitted Selector::place(const isa::Instruction& made) {
  Inst& inst = f_.insts.back();
  inst.sass = made;
  inst.line = current_ ? current_->line : 0;
  if (guard_.reg != isa::PT) {
    // Pure computations of temporaries run unguarded.
    bool writes = false, only_temporaries = true;
    for (uint32_t k = 0; k < inst.sass.operand_count; ++k) {
      isa::Access a = isa::access(inst.sass, k);
      if (a == isa::Access::none || a == isa::Access::read) continue;
      uint32_t r = inst.sass.operands[k].reg;
      if (inst.sass.operands[k].kind == isa::OperandKind::gpr) {
        if (r == isa::RZ) continue;
        writes = true;
        if (r < isa::first_virtual || !f_.gprs[r - isa::first_virtual].temporary) only_temporaries = false;
      } else if (inst.sass.operands[k].kind == isa::OperandKind::predicate) {
        if (r == isa::PT) continue;
        writes = true;
        if (r < isa::first_virtual || !f_.temporary_predicate[r - isa::first_virtual]) only_temporaries = false;
      }
    }
    bool memory = false;
    for (uint32_t k = 0; k < inst.sass.operand_count; ++k)
      memory |= inst.sass.operands[k].kind == isa::OperandKind::address;
    if (!writes || !only_temporaries || memory) inst.sass.guard = guard_.reg, inst.sass.guard_negated = guard_.negated;
  }
  f_.blocks[block_].code.push_back(static_cast<InstId>(f_.insts.size() - 1));
  return {&inst.sass};
}

Op Selector::plain(Op o) {
  if (is_immediate(o) && o.negated) o.negated = false, o.value = static_cast<int32_t>(-static_cast<uint32_t>(o.value));
  return o;
}
Op Selector::as_register(Op o) {
  if (is_register(o)) return o;
  if (is_zero(o)) return gpr(isa::RZ);
  Op source = is_immediate(o) ? plain(o) : o;
  source.negated = source.absolute = false;
  Op t = temp();
  mov(t.reg, source);
  if (!is_immediate(o)) t.negated = o.negated, t.absolute = o.absolute;
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
  mov(t.reg, w.lo);
  mov(t.reg + 1, w.hi);
  return t;
}

void Selector::unsupported(const ptx::Instruction& i, std::string_view why) {
  if (!error_.empty()) return;
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
  return registers_[o.id];
}

Op Selector::source(const ptx::Operand& o, Type type) {
  switch (o.kind) {
    case OperandKind::reg: {
      const Alias& a = aliases_[o.id];
      if (a.kind != Alias::none) return a.lo;
      return gpr(registers_[o.id]);
    }
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
      if (v.space == ptx::Space::local) {
        Op t = temp();
        add(t.reg, gpr(stack_register), immediate(local_offsets_[o.id] + o.value));
        return t;
      }
      break;
    }
    default: break;
  }
  unsupported_here("operand");
  return gpr(isa::RZ);
}

Wide Selector::source64(const ptx::Operand& o) {
  switch (o.kind) {
    case OperandKind::reg: {
      const Alias& a = aliases_[o.id];
      if (a.kind == Alias::value64) return {a.lo, a.hi};
      uint32_t r = registers_[o.id];
      if (ptx::type_bytes(p_.registers[o.reg_id()].type) <= 4)
        return {a.kind == Alias::value32 ? a.lo : gpr(r), gpr(isa::RZ)};
      return {gpr(r), gpr(r + 1)};
    }
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
      if (v.space == ptx::Space::shared || v.space == ptx::Space::local) return {source(o, Type::u32), gpr(isa::RZ)};
      if (v.space == ptx::Space::global) {
        Op t = temp(2);
        variable_address(t.reg, v.name, o.value);
        return {t, gpr(t.reg + 1)};
      }
      break;
    }
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
  if (o.kind == OperandKind::reg && aliases_[o.id].kind == Alias::f64) return aliases_[o.id].lo;
  Wide w = source64(o);
  if (w.lo.kind == isa::OperandKind::constant) return w.lo;
  if (is_immediate(w.lo) || is_immediate(w.hi)) return pair_register(w);
  return w.lo;
}

Op Selector::source_predicate(const ptx::Operand& o) {
  if (o.kind == OperandKind::immediate) return predicate(isa::PT, o.value == 0 ? !o.negated : o.negated);
  if (o.kind != OperandKind::reg) {
    unsupported_here("predicate operand");
    return predicate(isa::PT);
  }
  return predicate(registers_[o.id], o.negated);
}

Op Selector::extended(const ptx::Operand& o, Type type) {
  Op a = source(o, type);
  if (ptx::type_bytes(type) >= 4 || is_immediate(a)) return a;
  Op t = temp();
  extend(t.reg, a, 8 * ptx::type_bytes(type), ptx::is_signed(type));
  return t;
}

// --- control flow inside expansions -------------------------------------------------------------------------------------------------

BlockId Selector::new_block() {
  Block b;
  b.loop_depth = f_.blocks[block_].loop_depth;
  b.line = f_.blocks[block_].line;
  b.innermost = f_.blocks[block_].innermost;
  return f_.blocks.add(std::move(b));
}
void Selector::seal(BlockId next) { f_.blocks[block_].next = next; }
void Selector::seal_branch(Op p, BlockId taken, BlockId next) {
  Block& b = f_.blocks[block_];
  b.predicate = p.reg, b.negated = p.negated, b.taken = taken, b.next = next;
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
  block_ = b;
}
void Selector::join(BlockId landing, RegionId region) {
  f_.layout.push_back(landing);
  f_.blocks[landing].joins = region;
  f_.blocks[landing].innermost = f_.regions[region].parent;
  block_ = landing;
}

// --- the walk -------------------------------------------------------------------------------------------------------------------------

void Selector::prepare() {
  const size_t n = p_.registers.size();
  registers_.assign(n, UINT32_MAX);
  definitions_.assign(n, 0);
  aliases_.assign(n, {});
  derived_.assign(n, {});
  std::vector<bool> pointer(n, false);
  auto each_destination = [&](const ptx::Instruction& i, auto&& use) {
    for (uint32_t k = 0; k < i.destination_count; ++k) {
      const ptx::Operand& o = p_.operand(i, k);
      if (o.kind == OperandKind::reg) use(o);
      if (o.kind == OperandKind::vector)
        for (uint32_t e = 0; e < o.count; ++e)
          if (p_.vector_elements[o.id + e].kind == OperandKind::reg) use(p_.vector_elements[o.id + e]);
    }
  };
  for (BlockId b : flow_.layout)
    for (const FlowItem& item : flow_.blocks[b].items) {
      const ptx::Instruction& i = p_.instructions[item.inst];
      each_destination(i, [&](const ptx::Operand& o) { ++definitions_[o.id]; });
      for (uint32_t k = 0; k < i.operand_count; ++k) {
        const ptx::Operand& o = p_.operand(i, k);
        if (o.kind == OperandKind::address_reg ||
            (o.kind == OperandKind::reg && (i.op == Opcode::cvta || i.op == Opcode::mad)))
          pointer[o.id] = true;
      }
    }
  // Parameters and local variables.
  uint32_t at = 0;
  for (const ptx::Parameter& x : p_.parameters) {
    uint32_t bytes = ptx::type_bytes(x.type), align = x.align ? x.align : bytes;
    at = (at + align - 1) / align * align;
    parameter_offsets_.push_back(at);
    at += bytes * (x.count ? x.count : 1);
  }
  local_offsets_.assign(m_.variables.size(), 0);
  uint32_t me = static_cast<uint32_t>(&p_ - m_.functions.data());
  for (uint32_t v = 0; v < m_.variables.size(); ++v) {
    const ptx::Variable& x = m_.variables[ptx::VariableId{v}];
    if (x.space != ptx::Space::local || (x.function != me && x.function != UINT32_MAX)) continue;
    uint32_t align = std::max<uint32_t>(x.align ? x.align : ptx::type_bytes(x.type), 4);
    f_.local_bytes = (f_.local_bytes + align - 1) / align * align;
    local_offsets_[v] = f_.local_bytes;
    f_.local_bytes += ptx::type_bytes(x.type) * static_cast<uint32_t>(x.count ? x.count : 1);
  }
  f_.local_bytes = (f_.local_bytes + 15) / 16 * 16;

  std::vector<uint32_t> copy_of(n, UINT32_MAX);
  auto new_register = [&](uint32_t r) {
    Type type = p_.registers[ptx::RegisterId{r}].type;
    if (type == Type::pred) return new_predicate(f_, false);
    uint32_t bytes = ptx::type_bytes(type);
    return new_gpr(f_, bytes <= 4 ? 1 : bytes / 4, false);
  };
  auto bytes_of = [&](uint32_t r) { return ptx::type_bytes(p_.registers[ptx::RegisterId{r}].type); };
  for (BlockId b : flow_.layout)
    for (const FlowItem& item : flow_.blocks[b].items) {
      if (!is_none(item.guard)) continue;
      const ptx::Instruction& i = p_.instructions[item.inst];
      if (i.destination_count != 1) continue;
      const ptx::Operand& d = p_.operand(i, 0);
      if (d.kind == OperandKind::vector && i.op == Opcode::ld && d.count * ptx::type_bytes(i.type) <= 16 &&
          ptx::type_bytes(i.type) >= 4) {
        // Name the results inside the loaded group.
        bool fresh = i.mods.space != ptx::Space::param && i.mods.space != ptx::Space::constant;
        const uint32_t words = ptx::type_bytes(i.type) / 4;
        for (uint32_t e = 0; e < d.count; ++e) {
          const ptx::Operand& o = p_.vector_elements[d.id + e];
          fresh &= o.kind == OperandKind::reg && copy_of[o.id] == UINT32_MAX && aliases_[o.id].kind == Alias::none &&
                   bytes_of(o.id) == 4 * words && registers_[o.id] == UINT32_MAX;
        }
        if (!fresh) continue;
        uint32_t first = new_gpr(f_, d.count * words, false);
        for (uint32_t e = 0; e < d.count; ++e) registers_[p_.vector_elements[d.id + e].id] = first + e * words;
        continue;
      }
      if (d.kind != OperandKind::reg || definitions_[d.id] != 1 || i.operand_count < 2) continue;
      const ptx::Operand& s = p_.operand(i, 1);
      const uint32_t bytes = bytes_of(d.id);
      if (i.op == Opcode::mov && s.kind == OperandKind::immediate && i.type != Type::pred) {
        if (bytes <= 4) {
          aliases_[d.id] = {Alias::value32, source(s, i.type), {}};
        } else if (bytes == 8 && i.type != Type::f64) {
          Wide w = source64(s);
          aliases_[d.id] = {Alias::value64, w.lo, w.hi};
        } else if (i.type == Type::f64 && static_cast<uint32_t>(s.value) == 0 &&
                   (static_cast<uint64_t>(s.value) & 0x00000fffffffffff) == 0) {
          Wide w = source64(s);
          aliases_[d.id] = {
              Alias::f64,
              s.value == 0 ? gpr(isa::RZ) : immediate(static_cast<int32_t>(static_cast<uint64_t>(s.value) >> 32)),
              w.hi};
        }
      } else if (i.op == Opcode::ld && i.mods.space == ptx::Space::param && s.kind == OperandKind::parameter &&
                 ptx::type_bytes(i.type) >= 4 && bytes == ptx::type_bytes(i.type)) {
        uint32_t offset = t_.parameter_base + parameter_offsets_[s.id] + static_cast<uint32_t>(s.value);
        if (bytes == 4) aliases_[d.id] = {Alias::value32, constant(0, offset), {}};
        if (bytes == 8 && offset % 8 == 0 && (i.type == Type::f64 || !pointer[d.id]))
          aliases_[d.id] = {Alias::value64, constant(0, offset), constant(0, offset + 4)};
      } else if (((i.op == Opcode::mov && s.kind == OperandKind::reg) ||
                  (i.op == Opcode::cvta && i.mods.space == ptx::Space::global && s.kind == OperandKind::reg)) &&
                 definitions_[s.id] == 1 && bytes_of(s.id) == bytes && p_.registers[s.reg_id()].type != Type::pred) {
        copy_of[d.id] = s.id;
      } else if (i.op == Opcode::add && bytes == 8 && !ptx::is_floating(i.type) && s.kind == OperandKind::reg &&
                 definitions_[s.id] == 1 && !i.mods.carry_out) {
        const ptx::Operand& c = p_.operand(i, 2);
        if (c.kind == OperandKind::immediate) derived_[d.id] = {s.reg_id(), c.value};
      }
    }
  for (uint32_t r = 0; r < n; ++r) {
    if (definitions_[r] == 0 && copy_of[r] == UINT32_MAX && registers_[r] == UINT32_MAX) continue;
    uint32_t root = r;
    for (int steps = 0; copy_of[root] != UINT32_MAX && steps < 1000; ++steps) root = copy_of[root];
    if (root != r) {
      aliases_[r] = aliases_[root];
      if (is_none(derived_[r].base)) derived_[r] = derived_[root];
      if (registers_[root] == UINT32_MAX) registers_[root] = new_register(root);
      registers_[r] = registers_[root];
    } else if (registers_[r] == UINT32_MAX) {
      registers_[r] = new_register(r);
    }
  }
  // Never defined: any value will do, but it must have a place.
  for (uint32_t r = 0; r < n; ++r)
    if (registers_[r] == UINT32_MAX) registers_[r] = new_register(r);
}

Result<Function> Selector::run() {
  f_.target = &t_;
  f_.source = &p_;
  f_.insts.reserve(p_.instructions.size() * 3 + 16);
  f_.shared_bytes = shared_.bytes;
  f_.uses_shared = shared_.any;
  if (!p_.is_entry) return input_error("function {}: unsupported .func: only entries are assembled", p_.name);
  // Blocks with the ids of the flow graph; expansions add more.
  for (uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    const FlowBlock& x = flow_.blocks[BlockId{b}];
    Block y;
    y.line = x.line, y.loop_depth = x.loop_depth, y.innermost = x.innermost, y.joins = x.joins;
    f_.blocks.add(std::move(y));
  }
  f_.regions = flow_.regions;
  block_ = flow_.layout[0];
  prepare();
  for (BlockId b : flow_.layout) {
    const FlowBlock& x = flow_.blocks[b];
    block_ = b;
    f_.layout.push_back(b);
    convergent_ = x.convergent;
    for (const FlowItem& item : x.items) {
      const ptx::Instruction& i = p_.instructions[item.inst];
      current_ = &i;
      guard_ = is_none(item.guard) ? predicate(isa::PT) : predicate(registers_[index(item.guard)], item.negated);
      statement(i);
      if (!error_.empty()) return Error{Fault::input, error_};
    }
    guard_ = predicate(isa::PT);
    Block& y = f_.blocks[block_];
    if (!is_none(x.predicate)) y.predicate = registers_[index(x.predicate)], y.negated = x.negated;
    y.uniform_branch = x.uniform_branch;
    y.taken = x.taken, y.next = x.next;
    for (RegionId r : x.opens) f_.regions[r].entry = block_;
    y.opens = x.opens;
  }
  finish();
  if (!error_.empty()) return Error{Fault::input, error_};
  return std::move(f_);
}

void Selector::finish() {
  current_ = nullptr;
  if (uses_descriptor_) {
    block_ = f_.layout[0];
    std::vector<InstId> code;
    code.swap(f_.blocks[block_].code);
    emit(Mnemonic::ULDC, {uniform(descriptor_register), constant(0, t_.descriptor_offset)}).mod(ModifierKind::Size, 5);
    f_.blocks[block_].code.insert(f_.blocks[block_].code.end(), code.begin(), code.end());
  }
  for (Inst& inst : f_.insts) describe(inst);
}

void Selector::statement(const ptx::Instruction& i) {
  switch (i.op) {
    case Opcode::add:
    case Opcode::sub:
    case Opcode::neg:
    case Opcode::abs:
    case Opcode::min:
    case Opcode::max:
      if (i.mods.carry_out)
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
      if (i.mods.carry_out)
        extended_arithmetic(i);
      else if (ptx::is_floating(i.type))
        float_arithmetic(i);
      else
        multiply(i);
      break;
    case Opcode::fma:
    case Opcode::copysign: float_arithmetic(i); break;
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
    case Opcode::membar:
    case Opcode::fence:
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
    case Opcode::ex2: transcendental(i); break;
    case Opcode::ret:
    case Opcode::exit: emit(Mnemonic::EXIT, {}); break;
    case Opcode::trap: emit(Mnemonic::BPT, {immediate(1)}).mod(ModifierKind::TrapMode, 3); break;
    default: unsupported(i);
  }
}

namespace {
bool is_wide(Type t) { return ptx::type_bytes(t) == 8; }
uint32_t float_rounding(ptx::Rounding r) {
  switch (r) {
    case ptx::Rounding::rm: return 1;
    case ptx::Rounding::rp: return 2;
    case ptx::Rounding::rz: return 3;
    default: return 0;
  }
}
uint32_t integral_rounding(ptx::Rounding r) {
  switch (r) {
    case ptx::Rounding::rmi: return 1;
    case ptx::Rounding::rpi: return 2;
    case ptx::Rounding::rzi: return 3;
    default: return 0;
  }
}
}  // namespace

void Selector::arithmetic(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  const ptx::Operand& oa = p_.operand(i, 1);
  if (i.mods.sat) return unsupported(i);
  if (is_wide(i.type)) {
    Wide a = source64(oa);
    switch (i.op) {
      case Opcode::add: add64(d, a, source64(p_.operand(i, 2)), false); return;
      case Opcode::sub: add64(d, a, source64(p_.operand(i, 2)), true); return;
      case Opcode::neg: add64(d, {gpr(isa::RZ), gpr(isa::RZ)}, a, true); return;
      case Opcode::abs: {
        Op t = temp(2);
        uint32_t p = temp_predicate();
        add64(t.reg, {gpr(isa::RZ), gpr(isa::RZ)}, a, true);
        Op hi = as_register(a.hi);
        setp(p, isa::PT, Cmp::LT, hi, gpr(isa::RZ), true, 0, predicate(isa::PT));
        select(d, t, a.lo, predicate(p));
        select(d + 1, gpr(t.reg + 1), hi, predicate(p));
        return;
      }
      case Opcode::min:
      case Opcode::max: {
        Op t = temp(2);
        min_max64(t.reg, a, source64(p_.operand(i, 2)), i.op == Opcode::max, ptx::is_signed(i.type));
        mov(d, t);
        mov(d + 1, gpr(t.reg + 1));
        return;
      }
      default: return unsupported(i);
    }
  }
  switch (i.op) {
    case Opcode::add: add(d, source(oa, i.type), source(p_.operand(i, 2), i.type)); return;
    case Opcode::sub: add(d, source(oa, i.type), negate(source(p_.operand(i, 2), i.type))); return;
    case Opcode::neg: add(d, gpr(isa::RZ), negate(source(oa, i.type))); return;
    case Opcode::abs: abs32(d, extended(oa, i.type)); return;
    case Opcode::min:
    case Opcode::max: {
      Op a = extended(oa, i.type), b = extended(p_.operand(i, 2), i.type);
      min_max(d, a, b, i.op == Opcode::max, ptx::is_signed(i.type));
      return;
    }
    default: unsupported(i);
  }
}

// High 64 bits of a product.
void Selector::mul_hi64(uint32_t d, Wide a, Wide b, bool is_signed) {
  Op product = temp(2);
  // Schoolbook on 32-bit halves; no sum overflows 64 bits.
  Op al = as_register(a.lo), ah = as_register(a.hi), bl = as_register(b.lo), bh = as_register(b.hi);
  const Op zero = gpr(isa::RZ);
  Op w0 = temp(2), c1 = temp(2), w1 = temp(2), c2 = temp(2), w2 = temp(2), c3 = temp(2), w3 = temp(2), c4 = temp(2);
  mad_wide(w0.reg, al, bl, {zero, zero}, false);
  mov(c1.reg, gpr(w0.reg + 1)), mov(c1.reg + 1, zero);
  mad_wide(w1.reg, ah, bl, {c1, gpr(c1.reg + 1)}, false);
  mov(c2.reg, w1), mov(c2.reg + 1, zero);
  mad_wide(w2.reg, al, bh, {c2, gpr(c2.reg + 1)}, false);
  mov(c3.reg, gpr(w1.reg + 1)), mov(c3.reg + 1, zero);
  mad_wide(w3.reg, ah, bh, {c3, gpr(c3.reg + 1)}, false);
  mov(c4.reg, gpr(w2.reg + 1)), mov(c4.reg + 1, zero);
  add64(product.reg, {w3, gpr(w3.reg + 1)}, {c4, gpr(c4.reg + 1)}, false);
  if (is_signed) {  // minus b where a < 0, minus a where b < 0
    for (auto [sign, l, h] : {std::tuple{ah, bl, bh}, std::tuple{bh, al, ah}}) {
      Op mask = temp(), x = temp(2), next = temp(2);
      shift_right(mask.reg, sign, immediate(31), true);
      logic(x.reg, l, mask, 0xc0);
      logic(x.reg + 1, h, mask, 0xc0);
      add64(next.reg, {product, gpr(product.reg + 1)}, {x, gpr(x.reg + 1)}, true);
      product = next;
    }
  }
  mov(d, product);
  mov(d + 1, gpr(product.reg + 1));
}

void Selector::multiply(const ptx::Instruction& i) {
  if (i.mods.sat) return unsupported(i);
  const uint32_t d = destination(p_.operand(i, 0));
  const bool is_signed = ptx::is_signed(i.type), has_addend = i.op == Opcode::mad;
  const ptx::Operand &oa = p_.operand(i, 1), &ob = p_.operand(i, 2);
  const uint32_t bytes = ptx::type_bytes(i.type);
  using ptx::MulPart;
  if (bytes == 8) {
    Wide a = source64(oa), b = source64(ob);
    Op product = temp(2);
    if (i.mods.part == MulPart::lo) {
      mul64(product.reg, a, b);
    } else {
      mul_hi64(product.reg, a, b, is_signed);
    }
    if (has_addend) {
      add64(d, {product, gpr(product.reg + 1)}, source64(p_.operand(i, 3)), false);
    } else {
      mov(d, product);
      mov(d + 1, gpr(product.reg + 1));
    }
    return;
  }
  if (bytes == 4) {
    Op a = source(oa, i.type), b = source(ob, i.type);
    if (i.mods.part == MulPart::lo) return mad(d, a, b, has_addend ? source(p_.operand(i, 3), i.type) : gpr(isa::RZ));
    if (i.mods.part == MulPart::hi) {
      if (!has_addend) return mul_hi(d, a, b, is_signed);
      Op t = temp();
      mul_hi(t.reg, a, b, is_signed);
      return add(d, t, source(p_.operand(i, 3), i.type));
    }
    Wide c = has_addend ? source64(p_.operand(i, 3)) : Wide{gpr(isa::RZ), gpr(isa::RZ)};
    return mad_wide(d, a, b, c, is_signed);
  }
  Op a = extended(oa, i.type), b = extended(ob, i.type);
  if (i.mods.part == MulPart::hi) {
    Op t = temp();
    mad(t.reg, a, b, gpr(isa::RZ));
    if (!has_addend) return shift_right(d, t, immediate(16), is_signed);
    Op u = temp();
    shift_right(u.reg, t, immediate(16), is_signed);
    return add(d, u, source(p_.operand(i, 3), i.type));
  }
  mad(d, a, b, has_addend ? source(p_.operand(i, 3), i.mods.part == MulPart::wide ? Type::u32 : i.type) : gpr(isa::RZ));
}

void Selector::float_arithmetic(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  const uint32_t rounding = float_rounding(i.mods.rounding);
  auto finish = [&](Emitted e) {
    e.mod(ModifierKind::Rounding, rounding);
    if (i.mods.ftz) e.mod(ModifierKind::FTZ, 1);
    if (i.mods.sat) e.mod(ModifierKind::SAT, 1);
  };
  if (i.type == Type::f32) {
    auto src = [&](uint32_t k) { return source(p_.operand(i, k), Type::f32); };
    auto negated = [](Op o) {  // an immediate's sign is in its bits
      if (is_immediate(o)) return immediate(static_cast<int32_t>(static_cast<uint32_t>(o.value) ^ 0x80000000u));
      return negate(o);
    };
    // The second operand may be anything, the first is a register.
    auto two = [&](Mnemonic m, Op a, Op b, bool commutes = true) {
      if (!is_register(a) && is_register(b) && commutes) std::swap(a, b);
      return emit(m, {gpr(d), as_register(a), b});
    };
    switch (i.op) {
      case Opcode::add: return finish(two(Mnemonic::FADD, src(1), src(2)));
      case Opcode::sub: return finish(two(Mnemonic::FADD, src(1), negated(src(2))));
      case Opcode::mul: return finish(two(Mnemonic::FMUL, src(1), src(2)));
      case Opcode::fma:
      case Opcode::mad: {
        Op a = src(1), b = src(2), c = src(3);
        if (!is_register(a)) std::swap(a, b);
        a = as_register(a);
        if (!is_register(b) && !is_register(c)) c = as_register(c);
        return finish(emit(Mnemonic::FFMA, {gpr(d), a, b, c}));
      }
      case Opcode::neg:
      case Opcode::abs: {
        Op a = as_register(src(1));
        Emitted e = emit(Mnemonic::FADD, {gpr(d), i.op == Opcode::neg ? negate(a) : absolute(a), negate(gpr(isa::RZ))});
        if (i.mods.ftz) e.mod(ModifierKind::FTZ, 1);
        return;
      }
      case Opcode::min:
      case Opcode::max: {
        Op a = src(1), b = src(2);
        if (!is_register(a)) std::swap(a, b);
        Emitted e = emit(Mnemonic::FMNMX, {gpr(d), as_register(a), b, predicate(isa::PT, i.op == Opcode::max)});
        if (i.mods.ftz) e.mod(ModifierKind::FTZ, 1);
        if (i.mods.mode == 1) {
          if (t_.family != isa::Family::volta) return unsupported(i);
          e.mod(ModifierKind::NaN, 1);
        }
        return;
      }
      case Opcode::copysign: {  // the sign of the first, the rest of the second
        Op t = temp();
        logic(t.reg, as_register(src(1)), immediate(INT32_MIN), 0xc0);
        Op u = temp();
        logic(u.reg, as_register(src(2)), immediate(0x7fffffff), 0xc0);
        return logic(d, t, u, 0xfc);
      }
      default: return unsupported(i);
    }
  }
  if (i.type != Type::f64) return unsupported(i);
  auto src = [&](uint32_t k) { return source_f64(p_.operand(i, k)); };
  // FP64 sources: a pair, or in one slot a constant or the high word of a literal.
  auto pair = [&](Op o) {
    if (is_register(o)) return o;
    Op t = temp(2);
    if (is_immediate(o)) {
      mov(t.reg, gpr(isa::RZ));
      mov(t.reg + 1, o);
    } else {
      Op hi = o;
      hi.value += 4, hi.negated = hi.absolute = false;
      Op lo = o;
      lo.negated = lo.absolute = false;
      mov(t.reg, lo);
      mov(t.reg + 1, hi);
      t.negated = o.negated, t.absolute = o.absolute;
    }
    return t;
  };
  auto negated = [](Op o) {
    if (is_immediate(o)) return immediate(static_cast<int32_t>(static_cast<uint32_t>(o.value) ^ 0x80000000u));
    return negate(o);
  };
  auto two = [&](Mnemonic m, Op a, Op b) {
    if (!is_register(a)) std::swap(a, b);
    return emit(m, {gpr(d), pair(a), b}).mod(ModifierKind::Rounding, rounding);
  };
  switch (i.op) {
    case Opcode::add: two(Mnemonic::DADD, src(1), src(2)); return;
    case Opcode::sub: two(Mnemonic::DADD, src(1), negated(src(2))); return;
    case Opcode::mul: two(Mnemonic::DMUL, src(1), src(2)); return;
    case Opcode::fma:
    case Opcode::mad: {
      Op a = src(1), b = src(2), c = src(3);
      if (!is_register(a)) std::swap(a, b);
      a = pair(a);
      if (!is_register(b) && !is_register(c)) c = pair(c);
      if (t_.family == isa::Family::pascal && is_immediate(c)) c = pair(c);  // Pascal's addend: register or constant
      emit(Mnemonic::DFMA, {gpr(d), a, b, c}).mod(ModifierKind::Rounding, rounding);
      return;
    }
    case Opcode::neg:
    case Opcode::abs: {  // on the bits: the payload of a NaN survives
      Wide a = source64(p_.operand(i, 1));
      Op hi = as_register(a.hi);
      mov(d, a.lo);
      logic(d + 1, hi, immediate(i.op == Opcode::neg ? INT32_MIN : 0x7fffffff), i.op == Opcode::neg ? 0x3c : 0xc0);
      return;
    }
    case Opcode::min:
    case Opcode::max: {
      Op t = temp(2);
      min_max_f64(t.reg, pair(src(1)), pair(src(2)), i.op == Opcode::max);
      mov(d, t);
      mov(d + 1, gpr(t.reg + 1));
      return;
    }
    case Opcode::copysign: {
      Wide a = source64(p_.operand(i, 1)), b = source64(p_.operand(i, 2));
      Op t = temp(), u = temp();
      logic(t.reg, as_register(a.hi), immediate(INT32_MIN), 0xc0);
      logic(u.reg, as_register(b.hi), immediate(0x7fffffff), 0xc0);
      mov(d, b.lo);
      logic(d + 1, t, u, 0xfc);
      return;
    }
    default: unsupported(i);
  }
}

void Selector::bits(const ptx::Instruction& i) {
  const ptx::Operand &o0 = p_.operand(i, 0), &o1 = p_.operand(i, 1);
  const uint32_t d = destination(o0);
  const uint32_t bytes = ptx::type_bytes(i.type);
  auto halves = [&](auto&& f) {  // applies a 32-bit operation to both halves
    Wide a = source64(o1);
    Wide b = i.operand_count > 2 ? source64(p_.operand(i, 2)) : Wide{};
    f(d, a.lo, b.lo);
    f(d + 1, a.hi, b.hi);
  };
  switch (i.op) {
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_: {
      const uint8_t lut = i.op == Opcode::and_ ? 0xc0 : i.op == Opcode::or_ ? 0xfc : 0x3c;
      if (i.type == Type::pred)
        return predicate_logic(d, source_predicate(o1), source_predicate(p_.operand(i, 2)),
                               i.op == Opcode::and_  ? '&'
                               : i.op == Opcode::or_ ? '|'
                                                     : '^');
      if (bytes == 8) return halves([&](uint32_t r, Op a, Op b) { logic(r, a, b, lut); });
      return logic(d, source(o1, i.type), source(p_.operand(i, 2), i.type), lut);
    }
    case Opcode::not_:
      if (i.type == Type::pred) return predicate_logic(d, negate(source_predicate(o1)), predicate(isa::PT), '&');
      if (bytes == 8) return halves([&](uint32_t r, Op a, Op) { invert(r, a); });
      return invert(d, source(o1, i.type));
    case Opcode::cnot: {
      uint32_t p = temp_predicate();
      if (bytes == 8) {
        setp64(p, isa::PT, Cmp::EQ, source64(o1), {gpr(isa::RZ), gpr(isa::RZ)}, false, 0, predicate(isa::PT));
        select(d, gpr(isa::RZ), immediate(1), predicate(p, true));
        return mov(d + 1, gpr(isa::RZ));
      }
      setp(p, isa::PT, Cmp::EQ, extended(o1, i.type), gpr(isa::RZ), false, 0, predicate(isa::PT));
      return select(d, gpr(isa::RZ), immediate(1), predicate(p, true));
    }
    case Opcode::lop3: {
      const ptx::Operand& lut = p_.operand(i, 4);
      return logic3(d, source(o1, i.type), source(p_.operand(i, 2), i.type), source(p_.operand(i, 3), i.type),
                    static_cast<uint8_t>(lut.value));
    }
    case Opcode::shl: {
      Op n = source(p_.operand(i, 2), Type::u32);
      if (bytes == 8) return shift_left64(d, source64(o1), n);
      return shift_left(d, source(o1, i.type), n);  // 16 bits: what is shifted past bit 15 is never looked at
    }
    case Opcode::shr: {
      Op n = source(p_.operand(i, 2), Type::u32);
      if (bytes == 8) return shift_right64(d, source64(o1), n, ptx::is_signed(i.type));
      return shift_right(d, extended(o1, i.type), n, ptx::is_signed(i.type));
    }
    case Opcode::shf:
      return funnel(d, source(o1, i.type), source(p_.operand(i, 2), i.type), source(p_.operand(i, 3), Type::u32),
                    i.mods.mode == 2, i.mods.shift == ptx::ShiftMode::wrap);
    case Opcode::prmt:
      return permute(d, source(o1, i.type), source(p_.operand(i, 2), i.type), source(p_.operand(i, 3), Type::u32),
                     i.mods.mode);
    case Opcode::popc:
      if (bytes == 8) {
        Wide a = source64(o1);
        Op x = temp(), y = temp();
        popc(x.reg, a.lo);
        popc(y.reg, a.hi);
        return add(d, x, y);
      }
      return popc(d, source(o1, i.type));
    case Opcode::brev:
      if (bytes == 8) {
        Wide a = source64(o1);
        Op x = temp(), y = temp();
        reverse(x.reg, a.hi);
        reverse(y.reg, a.lo);
        mov(d, x);
        return mov(d + 1, y);
      }
      return reverse(d, source(o1, i.type));
    case Opcode::clz:
    case Opcode::bfind: {
      const bool is_signed = i.op == Opcode::bfind && ptx::is_signed(i.type),
                 amount = i.op == Opcode::bfind && i.mods.mode == 1;
      Op t = temp();
      if (bytes == 4) {
        if (i.op == Opcode::bfind) return find_leading(d, source(o1, i.type), is_signed, amount);
        find_leading(t.reg, source(o1, i.type), false, false);  // -1 for zero: 31 - (-1) = 32
        return add(d, immediate(31), negate(t));
      }
      Wide a = source64(o1);
      Op lo = as_register(a.lo), hi = as_register(a.hi);
      if (is_signed) {  // the leading bit that differs from the sign
        Op mask = temp(), l = temp(), h = temp();
        shift_right(mask.reg, hi, immediate(31), true);
        logic(l.reg, lo, mask, 0x3c);
        logic(h.reg, hi, mask, 0x3c);
        lo = l, hi = h;
      }
      // The index in the high word + 32 when that is not zero, else the index in the low word (-1 for none).
      Op x = temp(), y = temp(), z = temp(), r = temp();
      uint32_t p = temp_predicate();
      find_leading(x.reg, hi, false, false);
      find_leading(y.reg, lo, false, false);
      add(z.reg, x, immediate(32));
      setp(p, isa::PT, Cmp::EQ, hi, gpr(isa::RZ), false, 0, predicate(isa::PT));
      if (i.op == Opcode::bfind && !amount) return select(d, y, z, predicate(p));
      select(r.reg, y, z, predicate(p));
      if (i.op == Opcode::clz) return add(d, immediate(63), negate(r));
      Op s = temp();  // shift amount: 63 - index, still -1 for none
      uint32_t none_found = temp_predicate();
      add(s.reg, immediate(63), negate(r));
      setp(none_found, isa::PT, Cmp::EQ, r, immediate(-1), false, 0, predicate(isa::PT));
      return select(d, r, s, predicate(none_found));
    }
    case Opcode::bfe:
      if (bytes == 8)
        return bit_extract64(d, source64(o1), source(p_.operand(i, 2), Type::u32), source(p_.operand(i, 3), Type::u32),
                             ptx::is_signed(i.type));
      return bit_extract(d, source(o1, i.type), source(p_.operand(i, 2), Type::u32),
                         source(p_.operand(i, 3), Type::u32), ptx::is_signed(i.type));
    case Opcode::bfi:
      if (bytes == 8)
        return bit_insert64(d, source64(o1), source64(p_.operand(i, 2)), source(p_.operand(i, 3), Type::u32),
                            source(p_.operand(i, 4), Type::u32));
      return bit_insert(d, source(o1, i.type), source(p_.operand(i, 2), i.type), source(p_.operand(i, 3), Type::u32),
                        source(p_.operand(i, 4), Type::u32));
    default: unsupported(i);
  }
}

namespace {
// PTX comparison to code and signedness. `lo ls hi hs` are the unsigned orders.
Cmp comparison(ptx::Compare c) {
  using C = ptx::Compare;
  switch (c) {
    case C::eq: return Cmp::EQ;
    case C::ne: return Cmp::NE;
    case C::lt:
    case C::lo: return Cmp::LT;
    case C::le:
    case C::ls: return Cmp::LE;
    case C::gt:
    case C::hi: return Cmp::GT;
    case C::ge:
    case C::hs: return Cmp::GE;
    case C::equ: return Cmp::EQU;
    case C::neu: return Cmp::NEU;
    case C::ltu: return Cmp::LTU;
    case C::leu: return Cmp::LEU;
    case C::gtu: return Cmp::GTU;
    case C::geu: return Cmp::GEU;
    case C::num: return Cmp::NUM;
    case C::nan: return Cmp::NAN_;
    default: return Cmp::F;
  }
}
Cmp mirrored(Cmp c) {
  switch (c) {
    case Cmp::LT: return Cmp::GT;
    case Cmp::LE: return Cmp::GE;
    case Cmp::GT: return Cmp::LT;
    case Cmp::GE: return Cmp::LE;
    case Cmp::LTU: return Cmp::GTU;
    case Cmp::LEU: return Cmp::GEU;
    case Cmp::GTU: return Cmp::LTU;
    case Cmp::GEU: return Cmp::LEU;
    default: return c;
  }
}
}  // namespace

void Selector::compare(const ptx::Instruction& i) {
  if (i.op == Opcode::selp || i.op == Opcode::slct) {
    const uint32_t d = destination(p_.operand(i, 0));
    Op p;
    if (i.op == Opcode::selp) {
      p = source_predicate(p_.operand(i, 3));
    } else {
      uint32_t t = temp_predicate();
      Op c = as_register(source(p_.operand(i, 3), i.type2));
      if (i.type2 == Type::f32)
        emit(Mnemonic::FSETP, {predicate(t), predicate(isa::PT), c, gpr(isa::RZ), predicate(isa::PT)})
            .mod(ModifierKind::FloatCompare, 6)
            .mod(ModifierKind::FTZ, i.mods.ftz);
      else
        setp(t, isa::PT, Cmp::GE, c, gpr(isa::RZ), true, 0, predicate(isa::PT));
      p = predicate(t);
    }
    if (is_wide(i.type)) {
      Wide a = source64(p_.operand(i, 1)), b = source64(p_.operand(i, 2));
      select(d, a.lo, b.lo, p);
      return select(d + 1, a.hi, b.hi, p);
    }
    return select(d, source(p_.operand(i, 1), i.type), source(p_.operand(i, 2), i.type), p);
  }
  // setp, set
  const bool is_set = i.op == Opcode::set;
  const Type type = is_set ? i.type2 : i.type;
  uint32_t p = isa::PT, q = isa::PT, first = i.destination_count;
  if (is_set) {
    p = temp_predicate();
  } else {
    if (p_.operand(i, 0).kind == OperandKind::reg) p = registers_[p_.operand(i, 0).id];
    if (i.destination_count > 1 && p_.operand(i, 1).kind == OperandKind::reg) q = registers_[p_.operand(i, 1).id];
  }
  uint32_t combine = 0;
  Op with = predicate(isa::PT);
  if (i.mods.combine != ptx::Combine::none) {
    combine = static_cast<uint32_t>(i.mods.combine) - static_cast<uint32_t>(ptx::Combine::and_);
    with = source_predicate(p_.operand(i, first + 2));
  }
  Cmp c = comparison(i.mods.compare);
  const bool is_signed = ptx::is_signed(type) && i.mods.compare != ptx::Compare::lo &&
                         i.mods.compare != ptx::Compare::ls && i.mods.compare != ptx::Compare::hi &&
                         i.mods.compare != ptx::Compare::hs;
  const ptx::Operand &oa = p_.operand(i, first), &ob = p_.operand(i, first + 1);
  if (type == Type::f32) {
    Op a = source(oa, type), b = source(ob, type);
    if (!is_register(a) && is_register(b)) std::swap(a, b), c = mirrored(c);
    emit(Mnemonic::FSETP, {predicate(p), predicate(q), as_register(a), b, with})
        .mod(ModifierKind::FloatCompare, static_cast<uint32_t>(c))
        .mod(ModifierKind::Bool, combine)
        .mod(ModifierKind::FTZ, i.mods.ftz);
  } else if (type == Type::f64) {
    Op a = source_f64(oa), b = source_f64(ob);
    if (!is_register(a) && is_register(b)) std::swap(a, b), c = mirrored(c);
    if (!is_register(a)) {
      Op t = temp(2);
      if (is_immediate(a))
        mov(t.reg, gpr(isa::RZ)), mov(t.reg + 1, a);
      else
        mov(t.reg, a), mov(t.reg + 1, constant(a.bank, a.value + 4));
      a = t;
    }
    emit(Mnemonic::DSETP, {predicate(p), predicate(q), a, b, with})
        .mod(ModifierKind::FloatCompare, static_cast<uint32_t>(c))
        .mod(ModifierKind::Bool, combine);
  } else if (is_wide(type)) {
    setp64(p, q, c, source64(oa), source64(ob), is_signed, combine, with);
  } else if (ptx::is_floating(type)) {
    return unsupported(i);
  } else {
    setp(p, q, c, extended(oa, type), extended(ob, type), is_signed, combine, with);
  }
  if (is_set) {
    const uint32_t d = destination(p_.operand(i, 0));
    if (i.type == Type::f32)
      select(d, gpr(isa::RZ), immediate(0x3f800000), predicate(p, true));
    else
      select(d, gpr(isa::RZ), immediate(-1), predicate(p, true));
  }
}

void Selector::convert(const ptx::Instruction& i) {
  const ptx::Operand &o0 = p_.operand(i, 0), &o1 = p_.operand(i, 1);
  if (i.op == Opcode::cvta) {
    const uint32_t d = destination(o0);
    if (is_wide(i.type)) {
      Wide a = source64(o1);
      if (i.mods.space == ptx::Space::global) {
        if (is_register(a.lo) && a.lo.reg == d) return;  // shares its source's register
        mov(d, a.lo);
        return mov(d + 1, a.hi);
      }
    }
    return unsupported(i, "only global addresses convert to generic ones");
  }
  if (i.op == Opcode::mov) {
    if (i.type == Type::pred) return predicate_logic(destination(o0), source_predicate(o1), predicate(isa::PT), '&');
    if (o0.kind == OperandKind::vector) {  // unpack
      Wide a{};
      if (is_wide(i.type))
        a = source64(o1);
      else
        a.lo = source(o1, i.type);
      if (!is_wide(i.type) || o0.count != 2) {
        if (is_wide(i.type) || o0.count != 2 || ptx::type_bytes(i.type) != 4) return unsupported(i);
        Op low = as_register(a.lo), t = temp();
        shift_right(t.reg, low, immediate(16), false);
        const ptx::Operand &x = p_.vector_elements[o0.id], &y = p_.vector_elements[o0.id + 1];
        if (x.kind == OperandKind::reg) mov(destination(x), low);
        if (y.kind == OperandKind::reg) mov(destination(y), t);
        return;
      }
      const ptx::Operand &x = p_.vector_elements[o0.id], &y = p_.vector_elements[o0.id + 1];
      if (x.kind == OperandKind::reg) mov(destination(x), a.lo);
      if (y.kind == OperandKind::reg) mov(destination(y), a.hi);
      return;
    }
    if (o1.kind == OperandKind::vector) {  // pack
      if (o1.count != 2) return unsupported(i);
      const uint32_t d = destination(o0);
      const ptx::Operand &x = p_.vector_elements[o1.id], &y = p_.vector_elements[o1.id + 1];
      if (is_wide(i.type)) {
        mov(d, source(x, Type::b32));
        return mov(d + 1, source(y, Type::b32));
      }
      Op low = temp(), high = temp();
      extend(low.reg, source(x, Type::b16), 16, false);
      shift_left(high.reg, source(y, Type::b16), immediate(16));
      return logic(d, low, high, 0xfc);
    }
    const uint32_t d = destination(o0);
    if (is_wide(i.type)) {
      if (o1.kind == OperandKind::special) return special_register(d, static_cast<ptx::SpecialRegister>(o1.id));
      if (o1.kind == OperandKind::variable && m_.variables[o1.variable_id()].space == ptx::Space::global)
        return variable_address(d, m_.variables[o1.variable_id()].name, o1.value);
      Wide a = source64(o1);
      if (is_register(a.lo) && a.lo.reg == d) return;
      mov(d, a.lo);
      return mov(d + 1, a.hi);
    }
    if (o1.kind == OperandKind::special) return special_register(d, static_cast<ptx::SpecialRegister>(o1.id));
    Op a = source(o1, i.type);
    if (is_register(a) && a.reg == d) return;
    return mov(d, a);
  }
  // cvt
  const Type to = i.type, from = i.type2;
  const uint32_t d = destination(o0);
  const uint32_t register_bytes = ptx::type_bytes(p_.registers[o0.reg_id()].type);
  const uint32_t to_bits = 8 * ptx::type_bytes(to), from_bits = 8 * ptx::type_bytes(from);
  if (to_bits > 64 || from_bits > 64 || to == Type::f16x2 || to == Type::bf16 || to == Type::bf16x2 ||
      from == Type::bf16)
    return unsupported(i);
  if (!ptx::is_floating(to) && !ptx::is_floating(from)) {
    Wide a = from_bits == 64 ? source64(o1) : Wide{source(o1, from), gpr(isa::RZ)};
    if (i.mods.sat) {
      if (from_bits == 64 || to_bits == 64) return unsupported(i);
      Op x = a.lo;
      if (from_bits < 32) x = temp(), extend(x.reg, a.lo, from_bits, ptx::is_signed(from));
      const bool s = ptx::is_signed(from);
      if (ptx::is_signed(to)) {
        const int64_t most = (int64_t{1} << (to_bits - 1)) - 1;
        if (s) {
          Op y = temp();
          min_max(y.reg, x, immediate(-most - 1), true, true);
          x = y;
        }
        Op z = temp();
        min_max(z.reg, x, immediate(most), false, s);
        x = z;
      } else {
        if (s) {
          Op y = temp();
          min_max(y.reg, x, gpr(isa::RZ), true, true);
          x = y;
        }
        if (to_bits < 32) {
          Op z = temp();
          min_max(z.reg, x, immediate((int64_t{1} << to_bits) - 1), false, false);
          x = z;
        }
      }
      return mov(d, x);
    }
    const bool wide_result = register_bytes == 8;
    // The value modulo 2^to_bits, extended to the register by the destination's signedness.
    Op low = a.lo;
    bool extended_already = false;
    if (from_bits < 32 && to_bits > from_bits) {
      if (!wide_result) return extend(d, low, from_bits, ptx::is_signed(from));
      Op t = temp();
      extend(t.reg, low, from_bits, ptx::is_signed(from));
      low = t, extended_already = true;
    }
    (void)extended_already;
    if (to_bits < 32 && to_bits <= from_bits && register_bytes * 8 > to_bits) {
      if (!wide_result) return extend(d, low, to_bits, ptx::is_signed(to));
      Op t = temp();
      extend(t.reg, low, to_bits, ptx::is_signed(to));
      low = t;
    }
    if (!wide_result) return mov(d, low);
    if (to_bits == 64 && from_bits == 64) {
      mov(d, a.lo);
      return mov(d + 1, a.hi);
    }
    const bool sign = to_bits == 64 ? ptx::is_signed(from) : ptx::is_signed(to);
    if (sign) {
      Op x = as_register(low);
      mov(d, x);
      return shift_right(d + 1, x, immediate(31), true);
    }
    mov(d, low);
    return mov(d + 1, gpr(isa::RZ));
  }
  if (ptx::is_floating(to) && !ptx::is_floating(from)) {
    if (i.mods.sat) return unsupported(i);
    Op a;
    uint32_t bits = from_bits;
    if (from_bits == 64) {
      a = pair_register(source64(o1));
    } else {
      a = from_bits < 32 ? extended(o1, from) : source(o1, from);
      bits = 32;
    }
    return int_to_float(d, to_bits, as_register(a), bits, ptx::is_signed(from), float_rounding(i.mods.rounding));
  }
  // Float sources.
  auto float_source = [&] {
    if (from != Type::f64) return as_register(source(o1, from));
    Op a = source_f64(o1);
    if (is_register(a)) return a;
    return pair_register(is_immediate(a) ? Wide{gpr(isa::RZ), a} : Wide{a, constant(a.bank, a.value + 4)});
  };
  if (!ptx::is_floating(to)) {
    Op a = float_source();
    const uint32_t rounding = integral_rounding(i.mods.rounding);
    const bool s = ptx::is_signed(to);
    if (to_bits == 64) return float_to_int(d, 64, s, a, from_bits, rounding, i.mods.ftz);
    if (to_bits == 32) {
      float_to_int(d, 32, s, a, from_bits, rounding, i.mods.ftz);
      return;
    }
    Op t = temp(), u = temp();  // saturate in two steps
    float_to_int(t.reg, 32, s, a, from_bits, rounding, i.mods.ftz);
    if (!s) return min_max(d, t, immediate((1 << to_bits) - 1), false, false);
    min_max(u.reg, t, immediate(-(1 << (to_bits - 1))), true, true);
    return min_max(d, u, immediate((1 << (to_bits - 1)) - 1), false, true);
  }
  // Float to float.
  Op a = float_source();
  const bool integral = i.mods.rounding >= ptx::Rounding::rni;
  if (i.mods.sat && !(to == Type::f32)) return unsupported(i);
  uint32_t target = d;
  if (i.mods.sat) target = temp().reg;
  if (to == from) {
    if (integral) {
      round_to_integral(target, a, to_bits, integral_rounding(i.mods.rounding), i.mods.ftz);
    } else if (to == Type::f64) {
      mov(target, a);
      mov(target + 1, gpr(a.reg + 1));
    } else if (to == Type::f32) {
      emit(Mnemonic::FADD, {gpr(target), a, negate(gpr(isa::RZ))}).mod(ModifierKind::FTZ, i.mods.ftz);
    } else {
      mov(target, a);
    }
  } else {
    float_to_float(target, to_bits, a, from_bits, float_rounding(i.mods.rounding), i.mods.ftz);
  }
  if (i.mods.sat)
    emit(Mnemonic::FADD, {gpr(d), gpr(target), negate(gpr(isa::RZ))})
        .mod(ModifierKind::SAT, 1)
        .mod(ModifierKind::FTZ, i.mods.ftz);
}

// --- memory ---------------------------------------------------------------------------------------------------------------------------

namespace {
uint32_t size_code(Type t) {
  switch (t) {
    case Type::u8:
    case Type::b8: return 0;
    case Type::s8: return 1;
    case Type::u16:
    case Type::b16:
    case Type::f16:
    case Type::bf16: return 2;
    case Type::s16: return 3;
    default: return ptx::type_bytes(t) == 4 ? 4 : ptx::type_bytes(t) == 8 ? 5 : 6;
  }
}
}  // namespace

Op Selector::address_of(const ptx::Instruction& i, const ptx::Operand& o) {
  const bool wide = i.mods.space == ptx::Space::global || i.mods.space == ptx::Space::generic;
  const bool descriptor = wide && t_.family == isa::Family::volta;
  if (descriptor) uses_descriptor_ = true;
  const int64_t reach = (int64_t{1} << 23) - 1;
  switch (o.kind) {
    case OperandKind::address_reg: {
      uint32_t r = o.id;
      int64_t offset = o.value;
      while (wide && !is_none(derived_[r].base) && std::abs(offset + derived_[r].offset) <= reach) {
        offset += derived_[r].offset;
        r = index(derived_[r].base);
      }
      const Alias& alias = aliases_[r];
      ptx::Operand reg{OperandKind::reg, false, 0, r, 0};
      if (wide) {
        Wide base = source64(reg);
        Op pair = pair_register(base);
        if (std::abs(offset) > reach) {
          Op t = temp(2);
          add64(t.reg, {pair, gpr(pair.reg + 1)}, source64({OperandKind::immediate, false, 0, 0, offset}), false);
          pair = t, offset = 0;
        }
        return address(pair.reg, offset, true, descriptor);
      }
      if (alias.kind != Alias::none && is_immediate(alias.lo))
        return address(isa::RZ, alias.lo.value + offset, false, false);
      Op base = as_register(source(reg, Type::u32));
      if (std::abs(offset) > reach) {
        Op t = temp();
        add(t.reg, base, immediate(offset));
        base = t, offset = 0;
      }
      return address(base.reg, offset, false, false);
    }
    case OperandKind::address_var:
    case OperandKind::variable: {
      const ptx::Variable& v = m_.variables[o.variable_id()];
      if (v.space == ptx::Space::shared && i.mods.space == ptx::Space::shared)
        return address(isa::RZ, t_.shared_base + shared_.offsets[o.id] + o.value, false, false);
      if (v.space == ptx::Space::local && i.mods.space == ptx::Space::local)
        return address(stack_register, local_offsets_[o.id] + o.value, false, false);
      if (v.space == ptx::Space::global && wide) {
        Op t = temp(2);
        variable_address(t.reg, v.name, o.value);
        return address(t.reg, 0, true, descriptor);
      }
      break;
    }
    case OperandKind::address_imm:
      if (!wide) return address(isa::RZ, o.value, false, false);
      return address(pair_register(source64({OperandKind::immediate, false, 0, 0, o.value})).reg, 0, true, descriptor);
    default: break;
  }
  unsupported(i, "address");
  return address(isa::RZ, 0, wide, descriptor);
}

void Selector::memory(const ptx::Instruction& i) {
  const uint32_t bytes = ptx::type_bytes(i.type);
  if (i.op == Opcode::atom || i.op == Opcode::red) {
    const bool result = i.op == Opcode::atom && p_.operand(i, 0).kind == OperandKind::reg;
    const uint32_t d = result ? destination(p_.operand(i, 0)) : isa::RZ;
    const uint32_t first = i.op == Opcode::atom ? 1 : 0;
    auto data = [&](uint32_t k) -> Op {
      if (k >= i.operand_count) return Op{};
      return bytes == 8 ? pair_register(source64(p_.operand(i, k))) : as_register(source(p_.operand(i, k), i.type));
    };
    Op at = address_of(i, p_.operand(i, first));
    if (i.mods.space == ptx::Space::generic) return unsupported(i, "atomics need a state space");
    Op value = data(first + 1), swap = data(first + 2);
    return atomic(i, d, at, value, swap);
  }
  if (i.op == Opcode::st) {
    const ptx::Operand& value = p_.operand(i, 1);
    if (i.mods.space == ptx::Space::param || i.mods.space == ptx::Space::constant) return unsupported(i);
    Op at = address_of(i, p_.operand(i, 0));
    if (value.kind != OperandKind::vector) {
      Op data = bytes == 8 ? pair_register(source64(value)) : as_register(source(value, i.type));
      return store(i, at, data, size_code(i.type));
    }
    const uint32_t total = bytes * value.count;
    if (total > 16 || bytes < 4) return unsupported(i);
    Op data = temp(total / 4);
    for (uint32_t e = 0; e < value.count; ++e) {
      const ptx::Operand& o = p_.vector_elements[value.id + e];
      if (bytes == 4) {
        mov(data.reg + e, source(o, i.type));
      } else {
        Wide w = source64(o);
        mov(data.reg + 2 * e, w.lo);
        mov(data.reg + 2 * e + 1, w.hi);
      }
    }
    return store(i, at, data, total == 8 ? 5 : 6);
  }
  // Loads.
  const ptx::Operand &o0 = p_.operand(i, 0), &from = p_.operand(i, 1);
  if (i.mods.space == ptx::Space::param || i.mods.space == ptx::Space::constant) {
    if (i.mods.space == ptx::Space::constant) return unsupported(i);
    if (from.kind != OperandKind::parameter) return unsupported(i);
    uint32_t offset = t_.parameter_base + parameter_offsets_[from.id] + static_cast<uint32_t>(from.value);
    auto one = [&](const ptx::Operand& o, uint32_t at) {
      if (o.kind != OperandKind::reg) return;
      const uint32_t d = destination(o), register_bytes = ptx::type_bytes(p_.registers[o.reg_id()].type);
      if (bytes < 4) {
        load_constant(d, 0, at, gpr(isa::RZ), size_code(i.type));
      } else {
        mov(d, constant(0, at));
        if (bytes == 8) return mov(d + 1, constant(0, at + 4));
      }
      if (register_bytes == 8) {
        if (ptx::is_signed(i.type))
          shift_right(d + 1, gpr(d), immediate(31), true);
        else
          mov(d + 1, gpr(isa::RZ));
      }
    };
    if (o0.kind == OperandKind::vector) {
      for (uint32_t e = 0; e < o0.count; ++e) one(p_.vector_elements[o0.id + e], offset + e * bytes);
      return;
    }
    if (aliases_[o0.id].kind != Alias::none) return;
    return one(o0, offset);
  }
  Op at = address_of(i, from);
  if (o0.kind != OperandKind::vector) {
    const uint32_t register_bytes =
        o0.kind == OperandKind::reg ? ptx::type_bytes(p_.registers[o0.reg_id()].type) : bytes;
    const uint32_t d = o0.kind == OperandKind::reg ? destination(o0) : isa::RZ;
    load(i, d, size_code(i.type), at);
    if (register_bytes == 8 && bytes < 8 && d != isa::RZ) {
      if (ptx::is_signed(i.type))
        shift_right(d + 1, gpr(d), immediate(31), true);
      else
        mov(d + 1, gpr(isa::RZ));
    }
    return;
  }
  const uint32_t total = bytes * o0.count;
  if (total > 16) return unsupported(i);
  const ptx::Operand* e = &p_.vector_elements[o0.id];
  if (bytes >= 4) {
    const uint32_t words = bytes / 4, width = total / 4;
    bool grouped = true;  // prepare() gave the results consecutive registers
    for (uint32_t k = 0; k < o0.count; ++k)
      grouped &= e[k].kind == OperandKind::reg && registers_[e[k].id] == registers_[e[0].id] + k * words;
    grouped = grouped && f_.gprs[registers_[e[0].id] - isa::first_virtual].width == width &&
              (registers_[e[0].id] - isa::first_virtual) == f_.gprs[registers_[e[0].id] - isa::first_virtual].first;
    if (grouped) return load(i, registers_[e[0].id], width == 2 ? 5 : 6, at);
    Op t = temp(width);
    load(i, t.reg, width == 2 ? 5 : 6, at);
    for (uint32_t k = 0; k < o0.count; ++k)
      if (e[k].kind == OperandKind::reg)
        for (uint32_t w = 0; w < words; ++w) mov(destination(e[k]) + w, gpr(t.reg + k * words + w));
    return;
  }
  // Small elements: one access, then fields.
  Op t = temp(total <= 4 ? 1 : 2);
  load(i, t.reg, total == 2 ? 2 : total == 4 ? 4 : 5, at);
  for (uint32_t k = 0; k < o0.count; ++k) {
    if (e[k].kind != OperandKind::reg) continue;
    const uint32_t bit = k * bytes * 8;
    Op word = gpr(t.reg + bit / 32), field = word;
    if (bit % 32) {
      field = temp();
      shift_right(field.reg, word, immediate(bit % 32), false);
    }
    extend(destination(e[k]), field, bytes * 8, ptx::is_signed(i.type));
    if (ptx::type_bytes(p_.registers[e[k].reg_id()].type) == 8) return unsupported(i);
  }
}

// --- atomics that the target lacks ----------------------------------------------------------------------------------------------------------

// old = [at]; do new = op(old); while another thread came between. No lane waits for another.
void Selector::compare_and_swap_loop(const ptx::Instruction& i, uint32_t d, Op at, Op data) {
  const bool wide = ptx::type_bytes(i.type) == 8;
  const uint32_t width = wide ? 2 : 1;
  // Values that cross blocks are no temporaries.
  Op old = gpr(new_gpr(f_, width, false)), value = gpr(new_gpr(f_, width, false)), base = gpr(at.reg);
  uint32_t done = new_predicate(f_, false);
  if (at.reg != isa::RZ && at.reg >= isa::first_virtual)
    base = gpr(new_gpr(f_, 1, false)), mov(base.reg, gpr(at.reg)), at.reg = base.reg;
  for (uint32_t w = 0; w < width; ++w) mov(value.reg + w, gpr(data.reg == isa::RZ ? isa::RZ : data.reg + w));
  emit(Mnemonic::LDS, {old, at}).mod(ModifierKind::Size, wide ? 5 : 4);
  const RegionId outer = f_.blocks[block_].innermost;
  BlockId loop = new_block(), landing = new_block(), after = landing;
  RegionId region = open_region(landing);
  seal(loop);
  start(loop, region);
  ++f_.blocks[loop].loop_depth;
  Op next = gpr(new_gpr(f_, width, false)), seen = gpr(new_gpr(f_, width, false));
  combine(i, next.reg, old, value);
  shared_compare_and_swap(seen.reg, at, old, next, wide);
  if (wide)
    setp64(done, isa::PT, Cmp::EQ, {seen, gpr(seen.reg + 1)}, {old, gpr(old.reg + 1)}, false, 0, predicate(isa::PT));
  else
    setp(done, isa::PT, Cmp::EQ, seen, old, false, 0, predicate(isa::PT));
  for (uint32_t w = 0; w < width; ++w) mov(old.reg + w, gpr(seen.reg + w));
  seal_branch(predicate(done, true), loop, landing);
  join(landing, region);
  f_.blocks[after].innermost = outer;
  if (d != isa::RZ)
    for (uint32_t w = 0; w < width; ++w) mov(d + w, gpr(old.reg + w));
}
void Selector::combine(const ptx::Instruction& i, uint32_t d, Op a, Op b) {
  using A = ptx::AtomicOp;
  const Wide wa{a, gpr(a.reg + 1)}, wb{b, gpr(b.reg + 1)};
  if (i.type == Type::f64) {
    if (i.mods.atomic == A::add)
      emit(Mnemonic::DADD, {gpr(d), a, b});
    else
      unsupported(i);
    return;
  }
  if (i.type == Type::f32) {
    if (i.mods.atomic == A::add)
      emit(Mnemonic::FADD, {gpr(d), a, b});
    else
      unsupported(i);
    return;
  }
  switch (i.mods.atomic) {
    case A::add: return add64(d, wa, wb, false);
    case A::min:
    case A::max: return min_max64(d, wa, wb, i.mods.atomic == A::max, ptx::is_signed(i.type));
    case A::and_:
    case A::or_:
    case A::xor_: {
      const uint8_t lut = i.mods.atomic == A::and_ ? 0xc0 : i.mods.atomic == A::or_ ? 0xfc : 0x3c;
      logic(d, wa.lo, wb.lo, lut);
      return logic(d + 1, wa.hi, wb.hi, lut);
    }
    default: return unsupported(i);
  }
}

// --- between threads ---------------------------------------------------------------------------------------------------------------------

void Selector::cooperate(const ptx::Instruction& i) {
  switch (i.op) {
    case Opcode::membar: return fence(i.mods.scope, true);
    case Opcode::fence: return fence(i.mods.scope, i.mods.semantics == ptx::Semantics::sc);
    case Opcode::bar:
    case Opcode::barrier: {
      if (i.op == Opcode::bar && i.mods.mode == 32) {  // bar.warp.sync
        if (!convergent_) converge(source(p_.operand(i, 0), Type::u32));
        return;
      }
      if (i.mods.mode > 1 || (i.mods.mode == 1 && i.op == Opcode::bar)) return unsupported(i);
      Op id = source(p_.operand(i, 0), Type::u32);
      Op count = i.operand_count > 1 ? source(p_.operand(i, 1), Type::u32) : Op{};
      if (is_register(id) && id.reg == isa::RZ) id = immediate(0);
      if (!is_immediate(id)) return unsupported(i, "barrier number in a register");
      if (i.operand_count > 1 && !is_immediate(count)) return unsupported(i, "thread count in a register");
      f_.barriers = std::max(f_.barriers, static_cast<uint32_t>(id.value) + 1);
      if (f_.barriers > 16) return unsupported(i, "there are 16 barriers");
      barrier(id, count);
      return;
    }
    case Opcode::shfl: {
      const uint32_t d = destination(p_.operand(i, 0));
      uint32_t p = isa::PT, first = i.destination_count;
      if (i.destination_count > 1 && p_.operand(i, 1).kind == OperandKind::reg) p = registers_[p_.operand(i, 1).id];
      Op a = as_register(source(p_.operand(i, first), Type::b32));
      Op lane = source(p_.operand(i, first + 1), Type::u32), clamp = source(p_.operand(i, first + 2), Type::u32);
      if (is_zero(lane)) lane = immediate(0);
      if (is_zero(clamp)) clamp = immediate(0);
      if (lane.kind == isa::OperandKind::constant) lane = as_register(lane);
      if (clamp.kind == isa::OperandKind::constant) clamp = as_register(clamp);
      if (is_immediate(lane)) lane.value &= 31;
      if (is_immediate(clamp)) clamp.value &= 0x1fff;
      if (!convergent_) converge(source(p_.operand(i, first + 3), Type::u32));
      using S = ptx::ShuffleMode;
      const uint32_t mode = i.mods.shuffle == S::idx    ? 0
                            : i.mods.shuffle == S::up   ? 1
                            : i.mods.shuffle == S::down ? 2
                                                        : 3;
      shuffle(d, p, a, lane, clamp, mode);
      f_.insts.back().cooperative = true;
      return;
    }
    case Opcode::vote: {
      const uint32_t d = destination(p_.operand(i, 0));
      Op p = source_predicate(p_.operand(i, 1));
      if (!convergent_ && i.operand_count > 2) converge(source(p_.operand(i, 2), Type::u32));
      return vote(i, d, p);
    }
    case Opcode::activemask: return vote(i, destination(p_.operand(i, 0)), predicate(isa::PT));
    default: unsupported(i);
  }
}

// --- division -----------------------------------------------------------------------------------------------------------------------------

void Selector::divide(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  const bool rem = i.op == Opcode::rem;
  if (i.type == Type::f32 || i.type == Type::f64) {
    if (rem) return unsupported(i);
    if (i.type == Type::f32 && (i.mods.approx || i.mods.full)) {
      Op a = source(p_.operand(i, 1), i.type), b = as_register(source(p_.operand(i, 2), i.type));
      // Divisors beyond 2^126 would have a reciprocal that is flushed to zero, subnormal ones an infinite one: scale both operands.
      if (i.mods.ftz && i.mods.approx) {
        Op r = temp();
        emit(Mnemonic::MUFU, {r, b}).mod(ModifierKind::Function, 4);
        emit(Mnemonic::FMUL, {gpr(d), r, a}).mod(ModifierKind::FTZ, 1);
        return;
      }
      Op x = as_register(a), scale = temp(), sa = temp(), sb = temp(), r = temp();
      uint32_t large = temp_predicate(), small = temp_predicate();
      emit(Mnemonic::FSETP,
           {predicate(large), predicate(isa::PT), absolute(b), immediate(0x7e800000), predicate(isa::PT)})
          .mod(ModifierKind::FloatCompare, 4);
      emit(Mnemonic::FSETP,
           {predicate(small), predicate(isa::PT), absolute(b), immediate(0x00800000), predicate(isa::PT)})
          .mod(ModifierKind::FloatCompare, 1);
      Op one = temp(), s1 = temp();
      mov(one.reg, immediate(0x3f800000));
      select(s1.reg, one, immediate(0x4b800000), predicate(small, true));
      select(scale.reg, s1, immediate(0x3e800000), predicate(large, true));
      emit(Mnemonic::FMUL, {sa, x, scale}).mod(ModifierKind::FTZ, i.mods.ftz);
      emit(Mnemonic::FMUL, {sb, b, scale}).mod(ModifierKind::FTZ, i.mods.ftz);
      emit(Mnemonic::MUFU, {r, sb}).mod(ModifierKind::Function, 4);
      emit(Mnemonic::FMUL, {gpr(d), r, sa}).mod(ModifierKind::FTZ, i.mods.ftz);
      return;
    }
    if (i.mods.rounding != ptx::Rounding::rn || !divide_or_root(i)) unsupported(i);
    return;
  }
  const bool is_signed = ptx::is_signed(i.type);
  if (is_wide(i.type)) {
    Op t = temp(2);
    divide64(rem ? isa::RZ : t.reg, rem ? t.reg : isa::RZ, source64(p_.operand(i, 1)), source64(p_.operand(i, 2)),
             is_signed);
    mov(d, t);
    return mov(d + 1, gpr(t.reg + 1));
  }
  Op t = temp();
  divide32(rem ? isa::RZ : t.reg, rem ? t.reg : isa::RZ, extended(p_.operand(i, 1), i.type),
           extended(p_.operand(i, 2), i.type), is_signed);
  mov(d, t);
}

// Unsigned: a reciprocal estimate q0 = trunc(2^32 / b - small) from the single-precision unit, one Newton step in integers, then at most two
// corrections of the quotient (the sequence that the vendor's compiler uses; exact for all operands, and all ones for a zero divisor).
void Selector::divide32(uint32_t quotient, uint32_t remainder, Op a0, Op b0, bool is_signed) {
  Op a = as_register(a0), b = as_register(b0);
  Op ua = a, ub = b;
  if (is_signed) {
    ua = temp(), ub = temp();
    abs32(ua.reg, a);
    abs32(ub.reg, b);
  }
  Op fb = temp(), r = temp(), bumped = temp(), q0 = temp(), e = temp(), h = temp(), q1 = temp(), q = temp(),
     rest = temp();
  int_to_float(fb.reg, 32, ub, 32, false, 2);
  emit(Mnemonic::MUFU, {r, fb}).mod(ModifierKind::Function, 4);
  add(bumped.reg, r, immediate(0x0ffffffe));
  float_to_int(q0.reg, 32, false, bumped, 32, 3, true);
  Op minus_b = temp();
  add(minus_b.reg, gpr(isa::RZ), negate(ub));
  mad(e.reg, minus_b, q0, gpr(isa::RZ));  // -b * q0 = 2^32 - b * q0
  mul_hi(h.reg, q0, e, false);
  add(q1.reg, q0, h);  // refined 2^32 / b
  mul_hi(q.reg, q1, ua, false);
  mad(rest.reg, minus_b, q, ua);  // a - b * q
  // Up to two corrections.
  Op r1 = temp(), q_1 = temp(), r1s = temp(), qs = temp();
  uint32_t p1 = temp_predicate(), p2 = temp_predicate();
  setp(p1, isa::PT, Cmp::GE, rest, ub, false, 0, predicate(isa::PT));
  add(r1s.reg, rest, negate(ub));
  add(qs.reg, q, immediate(1));
  select(r1.reg, r1s, rest, predicate(p1));
  select(q_1.reg, qs, q, predicate(p1));
  Op r2s = temp(), q2s = temp(), r2 = temp(), q2 = temp();
  setp(p2, isa::PT, Cmp::GE, r1, ub, false, 0, predicate(isa::PT));
  add(r2s.reg, r1, negate(ub));
  add(q2s.reg, q_1, immediate(1));
  select(r2.reg, r2s, r1, predicate(p2));
  select(q2.reg, q2s, q_1, predicate(p2));
  uint32_t zero = temp_predicate();
  setp(zero, isa::PT, Cmp::EQ, ub, gpr(isa::RZ), false, 0, predicate(isa::PT));
  if (quotient != isa::RZ) {
    Op result = q2;
    if (is_signed) {
      Op sign = temp(), n = temp(), s = temp();
      uint32_t negative = temp_predicate();
      logic(sign.reg, a, b, 0x3c);
      setp(negative, isa::PT, Cmp::LT, sign, gpr(isa::RZ), true, 0, predicate(isa::PT));
      add(n.reg, gpr(isa::RZ), negate(q2));
      select(s.reg, n, q2, predicate(negative));
      result = s;
    }
    select(quotient, result, immediate(-1), predicate(zero, true));
  }
  if (remainder != isa::RZ) {
    Op result = r2;
    if (is_signed) {
      Op n = temp(), s = temp();
      uint32_t negative = temp_predicate();
      setp(negative, isa::PT, Cmp::LT, a, gpr(isa::RZ), true, 0, predicate(isa::PT));
      add(n.reg, gpr(isa::RZ), negate(r2));
      select(s.reg, n, r2, predicate(negative));
      result = s;
    }
    select(remainder, result, a, predicate(zero, true));  // division by zero: undefined; the dividend
  }
}

// 64 bits, the same method: the reciprocal from the single-precision unit as a 64-bit integer, two Newton steps, two corrections.
void Selector::divide64(uint32_t quotient, uint32_t remainder, Wide a0, Wide b0, bool is_signed) {
  const Op zero = gpr(isa::RZ);
  auto pair_of = [&](Op t) { return Wide{gpr(t.reg), gpr(t.reg + 1)}; };
  auto select64 = [&](uint32_t d, Wide x, Wide y, Op p) { select(d, x.lo, y.lo, p), select(d + 1, x.hi, y.hi, p); };
  Wide a = pair_of(pair_register({as_register(a0.lo), as_register(a0.hi)})),
       b = pair_of(pair_register({as_register(b0.lo), as_register(b0.hi)}));
  Wide ua = a, ub = b;
  Op sign_a, sign_b;
  if (is_signed) {
    auto magnitude = [&](Wide x) {
      Op t = temp(2), r = temp(2);
      uint32_t p = temp_predicate();
      add64(t.reg, {zero, zero}, x, true);
      setp(p, isa::PT, Cmp::LT, x.hi, zero, true, 0, predicate(isa::PT));
      select64(r.reg, pair_of(t), x, predicate(p));
      return pair_of(r);
    };
    ua = magnitude(a), ub = magnitude(b);
  }
  // High 64 bits of an unsigned 64 x 64 product.
  auto mul_high = [&](Wide x, Wide y) {
    Op w0 = temp(2), c1 = temp(2), w1 = temp(2), c2 = temp(2), w2 = temp(2), c3 = temp(2), w3 = temp(2), c4 = temp(2),
       r = temp(2);
    mad_wide(w0.reg, x.lo, y.lo, {zero, zero}, false);
    mov(c1.reg, gpr(w0.reg + 1)), mov(c1.reg + 1, zero);
    mad_wide(w1.reg, x.hi, y.lo, pair_of(c1), false);
    mov(c2.reg, w1), mov(c2.reg + 1, zero);
    mad_wide(w2.reg, x.lo, y.hi, pair_of(c2), false);
    mov(c3.reg, gpr(w1.reg + 1)), mov(c3.reg + 1, zero);
    mad_wide(w3.reg, x.hi, y.hi, pair_of(c3), false);
    mov(c4.reg, gpr(w2.reg + 1)), mov(c4.reg + 1, zero);
    add64(r.reg, pair_of(w3), pair_of(c4), false);
    return pair_of(r);
  };
  auto negated = [&](Wide x) {
    Op r = temp(2);
    add64(r.reg, {zero, zero}, x, true);
    return pair_of(r);
  };
  auto product = [&](Wide x, Wide y) {
    Op r = temp(2);
    mul64(r.reg, x, y);
    return pair_of(r);
  };
  auto sum = [&](Wide x, Wide y, bool subtract) {
    Op r = temp(2);
    add64(r.reg, x, y, subtract);
    return pair_of(r);
  };
  Op fb = temp(), r = temp(), bumped = temp(), q0 = temp(2);
  int_to_float(fb.reg, 32, gpr(ub.lo.reg), 64, false, 2);
  emit(Mnemonic::MUFU, {r, fb}).mod(ModifierKind::Function, 4);
  add(bumped.reg, r, immediate(0x1ffffffe));
  float_to_int(q0.reg, 64, false, bumped, 32, 3, false);
  Wide x = pair_of(q0);
  Wide minus_b = negated(ub);
  for (int step = 0; step < 2; ++step) x = sum(x, mul_high(x, product(minus_b, x)), false);
  Wide q = mul_high(x, ua);
  Wide rest = sum(ua, product(minus_b, q), false);
  for (int step = 0; step < 2; ++step) {
    uint32_t p = temp_predicate();
    setp64(p, isa::PT, Cmp::GE, rest, ub, false, 0, predicate(isa::PT));
    Wide less = sum(rest, ub, true), more = sum(q, {immediate(1), zero}, false);
    Op nr = temp(2), nq = temp(2);
    select64(nr.reg, less, rest, predicate(p));
    select64(nq.reg, more, q, predicate(p));
    rest = pair_of(nr), q = pair_of(nq);
  }
  uint32_t by_zero = temp_predicate();
  setp64(by_zero, isa::PT, Cmp::EQ, ub, {zero, zero}, false, 0, predicate(isa::PT));
  auto with_sign = [&](Wide v, Op sign_word) {
    if (!is_signed) return v;
    uint32_t p = temp_predicate();
    Op s = temp(2);
    setp(p, isa::PT, Cmp::LT, sign_word, zero, true, 0, predicate(isa::PT));
    select64(s.reg, negated(v), v, predicate(p));
    return pair_of(s);
  };
  if (quotient != isa::RZ) {
    Op sign = temp();
    if (is_signed) logic(sign.reg, a.hi, b.hi, 0x3c);
    Wide v = with_sign(q, sign);
    select64(quotient, v, {immediate(-1), immediate(-1)}, predicate(by_zero, true));
  }
  if (remainder != isa::RZ) {
    Wide v = with_sign(rest, a.hi);
    select64(remainder, v, a, predicate(by_zero, true));
  }
}

// --- special functions ---------------------------------------------------------------------------------------------------------------------

void Selector::transcendental(const ptx::Instruction& i) {
  const uint32_t d = destination(p_.operand(i, 0));
  if (!i.mods.approx && i.mods.rounding == ptx::Rounding::rn && divide_or_root(i)) return;
  if (i.type != Type::f32 || !i.mods.approx) return unsupported(i);
  uint32_t function = 0;
  switch (i.op) {
    case Opcode::rcp: function = 4; break;
    case Opcode::sqrt: function = 8; break;
    case Opcode::rsqrt: function = 5; break;
    case Opcode::sin: function = 1; break;
    case Opcode::cos: function = 0; break;
    case Opcode::lg2: function = 3; break;
    case Opcode::ex2: function = 2; break;
    default: return unsupported(i);
  }
  Op a = as_register(source(p_.operand(i, 1), i.type));
  if (i.op == Opcode::sin || i.op == Opcode::cos) {
    emit(Mnemonic::MUFU, {gpr(d), mufu_argument(a, function)}).mod(ModifierKind::Function, function);
    return;
  }
  if (i.mods.ftz) {
    emit(Mnemonic::MUFU, {gpr(d), mufu_argument(a, function)}).mod(ModifierKind::Function, function);
    return;
  }
  // The unit flushes subnormal arguments: scale them up and the result back.
  uint32_t small = temp_predicate();
  Op scaled = temp(), x = temp(), y = temp(), fixed = temp();
  const bool ex2 = i.op == Opcode::ex2;
  Emitted test =
      emit(Mnemonic::FSETP, {predicate(small), predicate(isa::PT), ex2 ? a : absolute(a),
                             immediate(ex2 ? static_cast<int32_t>(0xc2fc0000) : 0x00800000), predicate(isa::PT)});
  test.mod(ModifierKind::FloatCompare, 1);
  emit(Mnemonic::FMUL, {scaled, a, immediate(ex2 ? 0x3f000000 : 0x4b800000)});
  select(x.reg, scaled, a, predicate(small));
  emit(Mnemonic::MUFU, {y, mufu_argument(x, function)}).mod(ModifierKind::Function, function);
  switch (i.op) {
    case Opcode::rcp: emit(Mnemonic::FMUL, {fixed, y, immediate(0x4b800000)}); break;    // 1/x = 2^24 / (2^24 x)
    case Opcode::sqrt: emit(Mnemonic::FMUL, {fixed, y, immediate(0x39800000)}); break;   // 2^-12
    case Opcode::rsqrt: emit(Mnemonic::FMUL, {fixed, y, immediate(0x45800000)}); break;  // 2^12
    case Opcode::lg2: emit(Mnemonic::FADD, {fixed, y, immediate(static_cast<int32_t>(0xc1c00000))}); break;  // - 24
    default: emit(Mnemonic::FMUL, {fixed, y, y}); break;  // ex2: squared
  }
  select(d, fixed, y, predicate(small));
}

Result<Function> select(const ptx::Module& m, const ptx::Function& p, const Flow& flow, const SharedLayout& shared,
                        const Options& o) {
  return o.target->family == isa::Family::volta ? select_volta(m, p, flow, shared, o)
                                                : select_pascal(m, p, flow, shared, o);
}

}  // namespace rndn::assembler
