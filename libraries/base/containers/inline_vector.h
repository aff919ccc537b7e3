// A vector whose first N elements lie in the object itself: the short lists of an IR (operands, targets, types) then cost no allocation and are
// copied with what they belong to.
//
// T is trivially copyable, so that elements are moved as bytes and need no destructors. Interface and meaning are std::vector's, as far as they go.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <type_traits>

namespace rndn {

template <class T, uint32_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T> && N > 0);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  InlineVector() {}
  InlineVector(std::initializer_list<T> items) { append(items.begin(), items.size()); }
  template <std::forward_iterator I>
  InlineVector(I first, I last) {
    assign(first, last);
  }
  InlineVector(const InlineVector& o) { append(o.data(), o.size_); }
  InlineVector(InlineVector&& o) noexcept { take(o); }
  InlineVector& operator=(const InlineVector& o) {
    if (this == &o) return *this;
    size_ = 0;
    append(o.data(), o.size_);
    return *this;
  }
  InlineVector& operator=(InlineVector&& o) noexcept {
    if (this == &o) return *this;
    release();
    take(o);
    return *this;
  }
  InlineVector& operator=(std::initializer_list<T> items) {
    size_ = 0;
    append(items.begin(), items.size());
    return *this;
  }
  ~InlineVector() { release(); }

  T* data() { return outside() ? heap_ : items(); }
  const T* data() const { return outside() ? heap_ : items(); }
  iterator begin() { return data(); }
  iterator end() { return data() + size_; }
  const_iterator begin() const { return data(); }
  const_iterator end() const { return data() + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t k) { return data()[k]; }
  const T& operator[](size_t k) const { return data()[k]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void push_back(const T& x) {
    if (size_ < capacity_) [[likely]] {
      data()[size_++] = x;
      return;
    }
    const T copy = x;  // may be an element
    grow(size_ + 1);
    data()[size_++] = copy;
  }
  T& emplace_back(const T& x = T()) {
    push_back(x);
    return back();
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void resize(size_t n, const T& x = T()) {
    if (n > capacity_) grow(n);
    if (n > size_) std::fill_n(data() + size_, n - size_, x);
    size_ = static_cast<uint32_t>(n);
  }
  template <std::forward_iterator I>
  void assign(I first, I last) {
    const auto n = static_cast<size_t>(std::distance(first, last));
    if (n > capacity_) grow(n);
    std::copy(first, last, data());
    size_ = static_cast<uint32_t>(n);
  }
  // From another container.
  template <std::forward_iterator I>
  iterator insert(const_iterator at, I first, I last) {
    const size_t place = static_cast<size_t>(at - data()), n = static_cast<size_t>(std::distance(first, last));
    if (size_ + n > capacity_) grow(size_ + n);
    T* p = data() + place;
    std::copy_backward(p, end(), end() + n);
    std::copy(first, last, p);
    size_ += static_cast<uint32_t>(n);
    return p;
  }
  iterator insert(const_iterator at, const T& x) {
    const T copy = x;
    return insert(at, &copy, &copy + 1);
  }
  iterator erase(const_iterator at) { return erase(at, at + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    T* p = data() + (first - data());
    std::copy(last, static_cast<const_iterator>(end()), p);
    size_ -= static_cast<uint32_t>(last - first);
    return p;
  }
  bool operator==(const InlineVector& o) const { return std::equal(begin(), end(), o.begin(), o.end()); }

 private:
  bool outside() const { return capacity_ > N; }
  T* items() { return reinterpret_cast<T*>(own_); }
  const T* items() const { return reinterpret_cast<const T*>(own_); }
  void append(const T* from, size_t n) {
    if (size_ + n > capacity_) grow(size_ + n);
    std::copy(from, from + n, data() + size_);
    size_ += static_cast<uint32_t>(n);
  }
  void grow(size_t wanted) {
    const size_t capacity = std::max<size_t>(wanted, size_t{2} * capacity_);
    T* larger = std::allocator<T>().allocate(capacity);
    std::copy(begin(), end(), larger);
    release();
    heap_ = larger;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  void release() {
    if (outside()) std::allocator<T>().deallocate(heap_, capacity_);
    capacity_ = N;
  }
  void take(InlineVector& o) {
    size_ = o.size_;
    if (o.outside()) {
      heap_ = o.heap_;
      capacity_ = o.capacity_;
      o.capacity_ = N;
    } else {
      capacity_ = N;
      std::copy(o.items(), o.items() + o.size_, items());
    }
    o.size_ = 0;
  }

  uint32_t size_ = 0, capacity_ = N;
  union {
    T* heap_;                                  // when capacity_ > N
    alignas(T) std::byte own_[N * sizeof(T)];  // else
  };
};

}  // namespace rndn
