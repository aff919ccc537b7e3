// Ctrl-C (SIGINT), and SIGTERM where the process has its default, as a token that is cancelled.
//
//   InterruptScope interrupts;             // from here on
//   CancelScope scope(interrupts.token());
//
// A second signal, a quarter of a second or more after the first one, ends the process at once, as it does without this. Sooner it is the
// same: timeout(1) signals the process and then its group.
// One such object at a time takes the signal; others, in threads beside it, see nothing of it.
#pragma once
#include <csignal>

#include "libraries/base/system/cancel.h"

namespace rndn {

class InterruptScope {
 public:
  // `pass_on`: the handler that was there before is called, too, and decides about a second Ctrl-C.
  // Where the signal is ignored it stays ignored.
  explicit InterruptScope(bool pass_on = false);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;

  CancelToken& token() { return token_; }
  // SIGTERM has come: not a statement is to end, but the process.
  static bool is_terminated();

 private:
  CancelToken token_;
  bool has_signal_ = false, has_term_ = false;
  struct sigaction before_ = {}, term_before_ = {};
};

}  // namespace rndn
