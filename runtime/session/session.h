// Programs and SQL statements run one after the other, with data, device, plans and library modules
// kept: the whole toolchain behind one object, for the command line, Python and whoever embeds it.
//
//   ASSIGN_OR_RETURN(DeviceChoice device, DeviceChoice::start("auto", "", note));
//   Session session(source, std::move(device), {.say = to_stderr});
//   for (const NamedSource& s : split_sql("query", "<query>", "SELECT 1; SELECT 2"))
//     ASSIGN_OR_RETURN(Session::Outcome outcome, session.run(s, RunOptions()));   // .results, .columns
//
// Not thread-safe. Diagnostics go to `say` as text; the error that comes with them is empty.
//
// A run that takes too long or too much memory ends with an error (RunOptions::limits). So does one
// that is cancelled, from any thread: CancelToken token; CancelScope scope(token); session.run(..),
// and elsewhere token.cancel(). The session goes on.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/system/parallel.h"
#include "runtime/compiler/code_cache.h"
#include "runtime/compiler/compile.h"
#include "runtime/data/arrow.h"
#include "runtime/data/tables.h"
#include "runtime/engine.h"
#include "runtime/planner/commands.h"
#include "runtime/print_result.h"
#include "runtime/session/device_choice.h"
#include "runtime/planner/recursive.h"
#include "runtime/sql/queries.h"

namespace rndn::runtime {

struct NamedSource {
  std::string name;  // "q06"
  std::string file;  // as messages name it
  std::string text;  // of HorseIR
  // A SQL statement instead: part of the file's text, which all of its statements share.
  struct Statement {
    std::shared_ptr<const std::string> text;
    size_t begin, end;
    std::string as = {};  // what runs in its place (SqlQueries::prepare); empty: itself
  };
  std::optional<Statement> sql = {};
};
// The statements of a SQL text, each a program of its own; `name` numbered when there are several.
std::vector<NamedSource> split_sql(const std::string& name, const std::string& file,
                                   std::string text);

struct RunOptions {
  CompileOptions compile;  // its schema, caches, pool and memory are the session's own
  bool own_target = true;  // compile.target is the device's
  EngineOptions engine;
  std::string code;      // what of the options decides about code and plans, as one text
  unsigned repeat = 1;   // runs of the program
  unsigned threads = 0;  // 0: all cores; the first run decides
  bool cache = true;     // code is kept on disk, plans in memory
  bool reports = false;  // one per run, with times of kernels
  bool prove = false;    // results of programs and queries are checked (Session::prove)
  Say told_of_proof;     // hears what was compared, line by line; empty: the session's `say`
  // Elements of the columns read up to which a check on the reference interpreter is over all rows.
  uint64_t prove_elements = uint64_t{1} << 25;
  Limits limits;         // of each run
};

struct SessionOptions {
  std::string file_cache;  // folder for the columns of load_csv; empty: none
  planner::Options planner = planner::Options::of_environment();
  Say say = say_to_stderr;  // diagnostics and warnings, each with its ends of lines
  // From how many bytes on that are not read a query reads ranges of a table alone (row_ranges.h).
  uint64_t least_saved = least_saved_bytes;
};

class Session {
 public:
  // `source` may be null: no tables. The device, which outlives the session, opens when the first
  // program needs it.
  Session(std::shared_ptr<data::Source> source, std::shared_ptr<DeviceChoice> device,
          SessionOptions options);
  Session(std::shared_ptr<data::Source> source, DeviceChoice device, SessionOptions options);
  ~Session();  // in any thread

  struct Outcome {
    const hir::Program* typed = nullptr;     // until the next run
    std::vector<sql::ResultColumn> columns;  // of a SQL query
    bool is_sql = false;
    bool has_result = true;  // false: a statement that has done something else
    // In place of results, of a statement that is no query: a table of texts, or a text.
    std::optional<Grid> grid;
    std::optional<std::string> text;
    std::optional<uint64_t> rows_changed;  // INSERT, CREATE TABLE
    std::vector<data::Value> results;  // of the last run
    std::string printed;               // by @print, in the last run
    std::vector<RunReport> reports;    // one per run, when they are wanted
    size_t fallbacks = 0;
    // Kernels that ran, when checks are wanted: the program's, and those of operators.
    std::vector<std::string> outlined, library;
    // Of checks: a sentence for each that failed.
    std::vector<std::string> differences;
  };
  // An error, as `--verify` gives one, when a check has failed.
  static Result<void> proven(const std::string& name, const Outcome& outcome);
  // Compiles the program or SQL query and runs it options.repeat times. A program that comes
  // again, with the same options, is not compiled again: the last programs' plans stay on the
  // device.
  Result<Outcome> run(const NamedSource& program, const RunOptions& options);

  const SourceManager& sources() const { return sources_; }
  const reference::Tables& tables() const { return *tables_; }
  // The statement as a program.
  Result<const SqlQuery*> prepare_sql(const NamedSource& statement, SqlQueries::Until until,
                                      Timings& timings);
  const std::shared_ptr<data::Source>& source() const { return source_; }  // null: no tables
  SqlQueries& queries();
  // The statement's place in sources().
  Span span_of(const NamedSource& statement);
  Result<device::Device*> device();  // opens it; not with --device cpu

  // Other tables than those that the session was made with; those of statements and files stay, and
  // what is known of the others, too, but not of `renewed`.
  Result<void> set_source(std::shared_ptr<data::Source> source, std::string_view renewed = {});
  // Rows from elsewhere as a table that statements can add to and drop; `replace`: in the place of
  // one that a statement has made.
  Result<uint64_t> add_table(const std::string& name, data::ArrowStream rows, bool replace = false);
  // `insert`: INSERT INTO t, perhaps with columns. The rows are its query; by name: their columns are
  // those that it names.
  Result<uint64_t> append(const std::string& insert, data::ArrowStream rows,
                          data::ArrowNames names, const RunOptions& options);
  // What a statement would answer; none: nothing. A query does not run.
  Result<std::vector<sql::ResultColumn>> result_columns(const NamedSource& statement,
                                                        const RunOptions& options);
  bool has_table(std::string_view name);
  std::vector<std::string> made_names();  // of tables and views that statements have made
  // The statement, its plan, its program and its kernels, as text.
  Result<std::string> explain(const NamedSource& statement, const RunOptions& options);
  // Checks what the last run of a program has given, by other ways to it (prove.cpp); says what was
  // compared, and what was not. Results that differ are replaced by those that are trusted more.
  Result<void> prove(const std::string& name, const RunOptions& options, Outcome& outcome);
  // The same of a run that the program itself has ended: by the error, unless another way has a result.
  Error prove_failure(const std::string& name, const RunOptions& options, Error error);

 private:
  // A failure while a query ran: told where it stands in the text, if a requirement is not met.
  Error told_of_query(Error error, const sql::Translation& translation, Span query);
  // A program that can run.
  struct Ready {
    std::string key;  // its text and the flags that decide about its code
    Compiled compiled;
    FileId file{};
    std::string said;                    // by the compiler
    // Of a query that reads some ranges of tables: these, and all tables with them in place.
    std::shared_ptr<const data::OverlaidTables::Sources> ranges;
    std::unique_ptr<const reference::Tables> tables;  // null: the session's
    std::unique_ptr<Engine::Plan> plan;  // none with --device cpu
  };
  static constexpr size_t most_ready = 64;
  void say(const std::string& text) const;
  void warn_of_simulation(const hir::Program& program, const reference::Tables& tables);
  using Ranges = std::shared_ptr<const data::OverlaidTables::Sources>;
  // ranges: null, or tables in place of the session's.
  Result<Outcome> run_program(const NamedSource& program, const RunOptions& options, Timings timings,
                              Ranges ranges = nullptr);
  void forget_ranges();  // that no query reads any more
  Result<Engine*> open_engine(const RunOptions& options);
  // Sends columns of the query to the device while others are read, until the scope ends.
  class SendsAhead;
  // A file that a query names, as a table; the source with it. Null: the name is none of a file.
  Result<std::shared_ptr<data::Source>> open_file(const std::string& name,
                                                  const planner::FileCall* call);
  // statements.cpp: a row per kind of statement.
  using Answer = Result<Outcome> (Session::*)(const NamedSource& statement,
                                              const planner::Command& command,
                                              const RunOptions& options);
  static Answer answer_to(planner::Command::Kind kind);
  Result<Outcome> run_statement(const NamedSource& statement, const RunOptions& options);
  Result<Outcome> query(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> show_tables(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> describe(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> summarize(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> explain_query(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> explain_run(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> prepare_named(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> execute_named(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> deallocate(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> copy(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> create_table(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> create_view(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> create_type(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> drop_type(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> insert(const NamedSource&, const planner::Command&, const RunOptions&);
  Result<Outcome> drop(const NamedSource&, const planner::Command&, const RunOptions&);
  Error refused(std::string_view kind, Span place, const std::string& why);
  Result<std::string> plan_section(const NamedSource& statement);
  // The columns of a table or a view, as a query of all of them names them.
  Result<void> open_named(const NamedSource& statement, const planner::Command& command);
  Result<std::vector<planner::ResultColumn>> columns_of(const planner::Command& command);
  Result<Outcome> run_recursive(const NamedSource& statement, const planner::RecursiveQuery& query,
                                const RunOptions& options);
  Result<Outcome> run_alone(const NamedSource& of, const std::string& text,
                            const RunOptions& options);
  Result<bool> make_room(const planner::Command& command);
  const sql::Table* find_table(std::string_view name);
  const planner::View* find_view(std::string_view name);

  Result<Outcome> run_within(const NamedSource& program, const RunOptions& options);
  Result<Outcome> run_query(const NamedSource& query, const RunOptions& options);
  class Proof;  // prove.cpp
  Result<void> forget_changed_files();
  Result<void> join_tables();  // source_ of given_ and files_
  Result<void> join_all(std::string_view renewed = {});  // the same, and the planner knows it
  void open_tables();                                    // tables_ of source_
  Result<Ready*> prepare(const NamedSource& program, const RunOptions& options, Timings& timings,
                         Ranges ranges);

  // A table that a statement has made: rows as they came, in Arrow's form.
  struct MadeTable;
  Result<void> keep(std::shared_ptr<MadeTable> table);
  Result<uint64_t> add_opened(const std::string& name, std::unique_ptr<data::TableLoader> loader);
  // A file that a query has named, which stays for as long as it does not change, or a table that a
  // statement has made.
  struct NamedFile {
    std::string name;
    bool is_path;  // and no call, no table of a statement's
    std::vector<std::string> paths;  // files, folders and patterns that it is read from
    std::string version;             // of them
    std::shared_ptr<data::Source> source;
    std::shared_ptr<MadeTable> made = {};  // of a statement
  };
  std::shared_ptr<data::Source> given_, source_;  // source_: with files_
  std::vector<NamedFile> files_;
  const std::string file_cache_;
  std::unique_ptr<reference::Tables> tables_;
  std::shared_ptr<DeviceChoice> choice_;
  const Say say_;
  const planner::Options planner_;
  const uint64_t least_saved_;
  CodeCache code_cache_;              // outlives the engine
  std::unique_ptr<ThreadPool> pool_;  // outlives the engine
  assembler::Workspace workspace_;
  libdevice::Math math_;
  std::unique_ptr<Engine> engine_;
  SourceManager sources_;
  std::optional<SqlQueries> sql_;
  std::shared_ptr<const std::string> sql_text_;  // that sql_file_ has
  FileId sql_file_{};
  std::map<std::string, std::string> prepared_;  // statements by their names
  bool warned_of_simulation_ = false;
  std::vector<std::string> differences_;  // that checks of this run have found
  bool is_joined_ = true;  // source_, and what is made of it, has all of files_
  std::vector<std::unique_ptr<Ready>> ready_;  // the one that was used last at the end
};

// What a statement answers as columns of SQL types; a text as lines. None: it has no result.
Result<std::optional<Grid>> rows_of(const Session::Outcome& outcome);
// The result of a query as a file, by DuckDB's COPY: `options` as SQL has them, "FORMAT parquet"; what
// they do not say tells the path's end.
Result<void> save(const Session::Outcome& outcome, const std::string& path,
                  const std::string& options);
// The results of a run as text, in pieces or as one; a table has `most_rows` rows at most.
Result<void> print(const Session::Outcome& outcome, Format format, uint64_t most_rows,
                   const TextSink& sink);
Result<std::string> print(const Session::Outcome& outcome, Format format,
                          uint64_t most_rows = UINT64_MAX);

}  // namespace rndn::runtime
