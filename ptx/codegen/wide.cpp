// Integers of 128 bits: one element to PTX (docs/horseir.md, "Types"), as runtime/reference
// computes them.
//
// In: elements in registers, the low half unsigned and the high half signed, or immediates of 64
// bits, which are extended. Out: the same. Sums carry by a comparison, products are four of 64 bits
// (schoolbook), quotients shift and subtract (Knuth, The Art of Computer Programming 2, 4.3.1) in a
// loop of 128 steps. Conversions to floats round once: the 64 bits after the leading zeros, the
// last of them set where anything is cut off, have more bits than any float.
// Left out: reductions, which run on the reference interpreter.
#include "ptx/codegen/emitter.h"

namespace rndn::codegen {
namespace {

using ptx::Compare;

struct Halves {
  Reg<U64> low;
  Reg<S64> high;
};

Halves halves(Emitter& e, const Element& x) {
  const Element in = in_register(e, x);
  return {reg<U64>(in), in.high};
}

Reg<S64> flag(Builder& b, Reg<Pred> p) { return b.select<S64>(1, 0, p); }

Halves sum(Builder& b, Halves x, Halves y) {
  Reg<U64> low = b.add(x.low, y.low);
  Reg<S64> carry = flag(b, b.setp(Compare::lt, low, x.low));
  return {low, b.add(b.add(x.high, y.high), carry)};
}

Halves difference(Builder& b, Halves x, Halves y) {
  Reg<S64> borrow = flag(b, b.setp(Compare::lt, x.low, y.low));
  return {b.sub(x.low, y.low), b.sub(b.sub(x.high, y.high), borrow)};
}

Halves zero(Builder& b) { return {b.constant<U64>(0), b.constant<S64>(0)}; }
Halves negated(Builder& b, Halves x) { return difference(b, zero(b), x); }
Halves chosen(Builder& b, Halves yes, Halves no, Reg<Pred> p) {
  return {b.selp(yes.low, no.low, p), b.selp(yes.high, no.high, p)};
}
Reg<Pred> negative(Builder& b, Halves x) { return b.setp(Compare::lt, x.high, 0); }
Halves magnitude(Builder& b, Halves x) { return chosen(b, negated(b, x), x, negative(b, x)); }

Halves product(Builder& b, Halves x, Halves y) {
  Reg<U64> low = b.mul_lo(x.low, y.low), high = b.mul_hi(x.low, y.low);
  Reg<S64> crossed =
      b.add(b.mul_lo(Builder::as<S64>(x.low), y.high), b.mul_lo(x.high, Builder::as<S64>(y.low)));
  return {low, b.add(Builder::as<S64>(high), crossed)};
}

// x < y as unsigned numbers.
Reg<Pred> below(Builder& b, Halves x, Halves y) {
  Reg<U64> xh = Builder::as<U64>(x.high), yh = Builder::as<U64>(y.high);
  Reg<Pred> low = b.setp(Compare::lt, x.low, y.low);
  Reg<Pred> equal = b.setp(Compare::eq, ptx::Combine::and_, xh, yh, low);
  return b.setp(Compare::lt, ptx::Combine::or_, xh, yh, equal);
}

// Of magnitudes; the divisor is not zero.
Halves quotient(Builder& b, Halves x, Halves y) {
  // The dividend leaves at the top of (rest, x), the quotient enters at the bottom of x.
  Halves rest{b.reg<U64>(), b.reg<S64>()}, of{b.reg<U64>(), b.reg<S64>()};
  b.assign(rest.low, 0);
  b.assign(rest.high, 0);
  b.mov(x.low, of.low);
  b.mov(x.high, of.high);
  Reg<U32> step = b.constant<U32>(128);
  const ptx::LabelId loop = b.label();
  b.bind(loop);
  const auto doubled = [&](Halves v, Reg<U64> in) {
    Reg<U64> high = b.or_(b.shl(Builder::as<U64>(v.high), 1), b.shr(v.low, 63));
    Reg<U64> low = b.or_(b.shl(v.low, 1), in);
    b.mov(low, v.low);
    b.mov(Builder::as<S64>(high), v.high);
  };
  doubled(rest, b.shr(Builder::as<U64>(of.high), 63));
  Reg<Pred> smaller = below(b, rest, y);
  doubled(of, b.select<U64>(0, 1, smaller));
  const Halves less = difference(b, rest, y);
  b.unless(smaller).mov(less.low, rest.low);
  b.unless(smaller).mov(less.high, rest.high);
  b.sub(step, 1, step);
  b.when(b.setp(Compare::ne, step, 0)).bra(loop);
  return of;
}

Reg<Pred> compared(Builder& b, Builtin builtin, Halves x, Halves y) {
  if (builtin == Builtin::eq || builtin == Builtin::neq) {
    const bool equal = builtin == Builtin::eq;
    const Compare how = equal ? Compare::eq : Compare::ne;
    Reg<Pred> low = b.setp(how, x.low, y.low);
    return b.setp(how, equal ? ptx::Combine::and_ : ptx::Combine::or_, x.high, y.high, low);
  }
  const bool up = builtin == Builtin::lt || builtin == Builtin::leq;
  const bool or_equal = builtin == Builtin::leq || builtin == Builtin::geq;
  Reg<Pred> low =
      b.setp(up ? (or_equal ? Compare::le : Compare::lt) : (or_equal ? Compare::ge : Compare::gt),
             x.low, y.low);
  Reg<Pred> equal = b.setp(Compare::eq, ptx::Combine::and_, x.high, y.high, low);
  return b.setp(up ? Compare::lt : Compare::gt, ptx::Combine::or_, x.high, y.high, equal);
}

}  // namespace

Element wide_wise(Emitter& e, Builtin builtin, std::span<const Element> arguments, Reg<Pred> mask,
                  uint32_t statement) {
  Builder& b = e.b;
  const Halves x = halves(e, arguments[0]);
  const Halves y = arguments.size() > 1 ? halves(e, arguments[1]) : Halves{};
  const auto made = [&](Halves h) { return wide_element(h.low, h.high, mask); };
  switch (builtin) {
    case Builtin::plus: return made(sum(b, x, y));
    case Builtin::minus: return made(difference(b, x, y));
    case Builtin::mul: return made(product(b, x, y));
    case Builtin::neg: return made(negated(b, x));
    case Builtin::abs: return made(magnitude(b, x));
    case Builtin::ceil:
    case Builtin::floor:
    case Builtin::round: return made(x);
    case Builtin::div: {
      Reg<U64> any = b.or_(y.low, Builder::as<U64>(y.high));
      Reg<Pred> none = b.setp(Compare::eq, any, 0);
      report_error(e, both(e, none, active(e, mask)), statement, RuntimeError::division_by_zero);
      const Halves divisor =
          chosen(b, {b.constant<U64>(1), b.constant<S64>(0)}, magnitude(b, y), none);
      const Halves q = quotient(b, magnitude(b, x), divisor);
      return made(chosen(b, negated(b, q), q, b.setp(Compare::lt, b.xor_(x.high, y.high), 0)));
    }
    case Builtin::lt:
    case Builtin::gt:
    case Builtin::leq:
    case Builtin::geq:
    case Builtin::eq:
    case Builtin::neq: return element(BasicType::boolean, compared(b, builtin, x, y), mask);
    default: break;
  }
  refuse(e, std::string(hir::row(builtin).name) + " of i128",
         static_cast<hir::StatementId>(statement));
  return made(x);
}

Element to_wide(Emitter& e, const Element& x) {
  Builder& b = e.b;
  if (hir::is_integer(x.type)) {
    Reg<S64> low = reg<S64>(in_register(e, convert(e, x, BasicType::i64)));
    return wide_element(Builder::as<U64>(low), b.shr(low, 63), x.mask);
  }
  // Truncated and saturating; NaN is 0. The high half of the magnitude is exact, and so is what is
  // left of it.
  Reg<F64> v = reg<F64>(in_register(e, convert(e, x, BasicType::f64)));
  Reg<F64> size = b.abs(v);
  constexpr double word = 18446744073709551616.0;  // 2^64
  Reg<U64> high = b.cvt<U64>(b.mul_rn(size, 1 / word));
  Reg<F64> rest = b.fma(b.cvt<F64>(high), -word, size);
  const Halves m{b.cvt<U64>(rest), Builder::as<S64>(high)};
  Reg<Pred> minus = b.setp(Compare::lt, v, 0.0);
  Halves r = chosen(b, negated(b, m), m, minus);
  constexpr double limit = word * 9223372036854775808.0;  // 2^127
  Reg<Pred> beyond = b.setp(Compare::ge, size, limit);
  const Halves end{b.select<U64>(0, ~uint64_t{0}, minus),
                   b.select<S64>(INT64_MIN, INT64_MAX, minus)};
  r = chosen(b, end, r, beyond);
  r = chosen(b, r, zero(b), b.setp(Compare::eq, v, v));
  return wide_element(r.low, r.high, x.mask);
}

Element from_wide(Emitter& e, const Element& x, BasicType to) {
  Builder& b = e.b;
  const Halves v = halves(e, x);
  if (to == BasicType::boolean)
    return element(to, b.setp(Compare::ne, b.or_(v.low, Builder::as<U64>(v.high)), 0), x.mask);
  if (!hir::is_float(to))
    return convert(e, element(BasicType::i64, Builder::as<S64>(v.low), x.mask), to);
  const Halves m = magnitude(b, v);
  Reg<U64> high = Builder::as<U64>(m.high);
  Reg<Pred> large = b.setp(Compare::ne, high, 0);
  Reg<U32> zeros = b.clz(high);  // 64 where there is no high half
  Reg<U32> kept = b.sub(b.constant<U32>(64), zeros);
  Reg<U64> top = b.or_(b.shl(high, zeros), b.shr(m.low, kept));
  Reg<U64> cut = b.selp(b.constant<U64>(1), 0, b.setp(Compare::ne, b.shl(m.low, zeros), 0));
  Reg<U64> whole = b.selp(b.or_(top, cut), m.low, large);
  Reg<Pred> minus = negative(b, v);
  const auto scaled = [&]<class T>(Reg<T> value, Reg<T> power) {
    Reg<T> r = b.mul_rn(value, power);
    return element(to, b.selp(b.neg(r), r, minus), x.mask);
  };
  // 2^kept: its exponent's bits.
  if (to == BasicType::f32) {
    Reg<U32> bits = b.shl(b.add(kept, 127), 23);
    return scaled(b.cvt<F32>(whole), b.bitcast<F32>(bits));
  }
  Reg<U64> bits = b.shl(b.cvt<U64>(b.add(kept, 1023)), 52);
  return scaled(b.cvt<F64>(whole), b.bitcast<F64>(bits));
}

}  // namespace rndn::codegen
