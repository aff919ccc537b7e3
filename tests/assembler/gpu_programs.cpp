// Code of ours on a GPU: random programs against the PTX interpreter and the code of the ptxas there; and many runs of a look-back scan and of a kernel
// that spills, at full occupancy, with stalls as scheduled, as long as they can be and random.
//
//   gpu_programs -o results.tsv [--programs 2000] [--runs 100000] [--ptxas ptxas] [--limit 20] [--device N]
//
// Work is done in child processes, one after another: a launch that takes longer than --limit seconds ends its process and counts as a failure; the
// next process goes on behind it. Results are lines `area item column fact`, as docs/measurements keeps them; exit code 1 when something differed.
// Static, for a machine without our libraries: cmake --preset portable -DBUILD_TESTING=ON, then the target program_gpu_programs.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "assembler/assemble.h"
#include "libraries/base/diagnostic.h"
#include "ptx/parse.h"
#include "runtime/cuda/cuda_device.h"
#include "tests/assembler/ptxas_faults.h"
#include "tests/assembler/random_programs.h"
#include "tests/assembler/stress_kernels.h"
#include "tests/support/ptxas.h"

namespace rndn::assembler {
namespace {

using namespace rndn::testing;
using namespace stress;
using Clock = std::chrono::steady_clock;
using Words = std::vector<uint64_t>;

struct Arguments {
  std::string output = "-", ptxas = "ptxas";
  uint64_t programs = 2000, runs = 100000;
  int limit = 20, device = 0;
};

// What all processes add to.
struct Totals {
  std::atomic<uint64_t> programs, without_ptxas, ptxas_at_fault, differences, hangs, errors, next, scan_runs[3],
      spill_runs[3], wrong_runs;
  std::atomic<int64_t> deadline;  // milliseconds of Clock; 0: nothing is under way
  char doing[200];
  char target[16], gpu[100];
};
Totals* totals = nullptr;
constexpr uint64_t per_module = 100;
constexpr int hung = 75;

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();
}
void begin(int seconds, const std::string& what) {
  std::snprintf(totals->doing, sizeof totals->doing, "%s", what.c_str());
  totals->deadline = now_ms() + int64_t{seconds} * 1000;
}
void done() { totals->deadline = 0; }
void watch() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const int64_t deadline = totals->deadline;
    if (deadline != 0 && now_ms() > deadline) {
      std::fprintf(stderr, "time limit: %s\n", totals->doing);
      std::fflush(nullptr);
      _exit(hung);
    }
  }
}
void complain(const std::string& what) { std::fprintf(stderr, "%s\n", what.c_str()); }

Result<ptx::Module> parse(const std::string& text) {
  SourceManager sources;
  DiagnosticSink sink;
  const FileId file = sources.add("programs.ptx", text);
  ptx::Module m = ptx::parse(file, sources, sink);
  if (sink.has_errors()) return input_error("{}", render(sink, sources));
  return m;
}
Result<std::vector<std::byte>> ours(const ptx::Module& m, const std::string& target, int level, uint32_t registers = 0,
                                    Stalls stalls = Stalls::scheduled, uint64_t seed = 1) {
  Options o;
  o.target = isa::find_target(target);
  if (!o.target) return input_error("no target {}", target);
  o.level = level;
  o.max_registers = registers;
  o.verify_passes = true;
  o.stalls = stalls;
  o.stall_seed = seed;
  Timings timings;
  ASSIGN_OR_RETURN(Assembled made, assemble(m, o, timings));
  return made.cubin;
}
Result<std::unique_ptr<device::Device>> open_gpu(const Arguments& a) {
  begin(60, "opening the GPU");
  auto preparation = cuda::prepare(a.device);
  ASSIGN_OR_RETURN(std::unique_ptr<device::Device> gpu, cuda::open(*preparation));
  std::snprintf(totals->target, sizeof totals->target, "%s", gpu->info().target.c_str());
  std::snprintf(totals->gpu, sizeof totals->gpu, "%s", gpu->info().name.c_str());
  done();
  return gpu;
}

// The programs `which` of a module with one code.
Result<void> compare(const Arguments& a, device::Device& gpu, const std::vector<std::byte>& cubin, uint64_t first,
                     const std::vector<uint64_t>& which, uint32_t sm, const std::vector<Words>& expected,
                     device::Address in, device::Address out, const char* who, const ptx::Module* theirs = nullptr) {
  ASSIGN_OR_RETURN(device::ModuleHandle module, gpu.load_module(cubin));
  Words got(program_out_bytes / 8);
  for (uint64_t k : which) {
    const std::string what = fmt::format("program {} of sm_{}, {}", first + k, sm, who);
    begin(a.limit, what);
    ASSIGN_OR_RETURN(device::KernelHandle kernel, gpu.find_kernel(module, fmt::format("k{}", k)));
    RETURN_IF_ERROR(gpu.fill(out, 0, program_out_bytes));
    const auto parameters = program_parameters(in, out);
    RETURN_IF_ERROR(
        gpu.launch(kernel, {program_blocks, 1, 1}, {program_threads, 1, 1}, 0, std::as_bytes(std::span(parameters))));
    RETURN_IF_ERROR(gpu.copy_to_host(got.data(), out, program_out_bytes));
    done();
    const std::string name = fmt::format("k{}", k);
    const uint32_t highest = isa::find_target(totals->target)->sm;
    if (got != expected[k] && theirs && ptxas_fault(*theirs, name, highest, Seen::difference)) {
      ++totals->ptxas_at_fault;
      continue;
    }
    for (size_t w = 0; w < got.size(); ++w)
      if (got[w] != expected[k][w]) {
        complain(
            fmt::format("{}: word {}: the PTX interpreter has {:#x}, the GPU {:#x}", what, w, expected[k][w], got[w]));
        ++totals->differences;
        break;
      }
  }
  return gpu.unload_module(module);
}

Result<void> random_programs(const Arguments& a) {
  ASSIGN_OR_RETURN(std::unique_ptr<device::Device> gpu, open_gpu(a));
  const std::string target = gpu->info().target;
  const uint32_t highest = isa::find_target(target)->sm;
  const Words in = program_input(77);
  ASSIGN_OR_RETURN(device::Address in_at, gpu->allocate(program_in_bytes));
  ASSIGN_OR_RETURN(device::Address out_at, gpu->allocate(program_out_bytes));
  RETURN_IF_ERROR(gpu->copy_to_device(in_at, in.data(), program_in_bytes));
  const uint64_t modules = (a.programs + per_module - 1) / per_module;
  // ptxas takes long: all modules side by side, a part of them at a time.
  for (uint64_t group = totals->next; group < modules;) {
    struct Made {
      uint64_t first = 0, n = 0;
      uint32_t sm = 61;
      std::vector<uint64_t> all, asked;  // of its programs; those that ptxas is asked about (ptxas_faults.h)
      std::vector<std::byte> cubin;
      std::vector<Words> expected;
      ptx::Module module;
      std::string error;
    };
    const uint64_t end = std::min<uint64_t>(modules, group + 16);
    std::vector<Made> made(end - group);
    std::vector<std::thread> threads;
    for (uint64_t m = group; m < end; ++m)
      threads.emplace_back([&, m] {
        Made& x = made[m - group];
        x.first = m * per_module, x.n = std::min(per_module, a.programs - x.first);
        constexpr uint32_t levels[] = {61, 80, 90};
        x.sm = std::min(levels[m % 3], highest);
        const auto text_of = [&](const std::vector<uint64_t>& which) {
          ptx::Module module = program_module(x.sm);
          for (uint64_t k : which) add_random_kernel(module, (x.first + k) * 100 + x.sm, fmt::format("k{}", k));
          return ptx::print(module);
        };
        for (uint64_t k = 0; k < x.n; ++k) x.all.push_back(k);
        auto parsed = parse(text_of(x.all));
        if (!parsed.ok()) {
          x.error = parsed.error().message;
          return;
        }
        x.module = *std::move(parsed);
        for (uint64_t k = 0; k < x.n; ++k) {
          auto out = interpreted(x.module, fmt::format("k{}", k), in);
          if (!out.ok()) {
            x.error = out.error().message;
            return;
          }
          x.expected.push_back(*std::move(out));
        }
        for (uint64_t k : x.all)
          if (!ptxas_fault(x.module, fmt::format("k{}", k), highest)) x.asked.push_back(k);
        if (auto theirs = test::ptxas_cubin(a.ptxas, text_of(x.asked), target, m); theirs.ok())
          x.cubin = *std::move(theirs);
      });
    for (std::thread& t : threads) t.join();
    for (Made& x : made) {
      const uint64_t index = x.first / per_module;
      totals->next = index + 1;
      if (!x.error.empty()) {
        complain(x.error);
        ++totals->errors;
        continue;
      }
      for (int level : {0, 3}) {
        auto code = ours(x.module, target, level);
        if (!code.ok()) {
          complain(fmt::format("module {} -O{}: {}", index, level, code.error().message));
          ++totals->errors;
          continue;
        }
        RETURN_IF_ERROR(
            compare(a, *gpu, *code, x.first, x.all, x.sm, x.expected, in_at, out_at, level ? "-O3" : "-O0"));
      }
      if (x.cubin.empty())
        totals->without_ptxas += x.asked.size();
      else
        RETURN_IF_ERROR(
            compare(a, *gpu, x.cubin, x.first, x.asked, x.sm, x.expected, in_at, out_at, "ptxas", &x.module));
      totals->ptxas_at_fault += x.n - x.asked.size();
      totals->programs += x.n;
    }
    group = end;
  }
  return {};
}

// `variant`: 0, 1, 2 the scan with stalls as scheduled, maximal, random; 3, 4, 5 the kernel that spills.
Result<void> many_runs(const Arguments& a, uint64_t variant) {
  ASSIGN_OR_RETURN(std::unique_ptr<device::Device> gpu, open_gpu(a));
  const std::string target = gpu->info().target;
  const bool scan = variant < 3;
  const Stalls stalls = static_cast<Stalls>(variant % 3);
  ASSIGN_OR_RETURN(ptx::Module module, parse(scan ? scan_text : spill_text()));
  ASSIGN_OR_RETURN(ptx::Module checker, parse(scan_text));
  ASSIGN_OR_RETURN(std::vector<std::byte> check_code, ours(checker, target, 3));
  ASSIGN_OR_RETURN(device::ModuleHandle check_module, gpu->load_module(check_code));
  ASSIGN_OR_RETURN(device::KernelHandle check, gpu->find_kernel(check_module, "check"));
  std::vector<device::KernelHandle> kernels;
  for (uint64_t seed = 1; seed <= (stalls == Stalls::random ? 16u : 1u); ++seed) {
    ASSIGN_OR_RETURN(std::vector<std::byte> code, ours(module, target, 3, scan ? 0 : 24, stalls, seed));
    ASSIGN_OR_RETURN(device::ModuleHandle loaded, gpu->load_module(code));
    ASSIGN_OR_RETURN(device::KernelHandle kernel, gpu->find_kernel(loaded, scan ? "scan" : "spill"));
    kernels.push_back(kernel);
  }
  ASSIGN_OR_RETURN(const uint32_t resident, gpu->blocks_per_multiprocessor(kernels[0], 256, 0));
  ASSIGN_OR_RETURN(device::KernelInfo info, gpu->kernel_info(kernels[0]));
  const uint32_t blocks = resident * gpu->info().multiprocessors, n = blocks * 256;
  std::fprintf(stderr, "%s: %u blocks on each multiprocessor, %u registers, %u bytes of stack\n",
               scan ? "scan" : "spill", resident, info.registers, info.local_bytes);
  std::vector<uint32_t> in(std::max(n, spill_mask + 1)), expected(n);
  uint32_t state = 12345;
  for (uint32_t& x : in) x = state = state * 1664525 + 1013904223;
  uint32_t sum = 0;
  for (uint32_t k = 0; k < n; ++k) expected[k] = scan ? (sum += in[k]) : spilled(in, k);
  ASSIGN_OR_RETURN(device::Address in_at, gpu->allocate(in.size() * 4));
  ASSIGN_OR_RETURN(device::Address out_at, gpu->allocate(n * 4));
  ASSIGN_OR_RETURN(device::Address expected_at, gpu->allocate(n * 4));
  ASSIGN_OR_RETURN(device::Address states_at, gpu->allocate(blocks * 8));
  ASSIGN_OR_RETURN(device::Address words_at, gpu->allocate(16));
  RETURN_IF_ERROR(gpu->copy_to_device(in_at, in.data(), in.size() * 4));
  RETURN_IF_ERROR(gpu->copy_to_device(expected_at, expected.data(), n * 4));
  RETURN_IF_ERROR(gpu->fill(out_at, 0, n * 4));
  RETURN_IF_ERROR(gpu->fill(states_at, 0, blocks * 8));
  RETURN_IF_ERROR(gpu->fill(words_at, 0, 16));
  uint32_t wrong_before = 0;
  for (uint64_t run = 0; run < a.runs;) {
    const uint64_t end = std::min<uint64_t>(a.runs, run + 500);
    begin(a.limit,
          fmt::format("{} with stalls {}, runs from {}", scan ? "scan" : "spill", static_cast<int>(stalls), run));
    for (uint64_t k = run; k < end; ++k) {
      const uint64_t parameters[6] = {in_at, out_at, states_at, words_at, k + 1, blocks};
      RETURN_IF_ERROR(gpu->launch(kernels[k % kernels.size()], {blocks, 1, 1}, {256, 1, 1}, 0,
                                  std::as_bytes(std::span(parameters)).first(scan ? 48 : 16)));
      const uint64_t checked[3] = {out_at, expected_at, words_at + 8};
      RETURN_IF_ERROR(gpu->launch(check, {blocks, 1, 1}, {256, 1, 1}, 0, std::as_bytes(std::span(checked))));
    }
    uint32_t wrong = 0;
    RETURN_IF_ERROR(gpu->copy_to_host(&wrong, words_at + 8, 4));
    done();
    if (wrong != wrong_before) {
      complain(fmt::format("{}: {} wrong words in runs {} to {}", totals->doing, wrong - wrong_before, run, end));
      ++totals->wrong_runs;
    }
    wrong_before = wrong;
    (scan ? totals->scan_runs : totals->spill_runs)[variant % 3] += end - run;
    run = end;
  }
  return {};
}

// In a process of its own; false when the time limit ended it.
template <class F>
void apart(F&& work) {
  for (;;) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      std::thread(watch).detach();
      Result<void> result = work();
      if (!result.ok()) {
        complain(fmt::format("{}: {}", totals->doing, result.error().message));
        ++totals->errors;
      }
      std::fflush(nullptr);
      _exit(result.ok() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == hung) ++totals->hangs;
    if (WIFSIGNALED(status)) ++totals->errors, complain(fmt::format("signal {}", WTERMSIG(status)));
    return;
  }
}

int run(const Arguments& a) {
  void* shared = mmap(nullptr, sizeof(Totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 3;
  totals = new (shared) Totals{};
  const auto start = Clock::now();
  const uint64_t modules = (a.programs + per_module - 1) / per_module;
  for (uint64_t before = 0; totals->next < modules; before = totals->next) {
    apart([&] { return random_programs(a); });
    if (totals->next == before) break;  // no way on: no GPU, say
  }
  if (totals->gpu[0])
    for (uint64_t variant = 0; variant < 6; ++variant) apart([&] { return many_runs(a, variant); });
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::string out = fmt::format("# {}, {}: gpu_programs --programs {} --runs {}, {:.0f} s\n", totals->gpu,
                                totals->target, a.programs, a.runs, seconds);
  const auto line = [&](const std::string& item, uint64_t value) {
    out += fmt::format("count\t{}\t{}\t{}\n", item, totals->target, value);
  };
  line("random programs on a GPU: ours at -O0 and -O3, ptxas's and the PTX interpreter", totals->programs);
  line("of these without ptxas's code", totals->without_ptxas);
  line("of these that ptxas is known to get wrong", totals->ptxas_at_fault);
  line("random programs on a GPU that differ", totals->differences);
  constexpr const char* names[] = {"stalls as scheduled", "maximal stalls", "random stalls"};
  for (int k = 0; k < 3; ++k)
    line(fmt::format("runs on a GPU of a look-back scan, {}", names[k]), totals->scan_runs[k]);
  for (int k = 0; k < 3; ++k)
    line(fmt::format("runs on a GPU of a spilling kernel, {}", names[k]), totals->spill_runs[k]);
  line("groups of 500 such runs with a wrong word", totals->wrong_runs);
  line("launches beyond the time limit", totals->hangs);
  line("errors", totals->errors);
  if (!write_file(a.output, out).ok()) return 3;
  return totals->differences || totals->wrong_runs || totals->hangs || totals->errors ? 1 : 0;
}

}  // namespace
}  // namespace rndn::assembler

int main(int argc, char** argv) {
  rndn::assembler::Arguments a;
  for (int k = 1; k + 1 < argc; k += 2) {
    const std::string flag = argv[k], value = argv[k + 1];
    if (flag == "-o")
      a.output = value;
    else if (flag == "--ptxas")
      a.ptxas = value;
    else if (flag == "--programs")
      a.programs = std::stoull(value);
    else if (flag == "--runs")
      a.runs = std::stoull(value);
    else if (flag == "--limit")
      a.limit = std::stoi(value);
    else if (flag == "--device")
      a.device = std::stoi(value);
    else
      return std::fprintf(stderr, "unknown flag %s\n", argv[k]), 2;
  }
  if (argc % 2 == 0)
    return std::fprintf(
               stderr,
               "usage: gpu_programs -o FILE [--programs N] [--runs N] [--ptxas PATH] [--limit SECONDS] [--device N]\n"),
           2;
  return rndn::assembler::run(a);
}
