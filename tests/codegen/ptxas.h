// The vendor's assembler as a witness: found in the folder RNDN_REFERENCE_TOOLS or on PATH; version 11.8 only.
#pragma once
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace rndn::test {

// Runs `command` and returns its output, stdout and stderr together; `status` gets the exit status.
inline std::string run_command(const std::string& command, int& status) {
  std::string output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) {
    status = -1;
    return output;
  }
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, n);
  status = pclose(pipe);
  return output;
}

// Empty when there is none; `why` then says why.
inline std::string find_ptxas(std::string& why) {
  std::string path = "ptxas";
  if (const char* folder = std::getenv("RNDN_REFERENCE_TOOLS")) path = std::string(folder) + "/ptxas";
  int status = 0;
  const std::string version = run_command("'" + path + "' --version", status);
  if (status != 0) {
    why = "no ptxas on PATH or in RNDN_REFERENCE_TOOLS";
    return {};
  }
  if (version.find("release 11.8") == std::string::npos) {
    why = "ptxas is not 11.8 (set RNDN_REFERENCE_TOOLS)";
    return {};
  }
  return path;
}

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
