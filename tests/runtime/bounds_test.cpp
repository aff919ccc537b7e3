// Interval arithmetic against what the reference interpreter computes: no element lies outside,
// wherever it wraps, for every builtin, every type and intervals between corner values and small
// ones; and where nothing can wrap, sums and differences are known exactly.
#include "runtime/memory/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "frontend/builtins.h"
#include "runtime/engine.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/support/no_tables.h"

namespace rndn::runtime::bounds_test {
namespace {

using hir::BasicType;
using hir::Builtin;
using reference::Value;

std::vector<BasicType> all_types() {
  std::vector<BasicType> types;
  for (size_t t = 0; t < hir::basic_type_count; ++t) types.push_back(static_cast<BasicType>(t));
  return types;
}
std::vector<BasicType> integral_types() {
  std::vector<BasicType> types;
  for (BasicType t : all_types())
    if (limits(t).known()) types.push_back(t);
  return types;
}

TEST(Bounds, LimitsAreWhatTheTypeStores) {
  for (BasicType t : all_types()) {
    SCOPED_TRACE(hir::basic_type_name(t));
    const Bounds b = limits(t);
    ASSERT_EQ(b.known(), (hir::is_integer(t) || hir::is_calendar(t)));
    if (!b.known()) continue;
    const uint32_t bits = 8 * data::plain_width(t);
    EXPECT_EQ(b.min, t == BasicType::boolean ? 0 : INT64_MIN >> (64 - bits));
    EXPECT_EQ(b.max, t == BasicType::boolean ? 1 : INT64_MAX >> (64 - bits));
  }
}

// Corners of the type, of its halves, and what is small; for minutes also what their arithmetic
// divides by.
std::vector<int64_t> points(BasicType type) {
  const Bounds b = limits(type);
  std::vector<int64_t> p;
  for (int64_t x : {b.min, b.min + 1, b.min / 2, int64_t{-61}, int64_t{-1}, int64_t{0}, int64_t{1},
                    int64_t{3}, int64_t{60}, b.max / 2, b.max - 1, b.max})
    if (x >= b.min && x <= b.max) p.push_back(x);
  std::sort(p.begin(), p.end());
  p.erase(std::unique(p.begin(), p.end()), p.end());
  return p;
}

Value vector_of(BasicType type, const std::vector<int64_t>& x) {
  const auto as = [&]<class T>(T) {
    const std::vector<T> elements(x.begin(), x.end());
    return reference::vector_of<T>(type, std::span<const T>(elements));
  };
  switch (data::plain_width(type)) {
    case 1: return as(int8_t{});
    case 2: return as(int16_t{});
    case 4: return as(int32_t{});
    default: return as(int64_t{});
  }
}
int64_t element(const Value& v, uint64_t i) {
  switch (data::plain_width(v.type)) {
    case 1: return v.type == BasicType::boolean ? v.as<uint8_t>()[i] : v.as<int8_t>()[i];
    case 2: return v.as<int16_t>()[i];
    case 4: return v.as<int32_t>()[i];
    default: return v.as<int64_t>()[i];
  }
}

std::optional<Value> called(Builtin builtin, const std::vector<Value>& arguments) {
  auto made = reference::call(builtin, arguments, nullptr, rndn::test::NoTables(), nullptr);
  if (!made || made->size() != 1 || !(*made)[0].is_vector()) return std::nullopt;
  return (*made)[0];
}

// Elements of a builtin by pair of points, where it gives one.
struct Grid {
  BasicType result{};
  bool any = false;
  struct Element {
    bool there = false;
    int64_t value = 0;
  };
  std::vector<Element> at;  // of x[i] and y[j] at i * y.size() + j
};
Grid grid_of(Builtin builtin, BasicType a, const std::vector<int64_t>& x, BasicType b,
             const std::vector<int64_t>& y) {
  Grid grid{.at = std::vector<Grid::Element>(x.size() * y.size())};
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t j = 0; j < y.size(); ++j) {
      const auto made = called(builtin, {vector_of(a, {x[i]}), vector_of(b, {y[j]})});
      if (!made || made->size != 1 || !limits(made->type).known()) continue;
      grid.result = made->type;
      grid.any = true;
      grid.at[i * y.size() + j] = {true, element(*made, 0)};
    }
  return grid;
}

bool is_elementwise(Builtin builtin, size_t arity) {
  const hir::BuiltinRow& row = hir::row(builtin);
  return row.min_arity == arity && row.max_arity == arity &&
         row.geometry == hir::GeometryRule::result &&
         row.shape_rule == (arity == 1 ? hir::ShapeRule::argument0 : hir::ShapeRule::broadcast);
}

TEST(Bounds, HoldWhateverWraps) {
  size_t checked = 0, known = 0, exact = 0;
  for (size_t k = 0; k < hir::builtin_count(); ++k) {
    const auto builtin = static_cast<Builtin>(k);
    if (!is_elementwise(builtin, 2)) continue;
    for (BasicType a : integral_types())
      for (BasicType b : integral_types()) {
        const std::vector<int64_t> x = points(a), y = points(b);
        const Grid grid = grid_of(builtin, a, x, b, y);
        if (!grid.any) continue;
        for (size_t x0 = 0; x0 < x.size(); ++x0)
          for (size_t x1 = x0; x1 < x.size(); ++x1)
            for (size_t y0 = 0; y0 < y.size(); ++y0)
              for (size_t y1 = y0; y1 < y.size(); ++y1) {
                const Interval arguments[] = {{a, {x[x0], x[x1]}}, {b, {y[y0], y[y1]}}};
                const Bounds told = bounds_of_call(builtin, grid.result, arguments, 1);
                ++checked;
                int64_t least = INT64_MAX, most = INT64_MIN;
                for (size_t i = x0; i <= x1; ++i)
                  for (size_t j = y0; j <= y1; ++j) {
                    const Grid::Element& e = grid.at[i * y.size() + j];
                    if (!e.there) continue;
                    least = e.value < least ? e.value : least;
                    most = e.value > most ? e.value : most;
                  }
                if (told.known() && least <= most) {
                  ++known;
                  ASSERT_TRUE(told.min <= least && told.max >= most)
                      << hir::row(builtin).name << " of " << hir::basic_type_name(a) << " " << x[x0]
                      << ".." << x[x1] << " and " << hir::basic_type_name(b) << " " << y[y0] << ".."
                      << y[y1] << ": " << told.min << ".." << told.max << ", but " << least << ".."
                      << most;
                }
                // Whole numbers tell where a sum or difference of integers wraps.
                if ((builtin != Builtin::plus && builtin != Builtin::minus) ||
                    !hir::is_integer(a) || !hir::is_integer(b))
                  continue;
                const __int128 low = builtin == Builtin::plus
                                         ? static_cast<__int128>(x[x0]) + y[y0]
                                         : static_cast<__int128>(x[x0]) - y[y1],
                               high = builtin == Builtin::plus
                                          ? static_cast<__int128>(x[x1]) + y[y1]
                                          : static_cast<__int128>(x[x1]) - y[y0];
                const Bounds all = limits(grid.result);
                const bool fits = low >= all.min && high <= all.max;
                ASSERT_EQ(told.known(), fits)
                    << hir::basic_type_name(a) << " " << hir::basic_type_name(b);
                exact += fits;
                if (fits) {
                  ASSERT_EQ(told.min, static_cast<int64_t>(low));
                  ASSERT_EQ(told.max, static_cast<int64_t>(high));
                }
              }
      }
  }
  EXPECT_GT(checked, 1'000'000u);
  EXPECT_GT(known, 100'000u);
  EXPECT_GT(exact, 50'000u);
}

// All values of the narrow types, every interval between them.
TEST(Bounds, HoldForAllNarrowValues) {
  const auto whole_of = [](Builtin builtin, int64_t x, int64_t y) {
    switch (builtin) {
      case Builtin::plus: return x + y;
      case Builtin::minus: return x - y;
      case Builtin::mul: return x * y;
      case Builtin::div: return x / y;
      default: return x % y;
    }
  };
  for (BasicType type : {BasicType::character, BasicType::i8})
    for (Builtin builtin :
         {Builtin::plus, Builtin::minus, Builtin::mul, Builtin::div, Builtin::mod})
      for (int64_t from = -128; from <= 127; from += 5)
        for (int64_t to = from; to <= 127; to += 9)
          for (const Bounds other : {Bounds{-128, -120}, {-3, 4}, {-2, -1}, {100, 127}, {-128, 127}}) {
            const Interval arguments[] = {{type, {from, to}}, {type, other}};
            const Bounds told = bounds_of_call(builtin, type, arguments, 1);
            const bool divides = builtin == Builtin::div || builtin == Builtin::mod;
            bool wraps = false;
            int64_t least = INT64_MAX, most = INT64_MIN;
            for (int64_t x = from; x <= to; ++x)
              for (int64_t y = other.min; y <= other.max; ++y) {
                if (divides && y == 0) continue;  // an error
                const int64_t whole = whole_of(builtin, x, y);
                const int64_t value = static_cast<int8_t>(whole);
                wraps |= whole != value;
                least = value < least ? value : least;
                most = value > most ? value : most;
              }
            ASSERT_TRUE(!told.known() || (told.min <= least && told.max >= most));
            const bool by_zero = builtin == Builtin::div && other.min <= 0 && other.max >= 0;
            ASSERT_EQ(told.known(), !wraps && !by_zero);
          }
}

TEST(Bounds, HoldForOneArgument) {
  size_t known = 0;
  for (size_t k = 0; k < hir::builtin_count(); ++k) {
    const auto builtin = static_cast<Builtin>(k);
    if (!is_elementwise(builtin, 1)) continue;
    for (BasicType type : integral_types()) {
      std::vector<int64_t> x = points(type);
      if (type == BasicType::date)  // first and last days of years, up to where years leave 16 bits
        for (int64_t day : {-719528, -1, 364, 365, 789, 11016, 11248737, 11248738, 11248739})
          x.push_back(day);
      std::sort(x.begin(), x.end());
      for (size_t from = 0; from < x.size(); ++from)
        for (size_t to = from; to < x.size(); ++to) {
          const std::vector<int64_t> inside(x.begin() + static_cast<std::ptrdiff_t>(from),
                                            x.begin() + static_cast<std::ptrdiff_t>(to) + 1);
          const auto made = called(builtin, {vector_of(type, inside)});
          if (!made || !limits(made->type).known()) continue;
          const Interval argument{type, {inside.front(), inside.back()}};
          const Bounds told = bounds_of_call(builtin, made->type, {&argument, 1}, inside.size());
          for (uint64_t i = 0; told.known() && i < made->size; ++i, ++known)
            ASSERT_TRUE(told.min <= element(*made, i) && told.max >= element(*made, i))
                << hir::row(builtin).name << " of " << hir::basic_type_name(type) << " "
                << inside[0];
        }
    }
  }
  EXPECT_GT(known, 500u);
}

// Selections and joins of vectors, where the second of them may be of another type.
TEST(Bounds, HoldForSelections) {
  std::mt19937 random(3);
  for (BasicType a : integral_types())
    for (BasicType b : integral_types())
      for (int round = 0; round < 20; ++round) {
        const std::vector<int64_t> px = points(a), py = points(b);
        std::vector<int64_t> x, y, places, mask;
        for (int i = 0; i < 5; ++i) {
          x.push_back(px[random() % px.size()]);
          y.push_back(py[random() % py.size()]);
          places.push_back(static_cast<int64_t>(random() % 5));
          mask.push_back(static_cast<int64_t>(random() % 2));
        }
        const auto interval = [](BasicType type, const std::vector<int64_t>& v) {
          const auto [low, high] = std::minmax_element(v.begin(), v.end());
          return Interval{type, {*low, *high}};
        };
        struct Operand {
          BasicType type;
          std::vector<int64_t> elements;
        };
        const std::pair<Builtin, std::vector<Operand>> calls[] = {
            {Builtin::compress, {{BasicType::boolean, mask}, {a, x}}},
            {Builtin::vector, {{BasicType::i64, {3}}, {a, {x[0]}}}},
            {Builtin::index, {{a, x}, {BasicType::i64, places}}},
            {Builtin::reverse, {{a, x}}},
            {Builtin::append, {{a, x}, {b, y}}},
            {Builtin::index_a, {{a, x}, {BasicType::i64, places}, {b, y}}},
            {Builtin::index_or, {{a, x}, {BasicType::i64, {0, -1, 9}}, {a, {px[0]}}}},
            {Builtin::select, {{BasicType::boolean, mask}, {b, y}, {b, {py[0]}}}},
            {Builtin::where, {{BasicType::boolean, mask}}},
            {Builtin::range, {{BasicType::i64, {places[0]}}}},
            {Builtin::len, {{a, x}}},
            {Builtin::take, {{BasicType::i64, {7}}, {a, x}}},
            {Builtin::drop, {{BasicType::i64, {2}}, {a, x}}},
        };
        for (const auto& [builtin, operands] : calls) {
          std::vector<Value> values;
          std::vector<Interval> intervals;
          for (const Operand& o : operands) {
            values.push_back(vector_of(o.type, o.elements));
            intervals.push_back(interval(o.type, o.elements));
          }
          const auto made = called(builtin, values);
          if (!made || !limits(made->type).known()) continue;
          const Bounds told = bounds_of_call(builtin, made->type, intervals, 5);
          for (uint64_t i = 0; told.known() && i < made->size; ++i)
            ASSERT_TRUE(told.min <= element(*made, i) && told.max >= element(*made, i))
                << hir::row(builtin).name << " of " << hir::basic_type_name(a) << ", "
                << hir::basic_type_name(b);
        }
      }
}

// A table `t` of one column `a`, whose statistics say more than the programs below leave true.
class OneColumn final : public reference::Tables {
 public:
  OneColumn(BasicType type, const std::vector<int64_t>& elements) {
    data::Column column = data::make_column(type, elements.size());
    const Value v = vector_of(type, elements);
    std::memcpy(column.data->data(), v.bytes->data(), elements.size() * column.width);
    data::compute_statistics(column);
    column_ = std::make_shared<const data::Column>(std::move(column));
  }
  Result<void> open(std::string_view) const override { return {}; }
  Result<std::vector<std::string>> column_names(std::string_view) const override {
    return std::vector<std::string>{"a"};
  }
  Result<uint64_t> rows(std::string_view) const override { return column_->rows; }
  Result<std::shared_ptr<const data::Column>> column(std::string_view,
                                                     std::string_view) const override {
    return column_;
  }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view) const override {
    return column_;
  }

 private:
  std::shared_ptr<const data::Column> column_;
};

// On the simulator and on the reference interpreter: operators whose keys come from arithmetic that
// wraps.
void expect_equal_results(BasicType type, const std::vector<int64_t>& elements,
                          const std::string& derived) {
  const OneColumn tables(type, elements);
  for (const char* then : {"d:? = @group(y); k:? = @keys(d); r:? = @index(y, k); return r;",
                           "o:? = @order(y, 1:bool); r:? = @index(y, o); return r;",
                           "u:? = @unique(y); r:? = @index(y, u); return r;",
                           "h:? = @reverse(y); r:? = @member(y, h); return r;",
                           "h:? = @reverse(y); r:? = @index_of(y, h); return r;",
                           "d:? = @group(y); v:? = @values(d); e:? = @each_right(@index, y, v); "
                           "f:? = @each(@min, e); r:? = @raze(f); "
                           "return r;",
                           "j:? = @join_index(@eq, y, y); r:? = @index(j, 1:i64); return r;"}) {
    SourceManager sources;
    DiagnosticSink sink;
    Timings timings;
    const std::string text = fmt::format(
        "module m {{ import Builtin.*; def main() : ? {{ t:? = @load_table(`t:sym); a:{0} = "
        "check_cast(@column_value(t, `a:sym), {0}); {1} {2} }} }}",
        hir::basic_type_name(type), derived, then);
    CompileOptions options;
    options.target = "sm_86";
    auto compiled = compile(sources.add("t.hir", text), sources, options, sink, timings);
    ASSERT_TRUE(compiled) << compiled.error().message << render(sink, sources) << text;
    auto device = open_simulator("sm_86");
    ASSERT_TRUE(device);
    Engine engine(**device, tables);
    auto plan = engine.plan(*compiled, sources, {}, timings);
    ASSERT_TRUE(plan) << plan.error().message;
    auto got = engine.run(**plan, timings),
         want = reference::run(compiled->program, tables, sources, nullptr);
    ASSERT_TRUE(got) << got.error().message << text;
    ASSERT_TRUE(want) << want.error().message << text;
    EXPECT_EQ(*print_result(*got, Format::csv), *print_result(*want, Format::csv)) << text;
  }
}

// What is kept is told again for the same arguments only.
TEST(Bounds, AreKeptForArgumentsOfWhichTheSameIsKnown) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  CompileOptions options;
  options.target = "sm_86";
  auto compiled = compile(
      sources.add("t.hir",
                  "module m { import Builtin.*; def main() : ? { t:? = @load_table(`t:sym); a:i32 = "
                  "check_cast(@column_value(t, `a:sym), i32); x:? = @plus(a, 1:i32); m:? = @gt(x, 3:i32); w:? = @where(m); return w; } }"),
      sources, options, sink, timings);
  ASSERT_TRUE(compiled) << compiled.error().message << render(sink, sources);
  const hir::Program& program = compiled->outlined.program;
  ASSERT_FALSE(compiled->outlined.kernels.empty());
  const hir::Function& f = program.functions[compiled->outlined.kernels[0].function];
  std::vector<ItemPtr> inputs;
  for (size_t i = 0; i < f.parameters.size(); ++i) {
    inputs.push_back(std::make_shared<Item>());
    inputs[i]->kind = Item::vector;
    inputs[i]->type = BasicType::i32;
  }
  ASSERT_FALSE(inputs.empty());
  Item& a = *inputs[0];
  KeptBounds kept;
  const auto told = [&](uint64_t elements) {
    std::vector<std::tuple<int64_t, int64_t, bool>> now, fresh;
    for (const VariableBounds& v : bounds_in(kept, program, f, elements, inputs)) now.emplace_back(v.bounds.min, v.bounds.max, v.ascending);
    for (const VariableBounds& v : bounds_in(program, f, elements, inputs)) fresh.emplace_back(v.bounds.min, v.bounds.max, v.ascending);
    EXPECT_EQ(now, fresh);
    return now;
  };
  a.bounds = {0, 10}, a.capacity = 5;
  auto before = told(5);
  EXPECT_EQ(told(5), before);
  const auto expect_change = [&](uint64_t elements) {
    auto now = told(elements);
    EXPECT_NE(now, before);
    before = std::move(now);
  };
  a.bounds.max = 11;
  expect_change(5);
  a.bounds.min = -1;
  expect_change(5);
  a.ascending = true;
  expect_change(5);
  a.capacity = 6;
  expect_change(5);
  expect_change(9);
}

TEST(Bounds, OperatorsSeeWrappedKeys) {
  std::vector<int64_t> letters, bytes;
  for (int i = 0; i < 300; ++i)
    letters.push_back("ABC"[i % 3]), bytes.push_back(i * 37 % 256 - 128);
  expect_equal_results(BasicType::character, letters, "y:? = @plus(a, a);");
  expect_equal_results(BasicType::character, bytes, "y:? = @minus(a, 'z':char);");
  expect_equal_results(BasicType::i8, bytes, "y:? = @plus(a, 100:i8);");
  expect_equal_results(BasicType::character, bytes, "y:? = @reverse(a);");
  std::sort(bytes.begin(), bytes.end());  // ascends as signed numbers
  expect_equal_results(BasicType::character, bytes,
                       "m:? = @neq(a, 'B':char); y:? = @compress(m, a);");
  std::vector<int64_t> wide, minutes, days;
  for (int i = 0; i < 200; ++i) {
    wide.push_back(i % 2 ? INT64_MAX - i % 7 : INT64_MIN + i % 5);
    minutes.push_back(i % 24 * 3600 + i % 3 * 60);
    days.push_back(11248000 + i * 17);
  }
  expect_equal_results(BasicType::i64, wide, "y:? = @plus(a, a);");
  expect_equal_results(BasicType::i64, wide, "y:? = @minus(a, 1:i64);");
  expect_equal_results(BasicType::minute, minutes, "b:? = @reverse(a); y:? = @minus(a, b);");
  expect_equal_results(BasicType::date, days, "y:? = @date_year(a);");
}

}  // namespace
}  // namespace rndn::runtime::bounds_test
