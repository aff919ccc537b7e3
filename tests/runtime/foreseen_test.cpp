// Runs that go on with answers of the runs before (runtime/run/foreseeing.h), when columns become others under them, on a device that is lost with its
// first fault: after such a run comes one with waits, which is right, and no kernel has read or written beyond a vector.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/runtime/lost_device.h"
#include "tests/support/every_case.h"

namespace rndn::runtime::foreseen_test {
namespace {

using hir::BasicType;

// A table `t` of x, y and k: whole rows of an i64 that no narrower type holds, and of floats, of which nothing is known beforehand.
struct Rows {
  std::vector<double> x, y;
  std::vector<int64_t> k;
};

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& of) {
  const auto bytes = std::as_bytes(std::span(of));
  return {bytes.begin(), bytes.end()};
}

class RowTables final : public reference::Tables {
 public:
  explicit RowTables(const Rows& rows) : rows_(rows.x.size()) {
    put("x", BasicType::f64, bytes_of(rows.x));
    put("y", BasicType::f64, bytes_of(rows.y));
    put("k", BasicType::i64, bytes_of(rows.k));
    // Refers to k from the last row to the first.
    data::Column f = *columns_["k"];
    std::vector<int32_t> at(rows_);
    for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int32_t>(at.size() - 1 - i);
    std::vector<int64_t> keys;
    for (const int32_t row : at) keys.push_back(rows.k[static_cast<size_t>(row)]);
    f.is_foreign_key = true;
    f.foreign_table = "t";
    f.data = shared(bytes_of(keys));
    f.foreign_rows = shared(bytes_of(at));
    columns_["f"] = std::make_shared<const data::Column>(std::move(f));
  }
  Result<void> open(std::string_view) const override { return {}; }
  Result<std::vector<std::string>> column_names(std::string_view) const override { return std::vector<std::string>{"x", "y", "k"}; }
  Result<uint64_t> rows(std::string_view) const override { return rows_; }
  Result<std::shared_ptr<const data::Column>> column(std::string_view, std::string_view name) const override {
    return columns_.find(name)->second;
  }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view) const override { return columns_.find("k")->second; }
  // Another column of the same elements takes its place; or, of k, one of these.
  void renew(const std::string& name, const std::vector<int64_t>& elements = {}) {
    data::Column c = *columns_[name];
    if (!elements.empty()) c.data = shared(bytes_of(elements));
    columns_[name] = std::make_shared<const data::Column>(std::move(c));
  }

 private:
  static std::shared_ptr<data::Bytes> shared(const std::vector<std::byte>& bytes) {
    auto made = std::make_shared<data::Bytes>(bytes.size());
    std::memcpy(made->data(), bytes.data(), bytes.size());
    return made;
  }
  void put(const std::string& name, BasicType type, const std::vector<std::byte>& bytes) {
    data::Column c;
    c.type = type;
    c.width = 8;
    c.rows = rows_;
    c.data = shared(bytes);
    columns_[name] = std::make_shared<const data::Column>(std::move(c));
  }
  uint64_t rows_;
  std::map<std::string, std::shared_ptr<const data::Column>, std::less<>> columns_;
};

constexpr int64_t wide = int64_t{1} << 40;

Rows make_rows(size_t n, const std::function<double(size_t)>& x, const std::function<double(size_t)>& y,
               const std::function<int64_t(size_t)>& k) {
  Rows rows;
  for (size_t i = 0; i < n; ++i) rows.x.push_back(x(i)), rows.y.push_back(y(i)), rows.k.push_back(wide * k(i));
  return rows;
}
double value(size_t i) { return static_cast<double>(i); }

// 7919 is no divisor of any number of rows: all different.
Rows first_rows(size_t n) {
  return make_rows(n, [n](size_t i) { return value(i * 7919 % n) / 2; }, [](size_t i) { return value(i % 17); },
                   [](size_t i) { return static_cast<int64_t>(i * 31 % 50); });
}
std::vector<Rows> other_rows(size_t n) {
  const auto y = [](size_t i) { return value(i % 5); };
  const auto far = [](size_t i) { return static_cast<int64_t>(i % 50); };
  return {
      make_rows(n, [](size_t) { return 3.0; }, y, [](size_t) { return 7; }),
      make_rows(n, [](size_t i) { return value(i / 2); }, y, [n](size_t i) { return static_cast<int64_t>(i * 50 / n); }),
      make_rows(n, [n](size_t i) { return value(n - i) * 1e9; }, y, [](size_t i) { return 49 - static_cast<int64_t>(i % 50); }),
      make_rows(n, [](size_t i) { return i % 7 ? -value(i) : 1e300; }, y, far),
      make_rows(n, [](size_t i) { return value(i % 3); }, y, [](size_t i) { return static_cast<int64_t>(i % 2); }),
      make_rows(n, [](size_t i) { return -value(i % 100); }, y, far),
      make_rows(n, [n](size_t i) { return i + 3 < n ? 1.0 : value(i); }, y, [n](size_t i) { return i + 1 < n ? 0 : int64_t{49}; }),
      make_rows(n, [n](size_t i) { return value(i * 31 % n) + 1e-9 * value(i); }, y, [](size_t i) { return static_cast<int64_t>(i / 3 % 50); }),
  };
}

struct Program {
  const char* name;
  const char* text;     // statements behind the columns
  const char* columns;  // of the result
};
constexpr Program programs[] = {
    {"unique", "u:? = @unique(x); s:? = @index(x, u); o:? = @order(s, 0:bool); r1:? = @index(s, o);", "r1"},
    {"order", "o:? = @order(x, 1:bool); r1:? = @index(y, o); r2:? = @index(x, o);", "r1, r2"},
    {"top", "o:? = @order(x, 0:bool); w:? = @take(10:i64, o); r1:? = @index(x, w); r2:? = @index(y, w);", "r1, r2"},
    {"group",
     "g:? = @group(k); w:? = @keys(g); v:? = @values(g); r1:? = @index(k, w); c:? = @each_right(@index, y, v); e:? = @each(@sum, c);"
     "r2:? = @raze(e);",
     "r1, r2"},
    {"group_of_some",
     "m:? = @gt(x, 20:f64); s:? = @compress(m, k); z:? = @compress(m, y); g:? = @group(s); w:? = @keys(g); v:? = @values(g);"
     "r1:? = @index(s, w); c:? = @each_right(@index, z, v); e:? = @each(@sum, c); r2:? = @raze(e);",
     "r1, r2"},
    {"group_by_two",
     "l:? = @list(k, x); g:? = @group(l); w:? = @keys(g); v:? = @values(g); r1:? = @index(k, w); r2:? = @index(x, w);"
     "e:? = @each(@len, v); r3:? = @raze(e);",
     "r1, r2, r3"},
    {"rows_of_groups", "m:? = @geq(x, 10:f64); s:? = @compress(m, y); g:? = @group(s); v:? = @values(g); r1:? = @raze(v);", "r1"},
    {"unique_of_some", "m:? = @lt(x, 90:f64); s:? = @compress(m, x); u:? = @unique(s); r1:? = @index(s, u);", "r1"},
    {"groups_in_order",
     "g:? = @group(x); w:? = @keys(g); v:? = @values(g); c:? = @each_right(@index, y, v); e:? = @each(@sum, c); s:? = @raze(e);"
     "a:? = @index(x, w); l:? = @list(s, a); o:? = @order(l, (0,1):bool); r1:? = @index(s, o); r2:? = @index(a, o);",
     "r1, r2"},
    {"twice",
     "u:? = @unique(x); s:? = @index(x, u); q:? = @mul(s, 0.1:f64); fl:? = @floor(q); g:? = @group(fl); w:? = @keys(g); v:? = @values(g);"
     "r1:? = @index(fl, w); c:? = @each_right(@index, s, v); e:? = @each(@sum, c); r2:? = @raze(e);",
     "r1, r2"},
};

class Foreseen : public testing::Test {
 protected:
  Compiled compiled(const Program& p) {
    std::string text = "module m { import Builtin.*; def main() : table { t:? = @load_table(`t:sym);\n";
    for (const auto& [name, type] : {std::pair("x", "f64"), {"y", "f64"}, {"k", "i64"}, {"f", "enum<i64>"}})
      text += fmt::format("{0}:{1} = check_cast(@column_value(t, `{0}:sym), {1});\n", name, type);
    size_t columns = 1;
    for (char c : std::string_view(p.columns)) columns += c == ',';
    std::string names;
    for (size_t i = 0; i < columns; ++i) names += fmt::format("{}`c{}", i ? "," : "", i);
    text += fmt::format("{}\nlast:? = @list({}); r:? = @table({}:sym, last); return r; }} }}", p.text, p.columns,
                        columns == 1 ? names : "(" + names + ")");
    DiagnosticSink sink;
    CompileOptions options;
    options.target = "sm_90";
    auto made = compile(sources_.add("t.hir", text), sources_, options, sink, timings_);
    EXPECT_TRUE(made) << p.name << ": " << (made ? "" : made.error().message) << render(sink, sources_);
    return made ? *std::move(made) : Compiled{};
  }
  std::string expected(const Compiled& program, const Rows& rows) {
    auto got = reference::run(program.program, RowTables(rows), sources_, nullptr);
    return got ? *print_result(*got, Format::csv) : got.error().message;
  }
  std::string run(Engine& engine, Engine::Plan& plan) {
    auto got = engine.run(plan, timings_);
    return got ? *print_result(*got, Format::csv) : got.error().message;
  }
  // Runs of all programs over rows that become others.
  void change_rows(size_t rows) {
    const Rows first = first_rows(rows);
    const std::vector<Rows> others = other_rows(rows);
    size_t repeats = 0;
    rndn::test::Sample sample(7);
    for (const Program& p : programs) {
      const Compiled program = compiled(p);
      if (HasFailure()) return;
      const std::string right = expected(program, first);
      for (size_t k = 0; k < others.size(); ++k)
        for (const bool graphs : {false, true}) {
          if (!sample.has_next()) continue;
          SCOPED_TRACE(fmt::format("{}, rows {}{}", p.name, k, graphs ? ", graphs" : ""));
          auto simulator = open_simulator("sm_90");
          test::LostDevice device(**simulator);
          const RowTables tables(first);
          Engine engine(device, tables);
          EngineOptions options{.measure_kernels = false, .graphs = graphs};
          // Each vector in memory of its own: what lies beyond it is nobody's.
          if (!graphs) options.alloc = EngineOptions::Alloc::driver;
          auto plan = engine.plan(program, sources_, options, timings_);
          EXPECT_TRUE(plan) << plan.error().message;
          if (!plan) return;
          for (int n = 0; n < 4; ++n) EXPECT_EQ(run(engine, **plan), right) << n;
          const uint64_t waits = device.waits;
          const Rows& other = others[k];
          for (const auto& [before, now] : {std::pair(bytes_of(first.x), bytes_of(other.x)), {bytes_of(first.y), bytes_of(other.y)},
                                            {bytes_of(first.k), bytes_of(other.k)}})
            (void)device.change(before, now);
          const std::string got = run(engine, **plan), wanted = expected(program, other);
          repeats += device.waits > waits + 1;
          EXPECT_EQ(device.fault, "");
          EXPECT_EQ(got, wanted);
          EXPECT_EQ(run(engine, **plan), wanted);
        }
    }
    EXPECT_GT(repeats, 0u);
  }
  SourceManager sources_;
  Timings timings_;
};

TEST_F(Foreseen, NoKernelGoesBeyondVectorsOfRowsThatBecameOthers) { change_rows(rndn::test::in_the_gate(300, 400)); }
TEST_F(Foreseen, NorOfMany) { change_rows(5000); }

// A column that another one has taken the place of is asked for while a graph runs: the graph is no more.
TEST_F(Foreseen, AReplayAsksForItsColumns) {
  const Rows rows = first_rows(300);
  const Compiled program = compiled(programs[1]);
  const std::string right = expected(program, rows);
  auto simulator = open_simulator("sm_90");
  test::LostDevice device(**simulator);
  RowTables tables(rows);
  Engine engine(device, tables);
  auto plan = engine.plan(program, sources_, {.measure_kernels = false}, timings_);
  ASSERT_TRUE(plan) << plan.error().message;
  for (int n = 0; n < 5; ++n) EXPECT_EQ(run(engine, **plan), right);
  const uint64_t replays = device.replays;
  EXPECT_GT(replays, 1u);
  tables.renew("x");
  EXPECT_EQ(run(engine, **plan), right);
  EXPECT_EQ(run(engine, **plan), right);
  EXPECT_EQ(device.replays, replays + 1) << "that of which it was noticed";
  for (int n = 0; n < 5; ++n) EXPECT_EQ(run(engine, **plan), right);
  EXPECT_GT(device.replays, replays + 1);
}

// A result that was short is written where the host sees it; one that has become long is copied from the next run on, also where a graph ran.
TEST_F(Foreseen, AResultThatGrowsIsCopied) {
  constexpr size_t n = 20000;
  const Rows rows = first_rows(n);
  Rows other = rows;
  for (double& x : other.x) x = 1;
  const Compiled program = compiled({"some", "m:? = @lt(x, 5:f64); r1:? = @compress(m, x);", "r1"});
  for (const bool graphs : {false, true}) {
    SCOPED_TRACE(graphs);
    auto simulator = open_simulator("sm_90");
    test::LostDevice device(**simulator);
    const RowTables tables(rows);
    Engine engine(device, tables);
    auto plan = engine.plan(program, sources_, {.measure_kernels = false, .graphs = graphs}, timings_);
    ASSERT_TRUE(plan) << plan.error().message;
    const auto waits_of = [&](const Rows& of) {
      device.waits = 0;
      EXPECT_EQ(run(engine, **plan), expected(program, of));
      return device.waits;
    };
    const uint64_t copied = waits_of(rows);
    for (int k = 0; k < 4; ++k) EXPECT_LT(waits_of(rows), copied) << k;
    EXPECT_EQ(device.replays > 0, graphs);
    ASSERT_TRUE(device.change(bytes_of(rows.x), bytes_of(other.x)));
    EXPECT_LT(waits_of(other), copied);
    for (int k = 0; k < 2; ++k) EXPECT_EQ(waits_of(other), copied) << k;
  }
}

// The column that a foreign key refers to may be another one than before, too.
TEST_F(Foreseen, KeysOfForeignKeysAreAskedFor) {
  Rows rows = first_rows(300);
  const Compiled program = compiled({"refers", "kk:? = @keys(f); w:? = @unique(kk); r1:? = @index(kk, w);", "r1"});
  auto simulator = open_simulator("sm_90");
  RowTables tables(rows);
  Engine engine(**simulator, tables);
  auto plan = engine.plan(program, sources_, {.measure_kernels = false}, timings_);
  ASSERT_TRUE(plan) << plan.error().message;
  for (int k = 0; k < 5; ++k) EXPECT_EQ(run(engine, **plan), expected(program, rows));
  for (int64_t& key : rows.k) key += 1;
  tables.renew("k", rows.k);
  for (int k = 0; k < 5; ++k) EXPECT_EQ(run(engine, **plan), expected(program, rows));
}

}  // namespace
}  // namespace rndn::runtime::foreseen_test
