// The graph of blocks of one function that the passes of structure() work on one after another: structurize.cpp makes it, divergence.cpp finds out
// where lanes run apart and where they meet, reconvergence.cpp makes regions of that.
#pragma once
#include <algorithm>
#include <span>

#include "assembler/flow/structurize.h"
#include "ptx/traits.h"

namespace rndn::assembler {

using enum ptx::Trait;
using ptx::expands_to_branches, ptx::may_be_copied, ptx::tells_time, ptx::traits_of;

using Flags = std::span<bool>;  // in the arena; a byte each: faster than bits

// The blocks that lead to one block, in the order of the layout.
using BlockList = std::span<BlockId>;

struct FlowGraph {
  const ptx::Module& module;
  const ptx::Function& f;
  const isa::Target& target;
  Arena& arena;
  Flow flow;
  std::span<BlockList> predecessors;  // by block; all lie in `edges`
  std::span<BlockId> edges;
  bool has_waits = false;  // barriers of the block or operations of the warp
  bool has_atomics = false;
  uint32_t first_exit = UINT32_MAX;  // an instruction that ends the thread

  FlowBlock& block(BlockId b) { return flow.blocks[b]; }
  Flags flags(size_t n) { return arena.make_span<bool>(n, false); }
  std::span<uint32_t> numbers(size_t n, uint32_t value) { return arena.make_span<uint32_t>(n, value); }

  template <class F>
  void successors(BlockId b, F&& use) {
    FlowBlock& x = block(b);
    if (!is_none(x.taken)) use(x.taken);
    if (!is_none(x.next) && x.next != x.taken) use(x.next);
  }

  // Reachable blocks in source order, with predecessors.
  void order() {
    const size_t n = flow.blocks.size();
    if (predecessors.size() < n) predecessors = arena.make_raw<BlockList>(n), edges = arena.make_raw<BlockId>(2 * n);
    if (flow.layout.empty()) {
      flow.layout = arena.make_raw<BlockId>(n + 1).first(n);  // one more may come (own_exit)
      for (uint32_t b = 0; b < n; ++b) flow.layout[b] = BlockId{b};
    }
    ArenaScope scratch(arena);
    const std::span<uint32_t> count = numbers(n, 0);  // of edges that lead there
    const std::span<BlockId> work = arena.make_raw<BlockId>(n);
    size_t pending = 1;
    work[0] = BlockId{0};  // where nothing leads to
    while (pending)
      successors(work[--pending], [&](BlockId s) {
        if (count[index(s)]++ == 0) work[pending++] = s;
      });
    drop_from_layout([&](BlockId b) { return index(b) != 0 && count[index(b)] == 0; });
    size_t begin = 0;
    for (size_t b = 0; b < n; begin += count[b++]) predecessors[b] = edges.subspan(begin, 0);
    for (BlockId b : flow.layout) successors(b, [&](BlockId s) { add_predecessor(s, b); });
  }
  template <class F>
  void drop_from_layout(F&& drops) {
    size_t kept = 0;
    for (BlockId b : flow.layout)
      if (!drops(b)) flow.layout[kept++] = b;
    flow.layout = flow.layout.first(kept);
  }
  void add_predecessor(BlockId b, BlockId p) {
    BlockList& list = predecessors[index(b)];
    list = {list.data(), list.size() + 1};
    list.back() = p;
  }
  // Where `from` led to b, `to` does.
  void replace_predecessor(BlockId b, BlockId from, BlockId to) {
    const BlockList list = predecessors[index(b)];
    std::ranges::replace(list, from, to);
    if (list.size() > 1) std::ranges::sort(list);
  }

  bool remove_dead_code();  // dead_code.cpp; whether there was any

  const Waits& waits(uint32_t b) { return block(BlockId{b}).waits; }
  bool any_barrier = false, any_operation = false;
  void find_waits() {
    any_barrier = any_operation = false;
    if (!has_waits) return;
    for (BlockId b : flow.layout) any_barrier |= block(b).waits.barrier, any_operation |= block(b).waits.warp;
  }
  // Blocks that lead to those for which `is` holds, which are among them.
  template <class F>
  Flags leading_to(F&& is) {
    const Flags leads = flags(flow.blocks.size());
    ArenaList<uint32_t> work(arena, flow.layout.size());
    for (BlockId b : flow.layout)
      if (is(index(b))) leads[index(b)] = true, work.push(index(b));
    for (size_t at = 0; at < work.size(); ++at)
      for (BlockId p : predecessors[work[at]])
        if (!leads[index(p)]) leads[index(p)] = true, work.push(index(p));
    return leads;
  }
  // Blocks reachable from the successors of `from` (or from `from` itself) without passing `stop`; until the next search.
  std::span<uint32_t> reached_at;       // by block: number of the search that met it last
  ArenaList<uint32_t> found{arena, 0};  // by the last search
  uint32_t searches = 0;
  void start_search() {
    if (reached_at.size() < flow.blocks.size()) reached_at = numbers(flow.blocks.size(), 0);
    ++searches;
    found.clear();
  }
  std::span<const uint32_t> reach(BlockId from, uint32_t stop, bool include) {
    start_search();
    auto visit = [&](BlockId s) {
      if (index(s) != stop && !reached(index(s))) reached_at[index(s)] = searches, found.push(index(s));
    };
    if (include)
      visit(from);
    else
      successors(from, visit);
    for (size_t at = 0; at < found.size(); ++at) successors(BlockId{found[at]}, visit);
    return found.all();
  }
  // Whether the last search met the block.
  bool reached(uint32_t b) const { return reached_at[b] == searches; }
};

// Where the lanes of a warp run apart, and where they meet again (divergence.cpp).
struct Divergence : FlowGraph {
  explicit Divergence(FlowGraph graph) : FlowGraph(std::move(graph)) {}
  void analyse();  // loops, levels and joins
  void diverge();  // which values and blocks are not the same for all lanes

  // What dominates is known where there are cycles, and asked there alone.
  std::span<uint32_t> idom;  // by block; UINT32_MAX: none
  bool dominates(uint32_t a, uint32_t b) const { return flow.dominators.dominates(a, b); }
  struct Loop {
    BlockId header;
    uint32_t size = 1;  // blocks
    bool divergent = false;
    uint32_t parent = UINT32_MAX;  // the loop around it
    uint32_t outermost = 0;        // .. of those that hold it, or itself
    uint32_t depth = 0;            // loops around it
    uint32_t join = UINT32_MAX;    // the first post-dominator of its header outside of it
    uint32_t number = 0,
             within = 1;  // its place in a walk over the tree of loops, and how many loops it holds with itself
  };
  std::span<Loop> loops;           // inner before outer
  std::span<uint32_t> inner_loop;  // by block: the innermost loop, UINT32_MAX: none
  bool irreducible = false;

  bool in_loop(uint32_t loop, uint32_t b) const {
    const uint32_t l = inner_loop[b];
    return l != UINT32_MAX && loops[l].number - loops[loop].number < loops[loop].within;
  }

  // Levels. The blocks that lead to one root are a level, in which all joins lie: a branch's join is its immediate post-dominator towards the root.
  // Lanes that go from a level to another never come back. Lanes that leave for their end, with no wait of any kind before it, while others go on to
  // a barrier of the block, are a level of their own, too: nobody may wait for the others at their joins.
  std::span<uint32_t> level, ipdom;   // by block; UINT32_MAX: none
  std::span<uint32_t> ipdom_depth;    // by block: how many steps towards the root; 0: none
  std::span<uint32_t> back_position;  // by block: its place in the reverse postorder of its level, from the root back
  std::span<uint32_t> join;           // by block: where its lanes meet behind its branch
  bool one_level = false;             // no block is of another
  Flags meets, leaves;  // by block: leads to a barrier of the block; is what such blocks are left for, for good

  bool stays(BlockId b, BlockId s) const { return !(meets[index(b)] && leaves[index(s)]); }
  bool same_level(BlockId b, BlockId s) const { return level[index(b)] == level[index(s)]; }

  // Of a PTX register; of those alone that branches and atomics ask for.
  enum Variation : uint8_t {
    same,           // for all lanes of a warp
    same_in_round,  // for those that are still in the loops around its writes: they run each round together
    differing       // perhaps
  };
  std::span<Variation> variation;  // by register
  Flags apart;                     // block runs with some lanes missing
  bool diverges(BlockId b) {
    const FlowBlock& x = block(b);
    return !is_none(x.predicate) && !x.uniform_branch && variation[index(x.predicate)] == differing;
  }
  bool leaves_loop(uint32_t loop, BlockId b) {
    uint32_t j = join[index(b)];
    return j == UINT32_MAX || !in_loop(loop, j);
  }

 private:
  void find_loops(std::span<const uint32_t> order, std::span<const uint32_t> position);
  void find_loop_joins();
  uint32_t root_of(BlockId from);
  void find_levels();
  template <class F>
  void each_register(const ptx::Operand& o, F&& use) const;
  std::span<const ptx::Operand> sources(const ptx::Instruction& i) const;
  struct Undecided {  // an instruction whose results may still turn out divergent
    uint32_t inst;
    ptx::RegisterId guard;
    uint32_t block;
  };
  bool differs_anyway(const ptx::Instruction& i) const;
  Variation of_sources(const Undecided& x) const;
  template <class F>
  void each_result(const ptx::Instruction& i, F&& use) const;
  Flags made_of_shared(std::span<const Undecided> undecided);
};

// Makes the regions; refuses what the target cannot run (reconvergence.cpp).
Result<Flow> make_regions(Divergence graph);

}  // namespace rndn::assembler
