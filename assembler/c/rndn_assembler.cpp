// The C API: every function of rndn_assembler.h, over ptx::parse and assembler::assemble.
#include "assembler/c/rndn_assembler.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <list>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "assembler/assemble.h"
#include "assembler/isa/isa.h"
#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/errors/result.h"
#include "libraries/base/report/version.h"
#include "libraries/base/system/parallel.h"
#include "ptx/parse.h"

using namespace rndn;

struct rndn_assembler_workspace {
  assembler::Workspace memory;
  std::unique_ptr<ThreadPool> pool;
};

struct rndn_assembler_result {
  rndn_assembler_status status = RNDN_ASSEMBLER_OK;
  std::vector<std::byte> cubin;
  std::string text;  // of all diagnostics
  std::vector<rndn_assembler_diagnostic> diagnostics;
  std::vector<rndn_assembler_kernel> kernels;
  std::list<std::string> strings;  // which the two name; a list's elements stay where they are

  const char* keep(std::string string) { return strings.emplace_back(std::move(string)).c_str(); }
  rndn_assembler_status fail(rndn_assembler_status why, const std::string& message, uint32_t line = 0) {
    text += fmt::format("error: {}\n", message);
    diagnostics.push_back({RNDN_ASSEMBLER_ERROR, line, 0, keep(message)});
    return why;
  }
  void clear() { cubin.clear(), text.clear(), diagnostics.clear(), kernels.clear(), strings.clear(); }
};
static_assert(std::is_nothrow_default_constructible_v<rndn_assembler_result>);

namespace {

using Options = rndn_assembler_options;
// Without gaps at its end, a field that is added makes the struct larger: `size` tells callers without it.
static_assert(offsetof(Options, threads) + sizeof(Options::threads) == sizeof(Options));
constexpr size_t least_size = offsetof(Options, level), most_size = 4096;

std::string target_names() {
  std::string names;
  for (const isa::Target& t : isa::targets()) names += " " + std::string(t.name);
  return names;
}
const isa::Target* find_target(std::string_view name) {
  const std::span<const isa::Target> all = isa::targets();
  const auto found = std::find_if(all.begin(), all.end(), [&](const isa::Target& t) { return t.name == name; });
  return found == all.end() ? nullptr : &*found;
}

// The caller's options as far as it knows them; what it knows and this library does not must have its default.
Result<Options> read_options(const Options* given) {
  Options o{};
  if (!given) return o;
  if (given->size < least_size || given->size > most_size || given->size % sizeof(int) != 0)
    return usage_error("options: a size of {} bytes; it is to be sizeof(rndn_assembler_options)", given->size);
  const std::byte* bytes = reinterpret_cast<const std::byte*>(given);
  if (std::any_of(bytes + std::min(given->size, sizeof o), bytes + given->size,
                  [](std::byte b) { return b != std::byte{0}; }))
    return usage_error("options: a field is set that version {} of the library does not know", version());
  std::memcpy(&o, bytes, std::min(given->size, sizeof o));
  if (o.level < RNDN_ASSEMBLER_LEVEL_0 || o.level > 3)
    return usage_error("options: level {}, expected -1 to 3", o.level);
  if (o.max_registers > 255) return usage_error("options: {} registers, expected 0 to 255", o.max_registers);
  if (o.threads > 1024) return usage_error("options: {} threads, expected 0 to 1024", o.threads);
  if (o.target && !find_target(o.target))
    return usage_error("unknown target `{}`; targets are{}", o.target, target_names());
  return o;
}

void add_diagnostics(rndn_assembler_result& result, const DiagnosticSink& sink, const SourceManager& sources) {
  const auto add = [&](rndn_assembler_severity severity, Span span, const std::string& message) {
    const LineColumn at = span.known() ? sources.position(span) : LineColumn{0, 0};
    result.diagnostics.push_back({severity, at.line, at.column, result.keep(message)});
  };
  static_assert(static_cast<int>(Severity::error) == RNDN_ASSEMBLER_ERROR &&
                static_cast<int>(Severity::warning) == RNDN_ASSEMBLER_WARNING &&
                static_cast<int>(Severity::note) == RNDN_ASSEMBLER_NOTE);
  for (const Diagnostic& d : sink.diagnostics()) {
    add(static_cast<rndn_assembler_severity>(d.severity), d.span, d.message);
    for (const Diagnostic::Note& n : d.notes) add(RNDN_ASSEMBLER_NOTE, n.span, n.message);
  }
  if (!sink.diagnostics().empty()) result.text = render(sink, sources);
}

rndn_assembler_status assemble(const char* text, size_t length, const char* name, const Options* given,
                               rndn_assembler_workspace& workspace, rndn_assembler_result& result) {
  const Result<Options> known = read_options(given);
  if (!known) return result.fail(RNDN_ASSEMBLER_USAGE, known.error().message);
  if (!text && length) return result.fail(RNDN_ASSEMBLER_USAGE, fmt::format("text: {} bytes at NULL", length));
  if (!name) name = "<ptx>";

  SourceManager sources;
  DiagnosticSink sink;
  const ptx::Module module =
      ptx::parse(sources.add(name, length ? std::string(text, length) : std::string()), sources, sink);
  add_diagnostics(result, sink, sources);
  if (sink.has_errors()) return RNDN_ASSEMBLER_INPUT;

  assembler::Options options;
  options.target = find_target(known->target ? known->target : "sm_" + std::to_string(module.target));
  if (!options.target)
    return result.fail(RNDN_ASSEMBLER_INPUT, fmt::format("{}: .target {} is none of{}; the options may name one", name,
                                                         module.target, target_names()));
  if (known->level) options.level = std::max(known->level, 0);
  options.max_registers = known->max_registers;
  options.line_tables = known->line_tables != 0;
  options.verify_passes = known->verify_passes != 0;
  options.contract = !known->no_fmad;
  options.workspace = &workspace.memory;
  if (known->threads > 1) {
    if (!workspace.pool || workspace.pool->threads() != known->threads)
      workspace.pool = std::make_unique<ThreadPool>(known->threads);
    options.pool = workspace.pool.get();
  }
  Timings timings;
  Result<assembler::Assembled> assembled = assembler::assemble(module, options, timings);
  if (!assembled)
    return result.fail(assembled.error().fault == Fault::input ? RNDN_ASSEMBLER_INPUT : RNDN_ASSEMBLER_INTERNAL,
                       fmt::format("{}: {}", name, assembled.error().message), assembled.error().line);
  for (const assembler::KernelReport& k : assembled->kernels)
    result.kernels.push_back({result.keep(k.name), k.registers, k.instructions, k.spill_bytes, k.shared_bytes});
  result.cubin = std::move(assembled->cubin);
  return RNDN_ASSEMBLER_OK;
}

// What the exception under way, which left `result` half made, is to the caller.
rndn_assembler_status describe_exception(rndn_assembler_result& result) noexcept try {
  result.clear();
  try {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    return result.fail(RNDN_ASSEMBLER_INTERNAL, fmt::format("internal error: {}", e.what()));
  } catch (...) {
    return result.fail(RNDN_ASSEMBLER_INTERNAL, "internal error: an exception that is none of the standard library's");
  }
} catch (...) {  // of all there is in a message, memory alone can fail
  return RNDN_ASSEMBLER_OUT_OF_MEMORY;
}

}  // namespace

rndn_assembler_workspace* rndn_assembler_workspace_new() try { return new rndn_assembler_workspace; } catch (...) {
  return nullptr;
}
void rndn_assembler_workspace_free(rndn_assembler_workspace* workspace) { delete workspace; }

rndn_assembler_status rndn_assembler_assemble(const char* text, size_t length, const char* name, const Options* options,
                                              rndn_assembler_workspace* workspace, rndn_assembler_result** result) {
  if (!result) return RNDN_ASSEMBLER_USAGE;
  rndn_assembler_result* r = *result = new (std::nothrow) rndn_assembler_result;
  if (!r) return RNDN_ASSEMBLER_OUT_OF_MEMORY;
  try {
    rndn_assembler_workspace own;
    r->status = assemble(text, length, name, options, workspace ? *workspace : own, *r);
  } catch (...) {
    r->status = describe_exception(*r);
    if (workspace) *workspace = {};  // the pass that was thrown out of may have left anything in it
  }
  return r->status;
}

void rndn_assembler_result_free(rndn_assembler_result* result) { delete result; }

const void* rndn_assembler_cubin(const rndn_assembler_result* r) {
  return r && !r->cubin.empty() ? r->cubin.data() : nullptr;
}
size_t rndn_assembler_cubin_size(const rndn_assembler_result* r) { return r ? r->cubin.size() : 0; }

const char* rndn_assembler_diagnostics(const rndn_assembler_result* r) {
  if (!r || r->status == RNDN_ASSEMBLER_OUT_OF_MEMORY) return "error: not enough memory\n";
  return r->text.c_str();
}
size_t rndn_assembler_diagnostic_count(const rndn_assembler_result* r) { return r ? r->diagnostics.size() : 0; }
const rndn_assembler_diagnostic* rndn_assembler_diagnostic_at(const rndn_assembler_result* r, size_t i) {
  return r && i < r->diagnostics.size() ? &r->diagnostics[i] : nullptr;
}

size_t rndn_assembler_kernel_count(const rndn_assembler_result* r) { return r ? r->kernels.size() : 0; }
const rndn_assembler_kernel* rndn_assembler_kernel_at(const rndn_assembler_result* r, size_t i) {
  return r && i < r->kernels.size() ? &r->kernels[i] : nullptr;
}

const char* rndn_assembler_target(size_t i) {
  return i < isa::targets().size() ? isa::targets()[i].name.data() : nullptr;
}

const char* rndn_assembler_target_of_capability(int major, int minor) {
  const isa::Target* best = nullptr;
  for (const isa::Target& t : isa::targets()) {
    const int its_major = static_cast<int>(t.sm / 10), its_minor = static_cast<int>(t.sm % 10);
    if (its_major == major && its_minor <= minor && (!best || t.sm > best->sm)) best = &t;
  }
  return best ? best->name.data() : nullptr;
}

const char* rndn_assembler_version() { return version().data(); }
