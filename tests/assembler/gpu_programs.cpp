// Code of ours on a GPU: random programs against the PTX interpreter and the code of the ptxas there; and many runs of a look-back scan and of a kernel
// that spills, at full occupancy, with stalls as scheduled, as long as they can be and random.
//
//   gpu_programs -o results.tsv [--first 0] [--programs 2000] [--runs 100000] [--ptxas ptxas] [--limit 20] [--reduce 20] [--device N]
//
// Where code of ours differs, a line says how often it does with stalls as scheduled and with maximal ones (a fault of the schedule goes away with these),
// and the first eight are reduced, --reduce seconds each.
//
// Work is done in child processes, one after another: a launch that takes longer than --limit seconds ends its process and counts as a failure; the
// next process goes on behind it. Results are lines `area item column fact`, as docs/measurements keeps them; exit code 1 when something differed.
// Static, for a machine without our libraries: cmake --preset portable -DBUILD_TESTING=ON, then the target program_gpu_programs.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "assembler/assemble.h"
#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"
#include "libraries/base/errors/diagnostic.h"
#include "ptx/parse.h"
#include "runtime/cuda/cuda_device.h"
#include "tests/assembler/ptxas_faults.h"
#include "tests/assembler/random_programs.h"
#include "tests/assembler/reduce_program.h"
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
  uint64_t first = 0, programs = 2000, runs = 100000;  // programs: number of the one behind the last
  int limit = 20, device = 0, reduce = 20;
};

// What all processes add to.
struct Totals {
  std::atomic<uint64_t> programs, without_ptxas, ptxas_at_fault, differences, reduced, hangs, errors, next,
      scan_runs[3], spill_runs[3], wrong_runs;
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
  o.stencils = Stencils::always;  // at -O0
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

// Where all programs read and write.
struct Buffers {
  device::Address in = 0, out = 0;
};

Result<Words> run_kernel(const Arguments& a, device::Device& gpu, device::ModuleHandle module, const std::string& name,
                         const Buffers& at, const std::string& what) {
  begin(a.limit, what);
  ASSIGN_OR_RETURN(device::KernelHandle kernel, gpu.find_kernel(module, name));
  RETURN_IF_ERROR(gpu.fill(at.out, 0, program_out_bytes));
  const auto parameters = program_parameters(at.in, at.out);
  RETURN_IF_ERROR(
      gpu.launch(kernel, {program_blocks, 1, 1}, {program_threads, 1, 1}, 0, std::as_bytes(std::span(parameters))));
  Words got(program_out_bytes / 8);
  RETURN_IF_ERROR(gpu.copy_to_host(got.data(), at.out, program_out_bytes));
  done();
  return got;
}

// The instruction whose stall count is too short, as text with those around it: with longest stalls up to and including it the result is right.
Result<std::string> short_stall(const std::vector<std::byte>& cubin,
                                const std::function<Result<bool>(const std::vector<std::byte>&)>& differs) {
  constexpr uint64_t longest = 11, word_bytes = 16, stall_bit = 41;  // of the upper half of a word of Volta and later
  ASSIGN_OR_RETURN(const cubin::Image image, cubin::read(cubin));
  const isa::Target* target = isa::find_target(totals->target);
  if (target->sm < 70) return input_error("bisection knows the words of sm_70 and later");
  const cubin::Bytes& code = image.kernels[0].code;
  const uint64_t n = code.size() / word_bytes;
  const auto word = [&](const cubin::Bytes& bytes, uint64_t k) {
    isa::Word w;
    std::memcpy(&w.lo, &bytes[k * word_bytes], 8);
    std::memcpy(&w.hi, &bytes[k * word_bytes + 8], 8);
    return w;
  };
  const auto right_with = [&](uint64_t first, uint64_t end) -> Result<bool> {
    cubin::Image changed = image;
    for (uint64_t k = first; k < end; ++k) {
      isa::Word w = word(code, k);
      if ((w.hi >> stall_bit & 15) < longest) w.hi = (w.hi & ~(uint64_t{15} << stall_bit)) | longest << stall_bit;
      std::memcpy(&changed.kernels[0].code[k * word_bytes + 8], &w.hi, 8);
    }
    ASSIGN_OR_RETURN(const bool wrong, differs(cubin::write(changed)));
    return !wrong;
  };
  uint64_t low = 0, high = n;  // wrong with [0, low), right with [0, high)
  while (high - low > 1) {
    const uint64_t middle = (low + high) / 2;
    ASSIGN_OR_RETURN(const bool right, right_with(0, middle));
    (right ? high : low) = middle;
  }
  ASSIGN_OR_RETURN(const bool alone, right_with(low, high));
  std::string text = fmt::format("stall of {:#x}{}:\n", low * word_bytes, alone ? "" : ", not by itself");
  for (uint64_t k = low < 24 ? 0 : low - 24; k < std::min(n, low + 12); ++k) {
    const isa::Word w = word(code, k);
    isa::Instruction i;
    const bool known = isa::decode(*target, w, k * word_bytes, i);
    text += fmt::format("{} {:#x} stall {} yield {} write {} read {} wait {:#x}: {}\n", k == low ? '>' : ' ',
                        k * word_bytes, i.control.stall, i.control.yield, i.control.write_barrier,
                        i.control.read_barrier, i.control.wait_mask, known ? isa::text(*target, i) : "?");
  }
  return text;
}

// One program of ours that differs: is it the schedule, and how small can it get?
Result<void> look_into(const Arguments& a, device::Device& gpu, uint64_t number, uint32_t sm, int level,
                       const Buffers& at, const Words& in, const std::string& what) {
  ptx::Module whole = program_module(sm);
  add_random_kernel(whole, number * 100 + sm, "k0");
  ASSIGN_OR_RETURN(whole, parse(ptx::print(whole)));
  constexpr int times = 20;
  const auto differing_runs = [&](const ptx::Module& m, const std::vector<std::byte>& cubin, int runs) -> Result<int> {
    ASSIGN_OR_RETURN(const Words expected, interpreted(m, "k0", in));
    ASSIGN_OR_RETURN(device::ModuleHandle module, gpu.load_module(cubin));
    int n = 0;
    for (int k = 0; k < runs; ++k) {
      ASSIGN_OR_RETURN(const Words got, run_kernel(a, gpu, module, "k0", at, what));
      n += got != expected;
    }
    RETURN_IF_ERROR(gpu.unload_module(module));
    return n;
  };
  const auto differing = [&](const ptx::Module& m, Stalls stalls, int runs) -> Result<int> {
    ASSIGN_OR_RETURN(const std::vector<std::byte> cubin, ours(m, totals->target, level, 0, stalls));
    return differing_runs(m, cubin, runs);
  };
  ASSIGN_OR_RETURN(const int scheduled, differing(whole, Stalls::scheduled, times));
  ASSIGN_OR_RETURN(const int maximal, differing(whole, Stalls::maximal, times));
  std::string text =
      fmt::format("{}: alone, {} of {} runs differ, with maximal stalls {}", what, scheduled, times, maximal);
  if (scheduled && a.reduce > 0 && totals->reduced++ < 8) {
    // As it fails at first: where maximal stalls help, they must go on to help.
    const int runs = scheduled == times ? 1 : times;
    const auto fails = [&](const ptx::Module& m) {
      const Result<int> n = differing(m, Stalls::scheduled, runs);
      if (!n.ok() || *n == 0) return false;
      if (maximal) return true;
      const Result<int> longer = differing(m, Stalls::maximal, runs);
      return longer.ok() && *longer == 0;
    };
    if (!maximal) {
      ASSIGN_OR_RETURN(const std::vector<std::byte> cubin, ours(whole, totals->target, level));
      ASSIGN_OR_RETURN(const std::string found,
                       short_stall(cubin, [&](const std::vector<std::byte>& changed) -> Result<bool> {
                         ASSIGN_OR_RETURN(const int n, differing_runs(whole, changed, runs));
                         return n > 0;
                       }));
      text += "\n" + found;
    }
    text += "\nreduced:\n" + text_of(tidy(reduced(whole, "k0", fails, std::chrono::seconds(a.reduce)), "k0"));
  }
  complain(text);
  return {};
}

// The programs `which` of a module with one code; `level`: of our code.
Result<void> compare(const Arguments& a, device::Device& gpu, const std::vector<std::byte>& cubin, uint64_t first,
                     const std::vector<uint64_t>& which, uint32_t sm, const std::vector<Words>& expected,
                     const Buffers& at, const Words& in, int level, const ptx::Module* theirs = nullptr) {
  ASSIGN_OR_RETURN(device::ModuleHandle module, gpu.load_module(cubin));
  const uint32_t highest = isa::find_target(totals->target)->sm;
  for (uint64_t k : which) {
    const std::string what =
        fmt::format("program {} of sm_{}, {}", first + k, sm, theirs ? "ptxas" : fmt::format("-O{}", level));
    const std::string name = fmt::format("k{}", k);
    ASSIGN_OR_RETURN(const Words got, run_kernel(a, gpu, module, name, at, what));
    if (got == expected[k]) continue;
    if (theirs && ptxas_fault(*theirs, name, highest, Seen::difference)) {
      ++totals->ptxas_at_fault;
      continue;
    }
    ++totals->differences;
    const size_t w =
        static_cast<size_t>(std::mismatch(got.begin(), got.end(), expected[k].begin()).first - got.begin());
    complain(fmt::format("{}: word {}: the PTX interpreter has {:#x}, the GPU {:#x}", what, w, expected[k][w], got[w]));
    if (theirs) continue;
    if (const Result<void> looked = look_into(a, gpu, first + k, sm, level, at, in, what); !looked.ok())
      complain(fmt::format("{}: {}", what, looked.error().message));
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
        RETURN_IF_ERROR(compare(a, *gpu, *code, x.first, x.all, x.sm, x.expected, {in_at, out_at}, in, level));
      }
      if (x.cubin.empty())
        totals->without_ptxas += x.asked.size();
      else
        RETURN_IF_ERROR(
            compare(a, *gpu, x.cubin, x.first, x.asked, x.sm, x.expected, {in_at, out_at}, in, 3, &x.module));
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
  totals->next = a.first / per_module;
  while (totals->next < modules) {
    const uint64_t before = totals->next;
    apart([&] { return random_programs(a); });
    if (totals->next == before) break;  // no way on: no GPU, say
  }
  if (totals->gpu[0])
    for (uint64_t variant = 0; variant < 6; ++variant) apart([&] { return many_runs(a, variant); });
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::string out = fmt::format("# {}, {}: gpu_programs --first {} --programs {} --runs {}, {:.0f} s\n", totals->gpu,
                                totals->target, a.first, a.programs, a.runs, seconds);
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
    else if (flag == "--first")
      a.first = std::stoull(value);
    else if (flag == "--programs")
      a.programs = std::stoull(value);
    else if (flag == "--runs")
      a.runs = std::stoull(value);
    else if (flag == "--limit")
      a.limit = std::stoi(value);
    else if (flag == "--reduce")
      a.reduce = std::stoi(value);
    else if (flag == "--device")
      a.device = std::stoi(value);
    else
      return std::fprintf(stderr, "unknown flag %s\n", argv[k]), 2;
  }
  if (argc % 2 == 0)
    return std::fprintf(
               stderr,
               "usage: gpu_programs -o FILE [--first N] [--programs N] [--runs N] [--ptxas PATH] [--limit SECONDS] "
               "[--reduce SECONDS] "
               "[--device N]\n"),
           2;
  return rndn::assembler::run(a);
}
