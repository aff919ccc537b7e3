// The outliner's passes in order. Read this first.
#include "outliner/analysis.h"

namespace rndn::outliner {

Outlined run(const hir::Program& program, const Options& options, DiagnosticSink& sink, Timings& timings) {
  auto scope = timings.measure(Phase::outliner);
  Outlined out;
  out.program = program;
  if (is_none(program.main) || is_none(program.functions[program.main].body)) return out;
  (void)inline_calls(out.program);
  const hir::Function main = out.program.functions[program.main];
  const Shapes shapes = analyse_shapes(out.program, main, out.shapes, sink);
  if (sink.has_errors()) return out;
  outline(main, shapes, options, out);  // per block: dependencies.cpp with geometry.cpp, then fuse.cpp
  return out;
}

}  // namespace rndn::outliner
