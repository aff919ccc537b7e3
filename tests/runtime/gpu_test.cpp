// What only a GPU shows: several engines, threads and contexts at once, and a kernel that really faults. Everything skips, with the reason, where
// there is no GPU. Every test runs in a process of its own (ctest): after a fault nothing works in its process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "runtime/cuda/cuda_device.h"
#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "tests/runtime/forwarding_device.h"
#include "tests/support/no_tables.h"

namespace rndn::runtime {
namespace {

// Lists of numbers, a selection, an order, groups and their sums: outlined kernels and those of operators.
constexpr const char* program = R"(module m { import Builtin.*; def main() : table {
  v:? = @range(200000:i64); a:? = @mod(v, 1009:i64); m:? = @lt(a, 500:i64);
  x:? = @compress(m, a); y:? = @compress(m, v);
  g:? = @group(x); k:? = @keys(g); i:? = @values(g); e:? = @each_right(@index, y, i); s:? = @each(@sum, e);
  sums:? = @raze(s); key:? = @index(x, k);
  o:? = @order(sums, 0:bool); r1:? = @index(key, o); r2:? = @index(sums, o);
  c:? = @list(r1, r2); r:? = @table((`a,`sum):sym, c); return r; } })";

// Every launch gets a first parameter that no memory lies at.
class MisleadingDevice final : public test::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Result<void> launch(device::KernelHandle k, device::Dim3 g, device::Dim3 b, uint32_t s,
                      std::span<const std::byte> p) override {
    std::vector<std::byte> parameters(p.begin(), p.end());
    const uint64_t nowhere = 0x10;
    for (size_t at = 0; at + 8 <= parameters.size(); at += 8) std::memcpy(parameters.data() + at, &nowhere, 8);
    return to_.launch(k, g, b, s, parameters);
  }
};

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open(cuda::ContextKind::primary);
    if (!opened) GTEST_SKIP() << "skipped: " << opened.error().message;
    device_ = *std::move(opened);
    DiagnosticSink sink;
    Timings timings;
    CompileOptions options;
    options.target = device_->info().target;
    auto compiled = compile(sources_.add("t.hir", program), sources_, options, sink, timings);
    ASSERT_TRUE(compiled) << compiled.error().message << render(sink, sources_);
    compiled_ = *std::move(compiled);
    auto want = reference::run(compiled_.program, tables_, sources_, nullptr);
    ASSERT_TRUE(want) << want.error().message;
    right_ = *print_result(*want, Format::csv);
  }
  static Result<std::unique_ptr<device::Device>> open(cuda::ContextKind kind) {
    auto preparation = cuda::prepare(-1, "libcuda.so.1", kind);
    return cuda::open(*preparation);
  }
  // Rows as text, or what is wrong: of the last of several runs, the later ones as graphs.
  std::string run(device::Device& device, int runs) const {
    rndn::test::NoTables tables;
    Engine engine(device, tables);
    Timings timings;
    auto plan = engine.plan(compiled_, sources_, {.measure_kernels = false}, timings);
    if (!plan) return plan.error().message;
    std::string answer;
    for (int k = 0; k < runs; ++k) {
      auto got = engine.run(**plan, timings);
      answer = got ? *print_result(*got, Format::csv) : got.error().message;
      if (answer != right_) return answer;
    }
    return answer;
  }

  rndn::test::NoTables tables_;
  SourceManager sources_;
  Compiled compiled_;
  std::string right_;
  std::unique_ptr<device::Device> device_;
};

// Each thread has a device and an engine of its own; the GPU, and in the first case the context, is the same.
TEST_F(Gpu, EnginesInSeveralThreads) {
  for (const bool own : {false, true}) {
    std::string answers[4];
    std::vector<std::thread> threads;
    for (size_t k = 0; k < std::size(answers); ++k)
      threads.emplace_back([&, k] {
        const bool has_own = own && k % 2;
        auto device = open(has_own ? cuda::ContextKind::own : cuda::ContextKind::primary);
        answers[k] = device ? run(**device, 20) : device.error().message;
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& answer : answers)
      EXPECT_EQ(answer, right_) << (own ? "two have contexts of their own" : "");
  }
}

// A fault ends what runs in its process, with the driver's name for it and the kernel; the next process works.
TEST_F(Gpu, FaultsNameTheKernelAndStayInTheirProcess) {
  std::string message;
  {
    MisleadingDevice misleading(*device_);
    Engine engine(misleading, tables_);
    Timings timings;
    auto plan = engine.plan(compiled_, sources_, {}, timings);
    ASSERT_TRUE(plan) << plan.error().message;
    auto got = engine.run(**plan, timings);
    ASSERT_FALSE(got);
    message = got.error().message;
    EXPECT_EQ(got.error().exit_code(), 3) << message;
  }
  std::printf("%s\n", message.c_str());
  EXPECT_THAT(message, testing::HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_THAT(message, testing::HasSubstr("kernels since the last wait: `main_1` (t.hir:2:"));
  const std::string next = std::string(RNDN_BIN_DIR) + "/test_gpu --gtest_filter=Gpu.EnginesInSeveralThreads";
  EXPECT_EQ(std::system(next.c_str()), 0) << "another process goes on";
}

}  // namespace
}  // namespace rndn::runtime
