// Shares the chunks of a table out among threads.
#pragma once
#include <atomic>

#include "libraries/base/system/parallel.h"
#include "tpch/chunk.h"

namespace rndn::tpch {

// Calls body(chunk, number) for the chunks number * rows_per_chunk .. of `driving_rows` rows, in ascending order as
// threads become free; `body` returns false to end early. Each thread has a Chunk of its own. A thread that an exception
// ends calls `give_up` first, so that nobody waits for its chunk.
template <class Body, class GiveUp>
void for_each_chunk(const Sizes& sizes, const TextPool* pool, uint64_t driving_rows, uint64_t rows_per_chunk,
                    unsigned threads, Body&& body, GiveUp&& give_up) {
  if (threads == 0) threads = hardware_threads();
  const uint64_t chunks = (driving_rows + rows_per_chunk - 1) / rows_per_chunk;
  threads = static_cast<unsigned>(std::min<uint64_t>(threads, chunks));
  std::atomic<uint64_t> next{0};
  auto work = [&](size_t) {
    try {
      Chunk chunk(sizes, pool);
      for (uint64_t number; (number = next.fetch_add(1)) < chunks;) {
        uint64_t first = number * rows_per_chunk;
        chunk.start(first, std::min(rows_per_chunk, driving_rows - first));
        if (!body(chunk, number)) return;
      }
    } catch (...) {
      give_up();
      throw;
    }
  };
  parallel_for(threads, work, threads);
}
template <class Body>
void for_each_chunk(const Sizes& sizes, const TextPool* pool, uint64_t driving_rows, uint64_t rows_per_chunk,
                    unsigned threads, Body&& body) {
  for_each_chunk(sizes, pool, driving_rows, rows_per_chunk, threads, body, [] {});
}

}  // namespace rndn::tpch
