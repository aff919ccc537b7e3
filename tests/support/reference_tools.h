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
inline std::string tool_of(const std::string& path, const std::string& release, const std::string& variable,
                           std::string& why) {
  int status = 0;
  const std::string version = run_command("'" + path + "' --version", status);
  if (status == 0 && version.find("release " + release) != std::string::npos) return path;
  why =
      status != 0 ? "no " + path + " (" + variable + ")" : path + " is not release " + release + " (" + variable + ")";
  return {};
}
inline std::string reference_tool(const std::string& name, std::string& why) {
  const char* folder = std::getenv("RNDN_REFERENCE_TOOLS");
  return tool_of(folder ? std::string(folder) + "/" + name : name, "11.8", "RNDN_REFERENCE_TOOLS", why);
}
// Of release 13 or another, where RNDN_NEWER_TOOLS says: tools/reference-tools --newer.
inline std::string newer_tool(const std::string& name, std::string& why, const std::string& release = "13.") {
  const char* folder = std::getenv("RNDN_NEWER_TOOLS");
  if (folder) return tool_of(std::string(folder) + "/" + name, release, "RNDN_NEWER_TOOLS", why);
  why = "no newer " + name + " (RNDN_NEWER_TOOLS)";
  return {};
}

}  // namespace rndn::test
