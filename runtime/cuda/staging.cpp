#include "runtime/cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace rndn::cuda {

Staging::Staging(const Driver& driver, ContextPointer context)
    : driver_(driver),
      context_(context),
      pool_(std::min(hardware_threads(), most_workers)),
      workers_(pool_.threads()) {
  workers_[0].has_context = true;  // the caller's thread: whoever uses the device has made its context current
}

Staging::~Staging() {
  for (Worker& w : workers_)
    for (Slot& s : w.slots) {
      if (s.free) {
        (void)driver_.cuEventSynchronize(s.free);
        (void)driver_.cuEventDestroy(s.free);
      }
      if (s.memory) (void)driver_.cuMemFreeHost(s.memory);
    }
}

Result<Staging::Slot*> Staging::next_slot(Worker& worker) {
  Slot& slot = worker.slots[worker.next++ % slots_per_worker];
  if (slot.free) {
    RETURN_IF_ERROR(driver_.check(driver_.cuEventSynchronize(slot.free), "cuEventSynchronize of a staging slot"));
    return &slot;
  }
  if (!slot.memory)
    RETURN_IF_ERROR(
        driver_.check(driver_.cuMemHostAlloc(&slot.memory, slot_bytes, 0), "cuMemHostAlloc of {} bytes", slot_bytes));
  RETURN_IF_ERROR(driver_.check(driver_.cuEventCreate(&slot.free, event_disable_timing), "cuEventCreate"));
  return &slot;
}

Result<void> Staging::send(StreamPointer stream, Worker& worker, DevicePointer to, const void* from, size_t bytes) {
  if (!worker.has_context) {
    RETURN_IF_ERROR(driver_.check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent in a staging thread"));
    worker.has_context = true;
  }
  ASSIGN_OR_RETURN(Slot * slot, next_slot(worker));
  std::memcpy(slot->memory, from, bytes);
  RETURN_IF_ERROR(driver_.check(driver_.cuMemcpyHtoDAsync(to, slot->memory, bytes, stream),
                                "cuMemcpyHtoDAsync of {} bytes", bytes));
  return driver_.check(driver_.cuEventRecord(slot->free, stream), "cuEventRecord behind a staging slot");
}

Result<void> Staging::copy(StreamPointer stream, DevicePointer to, const void* from, size_t bytes) {
  const char* source = static_cast<const char*>(from);
  std::mutex mutex;
  Result<void> result;
  pool_.run((bytes + slot_bytes - 1) / slot_bytes, [&](size_t i, unsigned worker) {
    const size_t at = i * slot_bytes;
    auto sent = send(stream, workers_[worker], to + at, source + at, std::min(slot_bytes, bytes - at));
    if (sent) return;
    std::lock_guard lock(mutex);
    if (result) result = sent;
  });
  return result;
}

}  // namespace rndn::cuda
