// Rewrites of single instructions.
//
// remove_dead_code (virtual registers): instructions without effect whose results nobody reads: what selection and the passes behind it leave, since what
// the program says for nothing is gone before (dead_code.cpp). Sweeps backwards once over the code with the survey's counts of readers: a removed
// instruction takes its own reads away, so chains die in one pass. The survey is kept up to date. O(instructions).
// peephole_allocated (physical registers): the thesis's two, `MOV R, R` and loads to RZ that nobody can observe.
#include "assembler/optimize/optimize.h"

namespace rndn::assembler {

void remove_dead_code(Function& f, Survey& survey) {
  const Units& units = f.units;
  UnitUse* const uses = survey.units.data();
  const Facts* const all_facts = f.facts.data();
  for (size_t k = f.layout.size(); k-- > 0;) {
    std::vector<InstId>& code = f.blocks[f.layout[k]].code;
    bool carry_needed = false;
    InstId *const begin = code.data(), *const end = begin + code.size(), *kept = end;
    for (InstId* at = end; at != begin;) {
      const InstId i = *--at;
      const Facts& facts = all_facts[index(i)];
      const Units::List list = units.of(i);
      bool needed = facts.pinned | facts.writes_elsewhere | (facts.writes_carry & carry_needed);
      for (const uint32_t* w = list.writes; w != list.end && !needed; ++w) {
        const uint32_t u = *w & ~Units::lasts;
        needed = uses[u].readers != 0 && units.is_allocated(u);
      }
      if (!needed) {
        for (Range r : facts.writes()) needed |= r.reg() < isa::first_virtual;  // a physical register
        if (!needed) {
          for (const uint32_t* u = list.reads; u != list.writes; ++u) --uses[*u].readers;
          for (const uint32_t* w = list.writes; w != list.end; ++w) uses[*w & ~Units::lasts].inst = UINT32_MAX;
          continue;
        }
      }
      carry_needed = facts.reads_carry | (carry_needed & !facts.writes_carry);
      *--kept = i;
    }
    if (kept != begin) code.erase(code.begin(), code.begin() + (kept - begin));
  }
}

void peephole_allocated(Function& f) {
  for (BlockId b : f.layout)
    std::erase_if(f.blocks[b].code, [&](InstId i) {
      const Facts& facts = f.facts[index(i)];
      if (facts.copies)
        return facts.read_count > facts.guarded && !facts.writes().empty() &&
               facts.writes()[0].reg() == facts.reads()[0].reg();
      if (facts.memory == Memory::shared_load || facts.memory == Memory::constant_load ||
          facts.memory == Memory::local_load)
        return !facts.pinned && facts.writes().empty();
      return false;
    });
}

}  // namespace rndn::assembler
