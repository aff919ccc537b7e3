// Hostile input: hand-made extremes, and some thousands of seeded mutations of the accepted and refused programs. The same checks
// run open-endedly in the fuzz target.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "tests/frontend/robust.h"
#include "tests/frontend/support.h"
#include "tests/support/small_stack.h"

namespace rndn::hir {
namespace {

std::string repeat(std::string_view text, size_t n) {
  std::string out;
  out.reserve(text.size() * n);
  for (size_t i = 0; i < n; ++i) out += text;
  return out;
}

// x0 = first; then each x takes the one before: `{0}` in `step` is the number of that.
std::string chain(int n, std::string_view step, std::string_view first = "1:i32") {
  std::string out = fmt::format("x:? = 1:i32; x0:? = {};", first);
  for (int i = 1; i < n; ++i) out += fmt::format("x{}:? = {};\n", i, fmt::format(fmt::runtime(step), i - 1));
  return out;
}

// `step` n times: `{0}` in it is the number, `{1}` the next.
std::string numbered(int n, const std::string& step) {
  std::string out;
  for (int i = 0; i < n; ++i) out += fmt::format(fmt::runtime(step), i, i + 1);
  return out;
}

TEST(Robust, Extremes) {
  const std::string head = "module m { import Builtin.*; def main() { ";
  const std::string tail = " } }";
  const std::vector<std::string> texts = {
      "",
      std::string(1, '\0'),
      std::string(100000, '\0'),
      "/*" + std::string(100000, '\0') + "*/\"" + std::string(100000, '\0') + '"',
      "\xff\xfe\xfd",
      "/*",
      "/**",
      "\"",
      "'",
      "`",
      "`\"",
      "\"\\",
      "'\\",
      "//",
      "@",
      std::string(200000, '{'),
      std::string(200000, '}'),
      std::string(200000, '('),
      std::string(200000, '-'),
      std::string(200000, '9'),
      std::string(200000, '`'),
      repeat("/*", 100000),
      repeat("\"\n", 50000),
      repeat("module m {", 20000),
      repeat("module m { def f() {", 10000),
      head + repeat("if (x) ", 100000) + "y = 1:i32;" + tail,
      head + repeat("while (x) { ", 50000),
      head + repeat("if (x) { } else ", 50000) + "{ }" + tail,
      head + "x:? = " + repeat("check_cast(", 50000) + "y" + repeat(", i32)", 50000) + ";" + tail,
      head + "x:" + repeat("list<", 50000) + "i32" + repeat(">", 50000) + " = y;" + tail,
      head + "x:list<" + repeat("i32,", 50000) + "i32> = y;" + tail,
      head + "x:f64 = " + std::string(100000, '9') + ":f64;" + tail,
      head + "x:i64 = " + std::string(100000, '9') + ":i64;" + tail,
      head + "x:f64 = 1e" + std::string(100000, '9') + ":f64;" + tail,
      head + "x:f64 = 0." + std::string(100000, '0') + "1:f64;" + tail,
      head + "x:complex = 1e99999999999+1e99999999999i:complex;" + tail,
      head + "x:str = \"" + std::string(100000, 'x') + "\":str;" + tail,
      head + std::string(100000, 'x') + " = 1:i32;" + tail,
      head + "x:? = (" + repeat("1,", 100000) + "1):i32;" + tail,
      head + "x:? = @list(" + repeat("1:i32,", 20000) + "1:i32);" + tail,
      head + "x:? = @join_index(" + repeat("@eq", 20000) + ", 1:i32, 1:i32);" + tail,
      head + repeat("goto L; L> x;", 1000) + tail,
      "module m { import Builtin.*; " + repeat("def f() { } ", 5000) + "}",
      head + chain(40, "@dict(x{0}, x{0})") + tail,
      head + chain(5000, "@list(x{0})") + tail,
      head + chain(40, "@append(x{0}, x{0})", "@list(x, `a:sym)") + tail,
      head + chain(5000, "@plus(y{0}, z{0})") + tail,
      head + chain(5000, "@pluss(x{0})") + tail,
      "module m { " + numbered(100000, "global g{0}:? = g{1};\n") + "global g100000:? = 1:i64; }",
      "module m { " + numbered(100000, "global g{0}:i64 = g{1};\n") + "global g100000:i64 = g7; }",
      "module m { " +
          numbered(150, "def f{0}(n:i64) : ? {{ x:? = 0:i64; " + repeat("if (1:bool) {{ ", 190) + "x = @f{1}(n);" +
                            repeat(" }}", 190) + " return x; }}\n") +
          "def f150(n:i64) : ? { return n; } def main() { x:? = @f0(1:i64); } }",
  };
  ASSERT_TRUE(on_own_stack(rndn::test::small_stack, [&] {
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(check_robust(texts[i]), "") << "text " << i;
  }));
}

// As deep as may be, in each way at once: statements, casts, and functions whose types follow from those that they call.
TEST(Robust, WhatIsAllowedIsNotTooDeep) {
  std::string text = "module m { import Builtin.*; def f0(n:i64) : ? { return n; }\n";
  for (int i = 1; i < 190; ++i) text += fmt::format("def f{}(n:i64) : ? {{ x:? = @f{}(n); return x; }}\n", i, i - 1);
  text += "def last(n:i64) : ? { var x:i64; " + repeat("if (1:bool) { ", 198) + "x = " + repeat("check_cast(", 199) +
          "@f189(n)" + repeat(", i64)", 199) + ";" + repeat(" }", 198) + " return x; }\n";
  text += "def main() : i64 { y:i64 = @last(1:i64); return y; } }";
  ASSERT_TRUE(on_own_stack(rndn::test::small_stack, [&] {
    EXPECT_EQ(check_robust(text), "");
    const Outcome made = run_text("deep.hir", text);
    EXPECT_TRUE(made.ok) << made.diagnostics;
  }));
}

TEST(Robust, SeededMutations) {
  std::vector<std::string> seeds;
  for (const char* folder : {"accept", "accept", "accept", "errors"})
    for (const std::string& path : test_files(folder)) seeds.push_back(read(path));
  // Pieces that matter to the grammar, spliced in at random.
  const std::vector<std::string> pieces = {"{",       "}",          "(",         ")",       ";",
                                           ":",       ",",          "=",         "@",       "?",
                                           "`",       "\"",         "'",         "<",       ">",
                                           ".",       "-",          "*",         "_",       "/*",
                                           "*/",      "//",         "\\",        "\n",      std::string(1, '\0'),
                                           "\xff",    "module ",    "def ",      "kernel ", "global ",
                                           "import ", "if (",       "else ",     "while (", "repeat (",
                                           "return ", "break;",     "continue;", "var ",    "check_cast(",
                                           "list<",   "enum<",      "@each(",    "@list(",  "@join_index(@eq,",
                                           "@table(", "@group(",    ":i32",      ":sym",    ":date",
                                           ":func",   "1998-09-02", "2i",        "1e9",     "9223372036854775808",
                                           "main",    "x:? = "};
  std::mt19937 random(20240607);
  auto pick = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  size_t accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = seeds[pick(seeds.size())];
    for (size_t edits = round % 2 ? 1 : 1 + pick(4); edits > 0 && !text.empty(); --edits) {
      size_t at = pick(text.size());
      size_t length = 1 + pick(std::min<size_t>(text.size() - at, 12));
      switch (pick(6)) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, length); break;
        case 2: text.insert(at, pieces[pick(pieces.size())]); break;
        case 3: text.insert(pick(text.size()), text.substr(at, length * 4)); break;
        case 4: text.resize(at); break;
        case 5: {
          const std::string& other = seeds[pick(seeds.size())];
          size_t from = pick(other.size());
          text.insert(at, other.substr(from, 60));
          break;
        }
      }
    }
    std::string complaint = check_robust(text);
    ASSERT_EQ(complaint, "") << "round " << round << " on:\n" << text;
    accepted += run_text("m.hir", text).ok;
  }
  EXPECT_GT(accepted, 100u);  // otherwise the later passes were not reached
}

}  // namespace
}  // namespace rndn::hir
