// The functions of DuckDB's C API that load data and fetch answers, declared here: its headers are
// not needed.
#include "runtime/planner/duckdb.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace rndn::planner {
namespace {

struct DuckdbResult {  // duckdb_result, with room
  void* words[12] = {};
};

struct Functions {
  const char* (*library_version)();
  int (*open)(const char*, void**);
  void (*close)(void**);
  int (*connect)(void*, void**);
  void (*disconnect)(void**);
  int (*query)(void*, const char*, DuckdbResult*);
  const char* (*result_error)(DuckdbResult*);
  uint64_t (*column_count)(DuckdbResult*);
  uint64_t (*row_count)(DuckdbResult*);
  const char* (*column_name)(DuckdbResult*, uint64_t);
  char* (*value_varchar)(DuckdbResult*, uint64_t, uint64_t);
  void (*destroy_result)(DuckdbResult*);
  void (*free)(void*);
  uint64_t (*vector_size)();
  int (*appender_create)(void*, const char*, const char*, void**);
  const char* (*appender_error)(void*);
  int (*append_data_chunk)(void*, void*);
  int (*appender_destroy)(void**);
  void* (*create_logical_type)(int);
  void* (*create_decimal_type)(uint8_t, uint8_t);
  void (*destroy_logical_type)(void**);
  void* (*create_data_chunk)(void**, uint64_t);
  void (*destroy_data_chunk)(void**);
  void (*data_chunk_reset)(void*);
  void (*data_chunk_set_size)(void*, uint64_t);
  void* (*data_chunk_get_vector)(void*, uint64_t);
  void* (*vector_get_data)(void*);
  void (*vector_assign_string_element_len)(void*, uint64_t, const char*, uint64_t);
  void (*vector_ensure_validity_writable)(void*);
  uint64_t* (*vector_get_validity)(void*);
  void (*validity_set_row_invalid)(uint64_t*, uint64_t);
};

// duckdb_type of the C API.
int type_number(sql::TypeId id) {
  switch (id) {
    case sql::TypeId::boolean: return 1;
    case sql::TypeId::tinyint: return 2;
    case sql::TypeId::smallint: return 3;
    case sql::TypeId::integer: return 4;
    case sql::TypeId::bigint: return 5;
    case sql::TypeId::real: return 10;
    case sql::TypeId::double_: return 11;
    case sql::TypeId::timestamp: return 12;
    case sql::TypeId::date: return 13;
    case sql::TypeId::time: return 14;
    case sql::TypeId::hugeint: return 16;
    case sql::TypeId::varchar: return 17;
    default: return 0;
  }
}

class Library final : public Duckdb {
 public:
  explicit Library(const Functions& functions) : f_(functions) {}
  ~Library() override {
    if (connection_) f_.disconnect(&connection_);
    if (database_) f_.close(&database_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  Result<void> start(unsigned threads) {
    if (f_.open(nullptr, &database_) != 0 || f_.connect(database_, &connection_) != 0)
      return world_error("DuckDB could not open a database in memory");
    return statement(fmt::format("SET threads = {}; SET enable_external_access = false", threads));
  }

  Result<void> load(const std::string& table, uint64_t rows,
                    const std::vector<Column>& columns) override {
    std::string declared;
    for (const Column& c : columns)
      declared += fmt::format("{}{} {}", declared.empty() ? "" : ", ", quote_name(c.name),
                              sql::type_name(c.type));
    RETURN_IF_ERROR(statement(fmt::format("CREATE TABLE {} ({})", quote_name(table), declared)));
    void* appender = nullptr;
    int state = f_.appender_create(connection_, nullptr, table.c_str(), &appender);
    std::vector<void*> types;
    for (const Column& c : columns)
      types.push_back(c.type.id == sql::TypeId::decimal
                          ? f_.create_decimal_type(c.type.width, c.type.scale)
                          : f_.create_logical_type(type_number(c.type.id)));
    void* chunk = f_.create_data_chunk(types.data(), types.size());
    for (uint64_t first = 0; first < rows && state == 0; first += chunk_rows) {
      const uint64_t count = std::min(chunk_rows, rows - first);
      f_.data_chunk_reset(chunk);
      for (size_t c = 0; c < columns.size(); ++c)
        fill(f_.data_chunk_get_vector(chunk, c), columns[c], first, count);
      f_.data_chunk_set_size(chunk, count);
      state = f_.append_data_chunk(appender, chunk);
    }
    std::string why;
    if (state != 0) {
      const char* message = f_.appender_error(appender);
      why = message ? message : "refused without a reason";
    }
    if (f_.appender_destroy(&appender) != 0 && why.empty()) why = "the last rows were refused";
    f_.destroy_data_chunk(&chunk);
    for (void*& type : types) f_.destroy_logical_type(&type);
    if (!why.empty()) return world_error("DuckDB does not take table `{}`: {}", table, why);
    return {};
  }

  Result<Answer> run(const std::string& query) override {
    DuckdbResult result;
    const auto start = std::chrono::steady_clock::now();
    const int state = f_.query(connection_, query.c_str(), &result);
    Answer answer;
    answer.ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    Result<void> done;
    if (state != 0) {
      const char* message = f_.result_error(&result);
      done = input_error("DuckDB: {}", message ? message : "refused without a reason");
    } else {
      for (uint64_t c = 0; c < f_.column_count(&result); ++c)
        answer.names.emplace_back(f_.column_name(&result, c));
      answer.rows.resize(f_.row_count(&result));
      for (uint64_t r = 0; r < answer.rows.size(); ++r)
        for (uint64_t c = 0; c < answer.names.size(); ++c) {
          char* cell = f_.value_varchar(&result, c, r);
          answer.rows[r].emplace_back(cell ? cell : "NULL");
          f_.free(cell);
        }
    }
    f_.destroy_result(&result);
    if (!done) return done.error();
    return answer;
  }

 private:
  Result<void> statement(const std::string& text) {
    DuckdbResult result;
    Result<void> done;
    if (f_.query(connection_, text.c_str(), &result) != 0) {
      const char* message = f_.result_error(&result);
      done = world_error("DuckDB: {}", message ? message : "refused without a reason");
    }
    f_.destroy_result(&result);
    return done;
  }

  void fill(void* vector, const Column& column, uint64_t first, uint64_t count) {
    if (column.text) {
      for (uint64_t i = 0; i < count; ++i) {
        const std::string_view text = column.text(first + i);
        f_.vector_assign_string_element_len(vector, i, text.data(), text.size());
      }
    } else if (column.numbers) {
      column.numbers(first, count, f_.vector_get_data(vector));
    }
    const bool is_unread = !column.text && !column.numbers;
    if (!column.validity && !is_unread) return;
    f_.vector_ensure_validity_writable(vector);
    uint64_t* mask = f_.vector_get_validity(vector);
    for (uint64_t i = 0; i < count; ++i)
      if (is_unread || column.validity[first + i] == std::byte{0})
        f_.validity_set_row_invalid(mask, i);
  }

  const Functions f_;
  void *database_ = nullptr, *connection_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Duckdb>> Duckdb::open(const Options& options, unsigned threads) {
  const std::string path = library_path(options);
  if (path.empty())
    return world_error("DuckDB's side needs its library: run tools/sql-planner, which installs it");
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!handle) return world_error("{}", dlerror());
  Functions f{};
  const char* missing = nullptr;
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (!function) missing = name;
  };
#define RNDN_FIND(name) find(f.name, "duckdb_" #name)
  RNDN_FIND(library_version);
  RNDN_FIND(open);
  RNDN_FIND(close);
  RNDN_FIND(connect);
  RNDN_FIND(disconnect);
  RNDN_FIND(query);
  RNDN_FIND(result_error);
  RNDN_FIND(column_count);
  RNDN_FIND(row_count);
  RNDN_FIND(column_name);
  RNDN_FIND(value_varchar);
  RNDN_FIND(destroy_result);
  RNDN_FIND(free);
  RNDN_FIND(vector_size);
  RNDN_FIND(appender_create);
  RNDN_FIND(appender_error);
  RNDN_FIND(append_data_chunk);
  RNDN_FIND(appender_destroy);
  RNDN_FIND(create_logical_type);
  RNDN_FIND(create_decimal_type);
  RNDN_FIND(destroy_logical_type);
  RNDN_FIND(create_data_chunk);
  RNDN_FIND(destroy_data_chunk);
  RNDN_FIND(data_chunk_reset);
  RNDN_FIND(data_chunk_set_size);
  RNDN_FIND(data_chunk_get_vector);
  RNDN_FIND(vector_get_data);
  RNDN_FIND(vector_assign_string_element_len);
  RNDN_FIND(vector_ensure_validity_writable);
  RNDN_FIND(vector_get_validity);
  RNDN_FIND(validity_set_row_invalid);
#undef RNDN_FIND
  if (missing) return world_error("`{}` is no DuckDB: it has no {}", path, missing);
  if (f.library_version() != pinned_version)
    return world_error("`{}` is DuckDB {}, not {}", path, f.library_version(), pinned_version);
  if (f.vector_size() < chunk_rows)
    return world_error("`{}` takes {} rows at a time, not {}", path, f.vector_size(), chunk_rows);
  auto library = std::make_unique<Library>(f);
  RETURN_IF_ERROR(library->start(threads));
  return std::unique_ptr<Duckdb>(std::move(library));
}

}  // namespace rndn::planner
