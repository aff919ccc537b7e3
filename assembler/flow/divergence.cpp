// Where the lanes of a warp run apart, and where they meet again (structurize.cpp).
//
// What it finds: loops; levels, and in each the join of every branch; which values may differ between the lanes of a warp, and which blocks run
// with some of its lanes missing.
//
// Algorithm. Post-dominators (Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", 2001) over the blocks of a level, towards its root. The
// join of a branch is its immediate post-dominator. Threads that end early are no reason to meet late: levels keep their ways apart from those of
// the threads that go on to barriers of the block.
// Uniformity is an optimistic closure over registers (flow-insensitive): a value is divergent when it comes from a divergent source, or is
// written where lanes run apart. Lanes that leave a loop at different times (grid-stride loops, as a rule) make no difference to those that are still in it:
// they run each round together, so that what is written in the loop and read nowhere else is the same for them, if the loop is not run again: then they would
// bring with them what their last rounds have left. Asked for are the predicates of branches, and the addresses of atomics that one lane may do for others,
// so that the closure is over the instructions that these are made of, few as a rule: back to those that differ whatever they are given. They are asked in
// the order of the code, as long as anything changes. One lane's atomic for others takes what is the same for all, whatever round they are in.
//
// Cost: O(instructions) for each level (one, hardly ever more than two), times the rounds of the closure (2 or 3 in practice).
#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "assembler/flow/flow_graph.h"

namespace rndn::assembler {

using ptx::Opcode;

namespace {

bool divergent_source(ptx::SpecialRegister r) {
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
    case S::total_smem_size:
    case S::reserved_smem_offset_1: return false;
    default: return true;  // clocks too: the lanes of a split warp read them at different times
  }
}

}  // namespace

void Divergence::analyse() {
  const size_t n = flow.blocks.size();
  const std::span<uint32_t> rpo = reverse_postorder(arena, n, 0, [&](uint32_t b, uint32_t k) {
    const FlowBlock& x = block(BlockId{b});
    if (is_none(x.next)) ++k;
    return k == 0 ? index(x.next) : k == 1 ? index(x.taken) : UINT32_MAX;
  });
  const std::span<uint32_t> position = arena.make_raw<uint32_t>(n);
  for (uint32_t k = 0; k < rpo.size(); ++k) position[rpo[k]] = k;
  const auto is_entered_from_behind = [&](uint32_t b) {
    return std::ranges::any_of(predecessors[b], [&](BlockId p) { return position[index(p)] >= position[b]; });
  };
  if (std::ranges::any_of(rpo, is_entered_from_behind)) {
    idom = immediate_dominators(arena, n, rpo, [&](uint32_t b, auto&& use) {
      for (size_t k = predecessors[b].size(); k-- > 0;)
        use(index(predecessors[b][k]));  // of many the last lie next to each other
    });
    flow.dominators = DominatorTree(arena, n, rpo, idom);
    find_loops(rpo, position);
  } else {
    inner_loop = numbers(n, UINT32_MAX);
  }
  flow.loops = !loops.empty() || irreducible;
  find_levels();
  find_loop_joins();
}

// Natural loops; back edges to one header make one loop. Two loops nest or are apart: both headers dominate what they share. Found from the last header
// of the order to the first, so inner before outer; a loop that has been found is one block, its header (Tarjan, "Testing flow graph reducibility", 1974).
void Divergence::find_loops(std::span<const uint32_t> order, std::span<const uint32_t> position) {
  const size_t n = flow.blocks.size();
  const std::span<uint32_t> mark = numbers(n, UINT32_MAX), loop_of = numbers(n, UINT32_MAX),  // of a header
      around = numbers(n, UINT32_MAX),  // by block: header of the innermost loop that it is in, and no header of
      outer = arena.make_raw<uint32_t>(n);
  std::iota(outer.begin(), outer.end(), 0u);
  const auto outermost = [&](uint32_t b) {
    while (outer[b] != b) b = outer[b] = outer[outer[b]];
    return b;
  };
  ArenaList<Loop> found_loops(arena, 8);
  ArenaList<uint32_t> blocks(arena, 32);
  for (size_t k = order.size(); k-- > 0;) {
    const uint32_t h = order[k];
    blocks.clear();
    const auto add = [&](BlockId p) {
      const uint32_t b = outermost(index(p));
      if (mark[b] != h) mark[b] = h, blocks.push(b);
    };
    bool any = false;
    for (BlockId p : predecessors[h]) {
      if (position[index(p)] < position[h]) continue;
      if (!dominates(h, index(p)))
        irreducible = true;
      else
        mark[h] = h, any = true, add(p);
    }
    if (!any) continue;
    for (size_t at = 0; at < blocks.size(); ++at)
      for (BlockId p : predecessors[blocks[at]]) add(p);
    uint32_t size = 1;
    for (uint32_t b : blocks.all()) {
      around[b] = outer[b] = h;
      size += loop_of[b] == UINT32_MAX ? 1 : found_loops[loop_of[b]].size;
    }
    loop_of[h] = found_loops.push({.header = BlockId{h}, .size = size});
  }
  loops = found_loops.all();
  std::ranges::reverse(loops);
  if (!std::ranges::is_sorted(loops, {}, &Loop::size)) std::ranges::stable_sort(loops, {}, &Loop::size);
  for (uint32_t l = 0; l < loops.size(); ++l) loop_of[index(loops[l].header)] = l;
  for (uint32_t l = static_cast<uint32_t>(loops.size()); l-- > 0;) {  // outer first
    Loop& loop = loops[l];
    loop.outermost = l;
    if (const uint32_t h = around[index(loop.header)]; h != UINT32_MAX) {
      loop.parent = loop_of[h];
      loop.depth = loops[loop.parent].depth + 1, loop.outermost = loops[loop.parent].outermost;
    }
  }
  inner_loop = loop_of;
  for (uint32_t b : order) {
    uint32_t& l = inner_loop[b];
    if (around[b] != UINT32_MAX && l == UINT32_MAX) l = loop_of[around[b]];
    if (l != UINT32_MAX) block(BlockId{b}).loop_depth = loops[l].depth + 1;
  }
  for (const Loop& loop : loops)  // inner first
    if (loop.parent != UINT32_MAX) loops[loop.parent].within += loop.within;
  uint32_t next = 0;                                                           // number of the next outermost loop
  const std::span<uint32_t> next_in = arena.make_raw<uint32_t>(loops.size());  // by loop: that of the next loop in it
  for (uint32_t l = static_cast<uint32_t>(loops.size()); l-- > 0;) {
    Loop& loop = loops[l];
    uint32_t& number = loop.parent == UINT32_MAX ? next : next_in[loop.parent];
    loop.number = number;
    number += loop.within;
    next_in[l] = loop.number + 1;
  }
}

// Along the post-dominators of the header. What is around the header of a loop inside is so as far as that loop's join; nobody comes into a loop but by
// its header.
void Divergence::find_loop_joins() {
  for (uint32_t l = 0; l < loops.size(); ++l) {  // inner first
    uint32_t j = ipdom[index(loops[l].header)];
    while (j != UINT32_MAX && in_loop(l, j)) j = inner_loop[j] == l ? ipdom[j] : loops[inner_loop[j]].join;
    loops[l].join = j;
  }
}

// The block that the lanes of from's level lead to: the last exit behind the last wait; where there is none, the last block whose lanes all leave.
// Where there is none either, nobody gets out of an outermost loop but by leaving: a block that waits and that all lanes pass that go back to its
// header from somewhere, else the header.
uint32_t Divergence::root_of(BlockId from) {
  Flags met;
  ArenaList<BlockId> found(arena, flow.layout.size());
  const auto forward = [&](BlockId start) {
    met = flags(flow.blocks.size()), found.clear(), found.push(start), met[index(start)] = true;
    for (size_t at = 0; at < found.size(); ++at)
      successors(found[at], [&](BlockId s) {
        if (!met[index(s)] && stays(found[at], s)) met[index(s)] = true, found.push(s);
      });
  };
  forward(from);
  for (BlockId b : flow.layout)
    if (met[index(b)] && (waits(index(b)).barrier || waits(index(b)).warp)) from = b;
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
    for (BlockId b : found.all())
      if (!back[index(b)]) {
        from = b, again = true;
        break;
      }
  }
  uint32_t l = inner_loop[index(from)];
  while (l != UINT32_MAX && loops[l].parent != UINT32_MAX) l = loops[l].parent;
  if (l == UINT32_MAX) return index(from);
  const uint32_t header = index(loops[l].header);
  uint32_t root = header;
  for (BlockId p : predecessors[header]) {
    if (!in_loop(l, index(p))) continue;
    for (uint32_t b = index(p); b != header; b = idom[b])
      if (waits(b).barrier || (waits(b).warp && !waits(root).barrier)) root = b;
  }
  return root;
}

void Divergence::find_levels() {
  const size_t n = flow.blocks.size();
  find_waits();
  meets = any_barrier ? leading_to([&](uint32_t b) { return waits(b).barrier; }) : flags(n);
  leaves = flags(n);
  if (any_barrier) {
    const Flags operates = leading_to([&](uint32_t b) { return waits(b).warp; });
    const Flags shared = flags(n);  // where lanes come to that have not left others at a barrier
    ArenaList<BlockId> work(arena, flow.layout.size());
    for (BlockId b : flow.layout)
      if (!meets[index(b)] && operates[index(b)]) shared[index(b)] = true, work.push(b);
    for (size_t at = 0; at < work.size(); ++at)
      successors(work[at], [&](BlockId s) {
        if (!shared[index(s)]) shared[index(s)] = true, work.push(s);
      });
    for (BlockId b : flow.layout) leaves[index(b)] = !meets[index(b)] && !operates[index(b)] && !shared[index(b)];
  }
  level = numbers(n, UINT32_MAX), ipdom = numbers(n, UINT32_MAX), join = numbers(n, UINT32_MAX),
  ipdom_depth = numbers(n, 0), back_position = arena.make_raw<uint32_t>(n);
  uint32_t count = 0;
  bool to_exit = false;
  const auto is_exit = [&](uint32_t x) { return is_none(block(BlockId{x}).taken) && is_none(block(BlockId{x}).next); };
  const auto last_free = [&](auto&& is) {
    uint32_t last = UINT32_MAX;
    for (BlockId b : flow.layout)
      if (level[index(b)] == UINT32_MAX && is(index(b))) last = index(b);
    return last;
  };
  const auto add_level = [&](uint32_t root) {
    const uint32_t l = count++;
    to_exit |= is_exit(root);
    level[root] = l;
    const std::span<uint32_t> members = arena.make_raw<uint32_t>(n);
    size_t size = 0;
    members[size++] = root;
    for (size_t at = 0; at < size; ++at)
      for (BlockId p : predecessors[members[at]])
        if (level[index(p)] == UINT32_MAX && stays(p, BlockId{members[at]}))
          level[index(p)] = l, members[size++] = index(p);
    one_level = l == 0 && size == flow.layout.size();
    const std::span<uint32_t> back = reverse_postorder(arena, n, root, [&](uint32_t b, uint32_t k) {
      const BlockList& p = predecessors[b];
      if (k == p.size()) return UINT32_MAX;
      const uint32_t x = index(p[p.size() - 1 - k]);
      return level[x] == l ? x : b;  // itself: none
    });
    const std::span<uint32_t> towards = immediate_dominators(arena, n, back, [&](uint32_t b, auto&& use) {
      successors(BlockId{b}, [&](BlockId s) {
        if (level[index(s)] == l) use(index(s));
      });
    });
    towards[root] = UINT32_MAX;
    for (uint32_t b : back) {
      ipdom[b] = join[b] = towards[b];
      ipdom_depth[b] = b == root ? 1 : ipdom_depth[towards[b]] + 1;
    }
    for (uint32_t k = 0; k < back.size(); ++k) back_position[back[k]] = k;
    // The root's lanes may go on too: to the first block that all of them come to.
    successors(BlockId{root}, [&](BlockId s) {
      if (level[index(s)] != l) return;
      uint32_t a = index(s), c = join[root] == UINT32_MAX ? a : join[root];
      while (a != c) {
        uint32_t& further = back_position[a] > back_position[c] ? a : c;
        further = ipdom[further];
      }
      join[root] = a;
    });
  };
  for (uint32_t b; (b = last_free([&](uint32_t x) { return waits(x).barrier; })) != UINT32_MAX;)
    add_level(root_of(BlockId{b}));
  if (!to_exit) {
    uint32_t b = any_operation ? last_free([&](uint32_t x) { return waits(x).warp; }) : UINT32_MAX;
    if (b != UINT32_MAX) b = root_of(BlockId{b});
    if (b == UINT32_MAX) b = last_free(is_exit);
    if (b != UINT32_MAX) add_level(b);
  }
  // Pascal's operations of the warp mean the lanes that the stack has brought together.
  if (target.family == isa::Family::pascal)
    for (uint32_t b; (b = last_free([&](uint32_t x) { return waits(x).warp; })) != UINT32_MAX;)
      add_level(root_of(BlockId{b}));
  if (count == 0) add_level(root_of(flow.layout.back()));
}

template <class F>
void Divergence::each_register(const ptx::Operand& o, F&& use) const {
  if (o.kind == ptx::Operand::reg || o.kind == ptx::Operand::address_reg) return use(o.id);
  if (o.kind != ptx::Operand::vector) return;
  for (const ptx::Operand& part : std::span(f.vector_elements.data() + o.id, o.count))
    if (part.kind == ptx::Operand::reg) use(part.id);
}
std::span<const ptx::Operand> Divergence::sources(const ptx::Instruction& i) const {
  return {f.operands.data() + i.first_operand + i.destination_count,
          f.operands.data() + i.first_operand + i.operand_count};
}
// A load that gives lanes which run it together the same at one address: nobody writes there while the kernel runs, or, in shared memory, all of
// them are served by one read of the word.
static bool reads_for_all(const ptx::Instruction& i) {
  using S = ptx::Space;
  const bool weak = i.mods.semantics == ptx::Semantics::none || i.mods.semantics == ptx::Semantics::weak;
  return i.mods.space == S::param || i.mods.space == S::constant || (i.mods.space == S::shared && weak) ||
         (i.mods.space == S::global && i.mods.cache == ptx::Cache::nc);
}
// An atomic that one lane may do for others (Selector::atomic_of_warp).
static bool joins_lanes(const ptx::Instruction& i) {
  using A = ptx::AtomicOp;
  return (i.op == Opcode::atom || i.op == Opcode::red) && !ptx::is_floating(i.type) && i.mods.atomic != A::cas &&
         i.mods.atomic != A::exch && i.mods.atomic != A::inc && i.mods.atomic != A::dec &&
         (i.mods.space == ptx::Space::global || i.mods.space == ptx::Space::shared);
}

// The result may differ between lanes whatever the registers hold that are its sources.
bool Divergence::differs_anyway(const ptx::Instruction& i) const {
  return (traits_of(i) & differs) || (i.op == Opcode::ld && !reads_for_all(i)) ||
         std::ranges::any_of(sources(i), [](const ptx::Operand& o) {
           return o.kind == ptx::Operand::special && divergent_source(static_cast<ptx::SpecialRegister>(o.id));
         });
}

// Of what the instruction makes of its sources, wherever it runs; of one that does not differ anyway.
Divergence::Variation Divergence::of_sources(const Undecided& x) const {
  Variation v = is_none(x.guard) ? same : variation[index(x.guard)];
  for (const ptx::Operand& o : sources(f.instructions[x.inst]))
    each_register(o, [&](uint32_t reg) { v = std::max(v, variation[reg]); });
  return v;
}
template <class F>
void Divergence::each_result(const ptx::Instruction& i, F&& use) const {
  for (uint32_t k = 0; k < i.destination_count; ++k) each_register(f.operand(i, k), use);
}

// By register, of the results of instructions that are not divergent: it holds what was read of shared memory, or is made of it.
Flags Divergence::made_of_shared(std::span<const Undecided> undecided) {
  const Flags made = flags(f.registers.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (const Undecided& d : undecided) {
      const ptx::Instruction& i = f.instructions[d.inst];
      bool is = i.op == Opcode::ld && i.mods.space == ptx::Space::shared;
      if (!is_none(d.guard)) is |= made[index(d.guard)];
      for (const ptx::Operand& o : sources(i)) each_register(o, [&](uint32_t reg) { is |= made[reg]; });
      if (is) each_result(i, [&](uint32_t reg) { changed |= !made[reg], made[reg] = true; });
    }
  }
  return made;
}

void Divergence::diverge() {
  variation = arena.make_span<Variation>(f.registers.size(), same);
  apart = flags(flow.blocks.size());
  const auto decides = [&](const FlowBlock& x) { return !is_none(x.predicate) && !x.uniform_branch; };
  const bool any_branch = std::ranges::any_of(flow.layout, [&](BlockId b) { return decides(block(b)); });
  if (!any_branch && !has_atomics) return;

  // Writes of registers, in the order of the layout; those of one register are a list, the last one first.
  struct Write {
    Undecided by;
    uint32_t before;  // 1 + the place of the one before
  };
  Write* const writes = arena.make_raw<Write>(f.operands.size() + f.vector_elements.size()).data();
  uint32_t count = 0;
  const std::span<uint32_t> last_write = numbers(f.registers.size(), 0);  // 1 + its place
  ArenaList<FlowItem*> atomics(arena, 8);
  const ptx::Instruction* const instructions = f.instructions.data();
  const ptx::Operand* const operands = f.operands.data();
  const bool atomic = has_atomics;
  for (BlockId b : flow.layout)
    for (FlowItem& item : block(b).items) {
      const ptx::Instruction& i = instructions[item.inst];
      const ptx::Operand& result = operands[i.first_operand];
      const auto write = [&](uint32_t reg, uint32_t place) {
        writes[place] = {{item.inst, item.guard, index(b)}, last_write[reg]};
        return last_write[reg] = place + 1;
      };
      if (i.destination_count == 1 && result.kind == ptx::Operand::reg) [[likely]] {
        count = write(result.id, count);
      } else {
        uint32_t place = count;  // so that `count` can be in a register
        each_result(i, [&](uint32_t reg) { place = write(reg, place); });
        count = place;
      }
      if (atomic && joins_lanes(i)) atomics.push(&item);
    }
  if (!any_branch && atomics.empty()) return;

  bool changed = false;
  const auto mark_results = [&](const ptx::Instruction& i, Variation as) {
    each_result(i,
                [&](uint32_t reg) { changed |= variation[reg] < as, variation[reg] = std::max(variation[reg], as); });
  };
  const auto each_address_register = [&](const FlowItem& item, auto&& use) {
    const ptx::Instruction& i = f.instructions[item.inst];
    each_register(f.operand(i, i.destination_count), use);
  };
  const Flags asked = flags(f.registers.size());
  ArenaList<uint32_t> asking(arena, 32);
  const auto ask = [&](uint32_t reg) {
    if (!asked[reg]) asked[reg] = true, asking.push(reg);
  };
  const std::span<uint64_t> asked_for = arena.make_span<uint64_t>(count / 64 + 1, 0);  // bits of writes
  const auto answer = [&] {  // one question after another: what a value is made of is near, as a rule
    while (!asking.empty()) {
      const uint32_t reg = asking[asking.size() - 1];
      asking.resize_down(asking.size() - 1);
      for (uint32_t k = last_write[reg]; k != 0; k = writes[k - 1].before) {
        const Write& w = writes[k - 1];
        const ptx::Instruction& i = instructions[w.by.inst];
        if (differs_anyway(i)) {
          mark_results(i, differing);
          continue;
        }
        asked_for[(k - 1) / 64] |= uint64_t{1} << (k - 1) % 64;
        if (!is_none(w.by.guard)) ask(index(w.by.guard));
        for (const ptx::Operand& o : sources(i)) each_register(o, ask);
      }
    }
  };
  for (BlockId b : flow.layout)
    if (decides(block(b))) ask(index(block(b).predicate)), answer();
  for (const FlowItem* item : atomics.all()) each_address_register(*item, ask), answer();
  ArenaList<Undecided> undecided(arena, 32);
  for (size_t k = 0; k < asked_for.size(); ++k)
    for (uint64_t bits = asked_for[k]; bits != 0; bits &= bits - 1) {
      const Undecided& x = writes[64 * k + static_cast<size_t>(std::countr_zero(bits))].by;
      const Variation v = of_sources(x);
      if (v != same) mark_results(instructions[x.inst], v);
      if (v != differing) undecided.push(x);
    }

  // A branch splits what is reached before its join, from its successors on; a loop what is reached from its header before the loop's join, and, of
  // values, what its blocks lead to outside of it.
  struct Split {
    uint32_t from, join, depth;  // of the join
    uint32_t level;              // of the branch or loop
    bool behind;                 // from the successors of `from`
  };
  ArenaList<Split> splits(arena, 16), of_values(arena, 16);
  ArenaList<uint32_t> found(arena, flow.layout.size());
  // Marks blocks. `to`: by block, the depth of the join up to which all behind it is marked; 0: to the end. What follows a block up to a join nearer to the
  // root (both post-dominate the block) holds what follows it up to the other, so a block is looked at again only for a join nearer to the root.
  const auto split = [&](const Split& x, Flags marked, std::span<uint32_t> to) {
    found.clear();
    const auto visit = [&](BlockId s) {
      if (index(s) == x.join) return;
      const uint32_t depth = level[index(s)] == x.level ? x.depth : 0;
      if (to[index(s)] <= depth) return;
      to[index(s)] = depth, found.push(index(s));
      changed |= !marked[index(s)], marked[index(s)] = true;
    };
    x.behind ? successors(BlockId{x.from}, visit) : visit(BlockId{x.from});
    for (size_t at = 0; at < found.size(); ++at) successors(BlockId{found[at]}, visit);
  };
  const auto split_all = [&](ArenaList<Split>& all, Flags marked, std::span<uint32_t> to) {
    if (all.size() > 1) std::ranges::sort(all.all(), {}, &Split::depth);
    for (const Split& x : all.all()) split(x, marked, to);
    all.clear();
  };
  const auto depth_of = [&](uint32_t j) { return j == UINT32_MAX ? 0 : ipdom_depth[j]; };
  // The lanes that a branch leaves in the innermost loop run on together; all others are out of it.
  const auto only_leaves = [&](BlockId b) {
    const uint32_t l = inner_loop[index(b)];
    if (l == UINT32_MAX || !leaves_loop(l, b)) return false;
    uint32_t stay = 0;
    successors(b, [&](BlockId s) { stay += in_loop(l, index(s)); });
    return stay == 1;
  };
  // By register: the outermost loop in which all its readers are; UINT32_MAX: none. Found once it is asked for.
  constexpr uint32_t nobody = UINT32_MAX - 1;
  std::span<uint32_t> readers;
  const auto find_readers = [&] {
    readers = numbers(f.registers.size(), nobody);
    const auto read = [&](uint32_t reg, uint32_t l) {
      readers[reg] = readers[reg] == nobody || readers[reg] == l ? l : UINT32_MAX;
    };
    for (BlockId b : flow.layout) {
      const FlowBlock& x = block(b);
      uint32_t l = inner_loop[index(b)];
      if (l != UINT32_MAX) l = loops[l].outermost;
      for (const FlowItem& item : x.items) {
        if (!is_none(item.guard)) read(index(item.guard), l);
        const ptx::Instruction& i = instructions[item.inst];
        const ptx::Operand *o = operands + i.first_operand + i.destination_count, *const end = operands +
                                                                                               i.first_operand +
                                                                                               i.operand_count;
        for (; o != end; ++o) each_register(*o, [&](uint32_t reg) { read(reg, l); });
      }
      if (!is_none(x.predicate)) read(index(x.predicate), l);
    }
  };
  // By loop: the innermost divergent one of those that hold it and itself; UINT32_MAX: none.
  const std::span<uint32_t> divergent_around = numbers(loops.size(), UINT32_MAX);
  const auto find_divergent = [&] {
    for (uint32_t l = static_cast<uint32_t>(loops.size()); l-- > 0;)  // outer first
      divergent_around[l] = loops[l].divergent              ? l
                            : loops[l].parent == UINT32_MAX ? UINT32_MAX
                                                            : divergent_around[loops[l].parent];
  };
  // By loop: itself while it is not divergent, else one around it (or `outside`) with none in between that is not.
  const uint32_t outside = static_cast<uint32_t>(loops.size());
  const std::span<uint32_t> up = arena.make_raw<uint32_t>(loops.size() + 1);
  std::iota(up.begin(), up.end(), 0u);
  const auto uniform_around = [&](uint32_t l) {  // the innermost, or `outside`
    for (l = std::min(l, outside); up[l] != l;) l = up[l] = up[up[l]];
    return l;
  };
  // Edges out of loops.
  struct WayOut {
    uint32_t inner, outer;  // of the loops that it leads out of
    uint32_t to;
  };
  ArenaList<WayOut> ways_out(arena, 0);
  const auto find_ways_out = [&] {
    struct Edge {
      uint32_t to, within,
          before;  // within: the innermost loop that holds both blocks; before: another edge of the loop
    };
    ArenaList<Edge> edges_out(arena, 8);
    const std::span<uint32_t> last = numbers(loops.size(), UINT32_MAX);  // by loop
    for (BlockId b : flow.layout) {
      const uint32_t l = inner_loop[index(b)];
      if (l == UINT32_MAX) continue;
      successors(b, [&](BlockId s) {
        if (in_loop(l, index(s))) return;
        uint32_t within = inner_loop[index(s)];
        if (within != UINT32_MAX && !in_loop(within, index(b))) within = loops[within].parent;  // s is its header
        if (within == loops[l].parent)
          ways_out.push({l, l, index(s)});
        else
          last[l] = edges_out.push({index(s), within, last[l]});
      });
    }
    if (edges_out.empty()) return;
    const std::span<uint32_t> walk = arena.make_raw<uint32_t>(loops.size()),
                              at = arena.make_raw<uint32_t>(loops.size());
    for (uint32_t l = 0; l < loops.size(); ++l) walk[loops[l].number] = l;
    for (uint32_t l : walk) {
      at[loops[l].depth] = l;  // by depth: the loop around those that follow
      for (uint32_t e = last[l]; e != UINT32_MAX; e = edges_out[e].before) {
        const uint32_t within = edges_out[e].within;
        ways_out.push({l, at[within == UINT32_MAX ? 0 : loops[within].depth + 1], edges_out[e].to});
      }
    }
  };
  // What divergent loops lead to: of the loops that an edge leaves the outermost has the join nearest to the root.
  const auto split_behind_loops = [&] {
    if (ways_out.empty()) find_ways_out();
    for (const WayOut& w : ways_out.all()) {
      uint32_t l = divergent_around[w.inner];
      if (l == UINT32_MAX || loops[l].number - loops[w.outer].number >= loops[w.outer].within) continue;
      if (loops[w.outer].divergent) {
        l = w.outer;
      } else {
        for (uint32_t k = l; k != w.outer; k = loops[k].parent)
          if (loops[k].divergent) l = k;
      }
      of_values.push({w.to, loops[l].join, depth_of(loops[l].join), level[index(loops[l].header)], false});
    }
  };
  // Of a register that is written in the block, by what lanes do there.
  const Flags values_apart = flags(flow.blocks.size());  // block runs without lanes that go on to read what it writes
  const auto written_in = [&](uint32_t b, uint32_t reg) {
    if (values_apart[b]) return differing;
    uint32_t l = inner_loop[b];
    if (l != UINT32_MAX) l = divergent_around[l];
    if (l == UINT32_MAX) return same;
    if (readers.empty()) find_readers();
    const bool runs_again = loops[l].parent != UINT32_MAX || irreducible;
    return readers[reg] != nobody && (runs_again || readers[reg] != l) ? differing : same_in_round;
  };
  const std::span<uint32_t> apart_to = numbers(flow.blocks.size(), UINT32_MAX),
                            values_to = numbers(flow.blocks.size(), UINT32_MAX);
  const Flags known = flags(flow.blocks.size());  // the branch has split what it can
  do {
    changed = false;
    bool more_loops = false;
    for (BlockId b : flow.layout) {
      if (known[index(b)] || !diverges(b)) continue;
      known[index(b)] = true;
      const Split branch{index(b), join[index(b)], depth_of(join[index(b)]), level[index(b)], true};
      splits.push(branch);
      if (!only_leaves(b)) of_values.push(branch);
      for (uint32_t l; (l = uniform_around(inner_loop[index(b)])) != outside && leaves_loop(l, b);) {
        loops[l].divergent = more_loops = true;
        up[l] = std::min(loops[l].parent, outside);
        const uint32_t header = index(loops[l].header);
        splits.push({header, loops[l].join, depth_of(loops[l].join), level[header], false});
      }
    }
    if (more_loops) find_divergent(), split_behind_loops();
    split_all(splits, apart, apart_to);
    split_all(of_values, values_apart, values_to);
    size_t kept = 0;
    for (const Undecided& d : undecided.all()) {
      const ptx::Instruction& i = instructions[d.inst];
      Variation v = of_sources(d);
      each_result(i, [&](uint32_t reg) { v = std::max(v, written_in(d.block, reg)); });
      if (v != same) mark_results(i, v);
      if (v != differing) undecided[kept++] = d;
    }
    undecided.resize_down(kept);
  } while (changed);
  bool any_address = false, any_guard = false;  // the same for all lanes; of such an atomic
  for (FlowItem* item : atomics.all()) {
    item->one_address = true;
    each_address_register(*item, [&](uint32_t reg) { item->one_address &= variation[reg] == same; });
    any_address |= item->one_address, any_guard |= item->one_address && !is_none(item->guard);
  }
  // Under a guard that asks for equality, with the number of a thread as a rule, one lane does the atomic, and none for others.
  for (FlowItem* item : any_guard ? atomics.all() : std::span<FlowItem*>()) {
    const uint32_t k = is_none(item->guard) ? 0 : last_write[index(item->guard)];
    if (!k) continue;
    const ptx::Instruction& i = instructions[writes[k - 1].by.inst];
    if (i.op == Opcode::setp && i.mods.compare == (item->negated ? ptx::Compare::ne : ptx::Compare::eq))
      item->one_address = false;
  }
  if (!any_address) return;
  const Flags made = made_of_shared(undecided.all());
  bool shared_read =
      std::ranges::any_of(flow.layout, [&](BlockId b) { return decides(block(b)) && made[index(block(b).predicate)]; });
  for (const FlowItem* item : atomics.all())
    each_address_register(*item, [&](uint32_t reg) { shared_read |= made[reg]; });
  for (FlowItem* item : atomics.all()) item->one_read = shared_read;
}

}  // namespace rndn::assembler
