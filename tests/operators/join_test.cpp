// join against a map over the equal columns with the other predicates tested per pair.
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "tests/operators/support.h"

namespace rndn::operators::join_test {
namespace {

// A column on the host: integers exact, floats as doubles.
struct Column {
  Type type{};
  std::vector<int64_t> ints;
  std::vector<double> floats;
  bool is_float() const { return type == Type::f32 || type == Type::f64; }
  size_t size() const { return is_float() ? floats.size() : ints.size(); }
};
Column ints(Type type, std::vector<int64_t> values) { return {type, std::move(values), {}}; }
Column floats(Type type, std::vector<double> values) { return {type, {}, std::move(values)}; }

struct Case {
  std::vector<Compare> compare;
  std::vector<Column> left, right;
  bool bounds = false;  // say the least and greatest element
  uint64_t spare = 0;
  std::string what;
};

template <class T>
Vector put_as(test::Bench& bench, const Column& c, uint64_t spare) {
  std::vector<T> values;
  if (c.is_float())
    for (double v : c.floats) values.push_back(static_cast<T>(v));
  else
    for (int64_t v : c.ints) values.push_back(static_cast<T>(v));
  return bench.put<T>(c.type, values, spare);
}
Vector put(test::Bench& bench, const Column& c, bool bounds, uint64_t spare) {
  Vector v;
  switch (c.type) {
    case Type::u8: v = put_as<uint8_t>(bench, c, spare); break;
    case Type::i8: v = put_as<int8_t>(bench, c, spare); break;
    case Type::i16: v = put_as<int16_t>(bench, c, spare); break;
    case Type::i32: v = put_as<int32_t>(bench, c, spare); break;
    case Type::u32: v = put_as<uint32_t>(bench, c, spare); break;
    case Type::i64: v = put_as<int64_t>(bench, c, spare); break;
    case Type::f32: v = put_as<float>(bench, c, spare); break;
    case Type::f64: v = put_as<double>(bench, c, spare); break;
  }
  if (bounds && !c.is_float() && c.size()) {
    v.min = *std::min_element(c.ints.begin(), c.ints.end());
    v.max = *std::max_element(c.ints.begin(), c.ints.end());
  }
  return v;
}

template <class T>
bool holds(Compare compare, T a, T b) {
  switch (compare) {
    case Compare::eq: return a == b;
    case Compare::neq: return a != b;
    case Compare::lt: return a < b;
    case Compare::gt: return a > b;
    case Compare::leq: return a <= b;
    case Compare::geq: break;
  }
  return a >= b;
}

using PairList = std::vector<std::pair<int64_t, int64_t>>;  // right, left

PairList expected(const Case& c) {
  const auto rows = [](const std::vector<Column>& columns) {
    size_t n = columns[0].size();
    for (const Column& k : columns)
      if (k.size() != 1) n = k.size();
    return n;
  };
  const auto at = [](const Column& k, size_t row) { return k.size() == 1 ? 0 : row; };
  const auto key = [&](const std::vector<Column>& columns, size_t row, std::vector<int64_t>& out) {
    out.clear();
    for (size_t k = 0; k < columns.size(); ++k) {
      if (c.compare[k] != Compare::eq) continue;
      const Column& column = columns[k];
      if (!column.is_float()) {
        out.push_back(column.ints[at(column, row)]);
        continue;
      }
      const double v = column.floats[at(column, row)];
      if (std::isnan(v)) return false;
      out.push_back(std::bit_cast<int64_t>(v == 0 ? 0.0 : v));
    }
    return true;
  };
  std::map<std::vector<int64_t>, std::vector<size_t>> table;
  std::vector<int64_t> k;
  for (size_t i = 0; i < rows(c.left); ++i)
    if (key(c.left, i, k)) table[k].push_back(i);
  PairList out;
  for (size_t j = 0; j < rows(c.right); ++j) {
    if (!key(c.right, j, k)) continue;
    auto found = table.find(k);
    if (found == table.end()) continue;
    for (size_t i : found->second) {
      bool all = true;
      for (size_t p = 0; p < c.compare.size(); ++p) {
        const Column &x = c.left[p], &y = c.right[p];
        all = all && (x.is_float() ? holds(c.compare[p], x.floats[at(x, i)], y.floats[at(y, j)])
                                   : holds(c.compare[p], x.ints[at(x, i)], y.ints[at(y, j)]));
      }
      if (all) out.push_back({static_cast<int64_t>(j), static_cast<int64_t>(i)});
    }
  }
  return out;
}

void check(test::Bench& bench, const Case& c) {
  std::vector<Vector> left, right;
  for (const Column& k : c.left) left.push_back(put(bench, k, c.bounds, k.size() == 1 ? 0 : c.spare));
  for (const Column& k : c.right) right.push_back(put(bench, k, c.bounds, k.size() == 1 ? 0 : c.spare));
  auto got = bench.sql->join(c.compare, left, right, *bench.memory);
  ASSERT_TRUE(got.ok()) << c.what << ": " << got.error().message;
  const std::vector<int64_t> l = bench.get<int64_t>(got->left), r = bench.get<int64_t>(got->right);
  ASSERT_EQ(l.size(), r.size());
  PairList pairs;
  for (size_t i = 0; i < l.size(); ++i) pairs.push_back({r[i], l[i]});
  const PairList wanted = expected(c);
  ASSERT_EQ(pairs.size(), wanted.size()) << c.what;
  for (size_t i = 0; i < pairs.size(); ++i)
    ASSERT_EQ(pairs[i], wanted[i]) << c.what << ": pair " << i << " of " << pairs.size();
}

using Random = std::mt19937_64;

std::vector<int64_t> distinct(Random& random, size_t n, int64_t from = 0, int64_t step = 1) {
  std::vector<int64_t> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = from + static_cast<int64_t>(i) * step;
  std::shuffle(out.begin(), out.end(), random);
  return out;
}
std::vector<int64_t> draw(Random& random, size_t n, int64_t low, int64_t range) {
  std::vector<int64_t> out(n);
  for (int64_t& v : out) v = low + static_cast<int64_t>(random() % static_cast<uint64_t>(range));
  return out;
}
std::vector<double> draw_floats(Random& random, size_t n, int range) {
  std::vector<double> out(n);
  for (double& v : out) v = 0.25 * (static_cast<double>(random() % static_cast<unsigned>(range)) - range / 2);
  return out;
}

const std::vector<size_t> small_sizes = {0, 1, 31, 32, 33, 1023, 1024, 1025};

class JoinTest : public testing::TestWithParam<const char*> {};

TEST_P(JoinTest, UniqueKeysOfEverySize) {
  test::Bench bench(GetParam());
  Random random(1);
  for (size_t n : small_sizes)
    for (size_t m : small_sizes) {
      const int64_t range = static_cast<int64_t>(2 * n + 1);
      const Column left = ints(Type::i32, distinct(random, n, -5, 2)),
                   right = ints(Type::i32, draw(random, m, -7, 2 * range));
      for (bool bounds : {false, true}) {
        check(bench, {{Compare::eq}, {left}, {right}, bounds, 0, fmt::format("{} x {}", n, m)});
        if (HasFatalFailure()) return;
      }
    }
}

TEST_P(JoinTest, RepeatedKeysOfEverySize) {
  test::Bench bench(GetParam());
  Random random(2);
  for (size_t n : {1, 31, 33, 1025})
    for (size_t m : small_sizes) {
      const int64_t range = static_cast<int64_t>(n / 3 + 1);
      const Column left = ints(Type::i32, draw(random, n, -5, range)),
                   right = ints(Type::i32, draw(random, m, -7, range + 4));
      for (bool bounds : {false, true}) {
        check(bench, {{Compare::eq}, {left}, {right}, bounds, 0, fmt::format("{} x {}", n, m)});
        if (HasFatalFailure()) return;
      }
    }
}

TEST_P(JoinTest, EveryTypeOfKey) {
  test::Bench bench(GetParam());
  Random random(3);
  const std::pair<Type, int64_t> types[] = {{Type::u8, 0},           {Type::i8, -100},
                                            {Type::i16, -20000},     {Type::i32, -2000000000},
                                            {Type::u32, 4294960000}, {Type::i64, -9000000000000000000}};
  for (auto [type, low] : types)
    for (int64_t step : {1, 3})
      for (bool bounds : {false, true}) {
        const int64_t most = type == Type::u8 || type == Type::i8 ? 60 : 900;
        Column left = ints(type, distinct(random, static_cast<size_t>(most), low, step));
        const Column right = ints(type, draw(random, 1500, low, most * step));
        check(bench, {{Compare::eq}, {left}, {right}, bounds, 0, fmt::format("type {}", static_cast<int>(type))});
        left.ints = draw(random, 500, low, most);
        check(bench,
              {{Compare::eq}, {left}, {right}, bounds, 0, fmt::format("type {}, repeated", static_cast<int>(type))});
        if (HasFatalFailure()) return;
      }
  for (Type type : {Type::f32, Type::f64}) {
    const Column left = floats(type, draw_floats(random, 400, 900)),
                 right = floats(type, draw_floats(random, 1500, 1000));
    check(bench, {{Compare::eq}, {left}, {right}, false, 0, "floats"});
  }
}

TEST_P(JoinTest, SeveralKeyColumns) {
  test::Bench bench(GetParam());
  Random random(4);
  // Types and the number of values per column; keys that pack in 32 and 64 bits, with and without bounds, and keys that do not.
  const std::vector<std::vector<std::pair<Type, int64_t>>> shapes = {
      {{Type::i16, 20}, {Type::u8, 20}},
      {{Type::i32, 20}, {Type::i32, 20}},
      {{Type::i64, 20}, {Type::i64, 20}},
      {{Type::f64, 20}, {Type::i32, 20}},
      {{Type::f32, 20}, {Type::i16, 20}, {Type::i8, 3}},
      {{Type::i64, 8}, {Type::f64, 8}, {Type::u32, 8}},
      {{Type::i64, 5}, {Type::i32, 5}, {Type::u8, 5}, {Type::f64, 5}},
      {{Type::i64, 3}, {Type::i64, 4}, {Type::i32, 5}, {Type::f32, 4}, {Type::i64, 3}}};
  for (const auto& shape : shapes)
    for (bool bounds : {false, true})
      for (size_t n : {150, 700}) {
        Case c{.compare = std::vector<Compare>(shape.size(), Compare::eq), .bounds = bounds, .what = "columns"};
        for (auto [type, range] : shape) {
          for (auto* side : {&c.left, &c.right}) {
            const size_t rows = side == &c.left ? n : 1100;
            if (type == Type::f32 || type == Type::f64)
              side->push_back(floats(type, draw_floats(random, rows, static_cast<int>(range))));
            else
              side->push_back(
                  ints(type, draw(random, rows, type == Type::u32 || type == Type::u8 ? 3 : -range / 2, range)));
          }
        }
        c.what = fmt::format("{} columns, {} rows, bounds {}", shape.size(), n, bounds);
        check(bench, c);
        if (HasFatalFailure()) return;
      }
}

TEST_P(JoinTest, MixedPredicates) {
  test::Bench bench(GetParam());
  Random random(5);
  using enum Compare;
  const std::vector<std::vector<Compare>> mixes = {{eq, neq},    {neq, eq},      {lt, eq},
                                                   {gt, eq, eq}, {eq, leq, geq}, {eq, lt, neq, gt}};
  for (const auto& mix : mixes)
    for (Type type : {Type::i32, Type::i64, Type::f64, Type::i8, Type::u32})
      for (bool unique : {false, true}) {
        Case c{.compare = mix, .bounds = unique};
        bool first = true;
        for (Compare k : mix) {
          const bool is_key = k == eq;
          for (auto* side : {&c.left, &c.right}) {
            const size_t rows = side == &c.left ? 600 : 800;
            if (is_key)
              side->push_back(ints(Type::i32, unique && first && side == &c.left
                                                  ? distinct(random, rows)
                                                  : draw(random, rows, 0, first ? 600 : 2)));
            else if (type == Type::f64)
              side->push_back(floats(type, draw_floats(random, rows, 9)));
            else
              side->push_back(ints(type, draw(random, rows, type == Type::u32 ? 4294967280 : -4, 9)));
          }
          if (is_key) first = false;
        }
        c.what = fmt::format("{} predicates, type {}, unique {}", mix.size(), static_cast<int>(type), unique);
        check(bench, c);
        if (HasFatalFailure()) return;
      }
}

TEST_P(JoinTest, WithoutEquality) {
  test::Bench bench(GetParam());
  Random random(6);
  using enum Compare;
  for (Compare compare : {neq, lt, gt, leq, geq})
    for (auto [n, m] : {std::pair{0, 5}, {1, 1}, {1, 3000}, {3000, 1}, {31, 33}, {100, 100}, {257, 70}}) {
      const auto rows_left = static_cast<size_t>(n), rows_right = static_cast<size_t>(m);
      check(bench, {{compare},
                    {ints(Type::i64, draw(random, rows_left, -50, 100))},
                    {ints(Type::i64, draw(random, rows_right, -50, 100))},
                    false,
                    0,
                    "integers"});
      check(bench, {{compare},
                    {floats(Type::f32, draw_floats(random, rows_left, 9))},
                    {floats(Type::f32, draw_floats(random, rows_right, 9))},
                    false,
                    0,
                    "floats"});
      if (HasFatalFailure()) return;
    }
  // A result many times as large as was assumed.
  check(bench, {{geq},
                {ints(Type::i32, std::vector<int64_t>(300, 1))},
                {ints(Type::i32, std::vector<int64_t>(200, 0))},
                false,
                0,
                "all pairs"});
}

TEST_P(JoinTest, OneElementStandsForAll) {
  test::Bench bench(GetParam());
  Random random(7);
  using enum Compare;
  const std::vector<int64_t> many = draw(random, 2000, 0, 40);
  for (bool bounds : {false, true}) {
    check(bench, {{eq}, {ints(Type::i32, {7})}, {ints(Type::i32, many)}, bounds, 0, "one left"});
    check(bench, {{eq}, {ints(Type::i32, many)}, {ints(Type::i32, {7})}, bounds, 0, "one right"});
    check(bench, {{eq, eq},
                  {ints(Type::i32, draw(random, 500, 0, 600)), ints(Type::i64, {5})},
                  {ints(Type::i32, many), ints(Type::i64, draw(random, 2000, 4, 3))},
                  bounds,
                  0,
                  "one in a left column"});
    check(bench, {{eq, lt},
                  {ints(Type::i32, draw(random, 500, 0, 600)), ints(Type::i64, draw(random, 500, 0, 10))},
                  {ints(Type::i32, many), ints(Type::i64, {6})},
                  bounds,
                  0,
                  "one in a right column"});
    check(bench, {{eq, lt},
                  {ints(Type::i32, {3}), ints(Type::i64, draw(random, 500, 0, 10))},
                  {ints(Type::i32, many), ints(Type::i64, {6})},
                  bounds,
                  0,
                  "one key for all left rows"});
  }
}

TEST_P(JoinTest, ManyToMany) {
  test::Bench bench(GetParam());
  Random random(8);
  check(bench, {{Compare::eq},
                {ints(Type::i32, std::vector<int64_t>(700, 3))},
                {ints(Type::i32, std::vector<int64_t>(300, 3))},
                false,
                0,
                "all equal"});
  check(bench, {{Compare::eq},
                {ints(Type::i32, std::vector<int64_t>(100000, 3))},
                {ints(Type::i32, {1, 3, 2, 3})},
                true,
                0,
                "all equal, many left"});
  // Zipf: few keys that are very frequent and many that are rare, on both sides.
  const auto zipf = [&](size_t n) {
    std::vector<int64_t> out(n);
    for (int64_t& v : out) v = static_cast<int64_t>(1.0 / (static_cast<double>(random() % 100000 + 1) / 100000.0));
    return out;
  };
  for (bool bounds : {false, true}) {
    check(bench, {{Compare::eq}, {ints(Type::i64, zipf(400))}, {ints(Type::i64, zipf(1500))}, bounds, 0, "zipf"});
    check(bench, {{Compare::eq, Compare::neq},
                  {ints(Type::i64, zipf(400)), ints(Type::i8, draw(random, 400, 0, 3))},
                  {ints(Type::i64, zipf(1500)), ints(Type::i8, draw(random, 1500, 0, 3))},
                  bounds,
                  0,
                  "zipf with a residual"});
  }
}

TEST_P(JoinTest, Large) {
  test::Bench bench(GetParam());
  Random random(9);
  for (bool bounds : {false, true}) {
    check(bench, {{Compare::eq},
                  {ints(Type::i64, distinct(random, 100000, 1))},
                  {ints(Type::i64, draw(random, 100000, -1000, 120000))},
                  bounds,
                  0,
                  "foreign key"});
    check(bench, {{Compare::eq},
                  {ints(Type::i32, draw(random, 100000, 0, 50000))},
                  {ints(Type::i32, draw(random, 30000, 0, 60000))},
                  bounds,
                  0,
                  "two of each"});
  }
  check(bench, {{Compare::eq},
                {ints(Type::i64, distinct(random, 50000, 1, 1000000007))},
                {ints(Type::i64, draw(random, 100000, 0, 1000))},
                false,
                0,
                "no match"});
}

TEST_P(JoinTest, Extremes) {
  test::Bench bench(GetParam());
  using L64 = std::numeric_limits<int64_t>;
  using L32 = std::numeric_limits<int32_t>;
  Random random(10);
  const auto padded = [&](std::vector<int64_t> values, size_t n) {  // enough of them for a table
    for (int64_t v = 1000; values.size() < n; ++v) values.push_back(v);
    return values;
  };
  for (bool bounds : {false, true}) {
    check(bench, {{Compare::eq},
                  {ints(Type::i64, padded({L64::max(), L64::min(), 0, -1}, 300))},
                  {ints(Type::i64, padded({-1, L64::min(), L64::max(), 0, 1, L64::max()}, 300))},
                  bounds,
                  0,
                  "i64"});
    check(bench, {{Compare::eq},
                  {ints(Type::i32, padded({L32::max(), L32::min(), 0, -1}, 300))},
                  {ints(Type::i32, padded({-1, L32::min(), L32::max(), 0, 1, L32::max()}, 300))},
                  bounds,
                  0,
                  "i32"});
    check(bench, {{Compare::eq},
                  {ints(Type::u32, padded({0xFFFFFFFF, 0, 0x80000000}, 300))},
                  {ints(Type::u32, padded({0, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF}, 300))},
                  bounds,
                  0,
                  "u32"});
    // Right keys outside the left range by a multiple of 2^32.
    std::vector<int64_t> far = padded({5, 6}, 300);
    for (int64_t& v : far) v += int64_t{1} << 32;
    check(bench,
          {{Compare::eq}, {ints(Type::i64, padded({5, 6, 7}, 300))}, {ints(Type::i64, far)}, bounds, 0, "far away"});
  }
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (Type type : {Type::f32, Type::f64}) {
    std::vector<double> left = {0.0, nan, inf, nan, -inf, 1.5}, right = {-0.0, nan, -inf, inf, 0.0, 1.5, nan};
    for (size_t k = 0; k < 300; ++k)
      left.push_back(static_cast<double>(k + 10)), right.push_back(static_cast<double>(k % 50 + 290));
    check(bench, {{Compare::eq}, {floats(type, left)}, {floats(type, right)}, false, 0, "unique but for NaN"});
    left.push_back(-0.0);
    check(bench, {{Compare::eq}, {floats(type, left)}, {floats(type, right)}, false, 0, "two zeros"});
    check(bench, {{Compare::eq, Compare::eq},
                  {floats(type, left), floats(type, left)},
                  {floats(type, right), floats(type, right)},
                  false,
                  0,
                  "two columns"});
    for (Compare other : {Compare::neq, Compare::lt, Compare::geq}) {
      std::vector<int64_t> ones(left.size(), 1), one(right.size(), 1);
      check(bench, {{Compare::eq, other},
                    {ints(Type::i32, ones), floats(type, left)},
                    {ints(Type::i32, one), floats(type, right)},
                    false,
                    0,
                    "NaN in a residual"});
    }
  }
}

TEST_P(JoinTest, SizesOnTheDevice) {
  test::Bench bench(GetParam());
  Random random(11);
  for (bool bounds : {false, true})
    for (auto [n, m] : {std::pair{0, 0}, {0, 900}, {900, 0}, {500, 1500}})
      for (bool unique : {false, true}) {
        const auto rows_left = static_cast<size_t>(n), rows_right = static_cast<size_t>(m);
        const Column left = ints(Type::i32, unique ? distinct(random, rows_left) : draw(random, rows_left, 0, 100));
        const Column right = ints(Type::i32, draw(random, rows_right, 0, 700));
        const std::string what = fmt::format("{} x {}, unique {}, bounds {}", n, m, unique, bounds);
        check(bench, {{Compare::eq}, {left}, {right}, bounds, 3000, what});
        check(bench, {{Compare::eq, Compare::lt}, {left, left}, {right, right}, bounds, 3000, what + " lt"});
        check(bench, {{Compare::lt},
                      {left},
                      {ints(Type::i32, draw(random, rows_right / 10, 0, 50))},
                      bounds,
                      3000,
                      what + " only lt"});
        if (HasFatalFailure()) return;
      }
}

TEST_P(JoinTest, AlternativesAgreeAndStateDoesNotLeak) {
  for (Options::Join how : {Options::Join::loop, Options::Join::hash}) {
    Options options;
    options.join = how;
    test::Bench bench(GetParam(), options);
    Random random(12);
    for (int again = 0; again < 3; ++again) {
      for (size_t n : {1, 5, 300}) {
        check(bench, {{Compare::eq},
                      {ints(Type::i32, draw(random, n, 0, 100))},
                      {ints(Type::i32, draw(random, 400, 0, 100))},
                      again == 1,
                      0,
                      "repeated"});
        check(bench, {{Compare::eq},
                      {ints(Type::i32, distinct(random, n))},
                      {ints(Type::i32, draw(random, 400, 0, 100))},
                      again == 1,
                      0,
                      "unique"});
      }
    }
    for (const Launch& l : bench.sql->take_launches())
      EXPECT_EQ(l.kernel.find("join_loop") != l.kernel.npos, how == Options::Join::loop) << l.kernel;
  }
}

TEST_P(JoinTest, TextInOrderOfItsRanks) {
  test::Bench bench(GetParam());
  Random random(13);
  const std::vector<uint32_t> ranks = {4, 0, 3, 1, 2};
  const Vector table = bench.put(Type::u32, ranks);
  std::vector<uint32_t> x(300), y(400);
  for (uint32_t& v : x) v = static_cast<uint32_t>(random() % 5);
  for (uint32_t& v : y) v = static_cast<uint32_t>(random() % 5);
  Vector left = bench.put(Type::u32, x), right = bench.put(Type::u32, y);
  left.ranks = right.ranks = table.data;
  const Compare compare[] = {Compare::lt};
  auto got = bench.sql->join(compare, {&left, 1}, {&right, 1}, *bench.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  std::vector<int64_t> l, r;
  for (size_t j = 0; j < y.size(); ++j)
    for (size_t i = 0; i < x.size(); ++i)
      if (ranks[x[i]] < ranks[y[j]]) l.push_back(static_cast<int64_t>(i)), r.push_back(static_cast<int64_t>(j));
  EXPECT_EQ(bench.get<int64_t>(got->left), l);
  EXPECT_EQ(bench.get<int64_t>(got->right), r);
}

TEST_P(JoinTest, RefusesWhatDoesNotFitTogether) {
  test::Bench bench(GetParam());
  const Vector three = bench.put<int32_t>(Type::i32, {1, 2, 3}), two = bench.put<int32_t>(Type::i32, {1, 2});
  const Vector wide = bench.put<int64_t>(Type::i64, {1, 2, 3});
  const Compare eq[] = {Compare::eq, Compare::eq};
  const Vector uneven[] = {three, two}, even[] = {three, three};
  EXPECT_FALSE(bench.sql->join(eq, uneven, even, *bench.memory).ok());
  EXPECT_FALSE(bench.sql->join(eq, even, uneven, *bench.memory).ok());
  EXPECT_FALSE(bench.sql->join({eq, 1}, {&three, 1}, {&wide, 1}, *bench.memory).ok());
  EXPECT_FALSE(bench.sql->join({eq, 1}, even, even, *bench.memory).ok());
  EXPECT_FALSE(bench.sql->join({}, {}, {}, *bench.memory).ok());
}

INSTANTIATE_TEST_SUITE_P(Targets, JoinTest, testing::ValuesIn(test::targets));

}  // namespace
}  // namespace rndn::operators::join_test
