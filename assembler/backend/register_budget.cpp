// Occupancy against latency. A multiprocessor holds as many warps as their registers allow, in steps of 8 registers
// per thread. Registers that cost no step are free: results of loads may be in flight in them. Beyond, what a warp
// has in flight grows faster than the number of warps falls (Volkov, "Better Performance at Lower Occupancy", 2010),
// so that kernels with several loads in a block get registers for them even at the cost of warps.
#include "assembler/backend/register_budget.h"

#include <algorithm>

#include "assembler/machine/options.h"

namespace rndn::assembler {

namespace {

// Chosen over the kernels of docs/measurements/ordinary-programs.tsv (`tools/bench-programs`, H100). Registers, where
// nothing else is said.
constexpr uint32_t granule = 8;          // registers of a thread are allocated in these
constexpr size_t large_function = 768;   // values; more hardly ever fit in the registers of full occupancy
constexpr uint32_t several_results = 3;  // of a block that are waited for together: worth registers
constexpr uint32_t many_loads = 8;       // of a block in a loop: worth an occupancy step
constexpr uint32_t little_room = 12;     // at full occupancy, below which such a loop gets that step,
constexpr uint32_t lacking = 4;          // if it lacks so many beyond
constexpr uint32_t most_in_flight = 24;  // and an eighth of the pressure
constexpr uint32_t close = 3;            // left for gaps where this decides about occupancy
constexpr uint32_t last_few = 2;         // not worth a step
constexpr uint32_t less_in_flight = 24;  // of the limit with ample slack, when all else was too much
constexpr uint32_t least_limit = 12;

uint32_t step_of(uint32_t reported) { return (reported + granule - 1) / granule * granule; }

// Registers for results that are in flight together, beyond those that are alive anyway, where some block waits for
// several: loads, shuffles. No more than if all that such a block waits for were in flight at its begin or its end.
// Full occupancy is given up for loops of many loads alone that have no room without, and by one step. `free`:
// registers, as reported, that cost no occupancy.
uint32_t latency_hiding_budget(const Function& f, const Liveness& live, uint32_t pressure, uint32_t free) {
  const uint32_t extra = f.target->reported_registers_extra, left = std::max(f.max_registers, pressure) - pressure;
  const bool full = pressure + extra <= free;
  const auto alive = [&](const LiveSet& set) {
    uint32_t count = 0;
    for (uint32_t u : set) count += f.units.is_gpr(u);
    return count;
  };
  uint32_t most = 0;  // alive with all that is in flight
  for (BlockId b : f.layout) {
    if (full && f.blocks[b].loop_depth == 0) continue;
    uint32_t count = 0, results = 0;
    for (InstId i : f.blocks[b].code) {
      const Facts& x = f.facts[index(i)];
      if (!(full ? x.memory == Memory::global_load : x.announced)) continue;
      ++count;
      for (Range r : x.writes()) results += r.file() == Range::gpr ? r.width() : 0;
    }
    if (count >= (full ? many_loads : several_results))
      most = std::max(most, std::max(alive(live.in(b)), alive(live.out(b))) + results);
  }
  if (most <= pressure) return 0;
  if (!full) return std::min({left, most - pressure, most_in_flight + pressure / 8});
  const uint32_t within = free - extra - pressure;
  return within < little_room && most >= pressure + within + lacking ? std::min(left, within + granule) : 0;
}

// Whether a multiprocessor holds more blocks with the lower number of registers. Where their size is open, those of
// 256 and of 512 threads decide: with 40 and 64 registers it holds more of both than with the next step.
bool holds_more_blocks(const Function& f, uint32_t lower, uint32_t registers) {
  const auto blocks = [&](uint32_t of, uint64_t threads) {
    return f.target->registers_per_sm / (step_of(of) * ((threads + 31) / 32 * 32));
  };
  const auto more = [&](uint64_t threads) { return blocks(lower, threads) > blocks(registers, threads); };
  const ptx::Function& p = *f.source;
  const auto& size = p.required_threads[0] ? p.required_threads : p.max_threads;
  if (size[0]) return more(uint64_t{size[0]} * std::max(1u, size[1]) * std::max(1u, size[2]));
  return more(256) && more(512);
}

}  // namespace

uint32_t occupancy_budget(const Function& f) {
  const uint32_t extra = f.target->reported_registers_extra;
  return std::min(full_occupancy_registers(*f.target), f.max_registers + extra) - extra;
}

bool crosses_occupancy_cliff(const Function& f, uint32_t pressure) {
  return pressure + f.target->reported_registers_extra > full_occupancy_registers(*f.target);
}

uint32_t beyond_the_step(const Function& f, uint32_t pressure) {
  return (pressure + f.target->reported_registers_extra - 1) % granule + 1;
}

bool surely_exceeds(const Function& f, uint32_t crossing) {
  return f.gprs.size() > large_function || crossing > full_occupancy_registers(*f.target) * 3 / 2;
}

RegisterBudget::RegisterBudget(const Function& f, const Liveness& live, uint32_t pressure)
    : f_(&f),
      list_(true),
      extra_(f.target->reported_registers_extra),
      pressure_(pressure),
      free_((occupancy_budget(f) + extra_) / granule * granule),
      attempt_(Attempt::as_planned) {
  const uint32_t room = latency_hiding_budget(f, live, pressure, free_);
  step_ = std::max(step_of(pressure + extra_ + room), free_);
  open_ = room != 0 && step_ != free_;
  ample_ = std::max<uint32_t>(8, step_ / 10);
  slack_ = step_ == free_ ? close : ample_;
  least_ = std::max(less_in_flight, pressure_limit(step_, ample_)) - less_in_flight;
}

// Those of the occupancy step, less what gaps cost the allocator.
uint32_t RegisterBudget::pressure_limit(uint32_t step, uint32_t slack) const {
  const uint32_t lost = extra_ + slack;
  return std::min(f_->max_registers * 7 / 8, std::max(least_limit, std::max(step, lost) - lost));
}

// What is in flight is not worth a step of occupancy for its last register or two, nor a block for a quarter of the
// registers. (Where it is half of them, more blocks took 1.27 times as long:
// docs/measurements/ordinary-programs.tsv.)
bool RegisterBudget::settle(uint32_t pressure) {
  open_ = false;
  const uint32_t used = pressure + extra_, needed = pressure_ + extra_, lower = (used - 1) / granule * granule;
  const bool little = used <= lower + last_few && lower >= needed + close,
             for_blocks = lower > free_ && lower >= needed && used - needed <= used / 4 &&
                          holds_more_blocks(*f_, lower, used);
  if (lower < free_ || !(little || for_blocks)) return false;
  if (!little) unlowered_ = step_;
  step_ = lower, slack_ = close;
  return true;
}

uint32_t RegisterBudget::exceeding() const {
  if (step_ <= free_ || unlowered_) return 0;
  return std::min(step_ + step_ / 5, f_->max_registers + extra_) - extra_;
}

void RegisterBudget::relax(bool uneven) {
  if (slack_ == close) {
    slack_ = ample_;
    return;
  }
  attempt_ = attempt_ == Attempt::as_planned && uneven ? Attempt::less_where_crowded : Attempt::less_everywhere;
  if (attempt_ == Attempt::less_everywhere && unlowered_)  // more blocks are not worth less in flight everywhere
    step_ = unlowered_, slack_ = ample_, unlowered_ = 0, attempt_ = Attempt::as_planned;
}

}  // namespace rndn::assembler
