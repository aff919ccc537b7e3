// A device that passes every call on to another: the base of devices that watch or restrict. It has one stream, or,
// as WithStreams, those of the other.
#pragma once
#include "runtime/device/streams.h"

namespace rndn::device {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(Device& to) : to_(to) {}
  const Info& info() const override { return to_.info(); }
  Result<Address> allocate(uint64_t n) override { return to_.allocate(n); }
  Result<void> free(Address a) override { return to_.free(a); }
  Result<void> copy_to_device(Address a, const void* from, uint64_t n) override {
    return to_.copy_to_device(a, from, n);
  }
  Result<void> copy_to_host(void* to, Address a, uint64_t n) override { return to_.copy_to_host(to, a, n); }
  Result<void> copy(Address to, Address from, uint64_t n) override { return to_.copy(to, from, n); }
  Result<void> fill(Address a, Filling v, uint64_t n) override { return to_.fill(a, v, n); }
  Result<Mapped> allocate_mapped(uint64_t n) override { return to_.allocate_mapped(n); }
  Result<void> free_mapped(const Mapped& m) override { return to_.free_mapped(m); }
  Result<ModuleHandle> load_module(std::span<const std::byte> c) override { return to_.load_module(c); }
  Result<void> unload_module(ModuleHandle m) override { return to_.unload_module(m); }
  Result<KernelHandle> find_kernel(ModuleHandle m, const std::string& n) override {
    return to_.find_kernel(m, n);
  }
  Result<KernelInfo> kernel_info(KernelHandle k) override { return to_.kernel_info(k); }
  Result<uint32_t> blocks_per_multiprocessor(KernelHandle k, uint32_t b, uint32_t s) override {
    return to_.blocks_per_multiprocessor(k, b, s);
  }
  Result<void> launch(KernelHandle k, Dim3 g, Dim3 b, uint32_t s,
                      std::span<const std::byte> p) override {
    return to_.launch(k, g, b, s, p);
  }
  Result<void> synchronize() override { return to_.synchronize(); }
  bool has_graphs() const override { return to_.has_graphs(); }
  Result<void> begin_graph() override { return to_.begin_graph(); }
  Result<GraphHandle> end_graph() override { return to_.end_graph(); }
  Result<void> launch_graph(GraphHandle g) override { return to_.launch_graph(g); }
  Result<void> free_graph(GraphHandle g) override { return to_.free_graph(g); }
  uint64_t host_calls() const override { return to_.host_calls(); }
  Result<uint32_t> record_mark() override { return to_.record_mark(); }
  LaunchCounters last_launch() const override { return to_.last_launch(); }
  Result<uint64_t> elapsed_ns(uint32_t a, uint32_t b) override { return to_.elapsed_ns(a, b); }

 protected:
  Device& to_;
};

// A forwarding device (`Base`) whose second stream is the other device's, which must have one.
template <class Base>
class WithStreams final : public Base, public Streams {
 public:
  explicit WithStreams(Device& to) : Base(to), streams_(*streams_of(to)) {}
  Result<void> send(Address to, const void* from, uint64_t n) override { return streams_.send(to, from, n); }
  Result<Event> record_event(Stream stream) override { return streams_.record_event(stream); }
  Result<void> wait_event(Stream stream, Event event) override { return streams_.wait_event(stream, event); }

 private:
  Streams& streams_;
};

}  // namespace rndn::device
