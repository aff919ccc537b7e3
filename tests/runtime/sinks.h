// What tests of groups inside kernels share: programs that group, their tables, and runs of them on the simulator beside the reference interpreter.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/runtime/on_reference.h"
#include "tests/support/every_case.h"
#include "tests/support/made_tables.h"

namespace rndn::runtime::sinks {

using hir::BasicType;
using rndn::test::MadeTables;

struct Ran {
  std::string result;
  std::vector<std::string> library;  // kernels of the library
  size_t launches = 0;               // of outlined kernels
  std::vector<uint64_t> bytes;       // that each of them must move
  uint64_t instructions = 0;         // of the last launch, a warp's
  std::vector<size_t> by_run;        // the same, of every run
  std::vector<uint64_t> host_calls;  // of every run: what the host waits for
  uint32_t shared_bytes = 0;         // of a block of an outlined kernel, at most
};

// How a program is run beside the usual.
struct How {
  int runs = 1;
  EngineOptions engine = {.hashed_rows = 2048};
  std::function<void(int)> before_run = {};
  bool same_results = true;  // of all runs
};

inline Result<Ran> run_so(const char* target, const std::string& text, const reference::Tables& tables, const How& how,
                   outliner::Mode mode = outliner::Mode::full, bool fuse_groups = true) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  CompileOptions options;
  options.target = target;
  options.outline = mode;
  options.fuse_groups = fuse_groups;
  options.verify_passes = true;
  auto compiled = compile(sources.add("t.hir", text), sources, options, sink, timings);
  if (!compiled) return input_error("{}{}", compiled.error().message, render(sink, sources));
  sim::Options checks;
  checks.check_memory = checks.check_hazards = checks.check_races = true;
  ASSIGN_OR_RETURN(const auto device, open_simulator(target, checks));
  Engine engine(*device, tables);
  EngineOptions engine_options = how.engine;
  engine_options.allow_fallback = false;
  ASSIGN_OR_RETURN(const auto plan, engine.plan(*compiled, sources, engine_options, timings));
  Ran ran;
  for (int run = 0; run < how.runs; ++run) {
    if (how.before_run) how.before_run(run);
    const uint64_t calls = device->host_calls();
    std::vector<KernelReport> kernels;
    ASSIGN_OR_RETURN(const auto results, engine.run(*plan, timings, nullptr, &kernels));
    ASSIGN_OR_RETURN(std::string shown, print_result(results, Format::json));
    if (run && how.same_results && shown != ran.result) return input_error("run {} gives something else", run);
    ran.result = std::move(shown);
    ran.instructions = device->last_launch().warp_instructions;
    ran.library.clear();
    ran.launches = 0;
    ran.bytes.clear();
    for (const KernelReport& k : kernels)
      if (k.kind == "outlined") {
        ran.launches += k.launches;
        ran.bytes.push_back(k.floor_bytes);
        ran.shared_bytes = std::max(ran.shared_bytes, k.shared_bytes);
      } else {
        ran.library.push_back(k.name);
      }
    ran.by_run.push_back(ran.launches);
    ran.host_calls.push_back(device->host_calls() - calls);
  }
  return ran;
}

inline Result<Ran> run_on(const char* target, const std::string& text, const reference::Tables& tables, int runs = 1,
                   outliner::Mode mode = outliner::Mode::full, bool fuse_groups = true,
                   std::optional<uint64_t> most_selective_rows = {}) {
  How how{.runs = runs};
  if (most_selective_rows) how.engine.most_rows_of_selective_folds = *most_selective_rows;
  return run_so(target, text, tables, how, mode, fuse_groups);
}

inline bool folds(const Ran& ran) {
  return std::none_of(ran.library.begin(), ran.library.end(), [](const std::string& k) {
    return k.starts_with("few") || k.starts_with("segment") || k.starts_with("exact") || k.find("group") != k.npos;
  });
}

// Lines of a main that returns a table of `columns`.
inline std::string program(const std::string& lines, const std::vector<std::string>& columns) {
  std::string names;
  for (size_t i = 0; i < columns.size(); ++i) names += fmt::format("{}`c{}", i ? ", " : "", i);
  return fmt::format(
      "module m {{\n import Builtin.*;\n def main() : table {{\n{}  all:? = @list({});\n"
      "  result:? = @table({}:sym, all);\n  return result;\n }}\n}}\n",
      lines, fmt::join(columns, ", "), columns.size() == 1 ? names : "(" + names + ")");
}

inline constexpr const char* integer_functions[] = {"sum", "len", "min", "max"};

// Floats as integers in memory: near each other and of every size, and among them what is special. Of the keys that 5 divides all are NaN, and of those after
// them zeros of both signs.
inline int64_t float_bits(double x, bool single) {
  return single ? int64_t{std::bit_cast<int32_t>(static_cast<float>(x))} : std::bit_cast<int64_t>(x);
}
inline std::vector<int64_t> special_floats(const std::vector<int64_t>& keys, bool single, uint64_t seed) {
  std::mt19937_64 random(seed);
  const double most = single ? double{std::numeric_limits<float>::max()} : std::numeric_limits<double>::max(), none = std::nan("");
  const double special[] = {none, -none, INFINITY, -INFINITY, 0.0, -0.0, most, -most, single ? 0x1p-149 : 0x1p-1074, single ? -0x1p-149 : -0x1p-1074};
  std::vector<int64_t> out;
  for (const int64_t key : keys) {
    const uint64_t r = random();
    double x = static_cast<double>(static_cast<int64_t>(random())) * std::ldexp(1.0, static_cast<int>(r % 100) - 110);
    if (r % 64 == 0) x = special[random() % std::size(special)];
    if (key % 5 == 0) x = r % 2 ? none : -none;
    if (key % 5 == 1) x = r % 2 ? 0.0 : -0.0;
    out.push_back(float_bits(x, single));
  }
  return out;
}

// Group by the named columns, selected by `mask` unless that is empty, with all functions of the values; ordered by the keys.
inline std::string grouped(const std::string& loads, const std::vector<std::string>& keys,
                    const std::vector<std::string>& values, const std::string& mask) {
  std::string lines = loads;
  std::vector<std::string> kept, first, columns;
  for (size_t k = 0; k < keys.size(); ++k) {
    kept.push_back(mask.empty() ? keys[k] : fmt::format("k{}", k));
    if (!mask.empty()) lines += fmt::format("  k{}:? = @compress({}, {});\n", k, mask, keys[k]);
  }
  if (kept.size() > 1) lines += fmt::format("  ks:? = @list({});\n", fmt::join(kept, ", "));
  lines += fmt::format("  g:? = @group({});\n  first:? = @keys(g);\n  rows:? = @values(g);\n",
                       kept.size() > 1 ? std::string("ks") : kept[0]);
  for (size_t k = 0; k < kept.size(); ++k) {
    lines += fmt::format("  f{}:? = @index({}, first);\n", k, kept[k]);
    first.push_back(fmt::format("f{}", k));
  }
  std::vector<std::string> results;
  for (size_t v = 0; v < values.size(); ++v) {
    std::string at = values[v];
    if (!mask.empty()) {
      lines += fmt::format("  v{}:? = @compress({}, {});\n", v, mask, at);
      at = fmt::format("v{}", v);
    }
    for (const char* f : integer_functions) {
      const std::string r = fmt::format("{}{}", f, v);
      if (std::string_view(f) == "len") {
        lines += fmt::format("  e_{0}:? = @each(@len, rows);\n", r);
      } else if (std::string_view(f) == "sum" && values[v].starts_with("f_d")) {
        continue;  // dates have none
      } else if (std::string_view(f) == "sum" && (values[v].starts_with("f_x") || values[v].starts_with("f_h"))) {
        continue;  // of NaN and infinity
      } else {
        lines +=
            fmt::format("  c_{0}:? = @each_right(@index, {1}, rows);\n  e_{0}:? = @each(@{2}, c_{0});\n", r, at, f);
      }
      lines += fmt::format("  {0}:? = @raze(e_{0});\n", r);
      results.push_back(r);
    }
  }
  std::string up;
  for (size_t k = 0; k < first.size(); ++k) up += k ? ", 1" : "1";
  if (first.size() > 1) lines += fmt::format("  fs:? = @list({});\n", fmt::join(first, ", "));
  lines += fmt::format("  o:? = @order({}, {});\n", first.size() > 1 ? "fs" : "f0",
                       first.size() > 1 ? "(" + up + "):bool" : "1:bool");
  for (const std::vector<std::string>* of : {&first, &results})
    for (const std::string& r : *of) {
      lines += fmt::format("  o_{0}:? = @index({0}, o);\n", r);
      columns.push_back("o_" + r);
    }
  // Keys once more, through the order of their first rows.
  lines += fmt::format("  p:? = @index(first, o);\n  again:? = @index({}, p);\n", kept[0]);
  columns.push_back("again");
  return program(lines, columns);
}

inline std::string load(const char* column, const char* type) {
  return fmt::format("  f_{0}:{1} = check_cast(@column_value(f, `{0}:sym), {1});\n", column, type);
}

// Rows of keys below `groups` and of values, 64-bit ones near their limits too.
inline void put_numbers(MadeTables& tables, uint64_t rows, uint64_t groups, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> k, n, w, d;
  for (uint64_t i = 0; i < rows; ++i) {
    k.push_back(static_cast<int64_t>(random() % groups) - 3);
    n.push_back(static_cast<int64_t>(random()) % 2'000'000'000);
    w.push_back(static_cast<int64_t>(random()) >> 2);
    d.push_back(static_cast<int64_t>(random() % 20000));
  }
  tables.put("f", "k", BasicType::i32, k);
  tables.put("f", "n", BasicType::i32, n);
  tables.put("f", "w", BasicType::i64, w);
  tables.put("f", "d", BasicType::date, d);
  tables.put("f", "x", BasicType::f64, special_floats(k, false, seed));
  tables.put("f", "h", BasicType::f32, special_floats(k, true, seed));
}
inline std::string number_loads() {
  return "  f:? = @load_table(`f:sym);\n" + load("k", "i32") + load("n", "i32") + load("w", "i64") + load("d", "date") + load("x", "f64") +
         load("h", "f32");
}

// Rows whose keys are among `groups` numbers of 64 bits, anywhere in them; `a` and `b` of the same group differ from those of others.
inline void put_wide(MadeTables& tables, uint64_t rows, uint64_t groups, uint64_t seed, bool all_bits = false) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> of_a, of_b, a, b, n, w, numbers;
  std::vector<std::string> texts;
  for (uint64_t g = 0; g < groups; ++g) {
    of_a.push_back(static_cast<int64_t>(random() >> 1) - (int64_t{1} << 62));
    of_b.push_back(g % 3 ? static_cast<int64_t>(random()) : of_a.back());
  }
  if (all_bits) of_a[0] = std::numeric_limits<int64_t>::min(), of_a[groups - 1] = std::numeric_limits<int64_t>::max();
  for (uint64_t i = 0; i < rows; ++i) {
    const size_t g = random() % groups;
    numbers.push_back(static_cast<int64_t>(g));
    a.push_back(of_a[g]);
    b.push_back(of_b[g]);
    texts.push_back(fmt::format("text {}", g % 50));
    n.push_back(static_cast<int64_t>(random()) % 2'000'000'000);
    // Extremes that only a table of unsigned numbers tells from none.
    w.push_back(random() % 5 ? static_cast<int64_t>(random()) : random() % 2 ? INT64_MAX : INT64_MIN);
  }
  tables.put("f", "a", BasicType::i64, a);
  tables.put("f", "b", BasicType::i64, b);
  tables.put("f", "n", BasicType::i32, n);
  tables.put("f", "w", BasicType::i64, w);
  tables.put("f", "t", true, texts);
  tables.put("f", "x", BasicType::f64, special_floats(numbers, false, seed));
  tables.put("f", "h", BasicType::f32, special_floats(numbers, true, seed));
}
inline std::string wide_loads() {
  return "  f:? = @load_table(`f:sym);\n" + load("a", "i64") + load("b", "i64") + load("n", "i32") + load("w", "i64") +
         load("t", "sym") + load("x", "f64") + load("h", "f32") + "  m:? = @gt(f_n, -500000000:i32);\n";
}
inline bool is_hashed(const Ran& ran) {
  const auto any = [&](const char* name) {
    return std::any_of(ran.library.begin(), ran.library.end(), [&](const std::string& k) { return k.starts_with(name); });
  };
  return any("fold_collect") && !any("segment") && !any("few") && !any("small_groups") && !any("group_");
}

}  // namespace rndn::runtime::sinks
