// Aggregates over groups against the plain loops over the groups' rows, on the simulator with its checks on: every way in which groups are found.
#include "tests/operators/sort_support.h"
#include "tests/support/every_case.h"

namespace rndn::operators {
namespace {

using test::Bench;
using test::Column;
using test::Shape;

struct Wanted {
  Reduce reduce{};
  size_t column = 0;  // of the values
  Type result{};
};

// Every reduction of the column that there is.
std::vector<Wanted> all_of(const std::vector<Column>& values) {
  std::vector<Wanted> out{{Reduce::len, 0, Type::i64}};
  for (size_t c = 0; c < values.size(); ++c)
    for (Reduce reduce : {Reduce::sum, Reduce::avg, Reduce::min, Reduce::max})
      for (Type result : {Type::u8, Type::i8, Type::i16, Type::i32, Type::u32, Type::i64, Type::f32, Type::f64})
        if (can_aggregate(reduce, values[c].type, result)) out.push_back({reduce, c, result});
  return out;
}

struct Expected {
  std::vector<int64_t> integers;
  std::vector<double> floats, magnitudes;  // sum of |x|, for the error of float sums
  std::vector<uint64_t> sizes;
};

Expected expected_of(const Wanted& w, const Column& values, const std::vector<std::vector<int64_t>>& groups) {
  Expected out;
  for (const auto& group : groups) {
    uint64_t sum = 0;
    double total = 0, magnitude = 0, least = INFINITY, most = -INFINITY;
    int64_t smallest = INT64_MAX, largest = INT64_MIN;
    for (int64_t row : group) {
      const auto i = static_cast<size_t>(row);
      if (values.is_float()) {
        const double x = values.floats[i];
        total += x;
        magnitude += std::abs(x);
        if (x < least) least = x;
        if (x > most) most = x;
      } else {
        const int64_t x = values.integers[i];
        sum += static_cast<uint64_t>(x);
        total += static_cast<double>(x);
        magnitude += std::abs(static_cast<double>(x));
        smallest = std::min(smallest, x);
        largest = std::max(largest, x);
      }
    }
    const double n = static_cast<double>(group.size());
    switch (w.reduce) {
      case Reduce::distinct: break;  // DistinctValues
      case Reduce::len: out.integers.push_back(static_cast<int64_t>(group.size())); break;
      case Reduce::sum:
        out.integers.push_back(w.result == Type::i32 ? static_cast<int32_t>(sum) : static_cast<int64_t>(sum));
        out.floats.push_back(total);
        break;
      case Reduce::avg: out.floats.push_back(total / n), magnitude /= n; break;
      case Reduce::min: out.integers.push_back(smallest), out.floats.push_back(least); break;
      case Reduce::max: out.integers.push_back(largest), out.floats.push_back(most); break;
    }
    out.magnitudes.push_back(magnitude);
    out.sizes.push_back(group.size());
  }
  return out;
}

template <class T>
void expect_integers(Bench& bench, const Vector& got, const Expected& expected) {
  std::vector<int64_t> values;
  for (T x : bench.get<T>(got)) values.push_back(x);
  EXPECT_EQ(values, expected.integers);
}
template <class T>
void expect_floats(Bench& bench, const Vector& got, const Expected& expected, Reduce reduce) {
  const std::vector<T> values = bench.get<T>(got);
  ASSERT_EQ(values.size(), expected.floats.size());
  for (size_t j = 0; j < values.size(); ++j) {
    const double x = static_cast<double>(values[j]), y = expected.floats[j];
    if (reduce == Reduce::min || reduce == Reduce::max) {
      EXPECT_TRUE(x == y) << x << " for " << y << " in group " << j;
      continue;
    }
    const double error = static_cast<double>(expected.sizes[j] + 1) * std::numeric_limits<T>::epsilon() *
                         (expected.magnitudes[j] + std::numeric_limits<T>::min());
    const double most = std::numeric_limits<T>::max();
    if (std::isfinite(y) && std::isfinite(expected.magnitudes[j]) && expected.magnitudes[j] < most) {
      EXPECT_LE(std::abs(x - y), error) << x << " for " << y << " in group " << j;
    } else if (std::isnan(y)) {
      EXPECT_TRUE(std::isnan(x)) << j;
    }
  }
}

// Kernels that the call launched.
std::string expect_aggregates(Bench& bench, const std::vector<Column>& keys, const std::vector<Column>& values,
                              const std::vector<Wanted>& wanted, uint64_t spare = 0, bool ascending = false) {
  std::vector<Vector> key_vectors = test::put_all(bench, keys, spare), columns = test::put_all(bench, values, spare);
  key_vectors[0].ascending = ascending;
  std::vector<Aggregate> asked;
  for (const Wanted& w : wanted) asked.push_back({w.reduce, columns[w.column], w.result});
  (void)bench.sql->take_launches();
  auto got = bench.sql->aggregate(key_vectors, asked, bench.sum_flags.address, *bench.memory);
  std::string launched;
  for (const Launch& l : bench.sql->take_launches()) launched += std::string(l.kernel) + " ";
  if (!got.ok()) {
    ADD_FAILURE() << got.error().message;
    return launched;
  }
  const auto groups = test::expected_groups(keys);
  std::vector<int64_t> first;
  for (const auto& group : groups) first.push_back(group[0]);
  EXPECT_EQ(bench.get<int64_t>(got->keys), first);
  EXPECT_EQ(got->results.size(), wanted.size());
  if (::testing::Test::HasFailure()) return launched;
  for (size_t k = 0; k < wanted.size(); ++k) {
    SCOPED_TRACE(fmt::format("{} rows, {} groups, reduction {} of type {} to {}; {}", keys[0].size(), groups.size(),
                             static_cast<int>(wanted[k].reduce), static_cast<int>(values[wanted[k].column].type),
                             static_cast<int>(wanted[k].result), launched));
    const Expected expected = expected_of(wanted[k], values[wanted[k].column], groups);
    const Vector& v = got->results[k];
    EXPECT_EQ(v.type, wanted[k].result);
    switch (v.type) {
      case Type::i8: expect_integers<int8_t>(bench, v, expected); break;
      case Type::i16: expect_integers<int16_t>(bench, v, expected); break;
      case Type::i32: expect_integers<int32_t>(bench, v, expected); break;
      case Type::i64: expect_integers<int64_t>(bench, v, expected); break;
      case Type::f32: expect_floats<float>(bench, v, expected, wanted[k].reduce); break;
      case Type::f64: expect_floats<double>(bench, v, expected, wanted[k].reduce); break;
      default: ADD_FAILURE();
    }
  }
  return launched;
}

class AggregateTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Targets, AggregateTest, ::testing::ValuesIn(test::targets),
                         [](const auto& p) { return p.param; });

constexpr Type value_types[] = {Type::u8, Type::i8, Type::i16, Type::i32, Type::i64, Type::f32, Type::f64};

Column keys_below(uint32_t count, size_t n, uint64_t seed, Type type = Type::i32) {
  std::mt19937_64 random(seed);
  Column c{.type = type, .bounds = true};
  for (size_t i = 0; i < n; ++i) c.integers.push_back(static_cast<int64_t>(random() % count));
  return c;
}

TEST_P(AggregateTest, EveryTypeEveryWay) {
  Bench bench(GetParam());
  rndn::test::Sample sample(3);
  uint64_t seed = 1;
  for (Type type : value_types)
    for (Shape shape : {Shape::random, Shape::extremes}) {
      if (!sample.has_next()) continue;
      const size_t n = 3000;
      const std::vector<Column> values{test::make(type, shape, n, ++seed)};
      const auto wanted = all_of(values);
      Column few = keys_below(3, n, ++seed, Type::i8), many = test::make(Type::i64, Shape::random, n, ++seed);
      Column sorted = test::make(Type::i32, Shape::sorted, n, ++seed);
      EXPECT_NE(expect_aggregates(bench, {few}, values, wanted).find("few"), std::string::npos);
      EXPECT_NE(expect_aggregates(bench, {many}, values, wanted).find("_gather"), std::string::npos);
      const std::string launched = expect_aggregates(bench, {sorted}, values, wanted, 0, true);
      EXPECT_NE(launched.find("segments"), std::string::npos);
      EXPECT_EQ(launched.find("sweep"), std::string::npos);
      const std::vector<Column> short_values{test::make(type, shape, 500, ++seed)};
      EXPECT_NE(expect_aggregates(bench, {test::make(Type::i32, Shape::zipf, 500, ++seed)}, short_values, wanted)
                    .find("cells"),
                std::string::npos);
      if (HasFailure()) return;
    }
}

TEST_P(AggregateTest, EverySizeAndShape) {
  Bench bench(GetParam());
  rndn::test::Sample sample(4);
  uint64_t seed = 100;
  for (size_t n : {0, 1, 31, 32, 33, 1023, 1025, 2047, 2049, 4097, 9000})
    for (Shape shape : test::shapes) {
      Column key = test::make(Type::i32, shape, n, ++seed);
      if (!sample.has_next()) continue;
      key.bounds = n % 2;
      const std::vector<Column> values{test::make(Type::f64, Shape::random, n, ++seed),
                                       test::make(Type::i32, Shape::random, n, ++seed)};
      const std::vector<Wanted> wanted{{Reduce::len, 0, Type::i64},
                                       {Reduce::sum, 0, Type::f64},
                                       {Reduce::avg, 0, Type::f64},
                                       {Reduce::min, 1, Type::i32},
                                       {Reduce::sum, 1, Type::i64}};
      expect_aggregates(bench, {key}, values, wanted, n % 3 * 1000, shape == Shape::sorted || shape == Shape::equal);
      if (HasFailure()) return;
    }
}

// Runs that are longer than tiles, that end with tiles, and that have no values to reduce.
TEST_P(AggregateTest, RunsAcrossTiles) {
  Bench bench(GetParam());
  const size_t n = 20000;
  uint64_t seed = 300;
  for (uint64_t length : {uint64_t{1}, uint64_t{3}, uint64_t{1024}, uint64_t{2048}, uint64_t{2049}, uint64_t{7000}}) {
    Column key{.type = Type::i64};
    for (size_t i = 0; i < n; ++i) key.integers.push_back(static_cast<int64_t>(i / length) * 1000003);
    const std::vector<Column> values{test::make(Type::i64, Shape::random, n, ++seed),
                                     test::make(Type::f32, Shape::distinct, n, ++seed),
                                     test::make(Type::i16, Shape::random, n, ++seed)};
    expect_aggregates(bench, {key}, values, {{Reduce::sum, 0, Type::i64}, {Reduce::max, 0, Type::i64}}, 0, true);
    expect_aggregates(bench, {key}, values, all_of(values), 0, true);
    expect_aggregates(bench, {key}, values, {{Reduce::len, 0, Type::i64}}, 0, true);
    if (HasFailure()) return;
  }
}

// Runs of many lengths side by side, so that lanes and warps without a start stand between others; all rows of tiles, one less and one more; columns that
// begin anywhere, which are not loaded in vectors.
TEST_P(AggregateTest, AscendingRunsOfEveryLength) {
  Bench bench(GetParam());
  uint64_t seed = 800;
  for (const auto& [n, longest] : std::vector<std::pair<size_t, uint64_t>>{
           {2048, 7}, {2047, 300}, {4096, 40}, {4097, 3000}, {6144, 600}, {6143, 1}, {2048, 5000}, {4096, 300}}) {
    std::mt19937_64 random(++seed);
    Column key{.type = seed % 2 ? Type::i32 : Type::i64};
    for (int64_t run = 0; key.integers.size() < n; run += 1 + static_cast<int64_t>(random() % 3))
      for (uint64_t left = 1 + random() % longest; left > 0 && key.integers.size() < n; --left)
        key.integers.push_back(run);
    const std::vector<Column> values{test::make(Type::f64, Shape::random, n, ++seed),
                                     test::make(Type::i16, Shape::random, n, ++seed)};
    const std::vector<Wanted> wanted{{Reduce::sum, 0, Type::f64},
                                     {Reduce::len, 0, Type::i64},
                                     {Reduce::max, 1, Type::i16},
                                     {Reduce::sum, 1, Type::i64}};
    expect_aggregates(bench, {key}, values, wanted, 0, true);
    // The same from the second place on, the first one with a key of its own.
    const auto from_second = [&](const Column& c) {
      Column longer = c;
      if (c.is_float())
        longer.floats.insert(longer.floats.begin(), 0.5);
      else
        longer.integers.insert(longer.integers.begin(), -1);
      Vector v = longer.put(bench);
      v.data += width(c.type), --v.capacity;
      return v;
    };
    const Vector whole = key.put(bench), shifted = from_second(key);
    const Vector price = values[0].put(bench), shifted_price = from_second(values[0]);
    std::vector<std::vector<int64_t>> integers;
    std::vector<std::vector<double>> sums;
    for (const auto& [k, v] :
         std::vector<std::pair<Vector, Vector>>{{whole, price}, {shifted, price}, {whole, shifted_price}}) {
      Vector by = k;
      by.ascending = true;
      const Aggregate asked[] = {{Reduce::sum, v, Type::f64}, {Reduce::len, {}, Type::i64}};
      auto got = bench.sql->aggregate({&by, 1}, asked, bench.sum_flags.address, *bench.memory);
      ASSERT_TRUE(got.ok()) << got.error().message;
      sums.push_back(bench.get<double>(got->results[0]));
      integers.push_back(bench.get<int64_t>(got->results[1]));
      integers.push_back(bench.get<int64_t>(got->keys));
    }
    for (size_t k = 1; k < 3; ++k) {
      EXPECT_EQ(sums[k], sums[0]) << n << " rows";
      EXPECT_EQ(integers[2 * k], integers[0]) << n << " rows";
      EXPECT_EQ(integers[2 * k + 1], integers[1]) << n << " rows";
    }
    if (HasFailure()) return;
  }
}

TEST_P(AggregateTest, SeveralKeyColumns) {
  Bench bench(GetParam());
  uint64_t seed = 400;
  for (size_t n : {size_t{1000}, size_t{5000}}) {
    const Column flag = keys_below(3, n, ++seed, Type::i8), status = keys_below(2, n, ++seed, Type::i8),
                 year = keys_below(7, n, ++seed), price = test::make(Type::f64, Shape::zipf, n, ++seed),
                 floats = test::make(Type::f32, Shape::extremes, n, ++seed),
                 id = test::make(Type::i64, Shape::random, n, ++seed);
    const std::vector<Column> values{test::make(Type::f64, Shape::distinct, n, ++seed),
                                     test::make(Type::f64, Shape::distinct, n, ++seed)};
    const std::vector<Wanted> wanted{{Reduce::sum, 0, Type::f64},
                                     {Reduce::sum, 1, Type::f64},
                                     {Reduce::avg, 0, Type::f64},
                                     {Reduce::len, 0, Type::i64}};
    for (const auto& keys : std::vector<std::vector<Column>>{
             {flag, status}, {flag, year, status}, {flag, floats}, {price, floats, id}, {id, id, price, flag}}) {
      expect_aggregates(bench, keys, values, wanted, n % 3 * 10);
      if (HasFailure()) return;
    }
  }
}

// Tables of 128, 64 and 32 threads, and groups that do not fit.
TEST_P(AggregateTest, EveryNumberOfGroups) {
  Bench bench(GetParam());
  uint64_t seed = 500;
  const size_t n = 6000;
  const std::vector<Column> values{test::make(Type::f64, Shape::distinct, n, ++seed)};
  const std::vector<Wanted> wanted{{Reduce::sum, 0, Type::f64}, {Reduce::len, 0, Type::i64}};
  std::string kernels;
  for (uint32_t groups : {1u, 2u, 17u, 18u, 36u, 72u, 80u, 1000u, 1024u})
    kernels += expect_aggregates(bench, {keys_below(groups, n, ++seed)}, values, wanted);
  for (const char* kernel : {"few128", "few64", "few32", "segments"})
    EXPECT_NE(kernels.find(kernel), std::string::npos) << kernel << " of " << kernels;
}

// Distinct values beside other reductions, with keys and values that fit into one word and that do not.
TEST_P(AggregateTest, DistinctValues) {
  Bench bench(GetParam());
  uint64_t seed = 700;
  for (size_t n : {1, 33, 1000, 5000})
    for (Shape shape : {Shape::zipf, Shape::equal, Shape::distinct, Shape::extremes})
      for (const auto& keys : std::vector<std::vector<Column>>{
               {keys_below(5, n, ++seed)},
               {test::make(Type::i64, Shape::zipf, n, ++seed), test::make(Type::i64, Shape::extremes, n, ++seed)}}) {
        const Type type = seed % 2 ? Type::i64 : Type::f64;
        const Column counted = test::make(type, shape, n, ++seed),
                     other = test::make(Type::i64, Shape::random, n, ++seed);
        SCOPED_TRACE(fmt::format("{} rows, {} columns, shape {}", n, keys.size(), static_cast<int>(shape)));
        const auto vectors = test::put_all(bench, keys);
        const Vector values = counted.put(bench), summed = other.put(bench);
        const Aggregate wanted[] = {
            {Reduce::distinct, values, Type::i64}, {Reduce::sum, summed, Type::i64}, {Reduce::len, {}, Type::i64}};
        auto got = bench.sql->aggregate(vectors, wanted, bench.sum_flags.address, *bench.memory);
        ASSERT_TRUE(got.ok()) << got.error().message;
        std::vector<int64_t> first, distinct, sums, sizes;
        for (const auto& group : test::expected_groups(keys)) {
          first.push_back(group[0]);
          sizes.push_back(static_cast<int64_t>(group.size()));
          uint64_t sum = 0;
          std::vector<size_t> seen;  // one row per value
          for (int64_t row : group) {
            const auto i = static_cast<size_t>(row);
            sum += static_cast<uint64_t>(other.integers[i]);
            seen.push_back(i);
          }
          const auto less = [&](size_t x, size_t y) { return counted.compare(x, y) < 0; };
          std::sort(seen.begin(), seen.end(), less);
          const auto same = [&](size_t x, size_t y) { return counted.compare(x, y) == 0; };
          distinct.push_back(std::unique(seen.begin(), seen.end(), same) - seen.begin());
          sums.push_back(static_cast<int64_t>(sum));
        }
        ASSERT_EQ(bench.get<int64_t>(got->keys), first);
        ASSERT_EQ(bench.get<int64_t>(got->results[0]), distinct);
        ASSERT_EQ(bench.get<int64_t>(got->results[1]), sums);
        ASSERT_EQ(bench.get<int64_t>(got->results[2]), sizes);
      }
}

// Float sums are the same bits whatever the order in which blocks run, and when a run is repeated.
TEST_P(AggregateTest, FloatSumsRepeat) {
  Bench bench(GetParam());
  const size_t n = 8000;
  Column value = test::make(Type::f64, Shape::random, n, 600);
  for (double& x : value.floats) x = std::ldexp(x, static_cast<int>(std::fmod(std::abs(x), 40)));
  for (uint32_t groups : {3u, 500u}) {
    const Column key = keys_below(groups, n, 601);
    std::vector<double> before;
    for (int k = 0; k < 3; ++k) {
      const Vector keys = key.put(bench), values = value.put(bench);
      const Aggregate wanted{Reduce::sum, values, Type::f64};
      auto got = bench.sql->aggregate({&keys, 1}, {&wanted, 1}, bench.sum_flags.address, *bench.memory);
      ASSERT_TRUE(got.ok());
      const auto sums = bench.get<double>(got->results[0]);
      if (k > 0) {
        EXPECT_EQ(sums, before);
      }
      before = sums;
    }
  }
}

}  // namespace
}  // namespace rndn::operators
