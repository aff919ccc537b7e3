// The session of a command line: runtime/session with what the flags say; what it says goes to
// stderr, or to who asks for it.
#pragma once
#include <memory>
#include <string>

#include "runtime/session/session.h"
#include "tools/rndn.h"

namespace rndn::tools {

// What the flags say of a run.
Result<runtime::RunOptions> run_options(const Flags& flags, bool want_reports);

class Session : public runtime::Session {
 public:
  // `source` may be null: no tables. `file_cache` is for the files of load_csv.
  Session(std::shared_ptr<data::Source> source, DeviceChoice device, const std::string& file_cache,
          runtime::Say say = runtime::say_to_stderr)
      : runtime::Session(std::move(source), std::move(device), {.file_cache = file_cache, .say = std::move(say)}) {}

  // Runs the program or SQL statement flags.repeat times.
  Result<Outcome> run(const NamedSource& program, const Flags& flags, bool want_reports);
  // The statement, its plan, its program and its kernels, as text.
  Result<std::string> explain(const NamedSource& statement, const Flags& flags);
};

}  // namespace rndn::tools
