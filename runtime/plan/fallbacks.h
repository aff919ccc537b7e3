// What of a program the reference interpreter runs, known without a device.
#pragma once
#include <string>
#include <vector>

#include "libraries/base/errors/source.h"
#include "runtime/compiler/compile.h"

namespace rndn::runtime {

// One phrase per step that has no device code, with its place: "q.hir:3:4: `unique` (an argument is of type complex)"; one for the whole program
// when it has control flow on the host or globals that change. Empty: the device runs all of it. `compiled` is of Stage::ptx or later. The same as
// Engine::Plan::fallbacks.
std::vector<std::string> fallbacks_of(const Compiled& compiled, const SourceManager& sources);
// How a program without a plan is listed among the fallbacks.
std::string whole_program_fallback(const std::string& why);

}  // namespace rndn::runtime
