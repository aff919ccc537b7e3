// The exact sum of floating-point numbers, rounded once.
//
//   ExactSum s;
//   for (double x : {1e308, 1e16, 1.0, -1e308, -1e16}) s.add(x);
//   s.rounded<double>();                                           // 1
//
// A sum is one fixed-point number wide enough for every double: words of 32 bits, each in 64 so
// that carries wait (R. M. Neal, "Fast exact summation using small and large superaccumulators",
// arXiv:1505.05571, the small one). No order and no intermediate result matters. Cost: a few
// operations per number, 67 words for the sum. Infinities and NaN give what addition in any order
// gives; a sum of nothing and of zeros is +0.
#pragma once
#include <array>
#include <cstdint>

namespace rndn::reference {

class ExactSum {
 public:
  void add(double x);
  // The nearest T, ties to even; infinite beyond the largest. T: float or double.
  template <class T>
  T rounded() const;

 private:
  static constexpr int lowest = -1074;  // exponent of bit 0: the smallest double
  // The largest double ends at bit 2098; 2^32 of them need 32 more, and a word for the sign.
  static constexpr int words = 68;

  void carry();

  std::array<int64_t, words> words_{};  // word i counts 2^(32 i + lowest)
  uint32_t additions_ = 0;              // since carries were passed on
  double special_ = 0;                  // sum of what is not finite; 0 when there was none
};

}  // namespace rndn::reference
