// The cache of machine code: what it gives back is what was put in, and nothing else.
#include "runtime/compiler/code_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "assembler/isa/isa.h"
#include "ptx/parse.h"

namespace rndn::runtime {
namespace {

namespace fs = std::filesystem;

constexpr const char* text = R"(.version 6.0
.target sm_60
.address_size 64
.visible .entry twice(.param .u64 p) {
  .reg .u64 %rd<2>;
  .reg .u32 %r<3>;
  ld.param.u64 %rd1, [p];
  ld.global.u32 %r1, [%rd1];
  add.u32 %r2, %r1, 7;
  st.global.u32 [%rd1], %r2;
  ret;
}
)";

class CodeCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rndn-code-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    module_ = parse(text);
    options_.target = isa::find_target("sm_86");
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  static ptx::Module parse(std::string source) {
    SourceManager sources;
    DiagnosticSink sink;
    ptx::Module module = ptx::parse(sources.add("m.ptx", std::move(source)), sources, sink);
    EXPECT_FALSE(sink.has_errors()) << render(sink, sources);
    return module;
  }
  static std::string replaced(const std::string& from, const std::string& to) {
    std::string s = text;
    s.replace(s.find(from), from.size(), to);
    return s;
  }
  assembler::Assembled make(CodeCache* cache) {
    Timings timings;
    auto made = assemble(cache, module_, options_, timings);
    EXPECT_TRUE(made.ok()) << made.error().message;
    // Only the assembler selects instructions.
    assembled_ = timings.exclusive_ns(Phase::select) > 0;
    return *made;
  }

  fs::path folder_;
  ptx::Module module_;
  assembler::Options options_;
  bool assembled_ = false;
};

TEST_F(CodeCacheTest, GivesBackWhatItWasGivenAlsoToAnotherProcess) {
  CodeCache first(folder_.string());
  const assembler::Assembled made = make(&first);
  EXPECT_TRUE(assembled_);
  EXPECT_EQ(make(&first).cubin, made.cubin);
  EXPECT_FALSE(assembled_) << "from memory";
  CodeCache second(folder_.string());
  const assembler::Assembled again = make(&second);
  EXPECT_FALSE(assembled_) << "from the file";
  EXPECT_EQ(again.cubin, made.cubin);
  ASSERT_EQ(again.kernels.size(), 1u);
  EXPECT_EQ(again.kernels[0].name, "twice");
  EXPECT_EQ(again.kernels[0].registers, made.kernels[0].registers);
  EXPECT_EQ(again.kernels[0].instructions, made.kernels[0].instructions);
  CodeCache memory_only("");
  make(&memory_only);
  EXPECT_TRUE(assembled_);
  make(&memory_only);
  EXPECT_FALSE(assembled_);
  make(nullptr);
  EXPECT_TRUE(assembled_);
}

TEST_F(CodeCacheTest, EveryDifferenceIsAnotherKey) {
  const CodeCache::Key key = CodeCache::key_of(module_, options_);
  EXPECT_EQ(CodeCache::key_of(parse(text), options_), key);
  for (const auto& [from, to] : {std::pair{"%r1, 7", "%r1, 8"},
                                 {"add.u32", "sub.u32"},
                                 {"twice", "thrice"},
                                 {"[%rd1], %r2", "[%rd1+4], %r2"},
                                 {"[%rd1], %r2", "[%rd1], %r1"},
                                 {"ld.global.u32 %r1", "ld.volatile.global.u32 %r1"},
                                 {"  ret;", "  bar.sync 0;\n  ret;"},
                                 {".param .u64 p) {", ".param .u64 p) .maxntid 64 {"},
                                 {".param .u64 p)", ".param .u64 p, .param .u64 q)"},
                                 {"  .reg .u32", "  .shared .u32 s[4];\n  .reg .u32"},
                                 {".version 6.0", ".version 6.3"}})
    EXPECT_NE(CodeCache::key_of(parse(replaced(from, to)), options_), key) << from << " -> " << to;
  for (auto change :
       {+[](assembler::Options& o) { o.target = isa::find_target("sm_80"); },
        +[](assembler::Options& o) { o.level = 0; }, +[](assembler::Options& o) { o.max_registers = 32; },
        +[](assembler::Options& o) { o.scheduler = assembler::Scheduler::linear; },
        +[](assembler::Options& o) { o.branch_inlining = false; }, +[](assembler::Options& o) { o.unrolling = false; },
        +[](assembler::Options& o) { o.verify_passes = true; }, +[](assembler::Options& o) { o.line_tables = true; },
        +[](assembler::Options& o) { o.stalls = assembler::Stalls::random; },
        +[](assembler::Options& o) { o.stall_seed = 2; }}) {
    assembler::Options other = options_;
    change(other);
    EXPECT_NE(CodeCache::key_of(module_, other), key);
  }
  for (auto no_matter : {+[](assembler::Options& o) { o.pool = reinterpret_cast<ThreadPool*>(8); },
                         +[](assembler::Options& o) { o.workspace = reinterpret_cast<assembler::Workspace*>(8); }}) {
    assembler::Options other = options_;
    no_matter(other);
    EXPECT_EQ(CodeCache::key_of(module_, other), key);
  }
}

TEST_F(CodeCacheTest, TablesOfAModuleAreInItsKey) {
  const std::string tables = R"(.version 7.0
.target sm_60
.address_size 64
.file 1 "a.cu"
.global .u32 here;
.global .u32 there;
.global .u64 table[2] = {here, there+4};
.visible .entry jumps(.param .u32 way, .param .u64 callee) {
  .reg .u32 %r<2>;
  .reg .u64 %rd<2>;
  one: .callprototype _ (.param .b32 _);
  ld.param.u32 %r1, [way];
  ld.param.u64 %rd1, [callee];
  ways: .branchtargets first, second, second;
  brx.idx %r1, ways;
first:
  .loc 1 7 3
  st.global.u32 [here], %r1;
second:
  ret;
}
)";
  const CodeCache::Key key = CodeCache::key_of(parse(tables), options_);
  for (const auto& [from, to] : {std::pair{"{here, there+4}", "{there, there+4}"},
                                 {"there+4}", "there+8}"},
                                 {"there+4}", "generic(there)+4}"},
                                 {"{here, there+4}", "{0, there+4}"},
                                 {"second, second;", "second, first;"},
                                 {"second, second;", "second;"},
                                 {"(.param .b32 _)", "(.param .b64 _)"},
                                 {"a.cu", "b.cu"},
                                 {".loc 1 7 3", ".loc 1 8 3"},
                                 {"_ (.param .b32 _)", "(.param .b32 _) _ (.param .b32 _)"}}) {
    std::string other = tables;
    other.replace(other.find(from), std::string_view(from).size(), to);
    EXPECT_NE(CodeCache::key_of(parse(other), options_), key) << from << " -> " << to;
  }
}

TEST_F(CodeCacheTest, DamagedFilesAreAsIfTheyWereNotThere) {
  assembler::Assembled made;
  {
    CodeCache cache(folder_.string());
    made = make(&cache);
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder_ / "code")) files.push_back(entry.path());
  ASSERT_EQ(files.size(), 1u) << "nothing is left of the name it was written under";
  std::ifstream in(files[0], std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (size_t position = 0; position < whole.size(); position += 1 + whole.size() / 97) {
    for (bool cut : {false, true}) {
      std::string damaged = cut ? whole.substr(0, position) : whole;
      if (!cut) damaged[position] ^= 0x10;
      std::ofstream(files[0], std::ios::binary | std::ios::trunc) << damaged;
      CodeCache cache(folder_.string());
      EXPECT_FALSE(cache.find(CodeCache::key_of(module_, options_)).has_value()) << position << (cut ? " cut" : "");
    }
  }
  CodeCache cache(folder_.string());
  EXPECT_EQ(make(&cache).cubin, made.cubin);
  EXPECT_TRUE(assembled_);
  CodeCache nowhere("/dev/null/no folder");
  EXPECT_EQ(make(&nowhere).cubin, made.cubin) << "a folder that cannot be made is no error";
}

TEST_F(CodeCacheTest, NothingIsLeftOfAFileThatCannotTakeItsName) {
  {
    CodeCache cache(folder_.string());
    make(&cache);
  }
  const fs::path name = fs::directory_iterator(folder_ / "code")->path();
  fs::remove(name);
  fs::create_directories(name / "in the way");
  CodeCache cache(folder_.string());
  make(&cache);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "code"), fs::directory_iterator()), 1);
}

TEST_F(CodeCacheTest, ManyThreadsShareOne) {
  CodeCache cache(folder_.string());
  std::vector<std::thread> threads;
  std::vector<std::vector<std::byte>> cubins(8);
  for (size_t t = 0; t < cubins.size(); ++t)
    threads.emplace_back([&, t] {
      Timings timings;
      auto made = assemble(&cache, module_, options_, timings);
      if (made) cubins[t] = made->cubin;
    });
  for (std::thread& t : threads) t.join();
  ASSERT_FALSE(cubins[0].empty());
  for (const auto& c : cubins) EXPECT_EQ(c, cubins[0]);
}

}  // namespace
}  // namespace rndn::runtime
