// The order of blocks in the stream: what follows a block is what it goes on to, as often as one order can have it so.
//
// Compilers leave blocks in orders that are nobody's business but ptxas's: nvcc places the common way through a loop in front of its head, or behind its end.
// Each jump there and back is an instruction that issues, and one that warps wait behind.
//
// Input and output: the same blocks over physical registers, after scheduling. Nothing but the order changes, the first block stays the first, and the last exit,
// which all lanes come to, becomes the last; what must stand together (calls and what they return to, code that lanes run together, bodies of subroutines) stays together.
// Algorithm: a walk in topological order of the ways forward, loops in one piece. Behind a block comes a successor of it whose other predecessors all stand
// already: one in a loop before one out of it, one that goes on before one that ends, the one of the old order before the other. Where there is none, the
// block that has waited in the deepest loop, the one that came last before the others. The new order is taken if it has fewer jumps, counted as a loop's
// depth makes them frequent (compare Pettis and Hansen, "Profile guided code positioning", 1990, whose profile we lack).
// Cost: O(blocks * depth of loops + edges).
//
// Left out: ways that are rare (slow paths of divisions) stand where they are passed over.
#include <algorithm>

#include "assembler/backend/backend.h"
#include "assembler/flow/dominators.h"
#include "assembler/machine/inst_facts.h"
#include "assembler/machine/options.h"

namespace rndn::assembler {
namespace {

constexpr uint32_t deepest = 7;  // loops beyond count as this deep

struct Placer {
  Function& f;
  Arena& arena = *f.arena;
  size_t n = f.blocks.size();
  std::span<uint32_t> position =
      arena.make_span<uint32_t>(n, UINT32_MAX);  // in reverse postorder; UINT32_MAX: nothing leads there
  std::span<uint32_t> missing = arena.make_span<uint32_t>(n, 0);  // predecessors on ways forward that do not stand yet
  std::span<uint32_t> glued = arena.make_span<uint32_t>(n, UINT32_MAX);  // what must stand behind the block
  std::span<uint8_t> follows = arena.make_span<uint8_t>(n, 0);           // is glued to another
  std::span<uint8_t> placed = arena.make_span<uint8_t>(n, 0);
  std::span<uint32_t> behind = arena.make_span<uint32_t>(n, UINT32_MAX);  // in the old order
  std::array<std::vector<uint32_t>, deepest + 1> waiting;                 // ready, by depth
  std::vector<BlockId> order;

  Block& block(uint32_t b) { return f.blocks[BlockId{b}]; }
  uint32_t depth(uint32_t b) { return std::min(block(b).loop_depth, deepest); }
  bool ends(uint32_t b) { return is_none(block(b).taken) && is_none(block(b).next); }

  // Calls are found by the instruction in front of them, and return to the one behind.
  void glue() {
    using M = isa::Mnemonic;
    bool together = false;  // from WARPSYNC_COLLECTIVE to ENDCOLLECTIVE
    for (size_t k = 0; k + 1 < f.layout.size(); ++k) {
      const uint32_t b = index(f.layout[k]), next = index(f.layout[k + 1]);
      behind[b] = next;
      bool holds = false;
      for (InstId i : block(b).code) {
        const Inst& inst = f[i];
        holds |= inst.call != Call::none && inst.call != Call::back;
        if (!f.collective) continue;
        if (inst.sass.mnemonic == M::WARPSYNC_COLLECTIVE) together = true;
        if (inst.sass.mnemonic == M::ENDCOLLECTIVE) together = false;
      }
      if (holds || together) glued[b] = next, follows[next] = true;
    }
  }

  // Twice the jumps, weighted.
  uint64_t jumps(std::span<const BlockId> layout) {
    uint64_t sum = 0;
    for (size_t k = 0; k < layout.size(); ++k) {
      const Block& x = f.blocks[layout[k]];
      if (is_none(x.next)) continue;
      const BlockId next = k + 1 < layout.size() ? layout[k + 1] : none<BlockId>();
      const bool always = x.predicate == isa::PT || is_none(x.taken);
      const uint64_t times = uint64_t{1} << 3 * depth(index(layout[k]));
      if (always)
        sum += times * (next == x.next ? 0 : 2);
      else
        sum += times * (next == x.next || next == x.taken ? 1 : 3);
    }
    return sum;
  }

  bool may_follow(uint32_t b, uint32_t last) { return !placed[b] && !follows[b] && missing[b] == 0 && b != last; }

  void place(uint32_t b) {
    for (;; b = glued[b]) {
      placed[b] = true, order.push_back(BlockId{b});
      for_each_successor(block(b), [&](BlockId s) {
        if (position[index(s)] > position[b] && --missing[index(s)] == 0) waiting[depth(index(s))].push_back(index(s));
      });
      if (glued[b] == UINT32_MAX) return;
    }
  }

  uint32_t next_behind(uint32_t b, uint32_t last) {
    uint32_t best = UINT32_MAX;
    const auto better = [&](uint32_t x, uint32_t y) {
      if (depth(x) != depth(y)) return depth(x) > depth(y);
      if (ends(x) != ends(y)) return ends(y);
      return behind[b] == x;
    };
    for (uint32_t k = 0, s; (s = successor_of(block(b), k)) != UINT32_MAX; ++k)
      if (may_follow(s, last) && (best == UINT32_MAX || better(s, best))) best = s;
    for (size_t d = waiting.size(); best == UINT32_MAX && d-- > 0;)
      while (best == UINT32_MAX && !waiting[d].empty()) {
        const uint32_t x = waiting[d].back();
        waiting[d].pop_back();
        if (may_follow(x, last)) best = x;
      }
    return best;
  }

  void run() {
    const uint32_t first = index(f.layout[0]);
    const std::span<const uint32_t> ways =
        reverse_postorder(arena, n, first, [&](uint32_t b, uint32_t k) { return successor_of(block(b), k); });
    if (ways.size() < 3) return;
    for (uint32_t k = 0; k < ways.size(); ++k) position[ways[k]] = k;
    for (uint32_t b : ways)
      for_each_successor(block(b), [&](BlockId s) { missing[index(s)] += position[index(s)] > position[b]; });
    glue();
    uint32_t last = UINT32_MAX;  // of the exits
    for (BlockId b : f.layout)
      if (position[index(b)] != UINT32_MAX && ends(index(b))) last = index(b);
    if (last != UINT32_MAX && follows[last]) return;
    order.reserve(f.layout.size());
    for (uint32_t b = first; b != UINT32_MAX; b = next_behind(index(order.back()), last)) place(b);
    if (last != UINT32_MAX && !placed[last]) place(last);
    if (order.size() != ways.size()) return;
    for (BlockId b : f.layout)
      if (position[index(b)] == UINT32_MAX) order.push_back(b);
    if (jumps(order) < jumps(f.layout)) f.layout = std::move(order);
  }
};

}  // namespace

void place_blocks(Function& f) {
  ArenaScope scope(*f.arena);
  Placer{.f = f}.run();
}

}  // namespace rndn::assembler
