// Record: elements of several vectors side by side, in one record of 1, 2, 4, 8, 16 or 32 bytes per row, so that what is read of a row at a computed
// place is one sector of memory.
//
// An element is `bits` bits of its row's record, from bit `begin` on, within an aligned word of the record (of 8 bytes, or all of a smaller record):
// what it is above the reference; floats as they are, where they can be loaded as such. Each vector has the address of all records, and a kernel
// loads for an element its word alone: a shift, a mask and an addition restore it. Other elements of the row are then in the first cache.
// Places are those of record_of: by falling width into the first word that has room.
//
// Records are made by a kernel (libraries/operators/joins/records.cpp). Left out: complex numbers, i128, and records beyond a sector.
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "libraries/base/errors/check.h"
#include "ptx/encodings/rows.h"

namespace rndn::encodings {

namespace {

using ptx::S32;
using ptx::S64;

constexpr uint32_t record_word = 64, most_words = 4;

constexpr uint64_t low_bits(uint32_t bits) { return bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1; }

// What a load of an element reads: so many bits from that one on.
struct Word {
  uint32_t bits, first;
};
Word word_of(const Stored& s) {
  if (s.bytes < 4) return {8u * s.bytes, 0};
  const uint32_t first = s.begin / 32 * 32;
  if (s.begin + s.bits <= first + 32) return {32, first};
  return {record_word, s.begin / record_word * record_word};
}

ptx::Type memory_of(BasicType type, const Stored& s) {
  if (rep_of(type) == Rep::f32) return ptx::Type::f32;
  if (rep_of(type) == Rep::f64) return ptx::Type::f64;
  switch (word_of(s).bits) {
    case 8: return ptx::Type::u8;
    case 16: return ptx::Type::u16;
    case 32: return ptx::Type::u32;
    default: return ptx::Type::u64;
  }
}

// An element on the host, as an integer modulo 2^64, and back.
uint64_t integer_at(BasicType type, const std::byte* at) {
  uint64_t x = 0;
  const uint32_t bytes = plain_bytes(type);
  std::memcpy(&x, at, bytes);
  const uint32_t above = 64 - 8 * bytes;
  const bool is_signed = !hir::is_float(type) && !hir::is_text(type) && type != BasicType::boolean;
  return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(x << above) >> above) : x;
}

class Record final : public Encoding {
 public:
  std::string_view name() const override { return "record"; }

  // Alone in a record.
  std::optional<Stored> fits(BasicType type, const Facts& facts) const override {
    if (!facts.known || facts.exponent || hir::is_float(type)) return std::nullopt;
    const Vector alone{type, facts};
    const auto stored = record_of({&alone, 1});
    if (!stored || stored->front().bytes >= plain_bytes(type)) return std::nullopt;
    return stored->front();
  }

  uint32_t bits(BasicType, const Stored& s) const override { return 8u * s.bytes; }
  uint64_t bytes(BasicType, const Stored& s, uint64_t rows) const override { return rows * s.bytes; }

  // The bits of these elements; those of others stay.
  bool make(BasicType type, const Stored& s, const std::byte* plain, uint64_t rows, std::byte* to) const override {
    uint64_t all = 0;
    const uint32_t width = plain_bytes(type), unit = std::min(8u, uint32_t{s.bytes}), shift = s.begin % record_word;
    for (uint64_t i = 0; i < rows; ++i) {
      const uint64_t offset = integer_at(type, plain + i * width) - static_cast<uint64_t>(s.reference);
      all |= offset;
      std::byte* const at = to + i * s.bytes + s.begin / record_word * 8;
      uint64_t word = 0;
      std::memcpy(&word, at, unit);
      word = (word & ~(low_bits(s.bits) << shift)) | (offset & low_bits(s.bits)) << shift;
      std::memcpy(at, &word, unit);
    }
    return s.bits >= 8 * width || (all & ~low_bits(s.bits)) == 0;
  }
  void restore(BasicType type, const Stored& s, const std::byte* from, uint64_t rows, std::byte* plain) const override {
    const uint32_t width = plain_bytes(type), unit = std::min(8u, uint32_t{s.bytes});
    for (uint64_t i = 0; i < rows; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, from + i * s.bytes + s.begin / record_word * 8, unit);
      const uint64_t x = (word >> s.begin % record_word & low_bits(s.bits)) + static_cast<uint64_t>(s.reference);
      std::memcpy(plain + i * width, &x, width);
    }
  }

  Cursor place(Builder& b, BasicType, const Stored& s, Reg<U64> base, Reg<U32> row) const override {
    return {b.mad_wide(row, uint32_t{s.bytes}, base), {}};
  }
  void advance(Builder& b, BasicType, const Stored& s, Cursor& at, uint32_t rows) const override {
    b.add(at.pointer, uint64_t{rows} * s.bytes, at.pointer);
  }

  Words fresh(Builder& b, BasicType type, const Stored& s) const override {
    if (s.bits == 0) return Words();
    switch (memory_of(type, s)) {
      case ptx::Type::f32: return Words(b.reg<ptx::F32>().id);
      case ptx::Type::f64: return Words(b.reg<ptx::F64>().id);
      case ptx::Type::u64: return Words(b.reg<U64>().id);
      default: return Words(b.reg<U32>().id);
    }
  }
  void clear(Builder& b, BasicType type, const Stored& s, const Words& w) const override {
    if (s.bits == 0) return;
    switch (memory_of(type, s)) {
      case ptx::Type::f32: b.assign(Reg<ptx::F32>{w.at[0]}, 0.0); break;
      case ptx::Type::f64: b.assign(Reg<ptx::F64>{w.at[0]}, 0.0); break;
      case ptx::Type::u64: b.assign(Reg<U64>{w.at[0]}, 0); break;
      default: b.assign(Reg<U32>{w.at[0]}, 0); break;
    }
  }
  void load(Builder& b, BasicType type, const Stored& s, const Cursor& at, int64_t beyond, Reg<Pred> guard,
            Words& into) const override {
    if (s.bits == 0) return;
    const ptx::Address from(at.pointer, beyond * s.bytes + word_of(s).first / 8);
    if (guard.valid()) b.when(guard);
    b.emit(ptx::Opcode::ld, memory_of(type, s), {.space = Space::global}, {Builder::use(Reg<U32>{into.at[0]})},
           {from.operand});
  }

  bool holds_low(BasicType type, const Stored& s) const override {
    return rep_of(type) == Rep::s64 && s.bits < 32 && s.reference >= INT32_MIN &&
           s.reference + static_cast<int64_t>(low_bits(s.bits)) <= INT32_MAX;
  }

  Words decode(Builder& b, BasicType type, const Stored& s, const Words& w) const override {
    if (hir::is_float(type)) return w;
    const bool is_wide = rep_of(type) == Rep::s64;
    Reg<U32> low;
    if (s.bits == 0) {
      low = b.constant<U32>(0);
    } else {
      const Word word = word_of(s);
      const uint32_t shift = s.begin - word.first;
      const bool cut = shift + s.bits < word.bits;
      if (word.bits == record_word) {
        Reg<U64> x{w.at[0]};
        if (shift) x = b.shr(x, shift);
        if (is_wide && !holds_low(type, s)) {
          if (cut) x = b.and_(x, low_bits(s.bits));
          Reg<S64> whole = Builder::as<S64>(x);
          return Words((s.reference ? b.add(whole, s.reference) : whole).id);
        }
        low = b.cvt<U32>(x);
        if (cut && s.bits < 32) low = b.and_(low, static_cast<uint32_t>(low_bits(s.bits)));
      } else {
        low = Reg<U32>{w.at[0]};
        if (shift) low = b.shr(low, shift);
        if (cut) low = b.and_(low, static_cast<uint32_t>(low_bits(s.bits)));
      }
    }
    if (!is_wide) return Words(b.add(Builder::as<S32>(low), static_cast<int32_t>(s.reference)).id);
    Words out;
    if (holds_low(type, s)) {
      out.low = b.add(Builder::as<S32>(low), static_cast<int32_t>(s.reference));
      out.at[0] = b.cvt<S64>(out.low).id;
    } else {
      Reg<S64> whole = Builder::as<S64>(b.cvt<U64>(low));
      out.at[0] = (s.reference ? b.add(whole, s.reference) : whole).id;
    }
    return out;
  }

  const Addressed* addressed() const override { return nullptr; }
};

}  // namespace

std::optional<std::vector<Stored>> record_of(std::span<const Vector> vectors) {
  std::vector<Stored> out(vectors.size(), Stored{.kind = Kind::record});
  for (size_t v = 0; v < vectors.size(); ++v) {
    const auto& [type, facts] = vectors[v];
    if (rep_of(type) == Rep::complex || rep_of(type) == Rep::wide) return std::nullopt;
    const uint32_t plain = 8 * plain_bytes(type);
    out[v].bits = static_cast<uint8_t>(type == BasicType::boolean ? 1 : plain);
    if (hir::is_float(type)) continue;
    if (facts.known && !facts.exponent) {
      const auto bits = std::bit_width(static_cast<uint64_t>(facts.max) - static_cast<uint64_t>(facts.min));
      if (static_cast<uint32_t>(bits) < out[v].bits) out[v].bits = static_cast<uint8_t>(bits), out[v].reference = facts.min;
    }
    if (out[v].bits == plain && plain < 32 && !hir::is_text(type)) out[v].reference = -(int64_t{1} << (plain - 1));
  }
  std::vector<size_t> order(vectors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return out[a].bits > out[b].bits; });
  uint32_t used[most_words] = {};
  for (size_t v : order) {
    const uint32_t unit = hir::is_float(vectors[v].type) ? out[v].bits : 1;
    size_t w = 0;
    const auto begin = [&] { return (used[w] + unit - 1) / unit * unit; };
    while (w < most_words && begin() + out[v].bits > record_word) ++w;
    if (w == most_words) return std::nullopt;
    out[v].begin = static_cast<uint8_t>(w * record_word + begin());
    used[w] = begin() + out[v].bits;
  }
  const size_t words = static_cast<size_t>(std::find(used, used + most_words, 0u) - used);
  const uint32_t bytes = words > 1 ? static_cast<uint32_t>(8 * words) : (used[0] + 7) / 8;
  for (Stored& s : out) s.bytes = static_cast<uint8_t>(std::bit_ceil(std::max(1u, bytes)));
  return out;
}

Reg<U64> record_bits(Builder& b, BasicType type, const Stored& s, const Words& element) {
  Reg<U64> x;
  switch (rep_of(type)) {
    case Rep::f32: x = b.cvt<U64>(b.bitcast<U32>(Reg<ptx::F32>{element.at[0]})); break;
    case Rep::f64: x = b.bitcast<U64>(Reg<ptx::F64>{element.at[0]}); break;
    case Rep::s64: {
      const Reg<S64> whole{element.at[0]};
      x = Builder::as<U64>(s.reference ? b.sub(whole, s.reference) : whole);
      break;
    }
    default: {
      Reg<S32> whole{element.at[0]};
      if (type == BasicType::boolean) whole = b.min(whole, 1);  // any byte but 0 is true
      x = b.cvt<U64>(Builder::as<U32>(s.reference ? b.sub(whole, static_cast<int32_t>(s.reference)) : whole));
    }
  }
  if (s.bits < 64) x = b.and_(x, low_bits(s.bits));  // whatever is stored leaves its neighbours alone
  return s.begin % record_word ? b.shl(x, uint32_t{s.begin} % record_word) : x;
}

const Encoding& rows::record() {
  static const Record row;
  return row;
}

}  // namespace rndn::encodings
