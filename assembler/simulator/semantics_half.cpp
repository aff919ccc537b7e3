// Half precision, two values per register, and packing conversions (Volta and later).
// Source: PTX ISA, sections 9.7.4 (half precision) and 9.7.9.21 (cvt). bfloat16 has the same operations, rounded once from the exact result.
#include <algorithm>
#include <cmath>

#include "assembler/simulator/arithmetic.h"
#include "assembler/simulator/lanes.h"
#include "assembler/simulator/select.h"

namespace rndn::sim {

using isa::Mnemonic;
using isa::ModifierKind;

namespace {

enum : uint32_t { ftz = 1, sat = 2, fmz = 4, as_f32 = 8, relu = 16, bfloat = 32 };

double to_double(uint32_t h, uint32_t flags = 0) {
  if (flags & bfloat) return static_cast<double>(as_float((h & 0xffff) << 16));
  return static_cast<double>(as_float(half_to_float(h & 0xffff)));
}
// .FTZ flushes a result that stays below 2^-14 when rounded to 11 digits, that is, one below the middle of the last two such numbers; with
// the 10 digits that halves just below 2^-14 have, some of these would have become 2^-14 (measured on an H200: 0x3bff * 0x0400 is 0).
constexpr double least_normal = 0x1p-14 - 0x1p-26;
uint32_t flush_half(uint32_t h) { return h & 0x7c00 ? h : h & 0x8000; }

// a * b + c rounded to odd: the product is exact as a double, and of the two doubles beside an inexact sum the one with an odd last place
// stands for it, which no number of the format and no middle of two has. Source: Boldo and Melquiond, Emulation of a FMA and correctly
// rounded sums: proved algorithms using rounding to odd, IEEE Transactions on Computers 57(4), 2008; what the sum lost: Knuth's TwoSum.
double fused(double a, double b, double c) {
  const double p = a * b, s = p + c;
  if (!std::isfinite(s)) return s;
  const double t = s - p, lost = (p - (s - t)) + (c - t);
  if (lost == 0 || as_bits(s) & 1) return s;
  return std::nextafter(s, lost > 0 ? HUGE_VAL : -HUGE_VAL);
}
uint32_t finish(double v, uint32_t flags) {
  if (flags & sat) v = v > 0 ? (v < 1 ? v : 1) : 0;
  uint32_t h = flags & bfloat ? double_to_bfloat(v, 0) : double_to_half(v, 0);
  if (flags & ftz && std::fabs(v) < least_normal) h &= 0x8000;
  return (flags & relu) && h & 0x8000 ? 0 : h;
}
// Which half of a source makes half `i` of the result: part 0 the same, 2 the lower, 3 the upper.
uint32_t choose(uint32_t v, uint32_t part, uint32_t i) {
  return v >> (part == 3 || (part == 0 && i) ? 16 : 0) & 0xffff;
}

// What half `i` of the result takes of a source; part 1: one f32 for both.
double element(uint32_t v, uint32_t part, uint32_t i, uint32_t flags) {
  if ((part & 3) == 1) return static_cast<double>(as_float(v));
  const uint32_t h = choose(v, part & 3, i);
  return to_double(flags & (ftz | fmz) ? flush_half(h) : h, flags);
}

// x flags; y: part of A | of B << 2 | of C << 4; z: 1 product only adds C when true, 0: A + B.
Status half2(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t flags = op.x, parts = op.y;
  const bool product = op.z;
  map3(w, op, mask, [=](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r = 0;
    for (uint32_t i = 0; i < 2; ++i) {
      const double x = element(a, parts, i, flags), y = element(b, parts >> 2, i, flags),
                   z = element(c, parts >> 4, i, flags);
      const bool dropped = (flags & fmz) && (x == 0 || y == 0);
      const double v = !product ? fused(x, 1, y) : dropped ? z : fused(x, y, z);
      if ((parts & 3) == 1) {  // ptxas uses the form with an f32 source for cvt.rz
        r |= double_to_half(v, 3) << 16 * i;
        continue;
      }
      // A half, widened: ptxas makes it of add.f16 or mul.f16 and cvt.f32.f16 (sm_75).
      if (flags & as_f32) return canonical(half_to_float(finish(v, flags)));
      r |= finish(v, flags) << 16 * i;
    }
    return r;
  });
  return Status::go;
}

bool compared(double x, double y, uint32_t code) {
  const bool ordered = x == x && y == y;
  const uint32_t order = x < y ? 1 : x == y ? 2 : 4;
  return ordered ? (code & 7 & order) != 0 : code & 8;
}
// HSET2, HSETP2. x flags, y parts, z: compare | combination << 4 | .BF << 6 | .H_AND << 7.
void compare_halves(Warp& w, const Op& op, uint32_t out[2]) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  out[0] = out[1] = 0;
  for (uint32_t l = 0; l < lanes; ++l)
    for (uint32_t i = 0; i < 2; ++i) {
      const double x = element((a[l] & op.a.keep) ^ op.a.flip, op.y, i, op.x),
                   y = element((b[l] & op.b.keep) ^ op.b.flip, op.y >> 2, i, op.x);
      out[i] |= static_cast<uint32_t>(compared(x, y, op.z & 15)) << l;
    }
  if (op.z >> 7 & 1) {
    out[0] &= out[1];
    out[1] = ~out[0];
  }
  const uint32_t p = lane_mask(w, op.ps);
  for (uint32_t i = 0; i < 2; ++i) switch (op.z >> 4 & 3) {
      case 0: out[i] &= p; break;
      case 1: out[i] |= p; break;
      default: out[i] ^= p;
    }
}
Status hsetp2(Warp& w, const Op& op, uint32_t mask) {
  uint32_t t[2];
  compare_halves(w, op, t);
  commit_predicate(w, op.pd, t[0], mask);
  commit_predicate(w, op.pq, t[1], mask);
  return Status::go;
}
Status hset2(Warp& w, const Op& op, uint32_t mask) {
  uint32_t t[2], r[lanes];
  compare_halves(w, op, t);
  const uint32_t yes = !(op.z >> 6 & 1) ? 0xffff : op.x & bfloat ? 0x3f80 : 0x3c00;
  for (uint32_t l = 0; l < lanes; ++l) r[l] = (t[0] >> l & 1 ? yes : 0) | (t[1] >> l & 1 ? yes << 16 : 0);
  commit(row(w, op.d), r, mask);
  return Status::go;
}
// z: bit 0 NaN wins, bit 1 .XORSIGN, as in FMNMX.
Status hmnmx2(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  uint32_t p[lanes], r[lanes];
  expand(lane_mask(w, op.ps), p);
  for (uint32_t l = 0; l < lanes; ++l) {
    r[l] = 0;
    for (uint32_t i = 0; i < 2; ++i) {
      uint32_t ha = choose((a[l] & op.a.keep) ^ op.a.flip, op.y & 3, i),
               hb = choose((b[l] & op.b.keep) ^ op.b.flip, op.y >> 2 & 3, i), h;
      if (op.x & ftz) ha = flush_half(ha), hb = flush_half(hb);
      const uint32_t sign =
          (choose(a[l] ^ op.a.flip, op.y & 3, i) ^ choose(b[l] ^ op.b.flip, op.y >> 2 & 3, i)) & 0x8000;
      if (op.z & 2) ha &= 0x7fff, hb &= 0x7fff;
      const double x = to_double(ha, op.x), y = to_double(hb, op.x);
      if (x != x || y != y) {
        h = (op.z & 1) || (x != x && y != y) ? 0x7fff : x != x ? hb : ha;
      } else {
        const bool less = x < y || (x == y && (ha >> 15) > (hb >> 15));
        h = less == (p[l] != 0) ? ha : hb;
      }
      if ((op.z & 2) && to_double(h, op.x) == to_double(h, op.x)) h |= sign;
      r[l] |= h << 16 * i;
    }
  }
  commit(row(w, op.d), r, mask);
  return Status::go;
}

// One float to a half (or, y, to bfloat16); z: towards zero.
uint32_t narrow(const Op& op, uint32_t v) {
  const bool bfloat = op.y, toward_zero = op.z;
  if (toward_zero) {
    if ((v & 0x7fffffff) > 0x7f800000) return 0x7fff;
    const uint32_t h = bfloat ? v >> 16 : double_to_half(static_cast<double>(as_float(v)), 3);
    return (op.x & relu) && h & 0x8000 ? 0 : h;
  }
  if (!bfloat) return finish(static_cast<double>(as_float(v)), op.x);
  if ((v & 0x7fffffff) > 0x7f800000) return 0x7fff;
  const uint32_t h = (v + 0x7fff + (v >> 16 & 1)) >> 16;  // nearest, ties to even
  return (op.x & relu) && h & 0x8000 ? 0 : h;
}
// A to the upper half, B to the lower.
Status pack_halves(Warp& w, const Op& op, uint32_t mask) {
  map2(w, op, mask, [&](uint32_t a, uint32_t b) { return narrow(op, a) << 16 | narrow(op, b); });
  return Status::go;
}
// One float in the lower half, above it a half of B (size: the upper): ptxas packs two floats by two of these.
Status merge_half(Warp& w, const Op& op, uint32_t mask) {
  const bool upper = op.size;
  map2(w, op, mask, [&](uint32_t a, uint32_t b) { return (upper ? b & 0xffff0000 : b << 16) | narrow(op, a); });
  return Status::go;
}

// Floats of 8 bits: E5M2 (5 bits of exponent, 2 of fraction) has infinities and NaN as f16 has; E4M3 has the numbers up to 448 and NaN (0x7f). To
// nearest, ties to even; beyond the largest number the largest, NaN 0x7f. Source: Micikevicius et al., FP8 formats for deep learning, 2022.
uint32_t to_e8(double v, bool e4m3, bool clamps) {
  if (std::isnan(v)) return 0x7f;
  const uint32_t sign = std::signbit(v) ? 0x80 : 0;
  if (clamps && sign) return 0;
  const int fraction = e4m3 ? 3 : 2, least = e4m3 ? -6 : -14;
  const double magnitude = std::fabs(v);
  if (magnitude >= (e4m3 ? 448 : 57344)) return sign | (e4m3 ? 0x7e : 0x7b);
  const int exponent = magnitude < std::ldexp(1, least) ? least : std::ilogb(magnitude);
  // In units of the last place, with the hidden bit where the number is normal; a carry into the exponent is what it must be.
  const auto whole = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, fraction - exponent)));
  return sign | ((static_cast<uint32_t>(exponent - least) << fraction) + whole);
}
uint32_t e8_to_half(uint32_t e, bool e4m3) {
  if (!e4m3) return (e & 0x7f) > 0x7c ? 0x7fff : e << 8;
  if ((e & 0x7f) == 0x7f) return 0x7fff;
  const uint32_t exponent = e >> 3 & 15, fraction = e & 7;
  const double v = exponent ? std::ldexp(8 + fraction, static_cast<int>(exponent) - 10) : std::ldexp(fraction, -9);
  return (e & 0x80) << 8 | double_to_half(v, 0);
}
// x: .RELU; y: E4M3; z: A and B are the halves of A; size: the upper half of C.
Status halves_to_e8(Warp& w, const Op& op, uint32_t mask) {
  const bool clamps = op.x, e4m3 = op.y, of_halves = op.z, upper = op.size;
  map3(w, op, mask, [=](uint32_t a, uint32_t b, uint32_t c) {
    const double high = of_halves ? to_double(a >> 16) : static_cast<double>(as_float(a));
    const double low = of_halves ? to_double(a) : static_cast<double>(as_float(b));
    return (upper ? c & 0xffff0000 : c << 16) | to_e8(high, e4m3, clamps) << 8 | to_e8(low, e4m3, clamps);
  });
  return Status::go;
}
Status e8_to_halves(Warp& w, const Op& op, uint32_t mask) {
  const bool clamps = op.x, e4m3 = op.y, upper = op.size;
  map1(w, op, mask, [=](uint32_t a) {
    const auto half = [&](uint32_t e) {
      const uint32_t h = e8_to_half(e & 0xff, e4m3);
      return clamps && h & 0x8000 ? 0 : h;
    };
    const uint32_t pair = upper ? a >> 16 : a;
    return half(pair >> 8) << 16 | half(pair);
  });
  return Status::go;
}
// A and B saturated to x bits (y: signed), A above B, C above both.
Status pack_integers(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t bits = op.x;
  const bool is_signed = op.y;
  map3(w, op, mask, [=](uint32_t a, uint32_t b, uint32_t c) {
    const auto narrow = [&](uint32_t v) {
      const int32_t most = (1 << (bits - is_signed)) - 1, least = is_signed ? -most - 1 : 0;
      return static_cast<uint32_t>(std::clamp(static_cast<int32_t>(v), least, most)) & ((1u << bits) - 1);
    };
    const uint32_t both = narrow(a) << bits | narrow(b);
    return bits == 16 ? both : c << 2 * bits | both;
  });
  return Status::go;
}
// One float to a byte, truncated and saturated.
Status float_to_byte(Warp& w, const Op& op, uint32_t mask) {
  const bool is_signed = op.x;
  const uint32_t rounding = op.y;
  map1(w, op, mask, [=](uint32_t a) {
    return static_cast<uint32_t>(to_integer(static_cast<double>(as_float(a)), 8, is_signed, rounding, false)) & 0xff;
  });
  return Status::go;
}

}  // namespace

bool select_half(Selector& s, Op& op) {
  using K = ModifierKind;
  const auto m = [&](K kind) -> uint32_t { return isa::has_modifier(s.in->form, kind) ? s.modifier(kind) : 0; };
  const auto with = [&](Handler run) {
    op.run = run;
    return true;
  };
  const auto half = [&](uint32_t k, uint32_t position) {
    Source source = s.source(k, 1);
    uint32_t part = s.operand(k).part & 3;
    // Pascal takes one f32 from a constant bank (ptxas 11.8: `mul.f16 d, a, 0x2baa` reads c[2][0] = 0.0598754883f).
    if (!s.volta() && s.operand(k).kind == isa::OperandKind::constant) part = 1;
    if (part == 1) {
      source = s.f32(k);
      const bool compares = s.in->mnemonic == Mnemonic::HSETP2 || s.in->mnemonic == Mnemonic::HSET2;
      if ((position == 0 && s.in->mnemonic != Mnemonic::HADD2 && !compares) || s.in->mnemonic == Mnemonic::HMNMX2)
        s.error = "a 32-bit source of a half-precision operation";
    } else {
      if (s.operand(k).absolute) source.keep = 0x7fff7fff;
      if (s.operand(k).negated) source.flip = 0x80008000;
    }
    op.y |= part << 2 * position;
    return source;
  };
  const auto immediate = [&](uint32_t high) {
    return s.immediate(static_cast<uint32_t>(s.operand(high).value & 0xffff) << 16 |
                       static_cast<uint32_t>(s.operand(high + 1).value & 0xffff));
  };
  switch (s.in->mnemonic) {
    case Mnemonic::HADD2:
    case Mnemonic::HMUL2:
    case Mnemonic::HFMA2:
    case Mnemonic::HFMA2_MMA: {
      op.d = s.destination(0);
      op.x = (m(K::FTZ) & 1 ? ftz : 0u) | (m(K::SAT) ? sat : 0u) | (m(K::FMZ) || m(K::FTZ) & 2 ? fmz : 0u) |
             (m(K::HalfFormat) ? as_f32 : 0u) | (m(K::Pack) ? bfloat : 0u);
      if (m(K::HalfFormat) > 1) return s.unsupported("a half-precision result merged into its register");
      op.a = half(1, 0);
      const bool immediate_b = s.operand(2).kind == isa::OperandKind::immediate;
      op.b = immediate_b ? immediate(2) : half(2, 1);
      if (s.in->mnemonic == Mnemonic::HADD2) return with(half2);
      op.z = 1;
      if (s.in->mnemonic == Mnemonic::HMUL2) {
        op.c = s.immediate(0x80008000);
        return with(half2);
      }
      const bool immediate_c = s.operand(3).kind == isa::OperandKind::immediate && !immediate_b;
      const bool own = s.in->operand_count == 4 && immediate_b;  // HFMA2_32I adds to its destination
      op.c = own ? half(0, 2) : immediate_b ? half(4, 2) : immediate_c ? immediate(3) : half(3, 2);
      const uint32_t last = immediate_b || immediate_c ? 5 : 4;
      if (s.in->operand_count > last && s.operand(last).kind == isa::OperandKind::predicate) {
        if (s.operand(last).reg != isa::PT || s.operand(last).negated)
          return s.unsupported("HFMA2.RELU with a predicate");
        op.x |= relu;
      }
      return with(half2);
    }
    case Mnemonic::HMNMX2:
    case Mnemonic::HSET2:
    case Mnemonic::HSETP2: {
      const bool predicates = s.in->mnemonic == Mnemonic::HSETP2;
      const uint32_t first = predicates ? 2 : 1;
      if (predicates)
        op.pd = s.predicate_destination(0), op.pq = s.predicate_destination(1);
      else
        op.d = s.destination(0);
      op.x = (m(K::FTZ) ? ftz : 0u) | (m(K::Pack) ? bfloat : 0u);
      op.a = half(first, 0);
      const bool literal = s.operand(first + 1).kind == isa::OperandKind::immediate;
      op.b = literal ? immediate(first + 1) : half(first + 1, 1);
      op.ps = s.predicate(first + (literal ? 3 : 2));
      if (s.in->mnemonic == Mnemonic::HMNMX2) {
        op.z = m(K::NaN) | m(K::XorSign) << 1;
        return with(hmnmx2);
      }
      op.z = m(K::FloatCompare) | m(K::Bool) << 4 | m(K::BF) << 6 | m(K::High) << 7;
      return with(predicates ? hsetp2 : hset2);
    }
    case Mnemonic::F2FP:
      op.d = s.destination(0);
      op.a = s.f32(1), op.b = s.f32(2);
      op.x = m(K::Relu) ? relu : 0u;
      op.y = m(K::Pack);
      op.z = m(K::Rounding) == 3;
      return with(pack_halves);
    case Mnemonic::F2FP_MERGE_C:
      op.d = s.destination(0);
      op.a = s.f32(1), op.b = s.source(2, 1);
      op.x = m(K::Relu) ? relu : 0u;
      op.y = m(K::Pack), op.z = m(K::Rounding) == 3, op.size = s.operand(2).part;
      return with(merge_half);
    case Mnemonic::F2FP_TO_E8:
      op.d = s.destination(0);
      op.a = s.f32(1), op.b = s.f32(2), op.c = s.source(3, 1);
      op.x = m(K::Relu), op.y = m(K::Pack), op.size = s.operand(3).part;
      return with(halves_to_e8);
    case Mnemonic::F2FP_HALF_TO_E8:
      op.d = s.destination(0);
      op.a = s.source(1, 1), op.b = {zero_row}, op.c = s.source(2, 1);
      op.x = m(K::Relu), op.y = m(K::Pack), op.z = 1, op.size = s.operand(2).part;
      return with(halves_to_e8);
    case Mnemonic::F2FP_FROM_E8:
      op.d = s.destination(0);
      op.a = s.source(1, 1);
      op.x = m(K::Relu), op.y = m(K::Pack), op.size = s.operand(1).part;
      return with(e8_to_halves);
    case Mnemonic::I2IP: {
      constexpr uint32_t bits_of[] = {8, 16, 2, 4}, room[] = {0, 0, 3, 2};
      const uint32_t kind = m(K::Pack) >> 1;
      if (s.operand(3).part != room[kind]) return s.unsupported("I2IP with another part of its third source");
      op.d = s.destination(0);
      op.a = s.source(1, 1), op.b = s.source(2, 1), op.c = s.source(3, 1);
      op.x = bits_of[kind], op.y = m(K::Pack) & 1;
      return with(pack_integers);
    }
    case Mnemonic::F2IP:
      op.d = s.destination(0);
      if (s.operand(1).reg != isa::RZ || s.operand(3).reg != isa::RZ)
        return s.unsupported("F2IP that packs several values");
      op.a = s.f32(2);
      op.x = m(K::Signed), op.y = m(K::Rounding);
      return with(float_to_byte);
    default: return false;
  }
}

}  // namespace rndn::sim
