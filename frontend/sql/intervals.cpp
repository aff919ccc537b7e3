// Intervals: months, days and microseconds, which do not add up to one number.
//
// A cell of one has a vector of 128 bits, (months * 2^32 + days) * 2^64 + microseconds, so that all
// that moves columns moves intervals; what made it keeps the parts beside it, and others take them
// out again. Intervals compare as DuckDB compares them: days beyond 30 as months, microseconds
// beyond a day as days, and then part by part, which is the order of the vector itself. Left out:
// products by floats, quotients.
#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

namespace {

constexpr int64_t days_of_month = 30, months_of_year = 12;
constexpr __int128 word = __int128{1} << 32, two_words = __int128{1} << 64;
constexpr Bounds part_bounds = {true, -INT32_MAX, INT32_MAX};  // of months and of days
constexpr Bounds word_bounds = {true, INT64_MIN, INT64_MAX};

}  // namespace

// In 64 bits where the result fits, else in 128.
VectorId Translator::grown(std::string_view builtin, VectorId x, VectorId y) {
  const auto bounds = [&](VectorId v) {
    const Bounds b = g_[v].bounds;
    return b.known || hir::is_wide(g_[v].type) ? b : word_bounds;
  };
  const Bounds a = bounds(x), b = bounds(y), both = builtin == "plus" ? a + b : builtin == "minus" ? a - b : a * b;
  const BasicType type = both.fits_i64() ? whole : wide;
  return g_.map(builtin, {g_.cast(x, type), g_.cast(y, type)}, type, both);
}

// The value in 64 bits, and where it has any; `holds` may say so already.
VectorId Translator::in_word(VectorId v, VectorId& holds) {
  const VectorId fits = within(v, g_[v].bounds, word_bounds);
  if (!is_none(fits)) v = g_.select(fits, v, g_.zero(g_[v].type));
  holds = g_.and_(holds, fits);
  return g_.cast(v, whole);
}

// The interval of these parts, null where an argument is. Parts beyond 32 bits are errors.
Cell Translator::interval_cell(Interval p, std::span<const Cell> arguments) {
  const Type type{TypeId::interval};
  const auto checked_part = [&](VectorId v, Bounds bounds) {
    const VectorId holds = within(v, g_[v].bounds, bounds);
    if (is_none(holds)) return g_.cast(v, whole);
    const VectorId held = g_.cast(g_.select(holds, v, g_.zero(g_[v].type)), whole);
    return demanded(held, holds, arguments, "an interval is out of range", bounds);
  };
  p.months = checked_part(p.months, part_bounds);
  p.days = checked_part(p.days, part_bounds);
  p.micros = checked_part(p.micros, word_bounds);
  VectorId value;
  if (g_.is_literal(p.months) && g_.is_literal(p.days) && g_.is_literal(p.micros)) {
    const auto number = [&](VectorId v) { return g_[v].bounds.least; };
    value = g_.integer(wide, (number(p.months) * word + number(p.days)) * two_words + number(p.micros));
  } else {
    const VectorId high = g_.map(
        "plus", {g_.map("mul", {g_.cast(p.months, wide), g_.integer(wide, word)}, wide), g_.cast(p.days, wide)}, wide);
    value = g_.map("plus", {g_.map("mul", {high, g_.integer(wide, two_words)}, wide), g_.cast(p.micros, wide)}, wide);
  }
  Cell out = strict(type, value, arguments);
  if (out.value == value) out.parts = p;
  return out;
}

Interval Translator::parts_of(const Cell& c) {
  if (!is_none(c.parts.months)) return c.parts;
  // High and low part, of which the low one lies from -unit/2 to before unit/2.
  const auto split = [&](VectorId v, BasicType type, __int128 unit) {
    const VectorId by = g_.integer(type, unit);
    const VectorId cut = g_.map("div", {v, by}, type);
    const VectorId rest = g_.map("minus", {v, g_.map("mul", {cut, by}, type)}, type);
    const VectorId above = g_.map("geq", {rest, g_.integer(type, unit / 2)}, truth);
    const VectorId below = g_.map("lt", {rest, g_.integer(type, -(unit / 2))}, truth);
    const VectorId up = g_.map("plus", {cut, g_.cast(above, type)}, type);
    const VectorId high = g_.map("minus", {up, g_.cast(below, type)}, type);
    return std::pair(high, g_.map("minus", {v, g_.map("mul", {high, by}, type)}, type));
  };
  const auto [above, micros] = split(g_.cast(c.value, wide), wide, two_words);
  const auto [months, days] = split(g_.cast(above, whole), whole, word);
  for (VectorId v : {months, days}) g_.change(v).bounds = part_bounds;
  return {months, days, g_.cast(micros, whole)};
}

// Days beyond 30 as months, microseconds beyond a day as days.
Interval Translator::normal_parts(const Cell& c) {
  Interval p = parts_of(c);
  const auto carry = [&](VectorId& from, VectorId& to, int64_t unit) {
    const VectorId units = whole_map("div", from, unit);
    from = g_.map("minus", {from, whole_map("mul", units, unit)}, whole);
    to = g_.map("plus", {to, units}, whole);
  };
  carry(p.days, p.months, days_of_month);
  carry(p.micros, p.months, days_of_month * day_us);
  carry(p.micros, p.days, day_us);
  return p;
}

// What equals and orders intervals; all else as it is.
Cell Translator::comparable(const Cell& c) {
  if (c.type.id != TypeId::interval) return c;
  const Interval p = normal_parts(c);
  // Days are from -60 to 60 by now.
  const VectorId high = g_.map("plus", {whole_map("mul", p.months, 128), p.days}, whole);
  const VectorId value = g_.map(
      "plus", {g_.map("mul", {g_.cast(high, wide), g_.integer(wide, two_words)}, wide), g_.cast(p.micros, wide)}, wide);
  return {value, c.valid, {TypeId::hugeint}};
}

// to_months(n) and its kin.
Cell Translator::interval(const Expression& e, std::span<const Cell> a, std::string_view unit) {
  const bool real = is_floating(a[0].type);
  if (!real && (!is_exact(a[0].type) || scale_of(a[0].type) > 0)) {
    no_rule(e, a);
    return failed(e.type);
  }
  const std::optional<Span> of = span_of(unit);
  const VectorId zero = g_.integer(whole, 0);
  Interval p{zero, zero, zero};
  if (real) {  // seconds and milliseconds alone, to the nearest microsecond
    const VectorId scaled =
        g_.map("mul", {g_.cast(a[0].value, BasicType::f64), g_.real(BasicType::f64, static_cast<double>(of->micros))},
               BasicType::f64);
    p.micros = whole_of(a[0], to_even(scaled), {TypeId::bigint}, -0x1p63, 0x1.fffffffffffffp62, false).value;
    return interval_cell(p, a);
  }
  const VectorId n = g_.cast(a[0].value, whole);
  const auto times = [&](int64_t by) { return by == 1 ? n : grown("mul", n, g_.integer(whole, by)); };
  if (of->months > 0)
    p.months = times(of->months);
  else if (of->micros >= day_us)
    p.days = times(of->micros / day_us);
  else
    p.micros = times(of->micros);
  return interval_cell(p, a);
}

// Where one of them is infinite; none: nowhere.
VectorId Translator::infinite_any(std::span<const Cell> a) {
  VectorId out = nothing;
  for (const Cell& c : a)
    if (const VectorId ends = infinite(c); !is_none(ends)) out = is_none(out) ? ends : g_.or_(out, ends);
  return out;
}

// The difference of timestamps: whole days, and the rest.
Cell Translator::time_between(std::span<const Cell> a) {
  const VectorId apart = grown("minus", micros_of(a[0]), micros_of(a[1]));
  const BasicType type = g_[apart].type;
  const VectorId day = g_.integer(type, day_us);
  const Bounds all = Bounds::of(-213503983, 213503983);
  const VectorId cut = g_.map("div", {apart, day}, type, all);
  const VectorId left =
      g_.map("minus", {apart, g_.map("mul", {cut, day}, type)}, type, Bounds::of(1 - day_us, day_us - 1));
  const VectorId days = g_.cast(cut, whole), rest = g_.cast(left, whole);
  const VectorId ends = infinite_any(a);
  Cell out = interval_cell({g_.integer(whole, 0), days, rest}, a);
  if (!is_none(ends))
    out = {demanded(out.value, g_.not_(ends), a, "infinite timestamps have no difference"), out.valid, out.type};
  return out;
}

// Sums, differences and products of intervals, and of a time and an interval; none of all else.
std::optional<Cell> Translator::of_intervals(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  const auto is = [&](size_t k, TypeId id) { return k < a.size() && a[k].type.id == id; };
  const bool first = is(0, TypeId::interval), second = is(1, TypeId::interval);
  if (e.type.id == TypeId::interval && a.size() == 2 && builtin == "minus" && is_moment(a[0].type) &&
      is_moment(a[1].type))
    return time_between(a);
  if (!first && !second) return std::nullopt;
  if (e.type.id == TypeId::time) {
    const Cell &time = a[first ? 1 : 0], &by = a[first ? 0 : 1];
    const VectorId moved = g_.map(builtin, {time.value, parts_of(by).micros}, whole);
    return strict(e.type, floor_mod(moved, day_us), a);
  }
  if (e.type.id != TypeId::interval) return std::nullopt;
  Interval p;
  const auto parts = [&](auto&& of) { p = {of(&Interval::months), of(&Interval::days), of(&Interval::micros)}; };
  const Interval x = first ? parts_of(a[0]) : Interval{};
  if (a.size() == 1 && builtin == "minus") {
    parts([&](auto part) { return grown("minus", g_.integer(whole, 0), x.*part); });
  } else if (a.size() == 2 && first && second && (builtin == "plus" || builtin == "minus")) {
    const Interval y = parts_of(a[1]);
    parts([&](auto part) { return grown(builtin, x.*part, y.*part); });
  } else if (a.size() == 2 && builtin == "mul" && is_integral(a[first ? 1 : 0].type)) {
    const Interval i = parts_of(a[first ? 0 : 1]);
    const VectorId by = g_.cast(a[first ? 1 : 0].value, whole);
    parts([&](auto part) { return grown("mul", i.*part, by); });
  } else {
    return std::nullopt;
  }
  return interval_cell(p, a);
}

Cell Translator::normalized(const Expression&, std::span<const Cell> a, std::string_view) {
  return interval_cell(normal_parts(a[0]), a);
}

// The parts of an interval as DuckDB takes them; none: it has not that one.
VectorId Translator::part_of_interval(const Cell& c, std::string_view part) {
  const Interval p = parts_of(c);
  const auto rest = [&](VectorId v, int64_t by) { return whole_map("mod", v, by); };
  struct Share {
    std::string_view part;
    VectorId Interval::*of;
    int64_t modulus, unit;  // modulus 0: none
  };
  static constexpr Share shares[] = {{"millennium", &Interval::months, 0, 12000},
                                     {"century", &Interval::months, 0, 1200},
                                     {"decade", &Interval::months, 0, 120},
                                     {"year", &Interval::months, 0, 12},
                                     {"month", &Interval::months, 12, 1},
                                     {"day", &Interval::days, 0, 1},
                                     {"hour", &Interval::micros, 0, hour_us},
                                     {"minute", &Interval::micros, hour_us, minute_us},
                                     {"second", &Interval::micros, minute_us, second_us},
                                     {"millisecond", &Interval::micros, minute_us, 1000},
                                     {"microsecond", &Interval::micros, minute_us, 1}};
  for (const Share& s : shares)
    if (s.part == part) {
      const VectorId v = s.modulus ? rest(p.*s.of, s.modulus) : p.*s.of;
      return s.unit == 1 ? v : whole_map("div", v, s.unit);
    }
  if (part == "quarter") return whole_map("plus", whole_map("div", rest(p.months, months_of_year), 3), 1);
  if (part == "epoch") {
    // A year of 365 days and a quarter, a month of 30.
    const VectorId years = whole_map("div", p.months, months_of_year);
    VectorId days = g_.map(
        "plus", {whole_map("mul", years, 365), whole_map("mul", rest(p.months, months_of_year), days_of_month)}, whole);
    days = g_.map("plus", {days, p.days}, whole);
    const VectorId seconds = g_.map("plus", {whole_map("mul", days, 86400), whole_map("mul", years, 21600)}, whole);
    const VectorId micros =
        g_.map("div", {g_.cast(p.micros, BasicType::f64), g_.real(BasicType::f64, second_us)}, BasicType::f64);
    return g_.map("plus", {g_.cast(seconds, BasicType::f64), micros}, BasicType::f64);
  }
  if (part == "epoch_us" || part == "epoch_ms" || part == "epoch_ns") {
    const VectorId days = g_.map("plus", {whole_map("mul", p.months, days_of_month), p.days}, whole);
    VectorId micros = grown("plus", grown("mul", days, g_.integer(whole, day_us)), p.micros);
    if (part == "epoch_ns") micros = grown("mul", micros, g_.integer(whole, 1000));
    VectorId holds = nothing;
    const VectorId v = in_word(micros, holds);
    const VectorId held =
        is_none(holds) ? v : demanded(v, holds, {&c, 1}, "the microseconds of an interval are out of range");
    return part == "epoch_ms" ? whole_map("div", held, 1000) : held;
  }
  return nothing;
}

// age: what lies between two moments in years, months and days of the calendar.
Cell Translator::age(const Expression& e, std::span<const Cell> a, std::string_view) {
  if (a.size() != 2 || !is_timestamp(a[0].type) || !is_timestamp(a[1].type)) {
    no_rule(e, a);
    return failed(e.type);
  }
  // From the earlier to the later, and its sign.
  const VectorId is_back = g_.map("lt", {a[0].value, a[1].value}, truth);
  const auto sided = [&](VectorId x, VectorId y) { return g_.select(is_back, y, x); };
  const Type moment{TypeId::timestamp};
  const Cell later{sided(a[0].value, a[1].value), nothing, moment},
      earlier{sided(a[1].value, a[0].value), nothing, moment};
  const Civil p = civil_of(later), q = civil_of(earlier);
  const auto apart = [&](VectorId x, VectorId y) { return g_.map("minus", {x, y}, whole); };
  VectorId micros = apart(time_of_day(later), time_of_day(earlier)), days = apart(p.day, q.day);
  VectorId months = apart(months_of(p), months_of(q));
  // What is below zero borrows: days of the month of the earlier one.
  const auto borrow = [&](VectorId& from, VectorId& below, VectorId unit) {
    const VectorId is_below = g_.map("lt", {below, g_.integer(whole, 0)}, truth);
    below = g_.select(is_below, g_.map("plus", {below, unit}, whole), below);
    from = apart(from, g_.cast(is_below, whole));
  };
  borrow(days, micros, g_.integer(whole, day_us));
  const VectorId month = months_of(q);
  borrow(months, days, apart(first_of_month(whole_map("plus", month, 1)), first_of_month(month)));
  const auto with_sign = [&](VectorId v) { return g_.select(is_back, g_.map("neg", {v}, whole), v); };
  Interval parts{with_sign(months), with_sign(days), with_sign(micros)};
  g_.change(parts.days).bounds = Bounds::of(-31, 31);
  const VectorId ends = infinite_any(a);
  Cell out = interval_cell(parts, a);
  if (!is_none(ends))
    out = {demanded(out.value, g_.not_(ends), a, "infinite timestamps have no age"), out.valid, out.type};
  return out;
}

// time_bucket: the begin of the bucket of a width that a moment lies in; buckets count from Monday,
// 2000-01-03, those of months from 2000-01-01.
Cell Translator::bucket(const Expression& e, std::span<const Cell> a, std::string_view) {
  const Cell& c = a[1];
  const auto literal = [&](VectorId v) { return g_.is_literal(v) ? static_cast<int64_t>(g_[v].bounds.least) : -1; };
  const bool known = a[0].type.id == TypeId::interval && is_none(a[0].valid) && !is_none(a[0].parts.months);
  const int64_t months = known ? literal(a[0].parts.months) : -1, days = known ? literal(a[0].parts.days) : -1,
                micros = known ? literal(a[0].parts.micros) : -1;
  if (!is_moment(c.type) || !is_moment(e.type) || months < 0 || days < 0 || micros < 0 || days > 100000 ||
      (months > 0) == (days > 0 || micros > 0)) {
    fail("the function {} has a translation with a constant width of months, or of days and less, alone",
         name_of(e.function));
    return failed(e.type);
  }
  constexpr int64_t first_month = 2000 * 12, first_monday = 10959;
  VectorId begin;  // microseconds
  if (months > 0) {
    const VectorId since = whole_map("minus", months_of(civil_of(c)), first_month);
    const VectorId from = whole_map("plus", whole_map("mul", floor_div(since, months), months), first_month);
    begin = whole_map("mul", first_of_month(from), day_us);
  } else {
    const int64_t width = days * day_us + micros, origin = first_monday * day_us;
    const VectorId since = whole_map("minus", micros_of(c), origin);
    begin = whole_map("plus", whole_map("mul", floor_div(since, width), width), origin);
  }
  const Cell moment{begin, nothing, {TypeId::timestamp}};
  VectorId v = e.type.id == TypeId::date ? date_of(days_of(moment)) : begin;
  if (const VectorId ends = infinite(c); !is_none(ends)) v = g_.select(ends, cast_cell(c, e.type).value, v);
  return strict(e.type, v, a);
}

}  // namespace rndn::sql
