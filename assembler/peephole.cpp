// Rewrites of single instructions.
//
// remove_dead_code (virtual registers): instructions without effect whose results nobody reads; one backward sweep per block over liveness, so
// chains die in one pass. O(instructions).
// peephole_allocated (physical registers): the thesis's two, `MOV R, R` and loads to RZ that nobody can observe.
#include "assembler/passes.h"

namespace rndn::assembler {

void remove_dead_code(Function& f) {
  Liveness live = compute_liveness(f);
  for (BlockId b : f.layout) {
    Block& block = f.blocks[b];
    Bitset now = live.out[b];
    auto index_of = [&](uint32_t reg, isa::RegisterFile file) {
      return file == isa::RegisterFile::gpr ? reg - isa::first_virtual : live.gprs + reg - isa::first_virtual;
    };
    if (block.predicate >= isa::first_virtual) now.set(index_of(block.predicate, isa::RegisterFile::predicate));
    std::vector<InstId> kept;
    kept.reserve(block.code.size());
    bool carry_needed = false;
    for (size_t k = block.code.size(); k-- > 0;) {
      const Inst& inst = f[block.code[k]];
      bool needed = inst.pinned || (inst.writes_carry && carry_needed), writes = false;
      for (uint32_t o = 0; o < inst.sass.operand_count; ++o) {  // other files, and physical registers, count as needed
        if (!inst.uses[o].writes()) continue;
        isa::RegisterFile file = inst.uses[o].file;
        if (file != isa::RegisterFile::gpr && file != isa::RegisterFile::predicate) needed = true;
      }
      for_each_write(inst, [&](uint32_t r, uint32_t width, isa::RegisterFile file) {
        writes = true;
        if (r < isa::first_virtual) {
          needed = true;
          return;
        }
        for (uint32_t w = 0; w < width; ++w) needed |= now.test(index_of(r + w, file));
      });
      if (!needed) continue;
      (void)writes;
      if (inst.writes_carry) carry_needed = false;
      if (inst.reads_carry) carry_needed = true;
      for_each_write(inst, [&](uint32_t r, uint32_t width, isa::RegisterFile file) {
        if (r < isa::first_virtual || inst.sass.guard != isa::PT) return;
        for (uint32_t w = 0; w < width; ++w) now.reset(index_of(r + w, file));
      });
      for_each_read(inst, [&](uint32_t r, uint32_t width, isa::RegisterFile file) {
        if (r < isa::first_virtual) return;
        for (uint32_t w = 0; w < width; ++w) now.set(index_of(r + w, file));
      });
      kept.push_back(block.code[k]);
    }
    block.code.assign(kept.rbegin(), kept.rend());
  }
}

void peephole_allocated(Function& f) {
  for (BlockId b : f.layout)
    std::erase_if(f.blocks[b].code, [&](InstId i) {
      const isa::Instruction& s = f[i].sass;
      if (s.mnemonic == isa::Mnemonic::MOV && s.operands[1].kind == isa::OperandKind::gpr)
        return s.operands[0].reg == s.operands[1].reg;
      if ((s.mnemonic == isa::Mnemonic::LDS || s.mnemonic == isa::Mnemonic::LDC || s.mnemonic == isa::Mnemonic::LDL) &&
          !f[i].pinned)
        return s.operands[0].reg == isa::RZ;
      return false;
    });
}

}  // namespace rndn::assembler
