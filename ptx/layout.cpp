#include "ptx/layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace rndn::ptx {

using OperandKind = Operand;

std::string symbol_of(const Module& module, VariableId variable) {
  const Variable& v = module.variables[variable];
  return v.function == UINT32_MAX || v.external ? v.name : fmt::format("$__{}__{}", v.name, index(variable));
}

SharedLayout lay_out_shared(const Module& module, const Function& function) {
  SharedLayout layout;
  const auto& variables = module.variables;
  const auto is_shared = [&](const Variable& x) { return x.space == Space::shared; };
  if (std::ranges::none_of(variables, is_shared)) return layout;
  std::vector<bool> used(variables.size());
  for (const auto* operands : {&function.operands, &function.vector_elements})
    for (const Operand& o : *operands)
      if ((o.kind == OperandKind::variable || o.kind == OperandKind::address_var) &&
          is_shared(variables[o.variable_id()]))
        used[o.id] = layout.any = true;
  if (!layout.any) return layout;
  layout.offsets.resize(variables.size());
  const auto align_up = [](uint64_t x, uint64_t a) { return (x + a - 1) / a * a; };
  const auto alignment = [](const Variable& x) {
    return x.align ? x.align : std::max(1u, type_bytes(x.type));
  };
  // The arrays of unknown size all begin where the others end, and what the launch adds to these has no place for a gap.
  uint64_t end = 0, dynamic_align = 0;
  for (uint32_t v = 0; v < variables.size(); ++v) {
    const Variable& x = variables[VariableId{v}];
    if (!used[v]) continue;
    if (x.count == UINT64_MAX) {
      dynamic_align = std::max<uint64_t>({dynamic_align, alignment(x), 16});
      continue;
    }
    end = align_up(end, alignment(x));
    layout.offsets[v] = static_cast<uint32_t>(end);
    end = std::min<uint64_t>(end + type_bytes(x.type) * (x.count ? x.count : 1), UINT32_MAX / 2);
  }
  if (dynamic_align) end = align_up(end, dynamic_align);
  for (uint32_t v = 0; v < variables.size(); ++v)
    if (used[v] && variables[VariableId{v}].count == UINT64_MAX) layout.offsets[v] = static_cast<uint32_t>(end);
  layout.bytes = static_cast<uint32_t>(end);
  return layout;
}

ConstantLayout lay_out_constants(const Module& module) {
  ConstantLayout layout;
  const auto is_constant = [](const Variable& x) { return x.space == Space::constant; };
  if (std::ranges::none_of(module.variables, is_constant)) return layout;
  layout.offsets.resize(module.variables.size());
  for (uint32_t v = 0; v < module.variables.size(); ++v) {
    const Variable& x = module.variables[VariableId{v}];
    if (!is_constant(x)) continue;
    const uint64_t size = type_bytes(x.type), align = x.align ? x.align : std::max<uint64_t>(size, 1);
    layout.bytes = (layout.bytes + align - 1) / align * align;
    layout.offsets[v] = static_cast<uint32_t>(layout.bytes);
    layout.bytes += size * (x.count ? x.count : 1);
  }
  return layout;
}

LocalLayout lay_out_local(const Module& module, const Function& function) {
  LocalLayout layout;
  const auto& variables = module.variables;
  const uint32_t me = static_cast<uint32_t>(&function - module.functions.data());
  const auto is_local = [&](const Variable& x) {
    return x.space == Space::local && (x.function == me || x.function == UINT32_MAX);
  };
  if (std::ranges::none_of(variables, is_local)) return layout;
  for (const Variable& x : variables) layout.dynamic |= is_local(x) && x.external;
  if (layout.dynamic) layout.bytes = 16;  // the top of the stack stands at the frame's beginning (inline_calls.cpp)
  layout.offsets.resize(variables.size());
  for (uint32_t v = 0; v < variables.size(); ++v) {
    const Variable& x = variables[VariableId{v}];
    if (!is_local(x) || x.external) continue;
    const uint32_t align = std::max<uint32_t>(x.align ? x.align : type_bytes(x.type), 4);
    layout.bytes = (layout.bytes + align - 1) / align * align;
    layout.offsets[v] = layout.bytes;
    layout.bytes += type_bytes(x.type) * static_cast<uint32_t>(x.count ? x.count : 1);
  }
  layout.bytes = (layout.bytes + 15) / 16 * 16;
  return layout;
}

}  // namespace rndn::ptx
