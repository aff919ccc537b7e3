// Instruction meanings, written from the PTX manual's pseudo-code. Compiled with -frounding-math: f32 and f64 add, mul, div, fma and
// sqrt use the host's unit under fesetround, everything else is exact integer work (rounding.h).
#include "ptx/interpreter/semantics.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>

#include "ptx/interpreter/rounding.h"
#include "ptx/interpreter/small_floats.h"
#include "ptx/opcodes.h"

namespace rndn::ptx {
namespace {

using u128 = unsigned __int128;
using s128 = __int128;

uint32_t width_of(Type type) { return 8 * type_bytes(type); }
uint64_t mask_of(uint32_t width) { return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1; }

struct RoundingScope {
  explicit RoundingScope(Rounding r) {
    fesetround(r == Rounding::rz   ? FE_TOWARDZERO
               : r == Rounding::rm ? FE_DOWNWARD
               : r == Rounding::rp ? FE_UPWARD
                                   : FE_TONEAREST);
  }
  ~RoundingScope() { fesetround(FE_TONEAREST); }
};

float f32(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
double f64(uint64_t bits) { return std::bit_cast<double>(bits); }
uint64_t bits_of(float v) { return std::bit_cast<uint32_t>(v); }
uint64_t bits_of(double v) { return std::bit_cast<uint64_t>(v); }

template <class T>
T arithmetic(Opcode op, T a, T b, T c, Rounding r) {
  RoundingScope scope(r);
  volatile T x = a, y = b, z = c, result;  // volatile: the operation must happen between the two calls of fesetround
  switch (op) {
    case Opcode::add: result = x + y; break;
    case Opcode::sub: result = x - y; break;
    case Opcode::mul: result = x * y; break;
    case Opcode::div: result = x / y; break;
    case Opcode::rcp: result = T{1} / x; break;
    case Opcode::sqrt: result = std::sqrt(T{x}); break;
    default: result = std::fma(T{x}, T{y}, T{z}); break;  // fma, mad
  }
  return result;
}

double approximate(Opcode op, double a, double b) {
  switch (op) {
    case Opcode::div: return a / b;
    case Opcode::rcp: return 1 / a;
    case Opcode::sqrt: return std::sqrt(a);
    case Opcode::rsqrt: return 1 / std::sqrt(a);
    case Opcode::sin: return std::sin(a);
    case Opcode::cos: return std::cos(a);
    case Opcode::lg2: return std::log2(a);
    case Opcode::ex2: return std::exp2(a);
    default: return std::tanh(a);
  }
}

// min and max of the manual: a NaN loses against a number, -0 is below +0.
uint64_t extreme(bool maximum, uint64_t a, uint64_t b, Type type, bool keep_nan) {
  Format f = format_of(type);
  bool na = is_nan(a, f), nb = is_nan(b, f);
  if ((na && nb) || (keep_nan && (na || nb))) return type == Type::f64 ? a : canonical_nan(type);
  if (na) return b;
  if (nb) return a;
  double x = f64(convert_float(a, type, Type::f64, Rounding::rn)),
         y = f64(convert_float(b, type, Type::f64, Rounding::rn));
  bool a_below = x < y || (x == y && std::signbit(x) && !std::signbit(y));
  return a_below == maximum ? b : a;
}

uint64_t saturate(uint64_t bits, Type type) {
  Format f = format_of(type);
  if (is_nan(bits, f)) return 0;
  double v = f64(convert_float(bits, type, Type::f64, Rounding::rn));
  if (v <= 0) return 0;
  return v >= 1 ? convert_float(bits_of(1.0), Type::f64, type, Rounding::rn) : bits;
}

bool float_type(Type t) { return t == Type::f16 || t == Type::bf16 || t == Type::f32 || t == Type::f64; }

// One floating-point operation on scalars.
bool compute_float(const Instruction& i, Type type, const uint64_t* s, uint64_t& out) {
  const Modifiers& m = i.mods;
  const Format f = format_of(type);
  const uint64_t sign = uint64_t{1} << (f.exponent + f.mantissa);
  uint64_t a = s[0], b = s[1], c = s[2];
  if (m.ftz) a = flush(a, f), b = flush(b, f), c = flush(c, f);
  const bool small = type == Type::f16 || type == Type::bf16;
  const uint64_t one = convert_float(bits_of(1.0), Type::f64, type, Rounding::rn);
  switch (i.op) {
    case Opcode::abs: out = a & ~sign; break;
    case Opcode::neg: out = a ^ sign; break;
    case Opcode::copysign: out = (a & sign) | (b & ~sign); return true;
    case Opcode::min:
    case Opcode::max:
      if (m.mode >= 96) {  // .xorsign.abs
        out = extreme(i.op == Opcode::max, a & ~sign, b & ~sign, type, m.mode == 97);
        if (!is_nan(out, f)) out |= (a ^ b) & sign;
        break;
      }
      out = extreme(i.op == Opcode::max, a, b, type, m.mode != 0);
      break;
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mul:
    case Opcode::fma:
    case Opcode::mad:
    case Opcode::div:
    case Opcode::rcp:
    case Opcode::sqrt:
      if (m.approx || m.full) {
        out = convert_float(bits_of(approximate(i.op, f64(convert_float(a, type, Type::f64, Rounding::rn)),
                                                f64(convert_float(b, type, Type::f64, Rounding::rn)))),
                            Type::f64, type, Rounding::rn);
      } else if (small) {
        if (i.op == Opcode::add)
          out = small_fma(a, one, b, type, m.rounding);
        else if (i.op == Opcode::sub)
          out = small_fma(b, one ^ sign, a, type, m.rounding);
        else if (i.op == Opcode::mul)
          out = small_fma(a, b, (a ^ b) & sign, type, m.rounding);  // + 0 of the product's sign
        else
          out = small_fma(a, b, c, type, m.rounding);
      } else if (type == Type::f32) {
        out = bits_of(arithmetic(i.op, f32(a), f32(b), f32(c), m.rounding));
      } else {
        out = bits_of(arithmetic(i.op, f64(a), f64(b), f64(c), m.rounding));
      }
      break;
    case Opcode::rsqrt:
    case Opcode::sin:
    case Opcode::cos:
    case Opcode::lg2:
    case Opcode::ex2:
    case Opcode::tanh:
      out = convert_float(bits_of(approximate(i.op, f64(convert_float(a, type, Type::f64, Rounding::rn)), 0)),
                          Type::f64, type, Rounding::rn);
      break;
    default: return false;
  }
  if (type != Type::f64 && is_nan(out, f)) out = canonical_nan(type);
  const bool product = i.op == Opcode::mul || i.op == Opcode::fma || i.op == Opcode::mad;
  if (m.ftz && product) {
    const uint64_t value = unrounded_fma(a, b, i.op == Opcode::mul ? (a ^ b) & sign : c, type, m.rounding);
    if (is_tiny(value, f, m.rounding)) out &= sign;
  } else if (m.ftz) {
    out = flush(out, f);
  }
  if (m.sat) out = saturate(out, type);
  if (i.op == Opcode::fma && m.mode == 1 && !is_nan(out, f) && (out & sign)) out = 0;  // .relu
  return true;
}

bool compare_integers(Compare c, uint64_t a, uint64_t b, Type type) {
  bool less = is_signed(type) ? static_cast<int64_t>(a) < static_cast<int64_t>(b) : a < b;
  switch (c) {
    case Compare::eq: return a == b;
    case Compare::ne: return a != b;
    case Compare::lt:
    case Compare::lo: return less;
    case Compare::le:
    case Compare::ls: return less || a == b;
    case Compare::gt:
    case Compare::hi: return !less && a != b;
    default: return !less;  // ge, hs
  }
}

bool compare_floats(Compare c, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (c) {
    case Compare::eq: return !unordered && a == b;
    case Compare::ne: return !unordered && a != b;
    case Compare::lt: return !unordered && a < b;
    case Compare::le: return !unordered && a <= b;
    case Compare::gt: return !unordered && a > b;
    case Compare::ge: return !unordered && a >= b;
    case Compare::equ: return unordered || a == b;
    case Compare::neu: return unordered || a != b;
    case Compare::ltu: return unordered || a < b;
    case Compare::leu: return unordered || a <= b;
    case Compare::gtu: return unordered || a > b;
    case Compare::geu: return unordered || a >= b;
    case Compare::num: return !unordered;
    default: return unordered;  // nan
  }
}

bool compare(const Modifiers& m, uint64_t a, uint64_t b, Type type) {
  if (!float_type(type)) return compare_integers(m.compare, extend(a, type), extend(b, type), type);
  Format f = format_of(type);
  if (m.ftz) a = flush(a, f), b = flush(b, f);
  return compare_floats(m.compare, f64(convert_float(a, type, Type::f64, Rounding::rn)),
                        f64(convert_float(b, type, Type::f64, Rounding::rn)));
}

bool combine(Combine c, bool t, bool p) {
  switch (c) {
    case Combine::and_: return t && p;
    case Combine::or_: return t || p;
    case Combine::xor_: return t != p;
    case Combine::none: break;
  }
  return t;
}

// The range of an integer type, as 128-bit integers.
s128 lowest(Type t) { return is_signed(t) ? -(s128{1} << (width_of(t) - 1)) : 0; }
s128 highest(Type t) { return (s128{1} << (width_of(t) - (is_signed(t) ? 1 : 0))) - 1; }
s128 wide(uint64_t bits, Type t) {
  uint64_t v = extend(bits, t);
  return is_signed(t) ? s128{static_cast<int64_t>(v)} : s128{v};
}
s128 clamp(s128 v, Type t) { return v < lowest(t) ? lowest(t) : v > highest(t) ? highest(t) : v; }

bool convert(const Instruction& i, const uint64_t* s, uint64_t& out) {
  const Modifiers& m = i.mods;
  const Type to = i.type, from = i.type2;
  if (to == Type::none) {
    out = convert_pair(i.mods.mode, s);
    return true;
  }
  if (to == Type::f32 && from == Type::bf16) {  // its upper half, for a NaN too (ptxas shifts on every target)
    out = (s[0] & 0xFFFF) << 16;
    if (m.ftz) out = flush(out, format_f32);
    return true;
  }
  if (m.mode >= 96) {  // satfinite
    Instruction plain = i;
    plain.mods.mode = m.mode & 1;  // relu
    if (!convert(plain, s, out)) return false;
    const bool pair = to == Type::f16x2 || to == Type::bf16x2;
    const uint64_t infinite = to == Type::f16 || to == Type::f16x2 ? 0x7C00 : 0x7F80;
    for (uint32_t shift = 0; shift < (pair ? 32u : 16u); shift += 16)
      if ((out >> shift & 0x7FFF) == infinite) out -= uint64_t{1} << shift;  // the largest number stands before it
    return true;
  }
  if (m.mode == 1) {  // relu
    Instruction plain = i;
    plain.mods.mode = 0;
    if (!convert(plain, s, out)) return false;
    const bool pair = to == Type::f16x2 || to == Type::bf16x2;
    const Format format = to == Type::f16 || to == Type::f16x2 ? format_f16 : format_bf16;
    for (uint32_t shift = 0; shift < (pair ? 32u : 16u); shift += 16)
      if (const uint64_t part = out >> shift & 0xFFFF; part >> 15 && !is_nan(part, format))
        out &= ~(uint64_t{0xFFFF} << shift);
    return true;
  }
  if (to == Type::f16x2 || to == Type::bf16x2) {  // d = {a in the high half, b in the low half}
    Type part = to == Type::f16x2 ? Type::f16 : Type::bf16;
    out = convert_float(s[0], from, part, m.rounding) << 16 | convert_float(s[1], from, part, m.rounding);
    return true;
  }
  const bool from_float = float_type(from), to_float = float_type(to);
  uint64_t a = s[0] & mask_of(width_of(from));
  if (from_float && m.ftz && from == Type::f32) a = flush(a, format_f32);
  if (!from_float && !to_float) {
    s128 v = wide(a, from);
    if (m.sat) v = clamp(v, to);
    out = static_cast<uint64_t>(v);
  } else if (!from_float) {
    s128 v = wide(a, from);
    out = encode(v < 0, static_cast<u128>(v < 0 ? -v : v), 0, format_of(to), m.rounding);
  } else if (!to_float) {
    out = float_to_integer(a, from, to, m.rounding);
  } else if (from == to && m.rounding >= Rounding::rni) {
    out = round_integral(a, to, m.rounding);
  } else {
    out = convert_float(a, from, to, m.rounding);
  }
  if (to_float && m.ftz && to == Type::f32) out = flush(out, format_f32);
  if (to_float && m.sat) out = saturate(out, to);
  return true;
}

int64_t compares(std::string_view how, int64_t a, int64_t b) {
  return how == "eq"   ? a == b
         : how == "ne" ? a != b
         : how == "lt" ? a < b
         : how == "le" ? a <= b
         : how == "gt" ? a > b
                       : a >= b;
}

// Video instructions of parts of a word (PTX ISA): each part in full, clamped to the type, then put together or added to c.
uint64_t video_of_parts(const VideoSuffix& suffix, const uint64_t* s) {
  const uint32_t bits = 32 / suffix.parts;
  const int64_t over = int64_t{1} << bits, most = (suffix.is_signed ? over / 2 : over) - 1;
  const int64_t least = suffix.is_signed ? -over / 2 : 0;
  const std::string_view what = suffix.what;
  const auto part = [&](uint64_t v, uint32_t k, bool is_signed) {
    const int64_t low = static_cast<int64_t>(v >> k) & (over - 1);
    return is_signed && low >= over / 2 ? low - over : low;
  };
  uint64_t out = suffix.second.empty() ? 0 : s[2];
  for (uint32_t k = 0; k < 32; k += bits) {
    const int64_t a = part(s[0], k, suffix.a_signed), b = part(s[1], k, suffix.b_signed), sum = a + b;
    int64_t v = what == "add"       ? sum
                : what == "sub"     ? a - b
                : what == "avrg"    ? (sum + (sum >= 0)) >> 1
                : what == "absdiff" ? (a > b ? a - b : b - a)
                : what == "min"     ? std::min(a, b)
                : what == "max"     ? std::max(a, b)
                                    : compares(suffix.compare, a, b);
    if (suffix.sat) v = std::clamp(v, least, most);
    out += suffix.second.empty() ? static_cast<uint64_t>(v & (over - 1)) << k : static_cast<uint64_t>(v);
  }
  return out & 0xFFFFFFFF;
}

// Those of whole words, by ptxas's rules: head of ptx/video.cpp.
uint64_t video(const VideoSuffix& suffix, const uint64_t* s) {
  if (suffix.parts > 1) return video_of_parts(suffix, s);
  const auto cut = [](s128 x, uint32_t bits) {
    const s128 over = s128{1} << bits, low = x & (over - 1);
    return low >= over / 2 ? low - over : low;
  };
  const auto word = [&](uint64_t x, bool is_signed) {
    return is_signed ? cut(static_cast<s128>(x), 32) : static_cast<s128>(x & 0xFFFFFFFF);
  };
  const std::string_view what = suffix.what;
  const s128 a = word(s[0], suffix.a_signed), b = word(s[1], suffix.b_signed);
  const s128 amount = suffix.wrap ? b & 31 : std::min<s128>(b, 32);
  s128 v = 0;
  if (what == "mad") {
    v = cut(word(s[0], true) * word(s[1], true) + word(s[2], true) + suffix.plus_one, 64);
    if (suffix.is_signed)
      v >>= suffix.shift;
    else
      v = cut((v & UINT64_MAX) >> suffix.shift, 64);
    const s128 least = suffix.is_signed ? s128{INT32_MIN} : s128{0};
    const s128 most = suffix.is_signed ? s128{INT32_MAX} : s128{UINT32_MAX};
    if (suffix.sat) v = std::clamp(v, least, most);
    return static_cast<uint64_t>(v) & 0xFFFFFFFF;
  }
  if (what == "add")
    v = a + b;
  else if (what == "sub")
    v = a - b;
  else if (what == "absdiff")
    v = a > b ? a - b : b - a;
  else if (what == "min")
    v = std::min(a, b);
  else if (what == "max")
    v = std::max(a, b);
  else if (what == "shl")
    v = cut(a * (s128{1} << static_cast<uint32_t>(amount)), suffix.sat ? 34 : 64);
  else if (what == "shr")
    v = a >> static_cast<uint32_t>(amount);
  else
    v = compares(suffix.compare, static_cast<int64_t>(a), static_cast<int64_t>(b));
  if (suffix.sat && suffix.is_signed) v = std::clamp(v, s128{INT32_MIN}, s128{INT32_MAX});
  if (suffix.sat && !suffix.is_signed) v = std::max(v, s128{0});
  if (suffix.sat && !suffix.is_signed && what == "shl") v = std::min(v, s128{UINT32_MAX});
  const bool shifts = what == "shl" || what == "shr";
  if (what == "add" || what == "sub" || (suffix.sat && shifts)) v = cut(v, 32);
  if (suffix.second == "add") return static_cast<uint64_t>(v + static_cast<s128>(s[2])) & 0xFFFFFFFF;
  if (!suffix.second.empty()) {
    const s128 c = word(s[2], suffix.is_signed), x = suffix.is_signed ? v : v & UINT64_MAX;
    v = suffix.second == "min" ? std::min(x, c) : std::max(x, c);
  }
  return static_cast<uint64_t>(v) & 0xFFFFFFFF;
}

uint64_t permute(uint32_t a, uint32_t b, uint32_t selector, uint8_t mode) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  auto byte = [&](uint32_t k) { return static_cast<uint32_t>(bytes >> (8 * (k & 7)) & 0xFF); };
  uint32_t s = selector & 3, out = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    uint32_t v;
    switch (mode) {
      case 1: v = byte(s + k); break;                            // f4e
      case 2: v = byte(s - k + 8); break;                        // b4e
      case 3: v = byte(s); break;                                // rc8
      case 4: v = byte(k > s ? k : s); break;                    // ecl
      case 5: v = byte(k < s ? k : s); break;                    // ecr
      case 6: v = byte(((selector & 1) << 1) + (k & 1)); break;  // rc16
      default: {
        uint32_t nibble = selector >> (4 * k) & 15;
        v = byte(nibble);
        if (nibble & 8) v = v & 0x80 ? 0xFF : 0;
      }
    }
    out |= v << (8 * k);
  }
  return out;
}

// Integer and bit operations.
bool compute_integer(const Instruction& i, const uint64_t* s, uint32_t n, bool& carry, uint64_t& out) {
  const Modifiers& m = i.mods;
  const Type t = i.type;
  const uint32_t width = width_of(t);
  const uint64_t mask = mask_of(width);
  const uint64_t a = n > 0 ? extend(s[0], t) : 0, b = n > 1 ? extend(s[1], t) : 0, c = n > 2 ? extend(s[2], t) : 0;
  const bool is_sign = is_signed(t);
  auto product = [&]() -> s128 {
    return is_sign ? s128{static_cast<int64_t>(a)} * static_cast<int64_t>(b) : static_cast<s128>(u128{a} * b);
  };
  auto with_carry = [&](uint64_t x, uint64_t y, bool in, bool sets) {
    u128 sum = u128{x & mask} + (y & mask) + in;
    if (sets) carry = sum >> width & 1;
    return static_cast<uint64_t>(sum);
  };
  switch (i.op) {
    case Opcode::add:
      if (m.sat)
        out = static_cast<uint64_t>(clamp(wide(a, t) + wide(b, t), t));
      else
        out = with_carry(a, b, false, m.carry_out);
      return true;
    case Opcode::addc: out = with_carry(a, b, carry, m.carry_out); return true;
    case Opcode::sub:
    case Opcode::subc: {
      if (m.sat) {
        out = static_cast<uint64_t>(clamp(wide(a, t) - wide(b, t), t));
        return true;
      }
      u128 difference = u128{a & mask} - (b & mask) - (i.op == Opcode::subc && !carry);
      if (m.carry_out) carry = !(difference >> width & 1);  // no borrow, as ptxas's code has it
      out = static_cast<uint64_t>(difference);
      return true;
    }
    case Opcode::mul: out = static_cast<uint64_t>(m.part == MulPart::hi ? product() >> width : product()); return true;
    case Opcode::mad:
    case Opcode::madc: {
      if (m.part == MulPart::wide) {
        out = static_cast<uint64_t>(product()) + s[2];
        return true;
      }
      s128 part = m.part == MulPart::hi ? product() >> width : product();
      if (m.sat)
        out = static_cast<uint64_t>(clamp(part + wide(c, t), t));
      else
        out = with_carry(static_cast<uint64_t>(part), c, i.op == Opcode::madc && carry, m.carry_out);
      return true;
    }
    case Opcode::mul24:
    case Opcode::mad24: {
      auto low24 = [&](uint64_t v) {
        return is_sign ? s128{static_cast<int32_t>(static_cast<uint32_t>(v) << 8) >> 8} : s128{v & 0xFFFFFF};
      };
      s128 p = low24(a) * low24(b);
      s128 part = m.part == MulPart::hi ? p >> 16 : p;
      uint64_t low = static_cast<uint64_t>(part) & 0xFFFFFFFF;
      if (i.op == Opcode::mul24)
        out = low;
      else if (m.sat)
        out = static_cast<uint64_t>(clamp(wide(low, t) + wide(c, t), t));
      else
        out = low + c;
      return true;
    }
    case Opcode::sad: {
      s128 d = wide(a, t) - wide(b, t);
      out = c + static_cast<uint64_t>(d < 0 ? -d : d);
      return true;
    }
    case Opcode::div:
      if ((b & mask) == 0)
        out = ~uint64_t{0};
      else
        out = static_cast<uint64_t>(wide(a, t) / wide(b, t));
      return true;
    case Opcode::rem:
      if ((b & mask) == 0)
        out = ~uint64_t{0};
      else
        out = static_cast<uint64_t>(wide(a, t) % wide(b, t));
      return true;
    case Opcode::abs: out = static_cast<int64_t>(a) < 0 ? -a : a; return true;
    case Opcode::neg: out = -a; return true;
    case Opcode::min:
    case Opcode::max:
      out = (wide(a, t) < wide(b, t)) == (i.op == Opcode::min) ? a : b;
      if (m.mode == 64 && wide(out, t) < 0) out = 0;  // relu
      return true;
    case Opcode::and_: out = a & b; return true;
    case Opcode::or_: out = a | b; return true;
    case Opcode::xor_: out = a ^ b; return true;
    case Opcode::not_: out = t == Type::pred ? !(a & 1) : ~a; return true;
    case Opcode::cnot: out = (a & mask) == 0; return true;
    case Opcode::lop3:
      out = 0;
      for (uint32_t k = 0; k < 32; ++k) {
        uint32_t row = (a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1);
        out |= (s[3] >> row & 1) << k;
      }
      return true;
    case Opcode::shl: {
      uint64_t amount = s[1] & 0xFFFFFFFF;
      out = amount >= width ? 0 : a << amount;
      return true;
    }
    case Opcode::shr: {
      uint64_t amount = s[1] & 0xFFFFFFFF;
      if (amount > width) amount = width;
      if (is_sign)
        out = static_cast<uint64_t>(static_cast<int64_t>(a) >> (amount > 63 ? 63 : amount));
      else
        out = amount >= width ? 0 : (a & mask) >> amount;
      return true;
    }
    case Opcode::shf: {
      uint64_t amount = m.shift == ShiftMode::wrap ? s[2] & 31 : (s[2] & 0xFFFFFFFF) > 32 ? 32 : s[2] & 0xFFFFFFFF;
      uint64_t pair = (b & mask) << 32 | (a & mask);
      out = m.mode == 1 ? (amount == 0 ? pair >> 32 : static_cast<uint64_t>((u128{pair} << amount) >> 32))
                        : pair >> amount;
      return true;
    }
    case Opcode::prmt:
      out = permute(static_cast<uint32_t>(s[0]), static_cast<uint32_t>(s[1]), static_cast<uint32_t>(s[2]), m.mode);
      return true;
    case Opcode::popc: out = static_cast<uint64_t>(std::popcount(a & mask)); return true;
    case Opcode::clz: out = static_cast<uint64_t>(std::countl_zero(a & mask)) - (64 - width); return true;
    case Opcode::brev:
      out = 0;
      for (uint32_t k = 0; k < width; ++k) out |= (a >> k & 1) << (width - 1 - k);
      return true;
    case Opcode::bfind: {
      uint64_t v = is_sign && static_cast<int64_t>(a) < 0 ? ~a : a;
      v &= mask;
      out = v == 0 ? 0xFFFFFFFF : 63 - static_cast<uint64_t>(std::countl_zero(v));
      if (m.mode == 1 && v != 0) out = width - 1 - out;
      return true;
    }
    case Opcode::fns: {
      int64_t position = static_cast<int64_t>(s[1] & 0xFFFFFFFF), offset = static_cast<int32_t>(s[2]);
      out = 0xFFFFFFFF;
      if (offset == 0) {
        if (position < 32 && (a >> position & 1)) out = static_cast<uint64_t>(position);
        return true;
      }
      int64_t step = offset > 0 ? 1 : -1, left = (offset > 0 ? offset : -offset) - 1;
      for (; position >= 0 && position < 32; position += step) {
        if (!(a >> position & 1)) continue;
        if (left-- == 0) {
          out = static_cast<uint64_t>(position);
          return true;
        }
      }
      return true;
    }
    case Opcode::bfe: {
      const uint32_t position = s[1] & 0xFF, length = s[2] & 0xFF, top = width - 1;
      uint64_t fill =
          !is_sign || length == 0 ? 0 : a >> (position + length - 1 < top ? position + length - 1 : top) & 1;
      out = 0;
      for (uint32_t k = 0; k <= top; ++k)
        out |= (k < length && position + k <= top ? a >> (position + k) & 1 : fill) << k;
      return true;
    }
    case Opcode::bfi: {
      const uint32_t position = s[2] & 0xFF, length = s[3] & 0xFF;
      out = b;
      for (uint32_t k = 0; k < length && position + k < width; ++k)
        out = (out & ~(uint64_t{1} << (position + k))) | (a >> k & 1) << (position + k);
      return true;
    }
    case Opcode::bmsk: {
      const uint64_t position = s[0] & 0xFFFFFFFF, length = s[1] & 0xFFFFFFFF;
      const bool clamp_mode = m.shift == ShiftMode::clamp;
      const uint64_t p = position & 31, l = length & 31;
      uint64_t first = clamp_mode && position >= 32 ? 0 : 0xFFFFFFFFull << p;
      uint64_t beyond = p + l >= 32 || (clamp_mode && (position >= 32 || length >= 32)) ? 0 : 0xFFFFFFFFull << (p + l);
      out = first & ~beyond & 0xFFFFFFFF;
      return true;
    }
    case Opcode::szext: {
      const uint64_t length = s[1] & 0xFFFFFFFF, l = length & 31;
      const bool too_large = m.shift == ShiftMode::clamp && length >= 32;
      const uint64_t high = too_large ? 0 : (0xFFFFFFFFull << l) & 0xFFFFFFFF;
      const bool fill = is_sign && l != 0 && !too_large && (a >> (l - 1) & 1);
      out = (a & ~high & 0xFFFFFFFF) | (fill ? high : 0);
      return true;
    }
    case Opcode::dp4a:
    case Opcode::dp2a: {
      // type: how a is read, type2: how b is.
      int64_t sum = static_cast<int32_t>(s[2]);
      const bool two = i.op == Opcode::dp2a;
      for (uint32_t k = 0; k < (two ? 2 : 4); ++k) {
        uint64_t x = two ? s[0] >> (16 * k) & 0xFFFF : s[0] >> (8 * k) & 0xFF;
        uint64_t y = s[1] >> (8 * (k + (two && m.part == MulPart::hi ? 2 : 0))) & 0xFF;
        int64_t xv = is_signed(i.type) ? (two ? int64_t{static_cast<int16_t>(x)} : int64_t{static_cast<int8_t>(x)})
                                       : static_cast<int64_t>(x);
        int64_t yv = is_signed(i.type2) ? int64_t{static_cast<int8_t>(y)} : static_cast<int64_t>(y);
        sum += xv * yv;
      }
      out = static_cast<uint64_t>(sum);
      return true;
    }
    default: return false;
  }
}

}  // namespace

uint64_t extend(uint64_t bits, Type type) {
  uint32_t width = width_of(type);
  if (width == 0) return bits & 1;  // predicates
  if (width >= 64) return bits;
  bits &= mask_of(width);
  return is_signed(type) && bits >> (width - 1) ? bits | ~mask_of(width) : bits;
}

bool compute(const Instruction& i, const uint64_t* s, uint32_t n, bool& carry, Computed& out) {
  const Modifiers& m = i.mods;
  switch (i.op) {
    case Opcode::setp: {
      if (i.type == Type::f16x2 || i.type == Type::bf16x2) {
        const Type half = i.type == Type::f16x2 ? Type::f16 : Type::bf16;
        const bool low = compare(m, s[0] & 0xFFFF, s[1] & 0xFFFF, half);
        const bool high = compare(m, s[0] >> 16 & 0xFFFF, s[1] >> 16 & 0xFFFF, half);
        out.value = combine(m.combine, low, n > 2 && (s[2] & 1));
        out.second = combine(m.combine, high, n > 2 && (s[2] & 1));
        return true;
      }
      bool t = compare(m, s[0], s[1], i.type), p = n > 2 && (s[2] & 1);
      out.value = combine(m.combine, t, p);
      out.second = combine(m.combine, !t, p);
      return true;
    }
    case Opcode::set: {
      const bool bfloats = i.type2 == Type::bf16x2, pair = bfloats || i.type2 == Type::f16x2;
      const Type part = !pair ? i.type2 : bfloats ? Type::bf16 : Type::f16;
      const uint64_t yes = i.type == Type::f32                              ? bits_of(1.0f)
                           : i.type == Type::f16 || i.type == Type::f16x2   ? 0x3C00
                           : i.type == Type::bf16 || i.type == Type::bf16x2 ? 0x3F80
                                                                            : mask_of(pair ? 16 : width_of(i.type));
      for (uint32_t shift = 0; shift < (pair ? 32 : 16); shift += 16) {
        const uint64_t mask = pair ? 0xFFFF : ~uint64_t{0};
        if (combine(m.combine, compare(m, s[0] >> shift & mask, s[1] >> shift & mask, part), n > 2 && (s[2] & 1)))
          out.value |= yes << shift;
      }
      return true;
    }
    case Opcode::vadd:
    case Opcode::vsub:
    case Opcode::vabsdiff:
    case Opcode::vmin:
    case Opcode::vmax:
    case Opcode::vshl:
    case Opcode::vshr:
    case Opcode::vset:
    case Opcode::vmad:
    case Opcode::vabsdiff4:
    case Opcode::vadd2:
    case Opcode::vsub2:
    case Opcode::vavrg2:
    case Opcode::vabsdiff2:
    case Opcode::vmin2:
    case Opcode::vmax2:
    case Opcode::vadd4:
    case Opcode::vsub4:
    case Opcode::vavrg4:
    case Opcode::vmin4:
    case Opcode::vmax4:
    case Opcode::vset2:
    case Opcode::vset4: out.value = video(video_suffix(i), s); return true;
    case Opcode::selp: out.value = s[2] & 1 ? s[0] : s[1]; return true;
    case Opcode::slct: {
      bool first = i.type2 == Type::s32 ? static_cast<int32_t>(s[2]) >= 0
                                        : f32(m.ftz ? flush(s[2] & 0xFFFFFFFF, format_f32) : s[2]) >= 0;
      out.value = first ? s[0] : s[1];
      return true;
    }
    case Opcode::createpolicy: return true;  // any value will do
    case Opcode::mov: out.value = s[0]; return true;
    case Opcode::cvt: return convert(i, s, out.value);
    case Opcode::lop3:
      if (!compute_integer(i, s, n, carry, out.value)) return false;
      if (m.mode)
        out.second = combine(m.mode == 1 ? Combine::or_ : Combine::and_, (out.value & 0xFFFFFFFF) != 0, s[4] & 1);
      return true;
    case Opcode::cvt_rna_tf32:  // 10 bits of significand, ties away from zero; what is infinite or no number is cut off
      out.value = ((s[0] & 0x7FFFFFFF) < 0x7F800000 ? s[0] + 0x1000 : s[0]) & 0xFFFFE000;
      return true;
    case Opcode::cvt_rna_satfinite_tf32: {
      const uint64_t size = s[0] & 0x7FFFFFFF, largest = 0x7F7FE000;
      out.value =
          size > 0x7F800000 ? 0x7FFFFFFF : (s[0] & 0x80000000) | std::min((size + 0x1000) & ~uint64_t{0x1FFF}, largest);
      return true;
    }
    case Opcode::cvt_rn_tf32:
    case Opcode::cvt_rn_relu_tf32:
    case Opcode::cvt_rz_tf32:
    case Opcode::cvt_rz_relu_tf32: {
      const bool nearest = i.op == Opcode::cvt_rn_tf32 || i.op == Opcode::cvt_rn_relu_tf32;
      const bool relu = i.op == Opcode::cvt_rn_relu_tf32 || i.op == Opcode::cvt_rz_relu_tf32;
      const uint64_t v = s[0] & 0xFFFFFFFF, cut = v & 0x1FFF, kept = v - cut;
      if ((v & 0x7FFFFFFF) > 0x7F800000)
        out.value = 0x7FFFFFFF;
      else if (relu && v >> 31)
        out.value = 0;
      else
        out.value = kept + (nearest && (cut > 0x1000 || (cut == 0x1000 && kept & 0x2000)) ? 0x2000 : 0);
      return true;
    }
    case Opcode::mbarrier_pending_count:  // interpreter.cpp says what a token is
      out.value = ((s[0] >> 20) - s[0]) & 0xFFFFF;
      return true;
    case Opcode::testp: {
      Format f = format_of(i.type);
      Decoded d = decode(s[0] & mask_of(width_of(i.type)), f);
      bool finite = !d.nan && !d.infinite, subnormal = finite && d.magnitude != 0 && !(d.magnitude >> f.mantissa);
      switch (m.mode) {
        case 1: out.value = finite; break;
        case 2: out.value = d.infinite; break;
        case 3: out.value = !d.nan; break;
        case 4: out.value = d.nan; break;
        case 5: out.value = finite && !subnormal; break;  // the manual: zeros count as normal
        default: out.value = subnormal; break;
      }
      return true;
    }
    default: break;
  }
  if (i.type == Type::none && n >= 2 && m.mode >= 32) {  // two 16-bit integers
    Instruction part = i;
    part.type = m.mode == 32 ? Type::u16 : Type::s16;
    part.mods.mode = m.mode == 34 ? 64 : 0;
    for (uint32_t shift = 0; shift < 32; shift += 16) {
      const uint64_t operands[2] = {s[0] >> shift & 0xFFFF, s[1] >> shift & 0xFFFF};
      uint64_t value = 0;
      if (!compute_integer(part, operands, 2, carry, value)) return false;
      out.value |= (value & 0xFFFF) << shift;
    }
    return true;
  }
  if (i.type == Type::f16x2 || i.type == Type::bf16x2) {
    uint64_t result = 0;
    for (uint32_t half = 0; half < 2; ++half) {
      uint64_t part[3] = {};
      for (uint32_t k = 0; k < n && k < 3; ++k) part[k] = s[k] >> (16 * half) & 0xFFFF;
      uint64_t value;
      if (!compute_float(i, i.type == Type::f16x2 ? Type::f16 : Type::bf16, part, value)) return false;
      result |= (value & 0xFFFF) << (16 * half);
    }
    out.value = result;
    return true;
  }
  if (float_type(i.type)) {
    uint64_t operands[3] = {};
    for (uint32_t k = 0; k < n && k < 3; ++k) operands[k] = s[k] & mask_of(width_of(i.type));
    return compute_float(i, i.type, operands, out.value);
  }
  return compute_integer(i, s, n, carry, out.value);
}

uint64_t atomic_result(AtomicOp op, Type type, uint64_t old, uint64_t a, uint64_t b, bool flush_subnormals) {
  old = extend(old, type), a = extend(a, type), b = extend(b, type);
  Instruction add;
  add.op = Opcode::add;
  add.type = type;
  add.mods.rounding = float_type(type) ? Rounding::rn : Rounding::none;
  add.mods.ftz = flush_subnormals && type == Type::f32;
  bool carry = false;
  Computed sum;
  const uint64_t operands[2] = {old, a};
  switch (op) {
    case AtomicOp::add: compute(add, operands, 2, carry, sum); return sum.value;
    case AtomicOp::min: return wide(old, type) < wide(a, type) ? old : a;
    case AtomicOp::max: return wide(old, type) > wide(a, type) ? old : a;
    case AtomicOp::inc: return old >= a ? 0 : old + 1;
    case AtomicOp::dec: return old == 0 || old > a ? a : old - 1;
    case AtomicOp::and_: return old & a;
    case AtomicOp::or_: return old | a;
    case AtomicOp::xor_: return old ^ a;
    case AtomicOp::exch: return a;
    case AtomicOp::cas: return old == a ? b : old;
    case AtomicOp::none: break;
  }
  return old;
}

}  // namespace rndn::ptx
