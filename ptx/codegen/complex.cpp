// Element-wise builtins of complex numbers: one element to PTX
// (docs/horseir.md, "Builtins: arithmetic"), as runtime/reference computes them, bit for bit.
//
// A product is the four products and their sums, each rounded; division is R. L. Smith's ("Algorithm 116: Complex division", CACM 5:8, 1962), which
// overflows only where the quotient is near to it: both ways of it are one code with its operands exchanged. Numbers are equal when both parts are.
#include <numbers>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {
namespace {

using ptx::Compare;

struct Parts {
  Reg<F64> real, imaginary;
};

Parts product(Builder& b, Parts x, Parts y) {
  return {b.sub_rn(b.mul_rn(x.real, y.real), b.mul_rn(x.imaginary, y.imaginary)),
          b.add_rn(b.mul_rn(x.real, y.imaginary), b.mul_rn(x.imaginary, y.real))};
}

// With the larger part of y below, which is the real one when |re y| >= |im y|.
Parts quotient(Builder& b, Parts x, Parts y) {
  Reg<Pred> real = b.setp(Compare::ge, b.abs(y.real), b.abs(y.imaginary));
  const auto larger = [&](Parts z) { return b.selp(z.real, z.imaginary, real); };
  const auto smaller = [&](Parts z) { return b.selp(z.imaginary, z.real, real); };
  Reg<F64> below = larger(y), above = smaller(y);
  Reg<F64> ratio = b.div_rn(above, below);
  Reg<F64> scale = b.add_rn(below, b.mul_rn(above, ratio));
  Reg<F64> first = larger(x), second = smaller(x);
  Reg<F64> sum = b.add_rn(first, b.mul_rn(second, ratio)), difference = b.sub_rn(second, b.mul_rn(first, ratio));
  Reg<F64> signed_difference = b.selp(difference, b.neg(difference), real);
  return {b.div_rn(sum, scale), b.div_rn(signed_difference, scale)};
}

}  // namespace

Element complex_wise(Emitter& e, Builtin builtin, std::span<const Element> arguments, Reg<Pred> mask) {
  Builder& b = e.b;
  const auto parts = [&](size_t k) { return Parts{reg<F64>(arguments[k]), arguments[k].imaginary}; };
  const Parts x = parts(0);
  const auto made = [&](Parts z) { return complex_element(z.real, z.imaginary, mask); };
  switch (builtin) {
    case Builtin::conj: return made({x.real, b.neg(x.imaginary)});
    case Builtin::pi: {
      Reg<F64> pi = b.constant<F64>(std::numbers::pi);
      return made({b.mul_rn(x.real, pi), b.mul_rn(x.imaginary, pi)});
    }
    case Builtin::mul: return made(product(b, x, parts(1)));
    case Builtin::div: return made(quotient(b, x, parts(1)));
    default: {
      const bool equal = builtin == Builtin::eq;
      const Compare how = equal ? Compare::eq : Compare::neu;
      const Parts y = parts(1);
      Reg<Pred> real = b.setp(how, x.real, y.real);
      return element(BasicType::boolean,
                     b.setp(how, equal ? ptx::Combine::and_ : ptx::Combine::or_, x.imaginary, y.imaginary, real), mask);
    }
  }
}

}  // namespace rndn::codegen
