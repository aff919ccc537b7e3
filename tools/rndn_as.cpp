// rndn-as: PTX to cubin, with ptxas's common flags.
//
//   rndn-as FILE.ptx -arch=sm_86 -o F.cubin [-O0..-O3] [-v] [-lineinfo] [--maxrregcount N]
//
// Exit codes: 0 success; 1 the input is at fault; 2 wrong usage; 3 output at fault; 70 an internal check failed.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "assembler/assemble.h"
#include "libraries/base/diagnostic.h"
#include "libraries/base/files.h"
#include "libraries/base/version.h"
#include "ptx/parse.h"

namespace {

using namespace rndn;

constexpr const char* usage =
    R"(rndn-as: assembles PTX for NVIDIA GPUs

usage: rndn-as [flags] FILE.ptx     (- reads standard input)

  -arch=A, --gpu-name=A   target: sm_60 sm_61 sm_80 sm_86 sm_89 sm_90; default: the file's .target
  -o FILE                 output (- writes standard output); default: FILE with .cubin, or elf.o for standard input
  -O0 .. -O3              0: linear schedule, no peepholes; 1: peepholes; 2: list schedule; 3 (default): all
  -maxrregcount N         at most N registers per thread
  -v, --verbose           registers, spills and memory of each kernel, on standard error
  -lineinfo               accepted; line tables are not written
  --verify-passes         run the independent checkers after each pass
  --no-branch-inlining    keep small if-bodies as branches
  --time                  phase times on standard error
  -h, --help              this text
  --version
)";

struct Arguments {
  std::string input, output, arch;
  assembler::Options options;
  bool verbose = false, time = false;
};

int usage_error_exit(const std::string& message) {
  std::fprintf(stderr, "rndn-as: %s\n%s", message.c_str(), "try rndn-as --help\n");
  return 2;
}

// The value of a flag written `-f=V`, `--flag=V`, `-f V`; empty optional when `argument` is another flag.
std::optional<std::string> value_of(const std::vector<std::string>& args, size_t& k,
                                    std::initializer_list<std::string_view> names, bool& missing) {
  for (std::string_view name : names) {
    const std::string& a = args[k];
    if (a == name) {
      if (k + 1 >= args.size()) {
        missing = true;
        return std::nullopt;
      }
      return args[++k];
    }
    if (a.size() > name.size() && a.compare(0, name.size(), name) == 0 && a[name.size()] == '=')
      return a.substr(name.size() + 1);
  }
  return std::nullopt;
}

bool parse_number(const std::string& text, uint32_t& value) {
  if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  value = static_cast<uint32_t>(std::stoul(text));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  Arguments a;
  bool only_files = false;
  for (size_t k = 0; k < args.size(); ++k) {
    const std::string& s = args[k];
    bool missing = false;
    if (only_files || s == "-" || s.empty() || s[0] != '-') {
      if (!a.input.empty()) return usage_error_exit("more than one input file: `" + a.input + "` and `" + s + "`");
      a.input = s;
    } else if (s == "--") {
      only_files = true;
    } else if (s == "-h" || s == "--help") {
      std::fputs(usage, stdout);
      return 0;
    } else if (s == "--version") {
      std::string targets;
      for (const isa::Target& t : isa::targets()) targets += " " + std::string(t.name);
      std::printf("rndn-as %s, targets%s\n", std::string(version()).c_str(), targets.c_str());
      return 0;
    } else if (auto v = value_of(args, k, {"-arch", "--gpu-name", "--arch"}, missing)) {
      a.arch = *v;
    } else if (auto v = value_of(args, k, {"-o", "--output-file"}, missing)) {
      a.output = *v;
    } else if (auto v = value_of(args, k, {"-maxrregcount", "--maxrregcount"}, missing)) {
      if (!parse_number(*v, a.options.max_registers) || a.options.max_registers > 255)
        return usage_error_exit("--maxrregcount expects a number up to 255, got `" + *v + "`");
    } else if (auto v = value_of(args, k, {"-O", "--opt-level"}, missing)) {
      uint32_t level = 0;
      if (!parse_number(*v, level) || level > 3) return usage_error_exit("the level is 0 to 3, got `" + *v + "`");
      a.options.level = static_cast<int>(level);
    } else if (missing) {
      return usage_error_exit("`" + s + "` expects a value");
    } else if (s.size() == 3 && s.compare(0, 2, "-O") == 0 && s[2] >= '0' && s[2] <= '3') {
      a.options.level = s[2] - '0';
    } else if (s == "-v" || s == "--verbose") {
      a.verbose = true;
    } else if (s == "-lineinfo" || s == "--generate-line-info") {
      // Accepted for compatibility.
    } else if (s == "--verify-passes") {
      a.options.verify_passes = true;
    } else if (s == "--no-branch-inlining") {
      a.options.branch_inlining = false;
    } else if (s == "--time") {
      a.time = true;
    } else {
      return usage_error_exit("unknown flag `" + s + "`");
    }
  }
  if (a.input.empty()) return usage_error_exit("no input file");

  Result<std::string> text = read_file(a.input);
  if (!text) {
    std::fprintf(stderr, "rndn-as: %s\n", text.error().message.c_str());
    return text.error().exit_code();
  }
  SourceManager sources;
  DiagnosticSink sink;
  FileId file = sources.add(a.input == "-" ? "<stdin>" : a.input, std::move(*text));
  ptx::Module module = ptx::parse(file, sources, sink);
  if (!sink.diagnostics().empty()) std::fputs(render(sink, sources).c_str(), stderr);
  if (sink.has_errors()) return 1;

  if (a.arch.empty()) a.arch = "sm_" + std::to_string(module.target);
  a.options.target = isa::find_target(a.arch);
  if (!a.options.target) return usage_error_exit("unknown target `" + a.arch + "`");
  if (module.target > a.options.target->sm) {
    std::fprintf(stderr, "rndn-as: %s: .target sm_%u does not run on %s\n", a.input.c_str(), module.target,
                 a.arch.c_str());
    return 1;
  }
  Timings timings;
  Result<assembler::Assembled> result = assembler::assemble(module, a.options, timings);
  if (!result) {
    std::fprintf(stderr, "%s: error: %s\n", a.input.c_str(), result.error().message.c_str());
    return result.error().exit_code();
  }
  if (a.verbose) {
    for (const assembler::KernelReport& k : result->kernels) {
      std::fprintf(stderr, "info: compiling entry function '%s' for '%s'\n", k.name.c_str(), a.arch.c_str());
      std::fprintf(stderr, "info: function properties for %s\n    %u bytes spilled, %u instructions\n", k.name.c_str(),
                   k.spill_bytes, k.instructions);
      std::fprintf(stderr, "info: used %u registers", k.registers);
      if (k.shared_bytes) std::fprintf(stderr, ", %u bytes smem", k.shared_bytes);
      std::fputc('\n', stderr);
    }
  }
  if (a.time) std::fputs(timings.tree().c_str(), stderr);
  if (a.output.empty()) {
    size_t dot = a.input.rfind('.'), slash = a.input.rfind('/');
    std::string stem =
        dot != std::string::npos && (slash == std::string::npos || dot > slash) ? a.input.substr(0, dot) : a.input;
    a.output = a.input == "-" ? "elf.o" : stem + ".cubin";
  }
  Result<void> written =
      write_file(a.output, {reinterpret_cast<const char*>(result->cubin.data()), result->cubin.size()});
  if (!written) {
    std::fprintf(stderr, "rndn-as: %s\n", written.error().message.c_str());
    return written.error().exit_code();
  }
  return 0;
}
