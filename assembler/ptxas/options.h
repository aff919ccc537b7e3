// The options of ptxas, as rndn-as and the entry points of nvidia.h take them.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn::ptxas {

struct Arguments {
  std::vector<std::string> arguments;  // for the caller: ptxas's options by their long names, with `=`
  std::vector<std::string> warnings;   // of what is asked for and not done
};

// Translates a command line. Options of ptxas that rndn has become `--long-name=value` in any of
// ptxas's spellings; those that only tune or that ask for what is so anyway are left out; those
// that ask for something else are left out with a warning, or fail (fault usage) where the output
// would be another thing. What ptxas does not have is passed on, but for a `--name=value` that
// the caller does not know either (`knows` is asked for the name): that is taken for the tuning of a
// newer ptxas, and left out with a warning. Files of options are read (fault input when that fails).
Result<Arguments> translate(const std::vector<std::string>& given, const std::function<bool(std::string_view)>& knows);

}  // namespace rndn::ptxas
