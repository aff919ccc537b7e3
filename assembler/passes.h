// The passes over machine functions, in the order of pipeline.cpp. Each file's top comment says what it does and what it relies on.
#pragma once
#include <array>
#include <span>
#include <string>
#include <vector>

#include "assembler/assemble.h"
#include "assembler/cubin/cubin.h"
#include "assembler/ir.h"
#include "assembler/structure.h"
#include "libraries/base/result.h"

namespace rndn::assembler {

// Static shared memory of a module: offset of each shared variable (by VariableId), without the target's reserved bytes. Entries never run
// together: the variables of each begin where those of the module (and of its .func) end.
struct SharedLayout {
  std::vector<uint32_t> offsets;
  std::vector<uint32_t> bytes;  // of sized variables, by function
  std::vector<bool> any;        // by function
};
SharedLayout lay_out_shared(const ptx::Module& module);
// The symbol of a global or constant variable. Functions may have variables of one name: theirs get the number of the variable, as ptxas's do.
std::string symbol_of(const ptx::Module& module, ptx::VariableId variable);

// Memory that selection uses again.
struct SelectionRoom {
  RawVector<Inst> insts;
  std::vector<std::vector<InstId>> code;  // of blocks
};
Result<Function> select(const ptx::Module& module, const ptx::Function& function, const Flow& flow,
                        const SharedLayout& shared, const Options& options, isa::FormCache& forms, Arena& arena,
                        SelectionRoom& room);

// --- facts.cpp
// What becomes of a unit in the function.
struct UnitUse {
  uint32_t readers = 0;                            // instructions and branches
  uint32_t inst = UINT32_MAX, block = UINT32_MAX;  // of the last write in the order of the code; none: never written
  bool several = false;                            // writes
  bool crosses = false;                            // a GPR that is read in a block that did not write it before
};
struct Survey {
  std::span<UnitUse> units;  // by unit
  uint32_t crossing = 0;     // GPRs that live across blocks, about
};
// Gathers facts and units of all instructions. The answer lives in the function's arena.
Survey survey(Function& f);
void list_units(Function& f);  // of all instructions, anew

// --- guarded_values.cpp: values that live under one guard become temporaries
void find_guarded_values(Function& f, const Survey& survey);

// --- liveness.cpp
// Live units (GPRs and predicates) at the block boundaries. Lives in the function's arena; sets are sorted.
struct Liveness {
  std::span<const uint32_t> in(BlockId b) const { return at(in_begin, in_values, b); }
  std::span<const uint32_t> out(BlockId b) const { return at(out_begin, out_values, b); }

  std::span<const uint32_t> in_begin, in_values, out_begin,
      out_values;  // the set of block b: values[begin[b]] .. values[begin[b + 1]]

 private:
  static std::span<const uint32_t> at(std::span<const uint32_t> begin, std::span<const uint32_t> values, BlockId b) {
    return values.subspan(begin[index(b)], begin[index(b) + 1] - begin[index(b)]);
  }
};
Liveness compute_liveness(Function& f);
// The largest number of GPRs alive at once in the order of the code.
uint32_t register_pressure(const Function& f, const Liveness& live);
// The same of single blocks, with their code in any order: of a whole block, or step by step from its end. Lives in the function's arena.
class PressureOf {
 public:
  PressureOf(const Function& f, const Liveness& live);
  uint32_t block(BlockId b, std::span<const InstId> code);
  uint32_t start(BlockId b);   // alive at its end
  uint32_t before(InstId i);  // ... at once at the instruction in front of the last one

 private:
  void begin(uint32_t u) {
    if (!units_.is_gpr(u)) return;
    now_ += alive_[u] != number_;
    alive_[u] = number_;
  }

  const Units& units_;
  const Liveness& live_;
  std::span<uint32_t> alive_;  // by unit: number of the block in which it is alive
  uint32_t number_ = 0, now_ = 0;
};

// --- peephole.cpp
void remove_dead_code(Function& f, Survey& survey);  // over virtual registers
void peephole_allocated(Function& f);                // MOV R, R; loads to RZ

// --- copies.cpp: over virtual registers; copies within a block
void join_copies(Function& f, Survey& survey);

// --- uniform_values.cpp: loop invariants to uniform registers; returns whether anything changed
bool move_uniform_values(Function& f, Survey& survey, isa::FormCache& forms);

// --- rematerialise.cpp: values made again where they are used; returns whether anything changed. The survey knows of the readers that either pass
// moves, and of no new units.
bool rematerialise(Function& f, Survey& survey);

// --- partly_dead_code.cpp: what only instructions under one guard need gets this guard, what nobody needs goes; returns whether anything changed
bool remove_partly_dead_code(Function& f, const Liveness& live);

// --- order_for_registers.cpp: another order of blocks with more than `enough` GPRs alive at once, if then at most `wanted` are alive at once in the
// function, else nothing changes. Returns how many are, UINT32_MAX: unchanged.
uint32_t order_for_registers(Function& f, const Liveness& live, uint32_t enough, uint32_t wanted);

// --- schedule.cpp: new order of each block's code
// What scheduling before allocation knows of a function apart from the limit on registers; lives in the function's arena.
struct SchedulePlan {
  std::span<InstId> program;  // the code of all blocks in the order of the program
  std::span<uint32_t> late;   // the same as late as possible: places within the block
};
SchedulePlan plan_schedule(const Function& f);
// Orders the code so that about pressure_limit GPRs are alive at once; returns how many are. Can be repeated with another limit.
uint32_t schedule(Function& f, const SchedulePlan& plan, const Liveness& live, uint32_t pressure_limit);
void schedule_allocated(Function& f);  // over physical registers

// Registers per thread with which every warp of a multiprocessor can be resident.
inline uint32_t full_occupancy_registers(const isa::Target& t) { return t.registers_per_sm / (32 * t.warps_per_sm); }

// --- allocate_registers.cpp: virtual to physical registers. Takes at most `wanted` of them if it can (0: any number); if it cannot, as few as it can, or,
// with only_wanted, none: then it returns false, and nothing is changed. Fails when even spilling does not help.
Result<bool> allocate_registers(Function& f, const Liveness& live, uint32_t wanted, bool only_wanted);

// --- emit.cpp, assign_barriers.cpp: the final stream of one kernel
struct CodeBlock {
  uint32_t begin = 0, end = 0;  // instructions
  std::array<uint32_t, 2> successor{};
  uint32_t successor_count = 0;
  bool loop_entry = false;  // some predecessor comes later in the stream
  std::span<const uint32_t> successors() const { return {successor.data(), successor_count}; }
};
struct Code {
  std::vector<InstId> order;
  std::vector<uint32_t> targets;    // per instruction: position of the instruction its label names; UINT32_MAX = none
  std::vector<CodeBlock> blocks;    // in order of the stream, without gaps
  std::vector<uint64_t> addresses;  // per instruction, after emit
  void clear() { order.clear(), targets.clear(), blocks.clear(), addresses.clear(); }
};
// Branches, reconvergence and exits become instructions. `room`: code whose memory is used again.
Code lay_out(Function& f, isa::FormCache& forms, Code room);
void assign_barriers(Function& f, Code& code);  // fills Facts::control
Result<cubin::Kernel> emit(const ptx::Module& module, Function& f, Code& code);

// --- independent checkers: one message per violation, empty when all is well
std::vector<std::string> check_allocation(const Function& before, const Function& after);
std::vector<std::string> check_schedule(const isa::Target& target, const std::vector<isa::Instruction>& code,
                                        const std::vector<uint64_t>& addresses);
// Every region is opened and joined once on every path (SSY and SYNC, BSSY and BSYNC).
std::vector<std::string> check_regions(const isa::Target& target, const std::vector<isa::Instruction>& code,
                                       const std::vector<uint64_t>& addresses);
// The same instructions in each block, and each reads what it read before.
std::vector<std::string> check_order(const Function& before, const Function& after);
// The distance that check_schedule demands from a producer to a reader of its result (file none: Pascal's condition code); 0: none.
uint32_t checked_distance(const isa::Target& target, const isa::Instruction& producer, const isa::Instruction& consumer,
                          uint32_t reg, isa::RegisterFile file, bool guard);

}  // namespace rndn::assembler
