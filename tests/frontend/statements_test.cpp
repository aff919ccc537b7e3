// Statements that are read by hand (frontend/statements.cpp) and those that the grammar reads make the same program with the same positions.
//
// A comment inside a statement leaves it to the grammar; four blanks in its place do not. So every text is read twice, at equal offsets.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/frontend/random_program.h"
#include "tests/frontend/support.h"

namespace rndn::hir {
namespace {

// `filler` before the first `=` of every line that begins with a name, with a type or without.
std::string with(const std::string& text, std::string_view filler) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size() - 1;
    std::string line = text.substr(at, end + 1 - at);
    const size_t first = line.find_first_not_of(" \t"), equals = line.find('=');
    const bool assigns =
        first != std::string::npos && equals != std::string::npos &&
        line.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789 :?<>", first) == equals;
    if (assigns) line.insert(equals, filler);
    out += line;
    at = end + 1;
  }
  return out;
}

void add(std::string& out, Span s) { out += fmt::format(" {}-{}", s.begin, s.end); }

// Every position in the program, and every name by its id.
std::string positions(const Program& p) {
  std::string out;
  for (const Function& f : p.functions) {
    add(out, f.span);
    for (const Variable& v : f.variables) out += fmt::format(" v{}", index(v.name)), add(out, v.span);
    for (const Statement& s : f.statements) {
      out += fmt::format("\ns{}", int(s.kind)), add(out, s.span);
      for (const Target& t : s.targets) out += fmt::format(" t{}", index(t.name)), add(out, t.span);
    }
    for (const Expression& e : f.expressions) {
      out += fmt::format("\ne{} {} {}", int(e.kind), index(e.callee.name), index(e.inner));
      add(out, e.span);
      add(out, e.callee.span);
      for (const Operand& o : e.operands) out += fmt::format(" o{}/{}", o.id, index(o.name)), add(out, o.span);
    }
    for (const Block& b : f.blocks) {
      add(out, b.span);
      for (StatementId id : b.statements) out += fmt::format(" b{}", index(id));
    }
  }
  for (const Literal& l : p.literals) add(out, l.span);
  return out;
}

std::string replaced(std::string diagnostics) {
  for (size_t at = 0; (at = diagnostics.find("/**/", at)) != std::string::npos;) diagnostics.replace(at, 4, "    ");
  return diagnostics;
}

void expect_same(const std::string& name, const std::string& text) {
  SCOPED_TRACE(name);
  const Outcome by_hand = run_text(name, with(text, "    ")), by_grammar = run_text(name, with(text, "/**/"));
  EXPECT_EQ(by_hand.ok, by_grammar.ok);
  EXPECT_EQ(replaced(by_hand.diagnostics), replaced(by_grammar.diagnostics));
  EXPECT_EQ(positions(by_hand.program), positions(by_grammar.program));
  if (by_hand.ok && by_grammar.ok) {
    EXPECT_EQ(structure(by_hand.program), structure(by_grammar.program));
  }
}

TEST(Statements, ByHandAndByGrammarAreTheSame) {
  size_t files = 0;
  for (const char* folder : {"accept", "typed", "errors"})
    for (const std::string& path : test_files(folder)) expect_same(path, read(path)), ++files;
  for (const auto& entry : std::filesystem::directory_iterator(RNDN_SOURCE_DIR "/tpch/queries"))
    if (entry.path().extension() == ".hir") expect_same(entry.path().string(), read(entry.path().string())), ++files;
  EXPECT_GT(files, 80u);
}

TEST(Statements, RandomProgramsAsWell) {
  for (uint32_t seed = 1; seed <= 20; ++seed)
    expect_same(fmt::format("seed {}", seed),
                random_program(seed, 25, [](const std::string& t) { return run_text("r.hir", t).ok; }));
}

// What looks like a simple statement up to some point, and what stands near one: behind an `if` without braces, before an `else`.
TEST(Statements, NextToOthers) {
  const auto in_main = [](const std::string& body) {
    return "module m { import Builtin.*;\n def f(x:i32) : i32 { return x; }\n def main() : i32 {\n x:i32 = 1:i32;\n" +
           body + "\n return x;\n } }\n";
  };
  for (const char* body :
       {"if (x)\n x = @plus(x, 1:i32);\n x = @plus(x, 2:i32);\n",
        "if (x)\n x = @plus(x, 1:i32);\n else\n x = @plus(x, 2:i32);\n x = @plus(x, 3:i32);\n",
        "if (x) if (x)\n x = @plus(x, 1:i32);\n else\n x = @plus(x, 2:i32);\n x = @plus(x, 3:i32);\n",
        "while (x) {\n x = @minus(x, 1:i32);\n }\n y:? = @f(x);\n { x = @plus(x, y); }\n x = @plus(x, 2:i32);\n",
        "// a comment; and = signs\n x = @plus(x, 1:i32); /* one */ x = @plus(x, -7:i32); // another\n",
        "y:list<i32> = @list(x);\n z:enum<?> = @enum(x, x);\n w:? = @list(@plus, x);\n",
        "y:? = @list(`a`b:sym, (`a,`\"b c\"):sym, (1, 2 ,3):i64, 1.5:f64, 1998-09-02:date, 10:20:minute, "
        "1+2i:complex);",
        "y:? = @eq(\"a\\\"b\":str, \"c\":str);\n z:? = @m.f(x);\n w:? = @Builtin.plus(x, 2:i32);\n",
        "y:? = @list(1998-09:month, 1998-09-02T10:20:30.123:dt, 007:i32);\n", "y:? = @plus(x, 1e3:f64);\n",
        "if:? = @plus(x, 1:i32);\n", "y:? = @plus(x 1:i32);\n", "y:? = @plus(x, 1);\n",
        "y:nothing = @plus(x, 1:i32);\n", "y:? = @plus(x, 99999999999999999999:i64);\n x = @plus(x, 1:i32);\n",
        "y:? = check_cast(@plus(x, 1:i64), i64);\n", "y:? = @each(@f, x)\n"})
    expect_same(body, in_main(body));
}

// Ends of blocks within blocks: the grammar reads a token beyond an `if` that may go on with `else`, and what that token
// begins is not over. Every nest of three, followed by every kind of statement, within one more block and without.
TEST(Statements, AfterBlocksInBlocks) {
  const std::vector<std::string> openers = {"if (x) {\n", "while (x) {\n", "repeat (x) {\n", "{\n", "if (x)\n"};
  const std::vector<std::string> nexts = {"x = @plus(x, 2:i32);\n",
                                          "y:i32 = @f(x);\n",
                                          "var y:i32 = @f(x);\n",
                                          "var y:i32;\n y = @f(x);\n",
                                          "@f(x);\n",
                                          "return x;\n",
                                          "if (x) x = @f(x);\n",
                                          "while (x) {\n x = @f(x);\n }\n",
                                          "{\n x = @f(x);\n }\n",
                                          "m.g = @f(x);\n"};
  size_t different = 0;
  for (const std::string& a : openers)
    for (const std::string& b : openers)
      for (const std::string& c : openers)
        for (const std::string& next : nexts)
          for (const std::string& before : {std::string(), std::string("if (x) {\n")}) {
            std::string body = before + a + b + c + "x = @plus(x, 1:i32);\n", after;
            for (const std::string* opener : {&c, &b, &a})
              if (opener->find('{') != std::string::npos) body += "}\n";
            body += next + "x = @plus(x, 3:i32);\n" + (before.empty() ? "" : "}\n");
            const std::string text =
                "module m { import Builtin.*;\n global g:i32 = 0:i32;\n def f(x:i32) : i32 { return x; }\n"
                " def main() : i32 {\n x:i32 = 1:i32;\n" +
                body + " return x;\n } }\n";
            expect_same(text, text);
            // The order that is written, whoever reads it.
            const Outcome made = run_text("order.hir", text);
            ASSERT_TRUE(made.ok) << text << made.diagnostics;
            for (const Function& f : made.program.functions)
              for (const Block& block : f.blocks)
                for (size_t i = 1; i < block.statements.size(); ++i)
                  different +=
                      f.statements[block.statements[i]].span.begin < f.statements[block.statements[i - 1]].span.end;
          }
  EXPECT_EQ(different, 0u);
}

}  // namespace
}  // namespace rndn::hir
