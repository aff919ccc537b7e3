// The names of the targets, for tests that loop over them.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "assembler/isa/isa.h"

namespace rndn::isa {

inline std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const Target& t : targets()) names.emplace_back(t.name);
  return names;
}

// Those that a long test loops over, from `least` on: in the gate one of each encoding, of Turing, which lacks the most, and of Ampere, the last whose forms are those of Volta; all where RNDN_EVERY_TARGET is set, as slow tests do.
inline std::vector<std::string> tested_targets(uint32_t least = 0) {
  constexpr uint32_t in_the_gate[] = {61, 75, 86, 90};
  std::vector<std::string> names;
  for (const Target& t : targets())
    if (t.sm >= least && (std::getenv("RNDN_EVERY_TARGET") || std::ranges::find(in_the_gate, t.sm) != std::end(in_the_gate)))
      names.emplace_back(t.name);
  return names;
}

}  // namespace rndn::isa
