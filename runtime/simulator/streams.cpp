#include "runtime/simulator/streams.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "libraries/base/system/cancel.h"

namespace rndn::runtime {

using device::Address;
using device::Event;

namespace {
constexpr auto work = static_cast<size_t>(device::Stream::work),
               copies = static_cast<size_t>(device::Stream::copies);

std::shared_ptr<const std::vector<std::byte>> taken(const void* from, uint64_t bytes) {
  const auto* begin = static_cast<const std::byte*>(from);
  return std::make_shared<const std::vector<std::byte>>(begin, begin + bytes);
}
}  // namespace

Result<void> StreamsDevice::host_call(const char* what) {
  ++host_calls_;
  if (recording_) return Error{Fault::internal, fmt::format("{} while a graph is recorded", what)};
  return {};
}

// What is recorded goes to the graph at once.
Result<void> StreamsDevice::queue(device::Stream stream, std::function<Result<void>()> run) {
  if (recording_) return run();
  Queue& q = queues_[static_cast<size_t>(stream)];
  q.waiting.push_back({std::move(run), q.after});
  ++q.queued;
  return {};
}

bool StreamsDevice::can_run(size_t stream) const {
  const Queue& q = queues_[stream];
  return !q.waiting.empty() && q.waiting.front().after <= queues_[1 - stream].done;
}

size_t StreamsDevice::choose() {
  const bool may_work = can_run(work), may_copy = can_run(copies);
  CHECK(may_work || may_copy, "an event was recorded before it was waited for");
  if (may_work != may_copy) return may_work ? work : copies;
  switch (order_.policy) {
    case StreamOrder::work_first: return work;
    case StreamOrder::copies_first: return copies;
    case StreamOrder::random: break;
  }
  return random_() & 1 ? work : copies;
}

Result<void> StreamsDevice::run_one() {
  Queue& q = queues_[choose()];
  const Operation next = std::move(q.waiting.front());
  q.waiting.pop_front();
  ++q.done;
  return errors_of([&] { return next.run(); });  // memory is freed where nothing may be thrown
}

Result<void> StreamsDevice::run_work() {
  while (!queues_[work].waiting.empty()) RETURN_IF_ERROR(run_one());
  return {};
}

Result<void> StreamsDevice::run_all() {
  Result<void> first;
  while (!queues_[work].waiting.empty() || !queues_[copies].waiting.empty())
    if (auto done = run_one(); !done && first) first = done;
  return first;
}

Result<Address> StreamsDevice::allocate(uint64_t bytes) {
  ++host_calls_;
  return to_.allocate(bytes);
}

Result<void> StreamsDevice::free(Address address) {
  const Result<void> before = run_all();
  RETURN_IF_ERROR(to_.free(address));
  return before;
}

Result<device::Mapped> StreamsDevice::allocate_mapped(uint64_t bytes) {
  ASSIGN_OR_RETURN(const device::Mapped memory, to_.allocate_mapped(bytes));
  mapped_[static_cast<const std::byte*>(memory.host)] = bytes;
  return memory;
}

Result<void> StreamsDevice::free_mapped(const device::Mapped& memory) {
  const Result<void> before = run_all();
  mapped_.erase(static_cast<const std::byte*>(memory.host));
  RETURN_IF_ERROR(to_.free_mapped(memory));
  return before;
}

Result<void> StreamsDevice::queue_copy(device::Stream stream, Address to, const void* from, uint64_t bytes) {
  if (bytes == 0) return {};
  RETURN_IF_ERROR(host_call("a copy to the device"));
  const auto* begin = static_cast<const std::byte*>(from);
  const auto after = mapped_.upper_bound(begin);
  if (after != mapped_.begin() && begin + bytes <= std::prev(after)->first + std::prev(after)->second)
    return queue(stream, [this, to, from, bytes] { return to_.copy_to_device(to, from, bytes); });
  return queue(stream, [this, to, source = taken(from, bytes)] {
    return to_.copy_to_device(to, source->data(), source->size());
  });
}

Result<void> StreamsDevice::copy_to_device(Address to, const void* from, uint64_t bytes) {
  return queue_copy(device::Stream::work, to, from, bytes);
}

Result<void> StreamsDevice::send(Address to, const void* from, uint64_t bytes) {
  return queue_copy(device::Stream::copies, to, from, bytes);
}

Result<void> StreamsDevice::copy_to_host(void* to, Address from, uint64_t bytes) {
  if (bytes == 0) return {};
  RETURN_IF_ERROR(host_call("a copy to the host"));
  RETURN_IF_ERROR(run_work());
  return to_.copy_to_host(to, from, bytes);
}

Result<void> StreamsDevice::copy(Address to, Address from, uint64_t bytes) {
  return queue(device::Stream::work, [this, to, from, bytes] { return to_.copy(to, from, bytes); });
}

Result<void> StreamsDevice::fill(Address to, device::Filling value, uint64_t bytes) {
  return queue(device::Stream::work, [this, to, value, bytes] { return to_.fill(to, value, bytes); });
}

// An event is how many operations of its stream there were, with the stream in the lowest bit.
Result<Event> StreamsDevice::record_event(device::Stream stream) {
  RETURN_IF_ERROR(host_call("an event"));
  const auto at = static_cast<size_t>(stream);
  return static_cast<Event>(queues_[at].queued << 1 | at);
}

Result<void> StreamsDevice::wait_event(device::Stream stream, Event event) {
  if (event == Event::none) return {};
  RETURN_IF_ERROR(host_call("a wait for an event"));
  const auto at = static_cast<uint64_t>(event);
  CHECK((at & 1) != static_cast<uint64_t>(stream), "a stream waits for the other");
  if (++waits_ == order_.ignored) return {};
  Queue& q = queues_[static_cast<size_t>(stream)];
  q.after = std::max(q.after, at >> 1);
  return {};
}

Result<void> StreamsDevice::unload_module(device::ModuleHandle module) {
  const Result<void> before = run_all();
  RETURN_IF_ERROR(to_.unload_module(module));
  return before;
}

Result<void> StreamsDevice::launch(device::KernelHandle kernel, device::Dim3 grid,
                                   device::Dim3 block, uint32_t dynamic_shared,
                                   std::span<const std::byte> parameters) {
  return queue(device::Stream::work, [this, kernel, grid, block, dynamic_shared,
                              area = taken(parameters.data(), parameters.size())] {
    return to_.launch(kernel, grid, block, dynamic_shared, *area);
  });
}

Result<void> StreamsDevice::synchronize() {
  RETURN_IF_ERROR(host_call("a wait"));
  RETURN_IF_ERROR(run_work());
  return to_.synchronize();
}

Result<void> StreamsDevice::begin_graph() {
  RETURN_IF_ERROR(to_.begin_graph());
  recording_ = true;
  return {};
}

Result<device::GraphHandle> StreamsDevice::end_graph() {
  recording_ = false;
  return to_.end_graph();
}

Result<void> StreamsDevice::launch_graph(device::GraphHandle graph) {
  return queue(device::Stream::work, [this, graph] { return to_.launch_graph(graph); });
}

Result<void> StreamsDevice::free_graph(device::GraphHandle graph) {
  const Result<void> before = run_all();
  RETURN_IF_ERROR(to_.free_graph(graph));
  return before;
}

Result<uint32_t> StreamsDevice::record_mark() {
  RETURN_IF_ERROR(host_call("a mark"));
  RETURN_IF_ERROR(run_work());
  return to_.record_mark();
}

}  // namespace rndn::runtime
