// Reductions to one element (horseir.md 4.4). Integers accumulate in 64 bits; floats left to right, so that results
// repeat.
#include <limits>

#include "runtime/reference/builtins.h"

namespace rndn::reference {

using hir::BasicType;

namespace {

Result<Value> len(Context& context, Arguments a) {
  if (a[0].kind == Value::table && !a[0].source.empty()) {
    ASSIGN_OR_RETURN(uint64_t rows, context.tables.rows(a[0].source));
    return scalar_i64(static_cast<int64_t>(rows));
  }
  return scalar_i64(static_cast<int64_t>(length(a[0])));
}

Result<Value> sum(Context& context, Arguments a) {
  const Value& x = a[0];
  if (!x.is_vector() || !hir::is_real(x.type)) return input_error("`sum` is not defined for {}", describe(x));
  if (hir::is_float(x.type))
    return with_type(x.type, [&](auto zero) -> Result<Value> {
      using T = decltype(zero);
      T total = 0;
      for (T e : elements<T>(x)) total += e;
      return make<T>(x.type, {total});
    });
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
  for (double e : elements<double>(x)) total += e;
  double mean = total / static_cast<double>(x.size);
  bool wide = hir::is_extended(x.type) || (context.expected && *context.expected == BasicType::f64);
  return wide ? make<double>(BasicType::f64, {mean}) : make<float>(BasicType::f32, {static_cast<float>(mean)});
}

template <bool smallest>
Result<Value> extreme(Context&, Arguments a) {
  const Value& x = a[0];
  if (!x.is_vector() || !(hir::is_real(x.type) || hir::is_calendar(x.type)))
    return input_error("`{}` is not defined for {}", smallest ? "min" : "max", describe(x));
  return with_type(x.type, [&](auto zero) -> Result<Value> {
    using T = decltype(zero);
    using Limits = std::numeric_limits<T>;
    T best = smallest ? (Limits::has_infinity ? Limits::infinity() : Limits::max())
                      : (Limits::has_infinity ? -Limits::infinity() : Limits::min());
    if (x.type == BasicType::boolean) best = smallest;
    for (T e : elements<T>(x))
      if (smallest ? e < best : e > best) best = e;  // NaN compares false and is passed over
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

}  // namespace

std::span<const BuiltinEntry> reduction_builtins() {
  static constexpr BuiltinEntry entries[] = {{"len", len},
                                             {"sum", sum},
                                             {"avg", avg},
                                             {"min", extreme<true>},
                                             {"max", extreme<false>},
                                             {"any", quantifier<false>},
                                             {"all", quantifier<true>}};
  return entries;
}

}  // namespace rndn::reference
