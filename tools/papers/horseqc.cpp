// `rndn bench horseqc`: the experiments of Funke, Bress, Noll, Markl, Teubner: "Pipelined Query
// Processing in Coprocessor Environments" (SIGMOD 2018): are the kernels of a query faster than the
// transfer of its columns?
//
// Transfer is the bytes of a query's columns, as they lie on the device, at the measured speed of a
// copy from pinned memory. Operator-at-a-time is --outline none --fuse-operators off. Queries are
// SQL, and answers DuckDB's.
//
// Figures: table 1 (bytes that kernels move per byte that is transferred), 17 and 27 (a projection
// and a sum of what a comparison selects), 18 (groups), 19 and table 3 (SSB), 20 (TPC-H), 21 (a star
// join by ranges of rows, as fast as the bus is), 22 (from columns on the host to results, beside
// DuckDB in place of the paper's CoGaDB and MonetDB). The paper's other ways to write a pipeline's
// result stand beside ours in figures 17 and 27: see pipelines.h. Left out: devices without a bus
// between host and device.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "tools/papers/made_tables.h"
#include "tools/papers/papers.h"
#include "tools/papers/pipelines.h"
#include "tools/papers/sql_cases.h"

namespace rndn::tools::papers {
namespace {

using hir::BasicType;

using Sums = std::map<int32_t, uint32_t>;

// A table of facts for figures 17, 18 and 27.
struct Facts {
  uint64_t rows;
  static constexpr int64_t quantities = 50;

  static int64_t quantity(uint64_t i) { return static_cast<int64_t>(1 + random_at(1, i) % quantities); }
  static int64_t price(uint64_t i) { return static_cast<int64_t>(random_at(2, i) % 1'000'000); }
  static int64_t discount(uint64_t i) { return static_cast<int64_t>(random_at(3, i) % 11); }
  static int64_t group(uint64_t i, uint64_t groups) { return static_cast<int64_t>(random_at(4, i) % groups); }
  static int64_t revenue(uint64_t i) { return price(i) * discount(i); }

  // Of every group that there is, by its key: sums of i32 wrap.
  Sums sums(uint64_t groups) const {
    std::vector<uint32_t> all(groups);
    std::vector<bool> seen(groups);
    for (uint64_t i = 0; i < rows; ++i) {
      const auto g = static_cast<size_t>(group(i, groups));
      all[g] += static_cast<uint32_t>(price(i)), seen[g] = true;
    }
    Sums out;
    for (size_t g = 0; g < groups; ++g)
      if (seen[g]) out[static_cast<int32_t>(g)] = all[g];
    return out;
  }
  MadeTable table() const {
    return {"lineorder",
            rows,
            {{"quantity", BasicType::i32, quantity},
             {"price", BasicType::i32, price},
             {"discount", BasicType::i32, discount}}};
  }
  MadeTable grouped(uint64_t groups) const {
    return {
        "lineorder",
        rows,
        {{"g", BasicType::i32, [groups](uint64_t i) { return group(i, groups); }}, {"price", BasicType::i32, price}}};
  }
};

constexpr std::string_view loads_of_selection = R"(
        quantity:i32 = check_cast(@column_value(t, `quantity:sym), i32);
        price:i32    = check_cast(@column_value(t, `price:sym), i32);
        discount:i32 = check_cast(@column_value(t, `discount:sym), i32);
        wide:i64     = check_cast(price, i64);
        times:i64    = check_cast(discount, i64);
        few:?        = @leq(quantity, $X:i32);
        revenue:?    = @mul(wide, times);
        kept:?       = @compress(few, revenue);)";
constexpr std::string_view groups_and_sums = R"(
        g:i32     = check_cast(@column_value(t, `g:sym), i32);
        price:i32 = check_cast(@column_value(t, `price:sym), i32);
        groups:?  = @group(g);
        first:?   = @keys(groups);
        rows:?    = @values(groups);
        cells:?   = @each_right(@index, price, rows);
        each:?    = @each(@sum, cells);
        sums:?    = @raze(each);
        keys:?    = @index(g, first);)";

NamedSource program_of(std::string name, std::string_view body, const std::string& types, const std::string& results,
                       int64_t x = 0) {
  std::string text(body);
  for (size_t at; (at = text.find("$X")) != text.npos;) text.replace(at, 2, std::to_string(x));
  return {name, name + ".hir",
          fmt::format("module pipeline {{\n    import Builtin.*;\n    def main() : {} {{\n        t:table = "
                      "@load_table(`lineorder:sym);{}\n        return {};\n    }}\n}}\n",
                      types, text, results)};
}

// As many values, and equal sums of them and of numbers that each stands for: in any order.
bool are_permuted(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  auto digest = [](const std::vector<int64_t>& values) {
    uint64_t sum = 0, mixed = 0;
    for (const int64_t v : values) sum += static_cast<uint64_t>(v), mixed += random_at(0, static_cast<uint64_t>(v));
    return std::pair(sum, mixed);
  };
  return a.size() == b.size() && digest(a) == digest(b);
}

// The queries of a suite that the paper runs; none named: all.
struct Suite {
  const char* name;    // of the texts, and before the colon of the data
  const char* option;  // of --figures
  const char* figure;
  const char* of_transfer;  // the paper's kernel time in percent of the transfer's
  bool is_whole;            // they are figure 22, too
  std::vector<std::string> queries;

  std::vector<std::string> names() const { return queries.empty() ? sql_names(name) : queries; }
  bool is_wanted(const Settings& settings) const {
    return settings.wants(option) || settings.wants("table1") || (is_whole && settings.wants("22"));
  }
};
const Suite suites[] = {{"ssb", "19", "Fig 19", "9.7 to 78.1 %", false, {}},
                        {"tpch",
                         "20",
                         "Fig 20",
                         "5.6 to 268.1 %",
                         true,
                         {"q01", "q04", "q05", "q06", "q07", "q09", "q13", "q17", "q18", "q19", "q21"}}};

class PipelineExperiments {
 public:
  PipelineExperiments(Harness& harness, const HorseqcSizes& sizes, double transfer, Figures& figures)
      : harness_(harness), wants_(harness.settings()), sizes_(sizes), transfer_(transfer), figures_(figures) {}

  // Figures 17 (selections stored) and 27 (their sum).
  Result<void> selections() {
    const Facts facts{sizes_.rows};
    const std::shared_ptr<data::Source> source = source_of({facts.table()});
    const std::unique_ptr<Session> session = harness_.session(source);
    const std::string names[] = {"quantity", "price", "discount"};
    ASSIGN_OR_RETURN(const auto columns, source->columns("lineorder", names));
    ASSIGN_OR_RETURN(const auto pipelines, Pipelines::make(harness_, *columns[0], *columns[1], *columns[2]));
    for (const int64_t x : {0, 5, 10, 15, 20, 25}) {
      std::vector<int64_t> kept;
      int64_t sum = 0;
      for (uint64_t i = 0; i < facts.rows; ++i)
        if (Facts::quantity(i) <= x) kept.push_back(Facts::revenue(i)), sum += kept.back();
      auto ways = [&](bool is_sum) {
        std::vector<Other> others;
        for (const Pipelines::Way& way : Pipelines::ways()) {
          if (way.is_sum != is_sum) continue;
          others.push_back({.name = way.name,
                            .body = [&, x] { return pipelines->run(way, x); },
                            .check = [&, x, is_sum]() -> Result<bool> {
                              ASSIGN_OR_RETURN(const std::vector<int64_t> written, pipelines->written(way, x));
                              return is_sum            ? written == std::vector{sum}
                                     : way.keeps_order ? written == kept
                                                       : are_permuted(written, kept);
                            }});
        }
        return others;
      };
      const std::string where = fmt::format("quantity <= {} of {}", x, Facts::quantities);
      if (wants_.wants("17")) {
        RETURN_IF_ERROR(made(
            "Fig 17", "project, " + where, *session, facts.rows,
            program_of("project", loads_of_selection, "i64", "kept", x), "at most 101.3 %", "up to 6.3",
            [&](const Session::Outcome& o) { return difference(o.results, {Answer::of(kept)}); }, ways(false)));
      }
      if (wants_.wants("27")) {
        RETURN_IF_ERROR(made(
            "Fig 27", "sum, " + where, *session, facts.rows,
            program_of("sum", std::string(loads_of_selection) + "\n        sum:i64 = @sum(kept);", "i64", "sum", x),
            "at most 101.3 %", "-",
            [&](const Session::Outcome& o) { return difference(o.results, {Answer::of(std::vector{sum})}); },
            ways(true)));
      }
    }
    return {};
  }

  // Figure 18.
  Result<void> groups() {
    const Facts facts{sizes_.rows};
    for (uint64_t groups = 2; groups <= sizes_.groups; groups *= groups < 512 ? 4 : 2) {
      const std::unique_ptr<Session> session = harness_.session(source_of({facts.grouped(groups)}));
      const Sums sums = facts.sums(groups);
      RETURN_IF_ERROR(made("Fig 18", fmt::format("{} groups", groups), *session, facts.rows,
                           program_of("groups", groups_and_sums, "i32, i32", "keys, sums"), "-",
                           "11.1; 126 resolved locally",
                           [&](const Session::Outcome& o) { return difference_of_groups(o.results, sums); }));
    }
    return {};
  }

  // Figures 19, 20 and 22, and table 1.
  Result<void> queries(const Suite& suite, std::span<const std::string> wanted, Progress& progress) {
    std::vector<std::string> names;
    for (const std::string& name : suite.names())
      if (std::find(wanted.begin(), wanted.end(), name) != wanted.end()) names.push_back(name);
    if (names.empty()) return {};
    ASSIGN_OR_RETURN(const auto cases, SqlCases::open(harness_, suite.name, sizes_.scale, names));
    if (wants_.wants(suite.option) || wants_.wants("table1"))
      RETURN_IF_ERROR(cases->each(progress, [&](const SqlCase& c) { return kernels(suite, *cases, c); }));
    if (!suite.is_whole || !wants_.wants("22")) return {};
    ASSIGN_OR_RETURN(const auto session, harness_.whole_session(cases->source()));
    return cases->each(progress, [&](const SqlCase& c) -> Result<void> {
      const Way way{session.get(), c.query, wants_.flags, "rndn"};
      ASSIGN_OR_RETURN(const Wholes done, harness_.whole_runs({&way, 1}, c.check, {&c.duckdb, 1}));
      figures_.add({.figure = "Fig 22",
                    .what = c.name + ", columns on the host, DuckDB on its cores",
                    .rows = c.rows,
                    .base = done.others[0],
                    .ours = done.ways[0].ms,
                    .unit = "ms",
                    .paper = "5.8 (CoGaDB), 26.9 (MonetDB); q19 loses",
                    .wrong = done.wrong,
                    .failed = done.failed});
      return {};
    });
  }

  // Figure 21: q3.1 by ranges of rows, whose blocks are the bytes of a column of four bytes.
  Result<void> ranges(Progress& progress) {
    for (const double scale : {sizes_.scale / 4, sizes_.scale / 2, sizes_.scale}) {
      ASSIGN_OR_RETURN(const auto cases, SqlCases::open(harness_, "ssb", scale, {"q3.1"}));
      ASSIGN_OR_RETURN(const auto session, harness_.whole_session(cases->source()));
      RETURN_IF_ERROR(cases->each(progress, [&](const SqlCase& c) -> Result<void> {
        struct Block {
          const char* name;
          uint64_t bytes;
        };
        for (const Block& block : {Block{"0.5 MB", 500'000}, {"2 MB", 2'000'000}, {"8 MB", 8'000'000}}) {
          const Way way{session.get(), c.query, wants_.flags, "rndn", block.bytes / 4};
          ASSIGN_OR_RETURN(const Wholes done, harness_.whole_runs({&way, 1}, c.check));
          const Whole& whole = done.ways[0];
          const std::string what = fmt::format("{} at scale {}, blocks of {}", c.name, scale, block.name);
          const auto bytes = static_cast<double>(whole.sent_bytes);
          const bool is_measured = done.failed.empty();
          figures_.add({.figure = "Fig 21",
                        .what = what + ", of the bus",
                        .rows = c.rows,
                        .base = is_measured && transfer_ > 0 ? exactly(bytes / transfer_ * 1e3) : Spread{},
                        .ours = whole.ms,
                        .unit = "ms",
                        .by = Ratio::speed,
                        .paper = "linear; saturates it from 2 MB on",
                        .wrong = done.wrong,
                        .failed = done.failed});
          figures_.add({.figure = "Fig 21",
                        .what = what + ", columns and memory of the device",
                        .rows = c.rows,
                        .base = is_measured ? exactly(bytes * 1e-6) : Spread{},
                        .ours = is_measured ? exactly(static_cast<double>(whole.memory_bytes) * 1e-6) : Spread{},
                        .unit = "MB",
                        .paper = "473 MB",
                        .wrong = done.wrong,
                        .failed = done.failed});
        }
        return {};
      }));
    }
    return {};
  }

 private:
  Result<void> kernels(const Suite& suite, SqlCases& cases, const SqlCase& c) {
    ASSIGN_OR_RETURN(const Compared done, compare(cases.session(), c.query, c.check));
    if (wants_.wants(suite.option)) add(suite.figure, c.name, c.rows, done, suite.of_transfer, "-");
    if (!wants_.wants("table1")) return {};
    auto passes = [&](const Measured& m) {
      return done.failed.empty() ? exactly(static_cast<double>(m.floor_bytes) /
                                           static_cast<double>(std::max<uint64_t>(done.sent_bytes, 1)))
                                 : Spread{};
    };
    figures_.add({.figure = "Table 1",
                  .what = c.name,
                  .rows = c.rows,
                  .base = passes(done.sides[0]),
                  .ours = passes(done.sides[1]),
                  .unit = "passes",
                  .paper = "2.2 to 38.5 passes",
                  .wrong = done.wrong,
                  .failed = done.failed});
    return {};
  }
  static std::string difference_of_groups(const std::vector<data::Value>& results, const Sums& sums) {
    if (results.size() != 2 || results[0].size != sums.size() || results[1].size != sums.size())
      return "another number of groups";
    for (const data::Value& v : results)
      if (!v.is_vector() || v.type != BasicType::i32) return "groups of another type";
    Sums got;
    for (uint64_t g = 0; g < sums.size(); ++g) got[results[0].as<int32_t>()[g]] = results[1].as<uint32_t>()[g];
    return got == sums ? "" : "other groups or sums";
  }

  // Another way to the same result.
  struct Other {
    std::string name;
    Harness::Body body;
    std::function<Result<bool>()> check;  // runs it, and says whether the result is right
  };
  Result<Compared> compare(Session& session, const NamedSource& program, const Harness::Check& check,
                           std::span<const Harness::Body> bodies = {}) {
    const Side sides[] = {{program, unfused(wants_.flags), "operator at a time"},
                          {program, fused(wants_.flags), "rndn"}};
    uint64_t sent = 0;
    const Result<void> done = errors_of([&]() -> Result<void> {
      ASSIGN_OR_RETURN(sent, harness_.sent_bytes(session, sides[1]));
      return {};
    });
    std::string failed;
    RETURN_IF_ERROR(keep_failure(done, failed));
    ASSIGN_OR_RETURN(Compared compared, harness_.compare(session, sides, check, bodies));
    compared.sent_bytes = sent;
    if (compared.failed.empty()) compared.failed = failed;
    return compared;
  }
  template <class Check>
  Result<void> made(const char* figure, const std::string& what, Session& session, uint64_t rows,
                    const NamedSource& program, const char* of_transfer, const char* speedup, const Check& check,
                    const std::vector<Other>& others = {}) {
    std::vector<std::string> wrong(others.size()), failed(others.size());
    auto check_others = [&]() -> Result<void> {
      for (size_t o = 0; o < others.size(); ++o) {
        if (!failed[o].empty()) continue;
        const Result<bool> is_right = errors_of([&] { return others[o].check(); });
        if (!is_right) RETURN_IF_ERROR(keep_failure(is_right.error(), failed[o]));
        if (is_right && !*is_right) wrong[o] = "the result is wrong";
      }
      return {};
    };
    RETURN_IF_ERROR(check_others());
    // What has failed is not timed: it would end the turns of all.
    std::vector<Harness::Body> bodies;
    for (size_t o = 0; o < others.size(); ++o)
      bodies.push_back(failed[o].empty() ? others[o].body : []() -> Result<double> { return 0; });
    ASSIGN_OR_RETURN(
        const Compared done,
        compare(
            session, program, [&](const Session::Outcome& o) -> Result<std::string> { return check(o); }, bodies));
    RETURN_IF_ERROR(check_others());
    add(figure, what, rows, done, of_transfer, speedup);
    for (size_t o = 0; o < others.size(); ++o)
      figures_.add({.figure = figure,
                    .what = what + ", " + others[o].name,
                    .rows = rows,
                    .base = failed[o].empty() ? done.others[o] : Spread{},
                    .ours = done.sides[1].ms,
                    .unit = "ms",
                    .wrong = named({{others[o].name, wrong[o]}, {"rndn", done.sides[1].wrong}}),
                    .failed = failed[o].empty() ? done.failed : failed[o]});
    return {};
  }
  // Kernels beside the transfer, and beside those of operator-at-a-time.
  void add(const char* figure, const std::string& what, uint64_t rows, const Compared& done, const char* of_transfer,
           const char* speedup) {
    const Measured &single = done.sides[0], &ours = done.sides[1];
    const bool is_measured = done.failed.empty();
    const double ms = transfer_ > 0 ? static_cast<double>(done.sent_bytes) / transfer_ * 1e3 : 0;
    auto megabytes = [&](const Measured& m) {
      return is_measured ? exactly(static_cast<double>(m.floor_bytes) * 1e-6) : Spread{};
    };
    figures_.add({.figure = figure,
                  .what = what + ", of the transfer",
                  .rows = rows,
                  .base = is_measured && transfer_ > 0 ? exactly(ms) : Spread{},
                  .ours = ours.ms,
                  .unit = "ms",
                  .by = Ratio::share,
                  .paper = of_transfer,
                  .goal = 100,
                  .wrong = done.wrong,
                  .failed = done.failed});
    figures_.add({.figure = figure,
                  .what = what + ", operator at a time",
                  .rows = rows,
                  .base = single.ms,
                  .ours = ours.ms,
                  .unit = "ms",
                  .paper = speedup,
                  .wrong = done.wrong,
                  .failed = done.failed});
    figures_.add({.figure = figure,
                  .what = what + ", bytes",
                  .rows = rows,
                  .base = megabytes(single),
                  .ours = megabytes(ours),
                  .unit = "MB",
                  .wrong = done.wrong,
                  .failed = done.failed});
  }

  Harness& harness_;
  const Settings& wants_;
  const HorseqcSizes& sizes_;
  const double transfer_;  // bytes per second
  Figures& figures_;
};

class HorseqcCommand final : public Command {
 public:
  explicit HorseqcCommand(CLI::App& bench) {
    app = bench.add_subcommand(
        "horseqc",
        "the experiments of HorseQC (SIGMOD 2018): kernels beside the transfer of their columns, SSB "
        "and TPC-H, projections, groups");
    add_paper_flags(*app, settings_, {"17", "18", "19", "20", "21", "22", "27", "table1"});
    app->add_option("--scale", sizes_.scale, "of SSB and TPC-H (default 10); figure 21: its quarter and its half, too")
        ->type_name("SF");
    app->add_option("--rows", sizes_.rows, "of figures 17, 18 and 27 (default 60000000: SSB's lineorder at scale 10)")
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 31))
        ->type_name("N");
    app->add_option("--groups", sizes_.groups, "of figure 18, at most (default 16384)")
        ->check(CLI::Range(2u, 1u << 20))
        ->type_name("N");
    app->add_option("--queries", sizes_.queries, "such as 1.1,6,17-19 (default: SSB's 13 and the paper's 11 of TPC-H)")
        ->delimiter(',')
        ->type_name("LIST");
  }

  int execute() override {
    auto done = errors_of([&] { return measure(); });
    return done ? *done : fail(done.error());
  }

 private:
  Result<int> measure() {
    Figures figures = horseqc_table();
    RETURN_IF_ERROR(figures.check_folder(settings_.flags.output));
    RETURN_IF_ERROR(horseqc_queries(settings_, sizes_.queries));
    ASSIGN_OR_RETURN(DeviceChoice device, DeviceChoice::start(settings_.flags));
    ASSIGN_OR_RETURN(const auto harness, Harness::open(std::move(device), settings_));
    ASSIGN_OR_RETURN(const double transfer, harness->transfer_speed());
    const Result<void> done = errors_of([&] { return measure_horseqc(*harness, sizes_, transfer, figures); });
    Figures::Facts facts = harness->facts("horseqc", fmt::format("scale {}, {} rows", sizes_.scale, sizes_.rows));
    if (transfer > 0) facts.emplace_back("transfer", fmt::format("{:.1f} GB/s from pinned memory", transfer * 1e-9));
    return finish(figures, settings_, facts, done);
  }

  Settings settings_;
  HorseqcSizes sizes_;
};

}  // namespace

Result<std::vector<std::string>> horseqc_queries(const Settings& settings, const std::vector<std::string>& list) {
  std::vector<std::string> all;
  for (const Suite& suite : suites)
    if (suite.is_wanted(settings))
      for (std::string& name : suite.names()) all.push_back(std::move(name));
  if (all.empty() && !list.empty())
    return usage_error("--queries is of figures 19, 20, 22 and table1, of which none is wanted");
  return sql_chosen(all, list);
}

Figures horseqc_table() { return Figures({"horseqc", "base", "rndn"}); }

Result<void> measure_horseqc(Harness& harness, const HorseqcSizes& sizes, double transfer, Figures& figures) {
  const Settings& settings = harness.settings();
  ASSIGN_OR_RETURN(const std::vector<std::string> queries, horseqc_queries(settings, sizes.queries));
  PipelineExperiments experiments(harness, sizes, transfer, figures);
  const bool twice = settings.wants("20") || settings.wants("table1");  // and from the host, for figure 22
  uint64_t count = settings.wants("21") ? 3 : 0;
  for (const Suite& suite : suites) {
    const std::vector<std::string> names = suite.names();
    const auto of = static_cast<uint64_t>(std::count_if(names.begin(), names.end(), [&](const std::string& name) {
      return std::find(queries.begin(), queries.end(), name) != queries.end();
    }));
    if (suite.is_wanted(settings)) count += of;
    if (suite.is_whole && settings.wants("22") && twice) count += of;
  }
  Progress progress("measuring queries", count);
  auto measured = [&](const char* figure, auto&& body) {
    return keep_failure(errors_of(body), figures, {.figure = figure, .what = "all others"});
  };
  if (settings.wants("17") || settings.wants("27"))
    RETURN_IF_ERROR(measured("Figs 17 and 27", [&] { return experiments.selections(); }));
  if (settings.wants("18")) RETURN_IF_ERROR(measured("Fig 18", [&] { return experiments.groups(); }));
  if (settings.wants("21")) RETURN_IF_ERROR(measured("Fig 21", [&] { return experiments.ranges(progress); }));
  for (const Suite& suite : suites)
    if (suite.is_wanted(settings))
      RETURN_IF_ERROR(measured(suite.figure, [&] { return experiments.queries(suite, queries, progress); }));
  return {};
}

}  // namespace rndn::tools::papers

namespace rndn::tools {
std::unique_ptr<Command> bench_horseqc_command(CLI::App& bench) {
  return std::make_unique<papers::HorseqcCommand>(bench);
}
}  // namespace rndn::tools
