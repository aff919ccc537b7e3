// DuckDB's C API in a shared library, opened when the first query needs it and never closed (its
// threads live on).
//
// RTLD_LOCAL: the symbols of Python that the wrapper defines must not reach anyone else in the
// process, who may load a real Python later. RTLD_LAZY: most of the symbols are functions, which
// nothing calls.
#include <dlfcn.h>

#include <cstdint>

#include "runtime/planner/database.h"

namespace rndn::planner {
namespace {

// duckdb_result: five words that are deprecated and one that is internal; room for twice as many.
struct Answer {
  void* words[12] = {};
};

struct Functions {
  const char* (*library_version)();
  int (*open)(const char* path, void** database);
  void (*close)(void** database);
  int (*connect)(void* database, void** connection);
  void (*disconnect)(void** connection);
  int (*query)(void* connection, const char* text, Answer* answer);
  const char* (*result_error)(Answer* answer);
  char* (*value_varchar)(Answer* answer, uint64_t column, uint64_t row);
  void (*destroy_result)(Answer* answer);
  void (*free)(void* memory);
};

class Library final : public Database {
 public:
  Library(const Functions& functions, void* database, void* connection)
      : f_(functions), database_(database), connection_(connection) {}
  ~Library() override {
    f_.disconnect(&connection_);
    f_.close(&database_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  Result<std::string> ask(const std::string& statements) override {
    if (statements.find('\0') != statements.npos) return input_error("the text has a byte 0");
    Answer answer;
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
    return result;
  }

 private:
  Functions f_;
  void *database_, *connection_;
};

}  // namespace

Result<std::unique_ptr<Database>> open_library(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!handle) return world_error("{}", dlerror());
  Functions f{};
  const char* missing = nullptr;
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (!function) missing = name;
  };
  find(f.library_version, "duckdb_library_version");
  find(f.open, "duckdb_open");
  find(f.close, "duckdb_close");
  find(f.connect, "duckdb_connect");
  find(f.disconnect, "duckdb_disconnect");
  find(f.query, "duckdb_query");
  find(f.result_error, "duckdb_result_error");
  find(f.value_varchar, "duckdb_value_varchar");
  find(f.destroy_result, "duckdb_destroy_result");
  find(f.free, "duckdb_free");
  if (missing) return world_error("`{}` is no DuckDB: it has no {}", path, missing);
  if (f.library_version() != pinned_version)
    return world_error("`{}` is DuckDB {}, not {}", path, f.library_version(), pinned_version);
  void *database = nullptr, *connection = nullptr;
  if (f.open(nullptr, &database) != 0)
    return world_error("`{}` could not open a database in memory", path);
  if (f.connect(database, &connection) != 0) {
    f.close(&database);
    return world_error("`{}` could not connect to a database in memory", path);
  }
  return std::unique_ptr<Database>(std::make_unique<Library>(f, database, connection));
}

}  // namespace rndn::planner
