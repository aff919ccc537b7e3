// Speed of the outliner.
//   bench_outliner [--repeats N] FILE.hir...    microseconds per program, the least and the median of the repeats
//   bench_outliner [--repeats N] --scale        programs of 100 to 10,000 statements: nanoseconds per statement
// Figures are processor time of one thread, program text to typed program not included.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "frontend/frontend.h"
#include "libraries/base/system/files.h"
#include "outliner/outliner.h"

namespace {
using namespace rndn;

double now_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

// Filters, arithmetic, sums and what waits for them, over two tables, n statements in all.
std::string synthetic(size_t n) {
  std::string s =
      "module m {\n import Builtin.*;\n def main() : f64 {\n"
      "t:table = @load_table(`t:sym);\nv:f64 = check_cast(@column_value(t, `v:sym), f64);\n"
      "u:table = @load_table(`u:sym);\nw:f64 = check_cast(@column_value(u, `w:sym), f64);\nr:f64 = 0:f64;\n";
  for (size_t k = 0; 8 * k < n; ++k)
    s += fmt::format(
        "m{0}:bool = @gt({1}, r);\nc{0}:f64 = @compress(m{0}, {1});\na{0}:f64 = @mul(c{0}, c{0});\n"
        "b{0}:f64 = @plus(a{0}, c{0});\ns{0}:f64 = @sum(b{0});\nx{0}:f64 = @mul({1}, 2:f64);\n"
        "y{0}:f64 = @max(x{0});\nr = @plus({2}, y{0});\n",
        k, k % 2 ? "v" : "w", k % 10 ? fmt::format("s{}", k) : "r");
  return s + "return r;\n }\n}\n";
}

struct Figures {
  double least = 0, median = 0;
  size_t kernels = 0;
};

bool measure(const std::string& name, const std::string& text, size_t repeats, Figures& out) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  const hir::Program program = hir::run(sources.add(name, text), sources, {}, sink, timings);
  std::vector<double> runs;
  for (size_t i = 0; i < repeats && !sink.has_errors(); ++i) {
    const double start = now_us();
    const outliner::Outlined outlined = outliner::run(program, {}, sink, timings);
    runs.push_back(now_us() - start);
    out.kernels = outlined.kernels.size();
  }
  if (sink.has_errors()) {
    std::fputs(render(sink, sources).c_str(), stderr);
    return false;
  }
  std::sort(runs.begin(), runs.end());
  out.least = runs.front();
  out.median = runs[runs.size() / 2];
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  size_t repeats = 50;
  bool scale = false;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--repeats") && i + 1 < argc)
      repeats = std::max<size_t>(1, std::strtoul(argv[++i], nullptr, 10));
    else if (!std::strcmp(argv[i], "--scale"))
      scale = true;
    else
      files.emplace_back(argv[i]);
  }
  if (!scale && files.empty()) {
    std::fputs("usage: bench_outliner [--repeats N] FILE.hir... | --scale\n", stderr);
    return 2;
  }
  Figures f;
  if (scale) {
    fmt::print("{:>10} {:>8} {:>12} {:>14}\n", "statements", "kernels", "least us", "ns/statement");
    for (size_t n : {100, 300, 1000, 3000, 10000}) {
      if (!measure("scale", synthetic(n), std::max<size_t>(1, repeats / 10), f)) return 1;
      fmt::print("{:>10} {:>8} {:>12.0f} {:>14.0f}\n", n, f.kernels, f.least, 1e3 * f.least / static_cast<double>(n));
    }
    return 0;
  }
  fmt::print("{:<40} {:>8} {:>10} {:>10}\n", "us", "kernels", "least", "median");
  double worst = 0;
  for (const std::string& file : files) {
    auto text = read_file(file);
    if (!text) {
      std::fprintf(stderr, "error: %s\n", text.error().message.c_str());
      return 1;
    }
    if (!measure(file, *text, repeats, f)) return 1;
    worst = std::max(worst, f.median);
    fmt::print("{:<40} {:>8} {:>10.0f} {:>10.0f}\n", file.substr(file.rfind('/') + 1), f.kernels, f.least, f.median);
  }
  fmt::print("worst median {:.0f} us\n", worst);
  return 0;
}
