// A GPU as a device::Device.
//
//   auto preparation = cuda::prepare(0);         // a thread: cuInit and context, 0.3 s, beside parsing and loading
//   ...
//   Result<std::unique_ptr<device::Device>> device = cuda::open(*preparation);
#pragma once
#include <memory>
#include <string>

#include "runtime/cuda/driver.h"
#include "runtime/device/device.h"

namespace rndn::cuda {

// The start of a device, under way in a thread of its own. Destroying it waits for that thread.
class Preparation {
 public:
  struct State;
  explicit Preparation(std::unique_ptr<State> state);
  ~Preparation();
  Preparation(const Preparation&) = delete;

 private:
  friend Result<std::unique_ptr<device::Device>> open(Preparation& preparation);
  std::unique_ptr<State> state_;
};

// Whose context: the primary one, which all of the process share, or one of the device's own beside it.
enum class ContextKind : uint8_t { primary, own };

// Starts opening the driver and a context of GPU `ordinal` (-1: the first supported one). Sets
// CUDA_MODULE_LOADING (driver.h).
std::unique_ptr<Preparation> prepare(int ordinal = -1, const std::string& library = "libcuda.so.1",
                                     ContextKind kind = ContextKind::primary);

// Waits for the preparation and hands out its device, once; it must be used by the calling thread alone.
// Fails (fault world): no driver, no GPU, no such GPU, a GPU of an unsupported compute capability, or the driver's own
// reason.
Result<std::unique_ptr<device::Device>> open(Preparation& preparation);

}  // namespace rndn::cuda
