// Which reductions of cells a kernel has, and which of them share staged values (bundles) and code (families): cells.cpp says what for.
//
// In: steps and their forms. Out: Emitter::cell_reductions, cell_slots; families.
// Cost: O(steps + reductions x (bundles + families)).
#include <algorithm>

#include "ptx/codegen/accumulate.h"
#include "ptx/codegen/cells.h"

namespace rndn::codegen {

using hir::VariableId;

std::vector<Store> stores_of(const Bundle& bundle) {
  std::vector<Store> all;
  for (const CellReduction* r : bundle.reductions)
    for (const CellReduction::Store& s : r->stores) all.push_back({r, &s});
  return all;
}

namespace {

bool same_shape(const Emitter& e, const Bundle& a, const Bundle& b) {
  const auto same_accumulator = [](const Accumulator& x, const Accumulator& y) {
    return x.kind == y.kind && x.type == y.type && x.count == y.count && x.part == y.part;
  };
  if (a.selected != b.selected || e.type_of(a.argument) != e.type_of(b.argument) ||
      !std::equal(a.accumulators.begin(), a.accumulators.end(), b.accumulators.begin(), b.accumulators.end(),
                  same_accumulator))
    return false;
  const std::vector<Store> x = stores_of(a), y = stores_of(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](const Store& s, const Store& t) {
    return s.reduction->builtin == t.reduction->builtin && s.reduction->type == t.reduction->type &&
           s.reduction->value == t.reduction->value && s.reduction->count == t.reduction->count &&
           s.store->conversions == t.store->conversions &&
           e.outputs[s.store->output].type == e.outputs[t.store->output].type;
  });
}

}  // namespace

std::vector<Family> families_of(Emitter& e) {
  std::vector<Bundle> bundles;
  for (CellReduction& r : e.cell_reductions) {
    if (!reduces(r)) continue;
    auto bundle =
        std::find_if(bundles.begin(), bundles.end(), [&](const Bundle& x) { return x.argument == r.argument; });
    if (bundle == bundles.end()) {
      bundle = bundles.insert(bundle, Bundle{.argument = r.argument, .selected = e.form(r.argument) == Form::selected});
      bundle->needed = marks(e.function.variables.size());
      bundle->needed[index(r.argument)] = true;
      bundle->wanted = steps_for(e, bundle->needed, false);
    }
    const auto shared = [&](int& own) {  // the bundle's accumulator that is like the reduction's own
      if (own < 0) return;
      const auto first = r.accumulators.begin() + own;
      const Accumulator& a = *first;
      std::vector<Accumulator>& all = bundle->accumulators;
      auto at = std::find_if(all.begin(), all.end(), [&](const Accumulator& x) {
        return x.kind == a.kind && x.type == a.type && x.count == a.count && x.part == a.part;
      });
      if (at == all.end()) at = all.insert(at, first, first + static_cast<ptrdiff_t>(parts_of(a)));
      own = static_cast<int>(at - all.begin());
    };
    shared(r.value);
    shared(r.count);
    bundle->reductions.push_back(&r);
  }
  std::vector<Family> families;
  for (Bundle& bundle : bundles) {
    auto family = std::find_if(families.begin(), families.end(),
                               [&](const Family& f) { return same_shape(e, f.shape(), bundle); });
    if (family == families.end()) family = families.emplace(family);
    family->members.push_back(std::move(bundle));
  }
  uint32_t slot = 0, store = 0;
  for (Family& f : families) {
    f.first_slot = slot;
    f.first_store = store;
    slot += f.slots() * static_cast<uint32_t>(f.members.size());
    store += f.stores() * static_cast<uint32_t>(f.members.size());
  }
  return families;
}

Marks evaluated_with_cells(const Emitter& e) {
  Marks evaluated = marks(e.function.variables.size());
  for (const CellReduction& r : e.cell_reductions)
    if (reduces(r)) evaluated[index(r.argument)] = true;
  for (size_t s = e.steps.size(); s-- > 0;) {
    if (!evaluated[index(e.steps[s].target)]) continue;
    for (const hir::Operand& o : e.steps[s].operands)
      if (o.kind == hir::Operand::variable) evaluated[o.id] = true;
  }
  return evaluated;
}

void plan_cells(Emitter& e) {
  if (!e.kernel.list) return;
  struct Origin {
    size_t reduction = SIZE_MAX;
    std::vector<BasicType> conversions;
  };
  std::vector<Origin> origins(e.function.variables.size());
  for (const Step& s : e.steps) {
    if (e.form(s.target) != Form::cell) continue;
    Origin o;
    if (s.reduction) {
      const VariableId argument = s.operands[0].variable_id();
      CellReduction r{.result = s.target, .argument = argument, .builtin = s.builtin, .type = s.result};
      const bool selected = e.form(argument) == Form::selected;
      const AccumulatorPlan plan = accumulators_of(s.builtin, e.type_of(argument), selected);
      if (plan.value) {
        r.value = static_cast<int>(r.accumulators.size());
        for (Accumulator& a : value_accumulators(plan, argument)) r.accumulators.push_back(std::move(a));
      }
      if (plan.count) {
        r.count = static_cast<int>(r.accumulators.size());
        r.accumulators.push_back(
            {.kind = Accumulator::add, .type = BasicType::i32, .count = true, .argument = argument});
      }
      o.reduction = e.cell_reductions.size();
      e.cell_reductions.push_back(std::move(r));
    } else {
      o = origins[s.operands[0].id];
    }
    o.conversions.insert(o.conversions.end(), s.casts.begin(), s.casts.end());
    o.conversions.push_back(e.type_of(s.target));
    origins[index(s.target)] = std::move(o);
  }
  for (uint32_t k = 0; k < e.outputs.size(); ++k) {
    const Origin& o = origins[index(e.outputs[k].variable)];
    if (e.outputs[k].kind != Output::cells || o.reduction == SIZE_MAX) continue;
    e.cell_reductions[o.reduction].stores.push_back({k, o.conversions});
  }
  std::erase_if(e.cell_reductions, [](const CellReduction& r) { return r.stores.empty(); });
  // An upper bound: reductions of one argument may share accumulators.
  for (const CellReduction& r : e.cell_reductions) e.cell_slots += static_cast<uint32_t>(r.accumulators.size());
}

uint32_t cell_scratch_bytes(const Emitter& e) { return e.cell_slots ? 8 + 16 * e.cell_slots : 0; }

}  // namespace rndn::codegen
