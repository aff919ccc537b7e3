#include "runtime/session/device_choice.h"

#include <cstdio>

#include "runtime/simulator/simulator_device.h"

namespace rndn::runtime {

void say_to_stderr(const std::string& text) { std::fputs(text.c_str(), stderr); }

Result<DeviceChoice> DeviceChoice::start(std::string_view name, const std::string& arch, Say say) {
  DeviceChoice choice;
  choice.arch_ = arch.empty() ? "sm_86" : arch;
  choice.say_ = std::move(say);
  int ordinal = -1;
  if (name == "auto")
    choice.kind_ = Kind::automatic;
  else if (name == "sim")
    choice.kind_ = Kind::simulator;
  else if (name == "cpu")
    choice.kind_ = Kind::cpu;
  else if (name == "cuda")
    choice.kind_ = Kind::cuda;
  else if (name.starts_with("cuda:") && name.size() > 5 && name.size() < 9 &&
           name.find_first_not_of("0123456789", 5) == std::string_view::npos) {
    choice.kind_ = Kind::cuda;
    ordinal = std::stoi(std::string(name.substr(5)));
  } else {
    return usage_error("a device is auto, cuda, cuda:N, sim or cpu, not `{}`", name);
  }
  if (choice.kind_ == Kind::cuda || choice.kind_ == Kind::automatic)
    choice.preparation_ = cuda::prepare(ordinal);
  return choice;
}

DeviceChoice DeviceChoice::of(std::unique_ptr<device::Device> device) {
  DeviceChoice choice;
  choice.kind_ = Kind::automatic;
  choice.device_ = std::move(device);
  return choice;
}

Result<void> DeviceChoice::limit_memory(uint64_t bytes) {
  if (is_cpu()) return usage_error("the device cpu has no memory of its own to limit");
  memory_limit_ = bytes;
  return {};
}

Result<device::Device*> DeviceChoice::open() {
  if (device_) return device_.get();
  CHECK(!is_cpu());
  if (preparation_) {
    auto gpu = cuda::open(*preparation_);
    if (!gpu && gpu.error().cause == Cause::cancelled) return gpu.error();
    preparation_.reset();
    if (gpu) {
      device_ = *std::move(gpu);
      return device_.get();
    }
    if (kind_ == Kind::cuda) return gpu.error();
    say_(fmt::format("note: no usable GPU ({}); running on the simulator for {}\n",
                     gpu.error().message, arch_));
  }
  if (kind_ == Kind::cuda) return world_error("the GPU cannot be used: the first call that needed it says why");
  ASSIGN_OR_RETURN(device_, open_simulator(arch_));
  return device_.get();
}

}  // namespace rndn::runtime
