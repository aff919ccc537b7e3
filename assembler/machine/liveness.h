// Live units at the block boundaries, and register pressure (liveness.cpp).
#pragma once
#include <algorithm>
#include <bit>
#include <span>

#include "assembler/machine/ir.h"

namespace rndn::assembler {

inline constexpr uint32_t nobody = UINT32_MAX;  // no unit, no value, no range: the passes' tables by number

// A set of units that live in several blocks, by words of 64.
class LiveSet {
 public:
  struct Word {
    uint64_t bits;
    uint32_t chunk;  // bit k stands for the unit numbers[64 * chunk + k]
  };
  class Iterator {
   public:
    Iterator(const Word* word, const Word* end, const uint32_t* numbers)
        : word_(word), end_(end), numbers_(numbers), bits_(word == end ? 0 : word->bits) {}
    uint32_t operator*() const { return numbers_[64 * word_->chunk + static_cast<uint32_t>(std::countr_zero(bits_))]; }
    Iterator& operator++() {
      bits_ &= bits_ - 1;
      if (bits_ == 0 && ++word_ != end_) bits_ = word_->bits;
      return *this;
    }
    bool operator!=(const Iterator& o) const { return word_ != o.word_; }

   private:
    const Word *word_, *end_;
    const uint32_t* numbers_;
    uint64_t bits_;
  };

  LiveSet() = default;
  LiveSet(std::span<const Word> words, const uint32_t* numbers) : words_(words), numbers_(numbers) {}
  Iterator begin() const { return {words_.data(), words_.data() + words_.size(), numbers_}; }
  Iterator end() const { return {words_.data() + words_.size(), words_.data() + words_.size(), numbers_}; }
  // use(bits of the first set, bits of the second, chunk) for every chunk of two sets.
  template <class F>
  static void for_each_word(std::span<const Word> a, std::span<const Word> b, F&& use) {
    const Word *x = a.data(), *const x_end = x + a.size(), *y = b.data(), *const y_end = y + b.size();
    while (x != x_end || y != y_end) {
      const uint32_t i = x == x_end ? UINT32_MAX : x->chunk, k = y == y_end ? UINT32_MAX : y->chunk, chunk = std::min(i, k);
      const uint64_t first = i == chunk ? (x++)->bits : 0, second = k == chunk ? (y++)->bits : 0;
      use(first, second, chunk);
    }
  }
  // use(unit) for each that is in only one of two sets of one function.
  template <class F>
  static void for_each_difference(const LiveSet& a, const LiveSet& b, F&& use) {
    const uint32_t* const numbers = b.numbers_ ? b.numbers_ : a.numbers_;
    for_each_word(a.words_, b.words_, [&](uint64_t x, uint64_t y, uint32_t chunk) {
      for (uint64_t bits = x ^ y; bits; bits &= bits - 1) use(numbers[64 * chunk + static_cast<uint32_t>(std::countr_zero(bits))]);
    });
  }

 private:
  std::span<const Word> words_;  // by chunk
  const uint32_t* numbers_ = nullptr;
};

// Live units (GPRs and predicates) at the block boundaries. Lives in the function's arena.
class Liveness {
 public:
  // The sets of all blocks: of block b words[begin[b]] .. words[begin[b + 1]].
  struct Sets {
    std::span<const uint32_t> begin;
    std::span<const LiveSet::Word> words;
  };
  Liveness() = default;
  Liveness(const uint32_t* numbers, Sets in, Sets out, Sets undefined)
      : numbers_(numbers), in_(in), out_(out), undefined_(undefined) {}
  LiveSet in(BlockId b) const { return at(in_, b); }
  LiveSet out(BlockId b) const { return at(out_, b); }
  // What would be alive where the block begins, but has no value there on any path. All that the block reads or lets live on behind it is in one of the
  // two sets.
  LiveSet undefined(BlockId b) const { return at(undefined_, b); }

 private:
  LiveSet at(const Sets& s, BlockId b) const {
    if (s.begin.empty()) return {};
    return {s.words.subspan(s.begin[index(b)], s.begin[index(b) + 1] - s.begin[index(b)]), numbers_};
  }
  const uint32_t* numbers_ = nullptr;
  Sets in_, out_, undefined_;
};
Liveness compute_liveness(Function& f);
// The largest number of GPRs alive at once in the order of the code.
uint32_t register_pressure(const Function& f, const Liveness& live);
// The same of single blocks, with their code in any order: of a whole block, or step by step from its end. Lives in the function's arena.
class PressureOf {
 public:
  PressureOf(const Function& f, const Liveness& live);
  uint32_t block(BlockId b, std::span<const InstId> code);
  uint32_t start(BlockId b);   // alive at its end
  uint32_t before(InstId i);  // ... at once at the instruction in front of the last one

 private:
  const Units& units_;
  const Liveness& live_;
  std::span<uint32_t> alive_;  // by unit: number of the block in which it is alive
  uint32_t number_ = 0, now_ = 0;
};

}  // namespace rndn::assembler
