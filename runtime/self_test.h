// A kernel of each kind on a device, against the simulator and the reference interpreter: `rndn devices --self-test`.
#pragma once
#include <string>

#include "libraries/base/errors/result.h"
#include "runtime/device/device.h"

namespace rndn::runtime {

// Compiles small programs over made-up tables of several sizes (empty, one row, a warp's edge, many tiles) and runs them on `device`, on
// `simulator` (may be null), and on the reference interpreter: integers and order must agree exactly, sums of floats to 1e-12 relative.
// Appends a line per program to `report`. Fails (fault internal) when a result differs, or with the device's own failure.
Result<void> self_test(device::Device& device, device::Device* simulator, std::string& report);

}  // namespace rndn::runtime
