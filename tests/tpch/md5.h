// MD5 (RFC 1321), for comparing with published checksums only.
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

inline std::string md5(std::string_view text) {
  static constexpr int rotations[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  std::array<uint32_t, 64> sines;
  for (int i = 0; i < 64; ++i)
    sines[i] = static_cast<uint32_t>(std::floor(std::fabs(std::sin(i + 1.0)) * 4294967296.0));
  uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::string padded(text);
  padded.push_back('\x80');
  padded.resize((padded.size() + 8 + 63) / 64 * 64 - 8);
  uint64_t bits = text.size() * 8;
  padded.append(reinterpret_cast<const char*>(&bits), 8);
  for (size_t at = 0; at < padded.size(); at += 64) {
    uint32_t words[16], a = state[0], b = state[1], c = state[2], d = state[3];
    std::memcpy(words, padded.data() + at, 64);
    for (int i = 0; i < 64; ++i) {
      uint32_t f;
      int word;
      switch (i / 16) {
        case 0: f = (b & c) | (~b & d), word = i; break;
        case 1: f = (d & b) | (~d & c), word = (5 * i + 1) % 16; break;
        case 2: f = b ^ c ^ d, word = (3 * i + 5) % 16; break;
        default: f = c ^ (b | ~d), word = 7 * i % 16; break;
      }
      uint32_t next = b + std::rotl(a + f + sines[i] + words[word], rotations[i / 16][i % 4]);
      a = d, d = c, c = b, b = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
  }
  std::string hex;
  for (uint32_t word : state) {
    for (int byte = 0; byte < 4; ++byte) {
      char buffer[3];
      std::snprintf(buffer, sizeof buffer, "%02x", word >> 8 * byte & 255);
      hex += buffer;
    }
  }
  return hex;
}
