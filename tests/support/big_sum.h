// The exact sum of doubles, rounded once, by long integers: a witness that shares no code with the
// product. And numbers whose sums are hard.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace rndn::test {

// Of finite doubles, and of infinities and NaN as additions in any order have it.
class BigSum {
 public:
  void add(double x) {
    if (!std::isfinite(x)) {
      special_ += x;
      is_special_ = true;
      return;
    }
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(x), &exponent);
    auto mantissa = static_cast<uint64_t>(std::ldexp(fraction, 53));
    int place = exponent - 53 + unit;
    for (; place < 0; ++place) mantissa >>= 1;  // of subnormals: zeros
    const auto wide = static_cast<unsigned __int128>(mantissa) << (place % 32);
    add_at(static_cast<size_t>(place / 32), wide, std::signbit(x));
  }

  // Kept bits: 53 for double, 24 for float. smallest: exponent of the least number.
  double rounded(int bits = 53, int smallest = -1074) const {
    if (is_special_) return special_;
    std::array<uint32_t, limbs> of = limbs_;
    const bool negative = of.back() >> 31;
    if (negative) {
      uint64_t carry = 1;
      for (uint32_t& limb : of) {
        carry += static_cast<uint32_t>(~limb);
        limb = static_cast<uint32_t>(carry);
        carry >>= 32;
      }
    }
    const auto bit = [&](int at) {
      return at < 0 ? 0u : of[static_cast<size_t>(at) / 32] >> (at % 32) & 1;
    };
    int top = 32 * limbs - 1;
    while (top >= 0 && !bit(top)) --top;
    if (top < 0) return 0;
    const int last = std::max(top - bits + 1, smallest + unit);
    uint64_t kept = 0;
    for (int at = top; at >= last; --at) kept = 2 * kept + bit(at);
    bool below = false;
    for (int at = 0; at < last - 1; ++at) below |= bit(at) != 0;
    if (bit(last - 1) && (below || kept % 2)) ++kept;
    double magnitude = std::ldexp(static_cast<double>(kept), last - unit);
    if (bits == 24 && magnitude > std::numeric_limits<float>::max())
      magnitude = std::numeric_limits<double>::infinity();
    return negative ? -magnitude : magnitude;
  }
  float rounded_to_float() const { return static_cast<float>(rounded(24, -149)); }

 private:
  static constexpr int limbs = 72, unit = 1074;
  void add_at(size_t at, unsigned __int128 x, bool subtract) {
    uint64_t carry = subtract ? 1 : 0;
    for (; at < limbs; ++at, x >>= 32) {
      const auto part = static_cast<uint32_t>(x);
      carry += uint64_t{limbs_[at]} + (subtract ? static_cast<uint32_t>(~part) : part);
      limbs_[at] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  std::array<uint32_t, limbs> limbs_{};
  double special_ = 0;
  bool is_special_ = false;
};

// Kinds of numbers, and whether sums of them need more than a compensated sum: never, always where
// there are three and more, or perhaps.
enum class Again : uint8_t { never, perhaps, always };
struct Hard {
  const char* name;
  Again again;
  // Fills `x`, of at least three elements.
  void (*fill)(std::vector<double>& x, std::mt19937_64& random);
};

inline double anything(std::mt19937_64& random, int least, int greatest) {
  const int exponent = least + static_cast<int>(random() % static_cast<uint64_t>(greatest - least));
  const double mantissa = 1 + static_cast<double>(random() >> 12) * 0x1p-52;
  return std::ldexp(random() % 2 ? mantissa : -mantissa, exponent);
}
// A midpoint, and `beside` it; the rest cancels.
inline void near_tie(std::vector<double>& x, std::mt19937_64& random, double beside) {
  const double one = anything(random, -200, 200),
               ulp = std::nextafter(std::fabs(one), 1e300) - std::fabs(one);
  std::fill(x.begin(), x.end(), 0.0);
  for (size_t i = 3; i + 1 < x.size(); i += 2) {
    x[i] = anything(random, -8, 8) * one;
    x[i + 1] = -x[i];
  }
  x[0] = one, x[1] = random() % 2 ? ulp / 2 : -ulp / 2, x[2] = beside * ulp;
}

inline const Hard hard_sums[] = {
    {"money", Again::never,
     [](std::vector<double>& x, std::mt19937_64& random) {
       for (double& v : x)
         v = static_cast<double>(random() % 10'000'000) / 100 *
             (1 - static_cast<double>(random() % 11) / 100);
     }},
    {"whole numbers", Again::never,
     [](std::vector<double>& x, std::mt19937_64& random) {
       for (double& v : x) v = static_cast<double>(random() % 2001) - 1000;
     }},
    {"zeros", Again::never,
     [](std::vector<double>& x, std::mt19937_64& random) {
       for (double& v : x) v = random() % 2 ? 0.0 : -0.0;
     }},
    {"unlike", Again::never,
     [](std::vector<double>& x, std::mt19937_64& random) {
       for (double& v : x) v = std::fabs(anything(random, -30, 30));
     }},
    {"signed", Again::never,
     [](std::vector<double>& x, std::mt19937_64& random) {
       for (double& v : x) v = anything(random, -30, 30);
     }},
    {"all exponents", Again::perhaps,
     [](std::vector<double>& x, std::mt19937_64& random) {
       for (double& v : x) v = anything(random, -1070, 900);
     }},
    {"subnormal", Again::perhaps,
     [](std::vector<double>& x, std::mt19937_64& random) {
       for (double& v : x) v = anything(random, -1074, -1000);
     }},
    {"cancelled", Again::perhaps,
     [](std::vector<double>& x, std::mt19937_64& random) {
       for (double& v : x) v = 0;
       for (size_t i = 0; i + 1 < x.size(); i += 2)
         x[i] = anything(random, -60, 60), x[i + 1] = -x[i];
       x.back() = 1e-20;
       std::shuffle(x.begin(), x.end(), random);
     }},
    {"1e16", Again::perhaps,
     [](std::vector<double>& x, std::mt19937_64& random) {
       const double all[] = {1e16, 1, -1e16};
       for (size_t i = 0; i < x.size(); ++i) x[i] = all[i % 3];
       std::shuffle(x.begin(), x.end(), random);
     }},
    {"1e308", Again::perhaps,
     [](std::vector<double>& x, std::mt19937_64&) {
       const double all[] = {1e308, 1e308, -1e308, -1e308, 1};
       for (size_t i = 0; i < x.size(); ++i) x[i] = all[i % 5];
     }},
    {"too large", Again::perhaps,
     [](std::vector<double>& x, std::mt19937_64&) { std::fill(x.begin(), x.end(), 1.5e308); }},
    {"above a tie", Again::always,
     [](std::vector<double>& x, std::mt19937_64& random) { near_tie(x, random, 0x1p-110); }},
    {"below a tie", Again::always,
     [](std::vector<double>& x, std::mt19937_64& random) { near_tie(x, random, -0x1p-110); }},
    {"a tie", Again::perhaps,
     [](std::vector<double>& x, std::mt19937_64& random) { near_tie(x, random, 0); }},
    {"infinite", Again::never,
     [](std::vector<double>& x, std::mt19937_64& random) {
       for (double& v : x) v = anything(random, -30, 30);
       x[random() % x.size()] = -INFINITY;
     }},
    {"not a number", Again::never,
     [](std::vector<double>& x, std::mt19937_64& random) {
       for (double& v : x) v = anything(random, -30, 30);
       x[random() % x.size()] = NAN;
     }},
    {"both infinities", Again::never,
     [](std::vector<double>& x, std::mt19937_64& random) {
       for (double& v : x) v = anything(random, -30, 30);
       x[0] = INFINITY, x[2] = -INFINITY;
     }},
};

}  // namespace rndn::test
