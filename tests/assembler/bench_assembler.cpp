// Assembler speed: parses a PTX file once, assembles it many times, prints nanoseconds per emitted instruction.
//   bench_assembler FILE.ptx [ARCH [REPEATS]]
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "assembler/assemble.h"
#include "libraries/base/files.h"
#include "ptx/parse.h"

int main(int argc, char** argv) {
  using namespace rndn;
  if (argc < 2) return std::fprintf(stderr, "usage: bench_assembler FILE.ptx [ARCH [REPEATS]]\n"), 2;
  Result<std::string> text = read_file(argv[1]);
  if (!text) return std::fprintf(stderr, "%s\n", text.error().message.c_str()), text.error().exit_code();
  SourceManager sources;
  DiagnosticSink sink;
  ptx::Module module = ptx::parse(sources.add(argv[1], *text), sources, sink);
  if (sink.has_errors()) return std::fputs(render(sink, sources).c_str(), stderr), 1;
  assembler::Options o;
  o.target = isa::find_target(argc > 2 ? argv[2] : "sm_86");
  if (!o.target) return 2;
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 200;
  Timings timings;
  uint64_t instructions = 0;
  double best = 1e30;
  for (int r = 0; r < repeats; ++r) {
    if (r == repeats / 10) timings.reset();
    auto start = std::chrono::steady_clock::now();
    auto result = assembler::assemble(module, o, timings);
    double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    if (!result) return std::fprintf(stderr, "%s\n", result.error().message.c_str()), 1;
    instructions = 0;
    for (const auto& k : result->kernels) instructions += k.instructions;
    best = std::min(best, ns);
  }
  std::printf("%s: %llu instructions, best %.1f us, %.1f ns per instruction\n", argv[1],
              static_cast<unsigned long long>(instructions), best / 1e3, best / static_cast<double>(instructions));
  std::fputs(timings.tree().c_str(), stdout);
}
