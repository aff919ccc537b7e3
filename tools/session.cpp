#include "tools/session.h"

namespace rndn::tools {

Result<Session::Outcome> Session::run(const NamedSource& program, const Flags& flags,
                                      bool want_reports) {
  ASSIGN_OR_RETURN(runtime::CompileOptions compile, compile_options(flags));
  return runtime::Session::run(program, {.compile = std::move(compile),
                                         .own_target = flags.arch.empty(),
                                         .engine = engine_options(flags, want_reports),
                                         .code = code_flags(flags),
                                         .repeat = flags.repeat,
                                         .threads = flags.threads,
                                         .cache = !flags.no_cache,
                                         .reports = want_reports});
}

}  // namespace rndn::tools
