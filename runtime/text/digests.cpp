// Digests of texts, and bytes and numbers as digits.
//
// MD5 (RFC 1321), SHA-1 and SHA-256 (FIPS 180-4) over a text's bytes: blocks of 64 bytes, of which
// the last ends in the text's length in bits. O(bytes).
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/text/implementation.h"

namespace rndn::text {
namespace {

using Block = std::array<uint8_t, 64>;

// Calls f with each block of the text and of what pads it.
template <class F>
void for_blocks(std::string_view text, bool length_ends_high, F&& f) {
  Block block;
  for (size_t at = 0;; at += 64) {
    const size_t left = at < text.size() ? text.size() - at : 0;
    block.fill(0);
    std::memcpy(block.data(), text.data() + std::min(at, text.size()), std::min<size_t>(left, 64));
    if (left >= 64) {
      f(block);
      continue;
    }
    if (at <= text.size()) block[left] = 0x80;
    if (at <= text.size() && left >= 56) {
      f(block);
      continue;
    }
    for (size_t k = 0; k < 8; ++k)
      block[length_ends_high ? 63 - k : 56 + k] = static_cast<uint8_t>((uint64_t{text.size()} * 8) >> (8 * k));
    f(block);
    return;
  }
}

uint32_t word_at(const Block& b, size_t k, bool highest_first) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i) word |= uint32_t{b[4 * k + i]} << (8 * (highest_first ? 3 - i : i));
  return word;
}

template <size_t n>
std::string words_text(const std::array<uint32_t, n>& words, bool highest_first) {
  std::string out;
  for (uint32_t w : words) out += fmt::format("{:08x}", highest_first ? w : __builtin_bswap32(w));
  return out;
}

}  // namespace

bool call_md5(Call& c) {
  static constexpr std::array<int, 16> turns = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};
  static const std::array<uint32_t, 64> sines = [] {
    std::array<uint32_t, 64> out;
    for (size_t k = 0; k < 64; ++k)
      out[k] = static_cast<uint32_t>(std::fabs(std::sin(static_cast<double>(k + 1))) * 4294967296.0);
    return out;
  }();
  std::array<uint32_t, 4> state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for_blocks(c.text(0), false, [&](const Block& block) {
    auto [a, b, d, e] = state;
    for (size_t k = 0; k < 64; ++k) {
      const size_t round = k / 16;
      const uint32_t mixed = round == 0   ? (b & d) | (~b & e)
                             : round == 1 ? (e & b) | (~e & d)
                             : round == 2 ? b ^ d ^ e
                                          : d ^ (b | ~e);
      const size_t at = round == 0 ? k : round == 1 ? (5 * k + 1) % 16 : round == 2 ? (3 * k + 5) % 16 : 7 * k % 16;
      const uint32_t sum = a + mixed + sines[k] + word_at(block, at, false);
      a = e;
      e = d;
      d = b;
      b += std::rotl(sum, turns[4 * round + k % 4]);
    }
    state = {state[0] + a, state[1] + b, state[2] + d, state[3] + e};
  });
  return c.give(words_text(state, false));
}

bool call_sha1(Call& c) {
  std::array<uint32_t, 5> state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  for_blocks(c.text(0), true, [&](const Block& block) {
    std::array<uint32_t, 80> w;
    for (size_t k = 0; k < 80; ++k)
      w[k] = k < 16 ? word_at(block, k, true) : std::rotl(w[k - 3] ^ w[k - 8] ^ w[k - 14] ^ w[k - 16], 1);
    auto [a, b, d, e, g] = state;
    for (size_t k = 0; k < 80; ++k) {
      const uint32_t mixed = k < 20 ? (b & d) | (~b & e) : k >= 40 && k < 60 ? (b & d) | (b & e) | (d & e) : b ^ d ^ e;
      const uint32_t constant = k < 20 ? 0x5a827999 : k < 40 ? 0x6ed9eba1 : k < 60 ? 0x8f1bbcdc : 0xca62c1d6;
      const uint32_t next = std::rotl(a, 5) + mixed + g + constant + w[k];
      g = e;
      e = d;
      d = std::rotl(b, 30);
      b = a;
      a = next;
    }
    state = {state[0] + a, state[1] + b, state[2] + d, state[3] + e, state[4] + g};
  });
  return c.give(words_text(state, true));
}

bool call_sha256(Call& c) {
  // The first 32 bits of what lies behind the point of square and cube roots of the first primes.
  static const auto constants = [] {
    struct {
      std::array<uint32_t, 8> first;
      std::array<uint32_t, 64> of_round;
    } out;
    size_t n = 0;
    for (uint32_t p = 2; n < 64; ++p) {
      bool is_prime = true;
      for (uint32_t q = 2; q * q <= p; ++q) is_prime = is_prime && p % q != 0;
      if (!is_prime) continue;
      const auto fraction = [](long double root) {
        return static_cast<uint32_t>((root - std::floor(root)) * 4294967296.0L);
      };
      if (n < 8) out.first[n] = fraction(std::sqrt(static_cast<long double>(p)));
      out.of_round[n++] = fraction(std::cbrt(static_cast<long double>(p)));
    }
    return out;
  }();
  std::array<uint32_t, 8> state = constants.first;
  for_blocks(c.text(0), true, [&](const Block& block) {
    std::array<uint32_t, 64> w;
    for (size_t k = 0; k < 64; ++k) {
      if (k < 16) {
        w[k] = word_at(block, k, true);
        continue;
      }
      const uint32_t x = w[k - 15], y = w[k - 2];
      w[k] = w[k - 16] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3)) + w[k - 7] +
             (std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10));
    }
    std::array<uint32_t, 8> s = state;
    for (size_t k = 0; k < 64; ++k) {
      const uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
      const uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
      const uint32_t first = s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) + choice +
                             constants.of_round[k] + w[k];
      const uint32_t second = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) + majority;
      for (size_t i = 7; i > 0; --i) s[i] = s[i - 1];
      s[4] += first;
      s[0] = first + second;
    }
    for (size_t i = 0; i < 8; ++i) state[i] += s[i];
  });
  return c.give(words_text(state, true));
}

// --- Digits --------------------------------------------------------------------------------------

namespace {

bool bytes_as(Call& c, const char* format) {
  std::string out;
  for (char x : c.text(0)) out += fmt::format(fmt::runtime(format), static_cast<uint8_t>(x));
  return c.give(std::move(out));
}

constexpr std::string_view digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

std::string digits_to(unsigned __int128 value, unsigned base) {
  std::string out;
  do {
    out.insert(out.begin(), digits[static_cast<size_t>(value % base)]);
    value /= base;
  } while (value != 0);
  return out;
}

// An integer in two's complement of as many bits as the second argument says.
bool integer_as(Call& c, unsigned base) {
  auto value = static_cast<unsigned __int128>(c.integer(0));
  if (c.integer(1) < 128) value &= (static_cast<unsigned __int128>(1) << static_cast<unsigned>(c.integer(1))) - 1;
  return c.give(digits_to(value, base));
}

// A number of bytes to one digit behind the point, cut.
bool bytes_text(Call& c, uint64_t step, std::span<const std::string_view> units) {
  const bool negative = c.integer(0) < 0;
  const auto size = static_cast<uint64_t>(negative ? -c.integer(0) : c.integer(0));
  uint64_t unit = 1;
  size_t at = 0;
  while (at < units.size() && size / unit >= step) {
    unit *= step;
    ++at;
  }
  const std::string_view sign = negative ? "-" : "";
  if (at == 0) return c.give(fmt::format("{}{} byte{}", sign, size, size == 1 ? "" : "s"));
  const auto tenths = static_cast<uint64_t>(static_cast<unsigned __int128>(size % unit) * 10 / unit);
  return c.give(fmt::format("{}{}.{} {}", sign, size / unit, tenths, units[at - 1]));
}

}  // namespace

bool call_hex(Call& c) { return bytes_as(c, "{:02X}"); }
bool call_binary(Call& c) { return bytes_as(c, "{:08b}"); }
bool call_hex_of(Call& c) { return integer_as(c, 16); }
bool call_binary_of(Call& c) { return integer_as(c, 2); }

bool call_to_base(Call& c) {
  const __int128 base = c.integer(1), length = c.size() == 3 ? c.integer(2) : 0;
  if (base < 2 || base > 36 || c.integer(0) < 0 || length < 0 || length > 64) return false;
  std::string out = digits_to(static_cast<unsigned __int128>(c.integer(0)), static_cast<unsigned>(base));
  if (out.size() < static_cast<size_t>(length)) out.insert(0, static_cast<size_t>(length) - out.size(), '0');
  return c.give(std::move(out));
}

bool call_size_text(Call& c) {
  static constexpr std::string_view units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return bytes_text(c, 1024, units);
}
bool call_decimal_size_text(Call& c) {
  static constexpr std::string_view units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  return bytes_text(c, 1000, units);
}

bool call_url_encode(Call& c) {
  std::string out;
  for (char x : c.text(0)) {
    const bool plain = (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || (x >= '0' && x <= '9') ||
                       std::string_view("-_.~").find(x) != std::string_view::npos;
    if (plain)
      out += x;
    else
      out += fmt::format("%{:02X}", static_cast<uint8_t>(x));
  }
  return c.give(std::move(out));
}

// --- Numbers of numbers --------------------------------------------------------------------------

namespace {
__int128 common_divisor(__int128 a, __int128 b) {  // Euclid's
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const __int128 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
bool give_word(Call& c, __int128 value) { return value <= INT64_MAX && c.give_integer(value); }
}  // namespace

bool call_gcd(Call& c) { return give_word(c, common_divisor(c.integer(0), c.integer(1))); }
bool call_lcm(Call& c) {
  const __int128 a = c.integer(0), b = c.integer(1);
  if (a == 0 || b == 0) return c.give_integer(0);
  __int128 out;
  if (__builtin_mul_overflow(a / common_divisor(a, b), b, &out)) return false;
  return give_word(c, out < 0 ? -out : out);
}
bool call_factorial(Call& c) {
  if (c.integer(0) < 0 || c.integer(0) > 33) return false;
  __int128 out = 1;
  for (__int128 k = 2; k <= c.integer(0); ++k) out *= k;
  return c.give_integer(out);
}
bool call_gamma(Call& c) { return c.give_real(std::tgamma(c.in[0].real)); }
bool call_lgamma(Call& c) { return c.give_real(std::lgamma(c.in[0].real)); }

}  // namespace rndn::text
