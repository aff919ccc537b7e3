// Where the variables and parameters of a kernel lie in its memory spaces, as ptxas lays them out.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ptx/ir.h"

namespace rndn::ptx {

// Static shared memory of an entry: the variables that its code names, of the module and its own, in the order of the module.
struct SharedLayout {
  std::vector<uint32_t> offsets;  // by VariableId, without the target's reserved bytes
  uint32_t bytes = 0;             // of sized variables
  bool any = false;
};
SharedLayout lay_out_shared(const Module& module, const Function& function);
// The .const variables in bank 3, as cubin::write lays them out.
struct ConstantLayout {
  std::vector<uint32_t> offsets;  // by VariableId
  uint64_t bytes = 0;
};
ConstantLayout lay_out_constants(const Module& module);
// Its local memory: the variables of the module and its own, in the order of the module.
struct LocalLayout {
  std::vector<uint32_t> offsets;  // by VariableId, from the stack register
  uint32_t bytes = 0;
  bool dynamic = false;  // and more below, by alloca
};
LocalLayout lay_out_local(const Module& module, const Function& function);
// The parameters of an entry, in their order: use(index, offset, size), in bytes. Returns the size of them all.
template <class F>
uint64_t lay_out_parameters(const Function& function, F&& use) {
  uint64_t at = 0;
  for (uint32_t k = 0; k < function.parameters.size(); ++k) {
    const Parameter& x = function.parameters[k];
    const uint32_t bytes = type_bytes(x.type), align = x.align ? x.align : bytes, size = bytes * (x.count ? x.count : 1);
    at = (at + align - 1) / align * align;
    use(k, static_cast<uint32_t>(at), size);
    at += size;
  }
  return at;
}
// The symbol of a global or constant variable. Functions may have variables of one name: theirs get the number of the variable, as ptxas's do.
std::string symbol_of(const Module& module, VariableId variable);

}  // namespace rndn::ptx
