// Values of literals: the text of the value tokens, read as their suffix type says
// (docs/horseir.md, "Literals"), with the checks that the type allows: kinds, ranges of calendar
// fields, bool 0/1, escapes, integers too wide for their type (a warning: they wrap). Also the
// reverse for calendar values, used by the printer.
#include <charconv>
#include <cstdlib>
#include <limits>

#include "frontend/calendar.h"
#include "frontend/habits.h"
#include "frontend/parse.h"
#include "frontend/parser.hpp"

namespace rndn::hir {

namespace {

using token = Parser::token;

std::string_view kind_name(int kind) {
  switch (kind) {
    case token::INT: return "an integer";
    case token::FLOAT: return "a float";
    case token::COMPLEX: return "a complex number";
    case token::CHAR: return "a char";
    case token::STRING: return "a string";
    case token::SYMBOL: return "a symbol";
    case token::MONTH: return "a month";
    case token::DATE: return "a date";
    case token::MINUTE: return "a minute";
    case token::SECOND: return "a second";
    case token::TIME: return "a time";
    default: return "a timestamp";
  }
}

bool kind_fits(int kind, BasicType type) {
  using enum token::token_kind_type;
  const auto is_one_of = [kind](auto... tokens) { return ((kind == tokens) || ...); };
  switch (type) {
#define BASIC_TYPE(id, name, letters, family, rank, bits, stored, rep, operators, tokens, ...) \
  case BasicType::id: return is_one_of tokens;
#include "frontend/types.def"
#undef BASIC_TYPE
  }
  return false;
}

// A run of digits that the scanner has bounded in length (calendar fields).
int64_t digits(std::string_view text, size_t at, size_t n) {
  int64_t value = 0;
  for (size_t i = 0; i < n; ++i) value = value * 10 + (text[at + i] - '0');
  return value;
}

// strtod's value for what from_chars calls out of range: infinity, or a subnormal or zero.
template <class Float>
bool parse_float(std::string_view text, Float& value) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc()) return true;
  std::string copy(text);
  value =
      static_cast<Float>(sizeof(Float) == 4 ? std::strtof(copy.c_str(), nullptr) : std::strtod(copy.c_str(), nullptr));
  return value <= std::numeric_limits<Float>::max() && value >= std::numeric_limits<Float>::lowest();
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

uint32_t ParseContext::push_value(int kind, Location at, char sign) {
  values_.push_back({kind, at, sign});
  return static_cast<uint32_t>(values_.size() - 1);
}

// The bytes between the quotes of `at` (which may be missing at the end after an error) with escapes resolved.
std::string ParseContext::unescape(Location at) {
  std::string_view all = text(at);
  size_t begin = all.find_first_of("\"'");
  if (begin == std::string_view::npos) return {};
  char quote = all[begin];
  std::string out;
  for (size_t i = begin + 1; i < all.size(); ++i) {
    char c = all[i];
    if (c == quote) break;
    if (c != '\\') {
      out += c;
      continue;
    }
    if (++i >= all.size()) break;
    switch (all[i]) {
      case 'a': out += '\a'; break;
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 't': out += '\t'; break;
      case 'v': out += '\v'; break;
      case '\\': out += '\\'; break;
      case '"': out += '"'; break;
      case '\'': out += '\''; break;
      default: {
        Location escape{at.begin + static_cast<uint32_t>(i) - 1, at.begin + static_cast<uint32_t>(i) + 1};
        unsigned char shown = static_cast<unsigned char>(all[i]);
        error("literal-escape", escape,
              shown > 32 && shown < 127
                  ? fmt::format("unknown escape `\\{}`: expected one of \\a \\b \\f \\n \\r \\t \\v \\\\ \\\" \\'",
                                all[i])
                  : fmt::format("unknown escape `\\` before byte 0x{:02x}: expected one of \\a \\b \\f \\n \\r \\t \\v "
                                "\\\\ \\\" \\'",
                                shown));
      }
    }
  }
  return out;
}

// Fills `out` from the tokens; false after a report.
bool ParseContext::literal_values(std::span<const ValueToken> tokens, BasicType type, Location type_at, Location,
                                  Literal& out) {
  for (const ValueToken& t : tokens) {
    if (!kind_fits(t.kind, type)) {
      if (std::string sum = t.kind == token::COMPLEX ? sum_for_complex(text(t.location)) : ""; !sum.empty()) {
        error("literal-type", t.location, std::move(sum));
        return false;
      }
      error("literal-type", t.location,
            fmt::format("`{}` is {}, but the type {} expects {}", text(t.location).substr(0, 40), kind_name(t.kind),
                        basic_type_name(type), row(type).wanted))
          .highlight(span(type_at));
      return false;
    }
    if (t.sign && (text(t.location)[0] == '-' || text(t.location)[0] == '+')) {
      error("literal-type", t.location,
            fmt::format("expected a number without sign after `{}`, got `{}`", t.sign, text(t.location).substr(0, 40)));
      return false;
    }
  }
  std::vector<int64_t> integers;
  switch (row(type).family) {
    case Family::integer:
      if (type == BasicType::character) {
        for (const ValueToken& t : tokens) {
          const size_t errors = sink_.error_count();
          std::string bytes = unescape(t.location);
          if (bytes.empty()) {
            if (sink_.error_count() == errors)
              error("literal-range", t.location,
                    "a char literal holds at least one byte; an empty vector cannot be written");
            return false;
          }
          for (char c : bytes) integers.push_back(static_cast<signed char>(c));
        }
        break;
      }
      integers.reserve(tokens.size());
      for (const ValueToken& t : tokens) {
        std::string_view word = text(t.location);
        bool negative = t.sign == '-' || word[0] == '-';
        if (!is_digit(word[0])) word.remove_prefix(1);
        uint64_t magnitude = 0;
        auto read = std::from_chars(word.data(), word.data() + word.size(), magnitude);
        if (read.ec != std::errc()) {
          error("literal-range", t.location,
                fmt::format("`{}` has more than 64 bits; expected a value of {}", text(t.location).substr(0, 40),
                            basic_type_name(type)));
          return false;
        }
        int64_t value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
        if (type == BasicType::boolean) {
          if (magnitude > 1 || negative) {
            error("literal-range", t.location,
                  fmt::format("bool values are `0` and `1`, got `{}`", text(t.location).substr(0, 40)));
            return false;
          }
        } else {
          const int bits = row(type).bits;
          uint64_t most = (uint64_t{1} << (bits - 1)) - (negative ? 0 : 1);
          if (magnitude > most) {
            int64_t wrapped =
                bits == 64 ? value : static_cast<int64_t>(static_cast<uint64_t>(value) << (64 - bits)) >> (64 - bits);
            sink_
                .warning("literal-wraps", span(t.location), "`{}` does not fit {} and wraps to {}", text(t.location),
                         basic_type_name(type), wrapped)
                .highlight(span(type_at));
            value = wrapped;
          }
        }
        integers.push_back(value);
      }
      break;
    case Family::wide: {
      std::vector<__int128> wide;
      wide.reserve(tokens.size());
      for (const ValueToken& t : tokens) {
        std::string_view word = text(t.location);
        const bool negative = t.sign == '-' || word[0] == '-';
        if (!is_digit(word[0])) word.remove_prefix(1);
        unsigned __int128 magnitude = 0;
        const auto read = std::from_chars(word.data(), word.data() + word.size(), magnitude);
        const auto greatest = static_cast<unsigned __int128>(std::numeric_limits<__int128>::max());
        if (read.ec != std::errc() || magnitude > greatest + (negative ? 1 : 0)) {
          error("literal-range", t.location,
                fmt::format("`{}` has more than {} bits; expected a value of {}", text(t.location).substr(0, 45),
                            row(type).bits, basic_type_name(type)));
          return false;
        }
        wide.push_back(static_cast<__int128>(negative ? 0 - magnitude : magnitude));
      }
      out.values = std::move(wide);
      return true;
    }
    case Family::floating: {
      std::vector<double> floats;
      floats.reserve(tokens.size());
      for (const ValueToken& t : tokens) {
        double value = 0;
        float narrow = 0;
        bool fits =
            type == BasicType::f64 ? parse_float(text(t.location), value) : parse_float(text(t.location), narrow);
        if (type == BasicType::f32) value = static_cast<double>(narrow);
        if (!fits) {
          error("literal-range", t.location,
                fmt::format("`{}` is beyond the largest value of {}", text(t.location).substr(0, 40),
                            basic_type_name(type)));
          return false;
        }
        floats.push_back(t.sign == '-' ? -value : value);
      }
      out.values = std::move(floats);
      return true;
    }
    case Family::complex: {
      std::vector<std::complex<double>> numbers;
      for (const ValueToken& t : tokens) {
        std::string_view word = text(t.location);
        bool imaginary = word.back() == 'i';
        if (imaginary) word.remove_suffix(1);
        // The second sign splits the parts; a sign behind an exponent's letter does not.
        size_t split = std::string_view::npos;
        for (size_t i = 1; i < word.size(); ++i)
          if ((word[i] == '+' || word[i] == '-') && word[i - 1] != 'e' && word[i - 1] != 'E') split = i;
        double first = 0, second = 0;
        bool fits = parse_float(word.substr(0, split), first);
        if (split != std::string_view::npos) fits = parse_float(word.substr(split), second) && fits;
        if (!fits) {
          error("literal-range", t.location,
                fmt::format("`{}` is beyond the largest value of f64", text(t.location).substr(0, 40)));
          return false;
        }
        if (t.sign == '-') first = -first;
        numbers.push_back(split == std::string_view::npos && imaginary ? std::complex<double>(0, first)
                                                                       : std::complex<double>(first, second));
      }
      out.values = std::move(numbers);
      return true;
    }
    case Family::text: {
      std::vector<std::string> texts;
      texts.reserve(tokens.size());
      for (const ValueToken& t : tokens) {
        std::string_view word = text(t.location);
        if (type == BasicType::sym && word.find('"') == std::string_view::npos) {
          word.remove_prefix(word.find_first_not_of("` \t"));
          texts.emplace_back(word);
        } else {
          texts.push_back(unescape(t.location));
        }
      }
      out.values = std::move(texts);
      return true;
    }
    case Family::calendar:
      for (const ValueToken& t : tokens) {
        std::string_view word = text(t.location);
        // `length` digits at `at` must lie in [low, high]; reports the first field that does not.
        bool ok = true;
        auto field = [&](std::string_view name, size_t at, size_t length, int64_t low, int64_t high) -> int64_t {
          int64_t value = digits(word, at, length);
          if (ok && (value < low || value > high)) {
            ok = false;
            Location place{t.location.begin + static_cast<uint32_t>(at),
                           t.location.begin + static_cast<uint32_t>(at + length)};
            error("literal-range", place,
                  fmt::format("expected {} from {} to {}, got {}", name, low, high, word.substr(at, length)));
          }
          return value;
        };
        int64_t days = 0, of_day = 0;  // milliseconds
        size_t clock = 0;
        if (type == BasicType::date || type == BasicType::month || type == BasicType::dt) {
          int64_t year = field("a year", 0, 4, 1000, 9999);
          int64_t month = field("a month", 5, 2, 1, 12);
          if (!ok) return false;
          if (type == BasicType::month) {
            integers.push_back((year - 1970) * 12 + month - 1);
            continue;
          }
          int64_t day = field("a day", 8, 2, 1, days_in_month(year, month));
          days = days_from_civil(year, month, day);
          clock = 11;
        }
        if (type != BasicType::date) {
          of_day = field("an hour", clock, 2, 0, 23) * 3600000 + field("a minute", clock + 3, 2, 0, 59) * 60000;
          if (type != BasicType::minute) of_day += field("a second", clock + 6, 2, 0, 59) * 1000;
          if (type == BasicType::time || type == BasicType::dt) of_day += field("a millisecond", clock + 9, 3, 0, 999);
        }
        if (!ok) return false;
        if (type == BasicType::date)
          integers.push_back(days);
        else if (type == BasicType::dt)
          integers.push_back(days * 86400000 + of_day);
        else
          integers.push_back(type == BasicType::time ? of_day : of_day / 1000);
      }
      break;
  }
  out.values = std::move(integers);
  return true;
}

SemanticValue ParseContext::literal(uint32_t values, TypeId type, Location type_at, Location at) {
  std::span<const ValueToken> tokens(values_.data() + values, values_.size() - values);
  Literal made{type, std::vector<int64_t>{}, span(at)};
  if (program_.types->is_basic(type))
    literal_values(tokens, program_.types->basic_of(type), type_at, at, made);
  else if (!type_failed_ || type != program_.types->wildcard())
    error("literal-type", type_at,
          fmt::format("expected a basic type for a literal, got {}", program_.types->text(type)));
  values_.resize(values);
  return {.id = index(program_.literals.add(std::move(made))), .is_literal = true};
}

// The oldest programs write symbols and strings without suffix; any other literal needs one.
SemanticValue ParseContext::untyped_literal(uint32_t values, Location at) {
  bool text = true;
  bool symbols = true;
  for (size_t i = values; i < values_.size(); ++i) {
    text = text && values_[i].kind == token::STRING;
    symbols = symbols && values_[i].kind == token::SYMBOL;
  }
  if (text || symbols) return literal(values, program_.types->basic(text ? BasicType::str : BasicType::sym), at, at);
  error("untyped-literal", at, "this literal has no type: expected a suffix such as `:i64` after its values");
  values_.resize(values);
  return {.id = index(program_.literals.add({wildcard(), std::vector<int64_t>{}, span(at)})), .is_literal = true};
}

std::string calendar_text(BasicType type, int64_t value) {
  auto date = [](int64_t days) {
    CivilDate d = civil_from_days(days);
    return fmt::format("{:04}-{:02}-{:02}", d.year, d.month, d.day);
  };
  auto clock = [](int64_t seconds) {
    return fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  };
  auto floor_div = [](int64_t a, int64_t b) { return a / b - (a % b < 0); };
  switch (type) {
    case BasicType::date: return date(value);
    case BasicType::month: {
      int64_t year = floor_div(value, 12);
      return fmt::format("{:04}-{:02}", year + 1970, value - year * 12 + 1);
    }
    case BasicType::minute: return fmt::format("{:02}:{:02}", value / 3600, value / 60 % 60);
    case BasicType::second: return clock(value);
    case BasicType::time: return clock(value / 1000) + fmt::format(".{:03}", value % 1000);
    default: {
      int64_t days = floor_div(value, 86400000);
      int64_t of_day = value - days * 86400000;
      return date(days) + "T" + clock(of_day / 1000) + fmt::format(".{:03}", of_day % 1000);
    }
  }
}

}  // namespace rndn::hir
