// The CUDA driver, reached through dlopen and cuGetProcAddress: nothing of CUDA is needed to build or to start a
// program.
//
//   Result<std::shared_ptr<const Driver>> driver = Driver::open();        // cannot open libcuda.so.1: ...
//   RETURN_IF_ERROR(driver->check(driver->cuMemFree(address), "cuMemFree of {:#x}", address));
//
// Prototypes are our own (driver_functions.def); names of handle types follow cuda.h with our spelling.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn::cuda {

enum class Code : int { success = 0, error_out_of_memory = 2, error_no_device = 100, error_not_ready = 600 };  // CUresult; other values are named by the driver itself
using DeviceOrdinal = int;                                     // CUdevice
using DevicePointer = unsigned long long;                      // CUdeviceptr
using ContextPointer = struct ContextTag*;
using ModulePointer = struct ModuleTag*;
using FunctionPointer = struct FunctionTag*;
using StreamPointer = struct StreamTag*;
using EventPointer = struct EventTag*;
using GraphPointer = struct GraphTag*;
using GraphExecutionPointer = struct GraphExecutionTag*;
enum class DeviceAttribute : int { multiprocessors = 16, capability_major = 75, capability_minor = 76 };
enum class FunctionAttribute : int {
  max_threads = 0,
  shared_bytes = 1,
  local_bytes = 3,
  registers = 4,
  max_dynamic_shared = 8
};
enum class JitOption : int { error_log = 5, error_log_bytes = 6, optimization_level = 7 };
inline constexpr int capture_relaxed = 2;
inline constexpr unsigned stream_non_blocking = 1, host_alloc_device_map = 2, event_disable_timing = 2;

// The table of functions; members are named as the driver names them.
struct Functions {
#define DRIVER_FUNCTION(name, version, ...) Code (*name)(__VA_ARGS__) = nullptr;
#include "runtime/cuda/driver_functions.def"
#undef DRIVER_FUNCTION
};

class Driver : public Functions {
 public:
  // Opens `library`, resolves every function and calls cuInit (0.2 s), with CUDA_MODULE_LOADING=EAGER unless the user
  // has set it. Sets an environment variable: call it (or prepare() of cuda_device.h) before other threads read the
  // environment. Fails (fault world) with what is missing. The library stays open until the process ends: the driver
  // does not support closing.
  static Result<std::shared_ptr<const Driver>> open(const std::string& library = "libcuda.so.1");

  int version() const { return version_; }  // 1000 * major + 10 * minor, such as 13000
  std::string version_text() const;         // "13.0"

  // Success, or a world error, with its cause where the memory is full or the device is lost: "cuMemAlloc of 8 bytes failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
  template <class... Args>
  Result<void> check(Code code, fmt::format_string<Args...> what, Args&&... args) const {
    if (code == Code::success) [[likely]]
      return {};
    return failure(code, fmt::format(what, std::forward<Args>(args)...));
  }
  Error failure(Code code, const std::string& what) const;

 private:
  int version_ = 0;
};

// A GPU, as `rndn devices` lists it.
struct Description {
  int ordinal = 0;
  std::string name;
  int major = 0, minor = 0;  // compute capability
  std::string target;        // whose cubins it runs, of those that we make; empty: unsupported
  uint32_t multiprocessors = 0;
  uint64_t memory_bytes = 0;
};
// All GPUs of this machine; none is no error.
Result<std::vector<Description>> list_devices(const Driver& driver);

// The target whose cubins a GPU of this compute capability runs: of the same major version the highest that is not
// above it (CUDA C++ Programming Guide, binary compatibility); empty when there is none.
std::string target_of_capability(int major, int minor);

}  // namespace rndn::cuda
