// order, group, unique against std::stable_sort, on the simulator with its checks on.
#include <set>

#include "tests/operators/sort_support.h"
#include "tests/support/every_case.h"

namespace rndn::operators::sort_test {
namespace {

using test::Bench;
using test::Column;
using test::Shape;

constexpr size_t sizes[] = {0, 1, 31, 32, 33, 1023, 1024, 1025, 2047, 2048, 2049, 4097};
constexpr Type types[] = {Type::u8, Type::i8, Type::i16, Type::i32, Type::u32, Type::i64, Type::f32, Type::f64};

std::string describe(const std::vector<Column>& columns, const std::vector<uint8_t>& ascending = {}) {
  std::string s = fmt::format("{} rows:", columns[0].size());
  for (size_t c = 0; c < columns.size(); ++c)
    s += fmt::format(" type {}{}{}{}", static_cast<int>(columns[c].type), columns[c].ranks.empty() ? "" : " ranked",
                     columns[c].bounds ? " bounded" : "", ascending.empty() || ascending[c] ? "" : " descending");
  return s;
}

void expect_order(Bench& bench, const std::vector<Column>& columns, const std::vector<uint8_t>& ascending,
                  uint64_t spare = 0) {
  SCOPED_TRACE(describe(columns, ascending));
  const std::vector<Vector> vectors = test::put_all(bench, columns, spare);
  std::unique_ptr<bool[]> directions(new bool[ascending.size()]);
  std::copy(ascending.begin(), ascending.end(), directions.get());
  auto got = bench.sql->order(vectors, {directions.get(), ascending.size()}, *bench.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(got->type, Type::i64);
  ASSERT_EQ(bench.get<int64_t>(*got), test::expected_order(columns, ascending));
}

void expect_groups(Bench& bench, const std::vector<Column>& columns, uint64_t spare = 0) {
  SCOPED_TRACE(describe(columns));
  const std::vector<Vector> vectors = test::put_all(bench, columns, spare);
  auto got = bench.sql->group(vectors, *bench.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  const auto cells = test::expected_groups(columns);
  ASSERT_EQ(got->rows.count, cells.size());
  std::vector<int64_t> keys;
  for (const auto& cell : cells) keys.push_back(cell[0]);
  ASSERT_EQ(bench.get<int64_t>(got->keys), keys);
  ASSERT_EQ(bench.get(got->rows), cells);
}

void expect_unique(Bench& bench, const Column& column, uint64_t spare = 0) {
  SCOPED_TRACE(describe({column}));
  auto got = bench.sql->unique(column.put(bench, spare), *bench.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  std::vector<int64_t> rows;
  for (const auto& cell : test::expected_groups({column})) rows.push_back(cell[0]);
  std::sort(rows.begin(), rows.end());
  ASSERT_EQ(bench.get<int64_t>(*got), rows);
}

class SortTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Targets, SortTest, ::testing::ValuesIn(test::targets), [](const auto& p) { return p.param; });

TEST_P(SortTest, EveryTypeInBothDirections) {
  Bench bench(GetParam());
  rndn::test::Sample sample(3);
  uint64_t seed = 1;
  for (Type type : types)
    for (int k = 0; k < 4; ++k) {  // in one launch and in many; random and extreme values
      const Column c = test::make(type, k % 2 ? Shape::extremes : Shape::random, k / 2 ? 2500 : 777, ++seed);
      if (!sample.has_next()) continue;
      expect_order(bench, {c}, {1});
      expect_order(bench, {c}, {0});
      expect_groups(bench, {c});
      expect_unique(bench, c);
      if (HasFatalFailure()) return;
    }
}

TEST_P(SortTest, EverySizeAndShape) {
  Bench bench(GetParam());
  rndn::test::Sample sample(4);
  uint64_t seed = 100;
  for (size_t n : sizes)
    for (Shape shape : test::shapes) {
      Column c = test::make(Type::i32, shape, n, ++seed);
      if (!sample.has_next()) continue;
      c.bounds = n % 2;
      expect_order(bench, {c}, {static_cast<uint8_t>(seed % 2)}, n % 3 * 1000);
      expect_groups(bench, {c}, n % 3 * 1000);
      expect_unique(bench, c, n % 3 * 1000);
      if (HasFatalFailure()) return;
    }
}

TEST_P(SortTest, SeveralColumns) {
  Bench bench(GetParam());
  uint64_t seed = 200;
  for (size_t n : {size_t{33}, size_t{1024}, size_t{4097}}) {
    const Column flag = test::make(Type::u8, Shape::zipf, n, ++seed),
                 date = test::make(Type::i32, Shape::zipf, n, ++seed),
                 price = test::make(Type::f64, Shape::zipf, n, ++seed),
                 id = test::make(Type::i64, Shape::random, n, ++seed), text = test::make_text(n, 100, ++seed),
                 floats = test::make(Type::f32, Shape::extremes, n, ++seed);
    const std::vector<std::vector<Column>> tables = {{flag, text},        {date, flag},
                                                     {text, price, date}, {price, floats},
                                                     {flag, id, date},    {price, flag, id, text, floats}};
    for (const auto& columns : tables) {
      std::vector<uint8_t> ascending;
      for (size_t c = 0; c < columns.size(); ++c) ascending.push_back((++seed >> c) & 1);
      expect_order(bench, columns, ascending, seed % 2 * 100);
      expect_groups(bench, columns);
      if (HasFatalFailure()) return;
    }
  }
}

// So that the first sort of a few rows makes the code for all others.
TEST(SmallSort, HasOneKernelForAllColumns) {
  Bench bench("sm_90");
  std::vector<Column> columns = {test::make_text(100, 10, 1)};
  for (Type type : {Type::u8, Type::i32, Type::i64, Type::f32, Type::f64})
    columns.push_back(test::make(type, Shape::zipf, 100, 2));
  std::set<std::string, std::less<>> launched;
  for (size_t c = 0; c < columns.size(); ++c) {
    const std::vector<Column> some = {columns[c], columns[(c + 1) % columns.size()]};
    expect_order(bench, some, {1, 0});
    expect_groups(bench, c % 2 ? some : std::vector<Column>{columns[c]});
    for (const Launch& l : bench.sql->take_launches()) launched.emplace(l.kernel);
  }
  EXPECT_EQ(launched, (std::set<std::string, std::less<>>{"small_groups", "small_order"}));
}

// In one launch there are at most 8 columns; keys are bounded and compared 16 columns at a time.
TEST_P(SortTest, ManyColumns) {
  Bench bench(GetParam());
  for (size_t count : {size_t{9}, size_t{20}}) {
    std::vector<Column> columns;
    for (size_t c = 0; c < count; ++c)
      columns.push_back(test::make(c % 2 ? Type::i64 : Type::u8, c % 3 ? Shape::extremes : Shape::equal, 300, c));
    columns.push_back(test::make(Type::i32, Shape::random, 300, 99));
    std::vector<uint8_t> ascending(columns.size(), 1);
    ascending[1] = 0;
    expect_order(bench, columns, ascending);
    columns.pop_back();
    expect_groups(bench, columns);
    if (HasFatalFailure()) return;
  }
}

TEST_P(SortTest, BitonicGivesTheSame) {
  Options options;
  options.sort = Options::Sort::bitonic;
  Bench bench(GetParam(), options);
  uint64_t seed = 300;
  for (size_t n : {size_t{1}, size_t{1024}, size_t{1025}, size_t{4097}}) {
    const Column flag = test::make(Type::u8, Shape::zipf, n, ++seed),
                 price = test::make(Type::f64, Shape::extremes, n, ++seed),
                 id = test::make(Type::i64, Shape::random, n, ++seed),
                 few = test::make(Type::i32, Shape::equal, n, ++seed);
    expect_order(bench, {flag}, {0}, 100);
    expect_order(bench, {price, flag, id}, {1, 0, 1});
    expect_groups(bench, {flag, few});
    expect_unique(bench, price);
    if (HasFatalFailure()) return;
  }
}

TEST_P(SortTest, NoRowsOnTheDevice) {
  Bench bench(GetParam());
  const Column empty = test::make(Type::i32, Shape::random, 0, 1), text = test::make_text(0, 1, 1);
  for (uint64_t spare : {1, 2048, 2049, 100000}) {
    expect_order(bench, {empty, text}, {1, 0}, spare);
    expect_groups(bench, {empty, text}, spare);
    expect_unique(bench, empty, spare);
  }
}

TEST_P(SortTest, UniqueInEveryCell) {
  Bench bench(GetParam());
  std::mt19937_64 random(5);
  // Sizes of the cells; empty ones at the ends and between.
  const std::vector<std::vector<size_t>> layouts = {
      {}, {0}, {0, 0, 0}, {1}, {5}, {0, 3, 0, 0, 1000, 1, 40, 0}, {300, 5000, 2}};
  for (const auto& layout : layouts) {
    const size_t n = std::accumulate(layout.begin(), layout.end(), size_t{0});
    const Column values = test::make(Type::i32, Shape::zipf, n, random());
    Cells cells{.elements = values.put(bench), .count = layout.size()};
    std::vector<uint64_t> offsets{0};
    std::vector<std::vector<int64_t>> expected;
    for (size_t size : layout) {
      std::map<int64_t, int64_t> first;
      for (size_t i = 0; i < size; ++i) first.emplace(values.integers[offsets.back() + i], static_cast<int64_t>(i));
      expected.emplace_back();
      for (const auto& [value, at] : first) expected.back().push_back(at);
      std::sort(expected.back().begin(), expected.back().end());
      offsets.push_back(offsets.back() + size);
    }
    cells.offsets = *bench.memory->result(offsets.size() * 8);
    ASSERT_TRUE(bench.device->copy_to_device(cells.offsets, offsets.data(), offsets.size() * 8).ok());
    auto got = bench.sql->unique_cells(cells, *bench.memory);
    ASSERT_TRUE(got.ok()) << got.error().message;
    ASSERT_EQ(bench.get(*got), expected) << n << " elements in " << layout.size() << " cells";
  }
}

TEST_P(SortTest, RanksOfStrings) {
  Bench bench(GetParam());
  std::mt19937_64 random(6);
  std::vector<std::vector<std::string>> sets = {
      {},
      {""},
      {"b", "a", "b"},
      {"", std::string(1, '\0'), "a", std::string("a\0", 2), std::string("a\0b", 3), "a"},
      {"\xff", "\x7f", "\x80", "~", "A"},
      {"same", "same", "same"}};
  std::vector<std::string> customers, long_ones;
  for (int i = 0; i < 3000; ++i) customers.push_back(fmt::format("Customer#{:09}", random() % 2000));
  for (int i = 0; i < 300; ++i) {
    std::string s(random() % 60, 'x');
    for (char& c : s)
      if (random() % 8 == 0) c = static_cast<char>('a' + random() % 26);
    long_ones.push_back(s);
    long_ones.push_back(s.substr(0, s.size() / 2));
  }
  sets.push_back(customers);
  sets.push_back(long_ones);
  // A common prefix of many words, texts that differ late, some of them early too, and in trailing zeros.
  std::vector<std::string> late;
  for (int i = 0; i < 700; ++i)
    late.push_back(std::string(random() % 3 ? 200 : 199, 'p') + std::string(random() % 40, random() % 2 ? 'q' : '\0') +
                   (random() % 2 ? "" : "end"));
  sets.push_back(late);
  for (std::string& s : late)
    if (random() % 4 == 0) s.replace(random() % s.size(), 1, "\xff");
  sets.push_back(late);
  sets.push_back({std::string(100000, 'x') + "a", "x", std::string(100000, 'x') + "b", std::string(100000, 'x') + "a"});
  for (const auto& set : sets) {
    std::map<std::string, uint32_t> places;
    for (const std::string& s : set) places[s] = 0;
    uint32_t next = 0;
    for (auto& [s, place] : places) place = next++;
    std::vector<uint32_t> expected;
    for (const std::string& s : set) expected.push_back(places[s]);
    std::vector<int64_t> first(places.size(), -1);
    for (size_t i = set.size(); i-- > 0;) first[expected[i]] = static_cast<int64_t>(i);
    auto got = bench.sql->rank(bench.put(set), *bench.memory);
    ASSERT_TRUE(got.ok()) << got.error().message;
    ASSERT_EQ(bench.get<uint32_t>(got->of), expected) << set.size() << " strings";
    ASSERT_EQ(bench.get<int64_t>(got->first), first) << set.size() << " strings";
  }
}

TEST_P(SortTest, ManyTilesTwice) {
  Bench bench(GetParam());
  const size_t n = 100000;
  const Column wide = test::make(Type::i64, Shape::random, n, 1), narrow = test::make(Type::i32, Shape::zipf, n, 2);
  for (int round = 0; round < 2; ++round) {
    expect_order(bench, {narrow, wide}, {0, 1}, 5000);
    expect_groups(bench, {narrow}, 5000);
    expect_unique(bench, narrow, 5000);
    if (HasFatalFailure()) return;
  }
}

// Rows that are said to ascend are grouped as they lie: no sort is launched.
TEST_P(SortTest, AscendingRowsAreNotSorted) {
  Bench bench(GetParam());
  for (Type type : {Type::i32, Type::u32, Type::i64})
    for (size_t n : {size_t{1}, size_t{2048}, size_t{2049}, size_t{5000}, size_t{40000}})
      for (uint64_t spare : {0, 700})
        for (int64_t run : {1, 4, 3000}) {
          Column column{.type = type};
          for (size_t i = 0; i < n; ++i)
            column.integers.push_back(static_cast<int64_t>(i) / run - (type == Type::u32 ? 0 : 100));
          SCOPED_TRACE(describe({column}) + fmt::format(", runs of {}, {} spare", run, spare));
          Vector v = column.put(bench, spare);
          v.ascending = true;
          bench.sql->take_launches();
          auto groups = bench.sql->group({&v, 1}, *bench.memory);
          ASSERT_TRUE(groups.ok()) << groups.error().message;
          auto unique = bench.sql->unique(v, *bench.memory);
          ASSERT_TRUE(unique.ok()) << unique.error().message;
          if (n + spare > 2048) {
            for (const Launch& launch : bench.sql->take_launches()) {
              EXPECT_FALSE(launch.kernel.starts_with("pack") || launch.kernel.starts_with("sweep")) << launch.kernel;
            }
          }
          const auto cells = test::expected_groups({column});
          ASSERT_EQ(bench.get(groups->rows), cells);
          std::vector<int64_t> first;
          for (const auto& cell : cells) first.push_back(cell[0]);
          ASSERT_EQ(bench.get<int64_t>(groups->keys), first);
          ASSERT_EQ(bench.get<int64_t>(*unique), first);
        }
}

TEST(SortErrors, TooManyRowsAndNoColumns) {
  Bench bench("sm_86");
  Vector v{.type = Type::u8, .data = 256, .capacity = uint64_t{1} << 32};
  const bool ascending[] = {true};
  auto ordered = bench.sql->order({&v, 1}, ascending, *bench.memory);
  ASSERT_FALSE(ordered.ok());
  EXPECT_NE(ordered.error().message.find("4294967294"), std::string::npos) << ordered.error().message;
  EXPECT_FALSE(bench.sql->group({}, *bench.memory).ok());
}

}  // namespace
}  // namespace rndn::operators::sort_test
