#include "libraries/base/report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace rndn {
namespace {
constexpr int64_t second = 1'000'000'000;
}

Progress::Progress(std::string what, uint64_t total, bool enabled)
    : what_(std::move(what)),
      total_(total ? total : 1),
      enabled_(enabled),
      terminal_(isatty(2) != 0),
      next_show_ns_(second),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (shown_ && terminal_) std::fputs("\n", stderr);
}

void Progress::advance(uint64_t amount) {
  uint64_t done = done_.fetch_add(amount, std::memory_order_relaxed) + amount;
  if (!enabled_) return;
  int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
  int64_t due = next_show_ns_.load(std::memory_order_relaxed);
  if (now < due) return;
  if (!next_show_ns_.compare_exchange_strong(due, now + (terminal_ ? second / 10 : 5 * second))) return;
  show(done, static_cast<double>(now) * 1e-9);
}

void Progress::show(uint64_t done, double seconds) {
  double part = static_cast<double>(done) / static_cast<double>(total_);
  std::string line = fmt::format("{} {:3.0f} % ({:.0f} s", what_, 100 * part, seconds);
  // Less than a hundredth tells nothing of the rest.
  line += part < 0.01 ? ")" : fmt::format(", about {:.0f} s left)", seconds / part - seconds);
  std::fprintf(stderr, terminal_ ? "\r%s\033[K" : "%s\n", line.c_str());
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace rndn
