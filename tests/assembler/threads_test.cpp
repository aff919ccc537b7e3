// Threads that assemble at once share nothing but what they read: the modules, and the tables of the targets. For
// tools/check --sanitize thread, which sees what they share besides; small, so that it takes seconds there.
#include <gtest/gtest.h>

#include <thread>

#include "assembler/assemble.h"
#include "libraries/base/system/parallel.h"
#include "libraries/operators/api.h"

namespace rndn::assembler {
namespace {

struct Work {
  const ptx::Module* module;
  const isa::Target* target;
  int level;
};
using Cubin = std::vector<std::byte>;

Cubin assembled(const Work& work, Workspace* workspace, ThreadPool* pool) {
  Options options;
  options.target = work.target;
  options.level = work.level;
  options.workspace = workspace;
  options.pool = pool;
  options.stencils = Stencils::with_workspace;
  Timings timings;
  auto made = assemble(*work.module, options, timings);
  return made ? std::move(made->cubin) : Cubin();
}

TEST(AssemblerThreads, AssembleTheSameModulesAtOnce) {
  const std::vector<operators::ReadyKernel> kernels = operators::ready_kernels();
  std::vector<Work> work;
  size_t k = 0;
  for (const isa::Target& target : isa::targets())
    for (int level : {3, 0, 1, 2})
      for (int some = 0; some < 6; ++some) work.push_back({&kernels[k++ * 7 % kernels.size()].module, &target, level});
  std::vector<std::vector<Cubin>> made(3, std::vector<Cubin>(work.size()));
  const auto run = [&](size_t who, bool keeps, ThreadPool* pool) {
    Workspace workspace;
    for (size_t i = 0; i < work.size(); ++i) {
      const size_t at = who == 1 ? work.size() - 1 - i : i;
      made[who][at] = assembled(work[at], keeps ? &workspace : nullptr, pool);
    }
  };
  ThreadPool pool(2);
  std::thread first([&] { run(0, true, nullptr); }), second([&] { run(1, true, &pool); });
  first.join(), second.join();
  run(2, true, nullptr);
  for (size_t i = 0; i < work.size(); ++i) {
    ASSERT_FALSE(made[2][i].empty()) << i;
    EXPECT_EQ(made[0][i], made[2][i]) << i;
    EXPECT_EQ(made[1][i], made[2][i]) << i;
  }
}

}  // namespace
}  // namespace rndn::assembler
