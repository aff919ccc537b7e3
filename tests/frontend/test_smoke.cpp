#include <fmt/core.h>
#include <gtest/gtest.h>
#include "frontend/frontend.h"
#include "libraries/base/files.h"
using namespace rndn;
TEST(Smoke, Query6) {
  SourceManager sources;
  const char* path = getenv("F");
  std::string p = path ? path : RNDN_SOURCE_DIR "/tpch/queries/q06.hir";
  FileId file = sources.add(p, *read_file(p));
  DiagnosticSink sink;
  Timings timings;
  hir::Program program = hir::run(file, sources, {}, sink, timings);
  fmt::print("{}", render(sink, sources));
  fmt::print("{}", hir::print(program, true));
  EXPECT_FALSE(sink.has_errors());
}
