// Code generation in one call: a PTX module with one entry per outlined kernel. kernel.cpp writes a kernel.
#include "libraries/base/system/parallel.h"
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

// Moves the functions and variables of a kernel's own module behind those of the common one. Called functions, which follow the entry, and variables
// of the module are the same as those of that name that other kernels brought.
void append(ptx::Module&& own, ptx::Module& all) {
  const uint32_t first = static_cast<uint32_t>(all.functions.size());
  std::vector<uint32_t> functions(own.functions.size()), variables(own.variables.size());
  uint32_t next = first;
  for (size_t k = 0; k < functions.size(); ++k) {
    functions[k] = UINT32_MAX;
    for (uint32_t at = 0; k > 0 && at < first && functions[k] == UINT32_MAX; ++at) {
      if (!all.functions[at].is_entry && all.functions[at].name == own.functions[k].name) functions[k] = at;
    }
    if (functions[k] == UINT32_MAX) functions[k] = next++;
  }
  uint32_t k = 0;
  for (ptx::Variable& v : own.variables) {
    uint32_t& to = variables[k++];
    to = static_cast<uint32_t>(all.variables.size());
    if (v.function == UINT32_MAX) {
      for (uint32_t at = 0; at < all.variables.size(); ++at)
        if (all.variables[ptx::VariableId{at}].function == UINT32_MAX &&
            all.variables[ptx::VariableId{at}].name == v.name)
          to = at;
    } else {
      if (functions[v.function] < first) continue;  // of a function that is there already
      v.function = functions[v.function];
    }
    if (to == all.variables.size()) all.variables.add(std::move(v));
  }
  for (size_t i = 0; i < functions.size(); ++i) {
    if (functions[i] < first) continue;
    ptx::Function& f = own.functions[i];
    if (!own.variables.empty() || functions.size() > 1)
      for (RawVector<ptx::Operand>* operands : {&f.operands, &f.vector_elements})
        for (ptx::Operand& o : *operands) {
          const bool of_variable = o.kind == ptx::Operand::variable || o.kind == ptx::Operand::address_var;
          if (of_variable) o.id = variables[o.id];
          if (o.kind == ptx::Operand::function) o.id = functions[o.id];
        }
    all.functions.push_back(std::move(f));
  }
}

}  // namespace

Result<ModuleCode> generate(const outliner::Outlined& outlined, const Options& options, Timings& timings) {
  auto scope = timings.measure(Phase::ptx);
  ModuleCode out;
  out.module.version = version_for(options.ptx_target);
  out.module.target = options.ptx_target;
  const size_t count = outlined.kernels.size();
  out.module.functions.reserve(count);
  out.kernels.reserve(count);
  // Kernel k, into that module, unless it is refused.
  const auto make = [&](size_t k, ptx::Module& module, KernelCode& code) -> Result<void> {
    code.name = std::string(outlined.program.text(outlined.program.functions[outlined.kernels[k].function].name));
    if (k < options.refused.size() && !options.refused[k].empty()) {
      code.refused = options.refused[k];
      return {};
    }
    auto made = generate_kernel(outlined, static_cast<uint32_t>(k), options, module, code.refused_at);
    if (made)
      code = *std::move(made);
    else if (made.error().fault == Fault::input)
      code.refused = made.error().message;
    else
      return made.error();
    return {};
  };
  if (!options.pool || count <= 1) {
    for (size_t k = 0; k < count; ++k) {
      const size_t functions = out.module.functions.size(), variables = out.module.variables.size();
      RETURN_IF_ERROR(make(k, out.module, out.kernels.emplace_back()));
      if (out.kernels.back().refused.empty()) continue;
      out.module.functions.resize(functions);
      out.module.variables.resize(variables);
    }
    return out;
  }
  // Side by side, each in a module of its own; the same module comes of it.
  struct Made {
    ptx::Module module;
    KernelCode code;
    Result<void> result;
  };
  std::vector<Made> all(count);
  options.pool->run(count, [&](size_t k, unsigned) {
    all[k].module.target = options.ptx_target;
    all[k].result = make(k, all[k].module, all[k].code);
  });
  for (Made& m : all) {
    RETURN_IF_ERROR(m.result);
    if (m.code.refused.empty()) append(std::move(m.module), out.module);
    out.kernels.push_back(std::move(m.code));
  }
  return out;
}

}  // namespace rndn::codegen
