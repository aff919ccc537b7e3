// Shares out integer instructions between two pipes of the multiprocessor.
//
// Input and output: allocated functions for Volta and later; instructions change, not their order or their registers. Each of the four schedulers of a
// multiprocessor issues a warp's instruction every cycle, but its ALU takes one every two cycles, and so does the multiplier for integers, beside it.
// What selection makes is mostly of the ALU: moves, sums, shifts, logic. Moves, sums of two, shifts to the left by a literal and the upper words of
// 64-bit sums are products too: of zero, of one, of a power of two. As ptxas does (IMAD.MOV, .IADD, .SHL, .X). On an H100 the ALU was what kernels of
// integers waited for ("math pipe throttle"; docs/measurements/ordinary-programs.tsv).
//
// Algorithm: one walk over each block, with the cycles by which either pipe is ahead of the other; where the ALU is, what can be a product becomes one. The
// difference counts up to a bound: code further away does not wait for the same instructions. A dependent instruction on the other pipe issues a cycle
// later, which scheduling knows, since it comes behind this pass.
// Cost: O(instructions).
#include <algorithm>
#include <array>

#include "assembler/backend/backend.h"
#include "assembler/isa/make.h"
#include "assembler/machine/inst_facts.h"
#include "assembler/machine/operands.h"
#include "assembler/machine/options.h"

namespace rndn::assembler {
namespace {

using isa::Mnemonic;
using isa::ModifierKind;
using Op = isa::Operand;
using L = isa::LatencyClass;

constexpr int32_t furthest = 8;  // cycles

// Cycles of the ALU (positive) and of the multiplier (negative) that an instruction takes. Floats have a second pipe besides it.
int32_t cycles(const Function& f, InstId i) {
  switch (f.facts[index(i)].latency) {
    case L::alu: return 2;
    case L::fma: {
      const Mnemonic m = f[i].sass.mnemonic;
      return m == Mnemonic::IMAD || m == Mnemonic::IMAD_HI ? -2 : -1;
    }
    case L::wide: return -4;
    default: return 0;
  }
}

// A product and a sum that an instruction is as well.
struct Product {
  Op a, b, c, carry = predicate(isa::PT, true);
  bool extended = false;  // with the carry
};
bool product_of(const isa::Instruction& s, Product& p) {
  const auto& o = s.operands;
  const auto power = [](const Op& n) { return immediate(int64_t{1} << n.value); };
  const auto shifts = [](const Op& n) { return n.kind == isa::OperandKind::immediate && n.value > 0 && n.value < 31; };
  switch (s.mnemonic) {
    case Mnemonic::MOV:
      if (isa::modifier(s, ModifierKind::LaneMask) != 15) return false;
      p = {gpr(isa::RZ), gpr(isa::RZ), o[1]};
      return true;
    case Mnemonic::IADD3: {
      if (!is_true(o[1]) || !is_true(o[2]) || !is_false(o[7])) return false;
      p.extended = isa::modifier(s, ModifierKind::X) != 0, p.carry = o[6];
      if (p.extended ? p.carry.reg == isa::PT : !is_false(o[6])) return false;
      std::array<Op, 3> terms;
      uint32_t count = 0;
      for (uint32_t k = 3; k < 6; ++k)
        if (!is_zero(o[k]) || (p.extended && o[k].negated)) {
          if (!is_register(o[k])) return false;
          terms[count++] = o[k];
        }
      if (count == 0 || count == 3) return false;
      if (count == 1) terms[1] = gpr(isa::RZ);
      if (terms[0].negated) std::swap(terms[0], terms[1]);
      if (terms[0].negated) return false;
      p.a = terms[0], p.b = immediate(1), p.c = terms[1];
      return true;
    }
    case Mnemonic::SHF:
      if (isa::modifier(s, ModifierKind::Right) || isa::modifier(s, ModifierKind::High) || !is_zero(o[3]) || !is_register(o[1]) ||
          !shifts(o[2]))
        return false;
      p = {o[1], power(o[2]), gpr(isa::RZ)};
      return true;
    case Mnemonic::LEA:
      if (!is_true(o[1]) || !is_register(o[2]) || o[2].negated || !is_register(o[3]) || o[3].negated || !shifts(o[4]) ||
          !is_false(o[5]) || isa::modifier(s, ModifierKind::X))
        return false;
      p = {o[2], power(o[4]), o[3]};
      return true;
    default: return false;
  }
}

// Makes it one, if it can be.
bool becomes_product(Function& f, InstId i, isa::FormCache& forms) {
  Inst& inst = f[i];
  Product p;
  if (inst.call != Call::none || !is_none(inst.symbol) || inst.pinned || !product_of(inst.sass, p)) return false;
  isa::Instruction made;
  const std::array<Op, 5> operands = {inst.sass.operands[0], p.a, p.b, p.c, p.carry};
  const isa::RowFacts* const row = isa::make(*f.target, Mnemonic::IMAD, std::span<const Op, 5>(operands), made, forms);
  if (!row) return false;
  if (p.extended) isa::set_modifier(made, *row, ModifierKind::X, 1);
  made.guard = inst.sass.guard, made.guard_negated = inst.sass.guard_negated;
  inst.sass = made;
  f.facts[index(i)] = facts_of(*f.target, inst);
  return true;
}

}  // namespace

void balance_pipes(Function& f, isa::FormCache& forms) {
  for (const BlockId b : f.layout) {
    int32_t ahead = 0;  // of the multiplier
    for (const InstId i : f.blocks[b].code) {
      int32_t more = cycles(f, i);
      if (more > 0 && ahead > 0 && becomes_product(f, i, forms)) more = -2;
      ahead = std::clamp(ahead + more, -furthest, furthest);
    }
  }
}

}  // namespace rndn::assembler
