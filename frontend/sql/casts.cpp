// Casts between SQL's types.
//
// Exact numbers are integers times a power of ten, in 64 bits; where a value of more than 18 digits
// is not proved to fit by the bounds of what it is made of, in 128 bits; where these do not do
// either, it is refused by name. What may leave its type is checked, unless bounds say that none
// does; TRY_CAST gives null there. Texts are read and written by functions of texts, once per
// distinct value. Rounding: of decimals and texts half away from zero, of floats to integers half
// to even.
#include <algorithm>
#include <cmath>

#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

// What a result of an exact type can be. Results of more than 18 digits must be proved to fit 128
// bits; of others that do not fit their type DuckDB raises an error.
Bounds Translator::within_type(Bounds bounds, std::string_view what, Type type) {
  const Bounds all = bounds_of(type);
  if (!all.known) {
    if (!bounds.known) fail("{} of type {} may leave 128 bits", what, type_name(type));
    return bounds;
  }
  if (!bounds.known) return all;
  return Bounds::of(std::max(bounds.least, all.least), std::min(bounds.most, all.most));
}

// The integer of an exact value at another, not smaller, scale.
VectorId Translator::rescaled(const Cell& c, unsigned scale) {
  const unsigned from = scale_of(c.type);
  const BasicType own = g_[c.value].type;
  BasicType type = hir::widest(own, BasicType::i64);
  if (scale == from) return g_.cast(c.value, type);
  const __int128 factor = power_of_ten(scale - from);
  const Bounds known = g_[c.value].bounds.known ? g_[c.value].bounds : bounds_of(c.type);
  const Bounds bounds = known * Bounds::of(factor, factor);
  if (!bounds.known)
    fail("a value of type {} with {} digits behind the point may leave 128 bits", type_name(c.type),
         scale);
  if (error_) return g_.zero(BasicType::i64);
  type = holding(holding(type, bounds), Bounds::of(factor, factor));
  const VectorId v = g_.cast(c.value, type);
  if (g_.is_literal(c.value)) return g_.integer(type, bounds.least);
  return g_.map("mul", {v, g_.integer(type, factor)}, type, bounds);
}

// Fewer digits behind the point, half away from zero.
Cell Translator::decimal_down(const Cell& c, unsigned digits, Type to, bool tries) {
  const __int128 factor = power_of_ten(digits);
  const BasicType type =
      holding(hir::widest(g_[c.value].type, BasicType::i64), Bounds::of(factor, factor));
  const VectorId v = g_.cast(c.value, type);
  const Bounds b = known_bounds(c);
  const VectorId half = g_.integer(type, factor / 2);
  const VectorId negative = g_.map("lt", {v, g_.integer(type, 0)}, BasicType::boolean);
  const VectorId moved =
      g_.select(negative, g_.map("minus", {v, half}, type, b - Bounds::of(factor / 2, factor / 2)),
                g_.map("plus", {v, half}, type, b + Bounds::of(factor / 2, factor / 2)));
  const Bounds out = b.known ? Bounds::of(b.least / factor - 1, b.most / factor + 1) : Bounds{};
  if (!bounds_of(to).known) within_type(out, "a cast", to);
  const VectorId result = g_.map("div", {moved, g_.integer(type, factor)}, type, out);
  return in_range(strict(to, result, {&c, 1}), out, tries, c);
}

// A value, of which bounds are known or not, that is within its type, or an error; with `tries`,
// null.
Cell Translator::in_range(Cell c, Bounds known, bool tries, const Cell& from) {
  const Bounds wanted = bounds_of(c.type);
  if (!wanted.known || known.within(wanted.least, wanted.most)) return c;
  if (!tries) {
    c.value = checked(c.value, known, {&from, 1}, c.type, "a value of type " + type_name(from.type));
    return c;
  }
  const BasicType type = hir::widest(g_[c.value].type, BasicType::i64);
  const VectorId wide = g_.cast(c.value, type);
  const auto end = [&](std::string_view builtin, __int128 value) {
    return g_.map(builtin, {wide, g_.integer(type, value)}, BasicType::boolean);
  };
  const VectorId holds = g_.and_(end("geq", wanted.least), end("leq", wanted.most));
  Cell out = canonical(c.type, wide, g_.and_(from.valid, holds));
  g_.change(out.value).bounds = wanted;
  if (hir::is_wide(type)) out.value = g_.cast(out.value, BasicType::i64);
  return out;
}

// A float as a whole number, half to even.
VectorId Translator::to_even(VectorId x) {
  const auto real = [&](double value) { return g_.real(BasicType::f64, value); };
  const VectorId rounded = g_.map("round", {x}, BasicType::f64);
  const VectorId away = g_.map("abs", {g_.map("minus", {x, rounded}, BasicType::f64)}, BasicType::f64);
  const VectorId is_half = g_.map("eq", {away, real(0.5)}, BasicType::boolean);
  const VectorId even = g_.map(
      "mul", {g_.map("round", {g_.map("div", {x, real(2)}, BasicType::f64)}, BasicType::f64), real(2)},
      BasicType::f64);
  return g_.select(is_half, even, rounded);
}

// A float that is checked to lie between two bounds, both included, as an integer.
Cell Translator::whole_of(const Cell& c, VectorId rounded, Type to, double least, double most, bool tries) {
  const VectorId holds = g_.and_(
      g_.map("geq", {rounded, g_.real(BasicType::f64, least)}, BasicType::boolean),
      g_.map("leq", {rounded, g_.real(BasicType::f64, most)}, BasicType::boolean));
  const VectorId safe = g_.select(holds, rounded, g_.real(BasicType::f64, 0));
  const VectorId v = g_.cast(safe, bounds_of(to).known ? BasicType::i64 : BasicType::i128);
  g_.change(v).bounds = bounds_of(to);
  if (tries) return canonical(to, v, g_.and_(c.valid, holds));
  const Cell out{demanded(v, holds, {&c, 1}, fmt::format("a value is out of range for the type {}", type_name(to)),
                         bounds_of(to)),
                 c.valid, to};
  return out;
}

Cell Translator::cast_to_text(const Cell& c, Type to) {
  const auto integer = [&](int64_t value) { return Cell{g_.integer(BasicType::i64, value), nothing, {TypeId::bigint}}; };
  switch (c.type.id) {
    case TypeId::boolean: {
      const VectorId v = g_.select(c.value, g_.text(BasicType::str, "true"), g_.text(BasicType::str, "false"));
      return strict(to, v, {&c, 1});
    }
    case TypeId::real:
    case TypeId::double_: {
      // Texts are made once for each value, and -0.0 is 0.0's equal.
      const BasicType type = g_[c.value].type;
      const VectorId zero = g_.real(type, 0);
      const VectorId inverse = g_.map("div", {g_.real(type, 1), c.value}, type);
      const VectorId is_negative = g_.and_(g_.map("eq", {c.value, zero}, BasicType::boolean),
                                           g_.map("lt", {inverse, zero}, BasicType::boolean));
      const Cell other{g_.select(is_negative, zero, c.value), c.valid, c.type};
      Cell out = text_cell(to, "of_float", {other});
      out.value = g_.select(is_negative, g_.text(g_[out.value].type, "-0.0"), out.value);
      return out;
    }
    case TypeId::decimal:
      return text_cell(to, "of_decimal", {c, integer(c.type.width), integer(c.type.scale)});
    case TypeId::date: return text_cell(to, "of_date", {c});
    case TypeId::timestamp: return text_cell(to, "of_timestamp", {c});
    case TypeId::timestamptz:
      return text_cell(to, "concat", {text_cell(to, "of_timestamp", {c}), {g_.text(BasicType::str, "+00"), nothing, to}});
    case TypeId::time: return text_cell(to, "of_time", {c});
    default: break;
  }
  if (is_exact(c.type)) return text_cell(to, "of_integer", {c});
  fail("the cast from {} to {} has no translation", type_name(c.type), type_name(to));
  return failed(to);
}

Cell Translator::cast_from_text(const Cell& c, Type to, bool tries) {
  const auto integer = [&](__int128 value) {
    return Cell{g_.integer(holding(BasicType::i64, Bounds::of(value, value)), value), nothing, {TypeId::bigint}};
  };
  const auto called = [&](std::string_view function, std::vector<Cell> arguments) {
    return text_cell(to, function, arguments, tries ? Undefined::is_null : Undefined::is_error);
  };
  switch (to.id) {
    case TypeId::boolean: return called("to_bool", {c});
    case TypeId::real: return called("to_f32", {c});
    case TypeId::double_: return called("to_f64", {c});
    case TypeId::date: return called("to_date", {c});
    case TypeId::timestamp:
    case TypeId::timestamptz: return called("to_timestamp", {c});
    case TypeId::time: return called("to_time", {c});
    case TypeId::hugeint: return called("to_hugeint", {c});
    case TypeId::decimal: {
      Cell out = called(to.width > 18 ? "to_wide" : "to_decimal", {c, integer(to.width), integer(to.scale)});
      return out;
    }
    default: break;
  }
  if (is_integral(to)) {
    const Bounds all = bounds_of(to);
    Cell out = called("to_integer", {c, integer(all.least), integer(all.most)});
    return out;
  }
  fail("the cast from {} to {} has no translation", type_name(c.type), type_name(to));
  return failed(to);
}

Cell Translator::cast_cell(const Cell& c, Type to, bool tries) {
  const Type from = c.type;
  if (from == to) return c;
  const BasicType type = basic_of(to);
  const auto refuse = [&] {
    fail("the cast from {} to {} has no translation", type_name(from), type_name(to));
    return failed(to);
  };
  if (!is_none(c.valid) && g_.is_false(c.valid)) return null_of(to);
  if (to.id == TypeId::varchar) return cast_to_text(c, to);
  if (from.id == TypeId::varchar) return cast_from_text(c, to, tries);
  if (from.id == TypeId::boolean) {
    if (is_floating(to)) return {g_.cast(c.value, type), c.valid, to};
    if (!is_exact(to)) return refuse();
    const Cell number{g_.cast(c.value, hir::widest(type, BasicType::i64)), c.valid, {TypeId::tinyint}};
    g_.change(number.value).bounds = Bounds::of(0, 1);
    return to.id == TypeId::decimal ? cast_cell(number, to, tries) : Cell{number.value, c.valid, to};
  }
  if (to.id == TypeId::boolean && (is_exact(from) || is_floating(from)))
    return strict(to, g_.map("neq", {c.value, g_.zero(g_[c.value].type)}, BasicType::boolean), {&c, 1});
  if (is_exact(from) && is_exact(to)) {
    const unsigned less = scale_of(from), more = scale_of(to);
    if (less > more) return decimal_down(c, less - more, to, tries);
    Cell out{c.value, c.valid, to};
    if (to.id == TypeId::decimal) out.value = rescaled(c, more);
    else if (g_[c.value].type < type)
      out.value = g_.cast(c.value, type);
    const Bounds bounds = g_[out.value].bounds.known ? g_[out.value].bounds : known_bounds(c);
    return in_range(out, bounds, tries, c);
  }
  if (is_exact(from) && is_floating(to)) {
    VectorId v = g_.cast(c.value, BasicType::f64);
    const unsigned scale = scale_of(from);
    if (scale > 0)
      v = g_.map("div", {v, g_.real(BasicType::f64, static_cast<double>(power_of_ten(scale)))},
                 BasicType::f64);
    if (type == BasicType::f32) {
      if (scale > 0 || !is_integral(from)) return refuse();
      v = g_.cast(c.value, type);
    }
    return {v, c.valid, to};
  }
  if (from.id == TypeId::real && to.id == TypeId::double_)
    return {g_.cast(c.value, type), c.valid, to};
  if (is_floating(from) && (is_integral(to) || to.id == TypeId::hugeint)) {
    const Bounds all = bounds_of(to);
    // The greatest f64 below 2^63 and 2^127, where the type has all bits.
    const double most = to.id == TypeId::hugeint  ? std::nextafter(0x1p127, 0)
                        : to.id == TypeId::bigint ? std::nextafter(0x1p63, 0)
                                                  : static_cast<double>(all.most);
    const double least = to.id == TypeId::hugeint ? -0x1p127 : static_cast<double>(all.least);
    return whole_of(c, to_even(g_.cast(c.value, BasicType::f64)), to, least, most, tries);
  }
  if (is_floating(from) && to.id == TypeId::decimal) {
    const VectorId scaled = g_.map(
        "mul", {g_.cast(c.value, BasicType::f64), g_.real(BasicType::f64, static_cast<double>(power_of_ten(to.scale)))},
        BasicType::f64);
    double most = static_cast<double>(power_of_ten(to.width) - 1);
    if (to.width > 15) most = std::nextafter(static_cast<double>(power_of_ten(to.width)), 0);
    return whole_of(c, g_.map("round", {scaled}, BasicType::f64), to, -most, most, tries);
  }
  if (is_moment(from) && is_timestamp(to)) return strict(to, micros_of(c), {&c, 1});
  if (is_timestamp(from) && to.id == TypeId::date)
    return strict(to, date_of(days_of(c)), {&c, 1});
  if (is_timestamp(from) && to.id == TypeId::time)
    return strict(to, time_of_day(c), {&c, 1});
  return refuse();
}
Cell Translator::cast(const Expression& e, std::span<const Cell> a, std::string_view) {
  const Expression& inner = plan_[plan_.of(e.arguments)[0]];
  if (inner.kind == Expression::call && inner.function == Function::error)
    return raised_as(e.type, evaluate(plan_.of(inner.arguments)[0], std::span<const Cell>()));
  return cast_cell(a[0], e.type, e.tries);
}

}  // namespace rndn::sql
