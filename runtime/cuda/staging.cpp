#include "runtime/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "libraries/base/parallel.h"

namespace rndn::cuda {

StagingRing::~StagingRing() {
  for (Slot& s : slots_) {
    if (s.free) {
      (void)driver_.cuEventSynchronize(s.free);
      (void)driver_.cuEventDestroy(s.free);
    }
    if (s.memory) (void)driver_.cuMemFreeHost(s.memory);
  }
}

// The slot whose turn it is, once its last copy has left it.
Result<StagingRing::Slot*> StagingRing::next_slot() {
  if (next_ == slots_.size() && slots_.size() < slot_count) {
    Slot slot;
    RETURN_IF_ERROR(
        driver_.check(driver_.cuMemHostAlloc(&slot.memory, slot_bytes, 0), "cuMemHostAlloc of {} bytes", slot_bytes));
    slots_.push_back(slot);  // owned from here on
    RETURN_IF_ERROR(driver_.check(driver_.cuEventCreate(&slots_.back().free, 0), "cuEventCreate"));
  } else {
    if (next_ == slots_.size()) next_ = 0;
    RETURN_IF_ERROR(
        driver_.check(driver_.cuEventSynchronize(slots_[next_].free), "cuEventSynchronize of a staging slot"));
  }
  return &slots_[next_++];
}

Result<void> StagingRing::copy(DevicePointer to, const void* from, size_t bytes) {
  constexpr size_t piece = size_t{4} << 20;  // what one core fills at a time
  const char* source = static_cast<const char*>(from);
  for (size_t done = 0; done < bytes;) {
    size_t n = std::min(slot_bytes, bytes - done);
    ASSIGN_OR_RETURN(Slot * slot, next_slot());
    char* memory = static_cast<char*>(slot->memory);
    parallel_for((n + piece - 1) / piece, [&](size_t i) {
      size_t at = i * piece;
      std::memcpy(memory + at, source + done + at, std::min(piece, n - at));
    });
    RETURN_IF_ERROR(
        driver_.check(driver_.cuMemcpyHtoDAsync(to + done, memory, n, stream_), "cuMemcpyHtoDAsync of {} bytes", n));
    RETURN_IF_ERROR(driver_.check(driver_.cuEventRecord(slot->free, stream_), "cuEventRecord behind a staging slot"));
    done += n;
  }
  return {};
}

}  // namespace rndn::cuda
