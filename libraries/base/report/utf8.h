// UTF-8, byte by byte.
#pragma once
#include <cstddef>
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

}  // namespace rndn
