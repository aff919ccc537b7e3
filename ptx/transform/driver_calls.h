// Keeps registers in local memory across places where something else runs: see driver_calls.cpp.
#pragma once
#include <vector>

#include "ptx/ir.h"

namespace rndn::ptx {

// Something runs between the labels that may change registers.
struct Site {
  ptx::LabelId save{}, restore{};
  ptx::Operand frame;  // register with the address of the memory to use; none: a variable of the entry
  uint32_t first_register = 0, end_register = UINT32_MAX;  // the registers that change
  uint64_t* frame_bytes = nullptr;                         // size of that memory so far; grows
};

// Stores the registers of each site that are alive behind it at `save` and loads them at `restore`.
void save_registers(ptx::Module& module, uint32_t entry, ptx::Function& f, const std::vector<Site>& sites);

}  // namespace rndn::ptx
