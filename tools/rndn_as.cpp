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
#include "assembler/ptxas/options.h"
#include "assembler/ptxas/words.h"
#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/errors/guarded_main.h"
#include "libraries/base/report/version.h"
#include "libraries/base/system/files.h"
#include "libraries/base/system/parallel.h"
#include "ptx/parse.h"
#include "tools/program.h"

namespace {

using namespace rndn;

constexpr uint32_t least_registers = 16;  // the assembler's own lower limit

struct Arguments {
  std::string input, text, output, arch;
  assembler::Options options;
  unsigned threads = 0;
  bool quiet = false, strict = false, debug = false, no_debug_sections = false;
  bool warn_of_spills = false, warn_of_local_memory = false;
  bool verbose = false, time = false, inlining_off = false, unrolling_off = false, stencils = false;
};

int run(int argc, char** argv) {
  Arguments a;
  std::string targets;
  for (const isa::Target& t : isa::targets()) targets += " " + std::string(t.name);
  CLI::App app("Assembles PTX for NVIDIA GPUs. Takes the common flags of ptxas, also in its spelling (-arch=sm_86).",
               "rndn-as");
  // Programs that call ptxas look for its release here, to know what PTX it takes: Triton for `release 13.0`, XLA for `V13.0.0`, CUDA.jl for both.
  app.set_version_flag("-V,--version",
                       fmt::format("rndn-as {0}, targets{1}\nTakes the PTX of CUDA release {2}.{3}, V{2}.{3}.0",
                                   version(), targets, ptx::current_version / 10 + 4, ptx::current_version % 10));
  app.add_option("FILE.ptx", a.input, "the input; - reads standard input");
  app.add_option("--input-as-string", a.text, "the input itself, in place of a file")->type_name("PTX");
  app.add_option("--arch,--gpu-name", a.arch,
                 "target:" + targets +
                     "; default: the file's .target; compute_90 and the like: the input is read, and no code made")
      ->type_name("A");
  app.add_option("-o,--output-file", a.output,
                 "output; - is standard output; default: FILE.cubin, or elf.o without a file")
      ->type_name("FILE");
  tools::add_number(app, "-O,--opt-level", a.options.level, 0, 3,
                    "0: quickly; 1: linear schedule, peepholes; 2: list schedule; 3 (default): all");
  tools::add_number(app, "--maxrregcount", a.options.max_registers, 0u, 255u,
                    "at most N registers per thread; 0, archmax: the target's limit; archmin: 16")
      ->transform(CLI::Transformer({{"archmax", "0"}, {"archmin", std::to_string(least_registers)}}).description(""));
  a.options.contract = true;
  app.add_option("--fmad", a.options.contract,
                 "true (default): products and sums of floats without a rounding of their own become fma, from -O1 on")
      ->type_name("BOOL");
  app.add_flag("-v,--verbose", a.verbose,
               "registers, spills and memory of each kernel as ptxas prints them, on standard error");
  app.add_flag("--lineinfo,--generate-line-info", a.options.line_tables, "line tables from .loc and .file");
  app.add_flag("--suppress-debug-info", a.no_debug_sections, "no line tables, whatever else is asked for");
  app.add_flag("--warn-on-spills", a.warn_of_spills, "warns of each kernel that keeps registers in local memory");
  app.add_flag("--warn-on-local-memory-usage", a.warn_of_local_memory, "warns of each kernel that has local memory");
  app.add_flag("-g,--device-debug", a.debug, "accepted; code is optimised as without it, and has no debug information");
  app.add_flag("-w,--disable-warnings", a.quiet, "no warnings");
  app.add_flag("--Werror,--warning-as-error", a.strict, "warnings are errors");
  app.add_flag("--verify-passes", a.options.verify_passes, "run the independent checkers after each pass");
  app.add_flag("--stencils", a.stencils,
               "at -O0: code copied from finished pieces, as for those who assemble again and again");
  app.add_flag("--no-branch-inlining", a.inlining_off, "keep small if-bodies as branches");
  app.add_flag("--no-unrolling", a.unrolling_off, "keep loops as they are");
  app.add_option("--threads,--split-compile", a.threads,
                 "threads that assemble entries side by side; 0 (default): all cores")
      ->check(CLI::Range(0u, 1024u))
      ->type_name("N");
  app.add_flag("--time", a.time, "phase times on standard error");
  Result<ptxas::Arguments> given = ptxas::translate({argv + 1, argv + argc}, [&](std::string_view name) {
    return app.get_option_no_throw("--" + std::string(name)) != nullptr;
  });
  if (!given) return tools::report(given.error());
  if (auto code = tools::parse_command_line(app, given->arguments)) return *code;
  a.options.branch_inlining = !a.inlining_off;
  a.options.unrolling = !a.unrolling_off;
  if (a.no_debug_sections) a.options.line_tables = false;
  if (a.stencils) a.options.stencils = assembler::Stencils::always;
  if (a.input.empty() == a.text.empty())
    return tools::report(usage_error("expected {}\n(see rndn-as --help)",
                                     a.input.empty() ? "an input file" : "a file or --input-as-string, not both"));
  constexpr std::string_view virtual_prefix = "compute_";
  const std::string given_arch = a.arch;
  const bool parse_only = a.arch.starts_with(virtual_prefix);
  if (parse_only) a.arch = "sm_" + a.arch.substr(virtual_prefix.size());
  if (!a.arch.empty() && !isa::find_target(a.arch)) {
    const int code = tools::report(usage_error("unknown target `{}`; targets are{}", given_arch, targets));
    std::fputs(ptxas::unknown_target(given_arch).c_str(), stderr);  // XLA reads it
    return code;
  }
  size_t warnings = 0;
  const auto warn = [&](const std::string& text) {
    ++warnings;
    if (!a.quiet || a.strict) std::fprintf(stderr, "%s: %s\n", a.strict ? "error" : "warning", text.c_str());
  };
  for (const std::string& text : given->warnings) warn(text);
  if (a.debug) warn("unsupported: -g; no debug information is written");
  if (a.options.max_registers > 0 && a.options.max_registers < least_registers)
    warn(fmt::format("--maxrregcount {} is raised to {}, the least number of registers of a kernel",
                     a.options.max_registers, least_registers));
  if (a.strict && warnings) return 1;

  Result<std::string> text = a.text.empty() ? read_file(a.input) : a.text;
  if (!text) return tools::report(text.error());
  if (!a.text.empty()) a.input = "<string>";
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
  if (parse_only) return 0;
  ThreadPool pool(a.threads);
  a.options.pool = &pool;
  Timings timings;
  Result<assembler::Assembled> result = assembler::assemble(module, a.options, timings);
  if (!result) return tools::report({result.error().fault, fmt::format("{}: {}", a.input, result.error().message)});
  if (a.verbose || a.warn_of_spills || a.warn_of_local_memory) {
    const Result<cubin::Image> image = cubin::read(result->cubin);
    if (!image) return tools::report(image.error());
    size_t count = 0;
    const std::string words = ptxas::usage_warnings(
        *result, *image,
        {.of_spills = a.warn_of_spills, .of_local_memory = a.warn_of_local_memory, .are_errors = a.strict}, count);
    if (!a.quiet || a.strict) std::fputs(words.c_str(), stderr);
    if (count && a.strict) return 1;
    if (a.verbose) std::fputs(ptxas::resources(*result, *image, *a.options.target, a.arch).c_str(), stderr);
  }
  if (a.time) std::fputs(timings.tree().c_str(), stderr);
  if (a.output.empty()) {
    size_t dot = a.input.rfind('.'), slash = a.input.rfind('/');
    std::string stem =
        dot != std::string::npos && (slash == std::string::npos || dot > slash) ? a.input.substr(0, dot) : a.input;
    a.output = a.input == "-" || !a.text.empty() ? "elf.o" : stem + ".cubin";
  }
  Result<void> written =
      write_file(a.output, {reinterpret_cast<const char*>(result->cubin.data()), result->cubin.size()});
  return written ? 0 : tools::report(written.error());
}

}  // namespace

int main(int argc, char** argv) { return guarded_main(run, argc, argv); }
