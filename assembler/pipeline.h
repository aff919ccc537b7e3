// One kernel through the passes. Private to this folder: assemble.cpp calls it for each kernel of a module.
#pragma once
#include <string>
#include <vector>

#include "assembler/assemble.h"
#include "assembler/backend/backend.h"
#include "assembler/backend/line_tables.h"
#include "assembler/check/check.h"
#include "assembler/machine/inst_facts.h"
#include "assembler/select/selection.h"
#include "assembler/stencils/stencils.h"

namespace rndn::assembler {

// What a thread keeps from kernel to kernel.
struct Workspace::Worker {
  Arena arena;
  isa::FormCache forms;
  const isa::Target* target = nullptr;  // of the forms
  SelectionRoom selection;              // memory of the last kernel, as all that follows
  Code code;
  RawVector<Facts> facts;
  RawVector<uint32_t> unit_begin, unit_items;
  RegisterLists registers;
  StencilCache stencils;
};

// --- pipeline.cpp
Result<void> assemble_kernel(const ptx::Module& module, const ptx::Function& p, const SourceLines& lines,
                             const Options& o, Workspace::Worker& memory, Timings& timings, cubin::Kernel& k,
                             KernelReport& report);

// --- schedule_and_allocate.cpp
// Fewer GPRs alive at once, where that costs occupancy: other places and orders for what makes them. Returns how many
// are, with the liveness of the code as it is then. Without list scheduling nobody asks: 0.
Result<uint32_t> reduce_pressure(Function& f, Survey& known, isa::FormCache& forms, const Options& o, Liveness& live);
// Order and registers, until both agree.
Result<void> schedule_and_allocate(Function& f, const Liveness& live, uint32_t pressure, const Options& o,
                                   Timings& timings);

inline bool uses_list_scheduler(const Options& o) { return o.level >= 2 && o.scheduler == Scheduler::list; }

// What checkers found, as an error; nothing: all is well.
Result<void> found(const std::vector<std::string>& problems, const std::string& where = {});

// Runs a pass that reorders blocks' code, checked when asked for.
template <class F>
Result<void> reorder(Function& f, const Options& o, F&& pass) {
  Function before;
  if (o.verify_passes) before = f;
  pass();
  return o.verify_passes ? found(check_order(before, f)) : Result<void>{};
}

}  // namespace rndn::assembler
