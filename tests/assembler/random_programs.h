// Random valid PTX: kernels of one shape that use the whole table of opcodes, every memory space, divergence, loops and calls, and whose results
// PTX defines to the last bit.
//
// Operations are drawn from ptx/opcodes.def: opcode, form, types and modifiers; a new row takes part at once. What PTX leaves open is not made:
// approximate operations, contraction (roundings are always written), division by zero, results of atomics that depend on an order, races, registers
// that are not set on every way. Sign and payload of a NaN are open too: NaNs become canonical before anything can see their bits.
// The same seed gives the same kernel for the same table.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "libraries/base/errors/result.h"
#include "ptx/ir.h"

namespace rndn::testing {

// How a kernel is launched: (in, out, u32, u64, u16, f32, f64, 16 bytes). `in` is read only. A thread owns a row of `out`; behind the rows lie words
// in which the threads of a kernel count together.
inline constexpr uint32_t program_blocks = 2, program_threads = 64, program_in_bytes = 4096, program_row_bytes = 1024;
inline constexpr uint32_t program_version = 78;  // of PTX: the newest that ptxas 11.8 knows
inline constexpr uint32_t program_counters = 8;
inline constexpr uint32_t program_out_bytes =
    program_blocks * program_threads * program_row_bytes + program_counters * 8;

// An empty module for kernels of the target and above.
ptx::Module program_module(uint32_t sm);

// The `line` of instructions that make the others defined: a reduction may leave them out only where nothing reads what they write.
inline constexpr uint32_t program_frame = 1;

// What a kernel has computed and not stored goes into a sum at its end: s = s * 31 + value.
inline constexpr int64_t checksum_factor = 31;

// Appends the entry `name` with its functions and variables, whose names begin with `name`.
void add_random_kernel(ptx::Module& module, uint64_t seed, const std::string& name);

// The parameters of a launch, and the words that `in` holds: random and special ones.
std::array<uint64_t, 8> program_parameters(uint64_t in, uint64_t out);
std::vector<uint64_t> program_input(uint64_t seed);

// What `out` holds after a launch, by the PTX interpreter; `seed`: the order of threads.
Result<std::vector<uint64_t>> interpreted(const ptx::Module& module, const std::string& kernel,
                                          const std::vector<uint64_t>& in, uint64_t seed = 0);

}  // namespace rndn::testing
