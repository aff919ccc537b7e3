#include "runtime/reference/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace rndn::reference {

namespace {

constexpr int64_t low_mask = 0xffffffff;

// Each word but the last to 0 .. 2^32 - 1; the last keeps the sign.
template <class Words>
void pass_carries(Words& words) {
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    words[i + 1] += words[i] >> 32;
    words[i] &= low_mask;
  }
}

}  // namespace

void ExactSum::carry() {
  pass_carries(words_);
  additions_ = 0;
}

void ExactSum::add(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const auto exponent = static_cast<uint32_t>(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) {
    special_ += x;
    return;
  }
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  const uint64_t mantissa = exponent ? fraction | uint64_t{1} << 52 : fraction;
  const uint32_t place = exponent ? exponent - 1 : 0;  // of the mantissa's bit 0, from `lowest`
  const uint32_t word = place / 32, shift = place % 32;
  const auto low = static_cast<int64_t>(mantissa << shift & static_cast<uint64_t>(low_mask));
  const auto high = static_cast<int64_t>(mantissa >> (32 - shift));  // less than 2^53
  const int64_t sign = bits >> 63 ? -1 : 1;
  words_[word] += sign * low;
  words_[word + 1] += sign * high;
  if (++additions_ == 512) carry();  // of less than 2^54 each: no word overflows
}

template <class T>
T ExactSum::rounded() const {
  using Limits = std::numeric_limits<T>;
  if (special_ != 0) return static_cast<T>(special_);  // NaN, too
  auto sum = words_;
  pass_carries(sum);
  const bool negative = sum.back() < 0;
  if (negative) {
    for (int64_t& word : sum) word = -word;
    pass_carries(sum);
  }
  int top = words - 1;
  while (top >= 0 && sum[static_cast<size_t>(top)] == 0) --top;
  if (top < 0) return 0;
  const int highest =
      32 * top + std::bit_width(static_cast<uint64_t>(sum[static_cast<size_t>(top)])) - 1;
  // Bits from `cut` on are kept: as many as T has, none below its smallest.
  const int smallest = Limits::min_exponent - Limits::digits - lowest;
  const int cut = std::max(highest - Limits::digits + 1, smallest);
  const auto bit = [&](int place) {
    return place >= 0 ? sum[static_cast<size_t>(place / 32)] >> place % 32 & 1 : 0;
  };
  uint64_t kept = 0;
  for (int place = highest; place >= cut; --place)
    kept = kept << 1 | static_cast<uint64_t>(bit(place));
  if (bit(cut - 1)) {
    const auto half = static_cast<size_t>((cut - 1) / 32);
    bool more = (sum[half] & ((int64_t{1} << (cut - 1) % 32) - 1)) != 0;
    for (size_t i = 0; i < half && !more; ++i) more = sum[i] != 0;
    if (more || kept & 1) ++kept;
  }
  const T magnitude = std::ldexp(static_cast<T>(kept), cut + lowest);
  return negative ? -magnitude : magnitude;
}

template float ExactSum::rounded() const;
template double ExactSum::rounded() const;

}  // namespace rndn::reference
