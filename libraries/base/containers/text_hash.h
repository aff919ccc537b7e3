// Hash and equality of short texts such as names, for tables of them.
//
// By words of eight bytes, the last of which overlaps the one before, so that no text of eight and more bytes has a rest; the hash multiplies
// (as wyhash, by Wang Yi). Good enough for names, not for enemies: a flood of colliding names costs time quadratic in their number.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

namespace rndn {

template <class Word>
uint64_t text_word(const char* p) {
  Word w;
  std::memcpy(&w, p, sizeof w);
  return w;
}
// A text of up to seven bytes in one word; texts of equal length that differ have different ones.
inline uint64_t short_text(std::string_view s) {
  const size_t n = s.size();
  if (n >= 4) return text_word<uint32_t>(s.data()) << 32 | text_word<uint32_t>(s.data() + n - 4);
  if (n == 0) return 0;
  return text_word<uint8_t>(s.data()) << 16 | text_word<uint8_t>(s.data() + n / 2) << 8 |
         text_word<uint8_t>(s.data() + n - 1);
}

inline uint32_t text_hash(std::string_view s) {
  constexpr uint64_t factor = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  const size_t n = s.size();
  uint64_t h = n * factor;
  const auto mix = [&](uint64_t word) {
    h = (h ^ word) * factor;
    h ^= h >> 32;
  };
  if (n < 8) {
    mix(short_text(s));
  } else {
    for (size_t at = 0; at + 8 < n; at += 8) mix(text_word<uint64_t>(s.data() + at));
    mix(text_word<uint64_t>(s.data() + n - 8));
  }
  return static_cast<uint32_t>(h);
}

inline bool same_text(std::string_view a, std::string_view b) {
  const size_t n = a.size();
  if (n != b.size()) return false;
  if (n < 8) return short_text(a) == short_text(b);
  const auto same = [&](size_t at) { return text_word<uint64_t>(a.data() + at) == text_word<uint64_t>(b.data() + at); };
  for (size_t at = 0; at + 8 < n; at += 8)
    if (!same(at)) return false;
  return same(n - 8);
}

}  // namespace rndn
