// Look-ups inside kernels (outliner/joins.cpp): random star programs give on the simulator what the reference interpreter gives, in every outline
// mode, whether keys repeat or not. RNDN_RANDOM_SEEDS=N: so many programs, each on all six targets, half of the runs without fused operators.
// RNDN_RANDOM_FIRST=N: from that one on. Two thirds of the runs have their kernels made for the tables, as first runs of `rndn` do.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>

#include "ptx/interpreter/interpreter.h"
#include "ptx/lookup/lookup.h"
#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/runtime/on_reference.h"
#include "tests/support/made_tables.h"

namespace rndn::runtime::probes_test {
namespace {

using hir::BasicType;
using rndn::test::MadeTables;

// A fact table `f` and the tables around it, and a program that joins them.
class Star {
 public:
  explicit Star(uint64_t seed) : random_(seed) {
    fact_rows_ = rows({0, 1, 5, 40, 700, 2300, 5000});
    tables.put("f", "v", BasicType::i64, numbers(fact_rows_, 1000));
    load("f", "v", "i64");
    rows_ = {"f_v"};
    const size_t dimensions = 1 + pick(3);
    for (size_t d = 0; d < dimensions; ++d) dimension(d);
    std::string names;
    for (size_t i = 0; i < rows_.size(); ++i) names += fmt::format("{}`r{}", i ? ", " : "", i);
    text = fmt::format(
        "module m {{\n import Builtin.*;\n def main() : table {{\n{}{}  all:? = @list({});\n"
        "  result:? = @table({}:sym, all);\n  return result;\n }}\n}}\n",
        loads_, body_, fmt::join(rows_, ", "), rows_.size() == 1 ? names : "(" + names + ")");
  }

  MadeTables tables;
  std::string text;
  bool repeats = false;  // a key of a join does
  size_t many = 0;       // joins by more than three columns
  size_t outer = 0;      // joins that keep rows without a pair

 private:
  struct Kind {
    const char* fact;
    const char* dimension;
    bool is_text;
  };
  uint64_t pick(uint64_t n) { return random_() % n; }
  // The largest seldom, since they take as long as all others: more than a tile of a kernel and than one launch sorts are the ones before it, too.
  uint64_t rows(const std::array<uint64_t, 7>& sizes) {
    if (pick(16) == 0) return sizes[6];
    return sizes[pick(8) ? 2 + pick(4) : pick(3)];
  }
  std::vector<int64_t> numbers(uint64_t count, uint64_t below) {
    std::vector<int64_t> out;
    for (uint64_t i = 0; i < count; ++i) out.push_back(static_cast<int64_t>(pick(below)));
    return out;
  }
  void load(const std::string& table, const std::string& column, std::string_view type) {
    if (loads_.find("  " + table + ":? =") == std::string::npos) loads_ += fmt::format("  {0}:? = @load_table(`{0}:sym);\n", table);
    loads_ += fmt::format("  {0}_{1}:{2} = check_cast(@column_value({0}, `{1}:sym), {2});\n", table, column, type);
  }
  void line(const std::string& target, const std::string& call) {
    body_ += fmt::format("  {}:? = {};\n", target, call);
  }
  std::string fresh(const char* stem) { return fmt::format("{}{}", stem, made_++); }

  // Puts a column of keys into the dimension and one that refers to it into the fact table; names[0] and [1] are what they are called in the program.
  void key(const std::string& d, const std::string& name, const std::vector<int64_t>& keys, uint64_t range, bool is_dense = false) {
    static constexpr Kind kinds[] = {{"i32", "i32", false}, {"i64", "i64", false},   {"i64", "i32", false},
                                     {"i16", "i64", false}, {"date", "date", false}, {"sym", "sym", true},
                                     {"str", "sym", true},  {"str", "str", true},    {"dt", "dt", false}};
    const Kind& kind = kinds[pick(is_dense ? 5 : std::size(kinds))];
    const std::string fact = d + name;
    std::vector<int64_t> refers = numbers(fact_rows_, range);
    if (kind.is_text) {
      const auto texts = [](const std::vector<int64_t>& of) {
        std::vector<std::string> out;
        for (int64_t x : of) out.push_back(x % 7 == 0 ? std::string() : fmt::format("text {}", x % 200));
        return out;
      };
      tables.put(d, name, std::string_view(kind.dimension) == "sym", texts(keys));
      tables.put("f", fact, std::string_view(kind.fact) == "sym", texts(refers));
      repeats = true;  // some do: those of 7 and of 200 numbers
    } else {
      // Far apart, so that keys of 64 bits are hashed and compared; narrow columns cut what does not fit on both sides.
      const bool wide = std::string_view(kind.fact) == "i64" && std::string_view(kind.dimension) == "i64";
      const int64_t factor = wide && !is_dense && pick(2) ? 0x123456789AB : 1, offset = pick(2) ? -static_cast<int64_t>(range / 2) : 0;
      const auto moved = [&](std::vector<int64_t> of) {
        for (int64_t& x : of) x = (x + offset) * factor;
        return of;
      };
      const auto type = [](std::string_view name) {
        return name == "i16"    ? BasicType::i16
               : name == "i32"  ? BasicType::i32
               : name == "date" ? BasicType::date
               : name == "dt"   ? BasicType::dt
                                : BasicType::i64;
      };
      tables.put(d, name, type(kind.dimension), moved(keys));
      tables.put("f", fact, type(kind.fact), moved(refers));
    }
    load(d, name, kind.dimension);
    load("f", fact, kind.fact);
  }

  // A column of another type beside it.
  void more_values(const std::string& d, uint64_t rows) {
    static constexpr std::pair<const char*, BasicType> types[] = {
        {"i8", BasicType::i8}, {"i16", BasicType::i16}, {"i64", BasicType::i64},   {"f32", BasicType::f32},
        {"f64", BasicType::f64}, {"bool", BasicType::boolean}, {"date", BasicType::date}};
    const auto& [name, type] = types[pick(std::size(types))];
    std::vector<int64_t> values = numbers(rows, 100);
    for (int64_t& x : values)
      x = type == BasicType::boolean ? x & 1
          : type == BasicType::f32   ? std::bit_cast<int32_t>(static_cast<float>(x) / 4)
          : type == BasicType::f64   ? std::bit_cast<int64_t>(static_cast<double>(x) / 8)
          : type == BasicType::i64   ? (x - 50) * 0x123456789ABCDE
                                     : x - 50;
    tables.put(d, "z", type, values);
    load(d, "z", name);
  }

  void dimension(size_t number) {
    const std::string d = fmt::format("d{}", number);
    const uint64_t rows = this->rows({0, 1, 3, 30, 400, 1100, 3000});
    uint64_t range = std::max<uint64_t>(1, rows * (1 + pick(3)));
    uint64_t step = 1 + pick(3);
    const bool is_dense = pick(3) == 0;  // each of a range once, in no order
    if (is_dense) range = std::max<uint64_t>(1, rows), step = 1;
    std::vector<int64_t> keys;
    for (uint64_t i = 0; i < rows; ++i) keys.push_back(static_cast<int64_t>(i * step % range));
    if (is_dense || pick(2))
      std::shuffle(keys.begin(), keys.end(), random_);
    else
      std::sort(keys.begin(), keys.end());
    // Up to three columns are shifted together, more are hashed.
    const uint64_t columns = is_dense || pick(3) ? 1 : 2 + pick(5);
    const bool several = columns > 1;
    if (several) {
      std::vector<int64_t> high = keys, low = keys;
      for (int64_t& x : high) x /= 16;
      for (int64_t& x : low) x %= 16;
      key(d, "k", high, range / 16 + 1);
      key(d, "l", low, 16);
      for (uint64_t c = 2; c < columns; ++c) {
        std::vector<int64_t> bits = keys;
        for (int64_t& x : bits) x = x >> c & 1;
        key(d, fmt::format("m{}", c), bits, 2);
      }
    } else {
      key(d, "k", keys, range, is_dense);
    }
    std::vector<int64_t> sorted = keys;
    std::sort(sorted.begin(), sorted.end());
    repeats |= std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    tables.put(d, "w", BasicType::i32, numbers(rows, 50));
    load(d, "w", "i32");
    more_values(d, rows);

    // What is left of the fact table's rows so far is gathered by hand where a join before this one has selected some.
    const auto now = [&](const std::string& column) {
      std::string at = "f_" + column;
      for (const std::string& rows_of : selections_) {
        const std::string next = fresh("g");
        line(next, rows_of.starts_with('m') ? fmt::format("@compress({}, {})", rows_of, at)
                                            : fmt::format("@index({}, {})", at, rows_of));
        at = next;
      }
      return at;
    };
    std::vector<std::string> left{d + "_k"}, right{now(d + "k")};
    if (several) left.push_back(d + "_l"), right.push_back(now(d + "l"));
    for (uint64_t c = 2; c < columns; ++c)
      left.push_back(fmt::format("{}_m{}", d, c)), right.push_back(now(fmt::format("{}m{}", d, c)));
    many += columns > 3;
    std::string w = d + "_w", z = d + "_z";
    if (pick(2)) {
      const std::string mask = fresh("k");
      line(mask, fmt::format("@lt({}, {}:i32)", w, pick(60)));
      std::vector<std::string*> all{&w, &z};
      for (std::string& column : left) all.push_back(&column);
      for (std::string* column : all) {
        const std::string kept = fresh("c");
        line(kept, fmt::format("@compress({}, {})", mask, *column));
        *column = kept;
      }
    }
    const uint64_t how = several || is_dense ? 0 : pick(4);
    if (how == 2) {  // semi- or anti-join
      std::string mask = fresh("m");
      line(mask, fmt::format("@member({}, {})", right[0], left[0]));
      if (pick(2)) {
        const std::string not_there = fresh("m");
        line(not_there, fmt::format("@not({})", mask));
        mask = not_there;
      }
      for (std::string& row : rows_) {
        const std::string kept = fresh("r");
        line(kept, fmt::format("@compress({}, {})", mask, row));
        row = kept;
      }
      selections_.push_back(mask);
      return;
    }
    if (how == 3) {
      const std::string at = fresh("a");
      line(at, fmt::format("@index_of({}, {})", right[0], left[0]));
      rows_.push_back(at);
      return;
    }
    const std::string pairs = fresh("p");
    std::string l = fresh("l"), r = fresh("q");
    const auto side = [&](const std::vector<std::string>& columns, const char* stem) {
      if (columns.size() == 1) return columns[0];
      const std::string list = fresh(stem);
      line(list, fmt::format("@list({})", fmt::join(columns, ", ")));
      return list;
    };
    const std::string x = side(left, "x"), y = side(right, "y");
    line(pairs, fmt::format("@join_index({}, {}, {})", fmt::join(std::vector<std::string>(columns, "@eq"), ", "), x, y));
    line(l, fmt::format("@index({}, 0:i64)", pairs));
    line(r, fmt::format("@index({}, 1:i64)", pairs));
    const std::string values = fresh("r");
    const bool is_outer = pick(6) == 0;
    if (is_outer) {  // an outer join: rows without a pair are put behind the pairs
      const std::string o = fresh("o"), all_left = fresh("l"), all_right = fresh("q");
      line(o + "n", fmt::format("@len({})", right[0]));
      line(o + "rows", fmt::format("@range({}n)", o));
      line(o + "found", fmt::format("@member({}rows, {})", o, r));
      line(o + "alone", fmt::format("@not({}found)", o));
      line(o + "more", fmt::format("@compress({0}alone, {0}rows)", o));
      line(o + "m", fmt::format("@len({}more)", o));
      line(o + "none", fmt::format("@vector({}m, -1:i64)", o));
      line(all_left, fmt::format("@append({}, {}none)", l, o));
      line(all_right, fmt::format("@append({}, {}more)", r, o));
      l = all_left;
      r = all_right;
      line(values, fmt::format("@index_or({}, {}, -1:i32)", w, l));
      ++outer;
    } else {
      line(values, fmt::format("@index({}, {})", w, l));
    }
    for (std::string& row : rows_) {
      const std::string kept = fresh("r");
      line(kept, fmt::format("@index({}, {})", row, r));
      row = kept;
    }
    rows_.push_back(values);
    if (!is_outer && pick(2)) {
      rows_.push_back(fresh("r"));
      line(rows_.back(), fmt::format("@index({}, {})", z, l));
    }
    if (pick(3) == 0) {  // how many pairs there are
      const std::string count = fresh("n"), more = fresh("r");
      std::string counted = r;
      if (pick(2)) {  // or of some of them
        const std::string some = fresh("k");
        counted = fresh("c");
        line(some, fmt::format("@lt({}, {}:i32)", values, pick(60)));
        line(counted, fmt::format("@compress({}, {})", some, r));
      }
      line(count, fmt::format("@len({})", counted));
      line(more, fmt::format("@plus({}, {})", values, count));
      rows_.push_back(more);
    }
    if (!is_dense && pick(3) == 0) rows_.push_back(l);
    if (pick(4) == 0) rows_.push_back(r);
    selections_.push_back(r);
  }

  std::mt19937_64 random_;
  uint64_t fact_rows_ = 0, made_ = 0;
  std::string loads_, body_;
  std::vector<std::string> rows_;        // of the result, as they are called so far
  std::vector<std::string> selections_;  // of the fact table's rows, one after the other
};

struct Ran {
  std::string result;
  size_t launches = 0, library = 0;
  size_t hashed = 0;   // tables of hashed keys for kernels that look up
  bool plain = false;  // a join of the library
  size_t records = 0;  // launches that put fields into records, in all runs
  size_t masked = 0;   // joins among all rows of a table, of which a mask says which count, in the last run
};

Result<Ran> run_on(const char* target, outliner::Mode mode, const std::string& text, const reference::Tables& tables,
                   int runs, bool fuse_joins = true, bool allow_fallback = false, bool fuse_operators = true, bool forecasts = false,
                   bool filters = false, bool records = false, Encode encode = Encode::narrow) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  CompileOptions options;
  options.target = target;
  options.outline = mode;
  options.fuse_joins = fuse_joins;
  options.fuse_operators = fuse_operators;
  options.verify_passes = true;
  sim::Options checks;
  checks.check_memory = checks.check_hazards = checks.check_races = true;
  ASSIGN_OR_RETURN(const auto device, open_simulator(target, checks));
  Engine engine(*device, tables);
  EngineOptions engine_options;
  engine_options.allow_fallback = allow_fallback;
  if (filters) engine_options.filtered_rows = 1;
  if (records) engine_options.recorded_rows = 1;
  engine_options.encode = encode;
  if (forecasts) options.forecast = [&](const Compiled& c) { return engine.forecast(c, sources, engine_options, tables); };
  auto compiled = compile(sources.add("t.hir", text), sources, options, sink, timings);
  if (!compiled) return input_error("{}{}", compiled.error().message, render(sink, sources));
  ASSIGN_OR_RETURN(const auto plan, engine.plan(*compiled, sources, engine_options, timings));
  Ran ran;
  for (int run = 0; run < runs; ++run) {
    std::vector<KernelReport> kernels;
    ran.masked = plan->compiled().outlined.whole_joins.size();
    ASSIGN_OR_RETURN(const auto results, engine.run(*plan, timings, nullptr, &kernels));
    ASSIGN_OR_RETURN(std::string shown, print_result(results, Format::json));
    if (run && shown != ran.result) return input_error("run {} gives something else", run);
    ran.result = std::move(shown);
    ran.launches = ran.library = 0;
    for (const KernelReport& k : kernels) ran.records += k.name.starts_with("records") ? k.launches : 0;
    for (const KernelReport& k : kernels) (k.kind == "outlined" ? ran.launches : ran.library) += k.launches;
    ran.plain = std::any_of(kernels.begin(), kernels.end(),
                            [](const KernelReport& k) { return k.name.starts_with("join_probe"); });
    ran.hashed = 0;
    for (const KernelReport& k : kernels)
      if (!ran.plain && k.name.starts_with("join_build_hash_h_")) ran.hashed += k.launches;
  }
  return ran;
}

TEST(Probes, RandomStarsGiveWhatTheInterpreterGives) {
  constexpr const char* targets[] = {"sm_61", "sm_86", "sm_90", "sm_75", "sm_80", "sm_89"};
  constexpr outliner::Mode modes[] = {outliner::Mode::full, outliner::Mode::flow, outliner::Mode::none};
  const char* seeds = std::getenv("RNDN_RANDOM_SEEDS");
  const uint64_t number = seeds ? std::strtoull(seeds, nullptr, 10) : 24;
  const char* from = std::getenv("RNDN_RANDOM_FIRST");
  const uint64_t first = from ? std::strtoull(from, nullptr, 10) : 0;
  size_t probing = 0, repeating = 0, plain = 0, many = 0, hashed = 0, outer = 0, masked = 0, recorded = 0;
  for (uint64_t seed = first; seed < first + number; ++seed) {
    const Star star(seed);
    auto want = run_on_reference(star.text, star.tables);
    ASSERT_TRUE(want.ok()) << want.error().message << "\n" << star.text;
    for (uint64_t turn = seeds ? 0 : seed % 3; turn < (seeds ? std::size(targets) : seed % 3 + 1); ++turn) {
      const bool fuse_operators = !seeds || (seed + turn) % 2;
      const bool forecasts = (seed / 2 + turn / 2) % 3 != 0;  // kernels are made for these tables, or made again for them by the runs
      auto got = run_on(targets[turn], modes[(seed / 3 + turn) % 3], star.text, star.tables, 2, true, !fuse_operators, fuse_operators, forecasts,
                        (seed ^ turn) % 2, (seed + turn / 2) % 4);  // tables of selected rows have filters, what is read at rows lies in records
      ASSERT_TRUE(got.ok()) << "seed " << seed << " on " << targets[turn] << ": " << got.error().message << "\n" << star.text;
      ASSERT_EQ(got->result, *want) << "seed " << seed << " on " << targets[turn] << "\n" << star.text;
      plain += got->plain;
      hashed += got->hashed;
      masked += got->masked;
      recorded += got->records > 0;
    }
    probing += star.text.find("@join_index") != std::string::npos || star.text.find("@member") != std::string::npos;
    repeating += star.repeats;
    many += star.many;
    outer += star.outer;
  }
  std::printf("%zu programs that look up, %zu with keys that repeat, %zu joins by many columns, %zu looked up so, %zu outer joins, %zu among all "
              "rows by a mask, %zu runs with a join of the library, %zu with records\n",
              probing, repeating, many, hashed, outer, masked, plain, recorded);
  EXPECT_GE(probing, number / 2);
  EXPECT_GE(repeating, number / 5);
  EXPECT_GE(many, number / 10);
  EXPECT_GE(hashed, number / 20);
  EXPECT_GE(outer, number / 20);
  EXPECT_GE(masked, std::max<uint64_t>(1, number / 48));
  EXPECT_GT(plain, 0u);
  EXPECT_GT(recorded, 0u);
}

// Tables with n facts and m dimension rows, and a program that joins them and adds up.
std::string two_tables(MadeTables& tables, uint64_t n, const std::vector<int64_t>& keys, int64_t factor, const char* join) {
  std::vector<int64_t> refers, values, moved = keys;
  for (uint64_t i = 0; i < n; ++i) {
    refers.push_back(static_cast<int64_t>(i * 7919 % (keys.size() + 3)) * factor);
    values.push_back(static_cast<int64_t>(i));
  }
  for (int64_t& k : moved) k *= factor;
  tables.put("f", "k", BasicType::i64, refers);
  tables.put("f", "v", BasicType::i64, values);
  tables.put("d", "k", BasicType::i64, moved);
  tables.put("d", "w", BasicType::i64, keys);
  return fmt::format(
      "module m {{ import Builtin.*; def main() : i64, i64 {{ f:? = @load_table(`f:sym); d:? = @load_table(`d:sym);\n"
      "fk:i64 = check_cast(@column_value(f, `k:sym), i64); fv:i64 = check_cast(@column_value(f, `v:sym), i64);\n"
      "dk:i64 = check_cast(@column_value(d, `k:sym), i64); dw:i64 = check_cast(@column_value(d, `w:sym), i64);\n"
      "{} s:i64 = @sum(x); n:i64 = @len(x); return s, n; }} }}\n",
      join);
}
constexpr const char* inner_join =
    "p:? = @join_index(@eq, dk, fk); l:? = @index(p, 0:i64); r:? = @index(p, 1:i64);"
    "a:? = @index(dw, l); b:? = @index(fv, r); x:? = @plus(a, b);";
constexpr const char* wide_join =
    "dz:? = @mul(dk, 9223372036854775807:i64); dy:? = @mul(dk, 9223372036854775805:i64); y:? = @list(dy, dz);"
    "fz:? = @mul(fk, 9223372036854775807:i64); fy:? = @mul(fk, 9223372036854775805:i64); z:? = @list(fy, fz);"
    "p:? = @join_index(@eq, @eq, y, z); l:? = @index(p, 0:i64); r:? = @index(p, 1:i64);"
    "a:? = @index(dw, l); b:? = @index(fv, r); x:? = @plus(a, b);";

// The join, what is gathered and the sums are one kernel; the library fills a table, and nothing waits before the results.
TEST(Probes, AJoinByUniqueKeysIsOneKernel) {
  for (const int64_t factor : {int64_t{1}, int64_t{1} << 20, int64_t{1} << 40}) {  // direct, hashed, compared
    MadeTables tables;
    std::vector<int64_t> keys;
    for (int64_t k = 0; k < 900; ++k) keys.push_back(899 - k);
    const std::string text = two_tables(tables, 5000, keys, factor, inner_join);
    auto want = run_on_reference(text, tables);
    auto got = run_on("sm_86", outliner::Mode::full, text, tables, 4);
    ASSERT_TRUE(want.ok() && got.ok()) << got.error().message;
    EXPECT_EQ(got->result, *want);
    EXPECT_EQ(got->launches, 1u);
    EXPECT_EQ(got->library, factor == 1 ? 0u : 2u);  // the host knows of dense keys alone that none repeats, unless they ascend
    auto plain = run_on("sm_86", outliner::Mode::full, text, tables, 4, false);
    ASSERT_TRUE(plain.ok()) << plain.error().message;
    EXPECT_EQ(plain->result, *want);
    EXPECT_TRUE(plain->plain);
  }
}

// Keys that ascend: the table is made in the first run alone, and none where a key's row is known. Behind a filter all rows are in it.
TEST(Probes, TablesOfColumnsWithDifferentElementsAreKept) {
  for (const int64_t factor : {int64_t{1}, int64_t{3}, int64_t{1} << 20, int64_t{1} << 40}) {  // no table, direct, hashed, compared
    for (const bool some : {false, true}) {
      SCOPED_TRACE(fmt::format("factor {}, {}", factor, some ? "some rows" : "all rows"));
      MadeTables tables;
      std::vector<int64_t> keys;
      for (int64_t k = 0; k < 900; ++k) keys.push_back(k + 5);
      const std::string text = two_tables(
          tables, 5000, keys, factor,
          some ? "o:? = @mod(dw, 4:i64); m:? = @neq(o, 1:i64); k:? = @compress(m, dk); w:? = @compress(m, dw);"
                 "p:? = @join_index(@eq, k, fk); l:? = @index(p, 0:i64); r:? = @index(p, 1:i64);"
                 "a:? = @index(w, l); b:? = @index(fv, r); x:? = @plus(a, b);"
               : inner_join);
      auto want = run_on_reference(text, tables);
      ASSERT_TRUE(want.ok()) << want.error().message;
      for (const char* target : {"sm_61", "sm_90"}) {
        auto first = run_on(target, outliner::Mode::full, text, tables, 1), later = run_on(target, outliner::Mode::full, text, tables, 4);
        ASSERT_TRUE(first.ok()) << first.error().message;
        ASSERT_TRUE(later.ok()) << later.error().message;
        EXPECT_EQ(first->result, *want);
        EXPECT_EQ(later->result, *want);
        EXPECT_EQ(first->library, factor == 1 ? 0u : 2u);
        EXPECT_EQ(later->library, 0u);
        EXPECT_EQ(later->launches, some ? 2u : 1u);  // and the mask
        EXPECT_EQ(later->masked, some ? 1u : 0u);
      }
    }
  }
}

// Tables of n facts and of 900 rows by keys, with a column of each type, and what is read of it.
struct Typed {
  explicit Typed(std::vector<int64_t> keys, uint64_t n = 5000) {
    std::mt19937_64 random(7);
    const size_t rows = keys.size();
    std::vector<int64_t> refers, values;
    for (uint64_t i = 0; i < n; ++i) {
      refers.push_back(keys[random() % rows] + (random() % 8 ? 0 : static_cast<int64_t>(rows)));
      values.push_back(static_cast<int64_t>(i));
    }
    tables.put("f", "k", BasicType::i32, refers);
    tables.put("f", "v", BasicType::i64, values);
    tables.put("d", "k", BasicType::i32, keys);
    load("f", "k", "i32"), load("f", "v", "i64"), load("d", "k", "i32");
    const auto column = [&](const char* name, const char* type, BasicType of, auto&& value) {
      std::vector<int64_t> all;
      for (size_t i = 0; i < rows; ++i) all.push_back(value(random()));
      tables.put("d", name, of, all);
      load("d", name, type);
    };
    column("a", "i8", BasicType::i8, [](uint64_t x) { return static_cast<int8_t>(x); });
    column("b", "i16", BasicType::i16, [](uint64_t x) { return static_cast<int64_t>(x % 3000) - 20; });
    column("c", "i32", BasicType::i32, [](uint64_t x) { return static_cast<int64_t>(x % 100000); });
    column("e", "i64", BasicType::i64, [](uint64_t x) { return static_cast<int64_t>(x); });
    column("g", "f32", BasicType::f32, [](uint64_t x) { return std::bit_cast<int32_t>(static_cast<float>(x % 999) / 8); });
    column("h", "f64", BasicType::f64, [](uint64_t x) { return std::bit_cast<int64_t>(static_cast<double>(x % 9999) / 7); });
    column("o", "bool", BasicType::boolean, [](uint64_t x) { return static_cast<int64_t>(x & 1); });
    column("p", "i64", BasicType::i64, [](uint64_t x) { return static_cast<int64_t>(x % (uint64_t{1} << 40)) - 1000; });
    column("q", "date", BasicType::date, [](uint64_t x) { return static_cast<int64_t>(x % 400 + 9000); });
    column("t", "i32", BasicType::i32, [](uint64_t) { return -5; });
    column("u", "i64", BasicType::i64, [](uint64_t x) { return static_cast<int64_t>(x % 9 + 1); });
    std::vector<std::string> texts;
    for (size_t i = 0; i < rows; ++i) texts.push_back(fmt::format("text {}", random() % 20));
    tables.put("d", "s", true, texts);
    load("d", "s", "sym");
  }
  // The columns of the rows of d that f's keys find; `more`: statements behind the join, and what they give.
  std::string program(std::string_view columns, std::string_view before = "", std::string_view left = "dk", std::string_view more = "",
                      std::string_view given = "") const {
    std::string body = fmt::format("{}p:? = @join_index(@eq, {}, fk); l:? = @index(p, 0:i64); r:? = @index(p, 1:i64); rv:? = @index(fv, r);\n{}",
                                   before, left, more);
    std::string results = "rv", names = "`rv";
    for (const char c : columns) {
      body += fmt::format("r{0}:? = @index({1}{0}, l);\n", c, before.empty() ? "d" : "m");
      results += fmt::format(", r{}", c), names += fmt::format(", `r{}", c);
    }
    if (!given.empty()) results += fmt::format(", {}", given), names += fmt::format(", `{}", given);
    return fmt::format("module m {{ import Builtin.*; def main() : table {{ f:? = @load_table(`f:sym); d:? = @load_table(`d:sym);\n{}{}"
                       "all:? = @list({}); result:? = @table(({}):sym, all); return result; }} }}\n",
                       loads, body, results, names);
  }
  void load(const std::string& table, const std::string& column, const std::string& type) {
    loads += fmt::format("{0}{1}:{2} = check_cast(@column_value({0}, `{1}:sym), {2});\n", table, column, type);
  }
  MadeTables tables;
  std::string loads;
};

std::vector<int64_t> keys_in_no_order(int64_t rows, int64_t least) {
  std::vector<int64_t> keys;
  for (int64_t k = 0; k < rows; ++k) keys.push_back(least + k * 7 % rows);  // 7 does not divide them
  return keys;
}

// What is read at rows that keys in no order tell lies in records by key, if the rows serve for nothing else; then there is no table.
TEST(Probes, WhatIsReadAtRowsLiesInRecordsByKey) {
  const std::string masks = "m:? = @lt(db, 1000:i16); mk:? = @compress(m, dk); ma:? = @compress(m, da); mc:? = @compress(m, dc);\n";
  const std::vector<int64_t> mixed = keys_in_no_order(900, -300);
  std::vector<int64_t> gaps = mixed, twice = mixed, sorted = mixed;
  for (int64_t& k : gaps) k += k == 599;
  twice[5] = twice[6];
  std::sort(sorted.begin(), sorted.end());
  const struct {
    const char* what;
    std::vector<int64_t> keys;
    std::string columns, before, left, more, given;
    size_t records, library;  // of all three runs; of the last
  } cases[] = {
      {"one column", mixed, "c", "", "dk", "", "", 1, 0},
      {"columns of all widths", mixed, "abcghopqtus", "", "dk", "", "", 1, 0},
      {"64 bits", mixed, "eu", "", "dk", "", "", 1, 0},
      {"one value", mixed, "t", "", "dk", "", "", 1, 0},
      {"the key, too", mixed, "ck", "", "dk", "", "", 0, 0},
      {"nothing", mixed, "", "", "dk", "", "", 0, 0},
      {"behind a mask", mixed, "ac", masks, "mk", "", "", 0, 0},
      {"behind a column", mixed, "ac", "mk:? = @compress(do, dk); ma:? = @compress(do, da); mc:? = @compress(do, dc);\n", "mk", "", "", 0, 0},
      {"the rows themselves", mixed, "c", "", "dk", "", "l", 0, 0},
      {"another reader of a column", mixed, "c", "", "dk", "j:? = @mod(rv, 900:i64); w:? = @index(dc, j);", "w", 0, 0},
      {"gaps", gaps, "ac", "", "dk", "", "", 0, 2},
      {"a key twice", twice, "ac", "", "dk", "", "", 0, 2},
      {"ascending keys", sorted, "ac", "", "dk", "", "", 0, 0},
  };
  for (const auto& c : cases) {
    const Typed made(c.keys);
    const std::string text = made.program(c.columns, c.before, c.left, c.more, c.given);
    const auto want = run_on_reference(text, made.tables);
    ASSERT_TRUE(want.ok()) << want.error().message << text;
    for (const char* target : {"sm_61", "sm_75", "sm_90"})
      for (const bool forecasts : {false, true}) {
        SCOPED_TRACE(fmt::format("{}, {}, {}", c.what, target, forecasts));
        if (forecasts && target != std::string_view("sm_90")) continue;
        const Encode encode = target == std::string_view("sm_75") ? Encode::packed : Encode::narrow;
        const auto got = run_on(target, outliner::Mode::full, text, made.tables, 3, true, false, true, forecasts, false, true, encode);
        ASSERT_TRUE(got.ok()) << got.error().message << text;
        EXPECT_EQ(got->result, *want);
        EXPECT_EQ(got->records, c.records);
        if (c.what != std::string_view("a key twice")) {
          EXPECT_EQ(got->library, c.library);
        }
        EXPECT_EQ(got->plain, c.what == std::string_view("a key twice"));
      }
  }
}

// A key that does not count has the same value as one that does, so that all rows are no place to look for it.
TEST(Probes, RowsThatAreMaskedOutMayRepeatKeys) {
  MadeTables tables;
  std::vector<int64_t> keys;
  for (int64_t k = 0; k < 900; ++k) keys.push_back(k / 2);
  for (const char* join : {"p:? = @join_index(@eq, k, fk); l:? = @index(p, 0:i64); r:? = @index(p, 1:i64); a:? = @index(w, l); b:? = @index(fv, r); x:? = @plus(a, b);",
                           "p:? = @join_index(@eq, k, fk); r:? = @index(p, 1:i64); x:? = @index(fv, r);"}) {
    const std::string text = two_tables(
        tables, 5000, keys, 1,
        (std::string("n0:? = @len(dk); i:? = @range(n0); o:? = @mod(i, 2:i64); m:? = @eq(o, 1:i64);"
                     "k:? = @compress(m, dk); w:? = @compress(m, i);") + join).c_str());
    auto want = run_on_reference(text, tables);
    ASSERT_TRUE(want.ok()) << want.error().message;
    auto got = run_on("sm_86", outliner::Mode::full, text, tables, 3);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(got->result, *want);
    EXPECT_EQ(got->masked, 0u);
    EXPECT_FALSE(got->plain);
    EXPECT_EQ(got->library, 2u);
  }
}

// A table that is kept goes with its column, when memory is short or another column is in its place.
TEST(Probes, KeptTablesGoWithTheirColumns) {
  MadeTables tables;
  const auto keys_from = [](int64_t first) {
    std::vector<int64_t> keys;
    for (int64_t k = 0; k < 3000; ++k) keys.push_back((k + first) * 3);
    return keys;
  };
  const std::string text = two_tables(tables, 20000, keys_from(0), 1, inner_join);
  tables.put("b", "v", BasicType::i64, std::vector<int64_t>(80000, 1));
  const std::string large = "module m { import Builtin.*; def main() : i64 { b:? = @load_table(`b:sym);\n"
                            "v:i64 = check_cast(@column_value(b, `v:sym), i64); s:i64 = @sum(v); return s; } }\n";
  SourceManager sources;
  Timings timings;
  const auto compiled = [&](const std::string& of) {
    DiagnosticSink sink;
    CompileOptions options;
    options.target = "sm_86";
    return compile(sources.add("t.hir", of), sources, options, sink, timings);
  };
  const auto join = compiled(text), sum = compiled(large);
  ASSERT_TRUE(join && sum);
  sim::Options checks;
  checks.check_memory = true;
  const auto device = open_simulator("sm_86", checks);
  ASSERT_TRUE(device);
  Engine engine(**device, tables);
  engine.limit_memory(900000);
  const auto plan = engine.plan(*join, sources, {}, timings), large_plan = engine.plan(*sum, sources, {}, timings);
  ASSERT_TRUE(plan && large_plan);
  const auto run = [&](Engine::Plan& of, size_t& builds) {
    std::vector<KernelReport> kernels;
    auto results = engine.run(of, timings, nullptr, &kernels);
    EXPECT_TRUE(results) << results.error().message;
    builds = 0;
    for (const KernelReport& k : kernels) builds += k.name.starts_with("join_build") ? k.launches : 0;
    return results ? *print_result(*results, Format::json) : "";
  };
  size_t builds = 0;
  const std::string want = *run_on_reference(text, tables);
  for (int round = 0; round < 3; ++round) {
    for (int again = 0; again < 4; ++again) {  // the last is a graph
      EXPECT_EQ(run(**plan, builds), want);
      EXPECT_EQ(builds, again == 0 ? 1u : 0u) << "round " << round << ", run " << again;
    }
    (void)run(**large_plan, builds);  // takes their place
  }
  // Other keys in its place: a new column, which a new plan reads.
  tables.put("d", "k", BasicType::i64, keys_from(1000));
  const auto next = engine.plan(*join, sources, {}, timings);
  ASSERT_TRUE(next);
  for (int again = 0; again < 4; ++again) {
    EXPECT_EQ(run(**next, builds), *run_on_reference(text, tables));
    EXPECT_EQ(builds, again == 0 ? 1u : 0u);
  }
  EXPECT_NE(*run_on_reference(text, tables), want);
}

// Records go with the columns of which they are made, and when memory is short; where there is no room for them, tables of rows are asked.
TEST(Probes, RecordsGoWithTheirColumns) {
  MadeTables made;
  const std::string text = two_tables(made, 20000, keys_in_no_order(3000, 0), 1, inner_join);
  std::vector<int64_t> wide;  // records of them are larger than a table of rows
  for (int64_t k = 0; k < 3000; ++k) wide.push_back((k * 7919 - 4000000) * 0x123456789AB);
  made.put("d", "w", BasicType::i64, wide);
  made.put("b", "v", BasicType::i64, std::vector<int64_t>(80000, 1));
  const std::string large = "module m { import Builtin.*; def main() : i64 { b:? = @load_table(`b:sym);\n"
                            "v:i64 = check_cast(@column_value(b, `v:sym), i64); s:i64 = @sum(v); return s; } }\n";
  SourceManager sources;
  Timings timings;
  const auto compiled = [&](const std::string& of) {
    DiagnosticSink sink;
    CompileOptions options;
    options.target = "sm_86";
    return compile(sources.add("t.hir", of), sources, options, sink, timings);
  };
  const auto join = compiled(text), sum = compiled(large);
  ASSERT_TRUE(join && sum);
  EngineOptions options;
  options.recorded_rows = 1;
  size_t records = 0, tables = 0;
  const auto run = [&](Engine& engine, Engine::Plan& plan) -> Result<std::string> {
    std::vector<KernelReport> kernels;
    ASSIGN_OR_RETURN(const auto results, engine.run(plan, timings, nullptr, &kernels));
    records = tables = 0;
    for (const KernelReport& k : kernels) {
      records += k.name.find("records") != k.name.npos ? k.launches : 0;  // of ranges, too
      tables += k.name.find("join_build") != k.name.npos ? k.launches : 0;
    }
    return print_result(results, Format::json);
  };
  sim::Options checks;
  checks.check_memory = true;
  const std::string want = *run_on_reference(text, made);
  size_t with = 0, without = 0;  // limits with which there are records, and with which there is a table in their place
  for (uint64_t limit = 900000; limit > 300000; limit -= 3000) {
    const auto device = open_simulator("sm_86", checks);
    ASSERT_TRUE(device);
    Engine engine(**device, made);
    engine.limit_memory(limit);
    const auto plan = engine.plan(*join, sources, options, timings);
    ASSERT_TRUE(plan);
    const auto got = run(engine, **plan);
    if (!got) break;
    ASSERT_EQ(*got, want) << limit;
    ASSERT_LE(records, tables ? 0u : 1u) << limit;
    with += records, without += tables > 0;
  }
  EXPECT_GT(with, 0u);
  EXPECT_GT(without, 0u);

  const auto device = open_simulator("sm_86", checks);
  ASSERT_TRUE(device);
  Engine engine(**device, made);
  engine.limit_memory(900000);
  const auto plan = engine.plan(*join, sources, options, timings), large_plan = engine.plan(*sum, sources, options, timings);
  ASSERT_TRUE(plan && large_plan);
  for (int round = 0; round < 2; ++round) {
    for (int again = 0; again < 4; ++again) {  // the last is a graph
      EXPECT_EQ(*run(engine, **plan), want);
      EXPECT_EQ(records, again == 0 ? 1u : 0u) << "round " << round << ", run " << again;
      EXPECT_EQ(tables, 0u);
    }
    ASSERT_TRUE(run(engine, **large_plan).ok());  // takes their place
  }
  std::vector<int64_t> others;
  for (int64_t k = 0; k < 3000; ++k) others.push_back(k * k % 77777);
  made.put("d", "w", BasicType::i64, others);
  const auto next = engine.plan(*join, sources, options, timings);
  ASSERT_TRUE(next);
  for (int again = 0; again < 4; ++again) {
    EXPECT_EQ(*run(engine, **next), *run_on_reference(text, made));
    EXPECT_EQ(records, again == 0 ? 1u : 0u);
  }
  EXPECT_NE(*run_on_reference(text, made), want);

  // Ranges of the table that asks share them, as long as they have as many rows.
  EngineOptions by_ranges = options;
  by_ranges.range_rows = 5000;
  Engine another(**device, made);
  const auto in_parts = another.plan(*join, sources, by_ranges, timings);
  ASSERT_TRUE(in_parts);
  for (int again = 0; again < 4; ++again) {
    EXPECT_EQ(*run(another, **in_parts), *run_on_reference(text, made));
    EXPECT_EQ(records, again == 0 ? 1u : 0u);
    EXPECT_EQ(tables, 0u);
  }
}

// What the kernels compute of the contributions of a key's columns.
uint64_t mixed(const std::vector<uint64_t>& contributions) {
  ptx::Module m;
  ptx::Builder b(m, "k");
  auto out = b.parameter<ptx::U64>("out");
  ptx::Reg<ptx::U64> key;
  for (uint64_t c : contributions) key = lookup::mix(b, key, b.constant<ptx::U64>(c));
  b.st<ptx::U64>(ptx::Space::global, ptx::Address(b.ld_param(out)), key);
  b.ret();
  b.finish();
  ptx::Memory memory;
  const uint64_t at = memory.allocate(8);
  const auto ran = ptx::interpret(m, "k", {.parameters = std::as_bytes(std::span(&at, 1))}, memory);
  EXPECT_TRUE(ran.ok()) << ran.error().message;
  uint64_t value = 0;
  EXPECT_TRUE(memory.read(at, std::as_writable_bytes(std::span(&value, 1))));
  return value;
}

// Of four columns of 64 bits, whose table is of hashes: it is one kernel as well, and keys of one hash are told apart by their columns.
TEST(Probes, KeysOfOneHashAreToldApart) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  // The last element of a key of one hash with {0, 0, 0, 77}. Contributions are distances from the column's least, which is 0, but of the last.
  const auto alike = [&](std::vector<uint64_t> of) {
    std::vector<uint64_t> other{0, 0, 0};
    constexpr uint64_t moved = uint64_t{1} << 63;
    const uint64_t last = 77 ^ mixed(other) ^ mixed(of);
    other.push_back(77 + moved), of.push_back(last + moved);
    EXPECT_EQ(mixed(other), mixed(of));
    return static_cast<int64_t>(last);
  };
  MadeTables tables;
  const std::vector<std::vector<int64_t>> left = {{0, 0, 0, least}, {1, 1, 1, most}, {0, 0, 0, 77}, {1, 0, 0, alike({1, 0, 0})}};
  const std::vector<std::vector<int64_t>> right = {{1, 0, 0, alike({1, 0, 0})}, {0, 1, 0, alike({0, 1, 0})}, {0, 0, 0, 77},
                                                   {0, 0, 1, alike({0, 0, 1})}, {1, 1, 1, most},           {1, 1, 1, 77}};
  std::string loads = "d:? = @load_table(`d:sym); f:? = @load_table(`f:sym);\n";
  for (size_t c = 0; c < 4; ++c)
    for (const auto& [table, rows] : {std::pair("d", &left), std::pair("f", &right)}) {
      std::vector<int64_t> column;
      for (const std::vector<int64_t>& row : *rows) column.push_back(row[c]);
      tables.put(table, fmt::format("c{}", c), BasicType::i64, column);
      loads += fmt::format("{0}{1}:i64 = check_cast(@column_value({0}, `c{1}:sym), i64);\n", table, c);
    }
  const std::string text = "module m { import Builtin.*; def main() : i64, i64 {\n" + loads +
                           "x:? = @list(d0, d1, d2, d3); y:? = @list(f0, f1, f2, f3); p:? = @join_index(@eq, x, y);\n"
                           "l:? = @index(p, 0:i64); r:? = @index(p, 1:i64); return l, r; } }\n";
  auto want = run_on_reference(text, tables);
  ASSERT_TRUE(want.ok()) << want.error().message;
  for (const char* target : {"sm_61", "sm_90"}) {
    auto got = run_on(target, outliner::Mode::full, text, tables, 2);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(got->result, *want);
    EXPECT_EQ(got->launches, 1u);
    EXPECT_EQ(got->library, 2u);
  }
}

// Columns that a look-up behind a gathered condition reads are loaded before it, also where only that condition needs them.
TEST(Probes, WhatLookUpsBehindAConditionReadIsLoadedBefore) {
  std::vector<int64_t> keys;
  for (int64_t k = 0; k < 900; ++k) keys.push_back(899 - k);
  for (const char* join :
       {"p:? = @mod(fv, 900:i64); t:? = @index(dw, p); m:? = @gt(t, 450:i64); v:? = @plus(fk, 1:i64); r:? = @index_of(v, dk); x:? = @compress(m, r);",
        "p:? = @mod(fv, 900:i64); t:? = @index(dw, p); m:? = @gt(t, 450:i64); u:? = @index(dk, p); h:? = @lt(u, 700:i64); b:? = @and(m, h);"
        "r:? = @index_of(fk, dk); q:? = @index_of(fk, dw); y:? = @compress(b, r); z:? = @compress(m, q); c:? = @sum(y); e:? = @plus(z, c);"
        "x:? = @plus(e, 1:i64);"}) {
    MadeTables tables;
    const std::string text = two_tables(tables, 5000, keys, 1, join);
    auto want = run_on_reference(text, tables);
    ASSERT_TRUE(want.ok()) << want.error().message;
    for (const char* target : {"sm_61", "sm_90"}) {
      auto got = run_on(target, outliner::Mode::full, text, tables, 2);
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_EQ(got->result, *want) << join;
    }
  }
}

// A mask of its own is read for all rows, also where another selection reads it for some.
TEST(Probes, MasksThatAreSelectedThemselvesAreReadForAllRows) {
  MadeTables tables;
  std::vector<int64_t> bit, flag, value;
  for (int64_t i = 0; i < 3000; ++i) {
    bit.push_back(i % 3 == 0);
    flag.push_back(i * 7919 % 11 < 4);
    value.push_back(i);
  }
  tables.put("f", "b", BasicType::boolean, bit);
  tables.put("f", "c", BasicType::boolean, flag);
  tables.put("f", "v", BasicType::i64, value);
  const std::string text =
      "module m { import Builtin.*; def main() : i64, i64 { f:? = @load_table(`f:sym);\n"
      "b:bool = check_cast(@column_value(f, `b:sym), bool); c:bool = check_cast(@column_value(f, `c:sym), bool);\n"
      "v:i64 = check_cast(@column_value(f, `v:sym), i64); g:? = @gt(v, 100:i64); a:? = @and(g, c);\n"
      "b2:? = @compress(a, b); v2:? = @compress(a, v); x:? = @compress(b, v); y:? = @compress(b2, v2);\n"
      "o:? = @order(x, 0:bool); p:? = @order(y, 0:bool); i:? = @index(x, o); j:? = @index(y, p);\n"
      "s:i64 = @sum(i); t:i64 = @sum(j); return s, t; } }\n";
  auto want = run_on_reference(text, tables);
  ASSERT_TRUE(want.ok()) << want.error().message;
  for (const char* target : {"sm_61", "sm_90"}) {
    auto got = run_on(target, outliner::Mode::full, text, tables, 2);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(got->result, *want);
  }
}

// A kernel has 4352 bytes of parameters: more look-ups than fit become several kernels.
TEST(Probes, LookUpsThatDoNotFitOneKernelAreSeveral) {
  constexpr size_t joins = 20, columns = 6;
  MadeTables tables;
  std::string lines, left[joins], right;
  const auto column = [&](const std::string& table, const std::string& name, const std::vector<int64_t>& of) {
    tables.put(table, name, BasicType::i64, of);
    lines += fmt::format("{0}{1}:i64 = check_cast(@column_value({0}, `{1}:sym), i64);\n", table, name);
  };
  lines += "f:? = @load_table(`f:sym);\n";
  for (size_t c = 0; c < columns; ++c) {
    std::vector<int64_t> of;
    for (int64_t i = 0; i < 300; ++i) of.push_back(c ? i % 30 >> c & 1 : i % 30);
    column("f", fmt::format("c{}", c), of);
    right += fmt::format("{}fc{}", c ? ", " : "", c);
  }
  lines += fmt::format("y:? = @list({});\n", right);
  std::string total = "0:i64";
  for (size_t d = 0; d < joins; ++d) {
    const std::string table = fmt::format("d{}_", d);
    lines += fmt::format("{0}:? = @load_table(`{0}:sym);\n", table);
    for (size_t c = 0; c < columns; ++c) {
      std::vector<int64_t> of;
      for (int64_t i = 0; i < static_cast<int64_t>(d) + 5; ++i) of.push_back(c ? i >> c & 1 : i);
      column(table, fmt::format("c{}", c), of);
      left[d] += fmt::format("{}{}c{}", c ? ", " : "", table, c);
    }
    lines += fmt::format("x{0}:? = @list({1}); p{0}:? = @join_index(@eq, x{0}, y); l{0}:? = @index(p{0}, 0:i64);\n"
                         "w{0}:? = @index({2}c0, l{0}); s{0}:? = @sum(w{0}); t{0}:i64 = @plus({3}, s{0});\n",
                         d, left[d], table, total);
    total = fmt::format("t{}", d);
  }
  const std::string text = "module m { import Builtin.*; def main() : i64 {\n" + lines + "return " + total + "; } }\n";
  auto want = run_on_reference(text, tables);
  ASSERT_TRUE(want.ok()) << want.error().message;
  for (const char* target : {"sm_61", "sm_90"}) {
    auto got = run_on(target, outliner::Mode::full, text, tables, 2);
    ASSERT_TRUE(got.ok()) << got.error().message.substr(0, 300);
    EXPECT_EQ(got->result, *want);
    EXPECT_FALSE(got->plain);
    EXPECT_EQ(got->hashed, joins);
    EXPECT_LE(got->launches, 5u);
  }
}

// Rows that were selected before the join, and of its pairs again: sums and numbers of rows are of the kernel that looks up.
TEST(Probes, SelectionsOfAJoinAndTheirNumbersAreOneKernel) {
  MadeTables tables;
  std::vector<int64_t> keys;
  for (int64_t k = 0; k < 900; ++k) keys.push_back(899 - k);
  const std::string text = two_tables(
      tables, 5000, keys, 1,
      "m:? = @gt(fv, 1000:i64); k:? = @compress(m, fk); v:? = @compress(m, fv); o:? = @mod(v, 3:i64); t:? = @eq(o, 1:i64);"
      "p:? = @join_index(@eq, dk, k); r:? = @index(p, 1:i64); b:? = @index(v, r); c:? = @index(t, r);"
      "q:? = @compress(c, r); d:? = @index(v, q); n1:? = @len(r); n2:? = @len(q); s1:? = @sum(b); s2:? = @sum(d);"
      "u:? = @mul(n1, 1000:i64); w:? = @plus(u, n2); z:? = @mul(s1, 7:i64); y:? = @plus(z, s2); x:? = @minus(y, w);");
  auto want = run_on_reference(text, tables);
  ASSERT_TRUE(want.ok()) << want.error().message;
  for (const outliner::Mode mode : {outliner::Mode::full, outliner::Mode::flow, outliner::Mode::none}) {
    auto got = run_on("sm_86", mode, text, tables, 2);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(got->result, *want);
    EXPECT_EQ(got->library, 0u);
    if (mode == outliner::Mode::full) EXPECT_EQ(got->launches, 2u);  // and what follows from the sums
  }
}

// Where a kernel runs on the interpreter, no table is built that would notice keys that repeat.
TEST(Probes, KeysThatRepeatAreNoticedWithoutATable) {
  MadeTables tables;
  tables.put("d", "k", BasicType::i64, {1, 2, 1});
  tables.put("d", "c", BasicType::i64, {5, 6, 7});
  tables.put("f", "k", BasicType::i64, {1, 2, 3, 1});
  tables.put("f", "w", BasicType::i64, {10, 20, 30, 40});
  tables.put("o", "z", BasicType::i64, {100, 100});
  const std::string text =
      "module m { import Builtin.*; def main() : i64, i64 {\n"
      "f:? = @load_table(`f:sym); d:? = @load_table(`d:sym); o:? = @load_table(`o:sym);\n"
      "fk:i64 = check_cast(@column_value(f, `k:sym), i64); fw:i64 = check_cast(@column_value(f, `w:sym), i64);\n"
      "dk:i64 = check_cast(@column_value(d, `k:sym), i64); dc:i64 = check_cast(@column_value(d, `c:sym), i64);\n"
      "oz:i64 = check_cast(@column_value(o, `z:sym), i64); u:? = @unique(oz); z:? = @index(oz, u);\n"
      "p:? = @join_index(@eq, dk, fk); l:? = @index(p, 0:i64); r:? = @index(p, 1:i64);\n"
      "w:? = @plus(fw, z); v:? = @index(w, r); c:? = @index(dc, l); return v, c; } }\n";
  auto want = run_on_reference(text, tables);
  ASSERT_TRUE(want.ok()) << want.error().message;
  auto got = run_on("sm_86", outliner::Mode::full, text, tables, 3, true, true);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(got->result, *want);
}

// From the first run on, and without a word about it.
TEST(Probes, KeysThatRepeatAreJoinedByTheLibrary) {
  MadeTables tables;
  std::vector<int64_t> keys;
  for (int64_t k = 0; k < 900; ++k) keys.push_back(k == 700 ? 5 : k);
  const std::string text = two_tables(tables, 5000, keys, 1, inner_join);
  auto want = run_on_reference(text, tables);
  auto got = run_on("sm_90", outliner::Mode::full, text, tables, 4);
  ASSERT_TRUE(want.ok() && got.ok()) << got.error().message;
  EXPECT_EQ(got->result, *want);
  EXPECT_TRUE(got->plain);
}

// Of two columns whose bounds nobody knows.
TEST(Probes, KeysOfMoreThan64BitsAreJoinedByTheLibrary) {
  MadeTables tables;
  std::vector<int64_t> keys;
  for (int64_t k = 0; k < 300; ++k) keys.push_back(k);
  const std::string text = two_tables(tables, 2000, keys, 1, wide_join);
  auto want = run_on_reference(text, tables);
  auto got = run_on("sm_86", outliner::Mode::full, text, tables, 2);
  ASSERT_TRUE(want.ok() && got.ok()) << got.error().message;
  EXPECT_EQ(got->result, *want);
  EXPECT_TRUE(got->plain);
}

}  // namespace
}  // namespace rndn::runtime::probes_test
