// Whole files and standard streams, with errors that say what was tried.
#pragma once
#include <string>
#include <string_view>

#include "libraries/base/result.h"

namespace rndn {

// The contents of `path` ("-" = stdin). A file that cannot be read is the input's fault (exit 1).
Result<std::string> read_file(const std::string& path);
// Writes `path` ("-" = stdout) whole. Failure is the world's fault (exit 3): never lose output silently.
Result<void> write_file(const std::string& path, std::string_view contents);

}  // namespace rndn
