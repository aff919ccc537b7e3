// `--data`: tables generated in memory and the folder that the generator writes are the same source.
#include "tpch/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tpch/generate.h"

namespace rndn::tpch {
namespace {

using hir::BasicType;
using testing::ElementsAre;

const data::SourceOptions quiet{.threads = 2, .progress = false};

void expect_equal(const data::Column& a, const data::Column& b, const std::string& name) {
  ASSERT_EQ(a.type, b.type) << name;
  ASSERT_EQ(a.rows, b.rows) << name;
  ASSERT_EQ(a.is_foreign_key, b.is_foreign_key) << name;
  ASSERT_EQ(a.foreign_table, b.foreign_table) << name;
  if (a.is_foreign_key) {
    ASSERT_EQ(*a.foreign_rows, *b.foreign_rows) << name;
  }
  if (hir::is_text(a.type)) {
    for (uint64_t row = 0; row < a.rows; ++row) ASSERT_EQ(a.text_at(row), b.text_at(row)) << name << " row " << row;
    return;
  }
  ASSERT_EQ(a.width, b.width) << name;
  ASSERT_TRUE(*a.data == *b.data) << name;  // bit by bit, floats too
  ASSERT_EQ(a.statistics.known, b.statistics.known) << name;
  ASSERT_EQ(a.statistics.min, b.statistics.min) << name;
  ASSERT_EQ(a.statistics.max, b.statistics.max) << name;
  ASSERT_EQ(a.statistics.sorted, b.statistics.sorted) << name;
  ASSERT_EQ(a.statistics.dense, b.statistics.dense) << name;
  ASSERT_EQ(a.statistics.unique, b.statistics.unique) << name;
}

TEST(Schema, IsAsTheLanguageSpecifiesIt) {
  const data::Schema schema = tpch::schema();
  EXPECT_THAT(schema.table_names(),
              ElementsAre("region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem"));
  std::vector<std::string> foreign;
  size_t columns = 0;
  for (const data::TableSchema& table : schema.tables) {
    columns += table.columns.size();
    for (const data::ColumnSchema& column : table.columns)
      if (column.is_foreign_key())
        foreign.push_back(column.name + ">" + column.foreign_table + "." + column.foreign_key);
  }
  EXPECT_EQ(columns, 61u);
  EXPECT_THAT(foreign, ElementsAre("n_regionkey>region.r_regionkey", "s_nationkey>nation.n_nationkey",
                                   "ps_partkey>part.p_partkey", "ps_suppkey>supplier.s_suppkey",
                                   "c_nationkey>nation.n_nationkey", "o_custkey>customer.c_custkey",
                                   "l_orderkey>orders.o_orderkey"));
  auto type = [&](std::string_view table, std::string_view column) { return schema.find(table)->find(column)->type; };
  EXPECT_EQ(type("lineitem", "l_quantity"), BasicType::f64);
  EXPECT_EQ(type("lineitem", "l_shipdate"), BasicType::date);
  EXPECT_EQ(type("lineitem", "l_returnflag"), BasicType::character);
  EXPECT_EQ(type("lineitem", "l_shipmode"), BasicType::sym);
  EXPECT_EQ(type("lineitem", "l_comment"), BasicType::str);
  EXPECT_EQ(type("lineitem", "l_partkey"), BasicType::i32);
  EXPECT_EQ(type("part", "p_name"), BasicType::sym);
}

TEST(Schema, SurvivesWritingAndReading) {
  Result<data::Schema> again = data::parse_schema(data::schema_text(schema()), "again");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(data::schema_text(*again), data::schema_text(schema()));
}

TEST(Source, TheFolderHasTheColumnsOfTheGenerator) {
  std::string path = testing::TempDir() + "rndn_tpch_XXXXXX";
  ASSERT_TRUE(mkdtemp(path.data()));
  ASSERT_TRUE(write_tables(0.01, path, 2, false));
  Result<std::shared_ptr<data::Source>> generated = open_source("tpch:0.01", quiet),
                                        folder = data::open_folder(path, quiet);
  ASSERT_TRUE(generated) << generated.error().message;
  ASSERT_TRUE(folder) << folder.error().message;
  size_t columns = 0;
  for (const data::TableSchema& table : (*generated)->schema().tables) {
    EXPECT_EQ(*(*generated)->rows(table.name), *(*folder)->rows(table.name)) << table.name;
    for (const data::ColumnSchema& column : table.columns) {
      Result<std::shared_ptr<const data::Column>> a = (*generated)->column(table.name, column.name),
                                                  b = (*folder)->column(table.name, column.name);
      ASSERT_TRUE(a) << a.error().message;
      ASSERT_TRUE(b) << b.error().message;
      expect_equal(**a, **b, column.name);
      ++columns;
    }
    unlink((path + "/" + table.file).c_str());
  }
  EXPECT_EQ(columns, 61u);
  Result<data::Schema> schema = data::open_schema({.data = path}, {&scheme, 1}, quiet);
  ASSERT_TRUE(schema) << schema.error().message;
  EXPECT_EQ(data::schema_text(*schema), data::schema_text(tpch::schema()));
  unlink((path + "/schema.json").c_str());
  rmdir(path.c_str());
}

TEST(Source, FewValuesAreDictionariesManyAreText) {
  Result<std::shared_ptr<data::Source>> source = open_source("tpch:0.01", quiet);
  ASSERT_TRUE(source);
  auto encoding = [&](const char* table, const char* column) { return (*(*source)->column(table, column))->encoding; };
  EXPECT_EQ(encoding("lineitem", "l_shipmode"), data::Encoding::dictionary);
  EXPECT_EQ(encoding("part", "p_brand"), data::Encoding::dictionary);
  EXPECT_EQ(encoding("orders", "o_clerk"), data::Encoding::dictionary);
  EXPECT_EQ((*(*source)->column("orders", "o_clerk"))->width, 2u);
  EXPECT_EQ((*(*source)->column("part", "p_type"))->dictionary->values.size(), 150u);
  EXPECT_EQ(encoding("part", "p_name"), data::Encoding::text);
  EXPECT_EQ(encoding("customer", "c_phone"), data::Encoding::text);
  EXPECT_EQ(encoding("region", "r_comment"), data::Encoding::text);
}

TEST(Source, ColumnsComeBackFromTheCache) {
  std::string cache = testing::TempDir() + "rndn_cache_XXXXXX";
  ASSERT_TRUE(mkdtemp(cache.data()));
  data::SourceOptions options = quiet;
  options.cache = cache;
  size_t columns = 0;
  for (const char* column : {"o_orderkey", "o_custkey", "o_totalprice", "o_clerk", "o_comment", "o_orderstatus"}) {
    Result<std::shared_ptr<data::Source>> first = open_source("tpch:0.001", options),
                                          second = open_source("tpch:0.001", options);
    ASSERT_TRUE(first && second);
    auto made = (*first)->column("orders", column), read = (*second)->column("orders", column);
    ASSERT_TRUE(made && read);
    expect_equal(**made, **read, column);
    EXPECT_EQ((*made)->encoding, (*read)->encoding);
    // Another scale is other data.
    Result<std::shared_ptr<data::Source>> other = open_source("tpch:0.002", options);
    EXPECT_EQ((*(*other)->column("orders", column))->rows, 3000u);
    columns += 2;
  }
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cache)) files += entry.is_regular_file();
  EXPECT_EQ(files, columns);
  std::filesystem::remove_all(cache);
}

TEST(Source, ScalesThatAreNoScales) {
  for (const char* text : {"tpch:", "tpch:x", "tpch:1x", "tpch:0", "tpch:-1", "tpch:nan", "tpch:inf", "tpch:30000"}) {
    Result<std::shared_ptr<data::Source>> source = open_source(text, quiet);
    ASSERT_FALSE(source) << text;
    EXPECT_EQ(source.error().fault, Fault::usage);
    EXPECT_EQ(source.error().message,
              fmt::format("`{}`: the scale factor must be a number above 0 and below 30000, such as tpch:0.01", text));
    EXPECT_EQ(data::open_schema({.data = text}, {&scheme, 1}, quiet).error().message, source.error().message);
  }
}

TEST(Source, MissingTablesAndColumns) {
  Result<std::shared_ptr<data::Source>> source = open_source("tpch:0.001", quiet);
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->rows("lineitems").error().message, "there is no table `lineitems`; did you mean `lineitem`?");
  EXPECT_EQ((*source)->column("x", "l_tax").error().message,
            "there is no table `x`; there are `region`, `nation`, `supplier`, `part`, `partsupp`, `customer`, "
            "`orders`, `lineitem`");
  EXPECT_EQ((*source)->column("lineitem", "l_taxes").error().message,
            "table `lineitem` has no column `l_taxes`; did you mean `l_tax`?");
}

}  // namespace
}  // namespace rndn::tpch
