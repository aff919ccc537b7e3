#include "runtime/memory/pinned_bytes.h"

#include <algorithm>
#include <cstring>

#include "libraries/base/system/cancel.h"
#include "libraries/base/system/host_memory.h"
#include "runtime/device/streams.h"

namespace rndn::runtime {

PinnedBytes::PinnedBytes(device::Device& device, const Options& options)
    : device_(device),
      least_(options.least_bytes),
      host_(memory_of_host()),
      most_(options.most_bytes ? options.most_bytes : host_ / 4) {}

PinnedBytes::~PinnedBytes() {
  for (auto& [bytes, known] : known_)
    if (known.memory.host) (void)device_.free_mapped(known.memory);
}

void PinnedBytes::give_back(bool all) {
  std::erase_if(known_, [&](const auto& entry) {
    const Known& known = entry.second;
    if (!all && !known.of.expired()) return false;
    if (known.memory.host) {
      (void)device_.free_mapped(known.memory);
      pinned_ -= known.bytes;
    }
    return true;
  });
}

bool PinnedBytes::pin(Known& known) {
  if (known.is_refused || is_memory_limited() || known.bytes > most_ - std::min(most_, pinned_) ||
      known.bytes + host_ / 4 > memory_available())
    return false;
  const auto made = device_.allocate_mapped(known.bytes);
  known.is_refused = !made;
  if (!made) return false;
  known.memory = *made;
  pinned_ += known.bytes;
  return true;
}

bool PinnedBytes::has(const std::shared_ptr<const data::Bytes>& bytes) const {
  const auto at = known_.find(bytes.get());
  return at != known_.end() && at->second.is_filled && at->second.of.lock() == bytes;
}

PinnedBytes::Source PinnedBytes::of(const std::shared_ptr<const data::Bytes>& bytes, ThreadPool* pool) {
  if (!bytes) return {};
  const Source own{.from = bytes->data()};
  if (bytes->size() < least_ || !device::streams_of(device_)) return own;
  give_back(false);
  const auto [at, fresh] = known_.try_emplace(bytes.get());
  Known& known = at->second;
  if (fresh) {
    known.of = bytes;
    known.bytes = bytes->size();
    return own;
  }
  if (!known.memory.host && !pin(known)) return own;
  auto* const to = static_cast<std::byte*>(known.memory.host);
  if (!known.is_filled) {
    constexpr uint64_t piece = 1 << 20;
    const auto copy = [&](size_t k) {
      std::memcpy(to + k * piece, own.from + k * piece, std::min(piece, known.bytes - k * piece));
    };
    const size_t pieces = (known.bytes + piece - 1) / piece;
    if (pool && pieces > 1)
      pool->run(pieces, [&](size_t k, unsigned) { copy(k); });
    else
      for (size_t k = 0; k < pieces; ++k) copy(k);
    known.is_filled = true;
  }
  return {.from = to, .is_pinned = true};
}

}  // namespace rndn::runtime
