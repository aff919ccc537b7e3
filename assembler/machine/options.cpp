#include "assembler/machine/options.h"

#include <algorithm>

namespace rndn::assembler {

uint32_t register_limit(const ptx::Function& p, const Options& o) {
  uint32_t limit = o.max_registers ? o.max_registers : o.target->max_registers;
  if (p.max_registers) limit = std::min(limit, p.max_registers);
  uint64_t threads = 1;
  for (int d = 0; d < 3; ++d) threads *= std::max(1u, p.required_threads[d] ? p.required_threads[d] : p.max_threads[d]);
  if (p.required_threads[0] || p.max_threads[0]) {
    // More blocks than there can be ask for nothing, as with ptxas (measured).
    const bool possible =
        threads * p.min_blocks <= uint64_t{o.target->warps_per_sm} * 32 && p.min_blocks <= o.target->blocks_per_sm;
    const uint64_t per_thread =
        o.target->registers_per_sm / ((threads + 31) / 32 * 32) / (possible ? std::max(1u, p.min_blocks) : 1);
    limit = std::min<uint64_t>(limit, std::max<uint64_t>(16, per_thread / 8 * 8));
  }
  limit = std::min(limit, o.target->max_registers + o.target->reported_registers_extra);
  return std::max(limit, 16u) - o.target->reported_registers_extra;
}

}  // namespace rndn::assembler
