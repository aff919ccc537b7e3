// Elements in registers: classes, constants and conversions between basic types
// (docs/horseir.md, "Types", "check_cast", "Conversions in operations").
//
// Conversions follow C++ except where the language says otherwise: float to integer truncates and saturates (NaN becomes 0), anything to bool tests
// for zero. Immediates are converted at compile time.
#include <bit>
#include <cmath>
#include <limits>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {

bool fits_immediate(Rep rep, int64_t bits) {
  switch (rep) {
    case Rep::pred:
    case Rep::complex:
    case Rep::wide: return false;
    case Rep::s32:
    case Rep::f32: return true;
    case Rep::s64: return bits == static_cast<int32_t>(bits);
    case Rep::f64: return (bits & 0xFFFFFFFF) == 0;
  }
  return false;
}

Element constant_element(BasicType type, int64_t bits) {
  return {type, {.kind = Operand::immediate, .value = bits}, {}};
}

int64_t float_bits(BasicType type, double v) {
  return type == BasicType::f32 ? static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(v)))
                                : std::bit_cast<int64_t>(v);
}

std::pair<int64_t, int64_t> range_of(BasicType type) {
  if (type == BasicType::boolean) return {0, 1};
  return hir::with_stored(type, []<class T>() -> std::pair<int64_t, int64_t> {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) <= 8)
      return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    return {INT32_MIN, INT32_MAX};
  });
}

namespace {

double float_value(BasicType type, int64_t bits) {
  return type == BasicType::f32 ? std::bit_cast<float>(static_cast<uint32_t>(bits)) : std::bit_cast<double>(bits);
}

int64_t wrap(BasicType type, int64_t v) {
  if (type == BasicType::boolean) return v != 0;
  if (hir::is_text(type)) return static_cast<int32_t>(v);  // a code
  return hir::with_stored(type, [&]<class T>() -> int64_t {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(v);
    return v;
  });
}

Element convert_constant(const Element& x, BasicType to) {
  int64_t bits = x.value.value;
  if (hir::is_float(x.type)) {
    const double v = float_value(x.type, bits);
    if (hir::is_float(to)) {
      bits = float_bits(to, v);
    } else if (to == BasicType::boolean) {
      bits = v != 0;
    } else {
      const auto [low, high] = range_of(to);
      bits = std::isnan(v)                    ? 0
             : v <= static_cast<double>(low)  ? low
             : v >= static_cast<double>(high) ? high
                                              : static_cast<int64_t>(v);
    }
  } else if (to == BasicType::f32) {
    bits = static_cast<int64_t>(std::bit_cast<uint32_t>(static_cast<float>(bits)));  // one rounding, as cvt.rn.f32.s64
  } else if (to == BasicType::f64) {
    bits = float_bits(to, static_cast<double>(bits));
  } else {
    bits = wrap(to, bits);
  }
  return {to, {.kind = Operand::immediate, .value = bits}, x.mask};
}

}  // namespace

Element literal_element(Emitter& e, const hir::Literal& literal) {
  const BasicType type = static_cast<BasicType>(index(literal.type));
  if (const auto* v = std::get_if<std::vector<std::complex<double>>>(&literal.values)) {
    const auto part = [&](double x) {
      return reg<F64>(in_register(e, constant_element(BasicType::f64, std::bit_cast<int64_t>(x))));
    };
    return complex_element(part(v->front().real()), part(v->front().imag()), {});
  }
  if (const auto* v = std::get_if<std::vector<__int128>>(&literal.values)) {
    const auto part = [&](__int128 x) {
      return reg<S64>(in_register(e, constant_element(BasicType::i64, static_cast<int64_t>(x))));
    };
    return wide_element(Builder::as<U64>(part(v->front())), part(v->front() >> 64), {});
  }
  if (const auto* v = std::get_if<std::vector<int64_t>>(&literal.values))
    return constant_element(
        type, hir::is_float(type) ? float_bits(type, static_cast<double>(v->front())) : wrap(type, v->front()));
  if (const auto* v = std::get_if<std::vector<double>>(&literal.values))
    return constant_element(type, float_bits(type, v->front()));
  CHECK(false, "a literal in a kernel that is no number");
}

Element in_register(Emitter& e, Element x) {
  if (!x.immediate()) return x;
  const Rep rep = rep_of(x.type);
  if (rep == Rep::wide) {
    const auto half = [&](int64_t bits) { return reg<S64>(in_register(e, constant_element(BasicType::i64, bits))); };
    return wide_element(Builder::as<U64>(half(x.value.value)), half(x.value.value < 0 ? -1 : 0), x.mask);
  }
  const std::pair<Rep, int64_t> key{rep, x.value.value};
  if (const auto it = e.constants.find(key); it != e.constants.end()) {
    x.value = {.kind = Operand::reg, .id = index(it->second)};
    return x;
  }
  if (rep == Rep::pred) {
    Reg<S32> one = e.b.constant<S32>(static_cast<int>(x.value.value != 0));
    x.value = Builder::use(e.b.setp(ptx::Compare::ne, one, 0));
  } else {
    with_number(rep, [&]<class T>() { x.value = Builder::use(e.b.constant<T>(immediate<T>(x))); });
  }
  if (!e.in_loop) e.constants[key] = static_cast<RegisterId>(x.value.id);  // the prologue's registers live throughout
  return x;
}

Element normalise(Emitter& e, Element x) {
  const uint32_t bits = 8 * width_of(x.type);
  if (rep_of(x.type) != Rep::s32 || bits == 32) return x;
  Reg<S32> high = e.b.shl(reg<S32>(in_register(e, x)), 32 - bits);
  x.value = Builder::use(e.b.shr(high, 32 - bits));
  return x;
}

Element convert(Emitter& e, Element x, BasicType to) {
  if (x.type == to) return x;
  if (to == BasicType::complex)
    return complex_element(reg<F64>(in_register(e, convert(e, x, BasicType::f64))),
                           reg<F64>(in_register(e, constant_element(BasicType::f64, 0))), x.mask);
  if (x.immediate() && !(hir::is_float(x.type) && hir::is_wide(to))) return convert_constant(x, to);
  if (hir::is_wide(to)) return to_wide(e, x);
  if (hir::is_wide(x.type)) return from_wide(e, x, to);
  Builder& b = e.b;
  const Rep from_rep = rep_of(x.type), to_rep = rep_of(to);
  Element out{to, {}, x.mask};
  if (to_rep == Rep::pred) {
    with_number(from_rep, [&]<class T>() {
      ptx::Value<T> zero = [] {
        if constexpr (ptx::FloatTag<T>)
          return ptx::Value<T>(0.0);
        else
          return ptx::Value<T>(0);
      }();
      out.value = Builder::use(b.setp(ptx::FloatTag<T> ? ptx::Compare::neu : ptx::Compare::ne, reg<T>(x), zero));
    });
    return out;
  }
  if (from_rep == Rep::pred) {
    with_number(to_rep, [&]<class T>() {
      if constexpr (ptx::FloatTag<T>)
        out.value = Builder::use(b.select<T>(1.0, 0.0, reg<Pred>(x)));
      else
        out.value = Builder::use(b.select<T>(1, 0, reg<Pred>(x)));
    });
    return out;
  }
  if (from_rep == to_rep) {  // between integers of one class: only narrowing changes bits
    out.value = x.value;
    return width_of(to) < width_of(x.type) ? normalise(e, out) : out;
  }
  with_number(from_rep, [&]<class From>() {
    with_number(to_rep, [&]<class To>() {
      if constexpr (!std::is_same_v<From, To>) out.value = Builder::use(b.cvt<To>(reg<From>(x)));
    });
  });
  if (to_rep == Rep::s64 && hir::is_float(x.type)) {  // cvt makes 0 of NaN in 32 bits only
    Reg<S64> r = reg<S64>(out);
    const Condition number = from_rep == Rep::f32 ? b.setp(ptx::Compare::eq, reg<F32>(x), reg<F32>(x))
                                                  : b.setp(ptx::Compare::eq, reg<F64>(x), reg<F64>(x));
    out.value = Builder::use(b.selp(r, 0, number));
  }
  if (to_rep == Rep::s32 && width_of(to) < 4) {
    if (hir::is_float(x.type)) {
      const auto [low, high] = range_of(to);
      out.value = Builder::use(b.min(b.max(reg<S32>(out), static_cast<int32_t>(low)), static_cast<int32_t>(high)));
    } else {
      out = normalise(e, out);
    }
  }
  return out;
}

}  // namespace rndn::codegen
