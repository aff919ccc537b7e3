// The passes that decide order and registers, and the final stream. Each file says on top what it does and relies on.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "assembler/cubin/cubin.h"
#include "assembler/machine/ir.h"
#include "assembler/machine/liveness.h"
#include "assembler/machine/options.h"
#include "libraries/base/errors/result.h"
#include "ptx/ir.h"

namespace rndn::assembler {

// --- balance_pipes.cpp: over physical registers; sums, shifts and moves become products where the ALU has more to do than the multiplier
void balance_pipes(Function& f, isa::FormCache& forms);

// --- place_blocks.cpp: after scheduling; another order of blocks, where it has fewer jumps
void place_blocks(Function& f);

// --- schedule_for_pressure.cpp: another order of blocks, where more than occupancy_budget() GPRs are alive at once (`pressure`) and another order makes an
// occupancy step, or spills less; else nothing changes. Returns how many are alive at once then.
uint32_t schedule_for_pressure(Function& f, const Liveness& live, uint32_t pressure);

// --- schedule.cpp: new order of each block's code
// What scheduling before allocation knows of a function apart from the limit on registers; lives in the function's arena.
struct SchedulePlan {
  std::span<InstId> program;  // the code of all blocks in the order of the program
  std::span<uint32_t> late;   // the same as late as possible: places within the block
  std::span<uint32_t> most;   // by place in the layout: GPRs alive at once in the block's last schedule, 0 before the first
};
SchedulePlan plan_schedule(const Function& f);
// Orders the code so that about `limit` GPRs are alive at once, about `crowded` in blocks where the last schedule had more than `limit`. Returns whether
// now some blocks have more than the limit while others keep within it. Can be repeated.
bool schedule(Function& f, const SchedulePlan& plan, const Liveness& live, uint32_t limit, uint32_t crowded);
void schedule_allocated(Function& f);  // over physical registers

// --- allocate_registers.cpp: virtual to physical registers. Takes at most `wanted` of them if it can (0: any number); if it cannot, as few as it can, or,
// with only_wanted, none: then it returns false, and nothing is changed. Fails when even spilling does not help.
Result<bool> allocate_registers(Function& f, const Liveness& live, uint32_t wanted, bool only_wanted);

// --- emit.cpp, scoreboards.cpp: the final stream of one kernel
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
void lengthen_stalls(Function& f, const Code& code, const Options& o);  // for tests, as Options::stalls says
Result<cubin::Kernel> emit(const ptx::Module& module, Function& f, Code& code);
// What the kernel takes from its declaration in PTX.
void declare(cubin::Kernel& kernel, const ptx::Function& function);
// Instructions of a section that holds n: the rest are NOPs.
uint32_t padded_size(const isa::Target& target, uint32_t n);
// Pascal's stack of code with regions so deep, so many guarded branches, and perhaps loops.
uint32_t divergence_stack_bytes(uint32_t depth, uint32_t branches, bool loops);

}  // namespace rndn::assembler
