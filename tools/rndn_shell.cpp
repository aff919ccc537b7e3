// `rndn shell`: programs one at a time, typed or from files, with columns and library modules kept on the device between them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "libraries/base/files.h"
#include "tools/rndn.h"
#include "tools/session.h"

namespace rndn::tools {
namespace {

constexpr const char* help =
    "FILE.hir              run a program\n"
    "module m { ... }      run the program typed here; it ends with the brace that closes its last module\n"
    ".query N              run a TPC-H query\n"
    ".tables               the tables, with their columns and types\n"
    ".time on|off          a timing tree after each program\n"
    ".format F             of results: table, csv, json\n"
    ".repeat N             runs of each program\n"
    ".help                 this text\n"
    ".quit                 end (so does the end of the input)\n";

// How many braces are open after `line`, outside comments, texts and characters.
class Braces {
 public:
  void add(std::string_view line) {
    for (size_t i = 0; i < line.size(); ++i) {
      const char c = line[i], next = i + 1 < line.size() ? line[i + 1] : '\0';
      if (comment_) {
        if (c == '*' && next == '/') comment_ = false, ++i;
      } else if (c == '/' && next == '*') {
        comment_ = true;
        ++i;
      } else if (c == '/' && next == '/') {
        return;
      } else if (c == '"' || c == '\'') {
        for (++i; i < line.size() && line[i] != c; ++i)
          if (line[i] == '\\') ++i;
      } else if (c == '{') {
        ++open_;
        any_ = true;
      } else if (c == '}') {
        --open_;
      }
    }
  }
  bool complete() const { return any_ && open_ <= 0 && !comment_; }

 private:
  int open_ = 0;
  bool any_ = false, comment_ = false;
};

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\n' || s.back() == '\r'))
    s.remove_suffix(1);
  return s;
}

std::string type_of(const data::ColumnSchema& column) {
  const std::string_view type = hir::basic_type_name(column.type);
  return column.is_foreign_key() ? fmt::format("enum<{}> ({}.{})", type, column.foreign_table, column.foreign_key)
                                 : std::string(type);
}

class ShellCommand final : public Command {
 public:
  explicit ShellCommand(CLI::App& program) {
    app = program.add_subcommand("shell", "run programs as they are typed, with tables kept on the device");
    add_data_flags(*app, flags_);
    add_cache_flags(*app, flags_);
    add_run_flags(*app, flags_);
    add_compiler_flags(*app, flags_);
    add_language_flags(*app, flags_);
  }

  int execute() override {
    auto device = DeviceChoice::start(flags_);
    if (!device) return fail(device.error());
    if (auto options = compile_options(flags_); !options) return fail(options.error());
    auto source = open_data(flags_.data, flags_);
    if (!source) return fail(source.error());
    session_.emplace(*source, *std::move(device));
    interactive_ = isatty(STDIN_FILENO);
    if (interactive_) std::fputs("rndn shell; .help lists the commands\n", stderr);

    std::string typed;
    Braces braces;
    char* line = nullptr;
    size_t room = 0;
    while (prompt(typed.empty()), getline(&line, &room, stdin) >= 0) {
      const std::string_view words = trim(line);
      if (typed.empty()) {
        if (words.empty()) continue;
        if (words == ".quit") break;
        if (words.front() == '.' && !words.ends_with(".hir")) {
          command(words);
          continue;
        }
        if (words.ends_with(".hir") && words.find_first_of(" {") == std::string_view::npos) {
          run_file(std::string(words));
          continue;
        }
      }
      typed += line;
      braces.add(line);
      if (!braces.complete()) continue;
      run_typed(std::move(typed));
      typed.clear();
      braces = {};
    }
    std::free(line);
    if (!trim(typed).empty()) run_typed(std::move(typed));  // what is missing is said by the parser
    if (interactive_) std::fputc('\n', stderr);
    return interactive_ ? 0 : exit_code_;
  }

 private:
  void prompt(bool fresh) {
    if (interactive_) std::fputs(fresh ? "rndn> " : "  ... ", stderr);
  }
  void failed(const Error& error) { exit_code_ = std::max(exit_code_, fail(error)); }

  void run_typed(std::string text) {
    const std::string name = fmt::format("input{}", ++typed_);
    run({name, "<" + name + ">", std::move(text)});
  }
  void run_file(const std::string& path) {
    auto programs = read_programs({path});
    if (!programs) return failed(programs.error());
    run(programs->front());
  }
  void run(const NamedSource& program) {
    runtime::Format format = runtime::Format::table;
    runtime::find_format(flags_.format, format);
    auto outcome = session_->run(program, flags_, !flags_.time.empty());
    if (!outcome) return failed(outcome.error());
    auto text = runtime::print_result(outcome->results, format);
    if (!text) return failed(text.error());
    if (auto written = write_file("-", outcome->printed + *text); !written) return failed(written.error());
    if (!flags_.time.empty()) std::fputs(runtime::report(outcome->reports, runtime::TimeFormat::text).c_str(), stderr);
  }

  void command(std::string_view words) {
    const size_t space = words.find(' ');
    const std::string name(words.substr(0, space));
    const std::string argument(space == std::string_view::npos ? "" : trim(words.substr(space)));
    char* end = nullptr;
    const unsigned long number = std::strtoul(argument.c_str(), &end, 10);
    const bool is_number = !argument.empty() && argument[0] >= '0' && argument[0] <= '9' && *end == 0;
    runtime::Format format;
    if (name == ".help") {
      std::fputs(help, stderr);
    } else if (name == ".tables" && argument.empty()) {
      tables();
    } else if (name == ".time" && (argument == "on" || argument == "off")) {
      flags_.time = argument == "on" ? "text" : "";
    } else if (name == ".format" && runtime::find_format(argument, format)) {
      flags_.format = argument;
    } else if (name == ".repeat" && is_number && number >= 1 && number <= 1000000) {
      flags_.repeat = static_cast<unsigned>(number);
    } else if (name == ".query" && is_number) {
      for (const EmbeddedQuery& q : embedded_queries())
        if (static_cast<unsigned long>(q.number) == number)
          return run({fmt::format("q{:02}", q.number), q.file, q.text});
      failed(usage_error("there is no query {}", argument));
    } else {
      failed(usage_error("`{}` is no command of the shell; .help lists them", words));
    }
  }

  void tables() {
    if (!session_->source()) return failed(usage_error("there are no tables without --data"));
    std::string text;
    for (const data::TableSchema& table : session_->source()->schema().tables) {
      text += table.name + "\n";
      for (const data::ColumnSchema& column : table.columns)
        text += fmt::format("    {:<20} {}\n", column.name, type_of(column));
    }
    if (auto written = write_file("-", text); !written) failed(written.error());
  }

  Flags flags_;
  std::optional<Session> session_;
  bool interactive_ = false;
  int typed_ = 0, exit_code_ = 0;
};

}  // namespace

std::unique_ptr<Command> shell_command(CLI::App& program) { return std::make_unique<ShellCommand>(program); }

}  // namespace rndn::tools
