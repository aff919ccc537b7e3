// Lengths that the analyses only assume to be equal: right where they are, the reference interpreter's error where they are not, and its result where
// one of the vectors turns out to be a single value. In every outline mode, on three targets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/support/no_tables.h"

namespace rndn::runtime {
namespace {

// What a run says: its result as csv, or its error. `met`: falls back of the run.
struct Outcome {
  std::string said, met;
  size_t kernels = 0;
};

std::string said(const Result<std::vector<reference::Value>>& got) {
  return got ? *print_result(*got, Format::csv) : fmt::format("{}: {}", got.error().exit_code(), got.error().message);
}

// On the simulator by `mode`, and on the reference interpreter: they must say the same. on_host: some statement has no GPU code.
Outcome run(const std::string& body, const char* target, outliner::Mode mode, int repeats = 1, bool on_host = false) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  CompileOptions options;
  options.target = target;
  options.outline = mode;
  auto compiled = compile(sources.add("t.hir", "module m { import Builtin.*; def main() : " + body + " }"), sources,
                          options, sink, timings);
  Outcome out;
  EXPECT_TRUE(compiled.ok()) << compiled.error().message << render(sink, sources) << body;
  if (!compiled) return out;
  EXPECT_EQ(compiled->no_gpu_code, "");
  out.kernels = compiled->outlined.kernels.size();
  rndn::test::NoTables tables;
  auto device = open_simulator(target);
  Engine engine(**device, tables);
  auto plan = engine.plan(*compiled, sources, {}, timings);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  if (!plan) return out;
  if (!on_host) {
    EXPECT_THAT((*plan)->fallbacks(), testing::IsEmpty()) << body;
  }
  const std::string want = said(reference::run(compiled->program, tables, sources, nullptr));
  for (int k = 0; k < repeats; ++k) {
    std::vector<std::string> met;
    out.said = said(engine.run(**plan, timings, nullptr, nullptr, &met));
    EXPECT_EQ(out.said, want) << target << " mode " << static_cast<int>(mode) << "\n" << body;
    out.met = met.empty() ? "" : met[0];
  }
  return out;
}

// The numbers below `below` in a, those from `from` to 99 in b; `then` makes r of them.
std::string two_selections(int below, int from, const std::string& then, const char* type = "i64") {
  return fmt::format(R"({} {{
  v:? = @range(100:i64); p:? = @lt(v, {}:i64); q:? = @geq(v, {}:i64);
  a:? = @compress(p, v); b:? = @compress(q, v);
  {}
  return r; }})",
                     type, below, from, then);
}

// What to do with two vectors that must be equally long. `single`: where one of them may be a single value.
struct Use {
  const char* then;
  bool single;
};
constexpr Use uses[] = {
    {"r:? = @plus(a, b);", true},
    {"c:? = @mul(a, 2:i64); d:? = @plus(c, b); r:? = @sum(d);", true},
    {"unread:? = @plus(a, b); r:? = @sum(a);", true},
    {"c:? = @mul(a, b); d:? = @minus(c, a); e:? = @plus(b, d); r:? = @sum(e);", true},
    {"c:? = @gt(a, 3:i64); d:? = @compress(c, b); r:? = @sum(d);", false},
    {"r:? = @index_a(v, a, b);", true},
    // b as a vector of any length and, at the same places as a, as an operand.
    {"z:? = @minus(a, a); c:? = @plus(a, b); d:? = @index(b, z); e:? = @plus(c, d); r:? = @sum(e);", true},
};

TEST(Lengths, AssumedEqual) {
  int on_device = 0;
  for (const char* target : {"sm_61", "sm_86", "sm_90"})
    for (outliner::Mode mode : {outliner::Mode::none, outliner::Mode::flow, outliner::Mode::full})
      for (const Use& use : uses) {
        SCOPED_TRACE(use.then);
        EXPECT_EQ(run(two_selections(40, 60, use.then), target, mode, 2).met, "");
        EXPECT_EQ(run(two_selections(0, 100, use.then), target, mode).met, "");
        const Outcome shorter = run(two_selections(40, 61, use.then), target, mode);
        EXPECT_EQ(shorter.said.substr(0, 9), "1: t.hir:") << shorter.said;
        EXPECT_THAT(shorter.said, testing::HasSubstr("40"));
        EXPECT_THAT(shorter.said, testing::HasSubstr("39"));
        EXPECT_EQ(run(two_selections(39, 60, use.then), target, mode).said.substr(0, 9), "1: t.hir:");
        for (const auto& [below, from] : {std::pair{40, 99}, {1, 60}}) {
          const Outcome single = run(two_selections(below, from, use.then), target, mode);
          if (single.said.substr(0, 3) == "1: ") continue;  // the interpreter's error
          EXPECT_TRUE(use.single);
          EXPECT_THAT(single.met, testing::AnyOf("", testing::HasSubstr("other lengths than it was made for")));
          on_device += single.met.empty();
        }
      }
  EXPECT_GT(on_device, 0) << "no single value was given as copies";
}

// After a vector turned out to be a single value, sizes are no proof of lengths any more: neither for kernels nor for operators.
TEST(Lengths, SizesProveNothingOnceAnAssumptionFailed) {
  for (outliner::Mode mode : {outliner::Mode::none, outliner::Mode::flow, outliner::Mode::full}) {
    for (const auto& [below, from] : {std::pair{1, 60}, {40, 99}, {40, 60}}) {
      for (const char* then : {
               "c:? = @plus(a, b); d:? = @mul(c, a); r:? = @sum(d);",
               "c:? = @plus(b, a); d:? = @mul(c, b); e:? = @minus(d, a); r:? = @sum(e);",
               "c:? = @plus(a, b); m:? = @gt(c, 50:i64); r:? = @compress(m, a);",
               "c:? = @plus(a, b); d:? = @mul(c, 3:i64); w:? = @mul(a, 3:i64); l:? = @list(d, w); r:? = @order(l, "
               "(1,1):bool);",
           }) {
        const Outcome got = run(two_selections(below, from, then), "sm_86", mode);
        if (from - below == 59 && got.said.substr(0, 3) != "1: ") {
          EXPECT_THAT(got.met, testing::AnyOf("", testing::HasSubstr("other lengths"))) << then;
        }
      }
    }
  }
}

// Cells of one list are not of one length, though of one shape.
TEST(Lengths, CellsOfOneListDiffer) {
  for (const char* target : {"sm_61", "sm_90"})
    for (outliner::Mode mode : {outliner::Mode::none, outliner::Mode::flow, outliner::Mode::full})
      for (const char* keys : {"(1,1,1,2,2,2,3,3,3)", "(1,1,1,2,2,3,3,3,3)", "(1,1,1,2,3,3,3,3,3)"})
        for (const char* then : {
                 "r:? = @plus(p, q);",
                 "m:? = @gt(q, 3:i64); r:? = @compress(m, p);",
                 "e:? = @each_left(@plus, v, q); f:? = @each_item(@mul, v, e); r:? = @raze(f);",
                 "x:? = @index(w, p); y:? = @index(w, q); z:? = @mul(x, y); r:? = @sum(z);",
             }) {
          SCOPED_TRACE(then);
          const std::string body = fmt::format(R"(i64 {{
  k:? = {}:i64; w:? = @range(9:i64); g:? = @group(k); v:? = @values(g);
  p:? = @index(v, 0:i64); q:? = @index(v, 1:i64);
  {}
  return r; }})",
                                               keys, then);
          const Outcome got = run(body, target, mode, 1, true);
          if (std::string_view(keys) == "(1,1,1,2,2,3,3,3,3)") {
            EXPECT_TRUE(got.said.starts_with("1: t.hir:")) << got.said;
          }
        }
}

// A kernel's lists have the same cells, wherever their offsets lie; with other cells the interpreter does the kernel's work. Lists on the host, whose
// cells are not in one piece yet, are no exception.
TEST(Lengths, ListsOfAKernelHaveTheSameCells) {
  struct Case {
    const char *keys, *left, *right, *expected;  // of b's groups; the lists that are multiplied
    bool same;
  };
  constexpr const char *wrong = "1: t.hir:5:3: error: `mul` expects vectors of one length",
                       *squares = "value\r\n0\r\n1\r\n4\r\n9\r\n";
  for (const auto& [keys, left, right, expected, same] :
       {Case{"(1,2,2,2)", "a", "b", wrong, false}, Case{"(1,1,2,2)", "a", "b", squares, true},
        Case{"(1,1,2,2)", "x", "y", squares, true}, Case{"(1,1,2,2)", "x", "z", wrong, false},
        Case{"(1,1,2,2)", "a", "y", squares, true}, Case{"(1,1,2,2)", "z", "b", wrong, false}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", keys, left, right));
    SourceManager sources;
    DiagnosticSink sink;
    Timings timings;
    CompileOptions options;
    options.outline = outliner::Mode::none;
    const std::string text = fmt::format(R"(module m {{ import Builtin.*; def main() : i64 {{
  w:? = @range(4:i64); k:? = (1,1,2,2):i64; g:? = @group(k); v:? = @values(g); a:? = @each_right(@index, w, v);
  l:? = {}:i64; h:? = @group(l); u:? = @values(h); b:? = @each_right(@index, w, u);
  c:? = @each_right(@index, w, v); e:? = @each_right(@index, w, v); x:? = @list((0,1):i64, (2,3):i64); y:? = @list((0,1):i64, (2,3):i64); z:? = @list((0,1,2):i64, 3:i64);
  d:? = @each_item(@mul, c, e);
  r:? = @raze(d); s:? = @raze(b); t:? = @raze(a); o:? = @raze(x); p:? = @raze(y); q:? = @raze(z); return r; }} }})",
                                         keys);
    auto compiled = compile(sources.add("t.hir", text), sources, options, sink, timings);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message << render(sink, sources);
    // As if the analyses had found the lists to have the same cells, and no other program knew better.
    compiled->outlined.flattened = false;
    hir::Program& program = compiled->outlined.program;
    hir::Function& main = program.functions[program.main];
    const auto variable = [&](std::string_view name) {
      for (uint32_t i = 0; i < main.variables.size(); ++i)
        if (program.text(main.variables[static_cast<hir::VariableId>(i)].name) == name) return i;
      return UINT32_MAX;
    };
    size_t replaced = 0;
    for (hir::Expression& e : main.expressions.raw())
      if (e.operands.size() == 2 && e.operands[0].kind == hir::Operand::variable && e.operands[0].id == variable("c")) {
        e.operands[0].id = variable(left);
        e.operands[1].id = variable(right);
        ++replaced;
      }
    ASSERT_EQ(replaced, 1u);
    rndn::test::NoTables tables;
    auto device = open_simulator("sm_86");
    Engine engine(**device, tables);
    auto plan = engine.plan(*compiled, sources, {}, timings);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    std::vector<std::string> met;
    const std::string got = said(engine.run(**plan, timings, nullptr, nullptr, &met));
    EXPECT_TRUE(got.starts_with(expected)) << got;
    EXPECT_TRUE(met.empty() || !same) << met[0];
  }
}

// The second operation runs with the first: one launch for both, and the length of neither is asked for twice.
TEST(Lengths, OperationsOnAssumedLengthsShareAKernel) {
  const std::string both = two_selections(40, 60, "c:? = @mul(a, b); d:? = @minus(c, a); r:? = @sum(d);");
  EXPECT_EQ(run(both, "sm_86", outliner::Mode::full).kernels, 2u);
}

}  // namespace
}  // namespace rndn::runtime
