// Integer, logic, moves, compares and selects of Volta and later, and those that Pascal shares. The uniform datapath uses the same
// functions: its registers are rows with equal lanes.
// Source: volta-family facts (section 2.1 and 3.1 of the notes on the ISA); PTX ISA, sections 9.7.1, 9.7.4 - 9.7.8.
#include "assembler/simulator/arithmetic.h"
#include "assembler/simulator/lanes.h"
#include "assembler/simulator/select.h"

namespace rndn::sim {

using isa::Mnemonic;
using isa::ModifierKind;

namespace {

Status mov(Warp& w, const Op& op, uint32_t mask) {
  commit(row(w, op.d), row(w, op.a), mask);
  return Status::go;
}
Status mov_flip(Warp& w, const Op& op, uint32_t mask) {
  map1(w, op, mask, [](uint32_t a) { return a; });
  return Status::go;
}
Status mov_pair(Warp& w, const Op& op, uint32_t mask) {
  commit(row(w, op.d), row(w, op.a), mask);
  commit(row(w, op.d) + lanes, row(w, op.a) + lanes, mask);
  return Status::go;
}

Status add2(Warp& w, const Op& op, uint32_t mask) {  // C = RZ
  const uint32_t x = op.x;
  map2(w, op, mask, [x](uint32_t a, uint32_t b) { return a + b + x; });
  return Status::go;
}
Status add3(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t x = op.x;
  map3(w, op, mask, [x](uint32_t a, uint32_t b, uint32_t c) { return a + b + c + x; });
  return Status::go;
}
// Carries out: pd = the sum left 32 bits, pq = by two. Carries in (.X): px, py.
Status add3_carry(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  uint32_t in1[lanes], in2[lanes], r[lanes], one[lanes], two[lanes];
  expand(op.y ? lane_mask(w, op.px) : 0, in1);
  expand(op.y ? lane_mask(w, op.py) : 0, in2);
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint64_t sum = static_cast<uint64_t>(a[l] ^ op.a.flip) + (b[l] ^ op.b.flip) + (c[l] ^ op.c.flip) + op.x +
                         (in1[l] & 1) + (in2[l] & 1);
    r[l] = static_cast<uint32_t>(sum);
    const uint32_t high = static_cast<uint32_t>(sum >> 32);
    one[l] = high >= 1 ? all_lanes : 0;
    two[l] = high >= 2 ? all_lanes : 0;
  }
  commit(row(w, op.d), r, mask);
  commit_predicate(w, op.pd, signs(one), mask);
  commit_predicate(w, op.pq, signs(two), mask);
  return Status::go;
}

Status imad(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t x = op.x;
  map3(w, op, mask, [x](uint32_t a, uint32_t b, uint32_t c) { return a * b + c + x; });
  return Status::go;
}
Status imad_x(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  uint32_t in[lanes], r[lanes];
  expand(lane_mask(w, op.px), in);
  for (uint32_t l = 0; l < lanes; ++l)
    r[l] = (a[l] ^ op.a.flip) * (b[l] ^ op.b.flip) + (c[l] ^ op.c.flip) + op.x - in[l];
  commit(row(w, op.d), r, mask);
  return Status::go;
}
// A * B + C pair; y: carry in is used; the high form keeps only the upper word.
template <bool is_signed, bool high>
Status imad_wide(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  uint32_t in[lanes], low_word[lanes], high_word[lanes], out[lanes];
  expand(op.y ? lane_mask(w, op.px) : 0, in);
  const uint64_t flip = op.c.flip ? ~uint64_t{0} : 0;
  const uint64_t one = op.x;
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint64_t product =
        is_signed ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(a[l])) * static_cast<int32_t>(b[l]))
                  : static_cast<uint64_t>(a[l]) * b[l];
    const uint64_t addend = pair(c[l], c[l + lanes]) ^ flip;
    const uint64_t partial = product + addend, sum = partial + one + (in[l] & 1);
    out[l] = partial < product || sum < partial ? all_lanes : 0;
    low_word[l] = static_cast<uint32_t>(sum);
    high_word[l] = static_cast<uint32_t>(sum >> 32);
  }
  if (high) {
    commit(row(w, op.d), high_word, mask);
  } else {
    commit(row(w, op.d), low_word, mask);
    commit(row(w, op.d) + lanes, high_word, mask);
  }
  commit_predicate(w, op.pd, signs(out), mask);
  return Status::go;
}

// The usual product: no carries, C added as it is.
template <bool is_signed>
Status imad_wide_plain(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  alignas(64) uint32_t low_word[lanes], high_word[lanes];
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint64_t product =
        is_signed ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(a[l])) * static_cast<int32_t>(b[l]))
                  : static_cast<uint64_t>(a[l]) * b[l];
    const uint64_t sum = product + pair(c[l], c[l + lanes]);
    low_word[l] = static_cast<uint32_t>(sum);
    high_word[l] = static_cast<uint32_t>(sum >> 32);
  }
  commit(row(w, op.d), low_word, mask);
  commit(row(w, op.d) + lanes, high_word, mask);
  return Status::go;
}

// (A << s) + B with carries; the high form takes the upper word of the 64-bit C:A << s. x: ones of negations, y: carry in is used.
Status lea(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  uint32_t in[lanes], r[lanes], out[lanes];
  expand(op.y ? lane_mask(w, op.px) : 0, in);
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint64_t sum = static_cast<uint64_t>((a[l] << op.z) ^ op.a.flip) + (b[l] ^ op.b.flip) + op.x + (in[l] & 1);
    r[l] = static_cast<uint32_t>(sum);
    out[l] = sum >> 32 ? all_lanes : 0;
  }
  commit(row(w, op.d), r, mask);
  commit_predicate(w, op.pd, signs(out), mask);
  return Status::go;
}
template <bool sign_of_a>
Status lea_hi(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  uint32_t in[lanes], r[lanes], out[lanes];
  expand(op.y ? lane_mask(w, op.px) : 0, in);
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint32_t upper = sign_of_a ? static_cast<uint32_t>(static_cast<int32_t>(a[l]) >> 31) : c[l];
    uint64_t shifted = pair(a[l], upper) << op.z;
    if (op.a.flip) shifted = op.y ? ~shifted : -shifted;
    const uint64_t sum = (shifted >> 32) + (b[l] ^ op.b.flip) + op.x + (in[l] & 1);
    r[l] = static_cast<uint32_t>(sum);
    out[l] = sum >> 32 ? all_lanes : 0;
  }
  commit(row(w, op.d), r, mask);
  commit_predicate(w, op.pd, signs(out), mask);
  return Status::go;
}

// LOP3: x = table over A = 0xf0, B = 0xcc, C = 0xaa; pd = (result != 0) or Ps, with PAND: and Ps.
void lop3_predicate(Warp& w, const Op& op, const uint32_t* r, uint32_t mask) {
  if (op.pd == trash_predicate) return;
  uint32_t nonzero[lanes];
  for (uint32_t l = 0; l < lanes; ++l) nonzero[l] = r[l] ? all_lanes : 0;
  const uint32_t bits = signs(nonzero), p = lane_mask(w, op.ps);
  commit_predicate(w, op.pd, op.y ? bits & p : bits | p, mask);
}
template <class F>
Status logic(Warp& w, const Op& op, uint32_t mask, F f) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  alignas(64) uint32_t r[lanes];
  for (uint32_t l = 0; l < lanes; ++l) r[l] = f(a[l] ^ op.a.flip, b[l] ^ op.b.flip, c[l] ^ op.c.flip);
  lop3_predicate(w, op, r, mask);
  commit(row(w, op.d), r, mask);
  return Status::go;
}
Status lop3_and(Warp& w, const Op& op, uint32_t mask) {
  return logic(w, op, mask, [](uint32_t a, uint32_t b, uint32_t) { return a & b; });
}
Status lop3_or(Warp& w, const Op& op, uint32_t mask) {
  return logic(w, op, mask, [](uint32_t a, uint32_t b, uint32_t) { return a | b; });
}
Status lop3_xor(Warp& w, const Op& op, uint32_t mask) {
  return logic(w, op, mask, [](uint32_t a, uint32_t b, uint32_t) { return a ^ b; });
}
Status lop3(Warp& w, const Op& op, uint32_t mask) {
  uint32_t t[8];  // row i of the table, spread over all bits
  for (uint32_t i = 0; i < 8; ++i) t[i] = op.x >> i & 1 ? all_lanes : 0;
  return logic(w, op, mask, [&](uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t b0 = (~c & t[0]) | (c & t[1]), b1 = (~c & t[2]) | (c & t[3]);
    const uint32_t b2 = (~c & t[4]) | (c & t[5]), b3 = (~c & t[6]) | (c & t[7]);
    return (~a & ((~b & b0) | (b & b1))) | (a & ((~b & b2) | (b & b3)));
  });
}
Status plop3(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t a = lane_mask(w, op.ps), b = lane_mask(w, op.px), c = lane_mask(w, op.py);
  const auto table = [&](uint32_t lut) {
    uint32_t r = 0;
    for (uint32_t i = 0; i < 8; ++i)
      if (lut >> i & 1) r |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return r;
  };
  const uint32_t first = table(op.x), second = table(op.y);
  commit_predicate(w, op.pd, first, mask);
  commit_predicate(w, op.pq, second, mask);
  return Status::go;
}
// The same of the signs of registers.
Status plop3_signs(Warp& w, const Op& op, uint32_t mask) {
  uint32_t first = 0, second = 0;
  for_lanes(mask, [&](uint32_t l) {
    const uint32_t i = value(w, op.a, l) >> 31 << 2 | value(w, op.b, l) >> 31 << 1 | value(w, op.c, l) >> 31;
    first |= (op.x >> i & 1) << l;
    second |= (op.y >> i & 1) << l;
  });
  commit_predicate(w, op.pd, first, mask);
  commit_predicate(w, op.pq, second, mask);
  return Status::go;
}

// SHF: funnel shift of C:A by B. type 0 S64 1 U64 2 S32 3 U32 (amounts clamp at 64 or 32, or wrap).
template <bool right, bool high>
Status shf(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t width = op.x >= 2 ? 32 : 64;
  const bool arithmetic = op.x == 0 || op.x == 2, wrap = op.y;
  map3(w, op, mask, [=](uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t n = wrap ? b & (width - 1) : b < width ? b : width;
    const uint64_t v = pair(a, c);
    uint64_t r;
    if (right)
      r = n >= 64 ? (arithmetic ? static_cast<uint64_t>(static_cast<int64_t>(v) >> 63) : 0)
                  : (arithmetic ? static_cast<uint64_t>(static_cast<int64_t>(v) >> n) : v >> n);
    else
      r = n >= 64 ? 0 : v << n;
    return static_cast<uint32_t>(high ? r >> 32 : r);
  });
  return Status::go;
}
// The usual 32-bit shifts, as SHF.L.U32 with C unused and SHF.R.*.HI with A = RZ.
Status shift_left(Warp& w, const Op& op, uint32_t mask) {
  map2(w, op, mask, [](uint32_t a, uint32_t b) { return b < 32 ? a << (b & 31) : 0; });
  return Status::go;
}
template <bool arithmetic>
Status shift_right(Warp& w, const Op& op, uint32_t mask) {  // a = value
  map2(w, op, mask, [](uint32_t a, uint32_t b) {
    if (arithmetic) return static_cast<uint32_t>(static_cast<int32_t>(a) >> (b < 31 ? b : 31));
    return b < 32 ? a >> (b & 31) : 0;
  });
  return Status::go;
}

Status sel(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  const uint32_t ka = op.a.keep, fa = op.a.flip, kb = op.b.keep, fb = op.b.flip;
  uint32_t p[lanes], r[lanes];
  expand(lane_mask(w, op.ps), p);
  for (uint32_t l = 0; l < lanes; ++l) r[l] = (((a[l] & ka) ^ fa) & p[l]) | (((b[l] & kb) ^ fb) & ~p[l]);
  commit(row(w, op.d), r, mask);
  return Status::go;
}
Status prmt(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t mode = op.x;
  map3(w, op, mask, [mode](uint32_t a, uint32_t b, uint32_t c) { return permute(a, b, c, mode); });
  return Status::go;
}

// Compares: the code is a set of outcomes, 1 less, 2 equal, 4 greater.
template <bool is_signed>
uint32_t compare(Warp& w, const Op& op) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  const uint32_t code = op.x, bias = is_signed ? 0x80000000 : 0;
  uint32_t less[lanes], equal[lanes];
  for (uint32_t l = 0; l < lanes; ++l) {
    less[l] =
        static_cast<int32_t>(a[l] ^ bias ^ 0x80000000) < static_cast<int32_t>(b[l] ^ bias ^ 0x80000000) ? all_lanes : 0;
    equal[l] = a[l] == b[l] ? all_lanes : 0;
  }
  const uint32_t lt = signs(less), eq = signs(equal);
  if (op.y) {  // .EX: px is the same compare of the low words
    const uint32_t low = lane_mask(w, op.px);
    switch (code) {
      case 0: return 0;
      case 2: return eq & low;
      case 5: return ~eq | low;
      case 7: return all_lanes;
      default: return ((code & 1 ? lt : 0) | (code & 4 ? ~lt & ~eq : 0)) | (eq & low);
    }
  }
  return (code & 1 ? lt : 0) | (code & 2 ? eq : 0) | (code & 4 ? ~lt & ~eq : 0);
}
template <bool is_signed>
Status isetp(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t result = compare<is_signed>(w, op), p = lane_mask(w, op.ps);
  const auto combine = [&](uint32_t t) { return op.z == 0 ? t & p : op.z == 1 ? t | p : t ^ p; };
  commit_predicate(w, op.pd, combine(result), mask);
  commit_predicate(w, op.pq, combine(~result), mask);
  return Status::go;
}

template <bool is_signed>
Status imnmx(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  const uint32_t bias = is_signed ? 0x80000000 : 0;
  uint32_t p[lanes], r[lanes];
  expand(lane_mask(w, op.ps), p);
  for (uint32_t l = 0; l < lanes; ++l) {
    const bool less = (a[l] ^ bias) < (b[l] ^ bias);
    r[l] = less == (p[l] != 0) ? a[l] : b[l];
  }
  commit(row(w, op.d), r, mask);
  return Status::go;
}

// The least (ps) or greatest of A and B, as type says: the encoded value of Signed, words or pairs of halves.
struct Extreme {
  uint32_t value;
  bool first[2];  // whether it is A's, of the lower and the upper half (words: the lower)
};
Extreme extreme(uint32_t a, uint32_t b, uint32_t type, bool least) {
  const uint32_t bias = !(type & 1) ? 0 : type & 2 ? 0x80008000 : 0x80000000;
  a ^= bias, b ^= bias;
  const auto is_first = [&](uint32_t x, uint32_t y) { return least ? x <= y : x >= y; };
  if (!(type & 2)) return is_first(a, b) ? Extreme{a ^ bias, {true, false}} : Extreme{b ^ bias, {false, false}};
  const bool low = is_first(a & 0xffff, b & 0xffff), high = is_first(a >> 16, b >> 16);
  const uint32_t chosen = ((low ? a : b) & 0xffff) | ((high ? a : b) & 0xffff0000);
  return {chosen ^ bias, {low, high}};
}
uint32_t add_as(uint32_t a, uint32_t b, uint32_t type) {
  return type & 2 ? ((a + b) & 0xffff) | ((a & 0xffff0000) + (b & 0xffff0000)) : a + b;
}
// VIMNMX, VIMNMX3, VIADDMNMX; x: type, y: .RELU, the greatest of that and zero; z: negations of B.
enum class Vector : uint8_t { two, three, sum };
template <Vector form>
Status vector_extreme(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  const uint32_t type = op.x, least = lane_mask(w, op.ps);
  uint32_t r[lanes], low = 0, high = 0;
  for (uint32_t l = 0; l < lanes; ++l) {
    const bool is_least = least >> l & 1;
    const uint32_t second = (b[l] ^ op.b.flip) + op.z;
    Extreme found = form == Vector::sum ? extreme(add_as(a[l], second, type), c[l], type, is_least)
                                        : extreme(a[l], second, type, is_least);
    low |= (found.first[0] ? 1u : 0u) << l, high |= (found.first[1] ? 1u : 0u) << l;
    if (form == Vector::three) found = extreme(found.value, c[l], type, is_least);
    r[l] = op.y ? extreme(found.value, 0, type, false).value : found.value;
  }
  commit(row(w, op.d), r, mask);
  commit_predicate(w, op.pd, high, mask);
  commit_predicate(w, op.pq, low, mask);
  return Status::go;
}
Status add_halves(Warp& w, const Op& op, uint32_t mask) {
  map2(w, op, mask, [](uint32_t a, uint32_t b) { return add_as(a, b, 2); });
  return Status::go;
}

Status iabs(Warp& w, const Op& op, uint32_t mask) {
  map1(w, op, mask, [](uint32_t a) { return static_cast<int32_t>(a) < 0 ? 0u - a : a; });
  return Status::go;
}
Status popc(Warp& w, const Op& op, uint32_t mask) {
  map1(w, op, mask, [](uint32_t a) {
    a -= a >> 1 & 0x55555555;
    a = (a & 0x33333333) + (a >> 2 & 0x33333333);
    return ((a + (a >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
  });
  return Status::go;
}
// Index of the highest set bit (signed: of the highest bit that differs from the sign), all ones when there is none. x signed, y .SH.
Status flo(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t* a = row(w, op.a);
  uint32_t r[lanes], found = 0;
  for (uint32_t l = 0; l < lanes; ++l) {
    uint32_t v = a[l] ^ op.a.flip;
    if (op.x && static_cast<int32_t>(v) < 0) v = ~v;
    r[l] = v == 0 ? all_lanes : static_cast<uint32_t>(op.y ? std::countl_zero(v) : 31 - std::countl_zero(v));
    found |= (v != 0 ? 1u : 0u) << l;
  }
  commit(row(w, op.d), r, mask);
  commit_predicate(w, op.pd, found, mask);
  return Status::go;
}
Status brev(Warp& w, const Op& op, uint32_t mask) {
  map1(w, op, mask, [](uint32_t a) {
    a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
    a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
    a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(a);
  });
  return Status::go;
}
// Keeps the low B bits of A, sign- or zero-extended. x signed, y wrap.
Status sgxt(Warp& w, const Op& op, uint32_t mask) {
  const bool is_signed = op.x, wrap = op.y;
  map2(w, op, mask, [=](uint32_t a, uint32_t b) -> uint32_t {
    const uint32_t n = wrap ? b & 31 : b < 32 ? b : 32;
    if (n == 0) return 0;
    const uint32_t s = 32 - n;
    return is_signed ? static_cast<uint32_t>(static_cast<int32_t>(a << s) >> s) : a << s >> s;
  });
  return Status::go;
}
// B ones from bit A up.
Status bmsk(Warp& w, const Op& op, uint32_t mask) {
  const bool wrap = op.y;
  map2(w, op, mask, [=](uint32_t a, uint32_t b) -> uint32_t {
    const uint32_t position = wrap ? a & 31 : a, width = wrap ? b & 31 : b;
    const uint32_t ones = width >= 32 ? all_lanes : (1u << width) - 1;
    return position >= 32 ? 0 : ones << position;
  });
  return Status::go;
}
// Dot product of bytes, or of the halves of A with two bytes of B. x: mode, y bit 0: A signed, bit 1: B signed.
Status idp(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t mode = op.x, add = op.z;
  const bool sa = op.y & 1, sb = op.y & 2;
  map3(w, op, mask, [=](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t sum = c + add;
    const auto field = [](uint32_t v, uint32_t i, uint32_t bits, bool s) {
      const uint64_t x = v >> (i * bits);
      return static_cast<uint32_t>(s ? sign_extend(x, bits) : zero_extend(x, bits));
    };
    if (mode == 0)
      for (uint32_t i = 0; i < 4; ++i) sum += field(a, i, 8, sa) * field(b, i, 8, sb);
    else
      for (uint32_t i = 0; i < 2; ++i) sum += field(a, i, 16, sa) * field(b, i + (mode == 3 ? 2 : 0), 8, sb);
    return sum;
  });
  return Status::go;
}
Status vabsdiff(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t bias = op.x ? 0x80000000 : 0;
  map3(w, op, mask, [=](uint32_t a, uint32_t b, uint32_t c) { return ((a ^ bias) < (b ^ bias) ? b - a : a - b) + c; });
  return Status::go;
}
// Absolute differences of four bytes, which fit bytes: side by side, or their sum and C.
Status vabsdiff4(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t bias = op.x ? 0x80808080 : 0;
  const bool accumulate = op.y;
  map3(w, op, mask, [=](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t side_by_side = 0, sum = c;
    for (uint32_t at = 0; at < 32; at += 8) {
      const uint32_t x = (a ^ bias) >> at & 255, y = (b ^ bias) >> at & 255, d = x < y ? y - x : x - y;
      side_by_side |= d << at;
      sum += d;
    }
    return accumulate ? sum : side_by_side;
  });
  return Status::go;
}
// Predicates to and from bits of a register; x = mask, y = first bit.
Status p2r(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t* a = row(w, op.a);
  uint32_t r[lanes];
  for (uint32_t l = 0; l < lanes; ++l) {
    uint32_t bits = 0;
    for (uint32_t p = 0; p < 7; ++p) bits |= (w.pred[op.z + p] >> l & 1) << p;
    r[l] = (a[l] & ~(op.x << op.y)) | (bits & op.x) << op.y;
  }
  commit(row(w, op.d), r, mask);
  return Status::go;
}
Status r2p(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t* a = row(w, op.a);
  for (uint32_t p = 0; p < 7; ++p) {
    if (!(op.x >> p & 1)) continue;
    uint32_t bits = 0;
    for (uint32_t l = 0; l < lanes; ++l) bits |= (a[l] >> (op.y + p) & 1) << l;
    commit_predicate(w, static_cast<uint8_t>(op.z + p), bits, mask);
  }
  return Status::go;
}
// A uniform register from the first active lane that passes the guard; nothing happens when none does. The predicate tells the lanes whose value
// differs from it (seen on an H200).
Status r2ur(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t* a = row(w, op.a);
  if (!(mask & w.active)) return Status::go;
  const uint32_t v = a[std::countr_zero(mask & w.active)];
  uint32_t differs = 0;
  for (uint32_t l = 0; l < lanes; ++l) differs |= (a[l] != v ? 1u : 0u) << l;
  commit_predicate(w, op.pd, differs, mask & w.active);
  uint32_t* d = row(w, op.d);
  for (uint32_t l = 0; l < lanes; ++l) d[l] = v;
  return Status::go;
}
// y: the address is `offset`, else the instruction's own.
Status lepc(Warp& w, const Op& op, uint32_t mask) {
  const uint64_t address = op.y ? static_cast<uint64_t>(op.offset) : w.launch->program->addresses[w.pc - 1];
  uint64_t r[lanes];
  for (uint64_t& v : r) v = address;
  if (op.x)
    commit_pairs(w, op.d, r, mask);
  else
    map1(w, op, mask, [address](uint32_t) { return static_cast<uint32_t>(address); });
  return Status::go;
}

}  // namespace

bool select_integer(Selector& s, Op& op) {
  using K = ModifierKind;
  const auto m = [&](K kind) { return s.modifier(kind); };
  const auto with = [&](Handler run) {
    op.run = run;
    return true;
  };
  const Mnemonic mnemonic = s.in->mnemonic;
  switch (mnemonic) {
    case Mnemonic::UMOV:
    case Mnemonic::UIADD3:
    case Mnemonic::UIMAD:
    case Mnemonic::UIMAD_WIDE:
    case Mnemonic::ULEA:
    case Mnemonic::ULEA_HI:
    case Mnemonic::ULOP3:
    case Mnemonic::UPLOP3:
    case Mnemonic::USHF:
    case Mnemonic::UISETP:
    case Mnemonic::USEL:
    case Mnemonic::UPRMT:
    case Mnemonic::USGXT:
    case Mnemonic::UBMSK:
    case Mnemonic::UFLO:
    case Mnemonic::UPOPC:
    case Mnemonic::UBREV:
    case Mnemonic::R2UR:
    case Mnemonic::UP2UR:
    case Mnemonic::UR2UP: op.full = all_lanes; break;
    default: break;
  }
  switch (mnemonic) {
    case Mnemonic::MOV:
    case Mnemonic::UMOV:
    case Mnemonic::MOV32I:
      op.d = s.destination(0);
      op.a = s.integer(1);
      return with(op.a.flip ? mov_flip : mov);
    case Mnemonic::IADD3:
    case Mnemonic::UIADD3: {
      op.d = s.destination(0);
      op.pd = s.predicate_destination(1), op.pq = s.predicate_destination(2);
      op.a = s.integer(3), op.b = s.integer(4), op.c = s.integer(5);
      if (s.operand(3).negated && s.operand(4).negated) return s.unsupported("A and B both negated: illegal (H100)");
      if (mnemonic == Mnemonic::UIADD3 && m(K::Wide)) return s.unsupported("64-bit UIADD3");
      op.y = m(K::X);
      op.x = op.y ? 0 : s.negations;
      op.px = s.predicate(6), op.py = s.predicate(7);
      if (op.y || op.pd != trash_predicate || op.pq != trash_predicate) return with(add3_carry);
      if (op.c.offset == zero_row && op.c.pool == 0 && !op.c.flip) return with(add2);
      return with(add3);
    }
    case Mnemonic::IMAD:
    case Mnemonic::UIMAD:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2), op.c = s.integer(3);
      if (op.a.flip || op.b.flip) return s.unsupported("a negated factor");
      op.px = s.predicate(4);
      op.x = m(K::X) ? 0 : s.negations;
      if (!m(K::X) && op.a.offset == zero_row && op.a.pool == 0 && !op.c.flip) {  // IMAD.MOV
        op.a = op.c;
        return with(mov);
      }
      return with(m(K::X) ? imad_x : imad);
    case Mnemonic::IMAD_WIDE:
    case Mnemonic::UIMAD_WIDE:
    case Mnemonic::IMAD_HI: {
      op.d = s.destination(0);
      op.pd = s.predicate_destination(1);
      op.a = s.integer(2), op.b = s.integer(3);
      op.c = s.source(4, 2);
      // C of three-source forms may be a 32-bit immediate: it is the low word.
      if (s.operand(4).kind == isa::OperandKind::immediate)
        return s.unsupported("an immediate addend of a wide product");
      if (s.operand(4).negated) op.c.flip = all_lanes;
      if (op.a.flip || op.b.flip) return s.unsupported("a negated factor");
      op.px = s.predicate(5);
      op.y = m(K::X);
      op.x = op.c.flip && !op.y ? 1 : 0;
      const bool is_signed = m(K::Signed);
      if (mnemonic != Mnemonic::IMAD_HI && !op.y && !op.c.flip && op.pd == trash_predicate)
        return with(is_signed ? imad_wide_plain<true> : imad_wide_plain<false>);
      if (mnemonic == Mnemonic::IMAD_HI) return with(is_signed ? imad_wide<true, true> : imad_wide<false, true>);
      return with(is_signed ? imad_wide<true, false> : imad_wide<false, false>);
    }
    case Mnemonic::LEA:
    case Mnemonic::ULEA:
      op.d = s.destination(0);
      op.pd = s.predicate_destination(1);
      op.a = s.integer(2), op.b = s.integer(3);
      op.z = static_cast<uint32_t>(s.operand(4).value) & 31;
      op.px = s.predicate(5);
      op.y = m(K::X);
      op.x = op.y ? 0 : s.negations;
      return with(lea);
    case Mnemonic::LEA_HI:
    case Mnemonic::ULEA_HI:
      op.d = s.destination(0);
      op.pd = s.predicate_destination(1);
      op.a = s.integer(2), op.b = s.integer(3), op.c = s.integer(4);
      if (op.c.flip) return s.unsupported("a negated high word");
      op.z = static_cast<uint32_t>(s.operand(5).value) & 31;
      op.px = s.predicate(6);
      op.y = m(K::X);
      op.x = op.b.flip && !op.y ? 1 : 0;
      return with(m(K::SX32) ? lea_hi<true> : lea_hi<false>);
    case Mnemonic::LOP3:
    case Mnemonic::ULOP3:
      op.pd = s.predicate_destination(0);
      op.d = s.destination(1);
      op.a = s.integer(2), op.b = s.integer(3), op.c = s.integer(4);
      op.x = static_cast<uint32_t>(s.operand(5).value) & 255;
      op.ps = s.predicate(6);
      op.y = m(K::PAnd);
      return with(op.x == 0xc0 ? lop3_and : op.x == 0xfc ? lop3_or : op.x == 0x3c ? lop3_xor : lop3);
    case Mnemonic::PLOP3:
    case Mnemonic::UPLOP3:
      op.pd = s.predicate_destination(0), op.pq = s.predicate_destination(1);
      op.x = static_cast<uint32_t>(s.operand(5).value) & 255, op.y = static_cast<uint32_t>(s.operand(6).value) & 255;
      if (const isa::OperandKind kind = s.operand(2).kind;
          kind == isa::OperandKind::gpr || kind == isa::OperandKind::uniform) {
        op.a = s.integer(2), op.b = s.integer(3), op.c = s.integer(4);
        return with(plop3_signs);
      }
      op.ps = s.predicate(2), op.px = s.predicate(3), op.py = s.predicate(4);
      return with(plop3);
    case Mnemonic::SHF:
    case Mnemonic::USHF: {
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2), op.c = s.integer(3);
      op.x = m(K::ShiftType), op.y = m(K::Wrap);
      const bool right = m(K::Right), high = m(K::High);
      if (!right && !high && op.x >= 2 && !op.y) return with(shift_left);
      if (right && high && op.x >= 2 && !op.y) {
        op.a = op.c;  // whatever A is, only zeros or its bits below the result's come in
        return with(op.x == 2 ? shift_right<true> : shift_right<false>);
      }
      return with(right ? (high ? shf<true, true> : shf<true, false>) : (high ? shf<false, true> : shf<false, false>));
    }
    case Mnemonic::SEL:
    case Mnemonic::USEL:
    case Mnemonic::FSEL:
      op.d = s.destination(0);
      op.a = mnemonic == Mnemonic::FSEL ? s.f32(1) : s.integer(1);
      op.b = mnemonic == Mnemonic::FSEL ? s.f32(2) : s.integer(2);
      op.ps = s.predicate(3);
      if (mnemonic == Mnemonic::FSEL && m(K::FTZ)) return s.unsupported("FSEL.FTZ");
      return with(sel);
    case Mnemonic::PRMT:
    case Mnemonic::UPRMT:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2), op.c = s.integer(3);
      op.x = m(K::PermuteMode);
      return with(prmt);
    case Mnemonic::ISETP:
    case Mnemonic::UISETP:
      op.pd = s.predicate_destination(0), op.pq = s.predicate_destination(1);
      op.a = s.integer(2), op.b = s.integer(3);
      if (s.negations) return s.unsupported("a negated source");
      op.ps = s.predicate(4);
      op.px = s.predicate(5);
      op.x = m(K::Compare), op.y = m(K::EX), op.z = m(K::Bool);
      return with(m(K::Signed) ? isetp<true> : isetp<false>);
    case Mnemonic::IMNMX:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2);
      if (s.negations) return s.unsupported("a negated source");
      op.ps = s.predicate(3);
      return with(m(K::Signed) ? imnmx<true> : imnmx<false>);
    case Mnemonic::VIMNMX: {
      op.d = s.destination(0);
      op.pd = s.predicate_destination(1), op.pq = s.predicate_destination(2);
      op.a = s.integer(3), op.b = s.integer(4);
      op.ps = s.predicate(5);
      op.x = m(K::Signed), op.y = m(K::Relu);
      const bool alone = op.pd == trash_predicate && op.pq == trash_predicate;
      if (op.x < 2 && !op.y && alone) return with(op.x ? imnmx<true> : imnmx<false>);
      if (op.x < 2 && !alone) return s.unsupported("predicates of words");
      return with(vector_extreme<Vector::two>);
    }
    case Mnemonic::VIMNMX3:
    case Mnemonic::VIADDMNMX:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2), op.c = s.integer(3);
      op.ps = s.predicate(4);
      op.x = m(K::Signed), op.y = m(K::Relu), op.z = s.negations;
      if (op.z && op.x >= 2) return s.unsupported("a negated pair");
      return with(mnemonic == Mnemonic::VIMNMX3 ? vector_extreme<Vector::three> : vector_extreme<Vector::sum>);
    case Mnemonic::VIADD:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2);
      op.x = s.negations;
      if (m(K::Halves) && op.x) return s.unsupported("a negated pair");
      return with(m(K::Halves) ? add_halves : add2);
    case Mnemonic::IABS:
      op.d = s.destination(0);
      op.a = s.integer(1);
      return with(iabs);
    case Mnemonic::POPC:
    case Mnemonic::UPOPC:
      op.d = s.destination(0);
      op.a = s.integer(1);
      return with(popc);
    case Mnemonic::FLO:
    case Mnemonic::UFLO: {
      const uint32_t k = s.volta() ? 2 : 1;
      op.d = s.destination(0);
      if (s.volta()) op.pd = s.predicate_destination(1);
      op.a = s.integer(k);
      op.x = m(K::Signed), op.y = m(K::ShiftAmount);
      return with(flo);
    }
    case Mnemonic::BREV:
    case Mnemonic::UBREV:
      op.d = s.destination(0);
      op.a = s.integer(1);
      return with(brev);
    case Mnemonic::SGXT:
    case Mnemonic::USGXT:
    case Mnemonic::BMSK:
    case Mnemonic::UBMSK:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2);
      op.y = m(K::Wrap);
      if (mnemonic == Mnemonic::BMSK || mnemonic == Mnemonic::UBMSK) return with(bmsk);
      op.x = m(K::Signed);
      return with(sgxt);
    case Mnemonic::IDP:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2), op.c = s.integer(3);
      if (op.a.flip || op.b.flip) return s.unsupported("a negated factor");
      op.x = m(K::DotMode);
      if (!s.volta() && op.x) op.x = m(K::High) ? 3 : 1;
      op.y = m(K::SignedA) | m(K::SignedB) << 1;
      op.z = s.negations;
      return with(idp);
    case Mnemonic::VABSDIFF:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2), op.c = s.integer(3);
      if (s.negations) return s.unsupported("a negated source");
      op.x = isa::has_modifier(s.in->form, K::Signed) ? m(K::Signed) : m(K::SignedA);
      return with(vabsdiff);
    case Mnemonic::VABSDIFF4:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2), op.c = s.integer(3);
      op.x = isa::has_modifier(s.in->form, K::Signed) ? m(K::Signed) : 0;
      op.y = m(K::ACC);
      return with(vabsdiff4);
    case Mnemonic::P2R:
    case Mnemonic::UP2UR:
      op.d = s.destination(0);
      op.a = s.integer(1);
      op.x = static_cast<uint32_t>(s.operand(2).value) & 0x7f;
      if (s.operand(2).kind != isa::OperandKind::immediate) return s.unsupported("a mask that is no immediate");
      op.y = 8 * m(K::Byte);
      op.z = mnemonic == Mnemonic::UP2UR ? uniform_predicates : 0;
      return with(p2r);
    case Mnemonic::R2P:
    case Mnemonic::UR2UP:
      op.a = s.integer(0);
      op.x = static_cast<uint32_t>(s.operand(1).value) & 0x7f;
      if (s.operand(1).kind != isa::OperandKind::immediate) return s.unsupported("a mask that is no immediate");
      op.y = 8 * m(K::Byte);
      op.z = mnemonic == Mnemonic::UR2UP ? uniform_predicates : 0;
      return with(r2p);
    case Mnemonic::R2UR:
      op.d = s.destination(0);
      op.pd = s.predicate_destination(1);
      op.a = s.integer(2);
      return with(r2ur);
    case Mnemonic::LEPC:
      op.d = s.destination(0);
      op.x = s.volta();
      op.y = s.operand(1).kind == isa::OperandKind::label;
      op.offset = op.y ? s.operand(1).value : 0;
      return with(lepc);
    case Mnemonic::ULDC:
    case Mnemonic::LDC: {
      // Whole words at a fixed place are rows of the pool; the rest is select_memory's.
      const uint8_t size = m(K::Size);
      if (s.operand(1).kind != isa::OperandKind::constant || s.operand(1).reg != isa::RZ ||
          s.operand(1).uniform != isa::URZ || (size != 4 && size != 5) || s.operand(1).value < 0)
        return false;
      if (mnemonic == Mnemonic::ULDC) op.full = all_lanes;
      op.d = s.destination(0);
      op.a = s.source(1, size == 5 ? 2 : 1);
      return with(size == 5 ? mov_pair : mov);
    }
    default: return false;
  }
}

}  // namespace rndn::sim
