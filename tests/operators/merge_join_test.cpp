// Joins of two ascending columns, which are merged, against the pairs that a loop over runs of equal elements gives.
#include <limits>
#include <random>
#include <set>

#include "tests/operators/support.h"
#include "tests/support/every_case.h"

namespace rndn::operators::merge_join_test {
namespace {

class MergeJoinTest : public testing::TestWithParam<const char*> {};

constexpr size_t tile = 4336;  // elements of both columns that a block merges at a time

template <class T>
struct Sides {
  std::vector<T> left, right;
};

// Elements that rise by 0 .. step at a time, from `first` on; step 0: by one each.
template <class T>
std::vector<T> rising(std::mt19937_64& random, size_t n, uint64_t step, uint64_t first = 0) {
  std::vector<T> v(n);
  for (T& x : v) x = static_cast<T>(first), first += step ? random() % (step + 1) : 1;
  return v;
}

// What was launched last, joined by spaces.
std::string launched(Operators& sql) {
  std::string names;
  for (const Launch& launch : sql.take_launches()) names += std::string(launch.kernel) + " ";
  return names;
}

// Of all tiles, how many pairs those have whose right rows are in it.
template <class T>
uint64_t most_of_a_tile(const Sides<T>& sides) {
  std::vector<uint64_t> pairs((sides.left.size() + sides.right.size()) / tile + 1);
  for (size_t j = 0; j < sides.right.size(); ++j) {
    const auto run = std::equal_range(sides.left.begin(), sides.left.end(), sides.right[j]);
    pairs[(static_cast<size_t>(run.second - sides.left.begin()) + j) / tile] +=
        static_cast<uint64_t>(run.second - run.first);
  }
  return *std::max_element(pairs.begin(), pairs.end());
}

template <class T>
void check(test::Bench& bench, Type type, const Sides<T>& sides) {
  const auto& [x, y] = sides;
  SCOPED_TRACE(fmt::format("{} and {} rows", x.size(), y.size()));
  std::vector<int64_t> left_rows, right_rows;
  for (size_t j = 0; j < y.size(); ++j) {
    const auto run = std::equal_range(x.begin(), x.end(), y[j]);
    for (auto at = run.first; at != run.second; ++at)
      left_rows.push_back(at - x.begin()), right_rows.push_back(static_cast<int64_t>(j));
  }
  Vector left = bench.put(type, x), right = bench.put(type, y);
  left.ascending = right.ascending = true;
  const Compare compare[] = {Compare::eq};
  (void)bench.sql->take_launches();
  const uint64_t held = bench.memory->result_bytes();
  auto pairs = bench.sql->join(compare, {&left, 1}, {&right, 1}, *bench.memory);
  ASSERT_TRUE(pairs.ok()) << pairs.error().message;
  EXPECT_LE(bench.memory->result_bytes() - held, std::max<uint64_t>(64 << 20, 2 * 8 * 4 * (left_rows.size() + 1))) << "beside what the pairs are";
  EXPECT_EQ(bench.get<int64_t>(pairs->left), left_rows);
  EXPECT_EQ(bench.get<int64_t>(pairs->right), right_rows);
  const std::string names = launched(*bench.sql);
  if (x.empty() || y.empty() || x.size() == 1 || y.size() == 1 || x.size() * y.size() <= 1 << 14 || x.size() <= 4)
    return;
  const std::vector<T>& shorter = y.size() < x.size() ? y : x;
  const bool unique = std::set<T>(shorter.begin(), shorter.end()).size() == shorter.size();
  EXPECT_TRUE(names.starts_with("merge_splits_")) << names;
  const auto count = [&](std::string_view kernel) {
    size_t n = 0;
    for (size_t at = names.find(kernel); at != names.npos; at = names.find(kernel, at + 1)) ++n;
    return n;
  };
  // The merge that takes it that elements are unique: where not all tiles run at once.
  const uint64_t longer = std::max(x.size(), y.size()), tiles = (x.size() + y.size() + tile - 1) / tile;
  const bool counted = bench.memory->counts_first(8 * longer), tried = count("merge_join_") == 1;
  if (counted || tiles <= bench.device->info().multiprocessors) EXPECT_FALSE(tried) << names;
  if (!counted && !test::on_gpu() && tiles > 5 * bench.device->info().multiprocessors) EXPECT_TRUE(tried) << names;
  const bool runs = !tried || !unique, uneven = runs && most_of_a_tile(sides) > 16 * 9 * 256;
  const uint64_t room = bench.memory->counts_first(16 * longer) ? counted ? 0 : longer : 2 * longer;
  EXPECT_EQ(count("merge_runs_"), !runs ? 0u : uneven || left_rows.size() <= room ? 1u : 2u) << names;
  EXPECT_EQ(count("merge_ranges_"), uneven ? 1u : 0u) << names;
  EXPECT_EQ(count("merge_expand"), uneven ? 1u : 0u) << names;
  EXPECT_EQ(count("merge_splits_"), runs && tried && y.size() < x.size() ? 2u : 1u) << names;
}

// Of the first `lengths` cases one in `step`.
template <class T>
void check_cases(const char* target, Type type, std::vector<Sides<T>> cases, size_t lengths = 0, uint64_t step = 1) {
  sim::Options checks;
  checks.check_hazards = checks.check_uninitialised = true;
  checks.check_races = std::string_view(target) == "sm_90";  // the barriers are the same on all
  test::Bench bench(target);
  if (!test::on_gpu()) bench.use(std::move(*runtime::open_simulator(target, checks)));
  rndn::test::Sample sample(step);
  for (Sides<T>& sides : cases) {
    if (!sample.has_next() && &sides < cases.data() + lengths) continue;
    std::sort(sides.left.begin(), sides.left.end());
    std::sort(sides.right.begin(), sides.right.end());
    check(bench, type, sides);
    if (testing::Test::HasFailure()) return;
  }
}

template <class T>
void check_all(const char* target, Type type, uint64_t step = 1) {
  std::mt19937_64 random(7);
  const T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  std::vector<Sides<T>> cases;
  for (uint64_t apart : {0, 1, 3})
    for (size_t n : {1, 31, 33, 1023, 1025, 2168, 4335, 4336, 4337})
      for (size_t m : {size_t{2}, size_t{1024}, tile - n % tile, tile - n % tile + 1, 2 * tile - n})
        cases.push_back({rising<T>(random, n, apart), rising<T>(random, m, m % 2 ? 0 : 2)});
  const size_t lengths = cases.size();
  cases.push_back({{}, {1, 2}});
  cases.push_back({{1, 2}, {}});
  // One side before the other; alike; every element of one is in the other; long runs on one side and on both, over several tiles.
  cases.push_back({rising<T>(random, 3000, 0), rising<T>(random, 3000, 0, 3000)});
  cases.push_back({rising<T>(random, 3000, 0, 2999), rising<T>(random, 3000, 0)});
  cases.push_back({rising<T>(random, 9000, 0), rising<T>(random, 9000, 0)});
  cases.push_back({rising<T>(random, 300, 0), rising<T>(random, 15000, 1)});
  cases.push_back({rising<T>(random, 15000, 1), rising<T>(random, 300, 0)});
  cases.push_back({{3, 4, 5, 6, 7}, std::vector<T>(11000, 5)});
  cases.push_back({std::vector<T>(11000, 5), {3, 4, 5, 5, 6, 7}});
  cases.push_back({std::vector<T>(300, 5), std::vector<T>(301, 5)});
  {
    Sides<T> runs;
    for (T key : {T(1), T(2), T(4), T(9)}) {
      runs.left.insert(runs.left.end(), key == 4 ? 9000 : 30, key);
      runs.right.insert(runs.right.end(), key == 4 ? 40 : 5000, key);
    }
    cases.push_back(runs);
    std::swap(runs.left, runs.right);
    cases.push_back(runs);
  }
  // The extremes, alone on one side and on both, where a column ends.
  std::vector<T> middle = rising<T>(random, 200, 0);
  Sides<T> extremes = {middle, middle};
  extremes.left.insert(extremes.left.begin(), {least, least});
  extremes.left.push_back(most);
  extremes.right.insert(extremes.right.end(), {most, most, most});
  cases.push_back(extremes);
  extremes.right.insert(extremes.right.begin(), least);
  std::swap(extremes.left, extremes.right);
  cases.push_back(extremes);
  cases.push_back({std::vector<T>(200, most), std::vector<T>(150, most)});
  cases.push_back({std::vector<T>(200, least), std::vector<T>(150, most)});
  check_cases(target, type, std::move(cases), lengths, step);
}

template <class T>
void check_runs(const char* target, Type type, size_t times_longest) {
  std::mt19937_64 random(11);
  std::vector<Sides<T>> cases;
  // Every key as often on both sides: as many pairs as there is room for at first, more, and more than a block writes of a tile.
  for (size_t times : {2, 3, 19, 21}) {
    Sides<T> even;
    for (size_t k = 0; k < (times < 4 ? 4500 : 2500) / times; ++k)
      for (std::vector<T>* side : {&even.left, &even.right}) side->insert(side->end(), times, static_cast<T>(k));
    cases.push_back(even);
  }
  // By chance: gaps, runs of any length, keys of both signs.
  for (int k = 0; k < 6; ++k) {
    Sides<T> sides;
    for (std::vector<T>* side : {&sides.left, &sides.right}) {
      const size_t n = 200 + random() % 6000;
      T key = static_cast<T>(T(0) - static_cast<T>(random() % 300));
      while (side->size() < n) {
        side->insert(side->end(), random() % 20 ? random() % 4 : random() % 300, key);
        key = static_cast<T>(key + static_cast<T>(1 + random() % 3));
      }
    }
    cases.push_back(sides);
  }
  cases.push_back({std::vector<T>(times_longest, 5), {3, 4, 5, 6, 7}});
  check_cases(target, type, std::move(cases));
}

TEST_P(MergeJoinTest, I64) { check_all<int64_t>(GetParam(), Type::i64); }
TEST_P(MergeJoinTest, I32) { check_all<int32_t>(GetParam(), Type::i32); }
TEST_P(MergeJoinTest, U32) { check_all<uint32_t>(GetParam(), Type::u32, 9); }

TEST_P(MergeJoinTest, Runs) { check_runs<int64_t>(GetParam(), Type::i64, 70000); }
TEST_P(MergeJoinTest, RunsOfI32) { check_runs<int32_t>(GetParam(), Type::i32, rndn::test::in_the_gate(12000, 70000)); }
TEST_P(MergeJoinTest, RunsOfU32) { check_runs<uint32_t>(GetParam(), Type::u32, rndn::test::in_the_gate(12000, 70000)); }

// Each key once on one side, and twice on both.
template <class T>
void check_many_tiles(const char* target, Type type) {
  std::mt19937_64 random(12);
  std::vector<Sides<T>> cases;
  cases.push_back({rising<T>(random, 50000, 0), rising<T>(random, 45000, 2)});
  cases.push_back({rising<T>(random, 45000, 2), rising<T>(random, 44000, 0)});
  cases.push_back({rising<T>(random, 44000, 1), rising<T>(random, 45000, 1)});
  cases.push_back({rising<T>(random, 45000, 1), rising<T>(random, 44000, 1)});
  check_cases(target, type, std::move(cases));
}

TEST_P(MergeJoinTest, MoreTilesThanRunAtOnce) { check_many_tiles<int64_t>(GetParam(), Type::i64); }
TEST_P(MergeJoinTest, MoreTilesOfI32) { check_many_tiles<int32_t>(GetParam(), Type::i32); }
TEST_P(MergeJoinTest, MoreTilesOfU32) { check_many_tiles<uint32_t>(GetParam(), Type::u32); }

// Room for two pairs per row of the longer column, or for one, or, where there is memory for neither, for those that were counted; and few pairs have
// no more than they need where memory is limited.
TEST_P(MergeJoinTest, TakesAsMuchMemoryAsThereIs) {
  constexpr size_t longer = 70000, shorter = 1000, pairs = 40;  // room for one pair per row is more than is left to few
  std::vector<int32_t> x(longer), y(shorter);
  for (size_t k = 0; k < longer; ++k) x[k] = static_cast<int32_t>(k / 2 * 2);
  for (size_t k = 0; k < shorter; ++k) y[k] = static_cast<int32_t>(k / 2 * 2 + (k < pairs / 2 ? 0 : 1));
  const auto check_with = [&](uint64_t most, size_t runs, bool limited = true) {
    test::Bench bench(GetParam());
    if (limited) bench.memory->most_without_length = std::min<uint64_t>(bench.memory->most_without_length, 16 * longer);
    Vector left = bench.put(Type::i32, x), right = bench.put(Type::i32, y);
    left.ascending = right.ascending = true;
    const uint64_t before = bench.memory->result_bytes();
    const bool counted = bench.memory->counts_first(8 * longer);
    bench.memory->most_result = most;
    (void)bench.sql->take_launches();
    const Compare compare[] = {Compare::eq};
    auto made = bench.sql->join(compare, {&left, 1}, {&right, 1}, *bench.memory);
    ASSERT_TRUE(made.ok()) << made.error().message;
    const auto i = bench.get<int64_t>(made->left), j = bench.get<int64_t>(made->right);
    ASSERT_EQ(i.size(), pairs);
    for (size_t k = 0; k < pairs; ++k) EXPECT_EQ(x[static_cast<size_t>(i[k])], y[static_cast<size_t>(j[k])]);
    EXPECT_EQ(bench.memory->result_bytes() - before, 2 * 8 * (limited || counted ? pairs : 2 * longer));
    const std::string names = launched(*bench.sql);
    size_t n = 0;
    for (size_t at = names.find("merge_runs_"); at != names.npos; at = names.find("merge_runs_", at + 1)) ++n;
    EXPECT_EQ(n, counted ? 2 : runs) << names;
  };
  check_with(UINT64_MAX, 1);
  check_with(UINT64_MAX, 1, false);
  check_with(2 * 8 * longer - 1, 1);
  check_with(8 * longer - 1, 2);
}

// Columns that do not lie at multiples of 16 bytes are merged all the same.
TEST_P(MergeJoinTest, ColumnsWithinOthers) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(8);
  const std::vector<int32_t> x = rising<int32_t>(random, 9000, 0), y = rising<int32_t>(random, 9000, 2);
  Vector left = bench.put(Type::i32, x), right = bench.put(Type::i32, y);
  left.data += 4, left.capacity -= 1, right.data += 8, right.capacity -= 2;
  left.ascending = right.ascending = true;
  const Compare compare[] = {Compare::eq};
  (void)bench.sql->take_launches();
  auto pairs = bench.sql->join(compare, {&left, 1}, {&right, 1}, *bench.memory);
  ASSERT_TRUE(pairs.ok()) << pairs.error().message;
  EXPECT_NE(launched(*bench.sql).find("merge"), std::string::npos);
  const auto i = bench.get<int64_t>(pairs->left), j = bench.get<int64_t>(pairs->right);
  size_t expected = 0;
  for (size_t k = 2; k < y.size(); ++k) expected += y[k] >= 1 && y[k] < 9000;
  ASSERT_EQ(i.size(), expected);
  for (size_t k = 0; k < i.size(); ++k) EXPECT_EQ(x[static_cast<size_t>(i[k]) + 1], y[static_cast<size_t>(j[k]) + 2]);
}

// Other ways stay open: by option, for several keys, and where a size is on the device.
TEST_P(MergeJoinTest, OnlyWhereItMay) {
  test::Bench bench(GetParam());
  std::mt19937_64 random(9);
  const std::vector<int32_t> x = rising<int32_t>(random, 500, 0), y = rising<int32_t>(random, 700, 1);
  Vector left = bench.put(Type::i32, x), right = bench.put(Type::i32, y, 5), whole = bench.put(Type::i32, y);
  left.ascending = right.ascending = whole.ascending = true;
  const Compare compare[] = {Compare::eq, Compare::eq};
  const auto names = [&](std::span<const Vector> l, std::span<const Vector> r) {
    (void)bench.sql->take_launches();
    EXPECT_TRUE(bench.sql->join({compare, l.size()}, l, r, *bench.memory).ok());
    return launched(*bench.sql);
  };
  EXPECT_NE(names({&left, 1}, {&whole, 1}).find("merge"), std::string::npos);
  EXPECT_EQ(names({&left, 1}, {&right, 1}).find("merge"), std::string::npos);
  const Vector twice_left[] = {left, left}, twice_right[] = {whole, whole};
  EXPECT_EQ(names(twice_left, twice_right).find("merge"), std::string::npos);
  whole.ascending = false;
  EXPECT_EQ(names({&left, 1}, {&whole, 1}).find("merge"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Targets, MergeJoinTest, testing::ValuesIn(test::targets));

}  // namespace
}  // namespace rndn::operators::merge_join_test
