// NVIDIA's two interfaces over rndn's assembler: the cubins of rndn-as, the documented errors for
// what is wrong with a call, an option or a text, and logs that say what.
#include "assembler/nvidia/nvidia.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "libraries/base/system/files.h"

namespace {

const std::string ptx = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 to) {
  .reg .u64 %to;
  .reg .u32 %id;
  ld.param.u64 %to, [to];
  mov.u32 %id, %tid.x;
  st.global.u32 [%to], %id;
  ret;
}
)";

struct Compiler {
  nvPTXCompilerHandle handle = nullptr;
  explicit Compiler(const std::string& text) {
    EXPECT_EQ(nvPTXCompilerCreate(&handle, text.size(), text.c_str()), NVPTXCOMPILE_SUCCESS);
  }
  ~Compiler() {
    if (handle) {
      EXPECT_EQ(nvPTXCompilerDestroy(&handle), NVPTXCOMPILE_SUCCESS);
    }
    EXPECT_EQ(handle, nullptr);
  }
  nvPTXCompileResult compile(std::vector<const char*> options) {
    return nvPTXCompilerCompile(handle, static_cast<int>(options.size()), options.data());
  }
  std::string errors() {
    size_t size = 0;
    EXPECT_EQ(nvPTXCompilerGetErrorLogSize(handle, &size), NVPTXCOMPILE_SUCCESS);
    std::vector<char> log(size + 1);
    EXPECT_EQ(nvPTXCompilerGetErrorLog(handle, log.data()), NVPTXCOMPILE_SUCCESS);
    return log.data();
  }
  std::string info() {
    size_t size = 0;
    EXPECT_EQ(nvPTXCompilerGetInfoLogSize(handle, &size), NVPTXCOMPILE_SUCCESS);
    std::vector<char> log(size + 1);
    EXPECT_EQ(nvPTXCompilerGetInfoLog(handle, log.data()), NVPTXCOMPILE_SUCCESS);
    return log.data();
  }
  std::string program() {
    size_t size = 0;
    EXPECT_EQ(nvPTXCompilerGetCompiledProgramSize(handle, &size), NVPTXCOMPILE_SUCCESS);
    std::string cubin(size, 0);
    EXPECT_EQ(nvPTXCompilerGetCompiledProgram(handle, cubin.data()), NVPTXCOMPILE_SUCCESS);
    return cubin;
  }
};

struct Link {
  nvJitLinkHandle handle = nullptr;
  nvJitLinkResult created;
  explicit Link(std::vector<const char*> options) {
    created = nvJitLinkCreate(&handle, static_cast<uint32_t>(options.size()), options.data());
  }
  ~Link() { EXPECT_EQ(nvJitLinkDestroy(&handle), NVJITLINK_SUCCESS); }
  nvJitLinkResult add(const std::string& data, nvJitLinkInputType type = NVJITLINK_INPUT_PTX) {
    return nvJitLinkAddData(handle, type, data.data(), data.size(), "a.ptx");
  }
  std::string errors() {
    size_t size = 99;
    EXPECT_EQ(nvJitLinkGetErrorLogSize(handle, &size), NVJITLINK_SUCCESS);
    std::vector<char> log(size + 1);
    EXPECT_EQ(nvJitLinkGetErrorLog(handle, log.data()), NVJITLINK_SUCCESS);
    return log.data();
  }
  std::string cubin() {
    size_t size = 0;
    EXPECT_EQ(nvJitLinkGetLinkedCubinSize(handle, &size), NVJITLINK_SUCCESS);
    std::string made(size, 0);
    EXPECT_EQ(nvJitLinkGetLinkedCubin(handle, made.data()), NVJITLINK_SUCCESS);
    return made;
  }
};

TEST(PtxCompiler, CompilesOnceAndSaysWhatItTook) {
  Compiler c(ptx);
  size_t size = 0;
  EXPECT_EQ(nvPTXCompilerGetCompiledProgramSize(c.handle, &size), NVPTXCOMPILE_ERROR_COMPILER_INVOCATION_INCOMPLETE);
  ASSERT_EQ(c.compile({"--gpu-name=sm_90", "--verbose"}), NVPTXCOMPILE_SUCCESS);
  const std::string hopper = c.program();
  EXPECT_TRUE(
      hopper.starts_with("\x7f"
                         "ELF"));
  EXPECT_NE(c.info().find("Compiling entry function 'store' for 'sm_90'"), std::string::npos) << c.info();
  EXPECT_NE(c.info().find("0 bytes spill stores"), std::string::npos);
  EXPECT_EQ(c.errors(), "");
  ASSERT_EQ(c.compile({"-arch", "sm_80"}), NVPTXCOMPILE_SUCCESS);
  EXPECT_NE(c.program(), hopper);
  EXPECT_EQ(c.info(), "");
  ASSERT_EQ(c.compile({"-arch=compute_80"}), NVPTXCOMPILE_SUCCESS);
  EXPECT_EQ(c.program(), "");
}

TEST(PtxCompiler, SaysWhatIsWrong) {
  Compiler wrong(".version 7.0\n.target sm_80\n.address_size 64\n.entry k() { add.u32 %x, %y; }\n");
  EXPECT_EQ(wrong.compile({}), NVPTXCOMPILE_ERROR_COMPILATION_FAILURE);
  EXPECT_NE(wrong.errors().find("<ptx>:4:"), std::string::npos) << wrong.errors();
  size_t size = 0;
  EXPECT_EQ(nvPTXCompilerGetCompiledProgramSize(wrong.handle, &size),
            NVPTXCOMPILE_ERROR_COMPILER_INVOCATION_INCOMPLETE);
  Compiler newer(".version 99.9\n.target sm_80\n");
  EXPECT_EQ(newer.compile({}), NVPTXCOMPILE_ERROR_UNSUPPORTED_PTX_VERSION);
  Compiler fine(ptx);
  for (const char* option : {"--maxrregcount=many", "-O7", "--nonsense", "store.ptx", "--fmad=perhaps"}) {
    EXPECT_EQ(fine.compile({option}), NVPTXCOMPILE_ERROR_INVALID_INPUT) << option;
    EXPECT_NE(fine.errors(), "") << option;
  }
  EXPECT_EQ(fine.compile({"-arch=sm_12"}), NVPTXCOMPILE_ERROR_INVALID_INPUT);
  EXPECT_EQ(fine.errors(), "ptxas fatal   : Value 'sm_12' is not defined for option 'gpu-name'\n");
  EXPECT_EQ(fine.compile({"-arch=sm_61"}), NVPTXCOMPILE_ERROR_COMPILATION_FAILURE);  // the text is of sm_80
  EXPECT_EQ(fine.compile({"--regAllocOptLevel=2", "-arch=sm_86"}), NVPTXCOMPILE_SUCCESS);
}

TEST(PtxCompiler, TakesNoNulls) {
  EXPECT_EQ(nvPTXCompilerCreate(nullptr, 1, "x"), NVPTXCOMPILE_ERROR_INVALID_INPUT);
  nvPTXCompilerHandle none = nullptr;
  EXPECT_EQ(nvPTXCompilerCreate(&none, 0, nullptr), NVPTXCOMPILE_ERROR_INVALID_INPUT);
  EXPECT_EQ(nvPTXCompilerDestroy(&none), NVPTXCOMPILE_ERROR_INVALID_COMPILER_HANDLE);
  EXPECT_EQ(nvPTXCompilerCompile(nullptr, 0, nullptr), NVPTXCOMPILE_ERROR_INVALID_COMPILER_HANDLE);
  size_t size = 0;
  EXPECT_EQ(nvPTXCompilerGetErrorLogSize(nullptr, &size), NVPTXCOMPILE_ERROR_INVALID_COMPILER_HANDLE);
  Compiler c(ptx);
  EXPECT_EQ(nvPTXCompilerCompile(c.handle, 1, nullptr), NVPTXCOMPILE_ERROR_INVALID_INPUT);
  EXPECT_EQ(nvPTXCompilerGetInfoLog(c.handle, nullptr), NVPTXCOMPILE_ERROR_INVALID_INPUT);
  EXPECT_EQ(nvPTXCompilerGetVersion(nullptr, nullptr), NVPTXCOMPILE_ERROR_INVALID_INPUT);
  unsigned major = 0, minor = 0;
  EXPECT_EQ(nvPTXCompilerGetVersion(&major, &minor), NVPTXCOMPILE_SUCCESS);
  EXPECT_GE(major, 13u);
}

TEST(JitLink, CompilesOneModule) {
  Link link({"-arch=sm_80", "-lineinfo", "-O3", "-Xptxas=-v", "-split-compile=2", "-fma=true"});
  ASSERT_EQ(link.created, NVJITLINK_SUCCESS);
  size_t size = 0;
  EXPECT_EQ(nvJitLinkGetLinkedCubinSize(link.handle, &size), NVJITLINK_ERROR_INTERNAL);
  ASSERT_EQ(link.add(ptx + '\0'), NVJITLINK_SUCCESS);
  ASSERT_EQ(nvJitLinkComplete(link.handle), NVJITLINK_SUCCESS);
  EXPECT_EQ(nvJitLinkComplete(link.handle), NVJITLINK_ERROR_INTERNAL);
  EXPECT_EQ(link.errors(), "");
  EXPECT_EQ(nvJitLinkGetInfoLogSize(link.handle, &size), NVJITLINK_SUCCESS);
  std::vector<char> info(size + 1);
  EXPECT_EQ(nvJitLinkGetInfoLog(link.handle, info.data()), NVJITLINK_SUCCESS);
  EXPECT_NE(std::string(info.data()).find("Used "), std::string::npos);
  const std::string cubin = link.cubin();
  // A cubin is given back as it is.
  Link again({"-arch=sm_80"});
  ASSERT_EQ(again.add(cubin, NVJITLINK_INPUT_ANY), NVJITLINK_SUCCESS);
  ASSERT_EQ(nvJitLinkComplete(again.handle), NVJITLINK_SUCCESS);
  EXPECT_EQ(again.cubin(), cubin);
}

TEST(JitLink, HasTheDocumentedErrors) {
  EXPECT_EQ(Link({}).created, NVJITLINK_ERROR_MISSING_ARCH);
  EXPECT_EQ(Link({"-arch=sm_80", "-nonsense"}).created, NVJITLINK_ERROR_UNRECOGNIZED_OPTION);
  EXPECT_EQ(Link({"-arch=sm_81"}).created, NVJITLINK_ERROR_UNRECOGNIZED_ARCH);
  EXPECT_EQ(Link({"-arch=sm_80", "-lto"}).created, NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS);
  const auto added = [](const std::string& data, nvJitLinkInputType type) {
    Link link({"-arch=sm_80"});
    const nvJitLinkResult result = link.add(data, type);
    EXPECT_NE(link.errors(), "");
    EXPECT_NE(nvJitLinkComplete(link.handle), NVJITLINK_SUCCESS);
    return result;
  };
  EXPECT_EQ(added(".version 7.0\n.target sm_80\n.entry k() { add.u32 %x; }", NVJITLINK_INPUT_PTX),
            NVJITLINK_ERROR_PTX_COMPILE);
  EXPECT_EQ(added(".version 7.0\n.target sm_90\n.entry k() { ret; }", NVJITLINK_INPUT_PTX),
            NVJITLINK_ERROR_PTX_COMPILE);
  EXPECT_EQ(added("nonsense", NVJITLINK_INPUT_PTX), NVJITLINK_ERROR_INCORRECT_INPUT_TYPE);
  EXPECT_EQ(added("nonsense", NVJITLINK_INPUT_CUBIN), NVJITLINK_ERROR_INCORRECT_INPUT_TYPE);
  EXPECT_EQ(added("", NVJITLINK_INPUT_ANY), NVJITLINK_ERROR_INCORRECT_INPUT_TYPE);
  EXPECT_EQ(added("x", NVJITLINK_INPUT_LTOIR), NVJITLINK_ERROR_LTO_NOT_ENABLED);
  EXPECT_EQ(added("x", NVJITLINK_INPUT_FATBIN), NVJITLINK_ERROR_UNRECOGNIZED_INPUT);
  Link two({"-arch=sm_80"});
  EXPECT_EQ(two.add(ptx), NVJITLINK_SUCCESS);
  EXPECT_EQ(two.add(ptx), NVJITLINK_ERROR_INVALID_INPUT);
  EXPECT_EQ(nvJitLinkAddFile(two.handle, NVJITLINK_INPUT_PTX, "/no/such/file.ptx"), NVJITLINK_ERROR_INVALID_INPUT);
  EXPECT_EQ(nvJitLinkAddData(two.handle, NVJITLINK_INPUT_PTX, nullptr, 1, "a"), NVJITLINK_ERROR_NULL_INPUT);
  EXPECT_EQ(nvJitLinkComplete(nullptr), NVJITLINK_ERROR_NULL_INPUT);
  EXPECT_EQ(nvJitLinkCreate(nullptr, 0, nullptr), NVJITLINK_ERROR_NULL_INPUT);
  EXPECT_EQ(nvJitLinkDestroy(nullptr), NVJITLINK_ERROR_NULL_INPUT);
}

TEST(JitLink, ThreadsCompileAtOnce) {
  std::vector<std::string> cubins(8);
  std::vector<std::thread> threads;
  for (std::string& cubin : cubins)
    threads.emplace_back([&cubin] {
      Link link({"-arch=sm_90"});
      ASSERT_EQ(link.add(ptx), NVJITLINK_SUCCESS);
      ASSERT_EQ(nvJitLinkComplete(link.handle), NVJITLINK_SUCCESS);
      cubin = link.cubin();
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& cubin : cubins) EXPECT_EQ(cubin, cubins[0]);
}

// A program in C that has no header of ours, by the names under which programs look for the library.
TEST(FromTheDocumentation, CubinsAreThoseOfRndnAs) {
  const std::string folder = testing::TempDir() + "rndn_nvidia_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const std::string file = folder + "/store.ptx";
  ASSERT_TRUE(rndn::write_file(file, ptx).ok());
  const std::string bin = RNDN_BIN_DIR;
  const auto run = [](const std::string& command) { return std::system(command.c_str()); };
  ASSERT_EQ(run(bin + "/rndn-as -arch=sm_90 " + file + " -o " + folder + "/as.cubin"), 0);
  const std::string wanted = *rndn::read_file(folder + "/as.cubin");
  for (const char* name : {"libnvptxcompiler.so", "libnvJitLink.so", "libnvJitLink.so.12", "libnvJitLink.so.13"}) {
    const std::string a = folder + "/a.cubin", b = folder + "/b.cubin";
    ASSERT_EQ(run(bin + "/nvidia_from_the_documentation " + bin + "/../lib/nvidia/" + name + " sm_90 " + file + " " +
                  a + " " + b + " > " + folder + "/log"),
              0)
        << name;
    EXPECT_EQ(*rndn::read_file(a), wanted) << name;
    EXPECT_EQ(*rndn::read_file(b), wanted) << name;
    EXPECT_NE(rndn::read_file(folder + "/log")->find("Compiling entry function 'store'"), std::string::npos);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
