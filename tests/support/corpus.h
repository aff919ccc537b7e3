// The corpus: kernels of tests/corpus, small and in the style of real programs, for the tests of instruction tables, simulator and assembler.
//
// Every kernel has the parameters (.param .u64 in, .param .u64 out) and runs with the same input words. A file's `.target` is the lowest target that
// it needs. A first line `// compare: f32 1e-5` (or `f64`) says that results are approximate and how: words of that type, relative error.
// Names of kernels and of module variables are unique over all files, so that the files of a target can be one module.
#pragma once
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace rndn::testing {

struct CorpusFile {
  std::string name;       // "reduce_sum"
  uint32_t target = 60;   // lowest
  std::string text;       // whole file
  std::string body;       // without .version, .target, .address_size
  double tolerance = -1;  // relative error; negative: exact
  uint32_t word = 64;     // bits of a word that is compared
};

inline std::vector<CorpusFile> corpus(const std::string& folder = RNDN_SOURCE_DIR "/tests/corpus") {
  std::vector<CorpusFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".ptx") continue;
    CorpusFile f;
    f.name = entry.path().stem().string();
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      f.text += line + "\n";
      if (line.rfind("// compare: f", 0) == 0) {
        f.word = static_cast<uint32_t>(std::stoul(line.substr(13, 2)));
        f.tolerance = std::stod(line.substr(15));
      }
      if (line.rfind(".target sm_", 0) == 0) f.target = static_cast<uint32_t>(std::stoul(line.substr(11)));
      if (line.rfind(".version", 0) != 0 && line.rfind(".target", 0) != 0 && line.rfind(".address_size", 0) != 0)
        f.body += line + "\n";
    }
    files.push_back(std::move(f));
  }
  std::sort(files.begin(), files.end(), [](const CorpusFile& a, const CorpusFile& b) { return a.name < b.name; });
  return files;
}

// All files that the target can run, as one module.
inline std::string corpus_module(const std::vector<CorpusFile>& files, uint32_t sm) {
  uint32_t target = 60;
  std::string text;
  for (const CorpusFile& f : files)
    if (f.target <= sm) target = std::max(target, f.target), text += f.body + "\n";
  return ".version 7.8\n.target sm_" + std::to_string(target) + "\n.address_size 64\n" + text;
}

// Two outputs, equal as the file says: "" or the first difference.
inline bool same_word(const CorpusFile& f, uint64_t a, uint64_t b) {
  if (a == b) return true;
  if (f.tolerance < 0) return false;
  auto close = [&](double x, double y) {
    if (x != x || y != y) return x != x && y != y;
    const double scale = std::max(x < 0 ? -x : x, y < 0 ? -y : y), difference = x < y ? y - x : x - y;
    return x == y || difference <= f.tolerance * scale || scale < 1e-37;
  };
  if (f.word == 64) {
    double x, y;
    std::memcpy(&x, &a, 8), std::memcpy(&y, &b, 8);
    return close(x, y);
  }
  for (int half = 0; half < 2; ++half) {
    const uint32_t p = static_cast<uint32_t>(a >> 32 * half), q = static_cast<uint32_t>(b >> 32 * half);
    float x, y;
    std::memcpy(&x, &p, 4), std::memcpy(&y, &q, 4);
    if (p != q && !close(static_cast<double>(x), static_cast<double>(y))) return false;
  }
  return true;
}

}  // namespace rndn::testing
