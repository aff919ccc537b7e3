// The scheduling model behind check_hazards: when is a result there, when has a source been read (docs/sass.md, section 4).
//
// Per warp, time is the sum of the stall counts of what it has issued; waiting for a scoreboard takes no time (it may be free already), so
// that only stalls and waits make a result visible. A result of a fixed-latency instruction is there `distance(producer, role of the
// reader)` cycles after issue; any other result once its scoreboard (or that of a later instruction of the same in-order unit) has been
// waited for. Sources of memory and other queued instructions are read as late as their barriers allow.
// So the order in which scoreboards complete needs no dice: nothing counts as complete that any order could leave open. That holds for
// DEPBAR.LE with a count, too, which vouches for the oldest entries only where their unit keeps the order.
// A read that comes too early gets the old value and is reported. Tracking is per register and lanes, of the last write only.
#pragma once
#include "assembler/simulator/warp.h"

namespace rndn::sim {

inline constexpr uint32_t row_uniform = 256, row_predicate = 320, row_uniform_predicate = 328, row_carry = 336,
                          row_count = 337;
inline constexpr uint32_t units = 12;

struct Timing {
  struct Row {
    uint64_t time = 0;     // of the last write's issue
    uint32_t written = 0;  // lanes of the last write, 0 when it is surely visible
    uint32_t sequence = 0;
    uint8_t producer = 0, scoreboard = 7, unit = 0;
    bool pending = false;  // announced by a scoreboard
    bool in_order = false;
    uint8_t read_unit = 0, reader = 0;  // reads_in and writes_behind of what reads it
    uint32_t reading = 0;  // lanes that a queued instruction may not have read yet
    uint32_t read_sequence = 0;
    uint64_t read_time = 0;
  };
  uint64_t now = 1000;
  uint32_t sequence = 0;  // of queued instructions
  std::array<Row, row_count> rows;
  std::vector<uint32_t> old;  // the value before the last write: general and uniform registers [row][lane]
  std::array<uint32_t, row_count> old_mask{};  // of predicates and CC
  std::array<uint32_t, 6> last_set{},
      done{};  // per scoreboard: newest sequence number that set it, newest known complete
  std::array<uint64_t, 6> set_time{};
  std::array<std::array<uint32_t, units>, 6> last_of_unit{};
  std::array<uint32_t, units> unit_done{};
  struct Queued {
    uint32_t sequence;
    uint8_t unit;
    bool in_order;
  };
  std::array<std::vector<Queued>, 6> outstanding;  // that set the scoreboard, oldest first

  void start(const Program& program);
};

// Before the handler: waits, then checks; rows read too early are exchanged for their old values, noted in `swapped`.
struct Swapped {
  std::array<uint16_t, 16> rows;
  uint32_t count = 0;
};
void before_issue(Warp& w, const Op& op, const Footprint& f, uint32_t mask, Swapped& swapped);
// After it: undoes the exchange, records results and pending reads, advances time.
void after_issue(Warp& w, const Op& op, const Footprint& f, uint32_t mask, const Swapped& swapped);
// A group switch or a barrier: everything of fixed latency has arrived.
void pass_time(Warp& w);

// check_uninitialised: registers and predicates that were never written.
void check_initialised(Warp& w, const Op& op, const Footprint& f, uint32_t mask);

}  // namespace rndn::sim
