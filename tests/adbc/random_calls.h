// The driver's functions in any order, with arguments that are right, missing or wrong, handles
// that are not made or released, and rows with something wrong in them. Whatever comes: a status of
// the specification with a message where it is no success, never a fault of ours; answers that can
// be read after their statement is gone; nothing held when all is released; and a database beside
// them that goes on to answer right.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/adbc/adbc_abi.h"
#include "tests/support/random_arrow.h"

namespace rndn::testing {

inline constexpr const char* texts[] = {
    nullptr,
    "",
    "x",
    "SELECT 1 AS a",
    "SELECT a, b FROM t ORDER BY a",
    "SELECT ? + 1 AS n",
    "SELECT $1 AS x, $2 AS y",
    "SELECT $0",
    "SELECT $99999999999999999999",
    "SELECT ?, $2",
    "INSERT INTO t VALUES (?, ?)",
    "INSERT INTO t (a) VALUES (?)",
    "INSERT INTO t SELECT c0 FROM made",
    "CREATE OR REPLACE TABLE t AS SELECT 1 AS a, 'x' AS b",
    "DROP TABLE IF EXISTS t",
    "DROP TABLE t",
    "CREATE OR REPLACE VIEW v AS SELECT a FROM t",
    "DROP VIEW v",
    "SELECT * FROM v",
    "SELECT count(*) AS n FROM made",
    "SELECT * FROM made",
    "SHOW TABLES",
    "DESCRIBE made",
    "SUMMARIZE t",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT 1 AS a",
    "PREPARE p AS SELECT ? AS a",
    "EXECUTE p(1)",
    "DEALLOCATE p",
    "SELECT 1; SELECT 2 AS b",
    ";;",
    "-- nothing",
    "SELECT 'open",
    "SELECT 1 // 0",
    "SELECT 9223372036854775807 + a FROM t",
    "BEGIN",
    "SELECT \xff",
    "\xff\xfe",
    "\xed\xa0\x80",
    "SELECT count(*) AS n FROM range(300000) AS r(i) WHERE i % 7 = 3",
    "t",
    "made",
    "v",
    "%",
    "_",
    "\xc3\xa9%",
    "main",
    "rndn",
    "TABLE",
    "true",
    "false",
    "1",
    "0",
    "-1",
    "1e300",
    "inf",
    "nan",
    "64MiB",
    "1B",
    "cpu",
    "sim",
    "uri",
    "rndn.device",
    "rndn.timeout",
    "rndn.max_memory",
    "rndn.device_memory",
    "rndn.arch",
    "rndn.table.q",
    "rndn.data",
    "adbc.ingest.target_table",
    "adbc.ingest.mode",
    "adbc.ingest.mode.create",
    "adbc.ingest.mode.append",
    "adbc.ingest.mode.replace",
    "adbc.ingest.mode.create_append",
    "adbc.ingest.temporary",
    "adbc.ingest.target_catalog",
    "adbc.ingest.target_db_schema",
    "adbc.connection.autocommit",
    "adbc.connection.readonly",
    "adbc.connection.catalog",
    "adbc.statement.exec.incremental",
    "/nowhere/at/all.parquet",
    "tpch:nothing",
};

class Calls {
 public:
  Calls(AdbcDriver& driver, Choices& random) : d_(driver), random_(random), arrow_(random) {}

  // As many calls, and all that is held let go; how many succeeded.
  int run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      step_ = i;
      const Call& call = calls_[random_() % calls_.size()];
      what_ = call.name;
      call.make();
    }
    // All that is left, in any order.
    for (int i = 0; i < 400; ++i) release_something();
    for (auto& h : statements_) end(h, d_.StatementRelease);
    for (auto& h : connections_) end(h, d_.ConnectionRelease);
    for (auto& h : databases_) end(h, d_.DatabaseRelease);
    for (auto& answer : answers_) read(answer);
    if (error_.release) error_.release(&error_);
    EXPECT_EQ(arrow_.held(), 0) << "records of rows that were bound";
    return succeeded_;
  }

 private:
  struct Call {
    const char* name;
    std::function<void()> make;
  };

  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  const char* text() { return texts[pick(static_cast<int>(std::size(texts)))]; }
  // Mostly one that is there.
  template <class Handle, size_t N>
  Handle* one_of(std::array<Handle, N>& all) {
    if (pick(40) == 0) return nullptr;
    Handle* handle = &all[static_cast<size_t>(pick(N))];
    for (int tries = 0; tries < 4 && !handle->private_data; ++tries)
      handle = &all[static_cast<size_t>(pick(N))];
    return handle;
  }
  AdbcDatabase* database() { return one_of(databases_); }
  AdbcConnection* connection() { return one_of(connections_); }
  AdbcStatement* statement() { return one_of(statements_); }
  ArrowArrayStream* answer() {
    if (pick(10) == 0) return nullptr;
    auto& slot = answers_[static_cast<size_t>(pick(static_cast<int>(answers_.size())))];
    read(slot);
    return &slot;
  }
  AdbcError* error() {
    if (error_.release) error_.release(&error_);
    error_ = {};
    return wanted_error_ = pick(10) ? &error_ : nullptr;
  }

  void check(AdbcStatusCode status) {
    SCOPED_TRACE(std::string(what_) + ", call " + std::to_string(step_));
    succeeded_ += status == ADBC_STATUS_OK;
    EXPECT_LE(status, ADBC_STATUS_TIMEOUT);
    const std::string said = error_.message ? error_.message : "";
    EXPECT_NE(status, ADBC_STATUS_INTERNAL) << said;
    EXPECT_NE(status, ADBC_STATUS_UNKNOWN) << said;
    if (!wanted_error_) return;
    EXPECT_EQ(status == ADBC_STATUS_OK, error_.release == nullptr) << said;
    if (status == ADBC_STATUS_OK) return;
    EXPECT_NE(said, "");
    for (const char c : error_.sqlstate)
      EXPECT_TRUE((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z')) << said;
    EXPECT_GT(error_.vendor_code, 0) << said;
  }

  // Whole, and released.
  void read(ArrowArrayStream& stream) {
    if (!stream.release) return;
    ArrowSchema schema{};
    ASSERT_EQ(stream.get_schema(&stream, &schema), 0) << stream.get_last_error(&stream);
    ASSERT_NE(schema.release, nullptr);
    EXPECT_STREQ(schema.format, "+s");
    for (;;) {
      ArrowArray array{};
      ASSERT_EQ(stream.get_next(&stream, &array), 0) << stream.get_last_error(&stream);
      if (!array.release) break;
      EXPECT_EQ(array.n_children, schema.n_children);
      EXPECT_GE(array.length, 0);
      for (int64_t c = 0; c < array.n_children; ++c)
        EXPECT_EQ(array.children[c]->length, array.length) << schema.children[c]->name;
      array.release(&array);
    }
    schema.release(&schema);
    stream.release(&stream);
    EXPECT_EQ(stream.release, nullptr);
  }
  void look_at(ArrowSchema& schema) {
    if (!schema.release) return;
    for (int64_t c = 0; c < schema.n_children; ++c) {
      EXPECT_NE(schema.children[c]->format, nullptr);
      EXPECT_NE(schema.children[c]->name, nullptr);
    }
    schema.release(&schema);
  }

  template <class Handle, class Release>
  void end(Handle& handle, Release release) {
    if (handle.private_data) check(release(&handle, error()));
    EXPECT_EQ(handle.private_data, nullptr);
  }
  void release_something() {
    switch (pick(4)) {
      case 0: return end(statements_[static_cast<size_t>(pick(4))], d_.StatementRelease);
      case 1: return end(connections_[static_cast<size_t>(pick(3))], d_.ConnectionRelease);
      case 2: return end(databases_[static_cast<size_t>(pick(2))], d_.DatabaseRelease);
      default: return read(answers_[static_cast<size_t>(pick(3))]);
    }
  }

  // A whole way to a statement, which calls alone take long to find.
  void make_all() {
    AdbcDatabase& of = databases_[static_cast<size_t>(pick(2))];
    AdbcConnection& by = connections_[static_cast<size_t>(pick(3))];
    AdbcStatement& made = statements_[static_cast<size_t>(pick(4))];
    if (!of.private_data) {
      check(d_.DatabaseNew(&of, error()));
      check(d_.DatabaseSetOption(&of, "rndn.device", "cpu", error()));
      check(d_.DatabaseInit(&of, error()));
    }
    if (!by.private_data) {
      check(d_.ConnectionNew(&by, error()));
      check(d_.ConnectionInit(&by, &of, error()));
    }
    if (!made.private_data) check(d_.StatementNew(&by, &made, error()));
  }
  void run_text() {
    AdbcStatement* of = statement();
    check(d_.StatementSetSqlQuery(of, text(), error()));
    int64_t rows = -7;
    check(d_.StatementExecuteQuery(of, answer(), pick(3) ? &rows : nullptr, error()));
    EXPECT_TRUE(rows >= -1 || rows == -7) << rows;
  }
  // While another thread cancels it, if that comes early enough.
  void run_cancelled() {
    AdbcStatement* of = statement();
    AdbcConnection* by = connection();
    std::atomic<bool> begun = false;
    std::thread other([&, is_by_connection = pick(2) == 0] {
      while (!begun) std::this_thread::yield();
      for (int i = 0; i < 20; ++i) {
        // Null: what went wrong is of no interest.
        if (is_by_connection)
          d_.ConnectionCancel(by, nullptr);
        else
          d_.StatementCancel(of, nullptr);
        std::this_thread::yield();
      }
    });
    ArrowArrayStream* to = answer();
    AdbcError* said = error();
    begun = true;
    const AdbcStatusCode status = d_.StatementExecuteQuery(of, to, nullptr, said);
    other.join();
    check(status);
  }
  // One batch, or the schema again; the rest later, if ever.
  void read_some() {
    ArrowArrayStream& stream = answers_[static_cast<size_t>(pick(3))];
    if (!stream.release) return;
    ArrowSchema schema{};
    if (pick(2)) {
      EXPECT_EQ(stream.get_schema(&stream, &schema), 0);
      return look_at(schema);
    }
    ArrowArray array{};
    EXPECT_EQ(stream.get_next(&stream, &array), 0);
    if (pick(3) == 0) stream.release(&stream);  // before its batch
    if (array.release) array.release(&array);
  }
  void ingest() {
    AdbcStatement* of = statement();
    static const char* const modes[] = {"adbc.ingest.mode.create", "adbc.ingest.mode.append",
                                        "adbc.ingest.mode.replace",
                                        "adbc.ingest.mode.create_append"};
    check(d_.StatementSetOption(of, "adbc.ingest.target_table", pick(3) ? "made" : "t", error()));
    check(d_.StatementSetOption(of, "adbc.ingest.mode", modes[pick(4)], error()));
    bind_stream(of);
    check(d_.StatementExecuteQuery(of, answer(), nullptr, error()));
  }
  void bind_stream(AdbcStatement* of) {
    ArrowArrayStream rows =
        arrow_.stream({.most_columns = 3, .is_wrong = pick(3) == 0, .only_simple = pick(2) == 0});
    check(d_.StatementBindStream(of, pick(30) ? &rows : nullptr, error()));
    if (rows.release) rows.release(&rows);  // not taken
  }
  void bind(AdbcStatement* of) {
    ArrowArrayStream rows =
        arrow_.stream({.most_columns = 3, .most_chunks = 1, .only_simple = pick(2) == 0});
    ArrowSchema schema{};
    ArrowArray array{};
    rows.get_schema(&rows, &schema);
    rows.get_next(&rows, &array);
    rows.release(&rows);
    if (pick(20) == 0 && array.release) array.release(&array);
    check(d_.StatementBind(of, pick(30) ? &array : nullptr, pick(30) ? &schema : nullptr, error()));
    if (array.release) array.release(&array);
    if (schema.release) schema.release(&schema);
  }

  template <class Handle>
  void set_option(Handle* handle,
                  AdbcStatusCode (*set)(Handle*, const char*, const char*, AdbcError*),
                  AdbcStatusCode (*bytes)(Handle*, const char*, const uint8_t*, size_t, AdbcError*),
                  AdbcStatusCode (*whole)(Handle*, const char*, int64_t, AdbcError*),
                  AdbcStatusCode (*real)(Handle*, const char*, double, AdbcError*)) {
    static const double reals[] = {0,  0.001, 2.5,
                                   -1, 1e300, std::numeric_limits<double>::quiet_NaN()};
    const char* value = text();
    switch (pick(4)) {
      case 0: return check(set(handle, text(), value, error()));
      case 1:
        return check(bytes(handle, text(), reinterpret_cast<const uint8_t*>(value),
                           value ? std::string_view(value).size() : 0, error()));
      case 2: return check(whole(handle, text(), pick(2) ? pick(100) : INT64_MIN, error()));
      default: return check(real(handle, text(), reals[pick(6)], error()));
    }
  }
  template <class Handle>
  void get_option(Handle* handle,
                  AdbcStatusCode (*get)(Handle*, const char*, char*, size_t*, AdbcError*),
                  AdbcStatusCode (*bytes)(Handle*, const char*, uint8_t*, size_t*, AdbcError*),
                  AdbcStatusCode (*whole)(Handle*, const char*, int64_t*, AdbcError*),
                  AdbcStatusCode (*real)(Handle*, const char*, double*, AdbcError*)) {
    std::vector<char> room(static_cast<size_t>(pick(30)));
    size_t length = room.size();
    int64_t n = 0;
    double x = 0;
    switch (pick(4)) {
      case 0: return check(get(handle, text(), room.data(), pick(20) ? &length : nullptr, error()));
      case 1:
        return check(
            bytes(handle, text(), reinterpret_cast<uint8_t*>(room.data()), &length, error()));
      case 2: return check(whole(handle, text(), pick(20) ? &n : nullptr, error()));
      default: return check(real(handle, text(), pick(20) ? &x : nullptr, error()));
    }
  }

  const std::vector<Call> calls_ = {
      {"all to a statement", [this] { make_all(); }},
      {"all to a statement", [this] { make_all(); }},
      {"a query", [this] { run_text(); }},
      {"a query", [this] { run_text(); }},
      {"a query", [this] { run_text(); }},
      {"a query", [this] { run_text(); }},
      {"a query that is cancelled", [this] { run_cancelled(); }},
      {"a part of an answer", [this] { read_some(); }},
      {"ingestion", [this] { ingest(); }},
      {"ingestion", [this] { ingest(); }},
      {"a release", [this] { release_something(); }},
      {"DatabaseNew", [this] { check(d_.DatabaseNew(database(), error())); }},
      {"DatabaseInit", [this] { check(d_.DatabaseInit(database(), error())); }},
      {"DatabaseRelease",
       [this] {
         if (pick(4) == 0) check(d_.DatabaseRelease(database(), error()));
       }},
      {"DatabaseSetOption",
       [this] {
         set_option(database(), d_.DatabaseSetOption, d_.DatabaseSetOptionBytes,
                    d_.DatabaseSetOptionInt, d_.DatabaseSetOptionDouble);
       }},
      {"DatabaseGetOption",
       [this] {
         get_option(database(), d_.DatabaseGetOption, d_.DatabaseGetOptionBytes,
                    d_.DatabaseGetOptionInt, d_.DatabaseGetOptionDouble);
       }},
      {"ConnectionNew", [this] { check(d_.ConnectionNew(connection(), error())); }},
      {"ConnectionInit", [this] { check(d_.ConnectionInit(connection(), database(), error())); }},
      {"ConnectionRelease",
       [this] {
         if (pick(4) == 0) check(d_.ConnectionRelease(connection(), error()));
       }},
      {"ConnectionSetOption",
       [this] {
         set_option(connection(), d_.ConnectionSetOption, d_.ConnectionSetOptionBytes,
                    d_.ConnectionSetOptionInt, d_.ConnectionSetOptionDouble);
       }},
      {"ConnectionGetOption",
       [this] {
         get_option(connection(), d_.ConnectionGetOption, d_.ConnectionGetOptionBytes,
                    d_.ConnectionGetOptionInt, d_.ConnectionGetOptionDouble);
       }},
      {"ConnectionCommit", [this] { check(d_.ConnectionCommit(connection(), error())); }},
      {"ConnectionRollback", [this] { check(d_.ConnectionRollback(connection(), error())); }},
      {"ConnectionCancel", [this] { check(d_.ConnectionCancel(connection(), error())); }},
      {"ConnectionGetInfo",
       [this] {
         const uint32_t codes[] = {0, 3, 103, 77, UINT32_MAX};
         check(d_.ConnectionGetInfo(connection(), pick(3) ? codes : nullptr,
                                    static_cast<size_t>(pick(6)), answer(), error()));
       }},
      {"ConnectionGetObjects",
       [this] {
         const char* types[] = {"TABLE", text(), nullptr};
         check(d_.ConnectionGetObjects(connection(), pick(6) - 1, pick(2) ? nullptr : text(),
                                       pick(2) ? nullptr : text(), pick(2) ? nullptr : text(),
                                       pick(3) ? nullptr : types, pick(2) ? nullptr : text(),
                                       answer(), error()));
       }},
      {"ConnectionGetTableSchema",
       [this] {
         ArrowSchema schema{};
         check(d_.ConnectionGetTableSchema(connection(), pick(2) ? nullptr : text(),
                                           pick(2) ? nullptr : text(), text(),
                                           pick(20) ? &schema : nullptr, error()));
         look_at(schema);
       }},
      {"ConnectionGetTableTypes",
       [this] { check(d_.ConnectionGetTableTypes(connection(), answer(), error())); }},
      {"ConnectionGetStatistics",
       [this] {
         check(d_.ConnectionGetStatistics(connection(), pick(2) ? nullptr : text(),
                                          pick(2) ? nullptr : text(), pick(2) ? nullptr : text(),
                                          static_cast<char>(pick(2)), answer(), error()));
       }},
      {"ConnectionGetStatisticNames",
       [this] { check(d_.ConnectionGetStatisticNames(connection(), answer(), error())); }},
      {"ConnectionReadPartition",
       [this] {
         check(d_.ConnectionReadPartition(connection(), nullptr, static_cast<size_t>(pick(9)),
                                          answer(), error()));
       }},
      {"StatementNew", [this] { check(d_.StatementNew(connection(), statement(), error())); }},
      {"StatementRelease",
       [this] {
         if (pick(4) == 0) check(d_.StatementRelease(statement(), error()));
       }},
      {"StatementSetOption",
       [this] {
         set_option(statement(), d_.StatementSetOption, d_.StatementSetOptionBytes,
                    d_.StatementSetOptionInt, d_.StatementSetOptionDouble);
       }},
      {"StatementGetOption",
       [this] {
         get_option(statement(), d_.StatementGetOption, d_.StatementGetOptionBytes,
                    d_.StatementGetOptionInt, d_.StatementGetOptionDouble);
       }},
      {"StatementSetSqlQuery",
       [this] { check(d_.StatementSetSqlQuery(statement(), text(), error())); }},
      {"StatementSetSubstraitPlan",
       [this] {
         check(d_.StatementSetSubstraitPlan(statement(), nullptr, static_cast<size_t>(pick(9)),
                                            error()));
       }},
      {"StatementPrepare", [this] { check(d_.StatementPrepare(statement(), error())); }},
      {"StatementBind", [this] { bind(statement()); }},
      {"StatementBindStream", [this] { bind_stream(statement()); }},
      {"StatementExecuteQuery",
       [this] { check(d_.StatementExecuteQuery(statement(), answer(), nullptr, error())); }},
      {"StatementExecuteSchema",
       [this] {
         ArrowSchema schema{};
         check(d_.StatementExecuteSchema(statement(), pick(20) ? &schema : nullptr, error()));
         look_at(schema);
       }},
      {"StatementExecutePartitions",
       [this] {
         check(d_.StatementExecutePartitions(statement(), nullptr, nullptr, nullptr, error()));
       }},
      {"StatementGetParameterSchema",
       [this] {
         ArrowSchema schema{};
         check(d_.StatementGetParameterSchema(statement(), pick(20) ? &schema : nullptr, error()));
         look_at(schema);
       }},
      {"StatementCancel", [this] { check(d_.StatementCancel(statement(), error())); }},
  };

  AdbcDriver& d_;
  Choices& random_;
  RandomArrow arrow_;
  std::array<AdbcDatabase, 2> databases_{};
  std::array<AdbcConnection, 3> connections_{};
  std::array<AdbcStatement, 4> statements_{};
  std::array<ArrowArrayStream, 3> answers_{};
  AdbcError error_{};
  AdbcError* wanted_error_ = nullptr;
  const char* what_ = "";
  int step_ = 0, succeeded_ = 0;
};

}  // namespace rndn::testing
