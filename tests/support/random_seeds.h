// How many seeds a test with random inputs has: few in the gate, $RNDN_RANDOM_SEEDS in the tests
// that are labelled `slow`. A seed alone decides what an input is.
#pragma once
#include <cstdlib>

namespace rndn::testing {

inline unsigned random_seeds(unsigned in_the_gate) {
  const char* asked = std::getenv("RNDN_RANDOM_SEEDS");
  return asked ? static_cast<unsigned>(std::atoi(asked)) : in_the_gate;
}

}  // namespace rndn::testing
