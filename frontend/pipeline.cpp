// The frontend: text -> program -> names -> types -> assigned before use. Later passes need the invariants of earlier ones, so the
// first pass with errors is the last to run.
#include "frontend/frontend.h"
#include "frontend/parse.h"
#include "frontend/passes.h"

namespace rndn::hir {

Program run(FileId file, const SourceManager& sources, const Options& options, DiagnosticSink& sink, Timings& timings) {
  auto scope = timings.measure(Phase::frontend);
  size_t errors_before = sink.error_count();
  auto failed = [&] { return sink.error_count() > errors_before; };
  Program program;
  parse(file, sources.text(file), program, sink);
  if (failed() || options.parse_only) return program;
  resolve_names(file, program, options, sink);
  if (failed()) return program;
  check_types(program, options, sink);
  if (failed()) return program;
  check_assignments(program, sink);
  return program;
}

}  // namespace rndn::hir
