// Data parallelism over all cores.
#pragma once
#include <cstddef>
#include <functional>

namespace rndn {

unsigned hardware_threads();  // >= 1

// Calls body(i) for every i in [0, n), on up to `threads` threads (0 = all cores), which take indices in ascending
// order as they become free. Returns when all calls have returned. Runs on fewer threads when no more
// can be had. The first exception of a body ends the handing out of indices and is thrown again here.
void parallel_for(size_t n, const std::function<void(size_t)>& body, unsigned threads = 0);

}  // namespace rndn
