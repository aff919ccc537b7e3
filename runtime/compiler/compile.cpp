// The pipeline of the compiler: frontend, outliner, code generation, assembler. Each stage's own pipeline.cpp shows its
// passes.
#include "runtime/compiler/compile.h"

#include <algorithm>

#include "assembler/cubin/cubin.h"
#include "frontend/builtins.h"
#include "libraries/base/system/parallel.h"
#include "ptx/parse.h"
#include "runtime/compiler/code_cache.h"
#include "runtime/data/cache.h"
#include "runtime/compiler/ptxas.h"
#include "runtime/compiler/disassemble.h"

namespace rndn::runtime {
namespace {

constexpr std::string_view stage_names[] = {"hir", "typed", "outline", "ptx", "sass", "cubin"};

// The functions of libdevice, where the program needs them. Null: it does not, or `why` says why they are not there.
const ptx::Module* find_math(const hir::Program& program, const CompileOptions& options,
                             std::optional<libdevice::Math>& own, std::string& why, Timings& timings) {
  if (!calls_math(program)) return nullptr;
  auto scope = timings.measure(Phase::ptx, "libdevice");
  libdevice::Math* from = options.math;
  if (!from) from = &own.emplace(libdevice::default_places(data::default_cache_directory()));
  auto module = from->module();
  if (module) return *module;
  why = module.error().message;
  return nullptr;
}

assembler::Options assembler_options(const CompileOptions& options, const isa::Target* target) {
  return {.target = target,
          .level = options.level,
          .scheduler = options.scheduler,
          .max_registers = options.max_registers,
          .verify_passes = options.verify_passes,
          .branch_inlining = options.branch_inlining,
          .pool = options.pool,
          .workspace = options.workspace};
}

// Code of all kernels but the refused ones, into c.code and, where it is wanted, c.ptx.
Result<void> generate(Compiled& c, const CompileOptions& options, uint32_t ptx_target, const ptx::Module* math,
                      Timings& timings, const std::vector<std::string>& refused) {
  auto scope = timings.measure(Phase::ptx);
  ASSIGN_OR_RETURN(
      c.code,
      codegen::generate(c.outlined,
                        {.ptx_target = ptx_target, .refused = refused, .math = math, .pool = options.pool, .encodings = c.forms, .notes_work = options.notes_work},
                        timings));
  c.no_gpu_code.clear();
  for (size_t i = 0; i < c.code.kernels.size(); ++i)
    if (const codegen::KernelCode& k = c.code.kernels[i]; !k.refused.empty() && !c.fusions.fuses(i))
      c.no_gpu_code += fmt::format("{}kernel `{}`: {}", c.no_gpu_code.empty() ? "" : "; ", k.name, k.refused);
  if (options.verify_passes) {
    std::vector<std::string> problems = ptx::verify(c.code.module);
    if (!problems.empty()) return Error{Fault::internal, "the generated PTX is not valid: " + problems.front()};
  }
  if (!c.code.module.functions.empty() && (options.until == Stage::ptx || options.backend.kind != Backend::rndn))
    c.ptx = ptx::print(c.code.module);
  return {};
}

}  // namespace

bool calls_math(const hir::Program& program) {
  for (const hir::Function& f : program.functions)
    for (const hir::Expression& e : f.expressions) {
      if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::builtin) continue;
      const bool known = !e.types.empty() && program.types->is_basic(e.types[0]);
      if (hir::needs_math(e.callee.builtin_id, known ? program.types->basic_of(e.types[0]) : hir::BasicType::i64))
        return true;
    }
  for (const hir::Literal& l : program.literals)  // of the each family
    if (const auto* functions = std::get_if<std::vector<hir::FunctionRef>>(&l.values))
      for (const hir::FunctionRef& f : *functions)
        if (f.kind == hir::FunctionRef::builtin && hir::needs_math(f.builtin_id, hir::BasicType::f64)) return true;
  return false;
}

std::string_view stage_name(Stage stage) { return stage_names[static_cast<size_t>(stage)]; }

bool find_stage(std::string_view name, Stage& stage) {
  for (size_t i = 0; i < std::size(stage_names); ++i)
    if (stage_names[i] == name) {
      stage = static_cast<Stage>(i);
      return true;
    }
  return false;
}

std::string Backend::text() const {
  if (kind == rndn) return "rndn";
  if (kind == driver) return "driver";
  return path == "ptxas" ? path : "ptxas:" + path;
}

bool parse_backend(std::string_view text, Backend& backend) {
  if (text == "rndn")
    backend = {Backend::rndn};
  else if (text == "driver")
    backend = {Backend::driver};
  else if (text == "ptxas")
    backend = {Backend::ptxas};
  else if (text.starts_with("ptxas:") && text.size() > 6)
    backend = {Backend::ptxas, std::string(text.substr(6))};
  else
    return false;
  return true;
}

namespace {
// From the typed program of `c` on.
Result<Compiled> compile_typed(Compiled c, const CompileOptions& options, DiagnosticSink& sink, Timings& timings);
}  // namespace

namespace {
Result<Compiled> compile_like(hir::Program program, const Compiled& like, Findings findings, Timings& timings) {
  Compiled c;
  c.program = std::move(program);
  c.options = like.options;
  c.backend = like.backend;
  c.level = like.level;
  c.not_unique = std::move(findings.not_unique);
  c.not_whole = std::move(findings.not_whole);
  c.exact_sums = findings.exact_sums;
  c.not_folded = std::move(findings.not_folded);
  c.folds_apart = std::move(findings.folds_apart);
  DiagnosticSink sink;  // has been told
  const CompileOptions options = c.options;
  return compile_typed(std::move(c), options, sink, timings);
}
}  // namespace

Result<Compiled> compile_again(const Compiled& compiled, Findings findings, Timings& timings) {
  return compile_like(compiled.program, compiled, std::move(findings), timings);
}

Result<Compiled> compile_program(hir::Program program, const Compiled& like, Timings& timings) {
  // Tables of all possible groups do not shrink with the rows.
  Compiled with;
  with.options = like.options;
  with.options.fuse_groups = false;
  with.backend = like.backend;
  with.level = like.level;
  return compile_like(std::move(program), with, {}, timings);
}

Result<Compiled> compile(FileId file, const SourceManager& sources, const CompileOptions& options, DiagnosticSink& sink,
                         Timings& timings) {
  const Error in_sink{Fault::input, ""};
  Compiled c;
  c.options = options;
  c.backend = options.backend.text();
  c.level = options.level;
  if (options.pool && options.until > Stage::outline)
    options.pool->expect_loops();  // of code generation and the assembler
  {
    auto scope = timings.measure(Phase::frontend);
    hir::Options frontend{.strict = options.strict,
                          .dialect_v0 = options.dialect_v0,
                          .schema = options.schema,
                          .parse_only = options.until == Stage::hir};
    c.program = hir::run(file, sources, frontend, sink, timings);
    if (sink.has_errors()) return in_sink;
  }
  if (options.until <= Stage::typed) return c;
  return compile_typed(std::move(c), options, sink, timings);
}

namespace {

void outline(Compiled& c, const CompileOptions& options, DiagnosticSink& sink, Timings& timings) {
  auto scope = timings.measure(Phase::outliner);
  c.outlined = outliner::run(c.program,
                             {.mode = options.outline,
                              .text_codes = options.text_codes,
                              .math = c.no_math.empty(),
                              .beside_cells = !options.fuse_operators,
                              .tops = options.fuse_operators,
                              .joins = options.fuse_operators && options.fuse_joins,
                              .not_unique = c.not_unique,
                              .not_whole = c.not_whole,
                              .numbers_as_parameters = options.numbers_as_parameters,
                              .exact_sums = c.exact_sums,
                              .sinks = options.fuse_operators && options.fuse_groups,
                              .not_folded = c.not_folded,
                              .folds_apart = c.folds_apart,
                              .explain = false},
                             sink, timings);
  if (options.fuse_operators) c.fusions = outliner::find_fusions(c.outlined);
}

std::vector<std::string> refused_by_fusions(const Compiled& c) {
  std::vector<std::string> refused(c.outlined.kernels.size());
  for (size_t k = 0; k < refused.size(); ++k)
    if (c.fusions.fuses(k)) refused[k] = "it is part of a fused operator";
  return refused;
}

// Changes `c`, whose kernels have plain PTX, into what options.forecast says.
Result<void> adapt(Compiled& c, const CompileOptions& options, uint32_t ptx_target, const ptx::Module* math,
                   Timings& timings) {
  Forecast expected = options.forecast(c);
  while (!expected.not_folded.empty() || !expected.folds_apart.empty() || !expected.not_whole.empty()) {  // each time fewer are folds beside what they read, or joins among all rows
    c.not_folded.insert(c.not_folded.end(), expected.not_folded.begin(), expected.not_folded.end());
    c.folds_apart.insert(c.folds_apart.end(), expected.folds_apart.begin(), expected.folds_apart.end());
    c.not_whole.insert(c.not_whole.end(), expected.not_whole.begin(), expected.not_whole.end());
    DiagnosticSink told;
    outline(c, options, told, timings);
    if (told.has_errors()) return Error{Fault::internal, "a program cannot be outlined without a fold"};
    if (c.outlined.kernels.empty()) {  // what was a fold was all of it
      c.code = {};
      c.ptx.clear();
      return {};
    }
    RETURN_IF_ERROR(generate(c, options, ptx_target, math, timings, refused_by_fusions(c)));
    expected = options.forecast(c);
  }
  const codegen::KernelEncodings plain;
  if (std::all_of(expected.forms.begin(), expected.forms.end(), [&](const auto& form) { return form == plain; }))
    return {};
  const std::string no_code = c.no_gpu_code;
  c.forms = std::move(expected.forms);
  RETURN_IF_ERROR(generate(c, options, ptx_target, math, timings, refused_by_fusions(c)));
  if (c.no_gpu_code != no_code)
    return Error{Fault::internal, "a kernel has code for plain elements alone: " + c.no_gpu_code};
  return {};
}

Result<Compiled> compile_typed(Compiled c, const CompileOptions& options, DiagnosticSink& sink, Timings& timings) {
  RETURN_IF_ERROR(check_cancelled());
  std::optional<libdevice::Math> own_math;
  const ptx::Module* math = find_math(c.program, options, own_math, c.no_math, timings);
  outline(c, options, sink, timings);
  if (sink.has_errors()) return Error{Fault::input, ""};
  if (options.until == Stage::outline || c.outlined.kernels.empty()) return c;
  RETURN_IF_ERROR(check_cancelled());

  const isa::Target* target = isa::find_target(options.target);
  if (!target) return usage_error("there is no target `{}`", options.target);
  RETURN_IF_ERROR(generate(c, options, target->sm, math, timings, refused_by_fusions(c)));
  if (options.until == Stage::ptx) return c;
  if (options.forecast) {
    RETURN_IF_ERROR(adapt(c, options, target->sm, math, timings));
    if (c.outlined.kernels.empty()) return c;
  }
  std::vector<std::string> refused = refused_by_fusions(c);

  switch (options.backend.kind) {
    case Backend::rndn: {
      const assembler::Options to = assembler_options(options, target);
      // An instruction that our assembler does not know yet is like a builtin without GPU code: its kernel is left out.
      while (!c.code.module.functions.empty()) {
        auto assembled = runtime::assemble(options.code_cache, c.code.module, to, timings);
        if (assembled) {
          c.cubin = std::move(assembled->cubin);
          c.kernels = std::move(assembled->kernels);
          break;
        }
        if (assembled.error().fault != Fault::input) return assembled.error();
        const std::string why = "cannot assemble its PTX: " + assembled.error().message;
        bool named = false;
        for (size_t k = 0; k < refused.size(); ++k)
          if (refused[k].empty() && c.code.kernels[k].name == assembled.error().subject) named = true, refused[k] = why;
        for (size_t k = 0; k < refused.size() && !named; ++k)
          if (refused[k].empty()) refused[k] = why;
        RETURN_IF_ERROR(generate(c, options, target->sm, math, timings, refused));
      }
      break;
    }
    case Backend::ptxas: {
      if (c.code.module.functions.empty()) break;
      auto scope = timings.measure(Phase::encode, "ptxas");
      ASSIGN_OR_RETURN(c.cubin,
                       run_ptxas(options.backend.path, c.ptx, options.target, options.level, options.max_registers));
      break;
    }
    case Backend::driver: break;  // the device compiles the text when it loads it
  }
  return c;
}

}  // namespace

Result<CompiledKernel> compile_kernel(const Compiled& compiled, size_t kernel, const codegen::KernelEncodings& encodings,
                                      Timings& timings) {
  const CompileOptions& options = compiled.options;
  const isa::Target* target = isa::find_target(options.target);
  if (!target) return usage_error("there is no target `{}`", options.target);
  std::optional<libdevice::Math> own_math;
  std::string no_math;
  codegen::Options how{.ptx_target = target->sm,
                       .refused = std::vector<std::string>(compiled.outlined.kernels.size(), "it is another kernel"),
                       .math = find_math(compiled.program, options, own_math, no_math, timings)};
  how.refused[kernel].clear();
  how.notes_work = options.notes_work;
  how.encodings.resize(kernel + 1);
  how.encodings[kernel] = encodings;
  ASSIGN_OR_RETURN(codegen::ModuleCode code, codegen::generate(compiled.outlined, how, timings));
  CompiledKernel made{.code = std::move(code.kernels[kernel]), .ptx = {}, .cubin = {}, .reports = {}};
  if (!made.code.refused.empty()) return input_error("{}", made.code.refused);
  if (options.verify_passes)
    if (const std::vector<std::string> problems = ptx::verify(code.module); !problems.empty())
      return Error{Fault::internal, "the generated PTX is not valid: " + problems.front()};
  if (options.backend.kind == Backend::rndn) {
    ASSIGN_OR_RETURN(assembler::Assembled assembled,
                     runtime::assemble(options.code_cache, code.module, assembler_options(options, target), timings));
    made.cubin = std::move(assembled.cubin);
    made.reports = std::move(assembled.kernels);
    return made;
  }
  made.ptx = ptx::print(code.module);
  if (options.backend.kind == Backend::ptxas) {
    auto scope = timings.measure(Phase::encode, "ptxas");
    ASSIGN_OR_RETURN(made.cubin, run_ptxas(options.backend.path, made.ptx, options.target, options.level,
                                           options.max_registers));
  }
  return made;
}

// SASS of every kernel, an instruction per line with its address.
Result<std::string> disassemble(const std::vector<std::byte>& file) {
  std::string out;
  if (file.empty()) return out;
  ASSIGN_OR_RETURN(cubin::Image image, cubin::read(file));
  const isa::Target* target = isa::find_target(fmt::format("sm_{}", image.sm));
  if (!target) return input_error("cannot print the code of a cubin for sm_{}", image.sm);
  out += fmt::format("\t.target\tsm_{}\n", image.sm);
  for (const cubin::Kernel& kernel : image.kernels) {
    out += fmt::format("\n\t.section\t.text.{}\n{}:\n", kernel.name, kernel.name);
    for (const isa::Located& at : isa::unpack(*target, kernel.code)) {
      isa::Instruction instruction;
      if (isa::decode(*target, at.word, at.address, instruction))
        out += fmt::format("        /*{:04x}*/ {} ;\n", at.address, isa::text(*target, instruction));
      else
        out += fmt::format("        /*{:04x}*/ .word {:#018x}, {:#018x} ;\n", at.address, at.word.lo, at.word.hi);
    }
  }
  return out;
}

Result<std::string> emit(const Compiled& c, Stage stage) {
  if (stage >= Stage::ptx && c.code.module.functions.empty() && !c.no_gpu_code.empty())
    return input_error("{}", c.no_gpu_code);
  switch (stage) {
    case Stage::hir: return hir::print(c.program, false);
    case Stage::typed: return hir::print(c.program, true);
    case Stage::outline: return hir::print(c.outlined.program, true);
    case Stage::ptx: return c.ptx;
    case Stage::sass: return disassemble(c.cubin);
    case Stage::cubin: return std::string(reinterpret_cast<const char*>(c.cubin.data()), c.cubin.size());
  }
  return Error{Fault::internal, "unknown stage"};
}

}  // namespace rndn::runtime
