// A PTX module to a cubin: rewritings of the module, its variables, its kernels side by side.
#include "assembler/assemble.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "assembler/pipeline.h"
#include "libraries/base/system/parallel.h"
#include "ptx/layout.h"
#include "ptx/parse.h"
#include "ptx/transform/inline_calls.h"
#include "ptx/transform/legalize.h"
#include "ptx/transform/unroll.h"
#include "ptx/transform/vectorize_memory.h"

namespace rndn::assembler {

Workspace::Workspace() = default;
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

namespace {

std::string first_of(const std::vector<std::string>& problems) {
  return problems.size() == 1 ? problems[0] : fmt::format("{} (and {} more)", problems[0], problems.size() - 1);
}

Result<void> check_parameters(const ptx::Module& m, const ptx::Function& p, const isa::Target& t) {
  const bool newer = m.version >= 81 && m.target >= 70;
  const uint32_t most = newer ? t.max_parameter_bytes_81 : t.max_parameter_bytes;
  const uint64_t bytes = ptx::lay_out_parameters(p, [](uint32_t, uint32_t, uint32_t) {});
  if (bytes <= most) return {};
  const std::string later = !newer && bytes <= t.max_parameter_bytes_81
                                ? fmt::format("; {} with .version 8.1 and .target sm_70", t.max_parameter_bytes_81)
                                : "";
  return input_error("function {}, line {}: {} bytes of parameters, {} allows {}{}", p.name, p.line, bytes, t.name,
                     most, later);
}

// What turns modules into simpler ones before their functions are assembled one by one.
struct Rewriting {
  std::string_view name;
  Result<std::optional<ptx::Module>> (*run)(const ptx::Module&);  // none: nothing to do
  int from_level = 0;
  bool Options::*wanted = nullptr;  // none: always
};
constexpr Rewriting rewritings[] = {{"expansion", ptx::expand},
                                    {"inlining", ptx::inline_calls},
                                    {"unrolling", ptx::unroll, 2, &Options::unrolling},
                                    {"vectorizing memory operations", ptx::vectorize_memory, 2}};

// The module after all rewritings: `rewritten`, or the input where nothing was to do.
Result<const ptx::Module*> rewrite(const ptx::Module& input, ptx::Module& rewritten, const Options& options,
                                   Timings& timings) {
  const ptx::Module* simplest = &input;
  for (const Rewriting& r : rewritings) {
    if (options.level < r.from_level || (r.wanted && !(options.*r.wanted))) continue;
    RETURN_IF_ERROR(check_cancelled());
    auto scope = timings.measure(Phase::structure);
    ASSIGN_OR_RETURN(std::optional<ptx::Module> made, r.run(*simplest));
    if (!made) continue;
    rewritten = *std::move(made);
    simplest = &rewritten;
    if (options.verify_passes)
      if (auto problems = ptx::verify(rewritten); !problems.empty())
        return Error{Fault::internal, fmt::format("after {}: {}", r.name, first_of(problems))};
  }
  return simplest;
}

// Global and constant variables, with addresses in their initial values.
void add_variables(const ptx::Module& module, cubin::Image& image) {
  ptx::ConstantLayout constants;  // once an initial value has an address in it
  for (uint32_t id = 0; id < module.variables.size(); ++id) {
    const ptx::Variable& v = module.variables[ptx::VariableId{id}];
    if (v.space != ptx::Space::global && v.space != ptx::Space::constant) continue;
    cubin::Variable x;
    x.name = ptx::symbol_of(module, ptx::VariableId{id});
    x.size = uint64_t{ptx::type_bytes(v.type)} * (v.count ? v.count : 1);
    x.align = v.align ? v.align : std::max(1u, ptx::type_bytes(v.type));
    x.initial.assign(v.initial.begin(), v.initial.end());
    if (!x.initial.empty()) x.initial.resize(x.size);
    for (const ptx::Variable::Address& a : v.addresses) {
      const bool in_bank = !a.function && module.variables[ptx::VariableId{a.id}].space == ptx::Space::constant;
      if (in_bank && constants.offsets.empty()) constants = ptx::lay_out_constants(module);
      if (a.function || in_bank) {
        const uint64_t base = a.function ? ptx::function_address(a.id) : constants.offsets[a.id];
        const uint64_t value = base + static_cast<uint64_t>(a.addend);
        std::memcpy(x.initial.data() + a.offset, &value, 8);
      } else {
        x.relocations.push_back(
            {cubin::Relocation::generic_64, a.offset, ptx::symbol_of(module, ptx::VariableId{a.id}), a.addend});
      }
    }
    x.constant = v.space == ptx::Space::constant;
    x.visible = v.visible;
    x.managed = v.managed;
    image.variables.push_back(std::move(x));
  }
}

// Memory for so many threads.
std::span<const std::unique_ptr<Workspace::Worker>> workers(const Options& options, Workspace& own, size_t threads) {
  Workspace& w = options.workspace ? *options.workspace : own;
  while (w.workers.size() < threads) w.workers.push_back(std::make_unique_for_overwrite<Workspace::Worker>());
  for (const auto& worker : w.workers)
    if (worker->target != options.target) worker->forms.clear(), worker->target = options.target;
  return {w.workers.data(), threads};
}

// assemble_kernel; what is not about a statement is about the function.
Result<void> assemble_named(const ptx::Module& module, const ptx::Function& p, const SourceLines& lines,
                            const Options& o, Workspace::Worker& memory, Timings& timings, cubin::Kernel& k,
                            KernelReport& report) {
  RETURN_IF_ERROR(check_cancelled());
  Result<void> made = assemble_kernel(module, p, lines, o, memory, timings, k, report);
  if (made) return made;
  Error error = Error(made.error()).about(p.name);
  return error.line ? error : std::move(error).at(p.line);
}

// All kernels in their order; side by side with a pool, the longest first.
Result<void> assemble_kernels(const ptx::Module& module, std::span<const ptx::Function* const> entries,
                              const SourceLines& lines, const Options& options, Timings& timings,
                              std::vector<cubin::Kernel>& kernels, std::span<KernelReport> reports) {
  kernels.resize(entries.size());
  Workspace own;
  if (!options.pool || options.pool->threads() == 1 || entries.size() < 2) {
    Workspace::Worker& worker = *workers(options, own, 1).front();
    for (size_t i = 0; i < entries.size(); ++i) {
      RETURN_IF_ERROR(assemble_named(module, *entries[i], lines, options, worker, timings, kernels[i], reports[i]));
    }
    return {};
  }
  std::vector<uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return entries[a]->instructions.size() > entries[b]->instructions.size();
  });
  const std::span<const std::unique_ptr<Workspace::Worker>> memory = workers(options, own, options.pool->threads());
  std::vector<Timings> overlap(options.pool->threads());
  std::vector<Result<void>> results(entries.size());
  auto waiting = timings.measure(Phase::encode);
  options.pool->run(entries.size(), [&](size_t n, unsigned worker) {
    const uint32_t i = order[n];
    results[i] = assemble_named(module, *entries[i], lines, options, *memory[worker],
                                worker ? overlap[worker] : timings, kernels[i], reports[i]);
  });
  for (const Timings& t : overlap) timings.add_overlap(t);
  for (Result<void>& r : results) RETURN_IF_ERROR(r);
  return {};
}

}  // namespace

Result<void> found(const std::vector<std::string>& problems, const std::string& where) {
  if (problems.empty()) return {};
  return Error{Fault::internal, where + first_of(problems)};
}

Result<Assembled> assemble(const ptx::Module& input, const Options& options, Timings& timings) {
  CHECK(options.target != nullptr, "no target");
  if (input.target > options.target->sm)
    return input_error(".target sm_{} does not run on {}", input.target, options.target->name);
  for (const ptx::Function& p : input.functions)
    if (p.is_entry) RETURN_IF_ERROR(check_parameters(input, p, *options.target));
  ptx::Module rewritten;
  ASSIGN_OR_RETURN(const ptx::Module* const simplest, rewrite(input, rewritten, options, timings));
  const ptx::Module& module = *simplest;
  Assembled result;
  cubin::Image image;
  image.sm = options.target->sm;
  image.ptx_target = module.target;
  add_variables(module, image);
  std::vector<const ptx::Function*> entries;  // the others are inlined where they are called
  for (const ptx::Function& p : module.functions)
    if (p.is_entry) entries.push_back(&p);
  result.kernels.resize(entries.size());
  SourceLines lines;
  if (options.line_tables) lines = SourceLines(input, image);
  RETURN_IF_ERROR(assemble_kernels(module, entries, lines, options, timings, image.kernels, result.kernels));
  auto scope = timings.measure(Phase::encode);
  result.cubin = cubin::write(image);
  return result;
}

}  // namespace rndn::assembler
