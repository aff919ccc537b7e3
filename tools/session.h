// The session of a command line: runtime/session with what the flags say, and the statements of SQL
// that are no queries (runtime/planner/commands.h); what it says goes to stderr.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/planner/commands.h"
#include "runtime/session/session.h"
#include "tools/rndn.h"

namespace rndn::tools {

class Session : public runtime::Session {
 public:
  // `source` may be null: no tables. `file_cache` is for the files of load_csv.
  Session(std::shared_ptr<data::Source> source, DeviceChoice device, const std::string& file_cache)
      : runtime::Session(std::move(source), std::move(device), {.file_cache = file_cache}) {}

  struct Outcome : runtime::Session::Outcome {
    // In place of results, of what is no query: a table, or a text.
    std::optional<runtime::Grid> grid;
    std::optional<std::string> text;
  };
  // Runs the program or SQL statement flags.repeat times.
  Result<Outcome> run(const NamedSource& program, const Flags& flags, bool want_reports);
  // The statement, its plan, its program and its kernels, as text.
  Result<std::string> explain(const NamedSource& statement, const Flags& flags);

 private:
  Result<Outcome> run_sql(const NamedSource& statement, const Flags& flags, bool want_reports);
  Result<Outcome> run_query(const NamedSource& query, const Flags& flags, bool want_reports);
  Result<Outcome> execute(const NamedSource& statement, const planner::Command& command,
                          const Flags& flags, bool want_reports);
  Result<Outcome> describe(const NamedSource& statement, const planner::Command& command);
  Result<Outcome> summarize(const planner::Command& command, const Flags& flags);
  Result<const sql::Table*> find_table(const planner::Command& command);
  Result<std::string> plan_section(const NamedSource& statement);

  std::map<std::string, std::string> prepared_;  // statements by their names
};

// The results of a run as text; a table has `most_rows` rows at most.
Result<std::string> print(const Session::Outcome& outcome, runtime::Format format,
                          uint64_t most_rows = UINT64_MAX);

}  // namespace rndn::tools
