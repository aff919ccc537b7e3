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
// free one of the first five.
// Cost: O(instructions * operands + blocks * rounds * registers / 8).
//
// Left out: reuse flags, dual issue, DEPBAR's partial waits.
#include <algorithm>
#include <array>

#include "assembler/latency.h"
#include "assembler/passes.h"

namespace rndn::assembler {
namespace {

using L = isa::LatencyClass;

// Every register that an instruction can touch, by number.
constexpr uint32_t predicate_base = 256, carry = 264, uniform_base = 272, uniform_predicate_base = 336,
                   resource_count = 344;
constexpr uint32_t nobody = UINT32_MAX;
constexpr uint8_t no_scoreboard = 7, late_read_scoreboard = 5;

uint32_t resource(Range r) {
  constexpr std::array<uint32_t, 4> base = {0, predicate_base, uniform_base, uniform_predicate_base};
  return base[r.file()] + r.reg();
}
Range::File file_of(uint32_t resource) {
  return resource < predicate_base           ? Range::gpr
         : resource < uniform_base           ? Range::predicate
         : resource < uniform_predicate_base ? Range::uniform
                                             : Range::uniform_predicate;
}
uint8_t bit(uint8_t scoreboard) {
  return scoreboard == no_scoreboard ? uint8_t{0} : static_cast<uint8_t>(1u << scoreboard);
}

// Scoreboards pending per register, eight registers to a word.
struct Pending {
  static constexpr size_t words = resource_count / 8;
  std::array<uint64_t, words> write{}, read{};
  uint8_t any = 0;
  bool merge(const Pending& o) {
    if (!o.any) return false;
    uint64_t changed = o.any & ~any;
    any |= o.any;
    for (size_t w = 0; w < words; ++w) {
      changed |= (o.write[w] & ~write[w]) | (o.read[w] & ~read[w]);
      write[w] |= o.write[w], read[w] |= o.read[w];
    }
    return changed != 0;
  }
};

// What is pending at one point of the stream. Remembers per scoreboard which registers name it, so that waiting costs what it clears.
class State {
 public:
  State() {
    for (auto& list : named_) list.reserve(32);
  }
  uint8_t any() const { return any_; }
  void clear_all() { clear(any_); }
  void load(const Pending& p) {
    clear_all();
    if (!p.any) return;
    any_ = p.any;
    for (size_t w = 0; w < Pending::words; ++w) {
      for (uint64_t v = p.write[w], r = static_cast<uint32_t>(8 * w); v; v >>= 8, ++r)
        if (v & 0xff) set(write_, static_cast<uint32_t>(r), static_cast<uint8_t>(v), 0);
      for (uint64_t v = p.read[w], r = static_cast<uint32_t>(8 * w); v; v >>= 8, ++r)
        if (v & 0xff) set(read_, static_cast<uint32_t>(r), static_cast<uint8_t>(v), read_flag);
    }
  }
  void store(Pending& p) const {
    p.any = any_;
    if (!any_) return;
    for (size_t r = 0; r < resource_count; ++r) {
      p.write[r / 8] |= uint64_t{write_[r]} << r % 8 * 8;
      p.read[r / 8] |= uint64_t{read_[r]} << r % 8 * 8;
    }
  }
  // Scoreboards that the instruction must wait for.
  uint8_t waits(const Facts& x) const {
    if (!any_) return 0;
    uint8_t mask = 0;
    for (Range r : x.reads())
      for (uint32_t k = resource(r), w = 0; w < r.width(); ++w) mask |= write_[k + w];
    for (Range r : x.writes())
      for (uint32_t k = resource(r), w = 0; w < r.width(); ++w) mask |= write_[k + w] | read_[k + w];
    return mask;
  }
  void issue(const Facts& x) {
    const isa::Control& c = x.control;
    if (c.write_barrier != no_scoreboard)
      for (Range r : x.writes())
        for (uint32_t w = 0; w < r.width(); ++w) set(write_, resource(r) + w, bit(c.write_barrier), 0);
    if (c.read_barrier != no_scoreboard)
      for (Range r : x.reads())
        if (!r.guard())
          for (uint32_t w = 0; w < r.width(); ++w) set(read_, resource(r) + w, bit(c.read_barrier), read_flag);
  }
  void clear(uint8_t mask) {
    mask &= any_;
    any_ &= static_cast<uint8_t>(~mask);
    for (uint8_t s = 0; mask >> s; ++s) {
      if (!(mask >> s & 1)) continue;
      for (uint16_t entry : named_[s]) {
        uint8_t& x = entry & read_flag ? read_[entry & ~read_flag] : write_[entry];
        x &= static_cast<uint8_t>(~bit(s));
      }
      named_[s].clear();
    }
  }

 private:
  static constexpr uint16_t read_flag = 0x8000;
  void set(std::array<uint8_t, resource_count>& pending, uint32_t r, uint8_t mask, uint16_t flag) {
    any_ |= mask;
    for (uint8_t fresh = mask & static_cast<uint8_t>(~pending[r]), s = 0; fresh >> s; ++s)
      if (fresh >> s & 1) named_[s].push_back(static_cast<uint16_t>(r | flag));
    pending[r] |= mask;
  }
  std::array<uint8_t, resource_count> write_{}, read_{};
  std::array<std::vector<uint16_t>, 6> named_;
  uint8_t any_ = 0;
};

struct Assigner {
  Function& f;
  Code& code;
  const isa::Target& t = *f.target;
  Arena& arena = *f.arena;
  State state;

  Facts& at(uint32_t k) { return f.facts[index(code.order[k])]; }

  // Which instructions need a read barrier: block by block.
  void mark_late_reads() {
    struct Link {
      uint32_t reader, next;
    };
    enum : uint8_t { unknown, done };
    std::array<uint32_t, resource_count> announces,
        readers;  // late reader that writes the register; late readers of it (links)
    announces.fill(nobody);
    readers.fill(nobody);
    ArenaList<Link> links(arena, 256);
    std::vector<uint32_t> pending;  // late readers whose completion was not known when they were met
    std::vector<uint8_t> known;     // parallel to it
    std::vector<uint32_t> touched;
    for (const CodeBlock& b : code.blocks) {
      for (uint32_t r : touched) announces[r] = readers[r] = nobody;
      touched.clear();
      links.clear();
      pending.clear();
      known.clear();
      for (uint32_t k = b.begin; k < b.end; ++k) {
        Facts& x = at(k);
        if (!pending.empty()) {
          for (Range r : x.all())
            for (uint32_t w = 0; w < r.width(); ++w)
              if (const uint32_t p = announces[resource(r) + w]; p != nobody) known[p] = done;  // waits for its result
          for (Range r : x.writes())
            for (uint32_t w = 0; w < r.width(); ++w) {
              uint32_t& list = readers[resource(r) + w];
              for (; list != nobody; list = links[list].next)
                if (const uint32_t p = links[list].reader; known[p] != done)
                  known[p] = done, at(pending[p]).control.read_barrier = late_read_scoreboard;
            }
        }
        if (!x.late) continue;
        bool sources = false;
        for (Range r : x.reads()) sources |= r.file() == Range::gpr;
        if (!sources) continue;
        if (!x.announced) {
          x.control.read_barrier = late_read_scoreboard;
          continue;
        }
        const uint32_t p = static_cast<uint32_t>(pending.size());
        pending.push_back(k);
        known.push_back(unknown);
        for (Range r : x.reads())
          if (!r.guard())
            for (uint32_t w = 0; w < r.width(); ++w) {
              uint32_t& list = readers[resource(r) + w];
              list = links.push({p, list});
              touched.push_back(resource(r) + w);
            }
        for (Range r : x.writes())
          for (uint32_t w = 0; w < r.width(); ++w) announces[resource(r) + w] = p, touched.push_back(resource(r) + w);
      }
      if (b.successor_count == 0) continue;
      for (size_t p = 0; p < pending.size(); ++p)
        if (known[p] != done) at(pending[p]).control.read_barrier = late_read_scoreboard;
    }
  }

  static uint8_t preferred(const Facts& x) {
    switch (x.latency) {
      case L::global_load:
      case L::global_atomic:
      case L::local_load: return 0;
      case L::fp64:
      case L::sfu: return 4;
      default: return 3;
    }
  }
  void choose_scoreboards() {
    // A local view of what is busy suffices for the choice: correctness comes from the data flow below.
    uint8_t last_global = 0;
    for (const CodeBlock& b : code.blocks) {
      state.clear_all();
      for (uint32_t k = b.begin; k < b.end; ++k) {
        Facts& x = at(k);
        state.clear(state.waits(x));
        if (x.announced) {
          const uint8_t want = preferred(x);
          uint8_t pick = want;
          auto is_free = [&](uint8_t s) { return !(state.any() >> s & 1); };
          if (want == 0) {
            pick = no_scoreboard;
            for (uint8_t s : {0, 1, 2})
              if (is_free(s)) {
                pick = s;
                break;
              }
            if (pick == no_scoreboard) pick = last_global;  // joins the youngest: it returns last
            last_global = pick;
          } else if (!is_free(want)) {
            for (uint8_t s : {3, 4, 2, 1, 0})
              if (is_free(s)) {
                pick = s;
                break;
              }
          }
          x.control.write_barrier = pick;
        }
        state.issue(x);
      }
    }
  }

  void wait_masks() {
    std::span<Pending> in = arena.make_span<Pending>(code.blocks.size());
    std::span<bool> queued = arena.make_span<bool>(code.blocks.size(), true);
    // In order of the stream until nothing changes: two or three rounds.
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t b = 0; b < code.blocks.size(); ++b) {
        if (!queued[b]) continue;
        queued[b] = false;
        state.load(in[b]);
        for (uint32_t k = code.blocks[b].begin; k < code.blocks[b].end; ++k) {
          Facts& x = at(k);
          x.control.wait_mask = state.waits(x);
          state.clear(x.control.wait_mask);
          state.issue(x);
        }
        if (!state.any()) continue;
        Pending out;
        state.store(out);
        for (uint32_t s : code.blocks[b].successors())
          if (in[s].merge(out)) queued[s] = true, changed |= s <= b;
      }
    }
  }

  void stalls() {
    struct Write {
      uint32_t time = 0, inst = nobody;
    };
    const Distances distances(t);
    uint64_t present = 0;  // latency classes of the kernel
    for (uint32_t k = 0; k < code.order.size(); ++k) present |= uint64_t{1} << static_cast<unsigned>(at(k).latency);
    const Distances::Settled settled = distances.settle(present);
    // A guarded write may leave the register as the write before made it: that one counts too. Of three in flight, the oldest settles before the
    // youngest issues.
    std::array<Write, resource_count> last, older;
    last.fill({});
    older.fill({});
    std::vector<uint32_t> touched;
    touched.reserve(resource_count);
    const auto settles = [&](const Write& p, uint32_t r) {
      const Facts& producer = at(p.inst);
      return p.time + (r == carry ? distances.settled_carry(producer)
                                  : distances.settled(producer, file_of(r), settled));
    };
    for (const CodeBlock& b : code.blocks) {
      for (uint32_t r : touched) last[r] = older[r] = {};
      touched.clear();
      uint32_t time = 0, previous_time = 0;
      for (uint32_t k = b.begin; k < b.end; ++k) {
        Facts& x = at(k);
        uint32_t earliest = time;
        for (Range r : x.reads())
          for (uint32_t n = resource(r), w = 0; w < r.width(); ++w)
            for (const Write& p : {last[n + w], older[n + w]})
              if (p.inst != nobody)
                earliest = std::max(earliest, p.time + distances.read_after_write(at(p.inst), r, x));
        for (Range r : x.writes())
          for (uint32_t n = resource(r), w = 0; w < r.width(); ++w) {
            for (const Write& p : {last[n + w], older[n + w]})
              if (p.inst != nobody)
                earliest = std::max(earliest, p.time + distances.write_after_write(at(p.inst), x, r.file()));
            if (x.guarded && older[n + w].inst != nobody)
              earliest = std::max(earliest, settles(older[n + w], n + w));
          }
        if (x.reads_carry)
          if (const Write& p = last[carry]; p.inst != nobody)
            earliest = std::max(earliest, p.time + distances.carry(at(p.inst), x));
        if (k > b.begin) {
          isa::Control& before = at(k - 1).control;
          // A scoreboard set by the instruction right before is visible after two cycles.
          if ((bit(before.write_barrier) | bit(before.read_barrier)) & x.control.wait_mask)
            earliest = std::max<uint32_t>(earliest, previous_time + isa::scoreboard_distance);
          before.stall = static_cast<uint8_t>(std::min(earliest - previous_time, 15u));
          time = earliest;
        }
        auto record = [&](uint32_t r) {
          if (last[r].inst == nobody) touched.push_back(r);
          older[r] = x.guarded ? last[r] : Write{};
          last[r] = {time, k};
        };
        for (Range r : x.writes())
          for (uint32_t w = 0; w < r.width(); ++w) record(resource(r) + w);
        if (x.writes_carry) record(carry);
        previous_time = time;
        x.control.stall = x.least_stall;
        time += x.control.stall;
      }
      if (b.end == b.begin) continue;
      // Drain. The last instruction may also set a scoreboard that the next block waits for at once.
      uint32_t until = previous_time + 1;
      isa::Control& end = at(b.end - 1).control;
      if (end.write_barrier != no_scoreboard || end.read_barrier != no_scoreboard)
        until = previous_time + isa::scoreboard_distance;
      for (uint32_t r : touched)
        for (const Write& p : {last[r], older[r]})
          if (p.inst != nobody) until = std::max(until, settles(p, r));
      end.stall = static_cast<uint8_t>(std::min(15u, std::max<uint32_t>(end.stall, until - previous_time)));
    }
    for (uint32_t k = 0; k < code.order.size(); ++k) {
      const Facts& x = at(k);
      isa::Control& c = at(k).control;
      if (t.family == isa::Family::volta)
        // Stalls of 12 and more leave no room for the flag: nvdisasm knows no such words.
        c.yield = c.stall == 1 || (c.stall < 12 && (x.latency == L::branch || x.latency == L::barrier));
      else
        c.yield = c.stall != 12 && x.latency != L::nop;
    }
  }
};

}  // namespace

void assign_barriers(Function& f, Code& code) {
  ArenaScope scope(*f.arena);
  Assigner a{.f = f, .code = code, .state = {}};
  a.mark_late_reads();
  a.choose_scoreboards();
  a.wait_masks();
  a.stalls();
}

}  // namespace rndn::assembler
