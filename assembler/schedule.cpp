// List scheduling of each block, before allocation (virtual registers) and after it (physical registers).
//
// Input and output: the same instructions per block, in an order that keeps every dependence: registers (read after write, write after read,
// write after write), Pascal's condition code, memory of one space (loads pass loads, nothing passes a store to its space), fences, barriers and
// exits (nothing that touches memory or other lanes crosses them).
//
// Algorithm: Cooper and Torczon, "Engineering a Compiler", 12.3; choice among the ready instructions as in the thesis: the one that can issue
// first, then the longest critical path, then the lower line. Loads count with their expected latency, so they rise above independent work: a
// tile's loads are all under way before the first use. Before allocation, once more values are alive than `pressure_limit`, the instruction that
// frees most registers goes first.
// Cost: O(n * ready + edges) per block.
//
// Left out: alias analysis beyond the state space, scheduling across blocks.
#include <algorithm>

#include "assembler/latency.h"
#include "assembler/passes.h"

namespace rndn::assembler {
namespace {

struct Edge {
  uint32_t to, latency, next;
};
constexpr uint32_t nil = UINT32_MAX;

struct ListScheduler {
  ListScheduler(Function& function, uint32_t limit)
      : f(function), t(*function.target), pressure_limit(limit), distances(*function.target) {}

  Function& f;
  const isa::Target& t;
  uint32_t pressure_limit;
  Liveness live;
  uint32_t gprs = 0, predicates = 0, resources = 0;  // GPRs, predicates, uniform registers, uniform predicates, CC
  Distances distances;
  // Per resource: last writer and readers since, valid when stamped with the current block.
  std::vector<uint32_t> writer, reader_list, stamp;
  std::vector<std::pair<uint32_t, uint32_t>> reader_nodes;  // (node, next)
  std::vector<Edge> edges;
  std::vector<uint32_t> head, waiting, earliest, path;
  uint32_t epoch = 0;

  uint32_t resource(uint32_t reg, isa::RegisterFile file) const {
    if (file == isa::RegisterFile::uniform) return gprs + predicates + reg;
    if (file == isa::RegisterFile::uniform_predicate) return gprs + predicates + isa::URZ + reg;
    uint32_t base = f.allocated ? 0 : isa::first_virtual;
    if (reg < base) return nil;  // R1 before allocation: never written but in the prologue
    return file == isa::RegisterFile::gpr ? reg - base : gprs + reg - base;
  }
  void touch(uint32_t r) {
    if (stamp[r] != epoch) stamp[r] = epoch, writer[r] = nil, reader_list[r] = nil;
  }
  void edge(uint32_t from, uint32_t to, uint32_t latency) {
    if (from == to) return;
    edges.push_back({to, latency, head[from]});
    head[from] = static_cast<uint32_t>(edges.size() - 1);
    ++waiting[to];
  }

  void build(const std::vector<InstId>& code, const Block& block) {
    ++epoch;
    const uint32_t n = static_cast<uint32_t>(code.size());
    edges.clear();
    reader_nodes.clear();
    head.assign(n, nil);
    waiting.assign(n, 0);
    struct Stream {
      uint32_t last_store = nil;
      std::vector<uint32_t> loads;
    };
    Stream global, shared, local;
    uint32_t last_fence = nil;
    std::vector<uint32_t> since_fence;  // what the next fence waits for
    for (uint32_t k = 0; k < n; ++k) {
      const Inst& inst = f[code[k]];
      auto read = [&](uint32_t r, isa::RegisterFile file, bool guard) {
        touch(r);
        if (uint32_t w = writer[r]; w != nil) {
          const Inst& p = f[code[w]];
          edge(w, k, std::max(expected(p), distances.read_after_write(p, file, inst, guard)));
        }
        reader_nodes.push_back({k, reader_list[r]});
        reader_list[r] = static_cast<uint32_t>(reader_nodes.size() - 1);
      };
      const uint32_t cc = resources - 1;
      for_each_register(inst, [&](uint32_t reg, uint32_t width, isa::RegisterFile file, bool write, bool guard) {
        if (write) return;
        if (uint32_t r = resource(reg, file); r != nil)
          for (uint32_t w = 0; w < width; ++w) read(r + w, file, guard);
      });
      if (inst.reads_carry) read(cc, isa::RegisterFile::none, false);
      auto write = [&](uint32_t r, isa::RegisterFile file) {
        touch(r);
        if (writer[r] != nil) edge(writer[r], k, distances.write_after_write(f[code[writer[r]]], inst, file));
        for (uint32_t x = reader_list[r]; x != nil; x = reader_nodes[x].second) edge(reader_nodes[x].first, k, 1);
        writer[r] = k;
        reader_list[r] = nil;
      };
      for_each_register(inst, [&](uint32_t reg, uint32_t width, isa::RegisterFile file, bool is_write, bool) {
        if (!is_write) return;
        if (uint32_t r = resource(reg, file); r != nil)
          for (uint32_t w = 0; w < width; ++w) write(r + w, file);
      });
      if (inst.writes_carry) write(cc, isa::RegisterFile::none);

      // Memory.
      auto load = [&](Stream& s) {
        if (s.last_store != nil) edge(s.last_store, k, 1);
        s.loads.push_back(k);
      };
      auto store = [&](Stream& s) {
        if (s.last_store != nil) edge(s.last_store, k, 1);
        for (uint32_t l : s.loads) edge(l, k, 1);
        s.loads.clear();
        s.last_store = k;
      };
      const bool generic = inst.sass.mnemonic == isa::Mnemonic::LD || inst.sass.mnemonic == isa::Mnemonic::ST ||
                           inst.sass.mnemonic == isa::Mnemonic::ATOM;
      const bool ordered = inst.memory == Memory::fence || (inst.pinned && inst.memory == Memory::none);
      if (ordered) {
        if (last_fence != nil) edge(last_fence, k, 1);
        for (uint32_t x : since_fence) edge(x, k, 1);
        since_fence.clear();
        last_fence = k;
        continue;
      }
      if (inst.memory == Memory::none && !inst.cooperative && inst.latency != isa::LatencyClass::shuffle &&
          inst.latency != isa::LatencyClass::vote)
        continue;
      if (last_fence != nil) edge(last_fence, k, 1);
      since_fence.push_back(k);
      switch (inst.memory) {
        case Memory::global_load:
          inst.pinned ? store(global) : load(global);
          if (generic) load(shared), load(local);
          break;
        case Memory::global_store:
          store(global);
          if (generic) store(shared), store(local);
          break;
        case Memory::shared_load: inst.pinned ? store(shared) : load(shared); break;
        case Memory::shared_store: store(shared); break;
        case Memory::local_load: load(local); break;
        case Memory::local_store: store(local); break;
        default: break;
      }
    }
    path.assign(n, 0);
    for (uint32_t k = n; k-- > 0;) {
      const Inst& inst = f[code[k]];
      uint32_t longest = expected(inst) / 8;
      // The branch at the end waits for its predicate.
      for_each_write(inst, [&](uint32_t reg, uint32_t, isa::RegisterFile file) {
        if (file == isa::RegisterFile::predicate && reg == block.predicate) longest = std::max(longest, 13u);
      });
      for (uint32_t e = head[k]; e != nil; e = edges[e].next)
        longest = std::max(longest, edges[e].latency + path[edges[e].to]);
      path[k] = longest;
    }
  }
  uint32_t expected(const Inst& inst) const { return expected_latency(t, inst); }

  // Registers that issuing the instruction adds (positive) or frees.
  std::vector<uint32_t> uses_left;  // per GPR unit, in the block
  std::vector<bool> alive;
  int pressure_change(const Inst& inst, const Bitset& out) {
    int change = 0;
    for_each_read(inst, [&](uint32_t reg, uint32_t width, isa::RegisterFile file) {
      if (file != isa::RegisterFile::gpr || reg < isa::first_virtual) return;
      for (uint32_t w = 0; w < width; ++w) {
        uint32_t u = reg - isa::first_virtual + w;
        if (uses_left[u] == 1 && !out.test(u) && alive[u]) --change;
      }
    });
    for_each_write(inst, [&](uint32_t reg, uint32_t width, isa::RegisterFile file) {
      if (file != isa::RegisterFile::gpr || reg < isa::first_virtual) return;
      for (uint32_t w = 0; w < width; ++w)
        if (!alive[reg - isa::first_virtual + w]) ++change;
    });
    return change;
  }

  void run(BlockId id) {
    Block& block = f.blocks[id];
    std::vector<InstId>& code = block.code;
    const uint32_t n = static_cast<uint32_t>(code.size());
    if (n < 2) return;
    build(code, block);
    const bool track = !f.allocated;
    const Bitset* out = nullptr;
    int pressure = 0;
    if (track) {
      out = &live.out[id];
      uses_left.assign(gprs, 0);
      alive.assign(gprs, false);
      live.in[id].for_each([&](size_t u) {
        if (u < gprs) alive[u] = true, ++pressure;
      });
      for (InstId i : code)
        for_each_read(f[i], [&](uint32_t reg, uint32_t width, isa::RegisterFile file) {
          if (file == isa::RegisterFile::gpr && reg >= isa::first_virtual)
            for (uint32_t w = 0; w < width; ++w) ++uses_left[reg - isa::first_virtual + w];
        });
    }
    earliest.assign(n, 0);
    std::vector<uint32_t> ready, order;
    order.reserve(n);
    for (uint32_t k = 0; k < n; ++k)
      if (waiting[k] == 0) ready.push_back(k);
    uint32_t now = 0;
    while (!ready.empty()) {
      size_t best = 0;
      const bool tight = track && pressure > static_cast<int>(pressure_limit);
      int best_change = tight ? pressure_change(f[code[ready[0]]], *out) : 0;
      for (size_t r = 1; r < ready.size(); ++r) {
        uint32_t a = ready[r], b = ready[best];
        bool better;
        int change = 0;
        if (tight && (change = pressure_change(f[code[a]], *out)) != best_change) {
          better = change < best_change;
        } else {
          uint32_t sa = std::max(earliest[a], now), sb = std::max(earliest[b], now);
          if (track)
            better = path[a] != path[b] ? path[a] > path[b] : a < b;
          else
            better = sa != sb ? sa < sb : path[a] != path[b] ? path[a] > path[b] : a < b;
        }
        if (better) best = r, best_change = change;
      }
      uint32_t k = ready[best];
      ready.erase(ready.begin() + static_cast<ptrdiff_t>(best));
      order.push_back(k);
      const Inst& inst = f[code[k]];
      now = std::max(now, earliest[k]) + 1;
      if (track) {
        pressure += pressure_change(inst, *out);
        for_each_read(inst, [&](uint32_t reg, uint32_t width, isa::RegisterFile file) {
          if (file != isa::RegisterFile::gpr || reg < isa::first_virtual) return;
          for (uint32_t w = 0; w < width; ++w) {
            uint32_t u = reg - isa::first_virtual + w;
            if (--uses_left[u] == 0 && !out->test(u)) alive[u] = false;
          }
        });
        for_each_write(inst, [&](uint32_t reg, uint32_t width, isa::RegisterFile file) {
          if (file == isa::RegisterFile::gpr && reg >= isa::first_virtual)
            for (uint32_t w = 0; w < width; ++w) alive[reg - isa::first_virtual + w] = true;
        });
      }
      for (uint32_t e = head[k]; e != nil; e = edges[e].next) {
        uint32_t to = edges[e].to;
        earliest[to] = std::max(earliest[to], now - 1 + edges[e].latency);
        if (--waiting[to] == 0) ready.push_back(to);
      }
    }
    CHECK(order.size() == n, "a dependence cycle");
    std::vector<InstId> result;
    result.reserve(n);
    for (uint32_t k : order) result.push_back(code[k]);
    code.swap(result);
  }
};

}  // namespace

void schedule(Function& f, uint32_t pressure_limit) {
  ListScheduler s(f, pressure_limit);
  if (!f.allocated) s.live = compute_liveness(f);
  s.gprs = f.allocated ? 256 : static_cast<uint32_t>(f.gprs.size());
  s.predicates = f.allocated ? 8 : static_cast<uint32_t>(f.temporary_predicate.size());
  s.resources = s.gprs + s.predicates + isa::URZ + isa::PT + 1;
  s.writer.assign(s.resources, nil);
  s.reader_list.assign(s.resources, nil);
  s.stamp.assign(s.resources, 0);
  for (BlockId b : f.layout) s.run(b);
}

}  // namespace rndn::assembler
