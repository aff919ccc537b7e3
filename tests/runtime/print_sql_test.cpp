// Results of SQL queries as table, csv and json: SQL's ways of writing values, and NULL.
#include "runtime/print_sql.h"

#include <gtest/gtest.h>

#include <limits>

namespace rndn::runtime::print_sql_test {
namespace {

using data::Value;
using hir::BasicType;
using sql::TypeId;

Value integers(std::initializer_list<int64_t> values) {
  return data::vector_of<int64_t>(BasicType::i64, values);
}
Value flags(std::initializer_list<uint8_t> values) {
  return data::vector_of<uint8_t>(BasicType::boolean, values);
}

std::string text(sql::Type type, int64_t value) { return sql_text(type, integers({value}), 0); }

TEST(SqlText, OfDecimals) {
  const sql::Type money{TypeId::decimal, 15, 2};
  EXPECT_EQ(text(money, 1230), "12.30");
  EXPECT_EQ(text(money, 5), "0.05");
  EXPECT_EQ(text(money, -5), "-0.05");
  EXPECT_EQ(text(money, 0), "0.00");
  EXPECT_EQ(text(money, -100), "-1.00");
  EXPECT_EQ(text({TypeId::decimal, 18, 0}, -7), "-7");
  EXPECT_EQ(text({TypeId::decimal, 18, 18}, 1), "0.000000000000000001");
  EXPECT_EQ(text({TypeId::decimal, 18, 2}, std::numeric_limits<int64_t>::min()),
            "-92233720368547758.08");
}

TEST(SqlText, OfTimes) {
  EXPECT_EQ(text({TypeId::timestamp}, 0), "1970-01-01 00:00:00");
  EXPECT_EQ(text({TypeId::timestamp}, 1'709'200'800'000'000), "2024-02-29 10:00:00");
  EXPECT_EQ(text({TypeId::timestamp}, 1'709'200'800'120'000), "2024-02-29 10:00:00.12");
  EXPECT_EQ(text({TypeId::timestamp}, -1), "1969-12-31 23:59:59.999999");
  EXPECT_EQ(text({TypeId::timestamptz}, 1'709'200'800'000'001), "2024-02-29 10:00:00.000001+00");
  EXPECT_EQ(text({TypeId::time}, 86'399'000'000), "23:59:59");
  EXPECT_EQ(sql_text({TypeId::date}, data::vector_of<int32_t>(BasicType::date, {8766}), 0),
            "1994-01-01");
}

TEST(SqlText, OfIntervals) {
  const auto interval = [](int64_t months, int64_t days, int64_t micros) {
    const __int128 high = static_cast<__int128>(months) * (int64_t{1} << 32) + days;
    const __int128 value = high * (static_cast<__int128>(1) << 64) + micros;
    return sql_text({TypeId::interval}, data::vector_of<__int128>(BasicType::i128, {value}), 0);
  };
  EXPECT_EQ(interval(0, 0, 0), "00:00:00");
  EXPECT_EQ(interval(14, 3, 0), "1 year 2 months 3 days");
  EXPECT_EQ(interval(-1, -2, -1), "-1 month -2 days -00:00:00.000001");
  EXPECT_EQ(interval(-1, 2, 3'723'500'000), "-1 month 2 days 01:02:03.5");
  EXPECT_EQ(interval(0, -1, std::numeric_limits<int64_t>::min()), "-1 day -2562047788:00:54.775808");
  EXPECT_EQ(interval(std::numeric_limits<int32_t>::max(), 1, 0), "178956970 years 7 months 1 day");
}

TEST(SqlText, OfTheRest) {
  EXPECT_EQ(sql_text({TypeId::boolean}, flags({1, 0}), 0), "true");
  EXPECT_EQ(sql_text({TypeId::boolean}, flags({1, 0}), 1), "false");
  EXPECT_EQ(sql_text({TypeId::tinyint}, data::vector_of<int8_t>(BasicType::i8, {-3}), 0), "-3");
  EXPECT_EQ(sql_text({TypeId::double_}, data::vector_of<double>(BasicType::f64, {0.1}), 0), "0.1");
  EXPECT_EQ(sql_text({TypeId::varchar}, data::vector_of<uint8_t>(BasicType::character, {'R'}), 0),
            "R");
}

// The table that a program returns: values, and beside them where there are some.
struct Sample {
  Value table = data::table(
      {"v0", "v1", "n1", "v2", "n2", "v3"},
      {integers({150, -2}), data::vector_of_texts(BasicType::str, {"", "x"}), flags({1, 0}),
       data::vector_of<double>(BasicType::f64, {0, 2.5}), flags({0, 1}), flags({1, 0})});
  std::vector<sql::ResultColumn> columns = {{"sum(price)", {TypeId::decimal, 38, 2}, 0, {}},
                                            {"na\nme", {TypeId::varchar}, 1, 2},
                                            {"avg", {TypeId::double_}, 3, 4},
                                            {"big", {TypeId::boolean}, 5, {}}};
};

std::string print(Format format) {
  Sample sample;
  auto grid = sql_grid(sample.table, sample.columns);
  return grid ? *print_grid(*grid, format) : "error: " + grid.error().message;
}

TEST(PrintSql, Table) {
  EXPECT_EQ(print(Format::table),
            "sum(price)  na me   avg  big\n"
            "----------  -----  ----  -----\n"
            "      1.50         NULL  true\n"
            "     -0.02  NULL    2.5  false\n"
            "(2 rows)\n");
}

TEST(PrintSql, CsvTellsNullFromTheEmptyText) {
  EXPECT_EQ(print(Format::csv),
            "sum(price),\"na\nme\",avg,big\r\n"
            "1.50,\"\",,true\r\n"
            "-0.02,,2.5,false\r\n");
}

TEST(PrintSql, Json) {
  EXPECT_EQ(
      print(Format::json),
      "{\"columns\":[{\"name\":\"sum(price)\",\"type\":\"DECIMAL(38,2)\"},{\"name\":\"na\\nme\","
      "\"type\":\"VARCHAR\"},"
      "{\"name\":\"avg\",\"type\":\"DOUBLE\"},{\"name\":\"big\",\"type\":\"BOOLEAN\"}],\"rows\":[\n"
      "[1.50,\"\",null,true],\n"
      "[-0.02,null,2.5,false]]}\n");
}

TEST(PrintSql, ColumnsThatAreNotThereAreOurFault) {
  Sample sample;
  sample.columns[0].values = 6;
  auto grid = sql_grid(sample.table, sample.columns);
  ASSERT_FALSE(grid);
  EXPECT_EQ(grid.error().fault, Fault::internal);
  sample.columns[0] = {"x", {TypeId::bigint}, 0, 6};
  EXPECT_FALSE(sql_grid(sample.table, sample.columns));
}

}  // namespace
}  // namespace rndn::runtime::print_sql_test
