// `rndn bench yin-yang`: the experiments of Yuan, Lee, Zhang: "The Yin and Yang of Processing Data Warehousing Queries on
// GPU Devices" (VLDB 2013): what compression, transfers beside kernels and joins by row numbers save of SSB's queries,
// and how well times are predicted.
//
// In every run of figure 6 columns begin on the host. Queries are SQL, and answers DuckDB's. Predictions are those of
// runtime/model/cost.h, made before the first launch; columns that all kernels of a query wait for come before them.
//
// Figures: 6a (columns as the host has them, or packed), 6b (transfers: in one stream, beside kernels, and not at all: kernels
// read columns in the host's memory), 6c (joins by keys, or by the row numbers of
// declared foreign keys), 13 (a join: selectivity, rows of the other table, columns), 14 (SSB), 15 (other devices, by their
// calibrations), 16 (twice the bandwidth), table 4 (sizes of lineorder's columns). What is not there is in the table, as
// left out. Others: `rndn bench ssb` (kernels by query), `tools/bench-duckdb` (the host's side).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "libraries/base/system/parallel.h"
#include "ptx/encodings/encodings.h"
#include "runtime/data/tables.h"
#include "runtime/memory/column_forms.h"
#include "tools/model/model.h"
#include "tools/papers/made_tables.h"
#include "tools/papers/papers.h"
#include "tools/papers/sql_cases.h"

namespace rndn::tools::papers {
namespace {

using hir::BasicType;

// A table of facts, t, and one that its keys refer to, s.
struct Star {
  uint64_t rows, keys;
  static constexpr unsigned columns = 4;

  int64_t key(uint64_t i) const { return static_cast<int64_t>(random_at(1, i) % keys); }
  static int64_t percent(uint64_t key) { return static_cast<int64_t>(random_at(2, key) % 100); }
  static int64_t value(unsigned column, uint64_t i) { return static_cast<int64_t>(random_at(3 + column, i) % 1000); }

  std::shared_ptr<data::Source> source() const {
    MadeTable t{"t", rows, {{"k", BasicType::i32, [self = *this](uint64_t i) { return self.key(i); }}}};
    for (unsigned c = 0; c < columns; ++c)
      t.columns.push_back({fmt::format("v{}", c), BasicType::i32, [c](uint64_t i) { return value(c, i); }});
    MadeTable s{
        "s",
        keys,
        {{"sk", BasicType::i32, [](uint64_t i) { return static_cast<int64_t>(i); }}, {"a", BasicType::i32, percent}}};
    return source_of({std::move(t), std::move(s)});
  }
  // Sums of `sums` columns over the rows whose keys are among so many percent.
  static NamedSource program(unsigned below, unsigned sums) {
    std::string body, types, results;
    for (unsigned c = 0; c < sums; ++c) {
      body += fmt::format(
          "        v{0}:i32 = check_cast(@column_value(t, `v{0}:sym), i32);\n"
          "        few{0}:? = @index(v{0}, row);\n        wide{0}:i64 = check_cast(few{0}, i64);\n"
          "        sum{0}:i64 = @sum(wide{0});\n",
          c);
      types += fmt::format("{}i64", c ? ", " : "");
      results += fmt::format("{}sum{}", c ? ", " : "", c);
    }
    return {"star", "star.hir",
            fmt::format(R"(module star {{
    import Builtin.*;
    def main() : {} {{
        t:table = @load_table(`t:sym);
        s:table = @load_table(`s:sym);
        k:i32   = check_cast(@column_value(t, `k:sym), i32);
        sk:i32  = check_cast(@column_value(s, `sk:sym), i32);
        a:i32   = check_cast(@column_value(s, `a:sym), i32);
        p:?     = @lt(a, {}:i32);
        of:?    = @compress(p, sk);
        pairs:? = @join_index(@eq, of, k);
        row:?   = @index(pairs, 1:i64);
{}        return {};
    }}
}}
)",
                        types, below, body, results)};
  }
  std::vector<Answer> answer(unsigned below, unsigned sums) const {
    std::vector<int64_t> of(sums);
    for (uint64_t i = 0; i < rows; ++i)
      if (percent(static_cast<uint64_t>(key(i))) < below)
        for (unsigned c = 0; c < sums; ++c) of[c] += value(c, i);
    std::vector<Answer> answers;
    for (const int64_t sum : of) answers.push_back(Answer::of(std::vector<int64_t>{sum}));
    return answers;
  }
};

// The work of a program's kernels, as its columns foretell it.
class Forecaster {
 public:
  Forecaster(Harness& harness, const std::shared_ptr<data::Source>& source)
      : harness_(harness), source_(source), tables_(source), engine_(harness.device(), tables_) {}

  Result<std::vector<model::Work>> work(const NamedSource& program, const Flags& flags, bool of_query) {
    SourceManager sources;
    DiagnosticSink sink;
    Timings timings;
    ASSIGN_OR_RETURN(runtime::CompileOptions options, compile_options(flags));
    options.schema = &source_->schema();
    options.target = harness_.info().target;
    options.numbers_as_parameters = of_query;
    options.notes_work = true;
    const runtime::EngineOptions how = engine_options(flags, false);
    options.forecast = [&](const runtime::Compiled& c) {
      data::prefetch(data::columns_read(c.outlined.program), tables_);
      return engine_.forecast(c, sources, how, tables_);
    };
    auto compiled = runtime::compile(sources.add(program.file, program.text), sources, options, sink, timings);
    if (!compiled) {
      print_diagnostics(sink, sources);
      return compiled.error();
    }
    compiled->options.forecast = nullptr;
    runtime::DataChoices choices;
    (void)engine_.forecast(*compiled, sources, how, tables_, &choices);
    return std::move(choices.work);
  }

 private:
  Harness& harness_;
  std::shared_ptr<data::Source> source_;
  data::SourceTables tables_;
  runtime::Engine engine_;
};

// The rates of these kinds are those of a device that is so many times as fast at them.
model::Calibration faster(model::Calibration c, std::initializer_list<model::Rate> rates, double times) {
  for (const model::Rate rate : rates)
    for (model::Point& p : c.of(rate)) p.median *= times, p.low *= times, p.high *= times;
  return c;
}
double ms_of(std::span<const model::Work> work, const model::Calibration& c) {
  return model::kernels_ns(work, c) * 1e-6;
}
double ms_of(std::span<const model::Work> work, uint64_t bytes, const model::Calibration& c) {
  const double speed = c.value(model::Rate::host_pinned);
  return ms_of(work, c) + (speed > 0 ? static_cast<double>(bytes) / speed * 1e3 : 0);
}

constexpr double wanted_error = 10;  // percent

class YinYangExperiments {
 public:
  YinYangExperiments(Harness& harness, const YinYangSizes& sizes, Figures& figures)
      : harness_(harness), wants_(harness.settings()), sizes_(sizes), figures_(figures) {}

  // Figures 6 and 14 to 16.
  Result<void> queries(const std::vector<std::string>& names) {
    ASSIGN_OR_RETURN(const auto cases, SqlCases::open(harness_, "ssb", sizes_.scale, names));
    ASSIGN_OR_RETURN(const auto session, harness_.whole_session(cases->source()));
    std::unique_ptr<Session> by_keys;
    if (wants_.wants("6c")) {
      ASSIGN_OR_RETURN(const auto joined, open_data({.data = fmt::format("ssb-joins:{}", sizes_.scale)}, wants_.flags));
      ASSIGN_OR_RETURN(by_keys, harness_.whole_session(joined));
    }
    Forecaster forecaster(harness_, cases->source());
    Progress progress("measuring queries", names.size());
    Flags narrow = wants_.flags, packed = wants_.flags;
    narrow.encode = "narrow", packed.encode = "packed";
    narrow.transfer = packed.transfer = "copied";
    const Flags& copied = narrow;
    RETURN_IF_ERROR(cases->each(progress, [&](const SqlCase& c) -> Result<void> {
      if (wants_.wants("6a")) {
        const Way ways[] = {{session.get(), c.query, narrow, "narrow"}, {session.get(), c.query, packed, "packed"}};
        RETURN_IF_ERROR(pair("Fig 6a", c, "packed", ways, true, "figure"));
      }
      if (wants_.wants("6b")) {
        const Way ways[] = {{&cases->session(), c.query, narrow, "one stream"},
                            {session.get(), c.query, narrow, "two streams"}};
        RETURN_IF_ERROR(pair("Fig 6b", c, "copies beside kernels, from pinned memory", ways, false, "figure"));
        Flags mapped = copied, chosen = copied;
        mapped.transfer = "mapped", chosen.transfer = "auto", chosen.model = &sizes_.models.at(0);
        for (const auto& [how, flags] : {std::pair{"kernels read the host's memory", mapped}, {"kernels read it where the model says so", chosen}}) {
          const Way read[] = {{session.get(), c.query, copied, "copied"}, {session.get(), c.query, flags, flags.transfer}};
          RETURN_IF_ERROR(pair("Fig 6b", c, how, read, false, "flights 2 to 4 gain"));
        }
      }
      if (wants_.wants("6c")) {
        const Way ways[] = {{by_keys.get(), c.query, narrow, "keys"}, {session.get(), c.query, narrow, "row numbers"}};
        RETURN_IF_ERROR(pair("Fig 6c", c, "joins by row numbers", ways, false, "flight 1, 3.1 gain, 3.3, 3.4 lose"));
      }
      if (wants_.wants("14") || wants_.wants("15") || wants_.wants("16"))
        return predicted(forecaster, *cases, *session, c);
      return {};
    }));
    if (wants_.wants("6c")) leave_out("Fig 6c", "joins as ranges of sorted keys", "no join becomes one");
    if (wants_.wants("15") && sizes_.models.size() < 2)
      leave_out("Fig 15", "other devices", "no --other names a calibration of one");
    return {};
  }

  // Figure 13.
  Result<void> joins() {
    const uint64_t keys = std::min<uint64_t>(sizes_.keys, 1 << 16);
    for (const unsigned below : {1u, 10u, 50u, 100u}) RETURN_IF_ERROR(join(keys, below, 1));
    for (uint64_t s = 1 << 10; s <= sizes_.keys; s <<= 4) RETURN_IF_ERROR(join(s, 10, 1));
    for (const unsigned columns : {2u, 4u}) RETURN_IF_ERROR(join(keys, 10, columns));
    return {};
  }

  // Table 4.
  Result<void> sizes() {
    struct Kept {
      const char *name, *of;
    };
    static const Kept kept[] = {{"lo_orderdate", "date"},   {"lo_custkey", "customer"}, {"lo_partkey", "part"},
                                {"lo_suppkey", "supplier"}, {"lo_quantity", ""},        {"lo_discount", ""},
                                {"lo_extendedprice", ""},   {"lo_revenue", ""},         {"lo_supplycost", ""}};
    ASSIGN_OR_RETURN(const auto source, open_data({.data = fmt::format("ssb:{}", sizes_.scale)}, wants_.flags));
    std::vector<std::string> names;
    for (const Kept& k : kept) names.emplace_back(k.name);
    ASSIGN_OR_RETURN(const auto columns, source->columns("lineorder", names));
    ThreadPool pool(0);
    for (size_t i = 0; i < names.size(); ++i) {
      const data::Column& column = *columns[i];
      runtime::RowsReferred rows_of;
      if (*kept[i].of) {
        ASSIGN_OR_RETURN(rows_of, source->rows(kept[i].of));
      }
      const runtime::ColumnForm form = runtime::form_of(column, rows_of, runtime::Encode::packed, &pool);
      const encodings::Stored& stored = form.stored;
      const auto bytes = encodings::find(stored).bytes(runtime::element_type(column, rows_of), stored, column.rows);
      figures_.add({.figure = "Table 4",
                    .what = fmt::format("{}{}", names[i], rows_of ? ", its row numbers" : ""),
                    .rows = column.rows,
                    .base = exactly(static_cast<double>(column.rows) * 4e-6),
                    .ours = exactly(static_cast<double>(bytes) * 1e-6),
                    .unit = "MB",
                    .by = Ratio::share,
                    .paper = "-"});
    }
    leave_out("Table 4", "foreign keys in copies of the rows sorted by them", "no encoding has runs", "-");
    return {};
  }

 private:
  void leave_out(const char* figure, const char* what, const char* why, const char* paper = "-") {
    figures_.add({.figure = figure, .what = what, .paper = paper, .left_out = why});
  }

  // Kernels, all of it, and perhaps the bytes that are sent.
  Result<void> pair(const char* figure, const SqlCase& c, const char* how, std::span<const Way> ways, bool tells_bytes,
                    const char* paper) {
    ASSIGN_OR_RETURN(const Wholes done, harness_.whole_runs(ways, c.check));
    const bool is_measured = done.failed.empty();
    auto add = [&](const char* what, const Spread& base, const Spread& ours, const char* unit) {
      figures_.add({.figure = figure,
                    .what = fmt::format("{}, {}, {}", c.name, how, what),
                    .rows = c.rows,
                    .base = is_measured ? base : Spread{},
                    .ours = is_measured ? ours : Spread{},
                    .unit = unit,
                    .paper = paper,
                    .wrong = done.wrong,
                    .failed = done.failed});
    };
    const Whole &base = done.ways[0], &ours = done.ways[1];
    auto megabytes = [](const Whole& w) { return exactly(static_cast<double>(w.sent_bytes) * 1e-6); };
    if (tells_bytes) add("sent", megabytes(base), megabytes(ours), "MB");
    add("kernels", base.kernels_ms, ours.kernels_ms, "ms");
    add("all", base.ms, ours.ms, "ms");
    return {};
  }

  // Milliseconds of those kernels that were foreseen.
  Result<Spread> measured(Session& session, const NamedSource& program, std::span<const model::Work> work,
                          const Harness::Check& check, std::string& wrong) {
    const Harness::Body body = [&]() -> Result<double> {
      ASSIGN_OR_RETURN(const Session::Outcome outcome, session.run(program, wants_.flags, true));
      ASSIGN_OR_RETURN(std::string differs, check(outcome));
      if (wrong.empty()) wrong = std::move(differs);
      uint64_t ns = 0;
      for (const runtime::KernelReport& k : outcome.reports.at(0).kernels)
        if (std::any_of(work.begin(), work.end(),
                        [&](const model::Work& w) { return w.is_kernel && w.name == k.name; }))
          ns += k.ns;
      return static_cast<double>(ns) * 1e-6;
    };
    ASSIGN_OR_RETURN(const std::vector<Spread> spreads, harness_.in_turns({&body, 1}));
    return spreads[0];
  }

  void add_error(const char* figure, std::string what, uint64_t rows, double predicted, const Spread& ms,
                 const std::string& wrong, const std::string& failed) {
    figures_.add({.figure = figure,
                  .what = std::move(what),
                  .rows = rows,
                  .base = exactly(predicted),
                  .ours = failed.empty() ? ms : Spread{},
                  .unit = "ms",
                  .by = Ratio::error,
                  .paper = "-",
                  .goal = wanted_error,
                  .wrong = wrong,
                  .failed = failed});
  }

  Result<void> join(uint64_t keys, unsigned below, unsigned columns) {
    const Star star{sizes_.rows, keys};
    const auto source = star.source();
    const NamedSource program = Star::program(below, columns);
    ASSIGN_OR_RETURN(const std::vector<model::Work> work,
                     Forecaster(harness_, source).work(program, wants_.flags, false));
    const auto session = harness_.session(source);
    const std::vector<Answer> answer = star.answer(below, columns);
    std::string wrong, failed;
    Spread ms;
    const Result<void> done = errors_of([&]() -> Result<void> {
      ASSIGN_OR_RETURN(
          ms,
          measured(
              *session, program, work,
              [&](const Session::Outcome& o) -> Result<std::string> { return difference(o.results, answer); }, wrong));
      return {};
    });
    RETURN_IF_ERROR(keep_failure(done, failed));
    add_error("Fig 13", fmt::format("{} % of {} keys, {} column{}", below, keys, columns, columns == 1 ? "" : "s"),
              star.rows, ms_of(work, sizes_.models.at(0)), ms, wrong, failed);
    return {};
  }

  Result<void> predicted(Forecaster& forecaster, SqlCases& cases, Session& session, const SqlCase& c) {
    Timings ignored;
    ASSIGN_OR_RETURN(const auto prepared,
                     cases.session().prepare_sql(c.query, runtime::SqlQueries::Until::program, ignored));
    ASSIGN_OR_RETURN(
        const std::vector<model::Work> work,
        forecaster.work({c.query.name, "<program of " + c.query.file + ">", prepared->translation->program},
                        wants_.flags, true));
    const model::Calibration& model = sizes_.models.at(0);
    std::string wrong, failed;
    Spread ms;
    const Result<void> done = errors_of([&]() -> Result<void> {
      ASSIGN_OR_RETURN(ms, measured(cases.session(), c.query, work, c.check, wrong));
      return {};
    });
    RETURN_IF_ERROR(keep_failure(done, failed));
    const Way way{&session, c.query, wants_.flags, "rndn"};
    ASSIGN_OR_RETURN(const Wholes whole, harness_.whole_runs({&way, 1}, c.check));
    const uint64_t bytes = whole.ways[0].sent_bytes;
    const double all = ms_of(work, bytes, model);
    if (wants_.wants("14")) {
      add_error("Fig 14", c.name + ", kernels", c.rows, ms_of(work, model), ms, wrong, failed);
      add_error("Fig 14", c.name + ", all", c.rows, all, whole.ways[0].ms, whole.wrong, whole.failed);
    }
    auto beside = [&](const char* figure, std::string what, double base, double ours, const char* paper) {
      figures_.add({.figure = figure,
                    .what = c.name + what,
                    .rows = c.rows,
                    .base = exactly(base),
                    .ours = exactly(ours),
                    .unit = "ms",
                    .paper = paper,
                    .wrong = whole.wrong,
                    .failed = whole.failed});
    };
    if (wants_.wants("15"))
      for (size_t d = 1; d < sizes_.models.size(); ++d) {
        std::string name = fmt::format("device {}", d + 1);
        for (const auto& [fact, value] : sizes_.models[d].facts)
          if (fact == "device") name = value;
        beside("Fig 15", ", predicted for " + name + " and here", ms_of(work, bytes, sizes_.models[d]), all,
               "within 10 %");
      }
    if (wants_.wants("16")) {
      using model::Rate;
      beside("Fig 16", ", predicted, the bus twice as fast", all,
             ms_of(work, bytes, faster(model, {Rate::host_pinned, Rate::host_staged}, 2)), "figure");
      beside("Fig 16", ", predicted, the memory twice as fast", all,
             ms_of(work, bytes,
                   faster(model, {Rate::read, Rate::copy, Rate::gather_1, Rate::gather_4, Rate::gather_8}, 2)),
             "figure");
    }
    return {};
  }

  Harness& harness_;
  const Settings& wants_;
  const YinYangSizes& sizes_;
  Figures& figures_;
};

bool needs_model(const Settings& settings) {
  return settings.wants("6b") || settings.wants("13") || settings.wants("14") || settings.wants("15") || settings.wants("16");
}

class YinYangCommand final : public Command {
 public:
  explicit YinYangCommand(CLI::App& bench) {
    app = bench.add_subcommand(
        "yin-yang",
        "the experiments of Yin and Yang (VLDB 2013): compression, transfers and joins of SSB, and predicted times");
    add_paper_flags(*app, settings_, {"6a", "6b", "6c", "13", "14", "15", "16", "table4"});
    app->add_option("--scale", sizes_.scale, "of SSB (default 10)")->type_name("SF");
    app->add_option("--rows", sizes_.rows, "of figure 13 (default 60000000: SSB's lineorder at scale 10)")
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 31))
        ->type_name("N");
    app->add_option("--keys", sizes_.keys, "of figure 13's other table, at most (default 4194304)")
        ->check(CLI::Range(uint64_t{1024}, uint64_t{1} << 28))
        ->type_name("N");
    app->add_option("--queries", list_, "such as 1.1,2.1-3.4 (default: all 13)")->delimiter(',')->type_name("LIST");
    app->add_option("--model", model_,
                    "of `rndn devices --calibrate -o FILE` (default: calibrates, which takes a minute)")
        ->type_name("FILE");
    app->add_option("--other", others_, "the same of other devices, for figure 15")->delimiter(',')->type_name("FILES");
  }

  int execute() override {
    auto done = errors_of([&] { return measure(); });
    return done ? *done : fail(done.error());
  }

 private:
  Result<int> measure() {
    Figures figures = yin_yang_table();
    RETURN_IF_ERROR(figures.check_folder(settings_.flags.output));
    ASSIGN_OR_RETURN(sizes_.queries, sql_chosen(sql_names("ssb"), list_));
    if (!model_.empty()) {
      ASSIGN_OR_RETURN(model::Calibration read, read_calibration(model_));
      sizes_.models.push_back(std::move(read));
    }
    std::vector<model::Calibration> others;
    for (const std::string& path : others_) {
      ASSIGN_OR_RETURN(model::Calibration read, read_calibration(path));
      others.push_back(std::move(read));
    }
    ASSIGN_OR_RETURN(DeviceChoice device, DeviceChoice::start(settings_.flags));
    ASSIGN_OR_RETURN(const auto harness, Harness::open(std::move(device), settings_));
    if (sizes_.models.empty() && needs_model(settings_)) {
      ASSIGN_OR_RETURN(model::Calibration made, calibrate(harness->device()));
      sizes_.models.push_back(std::move(made));
    }
    sizes_.models.insert(sizes_.models.end(), others.begin(), others.end());
    const Result<void> done = errors_of([&] { return measure_yin_yang(*harness, sizes_, figures); });
    Figures::Facts facts = harness->facts("yin-yang", fmt::format("scale {}, {} rows", sizes_.scale, sizes_.rows));
    if (needs_model(settings_)) facts.emplace_back("calibration", model_.empty() ? "of this run" : model_);
    return finish(figures, settings_, facts, done);
  }

  Settings settings_;
  YinYangSizes sizes_;
  std::string model_;
  std::vector<std::string> list_, others_;
};

}  // namespace

Figures yin_yang_table() { return Figures({"yin-yang", "base", "rndn"}); }

Result<void> measure_yin_yang(Harness& harness, const YinYangSizes& sizes, Figures& figures) {
  const Settings& settings = harness.settings();
  YinYangExperiments experiments(harness, sizes, figures);
  auto measured = [&](const char* figure, auto&& body) {
    return keep_failure(errors_of(body), figures, {.figure = figure, .what = "all others"});
  };
  if (settings.wants("table4")) RETURN_IF_ERROR(measured("Table 4", [&] { return experiments.sizes(); }));
  if (settings.wants("13")) RETURN_IF_ERROR(measured("Fig 13", [&] { return experiments.joins(); }));
  for (const char* figure : {"6a", "6b", "6c", "14", "15", "16"})
    if (settings.wants(figure)) return measured("Figs 6, 14 to 16", [&] { return experiments.queries(sizes.queries); });
  return {};
}

}  // namespace rndn::tools::papers

namespace rndn::tools {
std::unique_ptr<Command> bench_yin_yang_command(CLI::App& bench) {
  return std::make_unique<papers::YinYangCommand>(bench);
}
}  // namespace rndn::tools
