#include "tests/frontend/support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>

#include "libraries/base/system/files.h"

namespace rndn::hir {

namespace {

void append(std::string& out, const Program& p, const FunctionRef& f) {
  out += fmt::format(" @{}/{}", is_none(f.module) ? "" : p.text(f.module), p.text(f.name));
}

void append(std::string& out, const Program& p, const Operand& o) {
  if (o.kind != Operand::literal) {
    out += fmt::format(" {}/{}", is_none(o.module) ? "" : p.text(o.module), is_none(o.name) ? "" : p.text(o.name));
    return;
  }
  const Literal& l = p.literals[o.literal_id()];
  out += fmt::format(" [{}", p.types->text(l.type));
  if (auto* v = std::get_if<std::vector<int64_t>>(&l.values))
    for (int64_t x : *v) out += fmt::format(" {}", x);
  if (auto* v = std::get_if<std::vector<double>>(&l.values))
    for (double x : *v) out += fmt::format(" {:016x}", std::bit_cast<uint64_t>(x));
  if (auto* v = std::get_if<std::vector<std::complex<double>>>(&l.values))
    for (auto x : *v)
      out += fmt::format(" {:016x},{:016x}", std::bit_cast<uint64_t>(x.real()), std::bit_cast<uint64_t>(x.imag()));
  if (auto* v = std::get_if<std::vector<std::string>>(&l.values))
    for (const auto& x : *v) {
      out += ' ';
      for (unsigned char c : x) out += fmt::format("{:02x}", c);
    }
  if (auto* v = std::get_if<std::vector<FunctionRef>>(&l.values))
    for (const auto& f : *v) append(out, p, f);
  out += ']';
}

void append(std::string& out, const Program& p, const Function& f, ExpressionId id) {
  const Expression& e = f.expressions[id];
  if (e.kind == Expression::cast) {
    out += fmt::format(" (cast {}", p.types->text(e.cast_type));
    append(out, p, f, e.inner);
    out += ')';
    return;
  }
  out += " (";
  if (e.kind == Expression::call) append(out, p, e.callee);
  for (const Operand& o : e.operands) append(out, p, o);
  out += ')';
}

void append(std::string& out, const Program& p, const Function& f, BlockId id) {
  out += " {";
  for (StatementId s : f.blocks[id].statements) {
    const Statement& st = f.statements[s];
    out += fmt::format("\n  #{}", static_cast<int>(st.kind));
    for (const Target& t : st.targets)
      out += fmt::format(" {}/{}{}", is_none(t.module) ? "" : p.text(t.module), p.text(t.name),
                         t.declares ? ":" + p.types->text(t.declared_type) : "");
    if (!is_none(st.value)) append(out, p, f, st.value);
    bool conditional =
        st.kind == Statement::if_else || st.kind == Statement::while_loop || st.kind == Statement::repeat;
    if (conditional) append(out, p, st.condition);
    if (!is_none(st.body)) append(out, p, f, st.body);
    if (!is_none(st.otherwise)) append(out, p, f, st.otherwise);
    for (const Operand& o : st.results) append(out, p, o);
  }
  out += " }";
}

}  // namespace

Outcome run_text(const std::string& name, const std::string& text) {
  std::string_view first = std::string_view(text).substr(0, text.find('\n'));
  bool directive = first.starts_with("// test:");
  auto option = [&](std::string_view word) { return directive && first.find(word) != std::string_view::npos; };
  Options options;
  options.strict = option("strict");
  options.dialect_v0 = option("v0");
  options.parse_only = option("parse");
  if (option("schema")) options.schema = &test_schema();
  SourceManager sources;
  FileId file = sources.add(name, text);
  DiagnosticSink sink;
  Timings timings;
  Outcome out;
  out.program = run(file, sources, options, sink, timings);
  out.ok = !sink.has_errors();
  for (const Diagnostic& d : sink.diagnostics()) out.kinds.emplace_back(d.kind);
  sink.sort_by_position();
  out.diagnostics = render(sink, sources);
  return out;
}

std::vector<std::string> test_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(RNDN_SOURCE_DIR "/tests/frontend/" + folder))
    if (entry.path().extension() == ".hir") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string read(const std::string& path) {
  auto text = read_file(path);
  EXPECT_TRUE(text.ok()) << path;
  return text.ok() ? *text : std::string();
}

void expect_golden(const std::string& path, const std::string& text) {
  const char* update = std::getenv("RNDN_UPDATE");
  bool exists = std::filesystem::exists(path);
  if (update && std::string_view(update) == "1") {
    if (text.empty())
      std::filesystem::remove(path);
    else
      ASSERT_TRUE(write_file(path, text).ok()) << path;
    return;
  }
  if (text.empty()) {
    EXPECT_FALSE(exists) << path << " expects diagnostics, but there are none";
    return;
  }
  ASSERT_TRUE(exists) << path << " is missing; run with RNDN_UPDATE=1 and read what it writes:\n" << text;
  EXPECT_EQ(read(path), text) << path;
}

std::string structure(const Program& p) {
  std::string out;
  for (const Module& m : p.modules) {
    out += fmt::format("module {}\n", is_none(m.name) ? "" : p.text(m.name));
    for (const Import& i : m.imports) {
      out += fmt::format("import {}{}", p.text(i.module), i.wildcard ? " *" : "");
      for (NameId n : i.names) out += fmt::format(" {}", p.text(n));
      out += '\n';
    }
    for (GlobalId g : m.globals) {
      out += fmt::format("global {}:{}", p.text(p.globals[g].name), p.types->text(p.globals[g].type));
      append(out, p, p.globals[g].value);
      out += '\n';
    }
    for (FunctionId id : m.functions) {
      const Function& f = p.functions[id];
      out += fmt::format("{} {}(", f.is_kernel ? "kernel" : "def", p.text(f.name));
      for (VariableId v : f.parameters)
        out += fmt::format("{}:{} ", p.text(f.variables[v].name), p.types->text(f.variables[v].type));
      out += ')';
      for (TypeId t : f.result_types) out += " " + p.types->text(t);
      append(out, p, f, f.body);
      out += '\n';
    }
  }
  return out;
}

}  // namespace rndn::hir
