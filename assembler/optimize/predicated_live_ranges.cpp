// Guarded values: a value that is written and read under one guard alone lives no longer than from its write to its last reader.
//
// Input and output: functions over virtual registers, before liveness. A guarded write does not end a life: the lanes that it leaves out keep
// what they had. So a value of an arm that branch inlining has predicated, in a loop, would live around the whole loop. Where a register has one
// write, and all its readers stand behind it in its block under the same guard, nobody sees what it held before: the write begins its life, as
// that of a temporary does. The guard must be the same value at both: a predicate with one write, which is not between them.
// A case of predicate-aware liveness (Gillies, Ju, Johnson, Schlansker, "Global Predicate Analysis and its Application to Register Allocation",
// 1996) that needs no relation between predicates.
// Cost: O(guarded instructions + units).
//
// Left out: several writes, guards that imply each other.
#include "assembler/optimize/optimize.h"

namespace rndn::assembler {

void find_predicated_live_ranges(Function& f, const Survey& survey) {
  ArenaScope scope(*f.arena);
  const uint32_t first_gpr = f.units.first_gpr;
  // By unit: readers under the guard of its only write.
  std::span<uint32_t> readers = f.arena->make_span<uint32_t>(survey.units.size());
  ArenaList<uint32_t> candidates(*f.arena, 64);  // the first units of values
  const auto has_one_guarded_write = [&](uint32_t u) {
    const UnitUse& x = survey.units[u];
    return f.units.is_allocated(u) && x.inst != UINT32_MAX && !x.several && !x.crosses && f.facts[x.inst].guarded;
  };
  const auto same_guard = [&](uint32_t a, uint32_t b) {
    return f.units.of(static_cast<InstId>(a)).writes[-1] == f.units.of(static_cast<InstId>(b)).writes[-1] &&
           f.insts[a].sass.guard_negated == f.insts[b].sass.guard_negated;
  };
  for (BlockId b : f.layout)
    for (InstId i : f.blocks[b].code) {
      if (!f.facts[index(i)].guarded) continue;
      const auto [reads, writes, end] = f.units.of(i);
      for (const uint32_t* u = reads; u != writes; ++u)
        if (has_one_guarded_write(*u)) readers[*u] += same_guard(survey.units[*u].inst, index(i));
      for (const uint32_t* w = writes; w != end; ++w)
        if (const uint32_t u = *w & ~Units::lasts; (*w & Units::lasts) && has_one_guarded_write(u))
          if (!f.units.is_gpr(u) || f.gprs[u - first_gpr].first == u - first_gpr) candidates.push(u);
    }
  for (uint32_t first : candidates.all()) {
    const bool is_gpr = f.units.is_gpr(first);
    const uint32_t width = is_gpr ? f.gprs[first - first_gpr].width : 1, write = survey.units[first].inst;
    bool all = true;
    for (uint32_t u = first; all && u < first + width; ++u) {
      const UnitUse& x = survey.units[u];
      all = has_one_guarded_write(u) && same_guard(x.inst, write) && readers[u] == x.readers;
      if (!all) break;
      // The guard has its value before the write: instructions of a block are numbered in their order here.
      const UnitUse& p = survey.units[f.units.of(static_cast<InstId>(x.inst)).writes[-1]];
      all = !p.several && p.inst != UINT32_MAX && (p.block != x.block || p.inst < x.inst);
    }
    if (!all) continue;
    for (uint32_t u = first; u < first + width; ++u) {
      (is_gpr ? f.gprs[u - first_gpr].temporary : f.predicates[u].temporary) = true;
      const auto [reads, writes, end] = f.units.of(static_cast<InstId>(survey.units[u].inst));
      for (uint32_t* w = const_cast<uint32_t*>(writes); w != end; ++w)
        if ((*w & ~Units::lasts) == u) *w = u;
    }
  }
}

}  // namespace rndn::assembler
