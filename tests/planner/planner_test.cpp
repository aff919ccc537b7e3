// Plans: equal whichever way the library is reached, and whatever the shadows hold.
#include "runtime/planner/planner.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/planner/support.h"

namespace rndn::planner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

const std::vector<std::string> queries = {
    "select 1",
    "select state, sum(price) as total, count(*) from orders where day < date '1995-03-15' group "
    "by all order by 2 desc",
    "select c.name from customers c where not exists (select 1 from orders o where o.customer = "
    "c.id and o.price > 10.5)",
    "select name, (select max(price) from orders o where o.customer = c.id) from customers c order "
    "by 1 limit 3 offset 2",
    "with big as (select customer, sum(price) p from orders group by 1) "
    "select * from big b1, big b2 where b1.p > b2.p and b1.customer = b2.customer + 1",
    "select k.country, count(distinct o.id) from orders o, customers c, countries k where "
    "o.customer = c.id and "
    "c.country = k.id and k.country like 'A%' group by rollup (k.country) having count(*) > 3",
    "select rank() over (partition by state order by price desc) r, price / 3, year(day) from "
    "orders qualify r < 4",
    "select state from orders where state in ('a', 'b', 'c', 'd', 'e', 'f', 'g') union all select "
    "name from customers",
    "from orders select case when price > 1 then 'it''s' else null end, customer::double, day + "
    "interval 1 month",
};

std::string plan_of(Planner& planner, const std::string& text) {
  Outcome outcome = plan_text(planner, text);
  EXPECT_TRUE(outcome.planned) << text << outcome.said;
  return outcome.planned ? outcome.planned->plan : "";
}

// Plans, columns and problems of the other way are those of the library of tools/sql-planner.
void expect_equal_plans(const std::string& folder, const Options& other_way) {
  Options way;
  way.folders = {folder};
  way.python = "/nonexistent/python3";
  auto planner = open_shop(way), other = open_shop(other_way);
  ASSERT_NE(planner, nullptr);
  ASSERT_NE(other, nullptr);
  for (const std::string& query : queries) {
    const Outcome one = plan_text(*planner, query), two = plan_text(*other, query);
    ASSERT_TRUE(one.planned) << query << one.said;
    ASSERT_TRUE(two.planned) << query << two.said;
    EXPECT_EQ(two.planned->plan, one.planned->plan);
    EXPECT_EQ(two.planned->columns, one.planned->columns);
    EXPECT_EQ(two.planned->reads, one.planned->reads);
  }
  for (const char* wrong :
       {"select nme from customers", "selec 1", "select 'a' + 1", "select '\xff'",
        "drop table orders", "select * from 'x.csv'", "select ?"}) {
    const Outcome one = plan_text(*planner, wrong), two = plan_text(*other, wrong);
    EXPECT_FALSE(one.planned) << wrong;
    EXPECT_EQ(two.said, one.said);
  }
}

TEST(Plans, AreEqualWithALibraryThatIsNamed) {
  const std::string folder = installed_folder();
  if (folder.empty()) GTEST_SKIP() << "skipped: tools/sql-planner has not installed the planner";
  Options way;
  way.named = folder;
  expect_equal_plans(folder, way);
  way.named = folder + "/" + wrapper_name;  // as DuckDB's own libduckdb.so is named
  expect_equal_plans(folder, way);
}

TEST(Plans, AreEqualWithAPythonAtTheOtherEnd) {
  const std::string folder = installed_folder();
  if (folder.empty()) GTEST_SKIP() << "skipped: tools/sql-planner has not installed the planner";
  if (const std::string misfit = python_misfit(folder); !misfit.empty()) GTEST_SKIP() << misfit;
  Options way;
  way.named = "python3";
  setenv("PYTHONPATH", folder.c_str(), 1);
  expect_equal_plans(folder, way);
  unsetenv("PYTHONPATH");
  // Found by itself, when the library cannot be loaded: it imports the package from the folder.
  const std::string broken = testing::TempDir() + "rndn_broken_" + std::to_string(getpid());
  std::filesystem::create_directories(broken);
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename() != wrapper_name)
      std::filesystem::create_symlink(std::filesystem::canonical(entry.path()),
                                      broken + "/" + entry.path().filename().string());
  std::ofstream(broken + "/" + wrapper_name) << "no library";
  way = {};
  way.folders = {broken};
  expect_equal_plans(folder, way);
  std::filesystem::remove_all(broken);
}

TEST(Plans, HaveColumnsReadsAndTheirDurability) {
  REQUIRE_PLANNER();
  auto planner = open_shop();
  ASSERT_NE(planner, nullptr);
  Outcome outcome = plan_text(*planner, queries[1]);
  ASSERT_TRUE(outcome.planned) << outcome.said;
  EXPECT_THAT(outcome.planned->columns,
              ElementsAre(ResultColumn{"state", "VARCHAR"}, ResultColumn{"total", "DECIMAL(38,2)"},
                          ResultColumn{"count_star()", "BIGINT"}));
  ASSERT_EQ(outcome.planned->reads.size(), 1u);
  EXPECT_THAT(outcome.planned->reads["orders"], ElementsAre("day", "price", "state"));
  EXPECT_TRUE(outcome.planned->repeatable);
  // Columns of equal names, names with quotes, a comment at the end without a line end.
  outcome = plan_text(*planner, "select 1 as \"a \"\"b\", 2 as x, 3 as x -- the end");
  ASSERT_TRUE(outcome.planned) << outcome.said;
  EXPECT_THAT(outcome.planned->columns,
              ElementsAre(ResultColumn{"a \"b", "INTEGER"}, ResultColumn{"x", "INTEGER"},
                          ResultColumn{"x", "INTEGER"}));
  EXPECT_TRUE(outcome.planned->reads.empty());
  EXPECT_FALSE(plan_text(*planner, "select current_date").planned->repeatable);
  // A table of which no column is needed is read all the same.
  EXPECT_TRUE(plan_text(*planner, "select count(*) from orders").planned->reads.contains("orders"));
}

// No conclusion is drawn from the shadows: what they hold does not show, and filters that they all
// pass or fail stay.
TEST(Plans, DoNotDependOnTheRowsOfShadows) {
  REQUIRE_PLANNER();
  auto opened = Planner::open(installed());
  ASSERT_TRUE(opened) << opened.error().message;
  Planner& planner = **opened;
  std::vector<std::string> plans[3];
  const sql::Catalog catalogs[] = {shop(0), shop(1000), shop(6'000'000)};
  for (size_t c = 0; c < 3; ++c) {
    ASSERT_TRUE(planner.set_catalog(catalogs[c]));
    for (const char* query :
         {"select state, sum(price) from orders where price < 100000000 and id > 0 group by 1",
          "select count(*) from orders",
          "select max(day), min(id) from orders where day > date '2100-01-01'",
          "select name from customers where id = 7",
          "select distinct customer from orders where state is not null order by 1 limit 10",
          "select * from orders where state in ('x', 'y', 'z')"})
      plans[c].push_back(plan_of(planner, query));
  }
  EXPECT_EQ(plans[0], plans[1]);
  EXPECT_EQ(plans[1], plans[2]);
  EXPECT_THAT(plans[2][2], HasSubstr("LOGICAL_GET"));
}

// The tables below a node of a plan.
std::set<std::string> tables_of(const Json& node) {
  std::set<std::string> tables;
  if (node.value("type", "") == "LOGICAL_GET")
    tables.insert(node["function_data"].value("table", ""));
  for (const Json& child : node.value("children", Json::array())) tables.merge(tables_of(child));
  return tables;
}
// The sets of tables that joins of the plan bring together.
void joins_of(const Json& node, std::set<std::set<std::string>>& joins) {
  if (node.value("type", "") == "LOGICAL_COMPARISON_JOIN") joins.insert(tables_of(node));
  for (const Json& child : node.value("children", Json::array())) joins_of(child, joins);
}

// The same join in every order of its tables: with shadows the small tables are joined first, since
// one country has one customer in 25.
TEST(Plans, JoinInTheOrderThatTheDataAsksFor) {
  REQUIRE_PLANNER();
  auto planner = open_shop();
  ASSERT_NE(planner, nullptr);
  std::vector<std::string> from = {"countries k", "customers c", "orders o"};
  do {
    const std::string plan = plan_of(
        *planner,
        fmt::format(
            "select sum(price) from {}, {}, {} where o.customer = c.id and c.country = k.id and "
            "k.country = 'PERU'",
            from[0], from[1], from[2]));
    std::set<std::set<std::string>> joins;
    joins_of(Json::parse(plan)["plans"][0], joins);
    EXPECT_THAT(joins, ElementsAre(std::set<std::string>{"countries", "customers"},
                                   std::set<std::string>{"countries", "customers", "orders"}))
        << plan;
  } while (std::next_permutation(from.begin(), from.end()));
}

TEST(Plans, FollowTheCatalog) {
  REQUIRE_PLANNER();
  auto planner = open_shop();
  ASSERT_NE(planner, nullptr);
  sql::Catalog catalog = shop();
  catalog.tables.erase(catalog.tables.begin());  // no orders
  catalog.tables[0].columns.push_back({.name = "new", .type = {TypeId::date}});
  ASSERT_TRUE(planner->set_catalog(catalog));
  EXPECT_TRUE(plan_text(*planner, "select new from customers").planned);
  EXPECT_EQ(plan_text(*planner, "select id from orders").said,
            "q.sql:1:16: error: there is no table `orders`; there are `customers`, `countries`\n"
            "  select id from orders\n"
            "                 ^~~~~~\n");
  ASSERT_TRUE(planner->set_catalog({}));
  EXPECT_THAT(plan_text(*planner, "select * from countries").said,
              HasSubstr("there is no table `countries`"));
}

// The planner would read one for the other.
TEST(Plans, OfTablesThatDifferInCaseAlone) {
  REQUIRE_PLANNER();
  auto planner = open_shop();
  ASSERT_NE(planner, nullptr);
  sql::Catalog catalog;
  for (const char* name : {"Sales", "sales_2", "sALES"})
    catalog.tables.push_back({.name = name, .rows = 10, .columns = {{.name = name, .type = {TypeId::date}}}});
  const auto set = planner->set_catalog(catalog);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().fault, Fault::input);
  EXPECT_THAT(set.error().message, HasSubstr("the tables `Sales` and `sALES` have one name in SQL"));
  catalog.tables.pop_back();
  EXPECT_TRUE(planner->set_catalog(catalog));
}

// A table may be called like a thing of DuckDB's, or have letters that want quotes.
TEST(Plans, OfTablesWithUnusualNames) {
  REQUIRE_PLANNER();
  auto planner = open_shop();
  ASSERT_NE(planner, nullptr);
  sql::Catalog catalog;
  catalog.tables.push_back(
      {.name = "Order", .rows = 10, .columns = {{.name = "from", .type = {TypeId::date}}}});
  catalog.tables.push_back(
      {.name = "x.csv", .rows = 10, .columns = {{.name = "it's \"1\"", .type = {TypeId::time}}}});
  ASSERT_TRUE(planner->set_catalog(catalog));
  Outcome outcome = plan_text(*planner, "select \"FROM\" from \"order\"");
  ASSERT_TRUE(outcome.planned) << outcome.said;
  EXPECT_THAT(outcome.planned->reads["Order"], ElementsAre("from"));
  outcome = plan_text(*planner, "select \"it's \"\"1\"\"\" from 'x.csv'");
  ASSERT_TRUE(outcome.planned) << outcome.said;
  EXPECT_THAT(outcome.planned->reads["x.csv"], ElementsAre("it's \"1\""));
}

}  // namespace
}  // namespace rndn::planner
