// The targets. Sources: constant-bank layouts, register counts and ELF flags as in ptxas 11.8's cubins; sm_89 equals sm_86 but for its flag;
// sm_75 has no memory descriptors. Bytes of parameters: what ptxas 11.8, 12.9 and 13.0 refuse.
// A target of a known family needs a row here, one in libraries/base/numbers/gpu_limits.h, and its bit in the rows of forms_*.cpp and features.def.
#include "assembler/isa/form.h"

namespace rndn::isa {
namespace {

constexpr uint64_t features_of(uint32_t bit) {
  uint64_t all = 0;
#define FEATURE(name, targets) all |= uint64_t{((targets) & bit) != 0} << static_cast<uint32_t>(Feature::name);
#include "assembler/isa/features.def"
#undef FEATURE
  return all;
}

constexpr Target volta_target(std::string_view name, uint32_t sm, uint32_t bit) {
  Target t{};
  static_cast<GpuLimits&>(t) = limits_of(sm);
  t.name = name;
  t.family = Family::volta;
  t.bit = bit;
  t.elf_flags = 0x500 | sm;
  t.instruction_bytes = 16;
  t.parameter_base = sm >= 90 ? 0x210 : 0x160;
  t.descriptor_offset = sm >= 90 ? 0x208 : sm >= 80 ? 0x118 : 0;
  t.ntid_offset = 0x0;
  t.nctaid_offset = 0xc;
  t.stack_offset = 0x28;
  t.generic_constants_offset = sm >= 90 ? 0xd0 : 0x50;
  t.generic_parameters_offset = sm >= 90 ? 0x198 : 0x40;
  t.generic_parameters_from = sm >= 90 ? 0x210 : 0;
  t.shared_base = sm >= 90 ? 0x400 : 0;
  t.max_registers = 253;
  t.reported_registers_extra = 2;
  t.max_parameter_bytes = 0x1100;
  t.max_parameter_bytes_81 = 0x7ffc;
  t.environment_offset = sm >= 90 ? 0x40 : 0x88;
  t.reserved_shared_offset = sm >= 90 ? 0x6c : 0x124;
  t.features = features_of(bit);
  return t;
}
constexpr Target pascal_target(std::string_view name, uint32_t sm, uint32_t bit) {
  Target t{};
  static_cast<GpuLimits&>(t) = limits_of(sm);
  t.name = name;
  t.family = Family::pascal;
  t.bit = bit;
  t.elf_flags = 0x500 | sm;
  t.instruction_bytes = 8;
  t.parameter_base = 0x140;
  t.descriptor_offset = 0;
  t.ntid_offset = 0x8;
  t.nctaid_offset = 0x14;
  t.stack_offset = 0x20;
  t.generic_constants_offset = 0xd0;
  t.shared_base = 0;
  t.max_registers = 255;
  t.reported_registers_extra = 0;
  t.max_parameter_bytes = 0x1100;
  t.max_parameter_bytes_81 = 0x1100;
  t.features = features_of(bit);
  return t;
}

constexpr std::array<Target, 7> all_targets = {
    pascal_target("sm_60", 60, sm_60), pascal_target("sm_61", 61, sm_61), volta_target("sm_75", 75, sm_75),
    volta_target("sm_80", 80, sm_80),  volta_target("sm_86", 86, sm_86),  volta_target("sm_89", 89, sm_89),
    volta_target("sm_90", 90, sm_90),
};

}  // namespace

std::span<const Target> targets() { return all_targets; }

const Target* find_target(std::string_view name) {
  if (name == "sm_90a") name = "sm_90";
  for (const Target& t : all_targets)
    if (t.name == name) return &t;
  return nullptr;
}

}  // namespace rndn::isa
