// Decodes a kernel once: words to instructions (rows of the ISA), instructions to Ops (handlers and rows of registers).
//
// Output: program.ops[i] belongs to program.instructions[i] at program.addresses[i]; one more op catches execution past the end.
// Cost: O(instructions).
#include <algorithm>

#include "assembler/simulator/lanes.h"
#include "assembler/simulator/select.h"

namespace rndn::sim {

using isa::OperandKind;

uint32_t Program::index_of(uint64_t address) const {
  // Pascal: the base of a bundle stands for its first instruction, whose own address is 8 more.
  if (target->family == isa::Family::pascal && address % 32 == 0) address += 8;
  const auto it = std::lower_bound(addresses.begin(), addresses.end(), address);
  return it != addresses.end() && *it == address ? static_cast<uint32_t>(it - addresses.begin()) : size();
}

Source Selector::immediate(uint32_t value) {
  const auto [it, added] = pool_index.try_emplace(value, static_cast<uint32_t>(program.pool.size()));
  if (added) program.pool.push_back({false, 0, value, index});
  return {it->second * lanes, 1};
}

uint32_t Selector::uniform_row(uint32_t reg) const {
  return reg == isa::URZ ? zero_row : first_register_row + (program.registers + reg) * lanes;
}
uint32_t Selector::register_row(uint32_t reg) const {
  return reg == isa::RZ ? zero_row : first_register_row + reg * lanes;
}

Source Selector::source(uint32_t k, uint32_t words) {
  const isa::Operand& o = operand(k);
  switch (o.kind) {
    case OperandKind::gpr: return {register_row(o.reg)};
    case OperandKind::uniform: return {uniform_row(o.reg)};
    case OperandKind::immediate: {
      if (words == 1) return immediate(static_cast<uint32_t>(o.value));
      // A double's immediate is its high word.
      const uint64_t key = uint64_t{1} << 62 | static_cast<uint32_t>(o.value);
      const auto [it, added] = pool_index.try_emplace(key, static_cast<uint32_t>(program.pool.size()));
      if (added) {
        program.pool.push_back({false, 0, 0, index});
        program.pool.push_back({false, 0, static_cast<uint32_t>(o.value), index});
      }
      return {it->second * lanes, 1};
    }
    case OperandKind::constant: {
      if (o.reg != isa::RZ || o.uniform != isa::URZ) error = "indexed constant operand";
      const uint64_t key =
          uint64_t{1} << 63 | uint64_t{words} << 56 | uint64_t{o.bank} << 32 | static_cast<uint32_t>(o.value);
      const auto [it, added] = pool_index.try_emplace(key, static_cast<uint32_t>(program.pool.size()));
      if (added)
        for (uint32_t i = 0; i < words; ++i)
          program.pool.push_back({true, o.bank, static_cast<uint32_t>(o.value) + 4 * i, index});
      return {it->second * lanes, 1};
    }
    case OperandKind::none: return {};
    default: error = fmt::format("operand {} of an unexpected kind", k); return {};
  }
}

Source Selector::integer(uint32_t k) {
  Source s = source(k, 1);
  if (operand(k).negated) {
    s.flip = all_lanes;
    ++negations;
  }
  return s;
}
Source Selector::f32(uint32_t k) {
  Source s = source(k, 1);
  if (operand(k).absolute) s.keep = 0x7fffffff;
  if (operand(k).negated) s.flip = 0x80000000;
  return s;
}
Source Selector::f64(uint32_t k) {
  Source s = source(k, 2);
  if (operand(k).absolute) s.keep = 0x7fffffff;
  if (operand(k).negated) s.flip = 0x80000000;
  return s;
}

uint32_t Selector::destination(uint32_t k) const {
  const isa::Operand& o = operand(k);
  if (o.kind == OperandKind::gpr && o.reg != isa::RZ) return first_register_row + o.reg * lanes;
  if (o.kind == OperandKind::uniform && o.reg != isa::URZ)
    return first_register_row + (program.registers + o.reg) * lanes;
  return trash_row;
}

uint8_t Selector::predicate_destination(uint32_t k) const {
  const isa::Operand& o = operand(k);
  if (o.reg >= isa::PT) return trash_predicate;
  if (o.kind == OperandKind::predicate) return static_cast<uint8_t>(o.reg);
  if (o.kind == OperandKind::uniform_predicate) return static_cast<uint8_t>(uniform_predicates + o.reg);
  return trash_predicate;
}

PredicateSource Selector::predicate(uint32_t k) const {
  const isa::Operand& o = operand(k);
  const uint32_t flip = o.negated ? all_lanes : 0;
  if (o.kind == OperandKind::predicate && o.reg <= isa::PT) return {o.reg, flip};
  if (o.kind == OperandKind::uniform_predicate && o.reg <= isa::PT) return {uniform_predicates + o.reg, flip};
  return {true_predicate, 0};
}

uint32_t Selector::label(uint32_t k) const { return program.index_of(static_cast<uint64_t>(operand(k).value)); }

void Selector::address(Op& op, uint32_t k) {
  const isa::Operand& o = operand(k);
  op.a = {register_row(o.reg)};
  op.b = {o.wide && o.reg != isa::RZ ? register_row(o.reg) + lanes : zero_row};
  op.c = {o.descriptor ? zero_row : uniform_row(o.uniform)};
  if (o.descriptor && target.descriptor_offset)
    op.descriptor = o.uniform == isa::URZ ? zero_row + lanes : uniform_row(o.uniform);
  op.offset = o.value;
}

namespace {
Status undefined_instruction(Warp& w, const Op& op, uint32_t mask) {
  return fail(w, op, std::countr_zero(mask ? mask : 1), w.launch->program->errors[op.x]);
}

Status past_the_end(Warp& w, const Op& op, uint32_t mask) {
  return fail(w, op, std::countr_zero(mask), "execution runs past the end of the code");
}

// Rows that an instruction touches; generous, since the widest access is four registers.
void count_registers(const isa::Instruction& in, Program& program) {
  for (uint32_t k = 0; k < in.operand_count; ++k) {
    const isa::Operand& o = in.operands[k];
    if ((o.kind == OperandKind::gpr || o.kind == OperandKind::address || o.kind == OperandKind::constant) &&
        o.reg < isa::RZ)
      program.registers = std::max(program.registers, o.reg + 4);
    if (o.kind == OperandKind::uniform && o.reg < isa::URZ)
      program.uniform_registers = std::max(program.uniform_registers, o.reg + 2);
    if ((o.kind == OperandKind::address || o.kind == OperandKind::constant) && o.uniform < isa::URZ)
      program.uniform_registers = std::max<uint32_t>(program.uniform_registers, o.uniform + 2);
  }
}
}  // namespace

Result<void> decode_program(const isa::Target& target, std::span<const std::byte> code, Program& program) {
  program.target = &target;
  for (const isa::Located& located : isa::unpack(target, code)) {
    isa::Instruction in;
    // A word that no row describes is an error when it is executed: code that is never reached may hold anything.
    if (!isa::decode(target, located.word, located.address, in)) {
      in = isa::Instruction{};
      in.mnemonic = isa::Mnemonic::NOP;
      program.undecodable.emplace_back(static_cast<uint32_t>(program.instructions.size()),
                                       fmt::format("word {:016x}_{:016x} is no known instruction of {}",
                                                   located.word.hi, located.word.lo, target.name));
    }
    program.instructions.push_back(in);
    program.addresses.push_back(located.address);
    count_registers(in, program);
  }
  const uint32_t n = static_cast<uint32_t>(program.instructions.size());
  if (n == 0) return input_error("kernel `{}` has no code", program.name);
  program.ops.resize(n);
  Selector s{target, program};
  auto undecodable = program.undecodable.begin();
  for (uint32_t i = 0; i < n; ++i) {
    const isa::Instruction& in = program.instructions[i];
    s.in = &in;
    s.index = i;
    s.negations = 0;
    s.error.clear();
    Op op;
    if (undecodable != program.undecodable.end() && undecodable->first == i) {
      op.run = undefined_instruction;
      op.x = static_cast<uint32_t>(program.errors.size());
      program.errors.push_back(undecodable++->second);
      program.ops[i] = op;
      continue;
    }
    const bool known = select_control(s, op) || select_warp(s, op) || (!s.volta() && select_pascal_integer(s, op)) ||
                       select_integer(s, op) || select_float(s, op) || select_conversion(s, op) || select_half(s, op) ||
                       select_memory(s, op) || select_atomic(s, op);
    if (!known) s.error = "this instruction has no meaning in the simulator yet";
    if (!s.error.empty() || !op.run) {
      op = Op{};
      op.run = undefined_instruction;
      op.x = static_cast<uint32_t>(program.errors.size());
      program.errors.push_back(s.error.empty() ? "this instruction has no meaning in the simulator yet" : s.error);
    }
    // The guard of uniform-datapath instructions is a uniform predicate; R2UR's is a lane's.
    if (in.guard < isa::PT) op.guard.index = isa::guard_is_uniform(in.form) ? uniform_predicates + in.guard : in.guard;
    op.guard.flip = in.guard_negated ? all_lanes : 0;
    op.stall = in.control.stall;
    program.ops[i] = op;
  }
  make_footprints(program);
  Op end;
  end.run = past_the_end;
  program.ops.push_back(end);
  program.footprints.emplace_back();
  const auto class_of = [](const isa::Instruction& in) {  // words that are no instructions end the launch
    return is_none(in.form) ? isa::LatencyClass::nop : isa::latency_class(in);
  };
  for (const isa::Instruction& in : program.instructions) program.classes.push_back(static_cast<uint8_t>(class_of(in)));
  program.classes.push_back(static_cast<uint8_t>(isa::LatencyClass::nop));
  find_spin_loops(program);
  return {};
}

}  // namespace rndn::sim
