#include "libraries/base/parallel.h"

#include <algorithm>
#include <utility>

namespace rndn {

unsigned hardware_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

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
    for (size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < n_;) (*body_)(i, worker);
  } catch (...) {
    next_.store(n_, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    if (!thrown_) thrown_ = std::current_exception();
  }
}

void ThreadPool::serve(unsigned worker) noexcept {
  std::unique_lock lock(mutex_);
  for (size_t seen = 0;;) {
    wake_.wait(lock, [&] { return end_ || round_ != seen; });
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
    for (size_t i = 0; i < n; ++i) body(i, 0);
    return;
  }
  std::lock_guard running(running_);
  {
    std::lock_guard lock(mutex_);
    body_ = &body;
    n_ = n;
    next_.store(0, std::memory_order_relaxed);
    ++round_;
  }
  start(threads);
  if (threads > pool_.size())
    wake_.notify_all();
  else
    for (size_t t = 1; t < threads; ++t) wake_.notify_one();
  take(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return inside_ == 0; });
  n_ = 0;
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void parallel_for(size_t n, const std::function<void(size_t)>& body, unsigned threads) {
  ThreadPool pool(static_cast<unsigned>(std::min<size_t>(threads ? threads : hardware_threads(), n ? n : 1)));
  pool.run(n, [&](size_t i, unsigned) { body(i); });
}

}  // namespace rndn
