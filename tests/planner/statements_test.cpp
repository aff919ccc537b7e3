// Where statements end, against what is plain to see, and against DuckDB.
#include "runtime/planner/statements.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/planner/recursive.h"
#include "tests/planner/support.h"

namespace rndn::planner {
namespace {

using testing::ElementsAre;

std::vector<std::string> parts(const std::string& text) {
  std::vector<std::string> found;
  for (const Statement& s : split_statements(text))
    found.push_back(text.substr(s.begin, s.end - s.begin));
  return found;
}

TEST(Statements, AreCutAtSemicolons) {
  EXPECT_THAT(parts(""), ElementsAre());
  EXPECT_THAT(parts(" ;; -- nothing\n ; /* ; */"), ElementsAre());
  EXPECT_THAT(parts("select 1"), ElementsAre("select 1"));
  EXPECT_THAT(parts("  select 1 ;\n\tselect 2;"), ElementsAre("select 1", "select 2"));
  EXPECT_THAT(parts("-- first\nselect 1 -- a; b\n + 2 /* c; /* d; */ ; */; select 2"),
              ElementsAre("select 1 -- a; b\n + 2", "select 2"));
  EXPECT_THAT(
      parts("select ';', 'it''s;', \"a;\"\"b\", E'\\';', $$;$$, $x$;$$;$x$, $1; b"),
      ElementsAre("select ';', 'it''s;', \"a;\"\"b\", E'\\';', $$;$$, $x$;$$;$x$, $1", "b"));
  EXPECT_THAT(parts("select 'a\\'; select 2"),
              ElementsAre("select 'a\\'", "select 2"));  // no escape without E
  EXPECT_THAT(parts("select 'open; select"), ElementsAre("select 'open; select"));
  const std::vector<Statement> two = split_statements("a; b");
  ASSERT_EQ(two.size(), 2u);
  EXPECT_TRUE(two[0].ended);
  EXPECT_FALSE(two[1].ended);
  EXPECT_EQ(two[1].begin, 3u);
}

TEST(Statements, KnowWhatIsOpen) {
  for (const char* text :
       {"select 'a", "select \"a", "/* a", "/* /* a */", "select E'a\\'", "$$ a", "$x$ $$", "'a''"})
    EXPECT_TRUE(is_open(text)) << text;
  for (const char* text :
       {"", "select 'a'", "-- 'a", "/* /* a */ */", "select $1", "E'a\\''", "'a'''", "$x$ $$ $x$"})
    EXPECT_FALSE(is_open(text)) << text;
}

TEST(Statements, KnowWhatChangesByItself) {
  for (const char* text : {"select current_date", "select Now()", "select \"random\"()",
                           "select a from t where x < today()", "select localtimestamp - d from t"})
    EXPECT_FALSE(is_repeatable(text)) << text;
  for (const char* text :
       {"select 1", "select 'now'", "select nowhere, \"my now\" -- now()\n /* random() */",
        "select year(d), date_trunc('month', d) from t"})
    EXPECT_TRUE(is_repeatable(text)) << text;
  const std::vector<std::string_view>& names = unrepeatable_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST(Statements, KnowEveryFunctionThatDuckdbCallsVolatile) {
  REQUIRE_PLANNER();
  auto database = open_database(installed());
  ASSERT_TRUE(database) << database.error().message;
  auto list = (*database)->ask(
      "select string_agg(distinct function_name, ' ') from duckdb_functions() where stability = "
      "'VOLATILE'");
  ASSERT_TRUE(list) << list.error().message;
  std::istringstream words(*list);
  size_t seen = 0;
  for (std::string name; words >> name; ++seen)
    EXPECT_FALSE(is_repeatable("select " + name + "()")) << name;
  EXPECT_GT(seen, 10u);
}

// Texts of random pieces, whose number of statements is known as they are made.
TEST(Statements, AreAsManyAsDuckdbFinds) {
  REQUIRE_PLANNER();
  auto database = open_database(installed());
  ASSERT_TRUE(database) << database.error().message;
  const std::vector<std::string> values = {
      "1",    "';'",          "'a''b;'",   "E'\\';\\\\'", "$$;'$$",       "$t$;$$;$t$",
      "'\\'", "1 -- ; '\n",   "/* ; */ 2", "1.5e3",       "1 \"c;\"\"\"", "/*/**/;*/3",
      "'é;'", "'/*' || '--'", "1-1"};
  const std::vector<std::string> ends = {";",          "; ",         ";;",
                                         " ; -- ;\n;", ";\n/* ; */", "; /*;*/ ;\t"};
  std::mt19937 random(7);
  auto pick = [&](const std::vector<std::string>& from) { return from[random() % from.size()]; };
  for (int round = 0; round < 200; ++round) {
    std::string text;
    const size_t count = random() % 4;
    for (size_t s = 0; s < count; ++s) {
      const std::string value = pick(values);
      text += "select " + value;
      for (size_t k = random() % 3; k > 0; --k) text += ", 'x;' /* ' */";
      text += pick(ends);
    }
    EXPECT_EQ(split_statements(text).size(), count) << text;
    EXPECT_FALSE(is_open(text)) << text;
    auto answer = (*database)->ask("select json_serialize_plan(" + quote_text(text) + ")");
    ASSERT_TRUE(answer) << text << answer.error().message;
    const auto json = nlohmann::json::parse(*answer);
    ASSERT_EQ(json["error"], false) << text << *answer;
    EXPECT_EQ(json["plans"].size(), count) << text;
  }
}

// Calls that read files have a name in their place, and everything else stays where it was.
TEST(Statements, CallsThatReadFilesHaveNames) {
  constexpr std::string_view functions[] = {"read_csv", "read_parquet"};
  const auto named = [&](const std::string& text, FileCalls& calls) {
    return name_file_calls(text, functions, calls);
  };
  FileCalls calls;
  EXPECT_EQ(named("select * from Read_Parquet('a''b.parquet') p, x", calls),
            "select * from \"a'b.parquet\"" + std::string(15, ' ') + " p, x");
  ASSERT_TRUE(calls.contains("a'b.parquet"));
  EXPECT_TRUE(calls.at("a'b.parquet").is_path);
  EXPECT_EQ(calls.at("a'b.parquet").function, "read_parquet");
  calls.clear();
  EXPECT_EQ(named("from read_csv ('x.csv', columns = {'a': 'INT'}, delim=')') where 1", calls),
            "from \"'x.csv', columns = {'a': 'INT'}, delim=')'\"" + std::string(9, ' ') + " where 1");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_FALSE(calls.begin()->second.is_path);
  EXPECT_EQ(calls.begin()->second.arguments, "'x.csv', columns = {'a': 'INT'}, delim=')'");
  calls.clear();
  for (const char* same : {"select 'read_csv(''x'')'", "select read_csv", "from read_csv()",
                           "from read_csv('x'", "from read_csv('x\"y')", "from my_read_csv('x')"})
    EXPECT_EQ(named(same, calls), same);
  EXPECT_TRUE(calls.empty());
}

TEST(Statements, AreCutIntoRecursiveTables) {
  const auto q = read_recursive("WITH RECURSIVE a AS (select 1 union select 2), \"r x\"(n, \"m\"\"\") AS NOT MATERIALIZED "
                                "((select 1 union all select 2) UNION ALL select n + 1 from \"r x\" where n < (3)) select ')' from r");
  ASSERT_TRUE(q);
  ASSERT_EQ(q->tables.size(), 2u);
  EXPECT_EQ(q->tables[0].name, "a");
  EXPECT_FALSE(q->tables[0].is_recursive);
  EXPECT_EQ(q->tables[0].body, "select 1 union select 2");
  EXPECT_EQ(q->tables[1].name, "r x");
  EXPECT_THAT(q->tables[1].columns, ElementsAre("n", "m\""));
  EXPECT_TRUE(q->tables[1].is_recursive && q->tables[1].all);
  EXPECT_EQ(q->tables[1].first, "(select 1 union all select 2)");
  EXPECT_EQ(q->tables[1].next, "select n + 1 from \"r x\" where n < (3)");
  EXPECT_EQ(q->rest, "select ')' from r");
  const auto distinct = read_recursive("with recursive r as (select 1 as n union distinct select n from R) from r");
  ASSERT_TRUE(distinct);
  EXPECT_FALSE(distinct->tables[0].all);
  EXPECT_EQ(distinct->tables[0].next, "select n from R");
  for (const char* other : {"select 1", "with r as (select 1) from r", "with recursive r as (select 1) from r",
                            "with recursive r as (select n from r) from r", "with recursive r as (select 1 union all select 2",
                            "with recursive r(n) using key (n) as (select 1 union select n from r) from r",
                            "with recursive r as (select n from r union all select 1) from r", "with recursive r(", "",
                            "with recursive r as (select 1 union all select n from r)"})
    EXPECT_FALSE(read_recursive(other)) << other;
}

}  // namespace
}  // namespace rndn::planner
