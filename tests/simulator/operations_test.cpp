// Every arithmetic PTX operation that code generation uses, one kernel each: assembled by the reference assembler for every target, run on
// random and special operands, compared with plain C++. Operands come from memory and results go there, so that nothing is folded.
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "tests/simulator/support.h"

namespace rndn::sim::operations_test {
namespace {

// A row: operands are %a %b %c of `type_in`, the result is %d of `type_out`. Both are passed as 64-bit patterns.
struct Operation {
  const char* name;
  const char* type_in;  // register type: b32, f32, b64, f64
  const char* type_out;
  const char* ptx;  // may use %p, %q predicates and %t %u scratch of the input type, %w of b32
  std::function<uint64_t(uint64_t, uint64_t, uint64_t)> expected;
};

uint32_t lo(uint64_t x) { return static_cast<uint32_t>(x); }
int32_t s32(uint64_t x) { return static_cast<int32_t>(x); }
int64_t s64(uint64_t x) { return static_cast<int64_t>(x); }
float f32(uint64_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x)); }
double f64(uint64_t x) { return std::bit_cast<double>(x); }
uint64_t bits(float x) { return std::isnan(x) ? 0x7fffffff : std::bit_cast<uint32_t>(x); }
uint64_t bits(double x) { return std::bit_cast<uint64_t>(x); }
uint64_t hi64(uint64_t a, uint64_t b) { return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64); }

// Rounds an exact value (given as long double or wider pieces) in a direction, by neighbours of the nearest.
float toward(float nearest, long double exact, int direction) {
  if (std::isnan(nearest) || std::isinf(exact)) return nearest;
  if (direction < 0 && static_cast<long double>(nearest) > exact) return std::nextafterf(nearest, -INFINITY);
  if (direction > 0 && static_cast<long double>(nearest) < exact) return std::nextafterf(nearest, INFINITY);
  return nearest;
}

std::vector<Operation> operations() {
  using U = uint64_t;
  std::vector<Operation> t = {
      // 32-bit integers
      {"add", "b32", "b32", "add.u32 %d, %a, %b;", [](U a, U b, U) -> U { return lo(a + b); }},
      {"sub", "b32", "b32", "sub.u32 %d, %a, %b;", [](U a, U b, U) -> U { return lo(a - b); }},
      {"mul", "b32", "b32", "mul.lo.u32 %d, %a, %b;", [](U a, U b, U) -> U { return lo(a * b); }},
      {"mad", "b32", "b32", "mad.lo.u32 %d, %a, %b, %c;", [](U a, U b, U c) -> U { return lo(a * b + c); }},
      {"mulhi_u", "b32", "b32", "mul.hi.u32 %d, %a, %b;", [](U a, U b, U) -> U { return a * b >> 32; }},
      {"mulhi_s", "b32", "b32", "mul.hi.s32 %d, %a, %b;", [](U a, U b, U) -> U { return lo(static_cast<U>(int64_t{s32(a)} * s32(b)) >> 32); }},
      {"madhi_s", "b32", "b32", "mad.hi.s32 %d, %a, %b, %c;", [](U a, U b, U c) -> U { return lo((static_cast<U>(int64_t{s32(a)} * s32(b)) >> 32) + c); }},
      {"wide_u", "b32", "b64", "mul.wide.u32 %d, %a, %b;", [](U a, U b, U) -> U { return a * b; }},
      {"wide_s", "b32", "b64", "mul.wide.s32 %d, %a, %b;", [](U a, U b, U) -> U { return static_cast<U>(int64_t{s32(a)} * s32(b)); }},
      {"div_u", "b32", "b32", "div.u32 %d, %a, %b;", [](U a, U b, U) -> U { return b ? a / b : lo(~U{0}); }},
      {"div_s", "b32", "b32", "div.s32 %d, %a, %b;",
       [](U a, U b, U) -> U { return b == 0 ? lo(~U{0}) : b == 0xffffffff ? lo(0 - a) : lo(static_cast<U>(s32(a) / s32(b))); }},
      {"rem_u", "b32", "b32", "rem.u32 %d, %a, %b;", [](U a, U b, U) -> U { return b ? a % b : lo(~U{0}); }},
      {"rem_s", "b32", "b32", "rem.s32 %d, %a, %b;",
       [](U a, U b, U) -> U { return b == 0 ? lo(~U{0}) : b == 0xffffffff ? 0 : lo(static_cast<U>(s32(a) % s32(b))); }},
      // By zero, which PTX leaves open: all ones, whatever ptxas knows of the operands.
      {"div16_u", "b32", "b32", "{ .reg .b16 h, k; cvt.u16.u32 h, %a; cvt.u16.u32 k, %b; div.u16 h, h, k; cvt.u32.u16 %d, h; }",
       [](U a, U b, U) -> U { return b & 0xffff ? (a & 0xffff) / (b & 0xffff) : 0xffff; }},
      {"rem16_u", "b32", "b32", "{ .reg .b16 h, k; cvt.u16.u32 h, %a; cvt.u16.u32 k, %b; rem.u16 h, h, k; cvt.u32.u16 %d, h; }",
       [](U a, U b, U) -> U { return b & 0xffff ? (a & 0xffff) % (b & 0xffff) : 0xffff; }},
      {"div16_s", "b32", "b32", "{ .reg .b16 h, k; cvt.u16.u32 h, %a; cvt.u16.u32 k, %b; div.s16 h, h, k; cvt.u32.u16 %d, h; }",
       [](U a, U b, U) -> U { return b & 0xffff ? static_cast<uint16_t>(static_cast<int16_t>(a) / static_cast<int16_t>(b)) : 0xffff; }},
      {"rem16_s", "b32", "b32", "{ .reg .b16 h, k; cvt.u16.u32 h, %a; cvt.u16.u32 k, %b; rem.s16 h, h, k; cvt.u32.u16 %d, h; }",
       [](U a, U b, U) -> U { return b & 0xffff ? static_cast<uint16_t>(static_cast<int16_t>(a) % static_cast<int16_t>(b)) : 0xffff; }},
      {"div_u_0", "b32", "b32", "div.u32 %d, %a, 0;", [](U, U, U) -> U { return 0xffffffff; }},
      {"rem_u_0", "b32", "b32", "rem.u32 %d, %a, 0;", [](U, U, U) -> U { return 0xffffffff; }},
      {"rem_s_0", "b32", "b32", "rem.s32 %d, %a, 0;", [](U, U, U) -> U { return 0xffffffff; }},
      {"rem_of_5", "b32", "b32", "rem.u32 %d, 5, %a;", [](U a, U, U) -> U { return a ? 5 % a : 0xffffffff; }},
      {"rem_5_0", "b32", "b32", "rem.u32 %d, 5, 0;", [](U, U, U) -> U { return 0xffffffff; }},
      {"min_s", "b32", "b32", "min.s32 %d, %a, %b;", [](U a, U b, U) -> U { return s32(a) < s32(b) ? a : b; }},
      {"max_u", "b32", "b32", "max.u32 %d, %a, %b;", [](U a, U b, U) -> U { return a > b ? a : b; }},
      {"max_s", "b32", "b32", "max.s32 %d, %a, %b;", [](U a, U b, U) -> U { return s32(a) > s32(b) ? a : b; }},
      {"min_u", "b32", "b32", "min.u32 %d, %a, %b;", [](U a, U b, U) -> U { return a < b ? a : b; }},
      {"abs", "b32", "b32", "abs.s32 %d, %a;", [](U a, U, U) -> U { return s32(a) < 0 ? lo(0 - a) : a; }},
      {"neg", "b32", "b32", "neg.s32 %d, %a;", [](U a, U, U) -> U { return lo(0 - a); }},
      {"and", "b32", "b32", "and.b32 %d, %a, %b;", [](U a, U b, U) -> U { return a & b; }},
      {"or", "b32", "b32", "or.b32 %d, %a, %b;", [](U a, U b, U) -> U { return a | b; }},
      {"xor", "b32", "b32", "xor.b32 %d, %a, %b;", [](U a, U b, U) -> U { return a ^ b; }},
      {"not", "b32", "b32", "not.b32 %d, %a;", [](U a, U, U) -> U { return lo(~a); }},
      {"lop3", "b32", "b32", "lop3.b32 %d, %a, %b, %c, 0x1d;",
       [](U a, U b, U c) -> U {
         U r = 0;
         for (int i = 0; i < 32; ++i) r |= static_cast<U>(0x1d >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i;
         return r;
       }},
      {"shl", "b32", "b32", "shl.b32 %d, %a, %b;", [](U a, U b, U) -> U { return b < 32 ? lo(a << b) : 0; }},
      {"shl_small", "b32", "b32", "and.b32 %t, %b, 63; shl.b32 %d, %a, %t;", [](U a, U b, U) -> U { return (b & 63) < 32 ? lo(a << (b & 63)) : 0; }},
      {"shr_u", "b32", "b32", "and.b32 %t, %b, 63; shr.u32 %d, %a, %t;", [](U a, U b, U) -> U { return (b & 63) < 32 ? a >> (b & 63) : 0; }},
      {"shr_s", "b32", "b32", "and.b32 %t, %b, 63; shr.s32 %d, %a, %t;",
       [](U a, U b, U) -> U { return lo(static_cast<U>(s32(a) >> std::min<U>(b & 63, 31))); }},
      {"funnel_l", "b32", "b32", "shf.l.wrap.b32 %d, %a, %b, %c;",
       [](U a, U b, U c) -> U { return lo((b << 32 | a) << (c & 31) >> 32); }},
      {"funnel_r", "b32", "b32", "shf.r.clamp.b32 %d, %a, %b, %c;", [](U a, U b, U c) -> U { return lo((b << 32 | a) >> std::min<U>(c, 32)); }},
      {"popc", "b32", "b32", "popc.b32 %d, %a;", [](U a, U, U) -> U { return std::popcount(a); }},
      {"clz", "b32", "b32", "clz.b32 %d, %a;", [](U a, U, U) -> U { return std::countl_zero(lo(a)); }},
      {"brev", "b32", "b32", "brev.b32 %d, %a;",
       [](U a, U, U) -> U {
         U r = 0;
         for (int i = 0; i < 32; ++i) r |= (a >> i & 1) << (31 - i);
         return r;
       }},
      {"bfind_s", "b32", "b32", "bfind.s32 %d, %a;",
       [](U a, U, U) -> U {
         const uint32_t v = s32(a) < 0 ? ~lo(a) : lo(a);
         return v ? 31u - std::countl_zero(v) : 0xffffffffu;
       }},
      {"bfe_u", "b32", "b32", "and.b32 %t, %b, 31; and.b32 %u, %c, 31; bfe.u32 %d, %a, %t, %u;",
       [](U a, U b, U c) -> U { return (c & 31) ? a >> (b & 31) & ((U{1} << (c & 31)) - 1) : 0; }},
      {"bfe_s", "b32", "b32", "and.b32 %t, %b, 31; and.b32 %u, %c, 31; bfe.s32 %d, %a, %t, %u;",
       [](U a, U b, U c) -> U {
         const int n = static_cast<int>(c & 31);
         if (!n) return 0;
         const int64_t wide = static_cast<int64_t>(s32(a)) >> (b & 31);
         return lo(static_cast<U>(wide << (64 - n) >> (64 - n)));
       }},
      {"bfi", "b32", "b32", "and.b32 %t, %c, 31; bfi.b32 %d, %a, %b, %t, 7;",
       [](U a, U b, U c) -> U {
         const U mask = lo(U{127} << (c & 31));
         return (b & ~mask) | (lo(a << (c & 31)) & mask);
       }},
      {"prmt", "b32", "b32", "prmt.b32 %d, %a, %b, %c;",
       [](U a, U b, U c) -> U {
         const U all = b << 32 | a;
         U r = 0;
         for (int i = 0; i < 4; ++i) {
           const U n = c >> 4 * i & 15, byte = all >> 8 * (n & 7) & 255;
           r |= (n & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * i;
         }
         return r;
       }},
      {"setp_lt_s", "b32", "b32", "setp.lt.s32 %p, %a, %b; selp.b32 %d, 7, 9, %p;", [](U a, U b, U) -> U { return s32(a) < s32(b) ? 7 : 9; }},
      {"setp_ge_u", "b32", "b32", "setp.ge.u32 %p, %a, %b; selp.b32 %d, %a, %c, %p;", [](U a, U b, U c) -> U { return a >= b ? a : c; }},
      {"setp_and", "b32", "b32", "setp.eq.u32 %q, %c, 0; setp.gt.and.s32 %p, %a, %b, !%q; selp.b32 %d, 1, 0, %p;",
       [](U a, U b, U c) -> U { return s32(a) > s32(b) && c != 0; }},
      {"setp_two", "b32", "b32", "setp.ne.s32 %p, %c, 5; setp.le.or.s32 %p|%q, %a, %b, %p; selp.b32 %t, 1, 0, %p; selp.b32 %u, 2, 0, %q; add.u32 %d, %t, %u;",
       [](U a, U b, U c) -> U { return (s32(a) <= s32(b) || s32(c) != 5 ? 1 : 0) + (!(s32(a) <= s32(b)) || s32(c) != 5 ? 2 : 0); }},
      {"dates", "b32", "b32", "mul.hi.u32 %t, %a, 0xaaaaaaab; shr.u32 %t, %t, 1; mul.lo.u32 %t, %t, 3; sub.u32 %d, %a, %t;", [](U a, U, U) -> U { return a % 3; }},
      {"sad", "b32", "b32", "sad.u32 %d, %a, %b, %c;", [](U a, U b, U c) -> U { return lo((a > b ? a - b : b - a) + c); }},
      {"cvt_s8", "b32", "b32", "cvt.s32.s8 %d, %a;", [](U a, U, U) -> U { return lo(static_cast<U>(static_cast<int8_t>(a))); }},
      {"cvt_u16", "b32", "b32", "cvt.u32.u16 %d, %a;", [](U a, U, U) -> U { return a & 0xffff; }},
      {"sat_s8", "b32", "b32", "cvt.sat.s8.s32 %d, %a;", [](U a, U, U) -> U { return lo(static_cast<U>(std::clamp(s32(a), -128, 127))); }},
      // 64-bit integers
      {"add64", "b64", "b64", "add.u64 %d, %a, %b;", [](U a, U b, U) -> U { return a + b; }},
      {"sub64", "b64", "b64", "sub.u64 %d, %a, %b;", [](U a, U b, U) -> U { return a - b; }},
      {"neg64", "b64", "b64", "neg.s64 %d, %a;", [](U a, U, U) -> U { return 0 - a; }},
      {"abs64", "b64", "b64", "abs.s64 %d, %a;", [](U a, U, U) -> U { return s64(a) < 0 ? 0 - a : a; }},
      {"mul64", "b64", "b64", "mul.lo.u64 %d, %a, %b;", [](U a, U b, U) -> U { return a * b; }},
      {"mad64", "b64", "b64", "mad.lo.u64 %d, %a, %b, %c;", [](U a, U b, U c) -> U { return a * b + c; }},
      {"mulhi64_u", "b64", "b64", "mul.hi.u64 %d, %a, %b;", [](U a, U b, U) -> U { return hi64(a, b); }},
      {"mulhi64_s", "b64", "b64", "mul.hi.s64 %d, %a, %b;",
       [](U a, U b, U) -> U { return hi64(a, b) - (s64(a) < 0 ? b : 0) - (s64(b) < 0 ? a : 0); }},
      {"div64_u", "b64", "b64", "div.u64 %d, %a, %b;", [](U a, U b, U) -> U { return b ? a / b : ~U{0}; }},
      {"div64_s", "b64", "b64", "div.s64 %d, %a, %b;",
       [](U a, U b, U) -> U { return b == 0 ? ~U{0} : b == ~U{0} ? 0 - a : static_cast<U>(s64(a) / s64(b)); }},
      {"div64_s_0", "b64", "b64", "div.s64 %d, %a, 0;", [](U, U, U) -> U { return ~U{0}; }},
      {"rem64_u_0", "b64", "b64", "rem.u64 %d, %a, 0;", [](U, U, U) -> U { return ~U{0}; }},
      {"rem64_s_0", "b64", "b64", "rem.s64 %d, %a, 0;", [](U, U, U) -> U { return ~U{0}; }},
      {"rem64_u", "b64", "b64", "rem.u64 %d, %a, %b;", [](U a, U b, U) -> U { return b ? a % b : ~U{0}; }},
      {"rem64_s", "b64", "b64", "rem.s64 %d, %a, %b;", [](U a, U b, U) -> U { return b == 0 ? ~U{0} : b == ~U{0} ? 0 : static_cast<U>(s64(a) % s64(b)); }},
      {"min64_s", "b64", "b64", "min.s64 %d, %a, %b;", [](U a, U b, U) -> U { return s64(a) < s64(b) ? a : b; }},
      {"max64_u", "b64", "b64", "max.u64 %d, %a, %b;", [](U a, U b, U) -> U { return a > b ? a : b; }},
      {"shl64", "b64", "b64", "cvt.u32.u64 %w, %b; and.b32 %w, %w, 127; shl.b64 %d, %a, %w;", [](U a, U b, U) -> U { return (b & 127) < 64 ? a << (b & 127) : 0; }},
      {"shr64_u", "b64", "b64", "cvt.u32.u64 %w, %b; and.b32 %w, %w, 127; shr.u64 %d, %a, %w;", [](U a, U b, U) -> U { return (b & 127) < 64 ? a >> (b & 127) : 0; }},
      {"shr64_s", "b64", "b64", "cvt.u32.u64 %w, %b; and.b32 %w, %w, 127; shr.s64 %d, %a, %w;",
       [](U a, U b, U) -> U { return static_cast<U>(s64(a) >> std::min<U>(b & 127, 63)); }},
      {"and64", "b64", "b64", "and.b64 %d, %a, %b; xor.b64 %d, %d, %c;", [](U a, U b, U c) -> U { return (a & b) ^ c; }},
      {"lt64_s", "b64", "b32", "setp.lt.s64 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return s64(a) < s64(b); }},
      {"le64_u", "b64", "b32", "setp.le.u64 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return a <= b; }},
      {"ge64_s", "b64", "b32", "setp.ge.s64 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return s64(a) >= s64(b); }},
      {"gt64_u", "b64", "b32", "setp.gt.u64 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return a > b; }},
      {"eq64", "b64", "b32", "setp.eq.s64 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return a == b; }},
      {"ne64", "b64", "b32", "setp.ne.s64 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return a != b; }},
      {"popc64", "b64", "b32", "popc.b64 %d, %a;", [](U a, U, U) -> U { return std::popcount(a); }},
      {"clz64", "b64", "b32", "clz.b64 %d, %a;", [](U a, U, U) -> U { return std::countl_zero(a); }},
      {"brev64", "b64", "b64", "brev.b64 %d, %a;",
       [](U a, U, U) -> U {
         U r = 0;
         for (int i = 0; i < 64; ++i) r |= (a >> i & 1) << (63 - i);
         return r;
       }},
      // f32
      {"fadd", "f32", "f32", "add.rn.f32 %d, %a, %b;", [](U a, U b, U) -> U { return bits(f32(a) + f32(b)); }},
      {"fsub", "f32", "f32", "sub.rn.f32 %d, %a, %b;", [](U a, U b, U) -> U { return bits(f32(a) - f32(b)); }},
      {"fmul", "f32", "f32", "mul.rn.f32 %d, %a, %b;", [](U a, U b, U) -> U { return bits(f32(a) * f32(b)); }},
      {"ffma", "f32", "f32", "fma.rn.f32 %d, %a, %b, %c;", [](U a, U b, U c) -> U { return bits(std::fma(f32(a), f32(b), f32(c))); }},
      {"fdiv", "f32", "f32", "div.rn.f32 %d, %a, %b;", [](U a, U b, U) -> U { return bits(f32(a) / f32(b)); }},
      {"frcp", "f32", "f32", "rcp.rn.f32 %d, %a;", [](U a, U, U) -> U { return bits(1.0f / f32(a)); }},
      {"fsqrt", "f32", "f32", "sqrt.rn.f32 %d, %a;", [](U a, U, U) -> U { return bits(std::sqrt(f32(a))); }},
      {"fmul_rm", "f32", "f32", "mul.rm.f32 %d, %a, %b;",
       [](U a, U b, U) -> U {
         const double exact = double{f32(a)} * f32(b);
         return bits(toward(static_cast<float>(exact), exact, -1));
       }},
      {"fmul_rp", "f32", "f32", "mul.rp.f32 %d, %a, %b;",
       [](U a, U b, U) -> U {
         const double exact = double{f32(a)} * f32(b);
         return bits(toward(static_cast<float>(exact), exact, 1));
       }},
      {"fmin", "f32", "f32", "min.f32 %d, %a, %b;",
       [](U a, U b, U) -> U {
         const float x = f32(a), y = f32(b);
         if (x == y) return a | b;  // only zeros differ: the negative one
         return std::isnan(x) ? bits(y) : std::isnan(y) ? bits(x) : bits(std::min(x, y));
       }},
      {"fmax", "f32", "f32", "max.f32 %d, %a, %b;",
       [](U a, U b, U) -> U {
         const float x = f32(a), y = f32(b);
         if (x == y) return a & b;
         return std::isnan(x) ? bits(y) : std::isnan(y) ? bits(x) : bits(std::max(x, y));
       }},
      {"fneg", "f32", "f32", "neg.f32 %d, %a; add.rn.f32 %d, %d, %b;", [](U a, U b, U) -> U { return bits(-f32(a) + f32(b)); }},
      {"fabs", "f32", "f32", "abs.f32 %d, %a; mul.rn.f32 %d, %d, %b;", [](U a, U b, U) -> U { return bits(std::fabs(f32(a)) * f32(b)); }},
      {"fadd_ftz", "f32", "f32", "add.rn.ftz.f32 %d, %a, %b;",
       [](U a, U b, U) -> U {
         const auto flush = [](float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; };
         return bits(flush(flush(f32(a)) + flush(f32(b))));
       }},
      {"flt", "f32", "b32", "setp.lt.f32 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return f32(a) < f32(b); }},
      {"fgeu", "f32", "b32", "setp.geu.f32 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return !(f32(a) < f32(b)); }},
      {"fne", "f32", "b32", "setp.ne.f32 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return f32(a) < f32(b) || f32(a) > f32(b); }},
      {"fneu", "f32", "b32", "setp.neu.f32 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return f32(a) != f32(b); }},
      {"fnan", "f32", "b32", "setp.nan.f32 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return std::isnan(f32(a)) || std::isnan(f32(b)); }},
      // f64
      {"dadd", "f64", "f64", "add.rn.f64 %d, %a, %b;", [](U a, U b, U) -> U { return bits(f64(a) + f64(b)); }},
      {"dsub", "f64", "f64", "sub.rn.f64 %d, %a, %b;", [](U a, U b, U) -> U { return bits(f64(a) - f64(b)); }},
      {"dmul", "f64", "f64", "mul.rn.f64 %d, %a, %b;", [](U a, U b, U) -> U { return bits(f64(a) * f64(b)); }},
      {"dfma", "f64", "f64", "fma.rn.f64 %d, %a, %b, %c;", [](U a, U b, U c) -> U { return bits(std::fma(f64(a), f64(b), f64(c))); }},
      {"ddiv", "f64", "f64", "div.rn.f64 %d, %a, %b;", [](U a, U b, U) -> U { return bits(f64(a) / f64(b)); }},
      {"dsqrt", "f64", "f64", "sqrt.rn.f64 %d, %a;", [](U a, U, U) -> U { return bits(std::sqrt(f64(a))); }},
      {"drcp", "f64", "f64", "rcp.rn.f64 %d, %a;", [](U a, U, U) -> U { return bits(1.0 / f64(a)); }},
      {"dmin", "f64", "f64", "min.f64 %d, %a, %b;",
       [](U a, U b, U) -> U { return f64(a) == f64(b) ? a | b : std::isnan(f64(a)) ? b : std::isnan(f64(b)) ? a : bits(std::min(f64(a), f64(b))); }},
      {"dmax", "f64", "f64", "max.f64 %d, %a, %b;",
       [](U a, U b, U) -> U { return f64(a) == f64(b) ? a & b : std::isnan(f64(a)) ? b : std::isnan(f64(b)) ? a : bits(std::max(f64(a), f64(b))); }},
      {"dabs", "f64", "f64", "abs.f64 %d, %a; add.rn.f64 %d, %d, %b;", [](U a, U b, U) -> U { return bits(std::fabs(f64(a)) + f64(b)); }},
      {"dlt", "f64", "b32", "setp.lt.f64 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return f64(a) < f64(b); }},
      {"dge", "f64", "b32", "setp.ge.f64 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return f64(a) >= f64(b); }},
      {"dltu", "f64", "b32", "setp.ltu.f64 %p, %a, %b; selp.b32 %d, 1, 0, %p;", [](U a, U b, U) -> U { return !(f64(a) >= f64(b)); }},
      // conversions
      {"s32_f64", "b32", "f64", "cvt.rn.f64.s32 %d, %a;", [](U a, U, U) -> U { return bits(double(s32(a))); }},
      {"u32_f64", "b32", "f64", "cvt.rn.f64.u32 %d, %a;", [](U a, U, U) -> U { return bits(double(lo(a))); }},
      {"s32_f32", "b32", "f32", "cvt.rn.f32.s32 %d, %a;", [](U a, U, U) -> U { return bits(float(s32(a))); }},
      {"u32_f32", "b32", "f32", "cvt.rn.f32.u32 %d, %a;", [](U a, U, U) -> U { return bits(float(lo(a))); }},
      {"s64_f64", "b64", "f64", "cvt.rn.f64.s64 %d, %a;", [](U a, U, U) -> U { return bits(double(s64(a))); }},
      {"u64_f64", "b64", "f64", "cvt.rn.f64.u64 %d, %a;", [](U a, U, U) -> U { return bits(double(a)); }},
      {"u64_f32", "b64", "f32", "cvt.rn.f32.u64 %d, %a;", [](U a, U, U) -> U { return bits(float(a)); }},
      {"s64_f32", "b64", "f32", "cvt.rn.f32.s64 %d, %a;", [](U a, U, U) -> U { return bits(float(s64(a))); }},
      {"f32_f64", "f32", "f64", "cvt.f64.f32 %d, %a;", [](U a, U, U) -> U { return bits(double(f32(a))); }},
      {"f64_f32", "f64", "f32", "cvt.rn.f32.f64 %d, %a;", [](U a, U, U) -> U { return bits(float(f64(a))); }},
      {"f64_s32", "f64", "b32", "cvt.rzi.s32.f64 %d, %a;",
       [](U a, U, U) -> U {
         const double v = f64(a);
         if (std::isnan(v)) return 0x80000000;
         return lo(static_cast<U>(v >= 2147483647.0 ? INT32_MAX : v <= -2147483648.0 ? INT32_MIN : static_cast<int32_t>(v)));
       }},
      {"f64_s64", "f64", "b64", "cvt.rzi.s64.f64 %d, %a;",
       [](U a, U, U) -> U {
         const double v = f64(a);
         if (std::isnan(v)) return U{1} << 63;
         return static_cast<U>(v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : static_cast<int64_t>(v));
       }},
      {"f64_u64", "f64", "b64", "cvt.rni.u64.f64 %d, %a;",
       [](U a, U, U) -> U {
         const double v = std::nearbyint(f64(a));
         if (std::isnan(v)) return U{1} << 63;
         return v >= 0x1p64 ? UINT64_MAX : v <= 0 ? 0 : static_cast<U>(v);
       }},
      {"f32_s32", "f32", "b32", "cvt.rni.s32.f32 %d, %a;",
       [](U a, U, U) -> U {
         const float v = std::nearbyintf(f32(a));
         if (std::isnan(v)) return 0;
         return lo(static_cast<U>(v >= 0x1p31f ? INT32_MAX : v <= -0x1p31f ? INT32_MIN : static_cast<int32_t>(v)));
       }},
      {"f32_u32", "f32", "b32", "cvt.rpi.u32.f32 %d, %a;",
       [](U a, U, U) -> U {
         const float v = std::ceil(f32(a));
         if (std::isnan(v)) return 0;
         return v >= 0x1p32f ? UINT32_MAX : v <= 0 ? 0 : static_cast<uint32_t>(v);
       }},
      {"floor64", "f64", "f64", "cvt.rmi.f64.f64 %d, %a;", [](U a, U, U) -> U { return bits(std::floor(f64(a))); }},
      {"trunc32", "f32", "f32", "cvt.rzi.f32.f32 %d, %a;", [](U a, U, U) -> U { return bits(std::trunc(f32(a))); }},
      {"f16", "f32", "f32", "{ .reg .b16 h; cvt.rn.f16.f32 h, %a; cvt.f32.f16 %d, h; }",
       [](U a, U, U) -> U {
         const float v = f32(a);
         if (std::isnan(v)) return 0x7fffffff;
         if (std::fabs(v) >= 65520.0f) return bits(std::copysign(INFINITY, v));
         const float unit = std::fabs(v) < 0x1p-14f ? 0x1p-24f : std::ldexp(1.0f, std::ilogb(v) - 10);
         return bits(std::copysign(std::nearbyint(std::fabs(v) / unit) * unit, v));
       }},
  };
  return t;
}

std::string kernel_text(const Operation& o) {
  const std::string in = o.type_in, out = o.type_out;
  const bool in64 = in.ends_with("64"), out64 = out.ends_with("64");
  std::string s = fmt::format(".visible .entry op_{}(.param .u64 in, .param .u64 out, .param .u32 n)\n{{\n", o.name);
  s += fmt::format(
      "  .reg .{0} %a, %b, %c, %t, %u; .reg .{1} %d; .reg .pred %p, %q, %r; .reg .u64 %x, %y, %z; .reg .u32 %i, %n, "
      "%w, %k;\n",
      in, out);
  s += "  ld.param.u64 %x, [in]; ld.param.u64 %y, [out]; ld.param.u32 %n, [n];\n";
  s += "  mov.u32 %i, %ctaid.x; mov.u32 %w, %ntid.x; mov.u32 %k, %tid.x; mad.lo.u32 %i, %i, %w, %k; setp.ge.u32 %r, "
       "%i, %n; @%r bra END;\n";
  s += "  mul.wide.u32 %z, %i, 24; add.u64 %x, %x, %z; mul.wide.u32 %z, %i, 8; add.u64 %y, %y, %z;\n";
  for (int k = 0; k < 3; ++k) s += fmt::format("  ld.global.{} %{}, [%x+{}];\n", in, "abc"[k], 8 * k);
  (void)in64;
  s += fmt::format("  {}\n  st.global.{} [%y], %d;\nEND:\n  ret;\n}}\n", o.ptx, out);
  (void)out64;
  return s;
}

std::vector<uint64_t> operands(const std::string& type, size_t n) {
  std::mt19937_64 engine(11);
  std::vector<uint64_t> special;
  if (type == "f32") {
    for (float f : {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 3.0f, 1e-40f, -1e-45f, 1.17549435e-38f, 3.4e38f, -3.4e38f, INFINITY,
                    -INFINITY, NAN, 2147483648.0f, 0.49999997f, 65520.0f, 6e-8f})
      special.push_back(std::bit_cast<uint32_t>(f));
  } else if (type == "f64") {
    for (double f : {0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 1e-310, -4.9e-324, 2.2250738585072014e-308, 1.7e308, -1.7e308,
                     double{INFINITY}, -double{INFINITY}, double{NAN}, 2147483647.5, 9.3e18, 1.5, 2.5, 1e20})
      special.push_back(std::bit_cast<uint64_t>(f));
  } else {
    special = {0,  1,  2,          3,          5,          7,          31,      32,     33,
               63, 64, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 0x10000, 0xffff, 0x8000};
    if (type == "b64")
      for (uint64_t x : {uint64_t{1} << 32, ~uint64_t{0}, uint64_t{1} << 63, (uint64_t{1} << 63) - 1,
                         uint64_t{0xffffffff00000000}, uint64_t{1} << 33})
        special.push_back(x);
  }
  std::vector<uint64_t> v(3 * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < 3; ++k) {
      uint64_t& x = v[3 * i + k];
      const uint64_t r = engine();
      if (i < special.size() * special.size() && k < 2)
        x = special[k == 0 ? i % special.size() : i / special.size()];
      else if (r % 8 == 0)
        x = special[engine() % special.size()];
      else if (type == "f32")  // sizes near one another, so that sums and quotients are interesting
        x = r % 8 < 5 ? std::bit_cast<uint32_t>(
                            static_cast<float>(static_cast<double>(static_cast<int64_t>(engine())) * 0x1p-40))
                      : engine() & 0xffffffff;
      else if (type == "f64")
        x = r % 8 < 5 ? std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(engine())) * 0x1p-40)
                      : engine();
      else
        x = r % 8 < 3 ? engine() >> (32 + engine() % 32) : engine();
      if (type == "b32" || type == "f32") x &= 0xffffffff;
    }
  return v;
}

class Operations : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, Operations, testing::ValuesIn(all_targets),
                         [](const auto& info) { return info.param; });

TEST_P(Operations, AgreeWithPlainArithmetic) {
  std::string why;
  const std::string ptxas = find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const auto table = operations();
  std::string text = ".version 7.4\n.target sm_60\n.address_size 64\n";
  for (const Operation& o : table) text += kernel_text(o);
  const auto cubin = assemble_with_ptxas(ptxas, text, GetParam(), "--fmad=false");
  ASSERT_FALSE(cubin.empty());
  Machine machine(GetParam(), 64 << 20);
  const auto module = machine.load(cubin);
  ASSERT_TRUE(module.ok()) << module.error().message;
  const uint32_t n = 1000;
  Options options;
  options.check_hazards = options.deterministic = true;
  options.max_warp_instructions = 10'000'000;
  for (const Operation& o : table) {
    SCOPED_TRACE(o.name);
    const auto in = operands(o.type_in, n);
    const uint64_t a = upload(machine, in), b = upload(machine, std::vector<uint64_t>(n, 0));
    std::vector<Report> reports;
    const std::string name = std::string("op_") + o.name;
    const auto result = machine.launch(*module, name, {(n + 127) / 128, 1, 1}, {128, 1, 1}, 0,
                                       Parameters().add(a).add(b).add(n).bytes(), options, &reports);
    for (const Report& r : reports) ADD_FAILURE() << r.text();
    if (!result) {
      ADD_FAILURE() << result.error().message;
      continue;
    }
    const auto got = download<uint64_t>(machine, b, n);
    const bool float_out = o.type_out[0] == 'f', wide = std::string(o.type_out).ends_with("64");
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t x = in[3 * i], y = in[3 * i + 1], z = in[3 * i + 2], e = o.expected(x, y, z);
      // PTX leaves the payload of a NaN open.
      const bool both_nan = float_out && (wide ? std::isnan(f64(e)) && std::isnan(f64(got[i]))
                                               : std::isnan(f32(e)) && std::isnan(f32(got[i])));
      if (e != got[i] && !both_nan && ++wrong <= 3)
        ADD_FAILURE() << fmt::format("{}({:#x}, {:#x}, {:#x}) = {:#x}, expected {:#x}", o.name, x, y, z, got[i], e);
    }
    EXPECT_EQ(wrong, 0u);
    ASSERT_TRUE(machine.free(a).ok());
    ASSERT_TRUE(machine.free(b).ok());
  }
}

}  // namespace
}  // namespace rndn::sim::operations_test
