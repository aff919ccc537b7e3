// How often the 22 queries' way from text to PTX asks for memory: a count that repeats exactly, unlike times. It may fall, not rise.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "frontend/frontend.h"
#include "libraries/base/system/files.h"
#include "outliner/outliner.h"
#include "ptx/codegen/codegen.h"

namespace {
size_t allocations = 0;
}

[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
// std::stable_sort asks for its buffer this way.
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace rndn {
namespace {

TEST(Allocations, OfTheQueries) {
  size_t kernels = 0, counted = 0;
  for (int q = 1; q <= 22; ++q) {
    const std::string path = fmt::format("{}/tpch/queries/q{:02}.hir", RNDN_SOURCE_DIR, q);
    auto text = read_file(path);
    ASSERT_TRUE(text.ok()) << path;
    SourceManager sources;
    DiagnosticSink sink;
    Timings timings;
    const FileId file = sources.add(path, *std::move(text));
    const size_t before = allocations;
    const hir::Program program = hir::run(file, sources, {}, sink, timings);
    const outliner::Outlined outlined = outliner::run(program, {}, sink, timings);
    const auto code = codegen::generate(outlined, {}, timings);
    counted += allocations - before;
    ASSERT_TRUE(code.ok() && !sink.has_errors()) << path;
    kernels += code->kernels.size();
  }
  EXPECT_EQ(kernels, 116u);
  EXPECT_GT(counted, 5000u) << "nothing was counted";
  EXPECT_LE(counted, 22393u);
}

}  // namespace
}  // namespace rndn
