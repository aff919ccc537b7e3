// What the scheduling passes ask about time: the distances of isa/latencies.h between two instructions of a machine function, and what is
// expected of variable latencies. All numbers of fixed latencies are that table's; nothing is repeated here. The independent checker
// (check_schedule.cpp) has a table of its own.
#pragma once
#include <array>

#include "assembler/ir.h"
#include "assembler/isa/latencies.h"

namespace rndn::assembler {

// The result is announced by a scoreboard.
bool sets_write_barrier(const isa::Target& target, const Inst& inst);
// Reads its sources after issue: overwriting them needs a read barrier (or the instruction's own write barrier) first.
bool reads_late(const isa::Target& target, const Inst& inst);

// Issue cycles between dependent instructions. Remembers what it looked up: one per pass.
class Distances {
 public:
  explicit Distances(const isa::Target& target) : t_(target) { known_.fill(0); }

  // From a producer to a consumer of its result in `file` (none: Pascal's condition code); `guard`: the consumer's guard reads it. For
  // producers with a scoreboard: the distance that is kept in addition (0: none).
  uint32_t read_after_write(const Inst& producer, isa::RegisterFile file, const Inst& consumer, bool guard);
  uint32_t write_after_write(const Inst& first, const Inst& second, isa::RegisterFile file);
  // From a producer to any consumer of the classes in the set `consumers`.
  uint32_t settled(const Inst& producer, isa::RegisterFile file, uint64_t consumers);

 private:
  static constexpr size_t classes = 0
#define LATENCY_CLASS(name, text) +1
#include "assembler/isa/latency_classes.def"
#undef LATENCY_CLASS
      ;
  static constexpr size_t roles = static_cast<size_t>(isa::Role::uniform_guard) + 1;
  uint32_t look_up(isa::LatencyClass producer, isa::LatencyClass consumer, isa::Role role);

  const isa::Target& t_;
  std::array<uint8_t, classes * classes * roles> known_;  // 0: not asked yet
};

uint32_t least_stall(const isa::Target& target, const Inst& inst);
// What the list scheduler expects of a result: cycles from issue to use.
uint32_t expected_latency(const isa::Target& target, const Inst& inst);

}  // namespace rndn::assembler
