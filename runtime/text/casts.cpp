// Values that texts spell: numbers, truth, dates and times, as SQL's casts read them.
//
// Numbers are read as digits and a power of ten, and are exact: halves are rounded away from zero.
// `_` may stand between two digits; spaces around the number do not count. Floats are read by the
// C++ library. Dates are year-month-day with one of ` -/\` between them, times hour:minute with
// seconds and a fraction if wanted; a zone after a timestamp means nothing where the type has none, as
// TIMESTAMP has none. Left out: infinite dates and times have no value.
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "frontend/calendar.h"
#include "runtime/text/implementation.h"

namespace rndn::text {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view stripped(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Digits with single underscores between them, added to `out`. False: an underscore elsewhere.
bool take_digits(std::string_view& text, std::string& out) {
  bool after_digit = false;
  while (!text.empty()) {
    const char c = text.front();
    if (c == '_') {
      if (!after_digit || text.size() < 2 || !is_digit(text[1])) return false;
      after_digit = false;
    } else if (is_digit(c)) {
      out += c;
      after_digit = true;
    } else {
      break;
    }
    text.remove_prefix(1);
  }
  return true;
}

// sign digits x 10^exponent
struct Number {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;
};

std::optional<Number> number_of(std::string_view text) {
  text = stripped(text);
  Number n;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    n.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  if (!take_digits(text, n.digits)) return std::nullopt;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    const size_t whole = n.digits.size();
    if (!take_digits(text, n.digits)) return std::nullopt;
    n.exponent = -static_cast<int64_t>(n.digits.size() - whole);
  }
  if (n.digits.empty()) return std::nullopt;
  if (!text.empty() && (text.front() == 'e' || text.front() == 'E')) {
    text.remove_prefix(1);
    bool negative = false;
    if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
      negative = text.front() == '-';
      text.remove_prefix(1);
    }
    std::string exponent;
    if (!take_digits(text, exponent) || exponent.empty()) return std::nullopt;
    int64_t value = 0;
    for (char c : exponent) value = std::min<int64_t>(value * 10 + (c - '0'), 100000);
    n.exponent += negative ? -value : value;
  }
  if (!text.empty()) return std::nullopt;
  return n;
}

// The number times 10^scale, rounded; nothing beyond 38 digits.
std::optional<__int128> scaled(const Number& n, int64_t scale) {
  const int64_t shift = n.exponent + scale;
  const int64_t kept = static_cast<int64_t>(n.digits.size()) + std::min<int64_t>(shift, 0);
  unsigned __int128 value = 0;
  constexpr unsigned __int128 most = static_cast<unsigned __int128>(std::numeric_limits<__int128>::max()) / 10 - 1;
  const auto add = [&](int digit) {
    if (value > most) return false;
    value = value * 10 + static_cast<unsigned>(digit);
    return true;
  };
  for (int64_t k = 0; k < kept; ++k)
    if (!add(n.digits[static_cast<size_t>(k)] - '0')) return std::nullopt;
  if (value != 0)
    for (int64_t k = 0; k < shift; ++k)
      if (!add(0)) return std::nullopt;
  if (shift < 0 && kept >= 0 && n.digits[static_cast<size_t>(kept)] >= '5') ++value;
  return n.negative ? -static_cast<__int128>(value) : static_cast<__int128>(value);
}

std::optional<__int128> power_of_base(std::string_view text) {
  text = stripped(text);
  if (text.size() < 3 || text[0] != '0') return std::nullopt;
  const unsigned bits = text[1] == 'x' || text[1] == 'X' ? 4 : text[1] == 'b' || text[1] == 'B' ? 1 : 0;
  if (!bits) return std::nullopt;
  unsigned __int128 value = 0;
  bool after_digit = false;
  for (size_t k = 2; k < text.size(); ++k) {
    const char c = text[k];
    if (c == '_' && after_digit && k + 1 < text.size()) {
      after_digit = false;
      continue;
    }
    const unsigned digit = is_digit(c)              ? static_cast<unsigned>(c - '0')
                           : c >= 'a' && c <= 'f'   ? static_cast<unsigned>(c - 'a') + 10
                           : c >= 'A' && c <= 'F'   ? static_cast<unsigned>(c - 'A') + 10
                                                    : 16;
    if (digit >= 1u << bits || value >> 120) return std::nullopt;
    value = value << bits | digit;
    after_digit = true;
  }
  return static_cast<__int128>(value);
}

}  // namespace

bool call_to_integer(Call& c) {
  std::optional<__int128> value = power_of_base(c.text(0));
  if (!value)
    if (const std::optional<Number> n = number_of(c.text(0)))
      if (!n->negative || n->exponent == 0 || c.integer(1) < 0) value = scaled(*n, 0);
  return value && *value >= c.integer(1) && *value <= c.integer(2) && c.give_integer(*value);
}

namespace {
bool decimal(Call& c) {
  const std::optional<Number> n = number_of(c.text(0));
  if (!n) return false;
  const std::optional<__int128> value = scaled(*n, static_cast<int64_t>(c.integer(2)));
  __int128 beyond = 1;
  for (int64_t k = 0; k < c.integer(1); ++k) beyond *= 10;
  return value && *value < beyond && *value > -beyond && c.give_integer(*value);
}
}  // namespace
bool call_to_decimal(Call& c) { return decimal(c); }
bool call_to_wide(Call& c) { return decimal(c); }
bool call_to_hugeint(Call& c) {  // of 38 digits: those of 39 have no value here
  std::optional<__int128> value = power_of_base(c.text(0));
  if (!value)
    if (const std::optional<Number> n = number_of(c.text(0))) value = scaled(*n, 0);
  return value && c.give_integer(*value);
}

namespace {

template <class T>
bool real(Call& c) {
  std::string_view text = stripped(c.text(0));
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && (text.front() == '-' || text.front() == '+')) return false;
  }
  std::string digits;
  for (size_t k = 0; k < text.size(); ++k) {
    if (text[k] != '_') {
      digits += text[k];
      continue;
    }
    if (k == 0 || k + 1 == text.size() || !is_digit(text[k - 1]) || !is_digit(text[k + 1])) return false;
  }
  T value = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value);
  if (error == std::errc::invalid_argument || at != end) return false;
  if (error == std::errc::result_out_of_range)  // too far from zero, or too near
    value = static_cast<T>(sizeof(T) == 4 ? std::strtof(digits.c_str(), nullptr) : std::strtod(digits.c_str(), nullptr));
  return c.give_real(value);
}

}  // namespace
bool call_to_f64(Call& c) { return real<double>(c); }
bool call_to_f32(Call& c) { return real<float>(c); }

bool call_to_bool(Call& c) {
  std::string text(c.text(0));
  for (char& x : text)
    if (x >= 'A' && x <= 'Z') x = static_cast<char>(x + 32);
  for (std::string_view yes : {"t", "true", "y", "yes", "1"})
    if (text == yes) return c.give_integer(1);
  for (std::string_view no : {"f", "false", "n", "no", "0"})
    if (text == no) return c.give_integer(0);
  return false;
}

// --- Dates and times -----------------------------------------------------------------------------

namespace {

constexpr int64_t whole_day = 86400 * int64_t{1000000};  // microseconds

void skip_spaces(std::string_view& text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
}

// One or two digits.
std::optional<int64_t> take_two(std::string_view& text) {
  int64_t value = 0;
  size_t n = 0;
  for (; n < 2 && n < text.size() && is_digit(text[n]); ++n) value = value * 10 + (text[n] - '0');
  if (n == 0) return std::nullopt;
  text.remove_prefix(n);
  return value;
}
bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (text.size() < word.size()) return false;
  for (size_t i = 0; i < word.size(); ++i)
    if ((text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]) != word[i]) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<int64_t> take_date(std::string_view& text) {
  skip_spaces(text);
  if (take_word(text, "epoch")) return 0;
  const bool negative = take(text, '-');
  if (take_word(text, "infinity")) return negative ? -INT32_MAX : INT32_MAX;
  int64_t year = 0;
  size_t n = 0;
  for (; n < text.size() && is_digit(text[n]); ++n) year = std::min<int64_t>(year * 10 + (text[n] - '0'), 1 << 26);
  if (n == 0 || n == text.size()) return std::nullopt;
  text.remove_prefix(n);
  const char by = text.front();
  if (by != ' ' && by != '-' && by != '/' && by != '\\') return std::nullopt;
  text.remove_prefix(1);
  const std::optional<int64_t> month = take_two(text);
  if (!month || !take(text, by)) return std::nullopt;
  const std::optional<int64_t> of_month = take_two(text);
  if (!of_month || (!text.empty() && is_digit(text.front()))) return std::nullopt;
  if (negative) year = -year;
  if (text.starts_with(" (BC)")) {
    if (negative || year == 0) return std::nullopt;
    year = 1 - year;
    text.remove_prefix(5);
  }
  if (*month < 1 || *month > 12 || *of_month < 1 || *of_month > hir::days_in_month(year, *month)) return std::nullopt;
  const int64_t days = hir::days_from_civil(year, *month, *of_month);
  if (days <= -INT32_MAX || days >= INT32_MAX) return std::nullopt;
  return days;
}

// Microseconds; 24:00:00 is the end of the day.
std::optional<int64_t> take_time(std::string_view& text) {
  skip_spaces(text);
  const std::optional<int64_t> hour = take_two(text);
  if (!hour || !take(text, ':')) return std::nullopt;
  const std::optional<int64_t> minute = take_two(text);
  if (!minute || *minute > 59) return std::nullopt;
  int64_t seconds = 0, fraction = 0;
  if (take(text, ':') && !text.empty() && is_digit(text.front())) {
    seconds = *take_two(text);
    if (seconds > 59) return std::nullopt;
    if (take(text, '.'))
      for (int64_t unit = 100000; !text.empty() && is_digit(text.front()); unit /= 10) {
        fraction += (text.front() - '0') * unit;
        text.remove_prefix(1);
      }
  }
  const int64_t time = ((*hour * 60 + *minute) * 60 + seconds) * 1000000 + fraction;
  if (time > whole_day || *hour > 24) return std::nullopt;
  return time;
}

// What may follow a time: spaces, and a zone.
struct Zone {
  bool stands_apart = false, is_named = false;
  std::string_view name;
  int64_t seconds = 0;  // east of Greenwich
};
std::optional<Zone> zone_of(std::string_view text) {
  Zone zone;
  if (take(text, 'Z')) return stripped(text).empty() ? std::optional(zone) : std::nullopt;
  if (!text.empty() && !is_space(text.front()) && text.front() != '+' && text.front() != '-') return std::nullopt;
  zone.stands_apart = !text.empty() && is_space(text.front());
  text = stripped(text);
  if (text.empty()) return Zone{};
  if (text.front() == '+' || text.front() == '-') {
    const bool is_west = text.front() == '-';
    text.remove_prefix(1);
    int64_t unit = 3600;
    for (int part = 0; part < 3 && (part == 0 || !text.empty()); ++part, unit /= 60) {
      if (part) take(text, ':');
      const std::optional<int64_t> two = take_two(text);
      if (!two) return std::nullopt;
      zone.seconds += *two * unit;
    }
    if (is_west) zone.seconds = -zone.seconds;
    return text.empty() ? std::optional(zone) : std::nullopt;
  }
  for (char c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '/' && c != '_' && c != '-' && c != '+') return std::nullopt;
  if (!std::isalpha(static_cast<unsigned char>(text.front()))) return std::nullopt;
  zone.is_named = true;
  zone.name = text;
  return zone;
}

// The moment that the text names, and its zone.
std::optional<int64_t> timestamp(std::string_view text, Zone& zone) {
  const std::optional<int64_t> days = take_date(text);
  if (!days) return std::nullopt;
  if (*days == INT32_MAX || *days == -INT32_MAX) {
    if (!stripped(text).empty()) return std::nullopt;
    return *days > 0 ? INT64_MAX : -INT64_MAX;
  }
  int64_t time = 0;
  if (!text.empty()) {
    if (!take(text, 'T') && !take(text, ' ')) return std::nullopt;
    const std::optional<int64_t> taken = take_time(text);
    const std::optional<Zone> named = zone_of(text);
    if (!taken || !named) return std::nullopt;
    time = *taken;
    zone = *named;
  }
  int64_t out;
  if (__builtin_mul_overflow(*days, whole_day, &out) || __builtin_add_overflow(out, time, &out)) return std::nullopt;
  return out;
}
// A zone means nothing for what has none.
std::optional<int64_t> timestamp(std::string_view text) {
  Zone ignored;
  return timestamp(text, ignored);
}

}  // namespace

bool call_to_date(Call& c) {
  std::string_view text = c.text(0);
  const std::optional<int64_t> days = take_date(text);
  if (!days) return false;
  return (stripped(text).empty() || timestamp(c.text(0))) && c.give_integer(*days);
}

bool call_to_timestamp(Call& c) {
  const std::optional<int64_t> value = timestamp(c.text(0));
  return value && c.give_integer(*value);
}

// With an offset right behind it, or UTC; what names no zone is in UTC.
bool call_to_timestamptz(Call& c) {
  Zone zone;
  std::optional<int64_t> value = timestamp(c.text(0), zone);
  if (!value) return false;
  const auto is_name = [&](std::string_view name) {
    return std::equal(zone.name.begin(), zone.name.end(), name.begin(), name.end(), [](char a, char b) {
      return std::toupper(static_cast<unsigned char>(a)) == b;
    });
  };
  if (zone.is_named ? !is_name("UTC") && !is_name("GMT") : zone.stands_apart) return false;
  if (__builtin_sub_overflow(*value, zone.seconds * 1000000, &*value)) return false;
  return c.give_integer(*value);
}

bool call_to_time(Call& c) {  // with an offset behind it, or the time of a timestamp
  std::string_view text = c.text(0);
  const std::optional<int64_t> time = take_time(text);
  if (time && (text.empty() || ((text.front() == '+' || text.front() == '-') && zone_of(text))))
    return c.give_integer(*time);
  const std::optional<int64_t> moment = timestamp(c.text(0));
  return moment && c.give_integer((*moment % whole_day + whole_day) % whole_day);
}

}  // namespace rndn::text
