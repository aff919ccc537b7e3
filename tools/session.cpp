#include "tools/session.h"

namespace rndn::tools {

Result<Session::Outcome> Session::run(const NamedSource& program, const Flags& flags,
                                      bool want_reports) {
  return program.sql ? run_sql(program, flags, want_reports)
                     : run_query(program, flags, want_reports);
}

Result<Session::Outcome> Session::run_query(const NamedSource& query, const Flags& flags,
                                            bool want_reports) {
  ASSIGN_OR_RETURN(runtime::CompileOptions compile, compile_options(flags));
  ASSIGN_OR_RETURN(runtime::Session::Outcome outcome,
                   runtime::Session::run(query, {.compile = std::move(compile),
                                                 .own_target = flags.arch.empty(),
                                                 .engine = engine_options(flags, want_reports),
                                                 .code = code_flags(flags),
                                                 .repeat = flags.repeat,
                                                 .threads = flags.threads,
                                                 .cache = !flags.no_cache,
                                                 .reports = want_reports,
                                                 .limits = flags.limits}));
  return Outcome{std::move(outcome), {}, {}};
}

Result<std::string> print(const Session::Outcome& outcome, runtime::Format format,
                          uint64_t most_rows) {
  if (outcome.text) return *outcome.text;
  if (outcome.grid) return runtime::print_grid(*outcome.grid, format, most_rows);
  return runtime::print(outcome, format, most_rows);
}

}  // namespace rndn::tools
