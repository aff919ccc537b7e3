// Flags that several commands share, and what they stand for.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "assembler/isa/isa.h"
#include "libraries/base/report/sizes.h"
#include "libraries/base/system/files.h"
#include "tools/rndn.h"

namespace rndn::tools {
namespace {

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const isa::Target& t : isa::targets()) names.emplace_back(t.name);
  return names;
}

}  // namespace

void add_data_flags(CLI::App& command, Flags& flags) {
  command.add_option("--data", flags.data, "tables: " + data::source_forms(schemes(), source_options()))->type_name("SRC");
  command.add_option("--table", flags.tables, "a file as a table; may be given several times, with or without --data")
      ->allow_extra_args(false)
      ->type_name("NAME=FILE");
}

void add_cache_flags(CLI::App& command, Flags& flags) {
  CLI::Option* cache = command
                           .add_option("--cache", flags.cache,
                                       "keep columns in this folder, ready to be loaded again (a folder's columns are "
                                       "kept in $RNDN_CACHE_DIR or ~/.cache/rndn without it); what is kept of files that are gone "
                                       "or were others stays until you remove it")
                           ->type_name("DIR");
  command
      .add_flag("--no-cache", flags.no_cache,
                "keep no columns and no code on disk and use none; columns leave the device after each run, "
                "whose memory and pinned copies of columns stay with the process")
      ->excludes(cache);
}

void add_language_flags(CLI::App& command, Flags& flags) {
  command.add_flag("--strict", flags.strict, "casts must fit the types that tables have");
  command.add_option("--dialect", flags.dialect, "v0: member(set, x) and index_of(haystack, needles)")
      ->check(CLI::IsMember({"v0"}))
      ->type_name("NAME");
}

void add_compiler_flags(CLI::App& command, Flags& flags) {
  command.add_option("--arch", flags.arch, "target (default: the GPU's own; else sm_86)")
      ->check(CLI::IsMember(target_names()))
      ->type_name("A");
  command.add_option("--backend", flags.backend, "who makes the cubin: rndn, ptxas[:PATH], driver")->type_name("B");
  command
      .add_option("-O", flags.level,
                  "optimization: 0 linear schedule, 1 + peepholes, 2 + list schedule, 3 all (default)")
      ->check(CLI::Range(0, 3))
      ->type_name("0..3");
  command
      .add_option("--outline", flags.outline, "kernels: none = one per statement, flow = pipelines, full = all fusions")
      ->check(CLI::IsMember({"none", "flow", "full"}))
      ->type_name("MODE");
  command
      .add_option("--fuse-operators", flags.fuse_operators,
                  "groups whose rows are only reduced run as one operator: on (default) or off")
      ->check(CLI::IsMember({"on", "off"}))
      ->type_name("on|off");
  command.add_option("--scheduler", flags.scheduler, "instruction scheduling: linear or list")
      ->check(CLI::IsMember({"linear", "list"}))
      ->type_name("NAME");
  command
      .add_option("--branch-inlining", flags.branch_inlining,
                  "small branches become predicated instructions: on or off")
      ->check(CLI::IsMember({"on", "off"}))
      ->type_name("on|off");
  command.add_option("--threads", flags.threads, "threads that assemble kernels side by side (default: all cores)")
      ->check(CLI::Range(1u, 1024u))
      ->type_name("N");
  command.add_option("--limit-regs", flags.limit_registers, "registers per thread at most")
      ->check(CLI::Range(16, 255))
      ->type_name("N");
  command.add_flag("--verify-passes", flags.verify_passes, "run the independent checkers after each pass");
}

void add_run_flags(CLI::App& command, Flags& flags) {
  command.add_option("--device", flags.device, "auto, cuda[:N], sim, or cpu (the reference interpreter)")
      ->type_name("D");
  command
      .add_option("--device-memory", flags.device_memory, "most memory of the device that is in use at once: 512M, 4G")
      ->type_name("N");
  command.add_option("--format", flags.format, "of results: table, csv, json, parquet, arrow (default: by the end of -o FILE, else table)")
      ->check(CLI::IsMember({"table", "csv", "json", "parquet", "arrow"}))
      ->type_name("F");
  command
      .add_flag("--time{text}", flags.time,
                "report where the time went: text, json, html or trace, to stderr or [:FILE]")
      ->type_name("[=FORMAT[:FILE]]");
  command.add_option("--repeat", flags.repeat, "runs of each program; data is loaded once")
      ->check(CLI::Range(1u, 1000000u))
      ->type_name("N");
  command.add_option("--max-rows", flags.max_rows, "rows of a table on a terminal (default 40; 0: all)")->type_name("N");
  auto choice = [&](const char* name, std::string& to, const char* text, std::vector<std::string> values) {
    command.add_option(name, to, text)->check(CLI::IsMember(std::move(values)))->type_name("NAME");
  };
  choice("--sort", flags.sort, "sorting: bitonic or radix (default: by size)", {"bitonic", "radix"});
  choice("--top", flags.top, "first rows of an order: select or sort all (default: by size and number)",
         {"select", "sort"});
  choice("--group", flags.group, "grouping: sort, or hash wherever keys can be (default: sort, or tables of few groups)", {"sort", "hash"});
  choice("--join", flags.join, "joins: loop or hash (default: by size; two ascending columns of integers are merged)",
         {"loop", "hash"});
  choice("--member", flags.member, "membership: loop or hash (default: by size)", {"loop", "hash"});
  choice("--like", flags.like, "patterns: cpu, gpu (strings sent every time) or gpu-cached (default)",
         {"cpu", "gpu", "gpu-cached"});
  command.add_flag("--ordered", flags.ordered, "groups ascend, join pairs come by right row, whatever finds them");
  choice("--alloc", flags.alloc, "memory of a run: pages (default), or each buffer from the driver",
         {"driver", "pages"});
  choice("--buffers", flags.buffers, "lists lie in one piece: contiguous, the only way", {"contiguous"});
  add_encode_flag(command, flags);
  choice("--transfer", flags.transfer,
         "columns: copied to the device, mapped (kernels read them in the host's memory), or auto (default): of those that do not stay on "
         "the device, mapped where little of them is read",
         {"auto", "copied", "mapped"});
  command.add_flag("--prove", flags.prove,
                   "run it again by other kernels and on the reference interpreter, and compare; what differs ends with exit code 70");
  command.add_flag("--no-fallback", flags.no_fallback, "what only the reference interpreter can run is an error");
  add_limit_flags(command, flags);
  command.add_option("-o", flags.output, "results: a file, - for stdout; a folder for csv of several programs")
      ->type_name("FILE");
}

void add_encode_flag(CLI::App& command, Flags& flags) {
  command
      .add_option("--encode", flags.encode,
                  "columns on the device: plain, narrow (default; as the host has them), packed (in bits where that "
                  "saves a quarter), auto")
      ->check(CLI::IsMember({"auto", "plain", "narrow", "packed"}))
      ->type_name("NAME");
}

void add_limit_flags(CLI::App& command, Flags& flags) {
  auto seconds = [&flags](const std::string& text) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), flags.limits.seconds);
    if (error != std::errc() || end != text.data() + text.size() || !(flags.limits.seconds > 0))
      throw CLI::ValidationError("--timeout", fmt::format("expected a number of seconds above 0, got `{}`", text));
  };
  auto bytes = [&flags](const std::string& text) {
    const auto parsed = parse_size(text, "a limit of memory");
    if (!parsed) throw CLI::ValidationError("--max-memory", parsed.error().message);
    flags.limits.bytes = *parsed;
  };
  command.add_option_function<std::string>("--timeout", seconds, "seconds that a statement or program may take")
      ->type_name("SECONDS");
  command.add_option_function<std::string>("--max-memory", bytes,
                                           "host memory that its values may take: 512M, 4G")
      ->type_name("SIZE");
}

uint64_t shown_rows(const Flags& flags) {
  return flags.output == "-" && flags.max_rows && isatty(STDOUT_FILENO) ? flags.max_rows : UINT64_MAX;
}

int fail(const Error& error) {
  std::fflush(stdout);
  if (error.message.empty()) return error.exit_code();  // diagnostics have said it
  const bool ours = error.fault == Fault::internal && error.cause != Cause::finding;
  const char* prefix = error.placed || error.fault == Fault::interrupted ? "" : ours ? "internal error: " : "error: ";
  std::fprintf(stderr, "%s%s\n", prefix, error.message.c_str());
  return error.exit_code();
}

void note(const std::string& message) { std::fprintf(stderr, "note: %s\n", message.c_str()); }

void print_diagnostics(const DiagnosticSink& sink, const SourceManager& sources) {
  std::fputs(render(sink, sources).c_str(), stderr);
}

Result<TimeTarget> time_target(const std::string& text) {
  TimeTarget target;
  size_t colon = text.find(':');
  if (!runtime::find_time_format(text.substr(0, colon), target.format) || colon + 1 == text.size())
    return usage_error("--time is text, json, html or trace, with :FILE if wanted, not `{}`", text);
  if (colon != std::string::npos) target.file = text.substr(colon + 1);
  return target;
}

Result<void> write_reports(const std::vector<runtime::RunReport>& reports, const TimeTarget& target) {
  const std::string text = runtime::report(reports, target.format);
  if (!target.file.empty()) return write_file(target.file, text);
  std::fputs(text.c_str(), stderr);
  return {};
}

Result<void> check_writable(const std::string& path) {
  std::error_code ignored;
  if (path == "-") return {};
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored) &&
      !std::filesystem::is_directory(path, ignored))
    return {};  // a pipe or a device: opening it can wait
  ASSIGN_OR_RETURN(const NewFile file, NewFile::create(path));
  return {};
}

std::string code_flags(const Flags& f) {
  return fmt::format("{} {} {} {} {} {} {} {} O{} r{} {} {} {} {} {} {} {} {} {} {}{}{}{}", f.arch, f.backend,
                     f.branch_inlining, f.alloc, f.outline, f.fuse_operators, f.scheduler, f.dialect, f.level,
                     f.limit_registers, f.sort, f.top, f.group, f.join, f.member, f.like, f.encode, f.transfer, f.ordered, f.strict,
                     f.no_fallback, f.no_cache, f.verify_passes);
}

Result<runtime::CompileOptions> compile_options(const Flags& flags) {
  runtime::CompileOptions o;
  if (!flags.arch.empty()) o.target = flags.arch;
  o.strict = flags.strict;
  o.dialect_v0 = flags.dialect == "v0";
  o.outline = flags.outline == "none"   ? outliner::Mode::none
              : flags.outline == "flow" ? outliner::Mode::flow
                                        : outliner::Mode::full;
  o.fuse_operators = flags.fuse_operators == "on";
  o.fuse_joins = flags.join.empty() && flags.member.empty();  // else the operator that is asked for
  o.fuse_groups = flags.group != "sort";
  o.level = flags.level;
  o.scheduler = flags.scheduler == "linear" ? assembler::Scheduler::linear : assembler::Scheduler::list;
  o.branch_inlining = flags.branch_inlining == "on";
  o.max_registers = flags.limit_registers;
  o.verify_passes = flags.verify_passes;
  if (!runtime::parse_backend(flags.backend, o.backend))
    return usage_error("--backend is rndn, ptxas, ptxas:PATH or driver, not `{}`", flags.backend);
  return o;
}

runtime::EngineOptions engine_options(const Flags& flags, bool measure_kernels) {
  runtime::EngineOptions o{
      .strict = flags.strict, .allow_fallback = !flags.no_fallback, .measure_kernels = measure_kernels};
  const std::string_view report = std::string_view(flags.time).substr(0, flags.time.find(':'));
  o.timeline = report == "html" || report == "trace";
  using Alternatives = operators::Options;
  if (!flags.sort.empty())
    o.operators.sort = flags.sort == "bitonic" ? Alternatives::Sort::bitonic : Alternatives::Sort::radix;
  if (!flags.top.empty()) o.operators.top = flags.top == "select" ? Alternatives::Top::select : Alternatives::Top::sort;
  if (!flags.group.empty())
    o.operators.group = flags.group == "sort" ? Alternatives::Group::sort : Alternatives::Group::hash;
  if (!flags.join.empty())
    o.operators.join = flags.join == "loop" ? Alternatives::Join::loop : Alternatives::Join::hash;
  if (!flags.member.empty())
    o.operators.member = flags.member == "loop" ? Alternatives::Member::loop : Alternatives::Member::hash;
  o.operators.ordered = flags.ordered;
  using Like = runtime::EngineOptions::Like;
  o.like = flags.like == "cpu" ? Like::cpu : flags.like == "gpu" ? Like::gpu : Like::gpu_cached;
  using Alloc = runtime::EngineOptions::Alloc;
  o.alloc = flags.alloc == "driver" ? Alloc::driver : Alloc::pages;
  o.cache = !flags.no_cache;
  o.encode = *runtime::find_encode(flags.encode);
  o.transfer = *runtime::find_transfer(flags.transfer);
  o.model = flags.model;
  return o;
}

Result<DeviceChoice> DeviceChoice::start(const Flags& flags) {
  auto choice = runtime::DeviceChoice::start(flags.device, flags.arch, runtime::say_to_stderr);
  if (!choice) return choice.error();
  if (!flags.device_memory.empty()) {
    ASSIGN_OR_RETURN(const uint64_t bytes, parse_size(flags.device_memory, "--device-memory"));
    RETURN_IF_ERROR(choice->limit_memory(bytes));
  }
  if (flags.backend == "driver" && choice->is_simulator())
    return usage_error("--backend driver needs a GPU: the simulator has no PTX compiler");
  return DeviceChoice{*std::move(choice)};
}

Result<std::vector<NamedSource>> read_programs(const std::vector<std::string>& paths) {
  std::vector<NamedSource> programs;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(std::string text, read_file(path));
    std::string stem = path == "-" ? "stdin" : std::filesystem::path(path).stem().string();
    programs.push_back({stem, path == "-" ? "<stdin>" : path, std::move(text)});
  }
  return programs;
}

}  // namespace rndn::tools
