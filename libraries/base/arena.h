// Bump allocation: one arena per compilation, freed at once.
//
// Objects in an arena are never destroyed one by one, so only trivially destructible types are allowed.
// Slabs double from 16 KiB to 1 MiB; `reset` keeps the largest slab for the next compilation.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rndn {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  Arena(Arena&&) = default;
  Arena& operator=(Arena&&) = default;

  // `bytes` bytes aligned to `alignment` (a power of two); contents undefined. Lives as long as the arena.
  void* allocate(size_t bytes, size_t alignment) {
    if (slabs_.empty() || aligned(alignment) + bytes > slab_size_) grow(bytes + alignment);
    size_t at = aligned(alignment);
    used_ = at + bytes;
    return slabs_.back().get() + at;
  }

  template <class T>
  std::span<T> make_span(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* p = static_cast<T*>(allocate(n * sizeof(T), alignof(T)));
    for (size_t i = 0; i < n; ++i) new (p + i) T();
    return {p, n};
  }

  template <class T>
  std::span<T> copy(std::span<const T> from) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* p = static_cast<T*>(allocate(from.size_bytes(), alignof(T)));
    std::uninitialized_copy(from.begin(), from.end(), p);
    return {p, from.size()};
  }

  std::string_view copy(std::string_view text) {
    char* p = static_cast<char*>(allocate(text.size(), 1));
    if (!text.empty()) std::memcpy(p, text.data(), text.size());
    return {p, text.size()};
  }

  // Forgets every object.
  void reset() {
    if (slabs_.size() > 1) slabs_.erase(slabs_.begin(), slabs_.end() - 1);
    used_ = 0;
  }

 private:
  // The first offset of the last slab that is free and whose address has this alignment.
  size_t aligned(size_t alignment) const {
    uintptr_t base = reinterpret_cast<uintptr_t>(slabs_.back().get());
    return ((base + used_ + alignment - 1) & ~(alignment - 1)) - base;
  }

  void grow(size_t at_least) {
    slab_size_ = slab_size_ == 0 ? 16 << 10 : std::min<size_t>(slab_size_ * 2, 1 << 20);
    if (slab_size_ < at_least) slab_size_ = at_least;
    slabs_.push_back(std::make_unique_for_overwrite<std::byte[]>(slab_size_));
    used_ = 0;
  }

  std::vector<std::unique_ptr<std::byte[]>> slabs_;
  size_t slab_size_ = 0;  // bytes in the last slab
  size_t used_ = 0;       // bytes of the last slab in use
};

}  // namespace rndn
