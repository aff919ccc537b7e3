// `rndn bench kernel-weaver`: the experiments of Wu, Diamos, Cadambi, Yalamanchili: "Kernel Weaver:
// Automatically Fusing Database Primitives for Efficient GPU Computation" (MICRO 2012), fused
// beside unfused.
//
// Fused is what the product does, with what it keeps between runs: of b and c what is read of the
// joined tables in records by key (runtime/run/lookups.cpp), made in the run that does not count;
// unfused is --outline none --fuse-operators off: a kernel per statement, joins by the operator,
// which makes its table in each run. The patterns are its five, over tuples of 16 bytes: t (n rows
// of 4-byte columns), which refers to u (n/4 rows) and this to w (n/16 rows), by keys in no order.
// Each is measured with its result stored, as the paper does, and with its result summed, as
// queries have it. The goal stands at the latter: what must be stored bounds the ratio of the
// others by the bytes that both sides move (figure 18).
//
// Figures: 4 and 20 (selections by number and selectivity), 16 (patterns by size), 17 (device
// memory beside the columns), 18 (bytes that kernels must move; on the simulator, those that they
// do), 19 (-O3 over -O0), table 3 (registers, warps). Left out: 21, inputs that fit only fused;
// TPC-H, which `rndn bench tpch --tables outline` has; its Datalog frontend.
#include <CLI/CLI.hpp>
#include <set>

#include "assembler/isa/isa.h"
#include "tools/papers/harness.h"
#include "tools/papers/made_tables.h"
#include "tools/papers/papers.h"

namespace rndn::tools::papers {
namespace {

using hir::BasicType;

constexpr uint64_t tuple_bytes = 16, most = 1000;  // most: attributes that are selected by lie below it
enum Seed : uint64_t {
  t_key,
  t_a,
  t_b,
  t_c,
  t_value,
  t_price,
  t_off,
  t_tax,
  u_key,
  u_next,
  u_s,
  u_value,
  w_key,
  w_value
};

// The tables and their elements, for programs and for the host's answers.
struct Tables {
  unsigned bits;  // of n
  int64_t limit;  // an attribute below it is selected

  uint64_t n() const { return uint64_t{1} << bits; }
  uint64_t u_rows() const { return n() / 4; }
  uint64_t w_rows() const { return n() / 16; }
  int64_t number(Seed seed, uint64_t i, uint64_t below) const {
    return static_cast<int64_t>(random_at(seed, i) % below);
  }
  int64_t attribute(Seed seed, uint64_t i) const { return number(seed, i, most); }
  bool selects(Seed seed, uint64_t i) const { return attribute(seed, i) < limit; }
  // Every key of u and of w is there once. Half of the keys that t has are in u, all that u has are
  // in w.
  int64_t key_in_u(uint64_t i) const { return number(t_key, i, 2 * u_rows()); }
  int64_t key_of_u(uint64_t i) const { return static_cast<int64_t>(shuffled(u_key, i, bits - 2)); }
  int64_t key_in_w(uint64_t i) const { return number(u_next, i, w_rows()); }
  int64_t key_of_w(uint64_t i) const { return static_cast<int64_t>(shuffled(w_key, i, bits - 4)); }
  double hundredths(Seed seed, uint64_t i, uint64_t below) const {
    return static_cast<double>(number(seed, i, below)) / 100;
  }

  std::shared_ptr<data::Source> source() const {
    auto attribute = [*this](Seed seed) { return [=, *this](uint64_t i) { return this->attribute(seed, i); }; };
    auto number = [*this](Seed seed, uint64_t below) {
      return [=, *this](uint64_t i) { return this->number(seed, i, below); };
    };
    return source_of({{"t",
                       n(),
                       {{"k", BasicType::i32, [*this](uint64_t i) { return key_in_u(i); }},
                        {"a", BasicType::i32, attribute(t_a)},
                        {"b", BasicType::i32, attribute(t_b)},
                        {"c", BasicType::i32, attribute(t_c)},
                        {"v", BasicType::i32, attribute(t_value)},
                        {"price", BasicType::f64, number(t_price, 10'000'000)},
                        {"off", BasicType::f64, number(t_off, 11)},
                        {"tax", BasicType::f64, number(t_tax, 9)}}},
                      {"u",
                       u_rows(),
                       {{"uk", BasicType::i32, [*this](uint64_t i) { return key_of_u(i); }},
                        {"next", BasicType::i32, [*this](uint64_t i) { return key_in_w(i); }},
                        {"s", BasicType::i32, attribute(u_s)},
                        {"x", BasicType::i32, attribute(u_value)}}},
                      {"w",
                       w_rows(),
                       {{"wk", BasicType::i32, [*this](uint64_t i) { return key_of_w(i); }},
                        {"y", BasicType::i32, attribute(w_value)}}}});
  }

  // The rows of u and w by their keys.
  std::vector<uint32_t> rows_by_key(uint64_t rows, int64_t (Tables::*key)(uint64_t) const) const {
    std::vector<uint32_t> at(rows);
    for (uint64_t i = 0; i < rows; ++i) at[static_cast<uint64_t>((this->*key)(i))] = static_cast<uint32_t>(i);
    return at;
  }
  std::vector<uint32_t> u_by_key() const { return rows_by_key(u_rows(), &Tables::key_of_u); }
  std::vector<uint32_t> w_by_key() const { return rows_by_key(w_rows(), &Tables::key_of_w); }
};

using Columns = std::vector<std::vector<int64_t>>;
std::vector<Answer> answers(Columns columns) {
  std::vector<Answer> out;
  for (std::vector<int64_t>& c : columns) out.push_back(Answer::of(std::move(c)));
  return out;
}

// The values of t's rows that `selected` gives.
template <class F>
std::vector<Answer> selected_rows(const Tables& t, F selected) {
  Columns out(2);
  for (uint64_t i = 0; i < t.n(); ++i)
    if (selected(i)) out[0].push_back(t.key_in_u(i)), out[1].push_back(t.attribute(t_value, i));
  return answers(std::move(out));
}

struct Pattern {
  const char* name;
  const char* columns;  // as `columns_text` reads them
  const char* body;     // $S: the limit of selections
  const char* results;
  const char* types;
  std::vector<Answer> (*expected)(const Tables&);
};

constexpr Pattern selections_of_two = {"a: selections",
                                       "t.k t.v t.a t.b",
                                       R"(
        p:?  = @lt(a, $S:i32);
        k1:? = @compress(p, k);
        v1:? = @compress(p, v);
        b1:? = @compress(p, b);
        q:?  = @lt(b1, $S:i32);
        k2:? = @compress(q, k1);
        v2:? = @compress(q, v1);)",
                                       "k2 v2",
                                       "i32 i32",
                                       [](const Tables& t) {
                                         return selected_rows(
                                             t, [&](uint64_t i) { return t.selects(t_a, i) && t.selects(t_b, i); });
                                       }};
constexpr Pattern selections_of_three = {
    "three selections",
    "t.k t.v t.a t.b t.c",
    R"(
        p:?  = @lt(a, $S:i32);
        k1:? = @compress(p, k);
        v1:? = @compress(p, v);
        b1:? = @compress(p, b);
        c1:? = @compress(p, c);
        q:?  = @lt(b1, $S:i32);
        k2:? = @compress(q, k1);
        v2:? = @compress(q, v1);
        c2:? = @compress(q, c1);
        r:?  = @lt(c2, $S:i32);
        k3:? = @compress(r, k2);
        v3:? = @compress(r, v2);)",
    "k3 v3",
    "i32 i32",
    [](const Tables& t) {
      return selected_rows(t, [&](uint64_t i) { return t.selects(t_a, i) && t.selects(t_b, i) && t.selects(t_c, i); });
    }};
constexpr Pattern joins = {"b: joins",
                           "t.k t.v u.uk u.next u.x w.wk w.y",
                           R"(
        first:?  = @join_index(@eq, uk, k);
        of_u:?   = @index(first, 0:i64);
        of_t:?   = @index(first, 1:i64);
        next1:?  = @index(next, of_u);
        x1:?     = @index(x, of_u);
        v1:?     = @index(v, of_t);
        second:? = @join_index(@eq, wk, next1);
        of_w:?   = @index(second, 0:i64);
        of_1:?   = @index(second, 1:i64);
        y2:?     = @index(y, of_w);
        x2:?     = @index(x1, of_1);
        v2:?     = @index(v1, of_1);)",
                           "v2 x2 y2",
                           "i32 i32 i32",
                           [](const Tables& t) {
                             const std::vector<uint32_t> u = t.u_by_key(), w = t.w_by_key();
                             Columns out(3);
                             for (uint64_t i = 0; i < t.n(); ++i) {
                               const auto key = static_cast<uint64_t>(t.key_in_u(i));
                               if (key >= u.size()) continue;
                               out[0].push_back(t.attribute(t_value, i));
                               out[1].push_back(t.attribute(u_value, u[key]));
                               out[2].push_back(t.attribute(w_value, w[static_cast<uint64_t>(t.key_in_w(u[key]))]));
                             }
                             return answers(std::move(out));
                           }};
constexpr Pattern join_of_selections = {"c: join of selections",
                                        "t.k t.v t.a u.uk u.s u.x",
                                        R"(
        p:?     = @lt(a, $S:i32);
        k1:?    = @compress(p, k);
        v1:?    = @compress(p, v);
        q:?     = @lt(s, $S:i32);
        uk1:?   = @compress(q, uk);
        x1:?    = @compress(q, x);
        pairs:? = @join_index(@eq, uk1, k1);
        left:?  = @index(pairs, 0:i64);
        right:? = @index(pairs, 1:i64);
        x2:?    = @index(x1, left);
        v2:?    = @index(v1, right);)",
                                        "v2 x2",
                                        "i32 i32",
                                        [](const Tables& t) {
                                          const std::vector<uint32_t> u = t.u_by_key();
                                          Columns out(2);
                                          for (uint64_t i = 0; i < t.n(); ++i) {
                                            const auto key = static_cast<uint64_t>(t.key_in_u(i));
                                            if (!t.selects(t_a, i) || key >= u.size() || !t.selects(u_s, u[key]))
                                              continue;
                                            out[0].push_back(t.attribute(t_value, i));
                                            out[1].push_back(t.attribute(u_value, u[key]));
                                          }
                                          return answers(std::move(out));
                                        }};
constexpr Pattern siblings = {"d: selections of one input",
                              "t.k t.v t.a",
                              R"(
        p:?  = @lt(a, $S:i32);
        k1:? = @compress(p, k);
        v1:? = @compress(p, v);
        q:?  = @geq(a, $S:i32);
        k2:? = @compress(q, k);
        v2:? = @compress(q, v);)",
                              "k1 v1 k2 v2",
                              "i32 i32 i32 i32",
                              [](const Tables& t) {
                                std::vector<Answer> out =
                                    selected_rows(t, [&](uint64_t i) { return t.selects(t_a, i); });
                                for (Answer& a : selected_rows(t, [&](uint64_t i) { return !t.selects(t_a, i); }))
                                  out.push_back(std::move(a));
                                return out;
                              }};
constexpr Pattern arithmetic = {"e: arithmetic",
                                "t.price t.off t.tax",
                                R"(
        kept:?   = @minus(1:f64, off);
        paid:?   = @mul(price, kept);
        taxed:?  = @plus(1:f64, tax);
        charge:? = @mul(paid, taxed);)",
                                "charge",
                                "f64",
                                [](const Tables& t) {
                                  std::vector<double> charge(t.n());
                                  in_ranges(t.n(), [&](uint64_t first, uint64_t last) {
                                    for (uint64_t i = first; i < last; ++i)
                                      charge[i] = t.hundredths(t_price, i, 10'000'000) *
                                                  (1 - t.hundredths(t_off, i, 11)) * (1 + t.hundredths(t_tax, i, 9));
                                  });
                                  return std::vector{Answer::of(std::move(charge))};
                                }};
constexpr const Pattern* patterns[] = {&selections_of_two, &joins, &join_of_selections, &siblings, &arithmetic};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// A program over the columns that it names as table.column.
NamedSource program_of(const Pattern& pattern, const Tables& tables, bool summed) {
  std::string loads, body = pattern.body;
  std::set<std::string> opened;
  for (const std::string& word : words_of(pattern.columns)) {
    const std::string table = word.substr(0, 1), column = word.substr(2);
    const char* const type = column == "price" || column == "off" || column == "tax" ? "f64" : "i32";
    if (opened.insert(table).second) loads += fmt::format("        {0}_table:table = @load_table(`{0}:sym);\n", table);
    loads +=
        fmt::format("        {0}:{1} = check_cast(@column_value({2}_table, `{0}:sym), {1});\n", column, type, table);
  }
  for (size_t at; (at = body.find("$S")) != body.npos;) body.replace(at, 2, std::to_string(tables.limit));
  std::vector<std::string> results = words_of(pattern.results), types = words_of(pattern.types);
  if (summed)
    for (size_t r = 0; r < results.size(); ++r) {
      body += fmt::format("\n        sum_{0}:{1} = @sum({0});", results[r], types[r]);
      results[r] = "sum_" + results[r];
    }
  return {
      pattern.name, std::string(pattern.name) + ".hir",
      fmt::format(
          "module pattern {{\n    import Builtin.*;\n    def main() : {} {{\n{}{}\n        return {};\n    }}\n}}\n",
          fmt::join(types, ", "), loads, body, fmt::join(results, ", "))};
}

std::vector<Answer> sums_of(const std::vector<Answer>& columns) {
  std::vector<Answer> sums;
  for (const Answer& column : columns) {
    if (column.is_float) {
      long double sum = 0;
      for (const double x : column.floats) sum += x;
      sums.push_back(Answer::of(std::vector{static_cast<double>(sum)}));
    } else {
      uint32_t sum = 0;  // that of i32 is one, and wraps
      for (const int64_t x : column.integers) sum += static_cast<uint32_t>(x);
      sums.push_back(Answer::of(std::vector{int64_t{static_cast<int32_t>(sum)}}));
    }
  }
  return sums;
}

constexpr std::optional<double> goal = 2.89;  // of every pattern: the paper's mean

class PatternExperiments {
 public:
  PatternExperiments(Harness& harness, Figures& figures, Progress& progress)
      : harness_(harness),
        figures_(figures),
        progress_(progress),
        wants_(harness.settings()),
        target_(isa::find_target(harness.info().target)) {}

  // All of one size; `all`: with what one size is enough for.
  Result<void> at_size(unsigned bits, bool all) {
    const Tables tables{.bits = bits, .limit = most / 2};
    const std::unique_ptr<Session> session = harness_.session(tables.source());
    if (all) RETURN_IF_ERROR(selections(*session, bits));
    const bool is_compared =
        wants_.wants("16") || (all && (wants_.wants("17") || wants_.wants("18") || wants_.wants("table3")));
    const bool is_leveled = all && wants_.wants("19");
    if (!is_compared && !is_leveled) return {};
    for (const Pattern* pattern : patterns) {
      const std::vector<Answer> stored = pattern->expected(tables);
      for (const bool summed : {false, true}) {
        const std::string name = std::string(pattern->name) + (summed ? ", summed" : "");
        const NamedSource program = program_of(*pattern, tables, summed);
        const std::vector<Answer> expected = summed ? sums_of(stored) : stored;
        progress_.advance(1);
        if (is_compared) RETURN_IF_ERROR(sides(*session, tables, program, name, expected, summed, all));
        if (is_leveled) RETURN_IF_ERROR(levels(*session, tables, program, name, expected));
      }
    }
    return {};
  }

 private:
  // Unfused beside fused.
  Result<void> sides(Session& session, const Tables& tables, const NamedSource& program, const std::string& name,
                     const std::vector<Answer>& expected, bool summed, bool all) {
    ASSIGN_OR_RETURN(const Compared done, compare(session, program, expected));
    if (wants_.wants("16"))
      add("Fig 16", name, tables, done, &Measured::ms, "2.89 (mean)", summed ? goal : std::nullopt);
    if (!all) return {};
    if (wants_.wants("17")) add("Fig 17", name, tables, done, &Measured::memory_bytes, "MB", 1e-6);
    if (wants_.wants("18")) {
      add("Fig 18", name + ", launches", tables, done, &Measured::launches, "launches", 1);
      add("Fig 18", name, tables, done, &Measured::floor_bytes, "MB", 1e-6, "2.44 (cycles)");
      if (!harness_.has_clock()) add("Fig 18", name + ", sectors", tables, done, &Measured::sectors_bytes, "MB", 1e-6);
    }
    if (wants_.wants("table3")) {
      add("Table 3", name, tables, done, &Measured::registers, "registers", 1, "11 to 62 registers");
      add("Table 3", name + ", occupancy", tables, done, &Measured::warps, "%", 100.0 / target_->warps_per_sm,
          "17 to 100 %");
    }
    return {};
  }

  // Selections one after the other, by number and selectivity.
  Result<void> selections(Session& session, unsigned bits) {
    for (const int64_t percent : {10, 50, 90}) {
      const Tables tables{.bits = bits, .limit = static_cast<int64_t>(most) * percent / 100};
      for (const Pattern* pattern : {&selections_of_two, &selections_of_three}) {
        const bool two = pattern == &selections_of_two;
        const bool is_4 = percent == 50 && wants_.wants("4"), is_20 = two && wants_.wants("20");
        if (!is_4 && !is_20) continue;
        progress_.advance(1);
        ASSIGN_OR_RETURN(const Compared done,
                         compare(session, program_of(*pattern, tables, false), pattern->expected(tables)));
        if (is_4)
          add("Fig 4", two ? "two selections" : pattern->name, tables, done, &Measured::ms, two ? "1.80" : "2.35");
        if (is_20)
          add("Fig 20", fmt::format("two selections of {} %", percent), tables, done, &Measured::ms,
              percent == 10   ? "1.28"
              : percent == 90 ? "2.01"
                              : "-");
      }
    }
    return {};
  }

  static Harness::Check check_of(const std::vector<Answer>& expected) {
    return [&expected](const Session::Outcome& outcome) -> Result<std::string> {
      return difference(outcome.results, expected);
    };
  }
  Result<Compared> compare(Session& session, const NamedSource& program, const std::vector<Answer>& expected) {
    const Flags& flags = wants_.flags;
    const Side sides[] = {{program, unfused(flags), "unfused"}, {program, fused(flags), "fused"}};
    return harness_.compare(session, sides, check_of(expected));
  }
  // Fig 19: what the assembler's optimizations gain on either side.
  Result<void> levels(Session& session, const Tables& tables, const NamedSource& program, const std::string& name,
                      const std::vector<Answer>& expected) {
    for (const bool is_fused : {false, true}) {
      const Flags full = is_fused ? fused(wants_.flags) : unfused(wants_.flags);
      Flags none = full;
      none.level = 0;
      const Side sides[] = {{program, none, "-O0"}, {program, full, "-O3"}};
      ASSIGN_OR_RETURN(const Compared done, harness_.compare(session, sides, check_of(expected)));
      add("Fig 19", name + (is_fused ? ", fused, -O0 and -O3" : ", unfused, -O0 and -O3"), tables, done, &Measured::ms,
          "-");
    }
    return {};
  }

  void add(const char* figure, std::string what, const Tables& tables, const Compared& done, Spread Measured::*of,
           std::string paper, std::optional<double> wanted = {}) {
    figures_.add({.figure = figure,
                  .what = std::move(what),
                  .rows = tables.n(),
                  .base = done.sides[0].*of,
                  .ours = done.sides[1].*of,
                  .unit = "ms",
                  .paper = std::move(paper),
                  .goal = wanted,
                  .wrong = done.wrong,
                  .failed = done.failed});
  }
  void add(const char* figure, std::string what, const Tables& tables, const Compared& done, uint64_t Measured::*of,
           std::string unit, double scale, std::string paper = "-") {
    auto scaled = [&](const Measured& m) {
      return done.failed.empty() ? exactly(static_cast<double>(m.*of) * scale) : Spread{};
    };
    figures_.add({.figure = figure,
                  .what = std::move(what),
                  .rows = tables.n(),
                  .base = scaled(done.sides[0]),
                  .ours = scaled(done.sides[1]),
                  .unit = std::move(unit),
                  .paper = std::move(paper),
                  .wrong = done.wrong,
                  .failed = done.failed});
  }

  Harness& harness_;
  Figures& figures_;
  Progress& progress_;
  const Settings& wants_;
  const isa::Target* target_;
};

class KernelWeaverCommand final : public Command {
 public:
  explicit KernelWeaverCommand(CLI::App& bench) {
    app =
        bench.add_subcommand("kernel-weaver",
                             "the patterns of Kernel Weaver (MICRO 2012), fused beside unfused: sizes, selectivities, "
                             "memory, registers");
    add_paper_flags(*app, settings_, {"4", "16", "17", "18", "19", "20", "table3"});
    app->add_option("--sizes", sizes_, "rows of the largest table, as powers of two (default 22,24,26: 64 MB to 1 GB)")
        ->delimiter(',')
        ->check(CLI::Range(8u, 29u))
        ->type_name("LIST");
  }

  int execute() override {
    auto done = errors_of([&] { return measure(); });
    return done ? *done : fail(done.error());
  }

 private:
  Result<int> measure() {
    Figures figures = kernel_weaver_table();
    RETURN_IF_ERROR(figures.check_folder(settings_.flags.output));
    ASSIGN_OR_RETURN(DeviceChoice device, DeviceChoice::start(settings_.flags));
    ASSIGN_OR_RETURN(const auto harness, Harness::open(std::move(device), settings_));
    const Result<void> done = errors_of([&] { return measure_kernel_weaver(*harness, sizes_, figures); });
    return finish(
        figures, settings_,
        harness->facts("kernel-weaver", fmt::format("2^{} rows of {} bytes", fmt::join(sizes_, ", 2^"), tuple_bytes)),
        done);
  }

  Settings settings_;
  std::vector<unsigned> sizes_ = {22, 24, 26};
};

}  // namespace

Figures kernel_weaver_table() { return Figures({"kernel-weaver", "unfused", "fused"}); }

Result<void> measure_kernel_weaver(Harness& harness, std::span<const unsigned> sizes, Figures& figures) {
  Progress progress("measuring patterns", sizes.size() * std::size(patterns) * 2 + 4);
  PatternExperiments experiments(harness, figures, progress);
  const unsigned largest = *std::max_element(sizes.begin(), sizes.end());
  for (const unsigned bits : sizes)
    RETURN_IF_ERROR(keep_failure(errors_of([&] { return experiments.at_size(bits, bits == largest); }), figures,
                                 {.figure = "all", .what = "others of the size", .rows = uint64_t{1} << bits}));
  return {};
}

}  // namespace rndn::tools::papers

namespace rndn::tools {
std::unique_ptr<Command> bench_kernel_weaver_command(CLI::App& bench) {
  return std::make_unique<papers::KernelWeaverCommand>(bench);
}
}  // namespace rndn::tools
