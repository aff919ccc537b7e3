// What is wrong with a statement is said with its place: one case per kind of diagnostic and more.
#include "runtime/planner/problem.h"

#include <gmock/gmock.h>

#include "tests/planner/support.h"

namespace rndn::planner {
namespace {

class Problems : public testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_PLANNER();
    planner_ = open_shop();
    ASSERT_NE(planner_, nullptr);
  }
  void expect(const std::string& text, const std::string& said) {
    const Outcome outcome = plan_text(*planner_, text);
    ASSERT_FALSE(outcome.planned) << text;
    EXPECT_EQ(outcome.planned.error().fault, Fault::input);
    EXPECT_EQ(outcome.planned.error().message, "");
    EXPECT_EQ(outcome.said, said);
  }
  std::unique_ptr<Planner> planner_;
};

TEST_F(Problems, Syntax) {
  expect("select id\nfrom orders\nwhere price >",
         "q.sql:3:13: error: syntax error at or near `>`\n"
         "  where price >\n"
         "              ^\n");
  expect("selec 1",
         "q.sql:1:1: error: syntax error at or near `selec`\n"
         "  selec 1\n"
         "  ^~~~~\n");
  expect("select 'abc",
         "q.sql:1:8: error: unterminated string literal\n"
         "  select 'abc\n"
         "         ^\n");
}

TEST_F(Problems, NamesThatAreMissing) {
  expect("select o.id,\n       o.custmer\nfrom orders o",
         "q.sql:2:8: error: table `o` does not have a column named `custmer`\n"
         "         o.custmer\n"
         "         ^~~~~~~~~\n"
         "note: candidate bindings: `customer`\n");
  expect("select id,\n custmer from orders",
         "q.sql:2:2: error: there is no column `custmer`; did you mean `customer`?\n"
         "   custmer from orders\n"
         "   ^~~~~~~\n");
  expect("select é, id from orders",
         "q.sql:1:8: error: there is no column `é`\n"
         "  select é, id from orders\n"
         "         ^~\n");
  expect("select * from order_s",
         "q.sql:1:15: error: there is no table `order_s`; did you mean `orders`?\n"
         "  select * from order_s\n"
         "                ^~~~~~~\n");
  expect("select summ(price) from orders",
         "q.sql:1:8: error: there is no function `summ`; did you mean `sum`?\n"
         "  select summ(price) from orders\n"
         "         ^~~~~~~~~~~\n");
  expect("select x.id from orders",
         "q.sql:1:8: error: referenced table `x` not found\n"
         "  select x.id from orders\n"
         "         ^~~~\n"
         "note: candidate tables: `orders`\n");
  const Outcome month = plan_text(*planner_, "select month from customers");
  EXPECT_THAT(month.said, testing::HasSubstr("there is no column `month`"));
  EXPECT_THAT(
      month.said,
      testing::EndsWith("note: a column `month` is of type month, which SQL does not have\n"));
}

TEST_F(Problems, Types) {
  expect("select sum(state) from orders where price > 1",
         "q.sql:1:8: error: no function matches the given name and argument types `sum(VARCHAR)`\n"
         "  select sum(state) from orders where price > 1\n"
         "         ^~~~~~~~~~\n"
         "note: you might need to add explicit type casts; candidate functions: sum(arg DECIMAL) "
         "-> DECIMAL; "
         "sum(arg BOOLEAN, /) -> HUGEINT; sum(arg SMALLINT, /) -> HUGEINT; sum(arg INTEGER, /) -> "
         "HUGEINT; "
         "and 4 more\n");
  expect("select id, count(*) from orders",
         "q.sql:1:8: error: column `id` must appear in the GROUP BY clause or must be part of an "
         "aggregate function\n"
         "  select id, count(*) from orders\n"
         "         ^~\n"
         "note: either add it to the GROUP BY list, or use ANY_VALUE(`id`) if the exact value of "
         "`id` is not important\n");
}

TEST_F(Problems, StatementsThatAreNoQueries) {
  for (const std::string text :
       {"drop table orders", "create table t (a int)", "insert into orders select * from orders",
        "delete from orders", "set threads = 4", "update orders set id = 1"}) {
    const std::string word = text.substr(0, text.find(' '));
    expect(text,
           fmt::format("q.sql:1:1: error: `{}` is no query: SELECT and its like are\n  {}\n  ^{}\n",
                       word, text, std::string(word.size() - 1, '~')));
  }
  expect("explain select 1",
         "q.sql:1:1: error: `EXPLAIN` is no query: `--emit plan` and `rndn explain` show what "
         "becomes of one\n"
         "  explain select 1\n"
         "  ^\n");
  // None of them was run.
  EXPECT_TRUE(plan_text(*planner_, "select id from orders").planned);
}

TEST_F(Problems, FilesAndParameters) {
  const std::string said = "files are read by their names, FROM 'x.parquet', and by read_parquet";
  for (const char* text : {"select * from 'x.csv'", "select * from read_csv('/etc/passwd')",
                           "select * from glob('*')", "select * from read_text('/etc/passwd')"})
    EXPECT_THAT(plan_text(*planner_, text).said, testing::HasSubstr(said)) << text;
  expect("select id from orders where id = $1",
         "q.sql:1:34: error: a parameter has no value here\n"
         "  select id from orders where id = $1\n"
         "                                   ^~\n");
  expect("select ?", "q.sql:1:1: error: a parameter has no value here\n  select ?\n  ^\n");
}

TEST_F(Problems, TextsThatDuckdbDoesNotTake) {
  expect(std::string("select 1\0, 2", 12),
         "q.sql:1:9: error: this byte (0x00) is no part of a text in UTF-8\n  select 1?, 2\n       "
         "   ^\n");
  expect("select '\xff'",
         "q.sql:1:9: error: this byte (0xff) is no part of a text in UTF-8\n  select '?'\n         "
         " ^\n");
  EXPECT_FALSE(plan_text(*planner_, std::string(20'000, '(') + "1").planned);
  EXPECT_TRUE(plan_text(*planner_, "select id from orders").planned);
}

// An answer that is not as it was when this was written still becomes an error.
TEST(ProblemsOfAnotherForm, AreSaidAsTheyAre) {
  auto said = [](const std::string& answer) {
    SourceManager sources;
    DiagnosticSink sink;
    report_problem(answer, {sources.add("q.sql", "select 1"), 0, 8}, {}, {}, sink);
    return render(sink, sources);
  };
  const std::string mark = "\n  select 1\n  ^\n";
  EXPECT_EQ(said("Broken"), "q.sql:1:1: error: broken" + mark);
  EXPECT_EQ(said("{}"),
            "q.sql:1:1: error: the planner refuses the statement without a reason" + mark);
  EXPECT_EQ(said(R"({"error_message":"Can't do \"x\"! It isn't in 'y'.","location":"[99,7]"})"),
            "q.sql:1:1: error: can't do `x`! It isn't in `y`\n  select 1\n  ^~~~~~~~\n");
}

}  // namespace
}  // namespace rndn::planner
