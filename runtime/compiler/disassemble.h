// A cubin as text, an instruction a line.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn::runtime {

Result<std::string> disassemble(const std::vector<std::byte>& cubin);

}  // namespace rndn::runtime
