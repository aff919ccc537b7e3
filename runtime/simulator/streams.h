// A simulated GPU whose two streams run apart: what is queued happens when somebody waits for it,
// in any order that the streams and their events allow.
//
//   ASSIGN_OR_RETURN(auto simulator, open_simulator("sm_86"));
//   StreamsDevice device(*simulator, {.seed = 3});
//   ...                       // a wait that is missing shows as a wrong result
//
// In: calls of device::Device. Out: the same calls on another device, which does each at once. A
// stream's operations keep their order, an operation behind a wait comes after what was in the
// other stream when the event was recorded, and nothing else is promised: work goes first where it
// can, or copies do, or a coin is thrown before each. The same seed gives the same order. Bytes of
// the host are taken when a copy is queued, as GPUs stage them, those of mapped memory when it happens. Waiting for the work runs it and
// what it waits for; copies that nobody waits for stay queued until memory is freed. Faults of
// queued operations, work that is cancelled among them, are reported by the call that ran them;
// what it frees is freed all the same. Cost: the bytes of queued copies,
// twice. `ignored` drops one wait, counted from 1, so that tests see that each is needed. Left out:
// order within a graph, which runs as one operation; work whose time is measured runs when it is
// queued.
#pragma once
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>

#include "runtime/device/streams.h"

namespace rndn::runtime {

struct StreamOrder {
  enum Policy : uint8_t { work_first, copies_first, random } policy = random;
  uint64_t seed = 0;     // of `random`
  uint64_t ignored = 0;  // the number of a wait that is dropped; 0: none
};

class StreamsDevice final : public device::Device, public device::Streams {
 public:
  // `to` outlives it and is used by nobody else.
  StreamsDevice(device::Device& to, const StreamOrder& order)
      : to_(to), order_(order), random_(order.seed) {}
  ~StreamsDevice() override { (void)run_all(); }
  uint64_t waits() const { return waits_; }  // for events, so far

  const device::Info& info() const override { return to_.info(); }
  Result<device::Address> allocate(uint64_t bytes) override;
  Result<void> free(device::Address address) override;
  Result<void> copy_to_device(device::Address to, const void* from, uint64_t bytes) override;
  Result<void> copy_to_host(void* to, device::Address from, uint64_t bytes) override;
  Result<void> copy(device::Address to, device::Address from, uint64_t bytes) override;
  Result<void> fill(device::Address to, device::Filling value, uint64_t bytes) override;
  Result<void> send(device::Address to, const void* from, uint64_t bytes) override;
  Result<device::Event> record_event(device::Stream stream) override;
  Result<void> wait_event(device::Stream stream, device::Event event) override;
  Result<device::Mapped> allocate_mapped(uint64_t bytes) override;
  Result<void> free_mapped(const device::Mapped& memory) override;
  Result<device::ModuleHandle> load_module(std::span<const std::byte> cubin) override {
    return to_.load_module(cubin);
  }
  Result<void> unload_module(device::ModuleHandle module) override;
  Result<device::KernelHandle> find_kernel(device::ModuleHandle module,
                                           const std::string& name) override {
    return to_.find_kernel(module, name);
  }
  Result<device::KernelInfo> kernel_info(device::KernelHandle kernel) override {
    return to_.kernel_info(kernel);
  }
  Result<uint32_t> blocks_per_multiprocessor(device::KernelHandle kernel, uint32_t block_size,
                                             uint32_t dynamic_shared) override {
    return to_.blocks_per_multiprocessor(kernel, block_size, dynamic_shared);
  }
  Result<void> launch(device::KernelHandle kernel, device::Dim3 grid, device::Dim3 block,
                      uint32_t dynamic_shared, std::span<const std::byte> parameters) override;
  Result<void> synchronize() override;
  bool has_graphs() const override { return to_.has_graphs(); }
  Result<void> begin_graph() override;
  Result<device::GraphHandle> end_graph() override;
  Result<void> launch_graph(device::GraphHandle graph) override;
  Result<void> free_graph(device::GraphHandle graph) override;
  uint64_t host_calls() const override { return host_calls_; }
  Result<uint32_t> record_mark() override;
  Result<uint64_t> elapsed_ns(uint32_t from, uint32_t to) override {
    return to_.elapsed_ns(from, to);
  }
  device::LaunchCounters last_launch() const override { return to_.last_launch(); }

 private:
  struct Operation {
    std::function<Result<void>()> run;
    uint64_t after = 0;  // so many operations of the other stream have happened
  };
  struct Queue {
    std::deque<Operation> waiting;
    uint64_t queued = 0, done = 0, after = 0;  // after: of the operations to come
  };
  Result<void> queue(device::Stream stream, std::function<Result<void>()> run);
  Result<void> queue_copy(device::Stream stream, device::Address to, const void* from, uint64_t bytes);
  Result<void> host_call(const char* what);
  bool can_run(size_t stream) const;
  size_t choose();
  Result<void> run_one();
  Result<void> run_work();
  Result<void> run_all();

  device::Device& to_;
  const StreamOrder order_;
  std::mt19937_64 random_;
  std::array<Queue, 2> queues_;  // by device::Stream
  std::map<const std::byte*, uint64_t> mapped_;  // bytes
  uint64_t waits_ = 0, host_calls_ = 0;
  bool recording_ = false;
};

}  // namespace rndn::runtime
