// Generated kernels on the PTX interpreter against the reference interpreter: every builtin with a GPU template, on every type it takes,
// with and without selections, for sizes around warps, blocks and tiles.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/codegen/kernel_runner.h"
#include "tests/support/every_case.h"

namespace rndn::test::kernel_test {
namespace {

using hir::BasicType;

constexpr BasicType reals[] = {BasicType::boolean, BasicType::character, BasicType::i8,  BasicType::i16,
                               BasicType::i32,     BasicType::i64,       BasicType::f32, BasicType::f64};
constexpr uint64_t sizes[] = {0, 1, 31, 32, 33, 1023, 1025, 5000};
constexpr uint64_t few_sizes[] = {0, 1, 33, 1025};

// A program over columns of one table; body: statements, results: the variables that leave.
std::string columns_program(std::initializer_list<std::pair<const char*, BasicType>> columns, std::string_view body,
                            std::string_view results) {
  std::string text = "t:? = @load_table(`t:sym);\n";
  for (auto [name, type] : columns)
    text += fmt::format("{0}:{1} = check_cast(@column_value(t, `{0}:sym), {1});\n", name, basic_type_name(type));
  return program_text(fmt::format("{}{}\nresults:? = @list({});\nreturn results;", text, body, results), "list<?>");
}

TEST(Kernels, ArithmeticAndComparisonOfAllTypes) {
  for (BasicType a : reals)
    for (BasicType b : reals) {
      SCOPED_TRACE(fmt::format("{} {}", basic_type_name(a), basic_type_name(b)));
      Generated g;
      generate(g, columns_program(
                      {{"x", a}, {"y", b}},
                      "p:? = @plus(x, y); q:? = @minus(x, y); r:? = @mul(x, y); s:? = @lt(x, y); u:? = @leq(x, y);"
                      "v:? = @gt(x, y); w:? = @geq(x, y); i:? = @eq(x, y); j:? = @neq(x, y);",
                      "p, q, r, s, u, v, w, i, j"));
      ASSERT_EQ(g.outlined.kernels.size(), 1u);
      for (uint64_t n : few_sizes) check_program(g, {{"x", column(a, n, 1)}, {"y", column(b, n, 2)}});
    }
}

TEST(Kernels, DivisionOfAllTypes) {
  for (BasicType a : reals)
    for (BasicType b : reals) {
      SCOPED_TRACE(fmt::format("{} {}", basic_type_name(a), basic_type_name(b)));
      const bool integers = !hir::is_float(a) && !hir::is_float(b);
      Generated g;
      generate(
          g, columns_program({{"x", a}, {"y", b}},
                             integers ? "p:? = @div(x, y); q:? = @mod(x, y);" : "p:? = @div(x, y); q:? = @plus(x, y);",
                             "p, q"));
      ASSERT_EQ(g.outlined.kernels.size(), 1u);
      for (uint64_t n : few_sizes)
        check_program(g, {{"x", column(a, n, 3)}, {"y", column(b, n, 4, integers ? Values::nonzero : Values::edges)}});
    }
}

TEST(Kernels, UnaryFunctionsOfAllTypes) {
  for (BasicType a : reals) {
    SCOPED_TRACE(basic_type_name(a));
    Generated g;
    generate(g, columns_program(
                    {{"x", a}},
                    "p:? = @abs(x); q:? = @neg(x); r:? = @ceil(x); s:? = @floor(x); u:? = @round(x); v:? = @recip(x);"
                    "w:? = @signum(x); i:? = @pi(x); j:? = @sqrt(x);",
                    "p, q, r, s, u, v, w, i, j"));
    ASSERT_EQ(g.outlined.kernels.size(), 1u);
    for (uint64_t n : few_sizes) check_program(g, {{"x", column(a, n, 5)}});
  }
}

TEST(Kernels, Logic) {
  Generated g;
  generate(
      g, columns_program(
             {{"x", BasicType::boolean}, {"y", BasicType::boolean}},
             "p:? = @and(x, y); q:? = @or(x, y); r:? = @nand(x, y); s:? = @nor(x, y); u:? = @xor(x, y); v:? = @not(x);"
             "w:? = @and(x, 1:bool); i:? = @or(0:bool, y);",
             "p, q, r, s, u, v, w, i"));
  for (uint64_t n : sizes)
    check_program(g, {{"x", column(BasicType::boolean, n, 6)}, {"y", column(BasicType::boolean, n, 7)}});
}

TEST(Kernels, Casts) {
  for (BasicType a : reals)
    for (BasicType b : reals) {
      SCOPED_TRACE(fmt::format("{} to {}", basic_type_name(a), basic_type_name(b)));
      Generated g;
      compile(g,
              columns_program({{"x", a}},
                              fmt::format("p:{0} = check_cast(x, {0}); q:? = @eq(x, x);", basic_type_name(b)), "p, q"));
      if (!g.errors.empty()) continue;  // not every cast is allowed: frontend tests
      auto code = codegen::generate(g.outlined, {}, g.timings);
      ASSERT_TRUE(code.ok()) << code.error().message;
      g.code = *std::move(code);
      for (uint64_t n : few_sizes) check_program(g, {{"x", column(a, n, 8)}});
    }
}

TEST(Kernels, CalendarArithmetic) {
  for (BasicType a :
       {BasicType::date, BasicType::month, BasicType::minute, BasicType::second, BasicType::time, BasicType::dt}) {
    SCOPED_TRACE(basic_type_name(a));
    Generated g;
    generate(g, columns_program({{"x", a}, {"y", a}, {"k", BasicType::i16}},
                                "p:? = @plus(x, k); q:? = @plus(k, x); r:? = @minus(x, k); s:? = @minus(x, y); u:? = "
                                "@lt(x, y); v:? = @eq(x, y);"
                                "w:? = @min(x); i:? = @max(x);",
                                "p, q, r, s, u, v, w, i"));
    for (uint64_t n : {1, 33, 1025})
      check_program(g, {{"x", column(a, n, 9, Values::tame)},
                        {"y", column(a, n, 10, Values::tame)},
                        {"k", column(BasicType::i16, n, 11, Values::tame)}});
  }
}

// Values over the whole range that a type's parts are defined on.
Value calendar_column(BasicType type, uint64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> values(n);
  for (uint64_t i = 0; i < n; ++i) {
    const int64_t r = static_cast<int64_t>(random.next() >> 1);
    switch (type) {
      case BasicType::date:
        values[i] = i < 4000 ? static_cast<int64_t>(i) * 37 - 73000 : r % 4000000000 - 2000000000;
        break;
      case BasicType::month: values[i] = i < 100 ? static_cast<int64_t>(i) - 50 : r % 4000000000 - 2000000000; break;
      case BasicType::dt:
        values[i] =
            (r % 400000 - 200000) * 86400000 + (i % 5 == 0 ? 0 : static_cast<int64_t>(random.next() % 86400000));
        break;
      case BasicType::time: values[i] = i == 0 ? 86399999 : r % 86400000; break;
      default: values[i] = i == 0 ? 86399 : r % 86400; break;
    }
  }
  const uint32_t width = data::plain_width(type);
  std::vector<std::byte> bytes(n * width);
  for (uint64_t i = 0; i < n; ++i) std::memcpy(&bytes[i * width], &values[i], width);
  return reference::vector_from_bytes(type, n, std::move(bytes));
}

TEST(Kernels, CalendarParts) {
  constexpr const char* dates = "a:? = @date_year(x); b:? = @date_month(x);";
  constexpr const char* times = "a:? = @time_hour(x); b:? = @time_minute(x);";
  const std::tuple<BasicType, std::string, const char*> cases[] = {
      {BasicType::date, std::string(dates) + "c:? = @date_day(x);", "a, b, c"},
      {BasicType::month, dates, "a, b"},
      {BasicType::minute, times, "a, b"},
      {BasicType::second, std::string(times) + "c:? = @time_second(x);", "a, b, c"},
      {BasicType::time, std::string(times) + "c:? = @time_second(x); d:? = @time_mill(x);", "a, b, c, d"},
      {BasicType::dt,
       std::string(times) +
           "c:? = @time_second(x); d:? = @time_mill(x); e:? = @date(x); f:? = @time(x); g:? = @date_year(x);"
           "h:? = @date_month(x); i:? = @date_day(x);",
       "a, b, c, d, e, f, g, h, i"}};
  for (const auto& [type, body, results] : cases) {
    SCOPED_TRACE(basic_type_name(type));
    Generated g;
    generate(g, columns_program({{"x", type}}, body, results));
    ASSERT_EQ(g.outlined.kernels.size(), 1u);
    for (uint64_t n : sizes) check_program(g, {{"x", calendar_column(type, n, 30)}});
  }
}

TEST(Kernels, ScalarOperandsAndConstants) {
  Generated g;
  generate(g, columns_program(
                  {{"x", BasicType::f64}, {"i", BasicType::i32}},
                  "p:? = @minus(1:i32, x); q:? = @mul(x, 0.1:f64); r:? = @geq(i, 1000000:i64); s:? = @div(1:f64, x);"
                  "u:? = @plus(i, 300:i16); v:? = @vector(1:i64, 7:i64); w:? = @mul(v, 6:i64); y:? = @plus(i, w);",
                  "p, q, r, s, u, y, w"));
  ASSERT_EQ(g.outlined.kernels.size(), 1u) << g.main();
  for (uint64_t n : sizes)
    check_program(g, {{"x", column(BasicType::f64, n, 12)}, {"i", column(BasicType::i32, n, 13)}});
}

constexpr const char* all_reductions = "a:? = @len(x); b:? = @sum(x); c:? = @avg(x); d:? = @min(x); e:? = @max(x);";

TEST(Kernels, ReductionsOfAllTypes) {
  rndn::test::Sample sample(3);
  for (BasicType a : reals) {
    SCOPED_TRACE(basic_type_name(a));
    Generated g;
    generate(g, columns_program({{"x", a}}, all_reductions, "a, b, c, d, e"));
    ASSERT_EQ(g.outlined.kernels.size(), 1u);
    for (uint64_t n : sizes)
      if (sample.has_next()) check_program(g, {{"x", column(a, n, 14, Values::tame)}}, {.launches = 2});
    if (!hir::is_float(a)) check_program(g, {{"x", column(a, 1025, 15)}});  // sums wrap
  }
}

TEST(Kernels, ReductionsOfSelections) {
  rndn::test::Sample sample(3);
  for (BasicType a : reals) {
    SCOPED_TRACE(basic_type_name(a));
    Generated g;
    generate(g, columns_program({{"y", a}, {"m", BasicType::boolean}},
                                std::string("x:? = @compress(m, y);") + all_reductions, "a, b, c, d, e"));
    ASSERT_EQ(g.outlined.kernels.size(), 1u);
    for (uint64_t n : sizes)
      if (sample.has_next())
        check_program(g, {{"y", column(a, n, 16, Values::tame)}, {"m", column(BasicType::boolean, n, 17)}},
                      {.launches = 2});
  }
}

TEST(Kernels, AnyAndAll) {
  Generated g;
  generate(g, columns_program({{"x", BasicType::boolean}, {"m", BasicType::boolean}},
                              "y:? = @compress(m, x); a:? = @any(x); b:? = @all(x); c:? = @any(y); d:? = @all(y);",
                              "a, b, c, d"));
  for (uint64_t n : sizes) {
    for (uint8_t value : {0, 1}) {
      const std::vector<uint8_t> same(n, value);
      std::vector<uint8_t> odd = same;
      if (n) odd[n / 2] ^= 1;
      const std::vector<uint8_t>* const cases[] = {&same, &odd};
      for (const std::vector<uint8_t>* x : cases)
        check_program(g, {{"x", reference::vector_of<uint8_t>(BasicType::boolean, std::span<const uint8_t>(*x))},
                          {"m", column(BasicType::boolean, n, 18)}});
    }
  }
}

// The identities: what a reduction of nothing gives.
TEST(Kernels, EmptySelections) {
  Generated g;
  generate(g, columns_program(
                  {{"y", BasicType::f64}, {"z", BasicType::i16}},
                  "m:? = @lt(y, y); x:? = @compress(m, y); a:? = @len(x); b:? = @sum(x); d:? = @min(x); e:? = @max(x);"
                  "w:? = @compress(m, z); f:? = @min(w); h:? = @max(w);",
                  "a, b, d, e, f, h"));
  const KernelRun run =
      run_kernel(g, 0, {{"y", column(BasicType::f64, 5000, 1)}, {"z", column(BasicType::i16, 5000, 2)}}, {});
  ASSERT_EQ(run.results.size(), 6u);
  EXPECT_EQ(run.results[0].as<int64_t>()[0], 0);
  EXPECT_EQ(run.results[1].as<double>()[0], 0.0);
  EXPECT_EQ(run.results[2].as<double>()[0], INFINITY);
  EXPECT_EQ(run.results[3].as<double>()[0], -INFINITY);
  EXPECT_EQ(run.results[4].as<int16_t>()[0], 32767);
  EXPECT_EQ(run.results[5].as<int16_t>()[0], -32768);
}

// Whichever block is the last one, the bits are the same; and they are the right ones.
TEST(Kernels, FloatSumsRepeat) {
  Generated g;
  generate(g,
           columns_program({{"y", BasicType::f64}, {"z", BasicType::f32}},
                           "m:? = @gt(y, 0:f64); x:? = @compress(m, y); a:? = @sum(x); b:? = @avg(x); c:? = @sum(z);",
                           "a, b, c"));
  ASSERT_EQ(g.outlined.kernels.size(), 1u);
  const uint64_t n = 20000;
  Columns columns{{"y", column(BasicType::f64, n, 19, Values::tame)},
                  {"z", column(BasicType::f32, n, 20, Values::tame)}};
  double sum = 0;
  for (uint64_t i = 0; i < n; ++i)
    if (columns["y"].as<double>()[i] > 0) sum += columns["y"].as<double>()[i];
  const uint32_t grid = 5;  // more tiles than blocks
  ASSERT_GT(n, uint64_t{grid} * g.code.kernels[0].block_size * g.code.kernels[0].items_per_thread);
  const KernelRun first = run_kernel(g, 0, columns, {.grid = grid});
  EXPECT_NEAR(first.results[0].as<double>()[0], sum, 1e-9 * sum);
  for (uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const KernelRun again = run_kernel(g, 0, columns, {.grid = grid, .seed = seed, .launches = 2});
    for (size_t r = 0; r < 3; ++r)
      EXPECT_EQ(
          std::memcmp(first.results[r].bytes->data(), again.results[r].bytes->data(), first.results[r].bytes->size()),
          0)
          << r;
  }
}

TEST(Kernels, OneBlockAndMoreBlocksThanTiles) {
  Generated g;
  generate(g, columns_program({{"x", BasicType::i64}}, "a:? = @sum(x); b:? = @plus(x, 1:i64);", "a, b"));
  for (uint32_t grid : {1u, 2u, 40u, 300u}) check_program(g, {{"x", column(BasicType::i64, 3000, 21)}}, {.grid = grid});
}

TEST(Kernels, ParametersAssignedAgain) {
  Generated g;
  generate(g, columns_program(
                  {{"x", BasicType::f64}},
                  "m:? = @gt(x, 0:f64); x = @compress(m, x); s:? = @sum(x); k:? = @lt(x, 3:f64); x = @compress(k, "
                  "x); n:? = @len(x);",
                  "x, s, n"));
  for (uint64_t n : sizes) check_program(g, {{"x", column(BasicType::f64, n, 35, Values::tame)}});
}

// Random positions within n elements.
Value reversed(const Value& v) {
  const uint32_t width = data::plain_width(v.type);
  std::vector<std::byte> bytes(v.size * width);
  for (uint64_t i = 0; i < v.size; ++i)
    std::memcpy(&bytes[i * width], v.bytes->data() + (v.size - 1 - i) * width, width);
  return reference::vector_from_bytes(v.type, v.size, std::move(bytes));
}

Value positions(BasicType type, uint64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<int32_t> narrow(n);
  std::vector<int64_t> wide(n);
  for (uint64_t i = 0; i < n; ++i) narrow[i] = static_cast<int32_t>(wide[i] = static_cast<int64_t>(random.next() % n));
  return type == BasicType::i64 ? reference::vector_of<int64_t>(type, wide)
                                : reference::vector_of<int32_t>(type, narrow);
}

// Gathers at every position, at selected positions, at one position; and element by element beside it.
TEST(Kernels, Gathers) {
  for (BasicType a :
       {BasicType::boolean, BasicType::character, BasicType::i8, BasicType::i16, BasicType::i32, BasicType::i64,
        BasicType::f32, BasicType::f64, BasicType::complex, BasicType::date, BasicType::dt})
    for (BasicType p : {BasicType::i32, BasicType::i64}) {
      SCOPED_TRACE(fmt::format("{} at {}", basic_type_name(a), basic_type_name(p)));
      Generated g;
      generate(g, columns_program({{"x", a}, {"p", p}, {"m", BasicType::boolean}},
                                  "y:? = @index(x, p); e:? = @eq(y, x); s:? = @compress(m, p); z:? = @index(x, s);",
                                  "y, e, z"));
      ASSERT_EQ(g.outlined.kernels.size(), 1u) << g.main();
      for (uint64_t n : sizes)
        check_program(g,
                      {{"x", column(a, n, 31)}, {"p", positions(p, n, 32)}, {"m", column(BasicType::boolean, n, 33)}});
    }
}

// Out of range is an error where the position is selected, on either side; elsewhere it is nothing.
TEST(Kernels, GathersReportPositionsOutOfRange) {
  Generated g;
  generate(g, columns_program({{"x", BasicType::f64}, {"p", BasicType::i64}, {"m", BasicType::boolean}},
                              "s:? = @compress(m, p); z:? = @index(x, s);", "z"));
  ASSERT_EQ(g.outlined.kernels.size(), 1u) << g.main();
  const int64_t n = 1500;
  for (int64_t bad : {int64_t{-1}, n, INT64_MIN, INT64_MAX})
    for (bool selected : {false, true}) {
      std::vector<int64_t> p(n, 3);
      std::vector<uint8_t> m(n, 1);
      p[1100] = bad;
      m[1100] = selected;
      const KernelRun run = run_kernel(g, 0,
                                       {{"x", column(BasicType::f64, n, 34)},
                                        {"p", reference::vector_of<int64_t>(BasicType::i64, p)},
                                        {"m", reference::vector_of<uint8_t>(BasicType::boolean, m)}},
                                       {});
      EXPECT_EQ(codegen::ErrorWord::of(run.error).code,
                selected ? codegen::RuntimeError::index_out_of_range : codegen::RuntimeError::none)
          << bad;
    }
}

// Gathers that count only where other parts of the mask hold; one that is read elsewhere too, or under `or`, is not guarded.
TEST(Kernels, GuardedGathers) {
  const struct {
    const char* body;
    const char* results;
    bool guarded;
  } cases[] = {
      {"a:? = @gt(x, 0:i64); y:? = @index(x, p); b:? = @lt(y, 5:i64); m:? = @and(a, b); k:? = @compress(m, x); s:? = @sum(k);",
       "s", true},
      {"a:? = @gt(x, 0:i64); c:? = @lt(x, 90:i64); y:? = @index(x, p); b:? = @lt(y, 5:i64); n:? = @and(b, c);"
       "m:? = @and(a, n); k:? = @compress(m, x); s:? = @sum(k); l:? = @len(k);",
       "s, l", true},
      {"a:? = @gt(x, 0:i64); d:? = @index(q, p); m:? = @and(d, a); k:? = @compress(m, x); w:? = @compress(m, p); z:? = @index(x, w);",
       "k, z", true},
      {"a:? = @gt(x, 0:i64); y:? = @index(x, p); b:? = @lt(y, 5:i64); m:? = @and(a, b); k:? = @compress(m, y); s:? = @sum(k);",
       "s", true},
      {"y:? = @index(x, p); b:? = @lt(y, 5:i64); c:? = @not(b); m:? = @and(q, c); k:? = @compress(m, x);", "k", true},
      // Conditions that are gathered guard what is gathered after them, and columns.
      {"d:? = @index(q, p); y:? = @index(x, p); b:? = @lt(y, 5:i64); m:? = @and(d, b); k:? = @compress(m, x);", "k", true},
      {"d:? = @index(q, p); y:? = @index(x, p); b:? = @lt(y, 5:i64); n:? = @and(d, b); z:? = @index(p, p); c:? = @gt(z, 9:i32);"
       "m:? = @and(n, c); k:? = @compress(m, x); s:? = @sum(k); l:? = @len(k);",
       "s, l", true},
      {"y:? = @index(x, p); b:? = @lt(y, 5:i64); a:? = @gt(x, 0:i64); d:? = @index(q, p); n:? = @and(a, d); m:? = @and(b, n);"
       "k:? = @compress(m, p); o:? = @or(d, b); j:? = @compress(o, x); s:? = @sum(k); t:? = @sum(j);",
       "s, t", false},
      {"a:? = @gt(x, 0:i64); y:? = @index(x, p); b:? = @lt(y, 5:i64); m:? = @and(a, b); s:? = @sum(y); k:? = @compress(m, x); t:? = @sum(k);",
       "s, t", false},
      {"a:? = @gt(x, 0:i64); y:? = @index(x, p); b:? = @lt(y, 5:i64); m:? = @or(a, b); k:? = @compress(m, x);", "k", false},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.body);
    Generated g;
    generate(g, columns_program({{"x", BasicType::i64}, {"p", BasicType::i32}, {"q", BasicType::boolean}}, c.body, c.results));
    ASSERT_EQ(g.outlined.kernels.size(), 1u) << g.main();
    // The word for an item's conditions.
    EXPECT_EQ(g.text.find("selp.s32") != std::string::npos, c.guarded) << g.text;
    for (uint64_t n : sizes)
      check_program(g, {{"x", column(BasicType::i64, n, 31, Values::tame)},
                        {"p", positions(BasicType::i32, n, 32)},
                        {"q", column(BasicType::boolean, n, 33)}});
  }
}

// Its range is checked where the other conditions fail, too.
TEST(Kernels, GuardedGathersReportPositionsOutOfRange) {
  Generated g;
  generate(g, columns_program({{"x", BasicType::i64}, {"p", BasicType::i64}},
                              "a:? = @gt(x, 0:i64); y:? = @index(x, p); b:? = @lt(y, 5:i64); m:? = @and(a, b);"
                              "k:? = @compress(m, x); s:? = @sum(k);",
                              "s"));
  ASSERT_EQ(g.outlined.kernels.size(), 1u) << g.main();
  std::vector<int64_t> x(1500, -1), p(1500, 3);
  p[1100] = 1500;
  const KernelRun run = run_kernel(g, 0, {{"x", reference::vector_of<int64_t>(BasicType::i64, x)},
                                          {"p", reference::vector_of<int64_t>(BasicType::i64, p)}}, {});
  EXPECT_EQ(codegen::ErrorWord::of(run.error).code, codegen::RuntimeError::index_out_of_range);
}

// Sums of floats of selected elements: a branch passes by items for which the conditions of all of them fail, and none where anything else counts.
TEST(Kernels, ItemsThatCountNowhereArePassedBy) {
  const struct {
    const char* body;
    const char* results;
    bool passed_by;
  } cases[] = {
      {"a:? = @gt(x, 0:i64); k:? = @compress(a, y); s:? = @sum(k);", "s", true},
      {"a:? = @gt(x, 0:i64); k:? = @compress(a, y); w:? = @compress(a, z); v:? = @mul(k, w); s:? = @sum(v); t:? = "
       "@avg(k); l:? = @len(k);",
       "s, t, l", true},
      {"a:? = @gt(x, 0:i64); c:? = @lt(x, 90:i64); m:? = @and(a, c); k:? = @compress(m, y); w:? = @compress(a, z); s:? "
       "= @sum(k);"
       "t:? = @max(w);",
       "s, t", false},
      // A selection of a selection.
      {"a:? = @gt(x, 0:i64); k:? = @compress(a, y); w:? = @compress(a, z); c:? = @gt(w, 0.5:f64); v:? = @compress(c, "
       "k); s:? = @sum(v);"
       "t:? = @sum(w);",
       "s, t", true},
      {"a:? = @gt(x, 0:i64); k:? = @compress(a, y); s:? = @sum(k); t:? = @sum(z);", "s, t", false},
      {"a:? = @gt(x, 0:i64); c:? = @lt(x, 90:i64); k:? = @compress(a, y); w:? = @compress(c, z); s:? = @sum(k); t:? = "
       "@sum(w);",
       "s, t", false},
      {"a:? = @gt(x, 0:i64); c:? = @lt(x, 90:i64); m:? = @or(a, c); k:? = @compress(m, y); w:? = @compress(a, z); s:? "
       "= @sum(k); t:? = @sum(w);",
       "s, t", false},
      {"a:? = @gt(x, 0:i64); k:? = @compress(a, y); s:? = @sum(k); v:? = @mul(z, 2.0:f64);", "s, v", false},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.body);
    Generated g;
    generate(g,
             columns_program({{"x", BasicType::i64}, {"y", BasicType::f64}, {"z", BasicType::f64}}, c.body, c.results));
    ASSERT_EQ(g.outlined.kernels.size(), 1u) << g.main();
    EXPECT_EQ(g.text.find("setp.eq.s32") != std::string::npos, c.passed_by) << g.text;
    for (uint64_t n : few_sizes)
      check_program(g, {{"x", column(BasicType::i64, n, 31, Values::tame)},
                        {"y", column(BasicType::f64, n, 32, Values::tame)},
                        {"z", column(BasicType::f64, n, 33, Values::tame)}});
    for (const char* target : {"sm_61", "sm_90"})
      check_program(g,
                    {{"x", column(BasicType::i64, 1500, 31, Values::tame)},
                     {"y", column(BasicType::f64, 1500, 32, Values::tame)},
                     {"z", column(BasicType::f64, 1500, 33, Values::tame)}},
                    {.grid = 2, .target = target});
  }
}

// What fails for an element that is not selected is the program's error all the same.
TEST(Kernels, ErrorsOfItemsThatAreNotSelected) {
  for (const bool selected : {false, true}) {
    Generated g;
    generate(g, columns_program(
                    {{"x", BasicType::i64}, {"p", BasicType::i64}, {"y", BasicType::f64}},
                    selected ? "a:? = @gt(x, 0:i64); k:? = @compress(a, y); s:? = @sum(k); q:? = @compress(a, p);"
                               "o:? = @compress(a, x); d:? = @div(o, q); e:? = @sum(d);"
                             : "a:? = @gt(x, 0:i64); k:? = @compress(a, y); s:? = @sum(k); d:? = @div(x, p);"
                               "o:? = @compress(a, d); e:? = @sum(o);",
                    "s, e"));
    ASSERT_EQ(g.outlined.kernels.size(), 1u) << g.main();
    EXPECT_EQ(g.text.find("setp.eq.s32") != std::string::npos, selected) << g.text;
    std::vector<int64_t> x(1500, -1), p(1500, 3);
    std::vector<double> y(1500, 0.5);
    p[1100] = 0;
    for (const int64_t there : {-1, 1}) {
      x[1100] = there;
      const KernelRun run = run_kernel(g, 0,
                                       {{"x", reference::vector_of<int64_t>(BasicType::i64, x)},
                                        {"p", reference::vector_of<int64_t>(BasicType::i64, p)},
                                        {"y", reference::vector_of<double>(BasicType::f64, y)}},
                                       {});
      const bool fails = codegen::ErrorWord::of(run.error).code == codegen::RuntimeError::division_by_zero;
      EXPECT_EQ(fails, !selected || there > 0) << selected << there;
    }
  }
}

TEST(Kernels, StoredSelections) {
  for (BasicType a :
       {BasicType::boolean, BasicType::i8, BasicType::i16, BasicType::i32, BasicType::f32, BasicType::f64}) {
    SCOPED_TRACE(basic_type_name(a));
    Generated g;
    generate(g,
             columns_program({{"x", a}, {"m", BasicType::boolean}}, "p:? = @compress(m, x); i:? = @where(m);", "p, i"));
    ASSERT_EQ(g.outlined.kernels.size(), 1u);
    for (uint64_t n : sizes)
      check_program(g, {{"x", column(a, n, 22)}, {"m", column(BasicType::boolean, n, 23)}}, {.seed = 7, .launches = 2});
  }
}

// A selection that reads nothing but what masks read: its elements wait in shared memory and are not loaded again.
TEST(Kernels, SelectionsOfWhatTheirMasksRead) {
  for (BasicType a : reals) {
    if (a == BasicType::boolean || a == BasicType::character) continue;  // nothing to compare with a number
    SCOPED_TRACE(basic_type_name(a));
    Generated g;
    generate(g, columns_program({{"x", a}, {"y", a}},
                                "l:? = @gt(x, 1:i8); h:? = @lt(y, x); m:? = @and(l, h); p:? = @compress(m, x);"
                                "s:? = @plus(x, y); q:? = @compress(l, s);",
                                "p, q"));
    ASSERT_EQ(g.outlined.kernels.size(), 1u);
    // Two selections of 8 bytes per element are too much for shared memory: the second keeps positions.
    EXPECT_EQ(g.text.find("ld.shared.u16") == std::string::npos, a != BasicType::i64 && a != BasicType::f64) << g.text;
    for (uint64_t n : sizes)
      check_program(g, {{"x", column(a, n, 22)}, {"y", column(a, n, 24)}}, {.seed = 7, .launches = 2});
    for (const char* target : {"sm_61", "sm_86", "sm_90"})
      check_program(g, {{"x", column(a, 20000, 22)}, {"y", column(a, 20000, 24)}},
                    {.grid = 3, .launches = 2, .target = target});
  }
}

// Tiles that find the counts of more than 1024 earlier ones, of which only the first 32 are known as a sum: two readings of 32 groups.
TEST(Kernels, SelectionsLookBackFurtherThanOneReading) {
  Generated g;
  generate(g, columns_program({{"m", BasicType::boolean}}, "i:? = @where(m);", "i"));
  ASSERT_EQ(g.outlined.kernels.size(), 1u);
  const uint64_t tile = g.code.kernels[0].block_size * g.code.kernels[0].items_per_thread, tiles = 1123, taken = 1090;
  const uint64_t n = (tiles - 1) * tile + 5;
  std::vector<uint8_t> mask(n);
  std::vector<int64_t> selected;
  for (uint64_t i = taken * tile; i < n; ++i)
    if ((mask[i] = i % 3 == 0)) selected.push_back(static_cast<int64_t>(i));
  // compress.cpp says what the words mean. Tile k kept k % 7.
  uint64_t before = 0;
  const auto earlier = [&](std::vector<std::byte>& scratch) {
    std::vector<uint64_t> groups(taken / 32 + 1);
    for (uint64_t k = 0; k < taken; ++k) {
      const uint32_t word = static_cast<uint32_t>(k % 7 + 1);
      std::memcpy(&scratch[16 + 8 * k], &word, 4);
      groups[k / 32] += k % 7 + (uint64_t{1} << 57);
      before += k % 7;
    }
    groups[0] |= uint64_t{1} << 63;
    std::memcpy(&scratch[16 + 8 * tiles], groups.data(), 8 * groups.size());
    const uint32_t next = static_cast<uint32_t>(taken);
    std::memcpy(&scratch[8], &next, 4);
  };
  for (const char* target : {"sm_61", "sm_90"}) {
    before = 0;
    const KernelRun run = run_kernel(g, 0, {{"m", reference::vector_of<uint8_t>(BasicType::boolean, mask)}},
                                     {.grid = 4, .target = target, .scratch = earlier});
    ASSERT_EQ(run.results.size(), 1u);
    ASSERT_EQ(run.results[0].size, before + selected.size()) << target;
    const int64_t* rows = run.results[0].as<int64_t>();
    EXPECT_TRUE(std::equal(selected.begin(), selected.end(), rows + before)) << target;
  }
}

// More masks than warps: a warp looks back for several of them.
TEST(Kernels, ManySelections) {
  std::string body, results;
  for (int k = 0; k < 27; ++k) {
    body += fmt::format("m{0}:? = @gt(v, {1}:i32); x{0}:? = @compress(m{0}, v);", k, 4 * k);
    results += fmt::format("{}x{}", k ? ", " : "", k);
  }
  Generated g;
  generate(g, columns_program({{"v", BasicType::i32}}, body, results));
  for (uint64_t n : sizes) {
    std::vector<int32_t> values(n);
    Random random(n);
    for (int32_t& v : values) v = static_cast<int32_t>(random.next() % 100);
    check_program(g, {{"v", reference::vector_of<int32_t>(BasicType::i32, values)}}, {.seed = 4, .launches = 2});
  }
}

// What only the results of a selection need is read for its elements only, and what two statements compute alike is computed once.
TEST(Kernels, SelectedElementsOnly) {
  Generated g;
  generate(g, columns_program({{"k", BasicType::i32}, {"v", BasicType::f64}, {"r", BasicType::i64}},
                              "m:? = @lt(k, 10:i32); a:? = @compress(m, r); x:? = @index(v, a); b:? = @compress(m, r);"
                              "y:? = @index(v, b);",
                              "x, y"));
  ASSERT_EQ(g.outlined.kernels.size(), 1u);
  size_t loads = 0;
  for (size_t at = 0; (at = g.text.find("ld.global.f64", at)) != std::string::npos; ++at) ++loads;
  EXPECT_EQ(loads, 2u) << "one for each of two elements side by side\n" << g.text;
  for (uint64_t n : {1, 33, 1025, 5000}) {
    std::vector<int32_t> keys(n);
    std::vector<int64_t> rows(n);
    for (uint64_t i = 0; i < n; ++i)
      keys[i] = static_cast<int32_t>(i * 7 % 20), rows[i] = static_cast<int64_t>(i * 13 % n);
    check_program(g, {{"k", reference::vector_of<int32_t>(BasicType::i32, keys)},
                      {"v", column(BasicType::f64, n, 31)},
                      {"r", reference::vector_of<int64_t>(BasicType::i64, rows)}});
  }
}

// Two masks, a vector, and reductions whose bits depend on the order of additions, in one kernel.
TEST(Kernels, SelectionsVectorsAndSumsTogether) {
  Generated g;
  generate(
      g,
      columns_program(
          {{"v", BasicType::f64}, {"w", BasicType::i32}, {"b", BasicType::boolean}},
          "m:? = @gt(v, 0.5:f64); x:? = @compress(m, v); y:? = @compress(m, w); z:? = @compress(b, w); i:? = @where(b);"
          "s:? = @sum(x); n:? = @len(z); k:? = @sum(y); u:? = @plus(w, 1:i32); mm:? = @compress(m, b);"
          "xx:? = @compress(mm, x);",
          "x, y, z, i, s, n, k, u, xx"));
  ASSERT_EQ(g.outlined.kernels.size(), 1u) << g.main();
  for (uint64_t n : sizes)
    check_program(g,
                  {{"v", column(BasicType::f64, n, 24, Values::tame)},
                   {"w", column(BasicType::i32, n, 25, Values::tame)},
                   {"b", column(BasicType::boolean, n, 26)}},
                  {.seed = 3, .launches = 2});
}

TEST(Kernels, RangeAndVector) {
  Generated g;
  generate(g, columns_program({},
                              "r:? = @range(2000:i64); a:? = @mul(r, r); f:? = @vector(2000:i64, 0.25:f64); p:? = "
                              "@mul(f, r); s:? = @sum(a);",
                              "r, a, f, p, s"));
  check_program(g, {});
  ASSERT_EQ(g.outlined.kernels.size(), 1u) << g.main();
}

TEST(Kernels, DivisionByZeroIsReported) {
  for (BasicType a : {BasicType::i8, BasicType::i32, BasicType::i64}) {
    Generated g;
    generate(g, columns_program({{"x", a}, {"y", a}, {"m", BasicType::boolean}},
                                "c:? = @compress(m, x); d:? = @compress(m, y); q:? = @div(c, d); s:? = @sum(q);", "s"));
    std::vector<uint8_t> mask(3000, 1);
    Value y = column(a, 3000, 27, Values::nonzero);
    std::vector<std::byte> bytes(y.bytes->begin(), y.bytes->end());
    const uint32_t width = data::plain_width(a);
    std::fill_n(bytes.begin() + 2500 * width, width, std::byte{0});
    y = reference::vector_from_bytes(a, 3000, bytes);
    const Value x = column(a, 3000, 28, Values::nonzero);
    const auto run = [&] {
      return run_kernel(g, 0,
                        {{"x", x},
                         {"y", y},
                         {"m", reference::vector_of<uint8_t>(BasicType::boolean, std::span<const uint8_t>(mask))}},
                        {})
          .error;
    };
    const uint64_t error = run();
    EXPECT_EQ(codegen::ErrorWord::of(error).code, codegen::RuntimeError::division_by_zero);
    // The statement that it names is the division.
    const hir::Function& f = g.outlined.program.functions[g.outlined.kernels[0].function];
    const auto id = static_cast<hir::StatementId>(codegen::ErrorWord::of(error).statement);
    EXPECT_EQ(g.outlined.program.text(f.variables[f.statements[id].targets[0].variable_id()].name), "q");
    mask[2500] = 0;  // what no one selects cannot fail
    EXPECT_EQ(run(), 0u);
  }
}

// Edges of both parts in all pairs, on both sides: infinities, NaN, zeros of either sign, parts of very different size.
TEST(Kernels, ComplexNumbers) {
  Generated g;
  generate(
      g, columns_program(
             {{"x", BasicType::complex}, {"y", BasicType::complex}, {"r", BasicType::f64}, {"m", BasicType::boolean}},
             "a:? = @mul(x, y); b:? = @div(x, y); c:? = @conj(a); d:? = @pi(y); e:? = @eq(x, y); f:? = @neq(x, x);"
             "g:? = @mul(r, x); h:? = @div(2-3i:complex, y); i:? = @div(x, r); j:? = @eq(r, x); k:? = @compress(m, a);"
             "l:? = @len(k); n:? = @div(x, 0+1i:complex);",
             "a, b, c, d, e, f, g, h, i, j, k, l, n"));
  ASSERT_EQ(g.outlined.kernels.size(), 1u) << g.main();
  for (const LaunchOptions& where :
       {LaunchOptions{}, LaunchOptions{.target = "sm_61"}, LaunchOptions{.target = "sm_90"}})
    for (uint64_t n : {uint64_t{0}, uint64_t{1}, uint64_t{33}, uint64_t{1025}})
      check_program(g,
                    {{"x", column(BasicType::complex, n, 51)},
                     {"y", reversed(column(BasicType::complex, n, 53))},
                     {"r", column(BasicType::f64, n, 55)},
                     {"m", column(BasicType::boolean, n, 57)}},
                    where);
}

// Division does not overflow on the way, and infinities and NaN are those of the formulas.
TEST(Kernels, ComplexEdges) {
  const auto divide = [](std::complex<double> x, std::complex<double> y) {
    Generated g;
    generate(g, columns_program({{"x", BasicType::complex}, {"y", BasicType::complex}}, "z:? = @div(x, y);", "z"));
    const auto one = [](std::complex<double> z) {
      return reference::vector_of<std::complex<double>>(BasicType::complex, {z});
    };
    const KernelRun run = run_kernel(g, 0, {{"x", one(x)}, {"y", one(y)}}, {});
    return *run.results[0].as<std::complex<double>>();
  };
  EXPECT_EQ(divide({1, 1}, {1e200, 1e200}), (std::complex<double>{1e-200, 0}));
  EXPECT_EQ(divide({1e300, 0}, {0, 1e300}), (std::complex<double>{0, -1}));
  EXPECT_EQ(divide({3, 4}, {0, 2}), (std::complex<double>{2, -1.5}));
}

TEST(Kernels, WhatHasNoGpuCodeStaysOnTheHost) {
  Generated g;
  generate(
      g, columns_program({{"x", BasicType::f64}}, "p:? = @exp(x); q:? = @mod(x, x); r:? = @plus(x, 1:f64);", "p, q, r"),
      {.math = false});
  ASSERT_EQ(g.outlined.kernels.size(), 1u);
  EXPECT_THAT(g.main(), ::testing::HasSubstr("@exp(x)"));
  EXPECT_TRUE(g.decided("p", "", false, "the math functions of libdevice are not there"));
  check_program(g, {{"x", column(BasicType::f64, 33, 29)}});
}

}  // namespace
}  // namespace rndn::test::kernel_test
