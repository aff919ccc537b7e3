// Assembler speed. Per file and phase: nanoseconds per emitted instruction; PTX lines per second from memory and from text.
//   bench_assembler [--arch A] [--level 0..3] [--repeats N] FILE.ptx...   files (all repeats in one process, the first tenth not counted)
//   bench_assembler [--arch A] [--level 0..3] [--repeats N] --scale       fixed cost (an empty kernel), kernels of 1,000 to 100,000 PTX instructions, and
//                                                                         shapes of control flow, each with 600 and 2,400 pieces: costs that grow are seen
//   bench_assembler --generate N                                          prints such a kernel of N instructions
// Figures are processor time, the best of the repeats; `spread` is how much slower the median total was.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "assembler/assemble.h"
#include "libraries/base/system/files.h"
#include "ptx/parse.h"

namespace {
using namespace rndn;

// A kernel of about n PTX instructions: loops over guarded loads, arithmetic of several types, divergent ifs, accumulators that live throughout.
std::string synthetic(uint32_t n) {
  std::string s =
      ".version 7.8\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 "
      "n) {\n"
      ".reg .u64 %a<4>;\n.reg .u32 %i<4>;\n.reg .f64 %s<4>;\n.reg .pred %g;\n";
  std::string body =
      "mov.u32 %i0, %tid.x;\nld.param.u64 %a0, [in];\nld.param.u64 %a1, [out];\nld.param.u32 %i1, [n];\n"
      "mov.f64 %s0, 0d0000000000000000;\nmov.f64 %s1, 0d3FF0000000000000;\nmov.u32 %i2, 0;\nmov.u32 %i3, 1;\n";
  uint32_t made = 10;
  for (uint32_t g = 1; made < n; ++g, made += 25) {
    body += fmt::format(
        "L{0}:\n"
        "mul.wide.u32 %x{0}0, %i0, 8;\n"
        "add.u64 %x{0}1, %a0, %x{0}0;\n"
        "ld.global.f64 %f{0}0, [%x{0}1];\n"
        "ld.global.u32 %y{0}0, [%x{0}1+{1}];\n"
        "and.b32 %y{0}1, %y{0}0, 255;\n"
        "shl.b32 %y{0}2, %y{0}0, 3;\n"
        "xor.b32 %y{0}3, %y{0}1, %y{0}2;\n"
        "mad.lo.u32 %y{0}4, %y{0}3, %i3, %i2;\n"
        "setp.lt.u32 %p{0}0, %y{0}4, %i1;\n"
        "selp.u32 %y{0}5, %y{0}3, %y{0}4, %p{0}0;\n"
        "add.u32 %i2, %i2, %y{0}5;\n"
        "@%p{0}0 bra M{0};\n"
        "fma.rn.f64 %f{0}1, %f{0}0, %s1, %s0;\n"
        "mul.rn.f64 %f{0}2, %f{0}1, %f{0}0;\n"
        "add.rn.f64 %f{0}3, %f{0}2, %s1;\n"
        "add.rn.f64 %s0, %s0, %f{0}3;\n"
        "setp.gt.f64 %p{0}1, %f{0}3, %s1;\n"
        "@%p{0}1 add.u32 %i3, %i3, 1;\n"
        "add.u64 %x{0}2, %x{0}0, %a1;\n"
        "st.global.f64 [%x{0}2], %f{0}2;\n"
        "M{0}:\n"
        "sub.u32 %y{0}6, %y{0}4, %i1;\n"
        "max.u32 %i2, %y{0}6, %y{0}1;\n"
        "setp.eq.u32 %p{0}2, %i2, {1};\n"
        "and.pred %p{0}3, %p{0}2, %p{0}0;\n"
        "@%p{0}3 bra L{0};\n",
        g, 8 * (g % 100));
  }
  const std::string registers = fmt::format(
      ".reg .u64 %x<{0}>;\n.reg .u32 %y<{0}>;\n.reg .f64 %f<{0}>;\n.reg .pred %p<{0}>;\n", 10 * (n / 25 + 3));
  return s + registers + body +
         "cvt.u64.u32 %a2, %i2;\nadd.u64 %a3, %a1, %a2;\nst.global.f64 [%a3], %s0;\nst.global.u32 [%a1], "
         "%i3;\nret;\n}\n";
}

// Time of this thread alone: other programs on the machine do not count.
double thread_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

constexpr Phase phases[] = {Phase::structure, Phase::select,   Phase::peephole,
                            Phase::schedule,  Phase::allocate, Phase::encode};

double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[static_cast<size_t>(q * static_cast<double>(v.size() - 1) + 0.5)];
}

// Functions of many pieces, in several shapes. {0}: number of the piece, {1}: of the next. Behind the pieces their ends, the last piece's first.
struct Shape {
  const char* name;
  std::string before, piece, after, end = {};
};
const std::string work =
    "ld.global.u32 %x{0}, [%in+8];\nmad.lo.u32 %s, %s, 3, %x{0};\nsetp.eq.u32 %p{0}, %x{0}, {0};\nxor.b32 %s, %s, {0};\n";
const std::string a_case =
    "setp.eq.u32 %p{0}, %n, {0};\n@!%p{0} bra N{0};\n" + work + work + "bra OUT;\nN{0}:\n";
const Shape shapes[] = {
    {"straight", "", work + "@%p{0} add.u32 %s, %s, 7;\n", ""},
    {"arms", "", work + "@%p{0} bra J{0};\n" + work + work + "st.global.u32 [%in], %s;\nJ{0}:\n", ""},
    {"loops", "", "L{0}:\n" + work + "@%p{0} bra L{0};\n", ""},
    {"to one", "", work + "@%p{0} bra FAIL;\n", "ret;\nFAIL: st.global.u32 [%in], %s;\nst.global.u32 [%in+4], %s;\n"},
    {"choice", "", a_case, "OUT:\n"},
    {"in a loop", "AGAIN:\n", a_case, "OUT:\nadd.u32 %n, %n, 1;\nsetp.lt.u32 %p0, %n, %s;\n@%p0 bra AGAIN;\n"},
    {"ways out", "AGAIN:\n", work + "@%p{0} bra OUT;\n", "bra AGAIN;\nOUT:\n"},
    {"barrier", "", work + "@%p{0} bra FAIL;\n", "bar.sync 0;\nret;\nFAIL: st.global.u32 [%in], %s;\ntrap;\n"},
    {"nested ifs", "", work + "@%p{0} bra E{0};\n", "", "E{0}:\nadd.u32 %s, %s, {0};\n"},
    {"nested loops", "", "L{0}:\n" + work, "", "add.u32 %s, %s, {0};\n@%p{0} bra L{0};\n"},
};
std::string many(const Shape& shape, int pieces) {
  std::string s = fmt::format(
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in)\n{{\n.reg .b32 %n, %s, %x<{0}>;\n"
      ".reg .b64 %in;\n.reg .pred %p<{0}>;\nld.param.u64 %in, [in];\nld.global.u32 %n, [%in];\nmov.u32 %s, %tid.x;\n",
      pieces);
  s += shape.before;
  for (int k = 0; k < pieces; ++k) s += fmt::format(fmt::runtime(shape.piece), k, k + 1);
  for (int k = pieces; k-- > 0;) s += fmt::format(fmt::runtime(shape.end), k);
  return s + shape.after + "st.global.u32 [%in], %s;\nret;\n}\n";
}

struct Bench {
  const isa::Target* target = isa::find_target("sm_90");
  int repeats = 100;
  int level = 3;

  void heading() const {
    fmt::print("{:<14}{:>8}{:>8}{:>8} |", "ns/instruction", "kernels", "lines", "instr");
    for (Phase p : phases) fmt::print("{:>10}", phase_name(p));
    fmt::print("{:>10}{:>8} |{:>9}{:>10}{:>10}{:>12}\n", "total", "spread", "us", "memory", "parse", "from text");
    fmt::print("{:>97} |{:>9}{:>10}{:>10}{:>12}\n", "", "", "Mlines/s", "ns/line", "Mlines/s");
  }

  // 0: fine; else an exit code.
  int run(const std::string& name, const std::string& text) const {
    ptx::Module module;
    const double lines = static_cast<double>(std::count(text.begin(), text.end(), '\n'));
    std::vector<double> parse, total;
    std::vector<std::vector<double>> by_phase(std::size(phases));
    uint64_t instructions = 0;
    size_t kernels = 0;
    assembler::Workspace workspace;
    auto now = [] { return thread_ns(); };
    for (int r = 0; r < repeats; ++r) {
      SourceManager sources;
      DiagnosticSink sink;
      FileId file = sources.add(name, text);
      auto t0 = now();
      module = ptx::parse(file, sources, sink);
      auto t1 = now();
      if (sink.has_errors()) return std::fputs(render(sink, sources).c_str(), stderr), 1;
      assembler::Options o;
      o.target = target;
      o.workspace = &workspace;
      o.level = level;
      Timings timings;
      auto t2 = now();
      auto result = assembler::assemble(module, o, timings);
      auto t3 = now();
      if (!result) return std::fprintf(stderr, "%s\n", result.error().message.c_str()), 1;
      if (r < repeats / 10) continue;
      instructions = 0, kernels = result->kernels.size();
      for (const auto& k : result->kernels) instructions += k.instructions;
      parse.push_back(t1 - t0);
      total.push_back(t3 - t2);
      for (size_t p = 0; p < std::size(phases); ++p)
        by_phase[p].push_back(static_cast<double>(timings.exclusive_ns(phases[p])) * (t3 - t2) /
                              static_cast<double>(timings.total_ns(PhaseGroup::compile) + 1));
    }
    const double n = static_cast<double>(std::max<uint64_t>(instructions, 1)), best = quantile(total, 0);
    std::string shown = name.substr(name.find_last_of('/') + 1);
    fmt::print("{:<14}{:>8}{:>8}{:>8} |", shown.substr(0, 14), kernels, lines, instructions);
    for (const auto& p : by_phase) fmt::print("{:>10.1f}", quantile(p, 0.5) / n);
    fmt::print("{:>10.1f}{:>7.1f}% |{:>9.1f}{:>10.2f}{:>10.0f}{:>12.2f}\n", best / n,
               100 * (quantile(total, 0.5) - best) / best, best / 1e3, lines / best * 1e3, quantile(parse, 0) / lines,
               lines / (best + quantile(parse, 0)) * 1e3);
    std::fflush(stdout);
    return 0;
  }
};

}  // namespace

int main(int argc, char** argv) {
  Bench bench;
  bool scale = false;
  std::vector<std::string> files;
  for (int k = 1; k < argc; ++k) {
    const std::string a = argv[k];
    const char* value = k + 1 < argc ? argv[k + 1] : "";
    if (a == "--arch")
      bench.target = isa::find_target(value), ++k;
    else if (a == "--repeats")
      bench.repeats = std::max(1, std::atoi(value)), ++k;
    else if (a == "--level")
      bench.level = std::atoi(value), ++k;
    else if (a == "--scale")
      scale = true;
    else if (a == "--generate")
      return std::fputs(synthetic(static_cast<uint32_t>(std::atoi(value))).c_str(), stdout), 0;
    else
      files.push_back(a);
  }
  if (!bench.target || (files.empty() && !scale))
    return std::fputs("usage: bench_assembler [--arch A] [--level 0..3] [--repeats N] [--scale] [--generate N] [FILE.ptx...]\n",
                      stderr),
           2;
  bench.heading();
  for (const std::string& path : files) {
    Result<std::string> text = read_file(path);
    if (!text) return std::fprintf(stderr, "%s\n", text.error().message.c_str()), text.error().exit_code();
    if (int code = bench.run(path, *text)) return code;
  }
  if (!scale) return 0;
  if (int code = bench.run("empty", ".version 7.8\n.target sm_60\n.address_size 64\n.visible .entry k() {\nret;\n}\n"))
    return code;
  for (uint32_t n : {1000u, 3000u, 10000u, 30000u, 100000u}) {
    Bench b = bench;
    b.repeats = std::max(3, bench.repeats / static_cast<int>(n / 1000));
    if (int code = b.run(fmt::format("synthetic {}", n), synthetic(n))) return code;
  }
  for (const Shape& shape : shapes)
    for (const int pieces : {600, 2400})
      if (int code = bench.run(fmt::format("{} {}", shape.name, pieces), many(shape, pieces))) return code;
}
