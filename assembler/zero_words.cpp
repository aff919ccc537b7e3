// Words that are zero are read as RZ.
//
// Input and output: functions over virtual registers, with their survey, which is kept up to date. PTX that extends an unsigned value to 64 bits makes
// the upper word a register of its own, which holds zero as long as the value lives; here whoever reads that word alone reads RZ. Where pairs are
// read as a whole, as addresses and by double precision, the word stays. All that writes it are moves of zero.
// Cost: O(instructions), twice where there are such words.
//
// Left out: other literals, which few places of an instruction take; words that are zero by other instructions.
#include <algorithm>

#include "assembler/build.h"
#include "assembler/passes.h"

namespace rndn::assembler {

bool spread_zeros(Function& f, Survey& survey) {
  ArenaScope scope(*f.arena);
  const std::span<UnitUse> uses = survey.units;
  enum Written : uint8_t { never, zero, otherwise };
  const std::span<Written> written = f.arena->make_span<Written>(uses.size(), never);  // by unit
  const auto is_virtual = [](Range r) {
    return r.file() == Range::gpr && r.width() == 1 && r.reg() >= isa::first_virtual;
  };
  bool found = false;
  for (BlockId b : f.layout)
    for (InstId i : f.blocks[b].code) {
      const Facts& x = f.facts[index(i)];
      const bool moves_zero = x.read_count == x.guarded && x.count == x.read_count + 1 && !x.pinned &&
                              f[i].sass.mnemonic == isa::Mnemonic::MOV && is_zero(f[i].sass.operands[1]);
      found |= moves_zero;
      const Units::List list = f.units.of(i);
      for (const uint32_t* w = list.writes; w != list.end; ++w) {
        Written& u = written[*w & ~Units::lasts];
        u = std::max(u, moves_zero ? zero : otherwise);
      }
    }
  if (!found) return false;
  bool changed = false;
  for (BlockId b : f.layout)
    for (InstId i : f.blocks[b].code) {
      Facts& x = f.facts[index(i)];
      bool reads_zero = false;
      for (const Range r : x.reads()) {
        if (!is_virtual(r)) continue;
        const uint32_t u = f.units.of(Range::gpr, r.reg());
        isa::Operand& o = f[i].sass.operands[r.operand()];
        if (u >= written.size() || written[u] != zero || o.kind != isa::OperandKind::gpr) continue;
        o.reg = isa::RZ;
        --uses[u].readers;
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
