// Casts between SQL's types.
//
// Exact numbers are integers times a power of ten, in 64 bits; where a value of more than 18 digits
// is not proved to fit by the bounds of what it is made of, in 128 bits. What may leave its type, or
// 128 bits on the way, is checked, unless bounds say that none does; TRY_CAST gives null there.
// Texts are read and written by functions of texts, once per distinct value. Rounding: of decimals
// and texts half away from zero, of floats to integers half to even.
#include <algorithm>
#include <cmath>

#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

// What a result of an exact type can be once it is checked.
Bounds Translator::within_type(Bounds bounds, Type type) {
  const Bounds all = bounds_of(type);
  if (!all.known) return bounds;
  if (!bounds.known) return all;
  return Bounds::of(std::max(bounds.least, all.least), std::min(bounds.most, all.most));
}

namespace {

constexpr __int128 most_128 = ~(__int128{1} << 127);

}  // namespace

// The sign of a sum or difference tells whether it has wrapped; a product is divided again.
VectorId Translator::unwrapped(std::string_view builtin, VectorId x, VectorId y, VectorId result) {
  const BasicType type = BasicType::i128, truth = BasicType::boolean;
  const VectorId zero = g_.zero(type);
  if (builtin == "mul") {
    const VectorId is_zero = g_.map("eq", {y, zero}, truth);
    const VectorId back = g_.map("div", {result, g_.select(is_zero, g_.integer(type, 1), y)}, type);
    return g_.or_(is_zero, g_.map("eq", {back, x}, truth));
  }
  const auto below = [&](VectorId v) { return g_.map("lt", {v, zero}, truth); };
  const VectorId alike = g_.map(builtin == "plus" ? "eq" : "neq", {below(x), below(y)}, truth);
  return g_.or_(g_.not_(alike), g_.map("eq", {below(result), below(x)}, truth));
}

// The integer of an exact value at another, not smaller, scale. `fits`: where it is within 128 bits;
// null: it must be proved.
VectorId Translator::rescaled(const Cell& c, unsigned scale, VectorId* fits) {
  const unsigned from = scale_of(c.type);
  const BasicType own = g_[c.value].type;
  BasicType type = hir::widest(own, BasicType::i64);
  if (scale == from) return g_.cast(c.value, type);
  const __int128 factor = power_of_ten(scale - from);
  const Bounds known = g_[c.value].bounds.known ? g_[c.value].bounds : bounds_of(c.type);
  const Bounds bounds = known * Bounds::of(factor, factor);
  if (!bounds.known && fits)
    *fits = within(g_.cast(c.value, BasicType::i128), known,
                   Bounds::of(-(most_128 / factor), most_128 / factor));
  else if (!bounds.known)
    fail("a value of type {} with {} digits behind the point may leave 128 bits", type_name(c.type),
         scale);
  if (error_) return g_.zero(BasicType::i64);
  type = bounds.known ? holding(holding(type, bounds), Bounds::of(factor, factor)) : BasicType::i128;
  const VectorId v = g_.cast(c.value, type);
  if (g_.is_literal(c.value) && bounds.known) return g_.integer(type, bounds.least);
  return g_.map("mul", {v, g_.integer(type, factor)}, type, bounds);
}

// Fewer digits behind the point, half away from zero.
Cell Translator::decimal_down(const Cell& c, unsigned digits, Type to, bool tries) {
  const __int128 factor = power_of_ten(digits);
  const Bounds b = known_bounds(c);
  const Bounds half_bounds = Bounds::of(-(factor / 2), factor / 2);
  BasicType type = holding(hir::widest(g_[c.value].type, BasicType::i64), Bounds::of(factor, factor));
  type = holding(type, b + half_bounds);
  const VectorId v = g_.cast(c.value, type);
  const VectorId half = g_.integer(type, factor / 2);
  const VectorId negative = g_.map("lt", {v, g_.integer(type, 0)}, BasicType::boolean);
  const Bounds out = b.known ? Bounds::of(b.least / factor - 1, b.most / factor + 1) : Bounds{};
  const VectorId by = g_.integer(type, factor);
  VectorId result;
  if (type == BasicType::i128 && !(b + half_bounds).known) {
    // The sum with a half may not fit: what is left of the quotient is compared with it.
    const VectorId cut = g_.map("div", {v, by}, type);
    const VectorId left = g_.map("minus", {v, g_.map("mul", {cut, by}, type)}, type);
    const VectorId away = g_.map("geq", {g_.map("abs", {left}, type), half}, BasicType::boolean);
    const VectorId step = g_.select(negative, g_.integer(type, -1), g_.integer(type, 1));
    result = g_.map("plus", {cut, g_.select(away, step, g_.integer(type, 0))}, type);
  } else {
    const VectorId moved = g_.select(negative, g_.map("minus", {v, half}, type, b - Bounds::of(factor / 2, factor / 2)),
                                     g_.map("plus", {v, half}, type, b + Bounds::of(factor / 2, factor / 2)));
    result = g_.map("div", {moved, by}, type, out);
  }
  return in_range(strict(to, result, {&c, 1}), out, tries, c);
}

// A value, of which bounds are known or not, that is within its type, or an error; with `tries`,
// null.
Cell Translator::in_range(Cell c, Bounds known, bool tries, const Cell& from, VectorId fits) {
  if (!tries) {
    c.value = checked(c.value, known, {&from, 1}, c.type,
                      "a value of type " + type_name(from.type), fits);
    return c;
  }
  const BasicType type = hir::widest(g_[c.value].type, BasicType::i64);
  const VectorId wide = g_.cast(c.value, type);
  const Bounds wanted = bounds_of(c.type);
  const VectorId holds = g_.and_(fits, within(wide, known, wanted));
  if (is_none(holds)) return c;
  Cell out = canonical(c.type, wide, g_.and_(from.valid, holds));
  if (wanted.known) g_.change(out.value).bounds = wanted;
  if (hir::is_wide(type) && wanted.fits_i64()) out.value = g_.cast(out.value, BasicType::i64);
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
  const VectorId v = g_.cast(safe, bounds_of(to).fits_i64() ? BasicType::i64 : BasicType::i128);
  g_.change(v).bounds = bounds_of(to);
  if (tries) return canonical(to, v, g_.and_(c.valid, holds));
  const Cell out{demanded(v, holds, {&c, 1}, fmt::format("a value is out of range for the type {}", type_name(to)),
                         bounds_of(to)),
                 c.valid, to};
  return out;
}

// A value of an ENUM is its place among the type's texts, by which values are ordered.
Cell Translator::enum_text(const Cell& c) {
  const std::span<const std::string> texts = plan_.enums[c.type.list];
  const Type text{TypeId::varchar};
  constexpr BasicType type = BasicType::str;
  if (g_.is_literal(c.value))
    return strict(text, g_.text(type, texts[static_cast<size_t>(g_[c.value].bounds.least)]), {&c, 1});
  if (texts.size() == 1) return strict(text, g_.text(type, texts[0]), {&c, 1});
  std::vector<VectorId> literals;
  for (const std::string& t : texts) literals.push_back(g_.text(type, t));
  const SpaceId all = g_.space(static_cast<double>(texts.size()));
  const VectorId values = g_.call("", {}, type, all, "texts", {}, g_[g_.list_literal(type, literals)].head,
                                  std::string(hir::basic_type_name(type)));
  return strict(text, g_.pick(values, g_.cast(c.value, BasicType::i64)), {&c, 1});
}

Cell Translator::enum_of(const Cell& c, Type to, bool tries) {
  const std::span<const std::string> texts = plan_.enums[to.list];
  Cell x = c;
  if (!hir::is_text(g_[x.value].type)) x = text_cell(x.type, "concat", {x});
  const auto whole = [&](size_t n) { return g_.integer(BasicType::i64, static_cast<int64_t>(n)); };
  std::vector<VectorId> literals;
  for (const std::string& t : texts) literals.push_back(g_.text(g_[x.value].type, t));
  const VectorId place =
      texts.size() == 1
          ? g_.select(g_.map("eq", {x.value, literals[0]}, BasicType::boolean), whole(0), whole(1))
          : g_.call("@index_of(", {x.value, g_.list_literal(g_[x.value].type, literals)},
                    BasicType::i64, g_[x.value].space, "place");
  const VectorId holds = g_.map("lt", {place, whole(texts.size())}, BasicType::boolean);
  const VectorId v = g_.select(holds, place, whole(0));
  g_.change(v).bounds = Bounds::of(0, static_cast<__int128>(texts.size()) - 1);
  if (tries) return canonical(to, v, g_.and_(x.valid, holds));
  return strict(to, demanded(v, holds, {&x, 1}, "a text is no value of the ENUM", g_[v].bounds), {&x, 1});
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
    case TypeId::interval: return text_cell(to, "of_interval", {c});
    case TypeId::enumeration: return enum_text(c);
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
    case TypeId::enumeration: return enum_of(c, to, tries);
    case TypeId::real: return called("to_f32", {c});
    case TypeId::double_: return called("to_f64", {c});
    case TypeId::date: return called("to_date", {c});
    case TypeId::timestamp: return called("to_timestamp", {c});
    case TypeId::timestamptz: return called("to_timestamptz", {c});
    case TypeId::time: return called("to_time", {c});
    case TypeId::hugeint: return called("to_hugeint", {c});
    case TypeId::ubigint: {
      const Cell whole = called("to_hugeint", {c});
      return in_range(whole, {}, tries, whole);
    }
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

// An exact number as FLOAT: of a decimal of more than 24 bits the whole part and the rest are
// rounded each for itself, as DuckDB does.
Cell Translator::to_float(const Cell& c) {
  constexpr BasicType type = BasicType::f32, truth = BasicType::boolean;
  const auto rounded = [&](VectorId v) {  // of 128 bits by way of a double
    return g_.cast(hir::is_wide(g_[v].type) ? g_.cast(v, BasicType::f64) : v, type);
  };
  const unsigned scale = scale_of(c.type);
  if (scale == 0) return {rounded(c.value), c.valid, {TypeId::real}};
  const Bounds b = known_bounds(c);
  const __int128 factor = power_of_ten(scale), exact = 1 << 24;
  const VectorId unit = g_.real(type, static_cast<float>(factor));
  const VectorId whole = g_.map("div", {rounded(c.value), unit}, type);
  if (b.within(-exact, exact)) return {whole, c.valid, {TypeId::real}};
  const BasicType made = holding(hir::widest(g_[c.value].type, BasicType::i64), Bounds::of(factor, factor));
  const VectorId v = g_.cast(c.value, made), by = g_.integer(made, factor);
  const VectorId above = g_.map("div", {v, by}, made, Bounds::of(b.least / factor, b.most / factor));
  const VectorId rest = g_.map("minus", {v, g_.map("mul", {above, by}, made)}, made,
                               Bounds::of(1 - factor, factor - 1));
  const VectorId parts =
      g_.map("plus", {rounded(above), g_.map("div", {rounded(rest), unit}, type)}, type);
  const VectorId few = g_.and_(g_.map("geq", {v, g_.integer(made, -exact)}, truth),
                               g_.map("leq", {v, g_.integer(made, exact)}, truth));
  return {g_.select(few, whole, parts), c.valid, {TypeId::real}};
}

// A double as FLOAT: what is finite must stay so.
Cell Translator::to_real(const Cell& c, bool tries) {
  constexpr BasicType type = BasicType::f32, truth = BasicType::boolean;
  const Type to{TypeId::real};
  // The least double that is rounded to infinity.
  constexpr double beyond = 0x1.ffffffp127;
  const VectorId size = g_.map("abs", {c.value}, BasicType::f64);
  const VectorId is_beyond = g_.and_(
      g_.map("geq", {size, g_.real(BasicType::f64, beyond)}, truth),
      g_.map("lt", {size, end_of(BasicType::f64, true)}, truth));
  const VectorId v = g_.cast(c.value, type), holds = g_.not_(is_beyond);
  if (tries) return canonical(to, v, g_.and_(c.valid, holds));
  return {demanded(v, holds, {&c, 1}, fmt::format("a value is out of range for the type {}", type_name(to))),
          c.valid, to};
}

Cell Translator::cast_cell(const Cell& c, Type to, bool tries) {
  const Type from = c.type;
  if (from == to) return c;
  const BasicType type = basic_of(to);
  const auto refuse = [&] {
    // TRY_CAST between types of which DuckDB has no cast is null.
    const auto is_number = [](Type t) {
      return is_exact(t) || is_floating(t) || t.id == TypeId::boolean;
    };
    const auto is_time = [](Type t) { return is_moment(t) || t.id == TypeId::time; };
    const bool has_none = (is_number(from) && is_time(to)) || (is_time(from) && is_number(to)) ||
                          (from.id == TypeId::date && to.id == TypeId::time) ||
                          (from.id == TypeId::time && is_moment(to)) ||
                          (from.id == TypeId::timestamptz && to.id == TypeId::time);
    if (tries && has_none) return null_of(to);
    fail("the cast from {} to {} has no translation", type_name(from), type_name(to));
    return failed(to);
  };
  if (!is_none(c.valid) && g_.is_false(c.valid)) return null_of(to);
  if (from.id == TypeId::enumeration && to.id != TypeId::varchar)
    return cast_from_text(cast_to_text(c, {TypeId::varchar}), to, tries);
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
    VectorId fits = nothing;
    if (to.id == TypeId::decimal) out.value = rescaled(c, more, &fits);
    else if (g_[c.value].type < type)
      out.value = g_.cast(c.value, type);
    const Bounds own = g_[out.value].bounds;
    return in_range(out, own.known || less < more ? own : known_bounds(c), tries, c, fits);
  }
  if (is_exact(from) && to.id == TypeId::real) return to_float(c);
  if (is_exact(from) && is_floating(to)) {
    VectorId v = g_.cast(c.value, BasicType::f64);
    const unsigned scale = scale_of(from);
    if (scale > 0)
      v = g_.map("div", {v, g_.real(BasicType::f64, static_cast<double>(power_of_ten(scale)))},
                 BasicType::f64);
    return {v, c.valid, to};
  }
  if (from.id == TypeId::real && to.id == TypeId::double_)
    return {g_.cast(c.value, type), c.valid, to};
  if (from.id == TypeId::double_ && to.id == TypeId::real) return to_real(c, tries);
  if (is_floating(from) && (is_integral(to) || to.id == TypeId::hugeint)) {
    const Bounds all = bounds_of(to);
    // The greatest f64 below 2^63 and 2^127, where the type has all bits.
    const double most = to.id == TypeId::hugeint  ? std::nextafter(0x1p127, 0)
                        : to.id == TypeId::bigint ? std::nextafter(0x1p63, 0)
                        : to.id == TypeId::ubigint ? std::nextafter(0x1p64, 0)
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
  if (is_timestamp(from) && is_timestamp(to)) return {c.value, c.valid, to};
  if (from.id == TypeId::date && is_timestamp(to))
    return strict(to, moment_of(days_of(c), g_.integer(BasicType::i64, 0), {&c, 1}), {&c, 1});
  if (is_timestamp(from) && to.id == TypeId::date) {
    const VectorId day = date_of(days_of(c)), ends = infinite(c);
    if (is_none(ends)) return strict(to, day, {&c, 1});
    const VectorId is_future = g_.map("gt", {c.value, g_.integer(BasicType::i64, 0)}, BasicType::boolean);
    const VectorId end = g_.select(is_future, date_literal(INT32_MAX), date_literal(-INT32_MAX));
    return strict(to, g_.select(ends, end, day), {&c, 1});
  }
  if (from.id == TypeId::timestamp && to.id == TypeId::time) {
    const VectorId v = time_of_day(c), ends = infinite(c);  // which has no time of day
    if (is_none(ends)) return strict(to, v, {&c, 1});
    const VectorId holds = g_.not_(ends);
    if (tries) return canonical(to, v, g_.and_(c.valid, holds));
    return strict(to, demanded(v, holds, {&c, 1}, "an infinite timestamp has no time of day"), {&c, 1});
  }
  return refuse();
}
Cell Translator::cast(const Expression& e, std::span<const Cell> a, std::string_view) {
  const Expression& inner = plan_[plan_.of(e.arguments)[0]];
  if (inner.kind == Expression::call && inner.function == Function::error)
    return raised_as(e.type, evaluate(plan_.of(inner.arguments)[0], std::span<const Cell>()));
  return cast_cell(a[0], e.type, e.tries);
}

}  // namespace rndn::sql
