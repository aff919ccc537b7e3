// rndn-as, rndn-dis and rndn-launch from outside: flags in every spelling, numbers out of range, and resources that run out.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "libraries/base/system/files.h"
#include "tests/support/reference_tools.h"

namespace rndn::standalone_test {
namespace {

using test::reference_tool;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
namespace fs = std::filesystem;

// Adds its third parameter to a word: out[0] = a + b, 64 bits each, so that what was passed can be seen.
constexpr const char* kernel = R"(.version 7.0
.target sm_60
.address_size 64
.visible .entry add(.param .u64 out, .param .u64 a, .param .u32 b)
{
  .reg .b64 %rd<6>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [a];
  ld.param.u32 %r1, [b];
  cvt.s64.s32 %rd3, %r1;
  add.s64 %rd4, %rd2, %rd3;
  cvta.to.global.u64 %rd5, %rd1;
  st.global.u64 [%rd5], %rd4;
  ret;
}
)";

struct Ran {
  int exit_code = -1;  // 128 + signal when one ended it
  std::string out, err;
};

class Standalone : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rndn-standalone-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ASSERT_TRUE(write_file(folder_ + "/k.ptx", kernel));
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  // A shell line, in the test's folder.
  Ran run(const std::string& line) const {
    std::string command =
        "cd '" + folder_ + "' && PATH='" RNDN_BIN_DIR "':\"$PATH\"; { " + line + "; } > stdout 2> stderr";
    int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), *read_file(folder_ + "/stdout"),
            *read_file(folder_ + "/stderr")};
  }
  void expect(const std::string& line, int exit_code, const std::string& out, const std::string& err) const {
    Ran r = run(line);
    EXPECT_EQ(r.exit_code, exit_code) << line << "\n" << r.err;
    EXPECT_EQ(r.out, out) << line;
    EXPECT_EQ(r.err, err) << line;
  }
  std::string folder_;
};

TEST_F(Standalone, AssemblerTakesThePtxasSpellings) {
  ASSERT_EQ(run("rndn-as k.ptx --arch sm_86 -o want").exit_code, 0);
  const std::string want = *read_file(folder_ + "/want");
  for (const char* flags : {"-arch=sm_86 -o got", "-arch sm_86 -o got -O3", "--gpu-name sm_86 -o=got -O 3",
                            "--gpu-name=sm_86 --output-file=got", "-gpu-name=sm_86 --output-file got --opt-level 3",
                            "--arch=sm_86 -ogot --opt-level=3", "-arch=sm_86 -maxrregcount 255 -o got",
                            "-arch=sm_86 --maxrregcount=255 -o got", "-arch=sm_86 -maxrregcount=255 -o got -O=3",
                            "-arch=sm_86 --maxrregcount 255 -o got"}) {
    expect(std::string("rndn-as k.ptx ") + flags, 0, "", "");
    EXPECT_EQ(*read_file(folder_ + "/got"), want) << flags;
    fs::remove(folder_ + "/got");
  }
  expect("rndn-as -arch=sm_86 -o got -- k.ptx", 0, "", "");
  expect("rndn-as -arch=sm_86 -o got - < k.ptx", 0, "", "");
  Ran standard = run("rndn-as -arch=sm_86 -o - k.ptx");
  EXPECT_EQ(standard.out, want);
  expect("rndn-as k.ptx -arch=sm_86", 0, "", "");
  EXPECT_EQ(*read_file(folder_ + "/k.cubin"), want);
  expect("rndn-as k.ptx", 0, "", "");
  EXPECT_NE(*read_file(folder_ + "/k.cubin"), want);  // the file's own target, sm_60
}

// As ptxas 13 says it: what memory and barriers a kernel takes is the same with its code, registers are our own.
TEST_F(Standalone, AssemblerSaysWhatKernelsTake) {
  ASSERT_TRUE(write_file(folder_ + "/v.ptx",
                         ".version 7.8\n.target sm_60\n.address_size 64\n.global .align 4 .b8 g[100];\n.global .align 8 .b64 h = 5;\n"
                         ".const .align 4 .b32 c[4] = {1, 2, 3, 4};\n"
                         ".visible .entry k(.param .u64 a, .param .u32 n)\n{\n.shared .align 4 .b8 s[128];\n.reg .b64 %p, %q;\n.reg .b32 %r, %t;\n"
                         "ld.param.u64 %p, [a];\nmov.u32 %r, %tid.x;\nst.shared.u32 [s+4], %r;\nbar.sync 3;\nld.shared.u32 %r, [s+8];\n"
                         "ld.const.u32 %t, [c+4];\nadd.u32 %r, %r, %t;\nld.global.u32 %t, [g];\nadd.u32 %r, %r, %t;\nld.global.u32 %t, [h];\n"
                         "add.u32 %r, %r, %t;\nst.global.u32 [%p], %r;\nret;\n}\n")
                  .ok());
  const auto lines = [&](const std::string& program, const std::string& target) {
    std::string said = run(program + " -v -arch=" + target + " v.ptx -o v.cubin").err;
    for (const char* own : {"Used [0-9]* registers", "ptxas info    : Compile time.*\n", ", used [0-9]* barriers"})  // 11.8 does not count barriers
      said = std::regex_replace(said, std::regex(own), "");
    return said;
  };
  const Ran ours = run("rndn-as -v -arch=sm_86 v.ptx -o v.cubin");
  EXPECT_EQ(ours.exit_code, 0);
  EXPECT_EQ(std::regex_replace(ours.err, std::regex("Used [0-9]+"), "Used N"),
            "ptxas info    : 108 bytes gmem, 16 bytes cmem[3]\nptxas info    : Compiling entry function 'k' for 'sm_86'\n"
            "ptxas info    : Function properties for k\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
            "ptxas info    : Used N registers, used 4 barriers, 128 bytes smem, 364 bytes cmem[0]\n");
  std::string why;
  if (const std::string ptxas = reference_tool("ptxas", why); !ptxas.empty())
    for (const char* target : {"sm_61", "sm_86"}) {
      EXPECT_EQ(lines("rndn-as", target), lines(ptxas, target)) << target;
    }
  // Spills: what each of the instructions moves.
  std::string pressure = ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n.reg .b64 %p;\n.reg .b32 %r<40>;\nld.param.u64 %p, [a];\n";
  for (int k = 0; k < 40; ++k) pressure += fmt::format("ld.volatile.global.u32 %r{}, [%p+{}];\n", k, 4 * k);
  for (int k = 0; k < 40; ++k) pressure += fmt::format("st.volatile.global.u32 [%p+{}], %r{};\n", 4 * k, k);
  ASSERT_TRUE(write_file(folder_ + "/v.ptx", pressure + "ret;\n}\n").ok());
  std::smatch found;
  const std::string spills = run("rndn-as -v -arch=sm_86 -maxrregcount 24 v.ptx -o v.cubin && rndn-dis v.cubin > v.sass").err;
  ASSERT_TRUE(std::regex_search(spills, found, std::regex("([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads"))) << spills;
  const auto count = [&](const char* mnemonic) {
    const std::string sass = *read_file(folder_ + "/v.sass");
    const std::regex r(std::string(" ") + mnemonic + " ");
    return std::distance(std::sregex_iterator(sass.begin(), sass.end(), r), std::sregex_iterator());
  };
  EXPECT_GT(std::stol(found[2]), 0);
  EXPECT_EQ(std::stol(found[2]), 4 * count("STL"));
  EXPECT_EQ(std::stol(found[3]), 4 * count("LDL"));
}

// The command lines with which programs call ptxas, word by word: Triton's NVIDIA backend, XLA's compilation by a subprocess, CUDA.jl's compiler, and
// nvcc 13.0 (--dryrun).
TEST_F(Standalone, AssemblerTakesTheCommandLinesOfPtxasCallers) {
  ASSERT_EQ(run("sed '3a .file 1 \"a.py\"' k.ptx | sed 's/^  cvt.s64/  .loc 1 3 0\\n&/' > l.ptx").exit_code, 0);
  struct Caller {
    const char *line, *like;  // what our own spelling of the same is
  };
  const char* const no_debug = "warning: unsupported: -g; no debug information is written\n";
  for (
      const Caller& c : std::initializer_list<Caller>{
          // Triton 3.6, then 3.7 to 3.9; without line information, with ptxas's optimisation off, without fused sums, for its sanitizers.
          {"-lineinfo -v --gpu-name=sm_90a l.ptx -o l.ptx.o", "--arch sm_90 --lineinfo"},
          {"-lineinfo -v --regAllocOptLevel=2 --gpu-name=sm_90a l.ptx -o l.ptx.o", "--arch sm_90 --lineinfo"},
          {"-lineinfo -v --regAllocOptLevel=2 --gpu-name=sm_86 l.ptx -o l.ptx.o", "--arch sm_86 --lineinfo"},
          {"-lineinfo -suppress-debug-info -v --regAllocOptLevel=2 --gpu-name=sm_80 l.ptx -o l.ptx.o", "--arch sm_80"},
          {"-g -v --opt-level 0 --regAllocOptLevel=2 --gpu-name=sm_89 l.ptx -o l.ptx.o", "--arch sm_89 -O0"},
          {"-lineinfo --fmad=false -v --regAllocOptLevel=2 --gpu-name=sm_80 l.ptx -o l.ptx.o",
           "--arch sm_80 --lineinfo --fmad=false"},
          {"-lineinfo -v --regAllocOptLevel=2 --opt-level 1 --gpu-name=sm_90a l.ptx -o l.ptx.o",
           "--arch sm_90 --lineinfo -O1"},
          // XLA.
          {"l.ptx -o l.ptx.o -arch=sm_90a --warn-on-spills", "--arch sm_90"},
          {"l.ptx -o l.ptx.o -arch=sm_80 --warn-on-spills -v", "--arch sm_80"},
          {"l.ptx -o l.ptx.o -arch=sm_80 --warn-on-spills -v -O0", "--arch sm_80 -O0"},
          // CUDA.jl, by Julia's debug level.
          {"--verbose --gpu-name sm_90 --output-file l.ptx.o l.ptx", "--arch sm_90"},
          {"--generate-line-info --verbose --gpu-name sm_90a --output-file l.ptx.o l.ptx", "--arch sm_90 --lineinfo"},
          {"--device-debug --verbose --gpu-name sm_86 --output-file l.ptx.o l.ptx", "--arch sm_86"},
          // nvcc -arch=sm_86; -lineinfo; -cubin -G; -maxrregcount 32 -Xptxas -v,-dlcm=ca -resource-usage; -split-compile=2; -Ofc max; -Xptxas -O2.
          {"-arch=sm_86 -m64  \"l.ptx\"  -o \"l.ptx.o\"", "--arch sm_86"},
          {"-arch=sm_90a -m64  --generate-line-info \"l.ptx\"  -o \"l.ptx.o\"", "--arch sm_90 --lineinfo"},
          {"-arch=sm_90 -m64  -g --dont-merge-basicblocks --return-at-end \"l.ptx\"  -o \"l.ptx.o\"", "--arch sm_90"},
          {"-arch=sm_86 -m64 -v -v -dlcm=ca  -maxrregcount=32 \"l.ptx\"  -o \"l.ptx.o\"",
           "--arch sm_86 --maxrregcount 32"},
          {"-split-compile=2 -arch=sm_86 -m64  -split-compile=2 \"l.ptx\"  -o \"l.ptx.o\"", "--arch sm_86"},
          {"-arch=sm_86 -m64 --Ofast-compile=max  \"l.ptx\"  -o \"l.ptx.o\"", "--arch sm_86"},
          {"-arch=sm_86 -m64 -O2  \"l.ptx\"  -o \"l.ptx.o\"", "--arch sm_86 -O2"}}) {
    SCOPED_TRACE(c.line);
    ASSERT_EQ(run(std::string("rndn-as l.ptx -o want ") + c.like).exit_code, 0);
    const Ran r = run(std::string("rndn-as ") + c.line);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(r.out, "");
    const std::string own = std::regex_replace(r.err, std::regex("ptxas info .*\n|    0 bytes stack frame.*\n"), "");
    EXPECT_EQ(own, std::regex_search(c.line, std::regex("-g |--device-debug")) ? no_debug : "");
    EXPECT_EQ(r.err != own, std::regex_search(c.line, std::regex("-v|--verbose")));
    EXPECT_TRUE(*read_file(folder_ + "/l.ptx.o") == *read_file(folder_ + "/want"));
    fs::remove(folder_ + "/l.ptx.o");
  }
  // nvcc for several targets first reads the PTX of the lowest, and wants no code of it.
  expect("rndn-as -arch=compute_90 -m64  --generate-line-info \"k.ptx\"", 0, "", "");
  EXPECT_FALSE(fs::exists(folder_ + "/k.cubin"));
  ASSERT_TRUE(
      write_file(folder_ + "/bad.ptx", ".version 7.0\n.target sm_60\n.entry k() {\n ad.s32 1, 2, 3;\n}\n").ok());
  EXPECT_EQ(run("rndn-as -arch=compute_90 bad.ptx").exit_code, 1);
  // What -rdc=true and CUDA.jl's device runtime ask for.
  expect("rndn-as -arch=sm_86 -m64 --compile-only  k.ptx  -o k.ptx.o", 2, "",
         "error: unsupported: --compile-only; cubins are whole programs, there are no relocatable objects\n");
}

TEST_F(Standalone, AssemblerSaysWhatItsCallersLookFor) {
  // Releases, by the expressions of Triton, XLA and CUDA.jl.
  const std::string version = run("rndn-as --version").out;
  EXPECT_EQ(run("rndn-as -V").out, version);
  std::smatch m;
  ASSERT_TRUE(std::regex_search(version, m, std::regex(".*release (\\d+\\.\\d+).*")));
  EXPECT_EQ(m[1], "13.0");
  ASSERT_TRUE(std::regex_search(version, m, std::regex("\\bV(\\d+)\\.(\\d+)\\.(\\d+)\\b")));
  EXPECT_EQ(m[1].str() + "." + m[2].str(), "13.0");
  EXPECT_TRUE(std::regex_search(version, std::regex("release (\\d+)\\.(\\d+),\\s*V(\\d+)\\.(\\d+)\\.(\\d+)")));
  // XLA leaves targets to the driver at these words, and nothing else.
  for (const char* target : {"sm_20", "sm_70", "sm_100", "sm_120a", "lto_90", "compute_20"}) {
    const Ran r = run(std::string("rndn-as k.ptx -o out -arch=") + target + " --warn-on-spills");
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_THAT(r.err, StartsWith(fmt::format("error: unknown target `{}`; targets are sm_60", target)));
    EXPECT_THAT(r.err,
                HasSubstr(fmt::format("\nptxas fatal   : Value '{}' is not defined for option 'gpu-name'\n", target)));
  }
  // XLA asks for the newest PTX so, and takes what stands between the only two apostrophes.
  const Ran probe = run("rndn-as --input-as-string '.version 99.99'");
  EXPECT_EQ(probe.exit_code, 1);
  EXPECT_EQ(std::count(probe.err.begin(), probe.err.end(), '\''), 2) << probe.err;
  EXPECT_THAT(probe.err, HasSubstr("Unsupported .version 99.99; current version is '9.0'\n"));
  EXPECT_EQ(run("rndn-as -ias \"$(cat k.ptx)\" -o got && rndn-as k.ptx -o want && cmp got want").exit_code, 0);
  EXPECT_EQ(run("rndn-as k.ptx -ias x").exit_code, 2);
}

TEST_F(Standalone, AssemblerWarnsOfSpills) {
  std::string pressure =
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n.reg .b64 %p;\n.reg .b32 "
      "%r<40>;\nld.param.u64 %p, [a];\n";
  for (int k = 0; k < 40; ++k) pressure += fmt::format("ld.volatile.global.u32 %r{}, [%p+{}];\n", k, 4 * k);
  for (int k = 0; k < 40; ++k) pressure += fmt::format("st.volatile.global.u32 [%p+{}], %r{};\n", 4 * k, k);
  ASSERT_TRUE(write_file(folder_ + "/s.ptx", pressure + "ret;\n}\n").ok());
  const std::string line = "rndn-as s.ptx -o s.cubin -arch=sm_86 -maxrregcount=24 ";
  const std::string said = run(line + "-v").err;
  std::smatch v, m;
  ASSERT_TRUE(std::regex_search(
      said, v, std::regex("([0-9]+) bytes stack frame, ([0-9]+) bytes spill stores, ([0-9]+) bytes spill loads")))
      << said;
  EXPECT_GT(std::stol(v[2]), 0);
  fs::remove(folder_ + "/s.cubin");
  const std::string spills = fmt::format(
      "Registers are spilled to local memory in function 'k', {} bytes spill stores, {} bytes spill loads\n",
      v[2].str(), v[3].str());
  const std::string local =
      fmt::format("Local memory used for function 'k', size of stack frame: {} bytes\n", v[1].str());
  expect(line + "--warn-on-spills", 0, "", "ptxas warning : " + spills);
  expect(line + "-warn-spills -warn-lmem-usage", 0, "", "ptxas warning : " + local + "ptxas warning : " + spills);
  expect(line + "--warn-on-spills -w", 0, "", "");
  EXPECT_TRUE(fs::exists(folder_ + "/s.cubin"));
  fs::remove(folder_ + "/s.cubin");
  expect(line + "--warn-on-spills --Werror", 1, "", "ptxas error   : " + spills);
  EXPECT_FALSE(fs::exists(folder_ + "/s.cubin"));
  expect("rndn-as k.ptx -arch=sm_86 --warn-on-spills -warn-lmem-usage --Werror -o got", 0, "", "");
}

TEST_F(Standalone, AssemblerLeavesOutWhatOnlyTunes) {
  ASSERT_EQ(run("rndn-as k.ptx -arch=sm_86 -o want").exit_code, 0);
  const auto same = [&](const std::string& flags, const std::string& err) {
    expect("rndn-as k.ptx -arch=sm_86 -o got " + flags, 0, "", err);
    EXPECT_TRUE(*read_file(folder_ + "/got") == *read_file(folder_ + "/want")) << flags;
    fs::remove(folder_ + "/got");
  };
  for (const char* flags :
       {"--regAllocOptLevel=2", "--regAllocOptLevel 2", "--register-usage-level=10", "-regUsageLevel 3", "-Ofc mid",
        "-m64", "-m 64", "--machine=64", "-dlcm=ca", "-dlcm ca", "--allow-expensive-optimizations true",
        "-opt-fp-atomics", "-pic=false", "-ewp", "--maxrregcount archmax", "-suppress-double-demote-warning",
        "--split-compile 0", "--device-stack-protector=false", "-O3 -O3"})
    same(flags, "");
  same("--someNewLevel=3", "warning: unknown option --someNewLevel=3 is left out\n");
  same("--perf-per-watt-opt-level=1 -w", "");
  same("-sp-bounds-check", "warning: --sp-bounds-check is not done: the stack pointer is not checked\n");
  same("-arch=sm_90 -arch=sm_86",
       "warning: --gpu-name is given again: sm_90 counts\nwarning: --gpu-name is given again: sm_86 counts\n");
  ASSERT_TRUE(write_file(folder_ + "/more", "-O3\n --fmad=true").ok());
  same("--options-file more", "");
  expect("rndn-as k.ptx -arch=sm_86 -o got --someNewLevel=3 --Werror", 1, "",
         "error: unknown option --someNewLevel=3 is left out\n");
  EXPECT_FALSE(fs::exists(folder_ + "/got"));
}

TEST_F(Standalone, AssemblerRefusesWhatWouldBeAnotherThing) {
  for (const char* flags : {"--sanitize=memcheck", "--entry add", "-e=add", "-astoolspatch", "--compile-as-tools-patch",
                            "-c", "-version-ls"}) {
    const Ran r = run(std::string("rndn-as k.ptx -arch=sm_86 -o got ") + flags);
    EXPECT_EQ(r.exit_code, 2) << flags;
    EXPECT_THAT(r.err, StartsWith("error: unsupported: ")) << flags;
  }
  // A slip is no tuning.
  for (const auto& [slip, meant] : {std::pair{"--gpu-nmae=sm_86", "gpu-name"},
                                    {"--maxregcount=32", "maxrregcount"},
                                    {"-arhc=sm_90", "arch"},
                                    {"--output-fle=x", "output-file"}})
    expect(std::string("rndn-as k.ptx ") + slip, 2, "",
           fmt::format("error: unknown option {}; did you mean `{}`?\n", slip, meant));
  expect("rndn-as k.ptx -v=true", 2, "", "error: -v=true: the option takes no value\n");
  expect("rndn-as k.ptx --options-file missing", 1, "", "error: cannot read `missing`: No such file or directory\n");
  EXPECT_FALSE(fs::exists(folder_ + "/k.cubin"));
}

// As much as ptxas 11.8, 12.9 and 13.0 take; more would be a cubin whose kernel cannot be launched.
TEST_F(Standalone, AssemblerLimitsParameters) {
  const auto module = [&](int words, const char* version, const char* target, const char* more = "") {
    std::string text = fmt::format(".version {}\n.target {}\n.address_size 64\n.visible .entry k(\n", version, target);
    for (int k = 0; k < words; ++k) text += fmt::format("{}.param .u64 p{}", k ? ",\n" : "", k);
    text += more;
    text += fmt::format(
        ")\n{{\n.reg .b64 %a, %b;\nld.param.u64 %a, [p0];\nld.param.u64 %b, [p{}];\nst.global.u64 [%a], "
        "%b;\nret;\n}}\n",
        words - 1);
    EXPECT_TRUE(write_file(folder_ + "/p.ptx", text).ok());
  };
  const std::string much = "error: p.ptx: function k, line 4: 4360 bytes of parameters, ";
  for (const char* target : {"sm_61", "sm_86", "sm_90"}) {
    const std::string line = std::string("rndn-as p.ptx -o p -arch=") + target,
                      later = std::string(target) == "sm_61" ? "" : "; 32764 with .version 8.1 and .target sm_70";
    module(544, "7.8", "sm_60");
    expect(line, 0, "", "");
    module(545, "7.8", "sm_60");
    for (const char* level : {"", " -O0 --stencils"})
      expect(line + level, 1, "", much + target + " allows 4352" + later + "\n");
    module(544, "8.0", "sm_60", ", .param .u8 q");
    expect(
        line, 1, "",
        fmt::format("error: p.ptx: function k, line 4: 4353 bytes of parameters, {} allows 4352{}\n", target, later));
    module(545, "8.1", "sm_60");
    expect(line, 1, "", much + target + " allows 4352" + later + "\n");
  }
  module(545, "8.0", "sm_80");
  expect("rndn-as p.ptx -o p -arch=sm_90", 1, "",
         much + "sm_90 allows 4352; 32764 with .version 8.1 and .target sm_70\n");
  // All of it arrives.
  for (const char* target : {"sm_80", "sm_90"})
    for (int words : {545, 4095}) {
      module(words, "8.1", "sm_70", words == 4095 ? ", .param .b8 q[4]" : "");
      expect(std::string("rndn-as p.ptx -o p -arch=") + target, 0, "", "");
      std::string line = "rndn-launch p --arg out:8:got";
      for (int k = 1; k < words; ++k) line += fmt::format(" --arg i64:{}", 3 * k);
      if (words == 4095) line += " --arg i32:5";
      expect(line, 0, "", "");
      EXPECT_EQ(*read_file(folder_ + "/got"), std::string({static_cast<char>(3 * (words - 1)),
                                                           static_cast<char>(3 * (words - 1) >> 8), 0, 0, 0, 0, 0, 0}));
    }
  module(4095, "8.1", "sm_70", ", .param .b8 q[5]");
  expect("rndn-as p.ptx -o p -arch=sm_90", 1, "",
         "error: p.ptx: function k, line 4: 32765 bytes of parameters, sm_90 allows 32764\n");
}

// Names of cubins are any bytes; JSON is UTF-8.
TEST_F(Standalone, DisassemblerWritesJsonOfAnyName) {
  ASSERT_EQ(run("sed 's/ add(/ adXd(/' k.ptx > n.ptx && rndn-as n.ptx -arch=sm_86 -o n.cubin").exit_code, 0);
  std::string bytes = *read_file(folder_ + "/n.cubin");
  for (size_t at; (at = bytes.find("adXd")) != bytes.npos;) bytes[at + 2] = '\x80';
  ASSERT_TRUE(write_file(folder_ + "/n.cubin", bytes).ok());
  const Ran r = run("rndn-dis --json n.cubin");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("\"name\": \"ad\xef\xbf\xbd"
                               "d\""));
  const auto json = nlohmann::json::parse(r.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << r.out;
  EXPECT_EQ(json["arch"], "sm_86");
  ASSERT_EQ(json["kernels"].size(), 1u);
  const auto& kernel = json["kernels"][0];
  EXPECT_EQ(kernel["parameters"].dump(),
            "[{\"offset\":0,\"size\":8},{\"offset\":8,\"size\":8},{\"offset\":16,\"size\":4}]");
  const std::string text = run("rndn-dis n.cubin").out;
  for (const auto& line : kernel["instructions"]) {
    EXPECT_THAT(text, HasSubstr(fmt::format("/*{:04x}*/", line["address"].get<int>())));
    EXPECT_EQ(line["word"].get<std::string>().size(), 33u);
    EXPECT_TRUE(line["control"]["stall"].is_number());
  }
  EXPECT_GT(kernel["instructions"].size(), 8u);
}

TEST_F(Standalone, AssemblerContractsUnlessToldNotTo) {
  ASSERT_TRUE(write_file(folder_ + "/f.ptx",
                         ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry f(.param .u64 p) {\n.reg .b64 "
                         "%p;\n.reg .f32 %x, %y, %z;\n"
                         "ld.param.u64 %p, [p];\nld.global.f32 %x, [%p];\nld.global.f32 %y, [%p+4];\n"
                         "mul.f32 %z, %x, %x;\nadd.f32 %y, %z, %y;\n"
                         "st.global.f32 [%p], %y;\nret;\n}\n")
                  .ok());
  for (const char* flag : {"", "--fmad=true", "--fmad true", "-fmad=true", "-fmad true"})
    EXPECT_THAT(run(std::string("rndn-as f.ptx -o f ") + flag + " && rndn-dis f").out, HasSubstr("FFMA")) << flag;
  for (const char* flag : {"--fmad=false", "--fmad false", "-fmad=false", "-fmad false", "-O0"})
    EXPECT_THAT(run(std::string("rndn-as f.ptx -o f ") + flag + " && rndn-dis f").out, Not(HasSubstr("FFMA"))) << flag;
}

TEST_F(Standalone, AssemblerWarnsOfWhatItDoesNotDo) {
  expect("rndn-as k.ptx -maxrregcount 1 -o got", 0, "",
         "warning: --maxrregcount 1 is raised to 16, the least number of registers of a kernel\n");
  expect("rndn-as k.ptx -maxrregcount 16 -o got", 0, "", "");
}

TEST_F(Standalone, AssemblerRefuses) {
  const std::string see = "\n(see rndn-as --help)\n";
  EXPECT_EQ(run("rndn-as").exit_code, 2);
  EXPECT_EQ(run("rndn-as k.ptx other.ptx").exit_code, 2);
  EXPECT_EQ(run("rndn-as k.ptx --nonsense").exit_code, 2);
  EXPECT_EQ(run("rndn-as k.ptx -o").exit_code, 2);
  for (const std::string flag : {"-c", "--compile-only"})
    expect("rndn-as k.ptx -arch=sm_86 " + flag, 2, "",
           "error: unsupported: " + flag + "; cubins are whole programs, there are no relocatable objects\n");
  expect("rndn-as k.ptx -O4", 2, "", "error: -O,--opt-level: expected a number from 0 to 3, got `4`" + see);
  for (const char* bad : {"256", "4294967297", "-1", "x", "1x"}) {
    expect(std::string("rndn-as k.ptx --maxrregcount='") + bad + "'", 2, "",
           std::string("error: --maxrregcount: expected a number from 0 to 255, got `") + bad + "`" + see);
  }
  Ran target = run("rndn-as k.ptx -arch=sm_20");
  EXPECT_EQ(target.exit_code, 2);
  EXPECT_THAT(target.err, StartsWith("error: unknown target `sm_20`; targets are sm_60"));
  expect("rndn-as missing.ptx", 1, "", "error: cannot read `missing.ptx`: No such file or directory\n");
  expect("rndn-as k.ptx -o /nonexistent/x", 3, "", "error: cannot write `/nonexistent/x`: No such file or directory\n");
  ASSERT_TRUE(write_file(folder_ + "/new.ptx", ".version 8.0\n.target sm_90\n"));
  expect("rndn-as new.ptx -arch=sm_86", 1, "", "error: new.ptx: .target sm_90 does not run on sm_86\n");
}

TEST_F(Standalone, MemoryThatRunsOut) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "skipped: AddressSanitizer needs address space without limit";
#endif
  for (const char* line : {"rndn-as /dev/zero", "rndn-dis /dev/zero", "rndn-launch /dev/zero",
                           "rndn-launch k.ptx --arg buf:1000000000:iota", "rndn-launch k.ptx --arg in:/dev/zero"})
    expect(std::string("ulimit -v 400000; ") + line, 3, "", "error: not enough memory\n");
}

TEST_F(Standalone, OutputThatIsFull) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "skipped: this system has no /dev/full";
  ASSERT_EQ(run("rndn-as k.ptx -o k.cubin").exit_code, 0);
  for (const char* line :
       {"rndn-as --help", "rndn-as --version", "rndn-dis --help", "rndn-dis --version", "rndn-launch --help",
        "rndn-launch --version", "rndn-launch --list k.cubin", "rndn-dis k.cubin", "rndn-as k.ptx -o -"}) {
    expect(std::string(line) + " > /dev/full", 3, "", "error: cannot write `stdout`: No space left on device\n");
    Ran r = run(line);
    EXPECT_EQ(r.exit_code, 0) << line;
    EXPECT_FALSE(r.out.empty()) << line;
  }
}

TEST_F(Standalone, LaunchPassesNumbersWholeOrNotAtAll) {
  ASSERT_EQ(run("rndn-as k.ptx -arch=sm_86 -o k.cubin").exit_code, 0);
  auto sum = [&](const std::string& a, const std::string& b) {
    Ran r = run("rndn-launch k.cubin --kernel add --arg out:8 --arg " + a + " --arg " + b);
    EXPECT_EQ(r.exit_code, 0) << a << " " << b << r.err;
    int64_t value = 0;
    if (r.out.size() == 8)
      memcpy(&value, r.out.data(), 8);
    else
      ADD_FAILURE() << r.out.size() << " bytes";
    return value;
  };
  EXPECT_EQ(sum("i64:-9223372036854775808", "i32:2147483647"), INT64_MIN + INT32_MAX);
  EXPECT_EQ(sum("u64:18446744073709551615", "u32:4294967295"), -2);
  EXPECT_EQ(sum("i64:0x10", "i32:-0x80000000"), 16 + int64_t{INT32_MIN});
  EXPECT_EQ(sum("f64:2", "i32:0"), 0x4000000000000000);
  EXPECT_EQ(sum("u64:0", "f32:1.5"), 0x3fc00000);
  for (const char* bad : {"i32:99999999999",
                          "i32:2147483648",
                          "i32:-2147483649",
                          "i32:0xffffffff",
                          "u32:-1",
                          "u32:4294967296",
                          "i32:",
                          "i32: 1",
                          "i32:1x",
                          "i64:9223372036854775808",
                          "u64:18446744073709551616",
                          "u64:-1",
                          "f32:1e39",
                          "f64:1e400",
                          "f32:x",
                          "f32:",
                          "out:-1:x",
                          "out:99999999999999999999:x",
                          "out:8:",
                          "buf:8:rand=-1",
                          "buf:8:none",
                          "buf:8"}) {
    const std::string text = bad;
    expect("rndn-launch k.cubin --arg '" + text + "'", 2, "",
           "error: --arg " + text + ": not a value of kind `" + text.substr(0, text.find(':')) + "`\n");
  }
  for (const char* bad :
       {"--threads 4294967297", "--threads -1", "--limit -1", "--limit 18446744073709551616", "--seed x", "--seed -1",
        "--shared 1048577", "--shared 4294967296", "--grid 0", "--grid 1,2,3,4", "--grid 4294967296", "--block -1",
        "--block 1,", "--device gpu", "--device cuda:x", "--target sm_20", "--arch sm_20"}) {
    Ran r = run(std::string("rndn-launch k.cubin ") + bad);
    EXPECT_EQ(r.exit_code, 2) << bad;
    EXPECT_THAT(r.err, StartsWith("error: ")) << bad;
    EXPECT_THAT(r.err, HasSubstr("(see rndn-launch --help)")) << bad;
  }
  // What a GPU cannot do is not passed over in silence.
  for (const char* bad : {"--check", "--hazards", "--check-races", "--weak-memory", "--seed 3", "--limit 9"}) {
    Ran r = run(std::string("rndn-launch k.cubin --device cuda ") + bad);
    EXPECT_EQ(r.exit_code, 2) << bad;
    EXPECT_THAT(r.err, HasSubstr("are the simulator's")) << bad;
  }
}

TEST_F(Standalone, LaunchWritesWhereItIsTold) {
  ASSERT_EQ(run("rndn-as k.ptx -arch=sm_86 -o k.cubin").exit_code, 0);
  const std::string common = "rndn-launch k.cubin --arch sm_86 --grid=1,1,1 --block 1 ";
  expect(common + "--arg out:8 --arg u64:5 --arg i32:2 -o F", 0, "", "");
  EXPECT_EQ(*read_file(folder_ + "/F"), std::string("\7\0\0\0\0\0\0\0", 8));
  expect(common + "--arg out:8:G --arg u64:5 --arg i32:-6 -o H", 0, "", "");
  EXPECT_EQ(*read_file(folder_ + "/G"), std::string(8, '\xff'));
  EXPECT_FALSE(fs::exists(folder_ + "/H"));  // nothing was left for it
  expect(common + "--arg inout:F:F --arg u64:1 --arg i32:2", 0, "", "");
  EXPECT_EQ(*read_file(folder_ + "/F"), std::string("\3\0\0\0\0\0\0\0", 8));
  expect("rndn-launch k.cubin --list -o L", 0, "", "");
  EXPECT_THAT(*read_file(folder_ + "/L"), StartsWith("add registers "));
  EXPECT_THAT(*read_file(folder_ + "/L"), HasSubstr("parameters 8 8 4\n"));
  expect("rndn-launch k.cubin --list --kernel k -o /nonexistent/x", 3, "",
         "error: cannot write `/nonexistent/x`: No such file or directory\n");
  expect("rndn-launch k.cubin --kernel k", 1, "", "error: k.cubin has no kernel `k`\n");
  expect("rndn-launch k.cubin --arg u64:0 --arg u64:1 --arg i32:2 --check 2>/dev/null", 1, "",
         "");  // writes to address 0
}

}  // namespace
}  // namespace rndn::standalone_test
