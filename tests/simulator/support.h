// Helpers of the simulator's tests: the vendor's assembler as a maker of code that we did not write, and kernels on a machine.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "assembler/simulator/simulator.h"
#include "libraries/base/system/files.h"
#include "tests/support/targets.h"

namespace rndn::sim {

inline const std::vector<std::string> all_targets = isa::target_names();

// The reference assembler: in the folder $RNDN_REFERENCE_TOOLS, else on PATH; only release 11.8, the last that knows all targets
// and whose code the notes describe. Empty when there is none; `why` says so.
inline std::string find_ptxas(std::string& why) {
  std::vector<std::string> candidates;
  if (const char* folder = std::getenv("RNDN_REFERENCE_TOOLS")) candidates.push_back(std::string(folder) + "/ptxas");
  if (const char* path = std::getenv("PATH")) {
    std::string rest = path;
    while (!rest.empty()) {
      const size_t colon = rest.find(':');
      candidates.push_back(rest.substr(0, colon) + "/ptxas");
      rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
    }
  }
  why = "no ptxas in $RNDN_REFERENCE_TOOLS or on PATH";
  for (const std::string& c : candidates) {
    std::error_code error;
    if (!std::filesystem::exists(c, error)) continue;
    FILE* p = popen(("'" + c + "' --version 2>/dev/null").c_str(), "r");
    if (!p) continue;
    char text[1024] = {};
    const size_t n = fread(text, 1, sizeof text - 1, p);
    pclose(p);
    if (std::string(text, n).find("release 11.8") != std::string::npos) return c;
    why = c + " is not release 11.8";
  }
  return {};
}

// Assembles PTX text; an empty result is a test failure with the assembler's words.
inline std::vector<std::byte> assemble_with_ptxas(const std::string& ptxas, const std::string& ptx,
                                                  const std::string& target, const std::string& options = "") {
  static int counter = 0;
  const std::string base =
      testing::TempDir() + "rndn_sim_" + std::to_string(getpid()) + "_" + std::to_string(counter++);
  EXPECT_TRUE(write_file(base + ".ptx", ptx).ok());
  const std::string command = "'" + ptxas + "' -arch=" + target + " " + options + " '" + base + ".ptx' -o '" + base +
                              ".cubin' >'" + base + ".log' 2>&1";
  std::vector<std::byte> bytes;
  if (std::system(command.c_str()) == 0) {
    const auto contents = read_file(base + ".cubin");
    if (contents.ok()) {
      bytes.resize(contents->size());
      std::memcpy(bytes.data(), contents->data(), contents->size());
    }
  } else {
    const auto log = read_file(base + ".log");
    ADD_FAILURE() << command << "\n" << (log.ok() ? *log : "");
  }
  for (const char* extension : {".ptx", ".cubin", ".log"}) std::filesystem::remove(base + extension);
  return bytes;
}

// The parameter area, appended to in order with natural alignment.
class Parameters {
 public:
  template <class T>
  Parameters& add(T v) {
    while (bytes_.size() % sizeof(T)) bytes_.push_back({});
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &v, sizeof(T));
    return *this;
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// An array on the machine.
template <class T>
uint64_t upload(Machine& machine, const std::vector<T>& values) {
  auto address = machine.allocate(values.size() * sizeof(T));
  EXPECT_TRUE(address.ok()) << address.error().message;
  if (!address.ok()) return 0;
  EXPECT_TRUE(machine.write(*address, values.data(), values.size() * sizeof(T)).ok());
  return *address;
}
template <class T>
std::vector<T> download(const Machine& machine, uint64_t address, size_t n) {
  std::vector<T> values(n);
  EXPECT_TRUE(machine.read(address, values.data(), n * sizeof(T)).ok());
  return values;
}

}  // namespace rndn::sim
