// The names of the targets, for tests that loop over all of them.
#pragma once
#include <string>
#include <vector>

#include "assembler/isa/isa.h"

namespace rndn::isa {

inline std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const Target& t : targets()) names.emplace_back(t.name);
  return names;
}

}  // namespace rndn::isa
