// Registers and instructions of the kernels in tests/assembler/ptx and tests/corpus: none may become worse than recorded
// in quality.tsv, together they stay within the target against ptxas, and none has fewer warps resident than ptxas's
// code. Kernels that became better, and new ones, are recorded by running the test with RNDN_RECORD=1.
#include <cmath>
#include <map>
#include <sstream>

#include "tests/assembler/support.h"

namespace rndn::assembler::testing {
namespace {

const std::vector<std::string> measured = {"sm_61", "sm_86", "sm_90"};
const std::string record_path = RNDN_SOURCE_DIR "/tests/assembler/quality.tsv";

struct Counts {
  uint32_t registers = 0, instructions = 0;
};
using Table = std::map<std::string, Counts>;  // by "target file kernel"

std::vector<std::string> files() {
  std::vector<std::string> all = ptx_files();
  for (const auto& e : std::filesystem::directory_iterator(RNDN_SOURCE_DIR "/tests/corpus"))
    if (e.path().extension() == ".ptx") all.push_back(e.path().string());
  std::sort(all.begin(), all.end());
  return all;
}

// Of one file; empty when the target does not have what it needs.
Table counts_of(const std::string& path, const std::string& target) {
  Table table;
  Options o;
  o.target = isa::find_target(target);
  Timings timings;
  Result<Assembled> result = assemble(parse_file(path), o, timings);
  if (!result.ok()) return table;
  for (const KernelReport& k : result->kernels)
    table[target + " " + std::filesystem::path(path).stem().string() + " " + k.name] = {k.registers, k.instructions};
  return table;
}

Table recorded() {
  Table table;
  Result<std::string> text = read_file(record_path);
  if (!text.ok()) return table;
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string target, file, kernel;
    Counts c;
    if (line.empty() || line[0] == '#' || !(fields >> target >> file >> kernel >> c.registers >> c.instructions))
      continue;
    table[target + " " + file + " " + kernel] = c;
  }
  return table;
}

// On one multiprocessor, as far as registers go: each of four schedulers has a quarter of the registers, and warps take them by the 256.
uint32_t resident_warps(const std::string& target, uint32_t registers) {
  const isa::Target& t = *isa::find_target(target);
  const uint32_t per_warp = 32 * std::max(8u, (registers + 7) / 8 * 8);
  return std::min(t.warps_per_sm, 4 * (t.registers_per_sm / 4 / per_warp));
}

TEST(Quality, NoKernelTakesMoreThanRecorded) {
  Table now;
  for (const std::string& target : measured)
    for (const std::string& path : files()) now.merge(counts_of(path, target));
  ASSERT_GT(now.size(), 100u);
  if (std::getenv("RNDN_RECORD")) {
    std::string text = "# target file kernel registers instructions\n";
    for (const auto& [key, c] : now) text += fmt::format("{} {} {}\n", key, c.registers, c.instructions);
    ASSERT_TRUE(write_file(record_path, text).ok());
    GTEST_SKIP() << "recorded " << now.size() << " kernels";
  }
  const Table before = recorded();
  size_t known = 0, better = 0;
  for (const auto& [key, c] : now) {
    auto it = before.find(key);
    if (it == before.end()) continue;  // new kernels are recorded when their author runs the test so
    ++known;
    EXPECT_LE(c.registers, it->second.registers) << key;
    EXPECT_LE(c.instructions, it->second.instructions) << key;
    better += c.registers < it->second.registers || c.instructions < it->second.instructions;
  }
  EXPECT_GT(known, 100u) << "quality.tsv has lost its kernels";
  if (better) std::printf("%zu kernels are better than recorded: run with RNDN_RECORD=1\n", better);
}

TEST(Quality, RegistersAgainstPtxas) {
  std::string why;
  const std::string ptxas = reference_tool("ptxas", why);
  if (ptxas.empty()) GTEST_SKIP() << why;
  for (const std::string& target : measured) {
    double logarithms = 0;
    size_t kernels = 0;
    for (const std::string& path : files()) {
      const Table ours = counts_of(path, target);
      if (ours.empty()) continue;
      const std::string out = temporary(".cubin");
      int status = 0;
      const std::string said =
          run_command("'" + ptxas + "' -v -O3 --fmad=false -arch=" + target + " -o " + out + " " + path, status);
      unlink(out.c_str());
      if (status != 0) continue;  // PTX beyond release 11.8
      std::istringstream in(said);
      std::string kernel;
      for (std::string line; std::getline(in, line);) {
        if (size_t at = line.find("Compiling entry function '"); at != std::string::npos)
          kernel = line.substr(at + 26, line.find('\'', at + 26) - at - 26);
        if (size_t at = line.find("Used "); at != std::string::npos) {
          auto it = ours.find(target + " " + std::filesystem::path(path).stem().string() + " " + kernel);
          if (it == ours.end()) continue;
          const uint32_t theirs = static_cast<uint32_t>(std::stoul(line.substr(at + 5)));
          EXPECT_GE(resident_warps(target, it->second.registers), resident_warps(target, theirs))
              << it->first << ": " << it->second.registers << " registers, ptxas " << theirs;
          logarithms += std::log(static_cast<double>(it->second.registers) / theirs);
          ++kernels;
        }
      }
    }
    ASSERT_GT(kernels, 30u) << target;
    const double ratio = std::exp(logarithms / static_cast<double>(kernels));
    std::printf("%s: registers against ptxas -O3, geometric mean over %zu kernels: %.3f\n", target.c_str(), kernels,
                ratio);
    EXPECT_LE(ratio, 1.15) << target;
  }
}

}  // namespace
}  // namespace rndn::assembler::testing
