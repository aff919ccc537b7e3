// A growing array whose elements are bytes that nobody constructs or destroys: for large records that are written in place as they are added, field by
// field, by code that knows which fields it needs.
//
// T is trivially copyable. Interface and meaning are std::vector's, as far as they go; what push() and resize() add is undefined.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "libraries/base/containers/huge_pages.h"

namespace rndn {

template <class T>
class RawVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  RawVector() = default;
  RawVector(const RawVector& o) { *this = o; }
  RawVector(RawVector&& o) noexcept { *this = std::move(o); }
  RawVector& operator=(const RawVector& o) {
    if (this == &o) return *this;
    size_ = 0;
    reserve(o.size_);
    if (o.size_) std::memcpy(static_cast<void*>(items_), o.items_, o.size_ * sizeof(T));
    size_ = o.size_;
    return *this;
  }
  RawVector& operator=(RawVector&& o) noexcept {
    std::swap(items_, o.items_);
    std::swap(size_, o.size_);
    std::swap(capacity_, o.capacity_);
    return *this;
  }
  ~RawVector() { std::allocator<T>().deallocate(items_, capacity_); }

  T* data() { return items_; }
  const T* data() const { return items_; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t k) { return items_[k]; }
  const T& operator[](size_t k) const { return items_[k]; }
  T& back() { return items_[size_ - 1]; }
  const T& back() const { return items_[size_ - 1]; }

  void clear() { size_ = 0; }
  void reserve(size_t n) {
    if (n > capacity_) grow(n);
  }
  void resize(size_t n) {
    reserve(n);
    size_ = n;
  }
  T& push() {
    if (size_ == capacity_) grow(size_ + 1);
    return items_[size_++];
  }
  void push_back(const T& x) {
    const T copy = x;  // may be an element
    push() = copy;
  }
  // n more elements, which the caller writes.
  T* extend(size_t n) {
    if (capacity_ - size_ < n) [[unlikely]]
      grow(size_ + n);
    T* const first = items_ + size_;
    size_ += n;
    return first;
  }
  void append(std::span<const T> from) {  // from elsewhere
    if (!from.empty()) std::memcpy(static_cast<void*>(extend(from.size())), from.data(), from.size_bytes());
  }
  void pop_back() { --size_; }

 private:
  [[gnu::noinline]] void grow(size_t wanted) {
    const size_t capacity = std::max(wanted, 2 * capacity_);
    T* larger = std::allocator<T>().allocate(capacity);
    prefer_huge_pages(larger, capacity * sizeof(T));
    if (size_) std::memcpy(static_cast<void*>(larger), items_, size_ * sizeof(T));
    std::allocator<T>().deallocate(items_, capacity_);
    items_ = larger;
    capacity_ = capacity;
  }

  T* items_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace rndn
