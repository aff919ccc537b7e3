// Plain: an element as its type has it (frontend/types.def); text is a code of 4 bytes.
//
// Kernels: one access of its width; a bool is 0 or 1 in an s32, a complex number is one access of
// its two parts side by side.
#include <cstring>

#include "ptx/encodings/rows.h"

namespace rndn::encodings {

namespace {

class Plain final : public Addressed {
 public:
  std::string_view name() const override { return "plain"; }

  std::optional<Stored> fits(BasicType, const Facts&) const override { return Stored{}; }

  bool make(BasicType type, const Stored&, const std::byte* plain, uint64_t rows,
            std::byte* to) const override {
    if (rows) std::memcpy(to, plain, rows * plain_bytes(type));
    return true;
  }
  void restore(BasicType type, const Stored&, const std::byte* from, uint64_t rows,
               std::byte* plain) const override {
    if (rows) std::memcpy(plain, from, rows * plain_bytes(type));
  }

  uint32_t width(BasicType type, const Stored&) const override { return plain_bytes(type); }

  ptx::Type memory(BasicType type, const Stored&) const override {
    switch (plain_bytes(type)) {
      case 1: return type == BasicType::boolean ? ptx::Type::u8 : ptx::Type::s8;
      case 2: return ptx::Type::s16;
      case 4: return type == BasicType::f32 ? ptx::Type::f32 : ptx::Type::s32;
      default:
        return hir::is_float(type) || type == BasicType::complex ? ptx::Type::f64 : ptx::Type::s64;
    }
  }

  Words fresh(Builder& b, BasicType type, const Stored&) const override {
    switch (rep_of(type)) {
      case Rep::pred:
      case Rep::s32: return Words(b.reg<ptx::S32>().id);
      case Rep::s64: return Words(b.reg<ptx::S64>().id);
      case Rep::f32: return Words(b.reg<ptx::F32>().id);
      case Rep::f64: return Words(b.reg<ptx::F64>().id);
      case Rep::complex: {
        const ptx::RegisterId real = b.reg<ptx::F64>().id;
        return Words(real, b.reg<ptx::F64>().id);
      }
      case Rep::wide: break;
    }
    const ptx::RegisterId low = b.reg<U64>().id;
    return Words(low, b.reg<ptx::S64>().id);
  }

  bool holds_low(BasicType, const Stored&) const override { return false; }
  Words decode(Builder&, BasicType, const Stored&, const Words& w) const override { return w; }
  Words encode(Builder&, BasicType, const Stored&, const Words& w) const override { return w; }
};

}  // namespace

const Encoding& rows::plain() {
  static const Plain row;
  return row;
}

}  // namespace rndn::encodings
