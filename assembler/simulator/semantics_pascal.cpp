// Integer instructions of Maxwell and Pascal that differ from Volta's: the condition code, 16-bit multiply-add, bit fields, predicate logic.
// The condition code is four lane masks: carry (1 = no borrow), zero, negative, overflow.
// Source: notes on Pascal, sections 2.1, 2.2 and 7 (rules that were checked against the vendor's output).
#include "assembler/simulator/arithmetic.h"
#include "assembler/simulator/lanes.h"
#include "assembler/simulator/select.h"

namespace rndn::sim {

using isa::Mnemonic;
using isa::ModifierKind;

namespace {

void merge(uint32_t& flag, uint32_t bits, uint32_t mask) { flag = (flag & ~mask) | (bits & mask); }
void set_sign_flags(Warp& w, const uint32_t* r, uint32_t mask) {
  uint32_t zero[lanes];
  for (uint32_t l = 0; l < lanes; ++l) zero[l] = r[l] == 0 ? all_lanes : 0;
  merge(w.negative, signs(r), mask);
  merge(w.zero, signs(zero), mask);
}

// The sum of three words can carry 2, which IADD3.CC tells IADD3.X. Pascal has no uniform predicates: the first one's lanes hold that.
uint32_t& second_carry(Warp& w) { return w.pred[uniform_predicates]; }

// The condition code of a sum; `twice`: lanes whose carry was 2.
void set_flags(Warp& w, const uint32_t* r, const uint32_t* carry, const uint32_t* overflow, uint32_t twice,
               uint32_t mask) {
  set_sign_flags(w, r, mask);
  merge(w.carry, signs(carry), mask);
  merge(second_carry(w), twice, mask);
  merge(w.overflow, signs(overflow), mask);
}

// (A << z) + B. x: one of negations, with no carry to add. Which flags are wanted is known when the code is read: most sums want none, and the loop for
// them is three instructions of the host.
template <bool takes_carry, bool sets_flags>
Status add_two(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  const uint32_t fa = op.a.flip, fb = op.b.flip, one = op.x, scale = op.z;
  alignas(64) uint32_t in[lanes], r[lanes], carry[lanes], overflow[lanes];
  if (takes_carry) expand(w.carry, in);
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint32_t va = (a[l] << scale) ^ fa, vb = b[l] ^ fb, sum = va + vb + (takes_carry ? in[l] & 1 : one);
    r[l] = sum;
    if (sets_flags) {  // in the sign bits
      carry[l] = (va & vb) | ((va | vb) & ~sum);
      overflow[l] = ~(va ^ vb) & (va ^ sum);
    }
  }
  commit(row(w, op.d), r, mask);
  if (sets_flags) set_flags(w, r, carry, overflow, 0, mask);
  return Status::go;
}
// By y: bit 0 adds the carry, bit 1 writes the condition code.
constexpr Handler add_two_words[] = {add_two<false, false>, add_two<true, false>, add_two<false, true>,
                                     add_two<true, true>};

// a + b + c with carries. x, y as above. z: 1 .RS, 2 .LS.
Status add_three(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  alignas(64) uint32_t in[lanes], r[lanes], carry[lanes], overflow[lanes];
  uint32_t twice = 0;
  expand(op.y & 1 ? w.carry : 0, in);
  const auto half = [](uint32_t v, uint32_t part) { return part == 0 ? v : part == 1 ? v & 0xffff : v >> 16; };
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint32_t va = half(a[l], op.size & 3) ^ op.a.flip, vb = half(b[l], op.size >> 2 & 3) ^ op.b.flip,
                   vc = half(c[l], op.size >> 4 & 3) ^ op.c.flip;
    const uint64_t partial = static_cast<uint64_t>(va) + vb;
    uint64_t sum = partial + op.x + (in[l] & 1);
    if (op.y & 1) sum += second_carry(w) >> l & 1;
    if (op.z == 1) sum = (partial >> 16) + op.x + (in[l] & 1);
    if (op.z == 2) sum = (partial << 16 & 0xffffffff) + op.x + (in[l] & 1);
    sum += vc;
    r[l] = static_cast<uint32_t>(sum);
    carry[l] = sum >> 32 ? all_lanes : 0;
    twice |= static_cast<uint32_t>(sum >> 33 & 1) << l;
    overflow[l] = ~(va ^ vb) & (va ^ r[l]);
  }
  commit(row(w, op.d), r, mask);
  if (op.y & 2) set_flags(w, r, carry, overflow, twice, mask);
  return Status::go;
}

uint32_t saturated(int64_t v) {
  return static_cast<uint32_t>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : static_cast<int32_t>(v));
}
// a + b as signed numbers, to the nearest that there is. x: one of negations.
Status add_saturated(Warp& w, const Op& op, uint32_t mask) {
  const int64_t one = op.x;
  map2(w, op, mask, [=](uint32_t a, uint32_t b) {
    return saturated(int64_t{static_cast<int32_t>(a)} + static_cast<int32_t>(b) + one);
  });
  return Status::go;
}
// Extended as its type says, each factor gives the product modulo 2^64.
uint64_t widened(uint32_t x, bool is_signed) {
  return is_signed ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(x)}) : uint64_t{x};
}

// The product of two words, low or high, and C. x: bit 0 A signed, bit 1 B signed, bit 2: C is a complement that lacks one to be a negation; y: high;
// z: saturates the sum.
Status multiply(Warp& w, const Op& op, uint32_t mask) {
  const bool a_signed = op.x & 1, b_signed = op.x & 2, high = op.y, saturate = op.z;
  const uint32_t one = op.x >> 2;
  map3(w, op, mask, [=](uint32_t a, uint32_t b, uint32_t c) {
    const uint64_t product = widened(a, a_signed) * widened(b, b_signed);
    const uint32_t part = static_cast<uint32_t>(high ? product >> 32 : product);
    return saturate ? saturated(int64_t{static_cast<int32_t>(part)} + static_cast<int32_t>(c) + one) : part + c + one;
  });
  return Status::go;
}

// The same sum with carries, nothing negated. z: bit 0 adds the carry, bit 1 writes the condition code.
Status multiply_with_carry(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  alignas(64) uint32_t in[lanes], r[lanes], carry[lanes], overflow[lanes];
  expand(op.z & 1 ? w.carry : 0, in);
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint64_t product = widened(a[l], op.x & 1) * widened(b[l], op.x & 2), addend = c[l];
    const uint32_t part = static_cast<uint32_t>(op.y ? product >> 32 : product);
    const uint64_t sum = part + addend + (in[l] & 1);
    r[l] = static_cast<uint32_t>(sum);
    carry[l] = sum >> 32 ? all_lanes : 0;
    overflow[l] = ~(part ^ c[l]) & (part ^ r[l]);
  }
  commit(row(w, op.d), r, mask);
  if (op.z & 2) set_flags(w, r, carry, overflow, 0, mask);
  return Status::go;
}

// High word of (C:A << z) + B. pd: the 64-bit address is global, neither in the shared nor in the local window.
Status lea_hi(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  uint32_t in[lanes], r[lanes], global = 0;
  expand(op.y & 1 ? w.carry : 0, in);
  for (uint32_t l = 0; l < lanes; ++l) {
    uint64_t v = pair(a[l], c[l]) << op.z;
    if (op.a.flip) v = op.y & 1 ? ~v : 0 - v;
    r[l] = static_cast<uint32_t>(v >> 32) + (b[l] ^ op.b.flip) + op.x + (in[l] & 1);
    const uint64_t address = pair(static_cast<uint32_t>(v), r[l]);
    global |= (address - shared_window < 2 * window_bytes ? 0u : 1u) << l;
  }
  commit(row(w, op.d), r, mask);
  commit_predicate(w, op.pd, global, mask);
  if (op.y & 2) set_sign_flags(w, r, mask);
  return Status::go;
}

// Multiply-add of 16-bit halves. x: C mode 0 none 1 CLO 2 CHI 3 CSFU 4 CBCC; y bits: 0 A.H1, 1 B.H1, 2 A signed, 3 B signed, 4 PSL, 5 MRG.
template <uint32_t mode>
Status xmad(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t f = op.y;
  map3(w, op, mask, [=](uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t ha = f & 1 ? a >> 16 : a & 0xffff, hb = f & 2 ? b >> 16 : b & 0xffff;
    const int32_t va = f & 4 ? static_cast<int16_t>(ha) : static_cast<int32_t>(ha),
                  vb = f & 8 ? static_cast<int16_t>(hb) : static_cast<int32_t>(hb);
    uint32_t product = static_cast<uint32_t>(va) * static_cast<uint32_t>(vb);
    if (f & 16) product <<= 16;
    switch (mode) {
      case 1: c &= 0xffff; break;
      case 2: c >>= 16; break;
      case 3:  // sign fix-up of mul.hi.s32
        if ((f & 4) && va < 0 && (b & 0xffff) != 0) c -= 0x10000;
        if ((f & 8) && vb < 0 && (a & 0xffff) != 0) c -= 0x10000;
        break;
      case 4: c += b << 16; break;
      default: break;
    }
    const uint32_t r = product + c;
    return f & 32 ? (r & 0xffff) | b << 16 : r;
  });
  return Status::go;
}

// x: 0 AND 1 OR 2 XOR 3 PASS_B; y: writes CC; z: what pd says: 1 true, 2 zero, 3 not zero; size: 1 .X, zero only where the condition code says zero, too
// (ptxas compares the logic of 64 bits with zero by `LOP.AND RZ.CC, ..; LOP.AND.X.NZ P0, RZ, ..`).
void logic_results(Warp& w, const Op& op, const uint32_t* r, uint32_t mask) {
  const uint32_t before = w.zero;
  if (op.y) set_sign_flags(w, r, mask);
  if (op.pd != trash_predicate) {
    uint32_t zero[lanes];
    for (uint32_t l = 0; l < lanes; ++l) zero[l] = r[l] == 0 ? all_lanes : 0;
    const uint32_t z = signs(zero) & (op.size ? before : all_lanes);
    commit_predicate(w, op.pd, op.z == 1 ? all_lanes : op.z == 2 ? z : op.z == 3 ? ~z : 0, mask);
  }
}
Status lop(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  uint32_t r[lanes];
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint32_t va = a[l] ^ op.a.flip, vb = b[l] ^ op.b.flip;
    r[l] = op.x == 0 ? va & vb : op.x == 1 ? va | vb : op.x == 2 ? va ^ vb : vb;
  }
  logic_results(w, op, r, mask);
  commit(row(w, op.d), r, mask);
  return Status::go;
}
Status lop3(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  uint32_t r[lanes] = {};
  for (uint32_t l = 0; l < lanes; ++l)
    for (uint32_t i = 0; i < 8; ++i)
      if (op.x >> i & 1) r[l] |= (i & 4 ? a[l] : ~a[l]) & (i & 2 ? b[l] : ~b[l]) & (i & 1 ? c[l] : ~c[l]);
  logic_results(w, op, r, mask);
  commit(row(w, op.d), r, mask);
  return Status::go;
}

uint32_t reversed(uint32_t v) {
  for (const auto& [by, bits] : {std::pair{1u, 0x55555555u}, {2u, 0x33333333u}, {4u, 0x0f0f0f0fu}, {8u, 0x00ff00ffu}})
    v = (v >> by & bits) | (v & bits) << by;
  return v >> 16 | v << 16;
}
// kind: 0 SHL, 1 SHR unsigned, 2 SHR signed; y bit 0 wrap, bit 1 reverse A first; z writes CC.
template <uint32_t kind>
Status shift(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t* b = row(w, op.b);
  alignas(64) uint32_t v[lanes], r[lanes];
  std::memcpy(v, row(w, op.a), sizeof v);
  if (op.y & 2)
    for (uint32_t& x : v) x = reversed(x);
  const auto shifted = [](uint32_t x, uint32_t n) {
    if (kind == 2) return static_cast<uint32_t>(static_cast<int32_t>(x) >> (n < 31 ? n : 31));
    return n >= 32 ? 0 : kind == 0 ? x << n : x >> n;
  };
  const uint32_t limit = op.y & 1 ? 31 : ~0u;
  if (op.b.pool) {  // one amount for all lanes: the host shifts whole vectors
    const uint32_t n = b[0] & limit;
    for (uint32_t l = 0; l < lanes; ++l) r[l] = shifted(v[l], n);
  } else {
    for (uint32_t l = 0; l < lanes; ++l) r[l] = shifted(v[l], b[l] & limit);
  }
  commit(row(w, op.d), r, mask);
  if (op.z) set_sign_flags(w, r, mask);
  return Status::go;
}
// Funnel: C:A by B; left gives the high word, right the low one. x: 0 none, 2 U64, 3 S64; y: wrap.
template <bool right>
Status shf(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t width = op.x == 0 ? 32 : 64;
  const bool arithmetic = op.x == 3, wrap = op.y;
  map3(w, op, mask, [=](uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t n = wrap ? b & (width - 1) : b < width ? b : width;
    const uint64_t v = pair(a, c);
    if (right) {
      if (arithmetic) return static_cast<uint32_t>(static_cast<int64_t>(v) >> (n < 63 ? n : 63));
      return static_cast<uint32_t>(n >= 64 ? 0 : v >> n);
    }
    return static_cast<uint32_t>((n >= 64 ? 0 : v << n) >> 32);
  });
  return Status::go;
}
// x signed, y reverse first, z CC.
Status bfe(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  uint32_t r[lanes];
  for (uint32_t l = 0; l < lanes; ++l) {
    uint32_t v = a[l];
    if (op.y) {
      uint32_t reversed = 0;
      for (uint32_t i = 0; i < 32; ++i) reversed |= (v >> i & 1) << (31 - i);
      v = reversed;
    }
    const uint32_t position = b[l] & 255, length = b[l] >> 8 & 255;
    if (length == 0) {
      r[l] = 0;
      continue;
    }
    // Bits beyond 31 read as the sign, or as zero.
    const int64_t wide = op.x ? static_cast<int64_t>(static_cast<int32_t>(v)) : static_cast<int64_t>(v);
    const uint64_t field = static_cast<uint64_t>(wide >> (position < 63 ? position : 63));
    r[l] = static_cast<uint32_t>(length >= 32 ? field : op.x ? sign_extend(field, length) : zero_extend(field, length));
  }
  commit(row(w, op.d), r, mask);
  if (op.z) set_sign_flags(w, r, mask);
  return Status::go;
}
Status bfi(Warp& w, const Op& op, uint32_t mask) {
  map3(w, op, mask, [](uint32_t a, uint32_t b, uint32_t c) {
    const uint32_t position = b & 255, length = b >> 8 & 255;
    if (position >= 32 || length == 0) return c;
    const uint32_t ones =
        static_cast<uint32_t>((length >= 32 ? ~uint64_t{0} : (uint64_t{1} << length) - 1) << position);
    return (c & ~ones) | (a << position & ones);
  });
  return Status::go;
}

// Outcomes of A against B (with x: after the low words were subtracted with .CC), as masks.
struct Outcome {
  uint32_t less, equal;
};
Outcome outcome(Warp& w, const Source& sa, const Source& sb, bool is_signed, bool extended) {
  const uint32_t *a = row(w, sa), *b = row(w, sb);
  const uint32_t bias = is_signed ? 0x80000000 : 0;
  alignas(64) uint32_t less[lanes], equal[lanes];
  if (!extended) {
    for (uint32_t l = 0; l < lanes; ++l) {
      less[l] = (a[l] ^ bias) < (b[l] ^ bias) ? all_lanes : 0;
      equal[l] = a[l] == b[l] ? all_lanes : 0;
    }
    return {signs(less), signs(equal)};
  }
  alignas(64) uint32_t in[lanes];
  expand(w.carry, in);
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint32_t partial = a[l] + ~b[l], r = partial + (in[l] & 1);
    const uint32_t carry = (partial < a[l]) | (r < partial) ? all_lanes : 0;
    less[l] = is_signed ? r ^ ((a[l] ^ b[l]) & (a[l] ^ r)) : ~carry;
    equal[l] = r == 0 ? all_lanes : 0;
  }
  return {signs(less), signs(equal) & w.zero};
}
uint32_t test(const Outcome& o, uint32_t code) {
  return (code & 1 ? o.less & ~o.equal : 0) | (code & 2 ? o.equal : 0) | (code & 4 ? ~o.less & ~o.equal : 0);
}
uint32_t combine(uint32_t how, uint32_t t, uint32_t p) { return how == 0 ? t & p : how == 1 ? t | p : t ^ p; }

// x compare, y bit 0 extended, bit 1 signed, bit 2 .BF, bit 3 CC; z combination.
Status isetp(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t t = test(outcome(w, op.a, op.b, op.y & 2, op.y & 1), op.x), p = lane_mask(w, op.ps);
  commit_predicate(w, op.pd, combine(op.z, t, p), mask);
  commit_predicate(w, op.pq, combine(op.z, ~t, p), mask);
  return Status::go;
}
Status iset(Warp& w, const Op& op, uint32_t mask) {
  uint32_t r[lanes];
  expand(combine(op.z, test(outcome(w, op.a, op.b, op.y & 2, op.y & 1), op.x), lane_mask(w, op.ps)), r);
  if (op.y & 4)
    for (uint32_t& v : r) v &= 0x3f800000;
  commit(row(w, op.d), r, mask);
  if (op.y & 8) {
    set_sign_flags(w, r, mask);
    merge(w.carry, 0, mask), merge(w.overflow, 0, mask);
  }
  return Status::go;
}
Status icmp(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  uint32_t t[lanes], r[lanes];
  expand(test(outcome(w, op.c, Source{}, op.y & 2, false), op.x), t);
  for (uint32_t l = 0; l < lanes; ++l) r[l] = t[l] ? a[l] : b[l];
  commit(row(w, op.d), r, mask);
  return Status::go;
}
// x: 0 plain, 1 XLO, 3 XHI. XHI leaves in the condition code which operand's high word won: carry = A, zero = neither.
Status imnmx(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  const Outcome o = outcome(w, op.a, op.b, op.y & 2, false);
  const uint32_t minimum = lane_mask(w, op.ps);
  const uint32_t own = (o.less & minimum) | (~o.less & ~minimum);
  const uint32_t first = op.x == 1 ? (w.zero & own) | (~w.zero & w.carry) : own;
  uint32_t p[lanes], r[lanes];
  expand(first, p);
  for (uint32_t l = 0; l < lanes; ++l) r[l] = p[l] ? a[l] : b[l];
  commit(row(w, op.d), r, mask);
  if (op.x == 3) {
    merge(w.carry, own, mask);
    merge(w.zero, o.equal, mask);
  }
  return Status::go;
}

// Predicates: t = (Pa how1 Pb); x how1, z how2.
Status psetp(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t t = combine(op.x, lane_mask(w, op.ps), lane_mask(w, op.px)), p = lane_mask(w, op.py);
  commit_predicate(w, op.pd, combine(op.z, t, p), mask);
  commit_predicate(w, op.pq, combine(op.z, ~t, p), mask);
  return Status::go;
}
Status pset(Warp& w, const Op& op, uint32_t mask) {
  uint32_t r[lanes];
  expand(combine(op.z, combine(op.x, lane_mask(w, op.ps), lane_mask(w, op.px)), lane_mask(w, op.py)), r);
  if (op.y)
    for (uint32_t& v : r) v &= 0x3f800000;
  commit(row(w, op.d), r, mask);
  return Status::go;
}

// The condition code to and from bits of a register: 0 zero, 1 negative, 2 carry, 3 overflow. x mask, y first bit.
Status condition_to_bits(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t* a = row(w, op.a);
  uint32_t r[lanes];
  for (uint32_t l = 0; l < lanes; ++l) {
    const uint32_t bits =
        (w.zero >> l & 1) | (w.negative >> l & 1) << 1 | (w.carry >> l & 1) << 2 | (w.overflow >> l & 1) << 3;
    r[l] = (a[l] & ~(op.x << op.y)) | (bits & op.x) << op.y;
  }
  commit(row(w, op.d), r, mask);
  return Status::go;
}
Status bits_to_condition(Warp& w, const Op& op, uint32_t mask) {
  const uint32_t* a = row(w, op.a);
  uint32_t* const flags[] = {&w.zero, &w.negative, &w.carry, &w.overflow};
  for (uint32_t f = 0; f < 4; ++f) {
    if (!(op.x >> f & 1)) continue;
    uint32_t bits = 0;
    for (uint32_t l = 0; l < lanes; ++l) bits |= (a[l] >> (op.y + f) & 1) << l;
    merge(*flags[f], bits, mask);
  }
  return Status::go;
}

}  // namespace

bool select_pascal_integer(Selector& s, Op& op) {
  using K = ModifierKind;
  const auto m = [&](K kind) -> uint32_t { return isa::has_modifier(s.in->form, kind) ? s.modifier(kind) : 0; };
  const auto with = [&](Handler run) {
    op.run = run;
    return true;
  };
  const bool cc = isa::writes_carry(*s.in);
  // -A and -B together mean A + B + 1.
  const auto sources = [&](uint32_t k) {
    op.a = s.integer(k), op.b = s.integer(k + 1);
    if (s.operand(k).negated && s.operand(k + 1).negated) op.a.flip = op.b.flip = 0, s.negations = 1;
    op.y = m(K::X) | (cc ? 2 : 0);
    op.x = m(K::X) ? 0 : s.negations;
  };
  const bool has_predicate = s.operand(0).kind == isa::OperandKind::predicate;  // LEA, LOP, LOP3: slot 0
  const uint32_t k = has_predicate ? 1 : 0;
  const auto shift_amount = [&](uint32_t slot) {
    return slot < s.in->operand_count ? static_cast<uint32_t>(s.operand(slot).value) & 31 : 0;
  };
  switch (s.in->mnemonic) {
    case Mnemonic::IADD:
    case Mnemonic::IADD32I:
      op.d = s.destination(0);
      sources(1);
      if (m(K::SAT)) {
        if (cc || m(K::X)) return s.unsupported("IADD.SAT with a carry");
        return with(add_saturated);
      }
      return with(add_two_words[op.y]);
    case Mnemonic::IADD3:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2), op.c = s.integer(3);
      op.y = m(K::X) | (cc ? 2 : 0);
      op.x = m(K::X) ? 0 : s.negations;
      op.z = m(K::Add3Shift);
      op.size =
          static_cast<uint8_t>((s.operand(1).part & 3) | (s.operand(2).part & 3) << 2 | (s.operand(3).part & 3) << 4);
      if (op.z && (s.negations || m(K::X))) return s.unsupported("a shifted IADD3 with a negation or a carry");
      return with(add_three);
    case Mnemonic::ISCADD:
    case Mnemonic::ISCADD32I:
      op.d = s.destination(0);
      sources(1);
      op.z = shift_amount(3);
      return with(add_two_words[op.y]);
    case Mnemonic::LEA:
      op.d = s.destination(k);
      sources(k + 1);
      op.z = shift_amount(k + 3);
      if (s.predicate_destination(0) != trash_predicate && has_predicate)
        return s.unsupported("LEA with a predicate result");
      return with(add_two_words[op.y]);
    case Mnemonic::LEA_HI:
      if (has_predicate) op.pd = s.predicate_destination(0);
      op.d = s.destination(k);
      op.a = s.integer(k + 1), op.b = s.integer(k + 2), op.c = s.integer(k + 3);
      op.z = shift_amount(k + 4);
      op.y = m(K::X) | (cc ? 2 : 0);
      return with(lea_hi);
    case Mnemonic::XMAD:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2), op.c = s.integer(3);
      if (s.negations || m(K::X) || cc) return s.unsupported("XMAD with a carry");
      op.x = m(K::XmadC);
      op.y = (s.operand(1).part ? 1u : 0u) | (s.operand(2).part ? 2u : 0u) | m(K::SignedA) << 2 | m(K::SignedB) << 3 |
             m(K::PSL) << 4 | m(K::MRG) << 5;
      return with(std::array{xmad<0>, xmad<1>, xmad<2>, xmad<3>, xmad<4>, xmad<0>, xmad<0>, xmad<0>}[op.x & 7]);
    case Mnemonic::LOP:
    case Mnemonic::LOP32I:
      if (has_predicate) op.pd = s.predicate_destination(0);
      op.d = s.destination(k);
      op.a = s.integer(k + 1), op.b = s.integer(k + 2);
      if (m(K::X) && cc) return s.unsupported("a condition code written by LOP.X");
      op.size = m(K::X);
      op.x = m(K::LogicOp), op.y = cc, op.z = m(K::PredicateMode);
      return with(lop);
    case Mnemonic::LOP3:
      if (has_predicate) op.pd = s.predicate_destination(0);
      op.d = s.destination(k);
      op.a = s.integer(k + 1), op.b = s.integer(k + 2), op.c = s.integer(k + 3);
      if (s.negations || m(K::X)) return s.unsupported("LOP3 with a negation or .X");
      op.x = static_cast<uint32_t>(s.operand(k + 4).value) & 255, op.y = cc, op.z = m(K::PredicateMode);
      return with(lop3);
    case Mnemonic::SHL:
    case Mnemonic::SHR:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2);
      if (s.negations || m(K::X) || m(K::Extended)) return s.unsupported("an extended shift");
      op.x = s.in->mnemonic == Mnemonic::SHL ? 0 : m(K::Signed) ? 2 : 1;
      op.y = m(K::Wrap) | m(K::Brev) << 1;
      op.z = cc;
      return with(op.x == 0 ? shift<0> : op.x == 1 ? shift<1> : shift<2>);
    case Mnemonic::SHF_L:
    case Mnemonic::SHF_R:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2), op.c = s.integer(3);
      if (m(K::Extended) || cc) return s.unsupported("an extended funnel shift");
      op.x = m(K::ShiftType), op.y = m(K::Wrap);
      return with(s.in->mnemonic == Mnemonic::SHF_R ? shf<true> : shf<false>);
    case Mnemonic::BFE:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2);
      op.x = m(K::Signed), op.y = m(K::Brev), op.z = cc;
      return with(bfe);
    case Mnemonic::BFI:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2), op.c = s.integer(3);
      if (cc) return s.unsupported("BFI.CC");
      return with(bfi);
    case Mnemonic::ISETP:
    case Mnemonic::ISET: {
      const bool setp = s.in->mnemonic == Mnemonic::ISETP;
      const uint32_t first = setp ? 2 : 1;
      if (setp)
        op.pd = s.predicate_destination(0), op.pq = s.predicate_destination(1);
      else
        op.d = s.destination(0);
      op.a = s.integer(first), op.b = s.integer(first + 1);
      if (s.negations) return s.unsupported("a negated source");
      op.ps = s.predicate(first + 2);
      op.x = m(K::Compare), op.z = m(K::Bool);
      op.y = m(K::X) | m(K::Signed) << 1 | m(K::BF) << 2 | (cc ? 8u : 0u);
      return with(setp ? isetp : iset);
    }
    case Mnemonic::ICMP:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2), op.c = s.integer(3);
      if (s.negations) return s.unsupported("a negated source");
      op.x = m(K::Compare), op.y = m(K::Signed) << 1;
      return with(icmp);
    case Mnemonic::IMNMX:
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2);
      if (s.negations) return s.unsupported("a negated source");
      op.ps = s.predicate(3);
      op.x = m(K::Extended), op.y = m(K::Signed) << 1;
      if (op.x == 2 || (cc && op.x != 3)) return s.unsupported("this extension of IMNMX");
      return with(imnmx);
    case Mnemonic::PSETP:
    case Mnemonic::PSET: {
      const bool setp = s.in->mnemonic == Mnemonic::PSETP;
      const uint32_t first = setp ? 2 : 1;
      if (setp)
        op.pd = s.predicate_destination(0), op.pq = s.predicate_destination(1);
      else
        op.d = s.destination(0);
      op.ps = s.predicate(first), op.px = s.predicate(first + 1), op.py = s.predicate(first + 2);
      op.x = m(K::Bool2), op.z = m(K::Bool), op.y = m(K::BF);
      if (cc) return s.unsupported("a condition code written by predicate logic");
      return with(setp ? psetp : pset);
    }
    case Mnemonic::P2R:
    case Mnemonic::R2P: {
      if (!m(K::FromCC)) return false;  // predicates: as on Volta (semantics_integer.cpp)
      const bool to_register = s.in->mnemonic == Mnemonic::P2R;
      const uint32_t a = to_register ? 1 : 0;
      if (s.operand(a + 1).kind != isa::OperandKind::immediate) return s.unsupported("a mask that is no immediate");
      if (to_register) op.d = s.destination(0);
      op.a = s.integer(a);
      op.x = static_cast<uint32_t>(s.operand(a + 1).value) & 15;
      op.y = 8 * m(K::Byte);
      return with(to_register ? condition_to_bits : bits_to_condition);
    }
    case Mnemonic::POPC:
    case Mnemonic::FLO:
    case Mnemonic::SEL:
    case Mnemonic::PRMT:
    case Mnemonic::MOV:
    case Mnemonic::MOV32I:
    case Mnemonic::IDP:
    case Mnemonic::VABSDIFF:
    case Mnemonic::VABSDIFF4:
    case Mnemonic::LEPC:
    case Mnemonic::LDC:
      // As on Volta (semantics_integer.cpp).
      return cc ? s.unsupported("a condition code written by this instruction") : false;
    case Mnemonic::IMAD:
    case Mnemonic::IMUL:
    case Mnemonic::IMUL32I: {
      const bool adds = s.in->mnemonic == Mnemonic::IMAD;
      op.d = s.destination(0);
      op.a = s.integer(1), op.b = s.integer(2);
      const bool carries = cc || (adds && m(K::X));
      if (s.negations || (carries && !adds)) return s.unsupported("a negated full product, or one with a carry");
      op.c = adds ? s.integer(3) : Source{zero_row};
      op.x = m(K::SignedA) | m(K::SignedB) << 1 | s.negations << 2;
      op.y = m(K::High);
      op.z = adds && m(K::SAT);
      if (!carries) return with(multiply);
      if (s.negations || op.z) return s.unsupported("a negated or saturated sum of a full product with a carry");
      op.z = (m(K::X) ? 1 : 0) | (cc ? 2 : 0);
      return with(multiply_with_carry);
    }
    default: return false;
  }
}

}  // namespace rndn::sim
