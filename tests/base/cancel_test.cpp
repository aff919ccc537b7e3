// Tokens that end work: who sees them, what they say, and what memory is charged to them.
#include "libraries/base/system/cancel.h"
#include "libraries/base/system/host_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <vector>

#include "libraries/base/report/sizes.h"
#include "libraries/base/system/background.h"
#include "libraries/base/system/deep_stack.h"
#include "libraries/base/system/interrupt.h"
#include "libraries/base/system/parallel.h"

namespace rndn {
namespace {

TEST(Cancel, NothingIsCancelledWithoutAToken) {
  EXPECT_EQ(CancelToken::current(), nullptr);
  EXPECT_TRUE(check_cancelled());
  EXPECT_FALSE(is_cancelled());
  EXPECT_NO_THROW(throw_if_cancelled());
}

TEST(Cancel, IsSeenByTheThreadOfTheScopeAlone) {
  CancelToken token;
  {
    const CancelScope scope(token);
    token.cancel();
    EXPECT_TRUE(is_cancelled());
    const auto checked = check_cancelled();
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().exit_code(), 130);
    EXPECT_EQ(checked.error().cause, Cause::cancelled);
    EXPECT_EQ(checked.error().message, "interrupted");
    bool elsewhere = true;
    std::thread([&] { elsewhere = is_cancelled(); }).join();
    EXPECT_FALSE(elsewhere);
    token.reset();
    EXPECT_TRUE(check_cancelled());
  }
  token.cancel();
  EXPECT_FALSE(is_cancelled());
}

TEST(Cancel, WorkWithinOtherWorkEndsWithIt) {
  CancelToken outer;
  const CancelToken inner({.seconds = 1000}, &outer);
  const CancelScope scope(inner);
  EXPECT_TRUE(check_cancelled());
  outer.cancel();
  EXPECT_EQ(check_cancelled().error().message, "interrupted");
}

TEST(Cancel, ATimeLimitNamesWhatSetsIt) {
  const CancelToken token({.seconds = 0.01, .seconds_name = "timeout="});
  const CancelScope scope(token);
  std::this_thread::sleep_for(std::chrono::milliseconds(15));
  const auto checked = check_cancelled();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().exit_code(), 3);
  EXPECT_EQ(checked.error().message, "the time limit of 0.01 s is over: timeout= sets it");
  // What is beyond any clock is none.
  EXPECT_TRUE(CancelToken({.seconds = 1e300}).check());
}

TEST(Cancel, AtTheNthCheck) {
  CancelToken token;
  const CancelScope scope(token);
  token.cancel_at_check(3);
  EXPECT_TRUE(check_cancelled());
  EXPECT_TRUE(check_cancelled());
  EXPECT_FALSE(check_cancelled());
  EXPECT_FALSE(check_cancelled());
}

TEST(Cancel, LoopsOfPoolsEndBetweenIndices) {
  CancelToken token;
  const CancelScope scope(token);
  for (unsigned threads : {1u, 4u}) {
    token.reset();
    ThreadPool pool(threads);
    std::atomic<size_t> calls{0};
    const auto run = [&] {
      pool.run(1'000'000, [&](size_t, unsigned) {
        EXPECT_NE(CancelToken::current(), nullptr);
        if (++calls == 100) token.cancel();
      });
    };
    EXPECT_THROW(run(), Cancelled) << threads;
    EXPECT_GE(calls, 100u);
    EXPECT_LT(calls, 1000u);
    // The pool goes on, for whoever is not cancelled.
    token.reset();
    calls = 1000;
    EXPECT_NO_THROW(pool.run(10, [&](size_t, unsigned) { ++calls; }));
    EXPECT_EQ(calls, 1010u);
  }
}

TEST(Cancel, GoesOntoAnotherStack) {
  CancelToken token;
  const CancelScope scope(token);
  const CancelToken* seen = nullptr;
  ASSERT_TRUE(on_own_stack(1 << 20, [&] { seen = CancelToken::current(); }));
  EXPECT_EQ(seen, &token);
}

TEST(Cancel, ErrorsOfWhatThrows) {
  CancelToken token;
  const CancelScope scope(token);
  token.cancel();
  const Result<int> cancelled = errors_of([]() -> Result<int> {
    throw_if_cancelled();
    return 1;
  });
  EXPECT_EQ(cancelled.error().exit_code(), 130);
  const Result<int> no_memory = errors_of([]() -> Result<int> { throw std::bad_alloc(); });
  EXPECT_EQ(no_memory.error().exit_code(), 3);
  EXPECT_EQ(no_memory.error().message, "not enough memory");
}

TEST(MemoryCharge, IsGivenBackAndHasALimit) {
  const CancelToken token({.bytes = 1000});
  std::vector<MemoryCharge> held;
  {
    const CancelScope scope(token);
    held.emplace_back(600);
    EXPECT_NO_THROW(expect_memory(400));
    EXPECT_NO_THROW(expect_memory(400)) << "what is only expected stays free";
    try {
      expect_memory(401);
      ADD_FAILURE() << "it fits";
    } catch (const Cancelled& c) {
      EXPECT_EQ(c.error.exit_code(), 3);
      EXPECT_EQ(c.error.cause, Cause::cancelled);
      EXPECT_EQ(
          c.error.message,
          "values take 600 bytes of host memory, and 401 bytes more would be beyond the limit of "
          "1000 bytes: --max-memory sets it");
    }
    MemoryCharge moved = std::move(held[0]);
    held.clear();
    EXPECT_THROW(expect_memory(1000), Cancelled);
    held.push_back(std::move(moved));
  }
  EXPECT_NO_THROW(expect_memory(1000)) << "nobody's";
  EXPECT_THROW(expect_memory(UINT64_MAX), Cancelled) << "more than the host has";
  {
    const HostMemoryScope host([] { return 2000; });
    EXPECT_NO_THROW(expect_memory(2000));
    try {
      expect_memory(2001);
      ADD_FAILURE() << "more than the host is said to have";
    } catch (const Cancelled& c) {
      EXPECT_EQ(c.error.fault, Fault::world);
      EXPECT_EQ(c.error.message.find("the host has 1.953 KiB of memory left, and 1.954 KiB more would leave less"), 0u)
          << c.error.message;
    }
  }
  held.clear();  // outside of the scope: the work's all the same
  const CancelScope scope(token);
  EXPECT_NO_THROW(expect_memory(1000));
  EXPECT_THROW(expect_memory(UINT64_MAX), Cancelled);
}

TEST(CancelWatch, InterruptsUntilTheCallEnds) {
  CancelToken token;
  std::atomic<int> interrupts{0};
  {
    CancelWatch nobody([&] { ++interrupts; });  // no token: no thread
    const CancelWatch::Call call(nobody);
    token.cancel();
  }
  EXPECT_EQ(interrupts, 0);
  token.reset();
  CancelWatch watch([&] { ++interrupts; });
  const CancelScope scope(token);
  for (int round = 0; round < 3; ++round) {
    {
      const CancelWatch::Call outer(watch), inner(watch);
      token.cancel();
      while (interrupts < 2) std::this_thread::yield();
    }
    const int ended = interrupts.exchange(0);
    EXPECT_GE(ended, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
    EXPECT_EQ(interrupts, 0) << "no call is interrupted after its end";
    { const CancelWatch::Call quiet(watch); }
    token.reset();
  }
}

// Many calls, of many threads, of which some are cancelled.
TEST(CancelWatch, TakesCallsOfManyThreads) {
  std::atomic<int> interrupts{0};
  CancelWatch watch([&] { ++interrupts; });
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      CancelToken token;
      const CancelScope scope(token);
      for (int i = 0; i < 200; ++i) const CancelWatch::Call call(watch);
      if (t % 2) return;
      token.cancel();
      const CancelWatch::Call call(watch);
      const int before = interrupts;
      while (interrupts == before) std::this_thread::yield();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(interrupts, 0);
}

TEST(Background, RunsTasksInOrderAndEndsThem) {
  std::vector<int> done;
  std::thread::id worker;
  {
    Background background;
    EXPECT_EQ(background.run([&] { return worker = std::this_thread::get_id(), 7; }).get(), 7);
    for (int i = 0; i < 100; ++i) background.run([&done, i] { done.push_back(i); });
    EXPECT_THROW(background.run([]() -> int { throw std::runtime_error("x"); }).get(), std::runtime_error);
    for (int i = 100; i < 200; ++i) background.run([&done, i] { done.push_back(i); });
  }
  EXPECT_NE(worker, std::this_thread::get_id());
  ASSERT_EQ(done.size(), 200u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(InterruptScope, TakesTheSignalAndGivesItBack) {
  struct sigaction before = {}, after = {};
  sigaction(SIGINT, nullptr, &before);
  {
    InterruptScope interrupts;
    InterruptScope second;  // the signal is taken
    std::raise(SIGINT);
    EXPECT_TRUE(interrupts.token().is_asked());
    EXPECT_FALSE(second.token().is_asked());
  }
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(InterruptScopeDeathTest, ASecondSignalEndsTheProcess) {
  const auto twice = [](int signal) {
    InterruptScope interrupts;
    std::raise(signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::raise(signal);
  };
  EXPECT_EXIT(twice(SIGINT), testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(twice(SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

// A shell that is no terminal's ignores SIGINT for what it starts in the background.
TEST(InterruptScope, TakesSigtermWhereSigintIsIgnored) {
  struct sigaction ignored = {}, before = {};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGINT, &ignored, &before);
  {
    InterruptScope interrupts;
    std::raise(SIGINT);
    EXPECT_FALSE(interrupts.token().is_asked());
    std::raise(SIGTERM);
    EXPECT_TRUE(interrupts.token().is_asked());
  }
  sigaction(SIGINT, &before, nullptr);
}

// timeout(1) sends its signal to the process and to the group that it is in.
TEST(InterruptScope, SignalsOfOneMomentAreOne) {
  for (const int signal : {SIGINT, SIGTERM}) {
    InterruptScope interrupts;
    std::raise(signal);
    std::raise(signal);
    EXPECT_TRUE(interrupts.token().is_asked());
  }
}

int heard = 0;
TEST(InterruptScope, PassesTheSignalOn) {
  struct sigaction own = {}, before = {};
  own.sa_handler = [](int) { ++heard; };
  sigaction(SIGINT, &own, &before);
  {
    InterruptScope interrupts(true);
    std::raise(SIGINT);
    std::raise(SIGINT);
    EXPECT_TRUE(interrupts.token().is_asked());
  }
  EXPECT_EQ(heard, 2);
  sigaction(SIGINT, &before, nullptr);
}

TEST(Sizes, AreReadAsTheyAreWritten) {
  const auto parsed = [](const char* text) {
    const auto size = parse_size(text, "--max-memory");
    return size ? std::to_string(*size) : size.error().message;
  };
  EXPECT_EQ(parsed("1000"), "1000");
  EXPECT_EQ(parsed("512M"), "536870912");
  EXPECT_EQ(parsed("1.5GiB"), "1610612736");
  EXPECT_EQ(parsed("2 KB"), "2048");
  EXPECT_EQ(parsed("3T"), "3298534883328");
  for (const char* wrong :
       {"", "0", "-1", "M", "4X", "4iB", "1e3", "nan", "9999999999T", "4G4", "4GB4"})
    EXPECT_EQ(parsed(wrong), "--max-memory is a number of bytes such as 512M or 4G, not `" +
                                 std::string(wrong) + "`");
  EXPECT_EQ(size_text(1000), "1000 bytes");
  EXPECT_EQ(size_text(uint64_t{3} << 29), "1.5 GiB");
}

}  // namespace
}  // namespace rndn
