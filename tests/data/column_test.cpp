// Statistics and dictionaries against what is plain to see.
#include "runtime/data/column.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "runtime/data/source.h"

namespace rndn::data::column_test {
namespace {

using hir::BasicType;

template <class T>
Column plain(BasicType type, const std::vector<T>& values) {
  Column column = make_column(type, values.size());
  EXPECT_EQ(column.width, sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) reinterpret_cast<T*>(column.data->data())[i] = values[i];
  compute_statistics(column);
  return column;
}

struct Expected {
  int64_t min, max;
  bool sorted, dense;
};
void expect(const Column& column, Expected expected) {
  const Statistics& s = column.statistics;
  EXPECT_TRUE(s.known);
  EXPECT_EQ(s.min, expected.min);
  EXPECT_EQ(s.max, expected.max);
  EXPECT_EQ(s.sorted, expected.sorted);
  EXPECT_EQ(s.dense, expected.dense);
}

TEST(Statistics, OfIntegers) {
  expect(plain<int32_t>(BasicType::i32, {1, 2, 3}), {1, 3, true, true});
  expect(plain<int32_t>(BasicType::i32, {3, 1, 2}), {1, 3, false, true});
  expect(plain<int32_t>(BasicType::i32, {3, 1, 1}), {1, 3, false, false});
  expect(plain<int32_t>(BasicType::i32, {1, 1, 3}), {1, 3, true, false});
  expect(plain<int32_t>(BasicType::i32, {1, 3}), {1, 3, true, false});
  expect(plain<int32_t>(BasicType::date, {-5}), {-5, -5, true, true});
  expect(plain<int8_t>(BasicType::i8, {-128, 127}), {-128, 127, true, false});
  expect(plain<uint8_t>(BasicType::character, {'z', 0xe9}), {-23, 'z', false, false});  // signed
  expect(plain<uint8_t>(BasicType::boolean, {1, 0}), {0, 1, false, true});
  expect(plain<int16_t>(BasicType::i16, {7, 7}), {7, 7, true, false});
  constexpr int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  expect(plain<int64_t>(BasicType::i64, {low, high}), {low, high, true, false});
  expect(plain<int64_t>(BasicType::i64, {high, low}), {low, high, false, false});
}

TEST(Statistics, OfFloats) {
  const double nan = std::nan(""), infinity = INFINITY;
  auto check = [](const Column& column, double min, double max, bool sorted) {
    EXPECT_TRUE(column.statistics.known);
    EXPECT_EQ(column.statistics.float_min, min);
    EXPECT_EQ(column.statistics.float_max, max);
    EXPECT_EQ(column.statistics.sorted, sorted);
  };
  check(plain<double>(BasicType::f64, {-1.5, 0, 2}), -1.5, 2, true);
  check(plain<double>(BasicType::f64, {2, -1.5}), -1.5, 2, false);
  check(plain<double>(BasicType::f64, {1, nan, 2}), 1, 2, false);
  check(plain<double>(BasicType::f64, {nan, 1, 2}), 1, 2, false);
  check(plain<double>(BasicType::f64, {-infinity, -infinity}), -infinity, -infinity, true);
  check(plain<double>(BasicType::f64, {infinity}), infinity, infinity, true);
  check(plain<float>(BasicType::f32, {0.5f, 0.25f}), 0.25, 0.5, false);
  EXPECT_FALSE(plain<double>(BasicType::f64, {nan, nan}).statistics.known);
}

TEST(Statistics, AreUnknownWithoutValues) {
  EXPECT_FALSE(plain<int32_t>(BasicType::i32, {}).statistics.known);
  EXPECT_FALSE(plain<uint64_t>(BasicType::str, {0}).statistics.known);
}

// Long enough for several parts, with the one flaw at the seam between two of them.
TEST(Statistics, SeeAcrossParts) {
  std::vector<int32_t> values(3 << 20);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i) - 5;
  const int32_t last = static_cast<int32_t>(values.size()) - 6;
  expect(plain(BasicType::i32, values), {-5, last, true, true});
  std::swap(values[(1 << 20) - 1], values[1 << 20]);
  expect(plain(BasicType::i32, values), {-5, last, false, true});
  values[1 << 20] -= 1;
  expect(plain(BasicType::i32, values), {-5, last, false, false});
  values[1 << 20] = values[(1 << 20) - 1];
  expect(plain(BasicType::i32, values), {-5, last, true, false});
}

TEST(Widths, OfCodesAndRows) {
  EXPECT_EQ(code_width(256), 1u);
  EXPECT_EQ(code_width(257), 2u);
  EXPECT_EQ(code_width(65536), 2u);
  EXPECT_EQ(code_width(65537), 4u);
  EXPECT_EQ(foreign_row_width((uint64_t{1} << 31) - 1), 4u);
  EXPECT_EQ(foreign_row_width(uint64_t{1} << 31), 8u);
}

Column text(const std::vector<std::string>& values) {
  Column column = make_column(BasicType::str, values.size(), Encoding::text);
  std::string pad;
  for (size_t i = 0; i < values.size(); ++i) {
    reinterpret_cast<uint64_t*>(column.data->data())[i] = pad.size() << 24 | values[i].size();
    pad += values[i];
  }
  column.pad = std::make_shared<Bytes>(Bytes::of(std::move(pad)));
  return column;
}

TEST(Dictionary, HoldsValuesInByteOrder) {
  // Some differ only behind their first eight bytes, or in a byte that is a negative char.
  std::vector<std::string> values = {"pear", "",         "apples and b", "pear", "apples and a",
                                     "\xff", "apples a", "pear",         ""};
  Column column = text(values);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(column.text_at(i), values[i]);
  encode_dictionary(column, 6);
  EXPECT_EQ(column.encoding, Encoding::dictionary);
  EXPECT_EQ(column.width, 1u);
  EXPECT_THAT(column.dictionary->values,
              testing::ElementsAre("", "apples a", "apples and a", "apples and b", "pear", "\xff"));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(column.text_at(i), values[i]);
}

TEST(Dictionary, IsNotMadeBeyondTheLimit) {
  Column column = text({"a", "b", "c"});
  encode_dictionary(column, 2);
  EXPECT_EQ(column.encoding, Encoding::text);
  EXPECT_EQ(column.text_at(2), "c");
}

// Many parts that see the values in different orders, and codes of two bytes.
TEST(Dictionary, JoinsTheValuesOfParts) {
  std::mt19937 random(7);
  std::vector<std::string> values;
  std::set<std::string> expected;
  for (int i = 0; i < 300'000; ++i) {
    uint32_t number = random() % (i < 100'000 ? 300 : 1000);
    expected.insert(std::to_string(number));
    values.push_back(std::to_string(number));
  }
  Column column = text(values);
  encode_dictionary(column, 1000, 3);
  ASSERT_EQ(column.encoding, Encoding::dictionary);
  EXPECT_EQ(column.width, 2u);
  EXPECT_THAT(column.dictionary->values, testing::ElementsAreArray(expected));
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(column.text_at(i), values[i]) << i;
}

}  // namespace
}  // namespace rndn::data::column_test
