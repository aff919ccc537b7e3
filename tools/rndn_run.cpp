// `rndn run`, and the run of programs that `rndn tpch run` shares.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "libraries/base/report/json.h"
#include "libraries/base/system/files.h"
#include "tools/rndn.h"
#include "tools/session.h"

namespace rndn::tools {
namespace {

// Where results go, piece by piece: one file, which takes its place when all are there, or one csv file per program.
class Output {
 public:
  Output(const Flags& flags, size_t programs) : path_(flags.output), most_rows_(shown_rows(flags)), is_many_(programs > 1) {
    std::string format = flags.format;
    if (format.empty() && !is_many_)
      if (const std::string end = std::filesystem::path(path_).extension(); !end.empty()) format = end.substr(1);
    if (format == "parquet" || format == "arrow") saved_as_ = format;
    runtime::find_format(format, format_);
    is_folder_ = is_many_ && format_ == runtime::Format::csv;
  }

  Result<void> start(const std::vector<NamedSource>& programs) {
    if (!saved_as_.empty() && (path_ == "-" || is_many_))
      return usage_error("--format {} is of one query, and needs -o FILE", saved_as_);
    if (!is_many_) return check_writable(path_);
    if (is_folder_ && path_ == "-") return usage_error("--format csv of several programs needs -o DIR");
    std::set<std::string> names;
    for (const NamedSource& p : programs)
      if (format_ != runtime::Format::table && !names.insert(p.name).second)
        return usage_error("two programs are called `{}`: their results would overwrite each other", p.name);
    if (!is_folder_) return check_writable(path_);
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    if (error) return world_error("cannot make folder `{}`: {}", path_, error.message());
    return {};
  }
  Result<void> add(const std::string& name, const Session::Outcome& outcome) {
    if (!saved_as_.empty()) return runtime::save(outcome, path_, "FORMAT " + saved_as_);
    if (is_folder_) {
      ASSIGN_OR_RETURN(NewFile file, NewFile::create(fmt::format("{}/{}.csv", path_, name)));
      RETURN_IF_ERROR(print(outcome, format_, most_rows_, [&](std::string_view piece) { return file.write(piece); }));
      return file.commit();
    }
    if (format_ == runtime::Format::json) {
      std::fputs(outcome.printed.c_str(), stderr);  // what @print writes must not break the object
      return is_many_ ? add_member(name, outcome) : print_here(outcome);
    }
    RETURN_IF_ERROR(put(outcome.printed));
    if (is_many_) RETURN_IF_ERROR(put(name + "\n"));
    RETURN_IF_ERROR(print_here(outcome));
    return put(is_many_ ? "\n" : "");
  }
  // Several programs in one file are one result: where one has failed, the file stays as it was.
  Result<void> finish(bool failed) {
    if (failed && path_ != "-") return {};
    if (members_ > 0) RETURN_IF_ERROR(put("}\n"));
    if (path_ == "-" || is_folder_ || !saved_as_.empty()) return {};
    RETURN_IF_ERROR(put(""));
    return file_->commit();
  }

 private:
  Result<void> put(std::string_view text) {
    if (path_ == "-") return write_file("-", text);
    if (!file_) {
      ASSIGN_OR_RETURN(NewFile file, NewFile::create(path_));
      file_.emplace(std::move(file));
    }
    return file_->write(text);
  }
  Result<void> print_here(const Session::Outcome& outcome) {
    return print(outcome, format_, most_rows_, [&](std::string_view piece) { return put(piece); });
  }
  // A member of the object that several results are, without the end of its last line.
  Result<void> add_member(const std::string& name, const Session::Outcome& outcome) {
    RETURN_IF_ERROR(put((members_++ ? ",\n" : "{") + json_string(name) + ":"));
    if (!outcome.has_result) return put("null");
    size_t held = 0;  // ends of lines that came last
    return print(outcome, format_, most_rows_, [&](std::string_view piece) -> Result<void> {
      const size_t end = piece.find_last_not_of('\n') + 1;  // 0: there is nothing else
      if (end > 0) RETURN_IF_ERROR(put(std::string(std::exchange(held, 0), '\n')));
      held += piece.size() - end;
      return put(piece.substr(0, end));
    });
  }

  std::string path_;
  uint64_t most_rows_;
  runtime::Format format_ = runtime::Format::table;
  bool is_many_, is_folder_ = false;
  std::string saved_as_;  // by Session's save; empty: as text
  std::optional<NewFile> file_;
  size_t members_ = 0;
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
  TimeTarget time;
  if (!flags.time.empty()) {
    auto target = time_target(flags.time);
    if (!target) return fail(target.error());
    time = *target;
    if (!time.file.empty())
      if (auto writable = check_writable(time.file); !writable) return fail(writable.error());
  }
  Output output(flags, programs.size());
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
    if (auto proven = Session::proven(program.name, *outcome); !proven)
      exit_code = std::max(exit_code, fail(proven.error()));
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
