#include "runtime/session/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/data/cache.h"
#include "runtime/planner/statements.h"
#include "runtime/print_sql.h"

namespace rndn::runtime {

namespace {
std::string fallback_warning(const std::string& what) {
  return fmt::format("warning: {} runs on the reference interpreter\n", what);
}
}  // namespace

Session::Session(std::shared_ptr<data::Source> source, DeviceChoice device, SessionOptions options)
    : Session(std::move(source), std::make_shared<DeviceChoice>(std::move(device)),
              std::move(options)) {}

Session::Session(std::shared_ptr<data::Source> source, std::shared_ptr<DeviceChoice> device,
                 SessionOptions options)
    : source_(std::move(source)),
      choice_(std::move(device)),
      say_(std::move(options.say)),
      planner_(std::move(options.planner)),
      code_cache_(data::default_cache_directory()),
      math_(libdevice::default_places(data::default_cache_directory())) {
  data::SourceOptions for_files;
  for_files.cache = options.file_cache;
  if (source_)
    tables_ = std::make_unique<data::SourceTables>(source_, for_files);
  else
    tables_ = std::make_unique<data::NoTables>(for_files);
}

void Session::say(const std::string& text) const {
  if (!text.empty()) say_(text);
}

Result<device::Device*> Session::device() { return choice_->open(); }

Result<Session::Ready*> Session::prepare(const NamedSource& program, const RunOptions& run,
                                         Timings& timings) {
  const bool typed = program.file.starts_with('<');  // its place says nothing
  std::string key =
      fmt::format("{}\n{}\n{}\n{}", run.reports, run.code, typed ? "" : program.file, program.text);
  auto known =
      std::find_if(ready_.begin(), ready_.end(), [&](const auto& r) { return r->key == key; });
  if (known != ready_.end() && run.cache) {
    std::rotate(known, known + 1, ready_.end());
    say(ready_.back()->said);
    return ready_.back().get();
  }
  CompileOptions options = run.compile;
  if (source_) options.schema = &source_->schema();
  CodeCache* cache = !run.cache || options.verify_passes ? nullptr : &code_cache_;
  options.code_cache = cache;
  if (!pool_) pool_ = std::make_unique<ThreadPool>(run.threads);
  options.pool = pool_.get();
  options.workspace = &workspace_;
  options.math = &math_;
  auto ready = std::make_unique<Ready>();
  ready->key = std::move(key);
  ready->file = sources_.add(program.file, program.text);
  device::Device* device = nullptr;
  if (choice_->is_cpu() || choice_->is_starting()) {
    // While a GPU starts (0.3 s), the columns that the program reads can load. A program that is wrong ends here: no device is needed to say so.
    DiagnosticSink early_sink;
    Timings early_timings;
    CompileOptions typed_only = options;
    typed_only.until = Stage::typed;
    auto early = compile(ready->file, sources_, typed_only, early_sink, early_timings);
    if (!early) {
      early_sink.sort_by_position();
      say(render(early_sink, sources_));
      return early.error();
    }
    auto scope = timings.measure(Phase::data, "prefetch");
    data::prefetch(data::columns_read(early->program), *tables_);
  }
  if (choice_->is_cpu()) {
    options.until = Stage::typed;
  } else {
    ASSIGN_OR_RETURN(device, choice_->open());
    if (!engine_) engine_ = std::make_unique<Engine>(*device, *tables_, cache, pool_.get());
    if (run.own_target) options.target = device->info().target;
    if (options.backend.kind == Backend::driver && device->info().is_simulator)
      return usage_error("--backend driver needs a GPU: the simulator has no PTX compiler");
  }
  DiagnosticSink sink;
  auto compiled = compile(ready->file, sources_, options, sink, timings);
  sink.sort_by_position();
  ready->said = render(sink, sources_);
  say(ready->said);
  if (!compiled) return compiled.error();
  ready->compiled = *std::move(compiled);
  if (device) {
    ASSIGN_OR_RETURN(ready->plan, engine_->plan(ready->compiled, sources_, run.engine, timings));
    for (const std::string& f : ready->plan->fallbacks()) {
      ready->said += fallback_warning(f);
      say(fallback_warning(f));
    }
  }
  if (ready_.size() == most_ready) ready_.erase(ready_.begin());
  ready_.push_back(std::move(ready));
  return ready_.back().get();
}

Result<const SqlQuery*> Session::prepare_sql(const NamedSource& statement, SqlQueries::Until until,
                                             Timings& timings) {
  DiagnosticSink sink;
  auto query = queries().prepare(span_of(statement), sources_, until, sink, timings);
  say(render(sink, sources_));
  return query;
}

SqlQueries& Session::queries() {
  if (!sql_) sql_.emplace(source_, planner_);
  return *sql_;
}

Span Session::span_of(const NamedSource& statement) {
  if (sql_text_ != statement.sql->text) {
    sql_text_ = statement.sql->text;
    sql_file_ = sources_.add(statement.file, *sql_text_);
  }
  return {sql_file_, static_cast<uint32_t>(statement.sql->begin),
          static_cast<uint32_t>(statement.sql->end)};
}

// A simulated GPU runs some million rows in a minute: said once, before it begins.
void Session::warn_of_simulation(const hir::Program& program) {
  constexpr uint64_t many_bytes = 100'000'000;
  if (warned_of_simulation_ || !source_) return;
  uint64_t bytes = 0;
  for (const auto& [table, names] : data::columns_read(program).tables)
    for (const std::string& name : names)
      if (auto column = source_->column(table, name))
        bytes += (*column)->data->size() +
                 ((*column)->foreign_rows ? (*column)->foreign_rows->size() : 0);
  if (bytes <= many_bytes) return;
  warned_of_simulation_ = true;
  say(fmt::format("warning: the simulator gets {:.0f} MB of columns, and is slow: --device cuda or "
                  "cpu, or less data\n",
                  static_cast<double>(bytes) * 1e-6));
}

Result<Session::Outcome> Session::run(const NamedSource& program, const RunOptions& options) {
  Timings timings;
  if (!program.sql) return run_program(program, options, std::move(timings));
  ASSIGN_OR_RETURN(const SqlQuery* query,
                   prepare_sql(program, SqlQueries::Until::program, timings));
  const sql::Translation& translation = *query->translation;
  Result<Outcome> ran = run_program({program.name, "<program of " + program.file + ">", translation.program},
                                    options, std::move(timings));
  if (!ran) return told_of_query(ran.error(), translation, span_of(program));
  Outcome outcome = *std::move(ran);
  outcome.columns = translation.columns;
  outcome.is_sql = true;
  return outcome;
}

// What a program requires is said where it stands in the query.
Error Session::told_of_query(Error error, const sql::Translation& translation, Span query) {
  if (error.fault != Fault::input || error.subject.empty()) return error;
  for (const auto& [line, place] : translation.places) {
    if (line != error.line) continue;
    const uint32_t begin = std::min(query.begin + place.offset, query.end);
    DiagnosticSink sink;
    sink.error("sql-run", {query.file, begin, std::min(begin + place.length, query.end)}, "{}", error.subject);
    say(render(sink, sources_));
    return {Fault::input, ""};
  }
  return error;
}

Result<std::string> print(const Session::Outcome& outcome, Format format, uint64_t most_rows) {
  if (!outcome.is_sql) return print_result(outcome.results, format, most_rows);
  if (outcome.results.size() != 1)
    return Error{Fault::internal, "the program of a query has no result"};
  ASSIGN_OR_RETURN(Grid grid, sql_grid(outcome.results[0], outcome.columns));
  return print_grid(grid, format, most_rows);
}

Result<Session::Outcome> Session::run_program(const NamedSource& program, const RunOptions& options,
                                              Timings timings) {
  ASSIGN_OR_RETURN(Ready * ready, prepare(program, options, timings));
  Outcome outcome;
  outcome.typed = &ready->compiled.program;
  Engine::Plan* const plan = ready->plan.get();
  RunReport report{.program = program.name,
                   .arch = "",
                   .device = "cpu",
                   .backend = "reference",
                   .timings = {},
                   .kernels = {},
                   .fallbacks = {}};
  if (plan) {
    ASSIGN_OR_RETURN(device::Device * device, choice_->open());
    if (device->info().is_simulator) warn_of_simulation(ready->compiled.program);
    report.arch = options.own_target ? device->info().target : options.compile.target;
    report.device = device->info().name;
    report.backend = ready->compiled.backend;
  }
  for (unsigned run = 1; run <= options.repeat; ++run) {
    report.run = run;
    report.kernels.clear();
    std::string said;
    if (plan) {
      std::vector<std::string> met;
      auto results = engine_->run(*plan, timings, &said, &report.kernels, &met, &report.texts_walked);
      if (run == 1)
        for (const std::string& f : met) say(fallback_warning(f));
      if (!results) {
        ready_.pop_back();
        return results.error();
      }
      outcome.results = *std::move(results);
      report.fallbacks = plan->fallbacks();
      report.fallbacks.insert(report.fallbacks.end(), met.begin(), met.end());
      outcome.fallbacks = report.fallbacks.size();
    } else {
      auto scope = timings.measure(Phase::cpu, "reference interpreter");
      data::TimedTables timed(*tables_, timings);
      ASSIGN_OR_RETURN(outcome.results,
                       reference::run(ready->compiled.program, timed, sources_, &said));
    }
    if (run == options.repeat) outcome.printed = std::move(said);
    if (options.reports) {
      report.timings = timings;
      outcome.reports.push_back(report);
    }
    timings.reset();
  }
  return outcome;
}

std::vector<NamedSource> split_sql(const std::string& name, const std::string& file,
                                   std::string text) {
  const auto shared = std::make_shared<const std::string>(std::move(text));
  const std::vector<planner::Statement> statements = planner::split_statements(*shared);
  std::vector<NamedSource> programs;
  for (const planner::Statement& s : statements) {
    std::string own =
        statements.size() > 1 ? fmt::format("{}-{}", name, programs.size() + 1) : name;
    programs.push_back({std::move(own), file, "", NamedSource::Statement{shared, s.begin, s.end}});
  }
  return programs;
}

Result<std::string> emit_program(const NamedSource& program, CompileOptions options,
                                 const data::Schema* schema, unsigned threads, const Say& say) {
  ThreadPool pool(threads);
  options.pool = &pool;
  options.schema = schema;
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  auto compiled = compile(sources.add(program.file, program.text), sources, options, sink, timings);
  sink.sort_by_position();
  if (const std::string said = render(sink, sources); !said.empty()) say(said);
  if (!compiled) return compiled.error();
  ASSIGN_OR_RETURN(std::string text, emit(*compiled, options.until));
  for (const codegen::KernelCode& k : compiled->code.kernels)
    if (!k.refused.empty())
      say(fmt::format("note: kernel `{}` has no code: {}\n", k.name, k.refused));
  return text;
}

}  // namespace rndn::runtime
