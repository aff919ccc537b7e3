// Devices on which one call fails, each in turn: over the simulator, where kernels compute, every
// call of the interface, with the right answer asked of the next run; over the fake driver every
// call of CUDA, with what the error says and what is given back.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "runtime/compiler/code_cache.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/data/source.h"
#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/runtime/faulty_device.h"
#include "tests/support/made_tables.h"

namespace rndn::runtime::faults_test {
namespace {

using test::FaultyDevice, ::testing::HasSubstr, ::testing::IsSupersetOf;
namespace fs = std::filesystem;

// Transfers, kernels with and without errors, look-ups, text that is compared and ordered, groups,
// a sort, a scan.
constexpr const char* program = R"(module m { import Builtin.*; def main() : table {
  t:? = @load_table(`t:sym);
  k:str = check_cast(@column_value(t, `k:sym), str);
  a:i64 = check_cast(@column_value(t, `a:sym), i64);
  x:f64 = check_cast(@column_value(t, `x:sym), f64);
  u:? = @load_table(`u:sym);
  b:i64 = check_cast(@column_value(u, `b:sym), i64);
  y:f64 = check_cast(@column_value(u, `y:sym), f64);
  n:str = check_cast(@column_value(u, `n:sym), str);
  known:? = @member(a, b);
  short:? = @like(k, "k1%":str);
  m:? = @and(known, short);
  a1:? = @compress(m, a);
  x1:? = @compress(m, x);
  place:? = @index_of(a1, b);
  y1:? = @index(y, place);
  n1:? = @index(n, place);
  z:? = @mul(x1, y1);
  g:? = @group(n1);
  first:? = @keys(g);
  rows:? = @values(g);
  cells:? = @each_right(@index, z, rows);
  sums:? = @each(@sum, cells);
  s:? = @raze(sums);
  name:? = @index(n1, first);
  o:? = @order(name, 0:bool);
  name_o:? = @index(name, o);
  s_o:? = @index(s, o);
  c:? = @list(name_o, s_o);
  r:? = @table((`n,`s):sym, c);
  return r; } })";

// Asks the host for nothing: a graph from its third run on.
constexpr const char* quiet = R"(module m { import Builtin.*; def main() : f64 {
  t:? = @load_table(`t:sym);
  x:f64 = check_cast(@column_value(t, `x:sym), f64);
  y:? = @mul(x, 0.5:f64);
  s:f64 = @sum(y);
  return s; } })";

class Faults : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "rndn_faults_" + std::to_string(getpid()) + "/";
    fs::create_directories(folder_);
    std::ofstream t(folder_ + "t.csv"), u(folder_ + "u.csv");
    t << "k,a,x\n";
    for (int i = 0; i < 600; ++i) t << "k" << i % 37 << "," << i % 90 << "," << i / 4.0 << "\n";
    u << "b,y,n\n";
    for (int i = 0; i < 60; ++i) u << i << "," << i / 8.0 << ",name" << i % 11 << "\n";
    t.close(), u.close();
    auto source = data::open_folder(folder_, {.progress = false, .note = [](const std::string&) {}});
    ASSERT_TRUE(source) << source.error().message;
    tables_.emplace(*source);
  }
  void TearDown() override {
    unsetenv("RNDN_FAKE_CUDA_FAIL");
    fs::remove_all(folder_);
  }
  void compile_for(const std::string& target, const char* text = program) {
    DiagnosticSink sink;
    CompileOptions options;
    options.target = target;
    options.code_cache = &code_cache_;
    auto c = compile(sources_.add("t.hir", text), sources_, options, sink, timings_);
    ASSERT_TRUE(c) << c.error().message << render(sink, sources_);
    compiled_ = *std::move(c);
  }
  // The runs of a plan that make a graph of it: the first error, or the last result. A plan is made
  // where there is none.
  Result<std::string> run(Engine& engine, std::unique_ptr<Engine::Plan>& plan,
                          EngineOptions::Alloc alloc = EngineOptions::Alloc::pages) {
    if (!plan) {
      ASSIGN_OR_RETURN(plan, engine.plan(compiled_, sources_, {.measure_kernels = false, .alloc = alloc}, timings_));
    }
    std::string csv;
    for (int i = 0; i < 4; ++i) {
      ASSIGN_OR_RETURN(const auto results, engine.run(*plan, timings_));
      ASSIGN_OR_RETURN(csv, print_result(results, Format::csv));
    }
    return csv;
  }

  void every_call_of_a_device(const char* text, std::set<std::string>& injected);

  std::string folder_;
  std::optional<data::SourceTables> tables_;
  CodeCache code_cache_{""};
  SourceManager sources_;
  Timings timings_;
  Compiled compiled_;
};

// Each call of the interface fails once. The run ends with that error, or does without the call;
// the next runs of the same plan and engine are right; the engine gives everything back.
void Faults::every_call_of_a_device(const char* text, std::set<std::string>& injected) {
  ASSERT_NO_FATAL_FAILURE(compile_for("sm_86", text));
  auto want = reference::run(compiled_.program, *tables_, sources_, nullptr);
  ASSERT_TRUE(want) << want.error().message;
  const std::string right = *print_result(*want, Format::csv);
  for (const bool only_allocations : {false, true}) {
    // Pages are few; so that each buffer can be missing it is an allocation of its own.
    const auto alloc = only_allocations ? EngineOptions::Alloc::driver : EngineOptions::Alloc::pages;
    int errors = 0;
    uint64_t calls = 0;
    bool through = false;
    for (uint64_t n = 1; !through; ++n, ++calls) {
      auto simulator = open_simulator("sm_86");
      FaultyDevice device(**simulator);
      device.fails_at = n;
      device.only_allocations = only_allocations;
      {
        Engine engine(device, *tables_, &code_cache_);
        std::unique_ptr<Engine::Plan> plan;
        const auto got = run(engine, plan, alloc);
        through = device.calls < n;
        device.fails_at = 0;
        if (!got) {
          ++errors;
          ASSERT_EQ(got.error().exit_code(), 3) << n << ": " << got.error().message;
          const std::string& message = got.error().message;
          ASSERT_THAT(message, HasSubstr("injected: ")) << n;
          injected.insert(message.substr(message.find("injected: ") + 10));
        } else {
          ASSERT_EQ(*got, right) << n;
        }
        const auto again = run(engine, plan, alloc);
        ASSERT_TRUE(again) << "after call " << n << " (" << (got ? "no error" : got.error().message)
                           << "): " << again.error().message;
        ASSERT_EQ(*again, right) << "after call " << n << (got ? "" : ": " + got.error().message);
      }
      ASSERT_EQ(device.held, 0) << "after call " << n;
    }
    // What finds no memory runs by ranges of a table where it can, and is right as well.
    if (text == quiet) continue;
    EXPECT_GT(errors, only_allocations ? 0 : 60);
    EXPECT_GT(calls, only_allocations ? 20u : 60u);
  }
}

TEST_F(Faults, OfEveryCallOfADevice) {
  std::set<std::string> injected;
  ASSERT_NO_FATAL_FAILURE(every_call_of_a_device(program, injected));
  ASSERT_NO_FATAL_FAILURE(every_call_of_a_device(quiet, injected));
  EXPECT_THAT(injected, IsSupersetOf({"a graph"}));
}

// The fake driver.
class DriverFaults : public Faults {
 protected:
  void SetUp() override {
    Faults::SetUp();
    handle_ = dlopen(RNDN_FAKE_CUDA, RTLD_NOW);
    ASSERT_NE(handle_, nullptr) << dlerror();
  }
  template <class F>
  auto call(const char* name) {
    return reinterpret_cast<F*>(dlsym(handle_, name))();
  }
  void fail(const std::string& what) {
    call<void()>("fake_cuda_reset");
    setenv("RNDN_FAKE_CUDA_FAIL", what.c_str(), 1);
  }
  // Opens the device, plans and runs, several times in all. What failed first: "cuMemAlloc".
  struct Ran {
    std::vector<Error> errors;
    size_t of_runs = 0;  // how many of them runs gave, first
    std::string failed;
    int calls = 0;
  };
  // What the program does not ask for: marks, the driver's own compiler, dynamic shared memory,
  // copies on the device.
  static Result<void> beside(device::Device& device) {
    ASSIGN_OR_RETURN(const uint32_t from, device.record_mark());
    ASSIGN_OR_RETURN(const uint32_t to, device.record_mark());
    setenv("RNDN_FAKE_CUDA_LATE", "1", 1);
    const auto ns = device.elapsed_ns(from, to);
    unsetenv("RNDN_FAKE_CUDA_LATE");
    if (!ns) return ns.error();
    ASSIGN_OR_RETURN(const device::ModuleHandle module, device.load_ptx(".version 7.0", 3));
    const auto launch = [&]() -> Result<void> {
      ASSIGN_OR_RETURN(const device::KernelHandle kernel, device.find_kernel(module, "k"));
      return device.launch(kernel, {}, {}, 64 << 10, {});
    };
    const auto launched = launch();
    RETURN_IF_ERROR(device.unload_module(module));
    RETURN_IF_ERROR(launched);
    ASSIGN_OR_RETURN(const device::Address place, device.allocate(512));
    const auto copied = device.copy(place + 256, place, 256);
    RETURN_IF_ERROR(device.free(place));
    return copied;
  }
  Ran run_all(int times) {
    Ran ran;
    auto preparation = cuda::prepare(0, RNDN_FAKE_CUDA);
    auto device = cuda::open(*preparation);
    if (!device) {
      ran.errors.push_back(device.error());
    } else {
      {
        Engine engine(**device, *tables_, &code_cache_);
        std::unique_ptr<Engine::Plan> plan;
        for (int i = 0; i < times; ++i)
          if (auto got = run(engine, plan); !got) ran.errors.push_back(got.error());
        ran.of_runs = ran.errors.size();
        if (auto got = beside(**device); !got) ran.errors.push_back(got.error());
      }
      device->reset();
      auto own = cuda::prepare(0, RNDN_FAKE_CUDA, cuda::ContextKind::own);
      if (auto got = cuda::open(*own); !got) ran.errors.push_back(got.error());
    }
    ran.failed = call<const char*()>("fake_cuda_failed");
    ran.calls = call<int()>("fake_cuda_counted");
    return ran;
  }
  void* handle_ = nullptr;
};

// Every function of the table fails at each of its calls but the two that name an error.
TEST_F(DriverFaults, OfEveryCallOnce) {
  std::set<std::string> used, failed;
#define DRIVER_FUNCTION(name, ...) used.insert(#name);
#include "runtime/cuda/driver_functions.def"
#undef DRIVER_FUNCTION
  used.erase("cuGetErrorName"), used.erase("cuGetErrorString");
  struct Code {
    int code;
    const char* name;
  };
  for (const auto& [code, name] : {Code{2, "CUDA_ERROR_OUT_OF_MEMORY"}, Code{1, "CUDA_ERROR_INVALID_VALUE"}}) {
    for (const char* text : {program, quiet}) {
      ASSERT_NO_FATAL_FAILURE(compile_for("sm_90", text));
      int errors = 0, calls = 0;
      for (int n = 1;; ++n) {
        fail(fmt::format("*:{}:{}:1", code, n));
        const Ran ran = run_all(2);
        ASSERT_EQ(call<long()>("fake_cuda_held"), 0) << n << ": " << ran.failed;
        calls = ran.calls;
        if (ran.calls < n) break;
        failed.insert(ran.failed);
        ASSERT_LE(ran.errors.size(), 1u) << n << ": " << ran.errors[1].message;
        if (ran.errors.empty()) continue;
        ++errors;
        ASSERT_EQ(ran.errors[0].exit_code(), 3) << n << ": " << ran.errors[0].message;
        ASSERT_THAT(ran.errors[0].message, HasSubstr(ran.failed)) << n;
        ASSERT_THAT(ran.errors[0].message, HasSubstr(name)) << n;
      }
      if (text == quiet) continue;
      EXPECT_GT(calls, 200);
      EXPECT_GT(errors, code == 2 ? 20 : 100);  // out of memory: by ranges of a table
    }
  }
  EXPECT_EQ(failed, used);
}

// Pinned memory that the driver refuses: the columns are staged, as before.
TEST_F(DriverFaults, PinnedColumnsGoWholeAndWhereRefusedAsBefore) {
  constexpr uint64_t rows = 20000, bytes = 8 * rows;
  rndn::test::MadeTables tables;
  tables.put("t", "x", hir::BasicType::i64, std::vector<int64_t>(rows, 7));
  ASSERT_NO_FATAL_FAILURE(compile_for("sm_90", R"(module m { import Builtin.*; def main() : i64 {
    t:? = @load_table(`t:sym); x:i64 = check_cast(@column_value(t, `x:sym), i64); s:i64 = @sum(x); return s; } })"));
  const auto logged = [&](const std::string& line) {
    const std::string log = std::string("\n") + call<const char*()>("fake_cuda_log");
    size_t found = 0;
    for (size_t at = 0; (at = log.find("\n" + line + "\n", at)) != log.npos; ++at) ++found;
    return found;
  };
  const std::string pins = fmt::format("cuMemHostAlloc:{},2", bytes), sends = fmt::format("cuMemcpyHtoDAsync:{}", bytes);
  const auto pinned_bytes = [&]() -> uint64_t {  // of three runs; 1: one of them failed
    auto preparation = cuda::prepare(0, RNDN_FAKE_CUDA);
    auto device = cuda::open(*preparation);
    EXPECT_TRUE(device);
    Engine engine(**device, tables, &code_cache_);
    auto plan = engine.plan(compiled_, sources_, {.measure_kernels = false, .cache = false}, timings_);
    if (!plan) return 1;
    for (int i = 0; i < 3; ++i)
      if (!engine.run(**plan, timings_)) return 1;
    return engine.pinned_column_bytes();
  };
  call<void()>("fake_cuda_reset");
  EXPECT_EQ(pinned_bytes(), 2 * bytes) << "all but the first time";
  EXPECT_EQ(logged(pins), 1u);
  EXPECT_EQ(logged(sends), 3u);
  size_t refused = 0;
  for (int n = 1; n < 50; ++n) {
    fail(fmt::format("cuMemHostAlloc:2:{}:1", n));
    const uint64_t pinned = pinned_bytes();
    const std::string failed = call<const char*()>("fake_cuda_failed");
    EXPECT_EQ(call<long()>("fake_cuda_held"), 0) << n;
    if (failed.empty()) break;
    if (pinned == 1 || logged(pins) == 0) continue;  // memory that a run cannot do without, or not as a whole
    EXPECT_EQ(pinned, 0u) << n;
    EXPECT_EQ(logged(sends), 3u);
    ++refused;
  }
  EXPECT_EQ(refused, 1u);
}

// From some call on all fail, as they do when the device is lost: each run says so, and everything
// is asked back.
TEST_F(DriverFaults, OfEveryCallForGood) {
  for (const char* text : {program, quiet}) {
    ASSERT_NO_FATAL_FAILURE(compile_for("sm_90", text));
    for (int n = 1;; ++n) {
      fail(fmt::format("*:700:{}", n));
      const Ran ran = run_all(2);
      ASSERT_EQ(call<long()>("fake_cuda_held"), 0) << n << ": " << ran.failed;
      if (ran.calls < n) break;
      if (ran.errors.empty()) continue;  // the last calls give back
      ASSERT_THAT(ran.errors[0].message, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS")) << n;
      for (const Error& error : ran.errors) ASSERT_EQ(error.exit_code(), 3) << n << ": " << error.message;
      if (ran.of_runs > 1) {
        ASSERT_THAT(ran.errors[1].message, HasSubstr("is lost to this process, which must be started again"))
            << n << ", after " << ran.errors[0].message;
      }
    }
  }
}

}  // namespace
}  // namespace rndn::runtime::faults_test
