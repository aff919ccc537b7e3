#include "libraries/base/system/background.h"

#include "libraries/base/system/wait.h"

namespace rndn {

void Background::add(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });  // which may fail
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void Background::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wait_for_change(changed_, lock, [this] { return ends_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

Background::~Background() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

}  // namespace rndn
