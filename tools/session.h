// Programs run one after the other with data, device and library modules kept: what `rndn run`, `rndn tpch run`, `rndn shell` and
// `rndn bench` share.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "libraries/base/system/parallel.h"
#include "runtime/compiler/code_cache.h"
#include "runtime/data/tables.h"
#include "runtime/engine.h"
#include "runtime/sql/queries.h"
#include "tools/rndn.h"

namespace rndn::tools {

class Session {
 public:
  // `source` may be null: no tables. The device opens when the first program needs it.
  // `file_cache` is for the files of load_csv.
  Session(std::shared_ptr<data::Source> source, DeviceChoice device, const std::string& file_cache);

  struct Outcome {
    const hir::Program* typed = nullptr;     // until the next run
    std::vector<sql::ResultColumn> columns;  // of a SQL query
    bool is_sql = false;
    std::vector<data::Value> results;    // of the last run
    std::string printed;                      // by @print, in the last run
    std::vector<runtime::RunReport> reports;  // one per run, when they are wanted
    size_t fallbacks = 0;
  };
  // Compiles the program or SQL statement and runs it flags.repeat times. Diagnostics and warnings go to stderr as they come. A program that comes again, with the
  // same flags, is not compiled again: the last programs' plans stay on the device.
  Result<Outcome> run(const NamedSource& program, const Flags& flags, bool want_reports);

  const SourceManager& sources() const { return sources_; }
  const reference::Tables& tables() const { return *tables_; }
  // The statement as a program; diagnostics go to stderr.
  Result<const runtime::SqlQuery*> prepare_sql(const NamedSource& statement, runtime::SqlQueries::Until until,
                                               Timings& timings);
  const data::Source* source() const { return source_.get(); }
  Result<device::Device*> device();  // opens it; not with --device cpu

 private:
  // A program that can run.
  struct Ready {
    std::string key;  // its text and the flags that decide about its code
    runtime::Compiled compiled;
    FileId file{};
    std::string said;                             // by the compiler
    std::unique_ptr<runtime::Engine::Plan> plan;  // none with --device cpu
  };
  static constexpr size_t most_ready = 64;
  Result<Outcome> run_program(const NamedSource& program, const Flags& flags, bool want_reports, Timings timings);
  Result<Ready*> prepare(const NamedSource& program, const Flags& flags, bool want_reports, Timings& timings);

  std::shared_ptr<data::Source> source_;
  std::unique_ptr<reference::Tables> tables_;
  DeviceChoice choice_;
  runtime::CodeCache code_cache_;     // outlives the engine
  std::unique_ptr<ThreadPool> pool_;  // outlives the engine
  assembler::Workspace workspace_;
  libdevice::Math math_;
  std::unique_ptr<runtime::Engine> engine_;
  SourceManager sources_;
  std::optional<runtime::SqlQueries> sql_;
  std::shared_ptr<const std::string> sql_text_;  // that sql_file_ has
  FileId sql_file_{};
  std::vector<std::unique_ptr<Ready>> ready_;  // the one that was used last at the end
};

// The results of a run as text.
Result<std::string> print(const Session::Outcome& outcome, runtime::Format format);

}  // namespace rndn::tools
