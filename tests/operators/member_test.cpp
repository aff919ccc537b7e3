// member and translate against a plain loop.
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "tests/operators/support.h"

namespace rndn::operators::member_test {
namespace {

template <class T>
std::vector<uint8_t> expected_member(const std::vector<T>& x, const std::vector<T>& y) {
  std::set<T> present;
  for (T v : y)
    if (v == v) present.insert(v);
  std::vector<uint8_t> out;
  for (T v : x) out.push_back(v == v && present.count(v));
  return out;
}

template <class T>
void check(test::Bench& bench, Type type, const std::vector<T>& x, const std::vector<T>& y, bool known = false,
           uint64_t spare = 0) {
  Vector vx = bench.put(type, x, spare), vy = bench.put(type, y, spare);
  if (known && !y.empty()) {
    vy.min = static_cast<int64_t>(*std::min_element(y.begin(), y.end()));
    vy.max = static_cast<int64_t>(*std::max_element(y.begin(), y.end()));
  }
  auto got = bench.sql->member(vx, vy, *bench.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(got->type, Type::u8);
  const std::vector<uint8_t> flags = bench.get<uint8_t>(*got), expected = expected_member(x, y);
  ASSERT_EQ(flags.size(), expected.size());
  for (size_t i = 0; i < flags.size(); ++i)
    ASSERT_EQ(flags[i], expected[i]) << "row " << i << " of " << x.size() << ", |y| " << y.size() << ", "
                                     << static_cast<int>(type) << (known ? " known" : "");
}

// Values of which about half occur in a second draw.
template <class T>
std::vector<T> draw(std::mt19937_64& random, size_t n, uint64_t range) {
  std::vector<T> out(n);
  for (T& v : out) v = static_cast<T>(static_cast<int64_t>(random() % range) - static_cast<int64_t>(range / 2));
  return out;
}

template <class T>
void sizes(test::Bench& bench, Type type, uint64_t range) {
  std::mt19937_64 random(7);
  for (size_t n : {0, 1, 31, 32, 33, 1023, 1024, 1025})
    for (size_t m : {0, 1, 5, 32, 33, 257, 1025}) {
      const auto x = draw<T>(random, n, range), y = draw<T>(random, m, range);
      check<T>(bench, type, x, y);
      if (m > 32 && std::is_integral_v<T>) check<T>(bench, type, x, y, true);
      if (testing::Test::HasFatalFailure()) return;
    }
}

class MemberTest : public testing::TestWithParam<const char*> {};

TEST_P(MemberTest, EveryTypeAndSize) {
  test::Bench bench(GetParam());
  sizes<uint8_t>(bench, Type::u8, 256);
  sizes<int8_t>(bench, Type::i8, 256);
  sizes<int16_t>(bench, Type::i16, 5000);
  sizes<int32_t>(bench, Type::i32, 3000);
  sizes<uint32_t>(bench, Type::u32, 3000);
  sizes<int64_t>(bench, Type::i64, 3000);
  sizes<float>(bench, Type::f32, 3000);
  sizes<double>(bench, Type::f64, 3000);
}

TEST_P(MemberTest, ManyElements) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(3);
  const auto x = draw<int64_t>(random, 100000, 60000), y = draw<int64_t>(random, 30000, 60000);
  check<int64_t>(bench, Type::i64, x, y);
  check<int64_t>(bench, Type::i64, x, y, true);
  check<int32_t>(bench, Type::i32, std::vector<int32_t>(x.begin(), x.end()), std::vector<int32_t>(y.begin(), y.end()));
  check<int32_t>(bench, Type::i32, std::vector<int32_t>(x.begin(), x.end()), std::vector<int32_t>(100000, 5));
}

TEST_P(MemberTest, SizesOnTheDevice) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(4);
  for (bool known : {false, true})
    for (size_t m : {0, 3, 400}) {
      check<int32_t>(bench, Type::i32, draw<int32_t>(random, 700, 900), draw<int32_t>(random, m, 900), known, 5000);
      check<int32_t>(bench, Type::i32, {}, draw<int32_t>(random, m, 900), known, 7);
      check<int64_t>(bench, Type::i64, draw<int64_t>(random, 700, 900), draw<int64_t>(random, m, 900), known, 5000);
    }
}

TEST_P(MemberTest, Extremes) {
  test::Bench bench(GetParam());
  const auto fill = [](auto values, size_t n) {  // enough of them for a table
    auto out = values;
    while (out.size() < n) out.push_back(values[out.size() % values.size()]);
    return out;
  };
  using L64 = std::numeric_limits<int64_t>;
  using L32 = std::numeric_limits<int32_t>;
  for (size_t n : {1, 60}) {
    check<int64_t>(bench, Type::i64, {L64::min(), L64::max(), 0, -1, 1, L64::min() + 1},
                   fill(std::vector<int64_t>{L64::max(), 0}, n));
    check<int64_t>(bench, Type::i64, {L64::min(), L64::max(), 0, -1}, fill(std::vector<int64_t>{L64::min(), -1}, n));
    check<int64_t>(bench, Type::i64, {L64::min(), L64::max(), 0, -1},
                   fill(std::vector<int64_t>{L64::min(), L64::max()}, n), true);
    check<int32_t>(bench, Type::i32, {L32::min(), L32::max(), 0, -1}, fill(std::vector<int32_t>{L32::max(), -1}, n));
    check<int32_t>(bench, Type::i32, {L32::min(), L32::max(), 0, -1},
                   fill(std::vector<int32_t>{L32::min(), L32::max()}, n), true);
    // Outside the range of y on both sides, at distances that a narrower difference would hide.
    check<int64_t>(bench, Type::i64, {5, 6, 7, 5 + (int64_t{1} << 32), 6 - (int64_t{1} << 32), L64::min() + 5},
                   fill(std::vector<int64_t>{5, 7}, n), true);
    const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
    check<float>(bench, Type::f32, {0.0f, -0.0f, nan, inf, -inf, 1.5f}, fill(std::vector<float>{-0.0f, nan, inf}, n));
    check<double>(bench, Type::f64, {0.0, -0.0, nan, inf, -inf, 1.5}, fill(std::vector<double>{0.0, nan, -inf}, n));
    check<double>(bench, Type::f64, {0.0, -0.0, nan}, fill(std::vector<double>{nan}, n));
  }
}

TEST_P(MemberTest, AlternativesAgree) {
  for (Options::Member how : {Options::Member::loop, Options::Member::hash}) {
    Options options;
    options.member = how;
    test::Bench bench(GetParam(), options);
    std::mt19937_64 random(5);
    for (size_t m : {1, 3, 700})
      check<int32_t>(bench, Type::i32, draw<int32_t>(random, 2000, 3000), draw<int32_t>(random, m, 3000));
    for (const Launch& l : bench.sql->take_launches())
      EXPECT_EQ(l.kernel.find("loop") != l.kernel.npos, how == Options::Member::loop) << l.kernel;
  }
}

TEST_P(MemberTest, RefusesTypesThatDiffer) {
  test::Bench bench(GetParam());
  EXPECT_FALSE(
      bench.sql->member(bench.put<int32_t>(Type::i32, {1}), bench.put<int64_t>(Type::i64, {1}), *bench.memory).ok());
}

TEST_P(MemberTest, Translate) {
  test::Bench bench(GetParam());
  for (uint64_t spare : {0, 9})
    for (size_t n : {0, 1, 255, 1025, 5000}) {
      std::vector<uint32_t> codes(n), table{7, 0, 4000000000u, 9};
      std::mt19937_64 random(6);
      for (uint32_t& c : codes)
        c = random() % 3 ? static_cast<uint32_t>(random() % 4) : static_cast<uint32_t>(random());
      const Vector t = bench.put(Type::u32, table);
      auto got = bench.sql->translate(bench.put(Type::u32, codes, spare), t.data, table.size(), *bench.memory);
      ASSERT_TRUE(got.ok()) << got.error().message;
      std::vector<uint32_t> expected;
      for (uint32_t c : codes) expected.push_back(c < 4 ? table[c] : c);
      EXPECT_EQ(bench.get<uint32_t>(*got), expected);
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, MemberTest, testing::ValuesIn(test::targets));

}  // namespace
}  // namespace rndn::operators::member_test
