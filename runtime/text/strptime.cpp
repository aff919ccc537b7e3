// Texts with a format as timestamps, and values formatted as `format` and `printf` do.
//
// A part of a format is a number of at most so many digits, or a name in any case; a space stands
// for any number of them, also none at the ends. What a text does not say is of 1900-01-01 00:00:00.
#include <fmt/format.h>
#include <fmt/printf.h>

#include <algorithm>

#include "frontend/calendar.h"
#include "runtime/text/implementation.h"

namespace rndn::text {
namespace {

struct Part {
  char letter;
  int digits;
  int64_t least, most;
};
constexpr Part number_parts[] = {{'d', 2, 1, 31},     {'m', 2, 1, 12},  {'y', 2, 0, 99}, {'Y', 4, 0, 9999},
                                 {'H', 2, 0, 23},     {'I', 2, 1, 12},  {'M', 2, 0, 59}, {'S', 2, 0, 59},
                                 {'f', 6, 0, 999999}, {'g', 3, 0, 999}, {'j', 3, 1, 366}};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

void past_spaces(std::string_view& text) {
  while (!text.empty() && (text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r'))) text.remove_prefix(1);
}

// The place of the name that the text begins with, or -1; it is taken off.
template <size_t n>
int take_name(std::string_view& text, const std::string_view (&names)[n], size_t letters) {
  for (size_t k = 0; k < n; ++k) {
    const std::string_view name = names[k].substr(0, letters);
    if (text.size() < name.size()) continue;
    if (std::equal(name.begin(), name.end(), text.begin(), [](char a, char b) { return lower(a) == lower(b); })) {
      text.remove_prefix(name.size());
      return static_cast<int>(k);
    }
  }
  return -1;
}

// A spec of `format` with the places of separators of thousands taken out; '\0': none.
char take_separator(std::string& spec) {
  for (char by : {',', '_'})
    if (const size_t at = spec.find(by); at != spec.npos) {
      spec.erase(at, 1);
      return by;
    }
  return '\0';
}
std::string separated(std::string text, char by) {
  if (by == '\0') return text;
  const size_t first = text.find_first_of("0123456789");
  size_t end = first;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  for (size_t at = end; at > first + 3;) text.insert(at -= 3, 1, by);
  return text;
}

// One value by a spec as it stands in the format, braces or percent sign with it.
template <class T>
bool formatted(Call& c, T value) {
  std::string spec(c.text(1));
  const char by = take_separator(spec);
  try {
    return c.give(separated(spec[0] == '%' ? fmt::sprintf(spec, value) : fmt::format(fmt::runtime(spec), value), by));
  } catch (const fmt::format_error&) {
    return false;
  }
}

}  // namespace

bool call_strptime(Call& c) {
  std::string_view text = c.text(0);
  const std::string_view format = c.text(1);
  int64_t values[128] = {};
  bool given[128] = {};
  past_spaces(text);
  // Whatever the format is.
  static constexpr std::string_view ends[] = {"epoch", "infinity", "-infinity"};
  std::string_view rest = text;
  if (const int end = take_name(rest, ends, 9); end >= 0) {
    past_spaces(rest);
    if (rest.empty()) return c.give_integer(end == 0 ? 0 : end == 1 ? INT64_MAX : -INT64_MAX);
  }
  for (size_t k = 0; k < format.size(); ++k) {
    if (format[k] == ' ') {
      past_spaces(text);
      continue;
    }
    if (format[k] != '%') {
      if (text.empty() || text[0] != format[k]) return false;
      text.remove_prefix(1);
      continue;
    }
    if (++k < format.size() && format[k] == '-') ++k;
    if (k >= format.size()) return false;
    const char letter = format[k] == 'h' ? 'b' : format[k];
    const auto at = static_cast<size_t>(letter) & 127;
    if (letter == '%') {
      if (text.empty() || text[0] != '%') return false;
      text.remove_prefix(1);
      continue;
    }
    int64_t value = -1;
    if (letter == 'p') {
      static constexpr std::string_view halves[] = {"am", "pm"};
      value = take_name(text, halves, 2);
    } else if (letter == 'a' || letter == 'A') {
      value = take_name(text, day_names, letter == 'a' ? 3 : 9);
    } else if (letter == 'b' || letter == 'B') {
      value = take_name(text, month_names, letter == 'b' ? 3 : 9);
    } else {
      const auto* number = std::find_if(std::begin(number_parts), std::end(number_parts),
                                        [&](const Part& n) { return n.letter == letter; });
      if (number == std::end(number_parts)) return false;
      int digits = 0;
      for (value = 0; digits < number->digits && !text.empty() && text[0] >= '0' && text[0] <= '9'; ++digits) {
        value = value * 10 + (text[0] - '0');
        text.remove_prefix(1);
      }
      if (digits == 0) return false;
      if (letter == 'f' || letter == 'g')  // digits behind a point
        for (; digits < number->digits; ++digits) value *= 10;
      if (value < number->least || value > number->most) return false;
    }
    if (value < 0) return false;
    values[at] = value;
    given[at] = true;
  }
  past_spaces(text);
  if (!text.empty()) return false;
  const auto has = [&](char letter) { return given[static_cast<size_t>(letter)]; };
  const auto value = [&](char letter) { return values[static_cast<size_t>(letter)]; };
  int64_t year = 1900;
  if (has('Y')) year = value('Y');
  if (has('y')) year = value('y') + (value('y') >= 69 ? 1900 : 2000);
  int64_t month = has('m') ? value('m') : has('b') ? value('b') + 1 : has('B') ? value('B') + 1 : 1;
  const int64_t day = has('d') ? value('d') : 1;
  if (day > hir::days_in_month(year, month)) return false;
  int64_t date = hir::days_from_civil(year, month, day);
  if (has('j')) {
    date = hir::days_from_civil(year, 1, 1) + value('j') - 1;
    if (hir::civil_from_days(date).year != year) return false;
  }
  int64_t hour = has('I') ? value('I') : value('H');
  if (has('p') && hour > 12) return false;
  if (has('p')) hour = hour % 12 + 12 * value('p');
  const int64_t seconds = (hour * 60 + value('M')) * 60 + value('S');
  return c.give_integer((date * 86400 + seconds) * 1000000 + value('f') + 1000 * value('g'));
}

bool call_format_integer(Call& c) {
  const __int128 value = c.integer(0);
  return value >= INT64_MIN && value <= INT64_MAX && formatted(c, static_cast<int64_t>(value));
}
bool call_format_real(Call& c) {
  return c.in[0].is_single ? formatted(c, static_cast<float>(c.in[0].real)) : formatted(c, c.in[0].real);
}
bool call_format_text(Call& c) { return formatted(c, std::string(c.text(0))); }

}  // namespace rndn::text
