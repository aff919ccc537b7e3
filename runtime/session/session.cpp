#include "runtime/session/session.h"

#include <glob.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "runtime/data/cache.h"
#include "runtime/data/sources.h"
#include "runtime/device/sharing.h"
#include "runtime/files/files.h"
#include "runtime/memory/result_memory.h"
#include "runtime/planner/database.h"
#include "runtime/planner/statements.h"

namespace rndn::runtime {

namespace {
namespace fs = std::filesystem;

// Calls come from any thread. A device that is not open opens in the thread that needs it first.
Result<void> attach(DeviceChoice& choice) {
  if (choice.is_cpu() || choice.is_starting()) return {};
  ASSIGN_OR_RETURN(device::Device * device, choice.open());
  return device::attach(*device);
}

std::string fallback_warning(const std::string& what) {
  return fmt::format("warning: {} runs on the reference interpreter\n", what);
}
}  // namespace

Session::Session(std::shared_ptr<data::Source> source, DeviceChoice device, SessionOptions options)
    : Session(std::move(source), std::make_shared<DeviceChoice>(std::move(device)),
              std::move(options)) {}

Session::Session(std::shared_ptr<data::Source> source, std::shared_ptr<DeviceChoice> device,
                 SessionOptions options)
    : given_(std::move(source)),
      file_cache_(std::move(options.file_cache)),
      choice_(std::move(device)),
      say_(std::move(options.say)),
      planner_(std::move(options.planner)),
      least_saved_(options.least_saved),
      code_cache_(data::default_cache_directory()),
      math_(libdevice::default_places(data::default_cache_directory())) {
  source_ = given_;
  open_tables();
}

// What is on the device is given back by the thread that lets go of the session.
Session::~Session() {
  if (engine_) (void)attach(*choice_);
}

namespace {
// The paths in a call's arguments: its strings.
std::vector<std::string> paths_in(std::string_view arguments) {
  std::vector<std::string> paths;
  for (size_t at = arguments.find('\''); at < arguments.size(); at = arguments.find('\'', at)) {
    std::string& path = paths.emplace_back();
    for (++at; at < arguments.size(); ++at) {
      if (arguments[at] != '\'')
        path += arguments[at];
      else if (arguments.substr(at + 1).starts_with('\''))
        path += arguments[++at];
      else
        break;
    }
    ++at;
  }
  return paths;
}

// What files, folders and patterns are made of at the moment: every file's version. A pattern with
// folders of any depth (`**`) stands for all files below it.
std::string version_of(const std::vector<std::string>& paths) {
  std::string version;
  const auto add = [&](const std::string& file) {
    std::string own = data::version_of(file);
    // What has just been written may change again without a sign: it is never the same.
    if (std::error_code ignored; own.empty() && fs::exists(file, ignored))
      own = std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
    version += file + '\n' + own + '\n';
  };
  const auto add_below = [&](const fs::path& folder) {
    std::error_code ignored;
    std::set<std::string> files;
    for (fs::recursive_directory_iterator entry(folder, ignored), end; !ignored && entry != end;
         entry.increment(ignored)) {
      std::error_code unknown;
      if (entry->is_regular_file(unknown)) files.insert(entry->path().string());
    }
    for (const std::string& file : files) add(file);
  };
  for (const std::string& path : paths) {
    std::error_code ignored;
    const size_t wild = path.find_first_of("*?[");
    if (fs::is_directory(path, ignored)) {
      add_below(path);
    } else if (wild == path.npos || fs::exists(path, ignored)) {
      add(path);
    } else if (path.find("**") != path.npos) {
      add_below(fs::path(path.substr(0, wild)).parent_path());
    } else {
      glob_t found{};
      if (::glob(path.c_str(), 0, nullptr, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; ++i) add(found.gl_pathv[i]);
      ::globfree(&found);
    }
  }
  return version;
}

// Is a path what the function reads? What it is not is read as the function says.
bool is_read_by(std::string_view function, std::string_view path) {
  const auto has = [&](std::string_view word) { return path.find(word) != path.npos; };
  if (function.find("parquet") != function.npos) return has(".parquet");
  if (function.find("json") != function.npos) return has("json");
  return has(".csv") || has(".tsv") || has(".tbl");
}
}  // namespace

void Session::open_tables() {
  data::SourceOptions for_files;
  for_files.cache = file_cache_;
  if (source_)
    tables_ = std::make_unique<data::SourceTables>(source_, for_files);
  else
    tables_ = std::make_unique<data::NoTables>(for_files);
}

// What was made of the tables before them goes first.
Result<void> Session::join_tables() {
  if (engine_) RETURN_IF_ERROR(attach(*choice_));
  std::vector<std::shared_ptr<data::Source>> all;
  if (given_) all.push_back(given_);
  for (const NamedFile& file : files_) all.push_back(file.source);
  std::shared_ptr<data::Source> joined;
  if (!all.empty()) {
    ASSIGN_OR_RETURN(joined, data::join_sources(std::move(all)));
  }
  ready_.clear();
  engine_.reset();
  source_ = std::move(joined);
  open_tables();
  is_joined_ = true;
  return {};
}

Result<std::shared_ptr<data::Source>> Session::open_file(const std::string& name,
                                                         const planner::FileCall* call) {
  data::SourceOptions options;
  options.formats = files::formats();
  options.progress = false;
  options.note = [this](const std::string& text) { say("note: " + text + "\n"); };
  std::error_code ignored;
  const bool is_path = data::is_table_path(name, options) || fs::is_directory(name, ignored);
  if (!call && !is_path) return std::shared_ptr<data::Source>();
  const bool as_path = is_path && (!call || (call->is_path && is_read_by(call->function, name)));
  std::vector<std::string> paths = as_path ? std::vector{name} : paths_in(call->arguments);
  std::string version = version_of(paths);  // before they are read
  ASSIGN_OR_RETURN(auto source,
                   as_path ? data::open_table(name, name, options, file_cache_)
                           : files::open_call(call->function, call->arguments, name, options));
  for (const auto& column : source->schema().tables[0].refused)
    say(fmt::format("note: column `{}` of `{}` is {}, which SQL has no type for here\n",
                    column.name, name, column.type));
  std::erase_if(files_, [&](const NamedFile& file) { return file.name == name; });
  is_joined_ = false;
  files_.push_back({name, as_path, std::move(paths), std::move(version), std::move(source)});
  RETURN_IF_ERROR(join_tables());
  return source_;
}

// What a query named is opened again when a file of it has changed, has gone, or is new.
Result<void> Session::forget_changed_files() {
  const auto gone = std::erase_if(files_, [](const NamedFile& file) {
    return !file.paths.empty() && version_of(file.paths) != file.version;
  });
  if (!gone && is_joined_) return {};
  is_joined_ = false;
  return join_all();
}

void Session::say(const std::string& text) const {
  if (!text.empty()) say_(text);
}

Result<void> Session::set_source(std::shared_ptr<data::Source> source, std::string_view renewed) {
  given_ = std::move(source);
  if (given_)  // it replaces what statements have made under its names
    for (const data::TableSchema& table : given_->schema().tables) {
      std::erase_if(files_, [&](const NamedFile& file) {
        return planner::is_same_name(file.name, table.name);
      });
      if (sql_) RETURN_IF_ERROR(sql_->drop_view(table.name));
    }
  is_joined_ = false;
  return join_all(renewed);
}

Result<void> Session::join_all(std::string_view renewed) {
  RETURN_IF_ERROR(join_tables());
  return sql_ ? sql_->set_source(source_, renewed) : Result<void>();
}

Result<device::Device*> Session::device() { return choice_->open(); }

void Session::forget_ranges() {
  std::erase_if(ready_, [&](const auto& ready) {
    if (!ready->ranges || ready->ranges.use_count() > 1) return false;
    ready->plan.reset();
    for (const auto& [table, source] : *ready->ranges)
      if (engine_) engine_->forget(source->loaded());
    return true;
  });
}

Result<Engine*> Session::open_engine(const RunOptions& run) {
  ASSIGN_OR_RETURN(device::Device * device, choice_->open());
  if (!pool_) pool_ = std::make_unique<ThreadPool>(run.threads);
  if (!engine_) {
    CodeCache* const cache = !run.cache || run.compile.verify_passes ? nullptr : &code_cache_;
    engine_ = std::make_unique<Engine>(*device, *tables_, cache, pool_.get());
    engine_->limit_memory(choice_->memory_limit());
  }
  return engine_.get();
}

// Errors are met again, and said, when the query runs.
class Session::SendsAhead {
 public:
  SendsAhead(Session& session, const RunOptions& options, Timings& timings) : queries_(session.queries()) {
    if (session.choice_->is_cpu() || !options.engine.cache || options.engine.transfer == Transfer::mapped) return;
    queries_.show([&](const data::Column& column) {
      if (session.choice_->is_starting()) {
        auto waiting = timings.measure(Phase::overhead, "the device starts");
        if (!session.open_engine(options)) return;
      }
      auto scope = timings.measure(Phase::transfer, "a column, while others are read");
      if (auto engine = session.open_engine(options)) (*engine)->send_ahead(column, options.engine.encode);
    });
  }
  ~SendsAhead() { queries_.show({}); }
  SendsAhead(const SendsAhead&) = delete;

 private:
  SqlQueries& queries_;
};

Result<Session::Ready*> Session::prepare(const NamedSource& program, const RunOptions& run,
                                         Timings& timings, Ranges ranges) {
  const bool typed = program.file.starts_with('<');  // its place says nothing
  std::string key =
      fmt::format("{}\n{}\n{}\n{}\n{}", run.reports, run.code, static_cast<const void*>(ranges.get()),
                  typed ? "" : program.file, program.text);
  auto known =
      std::find_if(ready_.begin(), ready_.end(), [&](const auto& r) { return r->key == key; });
  if (known != ready_.end() && run.cache) {
    std::rotate(known, known + 1, ready_.end());
    say(ready_.back()->said);
    return ready_.back().get();
  }
  CompileOptions options = run.compile;
  static const data::Schema no_tables = [] {
    data::Schema none;
    none.assumed = "no data is named: --data FILE or FOLDER, or --table NAME=FILE, does so";
    return none;
  }();
  options.schema = source_ ? &source_->schema() : &no_tables;
  CodeCache* cache = !run.cache || options.verify_passes ? nullptr : &code_cache_;
  options.code_cache = cache;
  options.notes_work |= run.engine.transfer == Transfer::automatic && !run.engine.cache;
  if (!pool_) pool_ = std::make_unique<ThreadPool>(run.threads);
  options.pool = pool_.get();
  options.workspace = &workspace_;
  options.math = &math_;
  auto ready = std::make_unique<Ready>();
  ready->key = std::move(key);
  if (ranges) ready->tables = std::make_unique<data::OverlaidTables>(*tables_, *ranges);
  ready->ranges = std::move(ranges);
  const reference::Tables& tables = ready->tables ? *ready->tables : *tables_;
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
    data::prefetch(data::columns_read(early->program), tables);
  }
  if (choice_->is_cpu()) {
    options.until = Stage::typed;
  } else {
    RETURN_IF_ERROR(open_engine(run));
    ASSIGN_OR_RETURN(device, choice_->open());
    if (run.own_target) options.target = device->info().target;
    if (options.backend.kind == Backend::driver && device->info().is_simulator)
      return usage_error("--backend driver needs a GPU: the simulator has no PTX compiler");
    options.forecast = [this, &tables, engine = run.engine](const Compiled& c) {
      return engine_->forecast(c, sources_, engine, tables);
    };
  }
  DiagnosticSink sink;
  auto compiled = compile(ready->file, sources_, options, sink, timings);
  sink.sort_by_position();
  ready->said = render(sink, sources_);
  say(ready->said);
  if (!compiled) return compiled.error();
  ready->compiled = *std::move(compiled);
  if (device) {
    ASSIGN_OR_RETURN(ready->plan, engine_->plan(ready->compiled, sources_, run.engine, timings, &tables));
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
  RETURN_IF_ERROR(forget_changed_files());
  DiagnosticSink sink;
  auto query = errors_of(
      [&] {
        return queries().prepare(span_of(statement), sources_, until, sink, timings,
                                 statement.sql->as);
      });
  // A planner that was broken off may not know the tables that the session has.
  if (!query && query.error().fault != Fault::input && sql_) sql_->reopen();
  say(render(sink, sources_));
  return query;
}

SqlQueries& Session::queries() {
  if (!sql_)
    sql_.emplace(
        source_, planner_,
        [this](const std::string& name, const planner::FileCall* call) {
          return open_file(name, call);
        },
        files::readers(), least_saved_);
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
void Session::warn_of_simulation(const hir::Program& program, const reference::Tables& tables) {
  constexpr uint64_t many_bytes = 100'000'000;
  if (warned_of_simulation_ || !source_) return;
  uint64_t bytes = 0;
  for (const auto& [table, names] : data::columns_read(program).tables)
    for (const std::string& name : names)
      if (auto column = tables.part(table, name, data::ColumnPart::values_with_zeros))
        bytes += (*column)->data->size() +
                 ((*column)->foreign_rows ? (*column)->foreign_rows->size() : 0);
  if (bytes <= many_bytes) return;
  warned_of_simulation_ = true;
  say(fmt::format("warning: the simulator gets {:.0f} MB of columns, and is slow: --device cuda or "
                  "cpu, or less data\n",
                  static_cast<double>(bytes) * 1e-6));
}

Result<Session::Outcome> Session::run(const NamedSource& program, const RunOptions& options) {
  RETURN_IF_ERROR(attach(*choice_));
  const CancelToken token(options.limits, CancelToken::current());
  const CancelScope scope(token);
  differences_.clear();
  auto outcome = errors_of([&] { return run_within(program, options); });
  if (outcome) outcome->differences = std::move(differences_);  // of all queries that the statement ran
  else if (!differences_.empty()) return proven(program.name, {.differences = std::move(differences_)}).error();  // whatever came after
  return outcome;
}

Result<Session::Outcome> Session::run_within(const NamedSource& program, const RunOptions& options) {
  if (options.prove && choice_->is_cpu())
    return usage_error("--prove compares with the reference interpreter, which the device cpu is: name another");
  std::optional<ResultMemory::OnHost> read_here;
  if (options.prove) read_here.emplace();
  if (program.sql) return run_statement(program, options);
  ASSIGN_OR_RETURN(Outcome outcome, run_program(program, options, {}));
  if (options.prove) RETURN_IF_ERROR(prove(program.name, options, outcome));
  return outcome;
}

Result<Session::Outcome> Session::run_query(const NamedSource& program, const RunOptions& options) {
  Timings timings;
  const SqlQuery* query = nullptr;
  {
    const SendsAhead ahead(*this, options, timings);
    ASSIGN_OR_RETURN(query, prepare_sql(program, SqlQueries::Until::program, timings));
  }
  const sql::Translation& translation = *query->translation;
  RunOptions own = options;
  own.compile.numbers_as_parameters = true;
  own.code += " numbers";
  Result<Outcome> ran = run_program({program.name, "<program of " + program.file + ">", translation.program},
                                    own, std::move(timings), query->ranges);
  if (!ran) return told_of_query(ran.error(), translation, span_of(program));
  Outcome outcome = *std::move(ran);
  outcome.columns = translation.columns;
  outcome.is_sql = true;
  if (options.prove) RETURN_IF_ERROR(prove(program.name, own, outcome));
  return outcome;
}

// What a program requires is said where it stands in the query.
Error Session::told_of_query(Error error, const sql::Translation& translation, Span query) {
  if (error.fault != Fault::input || error.subject.empty()) return error;
  for (const auto& [line, place] : translation.places) {
    if (line != error.line) continue;
    DiagnosticSink sink;
    sink.error("sql-run", queries().place_of(query, place.offset, place.length), "{}",
               error.subject);
    say(render(sink, sources_));
    return {Fault::input, ""};
  }
  return error;
}

Result<Session::Outcome> Session::run_program(const NamedSource& program, const RunOptions& options,
                                              Timings timings, Ranges ranges) {
  forget_ranges();
  uint64_t encoded = engine_ ? engine_->columns_encoded() : 0, sent = engine_ ? engine_->column_bytes() : 0;
  uint64_t pinned = engine_ ? engine_->pinned_column_bytes() : 0, mapped = engine_ ? engine_->mapped_column_bytes() : 0;
  ASSIGN_OR_RETURN(Ready * ready, prepare(program, options, timings, std::move(ranges)));
  const reference::Tables& tables = ready->tables ? *ready->tables : *tables_;
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
    if (device->info().is_simulator) warn_of_simulation(ready->compiled.program, tables);
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
      report.host_work = plan->host_work();
      report.columns_encoded = engine_->columns_encoded() - std::exchange(encoded, engine_->columns_encoded());
      report.column_bytes = engine_->column_bytes() - std::exchange(sent, engine_->column_bytes());
      report.pinned_column_bytes = engine_->pinned_column_bytes() - std::exchange(pinned, engine_->pinned_column_bytes());
      report.mapped_column_bytes = engine_->mapped_column_bytes() - std::exchange(mapped, engine_->mapped_column_bytes());
      if (run == 1)
        for (const std::string& w : report.host_work) say(fmt::format("note: host work: {}\n", w));
      if (!results) {
        Error error = results.error();
        if (options.prove && error.fault == Fault::input) error = prove_failure(program.name, options, std::move(error));
        ready_.pop_back();
        return error;
      }
      outcome.results = *std::move(results);
      report.fallbacks = plan->fallbacks();
      report.fallbacks.insert(report.fallbacks.end(), met.begin(), met.end());
      outcome.fallbacks = report.fallbacks.size();
      if (options.prove)
        for (const KernelReport& k : report.kernels)
          if (k.launches) (k.kind == "outlined" ? outcome.outlined : outcome.library).push_back(k.name);
    } else {
      auto scope = timings.measure(Phase::cpu, "reference interpreter");
      data::TimedTables timed(tables, timings);
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

}  // namespace rndn::runtime
