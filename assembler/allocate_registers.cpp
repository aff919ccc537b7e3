// Virtual to physical registers: linear scan with lifetime holes.
//
// Input: any function over virtual registers. Output: operands name physical registers; wide values are aligned to their width; values that did
// not fit live in local memory ([R1 + offset]).
//
// Algorithm: Wimmer and Mössenböck, "Optimized Interval Splitting in a Linear Scan Register Allocator" (2005), without splitting: intervals are
// lists of segments, visited by start; a register is free for an interval when no interval assigned to it overlaps. The lowest free register is
// taken (occupancy counts registers), a copy's source first. When none is free, the cheapest value (accesses weighted by loop depth, per unit of
// length) is put in local memory everywhere, and the scan starts again with loads and stores around its accesses. Predicates go to GPRs through
// SEL and ISETP.
// Cost: O(n log n + n * live values).
//
// Left out: interval splitting and rematerialisation.
#include <algorithm>

#include "assembler/build.h"
#include "assembler/passes.h"

namespace rndn::assembler {
namespace {

struct Segment {
  uint32_t begin, end;  // [begin, end) in positions: an instruction reads at 2i and writes at 2i + 1
  uint32_t next;        // index of the next segment, UINT32_MAX = last
};

// One value: a GPR group (1, 2 or 4 units) or a predicate.
struct Interval {
  uint32_t first = UINT32_MAX;  // segment
  uint32_t width = 1;
  uint32_t hint = UINT32_MAX;  // interval whose register would be best
  int32_t hint_offset = 0;
  float weight = 0;
  uint32_t end = 0;  // of the last segment
  uint32_t reg = UINT32_MAX;
  bool spilled = false;
  bool unspillable = false;
};

struct Allocator {
  Function& f;
  Liveness live;
  std::vector<Segment> segments;
  std::vector<Interval> intervals;  // by GPR unit (only first units are used), then predicates
  uint32_t gprs = 0;
  bool stack_reserved = false;

  uint32_t of(uint32_t reg, isa::RegisterFile file) const {
    uint32_t v = reg - isa::first_virtual;
    return file == isa::RegisterFile::gpr ? f.gprs[v].first : gprs + v;
  }

  void build() {
    live = compute_liveness(f);
    gprs = live.gprs;
    segments.clear();
    segments.reserve(f.insts.size() * 2);
    intervals.assign(live.total, {});
    for (uint32_t u = 0; u < gprs; ++u)
      intervals[u].width = f.gprs[u].width, intervals[u].unspillable = f.gprs[u].unspillable;
    // Live units per value while walking backwards, and the open end of its current segment.
    std::vector<uint8_t> units(live.total, 0);
    std::vector<uint32_t> open(live.total, 0);
    std::vector<uint32_t> starts;
    uint32_t position = 0;
    for (BlockId b : f.layout) {
      starts.push_back(position);
      position += 2 * static_cast<uint32_t>(f.blocks[b].code.size()) + 2;
    }
    Bitset now(live.total);
    auto value = [&](size_t x) { return x < gprs ? f.gprs[x].first : static_cast<uint32_t>(x); };
    auto close = [&](uint32_t v, uint32_t begin) {
      Interval& i = intervals[v];
      if (i.end == 0) i.end = open[v];
      if (i.first != UINT32_MAX && segments[i.first].begin <= open[v]) {
        segments[i.first].begin = begin;
      } else {
        segments.push_back({begin, open[v], i.first});
        i.first = static_cast<uint32_t>(segments.size() - 1);
      }
    };
    for (size_t k = f.layout.size(); k-- > 0;) {
      const Block& b = f.blocks[f.layout[k]];
      const float weight = static_cast<float>(1u << std::min(3 * b.loop_depth, 12u));
      uint32_t at = starts[k] + 2 * static_cast<uint32_t>(b.code.size());
      auto begin_life = [&](size_t x, uint32_t end) {
        if (now.test(x)) return;
        now.set(x);
        uint32_t v = value(x);
        if (units[v]++ == 0) open[v] = end;
      };
      live.out[f.layout[k]].for_each([&](size_t x) { begin_life(x, at + 2); });
      if (b.predicate != isa::PT && b.predicate >= isa::first_virtual) {
        uint32_t x = of(b.predicate, isa::RegisterFile::predicate);
        begin_life(x, at + 1);
        intervals[x].weight += weight;
      }
      for (size_t c = b.code.size(); c-- > 0;) {
        at -= 2;
        const Inst& inst = f[b.code[c]];
        for_each_write(inst, [&](uint32_t r, uint32_t width, isa::RegisterFile file) {
          if (r < isa::first_virtual) return;
          uint32_t v = of(r, file);
          intervals[v].weight += weight;
          bool temporary = file == isa::RegisterFile::gpr ? f.gprs[r - isa::first_virtual].temporary
                                                          : f.temporary_predicate[r - isa::first_virtual];
          for (uint32_t w = 0; w < width; ++w) {
            uint32_t x = file == isa::RegisterFile::gpr ? r - isa::first_virtual + w : v;
            begin_life(x, at + 2);  // a result that nobody reads needs a register all the same
          }
          if (inst.sass.guard != isa::PT && !temporary) return;
          for (uint32_t w = 0; w < width; ++w) {
            uint32_t x = file == isa::RegisterFile::gpr ? r - isa::first_virtual + w : v;
            now.reset(x);
            if (--units[v] == 0) close(v, at + 1);
          }
        });
        for_each_read(inst, [&](uint32_t r, uint32_t width, isa::RegisterFile file) {
          if (r < isa::first_virtual) return;
          uint32_t v = of(r, file);
          intervals[v].weight += weight;
          for (uint32_t w = 0; w < width; ++w)
            begin_life(file == isa::RegisterFile::gpr ? r - isa::first_virtual + w : v, at + 1);
        });
        // A guarded first write of something that no path has defined: its life begins here.
        hint(inst);
      }
      // What is still alive began before the block, or was never defined on any path.
      now.for_each([&](size_t x) {
        uint32_t v = value(x);
        if (units[v] == 0) return;
        units[v] = 0;
        close(v, starts[k]);
      });
      now.clear();
    }
  }

  // A copy wants its source's register.
  void hint(const Inst& inst) {
    if (inst.sass.mnemonic != isa::Mnemonic::MOV || inst.sass.operands[1].kind != isa::OperandKind::gpr) return;
    uint32_t d = inst.sass.operands[0].reg, s = inst.sass.operands[1].reg;
    if (d < isa::first_virtual || s < isa::first_virtual) return;
    uint32_t dv = of(d, isa::RegisterFile::gpr), sv = of(s, isa::RegisterFile::gpr);
    int32_t offset =
        static_cast<int32_t>(s - isa::first_virtual - sv) - static_cast<int32_t>(d - isa::first_virtual - dv);
    if (intervals[dv].hint == UINT32_MAX) intervals[dv].hint = sv, intervals[dv].hint_offset = offset;
    if (intervals[sv].hint == UINT32_MAX) intervals[sv].hint = dv, intervals[sv].hint_offset = -offset;
  }

  bool overlap(uint32_t a, uint32_t b) const {
    while (a != UINT32_MAX && b != UINT32_MAX) {
      if (segments[a].end <= segments[b].begin)
        a = segments[a].next;
      else if (segments[b].end <= segments[a].begin)
        b = segments[b].next;
      else
        return true;
    }
    return false;
  }

  // Assigns registers to the intervals in `order`; registers [0, limit) without `reserved`. Returns whether nothing was spilled.
  bool scan(std::vector<uint32_t>& order, uint32_t limit, uint32_t reserved, bool may_spill) {
    struct Active {
      uint32_t interval, cursor;
    };
    std::vector<Active> active;
    bool complete = true;
    for (uint32_t v : order) {
      Interval& i = intervals[v];
      const uint32_t start = segments[i.first].begin;
      std::array<uint64_t, 5> busy{};
      auto block_registers = [&](uint32_t reg, uint32_t width) {
        for (uint32_t w = 0; w < width; ++w) busy[(reg + w) / 64] |= uint64_t{1} << ((reg + w) % 64);
      };
      if (reserved != UINT32_MAX) block_registers(reserved, 1);
      size_t kept = 0;
      for (Active a : active) {
        Interval& other = intervals[a.interval];
        if (other.end <= start) continue;
        while (segments[a.cursor].end <= start) a.cursor = segments[a.cursor].next;
        active[kept++] = a;
        if (overlap(a.cursor, i.first)) block_registers(other.reg, other.width);
      }
      active.resize(kept);
      auto fits = [&](uint32_t r) {
        if (r % i.width != 0 || r + i.width > limit) return false;
        for (uint32_t w = 0; w < i.width; ++w)
          if (busy[(r + w) / 64] >> ((r + w) % 64) & 1) return false;
        return true;
      };
      uint32_t best = UINT32_MAX;
      if (i.hint != UINT32_MAX && intervals[i.hint].reg != UINT32_MAX && !intervals[i.hint].spilled) {
        int64_t r = static_cast<int64_t>(intervals[i.hint].reg) + i.hint_offset;
        if (r >= 0 && fits(static_cast<uint32_t>(r))) best = static_cast<uint32_t>(r);
      }
      for (uint32_t r = 0; best == UINT32_MAX && r + i.width <= limit; r += i.width)
        if (fits(r)) best = r;
      while (best == UINT32_MAX) {
        if (!may_spill) return false;
        complete = false;
        // The cheapest of the overlapping values and this one.
        auto cost = [&](const Interval& x) {
          return x.unspillable ? 1e30f
                               : x.weight / static_cast<float>(x.end - segments[x.first].begin + 1) *
                                     (x.width > i.width ? 0.5f : 1.0f);
        };
        size_t victim = SIZE_MAX;
        float least = cost(i);
        for (size_t a = 0; a < active.size(); ++a) {
          const Interval& other = intervals[active[a].interval];
          if (!overlap(active[a].cursor, i.first)) continue;
          if (cost(other) < least) least = cost(other), victim = a;
        }
        if (least >= 1e30f) return false;
        if (victim == SIZE_MAX) {
          i.spilled = true;
          break;
        }
        Interval& other = intervals[active[victim].interval];
        other.spilled = true;
        for (uint32_t w = 0; w < other.width; ++w)
          busy[(other.reg + w) / 64] &= ~(uint64_t{1} << ((other.reg + w) % 64));
        active.erase(active.begin() + static_cast<ptrdiff_t>(victim));
        // Registers shared by several overlapping values stay busy.
        for (const Active& a : active)
          if (overlap(a.cursor, i.first)) block_registers(intervals[a.interval].reg, intervals[a.interval].width);
        for (uint32_t r = 0; best == UINT32_MAX && r + i.width <= limit; r += i.width)
          if (fits(r)) best = r;
      }
      if (i.spilled) continue;
      i.reg = best;
      active.push_back({v, i.first});
    }
    return complete;
  }

  std::vector<uint32_t> sorted(uint32_t from, uint32_t to) {
    std::vector<uint64_t> keys;
    for (uint32_t v = from; v < to; ++v)
      if (intervals[v].first != UINT32_MAX) keys.push_back(uint64_t{segments[intervals[v].first].begin} << 32 | v);
    std::sort(keys.begin(), keys.end());
    std::vector<uint32_t> order;
    order.reserve(keys.size());
    for (uint64_t k : keys) order.push_back(static_cast<uint32_t>(k));
    return order;
  }

  // Loads before and stores after every access of the spilled values.
  void spill() {
    std::vector<uint32_t> slot(intervals.size(), UINT32_MAX);
    std::vector<uint32_t> holder(intervals.size(), UINT32_MAX);  // predicates: the GPR unit that keeps them
    for (uint32_t v = 0; v < intervals.size(); ++v) {
      if (!intervals[v].spilled) continue;
      if (v < gprs) {
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
      auto add = [&](Inst inst) {
        f.insts.push_back(std::move(inst));
        out.push_back(static_cast<InstId>(f.insts.size() - 1));
      };
      for (InstId id : code) {
        std::vector<std::pair<uint32_t, uint32_t>> replaced;  // value -> new first register
        auto replacement = [&](uint32_t v) {
          for (auto& [from, to] : replaced)
            if (from == v) return to;
          uint32_t to = v < gprs ? new_gpr(f, intervals[v].width, true) : new_predicate(f, true);
          if (v < gprs)
            for (uint32_t w = 0; w < intervals[v].width; ++w) f.gprs[to - isa::first_virtual + w].unspillable = true;
          replaced.push_back({v, to});
          return to;
        };
        auto renamed = [&](uint32_t r, isa::RegisterFile file) {
          uint32_t v = of(r, file);
          return replacement(v) + (file == isa::RegisterFile::gpr ? r - isa::first_virtual - v : 0);
        };
        std::vector<Inst> after;
        Inst inst = f[id];
        const uint32_t line = inst.line;
        auto is_spilled = [&](uint32_t r, isa::RegisterFile file) {
          return r >= isa::first_virtual && intervals[of(r, file)].spilled;
        };
        std::vector<Inst> before;
        for_each_read(inst, [&](uint32_t r, uint32_t width, isa::RegisterFile file) {
          if (!is_spilled(r, file)) return;
          uint32_t v = of(r, file);
          if (file == isa::RegisterFile::gpr)
            before.push_back(
                spill_load(*f.target, renamed(r, file), width, slot[v] + 4 * (r - isa::first_virtual - v)));
          else
            before.push_back(predicate_from_gpr(*f.target, renamed(r, file), holder[v]));
        });
        uint32_t guard = inst.sass.guard;
        if (guard != isa::PT && is_spilled(guard, isa::RegisterFile::predicate))
          guard = renamed(guard, isa::RegisterFile::predicate);
        for_each_write(inst, [&](uint32_t r, uint32_t width, isa::RegisterFile file) {
          if (!is_spilled(r, file)) return;
          uint32_t v = of(r, file);
          Inst store = file == isa::RegisterFile::gpr
                           ? spill_store(*f.target, renamed(r, file), width, slot[v] + 4 * (r - isa::first_virtual - v))
                           : gpr_from_predicate(*f.target, holder[v], renamed(r, file));
          store.sass.guard = guard;
          store.sass.guard_negated = inst.sass.guard_negated;
          after.push_back(store);
        });
        for (Inst& x : before) x.line = line, add(std::move(x));
        if (!replaced.empty()) {
          for (uint32_t k = 0; k < inst.sass.operand_count; ++k) {
            isa::RegisterFile file = inst.uses[k].file;
            if (inst.uses[k].access == isa::Access::none ||
                (file != isa::RegisterFile::gpr && file != isa::RegisterFile::predicate))
              continue;
            uint32_t& r = inst.sass.operands[k].reg;
            if (r != (file == isa::RegisterFile::gpr ? isa::RZ : isa::PT) && is_spilled(r, file)) r = renamed(r, file);
          }
          inst.sass.guard = guard;
          f[id] = inst;
        }
        out.push_back(id);
        for (Inst& x : after) x.line = line, add(std::move(x));
      }
      if (uint32_t& p = f.blocks[b].predicate; p != isa::PT && intervals[of(p, isa::RegisterFile::predicate)].spilled) {
        uint32_t t = new_predicate(f, true);
        add(predicate_from_gpr(*f.target, t, holder[of(p, isa::RegisterFile::predicate)]));
        p = t;
      }
    }
  }

  void rewrite() {
    auto physical = [&](uint32_t r, isa::RegisterFile file) {
      uint32_t v = of(r, file);
      CHECK(intervals[v].reg != UINT32_MAX, "register {} has no place", r);
      return intervals[v].reg + (file == isa::RegisterFile::gpr ? r - isa::first_virtual - v : 0);
    };
    for (BlockId b : f.layout) {
      Block& block = f.blocks[b];
      for (InstId id : block.code) {
        Inst& inst = f[id];
        for (uint32_t k = 0; k < inst.sass.operand_count; ++k) {
          isa::RegisterFile file = inst.uses[k].file;
          if (inst.uses[k].access == isa::Access::none ||
              (file != isa::RegisterFile::gpr && file != isa::RegisterFile::predicate))
            continue;
          uint32_t& r = inst.sass.operands[k].reg;
          if (r >= isa::first_virtual) r = physical(r, file);
        }
        if (inst.sass.guard >= isa::first_virtual)
          inst.sass.guard = physical(inst.sass.guard, isa::RegisterFile::predicate);
      }
      if (block.predicate >= isa::first_virtual)
        block.predicate = physical(block.predicate, isa::RegisterFile::predicate);
    }
    f.allocated = true;
  }
};

}  // namespace

Result<void> allocate_registers(Function& f) {
  const uint32_t limit = std::min(f.max_registers, f.target->max_registers);
  Allocator a{f, {}, {}, {}};
  for (int round = 0; round < 60; ++round) {
    a.build();
    const bool stack = f.local_bytes > 0;
    bool predicates = true, gprs = true;
    std::vector<uint32_t> order = a.sorted(a.gprs, a.live.total);
    predicates = a.scan(order, isa::PT, UINT32_MAX, true);
    order = a.sorted(0, a.gprs);
    gprs = a.scan(order, limit, stack ? stack_register : UINT32_MAX, true);
    bool any = false;
    for (const Interval& i : a.intervals) any |= i.spilled;
    if (!any && (!predicates || !gprs)) break;
    if (!any) {
      a.rewrite();
      if (stack) {
        f.uses_stack = true;
        f.local_bytes = (f.local_bytes + 7) / 8 * 8;
        std::vector<InstId> code;
        for (Inst& inst : stack_prologue(*f.target, f.local_bytes)) {
          f.insts.push_back(std::move(inst));
          code.push_back(static_cast<InstId>(f.insts.size() - 1));
        }
        std::vector<InstId>& entry = f.blocks[f.layout[0]].code;
        entry.insert(entry.begin(), code.begin(), code.end());
      }
      return {};
    }
    a.spill();
  }
  return input_error("function {}: needs more registers than the limit of {} even with spilling", f.source->name,
                     limit);
}

}  // namespace rndn::assembler
