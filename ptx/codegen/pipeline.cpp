// Code generation in one call: a PTX module with one entry per outlined kernel. kernel.cpp writes a kernel.
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

}  // namespace

Result<ModuleCode> generate(const outliner::Outlined& outlined, const Options& options, Timings& timings) {
  auto scope = timings.measure(Phase::ptx);
  ModuleCode out;
  out.module.version = version_for(options.ptx_target);
  out.module.target = options.ptx_target;
  for (uint32_t k = 0; k < outlined.kernels.size(); ++k) {
    const size_t functions = out.module.functions.size(), variables = out.module.variables.size();
    KernelCode refused;
    refused.name = std::string(outlined.program.text(outlined.program.functions[outlined.kernels[k].function].name));
    if (k < options.refused.size() && !options.refused[k].empty()) {
      refused.refused = options.refused[k];
      out.kernels.push_back(std::move(refused));
      continue;
    }
    auto code = generate_kernel(outlined, k, out.module, refused.refused_at);
    if (code) {
      out.kernels.push_back(*std::move(code));
      continue;
    }
    if (code.error().fault != Fault::input) return code.error();
    refused.refused = code.error().message;
    out.module.functions.resize(functions);
    out.module.variables.resize(variables);
    out.kernels.push_back(std::move(refused));
  }
  return out;
}

}  // namespace rndn::codegen
