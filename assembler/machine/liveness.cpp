// Liveness of virtual registers at block boundaries.
//
// Registers that some block reads before it writes them are numbered; the others live in one block, cost nothing and appear in no set. The
// numbered ones go 64 at a time, a word per block, backwards from the blocks that read them along predecessors, until a block writes them:
// path exploration by use (Boissinot, Darte, Rastello, Dupont de Dinechin, Guillon, "Revisiting Out-of-SSA Translation", 2009), for many
// registers at once. Neighbouring numbers, given by first use, live in the same blocks, so that a word is seldom nearly empty.
// A guarded write does not end a life. A guarded write to a temporary of one expansion does: its readers run under the same guard. A register
// that is alive at the function's entry is not defined on some path; it is kept to the blocks that some definition reaches, or a register that
// is only ever written under guards would seem alive from the entry.
// Cost: O(instructions + total size of the sets).
#include <algorithm>
#include <bit>

#include "assembler/machine/liveness.h"

namespace rndn::assembler {
namespace {


// What the blocks do with a register. Lists are of nodes, by block.
struct Node {
  uint32_t block, next;
};
struct Register {
  uint32_t killed = nobody;  // the last block that ends its life before the block's end
  uint32_t seen = nobody;    // the last block that reads it before any write that ends lives
  uint32_t uses = nobody;    // all of those
  uint32_t kills = nobody;   // blocks that end its life, but the last
  uint32_t weak = nobody;    // blocks that write it, but under guards
};

// Live registers of 64 neighbouring numbers where a block begins.
struct Word {
  LiveSet::Word set;
  uint32_t next;  // of the block
};
struct Words {
  uint32_t first = nobody, last = nobody;
};

// The words of a chunk while it is solved, by block.
struct Solving {
  uint64_t in = 0, kill = 0;
  uint64_t defined = 0;  // reached by a definition; only of what is alive at the entry
  bool queued = false;
};

class Solver {
 public:
  explicit Solver(const Function& f) : f_(f), units_(f.units) {}

  Liveness run() {
    scan();
    predecessors();
    for (uint32_t first = 0; first < numbered_.size(); first += 64)
      solve(first, std::min<uint32_t>(64, static_cast<uint32_t>(numbered_.size()) - first));
    const Liveness::Sets in = gather(in_);
    return {numbered_.all().data(), in, at_ends(in), gather(undefined_)};
  }

 private:
  void push(uint32_t& list, uint32_t block) { list = nodes_.push({block, list}); }

  // What each block reads before it writes it, and writes.
  void scan() {
    Register* const registers = registers_.data();
    for (BlockId b : f_.layout) {
      const uint32_t block = index(b);
      const auto expose = [&](uint32_t u) {
        Register& r = registers[u];
        if (r.killed == block || r.seen == block) return;
        r.seen = block;
        if (r.uses == nobody) numbered_.push(u);
        push(r.uses, block);
      };
      for (InstId i : f_.blocks[b].code) {
        const auto [reads, writes, end] = units_.of(i);
        if (f_.facts[index(i)].crosses)
          for (const uint32_t* u = reads; u != writes; ++u)
            if (units_.is_allocated(*u)) expose(*u);
        for (const uint32_t* w = writes; w != end; ++w) {
          const uint32_t u = *w & ~Units::lasts;
          if (!units_.is_allocated(u)) continue;
          Register& x = registers[u];
          if (*w & Units::lasts) {
            expose(u), push(x.weak, block);
          } else if (x.killed != block) {
            if (x.killed != nobody) push(x.kills, x.killed);
            x.killed = block;
          }
        }
      }
      if (const uint32_t p = f_.blocks[b].predicate; p >= isa::first_virtual) expose(units_.of(Range::predicate, p));
    }
  }

  void predecessors() {
    const size_t n = f_.blocks.size();
    before_ = f_.arena->make_span<uint32_t>(n + 2, 0);
    for (BlockId b : f_.layout) for_each_successor(f_.blocks[b], [&](BlockId s) { ++before_[index(s) + 2]; });
    for (size_t k = 2; k < before_.size(); ++k) before_[k] += before_[k - 1];
    edges_ = f_.arena->make_raw<uint32_t>(before_[n + 1]);
    for (BlockId b : f_.layout)
      for_each_successor(f_.blocks[b], [&](BlockId s) { edges_[before_[index(s) + 1]++] = index(b); });
  }

  template <class F>
  void for_each_write(const Register& r, bool guarded, F&& use) {
    if (r.killed != nobody) use(r.killed);
    for (uint32_t k = r.kills; k != nobody; k = nodes_[k].next) use(nodes_[k].block);
    if (guarded)
      for (uint32_t k = r.weak; k != nobody; k = nodes_[k].next) use(nodes_[k].block);
  }

  // Numbers [first, first + count): adds a word to every block where some of them are alive.
  void solve(uint32_t first, uint32_t count) {
    uint32_t pending = 0;
    const auto queue = [&](uint32_t b) {
      if (!at_[b].queued) at_[b].queued = true, work_[pending++] = b;
    };
    touched_.clear();
    const auto add = [&](uint32_t b, uint64_t bits) {
      if (at_[b].in == 0) touched_.push(b);
      at_[b].in |= bits;
      queue(b);
    };
    for (uint32_t k = 0; k < count; ++k) {
      const Register& r = registers_[numbered_[first + k]];
      for_each_write(r, false, [&](uint32_t b) { at_[b].kill |= uint64_t{1} << k; });
      for (uint32_t u = r.uses; u != nobody; u = nodes_[u].next) add(nodes_[u].block, uint64_t{1} << k);
    }
    while (pending) {
      const uint32_t b = work_[--pending];
      at_[b].queued = false;
      const uint64_t in = at_[b].in;
      for (uint32_t e = before_[b]; e < before_[b + 1]; ++e)
        if (const uint32_t p = edges_[e]; in & ~(at_[p].kill | at_[p].in)) add(p, in & ~at_[p].kill);
    }
    const uint64_t undefined = at_[index(f_.layout[0])].in;
    if (undefined) keep_defined(first, undefined);
    for (uint32_t b : touched_.all()) {
      if (at_[b].in) append(in_[b], {at_[b].in, first / 64});
      at_[b].in = 0;
    }
    for (uint32_t k = 0; k < count; ++k)
      for_each_write(registers_[numbered_[first + k]], false, [&](uint32_t b) { at_[b].kill = 0; });
  }

  // Keeps the registers of the set to the blocks that some write of theirs reaches.
  void keep_defined(uint32_t first, uint64_t set) {
    uint32_t pending = 0;
    const auto reach = [&](uint32_t from, uint64_t bits) {
      for_each_successor(f_.blocks[BlockId{from}], [&](BlockId s) {
        Solving& x = at_[index(s)];
        if (!(bits & ~x.defined)) return;
        x.defined |= bits;
        if (!x.queued) x.queued = true, work_[pending++] = index(s);
      });
    };
    for (uint64_t rest = set; rest; rest &= rest - 1)
      for_each_write(registers_[numbered_[first + static_cast<uint32_t>(std::countr_zero(rest))]], true,
                     [&](uint32_t b) { reach(b, rest & -rest); });
    while (pending) {
      const uint32_t b = work_[--pending];
      at_[b].queued = false;
      reach(b, at_[b].defined);
    }
    for (uint32_t b : touched_.all())
      if (const uint64_t without = at_[b].in & set & ~at_[b].defined) {
        if (undefined_.empty()) undefined_ = f_.arena->make_span<Words>(n_, Words{});
        append(undefined_[b], {without, first / 64});
        at_[b].in ^= without;
      }
    for (BlockId b : f_.layout) at_[index(b)].defined = 0;
  }

  void append(Words& list, LiveSet::Word set) {
    const uint32_t w = words_.push({set, nobody});
    (list.first == nobody ? list.first : words_[list.last].next) = w;
    list.last = w;
  }

  // The words of all blocks one after another.
  Liveness::Sets gather(std::span<const Words> lists) const {
    if (lists.empty()) return {};
    const std::span<uint32_t> begin = f_.arena->make_raw<uint32_t>(n_ + 1);
    const std::span<LiveSet::Word> words = f_.arena->make_raw<LiveSet::Word>(words_.size());
    uint32_t at = 0;
    for (size_t b = 0; b < n_; ++b) {
      begin[b] = at;
      for (uint32_t w = lists[b].first; w != nobody; w = words_[w].next) words[at++] = words_[w].set;
    }
    begin[n_] = at;
    return {begin, words.first(at)};
  }

  // What is alive where blocks end: where one of their successors begins.
  Liveness::Sets at_ends(const Liveness::Sets& in) const {
    const auto of = [&](BlockId b) {
      if (is_none(b)) return std::span<const LiveSet::Word>();
      return in.words.subspan(in.begin[index(b)], in.begin[index(b) + 1] - in.begin[index(b)]);
    };
    const std::span<uint32_t> begin = f_.arena->make_raw<uint32_t>(n_ + 1);
    ArenaList<LiveSet::Word> words(*f_.arena, 2 * in.words.size());
    for (size_t b = 0; b < n_; ++b) {
      begin[b] = static_cast<uint32_t>(words.size());
      const Block& x = f_.blocks[BlockId{static_cast<uint32_t>(b)}];
      LiveSet::for_each_word(of(x.taken), of(x.next), [&](uint64_t taken, uint64_t next, uint32_t chunk) {
        words.push({taken | next, chunk});
      });
    }
    begin[n_] = static_cast<uint32_t>(words.size());
    return {begin, words.all()};
  }

  const Function& f_;
  const Units& units_;
  const size_t n_ = f_.blocks.size();
  ArenaList<Node> nodes_{*f_.arena, f_.layout.size() * 4 + 64};
  ArenaList<uint32_t> numbered_{*f_.arena, 256};
  ArenaList<uint32_t> touched_{*f_.arena, n_};
  ArenaList<Word> words_{*f_.arena, n_ * 2};
  std::span<Register> registers_ = f_.arena->make_span<Register>(units_.count, Register{});
  std::span<Solving> at_ = f_.arena->make_span<Solving>(n_, Solving{});
  std::span<uint32_t> work_ = f_.arena->make_raw<uint32_t>(n_);
  std::span<Words> in_ = f_.arena->make_span<Words>(n_, Words{});
  std::span<Words> undefined_;  // of what is not defined on any path; empty until there is some
  std::span<uint32_t> before_, edges_;  // predecessors of block b: edges_[before_[b]] .. edges_[before_[b + 1]]
};

// How many GPRs are alive at once at an instruction; `now` are behind it, then in front of it. Where lives begin and end follows no pattern: no branches.
inline uint32_t step(const Units& units, InstId i, uint32_t* alive, uint32_t number, uint32_t& now) {
  const auto [reads, writes, end] = units.of(i);
  uint32_t results = 0;  // also those that nobody reads
  for (const uint32_t* w = writes; w != end; ++w) {
    const uint32_t u = *w & ~Units::lasts, is_gpr = units.is_gpr(u), was_alive = alive[u] == number;
    if (*w & Units::lasts) {
      now += is_gpr & ~was_alive;
      alive[u] = number;
    } else {
      now -= is_gpr & was_alive;
      results += is_gpr;
      alive[u] = 0;
    }
  }
  const uint32_t with_results = now + results;
  for (const uint32_t* u = reads; u != writes; ++u) {
    now += static_cast<uint32_t>(units.is_gpr(*u)) & static_cast<uint32_t>(alive[*u] != number);
    alive[*u] = number;
  }
  return std::max(with_results, now);
}

}  // namespace

Liveness compute_liveness(Function& f) {
  f.units.count = f.units.first_gpr + static_cast<uint32_t>(f.gprs.size());
  return Solver(f).run();
}

PressureOf::PressureOf(const Function& f, const Liveness& live)
    : units_(f.units), live_(live), alive_(f.arena->make_span<uint32_t>(f.units.count)) {}

uint32_t PressureOf::start(BlockId b) {
  ++number_, now_ = 0;
  for (uint32_t u : live_.out(b)) alive_[u] = number_, now_ += units_.is_gpr(u);
  return now_;
}

uint32_t PressureOf::before(InstId i) { return step(units_, i, alive_.data(), number_, now_); }

uint32_t PressureOf::block(BlockId b, std::span<const InstId> code) {
  uint32_t most = start(b), now = now_;
  for (size_t k = code.size(); k-- > 0;)
    most = std::max(most, step(units_, code[k], alive_.data(), number_, now));
  return most;
}

uint32_t register_pressure(const Function& f, const Liveness& live) {
  ArenaScope scope(*f.arena);
  PressureOf pressure(f, live);
  uint32_t most = 0;
  for (BlockId b : f.layout) most = std::max(most, pressure.block(b, f.blocks[b].code));
  return most;
}

}  // namespace rndn::assembler
