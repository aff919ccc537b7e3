// How alike two texts are, and parts of paths and of encoded URLs.
//
// Distances of texts of n and m characters take O(n m), the shares of common characters O(n + m).
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "runtime/text/implementation.h"
#include "runtime/text/utf8.h"

namespace rndn::text {
namespace {

using Characters = std::vector<std::string_view>;

Characters characters_of(std::string_view text) {
  Characters out;
  for_characters(text, [&](std::string_view x) { out.push_back(x); });
  return out;
}

// The share of characters that agree, less half of those out of order (M. Jaro, Journal of the
// American Statistical Association 84, 1989).
double jaro(const Characters& a, const Characters& b) {
  if (a.empty() || b.empty()) return 0;
  const size_t longest = std::max(a.size(), b.size()), reach = longest / 2 > 0 ? longest / 2 - 1 : 0;
  std::vector<bool> in_a(a.size()), in_b(b.size());
  size_t common = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = i > reach ? i - reach : 0; k < std::min(b.size(), i + reach + 1); ++k)
      if (!in_b[k] && a[i] == b[k]) {
        in_a[i] = in_b[k] = true;
        ++common;
        break;
      }
  if (common == 0) return 0;
  size_t moved = 0, k = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!in_a[i]) continue;
    while (!in_b[k]) ++k;
    moved += a[i] != b[k++];
  }
  const auto m = static_cast<double>(common);
  return (m / static_cast<double>(a.size()) + m / static_cast<double>(b.size()) +
          (m - static_cast<double>(moved / 2)) / m) /
         3;
}

}  // namespace

bool call_jaro(Call& c) { return c.give_real(jaro(characters_of(c.text(0)), characters_of(c.text(1)))); }

// More for what begins alike, where that is alike at all (W. Winkler, 1990).
bool call_jaro_winkler(Call& c) {
  const Characters a = characters_of(c.text(0)), b = characters_of(c.text(1));
  const double alike = jaro(a, b);
  size_t prefix = 0;
  while (prefix < std::min({a.size(), b.size(), size_t{4}}) && a[prefix] == b[prefix]) ++prefix;
  return c.give_real(alike > 0.7 ? alike + 0.1 * static_cast<double>(prefix) * (1 - alike) : alike);
}

bool call_jaccard(Call& c) {
  const Characters a = characters_of(c.text(0)), b = characters_of(c.text(1));
  if (a.empty() || b.empty()) return false;
  std::set<std::string_view> first(a.begin(), a.end()), second(b.begin(), b.end());
  size_t common = 0;
  for (std::string_view x : first) common += second.count(x);
  return c.give_real(static_cast<double>(common) / static_cast<double>(first.size() + second.size() - common));
}

bool call_hamming(Call& c) {
  const std::string_view a = c.text(0), b = c.text(1);
  if (a.size() != b.size()) return false;
  int64_t apart = 0;
  for (size_t k = 0; k < a.size(); ++k) apart += a[k] != b[k];
  return c.give_integer(apart);
}

// With neighbours that change places as one step, also around what is put between them (R. Lowrance,
// R. Wagner, An Extension of the String-to-String Correction Problem, JACM 22, 1975).
bool call_damerau_levenshtein(Call& c) {
  const Characters a = characters_of(c.text(0)), b = characters_of(c.text(1));
  const size_t n = a.size(), m = b.size(), width = m + 2;
  const auto far = static_cast<int64_t>(n + m);
  std::vector<int64_t> d((n + 2) * width);
  const auto at = [&](size_t i, size_t k) -> int64_t& { return d[i * width + k]; };
  at(0, 0) = far;
  for (size_t i = 0; i <= n; ++i) {
    at(i + 1, 0) = far;
    at(i + 1, 1) = static_cast<int64_t>(i);
  }
  for (size_t k = 0; k <= m; ++k) {
    at(0, k + 1) = far;
    at(1, k + 1) = static_cast<int64_t>(k);
  }
  std::map<std::string_view, size_t> last;  // the last row with the character
  for (size_t i = 1; i <= n; ++i) {
    size_t column = 0;  // the last one that matched in this row
    for (size_t k = 1; k <= m; ++k) {
      const size_t row = last[b[k - 1]], before = column;
      const bool same = a[i - 1] == b[k - 1];
      if (same) column = k;
      const int64_t swapped =
          at(row, before) + static_cast<int64_t>(i - row - 1) + 1 + static_cast<int64_t>(k - before - 1);
      at(i + 1, k + 1) = std::min({at(i, k) + !same, at(i + 1, k) + 1, at(i, k + 1) + 1, swapped});
    }
    last[a[i - 1]] = i;
  }
  return c.give_integer(at(n + 1, m + 1));
}

// --- Patterns of files ---------------------------------------------------------------------------

namespace {

// A set in brackets at `p`, which moves behind it: whether it has the byte; none: it does not end.
std::optional<bool> in_set(std::string_view pattern, size_t& p, char byte) {
  size_t at = p + 1;
  const bool without = at < pattern.size() && pattern[at] == '!';
  at += without;
  bool found = false;
  for (const size_t first = at; at < pattern.size(); ++at) {
    if (pattern[at] == ']' && at > first) {
      p = at + 1;
      return found != without;
    }
    if (at + 2 < pattern.size() && pattern[at + 1] == '-' && pattern[at + 2] != ']') {
      found = found || (pattern[at] <= byte && byte <= pattern[at + 2]);
      at += 2;
    } else {
      found = found || pattern[at] == byte;
    }
  }
  return std::nullopt;
}

}  // namespace

// `*` is any number of characters, `?` one, `[..]` one of a set, and what follows `\` is itself:
// greedily, with one point of return.
bool call_glob(Call& c) {
  const std::string_view text = c.text(0), pattern = c.text(1);
  size_t t = 0, p = 0, star = std::string_view::npos, resume = 0;
  for (;;) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      resume = t;
      continue;
    }
    if (t == text.size() && p == pattern.size()) return c.give_integer(1);
    bool matches = false;
    if (t < text.size() && p < pattern.size()) {
      if (pattern[p] == '?') {
        t += character_bytes(text, t);
        ++p;
        continue;
      }
      if (pattern[p] == '[') {
        const std::optional<bool> found = in_set(pattern, p, text[t]);
        if (!found) return c.give_integer(0);
        matches = *found;
        t += matches;
      } else {
        const bool quoted = pattern[p] == '\\' && p + 1 < pattern.size();
        matches = pattern[p + quoted] == text[t];
        p += 1 + quoted;
        t += matches;
      }
    }
    if (matches) continue;
    if (star == std::string_view::npos || resume >= text.size()) return c.give_integer(0);
    p = star;
    t = resume += character_bytes(text, resume);
  }
}

// --- Parts ---------------------------------------------------------------------------------------

namespace {
constexpr std::string_view separators = "/\\";
}

bool call_file_name(Call& c) {
  const size_t at = c.text(0).find_last_of(separators);
  return c.give(at == std::string_view::npos ? c.text(0) : c.text(0).substr(at + 1));
}
bool call_folder(Call& c) {
  const size_t at = c.text(0).find_last_of(separators);
  return c.give(at == std::string_view::npos ? std::string_view() : c.text(0).substr(0, at));
}
bool call_top_folder(Call& c) {
  const size_t at = c.text(0).find_first_of(separators);
  if (at == 0) return c.give(c.text(0).substr(0, 1));
  return c.give(at == std::string_view::npos ? std::string_view() : c.text(0).substr(0, at));
}

// The text with another in the place of characters from a place on, as many as that has or as the
// last argument says.
bool call_overlay(Call& c) {
  const std::string_view text = c.text(0), by = c.text(1);
  const __int128 length = static_cast<__int128>(characters(text));
  const __int128 count = c.size() == 4 ? c.integer(3) : static_cast<__int128>(characters(by));
  const auto clipped = [&](__int128 n) {
    return byte_of_character(text, static_cast<uint64_t>(std::clamp<__int128>(n, 0, length)));
  };
  const size_t front = clipped(c.integer(2) - 1), back = clipped(c.integer(2) - 1 + count);
  return c.give(std::string(text.substr(0, front)) + std::string(by) + std::string(text.substr(back)));
}

// With a backslash before what means something in a regular expression.
bool call_escaped(Call& c) {
  std::string out;
  for (char x : c.text(0)) {
    const bool plain = (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || (x >= '0' && x <= '9') || x == '_' ||
                       static_cast<uint8_t>(x) >= 0x80;
    if (!plain) out += '\\';
    if (x == '\0')
      out += "x00";
    else
      out += x;
  }
  return c.give(std::move(out));
}

bool call_url_decode(Call& c) {
  const std::string_view text = c.text(0);
  const auto digit = [](char x) {
    return x >= '0' && x <= '9'   ? x - '0'
           : x >= 'a' && x <= 'f' ? x - 'a' + 10
           : x >= 'A' && x <= 'F' ? x - 'A' + 10
                                  : -1;
  };
  std::string out;
  for (size_t k = 0; k < text.size(); ++k) {
    const bool coded = text[k] == '%' && k + 2 < text.size() && digit(text[k + 1]) >= 0 && digit(text[k + 2]) >= 0;
    out += coded ? static_cast<char>(digit(text[k + 1]) * 16 + digit(text[k + 2])) : text[k];
    k += coded ? 2 : 0;
  }
  for (size_t at = 0; at < out.size();) {  // all of it UTF-8
    const size_t n = character_bytes(out, at);
    if (n == 1 && static_cast<uint8_t>(out[at]) >= 0x80) return false;
    at += n;
  }
  return c.give(std::move(out));
}

}  // namespace rndn::text
