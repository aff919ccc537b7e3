// Sums of doubles as three sums of integers, which take any order: what kernels and the reference interpreter agree on.
//
// x = p0 * 2^12 + p1 * 2^-24 + p2 * 2^-60, each part with the sign of x and less than 2^36 in magnitude. Numbers of 2^48 and more, and those
// with bits below 2^-60, have no parts. Sums of as many parts as most_summed stay below 2^62.
#pragma once
#include <cstdint>

namespace rndn::sum_parts {

inline constexpr int count = 3, bits = 36;
inline constexpr int lowest[count] = {12, -24, -60};  // exponent of a part's bit 0
inline constexpr int limit = 48;                      // numbers are below 2^limit
inline constexpr uint64_t most_summed = uint64_t{1} << 26;

}  // namespace rndn::sum_parts
