// Statements on a device on which one call fails, each in turn: SQL over text and Parquet files
// that are read for the first time, lists, columns in bits, work on bytes of texts, windows, tables
// that statements make, data that do not fit on the device. Columns come in a stream of copies.
// Each ends with that error, or does without the call; the next run is right; the session gives
// everything back. So do runs that are cancelled. $RNDN_EVERY_FAULT: every call, and not ever
// later ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "runtime/data/source.h"
#include "runtime/session/session.h"
#include "runtime/simulator/simulator_device.h"
#include "runtime/simulator/streams.h"
#include "tests/planner/support.h"
#include "tests/runtime/faulty_device.h"

namespace rndn::runtime {
namespace {

using planner::installed, planner::installed_folder;
using test::FaultyDevice, test::FaultyStreams;
using testing::HasSubstr;
namespace fs = std::filesystem;

struct Row {
  const char* name;
  const char* text;  // statements, of which the last one answers; `$` is the folder
  Encode encode = Encode::automatic;
  uint64_t device_memory = UINT64_MAX;
  uint64_t near = 1;  // calls that fail in the gate: the more the larger
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

const Row rows[] = {
    {"joins_and_groups",
     "SELECT n, sum(x * y) AS s, count(*) AS c FROM t JOIN u ON a = b WHERE k LIKE 'k1%' "
     "GROUP BY n ORDER BY n"},
    {"a_file", "SELECT k, count(*) AS c, max(x) AS m FROM '$p.parquet' GROUP BY k ORDER BY k"},
    {"packed_columns",
     "SELECT a, count(*) AS c, min(x) AS m FROM t WHERE a BETWEEN 20 AND 60 GROUP BY a ORDER BY a",
     Encode::packed},
    {"texts",
     "SELECT upper(w) AS u, length(w) AS l, substr(w, 3, 4) AS p FROM t WHERE w LIKE '%7%' AND w > "
     "'text 1' ORDER BY w LIMIT 20",
     Encode::automatic, UINT64_MAX, 40},
    {"texts_in_order",
     "SELECT u, count(*) AS c FROM (SELECT substr(w, 1, 7) AS u FROM t WHERE w <> 'text 5') AS q "
     "WHERE u > 'text 3' GROUP BY u ORDER BY u DESC LIMIT 30"},
    {"texts_of_two_tables",
     "SELECT w, n FROM t JOIN u ON substr(w, 6, 1) = substr(n, 5, 1) WHERE a < 20 AND length(w) > "
     "8 "
     "ORDER BY w, n LIMIT 40"},
    {"windows",
     "SELECT k, a, row_number() OVER (PARTITION BY k ORDER BY a, x) AS r, sum(x) OVER (PARTITION "
     "BY "
     "k ORDER BY x) AS s FROM t QUALIFY r < 3 ORDER BY k, a, r"},
    {"distinct_and_sets",
     "SELECT a FROM t WHERE x > 100 EXCEPT SELECT b FROM u WHERE y < 3 ORDER BY a"},
    {"nulls_and_outer_joins",
     "SELECT n, avg(x) AS m FROM u LEFT JOIN (SELECT a, x FROM t WHERE a % 3 = 0) AS q ON a = b "
     "GROUP BY n ORDER BY n NULLS FIRST"},
    {"tables_of_statements",
     "CREATE OR REPLACE TABLE made AS SELECT a, x FROM t WHERE a < 9; INSERT INTO made SELECT b, y "
     "FROM u; SELECT count(*) AS n, sum(x) AS s FROM made"},
    {"little_memory", "SELECT k, sum(x) AS s FROM t GROUP BY k ORDER BY k", Encode::plain,
     96 << 10},
    {"lists",
     "module m { import Builtin.*; def main() : table { t:? = @load_table(`t:sym); "
     "a:i64 = check_cast(@column_value(t, `a:sym), i64); x:f64 = check_cast(@column_value(t, "
     "`x:sym), "
     "f64); g:? = @group(a); first:? = @keys(g); rows:? = @values(g); cells:? = "
     "@each_right(@index, x, "
     "rows); sums:? = @each(@sum, cells); most:? = @each(@max, cells); s:? = @raze(sums); m:? = "
     "@raze(most); n:? = @index(a, first); o:? = @order(n, 1:bool); n1:? = @index(n, o); s1:? = "
     "@index(s, o); m1:? = @index(m, o); c:? = @list(n1, s1, m1); r:? = @table((`n,`s,`m):sym, c); "
     "return r; } }"},
};

bool every_fault() { return std::getenv("RNDN_EVERY_FAULT"); }

class SessionFaults : public testing::TestWithParam<Row> {
 protected:
  void SetUp() override {
    REQUIRE_PLANNER();
    folder_ = testing::TempDir() + "rndn_session_faults_" + std::to_string(getpid()) + "/";
    fs::create_directories(folder_ + "data");
    std::ofstream t(folder_ + "data/t.csv"), u(folder_ + "data/u.csv");
    t << "k,a,x,w\n";
    for (int i = 0; i < 1500; ++i)
      t << "k" << i % 37 << "," << i % 90 << "," << i / 4.0 << ",text " << i * 7919 % 100003
        << "\n";
    u << "b,y,n\n";
    for (int i = 0; i < 60; ++i) u << i << "," << i / 8.0 << ",name" << i % 11 << "\n";
    t.close(), u.close();
    cpu_.emplace(source(), *DeviceChoice::start("cpu", "", [](const std::string&) {}), options());
    ASSERT_TRUE(run(*cpu_, "COPY (SELECT k, a, x FROM t) TO '$p.parquet'")) << said_;
    const auto right = run(*cpu_, GetParam().text);
    ASSERT_TRUE(right) << right.error().message << said_;
    right_ = *right;
    ASSERT_GT(right_.size(), 10u);
    auto simulator = open_simulator("sm_86");
    ASSERT_TRUE(simulator);
    simulator_ = *std::move(simulator);
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  std::shared_ptr<data::Source> source() const {
    return *data::open_folder(folder_ + "data",
                              {.progress = false, .note = [](const std::string&) {}});
  }
  SessionOptions options() {
    return {.file_cache = folder_ + "cache",
            .planner = installed(),
            .say = [this](const std::string& text) { said_ += text; }};
  }
  // A session over a device of its own, which it has. With two streams copies go beside the work; a
  // run that is cancelled has one, since the other's work is done where memory is freed.
  std::unique_ptr<Session> open(FaultyDevice*& device, bool two_streams) {
    std::unique_ptr<FaultyDevice> own;
    if (two_streams) {
      streams_ = std::make_unique<StreamsDevice>(*simulator_, StreamOrder{.seed = 5});
      own = std::make_unique<FaultyStreams>(*streams_);
    } else {
      own = std::make_unique<FaultyDevice>(*simulator_);
    }
    device = own.get();
    auto choice = std::make_shared<DeviceChoice>(DeviceChoice::of(std::move(own)));
    EXPECT_TRUE(choice->limit_memory(GetParam().device_memory));
    devices_ = choice;
    return std::make_unique<Session>(source(), choice, options());
  }
  Result<std::string> run(Session& session, std::string text) {
    for (size_t at; (at = text.find('$')) != text.npos;) text.replace(at, 1, folder_);
    said_.clear();
    RunOptions options;
    options.engine.measure_kernels = false;
    options.engine.encode = GetParam().encode;
    std::string csv;
    const auto statements = text.starts_with("module")
                                ? std::vector<NamedSource>{{"m", "m.hir", text}}
                                : split_sql("q", "<q>", text);
    for (const NamedSource& statement : statements) {
      ASSIGN_OR_RETURN(const Session::Outcome outcome, session.run(statement, options));
      ASSIGN_OR_RETURN(csv, print(outcome, Format::csv));
    }
    return csv;
  }

  std::string folder_, said_, right_;
  std::unique_ptr<device::Device> simulator_, streams_;
  std::shared_ptr<DeviceChoice> devices_;
  std::optional<Session> cpu_;
};

TEST_P(SessionFaults, OfOneCall) {
  int errors = 0;
  bool through = false;
  for (uint64_t n = 1; !through; n += every_fault() ? 1 : 1 + n / GetParam().near) {
    SCOPED_TRACE(n);
    FaultyDevice* device = nullptr;
    auto session = open(device, true);
    device->fails_at = n;
    for (int i = 0; i < 4; ++i) {  // of which the last ones run a graph
      const auto got = run(*session, GetParam().text);
      if (got) {
        ASSERT_EQ(*got, right_);
        continue;
      }
      ++errors;
      ASSERT_EQ(got.error().exit_code(), 3) << got.error().message << said_;
      ASSERT_THAT(got.error().message, HasSubstr("injected: "));
      break;
    }
    through = device->calls < n;
    device->fails_at = 0;
    const auto again = run(*session, GetParam().text);
    ASSERT_TRUE(again) << again.error().message << said_;
    ASSERT_EQ(*again, right_);
    session.reset();
    EXPECT_EQ(device->held, 0);
  }
  EXPECT_GT(errors, 3);
}

// What a session has on the device after a statement does not grow by others that are cut short.
TEST_P(SessionFaults, OfRunsThatAreCancelled) {
  FaultyDevice* device = nullptr;
  auto session = open(device, false);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(run(*session, GetParam().text)) << said_;
  const int64_t held = device->held;
  std::mt19937 random(11);
  int ended = 0;
  const int runs = every_fault() ? 12 : 6;
  for (int i = 0; i < runs; ++i) {
    SCOPED_TRACE(i);
    CancelToken token;
    token.cancel_at_check(1 + random() % (i % 2 ? 20 : 400));
    {
      const CancelScope scope(token);
      const auto cut = run(*session, GetParam().text);
      ASSERT_TRUE(cut || cut.error().exit_code() == 130) << cut.error().message << said_;
      ended += !cut;
    }
    for (int k = 0; k < (every_fault() ? 4 : 2); ++k) {
      const auto whole = run(*session, GetParam().text);
      ASSERT_TRUE(whole) << whole.error().message << said_;
      ASSERT_EQ(*whole, right_);
    }
    EXPECT_LE(device->held, held + 2);
  }
  EXPECT_GT(ended, runs / 6);
  session.reset();
  EXPECT_EQ(device->held, 0);
}

INSTANTIATE_TEST_SUITE_P(Statements, SessionFaults, testing::ValuesIn(rows),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rndn::runtime
