// Packed: integers, calendar values, codes of text, bools, and doubles that are decimals, as bits
// side by side: what an element is above the reference, in as few bits as the largest needs.
//
// Element i is bits i*b .. i*b+b-1 of the vector, the lowest first, so that 32 rows are b words: a
// warp's loads are those words and no other, and steps of 32 rows move by whole words, which leaves
// the bit where a thread's elements begin a constant of its loop. A kernel loads the words that an
// element may reach into (one where b divides 32, else two, from 34 bits on up to three), then has
// a funnel shift, a mask and an addition. An element anywhere costs two multiplications more, and
// nothing is unpacked for it. One word lies behind the last, so that loads need no other guard.
//
// Frame of reference with bit packing; doubles after the decimals of ALP (Afroozeh, Kuffo, Boncz:
// "ALP: Adaptive Lossless floating-Point Compression", SIGMOD 2023), without exceptions. A double
// is n / 10^e, correctly rounded, as reading its digits gives it. In kernels n becomes a double by
// its bits beside those of 2^52, and the quotient is one product and one correction by its rest:
// q = n * y, q + (n - q * 10^e) * y with y the double nearest to 10^-e. That is the nearest double
// (Markstein, "Computation of elementary functions on the IBM RISC System/6000", 1990, theorem on
// quotients) as long as q is at most one unit off, which the relative error of y decides: it is at
// most 2^-54 for the exponents taken here (that of 10^-5 is not).
//
// Needs bounds of the elements. Left out: widths per piece of a vector, and exceptions.
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>

#include "libraries/base/errors/check.h"
#include "ptx/encodings/rows.h"

namespace rndn::encodings {

namespace {

using ptx::Address;
using ptx::F64;
using ptx::S32;
using ptx::S64;

constexpr uint32_t word_bits = 32;
constexpr double powers[] = {1, 10, 100, 1000, 10000};
constexpr int64_t most_of_double = (int64_t{1} << 51) - 1;  // so that sums with 2^52 are exact

constexpr uint64_t mask_of(uint32_t bits) {
  return bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
}

// The words that an element may reach into.
uint32_t words_of(uint32_t bits) {
  if (bits == 0) return 0;
  return (word_bits - std::gcd(bits, word_bits) + bits + word_bits - 1) / word_bits;
}

// Words of the elements, without the one behind them.
uint64_t words(const Stored& s, uint64_t rows) {
  return (rows * s.bits + word_bits - 1) / word_bits;
}

// An integer, modulo 2^64, as the element that it stands for.
template <class Plain>
Plain element(uint64_t integer, double power) {
  if constexpr (std::is_floating_point_v<Plain>)
    return static_cast<double>(static_cast<int64_t>(integer)) / power;
  else
    return static_cast<Plain>(static_cast<int64_t>(integer));
}

// --- Made on the host: a block of rows becomes offsets, by loops that the compiler makes vectors of, and these words.

constexpr uint64_t block_rows = 256;  // whole words of 64 bits, whatever the bits are

// What elements are above the reference. The result has the bits of all, and all bits where one is not held.
template <class Plain>
  requires(sizeof(Plain) <= 4)
uint64_t offsets(const std::byte* plain, uint64_t rows, const Stored& s, uint32_t* to) {
  using Lane = std::conditional_t<std::is_signed_v<Plain>, int32_t, uint32_t>;
  if (!std::in_range<Lane>(s.reference)) return UINT64_MAX;
  const auto reference = static_cast<Lane>(s.reference);
  uint32_t all = 0, below = 0;
  for (uint64_t i = 0; i < rows; ++i) {
    Plain x;
    std::memcpy(&x, plain + i * sizeof x, sizeof x);
    const uint32_t offset = static_cast<uint32_t>(x) - static_cast<uint32_t>(reference);
    to[i] = offset;
    all |= offset;
    below |= static_cast<Lane>(x) < reference ? UINT32_MAX : 0;
  }
  return below ? UINT64_MAX : all;
}

template <class Plain>
  requires(sizeof(Plain) > 4)
uint64_t offsets(const std::byte* plain, uint64_t rows, const Stored& s, uint64_t* to) {
  const auto reference = static_cast<uint64_t>(s.reference);
  uint64_t all = 0, lost = 0;
  for (uint64_t i = 0; i < rows; ++i) {
    Plain x;
    std::memcpy(&x, plain + i * sizeof x, sizeof x);
    uint64_t integer;
    if constexpr (std::is_floating_point_v<Plain>) {
      constexpr double shift = 0x1.8p52;  // leaves integers in the mantissa, where the product is small
      constexpr uint64_t bits_of_shift = std::bit_cast<uint64_t>(shift);
      const double power = powers[s.exponent], sum = x * power + shift;
      integer = std::bit_cast<uint64_t>(sum) - bits_of_shift;
      // A decimal's integer is right if it gives the decimal. As a double it is exact where the sum has the exponent of the shift.
      lost |= (std::bit_cast<uint64_t>(sum) ^ bits_of_shift) >> 52;
      lost |= std::bit_cast<uint64_t>((sum - shift) / power) ^ std::bit_cast<uint64_t>(x);
    } else {
      integer = static_cast<uint64_t>(x);
      if constexpr (sizeof x > 8) lost |= static_cast<uint64_t>(x >> 64) ^ (static_cast<int64_t>(integer) < 0 ? UINT64_MAX : 0);
    }
    to[i] = integer - reference;
    all |= to[i];
  }
  return lost ? UINT64_MAX : all;
}

// Two neighbours as one item of twice the bits.
void join(const uint32_t* __restrict from, uint64_t count, uint32_t bits, uint64_t* __restrict to) {
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t two;
    std::memcpy(&two, from + 2 * i, sizeof two);
    to[i] = (two & UINT32_MAX) | two >> word_bits << bits;
  }
}
void join(const uint64_t* __restrict from, uint64_t count, uint32_t bits, uint64_t* __restrict to) {
  for (uint64_t i = 0; i < count; ++i) to[i] = from[2 * i] | from[2 * i + 1] << bits;
}

// A block's items of 1 to 63 bits, side by side.
template <class Item>
void pack(const Item* items, uint32_t bits, std::byte* to) {
  uint64_t space[2][block_rows];
  uint64_t count = block_rows;
  const uint64_t* from = nullptr;
  if constexpr (sizeof(Item) == 8) from = items;
  for (size_t k = 0; 2 * bits <= 64; k ^= 1, bits *= 2) {
    count /= 2;
    if (from)
      join(from, count, bits, space[k]);
    else
      join(items, count, bits, space[k]);
    from = space[k];
  }
  uint64_t word = 0;
  uint32_t filled = 0;
  for (uint64_t i = 0; i < count; ++i) {
    word |= from[i] << filled;
    filled += bits;
    if (filled < 64) continue;
    std::memcpy(to, &word, sizeof word);
    to += sizeof word;
    filled -= 64;
    word = filled ? from[i] >> (bits - filled) : 0;
  }
}

template <class F>
void with_plain(BasicType type, F&& f) {
  if (rep_of(type) == Rep::f64) return f.template operator()<double>();
  if (rep_of(type) == Rep::wide) return f.template operator()<__int128>();
  const bool is_signed = !hir::is_text(type) && type != BasicType::boolean;
  rows::with_integer(plain_bytes(type), is_signed, std::forward<F>(f));
}

class Packed final : public Encoding {
 public:
  std::string_view name() const override { return "packed"; }

  std::optional<Stored> fits(BasicType type, const Facts& facts) const override {
    if (!facts.known) return std::nullopt;
    switch (rep_of(type)) {
      case Rep::f32:
      case Rep::complex: return std::nullopt;
      case Rep::f64:
        if (facts.exponent >= std::size(powers) || facts.min < -most_of_double ||
            facts.max > most_of_double)
          return std::nullopt;
        break;
      default:
        if (facts.exponent) return std::nullopt;
    }
    const uint64_t most = static_cast<uint64_t>(facts.max) - static_cast<uint64_t>(facts.min);
    const auto bits = static_cast<uint32_t>(std::bit_width(most));
    if (bits >= 8 * plain_bytes(type) || bits >= 64) return std::nullopt;
    return Stored{.kind = Kind::packed,
                  .reference = facts.min,
                  .bits = static_cast<uint8_t>(bits),
                  .exponent = facts.exponent};
  }

  uint32_t bits(BasicType, const Stored& s) const override { return s.bits; }
  uint64_t bytes(BasicType, const Stored& s, uint64_t rows) const override {
    return 4 * (words(s, rows) + 1);
  }

  bool make(BasicType type, const Stored& s, const std::byte* plain, uint64_t rows,
            std::byte* to) const override {
    uint64_t all = 0;
    with_plain(type, [&]<class Plain>() {
      std::conditional_t<sizeof(Plain) <= 4, uint32_t, uint64_t> of_block[block_rows];
      for (uint64_t first = 0; first < rows; first += block_rows) {
        const uint64_t count = std::min(block_rows, rows - first);
        std::byte* const at = to + first / 8 * s.bits;
        all |= offsets<Plain>(plain + first * sizeof(Plain), count, s, of_block);
        if (all & ~mask_of(s.bits)) return;
        if (s.bits == 0) continue;
        if (count == block_rows) {
          pack(of_block, s.bits, at);
        } else {
          std::byte packed[8 * block_rows];
          std::fill(of_block + count, of_block + block_rows, 0);
          pack(of_block, s.bits, packed);
          std::memcpy(at, packed, 4 * words(s, count));
        }
      }
    });
    return (all & ~mask_of(s.bits)) == 0;
  }

  void restore(BasicType type, const Stored& s, const std::byte* from, uint64_t rows,
               std::byte* plain) const override {
    with_plain(type, [&]<class Plain>() {
      const auto word = [&](uint64_t k) {
        uint32_t w;
        std::memcpy(&w, from + 4 * k, 4);
        return uint64_t{w};
      };
      const uint32_t reach = words_of(s.bits);
      for (uint64_t i = 0; i < rows; ++i) {
        const uint64_t bit = i * s.bits, first = bit / word_bits, begin = bit % word_bits;
        uint64_t offset = reach ? word(first) >> begin : 0;
        if (reach > 1) offset |= word(first + 1) << (word_bits - begin);
        if (reach > 2 && begin) offset |= word(first + 2) << (2 * word_bits - begin);
        offset = (offset & mask_of(s.bits)) + static_cast<uint64_t>(s.reference);
        const Plain x = element<Plain>(offset, powers[s.exponent]);
        std::memcpy(plain + i * sizeof x, &x, sizeof x);
      }
    });
  }

  // Word row * b / 32 is the upper half of a product, of b at the top of a word: also of the bits
  // beyond 32, whose words come on top of one per row.
  Cursor place(Builder& b, BasicType, const Stored& s, Reg<U64> base, Reg<U32> row) const override {
    if (s.bits == 0) return {base, {}};
    Reg<U64> at = base;
    if (s.bits >= word_bits) at = b.mad_wide(row, 4u, at);
    const uint32_t rest = s.bits % word_bits;
    if (rest) at = b.mad_wide(b.mul_hi(row, rest << (word_bits - 5)), 4u, at);
    return {at, rest ? b.mul_lo(row, rest) : Reg<U32>{}};
  }

  void advance(Builder& b, BasicType, const Stored& s, Cursor& at, uint32_t rows) const override {
    CHECK(rows % word_bits == 0, "a step of {} rows", rows);
    if (s.bits) b.add(at.pointer, uint64_t{rows} / 8 * s.bits, at.pointer);
  }

  Words fresh(Builder& b, BasicType, const Stored& s) const override {
    Words w;
    for (uint32_t k = 0; k < words_of(s.bits); ++k) w.at[k] = b.reg<U32>().id;
    return w;
  }

  void clear(Builder& b, BasicType, const Stored&, const Words& w) const override {
    for (ptx::RegisterId id : w.at)
      if (!is_none(id)) b.assign(Reg<U32>{id}, 0);
  }

  void load(Builder& b, BasicType, const Stored& s, const Cursor& at, int64_t beyond,
            Reg<Pred> guard, Words& into) const override {
    CHECK(beyond % word_bits == 0, "an element {} rows beyond", beyond);
    into.begin = at.begin;
    for (uint32_t k = 0; k < words_of(s.bits); ++k) {
      const Address from(at.pointer, beyond / 8 * s.bits + 4 * k);
      if (guard.valid()) b.when(guard);
      b.emit(ptx::Opcode::ld, ptx::Type::u32, {.space = Space::global},
             {Builder::use(Reg<U32>{into.at[k]})}, {from.operand});
    }
  }

  bool holds_low(BasicType type, const Stored& s) const override {
    return rep_of(type) == Rep::s64 && s.bits < word_bits && s.reference >= INT32_MIN &&
           s.reference + static_cast<int64_t>(mask_of(s.bits)) <= INT32_MAX;
  }

  Words decode(Builder& b, BasicType type, const Stored& s, const Words& w) const override {
    const auto [low, high] = offset(b, s, w);
    switch (rep_of(type)) {
      case Rep::f64: return Words(decimal(b, s, low, high).id);
      case Rep::s64:
      case Rep::wide: break;
      default: return Words(b.add(Builder::as<S32>(low), static_cast<int32_t>(s.reference)).id);
    }
    Words out;
    Reg<S64> x;
    if (holds_low(type, s)) {
      out.low = b.add(Builder::as<S32>(low), static_cast<int32_t>(s.reference));
      x = b.cvt<S64>(out.low);
    } else {
      x = high.valid() ? b.pack<S64>(low, high) : Builder::as<S64>(b.cvt<U64>(low));
      if (s.reference) x = b.add(x, s.reference);
    }
    out.at[0] = x.id;
    if (rep_of(type) == Rep::wide) out.at[1] = b.shr(x, 63).id;
    return out;
  }

  const Addressed* addressed() const override { return nullptr; }

 private:
  // What is stored: its lower and, beyond 32 bits, its upper half.
  static std::pair<Reg<U32>, Reg<U32>> offset(Builder& b, const Stored& s, const Words& w) {
    const uint32_t reach = words_of(s.bits);
    if (reach == 0) return {b.constant<U32>(0), {}};
    const Reg<U32> first{w.at[0]}, second{w.at[1]}, third{w.at[2]};
    const auto upper = [&](Reg<U32> x, uint32_t bits) {  // without what follows the element
      return bits < word_bits ? b.and_(x, static_cast<uint32_t>(mask_of(bits))) : x;
    };
    if (reach == 1) {
      if (s.bits == word_bits) return {first, {}};
      return {upper(b.funnel_right(first, first, w.begin), s.bits), {}};
    }
    const Reg<U32> low = b.funnel_right(first, second, w.begin);
    if (s.bits <= word_bits) return {upper(low, s.bits), {}};
    const Reg<U32> high = b.funnel_right(second, reach > 2 ? third : second, w.begin);
    return {low, upper(high, s.bits - word_bits)};
  }

  // The double of the integer, divided by the power.
  static Reg<F64> decimal(Builder& b, const Stored& s, Reg<U32> low, Reg<U32> high) {
    constexpr uint32_t of_2_52 = 0x43300000;  // the upper half of 2^52
    high = high.valid() ? b.or_(high, of_2_52) : b.constant<U32>(of_2_52);
    const Reg<F64> n = b.add_rn(b.pack<F64>(low, high), static_cast<double>(s.reference) - 0x1p52);
    if (s.exponent == 0) return n;
    const double power = powers[s.exponent], inverse = 1 / power;
    const Reg<F64> q = b.mul_rn(n, inverse);
    return b.fma(b.fma(q, -power, n), inverse, q);
  }
};

}  // namespace

const Encoding& rows::packed() {
  static const Packed row;
  return row;
}

}  // namespace rndn::encodings
