// Elements that are collected before tables are asked (ptx/codegen/collect.cpp, runtime/run/estimate.h): on the simulator programs give what the
// reference interpreter gives, whatever share of rows conditions leave; fewer instructions run where few are left.
// RNDN_RANDOM_SEEDS=N: so many random programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/runtime/forwarding_device.h"
#include "tests/runtime/on_reference.h"
#include "tests/support/made_tables.h"

namespace rndn::runtime::collect_test {
namespace {

using hir::BasicType;
using rndn::test::MadeTables;

class CountingDevice final : public runtime::test::ForwardingDevice {
 public:
  // one_block: no more than one is resident, and takes all tiles.
  CountingDevice(device::Device& to, bool one_block) : ForwardingDevice(to), info_(to.info()), one_block_(one_block) {
    if (one_block) info_.multiprocessors = 1;
  }
  uint64_t instructions = 0;  // of warps, in all launches
  const device::Info& info() const override { return info_; }
  Result<uint32_t> blocks_per_multiprocessor(device::KernelHandle k, uint32_t block, uint32_t shared) override {
    if (one_block_) return 1;
    return to_.blocks_per_multiprocessor(k, block, shared);
  }
  Result<void> launch(device::KernelHandle k, device::Dim3 grid, device::Dim3 block, uint32_t shared,
                      std::span<const std::byte> parameters) override {
    RETURN_IF_ERROR(to_.launch(k, grid, block, shared, parameters));
    instructions += to_.last_launch().warp_instructions;
    return {};
  }

 private:
  device::Info info_;
  bool one_block_;
};

struct Ran {
  std::string result;
  uint64_t instructions = 0;  // of the last run
};

struct How {
  const char* target = "sm_90";
  EngineOptions engine = {.measure_kernels = false};
  int runs = 1;
  bool one_block = false;
  bool numbers_as_parameters = false;
};

Result<Ran> run_so(const std::string& text, const reference::Tables& tables, const How& how) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  CompileOptions options;
  options.target = how.target;
  options.verify_passes = true;
  options.numbers_as_parameters = how.numbers_as_parameters;
  auto compiled = compile(sources.add("t.hir", text), sources, options, sink, timings);
  if (!compiled) return input_error("{}{}", compiled.error().message, render(sink, sources));
  sim::Options checks;
  checks.check_memory = checks.check_uninitialised = checks.check_hazards = checks.check_races = true;
  ASSIGN_OR_RETURN(const auto simulator, open_simulator(how.target, checks));
  CountingDevice device(*simulator, how.one_block);
  Engine engine(device, tables, nullptr);
  EngineOptions engine_options = how.engine;
  engine_options.allow_fallback = false;
  ASSIGN_OR_RETURN(const auto plan, engine.plan(*compiled, sources, engine_options, timings));
  Ran ran;
  for (int run = 0; run < how.runs; ++run) {
    device.instructions = 0;
    ASSIGN_OR_RETURN(const auto results, engine.run(*plan, timings));
    ASSIGN_OR_RETURN(std::string shown, print_result(results, Format::json));
    if (run && shown != ran.result) return input_error("run {} gives something else", run);
    ran = {std::move(shown), device.instructions};
  }
  return ran;
}

std::string load(const std::string& table, const std::string& column, const std::string& type) {
  return fmt::format("  {0}_{1}:{2} = check_cast(@column_value({0}, `{1}:sym), {2});\n", table, column, type);
}

std::string program(const std::string& lines, const std::vector<std::string>& columns) {
  std::string names;
  for (size_t i = 0; i < columns.size(); ++i) names += fmt::format("{}`c{}", i ? ", " : "", i);
  return fmt::format(
      "module m {{\n import Builtin.*;\n def main() : table {{\n  f:table = @load_table(`f:sym);\n  d:table = "
      "@load_table(`d:sym);\n{}  all:? = @list({});\n  result:? = @table({}:sym, all);\n  return result;\n }}\n}}\n",
      lines, fmt::join(columns, ", "), columns.size() == 1 ? names : "(" + names + ")");
}

// Options by which everything that can be collected is.
EngineOptions always(bool folds_apart) {
  EngineOptions options{.measure_kernels = false};
  options.collected_rows = 0;
  options.most_collected = 1;
  if (folds_apart) options.most_rows_of_selective_folds = 0;
  return options;
}

// Facts: c0 and c1 for conditions, v and w to be taken, k (and k2) to be joined with a dimension d, whose keys are all different.
TEST(Collect, RandomStars) {
  const char* seeds = std::getenv("RNDN_RANDOM_SEEDS");
  const uint32_t count = seeds ? static_cast<uint32_t>(std::atoi(seeds)) : 24;
  constexpr uint64_t rows_of[] = {0, 1, 31, 500, 2047, 2049, 4096, 5000, 9000};
  constexpr const char* targets[] = {"sm_61", "sm_75", "sm_80", "sm_90"};
  uint32_t fewer = 0, compared = 0, filtered = 0;
  for (uint32_t seed = 1; seed <= count; ++seed) {
    std::mt19937_64 random(seed);
    const auto any = [&](uint64_t n) { return random() % n; };
    const uint64_t rows = any(3) ? rows_of[5 + any(4)] : rows_of[any(5)], keys = 1 + any(900);
    MadeTables tables;
    std::vector<int64_t> c0, c1, v, w, u, k, k2, dk, dk2, dx, dy;
    std::string there;  // of c2
    const uint64_t clustered = any(3);
    for (uint64_t i = 0; i < rows; ++i) {
      // Clustered over the vectors that have bounds, over parts of them, or not at all.
      c0.push_back(static_cast<int64_t>(clustered == 2 ? 11 * (i / 1024) % 100 : clustered ? i / 64 % 100 : any(100)));
      constexpr double odd[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -0.0};
      u.push_back(std::bit_cast<int64_t>(any(6) ? static_cast<double>(any(100)) / 3 : odd[any(3)]));
      there.push_back(any(4) != 0);
      c1.push_back(static_cast<int64_t>(any(10)));
      v.push_back(static_cast<int64_t>(any(2000)) - 1000);
      w.push_back(std::bit_cast<int64_t>(static_cast<double>(static_cast<int64_t>(any(20000))) / 7));
      const auto key = static_cast<int64_t>(any(keys + keys / 2));
      k.push_back(key / 4), k2.push_back(key % 4);
    }
    const bool two = any(2), dense = any(2);
    for (uint64_t i = 0; i < keys; ++i) {
      const auto key = static_cast<int64_t>(two || dense ? i : i * 7919 % 100003);
      dk.push_back(two ? key / 4 : key), dk2.push_back(key % 4);
      dx.push_back(static_cast<int64_t>(any(50)));
      dy.push_back(any(3) == 0);
    }
    if (!two)
      for (uint64_t i = 0; i < rows; ++i) k[i] = any(3) ? dk[any(keys)] : static_cast<int64_t>(any(2 * keys));
    if (any(2)) {
      std::vector<size_t> order(keys);
      for (size_t i = 0; i < keys; ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      for (std::vector<int64_t>* of : {&dk, &dk2, &dx, &dy}) {
        std::vector<int64_t> moved;
        for (size_t i : order) moved.push_back((*of)[i]);
        *of = std::move(moved);
      }
    }
    const bool text = any(3) == 0;
    tables.put("f", "c0", BasicType::i32, c0);
    if (text) {
      std::vector<std::string> texts;
      for (int64_t x : c1) texts.push_back(fmt::format("text {}", x));
      tables.put("f", "c1", true, texts);
    } else {
      tables.put("f", "c1", BasicType::i64, c1);
    }
    tables.put("f", "v", BasicType::i64, v);
    tables.put("f", "w", BasicType::f64, w);
    tables.put("f", "u", BasicType::f64, u);
    data::Column c2 = data::make_column(BasicType::i64, rows);
    for (uint64_t i = 0; i < rows; ++i)
      if (const int64_t x = there[i] ? c1[i] : 0; rows) std::memcpy(c2.data->data() + 8 * i, &x, 8);
    c2.validity = std::make_shared<data::Bytes>(data::Bytes::of(std::move(there)));
    tables.put("f", "c2", std::move(c2));
    tables.put("f", "k", BasicType::i32, k);
    tables.put("f", "k2", BasicType::i32, k2);
    tables.put("d", "k", BasicType::i32, dk);
    tables.put("d", "k2", BasicType::i32, dk2);
    tables.put("d", "x", BasicType::i64, dx);
    tables.put("d", "y", BasicType::boolean, dy);
    std::string lines = load("f", "c0", "i32") + load("f", "c1", text ? "sym" : "i64") + load("f", "v", "i64") +
                        load("f", "w", "f64") + load("f", "k", "i32") + load("f", "k2", "i32") + load("d", "k", "i32") +
                        load("d", "k2", "i32") + load("d", "x", "i64") + load("d", "y", "bool");
    // From none to all rows are left.
    const uint64_t from = any(110), width = std::array<uint64_t, 4>{0, 3, 20, 120}[any(4)];
    lines += fmt::format("  m0:? = @geq(f_c0, {}:i32);\n  m1:? = @lt(f_c0, {}:i32);\n  m2:? = @and(m0, m1);\n",
                         width == 120 ? 0 : from, width == 120 ? 120 : from + width);
    std::string mask = "m2";
    if (any(2)) {
      const uint64_t one = any(10), other = any(10);
      const auto equal = [&](uint64_t x) {
        return text ? fmt::format("`\"text {}\":sym", x) : fmt::format("{}:i64", x);
      };
      lines += fmt::format(
          "  m3:? = @eq(f_c1, {});\n  m4:? = @eq(f_c1, {});\n  m5:? = @or(m3, m4);\n  m6:? = @and(m2, m5);\n",
          equal(one), equal(other));
      mask = "m6";
    }
    if (any(3) == 0) {
      lines += load("f", "u", "f64") +
               fmt::format("  n0:? = @lt(f_u, {}:f64);\n  n1:? = @gt(f_u, {}:f64);\n  n2:? = @or(n0, n1);\n  n3:? = "
                           "@and({}, n2);\n",
                           any(20), any(40), mask);
      mask = "n3";
    }
    if (any(3) == 0) {
      lines += load("f", "c2", "i64") +
               fmt::format("  o0:bool = check_cast(@column_valid(f, `c2:sym), bool);\n  o1:? = @lt(f_c2, {}:i64);\n  o2:? "
                           "= @and(o0, o1);\n  o3:? = @and({}, o2);\n",
                           any(12), mask);
      mask = "o3";
    }
    for (const char* c : {"v", "w", "k", "k2"}) lines += fmt::format("  s{0}:? = @compress({1}, f_{0});\n", c, mask);
    // Of half of the dimensions few rows are selected: their tables have filters, behind which rows are collected.
    const bool few = seed % 2;
    const std::string d = few ? "e" : "d";
    if (few) {
      lines += "  dm:? = @lt(d_x, 9:i64);\n";
      for (const char* c : {"k", "k2", "x", "y"}) lines += fmt::format("  e_{0}:? = @compress(dm, d_{0});\n", c);
    }
    lines += two ? fmt::format("  x:? = @list({0}_k, {0}_k2);\n  y:? = @list(sk, sk2);\n  p:? = @join_index(@eq, @eq, x, y);\n", d)
                 : fmt::format("  p:? = @join_index(@eq, {}_k, sk);\n", d);
    lines += fmt::format(
        "  l:? = @index(p, 0:i64);\n  r:? = @index(p, 1:i64);\n  a:? = @index({}_x, l);\n  b:? = @index(sv, r);\n  e:? "
        "= @index(sw, r);\n",
        d);
    std::string more = "a", values = "b", floats = "e";
    if (any(3) == 0) {  // what is found selects, too
      lines += fmt::format(
          "  z:? = @index({}_y, l);\n  a1:? = @compress(z, a);\n  b1:? = @compress(z, b);\n  e1:? = @compress(z, e);\n", d);
      more = "a1", values = "b1", floats = "e1";
    }
    std::vector<std::string> results;
    switch (any(5)) {
      case 0:
        lines += fmt::format("  t:? = @mul({}, {});\n  r0:? = @sum(t);\n  r1:? = @len({});\n  r2:? = @sum({});\n", more,
                             values, values, floats);
        results = {"r0", "r1", "r2"};
        break;
      case 1: results = {more, values, floats}; break;
      case 2:  // what conditions select is stored, too
        lines +=
            fmt::format("  n:? = @len(sv);\n  u:? = @plus(sv, 1:i64);\n  q:? = @sum({});\n  i0:? = @sum(u);\n", values);
        results = {"q", "n", "i0"};
        break;
      case 3:
        lines += fmt::format("  t:? = @plus({0}, {1});\n  j:? = @gt(t, 20:i64);\n  r0:? = @compress(j, {1});\n", more,
                             values);
        results = {"r0"};
        break;
      default:
        lines += fmt::format(
            "  g:? = @group({0});\n  first:? = @keys(g);\n  rows:? = @values(g);\n  ks:? = @index({0}, first);\n  g1:? "
            "= @each_right(@index, "
            "{1}, rows);\n  g2:? = @each(@sum, g1);\n  s:? = @raze(g2);\n  g3:? = @each_right(@index, {2}, rows);\n  "
            "g4:? = @each(@sum, g3);\n"
            "  sf:? = @raze(g4);\n  o:? = @order(ks, 1:bool);\n  r0:? = @index(ks, o);\n  r1:? = @index(s, o);\n  r2:? "
            "= @index(sf, o);\n",
            more, values, floats);
        results = {"r0", "r1", "r2"};
    }
    const std::string code = program(lines, results);
    const auto expected = run_on_reference(code, tables);
    ASSERT_TRUE(expected) << expected.error().message << code;
    const bool apart = any(2);
    How how{.target = targets[seed % std::size(targets)],
            .engine = always(apart),
            .runs = seed % 8 == 5 ? 4 : 1,  // the last is a graph
            .one_block = any(2) == 0,
            .numbers_as_parameters = any(2) == 0};
    if (any(2)) how.engine.bounded_rows = 0;
    if (any(3) == 0) how.engine.encode = Encode::packed;
    if (few) how.engine.filtered_rows = 1;
    const auto ran = run_so(code, tables, how);
    if (seed % 6 == 1) {
      ASSERT_TRUE(ran) << ran.error().message;
      How without = how;
      without.engine.filtered_rows = UINT64_MAX;
      const auto plain = run_so(code, tables, without);
      ASSERT_TRUE(plain) << plain.error().message;
      ASSERT_EQ(plain->result, ran->result);
      filtered += plain->instructions != ran->instructions;
    }
    ASSERT_TRUE(ran) << "seed " << seed << ": " << ran.error().message << code;
    ASSERT_EQ(ran->result, *expected) << "seed " << seed << " on " << how.target << ", " << rows << " rows\n" << code;
    if (rows < 5000 || width > 20 || how.runs > 1) continue;
    how.engine.collected_rows = UINT64_MAX;
    const auto before = run_so(code, tables, how);
    ASSERT_TRUE(before) << before.error().message;
    ASSERT_EQ(before->result, *expected);
    ++compared;
    fewer += ran->instructions < before->instructions;
  }
  EXPECT_GT(filtered, 0u);
  EXPECT_GT(compared, 0u);
  EXPECT_GT(fewer, 0u);  // of few tiles some take as long as before
}

// Of rows of which a date range leaves one in ten, a join by two columns, the sums and the rows that are left.
TEST(Collect, TakesFewerInstructionsWhereFewAreLeft) {
  constexpr uint64_t rows = 60000, keys = 500;
  MadeTables tables;
  std::vector<int64_t> c, v, k, k2, dk, dk2, dx;
  for (uint64_t i = 0; i < rows; ++i) {
    c.push_back(static_cast<int64_t>(i * 7919 % 1000));
    v.push_back(static_cast<int64_t>(i % 1000));
    k.push_back(static_cast<int64_t>(i * 31 % 1000)), k2.push_back(static_cast<int64_t>(i % 4));
  }
  for (uint64_t i = 0; i < keys; ++i)
    dk.push_back(static_cast<int64_t>(i)), dk2.push_back(static_cast<int64_t>(i % 4)),
        dx.push_back(static_cast<int64_t>(i % 9));
  tables.put("f", "c", BasicType::i32, c);
  tables.put("f", "v", BasicType::i64, v);
  tables.put("f", "k", BasicType::i32, k);
  tables.put("f", "k2", BasicType::i32, k2);
  tables.put("d", "k", BasicType::i32, dk);
  tables.put("d", "k2", BasicType::i32, dk2);
  tables.put("d", "x", BasicType::i64, dx);
  const auto of = [&](int64_t below, const std::string& end, const std::vector<std::string>& results) {
    return program(
        load("f", "c", "i32") + load("f", "v", "i64") + load("f", "k", "i32") + load("f", "k2", "i32") +
            load("d", "k", "i32") + load("d", "k2", "i32") + load("d", "x", "i64") +
            fmt::format("  m:? = @lt(f_c, {}:i32);\n", below) +
            "  sv:? = @compress(m, f_v);\n  sk:? = @compress(m, f_k);\n  sk2:? = @compress(m, f_k2);\n"
            "  x:? = @list(d_k, d_k2);\n  y:? = @list(sk, sk2);\n  p:? = @join_index(@eq, @eq, x, y);\n"
            "  l:? = @index(p, 0:i64);\n  r:? = @index(p, 1:i64);\n  a:? = @index(d_x, l);\n  b:? = @index(sv, r);\n" +
            end,
        results);
  };
  for (const auto& [end, results] :
       {std::pair<std::string, std::vector<std::string>>{"  t:? = @mul(a, b);\n  q:? = @sum(t);\n", {"q"}},
        {"", {"a", "b"}}}) {
    SCOPED_TRACE(end);
    for (const char* target : {"sm_61", "sm_90"}) {
      How how{.target = target};
      how.engine.collected_rows = 1000;
      const auto few = run_so(of(100, end, results), tables, how), many = run_so(of(500, end, results), tables, how);
      how.engine.collected_rows = UINT64_MAX;
      const auto few_before = run_so(of(100, end, results), tables, how),
                 many_before = run_so(of(500, end, results), tables, how);
      ASSERT_TRUE(few && many && few_before && many_before);
      EXPECT_EQ(few->result, few_before->result);
      EXPECT_EQ(many->result, many_before->result);
      EXPECT_EQ(*run_on_reference(of(100, end, results), tables), few->result);
      EXPECT_LT(3 * few->instructions, 2 * few_before->instructions);
      EXPECT_EQ(many->instructions, many_before->instructions);  // half of the rows: the same code
    }
  }
}

// f: `rows` rows, c below 100, its own column of bounds; k: rows of d, of which there are 100.
struct Gathered {
  std::vector<int64_t> c, v, k;
  explicit Gathered(int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) c.push_back(i * 7919 % 100), v.push_back(i % 1000 - 500), k.push_back(i * 31 % 100);
  }
  void put(MadeTables& made) const {
    made.put("f", "c", BasicType::i32, c);
    made.put("f", "v", BasicType::i64, v);
    made.put("f", "k", BasicType::i64, k);
    std::vector<int64_t> x;
    for (int64_t i = 0; i < 100; ++i) x.push_back(i * i % 97);
    made.put("d", "x", BasicType::i64, x);
  }
  static std::string program(int64_t below, const std::string& lines, const std::vector<std::string>& results) {
    return collect_test::program(load("f", "c", "i32") + load("f", "v", "i64") + load("f", "k", "i64") +
                                     load("d", "x", "i64") + fmt::format("  m:? = @lt(f_c, {}:i32);\n", below) + lines,
                                 results);
  }
};

constexpr const char* gather_behind =
    "  sk:? = @compress(m, f_k);\n  sv:? = @compress(m, f_v);\n  g:? = @index(d_x, sk);\n  t:? = @mul(g, sv);\n";
constexpr const char* gather_before =
    "  h:? = @index(d_x, f_k);\n  g:? = @compress(m, h);\n  sv:? = @compress(m, f_v);\n  t:? = @mul(g, sv);\n";

// One block takes ten tiles: what a warp does not take of one is taken with the next, and the last ones at the end.
TEST(Collect, WhatIsLeftOfATileIsTakenWithTheNext) {
  const Gathered data(20'000 + 77);
  MadeTables tables;
  data.put(tables);
  for (const auto& [end, results] : {std::pair<std::string, std::vector<std::string>>{"  q:? = @sum(t);\n", {"q"}},
                                     {"  z:? = @gt(g, 40:i64);\n  y:? = @compress(z, t);\n", {"y"}}})
    for (int64_t below : {0, 1, 10, 50, 100}) {
      SCOPED_TRACE(fmt::format("{} %\n{}", below, end));
      const std::string code = Gathered::program(below, gather_behind + end, results);
      How how{.engine = always(false), .one_block = true};
      const auto ran = run_so(code, tables, how);
      how.engine.collected_rows = UINT64_MAX;
      const auto before = run_so(code, tables, how);
      ASSERT_TRUE(ran && before);
      EXPECT_EQ(ran->result, *run_on_reference(code, tables));
      EXPECT_NE(ran->instructions, before->instructions);  // it is other code
    }
}

// Vectors that a second column excludes are passed over, and what is left of the tiles before them is taken none the less.
TEST(Collect, WhatIsLeftOutlastsSkippedTiles) {
  const Gathered data(20'000 + 77);
  MadeTables tables;
  data.put(tables);
  std::vector<int64_t> vector;
  for (size_t i = 0; i < data.c.size(); ++i) vector.push_back(static_cast<int64_t>(i / 1024));
  tables.put("f", "b", BasicType::i32, vector);
  for (const std::string end : {"  q:? = @sum(t);\n", "  z:? = @gt(g, 40:i64);\n  q:? = @compress(z, t);\n"})
    for (int64_t below : {1, 10, 50, 100}) {
      SCOPED_TRACE(fmt::format("{} %\n{}", below, end));
      // Vectors 0 to 3, and 13 to 19: of a block's tiles the first and the last ones.
      std::string code = Gathered::program(below,
                                           load("f", "b", "i32") +
                                               "  b0:? = @lt(f_b, 4:i32);\n  b1:? = @geq(f_b, 13:i32);\n  b2:? = @or(b0, "
                                               "b1);\n  both:? = @and(m, b2);\n" +
                                               gather_behind + end,
                                           {"q"});
      for (size_t at; (at = code.find("@compress(m,")) != std::string::npos;) code.replace(at, 12, "@compress(both,");
      How how{.engine = always(false), .one_block = true};
      how.engine.bounded_rows = 0;
      const auto skips = run_so(code, tables, how);
      how.engine.collected_rows = UINT64_MAX;
      const auto skips_alone = run_so(code, tables, how);
      how.engine.collected_rows = 0;
      how.engine.bounded_rows = UINT64_MAX;
      const auto collects = run_so(code, tables, how);
      ASSERT_TRUE(skips && skips_alone && collects);
      EXPECT_EQ(skips->result, *run_on_reference(code, tables));
      EXPECT_LT(skips->instructions, collects->instructions);
      EXPECT_NE(skips->instructions, skips_alone->instructions);
    }
}

// A place that is out of range counts where the program reads it: for all rows, or for those that are left.
TEST(Collect, ErrorsAreThoseOfRowsThatAreLeft) {
  for (const char* target : {"sm_61", "sm_90"})
    for (bool one_block : {false, true}) {
      How how{.target = target, .engine = always(false), .one_block = one_block};
      const auto run = [&](const Gathered& data, const char* lines) {
        MadeTables tables;
        data.put(tables);
        return run_so(Gathered::program(10, std::string(lines) + "  q:? = @sum(t);\n", {"q"}), tables, how);
      };
      const auto fails = [&](const Gathered& data, const char* lines) {
        const auto ran = run(data, lines);
        ASSERT_FALSE(ran.ok()) << ran->result;
        MadeTables tables;
        data.put(tables);
        const auto wanted =
            run_on_reference(Gathered::program(10, std::string(lines) + "  q:? = @sum(t);\n", {"q"}), tables);
        ASSERT_FALSE(wanted.ok());
        EXPECT_EQ(ran.error().message, wanted.error().message);
      };
      Gathered data(9000);
      const auto with = run(data, gather_behind);
      ASSERT_TRUE(with.ok()) << with.error().message;
      how.engine.collected_rows = UINT64_MAX;
      const auto without = run(data, gather_behind);
      how.engine.collected_rows = 0;
      ASSERT_TRUE(without.ok());
      EXPECT_NE(with->instructions, without->instructions);  // it collects
      // Of a row that the condition excludes.
      const auto out = static_cast<size_t>(std::find(data.c.begin() + 4000, data.c.end(), 50) - data.c.begin());
      data.k[out] = 100;
      fails(data, gather_before);
      const auto left = run(data, gather_behind);
      ASSERT_TRUE(left.ok()) << left.error().message;
      EXPECT_EQ(left->result, with->result);
      // Of the last row that is left, which is taken when nothing comes any more.
      data.k[out] = 1;
      size_t last = data.c.size();
      while (data.c[--last] >= 10) continue;
      data.k[last] = 100;
      fails(data, gather_behind);
      data.k[last] = -1;
      fails(data, gather_behind);
    }
}

// How many rows there are is how many the kernel walks over, not how many a table has that it only asks.
TEST(Collect, RowsThatAreOnlyAskedDoNotCount) {
  const Gathered data(3000);
  MadeTables tables;
  data.put(tables);
  tables.put("d", "x", BasicType::i64, std::vector<int64_t>(20'000, 3));
  const std::string code = Gathered::program(10, std::string(gather_behind) + "  q:? = @sum(t);\n", {"q"});
  std::vector<uint64_t> instructions;
  for (uint64_t rows : {uint64_t{3000}, uint64_t{3001}, UINT64_MAX}) {
    How how{.engine = always(false)};
    how.engine.collected_rows = rows;
    const auto ran = run_so(code, tables, how);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_EQ(ran->result, *run_on_reference(code, tables));
    instructions.push_back(ran->instructions);
  }
  EXPECT_NE(instructions[0], instructions[2]);
  EXPECT_EQ(instructions[1], instructions[2]);
}

// A number of the program that kernels get as a parameter is known where the choice is made.
TEST(Collect, NumbersInParametersTellHowManyAreLeft) {
  const Gathered data(9000);
  MadeTables tables;
  data.put(tables);
  for (int64_t below : {10, 60}) {
    const std::string code = Gathered::program(below, std::string(gather_behind) + "  q:? = @sum(t);\n", {"q"});
    How how{.numbers_as_parameters = true};
    how.engine.collected_rows = 1000;
    const auto ran = run_so(code, tables, how);
    how.engine.collected_rows = UINT64_MAX;
    const auto before = run_so(code, tables, how);
    ASSERT_TRUE(ran && before);
    EXPECT_EQ(ran->result, *run_on_reference(code, tables));
    EXPECT_EQ(ran->result, before->result);
    EXPECT_EQ(ran->instructions == before->instructions, below == 60);
  }
}

}  // namespace
}  // namespace rndn::runtime::collect_test
