// Floating point of both families: add, multiply, fused multiply-add, compare, minimum, the approximations of MUFU.
//
// Rounding modes other than to nearest are those of the host, set around the loop over the lanes (the loop is a function of its own, so that
// nothing moves across). 32-bit operations give the canonical NaN; 64-bit ones what IEEE hosts give.
// The loops exist twice, for hosts with and without fused multiply-add and 256-bit vectors; which one runs is chosen at load.
// Source: PTX ISA, sections 9.7.3 and 9.7.4; MUFU: within 1 ulp, denormals flushed, as callers scale.
#include <cfenv>

#include "assembler/simulator/arithmetic.h"
#include "assembler/simulator/lanes.h"
#include "assembler/simulator/select.h"

namespace rndn::sim {

using isa::Mnemonic;
using isa::ModifierKind;

namespace {

enum : uint32_t { ftz = 1, sat = 2, fmz = 4 };

uint32_t finish(uint32_t r, uint32_t flags) {
  if (flags & ftz) r = flush(r);
  r = canonical(r);
  return flags & sat ? saturate(r) : r;
}
// A product is flushed when it stays below 2^-126 rounded to 24 digits, although with the 23 that floats just below 2^-126 have it may become
// 2^-126 (measured on an H200: mul and fma, .rn, .rz, .rp). Twice the value has its 24 digits there; it overflows only where r is not small.
uint32_t finish_product(float r, float twice, uint32_t flags) {
  const bool flushed = (flags & ftz) && std::fabs(twice) < 0x1p-125f;
  return finish(as_bits(r) & (flushed ? 0x80000000 : 0xffffffff), flags & ~ftz);
}

// Plain forms, which vectorise: no flags, round to nearest.
template <class F>
inline Status float2(Warp& w, const Op& op, uint32_t mask, F f) {
  map2(w, op, mask, [f](uint32_t a, uint32_t b) { return canonical(as_bits(f(as_float(a), as_float(b)))); });
  return Status::go;
}
template <class F>
inline Status float2_flags(Warp& w, const Op& op, uint32_t mask, F f) {
  const uint32_t flags = op.x;
  map2(w, op, mask, [=](uint32_t a, uint32_t b) {
    if (flags & ftz) a = flush(a), b = flush(b);
    return finish(as_bits(f(as_float(a), as_float(b))), flags);
  });
  return Status::go;
}

__attribute__((noinline)) Status fadd(Warp& w, const Op& op, uint32_t mask) {
  return float2(w, op, mask, [](float a, float b) { return a + b; });
}
__attribute__((noinline)) Status fmul(Warp& w, const Op& op, uint32_t mask) {
  return float2(w, op, mask, [](float a, float b) { return a * b; });
}
__attribute__((noinline)) Status fadd_flags(Warp& w, const Op& op, uint32_t mask) {
  return float2_flags(w, op, mask, [](float a, float b) { return a + b; });
}
// z: the scale's exponent; y: .FMZ (zero times anything is zero).
__attribute__((noinline)) Status fmul_flags(Warp& w, const Op& op, uint32_t mask) {
  const float scale = std::ldexp(1.0f, static_cast<int32_t>(op.z));
  const bool zero_wins = op.x & fmz;
  const uint32_t flags = op.x;
  map2(w, op, mask, [=](uint32_t a, uint32_t b) {
    if (flags & (ftz | fmz)) a = flush(a), b = flush(b);
    if (zero_wins && (as_float(a) == 0 || as_float(b) == 0)) return 0u;
    const float x = as_float(a) * scale, y = as_float(b);
    return finish_product(x * y, 2 * x * y, flags);
  });
  return Status::go;
}

template <class T>
inline T fused(T a, T b, T c) {
  return std::fma(a, b, c);
}

__attribute__((noinline)) Status ffma(Warp& w, const Op& op, uint32_t mask) {
  map3(w, op, mask, [](uint32_t a, uint32_t b, uint32_t c) {
    return canonical(as_bits(fused(as_float(a), as_float(b), as_float(c))));
  });
  return Status::go;
}
__attribute__((noinline)) Status ffma_flags(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t flags = op.x;
  map3(w, op, mask, [=](uint32_t a, uint32_t b, uint32_t c) {
    if (flags & (ftz | fmz)) a = flush(a), b = flush(b), c = flush(c);
    if ((flags & fmz) && (as_float(a) == 0 || as_float(b) == 0)) return c;
    const float x = as_float(a), y = as_float(b), z = as_float(c);
    return finish_product(fused(x, y, z), fused(2 * x, y, 2 * z), flags);
  });
  return Status::go;
}

template <class F>
inline Status double_map(Warp& w, const Op& op, uint32_t mask, bool three, F f) {
  alignas(64) uint64_t a[lanes], b[lanes], c[lanes] = {}, r[lanes];
  load_pairs(w, op.a, a);
  load_pairs(w, op.b, b);
  if (three) load_pairs(w, op.c, c);
  for (uint32_t l = 0; l < lanes; ++l) r[l] = as_bits(f(as_double(a[l]), as_double(b[l]), as_double(c[l])));
  commit_pairs(w, op.d, r, mask);
  return Status::go;
}
__attribute__((noinline)) Status dadd(Warp& w, const Op& op, uint32_t mask) {
  return double_map(w, op, mask, false, [](double a, double b, double) { return a + b; });
}
__attribute__((noinline)) Status dmul(Warp& w, const Op& op, uint32_t mask) {
  return double_map(w, op, mask, false, [](double a, double b, double) { return a * b; });
}
__attribute__((noinline)) Status dfma(Warp& w, const Op& op, uint32_t mask) {
  return double_map(w, op, mask, true, [](double a, double b, double c) { return fused(a, b, c); });
}

#if defined(__x86_64__)
// The same loops for hosts that have the instructions.
#pragma GCC push_options
#pragma GCC target("avx2,fma")
__attribute__((noinline)) Status ffma_host(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  const uint32_t ka = op.a.keep, fa = op.a.flip, kb = op.b.keep, fb = op.b.flip, kc = op.c.keep, fc = op.c.flip;
  alignas(64) uint32_t r[lanes];
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint32_t v = __builtin_bit_cast(uint32_t, __builtin_fmaf(__builtin_bit_cast(float, (a[l] & ka) ^ fa),
                                                                   __builtin_bit_cast(float, (b[l] & kb) ^ fb),
                                                                   __builtin_bit_cast(float, (c[l] & kc) ^ fc)));
    r[l] = (v & 0x7fffffff) > 0x7f800000 ? canonical_nan : v;
  }
  commit(row(w, op.d), r, mask);
  return Status::go;
}
__attribute__((noinline)) Status dfma_host(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  const uint32_t ka = op.a.keep, fa = op.a.flip, kb = op.b.keep, fb = op.b.flip, kc = op.c.keep, fc = op.c.flip;
  alignas(64) uint32_t low[lanes], high[lanes];
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint64_t va = static_cast<uint64_t>((a[l + lanes] & ka) ^ fa) << 32 | a[l],
                   vb = static_cast<uint64_t>((b[l + lanes] & kb) ^ fb) << 32 | b[l],
                   vc = static_cast<uint64_t>((c[l + lanes] & kc) ^ fc) << 32 | c[l];
    const uint64_t v = __builtin_bit_cast(
        uint64_t,
        __builtin_fma(__builtin_bit_cast(double, va), __builtin_bit_cast(double, vb), __builtin_bit_cast(double, vc)));
    low[l] = static_cast<uint32_t>(v), high[l] = static_cast<uint32_t>(v >> 32);
  }
  commit(row(w, op.d), low, mask);
  commit(row(w, op.d) + lanes, high, mask);
  return Status::go;
}
#pragma GCC pop_options
bool host_has_fma() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
bool host_has_fma() { return false; }
constexpr Handler ffma_host = ffma, dfma_host = dfma;
#endif

// Runs a loop under another rounding mode of the host.
template <Handler inner, uint32_t mode>
Status rounded(Warp& w, const Op& op, uint32_t mask) {
  constexpr int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
  std::fesetround(modes[mode]);
  const Status status = inner(w, op, mask);
  std::fesetround(FE_TONEAREST);
  return status;
}
template <Handler inner>
Handler with_rounding(uint32_t mode) {
  switch (mode & 3) {
    case 1: return rounded<inner, 1>;
    case 2: return rounded<inner, 2>;
    case 3: return rounded<inner, 3>;
    default: return inner;
  }
}

// Compare outcomes as lane masks: 1 less, 2 equal, 4 greater, 8 unordered.
uint32_t pick(uint32_t code, uint32_t lt, uint32_t eq, uint32_t un) {
  return (code & 1 ? lt : 0) | (code & 2 ? eq : 0) | (code & 4 ? ~(lt | eq | un) : 0) | (code & 8 ? un : 0);
}
uint32_t float_compare(Warp& w, const Op& op, bool flushed) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  uint32_t less[lanes], equal[lanes], unordered[lanes];
  for (uint32_t l = 0; l < lanes; ++l) {
    uint32_t x = (a[l] & op.a.keep) ^ op.a.flip, y = (b[l] & op.b.keep) ^ op.b.flip;
    if (flushed) x = flush(x), y = flush(y);
    const float fx = as_float(x), fy = as_float(y);
    less[l] = fx < fy ? all_lanes : 0;
    equal[l] = fx == fy ? all_lanes : 0;
    unordered[l] = fx != fx || fy != fy ? all_lanes : 0;
  }
  return pick(op.x, signs(less), signs(equal), signs(unordered));
}
uint32_t double_compare(Warp& w, const Op& op) {
  uint64_t a[lanes], b[lanes];
  load_pairs(w, op.a, a);
  load_pairs(w, op.b, b);
  uint32_t less[lanes], equal[lanes], unordered[lanes];
  for (uint32_t l = 0; l < lanes; ++l) {
    const double x = as_double(a[l]), y = as_double(b[l]);
    less[l] = x < y ? all_lanes : 0;
    equal[l] = x == y ? all_lanes : 0;
    unordered[l] = x != x || y != y ? all_lanes : 0;
  }
  return pick(op.x, signs(less), signs(equal), signs(unordered));
}
uint32_t combine(const Op& op, uint32_t t, uint32_t p) { return op.z == 0 ? t & p : op.z == 1 ? t | p : t ^ p; }

// x compare, z combination; y: flush (setp), or .BF (set; flush in bit 1).
Status fsetp(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t t = float_compare(w, op, op.y), p = lane_mask(w, op.ps);
  commit_predicate(w, op.pd, combine(op, t, p), mask);
  commit_predicate(w, op.pq, combine(op, ~t, p), mask);
  return Status::go;
}
Status dsetp(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t t = double_compare(w, op), p = lane_mask(w, op.ps);
  commit_predicate(w, op.pd, combine(op, t, p), mask);
  commit_predicate(w, op.pq, combine(op, ~t, p), mask);
  return Status::go;
}
template <bool wide>
Status fset(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t t = wide ? double_compare(w, op) : float_compare(w, op, op.y & 2);
  uint32_t r[lanes];
  expand(combine(op, t, lane_mask(w, op.ps)), r);
  if (op.y & 1)
    for (uint32_t& v : r) v &= 0x3f800000;
  commit(row(w, op.d), r, mask);
  if (op.y & 4) {  // the condition code tells whether the result is zero, and its sign
    uint32_t zero = 0, negative = 0;
    for (uint32_t l = 0; l < lanes; ++l) {
      zero |= (r[l] == 0 ? 1u : 0u) << l;
      negative |= r[l] >> 31 << l;
    }
    w.zero = (w.zero & ~mask) | (zero & mask);
    w.negative = (w.negative & ~mask) | (negative & mask);
    w.carry &= ~mask, w.overflow &= ~mask;
  }
  return Status::go;
}
// Volta's minimum and maximum of doubles: pd selects A (x: maximum), pq tells of a NaN result. A NaN loses against a number.
Status dsetp_select(Warp& w, const Op& op, uint32_t mask) {
  uint64_t a[lanes], b[lanes];
  load_pairs(w, op.a, a);
  load_pairs(w, op.b, b);
  uint32_t first = 0, nan = 0;
  for (uint32_t l = 0; l < lanes; ++l) {
    const double x = as_double(a[l]), y = as_double(b[l]);
    bool take;
    if (x != x || y != y)
      take = y != y && x == x;
    else if (x == y)
      take = std::signbit(x) != static_cast<bool>(op.x) || std::signbit(x) == std::signbit(y);  // -0 is less than +0
    else
      take = (x < y) != static_cast<bool>(op.x);
    first |= (take ? 1u : 0u) << l;
    nan |= (x != x && y != y ? 1u : 0u) << l;
  }
  const uint32_t p = lane_mask(w, op.ps);
  commit_predicate(w, op.pd, combine(op, first, p), mask);
  commit_predicate(w, op.pq, combine(op, nan, p), mask);
  return Status::go;
}

// FMNMX: x flags, y bit 0 NaN wins, bit 1 the sign is the product of the signs that the operands, negated or not, have before |..|, which ptxas writes beside
// it for min.xorsign.abs (negated operands it has in registers of their own); what is no number keeps its bits (PTX ISA 8.x, "Floating Point Instructions: min").
Status fmnmx(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  uint32_t p[lanes], r[lanes];
  expand(lane_mask(w, op.ps), p);
  for (uint32_t l = 0; l < lanes; ++l) {
    uint32_t x = (a[l] & op.a.keep) ^ op.a.flip, y = (b[l] & op.b.keep) ^ op.b.flip;
    if (op.x & ftz) x = flush(x), y = flush(y);
    const uint32_t sign = (a[l] ^ op.a.flip ^ b[l] ^ op.b.flip) & 0x80000000;
    if (op.y & 2) x &= 0x7fffffff, y &= 0x7fffffff;
    const float fx = as_float(x), fy = as_float(y);
    const bool nx = fx != fx, ny = fy != fy;
    if (nx || ny) {
      r[l] = (op.y & 1) || (nx && ny) ? canonical_nan : nx ? y : x;
    } else {
      // Ordered by value, then by sign: -0 < +0.
      const bool less = fx < fy || (fx == fy && (x >> 31) > (y >> 31));
      r[l] = less == (p[l] != 0) ? x : y;
    }
    if ((op.y & 2) && (r[l] & 0x7fffffff) <= 0x7f800000) r[l] |= sign;
  }
  commit(row(w, op.d), r, mask);
  return Status::go;
}
Status dmnmx(Warp& w, const Op& op, uint32_t mask) {
  uint64_t a[lanes], b[lanes], r[lanes];
  load_pairs(w, op.a, a);
  load_pairs(w, op.b, b);
  const uint32_t p = lane_mask(w, op.ps);
  for (uint32_t l = 0; l < lanes; ++l) {
    const double x = as_double(a[l]), y = as_double(b[l]);
    if (x != x || y != y) {
      r[l] = x == x ? a[l] : y == y ? b[l] : a[l] | 0x0008'0000'0000'0000;
    } else {
      const bool less = x < y || (x == y && std::signbit(x) > std::signbit(y));
      r[l] = less == ((p >> l & 1) != 0) ? a[l] : b[l];
    }
  }
  commit_pairs(w, op.d, r, mask);
  return Status::go;
}
// Pascal: C against zero chooses.
Status fcmp(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  Op test = op;
  test.a = op.c;
  test.b = Source{};
  uint32_t t[lanes], r[lanes];
  expand(float_compare(w, test, op.y), t);
  for (uint32_t l = 0; l < lanes; ++l) r[l] = t[l] ? a[l] : b[l];
  commit(row(w, op.d), r, mask);
  return Status::go;
}

// Whether a / b needs the slow path: the quick one (reciprocal and Newton steps) is exact while neither the operands, the quotient nor
// the residuals leave the normal range. Callers only rely on "false is safe".
Status fchk(Warp& w, const Op& op, uint32_t mask) {
  uint32_t slow = 0;
  for (uint32_t l = 0; l < lanes; ++l) {
    const int32_t ea = static_cast<int32_t>(value(w, op.a, l) >> 23 & 255),
                  eb = static_cast<int32_t>(value(w, op.b, l) >> 23 & 255);
    const bool quick = ea > 25 && ea < 255 && eb > 2 && eb < 252 && ea - eb > -124 && ea - eb < 126;
    slow |= (quick ? 0u : 1u) << l;
  }
  commit_predicate(w, op.pd, slow, mask);
  return Status::go;
}

// x function, y family (0: angles in turns as Volta's callers pass them; 1: radians through RRO).
float special_function(uint32_t function, float v, bool radians) {
  constexpr double two_pi = 6.283185307179586476925;
  const double d = static_cast<double>(as_float(flush(as_bits(v))));
  switch (function) {
    case 0: return static_cast<float>(std::cos(radians ? d : d * two_pi));
    case 1: return static_cast<float>(std::sin(radians ? d : d * two_pi));
    case 2: return static_cast<float>(std::exp2(d));
    case 3: return static_cast<float>(std::log2(d));
    case 4: return static_cast<float>(1.0 / d);
    case 5: return static_cast<float>(1.0 / std::sqrt(d));
    case 8: return static_cast<float>(std::sqrt(d));
    default: return static_cast<float>(std::tanh(d));
  }
}
Status mufu(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t* a = row(w, op.a);
  uint32_t r[lanes] = {};
  for_lanes(mask, [&](uint32_t l) {
    const uint32_t v = (a[l] & op.a.keep) ^ op.a.flip;
    if (op.x == 6 || op.x == 7) {
      // High words: the low word of the operand is taken as zero.
      const double d = as_double(static_cast<uint64_t>(v) << 32);
      const double result = op.x == 6 ? 1.0 / d : 1.0 / std::sqrt(d);
      r[l] = result != result ? 0x7fffffff : static_cast<uint32_t>(as_bits(result) >> 32);
    } else {
      r[l] = canonical(flush(as_bits(special_function(op.x, as_float(v), op.y))));
    }
    if (op.z) r[l] = saturate(r[l]);
  });
  commit(row(w, op.d), r, mask);
  return Status::go;
}

// One half, in the lower bits of the result. z: upper half of the source | absolute value << 1 | negated << 2.
Status mufu_half(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t* a = row(w, op.a);
  uint32_t r[lanes] = {};
  for_lanes(mask, [&](uint32_t l) {
    uint32_t h = a[l] >> (op.z & 1 ? 16 : 0) & 0xffff;
    if (op.z & 2) h &= 0x7fff;
    if (op.z & 4) h ^= 0x8000;
    r[l] = double_to_half(static_cast<double>(special_function(op.x, as_float(half_to_float(h)), false)), 0);
  });
  commit(row(w, op.d), r, mask);
  return Status::go;
}

}  // namespace

bool select_float(Selector& s, Op& op) {
  using K = ModifierKind;
  const auto m = [&](K kind) { return s.modifier(kind); };
  const auto with = [&](Handler run) {
    op.run = run;
    return true;
  };
  const auto flags = [&] {
    // Pascal's FMUL and FFMA have FTZ 1 and FMZ 2 in one field.
    const uint8_t f = m(K::FTZ);
    return (f & 1u ? ftz : 0u) | (f & 2u ? fmz : 0u) | (m(K::SAT) ? sat : 0u) |
           (isa::has_modifier(s.in->form, K::FMZ) && m(K::FMZ) ? fmz : 0u);
  };
  switch (s.in->mnemonic) {
    case Mnemonic::FADD:
    case Mnemonic::FADD32I:
      op.d = s.destination(0);
      op.a = s.f32(1), op.b = s.f32(2);
      op.x = flags();
      return with(op.x ? with_rounding<fadd_flags>(m(K::Rounding)) : with_rounding<fadd>(m(K::Rounding)));
    case Mnemonic::FMUL:
    case Mnemonic::FMUL32I: {
      op.d = s.destination(0);
      op.a = s.f32(1), op.b = s.f32(2);
      op.x = flags();
      constexpr int32_t volta_scale[8] = {0, -3, -2, -1, 0, 1, 2, 3}, pascal_scale[8] = {0, -1, -2, -3, 3, 2, 1, 0};
      int32_t scale = 0;
      if (isa::has_modifier(s.in->form, K::Scale)) scale = (s.volta() ? volta_scale : pascal_scale)[m(K::Scale) & 7];
      op.z = static_cast<uint32_t>(scale);
      return with(op.x || scale ? with_rounding<fmul_flags>(m(K::Rounding)) : with_rounding<fmul>(m(K::Rounding)));
    }
    case Mnemonic::FFMA:
    case Mnemonic::FFMA32I: {
      const bool immediate = s.in->mnemonic == Mnemonic::FFMA32I;
      op.d = s.destination(0);
      op.a = s.f32(1), op.b = s.f32(2);
      op.c = immediate ? s.f32(0) : s.f32(3);
      op.x = flags();
      if (op.x) return with(with_rounding<ffma_flags>(m(K::Rounding)));
      if (m(K::Rounding) == 0 && host_has_fma()) return with(ffma_host);
      return with(with_rounding<ffma>(m(K::Rounding)));
    }
    case Mnemonic::DADD:
      op.d = s.destination(0);
      op.a = s.f64(1), op.b = s.f64(2);
      return with(with_rounding<dadd>(m(K::Rounding)));
    case Mnemonic::DMUL:
      op.d = s.destination(0);
      op.a = s.f64(1), op.b = s.f64(2);
      return with(with_rounding<dmul>(m(K::Rounding)));
    case Mnemonic::DFMA:
      op.d = s.destination(0);
      op.a = s.f64(1), op.b = s.f64(2), op.c = s.f64(3);
      if (m(K::Rounding) == 0 && host_has_fma()) return with(dfma_host);
      return with(with_rounding<dfma>(m(K::Rounding)));
    case Mnemonic::FSETP:
      op.pd = s.predicate_destination(0), op.pq = s.predicate_destination(1);
      op.a = s.f32(2), op.b = s.f32(3);
      op.ps = s.predicate(4);
      op.x = m(K::FloatCompare), op.y = m(K::FTZ), op.z = m(K::Bool);
      return with(fsetp);
    case Mnemonic::DSETP:
      op.pd = s.predicate_destination(0), op.pq = s.predicate_destination(1);
      op.a = s.f64(2), op.b = s.f64(3);
      op.ps = s.predicate(4);
      op.x = m(K::FloatCompare), op.z = m(K::Bool);
      if (s.volta() && (op.x == 0 || op.x == 15)) {
        op.x = op.x == 15;
        return with(dsetp_select);
      }
      return with(dsetp);
    case Mnemonic::FSET:
    case Mnemonic::DSET: {
      const bool wide = s.in->mnemonic == Mnemonic::DSET;
      op.d = s.destination(0);
      op.a = wide ? s.f64(1) : s.f32(1), op.b = wide ? s.f64(2) : s.f32(2);
      op.ps = s.predicate(3);
      op.x = m(K::FloatCompare), op.z = m(K::Bool);
      op.y = (s.volta() ? 1u : m(K::BF)) | (wide ? 0u : m(K::FTZ) << 1);  // Volta has only .BF
      if (isa::writes_carry(*s.in)) op.y |= 4;
      return with(wide ? fset<true> : fset<false>);
    }
    case Mnemonic::FMNMX:
      op.d = s.destination(0);
      op.a = s.f32(1), op.b = s.f32(2);
      op.ps = s.predicate(3);
      op.x = m(K::FTZ) ? 1 : 0;  // = ftz
      op.y = (isa::has_modifier(s.in->form, K::NaN) ? m(K::NaN) : 0u) |
             (isa::has_modifier(s.in->form, K::XorSign) ? m(K::XorSign) << 1 : 0u);
      return with(fmnmx);
    case Mnemonic::DMNMX:
      op.d = s.destination(0);
      op.a = s.f64(1), op.b = s.f64(2);
      op.ps = s.predicate(3);
      return with(dmnmx);
    case Mnemonic::FCMP:
      op.d = s.destination(0);
      op.a = s.f32(1), op.b = s.f32(2), op.c = s.f32(3);
      op.x = m(K::FloatCompare), op.y = m(K::FTZ);
      return with(fcmp);
    case Mnemonic::FCHK:
      op.pd = s.predicate_destination(0);
      op.a = s.f32(1), op.b = s.f32(2);
      return with(fchk);
    case Mnemonic::MUFU:
      op.d = s.destination(0);
      op.a = s.f32(1);
      op.x = m(K::Function), op.y = !s.volta();
      if (op.x > 9) return s.unsupported("an unknown function of MUFU");
      if (isa::has_modifier(s.in->form, K::HalfFormat) && m(K::HalfFormat)) {
        if (s.operand(1).kind != isa::OperandKind::gpr) return s.unsupported("MUFU of half precision of a constant");
        op.a = s.source(1, 1);
        op.z = s.operand(1).part | s.operand(1).absolute << 1 | s.operand(1).negated << 2;
        return with(mufu_half);
      }
      op.z = isa::has_modifier(s.in->form, K::SAT) && m(K::SAT);
      return with(mufu);
    case Mnemonic::RRO:  // range reduction: the functions above take any argument, so that it passes its operand on
      op.d = s.destination(0);
      op.a = s.f32(1);
      return with([](Warp& w, const Op& o, uint32_t mask) {
        map1(w, o, mask, [](uint32_t a) { return a; });
        return Status::go;
      });
    default: return false;
  }
}

}  // namespace rndn::sim
