// HorseIR text to an outlined program, for tests of the outliner and of what follows it.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "frontend/frontend.h"
#include "outliner/outliner.h"

namespace rndn::test {

struct Compiled {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  hir::Program program;
  outliner::Outlined outlined;
  std::string errors;  // rendered diagnostics; empty when all went well

  std::string main() const { return print(outlined.program, outlined.program.functions[outlined.program.main], true); }
  std::string kernel(size_t k) const {
    return print(outlined.program, outlined.program.functions[outlined.kernels[k].function], true);
  }
  std::string geometry(size_t k) const { return outlined.shapes.text(outlined.kernels[k].geometry, outlined.program); }
  // True when the two statements (by their first targets) were or were not fused for that reason.
  bool decided(std::string_view first, std::string_view second, bool fused, std::string_view why) const {
    for (const outliner::Decision& d : outlined.decisions) {
      const auto text = [&](NameId id) { return is_none(id) ? std::string_view() : outlined.program.text(id); };
      if (text(d.first) == first && text(d.second) == second && d.fused == fused && d.why == why) return true;
    }
    return false;
  }
};

// body: the statements of main. result: its type.
inline std::string program_text(std::string_view body, std::string_view result = "table") {
  return fmt::format("module m {{\n  import Builtin.*;\n  def main() : {} {{\n{}\n  }}\n}}\n", result, body);
}

inline void compile(Compiled& c, std::string text, outliner::Options options = {}) {
  const FileId file = c.sources.add("test.hir", std::move(text));
  c.program = hir::run(file, c.sources, {}, c.sink, c.timings);
  if (!c.sink.has_errors()) c.outlined = outliner::run(c.program, options, c.sink, c.timings);
  if (c.sink.has_errors()) c.errors = render(c.sink, c.sources);
}

}  // namespace rndn::test
