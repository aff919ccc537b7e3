// Code generation in one call: a PTX module with one entry per outlined kernel. kernel.cpp writes a kernel.
#include "ptx/codegen/codegen.h"
#include "ptx/codegen/emitter.h"
#include "ptx/codegen/kernel.h"

namespace rndn::codegen {

Result<ModuleCode> generate(const outliner::Outlined& outlined, const Options& options, Timings& timings) {
  auto scope = timings.measure(Phase::ptx);
  ModuleCode out;
  out.module.version = 60;
  out.module.target = options.ptx_target;
  for (uint32_t k = 0; k < outlined.kernels.size(); ++k) {
    ASSIGN_OR_RETURN(KernelCode code, generate_kernel(outlined, k, out.module));
    out.kernels.push_back(std::move(code));
  }
  return out;
}

}  // namespace rndn::codegen
