// Rematerialisation: a value that can be made from nothing is made again where it is used instead of being kept in a register on the way.
//
// Input and output: functions over virtual registers. Candidates are values all of whose units have one definition, unguarded, in one block, that
// reads no register: moves of literals and of constant-bank words (parameters, block sizes), and special registers that do not change (thread
// and block numbers). In every other block that reads such a value, a copy of the definitions goes in front of the first reader. Definitions
// that lose all their readers disappear. Special registers take long to read, so loops keep them.
// After Briggs, Cooper, Torczon, "Rematerialization" (1992), reduced to never-killed values.
// Cost: O(instructions).
//
// Left out: expressions over such values, choice by the pressure along the way (the pipeline asks for the pass when pressure is high).
#include <algorithm>

#include "assembler/machine/operands.h"
#include "assembler/optimize/optimize.h"

namespace rndn::assembler {
namespace {

constexpr int64_t zero_register = 0xff;  // SRZ

bool never_changes(const isa::Instruction& s) {
  if (s.mnemonic == isa::Mnemonic::LDC) return s.operands[1].bank == 0 && s.operands[1].reg == isa::RZ;
  if (s.mnemonic == isa::Mnemonic::CS2R) return s.operands[1].value == zero_register;
  if (s.mnemonic != isa::Mnemonic::S2R) return false;
  const int64_t n = s.operands[1].value;
  return n == 0 || (n >= 0x21 && n <= 0x27 && n != 0x24) ||
         (n >= 0x38 && n <= 0x3c);  // lane, thread, block, lane masks
}

}  // namespace

bool rematerialise(Function& f, Survey& survey) {
  ArenaScope scope(*f.arena);
  const std::span<UnitUse> definitions = survey.units.subspan(f.units.first_gpr);  // by GPR unit
  const auto repeatable = [&](const UnitUse& d) {
    if (d.inst == nobody || d.several) return false;
    const Facts& x = f.facts[d.inst];
    if (x.guarded || x.read_count != 0 || x.count != 1 || x.pinned) return false;
    const isa::Instruction& s = f.insts[d.inst].sass;
    return s.mnemonic == isa::Mnemonic::MOV || never_changes(s);
  };
  // Units of the candidates, and the candidates by their first units. Units from `units` on are copies that were made since.
  const uint32_t units = static_cast<uint32_t>(definitions.size());
  std::span<bool> is_candidate = f.arena->make_span<bool>(units, false);
  ArenaList<uint32_t> candidates(*f.arena, 64);
  for (uint32_t v = 0; v < units; ++v) {
    if (f.gprs[v].first != v || f.gprs[v].unspillable || !repeatable(definitions[v])) continue;
    bool all = true;
    for (uint32_t w = 1; w < f.gprs[v].width; ++w)
      all = all && repeatable(definitions[v + w]) && definitions[v + w].block == definitions[v].block;
    if (!all) continue;
    candidates.push(v);
    for (uint32_t w = 0; w < f.gprs[v].width; ++w) is_candidate[v + w] = true;
  }
  if (candidates.empty()) return false;

  struct Copy {
    uint32_t block = nobody, first = 0;
  };
  std::span<Copy> copies = f.arena->make_span<Copy>(units, Copy{});
  ArenaList<InstId> copied(*f.arena, 16);  // copies of the block
  struct Place {
    uint32_t at, copies;  // so many of the block's copies go before this place of its code, or earlier
  };
  ArenaList<Place> places(*f.arena, 16);
  bool changed = false;
  for (BlockId b : f.layout) {
    std::vector<InstId>& code = f.blocks[b].code;
    copied.clear(), places.clear();
    for (uint32_t at = 0; at < code.size(); ++at) {
      const InstId i = code[at];
      if (!f.facts[index(i)].crosses) continue;
      const size_t before = copied.size();
      bool renamed = false;
      for (uint32_t k = 0; k < f.facts[index(i)].read_count; ++k) {
        const Range r = f.facts[index(i)].ranges[k];
        const uint32_t unit = r.reg() - isa::first_virtual;  // large for physical registers
        if (r.file() != Range::gpr || unit >= units || !is_candidate[unit]) continue;
        const uint32_t v = f.gprs[unit].first;
        const UnitUse& d = definitions[v];
        if (d.block == index(b) || (f.insts[d.inst].sass.mnemonic == isa::Mnemonic::S2R &&
                                    f.blocks[b].loop_depth > f.blocks[BlockId{d.block}].loop_depth))
          continue;
        Copy& copy = copies[v];
        if (copy.block != index(b)) {
          const uint32_t width = f.gprs[v].width;
          copy = {index(b), new_gpr(f, width, false)};
          for (uint32_t w = 0; w < width; ++w) {
            if (w > 0 && definitions[v + w].inst == definitions[v].inst) continue;  // both words by one instruction
            Inst inst = f.insts[definitions[v + w].inst];
            inst.sass.operands[0].reg = copy.first + w;
            copied.push(add_inst(f, inst));
            list_units(f, copied[copied.size() - 1]);
          }
        }
        const uint32_t to = copy.first + (unit - v);
        f.facts[index(i)].ranges[k].set_reg(to);
        f[i].sass.operands[r.operand()].reg = to;
        for (uint32_t w = 0; w < r.width(); ++w) --definitions[unit + w].readers;
        renamed = true;
      }
      if (renamed) list_units(f, i);
      if (copied.size() > before) places.push({at, static_cast<uint32_t>(copied.size())});
    }
    if (copied.empty()) continue;
    changed = true;
    // Makes room from the end.
    size_t from = code.size(), left = copied.size();
    code.resize(from + left);
    for (size_t p = places.size(); p-- > 0;) {
      const uint32_t begin = p ? places[p - 1].copies : 0;
      while (from > places[p].at) --from, code[from + left] = code[from];
      for (; left > begin; --left) code[from + left - 1] = copied[left - 1];
    }
  }
  if (!changed) return false;
  std::span<bool> dead = f.arena->make_span<bool>(f.insts.size(), false),
                  touched = f.arena->make_span<bool>(f.blocks.size(), false);
  for (uint32_t v : candidates.all()) {
    const std::span<const UnitUse> value = definitions.subspan(v, f.gprs[v].width);
    if (std::ranges::all_of(value, [](const UnitUse& u) { return u.readers == 0; }))
      for (const UnitUse& u : value) dead[u.inst] = touched[u.block] = true;
  }
  for (BlockId b : f.layout)
    if (touched[index(b)]) std::erase_if(f.blocks[b].code, [&](InstId i) { return dead[index(i)]; });
  return true;
}

}  // namespace rndn::assembler
