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
// Positions are dense, so ends and beginnings of segments, and of values, wait in lists per position: which registers are free is a bit set that is
// brought up to date while the scan moves on. Most units live in one segment, which they hold themselves.
// Cost: O(positions + segments + values * holes that share a register).
// Where two scans need more than a step of occupancy though fewer are alive at once, the widest values are placed first (place_widest_first).
//
// Left out: interval splitting and rematerialisation.
#include <algorithm>
#include <bit>
#include <utility>

#include "assembler/backend/backend.h"
#include "assembler/machine/inst_facts.h"
#include "assembler/machine/operands.h"
#include "assembler/machine/options.h"

namespace rndn::assembler {
namespace {

constexpr uint32_t gpr_file = 0, predicate_file = 1;
constexpr uint32_t first_register[2] = {0, 256};  // of a file in the tables of the scan

struct Segment {
  uint32_t begin, end;  // [begin, end) in positions: an instruction reads at 2i and writes at 2i + 1
  uint32_t next;        // index of the next segment, nobody = last
};

// The life of one unit of a value: a register, or a predicate.
struct Unit {
  Segment first{nobody, 0, nobody};  // begin nobody: it never lives
  uint32_t end = 0;                  // of the last segment
  uint32_t open = 0;                 // while lives are built: end of the current segment, 0: dead
  uint32_t place = nobody;           // the register, in the end
  bool lives() const { return first.begin != nobody; }
};

// One value: a GPR group (1, 2 or 4 units) or a predicate. Its units get neighbouring registers, but each is taken only while that unit lives.
struct Interval {
  uint32_t hint = nobody;  // interval whose register would be best
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
  uint32_t pressure = 0;        // GPRs alive at once
  uint32_t registers_used = 0;  // by the last scan
  bool weighted = false;        // intervals have their weights
  ArenaList<Segment> segments{*f.arena, 256};  // but the first of each unit

  uint32_t of(uint32_t reg, Range::File file) const {
    const uint32_t v = reg - isa::first_virtual;
    return file == Range::gpr ? lists.first_gpr + f.gprs[v].first : v;
  }

  // The segment of a unit that is open begins here.
  void close(Unit& u, uint32_t begin) {
    if (u.first.begin <= u.open) {  // the one behind it continues it
      u.first.begin = begin;
    } else if (!u.lives()) {
      u.first = {begin, u.open, nobody};
      u.end = u.open;
    } else {
      u.first = {begin, u.open, segments.push(u.first)};
    }
    u.open = 0;
  }

  // Lives from one backward walk. False, and they are not complete, when more than `most` GPRs are alive at once.
  bool build(uint32_t most) {
    intervals = f.arena->make_span<Interval>(lists.count, Interval{});
    units = f.arena->make_span<Unit>(lists.count, Unit{});
    for (uint32_t v = 0; v < lists.predicates; ++v) intervals[v].unspillable = f.predicates[v].unspillable;
    for (uint32_t v = 0; v < f.gprs.size(); ++v)
      if (const GprUnit& g = f.gprs[v]; g.first == v) {
        Interval& i = intervals[lists.first_gpr + v];
        i.width = g.width, i.unspillable = g.unspillable;
      }
    // What is not allocated is always open, so that reading it opens nothing.
    for (Unit& u : units.subspan(lists.predicates, Units::others)) u.open = nobody;
    positions = 0;
    for (BlockId b : f.layout) positions += 2 * static_cast<uint32_t>(f.blocks[b].code.size()) + 2;
    uint32_t alive = 0;
    const auto close_block = [&](uint32_t x, uint32_t begin) {
      alive -= lists.is_gpr(x);
      close(units[x], begin);
    };
    LiveSet behind;  // alive where the block behind begins
    uint32_t at = positions;
    for (size_t k = f.layout.size(); k-- > 0;) {
      const BlockId id = f.layout[k];
      const Block& b = f.blocks[id];
      LiveSet::for_each_difference(behind, live.out(id), [&](uint32_t x) {
        if (units[x].open) return close_block(x, at);
        alive += lists.is_gpr(x);
        units[x].open = at;
      });
      at -= 2;
      if (b.predicate >= isa::first_virtual)
        if (Unit& u = units[of(b.predicate, Range::predicate)]; u.open == 0) u.open = at + 1;
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
            alive += u.open == 0 && is_gpr;
            u.open = u.open ? u.open : at + 2;
          } else {
            alive -= u.open != 0 && is_gpr;
            u.open = u.open ? u.open : at + 2;
            dead += is_gpr;
            close(u, at + 1);
          }
        }
        pressure = std::max(pressure, alive + dead);
        for (const uint32_t* r = reads; r != writes; ++r) {  // whether this is the last read follows no pattern: no branches
          uint32_t& open = units[*r].open;
          const uint32_t last = open == 0;
          alive += last & static_cast<uint32_t>(lists.is_gpr(*r));
          open |= (at + 1) & (0u - last);
        }
        if (const Facts& facts = f.facts[index(b.code[c])]; facts.copies) hint(facts);
      }
      pressure = std::max(pressure, alive);
      if (pressure > most) return false;
      for (uint32_t x : live.undefined(id))
        if (units[x].open) close_block(x, at);
      behind = live.in(id);
    }
    for (uint32_t x : behind) close_block(x, at);
    return true;
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

  std::span<const Unit> units_of(uint32_t v) const { return units.subspan(v, intervals[v].width); }

  // Segments from these on, of two units.
  bool overlap(Segment a, Segment b) const {
    for (;;) {
      if (a.end <= b.begin) {
        if (a.next == nobody) return false;
        a = segments[a.next];
      } else if (b.end <= a.begin) {
        if (b.next == nobody) return false;
        b = segments[b.next];
      } else {
        return true;
      }
    }
  }
  bool overlap(uint32_t v, uint32_t w) const {
    for (const Unit& x : units_of(v))
      for (const Unit& y : units_of(w))
        if (x.lives() && y.lives() && overlap(x.first, y.first)) return true;
    return false;
  }

  // --- the scan, of both register files together
  // A segment of a unit with a register that begins later; in the lists of its position and of its register.
  struct Waiting {
    Segment segment;
    uint32_t unit, value, next_at, next_of;
  };
  static constexpr size_t tables = 256 + 8;
  // Lists of what happens at a position: registers that become free, segments that begin after a hole, intervals that begin.
  struct Event {
    uint32_t end = nobody, hole = nobody, start = nobody;
  };
  struct Scan {
    std::array<uint64_t, 5> free{};          // registers that no segment covers at `now`; the last word: predicates
    std::array<uint32_t, tables> until{};    // end of the segment that covers the register, 0: free
    std::array<uint32_t, tables> next_end;   // the next register whose segment ends at the same position
    std::array<uint32_t, tables> waiting{};  // per register: units that begin (again) later
    std::array<uint32_t, tables> next{};     // ... where the first of them does
    std::span<Event> events;  // by position
    uint32_t now = 0;
    std::array<uint32_t, 2> limit{};  // by file: registers to hand out
    std::array<uint32_t, 2> high{};   // ... registers below have been used
    bool both_ends = false;           // single registers are taken from the last one down
  };
  ArenaList<Waiting> holes{*f.arena, 256};

  uint32_t file_of(uint32_t v) const { return lists.is_gpr(v) ? gpr_file : predicate_file; }
  static bool is_free(const Scan& s, uint32_t r) { return s.free[r / 64] >> (r % 64) & 1; }
  static void cover(Scan& s, uint32_t r, uint32_t end) {
    s.free[r / 64] &= ~(uint64_t{1} << (r % 64));
    s.until[r] = end;
    s.next_end[r] = s.events[end].end;
    s.events[end].end = r;
  }
  static void uncover(Scan& s, uint32_t r) {
    s.free[r / 64] |= uint64_t{1} << (r % 64);
    s.until[r] = 0;
  }
  void wait_for(Scan& s, uint32_t unit, uint32_t v, const Segment& segment, uint32_t r) {
    s.waiting[r] = holes.push({segment, unit, v, s.events[segment.begin].hole, s.waiting[r]});
    s.events[segment.begin].hole = s.waiting[r];
    s.next[r] = std::min(s.next[r], segment.begin);
  }
  // The unit's segment that begins now.
  void occupy(Scan& s, uint32_t unit, uint32_t v, const Segment& segment, uint32_t r) {
    cover(s, r, segment.end);
    if (segment.next != nobody) wait_for(s, unit, v, segments[segment.next], r);
  }
  void place(Scan& s, uint32_t v) {
    const Interval& i = intervals[v];
    const uint32_t file = file_of(v);
    for (uint32_t w = 0; w < i.width; ++w) {
      Unit& u = units[v + w];
      u.place = i.reg + w;
      if (!u.lives()) continue;
      const uint32_t r = first_register[file] + i.reg + w;
      s.high[file] = std::max(s.high[file], i.reg + w + 1);
      if (u.first.begin <= s.now)
        occupy(s, v + w, v, u.first, r);
      else
        wait_for(s, v + w, v, u.first, r);
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
      s.next[r] = std::min(s.next[r], w.segment.begin);
      link = &w.next_of;
    }
  }
  // Segments that begin at `now` after a hole.
  void end_holes(Scan& s) {
    for (uint32_t h = s.events[s.now].hole; h != nobody;) {
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
  bool fits(const Scan& s, uint32_t v, uint32_t width, uint32_t r) const {
    for (uint32_t w = 0; w < width; ++w) {
      const Unit& u = units[v + w];
      if (!u.lives()) continue;
      if (s.until[r + w] > u.first.begin) return false;
      if (s.next[r + w] >= u.end) continue;
      for (uint32_t h = s.waiting[r + w]; h != nobody; h = holes[h].next_of)
        if (overlap(holes[h].segment, u.first)) return false;
    }
    return true;
  }
  // The register that the hint gives, nobody: none.
  uint32_t wish_of(const Interval& i, uint32_t width) const {
    if (i.hint == nobody || intervals[i.hint].reg == nobody || intervals[i.hint].spilled) return nobody;
    const int64_t wish = static_cast<int64_t>(intervals[i.hint].reg) + i.hint_offset;
    return wish >= 0 && wish % width == 0 ? static_cast<uint32_t>(wish) : nobody;
  }
  // A hint's register if it is free, else one that splits no group of free registers that a wider value could take: first what is left of a
  // pair, then of a quad, and only then what has not been used. With both ends, values of one register come from the last one that is wanted down, and
  // leave the first ones to wider values.
  template <uint32_t width>
  uint32_t choose(const Scan& s, uint32_t v) const {
    constexpr uint64_t firsts_of_pairs = 0x5555555555555555, firsts_of_quads = 0x1111111111111111, pairs_of_quads = 0x3333333333333333;
    const Interval& i = intervals[v];
    const uint32_t file = file_of(v), limit = s.limit[file], high = s.high[file], first = first_register[file];
    const auto fits_in = [&](uint32_t r) { return r + width <= limit && fits(s, v, width, first + r); };
    if (const uint32_t wish = wish_of(i, width); wish != nobody && fits_in(wish)) return wish;
    if (width == 1 && s.both_ends && file == gpr_file)
      for (uint32_t word = (limit + 63) / 64; word-- > 0;)
        for (uint64_t m = s.free[word]; m;) {
          const uint32_t bit = 63 - static_cast<uint32_t>(std::countl_zero(m));
          m ^= uint64_t{1} << bit;
          if (fits_in(64 * word + bit)) return 64 * word + bit;
        }
    // Of those that have been used: the firsts of free groups that begin now, what is left of pairs, of quads, and the rest.
    const uint32_t words = (high + 63) / 64;
    std::array<std::array<uint64_t, 4>, 3> groups;
    for (uint32_t word = 0; word < words; ++word) {
      const uint64_t free = s.free[first / 64 + word];
      uint64_t m = high < 64 * word + 64 ? free & ((uint64_t{1} << high % 64) - 1) : free;
      m &= width == 4 ? firsts_of_quads : width == 2 ? firsts_of_pairs : ~uint64_t{0};
      for (uint32_t w = 1; w < width; ++w)
        if (units[v + w].first.begin <= s.now) m &= free >> w;
      const uint64_t pairs = free & ((free >> 1 & firsts_of_pairs) | (free & firsts_of_pairs) << 1);
      const uint64_t quads = pairs & ((pairs >> 2 & pairs_of_quads) | (pairs & pairs_of_quads) << 2);
      groups[0][word] = width == 4 ? m : m & ~pairs;
      groups[1][word] = m & pairs & ~quads;
      groups[2][word] = m & quads;
    }
    for (uint32_t pass = width == 2 ? 1 : 0; pass < (width == 4 ? 1 : 3); ++pass)
      for (uint32_t word = 0; word < words; ++word)
        for (uint64_t m = groups[pass][word]; m; m &= m - 1) {
          const uint32_t r = 64 * word + static_cast<uint32_t>(std::countr_zero(m));
          if (fits_in(r)) return r;
        }
    for (uint32_t r = (high + width - 1) / width * width; r + width <= limit; r += width)
      if (fits_in(r)) return r;
    return nobody;
  }
  uint32_t choose(const Scan& s, uint32_t v) const {
    const uint32_t width = intervals[v].width;
    return width == 1 ? choose<1>(s, v) : width == 2 ? choose<2>(s, v) : choose<4>(s, v);
  }

  // Assigns registers to all intervals by the beginning of their lives: GPRs below `limit` without `reserved`, predicates below PT. Returns
  // whether nothing was spilled; `failed`: not even spilling gives everything a place. Stops with false at the first interval
  // that would spill, where nothing may.
  bool scan(uint32_t limit, bool may_spill, uint32_t reserved, bool both_ends, bool& failed) {
    Scan s;
    s.events = f.arena->make_span<Event>(positions + 3, Event{});
    s.both_ends = both_ends;
    s.limit = {limit, isa::PT};
    for (uint32_t r = 0; r < limit; r += 64)
      s.free[r / 64] = limit - r >= 64 ? ~uint64_t{0} : (uint64_t{1} << (limit - r)) - 1;
    s.free[4] = (uint64_t{1} << isa::PT) - 1;
    std::fill(s.until.begin() + limit, s.until.begin() + first_register[predicate_file], nobody);
    s.until.back() = nobody;  // PT
    if (reserved != nobody) cover(s, reserved, positions + 2);
    s.waiting.fill(nobody);
    s.next.fill(nobody);
    holes.clear();
    uint32_t count = 0;
    const auto start = [&](uint32_t v, uint32_t begin) {
      if (begin == nobody) return;
      intervals[v].next = std::exchange(s.events[begin].start, v);
      ++count;
    };
    for (uint32_t v = lists.predicates; v-- > 0;) start(v, units[v].first.begin);
    for (uint32_t v = static_cast<uint32_t>(f.gprs.size()); v-- > 0;) {
      const GprUnit& g = f.gprs[v];
      if (g.first != v) continue;
      const uint32_t x = lists.first_gpr + v;
      uint32_t begin = units[x].first.begin;
      for (uint32_t w = 1; w < g.width; ++w) begin = std::min(begin, units[x + w].first.begin);
      start(x, begin);
    }
    const std::span<uint32_t> order = f.arena->make_raw<uint32_t>(count);  // those with registers, but what a spill has found to live no more
    size_t done = 0, kept = 0;
    bool complete = true;
    for (; done < count; ++s.now) {
      const Event& event = s.events[s.now];
      for (uint32_t r = event.end; r != nobody; r = s.next_end[r]) uncover(s, r);
      if (event.hole != nobody) end_holes(s);
      for (uint32_t v = event.start; v != nobody; v = intervals[v].next) {
        Interval& i = intervals[v];
        uint32_t best = choose(s, v);
        while (best == nobody) {
          if (!may_spill) return false;
          complete = false;
          if (!weighted) weigh();
          kept = static_cast<size_t>(std::remove_if(order.begin(), order.begin() + static_cast<ptrdiff_t>(kept), [&](uint32_t o) {
                   return intervals[o].spilled || std::ranges::all_of(units_of(o), [&](const Unit& u) { return u.end <= s.now; });
                 }) - order.begin());
          const uint32_t victim = cheapest(order.first(kept), v);
          if (victim == nobody) {
            if (i.unspillable) return failed = true, false;
            i.spilled = true;
            break;
          }
          evict(s, order.first(kept), victim);
          best = choose(s, v);
        }
        ++done;
        if (i.spilled) continue;
        order[kept++] = v;
        i.reg = best;
        place(s, v);
      }
    }
    registers_used = s.high[gpr_file];
    return complete;
  }

  void forget_places() {
    for (Interval& i : intervals) i.reg = nobody;
  }

  // Registers without a scan: the widest values first, which find the fewest places, those of one width by the beginnings of their lives; each
  // takes its hint's register, or the first one whose values live at other times. Returns whether all have found one.
  // O(values * registers * values of a register).
  bool place_widest_first(uint32_t limit, uint32_t reserved) {
    constexpr uint32_t most_units = 4096;  // beyond, it would take longer than all else
    if (lists.count > most_units) return false;
    struct Value {
      uint32_t v, width, begin;
    };
    ArenaList<Value> values(*f.arena, 256);
    const auto add = [&](uint32_t v) {
      uint32_t begin = nobody;
      for (const Unit& u : units_of(v)) begin = std::min(begin, u.first.begin);
      if (begin != nobody) values.push({v, intervals[v].width, begin});
    };
    for (uint32_t v = 0; v < lists.predicates; ++v) add(v);
    for (uint32_t v = 0; v < f.gprs.size(); ++v)
      if (f.gprs[v].first == v) add(lists.first_gpr + v);
    std::ranges::stable_sort(values.all(), [](const Value& a, const Value& b) {
      return a.width != b.width ? a.width > b.width : a.begin < b.begin;
    });
    std::array<uint32_t, tables> placed;  // by register: a unit that has it, the others behind
    placed.fill(nobody);
    const std::span<uint32_t> behind = f.arena->make_raw<uint32_t>(lists.count);
    registers_used = 0;
    for (const Value& x : values.all()) {
      Interval& i = intervals[x.v];
      const uint32_t file = file_of(x.v), first = first_register[file], last = file == gpr_file ? limit : isa::PT;
      const auto fits_at = [&](uint32_t r) {
        if (r + x.width > last) return false;
        for (uint32_t w = 0; w < x.width; ++w) {
          const Unit& a = units[x.v + w];
          if (!a.lives()) continue;
          if (first + r + w == reserved) return false;
          for (uint32_t o = placed[first + r + w]; o != nobody; o = behind[o])
            if (const Unit& b = units[o]; a.first.begin < b.end && b.first.begin < a.end && overlap(a.first, b.first))
              return false;
        }
        return true;
      };
      i.reg = wish_of(i, x.width);
      if (i.reg == nobody || !fits_at(i.reg))
        for (i.reg = 0; !fits_at(i.reg); i.reg += x.width)
          if (i.reg >= last) return false;
      for (uint32_t w = 0; w < x.width; ++w) {
        Unit& u = units[x.v + w];
        u.place = i.reg + w;
        if (!u.lives()) continue;
        behind[x.v + w] = std::exchange(placed[first + i.reg + w], x.v + w);
        if (file == gpr_file) registers_used = std::max(registers_used, i.reg + w + 1);
      }
    }
    return true;
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
  // The value to put in memory so that v finds a place: the cheapest of those before it that overlap with it, nobody: v itself.
  uint32_t cheapest(std::span<const uint32_t> before, uint32_t v) const {
    const auto cost = [&](uint32_t o) {
      const Interval& x = intervals[o];
      uint32_t begin = nobody, end = 0;  // of all units together
      for (const Unit& u : units_of(o)) begin = std::min(begin, u.first.begin), end = std::max(end, u.end);
      return x.unspillable ? 1e30f
                           : x.weight / static_cast<float>(end - begin + 1) * (x.width > intervals[v].width ? 0.5f : 1.0f);
    };
    uint32_t victim = nobody;
    float least = cost(v);
    for (uint32_t o : before) {
      if (intervals[o].spilled || file_of(o) != file_of(v)) continue;
      if (const float x = cost(o); x < least && overlap(o, v)) least = x, victim = o;
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
      if (is_free(s, r)) continue;
      uint32_t* link = &s.events[s.until[r]].end;
      while (*link != r) link = &s.next_end[*link];
      *link = s.next_end[r];
      uncover(s, r);
    }
    // Others may cover the registers at this point where the victim does not.
    for (uint32_t o : before) {
      const Interval& y = intervals[o];
      if (y.spilled || file_of(o) != file_of(victim) || y.reg >= x.reg + x.width || x.reg >= y.reg + y.width) continue;
      for (uint32_t w = 0; w < y.width; ++w) {
        const uint32_t r = base + y.reg + w;
        if (!units[o + w].lives() || !is_free(s, r)) continue;
        for (Segment k = units[o + w].first; k.begin <= s.now; k = segments[k.next]) {
          if (s.now < k.end) cover(s, r, k.end);
          if (k.next == nobody) break;
        }
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
          else
            f.predicates[to - isa::first_virtual].unspillable = true;
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
          if (range.file() == Range::gpr) f.spill_load_bytes += 4 * range.width();
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
          if (file == Range::gpr) f.spill_store_bytes += 4 * width;
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
        f.predicates[t - isa::first_virtual].unspillable = true;
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
          if (r.reg() < isa::first_virtual) return;  // so are all that are not allocated
          const uint32_t place = units[r.reg() + base[r.file()]].place;
          CHECK(place != nobody, "register {} has no place", r.reg());
          r.set_reg(place);
          (r.guard() ? sass.guard : sass.operands[r.operand()].reg) = place;
        });
      }
      if (block.predicate >= isa::first_virtual)
        block.predicate = units[lists.of(Range::predicate, block.predicate)].place;
    }
    f.registers_used = registers_used;
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
      if (!complete) a.forget_places();
      // Moves are saved by equal registers, so they are chosen otherwise only where one more would cost a step of occupancy.
      if (!complete && wanted + f.target->reported_registers_extra >= full_occupancy_registers(*f.target)) {
        complete = a.scan(wanted, false, reserved, true, failed);
        if (!complete) a.forget_places(), complete = a.place_widest_first(wanted, reserved);
        if (!complete) a.forget_places();
      }
    }
    if (!complete) {
      if (only_wanted) return false;
      complete = a.scan(limit, true, reserved, false, failed);
    }
    if (failed && std::none_of(a.intervals.begin(), a.intervals.end(), [](const Interval& i) { return i.spilled; }))
      break;
    if (complete) {
      a.rewrite();
      if (stack) {
        f.uses_stack = true;
        f.local_bytes = (f.local_bytes + 15) / 16 * 16;  // quads spill whole
        const auto set_stack_register = [&](std::vector<InstId>& code, size_t at) {
          for (Inst& inst : stack_prologue(*f.target, f.local_bytes))
            code.insert(code.begin() + static_cast<ptrdiff_t>(at++), add_inst(f, std::move(inst)));
        };
        if (f.calls && f.dynamic_stack)  // which moved it down for the callee
          for (const BlockId b : f.layout)
            if (std::vector<InstId>& code = f.blocks[b].code; !code.empty() && f[code.back()].call == Call::function)
              set_stack_register(code, code.size());
        set_stack_register(f.blocks[f.layout[0]].code, 0);
      }
      return true;
    }
    a.spill();
  }
  return input_error("function {}: needs more registers than the limit of {} even with spilling", f.source->name,
                     limit);
}

}  // namespace rndn::assembler
