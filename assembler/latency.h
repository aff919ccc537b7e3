// Distances between dependent instructions as the scheduler uses them, and what is expected of variable latencies.
//
// Sources: distances mined from ptxas 11.8's code (volta-family notes section 4, pascal notes section 4) and measured on an H200; where several
// values were seen, the largest. The independent checker (check_schedule.cpp) has a table of its own.
#pragma once
#include "assembler/ir.h"

namespace rndn::assembler {

// Volta: results that a scoreboard announces. Stores have none; FP64 depends on the target.
bool sets_write_barrier(const isa::Target& target, const Inst& inst);
// Reads its sources after issue: overwriting them needs a read barrier (or the instruction's own write barrier) first.
bool reads_late(const isa::Target& target, const Inst& inst);

// Issue cycles from a producer to a consumer of its result in `file`; `guard`: the consumer's guard reads it. For producers with a scoreboard:
// the distance that is kept in addition (0: none).
uint32_t read_after_write(const isa::Target& target, const Inst& producer, isa::RegisterFile file, const Inst& consumer,
                          bool guard);
uint32_t carry_distance(const Inst& producer);  // Pascal's condition code
uint32_t write_after_write(const isa::Target& target, const Inst& first, const Inst& second);
uint32_t settled(const isa::Target& target, const Inst& producer, isa::RegisterFile file);  // to any consumer
uint32_t least_stall(const isa::Target& target, const Inst& inst);
// What the list scheduler expects of a result: cycles from issue to use.
uint32_t expected_latency(const isa::Target& target, const Inst& inst);

}  // namespace rndn::assembler
