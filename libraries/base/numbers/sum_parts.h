// Sums of doubles as sums of integers, which take any order: what kernels and the reference interpreter agree on.
//
// x is the sum of its parts times 2^lowest of each, by one of two schemes:
//   narrow  each part has the sign of x and less than 2^36 in magnitude
//   wide    each part is the nearest integer (of two the even one) to what the parts before it leave: at most 2^30 in magnitude
// Numbers of 2^48 and more, and those with bits below the last part's, have no parts. Sums of as many parts as most_summed stay within 2^62.
#pragma once
#include <cstddef>
#include <cstdint>

namespace rndn::sum_parts {

inline constexpr size_t most_parts = 4;

struct Scheme {
  size_t first, count;     // its parts' numbers in GPU.sum_part
  int lowest[most_parts];  // exponent of a part's bit 0
  int part_bits;           // of a part's magnitude, at most 2^part_bits
  uint64_t most_summed;
  constexpr int distance() const { return lowest[0] - lowest[1]; }
  constexpr size_t last() const { return first + count - 1; }
};

inline constexpr Scheme narrow{
    .first = 0, .count = 3, .lowest = {12, -24, -60}, .part_bits = 36, .most_summed = uint64_t{1} << 26};
inline constexpr Scheme wide{
    .first = 3, .count = 4, .lowest = {19, -12, -43, -74}, .part_bits = 30, .most_summed = uint64_t{1} << 32};
inline constexpr int limit = 48;  // numbers are below 2^limit

constexpr const Scheme& scheme_of(size_t part) { return part < wide.first ? narrow : wide; }

static_assert(narrow.most_summed << narrow.part_bits == uint64_t{1} << 62 &&
              wide.most_summed << wide.part_bits == uint64_t{1} << 62);
static_assert(limit - narrow.lowest[0] <= narrow.part_bits && limit - wide.lowest[0] <= wide.part_bits);
static_assert(narrow.distance() <= narrow.part_bits &&
              wide.distance() - 1 <= wide.part_bits);  // half of the part before it

}  // namespace rndn::sum_parts
