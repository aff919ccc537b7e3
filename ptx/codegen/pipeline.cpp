// Code generation in one call: a PTX module with one entry per outlined kernel. kernel.cpp writes a kernel.
#include "libraries/base/parallel.h"
#include "ptx/codegen/codegen.h"
#include "ptx/codegen/emitter.h"
#include "ptx/codegen/kernel.h"

namespace rndn::codegen {
namespace {

// The first PTX version, from 6.0 on, that knows the target (PTX ISA, Target Name History of .target): 10 * major + minor.
uint32_t version_for(uint32_t target) {
  if (target >= 89) return 78;
  if (target >= 87) return 74;
  if (target >= 86) return 71;
  if (target >= 80) return 70;
  if (target >= 75) return 63;
  return 60;
}

// Moves the function and the variables of a kernel's own module behind those of the common one.
void append(ptx::Module&& own, ptx::Module& all) {
  const uint32_t first = static_cast<uint32_t>(all.variables.size());
  const uint32_t function = static_cast<uint32_t>(all.functions.size());
  for (ptx::Variable& v : own.variables) {
    if (v.function != UINT32_MAX) v.function = function;
    all.variables.add(std::move(v));
  }
  ptx::Function& f = own.functions[0];
  if (first && !own.variables.empty())
    for (std::vector<ptx::Operand>* operands : {&f.operands, &f.vector_elements})
      for (ptx::Operand& o : *operands)
        if (o.kind == ptx::Operand::variable || o.kind == ptx::Operand::address_var) o.id += first;
  all.functions.push_back(std::move(f));
}

}  // namespace

Result<ModuleCode> generate(const outliner::Outlined& outlined, const Options& options, Timings& timings) {
  auto scope = timings.measure(Phase::ptx);
  ModuleCode out;
  out.module.version = version_for(options.ptx_target);
  out.module.target = options.ptx_target;
  const size_t count = outlined.kernels.size();
  struct Made {
    ptx::Module module;
    KernelCode code;
    Result<void> result;
  };
  std::vector<Made> made(count);
  out.module.functions.reserve(count);
  out.kernels.reserve(count);
  const auto make = [&](size_t k) {
    Made& m = made[k];
    m.code.name = std::string(outlined.program.text(outlined.program.functions[outlined.kernels[k].function].name));
    if (k < options.refused.size() && !options.refused[k].empty()) {
      m.code.refused = options.refused[k];
      return;
    }
    auto code = generate_kernel(outlined, static_cast<uint32_t>(k), m.module, m.code.refused_at);
    if (code)
      m.code = *std::move(code);
    else if (code.error().fault == Fault::input)
      m.code.refused = code.error().message;
    else
      m.result = code.error();
  };
  if (options.pool && count > 1)
    options.pool->run(count, [&](size_t k, unsigned) { make(k); });
  else
    for (size_t k = 0; k < count; ++k) make(k);
  for (Made& m : made) {
    RETURN_IF_ERROR(m.result);
    if (m.code.refused.empty()) append(std::move(m.module), out.module);
    out.kernels.push_back(std::move(m.code));
  }
  return out;
}

}  // namespace rndn::codegen
