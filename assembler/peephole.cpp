// Rewrites of single instructions.
//
// remove_dead_code (virtual registers): instructions without effect whose results nobody reads. Counts the readers of every register in the
// function, then sweeps backwards once: a removed instruction takes its own reads away, so chains die in one pass. A register that only its own
// update reads stays. O(instructions).
// peephole_allocated (physical registers): the thesis's two, `MOV R, R` and loads to RZ that nobody can observe.
#include "assembler/passes.h"

namespace rndn::assembler {

void remove_dead_code(Function& f) {
  ArenaScope scope(*f.arena);
  const uint32_t gprs = static_cast<uint32_t>(f.gprs.size());
  std::span<uint32_t> readers = f.arena->make_span<uint32_t>(gprs + f.temporary_predicate.size());
  auto for_each_unit = [&](std::span<const Range> ranges, auto&& use) {
    for (Range r : ranges) {
      if (r.reg() < isa::first_virtual || !r.allocated()) continue;
      const uint32_t x = r.reg() - isa::first_virtual + (r.file() == Range::gpr ? 0 : gprs);
      for (uint32_t w = 0; w < r.width(); ++w) use(x + w);
    }
  };
  for (BlockId b : f.layout) {
    for (InstId i : f.blocks[b].code) for_each_unit(f.facts[index(i)].reads(), [&](uint32_t x) { ++readers[x]; });
    if (f.blocks[b].predicate >= isa::first_virtual) ++readers[gprs + f.blocks[b].predicate - isa::first_virtual];
  }
  for (size_t k = f.layout.size(); k-- > 0;) {
    std::vector<InstId>& code = f.blocks[f.layout[k]].code;
    bool carry_needed = false;
    size_t kept = code.size();
    for (size_t c = code.size(); c-- > 0;) {
      const Facts& facts = f.facts[index(code[c])];
      bool needed = facts.pinned || facts.writes_elsewhere || (facts.writes_carry && carry_needed);
      for (Range r : facts.writes()) needed |= r.reg() < isa::first_virtual;  // a physical register
      if (!needed) for_each_unit(facts.writes(), [&](uint32_t x) { needed |= readers[x] != 0; });
      if (!needed) {
        for_each_unit(facts.reads(), [&](uint32_t x) { --readers[x]; });
        continue;
      }
      if (facts.writes_carry) carry_needed = false;
      if (facts.reads_carry) carry_needed = true;
      code[--kept] = code[c];
    }
    code.erase(code.begin(), code.begin() + static_cast<ptrdiff_t>(kept));
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
