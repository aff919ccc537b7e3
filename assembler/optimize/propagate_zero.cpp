// Words that are zero are read as RZ.
//
// Input and output: functions over virtual registers, with their survey, which is kept up to date. PTX that extends an unsigned value to 64 bits makes
// the upper word a register of its own, which holds zero as long as the value lives; here whoever reads that word alone reads RZ. Where pairs are
// read as a whole, as addresses and by double precision, the word stays. All that writes it are moves of zero. Behind combine.cpp:
// before it, sums take in more, and pairs that they then need cost `adam` of HeCBench its occupancy.
// Which they are the survey has found; coalesce_copies.cpp and combine.cpp write none of them otherwise.
// Cost: O(instructions) where there are such words.
//
// Left out: other literals, which few places of an instruction take; words that are zero by other instructions.
#include <algorithm>

#include "assembler/machine/operands.h"
#include "assembler/optimize/optimize.h"

namespace rndn::assembler {

bool propagate_zero(Function& f, Survey& survey) {
  if (!survey.zeros) return false;
  const std::span<UnitUse> uses = survey.units;
  bool changed = false;
  for (BlockId b : f.layout)
    for (InstId i : f.blocks[b].code) {
      const Units::List list = f.units.of(i);
      if (std::none_of(list.reads, list.writes, [&](uint32_t u) { return uses[u].zero; })) continue;
      Facts& x = f.facts[index(i)];
      bool reads_zero = false;
      for (const Range r : x.reads()) {
        if (r.file() != Range::gpr || r.width() != 1 || r.reg() < isa::first_virtual) continue;
        UnitUse& use = uses[f.units.of(Range::gpr, r.reg())];
        isa::Operand& o = f[i].sass.operands[r.operand()];
        if (!use.zero || o.kind != isa::OperandKind::gpr || !isa::takes_rz(f[i].sass, r.operand())) continue;
        o.reg = isa::RZ;
        --use.readers;
        reads_zero = true;
      }
      if (!reads_zero) continue;
      const bool crosses = x.crosses;
      x = facts_of(*f.target, f[i]);
      x.crosses = crosses;
      list_units(f, i);
      changed = true;
    }
  return changed;
}

}  // namespace rndn::assembler
