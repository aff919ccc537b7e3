// Rewrites of single instructions.
//
// remove_dead_code (virtual registers): instructions without effect whose results nobody reads. Counts the readers of every register in the
// function, then sweeps backwards once: a removed instruction takes its own reads away, so chains die in one pass. A register that only its own
// update reads stays. O(instructions). Returns how many GPRs were read in a block that did not write them before: what relieve goes by.
// peephole_allocated (physical registers): the thesis's two, `MOV R, R` and loads to RZ that nobody can observe.
#include "assembler/passes.h"

namespace rndn::assembler {

uint32_t remove_dead_code(Function& f) {
  ArenaScope scope(*f.arena);
  const uint32_t gprs = static_cast<uint32_t>(f.gprs.size());
  constexpr uint32_t crosses = UINT32_MAX;
  struct Unit {
    uint32_t readers = 0;
    uint32_t block = 0;  // one beyond the block that wrote it last, in the order of the code; or `crosses`
  };
  std::span<Unit> units = f.arena->make_span<Unit>(gprs + f.temporary_predicate.size(), Unit{});
  uint32_t crossing = 0;
  const std::array<uint32_t, 2> base = {0u - isa::first_virtual, gprs - isa::first_virtual};
  const auto for_each_unit = [&](std::span<const Range> ranges, auto&& use) {
    for (Range r : ranges) {
      if (r.reg() < isa::first_virtual || !r.allocated()) continue;
      uint32_t x = r.reg() + base[r.file()];
      use(x);
      for (uint32_t w = r.width(); w > 1; --w) use(++x);
    }
  };
  for (BlockId b : f.layout) {
    const uint32_t block = index(b) + 1;
    for (InstId i : f.blocks[b].code) {
      const Facts& facts = f.facts[index(i)];
      for_each_unit(facts.reads(), [&](uint32_t x) {
        Unit& u = units[x];
        ++u.readers;
        if (u.block != block && u.block != crosses) u.block = crosses, crossing += x < gprs;
      });
      for_each_unit(facts.writes(), [&](uint32_t x) {
        if (units[x].block != crosses) units[x].block = block;
      });
    }
    if (f.blocks[b].predicate >= isa::first_virtual) ++units[gprs + f.blocks[b].predicate - isa::first_virtual].readers;
  }
  for (size_t k = f.layout.size(); k-- > 0;) {
    std::vector<InstId>& code = f.blocks[f.layout[k]].code;
    bool carry_needed = false;
    size_t kept = code.size();
    for (size_t c = code.size(); c-- > 0;) {
      const Facts& facts = f.facts[index(code[c])];
      bool needed = facts.pinned || facts.writes_elsewhere || (facts.writes_carry && carry_needed);
      for (Range r : facts.writes()) needed |= r.reg() < isa::first_virtual;  // a physical register
      if (!needed) for_each_unit(facts.writes(), [&](uint32_t x) { needed |= units[x].readers != 0; });
      if (!needed) {
        for_each_unit(facts.reads(), [&](uint32_t x) { --units[x].readers; });
        continue;
      }
      if (facts.writes_carry) carry_needed = false;
      if (facts.reads_carry) carry_needed = true;
      code[--kept] = code[c];
    }
    code.erase(code.begin(), code.begin() + static_cast<ptrdiff_t>(kept));
  }
  return crossing;
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
