// Line tables: machine instructions name the .loc that their PTX is under. Witnesses: nvdisasm, which reads the cubins and prints the lines;
// ptxas, whose stores, loads and barriers of the same PTX stand on the same lines; and kernels whose stores tell by their offsets which
// statement they come from.
#include <map>
#include <regex>
#include <set>

#include "tests/assembler/support.h"

namespace rndn::assembler::testing {
namespace {

const std::string nearest = RNDN_SOURCE_DIR "/tests/ptx/accept/nvcc_lines.ptx";

Result<Assembled> assemble_with_lines(const ptx::Module& module, const std::string& target, int level) {
  return assemble_for(module, target, level, 0, true);
}

// One printed instruction with the lines that stand over it: its own, then those of the calls that it was inlined into.
struct Printed {
  std::string kernel, text;
  uint64_t address = 0;
  std::vector<std::string> places;  // "/source/nearest.cu:21"
};

// What nvdisasm says of a cubin.
std::vector<Printed> disassemble(const std::string& nvdisasm, std::span<const std::byte> cubin) {
  const std::string path = temporary(".cubin");
  EXPECT_TRUE(write_file(path, {reinterpret_cast<const char*>(cubin.data()), cubin.size()}).ok());
  int status = 0;
  const std::string text = run_command("'" + nvdisasm + "' -c -gi " + path, status);
  EXPECT_EQ(status, 0) << text;
  unlink(path.c_str());
  static const std::regex section("^\\s*\\.section\\s+\\.text\\.(\\w+),.*"),
      place("^\\s*//## File \"([^\"]+)\", line (\\d+)( inlined at .*)?$"),
      instruction("^\\s*/\\*([0-9a-f]+)\\*/\\s+\\{?\\s*(.*?)\\s*[;}].*");
  std::vector<Printed> printed;
  std::string kernel;
  std::vector<std::string> places;
  bool open = false;  // the last line was a place, inlined into the next
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    std::smatch m;
    if (std::regex_match(line, m, section)) {
      kernel = m[1], places.clear(), open = false;
    } else if (std::regex_match(line, m, place)) {
      if (!open) places.clear();
      places.push_back(m[1].str() + ":" + m[2].str());
      open = m[3].matched;
    } else if (std::regex_match(line, m, instruction)) {
      printed.push_back({kernel, m[2], std::stoull(m[1], nullptr, 16), places});
    }
  }
  return printed;
}

// The same from the cubin's own tables, as the reader of cubins understands them.
std::vector<std::string> places_at(const cubin::Image& image, const cubin::Kernel& k, uint64_t address) {
  const cubin::LineRow* row = nullptr;
  for (const cubin::LineRow& r : k.lines)
    if (r.offset <= address) row = &r;
  std::vector<std::string> places;
  for (; row; row = row->caller ? &k.lines[row->caller - 1] : nullptr)
    places.push_back(fmt::format("{}:{}", image.files[row->file].name, row->line));
  return places;
}

// Instructions that neither compiler makes up, moves to another statement, or leaves out.
const std::regex effects("(@!?U?P\\d )?(ST[GS]?|LDG|ATOMS|ATOM|RED|BAR)\\..*");

TEST(LineTables, NvdisasmReadsTheLinesThatPtxasWrites) {
  std::string why;
  const std::string nvdisasm = reference_tool("nvdisasm", why), ptxas = reference_tool("ptxas", why);
  if (nvdisasm.empty() || ptxas.empty()) GTEST_SKIP() << why;
  const ptx::Module module = parse_file(nearest);
  for (const std::string& target : targets) {
    std::string said;
    const std::vector<std::byte> vendor = assemble_with_ptxas(ptxas, nearest, target + " -lineinfo", said);
    ASSERT_FALSE(vendor.empty()) << said;
    std::map<std::string, std::set<std::string>> expected;  // by kernel: the lines, with calls, that have effects
    for (const Printed& p : disassemble(nvdisasm, vendor))
      if (std::regex_match(p.text, effects)) expected[p.kernel].insert(fmt::format("{}", fmt::join(p.places, " < ")));
    ASSERT_EQ(expected.size(), 2u);
    for (const int level : {0, 3}) {
      auto ours = assemble_with_lines(module, target, level);
      ASSERT_TRUE(ours.ok()) << ours.error().message;
      auto image = cubin::read(ours->cubin);
      ASSERT_TRUE(image.ok()) << image.error().message;
      std::map<std::string, std::set<std::string>> got;
      for (const Printed& p : disassemble(nvdisasm, ours->cubin)) {
        if (std::regex_match(p.text, effects)) got[p.kernel].insert(fmt::format("{}", fmt::join(p.places, " < ")));
        EXPECT_FALSE(p.places.empty()) << target << " " << p.kernel << " " << p.address;
        for (const cubin::Kernel& k : image->kernels)
          if (k.name == p.kernel) {
            EXPECT_EQ(places_at(*image, k, p.address), p.places) << target << " " << p.address;
          }
      }
      EXPECT_EQ(got, expected) << target << " -O" << level;
    }
  }
}

// Both take a .loc of a file that no .file names: it is called by its number.
TEST(LineTables, FilesWithoutNames) {
  std::string why;
  const std::string nvdisasm = reference_tool("nvdisasm", why), ptxas = reference_tool("ptxas", why);
  if (nvdisasm.empty() || ptxas.empty()) GTEST_SKIP() << why;
  const std::string
      path = temporary(".ptx"),
      text =
          ".version 7.8\n.target sm_60\n.address_size 64\n.entry k(.param .u64 p)\n{\n.reg .b64 %a; .reg .b32 %r;\n"
          ".loc 28 7 0\nld.param.u64 %a, [p];\nmov.u32 %r, 1;\nst.global.u32 [%a], %r;\nret;\n}\n";
  ASSERT_TRUE(write_file(path, text).ok());
  for (const std::string& target : targets) {
    std::string said;
    const std::vector<std::byte> vendor = assemble_with_ptxas(ptxas, path, target + " -lineinfo", said);
    ASSERT_FALSE(vendor.empty()) << said;
    auto ours = assemble_with_lines(parse_text("x.ptx", text), target, 3);
    ASSERT_TRUE(ours.ok()) << ours.error().message;
    for (const std::vector<std::byte>& cubin : {vendor, ours->cubin}) {
      auto image = cubin::read(cubin);
      ASSERT_TRUE(image.ok()) << image.error().message;
      for (uint64_t address = 0; address < 64; address += 16)
        EXPECT_EQ(places_at(*image, image->kernels.at(0), address), std::vector<std::string>{"<file 28>:7"}) << target;
    }
    size_t stores = 0;
    for (const Printed& p : disassemble(nvdisasm, ours->cubin)) {  // which crashes on ptxas's
      if (!std::regex_match(p.text, effects)) continue;
      ++stores;
      EXPECT_EQ(p.places, std::vector<std::string>{"<file 28>:7"}) << target;
    }
    EXPECT_EQ(stores, 1u);
  }
  unlink(path.c_str());
}

// Stores tell by their offset which statement they are; loops and calls are between them. Jumps and exits have lines of their own.
TEST(LineTables, EveryStoreJumpAndExitIsUnderItsLine) {
  std::string text =
      ".version 7.8\n.target sm_60\n.address_size 64\n"
      ".func f(.param .b64 a, .param .b32 v)\n{\n.reg .b64 %p; .reg .b32 %x;\n.loc 2 7 1\n"
      "ld.param.u64 %p, [a]; ld.param.u32 %x, [v];\n.loc 2 900 1\nst.global.u32 [%p+3600], %x;\nret;\n}\n"
      ".visible .entry k(.param .u64 out)\n{\n.reg .b64 %p; .reg .b32 %x<4>; .reg .pred %q<3>;\n"
      ".loc 1 1 1\nld.param.u64 %p, [out];\nmov.u32 %x0, %tid.x;\n";
  std::map<uint32_t, std::string> expected = {{900, "b.cu:900"}};  // store -> place
  std::set<std::vector<std::string>> expected_jumps;
  for (uint32_t n = 0; n < 120; ++n) {
    const uint32_t file = n % 5 == 3 ? 2 : 1, line = n % 7 == 2 ? 5000 - n : 100 + n;
    if (n % 10 == 4) text += fmt::format("L{}:\n", n);
    text += fmt::format(".loc {} {} 3\n", file, line);
    if (n % 3 == 0) text += fmt::format("mad.lo.u32 %x0, %x0, {}, {};\n", 2 * n + 3, n);
    text += fmt::format("st.global.u32 [%p+{}], %x0;\n", 4 * n);
    expected[n] = fmt::format("{}:{}", file == 1 ? "a.cu" : "b.cu", line);
    if (n % 10 == 8) {
      text += fmt::format("setp.gt.u32 %q1, %x0, {};\n.loc 2 {} 1\n@%q1 bra L{};\n", n << 20, 30000 + n, n - 4);
      expected_jumps.insert({fmt::format("b.cu:{}", 30000 + n)});
    }
    if (n % 40 == 20)
      text +=
          ".loc 1 2 2\n{ .param .b64 a; .param .b32 v; st.param.b64 [a], %p; st.param.b32 [v], %x0;\ncall f, (a, v); "
          "}\n";
  }
  text += ".loc 1 9999 1\nret;\n}\n.file 1 \"a.cu\"\n.file 2 \"b.cu\"\n";
  const ptx::Module module = parse_text("stores.ptx", text);
  for (const std::string& target : targets)
    for (const int level : {0, 1, 2, 3}) {
      auto ours = assemble_with_lines(module, target, level);
      ASSERT_TRUE(ours.ok()) << ours.error().message;
      auto image = cubin::read(ours->cubin);
      ASSERT_TRUE(image.ok()) << image.error().message;
      const isa::Target& t = *isa::find_target(target);
      const cubin::Kernel& k = image->kernels.at(0);
      std::set<uint32_t> seen;
      uint32_t exits = 0;
      std::set<std::vector<std::string>> jumps;
      for (const auto& [address, word] : isa::unpack(t, k.code)) {
        isa::Instruction x;
        ASSERT_TRUE(isa::decode(t, word, address, x));
        const std::vector<std::string> places = places_at(*image, k, address);
        if (x.mnemonic == isa::Mnemonic::EXIT) {
          ++exits;
          EXPECT_EQ(places, std::vector{std::string("a.cu:9999")}) << target << " -O" << level;
        }
        if (x.mnemonic == isa::Mnemonic::BRA && x.guard != isa::PT) jumps.insert(places);
        if (x.mnemonic != isa::Mnemonic::STG) continue;
        const auto n = static_cast<uint32_t>(x.operands[0].value / 4);
        seen.insert(n);
        EXPECT_EQ(places, std::vector{expected[n]}) << target << " -O" << level << " store " << n;
      }
      EXPECT_EQ(seen.size(), expected.size()) << target;
      EXPECT_EQ(jumps, expected_jumps) << target;
      EXPECT_GT(exits, 0u) << target;
    }
}

TEST(LineTables, NothingIsWrittenWithoutTheOptionOrWithoutLocations) {
  const ptx::Module module = parse_file(nearest);
  auto without = assemble_for(module, "sm_86");
  ASSERT_TRUE(without.ok());
  const std::string file(reinterpret_cast<const char*>(without->cubin.data()), without->cubin.size());
  EXPECT_EQ(file.find("debug"), std::string::npos);
  ptx::Module bare = module;
  for (ptx::Function& f : bare.functions) f.locations.clear();
  auto empty = assemble_with_lines(bare, "sm_86", 3);
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->cubin, without->cubin);
  // The code is the same with lines.
  auto with = assemble_with_lines(module, "sm_86", 3);
  ASSERT_TRUE(with.ok());
  EXPECT_EQ(cubin::read(with->cubin)->kernels.at(0).code, cubin::read(without->cubin)->kernels.at(0).code);
}

}  // namespace
}  // namespace rndn::assembler::testing
