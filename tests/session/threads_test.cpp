// Sessions in several threads at once, each with compile threads of its own, over one source: answers
// are right, runs that another thread cancels end so, and the next ones answer. What races here, the
// preset tsan tells of (CONTRIBUTING.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "libraries/base/system/cancel.h"
#include "libraries/base/system/files.h"
#include "runtime/session/session.h"
#include "tpch/source.h"

namespace rndn::runtime::threads_test {
namespace {

constexpr const char* names[] = {"q01", "q04", "q06", "q12"};

struct Programs {
  std::shared_ptr<data::Source> source;
  std::array<std::string, std::size(names)> texts, right;
};
Result<Session::Outcome> run(Session& session, const Programs& of, size_t which) {
  RunOptions options;
  options.cache = false;  // of code: each thread makes its own
  options.threads = 2;
  options.engine.measure_kernels = false;
  return errors_of([&] { return session.run({names[which], names[which], of.texts[which]}, options); });
}
std::unique_ptr<Session> session_of(const Programs& of, const char* device) {
  return std::make_unique<Session>(of.source, *DeviceChoice::start(device, "", [](const std::string&) {}),
                                   SessionOptions{.say = [](const std::string&) {}});
}
Programs programs() {
  Programs all{.source = *tpch::open_source("tpch:0.001")};
  const auto session = session_of(all, "cpu");
  for (size_t p = 0; p < std::size(names); ++p) {
    all.texts[p] = *read_file(fmt::format("{}/tpch/queries/{}.hir", RNDN_SOURCE_DIR, names[p]));
    all.right[p] = *print(*run(*session, all, p), Format::csv);
  }
  all.source = *tpch::open_source("tpch:0.001");  // its columns are read by several at once
  return all;
}

TEST(Threads, SessionsSideBySideAnswerRight) {
  const Programs all = programs();
  std::atomic<size_t> right = 0;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto session = session_of(all, t == 3 ? "cpu" : "sim");
      for (size_t k = 0; k < 2; ++k) {
        const size_t which = (t + k) % std::size(names);
        const auto ran = run(*session, all, which);
        right += ran && *print(*ran, Format::csv) == all.right[which];
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 8u);
}

// By another thread, when the run has looked so often whether it is to end: before it begins, and after each fifth of what a whole run
// looks. Once also by its own look in the middle, which ends it for sure, as that before it begins does.
TEST(Threads, RunsAreCancelledAtAnyMoment) {
  const Programs all = programs();
  std::atomic<size_t> wrong = 0, cancelled = 0;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      const auto session = session_of(all, "sim");
      constexpr uint64_t never = uint64_t{1} << 60;
      uint64_t looks = 0;  // of a whole run, when the session has run before
      for (size_t k = 0; k < 2; ++k) {
        CancelToken token;
        token.cancel_at_check(never);
        const CancelScope scope(token);
        wrong += !run(*session, all, t);
        looks = never - token.checks_left();
      }
      for (size_t k = 0; k < 6; ++k) {
        CancelToken token;
        Result<Session::Outcome> cut = Error{};
        const bool by_itself = k == 5;
        token.cancel_at_check(by_itself ? looks / 2 : never);
        std::atomic<bool> is_done = by_itself;
        std::thread other([&] {
          while (!is_done && never - token.checks_left() < k * looks / 5) std::this_thread::yield();
          if (!by_itself) token.cancel();
        });
        if (k == 0) other.join();
        {
          const CancelScope scope(token);
          cut = run(*session, all, t);
        }
        is_done = true;
        if (other.joinable()) other.join();
        if (cut ? *print(*cut, Format::csv) != all.right[t] : cut.error().cause != Cause::cancelled) ++wrong;
        if (k == 0 || by_itself) wrong += cut.ok();
        cancelled += !cut;
      }
      const auto ran = run(*session, all, t);
      wrong += !ran || *print(*ran, Format::csv) != all.right[t];
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GE(cancelled, 4u);
}

}  // namespace
}  // namespace rndn::runtime::threads_test
