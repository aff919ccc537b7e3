// Conversions between integer and float types, and half precision.
// Source: PTX ISA, section 9.7.9.21 (cvt); fields as in the notes on both families.
#include <cfenv>

#include "assembler/simulator/arithmetic.h"
#include "assembler/simulator/lanes.h"
#include "assembler/simulator/select.h"

namespace rndn::sim {

using isa::Mnemonic;
using isa::ModifierKind;

namespace {

struct Rounding {  // of the host, for the length of a scope
  explicit Rounding(uint32_t mode) {
    constexpr int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    std::fesetround(modes[mode & 3]);
  }
  ~Rounding() { std::fesetround(FE_TONEAREST); }
};
// Conversions under the host's mode; volatile keeps them inside the scope.
float narrow(double x) {
  const volatile double in = x;
  const volatile float out = static_cast<float>(in);
  return out;
}
template <class To, class From>
To convert(From x) {
  const volatile From in = x;
  const volatile To out = static_cast<To>(in);
  return out;
}

// Formats: 1 f16, 2 f32, 3 f64, 4 bf16. x: dest | source << 4 | rounding << 8 | flags << 12, see the selector.
struct Fields {
  uint32_t dest, source, rounding, is_signed, ftz, sat, part, wide_nan, integral;
};
Fields unpack(uint32_t x) {
  return {x & 7, x >> 4 & 7, x >> 8 & 3, x >> 12 & 1, x >> 13 & 1, x >> 14 & 1, x >> 16 & 3, x >> 20 & 1, x >> 21 & 1};
}

double load_float(const Warp& w, const Source& s, uint32_t lane, uint32_t format, uint32_t part, bool flushed) {
  const uint32_t* r = row(w, s);
  if (format == 3) return as_double(pair(r[lane], (r[lane + lanes] & s.keep) ^ s.flip));
  if (format == 2) {
    uint32_t v = (r[lane] & s.keep) ^ s.flip;
    if (flushed) v = flush(v);
    return static_cast<double>(as_float(v));
  }
  const uint32_t bits = r[lane] >> (part ? 16 : 0) & 0xffff;
  double h = static_cast<double>(as_float(format == 4 ? bits << 16 : half_to_float(bits)));
  if (s.keep != all_lanes) h = std::fabs(h);
  return s.flip ? -h : h;
}
void store_float(uint64_t* out, double v, const Fields& f) {
  if (f.dest == 3) {
    *out = as_bits(v);
  } else if (f.dest == 2) {
    uint32_t r = canonical(as_bits(narrow(v)));
    if (f.ftz) r = flush(r);
    *out = f.sat ? saturate(r) : r;
  } else {
    if (f.sat) v = v > 0 ? (v < 1 ? v : 1) : 0;
    *out = f.dest == 4 ? double_to_bfloat(v, f.rounding) : double_to_half(v, f.rounding);
    if (f.dest == 1 && f.ftz && (*out & 0x7c00) == 0) *out &= 0x8000;  // subnormal halves too, on an H200
  }
}

Status f2f(Warp& w, const Op& op, uint32_t mask) {
  const Fields f = unpack(op.x);
  uint64_t r[lanes] = {};
  {
    const Rounding mode(f.integral ? 0 : f.rounding);
    for_lanes(mask, [&](uint32_t l) {
      double v = load_float(w, op.a, l, f.source, f.part, f.ftz);
      if (f.integral) v = std::isfinite(v) ? std::copysign(round_to_integral(v, f.rounding), v) : v;
      store_float(&r[l], v, f);
    });
  }
  if (f.dest == 3) {
    commit_pairs(w, op.d, r, mask);
  } else {
    uint32_t low[lanes];
    for (uint32_t l = 0; l < lanes; ++l) low[l] = static_cast<uint32_t>(r[l]);
    commit(row(w, op.d), low, mask);
  }
  return Status::go;
}

// dest: integer size 0..3 = 8..64 bits.
Status f2i(Warp& w, const Op& op, uint32_t mask) {
  const Fields f = unpack(op.x);
  const uint32_t bits = 8u << f.dest;
  uint64_t r[lanes] = {};
  for_lanes(mask, [&](uint32_t l) {
    r[l] = to_integer(load_float(w, op.a, l, f.source, f.part, f.ftz), bits, f.is_signed, f.rounding, f.wide_nan);
  });
  if (bits == 64) {
    commit_pairs(w, op.d, r, mask);
  } else {
    uint32_t low[lanes];
    for (uint32_t l = 0; l < lanes; ++l) low[l] = static_cast<uint32_t>(r[l]);
    commit(row(w, op.d), low, mask);
  }
  return Status::go;
}

// What a double cannot hold of a long integer goes into its last bit, so that it is not rounded twice.
uint32_t integer_to_bfloat(uint64_t v, bool is_signed, uint32_t rounding) {
  const bool negative = is_signed && static_cast<int64_t>(v) < 0;
  uint64_t magnitude = negative ? 0 - v : v;
  if (magnitude >> 53) magnitude = (magnitude & ~uint64_t{0xfff}) | (magnitude & 0xfff ? 0x800 : 0);
  const double x = static_cast<double>(magnitude);
  return double_to_bfloat(negative ? -x : x, rounding);
}

// source: integer size; part: byte of the register where it starts.
Status i2f(Warp& w, const Op& op, uint32_t mask) {
  const Fields f = unpack(op.x);
  const uint32_t bits = 8u << f.source;
  const uint32_t* a = row(w, op.a);
  uint64_t r[lanes] = {};
  {
    const Rounding mode(f.rounding);
    for_lanes(mask, [&](uint32_t l) {
      uint64_t v = bits == 64 ? pair(a[l], a[l + lanes]) : zero_extend(a[l] >> (8 * f.part), bits);
      if (f.is_signed) v = sign_extend(v, bits);
      if (op.y && static_cast<int64_t>(v) < 0) v = 0 - v;  // |x|
      // Within the source's width: ptxas folds the negation of an integer into the conversion.
      if (op.z) v = f.is_signed ? sign_extend(0 - v, bits) : 0 - v;
      const bool negative_possible = f.is_signed || op.z;
      if (f.dest == 3)
        r[l] = as_bits(negative_possible ? convert<double>(static_cast<int64_t>(v)) : convert<double>(v));
      else if (f.dest == 2)
        r[l] = as_bits(negative_possible ? convert<float>(static_cast<int64_t>(v)) : convert<float>(v));
      else if (f.dest == 4)
        r[l] = integer_to_bfloat(v, negative_possible, f.rounding);
      else  // 64-bit integers beyond 2^53 are infinite as halves anyway
        r[l] = double_to_half(negative_possible ? static_cast<double>(static_cast<int64_t>(v)) : static_cast<double>(v),
                              f.rounding);
    });
  }
  if (f.dest == 3) {
    commit_pairs(w, op.d, r, mask);
  } else {
    uint32_t low[lanes];
    for (uint32_t l = 0; l < lanes; ++l) low[l] = static_cast<uint32_t>(r[l]);
    commit(row(w, op.d), low, mask);
  }
  return Status::go;
}

// Integer to integer, saturating. dest, source sizes; y |x|, z -x; is_signed = source, integral = destination signed. Writes CC (Pascal).
// Pascal: a 16-bit result leaves the upper half zero, also a signed one (ptxas stores I2I.S16.S8 as if zero-extended). Volta and later extend
// the sign (seen on an H200).
Status i2i(Warp& w, const Op& op, uint32_t mask) {
  const Fields f = unpack(op.x);
  const uint32_t from = 8u << f.source, to = 8u << f.dest;
  const bool pascal = w.launch->program->target->family == isa::Family::pascal;
  const uint32_t* a = row(w, op.a);
  uint32_t r[lanes] = {}, negative = 0, zero = 0;
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint64_t raw = zero_extend(a[l] >> (8 * f.part), from);
    int64_t v = static_cast<int64_t>(f.is_signed ? sign_extend(raw, from) : raw);
    if (op.y && v < 0) v = -v;
    if (op.z) v = -v;
    if (f.sat) {
      const int64_t low = f.integral ? -(int64_t{1} << (to - 1)) : 0,
                    high = (int64_t{1} << (f.integral ? to - 1 : to)) - 1;
      v = v < low ? low : v > high ? high : v;
    }
    r[l] = static_cast<uint32_t>(f.integral ? sign_extend(static_cast<uint64_t>(v), to)
                                            : zero_extend(static_cast<uint64_t>(v), to));
    negative |= (r[l] >> 31) << l;
    if (to == 16 && pascal) r[l] &= 0xffff;
    zero |= (r[l] == 0 ? 1u : 0u) << l;
  }
  commit(row(w, op.d), r, mask);
  if (op.pq == 1) {
    w.negative = (w.negative & ~mask) | (negative & mask);
    w.zero = (w.zero & ~mask) | (zero & mask);
    w.carry &= ~mask, w.overflow &= ~mask;
  }
  return Status::go;
}

}  // namespace

bool select_conversion(Selector& s, Op& op) {
  using K = ModifierKind;
  const auto has = [&](K kind) { return isa::has_modifier(s.in->form, kind); };
  const auto m = [&](K kind) -> uint32_t { return has(kind) ? s.modifier(kind) : 0; };
  const auto pack = [&](uint32_t dest, uint32_t source, uint32_t is_signed, uint32_t wide_nan, uint32_t integral) {
    return dest | source << 4 | m(K::Rounding) << 8 | is_signed << 12 | (m(K::FTZ) & 1) << 13 | m(K::SAT) << 14 |
           static_cast<uint32_t>(s.operand(1).part & 3) << 16 | wide_nan << 20 | integral << 21;
  };
  // Integers: the byte at which the source begins. Volta numbers the halves of a register 0 and 1, Pascal 0 and 2.
  const auto pack_integer = [&](uint32_t dest, uint32_t source, uint32_t is_signed, uint32_t integral) {
    const uint32_t part = s.volta() && source == 1 ? 2 * (s.operand(1).part & 1) : s.operand(1).part & 3;
    return (pack(dest, source, is_signed, 0, integral) & ~(3u << 16)) | part << 16;
  };
  const auto with = [&](Handler run) {
    op.run = run;
    return true;
  };
  const auto float_source = [&](uint32_t format) {
    // A literal half stands where the upper bits of a float begin (nvdisasm's text of Pascal's F2F and F2I).
    if (format == 1 && !s.volta() && s.operand(1).kind == isa::OperandKind::immediate)
      return s.immediate(static_cast<uint32_t>(s.operand(1).value >> 12) & 0xffff);
    return format == 3 ? s.f64(1) : s.f32(1);
  };
  if (s.in->mnemonic != Mnemonic::F2F && s.in->mnemonic != Mnemonic::FRND && s.in->mnemonic != Mnemonic::F2I &&
      s.in->mnemonic != Mnemonic::I2F && s.in->mnemonic != Mnemonic::I2FP && s.in->mnemonic != Mnemonic::I2I)
    return false;
  op.d = s.destination(0);
  if (isa::writes_carry(*s.in) && s.in->mnemonic != Mnemonic::I2I)
    return s.unsupported("a condition code written by a conversion");
  switch (s.in->mnemonic) {
    case Mnemonic::F2F:
    case Mnemonic::FRND: {
      const bool frnd = s.in->mnemonic == Mnemonic::FRND;
      const uint32_t dest = m(K::DestFormat) ? m(K::DestFormat) : 2;
      const uint32_t source = m(K::SourceFormat) ? m(K::SourceFormat) : dest;
      // Pascal: equal formats without the integral bit pass the value on.
      op.a = float_source(source);
      op.x = pack(dest, source, 0, 0, frnd || m(K::Integral));
      return with(f2f);
    }
    case Mnemonic::F2I: {
      const uint32_t dest = has(K::DestSize) ? m(K::DestSize) : 2, source = m(K::SourceFormat) ? m(K::SourceFormat) : 2;
      op.a = float_source(source);
      op.x = pack(dest, source, has(K::DestSigned) ? m(K::DestSigned) : m(K::Signed), dest == 3 || source == 3, 0);
      return with(f2i);
    }
    case Mnemonic::I2F:
    case Mnemonic::I2FP: {
      const uint32_t dest = m(K::DestFormat) ? m(K::DestFormat) : 2, source = has(K::SourceSize) ? m(K::SourceSize) : 2;
      op.a = s.source(1, source == 3 ? 2 : 1);
      op.y = s.operand(1).absolute, op.z = s.operand(1).negated;
      op.x = pack_integer(dest, source, has(K::SourceSigned) ? m(K::SourceSigned) : m(K::Signed), 0);
      return with(i2f);
    }
    default: {  // I2I
      const uint32_t dest = has(K::DestSize) ? m(K::DestSize) : 0, source = has(K::SourceSize) ? m(K::SourceSize) : 2;
      if (dest > 2 || source > 2) return s.unsupported("64-bit I2I");
      op.a = s.source(1, 1);
      op.y = s.operand(1).absolute, op.z = s.operand(1).negated;
      const uint32_t dest_signed = has(K::DestSigned) ? m(K::DestSigned) : m(K::Signed);
      op.x = pack_integer(dest, source, has(K::SourceSigned) ? m(K::SourceSigned) : 1, dest_signed) |
             (s.volta() ? 1u << 14 : 0);
      op.pq = isa::writes_carry(*s.in) ? 1 : trash_predicate;
      return with(i2i);
    }
  }
}

}  // namespace rndn::sim
