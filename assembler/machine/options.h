// What callers of the assembler choose, what they are told of each kernel, and the registers that it may have.
#pragma once
#include <cstdint>
#include <string>

#include "assembler/isa/isa.h"
#include "ptx/ir.h"

namespace rndn {
class ThreadPool;
}
namespace rndn::assembler {

class Workspace;  // assembler/assemble.h

enum class Scheduler : uint8_t { linear, list };

// Issue cycles between instructions: as scheduled, or longer (for tests: whatever is right must stay right).
enum class Stalls : uint8_t { scheduled, maximal, random };

// Whether functions are made of stencils at -O0 (stencils.h), where they can be. Making a stencil takes much longer than assembling its statement
// otherwise, so it pays for those who keep a workspace, in which stencils stay.
enum class Stencils : uint8_t { off, with_workspace, always };

struct Options {
  const isa::Target* target = nullptr;
  int level = 3;  // -O0 .. -O3
  Scheduler scheduler = Scheduler::list;
  uint32_t max_registers = 0;  // --maxrregcount; 0: the target's limit
  bool verify_passes = false;  // independent checkers after each pass
  bool branch_inlining = true;
  bool unrolling = true;  // of small counted loops, from -O2 on
  bool contract = false;  // --fmad: products and sums of floats that PTX leaves free become fma, from -O1 on
  Stencils stencils = Stencils::with_workspace;
  bool line_tables = false;  // -lineinfo: says of each machine instruction which .loc it comes from
  Stalls stalls = Stalls::scheduled;
  uint64_t stall_seed = 1;     // of Stalls::random
  ThreadPool* pool = nullptr;  // assembles the module's kernels side by side; the cubin is the same. None: one thread
  Workspace* workspace = nullptr;  // memory to use; none: its own
};

inline bool uses_stencils(const Options& o) {
  return o.level == 0 && (o.stencils == Stencils::always || (o.stencils == Stencils::with_workspace && o.workspace));
}

struct KernelReport {
  std::string name;
  uint32_t registers = 0;     // as reported to the driver
  uint32_t instructions = 0;  // without padding
  uint32_t spill_bytes = 0;  // per thread, of local memory
  uint32_t shared_bytes = 0;
  uint32_t spill_store_bytes = 0, spill_load_bytes = 0;  // what instructions move between them and registers, each counted once
  bool of_stencils = false;  // made of stencils (-O0)
};

// Registers that a block of the function's declared size leaves to each thread, in steps of 8.
uint32_t register_limit(const ptx::Function& p, const Options& o);

// Registers per thread with which every warp of a multiprocessor can be resident.
inline uint32_t full_occupancy_registers(const isa::Target& t) { return t.registers_per_sm / (32 * t.warps_per_sm); }

}  // namespace rndn::assembler
