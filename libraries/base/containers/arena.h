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
#include <utility>
#include <vector>

#include "libraries/base/containers/huge_pages.h"

namespace rndn {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  Arena(Arena&& o) noexcept { *this = std::move(o); }
  Arena& operator=(Arena&& o) noexcept {
    slabs_ = std::move(o.slabs_);
    current_ = std::exchange(o.current_, 0), next_ = std::exchange(o.next_, 0), end_ = std::exchange(o.end_, 0);
    return *this;
  }

  // `bytes` bytes aligned to `alignment` (a power of two); contents undefined. Lives as long as the arena.
  void* allocate(size_t bytes, size_t alignment) {
    uintptr_t at = (next_ + alignment - 1) & ~(alignment - 1);
    if (at + bytes >= end_) [[unlikely]]
      at = grow(bytes, alignment);
    next_ = at + bytes;
    return reinterpret_cast<void*>(at);
  }

  template <class T>
  std::span<T> make_span(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* p = static_cast<T*>(allocate(n * sizeof(T), alignof(T)));
    for (size_t i = 0; i < n; ++i) new (p + i) T();
    return {p, n};
  }
  template <class T>
  std::span<T> make_span(size_t n, const T& value) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* p = static_cast<T*>(allocate(n * sizeof(T), alignof(T)));
    std::uninitialized_fill_n(p, n, value);
    return {p, n};
  }

  // Contents undefined.
  template <class T>
  std::span<T> make_raw(size_t n) {
    static_assert(std::is_trivially_destructible_v<T> && std::is_trivially_copyable_v<T>);
    return {static_cast<T*>(allocate(n * sizeof(T), alignof(T))), n};
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

  // A point to go back to: what was allocated after `mark` is forgotten by `rewind`, its slabs stay for what comes.
  struct Mark {
    size_t slab = 0;
    uintptr_t next = 0;  // 0: of an arena without slabs
  };
  Mark mark() const { return {current_, next_}; }
  void rewind(Mark m) {
    if (slabs_.empty()) return;
    if (m.slab != current_ || m.next == 0) enter(m.slab);
    if (m.next) next_ = m.next;
  }

  // Forgets every object.
  void reset() {
    if (slabs_.size() > 1) slabs_.erase(slabs_.begin(), slabs_.end() - 1);
    if (!slabs_.empty()) enter(0);
  }

 private:
  struct Slab {
    std::unique_ptr<std::byte[]> memory;
    size_t size;
  };

  void enter(size_t slab) {
    current_ = slab;
    next_ = reinterpret_cast<uintptr_t>(slabs_[slab].memory.get()), end_ = next_ + slabs_[slab].size;
  }
  // Goes on to a slab with room; returns where there is.
  [[gnu::noinline]] uintptr_t grow(size_t bytes, size_t alignment) {
    const size_t at_least = bytes + alignment;
    size_t slab = slabs_.empty() ? 0 : current_ + 1;
    while (slab < slabs_.size() && slabs_[slab].size < at_least) ++slab;
    if (slab == slabs_.size()) {
      const size_t last = slabs_.empty() ? 0 : slabs_.back().size;
      const size_t size = std::max(at_least, last == 0 ? size_t{16} << 10 : std::min<size_t>(last * 2, 1 << 20));
      slabs_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
      prefer_huge_pages(slabs_.back().memory.get(), size);
    }
    enter(slab);
    return (next_ + alignment - 1) & ~(alignment - 1);
  }

  std::vector<Slab> slabs_;  // those after `current_` are free
  size_t current_ = 0;
  uintptr_t next_ = 0, end_ = 0;  // what is free of the current slab
};

// A growing array in an arena; what it outgrows stays behind until the arena is rewound.
template <class T>
class ArenaList {
 public:
  ArenaList(Arena& arena, size_t capacity) : arena_(&arena), items_(arena.make_raw<T>(std::max<size_t>(capacity, 1))) {}
  uint32_t push(const T& x) {
    if (count_ == items_.size()) {
      std::span<T> larger = arena_->make_raw<T>(count_ * 2);
      std::copy(items_.begin(), items_.end(), larger.begin());
      items_ = larger;
    }
    items_[count_] = x;
    return static_cast<uint32_t>(count_++);
  }
  // Room for n behind the last, to be written before take(), which makes as many of them elements as are worth it.
  T* more(size_t n) {
    if (count_ + n > items_.size()) {
      std::span<T> larger = arena_->make_raw<T>(count_ * 2 + n);
      std::copy(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(count_), larger.begin());
      items_ = larger;
    }
    return items_.data() + count_;
  }
  void take(size_t n) { count_ += n; }
  T& operator[](size_t k) { return items_[k]; }
  const T& operator[](size_t k) const { return items_[k]; }
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  void resize_down(size_t n) { count_ = n; }
  void clear() { count_ = 0; }
  std::span<T> all() { return items_.first(count_); }
  std::span<const T> all() const { return items_.first(count_); }

 private:
  Arena* arena_;
  std::span<T> items_;
  size_t count_ = 0;
};

// Forgets at its end what was allocated during its life.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;
  ~ArenaScope() { arena_.rewind(mark_); }

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

}  // namespace rndn
