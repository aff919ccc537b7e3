// Which joins become look-ups of kernels, and what is left as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/outliner/compile.h"

namespace rndn::outliner::joins_test {
namespace {

using test::program_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* load = R"(
    d:? = @load_table(`d:sym);
    f:? = @load_table(`f:sym);
    dk:i64 = check_cast(@column_value(d, `k:sym), i64);
    dl:i32 = check_cast(@column_value(d, `l:sym), i32);
    dt:sym = check_cast(@column_value(d, `t:sym), sym);
    dx:f64 = check_cast(@column_value(d, `x:sym), f64);
    fk:i64 = check_cast(@column_value(f, `k:sym), i64);
    fl:i64 = check_cast(@column_value(f, `l:sym), i64);
    ft:str = check_cast(@column_value(f, `t:sym), str);
    fx:f64 = check_cast(@column_value(f, `x:sym), f64);
)";

void outline(test::Compiled& c, const std::string& body, Options options = {}) {
  test::compile(c, program_text(load + body, "list<?>"), options);
  ASSERT_EQ(c.errors, "");
  // It is a program like any other.
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  (void)hir::run(sources.add("again.hir", print(c.outlined.program, true)), sources, {}, sink, timings);
  EXPECT_TRUE(sink.diagnostics().empty()) << render(sink, sources);
}

constexpr const char* pairs = "l:? = @index(p, 0:i64); r:? = @index(p, 1:i64); a:? = @index(dx, l); b:? = @index(fx, r);";

TEST(Joins, OfUniqueKeysAreOneKernelWithWhatIsMadeOfTheirRows) {
  test::Compiled c;
  outline(c, fmt::format("p:? = @join_index(@eq, dk, fk); {} x:? = @mul(a, b); s:? = @sum(x); q:? = @list(s); return q;", pairs));
  EXPECT_THAT(c.outlined.joins, ElementsAre(0));
  ASSERT_EQ(c.outlined.kernels.size(), 1u) << c.main();
  EXPECT_THAT(c.kernel(0), HasSubstr("row_1:i64 = @GPU.probe(0:i64, dk, fk);"));
  EXPECT_THAT(c.kernel(0), HasSubstr("hit_2:bool = @geq(row_1, 0:i64);"));
  EXPECT_THAT(c.kernel(0), HasSubstr("l:i64 = @compress(hit_2, row_1);"));
  EXPECT_THAT(c.kernel(0), HasSubstr("b:f64 = @compress(hit_2, fx);"));
  EXPECT_THAT(c.kernel(0), Not(HasSubstr("@where")));
}

// What is taken once more at some of the right rows is taken of what was picked, so that groups of a selection's pairs fold.
TEST(Joins, PicksAtSomeOfTheRightRows) {
  test::Compiled c;
  Options options;
  options.sinks = true;
  outline(c, R"(
    m:? = @gt(fx, 1.5:f64);
    k:? = @compress(m, fk);
    v:? = @compress(m, fl);
    p:? = @join_index(@eq, dk, k);
    r:? = @index(p, 1:i64);
    b:? = @index(v, r);
    g:? = @group(b);
    first:? = @keys(g);
    rows:? = @values(g);
    some:? = @index(r, first);
    again:? = @index(v, some);
    e:? = @each(@len, rows);
    n:? = @raze(e);
    z:? = @list(again, n);
    return z;)", options);
  EXPECT_THAT(c.outlined.joins, ElementsAre(0));
  EXPECT_THAT(c.outlined.folds, ElementsAre(0));
  EXPECT_THAT(c.main(), Not(HasSubstr("@group")));
}

// How many pairs there are, of rows that were selected before: no positions, and so one kernel with what is picked.
TEST(Joins, NumbersOfPairsNeedNoPositions) {
  test::Compiled c;
  outline(c, R"(
    m:? = @gt(fx, 1.5:f64);
    k:? = @compress(m, fk);
    v:? = @compress(m, fl);
    p:? = @join_index(@eq, dk, k);
    r:? = @index(p, 1:i64);
    b:? = @index(v, r);
    s:? = @sum(b);
    n:? = @len(r);
    z:? = @list(s, n);
    return z;)");
  EXPECT_THAT(c.outlined.joins, ElementsAre(0));
  ASSERT_EQ(c.outlined.kernels.size(), 1u) << c.main();
  EXPECT_THAT(c.kernel(0), Not(HasSubstr("@where")));
  EXPECT_THAT(c.kernel(0), HasSubstr("@len(kept_"));
}

// A pick that is converted is not what another reads at some of the rows.
TEST(Joins, PicksThatAreConvertedAreNotReadInstead) {
  for (const char* pick : {"@index(v, r)", "check_cast(@index(v, r), f64)"}) {
    const bool converts = std::string_view(pick).starts_with("check_cast");
    test::Compiled c;
    Options options;
    options.sinks = true;
    outline(c, fmt::format(R"(
      m:? = @gt(fx, 1.5:f64);
      k:? = @compress(m, fk);
      v:? = @compress(m, fl);
      p:? = @join_index(@eq, dk, k);
      r:? = @index(p, 1:i64);
      b:{} = {};
      t:? = @order(b, 1:bool);
      some:? = @index(r, t);
      again:? = @index(v, some);
      z:? = @list(again);
      return z;)", converts ? "f64" : "i64", pick), options);
    EXPECT_EQ(print(c.outlined.program, true).find("@index(b, t)") != std::string::npos, !converts);
  }
}

TEST(Joins, OneAfterTheOtherAndOfSeveralColumns) {
  test::Compiled c;
  outline(c, R"(
    x:? = @list(dl, dt);
    y:? = @list(fl, ft);
    p:? = @join_index(@eq, @eq, x, y);
    l:? = @index(p, 0:i64);
    r:? = @index(p, 1:i64);
    k:? = @index(fk, r);
    p2:? = @join_index(@eq, dk, k);
    r2:? = @index(p2, 1:i64);
    v:? = @index(fx, r);
    w:? = @index(v, r2);
    s:? = @sum(w);
    q:? = @list(s);
    return q;)");
  EXPECT_THAT(c.outlined.joins, ElementsAre(0, 1));
  ASSERT_EQ(c.outlined.kernels.size(), 1u) << c.main();
  EXPECT_THAT(c.kernel(0), HasSubstr("@GPU.probe(0:i64, dl, dt, fl, ft);"));
  EXPECT_THAT(c.kernel(0), HasSubstr("@GPU.probe(1:i64, dk, fk);"));  // of all rows (selections.cpp)
  test::Compiled many;
  outline(many, fmt::format("x:? = @list(dk, dl, dt, dk, dl, dt); y:? = @list(fk, fl, ft, fk, fl, ft); p:? = @join_index(@eq, x, y);"
                            " {} q:? = @list(a, b); return q;", pairs));
  EXPECT_THAT(print(many.outlined.program, true), HasSubstr("@GPU.probe(0:i64, dk, dl, dt, dk, dl, dt, fk, fl, ft, fk, fl, ft);"));
}

// Lists of the columns that are joined are gone with the join, and with them what selected those columns.
TEST(Joins, StoreNoColumnsForTheirListsAlone) {
  test::Compiled c;
  const auto program = [](std::string_view read) {
    return fmt::format(R"(
    m:? = @gt(fx, 1.5:f64);
    ml:? = @compress(m, fl);
    mt:? = @compress(m, ft);
    mx:? = @compress(m, fx);
    x:? = @list(dl, dt);
    y:? = @list(ml, mt);
    p:? = @join_index(@eq, @eq, x, y);
    r:? = @index(p, 1:i64);
    l:? = @index(p, 0:i64);
    b:? = @index(mx, r);
    s:? = @sum(b);
    q:? = @list(s);
    {}
    return q;)", read);
  };
  outline(c, program(""));
  EXPECT_THAT(c.outlined.joins, ElementsAre(0));
  ASSERT_EQ(c.outlined.kernels.size(), 1u) << c.main();
  EXPECT_THAT(c.main(), Not(HasSubstr("@list(dl, dt)")));
  EXPECT_THAT(c.main(), Not(HasSubstr("ml")));
  EXPECT_THAT(c.kernel(0), Not(HasSubstr("@compress(m, fl)")));
  // One that something else reads stays.
  test::Compiled read;
  outline(read, program("t:? = @index(y, 0:i64); u:? = @sum(t); q:? = @list(s, u);"));
  EXPECT_THAT(read.outlined.joins, ElementsAre(0));
  EXPECT_THAT(read.main(), HasSubstr("@list(ml, mt)"));
  EXPECT_THAT(read.main(), Not(HasSubstr("@list(dl, dt)")));
}

// A chain asks all its tables for all rows, and gathers only for those that are left.
TEST(Joins, OneAfterTheOtherAskForAllRows) {
  test::Compiled c;
  outline(c, R"(
    m:? = @gt(dx, 1.5:f64);
    p:? = @join_index(@eq, dk, fk);
    l:? = @index(p, 0:i64);
    r:? = @index(p, 1:i64);
    a:? = @index(dx, l);
    k:? = @index(fl, r);
    dm:? = @compress(m, dl);
    q2:? = @join_index(@eq, dm, k);
    r2:? = @index(q2, 1:i64);
    a2:? = @index(a, r2);
    f2:? = @index(r, r2);
    v:? = @index(fx, f2);
    w:? = @mul(a2, v);
    s:? = @sum(w);
    q:? = @list(s);
    return q;)");
  EXPECT_THAT(c.outlined.joins, ElementsAre(0, 1));
  ASSERT_FALSE(c.outlined.kernels.empty());
  const std::string kernel = c.kernel(c.outlined.kernels.size() - 1);
  EXPECT_THAT(kernel, HasSubstr("row_1:i64 = @GPU.probe(0:i64, dk, fk);"));
  EXPECT_THAT(kernel, HasSubstr("all_1:i64 = @GPU.probe(1:i64, dl, m, fl);"));
  EXPECT_THAT(kernel, HasSubstr("both_3:bool = @and(hit_2, all_2);"));
  EXPECT_THAT(kernel, HasSubstr("left_4:i64 = @compress(both_3, row_1);"));
  EXPECT_THAT(kernel, HasSubstr("a2:f64 = @index(dx, left_4);"));
  EXPECT_THAT(kernel, HasSubstr("v:f64 = @compress(both_3, fx);"));
  EXPECT_THAT(kernel, Not(HasSubstr("@where")));
}

// Not where a mask selects something that can fail for other rows, nor where the table is made of what was selected.
TEST(Joins, SelectionsThatMustComeFirstStay) {
  test::Compiled fails;
  outline(fails, R"(
    m:? = @gt(fx, 1.5:f64);
    k:? = @compress(m, fk);
    g:? = @compress(m, fl);
    o:? = @mod(g, k);
    p:? = @join_index(@eq, dk, k);
    r:? = @index(p, 1:i64);
    v:? = @index(o, r);
    n:? = @compress(m, fx);
    w:? = @index(n, r);
    s:? = @sum(v);
    t:? = @sum(w);
    q:? = @list(s, t);
    return q;)");
  EXPECT_THAT(print(fails.outlined.program, true), Not(HasSubstr("both_")));
  EXPECT_THAT(print(fails.outlined.program, true), HasSubstr("@GPU.probe(0:i64, dk, k);"));
  // Nor where a position that no pair has may be out of range.
  test::Compiled checks;
  outline(checks, R"(
    m:? = @gt(fx, 1.5:f64);
    k:? = @compress(m, fk);
    a:? = @compress(m, fl);
    u:? = @index(dx, a);
    p:? = @join_index(@eq, dk, k);
    r:? = @index(p, 1:i64);
    w:? = @index(u, r);
    s:? = @sum(w);
    q:? = @list(s);
    return q;)");
  EXPECT_THAT(print(checks.outlined.program, true), Not(HasSubstr("both_")));
  EXPECT_THAT(print(checks.outlined.program, true), HasSubstr("u:f64 = @index(dx, a);"));
  test::Compiled waits;
  outline(waits, R"(
    m:? = @gt(fx, 1.5:f64);
    k:? = @compress(m, fk);
    u:? = @unique(k);
    j:? = @index(k, u);
    p:? = @join_index(@eq, j, k);
    r:? = @index(p, 1:i64);
    n:? = @compress(m, fx);
    w:? = @index(n, r);
    t:? = @sum(w);
    q:? = @list(t);
    return q;)");
  EXPECT_THAT(print(waits.outlined.program, true), HasSubstr("@GPU.probe(0:i64, j, k);"));
}

TEST(Joins, WhoseKeysRepeatStay) {
  test::Compiled c;
  Options options;
  options.not_unique = {0};
  outline(c, fmt::format("p:? = @join_index(@eq, dk, fk); {} q:? = @list(a, b); return q;", pairs), options);
  EXPECT_THAT(c.outlined.joins, IsEmpty());
  EXPECT_THAT(c.main(), HasSubstr("@join_index(@eq, dk, fk)"));
}

// Some rows of a table: the look-up is among all of its rows, with a mask, and nothing is picked out of the table.
TEST(Joins, OfSomeRowsOfATableAreAmongAllOfThem) {
  constexpr const char* some = R"(
    m:? = @gt(dx, 1.5:f64);
    k:? = @compress(m, dk);
    n:? = @compress(m, dl);
    p:? = @join_index(@eq, k, fk);
    l:? = @index(p, 0:i64);
    r:? = @index(p, 1:i64);
    a:? = @index(n, l);
    b:? = @index(fx, r);
    i:? = @lt(b, 9:f64);
    l2:? = @compress(i, l);
    c:? = @index(n, l2);
    {}
    z:? = @list(a, b, c{});
    return z;)";
  test::Compiled c;
  outline(c, fmt::format(fmt::runtime(some), "", ""));
  EXPECT_THAT(c.outlined.joins, ElementsAre(0));
  EXPECT_THAT(c.outlined.whole_joins, ElementsAre(0));
  const std::string text = print(c.outlined.program, true);
  EXPECT_THAT(text, HasSubstr("@GPU.probe(0:i64, dk, m, fk);"));
  EXPECT_THAT(text, HasSubstr("a:i32 = @index(dl, l);"));
  EXPECT_THAT(text, HasSubstr("c:i32 = @index(dl, l2);"));
  EXPECT_THAT(text, Not(HasSubstr("@compress(m,")));
  // Not where the keys are known to repeat, the rows count otherwise, or another mask has selected what they are places in.
  Options options;
  options.not_whole = {0};
  const std::string among_some = "@GPU.probe(0:i64, k, fk);";
  test::Compiled asked, counted, other, texts;
  outline(asked, fmt::format(fmt::runtime(some), "", ""), options);
  EXPECT_THAT(print(asked.outlined.program, true), HasSubstr(among_some));
  outline(counted, fmt::format(fmt::runtime(some), "", ", l"));
  EXPECT_THAT(print(counted.outlined.program, true), HasSubstr(among_some));
  outline(other, fmt::format(fmt::runtime(some), "m2:? = @gt(dx, 2.5:f64); o:? = @compress(m2, dl); e:? = @index(o, l);", ", e"));
  EXPECT_THAT(print(other.outlined.program, true), HasSubstr(among_some));
  outline(texts, "m:? = @gt(dx, 1.5:f64); k:? = @compress(m, dt); p:? = @join_index(@eq, k, ft); r:? = @index(p, 1:i64);"
                 "b:? = @index(fx, r); z:? = @list(b); return z;");
  EXPECT_THAT(print(texts.outlined.program, true), HasSubstr("k, ft);"));
  for (const test::Compiled* joined : {&asked, &counted, &other, &texts}) EXPECT_THAT(joined->outlined.whole_joins, IsEmpty());
}

TEST(Joins, MembershipAndPlacesNeedNoUniqueKeys) {
  test::Compiled c;
  outline(c, "m:? = @member(ft, dt); n:? = @not(m); v:? = @compress(n, fx); s:? = @sum(v); i:? = @index_of(fk, dk);"
             "t:? = @sum(i); q:? = @list(s, t); return q;");
  EXPECT_THAT(c.outlined.joins, IsEmpty());
  ASSERT_EQ(c.outlined.kernels.size(), 1u) << c.main();
  EXPECT_THAT(c.kernel(0), HasSubstr("@GPU.probe(-1:i64, dt, ft);"));
  EXPECT_THAT(c.kernel(0), HasSubstr("i:i64 = @select("));
}

// Which rows find any, put into a vector: how often a row is found does not matter.
TEST(Joins, ThatOnlyMarkRowsNeedNoUniqueKeys) {
  test::Compiled c;
  outline(c, R"(
    x:? = @list(dl, dt);
    y:? = @list(fl, ft);
    p:? = @join_index(@eq, @eq, x, y);
    r:? = @index(p, 1:i64);
    n:? = @len(fk);
    none:? = @vector(n, 0:bool);
    met:? = @index_a(none, r, 1:bool);
    q:? = @list(met);
    return q;)");
  EXPECT_THAT(c.outlined.joins, ElementsAre(0));
  EXPECT_THAT(print(c.outlined.program, true), HasSubstr("@GPU.probe(-2:i64, dl, dt, fl, ft);"));
}

TEST(Joins, OfOtherKindsStay) {
  for (const char* body : {
           "p:? = @join_index(@lt, dk, fk);",                                                   // no equality
           "p:? = @join_index(@eq, dx, fx);",                                                   // no integers
           "p:? = @join_index(@eq, 5:i64, fk);",                                                // a literal
           "m:? = @sum(dk); p:? = @join_index(@eq, m, fk);",                                    // a single row
           "x:? = @list(dk, dk, dk, dk, dk, dk, dk); y:? = @list(fk, fk, fk, fk, fk, fk, fk); p:? = @join_index(@eq, x, y);",
       }) {
    SCOPED_TRACE(body);
    test::Compiled c;
    outline(c, fmt::format("{} {} q:? = @list(a, b); return q;", body, pairs));
    EXPECT_THAT(c.outlined.joins, IsEmpty());
    EXPECT_THAT(c.main(), HasSubstr("@join_index("));
  }
  // The pairs themselves are asked for.
  test::Compiled c;
  outline(c, fmt::format("p:? = @join_index(@eq, dk, fk); {} n:? = @len(p); q:? = @list(a, b, n); return q;", pairs));
  EXPECT_THAT(c.main(), HasSubstr("@join_index("));
  // Long sets in the program, and texts that are no codes.
  for (const bool text_codes : {false, true}) {
    test::Compiled of_text;
    Options options;
    options.text_codes = text_codes;
    outline(of_text, "m:? = @member(fk, (1, 2, 3, 4, 5, 6, 7, 8, 9):i64); n:? = @member(ft, dt); q:? = @list(m, n); return q;", options);
    EXPECT_THAT(of_text.main(), HasSubstr("@member(fk"));
    EXPECT_EQ(of_text.main().find("@member(ft") == std::string::npos, text_codes);
  }
}

// A short set in the program is a comparison with each of its values.
TEST(Joins, FewAlternativesAreCompared) {
  test::Compiled c;
  outline(c, "m:? = @member(fk, (3, 5, 8):i64); o:? = @member(ft, \"a\":str); n:? = @and(m, o); s:? = @sum(n); q:? = @list(s); return q;");
  ASSERT_EQ(c.outlined.kernels.size(), 1u) << c.main();
  const std::string kernel = c.kernel(0);
  for (const char* part : {"@eq(fk, 3:i64)", "@eq(fk, 5:i64)", "@eq(fk, 8:i64)", "@eq(ft, literal_1)"})
    EXPECT_THAT(kernel, HasSubstr(part));
  EXPECT_THAT(c.main(), HasSubstr("literal_1:str = \"a\":str;"));
  EXPECT_EQ(print(c.outlined.program, true).find("@member("), std::string::npos);
}

}  // namespace
}  // namespace rndn::outliner::joins_test
