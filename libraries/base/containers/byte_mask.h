// Bytes by the 64: which of them equal a character, as one bit each, and spans between marks in such masks. The technique is that of Langdale and
// Lemire, Parsing gigabytes of JSON per second (2019), without its carry-less multiplication.
#pragma once
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace rndn {

// Bit i: bytes[i] == c, for 64 bytes.
inline uint64_t equal_bytes(const char* bytes, char c) {
  uint64_t mask = 0;
#ifdef __SSE2__
  const __m128i all = _mm_set1_epi8(c);
  for (int i = 0; i < 4; ++i) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * i));
    mask |= static_cast<uint64_t>(static_cast<uint16_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(part, all)))) << 16 * i;
  }
#else
  constexpr uint64_t ones = 0x0101010101010101, low = ones * 0x7f;
  for (int i = 0; i < 8; ++i) {
    uint64_t x = 0;
    for (int b = 0; b < 8; ++b) x |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[8 * i + b])) << 8 * b;
    x ^= ones * static_cast<uint8_t>(c);
    const uint64_t zero = ~(((x & low) + low) | x | low) >> 7;  // bit 8 b: byte b is zero
    mask |= (zero * 0x0102040810204080 >> 56) << 8 * i;         // gathered by a product without carries
  }
#endif
  return mask;
}

// Bit i: the number of set bits at or below i is odd.
inline uint64_t odd_so_far(uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

}  // namespace rndn
