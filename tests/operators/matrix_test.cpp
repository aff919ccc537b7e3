// The operators with key columns, in every alternative, on every shape of data, with one to five columns of mixed types, against their plain meaning.
//
// Other tests of this folder look for what is special to an operator, and for `like`, selections, products and joins by other comparisons than `eq`.
#include <array>
#include <bit>

#include "tests/operators/sort_support.h"

namespace rndn::operators {
namespace {

using test::Bench;
using test::Column;
using test::Shape;

struct Alternatives {
  const char* name;
  Options options;
};
const Alternatives alternatives[] = {
    {"automatic", {}},
    {"radix, sort, hash",
     {.sort = Options::Sort::radix,
      .group = Options::Group::sort,
      .top = Options::Top::select,
      .join = Options::Join::hash,
      .member = Options::Member::hash}},
    {"bitonic, hash, loop",
     {.sort = Options::Sort::bitonic,
      .group = Options::Group::hash,
      .top = Options::Top::sort,
      .join = Options::Join::loop,
      .member = Options::Member::loop}},
};

// The types of the key columns; `text`: codes of one dictionary with ranks.
constexpr auto text = static_cast<Type>(100);
const std::vector<std::vector<Type>> tables = {
    {Type::i64},
    {Type::f64},
    {text},
    {Type::u8, text},
    {Type::i32, Type::f32, Type::i16},
    {text, Type::u32, Type::f64, Type::i8},
    {Type::f64, Type::u8, Type::i64, text, Type::f32},
};

Column make_column(Type type, Shape shape, size_t n, uint64_t seed) {
  if (type != text) return test::make(type, shape, n, seed);
  constexpr uint32_t entries = 200;
  Column c = test::make(Type::u32, shape, n, seed), dictionary = test::make_text(0, entries, 5);
  std::vector<int64_t> codes(entries);  // by rank, so that a sorted column is sorted by its texts
  for (uint32_t code = 0; code < entries; ++code) codes[dictionary.ranks[code]] = code;
  for (int64_t& x : c.integers) x = codes[static_cast<size_t>(x) % entries];
  c.ranks = dictionary.ranks;
  return c;
}

using Table = std::vector<Column>;
Table make_table(const std::vector<Type>& types, Shape shape, size_t n, uint64_t seed) {
  Table out;
  for (size_t c = 0; c < types.size(); ++c) out.push_back(make_column(types[c], shape, n, seed + c));
  return out;
}
// m rows, every second one of `from`; in the order of the tables.
Table mixed(const Table& from, const Table& other, size_t m) {
  Table out;
  const size_t n = from[0].size();
  for (size_t c = 0; c < from.size(); ++c) {
    Column column = from[c];
    column.integers.clear(), column.floats.clear();
    for (size_t i = 0; i < m && n; ++i) {
      const Column& side = i % 2 ? other[c] : from[c];
      if (column.is_float())
        column.floats.push_back(side.floats[i * n / m]);
      else
        column.integers.push_back(side.integers[i * n / m]);
    }
    out.push_back(column);
  }
  return out;
}

// A row's values such that equal rows are equal: -0 is 0, every NaN the same.
using Row = std::vector<int64_t>;
constexpr int64_t nan_value = 0x7FF8000000000000;
int64_t value_of(double x) { return std::isnan(x) ? nan_value : std::bit_cast<int64_t>(x == 0 ? 0.0 : x); }
Row row_of(const Table& table, size_t i) {
  Row row;
  for (const Column& c : table) row.push_back(c.is_float() ? value_of(c.floats[i]) : c.integers[i]);
  return row;
}
bool has_nan(const Table& table, size_t i) {
  return std::any_of(table.begin(), table.end(), [&](const Column& c) { return c.is_nan(i); });
}

std::vector<int64_t> read(Bench& bench, const Vector& v) {
  const auto all = [&]<class T>(T) {
    std::vector<int64_t> out;
    for (T x : bench.get<T>(v))
      if constexpr (std::is_floating_point_v<T>)
        out.push_back(value_of(static_cast<double>(x)));
      else
        out.push_back(static_cast<int64_t>(x));
    return out;
  };
  switch (v.type) {
    case Type::u8: return all(uint8_t{});
    case Type::i8: return all(int8_t{});
    case Type::i16: return all(int16_t{});
    case Type::i32: return all(int32_t{});
    case Type::u32: return all(uint32_t{});
    case Type::i64: return all(int64_t{});
    case Type::f32: return all(float{});
    case Type::f64: break;
  }
  return all(double{});
}
void expect_rows(Bench& bench, const Result<Relation>& got, const std::vector<Row>& expected, const char* what) {
  ASSERT_TRUE(got.ok()) << what << ": " << got.error().message;
  for (size_t c = 0; c < got->size(); ++c) {
    std::vector<int64_t> column;
    for (const Row& row : expected) column.push_back(row[c]);
    ASSERT_EQ(read(bench, (*got)[c]), column) << what << ", column " << c;
  }
}
void expect_numbers(Bench& bench, const Result<Vector>& got, const std::vector<int64_t>& expected, const char* what) {
  ASSERT_TRUE(got.ok()) << what << ": " << got.error().message;
  ASSERT_EQ(read(bench, *got), expected) << what;
}

// order, top, group, aggregate and unique.
void check_sorting(Bench& bench, const Options& options, const Table& table, uint64_t spare) {
  const std::vector<Vector> columns = test::put_all(bench, table, spare);
  for (uint8_t first : {1, 0}) {
    std::vector<uint8_t> ascending;
    for (size_t c = 0; c < table.size(); ++c) ascending.push_back((c + first) % 2);
    const std::unique_ptr<bool[]> directions(new bool[table.size()]);
    std::copy(ascending.begin(), ascending.end(), directions.get());
    const std::span<const bool> up(directions.get(), table.size());
    std::vector<int64_t> rows = test::expected_order(table, ascending);
    expect_numbers(bench, bench.sql->order(columns, up, *bench.memory), rows, "order");
    constexpr size_t most = 40;
    rows.resize(std::min(rows.size(), most));
    expect_numbers(bench, bench.sql->top(columns, up, most, *bench.memory), rows, "top");
  }
  auto cells = test::expected_groups(table);
  std::vector<int64_t> first;
  for (const auto& cell : cells) first.push_back(cell[0]);
  if (table.size() == 1) {
    std::vector<int64_t> rows = first;
    std::sort(rows.begin(), rows.end());
    expect_numbers(bench, bench.sql->unique(columns[0], *bench.memory), rows, "unique");
  }
  if (options.group == Options::Group::hash)
    std::sort(cells.begin(), cells.end()), std::sort(first.begin(), first.end());
  auto groups = bench.sql->group(columns, *bench.memory);
  ASSERT_TRUE(groups.ok()) << groups.error().message;
  ASSERT_EQ(bench.get(groups->rows), cells);
  ASSERT_EQ(bench.get<int64_t>(groups->keys), first);

  Column values{.type = Type::i64};
  std::vector<int64_t> sizes, sums;
  for (size_t i = 0; i < table[0].size(); ++i) values.integers.push_back(static_cast<int64_t>(i * i) - 5000);
  for (const auto& cell : cells) {
    sizes.push_back(static_cast<int64_t>(cell.size()));
    sums.push_back(0);
    for (int64_t row : cell) sums.back() += values.integers[static_cast<size_t>(row)];
  }
  const Aggregate wanted[] = {{Reduce::len, {}, Type::i64}, {Reduce::sum, values.put(bench, spare), Type::i64}};
  auto aggregates = bench.sql->aggregate(columns, wanted, bench.sum_flags.address, *bench.memory);
  ASSERT_TRUE(aggregates.ok()) << aggregates.error().message;
  ASSERT_EQ(bench.get<int64_t>(aggregates->keys), first);
  ASSERT_EQ(bench.get<int64_t>(aggregates->results[0]), sizes);
  ASSERT_EQ(bench.get<int64_t>(aggregates->results[1]), sums);
}

// join, member, index_of and the relational operators. NaN equals nothing.
void check_probing(Bench& bench, const Table& left, const Table& right, uint64_t spare) {
  const size_t n = left[0].size(), m = right[0].size();
  const Relation l = test::put_all(bench, left, spare), r = test::put_all(bench, right, spare);
  std::map<Row, std::vector<int64_t>> in_left, in_right;
  for (size_t i = 0; i < n; ++i)
    if (!has_nan(left, i)) in_left[row_of(left, i)].push_back(static_cast<int64_t>(i));
  for (size_t j = 0; j < m; ++j)
    if (!has_nan(right, j)) in_right[row_of(right, j)].push_back(static_cast<int64_t>(j));

  std::vector<int64_t> left_rows, right_rows;
  for (size_t j = 0; j < m; ++j)
    if (auto found = in_left.find(row_of(right, j)); found != in_left.end() && !has_nan(right, j))
      for (int64_t i : found->second) left_rows.push_back(i), right_rows.push_back(static_cast<int64_t>(j));
  const std::vector<Compare> compare(left.size(), Compare::eq);
  auto pairs = bench.sql->join(compare, l, r, *bench.memory);
  ASSERT_TRUE(pairs.ok()) << pairs.error().message;
  ASSERT_EQ(bench.get<int64_t>(pairs->left), left_rows);
  ASSERT_EQ(bench.get<int64_t>(pairs->right), right_rows);

  if (left.size() == 1) {
    std::vector<int64_t> members, places;
    for (size_t i = 0; i < n; ++i) {
      auto found = has_nan(left, i) ? in_right.end() : in_right.find(row_of(left, i));
      members.push_back(found != in_right.end());
      places.push_back(found != in_right.end() ? found->second[0] : static_cast<int64_t>(m));
    }
    expect_numbers(bench, bench.sql->member(l[0], r[0], *bench.memory), members, "member");
    expect_numbers(bench, bench.sql->index_of(l[0], r[0], *bench.memory), places, "index_of");
  }

  std::vector<Row> once, either, common, rest;
  for (size_t i = 0; i < n; ++i) {
    const Row row = row_of(left, i);
    const bool nan = has_nan(left, i);
    if (!nan && in_left[row][0] != static_cast<int64_t>(i)) continue;
    once.push_back(row);
    (!nan && in_right.count(row) ? common : rest).push_back(row);
  }
  either = once;
  for (size_t j = 0; j < m; ++j) {
    const Row row = row_of(right, j);
    if (has_nan(right, j) || (in_right[row][0] == static_cast<int64_t>(j) && !in_left.count(row)))
      either.push_back(row);
  }
  expect_rows(bench, bench.sql->distinct(l, *bench.memory), once, "distinct");
  expect_rows(bench, bench.sql->unite(l, r, *bench.memory), either, "union");
  expect_rows(bench, bench.sql->intersect(l, r, *bench.memory), common, "intersection");
  expect_rows(bench, bench.sql->subtract(l, r, *bench.memory), rest, "difference");
}

using Parameter = std::tuple<const char*, size_t>;  // target, alternative
class MatrixTest : public ::testing::TestWithParam<Parameter> {
 protected:
  const Options& options() const { return alternatives[std::get<1>(GetParam())].options; }
};
INSTANTIATE_TEST_SUITE_P(Targets, MatrixTest,
                         ::testing::Combine(::testing::ValuesIn(test::targets),
                                            ::testing::Range(size_t{0}, std::size(alternatives))),
                         [](const auto& p) {
                           return fmt::format("{}_{}", std::get<0>(p.param), std::get<1>(p.param));
                         });

TEST_P(MatrixTest, EveryShapeOfEveryTable) {
  Bench bench(std::get<0>(GetParam()), options());
  uint64_t seed = 0;
  for (const auto& types : tables)
    for (Shape shape : test::shapes)
      for (size_t n : {0, 1, 90, 2100}) {
        SCOPED_TRACE(fmt::format("{}: {} columns, the first of type {}, shape {}, {} rows",
                                 alternatives[std::get<1>(GetParam())].name, types.size(), static_cast<int>(types[0]),
                                 static_cast<int>(shape), n));
        if (n < 2 && shape != Shape::random && shape != Shape::extremes) continue;
        const bool is_large = n > 90;  // more than one launch sorts: for tables of one and of four columns
        if (is_large && &types != &tables[0] && types.size() != 4) continue;
        bench.memory = std::make_unique<test::TestMemory>(*bench.device);
        const Table left = make_table(types, shape, n, seed += 20);
        const uint64_t spare = seed % 3 ? 0 : 50;
        check_sorting(bench, options(), left, spare);
        if (HasFatalFailure()) return;
        check_probing(bench, left, mixed(left, make_table(types, shape, n, seed += 20), 70), spare);
        if (HasFatalFailure()) return;
      }
}

}  // namespace
}  // namespace rndn::operators
