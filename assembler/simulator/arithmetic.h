// Scalar arithmetic of the GPU that C++ does not have as such: flushing of denormals, NaN results, conversions, half precision.
// Sources: PTX ISA, sections 9.7.3 (floating point) and 9.7.9.21 (cvt).
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace rndn::sim {

inline float as_float(uint32_t x) { return std::bit_cast<float>(x); }
inline uint32_t as_bits(float x) { return std::bit_cast<uint32_t>(x); }
inline double as_double(uint64_t x) { return std::bit_cast<double>(x); }
inline uint64_t as_bits(double x) { return std::bit_cast<uint64_t>(x); }

inline constexpr uint32_t canonical_nan = 0x7fffffff;  // what 32-bit operations give for NaN

inline uint32_t flush(uint32_t x) { return (x & 0x7f800000) ? x : x & 0x80000000; }
inline uint32_t canonical(uint32_t x) { return (x & 0x7fffffff) > 0x7f800000 ? canonical_nan : x; }
// [0, 1], NaN to 0
inline uint32_t saturate(uint32_t x) {
  const float f = as_float(x);
  return f > 0 ? (f < 1 ? x : 0x3f800000) : 0;
}

// Half precision, IEEE binary16. Any NaN becomes 0x7fff (f32: 0x7fffffff).
inline uint32_t half_to_float(uint32_t h) {
  const uint32_t sign = (h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
  if (exponent == 31) return fraction ? canonical_nan : sign | 0x7f800000;
  if (exponent) return sign | (exponent + 112) << 23 | fraction << 13;
  return as_bits(std::copysign(static_cast<float>(fraction) * 0x1p-24f, as_float(sign)));
}
// rounding: 0 nearest even, 1 down, 2 up, 3 towards zero
inline uint32_t double_to_half(double x, uint32_t rounding) {
  const uint32_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return 0x7fff;
  if (std::isinf(x)) return sign | 0x7c00;
  const double magnitude = std::fabs(x);
  // One unit in the last place at this size; below 2^-14 the halves are spaced 2^-24 apart.
  const int exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
  const double scaled = std::ldexp(magnitude, 10 - exponent);  // exact; in [0, 2048)
  double whole = std::floor(scaled);
  const double rest = scaled - whole;
  const bool away = (rounding == 1 && sign) || (rounding == 2 && !sign);
  if (rounding == 0 ? rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) == 1) : away && rest > 0) whole += 1;
  const double rounded = std::ldexp(whole, exponent - 10);
  if (rounded >= 65536.0) return rounding == 0 || away ? sign | 0x7c00 : sign | 0x7bff;
  if (rounded < 0x1p-14) return sign | static_cast<uint32_t>(std::ldexp(rounded, 24));
  const int e = std::ilogb(rounded);
  return sign | static_cast<uint32_t>(e + 15) << 10 | (static_cast<uint32_t>(std::ldexp(rounded, 10 - e)) & 0x3ff);
}

// The same to bfloat16: 8 digits, exponents as f32 has them.
inline uint32_t double_to_bfloat(double x, uint32_t rounding) {
  const uint32_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return 0x7fff;
  if (std::isinf(x) || x == 0) return sign | (x == 0 ? 0 : 0x7f80);
  const double magnitude = std::fabs(x);
  const int exponent = std::max(std::ilogb(magnitude), -126) - 7;  // of the last place
  const double scaled = std::ldexp(magnitude, -exponent);
  double whole = std::floor(scaled);
  const double rest = scaled - whole;
  const bool away = (rounding == 1 && sign) || (rounding == 2 && !sign);
  if (rounding == 0 ? rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) == 1) : away && rest > 0) whole += 1;
  const double rounded = std::ldexp(whole, exponent);
  if (rounded >= 0x1p128) return sign | (rounding == 0 || away ? 0x7f80u : 0x7f7fu);
  return sign | as_bits(static_cast<float>(rounded)) >> 16;
}

// To an integral value by mode 0 nearest even, 1 floor, 2 ceil, 3 truncate.
inline double round_to_integral(double x, uint32_t mode) {
  switch (mode) {
    case 0: return std::nearbyint(x);
    case 1: return std::floor(x);
    case 2: return std::ceil(x);
    default: return std::trunc(x);
  }
}

// Float to integer of `bits` bits, saturating. NaN: 0 from f32 and f16 to at most 32 bits, else 1 << (bits - 1) (PTX ISA, cvt).
inline uint64_t to_integer(double x, uint32_t bits, bool is_signed, uint32_t mode, bool wide_nan) {
  if (std::isnan(x)) return wide_nan ? uint64_t{1} << (bits - 1) : 0;
  x = round_to_integral(x, mode);
  if (is_signed) {
    const double limit = std::ldexp(1.0, static_cast<int>(bits) - 1);
    if (x >= limit) return (uint64_t{1} << (bits - 1)) - 1;
    if (x < -limit) return ~((uint64_t{1} << (bits - 1)) - 1);
    return static_cast<uint64_t>(static_cast<int64_t>(x));
  }
  if (x < 0) return 0;
  if (x >= std::ldexp(1.0, static_cast<int>(bits))) return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return static_cast<uint64_t>(x);
}

inline uint64_t sign_extend(uint64_t x, uint32_t bits) {
  return bits >= 64 ? x : static_cast<uint64_t>(static_cast<int64_t>(x << (64 - bits)) >> (64 - bits));
}
inline uint64_t zero_extend(uint64_t x, uint32_t bits) { return bits >= 64 ? x : x & ((uint64_t{1} << bits) - 1); }

// PRMT: byte i of the result is chosen by nibble i of the selector from the bytes of a (0..3) and c (4..7); bit 3 replicates the sign.
inline uint32_t permute(uint32_t a, uint32_t selector, uint32_t c, uint32_t mode) {
  const uint64_t bytes = static_cast<uint64_t>(c) << 32 | a;
  uint32_t nibbles = 0;
  const uint32_t s = selector & 3;
  switch (mode) {
    case 0: nibbles = selector & 0xffff; break;
    case 1: nibbles = 0x3210u + 0x1111u * s; break;  // F4E
    case 2:
      for (uint32_t i = 0; i < 4; ++i) nibbles |= ((s + 8 - i) & 7) << 4 * i;
      break;                               // B4E
    case 3: nibbles = 0x1111u * s; break;  // RC8
    case 4:
      for (uint32_t i = 0; i < 4; ++i) nibbles |= (i > s ? i : s) << 4 * i;
      break;  // ECL
    case 5:
      for (uint32_t i = 0; i < 4; ++i) nibbles |= (i < s ? i : s) << 4 * i;
      break;                                              // ECR
    default: nibbles = (s & 1) ? 0x3232 : 0x1010; break;  // RC16
  }
  uint32_t r = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t n = nibbles >> 4 * i & 15;
    uint32_t byte = static_cast<uint32_t>(bytes >> 8 * (n & 7)) & 0xff;
    if (n & 8) byte = byte & 0x80 ? 0xff : 0;
    r |= byte << 8 * i;
  }
  return r;
}

}  // namespace rndn::sim
