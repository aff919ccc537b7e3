// Recovers structured control flow from PTX labels and branches.
//
// What it does: splits the function into blocks, leaves out dead code (dead_code.cpp), predicates small if-bodies (branch inlining), makes branches to the end exits, finds out which
// branches can split a warp (divergence.cpp), and makes every piece of the graph in which lanes run apart a region (reconvergence.cpp).
//
// Algorithm: a block begins at each label that is branched to and behind each branch; chains of blocks become one. An arm of at most 6 instructions
// that may run under a guard goes into the block that branches to it (the thesis's rule), one of at most 12 if they are cheap and leave memory alone: loads
// of several such pieces in a row are under way together then, and lanes have no place to meet at.
// Cost: O(instructions).
#include "assembler/flow/structurize.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "assembler/flow/flow_graph.h"

namespace rndn::assembler {
namespace {

using ptx::Opcode;

constexpr size_t inline_limit = 6;         // PTX instructions in an arm that is predicated (the thesis's figure)
constexpr size_t cheap_inline_limit = 12;  // if all are cheap

bool ends_thread(const ptx::Instruction& i) {
  return (i.op == Opcode::ret || i.op == Opcode::exit) && is_none(i.guard);
}

// Instructions that an inlined arm may hold: cheap under a false guard, and without meaning for other lanes.
bool can_predicate(const ptx::Instruction& i) {
  switch (i.op) {
    case Opcode::bar:
    case Opcode::barrier:
    case Opcode::call:
    case Opcode::shfl:
    case Opcode::vote:
    case Opcode::match:
    case Opcode::redux:
    case Opcode::activemask:
    case Opcode::div:
    case Opcode::rem:
    case Opcode::ret:
    case Opcode::exit:
    case Opcode::trap: return false;
    case Opcode::cp: return is_none(i.guard) && is_copy(i);  // ends of groups and waits run for all lanes
    default: return is_none(i.guard) && !expands_to_branches(i);
  }
}

// One or two machine instructions, of registers only: `cheap` opcodes but for the types of which they take more.
bool is_cheap(const ptx::Instruction& i, isa::Family family) {
  if (!(traits_of(i) & cheap) || i.type == ptx::Type::f64 || i.mods.carry_out || i.mods.sat) return false;
  const bool wide = ptx::type_bytes(i.type) == 8;
  switch (i.op) {
    case Opcode::mul:
    case Opcode::mad: return family == isa::Family::volta && !wide && i.mods.part != ptx::MulPart::hi;
    case Opcode::min:
    case Opcode::max:
    case Opcode::abs: return !wide;
    default: return true;
  }
}

struct Structurizer : FlowGraph {
  Flags dead;  // blocks that others have taken in

  // Items are made of all instructions on the way, but of those that end a block.
  void split() {
    const size_t n = f.instructions.size();
    const ptx::Instruction* const instructions = f.instructions.data();
    const std::span<uint64_t> leader_bits = arena.make_span<uint64_t>(n / 64 + 1, 0);
    const auto lead = [&](uint32_t i) { leader_bits[i / 64] |= uint64_t{1} << i % 64; };
    lead(0), lead(static_cast<uint32_t>(n));
    FlowItem* const items = arena.make_raw<FlowItem>(n).data();
    FlowItem* next_item = items;
    ArenaList<uint32_t> waiting(arena, 8);
    for (uint32_t i = 0; i < n; ++i) {
      const ptx::Instruction& inst = instructions[i];
      *next_item++ = {i, inst.guard, inst.guard_negated};
      const uint16_t t = traits_of(inst) & (branches | ends | waits_for | expands | calls);
      if (!t) [[likely]]
        continue;
      if (t & waits_for) waiting.push(uint32_t{i});  // a copy, so that `i` can be in a register
      has_atomics |= inst.op == Opcode::atom || inst.op == Opcode::red;
      flow.calls |= (t & calls) != 0;
      if (t & branches) {
        lead(f.labels[f.operand(inst, 0).label_id()].at);
        lead(i + 1);
        --next_item;
      } else if (ends_thread(inst)) {
        lead(i + 1);
        if (first_exit == UINT32_MAX) first_exit = i;
        --next_item;
      } else if (!is_none(inst.guard) && expands_to_branches(inst)) {
        lead(i), lead(i + 1);
      }
    }
    has_waits = !waiting.empty();
    // One block per leader, the end of the function included (falling off it ends the thread). A guarded instruction that needs a branch
    // becomes a branch block in front of the block that holds it.
    const std::span<BlockId> at = arena.make_raw<BlockId>(n + 1);  // of leaders
    ArenaList<uint32_t> leaders(arena, n / 4 + 8);
    for (uint32_t w = 0; w < leader_bits.size(); ++w)
      for (uint64_t bits = leader_bits[w]; bits != 0; bits &= bits - 1)
        leaders.push(64 * w + static_cast<uint32_t>(std::countr_zero(bits)));
    flow.blocks.reserve(arena, flow.blocks.size() + 2 * leaders.size() + 16);
    for (const uint32_t i : leaders.all()) {
      at[i] = flow.blocks.add(arena);
      if (i < n && needs_branch(instructions[i])) flow.blocks.add(arena);
    }
    next_item = items;
    size_t next_waiting = 0;
    for (size_t k = 0; k + 1 < leaders.size(); ++k) {
      const uint32_t first = leaders[k], behind = leaders[k + 1];
      const ptx::Instruction& end = instructions[behind - 1];
      FlowBlock& x = block(at[first]);
      x.line = instructions[first].line, x.end_line = end.line;
      Waits waits;
      for (; next_waiting < waiting.size() && waiting[next_waiting] < behind; ++next_waiting) {
        const ptx::Instruction& i = instructions[waiting[next_waiting]];
        const bool barrier = is_block_barrier(i);
        waits |= {barrier, barrier && !is_aligned_barrier(i), is_warp_operation(i)};
      }
      if (needs_branch(end)) {
        const BlockId body = static_cast<BlockId>(index(at[first]) + 1);
        x.predicate = end.guard, x.negated = !end.guard_negated, x.taken = at[behind], x.next = body;
        FlowBlock& y = block(body);
        *next_item = {first};
        y.items = FlowItems(next_item++, 1);
        y.waits = waits;
        y.next = at[behind];
        y.line = y.end_line = end.line;
        continue;
      }
      const bool leaves = ends_thread(end), branch = end.op == Opcode::bra;
      const size_t size = behind - first - (branch || leaves);
      x.items = FlowItems(next_item, size);
      next_item += size;
      x.waits = waits;
      if (branch) {
        const BlockId to = at[f.labels[f.operand(end, 0).label_id()].at];
        if (is_none(end.guard)) {
          x.next = to;
        } else {
          x.predicate = end.guard, x.negated = end.guard_negated, x.taken = to, x.next = at[behind];
          x.uniform_branch = end.mods.uni;
          if (x.taken == x.next) x.predicate = none<ptx::RegisterId>(), x.taken = none<BlockId>();
        }
      } else if (!leaves) {
        x.next = at[behind];
      }
    }
  }
  bool needs_branch(const ptx::Instruction& i) {
    return !is_none(i.guard) && (traits_of(i) & expands) && expands_to_branches(i);
  }

  // Whether b leads to a block that nothing else leads to.
  bool leads_alone(BlockId b) {
    const FlowBlock& x = block(b);
    return is_none(x.predicate) && !is_none(x.next) && x.next != b && index(x.next) != 0 &&
           predecessors[index(x.next)].size() == 1;
  }
  // Takes in the blocks that only b leads to: longer blocks schedule better.
  void merge_chain(BlockId b) {
    while (leads_alone(b)) {
      FlowBlock& x = block(b);
      const BlockId n = x.next;
      const FlowBlock y = block(n);
      if (y.items.empty() && x.items.empty()) x.line = y.line;
      x.items.append(arena, y.items);
      x.waits |= y.waits;
      x.predicate = y.predicate, x.negated = y.negated, x.uniform_branch = y.uniform_branch, x.taken = y.taken,
      x.next = y.next, x.end_line = y.end_line;
      block(n) = FlowBlock{};
      successors(b, [&](BlockId s) { replace_predecessor(s, n, b); });
      predecessors[index(n)] = {};
      dead[index(n)] = true;
    }
  }
  void merge() {
    dead = flags(flow.blocks.size());
    bool any = false;
    for (BlockId b : flow.layout)
      if (!dead[index(b)] && leads_alone(b)) merge_chain(b), any = true;
    if (any) drop_dead();
  }
  void drop_dead() {
    drop_from_layout([&](BlockId b) { return dead[index(b)]; });
  }

  void remove_dead_statements() {
    while (remove_dead_code() && remove_empty_branches()) {
    }
  }
  // Where both ways of a branch come to one block without doing anything. Returns whether there are any.
  bool remove_empty_branches() {
    const auto leads_to = [&](BlockId b) {
      for (size_t steps = 0; steps < flow.layout.size(); ++steps) {
        const FlowBlock& x = block(b);
        if (!x.items.empty() || !is_none(x.predicate) || is_none(x.next)) break;
        b = x.next;
      }
      return b;
    };
    bool any = false;
    for (BlockId b : flow.layout) {
      FlowBlock& x = block(b);
      if (is_none(x.predicate)) continue;
      const BlockId to = leads_to(x.next);
      if (leads_to(x.taken) != to) continue;
      x.predicate = none<ptx::RegisterId>(), x.taken = none<BlockId>(), x.next = to;
      any = true;
    }
    if (any) order(), merge();
    return any;
  }

  bool arm(BlockId a, BlockId from, ptx::RegisterId predicate) {
    FlowBlock& x = block(a);
    if (predecessors[index(a)].size() != 1 || predecessors[index(a)][0] != from || !is_none(x.predicate) ||
        is_none(x.next))
      return false;
    if (x.items.size() > cheap_inline_limit) return false;
    const bool is_long = x.items.size() > inline_limit;
    for (const FlowItem& item : x.items) {
      const ptx::Instruction& i = f.instructions[item.inst];
      if (!is_none(item.guard) || !can_predicate(i) || (is_long && !is_cheap(i, target.family))) return false;
      for (uint32_t k = 0; k < i.destination_count; ++k) {
        const ptx::Operand& o = f.operand(i, k);
        if (o.kind == ptx::Operand::reg && o.reg_id() == predicate) return false;
      }
    }
    return true;
  }
  void take_arm(BlockId b, BlockId a, bool negated) {
    for (FlowItem& item : block(a).items) item.guard = block(b).predicate, item.negated = negated;
    block(b).items.append(arena, block(a).items);
    block(b).waits |= block(a).waits;
  }
  // Removes the arm from the graph: the block that it leads to keeps one edge from b.
  void remove_arm(BlockId a, BlockId b) {
    const BlockId join = block(a).next;
    BlockList& p = predecessors[index(join)];
    if (std::ranges::find(p, b) == p.end())
      replace_predecessor(join, a, b);
    else
      p = {p.begin(), std::remove(p.begin(), p.end(), a)};
    predecessors[index(a)] = {};
    block(a) = FlowBlock{};
    dead[index(a)] = true;
  }
  void inline_branches() {
    dead = flags(flow.blocks.size());
    bool any = false;
    for (BlockId b : flow.layout) {
      while (!dead[index(b)]) {
        FlowBlock& x = block(b);
        if (is_none(x.predicate) || is_none(x.next) || x.taken == b || x.next == b) break;
        const BlockId t = x.taken, e = x.next;
        BlockId join;
        bool then = false, otherwise = false;  // which arms there are: behind `taken`, behind `next`
        if (t != e && arm(e, b, x.predicate) && block(e).next == t) {  // if-then, the body falls through
          join = t, otherwise = true;
        } else if (arm(t, b, x.predicate) && block(t).next == e) {
          join = e, then = true;
        } else if (arm(t, b, x.predicate) && arm(e, b, x.predicate) && block(t).next == block(e).next &&
                   block(t).next != b) {
          join = block(t).next, then = otherwise = true;
        } else {
          break;
        }
        if (otherwise) take_arm(b, e, !x.negated), remove_arm(e, b);
        if (then) take_arm(b, t, x.negated), remove_arm(t, b);
        FlowBlock& y = block(b);
        y.predicate = none<ptx::RegisterId>(), y.taken = none<BlockId>(), y.next = join;
        merge_chain(b);
        any = true;
      }
    }
    if (any) drop_dead();
  }

  bool ends_at_once(BlockId b) {
    const auto is_empty = [&] { return block(b).items.empty() && is_none(block(b).predicate); };
    for (size_t steps = 0; steps < flow.layout.size() && is_empty() && !is_none(block(b).next); ++steps)
      b = block(b).next;
    return is_empty() && is_none(block(b).next);
  }

  // Ends of threads. A branch to nothing but the end becomes an exit under a guard: the lanes that are left stay together, and need no region.
  // Not within cycles, whose only way out it may be. A cycle has a branch back in the order of the layout; what lies under one is left alone.
  // Where lanes wait for others (at barriers of the block, in operations of the warp), a way past the last wait that ends in the shared exit gets one
  // of its own, so that its lanes are waited for at no join in front of the others' waits.
  void exit_early() {
    if (first_exit == UINT32_MAX) return;
    const size_t n = flow.layout.size();
    const std::span<uint32_t> position = arena.make_raw<uint32_t>(flow.blocks.size());
    for (uint32_t k = 0; k < n; ++k) position[index(flow.layout[k])] = k;
    const std::span<int32_t> cycles =
        arena.make_span<int32_t>(n + 1);  // differences of the number of branches back over a place
    for (uint32_t k = 0; k < n; ++k)
      successors(flow.layout[k], [&](BlockId s) {
        if (position[index(s)] <= k) ++cycles[position[index(s)]], --cycles[k + 1];
      });
    find_waits();
    Flags behind;  // by block: the last wait in the order of the layout leads there
    for (size_t k = has_waits ? n : 0; k-- > 0 && behind.empty();) {
      const Waits& w = waits(index(flow.layout[k]));
      if (!w.barrier && !w.warp) continue;
      behind = flags(flow.blocks.size());
      for (uint32_t b : reach(flow.layout[k], UINT32_MAX, true)) behind[b] = true;
    }
    dead = flags(flow.blocks.size());
    bool any = false;
    int32_t over = 0;
    for (uint32_t k = 0; k < n; ++k) {
      over += cycles[k];
      FlowBlock& x = block(flow.layout[k]);
      if (is_none(x.predicate) && !behind.empty() && !behind[index(flow.layout[k])] && !x.items.empty() &&
          !is_none(x.next) && ends_at_once(x.next)) {
        remove_way_out(flow.layout[k], std::exchange(x.next, none<BlockId>()));
        any = true;
      }
      if (over || is_none(x.predicate) || ends_at_once(x.taken) == ends_at_once(x.next)) continue;
      const bool taken = ends_at_once(x.taken);
      x.items.append(arena, FlowItem{first_exit, x.predicate, taken == x.negated});
      remove_way_out(flow.layout[k], taken ? x.taken : x.next);
      if (!taken) x.next = x.taken;
      x.predicate = none<ptx::RegisterId>(), x.taken = none<BlockId>(), x.uniform_branch = false;
      any = true;
    }
    if (any) drop_dead(), merge();
    if (any_barrier) own_exit();
  }
  // An edge to a block that ends at once, and the blocks that nothing else leads to.
  void remove_way_out(BlockId from, BlockId to) {
    for (; !is_none(to); from = std::exchange(to, block(to).next)) {
      BlockList& p = predecessors[index(to)];
      p = {p.begin(), std::remove(p.begin(), p.end(), from)};
      if (!p.empty()) return;
      dead[index(to)] = true;
    }
  }
  // Lanes that leave for the end while others go to a barrier of the block share no exit with lanes behind the last barrier that do more.
  void own_exit() {
    find_waits();
    const Flags meets = leading_to([&](uint32_t b) { return waits(b).barrier; });
    const Flags operates = leading_to([&](uint32_t b) { return waits(b).warp; });
    BlockId own = none<BlockId>();
    const size_t n = flow.layout.size();
    for (size_t k = 0; k < n; ++k) {
      if (!meets[index(flow.layout[k])]) continue;
      for (BlockId FlowBlock::*way : {&FlowBlock::taken, &FlowBlock::next}) {
        const BlockId to = block(flow.layout[k]).*way;
        if (is_none(to) || !ends_at_once(to)) continue;
        if (std::ranges::none_of(predecessors[index(to)],
                                 [&](BlockId p) { return !meets[index(p)] && operates[index(p)]; }))
          continue;
        if (is_none(own)) {
          own = flow.blocks.add(arena);
          block(own).line = block(own).end_line = block(to).line;
          flow.layout = {flow.layout.data(), flow.layout.size() + 1};
          flow.layout.back() = own;
        }
        block(flow.layout[k]).*way = own;
      }
    }
    if (!is_none(own)) order();
  }
};

}  // namespace

void FlowItems::append(Arena& arena, const FlowItems& others) {
  if (size_ == 0) {
    *this = others;
  } else if (items_ + size_ == others.items_) {
    size_ += others.size_, capacity_ = size_;
  } else {
    make_room(arena, others.size_);
    std::copy(others.begin(), others.end(), end());
    size_ += others.size_;
  }
}
void FlowItems::make_room(Arena& arena, size_t n) {
  if (size_ + n <= capacity_) return;
  capacity_ = 2 * (size_ + n);
  FlowItem* larger = arena.make_raw<FlowItem>(capacity_).data();
  std::copy(begin(), end(), larger);
  items_ = larger;
}

Result<Flow> structure(const ptx::Module& module, const ptx::Function& function, const isa::Target& target,
                       bool optimise, bool branch_inlining, Arena& arena) {
  Structurizer b{{module, function, target, arena}};
  for (const ptx::Label& l : function.labels)
    if (l.at > function.instructions.size())
      return input_error("function {}: label {} is not defined", function.name, l.name);
  // An empty block in front: the entry never has predecessors.
  b.flow.blocks.add(arena);
  b.split();
  b.block(BlockId{0}).next = BlockId{1};
  b.order();
  b.merge();
  if (optimise) b.remove_dead_statements();
  if (branch_inlining) b.inline_branches();
  b.exit_early();
  Divergence d(std::move(b));
  d.analyse();
  d.diverge();
  return make_regions(std::move(d));
}

}  // namespace rndn::assembler
