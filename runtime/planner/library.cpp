// The planner as a library of this process, opened when the first query needs it.
#include "libraries/base/system/cancel.h"
#include "runtime/planner/database.h"
#include "runtime/planner/duckdb_api.h"

namespace rndn::planner {
namespace {

class LibraryDatabase final : public Database {
 public:
  LibraryDatabase(const DuckdbApi& functions, void* database, void* connection)
      : f_(functions), database_(database), connection_(connection) {}
  ~LibraryDatabase() override {
    f_.disconnect(&connection_);
    if (database_) f_.close(&database_);
  }
  LibraryDatabase(const LibraryDatabase&) = delete;
  LibraryDatabase& operator=(const LibraryDatabase&) = delete;

  Result<std::string> ask(const std::string& statements) override {
    if (statements.find('\0') != statements.npos) return input_error("the text has a byte 0");
    RETURN_IF_ERROR(check_cancelled());
    const CancelWatch::Call call(watch_);
    DuckdbResult answer;
    std::string text;
    Result<std::string> result = text;
    if (f_.query(connection_, statements.c_str(), &answer) != 0) {
      const char* message = f_.result_error(&answer);
      result = Error{Fault::input, message ? message : "refused without a reason"};
    } else if (char* cell = f_.value_varchar(&answer, 0, 0)) {
      result = std::string(cell);
      f_.free(cell);
    }
    f_.destroy_result(&answer);
    if (!result) RETURN_IF_ERROR(check_cancelled());
    return result;
  }

  std::unique_ptr<Database> another() override {
    void* connection = nullptr;
    if (f_.connect(database_, &connection) != 0) return nullptr;
    return std::make_unique<LibraryDatabase>(f_, nullptr, connection);
  }

 private:
  DuckdbApi f_;
  void *database_, *connection_;  // no database: another's
  CancelWatch watch_{[this] { f_.interrupt(connection_); }};
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
