// Fields to values: numbers, dates and times as they are written.
#include "runtime/data/parse_value.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "frontend/calendar.h"

namespace rndn::data::parse_value_test {
namespace {

using hir::BasicType;

template <class T>
void expect_as_from_chars(hir::BasicType type, const std::string& text) {
  T expected{}, found{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), expected);
  const bool whole = end == text.data() + text.size();
  const ParseStatus status = error == std::errc::result_out_of_range ? ParseStatus::out_of_range
                             : error != std::errc() || !whole        ? ParseStatus::malformed
                                                                     : ParseStatus::ok;
  ASSERT_EQ(parse_value(type, text, reinterpret_cast<std::byte*>(&found)), status) << text;
  if (status == ParseStatus::ok) {
    ASSERT_EQ(found, expected) << text;
  }
}

// The short way to a value and the long one agree on what is a number, what fits, and what it is.
TEST(ParseValue, IntegersAreThoseOfTheLanguage) {
  std::mt19937_64 random(11);
  std::vector<std::string> texts = {"0", "-0", "-", "", "--1", "-+1", "1-", "1.", "00000000000000000001"};
  for (int bits : {7, 15, 31, 63})
    for (int by : {-1, 0, 1}) {
      texts.push_back(std::to_string((uint64_t{1} << bits) + static_cast<uint64_t>(by)));
      texts.push_back("-" + texts.back());
    }
  for (size_t digits = 1; digits < 21; ++digits)
    texts.push_back(std::string(digits, '9')), texts.push_back("-" + texts.back());
  for (int i = 0; i < 5000; ++i) {
    std::string text = random() % 2 ? "-" : "";
    for (size_t digits = 1 + random() % 20; digits; --digits)
      text += random() % 100 ? static_cast<char>('0' + random() % 10) : '/' + 11 * static_cast<char>(random() % 2);
    texts.push_back(text);
  }
  for (const std::string& text : texts) {
    expect_as_from_chars<int8_t>(BasicType::i8, text);
    expect_as_from_chars<int16_t>(BasicType::i16, text);
    expect_as_from_chars<int32_t>(BasicType::i32, text);
    expect_as_from_chars<int64_t>(BasicType::i64, text);
  }
}

// Every day of the years 0 to 9999, and what is none, as the C++ library's calendar has it.
TEST(ParseValue, DatesAreThoseOfTheCalendar) {
  for (int year = 0; year < 10000; year += year < 1890 || year > 2110 ? 37 : 1)
    for (unsigned month = 0; month < 14; ++month)
      for (unsigned day = 0; day < 33; ++day) {
        const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                               std::chrono::day(day)};
        const std::string text = fmt::format("{:04}-{:02}-{:02}", year, month, day);
        int32_t found = 0;
        ASSERT_EQ(parse_value(BasicType::date, text, reinterpret_cast<std::byte*>(&found)),
                  date.ok() ? ParseStatus::ok : ParseStatus::out_of_range)
            << text;
        if (date.ok()) {
          ASSERT_EQ(found, std::chrono::sys_days(date).time_since_epoch().count()) << text;
        }
      }
  for (const char* text : {"199/-01-01", "1999-0:-01", "1999-01-0a", "1999 01-01", "1999-01 01", "1999-01-011",
                           "1999-1-1", "", "-999-01-01"}) {
    int32_t found = 0;
    EXPECT_EQ(parse_value(BasicType::date, text, reinterpret_cast<std::byte*>(&found)), ParseStatus::malformed) << text;
  }
}

// Bit by bit what strtod reads, on both sides of the 15 digits up to which a number takes the short way.
TEST(ParseValue, DecimalsAreRoundedCorrectly) {
  std::mt19937_64 random(7);
  std::vector<std::string> fields = {"0",
                                     "-0",
                                     "-0.0",
                                     "1.",
                                     ".5",
                                     "-.5",
                                     "0.1",
                                     "999999999999999",
                                     "9999999999999999",
                                     "0.000000000000001",
                                     "123456789012345.6",
                                     "9007199254740993",
                                     "0.30000000000000004"};
  for (int i = 0; i < 5000; ++i) {
    std::string text = random() % 2 ? "-" : "";
    const size_t digits = 1 + random() % 18, point = random() % (digits + 4);
    for (size_t d = 0; d < digits; ++d) {
      if (d == point) text += '.';
      text += static_cast<char>('0' + random() % 10);
    }
    fields.push_back(text);
  }
  double value = 0;
  const auto read = [&](const std::string& field) {
    return parse_value(BasicType::f64, field, reinterpret_cast<std::byte*>(&value));
  };
  for (const std::string& field : fields) {
    ASSERT_EQ(read(field), ParseStatus::ok) << field;
    const double expected = std::strtod(field.c_str(), nullptr);
    EXPECT_EQ(std::memcmp(&value, &expected, 8), 0) << field;
  }
  for (const char* wrong : {".", "-", "-.", "1.2.3", "1-", "--1", "1 2", "0x1", "1e400x", "1e-400x"})
    EXPECT_EQ(read(wrong), ParseStatus::malformed) << wrong;
  // Beyond the range: infinity, and said so; below it: zero, which is what they round to.
  for (const auto& [field, expected] : {std::pair("1e400", HUGE_VAL), {"-1e400", -HUGE_VAL}, {"+1e999", HUGE_VAL}}) {
    EXPECT_EQ(read(field), ParseStatus::out_of_range) << field;
    EXPECT_EQ(value, expected) << field;
  }
  for (const char* field : {"1e-400", "-1e-400", "4e-324", "2e-324"}) {
    EXPECT_EQ(read(field), ParseStatus::ok) << field;
    EXPECT_EQ(value, std::strtod(field, nullptr)) << field;
    EXPECT_EQ(std::signbit(value), field[0] == '-') << field;
  }
}

template <class T>
void expect_value(BasicType type, const char* text, int64_t expected, DateFormat format = {}) {
  T value{};
  ASSERT_EQ(parse_value(type, text, reinterpret_cast<std::byte*>(&value), format), ParseStatus::ok) << text;
  EXPECT_EQ(int64_t{value}, expected) << text;
}

TEST(ParseValue, WordsOfBools) {
  for (const char* yes : {"1", "true", "True", "TRUE", " true ", "t", "T", "yes"}) expect_value<uint8_t>(BasicType::boolean, yes, 1);
  for (const char* no : {"0", "false", "False", "FALSE", "f", "F", "no", "No"}) expect_value<uint8_t>(BasicType::boolean, no, 0);
  uint8_t value;
  for (const char* wrong : {"y", "n", "ye", "2", "truE1", "Trve", "", "true x", "TRU\x05"})
    EXPECT_EQ(parse_value(BasicType::boolean, wrong, reinterpret_cast<std::byte*>(&value)), ParseStatus::malformed);
}

// A type takes what less precise ones do.
TEST(ParseValue, TimesOfDay) {
  constexpr int64_t ten = 10 * 3600;
  for (BasicType type : {BasicType::minute, BasicType::second}) expect_value<int32_t>(type, "10:00", ten);
  expect_value<int32_t>(BasicType::second, "10:00:30", ten + 30);
  expect_value<int32_t>(BasicType::minute, "9:05", 9 * 3600 + 300);
  expect_value<int64_t>(BasicType::time, "10:00", ten * 1000);
  expect_value<int64_t>(BasicType::time, "10:00:30", (ten + 30) * 1000);
  expect_value<int64_t>(BasicType::time, "10:00:30.5", (ten + 30) * 1000 + 500);
  expect_value<int64_t>(BasicType::time, "10:00:30.123000", (ten + 30) * 1000 + 123);
  expect_value<int32_t>(BasicType::minute, "-00:01", -60);
  expect_value<int32_t>(BasicType::second, "-10:00:30", -ten - 30);
  expect_value<int64_t>(BasicType::time, "-00:00:00.001", -1);
  int64_t value;
  const auto status = [&](BasicType type, const char* text) {
    return parse_value(type, text, reinterpret_cast<std::byte*>(&value));
  };
  EXPECT_EQ(status(BasicType::minute, "10:00:00"), ParseStatus::malformed);
  EXPECT_EQ(status(BasicType::second, "10:00:00.5"), ParseStatus::malformed);
  EXPECT_EQ(status(BasicType::time, "10:00:00.1234"), ParseStatus::malformed);  // nothing is lost
  EXPECT_EQ(status(BasicType::time, "10:00:00."), ParseStatus::malformed);
  EXPECT_EQ(status(BasicType::time, "10:0"), ParseStatus::malformed);
  EXPECT_EQ(status(BasicType::time, "24:00"), ParseStatus::out_of_range);
  EXPECT_EQ(status(BasicType::time, "-24:00"), ParseStatus::out_of_range);
  for (const char* text : {"--10:00", "- 10:00", "-", "+10:00"})
    EXPECT_EQ(status(BasicType::minute, text), ParseStatus::malformed) << text;
  EXPECT_EQ(status(BasicType::dt, "1998-09-02T-10:00"), ParseStatus::malformed);
}

TEST(ParseValue, TimestampsAndTheirZones) {
  constexpr int64_t day = 86'400, at = 19'724 * day + 3 * 3600 + 4 * 60 + 5;  // 2024-01-02 03:04:05
  const std::string text = "2024-01-02 03:04:05";
  const auto status = [](const std::string& field, int64_t& value) {
    return parse_timestamp(field, reinterpret_cast<std::byte*>(&value));
  };
  int64_t value = 0;
  const std::pair<const char*, int64_t> rows[] = {
      {"", 0},          {"Z", 0},          {"+02", -7200},      {"+0230", -9000},
      {"-02:30", 9000}, {"+15:59", -57'540}, {"-15:59", 57'540}, {"-00:01", 60}};
  for (const auto& [zone, seconds] : rows) {
    expect_value<int64_t>(BasicType::dt, (text + zone).c_str(), (at + seconds) * 1000);
    expect_value<int64_t>(BasicType::dt, (text + ".25" + zone).c_str(), (at + seconds) * 1000 + 250);
    EXPECT_EQ(status(text + ".678901" + zone, value), ParseStatus::ok) << zone;
    EXPECT_EQ(value, (at + seconds) * 1'000'000 + 678'901) << zone;
    EXPECT_EQ(has_zone(text + zone), *zone != 0) << zone;
  }
  for (const char* wrong : {"z", "+2", "+16:00", "+02:60", "+02:", "+02:0", "+02:00:00", " +02", "+", "ZZ", " UTC"})
    EXPECT_NE(status(text + wrong, value), ParseStatus::ok) << wrong;
  EXPECT_EQ(status(text + ".000000999", value), ParseStatus::ok);  // cut off
  EXPECT_EQ(value, at * 1'000'000);
  EXPECT_EQ(status("2024-01-02", value), ParseStatus::ok);
  EXPECT_EQ(value, 19'724 * day * 1'000'000);
  EXPECT_EQ(status("2024-01-02T03:04+01", value), ParseStatus::ok);
  EXPECT_EQ(value, (at - 5 - 3600) * 1'000'000);
  EXPECT_FALSE(has_zone("2024-01-02"));
}

TEST(ParseValue, DatesInEveryFormat) {
  const int64_t leap = hir::days_from_civil(2024, 2, 29);
  for (char separator : date_separators)
    for (const auto& [order, text] :
         {std::pair(DateFormat::ymd, "2024?02?29"), {DateFormat::dmy, "29?02?2024"}, {DateFormat::mdy, "02?29?2024"}}) {
      const DateFormat format{order, separator};
      DateFormat again;
      ASSERT_TRUE(parse_date_format(date_format_text(format), again));
      EXPECT_EQ(again, format);
      std::string date = text;
      std::replace(date.begin(), date.end(), '?', separator);
      expect_value<int32_t>(BasicType::date, date.c_str(), leap, format);
      expect_value<int64_t>(BasicType::dt, date.c_str(), leap * 86'400'000, format);
      expect_value<int64_t>(BasicType::dt, (date + " 10:00:01").c_str(), leap * 86'400'000 + 36'001'000, format);
      expect_value<int64_t>(BasicType::dt, (date + "T10:00Z").c_str(), leap * 86'400'000 + 36'000'000, format);
      std::string no_day = date;
      no_day.replace(no_day.find("2024"), 4, "2023");
      int32_t value;
      EXPECT_EQ(parse_value(BasicType::date, no_day, reinterpret_cast<std::byte*>(&value), format),
                ParseStatus::out_of_range)
          << no_day;
    }
  expect_value<int32_t>(BasicType::date, "1/3/2024", hir::days_from_civil(2024, 3, 1), {DateFormat::dmy, '/'});
  DateFormat ignored;
  for (const char* wrong : {"%Y-%m-%d ", "%Y-%m/%d", "%y-%m-%d", "%Y%m%d", ""})
    EXPECT_FALSE(parse_date_format(wrong, ignored)) << wrong;
}

}  // namespace
}  // namespace rndn::data::parse_value_test
