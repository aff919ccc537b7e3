// Sums of doubles as sums of integers, which take any order: what kernels and the reference interpreter agree on.
//
// x is the sum of its parts times 2^lowest of each; a part is the nearest integer (of two the even one) to what the parts before it leave: at most
// 2^30 in magnitude. Numbers of 2^48 and more, and those with bits below the last part's, have no parts. Sums of 2^32 parts stay within 2^62.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rndn::sum_parts {

inline constexpr size_t count = 4, last = count - 1;
inline constexpr int lowest[count] = {19, -12, -43, -74};  // exponent of a part's bit 0
inline constexpr int distance = lowest[0] - lowest[1], part_bits = 30;
inline constexpr uint64_t most_summed = uint64_t{1} << 32;
inline constexpr int limit = 48;  // numbers are below 2^limit

static_assert(most_summed << part_bits == uint64_t{1} << 62);
static_assert(limit - lowest[0] <= part_bits);
static_assert(distance - 1 <= part_bits);  // half of the part before it

}  // namespace rndn::sum_parts
