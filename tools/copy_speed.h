// How fast a device copies, by its own clock: the roof of kernels that only move bytes.
#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/device/device.h"

namespace rndn::tools {

// Bytes per second: the best of five.
template <class F>
Result<double> speed_of(device::Device& device, uint64_t bytes, F&& copy) {
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 5; ++i) {
    ASSIGN_OR_RETURN(const uint32_t start, device.record_mark());
    RETURN_IF_ERROR(copy());
    ASSIGN_OR_RETURN(const uint32_t end, device.record_mark());
    ASSIGN_OR_RETURN(const uint64_t ns, device.elapsed_ns(start, end));
    best = std::min(best, std::max<uint64_t>(ns, 1));
  }
  return static_cast<double>(bytes) / static_cast<double>(best) * 1e9;
}

// Of a large copy on the device, read plus written; 0 on the simulator, which has no clock.
inline Result<double> copy_speed(device::Device& device) {
  constexpr uint64_t bytes = uint64_t{1} << 30;
  if (device.info().is_simulator) return 0;
  ASSIGN_OR_RETURN(const device::Address from, device.allocate(bytes));
  ASSIGN_OR_RETURN(const device::Address to, device.allocate(bytes));
  RETURN_IF_ERROR(device.fill(from, 0, bytes));
  ASSIGN_OR_RETURN(const double found, speed_of(device, 2 * bytes, [&] { return device.copy(to, from, bytes); }));
  RETURN_IF_ERROR(device.free(from));
  RETURN_IF_ERROR(device.free(to));
  return found;
}

}  // namespace rndn::tools
