#include "ptx/sums/exact_sum.h"

namespace rndn::sums {

using ptx::Address;
using ptx::Builder;
using ptx::Combine;
using ptx::Compare;
using ptx::F32;
using ptx::F64;
using ptx::Pred;
using ptx::Reg;
using ptx::S64;
using ptx::Space;
using ptx::U32;
using ptx::U64;

namespace {

struct Two {
  Reg<F64> sum, rest;
};

// sum + rest = x + y, sum the nearest double to it.
Two two_sum(Builder& b, Reg<F64> x, Reg<F64> y) {
  Reg<F64> sum = b.add_rn(x, y), of_y = b.sub_rn(sum, x), of_x = b.sub_rn(sum, of_y);
  return {sum, b.add_rn(b.sub_rn(x, of_x), b.sub_rn(y, of_y))};
}

Reg<S64> bits_of(Builder& b, Reg<F64> x) {
  const auto [low, high] = b.unpack(x);
  return b.pack<S64>(low, high);
}
Reg<F64> double_of(Builder& b, Reg<S64> bits) {
  const auto [low, high] = b.unpack(bits);
  return b.pack<F64>(low, high);
}

// Of s + t with |t| < the distance of s to its neighbour: cut towards zero, then the last bit 1.
Reg<F64> to_odd(Builder& b, const Two& x) {
  Reg<S64> bits = bits_of(b, x.sum), rest = bits_of(b, x.rest);
  Reg<Pred> opposite = b.setp(Compare::lt, b.xor_(bits, rest), 0);
  Reg<S64> cut = b.selp(b.sub(bits, 1), bits, opposite);
  Reg<Pred> inexact = b.setp(Compare::ne, x.rest, 0.0);
  return double_of(b, b.selp(b.or_(cut, 1), bits, inexact));
}

// The high word of |x|.
Reg<U32> magnitude(Builder& b, Reg<F64> x) { return b.and_(b.unpack(x).second, 0x7fffffffu); }

void report(Builder& b, Reg<Pred> when, Reg<U64> flags, Flag flag) {
  b.when(when).st<U32>(Space::global, Address(flags, 4 * int64_t{flag}), 1u);
}

}  // namespace

ExactSum zero_sum(Builder& b) {
  return {b.constant<F64>(0.0), b.constant<F64>(0.0), b.constant<F64>(0.0)};
}

ExactSum sum_of(Builder& b, const ExactSum& sum, Reg<F64> x, Errors errors) {
  const Two high = two_sum(b, sum.high, x), low = two_sum(b, sum.low, high.rest);
  Reg<F64> error = b.abs(low.rest);
  if (errors == Errors::of_many) error = b.max(error, b.constant<F64>(0.0));  // of NaN: 0
  return {high.sum, low.sum, b.add_rn(sum.error, error)};
}

void add(Builder& b, const ExactSum& sum, Reg<F64> x, Reg<Pred> when, Errors errors) {
  if (when.valid()) x = b.selp(x, b.constant<F64>(0.0), when);
  const ExactSum both = sum_of(b, sum, x, errors);
  b.mov(both.high, sum.high);
  b.mov(both.low, sum.low);
  b.mov(both.error, sum.error);
}

namespace {

// x = first + second
std::pair<Reg<F64>, Reg<F64>> halves_of(Builder& b, Reg<S64> x) {
  const auto [low, high] = b.unpack(x);
  return {b.mul_rn(b.cvt<F64>(Builder::as<ptx::S32>(high)), 0x1p32), b.cvt<F64>(low)};
}

}  // namespace

ExactSum sum_of(Builder& b, const ExactSum& sum, Reg<S64> x) {
  const auto [high, low] = halves_of(b, x);
  return sum_of(b, sum_of(b, sum, high), low);
}

void add(Builder& b, const ExactSum& sum, Reg<S64> x, Reg<Pred> when, Errors errors) {
  const auto [high, low] = halves_of(b, x);
  add(b, sum, high, when, errors);
  add(b, sum, low, when, errors);
}

ExactSum sum_of(Builder& b, const ExactSum& x, const ExactSum& y) {
  const Two high = two_sum(b, x.high, y.high), lows = two_sum(b, x.low, y.low);
  const Two low = two_sum(b, lows.sum, high.rest);
  Reg<F64> own = b.add_rn(b.abs(lows.rest), b.abs(low.rest));
  return {high.sum, low.sum, b.add_rn(b.add_rn(x.error, y.error), own)};
}

void add(Builder& b, const ExactSum& x, const ExactSum& y, const ExactSum& into, Reg<Pred> when) {
  const ExactSum both = sum_of(b, x, y);
  const auto move = [&](Reg<F64> from, Reg<F64> to) {
    if (when.valid()) b.when(when);
    b.mov(from, to);
  };
  move(both.high, into.high);
  move(both.low, into.low);
  move(both.error, into.error);
}

void note_huge(Builder& b, Reg<F64> x, Reg<Pred> seen) {
  constexpr uint32_t least = (1023u + 991u) << 20, infinity = 0x7ff00000u;
  b.setp(Compare::lt, Combine::or_, b.sub(magnitude(b, x), least), infinity - least, seen, seen);
}

void report_huge(Builder& b, Reg<Pred> seen, Reg<U64> flags) { report(b, seen, flags, huge); }

Reg<F64> rounded(Builder& b, const ExactSum& sum, Round round, Reg<U64> flags, Reg<Pred> counts) {
  const Two two = two_sum(b, sum.high, sum.low);
  // A little more than 1, for what 2^32 additions to `error` round away.
  Reg<F64> bound = b.mul_rn(sum.error, 0x1.00001p0);
  Reg<F64> above = b.add_rp(two.rest, bound), below = b.add_rm(two.rest, b.neg(bound));
  Reg<Pred> is_finite = b.setp(Compare::lt, magnitude(b, sum.high), 0x7ff00000u);
  Reg<F64> result;
  Reg<Pred> is_unsure;
  if (round == Round::nearest) {
    result = b.add_rn(two.sum, above);
    is_unsure =
        b.setp(Compare::neu, Combine::and_, result, b.add_rn(two.sum, below), is_finite);
  } else {
    result = to_odd(b, two_sum(b, two.sum, above));
    Reg<F64> least = to_odd(b, two_sum(b, two.sum, below));
    is_unsure =
        b.setp(Compare::neu, Combine::and_, b.cvt<F32>(result), b.cvt<F32>(least), is_finite);
  }
  Reg<Pred> is_infinite = b.not_(is_finite);
  report(b, counts.valid() ? b.and_(is_unsure, counts) : is_unsure, flags, unsure);
  report(b, counts.valid() ? b.and_(is_infinite, counts) : is_infinite, flags, infinite);
  return b.selp(result, sum.high, is_finite);
}

Reg<F64> rounded_if_needed(Builder& b, const ExactSum& sum, Round round, Reg<U64> flags, Reg<Pred> counts) {
  // What is not finite has no error of 0, and is no one double either.
  Reg<Pred> is_exact = b.setp(Compare::eq, sum.error, 0.0);
  if (round == Round::odd) is_exact = b.setp(Compare::eq, Combine::and_, sum.low, 0.0, is_exact);
  Reg<F64> result = b.add_rn(sum.high, sum.low);
  const ptx::LabelId done = b.label();
  b.when(is_exact).bra(done);
  b.mov(rounded(b, sum, round, flags, counts), result);
  b.bind(done);
  return result;
}

}  // namespace rndn::sums
