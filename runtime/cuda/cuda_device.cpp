// device::Device over the CUDA driver: primary context, two streams, events for their order and for timing.
#include "runtime/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "libraries/base/numbers/gpu_limits.h"
#include "libraries/base/system/cancel.h"
#include "runtime/cuda/staging.h"
#include "runtime/device/sharing.h"
#include "runtime/device/streams.h"

namespace rndn::cuda {
namespace {

using device::Address;
using device::Dim3;
using device::KernelHandle;
using device::ModuleHandle;

// What the preparing thread makes. The context belongs to whoever holds the object.
struct Context {
  std::shared_ptr<const Driver> driver;
  Description description;
  DeviceOrdinal device = 0;
  ContextPointer context = nullptr;
  ContextKind kind = ContextKind::primary;

  Context() = default;
  Context(Context&& other) noexcept
      : driver(std::move(other.driver)),
        description(std::move(other.description)),
        device(other.device),
        context(std::exchange(other.context, nullptr)),
        kind(other.kind) {}
  Context& operator=(Context&&) = delete;
  ~Context() {
    if (!context) return;
    (void)(kind == ContextKind::own ? driver->cuCtxDestroy(context) : driver->cuDevicePrimaryCtxRelease(device));
  }
};

std::string supported_targets() {
  std::string names;
  for (const GpuLimits& row : gpu_limits) names += fmt::format("{}sm_{}", names.empty() ? "" : " ", row.sm);
  return names;
}

Result<Description> choose(const std::vector<Description>& devices, int ordinal) {
  if (devices.empty()) return world_error("the driver reports no GPU");
  if (ordinal >= static_cast<int>(devices.size()))
    return world_error("there is no GPU {}: the driver reports {} (numbered from 0)", ordinal, devices.size());
  for (const Description& d : devices)
    if (ordinal < 0 ? !d.target.empty() : d.ordinal == ordinal) {
      if (d.target.empty())
        return world_error("GPU {} ({}) has compute capability {}.{}, whose code is not supported (supported: {})",
                           d.ordinal, d.name, d.major, d.minor, supported_targets());
      return d;
    }
  const Description& d = devices.front();
  return world_error("none of {} GPUs is supported: GPU 0 ({}) has compute capability {}.{} (supported: {})",
                     devices.size(), d.name, d.major, d.minor, supported_targets());
}

Result<Context> make_context(int ordinal, const std::string& library, ContextKind kind) {
  Context c;
  c.kind = kind;
  ASSIGN_OR_RETURN(c.driver, Driver::open(library));
  ASSIGN_OR_RETURN(std::vector<Description> devices, list_devices(*c.driver));
  ASSIGN_OR_RETURN(c.description, choose(devices, ordinal));
  RETURN_IF_ERROR(c.driver->check(c.driver->cuDeviceGet(&c.device, c.description.ordinal), "cuDeviceGet of GPU {}",
                                  c.description.ordinal));
  if (kind == ContextKind::own) {
    RETURN_IF_ERROR(c.driver->check(c.driver->cuCtxCreate(&c.context, 0, c.device), "cuCtxCreate of GPU {}",
                                    c.description.ordinal));
    return c;
  }
  RETURN_IF_ERROR(c.driver->check(c.driver->cuDevicePrimaryCtxRetain(&c.context, c.device),
                                  "cuDevicePrimaryCtxRetain of GPU {}", c.description.ordinal));
  return c;
}

class CudaDevice final : public device::Device, public device::Streams, public device::Sharing {
 public:
  explicit CudaDevice(Context context) : context_(std::move(context)), driver_(*context_.driver) {
    const Description& d = context_.description;
    info_ = {d.name, d.target, driver_.version_text(), d.multiprocessors, d.memory_bytes, false};
  }
  ~CudaDevice() override {  // in any thread
    (void)attach();
    staging_.reset();
    for (EventPointer e : events_)
      if (e) (void)driver_.cuEventDestroy(e);
    for (const Order& order : orders_)
      for (EventPointer e : order.events)
        if (e) (void)driver_.cuEventDestroy(e);
    for (StreamPointer stream : {stream_, copies_})
      if (stream) (void)driver_.cuStreamDestroy(stream);
  }

  Result<void> start() {
    RETURN_IF_ERROR(attach());
    for (StreamPointer* stream : {&stream_, &copies_})
      RETURN_IF_ERROR(driver_.check(driver_.cuStreamCreate(stream, stream_non_blocking), "cuStreamCreate"));
    staging_.emplace(driver_, context_.context);
    return {};
  }

  const device::Info& info() const override { return info_; }

  Result<void> attach() override {
    return driver_.check(driver_.cuCtxSetCurrent(context_.context), "cuCtxSetCurrent");
  }
  int ordinal() const override { return context_.description.ordinal; }

  Result<Address> allocate(uint64_t bytes) override {
    ++host_calls_;
    DevicePointer address = 0;
    RETURN_IF_ERROR(
        driver_.check(driver_.cuMemAlloc(&address, std::max<uint64_t>(bytes, 1)), "cuMemAlloc of {} bytes", bytes));
    return Address{address};
  }
  Result<void> free(Address address) override {
    return driver_.check(driver_.cuMemFree(address), "cuMemFree of {:#x}", address);
  }

  Result<void> copy_to_device(Address to, const void* from, uint64_t bytes) override {
    return copy_in(stream_, to, from, bytes);
  }
  Result<void> send(Address to, const void* from, uint64_t bytes) override { return copy_in(copies_, to, from, bytes); }

  // An event of a stream stands for all before it, so that one that was recorded later may take its place.
  Result<device::Event> record_event(device::Stream stream) override {
    RETURN_IF_ERROR(host_call("an event"));
    Order& order = orders_[static_cast<size_t>(stream)];
    EventPointer& event = order.events[++order.recorded % order.events.size()];
    if (!event) RETURN_IF_ERROR(driver_.check(driver_.cuEventCreate(&event, event_disable_timing), "cuEventCreate"));
    RETURN_IF_ERROR(driver_.check(driver_.cuEventRecord(event, pointer_of(stream)), "cuEventRecord"));
    return static_cast<device::Event>(order.recorded);
  }
  Result<void> wait_event(device::Stream stream, device::Event event) override {
    if (event == device::Event::none) return {};
    RETURN_IF_ERROR(host_call("a wait for an event"));
    const Order& of = orders_[stream == device::Stream::work];
    return driver_.check(driver_.cuStreamWaitEvent(pointer_of(stream), of.events[static_cast<uint64_t>(event) % of.events.size()], 0),
                         "cuStreamWaitEvent");
  }
  Result<void> copy_to_host(void* to, Address from, uint64_t bytes) override {
    if (bytes == 0) return {};
    RETURN_IF_ERROR(host_call("a copy to the host"));
    RETURN_IF_ERROR(
        driver_.check(driver_.cuMemcpyDtoHAsync(to, from, bytes, stream_), "cuMemcpyDtoHAsync of {} bytes", bytes));
    return synchronize();
  }
  Result<void> copy(Address to, Address from, uint64_t bytes) override {
    if (bytes == 0) return {};
    return driver_.check(driver_.cuMemcpyDtoDAsync(to, from, bytes, stream_), "cuMemcpyDtoDAsync of {} bytes", bytes);
  }
  Result<void> fill(Address to, device::Filling value, uint64_t bytes) override {
    if (bytes == 0) return {};
    if (!value.is_byte())
      return driver_.check(driver_.cuMemsetD32Async(to, value.word, bytes / 4, stream_), "cuMemsetD32Async of {} bytes", bytes);
    return driver_.check(driver_.cuMemsetD8Async(to, value.byte(), bytes, stream_), "cuMemsetD8Async of {} bytes", bytes);
  }

  Result<device::Mapped> allocate_mapped(uint64_t bytes) override {
    device::Mapped m;
    bytes = std::max<uint64_t>(bytes, 1);
    RETURN_IF_ERROR(driver_.check(driver_.cuMemHostAlloc(&m.host, bytes, host_alloc_device_map),
                                  "cuMemHostAlloc of {} mapped bytes", bytes));
    std::memset(m.host, 0, bytes);
    DevicePointer address = 0;
    auto mapped = driver_.check(driver_.cuMemHostGetDevicePointer(&address, m.host, 0), "cuMemHostGetDevicePointer");
    if (!mapped) {
      (void)driver_.cuMemFreeHost(m.host);
      return mapped.error();
    }
    m.address = address;
    mapped_[static_cast<const std::byte*>(m.host)] = {.bytes = bytes};
    return m;
  }
  Result<void> free_mapped(const device::Mapped& memory) override {
    const auto region = mapped_.find(static_cast<const std::byte*>(memory.host));
    if (region != mapped_.end()) {
      if (region->second.is_sent)  // copies from it may be under way
        for (StreamPointer stream : {copies_, stream_}) (void)driver_.cuStreamSynchronize(stream);
      mapped_.erase(region);
    }
    return driver_.check(driver_.cuMemFreeHost(memory.host), "cuMemFreeHost");
  }

  Result<ModuleHandle> load_module(std::span<const std::byte> cubin) override {
    // The driver takes no size: it reads what the ELF header promises. Ours are whole; a foreign one must at least have
    // a header.
    static constexpr unsigned char magic[] = {0x7f, 'E', 'L', 'F'};
    if (cubin.size() < 64 || std::memcmp(cubin.data(), magic, 4) != 0)
      return input_error("cannot load a module of {} bytes: not a cubin", cubin.size());
    uint64_t section_headers;
    uint16_t header_size, header_count;
    std::memcpy(&section_headers, cubin.data() + 40, 8);
    std::memcpy(&header_size, cubin.data() + 58, 2);
    std::memcpy(&header_count, cubin.data() + 60, 2);
    if (section_headers > cubin.size() || cubin.size() - section_headers < uint64_t{header_size} * header_count)
      return input_error("cannot load a cubin of {} bytes: it is truncated", cubin.size());
    ModulePointer module = nullptr;
    RETURN_IF_ERROR(driver_.check(driver_.cuModuleLoadData(&module, cubin.data()),
                                  "cuModuleLoadData of a cubin for {} of {} bytes on {}", info_.target, cubin.size(),
                                  info_.name));
    return static_cast<ModuleHandle>(reinterpret_cast<uintptr_t>(module));
  }
  Result<ModuleHandle> load_ptx(const std::string& ptx, int level) override {
    std::array<char, 4096> log{};
    JitOption options[] = {JitOption::error_log, JitOption::error_log_bytes, JitOption::optimization_level};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size()),
                      reinterpret_cast<void*>(static_cast<uintptr_t>(level))};
    ModulePointer module = nullptr;
    Code code = driver_.cuModuleLoadDataEx(&module, ptx.c_str(), 3, options, values);
    if (code != Code::success) {
      Error e = driver_.failure(code, fmt::format("cuModuleLoadDataEx of {} bytes of PTX", ptx.size()));
      log.back() = 0;
      if (log[0]) e.message += fmt::format("\n{}", log.data());
      return e;
    }
    return static_cast<ModuleHandle>(reinterpret_cast<uintptr_t>(module));
  }
  Result<void> unload_module(ModuleHandle module) override {
    allowed_shared_.clear();  // another kernel may get the handle of one that is gone
    return driver_.check(driver_.cuModuleUnload(reinterpret_cast<ModulePointer>(module)), "cuModuleUnload");
  }
  Result<KernelHandle> find_kernel(ModuleHandle module, const std::string& name) override {
    FunctionPointer f = nullptr;
    RETURN_IF_ERROR(
        driver_.check(driver_.cuModuleGetFunction(&f, reinterpret_cast<ModulePointer>(module), name.c_str()),
                      "cuModuleGetFunction of `{}`", name));
    return static_cast<KernelHandle>(reinterpret_cast<uintptr_t>(f));
  }
  Result<device::KernelInfo> kernel_info(KernelHandle kernel) override {
    device::KernelInfo info;
    auto get = [&](FunctionAttribute which, uint32_t& to) {
      int value = 0;
      auto r = driver_.check(driver_.cuFuncGetAttribute(&value, which, function(kernel)), "cuFuncGetAttribute {}",
                             static_cast<int>(which));
      to = static_cast<uint32_t>(value);
      return r;
    };
    RETURN_IF_ERROR(get(FunctionAttribute::registers, info.registers));
    RETURN_IF_ERROR(get(FunctionAttribute::shared_bytes, info.shared_bytes));
    RETURN_IF_ERROR(get(FunctionAttribute::local_bytes, info.local_bytes));
    RETURN_IF_ERROR(get(FunctionAttribute::max_threads, info.max_threads));
    return info;
  }
  Result<uint32_t> blocks_per_multiprocessor(KernelHandle kernel, uint32_t block_size,
                                             uint32_t dynamic_shared) override {
    RETURN_IF_ERROR(allow_shared(kernel, dynamic_shared));
    int blocks = 0;
    RETURN_IF_ERROR(driver_.check(driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                                      &blocks, function(kernel), static_cast<int>(block_size), dynamic_shared),
                                  "cuOccupancyMaxActiveBlocksPerMultiprocessor of {} threads", block_size));
    return static_cast<uint32_t>(std::max(blocks, 1));
  }

  Result<void> launch(KernelHandle kernel, Dim3 grid, Dim3 block, uint32_t dynamic_shared,
                      std::span<const std::byte> parameters) override {
    RETURN_IF_ERROR(allow_shared(kernel, dynamic_shared));
    size_t bytes = parameters.size();
    // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END: the whole parameter area in one
    // piece.
    void* extra[] = {reinterpret_cast<void*>(1), const_cast<std::byte*>(parameters.data()), reinterpret_cast<void*>(2),
                     &bytes, nullptr};
    return driver_.check(driver_.cuLaunchKernel(function(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                dynamic_shared, stream_, nullptr, parameters.empty() ? nullptr : extra),
                         "cuLaunchKernel with a grid of {}x{}x{} and blocks of {}x{}x{}", grid.x, grid.y, grid.z,
                         block.x, block.y, block.z);
  }
  Result<void> synchronize() override {
    RETURN_IF_ERROR(host_call("a wait"));
    return driver_.check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
  }

  bool has_graphs() const override { return true; }
  Result<void> begin_graph() override {
    RETURN_IF_ERROR(driver_.check(driver_.cuStreamBeginCapture(stream_, capture_relaxed), "cuStreamBeginCapture"));
    recording_ = true;
    return {};
  }
  Result<device::GraphHandle> end_graph() override {
    recording_ = false;
    GraphPointer graph = nullptr;
    RETURN_IF_ERROR(driver_.check(driver_.cuStreamEndCapture(stream_, &graph), "cuStreamEndCapture"));
    GraphExecutionPointer execution = nullptr;
    auto made = driver_.check(driver_.cuGraphInstantiateWithFlags(&execution, graph, 0), "cuGraphInstantiateWithFlags");
    (void)driver_.cuGraphDestroy(graph);
    if (!made) return made.error();
    return static_cast<device::GraphHandle>(reinterpret_cast<uintptr_t>(execution));
  }
  Result<void> launch_graph(device::GraphHandle graph) override {
    return driver_.check(driver_.cuGraphLaunch(reinterpret_cast<GraphExecutionPointer>(graph), stream_),
                         "cuGraphLaunch");
  }
  Result<void> free_graph(device::GraphHandle graph) override {
    return driver_.check(driver_.cuGraphExecDestroy(reinterpret_cast<GraphExecutionPointer>(graph)),
                         "cuGraphExecDestroy");
  }
  uint64_t host_calls() const override { return host_calls_; }

  Result<uint32_t> record_mark() override {
    RETURN_IF_ERROR(host_call("a mark"));
    EventPointer& event = events_[next_mark_ % events_.size()];
    if (!event) RETURN_IF_ERROR(driver_.check(driver_.cuEventCreate(&event, 0), "cuEventCreate"));
    RETURN_IF_ERROR(driver_.check(driver_.cuEventRecord(event, stream_), "cuEventRecord"));
    return next_mark_++;
  }
  Result<uint64_t> elapsed_ns(uint32_t from, uint32_t to) override {
    if (next_mark_ - from > events_.size() || next_mark_ - to > events_.size() || from >= next_mark_ ||
        to >= next_mark_)
      return Error{Fault::internal, fmt::format("marks {} and {} are not among the last {}", from, to, events_.size())};
    EventPointer a = events_[from % events_.size()], b = events_[to % events_.size()];
    float milliseconds = 0;
    Code code = driver_.cuEventElapsedTime(&milliseconds, a, b);  // in most cases somebody has waited already
    if (code == Code::error_not_ready) {
      RETURN_IF_ERROR(driver_.check(driver_.cuEventSynchronize(b), "cuEventSynchronize"));
      code = driver_.cuEventElapsedTime(&milliseconds, a, b);
    }
    RETURN_IF_ERROR(driver_.check(code, "cuEventElapsedTime"));
    return static_cast<uint64_t>(std::max(0.0, static_cast<double>(milliseconds) * 1e6));
  }

 private:
  // The last events of a stream, by their numbers.
  struct Order {
    std::array<EventPointer, 64> events{};
    uint64_t recorded = 0;
  };
  StreamPointer pointer_of(device::Stream stream) const { return stream == device::Stream::work ? stream_ : copies_; }
  Result<void> copy_in(StreamPointer stream, Address to, const void* from, uint64_t bytes) {
    if (bytes == 0) return {};
    RETURN_IF_ERROR(host_call("a copy to the device"));
    if (!is_pinned(from, bytes) && bytes >= Staging::smallest_copy) return staging_->copy(stream, to, from, bytes);
    // From pageable memory: returns once the driver has staged the bytes (CUDA Driver API, "API synchronization
    // behavior").
    return driver_.check(driver_.cuMemcpyHtoDAsync(to, from, bytes, stream), "cuMemcpyHtoDAsync of {} bytes", bytes);
  }
  // Whether a copy reads it by itself, of which a note is made.
  bool is_pinned(const void* from, uint64_t bytes) {
    const auto* begin = static_cast<const std::byte*>(from);
    auto region = mapped_.upper_bound(begin);
    if (region == mapped_.begin()) return false;
    --region;
    const auto offset = static_cast<uint64_t>(begin - region->first);
    if (offset > region->second.bytes || bytes > region->second.bytes - offset) return false;
    return region->second.is_sent = true;
  }
  Result<void> host_call(const char* what) {
    ++host_calls_;
    if (recording_) return Error{Fault::internal, fmt::format("{} while a graph is recorded", what)};
    return {};
  }
  static FunctionPointer function(KernelHandle kernel) { return reinterpret_cast<FunctionPointer>(kernel); }
  // More than 48 KB of shared memory must be asked for (CUDA C++ Programming Guide, compute capability 7.x), and those that the code declares count:
  // beside 80 bytes, 49,080 are refused (H200, driver 580).
  Result<void> allow_shared(KernelHandle kernel, uint32_t bytes) {
    if (bytes == 0) return {};
    uint32_t& allowed = allowed_shared_[kernel];
    if (bytes <= allowed) return {};
    RETURN_IF_ERROR(driver_.check(
        driver_.cuFuncSetAttribute(function(kernel), FunctionAttribute::max_dynamic_shared, static_cast<int>(bytes)),
        "cuFuncSetAttribute of {} bytes of dynamic shared memory", bytes));
    allowed = bytes;
    return {};
  }

  Context context_;
  const Driver& driver_;
  device::Info info_;
  StreamPointer stream_ = nullptr, copies_ = nullptr;
  std::array<Order, 2> orders_;  // by device::Stream
  std::optional<Staging> staging_;
  struct Region {
    uint64_t bytes = 0;
    bool is_sent = false;  // to the device, by copies
  };
  std::map<const std::byte*, Region> mapped_;
  std::map<KernelHandle, uint32_t> allowed_shared_;  // the most that was asked for
  std::array<EventPointer, 2048> events_{};
  uint32_t next_mark_ = 0;
  bool recording_ = false;
  uint64_t host_calls_ = 0;
};

}  // namespace

struct Preparation::State {
  std::optional<Result<Context>> made;
  std::promise<void> is_made;
  std::thread thread;
};

Preparation::Preparation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Preparation::~Preparation() {
  if (state_->thread.joinable()) state_->thread.join();
}

std::unique_ptr<Preparation> prepare(int ordinal, const std::string& library, ContextKind kind) {
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);  // here, where no thread of ours reads the environment yet
  auto state = std::make_unique<Preparation::State>();
  state->thread =
      std::thread([s = state.get(), ordinal, library, kind] {
        s->made.emplace(make_context(ordinal, library, kind));
        s->is_made.set_value();
      });
  return std::make_unique<Preparation>(std::move(state));
}

Result<std::unique_ptr<device::Device>> open(Preparation& preparation) {
  Preparation::State& state = *preparation.state_;
  if (state.thread.joinable()) {
    const std::future<void> made = state.is_made.get_future();
    while (made.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready)
      RETURN_IF_ERROR(check_cancelled());
    state.thread.join();
  }
  CHECK(state.made, "a preparation hands out one device");
  Result<Context> made = std::move(*state.made);
  state.made.reset();
  if (!made) return made.error();
  auto device = std::make_unique<CudaDevice>(*std::move(made));
  RETURN_IF_ERROR(device->start());
  return std::unique_ptr<device::Device>(std::move(device));
}

}  // namespace rndn::cuda
