// Time of the frontend, text to typed program, per TPC-H query: build/bin/bench_frontend [REPEATS]. Budget: 100 us each (optimised builds).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "frontend/frontend.h"
#include "libraries/base/system/files.h"

int main(int argc, char** argv) {
  using namespace rndn;
  using Clock = std::chrono::steady_clock;
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 200;
  double worst = 0, sum = 0;
  std::printf("query      least     median us\n");
  for (int query = 1; query <= 22; ++query) {
    auto text = read_file(fmt::format("{}/tpch/queries/q{:02}.hir", RNDN_SOURCE_DIR, query));
    if (!text || repeats < 1) {
      std::fprintf(stderr, "error: %s\n", text ? "expected a number of repeats" : text.error().message.c_str());
      return 1;
    }
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      SourceManager sources;
      const FileId file = sources.add("q.hir", *text);
      DiagnosticSink sink;
      Timings timings;
      const auto start = Clock::now();
      const hir::Program program = hir::run(file, sources, {}, sink, timings);
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
      if (sink.has_errors()) return 1;
    }
    std::sort(times.begin(), times.end());
    std::printf("q%02d     %7.1f    %7.1f\n", query, times.front(), times[times.size() / 2]);
    worst = std::max(worst, times[times.size() / 2]);
    sum += times[times.size() / 2];
  }
  std::printf("sum of medians %.1f us, longest %.1f us\n", sum, worst);
}
