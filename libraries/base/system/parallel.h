// Data parallelism over all cores.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "libraries/base/system/cancel.h"

namespace rndn {

unsigned hardware_threads();  // >= 1

// Threads that wait for work: for loops that are too short to start threads for.
// The threads are started by the first loop that has use for them and end with the pool.
class ThreadPool {
 public:
  explicit ThreadPool(unsigned threads = 0) : wanted_(threads ? threads : hardware_threads()) {}  // 0: all cores
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  // Calls body(i, worker) for every i in [0, n); threads take indices in ascending order as they become free. `worker` < threads() names the thread
  // (0: the caller), so that a body can use state of its own. Returns when all calls have returned. Runs on fewer threads when no more can be had.
  // The first exception of a body ends the handing out of indices and is thrown again here. So does the end of the caller's work (cancel.h), which is
  // that of the other threads, too: Cancelled is thrown.
  // One loop at a time: a second caller waits for the first to finish; a body must not start a loop on its own pool.
  void run(size_t n, const std::function<void(size_t i, unsigned worker)>& body);
  // Loops of less than a millisecond will come within the next few: threads that sleep wake up, and wait awake for a while. To wake a thread takes
  // tens of microseconds, which such a loop would otherwise spend alone. Does nothing before the pool's first loop, which starts the threads.
  void expect_loops();
  unsigned threads() const { return wanted_; }

 private:
  void take(unsigned worker) noexcept;
  void serve(unsigned worker) noexcept;
  void start(size_t threads);

  unsigned wanted_;
  std::vector<std::thread> pool_;  // worker w is pool_[w - 1]
  std::mutex running_;             // held by the caller whose loop runs
  // The loop. Written by its caller, while no thread is inside, before it raises `round_`.
  const std::function<void(size_t, unsigned)>* body_ = nullptr;
  size_t n_ = 0;
  const CancelToken* token_ = nullptr;  // of the caller
  std::atomic<size_t> next_{0};
  std::exception_ptr thrown_;
  std::mutex
      mutex_;  // of what follows, and of thrown_; round_, inside_ and end_ are written under it and looked at without it
  std::condition_variable wake_, done_;
  std::atomic<size_t> round_{0}, inside_{0};
  std::atomic<bool> end_{false};
  size_t asleep_ = 0, expected_ = 0;
  std::atomic<std::chrono::steady_clock::rep> awake_until_{0};
};

// ThreadPool::run on threads that live as long as the loop: for long loops. threads: 0 = all cores.
void parallel_for(size_t n, const std::function<void(size_t)>& body, unsigned threads = 0);

}  // namespace rndn
