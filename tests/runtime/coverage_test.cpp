// Every builtin that has a place on the GPU, on every type that it accepts: through compiler and engine on the simulator of three targets,
// without the reference interpreter, against the reference interpreter. What has no GPU code stands in `without_code` with its reason.
//
// A case is one builtin on one choice of types, with a few statements. The frontend decides which types are accepted. Every accepted case is
// planned alone: it either must have GPU code, or an entry of `without_code` must name it. Cases with code are then put together into
// programs, so that few runs prove many.
// By default a slice of the cases runs on few rows. Environment: RNDN_COVERAGE=all runs all cases on all sizes, each program on the three targets
// and by turns in the three outline modes, and records what is proven; RNDN_COVERAGE_ROWS=N: on a table of N rows only; RNDN_COVERAGE_DEVICE=cuda:
// on the first GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "runtime/compiler/code_cache.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/engine.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/support/status.h"

namespace rndn::runtime::coverage_test {
namespace {

using hir::BasicType;
using hir::Builtin;
using hir::Device;
using hir::ShapeRule;
using reference::Value;
using Types = std::vector<BasicType>;

// --- Data -----------------------------------------------------------------------------------------------------------------------

enum class Flavour : uint8_t { random, equal, distinct, zero };
constexpr Flavour flavours[] = {Flavour::random, Flavour::equal, Flavour::distinct, Flavour::zero};

uint64_t mix(uint64_t x) {  // splitmix64, Steele, Lea, Flood: "Fast splittable pseudorandom number generators"
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

BasicType type_named(std::string_view name) {
  BasicType type{};
  CHECK(hir::parse_basic_type(name, type), "{}", name);
  return type;
}

// Table `t`. A column is named TYPE_ROLE:
//   a  adversarial: extremes of the type, NaN, infinities, -0 among random values
//   b  the same for integers but never 0; moderate finite numbers for floats; another dictionary for texts
//   c  moderate, with NaN and infinities (sums of them do not depend on order)
//   d  few different values
//   p  positions within the table;  q  every position once
//   k  ascending keys of groups;   m  the first rows only (bool)
class Columns final : public reference::Tables {
 public:
  Columns(uint64_t rows, Flavour flavour) : rows_(rows), flavour_(flavour) {}
  Result<void> open(std::string_view) const override { return {}; }
  Result<std::vector<std::string>> column_names(std::string_view) const override { return std::vector<std::string>{}; }
  Result<uint64_t> rows(std::string_view) const override { return rows_; }
  Result<std::shared_ptr<const data::Column>> key_column(std::string_view) const override {
    return input_error("no keys");
  }
  Result<std::shared_ptr<const data::Column>> column(std::string_view, std::string_view name) const override {
    auto& column = columns_[std::string(name)];
    if (!column) {
      data::Column made = make(type_named(name.substr(0, name.find('_'))), name.back());
      data::compute_statistics(made);
      column = std::make_shared<const data::Column>(std::move(made));
    }
    return column;
  }
  uint64_t size() const { return rows_; }

 private:
  uint64_t random(BasicType type, char role, uint64_t i) const {
    if (flavour_ == Flavour::equal && role != 'k' && role != 'p') i = 0;
    return mix(i * 2654435761u + static_cast<uint64_t>(role) * 977 + static_cast<uint64_t>(type) * 131 + rows_);
  }
  template <class T>
  T real(BasicType type, char role, uint64_t i) const {
    using Limits = std::numeric_limits<T>;
    const uint64_t r = random(type, role, i);
    if (flavour_ == Flavour::distinct) return static_cast<T>(static_cast<double>(i) - 7) / 4;
    if (flavour_ == Flavour::zero) return i % 2 ? T{0} : -T{0};
    const T moderate = static_cast<T>(static_cast<int64_t>(r >> 20 & 4095) - 2048) / 8;
    if (role == 'd') return static_cast<T>(r % 5) - 2;
    if (role == 'c' && i % 100 == 17) return i % 3 ? Limits::quiet_NaN() : Limits::infinity();
    if (role != 'a' || r % 3) return moderate;
    constexpr T special[] = {Limits::quiet_NaN(),
                             Limits::infinity(),
                             -Limits::infinity(),
                             T{0},
                             -T{0},
                             Limits::max(),
                             Limits::lowest(),
                             Limits::min(),
                             T{1},
                             Limits::denorm_min(),
                             T{-1},
                             T{0.5},
                             T{-0.5},
                             T{1.5},
                             T{2.5}};
    return special[r / 3 % std::size(special)];
  }
  // Halves of few and of many bits, among them the ends of the type and where halves carry.
  __int128 wide(char role, uint64_t i) const {
    if (flavour_ == Flavour::zero) return role == 'b' ? 3 : 0;
    if (flavour_ == Flavour::distinct) return (static_cast<__int128>(i) - 5) << (i % 3 ? 0 : 64) | (role == 'b');
    const uint64_t r = random(BasicType::i128, role, i), s = mix(r);
    if (role == 'd') return static_cast<__int128>(r % 7) - 3;
    constexpr __int128 low = ~uint64_t{0};
    constexpr __int128 special[] = {std::numeric_limits<__int128>::min(), std::numeric_limits<__int128>::max(),
                                    -1, 1, low, -low, low + 1, -low - 1, INT64_MIN, INT64_MAX};
    if (r % 4 == 0) return special[r / 4 % std::size(special)];
    const __int128 value = static_cast<__int128>(static_cast<unsigned __int128>(s) << 64 | mix(s)) >> r % 128;
    return value == 0 ? 3 : value;
  }
  int64_t integer(BasicType type, char role, uint64_t i) const {
    const uint64_t r = random(type, role, i);
    const uint32_t width = data::plain_width(type);
    if (type == BasicType::boolean) {
      if (role == 'p' || role == 'q') return rows_ > 1 && r % 2;
      if (role == 'm') return i < 17;
      if (role == 'b') return 1;
      if (flavour_ == Flavour::equal) return 1;
      if (flavour_ == Flavour::zero) return 0;
      return static_cast<int64_t>(r >> 7 & 1);
    }
    const uint64_t largest = width == 8 ? uint64_t{1} << 40 : (uint64_t{1} << (8 * width - 1)) - 1;
    if (role == 'p') return static_cast<int64_t>(r % std::max<uint64_t>(1, std::min(rows_, largest)));
    if (role == 'q') return static_cast<int64_t>(rows_ - 1 - i);
    if (role == 'k')
      return flavour_ == Flavour::equal      ? 3
             : flavour_ == Flavour::distinct ? static_cast<int64_t>(i)
                                             : static_cast<int64_t>((i + 3) / 45);
    int64_t value;
    if (flavour_ == Flavour::zero)
      value = 0;
    else if (flavour_ == Flavour::distinct)
      value = static_cast<int64_t>(i) - (type < BasicType::minute ? 5 : 0);  // no time of day is negative
    else if (role == 'd')
      value = static_cast<int64_t>(r % 7) - 3;
    else if (hir::is_calendar(type))
      value = calendar(type, r);
    else if (r % 4 == 0)
      value = r / 4 % 4 == 0   ? INT64_MIN >> (64 - 8 * width)
              : r / 4 % 4 == 1 ? INT64_MAX >> (64 - 8 * width)
              : r / 4 % 4 == 2 ? -1
                               : 0;
    else
      value = static_cast<int64_t>(mix(r)) >> (64 - 8 * width + r % (8 * width));
    if (role == 'b' && static_cast<int64_t>(static_cast<uint64_t>(value) << (64 - 8 * width)) == 0) value = 3;
    return value;
  }
  // Years 0001 to 9999, and the times of a day with its ends.
  static int64_t calendar(BasicType type, uint64_t r) {
    const int64_t days = static_cast<int64_t>(r >> 8) % 3652059 - 719162;
    switch (type) {
      case BasicType::date: return r % 8 == 0 ? -719162 : r % 8 == 1 ? 2932896 : r % 8 == 2 ? -1 : days;
      case BasicType::month: return days / 31;
      case BasicType::minute: return r % 8 == 0 ? 1439 : static_cast<int64_t>(r >> 8) % 1440;
      case BasicType::second: return r % 8 == 0 ? 86399 : static_cast<int64_t>(r >> 8) % 86400;
      case BasicType::time: return r % 8 == 0 ? 86399999 : static_cast<int64_t>(r >> 8) % 86400000;
      default: return r % 8 == 0 ? -1 : days * 86400000 + static_cast<int64_t>(mix(r) >> 8) % 86400000;
    }
  }
  std::string text(char role, uint64_t i) const {
    static const char* some[] = {"",
                                 "A",
                                 "AB",
                                 "ABBA",
                                 "special requests",
                                 "b",
                                 "a\xff",
                                 "aaaaa",
                                 "abcabcab",
                                 "%",
                                 "_x",
                                 "special packages of requests"};
    if (flavour_ == Flavour::zero) return "";
    if (flavour_ == Flavour::distinct) return fmt::format("{}{:06}", role, i * 7919 % 1000003);
    return some[random(BasicType::sym, role, i) % (role == 'd' ? 3 : std::size(some) - (role == 'b'))];
  }
  data::Column make(BasicType type, char role) const {
    if (hir::is_text(type)) {
      std::map<std::string, uint32_t> codes;
      std::vector<uint32_t> rows;
      data::Column c = data::make_column(type, rows_, data::Encoding::text);
      std::vector<std::string> values;
      std::string pad;
      for (uint64_t i = 0; i < rows_; ++i) {
        const std::string s = text(role, i);
        auto [at, fresh] = codes.try_emplace(s, static_cast<uint32_t>(values.size()));
        if (fresh) values.push_back(s);
        rows.push_back(at->second);
        const uint64_t handle = pad.size() << 24 | s.size();
        std::memcpy(c.data->data() + 8 * i, &handle, 8);
        pad += s;
      }
      c.pad = std::make_shared<data::Bytes>(data::Bytes::of(std::move(pad)));
      if (type == BasicType::str) return c;
      const uint32_t width = data::code_width(values.size());
      data::Column coded = data::make_column(type, rows_, data::Encoding::dictionary, width);
      for (uint64_t i = 0; i < rows_; ++i) std::memcpy(coded.data->data() + width * i, &rows[i], width);
      coded.dictionary->values = std::move(values);
      return coded;
    }
    data::Column c = data::make_column(type, rows_);
    for (uint64_t i = 0; i < rows_; ++i) {
      std::byte* at = c.data->data() + c.width * i;
      if (type == BasicType::f32) {
        const float x = real<float>(type, role, i);
        std::memcpy(at, &x, 4);
      } else if (type == BasicType::f64) {
        const double x = real<double>(type, role, i);
        std::memcpy(at, &x, 8);
      } else if (hir::is_wide(type)) {
        const __int128 x = wide(role, i);
        std::memcpy(at, &x, 16);
      } else if (type == BasicType::complex) {
        const double z[2] = {real<double>(type, role, i), real<double>(type, 'c', i)};
        std::memcpy(at, z, 16);
      } else {
        const int64_t x = integer(type, role, i);
        std::memcpy(at, &x, c.width);
      }
    }
    return c;
  }
  uint64_t rows_;
  Flavour flavour_;
  mutable std::map<std::string, std::shared_ptr<const data::Column>, std::less<>> columns_;
};

// --- Cases ----------------------------------------------------------------------------------------------------------------------

struct Case {
  Builtin builtin;  // that it proves
  Types types;      // of its arguments
  // `$` stands for a name of the case; columns as Columns names them; `y_COLUMN`: a column as cells of the groups of i64_k; `n`: rows.
  std::string statements;
  std::vector<std::string> results;  // names behind `$`
  std::string summed;         // floats: the column whose values are added; results may differ by n * eps * sum|x|
  bool pairs = false;         // the results are two columns of pairs, in any order
  const char* function = "";  // each family: the function applied
};

std::string name_of(BasicType type) { return std::string(hir::basic_type_name(type)); }
std::string column(BasicType type, char role) { return fmt::format("{}_{}", hir::basic_type_name(type), role); }
std::string_view name_of(Builtin b) { return hir::row(b).name; }

Builtin function_named(std::string_view name) {
  for (size_t i = 0; i < hir::builtin_count(); ++i)
    if (hir::row(static_cast<Builtin>(i)).name == name) return static_cast<Builtin>(i);
  CHECK(false, "no builtin {}", name);
}

std::string describe(const Case& c) {
  std::string types;
  for (BasicType t : c.types) types += " " + name_of(t);
  return fmt::format("{}{}{}: {}", name_of(c.builtin), *c.function ? fmt::format("(@{})", c.function) : "", types,
                     c.statements);
}

std::vector<BasicType> all_types() {
  std::vector<BasicType> out;
  for (size_t i = 0; i < hir::basic_type_count; ++i) out.push_back(static_cast<BasicType>(i));
  return out;
}

const char* literal_of(BasicType type) {
  switch (type) {
    case BasicType::boolean: return "1:bool";
    case BasicType::character: return "'A':char";
    case BasicType::i8: return "-3:i8";
    case BasicType::i16: return "-300:i16";
    case BasicType::i32: return "-70000:i32";
    case BasicType::i64: return "5000000000:i64";
    case BasicType::f32: return "-1.5:f32";
    case BasicType::f64: return "2.5:f64";
    case BasicType::complex: return "1+2i:complex";
    case BasicType::sym: return "`AB:sym";
    case BasicType::str: return "\"AB\":str";
    case BasicType::date: return "1995-03-15:date";
    case BasicType::month: return "1995-03:month";
    case BasicType::minute: return "10:20:minute";
    case BasicType::second: return "10:20:30:second";
    case BasicType::time: return "10:20:30.456:time";
    case BasicType::dt: return "1995-03-15T10:20:30.456:dt";
    case BasicType::i128: return "-170141183460469231731687303715884105727:i128";
  }
  return "";
}

std::vector<Builtin> builtins_where(bool (*test)(const hir::BuiltinRow&)) {
  std::vector<Builtin> out;
  for (size_t i = 0; i < hir::builtin_count(); ++i)
    if (const auto b = static_cast<Builtin>(i); hir::row(b).device != Device::cpu && test(hir::row(b)))
      out.push_back(b);
  return out;
}
bool is_unary_map(const hir::BuiltinRow& r) {
  return r.max_arity == 1 && r.shape_rule == ShapeRule::argument0 && r.device == Device::gpu;
}
bool is_broadcast(const hir::BuiltinRow& r) { return r.shape_rule == ShapeRule::broadcast; }
bool is_reduction(const hir::BuiltinRow& r) { return r.has(hir::traits::reduction) && r.max_arity == 1; }

// The columns that reductions read: floats are added where order does not matter but for rounding.
std::vector<std::string> columns_to_reduce(Builtin b, BasicType type) {
  if (hir::is_float(type) && (b == Builtin::sum || b == Builtin::avg)) return {column(type, 'b'), column(type, 'c')};
  if (b == Builtin::avg) return {column(type, 'd'), column(type, 'a')};
  return {column(type, 'a')};
}

// `fact` has no value for negative numbers.
char argument_of(Builtin b) { return b == Builtin::fact ? 'p' : 'a'; }

void unary(std::vector<Case>& out) {
  for (Builtin b : builtins_where(is_unary_map))
    for (BasicType t : all_types())
      out.push_back({b, {t}, fmt::format("$r:? = @{}({});", name_of(b), column(t, argument_of(b))), {"r"}});
}

void binary(std::vector<Case>& out) {
  for (Builtin b : builtins_where(is_broadcast)) {
    if (b == Builtin::gpu_sum_of_parts) continue;  // parts_of_sums
    if (b == Builtin::select) {
      for (BasicType t : all_types())
        out.push_back({b,
                       {BasicType::boolean, t, t},
                       fmt::format("$r:? = @select(bool_a, {0}, {1}); $s:? = @select(bool_b, {2}, {1}); "
                                   "$u:? = @select(0:bool, {0}, {2});",
                                   column(t, 'a'), column(t, 'b'), literal_of(t)),
                       {"r", "s", "u"}});
      continue;
    }
    if (b == Builtin::require) {
      for (BasicType t : all_types())
        out.push_back({b,
                       {BasicType::boolean, t},
                       fmt::format("$o:? = @not(bool_a); $k:? = @or(bool_a, $o); $r:? = @require($k, {0}, `m:sym); "
                                   "$s:? = @require($k, {1}, `m:sym);",
                                   column(t, 'a'), literal_of(t)),
                       {"r", "s"}});
      continue;
    }
    if (hir::row(b).min_arity == 3) {
      for (BasicType t : all_types())
        for (BasicType k : all_types())
          for (const char* unit : {"month", "hour"})
            out.push_back(
                {b,
                 {t, k},
                 fmt::format("$r:? = @{}({}, {}, `{}:sym);", name_of(b), column(t, 'a'), column(k, 'd'), unit),
                 {"r"}});
      continue;
    }
    for (BasicType t : all_types())
      for (BasicType u : all_types()) {
        // Masks need both values on both sides; divisors are not 0.
        const bool divides = b == Builtin::div || b == Builtin::mod;
        const char right = divides || !(t == BasicType::boolean && u == BasicType::boolean) ? 'b' : 'd';
        std::string s = fmt::format("$r:? = @{}({}, {});", name_of(b), column(t, 'a'), column(u, right));
        std::vector<std::string> results = {"r"};
        if (t == u) {
          s += fmt::format(" $s:? = @{}({}, {}); $u:? = @{}({}, {});", name_of(b), column(t, 'a'), literal_of(u),
                           name_of(b), literal_of(t), column(u, 'b'));
          results.insert(results.end(), {"s", "u"});
        }
        out.push_back({b, {t, u}, s, results});
      }
  }
}

void reductions(std::vector<Case>& out) {
  for (Builtin b : builtins_where(is_reduction))
    for (BasicType t : all_types())
      for (const std::string& c : columns_to_reduce(b, t)) {
        const std::string sum = b == Builtin::avg || (hir::is_float(t) && b == Builtin::sum) ? c : std::string();
        // Of all rows, and of those that a mask leaves.
        out.push_back({b,
                       {t},
                       fmt::format("$r:? = @{0}({1}); $x:? = @compress(bool_a, {1}); $s:? = @{0}($x);", name_of(b), c),
                       {"r", "s"},
                       sum});
      }
}

void scans(std::vector<Case>& out) {
  for (Builtin b : {Builtin::scan_sum, Builtin::scan_min, Builtin::scan_max})
    for (BasicType t : all_types()) {
      const bool added = hir::is_float(t) && b == Builtin::scan_sum;
      for (const std::string& c : columns_to_reduce(added ? Builtin::sum : Builtin::min, t))
        for (const char* starts : {"bool_a", "bool_m"})
          out.push_back({b,
                         {t},
                         fmt::format("$r:? = @{0}({1}, {2});", name_of(b), c, starts),
                         {"r"},
                         added ? c : std::string()});
    }
}

void selection(std::vector<Case>& out) {
  const BasicType none = BasicType::i64;
  for (BasicType t : all_types()) {
    const std::string x = column(t, 'a');
    out.push_back({Builtin::reverse, {t}, fmt::format("$r:? = @reverse({});", x), {"r"}});
    out.push_back({Builtin::where, {t}, fmt::format("$r:? = @where({});", x), {"r"}});
    out.push_back({Builtin::tolist, {t}, fmt::format("$r:? = @tolist({});", x), {"r"}});
    out.push_back(
        {Builtin::range,
         {t},
         t == none ? "$r:? = @range(n); $s:? = @range(77:i64);"
                   : fmt::format("$r:? = @range({}); $s:? = @range(5:i64);",
                                 hir::is_integer(t) && t != BasicType::character ? "1:" + name_of(t) : literal_of(t)),
         {"r", "s"}});
    out.push_back({Builtin::randk, {t}, fmt::format("$r:? = @randk(n, {});", literal_of(t)), {"r"}});
    out.push_back({Builtin::vector,
                   {t},
                   fmt::format("$r:? = @vector(n, {0}); $s:? = @vector(77:i64, {0});", literal_of(t)),
                   {"r", "s"}});
    for (const char* form : {"take", "drop"})
      out.push_back({std::string_view(form) == "take" ? Builtin::take : Builtin::drop,
                     {BasicType::i64, t},
                     fmt::format("$r:? = @{}(5:i64, {});", form, x),
                     {"r"}});
    for (BasicType m : all_types())
      out.push_back({Builtin::compress, {m, t}, fmt::format("$r:? = @compress({}, {});", column(m, 'a'), x), {"r"}});
    for (BasicType p : all_types()) {
      if (hir::is_float(p) || !hir::is_real(p)) continue;
      out.push_back({Builtin::index, {t, p}, fmt::format("$r:? = @index({}, {});", x, column(p, 'p')), {"r"}});
      out.push_back({Builtin::index_or,
                     {t, p, t},
                     fmt::format("$r:? = @index_or({0}, {1}, {2}); $s:? = @index_or({0}, {3}, {2});", x,
                                 column(p, 'p'), literal_of(t), column(p, 'a')),
                     {"r", "s"}});
      out.push_back({Builtin::index_a,
                     {t, p, t},
                     fmt::format("$r:? = @index_a({}, {}, {});", x, column(p, 'p'), literal_of(t)),
                     {"r"}});
    }
    // What nothing reads behind it, but the same kernel.
    out.push_back(
        {Builtin::index_a, {t}, fmt::format("$x:? = @reverse({}); $r:? = @index_a($x, i64_q, $x);", x), {"r"}});
    for (BasicType u : all_types()) {
      out.push_back({Builtin::index_a,
                     {t, BasicType::i64, u},
                     fmt::format("$r:? = @index_a({}, i64_q, {});", x, column(u, 'b')),
                     {"r"}});
      out.push_back({Builtin::append, {t, u}, fmt::format("$r:? = @append({}, {});", x, column(u, 'b')), {"r"}});
      out.push_back({Builtin::index_of, {t, u}, fmt::format("$r:? = @index_of({}, {});", x, column(u, 'd')), {"r"}});
      out.push_back(
          {Builtin::gpu_probe, {t, u}, fmt::format("$r:? = @GPU.probe(-1:i64, {}, {});", column(u, 'd'), x), {"r"}});
    }
  }
}

// Entries that no row has are dropped, as the outliner's own are (outliner/sinks.cpp).
void folds(std::vector<Case>& out) {
  for (const char* f : {"len", "sum", "min", "max"})
    for (BasicType t : {BasicType::i64, BasicType::i32}) {
      if (t == BasicType::i32 && std::string_view(f) == "sum") continue;
      out.push_back({Builtin::gpu_fold,
                     {t},
                     fmt::format("$k:? = @gt(i64_q, 2:i64); $v:? = check_cast(i64_q, {1}); "
                                 "$a:? = @GPU.fold(i64_q, @min, 9:i64, $k); $t:? = @lt($a, 9223372034707292159:i64); "
                                 "$b:? = @GPU.fold($v, @{0}, 9:i64, $k); $r:? = @compress($t, $b);",
                                 f, hir::basic_type_name(t)),
                     {"r"}});
    }
}

void parts_of_sums(std::vector<Case>& out) {
  for (int part : {0, 1, 2, 3})
    out.push_back({Builtin::gpu_sum_part,
                   {BasicType::f64},
                   fmt::format("$r:? = @GPU.sum_part(f64_b, {0}:i64); $x:? = @mul(f64_b, 1.01:f64); "
                               "$y:? = @GPU.sum_part($x, {0}:i64);",
                               part),
                   {"r", "y"}});
  out.push_back({Builtin::gpu_sum_of_parts,
                 {BasicType::i64},
                 "$x:? = @mul(i64_d, 68719476735:i64); $y:? = @mul(i64_p, 1234567890123:i64); "
                 "$r:? = @GPU.sum_of_parts(i64_d, $x, $y, i64_q); $s:? = @GPU.sum_of_parts($y, i64_q, $x, $y);",
                 {"r", "s"}});
  // As large as sums of parts can be.
  out.push_back({Builtin::gpu_sum_of_parts,
                 {BasicType::i64},
                 "$m:? = @mod(i64_d, 4611686018427387904:i64); $x:? = @minus(4611686018427387904:i64, $m); "
                 "$y:? = @minus($m, 4611686018427387904:i64); $z:? = @mul(i64_p, 1234567890123:i64); "
                 "$r:? = @GPU.sum_of_parts($z, $x, $y, $x); $s:? = @GPU.sum_of_parts(i64_q, $y, $x, $y);",
                 {"r", "s"}});
}

void order_keys(std::vector<Case>& out) {
  for (const BasicType t : {BasicType::f64, BasicType::f32})
    for (const int last : {0, 1}) {
      const std::string x = column(t, 'b');
      out.push_back({Builtin::gpu_order_key, {t}, fmt::format("$r:? = @GPU.order_key({}, {}:i64);", x, last), {"r"}});
      out.push_back({Builtin::gpu_of_order_key,
                     {t == BasicType::f64 ? BasicType::i64 : BasicType::i32},
                     fmt::format("$k:? = @GPU.order_key({}, {}:i64); $r:? = @GPU.of_order_key($k);", x, last),
                     {"r"}});
    }
}

void operators(std::vector<Case>& out) {
  for (BasicType t : all_types()) {
    const std::string x = column(t, 'a'), d = column(t, 'd');
    for (const char* direction : {"0", "1"})
      out.push_back({Builtin::order, {t}, fmt::format("$r:? = @order({}, {}:bool);", x, direction), {"r"}});
    out.push_back({Builtin::order,
                   {t, BasicType::i32},
                   fmt::format("$l:? = @list({}, i32_a); $r:? = @order($l, (0,1):bool);", d),
                   {"r"}});
    for (const char* most : {"0", "5", "1000000"})
      out.push_back(
          {Builtin::gpu_top_lib, {t}, fmt::format("$r:? = @GPU.top_lib({}, 0:bool, {}:i64);", x, most), {"r"}});
    out.push_back({Builtin::group, {t}, fmt::format("$r:? = @group({});", x), {"r"}});
    out.push_back(
        {Builtin::group, {t, BasicType::i32}, fmt::format("$l:? = @list({}, i32_d); $r:? = @group($l);", d), {"r"}});
    out.push_back({Builtin::unique, {t}, fmt::format("$r:? = @unique({});", x), {"r"}});
    for (BasicType u : all_types()) {
      out.push_back({Builtin::member, {t, u}, fmt::format("$r:? = @member({}, {});", x, column(u, 'b')), {"r"}});
      out.push_back({Builtin::like,
                     {t, u},
                     fmt::format("$r:? = @like({}, {});", x,
                                 u == BasicType::sym   ? "`\"%special%req%\":sym"
                                 : u == BasicType::str ? "\"_B%\":str"
                                                       : literal_of(u)),
                     {"r"}});
      if (hir::is_integer(u) && u != BasicType::character)
        out.push_back(
            {Builtin::sub_string, {t, u}, fmt::format("$r:? = @sub_string({}, (1,1):{});", x, name_of(u)), {"r"}});
    }
    for (const char* f : {"eq", "neq", "lt", "gt", "leq", "geq"})
      out.push_back(
          {Builtin::join_index,
           {t, t},
           fmt::format("$a:? = @compress(bool_m, {}); $j:? = @join_index(@{}, $a, {}); $r:? = @index($j, 0:i64); "
                       "$s:? = @index($j, 1:i64);",
                       x, f, column(t, 'b')),
           {"r", "s"},
           "",
           true});
    out.push_back(
        {Builtin::join_index,
         {t, BasicType::i32},
         fmt::format("$a:? = @compress(bool_m, {0}); $b:? = @compress(bool_m, i32_d); $c:? = @list($a, $b); $d:? = "
                     "@list({0}, i32_d); $j:? = @join_index(@eq, $c, $d); $r:? = @index($j, 0:i64); $s:? = "
                     "@index($j, 1:i64);",
                     d),
         {"r", "s"},
         "",
         true});
  }
}

void cells(std::vector<Case>& out) {
  auto add = [&](Builtin form, Builtin f, Types types, std::string s, std::vector<std::string> results,
                 std::string sum = "") {
    out.push_back({form, std::move(types), std::move(s), std::move(results), std::move(sum), false, name_of(f).data()});
  };
  for (Builtin f : builtins_where(is_unary_map))
    for (BasicType t : all_types())
      add(Builtin::each, f, {t}, fmt::format("$r:? = @each(@{}, y_{});", name_of(f), column(t, argument_of(f))), {"r"});
  for (Builtin f : builtins_where(is_reduction))
    for (BasicType t : all_types())
      for (const std::string& c : columns_to_reduce(f, t)) {
        const std::string sum = f == Builtin::avg || (hir::is_float(t) && f == Builtin::sum) ? c : std::string();
        const std::string s = fmt::format("$l:? = @each(@{}, y_{}); $r:? = @raze($l);", name_of(f), c);
        add(Builtin::each, f, {t}, s, {"r"}, sum);
        out.push_back({Builtin::raze, {t}, s, {"r"}, sum, false, name_of(f).data()});
      }
  for (BasicType t : all_types()) {
    add(Builtin::each, Builtin::unique, {t}, fmt::format("$r:? = @each(@unique, y_{});", column(t, 'd')), {"r"});
    const std::string lengths = fmt::format("$m:? = @each(@len, v); $n:? = @raze($m); $e:? = @raze(y_{}); ", column(t, 'd'));
    out.push_back({Builtin::gpu_cells, {t}, lengths + "$r:? = @GPU.cells($e, $n);", {"r"}});
    out.push_back({Builtin::gpu_pick, {t}, lengths + "$l:? = @GPU.cells($e, $n); $c:i64 = @len($n); $k:i64 = @range($c); $i:i64 = @reverse($k); $r:? = @GPU.pick($i, $l, $l);", {"r"}});
    out.push_back({Builtin::gpu_cell_begins, {t}, lengths + "$r:? = @GPU.cell_begins($n);", {"r"}});
    out.push_back({Builtin::gpu_cell_numbers, {t}, lengths + "$r:? = @GPU.cell_numbers($n, $e); $s:? = @GPU.cell_numbers($n);", {"r", "s"}});
    add(Builtin::each_right, Builtin::index, {t},
        fmt::format("$l:? = @each_right(@index, {}, v); $r:? = @raze($l);", column(t, 'a')), {"l", "r"});
  }
  for (Builtin f : builtins_where(is_broadcast)) {
    if (hir::row(f).min_arity == 3) continue;
    for (BasicType t : all_types())
      for (BasicType u : {t, BasicType::i32}) {
        const std::string x = column(t, 'a'), y = column(u, 'b');
        add(Builtin::each_item, f, {t, u}, fmt::format("$r:? = @each_item(@{}, y_{}, y_{});", name_of(f), x, y), {"r"});
        add(Builtin::each_left, f, {t, u},
            fmt::format("$r:? = @each_left(@{}, y_{}, {});", name_of(f), x, literal_of(u)), {"r"});
        add(Builtin::each_right, f, {t, u},
            fmt::format("$r:? = @each_right(@{}, {}, y_{});", name_of(f), literal_of(t), y), {"r"});
      }
  }
}

struct Family {
  const char* name;
  void (*cases)(std::vector<Case>&);
};
constexpr Family families[] = {{"unary", unary},         {"binary", binary},       {"reductions", reductions}, {"scans", scans},
                               {"selection", selection}, {"folds", folds},           {"parts", parts_of_sums}, {"order_keys", order_keys},
                               {"operators", operators}, {"cells", cells}};

// --- What has no GPU code -------------------------------------------------------------------------------------------------------

bool on_all(const Case&) { return true; }
bool on_wide(const Case& c) { return std::any_of(c.types.begin(), c.types.end(), hir::is_wide); }

bool on_wide_and_others(const Case& c) { return on_wide(c) && !std::all_of(c.types.begin(), c.types.end(), hir::is_wide); }

bool on_no_keys(const Case& c) {
  return std::any_of(c.types.begin(), c.types.end(),
                     [](BasicType t) { return hir::is_float(t) || hir::is_wide(t) || t == BasicType::complex; });
}

struct Missing {
  const char* builtins;  // names between spaces; in an each form: of the function
  bool (*applies)(const Case&);
  const char* reason;
};
constexpr Missing without_code[] = {
    {" randk ", on_all, "random numbers are drawn in the order of the program, on the host"},
    {" GPU.probe ", on_no_keys, "look-ups are by integers, dates and texts: the outliner writes no others"},
    {" sum min max scan_sum scan_min scan_max order GPU.top_lib group unique member index_of join_index ", on_wide,
     "operators and reductions of i128 run on the reference interpreter"},
    {" append ", on_wide_and_others, "i128 is appended to i128"},
};
// The reason, or null when there should be code.
const char* missing(const Case& c) {
  const std::string name = fmt::format(" {} ", *c.function ? std::string_view(c.function) : name_of(c.builtin));
  for (const Missing& m : without_code)
    if (std::string_view(m.builtins).find(name) != std::string_view::npos && m.applies(c)) return m.reason;
  return nullptr;
}

// --- Programs -------------------------------------------------------------------------------------------------------------------

std::string replace_all(std::string s, std::string_view from, const std::string& to) {
  for (size_t at = 0; (at = s.find(from, at)) != std::string::npos; at += to.size()) s.replace(at, from.size(), to);
  return s;
}
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// One program of several cases; its result is the list of theirs.
std::string program_of(const std::vector<const Case*>& cases) {
  std::string text = "module m { import Builtin.*; def main() : list<?> { t:? = @load_table(`t:sym);\n";
  std::set<std::string> declared;
  auto declare = [&](auto& self, const std::string& name) -> void {
    if (name == "n") {
      self(self, "i64_q");
      if (declared.insert(name).second) text += "n:? = @len(i64_q);\n";
    } else if (name == "v") {
      self(self, "i64_k");
      if (declared.insert(name).second) text += "g:? = @group(i64_k); v:? = @values(g);\n";
    } else if (name.starts_with("y_")) {
      self(self, "v");
      self(self, name.substr(2));
      if (declared.insert(name).second)
        text += fmt::format("{}:? = @each_right(@index, {}, v);\n", name, name.substr(2));
    } else if (BasicType type; name.size() > 3 && name[name.size() - 2] == '_' &&
                               hir::parse_basic_type(name.substr(0, name.size() - 2), type)) {
      if (declared.insert(name).second)
        text += fmt::format("{0}:{1} = check_cast(@column_value(t, `{0}:sym), {1});\n", name,
                            name.substr(0, name.size() - 2));
    }
  };
  std::string body, results;
  for (size_t k = 0; k < cases.size(); ++k) {
    const std::string& s = cases[k]->statements;
    for (size_t i = 0; i < s.size();) {
      size_t end = i;
      while (end < s.size() && is_word(s[end])) ++end;
      if (end > i && (i == 0 || !std::strchr("@$`:", s[i - 1]))) declare(declare, s.substr(i, end - i));
      i = std::max(end, i + 1);
    }
    body += replace_all(s, "$", fmt::format("c{}", k)) + "\n";
    for (const std::string& r : cases[k]->results) results += fmt::format("{}c{}{}", results.empty() ? "" : ", ", k, r);
  }
  return fmt::format("{}{}last:? = @list({}); return last; }} }}", text, body, results);
}

// --- Comparison -----------------------------------------------------------------------------------------------------------------

// How far results may lie apart. Without any of these: bit for bit, where any NaN is as good as another.
struct Tolerance {
  double bound = 0;           // floats: difference of finite numbers
  bool any_zero = false;      // 0 equals -0
  uint32_t ulps[2] = {0, 0};  // of f32 and f64: units in the last place, with the same sign
};

// Maximal errors of the functions of libdevice (CUDA C++ Programming Guide 11.8, "Mathematical Functions"), f32 and f64, and one more for the C
// library's own. logb divides two logarithms.
Tolerance tolerance_of(Builtin b) {
  static const std::map<Builtin, std::pair<uint32_t, uint32_t>> errors = {
      {Builtin::log, {1, 1}},   {Builtin::log2, {1, 1}},  {Builtin::log10, {2, 1}}, {Builtin::exp, {2, 1}},
      {Builtin::cos, {2, 2}},   {Builtin::sin, {2, 2}},   {Builtin::tan, {4, 2}},   {Builtin::acos, {3, 2}},
      {Builtin::asin, {4, 2}},  {Builtin::atan, {2, 2}},  {Builtin::cosh, {2, 1}},  {Builtin::sinh, {3, 2}},
      {Builtin::tanh, {2, 1}},  {Builtin::acosh, {4, 3}}, {Builtin::asinh, {3, 3}}, {Builtin::atanh, {3, 2}},
      {Builtin::power, {4, 2}}, {Builtin::logb, {4, 4}},
  };
  Tolerance t;
  if (const auto known = errors.find(b); known != errors.end())
    t.ulps[0] = known->second.first + 1, t.ulps[1] = known->second.second + 1;
  t.any_zero = b == Builtin::min || b == Builtin::max;  // the smaller of 0 and -0 is either
  return t;
}

// Steps between neighbours from a to b, which have the same sign.
uint64_t steps(double a, double b) {
  int64_t x = 0, y = 0;
  std::memcpy(&x, &a, 8);
  std::memcpy(&y, &b, 8);
  return static_cast<uint64_t>(std::abs(x - y));
}
uint64_t steps(float a, float b) {
  int32_t x = 0, y = 0;
  std::memcpy(&x, &a, 4);
  std::memcpy(&y, &b, 4);
  return static_cast<uint64_t>(std::abs(x - y));
}

template <class T>
std::string compare_floats(const T* got, const T* want, uint64_t n, const Tolerance& tolerance) {
  const double bound = tolerance.bound;
  const bool any_zero = tolerance.any_zero;
  for (uint64_t i = 0; i < n; ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    if (std::memcmp(got + i, want + i, sizeof(T)) == 0) continue;
    if (const uint32_t most = tolerance.ulps[sizeof(T) == 8]; most && !std::isnan(got[i]) && !std::isnan(want[i]) &&
                                                              std::signbit(got[i]) == std::signbit(want[i]) &&
                                                              steps(got[i], want[i]) <= most)
      continue;
    if (any_zero && got[i] == want[i]) continue;
    if (bound > 0 && std::isfinite(want[i]) &&
        std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])) <= bound)
      continue;
    return fmt::format("element {} of {}: {}, not {}", i, n, got[i], want[i]);
  }
  return {};
}

// Empty: equal.
std::string compare(const Value& got, const Value& want, const Tolerance& tolerance) {
  if (got.kind != want.kind) return fmt::format("kind {}, not {}", int(got.kind), int(want.kind));
  if (want.kind == Value::dict) {  // of group: groups in any order
    auto in_order = [](const Value& d) {
      std::vector<std::pair<int64_t, std::vector<int64_t>>> groups;
      const Value& keys = d.parts()[0];
      for (uint64_t i = 0; i < keys.size; ++i) {
        const Value& cell = d.parts()[1].parts()[i];
        groups.push_back({keys.as<int64_t>()[i], {cell.as<int64_t>(), cell.as<int64_t>() + cell.size}});
        std::sort(groups.back().second.begin(), groups.back().second.end());
      }
      std::sort(groups.begin(), groups.end());
      return groups;
    };
    return in_order(got) == in_order(want)
               ? ""
               : fmt::format("other groups: {} of them, not {}", got.parts()[0].size, want.parts()[0].size);
  }
  if (want.kind == Value::list) {
    if (got.parts().size() != want.parts().size())
      return fmt::format("{} cells, not {}", got.parts().size(), want.parts().size());
    for (size_t i = 0; i < want.parts().size(); ++i)
      if (std::string why = compare(got.parts()[i], want.parts()[i], tolerance); !why.empty())
        return fmt::format("cell {}: {}", i, why);
    return {};
  }
  if (want.kind != Value::vector) return fmt::format("a value of kind {}", int(want.kind));
  if (got.type != want.type) return fmt::format("{}, not {}", name_of(got.type), name_of(want.type));
  if (got.size != want.size) return fmt::format("{} elements, not {}", got.size, want.size);
  if (want.type == BasicType::f32) return compare_floats(got.as<float>(), want.as<float>(), want.size, tolerance);
  if (want.type == BasicType::f64) return compare_floats(got.as<double>(), want.as<double>(), want.size, tolerance);
  if (want.type == BasicType::complex && want.size > 0)  // real and imaginary parts by turns
    return compare_floats(reinterpret_cast<const double*>(got.bytes->data()),
                          reinterpret_cast<const double*>(want.bytes->data()), 2 * want.size, tolerance);
  if (hir::is_text(want.type)) {
    for (uint64_t i = 0; i < want.size; ++i)
      if (got.text(i) != want.text(i)) return fmt::format("element {}: `{}`, not `{}`", i, got.text(i), want.text(i));
    return {};
  }
  const uint32_t width = data::plain_width(want.type);
  for (uint64_t i = 0; i < want.size; ++i)
    if (std::memcmp(got.bytes->data() + width * i, want.bytes->data() + width * i, width)) {
      int64_t a = 0, b = 0;
      std::memcpy(&a, got.bytes->data() + width * i, std::min(width, 8u));
      std::memcpy(&b, want.bytes->data() + width * i, std::min(width, 8u));
      return fmt::format("element {} of {}: {:#x}, not {:#x}", i, want.size, a, b);
    }
  return {};
}

std::string compare_pairs(const Value* got, const Value* want) {
  auto in_order = [](const Value* v) {
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (uint64_t i = 0; i < v[0].size; ++i) pairs.push_back({v[0].as<int64_t>()[i], v[1].as<int64_t>()[i]});
    std::sort(pairs.begin(), pairs.end());
    return pairs;
  };
  if (got[0].size != got[1].size) return "columns of different lengths";
  return in_order(got) == in_order(want) ? ""
                                         : fmt::format("other pairs: {} of them, not {}", got[0].size, want[0].size);
}

// n * eps * sum|x| of the finite elements of the column.
double rounding_bound(const Columns& tables, const Case& c) {
  const auto column = tables.column("t", c.summed);
  const BasicType type = (*column)->type;
  const Value x = reference::from_column(**column);
  double sum = 0;
  for (uint64_t i = 0; i < x.size; ++i) {
    double value = 0;
    if (type == BasicType::f64)
      value = x.as<double>()[i];
    else if (type == BasicType::f32)
      value = x.as<float>()[i];
    else {
      const uint32_t width = data::plain_width(type);
      int64_t bits = 0;
      std::memcpy(&bits, x.bytes->data() + width * i, width);
      value = static_cast<double>(bits << (64 - 8 * width) >> (64 - 8 * width));
    }
    if (std::isfinite(value)) sum += std::abs(value);
  }
  const double eps = type == BasicType::f64 || type == BasicType::i64 ? std::numeric_limits<double>::epsilon()
                                                                      : std::numeric_limits<float>::epsilon();
  return std::max(eps * static_cast<double>(std::max<uint64_t>(1, x.size)) * sum, std::numeric_limits<double>::min());
}

// --- The test -------------------------------------------------------------------------------------------------------------------

class Coverage : public ::testing::TestWithParam<Family> {
 protected:
  Result<Compiled> compile_cases(const std::vector<const Case*>& cases, const char* target, std::string& diagnostics,
                                 outliner::Mode mode = outliner::Mode::full) {
    DiagnosticSink sink;
    CompileOptions options;
    options.target = target;
    options.code_cache = &cache_;
    options.math = &math_;
    options.outline = mode;
    sources_.push_back(std::make_unique<SourceManager>());
    auto compiled =
        compile(sources_.back()->add("coverage.hir", program_of(cases)), *sources_.back(), options, sink, timings_);
    if (!compiled) diagnostics = compiled.error().message + render(sink, *sources_.back());
    return compiled;
  }
  // Cases that the frontend accepts and that have GPU code; the others are as `without_code` says.
  std::vector<const Case*> classify(const std::vector<Case>& cases, bool all) {
    std::vector<const Case*> with_code;
    std::set<std::string_view> accepted, seen;
    Columns nothing(0, Flavour::random);
    auto device = open_simulator("sm_86");
    Engine engine(**device, nothing, &cache_);
    for (const Case& c : cases) {
      seen.insert(name_of(c.builtin));
      std::string why;
      auto compiled = compile_cases({&c}, "sm_86", why);
      if (!compiled) {
        if (why.find("error") == std::string::npos || why.find("syntax") != std::string::npos ||
            why.find("unknown-name") != std::string::npos)
          ADD_FAILURE() << describe(c) << "\n" << why;
        sources_.pop_back();
        continue;
      }
      accepted.insert(name_of(c.builtin));
      auto plan = engine.plan(*compiled, *sources_.back(), {.allow_fallback = false}, timings_);
      const char* reason = missing(c);
      if (!reason && !plan && !compiled->no_math.empty() &&
          plan.error().message.find(compiled->no_math) != std::string::npos)
        reason = "needs the math functions of libdevice, which are not here";
      if (plan && reason)
        ADD_FAILURE() << describe(c) << "\nhas GPU code: its entry in without_code is out of date (" << reason << ")";
      if (!plan && !reason) ADD_FAILURE() << describe(c) << "\nhas no GPU code: " << plan.error().message;
      if (plan)
        with_code.push_back(&c);
      else
        without_.insert(
            {std::string(*c.function ? std::string_view(c.function) : name_of(c.builtin)), reason ? reason : "?"});
      sources_.clear();
    }
    for (std::string_view name : all ? seen : std::set<std::string_view>())
      EXPECT_TRUE(accepted.count(name)) << "no case of `" << name << "` is a valid program";
    return with_code;
  }
  std::vector<std::unique_ptr<SourceManager>> sources_;
  Timings timings_;
  CodeCache cache_{""};
  libdevice::Math math_{libdevice::default_places("")};
  std::set<std::pair<std::string, std::string>> without_;
};

struct Table {
  uint64_t rows;
  Flavour flavour;
};

// What a run of the test does.
struct Extent {
  bool all = false;  // cases and tables; else a slice
  bool on_gpu = false;
  std::vector<const char*> targets{"sm_61", "sm_86", "sm_90"};
  std::vector<Table> tables;
};
Extent extent() {
  Extent e;
  const char *which = std::getenv("RNDN_COVERAGE"), *rows = std::getenv("RNDN_COVERAGE_ROWS"),
             *device = std::getenv("RNDN_COVERAGE_DEVICE");
  e.on_gpu = device && std::string_view(device) == "cuda";
  e.all = e.on_gpu || rows || (which && std::string_view(which) == "all");
  if (e.all) e.targets.push_back("sm_75");
  if (e.on_gpu) e.targets = {"sm_90"};
  if (rows) {
    e.tables.push_back({std::strtoull(rows, nullptr, 10), Flavour::random});
  } else if (e.all) {
    for (uint64_t n : {0, 1, 31, 32, 33, 1023, 1024, 1025}) e.tables.push_back({n, Flavour::random});
    for (Flavour f : {Flavour::equal, Flavour::distinct, Flavour::zero}) e.tables.push_back({1025, f});
    if (e.on_gpu) e.tables.push_back({100000, Flavour::random});
  } else {
    e.tables = {{33, Flavour::random}, {1025, Flavour::equal}};
  }
  return e;
}

TEST_P(Coverage, AgreesWithTheReferenceInterpreter) {
  const Extent run = extent();
  std::vector<Case> cases;
  GetParam().cases(cases);
  constexpr size_t slice = 13;  // a prime: types and builtins stand in rows of other lengths
  if (!run.all) {
    std::vector<Case> some;
    for (size_t i = 0; i < cases.size(); i += slice) some.push_back(std::move(cases[i]));
    cases = std::move(some);
  }
  std::unique_ptr<device::Device> gpu;
  if (run.on_gpu) {
    const auto preparation = cuda::prepare();
    auto opened = cuda::open(*preparation);
    if (!opened) GTEST_SKIP() << "skipped: " << opened.error().message;
    gpu = *std::move(opened);
    ASSERT_EQ(gpu->info().target, run.targets[0]);
  }
  const std::vector<const Case*> with_code = classify(cases, run.all);
  constexpr outliner::Mode modes[] = {outliner::Mode::full, outliner::Mode::flow, outliner::Mode::none};
  constexpr size_t cases_per_program = 24;
  std::vector<std::set<std::string>> failed(run.targets.size());
  size_t failures = 0;
  for (size_t at = 0; at < with_code.size(); at += cases_per_program) {
    const std::vector<const Case*> batch(
        with_code.begin() + static_cast<ptrdiff_t>(at),
        with_code.begin() + static_cast<ptrdiff_t>(std::min(at + cases_per_program, with_code.size())));
    const size_t number = at / cases_per_program;
    // A program for every target; each table runs on one target, or all of them on all.
    for (size_t k = 0; k < run.targets.size(); ++k) {
      std::string why;
      auto compiled = compile_cases(batch, run.targets[k], why, modes[(number + k) % std::size(modes)]);
      ASSERT_TRUE(compiled) << run.targets[k] << ": " << why << program_of(batch);
      const SourceManager& sources = *sources_.back();
      for (size_t t = 0; t < run.tables.size(); ++t) {
        if (!run.all && (t + number + k) % run.targets.size() != 0) continue;
        const Table& table = run.tables[t];
        const Columns columns(table.rows, table.flavour);
        auto want = reference::run(compiled->program, columns, sources, nullptr);
        ASSERT_TRUE(want) << table.rows << " rows: " << want.error().message << "\n" << program_of(batch);
        const std::string where = fmt::format("{}, {} rows, flavour {}, mode {}", run.targets[k], table.rows,
                                              int(table.flavour), int(modes[(number + k) % std::size(modes)]));
        sim::Options checks;
        checks.check_hazards = checks.check_races = true;
        std::unique_ptr<device::Device> simulator;
        if (!run.on_gpu) simulator = *open_simulator(run.targets[k], checks);
        Engine engine(run.on_gpu ? *gpu : *simulator, columns, &cache_);
        auto plan = engine.plan(*compiled, sources, {.allow_fallback = false}, timings_);
        ASSERT_TRUE(plan) << where << ": " << plan.error().message << "\n" << program_of(batch);
        auto got = engine.run(**plan, timings_);
        if (!got) {
          ADD_FAILURE() << where << ": " << got.error().message << "\n" << (failures ? "" : program_of(batch));
          for (const Case* c : batch) failed[k].insert(std::string(name_of(c->builtin)));
          if (++failures > 20) return;
          continue;
        }
        const std::vector<Value>&a = (*got)[0].parts(), &b = (*want)[0].parts();
        ASSERT_EQ(a.size(), b.size());
        size_t result = 0;
        for (const Case* c : batch) {
          std::string wrong;
          if (c->pairs) {
            wrong = compare_pairs(&a[result], &b[result]);
          } else {
            Tolerance tolerance = tolerance_of(*c->function ? function_named(c->function) : c->builtin);
            if (!c->summed.empty()) tolerance.bound = rounding_bound(columns, *c);
            for (size_t r = 0; r < c->results.size() && wrong.empty(); ++r)
              if (wrong = compare(a[result + r], b[result + r], tolerance); !wrong.empty())
                wrong = fmt::format("${}: {}", c->results[r], wrong);
          }
          result += c->results.size();
          if (wrong.empty()) continue;
          failed[k].insert(std::string(name_of(c->builtin)));
          ADD_FAILURE() << where << ": " << describe(*c) << "\n" << wrong;
          if (++failures > 20) return;
        }
      }
    }
    sources_.clear();
  }
  fmt::print("{}: {} cases, {} with GPU code\n", GetParam().name, cases.size(), with_code.size());
  if (!run.all) return;
  std::set<std::string> names;
  for (const Case* c : with_code) {
    names.insert(std::string(name_of(c->builtin)));
    if (*c->function) names.insert(c->function);
  }
  for (const std::string& name : names)
    for (size_t k = 0; k < run.targets.size(); ++k)
      if (!failed[k].count(name))
        rndn::testing::record_status("builtin", name, run.targets[k], run.on_gpu ? "H200" : "simulator");
  for (const auto& [name, reason] : without_) rndn::testing::record_status("builtin", name, "without GPU code", reason);
}

INSTANTIATE_TEST_SUITE_P(Families, Coverage, ::testing::ValuesIn(families),
                         [](const auto& info) { return std::string(info.param.name); });

// Nothing that builtins.def gives to the device is left out above.
TEST(CoverageOf, EveryBuiltinOfTheDevice) {
  std::vector<Case> cases;
  for (const Family& f : families) f.cases(cases);
  std::set<Builtin> covered;
  for (const Case& c : cases) covered.insert(c.builtin);
  for (Builtin b : builtins_where([](const hir::BuiltinRow&) { return true; }))
    EXPECT_TRUE(covered.count(b)) << name_of(b);
  for (const Missing& m : without_code)
    EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [&](const Case& c) { return missing(c) == m.reason; }))
        << m.builtins;
}

}  // namespace
}  // namespace rndn::runtime::coverage_test
