// The assembler beside NVIDIA's compiler in process: the same PTX files, both sides in one run, from text to cubin.
//   bench_compilers [--arch A] [--repeats N] [--nvjitlink libnvJitLink.so] [--all] FILE.ptx...
// Each file is a module. Times are the thread's processor time; ours the median of ten times as many repeats, since it is hundreds of times shorter. The
// sides take turns file by file, so that a disturbance of the machine meets both. At the end: geometric means of the ratios, the least ratio, and both sums.
// A file that one side refuses is named and left out.
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "assembler/assemble.h"
#include "libraries/base/system/files.h"
#include "libraries/base/errors/guarded_main.h"
#include "libraries/base/report/progress.h"
#include "ptx/parse.h"
#include "tools/nvidia_linker.h"
#include "tools/program.h"

namespace rndn {
namespace {

double thread_us() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

struct Spread {
  double median = 0, half = 0;  // half of what lies between the quartiles
};
Spread spread_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const size_t n = times.size();
  return {times[n / 2], (times[n * 3 / 4] - times[n / 4]) / 2};
}

// Times of `once` in us, after one that does not count; the first failure ends it.
template <class F>
Result<Spread> measure(int repeats, F&& once) {
  std::vector<double> times;
  for (int r = 0; r <= repeats; ++r) {
    const double begin = thread_us();
    RETURN_IF_ERROR(once());
    if (r) times.push_back(thread_us() - begin);
  }
  return spread_of(std::move(times));
}

struct Side {
  const char* name;
  std::vector<std::string> options;
};

int run(int argc, char** argv) {
  CLI::App app{"Our assembler beside NVIDIA's compiler in process, the same PTX", "bench_compilers"};
  std::string arch = "sm_90", library;
  int repeats = 5;
  bool all = false;
  std::vector<std::string> files;
  app.add_option("--arch", arch, "target");
  app.add_option("--repeats", repeats, "of NVIDIA's side; ours ten times as many")->check(CLI::Range(1, 1000));
  app.add_option("--nvjitlink", library, "libnvJitLink.so (default: where the loader finds it)");
  app.add_flag("--all", all, "a line for each file, not the means alone");
  app.add_option("files", files, "PTX files, a module each")->required();
  if (auto code = tools::parse_command_line(app, {argv + 1, argv + argc})) return *code;
  const isa::Target* target = isa::find_target(arch);
  if (!target) return tools::report(input_error("unknown target {}", arch));
  auto linker = tools::NvidiaLinker::open(library);
  if (!linker) return tools::report(linker.error());
  const Side sides[] = {{"-O3", {"-O3"}}, {"-O0", {"-O0"}}, {"fast", {"-Xptxas=--Ofast-compile=max"}}};
  constexpr size_t side_count = std::size(sides);

  assembler::Workspace workspace;
  double ours_sum = 0, sums[side_count] = {}, logs[side_count] = {}, least[side_count];
  std::fill(std::begin(least), std::end(least), INFINITY);
  size_t compared = 0, lines = 0;
  uint64_t instructions = 0;
  if (all)
    fmt::print("{:<32}{:>8}{:>12}{:>18}{:>18}{:>18}\n", "us per module", "lines", "rndn -O3", "-O3", "-O0", "fast");
  Progress progress("compiling", files.size(), !all);
  for (const std::string& path : files) {
    progress.advance(1);
    auto text = read_file(path);
    if (!text) return tools::report(text.error());
    uint64_t emitted = 0;
    const auto ours = measure(10 * repeats, [&]() -> Result<void> {
      SourceManager sources;
      DiagnosticSink sink;
      const ptx::Module module = ptx::parse(sources.add(path, *text), sources, sink);
      if (sink.has_errors()) return input_error("{}", render(sink, sources));
      assembler::Options o;
      o.target = target;
      o.contract = true;  // as the other side does
      o.workspace = &workspace;
      Timings timings;
      ASSIGN_OR_RETURN(const assembler::Assembled made, assembler::assemble(module, o, timings));
      emitted = 0;
      for (const auto& k : made.kernels) emitted += k.instructions;
      return {};
    });
    if (!ours) {
      fmt::print(stderr, "{}: left out, refused by rndn: {}\n", path, ours.error().message);
      continue;
    }
    Spread theirs[side_count];
    bool refused = false;
    for (size_t s = 0; s < side_count && !refused; ++s) {
      std::vector<std::string> options = {"-arch=" + arch, "-no-cache"};
      options.insert(options.end(), sides[s].options.begin(), sides[s].options.end());
      const auto time = measure(repeats, [&]() -> Result<void> {
        if (auto cubin = (*linker)->compile(*text, options); !cubin) return cubin.error();
        return {};
      });
      refused = !time.ok();
      if (refused)
        fmt::print(stderr, "{}: left out, {} {}: {}\n", path, (*linker)->name(), sides[s].name, time.error().message);
      else
        theirs[s] = *time;
    }
    if (refused) continue;
    ++compared;
    const size_t file_lines = static_cast<size_t>(std::count(text->begin(), text->end(), '\n'));
    lines += file_lines, instructions += emitted, ours_sum += ours->median;
    if (all)
      fmt::print("{:<32}{:>8}{:>8.0f} ±{:<3.0f}", path.substr(path.find_last_of('/') + 1).substr(0, 31), file_lines,
                 ours->median, ours->half);
    for (size_t s = 0; s < side_count; ++s) {
      const double ratio = theirs[s].median / ours->median;
      sums[s] += theirs[s].median, logs[s] += std::log(ratio), least[s] = std::min(least[s], ratio);
      if (all) fmt::print("{:>10.0f} {:>6.1f}x", theirs[s].median, ratio);
    }
    if (all) fmt::print("\n");
  }
  if (!compared) return tools::report(input_error("no file that both sides take"));
  fmt::print("{} of {} modules, {} lines, {} instructions, {}; {}\n", compared, files.size(), lines, instructions, arch,
             (*linker)->name());
  fmt::print("{:<8}{:>14}{:>16}{:>10}{:>14}\n", "", "sum, ms", "geometric mean", "least", "by the sums");
  fmt::print("{:<8}{:>14.2f}\n", "rndn", ours_sum / 1e3);
  for (size_t s = 0; s < side_count; ++s)
    fmt::print("{:<8}{:>14.1f}{:>15.1f}x{:>9.1f}x{:>13.1f}x\n", sides[s].name, sums[s] / 1e3,
               std::exp(logs[s] / static_cast<double>(compared)), least[s], sums[s] / ours_sum);
  return 0;
}

}  // namespace
}  // namespace rndn

int main(int argc, char** argv) { return rndn::guarded_main(rndn::run, argc, argv); }
