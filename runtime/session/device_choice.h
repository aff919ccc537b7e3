// The device that a name stands for: auto, cuda, cuda:N, sim or cpu (the reference interpreter).
//
// With cuda and auto the GPU starts in a thread (0.3 s): make the object early, call open() late.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "libraries/base/errors/result.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/device/device.h"

namespace rndn::runtime {

// Hears what people should read, with its ends of lines.
using Say = std::function<void(const std::string&)>;
void say_to_stderr(const std::string& text);

class DeviceChoice {
 public:
  // `arch`: what the simulator is; empty: sm_86. `say` hears it when `auto` takes the simulator.
  static Result<DeviceChoice> start(std::string_view name, const std::string& arch, Say say);
  // A device that is open.
  static DeviceChoice of(std::unique_ptr<device::Device> device);
  // Bytes of the device's memory that a session may have in use at once; UINT64_MAX: all.
  Result<void> limit_memory(uint64_t bytes);
  uint64_t memory_limit() const { return memory_limit_; }
  bool is_cpu() const { return kind_ == Kind::cpu; }
  bool is_simulator() const { return kind_ == Kind::simulator; }  // by name
  bool is_starting() const { return preparation_ != nullptr; }    // a GPU, in its thread
  // Waits for the device; not for is_cpu().
  Result<device::Device*> open();

 private:
  enum class Kind : uint8_t { automatic, cuda, simulator, cpu } kind_ = Kind::cpu;
  uint64_t memory_limit_ = UINT64_MAX;
  std::string arch_;
  Say say_;
  std::unique_ptr<cuda::Preparation> preparation_;
  std::unique_ptr<device::Device> device_;
};

}  // namespace rndn::runtime
