// Guards: what is read at computed places only for a conjunction is read where the rest of it holds.
//
//   m = and(a, b), b follows from gathers, a from the loaded elements or from earlier gathers: they
//   are done where a holds, as b counts nowhere else. A gather's range is checked for all elements:
//   an error is the program's, whatever else the mask says; none is checked where bounds say that no
//   position lies outside (KernelEncodings::inside). A column from which no condition follows
//   is loaded there too, unless several gathers come first: one more wait behind theirs costs more than
//   the bytes (SSB's flights 3 and 4 take 0.9 of the time without it, flight 1 takes 1.2: H200,
//   `rndn ssb run --scale 10 --device cuda --repeat 20`). Where the first one is a look-up behind a filter (ptx/lookup/lookup.h), few rows
//   are left, and it is loaded behind that one. (Pushing
//   conjuncts before others: J. M. Hellerstein, M. Stonebraker, "Predicate migration", SIGMOD 1993;
//   here none is moved, only its loads.)
//
// Backwards over the steps: for each variable the conditions under which anything reads it, the
// union along a path, the intersection of all readers. Conditions are element-wise and cannot fail.
// A condition has a stage: 0 when it follows from the loaded elements alone, else 1 + the number of
// the last early step that reads memory for it (items.cpp). Step k has the conditions of stages up
// to k. Where a condition is false because its own guard is, all that it guards has that guard, too.
// Those of stage 0 are evaluated first, the others when a step wants them: for all items of a tile,
// one register an item. Cost: O(steps x conditions). Left out: kernels of lists; loops over selected
// elements, where all masks hold; positions of gathers, whose range is checked.
//
// Where all that a loop accumulates is selected under the same conditions, and no error counts
// elsewhere, an item for which a guard of these fails is passed by: of few selected elements, most
// warps have none.
#include <algorithm>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {
namespace {

using hir::VariableId;
// Conditions ascend, and all of them hold.

constexpr size_t most_guards = 4, most_late_guards = 6, most_steps = 48;

Conditions united(const Conditions& a, const Conditions& b) {
  Conditions out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

class Finder {
 public:
  Finder(const Emitter& e, const Marks& wanted, const Marks& early)
      : e_(e), wanted_(wanted), early_(early), known_(e.function.variables.size()) {
    // Of what runs in another loop, over selected elements, which evaluates anew what it reads; the masks that select them are read here.
    for (size_t k = 0; k < e.steps.size(); ++k)
      if (const Step& s = e.steps[k]; !wanted[k] && !s.scalar && !s.reduction)
        for (size_t o = s.call && s.builtin == Builtin::compress ? 1 : 0; o < s.operands.size(); ++o)
          if (s.operands[o].kind == hir::Operand::variable) ++known_[s.operands[o].id].elsewhere;
    for (const Input& in : e.inputs)
      if (in.wanted) known_[index(in.variable)].stage = 0;
    for (size_t k = 0; k < e.steps.size(); ++k) {
      if (first_ == 0 && early[k] && reads_memory(e.steps[k])) first_ = k + 1;
      const size_t t = index(e.steps[k].target);
      if (!wanted[k] || e.definitions[t] != 1) continue;
      known_[t].defined_by = k;
      known_[t].stage = early_[k] && reads_memory(e.steps[k]) ? k + 1 : stage_of(e.steps[k]);
    }
  }

  void find(std::vector<Guard>& guards, FlatMap<hir::StatementId, uint32_t>& of, std::vector<Input>& inputs) {
    const size_t variables = e_.function.variables.size();
    Conditions asked;  // all conditions that there are
    // What of the conditions is there at that step; where that is too much, those of stage 0.
    const auto guard = [&](Conditions under, size_t step) -> std::optional<uint32_t> {
      drop(under, step);
      if (const auto at = guard_with(guards, under); at || stage_of(under) == 0) return at;
      drop(under, 0);
      return guard_with(guards, under);
    };
    const auto needs = [&](const hir::Operand& o, const Conditions& under) {
      if (o.kind != hir::Operand::variable) return;
      if (known_[o.id].readers++ == 0) {
        known_[o.id].demand = under;
        return;
      }
      Conditions both;
      std::set_intersection(known_[o.id].demand.begin(), known_[o.id].demand.end(), under.begin(), under.end(),
                            std::back_inserter(both));
      known_[o.id].demand = std::move(both);
    };
    for (size_t k = e_.steps.size(); k-- > 0;) {
      const Step& s = e_.steps[k];
      if (!wanted_[k]) continue;
      const size_t t = index(s.target);
      // What is read elsewhere too, by what no step of this loop is, is read always.
      const bool known = known_[t].defined_by == k && is_read_here_alone(t) && e_.form(s.target) == Form::element;
      const Conditions under = known ? known_[t].demand : Conditions();
      const bool gather = s.call && s.builtin == Builtin::index, probe = s.call && s.builtin == Builtin::gpu_probe;
      if (gather || probe)
        if (const auto at = guard(under, early_[k] ? k : none_)) of[s.id] = *at;
      const size_t reads = early_[k] ? k : known_[t].first;
      if (s.call && ((s.builtin == Builtin::and_ && s.casts.empty()) || s.builtin == Builtin::compress))
        for (size_t o = 0; o < (s.builtin == Builtin::and_ ? 2u : 1u); ++o)
          asked = united(asked, conjuncts(s.operands[o]));
      for (size_t o = 0; o < s.operands.size(); ++o) {
        if (reads_whole(s, o)) continue;
        if (s.operands[o].kind == hir::Operand::variable)
          known_[s.operands[o].id].first = std::min(known_[s.operands[o].id].first, reads);
        if (!s.call)
          needs(s.operands[o], under);
        else if (s.builtin == Builtin::and_ && s.casts.empty())
          needs(s.operands[o], united(under, conjuncts(s.operands[1 - o])));
        else if (s.builtin == Builtin::compress)
          needs(s.operands[o], o == 1 ? united(under, conjuncts(s.operands[0])) : under);
        else if (probe || is_map(s))
          needs(s.operands[o], under);
        else
          needs(s.operands[o], {});
      }
    }
    // Columns from which no condition follows: behind the first gather at most.
    std::vector<uint8_t> conditional(variables);
    for (VariableId v : asked) conditional[index(v)] = true;
    (void)steps_before(conditional, false);
    const bool leaves_few = first_ > 0 && e_.steps[first_ - 1].builtin == Builtin::gpu_probe &&
                            lookup_of(e_, e_.steps[first_ - 1]).filtered;
    for (Input& in : inputs) {
      const size_t v = index(in.variable);
      if (in.wanted && !conditional[v] && known_[v].readers > 0 && is_read_here_alone(v) && e_.definitions[v] == 1 &&
          e_.form(in.variable) == Form::element) {
        const bool waits = leaves_few || stage_of(known_[v].demand) <= first_;
        in.guard = guard(known_[v].demand, std::min(known_[v].first, waits ? first_ : 0));
      }
    }
  }

  struct PlaceUse {
    uint32_t place;
    Conditions conditions;  // under which it is read
  };
  // What holds for all elements that the loop has a use for: accumulators, sinks and scans, and errors; `late`: not those of early steps.
  // `places`: positions of KernelCode::places are taken to be no errors, and noted.
  std::optional<Conditions> of_all(bool late, std::vector<PlaceUse>* places = nullptr) const {
    std::vector<Conditions> selected(e_.function.variables.size());  // what holds for all elements of a selection
    std::optional<Conditions> common;
    const auto is_used_under = [&](const Conditions& of) {
      Conditions both;
      if (common) std::set_intersection(common->begin(), common->end(), of.begin(), of.end(), std::back_inserter(both));
      common = common ? std::move(both) : of;
    };
    const auto is_used = [&](VariableId v) { is_used_under(selected[index(v)]); };
    for (size_t k = 0; k < e_.steps.size(); ++k) {
      const Step& s = e_.steps[k];
      if (s.scalar || s.reduction) continue;
      const bool selects = s.call && (s.builtin == Builtin::compress || (!late && s.builtin == Builtin::where));
      if (e_.definitions[index(s.target)] == 1 && (selects || reads_memory(s) || keeps_rows(s)))
        for (size_t o = 0; o < s.operands.size(); ++o) {
          if (reads_whole(s, o) || s.operands[o].kind != hir::Operand::variable) continue;
          Conditions& all = selected[index(s.target)];
          all = united(all, selected[s.operands[o].id]);
          if (selects && o == 0) all = united(all, conjuncts(s.operands[o]));
        }
      if (!wanted_[k] || (late && early_[k]) || !can_fail(e_, s)) continue;
      if (places && s.place != UINT32_MAX)
        places->push_back({s.place, selected[index(s.target)]});
      else
        is_used(s.target);
    }
    for (const Accumulator& a : e_.accumulators) is_used(a.argument);
    for (const Sink& s : e_.sinks) {
      for (VariableId k : s.keys) is_used(k);
      for (const Fold& f : s.folds) is_used(f.values);
    }
    for (const Scan& s : e_.scans) {
      Conditions all;
      for (const hir::Operand& m : s.masks) all = united(all, conjuncts(m));
      is_used_under(all);
    }
    return common;
  }

  // The guard outside which no accumulator and no error has a use for an item.
  std::optional<uint32_t> of_items(const std::vector<Guard>& guards) const {
    const std::optional<Conditions> common = of_all(true);
    std::optional<uint32_t> best;
    for (uint32_t g = 0; common && g < guards.size(); ++g) {
      const Conditions& of = guards[g].conditions;
      if (std::includes(common->begin(), common->end(), of.begin(), of.end()) &&
          (!best || of.size() > guards[*best].conditions.size()))
        best = g;
    }
    return best;
  }

  Conditions of_stage_0(Conditions conditions) const {
    drop(conditions, 0);
    return conditions;
  }

 private:
  static constexpr size_t none_ = SIZE_MAX;
  struct Known {
    size_t defined_by = none_;  // step
    size_t stage = none_;       // none_: no condition may follow from it
    size_t first = none_;       // early step that reads it or what follows from it
    uint32_t readers = 0;       // steps of this loop
    uint32_t elsewhere = 0;     // of others
    Conditions demand;          // under which it is read
  };
  bool is_read_here_alone(size_t v) const { return known_[v].readers + known_[v].elsewhere == e_.reads[v]; }

  // The guard of these conditions, a new one where there is room for it.
  std::optional<uint32_t> guard_with(std::vector<Guard>& guards, const Conditions& conditions) const {
    if (conditions.empty()) return std::nullopt;
    const auto at =
        std::find_if(guards.begin(), guards.end(), [&](const Guard& g) { return g.conditions == conditions; });
    if (at != guards.end()) return static_cast<uint32_t>(at - guards.begin());
    Guard made{.conditions = conditions, .stage = stage_of(conditions)};
    const bool late = made.stage > 0;
    if (std::count_if(guards.begin(), guards.end(), [&](const Guard& g) { return (g.stage > 0) == late; }) ==
        static_cast<ptrdiff_t>(late ? most_late_guards : most_guards))
      return std::nullopt;
    std::vector<uint8_t> needed(e_.function.variables.size());
    for (VariableId v : conditions) needed[index(v)] = true;
    made.steps = steps_before(needed, true);
    size_t steps = 0;  // of all that are evaluated together
    for (size_t k = 0; k < made.steps.size(); ++k)
      steps += made.steps[k] || std::any_of(guards.begin(), guards.end(),
                                            [&](const Guard& g) { return (g.stage > 0) == late && g.steps[k]; });
    if (steps > most_steps) return std::nullopt;
    guards.push_back(std::move(made));
    return static_cast<uint32_t>(guards.size() - 1);
  }
  void drop(Conditions& conditions, size_t stage) const {  // those of later stages
    conditions.erase(std::remove_if(conditions.begin(), conditions.end(),
                                    [&](VariableId v) { return known_[index(v)].stage > stage; }),
                     conditions.end());
  }
  static bool reads_memory(const Step& s) {
    return s.call && (s.builtin == Builtin::index || s.builtin == Builtin::gpu_probe);
  }
  // The steps that the variables follow from, in order, and the variables that those read; whether early ones that read
  // memory and what comes before them are left out.
  Marks steps_before(std::vector<uint8_t>& needed, bool between) const {
    Marks out = marks(e_.steps.size());
    for (size_t k = e_.steps.size(); k-- > 0;) {
      const Step& s = e_.steps[k];
      if (!wanted_[k] || !needed[index(s.target)] || (between && early_[k] && reads_memory(s))) continue;
      out[k] = true;
      for (const hir::Operand& o : s.operands)
        if (o.kind == hir::Operand::variable) needed[o.id] = true;
    }
    return out;
  }

  // Element by element, without an error and without a place in memory.
  bool is_map(const Step& s) const {
    return keeps_rows(s) && !(s.call && (can_fail(e_, s) || hir::needs_math(s.builtin, s.result)));
  }
  static bool keeps_rows(const Step& s) {
    if (s.scalar || s.reduction) return false;
    if (!s.call) return true;
    const hir::ShapeRule rule = hir::row(s.builtin).shape_rule;
    return rule == hir::ShapeRule::broadcast || (rule == hir::ShapeRule::argument0 && s.builtin != Builtin::reverse);
  }
  size_t stage_of(const Step& s) const {
    if (!is_map(s) || e_.form(s.target) != Form::element) return none_;
    size_t stage = 0;
    for (const hir::Operand& o : s.operands)
      if (o.kind == hir::Operand::variable && e_.form(o) != Form::scalar) stage = std::max(stage, known_[o.id].stage);
    return stage;
  }
  size_t stage_of(const Conditions& conditions) const {
    size_t stage = 0;
    for (VariableId v : conditions) stage = std::max(stage, known_[index(v)].stage);
    return stage;
  }
  // Conditions that hold where the operand does.
  Conditions conjuncts(const hir::Operand& o) const {
    if (o.kind != hir::Operand::variable || e_.form(o) != Form::element || e_.definitions[o.id] != 1 ||
        e_.type_of(o.variable_id()) != BasicType::boolean)
      return {};
    const size_t k = known_[o.id].defined_by, stage = known_[o.id].stage;
    const bool is_and =
        k != none_ && e_.steps[k].call && e_.steps[k].builtin == Builtin::and_ && e_.steps[k].casts.empty();
    if (is_and && stage != 0) return united(conjuncts(e_.steps[k].operands[0]), conjuncts(e_.steps[k].operands[1]));
    return stage == none_ ? Conditions() : Conditions{o.variable_id()};
  }

  const Emitter& e_;
  const Marks& wanted_;
  const Marks& early_;
  std::vector<Known> known_;  // by variable
  size_t first_ = 0;          // stage of the first gather
};

}  // namespace

void drop_guards(Emitter& e) {
  e.guards.clear();
  e.guard_of = {};
  e.guard_of_items.reset();
  for (Input& in : e.inputs) in.guard.reset();
}

void find_guards(Emitter& e, const Marks& wanted, const Marks& early) {
  if (e.selected || e.kernel.list || !e.in_loop) return;
  const auto asks = [&](const Step& s) {
    return s.call && (s.builtin == Builtin::and_ || s.builtin == Builtin::compress);
  };
  bool any = false;
  for (size_t k = 0; k < e.steps.size(); ++k) any = any || (wanted[k] && asks(e.steps[k]));
  if (!any) return;
  Finder finder(e, wanted, early);
  finder.find(e.guards, e.guard_of, e.inputs);
  // What takes but a few instructions is not worth a branch.
  if (sums_floats(e) && e.sinks.empty()) e.guard_of_items = finder.of_items(e.guards);
}

Conditions conditions_of_all(Emitter& e, const Marks& wanted, const Marks& early) {
  const Finder finder(e, wanted, early);
  std::vector<Finder::PlaceUse> places;
  const std::optional<Conditions> common = finder.of_all(false, &places);
  if (!common) return {};
  Conditions found = finder.of_stage_0(*common);
  for (const auto& [place, under] : places)
    e.code.places[place].everywhere |= !std::includes(under.begin(), under.end(), found.begin(), found.end());
  return found;
}

void note_guard(Emitter& e, Guard& g) {
  Reg<Pred> holds;
  for (VariableId v : g.conditions) holds = both(e, holds, reg<Pred>(in_register(e, e.values[index(v)])));
  g.items.push_back(e.b.select<S32>(1, 0, active(e, holds)));
}

Reg<Pred> guard_of(Emitter& e, hir::StatementId step) {
  const auto at = e.guard_of.find(step);
  if (at == e.guard_of.end()) return {};
  return e.b.setp(ptx::Compare::ne, e.guards[at->second].items[e.item], 0);
}

}  // namespace rndn::codegen
