// Folders of text files: every type, quoting, keys, and what is said about files that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "runtime/data/read_columns.h"
#include "runtime/data/source.h"
#include "runtime/data/text_file.h"
#include "tests/data/support.h"

namespace rndn::data::folder_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
std::vector<T> values(const Column& column) {
  EXPECT_EQ(column.width, sizeof(T));
  return {column.as<T>(), column.as<T>() + column.rows};
}

std::vector<std::string> texts(const Column& column) {
  std::vector<std::string> all;
  for (uint64_t row = 0; row < column.rows; ++row) all.emplace_back(column.text_at(row));
  return all;
}

std::shared_ptr<Source> open(const TestFolder& folder) {
  Result<std::shared_ptr<Source>> source = open_folder(folder.path(), {.threads = 2, .progress = false});
  if (!source) {
    ADD_FAILURE() << source.error().message;
    return nullptr;
  }
  return *source;
}

// One table `t` in the file t.tbl (or t.csv) with the columns a, b, c... of the types.
void write_table(TestFolder& folder, const std::vector<std::string>& types, std::string_view text,
                 const std::string& file = "t.tbl", const std::string& more = "") {
  std::string columns;
  for (size_t i = 0; i < types.size(); ++i)
    columns += fmt::format(R"({}{{"name": "{}", "type": "{}"}})", i ? ", " : "", static_cast<char>('a' + i), types[i]);
  folder.write("schema.json",
               fmt::format(R"({{"tables": [{{"name": "t", "file": "{}", "columns": [{}]{}}}]}})", file, columns, more));
  folder.write(file, text);
}

TEST(Folder, ReadsEveryType) {
  TestFolder folder;
  write_table(
      folder,
      {"bool", "char", "i8", "i16", "i32", "i64", "f32", "f64", "complex", "sym", "str", "date", "month", "minute",
       "second", "time", "dt", "i128"},
      "1|x|-128|-32768| 2147483647 |-9223372036854775808|0.1|0.07|1.5-2i|red|some "
      "text|1998-09-02|1970-02|20:15|17:06:20|11:22:33.001|2019-01-02T17:10:21.001|-170141183460469231731687303715884105728|\n"
      "false| |+7|0|-1|0|1e3|-.5|3i|green|| 1969-12-31|1969-12|00:00|23:59:59|00:00:00.000|1970-01-01T00:00:00.000|+18446744073709551616|\n");
  std::shared_ptr<Source> source = open(folder);
  auto column = [&](const char* name) {
    Result<std::shared_ptr<const Column>> found = source->column("t", name);
    if (!found) ADD_FAILURE() << found.error().message;
    return found ? **found : Column{};
  };
  EXPECT_EQ(*source->rows("t"), 2u);
  EXPECT_THAT(values<uint8_t>(column("a")), ElementsAre(1, 0));
  EXPECT_THAT(values<char>(column("b")), ElementsAre('x', ' '));
  EXPECT_THAT(values<int8_t>(column("c")), ElementsAre(-128, 7));
  EXPECT_THAT(values<int16_t>(column("d")), ElementsAre(-32768, 0));
  EXPECT_THAT(values<int32_t>(column("e")), ElementsAre(2147483647, -1));
  EXPECT_THAT(values<int64_t>(column("f")), ElementsAre(INT64_MIN, 0));
  EXPECT_THAT(values<float>(column("g")), ElementsAre(0.1f, 1000.0f));
  EXPECT_THAT(values<double>(column("h")), ElementsAre(0.07, -0.5));
  struct Complex {
    double real, imaginary;
    bool operator==(const Complex&) const = default;
  };
  EXPECT_THAT(values<Complex>(column("i")), ElementsAre(Complex{1.5, -2}, Complex{0, 3}));
  EXPECT_THAT(texts(column("j")), ElementsAre("red", "green"));
  EXPECT_THAT(texts(column("k")), ElementsAre("some text", ""));
  EXPECT_THAT(values<int32_t>(column("l")), ElementsAre(10471, -1));
  EXPECT_THAT(values<int32_t>(column("m")), ElementsAre(1, -1));
  EXPECT_THAT(values<int32_t>(column("n")), ElementsAre(72900, 0));
  EXPECT_THAT(values<int32_t>(column("o")), ElementsAre(61580, 86399));
  EXPECT_THAT(values<int64_t>(column("p")), ElementsAre(40953001, 0));
  EXPECT_THAT(values<int64_t>(column("q")), ElementsAre(1546449021001, 0));
  const std::vector<__int128> wide = {std::numeric_limits<__int128>::min(), __int128{1} << 64};
  EXPECT_TRUE(values<__int128>(column("r")) == wide);
  EXPECT_EQ(column("e").statistics.max, 2147483647);
  EXPECT_EQ(column("h").statistics.float_min, -0.5);
}

TEST(Folder, RowsEndAsTheyLike) {
  for (std::string_view text :
       {"1|2\n3|4\n", "1|2|\n3|4|\n", "1|2\n3|4", "1|2|\n3|4|", "1|2\r\n3|4\r\n", "1|2|\r\n3|4|\r\n"}) {
    TestFolder folder;
    write_table(folder, {"i32", "i32"}, text);
    Result<std::shared_ptr<const Column>> b = open(folder)->column("t", "b");
    ASSERT_TRUE(b) << text << b.error().message;
    EXPECT_THAT(values<int32_t>(**b), ElementsAre(2, 4)) << text;
  }
}

TEST(Folder, EmptyFilesHaveNoRows) {
  TestFolder folder;
  write_table(folder, {"i32", "sym"}, "");
  std::shared_ptr<Source> source = open(folder);
  EXPECT_EQ(*source->rows("t"), 0u);
  EXPECT_EQ((*source->column("t", "a"))->rows, 0u);
  EXPECT_EQ((*source->column("t", "b"))->rows, 0u);
}

TEST(Folder, AnEmptyFileHasNoHeader) {
  TestFolder folder;
  write_table(folder, {"i32", "sym"}, "", "t.csv", R"(, "header": true)");
  std::shared_ptr<Source> source = open(folder);
  for (const Error& error : {source->rows("t").error(), source->column("t", "b").error()}) {
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_EQ(folder.local(error.message), "t.csv:1:1: expected the header `a`, found nothing");
  }
}

TEST(Folder, ReadsNoFileThatIsNotBelowIt) {
  TestFolder outside;
  outside.write("secret", "1\n");
  const std::string secret = outside.path() + "/secret";
  TestFolder folder;
  folder.write("inside.tbl", "7\n");
  ASSERT_EQ(symlink(secret.c_str(), (folder.path() + "/link").c_str()), 0);
  ASSERT_EQ(symlink("inside.tbl", (folder.path() + "/kept").c_str()), 0);
  const std::string up = "../" + outside.path().substr(outside.path().rfind('/') + 1) + "/secret";
  for (const std::string& file :
       {secret, up, std::string("link"), "./x/../../" + up, std::string("."), std::string("..")}) {
    folder.write(
        "schema.json",
        fmt::format(R"({{"tables": [{{"name": "t", "file": "{}", "columns": [{{"name": "a", "type": "i32"}}]}}]}})",
                    file));
    auto source = open_folder(folder.path(), {.threads = 1, .progress = false});
    ASSERT_FALSE(source) << file;
    EXPECT_EQ(source.error().fault, Fault::input);
    EXPECT_THAT(source.error().message, HasSubstr("schema.json: table `t`: the file `")) << file;
    EXPECT_THAT(source.error().message, HasSubstr("` is not below the folder `" + folder.path() + "`")) << file;
  }
  for (const char* file : {"inside.tbl", "./inside.tbl", "kept", "x/../inside.tbl"}) {
    folder.write(
        "schema.json",
        fmt::format(R"({{"tables": [{{"name": "t", "file": "{}", "columns": [{{"name": "a", "type": "i32"}}]}}]}})",
                    file));
    if (std::string(file).starts_with("x/")) mkdir((folder.path() + "/x").c_str(), 0700);
    auto column = open(folder)->column("t", "a");
    ASSERT_TRUE(column) << file << ": " << column.error().message;
    EXPECT_EQ((*column)->as<int32_t>()[0], 7);
  }
  unlink((folder.path() + "/link").c_str());
  unlink((folder.path() + "/kept").c_str());
  rmdir((folder.path() + "/x").c_str());
}

TEST(Folder, DecimalsHoldWhatTheySay) {
  auto load = [](const std::string& text) -> Result<std::shared_ptr<const Column>> {
    TestFolder folder;
    folder.write("schema.json",
                 R"j({"tables": [{"name": "t", "columns": [{"name": "a", "type": "decimal(15,2)"}]}]})j");
    folder.write("t.tbl", text);
    auto column = open(folder)->column("t", "a");
    if (!column) return Error{column.error().fault, folder.local(column.error().message)};
    return column;
  };
  auto column = load("0.07\n-9999999999999.99\n5\n-0\n1.50\n");
  ASSERT_TRUE(column) << column.error().message;
  EXPECT_EQ((*column)->as<double>()[0], 0.07);
  EXPECT_EQ((*column)->as<double>()[1], -9999999999999.99);
  for (const char* wrong : {"0.075", "10000000000000", "nan", "inf", "1e-3"}) {
    auto refused = load(fmt::format("1\n{}\n", wrong));
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().message, fmt::format("t.tbl:2:1: `{}` does not fit decimal(15,2) (column `a`)", wrong));
  }
}

TEST(Folder, DoesNotWaitForAPipe) {
  TestFolder folder;
  write_table(folder, {"i32"}, "1\n");
  ASSERT_EQ(unlink((folder.path() + "/t.tbl").c_str()), 0);
  ASSERT_EQ(mkfifo((folder.path() + "/t.tbl").c_str(), 0600), 0);
  alarm(60);
  auto rows = open(folder)->rows("t");
  alarm(0);
  ASSERT_FALSE(rows);
  EXPECT_THAT(rows.error().message, HasSubstr("t.tbl`: it is no regular file"));
}

TEST(Folder, HeadersAndQuotesInCsv) {
  TestFolder folder;
  write_table(folder, {"i32", "str", "sym"},
              "\"a\",b,c\r\n"
              "1,\"x, \"\"y\"\"\nz\",plain\r\n"
              "\"2\",\"\",\"line\nline\"\r\n"
              "3,,\"\"\"\"\n",
              "t.csv", R"(, "header": true)");
  std::shared_ptr<Source> source = open(folder);
  std::vector<std::string> names = {"c", "a", "b"};
  Result<std::vector<std::shared_ptr<const Column>>> columns = source->columns("t", names);
  ASSERT_TRUE(columns) << columns.error().message;
  EXPECT_EQ(*source->rows("t"), 3u);
  EXPECT_THAT(texts(*(*columns)[0]), ElementsAre("plain", "line\nline", "\""));
  EXPECT_THAT(values<int32_t>(*(*columns)[1]), ElementsAre(1, 2, 3));
  EXPECT_THAT(texts(*(*columns)[2]), ElementsAre("x, \"y\"\nz", "", ""));
}

// However the file is cut into pieces, the rows are the same.
TEST(TextFile, CutsAtRows) {
  std::string csv, expected_rows;
  size_t rows = 0;
  for (; rows < 200; ++rows)
    csv += rows % 3 ? fmt::format("{},\"a\n\"\"{}\"\"\n\n\"\n", rows, rows) : fmt::format("{},\n", rows);
  TestFolder folder;
  folder.write("t.csv", csv);
  for (size_t block_size : {1, 2, 3, 7, 16, 61, 1000, 1 << 20}) {
    Result<std::unique_ptr<TextFile>> file =
        TextFile::open(folder.path() + "/t.csv", {.delimiter = ',', .quoted = true}, 2, block_size);
    ASSERT_TRUE(file);
    EXPECT_EQ((*file)->rows(), rows);
    int64_t next = 0;
    size_t end = 0;
    for (const TextFile::Block& block : (*file)->blocks()) {
      ASSERT_EQ(block.first_row, next);
      ASSERT_EQ(block.begin, end);
      FieldReader reader((*file)->text(), block.begin, (*file)->format());
      for (int64_t row = 0; row < block.rows; ++row) {
        ASSERT_EQ(reader.next().text, std::to_string(next + row)) << "pieces of " << block_size;
        ASSERT_EQ(reader.next().after, FieldReader::After::row);
      }
      ASSERT_EQ(reader.offset(), block.end);
      next += block.rows;
      end = block.end;
    }
    EXPECT_EQ(next, static_cast<int64_t>(rows));
    EXPECT_EQ(end, csv.size());
    EXPECT_EQ((*file)->text()[(*file)->offset_of(100, 1)], '"');
    EXPECT_EQ((*file)->text().substr((*file)->offset_of(199, 0), 4), "199,");
  }
}

// The field at `at` byte by byte, and past what ends it.
FieldReader::Field field_by_bytes(std::string_view text, size_t& at, const TextFormat& format, std::string& unquoted) {
  FieldReader::Field field{{}, at, FieldReader::After::row};
  bool inside = false, any = false;
  for (; at < text.size() && (inside || (text[at] != format.delimiter && text[at] != '\n')); ++at)
    if (format.quoted && text[at] == '"') inside = !inside, any = true;
  field.text = text.substr(field.offset, at - field.offset);
  if (at < text.size() && text[at++] == format.delimiter) field.after = FieldReader::After::delimiter;
  if (field.after == FieldReader::After::row && field.text.ends_with('\r')) field.text.remove_suffix(1);
  if (!any) return field;
  field.broken_quote = inside || !field.text.starts_with('"') || !field.text.ends_with('"');
  if (field.broken_quote) return field;
  unquoted.clear();
  for (size_t i = 1; i + 1 < field.text.size(); ++i) {
    unquoted += field.text[i];
    if (field.text[i] == '"' && (++i + 1 >= field.text.size() || field.text[i] != '"')) field.broken_quote = true;
  }
  field.text = unquoted;
  return field;
}

// Every text of a few telling characters, ends of blocks and of the text included, is cut as a reading byte by byte cuts it.
TEST(FieldReader, AgreesWithReadingByBytes) {
  std::mt19937 random(1);
  size_t broken = 0, with_quotes = 0;
  for (int round = 0; round < 20000; ++round) {
    const TextFormat format{.delimiter = round % 3 ? ',' : '|', .quoted = round % 2 == 0};
    // Mostly quotes that match, so that reading gets far.
    std::string text;
    const size_t size = random() % 200;
    while (text.size() < size) {
      switch (random() % 8) {
        case 0: text += random() % 50 ? "\"a\"\"b,\n|\"" : "\""; break;
        case 1: text += '\n'; break;
        case 2: text += "\r\n"; break;
        case 3: text += std::string(random() % 70, 'x'); break;
        case 4: text += random() % 50 ? "" : "\r"; break;
        default: text += format.delimiter; break;
      }
    }
    // From a place outside of quotes, such as a row's start.
    size_t at = 0;
    std::string unquoted;
    for (size_t skipped = random() % 4; skipped && at < text.size(); --skipped)
      field_by_bytes(text, at, format, unquoted);
    FieldReader reader(text, at, format);
    for (size_t fields = 0; !reader.at_end(); ++fields) {
      const FieldReader::Field expected = field_by_bytes(text, at, format, unquoted), found = reader.next();
      ASSERT_EQ(found.offset, expected.offset) << testing::PrintToString(text) << " field " << fields;
      ASSERT_EQ(found.after, expected.after) << testing::PrintToString(text) << " field " << fields;
      ASSERT_EQ(found.broken_quote, expected.broken_quote) << testing::PrintToString(text) << " field " << fields;
      if (!found.broken_quote) {
        ASSERT_EQ(found.text, expected.text) << testing::PrintToString(text) << " field " << fields;
      }
      ASSERT_EQ(reader.offset(), at);
      broken += found.broken_quote;
      with_quotes += !unquoted.empty();
      if (random() % 8 == 0) {
        const std::string_view left = std::string_view(text).substr(at);
        const bool ends = left.empty() || left == "\r" || left.starts_with("\n") || left.starts_with("\r\n");
        ASSERT_EQ(reader.skip_end_of_row(), ends) << testing::PrintToString(text) << " field " << fields;
        if (ends) at += std::min(left.size(), left.find('\n') == left.npos ? left.size() : left.find('\n') + 1);
        ASSERT_EQ(reader.offset(), at);
      }
    }
    ASSERT_EQ(at, text.size());
  }
  EXPECT_GT(broken, 100u);
  EXPECT_GT(with_quotes, 10000u);
}

TEST(Folder, FewDistinctTextsBecomeADictionary) {
  TestFolder folder;
  std::string text;
  for (int i = 0; i < 4000; ++i) text += fmt::format("{}|{}|\n", i % 300, i);
  write_table(folder, {"sym", "sym"}, text);
  std::shared_ptr<Source> source = open(folder);
  std::shared_ptr<const Column> few = *source->column("t", "a"), many = *source->column("t", "b");
  EXPECT_EQ(few->encoding, Encoding::dictionary);
  EXPECT_EQ(few->dictionary->values.size(), 300u);
  EXPECT_EQ(many->encoding, Encoding::text);
  for (int i = 0; i < 4000; ++i) {
    ASSERT_EQ(few->text_at(i), std::to_string(i % 300));
    ASSERT_EQ(many->text_at(i), std::to_string(i));
  }
}

TEST(Folder, LoadsOnceAndOnlyWhatIsAsked) {
  TestFolder folder;
  write_table(folder, {"i32", "i32"}, "1|2|\n");
  std::shared_ptr<Source> source = open(folder);
  std::shared_ptr<const Column> first = *source->column("t", "a");
  EXPECT_TRUE(source->is_loaded("t", "a"));
  EXPECT_FALSE(source->is_loaded("t", "b"));
  EXPECT_EQ(*source->column("t", "a"), first);
  std::vector<std::string> twice = {"b", "b"};
  Result<std::vector<std::shared_ptr<const Column>>> both = source->columns("t", twice);
  ASSERT_TRUE(both);
  EXPECT_EQ((*both)[0], (*both)[1]);
}

TEST(Folder, ThreadsMayShareASource) {
  TestFolder folder;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += fmt::format("{}|{}|\n", i, i * 2);
  write_table(folder, {"i32", "i32"}, text);
  std::shared_ptr<Source> source = open(folder);
  std::vector<std::shared_ptr<const Column>> found(8);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] { found[i] = *source->column("t", i % 2 ? "a" : "b"); });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 2; i < found.size(); ++i) EXPECT_EQ(found[i], found[i - 2]);
}

// The message of loading all columns of t; nothing may be kept of it.
std::string message(const std::vector<std::string>& types, std::string_view text, const std::string& file = "t.tbl",
                    const std::string& more = "") {
  TestFolder folder;
  write_table(folder, types, text, file, more);
  std::shared_ptr<Source> source = open(folder);
  std::vector<std::string> names;
  for (size_t i = 0; i < types.size(); ++i) names.emplace_back(1, static_cast<char>('a' + i));
  Result<std::vector<std::shared_ptr<const Column>>> columns = source->columns("t", names);
  if (columns) return "success";
  EXPECT_EQ(columns.error().fault, Fault::input);
  for (const std::string& name : names) EXPECT_FALSE(source->is_loaded("t", name));
  return folder.local(columns.error().message);
}

// Zero, and a 0 in the validity; who knows no missing values gets an error that says where the first is.
TEST(Folder, EmptyFieldsAreMissingValues) {
  TestFolder folder;
  write_table(folder, {"i32", "f64", "date", "char", "bool", "sym", "i64"},
              "1|0.5|2024-02-29|x|true||1\n||||||2\n  | |\t| ||y|3\n", "t.tbl");
  std::shared_ptr<Source> source = open(folder);
  const auto valid = [&](const char* name) {
    const Column column = **source->column("t", name);
    std::string out;
    for (uint64_t row = 0; row < column.rows && column.validity; ++row)
      out += (*column.validity)[row] == std::byte{1} ? '1' : '0';
    return out;
  };
  for (const char* name : {"a", "b", "c", "e"}) EXPECT_EQ(valid(name), "100") << name;
  EXPECT_EQ(valid("d"), "101");  // a blank is a character
  EXPECT_EQ(valid("f"), "001");
  EXPECT_EQ(valid("g"), "");
  EXPECT_THAT(values<int32_t>(**source->column("t", "a")), ElementsAre(1, 0, 0));
  EXPECT_EQ((*source->column("t", "c"))->statistics.min, 0);  // of what is stored
  EXPECT_TRUE((*source->column("t", "a"))->has_nulls());
  EXPECT_FALSE((*source->column("t", "g"))->has_nulls());
  EXPECT_EQ(folder.local(source->complete_column("t", "c").error().message),
            "t.tbl:2:3: column `c` has no value here, nor in 1 more rows; HorseIR has no missing values; `@column_value(t, c, 1:bool)` has zeros there");
  EXPECT_EQ(folder.local(source->complete_column("t", "d").error().message),
            "t.tbl:2:4: column `d` has no value here; HorseIR has no missing values; `@column_value(t, c, 1:bool)` has zeros there");
  // A missing text is an empty one.
  EXPECT_EQ((*source->complete_column("t", "f"))->text_at(0), "");
}

TEST(Folder, PartsOfColumnsWithMissingValues) {
  TestFolder folder;
  write_table(folder, {"i32", "f64", "sym"}, "1|0.5|x\n||\n3||\"\"\n", "t.tbl");
  std::shared_ptr<Source> source = open(folder);
  const auto validity = [&](const char* name) {
    const std::shared_ptr<const Column> column = *source->part("t", name, ColumnPart::validity);
    EXPECT_EQ(column->type, hir::BasicType::boolean);
    EXPECT_EQ(column, *source->part("t", name, ColumnPart::validity));  // one object, for the device
    return values<uint8_t>(*column);
  };
  EXPECT_THAT(validity("a"), ElementsAre(1, 0, 1));
  EXPECT_THAT(validity("b"), ElementsAre(1, 0, 0));
  EXPECT_FALSE(source->part("t", "a", ColumnPart::values));
  EXPECT_THAT(values<int32_t>(**source->part("t", "a", ColumnPart::values_with_zeros)), ElementsAre(1, 0, 3));
  EXPECT_THAT(values<int64_t>(**source->part("t", "a", ColumnPart::values_with_zeros, hir::BasicType::i64)),
              ElementsAre(1, 0, 3));
  EXPECT_FALSE(source->part("t", "a", ColumnPart::values, hir::BasicType::i64));
  EXPECT_TRUE(source->part("t", "c", ColumnPart::values));
  write_table(folder, {"i32"}, "1\n2\n", "u.tbl");
  source = open(folder);
  EXPECT_THAT(values<uint8_t>(**source->part("t", "a", ColumnPart::validity)), ElementsAre(1, 1));
}

// As DuckDB's reader has it.
TEST(Folder, QuotedEmptyTextsAreMissingToo) {
  TestFolder folder;
  folder.write("t.csv", "a,b\n1,\n2,\"\"\n3,\" \"\n");
  std::shared_ptr<Source> source = open(folder);
  EXPECT_THAT(values<uint8_t>(**source->part("t", "b", ColumnPart::validity)), ElementsAre(0, 0, 1));
}

TEST(Folder, NumbersBeyondAnF64AreInfiniteAndSaid) {
  TestFolder folder;
  write_table(folder, {"f64", "i32"}, "1.5|1\n-1e999|2\n1e999|3\n1e-999|4\n");
  std::vector<std::string> notes;
  SourceOptions options{.threads = 1, .progress = false};
  options.note = [&](const std::string& note) { notes.push_back(folder.local(note)); };
  std::shared_ptr<Source> source = *open_folder(folder.path(), options);
  EXPECT_THAT(values<double>(**source->column("t", "a")), ElementsAre(1.5, -HUGE_VAL, HUGE_VAL, 0));
  EXPECT_THAT(notes, ElementsAre("t.tbl:2:1: numbers of column `a` from here on are beyond an f64: they are infinite"));
}

TEST(FolderErrors, ValuesThatDoNotFit) {
  EXPECT_EQ(message({"i32"}, "1\n2x\n"), "t.tbl:2:1: expected an i32 for `a`, found `2x`");
  EXPECT_EQ(message({"i32", "i8"}, "1|1|\n2|200|\n"), "t.tbl:2:3: `200` does not fit an i8 (column `b`)");
  EXPECT_EQ(message({"i32"}, "1.5\n"), "t.tbl:1:1: expected an i32 for `a`, found `1.5`");
  EXPECT_EQ(message({"i64"}, "9223372036854775808\n"),
            "t.tbl:1:1: `9223372036854775808` does not fit an i64 (column `a`)");
  EXPECT_EQ(message({"i32"}, "+-1\n"), "t.tbl:1:1: expected an i32 for `a`, found `+-1`");
  EXPECT_EQ(message({"f64"}, "1,5\n"), "t.tbl:1:1: expected an f64 for `a`, found `1,5`");
  EXPECT_EQ(message({"f32"}, "1e39\n"), "t.tbl:1:1: `1e39` does not fit an f32 (column `a`)");
  EXPECT_EQ(message({"bool"}, "2\n"), "t.tbl:1:1: expected a bool (0, 1, true or false) for `a`, found `2`");
  EXPECT_EQ(message({"char"}, "ab\n"), "t.tbl:1:1: expected a single character for `a`, found `ab`");
  EXPECT_EQ(message({"date"}, "1998-9-2\n"), "t.tbl:1:1: expected a date such as 1998-09-02 for `a`, found `1998-9-2`");
  EXPECT_EQ(message({"date"}, "1999-02-29\n"),
            "t.tbl:1:1: `1999-02-29` does not fit a date such as 1998-09-02 (column `a`)");
  EXPECT_EQ(message({"date"}, "2000-02-29\n2100-02-29\n"),
            "t.tbl:2:1: `2100-02-29` does not fit a date such as 1998-09-02 (column `a`)");
  EXPECT_EQ(message({"minute"}, "24:00\n"), "t.tbl:1:1: `24:00` does not fit minutes such as 20:15 (column `a`)");
  EXPECT_EQ(message({"dt"}, "1970-01-01 00h\n"),
            "t.tbl:1:1: expected a date and time such as 1998-09-02T20:15:59.999 for `a`, found `1970-01-01 00h`");
  EXPECT_EQ(message({"complex"}, "1+2\n"), "t.tbl:1:1: expected a complex number such as 1.5-2i for `a`, found `1+2`");
  EXPECT_EQ(message({"i32"}, std::string("\x01") + std::string(50, 'x') + "\n"),
            "t.tbl:1:1: expected an i32 for `a`, found `\\x01" + std::string(39, 'x') + "...`");
}

TEST(FolderErrors, TextsThatAreNotUtf8) {
  const std::string_view why =
      ": the text of column `b` is not in UTF-8: read_csv(.., encoding = 'latin-1') of SQL reads other encodings";
  EXPECT_EQ(message({"i32", "str"}, "1,M\xc3\xbcller\n2,M\xfcller\n", "t.csv"), "t.csv:2:3" + std::string(why));
  EXPECT_EQ(message({"i32", "sym"}, "1|\xc3|\n"), "t.tbl:1:3" + std::string(why));
}

TEST(ColumnNames, AreToldApartAsSqlDoes) {
  EXPECT_THAT(column_names({"id", "id", "ID", "Id_2", "x"}), testing::ElementsAre("id", "id_3", "ID_4", "Id_2", "x"));
}

TEST(FolderErrors, RowsThatDoNotFit) {
  EXPECT_EQ(message({"i32", "i32", "i32"}, "1|2|3|\n1|2\n"), "t.tbl:2:1: expected 3 columns, found 2");
  EXPECT_EQ(message({"i32", "i32"}, "1|2|\n1|2|3|\n"), "t.tbl:2:1: expected 2 columns, found more");
  EXPECT_EQ(message({"i32", "i32"}, "1|2|\n\n3\n"), "t.tbl:3:1: expected 2 columns, found 1");
  EXPECT_EQ(message({"i32", "str"}, "1,\"x\n", "t.csv"), "t.csv:1:3: the quotes of this field do not match");
  EXPECT_EQ(message({"i32", "str"}, "1,\"x\"y\n", "t.csv"), "t.csv:1:3: the quotes of this field do not match");
  EXPECT_EQ(message({"i32", "str"}, "1,x\"y\n2,z\n", "t.csv"), "t.csv:1:3: the quotes of this field do not match");
  EXPECT_EQ(message({"i32", "i32"}, "a,c\n1,2\n", "t.csv", R"(, "header": true)"),
            "t.csv:1:3: expected the header `b`, found `c`");
}

TEST(FolderErrors, TheFirstOfTheFileIsReportedAndOtherColumnsStillLoad) {
  std::string text;
  for (int i = 0; i < 400'000; ++i)
    text += i == 250'000 || i == 390'000 ? "1|x|\n" : "1|2|some text to make it long|\n";
  std::string first = message({"i32", "i32", "str"}, text);
  EXPECT_EQ(first, "t.tbl:250001:3: expected an i32 for `b`, found `x`");

  TestFolder folder;
  write_table(folder, {"i32", "i32"}, "1|2|\n3|x|\n");
  std::shared_ptr<Source> source = open(folder);
  EXPECT_FALSE(source->column("t", "b"));
  EXPECT_THAT(values<int32_t>(**source->column("t", "a")), ElementsAre(1, 3));
  EXPECT_FALSE(source->column("t", "b"));
}

TEST(FolderErrors, MissingThings) {
  TestFolder folder;
  write_table(folder, {"i32", "i32"}, "1|2|\n");
  std::shared_ptr<Source> source = open(folder);
  EXPECT_EQ(source->column("u", "a").error().message, "there is no table `u`; there are `t`");
  EXPECT_EQ(source->column("t", "xyz").error().message, "table `t` has no column `xyz`; there are `a`, `b`");
  EXPECT_EQ(source->rows("table").error().message, "there is no table `table`; there are `t`");

  TestFolder empty;
  Result<std::shared_ptr<Source>> none = open_folder(empty.path());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().fault, Fault::input);
  EXPECT_EQ(none.error().message,
            "the folder `" + empty.path() +
                "` is no data source: it has no schema.json and no file that ends in .csv, .tbl, .tsv");

  TestFolder no_file;
  no_file.write("schema.json", R"({"tables": [{"name": "t", "columns": [{"name": "a", "type": "i32"}]}]})");
  Result<std::shared_ptr<const Column>> column = open(no_file)->column("t", "a");
  ASSERT_FALSE(column);
  EXPECT_EQ(column.error().fault, Fault::input);
  EXPECT_EQ(no_file.local(column.error().message), "table `t`: cannot read `t.tbl`: No such file or directory");
  mkdir((no_file.path() + "/t.tbl").c_str(), 0777);
  EXPECT_EQ(no_file.local(open(no_file)->rows("t").error().message),
            "table `t`: cannot read `t.tbl`: it is no regular file");
  rmdir((no_file.path() + "/t.tbl").c_str());
}

// Rows written down at random and read back; the file is the only thing between.
TEST(Folder, ReadsBackWhateverIsWrittenProperly) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    bool csv = round % 2;
    std::string alphabet = csv ? "ab ,\"\n\r|" : "ab ,\"\r", text;
    std::vector<std::string> first, second;
    for (size_t row = 0, rows = random() % 40; row < rows; ++row) {
      for (std::vector<std::string>* column : {&first, &second}) {
        std::string value = "x";
        for (size_t i = random() % 6; i > 0; --i) value += alphabet[random() % alphabet.size()];
        value += "y";  // the end of a row takes a trailing CR with it
        column->push_back(value);
        if (csv) {
          text += '"';
          for (char c : value) text += c == '"' ? "\"\"" : std::string(1, c);
          text += '"';
        } else {
          text += value;
        }
        text += column == &first ? (csv ? "," : "|") : "\n";
      }
    }
    TestFolder folder;
    write_table(folder, {"str", "str"}, text, csv ? "t.csv" : "t.tbl");
    std::shared_ptr<Source> source = open(folder);
    Result<std::shared_ptr<const Column>> a = source->column("t", "a"), b = source->column("t", "b");
    ASSERT_TRUE(a) << a.error().message << "\n" << text;
    ASSERT_TRUE(b) << b.error().message << "\n" << text;
    EXPECT_EQ(texts(**a), first) << text;
    EXPECT_EQ(texts(**b), second) << text;
  }
}

// Success or a message with a position; the sanitizers watch the rest.
TEST(FolderErrors, GarbageIsAnErrorNotACrash) {
  std::mt19937 random(2);
  size_t errors = 0;
  for (int round = 0; round < 400; ++round) {
    std::string text;
    for (size_t i = random() % 30; i > 0; --i) text += "01|,\"\n\r\xff-"[random() % 9];
    bool csv = round % 2;
    std::string said = message({"i32", "str"}, text, csv ? "t.csv" : "t.tbl");
    if (said == "success") continue;
    ++errors;
    EXPECT_THAT(said, testing::MatchesRegex("t\\.(csv|tbl):[0-9]+:[0-9]+: .*")) << text;
    TestFolder folder;
    folder.write("t.csv", text);
    for (size_t block_size : {1, 3}) {
      Result<std::unique_ptr<TextFile>> file =
          TextFile::open(folder.path() + "/t.csv", {.delimiter = ',', .quoted = csv}, 1, block_size);
      ASSERT_TRUE(file);
      EXPECT_LE((*file)->rows(), text.size());
    }
  }
  EXPECT_GT(errors, 200u);
}

// orders refer to people by `type`.
std::unique_ptr<TestFolder> people_and_orders(const std::string& type, std::string_view people,
                                              std::string_view orders) {
  auto folder = std::make_unique<TestFolder>();
  folder->write("schema.json", fmt::format(R"({{"tables": [
      {{"name": "people", "columns": [{{"name": "age", "type": "i32"}}, {{"name": "key", "type": "{0}"}}], "primary": ["key"]}},
      {{"name": "orders", "columns": [{{"name": "person", "type": "{0}"}}], "foreign": [{{"column": "person", "table": "people", "key": "key"}}]}}]}})",
                                           type));
  folder->write("people.tbl", people);
  folder->write("orders.tbl", orders);
  return folder;
}

TEST(ForeignKeys, BecomeRows) {
  struct Case {
    const char *type, *people, *orders;
  };
  const Case cases[] = {
      {"i32", "1|10|\n1|-20|\n1|30|\n", "30\n10\n30\n-20\n"},  // hashed
      {"i64", "1|7|\n1|5|\n1|6|\n", "6\n7\n6\n5\n"},           // dense, not in order
      {"date", "1|1998-01-01|\n1|1997-01-01|\n1|1999-01-01|\n", "1999-01-01\n1998-01-01\n1999-01-01\n1997-01-01\n"},
      {"sym", "1|ann|\n1|bob|\n1|eve|\n", "eve\nann\neve\nbob\n"},
      {"i8", "1|1|\n1|-128|\n1|127|\n", "127\n1\n127\n-128\n"},
  };
  for (const Case& c : cases) {
    std::unique_ptr<TestFolder> folder = people_and_orders(c.type, c.people, c.orders);
    Result<std::shared_ptr<const Column>> column = open(*folder)->column("orders", "person");
    ASSERT_TRUE(column) << column.error().message;
    EXPECT_TRUE((*column)->is_foreign_key);
    EXPECT_EQ((*column)->foreign_table, "people");
    ASSERT_EQ((*column)->foreign_rows->size(), 16u);
    std::vector<uint64_t> rows;
    for (uint64_t row = 0; row < 4; ++row) rows.push_back((*column)->foreign_row(row));
    EXPECT_THAT(rows, ElementsAre(2, 0, 2, 1)) << c.type;
  }
}

TEST(ForeignKeys, ThatMatchNothingOrTwoAreErrors) {
  const std::string unmatched =
      ", to which schema.json says that it refers: without that foreign key an outer join keeps the row";
  auto error = [](const std::string& type, std::string_view people, std::string_view orders) {
    std::unique_ptr<TestFolder> folder = people_and_orders(type, people, orders);
    Result<std::shared_ptr<const Column>> column = open(*folder)->column("orders", "person");
    return column ? "success" : folder->local(column.error().message);
  };
  EXPECT_EQ(error("i32", "1|10|\n1|20|\n", "20\n15\n11\n"),
            "orders.tbl:2:1: 15 of `orders.person` is not in `people.key`" + unmatched);
  EXPECT_EQ(error("i32", "1|10|\n1|11|\n", "11\n12\n"), "orders.tbl:2:1: 12 of `orders.person` is not in `people.key`" + unmatched);
  EXPECT_EQ(error("i32", "1|10|\n1|11|\n", "9\n"), "orders.tbl:1:1: 9 of `orders.person` is not in `people.key`" + unmatched);
  EXPECT_EQ(error("i32", "", "1\n"), "orders.tbl:1:1: 1 of `orders.person` is not in `people.key`" + unmatched);
  EXPECT_EQ(error("sym", "1|ann|\n", "ann\nanne\n"),
            "orders.tbl:2:1: `anne` of `orders.person` is not in `people.key`" + unmatched);
  EXPECT_EQ(error("i32", "1|10|\n1|20|\n1|10|\n", "20\n"),
            "people.tbl:3:3: 10 stands a second time in `key`, the primary key of table `people`");
  EXPECT_EQ(error("sym", "1|a|\n1|a|\n", "a\n"),
            "people.tbl:2:3: `a` stands a second time in `key`, the primary key of table `people`");
  EXPECT_EQ(error("i32", "1|x|\n", "1\n"), "people.tbl:1:3: expected an i32 for `key`, found `x`");
}

TEST(ForeignKeys, NeedValuesAndOneParent) {
  TestFolder folder;
  folder.write("schema.json", R"({"tables": [
      {"name": "p", "columns": [{"name": "k", "type": "i32"}]},
      {"name": "c", "columns": [{"name": "r", "type": "i32"}, {"name": "x", "type": "i32"}],
       "foreign": [{"column": "r", "table": "p", "key": "k"}]}]})");
  folder.write("p.tbl", "5\n7\n5\n");
  folder.write("c.tbl", "5|1\n|2\n");
  auto error = [&] { return folder.local(open(folder)->complete_column("c", "r").error().message); };
  EXPECT_EQ(error(), "c.tbl:2:1: column `r` has no value here; HorseIR has no missing values; `@column_value(t, c, 1:bool)` has zeros there");
  // Who takes zeros gets the values, and no rows.
  const std::shared_ptr<const Column> loose = *open(folder)->column("c", "r");
  EXPECT_THAT(values<int32_t>(*loose), ElementsAre(5, 0));
  EXPECT_FALSE(loose->foreign_rows);
  folder.write("c.tbl", "5|1\n7|2\n");
  EXPECT_EQ(error(), "p.tbl:3:1: 5 stands a second time in `p.k`, which `c.r` refers to");
}

// Keys are checked when the first column of their table is asked for, whichever it is.
TEST(PrimaryKeys, RepeatNowhere) {
  auto error = [](const std::string& types, const std::string& key, std::string_view text) {
    TestFolder folder;
    folder.write(
        "schema.json",
        fmt::format(
            R"({{"tables": [{{"name": "t", "columns": [{{"name": "x", "type": "i32"}}, {}], "primary": [{}]}}]}})",
            types, key));
    folder.write("t.tbl", text);
    std::shared_ptr<Source> source = open(folder);
    for (int time = 0; time < 2; ++time)
      if (Result<std::shared_ptr<const Column>> x = source->column("t", "x"); !x) {
        EXPECT_EQ(x.error().fault, Fault::input);
        if (time == 1) return folder.local(x.error().message);
      } else if (time == 1) {
        return std::string("success");
      }
    return std::string("the second time is another");
  };
  const std::string a_i32 = R"({"name": "a", "type": "i32"})", b_sym = R"({"name": "b", "type": "sym"})";
  EXPECT_EQ(error(a_i32, R"("a")", "0|1\n0|2\n0|5\n"), "success");   // ascending
  EXPECT_EQ(error(a_i32, R"("a")", "0|3\n0|1\n0|2\n"), "success");   // dense
  EXPECT_EQ(error(a_i32, R"("a")", "0|9\n0|1\n0|-4\n"), "success");  // neither
  EXPECT_EQ(error(a_i32, R"("a")", "0|1\n0|2\n0|2\n"),
            "t.tbl:3:3: 2 stands a second time in `a`, the primary key of table `t`");
  EXPECT_EQ(error(a_i32, R"("a")", "0|9\n0|1\n0|9\n0|1\n"),
            "t.tbl:3:3: 9 stands a second time in `a`, the primary key of table `t`");
  EXPECT_EQ(error(a_i32, R"("a")", "0|9\n0|\n"),
            "t.tbl:2:3: `a` has no value here; the primary key of table `t` needs one");
  EXPECT_EQ(error(b_sym, R"("b")", "0|x\n0|y\n"), "success");
  EXPECT_EQ(error(b_sym, R"("b")", "0|x\n0|y\n0|x\n"),
            "t.tbl:3:3: `x` stands a second time in `b`, the primary key of table `t`");
  EXPECT_EQ(error(a_i32 + ", " + b_sym, R"("a", "b")", "0|1|x\n0|1|y\n0|2|x\n"), "success");
  EXPECT_EQ(error(a_i32 + ", " + b_sym, R"("a", "b")", "0|1|x\n0|1|y\n0|1|x\n"),
            "t.tbl:3:3: 1, `x` stands a second time in `a, b`, the primary key of table `t`");
  const std::string d_f64 = R"({"name": "d", "type": "f64"})", c_char = R"({"name": "c", "type": "char"})";
  EXPECT_EQ(error(d_f64, R"("d")", "0|0.5\n0|0\n0|-0\n"),
            "t.tbl:3:3: -0 stands a second time in `d`, the primary key of table `t`");
  EXPECT_EQ(error(c_char, R"("c")", "0|\xe9\n0|a\n"), "success");
  // Many, so that the table of rows grows beyond its least size.
  std::string many;
  for (int i = 0; i < 5000; ++i) many += fmt::format("0|{}\n", i * 7919 % 5003);
  EXPECT_EQ(error(a_i32, R"("a")", many), "success");
  EXPECT_EQ(error(a_i32, R"("a")", many + "0|2916\n"),  // 7919 modulo 5003
            "t.tbl:5001:3: 2916 stands a second time in `a`, the primary key of table `t`");
}

TEST(ForeignKeys, OfCharactersBeyondAscii) {
  std::unique_ptr<TestFolder> folder = people_and_orders("char", "1|\xe9|\n1|\xea|\n", "\xea\n\xe9\n");
  Result<std::shared_ptr<const Column>> column = open(*folder)->column("orders", "person");
  ASSERT_TRUE(column) << column.error().message;
  EXPECT_EQ((*column)->foreign_row(0), 1u);
  EXPECT_EQ((*column)->foreign_row(1), 0u);
}

TEST(ForeignKeys, MayGoInACircle) {
  TestFolder folder;
  folder.write("schema.json",
               R"({"tables": [{"name": "t", "columns": [{"name": "a", "type": "i32"}, {"name": "b", "type": "i32"}],
      "foreign": [{"column": "a", "table": "t", "key": "b"}, {"column": "b", "table": "t", "key": "a"}]}]})");
  folder.write("t.tbl", "1|2|\n2|3|\n3|1|\n");
  std::shared_ptr<Source> source = open(folder);
  Result<std::shared_ptr<const Column>> a = source->column("t", "a");
  ASSERT_TRUE(a) << a.error().message;
  EXPECT_EQ((*a)->foreign_row(0), 2u);
  EXPECT_EQ((*source->column("t", "b"))->foreign_row(0), 1u);
}

}  // namespace
}  // namespace rndn::data::folder_test
