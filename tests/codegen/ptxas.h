// The vendor's assembler as a witness for generated PTX.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/support/reference_tools.h"

namespace rndn::test {

inline std::string find_ptxas(std::string& why) { return reference_tool("ptxas", why); }

// Empty when ptxas accepts the text for the target, else what it says.
inline std::string assemble_with_ptxas(const std::string& ptxas, const std::string& text, const std::string& target,
                                       bool verbose = false) {
  char name[] = "/tmp/rndn-ptx-XXXXXX";
  const int file = mkstemp(name);
  if (file < 0) return "no temporary file";
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  int status = 0;
  std::string said =
      written
          ? run_command("'" + ptxas + "' -arch=" + target + (verbose ? " -v" : "") + " -o /dev/null " + name, status)
          : std::string("cannot write");
  unlink(name);
  return status == 0 && !verbose ? std::string() : said;
}

}  // namespace rndn::test
