// docs/horseir.md against the code: every builtin has an entry and an example, entries say what the
// table of builtins says, their lines stand in the examples, and everything that has a result gives
// it. docs/tutorial.md shows its programs and their outputs as they are.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "frontend/builtins.h"
#include "tests/docs/run_program.h"
#include "tools/builtin_help.h"

namespace rndn::docs::page_test {
namespace {

using tools::HelpEntry;
using tools::HelpFamily;
using tools::parse_builtin_help;

const std::string& page() {
  static const std::string text = read(RNDN_SOURCE_DIR "/docs/horseir.md");
  return text;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string_view trim(std::string_view s) {
  while (s.starts_with(' ')) s.remove_prefix(1);
  while (s.ends_with(' ')) s.remove_suffix(1);
  return s;
}

// A line of code without its indentation, and the comment behind it.
struct CodeLine {
  std::string code, comment;
  // An expression that is run for itself, not a line of the example.
  bool is_expression() const { return code.starts_with('@') || code.starts_with("check_cast("); }
};

constexpr std::string_view indentation = "    ", comment_mark = "//";

bool is_code(std::string_view line) { return line.starts_with(indentation); }

CodeLine code_line(std::string_view line) {
  const size_t comment = line.find(comment_mark);
  CodeLine out{std::string(trim(line.substr(0, comment))), {}};
  if (comment != line.npos) out.comment = trim(line.substr(comment + comment_mark.size()));
  return out;
}

std::vector<hir::Builtin> all_builtins() {
  std::vector<hir::Builtin> all;
  for (size_t i = 0; i < hir::builtin_count(); ++i) all.push_back(static_cast<hir::Builtin>(i));
  return all;
}

std::map<std::string, HelpEntry> entries() {
  std::map<std::string, HelpEntry> by_name;
  for (const HelpFamily& family : parse_builtin_help(page())) {
    EXPECT_FALSE(family.entries.empty()) << "no entries in " << family.title;
    for (const HelpEntry& entry : family.entries) {
      const bool fresh = by_name.emplace(entry.name, entry).second;
      EXPECT_TRUE(fresh) << "two entries of " << entry.name;
    }
  }
  return by_name;
}

std::string example(const std::string& name) {
  return RNDN_SOURCE_DIR "/examples/horseir/" + name + ".hir";
}

// Runs the program on both devices and compares with `wanted`: rows, or words of an error.
void expect(Runner& runner, const std::string& place, const std::string& program,
            const std::string& wanted) {
  constexpr std::string_view error_mark = "error: ";
  for (Where where : both) {
    const Outcome outcome = runner.run(where, place, program);
    if (wanted.starts_with(error_mark)) {
      const std::string words = wanted.substr(error_mark.size());
      EXPECT_NE(outcome.error.find(words), std::string::npos)
          << place << " on the " << name_of(where) << " gives\n"
          << outcome.error << outcome.text;
    } else {
      EXPECT_EQ(outcome.error, "") << place << " on the " << name_of(where);
      const std::string got = rows_of(outcome.text, false);
      EXPECT_TRUE(agree(got, wanted))
          << place << " on the " << name_of(where) << " gives " << got << ", not " << wanted;
    }
  }
}

TEST(Page, HasAnEntryAndAnExampleOfEveryBuiltinAndOfNothingElse) {
  const std::map<std::string, HelpEntry> found = entries();
  std::set<std::string> names, examples;
  for (hir::Builtin builtin : all_builtins()) {
    const std::string name(hir::row(builtin).name);
    names.insert(name);
    auto entry = found.find(name);
    if (entry == found.end()) {
      ADD_FAILURE() << "docs/horseir.md has no entry of `" << name << "`";
      continue;
    }
    EXPECT_TRUE(entry->second.signature.starts_with(name + "(")) << name;
    EXPECT_GT(entry->second.summary.size(), 5u) << name;
    if (!entry->second.is_item) examples.insert(name);
  }
  for (const auto& [name, entry] : found)
    EXPECT_TRUE(names.contains(name)) << "line " << entry.line << ": no builtin is called " << name;
  const std::vector<std::string> programs = stems("examples/horseir", ".hir");
  EXPECT_EQ(std::set<std::string>(programs.begin(), programs.end()), examples);
}

// The number of arguments of the first signature; what has a default may be left out.
TEST(Page, SignaturesTakeAsManyArgumentsAsTheTableSays) {
  constexpr uint8_t any_number = 255;
  for (const auto& [name, entry] : entries()) {
    hir::Builtin builtin;
    if (entry.is_item || !hir::find_builtin(name, builtin)) continue;
    const size_t open = entry.signature.find('('), close = entry.signature.find(')');
    ASSERT_NE(close, std::string_view::npos) << name;
    const std::string_view inside = entry.signature.substr(open + 1, close - open - 1);
    size_t parameters = 0;  // each has a colon
    for (size_t at = inside.find(": "); at != inside.npos; at = inside.find(": ", at + 1))
      ++parameters;
    size_t defaults = 0;
    for (size_t at = inside.find(" = "); at != inside.npos; at = inside.find(" = ", at + 1))
      ++defaults;
    const bool more = inside.find("...") != inside.npos;
    EXPECT_EQ(parameters - defaults, hir::row(builtin).min_arity) << name;
    EXPECT_EQ(more, hir::row(builtin).max_arity == any_number) << name;
    if (!more) {
      EXPECT_EQ(parameters, hir::row(builtin).max_arity) << name;
    }
  }
}

// "Runs: device." stands for a row that says so and an example without a fallback.
TEST(Page, FactsAreThoseOfTheTableAndOfARun) {
  const std::set<std::string> costs = {"none", "one pass", "sort", "hash"};
  const std::map<hir::Device, std::string> words = {
      {hir::Device::gpu, "device"}, {hir::Device::library, "library"}, {hir::Device::cpu, "host"}};
  Runner runner;
  for (const auto& [name, entry] : entries()) {
    hir::Builtin builtin;
    if (entry.is_item || !hir::find_builtin(name, builtin)) continue;
    auto fact = [&](std::string_view mark) {
      const size_t at = entry.facts.find(mark);
      if (at == entry.facts.npos) return std::string();
      const size_t begin = at + mark.size();
      return std::string(entry.facts.substr(begin, entry.facts.find('.', begin) - begin));
    };
    EXPECT_NE(fact("Shape: "), "") << name;
    EXPECT_TRUE(costs.contains(fact("Cost: "))) << name << ": cost " << fact("Cost: ");
    if (hir::needs_math(builtin, hir::BasicType::f64) && !runner.has_math()) continue;
    std::string where = words.at(hir::row(builtin).device);
    const Outcome outcome = runner.run(Where::simulator, name, read(example(name)));
    for (const std::string& step : outcome.fallbacks)
      if (step.find("`" + name + "`") != step.npos) where = "host";
    EXPECT_EQ(fact("Runs: "), where) << name;
    if (where != "host") {
      EXPECT_TRUE(outcome.fallbacks.empty()) << name;
    }
  }
}

// The lines of an entry that are no expressions stand in the example, in this order; the comment
// behind the last of them is what the example prints.
TEST(Page, EntriesShowLinesOfTheirExamples) {
  Runner runner;
  for (const auto& [name, entry] : entries()) {
    if (entry.is_item) continue;
    const std::vector<std::string> program = lines_of(read(example(name)));
    size_t at = 0, shown = 0;
    std::string result;
    for (const std::string& line : lines_of(entry.text)) {
      if (!is_code(line)) continue;
      const CodeLine code = code_line(line);
      if (code.is_expression()) continue;
      ++shown;
      result = code.comment;
      while (at < program.size() && trim(program[at]) != code.code) ++at;
      EXPECT_LT(at, program.size()) << example(name) << " lacks, or has it before: " << code.code;
    }
    EXPECT_GT(shown, 0u) << name << " shows nothing of its example";
    expect(runner, example(name), read(example(name)), result);
  }
}

// Lines that are expressions, wherever they stand: `e` is the empty vector.
TEST(Page, ExpressionsGiveTheirResults) {
  Runner runner;
  size_t number = 0, seen = 0;
  for (const std::string& line : lines_of(page())) {
    ++number;
    if (!is_code(line)) continue;
    const CodeLine code = code_line(line);
    if (!code.is_expression()) continue;
    ++seen;
    const std::string place = fmt::format("docs/horseir.md:{}", number);
    EXPECT_NE(code.comment, "") << place << ": " << code.code << " has no result";
    expect(runner, place,
           "module m { import Builtin.*; def main() : ? { e:i64 = @range(0:i64); r:? = " +
               code.code + "; return r; } }",
           code.comment);
  }
  EXPECT_GT(seen, 80u);
}

// Blocks that are fenced and named `horseir` are programs; a comment behind one is its result.
TEST(Page, ProgramsGiveTheirResults) {
  Runner runner;
  const std::vector<std::string> lines = lines_of(page());
  size_t programs = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] != "```horseir") continue;
    const size_t first = ++i;
    std::string program;
    for (; i < lines.size() && lines[i] != "```"; ++i) program += lines[i] + "\n";
    const CodeLine last = code_line(lines[i - 1]);
    const std::string place = fmt::format("docs/horseir.md:{}", first);
    EXPECT_EQ(last.code, "") << place << " has no result";
    expect(runner, place, program, last.comment);
    ++programs;
  }
  EXPECT_GE(programs, 5u);
}

// The tutorial's fenced blocks stand in its files: programs in a .hir, results in a .out, data and
// schema in theirs.
TEST(Tutorial, ShowsItsFilesAsTheyAre) {
  const std::map<std::string, std::vector<std::string>> kinds = {
      {"```horseir", {".hir"}}, {"```text", {".out"}}, {"```data", {".csv", "schema.json"}}};
  std::map<std::string, std::string> texts;
  for (const auto& [fence, endings] : kinds)
    for (const std::string& ending : endings)
      for (const std::string& stem : stems("examples/tutorial", ending))
        texts[fence] += "\n" + read(RNDN_SOURCE_DIR "/examples/tutorial/" + stem + ending);
  const std::string tutorial = read(RNDN_SOURCE_DIR "/docs/tutorial.md");
  const std::vector<std::string> lines = lines_of(tutorial);
  std::map<std::string, size_t> blocks;
  for (size_t i = 0; i < lines.size(); ++i) {
    auto kind = texts.find(lines[i]);
    if (kind == texts.end()) continue;
    std::string block;
    for (++i; i < lines.size() && lines[i] != "```"; ++i) block += lines[i] + "\n";
    EXPECT_NE(kind->second.find("\n" + block), std::string::npos)
        << "docs/tutorial.md before line " << i + 1 << " shows what no file has:\n"
        << block;
    ++blocks[kind->first];
  }
  EXPECT_GE(blocks["```horseir"], 5u);
  EXPECT_GE(blocks["```text"], 5u);
  for (const std::string& name : stems("examples/tutorial", ".hir"))
    EXPECT_NE(tutorial.find("examples/tutorial/" + name + ".hir"), std::string::npos)
        << "docs/tutorial.md does not name " << name << ".hir";
}

// The parser of entries itself, on a page of its own.
TEST(Page, EntriesAreParsed) {
  const auto families = parse_builtin_help(
      "# T\n\n## Types\n\n### no entry\n\n## Builtins: one\n\nText.\n\n### f\n\n`f(x: real) -> "
      "i32`,"
      " `f()`\nShape: as\nx. Runs: host.\n\nFirst\nsentence, f.x too. More.\n\n    @f(1) // 2\n\n"
      "### g\n\n`g()`\n\nEnds here.\n\n## Builtins: two\n\n- `M.h(x) -> T`: Does h. And\n  more.\n"
      "- `M.i()`: Does i.\n\n## Else\n\n### not one either\n");
  ASSERT_EQ(families.size(), 2u);
  EXPECT_EQ(families[0].title, "one");
  ASSERT_EQ(families[0].entries.size(), 2u);
  const HelpEntry& f = families[0].entries[0];
  EXPECT_EQ(f.name, "f");
  EXPECT_EQ(f.line, 11u);
  EXPECT_EQ(f.signature, "f(x: real) -> i32");
  EXPECT_EQ(f.facts, ", `f()`\nShape: as\nx. Runs: host.");
  EXPECT_EQ(f.summary, "First sentence, f.x too.");
  EXPECT_TRUE(f.text.ends_with("    @f(1) // 2"));
  EXPECT_EQ(families[0].entries[1].summary, "Ends here.");
  ASSERT_EQ(families[1].entries.size(), 2u);
  EXPECT_EQ(families[1].entries[0].name, "M.h");
  EXPECT_EQ(families[1].entries[0].text, "`M.h(x) -> T`: Does h. And\n  more.");
  EXPECT_EQ(families[1].entries[1].summary, "Does i.");
}

}  // namespace
}  // namespace rndn::docs::page_test
