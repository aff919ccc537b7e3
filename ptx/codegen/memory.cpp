// Loads and stores of a tile: the one place that knows how elements lie in memory (plain encoding; the seam for others is load_element).
//
// An item is loaded with one access of its width: neighbouring threads take neighbouring elements, so that a warp's access is contiguous, and a
// thread has as many accesses in flight as it has items and columns. Items beyond n are not touched: their registers keep what they held, which
// nothing reads that has an effect. A complex number is one access of 16 bytes, of its two parts side by side.
#include <algorithm>
#include <bit>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {
namespace {

using ptx::Compare;
using ptx::Modifiers;
using ptx::Opcode;
using ptx::Type;

Type memory_type(BasicType type) {
  switch (width_of(type)) {
    case 1: return type == BasicType::boolean ? Type::u8 : Type::s8;
    case 2: return Type::s16;
    case 4: return type == BasicType::f32 ? Type::f32 : Type::s32;
    default: return hir::is_float(type) || type == BasicType::complex ? Type::f64 : Type::s64;
  }
}

// Fresh registers for a loaded element; bools are 0 or 1 in s32 until they are used.
Element storage(Builder& b, BasicType type, Reg<Pred> mask = {}) {
  const Rep rep = rep_of(type);
  if (rep == Rep::complex) {
    Reg<F64> real = b.reg<F64>();
    return complex_element(real, b.reg<F64>(), mask);
  }
  if (rep == Rep::wide) {
    Reg<U64> low = b.reg<U64>();
    return wide_element(low, b.reg<S64>(), mask);
  }
  return {type, with_number(rep == Rep::pred ? Rep::s32 : rep, [&]<class T>() { return Builder::use(b.reg<T>()); }),
          mask};
}

// Sets it to zero.
void clear(Builder& b, const Element& x) {
  if (x.type == BasicType::complex) {
    b.assign(reg<F64>(x), 0.0);
    b.assign(x.imaginary, 0.0);
    return;
  }
  if (hir::is_wide(x.type)) {
    b.assign(reg<S64>(x), 0);
    b.assign(x.high, 0);
    return;
  }
  with_number(rep_of(x.type) == Rep::pred ? Rep::s32 : rep_of(x.type), [&]<class T>() {
    if constexpr (ptx::FloatTag<T>)
      b.assign(reg<T>(x), 0.0);
    else
      b.assign(reg<T>(x), 0);
  });
}

// One access: the operand in memory's terms and how many elements of its type it has.
Modifiers access(Space space, const Element& x) {
  return {.space = space, .vector = static_cast<uint8_t>(width_of(x.type) == 16 ? 2 : 1)};
}
Operand in_memory(Builder& b, const Element& x) {
  if (hir::is_wide(x.type)) return b.vector({x.value, Builder::use(x.high)});
  return x.type == BasicType::complex ? b.vector({x.value, Builder::use(x.imaginary)}) : x.value;
}

void load_element(Builder& b, Space space, const Element& into, Address at) {
  b.emit(Opcode::ld, memory_type(into.type), access(space, into), {in_memory(b, into)}, {at.operand});
}

void store_word(Builder& b, Space space, const Element& x, Address at, Reg<Pred> guard) {
  const Operand value = in_memory(b, x);
  if (guard.valid()) b.when(guard);
  b.emit(Opcode::st, memory_type(x.type), access(space, x), {}, {at.operand, value});
}

int64_t byte_offset(const Emitter& e, uint32_t item, BasicType type) {
  return int64_t{e.local_offset(item)} * width_of(type);
}

}  // namespace

Element storable(Emitter& e, Element x) {
  if (x.stored.valid()) {
    x.value = Builder::use(x.stored);
  } else if (rep_of(x.type) == Rep::pred) {
    x.value = x.immediate() ? in_register(e, {BasicType::i32, x.value, x.mask}).value
                            : Builder::use(e.b.select<S32>(1, 0, reg<Pred>(x)));
  } else {
    x = in_register(e, x);
  }
  x.mask = {};
  return x;
}

Element load_scalar(Emitter& e, BasicType type, Reg<U64> address) {
  Element x = storage(e.b, type);
  load_element(e.b, Space::global, x, Address(address));
  if (type == BasicType::boolean)
    x.value = Builder::use(e.b.setp(Compare::ne, Reg<S32>{static_cast<RegisterId>(x.value.id)}, 0));
  return x;
}

Element gather(Emitter& e, hir::VariableId vector, const Element& at, uint32_t statement, Reg<Pred>* bad,
               Reg<Pred> guard) {
  Builder& b = e.b;
  const BasicType type = e.type_of(vector);
  const Gathered& from = e.gathered.at(vector);
  Reg<Pred> wanted = active(e, at.mask);
  // Unsigned: negative rows are large. One comparison gives the guard of the load and that of the error.
  Reg<Pred> inside = b.reg<Pred>(), outside = b.reg<Pred>();
  Reg<U32> row;
  const auto check = [&](Type type, Operand position, Operand size) {
    if (wanted.valid())
      b.emit(Opcode::setp, type, Modifiers{.compare = Compare::lt, .combine = ptx::Combine::and_},
             {Builder::use(inside), Builder::use(outside)}, {position, size, Builder::use(wanted)});
    else
      b.emit(Opcode::setp, type, Modifiers{.compare = Compare::lt}, {Builder::use(inside), Builder::use(outside)},
             {position, size});
  };
  if (rep_of(at.type) == Rep::s32) {
    row = Builder::as<U32>(reg<S32>(in_register(e, at)));
    check(Type::u32, Builder::use(row), Builder::use(from.size32));
  } else {
    Reg<U64> wide = Builder::as<U64>(reg<S64>(in_register(e, convert(e, at, BasicType::i64))));
    check(Type::u64, Builder::use(wide), Builder::use(from.size));
    row = b.cvt<U32>(wide);
  }
  if (!bad) {
    report_error(e, outside, statement, RuntimeError::index_out_of_range);
  } else {
    *bad = bad->valid() ? b.or_(*bad, outside) : outside;
  }
  Reg<U64> address = b.mad_wide(row, width_of(type), from.data);
  Element x = storage(b, type, at.mask);
  clear(b, x);
  b.when(both(e, inside, guard));
  load_element(b, Space::global, x, Address(address));
  if (type == BasicType::boolean && bad) x.type = BasicType::i8;
  if (x.type == BasicType::boolean) {
    x.stored = reg<S32>(x);
    x.value = Builder::use(b.setp(Compare::ne, x.stored, 0));
  }
  return x;
}

Element load_where(Emitter& e, BasicType type, Reg<U64> address, Reg<Pred> guard) {
  Element x = storage(e.b, type);
  clear(e.b, x);
  if (guard.valid()) e.b.when(guard);
  load_element(e.b, Space::global, x, Address(address));
  if (type == BasicType::boolean) x.value = Builder::use(e.b.setp(Compare::ne, reg<S32>(x), 0));
  return x;
}

void store_element(Emitter& e, const Element& x, Reg<U64> address, int64_t offset, Reg<Pred> guard) {
  store_word(e.b, Space::global, x, Address(address, offset), guard);
}

void store_shared(Emitter& e, const Element& x, Reg<U32> address, int64_t offset, Reg<Pred> guard) {
  store_word(e.b, Space::shared, x, Address(address, offset), guard);
}

void copy_element(Emitter& e, BasicType type, Address from, Address to, Reg<Pred> guard) {
  const Element x = storage(e.b, type);
  clear(e.b, x);  // set on every path, or it would count as live before
  e.b.when(guard);
  load_element(e.b, Space::shared, x, from);
  store_word(e.b, Space::global, x, to, guard);
}

void start_input_items(Emitter& e, bool zero) {
  for (Input& in : e.inputs) {
    in.items.clear();
    if (!in.wanted) continue;
    for (uint32_t i = 0; i < e.items; ++i) {
      in.items.push_back(storage(e.b, in.type));
      if (zero) clear(e.b, in.items[i]);
    }
  }
}

void load_input(Emitter& e, const Input& in, uint32_t item, int64_t offset, Reg<Pred> guard) {
  if (guard.valid()) e.b.when(guard);
  load_element(e.b, Space::global, in.items[item], Address(in.pointer, offset));
}

void load_all_items(Emitter& e) {
  for (uint32_t i = 0; i < e.items; ++i)
    for (const Input& in : e.inputs)
      if (in.wanted) load_input(e, in, i, byte_offset(e, i, in.type), {});
}

Reg<Pred> within(Emitter& e, uint32_t item) {
  if (item < e.within.size()) return e.within[item];
  return e.b.setp(Compare::gt, e.room, static_cast<int32_t>(e.local_offset(item)));
}

void load_guarded_inputs(Emitter& e) {
  for (uint32_t i = 0; i < e.items; ++i)
    for (const Input& in : e.inputs)
      if (in.wanted && in.guard)
        load_input(e, in, i, byte_offset(e, i, in.type),
                   both(e, within(e, i), e.b.setp(Compare::ne, e.guards[*in.guard].items[i], 0)));
}

void load_items(Emitter& e) {
  Builder& b = e.b;
  e.within.clear();
  if (std::none_of(e.inputs.begin(), e.inputs.end(), [](const Input& in) { return in.wanted; })) return;
  constexpr uint32_t kept = 4;  // more predicates would be in the way
  for (uint32_t i = 0; i < e.items; ++i) {
    Reg<Pred> inside = b.setp(Compare::gt, e.room, static_cast<int32_t>(e.local_offset(i)));
    if (e.items <= kept) e.within.push_back(inside);
    for (const Input& in : e.inputs)
      if (in.wanted && !in.guard) load_input(e, in, i, byte_offset(e, i, in.type), inside);
  }
}

void store_outputs(Emitter& e) {
  for (uint32_t i = 0; i < e.items; ++i) {
    Reg<Pred> inside;
    for (const Output& out : e.outputs) {
      if (out.items.empty()) continue;
      if (!inside.valid()) inside = within(e, i);
      store_element(e, out.items[i], out.pointer, byte_offset(e, i, out.type), inside);
    }
  }
}

}  // namespace rndn::codegen
