// The instruction tables against the vendor's tools, release 11.8: every word that ptxas makes of the kernels in corpus/ decodes, prints what
// nvdisasm prints, and encodes to the same bits; rndn-dis prints nvdisasm's instruction and label lines.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"
#include "tests/isa/reference_tools.h"
#include "tests/support/corpus.h"
#include "tests/support/status.h"

namespace rndn::isa {
namespace {

namespace fs = std::filesystem;

// Labels are compared by rndn-dis's test; what a relocation will put in place is not in the word. Runs of blanks count as one, none before a comma.
std::string normal(const std::string& s) {
  std::string out;
  for (size_t k = 0; k < s.size(); ++k) {
    if (s.compare(k, 2, "`(") == 0) {
      out += "`(L)";
      k = std::min(s.find(')', k), s.size() - 1);
    } else if (s.compare(k, 2, "(*") == 0 && s.find("*)", k) != std::string::npos) {
      while (!out.empty() && out.back() == ' ') out.pop_back();
      k = s.find("*)", k) + 1;
    } else if (s[k] == ' ' || s[k] == '\t') {
      if (out.empty() || out.back() != ' ') out += ' ';
    } else {
      if (s[k] == ',' && !out.empty() && out.back() == ' ') out.pop_back();
      out += s[k];
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// nvdisasm's instructions: section -> address -> text.
std::map<std::string, std::map<uint64_t, std::string>> listing(const std::string& text) {
  std::map<std::string, std::map<uint64_t, std::string>> out;
  std::string section;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(".text.", 0) == 0 && line.back() == ':') section = line.substr(6, line.size() - 7);
    size_t open = line.find("/*"), close = line.find("*/");
    if (open == std::string::npos || close == std::string::npos || line.find_first_not_of(" \t") != open) continue;
    uint64_t address = std::stoull(line.substr(open + 2, close - open - 2), nullptr, 16);
    std::string body = line.substr(close + 2);
    // The second instruction of a pair ends with a brace after blanks instead of a semicolon.
    if (body.size() > 2 && body.ends_with(" }")) body.pop_back();
    while (!body.empty() && (body.back() == ' ' || body.back() == ';')) body.pop_back();
    size_t begin = body.find_first_not_of(" {");
    out[section][address] = normal(begin == std::string::npos ? "" : body.substr(begin));
  }
  return out;
}

class Reference : public ::testing::TestWithParam<const char*> {};

TEST_P(Reference, EveryWordOfPtxasReadsBack) {
  std::string why;
  std::string ptxas = reference::tool("ptxas", why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  std::string nvdisasm = reference::tool("nvdisasm", why);
  if (nvdisasm.empty()) GTEST_SKIP() << "skipped: " << why;
  const Target& t = *find_target(GetParam());
  reference::Scratch scratch;
  size_t words = 0, files = 0, hidden = 0;
  std::set<uint32_t> forms;
  std::set<std::string> failed;  // one message per kind of difference
  std::vector<fs::path> inputs;
  for (const auto& entry : fs::directory_iterator(fs::path(RNDN_SOURCE_DIR) / "tests/isa/corpus"))
    if (entry.path().extension() == ".ptx" &&
        (entry.path().stem().string().find("_80") == std::string::npos || t.sm >= 80))
      inputs.push_back(entry.path());
  // The kernels of tests/corpus, as one module.
  inputs.push_back(scratch.path / "corpus.ptx");
  std::ofstream(inputs.back()) << rndn::testing::corpus_module(rndn::testing::corpus(), t.sm);
  for (const fs::path& path : inputs) {
    for (const char* level : {"-O0", "-O1", "-O3"}) {
      fs::path cubin = scratch.path / "k.cubin";
      auto compiled = reference::run(ptxas + " " + level + " -arch=" + std::string(t.name) + " '" + path.string() +
                                     "' -o '" + cubin.string() + "'");
      ASSERT_EQ(compiled.exit_code, 0) << path << ": " << compiled.text;
      auto expected = listing(reference::run(nvdisasm + " -c '" + cubin.string() + "'").text);
      std::string bytes = reference::read_all(cubin);
      auto image = cubin::read({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
      ASSERT_TRUE(image) << image.error().message;
      ++files;
      for (const cubin::Kernel& k : image->kernels) {
        std::set<uint64_t> relocated;
        for (const cubin::Relocation& r : k.relocations) relocated.insert(r.offset);
        ASSERT_FALSE(expected[k.name].empty()) << k.name;
        for (const Located& l : unpack(t, k.code)) {
          ++words;
          const auto at = expected[k.name].find(l.address);
          std::string reference_text = at == expected[k.name].end() ? "" : at->second;
          std::string where = fmt::format("{} {} {} {:#x} {:016x}_{:016x}", path.filename().string(), level, k.name,
                                          l.address, l.word.hi, l.word.lo);
          Instruction in;
          if (!decode(t, l.word, l.address, in)) {
            if (failed.insert("decode " + reference_text.substr(0, reference_text.find(' '))).second)
              ADD_FAILURE() << where << " does not decode: " << reference_text;
            continue;
          }
          forms.insert(index(in.form));
          Word back;
          if ((!encode(t, in, l.address, back) || back != l.word) &&
              failed.insert("encode " + std::string(form_name(in.form))).second)
            ADD_FAILURE() << where << " does not encode back: " << text(t, in);
          std::string mine = normal(text(t, in, "`(L)", l.address));
          if (in.mnemonic == Mnemonic::VIMNMX && reference_text.empty()) {  // nvdisasm 11.8 hides it
            ++hidden;
            continue;
          }
          if (relocated.count(l.address)) {
            mine = mine.substr(0, mine.rfind(", "));
            reference_text = reference_text.substr(0, reference_text.rfind(", "));
          }
          if (mine != reference_text && failed.insert("text " + std::string(form_name(in.form))).second)
            ADD_FAILURE() << where << "\n  prints   " << mine << "\n  expected " << reference_text;
        }
      }
    }
  }
  std::printf("%s: %zu cubins, %zu words, %zu distinct forms, %zu hidden by nvdisasm\n", std::string(t.name).c_str(),
              files, words, forms.size(), hidden);
  if (!HasFailure()) {
    rndn::testing::record_status("count", "SASS words of ptxas decoded, printed and encoded back", std::string(t.name),
                                 std::to_string(words));
    rndn::testing::record_status("count", "distinct SASS forms among them", std::string(t.name),
                                 std::to_string(forms.size()));
  }
  EXPECT_GT(words, 4000u);
  EXPECT_GT(forms.size(), 100u);
}

// Instruction and label lines, those of branch annotations compared without their padding.
TEST_P(Reference, DisassemblerPrintsTheSameLines) {
  std::string why;
  std::string ptxas = reference::tool("ptxas", why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  std::string nvdisasm = reference::tool("nvdisasm", why);
  if (nvdisasm.empty()) GTEST_SKIP() << "skipped: " << why;
  fs::path program = fs::path(RNDN_BIN_DIR) / "rndn-dis";
  if (!fs::exists(program)) GTEST_SKIP() << "skipped: rndn-dis is not built";
  reference::Scratch scratch;
  auto lines = [](const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    static const std::regex padding(" *\\(\\*");
    for (std::string line; std::getline(in, line);) {
      bool instruction = line.find("/*") != std::string::npos && line.find("/*") == line.find_first_not_of(' ');
      bool label = !line.empty() && line[0] != '/' && line[0] != ' ' && line[0] != '\t' && line.back() == ':';
      if (instruction || label) out.push_back(std::regex_replace(line, padding, " (*"));
    }
    return out;
  };
  for (const char* file : {"reduce.ptx", "integer.ptx"}) {
    fs::path cubin = scratch.path / "k.cubin";
    auto compiled = reference::run(ptxas + " -O3 -arch=" + GetParam() + " '" RNDN_SOURCE_DIR "/tests/isa/corpus/" +
                                   file + "' -o '" + cubin.string() + "'");
    ASSERT_EQ(compiled.exit_code, 0) << compiled.text;
    auto mine = reference::run("'" + program.string() + "' '" + cubin.string() + "'");
    ASSERT_EQ(mine.exit_code, 0) << mine.text;
    std::vector<std::string> a = lines(mine.text),
                             b = lines(reference::run(nvdisasm + " -c '" + cubin.string() + "'").text);
    // nvdisasm 11.8 leaves VIMNMX out.
    std::erase_if(a, [](const std::string& l) { return l.find("VIMNMX") != std::string::npos; });
    ASSERT_EQ(a.size(), b.size()) << file;
    size_t differences = 0;
    for (size_t i = 0; i < a.size() && differences < 5; ++i)
      if (a[i] != b[i]) {
        ++differences;
        ADD_FAILURE() << file << "\n  prints   " << a[i] << "\n  expected " << b[i];
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Reference, ::testing::Values("sm_60", "sm_61", "sm_80", "sm_86", "sm_89", "sm_90"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rndn::isa
