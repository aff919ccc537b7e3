// Stable sort of rows by packed keys (keys.h). Private to this folder.
#pragma once
#include <span>

#include "libraries/operators/keys.h"

namespace rndn::operators {

// What later kernels need: rows in sorted order and, of the most significant word, the keys in that order.
struct Sorted {
  Address rows = 0;       // i64[n]
  Address keys = 0;       // u32[n] or u64[n]; 0 when they were not asked for
  bool wide = false;      // u64 keys
  bool complete = false;  // equal keys are equal rows: there was but one word
  Address words = 0;      // scan_words zeroed u64s, for scans over the sorted rows
};

// Sorts n >= 1 rows, as Library::options says. keys: whether Sorted::keys is wanted. scan_words: how many zeroed u64s the caller wants.
Result<Sorted> sort_rows(Library& library, std::span<const Word> words, uint64_t n, bool keys, uint64_t scan_words,
                          Memory& memory);

// The rows that bound the look-back words of 32 bits: 30 bits of value.
inline constexpr uint64_t narrow_rows = (uint64_t{1} << 30) - 1;

}  // namespace rndn::operators
