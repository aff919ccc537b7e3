// A device with counters: bytes that it is sent, memory that it has given, and what its launches
// do.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "runtime/device/forwarding_device.h"

namespace rndn::tools::papers {

class Meter : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  struct Counts {
    uint64_t sent = 0;     // bytes from the host
    uint64_t sectors = 0;  // of 32 bytes, read and written by kernels: of the simulator alone
  };
  Counts counts;
  uint64_t in_use() const { return in_use_; }
  uint64_t peak() const { return peak_; }
  void forget_peak() { peak_ = in_use_; }
  // Warps of a kernel that are resident on a multiprocessor at once, for the kernels of the last
  // module that has one of this name; 0: none has.
  uint32_t resident_warps(const std::string& kernel) const {
    const auto at = warps_.find(kernel);
    return at == warps_.end() ? 0 : at->second;
  }

  Result<device::Address> allocate(uint64_t bytes) override {
    ASSIGN_OR_RETURN(const device::Address at, to_.allocate(bytes));
    sizes_[at] = bytes;
    peak_ = std::max(peak_, in_use_ += bytes);
    return at;
  }
  Result<void> free(device::Address at) override {
    if (const auto size = sizes_.find(at); size != sizes_.end()) {
      in_use_ -= size->second;
      sizes_.erase(size);
    }
    return to_.free(at);
  }
  Result<void> copy_to_device(device::Address to, const void* from, uint64_t bytes) override {
    counts.sent += bytes;
    return to_.copy_to_device(to, from, bytes);
  }
  Result<device::KernelHandle> find_kernel(device::ModuleHandle module, const std::string& name) override {
    ASSIGN_OR_RETURN(const device::KernelHandle kernel, to_.find_kernel(module, name));
    names_[kernel] = name;
    return kernel;
  }
  Result<uint32_t> blocks_per_multiprocessor(device::KernelHandle kernel, uint32_t threads, uint32_t shared) override {
    ASSIGN_OR_RETURN(const uint32_t blocks, to_.blocks_per_multiprocessor(kernel, threads, shared));
    if (const auto name = names_.find(kernel); name != names_.end())
      warps_[name->second] = blocks * ((threads + 31) / 32);
    return blocks;
  }
  Result<void> launch(device::KernelHandle kernel, device::Dim3 grid, device::Dim3 block, uint32_t shared,
                      std::span<const std::byte> parameters) override {
    RETURN_IF_ERROR(to_.launch(kernel, grid, block, shared, parameters));
    const device::LaunchCounters done = to_.last_launch();
    counts.sectors += done.load_sectors + done.store_sectors;
    return {};
  }

 private:
  std::unordered_map<device::Address, uint64_t> sizes_;
  std::map<device::KernelHandle, std::string> names_;
  std::map<std::string, uint32_t> warps_;
  uint64_t in_use_ = 0, peak_ = 0;
};

}  // namespace rndn::tools::papers
