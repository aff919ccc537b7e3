// Reductions to one element (docs/horseir.md, "Builtins: reductions"). Integers accumulate in 64
// bits, floats exactly: a sum is rounded once. An average is the rounded sum by the count, in f64;
// that of integers wraps nowhere. Of zeros, -0 is the smaller.
#include <bit>
#include <cmath>
#include <limits>

#include "libraries/base/numbers/running_sums.h"
#include "libraries/base/numbers/sum_parts.h"
#include "runtime/reference/builtins.h"
#include "runtime/reference/exact_sum.h"

namespace rndn::reference {

using hir::BasicType;

namespace {

Result<Value> len(Context& context, Arguments a) {
  if (a[0].kind == Value::table && !a[0].source.empty()) {
    ASSIGN_OR_RETURN(uint64_t rows, rows_of(a[0], context.tables));
    return scalar_i64(static_cast<int64_t>(rows));
  }
  return scalar_i64(static_cast<int64_t>(length(a[0])));
}

template <class T>
ExactSum exact_sum(const Value& x) {
  ExactSum total;
  for (uint64_t i = 0; i < x.size; ++i) total.add(static_cast<double>(x.as<T>()[i]));
  return total;
}

// The minimum of no elements, or their maximum.
template <class T>
T end_of(BasicType type, bool smallest) {
  using Limits = std::numeric_limits<T>;
  if (type == BasicType::boolean) return smallest;
  if constexpr (Limits::has_infinity) return smallest ? Limits::infinity() : -Limits::infinity();
  return smallest ? Limits::max() : Limits::min();
}

// GPU.sum_part(x, k): part k of every number (libraries/base/numbers/sum_parts.h).
Result<Value> sum_part(Context&, Arguments a) {
  const Value &x = a[0], &k = a[1];
  if (!x.is_vector() || x.type != BasicType::f64 || !k.is_vector() || k.type != BasicType::i64 || k.size != 1 ||
      k.as<int64_t>()[0] < 0 || k.as<int64_t>()[0] > int64_t{sum_parts::last})
    return input_error("`GPU.sum_part` is not defined for {} and {}", describe(x), describe(k));
  const auto part = static_cast<size_t>(k.as<int64_t>()[0]);
  std::vector<int64_t> out;
  for (const double e : elements<double>(x)) {
    bool has_parts = std::fabs(e) < std::ldexp(1.0, sum_parts::limit);
    double rest = e;  // of e, less the parts so far
    for (size_t p = 0; p < sum_parts::count && has_parts; ++p) {
      const double whole = std::nearbyint(std::ldexp(rest, -sum_parts::lowest[p]));
      if (p == part) out.push_back(static_cast<int64_t>(whole));
      rest -= std::ldexp(whole, sum_parts::lowest[p]);
    }
    if (!has_parts || rest != 0) return input_error("`GPU.sum_part` got {}, which has no such parts", e);
  }
  return make<int64_t>(BasicType::i64, out);
}

// GPU.sum_of_parts(a, b, c, d): the sum of which those are the sums of the parts, rounded once.
Result<Value> sum_of_parts(Context&, Arguments a) {
  for (const Value& v : a)
    if (!v.is_vector() || v.type != BasicType::i64 || v.size != a[0].size)
      return input_error("`GPU.sum_of_parts` is not defined for {}", describe(v));
  std::vector<double> out;
  for (uint64_t i = 0; i < a[0].size; ++i) {
    ExactSum sum;
    for (size_t p = 0; p < sum_parts::count; ++p) {
      const int64_t e = a[p].as<int64_t>()[i];
      sum.add(std::ldexp(static_cast<double>(e >> 32), 32 + sum_parts::lowest[p]));
      sum.add(std::ldexp(static_cast<double>(e & 0xffffffff), sum_parts::lowest[p]));
    }
    out.push_back(sum.rounded<double>());
  }
  return make<double>(BasicType::f64, out);
}

// GPU.order_key(x, k): integers in the order of x.
template <class T, class Key>
Value order_keys(BasicType type, const Value& x, bool nan_last) {
  std::vector<Key> out;
  for (T e : elements<T>(x)) {
    if (std::isnan(e)) e = end_of<T>(x.type, nan_last);
    const Key magnitude = std::bit_cast<Key>(std::fabs(e));
    out.push_back(std::signbit(e) ? -magnitude - 1 : magnitude);
  }
  return make<Key>(type, out);
}
Result<Value> order_key(Context&, Arguments a) {
  const Value &x = a[0], &k = a[1];
  if (!x.is_vector() || !hir::is_float(x.type) || !k.is_vector() || k.type != BasicType::i64 || k.size != 1)
    return input_error("`GPU.order_key` is not defined for {} and {}", describe(x), describe(k));
  const bool nan_last = k.as<int64_t>()[0] != 0;
  return x.type == BasicType::f64 ? order_keys<double, int64_t>(BasicType::i64, x, nan_last)
                                  : order_keys<float, int32_t>(BasicType::i32, x, nan_last);
}

template <class T, class Key>
Value of_order_keys(BasicType type, const Value& x) {
  std::vector<T> out;
  for (Key e : elements<Key>(x)) out.push_back(e < 0 ? -std::bit_cast<T>(-(e + 1)) : std::bit_cast<T>(e));
  return make<T>(type, out);
}
Result<Value> of_order_key(Context&, Arguments a) {
  const Value& x = a[0];
  if (!x.is_vector() || (x.type != BasicType::i32 && x.type != BasicType::i64))
    return input_error("`GPU.of_order_key` is not defined for {}", describe(x));
  return x.type == BasicType::i64 ? of_order_keys<double, int64_t>(BasicType::f64, x)
                                  : of_order_keys<float, int32_t>(BasicType::f32, x);
}

Result<Value> sum(Context& context, Arguments a) {
  const Value& x = a[0];
  if (!x.is_vector() || !hir::is_ordered_number(x.type)) return input_error("`sum` is not defined for {}", describe(x));
  if (x.type == BasicType::f32) return make<float>(x.type, {exact_sum<float>(x).rounded<float>()});
  if (x.type == BasicType::f64) return make<double>(x.type, {exact_sum<double>(x).rounded<double>()});
  if (hir::is_wide(x.type)) {
    unsigned __int128 wide = 0;
    for (__int128 e : elements<__int128>(x)) wide += static_cast<unsigned __int128>(e);
    return make<__int128>(x.type, {static_cast<__int128>(wide)});
  }
  uint64_t total = 0;
  for (int64_t e : elements<int64_t>(x)) total += static_cast<uint64_t>(e);
  int64_t result = static_cast<int64_t>(total);
  bool wide = x.type == BasicType::i64 || (context.expected && *context.expected == BasicType::i64);
  return wide ? scalar_i64(result) : make<int32_t>(BasicType::i32, {static_cast<int32_t>(result)});
}

Result<Value> avg(Context& context, Arguments a) {
  const Value& x = a[0];
  if (!x.is_vector() || !hir::is_real(x.type)) return input_error("`avg` is not defined for {}", describe(x));
  double total = 0;
  if (x.type == BasicType::f32) {
    total = exact_sum<float>(x).rounded<double>();
  } else if (x.type == BasicType::f64) {
    total = exact_sum<double>(x).rounded<double>();
  } else {
    __int128 whole = 0;
    for (int64_t e : elements<int64_t>(x)) whole += e;
    total = static_cast<double>(whole);
  }
  double mean = total / static_cast<double>(x.size);
  bool wide = hir::is_extended(x.type) || (context.expected && *context.expected == BasicType::f64);
  return wide ? make<double>(BasicType::f64, {mean}) : make<float>(BasicType::f32, {static_cast<float>(mean)});
}

template <bool smallest, class T>
T better(T best, T e) {
  if (smallest ? e < best : e > best) return e;  // NaN compares false and is passed over
  if constexpr (std::is_floating_point_v<T>)
    if (e == 0 && best == 0 && std::signbit(e) == smallest) return e;
  return best;
}

template <bool smallest>
Result<Value> extreme(Context&, Arguments a) {
  const Value& x = a[0];
  if (!x.is_vector() || !(hir::is_ordered_number(x.type) || hir::is_calendar(x.type)))
    return input_error("`{}` is not defined for {}", smallest ? "min" : "max", describe(x));
  return with_type(x.type, [&](auto zero) -> Result<Value> {
    using T = decltype(zero);
    T best = end_of<T>(x.type, smallest);
    for (T e : elements<T>(x)) best = better<smallest>(best, e);
    return make<T>(x.type, {best});
  });
}

template <bool all>
Result<Value> quantifier(Context&, Arguments a) {
  const Value& x = a[0];
  if (!x.is_vector() || x.type != BasicType::boolean)
    return input_error("`{}` expects a bool vector, got {}", all ? "all" : "any", describe(x));
  bool result = all;
  for (uint8_t e : elements<uint8_t>(x)) result = all ? (result && e) : (result || e);
  return make_bool({static_cast<uint8_t>(result)});
}

// Scans: what the reduction of the elements from the last start up to each is.
template <class T, class Sum, class Combine>
Value scan(BasicType type, const Value& x, const Value& starts, Sum first, Combine&& combine) {
  const std::vector<uint8_t> begins = elements<uint8_t>(starts);
  std::vector<T> out;
  Sum total = first;
  uint64_t i = 0;
  for (T e : elements<T>(x)) {
    if (begins[i++]) total = first;
    total = combine(total, static_cast<Sum>(e));
    out.push_back(static_cast<T>(total));
  }
  return make<T>(type, out);
}

// In f64, in the order of every device.
template <class T>
Value scan_floats(const Value& x, const Value& starts) {
  const std::vector<T> in = elements<T>(x);
  std::vector<double> sums(in.begin(), in.end());
  running_sums(sums, elements<uint8_t>(starts));
  std::vector<T> out;
  for (double sum : sums) out.push_back(static_cast<T>(sum));
  return make<T>(x.type, out);
}

Result<void> check_scan(std::string_view name, Arguments a, bool defined) {
  if (!defined || a[1].type != BasicType::boolean || !a[1].is_vector())
    return input_error("`{}` is not defined for {} and {}", name, describe(a[0]), describe(a[1]));
  if (a[0].size != a[1].size)
    return input_error("`{}` expects a bool for each of {} elements, got {}", name, a[0].size, a[1].size);
  return {};
}

Result<Value> scan_sum(Context&, Arguments a) {
  const Value& x = a[0];
  RETURN_IF_ERROR(check_scan("scan_sum", a, x.is_vector() && hir::is_ordered_number(x.type)));
  const auto plus = [](auto total, auto e) { return total + e; };
  if (x.type == BasicType::f32) return scan_floats<float>(x, a[1]);
  if (x.type == BasicType::f64) return scan_floats<double>(x, a[1]);
  if (hir::is_wide(x.type)) return scan<__int128>(x.type, x, a[1], static_cast<unsigned __int128>(0), plus);
  return scan<int64_t>(BasicType::i64, x, a[1], uint64_t{0}, plus);
}

template <bool smallest>
Result<Value> scan_extreme(Context&, Arguments a) {
  const Value& x = a[0];
  RETURN_IF_ERROR(check_scan(smallest ? "scan_min" : "scan_max", a,
                             x.is_vector() && (hir::is_ordered_number(x.type) || hir::is_calendar(x.type))));
  return with_type(x.type, [&](auto zero) -> Result<Value> {
    using T = decltype(zero);
    return scan<T>(x.type, x, a[1], end_of<T>(x.type, smallest), [](T best, T e) { return better<smallest>(best, e); });
  });
}

}  // namespace

std::span<const BuiltinEntry> reduction_builtins() {
  static constexpr BuiltinEntry entries[] = {{"len", len},
                                             {"sum", sum},
                                             {"avg", avg},
                                             {"min", extreme<true>},
                                             {"max", extreme<false>},
                                             {"GPU.sum_part", sum_part},
                                             {"GPU.sum_of_parts", sum_of_parts},
                                             {"GPU.order_key", order_key},
                                             {"GPU.of_order_key", of_order_key},
                                             {"scan_sum", scan_sum},
                                             {"scan_min", scan_extreme<true>},
                                             {"scan_max", scan_extreme<false>},
                                             {"any", quantifier<false>},
                                             {"all", quantifier<true>}};
  return entries;
}

}  // namespace rndn::reference
