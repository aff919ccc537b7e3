// Partly dead code: what only instructions under one guard need is computed under this guard, and what nobody needs not at all.
//
// Input and output: functions over virtual registers with their liveness, which a change makes stale. A guarded write does not end a life: the lanes that
// it leaves out keep what they had, and something that runs without a guard may read it. So the elements that a thread loads under guards live around its
// loop when what is computed of them is unguarded, though only the stores at the end, guarded as the loads, use it. Under the same guard, the load begins
// the life of its value: it becomes a temporary, as in predicated_live_ranges.cpp.
//
// Algorithm: partial dead code elimination by predication (Gupta, Berson, Fang, "Path Profile Guided Partial Dead Code Elimination Using Predication",
// 1997), without profiles and within blocks. Backwards through a block, the need of each unit is known: nobody's, that of lanes for which one guard
// holds, or everybody's. An instruction without effects needs its sources as its results are needed. A guard is a predicate between two of its
// writes: each write that the walk passes begins another version. Then forwards: those instructions get their guard that depend on guarded writes whose
// results are needed under their guard alone. Values all of whose guarded writes are such become temporaries.
// Cost: O(operands).
//
// Left out: needs under two guards, guards that imply each other, memory operations.
#include <algorithm>

#include "assembler/optimize/optimize.h"

namespace rndn::assembler {
namespace {

constexpr int most_rounds = 8;

class PartlyDeadCode {
 public:
  PartlyDeadCode(Function& f, const Liveness& live) : f_(f), live_(live), units_(f.units) {}

  bool run(uint32_t worth) {
    if (!find_hidden(worth)) return false;
    for (BlockId b : f_.layout) {
      ArenaScope scope(*f_.arena);
      ArenaList<Candidate> candidates(*f_.arena, 64);
      Block& block = f_.blocks[b];
      const size_t kept = walk(block, live_.out(b), &candidates);
      changed_ |= kept > 0;
      block.code.erase(block.code.begin(), block.code.begin() + static_cast<ptrdiff_t>(kept));
      for (size_t k = candidates.size(); k-- > 0;) add_guard(candidates[k]);
      forget(block, live_.out(b));
    }
    for (uint32_t v = 0, width = 1; v < f_.gprs.size(); v += width) {
      width = f_.gprs[v].width;
      if (!begins_lives(units_.first_gpr + v, width)) continue;
      for (uint32_t w = 0; w < width; ++w) f_.gprs[v + w].temporary = true;
      changed_ = true;
    }
    for (uint32_t p = 0; p < units_.predicates; ++p)
      if (begins_lives(p, 1)) f_.predicates[p].temporary = changed_ = true;
    if (changed_) list_units(f_);
    return changed_;
  }

 private:
  // Who needs a unit: nobody, everybody, or else a version of a predicate | negated | (the predicate + 1) << 1.
  using Need = uint64_t;
  static constexpr Need nobody = 0, everybody = 1;
  struct Unit {
    Need need = nobody;        // behind the instruction
    Need guarded_for = nobody;  // the guard of writes that have the need of their guard; everybody: of several
    uint32_t version = 0;       // of a predicate
    bool begins = false;        // some guarded write has the need of its guard
    bool lasts = false;         // some other has not
    bool hidden = false;        // no block needs it from before, as far as is known
  };
  struct Candidate {
    InstId inst;
    Need guard;
  };

  bool begins_lives(uint32_t first, uint32_t width) const {
    bool begins = false, lasts = false;
    for (const Unit& u : unit_.subspan(first, width)) begins |= u.begins, lasts |= u.lasts;
    return begins && !lasts;
  }
  static Need both(Need a, Need b) { return a == nobody || a == b ? b : b == nobody ? a : everybody; }
  Need need_under(uint32_t predicate, bool negated) const {
    return uint64_t{unit_[predicate].version} << 32 | (predicate + 1) << 1 | negated;
  }
  static uint32_t predicate_of(Need guard) { return (static_cast<uint32_t>(guard) >> 1) - 1; }
  Need need_of(uint32_t u) const {
    const Need n = unit_[u].need;
    return n > everybody && n >> 32 != unit_[predicate_of(n)].version ? everybody : n;
  }
  static void mark(Unit& u, Need guard) { u.guarded_for = both(u.guarded_for, guard), u.begins = true; }
  bool has_effects(const Facts& x) const {
    if (x.pinned || x.writes_elsewhere) return true;
    return x.writes().empty() || std::ranges::any_of(x.writes(), [](Range r) { return r.reg() < isa::first_virtual; });
  }

  // Units that are alive where blocks begin for guarded writes alone. False: they are fewer GPRs than what makes the pass worth its time, or to find them
  // takes long.
  bool find_hidden(uint32_t worth) {
    std::span<bool> crosses = f_.arena->make_span<bool>(units_.count);
    for (BlockId b : f_.layout)
      for (uint32_t u : live_.in(b)) crosses[u] = true;
    ArenaList<uint32_t> found(*f_.arena, 64);
    uint32_t gprs = 0;
    for (BlockId b : f_.layout)
      for (InstId i : f_.blocks[b].code) {
        if (!f_.facts[index(i)].guarded) continue;
        const auto [reads, writes, end] = units_.of(i);
        for (const uint32_t* w = writes; w != end; ++w) {
          const uint32_t u = *w & ~Units::lasts;
          if (!(*w & Units::lasts) || !crosses[u]) continue;
          crosses[u] = false;
          found.push(u), gprs += units_.is_gpr(u);
        }
      }
    if (gprs < worth) return false;
    unit_ = f_.arena->make_span<Unit>(units_.count);
    for (uint32_t u : found.all()) unit_[u].hidden = true;
    for (int round = 0; round < most_rounds; ++round) {
      bool shown = false;
      for (BlockId b : f_.layout) {
        walk(f_.blocks[b], live_.out(b), nullptr);
        shown |= forget(f_.blocks[b], live_.out(b));
      }
      if (!shown) return true;
      gprs = 0;
      for (uint32_t u : found.all()) gprs += unit_[u].hidden && units_.is_gpr(u);
      if (gprs < worth) return false;
    }
    return false;
  }

  // From the end of the block to its beginning. With a list of candidates it is what becomes of them: the instructions that are needed are moved to the
  // end of the code. Returns where they begin.
  size_t walk(Block& block, const LiveSet& live_out, ArenaList<Candidate>* candidates) {
    std::vector<InstId>& code = block.code;
    for (uint32_t u : live_out)
      if (!unit_[u].hidden) unit_[u].need = everybody;
    if (block.predicate >= isa::first_virtual) unit_[units_.of(Range::predicate, block.predicate)].need = everybody;
    size_t kept = code.size();
    for (size_t c = code.size(); c-- > 0;) {
      const InstId i = code[c];
      const Facts& x = f_.facts[index(i)];
      const auto [reads, writes, end] = units_.of(i);
      Need needed = nobody;
      for (const uint32_t* w = writes; w != end; ++w) needed = both(needed, need_of(*w & ~Units::lasts));
      const bool effects = has_effects(x);
      if (needed == nobody && !effects) continue;
      if (candidates) code[--kept] = i;
      for (const uint32_t* w = writes; w != end; ++w)
        if (const uint32_t u = *w & ~Units::lasts; u < units_.predicates) ++unit_[u].version;
      const uint32_t guard = x.guarded && f_[i].sass.guard >= isa::first_virtual ? writes[-1] : Units::lasts;
      Need condition = everybody;
      if (guard != Units::lasts) {
        condition = need_under(guard, f_[i].sass.guard_negated);
      } else if (!x.guarded && !effects && !x.ordered && needed > everybody) {
        condition = needed;
        if (candidates) candidates->push({i, needed});
      }
      for (const uint32_t* w = writes; w != end; ++w) {
        Unit& u = unit_[*w & ~Units::lasts];
        if (*w & Units::lasts) {
          if (const Need n = need_of(*w & ~Units::lasts); n != nobody && n != condition) {
            u.lasts = true;
            continue;
          }
          if (candidates) mark(u, condition);
        }
        u.need = nobody;
      }
      for (const uint32_t* r = reads; r != writes; ++r)
        unit_[*r].need = *r == guard ? everybody : both(need_of(*r), condition);
    }
    return kept;
  }

  // What is known of units in the block; returns whether some turn out to be needed from before it.
  bool forget(const Block& block, const LiveSet& live_out) {
    bool shown = false;
    const auto settle = [&](uint32_t u) {
      Unit& x = unit_[u];
      if (x.hidden && x.need != nobody) x.hidden = false, shown = true;
      x.need = x.guarded_for = nobody;
    };
    for (uint32_t u : live_out) settle(u);
    if (block.predicate >= isa::first_virtual) settle(units_.of(Range::predicate, block.predicate));
    for (InstId i : block.code) {
      const auto [reads, writes, end] = units_.of(i);
      for (const uint32_t* u = reads; u != end; ++u) settle(*u & ~Units::lasts);
    }
    return shown;
  }

  void add_guard(Candidate c) {
    const auto [reads, writes, end] = units_.of(c.inst);
    if (std::none_of(reads, writes, [&](uint32_t u) {
          return unit_[u].guarded_for == c.guard || unit_[u].guarded_for == everybody;
        }))
      return;
    Inst& inst = f_[c.inst];
    inst.sass.guard = isa::first_virtual + predicate_of(c.guard);
    inst.sass.guard_negated = c.guard & 1;
    const bool crosses = f_.facts[index(c.inst)].crosses;
    f_.facts[index(c.inst)] = facts_of(*f_.target, inst);
    f_.facts[index(c.inst)].crosses = crosses;
    for (const uint32_t* w = writes; w != end; ++w) mark(unit_[*w], c.guard);
    changed_ = true;
  }

  Function& f_;
  const Liveness& live_;
  const Units& units_;
  bool changed_ = false;
  std::span<Unit> unit_;
};

}  // namespace

bool remove_partly_dead_code(Function& f, const Liveness& live, uint32_t worth) {
  ArenaScope scope(*f.arena);
  return PartlyDeadCode(f, live).run(worth);
}

}  // namespace rndn::assembler
