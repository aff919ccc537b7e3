// Characters of UTF-8: a byte that begins none of them is a character by itself.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace rndn::text {

// Bytes of the character at `at`, which is within the text.
inline size_t character_bytes(std::string_view text, size_t at) {
  const auto byte = [&](size_t k) { return static_cast<uint8_t>(text[k]); };
  const uint8_t first = byte(at);
  const size_t wanted = first < 0x80 ? 1 : first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1;
  if (at + wanted > text.size()) return 1;
  for (size_t k = 1; k < wanted; ++k)
    if ((byte(at + k) & 0xc0) != 0x80) return 1;
  return wanted;
}

// Calls f with each character's bytes.
template <class F>
void for_characters(std::string_view text, F&& f) {
  for (size_t at = 0; at < text.size();) {
    const size_t n = character_bytes(text, at);
    f(text.substr(at, n));
    at += n;
  }
}

inline uint64_t characters(std::string_view text) {
  uint64_t n = 0;
  for_characters(text, [&](std::string_view) { ++n; });
  return n;
}

// The byte at which character number `n` begins; the size where there are fewer.
inline size_t byte_of_character(std::string_view text, uint64_t n) {
  size_t at = 0;
  for (; n > 0 && at < text.size(); --n) at += character_bytes(text, at);
  return at;
}

inline uint32_t code_point(std::string_view character) {
  const auto byte = [&](size_t k) { return static_cast<uint32_t>(static_cast<uint8_t>(character[k])); };
  switch (character.size()) {
    case 2: return (byte(0) & 31) << 6 | (byte(1) & 63);
    case 3: return (byte(0) & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63);
    case 4: return (byte(0) & 7) << 18 | (byte(1) & 63) << 12 | (byte(2) & 63) << 6 | (byte(3) & 63);
    default: return byte(0);
  }
}

inline void append_code_point(std::string& out, uint32_t code) {
  const auto add = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xe0 | code >> 12);
    } else {
      add(0xf0 | code >> 18);
      add(0x80 | (code >> 12 & 63));
    }
    add(0x80 | (code >> 6 & 63));
  }
  add(0x80 | (code & 63));
}

// Simple case mapping of every character of Unicode, by the C library's tables.
std::string to_case(std::string_view text, bool upper);
// Is it part of the character before it (combining marks, joiners, flags, parts of Hangul)?
bool may_compose(uint32_t code);

}  // namespace rndn::text
