// Liveness of registers at block boundaries, before and after allocation.
//
// Backward data flow over bit sets, restricted to registers that some path has defined (forward data flow): a guarded write does not end a life,
// and without the restriction a register that is only ever written under guards would seem alive from the function's entry.
// A guarded write to a temporary of one expansion begins its life: its readers run under the same guard.
// Cost: O(instructions + blocks * registers / 64 * rounds).
#include "assembler/passes.h"

namespace rndn::assembler {

Liveness compute_liveness(const Function& f) {
  Liveness result;
  const uint32_t base = f.allocated ? 0 : isa::first_virtual;
  result.gprs = f.allocated ? 256 : static_cast<uint32_t>(f.gprs.size());
  const uint32_t predicates = f.allocated ? 8 : static_cast<uint32_t>(f.temporary_predicate.size());
  result.total = result.gprs + predicates;
  const size_t n = f.blocks.size();
  result.in = IdVector<BlockId, Bitset>(n, Bitset(result.total));
  result.out = result.in;
  IdVector<BlockId, Bitset> use = result.in, def = result.in, defined = result.in;
  auto index_of = [&](uint32_t reg, isa::RegisterFile file) {
    return file == isa::RegisterFile::gpr ? reg - base : result.gprs + reg - base;
  };
  for (BlockId b : f.layout) {
    Bitset& u = use[b];
    Bitset& d = def[b];
    Bitset& w = defined[b];
    for (InstId i : f.blocks[b].code) {
      const Inst& inst = f[i];
      for_each_read(inst, [&](uint32_t r, uint32_t width, isa::RegisterFile file) {
        if (r < base) return;
        for (uint32_t k = 0; k < width; ++k)
          if (uint32_t x = index_of(r + k, file); !d.test(x)) u.set(x);
      });
      for_each_write(inst, [&](uint32_t r, uint32_t width, isa::RegisterFile file) {
        if (r < base) return;
        for (uint32_t k = 0; k < width; ++k) {
          uint32_t x = index_of(r + k, file);
          w.set(x);
          bool kills = inst.sass.guard == isa::PT;
          if (!kills && !f.allocated)
            kills = file == isa::RegisterFile::gpr ? f.gprs[x].temporary : f.temporary_predicate[x - result.gprs];
          if (kills && !u.test(x))
            d.set(x);
          else if (!kills && !d.test(x))
            u.set(x);
        }
      });
    }
    if (f.blocks[b].predicate != isa::PT && f.blocks[b].predicate >= base)
      if (uint32_t x = index_of(f.blocks[b].predicate, isa::RegisterFile::predicate); !d.test(x)) u.set(x);
  }
  // Registers that may have been written before the end of a block.
  for (bool changed = true; changed;) {
    changed = false;
    for (BlockId b : f.layout)
      for_each_successor(f.blocks[b], [&](BlockId s) { changed |= defined[s].merge(defined[b]); });
  }
  IdVector<BlockId, Bitset> defined_in(n, Bitset(result.total));
  for (BlockId b : f.layout) for_each_successor(f.blocks[b], [&](BlockId s) { defined_in[s].merge(defined[b]); });
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = f.layout.size(); k-- > 0;) {
      BlockId b = f.layout[k];
      for_each_successor(f.blocks[b], [&](BlockId s) { changed |= result.out[b].merge(result.in[s]); });
      Bitset live = result.out[b];
      live.subtract(def[b]);
      live.merge(use[b]);
      live.intersect(defined_in[b]);
      changed |= result.in[b].merge(live);
    }
  }
  return result;
}

}  // namespace rndn::assembler
