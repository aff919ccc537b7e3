// `rndn run`, and the run of programs that `rndn tpch run` shares.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <set>

#include "libraries/base/system/files.h"
#include "tools/rndn.h"
#include "tools/session.h"

namespace rndn::tools {
namespace {

// Where results go: one file, or one csv file per program.
class Output {
 public:
  Output(const Flags& flags, runtime::Format format, size_t programs)
      : path_(flags.output), most_rows_(shown_rows(flags)), format_(format), programs_(programs), saved_as_(flags.format == "parquet" || flags.format == "arrow" ? flags.format : "") {}

  Result<void> start(const std::vector<NamedSource>& programs) {
    if (!saved_as_.empty() && (path_ == "-" || programs_ > 1))
      return usage_error("--format {} is of one query, and needs -o FILE", saved_as_);
    if (programs_ < 2) return check_writable(path_);
    bool csv = format_ == runtime::Format::csv;
    if (csv && path_ == "-") return usage_error("--format csv of several programs needs -o DIR");
    std::set<std::string> names;
    for (const NamedSource& p : programs)
      if (format_ != runtime::Format::table && !names.insert(p.name).second)
        return usage_error("two programs are called `{}`: their results would overwrite each other", p.name);
    if (!csv) return check_writable(path_);
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    if (error) return world_error("cannot make folder `{}`: {}", path_, error.message());
    return {};
  }
  Result<void> add(const std::string& name, const Session::Outcome& outcome) {
    const std::string& printed = outcome.printed;
    if (!saved_as_.empty()) return runtime::save(outcome, path_, "FORMAT " + saved_as_);
    ASSIGN_OR_RETURN(std::string text, print(outcome, format_, most_rows_));
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
  // Several programs in one file are one result: where one has failed, the file stays as it was.
  Result<void> finish(bool failed) {
    if (failed && path_ != "-") return {};
    if (!named_.empty()) text_ = runtime::join_json(named_);
    if (format_ == runtime::Format::csv && programs_ > 1) return {};
    if (!saved_as_.empty() || (path_ == "-" && text_.empty())) return {};
    return write_file(path_, text_);
  }

 private:
  std::string path_;
  uint64_t most_rows_;
  runtime::Format format_;
  size_t programs_;
  std::string saved_as_;  // by Session's save; empty: as text
  std::string text_;
  std::vector<std::pair<std::string, std::string>> named_;
};

class RunCommand final : public Command {
 public:
  explicit RunCommand(CLI::App& program) {
    app = program.add_subcommand("run", "compile and run programs in one process, print the tables that they return");
    app->add_option("program", paths_, "HorseIR files, - for stdin")->required()->type_name("PROGRAM.hir");
    add_data_flags(*app, flags_);
    add_cache_flags(*app, flags_);
    add_run_flags(*app, flags_);
    add_compiler_flags(*app, flags_);
    add_language_flags(*app, flags_);
  }
  int execute() override {
    auto device = DeviceChoice::start(flags_);
    if (!device) return fail(device.error());
    // `--time json` reads as the flag and a program `json`.
    runtime::TimeFormat format;
    for (const std::string& path : paths_)
      if (!flags_.time.empty() && runtime::find_time_format(path.substr(0, path.find(':')), format) &&
          !std::filesystem::exists(path))
        return fail(usage_error("there is no program `{0}`; a format goes with `=`: --time={0}", path));
    auto programs = read_programs(paths_);
    if (!programs) return fail(programs.error());
    auto source = open_data(source_names(flags_), flags_);
    if (!source) return fail(source.error());
    return run_programs(*programs, flags_, *source, *std::move(device), nullptr);
  }

 private:
  std::vector<std::string> paths_;
  Flags flags_;
};

}  // namespace

int run_programs(const std::vector<NamedSource>& programs, const Flags& flags, std::shared_ptr<data::Source> source,
                 DeviceChoice device, Check* check) {
  runtime::Format format = runtime::Format::table;
  runtime::find_format(flags.format, format);
  TimeTarget time;
  if (!flags.time.empty()) {
    auto target = time_target(flags.time);
    if (!target) return fail(target.error());
    time = *target;
    if (!time.file.empty())
      if (auto writable = check_writable(time.file); !writable) return fail(writable.error());
  }
  Output output(flags, format, programs.size());
  if (auto started = output.start(programs); !started) return fail(started.error());

  Session session(std::move(source), std::move(device), file_cache(flags));
  std::vector<runtime::RunReport> reports;
  int exit_code = 0;
  bool failed = false;
  for (const NamedSource& program : programs) {
    auto outcome = session.run(program, flags, !flags.time.empty());
    if (!outcome) {
      failed = true;
      exit_code = std::max(exit_code, fail(outcome.error()));
      break;
    }
    if (auto added = output.add(program.name, *outcome); !added) return fail(added.error());
    reports.insert(reports.end(), outcome->reports.begin(), outcome->reports.end());
    if (check) {
      auto right = check->check(program, *outcome->typed, session.sources(), outcome->results, session.tables());
      if (!right) exit_code = std::max(exit_code, fail(right.error()));
    }
  }
  if (auto finished = output.finish(failed); !finished) return fail(finished.error());
  if (!flags.time.empty() && !reports.empty())
    if (auto written = write_reports(reports, time); !written) return fail(written.error());
  return exit_code;
}

std::unique_ptr<Command> run_command(CLI::App& program) { return std::make_unique<RunCommand>(program); }

}  // namespace rndn::tools
