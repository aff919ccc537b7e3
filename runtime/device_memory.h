// Device memory for many buffers: pages bumped in 256-byte steps and freed together, since the driver's allocation costs 60 us.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/device/device.h"

namespace rndn::runtime {

// Buffers in device memory, or (mapped) in host memory that the device reaches. Contents undefined; mapped memory starts zeroed.
class DevicePool {
 public:
  DevicePool(device::Device& device, bool mapped, uint64_t page_bytes)
      : device_(device), mapped_(mapped), page_bytes_(page_bytes) {}
  ~DevicePool() {
    for (const device::Mapped& page : pages_)
      if (mapped_)
        (void)device_.free_mapped(page);
      else
        (void)device_.free(page.address);
  }
  DevicePool(const DevicePool&) = delete;

  // `host` is null but for mapped memory.
  Result<device::Mapped> allocate(uint64_t bytes) {
    bytes = (std::max<uint64_t>(bytes, 1) + 255) / 256 * 256;
    if (bytes > left_) {
      uint64_t page = std::max(bytes, page_bytes_);
      device::Mapped made;
      if (mapped_) {
        ASSIGN_OR_RETURN(made, device_.allocate_mapped(page));
      } else {
        ASSIGN_OR_RETURN(made.address, device_.allocate(page));
      }
      pages_.push_back(made);
      if (page - bytes < left_) return made;  // a large buffer of its own: go on filling the page before
      next_ = made;
      left_ = page;
    }
    device::Mapped buffer = next_;
    next_.address += bytes;
    if (mapped_) next_.host = static_cast<char*>(next_.host) + bytes;
    left_ -= bytes;
    return buffer;
  }

 private:
  device::Device& device_;
  bool mapped_;
  uint64_t page_bytes_;
  std::vector<device::Mapped> pages_;
  device::Mapped next_;
  uint64_t left_ = 0;
};

}  // namespace rndn::runtime
