// Every builtin against expected values that were worked out by hand or from the definition, not copied from the
// interpreter's output.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "frontend/builtins.h"
#include "runtime/reference/reference.h"
#include "tests/reference/notation.h"
#include "tests/support/status.h"

namespace rndn::reference {
namespace testing {
namespace {

using hir::BasicType;

// One table, `t`, with a number, a text and a foreign key column into itself.
class FakeTables : public Tables {
 public:
  Result<void> open(std::string_view t) const override {
    if (t != "t") return input_error("unknown table `{}`", t);
    return {};
  }
  Result<std::vector<std::string>> column_names(std::string_view) const override {
    return std::vector<std::string>{"id", "parent"};
  }
  Result<uint64_t> rows(std::string_view) const override { return uint64_t{3}; }
  Result<std::shared_ptr<const data::Column>> column(std::string_view, std::string_view name) const override {
    if (name != "id" && name != "parent") return input_error("unknown column `{}`", name);
    auto c = std::make_shared<data::Column>();
    c->type = BasicType::i32;
    c->width = 4;
    c->rows = 3;
    std::vector<int32_t> ids = name == "id" ? std::vector<int32_t>{10, 20, 30} : std::vector<int32_t>{30, 30, 10},
                         parents = {2, 2, 0};
    auto bytes = [](const std::vector<int32_t>& x) {
      const auto* begin = reinterpret_cast<const std::byte*>(x.data());
      return std::make_shared<data::Bytes>(std::vector<std::byte>(begin, begin + x.size() * 4));
    };
    c->data = bytes(ids);
    if (name == "parent") {
      c->is_foreign_key = true;
      c->foreign_table = "t";
      c->foreign_rows = bytes(parents);
    }
    return std::shared_ptr<const data::Column>(c);
  }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view t) const override { return column(t, "id"); }
};

std::string evaluate(const std::string& name, const std::vector<Value>& arguments, std::string* printed = nullptr,
                     RunState* state = nullptr) {
  hir::Builtin id;
  if (!hir::find_builtin(name, id)) return "no such builtin";
  FakeTables tables;
  Result<std::vector<Value>> result = call(id, arguments, nullptr, tables, printed, nullptr, state);
  return result.ok() ? show((*result)[0]) : "error: " + result.error().message;
}

struct Case {
  const char* name;
  std::vector<const char*> arguments;
  const char* expected;
};

const Case cases[] = {
    // Arithmetic: the widest type of `complex f64 f32 i64 i32 i16 i8 char bool` wins; lengths broadcast; integers wrap.
    {"plus", {"i32 1 2 3", "i64 10"}, "i64 11 12 13"},
    {"plus", {"i64 1", "f32 0.5 1.5"}, "f32 1.5 2.5"},
    {"plus", {"bool 1 1", "bool 1 0"}, "i16 2 1"},
    {"plus", {"i8 127", "i8 1"}, "i8 -128"},
    {"plus", {"i64 9223372036854775807", "i64 1"}, "i64 -9223372036854775808"},
    {"plus", {"i32 5", "i32"}, "i32"},
    {"plus", {"i32 1 2", "i32 1 2 3"}, "error: `plus` expects vectors of one length or a scalar, got 2 and 3 elements"},
    {"plus", {"date 0 31", "i32 1"}, "date 1 32"},
    {"plus", {"i16 2", "month 5"}, "month 7"},
    {"plus", {"minute 60", "i32 2"}, "minute 180"},
    {"plus", {"second 60", "i32 2"}, "second 62"},
    {"plus", {"sym a", "i32 1"}, "error: `plus` is not defined for sym[1], i32[1]"},
    {"plus", {"complex 1+2i", "i32 1"}, "complex 2+2i"},
    {"minus", {"i32 1", "f64 0.25 1"}, "f64 0.75 0"},
    {"minus", {"date 100", "date 93"}, "i32 7"},
    {"minus", {"dt 5000000000", "dt 1"}, "i64 4999999999"},
    {"minus", {"minute 180", "minute 60"}, "i32 2"},
    {"minus", {"i32 1", "date 5"}, "error: `minus` is not defined for i32[1], date[1]"},
    {"mul", {"i16 300", "i16 300"}, "i16 24464"},  // 90000 - 65536
    {"mul", {"bool 1 0", "f64 2.5 3"}, "f64 2.5 0"},
    {"mul", {"complex 0+1i", "complex 0+1i"}, "complex -1+0i"},
    {"div", {"i32 7 -7 7 -7", "i32 2 2 -2 -2"}, "i32 3 -3 -3 3"},
    {"div", {"i32 -2147483648", "i32 -1"}, "i32 -2147483648"},
    {"div", {"i32 1 2", "i32 1 0"}, "error: `div` divides by zero at element 1"},
    {"div", {"f64 1 -1 0", "f64 0"}, "f64 inf -inf -nan"},
    {"div", {"f64 1", "i64 4"}, "f64 0.25"},
    {"mod", {"i32 7 -7 7 -7", "i32 3 3 -3 -3"}, "i32 1 -1 1 -1"},
    {"mod", {"i64 5", "i64 0"}, "error: `mod` divides by zero at element 0"},
    {"mod", {"f64 5.5", "f64 2"}, "f64 1.5"},
    {"power", {"i32 2", "i32 10"}, "f32 1024"},
    {"power", {"i64 2", "i32 10"}, "f64 1024"},
    {"logb", {"f64 2", "f64 8"}, "f64 3"},
    // Comparison and logic.
    {"lt", {"i32 1 2 3", "f64 2"}, "bool 1 0 0"},
    {"lt", {"f64 nan 1", "f64 1 nan"}, "bool 0 0"},
    {"lt", {"sym apple b B", "sym apples B b"}, "bool 1 0 1"},
    {"gt", {"date 3 1", "date 2"}, "bool 1 0"},
    {"gt", {"date 3", "month 2"}, "error: `gt` is not defined for date[1], month[1]"},
    {"leq", {"i8 -1 0 1", "i64 0"}, "bool 1 1 0"},
    {"geq", {"char 65 66", "char 66"}, "bool 0 1"},
    {"eq", {"sym a b", "str a c"}, "bool 1 0"},
    {"eq", {"f64 0.1 nan", "f64 0.1 nan"}, "bool 1 0"},
    {"eq", {"complex 1+2i", "complex 1+2i"}, "bool 1"},
    {"neq", {"f64 1 nan", "f64 1 nan"}, "bool 0 1"},
    {"and", {"bool 0 0 1 1", "bool 0 1 0 1"}, "bool 0 0 0 1"},
    {"or", {"bool 0 0 1 1", "bool 0 1 0 1"}, "bool 0 1 1 1"},
    {"nand", {"bool 0 0 1 1", "bool 0 1 0 1"}, "bool 1 1 1 0"},
    {"nor", {"bool 0 0 1 1", "bool 0 1 0 1"}, "bool 1 0 0 0"},
    {"xor", {"bool 0 0 1 1", "bool 0 1 0 1"}, "bool 0 1 1 0"},
    {"and", {"i32 1", "bool 1"}, "error: `and` is not defined for i32[1], bool[1]"},
    {"not", {"bool 0 1"}, "bool 1 0"},
    // Unary.
    {"abs", {"i32 -5 5 -2147483648"}, "i32 5 5 -2147483648"},
    {"abs", {"f64 -0.5"}, "f64 0.5"},
    {"neg", {"bool 1 0"}, "i16 -1 0"},
    {"neg", {"i8 -128 3"}, "i8 -128 -3"},
    {"ceil", {"f64 1.2 -1.2"}, "f64 2 -1"},
    {"floor", {"f64 1.2 -1.2"}, "f64 1 -2"},
    {"round", {"f64 2.5 -2.5 0.4"}, "f64 3 -3 0"},
    {"round", {"i32 7"}, "i32 7"},
    {"conj", {"complex 1+2i"}, "complex 1-2i"},
    {"recip", {"i32 4"}, "f32 0.25"},
    {"recip", {"f64 0"}, "f64 inf"},
    {"signum", {"f64 -2 0 3"}, "i16 -1 0 1"},
    {"signum", {"i64 -9223372036854775808"}, "i16 -1"},
    {"pi", {"f64 1"}, "f64 3.141592653589793"},
    {"pi", {"complex 0+1i"}, "complex 0+3.141592653589793i"},
    {"log", {"f64 1"}, "f64 0"},
    {"log2", {"i32 8"}, "f32 3"},
    {"log10", {"i64 1000"}, "f64 3"},
    {"sqrt", {"f64 2.25 -1"}, "f64 1.5 -nan"},
    {"exp", {"f64 0"}, "f64 1"},
    {"cos", {"f64 0"}, "f64 1"},
    {"sin", {"f64 0"}, "f64 0"},
    {"tan", {"f64 0"}, "f64 0"},
    {"acos", {"f64 1"}, "f64 0"},
    {"asin", {"f64 1"}, "f64 1.5707963267948966"},
    {"atan", {"f64 1"}, "f64 0.7853981633974483"},
    {"cosh", {"f64 0"}, "f64 1"},
    {"sinh", {"f64 0"}, "f64 0"},
    {"tanh", {"f64 0"}, "f64 0"},
    {"acosh", {"f64 1"}, "f64 0"},
    {"asinh", {"f64 0"}, "f64 0"},
    {"atanh", {"f64 0"}, "f64 0"},
    {"fact", {"i32 0 1 5 20"}, "i64 1 1 120 2432902008176640000"},
    {"fact", {"i32 70"}, "i64 0"},
    // Calendar: 10440 is 1998-08-02, 59 is 1970-03-01, -1 is 1969-12-31, 11016 is 2000-02-29.
    {"date_year", {"date 10440 -1"}, "i16 1998 1969"},
    {"date_month", {"date 10440 59 -1 11016"}, "i16 8 3 12 2"},
    {"date_day", {"date 10440 59 -1 11016"}, "i16 2 1 31 29"},
    {"date_year", {"month 0 11 12 -1"}, "i16 1970 1970 1971 1969"},
    {"date_month", {"month 0 11 12 -1"}, "i16 1 12 1 12"},
    {"date_day", {"month 0"}, "error: `date_day` is not defined for month[1]"},
    {"date", {"dt 86400000 86399999 -1"}, "date 1 0 -1"},
    {"time", {"dt 86400001 -1"}, "time 1 86399999"},
    {"time_hour", {"minute 3660"}, "i16 1"},
    {"time_minute", {"second 3725"}, "i16 2"},
    {"time_second", {"second 3725"}, "i16 5"},
    {"time_mill", {"time 3725042"}, "i16 42"},
    {"time_mill", {"second 1"}, "error: `time_mill` is not defined for second[1]"},
    {"datetime_add", {"date 11016", "i32 1", "sym year"}, "date 11381"},  // 2000-02-29 + 1 year = 2001-02-28
    {"datetime_add", {"date 30", "i32 1", "sym month"}, "date 58"},       // 1970-01-31 + 1 month = 1970-02-28
    {"datetime_add", {"dt 0", "i32 25", "sym hour"}, "dt 90000000"},
    {"datetime_add", {"date 0", "i32 1", "sym hour"}, "error: `datetime_add` cannot move a date by a hour"},
    {"datetime_sub", {"date 10561", "i32 90", "sym day"}, "date 10471"},  // 1998-12-01 - 90 days = 1998-09-02
    {"datetime_diff", {"date 10561", "date 10471"}, "i32 90"},
    // Choosing and making elements.
    {"range", {"i32 3"}, "i64 0 1 2"},
    {"range", {"i64 -2"}, "i64"},
    {"reverse", {"sym a b c"}, "sym c b a"},
    {"where", {"bool 0 1 1 0 1"}, "i64 1 2 4"},
    {"where", {"bool"}, "i64"},
    {"compress", {"bool 1 0 1", "sym a b c"}, "sym a c"},
    {"compress", {"bool 1 0 1", "<i32 10 20; i64 1 0 0>"}, "<i32 10 20; i64 1 0>"},
    {"compress", {"bool 1", "i32 1 2"}, "error: `compress` expects a mask as long as the vector, got 1 and 2 elements"},
    {"take", {"i32 2", "i32 7 8 9"}, "i32 7 8"},
    {"take", {"i32 -2", "i32 7 8 9"}, "i32 8 9"},
    {"take", {"i32 5", "i32 7 8 9"}, "i32 7 8 9 0 0"},
    {"take", {"i32 -4", "sym a"}, "sym '' '' '' a"},
    {"drop", {"i32 1", "i32 7 8 9"}, "i32 8 9"},
    {"drop", {"i32 -1", "i32 7 8 9"}, "i32 7 8"},
    {"drop", {"i32 -3", "i32 7 8 9"}, "i32"},
    {"drop", {"i32 9", "i32 7 8 9"}, "i32"},
    {"append", {"i32 1", "f64 2.5"}, "f64 1 2.5"},
    {"append", {"sym a", "sym b"}, "sym a b"},
    {"append", {"[i64 1]", "i64 2 3"}, "[i64 1; i64 2 3]"},
    {"append", {"i64 2 3", "[i64 1]"}, "[i64 2 3; i64 1]"},
    {"append", {"<i32 10 20; i64 1>", "i32 10"}, "<i32 10 20; i64 1 0>"},
    {"append", {"<i32 10 20; i64 1>", "i32 11"}, "error: `append` to an enum: element 0 is not among its keys"},
    {"replicate", {"i32 2", "i64 5 6"}, "[i64 5 6; i64 5 6]"},
    {"vector", {"i32 5", "i32 1 2"}, "i32 1 2 1 2 1"},
    {"vector", {"i32 3", "sym x"}, "sym x x x"},
    {"vector", {"i32 0", "f64"}, "f64"},
    {"vector", {"i32 2", "f64"}, "error: `vector` cannot repeat an empty vector to 2 elements"},
    {"index", {"f64 1 2 3", "i64 2 0 2"}, "f64 3 1 3"},
    {"index", {"f64 1 2 3", "i64 3"}, "error: `index` 3 at element 0 is out of range: f64[3] has 3 elements"},
    {"index", {"f64 1 2 3", "i64 -1"}, "error: `index` -1 at element 0 is out of range: f64[3] has 3 elements"},
    {"index", {"[i64 1; sym a]", "i64 1"}, "sym a"},
    {"index", {"f64 7 8", "bool 1 0 1"}, "f64 8 7 8"},
    {"require", {"bool 1 1", "i32 1 2", "sym no"}, "i32 1 2"},
    {"require", {"bool 1 1 1", "f64 5", "sym no"}, "f64 5 5 5"},
    {"require", {"bool 1", "str a b", "sym no"}, "str a b"},
    {"require", {"bool", "i32 5", "sym no"}, "i32"},
    {"require", {"bool 0", "i32", "sym no"}, "i32"},
    {"require", {"bool 1 0 0", "i32 1 2 3", "sym no"}, "error: `require` is not met at element 1: no"},
    {"require", {"bool 0", "i32 1 2 3", "sym no"}, "error: `require` is not met at element 0: no"},
    {"require", {"bool 1 1", "i32 1 2 3", "sym no"}, "error: `require` expects vectors of one length or scalars, got 2 and 3 elements"},
    {"require", {"i32 1", "i32 1", "sym no"}, "error: `require` is not defined for i32[1], i32[1], sym[1]"},
    {"select", {"bool 1 0 1", "i32 1 2 3", "i32 7 8 9"}, "i32 1 8 3"},
    {"select", {"bool 1 0 1", "i32 5", "i32 7 8 9"}, "i32 5 8 5"},
    {"select", {"bool 0", "f64 1 2", "f64 3 4"}, "f64 3 4"},
    {"select", {"bool 1 0", "str a b", "str c"}, "str a c"},
    {"select", {"bool 1 0", "complex 1+2i 3+4i", "complex 5+6i 7+8i"}, "complex 1+2i 7+8i"},
    {"select", {"bool", "i8", "i8"}, "i8"},
    {"select", {"bool 1 0", "i32 1 2", "i64 3 4"}, "error: `select` is not defined for bool[2], i32[2], i64[2]"},
    {"select", {"bool 1 0", "i32 1 2 3", "i32 4"}, "error: `select` expects vectors of one length or scalars, got 2, 3 and 1 elements"},
    {"index_or", {"i32 1 2 3", "i64 2 -1 0 3", "i32 9"}, "i32 3 9 1 9"},
    {"index_or", {"i32", "i32 0 -1", "i32 9"}, "i32 9 9"},
    {"index_or", {"sym a b", "i16 1 -5", "sym z"}, "sym b z"},
    {"index_or", {"bool 0 1", "i64 1 2", "bool 1"}, "bool 1 1"},
    {"index_or", {"i32 1 2", "i64 0", "i32 8 9"}, "error: `index_or` expects a scalar for rows that are not there, got i32[2]"},
    {"index_or", {"i32 1 2", "i64 0", "i64 8"}, "error: `index_or` is not defined for i32[2], i64[1], i64[1]"},
    {"index_a", {"i32 1 2 3", "i64 0 2", "i32 9 8"}, "i32 9 2 8"},
    {"index_a", {"i32 1 2 3", "i64 1 1", "i32 9 8"}, "i32 1 8 3"},
    {"index_a", {"i32 1 2 3", "i64 0 1", "bool 1"}, "i32 1 1 3"},
    {"index_a", {"complex 1+2i 3+4i", "i64 1", "i32 7"}, "complex 1+2i 7+0i"},
    {"index_a", {"i32 1 2", "i64 1", "complex 1+2i"}, "error: `index_a` cannot put complex[1] into i32[2]"},
    {"index_a", {"i32 1 2 3", "i64 0", "i64 1"}, "error: `index_a` cannot put i64[1] into i32[3]"},
    {"seed", {"i64 5"}, "i64 5"},
    {"rand", {"i64 1"}, "i64 0"},
    {"rand", {"i64 0"}, "error: `rand` expects a positive bound, got 0"},
    {"randk", {"i64 0", "i64 5"}, "i64"},
    {"randk", {"i64 5", "i64 5"}, "error: `randk` cannot draw 5 distinct numbers below 5"},
    // Reductions.
    {"len", {"i32 4 5"}, "i64 2"},
    {"len", {"[i32 1; i32 2; i32 3]"}, "i64 3"},
    {"len", {"|a=i64 1 2|"}, "i64 2"},
    {"sum", {"i32 2147483647 1"}, "i32 -2147483648"},
    {"sum", {"i64 1 2"}, "i64 3"},
    {"sum", {"f64 0.5 0.25"}, "f64 0.75"},
    {"sum", {"f32"}, "f32 0"},
    {"sum", {"bool 1 1 0"}, "i32 2"},
    {"avg", {"i32 1 2"}, "f32 1.5"},
    {"avg", {"i64 1 2"}, "f64 1.5"},
    {"avg", {"f64"}, "f64 -nan"},
    {"min", {"i32 3 -1 2"}, "i32 -1"},
    {"max", {"f64 -3 -1"}, "f64 -1"},
    {"max", {"f64"}, "f64 -inf"},
    {"min", {"i16"}, "i16 32767"},
    {"max", {"date 3 9 4"}, "date 9"},
    {"min", {"sym a"}, "error: `min` is not defined for sym[1]"},
    {"scan_sum", {"i32 2147483647 1 5", "bool 0 0 1"}, "i64 2147483647 2147483648 5"},
    {"scan_sum", {"bool 1 0 1", "bool 0 0 0"}, "i64 1 1 2"},
    {"scan_sum", {"f64 0.5 0.25 1", "bool 1 0 1"}, "f64 0.5 0.75 1"},
    {"scan_sum", {"i32", "bool"}, "i64"},
    {"scan_sum", {"i32 1 2", "bool 1"}, "error: `scan_sum` expects a bool for each of 2 elements, got 1"},
    {"scan_min", {"f64 nan 3 nan 2 5", "bool 0 0 0 0 1"}, "f64 inf 3 3 2 5"},
    {"scan_max", {"date 3 9 4", "bool 0 0 1"}, "date 3 9 4"},
    {"scan_max", {"sym a", "bool 0"}, "error: `scan_max` is not defined for sym[1] and bool[1]"},
    {"any", {"bool 0 1"}, "bool 1"},
    {"any", {"bool"}, "bool 0"},
    {"all", {"bool 1 0"}, "bool 0"},
    {"all", {"bool"}, "bool 1"},
    // Relations.
    {"unique", {"sym b a b c a"}, "i64 0 1 3"},
    {"unique", {"f64 0 -0 nan nan"}, "i64 0 2"},
    {"group", {"i32 5 3 5 3 9"}, "{i64 1 0 4; [i64 1 3; i64 0 2; i64 4]}"},
    {"group", {"[i32 1 1 0; sym b a z]"}, "{i64 2 1 0; [i64 2; i64 1; i64 0]}"},
    {"group", {"i32"}, "{i64; []}"},
    {"group", {"[]"}, "error: `group` needs at least one column, got an empty list"},
    {"order", {"i32 3 1 2 1", "bool 1"}, "i64 1 3 2 0"},
    {"order", {"i32 3 1 2 1", "bool 0"}, "i64 0 2 1 3"},
    {"order", {"[sym b a b; f64 1 2 -1]", "bool 1 0"}, "i64 1 0 2"},
    {"order", {"f64 nan 1 -inf", "bool 1"}, "i64 2 1 0"},
    {"order", {"f64 nan 1 -inf", "bool 0"}, "i64 1 2 0"},
    {"order", {"i32", "bool 1"}, "i64"},
    {"member", {"i32 1 2 3", "i64 3 1"}, "bool 1 0 1"},
    {"member", {"sym a", "str"}, "bool 0"},
    {"member", {"f64 nan -0", "f64 nan 0"}, "bool 0 1"},
    {"index_of", {"i32 3 4", "i32 4 9 16"}, "i64 3 0"},
    {"index_of", {"sym a b", "sym b b a"}, "i64 2 0"},
    {"join_index", {"@eq", "i32 1 2 2", "i64 2 3 1 2"}, "[i64 1 2 0 1 2; i64 0 0 2 3 3]"},
    {"join_index", {"@eq@lt", "[i32 1 1; f64 5 1]", "[i32 1; f64 3]"}, "[i64 1; i64 0]"},
    {"join_index", {"@eq", "@neq", "[i32 1 1; sym a b]", "[i32 1 1; sym a b]"}, "[i64 1 0; i64 0 1]"},
    {"join_index", {"@gt", "i32 1 5", "i32 3 0"}, "[i64 1 0 1; i64 0 1 1]"},
    {"join_index", {"@eq", "i32", "i32 1"}, "[i64; i64]"},
    {"join_index", {"@eq", "f64 nan 1", "f64 nan 1"}, "[i64 1; i64 1]"},
    {"join_index",
     {"@plus", "i32 1", "i32 1"},
     "error: `join_index` accepts the functions eq, neq, lt, gt, leq and geq only"},
    // Text.
    {"like", {"sym PROMO~X XPROMO PROMO", "sym PROMO%"}, "bool 1 0 1"},
    {"like", {"sym abc ac abbc", "sym a_c"}, "bool 1 0 0"},
    {"like", {"sym special~requests no special~x~requests~y", "sym %special%requests%"}, "bool 1 0 1"},
    {"like", {"sym '' a", "sym %"}, "bool 1 1"},
    {"like", {"sym aab", "sym %ab"}, "bool 1"},
    {"like", {"sym a.b axb", "sym a.b"}, "bool 1 0"},
    {"like", {"sym abcabd", "sym %ab%d%%"}, "bool 1"},
    {"sub_string", {"sym 13-555 1", "i32 1 2"}, "sym 13 1"},
    {"sub_string", {"sym abc ''", "i32 4 2"}, "sym '' ''"},
    {"sub_string", {"str caf\xc3\xa9 \xe6\x97\xa5", "i32 1 4"}, "str caf\xc3 \xe6\x97\xa5"},  // bytes; SQL's functions take characters
    {"sub_string", {"sym abc", "i32 0 2"}, "error: `sub_string` counts from 1 and takes 0 or more bytes, got (0, 2)"},
    {"str", {"i32 1 2"}, "str (1,2)"},
    {"print", {"f64 1.5"}, "i64 0"},
    // Lists.
    {"list", {"i32 1", "sym a"}, "[i32 1; sym a]"},
    {"list", {}, "[]"},
    {"raze", {"[i64 1 2; i64; i64 3]"}, "i64 1 2 3"},
    {"raze", {"[i32 1; f64 2.5]"}, "f64 1 2.5"},
    {"raze", {"[sym a; i32 1]"}, "error: `raze` expects cells of one type, got sym and i32"},
    {"tolist", {"i64 4 5"}, "[i64 4; i64 5]"},
    {"flip", {"[i64 1; sym a]"}, "[sym a; i64 1]"},
    {"match", {"[i64 1; sym a]", "[i64 1; sym a]"}, "bool 1"},
    {"match", {"i64 1 2", "i32 1 2"}, "bool 1"},
    {"match", {"i64 1 2", "i64 1"}, "bool 0"},
    {"each", {"@sum", "[i64 1 2; i64 3]"}, "[i64 3; i64 3]"},
    {"each", {"@sum", "i64 1 2"}, "i64 3"},
    {"each_item", {"@plus", "[i64 1 2; i64 3]", "[i64 10; i64 20]"}, "[i64 11 12; i64 23]"},
    {"each_item",
     {"@plus", "[i64 1; i64 2]", "[i64 1; i64 2; i64 3]"},
     "error: `each_item` expects lists of one length, got 2 and 3 cells"},
    {"each_left", {"@minus", "[i64 5; i64 7]", "i64 1 2"}, "[i64 4 3; i64 6 5]"},
    {"each_right", {"@index", "f64 1.5 2.5 3.5", "[i64 0 2; i64 1]"}, "[f64 1.5 3.5; f64 2.5]"},
    // Tables.
    {"table", {"sym a b", "[i64 1 2; f64 3 4]"}, "|a=i64 1 2; b=f64 3 4|"},
    {"table", {"sym a", "[i64 1; i64 2]"}, "error: `table` expects as many names as columns, got 1 and 2"},
    {"table",
     {"sym a b", "[i64 1 2; i64 2]"},
     "error: `table` expects columns of one length: `a` has 2 elements, `b` has 1"},
    {"table", {"sym a a", "[i64 1; i64 2]"}, "error: `table` expects distinct column names"},
    {"column_value", {"|a=i64 1 2; b=f64 3 4|", "sym b"}, "f64 3 4"},
    {"column_value", {"|a=i64 1 2|", "sym c"}, "error: the table has no column `c`"},
    {"column_value", {"|a=i64 1 2|", "sym a", "bool 1"}, "i64 1 2"},
    {"column_valid", {"|a=i64 1 2; b=f64 3 4|", "sym b"}, "bool 1 1"},
    {"column_valid", {"|a=i64 1 2|", "sym c"}, "error: the table has no column `c`"},
    {"column_valid", {"|a=i64 1 2|", "sym a a"}, "error: `column_valid` expects one symbol, got sym[2]"},
    {"ktable", {"|a=i64 1|", "|b=i64 2|"}, "(|a=i64 1|; |b=i64 2|)"},
    {"ktable", {"|a=i64 1|", "|b=i64 2 3|"}, "error: `ktable` expects tables of one length, got 1 and 2 rows"},
    {"enum", {"i32 10 20 20", "i32 20 10 30"}, "<i32 10 20 20; i64 1 0 3>"},
    {"dict", {"sym a b", "[i64 1; i64 2]"}, "{sym a b; [i64 1; i64 2]}"},
    {"dict", {"sym a b", "i64 1"}, "error: `dict` expects as many keys as values, got 2 and 1"},
    {"keys", {"<i32 10 20; i64 1 1>"}, "i32 10 20"},
    {"keys", {"|a=i64 1; b=i64 2|"}, "sym a b"},
    {"values", {"<i32 10 20; i64 1 1>"}, "i64 1 1"},
    {"values", {"{i64 1; [i64 4 5]}"}, "[i64 4 5]"},
    {"fetch", {"<i32 10 20; i64 1 1 0>"}, "i32 20 20 10"},
    {"meta", {"|a=i64 1; b=sym x|"}, "|name=sym a b; type=sym i64 sym; attributes=sym '' ''|"},
    // Corner cases, each of which a near-miss would get wrong.
    {"plus", {"i32 1 2 3", "i32 10"}, "i32 11 12 13"},
    {"plus", {"f64", "f64 1"}, "f64"},
    {"plus", {"i32", "i32 1 2"}, "error: `plus` expects vectors of one length or a scalar, got 0 and 2 elements"},
    {"plus", {"time 5", "i64 7"}, "time 12"},
    {"plus", {"dt 5", "i32 -7"}, "dt -2"},
    {"plus", {"date 1", "date 1"}, "error: `plus` is not defined for date[1], date[1]"},
    {"minus", {"date 100", "i32 7"}, "date 93"},
    {"minus", {"month 14", "month 2"}, "i32 12"},
    {"minus", {"second 90", "second 100"}, "i32 -10"},
    {"minus", {"time 90", "time 100"}, "i32 -10"},
    {"minus", {"dt -9223372036854775808", "dt 1"}, "i64 9223372036854775807"},
    {"minus", {"date 1", "month 1"}, "error: `minus` is not defined for date[1], month[1]"},
    {"mul", {"complex 1+2i", "complex 3-1i"}, "complex 5+5i"},
    {"mul", {"f32 3", "i64 2"}, "f32 6"},
    {"div", {"complex 5+5i", "complex 1+2i"}, "complex 3-1i"},
    {"div", {"complex 3+4i", "complex 0+2i"}, "complex 2-1.5i"},
    {"div", {"complex 1+1i", "complex 1e200+1e200i"}, "complex 1e-200+0i"},  // no square overflows
    {"div", {"i64 -9223372036854775808", "i64 -1"}, "i64 -9223372036854775808"},
    {"div", {"i8 -128", "i8 -1"}, "i8 -128"},
    {"div", {"bool 1", "bool 1"}, "i16 1"},
    {"div", {"i32 1", "i32"}, "i32"},
    {"div", {"i32", "i32 0"}, "i32"},  // nothing is divided
    {"mod", {"i64 -9223372036854775808", "i64 -1"}, "i64 0"},
    {"mod", {"i32 -2147483648", "i32 -1"}, "i32 0"},
    {"mod", {"f64 -5.5 5.5", "f64 2 -2"}, "f64 -1.5 1.5"},
    {"mod", {"f64 1", "f64 0"}, "f64 nan"},
    {"mod", {"bool 1", "bool 1"}, "i16 0"},
    {"power", {"f64 0 2 4 -8", "f64 0 -1 0.5 3"}, "f64 1 0.5 2 -512"},
    {"power", {"f64 -1", "f64 0.5"}, "f64 nan"},
    {"logb", {"i32 10", "i32 1000"}, "f32 3"},
    {"lt", {"i64 9007199254740993", "i64 9007199254740992"}, "bool 0"},  // beyond the exact doubles
    {"gt", {"i64 9007199254740993", "i64 9007199254740992"}, "bool 1"},
    {"leq", {"sym a", "sym a ab b"}, "bool 1 1 1"},
    {"geq", {"str a", "sym '' b"}, "bool 1 0"},
    {"leq", {"f64 nan", "f64 nan"}, "bool 0"},
    {"lt", {"char -128 127", "char 0"}, "bool 1 0"},  // char is the smallest integer, signed
    {"lt", {"sym z", "sym \xc3\xa9"}, "bool 1"},      // but texts compare by unsigned bytes
    {"eq", {"sym a b a", "sym a"}, "bool 1 0 1"},
    {"eq", {"complex 1+2i 1+2i", "complex 1-2i 2+2i"}, "bool 0 0"},
    {"eq", {"complex 3+0i", "i32 3"}, "bool 1"},
    {"neq", {"sym a ''", "sym b ''"}, "bool 1 0"},
    {"neq", {"i32 1 2", "i64"}, "error: `neq` expects vectors of one length or a scalar, got 2 and 0 elements"},
    {"or", {"bool 1", "bool 0 1"}, "bool 1 1"},
    {"xor", {"bool", "bool 1"}, "bool"},
    {"abs", {"bool 1 0"}, "bool 1 0"},
    {"neg", {"f64 0 -1.5"}, "f64 -0 1.5"},
    {"neg", {"date 1"}, "error: `neg` is not defined for date[1]"},
    {"round", {"f64 0.5 -0.5 1.5 0.49999999999999994 4503599627370497.5"}, "f64 1 -1 2 0 4503599627370498"},
    {"ceil", {"f64 -0.5 2"}, "f64 -0 2"},
    {"floor", {"i32 -7"}, "i32 -7"},
    {"signum", {"i64 9007199254740993"}, "i16 1"},
    {"signum", {"bool 0 1"}, "i16 0 1"},
    {"recip", {"i64 4"}, "f64 0.25"},
    {"recip", {"i32 0"}, "f32 inf"},
    {"pi", {"i32 1"}, "f32 3.1415927"},
    // At zero one function looks like another: known constants tell them apart.
    {"exp", {"f64 1 -1"}, "f64 2.718281828459045 0.36787944117144233"},
    {"log", {"f64 10 0 -1"}, "f64 2.302585092994046 -inf nan"},
    {"log2", {"f64 0.125 10"}, "f64 -3 3.321928094887362"},
    {"log10", {"f64 0.001 2"}, "f64 -3 0.3010299956639812"},
    {"sqrt", {"i32 2"}, "f32 1.4142135"},
    {"sqrt", {"f64 2"}, "f64 1.4142135623730951"},
    {"cos", {"f64 1"}, "f64 0.5403023058681398"},
    {"sin", {"f64 1"}, "f64 0.8414709848078965"},
    {"tan", {"f64 1"}, "f64 1.5574077246549023"},
    {"acos", {"f64 -1 2"}, "f64 3.141592653589793 nan"},
    {"asin", {"f64 0.5"}, "f64 0.5235987755982989"},
    {"atan", {"f64 2"}, "f64 1.1071487177940904"},
    {"cosh", {"f64 1"}, "f64 1.5430806348152437"},
    {"sinh", {"f64 1"}, "f64 1.1752011936438014"},
    {"tanh", {"f64 1"}, "f64 0.7615941559557649"},
    {"acosh", {"f64 3 0.5"}, "f64 1.762747174039086 nan"},
    {"asinh", {"f64 1"}, "f64 0.881373587019543"},
    {"atanh", {"f64 0.75 1"}, "f64 0.9729550745276566 inf"},
    {"sin", {"i32 1"}, "f32 0.84147096"},
    {"fact", {"i32 21"}, "i64 -4249290049419214848"},  // 21! modulo 2^64
    {"fact", {"i32 -1"}, "error: `fact` of the negative number -1 at element 0"},
    {"date_year", {"dt -1 86400000"}, "i16 1969 1970"},
    {"date_month", {"dt -1"}, "i16 12"},
    {"date_day", {"dt -1 86400000"}, "i16 31 2"},
    {"time_hour", {"dt -1 3600000"}, "i16 23 1"},
    {"time_hour", {"second 86399"}, "i16 23"},
    {"time_hour", {"time 7200000"}, "i16 2"},
    {"time_hour", {"date 1"}, "error: `time_hour` is not defined for date[1]"},
    {"time_minute", {"dt -1 61000"}, "i16 59 1"},
    {"time_minute", {"minute 3660"}, "i16 1"},
    {"time_second", {"dt -1 61000"}, "i16 59 1"},
    {"time_second", {"minute 60"}, "error: `time_second` is not defined for minute[1]"},
    {"time_mill", {"dt -1 61002"}, "i16 999 2"},
    {"time",
     {"dt -9223372036854775808"},
     "time 60424192"},  // 2^63 ms before the epoch, from the day that begins before it
    {"datetime_add", {"date 58", "i32 12", "sym month"}, "date 423"},            // 1970-02-28 + 12 months = 1971-02-28
    {"datetime_add", {"date 30 59", "i32 -2", "sym month"}, "date -32 0"},       // 1969-11-30 and 1970-01-01
    {"datetime_add", {"dt 2592000123", "i32 1", "sym month"}, "dt 5011200123"},  // 1970-01-31 keeps its time on 02-28
    {"datetime_add", {"month 11", "i32 1", "sym month"}, "month 12"},
    {"datetime_add", {"month 11", "i32 2", "sym year"}, "month 35"},
    {"datetime_add", {"dt 0", "i32 2", "sym day"}, "dt 172800000"},
    {"datetime_add", {"dt 0", "i32 2", "sym minute"}, "dt 120000"},
    {"datetime_add", {"dt 0", "i32 2", "sym second"}, "dt 2000"},
    {"datetime_add", {"dt 0", "i32 2", "sym mill"}, "dt 2"},
    {"datetime_add", {"minute 60", "i32 2", "sym hour"}, "minute 7260"},
    {"datetime_add", {"minute 60", "i32 2", "sym second"}, "error: `datetime_add` cannot move a minute by a second"},
    {"datetime_add", {"second 60", "i32 2", "sym minute"}, "second 180"},
    {"datetime_add", {"time 60", "i32 2", "sym second"}, "time 2060"},
    {"datetime_add", {"date 0", "i64 9223372036854775807", "sym day"}, "date -1"},  // wraps
    {"datetime_add",
     {"date 0 1", "i32 1 2 3", "sym day"},
     "error: `datetime_add` expects vectors of one length or a scalar, got 2 and 3 elements"},
    {"datetime_add",
     {"date 0", "i32 1", "sym week"},
     "error: `datetime_add` knows the units year, month, day, hour, minute, second and mill, got `week`"},
    {"datetime_sub", {"date 9586", "i32 1", "sym month"}, "date 9555"},  // 1996-03-31 - 1 month = 1996-02-29
    {"datetime_sub", {"dt 0", "i64 -9223372036854775808", "sym mill"}, "dt -9223372036854775808"},
    {"datetime_diff", {"dt 5000000000", "dt 1"}, "i64 4999999999"},
    {"datetime_diff", {"month 5", "month 17"}, "i32 -12"},
    {"range", {"i32 0"}, "i64"},
    {"range", {"i32 1 2"}, "error: `range` expects one integer, got i32[2]"},
    {"reverse", {"f64"}, "f64"},
    {"where", {"bool 0 0"}, "i64"},
    {"compress", {"bool 0 0", "sym a b"}, "sym"},
    {"compress", {"bool", "i32"}, "i32"},
    {"take", {"i32 0", "i32 7 8 9"}, "i32"},
    {"take", {"i32 2", "f64"}, "f64 0 0"},
    {"take", {"i32 -3", "i32 7 8 9"}, "i32 7 8 9"},
    {"drop", {"i32 0", "i32 7 8 9"}, "i32 7 8 9"},
    {"drop", {"i32 -9", "i32 7 8 9"}, "i32"},
    {"drop", {"i64 -9223372036854775808", "i32 7"}, "i32"},
    {"append", {"i32", "i32 1"}, "i32 1"},
    {"append", {"[i64 1]", "[i64 2; sym a]"}, "[i64 1; i64 2; sym a]"},
    {"append", {"sym a", "i32 1"}, "error: `append` is not defined for sym[1], i32[1]"},
    {"replicate", {"i32 2", "[i64 5; sym a]"}, "[i64 5; sym a; i64 5; sym a]"},
    {"replicate", {"i32 0", "i64 5"}, "[]"},
    {"vector", {"i32 1", "i32 1 2"}, "i32 1"},
    {"vector", {"i32 -1", "i32 1"}, "error: `vector` of the negative length -1"},
    {"index", {"f64 1 2 3", "i64"}, "f64"},
    {"index", {"f64", "i64"}, "f64"},
    {"index", {"f64 1 2 3", "i64 0 1 7"}, "error: `index` 7 at element 2 is out of range: f64[3] has 3 elements"},
    {"index", {"[i64 1; sym a]", "i64 2"}, "error: `index` 2 at element 0 is out of range: list[2] has 2 elements"},
    {"index", {"[i64 1; sym a]", "i64 0 1"}, "error: `index` into a list expects one index, got 2"},
    {"index", {"<i32 10 20; i64 1 0>", "i64 1 1"}, "<i32 10 20; i64 0 0>"},
    {"index_a", {"sym a b", "i64 1", "sym c"}, "sym a c"},
    {"index_a", {"f64 1 2 3", "i64 2 0", "f64 9"}, "f64 9 2 9"},  // one value for all indexes
    {"index_a", {"f64 1 2 3", "i64", "f64"}, "f64 1 2 3"},
    {"index_a", {"i32 1 2", "i64 2", "i32 9"}, "error: `index_a` index 2 at element 0 is out of range: 2 elements"},
    {"index_a", {"i32 1 2", "i64 -1", "i32 9"}, "error: `index_a` index -1 at element 0 is out of range: 2 elements"},
    {"index_a",
     {"i32 1 2", "i64 0 1", "i32 7 8 9"},
     "error: `index_a` expects one value per index or a scalar, got 2 indexes and 3 values"},
    {"len", {"{i64 1 2; [i64 4; i64 5]}"}, "i64 2"},
    {"len", {"<i32 10 20; i64 1 1 0>"}, "i64 3"},
    {"len", {"sym"}, "i64 0"},
    {"sum", {"i64 9223372036854775807 1"}, "i64 -9223372036854775808"},
    {"sum", {"i8 127 127"}, "i32 254"},
    {"sum", {"i16"}, "i32 0"},
    {"sum", {"f64 1 nan"}, "f64 nan"},
    {"sum", {"date 1"}, "error: `sum` is not defined for date[1]"},
    {"avg", {"bool 1 0 0 0"}, "f32 0.25"},
    {"avg", {"f64 -1 2 5"}, "f64 2"},
    {"min", {"f64 nan 2 1"}, "f64 1"},
    {"max", {"f64 1 nan"}, "f64 1"},
    {"min", {"bool"}, "bool 1"},
    {"max", {"bool"}, "bool 0"},
    {"max", {"i64"}, "i64 -9223372036854775808"},
    {"min", {"f32"}, "f32 inf"},
    {"any", {"bool 0 0"}, "bool 0"},
    {"all", {"bool 1 1"}, "bool 1"},
    {"unique", {"i32"}, "i64"},
    {"unique", {"complex 1+2i 2+1i 1+2i"}, "i64 0 1"},
    {"group", {"sym b a b ''"}, "{i64 3 1 0; [i64 3; i64 1; i64 0 2]}"},
    {"group", {"f64 nan 1 nan -0 0"}, "{i64 3 1 0; [i64 3 4; i64 1; i64 0 2]}"},
    {"group", {"[sym ab a; sym c bc]"}, "{i64 1 0; [i64 1; i64 0]}"},  // not one row, though their bytes are
    {"group", {"<i32 20 10; i64 0 1 0>"}, "{i64 1 0; [i64 1; i64 0 2]}"},
    {"group", {"[i32 1 2; i32 1]"}, "error: `group` expects columns of one length, got 2 and 1 elements"},
    {"order", {"[i32 2 1 2; i32 1 5 0]", "bool 0"}, "i64 0 2 1"},  // one direction for all columns
    {"order", {"sym b '' ab a", "bool 1"}, "i64 1 3 2 0"},
    {"order", {"sym b b a", "bool 0"}, "i64 0 1 2"},
    {"order", {"i64 9007199254740993 9007199254740992", "bool 1"}, "i64 1 0"},
    {"order", {"bool 1 0 1", "bool 1"}, "i64 1 0 2"},
    {"order", {"f64 0 -0", "bool 1"}, "i64 0 1"},
    {"order",
     {"[i32 1; i32 2]", "bool 1 0 1"},
     "error: `order` expects one direction per column, got 2 columns and 3 directions"},
    {"member", {"i32", "i32 1"}, "bool"},
    {"member", {"sym a b", "str b"}, "bool 0 1"},
    {"member", {"f64 1.5 2", "i32 1 2"}, "bool 0 1"},
    {"member", {"i64 9007199254740993", "i64 9007199254740992"}, "bool 0"},
    {"member", {"date 1", "i32 1"}, "error: `member` cannot compare date[1] with i32[1]"},
    {"GPU.fold", {"i64 1 2 4", "@sum", "i64 0", "i32 7 5 7"}, "i64 2 5"},
    {"GPU.fold", {"i32 1 2 4", "@max", "i64 0", "i32 7 7 7", "sym b a b"}, "i32 2 4"},
    {"GPU.fold", {"i64", "@len", "i64 0", "i32"}, "i64"},
    {"GPU.fold", {"i64 1", "@len", "i64 0", "i32 7 5"}, "error: the values and the columns of `GPU.fold` differ in length"},
    {"GPU.sum_part", {"f64 1e-30", "i64 1"}, "error: `GPU.sum_part` got 1e-30, which has no such parts"},
    {"GPU.sum_part", {"f64 786432.5 262144 -262145 0.0001220703125 -0", "i64 0"}, "i64 2 0 -1 0 0"},
    {"GPU.sum_part", {"f64 786432.5 262144 -262145 0.0001220703125 -0", "i64 1"}, "i64 -1073739776 1073741824 1073737728 0 0"},
    {"GPU.sum_part", {"f64 786432.5 262144 -262145 0.0001220703125 -0", "i64 2"}, "i64 0 0 0 1073741824 0"},
    {"GPU.sum_part", {"f64 0.1", "i64 3"}, "i64 -429391872"},
    {"GPU.sum_part", {"f64 -281474976710656", "i64 3"}, "error: `GPU.sum_part` got -281474976710656, which has no such parts"},
    {"GPU.sum_of_parts", {"i64 2 -4611686018427387904", "i64 -1073739776 4611686018427387904", "i64 0 0", "i64 0 -4611686018427387904"},
     "f64 786432.5 -2.4178516381033584e+24"},
    {"GPU.sum_of_parts", {"i64 1", "i64 -2147483648", "i64 0", "i64 0"}, "f64 0"},
    {"GPU.order_key", {"f64 -inf -1 -0 0 1 inf nan", "i64 1"},
     "i64 -9218868437227405313 -4607182418800017409 -1 0 4607182418800017408 9218868437227405312 9218868437227405312"},
    {"GPU.order_key", {"f32 -inf -1 -0 0 1 inf nan", "i64 0"}, "i32 -2139095041 -1065353217 -1 0 1065353216 2139095040 -2139095041"},
    {"GPU.order_key", {"i32 1", "i64 0"}, "error: `GPU.order_key` is not defined for i32[1] and i64[1]"},
    {"GPU.of_order_key", {"i64 -9218868437227405313 -4607182418800017409 -1 0 4607182418800017408 9218868437227405312"}, "f64 -inf -1 -0 0 1 inf"},
    {"GPU.of_order_key", {"i32 -2139095041 -1065353217 -1 0 1065353216"}, "f32 -inf -1 -0 0 1"},
    {"GPU.of_order_key", {"i16 1"}, "error: `GPU.of_order_key` is not defined for i16[1]"},
    {"GPU.probe", {"i64 0", "i32 4 9 4", "i32 3 4"}, "i64 -1 0"},
    {"GPU.probe", {"i64 0", "i32 4 4", "sym a b", "i64 4 4 5", "sym b c a"}, "i64 1 -1 -1"},
    {"GPU.probe", {"i64 0", "i32 4 4", "sym a", "i64 4", "sym b"}, "error: the columns of one side of `GPU.probe` differ in length"},
    {"GPU.probe", {"i64 0", "i32 4 9 4 5", "bool 0 1 1 1", "i32 3 4 9 5"}, "i64 -1 -1 1 3"},
    {"GPU.probe", {"i64 0", "i32 4 9", "bool 1", "i32 3"}, "error: the mask of `GPU.probe` is no mask of the left side"},
    {"index_of", {"i32 3 4", "i32"}, "i64 0 0"},
    {"index_of", {"i32", "i32 3"}, "i64"},
    {"index_of", {"f64 nan -0", "f64 nan 0"}, "i64 2 1"},
    {"join_index", {"@eq", "sym a b a", "str b a"}, "[i64 1 0 2; i64 0 1 1]"},
    {"join_index", {"@lt", "sym a b", "sym b"}, "[i64 0; i64 0]"},
    {"join_index", {"@leq", "i32 1 2 3", "i64 2"}, "[i64 0 1; i64 0 0]"},
    {"join_index", {"@geq", "f64 nan 2", "i32 2"}, "[i64 1; i64 0]"},
    {"join_index", {"@neq", "f64 nan 2", "f64 2"}, "[i64 0; i64 0]"},
    {"join_index", {"@eq", "[sym ab a; sym c bc]", "[sym a; sym bc]"}, "[i64 1; i64 0]"},
    {"join_index", {"@eq", "i32 1", "i32"}, "[i64; i64]"},
    {"join_index", {"@eq@lt", "[i32 1 1; f64 5 1]", "[i32 1; f64 nan]"}, "[i64; i64]"},
    {"like", {"sym '' a", "sym ''"}, "bool 1 0"},
    {"like", {"sym '' a ab", "sym _"}, "bool 0 1 0"},
    {"like", {"sym a ab abc", "sym _%_"}, "bool 0 1 1"},
    {"like", {"sym A", "sym a"}, "bool 0"},
    {"like", {"sym a+b aab a\\b", "sym a+b"}, "bool 1 0 0"},
    {"like", {"sym a\\b ab", "sym a\\b"}, "bool 1 0"},  // a backslash is a backslash
    {"like", {"sym a\nb", "sym a%b"}, "bool 1"},
    {"like", {"sym abab", "sym ab%ab"}, "bool 1"},
    {"like", {"sym ab aba", "sym ab%ba"}, "bool 0 0"},  // the pieces may not overlap
    {"like", {"sym aXbXc abc", "sym a%b%c"}, "bool 1 1"},
    {"like", {"sym xaby", "sym %a_y"}, "bool 1"},
    {"like", {"sym", "sym a"}, "bool"},
    {"sub_string", {"sym abcdef", "i64 3 2"}, "sym cd"},
    {"sub_string", {"sym abc", "i32 3 9"}, "sym c"},
    {"sub_string", {"sym abc", "i32 1 0"}, "sym ''"},
    {"sub_string", {"str abc", "i32 2 1"}, "str b"},
    {"sub_string", {"sym abc", "i64 2 9223372036854775807"}, "sym bc"},
    {"text_map", {"sym upper", "str abc éa"}, "str ABC ÉA"},
    {"text_map", {"sym length", "str abc éa ''"}, "i64 3 2 0"},
    {"text_map", {"sym concat", "sym a b", "sym x"}, "sym ax bx"},
    {"text_map", {"sym to_integer", "str 12 x", "i64 0", "i64 99"}, "i64 12 0"},
    {"text_map", {"sym of_integer", "i32 7 -7 7"}, "str 7 -7 7"},
    {"text_map", {"sym none", "str a"}, "error: there is no function of texts of that name"},
    {"text_valid", {"sym to_integer", "str 12 x 100", "i64 0", "i64 99"}, "bool 1 0 0"},
    {"text_valid", {"sym upper", "str a"}, "bool 1"},
    {"text_join", {"str a b c", "bool 1 1 0", "[i64 0 1 2; i64 2; i64 1 1]", "str -"}, "str a-b '' b-b"},
    {"text_join", {"str a b", "bool 1", "[i64 1 0]", "str ''"}, "str ba"},
    {"text_join", {"str a", "bool 1", "[i64 1]", "str -"}, "error: `text_join` got row 1 of 1"},
    {"sub_string", {"sym abc", "i32 1 -1"}, "error: `sub_string` counts from 1 and takes 0 or more bytes, got (1, -1)"},
    {"str", {"sym a"}, "str a"},
    {"raze", {"[]"}, "i64"},
    {"raze", {"f64 1 2"}, "f64 1 2"},
    {"raze", {"[sym a; str b]"}, "sym a b"},
    {"tolist", {"sym a b"}, "[sym a; sym b]"},
    {"tolist", {"i32"}, "[]"},
    {"match", {"[i64 1; i64 2]", "[i64 1; i64 3]"}, "bool 0"},
    {"match", {"i64 1", "[i64 1]"}, "bool 0"},
    {"match", {"sym a", "i32 1"}, "bool 0"},
    {"each", {"@len", "[]"}, "[]"},
    {"each", {"@unique", "[i64 5 5; i64 1 2]"}, "[i64 0; i64 0 1]"},
    {"each_item", {"@plus", "[i64 1; i64 2]", "[i64 10]"}, "[i64 11; i64 12]"},
    {"each_item", {"@minus", "[i64 10]", "[i64 1; i64 2]"}, "[i64 9; i64 8]"},
    {"each_right", {"@minus", "i64 10", "[i64 1; i64 2]"}, "[i64 9; i64 8]"},
    {"column_value", {"|a=i64 1 2; b=f64 3 4|", "sym b a"}, "[f64 3 4; i64 1 2]"},
    {"enum", {"sym a b", "sym"}, "<sym a b; i64>"},
    {"dict", {"sym a", "i64 1"}, "{sym a; i64 1}"},
    {"values", {"|a=i64 1; b=sym x|"}, "[i64 1; sym x]"},
    {"keys", {"{i64 1; [i64 4 5]}"}, "i64 1"},
    {"fetch", {"<i32 10 20; i64>"}, "i32"},
};

TEST(Builtins, GiveTheExpectedValues) {
  std::set<std::string> proven, failed;
  for (const Case& c : cases) {
    std::vector<Value> arguments;
    std::string shown;
    for (const char* a : c.arguments) {
      arguments.push_back(parse(a));
      shown += std::string(shown.empty() ? "" : ", ") + a;
    }
    std::string got = evaluate(c.name, arguments), wanted = c.expected;
    // The sign of a NaN is no part of a value.
    for (std::string* s : {&got, &wanted})
      for (size_t at; (at = s->find("-nan")) != std::string::npos;) s->erase(at, 1);
    EXPECT_EQ(got, wanted) << c.name << "(" << shown << ")";
    (got == wanted ? proven : failed).insert(c.name);
  }
  for (const std::string& name : proven)
    if (!failed.count(name)) rndn::testing::record_status("builtin", name, "meaning", "cpu");
  std::erase_if(proven, [&](const std::string& name) { return failed.contains(name); });
  rndn::testing::record_status("language", "builtins", "specified", std::to_string(hir::builtin_names().size()));
  rndn::testing::record_status("language", "builtins", "tested",
                               std::to_string(proven.size() + 2));  // and the two that load tables, below
}

TEST(Builtins, EachHasACase) {
  std::set<std::string_view> covered = {"load_table", "load_csv"};  // tested below; refused by name
  for (const Case& c : cases) covered.insert(c.name);
  for (std::string_view name : hir::builtin_names()) EXPECT_TRUE(covered.count(name)) << "no case for `" << name << "`";
}

TEST(Builtins, TablesLoadLazily) {
  FakeTables tables;
  auto run = [&](const char* name, std::vector<Value> arguments) {
    hir::Builtin id;
    CHECK(hir::find_builtin(name, id));
    Result<std::vector<Value>> r = call(id, arguments, nullptr, tables, nullptr);
    return r.ok() ? (*r)[0] : vector_of_texts(BasicType::str, {r.error().message});
  };
  Value t = run("load_table", {parse("sym t")});
  EXPECT_EQ(show(run("len", {t})), "i64 3");
  EXPECT_EQ(show(run("keys", {t})), "sym id parent");
  EXPECT_EQ(show(run("column_value", {t, parse("sym id")})), "i32 10 20 30");
  EXPECT_EQ(show(run("column_value", {t, parse("sym parent")})), "<i32 10 20 30; i64 2 2 0>");
  EXPECT_EQ(show(run("fetch", {run("column_value", {t, parse("sym parent")})})), "i32 30 30 10");
  EXPECT_EQ(show(run("column_value", {t, parse("sym parent"), parse("bool 1")})), "i32 30 30 10");
  EXPECT_EQ(show(run("column_valid", {t, parse("sym parent")})), "bool 1 1 1");
  EXPECT_EQ(show(run("load_table", {parse("sym u")})), "str unknown~table~`u`");
}

TEST(Builtins, RandomNumbersStayInRangeAndRepeatAfterSeed) {
  RunState state;
  auto evaluate = [&](const char* name, const std::vector<Value>& arguments) {
    return testing::evaluate(name, arguments, nullptr, &state);
  };
  auto draws = [&] {
    evaluate("seed", {parse("i64 42")});
    std::string all;
    for (int i = 0; i < 20; ++i) all += evaluate("rand", {parse("i64 10")}) + ",";
    return all + evaluate("randk", {parse("i64 5"), parse("i64 6")});
  };
  std::string first = draws();
  EXPECT_EQ(draws(), first);
  // The Lehmer generator by hand: 42 * 16807 = 705894 and 705894 * 16807 mod 2^31 - 1 = 1126542223 make the first number,
  // 705894 * 2^31 + 1126542223, of which the last digit counts.
  EXPECT_EQ(first.substr(0, 6), "i64 5,");
  evaluate("seed", {parse("i64 43")});
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) seen.insert(evaluate("rand", {parse("i64 10")}));
  EXPECT_EQ(seen.size(), 10u);
  for (const std::string& s : seen) EXPECT_EQ(s.size(), 5u) << s;  // "i64 d"
  std::string drawn = evaluate("randk", {parse("i64 9"), parse("i64 10")});
  std::set<char> digits(drawn.begin() + 4, drawn.end());
  digits.erase(' ');
  EXPECT_EQ(digits.size(), 9u) << drawn;
}

TEST(Builtins, PrintWritesOneLine) {
  std::string printed;
  evaluate("print", {parse("[i64 1 2; sym a]")}, &printed);
  EXPECT_EQ(printed, "((1,2),a)\n");
}

// The calendar against the C library, for every day of four centuries around the epoch.
TEST(Builtins, CalendarAgreesWithTheCLibrary) {
  std::vector<int32_t> days;
  for (int32_t d = -150000; d < 150000; d += 17) days.push_back(d);
  Value dates = vector_of<int32_t>(BasicType::date, std::span<const int32_t>(days));
  std::string years = "i16", months = "i16", month_days = "i16";
  for (int32_t d : days) {
    time_t seconds = static_cast<time_t>(d) * 86400;
    struct tm parts {};
    gmtime_r(&seconds, &parts);
    years += fmt::format(" {}", parts.tm_year + 1900);
    months += fmt::format(" {}", parts.tm_mon + 1);
    month_days += fmt::format(" {}", parts.tm_mday);
  }
  EXPECT_EQ(evaluate("date_year", {dates}), years);
  EXPECT_EQ(evaluate("date_month", {dates}), months);
  EXPECT_EQ(evaluate("date_day", {dates}), month_days);
}

}  // namespace
}  // namespace testing
}  // namespace rndn::reference
