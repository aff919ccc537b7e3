// The order in which the items of a tile are evaluated.
//
// Statements run item by item, so that few predicates and temporaries are live at a time. Gathers are the exception: a chain of them (index of an
// index of a loaded row number) is evaluated statement by statement for all items first, so that a thread waits once per link of the chain and not
// once per item and link. Only unselected elements whose positions need no bool are taken early, each variable defined once, and no more than
// `budget` registers of them. Conditions that guard gathers come before those (guards.cpp).
// Cost: O(steps x items).
#include <algorithm>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {
namespace {

using hir::VariableId;

constexpr uint32_t budget = 64;  // 32-bit registers of early results

// What waits for memory at a computed place.
bool gathers(const Step& s) { return s.call && (s.builtin == Builtin::index || s.builtin == Builtin::gpu_probe); }

void start_item(Emitter& e, uint32_t item) {
  e.item = item;
  e.valid = {};
  e.active.clear();
  e.conjunctions.clear();
  // First, so that comparisons can take it in.
  if (e.in_loop && !e.all_valid && (e.guards_items || item < e.within.size())) e.valid = within(e, item);
  if (e.given.empty()) return;
  // They hold for all items that there are.
  e.active.emplace_back(e.valid.id, e.valid);
  for (VariableId v : e.given) e.values[index(v)] = element(BasicType::boolean, e.valid);
}

void set_inputs(Emitter& e, bool booleans) {
  for (const Input& in : e.inputs) {
    if (!in.wanted || !in.loaded) continue;  // loaded later: where a guard holds, which does not follow from it
    if (in.type == BasicType::boolean && !booleans) continue;
    Element x = input_item(e, in, e.item);
    if (in.type == BasicType::boolean) {
      x.stored = reg<S32>(x);
      x.value = Builder::use(e.b.setp(ptx::Compare::ne, x.stored, 0));
    }
    e.values[index(in.variable)] = x;
  }
}

// What has been evaluated for all items, for the current one.
void set_early(Emitter& e, const ItemPlan& plan) {
  for (const auto& [v, results] : plan.early) {
    const Element& x = results[e.item];
    e.values[index(v)] = convert(e, x, e.type_of(v));
    if (e.type_of(v) != BasicType::boolean) continue;
    e.values[index(v)].stored = reg<S32>(x);
    // Conditions of a guard are false beyond n.
    const auto condition = [&, variable = v](const Guard& g) {
      return !g.items.empty() && g.conditions.size() == 1 && g.conditions[0] == variable;
    };
    if (std::any_of(e.guards.begin(), e.guards.end(), condition)) {
      const Reg<Pred> holds = reg<Pred>(e.values[index(v)]);
      e.active.emplace_back(static_cast<RegisterId>(e.values[index(v)].value.id), holds);
    }
  }
}

// Evaluates the conditions of the guards, and loads what they keep back. A guard of one condition is that condition for
// all items from here on.
void start_guards(Emitter& e, InlineVector<uint32_t, 4> started, ItemPlan& plan) {
  started.erase(std::remove_if(started.begin(), started.end(), [&](uint32_t g) { return !e.guards[g].items.empty(); }),
                started.end());
  if (started.empty()) return;
  Marks steps = marks(e.steps.size());
  for (uint32_t g : started)
    for (size_t k = 0; k < e.steps.size(); ++k) steps[k] = steps[k] || e.guards[g].steps[k];
  for (uint32_t item = 0; item < e.items; ++item) {
    start_item(e, item);
    set_inputs(e, true);
    set_early(e, plan);
    for (size_t k = 0; k < e.steps.size(); ++k)
      if (steps[k] && plan.early.find(e.steps[k].target) == plan.early.end()) run_step(e, e.steps[k]);
    for (uint32_t g : started) note_guard(e, e.guards[g]);
  }
  for (uint32_t g : started) {
    load_guarded_inputs(e, g);
    if (e.guards[g].conditions.size() != 1) continue;
    EarlyResults results;
    for (Reg<S32> x : e.guards[g].items) results.push_back(element(BasicType::i8, x));
    plan.early[e.guards[g].conditions[0]] = results;
  }
}

// The guards of what the step reads.
InlineVector<uint32_t, 4> guards_before(const Emitter& e, const Step& s) {
  InlineVector<uint32_t, 4> out;
  const auto add = [&](uint32_t guard) {
    if (std::find(out.begin(), out.end(), guard) == out.end()) out.push_back(guard);
  };
  if (const auto at = e.guard_of.find(s.id); at != e.guard_of.end()) add(at->second);
  for (const Input& in : e.inputs)
    for (const hir::Operand& o : s.operands)
      if (in.guard && o.kind == hir::Operand::variable && o.variable_id() == in.variable) add(*in.guard);
  return out;
}

InlineVector<uint32_t, 4> guards_of_stages(const Emitter& e, size_t last) {
  InlineVector<uint32_t, 4> out;
  for (uint32_t g = 0; g < e.guards.size(); ++g)
    if (e.guards[g].stage <= last) out.push_back(g);
  return out;
}

// Which of the steps that conditions of stage 0 follow from need not run again.
Marks known_steps(const Emitter& e, const ItemPlan& plan) {
  Marks known = marks(e.steps.size());
  if (e.guards.empty()) return known;
  std::vector<uint32_t> readers(e.function.variables.size());  // that need not run
  for (size_t k = e.steps.size(); k-- > 0;) {
    const Step& s = e.steps[k];
    const bool is_condition = std::any_of(e.guards.begin(), e.guards.end(), [&](const Guard& g) { return !g.items.empty() && g.steps[k]; });
    if (!is_condition ||
        (plan.early.find(s.target) == plan.early.end() && readers[index(s.target)] != e.reads[index(s.target)]))
      continue;
    known[k] = true;
    for (const hir::Operand& o : s.operands)
      if (o.kind == hir::Operand::variable) ++readers[o.id];
  }
  return known;
}

}  // namespace

// Which of the marked steps may and should run before all others.
Marks early_steps(const Emitter& e, const Marks& wanted) {
  const size_t count = e.steps.size();
  Marks early = marks(count);
  size_t first = 0;
  while (first < count && !(wanted[first] && gathers(e.steps[first]) && !e.steps[first].scalar)) ++first;
  if (first == count) return early;
  const Marks& definitions = e.definitions;
  Marks ready = marks(e.function.variables.size()), possible = marks(count);
  for (const Input& in : e.inputs) ready[index(in.variable)] = in.wanted && in.type != BasicType::boolean;
  for (size_t k = 0; k < count; ++k) {
    const Step& s = e.steps[k];
    if (!wanted[k] || s.scalar || s.reduction) continue;
    if (e.form(s.target) != Form::element && e.form(s.target) != Form::row) continue;
    const bool gather = s.call && s.builtin == Builtin::index;
    if (definitions[index(s.target)] != 1) continue;
    const bool boolean = e.type_of(s.target) == BasicType::boolean;
    if (boolean && !(gather && s.casts.empty())) continue;
    if (s.call && (s.builtin == Builtin::where || s.builtin == Builtin::compress)) continue;
    possible[k] = true;
    for (size_t o = 0; o < s.operands.size(); ++o) {
      const hir::Operand& operand = s.operands[o];
      if (reads_whole(s, o) || operand.kind != hir::Operand::variable || e.form(operand) == Form::scalar) continue;
      possible[k] = possible[k] && ready[operand.id] && definitions[operand.id] == 1;
    }
    ready[index(s.target)] = possible[k] && !boolean;
  }
  Marks read = marks(e.function.variables.size());  // by an early step
  uint32_t registers = 0;
  for (size_t k = 0; k < count && registers <= budget; ++k) {
    const Step& s = e.steps[k];
    if (!possible[k] || !gathers(s)) continue;
    registers += e.items * std::max(1u, width_of(e.type_of(s.target)) / 4);
    if (registers > budget && registers > e.items * 2) break;
    early[k] = true;
  }
  for (size_t k = count; k-- > 0;) {
    const Step& s = e.steps[k];
    if (possible[k] && read[index(s.target)]) early[k] = true;
    if (!early[k]) continue;
    for (size_t o = 0; o < s.operands.size(); ++o)
      if (!reads_whole(s, o) && s.operands[o].kind == hir::Operand::variable) read[s.operands[o].id] = true;
  }
  return early;
}

ItemPlan start_items(Emitter& e, const Marks& wanted, const Marks& early) {
  ItemPlan plan;
  const uint32_t items = e.items;
  start_guards(e, guards_of_stages(e, 0), plan);
  const Marks known = known_steps(e, plan);
  for (size_t k = 0; k < e.steps.size(); ++k) {
    const Step& s = e.steps[k];
    if (!wanted[k] || known[k]) continue;
    if (!early[k]) {
      plan.late.push_back(&s);
      continue;
    }
    start_guards(e, guards_before(e, s), plan);
    EarlyResults results;
    std::vector<ProbeItem> probes;
    Reg<Pred> bad;
    for (uint32_t item = 0; item < items; ++item) {
      start_item(e, item);
      set_inputs(e, false);
      for (const hir::Operand& o : s.operands)
        if (o.kind == hir::Operand::variable)
          if (const auto known = plan.early.find(o.variable_id()); known != plan.early.end() && o.id != index(s.target))
            e.values[o.id] = convert(e, known->second[item], e.type_of(o.variable_id()));
      if (s.call && s.builtin == Builtin::gpu_probe && s.casts.empty()) {
        probes.push_back(probe_item(e, s));
      } else if (s.call && s.builtin == Builtin::index && s.casts.empty()) {
        const Element at = s.operands[1].kind == hir::Operand::literal
                               ? literal_element(e, e.program.literals[s.operands[1].literal_id()])
                               : e.values[s.operands[1].id];
        results.push_back(gather(e, s.operands[0].variable_id(), at, index(s.id), &bad, guard_of(e, s.id),
                                 is_inside(e, s)));
      } else {
        run_step(e, s);
        results.push_back(e.values[index(s.target)]);
      }
    }
    if (!probes.empty())
      for (const Element& row : look_up(e, lookup_of(e, s), probes)) results.push_back(row);
    plan.early[s.target] = results;
    if (bad.valid()) report_error(e, bad, index(s.id), RuntimeError::index_out_of_range);
  }
  start_guards(e, guards_of_stages(e, SIZE_MAX), plan);
  return plan;
}

void evaluate_item(Emitter& e, const ItemPlan& plan) {
  start_item(e, e.item);
  set_inputs(e, true);
  set_early(e, plan);
  for (const Step* s : plan.late) run_step(e, *s);
}

}  // namespace rndn::codegen
