// Statements that are cut short: at every check of a run in turn, by time, by memory. Each ends
// with the reason, leaves nothing, and the session's next statement has the right answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/data/source.h"
#include "runtime/session/session.h"
#include "tests/planner/support.h"

namespace rndn::runtime::limits_test {
namespace {

using planner::installed, planner::installed_folder;
using testing::HasSubstr;
namespace fs = std::filesystem;

// Text that is compared, ordered and grouped; a look-up in another table; sums; an order.
constexpr const char* program = R"(module m { import Builtin.*; def main() : table {
  t:? = @load_table(`t:sym);
  k:str = check_cast(@column_value(t, `k:sym), str);
  a:i64 = check_cast(@column_value(t, `a:sym), i64);
  x:f64 = check_cast(@column_value(t, `x:sym), f64);
  u:? = @load_table(`u:sym);
  b:i64 = check_cast(@column_value(u, `b:sym), i64);
  y:f64 = check_cast(@column_value(u, `y:sym), f64);
  n:str = check_cast(@column_value(u, `n:sym), str);
  known:? = @member(a, b);
  short:? = @like(k, "k1%":str);
  m:? = @and(known, short);
  a1:? = @compress(m, a);
  x1:? = @compress(m, x);
  place:? = @index_of(a1, b);
  y1:? = @index(y, place);
  n1:? = @index(n, place);
  z:? = @mul(x1, y1);
  g:? = @group(n1);
  first:? = @keys(g);
  rows:? = @values(g);
  cells:? = @each_right(@index, z, rows);
  sums:? = @each(@sum, cells);
  s:? = @raze(sums);
  name:? = @index(n1, first);
  o:? = @order(name, 0:bool);
  name_o:? = @index(name, o);
  s_o:? = @index(s, o);
  c:? = @list(name_o, s_o);
  r:? = @table((`n,`s):sym, c);
  return r; } })";

class Limits : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "rndn_limits_" + std::to_string(getpid()) + "/";
    fs::create_directories(folder_ + "data");
    std::ofstream t(folder_ + "data/t.csv"), u(folder_ + "data/u.csv");
    t << "k,a,x\n";
    for (int i = 0; i < 3000; ++i) t << "k" << i % 37 << "," << i % 300 << "," << i / 4.0 << "\n";
    u << "b,y,n\n";
    for (int i = 0; i < 200; ++i) u << i << "," << i / 8.0 << ",name" << i % 11 << "\n";
  }
  void TearDown() override { fs::remove_all(folder_); }

  void open(const char* device) {
    auto source =
        data::open_folder(folder_ + "data", {.progress = false, .note = [](const std::string&) {}});
    ASSERT_TRUE(source) << source.error().message;
    auto choice = DeviceChoice::start(device, "", [](const std::string&) {});
    ASSERT_TRUE(choice) << choice.error().message;
    session_.emplace(*source, *std::move(choice),
                     SessionOptions{.file_cache = folder_ + "cache",
                                    .planner = planner::installed(),
                                    .say = [this](const std::string& text) { said_ += text; }});
  }
  static NamedSource hir(const std::string& text) { return {"m", "m.hir", text}; }
  static NamedSource sql(const std::string& text) { return split_sql("q", "<q>", text).at(0); }
  Result<std::string> run(const NamedSource& statement, rndn::Limits limits = {}) {
    said_.clear();
    RunOptions options;
    options.limits = limits;
    options.engine.measure_kernels = false;
    ASSIGN_OR_RETURN(Session::Outcome outcome, session_->run(statement, options));
    return print(outcome, Format::csv);
  }
  // Ends the statement at a check, for ever later ones until it is through.
  void end_everywhere(const char* device, const NamedSource& statement) {
    open(device);
    ASSERT_FALSE(HasFatalFailure());
    const auto right = run(statement);
    ASSERT_TRUE(right) << right.error().message << said_;
    bool through = false;
    int ended = 0;
    for (uint64_t n = 1; !through && n < 100'000'000; n += 1 + n / 8) {
      if (n % 3 == 1) open(device);  // from the beginning, and on what earlier statements have left
      CancelToken token;
      token.cancel_at_check(n);
      {
        const CancelScope scope(token);
        const auto cut = run(statement);
        through = cut.ok();
        if (!cut) {
          ++ended;
          ASSERT_EQ(cut.error().exit_code(), 130)
              << "check " << n << ": " << cut.error().message << said_;
          ASSERT_EQ(cut.error().message, "interrupted") << "check " << n;
          ASSERT_EQ(said_, "") << "check " << n;
        }
      }
      for (int again = 0; again < (n < 10 ? 4 : 1); ++again) {
        const auto whole = run(statement);
        ASSERT_TRUE(whole) << "after check " << n << ": " << whole.error().message << said_;
        ASSERT_EQ(*whole, *right) << "after check " << n;
      }
    }
    EXPECT_TRUE(through);
    EXPECT_GT(ended, 10);
    for (const auto& file : fs::recursive_directory_iterator(folder_))
      EXPECT_THAT(file.path().filename().string(), testing::Not(HasSubstr(".rndn.")))
          << "left behind";
  }

  std::string folder_, said_;
  std::optional<Session> session_;
};

TEST_P(Limits, AProgramEndsAtAnyCheck) { end_everywhere(GetParam(), hir(program)); }

TEST_P(Limits, AQueryEndsAtAnyCheck) {
  REQUIRE_PLANNER();
  end_everywhere(GetParam(), sql("SELECT n, sum(x * y) AS s FROM t JOIN u ON a = b WHERE k LIKE "
                                 "'k1%' GROUP BY n ORDER BY n"));
}

TEST_P(Limits, AQueryOfAFileEndsAtAnyCheck) {
  REQUIRE_PLANNER();
  open("cpu");
  ASSERT_TRUE(run(sql("COPY (SELECT k, a, x FROM t) TO '" + folder_ + "t.parquet'"))) << said_;
  end_everywhere(GetParam(), sql("SELECT k, count(*) AS c FROM '" + folder_ +
                                 "t.parquet' GROUP BY k ORDER BY k"));
}

TEST_P(Limits, ATableIsMadeWholeOrNot) {
  REQUIRE_PLANNER();
  open(GetParam());
  for (uint64_t n = 1, made = 0; made == 0; n += 1 + n / 4) {
    CancelToken token;
    token.cancel_at_check(n);
    {
      const CancelScope scope(token);
      made = run(sql("CREATE TABLE made AS SELECT n, y FROM u WHERE b < 20")).ok();
    }
    const auto rows = run(sql("SELECT count(*) AS n FROM made"));
    if (made) ASSERT_EQ(rows ? *rows : said_, "n\r\n20\r\n") << n;
    if (!made && rows) {  // ended when it was there
      ASSERT_EQ(*rows, "n\r\n20\r\n") << n;
      ASSERT_TRUE(run(sql("DROP TABLE made"))) << said_;
    }
    ASSERT_EQ(*run(sql("SELECT count(*) AS n FROM u")), "n\r\n200\r\n") << n;
  }
}

TEST_P(Limits, TimeIsUp) {
  open(GetParam());
  ASSERT_TRUE(run(hir(program), {.seconds = 100}));
  const auto endless =
      hir("module m { import Builtin.*; def main() : i64 { n:i64 = 0:i64; while (1:bool) { n = "
          "@plus(n, 1:i64); } "
          "return n; } }");
  const auto begin = std::chrono::steady_clock::now();
  const auto cut = run(endless, {.seconds = 0.05});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().exit_code(), 3);
  EXPECT_EQ(cut.error().message, "the time limit of 0.05 s is over: --timeout sets it");
  EXPECT_TRUE(run(hir(program))) << said_;
}

// Within one kernel or builtin, too: the pairs of a product are counted one by one.
TEST_P(Limits, TimeIsUpWithinAStep) {
  open(GetParam());
  const auto slow =
      hir("module m { import Builtin.*; def main() : i64 { a:? = @range(60000:i64); b:? = @mul(a, "
          "2:i64); "
          "x:? = @list(a, a); y:? = @list(b, b); p:? = @join_index(@lt, @gt, x, y); l:? = "
          "@index(p, 0:i64); "
          "n:? = @len(l); return n; } }");
  const auto begin = std::chrono::steady_clock::now();
  const auto cut = run(slow, {.seconds = 0.2});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  ASSERT_FALSE(cut) << *cut;
  EXPECT_EQ(cut.error().exit_code(), 3);
  EXPECT_EQ(cut.error().message, "the time limit of 0.2 s is over: --timeout sets it");
  EXPECT_TRUE(run(hir(program))) << said_;
}

TEST_P(Limits, MemoryIsUp) {
  open(GetParam());
  const auto large =
      hir("module m { import Builtin.*; def main() : i64 { a:? = @range(4000000:i64); b:? = "
          "@reverse(a); return b; } }");
  const auto cut = run(large, {.bytes = 16 << 20});
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().exit_code(), 3);
  EXPECT_THAT(cut.error().message,
              HasSubstr("would be beyond the limit of 16 MiB: --max-memory sets it"));
  const auto fits = run(large, {.bytes = 256 << 20});
  EXPECT_TRUE(fits) << fits.error().message;
  EXPECT_TRUE(run(hir(program), {.bytes = 16 << 20})) << said_;
}

// Texts that a builtin makes many of end the work before they are there: here each is 0.6 MB, and
// all would be a gigabyte.
TEST_P(Limits, MemoryOfTexts) {
  open(GetParam());
  const auto status = [](const std::string& field) {  // KiB
    std::ifstream lines("/proc/self/status");
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(field)) return std::stoul(line.substr(field.size()));
    return 0ul;
  };
  std::string many = "s";
  for (int i = 0; i < 1700; ++i) many += ", s";
  const std::string rows[] = {
      "v:? = @vector(1700:i64, s);",
      "v:? = @index(s, rows);",
      "m:? = @eq(rows, 0:i64); v:? = @select(m, s, s);",
      "l:? = @list(rows); v:? = @text_join(s, 1:bool, l, s);",
      "l:? = @list(" + many + "); v:? = @raze(l);",
  };
  for (const std::string& row : rows) {
    if (std::ofstream reset("/proc/self/clear_refs"); !(reset << 5 << std::flush))
      GTEST_SKIP() << "skipped: this system does not say how much memory was in use at most";
    const uint64_t before = status("VmRSS:");
    const auto cut =
        run(hir("module m { import Builtin.*; def main() : i64 { r:? = @range(100000:i64); s:str = "
                "@str(r); rows:? = @vector(1700:i64, 0:i64); " +
                row + " n:? = @len(v); return n; } }"),
            {.bytes = 32 << 20});
    // The length alone is asked for: a plan may know it.
    EXPECT_TRUE(!cut || GetParam() != std::string("cpu")) << row.substr(0, 60);
    if (!cut)
      EXPECT_THAT(cut.error().message, HasSubstr("--max-memory sets it")) << row.substr(0, 60);
    EXPECT_LT(status("VmHWM:"), before + (300 << 10)) << row.substr(0, 60);
  }
}

// Columns and texts are values of the query that reads them first.
TEST_P(Limits, MemoryOfColumns) {
  open(GetParam());
  const auto cut = run(hir(program), {.bytes = 20'000});
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr("--max-memory sets it"));
  EXPECT_TRUE(run(hir(program))) << said_;
}

TEST_P(Limits, FromAnotherThread) {
  open(GetParam());
  CancelToken token;
  const CancelScope scope(token);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    token.cancel();
  });
  const auto cut =
      run(hir("module m { import Builtin.*; def main() : i64 { n:i64 = 0:i64; while (1:bool) "
              "{ n = @plus(n, 1:i64); } return n; } }"));
  other.join();
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().exit_code(), 130);
  token.reset();
  EXPECT_TRUE(run(hir(program))) << said_;
}

INSTANTIATE_TEST_SUITE_P(Devices, Limits, testing::Values("cpu", "sim"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace rndn::runtime::limits_test
