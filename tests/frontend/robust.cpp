#include "tests/frontend/robust.h"

#include <fmt/format.h>

#include "frontend/frontend.h"
#include "tests/frontend/schema.h"

namespace rndn::hir {

namespace {

// Parses what was printed; empty on success, the complaint otherwise.
std::string reprint(const std::string& printed, const char* what) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  Options options;
  options.parse_only = true;
  Program again = run(sources.add("printed", printed), sources, options, sink, timings);
  if (sink.has_errors()) return fmt::format("{} does not parse:\n{}{}", what, render(sink, sources), printed);
  if (print(again, false) != printed) return fmt::format("{} changes when parsed and printed:\n{}", what, printed);
  return {};
}

std::string check_complete(const Program& p) {
  for (const Function& f : p.functions)
    for (const Expression& e : f.expressions) {
      if (e.kind == Expression::call && e.callee.kind == FunctionRef::unresolved) return "an unresolved call";
      for (const Operand& o : e.operands)
        if (o.kind == Operand::unresolved) return "an unresolved operand";
      for (TypeId t : e.types)
        if (is_none(t)) return "an expression without type";
    }
  return {};
}

}  // namespace

std::string check_robust(const std::string& text) {
  for (int mode = 0; mode < 4; ++mode) {
    SourceManager sources;
    DiagnosticSink sink;
    Timings timings;
    Options options;
    options.parse_only = mode == 0;
    options.strict = mode == 1;
    options.dialect_v0 = mode == 2;
    if (mode == 3) options.schema = &test_schema();
    FileId file = sources.add("fuzz.hir", text);
    Program program = run(file, sources, options, sink, timings);
    for (const Diagnostic& d : sink.diagnostics())
      if (d.span.known() && (d.span.begin > text.size() || d.span.end > text.size() || d.span.begin > d.span.end))
        return fmt::format("`{}` at {}..{} of {} bytes", d.kind, d.span.begin, d.span.end, text.size());
    sink.sort_by_position();
    render(sink, sources);
    if (sink.has_errors()) continue;
    if (mode != 0)
      if (std::string bad = check_complete(program); !bad.empty()) return bad;
    if (std::string bad = reprint(print(program, false), "the printed program"); !bad.empty()) return bad;
    if (std::string bad = reprint(print(program, true), "the typed program"); !bad.empty()) return bad;
  }
  return {};
}

}  // namespace rndn::hir
