#include "libraries/base/system/deep_stack.h"

#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <exception>

#include "libraries/base/system/cancel.h"

namespace rndn {

namespace {

struct Range {
  uintptr_t low = 0, high = 0;
};

// Asking costs a read of /proc on the main thread: once per thread.
Range stack_of_thread() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* low = nullptr;
  size_t bytes = 0;
  const bool known = pthread_attr_getstack(&attributes, &low, &bytes) == 0;
  pthread_attr_destroy(&attributes);
  const auto at = reinterpret_cast<uintptr_t>(low);
  return known ? Range{at, at + bytes} : Range{};
}

struct Task {
  const std::function<void()>& body;
  const CancelToken* token;
  std::exception_ptr thrown;
};

void* run_task(void* pointer) {
  Task& task = *static_cast<Task*>(pointer);
  const CancelScope scope(task.token);
  try {
    task.body();
  } catch (...) {
    task.thrown = std::current_exception();
  }
  return nullptr;
}

}  // namespace

size_t stack_left() {
  thread_local const Range range = stack_of_thread();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here >= range.low && here < range.high ? here - range.low : 0;
}

Result<void> on_own_stack(size_t bytes, const std::function<void()>& body) {
  Task task{body, CancelToken::current(), nullptr};
  pthread_t thread{};
  pthread_attr_t attributes;
  int failed = pthread_attr_init(&attributes);
  if (failed == 0) {
    failed = pthread_attr_setstacksize(&attributes, bytes);
    if (failed == 0) failed = pthread_create(&thread, &attributes, run_task, &task);
    pthread_attr_destroy(&attributes);
  }
  if (failed)
    return world_error("cannot start a thread with {} MiB of stack: {}", bytes >> 20,
                       std::strerror(failed));
  pthread_join(thread, nullptr);
  if (task.thrown) std::rethrow_exception(task.thrown);
  return {};
}

}  // namespace rndn
