// The table of issue distances. Rules are tried in order, first match wins, per role; what no rule covers takes the largest value of the role.
// Sources: distances mined from ptxas 11.8's code per target (provenance ptxas), lowered step by step on an H200 (device, sm_90 only).
// Values known only from other projects are raised to the safe rule of the family (inferred).
#include "assembler/isa/latencies.h"

#include <array>
#include <bit>

#include "assembler/isa/form.h"

namespace rndn::isa {
namespace {

using L = LatencyClass;
using P = Provenance;

constexpr uint32_t mined = volta;

constexpr uint64_t set() { return 0; }
template <class... T>
constexpr uint64_t set(L first, T... rest) {
  return uint64_t{1} << static_cast<unsigned>(first) | set(rest...);
}
constexpr uint64_t any = ~uint64_t{0};

constexpr uint64_t alu = set(L::alu, L::vote), fma = set(L::fma), wide = set(L::wide);
constexpr uint64_t memory = set(L::global_load, L::global_store, L::global_atomic, L::shared_load, L::shared_store,
                                L::shared_atomic, L::local_load, L::local_store, L::async_copy, L::shuffle, L::barrier,
                                L::constant_load, L::fence, L::space_query);
constexpr uint64_t variable =
    set(L::sfu, L::special, L::to_uniform, L::register_to_uniform, L::branch, L::convergence, L::nop);
constexpr uint64_t shared = set(L::shared_load, L::shared_store, L::shared_atomic, L::shuffle, L::constant_load);
constexpr uint64_t global =
    set(L::global_load, L::global_store, L::global_atomic, L::local_load, L::local_store, L::fence);

struct Rule {
  uint32_t targets;
  uint64_t producers, consumers;
  Role role;
  uint8_t cycles;
  P provenance;
};

// clang-format off
constexpr Rule rules[] = {
    // sm_75: what is longer than on its successors. Halves arrive late, memory and R2UR read early.
    {sm_75,  set(L::fp64), any,                 Role::gpr, 12, P::ptxas},
    {sm_75,  set(L::half), set(L::half),        Role::gpr,  6, P::ptxas},
    {sm_75,  set(L::half), alu | fma | memory,  Role::gpr,  8, P::ptxas},
    {sm_75,  alu | fma | wide, set(L::constant_load) | (variable & ~set(L::register_to_uniform)) | set(L::fp64, L::half), Role::gpr, 6, P::ptxas},
    {sm_75,  alu | fma | wide, memory | set(L::register_to_uniform), Role::gpr, 8, P::ptxas},
    {sm_75,  set(L::fp64), alu | set(L::fp64),  Role::predicate,  9, P::ptxas},
    {sm_75,  set(L::fp64), any,                 Role::predicate, 15, P::ptxas},
    {sm_75,  set(L::fp64), any,                 Role::guard,     15, P::ptxas},
    {sm_75,  set(L::half), any,                 Role::predicate, 14, P::ptxas},
    {sm_75,  any, set(L::half),                 Role::predicate, 14, P::ptxas},
    {sm_75,  set(L::half), any,                 Role::guard,     14, P::ptxas},
    {sm_75,  set(L::uniform, L::uniform_move), set(L::branch), Role::uniform, 12, P::ptxas},  // BRXU
    // Volta and later, general registers. R2UR reads as an ALU instruction does: 4 cycles after IMAD it gets the old value on an H200
    // (gpu_programs: 4 of 9,000 random programs, right with 5).
    {sm_90,  fma, set(L::register_to_uniform),  Role::gpr,  5, P::device},
    {ampere, fma, set(L::register_to_uniform),  Role::gpr,  5, P::inferred},
    {mined,  set(L::fp64), set(L::register_to_uniform), Role::gpr, 10, P::inferred},
    {mined,  alu, alu,                          Role::gpr,  4, P::device},
    {mined,  alu, fma | wide,                   Role::gpr,  5, P::device},
    {ampere, alu, set(L::fp64),                 Role::gpr,  6, P::ptxas},
    {sm_90,  alu, set(L::fp64),                 Role::gpr,  7, P::device},   // 6, but 7 from FSEL
    {mined,  alu, memory,                       Role::gpr,  5, P::ptxas},
    {mined,  alu, variable,                     Role::gpr,  4, P::ptxas},
    {mined,  fma, alu,                          Role::gpr,  5, P::device},
    {mined,  fma, fma | wide,                   Role::gpr,  4, P::device},
    {mined,  fma, set(L::fp64),                 Role::gpr,  6, P::device},
    {mined,  fma, memory,                       Role::gpr,  5, P::ptxas},
    {mined,  fma, variable,                     Role::gpr,  4, P::ptxas},
    {mined,  wide, alu,                         Role::gpr,  5, P::device},   // high half; the low half takes 3 on sm_90
    {mined,  wide, fma,                         Role::gpr,  5, P::ptxas},
    {mined,  wide, wide,                        Role::gpr,  6, P::ptxas},
    {mined,  wide, memory,                      Role::gpr,  5, P::ptxas},
    {mined,  wide, any,                         Role::gpr,  6, P::inferred},
    {ampere, set(L::fp64), set(L::fp64),        Role::gpr,  6, P::ptxas},
    {sm_90,  set(L::fp64), set(L::fp64),        Role::gpr,  8, P::device},
    {mined,  set(L::fp64), alu | fma | wide,    Role::gpr, 10, P::device},
    {mined,  set(L::fp64), memory,              Role::gpr,  7, P::ptxas},
    {mined,  set(L::fp64), variable,            Role::gpr,  6, P::ptxas},
    {mined,  set(L::half_mma), any,             Role::gpr, 10, P::ptxas},
    // Volta and later, predicates
    {mined,  alu, alu,                          Role::predicate,  4, P::device},
    {mined,  alu, fma | wide,                   Role::predicate,  5, P::device},
    {mined,  fma | wide, alu | fma | wide,      Role::predicate,  5, P::ptxas},
    {mined,  set(L::fp64), alu | set(L::fp64),  Role::predicate,  6, P::device},
    {mined,  set(L::fp64), any,                 Role::predicate, 14, P::ptxas},
    {mined,  any, any,                          Role::predicate, 13, P::ptxas},
    {mined,  set(L::fp64), any,                 Role::guard, 14, P::ptxas},
    {mined,  any, any,                          Role::guard, 13, P::device},
    // Volta and later, uniform datapath
    {mined,  set(L::uniform), set(L::uniform),  Role::uniform,  4, P::ptxas},
    {mined,  set(L::uniform), alu | fma | wide, Role::uniform,  6, P::ptxas},
    {mined,  set(L::uniform), memory,           Role::uniform,  9, P::ptxas},
    {mined,  set(L::uniform), any,              Role::uniform, 12, P::inferred},
    {mined,  set(L::uniform_move), alu | fma | wide | set(L::fp64, L::uniform), Role::uniform, 2, P::ptxas},
    {mined,  set(L::uniform_move), set(L::uniform_move, L::branch), Role::uniform, 4, P::ptxas},
    {mined,  set(L::uniform_move), any,         Role::uniform,  9, P::inferred},
    {mined,  set(L::register_to_uniform), any,  Role::uniform, 15, P::ptxas},
    {mined,  any, set(L::uniform),              Role::uniform_predicate,  4, P::ptxas},
    {mined,  any, alu,                          Role::uniform_predicate,  6, P::ptxas},
    {mined,  any, any,                          Role::uniform_predicate, 13, P::inferred},
    {mined,  any, any,                          Role::uniform_guard, 13, P::inferred},
    // Pascal
    {pascal, alu, set(L::alu, L::vote, L::fp64, L::range_reduction), Role::gpr, 6, P::ptxas},
    {pascal, alu, shared,                       Role::gpr,  4, P::ptxas},
    {pascal, alu, global,                       Role::gpr,  4, P::ptxas},    // 2 for LDG, STG, ATOM, RED; 4 for the data of a generic ST
    {pascal, alu, set(L::sfu),                  Role::gpr,  2, P::ptxas},
    {pascal, set(L::range_reduction), set(L::sfu), Role::gpr, 2, P::ptxas},
    {pascal, any, any,                          Role::gpr, 13, P::inferred},
    {pascal, alu, alu,                          Role::carry,  6, P::ptxas},
    {pascal, any, any,                          Role::carry, 13, P::ptxas},
    {pascal, any, any,                          Role::predicate, 13, P::ptxas},
    {pascal, any, any,                          Role::guard, 13, P::ptxas},
};
// clang-format on

constexpr uint8_t largest(uint32_t target, Role role) {
  uint8_t most = 1;
  for (const Rule& r : rules)
    if ((r.targets & target) && r.role == role && r.cycles > most) most = r.cycles;
  return most;
}

constexpr Distance look_up(uint32_t target, L producer, L consumer, Role role) {
  for (const Rule& r : rules)
    if ((r.targets & target) && r.role == role && (r.producers >> static_cast<unsigned>(producer) & 1) &&
        (r.consumers >> static_cast<unsigned>(consumer) & 1))
      return {r.cycles, r.provenance == P::device && !(target & sm_90) ? P::ptxas : r.provenance};
  return {largest(target, role), P::inferred};
}
// All cycles of a target at once: rules painted in reverse order, so that the first one wins.
constexpr size_t table_size = latency_class_count * latency_class_count * role_count;
constexpr std::array<uint8_t, table_size> table_of(uint32_t target) {
  std::array<uint8_t, table_size> table{};
  for (size_t role = 0; role < role_count; ++role) {
    const uint8_t most = largest(target, static_cast<Role>(role));
    for (size_t k = role; k < table_size; k += role_count) table[k] = most;
  }
  for (size_t r = std::size(rules); r-- > 0;) {
    const Rule& rule = rules[r];
    if (!(rule.targets & target)) continue;
    for (size_t p = 0; p < latency_class_count; ++p) {
      if (!(rule.producers >> p & 1)) continue;
      for (size_t c = 0; c < latency_class_count; ++c)
        if (rule.consumers >> c & 1)
          table[(p * latency_class_count + c) * role_count + static_cast<size_t>(rule.role)] = rule.cycles;
    }
  }
  return table;
}
constexpr std::array<std::array<uint8_t, table_size>, 7> tables = {table_of(sm_60), table_of(sm_61), table_of(sm_75),
                                                                   table_of(sm_80), table_of(sm_86), table_of(sm_89),
                                                                   table_of(sm_90)};

// Spot checks against the sources.
static_assert(look_up(sm_86, L::fma, L::alu, Role::gpr).cycles == 5 &&
              look_up(sm_90, L::fp64, L::fp64, Role::gpr).cycles == 8);
static_assert(look_up(sm_90, L::cs2r, L::alu, Role::gpr).cycles == 10 &&
              look_up(sm_61, L::alu, L::sfu, Role::gpr).cycles == 2);
static_assert(look_up(sm_90, L::fma, L::register_to_uniform, Role::gpr).cycles == 5 &&
              look_up(sm_90, L::alu, L::register_to_uniform, Role::gpr).cycles == 4);

}  // namespace

const uint8_t* issue_cycles(const Target& target) {
  return tables[static_cast<size_t>(std::countr_zero(target.bit))].data();
}

Distance issue_distance(const Target& target, LatencyClass producer, LatencyClass consumer, Role role) {
  return look_up(target.bit, producer, consumer, role);
}

Distance issue_distance(const Target& target, const Instruction& producer, const Instruction& consumer, Role role) {
  LatencyClass p = latency_class(producer), c = latency_class(consumer);
  if (role == Role::carry && (producer.mnemonic == Mnemonic::IMNMX || c != LatencyClass::alu))
    return {13, Provenance::ptxas};
  if (role == Role::predicate && target.family == Family::volta && consumer.mnemonic == Mnemonic::VOTE)
    role = Role::guard;
  return look_up(target.bit, p, c, role);
}

uint8_t minimum_stall(const Target& target, const Instruction& instruction) {
  bool pascal_family = target.family == Family::pascal;
  switch (latency_class(instruction)) {
    case L::branch:
      if (!pascal_family) return 5;
      return instruction.mnemonic == Mnemonic::EXIT || instruction.mnemonic == Mnemonic::RET ? 15 : 13;
    case L::barrier: return pascal_family ? 15 : 6;
    case L::fence:
      if (instruction.mnemonic == Mnemonic::CCTL) return pascal_family ? 15 : 11;
      return pascal_family ? 15 : 6;
    case L::wait: return pascal_family ? 3 : 4;  // ptxas: 4 behind every DEPBAR.LE
    default: return 1;
  }
}

uint8_t cycles_before_exit(const Target& target) { return target.family == Family::pascal ? 49 : 0; }

}  // namespace rndn::isa
