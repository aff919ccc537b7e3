// Groups by a hash table against the plain meaning, on the simulator with its checks on. Groups come in the order of their first rows.
#include "tests/operators/sort_support.h"

namespace rndn::operators {
namespace {

using test::Bench;
using test::Column;
using test::Shape;

std::vector<std::vector<int64_t>> by_first_row(std::vector<std::vector<int64_t>> groups) {
  std::sort(groups.begin(), groups.end());
  return groups;
}

// Kernels that the call launched.
std::string expect_groups(Bench& bench, const std::vector<Column>& columns, uint64_t spare = 0) {
  SCOPED_TRACE(fmt::format("{} rows, {} columns, type {}", columns[0].size(), columns.size(),
                           static_cast<int>(columns[0].type)));
  (void)bench.sql->take_launches();
  auto got = bench.sql->group(test::put_all(bench, columns, spare), *bench.memory);
  std::string launched;
  for (const Launch& l : bench.sql->take_launches()) launched += std::string(l.kernel) + " ";
  EXPECT_TRUE(got.ok());
  if (!got.ok()) return launched;
  const auto cells = by_first_row(test::expected_groups(columns));
  std::vector<int64_t> keys;
  for (const auto& cell : cells) keys.push_back(cell[0]);
  EXPECT_EQ(bench.get<int64_t>(got->keys), keys);
  EXPECT_EQ(bench.get(got->rows), cells);
  return launched;
}

class HashGroupTest : public ::testing::TestWithParam<const char*> {
 protected:
  static Options options() { return {.group = Options::Group::hash}; }
};
INSTANTIATE_TEST_SUITE_P(Targets, HashGroupTest, ::testing::ValuesIn(test::targets),
                         [](const auto& p) { return p.param; });

TEST_P(HashGroupTest, EveryTypeAndShape) {
  Bench bench(GetParam(), options());
  uint64_t seed = 1;
  for (Type type : {Type::u8, Type::i8, Type::i16, Type::i32, Type::u32, Type::i64, Type::f32, Type::f64})
    for (Shape shape : test::shapes) {
      Column c = test::make(type, shape, 1500, ++seed);
      c.bounds = seed % 2;
      EXPECT_NE(expect_groups(bench, {c}).find("group_enter"), std::string::npos);
      if (HasFailure()) return;
    }
}

TEST_P(HashGroupTest, EverySize) {
  Bench bench(GetParam(), options());
  uint64_t seed = 100;
  for (size_t n : {0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 4097, 10000})
    for (Shape shape : {Shape::random, Shape::equal, Shape::distinct, Shape::zipf}) {
      expect_groups(bench, {test::make(Type::i64, shape, n, ++seed)}, n % 3 * 500);
      if (HasFailure()) return;
    }
}

TEST_P(HashGroupTest, SeveralColumns) {
  Bench bench(GetParam(), options());
  uint64_t seed = 200;
  for (size_t n : {size_t{33}, size_t{3000}}) {
    const Column flag = test::make(Type::u8, Shape::zipf, n, ++seed),
                 date = test::make(Type::i32, Shape::zipf, n, ++seed),
                 price = test::make(Type::f64, Shape::extremes, n, ++seed),
                 id = test::make(Type::i64, Shape::extremes, n, ++seed), text = test::make_text(n, 100, ++seed),
                 floats = test::make(Type::f32, Shape::extremes, n, ++seed);
    for (const auto& columns : std::vector<std::vector<Column>>{
             {flag, text}, {price, floats}, {date, flag, id}, {price, flag, id, text, floats}}) {
      expect_groups(bench, columns, seed % 2 * 100);
      if (HasFailure()) return;
    }
  }
}

// Rows of one key that differ from those of another in the high bits only, and the other way round: tags and places collide.
TEST_P(HashGroupTest, KeysOfFewBits) {
  Bench bench(GetParam(), options());
  for (uint32_t shift : {0u, 16u, 31u, 32u, 48u, 56u}) {
    Column c{.type = Type::i64};
    for (size_t i = 0; i < 4000; ++i) c.integers.push_back(static_cast<int64_t>(uint64_t{i * 7 % 200} << shift));
    expect_groups(bench, {c});
    if (HasFailure()) return;
  }
}

TEST_P(HashGroupTest, TableThatIsTooSmallFirst) {
  Options small = options();
  small.hash_slots = 64;
  Bench bench(GetParam(), small);
  const auto count = [](const std::string& text) {
    size_t n = 0;
    for (size_t at = text.find("group_enter"); at != text.npos; at = text.find("group_enter", at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count(expect_groups(bench, {test::make(Type::i64, Shape::random, 3000, 1)})), 2u);
  EXPECT_EQ(count(expect_groups(bench, {test::make(Type::i32, Shape::distinct, 3000, 1)})), 2u);
  EXPECT_EQ(count(expect_groups(bench, {test::make(Type::i64, Shape::equal, 3000, 1)})), 1u);
}

TEST_P(HashGroupTest, OrderedGroupsAscend) {
  Options ordered = options();
  ordered.ordered = true;
  Bench bench(GetParam(), ordered);
  const Column c = test::make(Type::i64, Shape::zipf, 3000, 1);
  auto got = bench.sql->group(test::put_all(bench, {c}), *bench.memory);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(bench.get(got->rows), test::expected_groups({c}));
}

TEST_P(HashGroupTest, Aggregates) {
  Bench bench(GetParam(), options());
  const size_t n = 5000;
  const Column key = test::make(Type::i64, Shape::zipf, n, 1), value = test::make(Type::i64, Shape::random, n, 2);
  const Vector keys = key.put(bench), values = value.put(bench);
  const Aggregate wanted[] = {{Reduce::sum, values, Type::i64}, {Reduce::len, {}, Type::i64}};
  (void)bench.sql->take_launches();
  auto got = bench.sql->aggregate({&keys, 1}, wanted, bench.sum_flags.address, *bench.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(bench.sql->take_launches().at(0).kernel, "group_enter_d");
  std::vector<int64_t> first, sums, sizes;
  for (const auto& cell : by_first_row(test::expected_groups({key}))) {
    first.push_back(cell[0]);
    uint64_t sum = 0;
    for (int64_t row : cell) sum += static_cast<uint64_t>(value.integers[static_cast<size_t>(row)]);
    sums.push_back(static_cast<int64_t>(sum));
    sizes.push_back(static_cast<int64_t>(cell.size()));
  }
  EXPECT_EQ(bench.get<int64_t>(got->keys), first);
  EXPECT_EQ(bench.get<int64_t>(got->results[0]), sums);
  EXPECT_EQ(bench.get<int64_t>(got->results[1]), sizes);
}

}  // namespace
}  // namespace rndn::operators
