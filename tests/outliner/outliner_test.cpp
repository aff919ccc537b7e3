// Shapes, dependences, geometry and fusion by their results: which kernels a program gets, and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libraries/base/files.h"
#include "tests/outliner/compile.h"

namespace rndn::test {
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

// horseir.md, 5.6.
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

// horseir.md, section 9, example A: the scalar division waits for both reductions.
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

TEST(Outliner, OperandsOfDifferentTablesStayOnTheHost) {
  Compiled c;
  compile(c, program_text(std::string(load) + R"(
    u:? = @load_table(`u:sym);
    z:f64 = check_cast(@column_value(u, `z:sym), f64);
    a:? = @mul(v, z);
    return a;)",
                          "f64"));
  ASSERT_EQ(c.errors, "");
  EXPECT_EQ(c.outlined.kernels.size(), 0u);
  EXPECT_THAT(c.main(), HasSubstr("a:f64 = @mul(v, z);"));
  EXPECT_TRUE(c.decided("a", "", false, "its operands' sizes are only known at run time"));
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
    s:? = @each(@sum, e);
    f:? = @raze(s);
    u:? = @index(d, k);
    h:? = @mul(f, 0.5:f64);
    c:? = @list(u, h);
    r:? = @table((`d,`h):sym, c);
    return r;)"));
  ASSERT_EQ(c.errors, "");
  ASSERT_EQ(c.outlined.kernels.size(), 1u) << c.main();
  EXPECT_EQ(c.geometry(0), "dyn(g)");  // as many as there are groups: raze of scalars follows the keys
  for (const char* call :
       {"@group(d)", "@keys(g)", "@values(g)", "@each_right(@index, v, i)", "@each(@sum, e)", "@raze(s)"})
    EXPECT_THAT(c.main(), HasSubstr(call));
  EXPECT_THAT(c.kernel(0), HasSubstr("@index(d, k)"));  // the gather is at the size of its positions
  EXPECT_TRUE(c.decided("g", "", false, "it is an operator of the library"));
  EXPECT_TRUE(c.decided("k", "", false, "it runs on the CPU"));
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
  Compiled without;
  compile(without,
          program_text(std::string(load) + "s:sym = check_cast(@column_value(t, `s:sym), sym);"
                                           "m:? = @eq(s, `AIR:sym); y:? = @compress(m, v); z:? = @sum(y); return z;",
                       "f64"));
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
}  // namespace rndn::test
