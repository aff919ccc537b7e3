// From blocks to words: layout, branches, addresses, padding, the facts of the cubin.
//
// lay_out turns terminators and regions into instructions. Volta and later: BSSY Bn before the branch that opens a region, BSYNC Bn at the
// landing. Pascal: SSY, and SYNC in place of every branch to a landing. A branch to a block that only ends the thread is an EXIT under the
// branch's predicate.
// emit places the instructions, resolves labels, and encodes. Pascal code also keeps 49 issue cycles before every EXIT and BAR, counted from the
// start of the kernel and from the end of the BAR or guarded EXIT before it, as ptxas does in all its code (docs/sass.md, section 4): NOPs make up the
// difference on the fall-through path. Cost: O(instructions).
#include <algorithm>

#include "assembler/backend/backend.h"
#include "ptx/layout.h"
#include "assembler/machine/inst_facts.h"
#include "assembler/machine/latency.h"
#include "assembler/machine/operands.h"
#include "assembler/machine/options.h"

namespace rndn::assembler {

namespace {

isa::Operand label(uint64_t target) { return {.kind = isa::OperandKind::label, .value = static_cast<int64_t>(target)}; }

bool only_exits(const Function& f, BlockId b) {
  const Block& x = f.blocks[b];
  return x.code.empty() && is_none(x.taken) && is_none(x.next) && is_none(x.joins) && x.opens.empty();
}

struct Layout {
  Function& f;
  isa::FormCache& forms;
  Code code;
  std::span<uint32_t> block_index;  // BlockId -> position in the stream
  struct Fixup {
    uint32_t at, block;  // instruction, position of the block that its label names
    bool after_first;    // the label is the instruction after the block's first
  };
  std::vector<Fixup> fixups;
  bool volta = f.target->family == isa::Family::volta;

  uint32_t barrier(RegionId r) const {
    const uint32_t b = f.regions[r].depth + (f.calls ? first_called_barrier : 0);
    CHECK(b < barrier_registers, "function {}: {} regions are open at once", f.source->name, b + 1);
    return b;
  }
  void place(InstId id) {
    code.order.push_back(id);
    code.targets.push_back(UINT32_MAX);
  }
  void add(isa::Mnemonic m, std::initializer_list<isa::Operand> operands, uint32_t line, uint32_t guard = isa::PT,
           bool negated = false) {
    Inst inst = make_inst(*f.target, m, operands, &forms);
    inst.sass.guard = guard, inst.sass.guard_negated = negated;
    inst.line = line;
    place(add_inst(f, std::move(inst)));
  }
  void fix_up(uint32_t block, bool after_first) {
    fixups.push_back({static_cast<uint32_t>(code.order.size() - 1), block, after_first});
  }
  static void add_successor(CodeBlock& b, uint32_t s) {
    if (b.successor_count == 0 || b.successor[0] != s) b.successor[b.successor_count++] = s;
  }

  // A jump of the lanes with the predicate to block `to`; successors get recorded.
  void jump(const Block& from, BlockId to, uint32_t predicate, bool negated, CodeBlock& out) {
    if (only_exits(f, to)) return add(isa::Mnemonic::EXIT, {}, from.end_line, predicate, negated);
    const uint32_t position = block_index[index(to)];
    add_successor(out, position);
    if (!volta && !is_none(f.blocks[to].joins)) return add(isa::Mnemonic::SYNC, {}, from.end_line, predicate, negated);
    if (volta)
      add(isa::Mnemonic::BRA, {isa::Operand{}, label(0)}, from.end_line, predicate, negated);
    else
      add(isa::Mnemonic::BRA, {label(0)}, from.end_line, predicate, negated);
    fix_up(position, false);
  }

  void run() {
    block_index = f.arena->make_span<uint32_t>(f.blocks.size(), UINT32_MAX);
    size_t total = 0;
    for (uint32_t k = 0; k < f.layout.size(); ++k) {
      const Block& b = f.blocks[f.layout[k]];
      block_index[index(f.layout[k])] = k;
      total += b.code.size() + b.opens.size() + 3;
    }
    const bool names_places = f.collective || !f.subroutines.empty();  // in instructions that are no branches
    constexpr size_t padding = 64;  // of emit()
    code.order.reserve(total + padding);
    code.targets.reserve(total + padding);
    fixups.reserve(2 * f.layout.size());
    code.blocks.resize(f.layout.size());
    for (uint32_t k = 0; k < f.layout.size(); ++k) {
      const Block& b = f.blocks[f.layout[k]];
      CodeBlock& out = code.blocks[k];
      out.begin = static_cast<uint32_t>(code.order.size());
      if (volta && !is_none(b.joins))
        add(isa::Mnemonic::BSYNC, {isa::Operand{.kind = isa::OperandKind::barrier, .reg = barrier(b.joins)}}, b.line);
      for (InstId i : b.code) {
        place(i);
        if (!names_places) continue;
        if (f[i].call == Call::subroutine) fix_up(block_index[index(f.subroutines[f[i].callee].body)], false);
        if (!f.collective || f[i].sass.mnemonic != isa::Mnemonic::WARPSYNC_COLLECTIVE) continue;
        const isa::Operand& behind = f[i].sass.operands[f[i].sass.operand_count - 1u];
        fix_up(block_index[static_cast<size_t>(behind.value)], false);
      }
      for (RegionId r : b.opens) {
        const Region& region = f.regions[r];
        if (f.target->has(isa::Feature::clears_barriers))
          add(isa::Mnemonic::BMOV, {gpr(isa::RZ), {.kind = isa::OperandKind::barrier, .reg = barrier(r)}}, b.end_line);
        if (volta)
          add(isa::Mnemonic::BSSY, {isa::Operand{.kind = isa::OperandKind::barrier, .reg = barrier(r)}, label(0)},
              b.end_line);
        else
          add(isa::Mnemonic::SSY, {label(0)}, b.end_line);
        fix_up(block_index[index(region.join)], volta);
      }
      BlockId following = k + 1 < f.layout.size() ? f.layout[k + 1] : none<BlockId>();
      auto falls_to = [&](BlockId to) { return to == following && (volta || is_none(f.blocks[to].joins)); };
      if (is_none(b.taken) && is_none(b.next)) {
        if (b.code.empty() || f[b.code.back()].call != Call::back) add(isa::Mnemonic::EXIT, {}, b.end_line);
      } else if (b.predicate == isa::PT || is_none(b.taken)) {
        if (falls_to(b.next))
          add_successor(out, k + 1);
        else
          jump(b, b.next, isa::PT, false, out);
      } else if (falls_to(b.taken)) {
        jump(b, b.next, b.predicate, !b.negated, out);
        add_successor(out, k + 1);
      } else {
        jump(b, b.taken, b.predicate, b.negated, out);
        if (falls_to(b.next))
          add_successor(out, k + 1);
        else
          jump(b, b.next, isa::PT, false, out);
      }
      out.end = static_cast<uint32_t>(code.order.size());
    }
    for (const Fixup& x : fixups) code.targets[x.at] = code.blocks[x.block].begin + x.after_first;
    for (uint32_t k = 0; k < code.blocks.size(); ++k)
      for (uint32_t s : code.blocks[k].successors())
        if (s <= k) code.blocks[s].loop_entry = true;
  }
};

// Pascal: NOPs so that no EXIT and no BAR issues within 49 cycles of the kernel's start, or of the end of the last BAR or guarded EXIT.
// Straight through the stream: a branch can only arrive later than the fall-through path from a start that lies further back, or from code
// that was itself padded; a loop that holds a BAR is safe because the BAR's own 49 cycles are checked from its end to the back edge as well.
void pad_for_exits(Function& f, Code& code) {
  ArenaScope scope(*f.arena);
  std::span<uint32_t> padding = f.arena->make_span<uint32_t>(code.order.size());  // NOP cycles before each instruction
  std::span<uint32_t> predecessors = f.arena->make_span<uint32_t>(code.blocks.size());
  for (const CodeBlock& b : code.blocks)
    for (uint32_t s : b.successors()) ++predecessors[s];
  uint32_t since = 0;  // cycles since the last event, a lower bound
  for (uint32_t b = 0; b < code.blocks.size(); ++b) {
    // A block reached from elsewhere: at least nothing is known but what the stream order gives, and jumps skip code.
    const bool follows = b > 0 && std::ranges::count(code.blocks[b - 1].successors(), b) > 0;
    if (predecessors[b] > 1 || (b > 0 && (code.blocks[b].loop_entry || !follows))) since = 0;
    for (uint32_t k = code.blocks[b].begin; k < code.blocks[b].end; ++k) {
      const isa::Mnemonic m = f[code.order[k]].sass.mnemonic;
      if (m == isa::Mnemonic::EXIT || m == isa::Mnemonic::BAR || m == isa::Mnemonic::B2R) {
        if (since < 49) padding[k] = 49 - since, since = 49;
      }
      since += f.facts[index(code.order[k])].control.stall;
      if (m == isa::Mnemonic::BAR || m == isa::Mnemonic::EXIT || m == isa::Mnemonic::JCAL || m == isa::Mnemonic::CAL)
        since = 0;
    }
  }
  Code out;
  std::span<uint32_t> moved = f.arena->make_span<uint32_t>(code.order.size());
  for (uint32_t b = 0, k = 0; b < code.blocks.size(); ++b) {
    CodeBlock block = code.blocks[b];
    const uint32_t end = block.end;
    block.begin = static_cast<uint32_t>(out.order.size());
    for (; k < end; ++k) {
      moved[k] = static_cast<uint32_t>(out.order.size());
      for (uint32_t left = padding[k]; left > 0;) {
        const uint32_t cycles = std::min(left, 15u);
        Inst nop = make_inst(*f.target, isa::Mnemonic::NOP, {});
        nop.line = f[code.order[k]].line;
        const InstId id = add_inst(f, std::move(nop));
        f.facts[index(id)].control.stall = static_cast<uint8_t>(cycles);
        left -= cycles;
        out.order.push_back(id);
        out.targets.push_back(UINT32_MAX);
      }
      out.order.push_back(code.order[k]);
      out.targets.push_back(code.targets[k]);
    }
    block.end = static_cast<uint32_t>(out.order.size());
    out.blocks.push_back(block);
  }
  for (uint32_t& target : out.targets)
    if (target != UINT32_MAX) target = target < moved.size() ? moved[target] : static_cast<uint32_t>(out.order.size());
  code = std::move(out);
}

}  // namespace

Code lay_out(Function& f, isa::FormCache& forms, Code room) {
  room.clear();
  Layout l{.f = f, .forms = forms, .code = std::move(room), .block_index = {}, .fixups = {}};
  l.run();
  return std::move(l.code);
}

Result<cubin::Kernel> emit(const ptx::Module& module, Function& f, Code& code) {
  const isa::Target& t = *f.target;
  const bool volta = t.family == isa::Family::volta;
  if (!volta) pad_for_exits(f, code);
  // The end: a branch to itself, then NOPs.
  auto add = [&](Inst inst, uint32_t target) {
    code.order.push_back(add_inst(f, std::move(inst)));
    code.targets.push_back(target);
    return code.order.back();
  };
  const uint32_t self = static_cast<uint32_t>(code.order.size());
  const InstId last = add(volta ? make_inst(t, isa::Mnemonic::BRA, {isa::Operand{}, label(0)})
                                : make_inst(t, isa::Mnemonic::BRA, {label(0)}),
                          self);
  if (!volta) f.facts[index(last)].control = {.stall = 15, .yield = true};
  const uint32_t n = self + 1;
  const uint32_t total = padded_size(t, n);
  const InstId nop = add_inst(f, make_inst(t, isa::Mnemonic::NOP, {}));
  while (code.order.size() < total) code.order.push_back(nop), code.targets.push_back(UINT32_MAX);

  cubin::Kernel k;
  declare(k, *f.source);
  const std::span<isa::Word> words = f.arena->make_raw<isa::Word>(total);
  code.addresses.resize(total);
  uint32_t registers = std::max(f.registers_used, stack_register + 1);  // at least two
  if (f.calls)                                                          // what the target's ABI names
    for (InstId i : code.order)
      for (uint32_t r : f.registers.of(i).all())
        if (RegisterLists::file_of(r) == Range::gpr) registers = std::max(registers, r + 1);
  const auto next_call = [&](uint32_t i) {
    const auto calls = [&](Call c) { return c == Call::function || c == Call::subroutine; };
    while (i + 1 < total && !calls(f[code.order[i]].call)) ++i;
    return i;
  };
  for (uint32_t i = 0; i < total; ++i) {
    if (i > n) {  // one NOP like the other
      words[i] = words[n];
      code.addresses[i] = isa::instruction_address(t, i);
      continue;
    }
    Inst& inst = f[code.order[i]];
    const Facts& facts = f.facts[index(code.order[i])];
    inst.sass.control = facts.control;
    const uint64_t at = volta ? uint64_t{16} * i : isa::instruction_address(t, i);
    code.addresses[i] = at;
    if (code.targets[i] != UINT32_MAX)
      for (uint32_t o = 0; o < inst.sass.operand_count; ++o)
        if (inst.sass.operands[o].kind == isa::OperandKind::label)
          inst.sass.operands[o].value = static_cast<int64_t>(isa::instruction_address(t, code.targets[i]));
    if (inst.call == Call::behind) inst.sass.operands[1].value = static_cast<int64_t>(isa::instruction_address(t, next_call(i) + 1));
    if (!isa::encode(t, inst.sass, at, words[i]))
      return input_error("function {}, line {}: internal limit: `{}` cannot be encoded on {}", f.source->name,
                         inst.line, isa::text(t, inst.sass), t.name)
          .at(inst.line);
    switch (inst.sass.mnemonic) {
      case isa::Mnemonic::EXIT: k.exit_offsets.push_back(static_cast<uint32_t>(at)); break;
      case isa::Mnemonic::BSSY:
      case isa::Mnemonic::CALL_REL: k.has_crs_attribute = true; break;
      case isa::Mnemonic::S2R:
        if (inst.sass.operands[1].value >= 0x25 && inst.sass.operands[1].value <= 0x27)
          k.ctaid_offsets.push_back(static_cast<uint32_t>(at));
        break;
      default: break;
    }
    if (facts.cooperative) k.cooperative_offsets.push_back(static_cast<uint32_t>(at));
    if (inst.call == Call::function) {
      const std::string& callee = module.functions[inst.callee].name;
      k.relocations.push_back({cubin::Relocation::call, at, callee, 0});
      if (std::find(k.externs.begin(), k.externs.end(), callee) == k.externs.end()) k.externs.push_back(callee);
      k.has_crs_attribute = true;
    } else if (inst.call == Call::return_low || inst.call == Call::return_high) {
      k.relocations.push_back(
          {inst.call == Call::return_high ? cubin::Relocation::absolute_high_32 : cubin::Relocation::absolute_low_32,
           at, k.name, static_cast<int64_t>(isa::instruction_address(t, next_call(i) + 1))});
    }
    if (!is_none(inst.symbol))
      k.relocations.push_back(
          {inst.symbol_high ? cubin::Relocation::absolute_high_32 : cubin::Relocation::absolute_low_32, at,
           ptx::symbol_of(module, inst.symbol), 0});
  }
  k.code = isa::pack(t, words);
  k.registers = registers + t.reported_registers_extra;
  k.barriers = f.barriers;
  k.uses_shared = f.uses_shared;
  k.shared_bytes = f.uses_shared ? f.shared_bytes + t.shared_base : 0;
  k.local_bytes = f.uses_stack ? f.local_bytes : 0;
  k.dynamic_stack = f.dynamic_stack;
  k.uses_ctaid_z = f.uses_ctaid_z;
  if (!volta) {
    uint32_t depth = 0, branches = 0;
    bool loops = false;
    for (const Region& r : f.regions) depth = std::max(depth, r.depth + 1);
    for (const CodeBlock& b : code.blocks) loops |= b.loop_entry;
    for (InstId i : code.order) branches += f[i].sass.mnemonic == isa::Mnemonic::BRA && f[i].sass.guard != isa::PT;
    if (!f.subroutines.empty()) ++depth;  // the place to return to
    const bool diverges = depth > 0 || branches > 0 || f.calls;
    k.stack_bytes = diverges ? divergence_stack_bytes(depth, branches, loops) : 0;
  }
  k.constants.assign(f.constants.begin(), f.constants.end());
  return k;
}

uint32_t padded_size(const isa::Target& t, uint32_t n) {
  // Volta and later: at least 128 bytes of NOPs, up to a multiple of 128; Pascal: whole pairs of bundles, 64 bytes.
  return t.family == isa::Family::volta ? (16 * n + 255) / 128 * 8 : (n + 5) / 6 * 6;
}

uint32_t divergence_stack_bytes(uint32_t depth, uint32_t branches, bool loops) {
  // An entry per region that is open, and one per branch on the way that split the warp: its other lanes wait there. They are fewer than 32.
  return 16 * (depth + (loops ? 32 : std::clamp(branches, 1u, 32u)));
}

void declare(cubin::Kernel& k, const ptx::Function& p) {
  k.name = p.name;
  k.parameters.reserve(p.parameters.size());
  k.parameter_bytes = static_cast<uint32_t>(
      ptx::lay_out_parameters(p, [&](uint32_t, uint32_t at, uint32_t size) { k.parameters.push_back({at, size}); }));
  k.max_threads = p.max_threads, k.required_threads = p.required_threads;
}

}  // namespace rndn::assembler
