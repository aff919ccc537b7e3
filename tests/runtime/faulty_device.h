// A device on which one call fails, and which counts what it has given and not got back.
#pragma once
#include "libraries/base/errors/result.h"
#include "runtime/device/streams.h"
#include "tests/runtime/forwarding_device.h"

namespace rndn::runtime::test {

// Every call is counted, and the n-th fails: it is not passed on. `held`: what was taken and not
// given back.
class FaultyDevice : public ForwardingDevice {
 public:
  explicit FaultyDevice(device::Device& to) : ForwardingDevice(to), info_(to.info()) {
    info_.is_simulator = false;  // where what fails is not at once a bug of ours
  }
  const device::Info& info() const override { return info_; }
  uint64_t fails_at = 0, calls = 0;  // 0: none
  bool only_allocations = false;
  int64_t held = 0;

  Result<device::Address> allocate(uint64_t n) override {
    if (fails(true)) return world_error("injected: no memory").as(Cause::device_full);
    return taken(to_.allocate(n));
  }
  Result<void> free(device::Address a) override { return --held, to_.free(a); }
  Result<device::Mapped> allocate_mapped(uint64_t n) override {
    if (fails(true)) return world_error("injected: no mapped memory").as(Cause::device_full);
    return taken(to_.allocate_mapped(n));
  }
  Result<void> free_mapped(const device::Mapped& m) override { return --held, to_.free_mapped(m); }
  Result<void> copy_to_device(device::Address a, const void* from, uint64_t n) override {
    return fails() ? injected("a copy to the device") : to_.copy_to_device(a, from, n);
  }
  Result<void> copy_to_host(void* to, device::Address a, uint64_t n) override {
    return fails() ? injected("a copy to the host") : to_.copy_to_host(to, a, n);
  }
  Result<void> copy(device::Address to, device::Address from, uint64_t n) override {
    return fails() ? injected("a copy") : to_.copy(to, from, n);
  }
  Result<void> fill(device::Address a, device::Filling v, uint64_t n) override {
    return fails() ? injected("a fill") : to_.fill(a, v, n);
  }
  Result<device::ModuleHandle> load_module(std::span<const std::byte> c) override {
    if (fails()) return world_error("injected: a module");
    return taken(to_.load_module(c));
  }
  Result<void> unload_module(device::ModuleHandle m) override {
    return --held, to_.unload_module(m);
  }
  Result<device::KernelHandle> find_kernel(device::ModuleHandle m, const std::string& n) override {
    if (fails()) return world_error("injected: a kernel");
    return to_.find_kernel(m, n);
  }
  Result<device::KernelInfo> kernel_info(device::KernelHandle k) override {
    if (fails()) return world_error("injected: information");
    return to_.kernel_info(k);
  }
  Result<uint32_t> blocks_per_multiprocessor(device::KernelHandle k, uint32_t b,
                                             uint32_t s) override {
    if (fails()) return world_error("injected: occupancy");
    return to_.blocks_per_multiprocessor(k, b, s);
  }
  Result<void> launch(device::KernelHandle k, device::Dim3 g, device::Dim3 b, uint32_t s,
                      std::span<const std::byte> p) override {
    return fails() ? injected("a launch") : to_.launch(k, g, b, s, p);
  }
  Result<void> synchronize() override { return fails() ? injected("a wait") : to_.synchronize(); }
  Result<void> begin_graph() override {
    return fails() ? injected("the begin of a graph") : to_.begin_graph();
  }
  Result<device::GraphHandle> end_graph() override {
    if (fails()) {
      if (auto graph = to_.end_graph()) (void)to_.free_graph(*graph);
      return world_error("injected: the end of a graph");
    }
    return taken(to_.end_graph());
  }
  Result<void> launch_graph(device::GraphHandle g) override {
    return fails() ? injected("a graph") : to_.launch_graph(g);
  }
  Result<void> free_graph(device::GraphHandle g) override { return --held, to_.free_graph(g); }

 protected:
  bool fails(bool is_allocation = false) {
    return (is_allocation || !only_allocations) && ++calls == fails_at;
  }
  static Result<void> injected(const char* what) { return world_error("injected: {}", what); }

 private:
  device::Info info_;
  template <class T>
  Result<T> taken(Result<T> result) {
    held += result.ok();
    return result;
  }
};

// The same of a device with a stream of copies.
class FaultyStreams final : public FaultyDevice, public device::Streams {
 public:
  explicit FaultyStreams(device::Device& to)
      : FaultyDevice(to), streams_(*device::streams_of(to)) {}
  Result<void> send(device::Address to, const void* from, uint64_t n) override {
    return fails() ? injected("a copy beside the work") : streams_.send(to, from, n);
  }
  Result<device::Event> record_event(device::Stream stream) override {
    if (fails()) return world_error("injected: an event");
    return streams_.record_event(stream);
  }
  Result<void> wait_event(device::Stream stream, device::Event event) override {
    return fails() ? injected("a wait for an event") : streams_.wait_event(stream, event);
  }

 private:
  device::Streams& streams_;
};

}  // namespace rndn::runtime::test
