// A part is what lies between two cuts of the number at powers of two, which are products and truncations without rounding.
#include "ptx/sums/sum_parts.h"

#include <cmath>

#include "libraries/base/numbers/sum_parts.h"

namespace rndn::sums {

using ptx::Address;
using ptx::Builder;
using ptx::Combine;
using ptx::Compare;
using ptx::F64;
using ptx::Pred;
using ptx::Reg;
using ptx::S32;
using ptx::S64;
using ptx::Space;
using ptx::U32;
using ptx::U64;

namespace {

double power(int exponent) { return std::ldexp(1.0, exponent); }

// x in units of the part's bit 0.
Reg<F64> scaled(Builder& b, Reg<F64> x, size_t part) { return b.mul_rn(x, power(-sum_parts::lowest[part])); }
Reg<F64> cut(Builder& b, Reg<F64> x) { return b.cvt<F64, F64>(ptx::Rounding::rzi, x); }

}  // namespace

Reg<S64> sum_part(Builder& b, Reg<F64> x, size_t part, bool checks, ptx::ParameterOf<U64> flags, Reg<Pred> counts) {
  constexpr size_t last = sum_parts::count - 1;
  Reg<F64> all = scaled(b, x, part), whole = cut(b, all);
  if (checks) {
    constexpr auto limit = static_cast<uint32_t>((1023 + sum_parts::limit) << 20);
    Reg<F64> all_bits = part == last ? all : scaled(b, x, last);
    Reg<Pred> rest = b.setp(Compare::neu, part == last ? whole : cut(b, all_bits), all_bits);
    Reg<Pred> outside = b.setp(Compare::ge, Combine::or_, b.and_(b.unpack(x).second, 0x7fffffffu), limit, rest);
    if (counts.valid()) outside = b.and_(outside, counts);
    const Address flag(b.ld_param(flags), 4 * int64_t{Flag::no_parts});
    b.when(outside).st<U32>(Space::global, flag, 1u);
  }
  if (part > 0) whole = b.fma(cut(b, scaled(b, x, part - 1)), -power(sum_parts::bits), whole);
  return b.cvt<S64>(whole);
}

Reg<F64> sum_of_parts(Builder& b, const Reg<S64> (&x)[3], Reg<U64> flags, Reg<Pred> counts) {
  constexpr int64_t below = (int64_t{1} << sum_parts::bits) - 1;
  // Most entries of a table may be empty.
  const Reg<F64> result = b.constant<F64>(0.0);
  const ptx::LabelId done = b.label();
  b.when(b.setp(Compare::eq, b.or_(b.or_(x[0], x[1]), x[2]), 0)).bra(done);
  // The lower parts as 36 bits without a sign; what is more belongs to the part before, to which it is added last: no sum of 64 bits wraps.
  Reg<S64> middle = b.add(b.and_(x[1], below), b.shr(x[2], uint32_t{sum_parts::bits}));
  Reg<S64> carry = b.add(b.shr(x[1], uint32_t{sum_parts::bits}), b.shr(middle, uint32_t{sum_parts::bits}));
  const auto [low, high] = b.unpack(x[0]);
  const ExactSum sum = zero_sum(b);
  const auto add_scaled = [&](Reg<F64> value, int exponent) { add(b, sum, b.mul_rn(value, power(exponent))); };
  add_scaled(b.cvt<F64>(Builder::as<S32>(high)), 32 + sum_parts::lowest[0]);
  add_scaled(b.cvt<F64>(low), sum_parts::lowest[0]);
  add_scaled(b.cvt<F64>(carry), sum_parts::lowest[0]);
  add_scaled(b.cvt<F64>(b.and_(middle, below)), sum_parts::lowest[1]);
  add_scaled(b.cvt<F64>(b.and_(x[2], below)), sum_parts::lowest[2]);
  b.mov(rounded(b, sum, Round::nearest, flags, counts), result);
  b.bind(done);
  return result;
}

}  // namespace rndn::sums
