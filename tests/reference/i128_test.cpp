// Integers of 128 bits on the reference interpreter: random elements, halves of few and of many
// bits, against the compiler's __int128; literals as they are written; and the builtins that refuse
// them by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "frontend/builtins.h"
#include "frontend/frontend.h"
#include "runtime/reference/reference.h"
#include "tests/support/no_tables.h"

namespace rndn::reference {
namespace {

using hir::BasicType;
using hir::Builtin;
using Wide = __int128;
using Bits = unsigned __int128;

constexpr Wide least = std::numeric_limits<Wide>::min(),
               greatest = std::numeric_limits<Wide>::max();

class Numbers {
 public:
  Wide next() {
    constexpr Wide word = Wide{1} << 64;
    constexpr Wide special[] = {least, greatest, 0,        1,        -1,
                                word,  -word,    word - 1, 1 - word, INT64_MIN};
    const uint64_t r = random_();
    if (r % 5 == 0) return special[r / 5 % std::size(special)];
    return static_cast<Wide>(Bits{random_()} << 64 | random_()) >> r % 128;
  }
  std::vector<Wide> many(size_t n) {
    std::vector<Wide> out(n);
    for (Wide& x : out) x = next();
    return out;
  }

 private:
  std::mt19937_64 random_{20261127};
};

Value vector(const std::vector<Wide>& x) {
  return vector_of<Wide>(BasicType::i128, std::span<const Wide>(x));
}

Value result_of(Builtin builtin, const std::vector<Value>& arguments) {
  const test::NoTables tables;
  Result<std::vector<Value>> made = call(builtin, arguments, nullptr, tables, nullptr);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? (*made)[0] : Value{};
}

template <class T = Wide>
std::vector<T> elements(const Value& v) {
  return v.size ? std::vector<T>(v.as<T>(), v.as<T>() + v.size) : std::vector<T>();
}

std::string text(Wide x) {
  std::string digits;
  for (Bits left = x < 0 ? 0 - static_cast<Bits>(x) : static_cast<Bits>(x); left; left /= 10)
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(left % 10)));
  return (x < 0 ? "-" : "") + (digits.empty() ? "0" : digits);
}

TEST(I128, ArithmeticWraps) {
  Numbers numbers;
  const std::vector<Wide> x = numbers.many(3000), y = numbers.many(3000);
  const auto expect = [&](Builtin builtin, auto f) {
    std::vector<Wide> wanted(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      wanted[i] = static_cast<Wide>(f(static_cast<Bits>(x[i]), static_cast<Bits>(y[i])));
    const size_t arguments = hir::row(builtin).max_arity;
    const Value got = result_of(
        builtin, arguments == 1 ? std::vector{vector(x)} : std::vector{vector(x), vector(y)});
    EXPECT_EQ(got.type, BasicType::i128);
    EXPECT_TRUE(elements(got) == wanted) << hir::row(builtin).name;
  };
  expect(Builtin::plus, [](Bits p, Bits q) { return p + q; });
  expect(Builtin::minus, [](Bits p, Bits q) { return p - q; });
  expect(Builtin::mul, [](Bits p, Bits q) { return p * q; });
  expect(Builtin::neg, [](Bits p, Bits) { return 0 - p; });
  expect(Builtin::abs, [](Bits p, Bits) { return p >> 127 ? 0 - p : p; });
  expect(Builtin::round, [](Bits p, Bits) { return p; });
}

// Quotients are cut towards zero; the least number by -1 wraps, and zero is an error.
TEST(I128, Division) {
  Numbers numbers;
  std::vector<Wide> x = numbers.many(3000), y = numbers.many(3000), wanted;
  std::replace(y.begin(), y.end(), Wide{0}, Wide{7});
  for (size_t i = 0; i < x.size(); ++i)
    wanted.push_back(y[i] == -1 ? static_cast<Wide>(0 - static_cast<Bits>(x[i])) : x[i] / y[i]);
  EXPECT_TRUE(elements(result_of(Builtin::div, {vector(x), vector(y)})) == wanted);
  const test::NoTables tables;
  const auto by_zero =
      call(Builtin::div, {vector({1, 2}), vector({1, 0})}, nullptr, tables, nullptr);
  ASSERT_FALSE(by_zero.ok());
  EXPECT_EQ(by_zero.error().message, "`div` divides by zero at element 1");
}

TEST(I128, ComparisonsAndOrder) {
  Numbers numbers;
  const std::vector<Wide> x = numbers.many(2000), y = numbers.many(2000);
  const auto expect = [&](Builtin builtin, auto f) {
    std::vector<uint8_t> wanted(x.size());
    for (size_t i = 0; i < x.size(); ++i) wanted[i] = f(x[i], y[i]);
    EXPECT_EQ(elements<uint8_t>(result_of(builtin, {vector(x), vector(y)})), wanted)
        << hir::row(builtin).name;
  };
  expect(Builtin::lt, std::less<Wide>());
  expect(Builtin::gt, std::greater<Wide>());
  expect(Builtin::leq, std::less_equal<Wide>());
  expect(Builtin::geq, std::greater_equal<Wide>());
  expect(Builtin::eq, std::equal_to<Wide>());
  expect(Builtin::neq, std::not_equal_to<Wide>());
  const Value order =
      result_of(Builtin::order, {vector(x), vector_of<uint8_t>(BasicType::boolean, {1})});
  std::vector<Wide> sorted;
  for (int64_t row : elements<int64_t>(order)) sorted.push_back(x[static_cast<size_t>(row)]);
  std::vector<Wide> wanted = x;
  std::sort(wanted.begin(), wanted.end());
  EXPECT_TRUE(sorted == wanted);
}

TEST(I128, SumsExtremesAndKeys) {
  Numbers numbers;
  const std::vector<Wide> x = numbers.many(2000), y = numbers.many(50);
  Bits total = 0;
  for (Wide e : x) total += static_cast<Bits>(e);
  EXPECT_TRUE(elements(result_of(Builtin::sum, {vector(x)})) ==
              std::vector{static_cast<Wide>(total)});
  EXPECT_TRUE(elements(result_of(Builtin::min, {vector(x)})) ==
              std::vector{*std::min_element(x.begin(), x.end())});
  EXPECT_TRUE(elements(result_of(Builtin::max, {vector(x)})) ==
              std::vector{*std::max_element(x.begin(), x.end())});
  std::map<Wide, int64_t> first;
  for (size_t i = 0; i < x.size(); ++i) first.try_emplace(x[i], static_cast<int64_t>(i));
  EXPECT_EQ(result_of(Builtin::unique, {vector(x)}).size, first.size());
  std::vector<uint8_t> known;
  std::vector<int64_t> places;
  for (Wide e : y) {
    known.push_back(first.count(e) != 0);
    places.push_back(first.count(e) ? first[e] : static_cast<int64_t>(x.size()));
  }
  EXPECT_EQ(elements<uint8_t>(result_of(Builtin::member, {vector(y), vector(x)})), known);
  EXPECT_EQ(elements<int64_t>(result_of(Builtin::index_of, {vector(y), vector(x)})), places);
}

TEST(I128, Casts) {
  Numbers numbers;
  const std::vector<Wide> x = numbers.many(3000);
  hir::TypeTable types;
  const auto cast = [&](const Value& v, BasicType to) {
    Result<Value> made = check_cast(v, types, types.basic(to), true);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? *made : Value{};
  };
  const std::vector<int64_t> narrow = elements<int64_t>(cast(vector(x), BasicType::i64));
  const std::vector<uint8_t> any = elements<uint8_t>(cast(vector(x), BasicType::boolean));
  const std::vector<double> real = elements<double>(cast(vector(x), BasicType::f64));
  const std::vector<Wide> back = elements(cast(cast(vector(x), BasicType::f64), BasicType::i128));
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(narrow[i], static_cast<int64_t>(x[i]));
    EXPECT_EQ(any[i], x[i] != 0);
    // The nearest f64: no other is nearer.
    const auto distance = [&](double d) {
      if (d >= 0x1p127) return static_cast<Bits>(greatest) - static_cast<Bits>(x[i]) + 1;
      const Wide w = static_cast<Wide>(d);
      return w < x[i] ? static_cast<Bits>(x[i]) - static_cast<Bits>(w)
                      : static_cast<Bits>(w) - static_cast<Bits>(x[i]);
    };
    EXPECT_LE(distance(real[i]), distance(std::nextafter(real[i], INFINITY))) << text(x[i]);
    if (real[i] > -0x1p127) {
      EXPECT_LE(distance(real[i]), distance(std::nextafter(real[i], -INFINITY))) << text(x[i]);
    }
    EXPECT_TRUE(back[i] == (real[i] >= 0x1p127 ? greatest : static_cast<Wide>(real[i])))
        << text(x[i]);
  }
  const Value odd = vector_of<double>(BasicType::f64, {NAN, INFINITY, -INFINITY, 1.9, -1.9, 1e300});
  EXPECT_TRUE(elements(cast(odd, BasicType::i128)) ==
              (std::vector<Wide>{0, greatest, least, 1, -1, greatest}));
}

// A program of one vector; its diagnostics, or what it prints as and returns.
struct Ran {
  std::string problems, printed;
  std::vector<Value> results;
};
Ran run_text(const std::string& body) {
  SourceManager sources;
  Ran ran;
  const FileId file = sources.add(
      "i128.hir", "module m { import Builtin.*; def main() : list<?> {\n" + body + "\n} }\n");
  DiagnosticSink sink;
  Timings timings;
  const hir::Program program = hir::run(file, sources, {}, sink, timings);
  ran.problems = render(sink, sources);
  if (sink.error_count() > 0) return ran;
  ran.printed = hir::print(program, true);
  Result<std::vector<Value>> results = run(program, test::NoTables(), sources, nullptr);
  EXPECT_TRUE(results.ok()) << results.error().message;
  if (results.ok()) ran.results = *results;
  return ran;
}

TEST(I128, LiteralsAreReadAndPrinted) {
  Numbers numbers;
  std::vector<Wide> x = numbers.many(100);
  x.insert(x.end(), {least, greatest});
  std::string literal;
  for (Wide e : x) literal += (literal.empty() ? "(" : ", ") + text(e);
  literal += "):i128";
  const Ran ran = run_text("x:i128 = " + literal + "; l:? = @list(x); return l;");
  ASSERT_EQ(ran.problems, "");
  EXPECT_NE(ran.printed.find(literal), std::string::npos) << ran.printed;
  EXPECT_TRUE(elements(ran.results.at(0).parts()[0]) == x);
  for (const char* beyond :
       {"170141183460469231731687303715884105728", "-170141183460469231731687303715884105729",
        "999999999999999999999999999999999999999999"})
    EXPECT_NE(run_text(fmt::format("x:i128 = {}:i128; l:? = @list(x); return l;", beyond))
                  .problems.find("has more than 128 bits"),
              std::string::npos)
        << beyond;
}

TEST(I128, MeetsOtherNumbersInTheWidestType) {
  const Ran ran = run_text(
      "x:? = (18446744073709551616, -3):i128; a:? = @plus(x, 1:i64); b:? = @mul(x, 0.5:f64); c:? = "
      "@lt(x, 7:i8);"
      "d:? = @append(1:bool, x); e:? = @select((1,0):bool, x, 9:i128); l:? = @list(a, b, c, d, e); "
      "return l;");
  ASSERT_EQ(ran.problems, "");
  const std::vector<Value>& cells = ran.results.at(0).parts();
  constexpr Wide word = Wide{1} << 64;
  EXPECT_TRUE(elements(cells[0]) == (std::vector<Wide>{word + 1, -2}));
  EXPECT_EQ(elements<double>(cells[1]), (std::vector<double>{0x1p63, -1.5}));
  EXPECT_EQ(elements<uint8_t>(cells[2]), (std::vector<uint8_t>{0, 1}));
  EXPECT_TRUE(elements(cells[3]) == (std::vector<Wide>{1, word, -3}));
  EXPECT_TRUE(elements(cells[4]) == (std::vector<Wide>{word, 9}));
}

TEST(I128, WhatHasNoMeaningNamesTheType) {
  for (const char* call :
       {"@sqrt(x)", "@avg(x)", "@mod(x, 2:i128)", "@range(x)", "@index((1,2):i64, x)", "@fact(x)",
        "@power(x, x)", "@signum(x)", "@mul(x, 2i:complex)", "@take(x, (1,2):i64)",
        "@plus(1998-09-02:date, x)", "@like(x, \"a\":str)", "@date_year(x)"}) {
    const Ran ran =
        run_text(fmt::format("x:? = 1:i128; y:? = {}; l:? = @list(y); return l;", call));
    EXPECT_NE(ran.problems.find("error"), std::string::npos) << call;
    EXPECT_NE(ran.problems.find("i128"), std::string::npos) << call << "\n" << ran.problems;
  }
}

}  // namespace
}  // namespace rndn::reference
