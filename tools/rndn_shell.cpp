// `rndn shell`: SQL queries and programs one at a time, typed or from files, with columns and library modules kept on
// the device between them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "libraries/base/system/files.h"
#include "libraries/base/system/interrupt.h"
#include "runtime/planner/commands.h"
#include "runtime/planner/database.h"
#include "runtime/planner/statements.h"
#include "tools/rndn.h"
#include "tools/session.h"

namespace rndn::tools {
namespace {

constexpr const char* help =
    "SELECT ..;            run a query of SQL, over several lines until the semicolon; also SHOW TABLES, DESCRIBE T,\n"
    "                      SUMMARIZE T, EXPLAIN [ANALYZE] QUERY, PREPARE N AS QUERY, EXECUTE N(VALUE, ..), DEALLOCATE N\n"
    "FILE.hir, FILE.sql    run a program, or the queries of a file\n"
    "module m { ... }      run the program typed here; it ends with the brace that closes its last module\n"
    "                      (it begins with module, def, kernel, import, global or a comment)\n"
    ".cancel               forget what was typed of a program or query; empty lines are part of it\n"
    ".query N              run a TPC-H query\n"
    ".hir, .sql            only HorseIR can be typed; SQL, too (as in the beginning)\n"
    ".tables               the tables, with their columns and HorseIR's types\n"
    ".schema [TABLE]       the tables as SQL declares them\n"
    ".explain QUERY        the query, its plan, program and kernels\n"
    ".time on|off          a timing tree after each program\n"
    ".format F             of results: table, csv, json\n"
    ".repeat N             runs of each program\n"
    ".help [BUILTIN|sql]   this text; what a builtin of HorseIR does; what SQL may hold\n"
    ".quit                 end (so does the end of the input)\n"
    "A line that begins with a dot is a command, also within a program.\n";

constexpr std::string_view commands[] = {".cancel", ".query",  ".hir",    ".sql",  ".tables", ".schema",
                                         ".explain", ".time", ".format", ".repeat", ".help", ".quit"};

// Commands that are also known by a word of their own, a semicolon behind it or not.
struct Word {
  std::string_view word, command;
};
constexpr Word words_of_commands[] = {{"help", ".help"}, {"?", ".help"},    {"\\?", ".help"},
                                      {"\\h", ".help"},  {"quit", ".quit"}, {"exit", ".quit"},
                                      {"\\q", ".quit"},  {"\\d", ".tables"}};
// The line as a command; empty: it is none of these.
std::string as_command(std::string_view line) {
  if (line.ends_with(';')) line.remove_suffix(1);
  const size_t space = line.find(' ');
  for (const Word& known : words_of_commands)
    if (line.substr(0, space) == known.word && (space == line.npos || known.command == ".help"))
      return std::string(known.command) + std::string(line.substr(std::min(space, line.size())));
  return {};
}

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
  bool any() const { return any_; }
  bool in_comment() const { return comment_; }

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

// What a line that begins no program says when it is not a command either.
std::string not_a_program(std::string_view line) {
  const std::string word(line.substr(0, line.find_first_of(" \t(;{")));
  std::string hint;
  for (std::string_view command : commands)
    if (command.substr(1) == word) hint = fmt::format("; did you mean `{}`?", command);
  if (word == "q") hint = "; did you mean `.quit`?";
  return fmt::format("`{}` begins no program{} (.help says what can be typed here)", word, hint);
}

bool begins_program(std::string_view line) {
  for (std::string_view word : {"module", "def", "kernel", "import", "global"}) {
    if (!line.starts_with(word)) continue;
    const char next = line.size() > word.size() ? line[word.size()] : ' ';
    if (!std::isalnum(static_cast<unsigned char>(next)) && next != '_') return true;
  }
  return false;
}

bool begins_comment(std::string_view line) { return line.starts_with("//") || line.starts_with("/*"); }

std::string type_of(const data::ColumnSchema& column) {
  const std::string_view type = hir::basic_type_name(column.type);
  return column.is_foreign_key() ? fmt::format("enum<{}> ({}.{})", type, column.foreign_table, column.foreign_key)
                                 : std::string(type);
}

class ShellCommand final : public Command {
 public:
  explicit ShellCommand(CLI::App& program) {
    app = program.add_subcommand("shell", "run queries and programs as they are typed, with tables kept on the device");
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
    if (!flags_.time.empty()) {
      auto target = time_target(flags_.time);
      if (!target) return fail(target.error());
      time_ = *target;
      timing_ = true;
      if (!time_.file.empty())
        if (auto writable = check_writable(time_.file); !writable) return fail(writable.error());
    }
    auto source = open_data(source_names(flags_), flags_);
    if (!source) return fail(source.error());
    if (auto writable = check_writable(flags_.output); !writable) return fail(writable.error());
    session_.emplace(*source, *std::move(device), file_cache(flags_));
    interactive_ = isatty(STDIN_FILENO);
    if (interactive_) std::signal(SIGTERM, SIG_DFL);  // it would wait for a line
    if (interactive_) std::fputs("rndn shell; .help lists the commands\n", stderr);

    char* line = nullptr;
    size_t room = 0;
    while (read_line(line, room)) {
      std::string_view words = trim(line);
      if (!query_.empty() && !words.starts_with('.')) {
        query_ += line;
        run_queries(false);
        continue;
      }
      const bool fresh = !begun_ && !braces_.in_comment();
      const std::string meant = fresh ? as_command(words) : "";
      if (!meant.empty()) words = meant;
      if (fresh && takes_sql_ && (words.starts_with("--") || planner::begins_sql(words))) {
        forget();
        query_ = line;
        run_queries(false);
        continue;
      }
      if (fresh && words.ends_with(".sql") && !words.starts_with('.') && words.find_first_of(" {") == words.npos) {
        forget();
        run_sql_file(std::string(words));
        continue;
      }
      if (fresh && !words.starts_with('.') && words.ends_with(".hir") && words.find_first_of(" {") == std::string_view::npos) {
        forget();  // comments
        run_file(std::string(words));
        continue;
      }
      if (words.starts_with('.')) {
        if (words == ".quit") {
          forget();
          break;
        }
        command(words);
        continue;
      }
      if (fresh && words.empty()) continue;
      if (fresh && !begins_comment(words)) {
        if (!begins_program(words)) {
          failed(usage_error("{}", not_a_program(words)));
          continue;
        }
        begun_ = true;
      }
      typed_ += line;
      braces_.add(line);
      begun_ |= braces_.any();
      if (!braces_.complete()) continue;
      run_typed();
    }
    std::free(line);
    if (!query_.empty()) run_queries(true);
    if (begun_ || braces_.in_comment()) run_typed();  // what is missing is said by the parser
    if (!reports_.empty())
      if (auto written = write_reports(reports_, time_); !written) failed(written.error());
    if (out_ && std::fclose(out_.release()) != 0)
      failed(world_error("cannot write `{}`: {}", flags_.output, std::strerror(errno)));
    if (interactive_) std::fputc('\n', stderr);
    return interactive_ ? 0 : exit_code_;
  }

 private:
  // The next line. Ctrl-C forgets what was typed; where nobody types it ends the shell, as the end of
  // the input does.
  bool read_line(char*& line, size_t& room) {
    for (;;) {
      if (InterruptScope::is_terminated()) {  // while a statement ran
        failed(check_cancelled().error());
        return false;
      }
      interrupts->reset();
      prompt();
      if (getline(&line, &room, stdin) >= 0) return true;
      if (!interrupts->is_asked()) return false;
      forget();
      if (!interactive_) {
        failed(check_cancelled().error());
        return false;
      }
      std::clearerr(stdin);
      std::fputc('\n', stderr);
    }
  }
  void prompt() {
    if (interactive_) std::fputs(typed_.empty() && query_.empty() ? "rndn> " : "  ... ", stderr);
  }
  void failed(const Error& error) { exit_code_ = std::max(exit_code_, fail(error)); }

  void forget() {
    typed_.clear();
    query_.clear();
    braces_ = {};
    begun_ = false;
  }
  void run_typed() {
    const std::string name = fmt::format("input{}", ++programs_);
    std::string text = std::move(typed_);
    forget();
    run({name, "<" + name + ">", std::move(text)});
  }
  // Runs the statements that have ended, or all; the rest stays.
  void run_queries(bool all) {
    if (!all && planner::is_open(query_)) return;
    const std::vector<planner::Statement> statements = planner::split_statements(query_);
    if (!all && !statements.empty() && !statements.back().ended) return;
    std::string text = std::move(query_);
    forget();
    if (!statements.empty()) run_statements(fmt::format("input{}", ++programs_), std::move(text));
  }
  void run_statements(const std::string& name, std::string text) {
    for (const NamedSource& statement : split_sql(name, "<" + name + ">", std::move(text)))
      if (!interrupts->is_asked()) run(statement);
  }
  void run_sql_file(const std::string& path) {
    auto files = read_programs({path});
    if (!files) return failed(files.error());
    for (const NamedSource& statement : split_sql(files->front().name, path, std::move(files->front().text)))
      if (!interrupts->is_asked()) run(statement);
  }
  void run_file(const std::string& path) {
    auto programs = read_programs({path});
    if (!programs) return failed(programs.error());
    run(programs->front());
  }
  void run(const NamedSource& program) {
    runtime::Format format = runtime::Format::table;
    runtime::find_format(flags_.format, format);
    auto outcome = errors_of([&] { return session_->run(program, flags_, timing_); });
    if (!outcome) return failed(outcome.error());
    auto written = errors_of([&]() -> Result<void> {
      if (format == runtime::Format::json)
        std::fputs(outcome->printed.c_str(), stderr);  // what @print writes must not break the object
      else
        RETURN_IF_ERROR(write(outcome->printed));
      return print(*outcome, format, shown_rows(flags_), [&](std::string_view piece) { return write(piece); });
    });
    if (!written) return failed(written.error());
    if (auto proven = Session::proven(program.name, *outcome); !proven) failed(proven.error());
    if (!timing_) return;
    if (time_.file.empty()) {
      if (auto reported = write_reports(outcome->reports, time_); !reported) failed(reported.error());
    } else {
      reports_.insert(reports_.end(), outcome->reports.begin(), outcome->reports.end());
    }
  }
  // To -o, as soon as a result is there: the first begins the file.
  Result<void> write(std::string_view text) {
    if (flags_.output == "-") return write_file("-", text);
    if (!out_) out_.reset(std::fopen(flags_.output.c_str(), "wb"));
    if (!out_) return world_error("cannot write `{}`: {}", flags_.output, std::strerror(errno));
    if (std::fwrite(text.data(), 1, text.size(), out_.get()) != text.size() || std::fflush(out_.get()) != 0)
      return world_error("cannot write `{}`: {}", flags_.output, std::strerror(errno));
    return {};
  }

  void command(std::string_view words) {
    const size_t space = words.find(' ');
    const std::string name(words.substr(0, space));
    const std::string argument(space == std::string_view::npos ? "" : trim(words.substr(space)));
    char* end = nullptr;
    const unsigned long number = std::strtoul(argument.c_str(), &end, 10);
    const bool is_number = !argument.empty() && argument[0] >= '0' && argument[0] <= '9' && *end == 0;
    runtime::Format format;
    if (name == ".help" && argument.empty()) {
      std::fputs(help, stderr);
    } else if (name == ".help") {
      auto text = help_text(argument);
      if (!text) return failed(text.error());
      if (auto written = write(*text); !written) failed(written.error());
    } else if (name == ".cancel" && argument.empty()) {
      forget();
    } else if (name == ".tables" && argument.empty()) {
      tables();
    } else if ((name == ".hir" || name == ".sql") && argument.empty()) {
      takes_sql_ = name == ".sql";
    } else if (name == ".schema") {
      schema(argument);
    } else if (name == ".explain" && !argument.empty()) {
      run_statements(fmt::format("input{}", ++programs_), "EXPLAIN " + argument);
    } else if (name == ".time" && (argument == "on" || argument == "off")) {
      timing_ = argument == "on";
    } else if (name == ".format" && runtime::find_format(argument, format)) {
      flags_.format = argument;
    } else if (name == ".repeat" && is_number && number >= 1 && number <= 1000000) {
      flags_.repeat = static_cast<unsigned>(number);
    } else if (name == ".query" && is_number) {
      if (auto found = benchmarks()[0].programs(benchmarks()[0].forms[0], argument)) return run(found->front());
      failed(usage_error("there is no query {}", argument));
    } else {
      failed(usage_error("`{}` is no command of the shell; .help lists them", words));
    }
  }

  void schema(const std::string& wanted) {
    if (!session_->source()) return failed(usage_error("there are no tables without --data"));
    std::string text;
    std::vector<std::string_view> names;
    for (const sql::Table& table : session_->queries().catalog().tables) {
      names.push_back(table.name);
      if (!wanted.empty() && table.name != wanted) continue;
      text += "CREATE TABLE " + planner::quote_name(table.name) + " (";
      for (size_t i = 0; i < table.columns.size(); ++i) {
        const sql::Column& c = table.columns[i];
        text += fmt::format("{}\n  {} {}", i ? "," : "", planner::quote_name(c.name), sql::type_name(c.type));
        if (!c.foreign_table.empty())
          text += fmt::format(" REFERENCES {}({})", planner::quote_name(c.foreign_table), planner::quote_name(c.foreign_key));
      }
      for (size_t i = 0; i < table.primary.size(); ++i)
        text += (i ? ", " : ",\n  PRIMARY KEY (") + planner::quote_name(table.primary[i]);
      text += table.primary.empty() ? "\n);\n" : ")\n);\n";
      for (const auto& [column, stored] : table.refused)
        text += fmt::format("-- {} has no type of SQL: it holds {}\n", column, stored);
    }
    if (text.empty()) {
      const std::string_view near = did_you_mean(wanted, names);
      return failed(usage_error("there is no table `{}`{}", wanted,
                                near.empty() ? "" : fmt::format("; did you mean `{}`?", near)));
    }
    if (auto written = write(text); !written) failed(written.error());
  }

  void tables() {
    if (!session_->source()) return failed(usage_error("there are no tables without --data"));
    std::string text;
    for (const data::TableSchema& table : session_->source()->schema().tables) {
      text += table.name + "\n";
      for (const data::ColumnSchema& column : table.columns)
        text += fmt::format("    {:<20} {}\n", column.name, type_of(column));
    }
    if (auto written = write(text); !written) failed(written.error());
  }

  Flags flags_;
  std::optional<Session> session_;
  bool interactive_ = false;
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::unique_ptr<std::FILE, Close> out_;  // -o FILE
  TimeTarget time_;
  bool timing_ = false;
  std::vector<runtime::RunReport> reports_;  // for a file, written at the end
  // The program that is being typed. Not begun: nothing, or comments only.
  std::string typed_;
  std::string query_;  // of SQL, that is being typed
  bool takes_sql_ = true;
  Braces braces_;
  bool begun_ = false;
  int programs_ = 0, exit_code_ = 0;
};

}  // namespace

std::unique_ptr<Command> shell_command(CLI::App& program) { return std::make_unique<ShellCommand>(program); }

}  // namespace rndn::tools
