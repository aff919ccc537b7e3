// The instruction tables against the vendor's tools, release 11.8: every word that ptxas makes of the kernels in corpus/ and tests/corpus decodes,
// prints what nvdisasm prints, and encodes to the same bits; rndn-dis prints nvdisasm's instruction and label lines.
//
// coverage.tsv records, per target and row, the words that were compared, how many forms (the row with one set of values of its modifiers) they have,
// the row's mutants and those that no word would notice. A mutant is a row
// with one meaning changed: two registers swapped, a sign or part dropped, one value of a modifier taken for another. A word notices when it has that
// meaning in use, since its text would change. Rows and words may not become fewer. RNDN_RECORD=1 writes the file anew for the targets that run.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"
#include "tests/isa/reference_tools.h"
#include "tests/support/corpus.h"
#include "tests/support/operands.h"
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

// --- Coverage --------------------------------------------------------------------------------------------------------------------
// What an instruction has in use, as names of the mutants that it notices.
void meanings(const Instruction& in, std::set<std::string>& out) {
  if (in.guard_negated) out.insert("guard!");
  const uint32_t slots = slot_count(in.form);
  for (uint32_t k = 0; k < slots; ++k) {
    const Operand& o = in.operands[k];
    if (o.negated) out.insert(fmt::format("{}-", k));
    if (o.absolute) out.insert(fmt::format("{}|", k));
    if (o.part) out.insert(fmt::format("{}.{}", k, o.part));
    if (o.value < 0 && o.kind != OperandKind::label) out.insert(fmt::format("{}<0", k));
    for (uint32_t l = 0; l < k; ++l)
      if (o.kind == OperandKind::gpr && in.operands[l].kind == OperandKind::gpr && in.operands[l].reg != o.reg)
        out.insert(fmt::format("{}~{}", l, k));
  }
  for (size_t i = 0; i < in.modifiers.size(); ++i)
    if (in.modifiers[i]) out.insert(fmt::format("m{}={}", i, in.modifiers[i]));
}

// A name per row: as printed, the kinds of its operands, a number where rows share both.
const std::vector<std::string>& row_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    std::map<std::string, int> used;
    for (uint32_t f = 0; f < form_count(); ++f) {
      const Instruction in = random_instruction(static_cast<FormId>(f), 1);
      std::string name(form_name(in.form));
      for (uint32_t k = 0; k < slot_count(in.form); ++k)
        name += fmt::format("{}{}", k ? "," : " ", "-rpuqbicslax"[static_cast<size_t>(in.operands[k].kind)]);
      const bool pascal = form_family(in.form) == Family::pascal;
      const int n = ++used[(pascal ? "P " : "V ") + name];
      all.push_back(n == 1 ? name : fmt::format("{} #{}", name, n));
    }
    return all;
  }();
  return names;
}

struct Row {
  size_t words = 0, forms = 0, mutants = 0, survivors = 0;
};
const char* const coverage_path = RNDN_SOURCE_DIR "/tests/isa/coverage.tsv";
using Coverage = std::map<std::string, std::map<std::string, Row>>;  // target -> row
Coverage recorded_coverage() {
  Coverage c;
  std::ifstream in(coverage_path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string target, row, words, forms, mutants, survivors;
    if (line.empty() || line[0] == '#' || !std::getline(fields, target, '\t') || !std::getline(fields, row, '\t') ||
        !std::getline(fields, words, '\t') || !std::getline(fields, forms, '\t') ||
        !std::getline(fields, mutants, '\t') || !std::getline(fields, survivors))
      continue;
    c[target][row] = {std::stoull(words), std::stoull(forms), std::stoull(mutants), std::stoull(survivors)};
  }
  return c;
}
void record_coverage(const std::string& target, const std::map<std::string, Row>& rows) {
  Coverage c = recorded_coverage();
  c[target] = rows;
  std::ofstream out(coverage_path);
  out << "# target, row, words compared, forms among them, mutants of the row, mutants that no word notices\n";
  for (const auto& [t, table] : c)
    for (const auto& [row, r] : table)
      out << t << '\t' << row << '\t' << r.words << '\t' << r.forms << '\t' << r.mutants << '\t' << r.survivors << '\n';
}

TEST(Coverage, ThreeHundredFormsPerFamily) {
  std::map<Family, std::map<std::string, size_t>> forms;  // row -> most forms on one target
  for (const auto& [name, table] : recorded_coverage()) {
    const Target* t = find_target(name);
    ASSERT_TRUE(t) << name;
    for (const auto& [row, r] : table) {
      size_t& most = forms[t->family][row];
      most = std::max(most, r.forms);
    }
  }
  for (const Family family : {Family::pascal, Family::volta}) {
    size_t n = 0;
    for (const auto& [row, most] : forms[family]) n += most;
    std::printf("%s: %zu rows, %zu forms\n", family == Family::pascal ? "Pascal" : "Volta", forms[family].size(), n);
    EXPECT_GE(n, 300u);
    EXPECT_GE(forms[family].size(), family == Family::pascal ? 170u : 200u);
  }
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
  size_t words = 0, files = 0, hidden = 0, without_row = 0;
  std::map<uint32_t, size_t> forms;                                           // words of each
  std::map<uint32_t, std::set<std::string>> in_use;                           // meanings
  std::map<uint32_t, std::set<std::array<uint8_t, max_modifiers>>> forms_of;  // of each row
  std::set<std::string> failed;                                               // one message per kind of difference
  std::vector<fs::path> inputs;
  for (const auto& entry : fs::directory_iterator(fs::path(RNDN_SOURCE_DIR) / "tests/isa/corpus"))
    if (entry.path().extension() == ".ptx" &&
        (entry.path().stem().string().find("_80") == std::string::npos || t.sm >= 80))
      inputs.push_back(entry.path());
  // The kernels of tests/corpus, as one module.
  inputs.push_back(scratch.path / "corpus.ptx");
  std::ofstream(inputs.back()) << rndn::testing::corpus_module(rndn::testing::corpus(), t.sm);
  inputs.push_back(scratch.path / "operands.ptx");
  std::ofstream(inputs.back()) << rndn::testing::operand_module(rndn::testing::operand_kernels());
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
            // Not in the tables: an address of a 32-bit register and a uniform pair.
            if (t.sm == 75 && reference_text.find(".U32+UR") != std::string::npos) {
              ++without_row;
              continue;
            }
            if (failed.insert("decode " + reference_text.substr(0, reference_text.find(' '))).second)
              ADD_FAILURE() << where << " does not decode: " << reference_text;
            continue;
          }
          ++forms[index(in.form)];
          forms_of[index(in.form)].insert(in.modifiers);
          meanings(in, in_use[index(in.form)]);
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
  std::map<std::string, Row> rows;
  size_t mutants = 0, survivors = 0, distinct = 0;
  for (const auto& [form, n] : forms) {
    std::set<std::string> possible;
    for (uint64_t seed = 0; seed < 200; ++seed) meanings(random_instruction(static_cast<FormId>(form), seed), possible);
    Row& r = rows[row_names()[form]];
    r.words = n;
    r.forms = forms_of[form].size();
    distinct += r.forms;
    for (const std::string& m : possible) {
      ++r.mutants;
      r.survivors += !in_use[form].count(m);
    }
    mutants += r.mutants;
    survivors += r.survivors;
  }
  size_t available = 0;
  for (uint32_t f = 0; f < form_count(); ++f) available += (form_targets(static_cast<FormId>(f)) & t.bit) != 0;
  std::printf(
      "%s: %zu cubins, %zu words, %zu rows of %zu, %zu distinct forms, %zu hidden by nvdisasm, %zu without a row; %zu "
      "of %zu mutants "
      "noticed\n",
      std::string(t.name).c_str(), files, words, forms.size(), available, distinct, hidden, without_row,
      mutants - survivors, mutants);
  if (HasFailure()) return;
  rndn::testing::record_status("count", "SASS words of ptxas decoded, printed and encoded back", std::string(t.name),
                               std::to_string(words));
  rndn::testing::record_status("count", "rows of the tables that they use", std::string(t.name),
                               fmt::format("{} of {}", forms.size(), available));
  rndn::testing::record_status("count", "distinct SASS forms among them", std::string(t.name),
                               std::to_string(distinct));
  rndn::testing::record_status("count", "mutants of their rows that the words notice", std::string(t.name),
                               fmt::format("{} of {}", mutants - survivors, mutants));
  if (std::getenv("RNDN_RECORD")) return record_coverage(GetParam(), rows);
  size_t words_before = 0;
  for (const auto& [row, before] : recorded_coverage()[GetParam()]) {
    words_before += before.words;
    EXPECT_TRUE(rows.count(row)) << "no word of the corpus uses this row any more: " << row;
  }
  EXPECT_GE(words, words_before);
  EXPECT_GT(words_before, 30000u) << "coverage.tsv knows nothing of this target";
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

INSTANTIATE_TEST_SUITE_P(Targets, Reference,
                         ::testing::Values("sm_60", "sm_61", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rndn::isa
