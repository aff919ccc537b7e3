// What a test proved, for docs/status.md: one line per fact, appended to a file of the running test program in $RNDN_STATUS_DIR.
// Without that variable nothing is written.
#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace rndn::testing {

// area: "query", "builtin", "form", "count"; item: "q06"; column: "sm_86"; fact: "simulator", "cpu", or a number.
inline void record_status(const std::string& area, const std::string& item, const std::string& column,
                          const std::string& fact) {
  const char* folder = std::getenv("RNDN_STATUS_DIR");
  if (!folder) return;
  std::string path = fmt::format("{}/{}.tsv", folder, getpid());
  if (std::FILE* file = std::fopen(path.c_str(), "a")) {
    fmt::print(file, "{}\t{}\t{}\t{}\n", area, item, column, fact);
    std::fclose(file);
  }
}

}  // namespace rndn::testing
