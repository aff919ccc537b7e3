// Latencies as data: how many cycles after its producer a consumer may issue, and what has to be announced by a scoreboard. The assembler's
// scheduler reads this; an independent checker has a table of its own.
#pragma once
#include "assembler/isa/isa.h"

namespace rndn::isa {

// What the consumer reads, and as what.
enum class Role : uint8_t {
  gpr,        // a general register, as data or address
  predicate,  // a predicate, as an operand
  guard,  // a predicate, as the guard of an instruction, or as the condition of a branch, vote, barrier or memory operation
  carry,              // Pascal's condition code
  uniform,            // a uniform register
  uniform_predicate,  // a uniform predicate, as an operand
  uniform_guard,      // a uniform predicate, as a guard
};

inline constexpr size_t role_count = static_cast<size_t>(Role::uniform_guard) + 1;
inline constexpr size_t latency_class_count = 0
#define LATENCY_CLASS(name, text) +1
#include "assembler/isa/latency_classes.def"
#undef LATENCY_CLASS
    ;

struct Distance {
  uint8_t cycles = 0;  // sum of stall counts from producer to consumer, at least
  Provenance provenance = Provenance::inferred;
};

// The smallest known safe distance for a result of fixed latency; where a scoreboard is needed too, both must be honoured. Pairs that are not
// known take the largest of their role. Write after read: 1 cycle; write after write of two fixed-latency results: the producer's own distance
// to an ALU operation minus the other's is always covered by 6 (Volta) and 13 (Pascal).
Distance issue_distance(const Target& target, LatencyClass producer, LatencyClass consumer, Role role);
// The cycles of all pairs of a target: [(producer * latency_class_count + consumer) * role_count + role].
const uint8_t* issue_cycles(const Target& target);
// The same for instructions: knows the exceptions within classes (Pascal's IMNMX, branches on CC, conditions of VOTE and BAR).
Distance issue_distance(const Target& target, const Instruction& producer, const Instruction& consumer, Role role);

// Whether the class announces its results (if it has any) by a write barrier, and the reading of its sources by a read barrier when a later
// instruction overwrites them.
struct Scoreboards {
  bool write = false, read = false;
};
inline Scoreboards scoreboards(const Target& target, LatencyClass latency) {
  switch (latency) {
    case LatencyClass::fp64: {
      const bool announced = target.has(Feature::fp64_scoreboard);
      return {announced, announced};
    }
    case LatencyClass::register_to_uniform: {
      const bool announced = target.has(Feature::r2ur_scoreboard);
      return {announced, announced};
    }
    case LatencyClass::special: return {true, false};
    case LatencyClass::sfu:
    case LatencyClass::to_uniform:
    case LatencyClass::constant_load:
    case LatencyClass::global_load:
    case LatencyClass::global_atomic:
    case LatencyClass::shared_load:
    case LatencyClass::shared_atomic:
    case LatencyClass::local_load:
    case LatencyClass::shuffle:
    case LatencyClass::space_query:
    case LatencyClass::async_copy: return {true, true};
    case LatencyClass::global_store:
    case LatencyClass::shared_store:
    case LatencyClass::local_store: return {false, true};
    default: return {false, false};
  }
}

// An instruction that sets a scoreboard and the one that waits on it are at least this far apart.
inline constexpr uint8_t scoreboard_distance = 2;
// The stall count that the instruction itself must have, at least (control flow, barriers, fences); 1 for all others.
uint8_t minimum_stall(const Target& target, const Instruction& instruction);
// Pascal: EXIT, BAR and B2R issue this many cycles after the start of the kernel, and after the end of the last BAR or predicated EXIT; 0: no rule.
uint8_t cycles_before_exit(const Target& target);

}  // namespace rndn::isa
