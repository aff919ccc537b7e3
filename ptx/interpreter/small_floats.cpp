// Conversions of two numbers at once whose types are part of the mode (opcodes.def): floats of 8 bits, and integers packed with saturation.
#include "ptx/interpreter/small_floats.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ptx/interpreter/rounding.h"

namespace rndn::ptx {
namespace {

// Numbers of 8 bits, e4m3 (no infinity, NaN 0x7f) and e5m2: all of them are few enough to look for the nearest.
double small_float_value(uint32_t code, bool e5m2) {
  const int digits = e5m2 ? 2 : 3, bias = e5m2 ? 15 : 7;
  const int exponent = static_cast<int>(code & 0x7F) >> digits, fraction = static_cast<int>(code) & ((1 << digits) - 1);
  const double v = exponent ? std::ldexp(fraction + (1 << digits), exponent - bias - digits)
                            : std::ldexp(fraction, 1 - bias - digits);
  return code & 0x80 ? -v : v;
}
uint64_t to_small_float(double v, bool e5m2, bool relu) {
  if (std::isnan(v)) return 0x7F;
  if (relu && std::signbit(v)) return 0;
  const double size = std::min(std::fabs(v), small_float_value(e5m2 ? 0x7B : 0x7E, e5m2));
  uint32_t nearest = 0;
  for (uint32_t code = 1; code <= (e5m2 ? 0x7Bu : 0x7Eu); ++code) {
    const double now = std::fabs(small_float_value(code, e5m2) - size);
    const double best = std::fabs(small_float_value(nearest, e5m2) - size);
    if (now < best || (now == best && code % 2 == 0)) nearest = code;
  }
  return nearest | (std::signbit(v) ? 0x80 : 0);
}
double as_double(uint64_t bits, Type type) {
  return std::bit_cast<double>(
      convert_float(type == Type::f16 ? bits & 0xFFFF : bits & 0xFFFFFFFF, type, Type::f64, Rounding::none));
}

}  // namespace

uint64_t convert_pair(uint8_t mode, const uint64_t* s) {
  const bool low_bit = mode & 1, relu = mode & 2;
  if (mode >= 128) {  // pack.sat
    const uint32_t bits = mode >= 164 ? 2 : mode >= 162 ? 4 : mode >= 160 ? 8 : 16;
    const int64_t most = (int64_t{1} << (low_bit ? bits - 1 : bits)) - 1, least = low_bit ? -most - 1 : 0;
    auto part = [&](uint64_t v) {
      return static_cast<uint64_t>(std::clamp<int64_t>(static_cast<int32_t>(v), least, most)) &
             ((uint64_t{1} << bits) - 1);
    };
    const uint64_t both = part(s[0]) << bits | part(s[1]);
    return (bits < 16 ? s[2] << 2 * bits | both : both) & 0xFFFFFFFF;
  }
  if (mode < 64)
    return to_small_float(as_double(s[0], Type::f32), low_bit, relu) << 8 |
           to_small_float(as_double(s[1], Type::f32), low_bit, relu);
  if (mode < 96)
    return to_small_float(as_double(s[0] >> 16, Type::f16), low_bit, relu) << 8 |
           to_small_float(as_double(s[0], Type::f16), low_bit, relu);
  uint64_t out = 0;
  for (uint32_t k = 0; k < 2; ++k) {
    const uint32_t code = s[0] >> (8 * k) & 0xFF, size = code & 0x7F;
    uint64_t half;
    if (low_bit ? size > 0x7C : size == 0x7F)
      half = canonical_nan(Type::f16);
    else if (low_bit && size == 0x7C)
      half = infinity(code & 0x80, format_f16);
    else
      half =
          convert_float(std::bit_cast<uint64_t>(small_float_value(code, low_bit)), Type::f64, Type::f16, Rounding::rn);
    if (relu && half >> 15) half = 0;
    out |= half << (16 * k);
  }
  return out;
}

}  // namespace rndn::ptx
