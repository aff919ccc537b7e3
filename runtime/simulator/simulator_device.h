// The SASS simulator as a device::Device: launches run to completion in the call, marks are host time.
#pragma once
#include <memory>
#include <string>

#include "assembler/simulator/simulator.h"
#include "runtime/device/device.h"

namespace rndn::runtime {

// The simulated GPU is small (4 multiprocessors) and the same on every machine, so that counts repeat.
inline constexpr uint32_t simulated_multiprocessors = 4;

// target: "sm_86" and so on. options: the checks of every launch. Memory is bounded by what the host has.
// Fails (fault usage) for a target that does not exist.
Result<std::unique_ptr<device::Device>> open_simulator(const std::string& target, const sim::Options& options = {});

}  // namespace rndn::runtime
