// Whole programs: control flow, user functions, globals, casts, positions of run-time errors.
#include <gtest/gtest.h>

#include "frontend/frontend.h"
#include "runtime/reference/reference.h"
#include "tests/reference/notation.h"

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
