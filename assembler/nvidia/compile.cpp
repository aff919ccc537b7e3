#include "assembler/nvidia/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <new>

#include "assembler/assemble.h"
#include "assembler/cubin/cubin.h"
#include "assembler/ptxas/options.h"
#include "assembler/ptxas/words.h"
#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/system/parallel.h"
#include "ptx/parse.h"

namespace rndn::nvidia {
namespace {

constexpr std::string_view virtual_prefix = "compute_";
constexpr uint32_t least_registers = 16;  // the assembler's own lower limit

bool number(std::string_view text, uint32_t most, uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value <= most;
}

bool truth(std::string_view text, bool& value) {
  value = text == "true" || text == "1" || text.empty();
  return value || text == "false" || text == "0";
}

// Options by ptxas's long names (assembler/ptxas/options.h): false, the value is none that it has.
struct Row {
  std::string_view name;
  bool (*set)(Settings& s, std::string_view value);
};
template <bool Settings::*flag>
bool set_flag(Settings& s, std::string_view) {
  return s.*flag = true;
}
constexpr Row rows[] = {
    {"gpu-name", [](Settings& s, std::string_view v) { return s.arch = v, !v.empty(); }},
    {"opt-level",
     [](Settings& s, std::string_view v) {
       uint32_t level = 0;
       if (!number(v, 3, level)) return false;
       s.options.level = static_cast<int>(level);
       return true;
     }},
    {"maxrregcount",
     [](Settings& s, std::string_view v) {
       if (v == "archmax") return s.options.max_registers = 0, true;
       if (v == "archmin") return s.options.max_registers = least_registers, true;
       return number(v, 255, s.options.max_registers);
     }},
    {"fmad", [](Settings& s, std::string_view v) { return truth(v, s.options.contract); }},
    {"split-compile",  // threads: the caller's alone make the cubin, which is the same
     [](Settings&, std::string_view v) {
       uint32_t threads = 0;
       return number(v, 1024, threads);
     }},
    {"verbose", set_flag<&Settings::verbose>},
    {"generate-line-info", [](Settings& s, std::string_view) { return s.options.line_tables = true; }},
    {"suppress-debug-info", [](Settings& s, std::string_view) { return s.options.line_tables = false, true; }},
    {"device-debug",
     [](Settings& s, std::string_view) {
       s.warnings += "warning: unsupported: -g; no debug information is written\n";
       return true;
     }},
    {"disable-warnings", set_flag<&Settings::quiet>},
    {"warning-as-error", set_flag<&Settings::strict>},
    {"warn-on-spills", set_flag<&Settings::warns_of_spills>},
    {"warn-on-local-memory-usage", set_flag<&Settings::warns_of_local_memory>},
};
const Row* find(std::string_view name) {
  const Row* row = std::ranges::find(rows, name, &Row::name);
  return row == std::end(rows) ? nullptr : row;
}

// Ten times the version that the text states, 0 where it states none.
uint32_t stated_version(std::string_view text) {
  constexpr std::string_view directive = ".version";
  size_t at = text.find(directive);
  if (at == text.npos) return 0;
  at = text.find_first_not_of(" \t", at + directive.size());
  if (at == text.npos) return 0;
  const size_t end = text.find_first_not_of("0123456789.", at);
  const std::string_view version = text.substr(at, end == text.npos ? end : end - at);
  const size_t dot = version.find('.');
  uint32_t major = 0, minor = 0;
  if (dot == version.npos || !number(version.substr(0, dot), 1000, major) || !number(version.substr(dot + 1), 9, minor))
    return 0;
  return 10 * major + minor;
}

Compiled assemble(std::string_view text, const std::string& name, const Settings& settings) {
  Compiled out;
  const auto fail = [&](Status status, const std::string& message) {
    out.status = status;
    out.errors += message;
    return std::move(out);
  };
  SourceManager sources;
  DiagnosticSink sink;
  const ptx::Module module = ptx::parse(sources.add(name, std::string(text)), sources, sink);
  if (sink.has_errors())
    return fail(stated_version(text) > ptx::current_version ? Status::unsupported_version : Status::bad_text,
                render(sink, sources));
  if (!settings.quiet) out.info += settings.warnings;
  if (!sink.diagnostics().empty() && !settings.quiet) out.info += render(sink, sources);
  const std::string arch = settings.arch.empty() ? "sm_" + std::to_string(module.target) : settings.arch;
  assembler::Options options = settings.options;
  options.target = isa::find_target(arch);
  if (!options.target) return fail(Status::unknown_target, ptxas::unknown_target(arch));
  if (module.target > options.target->sm)
    return fail(Status::bad_text,
                fmt::format("error: {}: .target sm_{} does not run on {}\n", name, module.target, arch));
  if (settings.parses_only) return out;
  Timings timings;
  Result<assembler::Assembled> made = assembler::assemble(module, options, timings);
  if (!made)
    return fail(made.error().fault == Fault::input ? Status::bad_text : Status::internal,
                fmt::format("error: {}: {}\n", name, made.error().message));
  const Result<cubin::Image> image = cubin::read(made->cubin);
  if (!image) return fail(Status::internal, fmt::format("error: {}\n", image.error().message));
  size_t warnings = 0;
  const std::string words = ptxas::usage_warnings(*made, *image,
                                                  {.of_spills = settings.warns_of_spills,
                                                   .of_local_memory = settings.warns_of_local_memory,
                                                   .are_errors = settings.strict},
                                                  warnings);
  if (warnings && settings.strict) return fail(Status::bad_text, words);
  if (!settings.quiet) out.info += words;
  if (settings.verbose) out.info += ptxas::resources(*made, *image, *options.target, arch);
  out.cubin = std::move(made->cubin);
  return out;
}

}  // namespace

Status read_options(const std::vector<std::string>& given, Settings& settings, std::string& errors) {
  settings.options.contract = true;
  const auto wrong = [&](std::string_view message) {
    errors += fmt::format("error: {}\n", message);
    return Status::bad_option;
  };
  const Result<ptxas::Arguments> read =
      ptxas::translate(given, [](std::string_view name) { return find(name) != nullptr; });
  if (!read) return wrong(read.error().message);
  for (const std::string& warning : read->warnings) settings.warnings += fmt::format("warning: {}\n", warning);
  for (const std::string& argument : read->arguments) {
    const size_t equals = argument.find('=');
    const Row* row = argument.starts_with("--") ? find(std::string_view(argument).substr(2, equals - 2)) : nullptr;
    if (!row) return wrong(fmt::format("unknown option `{}`", argument));
    const std::string value = equals == argument.npos ? "" : argument.substr(equals + 1);
    if (!row->set(settings, value)) return wrong(fmt::format("{}: `{}` is no value of it", row->name, value));
  }
  if (settings.options.max_registers > 0 && settings.options.max_registers < least_registers)
    settings.options.max_registers = least_registers;
  settings.parses_only = settings.arch.starts_with(virtual_prefix);
  if (settings.parses_only) settings.arch = "sm_" + settings.arch.substr(virtual_prefix.size());
  if (!settings.arch.empty() && !isa::find_target(settings.arch)) {
    errors += ptxas::unknown_target(settings.arch);
    return Status::unknown_target;
  }
  return Status::ok;
}

Compiled compile(std::string_view text, const std::string& name, const Settings& settings) noexcept {
  try {
    return assemble(text, name, settings);
  } catch (const std::bad_alloc&) {
    Compiled out;
    out.status = Status::out_of_memory;
    return out;
  } catch (const std::exception& e) {
    Compiled out;
    out.status = Status::internal;
    try {
      out.errors = fmt::format("internal error: {}\n", e.what());
    } catch (...) {  // without its words
    }
    return out;
  }
}

}  // namespace rndn::nvidia
