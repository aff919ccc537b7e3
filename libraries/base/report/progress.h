// A progress line on stderr for anything that takes longer than a second.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace rndn {

// Thread-safe. Shows nothing during the first second; afterwards at most ten updates per second on a terminal (one
// line, rewritten) and one line per five seconds otherwise. The destructor ends the line.
class Progress {
 public:
  Progress(std::string what, uint64_t total, bool enabled = true);
  ~Progress();
  void advance(uint64_t amount = 1);

 private:
  void show(uint64_t done, double seconds);

  std::string what_;
  uint64_t total_;
  bool enabled_;
  bool terminal_;
  std::atomic<uint64_t> done_{0};
  std::atomic<int64_t> next_show_ns_;
  std::atomic<bool> shown_{false};
  std::chrono::steady_clock::time_point start_;
};

}  // namespace rndn
