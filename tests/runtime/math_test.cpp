// Functions of libdevice: where their PTX comes from, and what happens where it cannot be had. That they are right is coverage_test.cpp's to show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "libraries/libdevice/functions.h"
#include "runtime/engine.h"
#include "runtime/plan/fallbacks.h"
#include "runtime/simulator/simulator_device.h"
#include "runtime/data/tables.h"

namespace rndn::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MathTest : public ::testing::Test {
 protected:
  MathTest() : folder_(fs::temp_directory_path() / fmt::format("rndn_math_{}", getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~MathTest() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  fs::path folder_;
};

TEST_F(MathTest, SaysWhatIsMissing) {
  libdevice::Math nothing({.file = path("libdevice.ptx"), .program = path("none"), .bitcode = {path("x.bc")}});
  ASSERT_FALSE(nothing.module());
  EXPECT_EQ(nothing.module().error().message,
            fmt::format("the math functions need libdevice as PTX: there is neither {} nor NVIDIA's libdevice.10.bc to "
                        "make it from",
                        path("libdevice.ptx")));
  write("x.bc", "BC");
  libdevice::Math no_program({.file = path("libdevice.ptx"),
                              .program = path("none"),
                              .bitcode = {path("y.bc"), path("x.bc")},
                              .cache = path("cache")});
  ASSERT_FALSE(no_program.module());
  EXPECT_THAT(no_program.module().error().message, HasSubstr(path("none")));
  libdevice::Math no_cache({.file = path("libdevice.ptx"), .program = "/bin/true", .bitcode = {path("x.bc")}});
  ASSERT_FALSE(no_cache.module());
  EXPECT_THAT(no_cache.module().error().message, HasSubstr("no cache folder"));
}

TEST_F(MathTest, FilesThatAreNotThePtxAreRefused) {
  write("empty.ptx", ".version 6.0\n.target sm_60\n.address_size 64\n");
  libdevice::Math empty({.file = path("empty.ptx")});
  ASSERT_FALSE(empty.module());
  EXPECT_THAT(empty.module().error().message, HasSubstr("has no function `__nv_log`"));
  write("broken.ptx", "no PTX at all");
  libdevice::Math broken({.file = path("broken.ptx")});
  ASSERT_FALSE(broken.module());
  EXPECT_THAT(broken.module().error().message, HasSubstr("broken.ptx:1"));
}

// The program stands for rndn-libdevice: it writes a function of each name, and counts its calls.
TEST_F(MathTest, WhatIsMadeOnceIsKept) {
  std::string ptx = ".version 6.0\n.target sm_60\n.address_size 64\n";
  for (std::string_view name : libdevice::function_names)
    for (const char* suffix : {"", "f"}) ptx += fmt::format(".func {}{}() {{ ret; }}\n", name, suffix);
  write("ptx", ptx);
  write("make", fmt::format("#!/bin/sh\necho called >> {}\ncat {} > \"$3\"\n", path("calls"), path("ptx")));
  fs::permissions(folder_ / "make", fs::perms::owner_all);
  write("x.bc", "BC");
  const libdevice::Places places{
      .file = path("none"), .program = path("make"), .bitcode = {path("x.bc")}, .cache = path("cache")};
  for (int k = 0; k < 2; ++k) {
    libdevice::Math math(places);
    auto module = math.module();
    ASSERT_TRUE(module) << module.error().message;
    EXPECT_EQ((*module)->functions.size(), 2 * std::size(libdevice::function_names));
  }
  EXPECT_EQ(fs::file_size(folder_ / "calls"), 7u) << "made once";
  write("x.bc", "other");
  libdevice::Math other(places);
  EXPECT_TRUE(other.module());
  EXPECT_EQ(fs::file_size(folder_ / "calls"), 14u) << "other bitcode, other PTX";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "cache"), fs::directory_iterator()), 2);
  write("make", "#!/bin/sh\nexit 1\n");
  write("x.bc", "a third");
  libdevice::Math failing(places);
  ASSERT_FALSE(failing.module());
  EXPECT_THAT(failing.module().error().message, HasSubstr("could not make PTX"));
}

constexpr const char* sines = R"(module m { import Builtin.*; def main() : f64 {
  x:? = @range(10:i64); y:? = @sin(x); z:? = @plus(y, 1:f64); return z; } })";

TEST_F(MathTest, WithoutThemTheInterpreterRunsAndTheReasonIsSaid) {
  libdevice::Math nothing({.file = path("libdevice.ptx")});
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  CompileOptions options;
  options.math = &nothing;
  auto compiled = compile(sources.add("t.hir", sines), sources, options, sink, timings);
  ASSERT_TRUE(compiled) << compiled.error().message;
  EXPECT_THAT(fallbacks_of(*compiled, sources),
              ElementsAre(HasSubstr("t.hir:2:25: `sin` (the math functions need libdevice as PTX: there is neither")));
  data::NoTables tables;
  auto device = open_simulator("sm_86");
  ASSERT_TRUE(device);
  Engine engine(**device, tables);
  auto plan = engine.plan(*compiled, sources, {}, timings);
  ASSERT_TRUE(plan) << plan.error().message;
  auto got = engine.run(**plan, timings), want = reference::run(compiled->program, tables, sources, nullptr);
  ASSERT_TRUE(got && want);
  for (int i = 0; i < 10; ++i) EXPECT_EQ((*got)[0].as<double>()[i], (*want)[0].as<double>()[i]);
  auto refused = engine.plan(*compiled, sources, {.allow_fallback = false}, timings);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("libdevice"));
}

TEST_F(MathTest, WithThemOneKernelHasAll) {
  libdevice::Math math(libdevice::default_places(path("cache")));
  if (!math.module()) GTEST_SKIP() << "skipped: " << math.module().error().message;
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  CompileOptions options;
  options.math = &math;
  options.verify_passes = true;
  auto compiled = compile(sources.add("t.hir", sines), sources, options, sink, timings);
  ASSERT_TRUE(compiled) << compiled.error().message;
  EXPECT_EQ(compiled->outlined.kernels.size(), 1u);
  EXPECT_EQ(compiled->no_gpu_code, "");
  EXPECT_THAT(fallbacks_of(*compiled, sources), ElementsAre());
}

}  // namespace
}  // namespace rndn::runtime
