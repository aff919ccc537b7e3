// The command line of ptxas, as rndn-as takes it.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn::tools {

struct PtxasArguments {
  std::vector<std::string> arguments;  // for `own`: ptxas's options by their long names, with `=`
  std::vector<std::string> warnings;   // of what is asked for and not done
};

// Translates a command line. Options of ptxas that `own` has become `--long-name=value` in any of
// ptxas's spellings; those that only tune or that ask for what is so anyway are left out; those
// that ask for something else are left out with a warning, or fail (fault usage) where the output
// would be another thing. What ptxas does not have is passed on, but for a `--name=value` that
// `own` does not know either: that is taken for the tuning of a newer ptxas, and left out with a
// warning. Files of options are read (fault input when that fails).
Result<PtxasArguments> from_ptxas(const std::vector<std::string>& given, const CLI::App& own);

}  // namespace rndn::tools
