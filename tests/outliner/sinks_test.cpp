// Which groups become reductions of the kernel that makes their keys, and what is left as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/outliner/compile.h"

namespace rndn::outliner::sinks_test {
namespace {

using test::program_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* load = R"(
    f:? = @load_table(`f:sym);
    d:? = @load_table(`d:sym);
    k:i32 = check_cast(@column_value(f, `k:sym), i32);
    l:date = check_cast(@column_value(f, `l:sym), date);
    t:sym = check_cast(@column_value(f, `t:sym), sym);
    v:i64 = check_cast(@column_value(f, `v:sym), i64);
    w:i32 = check_cast(@column_value(f, `w:sym), i32);
    x:f64 = check_cast(@column_value(f, `x:sym), f64);
    half:f32 = check_cast(@column_value(f, `half:sym), f32);
    r:i64 = check_cast(@column_value(f, `r:sym), i64);
    y:i32 = check_cast(@column_value(d, `y:sym), i32);
)";

void outline(test::Compiled& c, const std::string& body, Options options = {}) {
  options.sinks = true;
  test::compile(c, program_text(load + body, "list<?>"), options);
  ASSERT_EQ(c.errors, "");
  // It is a program like any other.
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  (void)hir::run(sources.add("again.hir", print(c.outlined.program, true)), sources, {}, sink, timings);
  EXPECT_TRUE(sink.diagnostics().empty()) << render(sink, sources);
}

constexpr const char* selected_sums = R"(
    m:? = @gt(w, 3:i32);
    a:? = @compress(m, k);
    b:? = @compress(m, r);
    c:? = @index(y, b);
    ks:? = @list(a, c);
    g:? = @group(ks);
    first:? = @keys(g);
    rows:? = @values(g);
    n:? = @compress(m, v);
    e:? = @each_right(@index, n, rows);
    e2:? = @each(@sum, e);
    s:? = @raze(e2);
)";

// The filter, the gather and the reductions are one kernel; the keys are taken from columns, at rows of these.
TEST(Sinks, GroupsOfASelectionArePartOfItsKernel) {
  test::Compiled c;
  outline(c, std::string(selected_sums) +
                 "p:? = @index(a, first); q:? = @index(c, first); z:? = @list(p, q, s); return z;");
  EXPECT_THAT(c.outlined.folds, ElementsAre(0));
  ASSERT_EQ(c.outlined.kernels.size(), 2u) << c.main();
  EXPECT_THAT(c.main(), Not(HasSubstr("@group")));
  EXPECT_THAT(c.kernel(0), HasSubstr("position_1:i64 = @where(m);"));
  EXPECT_THAT(c.kernel(0), HasSubstr("@GPU.fold(position_1, @min, 0:i64, a, c);"));
  EXPECT_THAT(c.kernel(0), HasSubstr("@GPU.fold(n, @sum, 0:i64, a, c);"));
  EXPECT_THAT(c.kernel(1), HasSubstr("first:i64 = @compress("));
  EXPECT_THAT(c.kernel(1), HasSubstr("= @index(k, first);"));
  EXPECT_THAT(c.kernel(1), HasSubstr("= @index(r, first);"));
}

// What is folded apart is stored by the kernel that selects it, in the types that the program gives it; the parts of floats are made where they are added.
TEST(Sinks, FoldsApartAreAKernelOfTheirOwn) {
  test::Compiled c;
  Options options;
  options.folds_apart = {0};
  outline(c,
          std::string(selected_sums) +
              "u:? = @compress(m, x); one:? = @plus(u, 1.0:f64); e3:? = @each_right(@index, one, rows);"
              "e4:? = @each(@sum, e3); s2:? = @raze(e4); p:? = @index(a, first); z:? = @list(p, s, s2); return z;",
          options);
  EXPECT_THAT(c.outlined.folds, ElementsAre(0));
  ASSERT_EQ(c.outlined.kernels.size(), 3u) << c.main();
  EXPECT_THAT(c.kernel(0), Not(HasSubstr("@GPU.")));
  EXPECT_THAT(c.kernel(0), HasSubstr("@plus("));
  EXPECT_THAT(c.kernel(1), HasSubstr("@GPU.fold(n, @sum, 0:i64, a, c);"));
  EXPECT_THAT(c.kernel(1), HasSubstr("@GPU.sum_part(one, 3:i64);"));
  EXPECT_THAT(c.kernel(1), Not(HasSubstr("@compress")));
  EXPECT_THAT(c.kernel(2), HasSubstr("@GPU.sum_of_parts("));
}

TEST(Sinks, GroupsThatAreTakenOutStay) {
  test::Compiled c;
  Options options;
  options.not_folded = {0};
  outline(c, std::string(selected_sums) + "z:? = @list(s); return z;", options);
  EXPECT_THAT(c.outlined.folds, IsEmpty());
  EXPECT_THAT(c.main(), HasSubstr("@group(ks)"));
}

// Who reads the first rows of a selection as numbers would see others.
TEST(Sinks, RowsOfASelectionThatAreReadAsNumbersStay) {
  test::Compiled c;
  outline(c, std::string(selected_sums) + "z:? = @list(first, s); return z;");
  EXPECT_THAT(c.outlined.folds, IsEmpty());
}

TEST(Sinks, RowsOfColumnsMayBeReadAsNumbers) {
  test::Compiled c;
  outline(c,
          "g:? = @group(k); first:? = @keys(g); rows:? = @values(g); e:? = @each(@len, rows); n:? = @raze(e);"
          "z:? = @list(first, n); return z;");
  EXPECT_THAT(c.outlined.folds, ElementsAre(0));
  EXPECT_THAT(c.kernel(0), HasSubstr("@range("));
  EXPECT_THAT(c.kernel(0), HasSubstr("@GPU.fold(k, @len, 0:i64, k);"));
}

// Texts of the cells of a group are a column's: what is grouped within each cell is folded.
TEST(Sinks, TextsOfCellsAreOfColumns) {
  test::Compiled c;
  outline(c,
          "g:? = @group(k); rows:? = @values(g); cells:? = @each_right(@index, t, rows); flat:? = @raze(cells);"
          "n:? = @each(@len, rows); lengths:? = @raze(n); cell:? = @GPU.cell_numbers(lengths, flat);"
          "ks:? = @list(cell, flat); h:? = @group(ks); inner:? = @values(h); e:? = @each(@len, inner);"
          "s:? = @raze(e); z:? = @list(s); return z;");
  EXPECT_THAT(c.outlined.folds, ElementsAre(1));
}

// They wrap, as the program says.
TEST(Sinks, SumsAreOfTheTypeOfTheirValues) {
  test::Compiled c;
  outline(c,
          "g:? = @group(k); rows:? = @values(g); e:? = @each_right(@index, w, rows); e2:? = @each(@sum, e);"
          "s:? = @raze(e2); z:? = @list(s); return z;");
  EXPECT_THAT(c.outlined.folds, ElementsAre(0));
  EXPECT_THAT(c.kernel(0), HasSubstr(":i32 = @GPU.fold(w, @sum, 0:i64, k);"));
  EXPECT_THAT(c.kernel(1), HasSubstr("s:i32 = @compress("));
}

// Sums of f64 are sums of four integers, unless floats need more bits than these have.
TEST(Sinks, SumsOfFloatsAreSumsOfTheirParts) {
  const std::string body = std::string("g:? = @group(k); rows:? = @values(g); e:? = @each_right(@index, x, rows);") +
                           "e2:? = @each(@sum, e); s:? = @raze(e2); z:? = @list(s); return z;";
  test::Compiled c;
  outline(c, body);
  EXPECT_THAT(c.outlined.folds, ElementsAre(0));
  EXPECT_THAT(c.outlined.float_folds, ElementsAre(0));
  ASSERT_EQ(c.outlined.kernels.size(), 2u) << c.main();
  for (const char* part : {"part_5:i64 = @GPU.sum_part(x, 0:i64)", "part_7:i64 = @GPU.sum_part(x, 1:i64)",
                           "part_9:i64 = @GPU.sum_part(x, 2:i64)", "part_11:i64 = @GPU.sum_part(x, 3:i64)", "@GPU.fold(part_5, @sum, 0:i64, k)"})
    EXPECT_THAT(c.kernel(0), HasSubstr(part));
  EXPECT_THAT(c.kernel(1), HasSubstr(":f64 = @GPU.sum_of_parts(fold_6, fold_8, fold_10, fold_12)"));
  for (const bool exact : {false, true}) {
    Options options;
    options.exact_sums = exact;
    if (!exact) options.not_folded = {0};
    test::Compiled stays;
    outline(stays, body, options);
    EXPECT_THAT(stays.outlined.folds, IsEmpty());
    EXPECT_THAT(stays.outlined.float_folds, IsEmpty());
  }
}

// Extremes of floats are those of integers in their order, whatever sums of floats are.
TEST(Sinks, ExtremesOfFloatsAreThoseOfKeys) {
  for (const bool exact : {false, true}) {
    test::Compiled c;
    Options options;
    options.exact_sums = exact;
    outline(c,
            "g:? = @group(k); rows:? = @values(g); e:? = @each_right(@index, x, rows); e2:? = @each(@min, e); s:? = @raze(e2);"
            "h:? = @each_right(@index, half, rows); h2:? = @each(@max, h); m:? = @raze(h2); z:? = @list(s, m); return z;",
            options);
    EXPECT_THAT(c.outlined.folds, ElementsAre(0));
    EXPECT_THAT(c.outlined.float_folds, IsEmpty());
    ASSERT_EQ(c.outlined.kernels.size(), 2u) << c.main();
    for (const char* part : {"key_5:i64 = @GPU.order_key(x, 1:i64)", "fold_6:i64 = @GPU.fold(key_5, @min, 0:i64, k)",
                             "key_8:i32 = @GPU.order_key(half, 0:i64)", "fold_9:i32 = @GPU.fold(key_8, @max, 0:i64, k)"})
      EXPECT_THAT(c.kernel(0), HasSubstr(part));
    EXPECT_THAT(c.kernel(1), HasSubstr(":f64 = @GPU.of_order_key(fold_6)"));
    EXPECT_THAT(c.kernel(1), HasSubstr(":f32 = @GPU.of_order_key(fold_9)"));
  }
}

// A sink has at most 24 folds, of which a sum of floats is four, beside the first row.
TEST(Sinks, HaveSoManyFolds) {
  const auto outlined = [](size_t sums, size_t extremes) {
    std::string body = "g:? = @group(k); rows:? = @values(g);", all;
    for (size_t i = 0; i < sums + extremes; ++i) {
      body += fmt::format("u{0}:? = @plus({1}, {0}:{2}); e{0}:? = @each_right(@index, u{0}, rows); t{0}:? = @each(@{3}, e{0}); s{0}:? = @raze(t{0});", i,
                          i < sums ? "x" : "v", i < sums ? "f64" : "i64", i < sums ? "sum" : "max");
      all += fmt::format("{}s{}", i ? ", " : "", i);
    }
    test::Compiled c;
    outline(c, body + "z:? = @list(" + all + "); return z;");
    size_t folds = 0;
    if (!c.outlined.folds.empty())
      for (size_t at = c.kernel(0).find("@GPU.fold("); at != std::string::npos; at = c.kernel(0).find("@GPU.fold(", at + 1)) ++folds;
    return folds;
  };
  EXPECT_EQ(outlined(6, 0), 25u);
  EXPECT_EQ(outlined(6, 1), 0u);
  EXPECT_EQ(outlined(5, 4), 25u);
  EXPECT_EQ(outlined(5, 5), 0u);
  EXPECT_EQ(outlined(0, 24), 25u);
  EXPECT_EQ(outlined(0, 25), 0u);
}

// Averages of f64 are these sums by the number of rows, which all averages of a group have in common.
TEST(Sinks, AveragesOfFloatsAreSumsByTheNumberOfRows) {
  test::Compiled c;
  outline(c,
          "u:? = @mul(x, x); g:? = @group(k); rows:? = @values(g); e:? = @each_right(@index, x, rows); e2:? = @each(@avg, e);"
          "s:? = @raze(e2); h:? = @each_right(@index, u, rows); h2:? = @each(@avg, h); m:? = @raze(h2); z:? = @list(s, m); return z;");
  EXPECT_THAT(c.outlined.folds, ElementsAre(0));
  EXPECT_THAT(c.outlined.float_folds, ElementsAre(0));
  ASSERT_EQ(c.outlined.kernels.size(), 2u) << c.main();
  const std::string kernel = c.kernel(0), count = "@GPU.fold(k, @len, 0:i64, k)";
  ASSERT_THAT(kernel, HasSubstr(count));
  EXPECT_EQ(kernel.find(count, kernel.find(count) + 1), std::string::npos);
  EXPECT_THAT(c.kernel(1), HasSubstr(":f64 = @div(sum_"));
}

// A sum and an average of one column have their parts in common, whatever variables hold it, and averages their count with the number of
// rows: as many as HorseIR's Q1 has are one sink.
TEST(Sinks, ReductionsInCommonAreFoldedOnce) {
  test::Compiled c;
  std::string body = "u0:? = @mul(x, 2.0:f64); u1:? = @mul(x, 4.0:f64); u2:? = @mul(x, 8.0:f64); same:? = u2; g:? = @group(k); rows:? = @values(g);";
  std::string all;
  const auto reduce = [&](const char* f, const char* values) {
    const std::string s = fmt::format("s{}", all.size());
    body += fmt::format("e{0}:? = @each_right(@index, {1}, rows); t{0}:? = @each(@{2}, e{0}); {0}:? = @raze(t{0});", s, values, f);
    all += s + ", ";
  };
  for (const char* values : {"x", "u0", "u1", "u2"}) reduce("sum", values);
  for (const char* values : {"x", "u1", "same"}) reduce("avg", values);
  reduce("len", "u0");
  outline(c, body + "lens:? = @each(@len, rows); n:? = @raze(lens); z:? = @list(" + all + "n); return z;");
  EXPECT_THAT(c.outlined.folds, ElementsAre(0));
  ASSERT_EQ(c.outlined.kernels.size(), 2u) << c.main();
  const std::string kernel = c.kernel(0);
  const auto times = [&](std::string_view what) {
    size_t n = 0;
    for (size_t at = kernel.find(what); at != std::string::npos; at = kernel.find(what, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(times("@GPU.fold("), 4u * 4 + 2) << kernel;  // and the rows' number, and their first
  EXPECT_EQ(times("@GPU.sum_part("), 4u * 4) << kernel;
  EXPECT_EQ(times("@len, "), 1u) << kernel;
}

// Averages of integers, sums of f32, distinct values and lists of values are no folds; nor are keys of floats.
TEST(Sinks, OtherReductionsStay) {
  const auto group = [](const char* key, const char* values, const char* f) {
    return fmt::format(
        "g:? = @group({}); rows:? = @values(g); e:? = @each_right(@index, {}, rows); e2:? = @each(@{}, e);"
        "s:? = @raze(e2); z:? = @list(s); return z;",
        key, values, f);
  };
  const std::string bodies[] = {group("k", "half", "sum"), group("k", "v", "avg"), group("x", "v", "sum"),
                                "g:? = @group(k); rows:? = @values(g); e:? = @each_right(@index, v, rows);"
                                "z:? = @list(e); return z;"};
  for (const std::string& body : bodies) {
    test::Compiled c;
    outline(c, body);
    EXPECT_THAT(c.outlined.folds, IsEmpty()) << body;
    EXPECT_THAT(c.main(), HasSubstr("@group")) << body;
  }
  test::Compiled c;
  outline(c, group("t", "l", "max"));
  EXPECT_THAT(c.outlined.folds, ElementsAre(0));
}

// All folds of a group answer each other entry by entry: where they are torn into several kernels, the group stays.
TEST(Sinks, FoldsThatDoNotFitOneKernelStay) {
  test::Compiled c;
  outline(c,
          "g:? = @group(k); first:? = @keys(g); p:? = @index(k, first); u:? = @order(p, 1:bool); i:? = @index(p, u);"
          "lo:? = @min(i); n:? = @minus(w, lo); rows:? = @values(g); e:? = @each_right(@index, n, rows);"
          "e2:? = @each(@sum, e); s:? = @raze(e2); z:? = @list(p, s); return z;");
  EXPECT_THAT(c.outlined.folds, IsEmpty());
  EXPECT_THAT(c.outlined.not_folded, ElementsAre(0));
  EXPECT_THAT(c.main(), HasSubstr("@group"));
}

// With kernels of single statements nothing is folded.
TEST(Sinks, OnlyWithAllFusions) {
  for (const Mode mode : {Mode::none, Mode::flow}) {
    test::Compiled c;
    Options options;
    options.mode = mode;
    outline(c, std::string(selected_sums) + "z:? = @list(s); return z;", options);
    EXPECT_THAT(c.outlined.folds, IsEmpty());
  }
}

}  // namespace
}  // namespace rndn::outliner::sinks_test
