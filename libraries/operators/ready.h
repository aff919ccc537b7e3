// Kernels that are made before an operator asks for them, on a thread of their own. Private to this folder.
//
// A row is a kernel that hangs on no columns of a query, or on few kinds of them: each file of operators names its own. The thread makes
// the code of one after the other; loading it is the library's work, since devices are for one thread. Nobody waits for the thread: who
// asks for a kernel that it has not made yet makes it alone, and the thread passes over it. It gives way to the process's other threads,
// and begins some milliseconds after it is asked to, so that a process that ends by then has nothing of it.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "libraries/operators/library.h"

namespace rndn::operators {

using KernelRows = std::vector<Library::Row>;

class ReadyKernels {
 public:
  // assemble: called on the thread.
  ReadyKernels(KernelRows rows, Operators::Assemble assemble);
  ~ReadyKernels();  // waits for the kernel at hand, and no other

  struct Made {
    std::vector<std::byte> cubin;
    uint32_t block_size = 0;
  };
  // None: the caller makes it.
  std::optional<Made> take(std::string_view name);
  void wait();  // until all are made

 private:
  enum class State : uint8_t { waiting, made, taken };
  struct Kernel {
    Library::Row row;
    State state = State::waiting;
    Made made = {};
  };
  void make_all();

  Operators::Assemble assemble_;
  std::map<std::string, Kernel, std::less<>> kernels_;
  std::mutex mutex_;  // of what kernels_ has but the rows, and of what follows
  std::condition_variable changed_;
  bool ends_ = false, is_done_ = false;
  std::thread thread_;
};

KernelRows ready_rows();  // all of these
void add_small_sorts(KernelRows& rows);
void add_sweeps(KernelRows& rows);
void add_row_numbers(KernelRows& rows);
void add_runs(KernelRows& rows);
void add_slot_numbers(KernelRows& rows);
void add_join_tables(KernelRows& rows);
void add_gathers(KernelRows& rows);
void add_translations(KernelRows& rows);
void add_like(KernelRows& rows);
void add_literals(KernelRows& rows);
void add_text_numbers(KernelRows& rows);
void add_aggregates(KernelRows& rows);
void add_decodings(KernelRows& rows);
void add_bounds(KernelRows& rows);
void add_packs(KernelRows& rows);

}  // namespace rndn::operators
