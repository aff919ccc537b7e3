// Delimited files without a schema: what is chosen for what the file does not tell.
#include "runtime/data/csv.h"

#include <gtest/gtest.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>

#include "runtime/data/parse_value.h"
#include "tests/data/support.h"

namespace rndn::data {
namespace {

// "name:type=field|field ..." per column, or the error.
std::string read(const std::string& text) {
  TestFolder folder;
  folder.write("t.csv", text);
  Result<CsvTable> table = read_csv(folder.path() + "/t.csv");
  if (!table) return folder.local(table.error().message);
  std::string out;
  for (const CsvColumn& c : table->columns) {
    out += fmt::format("{}{}:{}=", out.empty() ? "" : " ", c.name, hir::basic_type_name(c.type));
    for (size_t i = 0; i < c.fields.size(); ++i) out += (i ? "|" : "") + c.fields[i];
  }
  return out;
}

TEST(Csv, HeaderOrNot) {
  EXPECT_EQ(read("id,name\n1,ann\n2,bob\n"), "id:i64=1|2 name:sym=ann|bob");
  EXPECT_EQ(read("1,ann\n2,bob\n"), "c0:i64=1|2 c1:sym=ann|bob");
  EXPECT_EQ(read("id,1998-09-02\n"), "c0:sym=id c1:date=1998-09-02");  // a value among the names
  EXPECT_EQ(read("a,a\nb,c\n"), "c0:sym=a|b c1:sym=a|c");              // names repeat
  EXPECT_EQ(read("a,\nb,c\n"), "c0:sym=a|b c1:sym=|c");                // a name is missing
  EXPECT_EQ(read("true,x\n"), "c0:bool=true c1:sym=x");
  EXPECT_EQ(read("a,b\n"), "a:sym= b:sym=");  // no rows
  EXPECT_EQ(read("\xef\xbb\xbfid\n7\n"), "id:i64=7");
}

TEST(Csv, DelimitersAndLineEnds) {
  EXPECT_EQ(read("a;b\r\n1,5;2\r\n"), "a:sym=1,5 b:i64=2");
  EXPECT_EQ(read("a\tb\n1\t2"), "a:i64=1 b:i64=2");
  EXPECT_EQ(read("1|x|\n2|y|\n"), "c0:i64=1|2 c1:sym=x|y");  // the delimiter ends the rows
  EXPECT_EQ(read("\"a,b,c\";d\n1;2\n"), "a,b,c:i64=1 d:i64=2");
  EXPECT_EQ(read("a,b\n\n1,2\n\n"), "a:i64=1 b:i64=2");  // empty lines
  EXPECT_EQ(read("a\n\n1\n"), "a:i64=|1");               // but of one column they are fields
  EXPECT_EQ(read("a,b\n1,"), "a:i64=1 b:sym=");
}

TEST(Csv, QuotesAsRfc4180Says) {
  EXPECT_EQ(read("a,b\n\"x\"\"y\",\"1\n2\"\n"), "a:sym=x\"y b:sym=1\n2");
  EXPECT_EQ(read("a,b\n\"x,y\",3\n"), "a:sym=x,y b:i64=3");
}

TEST(Csv, TypesAreInferredFromAllFields) {
  auto type = [](const std::string& fields) {
    std::string shown = read("name\n" + fields);
    return shown.substr(5, shown.find('=') - 5);
  };
  EXPECT_EQ(type("1\n-2\n+3\n"), "i64");
  EXPECT_EQ(type("1\n2.5\n"), "f64");
  EXPECT_EQ(type("1e3\n"), "f64");
  EXPECT_EQ(type("9223372036854775808\n"), "f64");  // one more than an i64 holds
  EXPECT_EQ(type("0\n1\n"), "i64");
  EXPECT_EQ(type("true\nfalse\n"), "bool");
  EXPECT_EQ(type("1998-09-02\n"), "date");
  EXPECT_EQ(type("1998-09-31\n"), "sym");  // no such day
  EXPECT_EQ(type("1998-09\n"), "month");
  EXPECT_EQ(type("20:15\n"), "minute");
  EXPECT_EQ(type("20:15:59\n"), "second");
  EXPECT_EQ(type("20:15:59.999\n"), "time");
  EXPECT_EQ(type("1998-09-02T20:15:59.999\n"), "dt");
  EXPECT_EQ(type("007\n"), "sym");  // a code, no number
  EXPECT_EQ(type("0.5\n0\n"), "f64");
  EXPECT_EQ(type("1\nx\n"), "sym");
  EXPECT_EQ(type("1998-09-02\n1998-09\n"), "sym");
  EXPECT_EQ(read("a,b\n1,\n,\n"), "a:i64=1| b:sym=|");  // empty fields fit any type
}

TEST(Csv, ErrorsNameThePlace) {
  EXPECT_EQ(read(""), "cannot read `t.csv` as a table: the file is empty");
  EXPECT_EQ(read("\n\n"), "cannot read `t.csv` as a table: it has empty lines only");
  EXPECT_EQ(read("a,b\n1,2\n3\n"), "t.csv:3:1: expected 2 columns as in the first row, found 1");
  EXPECT_EQ(read("a,b\n1,2,3\n"), "t.csv:2:1: expected 2 columns as in the first row, found 3");
  EXPECT_EQ(read("a,b\n1,\"x\n"), "t.csv:2:3: the quotes of this field do not match");
  EXPECT_EQ(read("a,b\n1,x\"y\n"), "t.csv:2:3: the quotes of this field do not match");
  EXPECT_EQ(read_csv("/does/not/exist.csv").error().message,
            "cannot read `/does/not/exist.csv`: No such file or directory");
  EXPECT_EQ(read_csv("/").error().message, "cannot read `/`: it is no regular file");
}

TEST(Csv, FieldsAsATypeThatTheProgramNames) {
  auto parsed = parse_fields(hir::BasicType::i32, {"7", "", "-1"});
  ASSERT_TRUE(parsed.ok());
  int32_t values[3];
  ASSERT_EQ(parsed->size(), sizeof values);
  std::memcpy(values, parsed->data(), sizeof values);
  EXPECT_EQ(values[0], 7);
  EXPECT_EQ(values[1], 0);  // an empty field
  EXPECT_EQ(values[2], -1);
  EXPECT_EQ(parse_fields(hir::BasicType::i8, {"7", "300"}).error().message, "element 1 is `300`: expected an i8");
}

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
TEST(Csv, IntegersAreThoseOfTheLanguage) {
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
    expect_as_from_chars<int8_t>(hir::BasicType::i8, text);
    expect_as_from_chars<int16_t>(hir::BasicType::i16, text);
    expect_as_from_chars<int32_t>(hir::BasicType::i32, text);
    expect_as_from_chars<int64_t>(hir::BasicType::i64, text);
  }
}

// Every day of the years 0 to 9999, and what is none, as the C++ library's calendar has it.
TEST(Csv, DatesAreThoseOfTheCalendar) {
  for (int year = 0; year < 10000; year += year < 1890 || year > 2110 ? 37 : 1)
    for (unsigned month = 0; month < 14; ++month)
      for (unsigned day = 0; day < 33; ++day) {
        const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                               std::chrono::day(day)};
        const std::string text = fmt::format("{:04}-{:02}-{:02}", year, month, day);
        int32_t found = 0;
        ASSERT_EQ(parse_value(hir::BasicType::date, text, reinterpret_cast<std::byte*>(&found)),
                  date.ok() ? ParseStatus::ok : ParseStatus::out_of_range)
            << text;
        if (date.ok()) {
          ASSERT_EQ(found, std::chrono::sys_days(date).time_since_epoch().count()) << text;
        }
      }
  for (const char* text : {"199/-01-01", "1999-0:-01", "1999-01-0a", "1999 01-01", "1999-01 01", "1999-01-011",
                           "1999-1-1", "", "-999-01-01"}) {
    int32_t found = 0;
    EXPECT_EQ(parse_value(hir::BasicType::date, text, reinterpret_cast<std::byte*>(&found)), ParseStatus::malformed)
        << text;
  }
}

// Bit by bit what strtod reads, on both sides of the 15 digits up to which a number takes the short way.
TEST(Csv, DecimalsAreRoundedCorrectly) {
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
  auto parsed = parse_fields(hir::BasicType::f64, fields);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  for (size_t i = 0; i < fields.size(); ++i) {
    const double expected = std::strtod(fields[i].c_str(), nullptr);
    EXPECT_EQ(std::memcmp(parsed->data() + i * 8, &expected, 8), 0) << fields[i];
  }
  for (const char* wrong : {".", "-", "-.", "1.2.3", "1-", "--1", "1 2", "0x1"})
    EXPECT_FALSE(parse_fields(hir::BasicType::f64, {wrong}).ok()) << wrong;
}

}  // namespace
}  // namespace rndn::data
