#include "libraries/base/system/interrupt.h"

#include <atomic>
#include <ctime>

namespace rndn {

namespace {

// What the handler reads: all that it may touch.
std::atomic<CancelToken*> interrupted_token{nullptr};
std::atomic<void (*)(int)> handler_before{nullptr};
std::atomic<int64_t> first_signal{0};  // when the token was cancelled

int64_t milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // may be called by handlers (signal-safety(7))
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void on_interrupt(int signal) {
  constexpr int64_t one_moment = 250;
  CancelToken* const token = interrupted_token.load();
  void (*const before)(int) = handler_before.load();
  const bool again = token && token->is_asked() && milliseconds() - first_signal.load() >= one_moment;
  if (token && !token->is_asked()) first_signal = milliseconds();
  if (token) token->cancel();
  if (before) {
    before(signal);
  } else if (again) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

InterruptScope::InterruptScope(bool pass_on) {
  CancelToken* nobody = nullptr;
  if (sigaction(SIGINT, nullptr, &before_) != 0 || before_.sa_handler == SIG_IGN) return;
  const bool has_handler = (before_.sa_flags & SA_SIGINFO) == 0 && before_.sa_handler != SIG_DFL;
  if (pass_on && !has_handler) return;
  if (!interrupted_token.compare_exchange_strong(nobody, &token_)) return;
  handler_before = pass_on ? before_.sa_handler : nullptr;
  struct sigaction own = {};
  own.sa_handler = on_interrupt;  // no SA_RESTART: who waits for input wakes up
  sigemptyset(&own.sa_mask);
  has_signal_ = sigaction(SIGINT, &own, nullptr) == 0;
  if (!has_signal_) interrupted_token = nullptr;
  if (!has_signal_ || pass_on) return;
  if (sigaction(SIGTERM, nullptr, &term_before_) != 0 || term_before_.sa_handler != SIG_DFL) return;
  has_term_ = sigaction(SIGTERM, &own, nullptr) == 0;
}

InterruptScope::~InterruptScope() {
  if (!has_signal_) return;
  sigaction(SIGINT, &before_, nullptr);
  if (has_term_) sigaction(SIGTERM, &term_before_, nullptr);
  interrupted_token = nullptr;
}

}  // namespace rndn
