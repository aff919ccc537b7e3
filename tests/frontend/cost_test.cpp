// What the frontend costs grows like the size of the program. Work is counted, not timed: this program is linked with a copy of the
// frontend in which every basic block calls the counter below.
#include <gtest/gtest.h>

#include <string>

#include "frontend/frontend.h"

namespace {
uint64_t blocks = 0;
}

extern "C" void __sanitizer_cov_trace_pc() { ++blocks; }

namespace rndn::hir {
namespace {

// Basic blocks from text to typed program.
uint64_t cost(const std::string& text) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  FileId file = sources.add("large.hir", text);
  const uint64_t before = blocks;
  (void)run(file, sources, {}, sink, timings);
  const uint64_t spent = blocks - before;
  EXPECT_FALSE(sink.has_errors()) << render(sink, sources).substr(0, 1000);
  return spent;
}

std::string straight(int n) {
  std::string text = "module m { import Builtin.*; def main() : i32 { x0:? = 1:i32; ";
  for (int i = 1; i < n; ++i) text += fmt::format("x{}:? = @plus(x{}, {}:i32);\n", i, i - 1, i);
  return text + "return x0; } }";
}

std::string loops(int n) {
  std::string text = "module m { import Builtin.*; def main() : i32 { x0:? = 1:i32; ";
  for (int i = 1; i < n; ++i)
    text += fmt::format("x{}:? = x{}; while (x{}) {{ if (x0) break; x0 = @plus(x{}, 1:i32); }}\n", i, i - 1, i, i);
  return text + "return x0; } }";
}

std::string nested(int n) {
  std::string text = "module m { import Builtin.*; def main() : i32 { x:? = 1:i32; ";
  for (int i = 0; i < n; ++i) text += "while (x) { if (x) { repeat (x) { ";
  text += "x = @plus(x, 1:i32);";
  for (int i = 0; i < n; ++i) text += "} } }";
  return text + " return x; } }";
}

std::string functions(int n) {
  std::string text = "module m { import Builtin.*; def f0(x:i32) : i32 { return x; } ";
  for (int i = 1; i < n; ++i) text += fmt::format("def f{}(x:i32) : i32 {{ y:? = @f{}(x); return y; }}\n", i, i - 1);
  return text + fmt::format("def main() : i32 {{ y:? = @f{}(1:i32); return y; }} }}", n - 1);
}

// Imports that give nothing, and one module again and again, behind the one that gives every name.
std::string imports(int n) {
  std::string text = "module n { } module k { ";
  for (int i = 0; i < n; ++i) text += fmt::format("global g{}:i32 = 1:i32; ", i);
  text += "} module m { import k.*; import Builtin.*; ";
  for (int i = 0; i < n; ++i) text += fmt::format("import M{}.*; import n.*; ", i);
  text += "def main() : i32 { ";
  for (int i = 0; i < n; ++i) text += fmt::format("x{}:i32 = g{}; ", i, i);
  return text + "return x0; } }";
}

std::string literals(int n) {
  std::string text = "module m { import Builtin.*; def main() : sym { x:sym = (";
  for (int i = 0; i < n; ++i) text += fmt::format("{}`name_{}", i ? "," : "", i);
  return text + "):sym; return x; } }";
}

TEST(Cost, IsLinearInTheSizeOfTheProgram) {
  struct Case {
    const char* name;
    std::string (*program)(int n);
    int n;
  };
  const Case cases[] = {{"straight", straight, 2000},  {"loops", loops, 400},      {"nested", nested, 15},
                        {"functions", functions, 400}, {"imports", imports, 2000}, {"literals", literals, 4000}};
  for (const Case& c : cases) {
    const uint64_t once = cost(c.program(c.n)), fourfold = cost(c.program(4 * c.n));
    EXPECT_GT(once, static_cast<uint64_t>(c.n) * 10) << c.name << ": the frontend is not the one that counts";
    // Longer names and logarithms may add a little; a quadratic pass of one block per pair would double it.
    EXPECT_LT(static_cast<double>(fourfold) / static_cast<double>(once), 5.0) << c.name << ": " << once << " blocks";
  }
}

// Simple statements are read by hand: a comment in each leaves them to the grammar, which is the price of a statement without that.
TEST(Cost, SimpleStatementsAreCheaper) {
  const auto program = [](const char* filler) {
    std::string text = "module m { import Builtin.*; def main() : i32 { x0:? = 1:i32; ";
    for (int i = 1; i < 500; ++i) text += fmt::format("x{}:?{}= @plus(x{}, {}:i32);\n", i, filler, i - 1, i);
    return text + "return x0; } }";
  };
  EXPECT_LT(1.7 * static_cast<double>(cost(program("    "))), static_cast<double>(cost(program("/**/"))));
}

}  // namespace
}  // namespace rndn::hir
