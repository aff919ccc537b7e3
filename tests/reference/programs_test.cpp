// Whole programs: control flow, user functions, globals, casts, positions of run-time errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "frontend/frontend.h"
#include "libraries/base/system/files.h"
#include "runtime/reference/reference.h"
#include "tests/reference/notation.h"
#include "tests/support/small_stack.h"

namespace rndn::reference::testing {
namespace {

class NoTables : public Tables {
 public:
  Result<void> open(std::string_view) const override { return usage_error("no --data"); }
  Result<std::vector<std::string>> column_names(std::string_view) const override { return usage_error("no --data"); }
  Result<uint64_t> rows(std::string_view) const override { return usage_error("no --data"); }
  Result<std::shared_ptr<const data::Column>> column(std::string_view, std::string_view) const override {
    return usage_error("no --data");
  }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view) const override {
    return usage_error("no --data");
  }
};

// The results of main, or the diagnostics, or the error.
std::string run_program(const std::string& text, std::string* printed = nullptr) {
  SourceManager sources;
  FileId file = sources.add("p.hir", text);
  DiagnosticSink sink;
  Timings timings;
  hir::Program program = hir::run(file, sources, {}, sink, timings);
  if (sink.has_errors()) return render(sink, sources);
  NoTables tables;
  Result<std::vector<Value>> results = run(program, tables, sources, printed);
  if (!results.ok()) return results.error().message;
  std::string out;
  for (const Value& v : *results) out += (out.empty() ? "" : ", ") + show(v);
  return out;
}

std::string in_main(const std::string& body, const std::string& results = "i64") {
  return "module m {\n import Builtin.*;\n def main() : " + results + " {\n" + body + "}\n}\n";
}

TEST(Programs, StraightLine) {
  EXPECT_EQ(run_program(in_main("  a:i64 = 2:i64;\n  b:? = @plus(a, (1,2,3):i64);\n  s:? = @sum(b);\n  return s;\n")),
            "i64 12");
}

TEST(Programs, WhileRepeatBreakContinueAndTheSink) {
  // 1, 4, 7, ..., tested on odd values only: stops at 25.
  EXPECT_EQ(
      run_program(
          "module m { import Builtin.*; global step:i64 = 3:i64;\n"
          "def halves(x:i64) : i64, bool { two:i64 = 2:i64; rest:? = @mod(x, two); even:? = @eq(rest, 0:i64); return "
          "rest, even; }\n"
          "def main() : i64 { n:i64 = 1:i64; var e:bool; go:bool = @lt(n, 20:i64);\n"
          "while (go) { n = @plus(n, step); _, e = @halves(n); if (e) continue; go = @lt(n, 20:i64); } return n; } }"),
      "i64 25");
  EXPECT_EQ(run_program(in_main("  n:i64 = 0:i64; var stop:bool;\n  repeat (10:i64) { n = @plus(n, 2:i64); stop = "
                                "@gt(n, 7:i64); if (stop) break; }\n  return n;\n")),
            "i64 8");
  EXPECT_EQ(run_program(in_main("  n:i64 = 5:i64;\n  repeat (-3:i64) { n = 6:i64; }\n  return n;\n")), "i64 5");
}

// The columns have the types that their fields show, or the one that a cast or a declaration names.
TEST(Programs, LoadCsvIsTypedByItsFieldsOrByItsUse) {
  std::string path = ::testing::TempDir() + "rndn_load.csv";
  ASSERT_TRUE(write_file(path, "code,n,price,day\n007,1,2.5,1998-09-02\n12,,3,1998-09-03\n").ok());
  auto column = [&](const std::string& use, const std::string& type) {
    return run_program(in_main(fmt::format("  t:? = @load_csv(\"{}\":str);\n  {}\n  return x;\n", path, use), type));
  };
  const std::string missing =
      fmt::format("p.hir:5:3: error: {}:3:4: column `n` has no value here; HorseIR has no missing values; `@column_value(t, c, 1:bool)` has zeros there", path);
  EXPECT_EQ(column("x:f64 = @column_value(t, `price:sym);", "f64"), "f64 2.5 3");
  EXPECT_EQ(column("x:i64 = @column_value(t, `n:sym);", "i64"), missing);
  EXPECT_EQ(column("x:i8 = @column_value(t, `n:sym);", "i8"), missing);
  EXPECT_EQ(column("x:? = check_cast(@column_value(t, `n:sym), f64);", "f64"), missing);
  EXPECT_EQ(column("x:sym = @column_value(t, `n:sym);", "sym"), "sym 1 ''");  // the way to read it all the same
  EXPECT_EQ(column("x:? = check_cast(@column_value(t, `n:sym), str);", "str"), "str 1 ''");
  EXPECT_EQ(column("x:? = check_cast(@column_value(t, `code:sym), sym);", "sym"), "sym 007 12");
  EXPECT_EQ(column("x:? = check_cast(@column_value(t, `code:sym), i16);", "i16"), "i16 7 12");
  EXPECT_EQ(column("x:i16 = @column_value(t, `code:sym);", "i16"), "i16 7 12");
  EXPECT_EQ(column("x:str = @column_value(t, `price:sym);", "str"), "str 2.5 3");
  EXPECT_EQ(column("x:date = @column_value(t, `day:sym);", "date"), "date 10471 10472");
  EXPECT_EQ(column("x:? = @keys(t);", "sym"), "sym code n price day");
  EXPECT_EQ(column("x:? = @len(t);", "i64"), "i64 2");
  EXPECT_EQ(column("m:? = @meta(t); x:sym = @column_value(m, `type:sym);", "sym"), "sym sym i64 f64 date");
  EXPECT_EQ(column("x:? = check_cast(@column_value(t, `price:sym), i32);", "i32"),
            fmt::format("p.hir:5:3: error: {}:2:7: expected an i32 for `price`, found `2.5`", path));
  EXPECT_EQ(column("x:? = check_cast(@column_value(t, `nosuch:sym), i32);", "i32"),
            "p.hir:5:3: error: table `rndn_load` has no column `nosuch`; there are `code`, `n`, `price`, `day`");
  EXPECT_EQ(run_program(in_main("  t:? = @load_csv(\"/no/such\":str);\n  n:? = @len(t);\n  return n;\n")),
            "p.hir:4:3: error: cannot read `/no/such`: No such file or directory");
  unlink(path.c_str());
}

// Every run starts with the same random numbers: none hears of the seeds and draws of those before it.
TEST(Programs, RandomNumbersBelongToTheRun) {
  std::string text = in_main("  a:i64 = @rand(1000000:i64);\n  @seed(7:i64);\n  return a;\n");
  std::string first = run_program(text);
  EXPECT_EQ(run_program(text), first);
  EXPECT_NE(first, run_program(in_main("  @seed(7:i64);\n  a:i64 = @rand(1000000:i64);\n  return a;\n")));
}

TEST(Programs, BoundsEndARun) {
  SourceManager sources;
  FileId file =
      sources.add("p.hir", in_main("  x:? = 1:i64;\n  while (1:bool) { x = @plus(x, 1:i64); }\n  return x;\n"));
  DiagnosticSink sink;
  Timings timings;
  hir::Program program = hir::run(file, sources, {}, sink, timings);
  ASSERT_FALSE(sink.has_errors()) << render(sink, sources);
  RunState state;
  state.steps = 1000;
  Result<std::vector<Value>> results = run(program, NoTables(), sources, nullptr, &state);
  ASSERT_FALSE(results.ok());
  EXPECT_EQ(results.error().message, "p.hir:5:20: error: the program takes more steps than it may");
}

TEST(Programs, Recursion) {
  EXPECT_EQ(run_program("module m { import Builtin.*;\n"
                        "def fib(n:i64) : i64 { small:bool = @lt(n, 2:i64); if (small) { return n; } a:i64 = @minus(n, "
                        "1:i64); b:i64 = @minus(n, 2:i64);\n"
                        " x:i64 = @fib(a); y:i64 = @fib(b); z:i64 = @plus(x, y); return z; }\n"
                        "def main() : i64 { r:i64 = @fib(12:i64); return r; } }"),
            "i64 144");
  std::string endless = run_program(
      "module m { def f(n:i64) : i64 { r:i64 = @f(n); return r; } def main() : i64 { r:i64 = @f(1:i64); return r; } }");
  EXPECT_NE(endless.find("calls itself more than 1000 times deep"), std::string::npos) << endless;
}

// Blocks within blocks around a call, or casts around casts.
std::string times(size_t n, const std::string& open, const std::string& inner, const std::string& close) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += open;
  out += inner;
  for (size_t i = 0; i < n; ++i) out += close;
  return out;
}
// Counts down to 1 by `call`, which assigns f(m) to y.
std::string countdown(const std::string& call, int from) {
  return "module m { import Builtin.*;\n def f(n:i64) : i64 { x:i64 = 1:i64; more:bool = @gt(n, 1:i64);\n"
         " if (more) { m:i64 = @minus(n, 1:i64); y:i64 = 0:i64;\n " +
         call + "\n x = @plus(y, 1:i64); } return x; }\n def main() : i64 { r:i64 = @f(" + std::to_string(from) +
         ":i64); return r; } }";
}
std::string on_small_stack(const std::string& text) {
  std::string said;
  EXPECT_TRUE(on_own_stack(rndn::test::small_stack, [&] { said = run_program(text); }));
  return said;
}

// The limit of calls holds whatever stands around them, and in any thread; what is within it runs.
TEST(Programs, DeepRecursionEndsAsAnErrorAndNotBefore) {
  const std::vector<std::string> calls = {
      "y = @f(m);",
      times(5, "if (1:bool) { ", "y = @f(m);", " }"),
      times(190, "if (1:bool) { ", "y = @f(m);", " }"),
      times(190, "if (0:bool) { } else { ", "y = @f(m);", " }"),
      times(190, "{ ", "y = @f(m);", " }"),
      times(190, "repeat (1:i64) { ", "y = @f(m);", " }"),
      times(190, "while (1:bool) { ", "y = @f(m);", " break; }"),
      "y = " + times(190, "check_cast(", "@f(m)", ", i64)") + ";",
      "y = @each(@f, m);",
      "l:list<i64> = @list(m); e:list<i64> = @each(@f, l); y = @raze(e);",
  };
  for (const std::string& call : calls) {
    SCOPED_TRACE(call.substr(0, 60));
    EXPECT_EQ(on_small_stack(countdown(call, 900)), "i64 900");
    EXPECT_THAT(on_small_stack(countdown(call, 1100)),
                ::testing::HasSubstr("`f` calls itself more than 1000 times deep"));
  }
}

TEST(Programs, ALongChainOfFunctionsIsNoRecursion) {
  const auto chain = [](int functions) {
    std::string text = "module m { import Builtin.*;\n";
    for (int i = 0; i < functions; ++i)
      text += fmt::format("def f{}(n:i64) : i64 {{ x:i64 = @f{}(n); return x; }}\n", i, i + 1);
    return text +
           fmt::format("def f{}(n:i64) : i64 {{ return n; }}\n def main() : i64 {{ r:i64 = @f0(7:i64); return r; }} }}",
                       functions);
  };
  EXPECT_EQ(on_small_stack(chain(998)), "i64 7");
  EXPECT_THAT(
      on_small_stack(chain(3000)),
      ::testing::EndsWith("error: calls are nested more than 1000 deep: the last are `f998` and `f999`, which it "
                          "calls"));
}

TEST(Programs, ValuesNestSoDeep) {
  const auto nested = [](int rounds, const std::string& more) {
    return in_main("  x:list<?> = @list(1:i64);\n  repeat (" + std::to_string(rounds) + ":i64) { x = " + more +
                   "; }\n  n:i64 = @len(x);\n  return n;\n");
  };
  for (const std::string& more : {"@list(x)", "@list(x, x)", "@list(1:i64, x)"}) {
    EXPECT_EQ(on_small_stack(nested(199, more)), more == "@list(x)" ? "i64 1" : "i64 2");
    EXPECT_THAT(on_small_stack(nested(300000, more)),
                ::testing::HasSubstr("error: `list` makes a value whose parts are nested more than 200 deep"));
  }
}

TEST(Programs, GlobalsAreOneWhoeverReadsThem) {
  const std::string text =
      "module m { import Builtin.*; global g:i64 = 1:i64; global first:i64 = g;\n"
      "def f(x:i64) : i64 { y:i64 = @plus(x, g); return y; }\n"
      "def set(x:i64) : i64 { g = x; return x; }\n"
      "def main() : i64, i64, i64, i64 { g = 10:i64; a:i64 = @f(1:i64); l:list<i64> = @tolist((1,2):i64);\n"
      "  e:list<i64> = @each(@f, l); s:? = @raze(e); b:i64 = @sum(s);\n"
      "  l = @each(@set, l); c:i64 = @f(1:i64); return a, b, c, first; } }";
  EXPECT_EQ(run_program(text), "i64 11, i64 23, i64 3, i64 1");
}

TEST(Programs, GlobalsOfGlobals) {
  const auto chain = [](const std::string& type, const std::string& last) {
    std::string text = "module m {\n";
    for (int i = 0; i < 100000; ++i) text += fmt::format("global g{}:{} = g{};\n", i, type, i + 1);
    return text + fmt::format("global g100000:{} = {};\n def main() : i64 {{ x:i64 = g0; return x; }} }}", type, last);
  };
  for (const char* type : {"i64", "?"}) {
    EXPECT_EQ(on_small_stack(chain(type, "7:i64")), "i64 7");
    EXPECT_THAT(on_small_stack(chain(type, "g99990")), ::testing::HasSubstr("depends on itself"));
  }
}

TEST(Programs, EachWithAUserFunction) {
  EXPECT_EQ(
      run_program(
          "module m { import Builtin.*;\n"
          "def double(x:i64) : i64 { y:i64 = @plus(x, x); return y; }\n"
          "def main() : i64 { l:? = @list((1,2):i64, 3:i64); e:? = @each(@double, l); r:? = @raze(e); return r; } }"),
      "i64 2 4 6");
}

TEST(Programs, SumWidensToItsDeclaredType) {
  EXPECT_EQ(run_program(in_main("  s:i64 = @sum((2147483647, 1):i32);\n  return s;\n")), "i64 2147483648");
}

TEST(Programs, RunTimeErrorsCarryTheirPosition) {
  EXPECT_EQ(run_program(in_main("  z:? = @minus(1:i64, 1:i64);\n  q:? = @div(1:i64, z);\n  return q;\n")),
            "p.hir:5:3: error: `div` divides by zero at element 0");
}

TEST(Programs, PrintedTextComesOut) {
  std::string printed;
  EXPECT_EQ(run_program(in_main("  @print(\"hello\":str);\n  @print((1,2):i64);\n  return 7:i64;\n"), &printed),
            "i64 7");
  EXPECT_EQ(printed, "hello\n(1,2)\n");
}

TEST(Casts, ConvertByTheTable) {
  hir::TypeTable types;
  auto cast = [&](const char* value, hir::BasicType to, bool strict) {
    Result<Value> r = check_cast(parse(value), types, types.basic(to), strict);
    return r.ok() ? show(*r) : "error: " + r.error().message;
  };
  using B = hir::BasicType;
  EXPECT_EQ(cast("i32 1 -2", B::i64, true), "i64 1 -2");
  EXPECT_EQ(cast("i64 1", B::i32, true), "error: cannot cast i64[1] to i32");
  EXPECT_EQ(cast("i32 0 7", B::boolean, true), "bool 0 1");
  EXPECT_EQ(cast("f32 2.9 -2.9", B::i32, true), "i32 2 -2");
  EXPECT_EQ(cast("f64 2.9", B::i32, true), "error: cannot cast f64[1] to i32");
  EXPECT_EQ(cast("f64 2.9 nan 1e300", B::i64, true), "i64 2 0 9223372036854775807");
  EXPECT_EQ(cast("i64 3", B::f32, true), "f32 3");
  EXPECT_EQ(cast("sym a", B::str, true), "str a");
  EXPECT_EQ(cast("sym a", B::i64, true), "error: cannot cast sym[1] to i64");
  EXPECT_EQ(cast("date 1", B::i32, true), "error: cannot cast date[1] to i32");
  // Lenient: a cast that disagrees with a column keeps the column.
  EXPECT_EQ(cast("sym a", B::i64, false), "sym a");
  EXPECT_EQ(cast("f64 2.9", B::i64, false), "f64 2.9");
  EXPECT_EQ(cast("<i32 10 20; i64 1 0>", B::i32, false), "i32 20 10");
  EXPECT_EQ(cast("i32 3", B::f64, false), "f64 3");
}

}  // namespace
}  // namespace rndn::reference::testing
