// Control flow of one PTX function, recovered: blocks, structured divergent regions, uniform values.
#pragma once
#include <vector>

#include "assembler/ir.h"
#include "libraries/base/result.h"
#include "ptx/ir.h"

namespace rndn::assembler {

// A PTX instruction and the guard under which it runs (its own, or one it got from an inlined branch).
struct FlowItem {
  uint32_t inst = 0;  // index in ptx::Function::instructions
  ptx::RegisterId guard = none<ptx::RegisterId>();
  bool negated = false;
};

struct FlowBlock {
  std::vector<FlowItem> items;                          // without the branch that ends the block
  ptx::RegisterId predicate = none<ptx::RegisterId>();  // none: the branch always goes to `next`
  bool negated = false;
  bool uniform_branch = false;
  BlockId taken = none<BlockId>(), next = none<BlockId>();  // both none: ends the thread
  uint32_t line = 0, end_line = 0;  // of the first instruction and of the branch or exit at the end
  std::vector<RegionId> opens;  // outermost first
  RegionId joins = none<RegionId>();
  RegionId innermost = none<RegionId>();
  bool convergent = true;  // every live lane of the warp runs it together
  uint32_t loop_depth = 0;
};

struct Flow {
  IdVector<BlockId, FlowBlock> blocks;
  std::vector<BlockId> layout;  // reachable blocks, entry first
  IdVector<RegionId, Region> regions;
  std::vector<uint8_t> divergent;  // by PTX register: whether it may differ between the lanes of a warp
};

// True when selection expands the instruction into code with branches of its own: a guard becomes a branch around it.
bool expands_to_branches(const ptx::Module& module, const ptx::Instruction& inst, const isa::Target& target);

Result<Flow> structure(const ptx::Module& module, const ptx::Function& function, const isa::Target& target,
                       bool branch_inlining);

}  // namespace rndn::assembler
