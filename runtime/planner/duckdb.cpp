// DuckDB's side of a comparison, through its C API (duckdb_api.h).
#include "runtime/planner/duckdb.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "runtime/planner/duckdb_api.h"

namespace rndn::planner {
namespace {

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
  explicit Library(const DuckdbApi& functions) : f_(functions) {}
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

  const DuckdbApi f_;
  void *database_ = nullptr, *connection_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Duckdb>> Duckdb::open(const Options& options, unsigned threads) {
  const std::string path = library_path(options);
  if (path.empty())
    return world_error("DuckDB's side needs its library: run tools/sql-planner, which installs it");
  ASSIGN_OR_RETURN(const DuckdbApi f, load_duckdb(path));
  if (f.vector_size() < chunk_rows)
    return world_error("`{}` takes {} rows at a time, not {}", path, f.vector_size(), chunk_rows);
  auto library = std::make_unique<Library>(f);
  RETURN_IF_ERROR(library->start(threads));
  return std::unique_ptr<Duckdb>(std::move(library));
}

}  // namespace rndn::planner
