// The plan reader's errors, by name, and plans of any form: they give a plan or an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <random>

#include "frontend/sql/estimates.h"
#include "frontend/sql/translate.h"
#include "libraries/base/system/files.h"
#include "tests/sql_translate/changed_plans.h"
#include "tests/support/every_case.h"
#include "tests/support/random_seeds.h"

namespace rndn::sql::plan_test {
namespace {

std::string error_of(std::string_view json) {
  const Result<Plan> plan = read_plan(json);
  if (!plan) return plan.error().message;
  for (const auto& [table, columns] : estimated_by(*plan)) EXPECT_NE(table, "");
  Catalog catalog;
  Table t{.name = "t", .rows = 3};
  t.columns.push_back({.name = "a", .type = {TypeId::bigint}, .stored = hir::BasicType::i64});
  for (const char* name : {"id", "b"})
    t.columns.push_back({.name = name,
                         .type = {TypeId::integer},
                         .stored = hir::BasicType::i32,
                         .has_nulls = *name == 'b'});
  catalog.tables.push_back(t);
  const Result<Translation> translation = translate(*plan, catalog);
  return translation ? "" : translation.error().message;
}

std::string plan_of(std::string_view node) {
  return fmt::format(R"({{"error":false,"plans":[{{"plan":{}}}]}})", node);
}

// A projection of one expression over a scan of t.
std::string project(std::string_view expression) {
  constexpr const char* scan =
      R"({"type":"LOGICAL_GET","names":["a"],"returned_types":[{"id":"BIGINT"}],)"
      R"("function_data":{"table":"t"},"column_indexes":[{}]})";
  return plan_of(fmt::format(
      R"({{"type":"LOGICAL_PROJECTION","expressions":[{}],"children":[{}]}})", expression, scan));
}

// A call of a function or cast; `what`: its fields.
std::string call(std::string_view what, std::string_view type, std::string_view arguments) {
  return fmt::format(
      R"({{"expression_class":"BOUND_FUNCTION",{},"return_type":{{"id":"{}"}},"children":[{}]}})",
      what, type, arguments);
}

constexpr std::string_view column =
    R"({"expression_class":"BOUND_REF","return_type":{"id":"BIGINT"}})";

// A window of a kind; `more`: fields that win over those before them.
std::string window(std::string_view kind, std::string_view more) {
  return fmt::format(R"({{"expression_class":"BOUND_WINDOW","type":"{}","return_type":{{"id":)"
                     R"("BIGINT"}},"start":"UNBOUNDED_PRECEDING","end":"CURRENT_ROW_RANGE"{}}})",
                     kind, more);
}

TEST(Plan, ScanAndProjectionAreRead) { EXPECT_EQ(error_of(project(column)), ""); }

// The columns that estimates of rows come from, of plans that other tests keep.
TEST(Estimates, ComeFromJoinsAndWhatIsBelowThem) {
  using Columns = std::map<std::string, std::set<std::string>>;
  const auto of = [](const std::string& name) {
    const auto text = read_file(RNDN_SOURCE_DIR "/tests/sql_translate/plans/" + name + ".json");
    EXPECT_TRUE(text) << name;
    const Result<Plan> plan = read_plan(*text);
    EXPECT_TRUE(plan) << name;
    return estimated_by(*plan);
  };
  EXPECT_EQ(of("q01"), Columns());  // nothing is joined: neither groups nor filters count
  EXPECT_EQ(of("q06"), Columns());
  // Dates by order, and what is only added up, do not count, nor do groups above all joins.
  EXPECT_EQ(of("q03"), (Columns{{"customer", {"c_custkey", "c_mktsegment"}},
                                {"lineitem", {"l_orderkey"}},
                                {"orders", {"o_custkey", "o_orderkey"}}}));
  // Keys of a subquery's groups count, by way of projections.
  EXPECT_EQ(of("q18")["lineitem"], (std::set<std::string>{"l_orderkey"}));
  // IN and OR leave a fixed part; equality does not.
  EXPECT_EQ(of("q19"), (Columns{{"lineitem", {"l_partkey", "l_shipinstruct"}}, {"part", {"p_partkey"}}}));
  EXPECT_EQ(of("q13"), (Columns{{"customer", {"c_custkey"}}, {"orders", {"o_custkey"}}}));
}

TEST(Plan, IsTextForPeople) {
  auto text = [](const std::string& name) {
    const Result<std::string> json =
        read_file(RNDN_SOURCE_DIR "/tests/sql_translate/plans/" + name + ".json");
    EXPECT_TRUE(json.ok()) << name;
    const Result<Plan> plan = read_plan(*json);
    EXPECT_TRUE(plan.ok()) << name;
    return plan_text(*plan);
  };
  const std::string q21 = text("q2.1");
  for (const char* line :
       {"order by d_year, p_brand1\n", "  project sum(lo_revenue), d_year, p_brand1\n",
        "    aggregate sum(lo_revenue) by d_year, p_brand1\n", "inner join on ",
        "scan part: p_partkey, p_category, p_brand1 where (p_category = 'MFGR#12')\n"})
    EXPECT_NE(q21.find(line), std::string::npos) << line << q21;
  EXPECT_NE(text("q06").find("(l_discount >= 0.05)"), std::string::npos) << text("q06");
  EXPECT_NE(text("q06").find("1994-01-01"), std::string::npos);
  EXPECT_NE(text("q03").find("top 10 by "), std::string::npos);
}

TEST(Plan, ErrorsNameWhatIsNotKnown) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "the planner's answer is not JSON"},
      {"[1", "the planner's answer is not JSON"},
      {R"({"error":true,"error_message":"no table x"})", "no table x"},
      {R"({"error":false,"plans":[]})",
       "the planner gives 0 plans; one statement at a time is translated"},
      {plan_of(R"({"type":"LOGICAL_RECURSIVE_CTE"})"),
       "WITH RECURSIVE within a query has no translation: it stands where the statement begins"},
      {plan_of(R"({"type":"LOGICAL_UNNEST"})"), "UNNEST of what is no constant list has no translation"},
      {plan_of(R"({"type":"LOGICAL_FILTER"})"), "the operator LOGICAL_FILTER has 0 children"},
      {plan_of(R"({"type":"LOGICAL_PROJECTION","children":[{"type":"LOGICAL_DUMMY_SCAN"}]})"),
       "the plan has no result column"},
      {project(window("WINDOW_FILL", "")), "the function WINDOW_FILL has no translation"},
      {project(window("WINDOW_RANK", "")), "a window stands where no rows are in order"},
      {project(window("WINDOW_LAG", "")),
       "the function WINDOW_LAG with 0 arguments has no translation"},
      {project(window("WINDOW_RANK", R"(,"exclude_clause":"SOME")")),
       "EXCLUDE SOME in the frame of a window has no translation"},
      {project(window("WINDOW_RANK", R"(,"end":"EXPR_FOLLOWING_RANGE","end_expr":)" +
                                         std::string(column))),
       "the frame of a window between values has 0 orders"},
      {plan_of(R"({"type":"LOGICAL_GET","qname":{"path":["range"]},"column_indexes":[{}],)"
               R"("parameters":[{"type":{"id":"BIGINT"},"value":5000000000}]})"),
       "a series of more than 4294967296 rows has no translation"},
      {plan_of(R"({"type":"LOGICAL_GET","names":["a"],"returned_types":[{"id":"BIGINT"}],)"
               R"("function_data":{"table":"t"},"column_indexes":[{}],"table_filters":{"filters":)"
               R"([{"key":0,"value":{"filter_type":"LEGACY_CONJUNCTION_OR","child_filters":)"
               R"([{"filter_type":"LEGACY_IS_NULL"},{"filter_type":"LEGACY_OPTIONAL_FILTER"}]}}]}})"),
       "a filter of a scan that is a part of OR has no translation"},
      {plan_of(R"({"type":"LOGICAL_GET","qname":{"path":["glob"]}})"),
       "the table function glob has no translation"},
      {project(R"({"expression_class":"BOUND_REF","return_type":{"id":"BLOB"}})"),
       "the type BLOB has no translation"},
      {project(R"({"expression_class":"BOUND_REF","index":7,"return_type":{"id":"BIGINT"}})"),
       "the plan names column 7 of 1"},
      {project(call(R"("type":"BOUND_FUNCTION","qname":{"path":["hash"]})", "BIGINT", column)),
       "the function hash has no translation"},
      {project(call(R"("type":"OPERATOR_CAST")", "DATE", column)),
       "the cast from BIGINT to DATE has no translation"},
      {project(R"({"expression_class":"BOUND_AGGREGATE","qname":{"path":["mad"]},)"
               R"("return_type":{"id":"BIGINT"}})"),
       "the aggregate mad has no translation"},
      {plan_of(R"({"type":"LOGICAL_GET","function_data":{"table":"u"}})"),
       "the plan reads table u, which is not there"},
  };
  for (const auto& [json, message] : cases) EXPECT_EQ(error_of(json), message) << json;
}

TEST(Plan, DeepNestingIsAnError) {
  std::string json = R"({"type":"LOGICAL_DUMMY_SCAN"})";
  for (int i = 0; i < 2000; ++i)
    json = fmt::format(R"({{"type":"LOGICAL_LIMIT","children":[{}]}})", json);
  EXPECT_EQ(error_of(plan_of(json)), "the plan is nested more than 400 levels deep");
}

TEST(Plan, ListsOfMoreValuesThanSixteenBitsCount) {
  const auto in = [](size_t values) {
    std::string list(column);
    for (size_t k = 0; k < values; ++k)
      list += fmt::format(R"(,{{"expression_class":"BOUND_CONSTANT","value":{{"type":{{"id":"BIGINT"}},"is_null":)"
                          R"(false,"value":{}}}}})",
                          3 * k);
    return fmt::format(R"({{"expression_class":"BOUND_OPERATOR","type":"COMPARE_IN","return_type":{{"id":)"
                       R"("BOOLEAN"}},"children":[{}]}})",
                       list);
  };
  EXPECT_EQ(error_of(project(in(66000))), "");
  EXPECT_THAT(error_of(project(in(0))), ::testing::HasSubstr("with 1 arguments"));
}

// Names of the program were looked for from the first on: minutes for these.
TEST(Plan, ManyColumnsOfOneName) {
  std::string sums;
  for (int i = 0; i < 20'000; ++i)
    sums += (i ? "," : "") +
            call(R"("type":"BOUND_FUNCTION","qname":{"path":["+"]})", "BIGINT",
                 fmt::format(R"({},{{"expression_class":"BOUND_CONSTANT","value":{{"type":{{"id":)"
                             R"("BIGINT"}},"value":{}}}}})",
                             column, i + 1));
  const std::clock_t begin = std::clock();
  EXPECT_EQ(error_of(project(sums)), "");
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 20);
}

// Plans of real queries with pieces changed, doubled or left out.
TEST(Plan, DamagedPlansGiveAPlanOrAnError) {
  std::mt19937 random(7);
  size_t errors = 0, runs = 0;
  std::vector<std::string> plans;
  for (const char* query : {"q02", "q13", "q16", "q20", "q21", "q22"}) {
    const Result<std::string> text =
        read_file(fmt::format("{}/tests/sql_translate/plans/{}.json", RNDN_SOURCE_DIR, query));
    ASSERT_TRUE(text.ok());
    plans.push_back(*text);
  }
  for (const char* name : {"windows", "sets"}) {
    const Result<std::string> text =
        read_file(fmt::format("{}/tests/sql_translate/{}.json", RNDN_SOURCE_DIR, name));
    ASSERT_TRUE(text.ok());
    const nlohmann::json statements = nlohmann::json::parse(*text);
    for (size_t i = 0; i < statements.size(); i += 5) plans.push_back(statements[i]["plan"].dump());
  }
  for (const std::string& plan : plans) {
    const std::string* const whole = &plan;
    std::vector<std::pair<size_t, size_t>> words;  // numbers and quoted texts
    for (size_t i = 0; i < whole->size(); ++i) {
      const size_t begin = i;
      if ((*whole)[i] == '"') {
        i = whole->find('"', i + 1);
        words.emplace_back(begin, i + 1 - begin);
      } else if (std::isdigit(static_cast<unsigned char>((*whole)[i]))) {
        while (std::isdigit(static_cast<unsigned char>((*whole)[i]))) ++i;
        words.emplace_back(begin, i - begin);
      }
    }
    for (uint64_t round = 0; round < rndn::test::in_the_gate(80, 200); ++round, ++runs) {
      std::string text = *whole;
      const auto [at, length] = words[random() % words.size()];
      const auto [from, size] = words[random() % words.size()];
      switch (random() % 4) {
        case 0: text.replace(at, length, whole->substr(from, size)); break;
        case 1: text.replace(at, length, std::to_string(random() % 40)); break;
        case 2: text.replace(at, length, "null"); break;
        default: text[random() % text.size()] = "{}[],:\"0"[random() % 8]; break;
      }
      errors += !error_of(text).empty();
    }
  }
  EXPECT_GT(errors, runs / 2);  // the catalog here has none of their tables
}

// Whatever stands in a plan there is a program that can be read, or an error. (Its types may not
// fit: no planner says that a column is what it is not.)
TEST(Plan, ChangedPlansGiveAProgramOrAnError) {
  const std::vector<test::Json> plans = test::recorded_plans();
  ASSERT_GT(plans.size(), 300u);
  const test::PlanChanges changes(plans);
  size_t translated = 0, refused = 0;
  const unsigned seeds = rndn::testing::random_seeds(static_cast<unsigned>(rndn::test::in_the_gate(900, 2500)));
  for (unsigned seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    test::Json plan = plans[random() % plans.size()];
    const Catalog catalog = test::catalog_of(plan);
    for (unsigned i = 0, most = 1 + random() % 3; i < most; ++i) changes.change(plan, random);
    const test::Outcome outcome = test::translate_changed(plan.dump(), catalog);
    EXPECT_EQ(outcome.wrong, "");
    ++(outcome.translated ? translated : refused);
  }
  EXPECT_GT(translated, seeds / 20);
  EXPECT_GT(refused, seeds / 20);
}

}  // namespace
}  // namespace rndn::sql::plan_test
