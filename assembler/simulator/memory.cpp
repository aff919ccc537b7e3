// Allocation: upwards until the range is used up, then first fit in the holes; freed addresses are reused as late as possible, so that
// a use after free is noticed. Pages of the host that no live allocation shares are given back. Cost: O(log allocations), O(allocations)
// once holes are searched.
#include "assembler/simulator/memory.h"

#include <sys/mman.h>

#include <algorithm>

namespace rndn::sim {

namespace {
constexpr uint64_t granule = 256;
constexpr uint64_t slack = 1 << 16;  // an access that starts inside the range never leaves the reservation
uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

constexpr size_t most_freed = 4096;  // of which the place of an access is told

// The pages of `from`, a byte of which stands for `scale` bytes of memory, that hold something of a freed range and nothing below and above it.
void give_back(void* from, uint64_t scale, uint64_t offset, uint64_t bytes, uint64_t below, uint64_t above) {
  const uint64_t page = 4096 * scale;
  const uint64_t first = std::max(offset / page, round_up(below, page) / page);
  const uint64_t last = std::min(round_up(offset + bytes, page) / page, above / page);
  if (last > first) madvise(static_cast<std::byte*>(from) + first * 4096, (last - first) * 4096, MADV_DONTNEED);
}

void* reserve(uint64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}
}  // namespace

Memory::Memory(uint64_t bytes) {
  if (bytes > uint64_t{1} << 44) return;
  reserved_ = round_up(bytes, granule) + slack;
  arena_ = static_cast<std::byte*>(reserve(reserved_));
  valid_ = static_cast<uint16_t*>(reserve((reserved_ / granule + 1) * sizeof(uint16_t)));
  if (arena_ && valid_) size_ = round_up(bytes, granule);
}

Memory::~Memory() {
  if (arena_) munmap(arena_, reserved_);
  if (written_) munmap(written_, (reserved_ / 16 + 1) * sizeof(uint16_t));
  if (valid_) munmap(valid_, (reserved_ / granule + 1) * sizeof(uint16_t));
}

void Memory::set_valid(uint64_t offset, uint64_t bytes, bool live) {
  for (uint64_t at = 0; at < bytes; at += granule)
    valid_[(offset + at) / granule] = live ? static_cast<uint16_t>(std::min(granule, bytes - at)) : 0;
}

Result<uint64_t> Memory::allocate(uint64_t bytes, uint64_t alignment) {
  if (alignment & (alignment - 1)) return usage_error("alignment {} is not a power of two", alignment);
  alignment = std::max<uint64_t>(alignment, granule);
  if (bytes > size_ || alignment > size_)
    return world_error("out of simulated device memory: {} bytes asked, {} in all", bytes, size_)
        .as(Cause::device_full);
  const uint64_t needed = round_up(std::max<uint64_t>(bytes, 1), granule) + granule;  // with the guard gap
  const auto aligned = [&](uint64_t offset) { return round_up(device_base + offset, alignment) - device_base; };
  uint64_t offset = aligned(top_);
  if (offset + needed > size_) {
    uint64_t end = 0;  // of the allocation before the hole
    bool found = false;
    for (const auto& [start, length] : live_) {
      offset = aligned(end);
      if (offset + needed <= start) {
        found = true;
        break;
      }
      end = start + round_up(std::max<uint64_t>(length, 1), granule) + granule;
    }
    if (!found) {
      offset = aligned(end);
      if (offset + needed > size_)
        return world_error("out of simulated device memory: no {} bytes free of {}", bytes, size_)
            .as(Cause::device_full);
    }
    auto it = freed_.lower_bound(offset);
    if (it != freed_.begin()) --it;
    while (it != freed_.end() && it->first < offset + needed)
      it = it->first + it->second > offset ? freed_.erase(it) : std::next(it);
  }
  top_ = std::max(top_, offset + needed);
  live_[offset] = bytes;
  set_valid(offset, bytes, true);
  if (tracked_)
    set_written(offset, bytes, false);
  else
    fresh_[offset].clear();
  return device_base + offset;
}

Result<void> Memory::free(uint64_t address) {
  const auto it = live_.find(address - device_base);
  if (it == live_.end()) return world_error("free of {:#x}, which is no live allocation", address);
  const auto [offset, bytes] = *it;
  set_valid(offset, bytes, false);
  const auto next = live_.erase(it);
  fresh_.erase(offset);
  freed_[offset] = bytes;
  if (freed_.size() > most_freed) freed_.erase(freed_.begin());
  // What the neighbours leave.
  const uint64_t above = next == live_.end() ? size_ : next->first;
  const uint64_t below = next == live_.begin() ? 0 : std::prev(next)->first + std::prev(next)->second;
  give_back(arena_, 1, offset, bytes, below, above);
  give_back(valid_, granule / sizeof *valid_, offset, bytes, below, above);
  if (written_) give_back(written_, 16 / sizeof *written_, offset, bytes, below, above);
  return {};
}

void Memory::set_written(uint64_t offset, uint64_t bytes, bool written) {
  const auto partial = [&](uint64_t unit, uint32_t bits) {
    written_[unit] = static_cast<uint16_t>(written ? written_[unit] | bits : written_[unit] & ~bits);
  };
  if (bytes == 0) return;
  const uint64_t first = offset / 16, last = (offset + bytes - 1) / 16;
  const uint32_t from = 0xffffu << (offset & 15) & 0xffff, to = 0xffffu >> (15 - ((offset + bytes - 1) & 15));
  if (first == last) return partial(first, from & to);
  partial(first, from);
  std::fill(written_ + first + 1, written_ + last, static_cast<uint16_t>(written ? 0xffff : 0));
  partial(last, to);
}

void Memory::note_written(uint64_t address, uint64_t bytes) {
  const uint64_t offset = address - device_base;
  if (offset >= size_ || bytes == 0) return;  // mapped memory
  if (tracked_) return set_written(offset, bytes, true);
  auto it = fresh_.upper_bound(offset);
  if (it == fresh_.begin()) return;
  const auto live = live_.find((--it)->first);
  if (live == live_.end() || offset - live->first >= live->second) return;  // an older allocation: counts as written
  auto& ranges = it->second;
  constexpr size_t max_ranges = 4096;
  if (!ranges.empty() && ranges.back().first + ranges.back().second == offset)
    ranges.back().second += bytes;
  else if (ranges.size() < max_ranges)
    ranges.emplace_back(offset, bytes);
  else
    fresh_.erase(it);  // too many to remember: counts as written
}

bool Memory::track() {
  if (tracked_) return true;
  if (!written_) written_ = static_cast<uint16_t*>(reserve((reserved_ / 16 + 1) * sizeof(uint16_t)));
  if (!written_) return false;
  for (const auto& [offset, bytes] : live_) {
    const auto it = fresh_.find(offset);
    set_written(offset, bytes, it == fresh_.end());
    if (it == fresh_.end()) continue;
    for (const auto& [from, length] : it->second) set_written(from, length, true);
  }
  fresh_.clear();
  tracked_ = true;
  return true;
}

void Memory::distrust() {
  tracked_ = false;
  fresh_.clear();
}

Result<uint64_t> Memory::map(void* host, uint64_t bytes) {
  if (!host) return usage_error("mapping of a null pointer");
  // The device address keeps the host address' place in its 4 KiB page, as a driver's mapping does.
  const uint64_t address = mapped_top_ + (reinterpret_cast<uintptr_t>(host) & 4095);
  mapped_.push_back({address, bytes, static_cast<std::byte*>(host)});
  mapped_top_ = round_up(address + bytes, 4096) + 4096;
  return address;
}

Result<void> Memory::unmap(uint64_t address) {
  const auto it = std::find_if(mapped_.begin(), mapped_.end(), [&](const Range& r) { return r.address == address; });
  if (it == mapped_.end()) return world_error("unmapping of {:#x}, where no host memory is mapped", address);
  mapped_.erase(it);
  return {};
}

std::byte* Memory::translate_mapped(uint64_t address, uint64_t bytes) const {
  if (mapped_.empty() || address < mapped_base) return nullptr;
  auto it = std::upper_bound(mapped_.begin(), mapped_.end(), address,
                             [](uint64_t a, const Range& r) { return a < r.address; });
  if (it == mapped_.begin()) return nullptr;
  --it;
  const uint64_t offset = address - it->address;
  return offset <= it->bytes && bytes <= it->bytes - offset ? it->host + offset : nullptr;
}

std::byte* Memory::translate_range(uint64_t address, uint64_t bytes, bool checked) const {
  const uint64_t offset = address - device_base;
  if (offset >= size_) return translate_mapped(address, bytes);
  if (bytes > size_ - offset) return nullptr;
  if (!checked) return arena_ + offset;
  auto it = live_.upper_bound(offset);
  if (it == live_.begin()) return nullptr;
  --it;
  return offset - it->first <= it->second && bytes <= it->second - (offset - it->first) ? arena_ + offset : nullptr;
}

std::string Memory::describe(uint64_t address) const {
  for (const Range& range : mapped_)
    if (address >= range.address && address - range.address < range.bytes + 256)
      return fmt::format("the mapped range of {} bytes at {:#x} ends before it", range.bytes, range.address);
  const uint64_t offset = address - device_base;
  if (offset < size_) {
    auto freed = freed_.upper_bound(offset);
    if (freed != freed_.begin() && offset - std::prev(freed)->first < std::prev(freed)->second)
      return fmt::format("it lies in the allocation of {} bytes at {:#x}, which was freed", std::prev(freed)->second,
                         device_base + std::prev(freed)->first);
    auto it = live_.upper_bound(offset);
    if (it != live_.begin()) {
      --it;
      const uint64_t from_start = offset - it->first;
      if (from_start < it->second)
        return fmt::format("the allocation of {} bytes at {:#x} ends inside it", it->second, device_base + it->first);
      return fmt::format("{} bytes beyond the end of the allocation of {} bytes at {:#x}", from_start - it->second,
                         it->second, device_base + it->first);
    }
  }
  return "no allocation is near it";
}

}  // namespace rndn::sim
