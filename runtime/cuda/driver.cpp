// Opening the driver and finding its functions.
#include "runtime/cuda/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "libraries/base/numbers/gpu_limits.h"

namespace rndn::cuda {
namespace {

struct FunctionRow {
  const char* name;
  int version;
};
constexpr FunctionRow rows[] = {
#define DRIVER_FUNCTION(name, version, ...) {#name, version},
#include "runtime/cuda/driver_functions.def"
#undef DRIVER_FUNCTION
};

// cuGetProcAddress got a fifth parameter in CUDA 12.0; drivers since 11.3 have the first form.
using GetProcAddress12 = Code (*)(const char*, void**, int, uint64_t, int*);
using GetProcAddress11 = Code (*)(const char*, void**, int, uint64_t);

}  // namespace

Result<std::shared_ptr<const Driver>> Driver::open(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    std::string reason = why ? why : "unknown reason";
    // dlopen starts its message with the name already: "libcuda.so.1: cannot open shared object file: No such file or
    // directory".
    if (reason.starts_with(library + ": ")) reason.erase(0, library.size() + 2);
    return world_error("cannot open {}: {}", library, reason);
  }
  auto get12 = reinterpret_cast<GetProcAddress12>(dlsym(handle, "cuGetProcAddress_v2"));
  auto get11 = reinterpret_cast<GetProcAddress11>(dlsym(handle, "cuGetProcAddress"));
  if (!get12 && !get11) return world_error("{} has no cuGetProcAddress: the driver is older than CUDA 11.3", library);

  auto driver = std::make_shared<Driver>();
  void* found[std::size(rows)] = {};
  for (size_t i = 0; i < std::size(rows); ++i) {
    int status = 0;
    Code code = get12 ? get12(rows[i].name, &found[i], rows[i].version, 0, &status)
                      : get11(rows[i].name, &found[i], rows[i].version, 0);
    if (code != Code::success || !found[i])
      return world_error("{} has no {} as of CUDA {}.{} (code {})", library, rows[i].name, rows[i].version / 1000,
                         rows[i].version % 1000 / 10, static_cast<int>(code));
  }
  size_t next = 0;
#define DRIVER_FUNCTION(name, version, ...) driver->name = reinterpret_cast<decltype(driver->name)>(found[next++]);
#include "runtime/cuda/driver_functions.def"
#undef DRIVER_FUNCTION
  RETURN_IF_ERROR(driver->check(driver->cuInit(0), "cuInit"));
  RETURN_IF_ERROR(driver->check(driver->cuDriverGetVersion(&driver->version_), "cuDriverGetVersion"));
  return std::shared_ptr<const Driver>(std::move(driver));
}

std::string Driver::version_text() const { return fmt::format("{}.{}", version_ / 1000, version_ % 1000 / 10); }

namespace {

// Errors after which every call fails until the process ends (CUDA Driver API, CUresult: "leaves the process in an
// inconsistent state"), and those of a driver that is being taken down or a context that is gone.
constexpr int lost[] = {4, 214, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719};

Cause cause_of(Code code) {
  if (code == Code::error_out_of_memory) return Cause::device_full;
  return std::find(std::begin(lost), std::end(lost), static_cast<int>(code)) != std::end(lost) ? Cause::device_lost
                                                                                               : Cause::other;
}

}  // namespace

Error Driver::failure(Code code, const std::string& what) const {
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName(code, &name) != Code::success || !name)
    return world_error("{} failed: CUDA error {}", what, static_cast<int>(code)).as(cause_of(code));
  if (cuGetErrorString(code, &text) != Code::success || !text) 
    return world_error("{} failed: {}", what, name).as(cause_of(code));
  return world_error("{} failed: {} ({})", what, name, text).as(cause_of(code));
}

std::string target_of_capability(int major, int minor) {
  const auto capability = static_cast<uint32_t>(10 * major + minor);
  uint32_t best = 0;
  for (const GpuLimits& row : gpu_limits)
    if (row.sm / 10 == static_cast<uint32_t>(major) && row.sm <= capability) best = std::max(best, row.sm);
  return best ? fmt::format("sm_{}", best) : std::string();
}

Result<std::vector<Description>> list_devices(const Driver& driver) {
  int count = 0;
  Code code = driver.cuDeviceGetCount(&count);
  if (code != Code::error_no_device) RETURN_IF_ERROR(driver.check(code, "cuDeviceGetCount"));
  std::vector<Description> devices;
  for (int i = 0; i < count; ++i) {
    Description d{.ordinal = i};
    DeviceOrdinal device = 0;
    RETURN_IF_ERROR(driver.check(driver.cuDeviceGet(&device, i), "cuDeviceGet of GPU {}", i));
    char name[256] = {};
    RETURN_IF_ERROR(
        driver.check(driver.cuDeviceGetName(name, sizeof name - 1, device), "cuDeviceGetName of GPU {}", i));
    d.name = name;
    size_t bytes = 0;
    RETURN_IF_ERROR(driver.check(driver.cuDeviceTotalMem(&bytes, device), "cuDeviceTotalMem of GPU {}", i));
    d.memory_bytes = bytes;
    auto attribute = [&](DeviceAttribute which, int& value) {
      return driver.check(driver.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute {} of GPU {}",
                          static_cast<int>(which), i);
    };
    int multiprocessors = 0;
    RETURN_IF_ERROR(attribute(DeviceAttribute::multiprocessors, multiprocessors));
    RETURN_IF_ERROR(attribute(DeviceAttribute::capability_major, d.major));
    RETURN_IF_ERROR(attribute(DeviceAttribute::capability_minor, d.minor));
    d.multiprocessors = static_cast<uint32_t>(multiprocessors);
    d.target = target_of_capability(d.major, d.minor);
    devices.push_back(std::move(d));
  }
  return devices;
}

}  // namespace rndn::cuda
