// The vendor's programs as oracles: found in the folder that RNDN_REFERENCE_TOOLS names, else on PATH; only release 11.8 counts.
#pragma once
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace reference {

struct Output {
  int exit_code = -1;
  std::string text;  // stdout and stderr
};
inline Output run(const std::string& command) {
  Output out;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return out;
  char buffer[1 << 14];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.text.append(buffer, n);
  int status = pclose(pipe);
  out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

// Quoted path of the tool, or empty with the reason.
inline std::string tool(const std::string& name, std::string& why) {
  std::vector<std::string> folders;
  if (const char* folder = std::getenv("RNDN_REFERENCE_TOOLS")) {
    folders.push_back(folder);
  } else if (const char* path = std::getenv("PATH")) {
    std::stringstream list(path);
    for (std::string f; std::getline(list, f, ':');) folders.push_back(f);
  }
  why = name + " is not installed (RNDN_REFERENCE_TOOLS, PATH)";
  for (const std::string& f : folders) {
    std::string path = f + "/" + name;
    if (!std::filesystem::exists(path)) continue;
    std::string quoted = "'" + path + "'";
    if (run(quoted + " --version").text.find("release 11.8") != std::string::npos) return quoted;
    why = path + " is not release 11.8";
  }
  return {};
}

inline std::string read_all(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

// A folder that is removed at the end.
struct Scratch {
  std::filesystem::path path;
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "rndn-test-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Scratch() { std::filesystem::remove_all(path); }
};

}  // namespace reference
