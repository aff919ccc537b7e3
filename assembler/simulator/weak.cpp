// Weak memory; see weak.h. Cost: of an access linear, of a step quadratic in the stores that wait, 512 at most.
#include "assembler/simulator/weak.h"

#include <algorithm>
#include <cstring>

namespace rndn::sim {

namespace {
constexpr size_t most_pending = 512;
bool overlap(const std::byte* a, uint32_t na, const std::byte* b, uint32_t nb) { return a < b + nb && b < a + na; }
}  // namespace

uint32_t Weak::next() {  // xorshift
  random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
  return static_cast<uint32_t>(random_ >> 32);
}

void Weak::arrive(const Pending& p) {
  std::memcpy(p.at, p.value.data(), p.size);
  const auto address = reinterpret_cast<uintptr_t>(p.at);
  if (const auto line = lines_.find({p.block, address & ~uintptr_t{31}}); line != lines_.end())
    std::memcpy(line->second.data() + (address & 31), p.value.data(), p.size);
}

void Weak::store(const Block* block, std::byte* at, const std::byte* value, uint32_t size) {
  if (pending_.size() == most_pending) {
    arrive(pending_.front());
    pending_.erase(pending_.begin());
  }
  Pending p{block, at, size, {}};
  std::memcpy(p.value.data(), value, size);
  pending_.push_back(p);
}

void Weak::load(const Block* block, const std::byte* at, std::byte* value, uint32_t size, bool cached) {
  const std::byte* from = at;
  if (cached) {
    const auto address = reinterpret_cast<uintptr_t>(at), sector = address & ~uintptr_t{31};
    auto [line, fresh] = lines_.try_emplace({block, sector});
    if (fresh) std::memcpy(line->second.data(), reinterpret_cast<const std::byte*>(sector), 32);
    from = line->second.data() + (address & 31);
  }
  std::memcpy(value, from, size);
  for (const Pending& p : pending_)
    if (p.block == block && overlap(p.at, p.size, at, size))
      for (uint32_t i = 0; i < p.size; ++i)
        if (p.at + i >= at && p.at + i < at + size) value[p.at + i - at] = p.value[i];
}

void Weak::settle(const Block* block, const std::byte* at, uint32_t size) {
  std::erase_if(pending_, [&](const Pending& p) {
    const bool there = p.block == block && overlap(p.at, p.size, at, size);
    if (there) arrive(p);
    return there;
  });
  lines_.erase({block, reinterpret_cast<uintptr_t>(at) & ~uintptr_t{31}});
}

void Weak::fence(const Block* block) {
  std::erase_if(pending_, [&](const Pending& p) {
    if (p.block == block) arrive(p);
    return p.block == block;
  });
}

void Weak::drift() {
  if (next() % 64 == 0) std::erase_if(lines_, [&](const auto&) { return next() % 2; });
  for (size_t i = 0; i < pending_.size();) {
    const Pending& p = pending_[i];
    const bool held = std::any_of(pending_.begin(), pending_.begin() + static_cast<ptrdiff_t>(i),
                                  [&](const Pending& q) { return overlap(p.at, p.size, q.at, q.size); });
    if (held || next() % 8) {
      ++i;
      continue;
    }
    arrive(p);
    pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void Weak::finish() {
  for (const Pending& p : pending_) arrive(p);
  pending_.clear(), lines_.clear();
}

}  // namespace rndn::sim
