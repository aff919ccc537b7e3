// Values as text: numbers, dates and times, and strftime.
//
// Floats are the shortest text that reads back as the same value (fmt's Dragonbox), with a point
// or an exponent.
#include <fmt/format.h>

#include <cmath>

#include "frontend/calendar.h"
#include "runtime/text/implementation.h"

namespace rndn::text {
namespace {

constexpr int64_t second = 1000000, day = 86400 * second;  // microseconds

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

std::string digits_of(__int128 value) {
  std::string out;
  const bool negative = value < 0;
  do {
    const int digit = static_cast<int>(value % 10);
    out.insert(out.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
    value /= 10;
  } while (value != 0);
  return negative ? "-" + out : out;
}

template <class T>
std::string real_text(T value) {
  if (std::isnan(value)) return "nan";
  if (value == 0) return "0.0";
  std::string out = fmt::format("{}", value);
  if (out.find_first_of(".en") == out.npos) out += ".0";
  return out;
}

}  // namespace

bool call_of_integer(Call& c) { return c.give(digits_of(c.integer(0))); }

bool call_of_decimal(Call& c) {  // no digit before the point where the type has none
  const size_t width = static_cast<size_t>(c.integer(1)), scale = static_cast<size_t>(c.integer(2));
  std::string digits = digits_of(c.integer(0));
  const bool negative = digits[0] == '-';
  if (negative) digits.erase(0, 1);
  if (scale > 0) {
    const size_t wanted = width > scale ? scale + 1 : scale;
    if (digits.size() < wanted) digits.insert(0, wanted - digits.size(), '0');
    digits.insert(digits.size() - scale, ".");
  }
  return c.give(negative ? "-" + digits : digits);
}

bool call_of_float(Call& c) {
  return c.give(c.in[0].is_single ? real_text(static_cast<float>(c.in[0].real)) : real_text(c.in[0].real));
}

std::string date_text(int64_t days) {
  if (days == INT32_MAX || days == -INT32_MAX) return days > 0 ? "infinity" : "-infinity";
  const hir::CivilDate d = hir::civil_from_days(days);
  if (d.year <= 0) return fmt::format("{:04}-{:02}-{:02} (BC)", 1 - d.year, d.month, d.day);
  return fmt::format("{:04}-{:02}-{:02}", d.year, d.month, d.day);
}

std::string time_text(int64_t of_day) {
  const int64_t seconds = of_day / second, fraction = of_day % second;
  std::string out = fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (fraction == 0) return out;
  out += fmt::format(".{:06}", fraction);
  while (out.back() == '0') out.pop_back();
  return out;
}

std::string timestamp_text(int64_t micros) {
  if (micros == INT64_MAX || micros == -INT64_MAX) return micros > 0 ? "infinity" : "-infinity";
  const int64_t days = floor_div(micros, day);
  return fmt::format("{} {}", date_text(days), time_text(micros - days * day));
}

IntervalParts interval_parts(__int128 value) {
  const auto micros = static_cast<int64_t>(value);  // the low words, with their sign
  const auto high = static_cast<int64_t>((value - micros) >> 64);
  const auto days = static_cast<int32_t>(high);
  return {static_cast<int32_t>((high - days) >> 32), days, micros};
}

std::string interval_text(__int128 value) {
  const IntervalParts p = interval_parts(value);
  std::string out;
  const auto add = [&](int64_t n, std::string_view unit) {
    if (n) out += fmt::format("{}{} {}{}", out.empty() ? "" : " ", n, unit, n == 1 || n == -1 ? "" : "s");
  };
  add(p.months / 12, "year");
  add(p.months % 12, "month");
  add(p.days, "day");
  if (p.micros == 0) return out.empty() ? "00:00:00" : out;
  const bool negative = p.micros < 0;
  const uint64_t size = negative ? -static_cast<uint64_t>(p.micros) : static_cast<uint64_t>(p.micros);
  out += fmt::format("{}{}{:02}:{:02}:{:02}", out.empty() ? "" : " ", negative ? "-" : "", size / 3600000000,
                     size / 60000000 % 60, size / 1000000 % 60);
  if (size % 1000000 == 0) return out;
  out += fmt::format(".{:06}", size % 1000000);
  while (out.back() == '0') out.pop_back();
  return out;
}

bool call_of_interval(Call& c) { return c.give(interval_text(c.integer(0))); }
bool call_of_date(Call& c) { return c.give(date_text(c.number(0))); }
bool call_of_time(Call& c) { return c.give(time_text(c.number(0))); }
bool call_of_timestamp(Call& c) { return c.give(timestamp_text(c.number(0))); }

bool call_strftime(Call& c) {
  const __int128 moment = c.integer(0);
  const auto days = static_cast<int64_t>(moment / day - (moment % day < 0));
  const auto of_day = static_cast<int64_t>(moment - static_cast<__int128>(days) * day);
  const hir::CivilDate d = hir::civil_from_days(days);
  const int64_t weekday = ((days + 4) % 7 + 7) % 7;  // Sunday is 0
  const int64_t of_year = days - hir::days_from_civil(d.year, 1, 1);
  const int64_t thursday = days - (weekday + 6) % 7 + 3;  // of the same ISO week
  const int64_t iso_year = hir::civil_from_days(thursday).year;
  const int64_t hour = of_day / (3600 * second), minute = of_day / (60 * second) % 60;
  const int64_t seconds = of_day / second % 60, micros = of_day % second;
  const int64_t half = hour % 12 == 0 ? 12 : hour % 12;
  const std::string_view format = c.text(1);
  std::string out;
  const auto part = [&](const char* text, auto value) { out += fmt::format(fmt::runtime(text), value); };
  for (size_t k = 0; k < format.size(); ++k) {
    if (format[k] != '%') {
      out += format[k];
      continue;
    }
    if (++k == format.size()) return false;
    const bool plain = format[k] == '-';  // without zeros before the number
    if (plain && ++k == format.size()) return false;
    const char* two = plain ? "{}" : "{:02}";
    switch (plain && std::string_view("dmyHIMSj").find(format[k]) == std::string_view::npos ? '?' : format[k]) {
      case 'a': out += day_names[weekday].substr(0, 3); break;
      case 'A': out += day_names[weekday]; break;
      case 'w': part("{}", weekday); break;
      case 'u': part("{}", weekday == 0 ? 7 : weekday); break;
      case 'd': part(two, d.day); break;
      case 'b':
      case 'h': out += month_names[d.month - 1].substr(0, 3); break;
      case 'B': out += month_names[d.month - 1]; break;
      case 'm': part(two, d.month); break;
      case 'y': part(two, (d.year % 100 + 100) % 100); break;
      case 'Y': part("{:04}", d.year); break;
      case 'G': part("{:04}", iso_year); break;
      case 'V': part("{:02}", (thursday - hir::days_from_civil(iso_year, 1, 1)) / 7 + 1); break;
      case 'H': part(two, hour); break;
      case 'I': part(two, half); break;
      case 'p': out += hour < 12 ? "AM" : "PM"; break;
      case 'M': part(two, minute); break;
      case 'S': part(two, seconds); break;
      case 'f': part("{:06}", micros); break;
      case 'g': part("{:03}", micros / 1000); break;
      case 'n': part("{:09}", micros * 1000); break;
      case 'j': part(plain ? "{}" : "{:03}", of_year + 1); break;
      case 'U': part("{:02}", (of_year + 7 - weekday) / 7); break;
      case 'W': part("{:02}", (of_year + 7 - (weekday + 6) % 7) / 7); break;
      case 'z': out += "+00"; break;
      case 'Z': break;
      case 'c': out += date_text(days) + fmt::format(" {:02}:{:02}:{:02}", hour, minute, seconds); break;
      case 'x': out += date_text(days); break;
      case 'X':
      case 'T': out += fmt::format("{:02}:{:02}:{:02}", hour, minute, seconds); break;
      case '%': out += '%'; break;
      default: return false;
    }
  }
  return c.give(std::move(out));
}

}  // namespace rndn::text
