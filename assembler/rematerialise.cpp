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
#include "assembler/build.h"
#include "assembler/passes.h"

namespace rndn::assembler {
namespace {

constexpr uint32_t nobody = UINT32_MAX;

bool never_changes(const isa::Instruction& s) {
  if (s.mnemonic != isa::Mnemonic::S2R) return false;
  const int64_t n = s.operands[1].value;
  return n == 0 || (n >= 0x21 && n <= 0x27 && n != 0x24) ||
         (n >= 0x38 && n <= 0x3c);  // lane, thread, block, lane masks
}

struct Definition {
  uint32_t inst = nobody;
  uint32_t block = nobody;
  bool bad = false;  // several, or none that can be repeated
};

}  // namespace

bool rematerialise(Function& f) {
  ArenaScope scope(*f.arena);
  const uint32_t units = static_cast<uint32_t>(f.gprs.size());
  std::span<Definition> definitions = f.arena->make_span<Definition>(units);
  bool any = false;
  for (BlockId b : f.layout)
    for (InstId i : f.blocks[b].code) {
      const Facts& x = f.facts[index(i)];
      const bool repeatable = !x.guarded && x.read_count == 0 && x.count == 1 && !x.pinned &&
                              x.memory == Memory::none &&
                              (f[i].sass.mnemonic == isa::Mnemonic::MOV || never_changes(f[i].sass));
      for (Range r : x.writes()) {
        if (r.file() != Range::gpr || r.reg() < isa::first_virtual) continue;
        for (uint32_t w = 0; w < r.width(); ++w) {
          Definition& d = definitions[r.reg() - isa::first_virtual + w];
          d.bad |= d.inst != nobody || !repeatable;
          d.inst = index(i), d.block = index(b);
          any |= !d.bad;
        }
      }
    }
  if (!any) return false;
  auto repeatable = [&](uint32_t v) {
    for (uint32_t w = 0; w < f.gprs[v].width; ++w) {
      const Definition& d = definitions[v + w];
      if (d.inst == nobody || d.bad || d.block != definitions[v].block) return false;
    }
    return true;
  };

  struct Copy {
    uint32_t block = nobody, first = 0;
  };
  std::span<Copy> copies = f.arena->make_span<Copy>(units);
  std::span<uint32_t> readers = f.arena->make_span<uint32_t>(units);  // by first unit: reads that were left alone
  std::vector<InstId> code;
  bool changed = false;
  for (BlockId b : f.layout) {
    code.clear();
    bool grown = false;
    for (InstId i : f.blocks[b].code) {
      for (uint32_t k = 0; k < f.facts[index(i)].read_count; ++k) {
        const Range r = f.facts[index(i)].ranges[k];
        if (r.file() != Range::gpr || r.reg() < isa::first_virtual || r.reg() - isa::first_virtual >= units) continue;
        const uint32_t v = f.gprs[r.reg() - isa::first_virtual].first;
        const Definition& d = definitions[v];
        if (d.inst == nobody || d.bad || d.block == index(b) || !repeatable(v) ||
            (f.insts[d.inst].sass.mnemonic == isa::Mnemonic::S2R &&
             f.blocks[b].loop_depth > f.blocks[BlockId{d.block}].loop_depth)) {
          ++readers[v];
          continue;
        }
        Copy& copy = copies[v];
        if (copy.block != index(b)) {
          const uint32_t width = f.gprs[v].width;
          copy = {index(b), new_gpr(f, width, false)};
          for (uint32_t w = 0; w < width; ++w) {
            Inst inst = f.insts[definitions[v + w].inst];
            inst.sass.operands[0].reg = copy.first + w;
            code.push_back(add_inst(f, std::move(inst)));
          }
          grown = changed = true;
        }
        const uint32_t to = copy.first + (r.reg() - isa::first_virtual - v);
        f.facts[index(i)].ranges[k].set_reg(to);
        f[i].sass.operands[r.operand()].reg = to;
      }
      code.push_back(i);
    }
    if (grown) f.blocks[b].code.assign(code.begin(), code.end());
  }
  if (!changed) return false;
  for (BlockId b : f.layout)
    std::erase_if(f.blocks[b].code, [&](InstId i) {
      for (Range r : f.facts[index(i)].writes())
        if (r.file() == Range::gpr && r.reg() >= isa::first_virtual && r.reg() - isa::first_virtual < units) {
          const uint32_t v = f.gprs[r.reg() - isa::first_virtual].first;
          return definitions[v].inst != nobody && repeatable(v) && readers[v] == 0;
        }
      return false;
    });
  return true;
}

}  // namespace rndn::assembler
