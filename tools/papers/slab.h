// Device memory for operators without an engine: one piece, handed out from the front; what is not
// kept is free again before the next run.
#pragma once
#include <cstring>
#include <memory>

#include "libraries/operators/api.h"

namespace rndn::tools::papers {

class Slab final : public operators::Memory {
 public:
  Slab(device::Device& device, device::Address base, uint64_t bytes, device::Mapped mapped)
      : device_(device), base_(base), bytes_(bytes), mapped_(mapped) {}
  ~Slab() override {
    (void)device_.free(base_);
    (void)device_.free_mapped(mapped_);
  }
  static constexpr uint64_t mapped_bytes = 64 << 10;
  static Result<std::unique_ptr<Slab>> make(device::Device& device, uint64_t bytes) {
    ASSIGN_OR_RETURN(const device::Address base, device.allocate(bytes));
    ASSIGN_OR_RETURN(const device::Mapped mapped, device.allocate_mapped(mapped_bytes));
    return std::make_unique<Slab>(device, base, bytes, mapped);
  }
  Result<device::Address> temporary(uint64_t bytes) override {
    ASSIGN_OR_RETURN(const uint64_t at, take(used_, bytes, bytes_));
    return base_ + at;
  }
  Result<device::Address> result(uint64_t bytes) override { return temporary(bytes); }
  Result<device::Mapped> mapped(uint64_t bytes) override {
    ASSIGN_OR_RETURN(const uint64_t at, take(mapped_used_, bytes, mapped_bytes));
    const device::Mapped m{static_cast<char*>(mapped_.host) + at, mapped_.address + at};
    std::memset(m.host, 0, bytes);
    return m;
  }
  void keep() { kept_ = used_; }
  void reset() { used_ = kept_, mapped_used_ = 0; }
  void forget() { used_ = kept_ = mapped_used_ = 0; }

 private:
  static Result<uint64_t> take(uint64_t& used, uint64_t bytes, uint64_t most) {
    const uint64_t at = used;
    used += (bytes + 255) / 256 * 256;
    if (used > most) return world_error("the benchmark's memory of {} bytes is too small", most);
    return at;
  }
  device::Device& device_;
  const device::Address base_;
  const uint64_t bytes_;
  const device::Mapped mapped_;
  uint64_t used_ = 0, kept_ = 0, mapped_used_ = 0;
};

}  // namespace rndn::tools::papers
