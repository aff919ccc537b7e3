// Reductions of floats on the simulator, in every form that a kernel or an operator gives them:
// sums of singles within one rounding of the exact sum, minima and maxima that tell zeros apart
// wherever they stand, NaN passed over.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "runtime/engine.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/support/no_tables.h"

namespace rndn::runtime::reductions_test {
namespace {

using hir::BasicType;
using reference::Value;

// A table `t` of columns of one length.
class Columns final : public reference::Tables {
 public:
  template <class T>
  void add(const std::string& name, BasicType type, const std::vector<T>& elements) {
    data::Column column = data::make_column(type, elements.size());
    std::memcpy(column.data->data(), elements.data(), elements.size() * sizeof(T));
    data::compute_statistics(column);
    columns_[name] = std::make_shared<const data::Column>(std::move(column));
  }
  Result<void> open(std::string_view) const override { return {}; }
  Result<std::vector<std::string>> column_names(std::string_view) const override {
    return std::vector<std::string>();
  }
  Result<uint64_t> rows(std::string_view) const override { return columns_.begin()->second->rows; }
  Result<std::shared_ptr<const data::Column>> column(std::string_view,
                                                     std::string_view name) const override {
    return columns_.at(std::string(name));
  }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view) const override {
    return column("", "k");
  }

 private:
  std::map<std::string, std::shared_ptr<const data::Column>> columns_;
};

// What `then` makes of x (floats) and the keys k, as r: on the simulator.
Result<Value> run(const Columns& tables, const char* type, const std::string& then,
                  const char* target, outliner::Mode mode, bool fuse) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  CompileOptions options;
  options.target = target;
  options.outline = mode;
  options.fuse_operators = fuse;
  const std::string text = fmt::format(
      "module m {{ import Builtin.*; def main() : ? {{ t:? = @load_table(`t:sym); x:{0} = "
      "check_cast(@column_value(t, `x:sym), {0}); k:i32 = check_cast(@column_value(t, `k:sym), "
      "i32); {1} "
      "return r; }} }}",
      type, then);
  auto compiled = compile(sources.add("t.hir", text), sources, options, sink, timings);
  if (!compiled)
    return input_error("{}{}{}", compiled.error().message, render(sink, sources), text);
  ASSIGN_OR_RETURN(auto device, open_simulator(target));
  Engine engine(*device, tables);
  ASSIGN_OR_RETURN(auto plan, engine.plan(*compiled, sources, {.allow_fallback = false}, timings));
  ASSIGN_OR_RETURN(std::vector<Value> results, engine.run(*plan, timings));
  return results[0];
}

// Ways to reduce: `@R` of everything, of a selection, by group (fused or cell by cell).
std::vector<std::string> ways(const std::string& reduction) {
  const std::string r = "@" + reduction;
  return {"r:? = " + r + "(x);", "m:? = @geq(k, 0:i32); y:? = @compress(m, x); r:? = " + r + "(y);",
          "d:? = @group(k); v:? = @values(d); e:? = @each_right(@index, x, v); f:? = @each(" + r +
              ", e); r:? = @raze(f);"};
}

class Reductions : public testing::TestWithParam<const char*> {
 protected:
  // Every way, mode and choice of operators; `check` sees each result.
  template <class Check>
  void for_all(const Columns& tables, const char* type, const std::string& reduction, Check check) {
    for (const std::string& way : ways(reduction))
      for (outliner::Mode mode : {outliner::Mode::none, outliner::Mode::full})
        for (bool fuse : {false, true}) {
          SCOPED_TRACE(fmt::format("{} of {}: {} mode {} fuse {}", reduction, type, way,
                                   static_cast<int>(mode), fuse));
          auto made = run(tables, type, way, GetParam(), mode, fuse);
          ASSERT_TRUE(made) << made.error().message;
          check(*made);
        }
  }
};

// Off by one rounding to f32 at most, with room for the few roundings to f64 before it: of 0.1 a
// hundred thousand times, accumulated in f32, the fourth digit is wrong.
TEST_P(Reductions, SumsOfSinglesAreRoundedOnce) {
  for (int groups : {1, 3, 700}) {
    std::vector<float> x;
    std::vector<int32_t> k;
    std::vector<double> sums(static_cast<size_t>(groups)), counts(sums.size());
    for (int i = 0; i < 100000; ++i) {
      k.push_back(i % groups);
      x.push_back(i % 2 ? 0.1f : 1000.1f / static_cast<float>(1 + i % 13));
      sums[static_cast<size_t>(k.back())] += x.back();
      counts[static_cast<size_t>(k.back())] += 1;
    }
    Columns tables;
    tables.add("x", BasicType::f32, x);
    tables.add("k", BasicType::i32, k);
    double all = 0;
    for (double s : sums) all += s;
    for (const bool average : {false, true})
      for_all(tables, "f32", average ? "avg" : "sum", [&](const Value& v) {
        ASSERT_EQ(v.type, BasicType::f32);
        ASSERT_TRUE(v.size == 1 || v.size == sums.size());
        for (uint64_t i = 0; i < v.size; ++i) {
          double right = v.size == sums.size() ? sums[i] : all;
          if (average) right /= v.size == sums.size() ? counts[i] : 100000;
          EXPECT_NEAR(v.as<float>()[i], right, right * 0x1.001p-24) << i;
        }
      });
  }
}

TEST_P(Reductions, ZerosHaveSigns) {
  const auto check = [&]<class T>(T zero, const char* name, BasicType type) {
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (size_t odd : {size_t{0}, size_t{1}, size_t{500}, size_t{998}, size_t{999}})
      for (const bool smallest : {true, false})
        for (const bool with_nan : {false, true}) {
          // One zero of the sign that is looked for among those of the other.
          std::vector<T> x(1000, smallest ? zero : -zero);
          std::vector<int32_t> k(1000, 7);
          x[odd] = smallest ? -zero : zero;
          if (with_nan) x[(odd + 3) % 1000] = x[(odd + 997) % 1000] = nan;
          Columns tables;
          tables.add("x", type, x);
          tables.add("k", BasicType::i32, k);
          for (const std::string& way : ways(smallest ? "min" : "max")) {
            auto made = run(tables, name, way, GetParam(), outliner::Mode::full, true);
            ASSERT_TRUE(made) << made.error().message;
            ASSERT_EQ(made->size, 1u);
            EXPECT_EQ(made->as<T>()[0], 0) << way;
            EXPECT_EQ(std::signbit(made->as<T>()[0]), smallest)
                << name << " at " << odd << ": " << way;
          }
        }
  };
  check(0.0f, "f32", BasicType::f32);
  check(0.0, "f64", BasicType::f64);
}

INSTANTIATE_TEST_SUITE_P(Targets, Reductions, testing::Values("sm_61", "sm_86"));

// A function that is called and gives a global another value: what main reads after it is that.
TEST(Globals, ThatFunctionsChangeAreReadAnew) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  const std::string text =
      "module m { import Builtin.*; global g:i64 = 1:i64; def set(x:i64) : i64 { if (1:bool) { g = "
      "x; return x; } return "
      "x; } def main() : i64, i64 { a:i64 = @set(5:i64); v:? = @range(10:i64); w:? = @plus(v, g); "
      "s:i64 = @sum(w); return "
      "s, g; } }";
  auto compiled = compile(sources.add("t.hir", text), sources, {}, sink, timings);
  ASSERT_TRUE(compiled) << compiled.error().message << render(sink, sources);
  auto device = open_simulator("sm_86");
  rndn::test::NoTables tables;
  Engine engine(**device, tables);
  auto plan = engine.plan(*compiled, sources, {}, timings);
  ASSERT_TRUE(plan) << plan.error().message;
  auto got = engine.run(**plan, timings);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ((*got)[0].as<int64_t>()[0], 95);
  EXPECT_EQ((*got)[1].as<int64_t>()[0], 5);
}

}  // namespace
}  // namespace rndn::runtime::reductions_test
