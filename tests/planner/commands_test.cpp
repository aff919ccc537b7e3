// Statements that are answered beside the planner, and parameters.
#include "runtime/planner/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace rndn::planner {
namespace {

using testing::ElementsAre;

class Commands : public testing::Test {
 protected:
  Result<Command> read(const std::string& text) {
    sources_ = {};
    sink_ = {};
    const FileId file = sources_.add("q.sql", text);
    return read_command({file, 0, static_cast<uint32_t>(text.size())}, sources_, sink_);
  }
  std::string said(const std::string& text) {
    auto command = read(text);
    EXPECT_FALSE(command) << text;
    return render(sink_, sources_);
  }
  SourceManager sources_;
  DiagnosticSink sink_;
};

TEST_F(Commands, AreRead) {
  struct Case {
    const char* text;
    Command::Kind kind;
    const char *name, *rest;
  };
  const Case cases[] = {{"select 1", Command::query, "", "select 1"},
                        {"showing", Command::query, "", "showing"},
                        {"Show /* all */ Tables", Command::show_tables, "", nullptr},
                        {"describe t", Command::describe, "t", nullptr},
                        {"DESC \"a \"\"b\"", Command::describe, "a \"b", nullptr},
                        {"describe select 1", Command::describe, "", "select 1"},
                        {"describe 'a''b.csv'", Command::describe, "a'b.csv", nullptr},
                        {"summarize 'x.csv'", Command::summarize, "x.csv", nullptr},
                        {"summarize t", Command::summarize, "t", nullptr},
                        {"explain select 1", Command::explain, "", "select 1"},
                        {"explain ANALYZE  select 1", Command::explain_analyze, "", "select 1"},
                        {"prepare p as select $1", Command::prepare, "p", "select $1"},
                        {"deallocate prepare p", Command::deallocate, "p", nullptr}};
  for (const Case& c : cases) {
    auto command = read(c.text);
    ASSERT_TRUE(command) << c.text;
    EXPECT_EQ(command->kind, c.kind) << c.text;
    EXPECT_EQ(command->name, c.name) << c.text;
    if (c.rest) {
      EXPECT_EQ(std::string(c.text).substr(command->rest), c.rest);
    }
  }
  auto copy = read("copy (select f(x), 1 from t) to 'a''b.csv' (header false, delimiter ';')");
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->kind, Command::copy);
  EXPECT_EQ(std::string_view(sources_.text({FileId{}, copy->rest, copy->rest_end})),
            "select f(x), 1 from t");
  EXPECT_EQ(copy->path, "a'b.csv");
  EXPECT_EQ(copy->options, "header false, delimiter ';'");
  EXPECT_EQ(read("COPY t TO 'x.parquet'")->name, "t");
  auto create = read("create or replace temp table t as select 1");
  ASSERT_TRUE(create);
  EXPECT_TRUE(create->kind == Command::create_table && create->name == "t" && create->replace);
  EXPECT_FALSE(read("create table t as select 1")->replace);
  EXPECT_EQ(read("drop table t")->kind, Command::drop_table);
  auto execute = read("execute p(1, 'a, (b', f(2, 3), date '2000-01-01')");
  ASSERT_TRUE(execute);
  EXPECT_THAT(execute->values, ElementsAre("1", "'a, (b'", "f(2, 3)", "date '2000-01-01'"));
  EXPECT_TRUE(read("execute p")->values.empty());
  EXPECT_TRUE(read("execute p()")->values.empty());
}

TEST_F(Commands, ThatAreIncompleteAreSaidAtTheirPlace) {
  EXPECT_EQ(said("show t"), "q.sql:1:6: error: expected TABLES here\n  show t\n       ^\n");
  EXPECT_EQ(said("describe t t"),
            "q.sql:1:12: error: expected the end of the statement here\n  describe t t\n           "
            "  ^\n");
  EXPECT_THAT(said("summarize"), testing::HasSubstr("expected a table or a file in quotes here"));
  EXPECT_THAT(said("prepare p select 1"), testing::HasSubstr("expected AS here"));
  EXPECT_THAT(said("execute p(1,)"), testing::HasSubstr("expected a value here"));
  EXPECT_THAT(said("execute p(1"), testing::HasSubstr("expected `)` here"));
  EXPECT_THAT(said("explain"), testing::HasSubstr("expected a query here"));
}

TEST_F(Commands, ParametersTakeTheirValues) {
  auto with = [](const std::string& text, std::vector<std::string> values) {
    auto out = with_values(text, values);
    return out ? *out : "error: " + out.error().message;
  };
  EXPECT_EQ(with("a = ? and b = ?", {"1", "'x'"}), "a = (1) and b = ('x')");
  EXPECT_EQ(with("a = $2 and b = $1 or $2", {"1", "2"}), "a = (2) and b = (1) or (2)");
  EXPECT_EQ(with("'?' = \"$1\" -- ?\n or $$?$$ = ?", {"7"}), "'?' = \"$1\" -- ?\n or $$?$$ = (7)");
  EXPECT_EQ(with("a = ?", {}), "error: the statement has 1 parameter, and 0 values are given");
  EXPECT_EQ(with("a", {"1"}), "error: the statement has 0 parameters, and 1 value is given");
  EXPECT_EQ(with("$0", {}), "error: parameters count from $1");
  EXPECT_EQ(count_parameters("select $1, $3"), 3u);
  EXPECT_EQ(count_parameters("?"), 1u);
  EXPECT_EQ(count_parameters("select '?', $a$?$a$ -- ?"), 0u);
}

TEST_F(Commands, InsertsOfParametersAlone) {
  EXPECT_EQ(insert_of_parameters("insert into t values (?, ?)"), "insert into t ");
  EXPECT_EQ(insert_of_parameters("INSERT INTO \"a b\" (x, y) VALUES ($1, $2)"),
            "INSERT INTO \"a b\" (x, y) ");
  for (const char* other :
       {"insert into t values (?, 1)", "insert into t values ($2, $1)", "insert into t select ?",
        "insert into t values (?), (?)", "select ?", "insert into t values (? + ?)"})
    EXPECT_EQ(insert_of_parameters(other), "") << other;
}

TEST_F(Commands, ValuesFromOutsideAreQuoted) {
  for (const char* number : {"0", "-12", "3.25", "1e9", "-1.5E-3"})
    EXPECT_EQ(quote_value(number), number);
  EXPECT_EQ(quote_value("O'Brien"), "'O''Brien'");
  for (const char* text : {"", "-", "1.", "1e", "1 or 1", "2000-01-01", ".5", "1;", "nan"})
    EXPECT_EQ(quote_value(text), std::string("'") + text + "'");
}

TEST_F(Commands, LinesThatBeginSqlAreTold) {
  for (const char* text : {"select", "WITH x as", "(select 1)", "-- c\nfrom t", "values (1)"})
    EXPECT_TRUE(begins_sql(text)) << text;
  for (const char* text : {"", "module m {", "def main", "help", "selects", "p.hir", "-- c"})
    EXPECT_FALSE(begins_sql(text)) << text;
}

// What `rndn help sql` lists are statements that are read: the first of its alternatives, without
// what may be left out.
TEST_F(Commands, AreListed) {
  std::set<Command::Kind> kinds;
  for (const StatementForm& listed : statement_forms()) {
    EXPECT_FALSE(listed.answer.empty()) << listed.form;
    std::string form;
    int depth = 0;
    for (const char c : listed.form) {
      depth += c == '[';
      if (depth == 0) form += c;
      depth -= c == ']';
    }
    while (form.find("  ") != form.npos) form.erase(form.find("  "), 1);
    for (const auto& [words, one] : {std::pair("SELECT .., WITH .., VALUES .., FROM ..", "SELECT 1"),
                                     {"table, 'file' or query", "t"},
                                     {"table or 'file'", "'t.csv'"},
                                     {"table or (query) TO 'file' (options)", "t TO 'f.csv' (header)"},
                                     {"AS query", "AS SELECT 1"},
                                     {"t query", "t SELECT 1"},
                                     {"EXPLAIN query", "EXPLAIN SELECT 1"},
                                     {"ANALYZE query", "ANALYZE SELECT 1"},
                                     {"TABLE, VIEW or TYPE", "TYPE"},
                                     {"'a', ..", "'a', 'b'"},
                                     {"(value, ..)", "(1, 2)"}})
      if (const size_t at = form.find(words); at != form.npos)
        form.replace(at, std::string_view(words).size(), one);
    auto command = read(form);
    ASSERT_TRUE(command) << form << "\n" << render(sink_, sources_);
    kinds.insert(command->kind);
  }
  EXPECT_EQ(kinds.size(), 15u) << "every kind but DROP of tables and views, whose line has all three";
}

}  // namespace
}  // namespace rndn::planner
