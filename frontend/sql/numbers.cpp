// Arithmetic, rounding and functions of numbers.
//
// Exact numbers stay exact, in 64 bits or where bounds ask for it in 128 (casts.cpp); functions of
// floats are HorseIR's. Overflow, and division of integers by zero, are errors for the rows for which
// they count. Left out: bit operations that are no arithmetic.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

Cell Translator::arithmetic(const Expression& e, std::span<const Cell> a,
                            std::string_view builtin) {
  const BasicType type = basic_of(e.type);
  const auto refuse = [&] {
    no_rule(e, a);
    return failed(e.type);
  };
  if (const std::optional<Cell> out = of_intervals(e, a, builtin)) return *out;
  if (a.size() == 2 && a[1].type.id == TypeId::interval && is_moment(a[0].type))
    return shifted(e.type, a[0], a[1], builtin == "minus");
  if (a.size() == 2 && builtin == "plus" && a[0].type.id == TypeId::interval && is_moment(a[1].type))
    return shifted(e.type, a[1], a[0], false);
  if (a.size() == 2 && builtin == "plus" && is_timestamp(e.type) &&
      (a[0].type.id == TypeId::time) != (a[1].type.id == TypeId::time) &&
      (a[0].type.id == TypeId::date) != (a[1].type.id == TypeId::date))
    return strict(e.type, g_.map("plus", {micros_of(a[0]), micros_of(a[1])}, BasicType::i64), a);
  if (a.size() == 1) {
    if (!is_exact(a[0].type) && !is_floating(a[0].type)) return refuse();
    if (builtin == "plus") return a[0];
    if (builtin != "minus") return refuse();
    const Bounds bounds = Bounds::of(0, 0) - known_bounds(a[0]);
    if (!is_exact(e.type))
      return {g_.map("neg", {a[0].value}, g_[a[0].value].type, bounds), a[0].valid, e.type};
    const BasicType made = hir::widest(g_[a[0].value].type, fitting(bounds));
    return {checked(g_.map("neg", {g_.cast(a[0].value, made)}, made, bounds), bounds, a, e.type,
                    "the negated value"),
            a[0].valid, e.type};
  }
  const VectorId x = a[0].value, y = a[1].value;
  const Bounds p = known_bounds(a[0]), q = known_bounds(a[1]);
  const Bounds bounds = builtin == "plus" ? p + q : builtin == "minus" ? p - q : p * q;
  if (is_floating(e.type) && is_floating(a[0].type) && is_floating(a[1].type))
    return strict(e.type, g_.map(builtin, {x, y}, type), a);
  const bool dates[] = {a[0].type.id == TypeId::date, a[1].type.id == TypeId::date};
  if (e.type.id == TypeId::date && dates[0] != dates[1] && is_integral(a[dates[0] ? 1 : 0].type))
    return strict(e.type, moved_date(a[dates[0] ? 0 : 1], a[dates[0] ? 1 : 0], builtin == "minus"), a);
  if (builtin == "minus" && dates[0] && dates[1] && is_integral(e.type))
    return strict(e.type, g_.cast(g_.map("minus", {x, y}, BasicType::i32, bounds), type), a);
  if (!is_exact(e.type) || !is_exact(a[0].type) || !is_exact(a[1].type)) return refuse();
  if (e.type.id == TypeId::decimal && builtin != "mul" &&
      (scale_of(a[0].type) > e.type.scale || scale_of(a[1].type) > e.type.scale))
    return refuse();
  if (e.type.id == TypeId::decimal && builtin == "mul" &&
      scale_of(a[0].type) + scale_of(a[1].type) != e.type.scale)
    return refuse();
  const bool scaled = e.type.id == TypeId::decimal && builtin != "mul";
  VectorId left_fits = nothing, right_fits = nothing;
  const VectorId left = scaled ? rescaled(a[0], e.type.scale, &left_fits) : x;
  const VectorId right = scaled ? rescaled(a[1], e.type.scale, &right_fits) : y;
  const auto of = [&](VectorId v, const Cell& c) {
    return g_[v].bounds.known || (scaled && scale_of(c.type) != e.type.scale) ? g_[v].bounds
                                                                             : known_bounds(c);
  };
  const Bounds l = of(left, a[0]), r = of(right, a[1]);
  const Bounds exact = builtin == "plus" ? l + r : builtin == "minus" ? l - r : l * r;
  const BasicType made =
      hir::widest(hir::widest(type, hir::widest(g_[left].type, g_[right].type)), fitting(exact));
  const VectorId p_made = g_.cast(left, made), q_made = g_.cast(right, made);
  const VectorId result = g_.map(builtin, {p_made, q_made}, made, exact);
  VectorId fits = g_.and_(left_fits, right_fits);
  if (!exact.known) fits = g_.and_(fits, unwrapped(builtin, p_made, q_made, result));
  return strict(e.type, checked(result, exact, a, e.type, fmt::format("the result of {}", name_of(e.function)), fits), a);
}

Cell Translator::divide(const Expression& e, std::span<const Cell> a, std::string_view) {
  const BasicType type = basic_of(e.type);
  if (!is_floating(e.type) || !is_floating(a[0].type) || !is_floating(a[1].type)) {
    no_rule(e, a);
    return failed(e.type);
  }
  return strict(e.type, g_.map("div", {a[0].value, a[1].value}, type), a);
}

// // and %. Zeros among the divisors of rows that do not count become ones.
Cell Translator::integer_division(const Expression& e, std::span<const Cell> a,
                                  std::string_view builtin) {
  constexpr std::string_view message = "division by zero";
  const BasicType truth = BasicType::boolean;
  const VectorId x = a[0].value, y = a[1].value;
  if (is_floating(e.type) && is_floating(a[0].type) && is_floating(a[1].type)) {
    const VectorId v = g_.map(builtin, {x, y}, basic_of(e.type));
    // The rest of floats is no number where the divisor is zero; of decimals that have no common
    // type, which the planner makes floats, it is an error.
    const auto was_exact = [&](ExpressionId id) {
      const Expression& by = plan_[id];
      return by.kind == Expression::call && by.function == Function::cast &&
             is_exact(plan_[plan_.of(by.arguments)[0]].type);
    };
    const std::span<const ExpressionId> parts = plan_.of(e.arguments);
    if (builtin == "mod" && !std::all_of(parts.begin(), parts.end(), was_exact))
      return strict(e.type, v, a);
    const VectorId holds = g_.map("neq", {y, g_.zero(g_[y].type)}, truth);
    return strict(e.type, demanded(v, holds, a, message), a);
  }
  const bool exact = is_exact(a[0].type) && is_exact(a[1].type) && is_exact(e.type);
  if (!exact || scale_of(a[0].type) != scale_of(a[1].type) ||
      (scale_of(a[0].type) > 0 && (builtin != "mod" || scale_of(e.type) != scale_of(a[0].type)))) {
    no_rule(e, a);
    return failed(e.type);
  }
  const BasicType type = hir::widest(basic_of(e.type), hir::widest(g_[x].type, g_[y].type));
  const VectorId p = g_.cast(x, type), q = g_.cast(y, type);
  const Bounds by = g_[y].bounds, of = g_[x].bounds, all = bounds_of(e.type);
  const bool may_be_zero = !by.known || (by.least <= 0 && by.most >= 0);
  const VectorId safe =
      may_be_zero ? g_.select(g_.map("eq", {q, g_.zero(type)}, truth), g_.integer(type, 1), q) : q;
  const Bounds bounds = of.known && builtin == "mod" ? rndn::sql::join(of, Bounds::of(0, 0)) : all;
  const bool is_rest = builtin == "mod" && type == BasicType::i128;  // of which HorseIR has no mod
  VectorId v = g_.map(is_rest ? "div" : builtin, {p, safe}, type, is_rest ? all : bounds);
  if (is_rest) v = g_.map("minus", {p, g_.map("mul", {v, safe}, type)}, type, bounds);
  if (may_be_zero) v = demanded(v, g_.map("neq", {q, g_.zero(type)}, truth), a, message, g_[v].bounds);
  // The least integer by -1 has no place in its type.
  const bool may_overflow = builtin == "div" && all.known && (!by.known || by.within(by.least, by.most)) &&
                            (!by.known || (by.least <= -1 && by.most >= -1)) &&
                            (!of.known || of.least <= all.least);
  if (may_overflow) {
    const VectorId wrong = g_.and_(g_.map("eq", {p, g_.integer(type, all.least)}, truth),
                                   g_.map("eq", {q, g_.integer(type, -1)}, truth));
    v = demanded(v, g_.not_(wrong), a, "a quotient is out of range", all);
  }
  return strict(e.type, v, a);
}

Cell Translator::magnitude(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  if (!is_exact(e.type) && !is_floating(e.type)) {
    no_rule(e, a);
    return failed(e.type);
  }
  const Bounds b = known_bounds(a[0]);
  const Bounds out = b.known ? Bounds::of(0, std::max(b.most, -b.least)) : Bounds{};
  const BasicType own = g_[a[0].value].type;
  if (!is_exact(e.type) || !b.known)
    return {g_.map(builtin, {a[0].value}, own, out), a[0].valid, e.type};
  const VectorId v = g_.cast(a[0].value, hir::widest(own, fitting(out)));
  return {checked(g_.map(builtin, {v}, g_[v].type, out), out, a, e.type, "the result of abs"),
          a[0].valid, e.type};
}

// A builtin of floats.
Cell Translator::real_function(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  std::vector<VectorId> arguments;
  for (const Cell& c : a) {
    if (!is_floating(c.type) || !is_floating(e.type)) {
      no_rule(e, a);
      return failed(e.type);
    }
    arguments.push_back(g_.cast(c.value, BasicType::f64));
  }
  return strict(e.type, g_.map(builtin, arguments, BasicType::f64), a);
}

// log(x) to base 10, and log(base, x).
Cell Translator::logarithm(const Expression& e, std::span<const Cell> a, std::string_view) {
  return real_function(e, a, a.size() == 1 ? "log10" : "logb");
}

// Degrees and radians.
Cell Translator::angle(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  constexpr double half_turn = 3.14159265358979323846;
  const double factor = builtin == "degrees" ? 180 / half_turn : half_turn / 180;
  if (!is_floating(a[0].type)) {
    no_rule(e, a);
    return failed(e.type);
  }
  return strict(e.type,
                g_.map("mul", {g_.cast(a[0].value, BasicType::f64), g_.real(BasicType::f64, factor)}, BasicType::f64),
                a);
}

// Functions of floats that HorseIR has no builtin for.
Cell Translator::real_formula(const Expression& e, std::span<const Cell> a, std::string_view function) {
  constexpr BasicType type = BasicType::f64, truth = BasicType::boolean;
  for (const Cell& c : a)
    if (!is_floating(c.type)) {
      no_rule(e, a);
      return failed(e.type);
    }
  const VectorId x = g_.cast(a[0].value, type), zero = g_.real(type, 0), one = g_.real(type, 1);
  const auto of = [&](std::string_view builtin, VectorId p, VectorId q) { return g_.map(builtin, {p, q}, type); };
  const auto is = [&](std::string_view builtin, VectorId p, VectorId q) { return g_.map(builtin, {p, q}, truth); };
  const auto minus = [&](VectorId v) { return g_.map("neg", {v}, type); };
  const VectorId size = g_.map("abs", {x}, type);
  if (function == "cot") return strict(e.type, of("div", one, g_.map("tan", {x}, type)), a);
  if (function == "cbrt") {
    const VectorId root = of("power", size, g_.real(type, 1.0 / 3));
    // Newton's step, where it has one.
    const VectorId better = of("minus", root, of("div", of("minus", of("mul", of("mul", root, root), root), size),
                                                 of("mul", g_.real(type, 3), of("mul", root, root))));
    const VectorId steps = g_.and_(is("gt", size, zero), is("lt", size, g_.real(type, 1e300)));
    const VectorId v = g_.select(steps, better, root);
    return strict(e.type, g_.select(is("lt", x, zero), minus(v), g_.select(is("eq", x, zero), x, v)), a);
  }
  if (function == "fmod") {  // of the divisor's sign
    const VectorId y = g_.cast(a[1].value, type), rest = of("mod", x, y);
    const VectorId other = g_.map("neq", {is("lt", rest, zero), is("lt", y, zero)}, truth);
    const VectorId v = g_.select(g_.and_(is("neq", rest, zero), other), of("plus", rest, y), rest);
    return strict(e.type, basic_of(e.type) == type ? v : g_.cast(v, basic_of(e.type)), a);
  }
  if (function == "even") {  // the next even number away from zero
    const VectorId up = g_.map("ceil", {size}, type), half = of("div", up, g_.real(type, 2));
    const VectorId v = g_.select(is("eq", g_.map("floor", {half}, type), half), up, of("plus", up, one));
    return strict(e.type, g_.select(is("lt", x, zero), minus(v), v), a);
  }
  // atan2(y, x): by the quadrant; a zero has a sign, which its inverse shows.
  const VectorId y = x, width = g_.cast(a[1].value, type);
  const double half_turn = 3.14159265358979323846;
  const auto is_below = [&](VectorId v) { return g_.or_(is("lt", v, zero), is("lt", of("div", one, v), zero)); };
  const VectorId infinity = of("div", one, zero);
  const auto is_infinite = [&](VectorId v) { return is("eq", g_.map("abs", {v}, type), infinity); };
  const VectorId far = g_.and_(is_infinite(y), is_infinite(width));
  const VectorId slope = g_.select(far, one, of("div", size, g_.map("abs", {width}, type)));
  const VectorId angle = g_.select(g_.and_(is("eq", y, zero), is("eq", width, zero)), zero, g_.map("atan", {slope}, type));
  const VectorId turned = g_.select(is_below(width), of("minus", g_.real(type, half_turn), angle), angle);
  return strict(e.type, g_.select(is_below(y), minus(turned), turned), a);
}

// How many bits of an integer are one, in two's complement of its type.
Cell Translator::bits_set(const Expression& e, std::span<const Cell> a, std::string_view) {
  const Bounds all = bounds_of(a[0].type);
  if (!is_integral(a[0].type) || !all.fits_i64()) {
    no_rule(e, a);
    return failed(e.type);
  }
  constexpr BasicType type = BasicType::i64, truth = BasicType::boolean;
  const unsigned width = static_cast<unsigned>(std::bit_width(static_cast<uint64_t>(all.most))) + (all.least < 0);
  // Of a number below zero those that are zero in -x - 1.
  const VectorId x = g_.cast(a[0].value, type), is_below = g_.map("lt", {x, g_.zero(type)}, truth);
  const VectorId size = g_.select(is_below, whole_map("minus", g_.map("neg", {x}, type), 1), x);
  VectorId count = g_.zero(type);
  for (unsigned k = 0; k + (all.least < 0) < width; ++k) {
    const VectorId shifted = k ? whole_map("div", size, int64_t{1} << k) : size;
    count = g_.map("plus", {count, whole_map("mod", shifted, 2)}, type);
  }
  const VectorId others = g_.map("minus", {g_.integer(type, width), count}, type);
  const VectorId v = g_.select(is_below, others, count);
  g_.change(v).bounds = Bounds::of(0, 64);
  return strict(e.type, v, a);
}

// isnan, isinf, isfinite of floats.
Cell Translator::float_class(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  if (!is_floating(a[0].type)) {
    no_rule(e, a);
    return failed(e.type);
  }
  const BasicType type = g_[a[0].value].type, truth = BasicType::boolean;
  const VectorId infinity = g_.map("div", {g_.real(type, 1), g_.real(type, 0)}, type);
  const VectorId size = g_.map("abs", {a[0].value}, type);
  VectorId v;
  if (builtin == "negative") {  // -0.0, too, whose inverse is below zero
    const VectorId zero = g_.zero(type), inverse = g_.map("div", {g_.real(type, 1), a[0].value}, type);
    v = g_.or_(g_.map("lt", {a[0].value, zero}, truth), g_.map("lt", {inverse, zero}, truth));
  } else if (builtin == "finite")
    v = g_.map("lt", {size, infinity}, truth);
  else if (builtin == "infinite")
    v = g_.map("eq", {size, infinity}, truth);
  else
    v = g_.not_(g_.map("leq", {size, infinity}, truth));
  return strict(e.type, v, a);
}

// The sign as an integer.
Cell Translator::sign(const Expression& e, std::span<const Cell> a, std::string_view) {
  const VectorId x = a[0].value;
  if (!is_integral(e.type) || (!is_exact(a[0].type) && !is_floating(a[0].type))) {
    no_rule(e, a);
    return failed(e.type);
  }
  const BasicType i16 = BasicType::i16;
  if (!hir::is_wide(g_[x].type)) return strict(e.type, g_.map("signum", {x}, i16, Bounds::of(-1, 1)), a);
  const VectorId zero = g_.zero(g_[x].type);
  const VectorId above = g_.cast(g_.map("gt", {x, zero}, BasicType::boolean), i16);
  const VectorId below = g_.cast(g_.map("lt", {x, zero}, BasicType::boolean), i16);
  return strict(e.type, g_.map("minus", {above, below}, i16, Bounds::of(-1, 1)), a);
}

namespace {

// Literal integers as they are; nothing else.
std::optional<int64_t> literal(const Graph& g, const Cell& c) {
  const Vector& v = g[c.value];
  if (!g.is_literal(c.value) || !is_none(c.valid) || !v.bounds.fits_i64()) return std::nullopt;
  return static_cast<int64_t>(v.bounds.least);
}

}  // namespace

// A float rounded to a number of digits, half away from zero, as its exact value says: where the
// product or quotient by a power of ten is a half, what it was rounded by decides. The error of the
// product is found in parts of 26 bits (Dekker, A Floating-Point Technique for Extending the
// Available Precision, 1971).
VectorId Translator::rounded_at(VectorId x, double factor, bool behind_point) {
  const BasicType type = BasicType::f64, truth = BasicType::boolean;
  const auto real = [&](double value) { return g_.real(type, value); };
  const auto of = [&](std::string_view builtin, VectorId a, VectorId b) { return g_.map(builtin, {a, b}, type); };
  const VectorId by = real(factor), p = of(behind_point ? "mul" : "div", x, by);
  const auto split = [](double value) {
    const double wide = 134217729.0 * value;
    return wide - (wide - value);
  };
  // What x has beyond p times or by the factor.
  const auto beyond = [&](VectorId a, double b, VectorId product) {
    const VectorId wide = of("mul", a, real(134217729.0));
    const VectorId high = of("minus", wide, of("minus", wide, a)), low = of("minus", a, high);
    const double b_high = split(b), b_low = b - b_high;
    VectorId error = of("minus", of("mul", high, real(b_high)), product);
    error = of("plus", error, of("mul", high, real(b_low)));
    error = of("plus", error, of("mul", low, real(b_high)));
    return of("plus", error, of("mul", low, real(b_low)));
  };
  VectorId rest;
  if (behind_point) {
    rest = beyond(x, factor, p);
  } else {  // x - p factor, in two steps that are exact near a half
    const VectorId back = of("mul", p, by);
    rest = of("minus", of("minus", x, back), beyond(p, factor, back));
  }
  const VectorId rounded = g_.map("round", {p}, type);
  const VectorId is_half = g_.map("eq", {g_.map("abs", {of("minus", rounded, p)}, type), real(0.5)}, truth);
  const VectorId is_less = g_.map("lt", {of("mul", g_.cast(g_.map("signum", {p}, BasicType::i16), type), rest), real(0)}, truth);
  const VectorId nearer = g_.map("minus", {rounded, g_.cast(g_.map("signum", {p}, BasicType::i16), type)}, type);
  const VectorId whole = g_.select(g_.and_(is_half, is_less), nearer, rounded);
  const VectorId out = of(behind_point ? "div" : "mul", whole, by);
  const VectorId infinity = of("div", real(1), real(0));
  const VectorId finite = g_.map("lt", {g_.map("abs", {out}, type), infinity}, truth);
  // What is no number, or infinite, stays so.
  const VectorId is_number = g_.map("lt", {g_.map("abs", {x}, type), infinity}, truth);
  return g_.select(finite, out, behind_point ? x : g_.select(is_number, real(0), x));
}

// round, floor, ceil, trunc, with digits behind the point if the second argument says so.
Cell Translator::rounding(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  std::optional<int64_t> digits = a.size() == 2 ? literal(g_, a[1]) : 0;
  const VectorId x = a[0].value;
  if (!digits || (!is_exact(a[0].type) && !is_floating(a[0].type))) {
    no_rule(e, a);
    return failed(e.type);
  }
  digits = std::clamp<int64_t>(*digits, -400, 400);
  if (is_floating(a[0].type)) {
    const BasicType type = g_[x].type, truth = BasicType::boolean;
    const auto rounded = [&](VectorId v) {
      if (builtin != "trunc") return g_.map(builtin, {v}, type);
      return g_.select(g_.map("lt", {v, g_.real(type, 0)}, truth), g_.map("ceil", {v}, type),
                       g_.map("floor", {v}, type));
    };
    if (*digits == 0) return strict(e.type, rounded(x), {a.data(), 1});
    const double factor = std::pow(10.0, static_cast<double>(std::abs(*digits)));
    if (!std::isfinite(factor)) return *digits > 0 ? a[0] : strict(e.type, g_.real(type, 0), {a.data(), 1});
    if (builtin == "round" && type == BasicType::f32 && *digits < 0) {  // whose end is within doubles
      const BasicType wide = BasicType::f64;
      const VectorId tens = g_.real(wide, factor);
      const VectorId part = g_.map("round", {g_.map("div", {g_.cast(x, wide), tens}, wide)}, wide);
      return strict(e.type, g_.cast(g_.map("mul", {part, tens}, wide), type), {a.data(), 1});
    }
    const VectorId by = g_.real(type, factor);
    if (builtin == "round" && type == BasicType::f64)
      return strict(e.type, rounded_at(x, factor, *digits > 0), {a.data(), 1});
    const VectorId out = g_.map(*digits > 0 ? "div" : "mul",
                                {rounded(g_.map(*digits > 0 ? "mul" : "div", {x, by}, type)), by}, type);
    const VectorId infinity = g_.map("div", {g_.real(type, 1), g_.real(type, 0)}, type);
    const VectorId finite = g_.map("lt", {g_.map("abs", {out}, type), infinity}, truth);
    const VectorId is_number = g_.map("lt", {g_.map("abs", {x}, type), infinity}, truth);
    const VectorId otherwise = *digits > 0 ? x : g_.select(is_number, g_.real(type, 0), x);
    return strict(e.type, g_.select(finite, out, otherwise), {a.data(), 1});
  }
  const int64_t scale = scale_of(a[0].type);
  if (*digits >= scale) return cast_cell(a[0], e.type, false);
  if (*digits < 0 && builtin != "round" && builtin != "trunc") {
    no_rule(e, a);
    return failed(e.type);
  }
  const int64_t drop = scale - *digits;
  if (drop > 37) return strict(e.type, g_.zero(BasicType::i64), {a.data(), 1});
  const BasicType type =
      holding(hir::widest(g_[x].type, BasicType::i64), Bounds::of(0, power_of_ten(static_cast<unsigned>(drop))));
  const VectorId by = g_.integer(type, power_of_ten(static_cast<unsigned>(drop)));
  VectorId v = g_.cast(x, type);
  const __int128 factor = power_of_ten(static_cast<unsigned>(drop));
  const Bounds known = g_[x].bounds.known ? g_[x].bounds : bounds_of(a[0].type);
  const Bounds less = known.known ? Bounds::of(known.least / factor - 1, known.most / factor + 1) : Bounds{};
  if (builtin == "round") {
    v = decimal_down(a[0], static_cast<unsigned>(drop), e.type).value;
  } else if (builtin == "trunc") {
    v = g_.map("div", {v, by}, type, less);
  } else {
    const VectorId cut = g_.map("div", {v, by}, type, less);
    const VectorId back = g_.map("mul", {cut, by}, type, known);
    const bool up = builtin == "ceil";
    const VectorId apart = g_.map(up ? "gt" : "lt", {v, back}, BasicType::boolean);
    v = g_.map(up ? "plus" : "minus", {cut, g_.cast(apart, type)}, type, less);
  }
  VectorId fits = nothing;
  if (*digits < 0) {
    const __int128 tens = power_of_ten(static_cast<unsigned>(-*digits));
    const Bounds scaled = less * Bounds::of(tens, tens);
    const BasicType made = holding(g_[v].type, scaled);
    const VectorId cut = g_.cast(v, made);
    v = g_.map("mul", {cut, g_.integer(made, tens)}, made, scaled);
    if (made == BasicType::i128 && !scaled.known) {  // beyond 128 bits by less than their half
      const auto negative = [&](VectorId x) { return g_.map("lt", {x, g_.zero(made)}, BasicType::boolean); };
      fits = g_.map("eq", {negative(v), negative(cut)}, BasicType::boolean);
    }
  }
  return in_range(strict(e.type, v, {a.data(), 1}), g_[v].bounds, false, a[0], fits);
}

// greatest and least of what is no null; NaN is greater than all else.
Cell Translator::extreme(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  Cell out = a[0];
  for (const Cell& next : a.subspan(1)) {
    Cell x = out, y = next;
    unify(x, y);
    if (error_) return failed(e.type);
    const BasicType truth = BasicType::boolean;
    VectorId better = g_.map(builtin, {comparable(y).value, comparable(x).value}, truth);
    if (is_floating(e.type)) {
      const VectorId odd = builtin == "gt" ? y.value : x.value;
      better = g_.or_(better, g_.not_(g_.map("eq", {odd, odd}, truth)));
    }
    const VectorId takes = g_.and_(valid_of(y), g_.or_(better, g_.not_(valid_of(x))));
    const VectorId v = g_.select(takes, y.value, x.value);
    out = {v, nothing, e.type};
    if (!is_none(x.valid) && !is_none(y.valid)) out.valid = g_.or_(x.valid, y.valid);
  }
  out.type = e.type;
  return out;
}

// An integer made of what `of_bit` makes of each bit of the operands, as many as bounds need: two's
// complement, whose bits below the sign are those of the number less its least.
VectorId Translator::of_bits(std::span<const Cell> operands,
                             const std::function<VectorId(std::span<const VectorId>)>& of_bit) {
  const BasicType type = BasicType::i64, truth = BasicType::boolean;
  std::vector<VectorId> values;
  Bounds all = Bounds::of(0, 0);
  for (const Cell& c : operands) {
    values.push_back(g_.cast(c.value, type));
    const Bounds own = g_[c.value].bounds.known ? g_[c.value].bounds : bounds_of(c.type);
    all = rndn::sql::join(all, own.known ? own : Bounds::of(INT64_MIN, INT64_MAX));
  }
  unsigned width = 0;
  while (width < 63 && (all.most >> width != 0 || all.least < -(__int128{1} << width))) ++width;
  const bool is_signed = all.least < 0;
  const VectorId least = g_.integer(type, static_cast<int64_t>(-(__int128{1} << width)));
  std::vector<VectorId> signs, low, bit(values.size());
  for (const VectorId v : values) {
    signs.push_back(g_.map("lt", {v, g_.zero(type)}, truth));
    low.push_back(is_signed ? g_.select(signs.back(), g_.map("minus", {v, least}, type), v) : v);
  }
  const auto valued = [&](VectorId b, VectorId value) { return g_.select(b, value, g_.zero(type)); };
  VectorId out = is_signed ? valued(of_bit(signs), least) : g_.zero(type);
  for (unsigned k = 0; k < width; ++k) {
    const VectorId unit = g_.integer(type, int64_t{1} << k);
    for (size_t i = 0; i < low.size(); ++i) {
      const VectorId shifted = k ? g_.map("div", {low[i], unit}, type) : low[i];
      bit[i] = g_.map("neq", {g_.map("mod", {shifted, g_.integer(type, 2)}, type), g_.zero(type)}, truth);
    }
    out = g_.map("plus", {out, valued(of_bit(bit), unit)}, type);
  }
  g_.change(out).bounds = Bounds::of(is_signed ? -(__int128{1} << width) : 0, (__int128{1} << width) - 1);
  return out;
}

// Bit operations that are arithmetic: ~x, shifts by a constant, and the low bits.
Cell Translator::bits(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  const auto refuse = [&] {
    fail("the function {} has a translation for integers of 64 bits, shifts by constants alone",
         name_of(e.function));
    return failed(e.type);
  };
  if (!is_integral(e.type) || !is_integral(a[0].type) || !bounds_of(e.type).fits_i64())
    return refuse();
  const BasicType type = BasicType::i64, truth = BasicType::boolean;
  const VectorId x = g_.cast(a[0].value, hir::widest(g_[a[0].value].type, type));
  const Bounds all = bounds_of(e.type);
  if (builtin == "not") {
    const bool is_signed = all.least < 0;
    const __int128 top = is_signed ? -1 : all.most;
    return strict(e.type, g_.map("minus", {g_.integer(type, top), x}, type, all), a);
  }
  const std::optional<int64_t> by = literal(g_, a[1]);
  const uint64_t mask = by ? static_cast<uint64_t>(*by) : 1;
  const bool shifts = builtin == "left" || builtin == "right";
  if (shifts && !by) return refuse();
  if (!shifts && (builtin != "and" || !by || *by < 0 || *by == INT64_MAX || (mask & (mask + 1)) != 0)) {
    const VectorId v = of_bits(a, [&](std::span<const VectorId> bit) {
      if (builtin == "and") return g_.and_(bit[0], bit[1]);
      return builtin == "or" ? g_.or_(bit[0], bit[1])
                             : g_.map("neq", {bit[0], bit[1]}, truth);
    });
    return strict(e.type, v, a);
  }
  const unsigned width = e.type.id == TypeId::bigint ? 64 : std::bit_width(static_cast<uint64_t>(all.most - all.least));
  if (builtin == "right") {
    if (*by < 0 || *by >= width) return strict(e.type, g_.integer(type, 0), a);
    return strict(e.type, *by == 63 ? g_.map("neg", {g_.cast(g_.map("lt", {x, g_.zero(type)}, truth), type)}, type)
                                    : floor_div(x, int64_t{1} << *by), a);
  }
  if (builtin == "left") {
    const Bounds fits = Bounds::of(0, *by >= 0 && *by < 63 ? all.most >> *by : 0);
    const VectorId holds =
        *by < 0 || *by >= width ? g_.integer(truth, 0)
                                : g_.and_(g_.map("geq", {x, g_.zero(type)}, truth),
                                          g_.map("leq", {x, g_.integer(type, fits.most)}, truth));
    const VectorId v = *by < 0 || *by > 62 ? g_.integer(type, 0)
                                           : g_.map("mul", {x, g_.integer(type, int64_t{1} << *by)}, type, all);
    return strict(e.type, demanded(v, holds, a, "a left shift is out of range", all), a);
  }
  return strict(e.type, g_.map("minus", {x, g_.map("mul", {floor_div(x, *by + 1), g_.integer(type, *by + 1)}, type)},
                               type, Bounds::of(0, *by)), a);
}

}  // namespace rndn::sql
