// Cubins: what is written reads back the same, on every target; the vendor's cubins read as the vendor's tools describe them, and its tools
// accept ours; damaged files are refused and never crash.
#include "assembler/cubin/cubin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <regex>

#include "tests/isa/reference_tools.h"

namespace rndn::cubin {
namespace {

namespace fs = std::filesystem;

Bytes bytes_of(const std::string& s) {
  const auto* p = reinterpret_cast<const std::byte*>(s.data());
  return {p, p + s.size()};
}
Bytes pattern(size_t n, int seed) {
  Bytes out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(seed));
  return out;
}

// Two kernels and four variables with everything that an image can hold.
Image sample(uint32_t sm) {
  Image image;
  image.sm = sm;
  image.ptx_target = 60;
  Kernel a;
  a.name = "first";
  a.code = pattern(256, 1);
  a.registers = 40;
  a.barriers = 2;
  a.shared_bytes = 0x480;
  a.uses_shared = true;
  a.local_bytes = 128;
  a.stack_bytes = sm < 70 ? 0x210 : 0;
  a.has_crs_attribute = true;
  a.uses_ctaid_z = sm < 90;
  a.parameters = {{0, 8}, {8, 4}, {16, 8}};
  a.parameter_bytes = 24;
  a.constants = pattern(16, 2);
  a.max_threads = {256, 1, 1};
  a.max_registers = 168;
  a.exit_offsets = {0x40, 0x80};
  a.cooperative_offsets = {0x20};
  a.warp_wide_offsets = {0x30};
  if (sm < 70) a.ctaid_offsets = {0x10};
  a.indirect_branches = {{0x60, {0x70, 0x80}}};
  a.functions = {{"$first$helper", 0xa0, 0x20, false}, {"$first$slow", 0xc0, 0x40, true}};
  a.relocations = {{Relocation::absolute_low_32, 0x10, "counter", 0},
                   {Relocation::absolute_high_32, 0x20, "counter", 0}};
  a.lines = {{0, 0, 7, 0, 0}, {16, 1, 300, 0, 0}, {16, 2, 12, 2, 3}, {48, 2, 13, 2, 3}, {160, 0, 1, 0, 0}};
  Kernel b;
  b.name = "second";
  b.code = pattern(128, 3);
  b.registers = 8;
  b.required_threads = {128, 2, 1};
  b.max_registers = 255;
  b.exit_offsets = {0x30};
  image.kernels = {a, b};
  Variable weights{.name = "weights", .size = 64, .align = 4, .initial = pattern(64, 4), .constant = true};
  Variable counter{.name = "counter", .size = 8, .align = 8, .initial = pattern(8, 5), .visible = true};
  Variable pointer{.name = "pointer", .size = 8, .align = 8, .initial = Bytes(8), .offset = 8};
  pointer.relocations = {{Relocation::generic_64, 0, "table", 12}};
  Variable table{.name = "table", .size = 100, .align = 4};
  // As ptxas 13 keeps addresses: of a variable, and of a function that the driver supplies.
  Variable addresses{
      .name = ".nv.constant4", .size = 16, .align = 8, .initial = Bytes(16), .constant = true, .bank = 4};
  addresses.relocations = {{Relocation::generic_64, 0, "vprintf", 0}, {Relocation::generic_64, 8, "table", 0}};
  if (sm < 70) addresses.relocations[0].kind = Relocation::low_32;  // as ptxas 12.9, of functions
  image.variables = {weights, addresses, counter, pointer, table};
  image.files = {{"/home/a/kernels.cu", 1795359447, 1234}, {"own.h", 0, 0}, {"/home/a/b.h", 1, 2}};
  image.debug_strings = bytes_of(std::string("f\0\0inlined\0", 11));
  return image;
}

class Targets : public testing::TestWithParam<uint32_t> {};

TEST_P(Targets, ReadOfWriteIsTheIdentity) {
  Image image = sample(GetParam());
  Bytes file = write(image);
  auto back = read(file);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->sm, image.sm);
  EXPECT_EQ(back->ptx_target, image.ptx_target);
  ASSERT_EQ(back->kernels.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(back->kernels[i] == image.kernels[i]) << image.kernels[i].name;
  ASSERT_EQ(back->variables.size(), image.variables.size());
  for (size_t i = 0; i < image.variables.size(); ++i) {
    Variable expected = image.variables[i];
    expected.align = back->variables[i].align;  // the place tells an upper bound only
    EXPECT_GE(back->variables[i].align, image.variables[i].align);
    EXPECT_TRUE(back->variables[i] == expected) << expected.name;
  }
  EXPECT_TRUE(back->files == image.files);
  EXPECT_EQ(back->debug_strings, image.debug_strings);
  EXPECT_EQ(write(*back), file);
}

// What an image can hold beyond what a compiler writes: each was lost or moved on the way once.
TEST_P(Targets, OddImagesReadBackAsTheyAre) {
  Image image = sample(GetParam());
  Kernel& k = image.kernels[0];
  k.max_threads = {0, 4, 1}, k.required_threads = {0, 0, 2};
  k.functions = {{"local", 0, 16, false}, {"weak", 0, 16, true}};
  k.relocations = {{Relocation::absolute_low_32, 32, "table", 0}, {Relocation::absolute_low_32, 32, "table", 4}};
  k.indirect_branches = {{16, std::vector<uint32_t>(9000, 32)}, {32, std::vector<uint32_t>(9000, 16)}};
  image.variables[3].initial = pattern(8, 6);  // RELA without an addend, over bytes that REL would add
  image.variables[3].relocations[0].addend = 0;
  Variable empty{.name = "empty", .size = 0, .align = 1, .visible = true};
  image.variables.insert(image.variables.begin() + 4, empty);
  const auto once = read(write(image));
  ASSERT_TRUE(once) << once.error().message;
  EXPECT_TRUE(once->kernels[0] == k);
  ASSERT_EQ(once->variables.size(), image.variables.size());
  for (size_t i = 0; i < image.variables.size(); ++i) {
    EXPECT_EQ(once->variables[i].name, image.variables[i].name);
    EXPECT_TRUE(once->variables[i].relocations == image.variables[i].relocations) << image.variables[i].name;
  }
  const auto twice = read(write(*once));
  ASSERT_TRUE(twice) << twice.error().message;
  EXPECT_TRUE(*twice == *once);
}

// Functions with sections of their own, as ptxas -g makes them: code calls them and takes their addresses, and so does data.
TEST_P(Targets, FunctionsWithSectionsOfTheirOwnReadBack) {
  Image image = sample(GetParam());
  for (const Kernel::Role role : {Kernel::local, Kernel::weak, Kernel::global}) {
    Kernel f;
    f.role = role;
    f.name = fmt::format("f{}", static_cast<int>(role));
    f.code = pattern(128, 9);
    f.registers = 24;
    f.relocations = {{Relocation::absolute_low_32, 32, f.name, 0x40}, {Relocation::call, 64, "f1", 0}};
    image.kernels.push_back(f);
    image.kernels[0].relocations.push_back({Relocation::call, 0x20u + 32u * role, f.name, 0});
  }
  image.kernels[0].relocations.push_back({Relocation::absolute_high_32, 0xa0, "f2", 0});
  image.variables[3].initial = Bytes(8);
  image.variables[3].relocations = {{Relocation::generic_64, 0, "f3", 0}};
  const Bytes file = write(image);
  const auto back = read(file);
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->kernels.size(), image.kernels.size());
  for (size_t i = 0; i < image.kernels.size(); ++i) {
    EXPECT_EQ(back->kernels[i].role, image.kernels[i].role);
    const auto by_offset = [](Kernel k) {
      std::stable_sort(k.relocations.begin(), k.relocations.end(),
                       [](const Relocation& a, const Relocation& b) { return a.offset < b.offset; });
      return k;
    };
    EXPECT_TRUE(by_offset(back->kernels[i]) == by_offset(image.kernels[i])) << image.kernels[i].name;
  }
  EXPECT_TRUE(back->variables[3].relocations == image.variables[3].relocations);
  const auto again = read(write(*back));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(*again == *back);
}

// A variable in the section of zeros has no bytes, one in the others has: what a section is called and what it is have to agree.
TEST_P(Targets, DataSectionsAreOfTheirKind) {
  const Bytes file = write(sample(GetParam()));
  uint64_t headers;
  uint16_t count, names;
  std::memcpy(&headers, &file[40], 8), std::memcpy(&count, &file[60], 2), std::memcpy(&names, &file[62], 2);
  uint64_t strings;
  std::memcpy(&strings, &file[headers + 64 * names + 24], 8);
  size_t changed = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t name, type;
    std::memcpy(&name, &file[headers + 64 * i], 4), std::memcpy(&type, &file[headers + 64 * i + 4], 4);
    const std::string is = reinterpret_cast<const char*>(&file[strings + name]);
    if (is != ".nv.global" && is != ".nv.global.init" && is != ".nv.constant3") continue;
    Bytes other = file;
    type = type == 8 ? 1 : 8;
    std::memcpy(&other[headers + 64 * i + 4], &type, 4);
    const auto image = read(other);
    ASSERT_FALSE(image) << is;
    EXPECT_NE(image.error().message.find("section " + is + ": type "), std::string::npos) << image.error().message;
    ++changed;
  }
  EXPECT_EQ(changed, 3u);
}

// What the driver was measured to need, read from the bytes themselves.
TEST_P(Targets, HeaderAndParametersAsTheDriverNeedsThem) {
  Bytes file = write(sample(GetParam()));
  auto at32 = [&](size_t at) {
    uint32_t v;
    std::memcpy(&v, &file[at], 4);
    return v;
  };
  EXPECT_EQ(at32(0), 0x464c457fu);
  EXPECT_EQ(static_cast<int>(file[7]), 0x33);
  EXPECT_EQ(static_cast<int>(file[8]), 7);
  EXPECT_EQ(at32(48), 60u << 16 | 0x500 | GetParam());
  // KPARAM_INFO of the last parameter, and PARAM_CBANK with the target's base.
  auto contains = [&](const std::vector<uint8_t>& what) {
    return std::search(file.begin(), file.end(), what.begin(), what.end(),
                       [](std::byte a, uint8_t b) { return static_cast<uint8_t>(a) == b; }) != file.end();
  };
  EXPECT_TRUE(contains({4, 0x17, 12, 0, 0, 0, 0, 0, 2, 0, 16, 0, 0x00, 0xf0, 0x21, 0x00}));
  uint16_t base = GetParam() >= 90 ? 0x210 : GetParam() < 70 ? 0x140 : 0x160;
  EXPECT_TRUE(contains({static_cast<uint8_t>(base), static_cast<uint8_t>(base >> 8), 24, 0}));
}

// Toolkit 13 has the target elsewhere, also in modules without the ABI.
TEST_P(Targets, HeadersOfToolkit13) {
  for (const uint8_t abi : {8, 2}) {
    Bytes file = write(sample(GetParam()));
    const uint32_t flags = 6u << 24 | GetParam() << 8 | 4;
    std::memcpy(&file[48], &flags, 4);
    file[7] = std::byte{0x41}, file[8] = std::byte{abi};
    const auto image = read(file);
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_EQ(image->sm, GetParam());
    EXPECT_EQ(image->ptx_target, GetParam());
  }
}

TEST_P(Targets, DamagedFilesAreRefusedOrReadButNeverCrash) {
  Bytes file = write(sample(GetParam()));
  size_t refused = 0;
  for (size_t n = 0; n < file.size(); n += n < 256 ? 1 : 13) {
    auto r = read(std::span(file).first(n));
    EXPECT_FALSE(r) << n << " bytes of " << file.size();
    if (!r) {
      EXPECT_FALSE(r.error().message.empty());
      EXPECT_EQ(r.error().fault, Fault::input);
    }
  }
  std::mt19937 random(20261120 + GetParam());
  for (int round = 0; round < 4000; ++round) {
    Bytes damaged = file;
    for (int flips = 1 + static_cast<int>(random() % 4); flips > 0; --flips)
      damaged[random() % damaged.size()] ^= static_cast<std::byte>(1u << random() % 8);
    auto r = read(damaged);
    refused += !r.ok();
  }
  // Headers hit directly.
  for (int round = 0; round < 4000; ++round) {
    Bytes damaged = file;
    uint64_t sections;
    std::memcpy(&sections, &file[40], 8);
    size_t at = round % 2 ? random() % 64 : sections + random() % (damaged.size() - sections);
    damaged[at] = static_cast<std::byte>(random());
    refused += !read(damaged).ok();
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_EQ(read(Bytes{}).error().message, "not a cubin: 0 bytes are no ELF header");
}

INSTANTIATE_TEST_SUITE_P(All, Targets, testing::Values(60u, 61u, 80u, 86u, 89u, 90u),
                         [](const auto& info) { return "sm_" + std::to_string(info.param); });

TEST(Read, NamesWhatIsWrong) {
  Image image = sample(86);
  Bytes file = write(image);
  auto changed = [&](size_t at, uint8_t value) {
    Bytes b = file;
    b[at] = static_cast<std::byte>(value);
    auto r = read(b);
    return r.ok() ? "accepted" : r.error().message;
  };
  EXPECT_EQ(changed(0, 'X'), "not a cubin: no ELF file");
  EXPECT_EQ(changed(18, 62), "not a cubin: an ELF file for another machine (62)");
  EXPECT_EQ(changed(16, 1), "not an executable cubin (ELF type 1); relocatable ones have to be linked first");
  EXPECT_EQ(changed(8, 2), "accepted");  // without the ABI
  EXPECT_EQ(changed(8, 9), "cubin of unknown ELF ABI version 9");
  EXPECT_EQ(changed(48, 70), "cubin for sm_70, which is not supported");
}

// --- Against the vendor's tools --------------------------------------------------------------------------------------------------

TEST_P(Targets, AgreesWithTheVendorsTools) {
  std::string why;
  std::string ptxas = reference::tool("ptxas", why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  std::string nvdisasm = reference::tool("nvdisasm", why), cuobjdump = reference::tool("cuobjdump", why);
  if (nvdisasm.empty() || cuobjdump.empty()) GTEST_SKIP() << "skipped: " << why;
  reference::Scratch scratch;
  fs::path theirs = scratch.path / "theirs.cubin", ours = scratch.path / "ours.cubin";
  size_t kernels = 0;
  for (const char* file : {"reduce", "memory", "control", "floating"}) {
    auto compiled =
        reference::run(ptxas + " -arch=sm_" + std::to_string(GetParam()) + " '" RNDN_SOURCE_DIR "/tests/isa/corpus/" +
                       file + ".ptx' -o '" + theirs.string() + "'");
    ASSERT_EQ(compiled.exit_code, 0) << compiled.text;
    auto image = read(bytes_of(reference::read_all(theirs)));
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_EQ(image->sm, GetParam());
    // cuobjdump's summary of every kernel, from their file.
    std::string usage = reference::run(cuobjdump + " -res-usage '" + theirs.string() + "'").text;
    for (const Kernel& k : image->kernels) {
      std::smatch m;
      ASSERT_TRUE(std::regex_search(
          usage, m,
          std::regex("Function " + k.name +
                     ":\\s+REG:(\\d+) STACK:(\\d+) SHARED:(\\d+) LOCAL:(\\d+)[^\\n]*CONSTANT\\[0\\]:(\\d+)")))
          << usage;
      EXPECT_EQ(k.registers, std::stoul(m[1])) << k.name;
      EXPECT_EQ(k.local_bytes, std::stoul(m[2])) << k.name;
      EXPECT_EQ(k.shared_bytes, std::stoul(m[3])) << k.name;
      uint32_t base = GetParam() >= 90 ? 0x210 : GetParam() < 70 ? 0x140 : 0x160;
      EXPECT_EQ(k.parameter_bytes + base, std::stoul(m[5])) << k.name;
      EXPECT_FALSE(k.exit_offsets.empty());
      ++kernels;
    }
    // Written again, their tools see the same code, attributes and usage.
    Bytes again = write(*image);
    std::ofstream(ours, std::ios::binary)
        .write(reinterpret_cast<const char*>(again.data()), static_cast<std::streamsize>(again.size()));
    auto listing = [&](const fs::path& path) { return reference::run(nvdisasm + " -c '" + path.string() + "'"); };
    auto a = listing(theirs), b = listing(ours);
    EXPECT_EQ(b.exit_code, 0) << b.text;
    EXPECT_TRUE(a.text == b.text) << file << ": nvdisasm prints another listing of our file";
    auto sorted_lines = [](const std::string& text) {
      std::vector<std::string> out;
      std::istringstream in(text);
      for (std::string line; std::getline(in, line);)
        if (line.find("Function") != std::string::npos || line.find("REG:") != std::string::npos) out.push_back(line);
      std::sort(out.begin(), out.end());
      return out;
    };
    auto our_usage = reference::run(cuobjdump + " -res-usage '" + ours.string() + "'");
    EXPECT_EQ(our_usage.exit_code, 0) << our_usage.text;
    EXPECT_EQ(sorted_lines(our_usage.text), sorted_lines(usage));
    auto back = read(again);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_TRUE(*back == *image) << file;
  }
  EXPECT_EQ(kernels, 5u);
}

}  // namespace
}  // namespace rndn::cubin
