// Virtual to physical registers: linear scan with lifetime holes.
//
// Input: any function over virtual registers. Output: operands name physical registers; wide values are aligned to their width; values that did
// not fit live in local memory ([R1 + offset]).
//
// Algorithm: Wimmer and Mössenböck, "Optimized Interval Splitting in a Linear Scan Register Allocator" (2005), without splitting: intervals are
// lists of segments, visited by start; a register is free for an interval when no interval assigned to it overlaps. The lowest free register is
// taken (occupancy counts registers) that leaves groups of free registers whole, a copy's source first. When none is free, the cheapest value
// (accesses weighted by loop depth, per unit of length) is put in local memory everywhere, and the scan starts again with loads and stores around
// its accesses. Predicates go to GPRs through SEL and ISETP. One scan serves both files. With a wanted number of registers, the pass ends when
// the values alive at once, and again when the scan, need more.
// Positions are dense, so ends and beginnings of segments, and of values, wait in lists per position: which registers are free is a bit set that is brought up to
// date while the scan moves on.
// Cost: O(positions + segments + values * holes that share a register).
//
// Left out: interval splitting and rematerialisation.
#include <algorithm>
#include <bit>

#include "assembler/build.h"
#include "assembler/passes.h"

namespace rndn::assembler {
namespace {

constexpr uint32_t nobody = UINT32_MAX;
constexpr uint32_t gpr_file = 0, predicate_file = 1;
constexpr uint32_t first_register[2] = {0, 256};  // of a file in the tables of the scan

struct Segment {
  uint32_t begin, end;  // [begin, end) in positions: an instruction reads at 2i and writes at 2i + 1
  uint32_t next;        // index of the next segment, nobody = last
};

// The life of one unit of a value: a register, or a predicate.
struct Unit {
  uint32_t first = nobody;  // segment
  uint32_t end = 0;         // of the last segment
  uint32_t open = 0;        // while lives are built: end of the current segment, 0: dead
  uint32_t place = nobody;  // the register, in the end
};

// One value: a GPR group (1, 2 or 4 units) or a predicate. Its units get neighbouring registers, but each is taken only while that unit lives.
struct Interval {
  uint32_t begin = nobody, end = 0;  // of all units together
  uint32_t hint = nobody;            // interval whose register would be best
  uint32_t reg = nobody;
  uint32_t next = nobody;  // the next interval with the same beginning
  float weight = 0;        // accesses weighted by loop depth; filled in when something must be spilled
  int8_t hint_offset = 0;
  uint8_t width = 1;
  bool spilled = false;
  bool unspillable = false;
};

struct Allocator {
  Function& f;
  Liveness live;
  const Units& lists = f.units;
  std::span<Interval> intervals;  // by unit (of GPRs only a value's first)
  std::span<Unit> units;
  uint32_t positions = 0;
  uint32_t pressure = 0;  // GPRs alive at once
  bool weighted = false;  // intervals have their weights
  ArenaList<Segment> segments{*f.arena, f.facts.size() * 2};

  uint32_t of(uint32_t reg, Range::File file) const {
    const uint32_t v = reg - isa::first_virtual;
    return file == Range::gpr ? lists.first_gpr + f.gprs[v].first : v;
  }

  // Lives from one backward walk. False, and they are not complete, when more than `most` GPRs are alive at once.
  bool build(uint32_t most) {
    intervals = f.arena->make_span<Interval>(lists.count);
    units = f.arena->make_span<Unit>(lists.count);
    positions = 0;
    for (BlockId b : f.layout) positions += 2 * static_cast<uint32_t>(f.blocks[b].code.size()) + 2;
    ArenaList<uint32_t> opened(*f.arena, 256);  // units that came to life in the block
    uint32_t alive = 0;
    auto close = [&](Unit& u, uint32_t begin) {
      if (u.end == 0) u.end = u.open;
      if (u.first != nobody && segments[u.first].begin <= u.open)
        segments[u.first].begin = begin;
      else
        u.first = segments.push({begin, u.open, u.first});
      u.open = 0;
    };
    auto begin_life = [&](uint32_t x, uint32_t end) {
      if (units[x].open) return false;
      units[x].open = end;
      opened.push(x);
      return true;
    };
    uint32_t start = positions;
    for (size_t k = f.layout.size(); k-- > 0;) {
      const Block& b = f.blocks[f.layout[k]];
      start -= 2 * static_cast<uint32_t>(b.code.size()) + 2;
      uint32_t at = start + 2 * static_cast<uint32_t>(b.code.size());
      for (uint32_t x : live.out(f.layout[k])) alive += begin_life(x, at + 2) && lists.is_gpr(x);
      if (b.predicate >= isa::first_virtual) begin_life(of(b.predicate, Range::predicate), at + 1);
      pressure = std::max(pressure, alive);
      for (size_t c = b.code.size(); c-- > 0;) {
        at -= 2;
        const auto [reads, writes, end] = lists.of(b.code[c]);
        uint32_t dead = 0;  // results that nobody reads: they need a register all the same
        for (const uint32_t* w = writes; w != end; ++w) {
          const uint32_t x = *w & ~Units::lasts;
          if (!lists.is_allocated(x)) continue;
          const bool is_gpr = lists.is_gpr(x);
          Unit& u = units[x];
          if (*w & Units::lasts) {
            alive += begin_life(x, at + 2) && is_gpr;
          } else {
            if (u.open)
              alive -= is_gpr;
            else
              u.open = at + 2;
            dead += is_gpr;
            close(u, at + 1);
          }
        }
        pressure = std::max(pressure, alive + dead);
        for (const uint32_t* u = reads; u != writes; ++u)
          if (lists.is_allocated(*u)) alive += begin_life(*u, at + 1) && lists.is_gpr(*u);
        if (const Facts& facts = f.facts[index(b.code[c])]; facts.copies) hint(facts);
        if (alive > most) return false;
      }
      // What is still alive began before the block, or was never defined on any path.
      for (uint32_t x : opened.all())
        if (units[x].open) close(units[x], start);
      opened.clear();
      pressure = std::max(pressure, alive);
      alive = 0;
    }
    return pressure <= most;
  }

  // A copy wants its source's register.
  void hint(const Facts& copy) {
    if (copy.read_count == copy.guarded || copy.writes().empty()) return;
    const uint32_t d = copy.writes()[0].reg(), s = copy.reads()[0].reg();
    if (d < isa::first_virtual || s < isa::first_virtual) return;
    const uint32_t dv = of(d, Range::gpr), sv = of(s, Range::gpr);
    const int8_t offset = static_cast<int8_t>(static_cast<int32_t>(lists.of(Range::gpr, s) - sv) -
                                              static_cast<int32_t>(lists.of(Range::gpr, d) - dv));
    if (intervals[dv].hint == nobody) intervals[dv].hint = sv, intervals[dv].hint_offset = offset;
    if (intervals[sv].hint == nobody) intervals[sv].hint = dv, intervals[sv].hint_offset = static_cast<int8_t>(-offset);
  }

  bool overlap(uint32_t a, uint32_t b) const {
    while (a != nobody && b != nobody) {
      if (segments[a].end <= segments[b].begin)
        a = segments[a].next;
      else if (segments[b].end <= segments[a].begin)
        b = segments[b].next;
      else
        return true;
    }
    return false;
  }

  bool overlap(uint32_t v, const Interval& a, uint32_t w, const Interval& b) const {
    if (a.end <= b.begin || b.end <= a.begin) return false;
    for (uint32_t x = 0; x < a.width; ++x)
      for (uint32_t y = 0; y < b.width; ++y)
        if (overlap(units[v + x].first, units[w + y].first)) return true;
    return false;
  }

  // --- the scan, of both register files together
  // A segment of a unit with a register that begins later; in the lists of its position and of its register.
  struct Waiting {
    uint32_t unit, value, segment, next_at, next_of;
  };
  // What happens at a position: (lists of) registers to free, segments that begin after a hole, intervals that begin.
  struct Events {
    uint32_t ends = nobody, begins = nobody, starts = nobody;
  };
  static constexpr size_t tables = 256 + 8;
  struct Scan {
    std::array<uint64_t, 5> free{};          // registers that no segment covers at `now`; the last word: predicates
    std::array<uint32_t, tables> until{};    // end of the segment that covers the register, when it is not free
    std::array<uint32_t, tables> waiting{};  // per register: units that begin (again) later
    std::array<uint32_t, tables> next{};     // ... where the first of them does
    std::span<Events> events;                // by position
    uint32_t now = 0;
    std::array<uint32_t, 2> limit{};  // by file: registers to hand out
    std::array<uint32_t, 2> high{};   // ... registers below have been used
    bool both_ends = false;           // single registers are taken from the last one down
  };
  struct End {
    uint32_t reg, next;
  };
  ArenaList<Waiting> holes{*f.arena, 256};
  ArenaList<End> end_list{*f.arena, f.facts.size() + 16};

  uint32_t file_of(uint32_t v) const { return lists.is_gpr(v) ? gpr_file : predicate_file; }
  static bool is_free(const Scan& s, uint32_t r) { return s.free[r / 64] >> (r % 64) & 1; }
  static void set_free(Scan& s, uint32_t r, bool value) {
    const uint64_t bit = uint64_t{1} << (r % 64);
    s.free[r / 64] = value ? s.free[r / 64] | bit : s.free[r / 64] & ~bit;
  }
  void wait_for(Scan& s, uint32_t unit, uint32_t v, uint32_t segment, uint32_t r) {
    if (segment == nobody) return;
    const uint32_t begin = segments[segment].begin;
    s.waiting[r] = holes.push({unit, v, segment, s.events[begin].begins, s.waiting[r]});
    s.events[begin].begins = s.waiting[r];
    s.next[r] = std::min(s.next[r], begin);
  }
  // The unit's segment that begins now.
  void occupy(Scan& s, uint32_t unit, uint32_t v, uint32_t segment, uint32_t r) {
    const Segment x = segments[segment];
    set_free(s, r, false);
    s.until[r] = x.end;
    s.events[x.end].ends = end_list.push({r, s.events[x.end].ends});
    wait_for(s, unit, v, x.next, r);
  }
  void place(Scan& s, uint32_t v) {
    const Interval& i = intervals[v];
    const uint32_t file = file_of(v);
    for (uint32_t w = 0; w < i.width; ++w) {
      units[v + w].place = i.reg + w;
      const uint32_t first = units[v + w].first, r = first_register[file] + i.reg + w;
      if (first == nobody) continue;
      s.high[file] = std::max(s.high[file], i.reg + w + 1);
      if (segments[first].begin <= s.now)
        occupy(s, v + w, v, first, r);
      else
        wait_for(s, v + w, v, first, r);
    }
  }
  void leave_hole(Scan& s, uint32_t unit, uint32_t r) {
    s.next[r] = nobody;
    for (uint32_t* link = &s.waiting[r]; *link != nobody;) {
      Waiting& w = holes[*link];
      if (w.unit == unit) {
        *link = w.next_of;
        continue;
      }
      s.next[r] = std::min(s.next[r], segments[w.segment].begin);
      link = &w.next_of;
    }
  }
  // Ends and beginnings of segments at `now`.
  void settle(Scan& s) {
    const Events x = s.events[s.now];
    for (uint32_t e = x.ends; e != nobody; e = end_list[e].next)
      if (const uint32_t r = end_list[e].reg; s.until[r] == s.now) set_free(s, r, true), s.until[r] = 0;
    for (uint32_t h = x.begins; h != nobody;) {
      const Waiting w = holes[h];
      h = w.next_at;
      const Interval& i = intervals[w.value];
      if (i.spilled) continue;
      const uint32_t r = first_register[file_of(w.value)] + i.reg + w.unit - w.value;
      leave_hole(s, w.unit, r);
      occupy(s, w.unit, w.value, w.segment, r);
    }
  }
  // No unit that has or will have one of these registers lives at the same time.
  bool fits(const Scan& s, uint32_t v, const Interval& i, uint32_t r) const {
    r += first_register[file_of(v)];
    for (uint32_t w = 0; w < i.width; ++w) {
      const Unit& l = units[v + w];
      if (l.first == nobody) continue;
      if (!is_free(s, r + w) && s.until[r + w] == 0) return false;  // not to be handed out
      if (s.until[r + w] > segments[l.first].begin) return false;
      if (s.next[r + w] >= l.end) continue;
      for (uint32_t h = s.waiting[r + w]; h != nobody; h = holes[h].next_of)
        if (overlap(holes[h].segment, l.first)) return false;
    }
    return true;
  }
  // A hint's register if it is free, else one that splits no group of free registers that a wider value could take: first what is left of a
  // pair, then of a quad, and only then what has not been used. With both ends, values of one register come from the last one that is wanted down, and
  // leave the first ones to wider values.
  uint32_t choose(const Scan& s, uint32_t v, const Interval& i) const {
    const uint32_t file = file_of(v), limit = s.limit[file], high = s.high[file], width = i.width;
    if (i.hint != nobody && intervals[i.hint].reg != nobody && !intervals[i.hint].spilled) {
      const int64_t wish = static_cast<int64_t>(intervals[i.hint].reg) + i.hint_offset;
      if (wish >= 0 && wish % width == 0 && wish + width <= limit && fits(s, v, i, static_cast<uint32_t>(wish)))
        return static_cast<uint32_t>(wish);
    }
    if (s.both_ends && width == 1 && file == gpr_file)
      for (uint32_t word = (limit + 63) / 64; word-- > 0;)
        for (uint64_t m = s.free[word]; m;) {
          const uint32_t bit = 63 - static_cast<uint32_t>(std::countl_zero(m));
          m ^= uint64_t{1} << bit;
          if (fits(s, v, i, 64 * word + bit)) return 64 * word + bit;
        }
    for (uint32_t pass = width == 2 ? 1 : 0; pass < (width == 4 ? 1 : 3); ++pass) {
      for (uint32_t word = 0; 64 * word < high; ++word) {
        const uint64_t free = s.free[first_register[file] / 64 + word];
        uint64_t m = high < 64 * word + 64 ? free & ((uint64_t{1} << high % 64) - 1) : free;
        if (width == 2) m &= 0x5555555555555555;
        if (width == 4) m &= 0x1111111111111111;
        if (m == 0) continue;
        for (uint32_t w = 1; w < width; ++w)
          if (units[v + w].first != nobody && segments[units[v + w].first].begin <= s.now) m &= free >> w;
        if (width != 4) {
          const uint64_t pairs = free & ((free >> 1 & 0x5555555555555555) | (free & 0x5555555555555555) << 1);
          if (pass == 0) {
            m &= ~pairs;
          } else {
            const uint64_t quads = pairs & ((pairs >> 2 & 0x3333333333333333) | (pairs & 0x3333333333333333) << 2);
            m &= pass == 1 ? pairs & ~quads : quads;
          }
        }
        for (; m; m &= m - 1) {
          const uint32_t r = 64 * word + static_cast<uint32_t>(std::countr_zero(m));
          if (r + width <= limit && fits(s, v, i, r)) return r;
        }
      }
    }
    for (uint32_t r = (high + width - 1) / width * width; r + width <= limit; r += width)
      if (fits(s, v, i, r)) return r;
    return nobody;
  }

  // Assigns registers to all intervals by the beginning of their lives: GPRs below `limit` without `reserved`, predicates below PT. Returns
  // whether nothing was spilled; `failed`: not even spilling gives everything a place. Stops with false at the first interval
  // that would spill, where nothing may.
  bool scan(uint32_t limit, bool may_spill, uint32_t reserved, bool both_ends, bool& failed) {
    Scan s;
    s.both_ends = both_ends;
    s.limit = {limit, isa::PT};
    for (uint32_t r = 0; r < limit; r += 64)
      s.free[r / 64] = limit - r >= 64 ? ~uint64_t{0} : (uint64_t{1} << (limit - r)) - 1;
    s.free[4] = (uint64_t{1} << isa::PT) - 1;
    if (reserved != nobody) set_free(s, reserved, false);
    s.waiting.fill(nobody);
    s.next.fill(nobody);
    s.events = f.arena->make_span<Events>(positions + 3);
    holes.clear();
    end_list.clear();
    uint32_t count = 0;
    auto start = [&](uint32_t v, Interval& i) {
      i.next = s.events[i.begin].starts;
      s.events[i.begin].starts = v;
      ++count;
    };
    for (uint32_t v = lists.predicates; v-- > 0;)
      if (const Unit& u = units[v]; u.first != nobody) {
        Interval& i = intervals[v];
        i.begin = segments[u.first].begin, i.end = u.end;
        start(v, i);
      }
    for (uint32_t x = lists.count; x-- > lists.first_gpr;) {
      const GprUnit& g = f.gprs[x - lists.first_gpr];
      const uint32_t first = lists.first_gpr + g.first;
      Interval& i = intervals[first];
      if (units[x].first != nobody)
        i.begin = std::min(i.begin, segments[units[x].first].begin), i.end = std::max(i.end, units[x].end);
      if (first != x || i.begin == nobody) continue;
      i.width = g.width, i.unspillable = g.unspillable;
      start(x, i);
    }
    std::span<uint32_t> order = f.arena->make_span<uint32_t>(count);
    size_t done = 0;
    bool complete = true;
    for (; done < count; ++s.now) {
      const Events& here = s.events[s.now];
      if ((here.ends & here.begins & here.starts) == nobody) continue;  // each is nobody: nothing happens
      settle(s);
      for (uint32_t v = s.events[s.now].starts; v != nobody; v = intervals[v].next) {
        Interval& i = intervals[v];
        uint32_t best = choose(s, v, i);
        while (best == nobody) {
          if (!may_spill) return false;
          complete = false;
          if (!weighted) weigh();
          const uint32_t victim = cheapest(order.first(done), v);
          if (victim == nobody) {
            if (i.unspillable) return failed = true, false;
            i.spilled = true;
            break;
          }
          evict(s, order.first(done), victim);
          best = choose(s, v, i);
        }
        order[done++] = v;
        if (i.spilled) continue;
        i.reg = best;
        place(s, v);
      }
    }
    return complete;
  }

  void forget_places() {
    for (Interval& i : intervals) i.reg = nobody;
  }

  void weigh() {
    weighted = true;
    for (BlockId id : f.layout) {
      const Block& b = f.blocks[id];
      const float weight = static_cast<float>(1u << std::min(3 * b.loop_depth, 12u));
      if (b.predicate >= isa::first_virtual) intervals[of(b.predicate, Range::predicate)].weight += weight;
      for (InstId i : b.code)
        for (Range r : f.facts[index(i)].all())
          if (r.reg() >= isa::first_virtual && r.allocated()) intervals[of(r.reg(), r.file())].weight += weight;
    }
  }
  // The value to put in memory so that v finds a place: the cheapest of those that overlap with it, nobody: v itself.
  uint32_t cheapest(std::span<const uint32_t> before, uint32_t v) const {
    const Interval& i = intervals[v];
    auto cost = [&](const Interval& x) {
      return x.unspillable ? 1e30f
                           : x.weight / static_cast<float>(x.end - x.begin + 1) * (x.width > i.width ? 0.5f : 1.0f);
    };
    uint32_t victim = nobody;
    float least = cost(i);
    for (uint32_t o : before) {
      const Interval& x = intervals[o];
      if (x.spilled || file_of(o) != file_of(v) || cost(x) >= least || !overlap(o, x, v, i)) continue;
      least = cost(x), victim = o;
    }
    return victim;
  }
  void evict(Scan& s, std::span<const uint32_t> before, uint32_t victim) {
    Interval& x = intervals[victim];
    const uint32_t base = first_register[file_of(victim)];
    x.spilled = true;
    for (uint32_t w = 0; w < x.width; ++w) {
      const uint32_t r = base + x.reg + w;
      leave_hole(s, victim + w, r);
      set_free(s, r, true);
      s.until[r] = 0;
    }
    // Others may cover the registers at this point where the victim does not.
    for (uint32_t o : before) {
      const Interval& y = intervals[o];
      if (y.spilled || file_of(o) != file_of(victim) || y.end <= s.now || y.reg >= x.reg + x.width ||
          x.reg >= y.reg + y.width)
        continue;
      for (uint32_t w = 0; w < y.width; ++w)
        for (uint32_t k = units[o + w].first; k != nobody; k = segments[k].next)
          if (segments[k].begin <= s.now && s.now < segments[k].end) {
            set_free(s, base + y.reg + w, false);
            s.until[base + y.reg + w] = segments[k].end;
          }
    }
  }

  // Loads before and stores after every access of the spilled values.
  void spill() {
    std::vector<uint32_t> slot(intervals.size(), UINT32_MAX);
    std::vector<uint32_t> holder(intervals.size(), UINT32_MAX);  // predicates: the GPR unit that keeps them
    for (uint32_t v = 0; v < intervals.size(); ++v) {
      if (!intervals[v].spilled) continue;
      if (lists.is_gpr(v)) {
        uint32_t bytes = 4 * intervals[v].width;
        f.local_bytes = (f.local_bytes + bytes - 1) / bytes * bytes;
        slot[v] = f.local_bytes;
        f.local_bytes += bytes;
        f.spill_bytes += bytes;
      } else {
        holder[v] = new_gpr(f, 1, false);
      }
    }
    for (BlockId b : f.layout) {
      std::vector<InstId> code;
      code.swap(f.blocks[b].code);
      std::vector<InstId>& out = f.blocks[b].code;
      auto add = [&](Inst inst) { out.push_back(add_inst(f, std::move(inst))); };
      for (InstId id : code) {
        std::vector<std::pair<uint32_t, uint32_t>> replaced;  // value -> new first register
        auto replacement = [&](uint32_t v) {
          for (auto& [from, to] : replaced)
            if (from == v) return to;
          const bool is_gpr = lists.is_gpr(v);
          uint32_t to = is_gpr ? new_gpr(f, intervals[v].width, true) : new_predicate(f, true);
          if (is_gpr)
            for (uint32_t w = 0; w < intervals[v].width; ++w) f.gprs[to - isa::first_virtual + w].unspillable = true;
          replaced.push_back({v, to});
          return to;
        };
        auto renamed = [&](uint32_t r, Range::File file) {
          uint32_t v = of(r, file);
          return replacement(v) + (lists.of(file, r) - v);
        };
        std::vector<Inst> after;
        Inst inst = f[id];
        const Facts facts = f.facts[index(id)];
        const uint32_t line = inst.line;
        auto is_spilled = [&](uint32_t r, Range::File file) {
          return r >= isa::first_virtual && intervals[of(r, file)].spilled;
        };
        std::vector<Inst> before;
        uint32_t guard = inst.sass.guard;
        const bool own_guard = std::ranges::any_of(facts.writes(), [&](Range r) {
          return r.file() == Range::predicate && guard != isa::PT && r.reg() == guard;
        });
        if (guard != isa::PT && is_spilled(guard, Range::predicate)) {
          const uint32_t v = of(guard, Range::predicate);
          guard = renamed(guard, Range::predicate);
          before.push_back(predicate_from_gpr(*f.target, guard, holder[v]));
        }
        // A slot may be unset in lanes that the instruction does not concern.
        auto load = [&](Range range, bool guarded) {
          const uint32_t r = range.reg(), v = of(r, range.file());
          Inst x = range.file() == Range::gpr ? spill_load(*f.target, renamed(r, Range::gpr), range.width(),
                                                           slot[v] + 4 * (lists.of(Range::gpr, r) - v))
                                              : predicate_from_gpr(*f.target, renamed(r, Range::predicate), holder[v]);
          if (guarded) x.sass.guard = guard, x.sass.guard_negated = inst.sass.guard_negated;
          before.push_back(std::move(x));
        };
        for (Range range : facts.reads()) {
          if (range.guard() || !range.allocated() || !is_spilled(range.reg(), range.file())) continue;
          if (range.file() == Range::predicate && range.reg() == inst.sass.guard) continue;  // is loaded
          load(range, !own_guard);
        }
        for (Range range : facts.writes()) {
          const uint32_t r = range.reg(), width = range.width();
          const Range::File file = range.file();
          if (!range.allocated() || !is_spilled(r, file)) continue;
          uint32_t v = of(r, file);
          // An instruction that writes its own guard: every lane stores what it has then.
          if (own_guard && r != inst.sass.guard) load(range, false);
          Inst store = file == Range::gpr ? spill_store(*f.target, renamed(r, file), width,
                                                        slot[v] + 4 * (lists.of(Range::gpr, r) - v))
                                          : gpr_from_predicate(*f.target, holder[v], renamed(r, file));
          store.sass.guard = own_guard ? isa::PT : guard;
          store.sass.guard_negated = !own_guard && inst.sass.guard_negated;
          after.push_back(store);
        }
        for (Inst& x : before) x.line = line, add(std::move(x));
        if (!replaced.empty()) {
          for (Range range : facts.all())
            if (range.allocated() && !range.guard() && is_spilled(range.reg(), range.file()))
              inst.sass.operands[range.operand()].reg = renamed(range.reg(), range.file());
          inst.sass.guard = guard;
          f.facts[index(id)] = facts_of(*f.target, inst);
          f[id] = inst;
        }
        out.push_back(id);
        for (Inst& x : after) x.line = line, add(std::move(x));
      }
      if (uint32_t& p = f.blocks[b].predicate; p != isa::PT && intervals[of(p, Range::predicate)].spilled) {
        uint32_t t = new_predicate(f, true);
        add(predicate_from_gpr(*f.target, t, holder[of(p, Range::predicate)]));
        p = t;
      }
    }
  }

  void rewrite() {
    f.registers.start(f.insts.size(), f.insts.size() * 5);
    const std::array<uint32_t, 2> base = {lists.first_gpr - isa::first_virtual, 0u - isa::first_virtual};  // by file
    for (BlockId b : f.layout) {
      Block& block = f.blocks[b];
      for (InstId id : block.code) {
        isa::Instruction& sass = f[id].sass;
        f.registers.set(id, f.facts[index(id)], [&](Range& r) {
          if (r.reg() < isa::first_virtual || !r.allocated()) return;
          const uint32_t place = units[r.reg() + base[r.file()]].place;
          CHECK(place != nobody, "register {} has no place", r.reg());
          r.set_reg(place);
          (r.guard() ? sass.guard : sass.operands[r.operand()].reg) = place;
        });
      }
      if (block.predicate >= isa::first_virtual)
        block.predicate = units[lists.of(Range::predicate, block.predicate)].place;
    }
    f.registers_used = 0;
    for (uint32_t x = lists.first_gpr; x < lists.count; ++x)
      if (units[x].first != nobody) f.registers_used = std::max(f.registers_used, units[x].place + 1);
    f.allocated = true;
  }
};

}  // namespace

Result<bool> allocate_registers(Function& f, const Liveness& live, uint32_t wanted, bool only_wanted) {
  const uint32_t limit = std::min(f.max_registers, f.target->max_registers);
  wanted = std::min(wanted, limit);
  for (int round = 0; round < 60; ++round) {
    ArenaScope scope(*f.arena);
    if (round > 0) list_units(f);
    Allocator a{f, round == 0 ? live : compute_liveness(f)};
    if (!a.build(only_wanted ? wanted : UINT32_MAX)) return false;
    const bool stack = f.local_bytes > 0;
    const uint32_t reserved = stack ? stack_register : nobody;
    bool failed = false, complete = false;
    if (round == 0 && wanted && a.pressure <= wanted) {
      complete = a.scan(wanted, false, reserved, false, failed);
      // Moves are saved by equal registers, so they are taken from both ends only where one more would cost a step of occupancy.
      if (!complete && wanted + f.target->reported_registers_extra >= full_occupancy_registers(*f.target))
        a.forget_places(), complete = a.scan(wanted, false, reserved, true, failed);
    }
    if (!complete) {
      if (only_wanted) return false;
      a.forget_places();
      complete = a.scan(limit, true, reserved, false, failed);
    }
    if (failed && std::none_of(a.intervals.begin(), a.intervals.end(), [](const Interval& i) { return i.spilled; }))
      break;
    if (complete) {
      a.rewrite();
      if (stack) {
        f.uses_stack = true;
        f.local_bytes = (f.local_bytes + 15) / 16 * 16;  // quads spill whole
        std::vector<InstId> code;
        for (Inst& inst : stack_prologue(*f.target, f.local_bytes)) code.push_back(add_inst(f, std::move(inst)));
        std::vector<InstId>& entry = f.blocks[f.layout[0]].code;
        entry.insert(entry.begin(), code.begin(), code.end());
      }
      return true;
    }
    a.spill();
  }
  return input_error("function {}: needs more registers than the limit of {} even with spilling", f.source->name,
                     limit);
}

}  // namespace rndn::assembler
