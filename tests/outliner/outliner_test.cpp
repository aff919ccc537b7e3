// Shapes, dependences, geometry and fusion by their results: which kernels a program gets, and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libraries/base/system/files.h"
#include "outliner/explain.h"
#include "tests/outliner/compile.h"
#include "tests/support/small_stack.h"

namespace rndn::test::outliner_test {
namespace {

using outliner::Mode;
using ::testing::HasSubstr;
using ::testing::Not;

std::string query(const char* name) {
  auto text = read_file(std::string(RNDN_SOURCE_DIR) + "/tpch/queries/" + name);
  EXPECT_TRUE(text.ok());
  return text.ok() ? *text : std::string();
}

// The printed program goes through the frontend again and prints the same.
void expect_round_trip(const Compiled& c) {
  const std::string text = print(c.outlined.program, true);
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  const FileId file = sources.add("outlined.hir", text);
  const hir::Program again = hir::run(file, sources, {}, sink, timings);
  ASSERT_FALSE(sink.has_errors()) << render(sink, sources) << text;
  EXPECT_EQ(print(again, true), text);
}

TEST(Outliner, QuerySixIsOneKernel) {
  Compiled c;
  compile(c, query("q06.hir"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u);
  EXPECT_EQ(c.geometry(0), "data.lineitem.rows");
  EXPECT_EQ(c.kernel(0),
            "kernel main_1(shipdate:date, discount:f64, quantity:f64, price:f64) : f64 {\n"
            "    from:bool = @geq(shipdate, 1994-01-01:date);\n"
            "    before:bool = @lt(shipdate, 1995-01-01:date);\n"
            "    year:bool = @and(from, before);\n"
            "    least:bool = @geq(discount, 0.05:f64);\n"
            "    most:bool = @leq(discount, 0.07:f64);\n"
            "    between:bool = @and(least, most);\n"
            "    small:bool = @lt(quantity, 24:f64);\n"
            "    bargain:bool = @and(between, small);\n"
            "    selected:bool = @and(year, bargain);\n"
            "    p:f64 = @compress(selected, price);\n"
            "    d:f64 = @compress(selected, discount);\n"
            "    product:f64 = @mul(p, d);\n"
            "    revenue:f64 = @sum(product);\n"
            "    return revenue;\n"
            "}\n");
  EXPECT_THAT(c.main(), HasSubstr("revenue:f64 = @main_1(shipdate, discount, quantity, price);"));
  EXPECT_THAT(c.main(), HasSubstr("@load_table(`lineitem:sym)"));
  EXPECT_THAT(c.main(), Not(HasSubstr("@geq")));
  EXPECT_TRUE(outliner::is_scalar(c.outlined.shapes, c.outlined.kernels[0].result_shapes[0]));
  const hir::Function& kernel = c.outlined.program.functions[c.outlined.kernels[0].function];
  EXPECT_EQ(c.outlined.program.text(kernel.variables[c.outlined.kernels[0].geometry_variable].name), "shipdate");
  expect_round_trip(c);
}

TEST(Outliner, QuerySixByMode) {
  for (auto [mode, kernels] : {std::pair{Mode::none, 13u}, {Mode::flow, 4u}, {Mode::full, 1u}}) {
    Compiled c;
    compile(c, query("q06.hir"), {.mode = mode});
    ASSERT_EQ(c.errors, "");
    EXPECT_EQ(c.outlined.kernels.size(), kernels);
    expect_round_trip(c);
  }
}

constexpr const char* load = R"(
    t:? = @load_table(`t:sym);
    v:f64 = check_cast(@column_value(t, `v:sym), f64);
    w:f64 = check_cast(@column_value(t, `w:sym), f64);
    d:date = check_cast(@column_value(t, `d:sym), date);
)";

// A filter of two comparisons and its sum.
TEST(Outliner, WorkedExample) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    p:? = @geq(d, 1994-01-01:date);
    q:? = @lt(d, 1995-01-01:date);
    r:? = @and(p, q);
    x:? = @compress(r, v);
    s:? = @sum(x);
    return s;)",
                          "f64"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u);
  EXPECT_EQ(c.geometry(0), "data.t.rows");
  EXPECT_TRUE(c.decided("p", "x", true, "reader runs at the size of its parent") ||
              c.decided("p", "s", true, "reader runs at the size of its parent"));
  expect_round_trip(c);
}

// A filtered sum, a count and their quotient: the scalar division waits for both reductions.
TEST(Outliner, ScalarAfterReductionsIsASecondKernel) {
  Compiled c;
  compile(c, program_text(R"(
    o:?     = @load_table(`orders:sym);
    p:f64   = check_cast(@column_value(o, `o_totalprice:sym), f64);
    s:char  = check_cast(@column_value(o, `o_orderstatus:sym), char);
    open:?  = @eq(s, 'O':char);
    big:?   = @gt(p, 200000:f64);
    m:?     = @and(open, big);
    q:?     = @compress(m, p);
    total:? = @sum(q);
    n:?     = @len(q);
    mean:?  = @div(total, n);
    c:?     = @list(total, n, mean);
    r:?     = @table((`total,`orders,`mean):sym, c);
    return r;)"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 2u);
  EXPECT_EQ(c.geometry(0), "data.orders.rows");
  EXPECT_EQ(c.geometry(1), "1");
  EXPECT_THAT(c.main(), HasSubstr("total:f64, n:i64 = @main_1(s, p);"));
  EXPECT_THAT(c.main(), HasSubstr("mean:f64 = @main_2(total, n);"));
  EXPECT_TRUE(c.decided("open", "mean", false, "its result is complete only after its kernel"));
  expect_round_trip(c);
}

TEST(Outliner, VectorAfterReductionIsASecondKernel) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    m:? = @avg(v);
    x:? = @minus(v, m);
    y:? = @sum(x);
    return y;)",
                          "f64"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 2u);
  EXPECT_THAT(c.main(), HasSubstr("m:f64 = @main_1(v);"));
  EXPECT_THAT(c.main(), HasSubstr("y:f64 = @main_2(v, m);"));
  EXPECT_TRUE(c.decided("m", "x", false, "its result is complete only after its kernel"));
  expect_round_trip(c);
}

TEST(Outliner, SiblingsWithACommonInputShareAKernel) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    a:? = @sum(v);
    b:? = @max(v);
    c:? = @list(a, b);
    r:? = @table((`a,`b):sym, c);
    return r;)"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u);
  EXPECT_THAT(c.main(), HasSubstr("a:f64, b:f64 = @main_1(v);"));
  EXPECT_TRUE(c.decided("a", "b", true, "siblings with a common input"));
  Compiled flow;
  compile(flow,
          program_text(std::string(load) + "a:? = @sum(v); b:? = @max(v); c:? = @list(a, b);"
                                           "r:? = @table((`a,`b):sym, c); return r;"),
          {.mode = Mode::flow});
  EXPECT_EQ(flow.outlined.kernels.size(), 2u);
}

TEST(Outliner, TablesOfDifferentSizesStayApart) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    u:? = @load_table(`u:sym);
    z:f64 = check_cast(@column_value(u, `z:sym), f64);
    a:? = @mul(v, 2:f64);
    b:? = @mul(z, 2:f64);
    c:? = @list(a, b);
    return c;)",
                          "list<f64>"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 2u);
  EXPECT_EQ(c.geometry(0), "data.t.rows");
  EXPECT_EQ(c.geometry(1), "data.u.rows");
  expect_round_trip(c);
}

// The language asks for equal lengths, which the runtime compares before it launches the kernel.
TEST(Outliner, OperandsOfDifferentTablesAreAssumedEquallyLong) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    u:? = @load_table(`u:sym);
    z:f64 = check_cast(@column_value(u, `z:sym), f64);
    a:? = @mul(v, z);
    return a;)",
                          "f64"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u);
  const outliner::Kernel& kernel = c.outlined.kernels[0];
  EXPECT_TRUE(kernel.assumes);
  EXPECT_FALSE(c.outlined.assumes_on_host);
  for (hir::VariableId p : c.outlined.program.functions[kernel.function].parameters)
    EXPECT_EQ(c.outlined.shapes.text(kernel.shapes[p], c.outlined.program), "vector<data.t.rows>");
  expect_round_trip(c);
}

// A vector that a kernel makes is there as a whole, with its length, only when that kernel is done.
TEST(Outliner, AssumedLengthsWaitForTheirVector) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    p:? = @gt(v, 0:f64);
    q:? = @gt(w, 0:f64);
    x:? = @compress(p, v);
    y:? = @compress(q, w);
    a:? = @mul(x, 2:f64);
    b:? = @mul(a, y);
    m:? = @lt(b, a);
    k:? = @compress(m, y);
    s:? = @sum(k);
    return s;)",
                          "f64"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 2u) << c.main();
  EXPECT_FALSE(c.outlined.kernels[0].assumes);
  EXPECT_TRUE(c.outlined.kernels[1].assumes);
  EXPECT_THAT(c.kernel(1), HasSubstr("b:f64 = @mul(a, y);"));
  EXPECT_EQ(c.geometry(1), "comp(p, data.t.rows)");
  expect_round_trip(c);
}

// A variable that is read as what it is and as what it is assumed to be is two parameters, so that nothing hides the comparison.
TEST(Outliner, AssumedAndOwnLengthsAreTwoParameters) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    u:? = @load_table(`u:sym);
    z:f64 = check_cast(@column_value(u, `z:sym), f64);
    n:? = @len(v);
    i:? = @range(n);
    a:? = @mul(v, z);
    g:? = @index(z, i);
    h:? = @plus(a, g);
    s:? = @sum(h);
    return s;)",
                          "f64"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u) << c.main();
  const outliner::Kernel& kernel = c.outlined.kernels[0];
  std::vector<std::string> shapes;
  for (hir::VariableId p : c.outlined.program.functions[kernel.function].parameters)
    shapes.push_back(c.outlined.shapes.text(kernel.shapes[p], c.outlined.program));
  EXPECT_THAT(shapes, ::testing::ElementsAre("vector<data.t.rows>", "vector<data.t.rows>", "vector<data.u.rows>"));
  EXPECT_THAT(c.main(), HasSubstr("@main_1(v, z, z)"));
  expect_round_trip(c);
}

TEST(Outliner, OperationsThatAssumeLengthsAreNotDropped) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    u:? = @load_table(`u:sym);
    z:f64 = check_cast(@column_value(u, `z:sym), f64);
    unread:? = @mul(v, z);
    s:? = @sum(v);
    return s;)",
                          "f64"));
  ASSERT_EQ(c.errors, "");
  ASSERT_GE(c.outlined.kernels.size(), 1u);
  EXPECT_THAT(c.kernel(0), HasSubstr("@mul(v, z)"));
  expect_round_trip(c);
}

// The cells of a list have one shape and not one length.
TEST(Outliner, CellsOfGroupsAreNotKnownToBeEquallyLong) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    g:? = @group(d);
    i:? = @values(g);
    p:? = @index(i, 0:i64);
    q:? = @index(i, 1:i64);
    x:? = @plus(p, q);
    j:? = @join_index(@eq, v, w);
    m:? = @index(j, 0:i64);
    n:? = @index(j, 1:i64);
    y:? = @plus(m, n);
    l:? = @list(x, y);
    return l;)",
                          "list<?>"),
          {.lists = false});
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 2u) << c.main();
  EXPECT_TRUE(c.outlined.kernels[0].assumes);
  EXPECT_FALSE(c.outlined.kernels[1].assumes);
}

// What the analysis cannot see into gives single values as likely as anything else.
TEST(Outliner, NothingIsAssumedOfCalls) {
  Compiled c;
  compile(c, R"(module m { import Builtin.*;
    def f(n:i64) : f64 { c:? = @gt(n, 3:i64); if (c) { return 1:f64; } m:? = @plus(n, 1:i64); x:f64 = @f(m); return x; }
    def main() : f64 {
      t:? = @load_table(`t:sym); v:f64 = check_cast(@column_value(t, `v:sym), f64);
      x:? = @f(0:i64); y:? = @mul(v, x); return y; } })");
  ASSERT_EQ(c.errors, "");
  EXPECT_EQ(c.outlined.kernels.size(), 0u);
  EXPECT_TRUE(c.decided("y", "", false, "its operands' sizes are only known at run time"));
}

// A vector that is already compressed in memory has other positions than a lazily compressed one.
TEST(Outliner, CompressedInputFromMemoryKeepsKernelsApart) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    m:? = @gt(v, 0:f64);
    x:? = @compress(m, v);
    o:? = @order(x, 1:bool);
    y:? = @compress(m, w);
    z:? = @mul(x, y);
    k:? = @plus(o, 1:i64);
    c:? = @list(z, k);
    return c;)",
                          "list<?>"));
  ASSERT_EQ(c.errors, "");
  // x leaves for the host; whoever reads it together with y must not do so by position unless x is made in the same kernel.
  for (size_t k = 0; k < c.outlined.kernels.size(); ++k) {
    const outliner::Kernel& kernel = c.outlined.kernels[k];
    for (hir::VariableId p : c.outlined.program.functions[kernel.function].parameters) {
      const outliner::Shape& shape = c.outlined.shapes[kernel.shapes[p]];
      EXPECT_TRUE(outliner::is_scalar(c.outlined.shapes, kernel.shapes[p]) || shape.size == kernel.geometry)
          << c.kernel(k);
    }
  }
  EXPECT_THAT(c.main(), HasSubstr("@order(x"));
  expect_round_trip(c);
}

TEST(Outliner, LibraryAndHostStatementsStayInMain) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    g:? = @group(d);
    k:? = @keys(g);
    i:? = @values(g);
    e:? = @each_right(@index, v, i);
    s:? = @each(@unique, e);
    f:? = @raze(s);
    c:? = @list(f);
    r:? = @table(`f:sym, c);
    return r;)"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u) << c.main();
  for (const char* call : {"@group(d)", "@keys(g)", "@values(g)", "@each(@unique, e)", "@raze(s)"})
    EXPECT_THAT(c.main(), HasSubstr(call));
  EXPECT_THAT(c.main(), HasSubstr("e:list<f64> = @main_1(v, i)"));
  EXPECT_TRUE(c.decided("g", "", false, "it is an operator of the library"));
  EXPECT_TRUE(c.decided("s", "", false, "it is an operator of the library"));
  EXPECT_TRUE(c.decided("k", "", false, "it runs on the CPU"));
  EXPECT_TRUE(c.decided("f", "", false, "its cells lie in one piece"));
  expect_round_trip(c);
}

// --- Lists --------------------------------------------------------------------------------------------------------------------

TEST(Outliner, AggregatesOfGroupsAreOneKernel) {
  const std::string text = program_text(std::string(load) + R"(
    g:? = @group(d);
    k:? = @keys(g);
    i:? = @values(g);
    e:? = @each_right(@index, v, i);
    s:? = @each(@sum, e);
    f:? = @raze(s);
    n:? = @each(@len, i);
    m:? = @raze(n);
    a:? = @each_right(@index, w, i);
    b:? = @each_item(@mul, e, a);
    b2:? = @each_left(@plus, b, 1:f64);
    p:? = @each(@max, b2);
    q:? = @raze(p);
    u:? = @index(d, k);
    h:? = @mul(f, 0.5:f64);
    c:? = @list(u, h, m, q);
    r:? = @table((`d,`h,`m,`q):sym, c);
    return r;)");
  Compiled c;
  compile(c, text, {.lists = false});
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 2u) << c.main();
  EXPECT_EQ(c.kernel(0),
            "kernel main_1(v:f64, i:list<i64>, w:f64) : f64, i64, f64 {\n"
            "    e:list<f64> = @each_right(@index, v, i);\n"
            "    s:list<f64> = @each(@sum, e);\n"
            "    f:f64 = @raze(s);\n"
            "    n:list<i64> = @each(@len, i);\n"
            "    m:i64 = @raze(n);\n"
            "    a:list<f64> = @each_right(@index, w, i);\n"
            "    b:list<f64> = @each_item(@mul, e, a);\n"
            "    b2:list<f64> = @each_left(@plus, b, 1:f64);\n"
            "    p:list<f64> = @each(@max, b2);\n"
            "    q:f64 = @raze(p);\n"
            "    return f, m, q;\n"
            "}\n");
  const outliner::Kernel& list = c.outlined.kernels[0];
  EXPECT_TRUE(list.list);
  EXPECT_EQ(c.geometry(0), "dyn(g)");
  EXPECT_EQ(c.outlined.program.text(c.outlined.program.functions[list.function].variables[list.geometry_variable].name),
            "i");
  // A value per group has the size of the keys: it fuses with what is gathered by them.
  EXPECT_FALSE(c.outlined.kernels[1].list);
  EXPECT_EQ(c.geometry(1), "dyn(g)");
  EXPECT_THAT(c.kernel(1), HasSubstr("@index(d, k)"));
  EXPECT_THAT(c.kernel(1), HasSubstr("@mul(f, "));
  EXPECT_EQ(list.result_shapes[0], c.outlined.kernels[1].result_shapes[0]);
  expect_round_trip(c);

  // Everything that reads the group's rows is a reduction, or becomes one: the product is made of whole columns.
  Compiled on_columns;
  compile(on_columns, text);
  ASSERT_EQ(on_columns.errors, "");
  EXPECT_THAT(on_columns.kernel(0), HasSubstr("@mul(v, w)"));
  EXPECT_THAT(on_columns.kernel(0), HasSubstr("1:f64)"));
  for (size_t k = 0; k < on_columns.outlined.kernels.size(); ++k) {
    EXPECT_THAT(on_columns.kernel(k), Not(HasSubstr("@each_item")));
    EXPECT_THAT(on_columns.kernel(k), Not(HasSubstr("@each_left")));
  }
  expect_round_trip(on_columns);
}

// What the groups' first rows have beside the groups' sums: one kernel, unless an operator shall take the place of the sums.
TEST(Outliner, VectorsWithAnElementPerCellRunBesideTheCells) {
  const std::string groups = std::string(load) + R"(
    g:? = @group(d);
    k:? = @keys(g);
    i:? = @values(g);
    e:? = @each_right(@index, v, i);
    s:? = @each(@sum, e);
    f:? = @raze(s);
    day:? = @index(d, k);
    x:? = @index(w, k);
    y:? = @mul(x, 2:f64);)";
  const std::string text = program_text(groups + "c:? = @list(day, y, f); return c;", "list<?>");
  Compiled c;
  compile(c, text);
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u) << c.main();
  EXPECT_TRUE(c.decided("e", "day", true, "an element per cell of its list")) << c.main();
  EXPECT_TRUE(c.outlined.kernels[0].list);
  EXPECT_THAT(c.kernel(0), HasSubstr("day:date = @index(d, k);"));
  EXPECT_THAT(c.kernel(0), HasSubstr("f:f64 = @raze(s);"));
  expect_round_trip(c);

  Compiled apart;
  compile(apart, text, {.beside_cells = false});
  ASSERT_EQ(apart.errors, "");
  EXPECT_EQ(apart.outlined.kernels.size(), 2u) << apart.main();

  // What needs a finished sum, and what selects, is not done beside the cells.
  for (const char* last : {"z:? = @minus(f, y);", "m:? = @gt(y, 0:f64); z:? = @compress(m, y);", "z:? = @sum(y);"}) {
    Compiled other;
    compile(other, program_text(groups + last + "c:? = @list(day, f, z); return c;", "list<?>"));
    ASSERT_EQ(other.errors, "");
    ASSERT_EQ(other.outlined.kernels.size(), 2u) << other.main();
    EXPECT_THAT(other.kernel(0), Not(HasSubstr("z:f64")));
    EXPECT_THAT(other.kernel(1), HasSubstr("z:f64"));
    EXPECT_FALSE(other.outlined.kernels[1].list);
    expect_round_trip(other);
  }
}

// What is gathered per group is complete before the kernel of the groups starts; values of other groups do not mix with them.
TEST(Outliner, ListKernelsKeepToTheirList) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    x:? = @mul(v, 2:f64);
    g:? = @group(d);
    i:? = @values(g);
    e:? = @each_right(@index, x, i);
    s:? = @each(@sum, e);
    f:? = @raze(s);
    g2:? = @group(v);
    i2:? = @values(g2);
    e2:? = @each_right(@index, x, i2);
    s2:? = @each(@sum, e2);
    f2:? = @raze(s2);
    c:? = @list(f, f2);
    return c;)",
                          "list<f64>"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 3u) << c.main();
  EXPECT_FALSE(c.outlined.kernels[0].list);
  EXPECT_TRUE(c.outlined.kernels[1].list);
  EXPECT_TRUE(c.outlined.kernels[2].list);
  EXPECT_NE(c.geometry(1), c.geometry(2));
  expect_round_trip(c);
}

// Reversed cells are read by position: complete when their kernel starts, which then goes on with them.
TEST(Outliner, ReversedCellsWaitForTheirList) {
  Compiled c;
  compile(c, R"(module m {
  import Builtin.*;
  def main() : list<?> {)" +
                 std::string(load) + R"(
    g:? = @group(d);
    i:? = @values(g);
    e:? = @each_right(@index, v, i);
    n:? = @each(@neg, e);
    r:? = @each(@reverse, n);
    a:? = @each(@abs, r);
    s:? = @each(@sum, a);
    z:? = @raze(s);
    l:? = @list(r, z);
    return l;
  }
}
)");
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 2u) << c.main();
  EXPECT_THAT(c.kernel(0), HasSubstr("@each(@neg"));
  EXPECT_THAT(c.kernel(1), HasSubstr("@each(@reverse, n)"));
  EXPECT_THAT(c.kernel(1), HasSubstr("@raze("));
  EXPECT_TRUE(c.decided("n", "r", false, "its result is complete only after its kernel"));
  expect_round_trip(c);
}

// Calls on cells that have no kernel: on the host, or as calls on vectors (outliner/lists).
TEST(Outliner, ListsWithoutKernels) {
  const std::string text = R"(module m {
  import Builtin.*;
  def f(x:f64) : f64 { return x; }
  def main() : list<?> {)" +
                 std::string(load) + R"(
    l:? = @list(v, w);
    a:? = @each(@sum, l);
    g:? = @group(d);
    i:? = @values(g);
    e:? = @each_right(@index, v, i);
    b:? = @each(@f, e);
    s:? = @each(@sum, e);
    y:? = @each(@neg, s);
    o:? = @each_right(@plus, v, e);
    c:? = @list(a, b, y, o);
    return c;
  }
}
)";
  Compiled stays;
  compile(stays, text, {.lists = false});
  ASSERT_EQ(stays.errors, "");
  EXPECT_TRUE(stays.decided("a", "", false, "its list is not in one piece"));
  EXPECT_TRUE(stays.decided("b", "", false, "user functions run on the host"));
  EXPECT_TRUE(stays.decided("y", "", false, "its cells are single values"));
  EXPECT_TRUE(stays.decided("o", "", false, "its operands' sizes are only known at run time"));
  EXPECT_FALSE(stays.outlined.flattened);
  expect_round_trip(stays);

  Compiled flat;
  compile(flat, text);
  ASSERT_EQ(flat.errors, "");
  EXPECT_TRUE(flat.outlined.flattened);
  EXPECT_THAT(flat.main(), testing::HasSubstr("@GPU.cells("));
  EXPECT_THAT(flat.main(), testing::Not(testing::HasSubstr("@each")));
  expect_round_trip(flat);

  // Cells of several types: a piece for each, and numbers of cells.
  Compiled mixed;
  compile(mixed, program_text(std::string(load) + R"(
    g:? = @group(d); i:? = @values(g);
    e:? = @each_right(@index, v, i); u:? = @each_right(@index, d, i);
    m:? = @append(e, u); f:? = @flip(m); n:? = @append(f, m); o:? = @each_left(@append, e, n); c:i64 = @len(n);
    r:? = @list(n, o, c);
    return r;)", "list<?>"));
  ASSERT_EQ(mixed.errors, "");
  EXPECT_TRUE(mixed.outlined.flattened);
  EXPECT_THAT(mixed.main(), testing::HasSubstr("@GPU.pick("));
  EXPECT_THAT(mixed.main(), testing::Not(testing::HasSubstr("@flip(")));
  expect_round_trip(mixed);
}

// --- Sizes as values, scatters ------------------------------------------------------------------------------------------------

TEST(Outliner, LengthsAreSizes) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    o:? = @order(v, 0:bool);
    n:? = @len(o);
    p:? = @range(n);
    m:? = @lt(p, 10:i64);
    f:? = @where(m);
    top:? = @index(o, f);
    x:? = @index(w, top);
    c:? = @list(x);
    r:? = @table(`x:sym, c);
    return r;)"),
          {.tops = false});
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u) << c.main();
  EXPECT_EQ(c.geometry(0), "data.t.rows");
  EXPECT_THAT(c.kernel(0), HasSubstr("kernel main_1(o:i64, w:f64) : f64"));
  EXPECT_THAT(c.kernel(0), HasSubstr("n:i64 = @len(o);\n    p:i64 = @range(n);"));
  EXPECT_THAT(c.main(), Not(HasSubstr("@len")));
  expect_round_trip(c);
}

// The number of selected elements is known when the kernel that selects them is done, and a length that others read stays.
TEST(Outliner, LengthsOfSelections) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    m:? = @gt(v, 0:f64);
    x:? = @compress(m, v);
    n:? = @len(x);
    z:? = @vector(n, 1:f64);
    y:? = @plus(x, z);
    k:? = @len(d);
    c:? = @list(y);
    q:? = @list(k, n);
    r:? = @list(c, q);
    return r;)",
                          "list<?>"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 2u) << c.main();
  EXPECT_EQ(c.geometry(1), "comp(m, data.t.rows)");
  EXPECT_THAT(c.kernel(0), Not(HasSubstr("@vector")));
  EXPECT_THAT(c.kernel(1), HasSubstr("n:i64 = @len(x);\n    z:f64 = @vector(n, 1:f64);"));
  EXPECT_THAT(c.main(), HasSubstr("n:i64, y:f64 = @main_2(x)"));
  EXPECT_THAT(c.main(), HasSubstr("k:i64 = @len(d)"));
  EXPECT_TRUE(c.decided("k", "", false, "the host knows the size"));
  expect_round_trip(c);
}

// A length of something else than a vector at hand, or of a vector that has changed since, is a number like any other.
TEST(Outliner, LengthsThatAreOnlyNumbers) {
  Compiled d;
  compile(d, program_text(std::string(load) + R"(
    n:? = @len(v);
    l:? = @plus(n, 1:i64);
    a:? = @range(l);
    x:i64 = @order(v, 1:bool);
    k:? = @len(x);
    x = (1, 2):i64;
    b:? = @range(k);
    c:? = @list(a, b, x);
    return c;)",
                          "list<i64>"));
  ASSERT_EQ(d.errors, "");
  EXPECT_TRUE(d.decided("a", "", false, "its length is only known at run time"));
  EXPECT_TRUE(d.decided("b", "", false, "its length is only known at run time"));
  EXPECT_THAT(d.main(), HasSubstr("b:i64 = @range(k)"));
  expect_round_trip(d);
}

TEST(Outliner, ScattersRunAtTheSizeOfTheirIndexes) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    u:? = @load_table(`u:sym);
    z:i64 = check_cast(@column_value(u, `z:sym), i64);
    m:? = @gt(v, 0:f64);
    n:? = @len(z);
    none:? = @vector(n, 0:bool);
    i:i64 = check_cast(@column_value(t, `i:sym), i64);
    k:? = @compress(m, i);
    has:? = @index_a(none, k, 1:bool);
    y:? = @not(has);
    c:? = @list(y);
    r:? = @table(`y:sym, c);
    return r;)"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 3u) << c.main();
  EXPECT_EQ(c.geometry(0), "data.u.rows");
  EXPECT_THAT(c.kernel(0), HasSubstr("kernel main_1(z:i64) : bool"));
  EXPECT_EQ(c.geometry(1), "data.t.rows");
  EXPECT_THAT(c.kernel(1), HasSubstr("@gt(v, "));
  EXPECT_THAT(c.kernel(1), HasSubstr("@index_a(none, k, 1:bool)"));
  EXPECT_EQ(c.outlined.shapes.text(c.outlined.kernels[1].result_shapes[0], c.outlined.program), "vector<data.u.rows>");
  EXPECT_EQ(c.geometry(2), "data.u.rows");
  EXPECT_THAT(c.kernel(2), HasSubstr("@not(has)"));
  expect_round_trip(c);
}

// What is gathered from must be complete, also under another name; the positions need not be.
TEST(Outliner, GathersWaitForTheirVector) {
  for (const char* copy : {"y:? = @mul(v, 2:f64);", "x:? = @mul(v, 2:f64); y:? = x;"}) {
    SCOPED_TRACE(copy);
    Compiled c;
    compile(c, program_text(std::string(load) + copy + R"(
      m:? = @gt(w, 0:f64); p:? = @where(m); z:? = @index(y, p); s:? = @sum(z); c:? = @list(s);
      r:? = @table(`s:sym, c); return r;)"));
    ASSERT_EQ(c.errors, "");
    ASSERT_EQ(c.outlined.kernels.size(), 2u) << c.main();
    EXPECT_THAT(c.kernel(0), HasSubstr("@mul(v"));
    EXPECT_THAT(c.kernel(1), HasSubstr("@where(m)"));
    EXPECT_THAT(c.kernel(1), HasSubstr("@index(y, p)"));
    expect_round_trip(c);
  }
}

// A copy of a sum is no sooner there than the sum.
TEST(Outliner, CopiesOfReductionsWaitAsWell) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    s:? = @sum(v); u:? = s; z:? = @div(v, u); c:? = @list(z); r:? = @table(`z:sym, c); return r;)"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 2u) << c.main();
  EXPECT_THAT(c.kernel(1), HasSubstr("@div(v, "));
  EXPECT_THAT(c.kernel(1), Not(HasSubstr("@sum(v)")));
}

// A parameter that is assigned again with another size stays what it was for those that read it before.
TEST(Outliner, ParametersKeepTheirShape) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    m:? = @gt(v, 0:f64); v = @compress(m, v); s:? = @sum(v); c:? = @list(s); r:? = @table(`s:sym, c); return r;)"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u) << c.main();
  EXPECT_THAT(c.kernel(0), HasSubstr("v_1:f64 = @compress(m, v)"));
  EXPECT_THAT(c.kernel(0), HasSubstr("@sum(v_1)"));
  EXPECT_EQ(
      c.outlined.shapes.text(
          c.outlined.kernels[0].shapes[c.outlined.program.functions[c.outlined.kernels[0].function].parameters[0]],
          c.outlined.program),
      "vector<data.t.rows>");
}

TEST(Outliner, LiteralsReachKernels) {
  Compiled c;
  compile(c,
          program_text(std::string(load) + R"(
    s:sym = check_cast(@column_value(t, `s:sym), sym);
    two:? = 2:f64;
    x:? = @mul(v, two);
    m:? = @eq(s, `AIR:sym);
    y:? = @compress(m, x);
    z:? = @sum(y);
    return z;)",
                       "f64"),
          {.text_codes = true});
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u);
  EXPECT_THAT(c.kernel(0), HasSubstr("@mul(v, 2:f64)"));     // numbers are copied
  EXPECT_THAT(c.kernel(0), HasSubstr("@eq(s, literal_1)"));  // text is passed
  EXPECT_THAT(c.main(), HasSubstr("literal_1:sym = `AIR:sym;"));
  expect_round_trip(c);
  // As a parameter, where another number is the same code.
  Compiled passed;
  compile(passed,
          program_text(std::string(load) + R"(
    two:? = 2:f64;
    x:? = @mul(v, two);
    m:? = @gt(x, 4:f64);
    y:? = @compress(m, x);
    z:? = @sum(y);
    return z;)",
                       "f64"),
          {.numbers_as_parameters = true});
  ASSERT_EQ(passed.errors, "");
  EXPECT_THAT(passed.main(), HasSubstr("literal_1:f64 = 2:f64;"));
  EXPECT_THAT(passed.kernel(0), HasSubstr("@mul(v, literal_1)"));
  EXPECT_THAT(passed.kernel(0), HasSubstr("@gt(x, literal_2)"));
  EXPECT_EQ(passed.outlined.kernels[0].by_value.size(), 2u);
  expect_round_trip(passed);
  Compiled without;
  compile(without,
          program_text(std::string(load) + "s:sym = check_cast(@column_value(t, `s:sym), sym);"
                                           "m:? = @eq(s, `AIR:sym); y:? = @compress(m, v); z:? = @sum(y); return z;",
                       "f64"),
          {.text_codes = false});
  ASSERT_EQ(without.errors, "");
  EXPECT_THAT(without.main(), HasSubstr("m:bool = @eq(s, `AIR:sym);"));
  EXPECT_THAT(without.main(), HasSubstr("z:f64 = @main_1(m, v);"));
}

// The second value of x must not be seen by the host statement that reads the first.
TEST(Outliner, ReassignmentKeepsTheOrderOfUses) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    x:? = @mul(v, 2:f64);
    a:? = @order(x, 1:bool);
    x = @plus(x, 1:f64);
    b:? = @order(x, 1:bool);
    c:? = @list(a, b);
    return c;)",
                          "list<i64>"));
  ASSERT_EQ(c.errors, "");
  const std::string text = c.main();
  ASSERT_EQ(c.outlined.kernels.size(), 2u) << text;
  const size_t first = text.find("x:f64 = @main_1(v)"), a = text.find("a:i64 = @order(x"),
               second = text.find("x = @main_2(x)"), b = text.find("b:i64 = @order(x");
  ASSERT_NE(b, std::string::npos) << text;
  EXPECT_LT(first, a);
  EXPECT_LT(a, second);
  EXPECT_LT(second, b);
  expect_round_trip(c);
}

TEST(Outliner, BodiesOfControlFlowAreOutlinedByBlock) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    i:i64 = 0:i64;
    go:bool = 1:bool;
    x:f64 = @mul(v, 1:f64);
    while (go) {
      y:? = @mul(x, 2:f64);
      x = @plus(y, 1:f64);
      i = @plus(i, 1:i64);
      go = @lt(i, 3:i64);
    }
    s:? = @sum(x);
    return s;)",
                          "f64"));
  ASSERT_EQ(c.errors, "");
  const std::string text = c.main();
  EXPECT_THAT(text, HasSubstr("while (go) {"));
  EXPECT_THAT(text, HasSubstr("x = @main_2(x);"));  // mul and plus in one kernel; its result lives on
  const size_t loop = text.find("while"), sum = text.find("s:f64 = @main_");
  ASSERT_NE(sum, std::string::npos) << text;
  EXPECT_LT(loop, sum);
  expect_round_trip(c);
}

// Nothing may be computed across a statement that can leave the block.
TEST(Outliner, BreakKeepsItsPlace) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    x:f64 = @mul(v, 1:f64);
    stop:bool = 0:bool;
    repeat (3:i64) {
      if (stop) { break; }
      x = @plus(x, 1:f64);
      stop = 1:bool;
    }
    s:? = @sum(x);
    return s;)",
                          "f64"));
  ASSERT_EQ(c.errors, "");
  const std::string text = c.main();
  const size_t leave = text.find("break"), step = text.find("x = @main_");
  ASSERT_NE(step, std::string::npos) << text;
  EXPECT_LT(leave, step);
  expect_round_trip(c);
}

TEST(Outliner, ConstantGeometry) {
  Compiled c;
  compile(c, program_text(R"(
    k:i64 = 1000:i64;
    r:? = @range(k);
    x:? = @mul(r, 3:i64);
    s:? = @sum(x);
    return s;)",
                          "i64"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u);
  EXPECT_EQ(c.geometry(0), "1000");
  EXPECT_TRUE(is_none(c.outlined.kernels[0].geometry_variable));
  EXPECT_THAT(c.kernel(0), HasSubstr("kernel main_1() : i64"));
  expect_round_trip(c);
}

TEST(Outliner, DeadKernelsAreDroppedUnlessTheyCanFail) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    i:i64 = check_cast(@column_value(t, `i:sym), i64);
    x:? = @mul(v, 2:f64);
    y:? = @div(1:i64, i);
    return v;)",
                          "f64"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u);
  EXPECT_THAT(c.main(), HasSubstr("@main_1(i);"));
  EXPECT_THAT(c.main(), Not(HasSubstr("@mul")));
  expect_round_trip(c);
}

TEST(Outliner, DifferentConstantSizesAreAnError) {
  Compiled c;
  compile(c, program_text(R"(    a:i64 = (1, 2, 3):i64;
    b:i64 = (1, 2):i64;
    x:? = @plus(a, b);
    return x;)",
                          "i64"));
  EXPECT_EQ(c.errors,
            "test.hir:6:11: error: `plus` expects operands of one shape, got vector<3> and vector<2>\n"
            "      x:? = @plus(a, b);\n"
            "            ^~~~~~~~~~~\n"
            "test.hir:4:5: note: `a` has 3 elements\n"
            "      a:i64 = (1, 2, 3):i64;\n"
            "      ^\n"
            "test.hir:5:5: note: `b` has 2 elements\n"
            "      b:i64 = (1, 2):i64;\n"
            "      ^\n");
}

// --- Kernel Weaver ------------------------------------------------------------------------------------------------------------

// The five patterns of relational operators whose fusion Wu et al., "Kernel Weaver" (MICRO 2012), measure, fused against unfused.
TEST(KernelWeaver, MicroPatterns) {
  struct Pattern {
    const char* name;
    const char* body;
    size_t unfused, fused;
  };
  constexpr const char* rows = R"(
    i:i64 = check_cast(@column_value(t, `i:sym), i64);
    u:? = @load_table(`u:sym);
    j:i64 = check_cast(@column_value(u, `j:sym), i64);
    z:f64 = check_cast(@column_value(u, `z:sym), f64);
)";
  for (const Pattern& p : {
           Pattern{"a: selections one after the other",
                   "a:? = @gt(v, 0:f64); x:? = @compress(a, v); b:? = @lt(x, 9:f64); y:? = @compress(b, x); c:? = "
                   "@list(y);",
                   4, 1},
           Pattern{"b: joins one after the other",
                   "k:? = @index(j, i); x:? = @index(z, k); y:? = @plus(x, v); c:? = @list(y);", 3, 1},
           Pattern{"c: selections of one input",
                   "a:? = @gt(v, 0:f64); x:? = @compress(a, v); b:? = @lt(v, 9:f64); y:? = @compress(b, w); c:? = "
                   "@list(x, y);",
                   4, 1},
           Pattern{"d: a join of selections",
                   "a:? = @gt(v, 0:f64); x:? = @compress(a, i); b:? = @lt(z, 9:f64); y:? = @compress(b, j);"
                   "p:? = @join_index(@eq, x, y); l:? = @index(p, 0:i64); r:? = @index(p, 1:i64);"
                   "f:? = @index(x, l); g:? = @index(y, r); c:? = @list(f, g);",
                   8, 2},
           Pattern{"e: arithmetic and an aggregate",
                   "a:? = @minus(1:f64, v); b:? = @mul(w, a); x:? = @plus(1:f64, v); y:? = @mul(b, x); s:? = @sum(y);"
                   "c:? = @list(s);",
                   5, 1},
       }) {
    SCOPED_TRACE(p.name);
    for (Mode mode : {Mode::none, Mode::full}) {
      Compiled c;
      compile(c, program_text(std::string(load) + rows + p.body + "return c;", "list<?>"), {.mode = mode});
      ASSERT_EQ(c.errors, "");
      EXPECT_EQ(c.outlined.kernels.size(), mode == Mode::full ? p.fused : p.unfused) << c.main();
      expect_round_trip(c);
    }
  }
}

// Sixty columns read and written in one kernel would leave no registers.
TEST(KernelWeaver, FusionStaysWithinTheBudget) {
  std::string body = load, list;
  for (int k = 0; k < 60; ++k) {
    body += fmt::format("a{0}:f64 = check_cast(@column_value(t, `a{0}:sym), f64); b{0}:? = @mul(a{0}, v);\n", k);
    list += fmt::format("{}b{}", k ? ", " : "", k);
  }
  Compiled c;
  compile(c, program_text(body + "c:? = @list(" + list + "); return c;", "list<?>"));
  ASSERT_EQ(c.errors, "");
  EXPECT_EQ(c.outlined.kernels.size(), 3u);  // 24 pairs of columns of 8 bytes and v fit into 400 bytes
  size_t results = 0;
  for (const outliner::Kernel& k : c.outlined.kernels) {
    EXPECT_LE(k.result_shapes.size(), 24u);
    results += k.result_shapes.size();
  }
  EXPECT_EQ(results, 60u);
  expect_round_trip(c);
}

// --- User functions -----------------------------------------------------------------------------------------------------------

TEST(Outliner, FunctionsBecomePartOfKernels) {
  Compiled c;
  compile(
      c,
      "module m { import Builtin.*;\n"
      "def square(x:f64) : f64 { y:f64 = @mul(x, x); return y; }\n"
      "def spread(v:f64, k:f64) : f64, f64 { y:f64 = @square(v); a:f64 = @mul(y, k); s:f64 = @sum(a); return s, a; }\n"
      "def main() : table {" +
          std::string(load) + R"(
    y:f64 = @plus(v, w);
    s:f64, x:f64 = @spread(y, 2:f64);
    z:? = @sum(w);
    c:? = @list(s, z);
    r:? = @table((`s,`z):sym, c);
    return r; } })");
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u) << c.main();
  EXPECT_EQ(c.kernel(0),
            "kernel main_1(v:f64, w:f64) : f64, f64 {\n"
            "    y:f64 = @plus(v, w);\n"
            "    v_1:f64 = y;\n"
            "    x_1:f64 = v_1;\n"
            "    y_1_1:f64 = @mul(x_1, x_1);\n"
            "    y_1:f64 = y_1_1;\n"
            "    a:f64 = @mul(y_1, 2:f64);\n"
            "    s_1:f64 = @sum(a);\n"
            "    z:f64 = @sum(w);\n"
            "    return s_1, z;\n"
            "}\n");
  expect_round_trip(c);
}

TEST(Outliner, FunctionsThatStayCalls) {
  Compiled c;
  compile(c,
          "module m { import Builtin.*;\n"
          "def down(x:i64) : i64 { more:bool = @gt(x, 0:i64); if (more) { y:i64 = @minus(x, 1:i64); x = @down(y); } "
          "return x; }\n"
          "def early(x:i64) : i64 { more:bool = @gt(x, 0:i64); if (more) { return x; } y:i64 = @neg(x); return y; }\n"
          "def main() : list<i64> { a:i64 = @down(3:i64); b:i64 = @early(4:i64); c:? = @list(a, b); return c; } }");
  ASSERT_EQ(c.errors, "");
  EXPECT_THAT(c.main(), HasSubstr("@down(3:i64)"));
  EXPECT_THAT(c.main(), HasSubstr("@early(4:i64)"));
  expect_round_trip(c);
}

// The outlined program is a program: outlined again, it has the same kernels.
TEST(Outliner, OutlinedProgramsOutlineAgain) {
  for (const char* name : {"q01.hir", "q06.hir", "q17.hir"}) {
    Compiled c, again;
    compile(c, query(name));
    ASSERT_EQ(c.errors, "");
    compile(again, print(c.outlined.program, true));
    ASSERT_EQ(again.errors, "");
    EXPECT_EQ(again.outlined.kernels.size(), c.outlined.kernels.size()) << again.main();
    const std::string text = print(again.outlined.program, true);
    EXPECT_EQ(text.find("main_1("), std::string::npos);
    expect_round_trip(again);
  }
}

// What is inlined stays as shallow as the parser wants it, and the pass does not recurse deeper than it may.
TEST(Inline, NestsNoDeeperThanTheParserAllows) {
  const auto nest = [](int levels, const std::string& inner) {
    std::string out;
    for (int i = 0; i < levels; ++i) out += "if (1:bool) { ";
    out += inner;
    for (int i = 0; i < levels; ++i) out += " }";
    return out;
  };
  for (const auto& [functions, levels] : {std::pair{150, 100}, {3, 60}, {10, 60}, {190, 1}, {2, 190}}) {
    SCOPED_TRACE(fmt::format("{} functions of {} levels", functions, levels));
    std::string text = "module m { import Builtin.*;\n";
    for (int i = 0; i < functions; ++i)
      text += fmt::format("def f{}(n:i64) : i64 {{ x:i64 = 0:i64; {} return x; }}\n", i,
                          nest(levels, fmt::format("x = @f{}(n);", i + 1)));
    text += fmt::format(
        "def f{}(n:i64) : i64 {{ y:i64 = @plus(n, 1:i64); return y; }}\n"
        "def main() : i64 {{ z:i64 = @f0(1:i64); return z; }} }}",
        functions);
    ASSERT_TRUE(on_own_stack(small_stack, [&] {
      Compiled c;
      compile(c, text);
      ASSERT_EQ(c.errors, "");
      const std::string printed = print(c.outlined.program, true);
      Compiled again;
      compile(again, printed);
      EXPECT_EQ(again.errors, "") << printed.substr(0, 2000);
    }));
  }
}

// --- Explanations -------------------------------------------------------------------------------------------------------------

std::string explained(Compiled& c, const outliner::ExplainOptions& how) {
  auto text = outliner::explain(c.program, c.sources, {}, how, c.sink);
  EXPECT_TRUE(text.ok()) << text.error().message;
  return text.ok() ? *text : std::string();
}

TEST(Explain, SaysWhatAndWhy) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    m:? = @gt(v, 0:f64);
    x:? = @compress(m, w);
    s:? = @sum(x);
    y:? = @div(w, s);
    o:? = @order(y, 1:bool);
    n:? = @len(o);
    p:? = @range(n);
    c:? = @list(p, o);
    return c;)",
                          "list<i64>"));
  ASSERT_EQ(c.errors, "");
  const outliner::ExplainOptions how{
      .rows = [](std::string_view table) { return table == "t" ? std::optional<uint64_t>(1000) : std::nullopt; }};
  const std::string text = explained(c, how);
  EXPECT_THAT(text, HasSubstr("    11  main_1    x:? = @compress(m, w);\n"
                              "                  shape vector<comp(m, data.t.rows)>, geometry vector<data.t.rows>\n"));
  EXPECT_THAT(text, HasSubstr("waits for s: `sum` gives its result when its kernel is done"));
  EXPECT_THAT(text, HasSubstr("on the host: it is an operator of the library"));
  EXPECT_THAT(text, HasSubstr("    15  dropped   n:? = @len(o);"));
  EXPECT_THAT(text, HasSubstr("value data.t.rows"));
  EXPECT_THAT(text, HasSubstr("  main_1: 3 statements, a thread per element of vector<data.t.rows>\n"
                              "    reads   16 B per data.t.rows: v, w\n"
                              "    writes  8 B per 1: s\n"
                              "    moves   16.0 kB\n"));
  EXPECT_THAT(text, HasSubstr("    apart from main_2: its result is complete only after its kernel (m, y)\n"));
  EXPECT_THAT(text, HasSubstr("one because pipeline: m + x"));
  const std::string dot = explained(c, {.dot = true, .rows = {}});
  EXPECT_THAT(dot, ::testing::StartsWith("digraph main {"));
  EXPECT_THAT(dot, HasSubstr("label=\"main_1: data.t.rows\""));
  EXPECT_THAT(dot, HasSubstr("[color=red, label=\"`sum` gives its result when its kernel is done\"]"));
}

// Of bounded length per statement and per kernel, whatever the number of kernels and of selections of selections.
TEST(Explain, IsLinear) {
  const auto chain = [](int n, const char* step) {
    std::string body = "x0:i64 = @vector(1000:i64, 7:i64);\n";
    for (int i = 0; i < n; ++i) body += fmt::format(fmt::runtime(step), i, i + 1);
    return program_text(body + fmt::format("r:? = @sum(x{});\nreturn r;", n), "i64");
  };
  const auto told = [](const std::string& text, outliner::Mode mode) {
    Compiled c;
    compile(c, text);
    EXPECT_EQ(c.errors, "");
    auto made = outliner::explain(c.program, c.sources, {.mode = mode}, {}, c.sink);
    EXPECT_TRUE(made.ok());
    return made.ok() ? *made : std::string();
  };
  for (const char* step : {"x{1}:? = @plus(x{0}, {0}:i64);\n", "x{1}:? = @plus(x0, {0}:i64);\n",
                           "m{0}:? = @gt(x{0}, {0}:i64); x{1}:? = @compress(m{0}, x{0});\n"})
    for (outliner::Mode mode : {outliner::Mode::none, outliner::Mode::flow, outliner::Mode::full}) {
      SCOPED_TRACE(fmt::format("{} mode {}", step, static_cast<int>(mode)));
      const std::string few = told(chain(200, step), mode), many = told(chain(800, step), mode);
      EXPECT_LT(many.size(), 5 * few.size());
      EXPECT_LT(many.size(), 2000 * 800u);
      size_t kernels = 0, apart = 0;
      for (size_t at = many.find("    apart from "); at != std::string::npos; at = many.find("    apart from ", at + 1))
        ++apart;
      for (size_t at = many.find("thread per element of"); at != std::string::npos;
           at = many.find("thread per element of", at + 1))
        ++kernels;
      EXPECT_LE(apart, 7 * kernels);
    }
  const std::string none = told(chain(50, "x{1}:? = @plus(x{0}, {0}:i64);\n"), outliner::Mode::none);
  EXPECT_THAT(none, HasSubstr("    apart from main_8: one needs what follows from the other\n"
                              "    apart from 44 more\n"));
  const std::string selected =
      told(chain(10, "m{0}:? = @gt(x{0}, {0}:i64); x{1}:? = @compress(m{0}, x{0});\n"), outliner::Mode::none);
  EXPECT_THAT(selected, HasSubstr("shape vector<comp(m3, comp(m2, comp(m1, comp(m0, 1000))))>"));
  EXPECT_THAT(selected, HasSubstr("shape vector<comp(m9, comp(m8, comp(m7, comp(m6, ... 6 more ..., 1000))))>"));
}

TEST(Explain, EveryQuery) {
  for (int q = 1; q <= 22; ++q) {
    SCOPED_TRACE(q);
    Compiled c;
    compile(c, query(fmt::format("q{:02}.hir", q).c_str()));
    ASSERT_EQ(c.errors, "");
    const std::string text = explained(c, {}), dot = explained(c, {.dot = true, .rows = {}});
    for (const outliner::Kernel& k : c.outlined.kernels) {
      const std::string name(c.outlined.program.text(c.outlined.program.functions[k.function].name));
      EXPECT_THAT(text, HasSubstr("  " + name + ": "));
      EXPECT_THAT(dot, HasSubstr("label=\"" + name + ": "));
      EXPECT_FALSE(k.statements.empty());
    }
    EXPECT_EQ(std::count(dot.begin(), dot.end(), '{'), std::count(dot.begin(), dot.end(), '}'));
  }
}

// --- Kernel counts of TPC-H ---------------------------------------------------------------------------------------------------

// Kernels of the 22 queries by mode. `thesis`: what the rNdN thesis has for full fusion; no query may have more (docs/decisions.md, 33).
struct Count {
  const char* query;
  size_t none, flow, full, thesis;
};
constexpr Count counts[] = {
    {"q01", 43, 30, 4, 5},   {"q02", 40, 29, 9, 18}, {"q03", 26, 17, 5, 9},  {"q04", 14, 8, 5, 9},
    {"q05", 31, 20, 8, 13},  {"q06", 13, 4, 1, 1},   {"q07", 43, 28, 7, 19}, {"q08", 37, 21, 11, 17},
    {"q09", 27, 14, 4, 11},  {"q10", 30, 20, 4, 9},  {"q11", 18, 14, 6, 9},  {"q12", 25, 11, 3, 4},
    {"q13", 12, 8, 6, 10},   {"q14", 16, 8, 3, 4},   {"q15", 24, 17, 6, 8},  {"q16", 23, 17, 6, 8},
    {"q17", 21, 9, 7, 10},   {"q18", 21, 16, 3, 10}, {"q19", 46, 11, 3, 3},  {"q20", 30, 19, 9, 10},
    {"q21", 41, 21, 13, 15}, {"q22", 23, 14, 5, 6},
};

TEST(KernelCounts, NoneAboveTheThesis) {
  for (const Count& count : counts) {
    SCOPED_TRACE(count.query);
    size_t got[3];
    for (Mode mode : {Mode::none, Mode::flow, Mode::full}) {
      Compiled c;
      compile(c, query((std::string(count.query) + ".hir").c_str()), {.mode = mode, .text_codes = true, .tops = false, .joins = false});
      ASSERT_EQ(c.errors, "");
      got[static_cast<size_t>(mode)] = c.outlined.kernels.size();
      expect_round_trip(c);
    }
    EXPECT_EQ(got[0], count.none);
    EXPECT_EQ(got[1], count.flow);
    EXPECT_EQ(got[2], count.full);
    EXPECT_LE(count.full, count.thesis);
  }
}

// A kernel's statements need not stand together: a path from one kernel to another may run through a third that begins before and ends behind it.
// What was merged across such a path waited for itself, and the rest of main was gone.
TEST(Outliner, PathsRunBackThroughKernelsThatSpanOthers) {
  Compiled c;
  compile(c,
          program_text(R"(
    x:i64 = 8:i64;
    y:i64 = 5:i64;
    k:? = @sum(x);
    o:? = @order(y, 1:bool);
    n:? = @len(o);
    p:? = @range(n);
    m:? = @lt(p, 0:i64);
    w:? = @where(m);
    v0:? = @plus(x, k);
    v1:? = @range(k);
    v2:? = @len(w);
    v3:? = @index(w, w);
    v4:? = @index(v3, x);
    v5:? = @index(o, w);
    r:? = @list(v5, v1);
    return r;)",
                       "list<?>"),
          {.tops = false});
  ASSERT_EQ(c.errors, "");
  EXPECT_THAT(c.main(), HasSubstr("return r;"));
  expect_round_trip(c);
}

TEST(Outliner, SameProgramSameText) {
  std::string first;
  for (int round = 0; round < 3; ++round) {
    Compiled c;
    compile(c, query("q06.hir"));
    const std::string text = print(c.outlined.program, true);
    if (round == 0) first = text;
    EXPECT_EQ(text, first);
  }
}

}  // namespace
}  // namespace rndn::test::outliner_test
