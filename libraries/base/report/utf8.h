// UTF-8, byte by byte.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace rndn {

// Bytes of the UTF-8 sequence that starts at s[0], or 0 when there is none: overlong forms,
// surrogates and what lies beyond U+10FFFF are none (RFC 3629). `s` is not empty.
inline size_t utf8_length(std::string_view s) {
  unsigned char c = static_cast<unsigned char>(s[0]);
  size_t n = c < 0x80                ? 1
             : c >= 0xc2 && c < 0xe0 ? 2
             : c >= 0xe0 && c < 0xf0 ? 3
             : c >= 0xf0 && c < 0xf5 ? 4
                                     : 0;
  if (n == 0 || n > s.size()) return 0;
  for (size_t k = 1; k < n; ++k)
    if ((static_cast<unsigned char>(s[k]) & 0xc0) != 0x80) return 0;
  unsigned char d = n > 1 ? static_cast<unsigned char>(s[1]) : 0;
  if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d >= 0xa0) || (c == 0xf0 && d < 0x90) ||
      (c == 0xf4 && d >= 0x90))
    return 0;
  return n;
}

inline bool is_ascii(std::string_view s) {
  constexpr uint64_t high_bits = 0x8080808080808080;
  uint64_t all = 0, word = 0;
  for (; s.size() >= 8; s.remove_prefix(8)) {
    std::memcpy(&word, s.data(), 8);
    all |= word;
  }
  word = 0;
  if (!s.empty()) std::memcpy(&word, s.data(), s.size());
  return ((all | word) & high_bits) == 0;
}

inline bool is_utf8(std::string_view s) {
  if (is_ascii(s)) return true;
  while (!s.empty()) {
    const size_t length = utf8_length(s);
    if (length == 0) return false;
    s.remove_prefix(length);
  }
  return true;
}

// The text with U+FFFD in place of each byte that is part of no sequence.
inline std::string as_utf8(std::string_view s) {
  std::string out;
  while (!s.empty()) {
    const size_t length = utf8_length(s);
    out += length ? s.substr(0, length) : std::string_view("\xef\xbf\xbd");
    s.remove_prefix(length ? length : 1);
  }
  return out;
}

// Where the first byte is that no text in UTF-8 has, or that is 0; npos: nowhere.
inline size_t bad_byte(std::string_view s) {
  for (size_t at = 0; at < s.size();) {
    const size_t length = s[at] ? utf8_length(s.substr(at)) : 0;
    if (!length) return at;
    at += length;
  }
  return s.npos;
}
// Whether SQL, ADBC and Python can say it: not empty, and no bad byte.
inline bool is_speakable(std::string_view name) {
  return !name.empty() && bad_byte(name) == name.npos;
}

}  // namespace rndn
