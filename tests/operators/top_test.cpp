// top against the beginning of std::stable_sort, and which way it took, by the kernels that ran.
#include <set>

#include "tests/operators/sort_support.h"
#include "tests/support/every_case.h"

namespace rndn::operators {
namespace {

using test::Bench;
using test::Column;
using test::Shape;

using Kernels = std::set<std::string>;

// Runs `top` and compares; gives the kernels, by their names up to the types.
Kernels expect_top(Bench& bench, const std::vector<Column>& columns, const std::vector<uint8_t>& ascending,
                   uint64_t most, uint64_t spare = 0) {
  SCOPED_TRACE(fmt::format("{} of {} rows, {} columns", most, columns[0].size(), columns.size()));
  const std::vector<Vector> vectors = test::put_all(bench, columns, spare);
  const std::unique_ptr<bool[]> directions(new bool[ascending.size()]);
  std::copy(ascending.begin(), ascending.end(), directions.get());
  auto got = bench.sql->top(vectors, {directions.get(), ascending.size()}, most, *bench.memory);
  Kernels kernels;
  for (const Launch& launch : bench.sql->take_launches())
    kernels.emplace(launch.kernel.substr(0, launch.kernel.rfind('_')));
  EXPECT_TRUE(got.ok()) << got.error().message;
  if (!got.ok()) return kernels;
  std::vector<int64_t> expected = test::expected_order(columns, ascending);
  expected.resize(std::min<uint64_t>(expected.size(), most));
  EXPECT_EQ(bench.get<int64_t>(*got), expected);
  if (!expected.empty()) {
    EXPECT_LE(got->min, *std::min_element(expected.begin(), expected.end()));
    EXPECT_GE(got->max, *std::max_element(expected.begin(), expected.end()));
  }
  return kernels;
}

bool sorted_all(const Kernels& kernels) {
  return std::any_of(kernels.begin(), kernels.end(), [](const std::string& k) { return k.starts_with("pack"); });
}

class TopTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Targets, TopTest, ::testing::ValuesIn(test::targets), [](const auto& p) { return p.param; });

TEST_P(TopTest, EverySizeShapeAndNumber) {
  rndn::test::Sample sample(3);
  for (const Options::Top top : {Options::Top::automatic, Options::Top::select}) {
    Bench bench(GetParam(), {.top = top});
    uint64_t seed = 0;
    for (const size_t n : {0, 1, 90, 2049, 4500})
      for (const Shape shape : test::shapes) {
        bench.memory = std::make_unique<test::TestMemory>(*bench.device);
        ++seed;
        if (!sample.has_next()) continue;
        const Column c = test::make(seed % 2 ? Type::f64 : Type::i32, shape, n, seed);
        for (const uint64_t most : {uint64_t{seed % 2}, uint64_t{10}, uint64_t{n} + 2})
          expect_top(bench, {c}, {static_cast<uint8_t>(most % 2)}, most, seed % 3 ? 0 : 700);
        if (HasFailure()) return;
      }
  }
}

// Equal rows in the first columns, so that the others and the row numbers decide; text, directions, NaN.
TEST_P(TopTest, SeveralColumns) {
  Bench bench(GetParam());
  const size_t n = 30000;
  const Column flag = test::make(Type::u8, Shape::zipf, n, 1), price = test::make(Type::f64, Shape::extremes, n, 2),
               id = test::make(Type::i64, Shape::random, n, 3), text = test::make_text(n, 100, 4),
               same = test::make(Type::i32, Shape::equal, n, 5), day = test::make(Type::i16, Shape::zipf, n, 6);
  const std::vector<std::vector<Column>> tables = {{flag, text},       {text},      {same},
                                                   {same, price, day}, {price, id}, {flag, day, text, same, id}};
  for (const auto& columns : tables)
    for (const uint8_t first : {0, 1}) {
      std::vector<uint8_t> ascending;
      for (size_t c = 0; c < columns.size(); ++c) ascending.push_back((c + first) % 2);
      const Kernels kernels = expect_top(bench, columns, ascending, 100);
      EXPECT_FALSE(sorted_all(kernels));
      EXPECT_TRUE(kernels.count("top_filter"));
    }
}

// Few samples tell too little of many rows: a second round selects among what the first left.
TEST_P(TopTest, Rounds) {
  Bench bench(GetParam());
  for (const auto& [n, most, rounds] : {std::tuple{20000, 10, 1}, {20000, 400, 1}, {300000, 100, 1}, {700000, 10, 2}}) {
    const Kernels kernels = expect_top(bench, {test::make(Type::i64, Shape::random, static_cast<size_t>(n), 7)}, {1},
                                       static_cast<uint64_t>(most));
    EXPECT_FALSE(sorted_all(kernels)) << n << " " << most;
    EXPECT_EQ(kernels.count("top_filter_list"), rounds - 1u) << n << " " << most;
  }
  EXPECT_TRUE(sorted_all(expect_top(bench, {test::make(Type::i64, Shape::random, 5000, 8)}, {1}, 1500)))
      << "too many to be put in order by one launch";
  // Another round would not leave fewer: of 3,000 rows, and of about as many that a first one leaves.
  for (const size_t n : {size_t{3000}, size_t{150000}}) {
    const Kernels kernels = expect_top(bench, {test::make(Type::i64, Shape::random, n, 9)}, {1}, 1000);
    EXPECT_FALSE(sorted_all(kernels)) << n;
    EXPECT_EQ(kernels.count("top_filter"), n > 3000 ? 1u : 0u) << n;
    EXPECT_EQ(kernels.count("top_filter_list"), 0u) << n;
  }
  Bench other(GetParam(), {.top = Options::Top::sort});
  EXPECT_TRUE(sorted_all(expect_top(other, {test::make(Type::i64, Shape::random, 20000, 8)}, {1}, 10)));
}

// The samples are no more than rows that somebody can find out about: all of them first, or all of them last. Then everything is sorted.
TEST_P(TopTest, MisledBySamples) {
  Bench bench(GetParam());
  const uint64_t n = 100000;
  for (const bool first : {true, false}) {
    Column c = test::make(Type::i32, Shape::distinct, n, 1);
    for (int64_t& x : c.integers) x += static_cast<int64_t>(n);
    for (uint32_t shift = 8; shift <= 11; ++shift)
      for (uint64_t i = 0; i < uint64_t{1} << shift; ++i) {
        const uint64_t start = i * n >> shift, end = (i + 1) * n >> shift;
        uint32_t hash = static_cast<uint32_t>(i) * 0x9E3779B1u;
        hash = (hash ^ hash >> 15) * 0x85EBCA77u;
        c.integers[start + (hash * (end - start) >> 32)] += first ? -static_cast<int64_t>(n) : static_cast<int64_t>(n);
      }
    const Kernels kernels = expect_top(bench, {c}, {1}, first ? 1000 : 10);
    EXPECT_TRUE(kernels.count("top_filter"));
    EXPECT_TRUE(sorted_all(kernels)) << first;
  }
}

}  // namespace
}  // namespace rndn::operators
