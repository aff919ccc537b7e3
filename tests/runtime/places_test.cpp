// What is read at computed places (KernelEncodings::inside): where bounds of columns say that no position lies outside, kernels check none and may collect
// rows before they read; where one may, or does once a column has become another, it is the error that the reference interpreter has.
// RNDN_RANDOM_SEEDS=N: so many random programs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/runtime/forwarding_device.h"
#include "tests/runtime/on_reference.h"
#include "tests/support/made_tables.h"

namespace rndn::runtime::places_test {
namespace {

using hir::BasicType;
using rndn::test::MadeTables;

class CountingDevice final : public runtime::test::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  uint64_t instructions = 0;  // of warps, in all launches
  Result<void> launch(device::KernelHandle k, device::Dim3 grid, device::Dim3 block, uint32_t shared,
                      std::span<const std::byte> parameters) override {
    RETURN_IF_ERROR(to_.launch(k, grid, block, shared, parameters));
    instructions += to_.last_launch().warp_instructions;
    return {};
  }
};

// A program that is run several times over tables that may change.
class Prepared {
 public:
  static Result<std::unique_ptr<Prepared>> make(const char* target, const std::string& text,
                                                const reference::Tables& tables, bool collects) {
    auto p = std::make_unique<Prepared>();
    DiagnosticSink sink;
    CompileOptions options;
    options.target = target;
    options.verify_passes = true;
    auto compiled = compile(p->sources_.add("t.hir", text), p->sources_, options, sink, p->timings_);
    if (!compiled) return input_error("{}{}", compiled.error().message, render(sink, p->sources_));
    p->compiled_ = std::make_unique<Compiled>(std::move(*compiled));
    sim::Options checks;
    checks.check_memory = checks.check_uninitialised = checks.check_hazards = checks.check_races = true;
    ASSIGN_OR_RETURN(p->simulator_, open_simulator(target, checks));
    p->device_ = std::make_unique<CountingDevice>(*p->simulator_);
    p->engine_ = std::make_unique<Engine>(*p->device_, tables, nullptr);
    EngineOptions how{.measure_kernels = false};
    how.allow_fallback = false;
    how.collected_rows = 0;
    how.most_collected = collects ? 1 : 0;
    ASSIGN_OR_RETURN(p->plan_, p->engine_->plan(*p->compiled_, p->sources_, how, p->timings_));
    return p;
  }
  Result<std::string> run() {
    device_->instructions = 0;
    ASSIGN_OR_RETURN(const auto results, engine_->run(*plan_, timings_));
    return print_result(results, Format::json);
  }
  uint64_t instructions() const { return device_->instructions; }

 private:
  SourceManager sources_;
  Timings timings_;
  std::unique_ptr<Compiled> compiled_;
  std::unique_ptr<device::Device> simulator_;
  std::unique_ptr<CountingDevice> device_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Engine::Plan> plan_;
};

// Facts c, v and k over a dimension of x and y, whose rows k counts from `from` on.
struct Star {
  uint64_t rows, keys;
  int64_t from;
  std::vector<int64_t> c, v, k, x, y;

  Star(uint64_t seed, uint64_t rows_, uint64_t keys_, int64_t from_) : rows(rows_), keys(keys_), from(from_) {
    std::mt19937_64 random(seed);
    for (uint64_t i = 0; i < rows; ++i) {
      c.push_back(static_cast<int64_t>(random() % 100));
      v.push_back(static_cast<int64_t>(random() % 2000) - 1000);
      k.push_back(from + static_cast<int64_t>(random() % keys));
    }
    for (uint64_t i = 0; i < keys; ++i) {
      x.push_back(static_cast<int64_t>(random() % 50));
      y.push_back(random() % 3 == 0);
    }
  }
  void put(MadeTables& tables, BasicType of_keys) const {
    tables.put("f", "c", BasicType::i32, c);
    tables.put("f", "v", BasicType::i64, v);
    put_keys(tables, of_keys);
    tables.put("d", "x", BasicType::i64, x);
    tables.put("d", "y", BasicType::boolean, y);
  }
  void put_keys(MadeTables& tables, BasicType type) const { tables.put("f", "k", type, k); }
};

std::string load(const std::string& table, const std::string& column, const std::string& type) {
  return fmt::format("  {0}_{1}:{2} = check_cast(@column_value({0}, `{1}:sym), {2});\n", table, column, type);
}

// The look-up is asked for all rows; conditions on c, on what is found, and on both select of them.
std::string program(const std::string& type_of_keys, const std::string& at, int below, int results) {
  std::string lines = load("f", "c", "i32") + load("f", "v", "i64") + load("f", "k", type_of_keys) +
                      load("d", "x", "i64") + load("d", "y", "bool");
  lines += fmt::format(
      "  at:? = {};\n  x:? = @index(d_x, at);\n  y:? = @index(d_y, at);\n  low:? = @lt(f_c, {}:i32);\n  small:? = @lt(x, "
      "25:i64);\n  odd:? = @or(small, low);\n  m1:? = @and(low, y);\n  m:? = @and(m1, odd);\n  vs:? = @compress(m, f_v);\n  "
      "xs:? = @compress(m, x);\n  t:? = @mul(vs, xs);\n",
      at, below);
  switch (results) {
    case 0: lines += "  s:? = @sum(t);\n  n:? = @len(vs);\n  all:? = @list(s, n);\n"; break;
    case 1: lines += "  all:? = @list(t, xs);\n"; break;
    default:
      lines +=
          "  g:? = @group(xs);\n  first:? = @keys(g);\n  rows:? = @values(g);\n  ks:? = @index(xs, first);\n  g1:? = "
          "@each_right(@index, vs, rows);\n  g2:? = @each(@sum, g1);\n  s:? = @raze(g2);\n  o:? = @order(ks, 1:bool);\n  r0:? "
          "= @index(ks, o);\n  r1:? = @index(s, o);\n  all:? = @list(r0, r1);\n";
  }
  return fmt::format(
      "module m {{\n import Builtin.*;\n def main() : table {{\n  f:table = @load_table(`f:sym);\n  d:table = "
      "@load_table(`d:sym);\n{}  result:? = @table((`a, `b):sym, all);\n  return result;\n }}\n}}\n",
      lines);
}

TEST(Places, OfWhichBoundsTellTakeFewerInstructions) {
  const Star star(1, 20000, 300, 7);
  MadeTables tables;
  star.put(tables, BasicType::i32);
  for (const int results : {0, 1}) {
    uint64_t checked = 0;
    std::string want;
    for (const bool is_told : {false, true}) {
      const std::string at = is_told ? "@minus(f_k, 7:i32)" : "@mul(away, scale)";
      std::string text = program("i32", at, 5, results);
      if (!is_told)  // the least and the greatest product of what lies between them is not known
        text.replace(text.find("  at:?"), 0,
                     "  away:? = @minus(f_k, 7:i32);\n  twice:? = @plus(away, 1:i32);\n  scale:? = @div(twice, twice);\n");
      auto want_now = run_on_reference(text, tables);
      ASSERT_TRUE(want_now.ok()) << want_now.error().message << text;
      auto prepared = Prepared::make("sm_90", text, tables, true);
      ASSERT_TRUE(prepared.ok()) << prepared.error().message;
      auto got = (*prepared)->run();
      ASSERT_TRUE(got.ok()) << got.error().message << text;
      EXPECT_EQ(*got, *want_now);
      if (is_told)
        EXPECT_LT(2 * (*prepared)->instructions(), checked) << results;
      else
        checked = (*prepared)->instructions();
    }
  }
}

// First, last and some row between them; one below and one above; the rows that conditions leave or others.
TEST(Places, OutsideAreErrorsOnceAColumnSaysSo) {
  const char* seeds = std::getenv("RNDN_RANDOM_SEEDS");
  const uint32_t count = seeds ? static_cast<uint32_t>(std::atoi(seeds)) : 6;
  constexpr const char* targets[] = {"sm_90", "sm_61", "sm_80", "sm_75"};
  for (uint32_t seed = 1; seed <= count; ++seed) {
    std::mt19937_64 random(seed);
    const auto any = [&](uint64_t n) { return random() % n; };
    const BasicType type = any(2) ? BasicType::i32 : BasicType::i64;
    const std::string type_name = type == BasicType::i32 ? "i32" : "i64";
    const Star right(seed, 1 + any(5000), 1 + any(300), static_cast<int64_t>(any(3)) - 1);
    MadeTables tables;
    right.put(tables, type);
    const std::string at = right.from ? fmt::format("@minus(f_k, {}:{})", right.from, type_name) : "f_k";
    const std::string text = program(type_name, at, static_cast<int>(any(110)), static_cast<int>(seed % 3));
    auto want = run_on_reference(text, tables);
    ASSERT_TRUE(want.ok()) << want.error().message << text;
    auto prepared = Prepared::make(targets[seed % 4], text, tables, any(2));
    ASSERT_TRUE(prepared.ok()) << prepared.error().message << text;
    for (int run = 0; run < 3; ++run) {
      auto got = (*prepared)->run();
      ASSERT_TRUE(got.ok()) << seed << ": " << got.error().message << text;
      EXPECT_EQ(*got, *want) << seed << text;
    }
    for (const uint64_t row : {uint64_t{0}, any(right.rows), right.rows - 1})
      for (const int64_t outside : {right.from - 1, right.from + static_cast<int64_t>(right.keys)}) {
        Star wrong = right;
        wrong.k[row] = outside;
        wrong.put_keys(tables, type);
        ASSERT_FALSE(run_on_reference(text, tables).ok());
        auto got = (*prepared)->run();
        ASSERT_FALSE(got.ok()) << seed << " row " << row << " position " << outside << text << *got;
        EXPECT_NE(got.error().message.find("out of range"), std::string::npos) << got.error().message;
      }
    right.put_keys(tables, type);
    auto again = (*prepared)->run();
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(*again, *want) << seed;
  }
}

// What an index that is an error leaves behind lies where no bound says; and a variable that is assigned again has other bounds before.
TEST(Places, WhatBoundsDoNotTellOfIsChecked) {
  MadeTables tables;
  std::vector<int64_t> p, k, values, five(5, 3);
  for (int64_t i = 0; i < 3000; ++i) p.push_back(i % 300), k.push_back(i % 300);
  for (int64_t i = 0; i < 300; ++i) values.push_back(5 + i % 5);
  p[1700] = 300, k[1700] = 306;
  tables.put("f", "p", BasicType::i32, p);
  tables.put("f", "k", BasicType::i32, k);
  tables.put("d", "x", BasicType::i32, values);
  tables.put("w", "w", BasicType::i32, five);
  const std::string loads =
      "  f:table = @load_table(`f:sym);\n  d:table = @load_table(`d:sym);\n  w:table = @load_table(`w:sym);\n" + load("f", "p", "i32") +
      load("f", "k", "i32") + load("d", "x", "i32") + load("w", "w", "i32");
  for (const char* lines : {"  b:? = @index(d_x, f_p);\n  at:? = @minus(b, 5:i32);\n  c:? = @index(w_w, at);\n  s:? = @sum(c);\n",
                            "  b:? = @index(d_x, f_p);\n  n:? = @sum(b);\n  o:? = @order(b, 1:bool);\n  at:? = @minus(b, 5:i32);\n"
                            "  c:? = @index(w_w, at);\n  t:? = @sum(c);\n  s:? = @plus(t, n);\n",
                            "  at:? = @minus(f_k, 0:i32);\n  b:? = @index(d_x, at);\n  at = @mul(at, 0:i32);\n  c:? = @index(d_x, at);\n"
                            "  t:? = @plus(b, c);\n  s:? = @sum(t);\n"}) {
    const std::string text =
        "module m {\n import Builtin.*;\n def main() : i64 {\n" + loads + lines + "  r:i64 = check_cast(s, i64);\n  return r;\n }\n}\n";
    ASSERT_FALSE(run_on_reference(text, tables).ok()) << text;
    for (const char* target : {"sm_90", "sm_61"}) {
      auto prepared = Prepared::make(target, text, tables, true);
      ASSERT_TRUE(prepared.ok()) << prepared.error().message << text;
      for (int run = 0; run < 2; ++run) {
        auto got = (*prepared)->run();
        ASSERT_FALSE(got.ok()) << text << *got;
        EXPECT_NE(got.error().message.find("out of range"), std::string::npos) << got.error().message << text;
      }
    }
  }
}

}  // namespace
}  // namespace rndn::runtime::places_test
