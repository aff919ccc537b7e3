// What --prove compares, what it says of it, and that each of its checks notices what it is there for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/session/session.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/planner/support.h"
#include "tests/session/wrong_device.h"
#include "tpch/source.h"

namespace rndn::runtime::prove_test {
namespace {

using planner::installed, planner::installed_folder;
using test::WrongDevice;
using testing::AllOf, testing::HasSubstr, testing::Not;

// Sums by line number of what is large, the least sum first.
constexpr const char* program = R"(module m { import Builtin.*; def main() : table {
  t:? = @load_table(`lineitem:sym);
  n:i32 = check_cast(@column_value(t, `l_linenumber:sym), i32);
  p:f64 = check_cast(@column_value(t, `l_extendedprice:sym), f64);
  large:? = @gt(p, 1000:f64);
  n1:? = @compress(large, n);
  p1:? = @compress(large, p);
  g:? = @group(n1);
  first:? = @keys(g);
  rows:? = @values(g);
  cells:? = @each_right(@index, p1, rows);
  sums:? = @each(@sum, cells);
  s:? = @raze(sums);
  k:? = @index(n1, first);
  o:? = @order(s, 1:bool);
  k_o:? = @index(k, o);
  s_o:? = @index(s, o);
  c:? = @list(k_o, s_o);
  r:? = @table((`n,`s):sym, c);
  return r; } })";

constexpr const char* with_a_loop = R"(module m { import Builtin.*; def main() : i64 {
  i:i64 = 0:i64;
  more:bool = 1:bool;
  while (more) { i = @plus(i, 1:i64); more = @lt(i, 3:i64); }
  return i; } })";

class Prove : public testing::Test {
 protected:
  void SetUp() override {
    auto source = tpch::open_source("tpch:0.001");
    ASSERT_TRUE(source) << source.error().message;
    source_ = *source;
    open();
  }
  void open(WrongDevice::As as = WrongDevice::As::gpu) {
    session_.reset();
    simulator_ = *open_simulator("sm_86");
    auto own = std::make_unique<WrongDevice>(*simulator_, as);
    device_ = own.get();
    session_.emplace(source_, std::make_shared<DeviceChoice>(DeviceChoice::of(std::move(own))), session_options());
    options_.cache = false;
    options_.engine.measure_kernels = false;
  }
  SessionOptions session_options() {
    return {.planner = installed(), .say = [this](const std::string& text) { said_ += text; }};
  }
  Result<Session::Outcome> run(const char* text, bool prove) {
    said_.clear();
    options_.prove = prove;
    return session_->run({"m", "m.hir", text}, options_);
  }
  // A run, and another whose results are checked after `change` was done to them.
  template <class F>
  void prove_changed(F&& change) {
    auto ran = run(program, false);
    ASSERT_TRUE(ran) << ran.error().message;
    right_ = *print(*ran, Format::csv);
    std::vector<data::Value> columns = ran->results[0].parts();
    change(columns);
    ran->results = {data::table({"n", "s"}, columns)};
    ASSERT_NE(*print(*ran, Format::csv), right_);
    const auto done = session_->prove("m", options_, *ran);
    ASSERT_TRUE(done) << done.error().message;
    outcome_ = *std::move(ran);
  }
  static data::Value with_more_at(const data::Value& column, size_t row, double more) {
    std::vector<double> x(column.as<double>(), column.as<double>() + column.size);
    x[row] += more;
    return data::vector_of<double>(hir::BasicType::f64, std::span<const double>(x));
  }

  std::shared_ptr<data::Source> source_;
  std::unique_ptr<device::Device> simulator_;
  WrongDevice* device_ = nullptr;
  std::string said_, right_;
  std::optional<Session> session_;
  RunOptions options_;
  Session::Outcome outcome_;
};

TEST_F(Prove, SaysWhatWasComparedAndWhatWasNot) {
  const auto plain = run(program, false);
  ASSERT_TRUE(plain);
  EXPECT_EQ(said_, "");
  const auto right = print(*plain, Format::csv);
  const auto proved = run(program, true);
  ASSERT_TRUE(proved) << proved.error().message << said_;
  EXPECT_THAT(proved->differences, testing::IsEmpty());
  EXPECT_TRUE(Session::proven("m", *proved));
  EXPECT_EQ(*print(*proved, Format::csv), *right);
  EXPECT_THAT(said_, HasSubstr("other kernels of -O0, one per statement, and "));
  EXPECT_THAT(said_, HasSubstr(": 7 rows the same ("));
  EXPECT_THAT(said_, HasSubstr("operators of the second path: 1 `group`, 1 `order`: "));
  EXPECT_THAT(said_, HasSubstr("reference interpreter, over all rows: 7 rows the same ("));
  EXPECT_THAT(said_, HasSubstr("not checked: "));
  EXPECT_THAT(said_, HasSubstr("the data as they were read"));
}

// The other way round where the first run has plain kernels.
TEST_F(Prove, TheSecondPathIsTheOther) {
  options_.compile.outline = outliner::Mode::none;
  options_.compile.fuse_operators = options_.compile.fuse_joins = options_.compile.fuse_groups = false;
  options_.compile.level = 0;
  options_.engine.operators.group = operators::Options::Group::hash;  // in any order
  const auto proved = run(program, true);
  ASSERT_TRUE(proved) << proved.error().message << said_;
  EXPECT_THAT(proved->differences, testing::IsEmpty());
  EXPECT_THAT(said_, HasSubstr("of -O3, all fused"));
}

// Only the second path sees it: the interpreter has a sample alone, which is not wrong.
TEST_F(Prove, TheFirstDifferenceIsToldAndTheSecondPathKept) {
  options_.prove_elements = 0;
  prove_changed([&](auto& columns) { columns[1] = with_more_at(columns[1], 2, 0.0001); });
  ASSERT_EQ(outcome_.differences.size(), 1u) << said_;
  EXPECT_THAT(outcome_.differences[0],
              AllOf(HasSubstr("second path: "), HasSubstr("row 3, column `s`: "), HasSubstr(" by the second path")));
  EXPECT_THAT(said_, HasSubstr("the result is that of the second path"));
  EXPECT_EQ(*print(outcome_, Format::csv), right_);
  const auto proven = Session::proven("m", outcome_);
  ASSERT_FALSE(proven);
  EXPECT_EQ(proven.error().exit_code(), 70);
  EXPECT_THAT(proven.error().message, HasSubstr("row 3, column `s`"));
}

constexpr const char* zero = R"(module m { import Builtin.*; def main() : table {
  t:? = @load_table(`lineitem:sym);
  n:i32 = check_cast(@column_value(t, `l_linenumber:sym), i32);
  p:f64 = check_cast(@column_value(t, `l_extendedprice:sym), f64);
  m:? = @gt(n, 100:i32);
  q:? = @compress(m, p);
  s:? = @sum(q);
  c:? = @list(s);
  r:? = @table(`s:sym, c);
  return r; } })";

TEST_F(Prove, TheSignOfZeroCounts) {
  options_.prove_elements = 0;
  auto ran = run(zero, false);
  ASSERT_TRUE(ran) << ran.error().message << said_;
  ASSERT_EQ(*print(*ran, Format::csv), "s\r\n0\r\n");
  ran->results = {data::table({"s"}, {data::vector_of<double>(hir::BasicType::f64, {-0.0})})};
  ASSERT_TRUE(session_->prove("m", options_, *ran));
  EXPECT_EQ(ran->differences.size(), 1u) << said_;
}

TEST_F(Prove, TheLastBitAndTheOrderOfRowsCount) {
  options_.prove_elements = 0;
  prove_changed(
      [&](auto& columns) { columns[1] = with_more_at(columns[1], 6, columns[1].template as<double>()[6] * 2.3e-16); });
  EXPECT_EQ(outcome_.differences.size(), 1u) << said_;
  prove_changed([&](auto& columns) {
    for (data::Value& column : columns) {
      const uint32_t width = data::plain_width(column.type);
      std::vector<std::byte> bytes(column.bytes->data(), column.bytes->data() + column.size * width);
      std::swap_ranges(bytes.begin(), bytes.begin() + width, bytes.begin() + width);
      column = data::vector_from_bytes(column.type, column.size, std::move(bytes));
    }
  });
  EXPECT_EQ(outcome_.differences.size(), 1u) << said_;
}

// Columns are sent again: what went wrong on the way of one is not in the other.
TEST_F(Prove, ColumnsAreSentAgain) {
  options_.prove_elements = 0;
  bool once = true;
  device_->on_copy = [&](std::vector<std::byte>& bytes) {
    if (bytes.size() > 20'000 && std::exchange(once, false)) bytes[bytes.size() - 2] ^= std::byte{1};
  };
  const auto proved = run(program, true);
  ASSERT_TRUE(proved) << proved.error().message << said_;
  EXPECT_FALSE(once);
  EXPECT_EQ(proved->differences.size(), 1u) << said_;
}

// What is wrong in both paths alike.
TEST_F(Prove, TheInterpreterSeesWhatBothPathsGetWrong) {
  const auto right = run(program, false);
  ASSERT_TRUE(right);
  right_ = *print(*right, Format::csv);
  open();
  device_->on_copy = [&](std::vector<std::byte>& bytes) {
    if (bytes.size() >= 20'000 && bytes.size() % 8 == 0) bytes[bytes.size() - 2] ^= std::byte{1};  // prices
  };
  auto proved = run(program, true);
  ASSERT_TRUE(proved) << proved.error().message << said_;
  ASSERT_EQ(proved->differences.size(), 1u) << said_;
  EXPECT_THAT(proved->differences[0], HasSubstr(" by the reference interpreter"));
  EXPECT_THAT(said_, HasSubstr("the result is that of the reference interpreter"));
  EXPECT_EQ(*print(*proved, Format::csv), right_);

  options_.prove_elements = 0;  // the last rows are in the sample
  proved = run(program, true);
  ASSERT_TRUE(proved) << proved.error().message << said_;
  ASSERT_EQ(proved->differences.size(), 1u) << said_;
  EXPECT_THAT(proved->differences[0],
              AllOf(HasSubstr("over 3003 of 6005 rows of `lineitem`"), HasSubstr(" by the reference interpreter")));
  EXPECT_THAT(said_, HasSubstr("the result is that of the second path"));
}

TEST_F(Prove, OperatorsAreHeldToWhatMustBe) {
  options_.prove_elements = 0;
  device_->is_watched = [&](const std::string& kernel) { return kernel.find("order") != kernel.npos; };
  device_->on_stored = [&](std::vector<uint32_t>& words, const std::vector<size_t>& changed) {
    ASSERT_GT(changed.size(), 3u);
    std::swap(words[changed[0]], words[changed[2]]);  // of rows in 64 bits
  };
  const auto proved = run(program, true);
  ASSERT_TRUE(proved) << proved.error().message << said_;
  EXPECT_THAT(fmt::format("{}", fmt::join(proved->differences, "\n")), HasSubstr("the result of `order` is wrong: "));
  EXPECT_EQ(*print(*proved, Format::csv), *print(*run(program, false), Format::csv));  // no other is trusted more
}

TEST_F(Prove, WhereThereIsNoOtherPathNothingIsClaimed) {
  const auto proved = run(with_a_loop, true);
  ASSERT_TRUE(proved) << proved.error().message << said_;
  EXPECT_THAT(said_, AllOf(HasSubstr("prove m: nothing is checked: "), Not(HasSubstr("the same"))));

  Session on_host(source_, *DeviceChoice::start("cpu", "", [](const std::string&) {}), session_options());
  const auto refused = on_host.run({"m", "m.hir", program}, options_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().exit_code(), 2);
}

TEST_F(Prove, QueriesAndWhatStatementsMakeOfThem) {
  REQUIRE_PLANNER();
  options_.prove = true;
  const auto statements = split_sql(
      "q", "<q>",
      "CREATE TABLE t AS SELECT o_orderkey AS k, CASE WHEN o_orderkey % 3 = 0 THEN o_comment END AS c FROM orders; "
      "SELECT o_orderstatus, c, count(*) AS n, sum(l_quantity) AS q FROM t JOIN orders ON k = o_orderkey JOIN lineitem "
      "ON "
      "l_orderkey = k GROUP BY ALL ORDER BY q DESC, c NULLS LAST LIMIT 20");
  for (const NamedSource& statement : statements) {
    said_.clear();
    const auto proved = session_->run(statement, options_);
    ASSERT_TRUE(proved) << proved.error().message << said_;
    EXPECT_THAT(proved->differences, testing::IsEmpty()) << said_;
    EXPECT_THAT(said_, AllOf(HasSubstr("second path: "), HasSubstr("reference interpreter, over all rows"),
                             HasSubstr("its translation to HorseIR")));
  }
}

// An order of few rows is one kernel of the library, on each path.
TEST_F(Prove, TheSameKernelsAreNoSecondPath) {
  options_.engine.operators.sort = operators::Options::Sort::automatic;
  const auto proved = run(R"(module m { import Builtin.*; def main() : i64 {
    t:? = @load_table(`region:sym);
    k:i32 = check_cast(@column_value(t, `r_regionkey:sym), i32);
    o:? = @order(k, 0:bool);
    return o; } })",
                          true);
  ASSERT_TRUE(proved) << proved.error().message << said_;
  EXPECT_THAT(said_, AllOf(HasSubstr("second path: none, for every kernel of it is the first run's"),
                           Not(HasSubstr("other kernel")), HasSubstr("not checked: what small_order do alike")));
}

// A run that fails where another way does not.
std::string required(const char* bound) {
  return fmt::format(R"(module m {{ import Builtin.*; def main() : f64 {{
  t:? = @load_table(`lineitem:sym);
  p:f64 = check_cast(@column_value(t, `l_extendedprice:sym), f64);
  ok:? = @lt(p, {}:f64);
  q:? = @require(ok, p, `"too large":sym);
  s:? = @sum(q);
  return s; }} }})",
                     bound);
}
TEST_F(Prove, AFailureThatIsNoneOfAnotherWayIsADifference) {
  const auto fails = run(required("1000").c_str(), true);
  ASSERT_FALSE(fails);
  EXPECT_EQ(fails.error().exit_code(), 1) << fails.error().message << said_;
  EXPECT_THAT(fails.error().message, HasSubstr("too large"));
  EXPECT_THAT(said_, AllOf(HasSubstr("second path: it fails, too: "), HasSubstr("too large"),
                           HasSubstr("reference interpreter: it fails, too: "), Not(HasSubstr("DIFFERENT"))));

  for (const bool is_first : {true, false}) {
    open();
    size_t prices = 0;
    device_->on_copy = [&](std::vector<std::byte>& bytes) {
      if (bytes.size() < 20'000 || prices++ != (is_first ? 0 : 1)) return;
      const double large = 1e9;
      std::memcpy(bytes.data() + bytes.size() - sizeof large, &large, sizeof large);
    };
    const auto ran = run(required("1e8").c_str(), true);
    EXPECT_EQ(prices, 2u);
    if (is_first) {
      ASSERT_FALSE(ran);
      EXPECT_EQ(ran.error().exit_code(), 70);
      EXPECT_THAT(ran.error().message, HasSubstr("second path: a result, and the run fails: "));
      EXPECT_THAT(ran.error().message, HasSubstr("reference interpreter: a result, and the run fails: "));
    } else {
      ASSERT_TRUE(ran) << ran.error().message << said_;
      EXPECT_THAT(ran->differences, testing::ElementsAre(AllOf(HasSubstr("second path: "), HasSubstr("too large"))));
    }
  }
}

// A kernel of the second path that faults is another failure than the program's own.
TEST_F(Prove, AFaultOfTheSecondPathIsADifferenceWhereTheRunFails) {
  size_t launches = 0, first = SIZE_MAX;
  const auto on_launch = [&](const std::string&, device::Dim3&, std::vector<std::byte>& parameters) {
    const uint64_t nowhere = 16;
    if (launches++ == first)
      for (size_t k = 0; k + 8 <= parameters.size(); k += 8) std::memcpy(parameters.data() + k, &nowhere, 8);
  };
  open(WrongDevice::As::simulator);
  device_->on_launch = on_launch;
  const std::string text = required("1000");
  ASSERT_FALSE(run(text.c_str(), false));
  ASSERT_GT(launches, 0u);
  first = std::exchange(launches, 0);
  open(WrongDevice::As::simulator);
  device_->on_launch = on_launch;
  const auto ran = run(text.c_str(), true);
  EXPECT_GT(launches, first);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().exit_code(), 70) << ran.error().message << said_;
  EXPECT_THAT(ran.error().message, AllOf(HasSubstr("second path: kernel `"), HasSubstr("out-of-bounds"),
                                         HasSubstr("and the run fails: "), HasSubstr("too large")));
  EXPECT_THAT(said_, HasSubstr("reference interpreter: it fails, too: "));
}

// What was compiled and did not run is no witness.
TEST_F(Prove, KernelsOfWhichOnlySomeRunAreCounted) {
  options_.reports = true;
  // What was made for vectors of one length gets a shorter one: the interpreter does that statement.
  const auto proved = run(R"(module m { import Builtin.*; def main() : table {
    t:? = @load_table(`lineitem:sym);
    p:f64 = check_cast(@column_value(t, `l_extendedprice:sym), f64);
    s:? = @sum(p);
    k:i64 = (1,1,2,2):i64; z:i64 = (3,3,3,3):i64; u:? = @unique(z);
    v:i64 = (9,9,9,9):i64; a:? = @index_a(v, k, u); b:? = @sum(a);
    c:? = @list(s, b); r:? = @table((`s,`b):sym, c); return r; } })",
                          true);
  ASSERT_TRUE(proved) << proved.error().message << said_;
  std::vector<std::string> ran, others;
  for (const KernelReport& k : proved->reports.at(0).kernels)
    if (k.kind == "outlined") (k.launches ? ran : others).push_back(k.name);
  EXPECT_THAT(ran, Not(testing::IsEmpty()));
  EXPECT_THAT(others, Not(testing::IsEmpty()));
  EXPECT_EQ(proved->outlined, ran);
  EXPECT_THAT(said_, HasSubstr("second path: 2 other kernels of -O0, one per statement"));
}

TEST_F(Prove, WhereOnlyTheInterpreterRunsNothingIsClaimed) {
  const auto proved = run(R"(module m { import Builtin.*; def main() : f64 {
    t:? = @load_table(`lineitem:sym);
    n:i32 = check_cast(@column_value(t, `l_linenumber:sym), i32);
    p:f64 = check_cast(@column_value(t, `l_extendedprice:sym), f64);
    rows:i64 = @len(n);
    few:bool = @lt(rows, 10:i64);
    s:f64 = 0:f64;
    if (few) { q:? = @mul(p, p); r:? = @minus(q, p); s = @sum(r); } else { s = @sum(p); }
    return s; } })",
                          true);
  ASSERT_TRUE(proved) << proved.error().message << said_;
  EXPECT_THAT(said_, AllOf(HasSubstr("the whole program"), HasSubstr("prove m: nothing is checked: "),
                           Not(HasSubstr("second path: "))));
}

// The lines go where they are asked to.
TEST_F(Prove, WhatIsToldGoesWhereItIsWanted) {
  std::string told;
  options_.told_of_proof = [&](const std::string& line) { told += line; };
  const auto proved = run(program, true);
  ASSERT_TRUE(proved) << proved.error().message << said_;
  EXPECT_EQ(said_, "");
  EXPECT_THAT(told, AllOf(HasSubstr("prove m: second path: "), HasSubstr("prove m: not checked: ")));
}

// Of every query that a statement runs.
TEST_F(Prove, WhatIsInsertedIsCheckedToo) {
  REQUIRE_PLANNER();
  options_.prove = true;
  const auto statements = split_sql(
      "q", "<q>",
      "CREATE TABLE t AS SELECT 1.5::DOUBLE AS s; INSERT INTO t SELECT sum(c_nationkey::DOUBLE) FROM customer; "
      "INSERT INTO t SELECT sum(l_extendedprice * 1e0) FROM lineitem; SELECT s FROM t");
  device_->on_copy = [&](std::vector<std::byte>& bytes) {
    if (bytes.size() >= 20'000 && bytes.size() % 8 == 0) bytes[bytes.size() - 2] ^= std::byte{1};
  };
  std::vector<size_t> differences;
  for (const NamedSource& statement : statements) {
    const auto proved = session_->run(statement, options_);
    ASSERT_TRUE(proved) << proved.error().message << said_;
    differences.push_back(proved->differences.size());
  }
  EXPECT_THAT(differences, testing::ElementsAre(0, 0, 1, 0)) << said_;
}

}  // namespace
}  // namespace rndn::runtime::prove_test
