// Liveness of virtual registers at block boundaries.
//
// Per register, backwards from the blocks that read it before they write it, along predecessors, until a block writes it: Boissinot, Darte,
// Rastello, Dupont de Dinechin, Guillon, "Revisiting Out-of-SSA Translation" (2009), path exploration by use. Most registers live in one block
// and cost nothing.
// A guarded write does not end a life. A guarded write to a temporary of one expansion does: its readers run under the same guard. A register
// that is alive at the function's entry is not defined on some path; it is kept to the blocks that some definition reaches, or a register that
// is only ever written under guards would seem alive from the entry.
// Cost: O(instructions + total size of the sets).
#include <algorithm>

#include "assembler/passes.h"

namespace rndn::assembler {
namespace {

struct Pair {
  uint32_t key, value;
};

// Pairs grouped by key, in their order: the values of key k are values[begin[k]] .. values[begin[k + 1]].
struct Groups {
  std::span<uint32_t> begin, values;
  std::span<const uint32_t> operator[](size_t k) const { return values.subspan(begin[k], begin[k + 1] - begin[k]); }
};
Groups group(Arena& arena, size_t keys, std::span<const Pair> pairs) {
  Groups g{arena.make_span<uint32_t>(keys + 2), arena.make_span<uint32_t>(pairs.size())};
  for (Pair p : pairs) ++g.begin[p.key + 2];
  for (size_t k = 2; k < g.begin.size(); ++k) g.begin[k] += g.begin[k - 1];
  for (Pair p : pairs) g.values[g.begin[p.key + 1]++] = p.value;
  return g;
}

// What the blocks do with a register. Lists are of nodes, by block.
struct Node {
  uint32_t block, next;
};
struct Register {
  uint32_t killed = UINT32_MAX;  // the last block that ends its life before the block's end
  uint32_t seen = UINT32_MAX;    // the last block that reads it before any write that ends lives
  uint32_t uses = UINT32_MAX;    // all of those
  uint32_t kills = UINT32_MAX;   // blocks that end its life, but the last
  uint32_t weak = UINT32_MAX;    // blocks that write it, but under guards
};

}  // namespace

Liveness compute_liveness(const Function& f) {
  Arena& arena = *f.arena;
  Liveness result;
  result.units = list_units(f);
  const Units& units = result.units;
  const uint32_t n = static_cast<uint32_t>(f.blocks.size());
  constexpr uint32_t nobody = UINT32_MAX;

  ArenaList<Pair> in(arena, f.layout.size() * 8 + 16), out(arena, f.layout.size() * 8 + 16);
  {
    // Results stay in the arena, so what is only needed here comes after them or is small.
    ArenaList<Pair> edges(arena, f.layout.size() * 2);
    ArenaList<Node> nodes(arena, f.layout.size() * 4 + 16);
    std::span<Register> registers = arena.make_span<Register>(units.tracked);
    const auto push = [&](uint32_t& list, uint32_t block) { list = nodes.push({block, list}); };
    for (BlockId b : f.layout) {
      const uint32_t block = index(b);
      for_each_successor(f.blocks[b], [&](BlockId s) { edges.push({index(s), block}); });
      auto expose = [&](Register& r) {
        if (r.killed == block || r.seen == block) return;
        r.seen = block;
        push(r.uses, block);
      };
      for (InstId i : f.blocks[b].code) {
        const auto [reads, writes, end] = units.of(i);
        for (const uint32_t* u = reads; u != writes; ++u)
          if (*u < units.tracked) expose(registers[*u]);
        for (const uint32_t* w = writes; w != end; ++w) {
          const uint32_t u = *w & ~Units::lasts;
          if (u >= units.tracked) continue;
          Register& x = registers[u];
          if (*w & Units::lasts) {
            expose(x), push(x.weak, block);
          } else if (x.killed != block) {
            if (x.killed != nobody) push(x.kills, x.killed);
            x.killed = block;
          }
        }
      }
      if (const uint32_t p = f.blocks[b].predicate; p >= isa::first_virtual) expose(registers[units.predicate(p)]);
    }

    const Groups predecessors = group(arena, n, edges.all());
    std::span<uint32_t> ends_in = arena.make_span<uint32_t>(n, nobody), is_in = arena.make_span<uint32_t>(n, nobody),
                        is_out = arena.make_span<uint32_t>(n, nobody), defined = arena.make_span<uint32_t>(n, nobody);
    std::span<uint32_t> work = arena.make_span<uint32_t>(n), blocks = arena.make_span<uint32_t>(n);
    const uint32_t entry = index(f.layout[0]);
    for (uint32_t x = 0; x < units.tracked; ++x) {
      const Register& r = registers[x];
      if (r.uses == nobody) continue;
      if (r.killed != nobody) ends_in[r.killed] = x;
      for (uint32_t k = r.kills; k != nobody; k = nodes[k].next) ends_in[nodes[k].block] = x;
      size_t count = 0;  // blocks where x is live in: visited ones and those to visit
      for (uint32_t k = r.uses; k != nobody; k = nodes[k].next)
        is_in[nodes[k].block] = x, blocks[count++] = nodes[k].block;
      for (size_t at = 0; at < count; ++at)
        for (uint32_t p : predecessors[blocks[at]])
          if (ends_in[p] != x && is_in[p] != x) is_in[p] = x, blocks[count++] = p;
      const bool undefined = is_in[entry] == x;
      if (undefined) {
        // Blocks that some write reaches.
        size_t pending = 0;
        auto reach = [&](uint32_t from) {
          for_each_successor(f.blocks[BlockId{from}], [&](BlockId s) {
            if (defined[index(s)] != x) defined[index(s)] = x, work[pending++] = index(s);
          });
        };
        if (r.killed != nobody) reach(r.killed);
        for (uint32_t list : {r.kills, r.weak})
          for (uint32_t k = list; k != nobody; k = nodes[k].next) reach(nodes[k].block);
        while (pending) reach(work[--pending]);
      }
      for (size_t at = 0; at < count; ++at) {
        const uint32_t b = blocks[at];
        if (undefined && defined[b] != x) continue;
        in.push({b, x});
        for (uint32_t p : predecessors[b])
          if (is_out[p] != x) is_out[p] = x, out.push({p, x});
      }
    }
  }
  const Groups live_in = group(arena, n, in.all()), live_out = group(arena, n, out.all());
  result.in_begin = live_in.begin, result.in_values = live_in.values;
  result.out_begin = live_out.begin, result.out_values = live_out.values;
  return result;
}

uint32_t register_pressure(const Function& f, const Liveness& live) {
  ArenaScope scope(*f.arena);
  const Units& units = live.units;
  // By unit: number of the block in which it is alive.
  std::span<uint32_t> alive = f.arena->make_span<uint32_t>(units.gprs);
  uint32_t most = 0, block = 0;
  for (BlockId b : f.layout) {
    ++block;
    uint32_t now = 0;
    auto begin = [&](uint32_t u) {
      if (u >= units.gprs) return;
      now += alive[u] != block;
      alive[u] = block;
    };
    for (uint32_t u : live.out(b)) begin(u);
    most = std::max(most, now);
    const std::vector<InstId>& code = f.blocks[b].code;
    for (size_t k = code.size(); k-- > 0;) {
      const auto [reads, writes, end] = units.of(code[k]);
      uint32_t ended = 0;  // units whose lives begin here
      for (const uint32_t* w = writes; w != end; ++w) {
        if (*w & Units::lasts) {
          begin(*w & ~Units::lasts);
        } else if (*w < units.gprs) {
          now -= alive[*w] == block;
          alive[*w] = 0;
          ++ended;
        }
      }
      most = std::max(most, now + ended);
      for (const uint32_t* u = reads; u != writes; ++u) begin(*u);
      most = std::max(most, now);
    }
  }
  return most;
}

}  // namespace rndn::assembler
