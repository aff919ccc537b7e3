// DuckDB through its C API (duckdb_api.h).
#include "runtime/planner/duckdb.h"

#include "libraries/base/system/cancel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <new>
#include <optional>

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
    case sql::TypeId::utinyint: return 6;
    case sql::TypeId::usmallint: return 7;
    case sql::TypeId::uinteger: return 8;
    case sql::TypeId::ubigint: return 9;
    case sql::TypeId::real: return 10;
    case sql::TypeId::double_: return 11;
    case sql::TypeId::timestamp: return 12;
    case sql::TypeId::date: return 13;
    case sql::TypeId::time: return 14;
    case sql::TypeId::interval: return 15;
    case sql::TypeId::hugeint: return 16;
    case sql::TypeId::varchar: return 17;
    case sql::TypeId::timestamptz: return 31;
    default: return 0;
  }
}
constexpr int any_type = 34, integer_type = 4;
constexpr const char* take_function = "rndn_take";

// All that a call of our function knows is a handle, which the library alone can read.
using ExtraInfo = void* (*)(void*);
std::atomic<ExtraInfo> extra_info{nullptr};

class Library final : public Duckdb {
 public:
  explicit Library(const DuckdbApi& functions) : f_(functions) {}
  ~Library() override {
    if (connection_) f_.disconnect(&connection_);
    if (database_) f_.close(&database_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  Result<void> start(unsigned threads, Access access) {
    if (f_.open(nullptr, &database_) != 0 || f_.connect(database_, &connection_) != 0)
      return world_error("DuckDB could not open a database in memory");
    RETURN_IF_ERROR(statement(fmt::format(
        "SET threads = {}; SET autoinstall_known_extensions = false; SET "
        "autoload_known_extensions = false; SET TimeZone = 'UTC'; SET enable_external_file_cache = "
        "false",
        threads)));
    if (access == Access::tables) return statement("SET enable_external_access = false");
    return register_take();
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

  Result<void> read(const std::string& columns, const std::string& from,
                    const Take& take) override {
    std::lock_guard lock(reading_);
    take_ = &take;
    token_ = CancelToken::current();
    failure_.reset();
    // The sum needs every value, so that no optimizer leaves out a call.
    auto done = run(fmt::format("SELECT sum({}({})) FROM {}", take_function, columns, from));
    take_ = nullptr;
    if (failure_) return *std::exchange(failure_, {});
    if (!done) return done.error();
    return {};
  }

  Result<void> run_over(const std::string& name, ArrowArrayStream* stream,
                        const std::string& text) override {
    std::unique_lock lock(running_, std::defer_lock);
    while (!lock.try_lock_for(std::chrono::milliseconds(10))) RETURN_IF_ERROR(check_cancelled());
    if (f_.arrow_scan(connection_, name.c_str(), stream) != 0)
      return world_error("DuckDB does not take the result `{}`", name);
    auto done = run(text);
    RETURN_IF_ERROR(statement("DROP VIEW " + quote_name(name)));
    if (!done) return done.error();
    return {};
  }

  Result<Answer> run(const std::string& query) override {
    RETURN_IF_ERROR(check_cancelled());
    const CancelWatch::Call call(watch_);
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
      bool is_text = true;
      for (uint64_t c = 0; c < f_.column_count(&result); ++c) {
        answer.names.emplace_back(f_.column_name(&result, c));
        is_text &= f_.column_type(&result, c) != type_number(sql::TypeId::timestamptz);
      }
      // The interface has no text of a TIMESTAMPTZ: DuckDB's cast makes it.
      if (!is_text) {
        f_.destroy_result(&result);
        ASSIGN_OR_RETURN(Answer texts, run(fmt::format("SELECT COLUMNS(*)::VARCHAR FROM ({}\n)", query)));
        answer.rows = std::move(texts.rows);
        return answer;
      }
      answer.rows.resize(f_.row_count(&result));
      for (uint64_t r = 0; r < answer.rows.size(); ++r)
        for (uint64_t c = 0; c < answer.names.size(); ++c) {
          char* cell = f_.value_varchar(&result, c, r);
          answer.rows[r].emplace_back(cell ? cell : "NULL");
          f_.free(cell);
        }
    }
    f_.destroy_result(&result);
    if (!done) {
      RETURN_IF_ERROR(check_cancelled());
      return done.error();
    }
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

  // A function of any arguments, each of which `take_` sees, that is 1 for every row.
  Result<void> register_take() {
    ExtraInfo none = nullptr;
    if (!extra_info.compare_exchange_strong(none, f_.scalar_function_get_extra_info) &&
        none != f_.scalar_function_get_extra_info)
      return world_error("another library of DuckDB reads files in this process already");
    void* function = f_.create_scalar_function();
    void *any = f_.create_logical_type(any_type), *integer = f_.create_logical_type(integer_type);
    f_.scalar_function_set_name(function, take_function);
    f_.scalar_function_set_varargs(function, any);
    f_.scalar_function_set_return_type(function, integer);
    f_.scalar_function_set_special_handling(function);  // it is called for missing values, too
    f_.scalar_function_set_volatile(function);
    f_.scalar_function_set_extra_info(function, this, nullptr);
    f_.scalar_function_set_function(function, [](void* info, void* chunk, void* out) {
      static_cast<Library*>(extra_info.load()(info))->give(info, chunk, out);
    });
    const int state = f_.register_scalar_function(connection_, function);
    f_.destroy_scalar_function(&function);
    f_.destroy_logical_type(&any);
    f_.destroy_logical_type(&integer);
    if (state != 0) return world_error("DuckDB does not take the function that reads files");
    return {};
  }

  void give(void* info, void* chunk, void* out) {
    const uint64_t rows = f_.data_chunk_get_size(chunk);
    std::vector<Vector> columns(f_.data_chunk_get_column_count(chunk));
    for (size_t c = 0; c < columns.size(); ++c) {
      void* vector = f_.data_chunk_get_vector(chunk, c);
      columns[c] = {f_.vector_get_data(vector), f_.vector_get_validity(vector)};
    }
    std::fill_n(static_cast<int32_t*>(f_.vector_get_data(out)), rows, 1);
    const CancelScope scope(token_);
    // No exception of ours goes through the library.
    Result<void> taken = errors_of([&]() -> Result<void> {
      RETURN_IF_ERROR(check_cancelled());
      return (*take_)(rows, columns);
    });
    if (taken) return;
    f_.scalar_function_set_error(info, taken.error().message.c_str());
    std::lock_guard lock(failing_);
    if (!failure_) failure_ = taken.error();
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
  CancelWatch watch_{[this] { f_.interrupt(connection_); }};
  std::mutex reading_;        // one at a time
  std::timed_mutex running_;  // over a stream
  const Take* take_ = nullptr;
  const CancelToken* token_ = nullptr;  // of who reads
  std::mutex failing_;
  std::optional<Error> failure_;
};

}  // namespace

Result<std::unique_ptr<Duckdb>> Duckdb::open(const Options& options, unsigned threads,
                                             Access access) {
  const std::string path = library_path(options);
  auto needed = [&](const std::string& why) {
    return world_error("{} DuckDB {} as a library: {}",
                       access == Access::files ? "files of this kind need" : "DuckDB's side needs",
                       pinned_version.substr(1), why);
  };
  if (path.empty()) return needed("run tools/sql-planner, which installs it");
  const auto loaded = load_duckdb(path);
  if (!loaded) return needed(loaded.error().message);
  const DuckdbApi& f = *loaded;
  if (f.vector_size() < chunk_rows)
    return world_error("`{}` takes {} rows at a time, not {}", path, f.vector_size(), chunk_rows);
  auto library = std::make_unique<Library>(f);
  RETURN_IF_ERROR(library->start(threads, access));
  return std::unique_ptr<Duckdb>(std::move(library));
}

}  // namespace rndn::planner
