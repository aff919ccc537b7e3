#include "libraries/base/system/cancel.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "libraries/base/report/sizes.h"
#include "libraries/base/system/host_memory.h"
#include "libraries/base/system/wait.h"

namespace rndn {

namespace {

thread_local const CancelToken* current_token = nullptr;

}  // namespace

CancelToken::CancelToken(const Limits& limits, const CancelToken* within)
    : within_(within),
      limits_(limits),
      // Beyond a thousand years there is no limit, and no overflow.
      end_(limits.seconds > 0 && limits.seconds < 1e9
               ? Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(limits.seconds))
               : Clock::time_point::max()),
      account_(limits.bytes ? std::make_shared<Account>() : nullptr) {}

bool CancelToken::is_cancelled() const noexcept {
  for (const CancelToken* token = this; token; token = token->within_) {
    if (token->cancelled_.load(std::memory_order_relaxed)) return true;
    if (token->end_ != Clock::time_point::max() && Clock::now() >= token->end_) return true;
    if (token->checks_left_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      if (token->checks_left_.fetch_sub(1, std::memory_order_relaxed) == 1) {
        token->cancelled_.store(true, std::memory_order_relaxed);
        return true;
      }
  }
  return false;
}

Result<void> CancelToken::check() const {
  if (!is_cancelled()) [[likely]]
    return {};
  for (const CancelToken* token = this; token; token = token->within_)
    if (token->cancelled_.load(std::memory_order_relaxed)) return Error{Fault::interrupted, "interrupted"}.as(Cause::cancelled);
  for (const CancelToken* token = this; token; token = token->within_)
    if (Clock::now() >= token->end_)
      return world_error("the time limit of {:g} s is over: {} sets it", token->limits_.seconds,
                         token->limits_.seconds_name)
          .as(Cause::cancelled);
  return {};  // reset since
}

const CancelToken* CancelToken::with_memory_limit() const {
  const CancelToken* token = this;
  while (token && !token->account_) token = token->within_;
  return token;
}

const CancelToken* CancelToken::current() { return current_token; }

CancelScope::CancelScope(const CancelToken* token) : before_(current_token) {
  current_token = token;
}
CancelScope::~CancelScope() { current_token = before_; }

Result<void> check_cancelled() { return current_token ? current_token->check() : Result<void>(); }

void throw_if_cancelled() {
  if (auto checked = check_cancelled(); !checked) throw Cancelled{checked.error()};
}

MemoryCharge::MemoryCharge(uint64_t bytes) {
  const CancelToken* const token = current_token ? current_token->with_memory_limit() : nullptr;
  if (!token || bytes == 0) return;
  std::atomic<uint64_t>& used = token->account_->used;
  const uint64_t most = token->limits_.bytes;
  uint64_t before = used.load(std::memory_order_relaxed);
  do {
    if (before > most || bytes > most - before)
      throw Cancelled{world_error(
          "values take {} of host memory, and {} more would be beyond the limit of {}: {} sets it",
          size_text(before), size_text(bytes), size_text(most), token->limits_.bytes_name)
                          .as(Cause::cancelled)};
  } while (!used.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  account_ = token->account_;
  bytes_ = bytes;
}
MemoryCharge::~MemoryCharge() {
  if (account_) account_->used.fetch_sub(bytes_, std::memory_order_relaxed);
}

void expect_memory(uint64_t bytes) {
  const MemoryCharge fits(bytes);
  expect_host_memory(bytes);
}

bool is_memory_limited() {
  return current_token && current_token->with_memory_limit();
}

CancelWatch::Call::Call(CancelWatch& watch) : watch_(watch), token_(CancelToken::current()) {
  if (!token_) return;
  std::lock_guard lock(watch_.mutex_);
  watch_.calls_.push_back(token_);
  if (!watch_.thread_.joinable()) watch_.thread_ = std::thread([&w = watch_] { w.watch(); });
  if (watch_.is_idle_) watch_.changed_.notify_one();
}

// Once the lock is held, no interrupt of this call is under way.
CancelWatch::Call::~Call() {
  if (!token_) return;
  std::lock_guard lock(watch_.mutex_);
  watch_.calls_.erase(std::find(watch_.calls_.begin(), watch_.calls_.end(), token_));
}

void CancelWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    is_idle_ = calls_.empty();
    if (is_idle_) {
      wait_for_change(changed_, lock, [this] { return ends_ || !calls_.empty(); });
      continue;
    }
    changed_.wait_for(lock, std::chrono::milliseconds(10));
    if (std::any_of(calls_.begin(), calls_.end(), [](const CancelToken* token) { return token->is_cancelled(); }))
      interrupt_();
  }
}

CancelWatch::~CancelWatch() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace rndn
