#include "tests/reference/random_run.h"

#include "tests/reference/notation.h"
#include "tests/reference/tiny_tables.h"

namespace rndn::reference::testing {

std::string conforms(const Value& v, const hir::TypeTable& types, hir::TypeId type) {
  const hir::Type& t = types[type];
  auto complaint = [&](std::string_view is) { return fmt::format("{} where the type is {}", is, types.text(type)); };
  auto kind_is = [&](Value::Kind kind) { return v.kind == kind ? std::string() : complaint("another kind of value"); };
  if (v.kind == Value::none) return {};  // never assigned
  switch (t.kind) {
    case hir::TypeKind::wildcard: return {};
    case hir::TypeKind::basic:
      if (v.kind != Value::vector) return complaint("no vector");
      if (hir::is_text(v.type) && hir::is_text(t.basic)) return {};
      return v.type == t.basic ? std::string() : complaint(hir::basic_type_name(v.type));
    case hir::TypeKind::list:
    case hir::TypeKind::tuple: {
      if (v.kind != Value::list) return complaint("no list");
      if (t.kind == hir::TypeKind::tuple && v.parts().size() != t.components.size())
        return complaint(fmt::format("{} cells", v.parts().size()));
      for (size_t i = 0; i < v.parts().size(); ++i)
        if (std::string bad = conforms(v.parts()[i], types, t.components[t.kind == hir::TypeKind::tuple ? i : 0]);
            !bad.empty())
          return bad;
      return {};
    }
    case hir::TypeKind::dict: return kind_is(Value::dict);
    case hir::TypeKind::enumeration: return kind_is(Value::enumeration);
    case hir::TypeKind::table: return kind_is(Value::table);
    case hir::TypeKind::ktable: return kind_is(Value::ktable);
    case hir::TypeKind::function: return kind_is(Value::functions);
  }
  return {};
}

Ran run_bounded(const std::string& text, uint64_t rows) {
  Ran out;
  SourceManager sources;
  FileId file = sources.add("r.hir", text);
  DiagnosticSink sink;
  Timings timings;
  hir::Options options;
  options.schema = &hir::test_schema();
  hir::Program program = hir::run(file, sources, options, sink, timings);
  if (sink.has_errors()) return out;
  out.typed = true;
  out.typed_text = hir::print(program, true);
  RunState state;
  state.longest = std::max<uint64_t>(2000, 10 * rows);
  state.steps = 5000;
  std::string printed;
  Result<std::vector<Value>> results = run(program, TinyTables(rows), sources, &printed, &state);
  if (!results) {
    out.error = results.error().message;
    if (size_t at = out.error.find(": error: "); at != std::string::npos) {
      out.place = out.error.substr(0, at);
      out.error.erase(0, at + 9);
    }
    if (results.error().fault != Fault::input) out.complaint = "not the input's fault: " + out.error;
    return out;
  }
  out.finished = true;
  const hir::Function& main = program.functions[program.main];
  if (results->size() != main.result_types.size()) out.complaint = fmt::format("{} results", results->size());
  for (size_t i = 0; i < results->size() && out.complaint.empty(); ++i) {
    out.complaint = conforms((*results)[i], *program.types, main.result_types[i]);
    // Values share their parts: small ones may have very long texts.
    if (out.complaint.empty() && state.steps > 0) {
      Result<std::vector<Value>> shown =
          call(hir::Builtin::str, {(*results)[i]}, nullptr, TinyTables(), nullptr, nullptr, &state);
      out.results += shown ? show((*shown)[0]) + "; " : shown.error().message;
    }
  }
  return out;
}

}  // namespace rndn::reference::testing
