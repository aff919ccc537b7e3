// Stall counts and scoreboards of the final stream.
//
// Input: allocated code in its final order with explicit branches. Output: Facts::control of every instruction.
//
// Fixed latencies: inside a block an instruction issues no earlier than each producer's issue plus the distance of isa/latencies.h; the stall of the
// instruction before it makes up the difference. At the end of a block everything in flight is drained, so that no block depends on the times
// of another.
// Variable latencies: a producer sets one of six scoreboards; whoever touches its result first waits for it. Which scoreboards are pending for
// which register is a forward data flow over the stream's blocks (union at joins), so that an outstanding scoreboard is waited for by the first
// reader on every path. Waiting clears a scoreboard as a whole (it counts all its producers down to zero).
// Read barriers: instructions that read their sources late get one when a source may be overwritten before the instruction is known to be done:
// stores always, others when the block shows such a write or ends first.
// Scoreboards by use: 0..2 global memory, 3 shared memory and other lanes, 4 FP64 and function units, 5 late reads; a busy one gives way to a
// free one of the first five. Where copies to shared memory are waited for in groups, scoreboard 0 counts these alone, as in ptxas's code:
// LDGDEPBAR raises it, DEPBAR.LE waits until few enough are left.
// All of this is done in one walk over each block. What a branch back leaves pending is followed then, through the blocks that it reaches, until
// something waits for it. Times run on from block to block, so that what is remembered of earlier blocks has always settled and is never cleared.
// Cost: O(operands) per instruction; what is followed goes a few instructions far.
//
// Left out: reuse flags, dual issue, DEPBAR's partial waits for anything but copies.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "assembler/backend/backend.h"
#include "assembler/machine/inst_facts.h"
#include "assembler/machine/latency.h"
#include "assembler/machine/options.h"

namespace rndn::assembler {
namespace {

using L = isa::LatencyClass;

using Lists = RegisterLists;
constexpr uint32_t carry = Lists::condition_code, resource_count = Lists::count;
constexpr uint8_t no_scoreboard = 7, late_read_scoreboard = 5, copy_scoreboard = 0;
constexpr uint32_t most_cycles = 16;  // no distance is longer

uint8_t bit(uint8_t scoreboard) {
  static_assert(no_scoreboard > late_read_scoreboard);
  return static_cast<uint8_t>(1u << scoreboard & ((2u << late_read_scoreboard) - 1));
}

// Scoreboards pending per register. Remembers per scoreboard which registers name it, so that waiting costs what it clears.
class State {
 public:
  // A register, whether it is read late (else written), and a scoreboard.
  struct Entry {
    uint16_t place;
    uint8_t scoreboard;
  };
  explicit State(Arena& arena) : named_(arena.make_raw<uint16_t>(size_t{6} * places)) {}
  uint8_t any() const { return any_; }
  // Scoreboards of what will be written to the register, and of that and what may still be read from it.
  uint8_t writes(uint32_t r) const { return pending_[r]; }
  uint8_t accesses(uint32_t r) const { return pending_[r] | pending_[reading + r]; }
  void set_write(uint32_t r, uint8_t scoreboard) { set({static_cast<uint16_t>(r), scoreboard}); }
  void set_read(uint32_t r, uint8_t scoreboard) { set({static_cast<uint16_t>(reading + r), scoreboard}); }
  void set(Entry e) {
    any_ |= bit(e.scoreboard);
    uint8_t& x = pending_[e.place];
    if (x & bit(e.scoreboard)) return;
    x |= bit(e.scoreboard);
    named_[e.scoreboard * places + counts_[e.scoreboard]++] = e.place;
  }
  void clear(uint8_t mask) {
    mask &= any_;
    any_ &= static_cast<uint8_t>(~mask);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      const uint32_t s = static_cast<uint32_t>(std::countr_zero(rest));
      for (uint32_t k = 0; k < counts_[s]; ++k) pending_[named_[s * places + k]] &= static_cast<uint8_t>(~(1u << s));
      counts_[s] = 0;
    }
  }
  bool pending(Entry e) const { return (pending_[e.place] & bit(e.scoreboard)) != 0; }
  template <class F>
  void for_each(F&& f) const {
    for (uint8_t s = 0; s < 6; ++s)
      for (uint32_t k = 0; k < counts_[s]; ++k) f(Entry{named_[s * places + k], s});
  }

 private:
  static constexpr uint32_t reading = resource_count, places = 2 * reading;
  std::array<uint8_t, places> pending_{};
  std::span<uint16_t> named_;  // by scoreboard: places that name it
  std::array<uint32_t, 6> counts_{};
  uint8_t any_ = 0;
};

struct Assigner {
  Function& f;
  Code& code;
  const isa::Target& t = *f.target;
  Arena& arena = *f.arena;
  const Distances distances{t};
  Distances::Settled settled{present()};
  State state{arena}, at_target{arena};

  // What is pending where a block begins: a list that grows.
  struct Known {
    State::Entry entry;
    uint32_t next;
  };
  ArenaList<Known> known{arena, 256};
  std::span<uint32_t> in = arena.make_span<uint32_t>(code.blocks.size(), UINT32_MAX);

  // The last write of a register. A guarded write may leave the register as the write before made it: that one counts too. Of three in flight,
  // the oldest settles before the youngest issues.
  struct Write {
    uint32_t time = 0, inst = 0, older_time = 0, older_inst = 0;
    const uint8_t* distances = Distances::nothing.data();  // of the instruction
  };
  std::span<Write> last = arena.make_raw<Write>(resource_count);
  uint32_t time = most_cycles;

  // Announced late readers of each register within the block, by links after `first_link`.
  struct Link {
    uint32_t reader, next;
  };
  ArenaList<Link> links{arena, 256};
  std::span<uint32_t> readers = arena.make_raw<uint32_t>(resource_count);
  uint32_t first_link = 0;
  ArenaList<uint32_t> late{arena, 64};  // announced late readers of the block without a read barrier
  std::array<uint32_t, 8> waited{};     // by scoreboard: place in the stream of the last wait in the block
  const uint8_t kept = present() >> static_cast<unsigned>(L::async_copy) & 1 ? bit(copy_scoreboard) : 0;  // for copies
  uint8_t last_global = kept ? 1 : 0;

  Facts& at(uint32_t k) { return f.facts[index(code.order[k])]; }
  uint64_t present() {  // latency classes of the kernel
    if (f.alone) return (uint64_t{1} << isa::latency_class_count) - 1;
    uint64_t classes = 0;
    for (InstId i : code.order) classes |= uint64_t{1} << static_cast<unsigned>(f.facts[index(i)].latency);
    return classes;
  }

  // Gives the late reader at p a read barrier, unless it is known to be done; returns whether there is something to wait for now.
  bool bar_late_read(uint32_t p, uint32_t now) {
    isa::Control& c = at(p).control;
    if (c.read_barrier != no_scoreboard || waited[c.write_barrier] > p) return false;
    c.read_barrier = late_read_scoreboard;
    // A scoreboard is visible after two cycles.
    if (p + 1 < now && (at(p + 1).control.wait_mask & bit(late_read_scoreboard)))
      c.stall = std::max(c.stall, isa::scoreboard_distance);
    return waited[late_read_scoreboard] <= p;
  }

  // For results: global memory takes the first free of three; others have a favourite.
  uint8_t choose(const Facts& x) {
    auto is_free = [&](uint8_t s) { return !((state.any() | kept) >> s & 1); };
    switch (x.latency) {
      case L::global_load:
      case L::global_atomic:
      case L::local_load:
        for (uint8_t s : {0, 1, 2})
          if (is_free(s)) return last_global = s;
        return last_global;  // joins the youngest: it returns last
      default: break;
    }
    const uint8_t want = x.latency == L::fp64 || x.latency == L::sfu ? 4 : 3;
    if (is_free(want)) return want;
    for (uint8_t s : {3, 4, 2, 1, 0})
      if (is_free(s)) return s;
    return want;
  }

  void write(uint32_t r, uint32_t inst, const Facts& x) {
    Write& w = last[r];
    w.older_time = x.guarded ? w.time : 0;
    w.older_inst = w.inst;
    w.time = time, w.inst = inst, w.distances = distances.of(x);
  }

  void walk(const CodeBlock& b) {
    if (b.begin == b.end) return;
    time += most_cycles;
    first_link = static_cast<uint32_t>(links.size());
    late.clear();
    waited.fill(0);
    uint32_t previous_time = time, drained = 0;
    for (uint32_t k = b.begin; k < b.end; ++k) {
      const uint32_t inst = index(code.order[k]);
      Facts& x = f.facts[inst];
      const Lists::List list = f.registers.of(code.order[k]);
      isa::Control& c = x.control;
      uint32_t earliest = time;
      uint8_t pending = 0;  // scoreboards to wait for
      // Whether a source is young follows no pattern: no branch. What an old one needs has passed.
      const auto read = [&](uint32_t u, bool guard) {
        pending |= state.writes(u);
        const Write& w = last[u];
        const uint32_t place = Distances::place(Lists::file_of(u), guard, x);
        earliest = std::max(earliest, w.time + w.distances[place]);
        if (w.older_time + most_cycles > time) [[unlikely]]
          earliest = std::max(earliest, w.older_time + distances.of(f.facts[w.older_inst])[place]);
      };
      for (uint32_t u : list.sources(x)) read(u, false);
      if (x.guarded) read(list.writes[-1], true);
      for (uint32_t u : list.all_writes()) {
        pending |= state.accesses(u);
        const Write& w = last[u];
        if (w.time + most_cycles <= time) continue;
        const Range::File file = Lists::file_of(u);
        earliest = std::max(earliest, w.time + distances.write_after_write(f.facts[w.inst], x, file));
        if (w.older_time + most_cycles <= time) continue;
        const Facts& older = f.facts[w.older_inst];
        earliest = std::max(earliest, w.older_time + distances.write_after_write(older, x, file));
        if (x.guarded) earliest = std::max(earliest, w.older_time + distances.settled(older, file, settled));
      }
      if (x.reads_carry)
        if (const Write& w = last[carry]; w.time + most_cycles > time)
          earliest = std::max(earliest, w.time + distances.carry(f.facts[w.inst], x));

      // Scoreboards.
      uint8_t waits = pending;
      for (uint32_t rest = waits; rest; rest &= rest - 1) waited[static_cast<size_t>(std::countr_zero(rest))] = k;
      if (links.size() > first_link)
        for (uint32_t u : list.all_writes()) {
          for (uint32_t l = readers[u]; l > first_link; l = links[l - 1].next)
            if (bar_late_read(links[l - 1].reader, k)) waits |= bit(late_read_scoreboard);
          readers[u] = 0;
        }
      if (waits & bit(late_read_scoreboard)) waited[late_read_scoreboard] = k;
      c.wait_mask = waits;
      if (waits) state.clear(waits);
      if (x.announced) {
        if (c.write_barrier == no_scoreboard) c.write_barrier = choose(x);
        for (uint32_t r : list.all_writes()) state.set_write(r, c.write_barrier);
      }
      if (x.latency == L::async_copy && f[code.order[k]].sass.mnemonic == isa::Mnemonic::LDGDEPBAR)
        c.write_barrier = copy_scoreboard;
      if (x.late) {
        bool sources = false;
        for (uint32_t r : list.all_reads()) sources |= r < Lists::base[Range::predicate];
        if (!x.announced && sources) c.read_barrier = late_read_scoreboard;
        if (c.read_barrier != no_scoreboard) {
          for (uint32_t r : list.sources(x)) state.set_read(r, c.read_barrier);
        } else if (sources) {
          late.push(k);
          for (uint32_t u : list.sources(x)) readers[u] = links.push({k, readers[u]}) + 1;
        }
      }

      // Time.
      if (k > b.begin) {
        isa::Control& before = at(k - 1).control;
        if ((bit(before.write_barrier) | bit(before.read_barrier)) & waits)
          earliest = std::max<uint32_t>(earliest, previous_time + isa::scoreboard_distance);
        before.stall = static_cast<uint8_t>(std::min(earliest - previous_time, 15u));
        time = earliest;
      }
      for (uint32_t u : list.all_writes()) {
        write(u, inst, x);
        drained = std::max(drained, time + distances.settled(x, Lists::file_of(u), settled));
      }
      if (x.writes_carry) {
        write(carry, inst, x);
        drained = std::max(drained, time + distances.settled_carry(x));
      }
      previous_time = time;
      c.stall = x.least_stall;
      // A branch that is not the last leaves the block too: what is in flight is drained before it does.
      if (x.latency == L::branch && k + 1 < b.end && drained > time)
        c.stall = static_cast<uint8_t>(std::min(15u, std::max<uint32_t>(c.stall, drained - time)));
      time += c.stall;
    }
    if (b.successor_count)
      for (uint32_t p : late.all())
        if (bar_late_read(p, b.end))
          for (uint32_t r : f.registers.of(code.order[p]).sources(at(p))) state.set_read(r, late_read_scoreboard);
    // Drain. The last instruction may also set a scoreboard that the next block waits for at once.
    isa::Control& end = at(b.end - 1).control;
    uint32_t until = std::max(previous_time + 1, drained);
    if (end.write_barrier != no_scoreboard || end.read_barrier != no_scoreboard)
      until = std::max<uint32_t>(until, previous_time + isa::scoreboard_distance);
    end.stall = static_cast<uint8_t>(std::min(15u, std::max<uint32_t>(end.stall, until - previous_time)));
    time = previous_time + most_cycles;
  }

  // Follows what is newly known to be pending where block b begins: it stays pending until an instruction waits for it, which it does at the latest
  // when it touches the register.
  void follow(const CodeBlock& b) {
    for (uint32_t k = b.begin; k < b.end && state.any(); ++k) {
      Facts& x = at(k);
      isa::Control& c = x.control;
      const Lists::List list = f.registers.of(code.order[k]);
      uint8_t pending = 0;
      for (uint32_t r : list.all_reads()) pending |= state.writes(r);
      for (uint32_t r : list.all_writes()) pending |= state.accesses(r);
      const uint8_t fresh = pending & static_cast<uint8_t>(~c.wait_mask);
      if (fresh && k > b.begin) {
        isa::Control& before = at(k - 1).control;
        if ((bit(before.write_barrier) | bit(before.read_barrier)) & fresh)
          before.stall = std::max(before.stall, isa::scoreboard_distance);
      }
      c.wait_mask |= fresh;
      state.clear(c.wait_mask);
    }
  }

  // Adds what is pending now to what is known where block s begins; returns whether anything is new.
  bool merge(uint32_t s) {
    bool changed = false;
    const uint32_t before = in[s];
    at_target.clear(at_target.any());
    for (uint32_t e = before; e != UINT32_MAX; e = known[e].next) at_target.set(known[e].entry);
    state.for_each([&](State::Entry e) {
      if (before != UINT32_MAX && at_target.pending(e)) return;
      in[s] = known.push({e, in[s]});
      changed = true;
    });
    return changed;
  }

  // Nothing has been written or read yet; GPRs beyond those in use are left alone.
  void start() {
    const size_t gprs = f.calls ? Lists::base[1] : std::max(f.registers_used, stack_register + 1);
    for (const auto& [from, count] :
         {std::pair{size_t{0}, gprs}, {size_t{Lists::base[1]}, resource_count - Lists::base[1]}}) {
      std::ranges::fill(last.subspan(from, count), Write{});
      std::ranges::fill(readers.subspan(from, count), 0u);
    }
  }

  void run() {
    start();
    // What was known of a block when it was walked, or followed, last.
    std::span<uint32_t> walked = arena.make_span<uint32_t>(code.blocks.size(), UINT32_MAX);
    std::span<bool> queued = arena.make_span<bool>(code.blocks.size());
    bool changed = false;
    for (uint32_t b = 0; b < code.blocks.size(); ++b) {
      state.clear(state.any());
      for (uint32_t e = in[b]; e != UINT32_MAX; e = known[e].next) state.set(known[e].entry);
      walked[b] = in[b];
      walk(code.blocks[b]);
      if (!state.any()) continue;
      for (uint32_t s : code.blocks[b].successors())
        if (merge(s) && s <= b) queued[s] = changed = true;
    }
    while (changed) {
      changed = false;
      for (uint32_t b = 0; b < code.blocks.size(); ++b) {
        if (!queued[b]) continue;
        queued[b] = false;
        state.clear(state.any());
        for (uint32_t e = in[b]; e != walked[b]; e = known[e].next) state.set(known[e].entry);
        walked[b] = in[b];
        follow(code.blocks[b]);
        if (!state.any()) continue;
        for (uint32_t s : code.blocks[b].successors())
          if (merge(s)) queued[s] = true, changed |= s <= b;
      }
    }
    for (InstId i : code.order) {
      Facts& x = f.facts[index(i)];
      isa::Control& c = x.control;
      // The callee knows nothing of what is under way, nor does who has called.
      if (x.latency == L::branch && f[i].call != Call::none) c.wait_mask = 0x3f;
      if (f.collective && x.latency == L::convergence)  // nor does code that another place runs
        if (const isa::Mnemonic m = f[i].sass.mnemonic;
            m == isa::Mnemonic::WARPSYNC_COLLECTIVE || m == isa::Mnemonic::ENDCOLLECTIVE)
          c.wait_mask = 0x3f;
      c.yield = yields(t, x.latency, c.stall);
    }
  }
};

}  // namespace

void assign_barriers(Function& f, Code& code) {
  ArenaScope scope(*f.arena);
  Assigner a{.f = f, .code = code};
  a.run();
}

// Longer stalls than the schedule needs, up to 11 cycles: beyond, stalls and the yield bit mean something else.
void lengthen_stalls(Function& f, const Code& code, const Options& o) {
  if (o.stalls == Stalls::scheduled) return;
  constexpr uint8_t longest = 11;
  uint64_t state = o.stall_seed;
  for (InstId id : code.order) {
    uint8_t& stall = f.facts[index(id)].control.stall;
    if (stall >= longest) continue;
    state = state * 6364136223846793005u + 1442695040888963407u;
    stall = o.stalls == Stalls::maximal
                ? longest
                : static_cast<uint8_t>(stall + (state >> 33) % static_cast<uint64_t>(longest - stall + 1));
  }
}

}  // namespace rndn::assembler
