// Fields to values: numbers through std::from_chars, which rounds correctly, short decimals faster; calendar values digit by digit.
#include "runtime/data/parse_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "frontend/calendar.h"

namespace rndn::data {

using hir::BasicType;

namespace {

template <class T>
void put(std::byte* out, T value) {
  std::memcpy(out, &value, sizeof value);
}

// Reads a number from the front of `text` and removes it. from_chars takes no plus sign.
template <class T>
ParseStatus take_number(std::string_view& text, T& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return ParseStatus::out_of_range;
  if (error != std::errc()) return ParseStatus::malformed;
  text.remove_prefix(end - text.data());
  return ParseStatus::ok;
}

// Numbers such as -123.45 of at most 15 digits: digits and power of ten are exact, so their quotient is rounded correctly (Clinger,
// How to read floating point numbers accurately, 1990). False: not of that form.
bool parse_short_decimal(std::string_view text, std::byte* out) {
  static constexpr double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const bool negative = text.starts_with('-');
  const char *at = text.data() + negative, *end = text.data() + text.size();
  if (end - at > 16) return false;
  uint64_t number = 0;
  auto digits = [&] {  // how many
    const char* begin = at;
    for (unsigned digit; at < end && (digit = static_cast<unsigned char>(*at) - '0') < 10; ++at)
      number = number * 10 + digit;
    return at - begin;
  };
  const ptrdiff_t before_point = digits();
  const bool point = at < end && *at == '.';
  at += point;
  const ptrdiff_t behind_point = point ? digits() : 0;
  if (at != end || before_point + behind_point == 0 || before_point + behind_point > 15) return false;
  const double value = static_cast<double>(static_cast<int64_t>(number)) / powers[behind_point];
  put(out, negative ? -value : value);
  return true;
}

// Whole numbers of at most 9 digits. False: not of that form, or beyond T.
template <class T>
bool parse_short_integer(std::string_view text, std::byte* out) {
  const bool negative = text.starts_with('-');
  text.remove_prefix(negative);
  if (text.empty() || text.size() > 9) return false;
  int32_t value = 0;
  for (char c : text) {
    const unsigned digit = static_cast<unsigned char>(c) - '0';
    if (digit > 9) return false;
    value = value * 10 + static_cast<int32_t>(digit);
  }
  if (negative) value = -value;
  if (static_cast<T>(value) != value) return false;
  put(out, static_cast<T>(value));
  return true;
}

template <class T>
ParseStatus parse_number(std::string_view text, std::byte* out) {
  T value;
  const char* number = text.data();
  ParseStatus status = take_number(text, value);
  if (status == ParseStatus::malformed || (status == ParseStatus::ok && !text.empty())) return ParseStatus::malformed;
  if constexpr (std::is_floating_point_v<T>) {
    if (status == ParseStatus::out_of_range) {  // from_chars does not tell too large from too small
      const std::string whole(number, text.data() + text.size());
      char* end;
      if constexpr (sizeof(T) == 4)
        value = std::strtof(whole.c_str(), &end);
      else
        value = std::strtod(whole.c_str(), &end);
      if (end != whole.c_str() + whole.size()) return ParseStatus::malformed;
      put(out, value);
      return std::isinf(value) ? ParseStatus::out_of_range : ParseStatus::ok;
    }
  }
  if (status == ParseStatus::ok) put(out, value);
  return status;
}

template <class T>
ParseStatus parse_integer(std::string_view text, std::byte* out) {
  return parse_short_integer<T>(text, out) ? ParseStatus::ok : parse_number<T>(text, out);
}

// 2i, 1.5-3i
ParseStatus parse_complex(std::string_view text, std::byte* out) {
  double parts[2] = {0, 0};
  double first;
  if (ParseStatus status = take_number(text, first); status != ParseStatus::ok) return status;
  if (text == "i") {
    parts[1] = first;
  } else {
    parts[0] = first;
    if (!text.empty()) {
      if (text[0] != '+' && text[0] != '-') return ParseStatus::malformed;
      if (ParseStatus status = take_number(text, parts[1]); status != ParseStatus::ok) return status;
      if (text != "i") return ParseStatus::malformed;
    }
  }
  std::memcpy(out, parts, sizeof parts);
  return ParseStatus::ok;
}

// Reads fields of fixed width: "dddd-dd" and so on.
class Digits {
 public:
  explicit Digits(std::string_view text) : text_(text) {}

  // A number of `least` to `most` digits.
  int64_t number(size_t least, size_t most, int64_t low, int64_t high) {
    int64_t value = 0;
    size_t digits = 0;
    for (; digits < most && digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits)
      value = value * 10 + (text_[digits] - '0');
    if (digits < least) return fail();
    text_.remove_prefix(digits);
    if (value < low || value > high) in_range_ = false;
    return value;
  }
  int64_t number(size_t width, int64_t low, int64_t high) { return number(width, width, low, high); }
  bool take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  void skip(char c) {
    if (!take(c)) fail();
  }
  bool at_end() const { return text_.empty(); }

  // ISO dates have two digits for month and day, the others one or two.
  int64_t days(DateFormat format) {
    const size_t least = format == DateFormat() ? 2 : 1;
    int64_t year = 0, month = 1, day = 1;
    for (char part : date_orders[format.order]) {
      if (part != date_orders[format.order].front()) skip(format.separator);
      if (part == 'Y') year = number(4, 0, 9999);
      if (part == 'm') month = number(least, 2, 1, 12);
      if (part == 'd') day = number(least, 2, 1, 31);
    }
    if (!well_formed_ || !in_range_) return 0;
    if (day > hir::days_in_month(year, month)) in_range_ = false;
    return hir::days_from_civil(year, month, day);
  }
  int64_t months() {
    int64_t year = number(4, 0, 9999);
    skip('-');
    return (year - 1970) * 12 + number(2, 1, 12) - 1;
  }
  int64_t minutes() {
    int64_t hour = number(1, 2, 0, 23);
    skip(':');
    return hour * 60 + number(2, 0, 59);
  }
  int64_t seconds() {
    int64_t minute = minutes();
    return minute * 60 + (take(':') ? number(2, 0, 59) : 0);
  }
  int64_t milliseconds() {
    const int64_t minute = minutes();
    if (!take(':')) return minute * 60'000;
    const int64_t second = minute * 60 + number(2, 0, 59);
    return second * 1000 + (take('.') ? fraction(3, Rest::zeros) : 0);
  }
  int64_t microseconds() {
    const int64_t minute = minutes();
    if (!take(':')) return minute * 60'000'000;
    const int64_t second = minute * 60 + number(2, 0, 59);
    return second * 1'000'000 + (take('.') ? fraction(6, Rest::cut_off) : 0);
  }
  // Minutes that Z or an offset is ahead of UTC; 0 where none stands there.
  int64_t zone_minutes() {
    const bool behind = take('-');
    if (!behind && !take('+')) {
      take('Z');
      return 0;
    }
    const int64_t hours = number(2, 0, 15);
    const int64_t minutes = take(':') || !at_end() ? number(2, 0, 59) : 0;
    return (behind ? -1 : 1) * (hours * 60 + minutes);
  }
  void skip_to_time() {
    if (!take('T')) skip(' ');
  }
  ParseStatus status() const {
    if (!well_formed_ || !text_.empty()) return ParseStatus::malformed;
    return in_range_ ? ParseStatus::ok : ParseStatus::out_of_range;
  }

 private:
  // One to nine digits of a fraction, of which so many count.
  enum class Rest : uint8_t { zeros, cut_off };  // zeros: nothing else, so that nothing is lost
  int64_t fraction(size_t places, Rest rest) {
    int64_t value = 0;
    size_t digits = 0;
    for (; digits < 9 && digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits) {
      if (digits >= places && rest == Rest::zeros && text_[digits] != '0') return fail();
      if (digits < places) value = value * 10 + (text_[digits] - '0');
    }
    if (!digits) return fail();
    text_.remove_prefix(digits);
    for (; digits < places; ++digits) value *= 10;
    return value;
  }
  int64_t fail() {
    well_formed_ = false;
    return 0;
  }
  std::string_view text_;
  bool well_formed_ = true, in_range_ = true;
};

// The days of a date that exists, such as 1998-09-02. False: not of that form; Digits tells what is wrong.
bool parse_plain_date(std::string_view text, std::byte* out) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  unsigned worst = 0;
  auto digit = [&](size_t at) {
    const unsigned d = static_cast<unsigned char>(text[at]) - '0';
    worst = std::max(worst, d);
    return static_cast<int64_t>(d);
  };
  const int64_t year = digit(0) * 1000 + digit(1) * 100 + digit(2) * 10 + digit(3), month = digit(5) * 10 + digit(6),
                day = digit(8) * 10 + digit(9);
  if (worst > 9 || month < 1 || month > 12 || day < 1 || day > hir::days_in_month(year, month)) return false;
  put(out, static_cast<int32_t>(hir::days_from_civil(year, month, day)));
  return true;
}

// Whether the text is the word, which is in small letters, in capitals or not.
bool is_word(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return a == b || (a ^ b) == 0x20; });
}

std::string_view trim(std::string_view text) {
  auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

bool is_blank(std::string_view text) { return trim(text).empty(); }

ParseStatus parse_value(BasicType type, std::string_view text, std::byte* out, DateFormat format) {
  if (type != BasicType::character) text = trim(text);
  Digits digits(text);
  switch (type) {
    case BasicType::boolean: {
      const auto is_any = [&](std::string_view digit, auto... words) { return text == digit || (is_word(text, words) || ...); };
      const bool yes = is_any("1", "true", "t", "yes"), no = is_any("0", "false", "f", "no");
      if (!yes && !no) return ParseStatus::malformed;
      put<uint8_t>(out, yes);
      return ParseStatus::ok;
    }
    case BasicType::character:
      if (text.size() != 1) return ParseStatus::malformed;
      put(out, text[0]);
      return ParseStatus::ok;
    case BasicType::i8:
    case BasicType::i16:
    case BasicType::i32:
    case BasicType::i64:
    case BasicType::i128:
      return hir::with_stored(type, [&]<class T>() {
        if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) return parse_integer<T>(text, out);
        return ParseStatus::malformed;
      });
    case BasicType::f32: return parse_number<float>(text, out);
    case BasicType::f64: return parse_short_decimal(text, out) ? ParseStatus::ok : parse_number<double>(text, out);
    case BasicType::complex: return parse_complex(text, out);
    case BasicType::date:
      if (format == DateFormat() && parse_plain_date(text, out)) return ParseStatus::ok;
      put(out, static_cast<int32_t>(digits.days(format)));
      break;
    case BasicType::month: put(out, static_cast<int32_t>(digits.months())); break;
    case BasicType::minute:
    case BasicType::second:
    case BasicType::time: {
      const int64_t sign = digits.take('-') ? -1 : 1;
      if (type == BasicType::time)
        put(out, sign * digits.milliseconds());
      else
        put(out, static_cast<int32_t>(sign * (type == BasicType::minute ? digits.minutes() * 60 : digits.seconds())));
      break;
    }
    case BasicType::dt: {
      const int64_t days = digits.days(format);
      int64_t time = 0;
      if (!digits.at_end()) {
        digits.skip_to_time();
        time = digits.milliseconds();
        time -= digits.zone_minutes() * 60'000;
      }
      put(out, days * 86'400'000 + time);
      break;
    }
    case BasicType::sym:
    case BasicType::str: return ParseStatus::malformed;
  }
  return digits.status();
}

ParseStatus parse_timestamp(std::string_view text, std::byte* out) {
  Digits digits(trim(text));
  const int64_t days = digits.days({});
  int64_t time = 0;
  if (!digits.at_end()) {
    digits.skip_to_time();
    time = digits.microseconds();
    time -= digits.zone_minutes() * 60'000'000;
  }
  put(out, days * 86'400'000'000 + time);
  return digits.status();
}

bool has_zone(std::string_view text) {
  const size_t time = text.find(':');  // the offset of a date's last part has no sign before it
  return time != text.npos && text.find_first_of("+-Z", time) != text.npos;
}

std::string expectation(BasicType type, DateFormat format) {
  const std::string date = fmt::format(fmt::runtime(format.order == DateFormat::ymd   ? "1998{0}09{0}02"
                                                    : format.order == DateFormat::dmy ? "02{0}09{0}1998"
                                                                                      : "09{0}02{0}1998"),
                                       format.separator);
  return fmt::format(fmt::runtime(hir::row(type).expected), fmt::arg("date", date));
}

}  // namespace rndn::data
