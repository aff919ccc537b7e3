// The planner as a library of this process, opened when the first query needs it.
//
// DuckDB computes expressions of constants while it plans, and looks for an interrupt between them
// only: `repeat('x', 1000000000)` would be waited for. So a thread per connection asks, and the
// caller waits for its answer. Work that is cancelled interrupts the library and, when that does
// not answer soon, leaves the connection to its thread, which closes it when the library is back.
// A limit of memory is held the same way, by what the process has grown since the call is slow.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "libraries/base/system/cancel.h"
#include "libraries/base/system/wait.h"
#include "runtime/planner/database.h"
#include "runtime/planner/duckdb_api.h"

namespace rndn::planner {
namespace {

constexpr std::chrono::milliseconds look_again{10}, most_patience{100};
constexpr uint64_t own_bytes = 128 << 20;  // planning without long constants takes less

// Of connections that were left. A process that ends meanwhile does not tear down what they use.
std::atomic<int> left_connections{0};
void leave_at_exit() {
#ifdef __GLIBC__
  static const int registered = on_exit(
      [](int code, void*) {
        if (left_connections.load() == 0) return;
        std::fflush(nullptr);
        _exit(code);
      },
      nullptr);
  static_cast<void>(registered);
#endif
}

// Memory of this process that is in use.
uint64_t resident_bytes() {
  unsigned long long all = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%llu %llu", &all, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// One connection, and what its thread and its caller know of each other.
struct Connection {
  Connection(const DuckdbApi& functions, void* its_database, void* its_connection)
      : f(functions), database(its_database), connection(its_connection) {}
  ~Connection() {
    f.disconnect(&connection);
    if (database) f.close(&database);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<std::string> query(const std::string& statements) {
    DuckdbResult answer;
    Result<std::string> result = std::string();
    if (f.query(connection, statements.c_str(), &answer) != 0) {
      const char* message = f.result_error(&answer);
      result = Error{Fault::input, message ? message : "refused without a reason"};
    } else if (char* cell = f.value_varchar(&answer, 0, 0)) {
      result = std::string(cell);
      f.free(cell);
    }
    f.destroy_result(&answer);
    return result;
  }

  // Answers until it ends; whether it was left then.
  bool work() {
    std::unique_lock lock(mutex);
    for (;;) {
      wait_for_change(changed, lock, [this] { return ends || question; });
      if (ends) return is_left;
      lock.unlock();
      Result<std::string> said = errors_of([this] { return query(*question); });
      lock.lock();
      question.reset();
      answer = std::move(said);
      changed.notify_all();
    }
  }

  const DuckdbApi f;
  void *database, *connection;  // no database: another's
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::string> question;
  std::optional<Result<std::string>> answer;
  bool ends = false, is_left = false;
};

class LibraryDatabase final : public Database {
 public:
  LibraryDatabase(const DuckdbApi& functions, void* database, void* connection)
      : state_(std::make_shared<Connection>(functions, database, connection)) {}
  ~LibraryDatabase() override {
    if (!thread_.joinable()) return;
    end();
    thread_.join();
  }
  LibraryDatabase(const LibraryDatabase&) = delete;
  LibraryDatabase& operator=(const LibraryDatabase&) = delete;

  Result<std::string> ask(const std::string& statements) override {
    if (statements.find('\0') != statements.npos) return input_error("the text has a byte 0");
    RETURN_IF_ERROR(check_cancelled());
    Connection& c = *state_;
    if (c.is_left) return world_error("DuckDB's planner still computes what was given up");
    if (!thread_.joinable())
      thread_ = std::thread([state = state_]() mutable {
        const bool was_left = state->work();
        state.reset();  // closes it, when nobody else has it
        if (was_left) --left_connections;
      });
    std::unique_lock lock(c.mutex);
    c.answer.reset();
    c.question = statements;
    c.changed.notify_all();
    uint64_t before = 0;
    while (!c.changed.wait_for(lock, look_again, [&] { return c.answer.has_value(); })) {
      Result<void> goes_on = check_cancelled();
      if (goes_on && is_memory_limited()) {
        const uint64_t now = resident_bytes();
        if (before == 0) before = now;
        goes_on = errors_of([&]() -> Result<void> {
          if (now > before + own_bytes) expect_memory(now - before - own_bytes);
          return {};
        });
      }
      if (goes_on) continue;
      stop(lock);
      return goes_on.error();
    }
    Result<std::string> result = std::move(*c.answer);
    lock.unlock();
    if (!result) RETURN_IF_ERROR(check_cancelled());
    return result;
  }

  std::unique_ptr<Database> another() override {
    void* connection = nullptr;
    if (state_->f.connect(state_->database, &connection) != 0) return nullptr;
    return std::make_unique<LibraryDatabase>(state_->f, nullptr, connection);
  }

 private:
  void end() {
    std::lock_guard lock(state_->mutex);
    state_->ends = true;
    state_->changed.notify_all();
  }
  void stop(std::unique_lock<std::mutex>& lock) {
    Connection& c = *state_;
    for (auto waited = look_again; waited <= most_patience; waited += look_again) {
      c.f.interrupt(c.connection);
      if (c.changed.wait_for(lock, look_again, [&] { return c.answer.has_value(); })) return;
    }
    c.ends = c.is_left = true;
    ++left_connections;
    leave_at_exit();
    thread_.detach();
  }

  const std::shared_ptr<Connection> state_;  // its thread's, too
  std::thread thread_;                       // starts with the first question
};

}  // namespace

Result<std::unique_ptr<Database>> open_library(const std::string& path) {
  ASSIGN_OR_RETURN(const DuckdbApi f, load_duckdb(path));
  void *database = nullptr, *connection = nullptr;
  if (f.open(nullptr, &database) != 0)
    return world_error("`{}` could not open a database in memory", path);
  if (f.connect(database, &connection) != 0) {
    f.close(&database);
    return world_error("`{}` could not connect to a database in memory", path);
  }
  return std::unique_ptr<Database>(std::make_unique<LibraryDatabase>(f, database, connection));
}

}  // namespace rndn::planner
