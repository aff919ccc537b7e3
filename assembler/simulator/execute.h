// Runs the blocks of a launch.
#pragma once
#include "assembler/simulator/warp.h"

namespace rndn::sim {

// Runs all blocks of `launch` on its threads; counts are added to `total`. Reports are in the launch.
void execute(Launch& launch, Counters& total);

}  // namespace rndn::sim
