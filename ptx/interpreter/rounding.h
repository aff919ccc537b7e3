// Exact rounding: an integer times a power of two to a binary format, in any of the four directions, without the host's floating unit.
#pragma once
#include <cstdint>

#include "ptx/ir.h"

namespace rndn::ptx {

struct Format {
  int mantissa;  // stored bits
  int exponent;  // bits
};
inline constexpr Format format_f16{10, 5}, format_bf16{7, 8}, format_f32{23, 8}, format_f64{52, 11};
Format format_of(Type type);  // f16, bf16, f32, f64

// (-1)^negative * magnitude * 2^exponent, rounded: the bits in `format`. Rounding: rn (also for none), rz, rm, rp.
uint64_t encode(bool negative, unsigned __int128 magnitude, int exponent, Format format, Rounding rounding);

struct Decoded {
  bool negative = false, infinite = false, nan = false;
  uint64_t magnitude = 0;  // value = magnitude * 2^exponent
  int exponent = 0;
  bool zero() const { return !infinite && !nan && magnitude == 0; }
};
Decoded decode(uint64_t bits, Format format);

uint64_t infinity(bool negative, Format format);
bool is_nan(uint64_t bits, Format format);
bool is_subnormal(uint64_t bits, Format format);
uint64_t canonical_nan(Type type);
// The same sign, zero otherwise, when subnormal.
uint64_t flush(uint64_t bits, Format format);

// From one format to another. NaN becomes the target's canonical NaN; f64 keeps a payload that comes from f64.
uint64_t convert_float(uint64_t bits, Type from, Type to, Rounding rounding);
// To the nearest integral value in the direction of rni, rzi, rmi, rpi; same format.
uint64_t round_integral(uint64_t bits, Type type, Rounding rounding);
// To an integer type, clamped to its range; NaN as the PTX manual says (cvt).
uint64_t float_to_integer(uint64_t bits, Type from, Type to, Rounding rounding);
// a * b + c of f16, bf16 or f32 as an f64 that rounds to them as the exact value does: an odd last place stands for what follows it.
uint64_t unrounded_fma(uint64_t a, uint64_t b, uint64_t c, Type type, Rounding rounding);
// a * b + c and a + b with one rounding; for f16 and bf16 (f32 and f64 use the host's).
uint64_t small_fma(uint64_t a, uint64_t b, uint64_t c, Type type, Rounding rounding);
// What .ftz makes zero of a product: an f64 other than 0 that, rounded to the format's digits under an exponent without lower end, is below
// the least normal number. Just below that number this is less than what is_subnormal says of the rounded result, which has fewer digits
// and may have become the number itself. Measured on an H200: mul and fma of f16 (rn) and f32 (rn; mul also rz, rp), 65,536 operands.
bool is_tiny(uint64_t value, Format format, Rounding rounding);

}  // namespace rndn::ptx
