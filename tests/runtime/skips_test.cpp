// Tiles that are skipped by the least and the greatest elements of their vectors (ptx/codegen/skips.cpp, runtime/memory/vector_bounds.cpp): on the simulator
// programs give what the reference interpreter gives, whatever order the rows are in, and what a skipped tile would have cost is not spent.
// RNDN_RANDOM_SEEDS=N: so many random programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

#include "libraries/base/system/files.h"
#include "ptx/codegen/codegen.h"
#include "runtime/compiler/code_cache.h"
#include "runtime/data/cache.h"
#include "runtime/engine.h"
#include "runtime/memory/vector_bounds.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "runtime/stream/range_tables.h"
#include "tests/runtime/forwarding_device.h"
#include "tests/runtime/on_reference.h"
#include "tests/support/made_tables.h"
#include "tpch/source.h"

namespace rndn::runtime::skips_test {
namespace {

using codegen::bounds_rows;
using hir::BasicType;
using rndn::test::MadeTables;
using ::testing::HasSubstr;

class CountingDevice final : public runtime::test::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  device::LaunchCounters counters;  // of all launches, but those of graphs
  Result<void> launch(device::KernelHandle k, device::Dim3 grid, device::Dim3 block, uint32_t shared,
                      std::span<const std::byte> parameters) override {
    RETURN_IF_ERROR(to_.launch(k, grid, block, shared, parameters));
    const device::LaunchCounters c = to_.last_launch();
    counters.warp_instructions += c.warp_instructions;
    counters.load_sectors += c.load_sectors;
    return {};
  }
};

struct Ran {
  std::string result;
  device::LaunchCounters counters;  // of the last run
  uint64_t assembled_ns = 0;        // in the assembler
  uint64_t column_bytes = 0;        // of all runs
};

struct How {
  const char* target = "sm_90";
  EngineOptions engine = {.measure_kernels = false, .bounded_rows = 0};
  int runs = 1;
  CodeCache* code = nullptr;
  uint64_t limit = UINT64_MAX;  // of device memory
  std::optional<uint64_t> last_limit;  // in the last run
};

Result<Ran> run_so(const std::string& text, const reference::Tables& tables, const How& how) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  CompileOptions options;
  options.target = how.target;
  options.numbers_as_parameters = true;
  options.verify_passes = true;
  options.code_cache = how.code;
  auto compiled = compile(sources.add("t.hir", text), sources, options, sink, timings);
  if (!compiled) return input_error("{}{}", compiled.error().message, render(sink, sources));
  sim::Options checks;
  checks.check_memory = checks.check_uninitialised = checks.check_hazards = checks.check_races = true;
  ASSIGN_OR_RETURN(const auto simulator, open_simulator(how.target, checks));
  CountingDevice device(*simulator);
  Engine engine(device, tables, how.code);
  engine.limit_memory(how.limit);
  EngineOptions engine_options = how.engine;
  engine_options.allow_fallback = false;
  ASSIGN_OR_RETURN(const auto plan, engine.plan(*compiled, sources, engine_options, timings));
  Ran ran;
  for (int run = 0; run < how.runs; ++run) {
    device.counters = {};
    if (how.last_limit && run + 1 == how.runs) engine.limit_memory(*how.last_limit);
    ASSIGN_OR_RETURN(const auto results, engine.run(*plan, timings));
    ASSIGN_OR_RETURN(std::string shown, print_result(results, Format::json));
    if (run && shown != ran.result) return input_error("run {} gives something else", run);
    ran = {std::move(shown), device.counters, timings.exclusive_ns(Phase::select), engine.column_bytes()};
  }
  return ran;
}

// A main over table f that returns these vectors.
std::string program(const std::string& lines, const std::vector<std::string>& columns) {
  std::string names;
  for (size_t i = 0; i < columns.size(); ++i) names += fmt::format("{}`c{}", i ? ", " : "", i);
  return fmt::format(
      "module m {{\n import Builtin.*;\n def main() : table {{\n  f:table = @load_table(`f:sym);\n{}  all:? = "
      "@list({});\n"
      "  result:? = @table({}:sym, all);\n  return result;\n }}\n}}\n",
      lines, fmt::join(columns, ", "), columns.size() == 1 ? names : "(" + names + ")");
}

std::string load(const std::string& column, const std::string& type) {
  return fmt::format("  f_{0}:{1} = check_cast(@column_value(f, `{0}:sym), {1});\n", column, type);
}

// --- Random guards ---

constexpr BasicType column_types[] = {BasicType::i8,  BasicType::i16, BasicType::i32, BasicType::i64,
                                      BasicType::f32, BasicType::f64, BasicType::date};

// The bits of a number as an element of the type.
int64_t bits_of(BasicType type, double x) {
  if (type == BasicType::f64) return std::bit_cast<int64_t>(x);
  if (type == BasicType::f32) return std::bit_cast<int32_t>(static_cast<float>(x));
  return static_cast<int64_t>(x);
}

// Numbers in an order: 0 ascending, 1 clustered, 2 descending by vectors, 3 anyhow, 4 all equal, 5 ascending but for some far away.
std::vector<double> numbers(uint64_t rows, uint64_t order, std::mt19937_64& random) {
  std::vector<double> out;
  for (uint64_t i = 0; i < rows; ++i) {
    const auto step = static_cast<double>(i / 128), vector = static_cast<double>(i / bounds_rows),
               noise = static_cast<double>(random() % 16);
    switch (order) {
      case 0: out.push_back(step - 30); break;
      case 1: out.push_back(8 * vector + noise - 30); break;
      case 2: out.push_back(-10 * vector + noise); break;
      case 3: out.push_back(static_cast<double>(random() % 100) - 50); break;
      case 4: out.push_back(7); break;
      default: out.push_back(random() % 700 == 0 ? -100 : step); break;
    }
  }
  return out;
}

std::string literal(BasicType type, double x) {
  if (type == BasicType::date) {
    const std::chrono::year_month_day day{std::chrono::sys_days(std::chrono::days(static_cast<int>(x)))};
    return fmt::format("{:04}-{:02}-{:02}:date", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                       static_cast<unsigned>(day.day()));
  }
  if (hir::is_float(type)) return fmt::format("{:.1f}:{}", x, hir::row(type).name);
  return fmt::format("{}:{}", static_cast<int64_t>(x), hir::row(type).name);
}

TEST(Skips, RandomGuards) {
  const char* seeds = std::getenv("RNDN_RANDOM_SEEDS");
  const uint32_t count = seeds ? static_cast<uint32_t>(std::atoi(seeds)) : 30;
  constexpr uint64_t rows_of[] = {
      0, 1, bounds_rows - 1, bounds_rows, bounds_rows + 1, 2 * bounds_rows, 5000, 9 * bounds_rows};
  constexpr const char* targets[] = {"sm_61", "sm_75", "sm_86", "sm_90"};
  constexpr Encode encodes[] = {Encode::narrow, Encode::packed};
  uint32_t skipping = 0;
  for (uint32_t seed = 1; seed <= count; ++seed) {
    std::mt19937_64 random(seed);
    const auto any = [&](uint64_t n) { return random() % n; };
    const uint64_t rows = seed % 3 ? rows_of[5 + any(3)] : rows_of[seed / 3 % 5];
    MadeTables tables;
    std::string lines = load("v", "i64");
    std::vector<int64_t> values;
    for (uint64_t i = 0; i < rows; ++i) values.push_back(static_cast<int64_t>(random() >> 20));
    tables.put("f", "v", BasicType::i64, values);
    BasicType types[3];
    std::vector<double> of[3];
    for (int c = 0; c < 3; ++c) {
      types[c] = column_types[any(std::size(column_types))];
      of[c] = numbers(rows, any(6), random);
      std::vector<int64_t> elements;
      for (double& x : of[c]) {
        if (hir::is_float(types[c]) && any(400) == 0) x = any(2) ? -0.0 : std::numeric_limits<double>::quiet_NaN();
        elements.push_back(bits_of(types[c], x));
      }
      tables.put("f", fmt::format("c{}", c), types[c], elements);
      lines += load(fmt::format("c{}", c), std::string(hir::row(types[c]).name));
    }
    // Comparisons, joined in pairs; some take a column that is selected already.
    std::vector<std::string> masks;
    const auto compare = [&](const std::string& suffix) {
      const uint64_t c = any(3);
      double x = of[c].empty() ? 0 : of[c][any(of[c].size())];
      if (std::isnan(x)) x = 3;
      x += static_cast<double>(any(3)) - 1;
      BasicType type = types[c];
      if (type != BasicType::date && any(3) == 0) type = any(2) ? BasicType::i64 : BasicType::f64;
      if (type == BasicType::i8) x = std::clamp(x, -127.0, 127.0);
      constexpr const char* all[] = {"lt", "leq", "gt", "geq", "eq"};
      std::string left = fmt::format("f_c{}{}", c, suffix), right = literal(type, x);
      if (any(3) == 0) std::swap(left, right);
      masks.push_back(fmt::format("m{}", masks.size()));
      lines += fmt::format("  {}:? = @{}({}, {});\n", masks.back(), all[any(5)], left, right);
      return masks.back();
    };
    std::string mask = compare("");
    for (uint64_t k = any(4); k > 0; --k) {
      const std::string other = compare("");
      masks.push_back(fmt::format("m{}", masks.size()));
      lines += fmt::format("  {}:? = @{}({}, {});\n", masks.back(), any(4) ? "and" : "or", mask, other);
      mask = masks.back();
    }
    std::string selected = "s_v";
    lines += fmt::format("  s_v:? = @compress({}, f_v);\n", mask);
    if (any(4) == 0) {  // a selection of a selection
      for (int c = 0; c < 3; ++c) lines += fmt::format("  f_c{0}s:? = @compress({1}, f_c{0});\n", c, mask);
      lines += fmt::format("  t_v:? = @compress({}, s_v);\n", compare("s"));
      selected = "t_v";
    }
    std::vector<std::string> results;
    switch (any(4)) {
      case 0:
        lines += fmt::format("  r0:? = @sum({0});\n  r1:? = @len({0});\n", selected);
        results = {"r0", "r1"};
        break;
      case 1: results = {selected}; break;
      case 2:
        lines += fmt::format("  two:? = @plus({0}, 2:i64);\n  r0:? = @mod(two, 1000:i64);\n", selected);
        results = {selected, "r0"};
        break;
      default:
        lines += fmt::format(
            "  k:? = @mod({0}, 5:i64);\n  g:? = @group(k);\n  first:? = @keys(g);\n  rows:? = @values(g);\n  ks:? = "
            "@index(k, first);\n"
            "  v:? = @each_right(@index, {0}, rows);\n  e:? = @each(@sum, v);\n  s:? = @raze(e);\n  o:? = @order(ks, "
            "1:bool);\n"
            "  r0:? = @index(ks, o);\n  r1:? = @index(s, o);\n",
            selected);
        results = {"r0", "r1"};
    }
    const std::string text = program(lines, results);
    const auto expected = run_on_reference(text, tables);
    ASSERT_TRUE(expected) << expected.error().message << text;
    How how{.target = targets[seed % 4]};
    how.engine.encode = encodes[any(2)];
    how.runs = seed % 8 ? 1 : 4;  // the last is a graph
    const auto ran = run_so(text, tables, how);
    ASSERT_TRUE(ran) << "seed " << seed << ": " << ran.error().message << text;
    ASSERT_EQ(ran->result, *expected) << "seed " << seed << " on " << how.target << ", " << rows << " rows\n" << text;
    if (rows < 2 * bounds_rows) continue;
    how.engine.bounded_rows = UINT64_MAX;
    if (how.runs > 1) continue;
    const auto before = run_so(text, tables, how);
    ASSERT_TRUE(before) << before.error().message;
    ASSERT_EQ(before->result, *expected);
    skipping += ran->counters.load_sectors < before->counters.load_sectors;
  }
  EXPECT_GE(skipping, count / 8);
  RecordProperty("skipping", static_cast<int>(skipping));
}

// --- Counters ---

// 40 vectors of ascending keys, 10 of a key, and a column of 8 bytes.
void put_ascending(MadeTables& tables, uint64_t vectors = 40) {
  std::vector<int64_t> keys(vectors * bounds_rows), values(keys.size());
  for (uint64_t i = 0; i < keys.size(); ++i) {
    keys[i] = static_cast<int64_t>(i);
    values[i] = static_cast<int64_t>(i * 0x9e3779b97f4a7c15 >> 40);
  }
  tables.put("f", "k", BasicType::i32, keys);
  tables.put("f", "v", BasicType::i64, values);
}

std::string between(int64_t from, int64_t to, const std::string& result) {
  const std::string lines =
      load("k", "i32") + load("v", "i64") +
      fmt::format(
          "  a:? = @geq(f_k, {}:i32);\n  b:? = @lt(f_k, {}:i32);\n  m:? = @and(a, b);\n  s:? = @compress(m, f_v);\n",
          from, to);
  if (result == "s") return program(lines, {"s"});
  return program(lines + fmt::format("  r:? = @{}(s);\n", result), {"r"});
}

// Sectors of 32 bytes that are loaded are those of the tiles whose bounds the guard meets, no more and no fewer.
TEST(Skips, WhatIsLoadedIsOfTilesThatCount) {
  MadeTables tables;
  put_ascending(tables);
  constexpr uint64_t of_tile = bounds_rows * (4 + 8) / 32, n = bounds_rows;
  for (const char* target : {"sm_61", "sm_90"})
    for (const char* result : {"sum", "s"}) {
      const auto sectors = [&](uint64_t from, uint64_t to) {
        const std::string text = between(static_cast<int64_t>(from), static_cast<int64_t>(to), result);
        const auto ran = run_so(text, tables, {.target = target});
        const auto expected = run_on_reference(text, tables);
        EXPECT_TRUE(ran && expected) << text;
        if (!ran || !expected) return uint64_t{0};
        EXPECT_EQ(ran->result, *expected) << text;
        return ran->counters.load_sectors;
      };
      const uint64_t none = sectors(50 * n, 60 * n);
      EXPECT_LT(none, 40 * of_tile / 4) << "what bounds, and the order of selections, take";
      const bool stored = std::string_view(result) == "s";
      // A selection's size and place are looked at besides: nothing that hangs on what is selected is loaded again, but what is stored of it.
      for (const auto& [from, to, tiles] : std::vector<std::array<uint64_t, 3>>{
               {0, n, 1}, {5 * n, 6 * n, 1}, {5 * n, 8 * n, 3}, {39 * n, 40 * n, 1}, {0, 40 * n, 40}}) {
        const uint64_t loaded = sectors(from, to) - none;
        if (stored)
          EXPECT_NEAR(static_cast<double>(loaded), static_cast<double>(tiles * of_tile), static_cast<double>(tiles * 8))
              << target;
        else
          EXPECT_EQ(loaded, tiles * of_tile) << target << ": " << from << " to " << to;
      }
      // The key's sectors of two tiles, whose last and first rows count, and the two sectors of these rows' values.
      if (!stored) EXPECT_EQ(sectors(6 * n - 1, 6 * n + 1) - none, 2 * n * 4 / 32 + 2) << target;
    }
}

TEST(Skips, OtherNumbersCompileNothing) {
  MadeTables tables;
  put_ascending(tables);
  CodeCache code("");
  const auto run = [&](int64_t from, int64_t to) {
    const auto ran = run_so(between(from, to, "sum"), tables, {.code = &code});
    EXPECT_TRUE(ran) << ran.error().message;
    return ran ? *ran : Ran{};
  };
  const Ran all = run(0, 40 * bounds_rows), few = run(0, 2 * bounds_rows);
  EXPECT_GT(all.assembled_ns, 0u);
  EXPECT_EQ(few.assembled_ns, 0u);
  EXPECT_LT(few.counters.warp_instructions, all.counters.warp_instructions);
  EXPECT_EQ(all.counters.load_sectors - few.counters.load_sectors, 38 * bounds_rows * (4 + 8) / 32);
}

// Columns by which nothing can be skipped have no test: not an instruction more.
TEST(Skips, RowsInNoOrderCostNothing) {
  auto source = tpch::open_source("tpch:0.05", {.progress = false});
  ASSERT_TRUE(source) << source.error().message;
  data::SourceTables loaded(*source);
  const char* names[] = {"l_shipdate", "l_discount", "l_quantity", "l_extendedprice"};
  MadeTables as_they_are, by_date;
  std::vector<uint32_t> order;
  for (const char* name : names) {
    const auto column = loaded.part("lineitem", name, data::ColumnPart::values);
    ASSERT_TRUE(column) << column.error().message;
    as_they_are.put("lineitem", name, data::Column(**column));
    if (order.empty()) {
      order.resize((*column)->rows);
      std::iota(order.begin(), order.end(), 0u);
      const int32_t* days = (*column)->as<int32_t>();
      std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return days[a] < days[b]; });
    }
    by_date.put("lineitem", name, data::Column(*pick_rows(**column, order)));
  }
  const auto text = read_file(std::string(RNDN_SOURCE_DIR) + "/tpch/queries/q06.hir");
  ASSERT_TRUE(text);
  const auto expected = run_on_reference(*text, as_they_are);
  ASSERT_TRUE(expected) << expected.error().message;
  for (const char* target : {"sm_61", "sm_90"}) {
    const auto instructions = [&](const reference::Tables& tables, bool skips) {
      How how{.target = target};
      if (!skips) how.engine.bounded_rows = UINT64_MAX;
      const auto ran = run_so(*text, tables, how);
      EXPECT_TRUE(ran) << ran.error().message;
      if (!ran) return uint64_t{0};
      EXPECT_EQ(ran->result, *expected);
      return ran->counters.warp_instructions;
    };
    EXPECT_EQ(instructions(as_they_are, true), instructions(as_they_are, false)) << target;
    const uint64_t before = instructions(by_date, false), after = instructions(by_date, true);
    RecordProperty(fmt::format("q06_by_date_{}", target), fmt::format("{} of {}", after, before));
    EXPECT_LT(3 * after, 2 * before) << target;  // warps without a row that counts pass the sums by in any case
  }
}

// A kernel that reads little has tiles of more than a vector: one of them that counts is enough.
TEST(Skips, TilesOfTwoVectors) {
  MadeTables tables;
  std::vector<int64_t> numbers(7 * bounds_rows + 100);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i / bounds_rows);
  tables.put("f", "k", BasicType::i16, numbers);
  for (int64_t k = -1; k <= 8; ++k) {
    const std::string text = program(
        load("k", "i16") + fmt::format("  m:? = @eq(f_k, {}:i16);\n  s:? = @compress(m, f_k);\n  r:? = @len(s);\n", k), {"r"});
    const auto ran = run_so(text, tables, {});
    const auto expected = run_on_reference(text, tables);
    ASSERT_TRUE(ran && expected);
    EXPECT_EQ(ran->result, *expected) << k;
    How without;
    without.engine.bounded_rows = UINT64_MAX;
    const auto before = run_so(text, tables, without);
    ASSERT_TRUE(before);
    const uint64_t tiles = k < 0 || k > 7 ? 0 : 1, rows = k < 6 ? 2 * bounds_rows : bounds_rows + 100;
    if (tiles == 0) EXPECT_LT(ran->counters.load_sectors, before->counters.load_sectors - 300) << k;
    if (tiles == 1) EXPECT_GT(ran->counters.load_sectors, rows * 2 / 32) << k << ": the whole tile is read";
  }
}

// --- Errors ---

TEST(Skips, ErrorsOfRowsThatDoNotCountAreRaised) {
  MadeTables tables;
  put_ascending(tables, 8);
  std::vector<int64_t> zeros(8 * bounds_rows, 1);
  zeros[5000] = 0;
  tables.put("f", "z", BasicType::i64, zeros);
  const std::string loads = load("k", "i32") + load("v", "i64") + load("z", "i64") + "  m:? = @lt(f_k, {}:i32);\n";
  const auto run = [&](const std::string& lines, int64_t below) {
    const std::string text = program(fmt::format(fmt::runtime(loads + lines), below), {"r"});
    const auto ran = run_so(text, tables, {});
    const auto expected = run_on_reference(text, tables);
    EXPECT_EQ(ran.ok(), expected.ok());
    if (ran && expected) EXPECT_EQ(ran->result, *expected);
    return ran ? std::string("no error") : ran.error().message;
  };
  // Of every row, and of selected ones.
  const std::string every = "  q:? = @div(f_v, f_z);\n  s:? = @compress(m, q);\n  r:? = @sum(s);\n";
  EXPECT_THAT(run(every, 100), HasSubstr("zero"));
  const std::string selected =
      "  a:? = @compress(m, f_v);\n  b:? = @compress(m, f_z);\n  q:? = @div(a, b);\n  r:? = @sum(q);\n";
  EXPECT_EQ(run(selected, 100), "no error");
  EXPECT_EQ(run(selected, 5000), "no error");
  EXPECT_THAT(run(selected, 5001), HasSubstr("zero"));
  // What every row has an effect on is not skipped.
  EXPECT_EQ(run("  s:? = @compress(m, f_v);\n  x:? = @sum(s);\n  y:? = @sum(f_v);\n  r:? = @plus(x, y);\n", 100),
            "no error");
}

// --- Ranges ---

TEST(Skips, RangesOfATableHaveTheirOwn) {
  MadeTables tables;
  put_ascending(tables);
  const std::string text = between(7000, 9500, "sum");
  const auto expected = run_on_reference(text, tables);
  ASSERT_TRUE(expected);
  How how;
  for (uint64_t rows : {3000, 4096}) {
    how.engine.range_rows = rows;
    how.engine.bounded_rows = 0;
    const auto ran = run_so(text, tables, how);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->result, *expected);
    how.engine.bounded_rows = UINT64_MAX;
    const auto before = run_so(text, tables, how);
    ASSERT_TRUE(before);
    EXPECT_LT(ran->counters.load_sectors, before->counters.load_sectors);
  }
}

// --- Room ---

// Bounds are device memory like any other: counted, and what there is no room for is done without. Other columns stay for them.
TEST(Skips, WhereBoundsHaveNoRoomNothingIsSkipped) {
  MadeTables tables;
  constexpr uint64_t vectors = 16, columns = vectors * bounds_rows * (4 + 8), bounds = vectors * 2 * (4 + 8);
  std::vector<int64_t> ascending(vectors * bounds_rows);
  std::iota(ascending.begin(), ascending.end(), 0);
  tables.put("f", "k", BasicType::i32, ascending);
  tables.put("f", "v", BasicType::i64, ascending);
  const std::string text = program(load("k", "i32") + load("v", "i64") +
                                       "  m:? = @lt(f_k, 3000:i32);\n  s:? = @compress(m, f_k);\n  r:? = @sum(s);\n"
                                       "  n:? = @gt(f_v, r);\n  t:? = @compress(n, f_v);\n  q:? = @sum(t);\n",
                                   {"r", "q"});
  const auto expected = run_on_reference(text, tables);
  ASSERT_TRUE(expected);
  const auto run = [&](bool skips, uint64_t limit, int runs, std::optional<uint64_t> last = {}) {
    How how{.runs = runs, .limit = limit, .last_limit = last};
    if (!skips) how.engine.bounded_rows = UINT64_MAX;
    const auto ran = run_so(text, tables, how);
    EXPECT_TRUE(ran) << ran.error().message;
    if (ran) EXPECT_EQ(ran->result, *expected);
    return ran ? *ran : Ran();
  };
  const Ran without = run(false, UINT64_MAX, 2), with = run(true, UINT64_MAX, 2);
  EXPECT_LT(with.counters.load_sectors, without.counters.load_sectors / 2);
  EXPECT_EQ(with.column_bytes - without.column_bytes, bounds);
  // The least limit where no column is evicted: there is no room for bounds.
  uint64_t too_small = columns, least = columns + (64 << 10);
  while (least - too_small > 256) {
    const uint64_t limit = (too_small + least) / 512 * 256;
    (run(false, limit, 2).column_bytes == columns ? least : too_small) = limit;
  }
  // What was sent of a kernel's bounds before the room ended stays.
  const Ran tight = run(true, least, 2), loose = run(true, least + (8 << 10), 2);
  EXPECT_EQ(tight.counters.load_sectors, without.counters.load_sectors);
  EXPECT_LT(tight.column_bytes, with.column_bytes) << "no column is sent twice";
  EXPECT_EQ(loose.counters.load_sectors, with.counters.load_sectors);
  EXPECT_EQ(loose.column_bytes, with.column_bytes);
  // Once there is room they are taken, and not before.
  const Ran later = run(true, least, 3, least + (8 << 10));
  EXPECT_EQ(later.counters.load_sectors, with.counters.load_sectors);
  EXPECT_LE(later.column_bytes, with.column_bytes + bounds) << "no column is sent twice";
  const Ran graph = run(true, least, 5), again = run(true, least, 5, least + (8 << 10));
  EXPECT_EQ(graph.column_bytes, tight.column_bytes);
  EXPECT_EQ(again.counters.load_sectors, with.counters.load_sectors) << "no graph without them";
}

// --- The bounds ---

template <class T>
data::Column column_of(BasicType type, const std::vector<T>& values) {
  data::Column c = data::make_column(type, values.size());
  if (!values.empty()) std::memcpy(c.data->data(), values.data(), values.size() * sizeof(T));
  data::compute_statistics(c);
  return c;
}

template <class T, class B>
void check_bounds(BasicType type) {
  ThreadPool pool(2);
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const bool sorted : {true, false})
    for (const uint64_t rows : {1025, 2048, 2049, 100000}) {
      std::mt19937_64 random(rows);
      std::vector<T> values;
      for (uint64_t i = 0; i < rows; ++i)
        values.push_back(static_cast<T>(i / bounds_rows + (sorted ? 0 : random() % 3)));
      if constexpr (std::is_floating_point_v<T>)
        if (!sorted) values[5] = static_cast<T>(nan), values[1500 % rows] = static_cast<T>(-0.0);
      const data::Column c = column_of(type, values);
      EXPECT_EQ(c.statistics.sorted, sorted);
      const VectorBounds found = vector_bounds_of(c, &pool);
      if (spanned_of(c).share > most_spanned) {
        EXPECT_LT(rows, 3000u) << "few vectors";
        EXPECT_EQ(found.bytes, nullptr);
        continue;
      }
      ASSERT_NE(found.bytes, nullptr) << hir::row(type).name << ", " << rows;
      ASSERT_EQ(codegen::bound_bytes(type), sizeof(B));
      const uint64_t vectors = (rows + bounds_rows - 1) / bounds_rows;
      ASSERT_EQ(found.bytes->size(), (vectors + 3) / 4 * 4 * 2 * sizeof(B));
      for (uint64_t k = 0; k < vectors; ++k) {
        B bounds[2];
        std::memcpy(bounds, found.bytes->data() + k * sizeof bounds, sizeof bounds);
        bool least = false, greatest = false;
        for (uint64_t i = k * bounds_rows; i < std::min(rows, (k + 1) * bounds_rows); ++i) {
          if (values[i] != values[i]) continue;
          ASSERT_LE(bounds[0], static_cast<B>(values[i]));
          ASSERT_GE(bounds[1], static_cast<B>(values[i]));
          least |= bounds[0] == static_cast<B>(values[i]);
          greatest |= bounds[1] == static_cast<B>(values[i]);
        }
        EXPECT_TRUE(least && greatest) << "an element is the bound";
      }
    }
}

TEST(VectorBounds, AreTheLeastAndTheGreatestElements) {
  check_bounds<int8_t, int32_t>(BasicType::i8);
  check_bounds<int16_t, int32_t>(BasicType::i16);
  check_bounds<int32_t, int32_t>(BasicType::i32);
  check_bounds<int32_t, int32_t>(BasicType::date);
  check_bounds<int64_t, int64_t>(BasicType::i64);
  check_bounds<float, float>(BasicType::f32);
  check_bounds<double, double>(BasicType::f64);
}

TEST(VectorBounds, AreWorthItWhereTilesDiffer) {
  std::mt19937_64 random(1);
  const auto said = [&](const std::vector<double>& x) {
    std::vector<int64_t> values(x.begin(), x.end());
    return spanned_of(column_of(BasicType::i64, values)).reason;
  };
  EXPECT_EQ(said(numbers(200000, 0, random)), "tiles of 1024 rows span 0 % of the elements: skipped by bounds");
  EXPECT_EQ(said(numbers(200000, 4, random)), "tiles of 1024 rows span 100 % of the elements: no skipping");
  EXPECT_THAT(said(numbers(200000, 3, random)), HasSubstr(": no skipping"));
  // Elements far from all others: in some tiles they change little, in each they are all of the range.
  std::vector<double> uniform = numbers(200000, 3, random);
  uniform[100] = 1e9;
  EXPECT_THAT(said(uniform), HasSubstr(": no skipping"));
  std::vector<double> ascending = numbers(200000, 0, random);
  ascending[100] = 1e9;
  EXPECT_THAT(said(ascending), HasSubstr(": skipped by bounds"));
  EXPECT_THAT(said(numbers(1024, 0, random)), HasSubstr(" 100 % of the elements: no skipping")) << "one tile";
  EXPECT_EQ(said({}), "");
  EXPECT_EQ(spanned_of(column_of(BasicType::boolean, std::vector<uint8_t>(3000))).reason, "");
  data::Column part = column_of(BasicType::i64, std::vector<int64_t>{1, 2, 1});
  part.is_part = true;
  EXPECT_EQ(spanned_of(part).reason, "") << "a pass over it for each range of a table";
}

class Folder {
 public:
  Folder() {
    path_ = ::testing::TempDir() + "rndn_bounds_XXXXXX";
    if (!mkdtemp(path_.data())) ADD_FAILURE() << "cannot make a folder like " << path_;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// They are kept beside the column. And a least element that is not the least is a wrong answer, which a comparison with the reference interpreter shows.
TEST(VectorBounds, AreKeptWithTheColumnAndDecide) {
  const Folder folder;
  std::vector<int64_t> keys(40 * bounds_rows);
  for (uint64_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i ^ 1);  // ascending by pairs
  const data::Column column = column_of(BasicType::i64, keys);
  ASSERT_TRUE(data::write_column(folder.path() + "/k", "k", column));
  EXPECT_TRUE(vector_bounds_of(column, nullptr).made);
  const auto read = [&] { return *data::read_column(folder.path() + "/k", "k"); };
  const VectorBounds kept = vector_bounds_of(read(), nullptr);
  EXPECT_FALSE(kept.made);
  ASSERT_NE(kept.bytes, nullptr);

  const std::string text =
      program(load("k", "i64") + "  a:? = @lt(f_k, 5000:i64);\n  s:? = @compress(a, f_k);\n  r:? = @sum(s);\n", {"r"});
  const auto agrees = [&] {
    MadeTables tables;
    tables.put("f", "k", read());
    const auto ran = run_so(text, tables, {});
    const auto expected = run_on_reference(text, tables);
    EXPECT_TRUE(ran && expected);
    return ran && expected && ran->result == *expected;
  };
  EXPECT_TRUE(agrees());
  const auto file = data::FormFile::of(*column.data, "i64.bounds.1024");
  ASSERT_TRUE(file && file->read()) << "it is called so";
  data::Bytes wrong(kept.bytes->size());
  std::memcpy(wrong.data(), kept.bytes->data(), wrong.size());
  const int64_t least = 6000;  // of the elements from 4096 on
  std::memcpy(wrong.data() + 4 * 16, &least, 8);
  ASSERT_TRUE(file->write(&wrong));
  EXPECT_FALSE(agrees()) << "the wrong least element is not looked at";
  data::Bytes cut(kept.bytes->size() - 8);
  ASSERT_TRUE(file->write(&cut));
  EXPECT_TRUE(agrees()) << "made anew";
  EXPECT_FALSE(vector_bounds_of(read(), nullptr).made);
}

}  // namespace
}  // namespace rndn::runtime::skips_test
