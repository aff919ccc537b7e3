// Regret of what a run decides by its columns (runtime/session/decisions.h): made programs run every way on the simulator, whose counters repeat,
// but for a little where keys are hashed, and what is chosen is held against the best way. Two choices are: the rule's, which runs follow, and the model's, which would take
// the way that it predicts to be the fastest. What counts are sectors and instructions at an H200's rates; launches do not, since rows are few.
// RNDN_REGRET_SAY: each case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "runtime/device/forwarding_device.h"
#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/session/decisions.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/support/made_tables.h"
#include "tools/model/model.h"

namespace rndn::test::regret_test {
namespace {

using hir::BasicType;
using model::Calibration;
using model::Rate;
using namespace runtime;

// What launches did: the longer of what memory and what the instructions take, as the model has it.
class Counting final : public device::ForwardingDevice {
 public:
  Counting(device::Device& to, const Calibration& c) : ForwardingDevice(to), c_(c) {}
  Result<void> launch(device::KernelHandle k, device::Dim3 grid, device::Dim3 block, uint32_t shared,
                      std::span<const std::byte> parameters) override {
    RETURN_IF_ERROR(to_.launch(k, grid, block, shared, parameters));
    const device::LaunchCounters did = to_.last_launch();
    const double memory = static_cast<double>(did.load_sectors + did.store_sectors) / c_.value(Rate::gather_4, 4 << 20) * 1e9,
                 issue = 32 * static_cast<double>(did.warp_instructions) / c_.value(Rate::issue) * 1e9;
    ns += std::max(memory, issue) + c_.value(Rate::overlap) * std::min(memory, issue);
    return {};
  }
  double ns = 0;

 private:
  const Calibration& c_;
};

// Facts f, of which a condition leaves a share, joined with a dimension d, of which another leaves one; then sums, groups or the rows themselves.
std::string made(uint32_t seed, MadeTables& tables) {
  std::mt19937_64 random(seed);
  const auto any = [&](uint64_t n) { return random() % n; };
  const uint64_t rows = 8000 + any(12000), keys = std::array<uint64_t, 3>{50, 1000, 6000}[any(3)];
  const uint64_t apart = std::array<uint64_t, 3>{1, 5, 1000}[any(3)];  // of neighbouring keys
  std::vector<int64_t> c, v, g, k, dk, dx;
  for (uint64_t i = 0; i < keys; ++i) dk.push_back(static_cast<int64_t>(i * apart)), dx.push_back(static_cast<int64_t>(any(1000)));
  if (any(2)) std::shuffle(dk.begin(), dk.end(), random);
  const uint64_t groups = std::array<uint64_t, 3>{8, 500, 4000}[any(3)], spread = any(2) ? 1 : 1 << 20;
  for (uint64_t i = 0; i < rows; ++i) {
    c.push_back(static_cast<int64_t>(any(1000)));
    v.push_back(static_cast<int64_t>(any(2000)) - 1000);
    g.push_back(static_cast<int64_t>(any(groups) * spread));
    k.push_back(dk[any(keys)]);
  }
  tables.put("f", "c", BasicType::i32, c);
  tables.put("f", "v", BasicType::i64, v);
  tables.put("f", "g", BasicType::i64, g);
  tables.put("f", "k", BasicType::i32, k);
  tables.put("d", "k", BasicType::i32, dk);
  tables.put("d", "x", BasicType::i64, dx);
  constexpr uint64_t shares[] = {5, 50, 200, 500, 1001};
  const uint64_t left = shares[any(5)], left_of_d = shares[any(5)];
  std::string lines;
  const auto load = [&](const char* table, const char* column, const char* type) {
    lines += fmt::format("  {0}_{1}:{2} = check_cast(@column_value({0}, `{1}:sym), {2});\n", table, column, type);
  };
  load("f", "c", "i32"), load("f", "v", "i64"), load("f", "g", "i64"), load("f", "k", "i32"), load("d", "k", "i32"), load("d", "x", "i64");
  lines += fmt::format("  m:? = @lt(f_c, {}:i32);\n", left);
  for (const char* s : {"v", "g", "k"}) lines += left > 1000 ? fmt::format("  s{0}:? = f_{0};\n", s) : fmt::format("  s{0}:? = @compress(m, f_{0});\n", s);
  lines += fmt::format("  n:? = @lt(d_x, {}:i64);\n", left_of_d);
  for (const char* s : {"k", "x"}) lines += left_of_d > 1000 ? fmt::format("  e{0}:? = d_{0};\n", s) : fmt::format("  e{0}:? = @compress(n, d_{0});\n", s);
  lines += "  p:? = @join_index(@eq, ek, sk);\n  l:? = @index(p, 0:i64);\n  r:? = @index(p, 1:i64);\n"
           "  a:? = @index(ex, l);\n  b:? = @index(sv, r);\n  h:? = @index(sg, r);\n";
  std::string results = "t0, t1", names = "(`c0, `c1)";
  switch (any(4)) {
    case 0: lines += "  w:? = @mul(a, b);\n  t0:? = @sum(w);\n  t1:? = @len(b);\n"; break;
    case 1: lines += "  t0:? = @plus(a, b);\n  t1:? = @plus(b, h);\n"; break;
    default:
      lines += "  q:? = @group(h);\n  first:? = @keys(q);\n  those:? = @values(q);\n  ks:? = @index(h, first);\n"
               "  u1:? = @each_right(@index, b, those);\n  u2:? = @each(@sum, u1);\n  u:? = @raze(u2);\n"
               "  o:? = @order(ks, 1:bool);\n  t0:? = @index(ks, o);\n  t1:? = @index(u, o);\n";
  }
  return fmt::format(
      "module m {{\n import Builtin.*;\n def main() : table {{\n  f:table = @load_table(`f:sym);\n  d:table = @load_table(`d:sym);\n{}"
      "  all:? = @list({});\n  result:? = @table({}:sym, all);\n  return result;\n }}\n}}\n", lines, results, names);
}

// Thresholds of rows, for a hundredth of the rows that they were measured for.
EngineOptions as_usual() {
  EngineOptions o{.allow_fallback = false, .measure_kernels = false, .graphs = false};
  o.collected_rows /= 128, o.filtered_rows /= 128, o.hashed_rows /= 128, o.most_rows_of_selective_folds /= 1024;
  return o;
}

struct Ran {
  double counted = 0, predicted = 0;
  size_t operators = 0;
  std::string result;
};

Result<Ran> run_so(const std::string& text, const MadeTables& tables, const EngineOptions& how, const Calibration& calibration) {
  SourceManager sources;
  DataChoices choices;
  Timings timings;
  CompileOptions options;
  options.target = "sm_90";
  ASSIGN_OR_RETURN(const Compiled compiled, compile_for({"t", "t.hir", text}, options, sources, &tables, how, choices));
  ASSIGN_OR_RETURN(const auto simulator, open_simulator("sm_90"));
  Counting device(*simulator, calibration);
  Engine engine(device, tables);
  ASSIGN_OR_RETURN(const auto plan, engine.plan(compiled, sources, how, timings));
  Ran out;
  for (int run = 0; run < 2; ++run) {  // the second finds what the first has kept
    device.ns = 0;
    ASSIGN_OR_RETURN(const auto results, engine.run(*plan, timings));
    ASSIGN_OR_RETURN(out.result, print_result(results, Format::json));
  }
  out.counted = device.ns;
  for (model::Work w : choices.work) {  // of many times the rows: of few the latency hides the rest
    constexpr double times = 1000;
    if (!w.is_kernel) {
      ++out.operators;
      continue;
    }
    for (auto& s : w.streams) s.rows *= times;
    for (auto& g : w.gathers) g.count *= times;
    for (auto& a : w.adds) a.count *= times;
    w.instructions *= times;
    const model::Cost cost = model::cost_of(w, calibration);
    out.predicted += cost.ns - cost.launch_ns;
  }
  return out;
}

struct Regrets {
  std::vector<double> of_rule, of_model;
};
std::map<std::string_view, Regrets> regrets_of(uint32_t first, uint32_t end) {
  std::map<std::string_view, Regrets> out;
  const auto calibration = tools::read_calibration(RNDN_SOURCE_DIR "/docs/measurements/calibration-h200.json");
  EXPECT_TRUE(calibration);
  if (!calibration) return out;
  for (uint32_t seed = first; seed < end; ++seed) {
    MadeTables tables;
    const std::string text = made(seed, tables);
    const auto usual = run_so(text, tables, as_usual(), *calibration);
    EXPECT_TRUE(usual) << "seed " << seed << ": " << usual.error().message << text;
    if (!usual) return out;
    for (const Decision& d : decisions()) {
      std::vector<Ran> ways = {*usual};
      for (const Way& way : d.ways) {
        EngineOptions how = as_usual();
        way.force(how);
        auto ran = run_so(text, tables, how, *calibration);
        EXPECT_TRUE(ran) << "seed " << seed << ", " << way.name << ": " << ran.error().message << text;
        if (!ran) return out;
        EXPECT_EQ(ran->result, usual->result) << "seed " << seed << ", " << way.name << text;
        ways.push_back(*std::move(ran));
      }
      const auto by = [&](double Ran::*figure) { return [figure](const Ran& x, const Ran& y) { return x.*figure < y.*figure; }; };
      const double best = std::min_element(ways.begin(), ways.end(), by(&Ran::counted))->counted;
      if (std::max_element(ways.begin(), ways.end(), by(&Ran::counted))->counted <= 1.001 * best) continue;  // nothing hangs on it
      Regrets& r = out[d.name];
      r.of_rule.push_back(usual->counted / best);
      // What operators do is not predicted: where their number differs, the model has no say.
      std::erase_if(ways, [&](const Ran& w) { return w.operators != usual->operators; });
      const double of_same = std::min_element(ways.begin(), ways.end(), by(&Ran::counted))->counted;
      r.of_model.push_back(std::min_element(ways.begin(), ways.end(), by(&Ran::predicted))->counted / of_same);
      if (std::getenv("RNDN_REGRET_SAY")) {
        std::printf("seed %u, %s: rule %.2f model %.2f:", seed, std::string(d.name).c_str(), r.of_rule.back(), r.of_model.back());
        for (const Ran& w : ways) std::printf(" %.2f/%.2f", w.counted * 1e-3, w.predicted * 1e-6);
        std::printf("\n");
      }
    }
  }
  return out;
}

size_t near(const std::vector<double>& regrets) {
  return static_cast<size_t>(std::count_if(regrets.begin(), regrets.end(), [](double r) { return r <= 1.1; }));
}

// Rules take the best way but for groups, for which operators that hash would move less.
TEST(Regret, OfOneProgram) {
  const auto regrets = regrets_of(2, 3);
  EXPECT_GE(regrets.size(), 3u);
  for (const auto& [name, r] : regrets) {
    EXPECT_LE(r.of_rule.at(0), name == "groups" ? 1.6 : 1.01) << name;
    EXPECT_LE(r.of_model.at(0), 1.03) << name;
  }
}

// The least share within 10 % of the best, and the most regret, that a hundred programs had, and a little: nothing may become worse.
struct Bound {
  std::string_view decision;
  double rule_near, rule_most, model_near, model_most;
};
constexpr Bound bounds[] = {
    {"how columns lie", 0.91, 1.34, 0.78, 1.42},
    {"rows collected before tables are asked", 0.91, 1.37, 0.98, 1.10},
    {"tables of rows by key", 0.94, 3.15, 0.89, 3.15},  // a slot for each key of few rows that are looked up often, and keys far apart
    {"a bit before a table of selected rows", 0.92, 1.19, 0.76, 1.83},
    // Rules count launches, which do not count here: they fold where less would be moved by kernels of their own.
    {"groups of rows that look-ups select", 0.70, 1.43, 0.85, 1.60},
    {"groups", 0.52, 2.00, 0.95, 1.22},
};

TEST(Regret, OfManyPrograms) {
  const auto regrets = regrets_of(1, 101);
  EXPECT_EQ(regrets.size(), std::size(bounds));
  for (const auto& [name, r] : regrets) {
    const auto* bound = std::find_if(std::begin(bounds), std::end(bounds), [&](const Bound& b) { return b.decision == name; });
    ASSERT_NE(bound, std::end(bounds)) << name;
    const auto n = static_cast<double>(r.of_rule.size());
    const double rule_near = static_cast<double>(near(r.of_rule)) / n, model_near = static_cast<double>(near(r.of_model)) / n,
                 rule_most = *std::max_element(r.of_rule.begin(), r.of_rule.end()),
                 model_most = *std::max_element(r.of_model.begin(), r.of_model.end());
    std::printf("%s: %.0f cases; within 10 %% of the best: rule %.2f, model %.2f; most: rule %.2f, model %.2f\n", std::string(name).c_str(), n,
                rule_near, model_near, rule_most, model_most);
    EXPECT_GE(rule_near, bound->rule_near) << name;
    EXPECT_GE(model_near, bound->model_near) << name;
    EXPECT_LE(rule_most, bound->rule_most) << name;
    EXPECT_LE(model_most, bound->model_most) << name;
  }
}

}  // namespace
}  // namespace rndn::test::regret_test
