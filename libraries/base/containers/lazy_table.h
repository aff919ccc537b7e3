// A table whose entries are made when somebody first asks for them, from any thread, and never change afterwards: for facts about many rows of which
// a run needs few.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>

#include "libraries/base/containers/arena.h"

namespace rndn {

template <class T>
class LazyTable {
 public:
  explicit LazyTable(size_t n) : entries_(std::make_unique<std::atomic<const T*>[]>(n)) {}

  // Entry k; make() gives its value and asks for no entry of the table.
  template <class F>
  const T& get(size_t k, F&& make) const {
    const T* entry = entries_[k].load(std::memory_order_acquire);
    return entry ? *entry : add(k, make);
  }

 private:
  template <class F>
  [[gnu::noinline, gnu::cold]] const T& add(size_t k, F&& make) const {
    std::lock_guard lock(mutex_);
    const T* entry = entries_[k].load(std::memory_order_relaxed);
    if (!entry) {
      entry = new (arena_.allocate(sizeof(T), alignof(T))) T(make());
      entries_[k].store(entry, std::memory_order_release);
    }
    return *entry;
  }
  static_assert(std::is_trivially_destructible_v<T>);

  std::unique_ptr<std::atomic<const T*>[]> entries_;
  mutable std::mutex mutex_;
  mutable Arena arena_;
};

}  // namespace rndn
