// Makes every piece of the graph in which lanes run apart a region: a set of blocks that all lead to one join, with a landing block of its own in
// front of the join (structurize.cpp).
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
// They are found from the inside out, joins far from the root first, and for one join what is near to it first. A set that has been found is one node
// from then on, whose only way on is to its join (as in the program structure tree of Johnson, Pearson, Pingali, "The Program Structure Tree",
// 1994, but with several entries): the joins of both sets post-dominate what they share, so who comes into the inner one comes to its join, before the
// outer's. A block is so looked at once, a set once in the one around it, and which set holds what is a tree.
//
// Cost: O(blocks + edges), and sorting. Left out: ways to other levels from several pieces of one join are followed for each join; where lanes may leave for a
// level with operations of the warp each divergent branch is followed; so are, on Pascal, those to barriers.
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

#include "assembler/flow/flow_graph.h"

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
  // A set of blocks that all lead to a join, and are all that is reached from some of them before it. Candidates nest or are apart.
  struct Candidate {
    uint32_t join;
    uint32_t parent = UINT32_MAX;  // the smallest candidate that holds all blocks
    uint32_t met_at = 0;           // number of the search that met it last
    bool of_loop = false;
    bool dropped = false;            // no region
    bool elsewhere = false;          // it or what is behind ways out of its level waits for lanes that may be elsewhere
    bool barrier = false;            // it has a barrier of the block
    bool spins = false;              // something in it may spin, as may_spin says
    uint32_t spinning = UINT32_MAX;  // the innermost loop around something that may spin for joins outside of that loop
    uint32_t first_way = UINT32_MAX, last_way = UINT32_MAX;  // of `ways`
    uint32_t number = 0,
             within = 1;  // its place in a walk over the tree of candidates, and how many it holds with itself
    BlockId landing = none<BlockId>();
    RegionId id = none<RegionId>();
  };
  ArenaList<Candidate> candidates{arena, 8};  // inner before outer
  std::span<uint32_t> innermost;              // by block: the innermost candidate that holds it
  ArenaList<uint32_t> around{arena, 8};       // by candidate: itself, or one that holds it
  std::span<uint32_t>
      opened_by;  // by block with a divergent branch: candidate of what is behind it, or `nothing`; UINT32_MAX: none
  static constexpr uint32_t nothing = UINT32_MAX - 1;
  Flags for_lanes;  // by block: it waits for lanes that may be elsewhere
  Flags ends;       // .. its lanes may end before they come to a barrier; empty until somebody asks
  Flags off_waits,
      off_spins;  // .. it leads to a block that waits for lanes elsewhere; to one that may spin; empty until somebody asks
  bool may_wait = false;      // lanes wait for others, so that regions may have to be dropped
  bool joins_rounds = false;  // a branch that reaches itself before its join makes a region all the same

  uint32_t innermost_holding(BlockId b) const { return index(b) < innermost.size() ? innermost[index(b)] : UINT32_MAX; }
  bool holds(uint32_t k, BlockId b) const {
    const uint32_t c = innermost_holding(b);
    return c != UINT32_MAX && candidates[c].number - candidates[k].number < candidates[k].within;
  }

  // What a search finds: blocks that no candidate holds, in `found`; outermost candidates; ways to other levels.
  struct Way {
    uint32_t to, next;
  };
  ArenaList<Way> ways{arena, 8};
  ArenaList<uint32_t> inside{arena, 8};
  uint32_t first_way = UINT32_MAX, last_way = UINT32_MAX;
  uint32_t outermost(uint32_t c) {
    while (around[c] != c) c = around[c] = around[around[c]];
    return c;
  }
  bool met(uint32_t b) {
    return innermost[b] == UINT32_MAX ? reached(b) : candidates[outermost(innermost[b])].met_at == searches;
  }
  // From the successors of the block, or from itself, up to the join. Whoever comes into a candidate of a join further inside comes to that join.
  void search(BlockId from, uint32_t j, bool include) {
    start_search();
    inside.clear(), first_way = last_way = UINT32_MAX;
    const auto visit = [&](BlockId to) {
      for (uint32_t s = index(to); s != j;) {
        if (level[s] != level[j]) {
          first_way = ways.push({s, first_way});
          if (last_way == UINT32_MAX) last_way = first_way;
          return;
        }
        if (innermost[s] == UINT32_MAX) {
          if (!reached(s)) reached_at[s] = searches, found.push(s);
          return;
        }
        const uint32_t c = outermost(innermost[s]);
        if (candidates[c].met_at == searches) return;
        candidates[c].met_at = searches, inside.push(c);
        s = candidates[c].join;
      }
    };
    include ? visit(from) : successors(from, visit);
    for (size_t at = 0; at < found.size(); ++at) successors(BlockId{found[at]}, visit);
    flow.searched += found.size() + inside.size();
  }

  bool waits_elsewhere(const Candidate& c) {
    if (!c.barrier || c.elsewhere) return c.elsewhere;
    if (ends.empty()) ends = ending();
    return ends[c.join];
  }
  // Nothing in it waits before its join.
  bool is_clean(const Candidate& c) { return !waits_elsewhere(c) && !c.spins; }
  void note_spinning(Candidate& c, uint32_t l) const {
    if (l == UINT32_MAX || c.spins) return;
    c.spins = !in_loop(l, c.join);
    if (c.spinning == UINT32_MAX || loops[c.spinning].depth < loops[l].depth) c.spinning = l;
  }
  // What the last search has found waits for.
  void note_waits(Candidate& c) {
    for (uint32_t b : found.all()) {
      c.elsewhere |= for_lanes[b] || waits(b).unaligned, c.barrier |= waits(b).barrier;
      if (may_spin(b)) note_spinning(c, inner_loop[b]);
    }
    for (uint32_t k : inside.all()) {
      const Candidate& i = candidates[k];
      c.elsewhere |= i.elsewhere, c.barrier |= i.barrier, c.spins |= i.spins;
      note_spinning(c, i.spinning);
    }
    for (uint32_t w = first_way; w != UINT32_MAX; w = ways[w].next) {
      find_off_waits();
      if (off_spins.empty()) off_spins = leading_to([&](uint32_t b) { return may_spin(b); });
      c.elsewhere |= off_waits[ways[w].to], c.spins |= off_spins[ways[w].to];
    }
  }
  void find_off_waits() {
    if (off_waits.empty()) off_waits = leading_to([&](uint32_t b) { return for_lanes[b] || waits(b).unaligned; });
  }

  // Makes the last search a candidate: its number, or `nothing`. One that is refused is no region; but nobody comes into it halfway, so that it need
  // not be searched again.
  uint32_t add_candidate(uint32_t join, bool of_loop, bool refused) {
    if (found.empty() && inside.empty()) return nothing;
    Candidate c{.join = join, .of_loop = of_loop, .dropped = refused};
    if (may_wait) note_waits(c);
    // Regions of branches with one join that overlap are one; but those behind which nothing waits before the join remain when the others are dropped.
    const auto is_part = [&](const Candidate& i) {
      return !refused && !i.dropped && i.join == join &&
             (!may_wait || (!of_loop && !i.of_loop && !(is_clean(i) && !is_clean(c))));
    };
    uint32_t k = static_cast<uint32_t>(candidates.size());
    if (inside.size() == 1 && !candidates[inside[0]].dropped && !refused && candidates[inside[0]].join == join &&
        (found.empty() || is_part(candidates[inside[0]]))) {
      k = inside[0];
      Candidate& i = candidates[k];
      i.elsewhere = c.elsewhere, i.barrier = c.barrier, i.spins = c.spins, i.spinning = c.spinning;
    } else {
      candidates.push(c), around.push(k);
      for (uint32_t i : inside.all()) {
        candidates[i].parent = around[i] = k;
        if (is_part(candidates[i])) candidates[i].dropped = true;
        take_ways(k, candidates[i].first_way, candidates[i].last_way);
      }
    }
    for (uint32_t b : found.all()) innermost[b] = k;
    take_ways(k, first_way, last_way);
    return k;
  }
  void take_ways(uint32_t k, uint32_t first, uint32_t last) {
    if (first == UINT32_MAX) return;
    Candidate& c = candidates[k];
    ways[last].next = c.first_way;
    c.first_way = first;
    if (c.last_way == UINT32_MAX) c.last_way = last;
  }

  // A piece of what is behind branches of one join.
  struct Piece {
    uint32_t candidate, first_way;  // candidate: or `nothing`
  };
  ArenaList<Piece> pieces{arena, 8};  // of one join
  // Those of which lanes come to the same blocks of other levels are one.
  void join_by_ends(uint32_t join) {
    size_t kept = 0;
    for (const Piece& p : pieces.all())
      if (const Candidate* c = p.candidate == nothing ? nullptr : &candidates[p.candidate];
          c ? c->parent == UINT32_MAX && !c->dropped && c->first_way != UINT32_MAX : p.first_way != UINT32_MAX)
        pieces[kept++] = c ? Piece{p.candidate, c->first_way} : p;
    pieces.resize_down(kept);
    if (kept < 2) return;
    const std::span<uint32_t> of = arena.make_raw<uint32_t>(kept);  // by piece: itself, or one that is the same
    std::iota(of.begin(), of.end(), 0u);
    const auto piece = [&](uint32_t k) {
      while (of[k] != k) k = of[k] = of[of[k]];
      return k;
    };
    if (met_by.empty()) met_by = numbers(level.size(), 0);
    start_search();
    for (uint32_t k = 0; k < kept; ++k) {
      size_t at = found.size();
      const auto visit = [&](BlockId s) {
        if (index(s) == join) return;
        if (reached(index(s))) return void(of[piece(met_by[index(s)])] = piece(k));
        reached_at[index(s)] = searches, met_by[index(s)] = k, found.push(index(s));
      };
      for (uint32_t w = pieces[k].first_way; w != UINT32_MAX; w = ways[w].next) visit(BlockId{ways[w].to});
      for (; at < found.size(); ++at) successors(BlockId{found[at]}, visit);
    }
    found.clear(), first_way = last_way = UINT32_MAX;
    for (uint32_t k = 0; k < kept; ++k) {
      if (of[k] != k) continue;
      inside.clear();
      for (uint32_t p = 0; p < kept; ++p)
        if (const uint32_t c = pieces[p].candidate; piece(p) == k && c != nothing && candidates[c].parent == UINT32_MAX)
          inside.push(c);
      if (inside.size() > 1) add_candidate(join, false, false);
    }
  }
  std::span<uint32_t> met_by;  // by block that the last search met: piece from which

  // By candidate: itself, or the innermost around it that is not dropped; UINT32_MAX: none.
  std::span<uint32_t> kept_by() {
    const std::span<uint32_t> kept = arena.make_raw<uint32_t>(candidates.size());
    for (size_t k = candidates.size(); k-- > 0;) {  // outer first
      const Candidate& c = candidates[k];
      kept[k] = !c.dropped ? static_cast<uint32_t>(k) : c.parent == UINT32_MAX ? UINT32_MAX : kept[c.parent];
    }
    return kept;
  }
  // Candidates that bring nothing: those that join where the one around them does (a || b || c ..), and those deeper than there are B registers,
  // whose lanes meet at the join of one around them. All their blocks run apart anyway.
  void drop_needless() {
    const uint32_t most = deepest_region(flow.calls, target);
    const std::span<uint32_t> depth = arena.make_raw<uint32_t>(candidates.size()),
                              kept = arena.make_raw<uint32_t>(candidates.size());
    for (size_t k = candidates.size(); k-- > 0;) {  // outer first
      Candidate& c = candidates[k];
      const uint32_t parent = c.parent == UINT32_MAX ? UINT32_MAX : kept[c.parent];
      depth[k] = parent == UINT32_MAX ? 0 : depth[parent] + 1;
      if (parent != UINT32_MAX) c.dropped |= candidates[parent].join == c.join || depth[k] >= most;
      kept[k] = c.dropped ? parent : static_cast<uint32_t>(k);
    }
  }
  void leave_out_dropped() {
    const std::span<uint32_t> kept = kept_by(), place = arena.make_raw<uint32_t>(candidates.size());
    const auto place_of = [&](uint32_t k) {
      return k >= nothing ? k : kept[k] == UINT32_MAX ? UINT32_MAX : place[kept[k]];
    };
    uint32_t size = 0;
    for (uint32_t k = 0; k < candidates.size(); ++k) place[k] = candidates[k].dropped ? UINT32_MAX : size++;
    for (uint32_t& k : innermost) k = place_of(k);
    for (uint32_t& k : opened_by) k = place_of(k);
    for (uint32_t k = 0; k < candidates.size(); ++k)
      if (!candidates[k].dropped) {
        Candidate c = candidates[k];
        c.parent = c.parent == UINT32_MAX ? UINT32_MAX : place_of(c.parent);
        candidates[place[k]] = c;
      }
    candidates.resize_down(size);
  }
  // Leaves out what was dropped, and numbers the tree.
  void compact() {
    if (std::ranges::any_of(candidates.all(), &Candidate::dropped)) leave_out_dropped();
    const uint32_t size = static_cast<uint32_t>(candidates.size());
    for (const Candidate& c : candidates.all())
      if (c.parent != UINT32_MAX) candidates[c.parent].within += c.within;
    uint32_t next = 0;
    const std::span<uint32_t> next_in = arena.make_raw<uint32_t>(size);
    for (uint32_t k = size; k-- > 0;) {  // outer first
      Candidate& c = candidates[k];
      uint32_t& number = c.parent == UINT32_MAX ? next : next_in[c.parent];
      c.number = number, number += c.within, next_in[k] = c.number + 1;
    }
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
        if (!(traits_of(i) & (waits_for | ptx::ends))) continue;
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
  // Drops the candidates in which lanes may wait for some that are at the join, and from which on lanes may run apart: at an operation of the warp; at
  // a barrier of the block, when those at the join may end without coming to one; at one that lanes of a warp may come to apart.
  void drop_those_that_wait() {
    if (!may_wait) return;
    const Flags split = flags(candidates.size());   // by candidate: it or one around it has been dropped here
    for (size_t k = candidates.size(); k-- > 0;) {  // outer first
      Candidate& c = candidates[k];
      if (c.parent != UINT32_MAX) split[k] = split[c.parent];
      if (c.dropped || !waits_elsewhere(c)) continue;
      split[k] = c.dropped = true;
    }
    for (BlockId b : flow.layout)
      if (const uint32_t k = innermost[index(b)]; k != UINT32_MAX && split[k]) run_apart(b, true);
  }
  // Whether the block may spin, in a loop, on what other lanes write. For joins outside of the loop: those at the join may be the ones that are to write it.
  bool may_spin(uint32_t b) {
    if (inner_loop[b] == UINT32_MAX) return false;
    return std::ranges::any_of(block(BlockId{b}).items, [&](const FlowItem& item) {
      const ptx::Instruction& i = f.instructions[item.inst];
      using S = ptx::Space;
      return i.op == Opcode::atom || (i.op == Opcode::ld && i.mods.space != S::param && i.mods.space != S::constant &&
                                      i.mods.space != S::local && i.mods.cache != ptx::Cache::nc);
    });
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
    for (uint32_t& l : deepest) {
      const uint32_t regions = std::exchange(l, base = l >= most - std::min(base, most) ? 0 : base);
      base += regions;
    }
    for (const Candidate& c : candidates.all()) flow.regions[c.id].depth += deepest[level[c.join]];
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
        if (leaves_loop(l, b)) stop = loops[l].join;
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
    if (one_level) return false;
    bool any = false;
    for (BlockId b : flow.layout) successors(b, [&](BlockId s) { any |= !same_level(b, s); });
    return any;
  }

  // A branch reaches itself before its join only around a loop that holds it: by way of the loop's header, from which the join is not the only way.
  // Surely: its own edge leads there.
  bool goes_back(BlockId b) {
    const uint32_t j = join[index(b)];
    bool back = false;
    successors(b, [&](BlockId s) { back |= index(s) != j && dominates(index(s), index(b)); });
    return back && !dominates(j, index(b));
  }
  struct Seed {
    uint64_t
        order;  // joins from the last to the first on the way back from the root, and what leads to one from the first to the last
    uint32_t block;  // with a branch, or the header of a loop
    uint32_t loop;   // UINT32_MAX: a branch
    uint32_t join;
  };
  ArenaList<Seed> find_seeds(std::span<const BlockId> divergent) {
    ArenaList<Seed> seeds(arena, 16);
    const auto add = [&](uint32_t b, uint32_t l, uint32_t j) {
      // What is behind a root's branch leads back to the root.
      const uint32_t place = back_position[b] == 0 ? UINT32_MAX : back_position[b];
      seeds.push({uint64_t{~back_position[j]} << 32 | place, b, l, j});
    };
    for (BlockId b : divergent) {
      if (join[index(b)] == UINT32_MAX) continue;
      const uint32_t l = inner_loop[index(b)];
      if (l != UINT32_MAX && (leaves_loop(l, b) || (!joins_rounds && goes_back(b)))) continue;
      add(index(b), UINT32_MAX, join[index(b)]);
    }
    for (uint32_t l = 0; l < loops.size(); ++l) {
      const Loop& x = loops[l];
      if (!x.divergent || x.join == UINT32_MAX) continue;
      if (x.parent != UINT32_MAX && !in_loop(x.parent, x.join) && !joins_rounds)
        continue;  // is entered again before its join
      add(index(x.header), l, x.join);
    }
    std::ranges::sort(seeds.all(), {}, [](const Seed& x) { return std::pair(x.order, x.block); });
    return seeds;
  }
  void add_candidates(std::span<const BlockId> divergent) {
    ArenaList<Seed> seeds = find_seeds(divergent);
    const bool way_off = !seeds.empty() && has_way_off();
    for (size_t at = 0; at < seeds.size(); ++at) {
      const Seed& x = seeds[at];
      const uint32_t in = innermost[x.block] == UINT32_MAX ? UINT32_MAX : outermost(innermost[x.block]);
      if (in != UINT32_MAX && candidates[in].join == x.join) {  // all that is behind it is in one of the same join
        if (x.loop == UINT32_MAX && !candidates[in].dropped) opened_by[x.block] = in;
      } else if (x.loop == UINT32_MAX) {
        search(BlockId{x.block}, x.join, false);
        const bool refused = reached(x.block) && !joins_rounds;
        const uint32_t ways_there = first_way, c = add_candidate(x.join, false, refused);
        if (!refused) {
          opened_by[x.block] = c;
          if (way_off) pieces.push({c, ways_there});
        }
      } else {
        search(BlockId{x.block}, x.join, true);
        const bool entered_again = std::ranges::any_of(
            predecessors[x.block], [&](BlockId p) { return !in_loop(x.loop, index(p)) && met(index(p)); });
        add_candidate(x.join, true, entered_again && !joins_rounds);
      }
      if (!pieces.empty() && (at + 1 == seeds.size() || seeds[at + 1].join != x.join))
        join_by_ends(x.join), pieces.clear();
    }
  }
  // Blocks of other levels that lanes come to from the candidates and branches, with those from `from`.
  Flags behind_ways_off() {
    const Flags covered = flags(flow.blocks.size());
    ArenaList<uint32_t> work(arena, 16);
    const auto visit = [&](BlockId s) {
      if (!covered[index(s)]) covered[index(s)] = true, work.push(index(s));
    };
    const std::span<uint32_t> kept = kept_by();
    for (BlockId b : flow.layout)
      if (const uint32_t k = innermost[index(b)];
          opened_by[index(b)] != UINT32_MAX || (k != UINT32_MAX && kept[k] != UINT32_MAX))
        successors(b, [&](BlockId s) {
          if (!same_level(b, s)) visit(s);
        });
    for (size_t at = 0; at < work.size(); ++at) successors(BlockId{work[at]}, visit);
    return covered;
  }
  // The innermost region of each block: the deepest, of those that lanes may have left for another level, too.
  void find_innermost() {
    for (BlockId b : flow.layout)
      if (const uint32_t k = innermost[index(b)]; k != UINT32_MAX) block(b).innermost = candidates[k].id;
    if (one_level) return;
    struct Source {
      uint32_t region, to;
    };
    ArenaList<Source> sources(arena, 8);
    for (BlockId b : flow.layout) {
      const uint32_t o = opened_by[index(b)], deepest = o < nothing ? o : innermost[index(b)];
      if (deepest == UINT32_MAX) continue;
      successors(b, [&](BlockId s) {
        if (!same_level(b, s)) sources.push({deepest, index(s)});
      });
    }
    if (sources.empty()) return;
    const auto depth = [&](const Source& x) { return flow.regions[candidates[x.region].id].depth; };
    std::ranges::stable_sort(sources.all(), std::ranges::greater(), depth);
    start_search();
    for (const Source& x : sources.all()) {
      size_t at = found.size();
      const auto visit = [&](BlockId s) {
        if (reached(index(s))) return;
        reached_at[index(s)] = searches, found.push(index(s));
        RegionId& in = block(s).innermost;
        if (is_none(in) || flow.regions[in].depth < depth(x)) in = candidates[x.region].id;
      };
      visit(BlockId{x.to});
      for (; at < found.size(); ++at) successors(BlockId{found[at]}, visit);
    }
  }
  // Lanes that have left for good may wait for the others somewhere else.
  void split_by_ways_off(std::span<const BlockId> divergent) {
    find_off_waits();
    bool any = false;
    for (BlockId b : flow.layout) successors(b, [&](BlockId s) { any |= !same_level(b, s) && off_waits[index(s)]; });
    if (!any) return;
    for (BlockId b : divergent) {
      const std::span<const uint32_t> set = reach(b, join[index(b)], false);
      if (std::ranges::any_of(
              set, [&](uint32_t s) { return level[s] != level[index(b)] && (for_lanes[s] || waits(s).unaligned); }))
        run_apart(b, false);
    }
  }

  Result<void> regions() {
    const size_t n0 = flow.blocks.size();
    if (irreducible && target.family == isa::Family::pascal)
      return input_error("function {}: unsupported irreducible control flow (a cycle with two entries) on {}", f.name,
                         target.name);
    RETURN_IF_ERROR(check_barriers());
    ArenaList<BlockId> divergent(arena, 16);
    for (BlockId b : flow.layout) {
      block(b).convergent = !apart[index(b)];
      if (diverges(b)) divergent.push(b);
    }
    if (divergent.empty()) return {};
    for_lanes = any_operation && target.family == isa::Family::volta ? waiting_for_lanes() : flags(n0);
    const bool volta = target.family == isa::Family::volta,
               any_unaligned =
                   any_barrier && std::ranges::any_of(flow.layout, [&](BlockId b) { return block(b).waits.unaligned; });
    may_wait = volta && (any_operation || any_barrier);
    joins_rounds = !volta && (any_barrier || any_operation);
    innermost = numbers(n0, UINT32_MAX), opened_by = numbers(n0, UINT32_MAX);
    if (!irreducible) add_candidates(divergent.all());
    // A divergent branch that no region covers leaves everything after it divergent.
    Flags covered;
    const std::span<const uint32_t> kept = kept_by();
    for (BlockId b : divergent.all()) {
      if (opened_by[index(b)] != UINT32_MAX) continue;
      if (const uint32_t k = innermost[index(b)]; k != UINT32_MAX && kept[k] != UINT32_MAX) continue;
      if (covered.empty()) covered = behind_ways_off();
      if (!covered[index(b)]) run_apart(b, false);
    }
    if (volta && (any_operation || any_unaligned) && has_way_off()) split_by_ways_off(divergent.all());
    if (candidates.empty()) return {};
    drop_those_that_wait();
    drop_needless();
    compact();
    if (candidates.empty()) return {};
    number();
    find_innermost();
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
