// From blocks to words: layout, branches, addresses, padding, the facts of the cubin.
//
// lay_out turns terminators and regions into instructions. Volta and later: BSSY Bn before the branch that opens a region, BSYNC Bn at the
// landing. Pascal: SSY, and SYNC in place of every branch to a landing. A branch to a block that only ends the thread is an EXIT under the
// branch's predicate.
// emit places the instructions, resolves labels, and encodes. Pascal code also keeps 49 issue cycles before every EXIT and BAR, counted from the
// start of the kernel and from the end of the BAR or guarded EXIT before it, as ptxas does in all its code (pascal notes 4.6): NOPs make up the
// difference on the fall-through path. Cost: O(instructions).
#include <algorithm>

#include "assembler/build.h"
#include "assembler/latency.h"
#include "assembler/passes.h"

namespace rndn::assembler {

namespace {

isa::Operand label(uint64_t target) { return {.kind = isa::OperandKind::label, .value = static_cast<int64_t>(target)}; }

bool only_exits(const Function& f, BlockId b) {
  const Block& x = f.blocks[b];
  return x.code.empty() && is_none(x.taken) && is_none(x.next) && is_none(x.joins) && x.opens.empty();
}

struct Layout {
  Function& f;
  Code code;
  std::vector<uint32_t> block_index;                  // BlockId -> position in the stream
  std::vector<std::pair<uint32_t, uint32_t>> fixups;  // instruction, block position its label names
  std::vector<bool> after_first;                      // label is the instruction after the block's first
  bool volta = true;

  Inst& add(Inst inst, uint32_t line) {
    inst.line = line;
    code.insts.push_back(std::move(inst));
    code.targets.push_back(UINT32_MAX);
    return code.insts.back();
  }
  void guard(Inst& i, uint32_t predicate, bool negated) { i.sass.guard = predicate, i.sass.guard_negated = negated; }

  // A jump of the lanes with the predicate to block `to`; successors get recorded.
  void jump(const Block& from, BlockId to, uint32_t predicate, bool negated, std::vector<uint32_t>& successors) {
    if (only_exits(f, to)) {
      guard(add(make_inst(*f.target, isa::Mnemonic::EXIT, {}), from.line), predicate, negated);
      return;
    }
    uint32_t position = block_index[index(to)];
    successors.push_back(position);
    if (!volta && !is_none(f.blocks[to].joins)) {
      guard(add(make_inst(*f.target, isa::Mnemonic::SYNC, {}), from.line), predicate, negated);
      return;
    }
    Inst& i = volta ? add(make_inst(*f.target, isa::Mnemonic::BRA, {isa::Operand{}, label(0)}), from.line)
                    : add(make_inst(*f.target, isa::Mnemonic::BRA, {label(0)}), from.line);
    guard(i, predicate, negated);
    fixups.push_back({static_cast<uint32_t>(code.insts.size() - 1), position});
    after_first.push_back(false);
  }

  void run() {
    volta = f.target->family == isa::Family::volta;
    block_index.assign(f.blocks.size(), UINT32_MAX);
    for (uint32_t k = 0; k < f.layout.size(); ++k) block_index[index(f.layout[k])] = k;
    code.blocks.resize(f.layout.size());
    for (uint32_t k = 0; k < f.layout.size(); ++k) {
      const Block& b = f.blocks[f.layout[k]];
      CodeBlock& out = code.blocks[k];
      out.begin = static_cast<uint32_t>(code.insts.size());
      if (volta && !is_none(b.joins)) {
        isa::Operand reg{.kind = isa::OperandKind::barrier, .reg = f.regions[b.joins].depth};
        add(make_inst(*f.target, isa::Mnemonic::BSYNC, {reg}), b.line);
      }
      for (InstId i : b.code) add(std::move(f[i]), f[i].line);
      for (RegionId r : b.opens) {
        const Region& region = f.regions[r];
        isa::Operand reg{.kind = isa::OperandKind::barrier, .reg = region.depth};
        if (volta)
          add(make_inst(*f.target, isa::Mnemonic::BSSY, {reg, label(0)}), b.line);
        else
          add(make_inst(*f.target, isa::Mnemonic::SSY, {label(0)}), b.line);
        fixups.push_back({static_cast<uint32_t>(code.insts.size() - 1), block_index[index(region.join)]});
        after_first.push_back(volta);
      }
      BlockId following = k + 1 < f.layout.size() ? f.layout[k + 1] : none<BlockId>();
      auto falls_to = [&](BlockId to) { return to == following && (volta || is_none(f.blocks[to].joins)); };
      if (is_none(b.taken) && is_none(b.next)) {
        add(make_inst(*f.target, isa::Mnemonic::EXIT, {}), b.line);
      } else if (b.predicate == isa::PT || is_none(b.taken)) {
        if (falls_to(b.next))
          out.successors.push_back(k + 1);
        else
          jump(b, b.next, isa::PT, false, out.successors);
      } else if (falls_to(b.taken)) {
        jump(b, b.next, b.predicate, !b.negated, out.successors);
        out.successors.push_back(k + 1);
      } else {
        jump(b, b.taken, b.predicate, b.negated, out.successors);
        if (falls_to(b.next))
          out.successors.push_back(k + 1);
        else
          jump(b, b.next, isa::PT, false, out.successors);
      }
      out.end = static_cast<uint32_t>(code.insts.size());
    }
    for (size_t k = 0; k < fixups.size(); ++k)
      code.targets[fixups[k].first] = code.blocks[fixups[k].second].begin + after_first[k];
    for (uint32_t k = 0; k < code.blocks.size(); ++k)
      for (uint32_t s : code.blocks[k].successors)
        if (s <= k) code.blocks[s].loop_entry = true;
  }
};

// Pascal: NOPs so that no EXIT and no BAR issues within 49 cycles of the kernel's start, or of the end of the last BAR or guarded EXIT.
// Straight through the stream: a branch can only arrive later than the fall-through path from a start that lies further back, or from code
// that was itself padded; a loop that holds a BAR is safe because the BAR's own 49 cycles are checked from its end to the back edge as well.
void pad_for_exits(const isa::Target& t, Code& code) {
  std::vector<uint32_t> padding(code.insts.size(), 0);  // NOP cycles before each instruction
  uint32_t since = 0;                                   // cycles since the last event, a lower bound
  for (uint32_t b = 0; b < code.blocks.size(); ++b) {
    // A block reached from elsewhere: at least nothing is known but what the stream order gives, and jumps skip code.
    bool only_falls = b == 0 || (!code.blocks[b].loop_entry);
    uint32_t predecessors = 0;
    for (const CodeBlock& p : code.blocks)
      for (uint32_t s : p.successors) predecessors += s == b;
    if (predecessors > 1 || !only_falls ||
        (b > 0 && std::find(code.blocks[b - 1].successors.begin(), code.blocks[b - 1].successors.end(), b) ==
                      code.blocks[b - 1].successors.end()))
      since = 0;
    for (uint32_t k = code.blocks[b].begin; k < code.blocks[b].end; ++k) {
      const Inst& inst = code.insts[k];
      const isa::Mnemonic m = inst.sass.mnemonic;
      if (m == isa::Mnemonic::EXIT || m == isa::Mnemonic::BAR || m == isa::Mnemonic::B2R) {
        if (since < 49) padding[k] = 49 - since, since = 49;
      }
      since += inst.sass.control.stall;
      if (m == isa::Mnemonic::BAR || m == isa::Mnemonic::EXIT) since = 0;
    }
  }
  Code out;
  std::vector<uint32_t> moved(code.insts.size());
  Inst nop = make_inst(t, isa::Mnemonic::NOP, {});
  for (uint32_t b = 0, k = 0; b < code.blocks.size(); ++b) {
    CodeBlock block = code.blocks[b];
    const uint32_t end = block.end;
    block.begin = static_cast<uint32_t>(out.insts.size());
    for (; k < end; ++k) {
      moved[k] = static_cast<uint32_t>(out.insts.size());
      for (uint32_t left = padding[k]; left > 0;) {
        uint32_t cycles = std::min(left, 15u);
        Inst x = nop;
        x.line = code.insts[k].line;
        x.sass.control.stall = static_cast<uint8_t>(cycles);
        x.sass.control.yield = false;
        left -= cycles;
        out.insts.push_back(x);
        out.targets.push_back(UINT32_MAX);
      }
      out.insts.push_back(std::move(code.insts[k]));
      out.targets.push_back(code.targets[k]);
    }
    block.end = static_cast<uint32_t>(out.insts.size());
    out.blocks.push_back(std::move(block));
  }
  for (uint32_t& target : out.targets)
    if (target != UINT32_MAX) target = target < moved.size() ? moved[target] : static_cast<uint32_t>(out.insts.size());
  code = std::move(out);
}

}  // namespace

Code lay_out(Function& f) {
  Layout l{f, {}, {}, {}, {}};
  l.run();
  return std::move(l.code);
}

Result<cubin::Kernel> emit(const ptx::Module& module, Function& f, Code& code) {
  const isa::Target& t = *f.target;
  const bool volta = t.family == isa::Family::volta;
  if (!volta) pad_for_exits(t, code);
  // The end: a branch to itself, then NOPs.
  const uint32_t self = static_cast<uint32_t>(code.insts.size());
  code.insts.push_back(volta ? make_inst(t, isa::Mnemonic::BRA, {isa::Operand{}, label(0)})
                             : make_inst(t, isa::Mnemonic::BRA, {label(0)}));
  code.targets.push_back(self);
  if (!volta)
    code.insts.back().sass.control = {.stall = 15, .yield = true};
  else
    code.insts.back().sass.control = {};
  const uint32_t n = self + 1;
  uint32_t total = n;
  if (volta) {
    uint64_t bytes = (uint64_t{16} * n + 128 + 127) / 128 * 128;
    total = static_cast<uint32_t>(bytes / 16);
  } else {
    while (total % 6 != 0) ++total;  // whole pairs of bundles: 64 bytes
  }
  const Inst nop = make_inst(t, isa::Mnemonic::NOP, {});
  while (code.insts.size() < total) code.insts.push_back(nop), code.targets.push_back(UINT32_MAX);

  cubin::Kernel k;
  k.name = f.source->name;
  std::vector<isa::Word> words(total);
  code.addresses.resize(total);
  uint32_t highest = 0;
  bool any_register = false;
  for (uint32_t i = 0; i < total; ++i) {
    Inst& inst = code.insts[i];
    const uint64_t at = isa::instruction_address(t, i);
    code.addresses[i] = at;
    if (code.targets[i] != UINT32_MAX)
      for (uint32_t o = 0; o < inst.sass.operand_count; ++o)
        if (inst.sass.operands[o].kind == isa::OperandKind::label)
          inst.sass.operands[o].value = static_cast<int64_t>(isa::instruction_address(t, code.targets[i]));
    if (!isa::encode(t, inst.sass, at, words[i]))
      return input_error("function {}, line {}: internal limit: `{}` cannot be encoded on {}", f.source->name,
                         inst.line, isa::text(t, inst.sass), t.name);
    for (uint32_t o = 0; o < inst.sass.operand_count; ++o) {
      const Use& u = inst.uses[o];
      if (u.file != isa::RegisterFile::gpr || u.access == isa::Access::none || inst.sass.operands[o].reg == isa::RZ)
        continue;
      highest = std::max(highest, inst.sass.operands[o].reg + u.width() - 1), any_register = true;
    }
    switch (inst.sass.mnemonic) {
      case isa::Mnemonic::EXIT: k.exit_offsets.push_back(static_cast<uint32_t>(at)); break;
      case isa::Mnemonic::BSSY: k.has_crs_attribute = true; break;
      case isa::Mnemonic::S2R:
        if (inst.sass.operands[1].value >= 0x25 && inst.sass.operands[1].value <= 0x27)
          k.ctaid_offsets.push_back(static_cast<uint32_t>(at));
        break;
      default: break;
    }
    if (inst.cooperative) k.cooperative_offsets.push_back(static_cast<uint32_t>(at));
    if (!is_none(inst.symbol))
      k.relocations.push_back(
          {inst.symbol_high ? cubin::Relocation::absolute_high_32 : cubin::Relocation::absolute_low_32, at,
           module.variables[inst.symbol].name, 0});
  }
  std::vector<std::byte> bytes = isa::pack(t, words);
  k.code.assign(bytes.begin(), bytes.end());
  k.registers = std::max(any_register ? highest + 1 : 1, 2u) + t.reported_registers_extra;
  k.barriers = f.barriers;
  k.uses_shared = f.uses_shared;
  k.shared_bytes = f.uses_shared ? f.shared_bytes + t.shared_base : 0;
  k.local_bytes = f.uses_stack ? f.local_bytes : 0;
  k.uses_ctaid_z = f.uses_ctaid_z;
  if (!volta) {
    uint32_t depth = 0;
    bool loops = false;
    for (const Region& r : f.regions) depth = std::max(depth, r.depth + 1);
    for (const CodeBlock& b : code.blocks) loops |= b.loop_entry;
    bool diverges = depth > 0;
    for (const Inst& inst : code.insts)
      diverges |= inst.sass.mnemonic == isa::Mnemonic::BRA && inst.sass.guard != isa::PT;
    k.stack_bytes = diverges ? 16 * (depth + (loops ? 32 : std::min(std::max(depth, 1u), 32u))) : 0;
  }
  uint32_t at = 0;
  for (const ptx::Parameter& p : f.source->parameters) {
    uint32_t size = ptx::type_bytes(p.type), align = p.align ? p.align : size;
    at = (at + align - 1) / align * align;
    k.parameters.push_back({at, size * (p.count ? p.count : 1)});
    at += k.parameters.back().size;
  }
  k.parameter_bytes = at;
  k.constants.assign(f.constants.begin(), f.constants.end());
  k.max_threads = f.source->max_threads;
  k.required_threads = f.source->required_threads;
  return k;
}

}  // namespace rndn::assembler
