#include "libraries/operators/fragments.h"

#include <algorithm>
#include <bit>

namespace rndn::operators {

using ptx::Combine;
using ptx::SpecialRegister;

namespace {

template <class T>
ptx::Compare comparison(Compare compare) {
  switch (compare) {
    case Compare::eq: return ptx::Compare::eq;
    case Compare::neq: return ptx::FloatTag<T> ? ptx::Compare::neu : ptx::Compare::ne;
    case Compare::lt: return ptx::Compare::lt;
    case Compare::gt: return ptx::Compare::gt;
    case Compare::leq: return ptx::Compare::le;
    case Compare::geq: break;
  }
  return ptx::Compare::ge;
}

// f(x, y) with the registers of two elements of one type, in the type whose comparison is right.
template <class F>
auto with_registers(const Element& x, const Element& y, F&& f) {
  switch (x.type) {
    case Type::f32: return f(x.f32, y.f32);
    case Type::f64: return f(x.f64, y.f64);
    case Type::i64: return f(Builder::as<S64>(x.u64), Builder::as<S64>(y.u64));
    case Type::u32: return f(x.u32, y.u32);
    default: return f(Builder::as<S32>(x.u32), Builder::as<S32>(y.u32));
  }
}
}  // namespace

const char* type_name(Type type) {
  static constexpr const char* names[] = {"u8", "i8", "i16", "i32", "u32", "i64", "f32", "f64", "u16"};
  return names[static_cast<size_t>(type)];
}

Element load_element(Builder& b, Type type, At at) {
  Element e{.type = type};
  with_type(type, [&]<class T>() {
    auto r = b.ld_nc<T>(at);
    if constexpr (std::same_as<T, F32>)
      e.f32 = r;
    else if constexpr (std::same_as<T, F64>)
      e.f64 = r;
    else if constexpr (std::same_as<T, S64>)
      e.u64 = Builder::as<U64>(r);
    else if constexpr (T::size == 4)
      e.u32 = Builder::as<U32>(r);
    else if constexpr (ptx::SignedTag<ptx::RegisterTag<T>>)
      e.u32 = Builder::as<U32>(b.cvt<S32>(r));
    else
      e.u32 = b.cvt<U32>(r);
  });
  return e;
}

Reg<Pred> compare_elements(Builder& b, Compare compare, const Element& x, const Element& y) {
  return with_registers(x, y, [&]<class T>(Reg<T> p, Reg<T> q) { return b.setp(comparison<T>(compare), p, q); });
}
Reg<Pred> compare_elements(Builder& b, Compare compare, const Element& x, const Element& y, Combine combine,
                           Condition with, Reg<Pred> into) {
  return with_registers(
      x, y, [&]<class T>(Reg<T> p, Reg<T> q) { return b.setp(comparison<T>(compare), combine, p, q, with, into); });
}

VectorParameters vector_parameters(Builder& b, const std::string& name) {
  VectorParameters p;
  p.data = b.parameter<U64>(name);
  p.slot = b.parameter<U64>(name + "_slot");
  p.capacity = b.parameter<U64>(name + "_capacity");
  return p;
}
void add(Arguments& a, const Vector& v) { a.add(v.data).add(v.size_slot).add(v.capacity); }

Reg<U32> rows_of(Builder& b, Parameter slot, Parameter capacity) {
  Reg<U64> n = b.mov(b.ld_param(capacity)), at = b.ld_param(slot);
  b.when(b.setp(ptx::Compare::ne, at, 0)).ld<U64>(Space::global, At(at), n);
  b.min(n, b.ld_param(capacity), n);
  return b.cvt<U32>(n);
}

Reg<U32> tiles_of(Builder& b, Reg<U32> rows, uint32_t tile) {
  DCHECK(std::has_single_bit(tile));
  Reg<U32> whole = b.shr(rows, static_cast<uint32_t>(std::countr_zero(tile)));
  Reg<Pred> more = b.setp(ptx::Compare::ne, b.and_(rows, tile - 1), 0);
  return b.add(whole, b.select<U32>(1, 0, more));
}

Reg<U32> take_tile(Builder& b, ptx::SharedVariable shared, Reg<U64> ticket, const Thread& t) {
  b.bar_sync();
  LabelId taken = b.label();
  b.when(b.setp(ptx::Compare::ne, t.tid, 0)).bra(taken);
  Reg<U32> number = b.atom<U32>(ptx::AtomicOp::add, Space::global, At(ticket), 1);
  b.st<U32>(Space::shared, At(shared), number);
  b.bind(taken);
  b.bar_sync();
  return b.ld<U32>(Space::shared, At(shared));
}

std::string KeyShape::name() const {
  std::string out = form == KeyForm::narrow ? "n" : form == KeyForm::wide ? "w" : "h";
  for (const KeyColumn& c : columns) out += std::string("_") + type_name(c.type) + (c.rebased ? "r" : "");
  return out;
}

KeyLayout layout_keys(std::span<const Vector> left) {
  KeyLayout layout;
  for (const Vector& v : left) {
    KeyColumn column{.type = v.type};
    int64_t min = 0;
    uint64_t span = is_wide(v.type) ? UINT64_MAX : UINT32_MAX;
    if (!is_float(v.type)) {
      int64_t low = v.min, high = v.max;
      bool known = v.known();
      const auto within = [&](int64_t lowest, int64_t highest) {  // the type's own range
        low = known ? std::max(low, lowest) : lowest;
        high = known ? std::min(high, highest) : highest;
        known = low <= high;
      };
      if (v.type == Type::u8) within(0, 255);
      if (v.type == Type::u16) within(0, 65535);
      if (v.type == Type::i8) within(-128, 127);
      if (v.type == Type::i16) within(-32768, 32767);
      if (known) {
        const uint64_t width_of_range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
        if (width_of_range < span) column.rebased = true, min = low, span = width_of_range;
      }
    }
    layout.shape.columns.push_back(column);
    layout.min.push_back(static_cast<uint64_t>(min));
    layout.span.push_back(span);
    layout.shift.push_back(layout.bits);
    layout.bits += static_cast<uint32_t>(std::bit_width(span));
  }
  layout.shape.form = layout.bits <= 32 ? KeyForm::narrow : layout.bits <= 64 ? KeyForm::wide : KeyForm::hashed;
  if (left.size() == 1 && layout.span[0] != UINT64_MAX)
    layout.range = layout.span[0] + 1;
  else if (layout.bits < 64)
    layout.range = uint64_t{1} << layout.bits;
  return layout;
}

void add(Arguments& a, const KeyLayout& layout) {
  for (size_t c = 0; c < layout.min.size(); ++c) a.add(layout.min[c]).add(layout.span[c]).add(layout.shift[c]);
}

KeyParameters key_parameters(Builder& b, const KeyShape& shape) {
  KeyParameters p;
  for (size_t c = 0; c < shape.columns.size(); ++c) {
    p.min.push_back(b.parameter<U64>("min" + std::to_string(c)));
    p.span.push_back(b.parameter<U64>("span" + std::to_string(c)));
    p.shift.push_back(b.parameter<U64>("shift" + std::to_string(c)));
  }
  return p;
}

Key make_key(Builder& b, const KeyShape& shape, const KeyParameters& p, std::span<const At> at, Condition exists) {
  Key key;
  key.valid = exists.negated ? b.not_(Reg<Pred>{exists.id}) : b.mov(Reg<Pred>{exists.id});
  for (size_t c = 0; c < shape.columns.size(); ++c) {
    const KeyColumn& column = shape.columns[c];
    const Element e = load_element(b, column.type, at[c]);
    Reg<U32> narrow;
    Reg<U64> wide;
    switch (column.type) {
      case Type::f32: {
        b.setp(ptx::Compare::eq, Combine::and_, e.f32, e.f32, key.valid, key.valid);
        narrow = b.bitcast<U32>(e.f32);
        narrow = b.selp(b.constant<U32>(0), narrow, b.setp(ptx::Compare::eq, e.f32, 0.0f));
        break;
      }
      case Type::f64: {
        b.setp(ptx::Compare::eq, Combine::and_, e.f64, e.f64, key.valid, key.valid);
        wide = b.bitcast<U64>(e.f64);
        wide = b.selp(b.constant<U64>(0), wide, b.setp(ptx::Compare::eq, e.f64, 0.0));
        break;
      }
      case Type::i64:
        wide = e.u64;
        if (column.rebased) {
          wide = b.sub(wide, b.ld_param(p.min[c]));
          b.setp(ptx::Compare::le, Combine::and_, wide, b.ld_param(p.span[c]), key.valid, key.valid);
        }
        break;
      default:
        narrow = e.u32;
        if (column.rebased) {
          narrow = b.sub(narrow, b.cvt<U32>(b.ld_param(p.min[c])));
          b.setp(ptx::Compare::le, Combine::and_, narrow, b.cvt<U32>(b.ld_param(p.span[c])), key.valid, key.valid);
        }
    }
    const Reg<U32> shift = c && shape.form != KeyForm::hashed ? b.cvt<U32>(b.ld_param(p.shift[c])) : Reg<U32>();
    switch (shape.form) {
      case KeyForm::narrow:
        if (wide.valid()) narrow = b.cvt<U32>(wide);
        key.narrow = c ? b.or_(key.narrow, b.shl(narrow, shift)) : narrow;
        break;
      case KeyForm::wide:
        if (narrow.valid()) wide = b.cvt<U64>(narrow);
        key.wide = c ? b.or_(key.wide, b.shl(wide, shift)) : wide;
        break;
      case KeyForm::hashed:
        if (narrow.valid()) wide = b.cvt<U64>(narrow);
        key.wide = lookup::mix(b, key.wide, wide);
    }
  }
  return key;
}

Result<void> check_rows(std::span<const Vector> vectors) {
  for (const Vector& v : vectors)
    if (v.capacity > max_rows)
      return input_error("a vector of {} elements is too long for an operator: at most {}", v.capacity, max_rows);
  return {};
}

uint64_t tiles_for(uint64_t rows, uint32_t tile) { return rows / tile + (rows % tile != 0); }

}  // namespace rndn::operators
