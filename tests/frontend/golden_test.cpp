// Golden diagnostics, accepted programs and their round trips, typed output. RNDN_UPDATE=1 writes the golden files anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <string>

#include "frontend/builtins.h"
#include "libraries/base/system/files.h"
#include "tests/frontend/random_program.h"
#include "tests/frontend/support.h"
#include "tests/support/status.h"

namespace rndn::hir {
namespace {

std::string base_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

TEST(Errors, AreReportedAsExpected) {
  auto files = test_files("errors");
  ASSERT_GT(files.size(), 30u);
  for (const std::string& path : files) {
    SCOPED_TRACE(base_name(path));
    Outcome out = run_text(base_name(path), read(path));
    EXPECT_FALSE(out.diagnostics.empty());
    // Files named warn_* hold warnings only, all others at least one error.
    EXPECT_EQ(out.ok, base_name(path).starts_with("warn_")) << out.diagnostics;
    expect_golden(path + ".expected", out.diagnostics);
  }
}

TEST(Errors, EveryKindHasAGoldenFile) {
  std::set<std::string> used, shown;
  // A file of more than a gigabyte is no test file.
  const std::set<std::string> exempt = {"too-large"};
  size_t sources = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RNDN_SOURCE_DIR "/frontend")) {
    std::string extension = entry.path().extension().string();
    if (extension != ".cpp" && extension != ".l" && extension != ".y") continue;
    ++sources;
    std::string text = read(entry.path().string());
    for (std::string_view call : {"error(\"", "warning(\"", "error(\n", "warning(\n"}) {
      for (size_t at = text.find(call); at != std::string::npos; at = text.find(call, at + 1)) {
        size_t begin = text.find('"', at) + 1;
        used.insert(text.substr(begin, text.find('"', begin) - begin));
      }
    }
  }
  ASSERT_GT(sources, 5u);
  ASSERT_GT(used.size(), 30u);
  for (const std::string& path : test_files("errors"))
    for (const std::string& kind : run_text(base_name(path), read(path)).kinds) shown.insert(kind);
  for (const std::string& kind : used)
    if (!exempt.contains(kind)) {
      EXPECT_TRUE(shown.contains(kind)) << "no file in tests/frontend/errors shows a `" << kind << "`";
    }
  for (const std::string& kind : shown) EXPECT_TRUE(used.contains(kind)) << kind;
  rndn::testing::record_status("language", "kinds of diagnostics", "specified", std::to_string(used.size()));
  rndn::testing::record_status("language", "kinds of diagnostics", "tested", std::to_string(shown.size()));
}

// Every message of the frontend: the texts with a blank in them that stand in calls of error, warning and note.
std::vector<std::string> messages(const std::string& source) {
  std::vector<std::string> found;
  for (std::string_view call : {"error(", "warning(", "note("})
    for (size_t at = source.find(call); at != std::string::npos; at = source.find(call, at + 1)) {
      if (at > 0 && (std::isalnum(source[at - 1]) || source[at - 1] == '_')) continue;  // such as input_error
      size_t depth = 0, last_end = 0;
      std::vector<std::string> texts;
      for (size_t i = at + call.size() - 1; i < source.size(); ++i) {
        if (source[i] == '\'' && i + 2 < source.size() && source[i + 2] == '\'')
          i += 2;
        else if (source[i] == '(')
          ++depth;
        else if (source[i] == ')' && --depth == 0)
          break;
        else if (source[i] == '"') {
          std::string text;
          const size_t begin = i;
          while (source[++i] != '"') text += source[i] == '\\' ? source[++i] : source[i];
          // Neighbours are one text.
          if (!texts.empty() && source.find_first_not_of(" \n", last_end) == begin)
            texts.back() += text;
          else
            texts.push_back(text);
          last_end = i + 1;
        }
      }
      for (const std::string& text : texts)
        if (text.find(' ') != std::string::npos) found.push_back(text);
    }
  return found;
}

// Whether a line holds what stands around the {} of the format, in order.
bool shows(std::string_view line, std::string_view format) {
  std::string piece;
  size_t at = 0;
  auto flush = [&] {
    at = line.find(piece, at);
    if (at == std::string_view::npos) return false;
    at += piece.size();
    piece.clear();
    return true;
  };
  for (size_t i = 0; i < format.size(); ++i) {
    const bool brace = format[i] == '{' || format[i] == '}';
    if (brace && i + 1 < format.size() && format[i + 1] == format[i]) {
      piece += format[i++];
    } else if (format[i] == '{') {
      if (!flush()) return false;
      i = format.find('}', i);
    } else {
      piece += format[i];
    }
  }
  return flush();
}

// More than its kind: each message, and each part that is added to one now and then, is shown by some golden file.
TEST(Errors, EveryMessageIsShownByAGoldenFile) {
  std::vector<std::string> lines;
  for (const char* folder : {"errors", "accept"})
    for (const std::string& path : test_files(folder)) {
      std::string text = run_text(base_name(path), read(path)).diagnostics;
      for (size_t at = 0, end; at < text.size(); at = end + 1) {
        end = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, end - at));
      }
    }
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RNDN_SOURCE_DIR "/frontend")) {
    if (entry.path().extension() != ".cpp") continue;
    for (const std::string& message : messages(read(entry.path().string()))) {
      ++count;
      if (message.starts_with("expected a program of at most")) continue;  // no test file is that large
      EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](auto& line) { return shows(line, message); }))
          << entry.path().filename() << ": no file in tests/frontend/errors shows:\n  " << message;
    }
  }
  EXPECT_GT(count, 120u);
}

std::vector<std::string> accepted() {
  auto files = test_files("accept");
  for (const auto& entry : std::filesystem::directory_iterator(RNDN_SOURCE_DIR "/tpch/queries"))
    if (entry.path().extension() == ".hir") files.push_back(entry.path().string());
  return files;
}

TEST(Accept, ProgramsTypeWithTheExpectedWarnings) {
  auto files = test_files("accept");
  ASSERT_GT(files.size(), 10u);
  for (const std::string& path : files) {
    SCOPED_TRACE(base_name(path));
    Outcome out = run_text(base_name(path), read(path));
    EXPECT_TRUE(out.ok) << out.diagnostics;
    expect_golden(path + ".expected", out.diagnostics);
    if (path.find("parse_") != std::string::npos) continue;
    expect_golden(RNDN_SOURCE_DIR "/tests/frontend/typed/" + base_name(path) + ".expected", print(out.program, true));
    // Everything is resolved and typed. Functions that nothing calls may keep `?` parameters.
    for (const Function& f : out.program.functions) {
      for (const Expression& e : f.expressions) {
        for (const Operand& o : e.operands) EXPECT_NE(o.kind, Operand::unresolved);
        if (e.kind == Expression::call) {
          EXPECT_NE(e.callee.kind, FunctionRef::unresolved);
        }
        for (TypeId t : e.types) EXPECT_FALSE(is_none(t));
      }
      for (const Variable& v : f.variables)
        if (!v.is_parameter) {
          EXPECT_FALSE(out.program.types->is_wildcard(v.type)) << out.program.text(v.name);
        }
    }
  }
}

TEST(RoundTrip, PrintedProgramsParseToTheSameProgram) {
  for (const std::string& path : accepted()) {
    SCOPED_TRACE(base_name(path));
    std::string text = read(path);
    // Parsed only.
    Outcome parsed = run_text("a.hir", "// test: parse\n" + text);
    ASSERT_TRUE(parsed.ok) << parsed.diagnostics;
    std::string once = print(parsed.program, false);
    Outcome again = run_text("b.hir", "// test: parse\n" + once);
    ASSERT_TRUE(again.ok) << again.diagnostics << once;
    EXPECT_EQ(print(again.program, false), once);
    EXPECT_EQ(structure(again.program), structure(parsed.program));
    // Resolved and typed: the typed form types again, to itself.
    Outcome typed = run_text("c.hir", text);
    if (!typed.ok) continue;  // reported by the test above
    std::string full = print(typed.program, true);
    // The canonical form has v0's argument orders already undone: read it as the newest dialect.
    std::string head = text.substr(0, text.find('\n') + 1);
    if (!head.starts_with("// test:")) head.clear();
    if (size_t at = head.find("v0"); at != std::string::npos) head.erase(at, 2);
    Outcome retyped = run_text("d.hir", head + full);
    ASSERT_TRUE(retyped.ok) << retyped.diagnostics << full;
    EXPECT_EQ(print(retyped.program, true), full);
    EXPECT_EQ(structure(retyped.program), structure(run_text("e.hir", head + full).program));
  }
}

TEST(RoundTrip, RandomProgramsParseToTheSameProgram) {
  std::set<std::string> builtins;
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    std::string text = random_program(seed, 30, [](const std::string& t) { return run_text("r.hir", t).ok; });
    SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, text));
    Outcome out = run_text("r.hir", text);
    ASSERT_TRUE(out.ok) << out.diagnostics;
    std::string parsed_form = print(out.program, false), typed_form = print(out.program, true);
    Outcome parsed = run_text("a.hir", parsed_form), typed = run_text("b.hir", typed_form);
    ASSERT_TRUE(parsed.ok) << parsed.diagnostics << parsed_form;
    ASSERT_TRUE(typed.ok) << typed.diagnostics << typed_form;
    EXPECT_EQ(structure(parsed.program), structure(out.program));
    EXPECT_EQ(print(parsed.program, true), typed_form);
    EXPECT_EQ(print(typed.program, true), typed_form);
    for (const Function& f : out.program.functions)
      for (const Expression& e : f.expressions)
        if (e.kind == Expression::call && e.callee.kind == FunctionRef::builtin)
          builtins.insert(std::string(row(e.callee.builtin_id).name));
  }
  // The programs reach nearly everything: what needs a table by name, or a literal that is hard to meet, may be missing.
  EXPECT_GE(builtins.size(), builtin_names().size() * 85 / 100);
}

// Without a schema the casts of the queries give every type, and no query deserves a warning.
TEST(Typed, AllQueriesOfTpch) {
  size_t queries = 0;
  for (const std::string& path : accepted()) {
    if (path.find("/tpch/queries/") == std::string::npos) continue;
    ++queries;
    Outcome out = run_text(base_name(path), read(path));
    EXPECT_EQ(out.diagnostics, "");
    std::string typed = print(out.program, true);
    EXPECT_EQ(typed.find(":?"), std::string::npos) << typed;
  }
  EXPECT_GE(queries, 22u);
}

TEST(Typed, Query6) {
  for (bool schema : {false, true}) {
    std::string text = read(RNDN_SOURCE_DIR "/tpch/queries/q06.hir");
    Outcome out = run_text("q06.hir", (schema ? "// test: schema\n" : "") + text);
    EXPECT_EQ(out.diagnostics, "");
    expect_golden(RNDN_SOURCE_DIR "/tests/frontend/typed/q06.hir.expected", print(out.program, true));
  }
}

}  // namespace
}  // namespace rndn::hir
