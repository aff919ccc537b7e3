// The vendor's programs as witnesses: found in the folder that RNDN_REFERENCE_TOOLS names, else on PATH; only release 11.8 counts.
#pragma once
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

// The program's path; empty when there is none, with the reason in `why`.
inline std::string reference_tool(const std::string& name, std::string& why) {
  std::string path = name;
  if (const char* folder = std::getenv("RNDN_REFERENCE_TOOLS")) path = std::string(folder) + "/" + name;
  int status = 0;
  const std::string version = run_command("'" + path + "' --version", status);
  if (status != 0) {
    why = "no " + name + " on PATH or in RNDN_REFERENCE_TOOLS";
    return {};
  }
  if (version.find("release 11.8") == std::string::npos) {
    why = name + " is not release 11.8 (set RNDN_REFERENCE_TOOLS)";
    return {};
  }
  return path;
}

}  // namespace rndn::test
