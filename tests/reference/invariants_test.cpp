// Results of orders, groupings and joins: right ones hold, and each way to be wrong is noticed.
#include "runtime/reference/invariants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "runtime/data/tables.h"
#include "runtime/reference/reference.h"

namespace rndn::invariants_test {
namespace {

using hir::BasicType;
using hir::Builtin;
using namespace reference;
using ::testing::HasSubstr;

Value i64s(const std::vector<int64_t>& x) { return vector_of<int64_t>(BasicType::i64, std::span<const int64_t>(x)); }
Value f64s(const std::vector<double>& x) { return vector_of<double>(BasicType::f64, std::span<const double>(x)); }
Value bools(std::initializer_list<uint8_t> x) { return vector_of<uint8_t>(BasicType::boolean, x); }
Value compare(std::initializer_list<Builtin> builtins) {
  std::vector<hir::FunctionRef> refs;
  for (Builtin b : builtins) refs.push_back({.kind = hir::FunctionRef::builtin, .builtin_id = b});
  return reference::functions(std::move(refs));
}
std::string broken(Builtin builtin, const std::vector<Value>& arguments, const Value& result) {
  const Held held = check_operator(builtin, arguments, result);
  EXPECT_TRUE(held.known);
  return held.broken;
}

TEST(Invariants, Orders) {
  const double nan = std::nan("");
  const std::vector<Value> up = {f64s({3, 1, nan, 1, 2}), bools({1})}, down = {f64s({3, 1, nan, 1, 2}), bools({0})};
  EXPECT_EQ(broken(Builtin::order, up, i64s({1, 3, 4, 0, 2})), "");
  EXPECT_EQ(broken(Builtin::order, down, i64s({0, 4, 1, 3, 2})), "");
  EXPECT_THAT(broken(Builtin::order, up, i64s({3, 1, 4, 0, 2})), HasSubstr("rows 3 and 1, at place 1"));  // not stable
  EXPECT_THAT(broken(Builtin::order, up, i64s({1, 4, 3, 0, 2})), HasSubstr("wrong order"));
  EXPECT_THAT(broken(Builtin::order, down, i64s({2, 0, 4, 1, 3})), HasSubstr("wrong order"));
  EXPECT_THAT(broken(Builtin::order, up, i64s({1, 1, 4, 0, 2})), HasSubstr("place 1 has row 1"));
  EXPECT_THAT(broken(Builtin::order, up, i64s({1, 3, 4, 0, 5})), HasSubstr("place 4 has row 5"));
  EXPECT_THAT(broken(Builtin::order, up, i64s({1, 3, 4, 0})), HasSubstr("4 rows are ordered, and not 5"));

  std::vector<Value> two = {data::list({i64s({1, 1, 0}), i64s({5, 6, 7})}), bools({1, 0})};
  EXPECT_EQ(broken(Builtin::order, two, i64s({2, 1, 0})), "");
  EXPECT_NE(broken(Builtin::order, two, i64s({2, 0, 1})), "");
  two.push_back(i64s({2}));
  EXPECT_EQ(broken(Builtin::gpu_top_lib, two, i64s({2, 1})), "");
  EXPECT_THAT(broken(Builtin::gpu_top_lib, two, i64s({2, 0})), HasSubstr("row 1 is not among the first 2"));
}

TEST(Invariants, Groups) {
  const std::vector<Value> x = {i64s({5, 3, 5, 4, 3})};
  const auto groups = [](const std::vector<int64_t>& keys, const std::vector<std::vector<int64_t>>& cells) {
    std::vector<Value> values;
    for (const auto& cell : cells) values.push_back(i64s(cell));
    return data::dict(i64s(keys), data::list(std::move(values)));
  };
  EXPECT_EQ(broken(Builtin::group, x, groups({1, 3, 0}, {{1, 4}, {3}, {0, 2}})), "");
  EXPECT_THAT(broken(Builtin::group, x, groups({1, 3, 0}, {{1, 4}, {3}, {0}})), HasSubstr("4 of 5 rows"));
  EXPECT_THAT(broken(Builtin::group, x, groups({1, 3, 0}, {{1, 4}, {3, 4}, {0, 2}})), HasSubstr("in another group"));
  EXPECT_THAT(broken(Builtin::group, x, groups({1, 0}, {{1, 3, 4}, {0, 2}})), HasSubstr("differ"));
  EXPECT_THAT(broken(Builtin::group, x, groups({1, 0, 3}, {{1, 4}, {0, 2}, {3}})),
              HasSubstr("groups 1 and 2 do not ascend"));
  EXPECT_THAT(broken(Builtin::group, x, groups({1, 4, 3, 0}, {{1}, {4}, {3}, {0, 2}})),
              HasSubstr("groups 0 and 1"));  // one key twice
  EXPECT_THAT(broken(Builtin::group, x, groups({4, 3, 0}, {{4, 1}, {3}, {0, 2}})), HasSubstr("do not ascend"));
  EXPECT_THAT(broken(Builtin::group, x, groups({4, 3, 0}, {{1, 4}, {3}, {0, 2}})), HasSubstr("begin with its key"));
}

TEST(Invariants, Joins) {
  const std::vector<Value> equal = {compare({Builtin::eq}), i64s({1, 2, 2}), i64s({2, 3, 1, 2})};
  const auto pairs = [](const std::vector<int64_t>& left, const std::vector<int64_t>& right) {
    return data::list({i64s(left), i64s(right)});
  };
  EXPECT_EQ(broken(Builtin::join_index, equal, pairs({1, 2, 0, 1, 2}, {0, 0, 2, 3, 3})), "");
  EXPECT_THAT(broken(Builtin::join_index, equal, pairs({1, 2, 0, 1}, {0, 0, 2, 3})),
              HasSubstr("there are 4 pairs, and 5 match"));
  EXPECT_THAT(broken(Builtin::join_index, equal, pairs({1, 2, 0, 1, 1}, {0, 0, 2, 3, 3})),
              HasSubstr("do not ascend"));  // one twice, one lost
  EXPECT_THAT(broken(Builtin::join_index, equal, pairs({2, 1, 0, 1, 2}, {0, 0, 2, 3, 3})), HasSubstr("do not ascend"));
  EXPECT_THAT(broken(Builtin::join_index, equal, pairs({1, 2, 0, 1, 2}, {0, 0, 1, 3, 3})), HasSubstr("do not match"));
  EXPECT_THAT(broken(Builtin::join_index, equal, pairs({1, 2, 0, 1, 3}, {0, 0, 2, 3, 3})), HasSubstr("not there"));

  // Of a comparison beside the keys pairs are counted one by one.
  const std::vector<Value> more = {compare({Builtin::eq, Builtin::lt}), data::list({i64s({2, 2}), i64s({1, 9})}),
                                   data::list({i64s({2, 2}), i64s({5, 1})})};
  EXPECT_EQ(broken(Builtin::join_index, more, pairs({0}, {0})), "");
  EXPECT_THAT(broken(Builtin::join_index, more, pairs({}, {})), HasSubstr("there are 0 pairs, and 1 match"));
  EXPECT_THAT(broken(Builtin::join_index, more, pairs({0, 1}, {0, 0})), HasSubstr("do not match"));
  const std::vector<Value> only = {compare({Builtin::geq}), i64s({1, 5}), i64s({3})};
  EXPECT_EQ(broken(Builtin::join_index, only, pairs({1}, {0})), "");
  EXPECT_NE(broken(Builtin::join_index, only, pairs({}, {})), "");
}

// The interpreter's own results over random columns hold.
TEST(Invariants, HoldOfTheInterpretersResults) {
  std::mt19937 random(7);
  const data::NoTables tables;
  for (int round = 0; round < 50; ++round) {
    const auto column = [&](size_t n) {
      std::vector<double> x(n);
      for (double& v : x) v = random() % 11 == 0 ? std::nan("") : static_cast<double>(random() % 7) - 3;
      return f64s(x);
    };
    const size_t n = random() % 60;
    const Value a = column(n), b = column(n), c = column(random() % 40);
    const std::vector<std::pair<Builtin, std::vector<Value>>> calls = {
        {Builtin::order, {data::list({a, b}), bools({0, 1})}},
        {Builtin::group, {data::list({a, b})}},
        {Builtin::join_index, {compare({Builtin::eq}), a, c}},
        {Builtin::join_index, {compare({Builtin::eq, Builtin::neq}), data::list({a, b}), data::list({c, c})}},
        {Builtin::join_index, {compare({Builtin::leq}), a, c}}};
    for (const auto& [builtin, arguments] : calls) {
      const auto result = call(builtin, arguments, nullptr, tables, nullptr);
      ASSERT_TRUE(result) << result.error().message;
      const Held held = check_operator(builtin, arguments, result->at(0));
      EXPECT_TRUE(held.known && held.complete);
      EXPECT_EQ(held.broken, "") << round;
    }
  }
}

TEST(Invariants, OthersAreNotKnown) {
  EXPECT_FALSE(check_operator(Builtin::unique, std::vector{i64s({1})}, i64s({0})).known);
}

}  // namespace
}  // namespace rndn::invariants_test
