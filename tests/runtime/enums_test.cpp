// Enums that programs make, looked at as row numbers or more, at random: with and without outliner/enums.cpp the reference interpreter gives the same,
// and those that are row numbers only are enums no more.
#include <gtest/gtest.h>

#include <random>

#include "frontend/frontend.h"
#include "outliner/outliner.h"
#include "runtime/print_result.h"
#include "tests/support/no_tables.h"

namespace rndn::runtime {
namespace {

struct Made {
  std::string text;
  bool stays = false;  // as an enum
};

Made make(std::mt19937_64& random) {
  const auto pick = [&](size_t n) { return random() % n; };
  struct Type {
    const char* name;
    std::vector<const char*> values;
    bool stays = false;
  };
  const Type types[] = {{"i64", {"7", "-1", "0", "9223372036854775807", "12"}},
                        {"i8", {"1", "2", "3", "-128"}},
                        {"date", {"1970-01-01", "2024-02-29", "1998-12-01"}},
                        {"sym", {"`a", "`b", "`c", "`dd"}},
                        {"bool", {"0", "1"}},
                        {"f64", {"0.5", "1.0", "-2.5"}, true}};
  const Type& type = types[pick(std::size(types))];
  const auto vector = [&](size_t n) {
    std::string out = "(";
    for (size_t i = 0; i < n; ++i) out += std::string(i ? "," : "") + type.values[pick(type.values.size())];
    return out + "):" + type.name;
  };
  Made made;
  made.text = fmt::format("  k:? = {};\n  x:? = {};\n", vector(2 + pick(6)), vector(2 + pick(9)));
  const char* reads = "(1, 0, 1):i64";
  made.text += "  e:? = @enum(k, x);\n";
  if (pick(3) == 0) made.text += fmt::format("  x = @index(k, {});\n", reads);
  if (pick(3) == 0) made.text += fmt::format("  k = @index(k, {});\n", reads);
  made.text += "  v:? = @values(e);\n";
  if (pick(2))
    made.text += "  f:? = e;\n  w:? = @values(f);\n";
  else
    made.text += "  w:? = @values(e);\n";
  made.text += "  n:? = @len(k);\n  there:? = @lt(w, n);\n  kept:? = @compress(there, w);\n";
  const bool looks = pick(4) == 0;
  made.text += looks ? "  keys:? = @keys(e);\n" : "  keys:? = @len(x);\n";
  made.text += "  r:? = @list(v, w, kept, keys, x);\n  return r;\n";
  made.text = "module m {\n import Builtin.*;\n def main() : list<?> {\n" + made.text + " }\n}\n";
  made.stays = type.stays || looks;
  return made;
}

TEST(Enums, OfProgramsAreRowNumbers) {
  std::mt19937_64 random(7);
  size_t replaced = 0;
  for (int i = 0; i < 400; ++i) {
    const Made made = make(random);
    SourceManager sources;
    DiagnosticSink sink;
    Timings timings;
    const hir::Program program = hir::run(sources.add("t.hir", made.text), sources, {}, sink, timings);
    ASSERT_FALSE(sink.has_errors()) << made.text << render(sink, sources);
    const outliner::Outlined outlined = outliner::run(program, {}, sink, timings);
    ASSERT_FALSE(sink.has_errors()) << made.text << render(sink, sources);
    const auto text_of = [&](const hir::Program& p) {
      auto result = reference::run(p, rndn::test::NoTables(), sources, nullptr);
      return result ? *print_result(*result, Format::json) : result.error().message;
    };
    ASSERT_EQ(text_of(outlined.program), text_of(program)) << made.text;
    const bool stays = print(outlined.program, true).find("@enum(") != std::string::npos;
    ASSERT_EQ(stays, made.stays) << made.text << print(outlined.program, true);
    replaced += !stays;
  }
  EXPECT_GT(replaced, 100u);
}

}  // namespace
}  // namespace rndn::runtime
