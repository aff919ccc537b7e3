// The launch plan on the simulator and on a fake driver, against the reference interpreter.
#include "runtime/engine.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

#include "runtime/cuda/cuda_device.h"
#include "runtime/print_result.h"
#include "runtime/self_test.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/runtime/forwarding_device.h"

namespace rndn::runtime {
namespace {

using hir::BasicType;
using reference::Value;
using testing::ElementsAre;

// One table `t` with a:i32 = 0, 1, 2, ... and x:f64 = a / 2; counts what is asked of it.
class CountingTables final : public reference::Tables {
 public:
  explicit CountingTables(int32_t rows) {
    data::Column a, x, f;
    a.type = BasicType::i32;
    f.type = BasicType::i32;  // refers to `a` of the same table, from the last row to the first
    f.is_foreign_key = true;
    f.foreign_table = "t";
    x.type = BasicType::f64;
    for (data::Column* c : {&a, &x, &f}) {
      c->width = data::plain_width(c->type);
      c->rows = static_cast<uint64_t>(rows);
      c->data = std::make_shared<data::Bytes>(c->rows * c->width);
    }
    for (int32_t i = 0; i < rows; ++i) {
      double half = i / 2.0;
      std::memcpy(a.data->data() + 4 * i, &i, 4);
      std::memcpy(x.data->data() + 8 * i, &half, 8);
      const int32_t last = rows - 1 - i;
      std::memcpy(f.data->data() + 4 * i, &last, 4);
    }
    f.foreign_rows = f.data;
    columns_["f"] = std::make_shared<const data::Column>(f);
    columns_["a"] = std::make_shared<const data::Column>(a);
    columns_["x"] = std::make_shared<const data::Column>(x);
  }
  Result<void> open(std::string_view table) const override {
    if (table != "t") return input_error("there is no table `{}`", table);
    return {};
  }
  Result<std::vector<std::string>> column_names(std::string_view) const override {
    return std::vector<std::string>{"a", "x"};
  }
  Result<uint64_t> rows(std::string_view) const override { return columns_.at("a")->rows; }
  Result<std::shared_ptr<const data::Column>> column(std::string_view, std::string_view name) const override {
    auto at = columns_.find(name);
    if (at == columns_.end()) return input_error("table `t` has no column `{}`", name);
    return at->second;
  }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view) const override { return columns_.at("a"); }
  Result<void> prefetch(std::string_view table, std::span<const std::string> columns) const override {
    prefetched.push_back(fmt::format("{}: {}", table, fmt::join(columns, " ")));
    return {};
  }
  mutable std::vector<std::string> prefetched;

 private:
  std::map<std::string, std::shared_ptr<const data::Column>, std::less<>> columns_;
};

// Records the sizes of what travels to the device.
class RecordingDevice final : public test::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::vector<uint64_t> uploads;
  std::vector<uint32_t> grids;
  int allocations = 0;

  Result<device::Address> allocate(uint64_t n) override { return ++allocations, to_.allocate(n); }
  Result<void> copy_to_device(device::Address a, const void* from, uint64_t n) override {
    if (n != 8) uploads.push_back(n);
    return to_.copy_to_device(a, from, n);
  }
  Result<void> launch(device::KernelHandle k, device::Dim3 g, device::Dim3 b, uint32_t s,
                      std::span<const std::byte> p) override {
    grids.push_back(g.x);
    return to_.launch(k, g, b, s, p);
  }
};

// Lends so many bytes and no more; launches fail on request.
class SmallDevice final : public test::ForwardingDevice {
 public:
  SmallDevice(device::Device& to, uint64_t bytes) : ForwardingDevice(to), left_(bytes) {}
  bool faulty = false;

  Result<device::Address> allocate(uint64_t n) override {
    if (n > left_) return world_error("out of memory").as(Cause::device_full);
    ASSIGN_OR_RETURN(device::Address a, to_.allocate(n));
    lent_[a] = n;
    left_ -= n;
    return a;
  }
  Result<void> free(device::Address a) override {
    left_ += lent_[a];
    return to_.free(a);
  }
  Result<void> launch(device::KernelHandle k, device::Dim3 g, device::Dim3 b, uint32_t s,
                      std::span<const std::byte> p) override {
    if (faulty) return world_error("address 0x10 is not mapped");
    return to_.launch(k, g, b, s, p);
  }

 private:
  uint64_t left_;
  std::map<device::Address, uint64_t> lent_;
};

class EngineTest : public testing::Test {
 protected:
  void compile_text(const std::string& body, const std::string& target = "sm_86") {
    DiagnosticSink sink;
    CompileOptions options;
    options.target = target;
    std::string text = "module m { import Builtin.*; def main() : " + body + " }";
    auto c = compile(sources_.add("t.hir", text), sources_, options, sink, timings_);
    ASSERT_TRUE(c) << c.error().message << render(sink, sources_);
    compiled_ = *std::move(c);
  }
  // On the simulator, and on the reference interpreter: csv of both must agree.
  std::string run_both(const reference::Tables& tables, const EngineOptions& options = {}) {
    auto device = open_simulator("sm_86");
    Engine engine(**device, tables);
    auto plan = engine.plan(compiled_, sources_, options, timings_);
    if (!plan) return "plan: " + plan.error().message;
    fallbacks_ = (*plan)->fallbacks();
    met_.clear();
    auto got = engine.run(**plan, timings_, nullptr, nullptr, &met_);
    if (!got) return fmt::format("{}: {}", got.error().exit_code(), got.error().message);
    auto want = reference::run(compiled_.program, tables, sources_, nullptr);
    if (!want) return "reference: " + want.error().message;
    std::string a = *print_result(*got, Format::csv), b = *print_result(*want, Format::csv);
    EXPECT_EQ(a, b);
    return a;
  }
  SourceManager sources_;
  Timings timings_;
  Compiled compiled_;
  // What a run of the program says on the reference interpreter, in the form of run_both.
  std::string reference_error(const reference::Tables& tables) {
    auto got = reference::run(compiled_.program, tables, sources_, nullptr);
    if (got) return "no error";
    return fmt::format("{}: {}", got.error().exit_code(), got.error().message);
  }
  std::string reference_csv(const reference::Tables& tables) {
    auto got = reference::run(compiled_.program, tables, sources_, nullptr);
    return got ? *print_result(*got, Format::csv) : got.error().message;
  }
  std::vector<std::string> fallbacks_, met_;  // of the plan; of the run
};

constexpr const char* sum_of_large = R"(table {
  t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32); x:f64 = check_cast(@column_value(t, `x:sym), f64);
  m:? = @geq(a, 10:i32); k:? = @compress(m, x); s:? = @sum(k); c:? = @list(s); r:? = @table(`s:sym, c); return r; })";

TEST_F(EngineTest, SelfTestPassesOnTheSimulator) {
  auto device = open_simulator("sm_86");
  ASSERT_TRUE(device);
  std::string report;
  auto passed = self_test(**device, nullptr, report);
  EXPECT_TRUE(passed) << passed.error().message << "\n" << report;
  EXPECT_NE(report.find("ok: filter and sum of products\n"), std::string::npos) << report;
}

TEST_F(EngineTest, RepeatsLaunchAgainButLoadAndUploadOnce) {
  ASSERT_NO_FATAL_FAILURE(compile_text(sum_of_large));
  auto simulator = open_simulator("sm_86");
  RecordingDevice device(**simulator);
  CountingTables tables(5000);
  Engine engine(device, tables);
  auto plan = engine.plan(compiled_, sources_, {}, timings_);
  ASSERT_TRUE(plan) << plan.error().message;
  std::vector<KernelReport> kernels;
  int allocations = 0;
  for (int run = 0; run < 4; ++run) {
    kernels.clear();
    auto got = engine.run(**plan, timings_, nullptr, &kernels);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(*print_result(*got, Format::csv), "s\r\n6248727.5\r\n");  // (10 + .. + 4999) / 2
    if (run == 0) allocations = device.allocations;
  }
  EXPECT_THAT(tables.prefetched, ElementsAre("t: a x"));
  EXPECT_THAT(device.uploads, testing::UnorderedElementsAre(20000u, 40000u));
  EXPECT_EQ(device.allocations, allocations) << "repeats must not allocate";
  EXPECT_EQ(device.grids.size(), 4u);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].launches, 1u);
  EXPECT_EQ(kernels[0].floor_bytes, 60000u);
  EXPECT_EQ(kernels[0].all_floor_bytes, 60000u) << "of this run";
  EXPECT_GT(kernels[0].ns, 0u);
  EXPECT_GT(kernels[0].registers, 0u);
  EXPECT_GT(kernels[0].instructions, 0u);

  // A second program finds the columns on the device.
  auto again = engine.plan(compiled_, sources_, {}, timings_);
  ASSERT_TRUE(again);
  ASSERT_TRUE(engine.run(**again, timings_));
  EXPECT_EQ(device.uploads.size(), 2u);
}

// --alloc driver: each run asks the driver for its buffers and gives them back; answers and what stays on the device are the same.
TEST_F(EngineTest, BuffersFromPagesOrFromTheDriver) {
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table {
  t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32); m:? = @geq(a, 10:i32); k:? = @compress(m, a);
  u:? = @unique(k); v:? = @index(k, u); s:? = @sum(v); c:? = @list(s); r:? = @table(`s:sym, c); return r; })"));
  auto simulator = open_simulator("sm_86");
  RecordingDevice device(**simulator);
  CountingTables tables(5000);
  Engine engine(device, tables);
  auto pages = engine.plan(compiled_, sources_, {}, timings_);
  auto driver = engine.plan(compiled_, sources_, {.alloc = EngineOptions::Alloc::driver}, timings_);
  ASSERT_TRUE(pages && driver);
  std::vector<int> allocations;
  std::vector<uint64_t> bytes;
  // The first run of a plan also makes what the plan keeps.
  for (Engine::Plan* plan : {pages->get(), driver->get(), pages->get(), driver->get(), driver->get(), pages->get()}) {
    const int before = device.allocations;
    auto got = engine.run(*plan, timings_);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(*print_result(*got, Format::csv), "s\r\n12497455\r\n");  // 10 + .. + 4999
    allocations.push_back(device.allocations - before);
    bytes.push_back(engine.device_bytes());
  }
  EXPECT_EQ(allocations[2], 0);
  EXPECT_GE(allocations[3], 3);  // of compress, unique and index at least
  EXPECT_EQ(allocations[4], allocations[3]);
  EXPECT_EQ(allocations[5], 0);
  EXPECT_THAT(std::vector(bytes.begin() + 3, bytes.end()), testing::Each(bytes[2]));
}

// What operators of one program left in memory that plans share is no error of the next program.
TEST_F(EngineTest, APlanMadeAfterARunStartsWithoutErrors) {
  auto simulator = open_simulator("sm_86");
  CountingTables tables(5000);
  Engine engine(**simulator, tables);
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table {
  t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32); x:f64 = check_cast(@column_value(t, `x:sym), f64);
  m:? = @mod(a, 77:i32); g:? = @group(m); v:? = @values(g); e:? = @each_right(@index, x, v); s:? = @each(@sum, e); r:? = @raze(s);
  b:? = @member(a, m); k:? = @compress(b, x); n:? = @len(k);
  c:? = @list(r, k); y:? = @unique(m); w:? = @list(y); z:? = @table(`y:sym, w); return z; })"));
  const Compiled operators = std::move(compiled_);
  auto first = engine.plan(operators, sources_, {}, timings_);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(engine.run(**first, timings_));
  ASSERT_NO_FATAL_FAILURE(compile_text(sum_of_large));
  auto second = engine.plan(compiled_, sources_, {}, timings_);
  ASSERT_TRUE(second) << second.error().message;
  auto got = engine.run(**second, timings_);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*print_result(*got, Format::csv), "s\r\n6248727.5\r\n");
}

// Row numbers of a foreign key stay on the device as columns do.
TEST_F(EngineTest, ForeignKeysAreUploadedOnce) {
  ASSERT_NO_FATAL_FAILURE(
      compile_text(R"(table { t:? = @load_table(`t:sym); x:f64 = check_cast(@column_value(t, `x:sym), f64);
  f:enum<i32> = check_cast(@column_value(t, `f:sym), enum<i32>); w:? = @values(f); y:? = @index(x, w); z:? = @minus(y, x);
  c:? = @list(y, z); r:? = @table((`y,`z):sym, c); return r; })"));
  auto simulator = open_simulator("sm_86");
  RecordingDevice device(**simulator);
  CountingTables tables(3000);
  run_both(tables);
  EXPECT_EQ(fallbacks_, std::vector<std::string>{});
  Engine engine(device, tables);
  for (int program = 0; program < 2; ++program) {
    auto plan = engine.plan(compiled_, sources_, {}, timings_);
    ASSERT_TRUE(plan) << plan.error().message;
    for (int run = 0; run < 3; ++run) {
      auto got = engine.run(**plan, timings_);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_TRUE(print_result(*got, Format::csv)->starts_with("y,z\r\n1499.5,1499.5\r\n1499,1498.5\r\n"));
    }
  }
  EXPECT_THAT(device.uploads, testing::UnorderedElementsAre(24000u, 12000u));
}

// Columns that no step holds leave a device that is full, the oldest first; what does not fit even then is an error with the sizes.
TEST_F(EngineTest, FullDevice) {
  CountingTables tables(400000);  // a: 1.6 MB, x: 3.2 MB
  auto simulator = open_simulator("sm_86");
  const char* of_a = R"(table { t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32);
  s:? = @sum(a); c:? = @list(s); r:? = @table(`s:sym, c); return r; })";
  const char* of_x = R"(table { t:? = @load_table(`t:sym); x:f64 = check_cast(@column_value(t, `x:sym), f64);
  s:? = @sum(x); c:? = @list(s); r:? = @table(`s:sym, c); return r; })";
  {
    SmallDevice device(**simulator, 3400000);  // room for either
    Engine engine(device, tables);
    for (const char* text : {of_a, of_x, of_a}) {
      ASSERT_NO_FATAL_FAILURE(compile_text(text));
      auto plan = engine.plan(compiled_, sources_, {}, timings_);
      ASSERT_TRUE(plan) << plan.error().message;
      auto got = engine.run(**plan, timings_);
      ASSERT_TRUE(got) << got.error().message;
      auto want = reference::run(compiled_.program, tables, sources_, nullptr);
      EXPECT_EQ(*print_result(*got, Format::csv), *print_result(*want, Format::csv));
    }
  }
  SmallDevice device(**simulator, 2000000);
  Engine engine(device, tables);
  {  // by ranges
    ASSERT_NO_FATAL_FAILURE(compile_text(of_x));
    auto plan = engine.plan(compiled_, sources_, {}, timings_);
    ASSERT_TRUE(plan) << plan.error().message;
    auto got = engine.run(**plan, timings_);
    ASSERT_TRUE(got) << got.error().message;
    auto want = reference::run(compiled_.program, tables, sources_, nullptr);
    EXPECT_EQ(*print_result(*got, Format::csv), *print_result(*want, Format::csv));
  }
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table { t:? = @load_table(`t:sym); x:f64 = check_cast(@column_value(t, `x:sym), f64);
  y:? = @unique(x); c:? = @list(y); r:? = @table(`s:sym, c); return r; })"));
  auto plan = engine.plan(compiled_, sources_, {.allow_fallback = false}, timings_);
  ASSERT_TRUE(plan) << plan.error().message;
  auto got = engine.run(**plan, timings_);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().exit_code(), 3);
  EXPECT_THAT(got.error().message, ::testing::HasSubstr("3200000 more bytes do not fit on simulator: 0 of its "));
  EXPECT_NE(got.error().message.find("out of memory"), std::string::npos) << got.error().message;
}

// A limit is a small device: columns are evicted for others, and an error has the sizes. Every page is within it.
TEST_F(EngineTest, LimitOfMemory) {
  CountingTables tables(400000);  // a: 1.6 MB, x: 3.2 MB
  auto simulator = open_simulator("sm_86");
  const auto sum_of = [](const char* column, const char* type) {
    return fmt::format("table {{ t:? = @load_table(`t:sym); a:{1} = check_cast(@column_value(t, `{0}:sym), {1}); "
                       "s:? = @sum(a); c:? = @list(s); r:? = @table(`s:sym, c); return r; }}",
                       column, type);
  };
  Engine engine(**simulator, tables);
  engine.limit_memory(3400000);
  for (const auto& text : {sum_of("a", "i32"), sum_of("x", "f64"), sum_of("a", "i32")}) {
    ASSERT_NO_FATAL_FAILURE(compile_text(text));
    auto plan = engine.plan(compiled_, sources_, {}, timings_);
    ASSERT_TRUE(plan) << plan.error().message;
    auto got = engine.run(**plan, timings_);
    ASSERT_TRUE(got) << got.error().message;
    auto want = reference::run(compiled_.program, tables, sources_, nullptr);
    EXPECT_EQ(*print_result(*got, Format::csv), *print_result(*want, Format::csv));
    EXPECT_LE(engine.peak_bytes(), 3400000u);
    EXPECT_GE(engine.peak_bytes(), 1600000u);
  }
}

// A kernel of ours that faults on the simulator is our error, not the world's.
TEST_F(EngineTest, FaultOfAKernelOnTheSimulatorIsInternal) {
  CountingTables tables(100);
  auto simulator = open_simulator("sm_86");
  SmallDevice device(**simulator, 64 << 20);
  Engine engine(device, tables);
  ASSERT_NO_FATAL_FAILURE(compile_text(sum_of_large));
  auto plan = engine.plan(compiled_, sources_, {}, timings_);
  ASSERT_TRUE(plan) << plan.error().message;
  device.faulty = true;
  auto got = engine.run(**plan, timings_);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().exit_code(), 70);
  EXPECT_EQ(got.error().message, "kernel `main_1` (t.hir:3:3): address 0x10 is not mapped");
  device.faulty = false;
  EXPECT_TRUE(engine.run(**plan, timings_).ok()) << "the next run is not disturbed";
}

// The same in an operator.
TEST_F(EngineTest, FaultsWithinAnOperatorNameItAndItsKernel) {
  CountingTables tables(20000);
  auto simulator = open_simulator("sm_86");
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table { t:? = @load_table(`t:sym);
  x:f64 = check_cast(@column_value(t, `x:sym), f64);
  o:? = @order(x, 0:bool); c:? = @list(o); r:? = @table(`s:sym, c); return r; })"));
  SmallDevice device(**simulator, 64 << 20);
  device.faulty = true;
  Engine engine(device, tables);
  auto plan = engine.plan(compiled_, sources_, {}, timings_);
  ASSERT_TRUE(plan) << plan.error().message;
  auto got = engine.run(**plan, timings_);
  ASSERT_FALSE(got);
  const std::string& what = got.error().message;
  EXPECT_EQ(got.error().exit_code(), 70) << what;
  EXPECT_TRUE(what.starts_with("`order` (t.hir:3:3): kernel `")) << what;
}

TEST_F(EngineTest, TimesOfARunAddUp) {
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table {
  t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32); x:f64 = check_cast(@column_value(t, `x:sym), f64);
  n:? = @neg(x); l:? = @list(n, a); o:? = @order(l, (1,0):bool); s:? = @index(a, o); c:? = @list(s); r:? = @table(`s:sym, c); return r; })"));
  CountingTables tables(100000);
  auto device = open_simulator("sm_86");
  Engine engine(**device, tables);
  auto plan = engine.plan(compiled_, sources_, {}, timings_);
  ASSERT_TRUE(plan) << plan.error().message;
  for (int run = 0; run < 2; ++run) {  // the first assembles those kernels of the library that do not come with the program
    timings_.reset();
    std::vector<KernelReport> kernels;
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(engine.run(**plan, timings_, nullptr, &kernels));
    const auto wall = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count());
    const uint64_t execute = timings_.total_ns(PhaseGroup::execute), compile = timings_.total_ns(PhaseGroup::compile);
    EXPECT_LE(execute + compile, wall);
    uint64_t sum = 0;
    for (size_t p = 0; p < phase_count; ++p)
      if (phase_group(static_cast<Phase>(p)) == PhaseGroup::execute)
        sum += timings_.exclusive_ns(static_cast<Phase>(p));
    EXPECT_EQ(sum, execute);
    uint64_t outlined = 0, library = 0, shared = 0;
    uint32_t late = 0;
    for (const KernelReport& k : kernels) {
      EXPECT_GT(k.launches, 0u) << k.name;
      EXPECT_GT(k.registers, 0u) << k.name;
      EXPECT_GT(k.instructions, 0u) << k.name;
      late += k.late;
      shared += k.kind == "library" ? k.shared_bytes : 0;
      (k.kind == "library" ? library : outlined) += k.ns;
    }
    EXPECT_GT(outlined, 0u);
    EXPECT_GT(library, 0u);
    EXPECT_GT(shared, 0u) << "kernels that sort have shared memory";
    // A launch takes the time of its kernel on the simulator; phases also have what leads to it.
    EXPECT_GE(timings_.exclusive_ns(Phase::kernels), outlined / 2);
    EXPECT_GE(timings_.exclusive_ns(Phase::library), library / 2);
    EXPECT_EQ(compile > 0, run == 0) << compile;
    EXPECT_EQ(late > 0, run == 0) << late;
  }
}

TEST_F(EngineTest, EmptyAndSmallTables) {
  for (int rows : {0, 1, 11, 32, 33}) {
    CountingTables tables(rows);
    ASSERT_NO_FATAL_FAILURE(compile_text(sum_of_large));
    double sum = 0;
    for (int i = 10; i < rows; ++i) sum += i / 2.0;
    EXPECT_EQ(run_both(tables), fmt::format("s\r\n{}\r\n", sum)) << rows;
    EXPECT_TRUE(fallbacks_.empty());
  }
}

// No device operator draws random numbers.
constexpr const char* at_random = R"(table {
  n:i64 = 3:i64;
  u:? = @randk(n, 10:i64); s:? = @geq(u, 0:i64); c:? = @list(s); r:? = @table(`s:sym, c); return r; })";

TEST_F(EngineTest, BuiltinsWithoutKernelsRunOnTheReferenceInterpreterAndSaySo) {
  ASSERT_NO_FATAL_FAILURE(compile_text(at_random));
  CountingTables tables(3);
  EXPECT_EQ(run_both(tables), "s\r\n1\r\n1\r\n1\r\n");
  ASSERT_FALSE(fallbacks_.empty());
  EXPECT_TRUE(fallbacks_[0].starts_with("t.hir:3:3: `randk`")) << fallbacks_[0];
}

// A complex number with a part that is NaN equals nothing where rows are compared, and itself where distinct ones are looked for.
TEST_F(EngineTest, ComplexKeysThatAreNoNumbers) {
  CountingTables tables(3);
  for (const char* then :
       {"j:? = @join_index(@eq, q, q); r:? = @index(j, 0:i64); s:? = @index(j, 1:i64);",
        "j:? = @join_index(@neq, q, q); r:? = @index(j, 0:i64); s:? = @index(j, 1:i64);",
        "l:? = @list(q, k); j:? = @join_index(@eq, @eq, l, l); r:? = @index(j, 0:i64); s:? = @index(j, 1:i64);",
        "r:? = @member(q, q); s:? = @index_of(q, q);",
        "h:? = @group(k); v:? = @values(h); e:? = @each_right(@index, q, v); u:? = @each(@unique, e); r:? = @raze(u); "
        "s:? = "
        "@raze(u);",
        "r:? = @unique(q); g:? = @group(q); s:? = @keys(g);"}) {
    ASSERT_NO_FATAL_FAILURE(compile_text(fmt::format(R"(table {{
  k:i64 = (1,1,2,2,3):i64;
  n:complex = (1+2i,0+0i,3+4i,2+0i,1+2i):complex; d:complex = (1+0i,0+0i,1+0i,1+0i,1+0i):complex; q:? = @div(n, d);
  {}
  c:? = @list(r, s); z:? = @table((`r,`s):sym, c); return z; }})",
                                                     then)));
    EXPECT_EQ(run_both(tables, {.allow_fallback = false}), reference_csv(tables)) << then;
    EXPECT_THAT(fallbacks_, ElementsAre()) << then;
  }
}

TEST_F(EngineTest, NoFallbackRefusesThem) {
  ASSERT_NO_FATAL_FAILURE(compile_text(at_random));
  CountingTables tables(3);
  EngineOptions options;
  options.allow_fallback = false;
  std::string what = run_both(tables, options);
  EXPECT_NE(what.find("plan: t.hir:3"), std::string::npos) << what;
  EXPECT_NE(what.find("--no-fallback"), std::string::npos) << what;
}

// A vector of one element beside others: only the run finds out how many it has.
TEST_F(EngineTest, FallbacksOfTheRunAreReportedAndRefused) {
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table {
  k:i64=(1,1,2,2):i64; z:i64=(3,3,3,3):i64; u:? = @unique(z);
  v:i64=(9,9,9,9):i64; a:? = @index_a(v, k, u);
  c:? = @list(a); d:? = @table(`a:sym, c); return d; })"));
  CountingTables tables(3);
  EXPECT_EQ(run_both(tables), "a\r\n9\r\n0\r\n0\r\n9\r\n");
  EXPECT_THAT(fallbacks_, ElementsAre());
  const std::string what = "kernel `main_1` (its vectors have other lengths than it was made for)";
  EXPECT_THAT(met_, ElementsAre("t.hir:3:24: " + what));
  EXPECT_EQ(run_both(tables, {.allow_fallback = false}),
            "1: t.hir:3:24: error: " + what + " runs on the reference interpreter only, which --no-fallback forbids");
}

TEST_F(EngineTest, TextsAreJoinedByTheirOrder) {
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table {
  s:str=("abc","def"):str; t:str=("b","x"):str;
  r:list<i64>=@join_index(@lt,s,t); a:? = @index(r, 0:i64); b:? = @index(r, 1:i64);
  c:? = @list(a, b); d:? = @table((`a,`b):sym, c); return d; })"));
  CountingTables tables(3);
  EXPECT_EQ(run_both(tables, {.allow_fallback = false}), "a,b\r\n0,0\r\n0,1\r\n1,1\r\n");
  EXPECT_THAT(met_, ElementsAre());
}

// The interpreter words errors of arguments: that is no fallback, and the same with --no-fallback.
TEST_F(EngineTest, ErrorsOfArgumentsAreThoseOfTheInterpreter) {
  CountingTables tables(10);
  for (const char* body : {
           "m:? = @gt(a, 3:i32); y:? = @compress(m, a); l:? = @list(a, y); g:? = @group(l); r:? = @keys(g); c:? = "
           "@list(r);",
           "m:? = @gt(a, 3:i32); y:? = @compress(m, a); l:? = @list(a, y); r:? = @order(l, 1:bool); c:? = @list(r);",
           "l:? = @list(a, a); r:? = @order(l, (1,0,1):bool); c:? = @list(r);",
           "z:? = @minus(a, a); d:? = @div(a, z); r:? = @sum(d); c:? = @list(r);",
           "n:? = @range(5:i64); d:? = @div(n, 0:i64); c:? = @list(d);",
           "n:? = @range(99999999999:i64); r:? = @sum(n); c:? = @list(r);",
           "v:? = @vector(-3:i64, 1:i64); c:? = @list(v);",
           "v:? = @vector(-3:i64, 1:i64); w:? = @plus(v, 1:i64); r:? = @sum(w); c:? = @list(r);",
       }) {
    ASSERT_NO_FATAL_FAILURE(compile_text(
        fmt::format("table {{ t:? = @load_table(`t:sym);\n a:i32 = check_cast(@column_value(t, `a:sym), i32);\n {}\n "
                    "q:? = @table(`r:sym, c); return q; }}",
                    body)));
    EXPECT_EQ(compiled_.no_gpu_code, "") << body;
    const std::string want = reference_error(tables);
    EXPECT_TRUE(want.starts_with("1: t.hir:3:")) << body << "\n" << want;
    EXPECT_EQ(run_both(tables), want) << body;
    EXPECT_EQ(run_both(tables, {.allow_fallback = false}), want) << body;
    EXPECT_THAT(met_, ElementsAre()) << body;
  }
  ASSERT_NO_FATAL_FAILURE(compile_text("i64 { v:? = @range(-3:i64); r:? = @sum(v); return r; }"));
  EXPECT_EQ(run_both(tables), "value\r\n0\r\n") << "a range of negative length is empty";
}

TEST_F(EngineTest, MainWithoutReturnGivesEmptyValues) {
  CountingTables tables(3);
  ASSERT_NO_FATAL_FAILURE(compile_text("i64 { x:i64 = @plus(1:i64, 2:i64); }"));
  EXPECT_EQ(run_both(tables), "value\r\n");
}

TEST_F(EngineTest, ControlFlowRunsWholeOnTheReferenceInterpreter) {
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(i64 {
  n:i64 = 1:i64; go:bool = @lt(n, 20:i64);
  while (go) { n = @plus(n, n); go = @lt(n, 20:i64); }
  return n; })"));
  CountingTables tables(0);
  EXPECT_EQ(run_both(tables), "value\r\n32\r\n");
  ASSERT_EQ(fallbacks_.size(), 1u);
  EXPECT_NE(fallbacks_[0].find("the whole program"), std::string::npos) << fallbacks_[0];
}

TEST_F(EngineTest, ErrorsCarryThePositionOfTheirStatement) {
  CountingTables tables(100);
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table {
  t:? = @load_table(`u:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32); s:? = @sum(a); c:? = @list(s); r:? = @table(`s:sym, c); return r; })"));
  EXPECT_EQ(run_both(tables), "1: t.hir:2:3: error: there is no table `u`");
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table {
  t:? = @load_table(`t:sym);
  b:i32 = check_cast(@column_value(t, `b:sym), i32); s:? = @sum(b); c:? = @list(s); r:? = @table(`s:sym, c); return r; })"));
  EXPECT_EQ(run_both(tables), "1: t.hir:3:3: error: table `t` has no column `b`");
}

TEST_F(EngineTest, DivisionByZeroInAKernelIsTheProgramsFault) {
  CountingTables tables(100);
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table {
  t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32);
  b:? = @minus(a, 7:i32);
  d:? = @div(a, b); s:? = @sum(d); c:? = @list(s); r:? = @table(`s:sym, c); return r; })"));
  ASSERT_EQ(compiled_.no_gpu_code, "");
  std::string what = run_both(tables);
  EXPECT_EQ(what, reference_error(tables));
  EXPECT_TRUE(what.starts_with("1: t.hir:4:3: error: `div` divides by zero")) << what;
}

// Casts to wide integers and from them are code, whether a call is cast or a vector.
TEST_F(EngineTest, CastsOfWideIntegersRunInKernels) {
  CountingTables tables(3000);
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table {
  t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32);
  w:i128 = check_cast(a, i128); v:i64 = check_cast(w, i64); f:f64 = check_cast(w, f64); g:i128 = check_cast(f, i128);
  b:bool = check_cast(g, bool); h:i32 = check_cast(check_cast(@plus(a, b), i128), i32); k:bool = @lt(a, 4:i32);
  c0:? = @compress(k, v); c1:? = @compress(k, f); c2:? = @compress(k, b); c3:? = @compress(k, h);
  c:? = @list(c0, c1, c2, c3); r:? = @table((`v,`f,`b,`h):sym, c); return r; })"));
  EXPECT_EQ(run_both(tables), "v,f,b,h\r\n0,0,0,0\r\n1,1,1,2\r\n2,2,1,3\r\n3,3,1,4\r\n");
  EXPECT_EQ(fallbacks_, std::vector<std::string>{});
  EXPECT_EQ(compiled_.outlined.kernels.size(), 1u) << "nothing of it is done on the host";
}

// Of a requirement in a kernel: the first element, the message, and that alone as the subject; also where nothing uses the result.
TEST_F(EngineTest, WhatAProgramRequiresInAKernel) {
  CountingTables tables(100);
  const std::string head = R"(table {
  t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32);
  ok:bool = @neq(a, 7:i32); )", tail = " c:? = @list(s); r:? = @table(`s:sym, c); return r; }";
  for (const std::string body :
       {"b:? = @require(ok, a, `\"no seven\":sym); s:? = @sum(b);", "b:? = @require(ok, a, `\"no seven\":sym); s:? = @sum(a);",
        "w:? = check_cast(a, i128); b:? = @require(ok, w, `\"no seven\":sym); d:? = check_cast(b, i64); s:? = @sum(d);",
        "b:? = @require(ok, 1:i32, `\"no seven\":sym); s:? = @sum(b);"}) {
    SCOPED_TRACE(body);
    ASSERT_NO_FATAL_FAILURE(compile_text(head + body + tail));
    ASSERT_EQ(compiled_.no_gpu_code, "");
    const std::string what = run_both(tables);
    EXPECT_EQ(what, reference_error(tables));
    EXPECT_TRUE(what.ends_with("error: `require` is not met at element 7: no seven")) << what;
    const auto error = reference::run(compiled_.program, tables, sources_, nullptr);
    ASSERT_FALSE(error);
    EXPECT_EQ(error.error().subject, "no seven");
    EXPECT_EQ(error.error().line, 3u);
  }
  for (const std::string body : {"k:? = @lt(a, 7:i32); b:? = @require(ok, a, `no:sym); d:? = @compress(k, b); s:? = @sum(d);",
                                 "k:? = @gt(a, 7:i32); o:? = @compress(k, ok); d:? = @compress(k, a); b:? = @require(o, d, `no:sym); s:? = @sum(b);",
                                 "b:? = @require(1:bool, a, `no:sym); s:? = @sum(b);"}) {
    SCOPED_TRACE(body);
    ASSERT_NO_FATAL_FAILURE(compile_text(head + body + tail));
    ASSERT_EQ(compiled_.no_gpu_code, "");
    const std::string what = run_both(tables);
    EXPECT_EQ(what.find("error") != std::string::npos, body.find("@lt") != std::string::npos) << what;
  }
}

// The interpreter's message, with element and position, also when a kernel found the error.
TEST_F(EngineTest, GatherOutOfRangeIsTheProgramsFault) {
  compile_text(R"(table { t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32);
  p:? = @plus(a, 1:i32); x:? = @index(a, p);
  c:? = @list(x); r:? = @table(`x:sym, c); return r; })");
  ASSERT_EQ(compiled_.no_gpu_code, "");
  CountingTables tables(100);
  auto reference = reference::run(compiled_.program, tables, sources_, nullptr);
  ASSERT_FALSE(reference);
  EXPECT_EQ(run_both(tables), "1: " + reference.error().message);
  EXPECT_EQ(fallbacks_, std::vector<std::string>{});
}

// Sizes that only the run knows: selections of selections, positions as a vector, nothing selected, one selected.
TEST_F(EngineTest, SizesOfTheRun) {
  compile_text(
      R"(table { t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32); x:f64 = check_cast(@column_value(t, `x:sym), f64);
  m:? = @geq(a, 7:i32); w:? = @where(m); y:? = @index(x, w); z:? = @mul(y, 2:f64); o:? = @order(z, 0:bool);
  u:? = @index(z, o); k:? = @gt(u, 20:f64); v:? = @compress(k, u); q:? = @compress(k, o); b:? = @index(y, q);
  d:? = @minus(v, b); c:? = @list(v, b, d); r:? = @table((`v,`b,`d):sym, c); return r; })");
  ASSERT_EQ(compiled_.no_gpu_code, "");
  for (int32_t rows : {0, 1, 7, 8, 20, 21, 22, 23, 33, 5000}) {
    CountingTables tables(rows);
    const std::string csv = run_both(tables);
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + std::max(0, rows - 21)) << csv;
  }
  EXPECT_EQ(fallbacks_, std::vector<std::string>{});
}

// One kernel of two has no code: it alone is interpreted.
TEST_F(EngineTest, KernelsWithoutCodeAreInterpretedAlone) {
  compile_text(
      R"(table { t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32); x:f64 = check_cast(@column_value(t, `x:sym), f64);
  m:? = @geq(a, 10:i32); y:? = @compress(m, x); o:? = @order(y, 0:bool);
  z:? = @index(y, o); s:? = @plus(z, 0.5:f64); c:? = @list(s); r:? = @table(`s:sym, c); return r; })");
  ASSERT_EQ(compiled_.code.kernels.size(), 2u);
  // As if the assembler had refused the first.
  Timings timings;
  auto code = codegen::generate(compiled_.outlined, {.refused = {"no reason"}}, timings);
  ASSERT_TRUE(code);
  assembler::Options assemble;
  assemble.target = isa::find_target("sm_86");
  auto cubin = assembler::assemble(code->module, assemble, timings);
  ASSERT_TRUE(cubin) << cubin.error().message;
  compiled_.code = *std::move(code);
  compiled_.cubin = cubin->cubin;
  CountingTables tables(3000);
  run_both(tables);
  ASSERT_EQ(fallbacks_.size(), 1u);
  EXPECT_EQ(fallbacks_[0], "t.hir:2:3: kernel `main_1` with `geq`, `compress` (no reason)");
  EXPECT_EQ(run_both(tables, {.allow_fallback = false}),
            "plan: t.hir:2:3: error: kernel `main_1` with `geq`, `compress` (no reason) runs on the reference "
            "interpreter only, "
            "which --no-fallback forbids");
}

TEST_F(EngineTest, ColumnsOfDifferentLengthMakeNoTable) {
  CountingTables tables(100);
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table {
  t:? = @load_table(`t:sym); a:i32 = check_cast(@column_value(t, `a:sym), i32); s:? = @sum(a);
  c:? = @list(s, a); r:? = @table((`s,`a):sym, c); return r; })"));
  std::string what = run_both(tables);
  EXPECT_NE(what.find("1: t.hir:"), std::string::npos) << what;
  EXPECT_NE(what.find("1 and 100 rows"), std::string::npos) << what;
}

// From the third run on, where nothing is measured and the host has nothing to decide.
TEST_F(EngineTest, RepeatsAreAGraph) {
  ASSERT_NO_FATAL_FAILURE(compile_text(sum_of_large));
  auto simulator = open_simulator("sm_86");
  RecordingDevice device(**simulator);
  CountingTables tables(5000);
  Engine engine(device, tables);
  auto plan = engine.plan(compiled_, sources_, {.measure_kernels = false}, timings_);
  auto forgetful = engine.plan(compiled_, sources_, {.measure_kernels = false, .cache = false}, timings_);
  ASSERT_TRUE(plan && forgetful);
  const std::string right = "s\r\n6248727.5\r\n";
  std::vector<size_t> launched;
  for (int run = 0; run < 10; ++run) {
    std::vector<KernelReport> kernels;
    auto got = engine.run(**plan, timings_, nullptr, &kernels);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(*print_result(*got, Format::csv), right) << run;
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0].launches, 1u) << run;
    launched.push_back(device.grids.size());
    if (run != 5) continue;
    // Another run takes the columns from the device: the graph would read what is not there.
    ASSERT_TRUE(engine.run(**forgetful, timings_));
    launched.push_back(device.grids.size());
  }
  // The device sees no launch of a run that is a graph. The columns' loss costs a run that sends them and one that decides nothing.
  EXPECT_THAT(launched, ElementsAre(1, 2, 3, 3, 3, 3, 4, 5, 6, 7, 7));
}

TEST_F(EngineTest, NoGraphWhereItIsNotWanted) {
  ASSERT_NO_FATAL_FAILURE(compile_text(sum_of_large));
  for (const EngineOptions& options : {EngineOptions{}, EngineOptions{.measure_kernels = false, .graphs = false},
                                       EngineOptions{.measure_kernels = false, .cache = false}}) {
    auto simulator = open_simulator("sm_86");
    RecordingDevice device(**simulator);
    CountingTables tables(5000);
    Engine engine(device, tables);
    auto plan = engine.plan(compiled_, sources_, options, timings_);
    ASSERT_TRUE(plan);
    for (size_t run = 1; run < 6; ++run) {
      ASSERT_TRUE(engine.run(**plan, timings_));
      EXPECT_EQ(device.grids.size(), run);
    }
  }
}

// Has graphs, and knows where the last copy of so many bytes went.
class GraphDevice final : public test::ForwardingDevice {
 public:
  GraphDevice(device::Device& to, uint64_t bytes) : ForwardingDevice(to), bytes_(bytes) {}
  uint64_t waits = 0, replays = 0;
  device::Address sent = 0;

  Result<device::Address> allocate(uint64_t n) override { return ++host_calls_, to_.allocate(n); }
  Result<void> copy_to_device(device::Address a, const void* from, uint64_t n) override {
    RETURN_IF_ERROR(host_call());
    if (n == bytes_) sent = a;
    return to_.copy_to_device(a, from, n);
  }
  Result<void> copy_to_host(void* to, device::Address a, uint64_t n) override {
    ++waits;
    RETURN_IF_ERROR(host_call());
    return to_.copy_to_host(to, a, n);
  }
  Result<void> synchronize() override {
    ++waits;
    RETURN_IF_ERROR(host_call());
    return to_.synchronize();
  }
  Result<void> copy(device::Address to, device::Address from, uint64_t n) override {
    return queue([=, this] { return to_.copy(to, from, n); });
  }
  Result<void> fill(device::Address a, device::Filling v, uint64_t n) override {
    return queue([=, this] { return to_.fill(a, v, n); });
  }
  Result<void> launch(device::KernelHandle k, device::Dim3 g, device::Dim3 b, uint32_t s,
                      std::span<const std::byte> p) override {
    return queue([=, this, kept = std::vector<std::byte>(p.begin(), p.end())] { return to_.launch(k, g, b, s, kept); });
  }
  bool has_graphs() const override { return true; }
  Result<void> begin_graph() override {
    graph_.clear();
    is_recording_ = true;
    return {};
  }
  Result<device::GraphHandle> end_graph() override {
    is_recording_ = false;
    return device::GraphHandle{1};
  }
  Result<void> launch_graph(device::GraphHandle) override {
    ++replays;
    for (const auto& work : graph_) RETURN_IF_ERROR(work());
    return {};
  }
  Result<void> free_graph(device::GraphHandle) override { return {}; }
  uint64_t host_calls() const override { return host_calls_; }

 private:
  Result<void> host_call() {
    ++host_calls_;
    return is_recording_ ? Result<void>(Error{Fault::internal, "the host is needed while a graph is recorded"}) : Result<void>();
  }
  Result<void> queue(std::function<Result<void>()> work) {
    if (!is_recording_) return work();
    graph_.push_back(std::move(work));
    return {};
  }
  const uint64_t bytes_;
  uint64_t host_calls_ = 0;
  bool is_recording_ = false;
  std::vector<std::function<Result<void>()>> graph_;
};

// From the third run on operators go on with the answers of the runs before, so that such a run is a graph then. An answer that has become another one,
// since elements are others than those that the engine sent, is noticed: the run is repeated, and no later one foresees anything.
TEST_F(EngineTest, AnswersOfTheDeviceAreForeseenAndCompared) {
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table { t:? = @load_table(`t:sym);
  x:f64 = check_cast(@column_value(t, `x:sym), f64); u:? = @unique(x); s:? = @index(x, u); o:? = @order(s, 0:bool);
  y:? = @index(s, o); c:? = @list(y); r:? = @table(`s:sym, c); return r; })"));
  constexpr int32_t rows = 200;
  const auto expected = [](int32_t from, int32_t step) {
    std::string text = "s\r\n";
    for (int32_t i = from; i >= 0; i -= step) text += fmt::format("{}\r\n", i / 2.0);
    return text;
  };
  for (const bool graphs : {false, true}) {
    SCOPED_TRACE(graphs);
    auto simulator = open_simulator("sm_86");
    GraphDevice device(**simulator, 8 * rows);
    CountingTables tables(rows);
    Engine engine(device, tables);
    auto plan = engine.plan(compiled_, sources_, {.measure_kernels = false, .graphs = graphs}, timings_);
    ASSERT_TRUE(plan) << plan.error().message;
    const auto run = [&] {
      auto got = engine.run(**plan, timings_);
      return got ? *print_result(*got, Format::csv) : got.error().message;
    };
    for (int k = 0; k < 6; ++k) {
      device.waits = 0;
      EXPECT_EQ(run(), expected(rows - 1, 1));
      EXPECT_EQ(device.waits, k < 2 ? 2u : 1u) << k;
    }
    EXPECT_EQ(device.replays, graphs ? 3u : 0u);
    double pairs[rows];
    for (int32_t i = 0; i < rows; ++i) pairs[i] = i / 2;
    ASSERT_TRUE((*simulator)->copy_to_device(device.sent, pairs, sizeof pairs));
    for (int k = 0; k < 4; ++k) {
      device.waits = 0;
      EXPECT_EQ(run(), expected(rows - 2, 2));
      EXPECT_EQ(device.waits, k == 0 ? 3u : 2u) << k;
    }
    EXPECT_EQ(device.replays, graphs ? 4u : 0u);
  }
}

// Nor where a limit has kernels' counts decide how much memory there is, nor in the runs after columns were given up.
TEST_F(EngineTest, NoAnswerIsForeseenUnderALimitOrOfColumnsThatWereGivenUp) {
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table { t:? = @load_table(`t:sym);
  x:f64 = check_cast(@column_value(t, `x:sym), f64); u:? = @unique(x); y:? = @index(x, u); c:? = @list(y); r:? = @table(`s:sym, c); return r; })"));
  for (const bool limited : {false, true}) {
    SCOPED_TRACE(limited);
    auto simulator = open_simulator("sm_86");
    GraphDevice device(**simulator, 8 * 200);
    CountingTables tables(200);
    Engine engine(device, tables);
    if (limited) engine.limit_memory(1 << 30);
    auto plan = engine.plan(compiled_, sources_, {.measure_kernels = false}, timings_);
    ASSERT_TRUE(plan) << plan.error().message;
    const auto waits = [&] {
      device.waits = 0;
      EXPECT_TRUE(engine.run(**plan, timings_));
      return device.waits;
    };
    const uint64_t at_first = waits();
    EXPECT_GT(at_first, 1u);
    for (int k = 1; k < 6; ++k) EXPECT_EQ(waits(), limited || k < 2 ? at_first : 1u) << k;
    EXPECT_EQ(device.replays > 0, !limited);
    engine.forget({});
    const uint64_t replays = device.replays;
    for (int k = 0; k < 2; ++k) EXPECT_EQ(waits(), at_first) << k;
    EXPECT_EQ(device.replays, replays);
  }
}

// The driver that only writes down what it is asked for, with an empty log; null when it cannot be opened.
void* open_fake_driver() {
  void* handle = dlopen(RNDN_FAKE_CUDA, RTLD_NOW);
  if (handle) reinterpret_cast<void (*)()>(dlsym(handle, "fake_cuda_reset"))();
  return handle;
}
// What it was asked for, a call per line.
std::istringstream fake_driver_log(void* handle) {
  return std::istringstream(reinterpret_cast<const char* (*)()>(dlsym(handle, "fake_cuda_log"))());
}

// The same plan on the CUDA wrapper: what it asks of the driver. Kernels do nothing there, so results are not looked at.
TEST_F(EngineTest, AsksTheDriverForOneLaunchPerRunAndNoCopiesBack) {
  void* handle = open_fake_driver();
  ASSERT_NE(handle, nullptr) << dlerror();
  auto reset = reinterpret_cast<void (*)()>(dlsym(handle, "fake_cuda_reset"));
  auto log = [&](const std::string& prefix) {
    std::istringstream text = fake_driver_log(handle);
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);)
      if (line.starts_with(prefix)) lines.push_back(line);
    return lines;
  };
  ASSERT_NO_FATAL_FAILURE(compile_text(sum_of_large, "sm_90"));
  auto preparation = cuda::prepare(0, RNDN_FAKE_CUDA);
  auto device = cuda::open(*preparation);
  ASSERT_TRUE(device) << device.error().message;
  CountingTables tables(1000000);
  Engine engine(**device, tables);
  auto plan = engine.plan(compiled_, sources_, {}, timings_);
  ASSERT_TRUE(plan) << plan.error().message;
  reset();
  for (int run = 0; run < 2; ++run) {
    auto got = engine.run(**plan, timings_);
    ASSERT_TRUE(got) << got.error().message;
  }
  // 3 multiprocessors of 8 blocks each; the kernel's parameters are 8 bytes each.
  uint32_t block = compiled_.code.kernels[0].block_size;
  std::string launch =
      fmt::format("cuLaunchKernel:24,1,1/{},1,1/0/{}", block, 8 * compiled_.code.kernels[0].parameters.size());
  EXPECT_THAT(log("cuLaunchKernel"), ElementsAre(launch, launch));
  EXPECT_TRUE(log("cuMemcpyDtoHAsync").empty()) << "a scalar result arrives in mapped memory";
  EXPECT_THAT(log("cuMemcpyHtoDAsync"), testing::Contains("cuMemcpyHtoDAsync:4000000"));

  // All calls of a run that comes again: marks around the launch and one to count from; when it began is asked for where a report draws it.
  auto without_timeline = engine.plan(compiled_, sources_, {.timeline = false}, timings_);
  ASSERT_TRUE(without_timeline);
  for (const auto& [measured, questions] : {std::pair{without_timeline->get(), 1u}, {plan->get(), 2u}}) {
    ASSERT_TRUE(engine.run(*measured, timings_));
    reset();
    Timings of_run;
    ASSERT_TRUE(engine.run(*measured, of_run));
    EXPECT_EQ(log("cuLaunchKernel").size(), 1u);
    EXPECT_EQ(log("cuEventRecord").size(), 3u);
    EXPECT_EQ(log("cuStreamSynchronize").size(), 1u);
    EXPECT_EQ(log("cuEventElapsedTime").size(), questions);
    EXPECT_EQ(of_run.device_spans().size(), questions - 1);
    std::vector<std::string> all = log("cu");
    std::erase_if(all, [](const std::string& line) { return line == "cuEventCreate"; });
    EXPECT_EQ(all.size(), 5 + questions);
  }

  // Without the times of kernels: a graph from the third run on.
  auto unmeasured = engine.plan(compiled_, sources_, {.measure_kernels = false}, timings_);
  ASSERT_TRUE(unmeasured);
  reset();
  for (int run = 0; run < 5; ++run) ASSERT_TRUE(engine.run(**unmeasured, timings_));
  EXPECT_THAT(log("cuLaunchKernel"), ElementsAre(launch, launch, launch));
  EXPECT_EQ(log("cuStreamBeginCapture").size(), 1u);
  EXPECT_EQ(log("cuGraphLaunch").size(), 3u);
  EXPECT_TRUE(log("cuMemcpyDtoHAsync").empty());

  // A device that fails: the run fails with the driver's reason, and where it is lost so does every run after it.
  setenv("RNDN_FAKE_CUDA_FAIL", "cuLaunchKernel:701", 1);
  auto got = engine.run(**plan, timings_);
  unsetenv("RNDN_FAKE_CUDA_FAIL");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().exit_code(), 3);
  EXPECT_TRUE(got.error().message.starts_with("kernel `main_1` (t.hir:3:3): cuLaunchKernel with a grid of 24x1x1 and "))
      << got.error().message;
  setenv("RNDN_FAKE_CUDA_FAIL", "cuStreamSynchronize:700", 1);
  got = engine.run(**plan, timings_);
  unsetenv("RNDN_FAKE_CUDA_FAIL");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().exit_code(), 3);
  EXPECT_EQ(
      got.error().message,
      "cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered); kernels "
      "since the last wait: `main_1` (t.hir:3:3)");
  got = engine.run(**plan, timings_);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().exit_code(), 3);
  EXPECT_TRUE(got.error().message.starts_with(
      "Fake GPU 0 is lost to this process, which must be started again, since an earlier call failed: "
      "cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS "))
      << got.error().message;
}

// A fault of a kernel shows in a call that comes later, here the wait of an operator or the launch behind it: the message names the kernels that
// may be at fault, and not the caller as the one that is.
TEST_F(EngineTest, FaultsThatShowLaterAreNotThoseOfTheCaller) {
  ASSERT_TRUE(open_fake_driver());
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table { t:? = @load_table(`t:sym);
  x:f64 = check_cast(@column_value(t, `x:sym), f64); y:? = @neg(x);
  o:? = @order(y, 0:bool); s:? = @index(x, o); c:? = @list(s); r:? = @table(`s:sym, c); return r; })",
                                       "sm_90"));
  auto preparation = cuda::prepare(0, RNDN_FAKE_CUDA);
  auto device = cuda::open(*preparation);
  ASSERT_TRUE(device) << device.error().message;
  CountingTables tables(100000);
  Engine engine(**device, tables);
  auto plan = engine.plan(compiled_, sources_, {}, timings_);
  ASSERT_TRUE(plan) << plan.error().message;
  const auto message = [&](const char* fail) {
    (void)open_fake_driver();  // it counts from here
    setenv("RNDN_FAKE_CUDA_FAIL", fail, 1);
    auto got = engine.run(**plan, timings_);
    unsetenv("RNDN_FAKE_CUDA_FAIL");
    EXPECT_FALSE(got);
    if (got) return std::string();
    EXPECT_EQ(got.error().exit_code(), 3);
    return got.error().message;
  };
  EXPECT_TRUE(
      message("cuLaunchKernel:701").starts_with("kernel `main_1` (t.hir:2:54): cuLaunchKernel with a grid of "));
  EXPECT_EQ(
      message("cuStreamSynchronize:700"),
      "cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered); noticed "
      "at `order` (t.hir:3:3); kernels since the last wait: `main_1` (t.hir:2:54), `bounds_f`");
}

// Everything that is taken of the driver goes back to it: memory, modules, events, graphs; also after a run that failed.
TEST_F(EngineTest, GivesEverythingBackToTheDriver) {
  void* handle = open_fake_driver();
  ASSERT_NE(handle, nullptr) << dlerror();
  ASSERT_NO_FATAL_FAILURE(compile_text(sum_of_large, "sm_90"));
  {
    auto preparation = cuda::prepare(0, RNDN_FAKE_CUDA);
    auto device = cuda::open(*preparation);
    ASSERT_TRUE(device) << device.error().message;
    CountingTables tables(1000000);
    Engine engine(**device, tables);
    auto plan = engine.plan(compiled_, sources_, {}, timings_),
         unmeasured = engine.plan(compiled_, sources_, {.measure_kernels = false}, timings_);
    ASSERT_TRUE(plan && unmeasured);
    for (int run = 0; run < 4; ++run) ASSERT_TRUE(engine.run(**unmeasured, timings_));
    for (const char* call : {"cuLaunchKernel:701", "cuStreamSynchronize:1"}) {
      setenv("RNDN_FAKE_CUDA_FAIL", call, 1);
      auto got = engine.run(**plan, timings_);
      unsetenv("RNDN_FAKE_CUDA_FAIL");
      EXPECT_FALSE(got) << call;
      ASSERT_TRUE(engine.run(**plan, timings_)) << "after " << call;
    }
  }
  std::map<std::string, size_t> calls;
  std::istringstream text = fake_driver_log(handle);
  for (std::string line; std::getline(text, line);) ++calls[line.substr(0, line.find(':'))];
  for (const auto& [taken, given] :
       std::map<std::string, std::string>{{"cuMemAlloc", "cuMemFree"},
                                          {"cuMemHostAlloc", "cuMemFreeHost"},
                                          {"cuModuleLoadData", "cuModuleUnload"},
                                          {"cuEventCreate", "cuEventDestroy"},
                                          {"cuStreamCreate", "cuStreamDestroy"},
                                          {"cuStreamEndCapture", "cuGraphDestroy"},
                                          {"cuGraphInstantiateWithFlags", "cuGraphExecDestroy"},
                                          {"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease"}}) {
    EXPECT_GT(calls[taken], 0u) << taken;
    EXPECT_EQ(calls[taken], calls[given]) << taken;
  }
}

// Engines share nothing but what they are given: each thread has a device and an engine, and all run the same compiled program.
TEST_F(EngineTest, EnginesInSeveralThreads) {
  ASSERT_NO_FATAL_FAILURE(compile_text(R"(table { t:? = @load_table(`t:sym);
  a:i32 = check_cast(@column_value(t, `a:sym), i32); x:f64 = check_cast(@column_value(t, `x:sym), f64);
  b:? = @minus(a, 7:i32); m:? = @lt(b, 900:i32); k:? = @compress(m, b); y:? = @compress(m, x);
  o:? = @order(y, 0:bool); k2:? = @index(k, o); u:? = @unique(k2); k3:? = @index(k2, u); c:? = @list(k3);
  r:? = @table(`s:sym, c); return r; })"));
  CountingTables tables(3000);
  const std::string right = reference_csv(tables);
  std::vector<std::string> got(4);
  std::vector<std::thread> threads;
  for (std::string& answer : got)
    threads.emplace_back([&] {
      CountingTables own(3000);
      auto device = open_simulator("sm_86");
      Engine engine(**device, own);
      Timings timings;
      auto plan = engine.plan(compiled_, sources_, {}, timings);
      for (int run = 0; run < 5; ++run) {
        auto result = plan ? engine.run(**plan, timings) : Result<std::vector<reference::Value>>(plan.error());
        answer = result ? *print_result(*result, Format::csv) : result.error().message;
        if (answer != right) return;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& answer : got) EXPECT_EQ(answer, right);
}

}  // namespace
}  // namespace rndn::runtime
