// rndn-as: PTX to cubin, with ptxas's common flags.
//
//   rndn-as FILE.ptx -arch=sm_86 -o F.cubin [-O0..-O3] [-v] [-lineinfo] [--maxrregcount N]
//
// Exit codes: 0 success; 1 the input is at fault; 2 wrong usage; 3 output or memory at fault; 70 internal error.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "assembler/assemble.h"
#include "assembler/cubin/cubin.h"
#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/system/files.h"
#include "libraries/base/errors/guarded_main.h"
#include "libraries/base/system/parallel.h"
#include "libraries/base/report/version.h"
#include "ptx/parse.h"
#include "tools/program.h"

namespace {

using namespace rndn;

constexpr uint32_t least_registers = 16;  // the assembler's own lower limit

struct Arguments {
  std::string input, output, arch;
  assembler::Options options;
  unsigned threads = 0;
  bool quiet = false, strict = false, debug = false;
  bool verbose = false, time = false, inlining_off = false, unrolling_off = false, stencils = false;
};

// Flags of ptxas that change nothing here: what they ask for is so anyway, or is a hint.
struct Ignored {
  std::string_view name;
  bool value;
};
constexpr Ignored ignored[] = {{"-m64", false},
                               {"--machine", true},
                               {"-m", true},
                               {"--def-load-cache", true},
                               {"-dlcm", true},
                               {"--def-store-cache", true},
                               {"-dscm", true},
                               {"--force-load-cache", true},
                               {"-flcm", true},
                               {"--force-store-cache", true},
                               {"-fscm", true},
                               {"--allow-expensive-optimizations", true},
                               {"-allow-expensive-optimizations", true},
                               {"--warn-on-spills", false},
                               {"-warn-spills", false},
                               {"--warn-on-local-memory-usage", false},
                               {"-warn-lmem-usage", false},
                               {"--warn-on-double-precision-use", false},
                               {"-warn-double-usage", false},
                               {"--suppress-stack-size-warning", false},
                               {"-suppress-stack-size-warning", false},
                               {"--suppress-double-demote-warning", false},
                               {"-suppress-double-demote-warning", false},
                               {"--suppress-debug-info", false},
                               {"-suppress-debug-info", false},
                               {"--disable-optimizer-constants", false},
                               {"-disable-optimizer-consts", false},
                               {"--preserve-relocs", false},
                               {"-preserve-relocs", false},
                               {"--extensible-whole-program", false},
                               {"-ewp", false}};

// ptxas writes some long flags with one dash, and `=` behind short ones.
std::vector<std::string> with_two_dashes(const std::vector<std::string>& given) {
  static constexpr std::string_view long_flags[] = {"-arch",    "-gpu-name",  "-maxrregcount",       "-lineinfo",
                                                    "-verbose", "-opt-level", "-generate-line-info", "-output-file", "-fmad"};
  std::vector<std::string> out;
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string& s = given[i];
    if (s == "-Werror") {
      out.push_back("--Werror");
      continue;
    }
    if (s == "--") {
      out.insert(out.end(), given.begin() + static_cast<std::ptrdiff_t>(i), given.end());
      break;
    }
    const std::string_view name = std::string_view(s).substr(0, s.find('='));
    const Ignored* x = std::find_if(std::begin(ignored), std::end(ignored),
                                    [&](const Ignored& f) { return f.name == name && (f.value || f.name == s); });
    if (x != std::end(ignored)) {
      if (x->value && name.size() == s.size()) ++i;  // its value follows
      continue;
    }
    if (s.starts_with("-o=") || s.starts_with("-O=")) {
      out.push_back(s.substr(0, 2));
      out.push_back(s.substr(3));
    } else if (std::find(std::begin(long_flags), std::end(long_flags), s.substr(0, s.find('='))) !=
               std::end(long_flags)) {
      out.push_back("-" + s);
    } else {
      out.push_back(s);
    }
  }
  return out;
}

// What the cubin takes, in the words of ptxas 13's -v, which scripts read. Registers and memory are read back from what is written.
Result<void> print_resources(const assembler::Assembled& made, const isa::Target& target, std::string_view arch) {
  ASSIGN_OR_RETURN(const cubin::Image image, cubin::read(made.cubin));
  uint64_t set = 0, zero = 0, constant = 0;  // bytes of global memory with and without initial values, of constant memory
  for (const cubin::Variable& v : image.variables) {
    uint64_t& bytes = v.constant ? constant : v.initial.empty() ? zero : set;
    bytes = std::max(bytes, v.offset + v.size);
  }
  const auto say = [](std::string_view text) { fmt::print(stderr, "ptxas info    : {}\n", text); };
  say(fmt::format("{} bytes gmem{}", set + zero, constant ? fmt::format(", {} bytes cmem[3]", constant) : ""));
  for (const assembler::KernelReport& report : made.kernels) {
    const cubin::Kernel& k = *std::ranges::find(image.kernels, report.name, &cubin::Kernel::name);
    say(fmt::format("Compiling entry function '{}' for '{}'", k.name, arch));
    say(fmt::format("Function properties for {}", k.name));
    fmt::print(stderr, "    {} bytes stack frame, {} bytes spill stores, {} bytes spill loads\n", k.local_bytes,
               report.spill_store_bytes, report.spill_load_bytes);
    std::string line = fmt::format("Used {} registers, used {} barriers", k.registers, k.barriers);
    if (const uint32_t shared = k.shared_bytes - (k.uses_shared ? target.shared_base : 0))
      line += fmt::format(", {} bytes smem", shared);
    line += fmt::format(", {} bytes cmem[0]", target.parameter_base + k.parameter_bytes);
    if (!k.constants.empty()) line += fmt::format(", {} bytes cmem[2]", k.constants.size());
    say(line);
  }
  return {};
}

int run(int argc, char** argv) {
  Arguments a;
  std::string targets;
  for (const isa::Target& t : isa::targets()) targets += " " + std::string(t.name);
  CLI::App app("Assembles PTX for NVIDIA GPUs. Takes the common flags of ptxas, also in its spelling (-arch=sm_86).",
               "rndn-as");
  // Programs that call ptxas look for its release here, to know what PTX it takes.
  app.set_version_flag("--version",
                       fmt::format("rndn-as {}, targets{}\nTakes the PTX of CUDA release 13.0", version(), targets));
  app.add_option("FILE.ptx", a.input, "the input; - reads standard input")->required();
  app.add_option("--arch,--gpu-name", a.arch, "target:" + targets + "; default: the file's .target")->type_name("A");
  app.add_option("-o,--output-file", a.output,
                 "output; - is standard output; default: FILE.cubin, or elf.o for standard input")
      ->type_name("FILE");
  tools::add_number(app, "-O,--opt-level", a.options.level, 0, 3,
                    "0: quickly; 1: linear schedule, peepholes; 2: list schedule; 3 (default): all");
  tools::add_number(app, "--maxrregcount", a.options.max_registers, 0u, 255u,
                    "at most N registers per thread; 0: the target's limit");
  a.options.contract = true;
  app.add_option("--fmad", a.options.contract,
                 "true (default): products and sums of floats without a rounding of their own become fma, from -O1 on")
      ->type_name("BOOL");
  app.add_flag("-v,--verbose", a.verbose, "registers, spills and memory of each kernel as ptxas prints them, on standard error");
  app.add_flag("--lineinfo,--generate-line-info", a.options.line_tables, "line tables from .loc and .file");
  app.add_flag("-g,--device-debug", a.debug, "accepted; code is optimised as without it, and has no debug information");
  app.add_flag("-w,--disable-warnings", a.quiet, "no warnings");
  app.add_flag("--Werror,--warning-as-error", a.strict, "warnings are errors");
  app.add_flag("--verify-passes", a.options.verify_passes, "run the independent checkers after each pass");
  app.add_flag("--stencils", a.stencils, "at -O0: code copied from finished pieces, as for those who assemble again and again");
  app.add_flag("--no-branch-inlining", a.inlining_off, "keep small if-bodies as branches");
  app.add_flag("--no-unrolling", a.unrolling_off, "keep loops as they are");
  app.add_option("--threads,--split-compile", a.threads,
                 "threads that assemble entries side by side (default: all cores)")
      ->check(CLI::Range(1u, 1024u))
      ->type_name("N");
  app.add_flag("--time", a.time, "phase times on standard error");
  for (int k = 1; k < argc; ++k)
    if (const std::string_view flag = argv[k]; flag == "-c" || flag == "--compile-only")
      return tools::report(
          usage_error("unsupported: {}; cubins are whole programs, there are no relocatable objects", flag));
  if (auto code = tools::parse_command_line(app, with_two_dashes({argv + 1, argv + argc}))) return *code;
  a.options.branch_inlining = !a.inlining_off;
  a.options.unrolling = !a.unrolling_off;
  if (a.stencils) a.options.stencils = assembler::Stencils::always;
  if (!a.arch.empty() && !isa::find_target(a.arch))
    return tools::report(usage_error("unknown target `{}`; targets are{}", a.arch, targets));
  size_t warnings = 0;
  const auto warn = [&](const std::string& text) {
    ++warnings;
    if (!a.quiet || a.strict) std::fprintf(stderr, "%s: %s\n", a.strict ? "error" : "warning", text.c_str());
  };
  if (a.debug) warn("unsupported: -g; no debug information is written");
  if (a.options.max_registers > 0 && a.options.max_registers < least_registers)
    warn(fmt::format("--maxrregcount {} is raised to {}, the least number of registers of a kernel",
                     a.options.max_registers, least_registers));
  if (a.strict && warnings) return 1;

  Result<std::string> text = read_file(a.input);
  if (!text) return tools::report(text.error());
  SourceManager sources;
  DiagnosticSink sink;
  FileId file = sources.add(a.input == "-" ? "<stdin>" : a.input, std::move(*text));
  ptx::Module module = ptx::parse(file, sources, sink);
  if (!sink.diagnostics().empty()) std::fputs(render(sink, sources).c_str(), stderr);
  if (sink.has_errors()) return 1;

  if (a.arch.empty()) a.arch = "sm_" + std::to_string(module.target);
  a.options.target = isa::find_target(a.arch);
  if (!a.options.target)
    return tools::report(input_error("{}: .target {} is none of{}; choose one with -arch", a.input, a.arch, targets));
  if (module.target > a.options.target->sm)
    return tools::report(input_error("{}: .target sm_{} does not run on {}", a.input, module.target, a.arch));
  ThreadPool pool(a.threads);
  a.options.pool = &pool;
  Timings timings;
  Result<assembler::Assembled> result = assembler::assemble(module, a.options, timings);
  if (!result) return tools::report({result.error().fault, fmt::format("{}: {}", a.input, result.error().message)});
  if (a.verbose)
    if (Result<void> printed = print_resources(*result, *a.options.target, a.arch); !printed)
      return tools::report(printed.error());
  if (a.time) std::fputs(timings.tree().c_str(), stderr);
  if (a.output.empty()) {
    size_t dot = a.input.rfind('.'), slash = a.input.rfind('/');
    std::string stem =
        dot != std::string::npos && (slash == std::string::npos || dot > slash) ? a.input.substr(0, dot) : a.input;
    a.output = a.input == "-" ? "elf.o" : stem + ".cubin";
  }
  Result<void> written =
      write_file(a.output, {reinterpret_cast<const char*>(result->cubin.data()), result->cubin.size()});
  return written ? 0 : tools::report(written.error());
}

}  // namespace

int main(int argc, char** argv) { return guarded_main(run, argc, argv); }
