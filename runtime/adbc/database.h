// What the driver's handles stand for: a database (tables, a device, one session), connections to
// it and their statements. Calls of a database's connections and threads are served one after the
// other. What fails is thrown as a Failure, and becomes an AdbcError in driver.cpp.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/adbc/adbc_abi.h"
#include "runtime/arrow_result.h"
#include "runtime/session/session.h"

namespace rndn::adbc {

struct Failure {
  AdbcStatusCode status;
  const char* sqlstate;  // five letters
  std::string message;
  int32_t code = 0;      // the exit code that the programs have for it
};
[[noreturn]] void fail(const Error& error, const std::string& said = "");
[[noreturn]] void not_implemented(const std::string& what);
[[noreturn]] void bad_argument(const std::string& what);
[[noreturn]] void wrong_order(const std::string& what);

inline constexpr const char* catalog_name = "rndn";
inline constexpr const char* schema_name = "main";

// Options by their names, as texts.
class Options {
 public:
  void set(std::string key, std::string value) { values_[std::move(key)] = std::move(value); }
  const std::string& get(const std::string& key) const;  // or fails: NOT_FOUND
  std::string get_or(const std::string& key, const std::string& other) const;
  bool has(const std::string& key) const { return values_.contains(key); }
  const std::map<std::string, std::string>& all() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

class Database {
 public:
  Options options;
  void set_option(const std::string& key, const std::string& value);
  void init();
  bool is_open() const { return session_ != nullptr; }

  // Runs `work(session)` while no one else does; gives its value, or fails with what was said.
  template <class Work>
  auto serve(Work&& work) {
    std::lock_guard lock(mutex_);
    said_.clear();
    auto result = errors_of([&] { return work(*session_); });
    if (!result) fail(result.error(), said_);
    if constexpr (requires { *std::move(result); }) return *std::move(result);
  }
  runtime::RunOptions run_options(const Options& own) const;

 private:
  std::mutex mutex_;
  std::string said_;  // since the call began
  std::unique_ptr<runtime::Session> session_;
};

class Connection {
 public:
  Options options;
  std::shared_ptr<Database> database;  // null: not open
  void set_option(const std::string& key, const std::string& value);
  void cancel();

  // Work that `cancel` of the connection ends.
  class Running {
   public:
    explicit Running(Connection& connection);
    ~Running();
    CancelToken& token() { return token_; }

   private:
    Connection& connection_;
    CancelToken token_;
    CancelScope scope_{token_};
  };

 private:
  std::mutex mutex_;
  std::set<CancelToken*> running_;
};

class Statement {
 public:
  explicit Statement(std::shared_ptr<Connection> of) : connection(std::move(of)) {
    options = connection->options;
  }
  std::shared_ptr<Connection> connection;
  Options options;
  void set_option(const std::string& key, const std::string& value);
  void set_query(std::string text);
  void prepare();
  void bind(data::ArrowStream rows) { bound_ = std::move(rows); }
  void cancel();
  struct Answer {
    std::vector<runtime::Grid> results;  // of the same types
    int64_t rows_changed = -1;
  };
  Answer execute();
  ArrowSchema result_schema();
  ArrowSchema parameter_schema() const;

 private:
  Result<Answer> ingest(runtime::Session& session);
  Result<Answer> run(runtime::Session& session, const std::string& text);
  Result<Answer> run_with_rows(runtime::Session& session);
  const std::string& query() const;
  Result<void> check_prepared(runtime::Session& session) const;

  std::string query_;
  data::ArrowStream bound_;
  std::mutex mutex_;
  CancelToken* running_ = nullptr;
};

// A result without rows.
runtime::Grid no_rows(const std::vector<sql::ResultColumn>& columns);

}  // namespace rndn::adbc
