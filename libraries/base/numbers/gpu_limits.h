// What a multiprocessor and a block of a GPU have, by compute capability: the one place that says it. Sources: the table
// of technical specifications in the CUDA C++ Programming Guide; registers and warps agree with ptxas's choices.
// isa::Target carries the row of its GPU. Code that is made before the target is known (ptx/codegen, the library's
// kernels) asks for what all of them have. Left out: what no decision here depends on (caches, textures).
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

namespace rndn {

struct GpuLimits {
  uint32_t sm = 0;  // compute capability times ten
  uint32_t warps_per_sm = 0, blocks_per_sm = 0, registers_per_sm = 0;
  uint32_t shared_per_sm = 0;       // bytes that the blocks of a multiprocessor share
  uint32_t max_shared_bytes = 0;    // of a block: declared in the code
  uint32_t max_dynamic_shared = 0;  // of a block that asked for it at its launch
  static constexpr uint32_t threads_per_block = 1024;
};

inline constexpr std::array<GpuLimits, 7> gpu_limits = {{
    {60, 64, 32, 65536, 64 << 10, 48 << 10, 48 << 10},
    {61, 64, 32, 65536, 96 << 10, 48 << 10, 48 << 10},
    {75, 32, 16, 65536, 64 << 10, 48 << 10, 64 << 10},
    {80, 64, 32, 65536, 164 << 10, 48 << 10, 163 << 10},
    {86, 48, 16, 65536, 100 << 10, 48 << 10, 99 << 10},
    {89, 48, 24, 65536, 100 << 10, 48 << 10, 99 << 10},
    {90, 64, 32, 65536, 228 << 10, 48 << 10, 227 << 10},
}};

// Of a GPU that has a row.
constexpr GpuLimits limits_of(uint32_t sm) { return *std::ranges::find(gpu_limits, sm, &GpuLimits::sm); }
// The shared memory that a block can declare on every target.
inline constexpr uint32_t shared_everywhere =
    std::ranges::min(gpu_limits, {}, &GpuLimits::max_shared_bytes).max_shared_bytes;

}  // namespace rndn
