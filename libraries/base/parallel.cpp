#include "libraries/base/parallel.h"

#include <algorithm>
#include <atomic>
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
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) body(i);
  };
  std::vector<std::thread> pool;
  for (unsigned t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
}

}  // namespace rndn
