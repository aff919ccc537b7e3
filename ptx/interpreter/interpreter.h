// Runs PTX on the CPU, from the PTX manual alone: slow, obvious, and without any knowledge of SASS. The witness that assembler and
// simulator are compared with.
//
// Threads have a program counter each and run one after another until they wait (bar, shfl.sync, vote.sync, match.sync, redux.sync,
// bar.warp.sync, activemask); a wait ends when its threads have come. Blocks run one after another, in order or in a seeded random one.
// Where PTX leaves a result open, see semantics.h. Of the functions that the driver resolves it knows vprintf, malloc, free, __assertfail.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/errors/result.h"
#include "ptx/ir.h"

namespace rndn::ptx {

// Device memory. Addresses are never reused within one object, and allocations do not touch, so that every access is checked.
class Memory {
 public:
  // `bytes` zero bytes, aligned to 256. Zero bytes are a valid allocation that nothing may access.
  uint64_t allocate(uint64_t bytes);
  void release(uint64_t address);
  // The `bytes` bytes at `address`, or null when they do not lie in one allocation.
  std::byte* find(uint64_t address, uint64_t bytes);
  // False when the range does not lie in one allocation.
  bool write(uint64_t address, std::span<const std::byte> from);
  bool read(uint64_t address, std::span<std::byte> into);

 private:
  std::map<uint64_t, std::vector<std::byte>> blocks_;
  uint64_t next_ = 0x10'0000'0000;
};

struct Launch {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t dynamic_shared = 0;  // bytes
  std::span<const std::byte>
      parameters;     // all of them, each at its natural (or stated) alignment, as cuLaunchKernel packs them
  uint64_t seed = 0;  // not 0: blocks, and threads of a block, in a random order made from it
  std::string* output = nullptr;           // what vprintf prints is appended to it
  uint64_t max_instructions = 1ull << 34;  // of all threads together; then an error (a loop without end)
};

struct InterpreterStats {
  uint64_t instructions = 0;  // executed by all threads, guarded-off ones included
};

// A module with its .global and .const variables in memory: they keep their values between launches.
class Interpreter {
 public:
  Interpreter(const Module& module, Memory& memory);
  // Errors are the input's fault and name function, line, block and thread: an access outside every allocation or misaligned, a trap,
  // threads that wait for each other, an unsupported instruction, too many instructions, wrong parameters.
  Result<InterpreterStats> launch(std::string_view kernel, const Launch& launch);
  // Address of a .global variable, 0 when there is none of that name.
  uint64_t global(std::string_view name) const;

 private:
  friend class Machine;
  const Module& module_;
  Memory& memory_;
  std::vector<uint64_t> places_;      // per variable: its address within its space
  std::string problem_;               // what the verifier says, if anything
  std::vector<std::byte> constants_;  // all .const variables
};

// The module's only launch, in one call.
Result<InterpreterStats> interpret(const Module& module, std::string_view kernel, const Launch& launch, Memory& memory);

}  // namespace rndn::ptx
