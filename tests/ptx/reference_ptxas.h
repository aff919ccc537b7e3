// Finds the vendor's assembler and asks it about texts.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace rndn::ptx::test {

inline std::string run_command(const std::string& command, int& status) {
  std::string out;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) {
    status = -1;
    return out;
  }
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, n);
  status = pclose(pipe);
  return out;
}

// Path of a ptxas 11.8, from the folder RNDN_REFERENCE_TOOLS or from PATH; empty, with the reason, when there is none.
inline std::string find_ptxas(std::string& why) {
  const char* folder = std::getenv("RNDN_REFERENCE_TOOLS");
  std::string path = folder ? std::string(folder) + "/ptxas" : "ptxas";
  int status = 0;
  std::string version = run_command("'" + path + "' --version", status);
  if (status != 0) {
    why = "no ptxas on PATH or in RNDN_REFERENCE_TOOLS";
    return "";
  }
  if (version.find("release 11.8") == std::string::npos) {
    size_t at = version.find("release ");
    why = "ptxas is not release 11.8 but " +
          (at == std::string::npos ? "unknown" : version.substr(at, version.find(',', at) - at));
    return "";
  }
  return path;
}

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
