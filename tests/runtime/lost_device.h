// A device that is lost with its first fault, as a GPU is: the launch seems to succeed, and every call after it fails. Fresh memory is full of a pattern.
#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/runtime/forwarding_device.h"

namespace rndn::runtime::test {

class LostDevice final : public ForwardingDevice {
 public:
  explicit LostDevice(device::Device& to) : ForwardingDevice(to), info_(to.info()) { info_.is_simulator = false; }
  const device::Info& info() const override { return info_; }
  uint64_t waits = 0, replays = 0;
  std::string fault;  // empty: there was none

  // Replaces the bytes of what the host has sent.
  bool change(const std::vector<std::byte>& sent, const std::vector<std::byte>& by) {
    const auto at = std::find_if(sent_.rbegin(), sent_.rend(), [&](const auto& s) { return s.second == sent; });
    return at != sent_.rend() && to_.copy_to_device(at->first, by.data(), by.size()).ok();
  }

  Result<device::Address> allocate(uint64_t n) override {
    RETURN_IF_ERROR(check());
    ASSIGN_OR_RETURN(const device::Address a, to_.allocate(n));
    const std::vector<std::byte> pattern(n, std::byte{0xA5});
    RETURN_IF_ERROR(to_.copy_to_device(a, pattern.data(), n));
    return a;
  }
  Result<device::Mapped> allocate_mapped(uint64_t n) override {
    RETURN_IF_ERROR(check());
    return to_.allocate_mapped(n);
  }
  Result<void> copy_to_device(device::Address a, const void* from, uint64_t n) override {
    RETURN_IF_ERROR(check());
    const auto* bytes = static_cast<const std::byte*>(from);
    if (n >= least_kept) sent_.emplace_back(a, std::vector<std::byte>(bytes, bytes + n));
    return noted(to_.copy_to_device(a, from, n));
  }
  Result<void> copy_to_host(void* to, device::Address a, uint64_t n) override {
    ++waits;
    RETURN_IF_ERROR(check());
    return noted(to_.copy_to_host(to, a, n));
  }
  Result<void> copy(device::Address to, device::Address from, uint64_t n) override {
    RETURN_IF_ERROR(check());
    return noted(to_.copy(to, from, n));
  }
  Result<void> fill(device::Address a, device::Filling v, uint64_t n) override {
    RETURN_IF_ERROR(check());
    return noted(to_.fill(a, v, n));
  }
  Result<device::ModuleHandle> load_module(std::span<const std::byte> c) override {
    RETURN_IF_ERROR(check());
    return to_.load_module(c);
  }
  Result<void> launch(device::KernelHandle k, device::Dim3 g, device::Dim3 b, uint32_t s, std::span<const std::byte> p) override {
    RETURN_IF_ERROR(check());
    return lost_with(to_.launch(k, g, b, s, p));
  }
  Result<void> synchronize() override {
    ++waits;
    RETURN_IF_ERROR(check());
    return noted(to_.synchronize());
  }
  Result<void> launch_graph(device::GraphHandle g) override {
    ++replays;
    RETURN_IF_ERROR(check());
    return lost_with(to_.launch_graph(g));
  }

 private:
  static constexpr uint64_t least_kept = 64;
  Result<void> check() const { return fault.empty() ? Result<void>() : world_error("{}", fault).as(Cause::device_lost); }
  // Copies of the driver fault as kernels do.
  Result<void> noted(Result<void> done) {
    if (!done && done.error().fault == Fault::world) fault = done.error().message;
    return done;
  }
  Result<void> lost_with(Result<void> done) {
    if (done || done.error().fault != Fault::world) return done;
    fault = done.error().message;
    return {};
  }
  device::Info info_;
  std::vector<std::pair<device::Address, std::vector<std::byte>>> sent_;
};

}  // namespace rndn::runtime::test
