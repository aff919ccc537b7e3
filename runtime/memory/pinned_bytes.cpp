#include "runtime/memory/pinned_bytes.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "libraries/base/system/cancel.h"
#include "runtime/device/streams.h"

namespace rndn::runtime {

namespace {

// That the process may have, the limit of its control group included.
uint64_t memory_of_host() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  uint64_t most = pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) : uint64_t{4} << 30;
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (uint64_t limit; std::ifstream(file) >> limit) most = std::min(most, limit);
  return most;
}

// The number behind `name`; UINT64_MAX: there is none.
uint64_t number_in(const std::string& file, std::string_view name) {
  std::ifstream in(file);
  std::string word;
  while (in >> word)
    if (uint64_t number; word == name && in >> number) return number;
  return UINT64_MAX;
}

}  // namespace

uint64_t memory_available(const std::string& root) {
  const uint64_t kib = number_in(root + "/proc/meminfo", "MemAvailable:");
  uint64_t most = kib == UINT64_MAX ? kib : kib << 10;
  struct Group {
    const char *limit, *used, *parts;
  };
  const std::string groups = root + "/sys/fs/cgroup/";
  for (const Group& g : {Group{"memory.max", "memory.current", "memory.stat"},
                         Group{"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"}}) {
    uint64_t limit, used;
    if (!(std::ifstream(groups + g.limit) >> limit) || !(std::ifstream(groups + g.used) >> used)) continue;
    for (const char* part : {"inactive_file", "active_file"})  // pages of files go back when others need them
      if (const uint64_t bytes = number_in(groups + g.parts, part); bytes != UINT64_MAX) used -= std::min(used, bytes);
    most = std::min(most, limit - std::min(limit, used));
  }
  return most;
}

PinnedBytes::PinnedBytes(device::Device& device, const Options& options)
    : device_(device),
      least_(options.least_bytes),
      host_(memory_of_host()),
      most_(options.most_bytes ? options.most_bytes : host_ / 4) {}

PinnedBytes::~PinnedBytes() {
  for (auto& [bytes, known] : known_)
    if (known.memory.host) (void)device_.free_mapped(known.memory);
}

void PinnedBytes::collect() {
  std::erase_if(known_, [&](const auto& entry) {
    const Known& known = entry.second;
    if (!known.of.expired()) return false;
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
  collect();
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
