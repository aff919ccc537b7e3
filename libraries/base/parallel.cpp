#include "libraries/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace rndn {

unsigned hardware_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

void parallel_for(size_t n, const std::function<void(size_t)>& body, unsigned threads) {
  if (threads == 0) threads = hardware_threads();
  threads = static_cast<unsigned>(std::min<size_t>(threads, n));
  if (threads <= 1) {
    for (size_t i = 0; i < n; ++i) body(i);
    return;
  }
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr thrown;
  auto work = [&]() noexcept {
    try {
      for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) body(i);
    } catch (...) {
      next.store(n, std::memory_order_relaxed);
      std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  pool.reserve(threads - 1);
  try {
    for (unsigned t = 1; t < threads; ++t) pool.emplace_back(work);
  } catch (...) {  // no memory or no right for one more: those that run take its share
  }
  work();
  for (std::thread& t : pool) t.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace rndn
