// Dominators of a graph of blocks: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm" (2001). One round over the edges that lead forward; others only
// where an edge leads back to a block that does not dominate the one it comes from. Cost: O(edges) in practice, loops in loops included.
//
// Blocks are numbers below n; answers live in the arena.
#pragma once
#include <algorithm>
#include <span>

#include "assembler/machine/ir.h"

namespace rndn::assembler {

// The k-th successor of a block of machine code or of the flow graph, `next` first; UINT32_MAX after the last.
template <class Block>
uint32_t successor_of(const Block& x, uint32_t k) {
  const uint32_t first = is_none(x.next), taken = x.taken == x.next ? UINT32_MAX : index(x.taken);
  return k + first == 0 ? index(x.next) : k + first == 1 ? taken : UINT32_MAX;
}

// Of the blocks that `root` leads to. successor(v, k): the k-th successor of v, UINT32_MAX after the last.
template <class Successor>
std::span<uint32_t> reverse_postorder(Arena& arena, size_t n, uint32_t root, Successor&& successor) {
  struct Visit {
    uint32_t block, next;  // successor to look at
  };
  const std::span<uint32_t> order = arena.make_raw<uint32_t>(n);
  const std::span<Visit> stack = arena.make_raw<Visit>(n);
  const std::span<bool> seen = arena.make_span<bool>(n, false);
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

// Which block dominates which, by their numbers in a walk over the tree of dominators: what a block dominates follows it.
struct DominatorTree {
  std::span<uint32_t> number, size;  // by block: its place in the walk, and how many it dominates
  DominatorTree() = default;
  DominatorTree(Arena& arena, size_t n, std::span<const uint32_t> order, std::span<const uint32_t> idom)
      : number(arena.make_span<uint32_t>(n, 0)), size(arena.make_span<uint32_t>(n, 1)) {
    for (size_t k = order.size(); k-- > 1;) size[idom[order[k]]] += size[order[k]];
    const std::span<uint32_t> next = arena.make_span<uint32_t>(n, 1);  // number of the next child
    for (uint32_t b : order.subspan(1)) {
      number[b] = next[idom[b]];
      next[idom[b]] += size[b], next[b] = number[b] + 1;
    }
  }
  bool dominates(uint32_t a, uint32_t b) const { return number[b] - number[a] < size[a]; }
};

// Immediate dominators over `order` (reverse postorder, root first), by block: that of the root is itself; of unreached blocks: UINT32_MAX.
// predecessors(b, use): use(p) for all that lead to b.
template <class Predecessors>
std::span<uint32_t> immediate_dominators(Arena& arena, size_t n, std::span<const uint32_t> order,
                                         Predecessors&& predecessors) {
  const std::span<uint32_t> position = arena.make_span<uint32_t>(n, UINT32_MAX),
                            idom = arena.make_span<uint32_t>(n, UINT32_MAX);
  for (uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  idom[order[0]] = order[0];
  bool first = true, any_back = false;
  for (bool changed = true; changed; first = false) {
    changed = false;
    for (size_t i = 1; i < order.size(); ++i) {
      uint32_t d = UINT32_MAX;
      predecessors(order[i], [&](uint32_t p) {
        if (position[p] == UINT32_MAX) return;
        if (first && position[p] >= i) return void(any_back = true);
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
    if (!first) continue;
    if (!any_back) break;
    // Edges back to what dominates the blocks that they come from take no dominator away.
    ArenaScope scratch(arena);
    const DominatorTree tree(arena, n, order, idom);
    const auto comes_back = [&](uint32_t b) {
      bool all = true;
      predecessors(b, [&](uint32_t p) {
        all &= position[p] == UINT32_MAX || position[p] < position[b] || tree.dominates(b, p);
      });
      return all;
    };
    if (std::ranges::all_of(order, comes_back)) break;
  }
  return idom;
}

// Of the blocks that `root` leads to; successor(v, k) as above. Others, bodies of subroutines, have no place in the tree: nothing is to be asked of them.
struct Dominators {
  std::span<uint32_t> order;          // reverse postorder
  std::span<uint32_t> begin, before;  // the predecessors of block b: before[begin[b]] .. before[begin[b + 1]]
  DominatorTree tree;

  template <class Successor>
  Dominators(Arena& arena, size_t n, uint32_t root, Successor&& successor) {
    order = reverse_postorder(arena, n, root, successor);
    begin = arena.make_span<uint32_t>(n + 2, 0);
    const auto each_edge = [&](auto&& use) {
      for (uint32_t b : order)
        for (uint32_t k = 0, s; (s = successor(b, k)) != UINT32_MAX; ++k) use(b, s);
    };
    each_edge([&](uint32_t, uint32_t to) { ++begin[to + 2]; });
    for (size_t k = 2; k < begin.size(); ++k) begin[k] += begin[k - 1];
    before = arena.make_raw<uint32_t>(begin[n + 1]);
    each_edge([&](uint32_t from, uint32_t to) { before[begin[to + 1]++] = from; });
    const auto idom = immediate_dominators(arena, n, order, [&](uint32_t b, auto&& use) {
      for (uint32_t e = begin[b + 1]; e-- > begin[b];) use(before[e]);  // of many the last lie next to each other
    });
    tree = DominatorTree(arena, n, order, idom);
  }
  // Of a machine function.
  explicit Dominators(const Function& f)
      : Dominators(*f.arena, f.blocks.size(), index(f.layout[0]),
                   [&](uint32_t b, uint32_t k) { return successor_of(f.blocks[BlockId{b}], k); }) {}
};

}  // namespace rndn::assembler
