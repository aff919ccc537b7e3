// Relational algebra against ordered sets and plain loops.
#include <random>
#include <set>

#include "tests/operators/support.h"
#include "tests/support/every_case.h"

namespace rndn::operators::relations_test {
namespace {

// Rows of (i32, i64, i8), as three columns on the device.
using Row = std::array<int64_t, 3>;
using Rows = std::vector<Row>;

Relation put(test::Bench& bench, const Rows& rows, uint64_t spare = 0) {
  std::vector<int32_t> a;
  std::vector<int64_t> b;
  std::vector<int8_t> c;
  for (const Row& r : rows) {
    a.push_back(static_cast<int32_t>(r[0]));
    b.push_back(r[1]);
    c.push_back(static_cast<int8_t>(r[2]));
  }
  return {bench.put(Type::i32, a, spare), bench.put(Type::i64, b, spare), bench.put(Type::i8, c, spare)};
}
Rows get(test::Bench& bench, const Relation& r, size_t from = 0) {
  const auto a = bench.get<int32_t>(r[from]);
  const auto b = bench.get<int64_t>(r[from + 1]);
  const auto c = bench.get<int8_t>(r[from + 2]);
  EXPECT_EQ(a.size(), b.size());
  EXPECT_EQ(a.size(), c.size());
  Rows rows;
  for (size_t i = 0; i < a.size(); ++i) rows.push_back({a[i], b[i], c[i]});
  return rows;
}
Rows draw(std::mt19937_64& random, size_t n, int64_t range) {
  Rows rows(n);
  for (Row& r : rows)
    for (size_t c = 0; c < 3; ++c) r[c] = static_cast<int64_t>(random() % static_cast<uint64_t>(range)) - range / 2;
  return rows;
}
// The first occurrences of rows that `keep` accepts.
template <class F>
Rows first_of(const Rows& rows, F&& keep) {
  std::set<Row> seen;
  Rows out;
  for (const Row& r : rows)
    if (keep(r) && seen.insert(r).second) out.push_back(r);
  return out;
}

class RelationsTest : public testing::TestWithParam<const char*> {};

TEST_P(RelationsTest, SetOperationsOfEverySize) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(1);
  for (size_t n : {0, 1, 31, 33, 1025, 3000})
    for (size_t m : {0, 1, 32, 1024, 2000})
      for (uint64_t spare : {0, 77}) {
        const Rows x = draw(random, n, 12), y = draw(random, m, 12);
        const std::set<Row> in_y(y.begin(), y.end());
        const Relation left = put(bench, x, spare), right = put(bench, y, spare);
        Rows both = x;
        both.insert(both.end(), y.begin(), y.end());
        const std::string what = fmt::format("{} and {} rows", n, m);
        auto distinct = bench.sql->distinct(left, *bench.memory);
        ASSERT_TRUE(distinct.ok()) << what << distinct.error().message;
        EXPECT_EQ(get(bench, *distinct), first_of(x, [](const Row&) { return true; })) << what;
        auto unite = bench.sql->unite(left, right, *bench.memory);
        ASSERT_TRUE(unite.ok()) << what << unite.error().message;
        EXPECT_EQ(get(bench, *unite), first_of(both, [](const Row&) { return true; })) << what;
        auto intersect = bench.sql->intersect(left, right, *bench.memory);
        ASSERT_TRUE(intersect.ok()) << what << intersect.error().message;
        EXPECT_EQ(get(bench, *intersect), first_of(x, [&](const Row& r) { return in_y.count(r) != 0; })) << what;
        auto subtract = bench.sql->subtract(left, right, *bench.memory);
        ASSERT_TRUE(subtract.ok()) << what << subtract.error().message;
        EXPECT_EQ(get(bench, *subtract), first_of(x, [&](const Row& r) { return in_y.count(r) == 0; })) << what;
        if (HasFailure()) return;
      }
}

TEST_P(RelationsTest, OneColumnAndBounds) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(2);
  std::vector<int32_t> x(2500), y(1500);
  for (int32_t& v : x) v = static_cast<int32_t>(random() % 900) - 100;
  for (int32_t& v : y) v = static_cast<int32_t>(random() % 900) + 300;
  for (bool bounds : {false, true}) {
    Relation left = {bench.put(Type::i32, x)}, right = {bench.put(Type::i32, y)};
    if (bounds) left[0].min = -100, left[0].max = 799, right[0].min = 300, right[0].max = 1199;
    const std::set<int32_t> in_y(y.begin(), y.end());
    std::set<int32_t> seen;
    std::vector<int32_t> common, rest, all;
    for (int32_t v : x)
      if (seen.insert(v).second) (in_y.count(v) ? common : rest).push_back(v), all.push_back(v);
    for (int32_t v : y)
      if (seen.insert(v).second) all.push_back(v);
    EXPECT_EQ(bench.get<int32_t>((*bench.sql->intersect(left, right, *bench.memory))[0]), common);
    EXPECT_EQ(bench.get<int32_t>((*bench.sql->subtract(left, right, *bench.memory))[0]), rest);
    EXPECT_EQ(bench.get<int32_t>((*bench.sql->unite(left, right, *bench.memory))[0]), all);
  }
}

// Ascending columns are merged, and every result ascends: dense and sparse sides, runs of equal elements over several tiles, sizes at the edges of tiles
// (4848 elements of both) and of threads (19), one side before the other, no element at all, and the extremes of the type. Of the sizes one in `step`.
template <class T>
void check_sorted_sets(const char* target, Type type, uint64_t step = 1) {
  test::Bench bench(target);
  std::mt19937_64 random(6);
  const auto draw = [&](size_t n, uint64_t apart) {
    std::vector<T> v(n);
    uint64_t at = 0;
    for (T& x : v) x = static_cast<T>(at), at += random() % (apart + 1);
    return v;
  };
  const T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  std::vector<std::pair<std::vector<T>, std::vector<T>>> cases = {
      {{}, {}},
      {{}, {1, 1, 2}},
      {{1, 1, 2}, {}},
      {{least, least, 0, most, most}, {least, most}},
      {{least, 0, most}, {most, most}},
      {{least, 1}, {1, most}},
      {{0, 0, most, most}, {least, 0}},
      {std::vector<T>(5000, most), std::vector<T>(5000, most)},
      {std::vector<T>(5000, least), std::vector<T>(5000, most)},
      {{5}, {5}},
      {draw(9000, 2), draw(9000, 2)},
      {draw(5000, 40), draw(12000, 3)},
      {draw(12000, 3), draw(300, 120)},
      {std::vector<T>(9000, 7), draw(5000, 1)},  // one run over three tiles
      {draw(5000, 1), std::vector<T>(9000, 7)},
      {draw(4096, 1), draw(4097, 1)},
      {draw(100, 1), std::vector<T>(7000, 3)},
  };
  const size_t handmade = cases.size();
  for (size_t n : {1, 18, 19, 20, 31, 32, 33, 1023, 1025, 2424, 4847, 4848, 4849})
    for (size_t m : {size_t{1}, size_t{2424}, 4848 - n % 4848, 4848 - n % 4848 + 1, 9696 - n})
      cases.emplace_back(draw(n, 2), draw(m, 2));
  for (size_t n : {1, 2424, 4847, 4848, 4849}) {  // one side before the other, also half a tile each
    std::vector<T> low = draw(n, 3), high = draw(n == 2424 ? n : 5000, 3);
    for (T& v : high) v = static_cast<T>(v + low.back() + (n % 2 ? 1 : 0));
    cases.emplace_back(low, high);
    cases.emplace_back(high, low);
  }
  rndn::test::Sample sample(step);
  for (const auto& sides : cases) {
    if (!sample.has_next() && &sides >= cases.data() + handmade) continue;
    const auto& [x, y] = sides;
    Vector left = bench.put(type, x), right = bench.put(type, y);
    left.ascending = right.ascending = true;
    const std::set<T> in_x(x.begin(), x.end()), in_y(y.begin(), y.end());
    std::set<T> in_either = in_x;
    in_either.insert(in_y.begin(), in_y.end());
    std::vector<T> common, rest;
    const std::vector<T> all(in_either.begin(), in_either.end());
    for (T v : in_x) (in_y.count(v) ? common : rest).push_back(v);
    const std::string what = fmt::format("{} and {}", x.size(), y.size());
    auto intersect = bench.sql->intersect({left}, {right}, *bench.memory);
    ASSERT_TRUE(intersect.ok()) << what << intersect.error().message;
    EXPECT_EQ(bench.get<T>((*intersect)[0]), common) << what;
    auto subtract = bench.sql->subtract({left}, {right}, *bench.memory);
    ASSERT_TRUE(subtract.ok()) << what << subtract.error().message;
    EXPECT_EQ(bench.get<T>((*subtract)[0]), rest) << what;
    auto unite = bench.sql->unite({left}, {right}, *bench.memory);
    ASSERT_TRUE(unite.ok()) << what << unite.error().message;
    EXPECT_EQ(bench.get<T>((*unite)[0]), all) << what;
    EXPECT_TRUE((*intersect)[0].ascending && (*subtract)[0].ascending && (*unite)[0].ascending);
    if (testing::Test::HasFailure()) return;
  }
}
TEST_P(RelationsTest, SortedSetsAreMerged) {
  check_sorted_sets<int64_t>(GetParam(), Type::i64);
  check_sorted_sets<int32_t>(GetParam(), Type::i32);
  check_sorted_sets<uint32_t>(GetParam(), Type::u32, 9);
}

// More tiles than a block finds the splits of, where the guess that both columns alternate evenly is right, and where it is wrong everywhere; last with keys
// whose differences are no numbers of their type.
TEST_P(RelationsTest, SortedSetsOfManyTiles) {
  test::Bench bench(GetParam());
  constexpr size_t n = 200000, m = 140000;  // 71 tiles
  for (int shape = 0; shape < 5; ++shape) {
    std::vector<int32_t> x(n), y(m);
    for (size_t i = 0; i < n; ++i) x[i] = static_cast<int32_t>(shape == 3 ? i * i / n / 3 : 7 * i);
    for (size_t i = 0; i < m; ++i)
      y[i] = static_cast<int32_t>(shape == 0   ? 10 * i
                                  : shape == 1 ? 7 * n + i
                                  : shape == 2 ? i * i / 14000
                                               : (m - i < 9000 ? 7 * i : i / 5));
    if (shape == 4) {
      for (size_t i = 0; i < n; ++i) x[i] = static_cast<int32_t>(int64_t{INT32_MIN} + static_cast<int64_t>(21470 * i));
      for (size_t i = 0; i < m; ++i) y[i] = static_cast<int32_t>(int64_t{INT32_MIN} + static_cast<int64_t>(30670 * i));
    }
    Vector left = bench.put(Type::i32, x), right = bench.put(Type::i32, y);
    left.ascending = right.ascending = true;
    x.erase(std::unique(x.begin(), x.end()), x.end());
    y.erase(std::unique(y.begin(), y.end()), y.end());
    std::vector<int32_t> common, all;
    std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(common));
    std::set_union(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(all));
    auto intersect = bench.sql->intersect({left}, {right}, *bench.memory);
    ASSERT_TRUE(intersect.ok());
    EXPECT_TRUE(bench.get<int32_t>((*intersect)[0]) == common) << shape;
    if (shape) continue;
    auto unite = bench.sql->unite({left}, {right}, *bench.memory);
    ASSERT_TRUE(unite.ok());
    EXPECT_TRUE(bench.get<int32_t>((*unite)[0]) == all) << shape;
  }
}

TEST_P(RelationsTest, NanIsNoMemberAndStays) {
  test::Bench bench(GetParam());
  const double nan = std::nan("");
  const Relation left = {bench.put<double>(Type::f64, {0.0, nan, 1.0, -0.0, nan})};
  const Relation right = {bench.put<double>(Type::f64, {nan, -0.0})};
  EXPECT_EQ(bench.get<double>((*bench.sql->distinct(left, *bench.memory))[0]).size(), 4u);
  EXPECT_EQ(bench.get<double>((*bench.sql->intersect(left, right, *bench.memory))[0]), std::vector<double>{0.0});
  EXPECT_EQ(bench.get<double>((*bench.sql->subtract(left, right, *bench.memory))[0]).size(), 3u);
}

TEST_P(RelationsTest, SelectAndProject) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(3);
  for (size_t n : {0, 1, 32, 1024, 5000})
    for (uint64_t spare : {0, 5}) {
      const Rows rows = draw(random, n, 100);
      std::vector<uint8_t> mask(n);
      Rows kept;
      for (size_t i = 0; i < n; ++i)
        if ((mask[i] = random() % 3 == 0 ? static_cast<uint8_t>(random()) : 0)) kept.push_back(rows[i]);
      auto got = bench.sql->select(put(bench, rows, spare), bench.put(Type::u8, mask, spare), *bench.memory);
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_EQ(get(bench, *got), kept);
      const uint32_t columns[] = {2, 0};
      auto projected = bench.sql->project(*got, columns);
      ASSERT_TRUE(projected.ok());
      ASSERT_EQ(projected->size(), 2u);
      EXPECT_EQ((*projected)[0].type, Type::i8);
      EXPECT_EQ((*projected)[1].data, (*got)[0].data);
    }
}

TEST_P(RelationsTest, SelectAllNoneAndRunsOfRows) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(5);
  const size_t n = 3 * 4096 + 77;
  std::vector<int16_t> x(n);
  std::vector<double> y(n);
  for (size_t i = 0; i < n; ++i) x[i] = static_cast<int16_t>(random()), y[i] = static_cast<double>(i);
  const Relation r = {bench.put(Type::i16, x), bench.put(Type::f64, y)};
  for (int kind = 0; kind < 4; ++kind) {
    std::vector<uint8_t> mask(n);
    std::vector<int16_t> kept_x;
    std::vector<double> kept_y;
    for (size_t i = 0; i < n; ++i) {
      mask[i] = kind == 0 ? 0 : kind == 1 ? 1 : kind == 2 ? i / 4096 == 1 : i % 4096 == 4095;
      if (mask[i]) kept_x.push_back(x[i]), kept_y.push_back(y[i]);
    }
    auto got = bench.sql->select(r, bench.put(Type::u8, mask), *bench.memory);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(bench.get<int16_t>((*got)[0]), kept_x) << kind;
    EXPECT_EQ(bench.get<double>((*got)[1]), kept_y) << kind;
  }
  // More columns than one launch takes.
  Relation wide;
  for (int c = 0; c < 37; ++c) wide.push_back(r[static_cast<size_t>(c % 2)]);
  std::vector<uint8_t> mask(n);
  for (size_t i = 0; i < n; ++i) mask[i] = i % 3 == 0;
  auto got = bench.sql->select(wide, bench.put(Type::u8, mask), *bench.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  for (size_t c : {size_t{0}, size_t{15}, size_t{16}, size_t{36}}) {
    const auto numbers = c % 2 ? bench.get<double>((*got)[c]) : std::vector<double>();
    const auto shorts = c % 2 ? std::vector<int16_t>() : bench.get<int16_t>((*got)[c]);
    ASSERT_EQ(c % 2 ? numbers.size() : shorts.size(), (n + 2) / 3) << c;
    for (size_t i = 0; i < (n + 2) / 3; ++i) ASSERT_TRUE(c % 2 ? numbers[i] == y[3 * i] : shorts[i] == x[3 * i]) << c;
  }
  // A mask that does not begin at a multiple of 16 bytes is read byte by byte.
  mask.insert(mask.begin(), 1);
  Vector unaligned = bench.put(Type::u8, mask);
  ++unaligned.data;
  --unaligned.capacity;
  got = bench.sql->select(r, unaligned, *bench.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  const std::vector<double> kept = bench.get<double>((*got)[1]);
  ASSERT_EQ(kept.size(), (n + 2) / 3);
  for (size_t i = 0; i < kept.size(); ++i) ASSERT_EQ(kept[i], y[3 * i]);
  EXPECT_FALSE(bench.sql->select(r, bench.put(Type::u8, std::vector<uint8_t>(n - 1)), *bench.memory).ok());
  EXPECT_FALSE(bench.sql->select(r, bench.put(Type::i16, x), *bench.memory).ok());
}

// So many rows that every warp walks its range in several steps, the last of them not whole.
TEST_P(RelationsTest, SelectInSeveralSteps) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(6);
  const size_t n = 700001;
  std::vector<uint8_t> mask(n);
  std::vector<uint32_t> x(n), kept;
  for (size_t i = 0; i < n; ++i) {
    mask[i] = i / 50000 % 3 == 1 ? random() % 2 : i / 50000 % 3 == 2;
    x[i] = static_cast<uint32_t>(i);
    if (mask[i]) kept.push_back(x[i]);
  }
  auto got = bench.sql->select({bench.put(Type::u32, x)}, bench.put(Type::u8, mask), *bench.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_TRUE(bench.get<uint32_t>((*got)[0]) == kept);
}

TEST_P(RelationsTest, ProductAndJoin) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(4);
  for (auto [n, m] : {std::pair{0, 3}, {3, 0}, {1, 1}, {1, 700}, {700, 1}, {31, 33}, {257, 20}}) {
    const Rows x = draw(random, static_cast<size_t>(n), 8), y = draw(random, static_cast<size_t>(m), 8);
    const Relation left = put(bench, x), right = put(bench, y);
    auto product = bench.sql->product(left, right, *bench.memory);
    const JoinCondition conditions[] = {{Compare::lt, 2, 0 + 2}, {Compare::eq, 0, 0}};
    auto joined = bench.sql->join_relations(conditions, left, right, *bench.memory);
    ASSERT_TRUE(product.ok()) << product.error().message;
    ASSERT_TRUE(joined.ok()) << joined.error().message;
    ASSERT_EQ(product->size(), 6u);
    Rows from_left, from_right, join_left, join_right;
    for (const Row& r : y)
      for (const Row& l : x) {
        from_left.push_back(l), from_right.push_back(r);
        if (l[2] < r[2] && l[0] == r[0]) join_left.push_back(l), join_right.push_back(r);
      }
    EXPECT_EQ(get(bench, *product), from_left);
    EXPECT_EQ(get(bench, *product, 3), from_right);
    EXPECT_EQ(get(bench, *joined), join_left);
    EXPECT_EQ(get(bench, *joined, 3), join_right);
  }
}

TEST_P(RelationsTest, RefusesWhatDoesNotFitTogether) {
  test::Bench bench(GetParam());
  const Relation one = {bench.put<int32_t>(Type::i32, {1, 2})}, wide = {bench.put<int64_t>(Type::i64, {1, 2})};
  const Relation uneven = {one[0], bench.put<int32_t>(Type::i32, {1, 2, 3})};
  Memory& memory = *bench.memory;
  EXPECT_FALSE(bench.sql->unite(one, wide, memory).ok());
  EXPECT_FALSE(bench.sql->intersect(one, uneven, memory).ok());
  EXPECT_FALSE(bench.sql->distinct(uneven, memory).ok());
  EXPECT_FALSE(bench.sql->distinct({}, memory).ok());
  EXPECT_FALSE(bench.sql->select(one, one[0], memory).ok());
  const uint32_t beyond[] = {1};
  EXPECT_FALSE(bench.sql->project(one, beyond).ok());
  const JoinCondition condition[] = {{Compare::eq, 0, 1}};
  EXPECT_FALSE(bench.sql->join_relations(condition, one, one, memory).ok());
}

INSTANTIATE_TEST_SUITE_P(Targets, RelationsTest, testing::ValuesIn(test::targets));

}  // namespace
}  // namespace rndn::operators::relations_test
