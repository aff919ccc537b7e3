// Sums of floats in programs: the exact sum, rounded once, on three targets in every outline mode,
// whatever the kernels can do. A program runs again, on the device, when and only when its sums
// need more bits than kernels have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "runtime/engine.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/support/big_sum.h"
#include "tests/support/no_tables.h"

namespace rndn::runtime::sums_test {
namespace {

constexpr const char* targets[] = {"sm_61", "sm_86", "sm_90"};
constexpr outliner::Mode modes[] = {outliner::Mode::none, outliner::Mode::flow,
                                    outliner::Mode::full};

uint64_t bits(double x) { return std::isnan(x) ? 0 : std::bit_cast<uint64_t>(x); }

std::vector<uint64_t> bits_of(const reference::Value& v) {
  std::vector<uint64_t> out;
  if (v.is_vector())
    for (uint64_t i = 0; i < v.size; ++i)
      out.push_back(v.type == hir::BasicType::f32   ? bits(v.as<float>()[i])
                    : v.type == hir::BasicType::f64 ? bits(v.as<double>()[i])
                                                    : static_cast<uint64_t>(v.as<int64_t>()[i]));
  else
    for (const reference::Value& cell : v.parts())
      for (uint64_t b : bits_of(cell)) out.push_back(b);
  return out;
}

// The declaration of a vector. What has no notation comes from divisions by zero.
std::string vector_of(const std::string& name, std::string_view type,
                      const std::vector<double>& x) {
  std::string numerators, denominators;
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = type == "f32" ? static_cast<float>(x[i]) : x[i];
    const double shown = std::isnan(v) ? 0 : std::isinf(v) ? std::copysign(1.0, v) : v;
    numerators += fmt::format("{}{:.17g}", i ? "," : "", shown);
    denominators += fmt::format("{}{}", i ? "," : "", std::isfinite(v) ? 1 : 0);
  }
  return fmt::format(" {0}_n:? = ({1}):{3}; {0}_d:? = ({2}):{3}; {0}:? = @div({0}_n, {0}_d);\n",
                     name, numerators, denominators, type);
}

struct Outcome {
  std::vector<std::vector<uint64_t>> results;
  bool again = false;  // it ran again
};

// Twice, the second time with what the first one learnt; both must say what the interpreter says.
Outcome run(const std::string& text, const char* target, outliner::Mode mode) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  CompileOptions options;
  options.target = target;
  options.outline = mode;
  auto compiled = compile(sources.add("t.hir", text), sources, options, sink, timings);
  Outcome out;
  EXPECT_TRUE(compiled.ok()) << compiled.error().message << render(sink, sources);
  if (!compiled) return out;
  rndn::test::NoTables tables;
  auto device = open_simulator(target);
  Engine engine(**device, tables);
  auto plan = engine.plan(*compiled, sources, {.allow_fallback = false}, timings);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  if (!plan) return out;
  auto want = reference::run(compiled->program, tables, sources, nullptr);
  EXPECT_TRUE(want.ok()) << want.error().message;
  for (int k = 0; k < 2 && want; ++k) {
    std::vector<KernelReport> kernels;
    std::vector<std::string> fallbacks;
    auto got = engine.run(**plan, timings, nullptr, &kernels, &fallbacks);
    EXPECT_TRUE(got.ok()) << got.error().message;
    if (!got) return out;
    EXPECT_THAT(fallbacks, testing::IsEmpty());
    EXPECT_EQ(got->size(), want->size());
    out.results.clear();
    for (size_t r = 0; r < got->size(); ++r) {
      out.results.push_back(bits_of((*got)[r]));
      EXPECT_EQ(out.results.back(), bits_of((*want)[r]))
          << target << " mode " << static_cast<int>(mode) << " result " << r;
    }
    const bool by_operator = std::any_of(kernels.begin(), kernels.end(), [](const auto& kernel) {
      return kernel.name.starts_with("exact_deposit");
    });
    if (k == 0) out.again = by_operator;
    EXPECT_EQ(by_operator, out.again) << "what a run has learnt stays";
  }
  return out;
}

std::vector<double> numbers(const rndn::test::Hard& hard, size_t n, std::mt19937_64& random) {
  std::vector<double> x(std::max<size_t>(n, 3));
  hard.fill(x, random);
  x.resize(n);
  return x;
}

TEST(Sums, OfVectors) {
  std::mt19937_64 random(1);
  size_t turn = 0;
  for (const rndn::test::Hard& hard : rndn::test::hard_sums)
    for (size_t n : {1, 31, 1025}) {
      const char* target = targets[turn % 3];
      const outliner::Mode mode = modes[turn++ / 3 % 3];
      SCOPED_TRACE(fmt::format("{}: {} rows", hard.name, n));
      const std::vector<double> x = numbers(hard, n, random);
      rndn::test::BigSum all, singles;
      for (double v : x) all.add(v), singles.add(static_cast<float>(v));
      const std::string text =
          "module m { import Builtin.*; def main() : ?, ?, ?, ?, ? {\n" + vector_of("y", "f64", x) +
          vector_of("z", "f32", x) + " m:? = @geq(y, 0:f64);\n" +
          " s:? = @sum(y); a:? = @avg(y); p:? = @compress(m, y); t:? = @sum(p);\n" +
          " u:? = @sum(z); v:? = @avg(z);\n" + " return s, a, t, u, v; } }";
      const Outcome got = run(text, target, mode);
      ASSERT_EQ(got.results.size(), 5u);
      EXPECT_EQ(got.results[0][0], bits(all.rounded()));
      EXPECT_EQ(got.results[1][0], bits(all.rounded() / static_cast<double>(n)));
      EXPECT_EQ(got.results[3][0], bits(singles.rounded_to_float()));
      if (hard.again == rndn::test::Again::never) {
        EXPECT_FALSE(got.again);
      }
      if (hard.again == rndn::test::Again::always && n >= 3) {
        EXPECT_TRUE(got.again);
      }
    }
}

TEST(Sums, OfCells) {
  std::mt19937_64 random(2);
  size_t turn = 0;
  for (const rndn::test::Hard& hard : rndn::test::hard_sums)
    for (const auto& [n, groups] : {std::pair<size_t, int>{31, 1}, {1025, 5}, {1025, 400}}) {
      const char* target = targets[turn % 3];
      const outliner::Mode mode = modes[turn++ / 3 % 3];
      SCOPED_TRACE(fmt::format("{}: {} rows, {} groups", hard.name, n, groups));
      std::string keys = "(";
      for (size_t i = 0; i < n; ++i)
        keys += fmt::format("{}{}", i ? "," : "", random() % static_cast<uint64_t>(groups));
      const std::vector<double> x = numbers(hard, n, random);
      const std::string text =
          "module m { import Builtin.*; def main() : ?, ?, ? {\n k:? = " + keys + "):i64;\n" +
          vector_of("x", "f64", x) + vector_of("y", "f32", x) +
          " g:? = @group(k); r:? = @values(g);\n" + " c:? = @each_right(@index, x, r);\n" +
          " s:? = @each(@sum, c); a:? = @each(@avg, c);\n" + " d:? = @each_right(@index, y, r);\n" +
          " t:? = @each(@sum, d);\n" +
          " rs:? = @raze(s); ra:? = @raze(a); rt:? = @raze(t); return rs, ra, rt; } }";
      const Outcome got = run(text, target, mode);
      if (hard.again == rndn::test::Again::never) {
        EXPECT_FALSE(got.again);
      }
      if (hard.again == rndn::test::Again::always && groups == 1) {
        EXPECT_TRUE(got.again);
      }
    }
}

}  // namespace
}  // namespace rndn::runtime::sums_test
