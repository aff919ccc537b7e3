// Sums of floats by operators: what is reported as sure is the exact sum, rounded once, bit for bit,
// and so are all sums by integers. Groups in every way that `aggregate` has.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <random>

#include "tests/operators/support.h"
#include "tests/support/big_sum.h"
#include "tests/support/every_case.h"

namespace rndn::operators {
namespace {

class Sums : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Targets, Sums, ::testing::ValuesIn(test::targets));

uint64_t bits(double x) { return std::isnan(x) ? 0 : std::bit_cast<uint64_t>(x); }
uint32_t bits(float x) { return std::isnan(x) ? 0 : std::bit_cast<uint32_t>(x); }

struct Witness {
  rndn::test::BigSum sum, singles;
  int64_t count = 0;
  void add(double x) {
    sum.add(x);
    singles.add(static_cast<float>(x));
    ++count;
  }
};

std::vector<double> numbers(const rndn::test::Hard& hard, uint64_t n, std::mt19937_64& random) {
  std::vector<double> x(std::max<uint64_t>(n, 3));
  hard.fill(x, random);
  x.resize(n);
  return x;
}

TEST_P(Sums, OfGroups) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(1);
  uint64_t sure = 0, unsure = 0;
  rndn::test::Sample sample(2);
  for (const rndn::test::Hard& hard : rndn::test::hard_sums)
    for (const auto& [n, groups, ascending, bounds] :
         std::vector<std::tuple<uint64_t, int, bool, bool>>{{0, 1, false, true},
                                                            {1, 1, false, false},
                                                            {31, 1, false, true},
                                                            {1025, 1, false, true},
                                                            {1025, 1, true, false},
                                                            {1025, 7, false, true},
                                                            {1025, 300, false, false},
                                                            {5000, 3, true, false},
                                                            {5000, 900, true, false},
                                                            {5000, 900, false, false}}) {
      if (!sample.has_next()) continue;
      SCOPED_TRACE(fmt::format("{}: {} rows, {} groups, {}", hard.name, n, groups, ascending));
      const std::vector<double> x = numbers(hard, n, random);
      std::vector<int32_t> keys;
      for (uint64_t i = 0; i < n; ++i)
        keys.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(groups)));
      if (ascending) std::sort(keys.begin(), keys.end());
      std::map<int32_t, Witness> of;
      for (uint64_t i = 0; i < n; ++i) of[keys[i]].add(x[i]);
      Vector key = bench.put(Type::i32, keys);
      key.ascending = ascending;
      if (bounds) key.min = 0, key.max = groups - 1;
      const Vector doubles = bench.put(Type::f64, x);
      const Vector singles = bench.put(Type::f32, std::vector<float>(x.begin(), x.end()));
      const Aggregate wanted[] = {{Reduce::sum, doubles, Type::f64},
                                  {Reduce::avg, doubles, Type::f64},
                                  {Reduce::sum, singles, Type::f32},
                                  {Reduce::avg, singles, Type::f32}};
      std::memset(bench.sum_flags.host, 0, sums::flag_bytes);
      auto got = bench.sql->aggregate({&key, 1}, wanted, bench.sum_flags.address, *bench.memory);
      ASSERT_TRUE(got.ok()) << got.error().message;
      ASSERT_TRUE(bench.device->synchronize().ok());
      ASSERT_EQ(got->keys.capacity, of.size());
      std::string launched;
      for (const Launch& l : bench.sql->take_launches()) launched += std::string(l.kernel) + " ";
      SCOPED_TRACE(launched);
      if (hard.again == rndn::test::Again::never) {
        EXPECT_TRUE(bench.sums_are_sure());
      }
      if (hard.again == rndn::test::Again::always && groups == 1 && n >= 3) {
        EXPECT_FALSE(bench.sums_are_sure());
      }
      ++(bench.sums_are_sure() ? sure : unsure);
      if (!bench.sums_are_sure()) continue;
      const auto sum = bench.get<double>(got->results[0]), avg = bench.get<double>(got->results[1]);
      const auto sum32 = bench.get<float>(got->results[2]),
                 avg32 = bench.get<float>(got->results[3]);
      size_t k = 0;
      for (const auto& [name, w] : of) {
        const double total = w.sum.rounded(), count = static_cast<double>(w.count);
        ASSERT_EQ(bits(sum[k]), bits(total)) << name << ": " << sum[k] << ", not " << total;
        ASSERT_EQ(bits(avg[k]), bits(total / count)) << name;
        ASSERT_EQ(bits(sum32[k]), bits(w.singles.rounded_to_float())) << name;
        ASSERT_EQ(bits(avg32[k]), bits(static_cast<float>(w.singles.rounded() / count))) << name;
        ++k;
      }
    }
  EXPECT_GT(sure, rndn::test::in_the_gate(45, 90));
  EXPECT_GT(unsure, rndn::test::in_the_gate(5, 10));
}

// Averages of 64-bit integers are exact before they are divided.
TEST_P(Sums, OfWideIntegers) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(2);
  std::vector<int64_t> x(1025);
  for (int64_t& v : x) v = static_cast<int64_t>(random());
  x[0] = INT64_MIN, x[1] = INT64_MAX, x[2] = INT64_MAX - 1;
  const std::vector<int32_t> keys(x.size(), 5);
  Vector key = bench.put(Type::i32, keys);
  key.min = 0, key.max = 9;
  const Aggregate wanted{Reduce::avg, bench.put(Type::i64, x), Type::f64};
  auto got = bench.sql->aggregate({&key, 1}, {&wanted, 1}, bench.sum_flags.address, *bench.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  __int128 sum = 0;
  for (int64_t v : x) sum += v;
  EXPECT_TRUE(bench.sums_are_sure());
  EXPECT_EQ(bench.get<double>(got->results[0]),
            std::vector<double>{static_cast<double>(sum) / 1025});
  auto exact = bench.sql->exact_sums({wanted.values, 0, 1}, true, Type::f64, *bench.memory);
  ASSERT_TRUE(exact.ok()) << exact.error().message;
  EXPECT_EQ(bench.get<double>(*exact), std::vector<double>{static_cast<double>(sum) / 1025});
}

TEST_P(Sums, ByIntegers) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(3);
  for (const rndn::test::Hard& hard : rndn::test::hard_sums)
    for (uint64_t n : {0, 1, 31, 1025, 9001}) {
      SCOPED_TRACE(fmt::format("{}: {} rows", hard.name, n));
      const std::vector<double> x = numbers(hard, n, random);
      // Cells of any length, empty ones too; and all in one.
      std::vector<uint64_t> offsets{0};
      while (offsets.back() < n)
        offsets.push_back(std::min(n, offsets.back() + random() % (offsets.size() % 3 ? 9 : n)));
      offsets.push_back(n);
      Witness all;
      std::vector<Witness> of(offsets.size() - 1);
      for (uint64_t i = 0, k = 0; i < n; ++i) {
        while (offsets[k + 1] <= i) ++k;
        of[k].add(x[i]);
        all.add(x[i]);
      }
      const Address at = *bench.memory->result(8 * offsets.size());
      ASSERT_TRUE(bench.device->copy_to_device(at, offsets.data(), 8 * offsets.size()).ok());
      const Vector doubles = bench.put(Type::f64, x);
      const Vector singles = bench.put(Type::f32, std::vector<float>(x.begin(), x.end()));
      auto one = bench.sql->exact_sums({doubles, 0, 1}, false, Type::f64, *bench.memory);
      auto cells = bench.sql->exact_sums({doubles, at, of.size()}, false, Type::f64, *bench.memory);
      auto means = bench.sql->exact_sums({doubles, at, of.size()}, true, Type::f64, *bench.memory);
      auto cells32 =
          bench.sql->exact_sums({singles, at, of.size()}, false, Type::f32, *bench.memory);
      ASSERT_TRUE(one.ok() && cells.ok() && means.ok() && cells32.ok());
      EXPECT_EQ(bits(bench.get<double>(*one)[0]), bits(all.sum.rounded()));
      const auto sums = bench.get<double>(*cells), averages = bench.get<double>(*means);
      const auto sums32 = bench.get<float>(*cells32);
      for (size_t k = 0; k < of.size(); ++k) {
        const double total = of[k].sum.rounded();
        ASSERT_EQ(bits(sums[k]), bits(total)) << k << ": " << sums[k] << ", not " << total;
        ASSERT_EQ(bits(averages[k]), bits(total / static_cast<double>(of[k].count))) << k;
        ASSERT_EQ(bits(sums32[k]), bits(of[k].singles.rounded_to_float())) << k;
      }
    }
}

}  // namespace
}  // namespace rndn::operators
