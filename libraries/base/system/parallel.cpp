#include "libraries/base/system/parallel.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <utility>

#include "libraries/base/system/wait.h"

namespace rndn {

unsigned hardware_threads() {
  static const unsigned count = std::max(1u, std::thread::hardware_concurrency());  // opens a file
  return count;
}

namespace {

using Clock = std::chrono::steady_clock;

// Looks at `done` again and again until then; gives way to other threads of a core that has more than this one.
template <class F>
void wait_awake(std::atomic<Clock::rep>& until, F&& done) {
  for (unsigned turn = 1; !done(); ++turn) {
    if (turn % 64 != 0) {
#ifdef __SSE2__
      _mm_pause();
#endif
      continue;
    }
    if (Clock::now().time_since_epoch().count() >= until.load(std::memory_order_relaxed)) return;
    std::this_thread::yield();
  }
}
Clock::rep from_now(std::chrono::microseconds time) { return (Clock::now() + time).time_since_epoch().count(); }

}  // namespace

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    end_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : pool_) t.join();
}

void ThreadPool::take(unsigned worker) noexcept {
  try {
    const CancelScope scope(token_);
    for (size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < n_;) {
      throw_if_cancelled();
      (*body_)(i, worker);
    }
  } catch (...) {
    next_.store(n_, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    if (!thrown_) thrown_ = std::current_exception();
  }
}

void ThreadPool::serve(unsigned worker) noexcept {
  std::unique_lock lock(mutex_);
  size_t seen = 0;
  const auto called = [&] { return end_ || round_ != seen; };
  while (!end_) {
    if (!called()) {
      lock.unlock();
      wait_awake(awake_until_, called);
      lock.lock();
    }
    if (!called()) {
      ++asleep_;
      wait_for_change(wake_, lock, [&, expected = expected_] { return called() || expected_ != expected; });
      --asleep_;
      if (!called()) {  // the next two are woken by this one, so that it costs the caller one
        const size_t others = std::min<size_t>(asleep_, 2);
        lock.unlock();
        for (size_t t = 0; t < others; ++t) wake_.notify_one();
        lock.lock();
      }
      continue;
    }
    if (end_) return;
    seen = round_;
    if (next_.load(std::memory_order_relaxed) >= n_)
      continue;  // woke up too late: nothing is left, the caller may be gone
    ++inside_;
    lock.unlock();
    take(worker);
    lock.lock();
    if (--inside_ == 0) done_.notify_one();
  }
}

void ThreadPool::expect_loops() {
  constexpr std::chrono::microseconds span(3000);
  awake_until_ = from_now(span);
  {
    std::lock_guard lock(mutex_);
    ++expected_;
    if (asleep_ == 0) return;
  }
  wake_.notify_one();
}

void ThreadPool::start(size_t threads) {
  try {
    while (pool_.size() + 1 < threads)
      pool_.emplace_back([this, w = static_cast<unsigned>(pool_.size() + 1)] { serve(w); });
  } catch (...) {  // no memory or no right for one more: those that run take its share
  }
}

void ThreadPool::run(size_t n, const std::function<void(size_t, unsigned)>& body) {
  const size_t threads = std::min<size_t>(wanted_, n);
  if (threads <= 1) {
    for (size_t i = 0; i < n; ++i) {
      throw_if_cancelled();
      body(i, 0);
    }
    return;
  }
  std::lock_guard running(running_);
  size_t awake = 0;
  {
    std::lock_guard lock(mutex_);
    body_ = &body;
    token_ = CancelToken::current();
    n_ = n;
    next_.store(0, std::memory_order_relaxed);
    ++round_;
    awake = pool_.size() - asleep_;  // they see the new round before they sleep
  }
  start(threads);
  if (threads > pool_.size())
    wake_.notify_all();
  else
    for (size_t t = 1 + awake; t < threads; ++t) wake_.notify_one();
  take(0);
  // The others are mostly about to finish as well.
  std::atomic<Clock::rep> soon{from_now(std::chrono::microseconds(100))};
  wait_awake(soon, [&] { return inside_ == 0; });
  std::unique_lock lock(mutex_);
  wait_for_change(done_, lock, [&] { return inside_ == 0; });
  n_ = 0;
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void parallel_for(size_t n, const std::function<void(size_t)>& body, unsigned threads) {
  ThreadPool pool(static_cast<unsigned>(std::min<size_t>(threads ? threads : hardware_threads(), n ? n : 1)));
  pool.run(n, [&](size_t i, unsigned) { body(i); });
}

}  // namespace rndn
