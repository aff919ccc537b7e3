// The commands of `rndn`, one file each, and what they share: flags, devices, data, and the way that errors leave the program.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/errors/result.h"
#include "libraries/base/system/cancel.h"
#include "runtime/compiler/compile.h"
#include "runtime/data/sources.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/reference/reference.h"
#include "runtime/report.h"
#include "runtime/session/session.h"

namespace CLI {
class App;
}

namespace rndn::tools {

// Flags that several commands have. Each is declared once, by the functions below.
struct Flags {
  std::string data;                       // --data
  std::vector<std::string> tables;        // --table
  std::string device = "auto";            // --device
  std::string device_memory;              // --device-memory; empty: all
  std::string arch;                       // --arch; empty: the device's own
  std::string backend = "rndn";           // --backend
  std::string format;                     // --format; empty: by the end of --output's name, else table
  std::string time;                       // --time, as given; empty: no report
  std::string output = "-";               // -o
  std::string cache;                      // --cache
  std::string outline = "full";           // --outline
  std::string scheduler = "list";         // --scheduler
  std::string fuse_operators = "on";      // --fuse-operators
  std::string dialect;                    // --dialect
  int level = 3;                          // -O
  unsigned repeat = 1;                    // --repeat
  uint64_t max_rows = 40;                 // --max-rows; 0: all
  uint32_t limit_registers = 0;           // --limit-regs
  unsigned threads = 0;                   // --threads; 0: all cores
  std::string sort, group, join, member;  // --sort .. --member; empty: by size
  std::string top;                        // --top; empty: by size and number
  std::string like = "gpu-cached";        // --like
  Limits limits;                          // --timeout, --max-memory
  bool ordered = false;                   // --ordered
  std::string alloc = "pages";            // --alloc
  std::string buffers = "contiguous";     // --buffers
  std::string encode = "narrow";          // --encode
  std::string transfer = "auto";          // --transfer
  const model::Calibration* model = nullptr;  // of no flag: EngineOptions::model
  std::string branch_inlining = "on";     // --branch-inlining
  bool strict = false, no_fallback = false, no_cache = false, verify_passes = false, prove = false;
};
void add_data_flags(CLI::App& command, Flags& flags);
void add_cache_flags(CLI::App& command, Flags& flags);     // --cache, --no-cache
void add_language_flags(CLI::App& command, Flags& flags);  // --strict, --dialect
void add_compiler_flags(CLI::App& command, Flags& flags);  // --arch .. --verify-passes
void add_run_flags(CLI::App& command, Flags& flags);       // --device, --format, --time, --repeat, -o, --no-fallback
void add_encode_flag(CLI::App& command, Flags& flags);     // --encode; of add_run_flags, too
void add_limit_flags(CLI::App& command, Flags& flags);     // --timeout, --max-memory; of add_run_flags, too

// Rows of a result that are printed as a table: all where stdout is no terminal.
uint64_t shown_rows(const Flags& flags);

// Prints "error: <message>" and gives the exit code.
int fail(const Error& error);
void note(const std::string& message);
void print_diagnostics(const DiagnosticSink& sink, const SourceManager& sources);  // to stderr

// What --time asks for.
struct TimeTarget {
  runtime::TimeFormat format = runtime::TimeFormat::text;
  std::string file;  // empty: stderr
};
Result<TimeTarget> time_target(const std::string& text);
// The reports, where --time wants them.
Result<void> write_reports(const std::vector<runtime::RunReport>& reports, const TimeTarget& target);

// Fails as write_file would when the file cannot be opened; leaves what it holds. Asked before work whose results go there.
Result<void> check_writable(const std::string& path);

Result<runtime::CompileOptions> compile_options(const Flags& flags);
std::string code_flags(const Flags& flags);  // what decides about a program's code and plan, as one text
runtime::EngineOptions engine_options(const Flags& flags, bool measure_kernels);

// What --device names, opened (runtime/session/device_choice.h).
struct DeviceChoice : runtime::DeviceChoice {
  static Result<DeviceChoice> start(const Flags& flags);
};

using runtime::NamedSource, runtime::split_sql;
// Files (or - for stdin), named after their stem.
Result<std::vector<NamedSource>> read_programs(const std::vector<std::string>& paths);

// The sources that are neither files nor folders (sources.cpp).
std::span<const data::Scheme> schemes();
data::SourceOptions source_options();  // with the kinds of files that are known
data::SourceNames source_names(const Flags& flags);  // --data and --table
std::string file_cache(const Flags& flags);          // for columns of files: of --cache, else the user's own
// What is named, or null for nothing. Columns of files are kept in file_cache, those of tpch:SF only with --cache.
Result<std::shared_ptr<data::Source>> open_data(const data::SourceNames& names, const Flags& flags);
// The schema of --data and --table, or, without them, TPC-H's.
Result<data::Schema> open_schema(const Flags& flags);

// Checked after each program; a problem ends the command.
struct Check {
  virtual ~Check() = default;
  virtual Result<void> check(const NamedSource& program, const hir::Program& typed, const SourceManager& sources,
                             const std::vector<data::Value>& results, const reference::Tables& tables) = 0;
};
// `rndn run` and `rndn tpch run`, `rndn ssb run`: compiles and runs the programs one after the other, prints results and report.
int run_programs(const std::vector<NamedSource>& programs, const Flags& flags, std::shared_ptr<data::Source> source,
                 DeviceChoice device, Check* check);

// A stage of a program as text (cubin: bytes), compiled without a device; what it says goes to stderr. `of_query`: as the program of a query is compiled.
Result<std::string> emit_program(const NamedSource& program, const Flags& flags, const std::string& stage,
                                 const data::Schema& schema, bool of_query = false);

// What `rndn help TOPIC` prints: of a builtin, of `sql`, or, where it is empty, of all builtins. With a
// program, words that are its commands are told apart.
Result<std::string> help_text(const std::string& topic, const CLI::App* program = nullptr);

// Each command declares its flags and gives what runs when it was chosen.
struct Command {
  virtual ~Command() = default;
  virtual int execute() = 0;
  CLI::App* app = nullptr;
  CancelToken* interrupts = nullptr;  // of Ctrl-C: what executes is within it
};
int run_command_line(int argc, char** argv);  // of rndn_main.cpp: the exit code

std::unique_ptr<Command> run_command(CLI::App& program);
std::unique_ptr<Command> sql_command(CLI::App& program);
std::unique_ptr<Command> check_command(CLI::App& program);
std::unique_ptr<Command> compile_command(CLI::App& program);
std::unique_ptr<Command> explain_command(CLI::App& program);
struct Benchmark;
std::unique_ptr<Command> generate_command(CLI::App& program, const Benchmark& benchmark);
std::unique_ptr<Command> run_benchmark_command(CLI::App& program, const Benchmark& benchmark);
std::unique_ptr<Command> bench_command(CLI::App& bench, const Benchmark& benchmark);
std::unique_ptr<Command> bench_sql_command(CLI::App& bench);
std::unique_ptr<Command> shell_command(CLI::App& program);
std::unique_ptr<Command> schema_command(CLI::App& program);
std::unique_ptr<Command> devices_command(CLI::App& program);
std::unique_ptr<Command> help_command(CLI::App& program);

// The queries that this binary carries; generated by the build from tpch and ssb.
struct EmbeddedText {
  std::string_view benchmark, kind, name, text;  // "ssb", "queries/joins" or "sql", "q1.1"
};
std::span<const EmbeddedText> embedded_texts();

// Benchmarks with programs in HorseIR: a row each (rndn_benchmarks.cpp).
struct Benchmark {
  // Its programs may be there in several forms; the first is what runs without --form.
  struct Form {
    std::string_view name;    // "joins"; empty: there is but one
    std::string_view kind;    // of EmbeddedText
    std::string_view source;  // scheme of its tables
  };
  std::string_view name, title;  // "tpch", "TPC-H"
  std::string_view tables;       // what `generate` writes
  std::string_view identical;    // " at scale 1": where its files were compared with the official generator's; empty: at all
  std::string_view list;         // an example of --queries
  Result<void> (*write)(double scale, const std::string& folder, unsigned threads, bool progress);
  std::vector<Form> forms;

  const Form& form(const std::string& name) const;  // empty: the first
  // Those of a list such as 1,6,10-14, as written; empty: all. Fails (fault usage) for anything else.
  Result<std::vector<NamedSource>> programs(const Form& form, const std::string& list) const;
};
std::span<const Benchmark> benchmarks();
// --form, where there is a choice.
void add_form_flag(CLI::App& command, const Benchmark& benchmark, std::string& form);

}  // namespace rndn::tools
