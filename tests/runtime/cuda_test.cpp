// The CUDA wrapper against a fake driver: the sequence of calls, and what each failure says.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <thread>
#include <vector>

#include "libraries/base/system/parallel.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/device/streams.h"

namespace rndn::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class FakeDriver : public testing::Test {
 protected:
  void SetUp() override {
    handle_ = dlopen(RNDN_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(handle_, nullptr) << dlerror();
    reinterpret_cast<void (*)()>(dlsym(handle_, "fake_cuda_reset"))();
    unset();
  }
  void TearDown() override { unset(); }
  static void unset() {
    for (const char* name :
         {"RNDN_FAKE_CUDA_FAIL", "RNDN_FAKE_CUDA_DEVICES", "RNDN_FAKE_CUDA_MISSING", "CUDA_MODULE_LOADING"})
      unsetenv(name);
  }
  std::vector<std::string> calls(std::string_view prefix = "") {
    std::istringstream text(reinterpret_cast<const char* (*)()>(dlsym(handle_, "fake_cuda_log"))());
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);)
      if (line.starts_with(prefix)) lines.push_back(line);
    return lines;
  }
  Result<std::unique_ptr<device::Device>> open_device(int ordinal = -1) {
    auto preparation = prepare(ordinal, RNDN_FAKE_CUDA);
    return cuda::open(*preparation);
  }
  std::string open_error(int ordinal = -1) {
    auto d = open_device(ordinal);
    if (d) return "opened";
    EXPECT_EQ(d.error().exit_code(), 3);
    return d.error().message;
  }
  void* handle_ = nullptr;
};

TEST(CudaLibrary, MissingLibraryIsNamed) {
  auto d = Driver::open("libcuda-not-here.so.1");
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().exit_code(), 3);
  EXPECT_EQ(d.error().message,
            "cannot open libcuda-not-here.so.1: cannot open shared object file: No such file or directory");
}

TEST(CudaLibrary, LibraryThatIsNoDriver) {
  auto d = Driver::open("libm.so.6");
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().message, "libm.so.6 has no cuGetProcAddress: the driver is older than CUDA 11.3");
}

TEST(CudaTargets, CubinsRunOnTheSameMajorVersionOnly) {
  EXPECT_EQ(target_of_capability(9, 0), "sm_90");
  EXPECT_EQ(target_of_capability(8, 9), "sm_89");
  EXPECT_EQ(target_of_capability(8, 7), "sm_86");
  EXPECT_EQ(target_of_capability(8, 6), "sm_86");
  EXPECT_EQ(target_of_capability(8, 0), "sm_80");
  EXPECT_EQ(target_of_capability(6, 2), "sm_61");
  EXPECT_EQ(target_of_capability(6, 1), "sm_61");
  EXPECT_EQ(target_of_capability(6, 0), "sm_60");
  EXPECT_EQ(target_of_capability(7, 5), "sm_75");
  EXPECT_EQ(target_of_capability(7, 2), "");
  EXPECT_EQ(target_of_capability(10, 0), "");
  EXPECT_EQ(target_of_capability(5, 2), "");
}

TEST_F(FakeDriver, OpensInOrderWithEagerLoading) {
  {
    auto d = open_device();
    ASSERT_TRUE(d) << d.error().message;
    EXPECT_EQ((*d)->info().name, "Fake GPU 0");
    EXPECT_EQ((*d)->info().target, "sm_90");
    EXPECT_EQ((*d)->info().driver, "12.4");
    EXPECT_EQ((*d)->info().multiprocessors, 3u);
    EXPECT_EQ((*d)->info().memory_bytes, uint64_t{8} << 30);
    EXPECT_FALSE((*d)->info().is_simulator);
  }
  EXPECT_EQ(calls()[0], "cuInit:CUDA_MODULE_LOADING=EAGER");
  auto all = calls();
  auto at = [&](const char* name) { return std::find(all.begin(), all.end(), name) - all.begin(); };
  EXPECT_LT(at("cuDevicePrimaryCtxRetain:0"), at("cuCtxSetCurrent"));
  EXPECT_LT(at("cuCtxSetCurrent"), at("cuStreamCreate:1"));
  EXPECT_EQ(all.back(), "cuDevicePrimaryCtxRelease:0");
  EXPECT_EQ(all[all.size() - 2], "cuStreamDestroy");
}

TEST_F(FakeDriver, OpensAContextOfItsOwn) {
  {
    auto preparation = prepare(0, RNDN_FAKE_CUDA, ContextKind::own);
    auto d = open(*preparation);
    ASSERT_TRUE(d) << d.error().message;
  }
  const auto all = calls();
  EXPECT_EQ(std::count(all.begin(), all.end(), "cuCtxCreate:0,0"), 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), "cuDevicePrimaryCtxRetain:0"), 0);
  EXPECT_EQ(all.back(), "cuCtxDestroy");
}

TEST_F(FakeDriver, RecordsAGraphAndRunsIt) {
  auto d = open_device();
  ASSERT_TRUE(d);
  device::Device& gpu = **d;
  ASSERT_TRUE(gpu.has_graphs());
  const uint64_t before = gpu.host_calls();
  ASSERT_TRUE(gpu.begin_graph());
  ASSERT_TRUE(gpu.launch(device::KernelHandle{1}, {2, 1, 1}, {256, 1, 1}, 0, {}));
  char host[8] = {};
  auto wait = gpu.synchronize();
  ASSERT_FALSE(wait);
  EXPECT_EQ(wait.error().message, "a wait while a graph is recorded");
  EXPECT_FALSE(gpu.copy_to_device(1, host, 8));
  EXPECT_FALSE(gpu.copy_to_host(host, 1, 8));
  EXPECT_FALSE(gpu.record_mark());
  EXPECT_EQ(gpu.host_calls(), before + 4);
  auto graph = gpu.end_graph();
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_TRUE(gpu.launch_graph(*graph));
  ASSERT_TRUE(gpu.launch_graph(*graph));
  ASSERT_TRUE(gpu.free_graph(*graph));
  ASSERT_TRUE(gpu.synchronize());
  auto all = calls();
  auto first = std::find(all.begin(), all.end(), "cuStreamBeginCapture:2");
  EXPECT_THAT(std::vector(first, all.end()),
              ElementsAre("cuStreamBeginCapture:2", "cuLaunchKernel:2,1,1/256,1,1/0/0", "cuStreamEndCapture",
                          "cuGraphInstantiateWithFlags:0", "cuGraphDestroy", "cuGraphLaunch", "cuGraphLaunch",
                          "cuGraphExecDestroy", "cuStreamSynchronize"));
}

TEST_F(FakeDriver, GraphThatTheDriverRefuses) {
  for (const char* name : {"cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiateWithFlags"}) {
    setenv("RNDN_FAKE_CUDA_FAIL", (std::string(name) + ":901").c_str(), 1);
    auto d = open_device();
    ASSERT_TRUE(d);
    auto begun = (*d)->begin_graph();
    std::string message = begun ? "" : begun.error().message;
    if (begun) {
      auto ended = (*d)->end_graph();
      message = ended ? "" : ended.error().message;
    }
    EXPECT_THAT(message, StartsWith(std::string(name) + " failed: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"));
    EXPECT_TRUE((*d)->synchronize());
  }
}

TEST_F(FakeDriver, ReleasesTheContextOfTheGpuThatWasAskedFor) {
  setenv("RNDN_FAKE_CUDA_DEVICES", "8.6,9.0", 1);
  { ASSERT_TRUE(open_device(1)); }
  EXPECT_EQ(calls().back(), "cuDevicePrimaryCtxRelease:1");
}

TEST_F(FakeDriver, AnyThreadMayLetGoOfTheDevice) {
  const auto held = reinterpret_cast<long (*)()>(dlsym(handle_, "fake_cuda_held"));
  const long before = held();
  auto d = open_device();
  ASSERT_TRUE(d) << d.error().message;
  std::vector<std::byte> large(64 << 20);  // takes pinned memory for the copy, and events
  const auto address = (*d)->allocate(large.size());
  ASSERT_TRUE(address);
  ASSERT_TRUE((*d)->copy_to_device(*address, large.data(), large.size()));
  ASSERT_TRUE((*d)->record_mark());
  ASSERT_TRUE((*d)->free(*address));
  EXPECT_GT(held(), before + 1);
  std::thread([gone = *std::move(d)]() mutable { gone.reset(); }).join();
  EXPECT_EQ(held(), before);
  for (const std::string& call : calls()) EXPECT_THAT(call, testing::Not(HasSubstr("no context")));
}

TEST_F(FakeDriver, UsersChoiceOfModuleLoadingStays) {
  setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  ASSERT_TRUE(open_device());
  EXPECT_EQ(calls()[0], "cuInit:CUDA_MODULE_LOADING=LAZY");
}

TEST_F(FakeDriver, EveryFailureOfOpeningSaysWhatFailed) {
  setenv("RNDN_FAKE_CUDA_MISSING", "cuLaunchKernel", 1);
  EXPECT_THAT(open_error(), HasSubstr("has no cuLaunchKernel as of CUDA 4.0 (code 500)"));
  unset();
  setenv("RNDN_FAKE_CUDA_DEVICES", "", 1);
  EXPECT_EQ(open_error(), "cuInit failed: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)");
  setenv("RNDN_FAKE_CUDA_DEVICES", "7.2", 1);
  EXPECT_EQ(open_error(0),
            "GPU 0 (Fake GPU 0) has compute capability 7.2, whose code is not supported (supported: sm_60 sm_61 sm_75 "
            "sm_80 sm_86 sm_89 sm_90)");
  EXPECT_THAT(open_error(), StartsWith("none of 1 GPUs is supported: GPU 0 (Fake GPU 0) has compute capability 7.2"));
  setenv("RNDN_FAKE_CUDA_DEVICES", "7.2,8.6", 1);
  EXPECT_EQ(open_error(2), "there is no GPU 2: the driver reports 2 (numbered from 0)");
  unset();
  setenv("RNDN_FAKE_CUDA_FAIL", "cuDevicePrimaryCtxRetain:2", 1);
  EXPECT_EQ(open_error(), "cuDevicePrimaryCtxRetain of GPU 0 failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  setenv("RNDN_FAKE_CUDA_FAIL", "cuStreamCreate:777", 1);
  EXPECT_EQ(open_error(), "cuStreamCreate failed: CUDA error 777");
  EXPECT_EQ(calls().back(), "cuDevicePrimaryCtxRelease:0") << "a failed start must release the context";
}

TEST_F(FakeDriver, AutomaticChoiceTakesTheFirstSupportedGpu) {
  setenv("RNDN_FAKE_CUDA_DEVICES", "7.2,8.6", 1);
  auto d = open_device();
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ((*d)->info().name, "Fake GPU 1");
  EXPECT_EQ((*d)->info().target, "sm_86");
}

TEST_F(FakeDriver, ListsDevices) {
  setenv("RNDN_FAKE_CUDA_DEVICES", "9.0,7.2", 1);
  auto driver = Driver::open(RNDN_FAKE_CUDA);
  ASSERT_TRUE(driver);
  auto list = list_devices(**driver);
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[0].target, "sm_90");
  EXPECT_EQ((*list)[1].target, "");
  EXPECT_EQ((*list)[1].major, 7);
  EXPECT_EQ((*list)[1].minor, 2);
}

TEST_F(FakeDriver, SmallCopiesGoStraightLargeOnesThroughPinnedSlots) {
  auto opened = open_device();
  ASSERT_TRUE(opened);
  device::Device& d = **opened;
  auto check = [&](size_t bytes) {
    std::vector<unsigned char> out(bytes), back(bytes);
    for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<unsigned char>((i * 2654435761u) >> 13);
    auto address = d.allocate(bytes);
    ASSERT_TRUE(address);
    ASSERT_TRUE(d.copy_to_device(*address, out.data(), bytes));
    ASSERT_TRUE(d.copy_to_host(back.data(), *address, bytes));
    EXPECT_TRUE(out == back) << bytes;
    ASSERT_TRUE(d.free(*address));
  };
  check(1000);
  EXPECT_TRUE(calls("cuMemHostAlloc").empty());
  EXPECT_THAT(calls("cuMemcpyHtoDAsync"), ElementsAre("cuMemcpyHtoDAsync:1000"));
  // One MiB at a time, each from a slot of its own or from one whose last copy has left it.
  auto sent = [&] {
    uint64_t sum = 0;
    for (const std::string& call : calls("cuMemcpyHtoDAsync")) sum += std::stoull(call.substr(call.find(':') + 1));
    return sum;
  };
  constexpr size_t large = (150 << 20) + 12345;
  check(large);
  EXPECT_EQ(calls("cuMemcpyHtoDAsync").size(), 1u + 151u);
  EXPECT_EQ(sent(), 1000u + large);
  EXPECT_THAT(calls("cuMemHostAlloc"), testing::Each(testing::StrEq("cuMemHostAlloc:1048576,0")));
  EXPECT_LE(calls("cuMemHostAlloc").size(), 2 * std::min(16u, hardware_threads()));
  EXPECT_EQ(calls("cuEventSynchronize").size(), 151 - calls("cuMemHostAlloc").size());
  check(large);  // slots are kept
  EXPECT_LE(calls("cuMemHostAlloc").size(), 2 * std::min(16u, hardware_threads()));
  EXPECT_EQ(calls("cuEventSynchronize").size(), 2 * 151 - calls("cuMemHostAlloc").size());
}

TEST_F(FakeDriver, CopiesBesideTheWorkAreOrderedByEvents) {
  auto d = open_device();
  ASSERT_TRUE(d);
  auto all = calls();
  EXPECT_EQ(std::count(all.begin(), all.end(), "cuStreamCreate:1"), 2);
  device::Streams* const streams = device::streams_of(**d);
  ASSERT_NE(streams, nullptr);
  auto address = (*d)->allocate(8);
  ASSERT_TRUE(address);
  const size_t before = calls().size();
  const char bytes[8] = "columns";
  auto used = streams->record_event(device::Stream::work);
  ASSERT_TRUE(used);
  ASSERT_TRUE(streams->wait_event(device::Stream::copies, *used));
  ASSERT_TRUE(streams->send(*address, bytes, 8));
  auto sent = streams->record_event(device::Stream::copies);
  ASSERT_TRUE(sent);
  ASSERT_TRUE(streams->wait_event(device::Stream::work, *sent));
  ASSERT_TRUE(streams->wait_event(device::Stream::work, device::Event::none));
  all = calls();
  EXPECT_THAT(std::vector(all.begin() + static_cast<std::ptrdiff_t>(before), all.end()),
              ElementsAre("cuEventCreate", "cuEventRecord", "cuStreamWaitEvent:0", "cuMemcpyHtoDAsync:8",
                          "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent:0"));
  // Events are used again: an old one stands for a later one of its stream.
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(streams->record_event(device::Stream::copies));
  ASSERT_TRUE(streams->wait_event(device::Stream::work, *sent));
  all = calls();
  EXPECT_LE(std::count(all.begin(), all.end(), "cuEventCreate"), 80);
  ASSERT_TRUE((*d)->begin_graph());
  EXPECT_FALSE(streams->wait_event(device::Stream::work, *sent));
  EXPECT_FALSE(streams->send(*address, bytes, 8));
  EXPECT_FALSE(streams->record_event(device::Stream::copies));
  ASSERT_TRUE((*d)->end_graph());
  ASSERT_TRUE((*d)->free(*address));
}

TEST_F(FakeDriver, AFailedPieceFailsTheCopy) {
  auto opened = open_device();
  ASSERT_TRUE(opened);
  std::vector<unsigned char> out(20 << 20);
  auto address = (*opened)->allocate(out.size());
  ASSERT_TRUE(address);
  setenv("RNDN_FAKE_CUDA_FAIL", "cuMemcpyHtoDAsync:700:7", 1);
  auto copied = (*opened)->copy_to_device(*address, out.data(), out.size());
  unsetenv("RNDN_FAKE_CUDA_FAIL");
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().fault, Fault::world);
  EXPECT_THAT(copied.error().message, testing::HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_TRUE((*opened)->free(*address));
}

TEST_F(FakeDriver, MappedMemoryIsZeroAndSharedWithTheDevice) {
  auto opened = open_device();
  ASSERT_TRUE(opened);
  auto m = (*opened)->allocate_mapped(4096);
  ASSERT_TRUE(m);
  EXPECT_THAT(calls("cuMemHostAlloc"), ElementsAre("cuMemHostAlloc:4096,2"));
  for (int i = 0; i < 4096; ++i) ASSERT_EQ(static_cast<char*>(m->host)[i], 0);
  ASSERT_TRUE((*opened)->fill(m->address + 8, 0xab, 2));
  EXPECT_EQ(static_cast<unsigned char*>(m->host)[9], 0xab);
  ASSERT_TRUE((*opened)->free_mapped(*m));
}

// A copy reads pinned memory by itself, whole, and is done before that goes.
TEST_F(FakeDriver, PinnedMemoryGoesInOneCopy) {
  auto opened = open_device();
  ASSERT_TRUE(opened);
  device::Device& d = **opened;
  constexpr size_t bytes = (9 << 20) + 5;
  auto m = d.allocate_mapped(bytes);
  auto address = d.allocate(bytes);
  ASSERT_TRUE(m && address);
  auto* const host = static_cast<unsigned char*>(m->host);
  for (size_t i = 0; i < bytes; ++i) host[i] = static_cast<unsigned char>((i * 2654435761u) >> 13);
  device::Streams* const streams = device::streams_of(d);
  ASSERT_TRUE(streams->send(*address, host, bytes));
  ASSERT_TRUE(streams->send(*address, host + 4096, bytes - 4096));
  EXPECT_THAT(calls("cuMemcpyHtoDAsync"),
              ElementsAre("cuMemcpyHtoDAsync:" + std::to_string(bytes), "cuMemcpyHtoDAsync:" + std::to_string(bytes - 4096)));
  std::vector<unsigned char> back(bytes - 4096);
  ASSERT_TRUE(d.copy_to_host(back.data(), *address, back.size()));
  EXPECT_TRUE(std::equal(back.begin(), back.end(), host + 4096));
  EXPECT_EQ(calls("cuMemHostAlloc").size(), 1u) << "no slots";
  // What lies beside it is staged.
  std::vector<unsigned char> other(bytes);
  ASSERT_TRUE(streams->send(*address, other.data(), bytes));
  EXPECT_EQ(calls("cuMemcpyHtoDAsync").size(), 2u + 10u);
  const size_t waits = calls("cuStreamSynchronize").size();
  ASSERT_TRUE(d.free_mapped(*m));
  EXPECT_EQ(calls("cuStreamSynchronize").size(), waits + 2);
  const auto all = calls();
  EXPECT_EQ(std::vector(all.end() - 3, all.end()),
            (std::vector<std::string>{"cuStreamSynchronize", "cuStreamSynchronize", "cuMemFreeHost"}));
  // Memory that nothing was sent from is not waited for.
  m = d.allocate_mapped(64);
  ASSERT_TRUE(m);
  ASSERT_TRUE(d.free_mapped(*m));
  EXPECT_EQ(calls("cuStreamSynchronize").size(), waits + 2);
  ASSERT_TRUE(d.free(*address));
}

TEST_F(FakeDriver, LaunchPassesTheParameterAreaAndAsksForSharedMemory) {
  auto opened = open_device();
  ASSERT_TRUE(opened);
  device::Device& d = **opened;
  std::vector<std::byte> cubin(64);
  cubin[0] = std::byte{0x7f};
  cubin[1] = std::byte{'E'};
  cubin[2] = std::byte{'L'};
  cubin[3] = std::byte{'F'};
  auto module = d.load_module(cubin);
  ASSERT_TRUE(module) << module.error().message;
  auto kernel = d.find_kernel(*module, "main_1");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(d.kernel_info(*kernel)->registers, 32u);
  EXPECT_EQ(*d.blocks_per_multiprocessor(*kernel, 256, 0), 8u);
  std::vector<std::byte> parameters(40);
  ASSERT_TRUE(d.launch(*kernel, {7, 1, 1}, {256, 1, 1}, 0, parameters));
  EXPECT_THAT(calls("cuLaunchKernel"), ElementsAre("cuLaunchKernel:7,1,1/256,1,1/0/40"));
  EXPECT_TRUE(calls("cuFuncSetAttribute").empty());
  // Less than 48 KB may be too much, too: what the code declares counts. Asked for once; a kernel that is loaded anew asks anew.
  for (const uint32_t bytes : {49100, 100000, 49100, 100000})
    ASSERT_TRUE(d.launch(*kernel, {1, 1, 1}, {64, 1, 1}, bytes, parameters));
  EXPECT_THAT(calls("cuFuncSetAttribute"), ElementsAre("cuFuncSetAttribute:8,49100", "cuFuncSetAttribute:8,100000"));
  ASSERT_TRUE(d.unload_module(*module));
  module = d.load_module(cubin);
  kernel = d.find_kernel(*module, "main_1");
  ASSERT_TRUE(d.launch(*kernel, {1, 1, 1}, {64, 1, 1}, 49100, parameters));
  EXPECT_EQ(calls("cuFuncSetAttribute").size(), 3u);
  ASSERT_TRUE(d.unload_module(*module));
}

TEST_F(FakeDriver, MarksMeasureAndOldOnesAreRefused) {
  auto opened = open_device();
  ASSERT_TRUE(opened);
  device::Device& d = **opened;
  uint32_t a = *d.record_mark(), b = *d.record_mark();
  EXPECT_EQ(*d.elapsed_ns(a, b), 250000u);
  EXPECT_TRUE(calls("cuEventSynchronize").empty()) << "only where the driver says that the event is still to come";
  setenv("RNDN_FAKE_CUDA_FAIL", "cuEventElapsedTime:600:1:1", 1);
  EXPECT_EQ(*d.elapsed_ns(a, b), 250000u);
  EXPECT_EQ(calls("cuEventSynchronize").size(), 1u);
  setenv("RNDN_FAKE_CUDA_FAIL", "cuEventElapsedTime:700", 1);
  EXPECT_FALSE(d.elapsed_ns(a, b));
  unsetenv("RNDN_FAKE_CUDA_FAIL");
  for (int i = 0; i < 2046; ++i) ASSERT_TRUE(d.record_mark());
  EXPECT_TRUE(d.elapsed_ns(a, b));
  ASSERT_TRUE(d.record_mark());
  EXPECT_FALSE(d.elapsed_ns(a, b));
  EXPECT_FALSE(d.elapsed_ns(b, 1000000));
}

TEST_F(FakeDriver, FailuresOfWorkSayWhatAndWhy) {
  auto opened = open_device();
  ASSERT_TRUE(opened);
  device::Device& d = **opened;
  setenv("RNDN_FAKE_CUDA_FAIL", "cuMemAlloc:2", 1);
  auto address = d.allocate(123);
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().message, "cuMemAlloc of 123 bytes failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  EXPECT_EQ(address.error().exit_code(), 3);
  setenv("RNDN_FAKE_CUDA_FAIL", "cuStreamSynchronize:700", 1);
  EXPECT_EQ(d.synchronize().error().message,
            "cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)");
  setenv("RNDN_FAKE_CUDA_FAIL", "cuModuleLoadDataEx:218", 1);
  EXPECT_EQ(d.load_ptx(".version 6.0", 3).error().message,
            "cuModuleLoadDataEx of 12 bytes of PTX failed: CUDA_ERROR_INVALID_PTX (a PTX JIT compilation "
            "failed)\nptxas application ptx input, line 3; "
            "error");
  setenv("RNDN_FAKE_CUDA_FAIL", "cuMemHostGetDevicePointer:1", 1);
  EXPECT_FALSE(d.allocate_mapped(64));
  EXPECT_EQ(calls("cuMemFreeHost").size(), 1u) << "memory that cannot be mapped must be freed";
}

TEST_F(FakeDriver, FilesThatAreNoCubinsAreRefusedBeforeTheDriverSeesThem) {
  auto opened = open_device();
  ASSERT_TRUE(opened);
  std::vector<std::byte> bytes(64);
  EXPECT_EQ((*opened)->load_module(bytes).error().message, "cannot load a module of 64 bytes: not a cubin");
  bytes[0] = std::byte{0x7f};
  bytes[1] = std::byte{'E'};
  bytes[2] = std::byte{'L'};
  bytes[3] = std::byte{'F'};
  bytes[40] = std::byte{64};  // section headers at 64: beyond the end
  bytes[58] = std::byte{64};
  bytes[60] = std::byte{1};
  auto m = (*opened)->load_module(bytes);
  EXPECT_EQ(m.error().message, "cannot load a cubin of 64 bytes: it is truncated");
  EXPECT_EQ(m.error().exit_code(), 1);
  EXPECT_TRUE(calls("cuModuleLoadData").empty());
}

}  // namespace
}  // namespace rndn::cuda
