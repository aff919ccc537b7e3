// Narrow: integers, calendar values and codes of text in 1, 2 or 4 bytes where their type has
// more: what is stored, extended by zeros or by its sign, plus a reference.
//
// Needs bounds of the elements. Without a reference the bytes are numbers of a narrower type, which
// the operators of the library know; one is taken only where it saves bytes. Kernels: one access,
// and at most one conversion and one addition.
#include <limits>

#include "ptx/encodings/rows.h"

namespace rndn::encodings {

namespace {

using ptx::S32;
using ptx::S64;

// By value: the difference of two int64_t may be beyond them.
uint64_t distance(int64_t from, int64_t to) {
  return static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
}

class Narrow final : public Addressed {
 public:
  std::string_view name() const override { return "narrow"; }

  std::optional<Stored> fits(BasicType type, const Facts& facts) const override {
    const Rep rep = rep_of(type);
    if (!facts.known || (rep != Rep::s32 && rep != Rep::s64)) return std::nullopt;
    for (uint32_t bytes = 1; bytes < plain_bytes(type); bytes *= 2) {
      const int64_t most = (int64_t{1} << (8 * bytes)) - 1, half = most / 2;
      Stored s{.kind = Kind::narrow, .bytes = static_cast<uint8_t>(bytes)};
      if (!hir::is_text(type) && facts.min >= -half - 1 && facts.max <= half) {
        s.is_signed = true;
        return s;
      }
      if (facts.min >= 0 && facts.max <= most) return s;
      if (distance(facts.min, facts.max) <= static_cast<uint64_t>(most)) {
        s.reference = facts.min;
        return s;
      }
    }
    return std::nullopt;
  }

  bool make(BasicType type, const Stored& s, const std::byte* plain, uint64_t rows,
            std::byte* to) const override {
    uint64_t lost = 0;
    with_both(type, s, [&]<class Wide, class Own>() {
      const auto* from = reinterpret_cast<const Wide*>(plain);
      auto* out = reinterpret_cast<Own*>(to);
      const auto reference = static_cast<uint64_t>(s.reference);
      for (uint64_t i = 0; i < rows; ++i) {
        const uint64_t offset = static_cast<uint64_t>(from[i]) - reference;
        out[i] = static_cast<Own>(offset);
        lost |= offset ^ static_cast<uint64_t>(out[i]);
      }
    });
    return lost == 0;
  }
  void restore(BasicType type, const Stored& s, const std::byte* from, uint64_t rows,
               std::byte* plain) const override {
    with_both(type, s, [&]<class Wide, class Own>() {
      const auto* in = reinterpret_cast<const Own*>(from);
      auto* out = reinterpret_cast<Wide*>(plain);
      for (uint64_t i = 0; i < rows; ++i)
        out[i] = static_cast<Wide>(static_cast<uint64_t>(in[i]) + static_cast<uint64_t>(s.reference));
    });
  }

  uint32_t width(BasicType, const Stored& s) const override { return s.bytes; }

  ptx::Type memory(BasicType, const Stored& s) const override {
    switch (s.bytes) {
      case 1: return s.is_signed ? ptx::Type::s8 : ptx::Type::u8;
      case 2: return s.is_signed ? ptx::Type::s16 : ptx::Type::u16;
      default: return s.is_signed ? ptx::Type::s32 : ptx::Type::u32;
    }
  }

  Words fresh(Builder& b, BasicType, const Stored&) const override {
    return Words(b.reg<S32>().id);
  }

  bool holds_low(BasicType type, const Stored& s) const override {
    return rep_of(type) == Rep::s64 && s.reference == 0 && (s.is_signed || s.bytes < 4);
  }

  Words decode(Builder& b, BasicType type, const Stored& s, const Words& w) const override {
    const Reg<S32> word{w.at[0]};
    if (rep_of(type) != Rep::s64)
      return Words(s.reference ? b.add(word, static_cast<int32_t>(s.reference)).id : word.id);
    Reg<S64> wide = s.is_signed || s.bytes < 4
                        ? b.cvt<S64>(word)
                        : Builder::as<S64>(b.cvt<U64>(Builder::as<U32>(word)));
    if (s.reference) wide = b.add(wide, s.reference);
    Words out(wide.id);
    if (holds_low(type, s)) out.low = word;
    return out;
  }

  Words encode(Builder& b, BasicType type, const Stored& s, const Words& element) const override {
    if (rep_of(type) != Rep::s64) {
      const Reg<S32> x{element.at[0]};
      return Words(s.reference ? b.sub(x, static_cast<int32_t>(s.reference)).id : x.id);
    }
    Reg<S64> x{element.at[0]};
    if (s.reference) x = b.sub(x, s.reference);
    return Words(b.cvt<U32>(Builder::as<U64>(x)).id);
  }

 private:
  template <class F>
  static void with_both(BasicType type, const Stored& s, F&& f) {
    rows::with_integer(plain_bytes(type), !hir::is_text(type), [&]<class Wide>() {
      rows::with_integer(s.bytes, s.is_signed, [&]<class Own>() { f.template operator()<Wide, Own>(); });
    });
  }
};

}  // namespace

const Encoding& rows::narrow() {
  static const Narrow row;
  return row;
}

}  // namespace rndn::encodings
