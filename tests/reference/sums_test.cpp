// Sums and averages of floats are exact, rounded once; minima and maxima tell zeros apart.
//
// Witness of exact sums: partial sums that do not overlap (J. R. Shewchuk, "Adaptive precision
// floating-point arithmetic", 1997, as Python's math.fsum has them), and whole numbers where all
// terms are multiples of one power of two.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "runtime/reference/exact_sum.h"
#include "runtime/reference/reference.h"
#include "tests/support/no_tables.h"

namespace rndn::reference {
namespace {

using hir::BasicType;

constexpr double inf = std::numeric_limits<double>::infinity();

template <class T = double, class From>
T exact(const std::vector<From>& terms) {
  ExactSum sum;
  for (From x : terms) sum.add(static_cast<double>(x));
  return sum.rounded<T>();
}

// Terms whose partial sums stay finite.
double shewchuk(const std::vector<double>& terms) {
  std::vector<double> partials;  // ascending magnitudes, no two overlap
  for (double x : terms) {
    size_t kept = 0;
    for (double y : partials) {
      if (std::fabs(x) < std::fabs(y)) std::swap(x, y);
      const double high = x + y, low = y - (high - x);
      if (low != 0) partials[kept++] = low;
      x = high;
    }
    partials.resize(kept);
    partials.push_back(x);
  }
  if (partials.empty()) return 0;
  size_t n = partials.size();
  double high = partials[--n], low = 0;
  while (n > 0) {
    const double x = high, y = partials[--n];
    high = x + y;
    low = y - (high - x);
    if (low != 0) break;
  }
  // A tie that what is left breaks.
  if (n > 0 && ((low < 0 && partials[n - 1] < 0) || (low > 0 && partials[n - 1] > 0))) {
    const double twice = low * 2, x = high + twice;
    if (twice == x - high) high = x;
  }
  return high;
}

double any_double(std::mt19937_64& random) {
  double x;
  do x = std::bit_cast<double>(random());
  while (!std::isfinite(x));
  return x;
}

TEST(ExactSum, OfWhatRoundingLoses) {
  EXPECT_EQ(exact(std::vector<double>{1e308, 1e308, -1e308, -1e308}), 0);
  EXPECT_EQ(exact(std::vector<double>{1e16, 1, -1e16, 1}), 2);
  EXPECT_EQ(exact(std::vector<double>{1, 1e100, 1, -1e100}), 2);
  EXPECT_EQ(exact(std::vector<double>(10, 0.1)), 1);
  EXPECT_EQ(exact(std::vector<double>{}), 0);
  EXPECT_FALSE(std::signbit(exact(std::vector<double>{-0.0, -0.0})));
  const double least = std::numeric_limits<double>::denorm_min(),
               most = std::numeric_limits<double>::max();
  EXPECT_EQ(exact(std::vector<double>{most, least, -most}), least);
  EXPECT_EQ(exact(std::vector<double>{most, std::ldexp(1, 969)}),
            most);  // less than half of its last place
  EXPECT_EQ(exact(std::vector<double>{most, std::ldexp(1, 970)}), inf);
  EXPECT_EQ(exact(std::vector<double>{-most, -most}), -inf);
  EXPECT_EQ(exact(std::vector<double>{1, inf, 2}), inf);
  EXPECT_EQ(exact(std::vector<double>{-inf, 1e308}), -inf);
  EXPECT_TRUE(std::isnan(exact(std::vector<double>{inf, -inf})));
  EXPECT_TRUE(std::isnan(exact(std::vector<double>{std::nan(""), inf})));
  // Ties to even, and a tie that the last bit of all breaks.
  const double one = 1, half = std::ldexp(1, -53);
  EXPECT_EQ(exact(std::vector<double>{one, half}), 1);
  EXPECT_EQ(exact(std::vector<double>{one, half, least}), one + 2 * half);
  EXPECT_EQ(exact(std::vector<double>{one + 2 * half, half}), one + 4 * half);
  EXPECT_EQ(exact(std::vector<double>{one, half, -least}), 1);
}

TEST(ExactSum, AgreesWithPartialSums) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::vector<double> terms(1 + random() % 40);
    const int spread = static_cast<int>(random() % 1000);
    for (double& x : terms)
      x = round % 3 == 0
              ? std::ldexp(any_double(random), -64)
              : std::ldexp(static_cast<double>(static_cast<int64_t>(random())),
                           spread ? static_cast<int>(random() % static_cast<uint64_t>(spread)) - 900
                                  : -80);
    if (round % 2)
      for (size_t k = terms.size() / 2; k-- > 0;) terms.push_back(-terms[k]);
    std::shuffle(terms.begin(), terms.end(), random);
    ASSERT_EQ(exact(terms), shewchuk(terms)) << "round " << round;
  }
}

// More terms than carries wait for, of one sign and of both.
TEST(ExactSum, OfManyTerms) {
  std::mt19937_64 random(11);
  for (const bool mixed : {false, true}) {
    ExactSum sum;
    __int128 whole = 0;
    for (int k = 0; k < 300000; ++k) {
      const int64_t x = static_cast<int64_t>(random() >> 11) - (mixed ? int64_t{1} << 52 : 0);
      whole += x;
      sum.add(std::ldexp(static_cast<double>(x), -30));
    }
    EXPECT_EQ(sum.rounded<double>(), std::ldexp(static_cast<double>(whole), -30));
  }
}

TEST(ExactSum, RoundsToSinglesOnce) {
  // By way of a double this would be rounded up twice.
  const double x = 1 + std::ldexp(1, -24), low = -std::ldexp(1, -60);
  EXPECT_EQ((exact<float>(std::vector<double>{x, low})), 1.0f);
  EXPECT_EQ((exact<float>(std::vector<double>{std::ldexp(3, -151)})), std::ldexp(1.0f, -149));
  EXPECT_EQ((exact<float>(std::vector<double>{std::ldexp(1, -150)})), 0.0f);
  EXPECT_EQ((exact<float>(std::vector<double>{1e39})), std::numeric_limits<float>::infinity());
  std::mt19937_64 random(13);
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> terms(1 + random() % 20);
    __int128 whole = 0;
    for (double& t : terms) {
      const auto k = static_cast<int32_t>(random());
      whole += k;
      t = k;
    }
    ASSERT_EQ(exact<float>(terms), static_cast<float>(static_cast<int64_t>(whole)));
  }
}

template <class T>
Value reduced(const char* builtin, BasicType type, const std::vector<T>& x) {
  hir::Builtin id;
  EXPECT_TRUE(hir::find_builtin(builtin, id));
  auto made = call(id, {vector_of<T>(type, std::span<const T>(x))}, nullptr, rndn::test::NoTables(),
                   nullptr);
  EXPECT_TRUE(made) << builtin;
  return (*made)[0];
}

TEST(Sums, OfManySinglesAreRoundedOnce) {
  const std::vector<float> x(3000000, 0.1f);
  const auto right = static_cast<float>(3000000 * static_cast<double>(0.1f));
  EXPECT_EQ(reduced("sum", BasicType::f32, x).as<float>()[0], right);
  EXPECT_EQ(right, 300000.0f);
  EXPECT_EQ(reduced("avg", BasicType::f32, x).as<float>()[0], 0.1f);
  EXPECT_EQ(reduced("avg", BasicType::f64, std::vector<double>(1000, 0.1)).as<double>()[0], 0.1);
}

TEST(Sums, AveragesOfIntegersWrapNowhere) {
  const int64_t most = std::numeric_limits<int64_t>::max(),
                least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(reduced<int64_t>("avg", BasicType::i64, {most, most, most, most}).as<double>()[0],
            0x1p63);
  EXPECT_EQ(reduced<int64_t>("avg", BasicType::i64, {most, least, 1, 0}).as<double>()[0], 0);
}

TEST(Extremes, OfZerosTellTheirSigns) {
  const auto check = [](auto zero, BasicType type) {
    using T = decltype(zero);
    for (const std::vector<T>& x :
         {std::vector<T>{zero, -zero}, {-zero, zero}, {zero, -zero, zero}, {-zero, zero, -zero}}) {
      EXPECT_TRUE(std::signbit(reduced("min", type, x).template as<T>()[0]));
      EXPECT_FALSE(std::signbit(reduced("max", type, x).template as<T>()[0]));
    }
    EXPECT_FALSE(
        std::signbit(reduced("min", type, std::vector<T>{zero, zero}).template as<T>()[0]));
    EXPECT_TRUE(
        std::signbit(reduced("max", type, std::vector<T>{-zero, -zero}).template as<T>()[0]));
    const T nan = std::numeric_limits<T>::quiet_NaN();
    EXPECT_EQ(reduced("min", type, std::vector<T>{nan, 3, nan, 2}).template as<T>()[0], 2);
    EXPECT_EQ(reduced("max", type, std::vector<T>{nan, 3, nan, 2}).template as<T>()[0], 3);
  };
  check(0.0f, BasicType::f32);
  check(0.0, BasicType::f64);
}

}  // namespace
}  // namespace rndn::reference
