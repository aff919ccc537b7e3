#pragma once
// What the reference interpreter gives for a program, printed as JSON: the witness of many tests
// of the engine.
#include <string>

#include "runtime/engine.h"
#include "runtime/print_result.h"

namespace rndn::runtime {

// Fails with the diagnostics where the program does not compile.
inline Result<std::string> run_on_reference(const std::string& text, const reference::Tables& tables) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  const hir::Program program = hir::run(sources.add("t.hir", text), sources, {}, sink, timings);
  if (sink.has_errors()) return input_error("{}", render(sink, sources));
  ASSIGN_OR_RETURN(const auto results, reference::run(program, tables, sources, nullptr));
  return print_result(results, Format::json);
}

}  // namespace rndn::runtime
