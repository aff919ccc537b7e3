// Random programs through the engine on the simulator: the results of the reference interpreter, or its error. One of eight programs ends in an error:
// every target and outline mode must say the same of the same place, at the latest when it runs. By turns on three targets in the three outline
// modes, in the three encodings of columns. RNDN_RANDOM_SEEDS=N: the seeds up to N; RNDN_RANDOM_FIRST=N: from N on. RNDN_RANDOM_ROWS=N,M,..: tables of so
// many rows by turns, for 5 in all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "runtime/engine.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/frontend/random_program.h"
#include "tests/frontend/schema.h"
#include "tests/reference/notation.h"
#include "tests/reference/random_run.h"
#include "tests/reference/tiny_tables.h"

namespace rndn::runtime::random_engine_test {
namespace {

using reference::testing::TinyTables;

// A kernel of a list that also reads a vector with an element per cell.
bool works_beside_cells(const outliner::Outlined& outlined, const outliner::Kernel& kernel) {
  const hir::Function& f = outlined.program.functions[kernel.function];
  return kernel.list && std::any_of(f.parameters.begin(), f.parameters.end(), [&](hir::VariableId v) {
           const outliner::Shape& shape = outlined.shapes[kernel.shapes[v]];
           return shape.kind == outliner::Shape::vector && shape.size == kernel.geometry;
         });
}

// Equal but for numbers that differ in their last digits, and for the sign of what is no number.
bool same_text(std::string a, std::string b) {
  for (std::string* s : {&a, &b})
    for (size_t at; (at = s->find("-nan")) != std::string::npos;) s->erase(at, 1);
  size_t i = 0, k = 0;
  auto number_at = [](const std::string& s, size_t at) {
    return (s[at] >= '0' && s[at] <= '9') ||
           (s[at] == '-' && at + 1 < s.size() && s[at + 1] >= '0' && s[at + 1] <= '9');
  };
  while (i < a.size() && k < b.size()) {
    if (number_at(a, i) && number_at(b, k)) {
      char *end_a = nullptr, *end_b = nullptr;
      const double x = std::strtod(a.c_str() + i, &end_a), y = std::strtod(b.c_str() + k, &end_b);
      if (!(std::abs(x - y) <= 1e-5 * std::max(std::abs(x), std::abs(y)))) return false;
      i = static_cast<size_t>(end_a - a.c_str());
      k = static_cast<size_t>(end_b - b.c_str());
    } else if (a[i++] != b[k++]) {
      return false;
    }
  }
  return i == a.size() && k == b.size();
}

TEST(RandomEngine, AgreesWithTheReferenceInterpreter) {
  size_t planned = 0, kernels = 0, programs = 0, assuming = 0, beside_cells = 0, failing = 0, known_before = 0;
  const char *seeds = std::getenv("RNDN_RANDOM_SEEDS"), *from = std::getenv("RNDN_RANDOM_FIRST");
  const uint32_t first = from ? static_cast<uint32_t>(std::atoi(from)) : 1,
                 last = seeds ? static_cast<uint32_t>(std::atoi(seeds)) : 60;
  std::vector<uint64_t> rows_of_turns;
  const char* row_counts = std::getenv("RNDN_RANDOM_ROWS");
  for (std::istringstream list(row_counts ? row_counts : "5"); list;) {
    uint64_t rows = 0;
    if (list >> rows) rows_of_turns.push_back(rows);
    list.ignore();
  }
  uint64_t rows = 0;  // of this turn
  constexpr const char* targets[] = {"sm_61", "sm_86", "sm_90"};
  constexpr outliner::Mode modes[] = {outliner::Mode::full, outliner::Mode::flow, outliner::Mode::full,
                                      outliner::Mode::none};
  constexpr Encode encodings[] = {Encode::packed, Encode::narrow, Encode::plain};
  // Functions of libdevice stay on the host: their last digits differ from the C library's, and programs may make anything of that.
  libdevice::Math math({});
  const auto plannable = [](const std::string& text) {
    // Control flow on the host has no plan; numbers drawn at random depend on the order of statements.
    for (const char* word : {"if (", "while (", "repeat (", "rand", "seed", "print", "_csv", " g0 =", " g1 =", " g2 ="})
      if (text.find(word, text.find("def main")) != std::string::npos) return false;
    return true;
  };
  const auto finishes = [&](const std::string& text) {
    return plannable(text) && reference::testing::run_bounded(text, rows).finished;
  };
  const auto fails = [&](const std::string& text) {
    if (!plannable(text)) return false;
    const reference::testing::Ran ran = reference::testing::run_bounded(text, rows);
    return ran.typed && !ran.finished && ran.complaint.empty() && !ran.place.empty() &&
           ran.error.find(" may") == std::string::npos;  // than the bounds of this test allow
  };
  for (uint32_t seed = first; seed <= last; ++seed) {
    rows = rows_of_turns[seed / 3 % rows_of_turns.size()];
    const std::string text = seed % 8 == 0 ? hir::random_failure(seed, 25, finishes, 15, fails)
                                           : hir::random_program(seed, 25, finishes, 15);
    const reference::testing::Ran ran = reference::testing::run_bounded(text, rows);
    const std::string failure = ran.finished ? std::string() : ran.place + ": error: " + ran.error;
    failing += !failure.empty();
    const uint32_t turn = seed % 3;
    const char* target = targets[turn];
    const std::string where = fmt::format("seed {} on {}, {} rows", seed, target, rows);
    SourceManager sources;
    DiagnosticSink sink;
    Timings timings;
    CompileOptions options;
    options.schema = &hir::test_schema();
    options.target = target;
    options.outline = modes[(seed / 3 + turn) % 4];
    options.fuse_operators = (seed / 12 + turn) % 4 == 0;
    options.math = &math;
    auto compiled = compile(sources.add("r.hir", text), sources, options, sink, timings);
    if (!compiled.ok() && !failure.empty()) {  // known before the run
      const auto& all = sink.diagnostics();
      const auto error =
          std::find_if(all.begin(), all.end(), [](const Diagnostic& d) { return d.severity == Severity::error; });
      ASSERT_TRUE(error != all.end()) << where << compiled.error().message;
      // A diagnostic points at the call, an error of the run at its statement: on one line here.
      const auto line = [](const std::string& place) { return place.substr(0, place.rfind(':')); };
      EXPECT_EQ(line(sources.describe(error->span)), line(ran.place)) << where << ": " << failure << "\n" << text;
      ++known_before;
      continue;
    }
    ASSERT_TRUE(compiled.ok()) << where << compiled.error().message << render(sink, sources) << text;
    TinyTables tables(rows);
    auto want = reference::run(compiled->program, tables, sources, nullptr);
    ASSERT_EQ(want.ok(), failure.empty()) << text;
    auto device = open_simulator(target);
    Engine engine(**device, tables);
    auto plan = engine.plan(*compiled, sources, {.encode = encodings[seed / 9 % 3], .transfer = seed % 5 < 2 ? Transfer::mapped : Transfer::automatic}, timings);
    ASSERT_TRUE(plan.ok()) << plan.error().message << text;
    ++programs;
    const auto& kernels_of_all = compiled->outlined.kernels;
    assuming += std::any_of(kernels_of_all.begin(), kernels_of_all.end(),
                            [](const outliner::Kernel& k) { return k.assumes; });
    beside_cells += std::any_of(kernels_of_all.begin(), kernels_of_all.end(),
                                [&](const outliner::Kernel& k) { return works_beside_cells(compiled->outlined, k); });
    planned += (*plan)->device_kernels() > 0;
    kernels += (*plan)->device_kernels();
    for (int run = 0; run < 2; ++run) {
      auto got = engine.run(**plan, timings);
      if (!want.ok()) {
        EXPECT_FALSE(got.ok()) << where << " finishes: " << failure << "\n" << text;
        if (!got.ok()) {
          EXPECT_EQ(got.error().message, want.error().message) << where << "\n" << text;
        }
        if (HasFailure()) break;
        continue;
      }
      EXPECT_TRUE(got.ok()) << where << ": " << got.error().message << "\n" << text;
      if (!got.ok()) break;
      ASSERT_EQ(got->size(), want->size());
      for (size_t i = 0; i < got->size(); ++i) {
        auto a = reference::call(hir::Builtin::str, {(*got)[i]}, nullptr, tables, nullptr);
        auto b = reference::call(hir::Builtin::str, {(*want)[i]}, nullptr, tables, nullptr);
        ASSERT_TRUE(a.ok() && b.ok());
        EXPECT_TRUE(same_text((*a)[0].text(0), (*b)[0].text(0)))
            << where << " result " << i << ": " << (*a)[0].text(0) << ", not " << (*b)[0].text(0) << "\n"
            << text;
      }
      if (HasFailure()) break;
    }
    if (HasFailure()) break;
  }
  EXPECT_GE(5 * assuming, programs) << "programs whose kernels rely on lengths that only the run knows";
  EXPECT_GE(5 * beside_cells, programs) << "programs with element-wise work in a kernel that reduces cells";
  EXPECT_GE(failing, (last - first) / 10) << "programs that end in an error";
  EXPECT_GT(planned, programs / 3);
  EXPECT_GT(kernels, programs);
  fmt::print(
      "{} programs, {} kernels; {} programs with assumed lengths, {} with work beside cells; {} seeds end in an error, "
      "{} times known before the run\n",
      programs, kernels, assuming, beside_cells, failing, known_before);
}

}  // namespace
}  // namespace rndn::runtime::random_engine_test
