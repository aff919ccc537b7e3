// A part is what lies between two cuts of the number at powers of two, which are products and truncations without rounding.
#include "ptx/sums/sum_parts.h"

#include <cmath>

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
Reg<F64> scaled(Builder& b, Reg<F64> x, size_t part) { return b.mul_rn(x, power(-sum_parts::narrow.lowest[part])); }
Reg<F64> cut(Builder& b, Reg<F64> x) { return b.cvt<F64, F64>(ptx::Rounding::rzi, x); }

constexpr auto least_without_parts = static_cast<uint32_t>((1023 + sum_parts::limit) << 20);  // of high words
Reg<U32> high_of_magnitude(Builder& b, Reg<F64> x) { return b.and_(b.unpack(x).second, 0x7fffffffu); }

}  // namespace

Reg<S64> sum_part(Builder& b, Reg<F64> x, size_t part, bool checks, ptx::ParameterOf<U64> flags, Reg<Pred> counts) {
  constexpr size_t last = sum_parts::narrow.last();
  Reg<F64> all = scaled(b, x, part), whole = cut(b, all);
  if (checks) {
    Reg<F64> all_bits = part == last ? all : scaled(b, x, last);
    Reg<Pred> rest = b.setp(Compare::neu, part == last ? whole : cut(b, all_bits), all_bits);
    Reg<Pred> outside = b.setp(Compare::ge, Combine::or_, high_of_magnitude(b, x), least_without_parts, rest);
    if (counts.valid()) outside = b.and_(outside, counts);
    report_no_parts(b, outside, flags);
  }
  if (part > 0) whole = b.fma(cut(b, scaled(b, x, part - 1)), -power(sum_parts::narrow.distance()), whole);
  return b.cvt<S64>(whole);
}

// With so much added, a number is rounded to a multiple of the part's unit, which the sum's low bits tell.
Reg<S32> take_wide_part(Builder& b, size_t part, Reg<F64>& rest) {
  const double much = 1.5 * power(52 + sum_parts::wide.lowest[part - sum_parts::wide.first]);
  Reg<F64> sum = b.add_rn(rest, much);
  rest = b.sub_rn(rest, b.sub_rn(sum, much));
  return Builder::as<S32>(b.unpack(sum).first);
}

void note_no_parts(Builder& b, Reg<F64> x, Reg<F64> rest, Reg<Pred> seen) {
  b.setp(Compare::neu, Combine::or_, rest, 0.0, seen, seen);
  b.setp(Compare::ge, Combine::or_, high_of_magnitude(b, x), least_without_parts, seen, seen);
}

void report_no_parts(Builder& b, Reg<Pred> seen, ptx::ParameterOf<U64> flags) {
  const Address flag(b.ld_param(flags), 4 * int64_t{Flag::no_parts});
  b.when(seen).st<U32>(Space::global, flag, 1u);
}

Reg<F64> sum_of_parts(Builder& b, std::span<const Reg<S64>> x, Reg<U64> flags, Reg<Pred> counts) {
  const sum_parts::Scheme& scheme = x.size() == sum_parts::narrow.count ? sum_parts::narrow : sum_parts::wide;
  const auto bits = static_cast<uint32_t>(scheme.distance());
  const int64_t below = (int64_t{1} << bits) - 1;
  // Most entries of a table may be empty.
  const Reg<F64> result = b.constant<F64>(0.0);
  const ptx::LabelId done = b.label();
  Reg<S64> any = x[0];
  for (size_t k = 1; k < x.size(); ++k) any = b.or_(any, x[k]);
  b.when(b.setp(Compare::eq, any, 0)).bra(done);
  // The lower parts as so many bits without a sign; what is more belongs to the part before, and at the end to the first, to which it is added last:
  // no sum of 64 bits wraps.
  const size_t last = x.size() - 1;
  std::array<Reg<S64>, sum_parts::most_parts> all{};
  Reg<S64> carry = b.shr(x[last], bits);
  for (size_t k = last - 1; k > 0; --k) {
    all[k] = b.add(b.and_(x[k], below), carry);
    carry = b.add(b.shr(x[k], bits), b.shr(all[k], bits));
  }
  const auto [low, high] = b.unpack(x[0]);
  const ExactSum sum = zero_sum(b);
  const auto add_scaled = [&](Reg<F64> value, int exponent) { add(b, sum, b.mul_rn(value, power(exponent))); };
  add_scaled(b.cvt<F64>(Builder::as<S32>(high)), 32 + scheme.lowest[0]);
  add_scaled(b.cvt<F64>(low), scheme.lowest[0]);
  add_scaled(b.cvt<F64>(carry), scheme.lowest[0]);
  for (size_t k = 1; k < last; ++k) add_scaled(b.cvt<F64>(b.and_(all[k], below)), scheme.lowest[k]);
  add_scaled(b.cvt<F64>(b.and_(x[last], below)), scheme.lowest[last]);
  b.mov(rounded(b, sum, Round::nearest, flags, counts), result);
  b.bind(done);
  return result;
}

}  // namespace rndn::sums
