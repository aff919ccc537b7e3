// The random numbers of the official TPC-H generator: a Lehmer generator, x' = 16807 x mod 2^31 - 1 (Park and Miller,
// 1988).
//
// Every column has a stream of its own, which starts at a fixed seed and hands each row a fixed number of draws; a row
// that needs fewer leaves the rest unused. Row r of a stream with d draws per row therefore starts at seed * 16807^(r
// d), whatever came before: any row of any column can be made alone, in parallel and in any order.
//
// Cost: one step is a multiplication, a shift and two additions; skipping n draws takes O(log n) multiplications.
// Left out: the 64-bit generator that the official one changes to at scale 30000.
#pragma once
#include <cstdint>

namespace rndn::tpch {

inline constexpr uint32_t lehmer_modulus = 2147483647;  // 2^31 - 1, a prime
inline constexpr uint32_t lehmer_multiplier = 16807;

// a * b mod 2^31 - 1, for a, b in [0, 2^31 - 1). 2^31 = 1 (mod 2^31 - 1), so the high half is simply added to the low
// one.
constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint64_t product = uint64_t{a} * b;
  uint32_t sum = static_cast<uint32_t>(product & lehmer_modulus) + static_cast<uint32_t>(product >> 31);
  return sum >= lehmer_modulus ? sum - lehmer_modulus : sum;
}

constexpr uint32_t step(uint32_t seed) { return multiply(seed, lehmer_multiplier); }

// 16807^n mod 2^31 - 1: what n steps multiply a seed by.
constexpr uint32_t power(uint64_t n) {
  uint32_t result = 1;
  for (uint32_t factor = lehmer_multiplier; n; n >>= 1, factor = multiply(factor, factor))
    if (n & 1) result = multiply(result, factor);
  return result;
}

constexpr uint32_t skip(uint32_t seed, uint64_t steps) { return multiply(seed, power(steps)); }

// The official mapping of a seed to [0, range): the truncated product of two doubles. Reference for `scaled` below.
inline int64_t scaled_in_double(uint32_t seed, double range) {
  return static_cast<int32_t>(static_cast<double>(seed) / 2147483647.0 * range);
}

// The same for 0 < range <= 2^20, in integers: floor(seed * range / (2^31 - 1)). The quotient is never an integer (the
// divisor is a prime above both factors), so it is at least 2^-31 away from one, while the two roundings of the double
// computation move it by at most 2^20 * 2^-52: both truncate to the same number.
constexpr uint32_t scaled(uint32_t seed, uint32_t range) {
  uint64_t product = uint64_t{seed} * range;
  uint32_t high = static_cast<uint32_t>(product >> 31);
  uint32_t low = static_cast<uint32_t>(product & lehmer_modulus);
  return high + (uint64_t{high} + low >= lehmer_modulus);
}
inline constexpr uint32_t exact_range = 1 << 20;

// Uniform in [low, high], from the seed after a step.
inline int64_t bounded(uint32_t seed, int64_t low, int64_t high) {
  int64_t range = high - low + 1;
  if (range <= exact_range) return low + scaled(seed, static_cast<uint32_t>(range));
  return low + scaled_in_double(seed, static_cast<double>(range));
}

// Where a column's numbers come from.
struct Stream {
  uint32_t seed;
  uint32_t draws_per_row;
  uint32_t at(uint64_t row) const { return skip(seed, row * draws_per_row); }
};

}  // namespace rndn::tpch
