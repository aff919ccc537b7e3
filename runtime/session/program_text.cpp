#include "runtime/session/program_text.h"

#include <fmt/format.h>

#include "outliner/explain.h"
#include "runtime/plan/fallbacks.h"

namespace rndn::runtime {
namespace {

// What has no device code: told by code generation, the assembler (for sm_86) and the runtime's plan.
Result<void> explain_fallbacks(const NamedSource& p, CompileOptions options, std::string& out) {
  SourceManager sources;
  DiagnosticSink said_already;
  Timings timings;
  options.until = Stage::cubin;
  ASSIGN_OR_RETURN(Compiled compiled,
                   compile(sources.add(p.file, p.text), sources, options, said_already, timings));
  const hir::Program& program = compiled.outlined.program;
  const hir::Function& main = program.functions[program.main];
  if (!compiled.fusions.groups.empty()) out += "fused operators\n";
  for (const outliner::FusedGroup& g : compiled.fusions.groups) {
    out += fmt::format("  {}: a group and {} reductions of its rows, instead of",
                       sources.describe(main.statements[g.group].span), g.reductions.size());
    for (size_t k = 0; k < compiled.outlined.kernels.size(); ++k)
      for (hir::StatementId launch : g.launches) {
        const hir::Expression& e = main.expressions[main.statements[launch].value];
        if (e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::user &&
            e.callee.function == compiled.outlined.kernels[k].function)
          out += fmt::format(" `{}`", program.text(program.functions[e.callee.function].name));
      }
    out += "\n";
  }
  const std::vector<std::string> fallbacks = fallbacks_of(compiled, sources);
  out += "fallbacks to the reference interpreter\n";
  for (const std::string& f : fallbacks) out += fmt::format("  {}\n", f);
  if (fallbacks.empty()) out += "  none\n";
  return {};
}

}  // namespace

Result<std::string> explain_program(const NamedSource& p, const CompileOptions& options,
                                    const std::shared_ptr<data::Source>& source, ExplainForm form, const Say& say) {
  std::string out;
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  auto compiled = compile(sources.add(p.file, p.text), sources, options, sink, timings);
  const outliner::Options outline{.mode = options.outline,
                                  .text_codes = options.text_codes,
                                  .math = !compiled || compiled->no_math.empty(),
                                  .beside_cells = form.counts || !options.fuse_operators,
                                  .tops = !form.counts && options.fuse_operators,
                                  .joins = !form.counts && options.fuse_operators && options.fuse_joins,
                                  .numbers_as_parameters = options.numbers_as_parameters,
                                  .sinks = !form.counts && options.fuse_operators && options.fuse_groups};
  Result<void> done;
  if (compiled) {
    if (form.counts) {
      auto counts = outliner::count_kernels(compiled->program, outline, sink);
      if (counts)
        out += fmt::format("{:<12} {:>5} {:>5} {:>5}\n", p.name, counts->none, counts->flow, counts->full);
      else
        done = counts.error();
    } else {
      outliner::ExplainOptions how{.dot = form.dot, .rows = {}};
      if (source)
        how.rows = [&](std::string_view table) -> std::optional<uint64_t> {
          auto rows = source->rows(table);
          return rows ? std::optional(*rows) : std::nullopt;
        };
      auto text = outliner::explain(compiled->program, sources, outline, how, sink);
      if (text) {
        if (form.named && !form.dot) out += p.name + "\n";
        out += *text;
        if (!form.dot) done = explain_fallbacks(p, options, out);
      } else {
        done = text.error();
      }
    }
  } else {
    done = compiled.error();
  }
  sink.sort_by_position();
  if (const std::string said = render(sink, sources); !said.empty()) say(said);
  if (!done) return done.error();
  return out;
}

Result<std::string> emit_program(const NamedSource& program, CompileOptions options,
                                 const data::Schema* schema, unsigned threads, const Say& say) {
  ThreadPool pool(threads);
  options.pool = &pool;
  options.schema = schema;
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  auto compiled = compile(sources.add(program.file, program.text), sources, options, sink, timings);
  sink.sort_by_position();
  if (const std::string said = render(sink, sources); !said.empty()) say(said);
  if (!compiled) return compiled.error();
  ASSIGN_OR_RETURN(std::string text, emit(*compiled, options.until));
  for (const codegen::KernelCode& k : compiled->code.kernels)
    if (!k.refused.empty())
      say(fmt::format("note: kernel `{}` has no code: {}\n", k.name, k.refused));
  return text;
}

}  // namespace rndn::runtime
