// Half precision, two values per register, and packing conversions (Volta and later).
// Source: PTX ISA, sections 9.7.4 (half precision) and 9.7.9.21 (cvt). bfloat16 arithmetic is not covered.
#include "assembler/simulator/arithmetic.h"
#include "assembler/simulator/lanes.h"
#include "assembler/simulator/select.h"

namespace rndn::sim {

using isa::Mnemonic;
using isa::ModifierKind;

namespace {

enum : uint32_t { ftz = 1, sat = 2, fmz = 4, as_f32 = 8, relu = 16 };

double to_double(uint32_t h) { return static_cast<double>(as_float(half_to_float(h & 0xffff))); }
uint32_t flush_half(uint32_t h) { return h & 0x7c00 ? h : h & 0x8000; }

// a * b + c rounded once: the product is exact as a double, and the last bit remembers what the sum lost.
double fused(double a, double b, double c) {
  const double p = a * b, s = p + c;
  if (!std::isfinite(s)) return s;
  const double t = s - p, lost = (p - (s - t)) + (c - t);
  return lost == 0 ? s : std::nextafter(s, lost > 0 ? HUGE_VAL : -HUGE_VAL);
}
uint32_t finish(double v, uint32_t flags) {
  if (flags & sat) v = v > 0 ? (v < 1 ? v : 1) : 0;
  uint32_t h = double_to_half(v, 0);
  if ((flags & relu) && h & 0x8000) h = 0;
  return flags & ftz ? flush_half(h) : h;
}
// Which half of a source makes half `i` of the result: part 0 the same, 2 the lower, 3 the upper.
uint32_t choose(uint32_t v, uint32_t part, uint32_t i) {
  return v >> (part == 3 || (part == 0 && i) ? 16 : 0) & 0xffff;
}

// x flags; y: part of A | of B << 2 | of C << 4; z: 1 product only adds C when true, 0: A + B.
Status half2(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t flags = op.x, parts = op.y;
  const bool product = op.z;
  map3(w, op, mask, [=](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t r = 0;
    for (uint32_t i = 0; i < 2; ++i) {
      uint32_t ha = choose(a, parts & 3, i), hb = choose(b, parts >> 2 & 3, i), hc = choose(c, parts >> 4 & 3, i);
      if (flags & (ftz | fmz)) ha = flush_half(ha), hb = flush_half(hb), hc = flush_half(hc);
      const double x = to_double(ha), y = to_double(hb);
      const bool dropped = (flags & fmz) && (x == 0 || y == 0);
      const double v = !product ? x + y : dropped ? to_double(hc) : fused(x, y, to_double(hc));
      if (flags & as_f32) return canonical(as_bits(static_cast<float>(v)));
      r |= finish(v, flags) << 16 * i;
    }
    return r;
  });
  return Status::go;
}

// Two floats to halves (or, y, to bfloat16): A to the upper, B to the lower.
Status pack_halves(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t flags = op.x;
  const bool bfloat = op.y;
  map2(w, op, mask, [=](uint32_t a, uint32_t b) {
    const auto narrow = [&](uint32_t v) -> uint32_t {
      if (!bfloat) return finish(static_cast<double>(as_float(v)), flags);
      if ((v & 0x7fffffff) > 0x7f800000) return 0x7fff;
      const uint32_t h = (v + 0x7fff + (v >> 16 & 1)) >> 16;  // nearest, ties to even
      return (flags & relu) && h & 0x8000 ? 0 : h;
    };
    return narrow(a) << 16 | narrow(b);
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
    if (s.operand(k).absolute) source.keep = 0x7fff7fff;
    if (s.operand(k).negated) source.flip = 0x80008000;
    if (s.operand(k).part == 1) s.error = "a 32-bit source of a half-precision operation";
    op.y |= static_cast<uint32_t>(s.operand(k).part & 3) << 2 * position;
    return source;
  };
  const auto immediate = [&](uint32_t high) {
    return s.immediate(static_cast<uint32_t>(s.operand(high).value & 0xffff) << 16 |
                       static_cast<uint32_t>(s.operand(high + 1).value & 0xffff));
  };
  switch (s.in->mnemonic) {
    case Mnemonic::HADD2:
    case Mnemonic::HFMA2:
    case Mnemonic::HFMA2_MMA: {
      op.d = s.destination(0);
      op.x =
          (m(K::FTZ) ? ftz : 0u) | (m(K::SAT) ? sat : 0u) | (m(K::FMZ) ? fmz : 0u) | (m(K::HalfFormat) ? as_f32 : 0u);
      if (m(K::HalfFormat) > 1) return s.unsupported("a half-precision result merged into its register");
      if (m(K::Pack)) return s.unsupported("bfloat16 arithmetic");
      op.a = half(1, 0);
      if (s.in->mnemonic == Mnemonic::HADD2) {
        op.b = half(2, 1);
        return with(half2);
      }
      op.z = 1;
      if (isa::has_modifier(s.in->form, K::Relu) && s.in->operand_count > 4 &&
          s.operand(4).kind == isa::OperandKind::predicate)
        return s.unsupported("HFMA2.RELU");
      const bool immediate_b = s.operand(2).kind == isa::OperandKind::immediate,
                 immediate_c = s.operand(3).kind == isa::OperandKind::immediate;
      op.b = immediate_b ? immediate(2) : half(2, 1);
      op.c = immediate_b ? half(4, 2) : immediate_c ? immediate(3) : half(3, 2);
      return with(half2);
    }
    case Mnemonic::F2FP:
      op.d = s.destination(0);
      op.a = s.f32(1), op.b = s.f32(2);
      op.x = m(K::Relu) ? relu : 0u;
      op.y = m(K::Pack);
      return with(pack_halves);
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
