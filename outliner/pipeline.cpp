// The outliner's passes in order. Read this first.
#include <algorithm>

#include "outliner/analysis.h"

namespace rndn::outliner {

namespace {

// The folds of one number answer each other entry by entry, and so stand in one kernel. The numbers of those that do not.
std::vector<uint32_t> torn_folds(const Outlined& out) {
  std::vector<uint32_t> torn;
  for (uint32_t number : out.folds) {
    size_t functions = 0;
    bool on_host = false;
    for (hir::FunctionId id{}; index(id) < out.program.functions.size(); id = static_cast<hir::FunctionId>(index(id) + 1)) {
      const hir::Function& f = out.program.functions[id];
      const bool here = std::any_of(f.expressions.begin(), f.expressions.end(), [&](const hir::Expression& e) {
        if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::builtin ||
            e.callee.builtin_id != hir::Builtin::gpu_fold || e.operands[2].kind != hir::Operand::literal)
          return false;
        const auto* n = std::get_if<std::vector<int64_t>>(&out.program.literals[e.operands[2].literal_id()].values);
        return n && n->front() == number;
      });
      functions += here;
      on_host |= here && id == out.program.main;
    }
    if (functions != 1 || on_host) torn.push_back(number);
  }
  return torn;
}

Outlined run_once(const hir::Program& program, const Options& options, DiagnosticSink& sink) {
  Outlined out;
  if (is_none(program.main) || is_none(program.functions[program.main].body)) {
    out.program = program;
    return out;
  }
  hir::Function inlined;
  const hir::Function* main = &take_main(program, out.program, inlined);
  Shapes shapes = analyse_shapes(out.program, *main, out.shapes, sink);
  if (sink.has_errors()) return out;
  if (options.joins && find_enums(out.program, *main, out.shapes, sink, shapes, inlined)) main = &inlined;
  // What one makes a group, the next may see as one.
  while (options.tops && find_group_forms(out.program, *main, out.shapes, sink, options, shapes, inlined)) {
    main = &inlined;
    out.groups_ascend = true;
  }
  if (options.tops && find_group_orders(out.program, *main, out.shapes, sink, shapes, inlined)) {
    main = &inlined;
    out.groups_ascend = true;
  }
  if (options.lists && find_group_cells(out.program, *main, out.shapes, sink, shapes, inlined)) main = &inlined;
  if (options.lists && flatten_lists(out.program, *main, out.shapes, sink, options, shapes, inlined)) {
    main = &inlined;
    out.flattened = true;
  }
  if (options.joins && find_probes(out.program, *main, out.shapes, sink, options, shapes, inlined, out.joins, out.whole_joins))
    main = &inlined;
  if (options.joins && merge_selections(out.program, *main, out.shapes, sink, shapes, inlined)) main = &inlined;
  std::vector<TopDecision> tops;
  if (options.tops && find_tops(out.program, *main, out.shapes, sink, shapes, inlined, tops)) main = &inlined;
  if (options.sinks && options.mode == Mode::full &&
      find_sinks(out.program, *main, out.shapes, sink, options, shapes, inlined, out.folds, out.float_folds))
    main = &inlined;
  outline(*main, shapes, options, out);  // per block: dependencies.cpp with geometry.cpp, then fuse.cpp
  return out;
}

}  // namespace

Outlined run(const hir::Program& program, const Options& options, DiagnosticSink& sink, Timings& timings) {
  auto scope = timings.measure(Phase::outliner);
  Outlined out = run_once(program, options, sink);
  out.not_folded = options.not_folded;
  if (out.folds.empty() || sink.has_errors()) return out;
  const std::vector<uint32_t> torn = torn_folds(out);
  if (torn.empty()) return out;
  Options less = options;
  less.not_folded.insert(less.not_folded.end(), torn.begin(), torn.end());
  return run(program, less, sink, timings);
}

}  // namespace rndn::outliner
