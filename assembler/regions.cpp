// Makes every piece of the graph in which lanes run apart a region: a set of blocks that all lead to one join, with a landing block of its own in
// front of the join (structure.cpp).
//
// Output invariants: on every path a region is opened once and joined once, last opened first (Pascal keeps them on a stack, Volta and later in
// B registers by depth). Hence every edge into a region opens it, at the end of the block that it comes from or, where that block's other
// branch goes elsewhere, in an entrance block on the edge; every edge out leads through the landing; regions nest or are apart; regions with the
// same blocks and the same join are one. Where several regions join at the same block, their landings follow each other, inner to outer, and
// a path takes those of the regions that it is in. Paths to another level, which never come back, leave regions as they are: exited lanes take part
// in nothing. check_regions proves all this on the final code, but where lanes may have come by leaving others that go on to a wait.
//
// Algorithm. The region of a divergent branch is what can be reached before its join. When the join lies outside the innermost loop, lanes leave the
// loop at different times: then the loop as a whole is the region, up to the first post-dominator outside. Such regions can share blocks without
// nesting (a goto into an arm, a || b): then the one that joins later takes in the other's blocks, and two with the same join become one. Nothing
// else is needed for that: a region may be entered by any number of edges.
//
// Cost: O(sum of the sizes of regions and loops * their depth). Branches that join at one place, however many, are looked at together.
//
// Lanes must not wait at a join for lanes that wait for them, on Volta and later: a region that holds an operation of the whole warp (shfl.sync and
// its like with any mask but that of activemask) is none, since lanes that left it may be meant to meet the others at another such operation
// (a loop of shuffles that lanes leave at different times, and a shuffle behind it); nor one with a barrier of the
// block whose join may lead to the end without one. What follows runs divergent, but for branches that join there with nothing that waits before it: in
// a loop of such operations, an `if` at the end of a round. On Pascal lanes at a join count as come to a barrier.
//
// Left out: lanes that spin, in a loop, on what lanes write that wait for them at a join: only branches to a loop's head behind which something may spin get no
// region of their own. Irreducible graphs (two entries into a cycle): Volta and later run them divergent, without regions; Pascal refuses them.
// A branch that reaches itself before its join (several back edges to one header) gets no region either, but on Pascal where lanes wait for others.
#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "assembler/flow_graph.h"

namespace rndn::assembler {
namespace {

using ptx::Opcode;

// How many regions may be open at once: Volta and later have B registers, of which the driver's functions keep some and the expansions of single
// instructions (select_*.cpp) take up to two; Pascal has a stack.
uint32_t deepest_region(bool calls, const isa::Target& target) {
  if (target.family != isa::Family::volta) return UINT32_MAX;
  return calls ? barrier_registers - first_called_barrier - 2 : barrier_registers - 2;
}

struct Builder : Divergence {
  using Blocks = ArenaList<uint32_t>;
  struct Candidate {
    uint32_t join;
    Blocks blocks;                 // all lead to the join; not empty
    Blocks ends;                   // reachable from the entries too, but of another level: in no region
    uint32_t parent = UINT32_MAX;  // the smallest candidate that holds all blocks
    BlockId landing = none<BlockId>();
    RegionId id = none<RegionId>();
  };
  struct Branch {
    uint32_t join, block;
  };
  ArenaList<Candidate> candidates{arena, 8};  // inner before outer
  std::span<uint32_t> innermost;              // by block: the innermost candidate that holds it; from nest() on
  Flags for_lanes;                            // by block: it waits for lanes that may be elsewhere
  Flags ends;           // .. its lanes may end before they come to a barrier; empty until somebody asks
  Flags leads_to_wait;  // .. while branches of one join are looked at

  uint32_t innermost_holding(BlockId b) const { return index(b) < innermost.size() ? innermost[index(b)] : UINT32_MAX; }
  bool holds(uint32_t k, BlockId b) const {
    uint32_t c = innermost_holding(b);
    while (c < k) c = candidates[c].parent;
    return c == k;
  }
  void add_candidate(uint32_t join, std::span<const uint32_t> set) {
    Candidate c{.join = join, .blocks = Blocks(arena, set.size()), .ends = Blocks(arena, 0)};
    for (uint32_t b : set) (level[b] == level[join] ? c.blocks : c.ends).push(b);
    if (!c.blocks.empty()) candidates.push(c);
  }
  static void add_end(Candidate& c, uint32_t b) {
    if (const auto ends = c.ends.all(); std::ranges::find(ends, b) == ends.end()) c.ends.push(b);
  }
  template <class F>
  void erase_candidates(F&& needless) {
    const std::span<Candidate> all = candidates.all();
    candidates.resize_down(static_cast<size_t>(std::remove_if(all.begin(), all.end(), needless) - all.begin()));
  }
  // Whether any two candidates nest or are apart, and those with the same join have different blocks: each, the larger ones first, must lie in what
  // only the same ones of them hold. O(sum of their sizes).
  bool nested() const {
    if (candidates.size() < 2) return true;
    const std::span<uint32_t> larger_first = arena.make_raw<uint32_t>(candidates.size()),
                              around = arena.make_raw<uint32_t>(candidates.size()),
                              inner = arena.make_span<uint32_t>(flow.blocks.size(), UINT32_MAX);
    std::iota(larger_first.begin(), larger_first.end(), 0u);
    std::ranges::sort(larger_first, {}, [&](uint32_t k) { return std::pair(~candidates[k].blocks.size(), k); });
    for (uint32_t k : larger_first) {
      const Candidate& c = candidates[k];
      around[k] = inner[c.blocks[0]];
      for (uint32_t b : c.blocks.all())
        if (std::exchange(inner[b], k) != around[k]) return false;
      for (uint32_t o = around[k]; o != UINT32_MAX && candidates[o].blocks.size() == c.blocks.size(); o = around[o])
        if (candidates[o].join == c.join) return false;
    }
    return true;
  }
  // Until any two candidates nest or are apart: the one that joins later takes in the blocks of one that joins inside it; candidates with the
  // same join become one. Two candidates are looked at together only when they share a block.
  void nest() {
    if (!nested()) {
      make_nested();
      erase_candidates([](const Candidate& c) { return c.blocks.empty(); });
    }
    const auto size = [](const Candidate& c) { return c.blocks.size(); };
    if (!std::ranges::is_sorted(candidates.all(), {}, size)) std::ranges::stable_sort(candidates.all(), {}, size);
    find_parents();
  }
  void make_nested() {
    std::vector<std::vector<uint32_t>> holders(flow.blocks.size());  // by block: the candidates that hold it
    for (uint32_t k = 0; k < candidates.size(); ++k)
      for (uint32_t b : candidates[k].blocks.all()) holders[b].push_back(k);
    const auto holds = [&](uint32_t k, uint32_t b) { return std::ranges::find(holders[b], k) != holders[b].end(); };
    const auto take_in = [&](uint32_t outer, uint32_t inner) {
      Candidate &x = candidates[outer], &y = candidates[inner];
      for (uint32_t b : y.blocks.all())
        if (!holds(outer, b)) x.blocks.push(b), holders[b].push_back(outer);
      for (uint32_t b : y.ends.all()) add_end(x, b);
    };
    std::vector<uint32_t> shared(candidates.size(), 0), others;
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t a = 0; a < candidates.size(); ++a) {
        bool again = true;
        while (again) {
          again = false;
          others.clear();
          for (uint32_t b : candidates[a].blocks.all())
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
              for (uint32_t b : y.blocks.all()) std::erase(holders[b], k);
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
  }
  void find_parents() {
    innermost = numbers(flow.blocks.size(), UINT32_MAX);
    for (uint32_t k = static_cast<uint32_t>(candidates.size()); k-- > 0;) {  // outer first
      candidates[k].parent = innermost[candidates[k].blocks[0]];
      for (uint32_t b : candidates[k].blocks.all()) innermost[b] = k;
    }
  }
  // Candidates that bring nothing: those that join where the one around them does (a || b || c ..), and those deeper than there are B registers,
  // whose lanes meet at the join of one around them. All their blocks run apart anyway.
  bool drop_needless() {
    const uint32_t most = deepest_region(flow.calls, target);
    const std::span<uint32_t> depth = numbers(candidates.size(), 0),
                              kept_by = arena.make_raw<uint32_t>(
                                  candidates.size());  // itself, or the innermost around it that stays
    const Flags needless = flags(candidates.size());
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
      for (uint32_t b : candidates[k].ends.all()) add_end(candidates[kept_by[k]], b);
    }
    if (any) {
      size_t kept = 0;
      for (size_t k = 0; k < candidates.size(); ++k)
        if (!needless[k]) candidates[kept++] = candidates[k];
      candidates.resize_down(kept);
    }
    return any;
  }
  // The member mask of an operation that waits for lanes; null: it is none.
  const ptx::Operand* member_mask(const ptx::Instruction& i) const {
    return names_members(i) ? &f.operand(i, i.operand_count - 1u) : nullptr;
  }
  // By block: whether it waits for lanes that may be elsewhere. A mask in a register names none when nothing but activemask is ever written to it.
  Flags waiting_for_lanes() {
    const Flags waits = flags(flow.blocks.size());
    std::vector<ptx::RegisterId> masks;
    for (BlockId b : flow.layout) {
      if (!block(b).waits.warp) continue;
      for (const FlowItem& item : block(b).items)
        if (const ptx::Operand* mask = member_mask(f.instructions[item.inst])) {
          if (mask->kind == ptx::Operand::immediate) waits[index(b)] = true;
          if (mask->kind == ptx::Operand::reg) masks.push_back(ptx::RegisterId{mask->id});
        }
    }
    if (masks.empty()) return waits;
    // Of registers that are masks: whether anything but the lanes that are here is written to it.
    const Flags wanted = flags(f.registers.size()), elsewhere = flags(f.registers.size());
    for (ptx::RegisterId r : masks) wanted[index(r)] = true;
    for (const ptx::Instruction& i : f.instructions)
      for (uint32_t k = 0; k < i.destination_count; ++k) {
        const ptx::Operand& d = f.operand(i, k);
        if (d.kind == ptx::Operand::reg && wanted[d.id]) elsewhere[d.id] |= i.op != Opcode::activemask;
        if (d.kind == ptx::Operand::vector)
          for (uint32_t e = 0; e < d.count; ++e)
            if (const ptx::Operand& o = f.vector_elements[d.id + e]; o.kind == ptx::Operand::reg)
              elsewhere[o.id] = true;
      }
    for (BlockId b : flow.layout) {
      if (!block(b).waits.warp) continue;
      for (const FlowItem& item : block(b).items)
        if (const ptx::Operand* mask = member_mask(f.instructions[item.inst]); mask && mask->kind == ptx::Operand::reg)
          waits[index(b)] |= elsewhere[mask->id];
    }
    return waits;
  }
  // Lanes run apart behind the block for good, in the block too if it is `included`.
  void run_apart(BlockId from, bool included) {
    std::vector<BlockId> work;
    const auto visit = [&](BlockId b) {
      if (block(b).split) return;  // so is all behind it
      block(b).convergent = false, block(b).split = true, work.push_back(b);
    };
    included ? visit(from) : successors(from, visit);
    while (!work.empty()) {
      const BlockId b = work.back();
      work.pop_back();
      successors(b, visit);
    }
  }
  // By block: lanes that come to its beginning may end before they come to a barrier of the block. Ends under a guard are no edges of the graph.
  Flags ending() {
    const Flags may_end = flags(flow.blocks.size()), stops = flags(flow.blocks.size());
    ArenaList<uint32_t> work(arena, flow.layout.size());
    for (BlockId b : flow.layout) {
      bool first = true;  // no barrier yet that all lanes come to
      for (const FlowItem& item : block(b).items) {
        const ptx::Instruction& i = f.instructions[item.inst];
        if (!(traits_of(i) & (waits_for | Trait::ends))) continue;
        if (is_block_barrier(i) && is_none(item.guard)) first = false;
        if (first && (i.op == Opcode::ret || i.op == Opcode::exit)) may_end[index(b)] = true;
      }
      bool leads_on = false;
      successors(b, [&](BlockId) { leads_on = true; });
      stops[index(b)] = !first;
      may_end[index(b)] |= first && !leads_on;
      if (may_end[index(b)]) work.push(index(b));
    }
    for (size_t at = 0; at < work.size(); ++at)
      for (BlockId p : predecessors[work[at]])
        if (!may_end[index(p)] && !stops[index(p)]) may_end[index(p)] = true, work.push(index(p));
    return may_end;
  }
  // Whether lanes may wait in the block for some that are at the join: at an operation of the warp; at a barrier of the block, when those at the join may
  // end without coming to one; at one that lanes of a warp may come to apart.
  bool waits_elsewhere(uint32_t b, uint32_t j) {
    if (for_lanes[b] || waits(b).unaligned) return true;
    if (!waits(b).barrier || level[b] != level[j]) return false;
    if (ends.empty()) ends = ending();
    return ends[j];
  }
  // Drops the candidates with such blocks, from which on lanes may run apart.
  void drop_those_that_wait() {
    if (target.family != isa::Family::volta || candidates.empty()) return;
    const auto drop = [&](const Candidate& c) {
      const auto waits_there = [&](uint32_t b) { return waits_elsewhere(b, c.join); };
      return std::ranges::any_of(c.ends.all(), waits_there) || std::ranges::any_of(c.blocks.all(), waits_there);
    };
    bool any = false;
    for (const Candidate& c : candidates.all()) {
      if (!drop(c)) continue;
      any = true;
      for (uint32_t b : c.blocks.all()) run_apart(BlockId{b}, true);
    }
    if (!any) return;
    erase_candidates(drop);
    find_parents();
  }
  // Whether the block may spin, in a loop that does not hold the join, on what other lanes write. Those at the join may be the ones that are to write it.
  bool may_spin(uint32_t b, uint32_t j) {
    const uint32_t l = inner_loop[b];
    if (l == UINT32_MAX || in_loop(l, j)) return false;
    return std::ranges::any_of(block(BlockId{b}).items, [&](const FlowItem& item) {
      const ptx::Instruction& i = f.instructions[item.inst];
      using S = ptx::Space;
      return i.op == Opcode::atom || (i.op == Opcode::ld && i.mods.space != S::param && i.mods.space != S::constant &&
                                      i.mods.space != S::local && i.mods.cache != ptx::Cache::nc);
    });
  }
  // Of the branches whose pieces for_each_piece has just found (`found`, `reached`): those behind which nothing waits before their join, if something does
  // in the pieces. They take the first places of the span.
  std::span<Branch> that_need_not_wait(std::span<Branch> branches) {
    if (target.family != isa::Family::volta || branches.empty()) return {};
    const uint32_t j = branches[0].join;
    std::vector<uint32_t> work;
    const auto mark = [&](uint32_t b) {
      if (!leads_to_wait[b]) leads_to_wait[b] = true, work.push_back(b);
    };
    const auto waits_there = [&](uint32_t b) { return waits_elsewhere(b, j); };
    if (std::ranges::none_of(found.all(), waits_there)) return {};
    if (leads_to_wait.empty()) leads_to_wait = flags(flow.blocks.size());
    for (uint32_t b : found.all())
      if (waits_there(b) || may_spin(b, j)) mark(b);
    while (!work.empty()) {
      const uint32_t b = work.back();
      work.pop_back();
      for (BlockId p : predecessors[b])
        if (reached(index(p))) mark(index(p));
    }
    size_t kept = 0;
    for (const Branch& x : branches) {
      bool waits_behind = false;
      successors(BlockId{x.block}, [&](BlockId s) { waits_behind |= index(s) != j && leads_to_wait[index(s)]; });
      if (!waits_behind) branches[kept++] = x;
    }
    for (uint32_t b : found.all()) leads_to_wait[b] = false;
    return branches.first(kept);
  }
  ArenaList<uint32_t> entered{
      arena, 8};  // by a block: candidates that hold a successor, but not the block, outer before inner
  // The innermost candidate that is open behind the end of b, with those that b opens: lanes enter them from b, and whichever way they go from
  // b, they enter or are at the join. None that b's branch enters while it leaves another.
  uint32_t open_behind(BlockId b, ArenaList<uint32_t>& opens) {
    const uint32_t inside = innermost_holding(b);
    uint32_t open = inside;
    entered.clear();
    successors(b, [&](BlockId s) {
      if (!same_level(b, s)) return;
      for (uint32_t k = innermost_holding(s); k != inside && k != UINT32_MAX && !holds(k, b); k = candidates[k].parent)
        entered.push(k);
    });
    if (entered.empty()) return open;
    std::ranges::sort(entered.all(), std::greater<>());
    for (uint32_t k : entered.all()) {  // one again is not inside of itself
      if (candidates[k].parent != open) continue;
      bool all = true;
      successors(b, [&](BlockId s) {
        if (same_level(b, s) && !holds(k, s) && index(s) != candidates[k].join) all = false;
      });
      if (all) opens.push(k), open = k;
    }
    return open;
  }

  // Fresh blocks go in front of blocks of the layout, a list until the end.
  struct Neighbours {
    uint32_t after = UINT32_MAX, before = UINT32_MAX;  // UINT32_MAX: none
  };
  ArenaList<Neighbours> neighbours{arena, 0};  // by block
  void start_insertion() {
    neighbours = ArenaList<Neighbours>(arena, flow.blocks.size() + 4 * candidates.size());
    while (neighbours.size() < flow.blocks.size()) neighbours.push({});
    for (size_t k = 1; k < flow.layout.size(); ++k) {
      neighbours[index(flow.layout[k - 1])].after = index(flow.layout[k]);
      neighbours[index(flow.layout[k])].before = index(flow.layout[k - 1]);
    }
  }
  // The last block that was made.
  void insert_before(BlockId at, BlockId fresh) {
    const uint32_t a = index(at), x = index(fresh), p = neighbours[a].before;
    neighbours.push({.after = a, .before = p});
    neighbours[a].before = x;
    if (p != UINT32_MAX) neighbours[p].after = x;
  }
  void finish_insertion() {
    uint32_t first = index(flow.layout[0]);
    while (neighbours[first].before != UINT32_MAX) first = neighbours[first].before;
    const std::span<BlockId> layout = arena.make_raw<BlockId>(flow.blocks.size());
    size_t size = 0;
    for (; first != UINT32_MAX; first = neighbours[first].after) layout[size++] = BlockId{first};
    flow.layout = layout.first(size);
  }

  struct Entrance {
    uint32_t outermost;  // candidate that it opens first
    BlockId block;
    uint32_t before;  // the one of the same block before it, UINT32_MAX: none
  };
  ArenaList<Entrance> entrances{arena, 8};
  std::span<uint32_t> last_entrance;  // by block; empty: there is none yet
  // Where lanes with candidate `open` innermost go to reach s: out of the regions that s is not in, then into those that it is in.
  BlockId route(uint32_t open, BlockId s, uint32_t loop_depth) {
    if (level[index(s)] == UINT32_MAX) return s;
    if (open != UINT32_MAX && !holds(open, s)) {
      CHECK(candidates[open].join == index(s), "a region is left, but not to its join");
      if (!is_none(candidates[open].landing)) return candidates[open].landing;
      const BlockId next = route(candidates[open].parent, s, loop_depth);
      const BlockId l = flow.blocks.add(arena);
      candidates[open].landing = l;
      FlowBlock &x = block(l), &join = block(s);
      x.next = next, x.line = x.end_line = join.line, x.loop_depth = std::min(join.loop_depth, loop_depth);
      x.convergent = candidates[open].parent == UINT32_MAX && join.convergent;
      insert_before(next, l);
      return l;
    }
    const uint32_t inside = innermost_holding(s);
    if (inside == open) return s;
    uint32_t outermost = inside, count = 1;
    for (; candidates[outermost].parent != open; ++count) outermost = candidates[outermost].parent;
    if (last_entrance.empty()) last_entrance = numbers(level.size(), UINT32_MAX);
    for (uint32_t k = last_entrance[index(s)]; k != UINT32_MAX; k = entrances[k].before)
      if (entrances[k].outermost == outermost) return entrances[k].block;
    const BlockId e = flow.blocks.add(arena);
    FlowBlock &x = block(e), &to = block(s);
    x.next = s, x.line = x.end_line = to.line, x.loop_depth = std::min(to.loop_depth, loop_depth);
    x.convergent = open == UINT32_MAX && to.convergent;
    x.opens = arena.make_raw<RegionId>(count);
    for (uint32_t k = inside; count-- > 0; k = candidates[k].parent) x.opens[count] = candidates[k].id;
    if (open != UINT32_MAX) x.innermost = candidates[open].id;
    last_entrance[index(s)] = entrances.push({outermost, e, last_entrance[index(s)]});
    insert_before(s, e);
    return e;
  }

  // Regions of the candidates. Lanes that come from a level to another have left regions of the one open: those of the other lie deeper.
  void number() {
    flow.regions.raw().reserve(candidates.size());
    uint32_t levels = 0;
    for (const Candidate& c : candidates.all()) levels = std::max(levels, level[c.join] + 1);
    const std::span<uint32_t> deepest = numbers(levels, 0);  // by level
    for (size_t k = candidates.size(); k-- > 0;) {           // outer first
      Candidate& c = candidates[k];
      Region r;
      if (c.parent != UINT32_MAX) r.parent = candidates[c.parent].id, r.depth = flow.regions[r.parent].depth + 1;
      c.id = flow.regions.add(r);
      deepest[level[c.join]] = std::max(deepest[level[c.join]], r.depth + 1);
    }
    uint32_t base = 0;
    const uint32_t most = deepest_region(flow.calls, target);
    for (uint32_t l = 0; l < deepest.size(); base += deepest[l++]) {
      if (deepest[l] >= most - std::min(base, most)) base = 0;
      for (const Candidate& c : candidates.all())
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
      if (waits(work[at]).barrier) {
        found.push_back(work[at]);
        continue;
      }
      successors(BlockId{work[at]}, [&](BlockId s) {
        if (!met[index(s)]) met[index(s)] = true, work.push_back(index(s));
      });
    }
    return found;
  }
  // Pascal counts a warp at a barrier as soon as some of its lanes are there. Refuses barriers that lanes come to first by both ways behind a branch
  // that may split the warp, before they meet. (If by one way only, the branch splits no warp but into those that go on and those that end.)
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
                  f.name, i.line, block(b).end_line, target.name).at(i.line);
    }
    return {};
  }

  // Whether lanes may go from a level to another.
  bool has_way_off() {
    bool any = false;
    for (BlockId b : flow.layout) successors(b, [&](BlockId s) { any |= !same_level(b, s); });
    return any;
  }

  // What is reached from behind branches of one join, before it, in pieces that share no block: regions of this join that overlap are one. The
  // regions of the single branches would be as large as all of it, each, where many branches have one join.
  template <class F>
  void for_each_piece(std::span<const Branch> branches, F&& use) {
    std::vector<uint32_t> piece_of;  // by branch: its piece, or a branch whose piece is the same
    const auto piece = [&](uint32_t k) {
      while (piece_of[k] != k) k = piece_of[k] = piece_of[piece_of[k]];
      return k;
    };
    piece_met.resize(flow.blocks.size());
    start_search();
    for (const Branch& b : branches) {
      const uint32_t k = static_cast<uint32_t>(piece_of.size());
      piece_of.push_back(k);
      size_t at = found.size();
      const auto visit = [&](BlockId s) {
        if (index(s) == b.join) return;
        if (reached(index(s))) return void(piece_of[piece(piece_met[index(s)])] = piece(k));
        reached_at[index(s)] = searches, piece_met[index(s)] = k, found.push(index(s));
      };
      successors(BlockId{b.block}, visit);
      for (; at < found.size(); ++at) successors(BlockId{found[at]}, visit);
    }
    std::vector<std::vector<uint32_t>> sets(branches.size());
    for (uint32_t b : found.all()) sets[piece(piece_met[b])].push_back(b);
    for (const std::vector<uint32_t>& set : sets)
      if (!set.empty()) use(set);
  }
  std::vector<uint32_t> piece_met;  // by block that the last search met: branch from which

  // A branch reaches itself before its join only around a loop that holds it: by way of the loop's header, from which the join is not the only way.
  // Surely: its own edge leads there.
  bool goes_back(BlockId b) {
    const uint32_t j = join[index(b)];
    bool back = false;
    successors(b, [&](BlockId s) { back |= index(s) != j && dominates(index(s), index(b)); });
    return back && !dominates(j, index(b));
  }
  std::span<Branch> without_those_that_repeat(std::span<Branch> branches) {
    if (std::ranges::all_of(branches, [&](const Branch& b) { return inner_loop[b.block] == UINT32_MAX; }))
      return branches;
    for_each_piece(branches, [](auto) {});
    std::vector<uint8_t> repeats(branches.size(), false);
    for (size_t k = 0; k < branches.size(); ++k) {
      if (dominates(branches[k].join, branches[k].block)) continue;
      for (uint32_t l = inner_loop[branches[k].block]; l != UINT32_MAX; l = loops[l].parent)
        repeats[k] |= reached(index(loops[l].header));
    }
    size_t kept = 0;
    for (size_t k = 0; k < branches.size(); ++k) {
      if (repeats[k])
        reach(BlockId{branches[k].block}, branches[k].join, false), repeats[k] = reached(branches[k].block);
      if (!repeats[k]) branches[kept++] = branches[k];
    }
    return branches.first(kept);
  }

  Result<void> regions() {
    const size_t n0 = flow.blocks.size();
    if (irreducible && target.family == isa::Family::pascal)
      return input_error("function {}: unsupported irreducible control flow (a cycle with two entries) on {}", f.name,
                         target.name);
    RETURN_IF_ERROR(check_barriers());
    for_lanes = any_operation && target.family == isa::Family::volta ? waiting_for_lanes() : flags(n0);
    // Where a branch reaches itself before its join.
    const bool joins_rounds = target.family == isa::Family::pascal && (any_barrier || any_operation);
    const Flags covered = flags(n0), has = flags(n0);  // has: a region opens behind the block
    auto cover = [&](std::span<const uint32_t> set) {
      for (uint32_t b : set) covered[b] = true;
    };
    if (!irreducible) {
      ArenaList<Branch> found_branches(arena, 16);
      for (BlockId b : flow.layout) {
        if (!diverges(b) || join[index(b)] == UINT32_MAX) continue;
        const uint32_t l = inner_loop[index(b)];
        if (l != UINT32_MAX && (leaves_loop(l, b) || (!joins_rounds && goes_back(b)))) continue;
        found_branches.push({join[index(b)], index(b)});
      }
      const std::span<Branch> branches = found_branches.all();
      std::ranges::sort(branches, {}, [](const Branch& x) { return uint64_t{x.join} << 32 | x.block; });
      for (size_t at = 0; at < branches.size();) {
        size_t end = at;
        while (end < branches.size() && branches[end].join == branches[at].join) ++end;
        std::span<Branch> with_join = branches.subspan(at, end - at);
        const auto add = [&](std::span<const uint32_t> set) { cover(set), add_candidate(with_join[0].join, set); };
        at = end;
        if (with_join.size() == 1) {
          const std::span<const uint32_t> set = reach(BlockId{with_join[0].block}, with_join[0].join, false);
          if (reached(with_join[0].block) && !joins_rounds) continue;
          has[with_join[0].block] = true;
          add(set);
        } else {
          if (!joins_rounds) with_join = without_those_that_repeat(with_join);
          for (const Branch& b : with_join) has[b.block] = true;
          for_each_piece(with_join, add);
          if (const std::span<Branch> apart = that_need_not_wait(with_join); !apart.empty()) for_each_piece(apart, add);
        }
      }
      for (uint32_t l = 0; l < loops.size(); ++l) {
        const Loop& loop = loops[l];
        uint32_t j = loop.divergent ? loop_join(l) : UINT32_MAX;
        if (j == UINT32_MAX) continue;
        const std::span<const uint32_t> set = reach(loop.header, j, true);
        bool entered_again = false;
        for (BlockId p : predecessors[index(loop.header)])
          if (!in_loop(l, index(p)) && reached(index(p))) entered_again = true;
        if (entered_again && !joins_rounds) continue;
        cover(set);
        add_candidate(j, set);
      }
    }
    // Convergence: apart and covered by a region, or apart for good.
    for (BlockId b : flow.layout) block(b).convergent = !apart[index(b)];
    // A divergent branch that no region covers leaves everything after it divergent.
    for (BlockId b : flow.layout)
      if (diverges(b) && !covered[index(b)] && !has[index(b)]) run_apart(b, false);

    // Lanes that have left for good may wait for the others somewhere else.
    const bool any_unaligned = std::ranges::any_of(flow.layout, [&](BlockId b) { return block(b).waits.unaligned; });
    if (target.family == isa::Family::volta && (any_operation || any_unaligned) && has_way_off())
      for (BlockId b : flow.layout) {
        if (!diverges(b)) continue;
        const std::span<const uint32_t> set = reach(b, join[index(b)], false);
        if (std::ranges::any_of(
                set, [&](uint32_t s) { return level[s] != level[index(b)] && (for_lanes[s] || waits(s).unaligned); }))
          run_apart(b, false);
      }

    if (candidates.empty()) return {};
    nest();
    drop_those_that_wait();
    if (drop_needless()) find_parents();
    number();
    // The innermost region of a block: the deepest; an exit's lanes leave its register alone.
    for (const Candidate& c : candidates.all())
      for (const Blocks* set : {&c.blocks, &c.ends})
        for (uint32_t b : set->all()) {
          RegionId& in = block(BlockId{b}).innermost;
          if (is_none(in) || flow.regions[in].depth < flow.regions[c.id].depth) in = c.id;
        }
    start_insertion();
    ArenaList<uint32_t> opens(arena, 8);
    for (BlockId b : flow.layout) {
      if (level[index(b)] == UINT32_MAX) continue;
      opens.clear();
      const uint32_t open = open_behind(b, opens);
      block(b).opens = arena.make_raw<RegionId>(opens.size());
      std::ranges::transform(opens.all(), block(b).opens.begin(), [&](uint32_t k) { return candidates[k].id; });
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
    for (Candidate& c : candidates.all()) {
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

Result<Flow> make_regions(Divergence graph) {
  Builder b{std::move(graph)};
  RETURN_IF_ERROR(b.regions());
  return std::move(b.flow);
}

}  // namespace rndn::assembler
