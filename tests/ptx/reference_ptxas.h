// Finds the vendor's assembler and asks it about texts.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/reference_tools.h"

namespace rndn::ptx::test {

using rndn::test::run_command;
inline std::string find_ptxas(std::string& why) { return rndn::test::reference_tool("ptxas", why); }

// Assembles `text`; true when ptxas accepts it. `messages`: what it printed. The file lives in a folder of this process.
inline bool ptxas_accepts(const std::string& ptxas, const std::string& text, const std::string& target,
                          std::string& messages) {
  static const std::string folder = [] {
    char name[] = "/tmp/rndn-ptx-test-XXXXXX";
    return std::string(mkdtemp(name) ? name : "/tmp");
  }();
  std::string file = folder + "/input.ptx";
  FILE* f = fopen(file.c_str(), "w");
  if (!f) return false;
  fwrite(text.data(), 1, text.size(), f);
  fclose(f);
  int status = 0;
  messages = run_command("'" + ptxas + "' -O0 -arch=" + target + " -o /dev/null '" + file + "'", status);
  std::filesystem::remove(file);
  return status == 0;
}

}  // namespace rndn::ptx::test
