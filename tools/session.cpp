#include "tools/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "runtime/data/cache.h"
#include "runtime/print_sql.h"

namespace rndn::tools {

namespace {
std::string fallback_warning(const std::string& what) {
  return fmt::format("warning: {} runs on the reference interpreter\n", what);
}
}  // namespace

Session::Session(std::shared_ptr<data::Source> source, DeviceChoice device, const std::string& file_cache)
    : source_(std::move(source)),
      choice_(std::move(device)),
      code_cache_(data::default_cache_directory()),
      math_(libdevice::default_places(data::default_cache_directory())) {
  data::SourceOptions for_files;
  for_files.cache = file_cache;
  if (source_)
    tables_ = std::make_unique<data::SourceTables>(source_, for_files);
  else
    tables_ = std::make_unique<data::NoTables>(for_files);
}

Result<device::Device*> Session::device() { return choice_.open(); }

Result<Session::Ready*> Session::prepare(const NamedSource& program, const Flags& flags, bool want_reports,
                                         Timings& timings) {
  const bool typed = program.file.starts_with('<');  // its place says nothing
  std::string key =
      fmt::format("{}\n{}\n{}\n{}", want_reports, code_flags(flags), typed ? "" : program.file, program.text);
  auto known = std::find_if(ready_.begin(), ready_.end(), [&](const auto& r) { return r->key == key; });
  if (known != ready_.end() && !flags.no_cache) {
    std::rotate(known, known + 1, ready_.end());
    std::fputs(ready_.back()->said.c_str(), stderr);
    return ready_.back().get();
  }
  ASSIGN_OR_RETURN(runtime::CompileOptions options, compile_options(flags));
  if (source_) options.schema = &source_->schema();
  runtime::CodeCache* cache = flags.no_cache || flags.verify_passes ? nullptr : &code_cache_;
  options.code_cache = cache;
  if (!pool_) pool_ = std::make_unique<ThreadPool>(flags.threads);
  options.pool = pool_.get();
  options.workspace = &workspace_;
  options.math = &math_;
  auto ready = std::make_unique<Ready>();
  ready->key = std::move(key);
  ready->file = sources_.add(program.file, program.text);
  device::Device* device = nullptr;
  if (choice_.is_cpu() || choice_.is_starting()) {
    // While a GPU starts (0.3 s), the columns that the program reads can load. A program that is wrong ends here: no device is needed to say so.
    DiagnosticSink early_sink;
    Timings early_timings;
    runtime::CompileOptions typed_only = options;
    typed_only.until = runtime::Stage::typed;
    auto early = runtime::compile(ready->file, sources_, typed_only, early_sink, early_timings);
    if (!early) {
      early_sink.sort_by_position();
      print_diagnostics(early_sink, sources_);
      return early.error();
    }
    auto scope = timings.measure(Phase::data, "prefetch");
    data::prefetch(data::columns_read(early->program), *tables_);
  }
  if (choice_.is_cpu()) {
    options.until = runtime::Stage::typed;
  } else {
    ASSIGN_OR_RETURN(device, choice_.open());
    if (!engine_) engine_ = std::make_unique<runtime::Engine>(*device, *tables_, cache, pool_.get());
    if (flags.arch.empty()) options.target = device->info().target;
    if (options.backend.kind == runtime::Backend::driver && device->info().is_simulator)
      return usage_error("--backend driver needs a GPU: the simulator has no PTX compiler");
  }
  DiagnosticSink sink;
  auto compiled = runtime::compile(ready->file, sources_, options, sink, timings);
  sink.sort_by_position();
  ready->said = render(sink, sources_);
  std::fputs(ready->said.c_str(), stderr);
  if (!compiled) return compiled.error();
  ready->compiled = *std::move(compiled);
  if (device) {
    ASSIGN_OR_RETURN(ready->plan,
                     engine_->plan(ready->compiled, sources_, engine_options(flags, want_reports), timings));
    for (const std::string& f : ready->plan->fallbacks()) {
      ready->said += fallback_warning(f);
      std::fputs(fallback_warning(f).c_str(), stderr);
    }
  }
  if (ready_.size() == most_ready) ready_.erase(ready_.begin());
  ready_.push_back(std::move(ready));
  return ready_.back().get();
}

Result<const runtime::SqlQuery*> Session::prepare_sql(const NamedSource& statement, runtime::SqlQueries::Until until,
                                                      Timings& timings) {
  if (!sql_) sql_.emplace(source_, planner::Options::of_environment());
  if (sql_text_ != statement.sql->text) {
    sql_text_ = statement.sql->text;
    sql_file_ = sources_.add(statement.file, *sql_text_);
  }
  const Span span{sql_file_, static_cast<uint32_t>(statement.sql->begin), static_cast<uint32_t>(statement.sql->end)};
  DiagnosticSink sink;
  auto query = sql_->prepare(span, sources_, until, sink, timings);
  print_diagnostics(sink, sources_);
  return query;
}

Result<Session::Outcome> Session::run(const NamedSource& program, const Flags& flags, bool want_reports) {
  Timings timings;
  if (!program.sql) return run_program(program, flags, want_reports, std::move(timings));
  ASSIGN_OR_RETURN(const runtime::SqlQuery* query, prepare_sql(program, runtime::SqlQueries::Until::program, timings));
  const sql::Translation& translation = *query->translation;
  ASSIGN_OR_RETURN(Outcome outcome,
                   run_program({program.name, "<program of " + program.file + ">", translation.program}, flags,
                               want_reports, std::move(timings)));
  outcome.columns = translation.columns;
  outcome.is_sql = true;
  return outcome;
}

Result<std::string> print(const Session::Outcome& outcome, runtime::Format format) {
  if (!outcome.is_sql) return runtime::print_result(outcome.results, format);
  if (outcome.results.size() != 1) return Error{Fault::internal, "the program of a query has no result"};
  ASSIGN_OR_RETURN(runtime::Grid grid, runtime::sql_grid(outcome.results[0], outcome.columns));
  return runtime::print_grid(grid, format);
}

Result<Session::Outcome> Session::run_program(const NamedSource& program, const Flags& flags, bool want_reports,
                                              Timings timings) {
  ASSIGN_OR_RETURN(Ready * ready, prepare(program, flags, want_reports, timings));
  Outcome outcome;
  outcome.typed = &ready->compiled.program;
  runtime::Engine::Plan* const plan = ready->plan.get();
  runtime::RunReport report{.program = program.name,
                            .arch = "",
                            .device = "cpu",
                            .backend = "reference",
                            .timings = {},
                            .kernels = {},
                            .fallbacks = {}};
  if (plan) {
    ASSIGN_OR_RETURN(device::Device * device, choice_.open());
    report.arch = flags.arch.empty() ? device->info().target : flags.arch;
    report.device = device->info().name;
    report.backend = ready->compiled.backend;
  }
  for (unsigned run = 1; run <= flags.repeat; ++run) {
    report.run = run;
    report.kernels.clear();
    std::string said;
    if (plan) {
      std::vector<std::string> met;
      auto results = engine_->run(*plan, timings, &said, &report.kernels, &met);
      if (run == 1)
        for (const std::string& f : met) std::fputs(fallback_warning(f).c_str(), stderr);
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
      ASSIGN_OR_RETURN(outcome.results, reference::run(ready->compiled.program, timed, sources_, &said));
    }
    if (run == flags.repeat) outcome.printed = std::move(said);
    if (want_reports) {
      report.timings = timings;
      outcome.reports.push_back(report);
    }
    timings.reset();
  }
  return outcome;
}

}  // namespace rndn::tools
