// The outliner's passes in order. Read this first.
#include "outliner/analysis.h"

namespace rndn::outliner {

Outlined run(const hir::Program& program, const Options& options, DiagnosticSink& sink, Timings& timings) {
  auto scope = timings.measure(Phase::outliner);
  Outlined out;
  if (is_none(program.main) || is_none(program.functions[program.main].body)) {
    out.program = program;
    return out;
  }
  hir::Function inlined;
  const hir::Function* main = &take_main(program, out.program, inlined);
  Shapes shapes = analyse_shapes(out.program, *main, out.shapes, sink);
  if (sink.has_errors()) return out;
  if (options.joins && find_probes(out.program, *main, out.shapes, sink, options, shapes, inlined, out.joins))
    main = &inlined;
  std::vector<TopDecision> tops;
  if (options.tops && find_tops(out.program, *main, out.shapes, sink, shapes, inlined, tops)) main = &inlined;
  outline(*main, shapes, options, out);  // per block: dependencies.cpp with geometry.cpp, then fuse.cpp
  return out;
}

}  // namespace rndn::outliner
