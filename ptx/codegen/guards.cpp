// Guards: what is read at computed places only for a conjunction is read where the rest of it holds.
//
//   m = and(a, b), b follows from gathers, a from the loaded elements alone: they are done where a
//   holds, as b counts nowhere else. A gather's range is checked for all elements: an error is the
//   program's, whatever else the mask says. A column from which no condition follows is loaded there
//   too. (Pushing conjuncts before others: J. M. Hellerstein,
//   M. Stonebraker, "Predicate migration", SIGMOD 1993; here none is moved, only its loads.)
//
// Backwards over the steps: for each variable the conditions under which anything reads it, the
// union along a path, the intersection of all readers. Conditions are element-wise and cannot fail.
// They are evaluated first for all items of a tile, one register an item, and are not evaluated
// again. Cost: O(steps x conditions). Left out: kernels of lists; loops over selected elements,
// where all masks hold; positions of gathers, whose range is checked.
#include <algorithm>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {
namespace {

using hir::VariableId;
using Conditions = std::vector<VariableId>;  // ascending: all of them hold

constexpr size_t most_guards = 4, most_steps = 32;

Conditions united(const Conditions& a, const Conditions& b) {
  Conditions out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

class Finder {
 public:
  Finder(const Emitter& e, const Marks& wanted)
      : e_(e), wanted_(wanted), defined_by_(e.function.variables.size(), none_), early_(e.function.variables.size()) {
    for (size_t k = 0; k < e.steps.size(); ++k)
      if (wanted[k] && e.definitions[index(e.steps[k].target)] == 1) defined_by_[index(e.steps[k].target)] = k;
    for (const Input& in : e.inputs)
      if (in.wanted) early_[index(in.variable)] = true;
    for (size_t k = 0; k < e.steps.size(); ++k)
      if (wanted[k]) early_[index(e.steps[k].target)] = early_[index(e.steps[k].target)] || is_early(e.steps[k]);
  }

  void find(std::vector<Guard>& guards, FlatMap<hir::StatementId, uint32_t>& of, std::vector<Input>& inputs) {
    const size_t variables = e_.function.variables.size();
    std::vector<Conditions> demand(variables);
    std::vector<uint32_t> readers(variables);
    Conditions asked;  // all conditions that there are
    const auto guard = [&](const Conditions& under) -> std::optional<uint32_t> {
      if (under.empty()) return std::nullopt;
      auto at = std::find_if(guards.begin(), guards.end(), [&](const Guard& g) { return g.conditions == under; });
      if (at == guards.end() && guards.size() == most_guards) return std::nullopt;
      if (at == guards.end()) at = guards.insert(at, Guard{under, {}});
      return static_cast<uint32_t>(at - guards.begin());
    };
    const auto needs = [&](const hir::Operand& o, const Conditions& under) {
      if (o.kind != hir::Operand::variable) return;
      if (readers[o.id]++ == 0) {
        demand[o.id] = under;
        return;
      }
      Conditions both;
      std::set_intersection(demand[o.id].begin(), demand[o.id].end(), under.begin(), under.end(),
                            std::back_inserter(both));
      demand[o.id] = std::move(both);
    };
    for (size_t k = e_.steps.size(); k-- > 0;) {
      const Step& s = e_.steps[k];
      if (!wanted_[k]) continue;
      const size_t t = index(s.target);
      // What is read elsewhere too, by what no step of this loop is, is read always.
      const bool known = defined_by_[t] == k && readers[t] == e_.reads[t] && e_.form(s.target) == Form::element;
      const Conditions under = known ? demand[t] : Conditions();
      const bool gather = s.call && s.builtin == Builtin::index, probe = s.call && s.builtin == Builtin::gpu_probe;
      if (gather || probe)
        if (const auto at = guard(under)) of[s.id] = *at;
      if (s.call && ((s.builtin == Builtin::and_ && s.casts.empty()) || s.builtin == Builtin::compress))
        for (size_t o = 0; o < (s.builtin == Builtin::and_ ? 2u : 1u); ++o)
          asked = united(asked, conjuncts(s.operands[o]));
      for (size_t o = 0; o < s.operands.size(); ++o) {
        if (reads_whole(s, o)) continue;
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
    // Columns from which no condition follows.
    std::vector<uint8_t> conditional(variables);
    for (VariableId v : asked) conditional[index(v)] = true;
    (void)steps_before(conditional);
    for (Input& in : inputs) {
      const size_t v = index(in.variable);
      if (in.wanted && !conditional[v] && readers[v] > 0 && readers[v] == e_.reads[v] && e_.definitions[v] == 1 &&
          e_.form(in.variable) == Form::element)
        in.guard = guard(demand[v]);
    }
  }

  // The steps that the conditions follow from, in order.
  Marks steps_of(const std::vector<Guard>& guards) const {
    std::vector<uint8_t> needed(e_.function.variables.size());
    for (const Guard& g : guards)
      for (VariableId v : g.conditions) needed[index(v)] = true;
    return steps_before(needed);
  }

 private:
  static constexpr size_t none_ = SIZE_MAX;

  // The steps that the variables follow from, in order, and the variables that those read.
  Marks steps_before(std::vector<uint8_t>& needed) const {
    Marks out = marks(e_.steps.size());
    for (size_t k = e_.steps.size(); k-- > 0;) {
      const Step& s = e_.steps[k];
      if (!wanted_[k] || !needed[index(s.target)]) continue;
      out[k] = true;
      for (const hir::Operand& o : s.operands)
        if (o.kind == hir::Operand::variable) needed[o.id] = true;
    }
    return out;
  }

  // Element by element, without an error and without a place in memory.
  bool is_map(const Step& s) const {
    if (s.scalar || s.reduction) return false;
    if (!s.call) return true;
    const hir::ShapeRule rule = hir::row(s.builtin).shape_rule;
    return (rule == hir::ShapeRule::broadcast || (rule == hir::ShapeRule::argument0 && s.builtin != Builtin::reverse)) &&
           !can_fail(e_, s) && !hir::needs_math(s.builtin, s.result);
  }
  bool is_early(const Step& s) const {
    if (!is_map(s) || e_.definitions[index(s.target)] != 1 || e_.form(s.target) != Form::element) return false;
    return std::all_of(s.operands.begin(), s.operands.end(), [&](const hir::Operand& o) {
      return o.kind != hir::Operand::variable || e_.form(o) == Form::scalar || early_[o.id];
    });
  }
  // Conditions that hold where the operand does.
  Conditions conjuncts(const hir::Operand& o) const {
    if (o.kind != hir::Operand::variable || e_.form(o) != Form::element || e_.definitions[o.id] != 1 ||
        e_.type_of(o.variable_id()) != BasicType::boolean)
      return {};
    if (early_[o.id]) return {o.variable_id()};
    const size_t k = defined_by_[o.id];
    if (k == none_) return {};
    const Step& s = e_.steps[k];
    if (!s.call || s.builtin != Builtin::and_ || !s.casts.empty()) return {};
    return united(conjuncts(s.operands[0]), conjuncts(s.operands[1]));
  }

  const Emitter& e_;
  const Marks& wanted_;
  std::vector<size_t> defined_by_;
  std::vector<uint8_t> early_;  // by variable: it follows from the loaded elements alone
};

}  // namespace

void drop_guards(Emitter& e) {
  e.guards.clear();
  e.guard_of = {};
  for (Input& in : e.inputs) in.guard.reset();
}

Marks find_guards(Emitter& e, const Marks& wanted) {
  const Marks nothing = marks(e.steps.size());
  if (e.selected || e.kernel.list || !e.in_loop) return nothing;
  Finder finder(e, wanted);
  finder.find(e.guards, e.guard_of, e.inputs);
  const Marks steps = finder.steps_of(e.guards);
  if (std::count(steps.begin(), steps.end(), 1) <= static_cast<ptrdiff_t>(most_steps)) return steps;
  drop_guards(e);
  return nothing;
}

void note_guards(Emitter& e) {
  Builder& b = e.b;
  for (Guard& g : e.guards) {
    Reg<Pred> holds;
    for (VariableId v : g.conditions) holds = both(e, holds, reg<Pred>(in_register(e, e.values[index(v)])));
    g.items.push_back(b.select<S32>(1, 0, active(e, holds)));
  }
}

Reg<Pred> guard_of(Emitter& e, hir::StatementId step) {
  const auto at = e.guard_of.find(step);
  if (at == e.guard_of.end()) return {};
  return e.b.setp(ptx::Compare::ne, e.guards[at->second].items[e.item], 0);
}

}  // namespace rndn::codegen
