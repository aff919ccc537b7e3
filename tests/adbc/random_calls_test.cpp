// Random calls of the driver (random_calls.h), and a database beside them that goes on to answer
// right.
#include <filesystem>

#include "tests/adbc/random_calls.h"
#include "tests/support/random_seeds.h"

extern "C" AdbcDriverInitFunc AdbcDriverInit;

namespace {

class RandomCalls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(RNDN_BIN_DIR "/../share/duckdb/libduckdb-planner.so") &&
        !std::filesystem::exists(RNDN_BIN_DIR "/../../share/duckdb/libduckdb-planner.so") &&
        !std::getenv("RNDN_DUCKDB"))
      GTEST_SKIP() << "skipped: the planner of SQL is not installed (tools/sql-planner does that)";
    ok(AdbcDriverInit(ADBC_VERSION_1_1_0, &d_, &error_));
    ok(d_.DatabaseNew(&database_, &error_));
    ok(d_.DatabaseSetOption(&database_, "rndn.device", "cpu", &error_));
    ok(d_.DatabaseInit(&database_, &error_));
    ok(d_.ConnectionNew(&connection_, &error_));
    ok(d_.ConnectionInit(&connection_, &database_, &error_));
    ok(d_.StatementNew(&connection_, &statement_, &error_));
  }
  void TearDown() override {
    if (!statement_.private_data) return;
    ok(d_.StatementRelease(&statement_, &error_));
    ok(d_.ConnectionRelease(&connection_, &error_));
    ok(d_.DatabaseRelease(&database_, &error_));
  }
  void ok(AdbcStatusCode status) {
    EXPECT_EQ(status, ADBC_STATUS_OK) << (error_.message ? error_.message : "");
  }
  int64_t answer(const char* sql) {
    ok(d_.StatementSetSqlQuery(&statement_, sql, &error_));
    ArrowArrayStream stream{};
    ok(d_.StatementExecuteQuery(&statement_, &stream, nullptr, &error_));
    ArrowArray array{};
    if (!stream.release || stream.get_next(&stream, &array) || !array.release) return -1;
    const int64_t value =
        array.length == 1 ? static_cast<const int64_t*>(array.children[0]->buffers[1])[0] : -1;
    array.release(&array);
    stream.release(&stream);
    return value;
  }

  AdbcDriver d_{};
  AdbcError error_{};
  AdbcDatabase database_{};
  AdbcConnection connection_{};
  AdbcStatement statement_{};
};

TEST_F(RandomCalls, HaveAnAnswerOrAnError) {
  const unsigned seeds = rndn::testing::random_seeds(6);
  ok(d_.StatementSetSqlQuery(&statement_,
                             "CREATE TABLE kept AS SELECT x AS a FROM range(50) AS q(x)", &error_));
  ok(d_.StatementExecuteQuery(&statement_, nullptr, nullptr, &error_));
  for (unsigned seed = 0; seed < seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    constexpr int steps = 200;
    rndn::testing::Choices random(seed);
    EXPECT_GT(rndn::testing::Calls(d_, random).run(steps), steps / 8);
    EXPECT_EQ(answer("SELECT CAST(sum(a) AS BIGINT) AS s FROM kept"), 1225);
  }
}

}  // namespace
