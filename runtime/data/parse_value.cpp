// Fields to values: numbers through std::from_chars, which rounds correctly, short decimals faster; calendar values digit by digit.
#include "runtime/data/parse_value.h"

#include <algorithm>
#include <charconv>
#include <cstring>

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
  ParseStatus status = take_number(text, value);
  if (status == ParseStatus::malformed || (status == ParseStatus::ok && !text.empty())) return ParseStatus::malformed;
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

  int64_t number(size_t width, int64_t low, int64_t high) {
    if (text_.size() < width) return fail();
    int64_t value = 0;
    for (char c : text_.substr(0, width)) {
      if (c < '0' || c > '9') return fail();
      value = value * 10 + (c - '0');
    }
    text_.remove_prefix(width);
    if (value < low || value > high) in_range_ = false;
    return value;
  }
  void skip(char c) {
    if (text_.empty() || text_[0] != c)
      fail();
    else
      text_.remove_prefix(1);
  }
  int64_t days() {
    int64_t year = number(4, 0, 9999);
    skip('-');
    int64_t month = number(2, 1, 12);
    skip('-');
    int64_t day = number(2, 1, well_formed_ && in_range_ ? hir::days_in_month(year, month) : 31);
    return well_formed_ && in_range_ ? hir::days_from_civil(year, month, day) : 0;
  }
  int64_t months() {
    int64_t year = number(4, 0, 9999);
    skip('-');
    return (year - 1970) * 12 + number(2, 1, 12) - 1;
  }
  int64_t minutes() {
    int64_t hour = number(2, 0, 23);
    skip(':');
    return hour * 60 + number(2, 0, 59);
  }
  int64_t seconds() {
    int64_t minute = minutes();
    skip(':');
    return minute * 60 + number(2, 0, 59);
  }
  int64_t milliseconds() {
    int64_t second = seconds();
    skip('.');
    return second * 1000 + number(3, 0, 999);
  }
  ParseStatus status() const {
    if (!well_formed_ || !text_.empty()) return ParseStatus::malformed;
    return in_range_ ? ParseStatus::ok : ParseStatus::out_of_range;
  }

 private:
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

std::string_view trim(std::string_view text) {
  auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

ParseStatus parse_value(BasicType type, std::string_view text, std::byte* out) {
  if (type != BasicType::character) text = trim(text);
  Digits digits(text);
  switch (type) {
    case BasicType::boolean: {
      bool yes = text == "1" || text == "true", no = text == "0" || text == "false";
      if (!yes && !no) return ParseStatus::malformed;
      put<uint8_t>(out, yes);
      return ParseStatus::ok;
    }
    case BasicType::character:
      if (text.size() != 1) return ParseStatus::malformed;
      put(out, text[0]);
      return ParseStatus::ok;
    case BasicType::i8: return parse_integer<int8_t>(text, out);
    case BasicType::i16: return parse_integer<int16_t>(text, out);
    case BasicType::i32: return parse_integer<int32_t>(text, out);
    case BasicType::i64: return parse_integer<int64_t>(text, out);
    case BasicType::f32: return parse_number<float>(text, out);
    case BasicType::f64: return parse_short_decimal(text, out) ? ParseStatus::ok : parse_number<double>(text, out);
    case BasicType::complex: return parse_complex(text, out);
    case BasicType::date:
      if (parse_plain_date(text, out)) return ParseStatus::ok;
      put(out, static_cast<int32_t>(digits.days()));
      break;
    case BasicType::month: put(out, static_cast<int32_t>(digits.months())); break;
    case BasicType::minute: put(out, static_cast<int32_t>(digits.minutes() * 60)); break;
    case BasicType::second: put(out, static_cast<int32_t>(digits.seconds())); break;
    case BasicType::time: put(out, digits.milliseconds()); break;
    case BasicType::dt: {
      int64_t days = digits.days();
      digits.skip('T');
      put(out, days * 86'400'000 + digits.milliseconds());
      break;
    }
    case BasicType::sym:
    case BasicType::str: return ParseStatus::malformed;
  }
  return digits.status();
}

std::string_view expectation(BasicType type) {
  switch (type) {
    case BasicType::boolean: return "a bool (0, 1, true or false)";
    case BasicType::character: return "a single character";
    case BasicType::i8: return "an i8";
    case BasicType::i16: return "an i16";
    case BasicType::i32: return "an i32";
    case BasicType::i64: return "an i64";
    case BasicType::f32: return "an f32";
    case BasicType::f64: return "an f64";
    case BasicType::complex: return "a complex number such as 1.5-2i";
    case BasicType::date: return "a date such as 1998-09-02";
    case BasicType::month: return "a month such as 1998-09";
    case BasicType::minute: return "minutes such as 20:15";
    case BasicType::second: return "seconds such as 20:15:59";
    case BasicType::time: return "a time such as 20:15:59.999";
    case BasicType::dt: return "a date and time such as 1998-09-02T20:15:59.999";
    case BasicType::sym:
    case BasicType::str: return "text";
  }
  return "";
}

}  // namespace rndn::data
