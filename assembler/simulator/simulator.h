// The SASS simulator: executes any cubin of the supported targets, with divergence as the target does it.
//
// Parallel mode uses all cores; deterministic mode runs one seeded order, and its counters repeat exactly on every machine.
// Checks (all optional) report what a real GPU would let pass or turn into a wrong answer: out-of-bounds and misaligned accesses,
// uninitialised reads, and scheduling hazards (a result used before its stall count or scoreboard allows reads as the old value).
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assembler/isa/isa.h"
#include "libraries/base/errors/result.h"

namespace rndn::sim {

struct Options {
  bool check_memory = true;          // bounds, alignment, freed memory
  bool check_uninitialised = false;  // registers and memory (global, shared, local) never written
  bool check_hazards = false;        // stalls and scoreboards
  bool check_races = false;          // accesses to shared memory that no barrier orders
  bool count_classes = false;        // the counts that cost time: by class, and bank conflicts
  bool weak_memory = false;          // stores arrive late and out of order, plain loads may be old, but for fences
  bool deterministic = false;        // weak_memory implies it
  bool joins_wait_for_all = false;   // BSYNC waits for lanes at a WARPSYNC, too (control.cpp)
  uint64_t seed = 1;
  unsigned threads = 0;                // 0: all cores; deterministic: 1
  std::string* output = nullptr;       // what vprintf prints is appended to it
  uint64_t max_warp_instructions = 0;  // per launch; 0: no limit. Exceeding it is reported as a hang
};

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

// What instructions are counted by: what they are to the scheduler (assembler/isa/latency_classes.def).
inline constexpr size_t instruction_classes = 0
#define LATENCY_CLASS(name, text) +1
#include "assembler/isa/latency_classes.def"
#undef LATENCY_CLASS
    ;
std::string_view instruction_class_name(size_t instruction_class);

// Atomics count as stores.
struct Counts {
  uint64_t warp_instructions = 0;
  uint64_t thread_instructions = 0;
  uint64_t issue_cycles = 0;                                   // sum of stall counts of executed instructions, per warp
  uint64_t global_load_sectors = 0, global_store_sectors = 0;  // 32-byte sectors
  uint64_t mapped_load_sectors = 0;                            // of these, of map()'s memory: they come over the bus
  uint64_t global_load_bytes = 0, global_store_bytes = 0;      // that threads asked for
  uint64_t shared_accesses = 0;
  uint64_t divergent_branches = 0;
  uint64_t partial_exits = 0;  // of lanes of a warp while others in it go on
  // With Options::count_classes.
  std::array<uint64_t, instruction_classes> warp_by_class{}, thread_by_class{};
  // Times that a shared load or store took beyond the first, and beyond those that its width needs: different words of one of the 32 banks. Atomics
  // are left out.
  uint64_t shared_bank_conflicts = 0;
};

// Counts of one launch. Those of iterations that only wait (spin_loops.cpp) are in `spinning` and nowhere else: how many there are depends on when
// other warps run, and so on the machine when blocks run in parallel.
struct Counters : Counts {
  uint64_t blocks = 0;
  uint64_t hazards = 0;
  uint64_t spin_iterations = 0;  // of warps
  Counts spinning;
};

// A violation found by a check, or a trap: where and what.
struct Report {
  std::string kernel;
  uint64_t address = 0;     // of the instruction, in its section
  std::string instruction;  // as text
  std::string message;
  std::array<uint32_t, 3> block{}, thread{};
  std::string text() const;  // one line with all of it
};

struct KernelInfo {
  std::string name;
  uint32_t registers = 0, shared_bytes = 0, local_bytes = 0, parameter_bytes = 0, instructions = 0;
};

// Blocks that a multiprocessor of the target holds at once, by its warps, registers and shared memory (CUDA C++ Programming Guide, table of technical
// specifications). At least one.
uint32_t resident_blocks(const isa::Target& target, const KernelInfo& kernel, uint32_t threads,
                         uint32_t dynamic_shared);

enum class ModuleId : uint32_t {};

// One simulated GPU: its memory and its loaded modules. Not thread-safe; launches are parallel inside.
class Machine {
 public:
  // target: "sm_86" etc. memory_bytes bounds what can be allocated.
  Machine(std::string_view target, uint64_t memory_bytes);
  ~Machine();
  Machine(const Machine&) = delete;

  Result<uint64_t> allocate(uint64_t bytes, uint64_t alignment = 256);  // device address
  Result<void> free(uint64_t address);
  Result<void> write(uint64_t address, const void* from, uint64_t bytes);
  Result<void> read(uint64_t address, void* to, uint64_t bytes) const;
  Result<void> fill(uint64_t address, uint8_t value, uint64_t bytes);
  Result<void> fill_words(uint64_t address, uint32_t value, uint64_t words);
  // Host memory visible at a device address (mapped memory); the caller keeps it alive.
  Result<uint64_t> map(void* host, uint64_t bytes);
  Result<void> unmap(uint64_t address);  // of map; nothing may read or write there any more

  Result<ModuleId> load(std::span<const std::byte> cubin);
  Result<void> unload(ModuleId module);
  Result<KernelInfo> kernel(ModuleId module, std::string_view name) const;
  std::vector<std::string> kernels(ModuleId module) const;  // names, in the cubin's order
  // Device address of a global variable of the module.
  Result<uint64_t> variable(ModuleId module, std::string_view name) const;

  // Runs the kernel to completion. parameters: the parameter area, laid out as the cubin says.
  // Fails (fault world) with the first report when a check fires or the code traps; all reports are in `reports`. Work that is cancelled (cancel.h)
  // ends within a kernel.
  Result<Counters> launch(ModuleId module, std::string_view kernel, Dim3 grid, Dim3 block, uint32_t dynamic_shared,
                          std::span<const std::byte> parameters, const Options& options,
                          std::vector<Report>* reports = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rndn::sim
