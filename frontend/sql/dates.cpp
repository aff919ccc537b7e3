// Dates, times and timestamps: parts, truncation, differences, intervals.
//
// A DATE is days, a TIMESTAMP microseconds; days are those of the civil calendar (Hinnant,
// "chrono-Compatible Low-Level Date Algorithms"), computed element by element, so that all of it is
// arithmetic on the device. Weeks begin on Monday and belong to the year of their Thursday (ISO
// 8601). An interval is months, days and microseconds, added in this order; the day of the month is
// cut to the month's last. TIMESTAMPTZ is an instant, shown and taken apart in UTC, the only zone.
// Left out: zones other than UTC.
#include <algorithm>
#include <optional>

#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

namespace {
constexpr int64_t days_of_era = 146097, years_of_era = 400, epoch_of_era = 719468;
}  // namespace

VectorId Translator::whole_map(std::string_view builtin, VectorId x, int64_t y, Bounds bounds) {
  return g_.map(builtin, {x, g_.integer(whole, y)}, whole, bounds);
}

// Rounded down, for any sign; `by` is above zero.
VectorId Translator::floor_div(VectorId x, int64_t by) {
  if (by == 1) return x;
  const Bounds b = g_[x].bounds;
  const Bounds out = b.known ? Bounds::of(b.least / by - 1, b.most / by) : Bounds{};
  if (b.known && b.least >= 0) return whole_map("div", x, by, Bounds::of(b.least / by, b.most / by));
  const VectorId below = g_.map("lt", {x, g_.integer(whole, 0)}, truth);
  const VectorId moved = g_.select(below, whole_map("plus", x, 1, b + Bounds::of(1, 1)), x);
  const VectorId cut = whole_map("div", moved, by, out);
  return g_.map("minus", {cut, g_.cast(below, whole)}, whole, out);
}
VectorId Translator::floor_mod(VectorId x, int64_t by) {
  return g_.map("minus", {x, whole_map("mul", floor_div(x, by), by)}, whole, Bounds::of(0, by - 1));
}

// Days since 1970, of DATE or TIMESTAMP.
VectorId Translator::days_of(const Cell& c) {
  if (is_timestamp(c.type)) return floor_div(c.value, day_us);
  return g_.cast(g_.map("minus", {c.value, g_.zero(BasicType::date)}, BasicType::i32, g_[c.value].bounds), whole);
}
// Microseconds, of DATE, TIMESTAMP or TIME.
VectorId Translator::micros_of(const Cell& c) {
  if (c.type.id != TypeId::date) return c.value;
  return whole_map("mul", days_of(c), day_us, g_[c.value].bounds * Bounds::of(day_us, day_us));
}
VectorId Translator::time_of_day(const Cell& c) {
  if (c.type.id == TypeId::time) return c.value;
  if (c.type.id == TypeId::date) return g_.integer(whole, 0);
  return floor_mod(c.value, day_us);
}
VectorId Translator::date_of(VectorId days) {
  return g_.map("plus", {g_.zero(BasicType::date), days}, BasicType::date, g_[days].bounds);
}

namespace {

// Timestamps and dates have an infinity each way, and end before.
constexpr int64_t forever = INT64_MAX, first_moment = -9223372022400000000;
constexpr __int128 endless(Type type) { return type.id == TypeId::date ? INT32_MAX : forever; }

}  // namespace

// Where a moment is infinite; none: nowhere.
VectorId Translator::infinite(const Cell& c) {
  if (!is_moment(c.type)) return nothing;
  const Bounds b = g_[c.value].bounds;
  const __int128 end = endless(c.type);
  if (b.known && b.least > -end && b.most < end) return nothing;
  const auto is = [&](__int128 value) {
    const VectorId limit =
        c.type.id == TypeId::date ? date_literal(value) : g_.integer(whole, value);
    return g_.map("eq", {c.value, limit}, truth);
  };
  return g_.or_(is(end), is(-end));
}

// Microseconds, of days and of what is added to them: an error where that is no timestamp, and an
// infinity where `from` is one.
VectorId Translator::moment_of(VectorId days, VectorId time, std::span<const Cell> arguments) {
  const Cell& from = arguments[0];
  const Bounds exact = g_[days].bounds * Bounds::of(day_us, day_us) + g_[time].bounds;
  const Bounds all = Bounds::of(first_moment, forever - 1);
  const VectorId ends = infinite(from);
  if (is_none(ends) && exact.known && exact.within(all.least, all.most))
    return g_.map("plus", {whole_map("mul", days, day_us), time}, whole, exact);
  const BasicType wide = BasicType::i128;
  VectorId v = g_.map("plus", {g_.map("mul", {g_.cast(days, wide), g_.integer(wide, day_us)}, wide),
                               g_.cast(time, wide)}, wide, exact);
  VectorId holds = within(v, exact, all);
  if (!is_none(ends)) holds = g_.or_(holds, ends);
  v = g_.cast(g_.select(holds, v, g_.zero(wide)), whole);
  if (!is_none(holds)) v = demanded(v, holds, arguments, "a moment is out of range");
  if (is_none(ends)) {
    g_.change(v).bounds = all;
    return v;
  }
  const VectorId above = g_.map("gt", {from.value, g_.zero(g_[from.value].type)}, truth);
  const VectorId endless_one =
      g_.select(above, g_.integer(whole, forever), g_.integer(whole, -forever));
  return g_.select(ends, endless_one, v);
}

// A date moved by days: an error where that is none.
VectorId Translator::moved_date(const Cell& date, const Cell& by, bool back) {
  const Bounds p = g_[date.value].bounds, q = known_bounds(by);
  const Bounds exact = back ? p - q : p + q, all = Bounds::of(1 - INT32_MAX, INT32_MAX - 1);
  const std::string_view builtin = back ? "minus" : "plus";
  const VectorId ends = infinite(date);
  if (is_none(ends) && exact.known && exact.within(all.least, all.most))
    return g_.map(builtin, {date.value, by.value}, BasicType::date, exact);
  const VectorId days = g_.map(builtin, {days_of(date), g_.cast(by.value, whole)}, whole, exact);
  VectorId holds = within(days, exact, all);
  if (!is_none(ends)) holds = g_.or_(holds, ends);
  const Cell both[] = {date, by};
  VectorId v = date_of(is_none(holds) ? days : g_.select(holds, days, g_.integer(whole, 0)));
  if (!is_none(holds)) v = demanded(v, holds, both, "a date is out of range");
  g_.change(v).bounds = all;
  return is_none(ends) ? v : g_.select(ends, date.value, v);
}

// Years, months and days by arithmetic (H. Hinnant, chrono-Compatible Low-Level Date Algorithms):
// HorseIR's parts of dates end at year 32767.
Translator::Civil Translator::civil_far(VectorId days) {
  const auto of = [&](std::string_view builtin, VectorId x, VectorId y) {
    return g_.map(builtin, {x, y}, whole);
  };
  const VectorId z = whole_map("plus", days, epoch_of_era);
  const VectorId era = floor_div(z, days_of_era);
  const VectorId day = g_.map("minus", {z, whole_map("mul", era, days_of_era)}, whole,
                              Bounds::of(0, days_of_era - 1));
  VectorId year = of("minus", day, whole_map("div", day, 1460));
  year = of("plus", year, whole_map("div", day, 36524));
  year = whole_map("div", of("minus", year, whole_map("div", day, 146096)), 365);
  VectorId of_year = of("minus", day, whole_map("mul", year, 365));
  of_year = of("plus", of("minus", of_year, whole_map("div", year, 4)), whole_map("div", year, 100));
  const VectorId from_march = whole_map("div", whole_map("plus", whole_map("mul", of_year, 5), 2), 153);
  const VectorId first = whole_map("div", whole_map("plus", whole_map("mul", from_march, 153), 2), 5);
  const VectorId is_later = g_.map("lt", {from_march, g_.integer(whole, 10)}, truth);
  const VectorId month = g_.select(is_later, whole_map("plus", from_march, 3), whole_map("minus", from_march, 9));
  const VectorId own = of("plus", year, whole_map("mul", era, years_of_era));
  return {of("plus", own, g_.cast(g_.not_(is_later), whole)), month,
          whole_map("plus", of("minus", of_year, first), 1)};
}

Translator::Civil Translator::civil_of(VectorId date) {
  constexpr int64_t first_day = -12687428, last_day = 11248737;  // of years of 16 bits
  if (const Bounds b = g_[date].bounds; b.known && !b.within(first_day, last_day))
    return civil_far(days_of({date, nothing, {TypeId::date}}));
  const auto part = [&](std::string_view builtin, Bounds bounds) {
    return g_.cast(g_.map(builtin, {date}, BasicType::i16, bounds), whole);
  };
  return {part("date_year", Bounds::of(INT16_MIN, INT16_MAX)), part("date_month", Bounds::of(1, 12)),
          part("date_day", Bounds::of(1, 31))};
}
Translator::Civil Translator::civil_of(const Cell& c) {
  return civil_of(c.type.id == TypeId::date ? c.value : date_of(days_of(c)));
}

// The day on which a month begins; months count from 0 in January of year 0.
VectorId Translator::first_of_month(VectorId months) {
  // Years from March on, so that the leap day is their last.
  const VectorId from_march = whole_map("minus", months, 2);
  const VectorId year = floor_div(from_march, 12);
  const VectorId month = g_.map("minus", {from_march, whole_map("mul", year, 12)}, whole, Bounds::of(0, 11));
  const VectorId era = floor_div(year, years_of_era);
  const VectorId of_era =
      g_.map("minus", {year, whole_map("mul", era, years_of_era)}, whole, Bounds::of(0, years_of_era - 1));
  const VectorId of_year =
      whole_map("div", whole_map("plus", whole_map("mul", month, 153), 2), 5, Bounds::of(0, 337));
  VectorId days = g_.map("plus", {whole_map("mul", of_era, 365), of_year}, whole);
  days = g_.map("plus", {days, whole_map("div", of_era, 4)}, whole);
  days = g_.map("minus", {days, whole_map("div", of_era, 100)}, whole);
  days = g_.map("plus", {days, whole_map("mul", era, days_of_era)}, whole);
  return whole_map("minus", days, epoch_of_era);
}
VectorId Translator::months_of(const Civil& c) {
  return whole_map("minus", g_.map("plus", {whole_map("mul", c.year, 12), c.month}, whole), 1);
}
VectorId Translator::first_of_year(VectorId year) { return first_of_month(whole_map("mul", year, 12)); }

// Monday of the week.
VectorId Translator::monday_of(VectorId days) {
  return g_.map("minus", {days, floor_mod(whole_map("plus", days, 3, g_[days].bounds + Bounds::of(3, 3)), 7)}, whole,
                g_[days].bounds - Bounds::of(0, 6));
}

// --- Parts ---------------------------------------------------------------------------------------

Cell Translator::date_part(const Expression& e, std::span<const Cell> a, std::string_view part) {
  const Cell& c = a[0];
  const bool has_date = is_moment(c.type);
  if (part == "epoch_ms" && is_integral(c.type)) return make_timestamp(e, a, "ms");
  if (c.type.id == TypeId::interval)
    if (const VectorId v = part_of_interval(c, part); !is_none(v)) {
      const bool as_real = is_floating(e.type) && !hir::is_float(g_[v].type);
      return strict(e.type, as_real ? g_.cast(v, BasicType::f64) : v, a);
    }
  if (!has_date && c.type.id != TypeId::time) {
    no_rule(e, a);
    return failed(e.type);
  }
  const VectorId ends = infinite(c);  // which has no parts
  const auto done = [&](VectorId v) {
    if (is_floating(e.type) && !hir::is_float(g_[v].type)) v = g_.cast(v, BasicType::f64);
    return is_none(ends) ? strict(e.type, v, a)
                         : canonical(e.type, v, g_.and_(c.valid, g_.not_(ends)));
  };
  // Of the time of day, as quotient and remainder.
  struct Clock {
    std::string_view part;
    int64_t modulus, unit;
  };
  static constexpr Clock clocks[] = {{"hour", day_us, hour_us},
                                     {"minute", hour_us, minute_us},
                                     {"second", minute_us, second_us},
                                     {"millisecond", minute_us, 1000},
                                     {"microsecond", minute_us, 1}};
  for (const Clock& clock : clocks)
    if (part == clock.part) return done(floor_div(floor_mod(time_of_day(c), clock.modulus), clock.unit));
  if (part == "epoch" && c.type.id == TypeId::date)
    return done(g_.map("mul", {g_.cast(days_of(c), BasicType::f64), g_.real(BasicType::f64, 86400)}, BasicType::f64));
  if (part == "epoch") {
    const VectorId micros = g_.cast(micros_of(c), BasicType::f64);
    return done(g_.map("div", {micros, g_.real(BasicType::f64, second_us)}, BasicType::f64));
  }
  if (part == "epoch_ms") return done(floor_div(micros_of(c), 1000));
  if (part == "epoch_us") return done(micros_of(c));
  if (part == "epoch_ns") {
    const VectorId micros = micros_of(c);
    const VectorId holds = within(micros, g_[micros].bounds, Bounds::of(-INT64_MAX / 1000, INT64_MAX / 1000));
    const VectorId v = whole_map("mul", micros, 1000);
    return done(is_none(holds) ? v : demanded(v, holds, a, "a moment is out of range"));
  }
  if (part == "nanosecond") return done(whole_map("mul", floor_mod(time_of_day(c), minute_us), 1000));
  if (!has_date) {
    no_rule(e, a);
    return failed(e.type);
  }
  if (part == "dayofweek") return done(floor_mod(whole_map("plus", days_of(c), 4), 7));
  if (part == "isodow") return done(whole_map("plus", floor_mod(whole_map("plus", days_of(c), 3), 7), 1));
  if (part == "week" || part == "isoyear" || part == "yearweek") {
    const VectorId monday = monday_of(days_of(c));
    const VectorId thursday = whole_map("plus", monday, 3, g_[monday].bounds + Bounds::of(3, 3));
    const VectorId year = civil_of(date_of(thursday)).year;
    if (part == "isoyear") return done(year);
    const VectorId of_year = g_.map("minus", {thursday, first_of_year(year)}, whole, Bounds::of(0, 365));
    const VectorId week = whole_map("plus", whole_map("div", of_year, 7, Bounds::of(0, 52)), 1, Bounds::of(1, 53));
    if (part == "week") return done(week);
    return done(g_.map("plus", {whole_map("mul", year, 100), week}, whole));
  }
  const Civil civil = civil_of(c);
  if (part == "year") return done(civil.year);
  if (part == "month") return done(civil.month);
  if (part == "day") return done(civil.day);
  if (part == "quarter") return done(whole_map("div", whole_map("plus", civil.month, 2), 3, Bounds::of(1, 4)));
  if (part == "decade") return done(whole_map("div", civil.year, 10));
  if (part == "century") return done(whole_map("plus", whole_map("div", whole_map("minus", civil.year, 1), 100), 1));
  if (part == "millennium") return done(whole_map("plus", whole_map("div", whole_map("minus", civil.year, 1), 1000), 1));
  if (part == "era") return done(g_.cast(g_.map("gt", {civil.year, g_.integer(whole, 0)}, truth), whole));
  if (part == "dayofyear")
    return done(whole_map("plus", g_.map("minus", {days_of(c), first_of_year(civil.year)}, whole), 1, Bounds::of(1, 366)));
  no_rule(e, a);
  return failed(e.type);
}

namespace {

struct Unit {
  std::string_view names[5];
  int64_t months, micros;  // of one unit: one of the two; or neither
  std::string_view part;
};
constexpr Unit units[] = {
    {{"millennium", "millennia", "mil", "mils", ""}, 12000, 0, "millennium"},
    {{"century", "centuries", "cent", "c", ""}, 1200, 0, "century"},
    {{"decade", "decades", "dec", "decs", ""}, 120, 0, "decade"},
    {{"year", "years", "yr", "y", "yrs"}, 12, 0, "year"},
    {{"quarter", "quarters", "", "", ""}, 3, 0, "quarter"},
    {{"month", "months", "mon", "mons", ""}, 1, 0, "month"},
    {{"week", "weeks", "w", "weekofyear", ""}, 0, 7 * day_us, "week"},
    {{"day", "days", "d", "dayofmonth", ""}, 0, day_us, "day"},
    {{"hour", "hours", "hr", "h", "hrs"}, 0, hour_us, "hour"},
    {{"minute", "minutes", "min", "m", "mins"}, 0, minute_us, "minute"},
    {{"second", "seconds", "sec", "s", "secs"}, 0, second_us, "second"},
    {{"millisecond", "milliseconds", "ms", "msec", "msecs"}, 0, 1000, "millisecond"},
    {{"microsecond", "microseconds", "us", "usec", "usecs"}, 0, 1, "microsecond"},
};

}  // namespace

std::optional<Span> span_of(std::string_view unit) {
  for (const Unit& u : units)
    if (u.part == unit) return Span{u.months, u.micros};
  return std::nullopt;
}

namespace {

const Unit* unit_of(const Graph& g, const Cell& name) {
  std::optional<std::string> text = g[name.value].text;
  if (!text || !is_none(name.valid)) return nullptr;
  for (char& c : *text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  for (const Unit& u : units)
    for (std::string_view n : u.names)
      if (!n.empty() && n == *text) return &u;
  return nullptr;
}

}  // namespace

Cell Translator::truncation(const Expression& e, std::span<const Cell> a, std::string_view) {
  const Unit* unit = unit_of(g_, a[0]);
  const Cell& c = a[1];
  if (!unit || !is_moment(c.type) || !is_moment(e.type)) {
    no_rule(e, a);
    return failed(e.type);
  }
  VectorId micros;
  if (unit->months > 0) {
    const VectorId months = whole_map("mul", floor_div(months_of(civil_of(c)), unit->months), unit->months);
    micros = whole_map("mul", first_of_month(months), day_us);
  } else if (unit->part == "week") {
    micros = whole_map("mul", monday_of(days_of(c)), day_us);
  } else {
    micros = whole_map("mul", floor_div(micros_of(c), unit->micros), unit->micros);
  }
  constexpr int64_t longest = 366000 * day_us;  // a millennium
  const Bounds own = g_[micros_of(c)].bounds;
  if (own.known && !g_[micros].bounds.known)
    g_.change(micros).bounds = Bounds::of(own.least - longest, own.most);
  const Cell moment{micros, nothing, {TypeId::timestamp}};
  VectorId v = e.type.id == TypeId::date ? date_of(days_of(moment)) : micros;
  if (const VectorId ends = infinite(c); !is_none(ends))
    v = g_.select(ends, cast_cell(c, e.type).value, v);
  return strict(e.type, v, {&c, 1});
}

// Whole months from one moment to another: as many as begin between them, but for the last, which is
// not over before its day and time of day. The last day of a shorter month stands for those that it
// has not.
VectorId Translator::whole_months(const Cell& from, const Cell& to) {
  const VectorId x = micros_of(from), y = micros_of(to);
  const VectorId is_back = g_.map("lt", {y, x}, truth);
  const Type moment{TypeId::timestamp};
  const Cell later{g_.select(is_back, x, y), nothing, moment}, earlier{g_.select(is_back, y, x), nothing, moment};
  const Civil p = civil_of(later), q = civil_of(earlier);
  const VectorId month = months_of(p);
  const VectorId length = g_.map("minus", {first_of_month(whole_map("plus", month, 1)), first_of_month(month)}, whole);
  const VectorId stands = g_.and_(g_.map("eq", {p.day, length}, truth), g_.map("gt", {q.day, length}, truth));
  const auto within_month = [&](VectorId day, const Cell& c) {
    return g_.map("plus", {whole_map("mul", day, day_us), time_of_day(c)}, whole);
  };
  const VectorId is_short = g_.map(
      "lt", {within_month(p.day, later), within_month(g_.select(stands, p.day, q.day), earlier)}, truth);
  const VectorId months = g_.map("minus", {g_.map("minus", {month, months_of(q)}, whole), g_.cast(is_short, whole)}, whole);
  return g_.select(is_back, g_.map("neg", {months}, whole), months);
}

// date_diff: how many ends of a unit lie between; date_sub: how many whole units.
Cell Translator::difference(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  const Unit* unit = unit_of(g_, a[0]);
  const bool whole_units = builtin == "whole";
  if (!unit || !is_moment(a[1].type) || !is_moment(a[2].type)) {
    no_rule(e, a);
    return failed(e.type);
  }
  const auto place = [&](const Cell& c) {
    if (unit->months > 0) return floor_div(months_of(civil_of(c)), unit->months);
    if (unit->part == "week") return days_of(c);
    return whole_units ? micros_of(c) : floor_div(micros_of(c), unit->micros);
  };
  VectorId v = g_.map("minus", {place(a[2]), place(a[1])}, whole);
  if (whole_units && unit->months > 0)
    v = whole_map("div", whole_months(a[1], a[2]), unit->months);
  else if (whole_units && unit->part != "week")
    v = whole_map("div", v, unit->micros);
  else if (unit->part == "week")
    v = whole_units ? whole_map("div", g_.map("minus", {micros_of(a[2]), micros_of(a[1])}, whole), unit->micros)
                    : whole_map("div", v, 7);
  Cell out = strict(e.type, v, a.subspan(1));
  for (const Cell& c : {a[1], a[2]})
    if (const VectorId ends = infinite(c); !is_none(ends))
      out = canonical(e.type, out.value, g_.and_(out.valid, g_.not_(ends)));
  return out;
}

// --- Intervals -----------------------------------------------------------------------------------

// A moment moved by an interval, forwards or back.
Cell Translator::shifted(Type type, const Cell& moment, const Cell& by, bool back) {
  const auto moved = [&](VectorId x, VectorId y) {
    const std::string_view builtin = back ? "minus" : "plus";
    const Bounds p = g_[x].bounds, q = g_[y].bounds;
    return g_.map(builtin, {x, y}, whole, back ? p - q : p + q);
  };
  const auto is_zero = [&](VectorId v) { return g_.is_literal(v) && g_[v].bounds.most == 0 && g_[v].bounds.least == 0; };
  VectorId days = days_of(moment), time = time_of_day(moment);
  const Interval parts = parts_of(by);
  if (!is_zero(parts.months)) {
    const Bounds before = g_[days].bounds, most_days = Bounds::of(-31, 31), few = Bounds::of(-3, 3);
    const Bounds shift = rndn::sql::join(g_[parts.months].bounds, Bounds::of(0, 0)) * most_days;
    const Civil civil = civil_of(moment);
    const VectorId months = moved(months_of(civil), parts.months);
    const VectorId first = first_of_month(months);
    const VectorId length = g_.map("minus", {first_of_month(whole_map("plus", months, 1)), first}, whole, Bounds::of(28, 31));
    const VectorId day = g_.select(g_.map("gt", {civil.day, length}, truth), length, civil.day);
    days = whole_map("minus", g_.map("plus", {first, day}, whole), 1, before + shift + few);
  }
  if (!is_zero(parts.days)) days = moved(days, parts.days);
  if (!is_zero(parts.micros)) time = moved(time, parts.micros);
  const Cell both[] = {moment, by};
  const Bounds near = Bounds::of(1 - INT32_MAX, INT32_MAX - 1), of_days = g_[days].bounds;
  if (type.id == TypeId::date && is_zero(parts.micros) && is_none(infinite(moment)) && of_days.known &&
      of_days.within(near.least, near.most))
    return strict(type, date_of(days), both);
  const Cell out{moment_of(days, time, both), nothing, {TypeId::timestamp}};
  return strict(type, type.id == TypeId::date ? cast_cell(out, type).value : out.value, both);
}

Cell Translator::last_day(const Expression& e, std::span<const Cell> a, std::string_view) {
  if (!is_moment(a[0].type)) {
    no_rule(e, a);
    return failed(e.type);
  }
  const VectorId next = first_of_month(whole_map("plus", months_of(civil_of(a[0])), 1));
  const VectorId v = date_of(whole_map("minus", next, 1)), ends = infinite(a[0]);
  return canonical(e.type, v, is_none(ends) ? a[0].valid : g_.and_(a[0].valid, g_.not_(ends)));
}

// Names of days and months, and strftime: text of the moment.
Cell Translator::formatted(const Expression& e, std::span<const Cell> a, std::string_view format) {
  const bool swapped = a.size() == 2 && a[0].type.id == TypeId::varchar;
  const Cell& c = a[swapped ? 1 : 0];
  if (!is_moment(c.type)) {
    no_rule(e, a);
    return failed(e.type);
  }
  Cell micros{nothing, c.valid, {TypeId::bigint}};
  if (const Bounds b = g_[c.value].bounds * Bounds::of(day_us, day_us); is_timestamp(c.type) || b.fits_i64())
    micros.value = micros_of(c);
  else  // dates reach beyond the timestamps
    micros.value = g_.map("mul", {g_.cast(days_of(c), BasicType::i128), g_.integer(BasicType::i128, day_us)}, BasicType::i128);
  const Cell how = a.size() == 2 ? a[swapped ? 0 : 1]
                                 : Cell{g_.text(BasicType::str, format), nothing, {TypeId::varchar}};
  Cell out = text_cell(e.type, "strftime", {micros, how});
  const VectorId ends = infinite(c);
  if (is_none(ends)) return out;
  if (a.size() == 1) return canonical(e.type, out.value, g_.and_(out.valid, g_.not_(ends)));
  const BasicType type = g_[out.value].type;
  const VectorId above = g_.map("gt", {c.value, g_.zero(g_[c.value].type)}, truth);
  out.value = g_.select(g_.and_(ends, out.valid),
                        g_.select(above, g_.text(type, "infinity"), g_.text(type, "-infinity")), out.value);
  return out;
}

}  // namespace rndn::sql
