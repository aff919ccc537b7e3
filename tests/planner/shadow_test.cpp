// Shadow tables: their sizes by rule, and their values as DuckDB counts them.
#include "runtime/planner/shadow.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/planner/support.h"

namespace rndn::planner {
namespace {

TEST(Shadow, IsScaledByOneFactorAndNotBelowAThousand) {
  sql::Catalog c;
  EXPECT_EQ(shadow_factor(c), 1);
  c.tables = {{.name = "a", .rows = 50'000}, {.name = "b", .rows = 25}};
  EXPECT_EQ(shadow_factor(c), 1);
  c.tables.push_back({.name = "c", .rows = 6'000'000'000});
  const double factor = shadow_factor(c);
  EXPECT_EQ(scaled(6'000'000'000, factor), 50'000u);
  EXPECT_EQ(scaled(1'500'000'000, factor), 12'500u);
  EXPECT_EQ(scaled(50'000, factor), 1'000u);
  EXPECT_EQ(scaled(1'001, factor), 1'000u);
  EXPECT_EQ(scaled(1'000, factor), 1'000u);
  EXPECT_EQ(scaled(25, factor), 25u);
  EXPECT_EQ(scaled(0, factor), 0u);
}

class ShadowTables : public testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_PLANNER();
    auto opened = open_database(installed());
    ASSERT_TRUE(opened) << opened.error().message;
    database_ = *std::move(opened);
  }
  std::string ask(const std::string& text) {
    auto answer = database_->ask(text);
    EXPECT_TRUE(answer) << text << "\n" << answer.error().message;
    return answer ? *answer : "";
  }
  void make(const sql::Catalog& c) {
    for (const sql::Table& table : c.tables) ask(statements_of(table.name, shadow_of(table, shadow_factor(c))));
  }

  std::unique_ptr<Database> database_;
};

TEST_F(ShadowTables, HaveRowsAndDistinctValuesInProportion) {
  make(shop());
  EXPECT_EQ(ask("select count(*) || ' ' || count(distinct id) || ' ' || count(distinct customer) "
                "|| ' ' || "
                "count(distinct price) || ' ' || count(distinct state) || ' ' || count(distinct "
                "day) from orders"),
            "50000 50000 1250 6667 3 1000");
  EXPECT_EQ(ask("select count(*) || ' ' || count(distinct id) || ' ' || count(distinct country) "
                "from customers"),
            "1250 1250 25");
  EXPECT_EQ(ask("select count(*) || ' ' || count(distinct id) from countries"), "25 25");
  EXPECT_EQ(ask("select min(price) || ' ' || max(price) || ' ' || min(day) || ' ' || max(day) from "
                "orders"),
            "1.00 9999.99 1992-01-01 1998-12-31");
  EXPECT_EQ(ask("select typeof(price) || ' ' || typeof(day) || ' ' || typeof(state) || ' ' || "
                "typeof(customer) from orders "
                "limit 1"),
            "DECIMAL(15,2) DATE VARCHAR INTEGER");
}

TEST_F(ShadowTables, AreEmptyWhereNothingIsKnown) {
  make(shop(0));
  EXPECT_EQ(ask("select (select count(*) from orders) + (select count(*) from customers)"), "0");
}

// Every type with nothing known, with its narrowest and with its widest range; many rows, so that
// values must repeat.
// As the statistics of damaged files say: the tables are made all the same.
TEST_F(ShadowTables, HaveNoValuesBeyondTheirTypes) {
  using sql::TypeId;
  const sql::Type types[] = {{TypeId::tinyint},       {TypeId::smallint},  {TypeId::integer},
                             {TypeId::bigint},        {TypeId::utinyint},  {TypeId::usmallint},
                             {TypeId::uinteger},      {TypeId::date},      {TypeId::time},
                             {TypeId::timestamp},     {TypeId::timestamptz},
                             {TypeId::decimal, 4, 1}, {TypeId::decimal, 9, 2}, {TypeId::decimal, 18, 3}};
  sql::Catalog c;
  c.tables.push_back({.name = "t", .rows = 100});
  for (const sql::Type& type : types) {
    sql::Column column;
    column.name = "c" + std::to_string(c.tables[0].columns.size());
    column.type = type;
    column.distinct = 100;
    column.min = std::numeric_limits<int64_t>::min();
    column.max = std::numeric_limits<int64_t>::max();
    c.tables[0].columns.push_back(column);
  }
  make(c);
  EXPECT_EQ(ask("select count(*) || ' ' || count(distinct c3) || ' ' || count(distinct c13) from t"), "100 100 100");
  for (sql::Column& column : c.tables[0].columns) column.min = column.max;
  make(c);
  EXPECT_EQ(ask("select count(*) from t"), "100");
}

TEST_F(ShadowTables, HaveValuesOfEveryType) {
  const std::vector<sql::Type> types = {
#define SQL_TYPE(id, name, horseir) {TypeId::id, 4, 2},
#include "frontend/sql/types.def"
#undef SQL_TYPE
  };
  auto limits = [](TypeId id) -> std::pair<int64_t, int64_t> {
    switch (id) {
      case TypeId::tinyint: return {-128, 127};
      case TypeId::smallint: return {-32768, 32767};
      case TypeId::integer: return {INT32_MIN, INT32_MAX};
      case TypeId::bigint:
      case TypeId::hugeint: return {INT64_MIN, INT64_MAX};
      case TypeId::utinyint: return {0, 255};
      case TypeId::usmallint: return {0, 65535};
      case TypeId::uinteger: return {0, UINT32_MAX};
      case TypeId::decimal: return {-9999, 9999};
      case TypeId::date: return {-100'000, 100'000};
      case TypeId::time: return {0, 86'399'999'999};
      default: return {-1'000'000'000'000, 1'000'000'000'000'000};
    }
  };
  for (const sql::Type& type : types) {
    const auto [least, greatest] = limits(type.id);
    sql::Table table{.name = "every \"type", .rows = 10'000'000};
    table.columns.push_back({.name = "unknown", .type = type, .distinct = 10'000'000});
    table.columns.push_back({.name = "unread", .type = type});
    table.columns.push_back(
        {.name = "one", .type = type, .min = greatest, .max = greatest, .distinct = 1});
    table.columns.push_back(
        {.name = "wide", .type = type, .min = least, .max = greatest, .distinct = 10'000'000});
    if (type.id == TypeId::real || type.id == TypeId::double_) {
      const double huge = type.id == TypeId::real ? std::numeric_limits<float>::max()
                                                  : std::numeric_limits<double>::max();
      table.columns.push_back(
          {.name = "huge", .type = type, .float_min = -huge, .float_max = huge, .distinct = 9});
      table.columns.push_back(
          {.name = "float", .type = type, .float_min = -1.5, .float_max = 2.5, .distinct = 4});
    }
    make({.tables = {table}});
    EXPECT_EQ(ask("select count(*) || ' ' || count(wide) || ' ' || count(unread) from \"every "
                  "\"\"type\""),
              "50000 50000 0")
        << sql::type_name(type);
    EXPECT_EQ(ask("select typeof(wide) from \"every \"\"type\" limit 1"), sql::type_name(type));
  }
}

// A column that becomes known later is changed in the table that is there. Rows, and what DuckDB
// knows of them, are those of a table that is made at once.
TEST_F(ShadowTables, ChangedAloneAreAsMadeAtOnce) {
  const sql::Catalog catalog = shop();
  const double factor = shadow_factor(catalog);
  for (const sql::Table& table : catalog.tables) {
    const Shadow whole = shadow_of(table, factor);
    auto facts = [&] {
      std::string all = ask(fmt::format("select md5(string_agg({0}::varchar, ',' order by rowid)) from {0}", table.name));
      for (const Shadow::Column& c : whole.columns)
        all += "\n" + ask(fmt::format("select stats({})::varchar from {} limit 1", c.name, table.name));
      return all;
    };
    ask(statements_of(table.name, whole));
    const std::string expected = facts();
    EXPECT_THAT(expected, testing::HasSubstr("approx_unique"));
    Shadow made = whole;
    for (Shadow::Column& c : made.columns) c.values.clear();
    ask(statements_of(table.name, made));
    EXPECT_NE(facts(), expected);
    for (size_t c = 0; c < whole.columns.size(); ++c) {
      const Shadow before = made;
      made.columns[c] = whole.columns[c];
      const std::string change = statements_of(table.name, made, before);
      EXPECT_EQ(change.find("INSERT") == change.npos, whole.columns.size() >= 3) << change;
      ask(change);
    }
    EXPECT_EQ(facts(), expected) << table.name;
  }
}

// What cannot be changed alone is made at once: other rows, a null at the end, many columns.
TEST_F(ShadowTables, AreMadeAnewWhereMuchChanges) {
  const sql::Catalog catalog = shop();
  const Shadow orders = shadow_of(catalog.tables[0], shadow_factor(catalog));
  EXPECT_EQ(statements_of("orders", orders, orders), "");
  Shadow other = orders;
  other.rows = 7;
  EXPECT_EQ(statements_of("orders", other, orders), statements_of("orders", other));
  other = orders;
  other.columns[1].ends_null = true;
  EXPECT_EQ(statements_of("orders", other, orders), statements_of("orders", other));
  other = orders;
  other.columns[0].values = other.columns[1].values = "#";
  EXPECT_EQ(statements_of("orders", other, orders), statements_of("orders", other));
}

}  // namespace
}  // namespace rndn::planner
