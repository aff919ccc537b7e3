// Device memory of an engine: pages that are bumped and reused, counted so that a full device is a clear error.
//
//   DeviceMemory memory(device);
//   Arena arena(memory, {.page_bytes = 4 << 20});
//   Result<BufferPtr> buffer = arena.allocate(bytes);      // returned to the arena with its last owner
//
// The driver's own allocation costs 60 us and waits; a page serves many buffers. Work of a device is in one stream, so a buffer whose last use is
// queued may be handed out again at once. Columns arrive in another stream (`send`): the copy waits for the work before it where the memory has been
// used, and the work waits for the copy before it reads the buffer (`arrive`), or whoever has the memory next.
// Search is first fit in the order in which the pages came. A sequence of requests and returns that starts with all memory free is therefore laid
// out again exactly as the first time: a repeated run never allocates. Cost: linear in the free blocks before the fit, of which there are few.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/device/streams.h"

namespace rndn::runtime {

// The device's allocations: how much is in use, and what happens when it does not suffice.
class DeviceMemory {
 public:
  explicit DeviceMemory(device::Device& device) : device_(device), streams_(device::streams_of(device)) {}
  device::Device& device() const { return device_; }
  device::Streams* streams() const { return streams_; }  // null: there is one stream
  // Contents undefined. When the device or the limit is full, `evict` is asked to give something back before this fails (fault world) with all sizes.
  Result<device::Address> allocate(uint64_t bytes);
  void free(device::Address address, uint64_t bytes);
  uint64_t in_use() const { return in_use_; }  // bytes
  uint64_t peak() const { return peak_; }      // the most that was in use since begin_peak
  void begin_peak() { peak_ = in_use_; }
  // From now on so many bytes may be in use at once; what is in use already stays.
  void set_limit(uint64_t bytes) { limit_ = bytes; }
  uint64_t limit() const { return limit_; }  // UINT64_MAX: what the device has
  // The most bytes that are taken under a limit where fewer may turn out to be needed.
  uint64_t most_unknown() const { return limit_ / 10; }
  bool limits_unknown(uint64_t bytes) const { return bytes > most_unknown(); }
  // Of the limit, or of the device, that neither this memory nor results have.
  uint64_t room() const;
  bool spares_results = false;  // no result gives its memory up for what is allocated
  std::function<bool()> evict;                 // frees one thing that can be made again; false: there is nothing

 private:
  device::Device& device_;
  device::Streams* const streams_;
  uint64_t in_use_ = 0, peak_ = 0, limit_ = UINT64_MAX;
};

class Arena;

struct Buffer {
  device::Address address = 0;
  uint64_t bytes = 0;    // rounded up to 256
  void* host = nullptr;  // mapped arenas: where the host sees it
  Arena* owner = nullptr;
  size_t page = 0;
  bool used_before = false;                       // some of its memory, by a buffer that is gone
  device::Event arrival = device::Event::none;    // of a copy for which the work has not waited yet

  Buffer() = default;
  Buffer(const Buffer&) = delete;
  ~Buffer();
};
using BufferPtr = std::shared_ptr<Buffer>;

// Outlives its buffers. Buffers are 256-byte aligned; contents undefined, but mapped pages start zeroed.
class Arena {
 public:
  struct Options {
    uint64_t page_bytes = 4 << 20;  // of the first page; later ones grow with the arena; less under a low limit
    bool mapped = false;            // host memory that the device reaches
    bool keep_pages = true;         // else a page that is all free goes back to the device
  };
  Arena(DeviceMemory& memory, const Options& options) : memory_(memory), options_(options) {}
  ~Arena();
  Arena(const Arena&) = delete;

  Result<BufferPtr> allocate(uint64_t bytes);
  // The bytes in a buffer of their own, copied beside the work, which must call `arrive` before it reads them.
  Result<BufferPtr> send(const void* from, uint64_t bytes);
  Result<void> arrive(Buffer& buffer);
  uint64_t in_use() const { return in_use_; }                 // bytes of buffers that are out
  uint64_t allocations() const { return allocations_; }       // so far
  uint64_t unused() const { return pages_bytes_ - in_use_; }  // bytes of the pages that no buffer has
  // From now on the driver allocates each buffer and takes it back (what pages save), or no longer.
  void allocate_singly(bool singly) { singly_ = singly; }
  bool trim();  // gives pages that are all free back to the device; false: there are none
  void keep_pages(bool keep) { options_.keep_pages = keep; }  // from now on
  // The device has done all work so far: copies into pages that are all free need not wait for it.
  void rest();

 private:
  friend struct Buffer;
  struct Page {
    device::Mapped memory;
    uint64_t bytes = 0;                 // 0: given back
    bool single = false;                // of one buffer, given back with it
    uint64_t used = 0;                  // bytes from its beginning that a buffer has had
    std::map<uint64_t, uint64_t> free;  // offset -> bytes, never adjacent
  };
  void release(Buffer& buffer);
  Result<size_t> add_page(uint64_t bytes);
  void drop_page(Page& page);

  DeviceMemory& memory_;
  Options options_;
  bool singly_ = false;
  std::vector<Page> pages_;
  uint64_t in_use_ = 0, pages_bytes_ = 0, allocations_ = 0;
};

}  // namespace rndn::runtime
