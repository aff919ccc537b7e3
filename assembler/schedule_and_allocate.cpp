// Scheduling and register allocation decide about each other: loads that start early live longer, and registers in
// pairs and quads leave gaps that no pressure shows. So the code is scheduled for the registers that occupancy allows
// (backend/register_budget.h), allocated, and scheduled again with less in flight where the allocator did not come by with
// them.
//
// Before that, pressure is taken from code that costs occupancy even in the order of the program: values go to
// uniform registers or are made again where they are read, what only one path reads moves there, and blocks get the
// order with the fewest values alive.
#include "assembler/backend/register_budget.h"
#include "assembler/optimize/optimize.h"
#include "assembler/pipeline.h"

namespace rndn::assembler {
namespace {

// Takes values out of general registers; returns whether anything changed.
bool relieve(Function& f, Survey& survey, isa::FormCache& forms) {
  const bool moved = !f.calls && move_uniform_values(f, survey, forms);
  return rematerialise(f, survey) || moved;
}

}  // namespace

Result<uint32_t> reduce_pressure(Function& f, Survey& known, isa::FormCache& forms, const Options& o, Liveness& live) {
  const bool list = uses_list_scheduler(o), exceeds = list && surely_exceeds(f, known.crossing);
  uint32_t pressure = 0;
  const auto measure = [&] {
    live = compute_liveness(f);
    if (list) pressure = register_pressure(f, live);
  };
  const auto order = [&] { return reorder(f, o, [&] { pressure = schedule_for_pressure(f, live, pressure); }); };
  if (exceeds) relieve(f, known, forms);
  measure();
  if (!list) return 0u;
  if (!exceeds && crosses_occupancy_cliff(f, pressure) && relieve(f, known, forms)) measure();
  if (crosses_occupancy_cliff(f, pressure) && remove_partly_dead_code(f, live, beyond_the_step(f, pressure))) measure();
  RETURN_IF_ERROR(order());
  if (pressure <= occupancy_budget(f)) return pressure;
  // Values that are written several times may have bound the order.
  const std::span<const Renamed> renamed = rename_webs(f, live);
  const uint32_t before = pressure;
  if (!renamed.empty()) RETURN_IF_ERROR(order());
  if (pressure == before) undo_rename_webs(f, renamed);
  return pressure;
}

Result<void> schedule_and_allocate(Function& f, const Liveness& live, uint32_t pressure, const Options& o,
                                   Timings& timings) {
  const bool list = uses_list_scheduler(o);
  RegisterBudget budget = list ? RegisterBudget(f, live, pressure) : RegisterBudget();
  SchedulePlan plan;
  for (bool uneven = false;; budget.relax(uneven)) {
    if (list) {
      auto scope = timings.measure(Phase::schedule, f.source->name);
      if (plan.program.empty()) plan = plan_schedule(f);
      const auto run = [&] { uneven = schedule(f, plan, live, budget.limit(), budget.crowded()); };
      RETURN_IF_ERROR(reorder(f, o, run));
      if (budget.is_open() && budget.settle(register_pressure(f, live))) RETURN_IF_ERROR(reorder(f, o, run));
    }
    auto scope = timings.measure(Phase::allocate, f.source->name);
    Function before;
    if (o.verify_passes) before = f;
    ASSIGN_OR_RETURN(bool within, allocate_registers(f, live, budget.wanted(), !budget.is_last()));
    if (const uint32_t more = budget.exceeding(); !within && more) {
      ASSIGN_OR_RETURN(within, allocate_registers(f, live, more, true));
    }
    if (within) return o.verify_passes ? found(check_allocation(before, f)) : Result<void>{};
  }
}

}  // namespace rndn::assembler
