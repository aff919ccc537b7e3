// One thread that runs what it is given, in order, beside the one that gives it. It starts with the
// first task and stays; the tasks that are left when its owner ends are run.
//
//   std::future<int> answer = background.run([] { return 42; });
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace rndn {

class Background {
 public:
  Background() = default;
  ~Background();
  Background(const Background&) = delete;

  template <class Task>
  std::future<std::invoke_result_t<Task>> run(Task task) {
    auto shared = std::make_shared<std::packaged_task<std::invoke_result_t<Task>()>>(std::move(task));
    add([shared] { (*shared)(); });
    return shared->get_future();
  }

 private:
  void add(std::function<void()> task);
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace rndn
