// The instruction tables against the vendor's tools, release 11.8: every word that ptxas makes of the kernels in corpus/ and tests/corpus decodes,
// prints what nvdisasm prints, and encodes to the same bits; rndn-dis prints nvdisasm's instruction and label lines.
//
// Then every row is changed one field at a time (a register, a sign, a part, a value of a modifier), and nvdisasm prints the same for each; and what its
// life ranges say is read and written, in which file and how wide, is what the rows say.
//
// coverage.tsv records, per target and row, the words of ptxas that were compared, how many forms they have (a form is a row, so opcode and kinds of
// operand, with one set of values of its modifiers), the row's mutants, and the names of those that nothing would notice. A mutant is a row with one
// meaning changed: two registers swapped (0~2), a sign (1-), an absolute value (1|) or a part (1.2) dropped, an offset taken as unsigned (1<0), one
// value of a modifier taken for another (m3=2: the fourth modifier), the role of an operand (1@: read or written, file, width). It is noticed when
// that meaning is in use in what was compared, since the text would change. Rows and words may not become fewer, survivors not more.
// RNDN_RECORD=1 writes coverage.tsv and unknown_words.txt anew for the targets that run.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"
#include "tests/isa/reference_tools.h"
#include "tests/support/corpus.h"
#include "tests/support/operands.h"
#include "tests/support/rows.h"
#include "tests/support/status.h"
#include "tests/support/targets.h"

namespace rndn::isa {
namespace {

namespace fs = std::filesystem;
using rndn::testing::row_name;

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
      if (s[k] == '[' && out.ends_with("gdesc ")) out.pop_back();  // 13.5 has no blank there
      out += s[k];
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// nvdisasm's instructions, with the registers that its life ranges say are read and written: "R4v" "R4^" "P0v" "UR6^" "UP0v". It knows nothing
// of unreachable code, nor of registers that it takes for dead (around calls); instructions of a pair share their marks.
struct Line {
  std::string text;
  bool paired = false;
  std::set<std::string> known, registers;
};
using Listing = std::map<std::string, std::map<uint64_t, Line>>;  // section -> address

Listing listing(const std::string& text) {
  Listing out;
  std::string section;
  std::vector<std::string> files;                       // of the cells of the table
  std::vector<std::pair<size_t, std::string>> columns;  // of a register's marks
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t table = line.find("// |");
    if (table != line.npos && line.find_first_not_of(' ') == table) {
      // Two lines of heads: the names of the register files, the numbers of the registers.
      const bool numbers = line.find("# ", table) != line.npos;
      if (!numbers && line.find("GPR", table) == line.npos) continue;
      (numbers ? columns.clear() : files.clear());
      size_t cell = 0;
      for (size_t at = table + 4; at < line.size(); ++cell) {
        const size_t end = std::min(line.find('|', at), line.size());
        std::string name = line.substr(at, end - at);
        if (!numbers) {
          std::erase(name, ' ');
          files.push_back(name == "GPR" ? "R" : name == "PRED" ? "P" : name == "UGPR" ? "UR" : "UP");
        } else {
          for (size_t k = at; k < end && cell < files.size(); ++k)
            if (std::isdigit(static_cast<unsigned char>(line[k]))) {
              size_t last = k;
              while (std::isdigit(static_cast<unsigned char>(line[last + 1]))) ++last;
              columns.emplace_back(last, files[cell] + line.substr(k, last - k + 1));
              k = last;
            }
        }
        at = end + 1;
      }
      continue;
    }
    if (line.rfind(".text.", 0) == 0) section = line.substr(6, line.find(':') - 6);
    const size_t open = line.find("/*"), close = line.find("*/");
    if (open == line.npos || close == line.npos || line.find_first_not_of(" \t") != open) continue;
    Line& made = out[section][std::stoull(line.substr(open + 2, close - open - 2), nullptr, 16)];
    if (table != line.npos) {
      for (const auto& [column, name] : columns) {
        const char mark = column < line.size() ? line[column] : ' ';
        if (mark != ' ') made.known.insert(name);
        if (mark == 'v' || mark == 'x') made.registers.insert(name + "v");
        if (mark == '^' || mark == 'x') made.registers.insert(name + "^");
      }
    }
    std::string body = line.substr(close + 2, table == line.npos ? line.npos : table - close - 2);
    while (!body.empty() && body.back() == ' ') body.pop_back();
    made.paired = body.ends_with(" }") || body.find('{') == body.find_first_not_of(' ');
    // The second instruction of a pair ends with a brace after blanks instead of a semicolon.
    if (body.size() > 2 && body.ends_with(" }")) body.pop_back();
    while (!body.empty() && (body.back() == ' ' || body.back() == ';')) body.pop_back();
    size_t begin = body.find_first_not_of(" {");
    made.text = normal(begin == std::string::npos ? "" : body.substr(begin));
  }
  return out;
}

// Calls are given what the callee uses; for masks of predicates it is vague.
bool is_special(Mnemonic m) {
  return m == Mnemonic::CALL_REL || m == Mnemonic::CALL_REL_R || m == Mnemonic::CAL || m == Mnemonic::R2P ||
         m == Mnemonic::P2R;
}

// The same from the row's slots.
std::set<std::string> registers_of(const Instruction& in) {
  std::set<std::string> out;
  const auto add = [&](const char* file, uint32_t first, uint32_t count, Access access) {
    for (uint32_t r = first; r < first + count; ++r) {
      if (access == Access::read || access == Access::read_write) out.insert(fmt::format("{}{}v", file, r));
      if (access == Access::write || access == Access::read_write) out.insert(fmt::format("{}{}^", file, r));
    }
  };
  if (in.guard != PT) add(guard_is_uniform(in.form) ? "UP" : "P", in.guard, 1, Access::read);
  for (uint32_t k = 0; k < in.operand_count; ++k) {
    const Operand& o = in.operands[k];
    const Access a = access(in, k);
    const uint32_t n = register_count(in, k);
    switch (o.kind) {
      case OperandKind::gpr:
        if (o.reg != RZ) add("R", o.reg, n, a);
        break;
      case OperandKind::predicate:
        if (in.mnemonic == Mnemonic::BAR && modifier(in, ModifierKind::BarMode) != 2) break;  // not printed
        if (o.reg != PT) add("P", o.reg, 1, a);
        break;
      case OperandKind::uniform:
        if (o.reg != URZ) add("UR", o.reg, n, a);
        break;
      case OperandKind::uniform_predicate:
        if (o.reg != PT) add("UP", o.reg, 1, a);
        break;
      case OperandKind::constant:
        if (o.reg != RZ) add("R", o.reg, 1, Access::read);
        break;
      case OperandKind::address:
        if (o.reg != RZ) add("R", o.reg, o.wide ? 2 : 1, Access::read);
        if (o.uniform != URZ)
          add("UR", o.uniform,
              o.descriptor || o.wide || in.mnemonic == Mnemonic::LDG || in.mnemonic == Mnemonic::STG ? 2 : 1,
              Access::read);
        break;
      default: break;
    }
  }
  for (uint32_t p = 0; p < 7; ++p) {
    if (implicit_predicate_reads(in) >> p & 1) add("P", p, 1, Access::read);
    if (implicit_predicate_writes(in) >> p & 1) add("P", p, 1, Access::write);
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
    const bool upper_half = o.kind == OperandKind::constant && o.value > 0x7fff;  // printed as negative
    if ((o.value < 0 && o.kind != OperandKind::label) || upper_half) out.insert(fmt::format("{}<0", k));
    for (uint32_t l = 0; l < k; ++l)
      if (o.kind == OperandKind::gpr && in.operands[l].kind == OperandKind::gpr && in.operands[l].reg != o.reg)
        out.insert(fmt::format("{}~{}", l, k));
  }
  for (size_t i = 0; i < in.modifiers.size(); ++i)
    if (in.modifiers[i]) out.insert(fmt::format("m{}={}", i, in.modifiers[i]));
}

// Operands whose role (read or written, register file, width) the life ranges confirm.
void roles(const Instruction& in, const std::set<std::string>& known, std::set<std::string>& out) {
  for (uint32_t k = 0; k < in.operand_count; ++k) {
    Instruction only = in;
    only.guard = PT;
    for (uint32_t l = 0; l < in.operand_count; ++l)
      if (l != k) only.operands[l] = {};
    for (const std::string& r : registers_of(only))
      if (known.count(r.substr(0, r.size() - 1))) out.insert(fmt::format("{}@", k));
  }
}

struct Row {
  size_t words = 0, forms = 0, mutants = 0;
  std::string survivors;  // names, by blanks
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
        !std::getline(fields, mutants, '\t'))
      continue;
    std::getline(fields, survivors);
    c[target][row] = {std::stoull(words), std::stoull(forms), std::stoull(mutants), survivors};
  }
  return c;
}
void record_coverage(const std::string& target, const std::map<std::string, Row>& rows) {
  Coverage c = recorded_coverage();
  c[target] = rows;
  std::ofstream out(coverage_path);
  out << "# target, row, words compared, forms among them, mutants of the row, mutants that nothing notices\n";
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
    size_t n = 0, rows = 0;
    for (const auto& [row, most] : forms[family]) n += most, rows += most > 0;
    const char* name = family == Family::pascal ? "Pascal" : "Volta";
    std::printf("%s: %zu rows, %zu forms\n", name, rows, n);
    EXPECT_GE(n, 300u) << name;
    EXPECT_GE(rows, family == Family::pascal ? 180u : 300u) << name;
  }
}

// --- Field by field ----------------------------------------------------------------------------------------------------------------
// A sample of the row, and the same with one thing changed: a register, a sign, a part, one value of a modifier.
std::vector<Instruction> variations(const Target& t, FormId form) {
  const Instruction base = sample_instruction(form);
  std::vector<Instruction> all = {base};
  auto add = [&](const Instruction& in) {
    Word w;
    Instruction back;
    if (encode(t, in, 0, w) && decode(t, w, 0, back) && back.form == in.form && back.modifiers == in.modifiers &&
        back.operands == in.operands && back.guard == in.guard)
      all.push_back(in);
  };
  auto with = [&](auto&& change) {
    Instruction in = base;
    change(in);
    add(in);
  };
  with([](Instruction& in) { in.guard = 3, in.guard_negated = true; });
  for (uint32_t k = 0; k < base.operand_count; ++k) {
    with([&](Instruction& in) { in.operands[k].negated = true; });
    with([&](Instruction& in) { in.operands[k].absolute = true; });
    for (uint8_t part = 1; part < 4; ++part) with([&](Instruction& in) { in.operands[k].part = part & 15; });
    for (int64_t value : {int64_t{1}, int64_t{0x24}, int64_t{-8}, int64_t{0x3fc00000}, int64_t{0x3e00}})
      // The address of CALL.ABS is a relocation's.
      if (base.operands[k].kind != OperandKind::label && base.mnemonic != Mnemonic::CALL_ABS)
        with([&](Instruction& in) { in.operands[k].value = value; });
    if (base.operands[k].kind == OperandKind::constant) {
      with([&](Instruction& in) { in.operands[k].value = 0xfff8; });
      with([&](Instruction& in) {
        in.operands[k].reg = RZ, in.operands[k].uniform = URZ;
        in.operands[k].value = 0xfff8;
      });
    }
    with([&](Instruction& in) { in.operands[k].reg = in.operands[k].kind == OperandKind::gpr ? RZ : PT; });
  }
  for (size_t i = 0; i < max_modifiers; ++i)
    for (uint32_t value = 0; value < 32; ++value)
      if (value != base.modifiers[i]) with([&](Instruction& in) { in.modifiers[i] = static_cast<uint8_t>(value); });
  return all;
}

// Words of variations that nvdisasm refuses, by target: nothing can be compared there. RNDN_RECORD=1 finds them, one run of nvdisasm each.
const char* const unknown_path = RNDN_SOURCE_DIR "/tests/isa/unknown_words.txt";
using Unknown = std::set<std::string>;
std::string word_name(const Word& w) { return fmt::format("{:016x}_{:016x}", w.hi, w.lo); }
std::map<std::string, Unknown> recorded_unknown() {
  std::map<std::string, Unknown> all;
  std::ifstream in(unknown_path);
  std::string target, word;
  while (in >> target >> word) all[target].insert(word);
  return all;
}
void record_unknown(const std::string& target, const Unknown& unknown) {
  auto all = recorded_unknown();
  all[target] = unknown;
  std::ofstream out(unknown_path);
  for (const auto& [t, words] : all)
    for (const std::string& w : words) out << t << ' ' << w << '\n';
}

// What nvdisasm prints for the words, all at once; or the index of the first that it refuses.
std::vector<std::string> raw_texts(const std::string& nvdisasm, const Target& t, std::span<const Word> words,
                                   const fs::path& file, size_t& refused) {
  const std::vector<std::byte> code = pack(t, words);
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(code.data()), static_cast<std::streamsize>(code.size()));
  const auto out = reference::run(fmt::format("{} -ndf -b SM{} '{}'", nvdisasm, t.sm, file.string()));
  const size_t at = out.text.find("at address 0x");
  refused = words.size();
  if (at != out.text.npos) {
    const uint64_t address = std::stoull(out.text.substr(at + 11), nullptr, 16);
    refused = 0;
    while (refused < words.size() && instruction_address(t, refused) != address) ++refused;
    return {};
  }
  auto lines = listing(out.text)[""];
  std::vector<std::string> texts;
  for (size_t i = 0; i < words.size(); ++i) texts.push_back(lines[instruction_address(t, i)].text);
  return texts;
}

// Every row's variations print as nvdisasm prints them. What they have in use goes to `in_use`.
void compare_variations(const std::string& nvdisasm, const Target& t, const fs::path& file,
                        std::map<uint32_t, std::set<std::string>>& in_use) {
  std::vector<Instruction> all;
  for (uint32_t f = 0; f < form_count(); ++f)
    if (form_targets(static_cast<FormId>(f)) & t.bit &&
        !form_name(static_cast<FormId>(f)).starts_with("QGMMA"))  // new in 12
      for (const Instruction& in : variations(t, static_cast<FormId>(f))) all.push_back(in);
  std::vector<Word> words(all.size());
  // Branches are to fixed places, so that a word does not depend on where it is.
  for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(encode(t, all[i], 0, words[i])) << row_name(all[i].form);
  const std::string name(t.name);
  auto recorded = recorded_unknown();
  Unknown unknown = recorded[name];
  const bool record = std::getenv("RNDN_RECORD") != nullptr;
  size_t refused = 0;
  if (record) {
    // Those recorded before stay so, as far as the words are still there.
    Unknown before;
    std::vector<Word> open;
    for (const Word& w : words) unknown.count(word_name(w)) ? (void)before.insert(word_name(w)) : open.push_back(w);
    unknown = before;
    for (size_t begin = 0; begin < open.size();) {
      const size_t n = std::min<size_t>(open.size() - begin, 400);
      raw_texts(nvdisasm, t, std::span(open).subspan(begin, n), file, refused);
      if (refused < n) unknown.insert(word_name(open[begin + refused]));
      begin += std::min(refused + 1, n);
    }
    record_unknown(name, unknown);
  }
  std::vector<size_t> left;
  std::vector<Word> known;
  for (size_t i = 0; i < words.size(); ++i)
    if (!unknown.count(word_name(words[i]))) left.push_back(i), known.push_back(words[i]);
  const std::vector<std::string> texts = raw_texts(nvdisasm, t, known, file, refused);
  ASSERT_EQ(texts.size(), known.size()) << "nvdisasm refuses " << word_name(known[std::min(refused, known.size() - 1)]);
  size_t different = 0, reserved = 0;
  for (size_t k = 0; k < left.size(); ++k) {
    const uint64_t address = instruction_address(t, k);
    Instruction in;
    ASSERT_TRUE(decode(t, known[k], address, in));
    const std::string mine = normal(text(t, in, "", address));
    if (texts[k].empty() || texts[k].find("???") != std::string::npos || texts[k].find("INVALID") != std::string::npos)
      ++reserved;
    else if (mine == texts[k])
      meanings(in, in_use[index(in.form)]);
    else if (++different <= 20 || record)
      ADD_FAILURE() << row_name(in.form) << ' ' << word_name(known[k]) << "\n  prints   " << mine << "\n  expected "
                    << texts[k];
  }
  std::printf("%s: %zu variations of rows, %zu not known to nvdisasm, %zu reserved, %zu different\n", name.c_str(),
              all.size(), unknown.size(), reserved, different);
}

class Reference : public ::testing::TestWithParam<std::string> {};

TEST_P(Reference, EveryWordOfPtxasReadsBack) {
  std::string why;
  std::string ptxas = reference::tool("ptxas", why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  std::string nvdisasm = reference::tool("nvdisasm", why);
  if (nvdisasm.empty()) GTEST_SKIP() << "skipped: " << why;
  const Target& t = *find_target(GetParam());
  reference::Scratch scratch;
  size_t words = 0, files = 0, hidden = 0;
  std::map<uint32_t, size_t> forms;                                           // words of each
  std::map<uint32_t, std::set<std::string>> in_use;                           // meanings
  std::map<uint32_t, std::set<std::array<uint8_t, max_modifiers>>> forms_of;  // of each row
  std::set<std::string> failed;                                               // one message per kind of difference
  std::vector<fs::path> inputs;
  // The kernels of a folder as one module: nvdisasm takes half a second to begin.
  for (const char* folder : {"tests/isa/corpus", "tests/corpus"}) {
    inputs.push_back(scratch.path / fmt::format("{}.ptx", inputs.size()));
    std::ofstream(inputs.back()) << rndn::testing::corpus_module(
        rndn::testing::corpus(std::string(RNDN_SOURCE_DIR) + "/" + folder), t.sm);
  }
  inputs.push_back(scratch.path / "operands.ptx");
  std::ofstream(inputs.back()) << rndn::testing::operand_module(rndn::testing::operand_kernels());
  for (const fs::path& path : inputs) {
    for (const char* level : {"-O0", "-O1", "-O3"}) {
      fs::path cubin = scratch.path / "k.cubin";
      auto compiled = reference::run(ptxas + " " + level + " -arch=" + std::string(t.name) + " '" + path.string() +
                                     "' -o '" + cubin.string() + "'");
      ASSERT_EQ(compiled.exit_code, 0) << path << ": " << compiled.text;
      auto expected = listing(reference::run(nvdisasm + " -c '" + cubin.string() + "'").text);
      // Life ranges leave out the padding, and take long.
      const bool ranges = std::string_view(level) == "-O3";
      auto lives = ranges ? listing(reference::run(nvdisasm + " -c -plr '" + cubin.string() + "'").text) : Listing();
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
          std::string reference_text = at == expected[k.name].end() ? "" : at->second.text;
          std::string where = fmt::format("{} {} {} {:#x} {:016x}_{:016x}", path.filename().string(), level, k.name,
                                          l.address, l.word.hi, l.word.lo);
          Instruction in;
          if (!decode(t, l.word, l.address, in)) {
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
          const Line& line = lives[k.name][l.address];
          // A base of 32 bits is one register; nvdisasm's life ranges take it for a pair.
          if (!line.known.empty() && !line.paired && !is_special(in.mnemonic) && mine.find(".U32+UR") == mine.npos) {
            auto ours = registers_of(in);
            // nvdisasm takes the predicate of LDGSTS for written, too; ptxas's code goes on with the value that it had (tests/corpus/copy_parts.ptx).
            if (in.mnemonic == Mnemonic::LDGSTS && in.operands[2].reg != PT)
              ours.insert(fmt::format("P{}^", in.operands[2].reg));
            std::erase_if(ours, [&](const std::string& r) {
              const std::string name = r.substr(0, r.size() - 1);
              return !line.known.count(name) || (r.back() == 'v' && ours.count(name + "^") && !line.registers.count(r));
            });
            roles(in, line.known, in_use[index(in.form)]);
            if (ours != line.registers && failed.insert("registers " + std::string(form_name(in.form))).second)
              ADD_FAILURE() << where << " " << mine
                            << fmt::format("\n  has      {}\n  expected {}", fmt::join(ours, " "),
                                           fmt::join(line.registers, " "));
          }
        }
      }
    }
  }
  compare_variations(nvdisasm, t, scratch.path / "raw.bin", in_use);
  std::map<std::string, Row> rows;
  size_t mutants = 0, survivors = 0, distinct = 0, uncovered = 0;
  for (uint32_t form = 0; form < form_count(); ++form) {
    const FormId id = static_cast<FormId>(form);
    if (!(form_targets(id) & t.bit)) continue;
    std::set<std::string> possible;
    for (uint64_t seed = 0; seed < 200; ++seed) meanings(random_instruction(id, seed), possible);
    const Instruction sample = sample_instruction(id);
    std::set<std::string> registers;
    for (const std::string& r : registers_of(sample)) registers.insert(r.substr(0, r.size() - 1));
    roles(sample, registers, possible);
    Row& r = rows[row_name(id)];
    r.words = forms.count(form) ? forms[form] : 0;
    r.forms = forms_of[form].size();
    distinct += r.forms;
    r.mutants = possible.size();
    size_t survived = 0;
    for (const std::string& m : possible)
      if (!in_use[form].count(m)) r.survivors += (survived++ ? " " : "") + m;
    mutants += r.mutants, survivors += survived;
    if (r.words == 0 && survived == r.mutants && r.mutants) ++uncovered;
  }
  std::printf("%s: %zu cubins, %zu words, %zu rows of %zu, %zu distinct forms, %zu hidden by nvdisasm\n",
              GetParam().c_str(), files, words, forms.size(), rows.size(), distinct, hidden);
  std::printf("%s: %zu of %zu mutants of rows noticed, %zu rows that nothing covers\n", GetParam().c_str(),
              mutants - survivors, mutants, uncovered);
  if (HasFailure()) return;
  rndn::testing::record_status("count", "SASS words of ptxas decoded, printed and encoded back", std::string(t.name),
                               std::to_string(words));
  rndn::testing::record_status("count", "rows of the tables that they use", std::string(t.name),
                               fmt::format("{} of {}", forms.size(), rows.size()));
  rndn::testing::record_status("count", "distinct SASS forms among them", std::string(t.name),
                               std::to_string(distinct));
  rndn::testing::record_status("count", "mutants of rows that words of ptxas or nvdisasm's text notice",
                               std::string(t.name), fmt::format("{} of {}", mutants - survivors, mutants));
  for (const auto& [form, used] : in_use) {
    const std::string title = rndn::testing::form_title(static_cast<FormId>(form));
    for (const char* fact : {"decoded", "encoded"})
      if (forms.count(form)) rndn::testing::record_status("form", title, std::string(t.name), fact);
    if (!forms.count(form) && !used.empty())
      rndn::testing::record_status("form", title, std::string(t.name), "printed");
  }
  if (std::getenv("RNDN_RECORD")) return record_coverage(GetParam(), rows);
  size_t words_before = 0, survivors_before = 0;
  Coverage recorded = recorded_coverage();
  for (const auto& [row, before] : recorded[GetParam()]) {
    words_before += before.words;
    std::istringstream names(before.survivors);
    for (std::string name; names >> name;) ++survivors_before;
    EXPECT_TRUE(before.words == 0 || rows[row].words > 0) << "no word of the corpus uses this row any more: " << row;
  }
  EXPECT_GE(words, words_before);
  EXPECT_LE(survivors, survivors_before);
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
  // The last calls functions of the driver: relocated words name them, and where they return to.
  for (const char* file : {"isa/corpus/reduce.ptx", "isa/corpus/integer.ptx", "assembler/ptx/driver_calls.ptx"}) {
    fs::path cubin = scratch.path / "k.cubin";
    auto compiled = reference::run(ptxas + " -O3 -arch=" + GetParam() + " '" RNDN_SOURCE_DIR "/tests/" + file +
                                   "' -o '" + cubin.string() + "'");
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

INSTANTIATE_TEST_SUITE_P(Targets, Reference, ::testing::ValuesIn(target_names()),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rndn::isa
