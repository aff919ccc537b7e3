// The machine code that comes with the programs (libraries/operators/machine_code): all kernels, and the same code that they
// have when they are assembled.
#include "libraries/operators/machine_code/code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "assembler/assemble.h"
#include "libraries/base/system/parallel.h"
#include "libraries/operators/api.h"

namespace rndn::operators {
namespace {

TEST(OperatorsCode, IsThatOfEveryKernelForEveryTarget) {
  const std::vector<ReadyKernel> kernels = ready_kernels();
  const std::span<const isa::Target> targets = isa::targets();
  ASSERT_GE(kernels.size(), 80u);
  EXPECT_EQ(code_count(), kernels.size() * targets.size()) << "kernels of one name, or a target is missing";
  std::mutex one;
  parallel_for(kernels.size() * targets.size(), [&](size_t i) {
    const ReadyKernel& kernel = kernels[i % kernels.size()];
    assembler::Options options;
    options.target = &targets[i / kernels.size()];
    Timings timings;
    const auto made = assembler::assemble(kernel.module, options, timings);
    std::lock_guard lock(one);
    ASSERT_TRUE(made) << kernel.name << ": " << made.error().message;
    const auto code = find_code(options.target->name, kernel.name);
    ASSERT_TRUE(code) << options.target->name << " " << kernel.name;
    EXPECT_EQ(code->target, options.target->name);
    EXPECT_EQ(code->kernel, kernel.name);
    EXPECT_EQ(code->block_size, kernel.block_size) << kernel.name;
    EXPECT_EQ(code->instructions, made->kernels.at(0).instructions) << kernel.name;
    EXPECT_TRUE(std::ranges::equal(code->cubin, made->cubin)) << options.target->name << " " << kernel.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(code->cubin.data()) % 8, 0u) << "an ELF file is read in place";
  });
}

TEST(OperatorsCode, HasNoOther) {
  EXPECT_TRUE(find_code("sm_90", "small_order"));
  for (const auto& [target, kernel] : {std::pair("sm_90", "small_orde"),
                                       {"sm_90", "small_orders"},
                                       {"sm_90", ""},
                                       {"sm_9", "small_order"},
                                       {"", "small_order"},
                                       {"sm_99", "zzz"},
                                       {"a", "a"}})
    EXPECT_FALSE(find_code(target, kernel)) << target << " " << kernel;
}

}  // namespace
}  // namespace rndn::operators
