// Whole files and standard streams, with errors that say what was tried.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "libraries/base/errors/result.h"

namespace rndn {

// Source positions and the formats of our inputs count in 32 bits.
inline constexpr size_t max_file_bytes = UINT32_MAX;
// The contents of `path` ("-" = stdin). A file that cannot be read or is longer than `limit` bytes is the input's fault (exit 1).
Result<std::string> read_file(const std::string& path, size_t limit = max_file_bytes);
// Writes `path` ("-" = stdout) whole. Failure is the world's fault (exit 3): never lose output silently.
Result<void> write_file(const std::string& path, std::string_view contents);

}  // namespace rndn
