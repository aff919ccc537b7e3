#include "libraries/operators/ready.h"

#include <sys/resource.h>

#include <chrono>
#include <system_error>
#include <utility>

namespace rndn::operators {

KernelRows ready_rows() {
  KernelRows rows;
  for (const auto add :
       {add_small_sorts, add_row_numbers, add_gathers, add_translations, add_text_numbers, add_like, add_literals,
        add_join_tables, add_sweeps, add_runs, add_slot_numbers, add_aggregates, add_decodings, add_bounds, add_packs})
    add(rows);
  return rows;
}

ReadyKernels::ReadyKernels(KernelRows rows, Operators::Assemble assemble) : assemble_(std::move(assemble)) {
  for (Library::Row& row : rows) kernels_.emplace(row.name, Kernel{.row = row});
  try {
    thread_ = std::thread([this] { make_all(); });
  } catch (const std::system_error&) {
    is_done_ = true;  // no thread is to be had: each kernel is made when it is asked for
  }
}

ReadyKernels::~ReadyKernels() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ReadyKernels::make_all() {
  constexpr int below_others = 10;
  (void)setpriority(PRIO_PROCESS, 0, below_others);  // on Linux it is of the thread
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(10), [this] { return ends_; });
  for (auto& [name, kernel] : kernels_) {
    if (ends_) break;
    if (kernel.state == State::taken) continue;
    lock.unlock();
    ptx::Module module = Library::new_module();
    Made made;
    made.block_size = kernel.row.build(module, name);
    auto cubin = assemble_(module);
    lock.lock();
    if (!cubin || kernel.state == State::taken) continue;  // what is wrong is met again, and said, by who asks for it
    made.cubin = std::move(*cubin);
    kernel.made = std::move(made);
    kernel.state = State::made;
  }
  is_done_ = true;
  changed_.notify_all();
}

std::optional<ReadyKernels::Made> ReadyKernels::take(std::string_view name) {
  std::lock_guard lock(mutex_);
  const auto at = kernels_.find(name);
  if (at == kernels_.end()) return std::nullopt;
  Kernel& kernel = at->second;
  const bool made = std::exchange(kernel.state, State::taken) == State::made;
  return made ? std::optional(std::move(kernel.made)) : std::nullopt;
}

void ReadyKernels::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_done_; });
}

}  // namespace rndn::operators
