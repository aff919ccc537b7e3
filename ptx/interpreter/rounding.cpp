// Exact rounding, see rounding.h. Method: keep the value as an integer and a power of two, cut at the last place that the format has,
// decide by the bits cut off (guard and sticky), and let a carry run into the exponent.
#include "ptx/interpreter/rounding.h"

#include <bit>
#include <cmath>

namespace rndn::ptx {
namespace {

using u128 = unsigned __int128;

int bit_length(u128 v) {
  uint64_t high = static_cast<uint64_t>(v >> 64), low = static_cast<uint64_t>(v);
  return high ? 128 - std::countl_zero(high) : 64 - std::countl_zero(low);
}

// magnitude / 2^shift rounded to an integer; shift >= 0.
u128 shift_round(u128 magnitude, int shift, bool negative, Rounding rounding) {
  if (shift <= 0) return magnitude << -shift;
  u128 kept = shift >= 128 ? 0 : magnitude >> shift;
  bool half = shift <= 128 && ((magnitude >> (shift - 1)) & 1);
  bool rest = shift > 128 ? magnitude != 0 : (magnitude & ((u128{1} << (shift - 1)) - 1)) != 0;
  bool up = false;
  switch (rounding) {
    case Rounding::rz:
    case Rounding::rzi: break;
    case Rounding::rm:
    case Rounding::rmi: up = negative && (half || rest); break;
    case Rounding::rp:
    case Rounding::rpi: up = !negative && (half || rest); break;
    default: up = half && (rest || (kept & 1)); break;  // to nearest, ties to even
  }
  return kept + up;
}

}  // namespace

Format format_of(Type type) {
  switch (type) {
    case Type::f16: return format_f16;
    case Type::bf16: return format_bf16;
    case Type::f32: return format_f32;
    default: return format_f64;
  }
}

uint64_t infinity(bool negative, Format f) {
  return (static_cast<uint64_t>(negative) << f.exponent | ((uint64_t{1} << f.exponent) - 1)) << f.mantissa;
}

uint64_t encode(bool negative, u128 magnitude, int exponent, Format f, Rounding rounding) {
  const uint64_t sign = static_cast<uint64_t>(negative) << (f.exponent + f.mantissa);
  if (magnitude == 0) return sign;
  const int bias = (1 << (f.exponent - 1)) - 1,
            lowest = 1 - bias - f.mantissa;                      // exponent of the last place of subnormals
  int last = exponent + bit_length(magnitude) - 1 - f.mantissa;  // exponent of the last place kept
  if (last < lowest) last = lowest;
  u128 m = shift_round(magnitude, last - exponent, negative, rounding);
  // m has f.mantissa + 1 bits, fewer when subnormal, or one more after a carry; adding it to the exponent field does the rest.
  uint64_t bits = static_cast<uint64_t>(m) + (static_cast<uint64_t>(last - lowest) << f.mantissa);
  const uint64_t inf = infinity(false, f);
  if (bits >= inf) {
    bool finite =
        rounding == Rounding::rz || (rounding == Rounding::rm && !negative) || (rounding == Rounding::rp && negative);
    bits = finite ? inf - 1 : inf;
  }
  return sign | bits;
}

Decoded decode(uint64_t bits, Format f) {
  Decoded d;
  d.negative = bits >> (f.exponent + f.mantissa) & 1;
  uint64_t e = bits >> f.mantissa & ((uint64_t{1} << f.exponent) - 1), m = bits & ((uint64_t{1} << f.mantissa) - 1);
  const int bias = (1 << (f.exponent - 1)) - 1;
  if (e == (uint64_t{1} << f.exponent) - 1) {
    d.nan = m != 0;
    d.infinite = m == 0;
    d.magnitude = m;
    return d;
  }
  d.magnitude = e ? m | uint64_t{1} << f.mantissa : m;
  d.exponent = static_cast<int>(e ? e : 1) - bias - f.mantissa;
  return d;
}

bool is_nan(uint64_t bits, Format f) { return decode(bits, f).nan; }
bool is_subnormal(uint64_t bits, Format f) {
  Decoded d = decode(bits, f);
  return d.magnitude != 0 && !d.nan && !(d.magnitude >> f.mantissa);
}
uint64_t flush(uint64_t bits, Format f) {
  return is_subnormal(bits, f) ? bits & uint64_t{1} << (f.exponent + f.mantissa) : bits;
}

uint64_t canonical_nan(Type type) {
  switch (type) {
    case Type::f16:
    case Type::bf16: return 0x7FFF;
    case Type::f32: return 0x7FFFFFFF;
    default: return 0xFFF8'0000'0000'0000;
  }
}

uint64_t convert_float(uint64_t bits, Type from, Type to, Rounding rounding) {
  Decoded d = decode(bits, format_of(from));
  if (d.nan) {
    if (from == Type::f64 && to == Type::f64) return bits | uint64_t{1} << 51;
    return canonical_nan(to);
  }
  if (d.infinite) return infinity(d.negative, format_of(to));
  return encode(d.negative, d.magnitude, d.exponent, format_of(to), rounding);
}

uint64_t round_integral(uint64_t bits, Type type, Rounding rounding) {
  Format f = format_of(type);
  Decoded d = decode(bits, f);
  if (d.nan) return convert_float(bits, type, type, Rounding::rn);
  if (d.infinite || d.exponent >= 0) return bits;
  return encode(d.negative, shift_round(d.magnitude, -d.exponent, d.negative, rounding), 0, f, Rounding::rn);
}

uint64_t float_to_integer(uint64_t bits, Type from, Type to, Rounding rounding) {
  Decoded d = decode(bits, format_of(from));
  const uint32_t width = 8 * type_bytes(to);
  if (d.nan) return from != Type::f64 && width < 64 ? 0 : uint64_t{1} << (width - 1);
  const bool is_sign = is_signed(to);
  const u128 high = is_sign ? (u128{1} << (width - 1)) - 1 : (u128{1} << width) - 1;  // largest magnitude above zero
  const u128 low = is_sign ? u128{1} << (width - 1) : 0;                              // and below
  u128 m;
  if (d.infinite || (d.magnitude && d.exponent > 64))
    m = u128{1} << 100;
  else
    m = shift_round(d.magnitude, -d.exponent, d.negative, rounding);
  if (d.negative) return m > low ? -static_cast<uint64_t>(low) : -static_cast<uint64_t>(m);
  return static_cast<uint64_t>(m > high ? high : m);
}

uint64_t unrounded_fma(uint64_t a, uint64_t b, uint64_t c, Type type, Rounding rounding) {
  auto value = [&](uint64_t bits) { return std::bit_cast<double>(convert_float(bits, type, Type::f64, Rounding::rn)); };
  double x = value(a), y = value(b), z = value(c);
  double product = x * y;  // exact: at most 48 bits, and the exponents are far from double's ends
  double sum = product + z;
  if (!std::isfinite(sum)) return std::bit_cast<uint64_t>(sum);
  // What the addition lost (Knuth's TwoSum), folded into the last bit: rounding to odd keeps the second rounding exact.
  double part = sum - product, lost = (product - (sum - part)) + (z - part);
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if (lost != 0 && !(bits & 1)) {
    bool away = (lost > 0) == (sum > 0);
    bits = away ? bits + 1 : bits - 1;
  }
  // An exact zero sum of different signs is -0 only when rounding down.
  if (sum == 0 && rounding == Rounding::rm && std::signbit(product) != std::signbit(z)) bits = uint64_t{1} << 63;
  return bits;
}

uint64_t small_fma(uint64_t a, uint64_t b, uint64_t c, Type type, Rounding rounding) {
  return convert_float(unrounded_fma(a, b, c, type, rounding), Type::f64, type, rounding);
}

bool is_tiny(uint64_t value, Format f, Rounding rounding) {
  const Decoded d = decode(value, format_f64);
  if (d.nan || d.infinite || d.zero()) return false;
  const Format wide{f.mantissa, format_f64.exponent};
  const Decoded rounded = decode(encode(d.negative, d.magnitude, d.exponent, wide, rounding), wide);
  return rounded.exponent + f.mantissa < 2 - (1 << (f.exponent - 1));
}

}  // namespace rndn::ptx
