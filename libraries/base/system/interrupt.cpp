#include "libraries/base/system/interrupt.h"

#include <atomic>

namespace rndn {

namespace {

// What the handler reads: all that it may touch.
std::atomic<CancelToken*> interrupted_token{nullptr};
std::atomic<void (*)(int)> handler_before{nullptr};

void on_interrupt(int signal) {
  CancelToken* const token = interrupted_token.load();
  void (*const before)(int) = handler_before.load();
  const bool again = token && token->is_asked();
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
}

InterruptScope::~InterruptScope() {
  if (!has_signal_) return;
  sigaction(SIGINT, &before_, nullptr);
  interrupted_token = nullptr;
}

}  // namespace rndn
