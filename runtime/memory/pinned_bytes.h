// Columns that go to the device again and again, in host memory that it reads by itself: copies do, or kernels.
//
//   PinnedBytes pinned(device, {});
//   const PinnedBytes::Source source = pinned.of(column.data, pool);   // where to send them from
//   ASSIGN_OR_RETURN(BufferPtr buffer, pinned.mapped(column.data, pool));   // where kernels read them
//
// In: bytes of a column that are about to be sent, which do not change. Out: for the first time where
// they lie, from the second on a copy of them in pinned memory (Device::allocate_mapped): copies from
// there go whole, at the full speed of the bus and beside what the host does, others through pinned
// slots that the cores fill (runtime/cuda/staging.h). A copy hangs on nothing of the bytes' own memory,
// which may be a mapped file or a caller's buffer, and which goes when it will.
//
// Cost: 0.37 s a GiB (H200) and as much memory again, once; so only of what is sent again. At most a
// quarter of the host's memory, and only where another quarter is available beside it. It goes
// back with this object, or with the next call after the column is gone, and not before the last
// buffer that kernels read it by; that waits for the work. Left out of `of`: few bytes, devices
// with one stream, work with a limit of host memory, and what the driver refuses to pin.
#pragma once
#include <cstdint>
#include <map>
#include <memory>

#include "libraries/base/system/parallel.h"
#include "runtime/data/bytes.h"
#include "runtime/device/device.h"
#include "runtime/memory/arena.h"

namespace rndn::runtime {

class PinnedBytes {
 public:
  struct Options {
    uint64_t least_bytes = 64 << 10;  // of a column; less is staged by the driver in the call
    uint64_t most_bytes = 0;          // of all; 0: by the host's memory
  };
  // The device outlives it.
  PinnedBytes(device::Device& device, const Options& options);
  PinnedBytes(const PinnedBytes&) = delete;

  struct Source {
    const std::byte* from = nullptr;
    bool is_pinned = false;
  };
  // bytes, pool: may be null. Throws Cancelled when the caller's work ends.
  Source of(const std::shared_ptr<const data::Bytes>& bytes, ThreadPool* pool);
  // A copy that kernels read, which is there as long as the buffer is; `bytes` are not empty. Charged to the caller's work, if that makes it.
  // Throws Cancelled, as `of` does, or where the host has no room; fails (fault world) where the driver pins no more.
  Result<BufferPtr> mapped(const std::shared_ptr<const data::Bytes>& bytes, ThreadPool* pool);
  // Whether the next call of `of` gives pinned memory that is there already.
  bool has(const std::shared_ptr<const data::Bytes>& bytes) const;
  // Whether it gives pinned memory, if there is room.
  bool has_been_sent(const std::shared_ptr<const data::Bytes>& bytes) const;
  uint64_t bytes() const { return *pinned_; }  // of pinned memory
  // What columns have that are gone; all: every copy. Waits for what is sent from there.
  void give_back(bool all);

 private:
  struct Memory;
  struct Known {
    std::weak_ptr<const data::Bytes> of;
    std::shared_ptr<Memory> memory;  // null: it has been sent once, or the driver has refused
    bool is_refused = false, is_filled = false;
    uint64_t bytes = 0;
  };
  Known& known_of(const std::shared_ptr<const data::Bytes>& bytes, bool& fresh);
  Result<void> pin(Known& known);
  bool has_room(const Known& known) const;
  static void fill(Known& known, const std::byte* from, ThreadPool* pool);

  device::Device& device_;
  const uint64_t least_, host_, most_;
  const std::shared_ptr<uint64_t> pinned_ = std::make_shared<uint64_t>(0);  // what buffers keep counts
  std::map<const data::Bytes*, Known> known_;
};

}  // namespace rndn::runtime
