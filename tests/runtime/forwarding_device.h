// A device that passes every call on to another: the base of devices that tests watch or restrict.
#pragma once
#include "runtime/device/device.h"

namespace rndn::runtime::test {

class ForwardingDevice : public device::Device {
 public:
  explicit ForwardingDevice(device::Device& to) : to_(to) {}
  const device::Info& info() const override { return to_.info(); }
  Result<device::Address> allocate(uint64_t n) override { return to_.allocate(n); }
  Result<void> free(device::Address a) override { return to_.free(a); }
  Result<void> copy_to_device(device::Address a, const void* from, uint64_t n) override {
    return to_.copy_to_device(a, from, n);
  }
  Result<void> copy_to_host(void* to, device::Address a, uint64_t n) override { return to_.copy_to_host(to, a, n); }
  Result<void> copy(device::Address to, device::Address from, uint64_t n) override { return to_.copy(to, from, n); }
  Result<void> fill(device::Address a, uint8_t v, uint64_t n) override { return to_.fill(a, v, n); }
  Result<device::Mapped> allocate_mapped(uint64_t n) override { return to_.allocate_mapped(n); }
  Result<void> free_mapped(const device::Mapped& m) override { return to_.free_mapped(m); }
  Result<device::ModuleHandle> load_module(std::span<const std::byte> c) override { return to_.load_module(c); }
  Result<void> unload_module(device::ModuleHandle m) override { return to_.unload_module(m); }
  Result<device::KernelHandle> find_kernel(device::ModuleHandle m, const std::string& n) override {
    return to_.find_kernel(m, n);
  }
  Result<device::KernelInfo> kernel_info(device::KernelHandle k) override { return to_.kernel_info(k); }
  Result<uint32_t> blocks_per_multiprocessor(device::KernelHandle k, uint32_t b, uint32_t s) override {
    return to_.blocks_per_multiprocessor(k, b, s);
  }
  Result<void> launch(device::KernelHandle k, device::Dim3 g, device::Dim3 b, uint32_t s,
                      std::span<const std::byte> p) override {
    return to_.launch(k, g, b, s, p);
  }
  Result<void> synchronize() override { return to_.synchronize(); }
  bool has_graphs() const override { return to_.has_graphs(); }
  Result<void> begin_graph() override { return to_.begin_graph(); }
  Result<device::GraphHandle> end_graph() override { return to_.end_graph(); }
  Result<void> launch_graph(device::GraphHandle g) override { return to_.launch_graph(g); }
  Result<void> free_graph(device::GraphHandle g) override { return to_.free_graph(g); }
  uint64_t host_calls() const override { return to_.host_calls(); }
  Result<uint32_t> record_mark() override { return to_.record_mark(); }
  Result<uint64_t> elapsed_ns(uint32_t a, uint32_t b) override { return to_.elapsed_ns(a, b); }

 protected:
  device::Device& to_;
};

}  // namespace rndn::runtime::test
