// NVIDIA's assembler as a process: the backend `ptxas`.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn::runtime {

// Assembles `ptx` for `target` ("sm_86") with `program` (a path, or a name looked up on PATH) at -O`level`.
// max_registers: 0 = no limit. Fails (fault world) when it cannot be run, with ptxas's own output when it refuses the
// text.
Result<std::vector<std::byte>> run_ptxas(const std::string& program, const std::string& ptx, const std::string& target,
                                         int level, uint32_t max_registers);

}  // namespace rndn::runtime
