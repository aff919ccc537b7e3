// A device that computes wrong: one seeded fault in what is loaded, sent, launched or stored.
#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/runtime/forwarding_device.h"

namespace rndn::runtime::test {

class WrongDevice final : public ForwardingDevice {
 public:
  // As a GPU it also takes PTX, for --backend driver; of the simulator a kernel that faults is known at once.
  enum class As : uint8_t { gpu, simulator };
  explicit WrongDevice(device::Device& to, As as = As::gpu) : ForwardingDevice(to), info_(to.info()) {
    info_.is_simulator = as == As::simulator;
  }
  const device::Info& info() const override { return info_; }

  // Each may be empty. They see calls from the first on.
  std::function<std::vector<std::byte>(std::span<const std::byte>)> on_module;  // another cubin
  std::function<Result<std::vector<std::byte>>(const std::string&)> on_ptx;     // a cubin
  std::function<void(std::vector<std::byte>&)> on_copy;                         // what is sent
  std::function<void(const std::string& kernel, device::Dim3& grid, std::vector<std::byte>&)> on_launch;
  // What a launch has stored where its parameters point to, as 4-byte words: all of them, and which have changed. They may be changed.
  std::function<bool(const std::string& kernel)> is_watched;
  std::function<void(std::vector<uint32_t>&, const std::vector<size_t>&)> on_stored;

  Result<device::Address> allocate(uint64_t n) override {
    auto at = to_.allocate(n);
    if (at) sizes_[*at] = n;
    return at;
  }
  Result<void> free(device::Address a) override { return sizes_.erase(a), to_.free(a); }
  Result<device::Mapped> allocate_mapped(uint64_t n) override {
    auto at = to_.allocate_mapped(n);
    if (at) sizes_[at->address] = n;
    return at;
  }
  Result<void> free_mapped(const device::Mapped& m) override { return sizes_.erase(m.address), to_.free_mapped(m); }
  Result<device::ModuleHandle> load_module(std::span<const std::byte> cubin) override {
    if (!on_module) return to_.load_module(cubin);
    const std::vector<std::byte> other = on_module(cubin);
    return to_.load_module(other);
  }
  Result<device::ModuleHandle> load_ptx(const std::string& ptx, int) override {
    ASSIGN_OR_RETURN(const std::vector<std::byte> cubin, on_ptx(ptx));
    return to_.load_module(cubin);
  }
  Result<device::KernelHandle> find_kernel(device::ModuleHandle m, const std::string& name) override {
    auto kernel = to_.find_kernel(m, name);
    if (kernel) names_[*kernel] = name;
    return kernel;
  }
  Result<void> copy_to_device(device::Address a, const void* from, uint64_t n) override {
    if (!on_copy) return to_.copy_to_device(a, from, n);
    std::vector<std::byte> bytes(static_cast<const std::byte*>(from), static_cast<const std::byte*>(from) + n);
    on_copy(bytes);
    return to_.copy_to_device(a, bytes.data(), n);
  }
  Result<void> launch(device::KernelHandle k, device::Dim3 grid, device::Dim3 block, uint32_t shared,
                      std::span<const std::byte> given) override {
    std::vector<std::byte> parameters(given.begin(), given.end());
    if (on_launch) on_launch(names_[k], grid, parameters);
    const bool watched = is_watched && is_watched(names_[k]);
    std::vector<std::pair<device::Address, std::vector<uint32_t>>> before;
    if (watched)
      for (size_t p = 0; p + 8 <= parameters.size(); p += 8) {
        uint64_t at;
        std::memcpy(&at, parameters.data() + p, 8);
        auto found = sizes_.upper_bound(at);
        if (found == sizes_.begin() || at % 4) continue;
        --found;
        if (at >= found->first + found->second) continue;
        const uint64_t bytes = std::min<uint64_t>(found->first + found->second - at, most_watched) / 4 * 4;
        RETURN_IF_ERROR(read(at, bytes, before.emplace_back(at, std::vector<uint32_t>()).second));
      }
    RETURN_IF_ERROR(to_.launch(k, grid, block, shared, parameters));
    if (!watched) return {};
    for (auto& [at, words] : before) {
      std::vector<uint32_t> now;
      RETURN_IF_ERROR(read(at, words.size() * 4, now));
      std::vector<size_t> changed;
      for (size_t i = 0; i < now.size(); ++i)
        if (now[i] != words[i]) changed.push_back(i);
      if (changed.size() < 2) continue;
      std::vector<uint32_t> stored = now;
      on_stored(stored, changed);
      for (size_t i = 0; i < now.size(); ++i)
        if (stored[i] != now[i]) RETURN_IF_ERROR(to_.copy_to_device(at + 4 * i, &stored[i], 4));
      if (stored != now) return {};
    }
    return {};
  }

 private:
  static constexpr uint64_t most_watched = 1 << 20;
  Result<void> read(device::Address at, uint64_t bytes, std::vector<uint32_t>& into) {
    into.resize(bytes / 4);
    return to_.copy_to_host(into.data(), at, bytes);
  }
  device::Info info_;
  std::map<device::Address, uint64_t> sizes_;
  std::map<device::KernelHandle, std::string> names_;
};

}  // namespace rndn::runtime::test
