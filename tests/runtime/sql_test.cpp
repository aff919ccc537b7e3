// SQL over a data source: the catalog that is made of it, and statements that become programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "libraries/base/system/files.h"
#include "runtime/data/source.h"
#include "runtime/data/sources.h"
#include "runtime/planner/statements.h"
#include "runtime/sql/catalog.h"
#include "runtime/sql/queries.h"
#include "ssb/source.h"
#include "tests/data/support.h"
#include "tpch/source.h"

namespace rndn::runtime::sql_test {
namespace {

using sql::TypeId;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<data::Source> tpch(const std::string& scale) {
  auto source = tpch::open_source("tpch:" + scale, {.progress = false});
  EXPECT_TRUE(source) << source.error().message;
  return *source;
}

TEST(SqlCatalog, OfTpchHasTypesAndRowsWithoutLoading) {
  auto source = tpch("1");
  SqlCatalog tables(source);
  const sql::Table* lineitem = tables.catalog().find("lineitem");
  ASSERT_NE(lineitem, nullptr);
  EXPECT_EQ(lineitem->rows, 6'001'215u);
  EXPECT_EQ(sql::type_name(lineitem->find("l_orderkey")->type), "INTEGER");
  EXPECT_EQ(lineitem->find("l_orderkey")->foreign_table, "orders");
  EXPECT_EQ(sql::type_name(lineitem->find("l_extendedprice")->type), "DECIMAL(15,2)");
  EXPECT_EQ(lineitem->find("l_extendedprice")->stored, hir::BasicType::f64);
  EXPECT_EQ(sql::type_name(lineitem->find("l_returnflag")->type), "VARCHAR");
  EXPECT_EQ(sql::type_name(lineitem->find("l_shipdate")->type), "DATE");
  EXPECT_THAT(tables.catalog().find("orders")->primary, ElementsAre("o_orderkey"));
  for (const sql::Table& table : tables.catalog().tables)
    for (const sql::Column& column : table.columns)
      EXPECT_FALSE(source->is_loaded(table.name, column.name)) << column.name;
}

TEST(SqlCatalog, LearnsWhatIsRead) {
  auto source = tpch("0.01");
  SqlCatalog tables(source);
  auto learnt = tables.learn(
      {{"lineitem", {"l_orderkey", "l_discount", "l_shipmode", "l_shipdate", "l_returnflag"}},
       {"orders", {"o_orderkey"}},
       {"part", {"p_partkey"}},
       {"nothing", {"x"}}});
  ASSERT_TRUE(learnt) << learnt.error().message;
  EXPECT_TRUE(*learnt);
  const sql::Table& lineitem = *tables.catalog().find("lineitem");
  const sql::Column& discount = *lineitem.find("l_discount");
  EXPECT_EQ(discount.min, 0);
  EXPECT_EQ(discount.max, 10);
  EXPECT_EQ(discount.float_max, 0.1);
  EXPECT_EQ(discount.distinct, 11u);
  EXPECT_EQ(lineitem.find("l_shipmode")->distinct, 7u);
  EXPECT_FALSE(lineitem.find("l_shipmode")->min.has_value());
  EXPECT_EQ(lineitem.find("l_orderkey")->distinct, 15'000u);  // as many as there are orders
  EXPECT_TRUE(lineitem.find("l_orderkey")->ascending);
  EXPECT_FALSE(lineitem.find("l_orderkey")->unique);
  EXPECT_EQ(lineitem.find("l_shipdate")->min, 8038);  // days since 1970
  EXPECT_LE(lineitem.find("l_returnflag")->distinct, 18u);
  EXPECT_FALSE(lineitem.find("l_returnflag")->min.has_value());
  const sql::Column& key = *tables.catalog().find("orders")->find("o_orderkey");
  EXPECT_TRUE(key.unique && key.ascending);
  EXPECT_EQ(key.distinct, 15'000u);
  EXPECT_TRUE(source->is_loaded("lineitem", "l_discount"));
  EXPECT_FALSE(source->is_loaded("lineitem", "l_tax"));
  EXPECT_EQ(lineitem.find("l_tax")->distinct, 0u);
  learnt = tables.learn({{"lineitem", {"l_discount", "l_shipdate"}}});
  ASSERT_TRUE(learnt);
  EXPECT_FALSE(*learnt);
}

TEST(SqlCatalog, OfAFolderWithEveryType) {
  data::TestFolder folder;
  std::string columns, row;
  const std::pair<const char*, const char*> types[] = {{"bool", "1"},
                                                       {"char", "x"},
                                                       {"i8", "-3"},
                                                       {"i16", "300"},
                                                       {"i32", "-70000"},
                                                       {"i64", "5000000000"},
                                                       {"f32", "1.5"},
                                                       {"f64", "2.25"},
                                                       {"sym", "red"},
                                                       {"str", "blue"},
                                                       {"date", "1970-01-11"},
                                                       {"month", "1970-02"},
                                                       {"minute", "00:02"},
                                                       {"second", "00:00:03"},
                                                       {"time", "00:00:00.004"},
                                                       {"dt", "1970-01-01T00:00:00.005"},
                                                       {"complex", "1"},
                                                       {"decimal(5,1)", "-12.5"}};
  for (const auto& [type, value] : types) {
    if (std::string_view(type) == "complex") continue;
    columns += fmt::format(R"({}{{"name": "c_{}", "type": "{}"}})", columns.empty() ? "" : ", ",
                           type, type);
    row += (row.empty() ? "" : "|") + std::string(value);
  }
  folder.write("schema.json", R"({"tables": [{"name": "t", "columns": [)" + columns + "]}]}");
  folder.write("t.tbl", row + "\n");
  auto source = data::open_folder(folder.path(), {.progress = false});
  ASSERT_TRUE(source) << source.error().message;
  SqlCatalog tables(*source);
  EXPECT_EQ(tables.catalog().tables[0].rows, 0u);  // no file was read for them
  std::set<std::string> names;
  std::vector<std::string> found;
  for (const sql::Column& c : tables.catalog().tables[0].columns) {
    names.insert(c.name);
    found.push_back(sql::type_name(c.type));
  }
  EXPECT_THAT(found, ElementsAre("BOOLEAN", "VARCHAR", "TINYINT", "SMALLINT", "INTEGER", "BIGINT",
                                 "FLOAT", "DOUBLE", "VARCHAR", "VARCHAR", "DATE", "TIME", "TIME",
                                 "TIME", "TIMESTAMP", "DECIMAL(5,1)"));
  ASSERT_EQ(tables.catalog().tables[0].refused.size(), 1u);
  EXPECT_EQ(tables.catalog().tables[0].refused[0].name, "c_month");
  auto learnt = tables.learn({{"t", names}});
  ASSERT_TRUE(learnt) << learnt.error().message;
  EXPECT_TRUE(*learnt);
  const sql::Table& t = tables.catalog().tables[0];
  EXPECT_EQ(t.rows, 1u);
  auto min = [&](const char* name) { return t.find(name)->min; };
  EXPECT_EQ(min("c_bool"), 1);
  EXPECT_EQ(min("c_i8"), -3);
  EXPECT_EQ(min("c_i64"), 5'000'000'000);
  EXPECT_EQ(t.find("c_f32")->float_min, 1.5);
  EXPECT_EQ(min("c_f64"), std::nullopt);
  EXPECT_EQ(min("c_sym"), std::nullopt);
  EXPECT_EQ(min("c_date"), 10);
  EXPECT_EQ(min("c_minute"), 120'000'000);  // microseconds
  EXPECT_EQ(min("c_second"), 3'000'000);
  EXPECT_EQ(min("c_time"), 4'000);
  EXPECT_EQ(min("c_dt"), 5'000);
  EXPECT_EQ(min("c_decimal(5,1)"), -125);
  EXPECT_TRUE(t.find("c_i32")->unique);
  for (const sql::Column& c : t.columns) EXPECT_EQ(c.distinct, 1u) << c.name;
}

TEST(SqlCatalog, TakesWhatTheSourceHasChecked) {
  data::TestFolder folder;
  folder.write("schema.json", R"({"tables": [{"name": "t", "file": "t.csv", "header": true,
      "columns": [{"name": "k", "type": "i64"}, {"name": "a", "type": "i32"}], "primary": ["k"]}]})");
  folder.write("t.csv", "k,a\n900000,1\n3,\n70,1\n");
  auto source = data::open_folder(folder.path(), {.progress = false});
  ASSERT_TRUE(source) << source.error().message;
  SqlCatalog tables(*source);
  auto learnt = tables.learn({{"t", {"k", "a"}}});
  ASSERT_TRUE(learnt) << learnt.error().message;
  const sql::Table& t = tables.catalog().tables[0];
  EXPECT_TRUE(t.find("k")->unique);
  EXPECT_FALSE(t.find("k")->has_nulls);
  EXPECT_FALSE(t.find("a")->unique);
  EXPECT_TRUE(t.find("a")->has_nulls);
}

class Queries : public ::testing::Test {
 protected:
  void SetUp() override {
    options_ = planner::Options::of_environment();
    options_.folders = {RNDN_BIN_DIR "/../share/duckdb", RNDN_BIN_DIR "/../../share/duckdb"};
    bool there = !options_.named.empty();
    for (const std::string& folder : options_.folders)
      there |= std::filesystem::exists(folder + "/" + planner::wrapper_name);
    if (!there)
      GTEST_SKIP() << "skipped: the planner of SQL is not installed (tools/sql-planner does that)";
    source_ = tpch("0.01");
    queries_.emplace(source_, options_);
  }
  Result<const SqlQuery*> prepare(const std::string& text,
                                  SqlQueries::Until until = SqlQueries::Until::program) {
    sink_ = {};
    timings_.reset();
    const FileId file = sources_.add("q.sql", text);
    return queries_->prepare({file, 0, static_cast<uint32_t>(text.size())}, sources_, until, sink_,
                             timings_);
  }
  uint64_t spent(Phase phase) const { return timings_.exclusive_ns(phase); }

  planner::Options options_;
  std::shared_ptr<data::Source> source_;
  std::optional<SqlQueries> queries_;
  SourceManager sources_;
  DiagnosticSink sink_;
  Timings timings_;
};

TEST_F(Queries, BecomeProgramsWithSqlsColumns) {
  auto query = prepare("select l_returnflag, sum(l_quantity) from lineitem group by 1");
  ASSERT_TRUE(query) << render(sink_, sources_) << query.error().message;
  ASSERT_TRUE((*query)->translation);
  const auto& columns = (*query)->translation->columns;
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(columns[0].name, "l_returnflag");
  EXPECT_EQ(columns[1].name, "sum(l_quantity)");
  ASSERT_EQ((*query)->planned.columns.size(), 2u);
  for (size_t k = 0; k < 2; ++k)
    EXPECT_EQ(sql::type_name(columns[k].type), (*query)->planned.columns[k].type);
  EXPECT_THAT((*query)->translation->program, HasSubstr("def main"));
  EXPECT_TRUE(source_->is_loaded("lineitem", "l_quantity"));
  EXPECT_FALSE(source_->is_loaded("lineitem", "l_tax"));
}

TEST_F(Queries, ThatComeAgainCostNoPlanning) {
  const std::string text = "select count(*) from orders where o_orderdate < date '1995-01-01'";
  auto first = prepare(text);
  ASSERT_TRUE(first) << render(sink_, sources_);
  EXPECT_GT(spent(Phase::planner), 0u);
  const SqlQuery* kept = *first;
  ASSERT_TRUE(prepare("select 1"));  // another in between
  auto again = prepare(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, kept);
  EXPECT_EQ(spent(Phase::planner) + spent(Phase::translate) + spent(Phase::data), 0u);
}

// The 22 queries, each once, in one session. Figures that may only go down.
TEST_F(Queries, OfTpchMakeFewShadows) {
  for (int number = 1; number <= 22; ++number) {
    auto text = read_file(fmt::format("{}/tpch/sql/q{:02}.sql", RNDN_SOURCE_DIR, number));
    ASSERT_TRUE(text);
    const auto statements = planner::split_statements(*text);
    ASSERT_TRUE(prepare(text->substr(0, statements[0].end), SqlQueries::Until::plan)) << number;
    if (number == 1) {
      EXPECT_EQ(queries_->planner_counts().plannings, 1u);
      EXPECT_EQ(queries_->planner_counts().shadows, 0u);  // it joins nothing
    }
  }
  const planner::Planner::Counts counts = queries_->planner_counts();
  EXPECT_EQ(counts.plannings, 33u);
  EXPECT_EQ(counts.shadows, 8u);
  EXPECT_EQ(counts.columns, 13u);
}

TEST_F(Queries, ThatDependOnTheClockArePlannedEveryTime) {
  using Until = SqlQueries::Until;
  for (const char* text :
       {"select now()", "select o_orderkey from orders where o_orderdate < current_date"})
    for (int round = 0; round < 2; ++round) {
      auto query = prepare(text, Until::plan);
      ASSERT_TRUE(query) << render(sink_, sources_);
      EXPECT_GT(spent(Phase::planner), 0u) << text;
      EXPECT_FALSE((*query)->translation);
    }
  auto one = prepare("select now()", Until::plan);
  ASSERT_TRUE(one);
  const std::string plan = (*one)->planned.plan;
  auto two = prepare("select now()", Until::plan);
  ASSERT_TRUE(two);
  EXPECT_NE((*two)->planned.plan, plan);
}

// Many texts: the ones that were not used for longest go.
TEST_F(Queries, AreKeptUpToANumber) {
  for (int i = 0; i < 300; ++i)
    ASSERT_TRUE(prepare(fmt::format("select {}", i), SqlQueries::Until::plan));
  ASSERT_TRUE(prepare("select 299", SqlQueries::Until::plan));
  EXPECT_EQ(spent(Phase::planner), 0u);
  ASSERT_TRUE(prepare("select 0", SqlQueries::Until::plan));
  EXPECT_GT(spent(Phase::planner), 0u);
}

TEST_F(Queries, AtFaultAreSaidAndNotKept) {
  for (int round = 0; round < 2; ++round) {
    auto query = prepare("select l_qantity from lineitem");
    ASSERT_FALSE(query);
    EXPECT_EQ(query.error().fault, Fault::input);
    EXPECT_EQ(query.error().message, "");
    EXPECT_THAT(
        render(sink_, sources_),
        HasSubstr("q.sql:1:8: error: there is no column `l_qantity`; did you mean `l_quantity`?"));
  }
}

// A plan without the places in its text.
nlohmann::json placeless(nlohmann::json json) {
  if (json.is_object()) {
    json.erase("query_location");
    json.erase("query_location_length");
  }
  for (auto& part : json)
    if (part.is_structured()) part = placeless(std::move(part));
  return json;
}

// The plans that the translator's tests read are those that the planner gives for tables without
// rows.
TEST_F(Queries, HaveThePlansThatTestsKeep) {
  auto opened = planner::Planner::open(options_);
  ASSERT_TRUE(opened) << opened.error().message;
  struct Suite {
    std::shared_ptr<data::Source> source;
    std::string texts;
    size_t queries;
  };
  auto ssb = data::open_source({.data = "ssb:0.01"}, {&ssb::scheme, 1}, {});
  ASSERT_TRUE(ssb);
  for (const Suite& suite : {Suite{source_, RNDN_SOURCE_DIR "/tpch/sql", 22},
                             Suite{*ssb, RNDN_SOURCE_DIR "/ssb/sql", 13}}) {
    sql::Catalog catalog = SqlCatalog(suite.source).catalog();
    for (sql::Table& table : catalog.tables) table.rows = 0;
    ASSERT_TRUE((*opened)->set_catalog(catalog));
    size_t compared = 0;
    for (const auto& file : std::filesystem::directory_iterator(suite.texts)) {
      const std::string name = file.path().stem().string();
      auto text = read_file(file.path().string());
      auto kept = read_file(RNDN_SOURCE_DIR "/tests/sql_translate/plans/" + name + ".json");
      ASSERT_TRUE(text && kept) << name;
      const auto statements = planner::split_statements(*text);
      ASSERT_EQ(statements.size(), 1u) << name;
      const Span span{sources_.add(name, *text), static_cast<uint32_t>(statements[0].begin),
                      static_cast<uint32_t>(statements[0].end)};
      auto planned = (*opened)->plan(span, sources_, sink_);
      ASSERT_TRUE(planned) << render(sink_, sources_);
      EXPECT_EQ(placeless(nlohmann::json::parse(planned->plan)),
                placeless(nlohmann::json::parse(*kept)))
          << name;
      ++compared;
    }
    EXPECT_EQ(compared, suite.queries);
  }
}

// What has no translation is named where it stands: by the reader, by the translator, and at the
// statement where the plan has no place (aggregates, operators).
TEST_F(Queries, WithoutTranslationAreNamedAtTheirPlace) {
  auto said = [&](const std::string& text) {
    auto query = prepare(text);
    EXPECT_FALSE(query) << text;
    if (query) return std::string();
    EXPECT_EQ(query.error().fault, Fault::input);
    EXPECT_EQ(query.error().message, "");
    return render(sink_, sources_);
  };
  EXPECT_EQ(said("select o_orderkey,\n  hash(o_clerk) from orders"),
            "q.sql:2:3: error: the function hash has no translation\n"
            "    hash(o_clerk) from orders\n"
            "    ^~~~~~~~~~~~~\n");
  EXPECT_EQ(said("select max(o_orderkey) from orders where o_clerk::uuid is null"),
            "q.sql:1:49: error: the type UUID has no translation\n"
            "  select max(o_orderkey) from orders where o_clerk::uuid is null\n"
            "                                                  ^~~~~~\n");
  EXPECT_EQ(said("select 1, mad(o_custkey) from orders"),
            "q.sql:1:1: error: the aggregate mad has no translation\n"
            "  select 1, mad(o_custkey) from orders\n"
            "  ^\n");
  EXPECT_EQ(said("select o_orderkey from orders using sample 10"),
            "q.sql:1:1: error: samples (TABLESAMPLE, USING SAMPLE) have no translation: LIMIT takes the "
            "first rows\n"
            "  select o_orderkey from orders using sample 10\n"
            "  ^\n");
}

TEST_F(Queries, NeedNoTables) {
  queries_.emplace(nullptr, options_);
  auto query = prepare("select 1 + 1 as two", SqlQueries::Until::plan);
  ASSERT_TRUE(query) << render(sink_, sources_);
  EXPECT_EQ((*query)->planned.columns[0].name, "two");
  EXPECT_FALSE(prepare("select * from lineitem"));
  EXPECT_THAT(render(sink_, sources_), HasSubstr("there is no table `lineitem`"));
}

// A column that cannot be loaded ends the query with the place in its file.
TEST_F(Queries, SayWhatIsWrongWithTheirData) {
  data::TestFolder folder;
  folder.write("schema.json",
               R"({"tables": [{"name": "t", "columns": [{"name": "a", "type": "i32"}]}]})");
  folder.write("t.tbl", "1\nx\n");
  auto source = data::open_folder(folder.path(), {.progress = false});
  ASSERT_TRUE(source);
  queries_.emplace(*source, options_);
  auto query = prepare("select sum(a) from t");
  ASSERT_FALSE(query);
  EXPECT_THAT(query.error().message, HasSubstr("t.tbl:2:1: expected an i32 for `a`, found `x`"));
}

}  // namespace
}  // namespace rndn::runtime::sql_test
