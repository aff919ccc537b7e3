// The assembler against its witnesses, on the PTX texts of ptx/: the PTX interpreter, the simulator on ptxas's code, nvdisasm's reading.
#include "tests/assembler/support.h"

namespace rndn::assembler::testing {
namespace {

// Files whose kernels have the shape of support.h.
bool has_test_shape(const ptx::Function& f) { return f.parameters.size() == 2 && f.parameters[0].name == "in" && f.parameters[1].name == "out"; }

uint32_t rows_per_thread(const std::vector<uint64_t>&) { return 0; }

TEST(Assembler, AssemblesEveryFileForEveryTargetAtEveryLevel) {
  for (const std::string& path : ptx_files()) {
    ptx::Module module = parse_file(path);
    for (const std::string& target : targets)
      for (int level = 0; level <= 3; ++level) {
        auto result = assemble_for(module, target, level);
        EXPECT_TRUE(result.ok()) << path << " " << target << " -O" << level << ": " << result.error().message;
      }
  }
}

// Our code in the simulator gives what the PTX means, without a hazard.
TEST(Assembler, CodeDoesWhatThePtxMeans) {
  const std::vector<uint64_t> in = input_words();
  for (const std::string& path : ptx_files()) {
    ptx::Module module = parse_file(path);
    for (const ptx::Function& f : module.functions) {
      if (!has_test_shape(f)) continue;
      auto expected = run_interpreter(module, f.name, in);
      ASSERT_TRUE(expected.ok()) << f.name << ": " << expected.error().message;
      for (const std::string& target : targets) {
        auto ours = assemble_for(module, target);
        ASSERT_TRUE(ours.ok()) << f.name << " " << target << ": " << ours.error().message;
        auto got = run_simulator(target, ours->cubin, f.name, in);
        if (!got.ok()) {
          ADD_FAILURE() << f.name << " " << target << ": " << got.error().message;
          continue;
        }
        EXPECT_EQ(difference(*expected, *got, rows_per_thread(*got)), "") << f.name << " " << target;
      }
    }
  }
}

TEST(Assembler, SameResultsAsPtxas) {
  std::string why, ptxas = reference_tool("ptxas", why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  const std::vector<uint64_t> in = input_words();
  for (const std::string& path : ptx_files()) {
    ptx::Module module = parse_file(path);
    for (const std::string& target : targets) {
      std::string said;
      std::vector<std::byte> theirs = assemble_with_ptxas(ptxas, path, target, said);
      ASSERT_FALSE(theirs.empty()) << path << " " << target << ": " << said;
      auto ours = assemble_for(module, target);
      ASSERT_TRUE(ours.ok()) << path;
      for (const ptx::Function& f : module.functions) {
        if (!has_test_shape(f)) continue;
        auto a = run_simulator(target, theirs, f.name, in, false), b = run_simulator(target, ours->cubin, f.name, in);
        if (!a.ok()) ADD_FAILURE() << f.name << " " << target << " (ptxas): " << a.error().message;
        else if (!b.ok()) ADD_FAILURE() << f.name << " " << target << " (ours): " << b.error().message;
        else EXPECT_EQ(difference(*a, *b, 0), "") << f.name << " " << target;
      }
    }
  }
}

// nvdisasm reads every word that we emit, as we mean it; no form is a guess.
TEST(Assembler, NvdisasmReadsWhatWeMean) {
  std::string why, nvdisasm = reference_tool("nvdisasm", why);
  if (nvdisasm.empty()) GTEST_SKIP() << "skipped: " << why;
  for (const std::string& path : ptx_files()) {
    ptx::Module module = parse_file(path);
    for (const std::string& name : targets) {
      const isa::Target& target = *isa::find_target(name);
      auto result = assemble_for(module, name);
      ASSERT_TRUE(result.ok()) << path;
      auto image = cubin::read(result->cubin);
      ASSERT_TRUE(image.ok()) << image.error().message;
      for (const cubin::Kernel& k : image->kernels) {
        std::string file = temporary(".bin");
        ASSERT_TRUE(write_file(file, {reinterpret_cast<const char*>(k.code.data()), k.code.size()}).ok());
        int status = 0;
        std::string said = run_command("'" + nvdisasm + "' -ndf -b SM" + name.substr(3) + " " + file, status);
        unlink(file.c_str());
        ASSERT_EQ(status, 0) << k.name << " " << name << ": " << said.substr(0, 400);
        // Its text by address; dual issue braces do not occur in our code.
        std::map<uint64_t, std::string> texts;
        for (size_t at = 0; at < said.size();) {
          size_t end = said.find('\n', at);
          if (end == std::string::npos) end = said.size();
          std::string line = said.substr(at, end - at);
          at = end + 1;
          size_t open = line.find("/*"), close = line.find("*/"), semicolon = line.rfind(';');
          if (open == std::string::npos || close == std::string::npos || semicolon == std::string::npos || line.find_first_not_of("0123456789abcdef", open + 2) != close) continue;
          std::string text = line.substr(close + 2, semicolon - close - 2);
          size_t from = text.find_first_not_of(" \t"), to = text.find_last_not_of(" \t");
          if (from != std::string::npos) texts[std::stoull(line.substr(open + 2, close - open - 2), nullptr, 16)] = text.substr(from, to - from + 1);
        }
        size_t compared = 0;
        for (const isa::Located& l : isa::unpack(target, k.code)) {
          isa::Instruction i;
          ASSERT_TRUE(isa::decode(target, l.word, l.address, i)) << k.name << " " << name << " at " << l.address;
          EXPECT_NE(isa::provenance(i.form), isa::Provenance::inferred) << isa::text(target, i) << " on " << name;
          auto it = texts.find(l.address);
          if (it == texts.end()) {  // nvdisasm 11.8 hides one instruction of sm_90
            EXPECT_TRUE(i.mnemonic == isa::Mnemonic::VIMNMX) << k.name << " " << name << " at " << fmt::format("{:#x}", l.address) << ": " << isa::text(target, i);
            continue;
          }
          std::string ours = isa::text(target, i);
          auto squeeze = [](std::string s) {
            std::string out;
            for (char c : s)
              if (!(c == ' ' && !out.empty() && out.back() == ' ')) out += c;
            return out;
          };
          bool label = false;
          for (uint32_t o = 0; o < i.operand_count; ++o) label |= i.operands[o].kind == isa::OperandKind::label;
          if (label) {  // the address is spelled in several ways
            size_t cut = ours.find_first_of("0`(");
            EXPECT_EQ(squeeze(ours.substr(0, std::min(cut, ours.size()))).substr(0, 4), squeeze(it->second).substr(0, 4)) << k.name << " " << name;
          } else {
            EXPECT_EQ(squeeze(ours), squeeze(it->second)) << k.name << " " << name << " at " << fmt::format("{:#x}", l.address);
          }
          ++compared;
        }
        EXPECT_GT(compared, 10u) << k.name;
      }
    }
  }
}

}  // namespace
}  // namespace rndn::assembler::testing
