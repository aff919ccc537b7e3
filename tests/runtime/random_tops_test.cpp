// Random uses of an order, with and without top-k (outliner/top.cpp): the outlined programs give the same on the reference interpreter, or both fail.
// Which uses keep an order whole is for tests/outliner/top_test.cpp; here nothing is known of the rules. RNDN_RANDOM_SEEDS=N: so many programs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "frontend/frontend.h"
#include "outliner/outliner.h"
#include "runtime/print_result.h"
#include "tests/support/every_case.h"
#include "tests/support/no_tables.h"

namespace rndn::runtime {
namespace {

// Statements over vectors, masks and single numbers, of which most come from an order.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  std::string make() {
    const int n = pick(4) ? 1 + pick(30) : 1;
    for (const char* name : {"x", "y"}) {
      std::string values;
      for (int i = 0; i < n; ++i) values += fmt::format("{}{}", i ? "," : "", pick(12));
      text_ += fmt::format("  {}:i64 = {};\n", name, n == 1 ? values + ":i64" : "(" + values + "):i64");
    }
    vectors_ = {"x", "y"};
    if (pick(2)) {  // a size that only the run knows
      text_ += "  keep:? = @lt(x, 11:i64);\n  a:? = @compress(keep, x);\n  b:? = @compress(keep, y);\n";
      vectors_ = {"a", "b"};
    }
    const std::string key = one(vectors_);
    text_ += fmt::format("  k:? = @sum({});\n  o:? = @order({}, {}:bool);\n  n:? = @len(o);\n  p:? = @range(n);\n",
                         one(vectors_), key, pick(2));
    text_ += fmt::format("  m:? = @lt(p, {}:i64);\n  w:? = @where(m);\n", pick(9));
    vectors_.insert(vectors_.end(), {"o", "o", "p", "w", "w"});
    masks_ = {"m"};
    numbers_ = {"n", "k", "3:i64", "2:i64"};
    for (int i = pick(7) + 1; i > 0; --i) statement();
    const std::string last = vectors_.back();
    return fmt::format(
        "module m {{\n import Builtin.*;\n def main() : list<?> {{\n{}  r:? = @list({}, {});\n  return r;\n }}\n}}\n",
        text_, last, pick(3) ? made_.empty() ? last : one(made_) : last);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  const std::string& one(const std::vector<std::string>& of) {
    return of[static_cast<size_t>(pick(static_cast<int>(of.size())))];
  }
  std::string vector() { return one(vectors_); }
  std::string mask() { return one(masks_); }
  std::string number() { return one(numbers_); }
  void define(std::vector<std::string>& to, const std::string& call) {
    const std::string name = fmt::format("v{}", made_count_++);
    text_ += fmt::format("  {}:? = {};\n", name, call);
    to.push_back(name);
    if (&to == &vectors_) made_.push_back(name);
  }
  void statement() {
    switch (pick(16)) {
      case 0: return define(numbers_, fmt::format("@len({})", vector()));
      case 1: return define(vectors_, fmt::format("@range({})", number()));
      case 2: return define(masks_, fmt::format("@lt({}, {})", vector(), number()));
      case 3: return define(masks_, fmt::format("@gt({}, {})", number(), vector()));
      case 4: return define(masks_, fmt::format("@leq({}, {})", vector(), number()));
      case 5: return define(vectors_, fmt::format("@where({})", mask()));
      case 6: return define(vectors_, fmt::format("@compress({}, {})", mask(), vector()));
      case 7: return define(vectors_, fmt::format("@take({}, {})", pick(4) ? "4:i64" : "-2:i64", vector()));
      case 8: return define(vectors_, vector());
      case 9: return define(vectors_, fmt::format("@plus({}, {})", vector(), number()));
      case 10: {  // mostly the smaller of a length and a number
        const char* compare[] = {"lt", "leq", "gt", "geq"};
        std::string sides[] = {pick(3) ? "n" : number(), fmt::format("{}:i64", pick(5) - 1)};
        const bool mirrored = pick(2);
        const std::string test = fmt::format("v{}", made_count_++);
        text_ += fmt::format("  {}:? = @{}({}, {});\n", test, compare[pick(4)], sides[mirrored], sides[!mirrored]);
        if (pick(4) == 0) sides[1] = fmt::format("{}:i64", pick(7));
        const bool turned = pick(2);
        return define(numbers_, fmt::format("@select({}, {}, {})", test, sides[turned], sides[!turned]));
      }
      case 11: return define(vectors_, fmt::format("@take({}, {})", number(), vector()));
      default: return define(vectors_, fmt::format("@index({}, {})", vector(), vector()));
    }
  }

  std::mt19937_64 random_;
  std::string text_;
  std::vector<std::string> vectors_, masks_, numbers_, made_;
  int made_count_ = 0;
};

TEST(RandomTops, GiveWhatWholeOrdersGive) {
  size_t programs = 0, tops = 0, failing = 0;
  const char* seeds = std::getenv("RNDN_RANDOM_SEEDS");
  const uint64_t last = seeds ? std::strtoull(seeds, nullptr, 10) : rndn::test::in_the_gate(2000, 6000);
  for (uint64_t seed = 0; seed < last; ++seed) {
    const std::string text = Generator(seed).make();
    std::string got[2];
    bool top = false, compiles = true;
    for (const bool with : {false, true}) {
      SourceManager sources;
      DiagnosticSink sink;
      Timings timings;
      const hir::Program program = hir::run(sources.add("t.hir", text), sources, {}, sink, timings);
      outliner::Outlined outlined;
      if (!sink.has_errors()) outlined = outliner::run(program, {.tops = with}, sink, timings);
      compiles = !sink.has_errors();
      if (!compiles) break;
      top = print(outlined.program, true).find("@GPU.top_lib") != std::string::npos;
      auto result = reference::run(outlined.program, rndn::test::NoTables(), sources, nullptr);
      got[with] = result ? *print_result(*result, Format::json) : "fails";
    }
    if (!compiles) continue;
    ++programs;
    tops += top;
    failing += got[0] == "fails";
    ASSERT_EQ(got[1], got[0]) << "seed " << seed << "\n" << text;
  }
  std::printf("%zu programs, %zu with a top-k, %zu that fail\n", programs, tops, failing);
  EXPECT_GE(programs, last / 2);
  EXPECT_GE(tops, last / 20);
}

}  // namespace
}  // namespace rndn::runtime
