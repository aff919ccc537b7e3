// What the code says of each unit of a register: gathered once, after selection (inst_facts.cpp).
#pragma once
#include <span>

#include "assembler/machine/ir.h"

namespace rndn::assembler {

// What becomes of a unit in the function.
struct UnitUse {
  uint32_t readers = 0;                            // instructions and branches
  uint32_t inst = UINT32_MAX, block = UINT32_MAX;  // of the last write in the order of the code; none: never written
  bool several = false;                            // writes
  bool zero = false;                               // all of them are moves of zero
  bool crosses = false;                            // a GPR or predicate that is read in a block that did not write it before
};
struct Survey {
  std::span<UnitUse> units;  // by unit
  uint32_t crossing = 0;     // GPRs that live across blocks, about
  bool zeros = false;        // some unit is zero
};
// Gathers facts and units of all instructions. The answer lives in the function's arena.
Survey survey(Function& f);
void list_units(Function& f);  // of all instructions, anew

}  // namespace rndn::assembler
