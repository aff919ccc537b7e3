// The driver by its C ABI alone, as a driver manager uses it: statements, parameters, ingestion, the
// catalog, and everything that callers do wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "runtime/adbc/adbc_abi.h"

extern "C" AdbcDriverInitFunc AdbcDriverInit, AdbcDriverRndnInit;

namespace {

using testing::HasSubstr, testing::ElementsAre;

class Driver : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(AdbcDriverInit(ADBC_VERSION_1_1_0, &d, &error), ADBC_STATUS_OK);
    if (!std::filesystem::exists(RNDN_BIN_DIR "/../share/duckdb/libduckdb-planner.so") &&
        !std::filesystem::exists(RNDN_BIN_DIR "/../../share/duckdb/libduckdb-planner.so") &&
        !std::getenv("RNDN_DUCKDB"))
      GTEST_SKIP() << "skipped: the planner of SQL is not installed (tools/sql-planner does that)";
    ok(d.DatabaseNew(&database, &error));
    ok(d.DatabaseSetOption(&database, "rndn.device", "cpu", &error));
    ok(d.DatabaseInit(&database, &error));
    ok(d.ConnectionNew(&connection, &error));
    ok(d.ConnectionInit(&connection, &database, &error));
    ok(d.StatementNew(&connection, &statement, &error));
  }
  void TearDown() override {
    if (statement.private_data) ok(d.StatementRelease(&statement, &error));
    if (connection.private_data) ok(d.ConnectionRelease(&connection, &error));
    if (database.private_data) ok(d.DatabaseRelease(&database, &error));
    if (error.release) error.release(&error);
    ok(d.release(&d, &error));
  }
  void ok(AdbcStatusCode status) {
    EXPECT_EQ(status, ADBC_STATUS_OK) << (error.message ? error.message : "");
  }
  // Fails so, with a message that has the text.
  void fails(AdbcStatusCode status, AdbcStatusCode wanted, const char* said) {
    EXPECT_EQ(status, wanted) << said;
    ASSERT_NE(error.message, nullptr) << said;
    EXPECT_THAT(error.message, HasSubstr(said));
    EXPECT_NE(error.sqlstate[0], 0);
    error.release(&error);
    EXPECT_EQ(error.release, nullptr);
  }
  // Rows of a stream: integers of 4 and 8 bytes, doubles and texts, a row in one text.
  std::vector<std::string> rows(ArrowArrayStream& stream) {
    std::vector<std::string> all;
    ArrowSchema schema{};
    EXPECT_EQ(stream.get_schema(&stream, &schema), 0);
    for (;;) {
      ArrowArray array{};
      EXPECT_EQ(stream.get_next(&stream, &array), 0);
      if (!array.release) break;
      for (int64_t r = 0; r < array.length; ++r) {
        std::string row;
        for (int64_t c = 0; c < array.n_children; ++c)
          row += (c ? "|" : "") + cell(*schema.children[c], *array.children[c], r);
        all.push_back(row);
      }
      array.release(&array);
    }
    schema.release(&schema);
    stream.release(&stream);
    return all;
  }
  static std::string cell(const ArrowSchema& schema, const ArrowArray& a, int64_t r) {
    const auto* valid = static_cast<const uint8_t*>(a.buffers[0]);
    if (schema.format[0] != '+' && valid && !(valid[r / 8] >> r % 8 & 1)) return "NULL";
    switch (schema.format[0]) {
      case 'i': return std::to_string(static_cast<const int32_t*>(a.buffers[1])[r]);
      case 'I': return std::to_string(static_cast<const uint32_t*>(a.buffers[1])[r]);
      case 's': return std::to_string(static_cast<const int16_t*>(a.buffers[1])[r]);
      case 'l': return std::to_string(static_cast<const int64_t*>(a.buffers[1])[r]);
      case 'g': return std::to_string(static_cast<const double*>(a.buffers[1])[r]);
      case 'b': return std::to_string(static_cast<const uint8_t*>(a.buffers[1])[r / 8] >> r % 8 & 1);
      case 'u': {
        const auto* at = static_cast<const int32_t*>(a.buffers[1]) + r;
        return std::string(static_cast<const char*>(a.buffers[2]) + at[0], at[1] - at[0]);
      }
      case '+': break;
      default: return std::string("?") + schema.format;
    }
    std::string out;
    if (schema.format[1] == 's') {
      for (int64_t c = 0; c < a.n_children; ++c)
        if (const std::string is = cell(*schema.children[c], *a.children[c], r); is != "NULL")
          out += (out.empty() ? "" : " ") + is;
      return "{" + out + "}";
    }
    if (schema.format[1] == 'u') {
      const uint8_t kind = static_cast<const uint8_t*>(a.buffers[0])[r];
      return cell(*schema.children[kind], *a.children[kind],
                  static_cast<const int32_t*>(a.buffers[1])[r]);
    }
    if (valid && !(valid[r / 8] >> r % 8 & 1)) return "NULL";
    const auto* at = static_cast<const int32_t*>(a.buffers[1]) + r;
    for (int32_t i = at[0]; i < at[1]; ++i)
      out += (out.empty() ? "" : ", ") + cell(*schema.children[0], *a.children[0], i);
    return "[" + out + "]";
  }
  std::vector<std::string> query(const char* sql) {
    ok(d.StatementSetSqlQuery(&statement, sql, &error));
    ArrowArrayStream stream{};
    int64_t changed = 0;
    const AdbcStatusCode status = d.StatementExecuteQuery(&statement, &stream, &changed, &error);
    ok(status);
    return status ? std::vector<std::string>() : rows(stream);
  }
  int64_t change(const char* sql) {
    ok(d.StatementSetSqlQuery(&statement, sql, &error));
    int64_t changed = 0;
    ok(d.StatementExecuteQuery(&statement, nullptr, &changed, &error));
    return changed;
  }
  void refused(const char* sql, const char* said) {
    ok(d.StatementSetSqlQuery(&statement, sql, &error));
    fails(d.StatementExecuteQuery(&statement, nullptr, nullptr, &error),
          ADBC_STATUS_INVALID_ARGUMENT, said);
  }
  // A table of integers `a` and texts `b`, whose records count what is released.
  void make_rows(std::vector<int64_t> a, std::vector<std::string> b) {
    struct Behind {
      std::vector<int64_t> numbers;
      std::vector<int32_t> offsets{0};
      std::string characters;
      const void *number_buffers[2], *text_buffers[3], *own[1] = {nullptr};
      ArrowArray children[2]{};
      ArrowArray* pointers[2];
    };
    auto* k = new Behind{.numbers = std::move(a)};
    for (const std::string& text : b) {
      k->characters += text;
      k->offsets.push_back(static_cast<int32_t>(k->characters.size()));
    }
    const auto length = static_cast<int64_t>(b.size());
    k->number_buffers[0] = k->text_buffers[0] = nullptr;
    k->number_buffers[1] = k->numbers.data();
    k->text_buffers[1] = k->offsets.data();
    k->text_buffers[2] = k->characters.data();
    k->children[0] = {.length = length, .n_buffers = 2, .buffers = k->number_buffers};
    k->children[1] = {.length = length, .n_buffers = 3, .buffers = k->text_buffers};
    for (int i : {0, 1}) {
      k->children[i].release = [](ArrowArray* x) { x->release = nullptr; };
      k->pointers[i] = &k->children[i];
    }
    array = {.length = length, .n_buffers = 1, .n_children = 2, .buffers = k->own,
             .children = k->pointers, .private_data = k};
    array.release = [](ArrowArray* x) {
      delete static_cast<Behind*>(x->private_data);
      x->release = nullptr;
      --held;
    };
    ++held;
    static const auto keep = [](ArrowSchema* x) { x->release = nullptr; };
    fields[0] = {.format = "l", .name = "a", .release = keep};
    fields[1] = {.format = "u", .name = "b", .release = keep};
    schema = {.format = "+s", .name = "", .n_children = 2, .children = pointers, .release = keep};
  }
  void ingest(const char* table, const char* mode) {
    ok(d.StatementSetOption(&statement, "adbc.ingest.target_table", table, &error));
    ok(d.StatementSetOption(&statement, "adbc.ingest.mode", mode, &error));
    ok(d.StatementBind(&statement, &array, &schema, &error));
    EXPECT_EQ(array.release, nullptr) << "the driver has taken it";
  }

  AdbcDriver d{};
  AdbcError error{};
  AdbcDatabase database{};
  AdbcConnection connection{};
  AdbcStatement statement{};
  ArrowArray array{};
  ArrowSchema schema{}, fields[2]{};
  ArrowSchema* pointers[2] = {&fields[0], &fields[1]};
  static inline int held = 0;  // arrays that are not released
};

TEST_F(Driver, Statements) {
  EXPECT_EQ(change("CREATE TABLE t AS SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, 'y'"), 2);
  EXPECT_EQ(change("INSERT INTO t VALUES (3, NULL)"), 1);
  EXPECT_EQ(change("CREATE TEMP VIEW v AS SELECT a + 1 AS c FROM t"), -1);
  EXPECT_THAT(query("SELECT * FROM t ORDER BY a"), ElementsAre("1|x", "2|y", "3|NULL"));
  EXPECT_THAT(query("SELECT max(c) FROM v"), ElementsAre("4"));
  EXPECT_THAT(query("SHOW TABLES"), ElementsAre("t|2|3", "v||"));
  EXPECT_THAT(query("DESCRIBE v"), ElementsAre("c|INTEGER|"));
  EXPECT_THAT(query("EXPLAIN SELECT 1 AS x"), testing::Contains(HasSubstr("module query")));
  EXPECT_THAT(query("EXPLAIN ANALYZE SELECT a FROM t"), testing::Contains(HasSubstr("-- run")));
  EXPECT_THAT(query("SELECT 1; SELECT 2"), ElementsAre("2")) << "of several, the last";
  const std::string file = testing::TempDir() + "rndn_adbc.parquet";
  change(("COPY t TO '" + file + "'").c_str());
  EXPECT_THAT(query(("SELECT count(b) FROM '" + file + "'").c_str()), ElementsAre("2"));
  EXPECT_EQ(change("DROP VIEW v; DROP TABLE t"), -1);
  EXPECT_THAT(query("SHOW TABLES"), ElementsAre(HasSubstr("rndn_adbc.parquet")));
  for (const char* other : {"UPDATE t SET a = 1", "DELETE FROM t", "BEGIN", "COMMIT", "SET x = 1",
                            "ALTER TABLE t ADD COLUMN z INT", "ATTACH 'x'"})
    refused(other, "is not supported");
  std::filesystem::remove(file);
}

TEST_F(Driver, DiagnosticsComeWithTheirCaret) {
  refused("SELECT prize FROM (SELECT 1 AS price)",
          "<sql>:1:8: error: there is no column `prize`");
  ok(d.StatementSetSqlQuery(&statement, "SELECT prize", &error));
  EXPECT_EQ(d.StatementExecuteQuery(&statement, nullptr, nullptr, &error),
            ADBC_STATUS_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("\n         ^~~~~"));
  EXPECT_EQ(std::string(error.sqlstate, 5), "42000");
  EXPECT_EQ(error.vendor_code, 1);
  // An error that is not released is released by the next.
  refused("SELECT 1 +", "syntax");
  // Nobody has to hear of it.
  EXPECT_EQ(d.StatementExecuteQuery(&statement, nullptr, nullptr, nullptr),
            ADBC_STATUS_INVALID_ARGUMENT);
}

TEST_F(Driver, Parameters) {
  ok(d.StatementSetSqlQuery(&statement, "SELECT ? + 1 AS n, $2 AS b", &error));
  ArrowSchema wanted{};
  ok(d.StatementGetParameterSchema(&statement, &wanted, &error));
  EXPECT_EQ(wanted.n_children, 2);
  EXPECT_STREQ(wanted.children[1]->format, "n");
  wanted.release(&wanted);
  ok(d.StatementPrepare(&statement, &error));
  make_rows({1, INT64_MAX - 1, -5}, {"it's", "", "; DROP TABLE t"});
  ok(d.StatementBind(&statement, &array, &schema, &error));
  ArrowArrayStream stream{};
  ok(d.StatementExecuteQuery(&statement, &stream, nullptr, &error));
  EXPECT_THAT(rows(stream), ElementsAre("2|it's", "9223372036854775807|", "-4|; DROP TABLE t"));
  EXPECT_EQ(held, 0);
  ok(d.StatementExecuteSchema(&statement, &wanted, &error));
  EXPECT_STREQ(wanted.children[0]->name, "n");
  wanted.release(&wanted);
  // Without values, and with too many.
  fails(d.StatementExecuteQuery(&statement, &stream, nullptr, &error),
        ADBC_STATUS_INVALID_ARGUMENT, "a parameter has no value here");
  ok(d.StatementSetSqlQuery(&statement, "SELECT ?", &error));
  make_rows({1}, {""});
  ok(d.StatementBind(&statement, &array, &schema, &error));
  fails(d.StatementExecuteQuery(&statement, &stream, nullptr, &error),
        ADBC_STATUS_INVALID_ARGUMENT, "has 1 parameter, and 2 values are given");
  EXPECT_EQ(held, 0);
}

// No row is bound: no row is answered, and the columns are known all the same.
TEST_F(Driver, RowsThatAreNone) {
  ok(d.StatementSetSqlQuery(&statement, "SELECT ? + 1 AS n, ? AS b", &error));
  make_rows({}, {});
  ok(d.StatementBind(&statement, &array, &schema, &error));
  ArrowArrayStream stream{};
  ok(d.StatementExecuteQuery(&statement, &stream, nullptr, &error));
  ArrowSchema is{};
  ASSERT_EQ(stream.get_schema(&stream, &is), 0);
  ASSERT_EQ(is.n_children, 2);
  EXPECT_STREQ(is.children[0]->name, "n");
  EXPECT_STREQ(is.children[0]->format, "l");
  EXPECT_STREQ(is.children[1]->format, "u");
  is.release(&is);
  EXPECT_THAT(rows(stream), ElementsAre());
  change("CREATE TABLE t AS SELECT 1 AS a");
  ok(d.StatementSetSqlQuery(&statement, "CREATE TABLE u AS SELECT ? AS a", &error));
  make_rows({}, {});
  ok(d.StatementBind(&statement, &array, &schema, &error));
  fails(d.StatementExecuteQuery(&statement, nullptr, nullptr, &error),
        ADBC_STATUS_INVALID_ARGUMENT, "has 1 parameter, and 2 values are given");
  EXPECT_EQ(held, 0);
}

TEST_F(Driver, InsertsOfParametersAreOneRun) {
  change("CREATE TABLE t AS SELECT 1 AS a, 'x' AS b");
  ok(d.StatementSetSqlQuery(&statement, "INSERT INTO t (a, b) VALUES (?, ?)", &error));
  make_rows({2, 3}, {"y", "z"});
  ok(d.StatementBind(&statement, &array, &schema, &error));
  int64_t changed = 0;
  ok(d.StatementExecuteQuery(&statement, nullptr, &changed, &error));
  EXPECT_EQ(changed, 2);
  EXPECT_THAT(query("SELECT * FROM t ORDER BY a"), ElementsAre("1|x", "2|y", "3|z"));
  EXPECT_THAT(query("SHOW TABLES"), ElementsAre("t|2|3")) << "what was bound is no table";
}

TEST_F(Driver, Ingestion) {
  const auto run = [&] {
    int64_t changed = 0;
    ok(d.StatementExecuteQuery(&statement, nullptr, &changed, &error));
    return changed;
  };
  make_rows({1, 2}, {"x", "y"});
  ingest("t", "adbc.ingest.mode.create");
  EXPECT_EQ(run(), 2);
  make_rows({9}, {"z"});
  ingest("t", "adbc.ingest.mode.create");
  fails(d.StatementExecuteQuery(&statement, nullptr, nullptr, &error), ADBC_STATUS_ALREADY_EXISTS,
        "there is a table `t` already");
  make_rows({3}, {"z"});
  ingest("t", "adbc.ingest.mode.append");
  EXPECT_EQ(run(), 1);
  make_rows({4}, {"w"});
  ingest("T", "adbc.ingest.mode.create_append");
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(query("SELECT * FROM t ORDER BY a"), ElementsAre("1|x", "2|y", "3|z", "4|w"));
  make_rows({7}, {"new"});
  ingest("t", "adbc.ingest.mode.replace");
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(query("SELECT * FROM t"), ElementsAre("7|new"));
  make_rows({1}, {""});
  ingest("other", "adbc.ingest.mode.append");
  fails(d.StatementExecuteQuery(&statement, nullptr, nullptr, &error), ADBC_STATUS_NOT_FOUND,
        "there is no table `other`");
  fails(d.StatementSetOption(&statement, "adbc.ingest.mode", "x", &error),
        ADBC_STATUS_INVALID_ARGUMENT, "no mode of ingestion");
  // Records that are wrong are said, and released.
  make_rows({1, 2}, {"a", "b"});
  array.children[0]->length = -1;
  ingest("u", "adbc.ingest.mode.create");
  fails(d.StatementExecuteQuery(&statement, nullptr, nullptr, &error),
        ADBC_STATUS_INVALID_ARGUMENT, "has a length of -1");
  change("DROP TABLE t");
  EXPECT_EQ(held, 0);
}

TEST_F(Driver, TheCatalog) {
  change("CREATE TABLE t AS SELECT 1 AS a, 2.5 AS d; CREATE VIEW v AS SELECT a FROM t");
  const auto objects = [&](int depth, const char* table, const char** types, const char* column,
                           const char* catalog = nullptr) {
    ArrowArrayStream stream{};
    ok(d.ConnectionGetObjects(&connection, depth, catalog, nullptr, table, types, column, &stream,
                              &error));
    return rows(stream);
  };
  EXPECT_THAT(objects(1, nullptr, nullptr, nullptr), ElementsAre("rndn|NULL"));
  EXPECT_THAT(objects(2, nullptr, nullptr, nullptr), ElementsAre("rndn|[{main}]"));
  EXPECT_THAT(objects(3, nullptr, nullptr, nullptr),
              ElementsAre("rndn|[{main [{t TABLE}, {v VIEW}]}]"));
  EXPECT_THAT(objects(0, nullptr, nullptr, nullptr),
              ElementsAre("rndn|[{main [{t TABLE [{a 1 INTEGER}, {d 2 DECIMAL(2,1) 2 1}] []}, "
                          "{v VIEW [{a 1 INTEGER}] []}]}]"));
  const char* views[] = {"VIEW", nullptr};
  EXPECT_THAT(objects(3, nullptr, views, nullptr), ElementsAre("rndn|[{main [{v VIEW}]}]"));
  EXPECT_THAT(objects(0, "%t", nullptr, "_"),
              ElementsAre("rndn|[{main [{t TABLE [{a 1 INTEGER}, {d 2 DECIMAL(2,1) 2 1}] []}]}]"));
  EXPECT_THAT(objects(0, "t", nullptr, "d%"),
              ElementsAre("rndn|[{main [{t TABLE [{d 2 DECIMAL(2,1) 2 1}] []}]}]"));
  EXPECT_THAT(objects(3, "x%", nullptr, nullptr), ElementsAre("rndn|[{main []}]"));
  EXPECT_THAT(objects(3, nullptr, nullptr, nullptr, "other"), ElementsAre());
  ArrowSchema columns{};
  for (const char* name : {"t", "v"}) {
    ok(d.ConnectionGetTableSchema(&connection, nullptr, "main", name, &columns, &error));
    EXPECT_STREQ(columns.children[0]->format, "i") << name;
    columns.release(&columns);
  }
  fails(d.ConnectionGetTableSchema(&connection, nullptr, nullptr, "x", &columns, &error),
        ADBC_STATUS_NOT_FOUND, "there is no table `x`");
  ArrowArrayStream stream{};
  ok(d.ConnectionGetTableTypes(&connection, &stream, &error));
  EXPECT_THAT(rows(stream), ElementsAre("TABLE", "VIEW"));
  const uint32_t codes[] = {0, 3, 103, 77};
  ok(d.ConnectionGetInfo(&connection, codes, 4, &stream, &error));
  EXPECT_THAT(rows(stream), ElementsAre("0|rndn", "3|1", "103|1001000"));
  ok(d.ConnectionGetInfo(&connection, nullptr, 0, &stream, &error));
  EXPECT_EQ(rows(stream).size(), 7u);
}

// Patterns are of characters, and a view whose table is gone does not hide what is there.
TEST_F(Driver, TheCatalogOfOddNamesAndStaleViews) {
  change("CREATE TABLE \"é1\" AS SELECT 1 AS \"naïve\", 2 AS \"näher\"");
  change("CREATE TABLE gone AS SELECT 1 AS a; CREATE VIEW v AS SELECT a FROM gone; DROP TABLE gone");
  const auto objects = [&](int depth, const char* table, const char* column) {
    ArrowArrayStream stream{};
    ok(d.ConnectionGetObjects(&connection, depth, nullptr, nullptr, table, nullptr, column,
                              &stream, &error));
    return rows(stream);
  };
  EXPECT_THAT(objects(3, "_1", nullptr), ElementsAre("rndn|[{main [{é1 TABLE}]}]"));
  EXPECT_THAT(objects(3, "__1", nullptr), ElementsAre("rndn|[{main []}]"));
  EXPECT_THAT(objects(3, "%_1", nullptr), ElementsAre("rndn|[{main [{é1 TABLE}]}]"));
  EXPECT_THAT(objects(3, "%__1", nullptr), ElementsAre("rndn|[{main []}]"));
  EXPECT_THAT(objects(0, "é%", "n_%ve"),
              ElementsAre("rndn|[{main [{é1 TABLE [{naïve 1 INTEGER}] []}]}]"));
  EXPECT_THAT(objects(0, nullptr, nullptr),
              ElementsAre("rndn|[{main [{é1 TABLE [{naïve 1 INTEGER}, {näher 2 INTEGER}] []}, "
                          "{v VIEW []}]}]"))
      << "columns that are not known, and no constraints";
}

TEST_F(Driver, Statistics) {
  change("CREATE TABLE t AS SELECT * FROM (VALUES (3, 'x'), (7, NULL), (3, 'y')) AS q(a, b)");
  ArrowArrayStream stream{};
  ok(d.ConnectionGetStatistics(&connection, nullptr, nullptr, "t", 1, &stream, &error));
  EXPECT_THAT(rows(stream), ElementsAre("rndn|[{main [{t 6 3 0}]}]")) << "no column is loaded";
  ok(d.ConnectionGetStatistics(&connection, nullptr, nullptr, nullptr, 0, &stream, &error));
  EXPECT_THAT(rows(stream),
              ElementsAre("rndn|[{main [{t 6 3 0}, {t a 5 0 0}, {t a 1 3.000000 1}, {t a 4 3 0}, "
                          "{t a 3 7 0}, {t b 5 1 0}, {t b 1 3.000000 1}]}]"));
  ok(d.ConnectionGetStatisticNames(&connection, &stream, &error));
  EXPECT_THAT(rows(stream), ElementsAre());
}

TEST_F(Driver, OptionsAndTransactions) {
  fails(d.ConnectionSetOption(&connection, "adbc.connection.autocommit", "false", &error),
        ADBC_STATUS_NOT_IMPLEMENTED, "transactions");
  ok(d.ConnectionSetOption(&connection, "adbc.connection.autocommit", "true", &error));
  fails(d.ConnectionCommit(&connection, &error), ADBC_STATUS_INVALID_STATE, "no transaction");
  fails(d.ConnectionRollback(&connection, &error), ADBC_STATUS_INVALID_STATE, "no transaction");
  fails(d.ConnectionSetOption(&connection, "colour", "red", &error), ADBC_STATUS_NOT_IMPLEMENTED,
        "option `colour` of a connection");
  fails(d.DatabaseSetOption(&database, "uri", "x", &error), ADBC_STATUS_INVALID_STATE,
        "the database is open");
  char value[16];
  size_t length = sizeof value;
  ok(d.ConnectionGetOption(&connection, "adbc.connection.catalog", value, &length, &error));
  EXPECT_STREQ(value, "rndn");
  EXPECT_EQ(length, 5u);
  length = 2;
  value[0] = '-';
  ok(d.ConnectionGetOption(&connection, "adbc.connection.catalog", value, &length, &error));
  EXPECT_EQ(length, 5u);
  EXPECT_EQ(value[0], '-') << "what does not fit is not written";
  fails(d.StatementGetOption(&statement, "x", value, &length, &error), ADBC_STATUS_NOT_FOUND,
        "option `x` is not set");
  ok(d.StatementSetOptionDouble(&statement, "rndn.timeout", 2.5, &error));
  double seconds = 0;
  ok(d.StatementGetOptionDouble(&statement, "rndn.timeout", &seconds, &error));
  EXPECT_EQ(seconds, 2.5);
  // Whole numbers are read as such, and nothing else as one.
  const int64_t large = (int64_t{1} << 62) + 1;
  int64_t whole = 0;
  ok(d.StatementSetOptionInt(&statement, "rndn.max_memory", large, &error));
  ok(d.StatementGetOptionInt(&statement, "rndn.max_memory", &whole, &error));
  EXPECT_EQ(whole, large);
  const uint8_t bytes[] = {'1', 'e', '3', '0', '0'};
  ok(d.StatementSetOptionBytes(&statement, "rndn.timeout", bytes, sizeof bytes, &error));
  fails(d.StatementGetOptionInt(&statement, "rndn.timeout", &whole, &error),
        ADBC_STATUS_INVALID_ARGUMENT, "which is no such number");
  fails(d.StatementSetOptionBytes(&statement, "rndn.timeout", nullptr, 3, &error),
        ADBC_STATUS_INVALID_ARGUMENT, "null pointer");
  ok(d.StatementSetSqlQuery(&statement, "SELECT 1", &error));
  ok(d.StatementExecuteQuery(&statement, nullptr, nullptr, &error));
  fails(d.StatementSetOption(&statement, "rndn.timeout", "soon", &error),
        ADBC_STATUS_INVALID_ARGUMENT, "number of seconds");
  ok(d.StatementSetOption(&statement, "rndn.timeout", "0.000001", &error));
  ok(d.StatementSetSqlQuery(&statement, "SELECT 1", &error));
  fails(d.StatementExecuteQuery(&statement, nullptr, nullptr, &error), ADBC_STATUS_TIMEOUT,
        "rndn.timeout");
  fails(d.StatementSetSubstraitPlan(&statement, nullptr, 0, &error), ADBC_STATUS_NOT_IMPLEMENTED,
        "Substrait");
  fails(d.StatementExecutePartitions(&statement, nullptr, nullptr, nullptr, &error),
        ADBC_STATUS_NOT_IMPLEMENTED, "partitions");
}

TEST_F(Driver, WhatCallersDoWrong) {
  AdbcStatement other{};
  fails(d.StatementExecuteQuery(&other, nullptr, nullptr, &error), ADBC_STATUS_INVALID_STATE,
        "the statement is not there");
  fails(d.StatementExecuteQuery(nullptr, nullptr, nullptr, &error), ADBC_STATUS_INVALID_ARGUMENT,
        "null pointer");
  fails(d.StatementNew(&connection, &statement, &error), ADBC_STATUS_INVALID_STATE,
        "made already");
  fails(d.StatementExecuteQuery(&statement, nullptr, nullptr, &error), ADBC_STATUS_INVALID_STATE,
        "has no query");
  fails(d.StatementSetSqlQuery(&statement, nullptr, &error), ADBC_STATUS_INVALID_ARGUMENT,
        "null pointer");
  fails(d.StatementBindStream(&statement, nullptr, &error), ADBC_STATUS_INVALID_ARGUMENT,
        "null pointer");
  ArrowArrayStream gone{};
  fails(d.StatementBindStream(&statement, &gone, &error), ADBC_STATUS_INVALID_ARGUMENT,
        "the stream is released");
  ok(d.StatementSetOption(&statement, "adbc.ingest.target_table", "t", &error));
  fails(d.StatementExecuteQuery(&statement, nullptr, nullptr, &error), ADBC_STATUS_INVALID_STATE,
        "no rows to ingest");
  fails(d.StatementCancel(&statement, &error), ADBC_STATUS_INVALID_STATE, "does not run");
  fails(d.ConnectionCancel(&connection, &error), ADBC_STATUS_INVALID_STATE, "nothing runs");
  AdbcDatabase closed{};
  AdbcConnection early{};
  fails(d.DatabaseInit(&closed, &error), ADBC_STATUS_INVALID_STATE, "not there");
  ok(d.DatabaseNew(&closed, &error));
  ok(d.ConnectionNew(&early, &error));
  fails(d.ConnectionInit(&early, &closed, &error), ADBC_STATUS_INVALID_STATE, "not open");
  fails(d.StatementNew(&early, &other, &error), ADBC_STATUS_INVALID_STATE, "not open");
  fails(d.DatabaseSetOption(&closed, "colour", "red", &error), ADBC_STATUS_NOT_IMPLEMENTED,
        "option `colour`");
  ok(d.DatabaseSetOption(&closed, "rndn.device", "toaster", &error));
  fails(d.DatabaseInit(&closed, &error), ADBC_STATUS_INVALID_ARGUMENT, "toaster");
  ok(d.ConnectionRelease(&early, &error));
  fails(d.ConnectionRelease(&early, &error), ADBC_STATUS_INVALID_STATE, "is released");
  ok(d.DatabaseRelease(&closed, &error));
  fails(d.DatabaseRelease(&closed, &error), ADBC_STATUS_INVALID_STATE, "is released");
}

TEST_F(Driver, OrdersOfReleaseAndManyStatements) {
  // The database outlives its handle for as long as a statement needs it.
  ok(d.DatabaseRelease(&database, &error));
  ok(d.ConnectionRelease(&connection, &error));
  EXPECT_THAT(query("SELECT 5"), ElementsAre("5"));
  ok(d.StatementRelease(&statement, &error));

  ok(d.DatabaseNew(&database, &error));
  ok(d.DatabaseSetOption(&database, "rndn.device", "cpu", &error));
  ok(d.DatabaseInit(&database, &error));
  ok(d.ConnectionNew(&connection, &error));
  ok(d.ConnectionInit(&connection, &database, &error));
  std::vector<AdbcStatement> many(100);
  for (AdbcStatement& s : many) {
    ok(d.StatementNew(&connection, &s, &error));
    ok(d.StatementSetSqlQuery(&s, "SELECT 5 AS x", &error));
  }
  for (AdbcStatement& s : many) {
    ArrowArrayStream stream{};
    ok(d.StatementExecuteQuery(&s, &stream, nullptr, &error));
    EXPECT_THAT(rows(stream), ElementsAre("5"));
    ok(d.StatementRelease(&s, &error));
  }
}

TEST_F(Driver, ConnectionsAndThreadsAreServedOneAfterTheOther) {
  change("CREATE TABLE t AS SELECT 1 AS a");
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      AdbcConnection own{};
      AdbcStatement s{};
      ArrowArrayStream stream{};
      bool is_good = !d.ConnectionNew(&own, nullptr) && !d.ConnectionInit(&own, &database, nullptr) &&
                     !d.StatementNew(&own, &s, nullptr) &&
                     !d.StatementSetSqlQuery(&s, "SELECT a + 1 FROM t", nullptr);
      for (int k = 0; k < 10 && is_good; ++k) {
        is_good = !d.StatementExecuteQuery(&s, &stream, nullptr, nullptr);
        if (is_good) stream.release(&stream);
      }
      right += is_good && !d.StatementRelease(&s, nullptr) && !d.ConnectionRelease(&own, nullptr);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 4);
}

// Rows whose maker asks the same database for them.
TEST_F(Driver, StreamsThatAreBoundMayUseTheDatabase) {
  change("CREATE TABLE t AS SELECT * FROM range(3) AS r(a)");
  struct Maker {
    AdbcDriver* driver;
    AdbcConnection* connection;
    AdbcStatement statement{};
    ArrowArrayStream stream{};
    // The rows, at the last moment.
    ArrowArrayStream* rows() {
      if (stream.release) return &stream;
      EXPECT_EQ(driver->StatementNew(connection, &statement, nullptr), ADBC_STATUS_OK);
      EXPECT_EQ(driver->StatementSetSqlQuery(&statement, "SELECT a + 1 AS a FROM t", nullptr), ADBC_STATUS_OK);
      EXPECT_EQ(driver->StatementExecuteQuery(&statement, &stream, nullptr, nullptr), ADBC_STATUS_OK);
      EXPECT_EQ(driver->StatementRelease(&statement, nullptr), ADBC_STATUS_OK);
      return &stream;
    }
  } maker{&d, &connection};
  ArrowArrayStream bound{};
  bound.private_data = &maker;
  bound.get_schema = [](ArrowArrayStream* s, ArrowSchema* out) {
    ArrowArrayStream* from = static_cast<Maker*>(s->private_data)->rows();
    return from->get_schema(from, out);
  };
  bound.get_next = [](ArrowArrayStream* s, ArrowArray* out) {
    ArrowArrayStream* from = static_cast<Maker*>(s->private_data)->rows();
    return from->get_next(from, out);
  };
  bound.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
  bound.release = [](ArrowArrayStream* s) {
    ArrowArrayStream* from = static_cast<Maker*>(s->private_data)->rows();
    from->release(from);
    s->release = nullptr;
  };
  AdbcStatement into{};
  ok(d.StatementNew(&connection, &into, &error));
  ok(d.StatementSetOption(&into, "adbc.ingest.target_table", "t", &error));
  ok(d.StatementSetOption(&into, "adbc.ingest.mode", "adbc.ingest.mode.append", &error));
  ok(d.StatementBindStream(&into, &bound, &error));
  ok(d.StatementExecuteQuery(&into, nullptr, nullptr, &error));
  ok(d.StatementRelease(&into, &error));
  EXPECT_THAT(query("SELECT CAST(sum(a) AS BIGINT) FROM t"), ElementsAre("9"));
}

// Statements of one connection, on the simulator, which others cancel while they run: each answers once first, and they go on until one
// was cancelled.
TEST_F(Driver, ThreadsOfOneConnectionRunAndCancel) {
  ok(d.StatementRelease(&statement, &error));
  ok(d.ConnectionRelease(&connection, &error));
  ok(d.DatabaseRelease(&database, &error));
  ok(d.DatabaseNew(&database, &error));
  ok(d.DatabaseSetOption(&database, "rndn.device", "sim", &error));
  ok(d.DatabaseInit(&database, &error));
  ok(d.ConnectionNew(&connection, &error));
  ok(d.ConnectionInit(&connection, &database, &error));
  ok(d.StatementNew(&connection, &statement, &error));
  change("CREATE TABLE t AS SELECT i AS a, i % 7 AS g FROM range(2000) AS r(i)");
  std::atomic<int> wrong{0}, cancelled{0};
  std::atomic<size_t> answered{0};
  std::atomic<bool> is_done{false};
  std::array<AdbcStatement, 4> all{};
  for (AdbcStatement& s : all) ok(d.StatementNew(&connection, &s, &error));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < all.size(); ++i)
    threads.emplace_back([&, i] {
      AdbcStatement* s = &all[i];
      const std::string sql = "SELECT g, CAST(sum(a + " + std::to_string(i) + ") AS BIGINT) AS s FROM t GROUP BY g ORDER BY g";
      for (int k = 0; k < 4 || (cancelled == 0 && k < 1000); ++k) {
        ArrowArrayStream stream{};
        if (d.StatementSetSqlQuery(s, sql.c_str(), nullptr) != ADBC_STATUS_OK) ++wrong;
        const AdbcStatusCode status = d.StatementExecuteQuery(s, &stream, nullptr, nullptr);
        cancelled += status == ADBC_STATUS_CANCELLED;
        if (status == ADBC_STATUS_CANCELLED) continue;
        if (status != ADBC_STATUS_OK) {
          ++wrong;
          continue;
        }
        const std::vector<std::string> got = rows(stream);
        const size_t count = 286, sum = 7 * 285 * 286 / 2;  // of 0, 7, .., 1995
        wrong += got.size() != 7 || got[0] != "0|" + std::to_string(sum + count * i);
        ++answered;
      }
    });
  std::thread killer([&] {
    while (answered < all.size() && !is_done) std::this_thread::yield();
    for (size_t k = 0; !is_done; ++k)
      if (d.StatementCancel(&all[k % all.size()], nullptr) == ADBC_STATUS_OK)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      else
        std::this_thread::yield();
  });
  for (std::thread& t : threads) t.join();
  is_done = true;
  killer.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(answered, all.size());
  EXPECT_GE(cancelled, 1);
  EXPECT_THAT(query("SELECT count(*) FROM t"), ElementsAre("2000"));
  for (AdbcStatement& s : all) ok(d.StatementRelease(&s, &error));
}

TEST_F(Driver, StatementsThatRunAreCancelled) {
  change("CREATE TABLE t AS SELECT * FROM range(3000) AS r(a)");
  ok(d.StatementSetSqlQuery(
      &statement, "SELECT count(*) FROM t x, t y WHERE x.a * y.a % 7 = x.a % 5", &error));
  std::atomic<bool> is_done{false};
  std::thread killer([&] {
    while (!is_done && d.StatementCancel(&statement, nullptr) != ADBC_STATUS_OK)
      std::this_thread::yield();
  });
  const AdbcStatusCode status = d.StatementExecuteQuery(&statement, nullptr, nullptr, &error);
  is_done = true;
  killer.join();
  fails(status, ADBC_STATUS_CANCELLED, "");
  EXPECT_THAT(query("SELECT count(*) FROM t"), ElementsAre("3000")) << "the next one runs";
}

TEST(DriverVersions, TheRecordOfTheOldestIsShorter) {
  AdbcDriver d{};
  AdbcError error{};
  const auto mark = reinterpret_cast<int (*)(const AdbcError*)>(1);
  d.ErrorGetDetailCount = mark;
  EXPECT_EQ(AdbcDriverRndnInit(ADBC_VERSION_1_0_0, &d, &error), ADBC_STATUS_OK);
  EXPECT_EQ(d.ErrorGetDetailCount, mark) << "not there in 1.0";
  EXPECT_NE(d.StatementExecuteQuery, nullptr);
  EXPECT_EQ(AdbcDriverInit(7, &d, &error), ADBC_STATUS_NOT_IMPLEMENTED);
  error.release(&error);
  EXPECT_EQ(AdbcDriverInit(ADBC_VERSION_1_1_0, nullptr, &error), ADBC_STATUS_INVALID_ARGUMENT);
  error.release(&error);
  EXPECT_EQ(offsetof(AdbcDriver, ErrorGetDetailCount), 29 * sizeof(void*));
}

}  // namespace
