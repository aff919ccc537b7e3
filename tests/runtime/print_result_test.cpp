// Results as table, csv and json.
#include "runtime/print_result.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/data/parse_value.h"

namespace rndn::runtime::print_result_test {
namespace {

using hir::BasicType;
using data::Value;

std::string print(const Value& v, Format format) {
  std::vector<Value> results = {v};
  auto text = print_result(results, format);
  return text ? *text : "error: " + text.error().message;
}

Value sample() {
  return data::table({"name", "n", "x", "d"},
                          {data::vector_of_texts(BasicType::sym, {"a,b", "say \"hi\"\nthere"}),
                           data::vector_of<int32_t>(BasicType::i32, {-7, 12345}),
                           data::vector_of<double>(BasicType::f64, {0.1, 1193053.2252999984}),
                           data::vector_of<int32_t>(BasicType::date, {8766, -1})});
}

TEST(PrintResult, TableAlignsNumbersRightAndKeepsARowOnALine) {
  EXPECT_EQ(print(sample(), Format::table),
            "name                n                   x  d\n"
            "--------------  -----  ------------------  ----------\n"
            "a,b                -7                 0.1  1994-01-01\n"
            "say \"hi\" there  12345  1193053.2252999984  1969-12-31\n"
            "(2 rows)\n");
}

// 東京 takes four columns, é one whether it is one character or an e with a combining accent; a stray byte takes one.
TEST(PrintResult, TableCountsColumnsOfTheTerminal) {
  Value v = data::table({"city", "n"}, {data::vector_of_texts(BasicType::sym, {"\u6771\u4eac", "caf\u00e9", "cafe\u0301", "\xff"}),
                                             data::vector_of<int32_t>(BasicType::i32, {1, 2, 3, 4})});
  EXPECT_EQ(print(v, Format::table),
            "city  n\n----  -\n\u6771\u4eac  1\ncaf\u00e9  2\ncafe\u0301  3\n\xff     4\n(4 rows)\n");
}

TEST(PrintResult, CsvIsRfc4180) {
  EXPECT_EQ(print(sample(), Format::csv),
            "name,n,x,d\r\n"
            "\"a,b\",-7,0.1,1994-01-01\r\n"
            "\"say \"\"hi\"\"\nthere\",12345,1193053.2252999984,1969-12-31\r\n");
}

TEST(PrintResult, JsonHasTypesAndRows) {
  EXPECT_EQ(print(sample(), Format::json),
            "{\"columns\":[{\"name\":\"name\",\"type\":\"sym\"},{\"name\":\"n\",\"type\":\"i32\"},{\"name\":\"x\","
            "\"type\":\"f64\"},"
            "{\"name\":\"d\",\"type\":\"date\"}],\"rows\":[\n"
            "[\"a,b\",-7,0.1,\"1994-01-01\"],\n"
            "[\"say \\\"hi\\\"\\nthere\",12345,1193053.2252999984,\"1969-12-31\"]]}\n");
}

TEST(PrintResult, FloatsReadBackExactlyAndNonNumbersAreStrings) {
  double tiny = std::numeric_limits<double>::denorm_min();
  Value v = data::vector_of<double>(BasicType::f64, {1, -0.5, tiny, std::nan(""), -INFINITY, 1e300});
  EXPECT_EQ(print(v, Format::json),
            "{\"columns\":[{\"name\":\"value\",\"type\":\"f64\"}],\"rows\":[\n[1],\n[-0.5],\n[5e-324],\n[\"nan\"],\n["
            "\"-inf\"],\n[1e+300]]}\n");
  EXPECT_EQ(print(data::vector_of<float>(BasicType::f32, {0.1f}), Format::csv), "value\r\n0.1\r\n");
  EXPECT_EQ(print(data::vector_of<double>(BasicType::f64, {1e-9, -1e-300, 123456789.125, 2}), Format::table),
            "        value\n-------------\n        1e-09\n      -1e-300\n123456789.125\n            2\n(4 rows)\n");
}

TEST(PrintResult, IntegersBooleansCharacters) {
  EXPECT_EQ(print(data::vector_of<int64_t>(BasicType::i64, {INT64_MIN, INT64_MAX}), Format::csv),
            "value\r\n-9223372036854775808\r\n9223372036854775807\r\n");
  EXPECT_EQ(print(data::vector_of<uint8_t>(BasicType::boolean, {0, 1}), Format::json),
            "{\"columns\":[{\"name\":\"value\",\"type\":\"bool\"}],\"rows\":[\n[false],\n[true]]}\n");
  EXPECT_EQ(print(data::vector_of<int8_t>(BasicType::character, {'A', '"'}), Format::json),
            "{\"columns\":[{\"name\":\"value\",\"type\":\"char\"}],\"rows\":[\n[\"A\"],\n[\"\\\"\"]]}\n");
  EXPECT_EQ(print(data::vector_of<int16_t>(BasicType::i16, {-3}), Format::csv), "value\r\n-3\r\n");
}

TEST(PrintResult, CalendarIsIso) {
  EXPECT_EQ(calendar_text(BasicType::date, 0), "1970-01-01");
  EXPECT_EQ(calendar_text(BasicType::date, 10471), "1998-09-02");
  EXPECT_EQ(calendar_text(BasicType::date, 11016), "2000-02-29");
  EXPECT_EQ(calendar_text(BasicType::date, -719162), "0001-01-01");
  EXPECT_EQ(calendar_text(BasicType::month, 488), "2010-09");
  EXPECT_EQ(calendar_text(BasicType::month, -1), "1969-12");
  EXPECT_EQ(calendar_text(BasicType::minute, 72900), "20:15");
  EXPECT_EQ(calendar_text(BasicType::second, 61580), "17:06:20");
  EXPECT_EQ(calendar_text(BasicType::time, 40953001), "11:22:33.001");
  EXPECT_EQ(calendar_text(BasicType::dt, 1546449021001), "2019-01-02T17:10:21.001");
  EXPECT_EQ(calendar_text(BasicType::dt, -1), "1969-12-31T23:59:59.999");
  EXPECT_EQ(calendar_text(BasicType::minute, -60), "-00:01");
  EXPECT_EQ(calendar_text(BasicType::minute, -6000), "-01:40");
  EXPECT_EQ(calendar_text(BasicType::second, -1), "-00:00:01");
  EXPECT_EQ(calendar_text(BasicType::time, -1), "-00:00:00.001");
}

// What is printed is read as the same value.
TEST(PrintResult, TimesOfDayAreReadAgain) {
  constexpr int64_t day = 24 * 3600;
  for (const int64_t minutes : {-1439, -600, -1, 0, 1, 1439}) {
    int32_t found = 77;
    EXPECT_EQ(data::parse_value(BasicType::minute, calendar_text(BasicType::minute, minutes * 60),
                                reinterpret_cast<std::byte*>(&found)),
              data::ParseStatus::ok);
    EXPECT_EQ(found, minutes * 60);
  }
  for (const int64_t x : {1 - day, int64_t{-3601}, int64_t{-1}, int64_t{0}, int64_t{1}, day - 1}) {
    int32_t second = 77;
    EXPECT_EQ(data::parse_value(BasicType::second, calendar_text(BasicType::second, x),
                                reinterpret_cast<std::byte*>(&second)),
              data::ParseStatus::ok);
    EXPECT_EQ(second, x);
    for (const int64_t ms : {int64_t{0}, int64_t{x < 0 ? -7 : 7}}) {
      int64_t time = 77;
      EXPECT_EQ(data::parse_value(BasicType::time, calendar_text(BasicType::time, x * 1000 + ms),
                                  reinterpret_cast<std::byte*>(&time)),
                data::ParseStatus::ok);
      EXPECT_EQ(time, x * 1000 + ms);
    }
  }
}

TEST(PrintResult, EnumerationsShowTheirKeys) {
  Value keys = data::vector_of_texts(BasicType::sym, {"ASIA", "EUROPE"});
  Value v = data::enumeration(keys, data::vector_of<int64_t>(BasicType::i64, {1, 0, 1}));
  EXPECT_EQ(print(v, Format::csv), "value\r\nEUROPE\r\nASIA\r\nEUROPE\r\n");
}

TEST(PrintResult, CompoundCellsAreTexts) {
  Value v = data::list(
      {data::vector_of<int32_t>(BasicType::i32, {1, 2}), data::vector_of<int32_t>(BasicType::i32, {3})});
  EXPECT_EQ(print(v, Format::csv), "value\r\n\"(1, 2)\"\r\n3\r\n");
}

TEST(PrintResult, EmptyTableHasAHeader) {
  Value v = data::table({"a"}, {data::vector_of<int32_t>(BasicType::i32, {})});
  EXPECT_EQ(print(v, Format::csv), "a\r\n");
  EXPECT_EQ(print(v, Format::json), "{\"columns\":[{\"name\":\"a\",\"type\":\"i32\"}],\"rows\":[]}\n");
  EXPECT_EQ(print(v, Format::table), "a\n-\n(0 rows)\n");
}

TEST(PrintResult, ColumnsOfDifferentLengthAreAnError) {
  Value v = data::table({"a", "b"}, {data::vector_of<int32_t>(BasicType::i32, {1}),
                                          data::vector_of<int32_t>(BasicType::i32, {1, 2})});
  EXPECT_EQ(print(v, Format::csv), "error: column `b` has 2 rows, the ones before have 1");
}

TEST(PrintResult, SeveralResultsAndPrograms) {
  std::vector<Value> two = {data::vector_of<int32_t>(BasicType::i32, {1}),
                            data::vector_of<int32_t>(BasicType::i32, {2})};
  EXPECT_EQ(*print_result(two, Format::json),
            "[{\"columns\":[{\"name\":\"value\",\"type\":\"i32\"}],\"rows\":[\n[1]]},\n{\"columns\":[{\"name\":"
            "\"value\",\"type\":\"i32\"}],\"rows\":[\n[2]]}]\n");
}

}  // namespace
}  // namespace rndn::runtime::print_result_test
