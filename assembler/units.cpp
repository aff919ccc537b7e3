// What the instructions of a function over virtual registers read and write, unit by unit: one list per instruction, in the order of the code, for
// the passes between selection and allocation, which all ask the same.
//
// Units are numbered from 0: those of GPRs, then predicates, then what is not allocated (uniform registers, uniform predicates, Pascal's condition
// code). Physical registers have none: before allocation only the prologue writes R1.
// Also here, in the same spirit: where each unit is defined, and after allocation the lists of physical registers. Cost: O(operands).
#include "assembler/passes.h"

namespace rndn::assembler {

Units list_units(const Function& f) {
  Units result;
  result.gprs = static_cast<uint32_t>(f.gprs.size());
  result.tracked = result.gprs + static_cast<uint32_t>(f.temporary_predicate.size());
  result.count = result.tracked + isa::URZ + isa::PT + 1;
  const std::array<uint32_t, 4> base = {0u - isa::first_virtual, result.gprs - isa::first_virtual, result.tracked,
                                        result.tracked + isa::URZ};
  const uint32_t carry = result.count - 1;
  result.begin = f.arena->make_raw<uint32_t>(f.insts.size());
  size_t words = 0;
  for (BlockId b : f.layout)
    for (InstId i : f.blocks[b].code) words += f.facts[index(i)].most_units();
  result.items = f.arena->make_raw<uint32_t>(words);
  uint32_t* at = result.items.data();
  for (BlockId b : f.layout)
    for (InstId i : f.blocks[b].code) {
      const Facts& x = f.facts[index(i)];
      uint32_t* const list = at++;
      result.begin[index(i)] = static_cast<uint32_t>(list - result.items.data());
      const Range* r = x.ranges.data();
      const auto add = [&](const Range* end) {
        for (; r < end; ++r) {
          if (r->allocated() && r->reg() < isa::first_virtual) continue;
          uint32_t u = r->reg() + base[r->file()];
          *at++ = u;
          for (uint32_t w = r->width(); w > 1; --w) *at++ = ++u;
        }
      };
      if (x.reads_carry) *at++ = carry;
      add(r + x.read_count);
      uint32_t* const writes = at;
      if (x.writes_carry) *at++ = carry;
      add(x.ranges.data() + x.count);
      if (x.guarded)
        for (uint32_t* w = writes; w < at; ++w)
          if (*w < result.tracked &&
              !(*w < result.gprs ? f.gprs[*w].temporary : bool{f.temporary_predicate[*w - result.gprs]}))
            *w |= Units::lasts;
      *list = static_cast<uint32_t>(writes - list - 1) | static_cast<uint32_t>(at - writes) << 16;
    }
  return result;
}

void list_registers(Function& f) {
  f.registers.start(f.insts.size(), f.insts.size() * 5);
  for (BlockId b : f.layout)
    for (InstId i : f.blocks[b].code) f.registers.set(i, f.facts[index(i)]);
}

Definitions list_definitions(const Function& f) {
  const uint32_t gprs = static_cast<uint32_t>(f.gprs.size());
  std::span<Definition> units = f.arena->make_span<Definition>(gprs + f.temporary_predicate.size(), Definition{});
  for (BlockId b : f.layout)
    for (InstId i : f.blocks[b].code)
      for (Range r : f.facts[index(i)].writes()) {
        if (!r.allocated() || r.reg() < isa::first_virtual) continue;
        Definition* d = &units[r.reg() - isa::first_virtual + (r.file() == Range::gpr ? 0 : gprs)];
        for (const Definition* end = d + r.width(); d < end; ++d) {
          d->several |= d->inst != UINT32_MAX;
          d->inst = index(i), d->block = index(b);
        }
      }
  return {gprs, units};
}

}  // namespace rndn::assembler
