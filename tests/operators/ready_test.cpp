// Kernels that are made on a thread before they are asked for (libraries/operators/ready.h): which are late, and who waits for whom.
#include <atomic>
#include <future>
#include <thread>

#include "tests/operators/support.h"

namespace rndn::operators::ready_test {

using test::Bench;

namespace {

Result<std::vector<std::byte>> made(const ptx::Module& module) {
  Timings timings;
  assembler::Options options;
  options.target = isa::find_target("sm_90");
  ASSIGN_OR_RETURN(assembler::Assembled code, assembler::assemble(module, options, timings));
  return std::move(code.cubin);
}

// Late kernels of a sort, or of groups, of a few rows.
size_t late_kernels(Bench& bench, bool groups) {
  const Vector column = bench.put(Type::i32, std::vector<int32_t>{3, 1, 3, 2});
  if (groups) {
    const auto found = bench.sql->group({&column, 1}, *bench.memory);
    EXPECT_TRUE(found.ok());
    if (found) EXPECT_EQ(bench.get<int64_t>(found->keys), (std::vector<int64_t>{1, 3, 0}));
  } else {
    const bool ascending[] = {true};
    const auto rows = bench.sql->order({&column, 1}, ascending, *bench.memory);
    EXPECT_TRUE(rows.ok());
    if (rows) EXPECT_EQ(bench.get<int64_t>(*rows), (std::vector<int64_t>{1, 3, 0, 2}));
  }
  size_t late = 0;
  for (const Launch& l : bench.sql->take_launches()) late += l.is_late;
  return late;
}

TEST(ReadyKernels, AreNotLate) {
  Bench bench("sm_90");
  EXPECT_EQ(late_kernels(bench, false), 1u) << "nothing is ready";
  EXPECT_EQ(late_kernels(bench, false), 0u) << "it is late once";
  bench.sql->make_ready(made);
  bench.sql->wait_ready();
  EXPECT_EQ(late_kernels(bench, true), 0u);
  EXPECT_EQ(late_kernels(bench, false), 0u);
}

TEST(ReadyKernels, AreWaitedForByNobody) {
  Bench bench("sm_90");
  std::promise<void> at_hand, go_on;
  bench.sql->make_ready([&](const ptx::Module& module) {
    if (module.functions[0].name == "small_groups") {
      at_hand.set_value();
      go_on.get_future().wait();
    }
    return made(module);
  });
  at_hand.get_future().wait();
  EXPECT_EQ(late_kernels(bench, true), 1u) << "the thread has it at hand, and does not go on";
  go_on.set_value();
  bench.sql->wait_ready();
  EXPECT_EQ(late_kernels(bench, true), 0u);
  EXPECT_EQ(late_kernels(bench, false), 0u);
}

TEST(ReadyKernels, AreMadeByWhoAsksWhereTheThreadFails) {
  Bench bench("sm_90");
  bench.sql->make_ready([](const ptx::Module&) { return Result<std::vector<std::byte>>(world_error("no")); });
  bench.sql->wait_ready();
  EXPECT_EQ(late_kernels(bench, true), 1u);
}

TEST(ReadyKernels, EndWithTheOneAtHand) {
  std::atomic<size_t> begun = 0;
  {
    Bench bench("sm_90");
    std::promise<void> at_hand;
    bench.sql->make_ready([&](const ptx::Module& module) {
      if (++begun == 1) {
        at_hand.set_value();
        std::this_thread::sleep_for(std::chrono::milliseconds(500));  // by then the object is about to end
      }
      return made(module);
    });
    at_hand.get_future().wait();
  }
  EXPECT_EQ(begun, 1u);
}

}  // namespace
}  // namespace rndn::operators::ready_test
