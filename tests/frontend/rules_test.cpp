// Type rules, checked call by call: what each builtin makes of argument types (docs/horseir.md),
// and what it refuses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "frontend/builtins.h"
#include "tests/frontend/support.h"

namespace rndn::hir {
namespace {

// The type of `@name(arguments)`: letters a, b, c, ... in `arguments` are parameters of the types given. The call stands in a
// function that nothing calls, so the types are exactly those. "error" when the call is refused.
std::string result_of(const std::string& parameters, const std::string& call, bool strict = false) {
  Outcome out = run_text(
      "rule.hir", fmt::format("// test:{}\nmodule m {{ import Builtin.*; def one(x:i64) : f32 {{ return 1:f32; }} "
                              "def main() {{ }} def f({}) {{ r:? = {}; }} }}",
                              strict ? " strict" : "", parameters, call));
  if (!out.ok) return "error";
  for (const Function& f : out.program.functions)
    for (const Variable& v : f.variables)
      if (out.program.text(v.name) == "r") return out.program.types->text(v.type);
  return "no result";
}

struct Case {
  const char* parameters;
  const char* call;
  const char* result;
};

TEST(Rules, ResultTypes) {
  const Case cases[] = {
      // Unary.
      {"a:i8", "@abs(a)", "i8"},
      {"a:f32", "@abs(a)", "f32"},
      {"a:sym", "@abs(a)", "error"},
      {"a:date", "@abs(a)", "error"},
      {"a:bool", "@neg(a)", "i16"},
      {"a:char", "@neg(a)", "char"},
      {"a:i64", "@neg(a)", "i64"},
      {"a:i32", "@ceil(a)", "i32"},
      {"a:f64", "@round(a)", "f64"},
      {"a:complex", "@floor(a)", "error"},
      {"a:complex", "@conj(a)", "complex"},
      {"a:f64", "@conj(a)", "error"},
      {"a:i32", "@recip(a)", "f32"},
      {"a:i64", "@recip(a)", "f64"},
      {"a:bool", "@sqrt(a)", "f32"},
      {"a:f64", "@log(a)", "f64"},
      {"a:str", "@exp(a)", "error"},
      {"a:f64", "@signum(a)", "i16"},
      {"a:complex", "@signum(a)", "error"},
      {"a:complex", "@pi(a)", "complex"},
      {"a:i16", "@pi(a)", "f32"},
      {"a:bool", "@not(a)", "bool"},
      {"a:i32", "@not(a)", "error"},
      {"a:dt", "@date(a)", "date"},
      {"a:date", "@date(a)", "error"},
      {"a:month", "@date_year(a)", "i16"},
      {"a:dt", "@date_month(a)", "i16"},
      {"a:time", "@date_year(a)", "error"},
      {"a:month", "@date_day(a)", "error"},
      {"a:date", "@date_day(a)", "i16"},
      {"a:dt", "@time(a)", "time"},
      {"a:minute", "@time_hour(a)", "i16"},
      {"a:date", "@time_hour(a)", "error"},
      {"a:minute", "@time_second(a)", "error"},
      {"a:second", "@time_second(a)", "i16"},
      {"a:second", "@time_mill(a)", "error"},
      {"a:time", "@time_mill(a)", "i16"},
      // Comparisons.
      {"a:i8, b:f64", "@lt(a, b)", "bool"},
      {"a:char, b:char", "@eq(a, b)", "bool"},
      {"a:sym, b:sym", "@geq(a, b)", "bool"},
      {"a:sym, b:str", "@lt(a, b)", "error"},
      {"a:sym, b:str", "@eq(a, b)", "bool"},
      {"a:date, b:date", "@leq(a, b)", "bool"},
      {"a:date, b:dt", "@leq(a, b)", "error"},
      {"a:date, b:i32", "@eq(a, b)", "error"},
      {"a:complex, b:complex", "@eq(a, b)", "bool"},
      {"a:complex, b:complex", "@lt(a, b)", "error"},
      {"a:list<i32>, b:i32", "@eq(a, b)", "error"},
      // Arithmetic.
      {"a:i32, b:f64", "@plus(a, b)", "f64"},
      {"a:i64, b:f32", "@plus(a, b)", "f32"},
      {"a:bool, b:bool", "@plus(a, b)", "i16"},
      {"a:bool, b:f64", "@mul(a, b)", "f64"},
      {"a:char, b:i8", "@plus(a, b)", "i8"},
      {"a:date, b:i64", "@plus(a, b)", "date"},
      {"a:i64, b:month", "@plus(a, b)", "month"},
      {"a:date, b:f64", "@plus(a, b)", "error"},
      {"a:date, b:date", "@plus(a, b)", "error"},
      {"a:date, b:date", "@minus(a, b)", "i32"},
      {"a:dt, b:dt", "@minus(a, b)", "i64"},
      {"a:time, b:time", "@minus(a, b)", "i32"},
      {"a:i32, b:date", "@minus(a, b)", "error"},
      {"a:month, b:i8", "@minus(a, b)", "month"},
      {"a:date, b:month", "@minus(a, b)", "error"},
      {"a:complex, b:i32", "@mul(a, b)", "complex"},
      {"a:i32, b:i64", "@div(a, b)", "i64"},
      {"a:sym, b:sym", "@div(a, b)", "error"},
      {"a:bool, b:bool", "@mod(a, b)", "i16"},
      {"a:complex, b:i32", "@mod(a, b)", "error"},
      {"a:i32, b:i32", "@power(a, b)", "f32"},
      {"a:i32, b:i64", "@power(a, b)", "f64"},
      {"a:f32, b:f64", "@logb(a, b)", "f64"},
      {"a:i64, b:f32", "@logb(a, b)", "f32"},
      {"a:bool, b:bool", "@xor(a, b)", "bool"},
      {"a:bool, b:i8", "@and(a, b)", "error"},
      {"a:dt, b:dt", "@datetime_diff(a, b)", "i64"},
      {"a:date, b:dt", "@datetime_diff(a, b)", "error"},
      {"a:dt, b:i64", "@datetime_add(a, b, `mill:sym)", "dt"},
      {"a:month, b:i64", "@datetime_add(a, b, `day:sym)", "error"},
      {"a:time, b:i64, c:sym", "@datetime_sub(a, b, c)", "time"},
      {"a:second, b:i64", "@datetime_sub(a, b, `mill:sym)", "error"},
      // Algebraic.
      {"a:str", "@unique(a)", "i64"},
      {"a:list<i32>", "@unique(a)", "error"},
      {"a:i8", "@range(a)", "i64"},
      {"a:f32", "@range(a)", "error"},
      {"a:i16", "@fact(a)", "i64"},
      {"a:i32", "@rand(a)", "i64"},
      {"a:i32, b:i64", "@randk(a, b)", "i64"},
      {"a:i32, b:f64", "@randk(a, b)", "error"},
      {"a:i32", "@seed(a)", "i64"},
      {"a:list<i32,sym>", "@flip(a)", "list<sym,i32>"},
      {"a:i32", "@flip(a)", "error"},
      {"a:time", "@reverse(a)", "time"},
      {"a:bool", "@where(a)", "i64"},
      {"a:i64", "@where(a)", "error"},
      {"a:sym", "@group(a)", "dict<i64,i64>"},
      {"a:list<sym,f64>", "@group(a)", "dict<i64,i64>"},
      {"a:table", "@group(a)", "error"},
      {"a:i8, b:f32", "@append(a, b)", "f32"},
      {"a:bool, b:bool", "@append(a, b)", "bool"},
      {"a:sym, b:str", "@append(a, b)", "error"},
      {"a:list<i32>, b:i32", "@append(a, b)", "list<i32>"},
      {"a:f64, b:list<i32,sym>", "@append(a, b)", "list<f64,i32,sym>"},
      {"a:list<i32>, b:list<f64>", "@append(a, b)", "list<?>"},
      {"a:enum<i32>, b:i32", "@append(a, b)", "enum<i32>"},
      {"a:enum<i32>, b:i64", "@append(a, b)", "error"},
      {"a:i64, b:sym", "@replicate(a, b)", "list<sym>"},
      {"a:i64, b:list<sym>", "@replicate(a, b)", "list<sym>"},
      {"a:sym, b:str", "@like(a, b)", "bool"},
      {"a:char, b:str", "@like(a, b)", "error"},
      {"a:bool, b:date", "@compress(a, b)", "date"},
      {"a:bool, b:enum<i32>", "@compress(a, b)", "enum<i32>"},
      {"a:i32, b:date", "@compress(a, b)", "error"},
      {"a:bool, b:list<i32>", "@compress(a, b)", "error"},
      {"a:i32, b:f64", "@index_of(a, b)", "i64"},
      {"a:date, b:i32", "@index_of(a, b)", "error"},
      {"a:date, b:i32", "@GPU.probe(0:i64, b, a, b, a)", "i64"},
      {"a:date, b:i32", "@GPU.probe(0:i64, b, a, a, b)", "error"},
      {"a:date, b:i32", "@GPU.probe(0:i64, b, a, b)", "error"},
      {"a:date, b:i32, m:bool", "@GPU.probe(0:i64, b, a, m, b, a)", "i64"},
      {"a:date, b:i32, m:bool", "@GPU.probe(0:i64, b, m, a)", "error"},
      {"a:date, b:i64", "@GPU.fold(b, @sum, 0:i64, a, b)", "i64"},
      {"a:date, b:i64", "@GPU.fold(a, @max, 0:i64, b)", "date"},
      {"a:date, b:i64", "@GPU.fold(a, @sum, 0:i64, b)", "error"},
      {"a:date, b:i64", "@GPU.fold(b, @avg, 0:i64, a)", "error"},
      {"a:f64, b:i64", "@GPU.fold(b, @len, 0:i64, a)", "error"},
      {"a:f64, b:i64", "@GPU.sum_part(a, 2:i64)", "i64"},
      {"a:f64, b:i64", "@GPU.sum_part(a, 3:i64)", "i64"},
      {"a:f64, b:i64", "@GPU.sum_part(a, 4:i64)", "error"},
      {"a:f64, b:i64", "@GPU.sum_part(a, b)", "error"},
      {"a:f32, b:i64", "@GPU.sum_part(a, 0:i64)", "error"},
      {"a:f32", "@GPU.order_key(a, 0:i64)", "i32"},
      {"a:f64", "@GPU.order_key(a, 1:i64)", "i64"},
      {"a:f64", "@GPU.order_key(a, 2:i64)", "error"},
      {"a:f64, b:i64", "@GPU.order_key(a, b)", "error"},
      {"a:i64", "@GPU.order_key(a, 0:i64)", "error"},
      {"a:i32", "@GPU.of_order_key(a)", "f32"},
      {"a:i64", "@GPU.of_order_key(a)", "f64"},
      {"a:i16", "@GPU.of_order_key(a)", "error"},
      {"a:f64, b:i64", "@GPU.sum_of_parts(b, b, b)", "error"},
      {"a:f64, b:i64", "@GPU.sum_of_parts(b, b, b, b)", "f64"},
      {"a:f64, b:i64", "@GPU.sum_of_parts(b, a, b, b)", "error"},
      {"a:f64, b:i64", "@GPU.sum_of_parts(b, b, b, a)", "error"},
      {"a:i32, b:sym", "@take(a, b)", "sym"},
      {"a:f32, b:sym", "@drop(a, b)", "error"},
      {"a:i64, b:bool", "@vector(a, b)", "bool"},
      {"a:sym, b:bool", "@order(a, b)", "i64"},
      {"a:list<sym,date>, b:bool", "@order(a, b)", "i64"},
      {"a:complex, b:bool", "@order(a, b)", "error"},
      {"a:i32, b:i32", "@order(a, b)", "error"},
      {"a:sym, b:str", "@member(a, b)", "bool"},
      {"a:date, b:date", "@member(a, b)", "bool"},
      {"a:date, b:dt", "@member(a, b)", "error"},
      // Reductions.
      {"a:list<?>", "@len(a)", "i64"},
      {"a:ktable", "@len(a)", "i64"},
      {"a:bool", "@sum(a)", "i32"},
      {"a:i32", "@sum(a)", "i32"},
      {"a:i64", "@sum(a)", "i64"},
      {"a:f32", "@sum(a)", "f32"},
      {"a:date", "@sum(a)", "error"},
      {"a:i32", "@avg(a)", "f32"},
      {"a:i64", "@avg(a)", "f64"},
      {"a:char", "@min(a)", "char"},
      {"a:date", "@max(a)", "date"},
      {"a:sym", "@max(a)", "error"},
      {"a:bool", "@any(a)", "bool"},
      {"a:i8", "@all(a)", "error"},
      // Indexing and lists.
      {"a:sym, b:bool", "@index(a, b)", "sym"},
      {"a:list<f64>, b:i64", "@index(a, b)", "f64"},
      {"a:list<f64,sym>", "@index(a, 1:i32)", "sym"},
      {"a:list<f64,sym>, b:i32", "@index(a, b)", "error"},
      {"a:enum<i32>, b:i32", "@index(a, b)", "enum<i32>"},
      {"a:dict<i32,i32>, b:i32", "@index(a, b)", "error"},
      {"a:bool, b:f64, c:f64", "@select(a, b, c)", "f64"},
      {"a:bool, b:sym, c:sym", "@select(a, b, c)", "sym"},
      {"a:i32, b:f64, c:f64", "@select(a, b, c)", "error"},
      {"a:bool, b:i32, c:i64", "@select(a, b, c)", "error"},
      {"a:bool, b:str", "@require(a, b, `message:sym)", "str"},
      {"a:bool, b:f64, c:sym", "@require(a, b, c)", "f64"},
      {"a:bool, b:f64", "@require(a, b, (`one,`two):sym)", "error"},
      {"a:i32, b:f64", "@require(a, b, `message:sym)", "error"},
      {"a:bool, b:f64", "@require(a, b, 1:i64)", "error"},
      {"a:date, b:i32, c:date", "@index_or(a, b, c)", "date"},
      {"a:f64, b:i64, c:f32", "@index_or(a, b, c)", "error"},
      {"a:f64, b:f64, c:f64", "@index_or(a, b, c)", "error"},
      {"a:f64, b:i64, c:i8", "@index_a(a, b, c)", "f64"},
      {"a:i8, b:i64, c:f64", "@index_a(a, b, c)", "error"},
      {"a:sym, b:i64, c:sym", "@index_a(a, b, c)", "sym"},
      {"", "@list()", "list<?>"},
      {"a:i32", "@list(a)", "list<i32>"},
      {"a:i32, b:bool", "@scan_sum(a, b)", "i64"},
      {"a:f32, b:bool", "@scan_sum(a, b)", "f32"},
      {"a:i128, b:bool", "@scan_sum(a, b)", "i128"},
      {"a:date, b:bool", "@scan_sum(a, b)", "error"},
      {"a:date, b:bool", "@scan_min(a, b)", "date"},
      {"a:i16, b:bool", "@scan_max(a, b)", "i16"},
      {"a:i16, b:i32", "@scan_max(a, b)", "error"},
      {"a:sym, b:bool", "@scan_max(a, b)", "error"},
      {"a:i32", "@enlist(a)", "list<i32>"},
      {"a:i32, b:i32", "@list(a, b)", "list<i32>"},
      {"a:i32, b:sym", "@list(a, b)", "list<i32,sym>"},
      {"a:i32", "@list(a, @len)", "error"},
      {"a:list<date>", "@raze(a)", "date"},
      {"a:list<i32,f64>", "@raze(a)", "f64"},
      {"a:list<i32,date>", "@raze(a)", "error"},
      {"a:i32", "@raze(a)", "i32"},
      {"a:list<?>", "@raze(a)", "error"},
      {"a:sym", "@tolist(a)", "list<sym>"},
      {"a:list<i64>", "@each(@sum, a)", "list<i64>"},
      {"a:list<i32,f64>", "@each(@sum, a)", "list<i32,f64>"},
      {"a:list<i32,f64>", "@each(@len, a)", "list<i64>"},
      {"a:list<i64>", "@each(@one, a)", "list<f32>"},
      {"a:list<i32>", "@each(@one, a)", "error"},
      {"a:list<i64>, b:list<f64>", "@each_item(@plus, a, b)", "list<f64>"},
      {"a:list<i64>, b:f64", "@each_left(@plus, a, b)", "list<f64>"},
      {"a:f64, b:list<i64>", "@each_right(@index, a, b)", "list<f64>"},
      {"a:i64, b:list<f64>", "@each_right(@index, a, b)", "error"},
      {"a:i32", "@each(@neg, a)", "i32"},
      {"a:i32, b:f32", "@match(a, b)", "bool"},
      {"a:list<i32>, b:list<i32>", "@match(a, b)", "bool"},
      {"a:sym, b:i32", "@match(a, b)", "error"},
      // Database.
      {"a:sym", "@load_table(a)", "table"},
      {"a:str", "@load_table(a)", "error"},
      {"a:table, b:sym", "@column_value(a, b)", "error"},
      {"a:table, b:sym", "check_cast(@column_value(a, b), f64)", "f64"},
      {"a:table, b:sym", "check_cast(@column_value(a, b, 1:bool), f64)", "f64"},
      {"a:table, b:sym, c:bool", "check_cast(@column_value(a, b, c), f64)", "error"},
      {"a:table, b:sym", "check_cast(@column_value(a, b, 1:i32), f64)", "error"},
      {"a:table, b:sym", "check_cast(@column_value(a, b, (1,0):bool), f64)", "error"},
      {"a:table, b:sym", "@column_valid(a, b)", "bool"},
      {"a:table, b:str", "@column_valid(a, b)", "error"},
      {"a:table", "@column_valid(a, (`x,`y):sym)", "error"},
      {"a:ktable, b:sym", "@column_valid(a, b)", "error"},
      {"a:sym, b:list<i32>", "@table(a, b)", "table"},
      {"a:sym, b:list<i32,enum<i32>>", "@table(a, b)", "table"},
      {"a:sym, b:list<list<i32>>", "@table(a, b)", "error"},
      {"a:table, b:table", "@ktable(a, b)", "ktable"},
      {"a:table, b:ktable", "@ktable(a, b)", "error"},
      {"a:sym, b:sym", "@enum(a, b)", "enum<sym>"},
      {"a:sym, b:str", "@enum(a, b)", "error"},
      {"a:sym, b:list<i32>", "@dict(a, b)", "dict<sym,list<i32>>"},
      {"a:i64, b:list<i64>", "@dict(a, b)", "dict<i64,i64>"},
      {"a:dict<i64,list<i64>>", "@values(a)", "list<i64>"},
      {"a:dict<i64,list<i64>>", "@keys(a)", "i64"},
      {"a:dict<table,i64>", "@keys(a)", "list<table>"},
      {"a:dict<list<sym>,i64>", "@keys(a)", "list<sym>"},
      {"a:table", "@keys(a)", "sym"},
      {"a:table", "@values(a)", "list<?>"},
      {"a:ktable", "@keys(a)", "table"},
      {"a:enum<sym>", "@keys(a)", "sym"},
      {"a:enum<sym>", "@values(a)", "i64"},
      {"a:enum<sym>", "@fetch(a)", "sym"},
      {"a:enum<?>", "@fetch(a)", "error"},
      {"a:i32", "@fetch(a)", "error"},
      {"a:ktable", "@meta(a)", "table"},
      {"a:i32", "@meta(a)", "error"},
      {"a:i32, b:i64", "@join_index(@eq, a, b)", "list<i64>"},
      {"a:i32, b:sym", "@join_index(@eq, a, b)", "error"},
      {"a:list<i32,sym>, b:list<i64,sym>", "@join_index(@lt, @eq, a, b)", "list<i64>"},
      {"a:list<i32,sym>, b:list<i64,sym>", "@join_index(@eq, a, b)", "list<i64>"},
      {"a:list<i32,sym>, b:list<sym,i64>", "@join_index(@eq, a, b)", "error"},
      {"a:list<i32,sym>, b:list<i32,sym,f64>", "@join_index(@eq, a, b)", "error"},
      {"a:i32, b:i32", "@join_index(@one, a, b)", "error"},
      {"a:str", "@load_csv(a)", "table"},
      {"a:dict<i32,i32>", "@print(a)", "i64"},
      {"a:table", "@str(a)", "str"},
      {"a:sym, b:i64", "@sub_string(a, b)", "sym"},
      {"a:i64, b:i64", "@sub_string(a, b)", "error"},
      {"a:sym", "@text_map(`upper:sym, a)", "sym"},
      {"a:str", "@text_map(`length:sym, a)", "i64"},
      {"a:i32", "@text_map(`of_integer:sym, a)", "str"},
      {"a:char, b:str", "@text_map(`like:sym, a, b)", "bool"},
      {"a:str, b:i64", "@text_map(`upper:sym, b)", "error"},
      {"a:str", "@text_map(`upper:sym, a, a)", "error"},
      {"a:str", "@text_map(`nothing:sym, a)", "error"},
      {"a:str, b:sym", "@text_map(b, a)", "error"},
      {"a:str", "@text_valid(`to_date:sym, a)", "bool"},
      {"a:i64", "@text_valid(`to_date:sym, a)", "error"},
      {"a:str, b:bool, c:list<i64>", "@text_join(a, b, c, \",\":str)", "str"},
      {"a:str, b:i64, c:list<i64>", "@text_join(a, b, c, \",\":str)", "error"},
      // Casts.
      {"a:i64", "check_cast(a, i32)", "error"},
      {"a:i32", "check_cast(a, i64)", "i64"},
      {"a:i64", "check_cast(a, bool)", "bool"},
      {"a:bool", "check_cast(a, i8)", "i8"},
      {"a:f64", "check_cast(a, i64)", "i64"},
      {"a:f64", "check_cast(a, i32)", "error"},
      {"a:f64", "check_cast(a, f32)", "f32"},
      {"a:f32", "check_cast(a, i32)", "i32"},
      {"a:i64", "check_cast(a, f32)", "f32"},
      {"a:f32", "check_cast(a, bool)", "error"},
      {"a:sym", "check_cast(a, str)", "str"},
      {"a:sym", "check_cast(a, i64)", "error"},
      {"a:date", "check_cast(a, i32)", "error"},
      {"a:enum<i32>", "check_cast(a, enum)", "enum<i32>"},
      {"a:list<i32>", "check_cast(a, list<?>)", "list<i32>"},
      {"a:list<i32>", "check_cast(a, list<i64>)", "error"},
  };
  for (const Case& c : cases) EXPECT_EQ(result_of(c.parameters, c.call), c.result) << c.parameters << " |- " << c.call;
  EXPECT_EQ(result_of("a:sym, b:str", "@eq(a, b)", true), "error");
  EXPECT_EQ(result_of("a:sym, b:sym", "@eq(a, b)", true), "bool");
  // Every builtin occurs above, so that a row without a tested rule is noticed.
  std::set<std::string> seen;
  for (const Case& c : cases) {
    std::string call = c.call;
    for (size_t at = call.find('@'); at != std::string::npos; at = call.find('@', at + 1))
      seen.insert(call.substr(at + 1, call.find_first_of("(,)", at) - at - 1));
  }
  const std::set<std::string> same_rule = {"gt",   "neq",  "or",    "nand",  "nor",   "log2",       "log10",
                                           "cos",  "sin",  "tan",   "acos",  "asin",  "atan",       "cosh",
                                           "sinh", "tanh", "acosh", "asinh", "atanh", "time_minute"};
  for (std::string_view name : builtin_names())
    EXPECT_TRUE(seen.contains(std::string(name)) || same_rule.contains(std::string(name))) << name;
}

TEST(Rules, EveryBuiltinRefusesAWrongNumberOfArguments) {
  for (std::string_view name : builtin_names()) {
    Builtin b;
    ASSERT_TRUE(find_builtin(name, b));
    EXPECT_EQ(row(b).name, name);
    if (row(b).min_arity > 0) {
      Outcome out = run_text("a.hir", fmt::format("module m {{ import Builtin.*; def main() {{ @{}(); }} }}", name));
      EXPECT_EQ(out.kinds.empty() ? std::string() : out.kinds[0], "arity") << name;
    }
    if (row(b).max_arity != 255) {
      std::string many = "1:i32";
      for (int i = 0; i < row(b).max_arity; ++i) many += ", 1:i32";
      Outcome out =
          run_text("a.hir", fmt::format("module m {{ import Builtin.*; def main() {{ @{}({}); }} }}", name, many));
      EXPECT_EQ(out.kinds.empty() ? std::string() : out.kinds[0], "arity") << name;
    }
  }
}

// Without libdevice these have no GPU code; a builtin that is here by mistake runs on the host for no reason.
TEST(Builtins, MathFunctionsAreThoseThatTheGpuHasNoInstructionFor) {
  const std::set<std::string_view> functions = {"log",  "log2",  "log10", "exp",   "cos",   "sin",
                                                "tan",  "acos",  "asin",  "atan",  "cosh",  "sinh",
                                                "tanh", "acosh", "asinh", "atanh", "power", "logb"};
  for (std::string_view name : builtin_names()) {
    Builtin b;
    ASSERT_TRUE(find_builtin(name, b));
    for (BasicType type : {BasicType::f32, BasicType::f64, BasicType::i64})
      EXPECT_EQ(needs_math(b, type), functions.contains(name) || (name == "mod" && type != BasicType::i64)) << name;
  }
}

TEST(Builtins, TableHoldsTheFactsOfTheSpecification) {
  EXPECT_EQ(builtin_names().size(), 119u);
  EXPECT_EQ(gpu_names().size(), 31u);
  EXPECT_EQ(builtin_count(), 150u);
  Builtin b;
  EXPECT_TRUE(find_builtin("enlist", b) && b == Builtin::list);
  EXPECT_TRUE(find_builtin("index_assign", b) && b == Builtin::index_a);
  EXPECT_FALSE(find_builtin("", b));
  EXPECT_FALSE(find_builtin("an", b));
  EXPECT_FALSE(find_builtin("anda", b));
  // Kernel boundaries and threads of one builtin of each kind.
  struct Row {
    Builtin builtin;
    ShapeRule shape;
    GeometryRule geometry;
    Device device;
    int sync_in;
    bool sync_out, reduction;
  };
  const Row rows[] = {
      {Builtin::lt, ShapeRule::broadcast, GeometryRule::result, Device::gpu, 0, false, false},
      {Builtin::not_, ShapeRule::argument0, GeometryRule::result, Device::gpu, 0, false, false},
      {Builtin::compress, ShapeRule::compress, GeometryRule::uncompressed, Device::gpu, 0, false, false},
      {Builtin::where, ShapeRule::where, GeometryRule::uncompressed, Device::gpu, 0, false, false},
      {Builtin::sum, ShapeRule::scalar, GeometryRule::argument0, Device::gpu, 0, true, true},
      {Builtin::len, ShapeRule::scalar, GeometryRule::argument0, Device::gpu, 0, true, true},
      {Builtin::raze, ShapeRule::raze, GeometryRule::list0, Device::gpu, 0, true, false},
      {Builtin::index, ShapeRule::index, GeometryRule::result, Device::gpu, 1, false, false},
      {Builtin::index_a, ShapeRule::index_a, GeometryRule::argument1, Device::gpu, 1, true, false},
      {Builtin::index_of, ShapeRule::argument0, GeometryRule::result, Device::gpu, 2, false, false},
      {Builtin::gpu_probe, ShapeRule::probe, GeometryRule::result, Device::gpu, 0, false, false},
      {Builtin::gpu_fold, ShapeRule::fold, GeometryRule::argument0, Device::gpu, 0, true, true},
      {Builtin::gpu_cells, ShapeRule::cells, GeometryRule::none, Device::library, 0, false, false},
      {Builtin::gpu_pick, ShapeRule::pick, GeometryRule::none, Device::library, 0, false, false},
      {Builtin::append, ShapeRule::append, GeometryRule::result, Device::gpu, 3, false, false},
      {Builtin::reverse, ShapeRule::argument0, GeometryRule::result, Device::gpu, 1, false, false},
      {Builtin::take, ShapeRule::take, GeometryRule::argument1, Device::gpu, 0, false, false},
      {Builtin::tolist, ShapeRule::tolist, GeometryRule::list_result, Device::gpu, 1, false, false},
      {Builtin::each_right, ShapeRule::each_right, GeometryRule::each, Device::gpu, 0, false, false},
      {Builtin::group, ShapeRule::group, GeometryRule::none, Device::library, 0, false, false},
      {Builtin::join_index, ShapeRule::join_index, GeometryRule::none, Device::library, 0, false, false},
      {Builtin::load_table, ShapeRule::load_table, GeometryRule::none, Device::cpu, 0, false, false},
      {Builtin::list, ShapeRule::list, GeometryRule::none, Device::cpu, 0, false, false},
  };
  for (const Row& r : rows) {
    const BuiltinRow& is = row(r.builtin);
    EXPECT_TRUE(is.shape_rule == r.shape && is.geometry == r.geometry && is.device == r.device &&
                is.sync_in == r.sync_in && is.has(traits::complete) == r.sync_out &&
                is.has(traits::reduction) == r.reduction)
        << is.name;
  }
}

TEST(Types, InterningAndText) {
  TypeTable t;
  TypeId i64 = t.basic(BasicType::i64), sym = t.basic(BasicType::sym);
  EXPECT_EQ(index(t.basic(BasicType::boolean)), 0u);
  EXPECT_EQ(index(t.basic(BasicType::dt)), 16u);
  EXPECT_EQ(t.list(i64), t.list(i64));
  EXPECT_NE(t.list(i64), t.list(sym));
  TypeId one[] = {i64}, two[] = {i64, i64};
  EXPECT_EQ(t.tuple(one), t.list(i64));
  EXPECT_NE(t.tuple(two), t.list(i64));
  EXPECT_EQ(t.dict(i64, i64), t.dict(i64, t.list(i64)));
  EXPECT_NE(t.dict(sym, sym), t.dict(sym, t.list(sym)));
  EXPECT_TRUE(t.contains_wildcard(t.list(t.list(t.wildcard()))));
  EXPECT_FALSE(t.contains_wildcard(t.list(t.list(sym))));
  EXPECT_EQ(t.text(t.dict(sym, t.tuple(two))), "dict<sym,list<i64,i64>>");
  // Growth of the table keeps ids.
  TypeId nested = i64;
  std::vector<TypeId> made;
  for (int i = 0; i < 500; ++i) made.push_back(nested = t.list(nested));
  nested = i64;
  for (int i = 0; i < 500; ++i) EXPECT_EQ(made[static_cast<size_t>(i)], nested = t.list(nested));
  BasicType b;
  EXPECT_TRUE(parse_basic_type("u", b) && b == BasicType::minute);
  EXPECT_TRUE(parse_basic_type("z", b) && b == BasicType::dt);
  EXPECT_FALSE(parse_basic_type("x", b));
  EXPECT_FALSE(parse_basic_type("", b));
  EXPECT_FALSE(parse_basic_type("list", b));
}

}  // namespace
}  // namespace rndn::hir
