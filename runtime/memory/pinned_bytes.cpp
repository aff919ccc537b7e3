#include "runtime/memory/pinned_bytes.h"

#include <algorithm>
#include <cstring>

#include "libraries/base/system/cancel.h"
#include "libraries/base/system/host_memory.h"
#include "runtime/device/streams.h"

namespace rndn::runtime {

struct PinnedBytes::Memory {
  device::Device& device;
  const device::Mapped memory;
  const std::shared_ptr<uint64_t> pinned;
  const uint64_t bytes;
  Buffer buffer;  // of no arena; `host` once kernels read it
  MemoryCharge charge;

  Memory(device::Device& d, const device::Mapped& m, std::shared_ptr<uint64_t> all, uint64_t size)
      : device(d), memory(m), pinned(std::move(all)), bytes(size) {
    *pinned += bytes;
  }
  Memory(const Memory&) = delete;
  ~Memory() {
    if (buffer.host) (void)device.synchronize();  // kernels may still read it
    (void)device.free_mapped(memory);
    *pinned -= bytes;
  }
};

PinnedBytes::PinnedBytes(device::Device& device, const Options& options)
    : device_(device),
      least_(options.least_bytes),
      host_(memory_of_host()),
      most_(options.most_bytes ? options.most_bytes : host_ / 4) {}

void PinnedBytes::give_back(bool all) {
  std::erase_if(known_, [&](const auto& entry) { return all || entry.second.of.expired(); });
}

Result<void> PinnedBytes::pin(Known& known) {
  auto made = device_.allocate_mapped(known.bytes);
  known.is_refused = !made;
  if (!made) return made.error();
  known.memory = std::make_shared<Memory>(device_, *made, pinned_, known.bytes);
  return {};
}

bool PinnedBytes::has_room(const Known& known) const {
  return !is_memory_limited() && known.bytes <= most_ - std::min(most_, bytes()) &&
         known.bytes + host_ / 4 <= memory_available();
}

void PinnedBytes::fill(Known& known, const std::byte* from, ThreadPool* pool) {
  if (known.is_filled) return;
  constexpr uint64_t piece = 1 << 20;
  auto* const to = static_cast<std::byte*>(known.memory->memory.host);
  const auto copy = [&](size_t k) {
    std::memcpy(to + k * piece, from + k * piece, std::min(piece, known.bytes - k * piece));
  };
  const size_t pieces = (known.bytes + piece - 1) / piece;
  if (pool && pieces > 1)
    pool->run(pieces, [&](size_t k, unsigned) { copy(k); });
  else
    for (size_t k = 0; k < pieces; ++k) copy(k);
  known.is_filled = true;
}

bool PinnedBytes::has_been_sent(const std::shared_ptr<const data::Bytes>& bytes) const {
  const auto at = known_.find(bytes.get());
  return at != known_.end() && at->second.of.lock() == bytes;
}

bool PinnedBytes::has(const std::shared_ptr<const data::Bytes>& bytes) const {
  return has_been_sent(bytes) && known_.at(bytes.get()).is_filled;
}

// Others at the same place are gone.
PinnedBytes::Known& PinnedBytes::known_of(const std::shared_ptr<const data::Bytes>& bytes, bool& fresh) {
  give_back(false);
  const auto [at, is_new] = known_.try_emplace(bytes.get());
  fresh = is_new;
  if (fresh) {
    at->second.of = bytes;
    at->second.bytes = bytes->size();
  }
  return at->second;
}

PinnedBytes::Source PinnedBytes::of(const std::shared_ptr<const data::Bytes>& bytes, ThreadPool* pool) {
  if (!bytes) return {};
  const Source own{.from = bytes->data()};
  if (bytes->size() < least_ || !device::streams_of(device_)) return own;
  bool fresh = false;
  Known& known = known_of(bytes, fresh);
  if (fresh) return own;
  if (!known.memory && (known.is_refused || !has_room(known) || !pin(known))) return own;
  fill(known, own.from, pool);
  return {.from = static_cast<const std::byte*>(known.memory->memory.host), .is_pinned = true};
}

Result<BufferPtr> PinnedBytes::mapped(const std::shared_ptr<const data::Bytes>& bytes, ThreadPool* pool) {
  const std::byte* const from = bytes->data();
  bool fresh = false;
  Known& known = known_of(bytes, fresh);
  if (!known.memory) {
    MemoryCharge charge(known.bytes);
    expect_host_memory(known.bytes);
    RETURN_IF_ERROR(pin(known));
    known.memory->charge = std::move(charge);
  }
  fill(known, from, pool);
  Memory& memory = *known.memory;
  memory.buffer.address = memory.memory.address;
  memory.buffer.bytes = memory.bytes;
  memory.buffer.host = memory.memory.host;
  return BufferPtr(known.memory, &memory.buffer);
}

}  // namespace rndn::runtime
