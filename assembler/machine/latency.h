// What the scheduling passes ask about time: the distances of isa/latencies.h between two instructions of a machine function, and what is
// expected of variable latencies. All numbers of fixed latencies are that table's; nothing is repeated here. The independent checker
// (check_schedule.cpp) has a table of its own.
#pragma once
#include <algorithm>
#include <array>

#include "assembler/isa/latencies.h"
#include "assembler/machine/ir.h"

namespace rndn::assembler {

// Issue cycles between dependent instructions.
class Distances {
 public:
  explicit Distances(const isa::Target& target);

  // From a producer to a consumer that reads its result, as a guard or not. For producers with a scoreboard: the distance that is kept in addition
  // (0: none).
  uint32_t read_after_write(const Facts& producer, Range::File file, bool guard, const Facts& consumer) const {
    return of(producer)[place(file, guard, consumer)];
  }
  // The two parts of that, for those who ask about one producer or consumer several times.
  const uint8_t* of(const Facts& producer) const {
    return only_scoreboard(producer) ? nothing.data() : cycles_ + static_cast<size_t>(producer.latency) * nothing.size();
  }
  static uint32_t place(Range::File file, bool guard, const Facts& consumer) {
    return static_cast<uint32_t>(consumer.latency) * uint32_t{isa::role_count} +
           static_cast<uint32_t>(role_of(file, consumer.latency, guard));
  }
  static constexpr std::array<uint8_t, isa::latency_class_count * isa::role_count> nothing{};  // of a producer
  // The same for Pascal's condition code.
  uint32_t carry(const Facts& producer, const Facts& consumer) const {
    if (only_scoreboard(producer)) return 0;
    if (producer.late_carry || consumer.latency != isa::LatencyClass::alu) return latest_carry;
    return look_up(producer.latency, consumer.latency, isa::Role::carry);
  }
  // The later of two writes must arrive later. Distances to readers are upper bounds for some classes, so the second is taken to be as quick as the
  // quickest there is: a DADD's late result replaced that of an HFMA2 one cycle behind it on an H200 (gpu_programs, 7013 at -O0). Results of one
  // class arrive in order.
  uint32_t write_after_write(const Facts& first, const Facts& second, Range::File file) const {
    using L = isa::LatencyClass;
    if (first.announced) return 1;  // the second waits for the first's scoreboard
    if (first.latency == second.latency) return 1;
    uint32_t needed = 1;
    for (const bool guard : {false, true}) {
      const isa::Role role = role_of(file, L::alu, guard);
      const uint32_t a = look_up(first.latency, L::alu, role);
      uint32_t b = second.announced ? 1 : look_up(second.latency, L::alu, role);
      if (file == Range::gpr || file == Range::uniform) {
        const uint32_t quickest = second.latency == L::wide ? 3 : volta_ ? 4 : 6;  // the low half of IMAD.WIDE
        b = std::min(b, quickest);
      }
      if (a > b) needed = std::max(needed, a - b + 1);
    }
    return needed;
  }
  // From a producer to any consumer of the classes in `consumers`; found when it is first asked for.
  struct Settled {
    uint64_t consumers = 0;
    std::array<std::array<uint8_t, 4>, isa::latency_class_count> cycles{};  // [producer][file]; 0: not asked for yet
  };
  uint32_t settled(const Facts& producer, Range::File file, Settled& s) const {
    if (only_scoreboard(producer)) return 0;
    uint8_t& cycles = s.cycles[static_cast<size_t>(producer.latency)][file];
    if (cycles == 0) cycles = settle(producer.latency, file, s.consumers);
    return cycles;
  }
  uint32_t settled_carry(const Facts& producer) const { return only_scoreboard(producer) ? 0 : latest_carry; }

 private:
  uint8_t settle(isa::LatencyClass producer, Range::File file, uint64_t consumers) const;
  static constexpr uint32_t latest_carry = 13;
  // FP64 on sm_8x keeps a distance besides its scoreboard; other announced results need none.
  bool only_scoreboard(const Facts& producer) const {
    return producer.announced && !(volta_ && producer.latency == isa::LatencyClass::fp64);
  }
  static isa::Role role_of(Range::File file, isa::LatencyClass consumer, bool guard) {
    using L = isa::LatencyClass;
    // A predicate that decides whether something happens is read earlier than one that is data.
    constexpr uint64_t deciding =
        uint64_t{1} << static_cast<unsigned>(L::branch) | uint64_t{1} << static_cast<unsigned>(L::vote) |
        uint64_t{1} << static_cast<unsigned>(L::barrier) | uint64_t{1} << static_cast<unsigned>(L::convergence);
    using R = isa::Role;
    static constexpr R roles[3][4] = {{R::gpr, R::predicate, R::uniform, R::uniform_predicate},  // by file
                                      {R::gpr, R::guard, R::uniform, R::uniform_predicate},      // of deciding classes
                                      {R::gpr, R::guard, R::uniform, R::uniform_guard}};         // as a guard
    return roles[guard ? 2 : deciding >> static_cast<unsigned>(consumer) & 1][file];
  }
  uint32_t look_up(isa::LatencyClass producer, isa::LatencyClass consumer, isa::Role role) const {
    return cycles_[(static_cast<size_t>(producer) * isa::latency_class_count + static_cast<size_t>(consumer)) *
                       isa::role_count +
                   static_cast<size_t>(role)];
  }

  const uint8_t* cycles_;
  bool volta_;
};

// The yield flag of an instruction of the class that stalls so long.
inline bool yields(const isa::Target& target, isa::LatencyClass latency, uint8_t stall) {
  using L = isa::LatencyClass;
  // Stalls of 12 and more leave no room for the flag: nvdisasm knows no such words.
  if (target.family == isa::Family::volta)
    return (stall == 1) | ((stall < 12) & ((latency == L::branch) | (latency == L::barrier)));  // no branches
  return stall != 12 && latency != L::nop;
}

// What the list scheduler expects of results, by class: cycles from issue to use.
struct ExpectedLatencies {
  explicit ExpectedLatencies(const isa::Target& target);
  uint32_t operator()(const Facts& facts) const { return cycles[static_cast<size_t>(facts.latency)]; }
  std::array<uint16_t, isa::latency_class_count> cycles;
};

}  // namespace rndn::assembler
