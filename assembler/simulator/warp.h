// What executes: decoded instructions, warps, blocks, one launch. The functions that give instructions their meaning (semantics_*.cpp)
// see only this header and lanes.h.
//
// Registers are rows of 32 lanes. A warp's rows: 4 rows of zeros (RZ as a source, up to 128 bits wide), 4 rows that nobody reads (RZ as a
// destination), R0.., then UR0.. (a uniform register is a row with 32 equal values). Immediates and constant-bank operands are rows of
// the launch's pool. So each source operand is a pointer to 32 words, and an instruction is one loop over the lanes whatever its form.
//
// Predicates are lane masks: 0..6 P0..P6, 7 PT, 8..14 UP0..UP6, 15 UPT, 16 the destination that nobody reads.
//
// Divergence, Volta and later: lanes with one pc form a group; the running group is (pc, active), the others are in `groups`.
// A convergence barrier is kept per lane: barriers[n][lane] = the lanes that participate, as that lane sees it; so groups that run through
// nested regions independently do not disturb each other.
// Divergence, Pascal: one running set of lanes and a stack of entries; when no lane is active, the top entry is resumed.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "assembler/isa/isa.h"
#include "assembler/simulator/memory.h"
#include "assembler/simulator/simulator.h"
#include "assembler/simulator/weak.h"

namespace rndn::sim {

struct Warp;
struct Block;
struct Launch;
struct Op;
struct Timing;  // hazards.h
class Races;    // races.h

inline constexpr uint32_t lanes = 32, all_lanes = 0xffffffffu;
inline constexpr uint32_t zero_row = 0, trash_row = 4 * lanes, first_register_row = 8 * lanes;  // in words
inline constexpr uint8_t true_predicate = 7, uniform_predicates = 8, trash_predicate = 16;

enum class Status : uint8_t {
  go,          // next instruction
  reschedule,  // no lane of the running group goes on: take another group
  yield,       // the group goes on, but others first
  fault,       // reported; the launch ends
};
// Executes `op` for the lanes of `mask` (never empty unless the op says `always`). pc already points at the next instruction.
using Handler = Status (*)(Warp&, const Op&, uint32_t mask);

// A source operand: value = (row & keep) ^ flip. keep clears the sign of a float (|x|); flip negates a float or complements an integer.
// For doubles they apply to the high word (the row after).
struct Source {
  uint32_t offset = zero_row;  // in words from rows[pool]
  uint32_t pool = 0;
  uint32_t keep = all_lanes, flip = 0;
};

struct PredicateSource {
  uint32_t index = true_predicate, flip = 0;
};

// One decoded instruction. x, y, z mean what its handler says.
struct alignas(64) Op {
  Handler run = nullptr;
  uint32_t full = 0;  // all_lanes for uniform-datapath instructions: they act for the warp, whatever lanes are active
  PredicateSource guard;
  bool always = false;  // runs even when no lane passes the guard
  uint8_t stall = 0;
  uint8_t size = 0;  // memory: bytes
  uint8_t pd = trash_predicate, pq = trash_predicate;
  uint32_t d = trash_row, d2 = trash_row;
  uint32_t target = 0;  // instruction index
  Source a, b, c;
  PredicateSource ps, px, py;
  uint32_t x = 0, y = 0, z = 0;
  int64_t offset = 0;       // memory: added to the address
  uint32_t descriptor = 0;  // memory: row of the uniform pair that must hold the memory descriptor; 0: none
};

// An entry of the pool of immediates and constants.
struct PoolEntry {
  bool constant = false;
  uint8_t bank = 0;
  uint32_t value = 0;  // the immediate, or the byte offset in the bank
  uint32_t op = 0;     // first instruction that uses it
};

// From Volta on, with a stall of 0, no scoreboard and no wait: the next instruction begins when this one has read, written and copied all. This is
// inferred: ptxas 13's code at -O0 is of such alone.
inline bool stands_alone(const isa::Control& c, const isa::Target& t) {
  return c.stall == 0 && c.write_barrier > 5 && c.read_barrier > 5 && c.wait_mask == 0 &&
         t.family == isa::Family::volta;
}

// What the checks of hazards.cpp need to know about an instruction.
struct Footprint {
  struct Rows {
    uint16_t first =
        0;  // row number: register r is row r, UR u is row 256 + u, predicate p is 320 + p, UP 328 + p, CC 336
    uint8_t count = 0;
    uint8_t role = 0;    // hazards.cpp
    bool guard = false;  // the instruction's own: read for all active lanes, those that it switches off too
  };
  std::array<Rows, 8> reads{}, writes{};
  uint8_t read_count = 0, write_count = 0;
  uint8_t producer = 0, consumer = 0;  // classes of hazards.cpp
  isa::Control control;
  bool in_order = false;      // results of its unit return in order
  bool late_sources = false;  // sources are read some time after issue
  uint8_t unit = 0, reads_in = 0;  // the latter: within which it reads its sources in order
  uint8_t writes_behind = 0;       // within which none writes before those ahead of it have read
  int16_t depbar = -1;  // DEPBAR.LE: scoreboard
  uint16_t depbar_count = 0;
  uint8_t depbar_mask = 0;  // DEPBAR {..}: waits for these as a whole
};

// A kernel, decoded once at load.
struct Program {
  const isa::Target* target = nullptr;
  std::string name;
  std::vector<isa::Instruction> instructions;
  std::vector<uint64_t> addresses;
  std::vector<Op> ops;
  std::vector<Footprint> footprints;
  std::vector<uint8_t> classes;  // isa::LatencyClass
  std::vector<PoolEntry> pool;
  uint32_t registers = 0, uniform_registers = 0;  // rows needed
  uint32_t shared_bytes = 0, local_bytes = 0, parameter_bytes = 0;
  bool dynamic_stack = false;  // as of cubin::Kernel
  std::vector<std::byte> constants2;
  std::vector<std::string>
      errors;  // of instructions without meaning, indexed by Op::x of the handler that reports them
  std::vector<std::pair<uint32_t, std::string>> undecodable;  // instruction index, what is wrong
  // Loops that wait (spin_loops.cpp): first and last instruction; and the first one of each instruction's loop, empty when there are none.
  static constexpr uint32_t no_loop = ~0u;
  std::vector<std::pair<uint32_t, uint32_t>> spin_loops;
  std::vector<uint32_t> spin_head;
  std::array<uint32_t, 3> max_threads{}, required_threads{};
  uint32_t reported_registers = 0;  // as the cubin says

  uint32_t size() const {
    return static_cast<uint32_t>(instructions.size());
  }  // ops has one more: what runs past the end
  uint32_t row_words() const { return first_register_row + (registers + uniform_registers) * lanes; }
  // Instruction that a branch to `address` means (Pascal: a bundle's address means its first instruction); size() when none.
  uint32_t index_of(uint64_t address) const;
};

enum class Wait : uint8_t { ready, convergence, warpsync, exclusive, collective, barrier };

struct Group {
  uint32_t pc = 0, mask = 0;
  Wait wait = Wait::ready;
  uint32_t sync = 0;  // convergence: Bn; warpsync, exclusive, collective: lanes to wait for; barrier: its number;
                      // ready: 1 if it goes on alone
};

// Pascal: why an entry was pushed.
enum class Push : uint8_t { divergence, ssy, pbk, pcnt, call };
struct StackEntry {
  Push kind;
  uint32_t pc, mask;
};

struct Tally {
  Counters counters;
};

// An asynchronous copy to shared memory that is under way.
struct Copy {
  std::byte* to = nullptr;
  uint32_t size = 0, group = 0;  // groups that had ended when it began
  std::array<std::byte, 16> bytes{};
};

struct Warp {
  uint32_t* rows[2] = {};  // own registers, the launch's pool
  uint32_t pred[17] = {};
  uint32_t carry = 0, zero = 0, negative = 0, overflow = 0;  // Pascal's CC, lane masks
  uint32_t pc = 0;
  uint32_t active = 0;  // lanes of the running group
  uint32_t alive = 0;   // lanes that have not exited
  uint32_t number = 0;  // in the block
  Block* block = nullptr;
  Launch* launch = nullptr;
  Tally* tally = nullptr;
  Timing* timing = nullptr;  // null unless hazards are checked
  std::vector<Group> groups;
  std::vector<StackEntry> stack;
  uint32_t barriers[16][lanes] = {};
  bool alone = false;               // no other group runs: from WARPSYNC.EXCLUSIVE and .COLLECTIVE to the next wait or ENDCOLLECTIVE
  uint32_t collective[lanes] = {};  // where ENDCOLLECTIVE sends the lane; all ones when it is in no collective region
  uint32_t barrier_count = 0, barrier_predicate = 0;  // result of the last BAR.RED
  std::vector<Copy> copies;                           // oldest first
  struct CopyGroup {
    uint32_t number = 0, scoreboard = 7;
  };
  std::vector<CopyGroup> copy_groups;  // that have ended and are not known to be complete, oldest first
  uint32_t groups_ended = 0;
  uint32_t tid[3][lanes] = {};
  std::vector<std::byte> local;         // [lane][local_bytes]
  std::vector<uint16_t> local_written;  // a bit per byte of `local`, empty unless check_uninitialised
  std::vector<uint32_t> written;        // per row: lanes in which it has been written (check_uninitialised)
  struct Stream {
    const Op* op = nullptr;
    uintptr_t last = 0;  // host address of lane 0
  };
  Stream streams[8];  // by the low bits of the instruction's number: loads that walk through memory
};

struct Barrier {
  uint32_t count = 0;             // threads that have arrived
  uint32_t expected = 0;          // explicit count; 0: all threads of the block
  std::vector<uint32_t> arrived;  // per warp: lanes of a warp that has not arrived as a whole
  uint32_t votes = 0, red_and = 1, red_or = 0;
  uint32_t reduction = 0;  // of BAR.RED: 0 count, 1 and, 2 or
};

struct Block {
  uint32_t ctaid[3] = {};
  std::vector<Warp> warps;
  std::vector<uint32_t> registers;       // of all warps
  std::vector<uint64_t> shared;          // 8-byte units, for alignment
  std::vector<uint16_t> shared_written;  // a bit per byte, empty unless check_uninitialised
  uint32_t shared_bytes = 0;
  std::array<Barrier, 16> barriers;
  std::shared_ptr<Races> races;  // null unless check_races
  std::byte* shared_memory() { return reinterpret_cast<std::byte*>(shared.data()); }
};

// One launch in progress. Everything but `stop`, `instructions` and the reports is constant while blocks run.
struct Launch {
  const Program* program = nullptr;
  const Memory* memory = nullptr;
  Memory* heap = nullptr;  // the same, for malloc and free of kernels, under `mutex`
  Options options;
  Dim3 grid, block;
  uint32_t shared_bytes = 0, local_bytes = 0;
  std::vector<std::vector<std::byte>> banks;  // constant banks, padded for 16-byte reads
  std::vector<uint32_t> bank_bytes;           // their lengths
  std::vector<uint32_t> pool;                 // rows
  uint64_t descriptor = 0;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> instructions{0};
  std::atomic<uint64_t> clock{0};
  std::unique_ptr<Weak> weak;  // null unless weak_memory
  bool lane_by_lane = false;   // memory accesses must not be taken together
  std::vector<bool> relaxed;   // loads, by instruction (races.h)
  std::mutex mutex;            // of reports, races, heap, output
  std::vector<Report> reports;
  std::set<std::pair<uint32_t, uint32_t>> races;  // pairs of instructions that were reported
};

// Adds a report for the instruction before w.pc (the one that runs) and lane.
void report(Warp& w, const Op& op, uint32_t lane, std::string message);
// The same, and the launch ends.
Status fail(Warp& w, const Op& op, uint32_t lane, std::string message);

// --- Divergence and barriers (control.cpp) --------------------------------------------------------------------------------------
// Takes a group that can run (the last one that became ready); false when all wait or none is left.
bool pick_group(Warp& w);
// The running group waits.
Status wait_group(Warp& w, Wait wait, uint32_t sync, uint32_t mask, uint32_t pc);
// Lanes leave for good: drops them from every barrier.
void exit_lanes(Warp& w, uint32_t mask);
// Pascal: resumes the top of the stack when no lane is active.
Status pop_stack(Warp& w);
// The running group arrives at barrier `id`.
void arrive(Warp& w, uint32_t id, uint32_t threads, uint32_t mask, uint32_t votes);
// Opens barriers whose threads have all arrived.
void release_barriers(Block& block);

}  // namespace rndn::sim
