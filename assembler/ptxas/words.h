// What a cubin takes, in the words of ptxas 13's -v, -warn-spills and -warn-lmem-usage, which
// programs that call it read.
#pragma once
#include <string>
#include <string_view>

#include "assembler/assemble.h"
#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"

namespace rndn::ptxas {

// Lines that begin with `ptxas info`: memory of the module, then each kernel's registers, barriers,
// spills and memory. Registers and memory are read back from `image`, which is `made`'s cubin.
// `arch`: as the caller named the target.
std::string resources(const assembler::Assembled& made, const cubin::Image& image, const isa::Target& target,
                      std::string_view arch);

struct Warnings {
  bool of_spills = false, of_local_memory = false;  // what is asked for
  bool are_errors = false;
};
// A line for each kernel that spills or has local memory; `count` grows by their number.
std::string usage_warnings(const assembler::Assembled& made, const cubin::Image& image, const Warnings& wanted,
                           size_t& count);

// What ptxas says of a target that it does not know.
std::string unknown_target(std::string_view arch);

}  // namespace rndn::ptxas
