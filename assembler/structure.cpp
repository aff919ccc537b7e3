// Recovers structured control flow from PTX labels and branches.
//
// What it does: splits the function into blocks, predicates small if-bodies (branch inlining), makes branches to the end exits, finds out which
// branches can split a warp, and makes every piece of the graph in which lanes run apart a region: a set of blocks that all lead to one join,
// with a landing block of its own in front of the join.
//
// Output invariants: on every path a region is opened once and joined once, last opened first (Pascal keeps them on a stack, Volta and later in
// B registers by depth). Hence every edge into a region opens it, at the end of the block that it comes from or, where that block's other
// branch goes elsewhere, in an entrance block on the edge; every edge out leads through the landing; regions nest or are apart; regions with the
// same blocks and the same join are one. Where several regions join at the same block, their landings follow each other, inner to outer, and
// a path takes those of the regions that it is in. Paths that only lead to other exits leave regions as they are: exited lanes take part in
// nothing. check_regions proves all this on the final code.
//
// Algorithm. Post-dominators (Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", 2001) over the blocks that reach the last exit.
// The join of a divergent branch is its immediate post-dominator; its region is what can be reached before that. When the join lies outside the
// innermost loop, lanes leave the loop at different times: then the loop as a whole is the region, up to the first post-dominator outside.
// Such regions can share blocks without nesting (a goto into an arm, a || b): then the one that joins later takes in the other's blocks, and two
// with the same join become one. Nothing else is needed for that: a region may be entered by any number of edges.
// Uniformity is an optimistic closure over registers (flow-insensitive): a value is divergent when it comes from a divergent source, or is
// written inside a region.
//
// Cost: O(instructions + sum of the sizes of regions and loops * their depth), times the rounds of the closure (2 or 3 in practice).
//
// Lanes must not wait at a join for lanes that wait for them: a region that holds an operation of the whole warp (shfl.sync and its like with all
// lanes in the mask) is none, on Volta and later, since lanes that left it may be meant to meet the others at another such operation (a loop of
// shuffles that lanes leave at different times, and a shuffle behind it). What follows runs divergent.
//
// Left out: irreducible graphs (two entries into a cycle): Volta and later run them divergent, without regions; Pascal refuses them.
// A branch that reaches itself before its join (several back edges to one header) gets no region either.
#include "assembler/structure.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace rndn::assembler {
namespace {

using ptx::Opcode;

constexpr size_t inline_limit = 6;  // PTX instructions in an arm that is predicated (the thesis's figure)

bool ends_thread(const ptx::Instruction& i) {
  return (i.op == Opcode::ret || i.op == Opcode::exit) && is_none(i.guard);
}

// Instructions that an inlined arm may hold: cheap under a false guard, and without meaning for other lanes.
bool can_predicate(const ptx::Module& module, const ptx::Instruction& i, const isa::Target& target) {
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
    default: return is_none(i.guard) && !expands_to_branches(module, i, target);
  }
}

// How many regions may be open at once: Volta and later have B registers, of which the driver's functions keep some and the expansions of single
// instructions (select_*.cpp) take up to two; Pascal has a stack.
uint32_t deepest_region(const ptx::Function& f, const isa::Target& target) {
  if (target.family != isa::Family::volta) return UINT32_MAX;
  for (const ptx::Instruction& i : f.instructions)
    if (i.op == Opcode::call) return barrier_registers - first_called_barrier - 2;
  return barrier_registers - 2;
}

using Flags = std::span<uint8_t>;  // in the arena; a byte each: faster than bits

// The blocks that lead to one block, in the order in which they were found; hardly ever more than two.
class BlockList {
 public:
  size_t size() const { return size_; }
  BlockId* begin() { return more_.empty() ? own_.data() : more_.data(); }
  const BlockId* begin() const { return more_.empty() ? own_.data() : more_.data(); }
  BlockId* end() { return begin() + size_; }
  const BlockId* end() const { return begin() + size_; }
  BlockId operator[](size_t k) const { return begin()[k]; }
  void clear() { size_ = 0, more_.clear(); }
  void push_back(BlockId b) {
    if (more_.empty() && size_ < own_.size()) {
      own_[size_++] = b;
      return;
    }
    if (more_.empty()) more_.assign(own_.begin(), own_.end());
    more_.push_back(b);
    ++size_;
  }
  void erase(BlockId* at) {
    std::copy(at + 1, end(), at);
    --size_;
    if (!more_.empty()) more_.pop_back();
  }

 private:
  std::array<BlockId, 2> own_{};
  uint32_t size_ = 0;
  std::vector<BlockId> more_;  // all of them, once there are more
};

struct Builder {
  const ptx::Module& module;
  const ptx::Function& f;
  const isa::Target& target;
  Arena& arena;
  Flow flow;
  std::vector<BlockList> predecessors;
  Flags dead;              // blocks that others have taken in
  bool has_waits = false;  // barriers of the block or operations of the warp

  FlowBlock& block(BlockId b) { return flow.blocks[b]; }
  Flags flags(size_t n) { return arena.make_span<uint8_t>(n, false); }
  std::span<uint32_t> numbers(size_t n, uint32_t value) { return arena.make_span<uint32_t>(n, value); }

  template <class F>
  void successors(BlockId b, F&& use) {
    FlowBlock& x = block(b);
    if (!is_none(x.taken)) use(x.taken);
    if (!is_none(x.next) && x.next != x.taken) use(x.next);
  }

  // --- blocks -------------------------------------------------------------------------------------------------------------------
  void split() {
    const size_t n = f.instructions.size();
    const Flags leader = flags(n + 1);
    leader[0] = leader[n] = true;
    for (size_t i = 0; i < n; ++i) {
      const ptx::Instruction& inst = f.instructions[i];
      has_waits |= is_block_barrier(inst) || is_warp_operation(inst);
      if (inst.op == Opcode::bra) {
        leader[f.labels[f.operand(inst, 0).label_id()].at] = true;
        leader[i + 1] = true;
      } else if (ends_thread(inst)) {
        leader[i + 1] = true;
      } else if (!is_none(inst.guard) && expands_to_branches(module, inst, target)) {
        leader[i] = leader[i + 1] = true;
      }
    }
    // One block per leader, the end of the function included (falling off it ends the thread). A guarded instruction that needs a branch
    // becomes a branch block in front of the block that holds it.
    const std::span<BlockId> at = arena.make_raw<BlockId>(n + 1);  // of leaders
    flow.blocks.raw().reserve(flow.blocks.size() + static_cast<size_t>(std::ranges::count(leader, true)) + 16);
    for (size_t i = 0; i <= n; ++i)
      if (leader[i]) {
        at[i] = flow.blocks.add({});
        if (i < n && needs_branch(f.instructions[i])) flow.blocks.add({});
      }
    FlowItem* next_item = arena.make_raw<FlowItem>(n).data();
    for (size_t i = 0; i < n;) {
      size_t last = i;
      while (!leader[last + 1]) ++last;
      BlockId b = at[i];
      block(b).line = f.instructions[i].line, block(b).end_line = f.instructions[last].line;
      if (needs_branch(f.instructions[i])) {
        BlockId body = static_cast<BlockId>(index(b) + 1);
        const ptx::Instruction& inst = f.instructions[i];
        FlowBlock& x = block(b);
        x.predicate = inst.guard, x.negated = !inst.guard_negated, x.taken = at[i + 1], x.next = body;
        *next_item = {static_cast<uint32_t>(i)};
        block(body).items = FlowItems(next_item++, 1);
        block(body).next = at[i + 1];
        block(body).line = block(body).end_line = block(b).end_line = inst.line;
        i = i + 1;
        continue;
      }
      FlowBlock& x = block(b);
      const ptx::Instruction& end = f.instructions[last];
      const bool leaves = ends_thread(end);
      FlowItem* const first_item = next_item;
      for (size_t k = i; k < last + (end.op != Opcode::bra && !leaves); ++k) {
        const ptx::Instruction& inst = f.instructions[k];
        *next_item++ = {static_cast<uint32_t>(k), inst.guard, inst.guard_negated};
      }
      x.items = FlowItems(first_item, static_cast<size_t>(next_item - first_item));
      if (end.op == Opcode::bra) {
        const BlockId to = at[f.labels[f.operand(end, 0).label_id()].at];
        if (is_none(end.guard)) {
          x.next = to;
        } else {
          x.predicate = end.guard, x.negated = end.guard_negated, x.taken = to, x.next = at[last + 1];
          x.uniform_branch = end.mods.uni;
          if (x.taken == x.next) x.predicate = none<ptx::RegisterId>(), x.taken = none<BlockId>();
        }
      } else if (!leaves) {
        x.next = at[last + 1];
      }
      i = last + 1;
    }
  }
  bool needs_branch(const ptx::Instruction& i) {
    return !is_none(i.guard) && i.op != Opcode::bra && expands_to_branches(module, i, target);
  }

  // Reachable blocks in source order, with predecessors.
  void order() {
    const size_t n = flow.blocks.size();
    ArenaScope scratch(arena);
    const Flags seen = flags(n);
    const std::span<BlockId> work = arena.make_raw<BlockId>(n);
    size_t pending = 1;
    work[0] = BlockId{0};
    seen[0] = true;
    while (pending) {
      const BlockId b = work[--pending];
      successors(b, [&](BlockId s) {
        if (!seen[index(s)]) seen[index(s)] = true, work[pending++] = s;
      });
    }
    if (flow.layout.empty()) {
      flow.layout.reserve(n);
      for (uint32_t b = 0; b < n; ++b) flow.layout.push_back(BlockId{b});
    }
    std::erase_if(flow.layout, [&](BlockId b) { return !seen[index(b)]; });
    predecessors.resize(n);
    for (BlockList& p : predecessors) p.clear();
    for (BlockId b : flow.layout) successors(b, [&](BlockId s) { predecessors[index(s)].push_back(b); });
  }

  // Takes in the blocks that only b leads to: longer blocks schedule better. Returns whether there are any.
  bool merge_chain(BlockId b) {
    for (bool any = false;; any = true) {
      FlowBlock& x = block(b);
      BlockId n = x.next;
      if (!is_none(x.predicate) || is_none(n) || n == b || index(n) == 0 || predecessors[index(n)].size() != 1)
        return any;
      FlowBlock y = std::move(block(n));
      if (y.items.empty() && x.items.empty()) x.line = y.line;
      x.items.append(arena, y.items);
      x.predicate = y.predicate, x.negated = y.negated, x.uniform_branch = y.uniform_branch, x.taken = y.taken,
      x.next = y.next, x.end_line = y.end_line;
      block(n) = FlowBlock{};
      successors(b,
                 [&](BlockId s) { std::replace(predecessors[index(s)].begin(), predecessors[index(s)].end(), n, b); });
      predecessors[index(n)].clear();
      dead[index(n)] = true;
    }
  }
  void merge() {
    dead = flags(flow.blocks.size());
    bool any = false;
    for (BlockId b : flow.layout)
      if (!dead[index(b)]) any |= merge_chain(b);
    if (any) order();
  }

  bool arm(BlockId a, BlockId from, ptx::RegisterId predicate) {
    FlowBlock& x = block(a);
    if (predecessors[index(a)].size() != 1 || predecessors[index(a)][0] != from || !is_none(x.predicate) ||
        is_none(x.next))
      return false;
    if (x.items.size() > inline_limit) return false;
    for (const FlowItem& item : x.items) {
      const ptx::Instruction& i = f.instructions[item.inst];
      if (!is_none(item.guard) || !can_predicate(module, i, target)) return false;
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
  }
  // Removes the arm from the graph: the block that it leads to keeps one edge from b.
  void remove_arm(BlockId a, BlockId b) {
    BlockList& p = predecessors[index(block(a).next)];
    if (std::find(p.begin(), p.end(), b) == p.end())
      std::replace(p.begin(), p.end(), a, b);
    else
      p.erase(std::find(p.begin(), p.end(), a));
    predecessors[index(a)].clear();
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
    if (any) order();
  }

  // --- who waits for whom ---------------------------------------------------------------------------------------------------------
  struct Waits {
    bool barrier = false;    // has a barrier of the block,
    bool unaligned = false;  // even one that the lanes of a warp may come to apart
    bool warp = false;       // has an operation of the warp
  };
  std::span<Waits> waits;  // by block
  bool any_barrier = false, any_operation = false;
  void find_waits() {
    waits = arena.make_span<Waits>(flow.blocks.size());
    any_barrier = any_operation = false;
    if (!has_waits) return;
    for (BlockId b : flow.layout) {
      Waits& w = waits[index(b)];
      for (const FlowItem& item : block(b).items) {
        const ptx::Instruction& i = f.instructions[item.inst];
        w.barrier |= is_block_barrier(i);
        w.unaligned |= is_block_barrier(i) && !is_aligned_barrier(i);
        w.warp |= is_warp_operation(i);
      }
      any_barrier |= w.barrier, any_operation |= w.warp;
    }
  }
  // Blocks that lead to those for which `is` holds, which are among them.
  template <class F>
  Flags leading_to(F&& is) {
    const Flags leads = flags(flow.blocks.size());
    std::vector<uint32_t> work;
    for (BlockId b : flow.layout)
      if (is(index(b))) leads[index(b)] = true, work.push_back(index(b));
    for (size_t at = 0; at < work.size(); ++at)
      for (BlockId p : predecessors[work[at]])
        if (!leads[index(p)]) leads[index(p)] = true, work.push_back(index(p));
    return leads;
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
    const auto leave = std::ranges::find_if(f.instructions, ends_thread);
    if (leave == f.instructions.end()) return;
    const uint32_t exit = static_cast<uint32_t>(leave - f.instructions.begin());
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
      const Waits& w = waits[index(flow.layout[k])];
      if (!w.barrier && !w.warp) continue;
      behind = flags(flow.blocks.size());
      for (uint32_t b : reach(flow.layout[k], UINT32_MAX, true)) behind[b] = true;
    }
    bool any = false;
    int32_t over = 0;
    for (uint32_t k = 0; k < n; ++k) {
      over += cycles[k];
      FlowBlock& x = block(flow.layout[k]);
      if (is_none(x.predicate) && !behind.empty() && !behind[index(flow.layout[k])] && !x.items.empty() &&
          !is_none(x.next) && ends_at_once(x.next)) {
        x.next = none<BlockId>();
        any = true;
      }
      if (over || is_none(x.predicate) || ends_at_once(x.taken) == ends_at_once(x.next)) continue;
      const bool taken = ends_at_once(x.taken);
      x.items.append(arena, FlowItem{exit, x.predicate, taken == x.negated});
      if (!taken) x.next = x.taken;
      x.predicate = none<ptx::RegisterId>(), x.taken = none<BlockId>(), x.uniform_branch = false;
      any = true;
    }
    if (any) {
      order();
      merge();
    }
    if (any_barrier) own_exit();
  }
  // Lanes that leave for the end while others go to a barrier of the block share no exit with lanes behind the last barrier that do more.
  void own_exit() {
    find_waits();
    const Flags meets = leading_to([&](uint32_t b) { return waits[b].barrier; });
    const Flags operates = leading_to([&](uint32_t b) { return waits[b].warp; });
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
          own = flow.blocks.add({});
          block(own).line = block(own).end_line = block(to).line;
          flow.layout.push_back(own);
        }
        block(flow.layout[k]).*way = own;
      }
    }
    if (!is_none(own)) order();
  }

  // --- dominators -----------------------------------------------------------------------------------------------------------------
  // Immediate dominators over `order` (reverse postorder, root first). idom of the root is itself; unreached nodes: none.
  template <class Predecessors>
  std::span<uint32_t> dominators(size_t n, std::span<const uint32_t> order, Predecessors&& preds) {
    const std::span<uint32_t> position = numbers(n, UINT32_MAX), idom = numbers(n, UINT32_MAX);
    for (uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    idom[order[0]] = order[0];
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 1; i < order.size(); ++i) {
        uint32_t d = UINT32_MAX;
        preds(order[i], [&](uint32_t p) {
          if (position[p] == UINT32_MAX || idom[p] == UINT32_MAX) return;
          if (d == UINT32_MAX) {
            d = p;
            return;
          }
          uint32_t a = p, c = d;
          while (a != c) {
            while (position[a] > position[c]) a = idom[a];
            while (position[c] > position[a]) c = idom[c];
          }
          d = a;
        });
        if (d != UINT32_MAX && idom[order[i]] != d) idom[order[i]] = d, changed = true;
      }
    }
    return idom;
  }
  // successor(v, k): the k-th successor of v, UINT32_MAX after the last.
  template <class Successor>
  std::span<uint32_t> reverse_postorder(size_t n, uint32_t root, Successor&& successor) {
    struct Visit {
      uint32_t block, next;  // successor to look at
    };
    const std::span<uint32_t> order = arena.make_raw<uint32_t>(n);
    const std::span<Visit> stack = arena.make_raw<Visit>(n);
    const Flags seen = flags(n);
    size_t depth = 1, first = n;
    stack[0] = {root, 0};
    seen[root] = true;
    while (depth) {
      Visit& v = stack[depth - 1];
      const uint32_t w = successor(v.block, v.next++);
      if (w == UINT32_MAX) {
        order[--first] = v.block;
        --depth;
      } else if (!seen[w]) {
        seen[w] = true;
        stack[depth++] = {w, 0};
      }
    }
    return order.subspan(first);
  }

  std::span<uint32_t> idom;  // by block; UINT32_MAX: none
  struct Loop {
    BlockId header;
    std::vector<uint32_t> blocks;
    bool divergent = false;
    uint32_t parent = UINT32_MAX;  // the loop around it
  };
  std::vector<Loop> loops;         // inner before outer
  std::span<uint32_t> inner_loop;  // by block: the innermost loop, UINT32_MAX: none
  bool irreducible = false;

  bool in_loop(uint32_t loop, uint32_t b) const {
    uint32_t l = inner_loop[b];
    while (l != UINT32_MAX && l != loop) l = loops[l].parent;
    return l == loop;
  }

  void analyse() {
    const size_t n = flow.blocks.size();
    const std::span<uint32_t> rpo = reverse_postorder(n, 0, [&](uint32_t b, uint32_t k) {
      const FlowBlock& x = block(BlockId{b});
      const BlockId first = is_none(x.taken) ? x.next : x.taken, second = is_none(x.taken) ? x.taken : x.next;
      return k == 0                       ? index(second) != UINT32_MAX ? index(second) : index(first)
                                   : k == 1 && !is_none(second) ? index(first)
                                          : UINT32_MAX;
    });
    idom = dominators(n, rpo, [&](uint32_t b, auto&& use) {
      for (BlockId p : predecessors[b]) use(index(p));
    });
    const std::span<uint32_t> position = arena.make_raw<uint32_t>(n);
    for (uint32_t i = 0; i < rpo.size(); ++i) position[rpo[i]] = i;
    auto dominates = [&](uint32_t a, uint32_t b) {
      while (position[b] > position[a]) b = idom[b];
      return a == b;
    };
    // Natural loops; back edges to one header make one loop. Two loops nest or are apart: both headers dominate what they share.
    const std::span<uint32_t> mark = numbers(n, UINT32_MAX);
    for (uint32_t h : rpo) {
      Loop loop{BlockId{h}, {}};
      for (BlockId p : predecessors[h]) {
        if (position[index(p)] < position[h]) continue;
        if (!dominates(h, index(p)))
          irreducible = true;
        else if (mark[index(p)] != h) {
          if (loop.blocks.empty()) loop.blocks.reserve(16);
          mark[index(p)] = h, loop.blocks.push_back(index(p));
        }
      }
      if (loop.blocks.empty()) continue;
      if (mark[h] != h) mark[h] = h, loop.blocks.push_back(h);
      for (size_t at = 0; at < loop.blocks.size(); ++at) {
        if (loop.blocks[at] == h) continue;
        for (BlockId p : predecessors[loop.blocks[at]])
          if (mark[index(p)] != h) mark[index(p)] = h, loop.blocks.push_back(index(p));
      }
      for (uint32_t b : loop.blocks) ++block(BlockId{b}).loop_depth;
      loops.push_back(std::move(loop));
    }
    std::stable_sort(loops.begin(), loops.end(),
                     [](const Loop& a, const Loop& b) { return a.blocks.size() < b.blocks.size(); });
    inner_loop = numbers(n, UINT32_MAX);
    for (uint32_t l = 0; l < loops.size(); ++l)
      for (uint32_t b : loops[l].blocks) {
        uint32_t inside = inner_loop[b];
        if (inside == UINT32_MAX) {
          inner_loop[b] = l;
          continue;
        }
        while (loops[inside].parent != UINT32_MAX) inside = loops[inside].parent;
        if (inside != l) loops[inside].parent = l;
      }

    find_levels();
  }

  // Levels. The blocks that lead to one root are a level, in which all joins lie: a branch's join is its immediate post-dominator towards the root. Lanes
  // that go from a level to another never come back. Lanes that leave for their end, with no wait of any kind before it, while others go on to
  // a barrier of the block, are a level of their own, too: nobody may wait for the others at their joins.
  std::span<uint32_t> level, ipdom;  // by block; UINT32_MAX: none
  std::span<uint32_t> join;          // by block: where its lanes meet behind its branch
  Flags meets, leaves;  // by block: leads to a barrier of the block; is what such blocks are left for, for good

  bool stays(BlockId b, BlockId s) const { return !(meets[index(b)] && leaves[index(s)]); }
  // The block that the lanes of from's level lead to: the last exit behind the last wait; where there is none, the last block whose lanes all leave; where there is none
  // either, the header of an outermost loop that nobody gets out of but by leaving.
  uint32_t root_of(BlockId from) {
    Flags met;
    std::vector<BlockId> found;
    const auto forward = [&](BlockId start) {
      met = flags(flow.blocks.size()), found.assign(1, start), met[index(start)] = true;
      for (size_t at = 0; at < found.size(); ++at)
        successors(found[at], [&](BlockId s) {
          if (!met[index(s)] && stays(found[at], s)) met[index(s)] = true, found.push_back(s);
        });
    };
    forward(from);
    for (BlockId b : flow.layout)
      if (met[index(b)] && (waits[index(b)].barrier || waits[index(b)].warp)) from = b;
    forward(from);
    uint32_t last = UINT32_MAX, terminal = UINT32_MAX;
    for (BlockId b : flow.layout) {
      if (!met[index(b)]) continue;
      bool goes_on = false, any = false;
      successors(b, [&](BlockId s) { any = true, goes_on |= stays(b, s); });
      if (!any) last = index(b);
      if (!goes_on) terminal = index(b);
    }
    if (last != UINT32_MAX) return last;
    if (terminal != UINT32_MAX) return terminal;
    for (bool again = true; again;) {  // to a cycle that leads to nothing else
      again = false;
      forward(from);
      const Flags back = leading_to([&](uint32_t b) { return b == index(from); });
      for (BlockId b : found)
        if (!back[index(b)]) {
          from = b, again = true;
          break;
        }
    }
    uint32_t l = inner_loop[index(from)];
    while (l != UINT32_MAX && loops[l].parent != UINT32_MAX) l = loops[l].parent;
    return l != UINT32_MAX ? index(loops[l].header) : index(from);
  }

  void find_levels() {
    const size_t n = flow.blocks.size();
    find_waits();
    meets = any_barrier ? leading_to([&](uint32_t b) { return waits[b].barrier; }) : flags(n);
    leaves = flags(n);
    if (any_barrier) {
      const Flags operates = leading_to([&](uint32_t b) { return waits[b].warp; });
      const Flags shared = flags(n);  // where lanes come to that have not left others at a barrier
      std::vector<BlockId> work;
      for (BlockId b : flow.layout)
        if (!meets[index(b)] && operates[index(b)]) shared[index(b)] = true, work.push_back(b);
      while (!work.empty()) {
        const BlockId b = work.back();
        work.pop_back();
        successors(b, [&](BlockId s) {
          if (!shared[index(s)]) shared[index(s)] = true, work.push_back(s);
        });
      }
      for (BlockId b : flow.layout) leaves[index(b)] = !meets[index(b)] && !operates[index(b)] && !shared[index(b)];
    }
    level = numbers(n, UINT32_MAX), ipdom = numbers(n, UINT32_MAX), join = numbers(n, UINT32_MAX);
    uint32_t count = 0;
    bool to_exit = false;
    const auto last_free = [&](auto&& is) {
      uint32_t last = UINT32_MAX;
      for (BlockId b : flow.layout)
        if (level[index(b)] == UINT32_MAX && is(index(b))) last = index(b);
      return last;
    };
    const auto add_level = [&](uint32_t root) {
      const uint32_t l = count++;
      to_exit |= is_none(block(BlockId{root}).taken) && is_none(block(BlockId{root}).next);
      level[root] = l;
      const std::span<uint32_t> members = arena.make_raw<uint32_t>(n);
      size_t size = 0;
      members[size++] = root;
      for (size_t at = 0; at < size; ++at)
        for (BlockId p : predecessors[members[at]])
          if (level[index(p)] == UINT32_MAX && stays(p, BlockId{members[at]}))
            level[index(p)] = l, members[size++] = index(p);
      const std::span<uint32_t> back = reverse_postorder(n, root, [&](uint32_t b, uint32_t k) {
        const BlockList& p = predecessors[b];
        for (size_t at = p.size(); at-- > 0;)
          if (level[index(p[at])] == l && k-- == 0) return index(p[at]);
        return UINT32_MAX;
      });
      const std::span<uint32_t> towards = dominators(n, back, [&](uint32_t b, auto&& use) {
        successors(BlockId{b}, [&](BlockId s) {
          if (level[index(s)] == l) use(index(s));
        });
      });
      towards[root] = UINT32_MAX;
      for (uint32_t b : back) ipdom[b] = join[b] = towards[b];
      // The root's lanes may go on too: to the first block that all of them come to.
      const std::span<uint32_t> position = arena.make_raw<uint32_t>(n);
      for (uint32_t k = 0; k < back.size(); ++k) position[back[k]] = k;
      successors(BlockId{root}, [&](BlockId s) {
        if (level[index(s)] != l) return;
        uint32_t a = index(s), c = join[root] == UINT32_MAX ? a : join[root];
        while (a != c) {
          uint32_t& further = position[a] > position[c] ? a : c;
          further = ipdom[further];
        }
        join[root] = a;
      });
    };
    for (uint32_t b; (b = last_free([&](uint32_t x) { return waits[x].barrier; })) != UINT32_MAX;)
      add_level(root_of(BlockId{b}));
    const auto is_exit = [&](uint32_t x) {
      return is_none(block(BlockId{x}).taken) && is_none(block(BlockId{x}).next);
    };
    if (!to_exit) {
      uint32_t b = any_operation ? last_free([&](uint32_t x) { return waits[x].warp; }) : UINT32_MAX;
      if (b != UINT32_MAX) b = root_of(BlockId{b});
      if (b == UINT32_MAX) b = last_free(is_exit);
      if (b != UINT32_MAX) add_level(b);
    }
    // Pascal's operations of the warp mean the lanes that the stack has brought together.
    if (target.family == isa::Family::pascal)
      for (uint32_t b; (b = last_free([&](uint32_t x) { return waits[x].warp; })) != UINT32_MAX;)
        add_level(root_of(BlockId{b}));
    if (count == 0) add_level(root_of(flow.layout.back()));
  }

  // Blocks reachable from the successors of `from` (or from `from` itself) without passing `stop`; until the next search.
  std::vector<uint32_t> reached_at;  // by block: number of the search that met it last
  std::vector<uint32_t> found;       // by the last search
  uint32_t searches = 0;
  std::span<const uint32_t> reach(BlockId from, uint32_t stop, bool include) {
    reached_at.resize(flow.blocks.size(), 0);
    ++searches;
    std::vector<uint32_t>& set = found;
    set.clear();
    auto visit = [&](BlockId s) {
      if (index(s) != stop && reached_at[index(s)] != searches)
        reached_at[index(s)] = searches, set.push_back(index(s));
    };
    if (include)
      visit(from);
    else
      successors(from, visit);
    for (size_t at = 0; at < set.size(); ++at) successors(BlockId{set[at]}, visit);
    return set;
  }
  // Whether the last search met the block.
  bool reached(uint32_t b) const { return reached_at[b] == searches; }

  // --- uniformity -----------------------------------------------------------------------------------------------------------------
  static bool divergent_source(ptx::SpecialRegister r) {
    using S = ptx::SpecialRegister;
    switch (r) {
      case S::ntid_x:
      case S::ntid_y:
      case S::ntid_z:
      case S::ctaid_x:
      case S::ctaid_y:
      case S::ctaid_z:
      case S::nctaid_x:
      case S::nctaid_y:
      case S::nctaid_z:
      case S::nsmid:
      case S::gridid:
      case S::nwarpid:
      case S::dynamic_smem_size:
      case S::total_smem_size: return false;
      default: return true;  // clocks too: the lanes of a split warp read them at different times
    }
  }
  bool divergent_operand(const ptx::Operand& o) {
    switch (o.kind) {
      case ptx::Operand::reg:
      case ptx::Operand::address_reg: return flow.divergent[o.id];
      case ptx::Operand::special: return divergent_source(static_cast<ptx::SpecialRegister>(o.id));
      case ptx::Operand::vector:
        for (uint32_t k = 0; k < o.count; ++k)
          if (divergent_operand(f.vector_elements[o.id + k])) return true;
        return false;
      default: return false;
    }
  }
  bool divergent_result(const ptx::Instruction& i) {
    switch (i.op) {
      case Opcode::ld:
        if (i.mods.space != ptx::Space::param && i.mods.space != ptx::Space::constant) return true;
        break;
      case Opcode::atom:
      case Opcode::shfl:
      case Opcode::vote:
      case Opcode::match:
      case Opcode::activemask:
      case Opcode::redux:
      case Opcode::call:
      case Opcode::bar:
      case Opcode::barrier: return true;
      case Opcode::addc:  // the condition code is not followed
      case Opcode::subc:
      case Opcode::madc: return true;
      default: break;
    }
    for (uint32_t k = i.destination_count; k < i.operand_count; ++k)
      if (divergent_operand(f.operand(i, k))) return true;
    return false;
  }

  Flags apart;      // block runs with some lanes missing
  Flags no_region;  // divergent branch without a region
  void diverge() {
    flow.divergent.assign(f.registers.size(), false);
    apart = flags(flow.blocks.size());
    // Items with a result that may still turn out divergent, in the order of the code; each round keeps those that did not.
    struct Undecided {
      uint32_t block;
      const FlowItem* item;
    };
    size_t items = 0;
    for (BlockId b : flow.layout) items += block(b).items.size();
    std::span<Undecided> undecided = arena.make_raw<Undecided>(items);
    items = 0;
    for (BlockId b : flow.layout)
      for (const FlowItem& item : block(b).items)
        if (f.instructions[item.inst].destination_count != 0) undecided[items++] = {index(b), &item};
    undecided = undecided.first(items);
    for (bool changed = true; changed;) {
      changed = false;
      auto mark = [&](const ptx::Operand& o) {
        if (o.kind == ptx::Operand::reg && !flow.divergent[o.id]) flow.divergent[o.id] = true, changed = true;
      };
      size_t kept = 0;
      for (const Undecided& u : undecided) {
        const ptx::Instruction& i = f.instructions[u.item->inst];
        const ptx::Operand& d = f.operand(i, 0);
        if (i.destination_count == 1 && d.kind == ptx::Operand::reg && flow.divergent[d.id]) continue;
        if (!apart[u.block] && !(!is_none(u.item->guard) && flow.divergent[index(u.item->guard)]) &&
            !divergent_result(i)) {
          undecided[kept++] = u;
          continue;
        }
        for (uint32_t k = 0; k < i.destination_count; ++k) {
          const ptx::Operand& o = f.operand(i, k);
          if (o.kind == ptx::Operand::vector) {
            for (uint32_t e = 0; e < o.count; ++e) mark(f.vector_elements[o.id + e]);
          } else {
            mark(o);
          }
        }
      }
      undecided = undecided.first(kept);
      auto mark_blocks = [&](std::span<const uint32_t> set) {
        for (uint32_t b : set)
          if (!apart[b]) apart[b] = true, changed = true;
      };
      for (BlockId b : flow.layout)
        if (diverges(b)) mark_blocks(reach(b, join[index(b)], false));
      for (uint32_t l = 0; l < loops.size(); ++l) {
        Loop& loop = loops[l];
        bool leaves = false;
        for (uint32_t b : loop.blocks) leaves |= diverges(BlockId{b}) && leaves_loop(l, BlockId{b});
        if (leaves) loop.divergent = true, mark_blocks(reach(loop.header, loop_join(l), true));
      }
    }
  }
  bool diverges(BlockId b) {
    const FlowBlock& x = block(b);
    return !is_none(x.predicate) && !x.uniform_branch && flow.divergent[index(x.predicate)];
  }
  bool leaves_loop(uint32_t loop, BlockId b) {
    uint32_t j = join[index(b)];
    return j == UINT32_MAX || !in_loop(loop, j);
  }
  uint32_t loop_join(uint32_t loop) {
    uint32_t j = ipdom[index(loops[loop].header)];
    while (j != UINT32_MAX && in_loop(loop, j)) j = ipdom[j];
    return j;
  }

  // --- regions --------------------------------------------------------------------------------------------------------------------
  struct Candidate {
    uint32_t join;
    std::vector<uint32_t> blocks;  // all lead to the join
    std::vector<uint32_t> ends;    // reachable from the entries too, but of another level: in no region
    uint32_t parent = UINT32_MAX;  // the smallest candidate that holds all blocks
    BlockId landing = none<BlockId>();
    RegionId id = none<RegionId>();
  };
  std::vector<Candidate> candidates;           // inner before outer
  std::vector<std::vector<uint32_t>> holders;  // by block: the candidates that hold it; after nest() inner before outer

  bool holds(uint32_t k, uint32_t b) const {
    return b < holders.size() && std::find(holders[b].begin(), holders[b].end(), k) != holders[b].end();
  }
  bool holds(uint32_t k, BlockId b) const { return holds(k, index(b)); }
  void add_candidate(uint32_t join, std::span<const uint32_t> set) {
    Candidate c{join, {}, {}};
    for (uint32_t b : set) (level[b] == level[join] ? c.blocks : c.ends).push_back(b);
    if (!c.blocks.empty()) candidates.push_back(std::move(c));
  }
  void take_in(uint32_t outer, uint32_t inner) {
    Candidate &x = candidates[outer], &y = candidates[inner];
    for (uint32_t b : y.blocks)
      if (!holds(outer, b)) x.blocks.push_back(b), holders[b].push_back(outer);
    for (uint32_t b : y.ends)
      if (std::find(x.ends.begin(), x.ends.end(), b) == x.ends.end()) x.ends.push_back(b);
  }
  // Until any two candidates nest or are apart: the one that joins later takes in the blocks of one that joins inside it; candidates with the
  // same join become one. Two candidates are looked at together only when they share a block.
  void nest() {
    holders.assign(flow.blocks.size(), {});
    for (uint32_t k = 0; k < candidates.size(); ++k)
      for (uint32_t b : candidates[k].blocks) holders[b].push_back(k);
    std::vector<uint32_t> shared(candidates.size(), 0), others;
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t a = 0; a < candidates.size(); ++a) {
        bool again = true;
        while (again) {
          again = false;
          others.clear();
          for (uint32_t b : candidates[a].blocks)
            for (uint32_t k : holders[b])
              if (k > a && shared[k]++ == 0) others.push_back(k);
          std::sort(others.begin(), others.end());
          for (uint32_t k : others) {
            const uint32_t common = std::exchange(shared[k], 0);
            if (again) continue;  // the sets have changed: count anew
            Candidate &x = candidates[a], &y = candidates[k];
            const bool in = common == x.blocks.size(), holds_it = common == y.blocks.size();
            const bool same = x.join == y.join && in && holds_it;
            if (!same && (in || holds_it)) continue;
            changed = again = true;
            if (x.join == y.join) {
              take_in(a, k);
              for (uint32_t b : y.blocks) std::erase(holders[b], k);
              y.blocks.clear();
            } else {
              const bool y_outer = holds(k, x.join);
              CHECK(y_outer || holds(a, y.join), "a block leads to two joins of which neither leads to the other");
              y_outer ? take_in(k, a) : take_in(a, k);
            }
          }
        }
      }
    }
    std::erase_if(candidates, [](const Candidate& c) { return c.blocks.empty(); });
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.blocks.size() < b.blocks.size(); });
    find_parents();
    if (drop_needless()) find_parents();
  }
  void find_parents() {
    for (auto& list : holders) list.clear();
    for (uint32_t k = 0; k < candidates.size(); ++k)
      for (uint32_t b : candidates[k].blocks) holders[b].push_back(k);
    for (uint32_t k = 0; k < candidates.size(); ++k) {
      const std::vector<uint32_t>& chain = holders[candidates[k].blocks[0]];
      const auto next = std::upper_bound(chain.begin(), chain.end(), k);
      candidates[k].parent = next != chain.end() ? *next : UINT32_MAX;
    }
  }
  // Candidates that bring nothing: those that join where the one around them does (a || b || c ..), and those deeper than there are B registers,
  // whose lanes meet at the join of one around them. All their blocks run apart anyway.
  bool drop_needless() {
    const uint32_t most = deepest_region(f, target);
    std::vector<uint32_t> depth(candidates.size(), 0);
    std::vector<uint32_t> kept_by(candidates.size());  // itself, or the innermost around it that stays
    std::vector<uint8_t> needless(candidates.size(), false);
    bool any = false;
    for (uint32_t k = static_cast<uint32_t>(candidates.size()); k-- > 0;) {  // outer first
      const uint32_t parent = candidates[k].parent;
      kept_by[k] = k;
      if (parent == UINT32_MAX) continue;
      needless[k] = candidates[parent].join == candidates[k].join || depth[parent] + 1 >= most;
      depth[k] = depth[parent] + (needless[k] ? 0 : 1);
      if (!needless[k]) continue;
      any = true;
      kept_by[k] = kept_by[parent];
      for (uint32_t b : candidates[k].ends)
        if (auto& ends = candidates[kept_by[k]].ends; std::find(ends.begin(), ends.end(), b) == ends.end())
          ends.push_back(b);
    }
    size_t kept = 0;
    for (size_t k = 0; k < candidates.size(); ++k)
      if (!needless[k]) {
        if (kept != k) candidates[kept] = std::move(candidates[k]);
        ++kept;
      }
    candidates.resize(kept);
    return any;
  }
  // The member mask of an operation that waits for lanes; null: it is none.
  const ptx::Operand* member_mask(const ptx::Instruction& i) const {
    const bool waits = i.op == Opcode::shfl || i.op == Opcode::match || i.op == Opcode::redux ||
                       (i.op == Opcode::vote && i.operand_count > 2u) || is_warp_barrier(i);
    return waits && i.operand_count != 0 ? &f.operand(i, i.operand_count - 1u) : nullptr;
  }
  static bool is_all_lanes(const ptx::Operand& o) {
    return o.kind == ptx::Operand::immediate && static_cast<uint32_t>(o.value) == 0xffffffffu;
  }
  // By block: whether it waits for all lanes of the warp. A mask in a register counts when all that is ever written to it are all lanes.
  Flags waiting_for_warp() {
    const Flags waits = flags(flow.blocks.size());
    std::vector<ptx::RegisterId> masks;
    for (BlockId b : flow.layout)
      for (const FlowItem& item : block(b).items)
        if (const ptx::Operand* mask = member_mask(f.instructions[item.inst])) {
          if (is_all_lanes(*mask)) waits[index(b)] = true;
          if (mask->kind == ptx::Operand::reg) masks.push_back(ptx::RegisterId{mask->id});
        }
    if (masks.empty()) return waits;
    const Flags wanted = flags(f.registers.size()), other = flags(f.registers.size());
    for (ptx::RegisterId r : masks) wanted[index(r)] = true;
    for (const ptx::Instruction& i : f.instructions)
      for (uint32_t k = 0; k < i.destination_count; ++k) {
        const ptx::Operand& d = f.operand(i, k);
        const bool constant = i.op == Opcode::mov && is_all_lanes(f.operand(i, 1));
        if (d.kind == ptx::Operand::reg && wanted[d.id]) other[d.id] |= !constant;
        if (d.kind == ptx::Operand::vector)
          for (uint32_t e = 0; e < d.count; ++e)
            if (const ptx::Operand& o = f.vector_elements[d.id + e]; o.kind == ptx::Operand::reg) other[o.id] = true;
      }
    for (BlockId b : flow.layout)
      for (const FlowItem& item : block(b).items)
        if (const ptx::Operand* mask = member_mask(f.instructions[item.inst]))
          waits[index(b)] |= mask->kind == ptx::Operand::reg && !other[mask->id];
    return waits;
  }
  void run_apart(uint32_t b) { block(BlockId{b}).convergent = false, block(BlockId{b}).split = true; }
  // Drops the candidates whose lanes may wait for some that are at the join: for the whole warp; at a barrier of the block, when those at the join may end
  // without coming to one; at one that lanes of a warp may come to apart. From their blocks on, lanes may run apart.
  void drop_those_that_wait(const Flags& for_warp) {
    if (target.family != isa::Family::volta) return;
    const auto drop = [&](const Candidate& c) {
      const auto waits_apart = [&](uint32_t b) { return for_warp[b] || waits[b].unaligned; };
      return std::ranges::any_of(c.ends, waits_apart) || std::ranges::any_of(c.blocks, [&](uint32_t b) {
               return waits_apart(b) || (waits[b].barrier && !meets[c.join]);
             });
    };
    bool any = false;
    for (const Candidate& c : candidates) {
      if (!drop(c)) continue;
      any = true;
      for (uint32_t b : c.blocks)
        for (uint32_t s : reach(BlockId{b}, UINT32_MAX, true)) run_apart(s);
    }
    if (!any) return;
    std::erase_if(candidates, drop);
    find_parents();
  }
  bool same_level(BlockId b, BlockId s) const { return level[index(b)] == level[index(s)]; }
  uint32_t innermost_holding(BlockId b) {
    return index(b) < holders.size() && !holders[index(b)].empty() ? holders[index(b)].front() : UINT32_MAX;
  }
  // The innermost candidate that is open behind the end of b, with those that b opens: lanes enter them from b, and whichever way they go from
  // b, they enter or are at the join. None that b's branch enters while it leaves another.
  uint32_t open_behind(BlockId b, std::vector<uint32_t>& opens) {
    const uint32_t inside = innermost_holding(b);
    uint32_t open = inside;
    std::vector<uint32_t> entered;  // those that hold a successor, outer before inner
    successors(b, [&](BlockId s) {
      if (same_level(b, s) && index(s) < holders.size())
        entered.insert(entered.end(), holders[index(s)].begin(), holders[index(s)].end());
    });
    std::sort(entered.begin(), entered.end(), std::greater<>());
    entered.erase(std::unique(entered.begin(), entered.end()), entered.end());
    for (uint32_t k : entered) {
      if (holds(k, b) || candidates[k].parent != open) continue;
      bool all = true;
      successors(b, [&](BlockId s) {
        if (same_level(b, s) && !holds(k, s) && index(s) != candidates[k].join) all = false;
      });
      if (all) opens.push_back(k), open = k;
    }
    return open;
  }

  // Fresh blocks go in front of blocks of the layout, a list until the end.
  std::vector<uint32_t> after, before;  // by block: its neighbours, UINT32_MAX = none
  void start_insertion() {
    after.assign(flow.blocks.size(), UINT32_MAX);
    before.assign(flow.blocks.size(), UINT32_MAX);
    for (size_t k = 1; k < flow.layout.size(); ++k) {
      after[index(flow.layout[k - 1])] = index(flow.layout[k]);
      before[index(flow.layout[k])] = index(flow.layout[k - 1]);
    }
  }
  void insert_before(BlockId at, BlockId fresh) {
    after.resize(flow.blocks.size(), UINT32_MAX);
    before.resize(flow.blocks.size(), UINT32_MAX);
    const uint32_t a = index(at), x = index(fresh), p = before[a];
    before[x] = p, after[x] = a, before[a] = x;
    if (p != UINT32_MAX) after[p] = x;
  }
  void finish_insertion() {
    uint32_t first = index(flow.layout[0]);
    while (before[first] != UINT32_MAX) first = before[first];
    flow.layout.clear();
    for (; first != UINT32_MAX; first = after[first]) flow.layout.push_back(BlockId{first});
  }

  struct Entrance {
    uint32_t outermost;  // candidate that it opens first
    BlockId block;
  };
  std::vector<std::vector<Entrance>> entrances;  // by block
  // Where lanes with candidate `open` innermost go to reach s: out of the regions that s is not in, then into those that it is in.
  BlockId route(uint32_t open, BlockId s, uint32_t loop_depth) {
    if (level[index(s)] == UINT32_MAX) return s;
    if (open != UINT32_MAX && !holds(open, s)) {
      CHECK(candidates[open].join == index(s), "a region is left, but not to its join");
      if (!is_none(candidates[open].landing)) return candidates[open].landing;
      const BlockId next = route(candidates[open].parent, s, loop_depth);
      const BlockId l = flow.blocks.add({});
      candidates[open].landing = l;
      FlowBlock &x = block(l), &join = block(s);
      x.next = next, x.line = x.end_line = join.line, x.loop_depth = std::min(join.loop_depth, loop_depth);
      x.convergent = candidates[open].parent == UINT32_MAX && join.convergent;
      insert_before(next, l);
      return l;
    }
    std::vector<uint32_t> enter;  // innermost first
    for (uint32_t k = innermost_holding(s); k != open; k = candidates[k].parent) enter.push_back(k);
    if (enter.empty()) return s;
    entrances.resize(level.size());
    for (const Entrance& e : entrances[index(s)])
      if (e.outermost == enter.back()) return e.block;
    const BlockId e = flow.blocks.add({});
    FlowBlock &x = block(e), &to = block(s);
    x.next = s, x.line = x.end_line = to.line, x.loop_depth = std::min(to.loop_depth, loop_depth);
    x.convergent = open == UINT32_MAX && to.convergent;
    for (size_t k = enter.size(); k-- > 0;) x.opens.push_back(candidates[enter[k]].id);
    if (open != UINT32_MAX) x.innermost = candidates[open].id;
    entrances[index(s)].push_back({enter.back(), e});
    insert_before(s, e);
    return e;
  }

  // Regions of the candidates. Lanes that come from a level to another have left regions of the one open: those of the other lie deeper.
  void number() {
    std::vector<uint32_t> deepest;                  // by level
    for (size_t k = candidates.size(); k-- > 0;) {  // outer first
      Candidate& c = candidates[k];
      Region r;
      if (c.parent != UINT32_MAX) r.parent = candidates[c.parent].id, r.depth = flow.regions[r.parent].depth + 1;
      c.id = flow.regions.add(r);
      deepest.resize(std::max<size_t>(deepest.size(), level[c.join] + 1));
      deepest[level[c.join]] = std::max(deepest[level[c.join]], r.depth + 1);
    }
    uint32_t base = 0;
    const uint32_t most = deepest_region(f, target);
    for (uint32_t l = 0; l < deepest.size(); base += deepest[l++]) {
      if (deepest[l] >= most - std::min(base, most)) base = 0;
      for (const Candidate& c : candidates)
        if (level[c.join] == l) flow.regions[c.id].depth += base;
    }
  }
  // The blocks of the barriers that lanes at `from` may come to first, without passing `stop`.
  std::vector<uint32_t> first_barriers(BlockId from, uint32_t stop) {
    std::vector<uint32_t> work{index(from)}, found;
    const Flags met = flags(flow.blocks.size());
    met[index(from)] = true;
    for (size_t at = 0; at < work.size(); ++at) {
      if (work[at] == stop) continue;
      if (waits[work[at]].barrier) {
        found.push_back(work[at]);
        continue;
      }
      successors(BlockId{work[at]}, [&](BlockId s) {
        if (!met[index(s)]) met[index(s)] = true, work.push_back(index(s));
      });
    }
    return found;
  }
  // Pascal counts a warp at a barrier as soon as some of its lanes are there. Refuses barriers that lanes come to first by both ways behind a branch that
  // may split the warp, before they meet. (If by one way only, the branch splits no warp but into those that go on and those that end.)
  Result<void> check_barriers() {
    if (target.family != isa::Family::pascal || !any_barrier) return {};
    for (BlockId b : flow.layout) {
      const BlockId taken = block(b).taken, next = block(b).next;
      if (!diverges(b) || !same_level(b, taken) || !same_level(b, next)) continue;
      uint32_t stop = join[index(b)];
      for (uint32_t l = inner_loop[index(b)]; l != UINT32_MAX; l = loops[l].parent)
        if (leaves_loop(l, b)) stop = loop_join(l);
      ArenaScope scratch(arena);
      const Flags by_taken = flags(flow.blocks.size());
      for (uint32_t x : first_barriers(taken, stop)) by_taken[x] = true;
      for (uint32_t x : first_barriers(next, stop))
        if (by_taken[x])
          for (const FlowItem& item : block(BlockId{x}).items)
            if (const ptx::Instruction& i = f.instructions[item.inst]; is_block_barrier(i))
              return input_error(
                  "function {}, line {}: unsupported barrier: parts of a warp may come to it one after another behind "
                  "the branch in "
                  "line {}, and {} would count the first for all",
                  f.name, i.line, block(b).end_line, target.name);
    }
    return {};
  }

  Result<void> regions() {
    const size_t n0 = flow.blocks.size();
    if (irreducible && target.family == isa::Family::pascal)
      return input_error("function {}: unsupported irreducible control flow (a cycle with two entries) on {}", f.name,
                         target.name);
    RETURN_IF_ERROR(check_barriers());
    const Flags for_warp = any_operation && target.family == isa::Family::volta ? waiting_for_warp() : flags(n0);
    const Flags covered = flags(n0), has = flags(n0);  // has: a region opens behind the block
    auto cover = [&](std::span<const uint32_t> set) {
      for (uint32_t b : set) covered[b] = true;
    };
    if (!irreducible) {
      for (BlockId b : flow.layout) {
        if (!diverges(b)) continue;
        uint32_t j = join[index(b)];
        bool by_loop = false;
        for (uint32_t l = inner_loop[index(b)]; l != UINT32_MAX; l = loops[l].parent) by_loop |= leaves_loop(l, b);
        if (j == UINT32_MAX || by_loop) continue;
        const std::span<const uint32_t> set = reach(b, j, false);
        if (reached(index(b))) continue;
        has[index(b)] = true;
        cover(set);
        add_candidate(j, set);
      }
      for (uint32_t l = 0; l < loops.size(); ++l) {
        const Loop& loop = loops[l];
        uint32_t j = loop.divergent ? loop_join(l) : UINT32_MAX;
        if (j == UINT32_MAX) continue;
        const std::span<const uint32_t> set = reach(loop.header, j, true);
        bool entered_again = false;
        for (BlockId p : predecessors[index(loop.header)])
          if (!in_loop(l, index(p)) && reached(index(p))) entered_again = true;
        if (entered_again) continue;
        cover(set);
        add_candidate(j, set);
      }
    }
    // Convergence: apart and covered by a region, or apart for good.
    for (BlockId b : flow.layout) block(b).convergent = !apart[index(b)];
    // A divergent branch that no region covers leaves everything after it divergent.
    for (BlockId b : flow.layout)
      if (diverges(b) && !covered[index(b)] && !has[index(b)])
        for (uint32_t s : reach(b, UINT32_MAX, false)) run_apart(s);

    // Lanes that have left for good may wait for the whole warp somewhere else.
    if (target.family == isa::Family::volta && any_operation)
      for (BlockId b : flow.layout) {
        if (!diverges(b)) continue;
        const std::span<const uint32_t> set = reach(b, join[index(b)], false);
        if (std::ranges::any_of(set, [&](uint32_t s) { return level[s] != level[index(b)] && for_warp[s]; }))
          for (uint32_t s : reach(b, UINT32_MAX, false)) run_apart(s);
      }

    nest();
    drop_those_that_wait(for_warp);
    number();
    // The innermost region of a block: the deepest; an exit's lanes leave its register alone.
    for (const Candidate& c : candidates)
      for (const std::vector<uint32_t>* set : {&c.blocks, &c.ends})
        for (uint32_t b : *set) {
          RegionId& in = block(BlockId{b}).innermost;
          if (is_none(in) || flow.regions[in].depth < flow.regions[c.id].depth) in = c.id;
        }
    const std::vector<BlockId> order = flow.layout;
    start_insertion();
    for (BlockId b : order) {
      if (level[index(b)] == UINT32_MAX) continue;
      std::vector<uint32_t> opens;
      const uint32_t open = open_behind(b, opens);
      for (uint32_t k : opens) block(b).opens.push_back(candidates[k].id);
      const uint32_t depth = block(b).loop_depth;
      if (BlockId s = block(b).taken; !is_none(s)) {
        BlockId to = route(same_level(b, s) ? open : UINT32_MAX, s, depth);
        block(b).taken = to;
      }
      if (BlockId s = block(b).next; !is_none(s)) {
        BlockId to = route(same_level(b, s) ? open : UINT32_MAX, s, depth);
        block(b).next = to;
      }
    }
    finish_insertion();
    for (Candidate& c : candidates) {
      CHECK(!is_none(c.landing), "a region without a way out");
      block(c.landing).joins = c.id;
      flow.regions[c.id].join = c.landing;
      block(c.landing).innermost = flow.regions[c.id].parent;
    }
    for (BlockId b : flow.layout)
      for (RegionId r : block(b).opens) flow.regions[r].entry = b;
    return {};
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

bool expands_to_branches(const ptx::Module& module, const ptx::Instruction& i, const isa::Target& target) {
  (void)module;
  const bool volta = target.family == isa::Family::volta;
  switch (i.op) {
    case Opcode::atom:
    case Opcode::red: {
      if (i.mods.space == ptx::Space::generic) return true;
      if (i.mods.space != ptx::Space::shared) return false;
      bool wide = ptx::type_bytes(i.type) == 8;
      if (i.mods.atomic == ptx::AtomicOp::exch || i.mods.atomic == ptx::AtomicOp::cas) return false;
      return wide || ptx::is_floating(i.type);
    }
    case Opcode::div: return ptx::is_floating(i.type) && !i.mods.approx && !i.mods.full;
    case Opcode::sqrt:
    case Opcode::rcp: return !i.mods.approx;
    case Opcode::rsqrt: return i.type == ptx::Type::f64 && !i.mods.ftz;
    case Opcode::match:
    case Opcode::redux: return true;
    case Opcode::bar:
    case Opcode::barrier: return true;  // a guarded barrier
    case Opcode::call: return true;
    default: return (void)volta, false;
  }
}

Result<Flow> structure(const ptx::Module& module, const ptx::Function& function, const isa::Target& target,
                       bool branch_inlining, Arena& arena) {
  Builder b{module, function, target, arena, {}, {}};
  for (const ptx::Label& l : function.labels)
    if (l.at > function.instructions.size())
      return input_error("function {}: label {} is not defined", function.name, l.name);
  // An empty block in front: the entry never has predecessors.
  b.flow.blocks.add({});
  b.split();
  b.block(BlockId{0}).next = BlockId{1};
  b.order();
  b.merge();
  if (branch_inlining) b.inline_branches();
  b.exit_early();
  b.analyse();
  b.diverge();
  RETURN_IF_ERROR(b.regions());
  return std::move(b.flow);
}

}  // namespace rndn::assembler
