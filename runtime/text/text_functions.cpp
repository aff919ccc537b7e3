// Functions of texts: case, parts, places, patterns of LIKE.
//
// Each is a plain function of its arguments' values. Patterns of LIKE are matched greedily with one
// point of return, the last `%` (O(text * pattern) at worst, linear for most). Left out: characters
// composed of several code points are several characters, as in SQL; reverse, which may not part
// them, has no value for them.
#include "runtime/text/text_functions.h"

#include <limits>
#include <vector>

#include "runtime/text/implementation.h"
#include "runtime/text/regexp.h"
#include "runtime/text/utf8.h"

namespace rndn::text {

TextFunction::TextFunction(hir::TextFunctionId id) : id_(id), patterns_(std::make_unique<Patterns>()) {}
Result<TextFunction> TextFunction::make(hir::TextFunctionId id) {
  if (hir::row(id).name.starts_with("regexp_") && !has_regular_expressions())
    return world_error("`{}` needs RE2, which this build lacks (Debian: libre2-dev)", hir::row(id).name);
  return TextFunction(id);
}
TextFunction::~TextFunction() = default;
TextFunction::TextFunction(TextFunction&&) noexcept = default;

bool TextFunction::operator()(std::span<const TextArgument> in, TextResult& out) {
  static constexpr bool (*functions[])(Call&) = {
#define TEXT_FUNCTION(id, arguments, result, why) call_##id,
#include "frontend/text_functions.def"
#undef TEXT_FUNCTION
  };
  Call call{in, out, *patterns_};
  return functions[static_cast<size_t>(id_)](call);
}

int64_t Call::number(size_t k) const {
  const __int128 value = in[k].integer;
  if (value > INT64_MAX) return INT64_MAX;
  return value < INT64_MIN ? INT64_MIN : static_cast<int64_t>(value);
}

// --- Case, and what is cut off the ends ----------------------------------------------------------

bool call_upper(Call& c) { return c.give(to_case(c.text(0), true)); }
bool call_lower(Call& c) { return c.give(to_case(c.text(0), false)); }

namespace {

bool is_space(std::string_view character) {  // the category Zs of Unicode
  const uint32_t code = code_point(character);
  return code == ' ' || (character.size() > 1 && (code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
                                                  code == 0x202f || code == 0x205f || code == 0x3000));
}

bool trimmed(Call& c, bool front, bool back) {
  std::string_view text = c.text(0);
  const auto goes = [&](std::string_view character) {
    if (c.size() == 1) return is_space(character);
    bool found = false;
    for_characters(c.text(1), [&](std::string_view x) { found = found || x == character; });
    return found;
  };
  if (front)
    while (!text.empty() && goes(text.substr(0, character_bytes(text, 0))))
      text.remove_prefix(character_bytes(text, 0));
  if (back) {
    size_t end = 0, at = 0;
    for_characters(text, [&](std::string_view character) {
      at += character.size();
      if (!goes(character)) end = at;
    });
    text = text.substr(0, end);
  }
  return c.give(text);
}

}  // namespace

bool call_trim(Call& c) { return trimmed(c, true, true); }
bool call_ltrim(Call& c) { return trimmed(c, true, false); }
bool call_rtrim(Call& c) { return trimmed(c, false, true); }

// --- Parts ---------------------------------------------------------------------------------------

namespace {

// Characters `from` to before `to`, counted from 0, clipped.
std::string_view between(std::string_view text, __int128 from, __int128 to) {
  if (from < 0) from = 0;
  if (to <= from || from >= static_cast<__int128>(text.size())) return {};
  const size_t begin = byte_of_character(text, static_cast<uint64_t>(from));
  const std::string_view rest = text.substr(begin);
  const __int128 count = std::min<__int128>(to - from, static_cast<__int128>(rest.size()));
  return rest.substr(0, byte_of_character(rest, static_cast<uint64_t>(count)));
}

// A place from 1 on, or from the end below 0, as one from 0; 0 lies before the first.
__int128 place(__int128 given, __int128 length) {
  return given > 0 ? given - 1 : given < 0 ? length + given : -1;
}

}  // namespace

bool call_substring(Call& c) {
  const std::string_view text = c.text(0);
  const __int128 length = static_cast<__int128>(characters(text));
  const __int128 from = place(c.integer(1), length);
  if (c.size() == 2) return c.give(between(text, from, length));
  // A negative length takes what stands before.
  const __int128 to = from + c.integer(2);
  return c.give(between(text, std::min(from, to), std::max(from, to)));
}

bool call_slice(Call& c) {  // text[from:to], both included
  const __int128 length = static_cast<__int128>(characters(c.text(0)));
  return c.give(between(c.text(0), place(c.integer(1), length), place(c.integer(2), length) + 1));
}

bool call_element(Call& c) {  // text[place]
  const __int128 at = place(c.integer(1), static_cast<__int128>(characters(c.text(0))));
  return c.give(at < 0 ? std::string_view() : between(c.text(0), at, at + 1));
}

bool call_left(Call& c) {
  const __int128 n = c.integer(1), length = static_cast<__int128>(characters(c.text(0)));
  return c.give(between(c.text(0), 0, n >= 0 ? n : length + n));
}

bool call_right(Call& c) {
  const __int128 n = c.integer(1), length = static_cast<__int128>(characters(c.text(0)));
  return c.give(between(c.text(0), n >= 0 ? length - n : -n, length));
}

namespace {
std::vector<std::string_view> parts_of(std::string_view text, std::string_view by) {
  std::vector<std::string_view> parts;
  if (by.empty()) {
    for_characters(text, [&](std::string_view character) { parts.push_back(character); });
    return parts;
  }
  size_t from = 0;
  for (size_t at; (at = text.find(by, from)) != text.npos; from = at + by.size())
    parts.push_back(text.substr(from, at - from));
  parts.push_back(text.substr(from));
  return parts;
}
}  // namespace

bool call_split_count(Call& c) { return c.give_integer(static_cast<__int128>(parts_of(c.text(0), c.text(1)).size())); }
bool call_split_element(Call& c) {
  const std::vector<std::string_view> parts = parts_of(c.text(0), c.text(1));
  const __int128 n = static_cast<__int128>(parts.size()), at = place(c.integer(2), n);
  return at >= 0 && at < n && c.give(parts[static_cast<size_t>(at)]);
}
bool call_split_part(Call& c) { return call_split_element(c) || c.give(std::string_view()); }

// --- New texts -----------------------------------------------------------------------------------

bool call_concat(Call& c) {
  std::string out;
  for (size_t k = 0; k < c.size(); ++k) out += c.text(k);
  return c.give(std::move(out));
}

bool call_replace(Call& c) {
  const std::string_view text = c.text(0), what = c.text(1), by = c.text(2);
  if (what.empty()) return c.give(text);
  std::string out;
  size_t from = 0;
  for (size_t at; (at = text.find(what, from)) != text.npos; from = at + what.size()) {
    out += text.substr(from, at - from);
    out += by;
  }
  out += text.substr(from);
  return c.give(std::move(out));
}

// Every character of the second text becomes the one at its place in the third, or nothing.
bool call_translate(Call& c) {
  std::vector<std::string_view> from, to;
  for_characters(c.text(1), [&](std::string_view x) { from.push_back(x); });
  for_characters(c.text(2), [&](std::string_view x) { to.push_back(x); });
  std::string out;
  for_characters(c.text(0), [&](std::string_view x) {
    const size_t at = static_cast<size_t>(std::find(from.begin(), from.end(), x) - from.begin());
    if (at == from.size())
      out += x;
    else if (at < to.size())
      out += to[at];
  });
  return c.give(std::move(out));
}

namespace {

constexpr __int128 longest_text = (1 << 24) - 1;  // lengths are kept in 24 bits

bool padded(Call& c, bool front) {
  const std::string_view text = c.text(0), by = c.text(2);
  const __int128 wanted = c.integer(1), length = static_cast<__int128>(characters(text));
  if (wanted <= length) return c.give(between(text, 0, wanted));
  if (by.empty() || wanted > longest_text) return false;
  std::string padding;
  size_t at = 0;
  for (__int128 k = length; k < wanted; ++k) {
    const size_t n = character_bytes(by, at);
    padding += by.substr(at, n);
    at = at + n < by.size() ? at + n : 0;
  }
  return c.give(front ? padding + std::string(text) : std::string(text) + padding);
}

}  // namespace

bool call_lpad(Call& c) { return padded(c, true); }
bool call_rpad(Call& c) { return padded(c, false); }

bool call_repeat(Call& c) {
  const __int128 n = std::max<__int128>(c.integer(1), 0), bytes = static_cast<__int128>(c.text(0).size());
  if (bytes == 0) return c.give(std::string_view());
  if (n > longest_text / bytes) return false;
  std::string out;
  for (__int128 k = 0; k < n; ++k) out += c.text(0);
  return c.give(std::move(out));
}

bool call_reverse(Call& c) {
  std::string out;
  out.reserve(c.text(0).size());
  std::vector<std::string_view> parts;
  bool composed = c.text(0).find("\r\n") != std::string_view::npos;
  for_characters(c.text(0), [&](std::string_view x) {
    parts.push_back(x);
    composed = composed || may_compose(code_point(x));
  });
  if (composed) return false;
  for (size_t k = parts.size(); k-- > 0;) out += parts[k];
  return c.give(std::move(out));
}

bool call_chr(Call& c) {
  const __int128 code = c.integer(0);
  if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
  std::string out;
  append_code_point(out, static_cast<uint32_t>(code));
  return c.give(std::move(out));
}

// --- Numbers -------------------------------------------------------------------------------------

bool call_length(Call& c) { return c.give_integer(static_cast<__int128>(characters(c.text(0)))); }
bool call_strlen(Call& c) { return c.give_integer(static_cast<__int128>(c.text(0).size())); }
bool call_bit_length(Call& c) { return c.give_integer(8 * static_cast<__int128>(c.text(0).size())); }

bool call_position(Call& c) {
  const size_t at = c.text(0).find(c.text(1));
  if (at == std::string_view::npos) return c.give_integer(0);
  return c.give_integer(static_cast<__int128>(characters(c.text(0).substr(0, at))) + 1);
}

namespace {
bool first_code_point(Call& c, int of_nothing) {
  const std::string_view text = c.text(0);
  return c.give_integer(text.empty() ? of_nothing
                                     : static_cast<int>(code_point(text.substr(0, character_bytes(text, 0)))));
}
}  // namespace
bool call_ascii(Call& c) { return first_code_point(c, 0); }
bool call_unicode(Call& c) { return first_code_point(c, -1); }

// By the matrix of Wagner and Fischer (The String-to-String Correction Problem, JACM
// 1974), a row at a time.
bool call_levenshtein(Call& c) {
  std::vector<std::string_view> from, to;
  for_characters(c.text(0), [&](std::string_view x) { from.push_back(x); });
  for_characters(c.text(1), [&](std::string_view x) { to.push_back(x); });
  std::vector<int64_t> row(to.size() + 1);
  for (size_t k = 0; k <= to.size(); ++k) row[k] = static_cast<int64_t>(k);
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t corner = row[0]++;
    for (size_t k = 0; k < to.size(); ++k) {
      const int64_t changed = corner + (from[i] != to[k]);
      corner = row[k + 1];
      row[k + 1] = std::min({changed, row[k] + 1, row[k + 1] + 1});
    }
  }
  return c.give_integer(row.back());
}

// --- Truth ---------------------------------------------------------------------------------------

bool call_contains(Call& c) { return c.give_integer(c.text(0).find(c.text(1)) != std::string_view::npos); }
bool call_prefix(Call& c) { return c.give_integer(c.text(0).starts_with(c.text(1))); }
bool call_suffix(Call& c) { return c.give_integer(c.text(0).ends_with(c.text(1))); }

namespace {

// `_` is a character, `%` any number of them; what the escape character precedes is itself.
std::optional<bool> matches(std::string_view text, std::string_view pattern, std::optional<char> escape) {
  size_t t = 0, p = 0, star = std::string_view::npos, resume = 0;
  for (;;) {
    const bool more = p < pattern.size();
    const bool quoted = more && escape && pattern[p] == *escape;
    if (quoted && p + 1 == pattern.size()) return std::nullopt;
    if (more && !quoted && pattern[p] == '%') {
      star = ++p;
      resume = t;
      continue;
    }
    if (t == text.size()) {
      if (!more) return true;
      return false;
    }
    if (more && !quoted && pattern[p] == '_') {
      t += character_bytes(text, t);
      ++p;
      continue;
    }
    if (more && pattern[p + quoted] == text[t]) {
      p += 1 + quoted;
      ++t;
      continue;
    }
    if (star == std::string_view::npos) return false;
    p = star;
    resume += character_bytes(text, resume);
    t = resume;
  }
}

// A pattern that ends in its escape character is wrong, whether a text gets there or not.
bool like(Call& c, std::string_view text, std::string_view pattern) {
  std::optional<char> escape;
  if (c.size() == 3) {
    if (c.text(2).size() > 1) return false;
    if (c.text(2).size() == 1) escape = c.text(2)[0];
  }
  const std::optional<bool> found = matches(text, pattern, escape);
  return found && c.give_integer(*found);
}

}  // namespace

bool call_like(Call& c) { return like(c, c.text(0), c.text(1)); }
bool call_ilike(Call& c) { return like(c, to_case(c.text(0), false), to_case(c.text(1), false)); }

}  // namespace rndn::text
