// What --data and --table name: schemes, folders without a schema, files; and what is found out of
// files beyond their first rows. What small files hold is in csv/ (csv_files_test.cpp).
#include "runtime/data/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/data/support.h"

namespace rndn::data::sources_test {
namespace {

namespace fs = std::filesystem;
using hir::BasicType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Opened {
  Result<std::shared_ptr<Source>> source;
  std::vector<std::string> notes;
};

Opened open(const TestFolder& folder, SourceNames names, std::span<const Scheme> schemes = {},
            unsigned threads = 2) {
  if (!names.data.empty() && names.data.find(':') == std::string::npos)
    names.data = names.data == "." ? folder.path() : folder.path() + "/" + names.data;
  Opened opened{Error{}, {}};
  SourceOptions options{.threads = threads, .progress = false};
  options.note = [&](const std::string& note) { opened.notes.push_back(folder.local(note)); };
  opened.source = open_source(names, schemes, options);
  return opened;
}

std::string error_of(const TestFolder& folder, SourceNames names,
                     std::span<const Scheme> schemes = {}) {
  Opened opened = open(folder, std::move(names), schemes);
  return opened.source ? "success" : folder.local(opened.source.error().message);
}

std::string columns_of(const Source& source, const std::string& table) {
  std::string all;
  for (const ColumnSchema& c : source.schema().find(table)->columns)
    all += fmt::format("{}{}:{}", all.empty() ? "" : " ", c.name, hir::basic_type_name(c.type));
  return all;
}

// --- Beyond the first rows ---

// 1,000 rows of `first`, then what follows.
std::string long_text(const std::string& header, const std::string& first,
                      const std::string& then) {
  std::string text = header + "\n";
  for (int i = 0; i < 1500; ++i) text += first + "\n";
  return text + then;
}

struct Wide {
  std::string header, first, then, columns;
  std::vector<std::string> notes;
};

TEST(Guess, AValueThatBreaksItWidensTheColumnAndIsSaid) {
  const Wide cases[] = {
      {"x",
       "1",
       "2.5\n3\n2.5\n",
       "x:f64",
       {"t.csv:1502:1: `2.5` is no i64 as in the first rows: column `x` is read as f64"}},
      {"x,y",
       "1,a",
       "n/a,b\n",
       "x:sym y:sym",
       {"t.csv:1502:1: `n/a` is no i64 as in the first rows: column `x` is read as text"}},
      {"x,y",
       "1,2024-02-29",
       "1,2024-02-29 10:00:00\n",
       "x:i64 y:dt",
       {"t.csv:1502:3: `2024-02-29 10:00:00` is no date as in the first rows: column `y` is read "
        "as "
        "dt"}},
      {"x",
       "10:00",
       "10:00:30\n",
       "x:second",
       {"t.csv:1502:1: `10:00:30` is no minute as in the first rows: column `x` is read as "
        "second"}},
      {"x",
       "10:00",
       "10:00:30\n10:00:30.5\n",
       "x:time",
       {"t.csv:1502:1: `10:00:30` is no minute as in the first rows: column `x` is read as time"}},
      {"x",
       "1",
       "007\n",
       "x:sym",
       {"t.csv:1502:1: `007` is no i64 as in the first rows: column `x` is read as text"}},
      {"x", "true", "1\n", "x:bool", {}},
      {"x",
       "1",
       "true\n",
       "x:bool",
       {"t.csv:1502:1: `true` is no i64 as in the first rows: column `x` is read as bool"}},
      {"x",
       "2",
       "true\n",
       "x:sym",
       {"t.csv:1502:1: `true` is no i64 as in the first rows: column `x` is read as text"}},
      {"x",
       "2",
       "9223372036854775808\n",
       "x:f64",
       {"t.csv:1502:1: `9223372036854775808` is beyond an i64: column `x` is read as f64, of 53 "
        "bits"}},
      {"x",
       "2",
       "nan\n",
       "x:f64",
       {"t.csv:1502:1: `nan` is no i64 as in the first rows: column `x` is read as f64"}},
      {"x", "", "5\n", "x:i64", {}},
      {"x,y", "", "5,6\n", "x:i64 y:i64", {}},
      {"x,y", "a,", "b,\"c\n\"\n", "x:sym y:sym", {}},
      {"d", "01/02/2024", "13/02/2024\n", "d:date", {}},
      {"d", "01/02/2024", "02/13/2024\n", "d:date", {}},
      {"d", "01/02/2024", "13/02/2024\n02/13/2024\n", "d:sym", {}},
      {"d,x",
       "01/02/2024,1",
       "01/02/2024,2\n",
       "d:sym x:i64",
       {"t.csv: the dates of column `d` may have the day or the month first: it is read as text (a "
        "schema.json with its `format` decides)"}},
      {"d,x",
       "13/02/2024,1",
       "02/13/2024,2\n",
       "d:sym x:i64",
       {"t.csv:1502:1: `02/13/2024` is no date as in the first rows: column `d` is read as text"}},
  };
  for (const Wide& c : cases) {
    TestFolder folder;
    folder.write("t.csv", long_text(c.header, c.first, c.then));
    Opened opened = open(folder, {.data = "t.csv"});
    ASSERT_TRUE(opened.source) << opened.source.error().message;
    EXPECT_EQ(columns_of(**opened.source, "t"), c.columns) << c.then;
    EXPECT_EQ(opened.notes, c.notes) << c.then;
    for (const ColumnSchema& column : (*opened.source)->schema().tables[0].columns)
      EXPECT_TRUE((*opened.source)->column("t", column.name)) << c.then;
  }
}

TEST(Guess, TheEndOfTheRowsMayBeAColumn) {
  TestFolder folder;
  folder.write("t.csv", long_text("a,b,", "1,2,", "3,4,x\n5,6,\n"));
  Opened opened = open(folder, {.data = "t.csv"});
  ASSERT_TRUE(opened.source) << opened.source.error().message;
  EXPECT_EQ(columns_of(**opened.source, "t"), "a:i64 b:i64 c2:sym");
  EXPECT_EQ((*(*opened.source)->column("t", "c2"))->text_at(1500), "x");
  folder.write("t.csv", long_text("a,b", "1,2,", "3,4,7\n5,6,\n"));
  opened = open(folder, {.data = "t.csv"});
  ASSERT_TRUE(opened.source) << opened.source.error().message;
  EXPECT_EQ(columns_of(**opened.source, "t"), "a:i64 b:i64 c2:i64");
  EXPECT_TRUE((*(*opened.source)->column("t", "c2"))->has_nulls());
  folder.write("t.csv", long_text("a,b", "1,2,", "3,4,7\n5,6\n"));
  EXPECT_EQ(error_of(folder, {.data = "t.csv"}), "t.csv:1503:1: expected 3 columns, found 2");
  folder.write("t.csv", long_text("a,b", "1,2", "3,4,7\n"));
  EXPECT_EQ(error_of(folder, {.data = "t.csv"}), "t.csv:1502:1: expected 2 columns, found 3");
}

TEST(Guess, SaysNoMoreThanCanBeRead) {
  std::string header, first, then;
  for (int c = 0; c < 30; ++c) {
    header += fmt::format("{}c{}", c ? "," : "", c);
    first += c ? ",1" : "1";
    then += c ? ",x" : "x";
  }
  TestFolder folder;
  folder.write("t.csv", long_text(header, first, then + "\n"));
  Opened opened = open(folder, {.data = "t.csv"});
  ASSERT_TRUE(opened.source);
  EXPECT_EQ(opened.notes.size(), 9u);
  EXPECT_EQ(opened.notes.back(), "t.csv: and 22 more columns of which something is to be said");
}

// Files of several blocks: what is found does not depend on who looks at which of them.
TEST(Guess, IsTheSameForEveryNumberOfThreads) {
  std::mt19937 random(5);
  for (int round = 0; round < 3; ++round) {
    std::string text = "i,f,d,t,w,s\n";
    const int rows = 150'000, odd = static_cast<int>(random() % rows);
    for (int row = 0; row < rows; ++row) {
      const bool breaks = row == odd || random() % 50'000 == 0;
      text += fmt::format(
          "{},{},2024-01-{:02},{},{},{}\n", breaks ? "1.5" : std::to_string(random()),
          random() % 1000 * 0.25, 1 + random() % 28, breaks ? "10:00:01" : "10:00",
          breaks ? "99999999999999999999" : "5", random() % 7 ? "some plain text" : "\"a\nb\"");
    }
    TestFolder folder;
    folder.write("t.csv", text);
    ASSERT_GT(text.size(), size_t{5} << 20);
    Opened one = open(folder, {.data = "t.csv"}, {}, 1),
           four = open(folder, {.data = "t.csv"}, {}, 4);
    ASSERT_TRUE(one.source) << one.source.error().message;
    ASSERT_TRUE(four.source);
    EXPECT_EQ(columns_of(**one.source, "t"), "i:f64 f:f64 d:date t:second w:f64 s:sym");
    EXPECT_EQ(schema_text((*one.source)->schema()), schema_text((*four.source)->schema()));
    EXPECT_EQ(one.notes, four.notes);
    EXPECT_EQ(one.notes.size(), 3u);
    for (const ColumnSchema& column : (*one.source)->schema().tables[0].columns) {
      const auto a = *(*one.source)->column("t", column.name),
                 b = *(*four.source)->column("t", column.name);
      ASSERT_EQ(a->rows, static_cast<uint64_t>(rows));
      ASSERT_EQ(b->rows, static_cast<uint64_t>(rows));
      EXPECT_TRUE(*a->data == *b->data) << column.name;
    }
  }
}

// Every file of csv/, read by the schema.json that is written of it, has the columns that it shows.
TEST(Guess, AsASchemaItReadsTheSame) {
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(RNDN_SOURCE_DIR) / "tests/data/csv")) {
    const fs::path& path = entry.path();
    if (path.extension() == ".expected") continue;
    SourceOptions quiet{.threads = 1, .progress = false};
    quiet.note = [](const std::string&) {};
    Result<std::shared_ptr<Source>> shown = open_source({.data = path.string()}, {}, quiet);
    if (!shown) continue;
    ++files;
    Result<Schema> schema = guess_schema(path.string(), quiet);
    ASSERT_TRUE(schema) << schema.error().message;
    TestFolder folder;
    folder.write("schema.json", schema_text(*schema));
    folder.write(path.filename().string(), *read_file(path.string()));
    Result<std::shared_ptr<Source>> described = open_folder(folder.path(), quiet);
    ASSERT_TRUE(described) << described.error().message;
    const TableSchema& table = (*shown)->schema().tables[0];
    for (const ColumnSchema& column : table.columns) {
      const auto a = (*shown)->column(table.name, column.name),
                 b = (*described)->column(table.name, column.name);
      ASSERT_TRUE(a && b) << path << " " << (a ? b : a).error().message;
      EXPECT_EQ((*a)->type, (*b)->type);
      EXPECT_EQ(*(*a)->data, *(*b)->data) << path << " " << column.name;
      EXPECT_EQ((*a)->has_nulls(), (*b)->has_nulls());
    }
  }
  EXPECT_GT(files, 40u);
}

// --- Folders and files ---

TEST(Sources, AFolderWithoutASchemaHasItsFilesAsTables) {
  TestFolder folder;
  folder.write("orders.csv", "id,price\n1,0.5\n2,1.5\n");
  folder.write("regions.tbl", "0|AFRICA|\n1|ASIA|\n");
  folder.write("notes.TSV", "a\tb\n1\tx\n");
  folder.write("readme.txt", "no table");
  folder.write(".hidden.csv", "a,b\n1,2\n");
  Opened opened = open(folder, {.data = "."});
  ASSERT_TRUE(opened.source) << opened.source.error().message;
  Source& source = **opened.source;
  EXPECT_THAT(source.schema().table_names(), ElementsAre("notes", "orders", "regions"));
  EXPECT_EQ(columns_of(source, "orders"), "id:i64 price:f64");
  EXPECT_EQ(columns_of(source, "regions"), "c0:i64 c1:sym");
  EXPECT_EQ(columns_of(source, "notes"), "a:i64 b:sym");
  EXPECT_EQ(*source.rows("regions"), 2u);
  EXPECT_EQ((*source.column("orders", "price"))->as<double>()[1], 1.5);
  EXPECT_THAT(opened.notes, IsEmpty());
  // A schema.json says what there is, whatever else lies beside it.
  folder.write("schema.json", R"({"tables": [{"name": "o", "file": "orders.csv", "header": true,
      "columns": [{"name": "id", "type": "i32"}, {"name": "price", "type": "f64"}]}]})");
  opened = open(folder, {.data = "."});
  ASSERT_TRUE(opened.source);
  EXPECT_THAT((*opened.source)->schema().table_names(), ElementsAre("o"));
}

TEST(Sources, AFileThatIsNoTableIsLeftOutAndSaid) {
  TestFolder folder;
  folder.write("a.csv", "x,y\n1,2\n3\n");
  folder.write("b.csv", "x\n1\n");
  folder.write("c.csv", "");
  Opened opened = open(folder, {.data = "."});
  ASSERT_TRUE(opened.source);
  EXPECT_THAT((*opened.source)->schema().table_names(), ElementsAre("b"));
  EXPECT_THAT(opened.notes,
              testing::UnorderedElementsAre(
                  "a.csv:3:1: expected 2 columns, found 1; it is left out",
                  "cannot read `c.csv` as a table: the file is empty; it is left out"));
  TestFolder wrong;
  wrong.write("a.csv", "x,y\n1,2\n3\n");
  EXPECT_EQ(error_of(wrong, {.data = "."}), "a.csv:3:1: expected 2 columns, found 1");
}

TEST(Sources, FoldersThatAreNone) {
  TestFolder folder;
  folder.write("a.csv", "x\n1\n");
  folder.write("a.tbl", "1\n");
  EXPECT_THAT(
      error_of(folder, {.data = "."}),
      HasSubstr(
          "would both be the table `a`; a schema.json or --table NAME=FILE tells them apart"));
  EXPECT_EQ(error_of(folder, {.data = "none"}), "cannot read `none`: No such file or directory");
  EXPECT_EQ(error_of(folder, {.data = "none.csv"}),
            "cannot read `none.csv`: No such file or directory");
}

TEST(Sources, TablesByTheirOwnNames) {
  TestFolder folder;
  folder.write("x.csv", "a\n1\n");
  folder.write("y.data", "b;c\n1;2\n");
  const std::string x = folder.path() + "/x.csv", y = folder.path() + "/y.data";
  Opened opened = open(folder, {.tables = {"first=" + x, "second=" + y}});
  ASSERT_TRUE(opened.source) << opened.source.error().message;
  EXPECT_THAT((*opened.source)->schema().table_names(), ElementsAre("first", "second"));
  EXPECT_EQ(columns_of(**opened.source, "second"), "b:i64 c:i64");
  EXPECT_EQ((*(*opened.source)->column("second", "c"))->as<int64_t>()[0], 2);
  EXPECT_EQ((*(*opened.source)->column_as("first", "a", BasicType::sym))->text_at(0), "1");
  opened = open(folder, {.data = "x.csv", .tables = {"z=" + y}});
  ASSERT_TRUE(opened.source);
  EXPECT_THAT((*opened.source)->schema().table_names(), ElementsAre("x", "z"));
  EXPECT_EQ(error_of(folder, {.data = "x.csv", .tables = {"x=" + y}}),
            "there are two tables `x`; --table NAME=FILE gives one another name");
  for (const char* wrong : {"x", "=x", "x=", ""})
    EXPECT_EQ(error_of(folder, {.tables = {wrong}}),
              fmt::format("--table is NAME=FILE, not `{}`", wrong));
}

// A source that counts: its table has as many rows as its name says.
class Counting : public TableLoader {
 public:
  explicit Counting(uint64_t rows) : rows_(rows) {
    schema_.tables.push_back(
        {.name = "numbers", .columns = {{.name = "n", .type = BasicType::i64}}});
  }
  const Schema& schema() const override { return schema_; }
  Result<uint64_t> rows(size_t) override { return rows_; }
  Result<std::vector<Column>> load(size_t, std::span<const size_t>) override {
    Column column = make_column(BasicType::i64, rows_);
    for (uint64_t i = 0; i < rows_; ++i) reinterpret_cast<uint64_t*>(column.data->data())[i] = i;
    return std::vector<Column>{column};
  }
  std::string fingerprint(size_t, size_t) const override { return ""; }
  std::string describe(size_t, size_t, uint64_t) override { return ""; }

 private:
  uint64_t rows_;
  Schema schema_;
};

constexpr Scheme counting = {
    .name = "count",
    .form = "count:N",
    .open = [](std::string_view what,
               const SourceOptions&) -> Result<std::unique_ptr<TableLoader>> {
      if (what != "5") return usage_error("`count:{}`: no", what);
      return std::unique_ptr<TableLoader>(std::make_unique<Counting>(5));
    },
    .schema = [](std::string_view) -> Result<Schema> { return Counting(0).schema(); }};

TEST(Sources, SchemesAreRows) {
  TestFolder folder;
  folder.write("x.csv", "a\n1\n");
  Opened opened = open(folder, {.data = "count:5", .tables = {"x=" + folder.path() + "/x.csv"}},
                       {&counting, 1});
  ASSERT_TRUE(opened.source) << opened.source.error().message;
  EXPECT_THAT((*opened.source)->schema().table_names(), ElementsAre("numbers", "x"));
  EXPECT_EQ(*(*opened.source)->rows("numbers"), 5u);
  EXPECT_EQ((*(*opened.source)->column("numbers", "n"))->as<int64_t>()[4], 4);
  EXPECT_FALSE((*opened.source)->column_as("numbers", "n", BasicType::sym));
  EXPECT_EQ(error_of(folder, {.data = "count:7"}, {&counting, 1}), "`count:7`: no");
  EXPECT_EQ(
      error_of(folder, {.data = "counts:7"}, {&counting, 1}),
      "there is no source `counts:7`: expected count:N, a folder or a file (.csv, .tbl, .tsv)");
  EXPECT_EQ(open_schema({.data = "count:0"}, {&counting, 1}, {})->tables[0].name, "numbers");
}

// A file that a program names is read once, until it changes.
TEST(Files, AreKeptUntilTheyChange) {
  TestFolder folder;
  folder.write("x.csv", "a\n1\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  Files files(SourceOptions{.threads = 1, .progress = false});
  const std::string path = folder.path() + "/x.csv";
  std::shared_ptr<Source> first = *files.open(path), second = *files.open(path);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first->schema().tables[0].name, "x");
  folder.write("x.csv", "a\n7\n");
  EXPECT_EQ((*(*files.open(path))->column("x", "a"))->as<int64_t>()[0], 7);
  EXPECT_EQ((*first->column("x", "a"))->rows, 1u);
  EXPECT_FALSE(files.open(folder.path() + "/none.csv"));
}

// --- The readers of lines ---

// Rows are the same wherever a file is cut, with empty lines and line ends of every kind.
TEST(Lines, OfEveryKindGiveTheSameRows) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const std::string end = round % 3 == 0 ? "\n" : round % 3 == 1 ? "\r\n" : "\r";
    std::string text = round % 4 ? "" : "\xef\xbb\xbf";
    const auto empty_lines = [&] {
      for (size_t i = random() % 3; i; --i) text += end;
    };
    empty_lines();
    text += "a,b" + end;
    int64_t sum = 0;
    const int rows = 1 + static_cast<int>(random() % 300);
    for (int row = 0; row < rows; ++row) {
      empty_lines();
      const int value = static_cast<int>(random() % 1000);
      sum += value;
      text += fmt::format("{},\"x{}{}\"{}", value, random() % 5 ? "" : end + end, row,
                          row % 50 ? "" : ",") +
              end;
    }
    empty_lines();
    TestFolder folder;
    folder.write("t.csv", text);
    Opened opened = open(folder, {.data = "t.csv"});
    ASSERT_TRUE(opened.source) << opened.source.error().message;
    EXPECT_EQ(columns_of(**opened.source, "t"), "a:i64 b:sym");
    const auto a = *(*opened.source)->column("t", "a");
    ASSERT_EQ(a->rows, static_cast<uint64_t>(rows)) << testing::PrintToString(text);
    for (int row = 0; row < rows; ++row) sum -= a->as<int64_t>()[row];
    EXPECT_EQ(sum, 0);
  }
}

}  // namespace
}  // namespace rndn::data::sources_test
