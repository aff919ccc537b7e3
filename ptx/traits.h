// Opcodes of PTX by what passes over PTX ask of them.
#pragma once
#include <array>
#include <initializer_list>

#include "ptx/ir.h"
#include "ptx/opcodes.h"

namespace rndn::ptx {

// What an opcode is to the passes that look at PTX: most have nothing to do with control flow, which one look says.
enum Trait : uint16_t {
  branches = 1,
  ends = 2,       // threads
  waits_for = 4,  // other lanes: barriers of the block, operations of the warp
  expands = 8,    // to code with branches of its own, perhaps
  calls = 16,
  differs = 32,     // its result may differ between lanes whatever it is given
  cheap = 64,       // to run for nothing, where a branch around it is the other choice (most types: flow/structurize.cpp)
  copyable = 128,   // does the same wherever it runs and however often (most operands: may_be_copied)
  removable = 256,  // has no effect but its results (most modifiers: dead_code.cpp)
};
inline constexpr auto traits = [] {
  using O = Opcode;
  std::array<uint16_t, opcode_count> table{};
  const auto set = [&](uint16_t trait, std::initializer_list<O> opcodes) {
    for (O op : opcodes) table[static_cast<size_t>(op)] |= trait;
  };
  set(branches, {O::bra});
  set(ends, {O::ret, O::exit});
  set(waits_for,
      {O::bar, O::barrier, O::ldmatrix, O::stmatrix, O::shfl, O::vote, O::match, O::redux, O::elect, O::activemask});
  set(expands,
      {O::atom, O::red, O::div, O::rem, O::sqrt, O::rcp, O::rsqrt, O::match, O::redux, O::bar, O::barrier, O::call});
  set(calls, {O::call});
  // addc, subc, madc: the condition code is not followed.
  set(differs, {O::atom, O::shfl, O::vote, O::match, O::activemask, O::redux, O::call, O::bar, O::barrier, O::addc,
                O::subc, O::madc});
  set(cheap, {O::mul, O::mad,  O::fma,  O::add,  O::sub, O::min, O::max, O::abs,  O::neg,  O::mov, O::and_,
              O::or_, O::xor_, O::not_, O::lop3, O::shl, O::shr, O::shf, O::prmt, O::setp, O::selp});
  set(copyable, {O::add,  O::sub,      O::addc,      O::subc, O::mul,   O::mad,      O::mul24,    O::mad24, O::sad,
                 O::fma,  O::abs,      O::neg,       O::min,  O::max,   O::rcp,      O::sqrt,     O::rsqrt, O::sin,
                 O::cos,  O::lg2,      O::ex2,       O::tanh, O::testp, O::copysign, O::and_,     O::or_,   O::xor_,
                 O::not_, O::cnot,     O::lop3,      O::shl,  O::shr,   O::shf,      O::prmt,     O::popc,  O::clz,
                 O::brev, O::bfind,    O::fns,       O::bfe,  O::bfi,   O::bmsk,     O::szext,    O::dp4a,  O::dp2a,
                 O::setp, O::set,      O::selp,      O::slct, O::cvt,   O::cvta,     O::isspacep, O::ld,    O::ldu,
                 O::st,   O::prefetch, O::prefetchu, O::atom, O::red,   O::div,      O::rem,      O::mov});
  for (uint16_t& t : table) t |= t & copyable ? removable : 0;
  for (O op : {O::st, O::prefetch, O::prefetchu, O::atom, O::red})
    table[static_cast<size_t>(op)] &= static_cast<uint16_t>(~removable);
  return table;
}();
inline uint16_t traits_of(const Instruction& i) { return traits[static_cast<size_t>(i.op)]; }

// True when selection expands the instruction into code with branches of its own: a guard becomes a branch around it.
bool expands_to_branches(const Instruction& inst);

inline bool tells_time(const Operand& o) {
  const auto r = static_cast<SpecialRegister>(o.id);
  return o.kind == Operand::special && r >= SpecialRegister::clock &&
         r <= SpecialRegister::globaltimer_hi;
}

// What does the same wherever it runs and however often: nothing that knows of other lanes, the time or where it stands in the code, and nothing that becomes
// long code. Memory it may touch.
inline bool may_be_copied(const Function& f, const Instruction& i) {
  if (!(traits_of(i) & copyable) || expands_to_branches(i)) return false;
  if (i.op == Opcode::div || i.op == Opcode::rem)
    return is_floating(i.type) || f.operand(i, 2).kind == Operand::immediate;
  for (uint32_t k = 0; k < i.operand_count; ++k) {
    if (tells_time(f.operand(i, k))) return false;
  }
  return true;
}

}  // namespace rndn::ptx
