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

constexpr uint32_t high_of_power(int exponent) { return static_cast<uint32_t>((1023 + exponent) << 20); }
Reg<U32> high_of_magnitude(Builder& b, Reg<F64> x) { return b.and_(b.unpack(x).second, 0x7fffffffu); }

}  // namespace

// With so much added, a number is rounded to a multiple of the part's unit, which the sum's low bits tell.
Reg<S32> take_part(Builder& b, size_t part, Reg<F64>& rest) {
  const double much = 1.5 * power(52 + sum_parts::lowest[part]);
  Reg<F64> sum = b.add_rn(rest, much);
  rest = b.sub_rn(rest, b.sub_rn(sum, much));
  return Builder::as<S32>(b.unpack(sum).first);
}

// Of a number of half a unit or less it is 0.
void note_first_part(Builder& b, Reg<F64> x, Reg<Pred> seen) {
  b.setp(Compare::ge, Combine::or_, high_of_magnitude(b, x), high_of_power(sum_parts::lowest[0] - 1), seen, seen);
}

void note_large(Builder& b, Reg<F64> x, Reg<Pred> seen) {
  b.setp(Compare::ge, Combine::or_, high_of_magnitude(b, x), high_of_power(sum_parts::limit), seen, seen);
}
void note_rest(Builder& b, Reg<F64> rest, Reg<Pred> seen) { b.setp(Compare::neu, Combine::or_, rest, 0.0, seen, seen); }

void report_no_parts(Builder& b, Reg<Pred> seen, ptx::ParameterOf<U64> flags) {
  const Address flag(b.ld_param(flags), 4 * int64_t{Flag::no_parts});
  b.when(seen).st<U32>(Space::global, flag, 1u);
}

Reg<F64> sum_of_parts(Builder& b, std::span<const Reg<S64>, sum_parts::count> x, Reg<U64> flags, Reg<Pred> counts) {
  constexpr auto bits = static_cast<uint32_t>(sum_parts::distance);
  constexpr int64_t below = (int64_t{1} << bits) - 1;
  // Most entries of a table may be empty.
  const Reg<F64> result = b.constant<F64>(0.0);
  const ptx::LabelId done = b.label();
  Reg<S64> any = x[0];
  for (size_t k = 1; k < sum_parts::count; ++k) any = b.or_(any, x[k]);
  b.when(b.setp(Compare::eq, any, 0)).bra(done);
  // The lower parts as so many bits without a sign; what is more belongs to the part before, and at the end to the first, to which it is added last:
  // no sum of 64 bits wraps.
  constexpr size_t last = sum_parts::last;
  std::array<Reg<S64>, sum_parts::count> all{};
  Reg<S64> carry = b.shr(x[last], bits);
  for (size_t k = last - 1; k > 0; --k) {
    all[k] = b.add(b.and_(x[k], below), carry);
    carry = b.add(b.shr(x[k], bits), b.shr(all[k], bits));
  }
  const auto [low, high] = b.unpack(x[0]);
  const ExactSum sum = zero_sum(b);
  const auto add_scaled = [&](Reg<F64> value, int exponent) { add(b, sum, b.mul_rn(value, power(exponent))); };
  add_scaled(b.cvt<F64>(Builder::as<S32>(high)), 32 + sum_parts::lowest[0]);
  add_scaled(b.cvt<F64>(low), sum_parts::lowest[0]);
  add_scaled(b.cvt<F64>(carry), sum_parts::lowest[0]);
  for (size_t k = 1; k < last; ++k) add_scaled(b.cvt<F64>(b.and_(all[k], below)), sum_parts::lowest[k]);
  add_scaled(b.cvt<F64>(b.and_(x[last], below)), sum_parts::lowest[last]);
  b.mov(rounded(b, sum, Round::nearest, flags, counts), result);
  b.bind(done);
  return result;
}

}  // namespace rndn::sums
