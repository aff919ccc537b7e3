// Work that ends before it is done: since somebody asks for it, since its time is over, or since its
// values take more memory than they may.
//
//   CancelToken token({.seconds = 2, .bytes = uint64_t{4} << 30});
//   CancelScope scope(token);             // this thread, and thread pools while they run its loops
//   RETURN_IF_ERROR(check_cancelled());   // in the work, wherever it can end
//
// A token belongs to one piece of work; one within another ends with it. The threads that do the
// work know its token, so that no function has to take it. `cancel` may be called from any thread
// and from signal handlers. Work notices at its next check: at steps of a program, between indices
// of a parallel loop, in long loops of the host. A check costs a load per token, and 30 ns with a
// time limit. A call of a driver or a kernel on a GPU is not torn apart: it ends, then the work does.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn {

struct Limits {
  double seconds = 0;  // 0: none
  uint64_t bytes = 0;  // of host memory for values; 0: none
  // What a user raises them with.
  std::string_view seconds_name = "--timeout", bytes_name = "--max-memory";
};

// Ends work from where no Result leads out: within loops of bodies and comparisons. errors_of and
// guarded_main make it an error again.
struct Cancelled {
  Error error;
};

class CancelToken {
 public:
  explicit CancelToken(const Limits& limits = {}, const CancelToken* within = nullptr);
  CancelToken(const CancelToken&) = delete;

  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  void reset() noexcept { cancelled_.store(false, std::memory_order_relaxed); }
  bool is_asked() const noexcept { return cancelled_.load(std::memory_order_relaxed); }
  bool is_cancelled() const noexcept;  // asked to, or beyond its time; or what it is within
  // The reason, once it is cancelled: fault `interrupted` when asked for, `world` for a limit.
  Result<void> check() const;
  // For tests: cancelled at the n-th check from now, from 1.
  void cancel_at_check(uint64_t n) { checks_left_.store(n, std::memory_order_relaxed); }
  uint64_t checks_left() const { return checks_left_.load(std::memory_order_relaxed); }

  // This token or the nearest that it is within, with a limit of memory; null: there is none.
  const CancelToken* with_memory_limit() const;

  static const CancelToken* current();  // of this thread; null: none

 private:
  friend class MemoryCharge;
  friend class CancelScope;
  struct Account {
    std::atomic<uint64_t> used{0};
  };
  using Clock = std::chrono::steady_clock;

  const CancelToken* const within_;
  const Limits limits_;
  const Clock::time_point end_;
  mutable std::atomic<bool> cancelled_{false};
  mutable std::atomic<uint64_t> checks_left_{0};
  const std::shared_ptr<Account> account_;  // none: no limit
};

// The token is the thread's for as long as this lives. Null: none is.
class CancelScope {
 public:
  explicit CancelScope(const CancelToken& token) : CancelScope(&token) {}
  explicit CancelScope(const CancelToken* token);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;

 private:
  const CancelToken* const before_;
};

// Whether this thread's work is to end, and why.
inline bool is_cancelled() {
  const CancelToken* token = CancelToken::current();
  return token && token->is_cancelled();
}
Result<void> check_cancelled();
void throw_if_cancelled();  // Cancelled

// Of a long loop: looks at the token every few thousand turns.
class CancelTicker {
 public:
  void operator()() {
    if ((++turns_ & 0xfff) == 0) [[unlikely]]
      throw_if_cancelled();
  }

 private:
  uint32_t turns_ = 0;
};

// Memory of a value, charged to this thread's work until it is given back. Throws Cancelled when
// that has no room for it.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  explicit MemoryCharge(uint64_t bytes);
  MemoryCharge(MemoryCharge&& other) noexcept
      : account_(std::move(other.account_)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryCharge();

 private:
  std::shared_ptr<CancelToken::Account> account_;
  uint64_t bytes_ = 0;
};
// Throws Cancelled when so much more does not fit, here or in what the host has left (host_memory.h); charges nothing.
// Called before it is allocated.
void expect_memory(uint64_t bytes);
bool is_memory_limited();  // in this thread: sizes of texts are worth adding up

// For calls of libraries that wait. While a Call lives whose thread's work is cancelled, `interrupt`
// is called from another thread, every few milliseconds. That thread starts with the first call that
// has a token, and stays: a call costs a lock, and rarely a wake-up.
class CancelWatch {
 public:
  explicit CancelWatch(std::function<void()> interrupt) : interrupt_(std::move(interrupt)) {}
  ~CancelWatch();
  CancelWatch(const CancelWatch&) = delete;

  class Call {
   public:
    explicit Call(CancelWatch& watch);
    ~Call();
    Call(const Call&) = delete;

   private:
    CancelWatch& watch_;
    const CancelToken* const token_;
  };

 private:
  void watch();

  const std::function<void()> interrupt_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<const CancelToken*> calls_;
  bool ends_ = false, is_idle_ = true;
  std::thread thread_;
};

// What body gives. What it throws since work was cancelled, or memory ran out, becomes its error.
template <class Body>
auto errors_of(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const Cancelled& cancelled) {
    return cancelled.error;
  } catch (const std::bad_alloc&) {
    return Error{Fault::world, "not enough memory"};
  }
}

}  // namespace rndn
