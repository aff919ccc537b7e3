// `rndn run`, and the run of programs that `rndn tpch run` shares.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <set>

#include "libraries/base/files.h"
#include "runtime/engine.h"
#include "runtime/tables.h"
#include "tools/rndn.h"

namespace rndn::tools {
namespace {

struct TimeTarget {
  runtime::TimeFormat format = runtime::TimeFormat::text;
  std::string file;  // empty: stderr
};

Result<TimeTarget> time_target(const std::string& text) {
  TimeTarget target;
  size_t colon = text.find(':');
  if (!runtime::find_time_format(text.substr(0, colon), target.format) || colon + 1 == text.size())
    return usage_error("--time is text, json, html or trace, with :FILE if wanted, not `{}`", text);
  if (colon != std::string::npos) target.file = text.substr(colon + 1);
  return target;
}

// Compiles and runs one program `repeat` times; results of the last run.
Result<std::vector<reference::Value>> run_program(const NamedSource& program, const Flags& flags,
                                                  runtime::CompileOptions options, DeviceChoice& choice,
                                                  std::unique_ptr<runtime::Engine>& engine,
                                                  const reference::Tables& tables, SourceManager& sources,
                                                  hir::Program& typed, std::string& printed,
                                                  std::vector<runtime::RunReport>& reports) {
  DiagnosticSink sink;
  Timings timings;
  runtime::RunReport report{.program = program.name,
                            .arch = "",
                            .device = "cpu",
                            .backend = "reference",
                            .timings = {},
                            .kernels = {},
                            .fallbacks = {}};
  device::Device* device = nullptr;
  FileId file = sources.add(program.file, program.text);
  if (choice.is_cpu() || choice.is_starting()) {
    // While a GPU starts (0.3 s), the columns that the program reads can load. A program that is wrong ends here: no device is needed to say so.
    DiagnosticSink early_sink;
    Timings early_timings;
    runtime::CompileOptions typed_only = options;
    typed_only.until = runtime::Stage::typed;
    auto early = runtime::compile(file, sources, typed_only, early_sink, early_timings);
    if (!early) {
      early_sink.sort_by_position();
      print_diagnostics(early_sink, sources);
      return early.error();
    }
    auto scope = timings.measure(Phase::data, "prefetch");
    for (const auto& [table, columns] : runtime::columns_read(early->program))
      (void)tables.prefetch(table, columns).ok();  // a problem is met again, and said, by the run
  }
  if (choice.is_cpu()) {
    options.until = runtime::Stage::typed;
  } else {
    ASSIGN_OR_RETURN(device, choice.open());
    if (!engine) engine = std::make_unique<runtime::Engine>(*device, tables);
    if (flags.arch.empty()) options.target = device->info().target;
    if (options.backend.kind == runtime::Backend::driver && device->info().is_simulator)
      return usage_error("--backend driver needs a GPU: the simulator has no PTX compiler");
    report.arch = options.target;
    report.device = device->info().name;
    report.backend = options.backend.text();
  }
  auto compiled = runtime::compile(file, sources, options, sink, timings);
  sink.sort_by_position();
  print_diagnostics(sink, sources);
  if (!compiled) return compiled.error();
  typed = compiled->program;

  std::unique_ptr<runtime::Engine::Plan> plan;
  if (device) {
    runtime::EngineOptions engine_options{
        .strict = flags.strict, .allow_fallback = !flags.no_fallback, .measure_kernels = !flags.time.empty()};
    ASSIGN_OR_RETURN(plan, engine->plan(*compiled, sources, engine_options, timings));
    for (const std::string& f : plan->fallbacks())
      std::fprintf(stderr, "warning: %s runs on the reference interpreter\n", f.c_str());
    report.fallbacks = plan->fallbacks();
  }
  std::vector<reference::Value> results;
  for (unsigned run = 1; run <= flags.repeat; ++run) {
    report.run = run;
    report.kernels.clear();
    std::string said;
    if (device) {
      ASSIGN_OR_RETURN(results, engine->run(*plan, timings, &said, &report.kernels));
    } else {
      auto scope = timings.measure(Phase::cpu, "reference interpreter");
      runtime::TimedTables timed(tables, timings);
      ASSIGN_OR_RETURN(results, reference::run(compiled->program, timed, sources, &said));
    }
    if (run == flags.repeat) printed = std::move(said);
    if (!flags.time.empty()) {
      report.timings = timings;
      reports.push_back(report);
    }
    timings.reset();
  }
  return results;
}

// Where results go: one file, or one csv file per program.
class Output {
 public:
  Output(const Flags& flags, runtime::Format format, size_t programs)
      : path_(flags.output), format_(format), programs_(programs) {}

  Result<void> start(const std::vector<NamedSource>& programs) {
    if (programs_ < 2) return {};
    bool csv = format_ == runtime::Format::csv;
    if (csv && path_ == "-") return usage_error("--format csv of several programs needs -o DIR");
    std::set<std::string> names;
    for (const NamedSource& p : programs)
      if (format_ != runtime::Format::table && !names.insert(p.name).second)
        return usage_error("two programs are called `{}`: their results would overwrite each other", p.name);
    if (!csv) return {};
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    if (error) return world_error("cannot make folder `{}`: {}", path_, error.message());
    return {};
  }
  Result<void> add(const std::string& name, const std::string& printed, const std::vector<reference::Value>& results) {
    ASSIGN_OR_RETURN(std::string text, runtime::print_result(results, format_));
    if (format_ == runtime::Format::csv && programs_ > 1)
      return write_file(fmt::format("{}/{}.csv", path_, name), text);
    if (format_ == runtime::Format::json && programs_ > 1) {
      named_.emplace_back(name, std::move(text));
      std::fputs(printed.c_str(), stderr);  // what @print writes must not break the object
      return {};
    }
    if (format_ == runtime::Format::json)
      std::fputs(printed.c_str(), stderr);
    else
      text_ += printed;
    if (programs_ > 1) text_ += name + "\n";
    text_ += text;
    if (programs_ > 1) text_ += "\n";
    if (path_ == "-") {  // each program's result as soon as it is there
      RETURN_IF_ERROR(write_file("-", text_));
      text_.clear();
    }
    return {};
  }
  Result<void> finish() {
    if (!named_.empty()) text_ = runtime::join_json(named_);
    if (format_ == runtime::Format::csv && programs_ > 1) return {};
    if (path_ == "-" && text_.empty()) return {};
    return write_file(path_, text_);
  }

 private:
  std::string path_;
  runtime::Format format_;
  size_t programs_;
  std::string text_;
  std::vector<std::pair<std::string, std::string>> named_;
};

class RunCommand final : public Command {
 public:
  explicit RunCommand(CLI::App& program) {
    app = program.add_subcommand("run", "compile and run programs in one process, print the tables that they return");
    app->add_option("program", paths_, "HorseIR files, - for stdin")->required()->type_name("PROGRAM.hir");
    add_data_flags(*app, flags_);
    add_run_flags(*app, flags_);
    add_compiler_flags(*app, flags_);
    add_language_flags(*app, flags_);
  }
  int execute() override {
    auto device = DeviceChoice::start(flags_);
    if (!device) return fail(device.error());
    auto programs = read_programs(paths_);
    if (!programs) return fail(programs.error());
    auto source = open_data(flags_.data);
    if (!source) return fail(source.error());
    return run_programs(*programs, flags_, *source, *device, nullptr);
  }

 private:
  std::vector<std::string> paths_;
  Flags flags_;
};

}  // namespace

int run_programs(const std::vector<NamedSource>& programs, const Flags& flags, std::shared_ptr<data::Source> source,
                 DeviceChoice& device, Check* check) {
  runtime::Format format = runtime::Format::table;
  runtime::find_format(flags.format, format);
  TimeTarget time;
  if (!flags.time.empty()) {
    auto target = time_target(flags.time);
    if (!target) return fail(target.error());
    time = *target;
  }
  auto options = compile_options(flags);
  if (!options) return fail(options.error());
  std::unique_ptr<reference::Tables> tables;
  if (source) {
    tables = std::make_unique<runtime::SourceTables>(source);
    options->schema = &source->schema();
  } else {
    tables = std::make_unique<runtime::NoTables>();
  }
  Output output(flags, format, programs.size());
  if (auto started = output.start(programs); !started) return fail(started.error());

  std::unique_ptr<runtime::Engine> engine;
  std::vector<runtime::RunReport> reports;
  SourceManager sources;
  int exit_code = 0;
  for (const NamedSource& program : programs) {
    hir::Program typed;
    std::string printed;
    auto results = run_program(program, flags, *options, device, engine, *tables, sources, typed, printed, reports);
    if (!results) {
      exit_code = std::max(exit_code, fail(results.error()));
      break;
    }
    if (auto added = output.add(program.name, printed, *results); !added) return fail(added.error());
    if (check) {
      auto right = check->check(program, typed, sources, *results, *tables);
      if (!right) exit_code = std::max(exit_code, fail(right.error()));
    }
  }
  if (auto finished = output.finish(); !finished) return fail(finished.error());
  if (!flags.time.empty() && !reports.empty()) {
    std::string text = runtime::report(reports, time.format);
    if (time.file.empty())
      std::fputs(text.c_str(), stderr);
    else if (auto written = write_file(time.file, text); !written)
      return fail(written.error());
  }
  return exit_code;
}

std::unique_ptr<Command> run_command(CLI::App& program) { return std::make_unique<RunCommand>(program); }

}  // namespace rndn::tools
