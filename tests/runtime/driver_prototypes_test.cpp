// Our prototypes of the driver against the toolkit's cudaTypedefs.h, where a toolkit is installed: for each row of
// driver_functions.def the typedef PFN_<name>_v<version> must exist and take the same arguments as the machine sees
// them.
#include <gtest/gtest.h>

#include <type_traits>

#include "runtime/cuda/driver.h"

#ifdef RNDN_HAVE_CUDA_TYPEDEFS
#include <cuda.h>
#include <cudaTypedefs.h>

namespace rndn::cuda {
namespace {

// Pointers: to what is alike; opaque types and void: anything. Integers and enumerations: of one size. Floats: the
// same.
template <class A, class B>
constexpr bool alike() {
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using P = std::remove_pointer_t<A>;
    using Q = std::remove_pointer_t<B>;
    if (std::is_const_v<P> != std::is_const_v<Q>) return false;
    if constexpr (std::is_class_v<P> || std::is_class_v<Q>)
      return std::is_class_v<P> && std::is_class_v<Q>;
    else
      return alike<std::remove_cv_t<P>, std::remove_cv_t<Q>>();
  } else if constexpr (std::is_void_v<A> || std::is_void_v<B>) {
    return std::is_void_v<A> && std::is_void_v<B>;
  } else if constexpr (std::is_floating_point_v<A> || std::is_floating_point_v<B>) {
    return std::is_same_v<A, B>;
  } else {
    constexpr bool a = std::is_integral_v<A> || std::is_enum_v<A>, b = std::is_integral_v<B> || std::is_enum_v<B>;
    return a && b && sizeof(A) == sizeof(B);
  }
}
template <class A, class B>
struct SameCall : std::false_type {};
template <class RA, class... A, class RB, class... B>
struct SameCall<RA (*)(A...), RB (*)(B...)> {
  static constexpr bool arguments() {
    if constexpr (sizeof...(A) == sizeof...(B))
      return (alike<A, B>() && ...);
    else
      return false;
  }
  static constexpr bool value = alike<RA, RB>() && arguments();
};

// What the comparison must notice.
static_assert(alike<CUstream, StreamPointer>() && alike<CUdeviceptr, DevicePointer>());
static_assert(!alike<int, size_t>() && !alike<float*, int*>() && !alike<const char*, char*>() &&
              !alike<CUstream, int>());
static_assert(!SameCall<int (*)(int), int (*)(int, int)>::value);

#define CONCATENATE_(a, b, c) a##b##c
#define TYPEDEF_OF(name, version) CONCATENATE_(PFN_, name, _v##version)
#undef cuDeviceTotalMem
#undef cuMemAlloc
#undef cuMemFree
#undef cuMemHostGetDevicePointer
#undef cuMemcpyHtoDAsync
#undef cuMemcpyDtoHAsync
#undef cuMemcpyDtoDAsync
#undef cuMemsetD8Async
#undef cuMemsetD32Async
#undef cuStreamDestroy
#undef cuStreamBeginCapture
#undef cuEventDestroy
#undef cuEventElapsedTime
#undef cuDevicePrimaryCtxRelease
#undef cuCtxCreate
#undef cuCtxDestroy
#define DRIVER_FUNCTION(name, version, ...) \
  static_assert(SameCall<decltype(Functions::name), TYPEDEF_OF(name, version)>::value, #name " differs from cuda.h");
#include "runtime/cuda/driver_functions.def"
#undef DRIVER_FUNCTION

static_assert(static_cast<int>(DeviceAttribute::multiprocessors) == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(static_cast<int>(DeviceAttribute::capability_major) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(static_cast<int>(DeviceAttribute::capability_minor) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(static_cast<int>(FunctionAttribute::max_threads) == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
static_assert(static_cast<int>(FunctionAttribute::shared_bytes) == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
static_assert(static_cast<int>(FunctionAttribute::local_bytes) == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
static_assert(static_cast<int>(FunctionAttribute::registers) == CU_FUNC_ATTRIBUTE_NUM_REGS);
static_assert(static_cast<int>(FunctionAttribute::max_dynamic_shared) ==
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(static_cast<int>(JitOption::error_log) == CU_JIT_ERROR_LOG_BUFFER);
static_assert(static_cast<int>(JitOption::error_log_bytes) == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(static_cast<int>(JitOption::optimization_level) == CU_JIT_OPTIMIZATION_LEVEL);
static_assert(static_cast<int>(Code::error_no_device) == CUDA_ERROR_NO_DEVICE);
static_assert(capture_relaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(stream_non_blocking == CU_STREAM_NON_BLOCKING && host_alloc_device_map == CU_MEMHOSTALLOC_DEVICEMAP);

}  // namespace
}  // namespace rndn::cuda

TEST(DriverPrototypes, AgreeWithCudaH) { SUCCEED() << "compared when this file was compiled"; }
#else
TEST(DriverPrototypes, AgreeWithCudaH) { GTEST_SKIP() << "skipped: no CUDA toolkit with cudaTypedefs.h is installed"; }
#endif
