// A device that adds up what launches cost.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>

#include "tests/runtime/forwarding_device.h"

namespace rndn::operators::test {

class CountingDevice final : public runtime::test::ForwardingDevice {
 public:
  explicit CountingDevice(std::unique_ptr<device::Device> inner) : ForwardingDevice(*inner), inner_(std::move(inner)) {}
  uint64_t launches = 0, waits = 0, instructions = 0, sectors = 0;  // instructions: a warp's
  uint64_t copies = 0;                                              // to the device
  uint64_t first_sectors = 0;                                       // of the first launch since `launches` was zero
  uint32_t spills = 0;                                              // bytes of local memory, most of a kernel
  uint32_t registers = 0;                                           // of a block, most of a kernel

  void start() { copies = launches = waits = instructions = sectors = first_sectors = 0; }
  Result<void> copy_to_device(device::Address to, const void* from, uint64_t n) override {
    ++copies;
    return to_.copy_to_device(to, from, n);
  }
  Result<void> copy_to_host(void* to, device::Address from, uint64_t n) override {
    ++waits;
    return to_.copy_to_host(to, from, n);
  }
  Result<void> fill(device::Address to, device::Filling value, uint64_t n) override {
    ++launches;
    return to_.fill(to, value, n);
  }
  Result<void> launch(device::KernelHandle k, device::Dim3 grid, device::Dim3 block, uint32_t shared,
                      std::span<const std::byte> parameters) override {
    RETURN_IF_ERROR(to_.launch(k, grid, block, shared, parameters));
    const device::LaunchCounters c = to_.last_launch();
    if (launches++ == 0) first_sectors = c.load_sectors + c.store_sectors;
    instructions += c.warp_instructions;
    sectors += c.load_sectors + c.store_sectors;
    ASSIGN_OR_RETURN(device::KernelInfo info, to_.kernel_info(k));
    spills = std::max(spills, info.local_bytes);
    registers = std::max(registers, info.registers * block.x);
    return {};
  }
  Result<void> synchronize() override {
    ++waits;
    return to_.synchronize();
  }
  device::LaunchCounters last_launch() const override { return to_.last_launch(); }

 private:
  std::unique_ptr<device::Device> inner_;
};

}  // namespace rndn::operators::test
