// Dates, times and timestamps made of numbers and of texts with a format, and moved between zones.
//
// Parts that make no date or time are errors for the rows for which they count. A text is read by
// `strptime` on the host, once per distinct value. Left out: zones other than UTC, formats that are
// no constant or have parts other than those of `parsed_parts`.
#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

namespace {

constexpr std::string_view parsed_parts = "dmyYHIMSfgbhBaApj%";

}  // namespace

// Where a number is from `least` to `most`.
VectorId Translator::is_between(VectorId v, VectorId least, VectorId most) {
  return g_.and_(g_.map("geq", {v, least}, truth), g_.map("leq", {v, most}, truth));
}

// Days since 1970 of a year, month and day; `holds`: where there is such a day.
VectorId Translator::days_of_parts(VectorId year, VectorId month, VectorId day, VectorId& holds) {
  const auto number = [&](int64_t n) { return g_.integer(whole, n); };
  const VectorId months = whole_map("minus", g_.map("plus", {whole_map("mul", year, 12), month}, whole), 1);
  const VectorId first = first_of_month(months);
  const VectorId length = g_.map("minus", {first_of_month(whole_map("plus", months, 1)), first}, whole);
  holds = g_.and_(g_.and_(is_between(month, number(1), number(12)), is_between(day, number(1), length)),
                  is_between(year, number(-290307), number(294247)));
  const VectorId days = whole_map("minus", g_.map("plus", {first, day}, whole), 1);
  return g_.select(holds, days, number(0));
}

// Microseconds of hours, minutes and seconds, which may have a fraction.
VectorId Translator::micros_of_parts(VectorId hour, VectorId minute, const Cell& seconds, VectorId& holds) {
  const auto number = [&](int64_t n) { return g_.integer(whole, n); };
  const VectorId s = g_.cast(seconds.value, real);
  // 24:00:00 is the end of the day, and a second number 60 that of a minute.
  const VectorId is_end =
      g_.and_(g_.map("eq", {hour, number(24)}, truth),
              g_.and_(g_.map("eq", {minute, number(0)}, truth), g_.map("eq", {s, g_.real(real, 0)}, truth)));
  holds = g_.and_(g_.and_(is_between(hour, number(0), number(23)), is_between(minute, number(0), number(59))),
                  g_.and_(g_.map("geq", {s, g_.real(real, 0)}, truth), g_.map("leq", {s, g_.real(real, 60)}, truth)));
  holds = g_.or_(holds, is_end);
  const VectorId zero = number(0);
  const auto counting = [&](VectorId v) { return g_.select(holds, v, zero); };
  const VectorId fine =
      g_.map("round", {g_.map("mul", {g_.select(holds, s, g_.real(real, 0)), g_.real(real, second_us)}, real)}, real);
  VectorId out =
      g_.map("plus", {whole_map("mul", counting(hour), hour_us), whole_map("mul", counting(minute), minute_us)}, whole);
  out = g_.map("plus", {out, g_.cast(fine, whole)}, whole);
  g_.change(out).bounds = Bounds::of(0, day_us);
  return out;
}

Cell Translator::make_date(const Expression& e, std::span<const Cell> a, std::string_view) {
  for (const Cell& c : a)
    if (!is_integral(c.type)) {
      no_rule(e, a);
      return failed(e.type);
    }
  if (a.size() == 1) {  // of days since 1970
    const VectorId days = g_.cast(a[0].value, whole);
    const Bounds all = Bounds::of(1 - INT32_MAX, INT32_MAX - 1);
    const VectorId holds = within(days, g_[days].bounds, all);
    const VectorId date = date_of(is_none(holds) ? days : g_.select(holds, days, g_.integer(whole, 0)));
    return strict(e.type, is_none(holds) ? date : demanded(date, holds, a, "a date is out of range", all), a);
  }
  VectorId holds;
  const VectorId days =
      days_of_parts(g_.cast(a[0].value, whole), g_.cast(a[1].value, whole), g_.cast(a[2].value, whole), holds);
  return strict(e.type, demanded(date_of(days), holds, a, "a date is out of range"), a);
}

Cell Translator::make_time(const Expression& e, std::span<const Cell> a, std::string_view) {
  if (!is_integral(a[0].type) || !is_integral(a[1].type) || !is_floating(a[2].type)) {
    no_rule(e, a);
    return failed(e.type);
  }
  VectorId holds;
  const VectorId v = micros_of_parts(g_.cast(a[0].value, whole), g_.cast(a[1].value, whole), a[2], holds);
  return strict(e.type, demanded(v, holds, a, "a time is out of range", Bounds::of(0, day_us)), a);
}

// A timestamp of its parts, or of a number of units since 1970.
Cell Translator::make_timestamp(const Expression& e, std::span<const Cell> a, std::string_view unit) {
  const bool parts = a.size() == 6;
  for (size_t k = 0; k < a.size(); ++k)
    if ((!parts && a.size() != 1) || !(k == 5 ? is_floating(a[k].type) : is_integral(a[k].type))) {
      no_rule(e, a);
      return failed(e.type);
    }
  if (!parts) {
    const VectorId n = g_.cast(a[0].value, whole);
    const int64_t by = unit == "ms" ? 1000 : 1;
    const VectorId holds = within(n, g_[n].bounds, Bounds::of(-INT64_MAX / by, INT64_MAX / by));
    const VectorId v = by == 1 ? n : whole_map("mul", n, by);
    return strict(e.type, is_none(holds) ? v : demanded(v, holds, a, "a moment is out of range"), a);
  }
  const auto number = [&](size_t k) { return g_.cast(a[k].value, whole); };
  VectorId is_day, is_time;
  const VectorId days = days_of_parts(number(0), number(1), number(2), is_day);
  const VectorId time = micros_of_parts(number(3), number(4), a[5], is_time);
  VectorId holds = g_.and_(is_day, is_time);
  const VectorId v = in_word(grown("plus", grown("mul", days, g_.integer(whole, day_us)), time), holds);
  return strict(e.type, demanded(v, holds, a, "a moment is out of range"), a);
}

// to_timestamp: of seconds since 1970, to the nearest microsecond.
Cell Translator::moment_of_seconds(const Expression& e, std::span<const Cell> a, std::string_view) {
  if (!is_floating(a[0].type)) {
    no_rule(e, a);
    return failed(e.type);
  }
  const VectorId micros = g_.map("mul", {g_.cast(a[0].value, real), g_.real(real, second_us)}, real);
  Cell v = whole_of(a[0], to_even(micros), {TypeId::bigint}, -0x1.ffffffffffffep62, 0x1.ffffffffffffep62, false);
  return strict(e.type, v.value, a);
}

// The number of a day from noon of Monday, 4713 before Christ on, and the part of it that is over.
Cell Translator::julian(const Expression& e, std::span<const Cell> a, std::string_view) {
  if (!is_moment(a[0].type)) {
    no_rule(e, a);
    return failed(e.type);
  }
  constexpr int64_t first = 2440588;
  VectorId v = g_.cast(whole_map("plus", days_of(a[0]), first), real);
  if (a[0].type.id != TypeId::date) {
    const VectorId part = g_.map("div", {g_.cast(time_of_day(a[0]), real), g_.real(real, day_us)}, real);
    v = g_.map("plus", {part, v}, real);
  }
  const VectorId ends = infinite(a[0]);
  return canonical(e.type, v, is_none(ends) ? a[0].valid : g_.and_(a[0].valid, g_.not_(ends)));
}

// AT TIME ZONE: of UTC alone, which changes no microsecond.
Cell Translator::zoned(const Expression& e, std::span<const Cell> a, std::string_view) {
  const std::optional<std::string> zone = a.size() == 2 ? g_[a[0].value].text : std::nullopt;
  if (a.size() != 2 || !is_timestamp(a[1].type) || !is_timestamp(e.type)) {
    no_rule(e, a);
    return failed(e.type);
  }
  std::string lower = zone.value_or("");
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  if (lower != "utc" && lower != "gmt" && lower != "etc/utc" && lower != "etc/gmt") {
    fail("the time zone {} has no translation: UTC alone has one", zone ? "'" + *zone + "'" : "of a column");
    return failed(e.type);
  }
  return {a[1].value, a[1].valid, e.type};
}

// strptime, and try_strptime ("try"), which gives null in place of an error.
Cell Translator::parsed(const Expression& e, std::span<const Cell> a, std::string_view tries) {
  const std::optional<std::string> format = g_[a[1].value].text;
  if (a[0].type.id != TypeId::varchar || !format || !is_none(a[1].valid) || e.type.id != TypeId::timestamp) {
    fail("the function {} has a translation with a constant format, and without zones, alone", name_of(e.function));
    return failed(e.type);
  }
  for (size_t k = 0; k < format->size(); ++k) {
    if ((*format)[k] != '%') continue;
    if (k + 1 < format->size() && (*format)[k + 1] == '-') ++k;
    if (++k == format->size() || parsed_parts.find((*format)[k]) == std::string_view::npos) {
      fail("the function {} has no translation for %{}", name_of(e.function),
           format->substr(std::min(k, format->size()), 1));
      return failed(e.type);
    }
  }
  return text_cell(e.type, "strptime", a, tries.empty() ? Undefined::is_error : Undefined::is_null);
}

}  // namespace rndn::sql
