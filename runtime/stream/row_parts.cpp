#include "runtime/stream/row_parts.h"

#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>

#include "libraries/base/errors/check.h"
#include "libraries/base/system/cancel.h"
#include "libraries/base/system/parallel.h"

namespace rndn::runtime {

using data::Value;
using hir::BasicType;

namespace {

constexpr uint64_t hashed_at_a_time = 1 << 16;  // that a thread hashes at a time

uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

uint64_t word_of(double x) {
  if (std::isnan(x)) return 0;
  return std::bit_cast<uint64_t>(x == 0 ? 0.0 : x);
}

// hash = mix(hash + what `word` gives for the row)
template <class Word>
void add_words(std::vector<uint64_t>& hashes, Word&& word) {
  const uint64_t rows = hashes.size();
  parallel_for((rows + hashed_at_a_time - 1) / hashed_at_a_time, [&](size_t piece) {
    const uint64_t end = std::min(rows, (piece + 1) * hashed_at_a_time);
    for (uint64_t i = piece * hashed_at_a_time; i < end; ++i) hashes[i] = mix(hashes[i] + word(i));
  });
}

template <class T>
void add_numbers(std::vector<uint64_t>& hashes, const Value& key, BasicType as) {
  const T* x = key.as<T>();
  // A number of 32 bits is the same as one of 64: compared in singles, both are rounded.
  if (as == BasicType::f32)
    add_words(hashes, [&](uint64_t i) { return word_of(double{static_cast<float>(x[i])}); });
  else if (hir::is_float(as))
    add_words(hashes, [&](uint64_t i) { return word_of(static_cast<double>(x[i])); });
  else
    add_words(hashes, [&](uint64_t i) { return static_cast<uint64_t>(static_cast<int64_t>(x[i])); });
}

void add_key(std::vector<uint64_t>& hashes, const Value& key, BasicType as) {
  if (hir::is_text(key.type)) {
    std::vector<uint64_t> codes(key.codes ? key.texts->size() : 0);
    for (size_t i = 0; i < codes.size(); ++i)
      codes[i] = std::hash<std::string_view>{}((*key.texts)[i]);
    return add_words(hashes, [&](uint64_t i) {
      return key.codes ? codes[(*key.codes)[i]] : std::hash<std::string_view>{}(key.text(i));
    });
  }
  if (hir::is_wide(key.type)) return add_numbers<__int128>(hashes, key, as);
  if (key.type == BasicType::f64) return add_numbers<double>(hashes, key, as);
  if (key.type == BasicType::f32) return add_numbers<float>(hashes, key, as);
  switch (data::plain_width(key.type)) {
    case 1:
      return key.type == BasicType::boolean ? add_numbers<uint8_t>(hashes, key, as)
                                            : add_numbers<int8_t>(hashes, key, as);
    case 2: return add_numbers<int16_t>(hashes, key, as);
    case 4: return add_numbers<int32_t>(hashes, key, as);
    default: return add_numbers<int64_t>(hashes, key, as);
  }
}

}  // namespace

RowParts::RowParts(std::span<const Value> keys, std::span<const BasicType> as, uint64_t rows,
                   unsigned bits)
    : begins_((size_t{1} << bits) + 1) {
  const bool in_parts = !keys.empty() && bits > 0;
  expect_memory(rows * (sizeof(uint32_t) + (in_parts ? sizeof(uint64_t) : 0)));
  rows_.resize(rows);
  if (!in_parts) {
    std::iota(rows_.begin(), rows_.end(), 0);
    std::fill(begins_.begin() + 1, begins_.end(), rows);
    return;
  }
  std::vector<uint64_t> hashes(rows);
  for (size_t k = 0; k < keys.size(); ++k) add_key(hashes, keys[k], as[k]);
  const unsigned shift = 64 - bits;
  for (uint64_t h : hashes) ++begins_[(h >> shift) + 1];
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  std::vector<uint64_t> next(begins_.begin(), begins_.end() - 1);
  for (uint64_t i = 0; i < rows; ++i) rows_[next[hashes[i] >> shift]++] = static_cast<uint32_t>(i);
}

}  // namespace rndn::runtime
