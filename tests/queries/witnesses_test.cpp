// Query 6 through every witness that needs no GPU: our machine code and ptxas's on the simulator, for every target, with all its checks on; the
// PTX interpreter on the generated PTX; the reference interpreter; and the official answer.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "libraries/base/system/files.h"
#include "runtime/data/tables.h"
#include "runtime/engine.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/queries/interpreter_device.h"
#include "tests/support/status.h"
#include "tests/support/targets.h"
#include "tpch/source.h"

namespace rndn::testing {
namespace {

constexpr double answer = 1193053.2253;  // at scale 0.01, exact decimal arithmetic
const std::vector<std::string> targets = isa::target_names();

// ptxas 11.8 in the folder that RNDN_REFERENCE_TOOLS names; empty where it is absent.
std::string reference_ptxas() {
  const char* folder = std::getenv("RNDN_REFERENCE_TOOLS");
  std::string path = folder ? std::string(folder) + "/ptxas" : "";
  return std::filesystem::exists(path) ? path : "";
}

class Query6 : public ::testing::Test {
 protected:
  void SetUp() override {
    auto source = tpch::open_source("tpch:0.01");
    ASSERT_TRUE(source.ok());
    tables_ = std::make_unique<data::SourceTables>(*source);
    schema_ = *source;
    std::string path = RNDN_SOURCE_DIR "/tpch/queries/q06.hir";
    Result<std::string> text = read_file(path);
    ASSERT_TRUE(text.ok());
    file_ = sources_.add(path, *text);
  }

  runtime::Compiled compile(const std::string& target, runtime::Backend backend = {}) {
    runtime::CompileOptions options;
    options.target = target;
    options.schema = &schema_->schema();
    options.verify_passes = true;
    options.backend = backend;
    DiagnosticSink sink;
    Timings timings;
    Result<runtime::Compiled> compiled = runtime::compile(file_, sources_, options, sink, timings);
    EXPECT_TRUE(compiled.ok()) << (compiled.ok() ? "" : compiled.error().message) << render(sink, sources_);
    if (!compiled.ok()) return {};
    EXPECT_EQ(compiled->no_gpu_code, "");
    EXPECT_EQ(compiled->code.kernels.size(), 1u) << "query 6 is one kernel";
    return *std::move(compiled);
  }

  // The revenue that the device computes; the bits must repeat on a second run.
  double run(device::Device& device, const runtime::Compiled& compiled) {
    runtime::Engine engine(device, *tables_);
    Timings timings;
    runtime::EngineOptions options;
    options.allow_fallback = false;
    auto plan = engine.plan(compiled, sources_, options, timings);
    EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
    if (!plan.ok()) return 0;
    double revenue[2] = {0, 0};
    for (double& r : revenue) {
      auto results = engine.run(**plan, timings);
      EXPECT_TRUE(results.ok()) << (results.ok() ? "" : results.error().message);
      if (results.ok()) r = (*results)[0].parts()[0].as<double>()[0];
    }
    EXPECT_EQ(revenue[0], revenue[1]) << "a reduction must repeat bit for bit";
    return revenue[0];
  }

  double simulate(const std::string& target, const runtime::Compiled& compiled) {
    sim::Options checks;
    checks.check_memory = checks.check_uninitialised = checks.check_hazards = checks.check_races = true;
    auto device = runtime::open_simulator(target, checks);
    EXPECT_TRUE(device.ok());
    return device.ok() ? run(**device, compiled) : 0;
  }

  SourceManager sources_;
  FileId file_{};
  std::shared_ptr<data::Source> schema_;
  std::unique_ptr<data::SourceTables> tables_;
};

TEST_F(Query6, OurCodeOnTheSimulatorOfEveryTarget) {
  for (const std::string& target : targets) {
    SCOPED_TRACE(target);
    double revenue = simulate(target, compile(target));
    EXPECT_NEAR(revenue, answer, 1e-9 * answer);
    if (std::abs(revenue - answer) <= 1e-9 * answer) record_status("query", "q06", target, "simulator");
  }
}

TEST_F(Query6, PtxasCodeOnTheSimulatorOfEveryTarget) {
  runtime::Backend ptxas{runtime::Backend::ptxas, reference_ptxas()};
  if (ptxas.path.empty())
    GTEST_SKIP() << "skipped: ptxas 11.8 not found, RNDN_REFERENCE_TOOLS names no folder that holds it";
  for (const std::string& target : targets) {
    SCOPED_TRACE(target);
    double revenue = simulate(target, compile(target, ptxas));
    EXPECT_NEAR(revenue, answer, 1e-9 * answer);
    if (std::abs(revenue - answer) <= 1e-9 * answer) record_status("query", "q06", target, "simulator (ptxas's code)");
  }
}

TEST_F(Query6, PtxInterpreterInSeveralOrders) {
  runtime::Compiled compiled = compile("sm_86");
  for (uint64_t seed : {0, 1, 2}) {
    InterpreterDevice device(compiled.code.module, seed);
    double revenue = run(device, compiled);
    EXPECT_NEAR(revenue, answer, 1e-9 * answer) << "seed " << seed;
  }
  record_status("query", "q06", "any", "PTX interpreter");
}

}  // namespace
}  // namespace rndn::testing
