// How many registers a kernel is to take: occupancy, and room for results in flight. What is counted here are
// registers of the allocator; Target::reported_registers_extra more are reported, and count for occupancy.
#pragma once
#include "assembler/machine/ir.h"
#include "assembler/machine/liveness.h"

namespace rndn::assembler {

// Alive at once without losing occupancy, or spilling.
uint32_t occupancy_budget(const Function& f);
// Whether so many alive at once cost warps that could be resident.
bool crosses_occupancy_cliff(const Function& f, uint32_t pressure);
// How far such a pressure is beyond the occupancy step below it, in registers.
uint32_t beyond_the_step(const Function& f, uint32_t pressure);
// Whether full occupancy is out of reach, as far as can be told without liveness: `crossing` general registers are
// alive across blocks.
bool surely_exceeds(const Function& f, uint32_t crossing);

// What scheduling may keep alive, and what is tried in its place where the allocator then finds too few registers.
// First, results of loads may be in flight in registers that cost no occupancy, or are worth what they cost. Then
// less is in flight, in crowded blocks alone or everywhere.
class RegisterBudget {
 public:
  RegisterBudget() = default;  // of code in the order of the program: any number of registers
  RegisterBudget(const Function& f, const Liveness& live, uint32_t pressure);

  // For schedule(): alive at once, and in blocks whose last schedule had more than that.
  uint32_t limit() const { return attempt_ == Attempt::less_everywhere ? least_ : pressure_limit(); }
  uint32_t crowded() const { return attempt_ == Attempt::as_planned ? pressure_limit() : least_; }
  // Whether a first schedule is to be measured: settle() takes its pressure and returns whether to schedule anew for
  // more resident blocks.
  bool is_open() const { return open_; }
  bool settle(uint32_t pressure);

  // For allocate_registers(): the registers wanted, 0: any number, and whether there is nothing left to try if they
  // do not do.
  uint32_t wanted() const { return list_ ? step_ - extra_ : 0; }
  bool is_last() const { return attempt_ == Attempt::less_everywhere; }
  // What else the allocator may take before less is in flight, 0: nothing: pairs and quads leave gaps, and below full
  // occupancy rather more registers than less in flight.
  uint32_t exceeding() const;
  // The allocator had too few. `uneven`: schedule() found some blocks crowded and others not.
  void relax(bool uneven);

 private:
  enum class Attempt { as_planned, less_where_crowded, less_everywhere };
  uint32_t pressure_limit() const { return pressure_limit(step_, slack_); }
  uint32_t pressure_limit(uint32_t step, uint32_t slack) const;

  const Function* f_ = nullptr;
  bool list_ = false, open_ = false;
  uint32_t extra_ = 0, pressure_ = 0;
  uint32_t free_ = 0;             // registers, as reported, that cost no occupancy
  uint32_t step_ = 0;             // registers, as reported, to keep within
  uint32_t unlowered_ = 0;        // the step before it was lowered for more blocks; 0: it was not
  uint32_t slack_ = 0, ample_ = 0;  // of the step for gaps that alignment leaves: now, and when that was too little
  uint32_t least_ = 0;            // the limit with least in flight
  Attempt attempt_ = Attempt::less_everywhere;
};

}  // namespace rndn::assembler
