// Sums and averages in groups inside kernels, and wherever else sums are made: exact whatever the types, the number of groups and the order are.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "runtime/compiler/code_cache.h"
#include "runtime/cuda/cuda_device.h"
#include "tests/runtime/forwarding_device.h"
#include "tests/runtime/sinks.h"

namespace rndn::runtime::sink_sums_test {
namespace {

using namespace sinks;

// Rows of a key and of a number, of a kind of numbers each.
void put_floats(MadeTables& tables, uint64_t rows, uint64_t groups, uint64_t seed, const std::vector<double>& among = {}) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> k, n, x, y;
  const auto bits = [](double v) { return std::bit_cast<int64_t>(v); };
  for (uint64_t i = 0; i < rows; ++i) {
    k.push_back(static_cast<int64_t>(random() % groups) - 3);
    n.push_back(static_cast<int64_t>(random() % 1000));
    const double cents = static_cast<double>(static_cast<int64_t>(random() % 20'000'000) - 10'000'000) / 100;
    x.push_back(bits(among.empty() || random() % 50 ? cents : among[random() % among.size()]));
    // All bits that parts have, of both signs.
    y.push_back(bits(std::ldexp(static_cast<double>(static_cast<int64_t>(random()) >> 11), static_cast<int>(random() % 50) - 60)));
  }
  tables.put("f", "k", BasicType::i32, k);
  tables.put("f", "n", BasicType::i32, n);
  tables.put("f", "x", BasicType::f64, x);
  tables.put("f", "y", BasicType::f64, y);
}
std::string float_sums(const std::vector<std::string>& keys, bool selected) {
  std::string lines = "  f:? = @load_table(`f:sym);\n" + load("k", "i32") + load("n", "i32") + load("x", "f64") + load("y", "f64");
  lines += "  w:i64 = @mul(f_n, 4294967291:i64);\n  m:? = @gt(f_n, 300:i32);\n";
  std::vector<std::string> kept;
  for (const std::string& name : {keys[0], keys.back(), std::string("f_x"), std::string("f_y")}) {
    kept.push_back(fmt::format("kept{}", kept.size()));
    lines += fmt::format("  {}:? = {}{};\n", kept.back(), selected ? "@compress(m, " : "", name + (selected ? ")" : ""));
  }
  if (keys.size() > 1) lines += "  ks:? = @list(kept0, kept1);\n";
  lines += fmt::format("  g:? = @group({});\n  first:? = @keys(g);\n  rows:? = @values(g);\n", keys.size() > 1 ? "ks" : "kept0");
  for (const char* x : {"kept2", "kept3"})
    lines += fmt::format("  c_{0}:? = @each_right(@index, {0}, rows);\n  e_{0}:? = @each(@sum, c_{0});\n  s_{0}:? = @raze(e_{0});\n"
                         "  d_{0}:? = @each(@avg, c_{0});\n  a_{0}:? = @raze(d_{0});\n", x);
  lines += "  lens:? = @each(@len, rows);\n  n:? = @raze(lens);\n  key:? = @index(kept0, first);\n";
  return program(lines, {"key", "s_kept2", "s_kept3", "a_kept2", "a_kept3", "n"});
}
// In shared memory, in global memory and by hashed keys: bit for bit, since nothing is rounded before the end.
TEST(SinkSums, SumsOfFloatsAreExact) {
  constexpr const char* targets[] = {"sm_61", "sm_86", "sm_90", "sm_75"};
  size_t turn = 0;
  for (const uint64_t groups : {1u, 90u, 4000u})
    for (const bool hashed : {false, true}) {
      MadeTables tables;
      put_floats(tables, 5000, groups, groups);
      const std::string text =
          float_sums(hashed ? std::vector<std::string>{"w", "f_k"} : std::vector<std::string>{"f_k"}, turn % 3 == 0);
      auto want = run_on_reference(text, tables);
      ASSERT_TRUE(want.ok()) << want.error().message << text;
      for (const size_t other : {0u, 2u}) {
        const char* target = targets[(turn + turn / 4 + other) % 4];
        auto got = run_on(target, text, tables, 2);
        ASSERT_TRUE(got.ok()) << groups << " on " << target << ": " << got.error().message << text;
        EXPECT_EQ(got->result, *want) << groups << " on " << target << text;
        EXPECT_TRUE(hashed ? groups == 4000 || is_hashed(*got) : folds(*got))
            << groups << " " << fmt::format("{}", fmt::join(got->library, " "));
      }
      ++turn;
    }
}

// They are i32, as the program's.
TEST(SinkSums, SumsOfNarrowNumbersAndTruthValues) {
  for (const uint64_t rows : {3000u, 100u}) {
    MadeTables tables;
    put_numbers(tables, rows, 40, rows);
    std::mt19937_64 random(rows);
    std::vector<int64_t> bits, bytes, words;
    for (uint64_t i = 0; i < rows; ++i) {
      bits.push_back(static_cast<int64_t>(random() % 2));
      bytes.push_back(static_cast<int64_t>(random() % 256) - 128);
      words.push_back(static_cast<int64_t>(random() % 65536) - 32768);
    }
    tables.put("f", "b", BasicType::boolean, bits);
    tables.put("f", "c", BasicType::i8, bytes);
    tables.put("f", "s", BasicType::i16, words);
    std::string lines = number_loads() + load("b", "bool") + load("c", "i8") + load("s", "i16") +
                        "  m:? = @gt(f_n, 0:i32);\n  k:? = @compress(m, f_k);\n  g:? = @group(k);\n"
                        "  first:? = @keys(g);\n  rows:? = @values(g);\n  key:? = @index(k, first);\n"
                        "  p:? = @lt(f_w, 0:i64);\n";
    std::vector<std::string> columns{"key"};
    for (const char* value : {"f_b", "f_c", "f_s", "p"}) {
      columns.push_back(fmt::format("s_{}", value));
      lines += fmt::format("  v_{0}:? = @compress(m, {0});\n  c_{0}:? = @each_right(@index, v_{0}, rows);\n"
                           "  e_{0}:? = @each(@sum, c_{0});\n  s_{0}:? = @raze(e_{0});\n", value);
    }
    const std::string text = program(lines, columns);
    auto want = run_on_reference(text, tables);
    ASSERT_TRUE(want.ok()) << want.error().message << text;
    for (const char* target : {"sm_61", "sm_90"}) {
      auto got = run_on(target, text, tables, 2);
      ASSERT_TRUE(got.ok()) << got.error().message << text;
      EXPECT_EQ(got->result, *want) << text;
      EXPECT_EQ(got->launches, 2u);
      EXPECT_TRUE(folds(*got)) << fmt::format("{}", fmt::join(got->library, " "));
    }
  }
}

// A sum that decides which groups are taken is rounded for the groups that there are, not for every entry.
TEST(SinkSums, EmptyEntriesOfSumsCostLittle) {
  constexpr int64_t least = 5, entries = 30000;
  MadeTables tables;
  tables.put("f", "k", BasicType::i32, std::vector<int64_t>{least, least + entries - 1, least});
  std::vector<int64_t> x;
  for (const double v : {0.1, 0.2, 0.3}) x.push_back(std::bit_cast<int64_t>(v));
  tables.put("f", "x", BasicType::f64, x);
  const std::string text =
      program("  f:? = @load_table(`f:sym);\n" + load("k", "i32") + load("x", "f64") +
                  "  g:? = @group(f_k);\n  rows:? = @values(g);\n  c:? = @each_right(@index, f_x, rows);\n"
                  "  e:? = @each(@sum, c);\n  s:? = @raze(e);\n  big:? = @gt(s, 0.25:f64);\n  t:? = @compress(big, s);\n",
              {"t"});
  auto want = run_on_reference(text, tables);
  auto got = run_on("sm_90", text, tables);
  ASSERT_TRUE(want.ok() && got.ok()) << got.error().message << text;
  EXPECT_EQ(got->result, *want);
  ASSERT_TRUE(folds(*got));
  EXPECT_LT(got->instructions, 100u * entries / 32);
}

// Four sums and three averages of the same columns, and the number of rows, are one sink; the averages come first, or the sums.
TEST(SinkSums, SumsAndAveragesOfTheSameColumnsAreFoldedOnce) {
  for (const bool averages_first : {false, true}) {
    MadeTables tables;
    put_floats(tables, 3000, 40, 11);
    std::string lines = "  f:? = @load_table(`f:sym);\n" + load("k", "i32") + load("x", "f64") + load("y", "f64") +
                        "  g:? = @group(f_k);\n  first:? = @keys(g);\n  rows:? = @values(g);\n  key:? = @index(f_k, first);\n";
    std::vector<std::string> columns{"key"};
    const char* values[] = {"f_x", "f_y", "u", "v"};
    lines += "  u:? = @mul(f_x, 2.0:f64);\n  v:? = @mul(f_y, 4.0:f64);\n";
    for (const bool average : {averages_first, !averages_first})
      for (size_t k = 0; k < (average ? 3u : 4u); ++k) {
        columns.push_back(fmt::format("s{}", columns.size()));
        lines += fmt::format("  c_{0}:? = @each_right(@index, {1}, rows);\n  e_{0}:? = @each(@{2}, c_{0});\n  {0}:? = @raze(e_{0});\n",
                             columns.back(), values[k], average ? "avg" : "sum");
      }
    columns.push_back("n");
    const std::string text = program(lines + "  lens:? = @each(@len, rows);\n  n:? = @raze(lens);\n", columns);
    auto want = run_on_reference(text, tables);
    auto got = run_on("sm_86", text, tables, 2);
    ASSERT_TRUE(want.ok() && got.ok()) << got.error().message << text;
    EXPECT_EQ(got->result, *want) << text;
    EXPECT_EQ(got->launches, 2u) << text;
    EXPECT_TRUE(folds(*got)) << fmt::format("{}", fmt::join(got->library, " "));
  }
}

// As many folds as a sink has, and one more: then the library groups. (Of averages the number of rows is the last one.)
TEST(SinkSums, AtTheMostFoldsOfASink) {
  for (const bool one_more : {false, true})
    for (const uint64_t groups : {7u, 3000u}) {
      MadeTables tables;
      put_floats(tables, 2000, groups, 12);
      std::string lines = "  f:? = @load_table(`f:sym);\n" + load("k", "i32") + load("x", "f64") +
                          "  g:? = @group(f_k);\n  first:? = @keys(g);\n  rows:? = @values(g);\n  key:? = @index(f_k, first);\n";
      std::vector<std::string> columns{"key"};
      for (int k = 0; k < 6; ++k) {
        columns.push_back(fmt::format("s{}", k));
        lines += fmt::format("  u{0}:? = @mul(f_x, {0}.5:f64);\n  c{0}:? = @each_right(@index, u{0}, rows);\n  e{0}:? = @each(@{1}, c{0});\n"
                             "  s{0}:? = @raze(e{0});\n", k, one_more ? "avg" : "sum");
      }
      const std::string text = program(lines, columns);
      auto want = run_on_reference(text, tables);
      auto got = run_on(groups == 7 ? "sm_61" : "sm_90", text, tables, 2);
      ASSERT_TRUE(want.ok() && got.ok()) << got.error().message << text;
      EXPECT_EQ(got->result, *want) << text;
      EXPECT_EQ(folds(*got), !one_more) << fmt::format("{}", fmt::join(got->library, " "));
    }
}

// The first run notices numbers without parts; from then on the operator sums.
TEST(SinkSums, SumsOfNumbersWithoutPartsAreTheOperators) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> kinds[] = {
      {1e300, -1e300},         {1e-30},   {inf},      {inf, -inf, 0.0}, {std::nan("")}, {0x1p48},   {0x1p-60},
      {-0x1.fffffffffffffp47}, {0x1p-61}, {-0x1p-74}, {0x1p-75},        {-0x1p48},      {0x1p-1074}};
  for (const std::vector<double>& among : kinds) {
    const bool fits = std::fabs(among[0]) < 0x1p48 && std::fabs(among[0]) >= 0x1p-74;
    MadeTables tables;
    put_floats(tables, 1500, 40, 7, among);
    const std::string text = float_sums({"f_k"}, false);
    auto want = run_on_reference(text, tables);
    auto got = run_on("sm_86", text, tables, 3);
    ASSERT_TRUE(want.ok() && got.ok()) << got.error().message << text;
    EXPECT_EQ(got->result, *want) << among[0];
    EXPECT_EQ(folds(*got), fits) << among[0];
    EXPECT_EQ(got->by_run[1], got->by_run[2]) << among[0];
  }
  // A number without parts that no row has left is no reason.
  MadeTables tables;
  put_floats(tables, 3000, 40, 8, {1e300});
  std::string text = float_sums({"f_k"}, true);
  const std::string all = "@gt(f_n, 300:i32)", small = "@lt(f_x, 1000000.0:f64)";
  text.replace(text.find(all), all.size(), small);
  auto want = run_on_reference(text, tables);
  auto got = run_on("sm_90", text, tables, 2);
  ASSERT_TRUE(want.ok() && got.ok()) << got.error().message << text;
  EXPECT_EQ(got->result, *want);
  EXPECT_TRUE(folds(*got));
}

// What makes it safe to add up 2^32 parts in 64 bits: none is more than 2^30, and they are the number.
TEST(SinkSums, PartsAreSmall) {
  std::mt19937_64 random(3);
  std::vector<double> numbers = {0.0,
                                 -0.0,
                                 0x1.fffffffffffffp47,
                                 0x1p-74,
                                 0x1p18,
                                 0x1.8p19,
                                 0x1p-13,
                                 0x1.8p-12,
                                 0x1p-44,
                                 0x1.8p-43,
                                 0x1.0000000000001p18,
                                 0x1.fffffffffffffp17,
                                 0x1.0000000000001p-13,
                                 0x1p18 - 0x1p-13,
                                 0x1p18 + 0x1p-34};
  for (int k = 0; k < 2000; ++k) {
    // Some with few bits, so that rests are often just half of a unit.
    const int bits = static_cast<int>(random() % 53),
              exponent = static_cast<int>(random() % (122 - static_cast<unsigned>(bits))) - 74;
    const double x = std::ldexp(static_cast<double>(random() >> (63 - bits)), exponent);
    if (x < 0x1p48) numbers.push_back(x);
  }
  std::vector<int64_t> column;
  for (const double x : numbers)
    for (const double v : {x, -x}) column.push_back(std::bit_cast<int64_t>(v));
  MadeTables tables;
  tables.put("f", "x", BasicType::f64, column);
  std::string lines = "  f:? = @load_table(`f:sym);\n" + load("x", "f64");
  std::vector<std::string> columns;
  for (int part = 0; part < 4; ++part) {
    lines += fmt::format("  p{0}:? = @GPU.sum_part(f_x, {0}:i64);\n  a{0}:? = @abs(p{0});\n", part);
    columns.push_back(fmt::format("p{}", part));
  }
  const std::string text = program(lines, columns);
  auto want = run_on_reference(text, tables);
  ASSERT_TRUE(want.ok()) << want.error().message;
  for (const char* target : {"sm_61", "sm_75", "sm_90"}) {
    auto got = run_on(target, text, tables);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(got->result, *want) << target;
  }
  lines += "  x:? = @GPU.sum_of_parts(p0, p1, p2, p3);\n  same:? = @eq(x, f_x);\n  c4:? = @all(same);\n";
  for (int part = 0; part < 4; ++part) lines += fmt::format("  c{0}:? = @max(a{0});\n", part);
  const std::string extremes = program(lines, {"c0", "c1", "c2", "c3", "c4"});
  auto most = run_on("sm_90", extremes, tables);
  ASSERT_TRUE(most.ok()) << most.error().message;
  EXPECT_EQ(most->result, *run_on_reference(extremes, tables));
  EXPECT_THAT(most->result, ::testing::HasSubstr("[536870912,1073741824,1073741824,1073741824,true]"));
}

// Of most rows the parts are as large as they can be, and of one sign: sums leave 32 bits again and again, on both sides of 0.
TEST(SinkSums, LargestPartsOfOneSign) {
  constexpr double top = 0x1.fffffffffffffp47;
  const double numbers[] = {top, 0x1p18, 0x1p-13, 0x1p-44, 0x1p18 + 0x1p-13, 0x1p18 - 0x1p-13, 0x1.8p19 - 0x1p-34};
  constexpr uint64_t rows = 700;
  std::vector<int64_t> key, x;
  for (uint64_t i = 0; i < rows; ++i)
    for (size_t k = 0; k < std::size(numbers); ++k)
      for (const double sign : {1.0, -1.0}) {
        key.push_back(static_cast<int64_t>(2 * k) + (sign < 0));
        x.push_back(std::bit_cast<int64_t>(sign * numbers[k]));
      }
  for (const int64_t spread : {1, 700}) {  // in the block's memory, and in the global table
    MadeTables tables;
    std::vector<int64_t> keys = key;
    for (int64_t& k : keys) k *= spread;
    tables.put("f", "k", BasicType::i32, keys);
    tables.put("f", "x", BasicType::f64, x);
    const std::string text =
        program("  f:? = @load_table(`f:sym);\n" + load("k", "i32") + load("x", "f64") +
                    "  g:? = @group(f_k);\n  rows:? = @values(g);\n  c:? = @each_right(@index, f_x, rows);\n"
                    "  e:? = @each(@sum, c);\n  s:? = @raze(e);\n",
                {"s"});
    auto want = run_on_reference(text, tables);
    ASSERT_TRUE(want.ok()) << want.error().message;
    for (const char* target : {"sm_61", "sm_75", "sm_90"}) {
      auto got = run_on(target, text, tables);
      ASSERT_TRUE(got.ok()) << got.error().message << text;
      EXPECT_EQ(got->result, *want) << target << spread;
      EXPECT_TRUE(folds(*got)) << target << spread;
    }
  }
}

// A program's own parts have nothing to become: the number is at fault, whichever of its parts the program takes.
TEST(SinkSums, NumbersWithoutPartsInAProgramAreAnError) {
  for (const double number : {1e300, 0x1p-75})
    for (const char* parts : {"3", "0", "1", "01", "0123"}) {
      MadeTables tables;
      put_floats(tables, 1000, 40, 10, {number});
      std::string lines = "  f:? = @load_table(`f:sym);\n" + load("x", "f64");
      std::vector<std::string> columns;
      for (const char* k = parts; *k; ++k) {
        columns.push_back(fmt::format("p{}", *k));
        lines += fmt::format("  p{0}:? = @GPU.sum_part(f_x, {0}:i64);\n", *k);
      }
      auto got = run_on("sm_86", program(lines, columns), tables);
      ASSERT_FALSE(got.ok()) << number << " " << parts;
      EXPECT_THAT(got.error().message, ::testing::HasSubstr("no such parts"));
    }
}

// Sums that are more than their types hold wrap around, in a block's memory (32 bits at a time), in the global table, behind hashed keys and in the library.
TEST(SinkSums, WrapAround) {
  constexpr uint64_t rows = 3000;
  std::mt19937_64 random(1);
  std::vector<int64_t> key, spread, wide, n, w;
  for (uint64_t i = 0; i < rows; ++i) {
    key.push_back(static_cast<int64_t>(random() % 20));
    spread.push_back(key.back() * 1500);  // too many entries for a block
    wide.push_back(key.back() * 0x123456789ABCDE);
    // Of some keys all are alike, so that sums pass the limit again and again; of others both signs.
    const bool negative = key.back() % 3 == 0 || (key.back() % 3 == 1 && random() % 2);
    n.push_back(negative ? INT32_MIN + static_cast<int64_t>(random() % 5) : INT32_MAX - static_cast<int64_t>(random() % 5));
    w.push_back(negative ? INT64_MIN + static_cast<int64_t>(random() % 5) : INT64_MAX - static_cast<int64_t>(random() % 5));
  }
  for (const auto& [name, keys, sorts] : {std::tuple("block", &key, false), {"table", &spread, false}, {"hashed", &wide, false}, {"library", &key, true}}) {
    MadeTables tables;
    tables.put("f", "k", BasicType::i64, *keys);
    tables.put("f", "n", BasicType::i32, n);
    tables.put("f", "w", BasicType::i64, w);
    std::string lines = "  f:? = @load_table(`f:sym);\n" + load("k", "i64") + load("n", "i32") + load("w", "i64") +
                        "  g:? = @group(f_k);\n  first:? = @keys(g);\n  rows:? = @values(g);\n  key:? = @index(f_k, first);\n";
    for (const char* x : {"n", "w"})
      lines += fmt::format("  c_{0}:? = @each_right(@index, f_{0}, rows);\n  e_{0}:? = @each(@sum, c_{0});\n  s_{0}:? = @raze(e_{0});\n", x);
    const std::string text = program(lines, {"key", "s_n", "s_w"});
    auto want = run_on_reference(text, tables);
    ASSERT_TRUE(want.ok()) << want.error().message << text;
    for (const char* target : {"sm_61", "sm_90"}) {
      auto got = run_so(target, text, tables, {.runs = 2}, outliner::Mode::full, !sorts);
      ASSERT_TRUE(got.ok()) << name << ": " << got.error().message;
      EXPECT_EQ(got->result, *want) << name << " on " << target;
      EXPECT_EQ(folds(*got) || is_hashed(*got), !sorts) << name;
    }
  }
}

// i16 in i32: beyond 2^31 with 65,536 rows and more.
TEST(SinkSums, OfNarrowNumbersWrapAroundAsWideOnes) {
  constexpr uint64_t rows = 68000;
  MadeTables tables;
  tables.put("f", "k", BasicType::i32, std::vector<int64_t>(rows, 7));
  tables.put("f", "s", BasicType::i16, std::vector<int64_t>(rows, -32768));
  const std::string text = program("  f:? = @load_table(`f:sym);\n" + load("k", "i32") + load("s", "i16") +
                                       "  g:? = @group(f_k);\n  rows:? = @values(g);\n  c:? = @each_right(@index, f_s, rows);\n"
                                       "  e:? = @each(@sum, c);\n  s:? = @raze(e);\n", {"s"});
  auto want = run_on_reference(text, tables);
  auto got = run_on("sm_86", text, tables);
  ASSERT_TRUE(want.ok() && got.ok()) << got.error().message << text;
  EXPECT_EQ(got->result, *want);
  EXPECT_TRUE(folds(*got));
  EXPECT_THAT(*want, ::testing::HasSubstr(fmt::format("{}", (int64_t{1} << 32) - 32768 * int64_t{rows})));
}

// Sums whose parts cancel each other, are of different signs, leave one bit below all others, or fall between two doubles.
TEST(SinkSums, PartsThatCancel) {
  constexpr double top = 0x1.fffffffffffffp47;
  constexpr double least = 0x1p-74;
  std::vector<std::vector<double>> sums = {{top, -top},
                                           {top, -top, least},
                                           {top, least, -top},
                                           {top, -top, -least},
                                           {1.0, -0x1p-24},
                                           {4096.0, -least},
                                           {-4096.0, 0x1p-24, -least},
                                           {0x1p47, 0x1p47, -0x1p47, -0x1p47},
                                           {1.0, 0x1p-53},
                                           {1.0, 0x1p-53, least},
                                           {1.0, 0x1p-53, -least},
                                           {-1.0, -0x1p-53},
                                           {-1.0, -0x1p-53, -least},
                                           {0x1.0000000000001p0, 0x1p-53},
                                           {0.0, -0.0},
                                           {-0.0},
                                           {-0.0, -0.0},
                                           {0x1p12, -0x1p12, 0x1p-24, -0x1p-24},
                                           {0x1p12, -0x1p-24, -0x1p-60},
                                           {top, top, top, -least},
                                           {0x1p36, -0x1p0, 0x1p-36, -0x1p-60}};
  // Just half of a unit, a little more and a little less, and what such parts cancel.
  for (const double half : {0x1p18, 0x1p-13, 0x1p-44})
      for (const double x : {half, 3 * half, half + half * 0x1p-29, half - half * 0x1p-29})
        for (const std::vector<double>& sum : std::vector<std::vector<double>>{
                 {x}, {x, -half}, {x, -half, -x}, {x, least, least}, {3 * x, -x, -x, -least}})
          sums.push_back(sum);
  const auto bits = [](double v) { return std::bit_cast<int64_t>(v); };
  // As many rows as blocks have lanes, each group's numbers again and again with a group of their opposites.
  std::vector<int64_t> key, x;
  for (int round = 0; round < 12; ++round)
    for (size_t g = 0; g < sums.size(); ++g)
      for (const double v : sums[g]) {
        key.push_back(static_cast<int64_t>(g));
        x.push_back(bits(v));
        key.push_back(static_cast<int64_t>(sums.size() + g));  // all that is but the first, to and fro
        x.push_back(bits(round % 2 ? -v : v));
      }
  for (const bool large : {false, true}) {
    MadeTables tables;
    std::vector<int64_t> keys = key;
    if (large)
      for (int64_t& k : keys) k *= 400;
    tables.put("f", "k", BasicType::i32, keys);
    tables.put("f", "x", BasicType::f64, x);
    const std::string text = program(
        "  f:? = @load_table(`f:sym);\n" + load("k", "i32") + load("x", "f64") +
            "  g:? = @group(f_k);\n  rows:? = @values(g);\n  first:? = @keys(g);\n  k:? = @index(f_k, first);\n"
            "  c:? = @each_right(@index, f_x, rows);\n  e:? = @each(@sum, c);\n  s:? = @raze(e);\n"
            "  d:? = @each(@avg, c);\n  a:? = @raze(d);\n",
        {"k", "s", "a"});
    auto want = run_on_reference(text, tables);
    ASSERT_TRUE(want.ok()) << want.error().message << text;
    for (const char* target : {"sm_61", "sm_90"}) {
      auto got = run_on(target, text, tables, 2);
      ASSERT_TRUE(got.ok()) << got.error().message << text;
      EXPECT_EQ(got->result, *want) << target << large;
      EXPECT_TRUE(folds(*got)) << target << large;
    }
  }
}

// A device with another number of multiprocessors, so that kernels have other grids; it notes these.
class Grids final : public test::ForwardingDevice {
 public:
  Grids(device::Device& to, uint32_t multiprocessors, std::set<uint32_t>& seen) : ForwardingDevice(to), info_(to.info()), seen_(seen) {
    info_.multiprocessors = multiprocessors;
  }
  const device::Info& info() const override { return info_; }
  Result<void> launch(device::KernelHandle k, device::Dim3 g, device::Dim3 b, uint32_t s, std::span<const std::byte> p) override {
    seen_.insert(g.x);
    return to_.launch(k, g, b, s, p);
  }

 private:
  device::Info info_;
  std::set<uint32_t>& seen_;
};

// Sums and averages of floats are the same bits in every run, whatever the order of blocks and however many there are: 100 runs of each way that sums
// take, half of them with twice as many multiprocessors (the gate: four), with numbers of which plain additions give something else in another order.
// RNDN_SINKS_DEVICE=cuda: on the GPU instead, of more rows, on all of its multiprocessors and on half of them.
TEST(SinkSums, TakeAnyOrder) {
  const char* device_name = std::getenv("RNDN_SINKS_DEVICE");
  const bool on_gpu = device_name && std::string_view(device_name) == "cuda";
  struct Way {
    const char* name;
    const char* target;
    uint64_t rows, range, occurring;  // of keys: below `range`, of which so many occur
    const char* type;
    size_t columns;
    bool hashed, fused, large;  // large: more shared memory than all kernels may have
  };
  const Way ways[] = {
      {"copies in shared memory", "sm_61", 12000, 7, 7, "f64", 2, false, true, false},
      {"hot slots", "sm_90", 9000, 64, 5, "f64", 3, false, true, true},
      {"a large table", "sm_86", 24000, 330, 330, "f64", 3, false, true, true},
      {"a table in global memory", "sm_86", 12000, 5000, 900, "f64", 2, false, true, false},
      {"hashed keys", "sm_90", 12000, 300, 300, "f64", 2, true, true, false},
      {"the library", "sm_61", 12000, 40, 40, "f64", 2, false, false, false},
      {"the library, singles", "sm_86", 12000, 40, 40, "f32", 2, false, true, false},
      {"no groups", "sm_90", 12000, 1, 1, "f64", 2, false, true, false}};
  for (const Way& way : ways) {
    SCOPED_TRACE(way.name);
    // Of the GPU's blocks each has rows enough for tables of its own.
    const uint64_t rows = on_gpu ? 600 * way.rows : way.rows;
    const bool groups = std::string_view(way.name) != "no groups", single = std::string_view(way.type) == "f32";
    std::mt19937_64 random(rows);
    std::vector<int64_t> key;
    std::vector<std::vector<int64_t>> columns(way.columns);
    for (uint64_t i = 0; i < rows; ++i) {
      int64_t k = static_cast<int64_t>(random() % way.occurring * (way.range / way.occurring));
      if (i + 1 == rows) k = static_cast<int64_t>(way.range) - 1;
      key.push_back(way.hashed ? k * 0x123456789ABCDE : k);
      for (std::vector<int64_t>& c : columns) {
        const double x = std::ldexp(static_cast<double>(static_cast<int64_t>(random()) >> 11), static_cast<int>(random() % 50) - 60);
        c.push_back(single ? std::bit_cast<int32_t>(static_cast<float>(x)) : std::bit_cast<int64_t>(x));
      }
    }
    // What an addition in place would give, in two orders.
    const auto added = [&](bool forwards) {
      std::map<int64_t, double> sums;
      for (uint64_t i = 0; i < rows; ++i) {
        const uint64_t at = forwards ? i : rows - 1 - i;
        double& sum = sums[groups ? key[at] : 0];
        if (single)
          sum = static_cast<float>(sum) + std::bit_cast<float>(static_cast<int32_t>(columns[0][at]));
        else
          sum += std::bit_cast<double>(columns[0][at]);
      }
      return sums;
    };
    EXPECT_NE(added(true), added(false)) << "numbers for which the order is all the same";

    MadeTables tables;
    tables.put("f", "k", BasicType::i64, key);
    std::string lines = "  f:? = @load_table(`f:sym);\n" + load("k", "i64");
    if (groups) lines += "  g:? = @group(f_k);\n  first:? = @keys(g);\n  rows:? = @values(g);\n  key:? = @index(f_k, first);\n";
    std::vector<std::string> results;
    if (groups) results.push_back("key");
    for (size_t c = 0; c < columns.size(); ++c) {
      const std::string name = fmt::format("x{}", c);
      tables.put("f", name, single ? BasicType::f32 : BasicType::f64, columns[c]);
      lines += load(name.c_str(), way.type);
      if (groups) lines += fmt::format("  c{0}:? = @each_right(@index, f_{0}, rows);\n", name);
      for (const char* f : {"sum", "avg"}) {
        if (groups)
          lines += fmt::format("  e{0}{1}:? = @each(@{0}, c{1});\n  {0}{1}:? = @raze(e{0}{1});\n", f, name);
        else
          lines += fmt::format("  {0}{1}:? = @{0}(f_{1});\n", f, name);
        results.push_back(f + name);
      }
    }
    const std::string text = program(lines, results);
    auto want = run_on_reference(text, tables);
    ASSERT_TRUE(want.ok()) << want.error().message << text;

    std::unique_ptr<device::Device> gpu;
    const auto preparation = on_gpu ? cuda::prepare() : nullptr;
    if (on_gpu) {
      auto opened = cuda::open(*preparation);
      if (!opened) GTEST_SKIP() << opened.error().message;
      gpu = *std::move(opened);
    }
    SourceManager sources;
    DiagnosticSink sink;
    Timings timings;
    CompileOptions options;
    options.target = on_gpu ? gpu->info().target : way.target;
    options.fuse_groups = way.fused;
    auto compiled = compile(sources.add("t.hir", text), sources, options, sink, timings);
    ASSERT_TRUE(compiled) << compiled.error().message << render(sink, sources);
    CodeCache code("");
    const uint64_t runs = on_gpu ? 50 : rndn::test::in_the_gate(2, 50);
    std::set<uint32_t> grids[2];
    for (size_t of = 0; of < 2; ++of) {
      const uint32_t multiprocessors = on_gpu ? std::max(1u, gpu->info().multiprocessors / (of ? 2 : 1)) : static_cast<uint32_t>(of + 1);
      std::unique_ptr<device::Device> simulator;
      std::unique_ptr<Grids> device;
      std::unique_ptr<Engine> engine;
      std::unique_ptr<Engine::Plan> plan;
      for (uint64_t run = 0; run < runs; ++run) {
        if (!engine || !on_gpu) {  // a simulator's blocks run in an order of its own
          plan = nullptr, engine = nullptr, device = nullptr;
          if (!on_gpu) {
            sim::Options order;
            order.deterministic = true;
            order.seed = 1000 * of + run;
            auto opened = open_simulator(way.target, order);
            ASSERT_TRUE(opened) << opened.error().message;
            simulator = *std::move(opened);
          }
          device = std::make_unique<Grids>(on_gpu ? *gpu : *simulator, multiprocessors, grids[of]);
          engine = std::make_unique<Engine>(*device, tables, &code);
          const EngineOptions how{.allow_fallback = false, .hashed_rows = 2048};
          auto made = engine->plan(*compiled, sources, how, timings);
          ASSERT_TRUE(made) << made.error().message;
          plan = *std::move(made);
        }
        std::vector<KernelReport> kernels;
        auto got = engine->run(*plan, timings, nullptr, &kernels);
        ASSERT_TRUE(got) << got.error().message << text;
        auto shown = print_result(*got, Format::json);
        ASSERT_TRUE(shown);
        ASSERT_TRUE(*shown == *want) << "run " << run << " on " << multiprocessors << " multiprocessors";
        // It is the way that was meant.
        Ran ran;
        for (const KernelReport& k : kernels)
          if (k.kind == "outlined")
            ran.shared_bytes = std::max(ran.shared_bytes, k.shared_bytes);
          else
            ran.library.push_back(k.name);
        EXPECT_EQ(ran.shared_bytes > 25 << 10, way.large) << ran.shared_bytes;
        EXPECT_EQ(is_hashed(ran), way.hashed);
        EXPECT_EQ(ran.library.empty(), !groups || (way.fused && !single && !way.hashed)) << fmt::format("{}", fmt::join(ran.library, " "));
      }
    }
    EXPECT_NE(grids[0], grids[1]);
    if (on_gpu) std::printf("%s: %zu rows, equal in %zu runs\n", way.name, static_cast<size_t>(rows), static_cast<size_t>(2 * runs));
  }
}

// Every function of every type in groups, folded or not (of i128, SQL makes them of parts in 64 bits): few groups, more than a block's table has, none, and all rows their own.
TEST(SinkSums, OfEveryType) {
  constexpr const char* targets[] = {"sm_61", "sm_86", "sm_90", "sm_75", "sm_80", "sm_89"};
  constexpr BasicType types[] = {BasicType::boolean, BasicType::i8,   BasicType::i16,   BasicType::i32,    BasicType::i64,    BasicType::f32,
                                 BasicType::f64,     BasicType::date, BasicType::month, BasicType::minute, BasicType::second};
  size_t turn = 0;
  rndn::test::Sample sample(5);
  for (const uint64_t groups : {1u, 9u, 900u, 6000u})
    for (const BasicType type : types) {
      if (!sample.has_next()) continue;
      const uint64_t rows = groups == 9 ? 2500 : 900;
      std::mt19937_64 random(groups + static_cast<uint64_t>(type));
      const bool calendar = hir::is_calendar(type);
      std::vector<int64_t> k, x;
      for (uint64_t i = 0; i < rows; ++i) {
        k.push_back(static_cast<int64_t>(random() % groups));
        const double f = std::ldexp(static_cast<double>(static_cast<int64_t>(random()) >> 11), static_cast<int>(random() % 40) - 60);
        x.push_back(type == BasicType::boolean ? static_cast<int64_t>(random() % 2)
                    : type == BasicType::f64   ? std::bit_cast<int64_t>(f)
                    : type == BasicType::f32   ? std::bit_cast<int32_t>(static_cast<float>(f))
                    : calendar                 ? static_cast<int64_t>(random() % 1000)
                                               : static_cast<int64_t>(random()));
      }
      MadeTables tables;
      tables.put("f", "k", BasicType::i32, k);
      tables.put("f", "x", type, x);
      std::string lines = "  f:? = @load_table(`f:sym);\n" + load("k", "i32") + load("x", std::string(hir::basic_type_name(type)).c_str());
      std::vector<std::string> columns{"key"};
      // A group for each function, so that one that is no fold does not keep others from being one.
      for (const char* f : {"sum", "len", "min", "max", "avg"}) {
        if (calendar && (std::string_view(f) == "sum" || std::string_view(f) == "avg")) continue;
        if (type == BasicType::boolean && (std::string_view(f) == "min" || std::string_view(f) == "max")) continue;
        lines += fmt::format("  g{0}:? = @group(f_k);\n  rows{0}:? = @values(g{0});\n", f);
        if (columns.size() == 1) lines += fmt::format("  first:? = @keys(g{});\n  key:? = @index(f_k, first);\n", f);
        if (std::string_view(f) != "len") lines += fmt::format("  c{0}:? = @each_right(@index, f_x, rows{0});\n", f);
        lines += fmt::format("  e{0}:? = @each(@{0}, {1}{0});\n  s{0}:? = @raze(e{0});\n", f, std::string_view(f) == "len" ? "rows" : "c");
        columns.push_back(fmt::format("s{}", f));
      }
      const std::string text = program(lines, columns);
      auto want = run_on_reference(text, tables);
      ASSERT_TRUE(want.ok()) << hir::basic_type_name(type) << ": " << want.error().message << text;
      const size_t first = turn++;
      for (size_t t = 0; t < (rndn::test::every_case() ? std::size(targets) : 1); ++t) {
        const char* target = targets[(first + t) % std::size(targets)];
        auto got = run_on(target, text, tables, 2);
        ASSERT_TRUE(got.ok()) << hir::basic_type_name(type) << " on " << target << ": " << got.error().message << text;
        EXPECT_TRUE(got->result == *want) << hir::basic_type_name(type) << ", " << groups << " groups on " << target << "\n" << text;
      }
    }
}

}  // namespace
}  // namespace rndn::runtime::sink_sums_test
