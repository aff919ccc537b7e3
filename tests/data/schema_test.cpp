// schema.json: what is read is what was written, and every mistake has a message.
#include "runtime/data/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <tuple>

namespace rndn::data::schema_test {
namespace {

using hir::BasicType;
using testing::ElementsAre;

constexpr const char* shop = R"({"tables": [
  {"name": "items", "file": "items.csv", "header": true,
   "columns": [{"name": "id", "type": "i64"}, {"name": "seller", "type": "sym"}, {"name": "price", "type": "f64"}],
   "primary": ["id"], "foreign": [{"column": "seller", "table": "people", "key": "name"}]},
  {"name": "people", "delimiter": ";", "quoted": true,
   "columns": [{"name": "name", "type": "sym"}, {"name": "born", "type": "date", "format": "%d.%m.%Y"}]}]})";

TEST(Schema, ReadsEverything) {
  Result<Schema> schema = parse_schema(shop, "schema.json");
  ASSERT_TRUE(schema) << schema.error().message;
  ASSERT_EQ(schema->tables.size(), 2u);
  const TableSchema& items = schema->tables[0];
  EXPECT_EQ(items.name, "items");
  EXPECT_EQ(items.file, "items.csv");
  EXPECT_EQ(items.delimiter, ',');  // by the file's name
  EXPECT_TRUE(items.header);
  EXPECT_TRUE(items.quoted);  // as well
  EXPECT_THAT(items.primary, ElementsAre("id"));
  ASSERT_EQ(items.columns.size(), 3u);
  EXPECT_EQ(items.columns[0].type, BasicType::i64);
  EXPECT_FALSE(items.columns[0].is_foreign_key());
  EXPECT_EQ(items.columns[1].foreign_table, "people");
  EXPECT_EQ(items.columns[1].foreign_key, "name");
  const TableSchema& people = schema->tables[1];
  EXPECT_EQ(people.file, "people.tbl");
  EXPECT_EQ(people.delimiter, ';');
  EXPECT_FALSE(people.header);
  EXPECT_TRUE(people.quoted);
  EXPECT_EQ(people.columns[1].format, (DateFormat{DateFormat::dmy, '.'}));
  EXPECT_EQ(people.columns[1].type, BasicType::date);
}

TEST(Schema, TheFilesNameTellsItsFormat) {
  const auto read = [](const std::string& file) {
    return parse_schema(
               R"({"tables": [{"name": "t", "file": ")" + file + R"(", "columns": [{"name": "a", "type": "i32"}]}]})",
               "s.json")
        ->tables[0];
  };
  for (const auto& [file, delimiter, quoted] : {std::tuple("a.csv", ',', true),
                                                {"a.CSV", ',', true},
                                                {"a.tsv", '\t', false},
                                                {"a.tbl", '|', false},
                                                {"a", '|', false}}) {
    EXPECT_EQ(read(file).delimiter, delimiter) << file;
    EXPECT_EQ(read(file).quoted, quoted) << file;
  }
}

// Time and text are linear in the columns: this many took minutes when every name was looked for among those before it.
TEST(Schema, MayHaveVeryManyColumns) {
  std::string text = R"({"tables": [{"name": "t", "columns": [)";
  constexpr int columns = 300'000;
  for (int i = 0; i < columns; ++i) text += fmt::format(R"({}{{"name": "c{}", "type": "i32"}})", i ? "," : "", i);
  text += R"(], "primary": ["c1"], "foreign": [{"column": "c2", "table": "t", "key": "c3"}]}]})";
  const auto start = std::chrono::steady_clock::now();
  Result<Schema> schema = parse_schema(text, "s.json");
  ASSERT_TRUE(schema) << schema.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(schema->tables[0].columns.size(), size_t{columns});
  EXPECT_EQ(schema->tables[0].columns[2].foreign_key, "c3");
}

void expect_equal(const Schema& a, const Schema& b) {
  ASSERT_EQ(a.tables.size(), b.tables.size());
  for (size_t t = 0; t < a.tables.size(); ++t) {
    const TableSchema &x = a.tables[t], &y = b.tables[t];
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.file, y.file);
    EXPECT_EQ(x.delimiter, y.delimiter);
    EXPECT_EQ(x.header, y.header);
    EXPECT_EQ(x.quoted, y.quoted);
    EXPECT_EQ(x.primary, y.primary);
    ASSERT_EQ(x.columns.size(), y.columns.size());
    for (size_t c = 0; c < x.columns.size(); ++c) {
      EXPECT_EQ(x.columns[c].name, y.columns[c].name);
      EXPECT_EQ(x.columns[c].type, y.columns[c].type);
      EXPECT_EQ(x.columns[c].format, y.columns[c].format);
      EXPECT_EQ(x.columns[c].decimal, y.columns[c].decimal);
      EXPECT_EQ(x.columns[c].foreign_table, y.columns[c].foreign_table);
      EXPECT_EQ(x.columns[c].foreign_key, y.columns[c].foreign_key);
    }
  }
}

TEST(Schema, SurvivesWritingAndReading) {
  const Schema schema = *parse_schema(shop, "schema.json");
  Result<Schema> again = parse_schema(schema_text(schema), "again");
  ASSERT_TRUE(again) << again.error().message;
  expect_equal(*again, schema);
}

TEST(Schema, DecimalsAreStoredAsFloats) {
  Result<Schema> schema = parse_schema(
      R"j({"tables": [{"name": "t",
              "columns": [{"name": "a", "type": "decimal(7,3)"}, {"name": "b", "type": "f64"}]}]})j",
      "schema.json");
  ASSERT_TRUE(schema) << schema.error().message;
  const std::vector<ColumnSchema>& columns = schema->tables[0].columns;
  EXPECT_EQ(columns[0].type, BasicType::f64);
  EXPECT_EQ(columns[0].decimal, (Decimal{.precision = 7, .scale = 3}));
  EXPECT_EQ(columns[1].decimal, std::nullopt);
}

TEST(Schema, IsWhatTheFrontendSees) {
  Schema schema = *parse_schema(shop, "schema.json");
  const hir::SchemaView& view = schema;
  EXPECT_TRUE(view.has_table("items"));
  EXPECT_FALSE(view.has_table("item"));
  hir::SchemaView::Column column;
  ASSERT_TRUE(view.find_column("items", "seller", column));
  EXPECT_EQ(column.type, BasicType::sym);
  EXPECT_TRUE(column.is_foreign_key);
  EXPECT_EQ(column.foreign_table, "people");
  ASSERT_TRUE(view.find_column("items", "price", column));
  EXPECT_FALSE(column.is_foreign_key);
  EXPECT_FALSE(view.find_column("items", "prices", column));
  EXPECT_FALSE(view.find_column("none", "price", column));
  EXPECT_THAT(view.table_names(), ElementsAre("items", "people"));
  EXPECT_THAT(view.column_names("people"), ElementsAre("name", "born"));
  EXPECT_TRUE(view.column_names("nobody").empty());
}

std::string message(std::string_view json) {
  Result<Schema> schema = parse_schema(json, "s.json");
  if (schema) return "success";
  EXPECT_EQ(schema.error().fault, Fault::input);
  return schema.error().message;
}

std::string table(const std::string& rest) { return R"({"tables": [{"name": "t", )" + rest + "}]}"; }

TEST(SchemaErrors, EachHasItsMessage) {
  EXPECT_EQ(message("[]"), "s.json: expected an object with a list `tables`");
  EXPECT_EQ(message(R"({"tables": [], "version": 1})"),
            "s.json: the schema: unknown key `version`; there are `tables`");
  EXPECT_EQ(message(R"({"tables": [1]})"), "s.json: table 1: expected an object");
  EXPECT_EQ(message(R"({"tables": [{"columns": []}]})"), "s.json: table 1: expected a text `name`");
  EXPECT_EQ(message(table(R"("columns": [])")),
            "s.json: table `t`: expected a list `columns` with at least one column");
  EXPECT_EQ(message(table(R"("colums": [])")), "s.json: table `t`: unknown key `colums`; did you mean `columns`?");
  const std::string a = R"("columns": [{"name": "a", "type": "i32"}])";
  EXPECT_EQ(message(table(a)), "success");
  EXPECT_EQ(message(R"({"tables": [{"name": "t", )" + a + R"(}, {"name": "t", )" + a + "}]}"),
            "s.json: table `t`: the name is used twice");
  EXPECT_EQ(message(table(a + R"(, "delimiter": "ab")")),
            "s.json: table `t`: `delimiter` must be one character other than a quote or an end of line");
  EXPECT_EQ(message(table(a + R"(, "header": 1)")), "s.json: table `t`: `header` must be true or false");
  EXPECT_EQ(message(table(R"("columns": [{"name": "a"}])")), "s.json: table `t`: column `a`: expected a text `type`");
  EXPECT_EQ(message(table(R"("columns": [{"name": "a", "type": "i33"}])")),
            "s.json: table `t`: column `a`: unknown type `i33`; did you mean `i32`?");
  for (const char* type : {"decimal", "decimal(16,2)", "decimal(2,3)", "decimal(0,0)", "decimal(5,2) ", "decimal(5)"})
    EXPECT_EQ(
        message(table(fmt::format(R"("columns": [{{"name": "a", "type": "{}"}}])", type))),
        fmt::format("s.json: table `t`: column `a`: expected decimal(precision,scale) with 1 to 15 digits, got `{}`",
                    type));
  EXPECT_EQ(message(table(R"("columns": [{"name": "a", "type": "i32"}, {"name": "a", "type": "i32"}])")),
            "s.json: table `t`: column `a`: the name is used twice");
  EXPECT_EQ(message(table(a + R"(, "quoted": "no")")), "s.json: table `t`: `quoted` must be true or false");
  EXPECT_EQ(message(table(R"("columns": [{"name": "a", "type": "date", "format": "%d %m %Y"}])")),
            "s.json: table `t`: column `a`: `format` is %Y-%m-%d, %d-%m-%Y or %m-%d-%Y, with - / or . between, not "
            "`%d %m %Y`");
  EXPECT_EQ(message(table(R"("columns": [{"name": "a", "type": "time", "format": "%d.%m.%Y"}])")),
            "s.json: table `t`: column `a`: `format` is for the types date and dt");
  EXPECT_EQ(message(table(R"("columns": [{"name": "a", "type": "complex"}], "primary": ["a"])")),
            "s.json: table `t`: the primary key `a` is of type complex");
  EXPECT_EQ(message(table(R"("columns": [{"name": "a", "type": "i128"}], "primary": ["a"])")),
            "s.json: table `t`: the primary key `a` is of type i128");
  EXPECT_EQ(message(table(a + R"(, "primary": "a")")), "s.json: table `t`: `primary` must be a list");
  EXPECT_EQ(message(table(a + R"(, "primary": ["b"])")),
            "s.json: table `t`: `primary` names the column `b`, which it does not have");
  EXPECT_EQ(message(table(a + R"(, "foreign": [{"column": "b", "table": "t", "key": "a"}])")),
            "s.json: table `t`: `foreign` names the column `b`, which it does not have");
  EXPECT_EQ(message(table(a + R"(, "foreign": [{"column": "a", "table": "u", "key": "a"}])")),
            "s.json: table `t`: foreign key `a`: there is no table `u`; there are `t`");
  EXPECT_EQ(message(table(a + R"(, "foreign": [{"column": "a", "table": "t", "key": "key"}])")),
            "s.json: table `t`: foreign key `a`: table `t` has no column `key`; there are `a`");
  EXPECT_EQ(
      message(table(
          R"("columns": [{"name": "a", "type": "i32"}, {"name": "b", "type": "i64"}], "foreign": [{"column": "a", "table": "t", "key": "b"}])")),
      "s.json: table `t`: foreign key `a` is of type i32, `t.b` of type i64");
  EXPECT_EQ(
      message(table(
          R"("columns": [{"name": "a", "type": "f64"}], "foreign": [{"column": "a", "table": "t", "key": "a"}])")),
      "s.json: table `t`: foreign key `a` is of type f64; keys are integers, dates, times, or text");
}

TEST(SchemaErrors, JsonAtFaultHasAPosition) {
  EXPECT_THAT(message("{\"tables\": [\n  }"), testing::StartsWith("s.json:2:3: syntax error"));
  EXPECT_THAT(message(""), testing::StartsWith("s.json:1:1: syntax error"));
  EXPECT_THAT(message("{\"tables\": \"\xff\"}"), testing::StartsWith("s.json:1:"));
  EXPECT_THAT(message(std::string(100'000, '[')), testing::StartsWith("s.json:1:100001: syntax error"));
}

}  // namespace
}  // namespace rndn::data::schema_test
