// A set of small integers of a size known at run time; the workhorse of data-flow analyses.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rndn {

class Bitset {
 public:
  Bitset() = default;
  explicit Bitset(size_t n) : words_((n + 63) / 64), size_(n) {}

  size_t size() const { return size_; }
  bool test(size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  void set(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  void reset(size_t i) { words_[i / 64] &= ~(uint64_t{1} << (i % 64)); }
  void clear() { words_.assign(words_.size(), 0); }

  // this |= other; true if anything was added. Sizes must be equal.
  bool merge(const Bitset& other) {
    uint64_t added = 0;
    for (size_t w = 0; w < words_.size(); ++w) {
      added |= other.words_[w] & ~words_[w];
      words_[w] |= other.words_[w];
    }
    return added != 0;
  }
  void subtract(const Bitset& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] &= ~other.words_[w];
  }
  void intersect(const Bitset& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] &= other.words_[w];
  }
  size_t count() const {
    size_t n = 0;
    for (uint64_t w : words_) n += std::popcount(w);
    return n;
  }
  bool any() const {
    for (uint64_t w : words_)
      if (w) return true;
    return false;
  }
  // Calls f(i) for every member in ascending order.
  template <class F>
  void for_each(F&& f) const {
    for (size_t w = 0; w < words_.size(); ++w)
      for (uint64_t bits = words_[w]; bits; bits &= bits - 1) f(w * 64 + std::countr_zero(bits));
  }
  bool operator==(const Bitset&) const = default;

 private:
  std::vector<uint64_t> words_;
  size_t size_ = 0;
};

}  // namespace rndn
