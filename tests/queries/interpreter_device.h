// The PTX interpreter as a device: the engine runs whole queries on it, so that results can be compared with those of machine code.
#pragma once
#include <cstring>

#include "ptx/interpreter/interpreter.h"
#include "runtime/device/device.h"

namespace rndn::testing {

// Runs the kernels of `module`, whatever cubin the engine loads. Blocks and threads run in an order made from `seed`.
class InterpreterDevice final : public device::Device {
 public:
  InterpreterDevice(const ptx::Module& module, uint64_t seed)
      : module_(module), interpreter_(module, memory_), seed_(seed) {
    info_.name = "PTX interpreter";
    info_.target = "sm_86";
    info_.multiprocessors = 3;
    info_.memory_bytes = uint64_t{1} << 34;
    info_.is_simulator = true;
  }
  const device::Info& info() const override { return info_; }
  Result<device::Address> allocate(uint64_t bytes) override { return memory_.allocate(bytes); }
  Result<void> free(device::Address address) override {
    memory_.release(address);
    return {};
  }
  Result<void> copy_to_device(device::Address to, const void* from, uint64_t bytes) override {
    if (bytes && !memory_.write(to, {static_cast<const std::byte*>(from), bytes}))
      return world_error("copy to {:#x}: out of bounds", to);
    return {};
  }
  Result<void> copy_to_host(void* to, device::Address from, uint64_t bytes) override {
    if (bytes && !memory_.read(from, {static_cast<std::byte*>(to), bytes}))
      return world_error("copy from {:#x}: out of bounds", from);
    return {};
  }
  Result<void> copy(device::Address to, device::Address from, uint64_t bytes) override {
    std::vector<std::byte> all(bytes);
    RETURN_IF_ERROR(copy_to_host(all.data(), from, bytes));
    return copy_to_device(to, all.data(), bytes);
  }
  Result<void> fill(device::Address to, device::Filling value, uint64_t bytes) override {
    std::vector<std::byte> all(bytes);
    for (uint64_t k = 0; k < bytes; ++k) all[k] = static_cast<std::byte>(value.word >> 8 * (k % 4));
    return copy_to_device(to, all.data(), bytes);
  }
  // Its memory is the host's: mapped memory is what it allocates anyway.
  Result<device::Mapped> allocate_mapped(uint64_t bytes) override {
    uint64_t address = memory_.allocate(bytes);
    return device::Mapped{memory_.find(address, bytes), address};
  }
  Result<void> free_mapped(const device::Mapped& memory) override { return free(memory.address); }
  Result<device::ModuleHandle> load_module(std::span<const std::byte>) override { return device::ModuleHandle{1}; }
  Result<void> unload_module(device::ModuleHandle) override { return {}; }
  Result<device::KernelHandle> find_kernel(device::ModuleHandle, const std::string& name) override {
    for (size_t i = 0; i < module_.functions.size(); ++i)
      if (module_.functions[i].name == name) return static_cast<device::KernelHandle>(i);
    return world_error("no kernel `{}`", name);
  }
  Result<device::KernelInfo> kernel_info(device::KernelHandle) override { return device::KernelInfo{}; }
  Result<uint32_t> blocks_per_multiprocessor(device::KernelHandle, uint32_t, uint32_t) override { return 2u; }
  Result<void> launch(device::KernelHandle kernel, device::Dim3 grid, device::Dim3 block, uint32_t dynamic_shared,
                      std::span<const std::byte> parameters) override {
    ptx::Launch launch;
    launch.grid = {grid.x, grid.y, grid.z};
    launch.block = {block.x, block.y, block.z};
    launch.dynamic_shared = dynamic_shared;
    launch.parameters = parameters;
    launch.seed = seed_;
    RETURN_IF_ERROR(interpreter_.launch(module_.functions[static_cast<size_t>(kernel)].name, launch));
    return {};
  }
  Result<void> synchronize() override { return {}; }
  Result<uint32_t> record_mark() override { return 0u; }
  Result<uint64_t> elapsed_ns(uint32_t, uint32_t) override { return uint64_t{0}; }

 private:
  const ptx::Module& module_;
  ptx::Memory memory_;
  ptx::Interpreter interpreter_;
  uint64_t seed_;
  device::Info info_;
};

}  // namespace rndn::testing
