// The ADBC driver: the functions of the C ABI over database.h and objects.h.
//
// A driver manager opens the library and calls AdbcDriverInit (or AdbcDriverRndnInit, which it
// guesses from the library's name) for a table of functions. A handle's private_data is a
// shared_ptr to what it stands for, so that a database lives as long as its connections, whatever
// the order of releases. Wrong orders of calls, null pointers and handles that are released already
// are ADBC_STATUS_INVALID_STATE or INVALID_ARGUMENT. What is thrown within ends in `guarded`.
// Left out, each with NOT_IMPLEMENTED: partitions, Substrait, transactions.
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "runtime/adbc/database.h"
#include "runtime/adbc/objects.h"
#include "runtime/print_sql.h"

namespace rndn::adbc {
namespace {

// ---- errors

AdbcStatusCode report(AdbcError* error, const Failure& failure) {
  if (!error) return failure.status;
  if (error->release) error->release(error);
  error->message = static_cast<char*>(std::malloc(failure.message.size() + 1));
  if (error->message)
    std::memcpy(error->message, failure.message.c_str(), failure.message.size() + 1);
  error->vendor_code = failure.code;
  std::memcpy(error->sqlstate, failure.sqlstate, sizeof error->sqlstate);
  error->release = [](AdbcError* e) {
    std::free(e->message);
    e->message = nullptr;
    e->release = nullptr;
  };
  return failure.status;
}

template <class Work>
AdbcStatusCode guarded(AdbcError* error, Work&& work) noexcept {
  try {
    work();
    return ADBC_STATUS_OK;
  } catch (const Failure& failure) {
    return report(error, failure);
  } catch (const Cancelled& cancelled) {
    try {
      fail(cancelled.error);
    } catch (const Failure& failure) {
      return report(error, failure);
    }
  } catch (const std::bad_alloc&) {
    return report(error, {ADBC_STATUS_IO, "53200", "not enough memory", 3});
  } catch (const std::exception& wrong) {  // a CHECK of ours
    return report(error, {ADBC_STATUS_INTERNAL, "XX000", wrong.what(), 70});
  }
}

// ---- handles

template <class Handle>
struct Stands;
template <>
struct Stands<AdbcDatabase> {
  using For = Database;
  static constexpr const char* name = "database";
};
template <>
struct Stands<AdbcConnection> {
  using For = Connection;
  static constexpr const char* name = "connection";
};
template <>
struct Stands<AdbcStatement> {
  using For = Statement;
  static constexpr const char* name = "statement";
};
template <class Handle>
using Held = std::shared_ptr<typename Stands<Handle>::For>;

template <class T>
T& required(T* pointer, const char* what) {
  if (!pointer) bad_argument(fmt::format("{} is a null pointer", what));
  return *pointer;
}

template <class Handle>
const Held<Handle>& held(Handle* handle) {
  constexpr const char* name = Stands<Handle>::name;
  required(handle, name);
  if (!handle->private_data)
    wrong_order(fmt::format("the {} is not there: it was not made, or is released", name));
  return *static_cast<Held<Handle>*>(handle->private_data);
}
template <class Handle>
void hold(Handle* handle, Held<Handle> what) {
  if (required(handle, Stands<Handle>::name).private_data)
    wrong_order(fmt::format("the {} is made already", Stands<Handle>::name));
  handle->private_data = new Held<Handle>(std::move(what));
}
template <class Handle>
AdbcStatusCode release(Handle* handle, AdbcError* error) {
  return guarded(error, [&] {
    held(handle);
    delete static_cast<Held<Handle>*>(handle->private_data);
    handle->private_data = nullptr;
  });
}

// A connection that is open.
const std::shared_ptr<Connection>& opened(AdbcConnection* handle) {
  const auto& connection = held(handle);
  if (!connection->database) wrong_order("the connection is not open: ConnectionInit opens it");
  return connection;
}
template <class Work>
auto served(AdbcConnection* handle, Work&& work) {
  return opened(handle)->database->serve(std::forward<Work>(work));
}

const char* text(const char* value, const char* what) { return &required(value, what); }

// What is made is nobody's where there is no place for it: that is looked at before.
template <class Record, class Make>
void answer(Record* out, Make&& make) {
  required(out, "the place of an answer");
  *out = make();
}

// ---- options

// An option's value as a text, in each form that there is a setter for.
std::string value_text(const char* value) { return text(value, "an option's value"); }
std::string value_text(const uint8_t* value, size_t length) {
  const uint8_t* bytes = length ? &required(value, "an option's value") : value;
  return {bytes, bytes + length};
}
std::string value_text(int64_t value) { return fmt::format("{}", value); }
std::string value_text(double value) { return fmt::format("{}", value); }

template <class Handle, class... Value>
AdbcStatusCode set_option(Handle* handle, const char* key, Value... value, AdbcError* error) {
  return guarded(error, [&] {
    held(handle)->set_option(text(key, "the name of an option"), value_text(value...));
  });
}

template <class Handle>
const std::string& option(Handle* handle, const char* key) {
  return held(handle)->options.get(text(key, "the name of an option"));
}
// With a byte 0 behind it, or without.
template <class Handle, class Byte>
AdbcStatusCode get_option(Handle* handle, const char* key, Byte* value, size_t* length,
                          AdbcError* error) {
  return guarded(error, [&] {
    const std::string& is = option(handle, key);
    const size_t size = is.size() + (std::is_same_v<Byte, char> ? 1 : 0);
    if (required(length, "the length of an option") >= size && size)
      std::memcpy(&required(value, "an option's value"), is.c_str(), size);
    *length = size;
  });
}
template <class Handle, class Number>
AdbcStatusCode get_number(Handle* handle, const char* key, Number* value, AdbcError* error) {
  return guarded(error, [&] {
    const std::string& is = option(handle, key);
    Number number{};
    const auto [end, wrong] = std::from_chars(is.data(), is.data() + is.size(), number);
    if (wrong != std::errc() || end != is.data() + is.size())
      bad_argument(fmt::format("option `{}` is `{}`, which is no such number", key, is));
    required(value, "an option's value") = number;
  });
}

// ---- databases

AdbcStatusCode database_new(AdbcDatabase* handle, AdbcError* error) {
  return guarded(error, [&] { hold(handle, std::make_shared<Database>()); });
}
AdbcStatusCode database_init(AdbcDatabase* handle, AdbcError* error) {
  return guarded(error, [&] { held(handle)->init(); });
}

// ---- connections

AdbcStatusCode connection_new(AdbcConnection* handle, AdbcError* error) {
  return guarded(error, [&] {
    auto connection = std::make_shared<Connection>();
    connection->options.set("adbc.connection.autocommit", "true");
    connection->options.set("adbc.connection.catalog", catalog_name);
    connection->options.set("adbc.connection.db_schema", schema_name);
    hold(handle, std::move(connection));
  });
}
AdbcStatusCode connection_init(AdbcConnection* handle, AdbcDatabase* of, AdbcError* error) {
  return guarded(error, [&] {
    const auto& connection = held(handle);
    if (connection->database) wrong_order("the connection is open already");
    const auto& database = held(of);
    if (!database->is_open()) wrong_order("the database is not open: DatabaseInit opens it");
    connection->database = database;
  });
}
AdbcStatusCode no_transaction(AdbcConnection* handle, AdbcError* error) {
  return guarded(error, [&] {
    opened(handle);
    wrong_order("there is no transaction: each statement is committed when it is done");
  });
}
AdbcStatusCode connection_cancel(AdbcConnection* handle, AdbcError* error) {
  return guarded(error, [&] { opened(handle)->cancel(); });
}
AdbcStatusCode get_info(AdbcConnection* handle, const uint32_t* codes, size_t count,
                        ArrowArrayStream* out, AdbcError* error) {
  return guarded(error, [&] {
    opened(handle);
    answer(out, [&] { return info({codes, codes ? count : 0}); });
  });
}
AdbcStatusCode get_objects(AdbcConnection* handle, int depth, const char* catalog,
                           const char* schema, const char* table, const char** types,
                           const char* column, ArrowArrayStream* out, AdbcError* error) {
  return guarded(error, [&] {
    if (depth < 0 || depth > 3) bad_argument(fmt::format("there is no depth {}", depth));
    Filter filter{catalog, schema, table, column};
    if (types) {
      filter.types.emplace();
      for (; *types; ++types) filter.types->emplace_back(*types);
    }
    answer(out, [&] {
      return served(handle, [&](auto& session) { return objects(session, depth, filter); });
    });
  });
}
AdbcStatusCode get_table_schema(AdbcConnection* handle, const char* catalog, const char* schema,
                                const char* table, ArrowSchema* out, AdbcError* error) {
  return guarded(error, [&] {
    const std::string name = text(table, "the name of a table");
    required(out, "the schema of an answer");
    const bool is_ours = (!catalog || !*catalog || std::strcmp(catalog, catalog_name) == 0) &&
                         (!schema || !*schema || std::strcmp(schema, schema_name) == 0);
    auto columns = served(handle, [&](auto& session) { return table_columns(session, name); });
    if (!columns || !is_ours)
      throw Failure{ADBC_STATUS_NOT_FOUND, "42P01", fmt::format("there is no table `{}`", name), 1};
    auto result = runtime::ArrowResult::make(no_rows(*columns));
    if (!result) fail(result.error());
    *out = runtime::ArrowResult::schema(*std::move(result));
  });
}
AdbcStatusCode get_table_types(AdbcConnection* handle, ArrowArrayStream* out, AdbcError* error) {
  return guarded(error, [&] {
    opened(handle);
    answer(out, table_types);
  });
}
AdbcStatusCode get_statistics(AdbcConnection* handle, const char* catalog, const char* schema,
                              const char* table, char approximate, ArrowArrayStream* out,
                              AdbcError* error) {
  return guarded(error, [&] {
    const Filter filter{catalog, schema, table};
    answer(out, [&] {
      return served(handle, [&](auto& session) {
        return statistics(session, filter, approximate != 0);
      });
    });
  });
}
AdbcStatusCode get_statistic_names(AdbcConnection* handle, ArrowArrayStream* out,
                                   AdbcError* error) {
  return guarded(error, [&] {
    opened(handle);
    answer(out, statistic_names);
  });
}
AdbcStatusCode read_partition(AdbcConnection* handle, const uint8_t*, size_t, ArrowArrayStream*,
                              AdbcError* error) {
  return guarded(error, [&] {
    opened(handle);
    not_implemented("partitions of results");
  });
}

// ---- statements

AdbcStatusCode statement_new(AdbcConnection* of, AdbcStatement* handle, AdbcError* error) {
  return guarded(error, [&] { hold(handle, std::make_shared<Statement>(opened(of))); });
}
AdbcStatusCode set_query(AdbcStatement* handle, const char* query, AdbcError* error) {
  return guarded(error, [&] { held(handle)->set_query(text(query, "the text of a query")); });
}
AdbcStatusCode set_plan(AdbcStatement* handle, const uint8_t*, size_t, AdbcError* error) {
  return guarded(error, [&] {
    held(handle);
    not_implemented("plans of Substrait");
  });
}
AdbcStatusCode prepare(AdbcStatement* handle, AdbcError* error) {
  return guarded(error, [&] { held(handle)->prepare(); });
}
AdbcStatusCode bind(AdbcStatement* handle, ArrowArray* rows, ArrowSchema* schema,
                    AdbcError* error) {
  return guarded(error, [&] {
    const auto& statement = held(handle);
    data::Owned<ArrowSchema> taken_schema(std::move(required(schema, "a schema")));
    data::Owned<ArrowArray> taken(std::move(required(rows, "an array")));
    if (!taken.is_there() || !taken_schema.is_there()) bad_argument("the rows are released");
    statement->bind(data::stream_of(std::move(taken_schema), std::move(taken)));
  });
}
AdbcStatusCode bind_stream(AdbcStatement* handle, ArrowArrayStream* rows, AdbcError* error) {
  return guarded(error, [&] {
    const auto& statement = held(handle);
    data::ArrowStream taken(std::move(required(rows, "a stream")));
    if (!taken.is_there()) bad_argument("the stream is released");
    statement->bind(std::move(taken));
  });
}
AdbcStatusCode execute_query(AdbcStatement* handle, ArrowArrayStream* out, int64_t* rows,
                             AdbcError* error) {
  return guarded(error, [&] {
    auto answer = held(handle)->execute();
    if (rows) *rows = answer.rows_changed;
    if (!out) return;
    if (answer.results.empty()) answer.results.emplace_back();  // of no columns
    auto stream = runtime::ArrowResult::batches(std::move(answer.results));
    if (!stream) fail(stream.error());
    *out = *stream;
  });
}
AdbcStatusCode execute_schema(AdbcStatement* handle, ArrowSchema* out, AdbcError* error) {
  return guarded(error, [&] {
    answer(out, [&] { return held(handle)->result_schema(); });
  });
}
AdbcStatusCode execute_partitions(AdbcStatement* handle, ArrowSchema*, AdbcPartitions*, int64_t*,
                                  AdbcError* error) {
  return guarded(error, [&] {
    held(handle);
    not_implemented("partitions of results");
  });
}
AdbcStatusCode get_parameter_schema(AdbcStatement* handle, ArrowSchema* out, AdbcError* error) {
  return guarded(error, [&] {
    answer(out, [&] { return held(handle)->parameter_schema(); });
  });
}
AdbcStatusCode statement_cancel(AdbcStatement* handle, AdbcError* error) {
  return guarded(error, [&] { held(handle)->cancel(); });
}

// ---- the table

AdbcStatusCode init(int version, void* where, AdbcError* error) {
  return guarded(error, [&] {
    if (version != ADBC_VERSION_1_0_0 && version != ADBC_VERSION_1_1_0)
      not_implemented(fmt::format("ADBC {}: 1.0 and 1.1 are there", version));
    if (!where) bad_argument("the driver is a null pointer");
    AdbcDriver d{};
    d.release = [](AdbcDriver* driver, AdbcError* wrong) {
      return guarded(wrong, [&] { required(driver, "the driver").release = nullptr; });
    };
    d.DatabaseNew = database_new;
    d.DatabaseInit = database_init;
    d.DatabaseRelease = release<AdbcDatabase>;
    d.ConnectionNew = connection_new;
    d.ConnectionInit = connection_init;
    d.ConnectionRelease = release<AdbcConnection>;
    d.ConnectionCommit = no_transaction;
    d.ConnectionRollback = no_transaction;
    d.ConnectionGetInfo = get_info;
    d.ConnectionGetObjects = get_objects;
    d.ConnectionGetTableSchema = get_table_schema;
    d.ConnectionGetTableTypes = get_table_types;
    d.ConnectionReadPartition = read_partition;
    d.StatementNew = statement_new;
    d.StatementRelease = release<AdbcStatement>;
    d.StatementSetSqlQuery = set_query;
    d.StatementSetSubstraitPlan = set_plan;
    d.StatementPrepare = prepare;
    d.StatementBind = bind;
    d.StatementBindStream = bind_stream;
    d.StatementExecuteQuery = execute_query;
    d.StatementExecutePartitions = execute_partitions;
    d.StatementGetParameterSchema = get_parameter_schema;

#define OPTIONS(Kind)                                              \
  d.Kind##SetOption = set_option<Adbc##Kind, const char*>;             \
  d.Kind##SetOptionBytes = set_option<Adbc##Kind, const uint8_t*, size_t>; \
  d.Kind##SetOptionDouble = set_option<Adbc##Kind, double>;            \
  d.Kind##SetOptionInt = set_option<Adbc##Kind, int64_t>;              \
  d.Kind##GetOption = get_option<Adbc##Kind, char>;                    \
  d.Kind##GetOptionBytes = get_option<Adbc##Kind, uint8_t>;            \
  d.Kind##GetOptionDouble = get_number<Adbc##Kind, double>;            \
  d.Kind##GetOptionInt = get_number<Adbc##Kind, int64_t>;
    OPTIONS(Database)
    OPTIONS(Connection)
    OPTIONS(Statement)
#undef OPTIONS

    d.ErrorGetDetailCount = [](const AdbcError*) { return 0; };
    d.ErrorGetDetail = [](const AdbcError*, int) { return AdbcErrorDetail{}; };
    d.ErrorFromArrayStream = [](ArrowArrayStream*, AdbcStatusCode*) -> const AdbcError* {
      return nullptr;  // streams of results do not fail
    };
    d.ConnectionCancel = connection_cancel;
    d.ConnectionGetStatistics = get_statistics;
    d.ConnectionGetStatisticNames = get_statistic_names;
    d.StatementCancel = statement_cancel;
    d.StatementExecuteSchema = execute_schema;
    // The caller's record ends where its version does; what the manager keeps there stays.
    auto* driver = static_cast<AdbcDriver*>(where);
    d.private_manager = driver->private_manager;
    std::memcpy(where, &d, version == ADBC_VERSION_1_0_0 ? offsetof(AdbcDriver, ErrorGetDetailCount)
                                                         : sizeof d);
  });
}

}  // namespace
}  // namespace rndn::adbc

extern "C" {
[[gnu::visibility("default")]] AdbcStatusCode AdbcDriverInit(int version, void* driver,
                                                             AdbcError* error) {
  return rndn::adbc::init(version, driver, error);
}
[[gnu::visibility("default")]] AdbcStatusCode AdbcDriverRndnInit(int version, void* driver,
                                                                 AdbcError* error) {
  return rndn::adbc::init(version, driver, error);
}
}
