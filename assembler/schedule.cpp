// List scheduling of each block, before allocation (virtual registers) and after it (physical registers).
//
// Input and output: the same instructions per block, in an order that keeps every dependence: registers (read after write, write after read,
// write after write), Pascal's condition code, memory of one space (loads pass loads, nothing passes a store to its space), fences, barriers and
// exits (nothing that touches memory or other lanes crosses them).
//
// Algorithm: Cooper and Torczon, "Engineering a Compiler", 12.3; choice among the ready instructions as in the thesis: the one that can issue
// first, then the longest critical path, then the lower line. Loads count with their expected latency, so they rise above independent work: a
// tile's loads are all under way before the first use. Before allocation, once more registers are alive than the limit (or almost all predicates),
// the instruction that frees most goes first.
// The change that an instruction makes to the number of live registers is kept up to date while it waits: when a register has one reader left,
// that reader (the exclusive or of those not yet issued) gains one. Ready instructions wait in heaps: by critical path; by change, once a block
// has been over its limit; after allocation, by the cycle in which they can issue.
// Cost: O(n log n + edges) per block.
//
// Left out: alias analysis beyond the state space, scheduling across blocks.
#include <algorithm>

#include "assembler/latency.h"
#include "assembler/passes.h"

namespace rndn::assembler {
namespace {

constexpr uint32_t nil = UINT32_MAX;
constexpr int predicate_limit = 5;  // of 7: some are needed inside expansions

struct Edge {
  uint32_t to, latency, next;
};
// A register, predicate or the condition code, within the block whose number it carries.
struct Resource {
  uint32_t epoch = 0;
  uint32_t writer = nil, readers = nil;
};
// A register's readers within the block, to follow how many registers are alive.
struct Unit {
  uint32_t epoch = 0;
  uint32_t left = 0;  // readers not yet issued
  uint32_t last = 0;  // exclusive or of their nodes
  bool alive = false, out = false;
};
struct Node {
  uint32_t head = nil;    // edges to those that depend on it
  uint32_t waiting = 0;   // edges to it from those not yet issued
  uint32_t earliest = 0;  // cycle
  uint32_t path = 0;      // cycles to the end of the block
  int8_t change = 0;      // in the number of live registers
  bool ready = false, issued = false;
};
struct Timed {
  uint32_t earliest;
  uint64_t key;
  // As heaps of the library put the largest on top: the one that comes first is the largest.
  bool operator<(const Timed& o) const { return earliest != o.earliest ? earliest > o.earliest : key < o.key; }
};

struct ListScheduler {
  Function& f;
  const Liveness& live;
  const int pressure_limit;
  Arena& arena = *f.arena;
  const Distances distances{*f.target};
  const ExpectedLatencies expected{*f.target};
  const bool track = !f.allocated;
  const uint32_t base = f.allocated ? 0 : isa::first_virtual;
  const uint32_t gprs = f.allocated ? 256 : static_cast<uint32_t>(f.gprs.size());
  const uint32_t predicates = f.allocated ? 8 : static_cast<uint32_t>(f.temporary_predicate.size());
  const uint32_t carry = gprs + predicates + isa::URZ + isa::PT;
  uint32_t epoch = 0;
  std::span<Resource> resources = arena.make_span<Resource>(carry + 1);
  std::span<Unit> units = arena.make_span<Unit>(track ? gprs + predicates : 0);
  ArenaList<std::pair<uint32_t, uint32_t>> reader_nodes{arena, 256};  // (node, next)
  ArenaList<Edge> edges{arena, 1024};
  std::span<Node> nodes;
  std::span<InstId> order;
  std::vector<uint64_t> ready;  // heap: critical path, then order
  std::vector<Timed> later;     // heap: cannot issue yet
  std::vector<uint32_t> in_order,
      freeing;  // heaps: ready instructions by their place in the block; those that free registers
  int pressure = 0, predicate_pressure = 0;

  const Facts& facts(InstId i) const { return f.facts[index(i)]; }
  Resource* resource(uint32_t reg, Range::File file) {
    uint32_t r = reg;
    switch (file) {
      case Range::uniform: r += gprs + predicates; break;
      case Range::uniform_predicate: r += gprs + predicates + isa::URZ; break;
      default:
        if (reg < base) return nullptr;  // R1 before allocation: never written but in the prologue
        r += (file == Range::gpr ? 0 : gprs) - base;
    }
    return touch(r);
  }
  Resource* touch(uint32_t r) {
    Resource& x = resources[r];
    if (x.epoch != epoch) x = {epoch, nil, nil};
    return &x;
  }
  void edge(uint32_t from, uint32_t to, uint32_t latency) {
    if (from == to) return;
    nodes[from].head = edges.push({to, latency, nodes[from].head});
    ++nodes[to].waiting;
  }

  // The order of memory operations.
  struct Stream {
    uint32_t last_store = nil;
    uint32_t first_load = 0;  // of those since
    std::vector<uint32_t> loads;
  };
  Stream global, shared, local;
  uint32_t last_fence = nil;
  std::vector<uint32_t> since_fence;  // what the next fence waits for
  void load(Stream& s, uint32_t k) {
    if (s.last_store != nil) edge(s.last_store, k, 1);
    s.loads.push_back(k);
  }
  void store(Stream& s, uint32_t k) {
    if (s.last_store != nil) edge(s.last_store, k, 1);
    for (uint32_t l : s.loads) edge(l, k, 1);
    s.loads.clear();
    s.last_store = k;
  }
  void order_memory(const Facts& x, uint32_t k) {
    if (x.memory == Memory::fence || (x.pinned && x.memory == Memory::none)) {
      if (last_fence != nil) edge(last_fence, k, 1);
      for (uint32_t e : since_fence) edge(e, k, 1);
      since_fence.clear();
      last_fence = k;
      return;
    }
    if (x.memory == Memory::none && !x.cooperative && x.latency != isa::LatencyClass::vote) return;
    if (last_fence != nil) edge(last_fence, k, 1);
    since_fence.push_back(k);
    switch (x.memory) {
      case Memory::global_load:
        x.pinned ? store(global, k) : load(global, k);
        if (x.generic) load(shared, k), load(local, k);
        break;
      case Memory::global_store:
        store(global, k);
        if (x.generic) store(shared, k), store(local, k);
        break;
      case Memory::shared_load: x.pinned ? store(shared, k) : load(shared, k); break;
      case Memory::shared_store: store(shared, k); break;
      case Memory::local_load: load(local, k); break;
      case Memory::local_store: store(local, k); break;
      default: break;
    }
  }

  void build(const std::vector<InstId>& code, const Block& block) {
    const uint32_t n = static_cast<uint32_t>(code.size());
    edges.clear();
    reader_nodes.clear();
    for (Stream* s : {&global, &shared, &local}) s->last_store = nil, s->loads.clear();
    last_fence = nil;
    since_fence.clear();
    for (uint32_t k = 0; k < n; ++k) {
      const Facts& x = facts(code[k]);
      auto read = [&](Resource& r, uint32_t latency) {
        if (r.writer != nil) edge(r.writer, k, latency);
        r.readers = reader_nodes.push({k, r.readers});
      };
      for (Range range : x.reads())
        for (uint32_t w = 0; w < range.width(); ++w) {
          Resource* r = resource(range.reg() + w, range.file());
          if (!r) break;
          uint32_t latency = 0;
          if (r->writer != nil) {
            const Facts& p = facts(code[r->writer]);
            latency = std::max(expected(p), distances.read_after_write(p, range, x));
          }
          read(*r, latency);
        }
      if (x.reads_carry) {
        Resource& r = *touch(carry);
        uint32_t latency = 0;
        if (r.writer != nil) {
          const Facts& p = facts(code[r.writer]);
          latency = std::max(expected(p), distances.carry(p, x));
        }
        read(r, latency);
      }
      auto write = [&](Resource& r, uint32_t latency) {
        if (r.writer != nil) edge(r.writer, k, latency);
        for (uint32_t e = r.readers; e != nil; e = reader_nodes[e].second) edge(reader_nodes[e].first, k, 1);
        r.writer = k;
        r.readers = nil;
      };
      for (Range range : x.writes())
        for (uint32_t w = 0; w < range.width(); ++w) {
          Resource* r = resource(range.reg() + w, range.file());
          if (!r) break;
          write(*r, r->writer == nil ? 0 : distances.write_after_write(facts(code[r->writer]), x, range.file()));
        }
      if (x.writes_carry) write(*touch(carry), 1);
      order_memory(x, k);
    }
    for (uint32_t k = n; k-- > 0;) {
      const Facts& x = facts(code[k]);
      uint32_t longest = expected(x) / 8;
      // The branch at the end waits for its predicate.
      if (block.predicate != isa::PT)
        for (Range r : x.writes())
          if (r.file() == Range::predicate && r.reg() == block.predicate) longest = std::max(longest, 13u);
      for (uint32_t e = nodes[k].head; e != nil; e = edges[e].next)
        longest = std::max(longest, edges[e].latency + nodes[edges[e].to].path);
      nodes[k].path = longest;
    }
  }

  // --- live registers
  template <class F>
  void for_each_unit(std::span<const Range> ranges, F&& use) {
    for (Range r : ranges) {
      if (!r.allocated() || r.reg() < isa::first_virtual) continue;
      const bool is_gpr = r.file() == Range::gpr;
      const uint32_t u = r.reg() - isa::first_virtual + (is_gpr ? 0 : gprs);
      for (uint32_t w = 0; w < r.width(); ++w) use(units[u + w], is_gpr);
    }
  }
  Unit& unit(uint32_t u) {
    Unit& x = units[u];
    if (x.epoch != epoch) x = {epoch};
    return x;
  }
  void start_tracking(BlockId id, const std::vector<InstId>& code) {
    pressure = predicate_pressure = 0;
    for (uint32_t u : live.in(id)) unit(u).alive = true, ++(u < gprs ? pressure : predicate_pressure);
    for (uint32_t u : live.out(id)) unit(u).out = true;
    for (uint32_t k = 0; k < code.size(); ++k) {
      const Facts& x = facts(code[k]);
      for_each_unit(x.all(), [&](Unit& u, bool) {
        if (u.epoch != epoch) u = {epoch};
      });
      for_each_unit(x.reads(), [&](Unit& u, bool) { ++u.left, u.last ^= k; });
    }
    for (uint32_t k = 0; k < code.size(); ++k) {
      int change = 0;
      const Facts& x = facts(code[k]);
      for_each_unit(x.reads(), [&](Unit& u, bool is_gpr) {
        if (u.left == 1 && !u.out) change -= is_gpr ? 1 : 2;
      });
      for_each_unit(x.writes(), [&](Unit& u, bool is_gpr) {
        if (!u.alive) change += is_gpr ? 1 : 2;
      });
      nodes[k].change = static_cast<int8_t>(change);
    }
  }
  void track_issue(const Facts& x, uint32_t k) {
    for_each_unit(x.reads(), [&](Unit& u, bool is_gpr) {
      u.last ^= k;
      --u.left;
      if (u.out) return;
      if (u.left == 0) {
        if (u.alive) u.alive = false, --(is_gpr ? pressure : predicate_pressure);
      } else if (u.left == 1) {
        Node& reader = nodes[u.last];
        reader.change = static_cast<int8_t>(reader.change - (is_gpr ? 1 : 2));
        if (reader.ready && reader.change < 0) push(freeing, UINT32_MAX - u.last);
      }
    });
    for_each_unit(x.writes(), [&](Unit& u, bool is_gpr) {
      if (!u.alive) u.alive = true, ++(is_gpr ? pressure : predicate_pressure);
      if (u.left == 0 && !u.out) u.alive = false, --(is_gpr ? pressure : predicate_pressure);
    });
  }

  static uint64_t key_of(uint32_t path, uint32_t k) { return uint64_t{path} << 32 | (UINT32_MAX - k); }
  static uint32_t node_of(uint64_t key) { return UINT32_MAX - static_cast<uint32_t>(key); }
  template <class T>
  static void push(std::vector<T>& heap, const T& x) {
    heap.push_back(x);
    std::push_heap(heap.begin(), heap.end());
  }
  template <class T>
  static T pop(std::vector<T>& heap) {
    std::pop_heap(heap.begin(), heap.end());
    T x = heap.back();
    heap.pop_back();
    return x;
  }
  void add_ready(uint32_t k) {
    nodes[k].ready = true;
    if (!track) return push(later, {nodes[k].earliest, key_of(nodes[k].path, k)});
    push(ready, key_of(nodes[k].path, k));
    push(in_order, UINT32_MAX - k);
    if (nodes[k].change < 0) push(freeing, UINT32_MAX - k);
  }
  uint32_t first_of(std::vector<uint32_t>& heap) {
    while (!heap.empty())
      if (const uint32_t k = UINT32_MAX - pop(heap); !nodes[k].issued) return k;
    return nil;
  }

  void run(BlockId id) {
    Block& block = f.blocks[id];
    std::vector<InstId>& code = block.code;
    const uint32_t n = static_cast<uint32_t>(code.size());
    if (n < 2) return;
    ++epoch;
    std::fill_n(nodes.begin(), n, Node{});
    build(code, block);
    if (track) start_tracking(id, code);
    ready.clear();
    later.clear();
    in_order.clear();
    freeing.clear();
    for (uint32_t k = 0; k < n; ++k)
      if (nodes[k].waiting == 0) add_ready(k);
    uint32_t now = 0;
    for (uint32_t done = 0; done < n; ++done) {
      uint32_t k = nil;
      if (!track) {
        while (!later.empty() && later.front().earliest <= now) push(ready, pop(later).key);
        k = node_of(ready.empty() ? pop(later).key : pop(ready));
      } else if (pressure > pressure_limit || predicate_pressure > predicate_limit) {
        k = first_of(freeing);
        if (k == nil) k = first_of(in_order);
      } else {
        do k = node_of(pop(ready));
        while (nodes[k].issued);
      }
      CHECK(k < n, "a dependence cycle");
      order[done] = code[k];
      Node& node = nodes[k];
      node.issued = true;
      now = std::max(now, node.earliest) + 1;
      if (track) track_issue(facts(code[k]), k);
      for (uint32_t e = node.head; e != nil; e = edges[e].next) {
        Node& to = nodes[edges[e].to];
        to.earliest = std::max(to.earliest, now - 1 + edges[e].latency);
        if (--to.waiting == 0) add_ready(edges[e].to);
      }
    }
    std::copy_n(order.begin(), n, code.begin());
  }
};

}  // namespace

void schedule(Function& f, uint32_t pressure_limit, const Liveness& live) {
  ArenaScope scope(*f.arena);
  ListScheduler s{.f = f, .live = live, .pressure_limit = static_cast<int>(pressure_limit)};
  size_t largest = 0;
  for (BlockId b : f.layout) largest = std::max(largest, f.blocks[b].code.size());
  s.nodes = f.arena->make_span<Node>(largest);
  s.order = f.arena->make_span<InstId>(largest);
  for (BlockId b : f.layout) s.run(b);
}

}  // namespace rndn::assembler
