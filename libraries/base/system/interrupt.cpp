#include "libraries/base/system/interrupt.h"

#include <atomic>
#include <ctime>

namespace rndn {

namespace {

// What the handler reads: all that it may touch.
std::atomic<CancelToken*> interrupted_token{nullptr};
std::atomic<void (*)(int)> handler_before{nullptr};
std::atomic<int64_t> first_signal{0};  // when the token was cancelled
std::atomic<bool> terminated{false};

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
  if (signal == SIGTERM) terminated = true;
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
  if (sigaction(SIGINT, nullptr, &before_) != 0 || sigaction(SIGTERM, nullptr, &term_before_) != 0) return;
  const bool is_ignored = before_.sa_handler == SIG_IGN;
  const bool has_handler = (before_.sa_flags & SA_SIGINFO) == 0 && before_.sa_handler != SIG_DFL && !is_ignored;
  const bool takes_signal = pass_on ? has_handler : !is_ignored;
  const bool takes_term = !pass_on && term_before_.sa_handler == SIG_DFL;
  CancelToken* nobody = nullptr;
  if (!(takes_signal || takes_term) || !interrupted_token.compare_exchange_strong(nobody, &token_)) return;
  terminated = false;
  handler_before = pass_on ? before_.sa_handler : nullptr;
  struct sigaction own = {};
  own.sa_handler = on_interrupt;  // no SA_RESTART: who waits for input wakes up
  sigemptyset(&own.sa_mask);
  has_signal_ = takes_signal && sigaction(SIGINT, &own, nullptr) == 0;
  has_term_ = takes_term && sigaction(SIGTERM, &own, nullptr) == 0;
  if (!has_signal_ && !has_term_) interrupted_token = nullptr;
}

bool InterruptScope::is_terminated() { return terminated; }

InterruptScope::~InterruptScope() {
  if (!has_signal_ && !has_term_) return;
  if (has_signal_) sigaction(SIGINT, &before_, nullptr);
  if (has_term_) sigaction(SIGTERM, &term_before_, nullptr);
  interrupted_token = nullptr;
}

}  // namespace rndn
