#include "tools/session.h"

namespace rndn::tools {

Result<runtime::RunOptions> run_options(const Flags& flags, bool want_reports) {
  ASSIGN_OR_RETURN(runtime::CompileOptions compile, compile_options(flags));
  return runtime::RunOptions{.compile = std::move(compile),
                             .own_target = flags.arch.empty(),
                             .engine = engine_options(flags, want_reports),
                             .code = code_flags(flags),
                             .repeat = flags.repeat,
                             .threads = flags.threads,
                             .cache = !flags.no_cache,
                             .reports = want_reports,
                             .prove = flags.prove,
                             .limits = flags.limits};
}

Result<Session::Outcome> Session::run(const NamedSource& program, const Flags& flags,
                                      bool want_reports) {
  ASSIGN_OR_RETURN(const runtime::RunOptions options, run_options(flags, want_reports));
  return runtime::Session::run(program, options);
}

Result<std::string> Session::explain(const NamedSource& statement, const Flags& flags) {
  ASSIGN_OR_RETURN(const runtime::RunOptions options, run_options(flags, false));
  return runtime::Session::explain(statement, options);
}

}  // namespace rndn::tools
