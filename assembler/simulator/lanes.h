// Loops over the 32 lanes of a warp, written so that the compiler vectorises them.
#pragma once
#include <bit>
#include <cstring>

#include "assembler/simulator/warp.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rndn::sim {

inline const uint32_t* row(const Warp& w, const Source& s) { return w.rows[s.pool] + s.offset; }
inline uint32_t* row(const Warp& w, uint32_t d) { return w.rows[0] + d; }
inline uint32_t value(const Warp& w, const Source& s, uint32_t lane) { return (row(w, s)[lane] & s.keep) ^ s.flip; }
inline uint32_t lane_mask(const Warp& w, const PredicateSource& p) { return w.pred[p.index] ^ p.flip; }

// bits -> all ones or zero per lane. The lanes' bits come from a table, as vectors of the host cannot be shifted by different amounts.
alignas(64) inline constexpr auto lane_bits = [] {
  std::array<uint32_t, lanes> bits{};
  for (uint32_t l = 0; l < lanes; ++l) bits[l] = 1u << l;
  return bits;
}();
inline void expand(uint32_t bits, uint32_t* __restrict out) {
  for (uint32_t l = 0; l < lanes; ++l) out[l] = (bits & lane_bits[l]) == lane_bits[l] ? all_lanes : 0;
}

// The sign bit of each lane, as a mask.
inline uint32_t signs(const uint32_t* r) {
#if defined(__SSE2__)
  uint32_t bits = 0;
  for (uint32_t half = 0; half < 2; ++half) {
    const __m128i* p = reinterpret_cast<const __m128i*>(r + 16 * half);
    const __m128i low = _mm_packs_epi32(_mm_loadu_si128(p), _mm_loadu_si128(p + 1));
    const __m128i high = _mm_packs_epi32(_mm_loadu_si128(p + 2), _mm_loadu_si128(p + 3));
    bits |= static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high))) << (16 * half);
  }
  return bits;
#else
  uint32_t bits = 0;
  for (uint32_t l = 0; l < lanes; ++l) bits |= (r[l] >> 31) << l;
  return bits;
#endif
}

// Writes the lanes of `mask`.
inline void commit(uint32_t* __restrict d, const uint32_t* __restrict r, uint32_t mask) {
  if (mask == all_lanes) {
    std::memcpy(d, r, lanes * 4);
    return;
  }
  for (uint32_t l = 0; l < lanes; ++l) d[l] = mask & (1u << l) ? r[l] : d[l];
}
inline void commit_predicate(Warp& w, uint8_t p, uint32_t bits, uint32_t mask) {
  w.pred[p] = (w.pred[p] & ~mask) | (bits & mask);
}

// d = f(a, b, c) per lane.
template <class F>
inline void map1(Warp& w, const Op& op, uint32_t mask, F f) {
  const uint32_t* a = row(w, op.a);
  const uint32_t ka = op.a.keep, fa = op.a.flip;
  alignas(64) uint32_t r[lanes];
  for (uint32_t l = 0; l < lanes; ++l) r[l] = f((a[l] & ka) ^ fa);
  commit(row(w, op.d), r, mask);
}
template <class F>
inline void map2(Warp& w, const Op& op, uint32_t mask, F f) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b);
  const uint32_t ka = op.a.keep, fa = op.a.flip, kb = op.b.keep, fb = op.b.flip;
  alignas(64) uint32_t r[lanes];
  for (uint32_t l = 0; l < lanes; ++l) r[l] = f((a[l] & ka) ^ fa, (b[l] & kb) ^ fb);
  commit(row(w, op.d), r, mask);
}
template <class F>
inline void map3(Warp& w, const Op& op, uint32_t mask, F f) {
  const uint32_t *a = row(w, op.a), *b = row(w, op.b), *c = row(w, op.c);
  const uint32_t ka = op.a.keep, fa = op.a.flip, kb = op.b.keep, fb = op.b.flip, kc = op.c.keep, fc = op.c.flip;
  alignas(64) uint32_t r[lanes];
  for (uint32_t l = 0; l < lanes; ++l) r[l] = f((a[l] & ka) ^ fa, (b[l] & kb) ^ fb, (c[l] & kc) ^ fc);
  commit(row(w, op.d), r, mask);
}

inline uint64_t pair(uint32_t low, uint32_t high) { return static_cast<uint64_t>(high) << 32 | low; }

// A 64-bit source: this row and the next; keep and flip act on the high word.
inline void load_pairs(const Warp& w, const Source& s, uint64_t* out) {
  const uint32_t* low = row(w, s);
  for (uint32_t l = 0; l < lanes; ++l) out[l] = pair(low[l], (low[l + lanes] & s.keep) ^ s.flip);
}
inline void commit_pairs(Warp& w, uint32_t d, const uint64_t* r, uint32_t mask) {
  alignas(64) uint32_t low[lanes], high[lanes];
  for (uint32_t l = 0; l < lanes; ++l)
    low[l] = static_cast<uint32_t>(r[l]), high[l] = static_cast<uint32_t>(r[l] >> 32);
  commit(row(w, d), low, mask);
  commit(row(w, d) + lanes, high, mask);
}

// False when the access names a descriptor that is not the launch's. Hardware faults on such accesses.
inline bool descriptor_holds(const Warp& w, const Op& op) {
  if (op.descriptor == 0) return true;
  const uint32_t* d = row(w, op.descriptor);
  return pair(d[0], d[lanes]) == w.launch->descriptor;
}
inline Status bad_descriptor(Warp& w, const Op& op, uint32_t mask) {
  return fail(w, op, static_cast<uint32_t>(std::countr_zero(mask)),
              fmt::format("the uniform register pair holds no memory descriptor (constant bank 0, offset {:#x})",
                          w.launch->program->target->descriptor_offset));
}

// What an access does to memory.
enum class Touch : uint8_t { read, write, update };
// Host address of a lane's access, or null after a report (semantics_memory.cpp). space: 0 global, 1 generic, 2 shared, 3 local.
std::byte* locate(Warp& w, const Op& op, uint32_t l, uint64_t address, uint32_t size, uint32_t space, Touch touch,
                  const char* what);

template <class F>
inline void for_lanes(uint32_t mask, F f) {
  for (uint32_t bits = mask; bits; bits &= bits - 1) f(static_cast<uint32_t>(std::countr_zero(bits)));
}

}  // namespace rndn::sim
