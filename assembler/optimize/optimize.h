// The optimizations over virtual registers, and the peepholes after allocation. Each file says on top what it does and relies on.
#pragma once
#include <span>

#include "assembler/machine/inst_facts.h"
#include "assembler/machine/ir.h"
#include "assembler/machine/liveness.h"

namespace rndn::assembler {

// --- propagate_zero.cpp: words that are zero are read as RZ; returns whether any was
bool propagate_zero(Function& f, Survey& survey);

// --- predicated_live_ranges.cpp: values that live under one guard become temporaries
void find_predicated_live_ranges(Function& f, const Survey& survey);

// --- peephole.cpp
void remove_dead_code(Function& f, Survey& survey);  // over virtual registers
void peephole_allocated(Function& f);                // MOV R, R; loads to RZ

// --- coalesce_copies.cpp: over virtual registers; copies within a block
void coalesce_copies(Function& f, Survey& survey);

// --- combine.cpp: over virtual registers; one instruction for two of a block
void combine(Function& f, Survey& survey, isa::FormCache& forms);

// --- value_numbering.cpp: over virtual registers; what has been computed already is not computed again, invariants in front of loops
void number_values(Function& f, Survey& survey);

// --- uniform_registers.cpp: loop invariants to uniform registers; returns whether anything changed
bool move_uniform_values(Function& f, Survey& survey, isa::FormCache& forms);

// --- rematerialize.cpp: values made again where they are used; returns whether anything changed. The survey knows of the readers that either pass
// moves, and of no new units.
bool rematerialise(Function& f, Survey& survey);

// --- partial_dce.cpp: what only instructions under one guard need gets this guard, what nobody needs goes, if about `worth` GPRs then live around
// fewer blocks; returns whether anything changed
bool remove_partly_dead_code(Function& f, const Liveness& live, uint32_t worth);

// --- rename_webs.cpp: what a block writes several times becomes several values. The answer lives in the function's arena.
struct Renamed {
  InstId inst;
  uint32_t range, reg;  // index of the range in its facts; the register that it named
};
std::span<const Renamed> rename_webs(Function& f, const Liveness& live);
void undo_rename_webs(Function& f, std::span<const Renamed> renamed);  // takes the names back

}  // namespace rndn::assembler
