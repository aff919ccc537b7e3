// Loads and stores of a tile, and elements at computed positions. How elements lie in memory is what ptx/encodings knows: here they are registers
// that a load fills (Words) or values (Element).
//
// An item is loaded with accesses of its own: neighbouring threads take neighbouring elements, so that a warp's access is contiguous, and a
// thread has as many accesses in flight as it has items and columns. What was loaded is restored where it is used. Items beyond n are not touched:
// their registers keep what they held, which nothing reads that has an effect.
#include <algorithm>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {
namespace {

using encodings::find;
using encodings::Words;
using encodings::find_addressed;
using ptx::Compare;
using ptx::Modifiers;
using ptx::Opcode;
using ptx::Type;

constexpr Stored plain{};

// What was loaded, as an element; a bool is 0 or 1 and has no value yet.
Element restored(Emitter& e, BasicType type, const Stored& stored, const Words& loaded, Reg<Pred> mask = {}) {
  const Words w = find(stored).decode(e.b, type, stored, loaded);
  const Rep rep = rep_of(type);
  if (rep == Rep::complex) return complex_element(Reg<F64>{w.at[0]}, Reg<F64>{w.at[1]}, mask);
  if (rep == Rep::wide) {
    Element x = wide_element(Reg<U64>{w.at[0]}, Reg<S64>{w.at[1]}, mask);
    x.type = type;
    return x;
  }
  Element x{type, Builder::use(Reg<S32>{w.at[0]}), mask};
  x.low = w.low;
  return x;
}

Words words_of(const Element& x) {
  const RegisterId first = static_cast<RegisterId>(x.value.id);
  if (x.type == BasicType::complex) return Words(first, x.imaginary.id);
  if (hir::is_wide(x.type)) return Words(first, x.high.id);
  return Words(first);
}

}  // namespace

Stored Emitter::stored(hir::VariableId parameter) const {
  for (size_t k = 0; k < function.parameters.size() && k < encodings.parameters.size(); ++k)
    if (function.parameters[k] == parameter) return encodings.parameters[k];
  return {};
}

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

Element load_scalar(Emitter& e, BasicType type, const Stored& stored, Reg<U64> address) {
  const encodings::Encoding& form = find(stored);
  Words w = form.fresh(e.b, type, stored);
  const Cursor at = form.addressed() ? Cursor{address, {}} : form.place(e.b, type, stored, address, e.b.constant<U32>(0));
  form.load(e.b, type, stored, at, 0, {}, w);
  Element x = restored(e, type, stored, w);
  if (type == BasicType::boolean)
    x.value = Builder::use(e.b.setp(Compare::ne, Reg<S32>{static_cast<RegisterId>(x.value.id)}, 0));
  return x;
}

Element gather(Emitter& e, hir::VariableId vector, const Element& at, uint32_t statement, Reg<Pred>* bad,
               Reg<Pred> guard, bool is_inside) {
  Builder& b = e.b;
  const BasicType type = e.type_of(vector);
  const Gathered& from = e.gathered.at(vector);
  Reg<Pred> wanted = active(e, at.mask);
  // Unsigned: negative rows are large. One comparison gives the guard of the load and that of the error.
  Reg<Pred> inside = is_inside ? wanted : b.reg<Pred>(), outside = is_inside ? Reg<Pred>() : b.reg<Pred>();
  Reg<U32> row;
  const auto check = [&](Type type, Operand position, Operand size) {
    if (is_inside) return;
    if (wanted.valid())
      b.emit(Opcode::setp, type, Modifiers{.compare = Compare::lt, .combine = ptx::Combine::and_},
             {Builder::use(inside), Builder::use(outside)}, {position, size, Builder::use(wanted)});
    else
      b.emit(Opcode::setp, type, Modifiers{.compare = Compare::lt}, {Builder::use(inside), Builder::use(outside)},
             {position, size});
  };
  if (rep_of(at.type) == Rep::s32 || (at.low.valid() && from.size32.valid())) {
    row = Builder::as<U32>(at.low.valid() ? at.low : reg<S32>(in_register(e, at)));
    check(Type::u32, Builder::use(row), Builder::use(from.size32));
  } else {
    Reg<U64> wide = Builder::as<U64>(reg<S64>(in_register(e, convert(e, at, BasicType::i64))));
    check(Type::u64, Builder::use(wide), Builder::use(from.size));
    row = b.cvt<U32>(wide);
  }
  if (!is_inside && !bad) report_error(e, outside, statement, RuntimeError::index_out_of_range);
  if (!is_inside && bad) *bad = bad->valid() ? b.or_(*bad, outside) : outside;
  const encodings::Encoding& form = find(from.stored);
  const Cursor cursor = form.place(b, type, from.stored, from.data, row);
  Words w = form.fresh(b, type, from.stored);
  form.clear(b, type, from.stored, w);
  form.load(b, type, from.stored, cursor, 0, both(e, inside, guard), w);
  Element x = restored(e, type, from.stored, w, at.mask);
  if (type == BasicType::boolean && bad) x.type = BasicType::i8;
  if (x.type == BasicType::boolean) {
    x.stored = reg<S32>(x);
    x.value = Builder::use(b.setp(Compare::ne, x.stored, 0));
  }
  return x;
}

Element load_where(Emitter& e, BasicType type, const Stored& stored, Reg<U64> base, Reg<U32> row, Reg<Pred> guard) {
  const encodings::Encoding& form = find(stored);
  const Cursor at = form.place(e.b, type, stored, base, row);
  Words w = form.fresh(e.b, type, stored);
  form.clear(e.b, type, stored, w);
  form.load(e.b, type, stored, at, 0, guard, w);
  Element x = restored(e, type, stored, w);
  if (type == BasicType::boolean) x.value = Builder::use(e.b.setp(Compare::ne, reg<S32>(x), 0));
  return x;
}

Cursor place(Emitter& e, BasicType type, const Stored& stored, Reg<U64> base, Reg<U32> row) {
  return find(stored).place(e.b, type, stored, base, row);
}

void advance(Emitter& e, BasicType type, const Stored& stored, Cursor& at, uint32_t rows) {
  find(stored).advance(e.b, type, stored, at, rows);
}

uint32_t stored_bytes(const Output& out) { return find_addressed(out.stored).width(out.type, out.stored); }

void store_element(Emitter& e, const Element& x, Reg<U64> address, Reg<Pred> guard) {
  find_addressed(plain).store(e.b, x.type, plain, Space::global, Address(address), guard, words_of(x));
}

void store_element(Emitter& e, const Output& out, const Element& x, int64_t beyond, Reg<Pred> guard) {
  const encodings::Addressed& form = find_addressed(out.stored);
  const Words w = form.encode(e.b, out.type, out.stored, words_of(x));
  form.store(e.b, out.type, out.stored, Space::global, Address(out.at.pointer, beyond * stored_bytes(out)), guard, w);
}

void store_shared(Emitter& e, const Output& out, const Element& x, Reg<U32> address, int64_t offset, Reg<Pred> guard) {
  const encodings::Addressed& form = find_addressed(out.stored);
  const Words w = form.encode(e.b, out.type, out.stored, words_of(x));
  form.store(e.b, out.type, out.stored, Space::shared, Address(address, offset), guard, w);
}

void copy_element(Emitter& e, const Output& out, Address from, Address to, Reg<Pred> guard) {
  const encodings::Addressed& form = find_addressed(out.stored);
  const Words w = form.fresh(e.b, out.type, out.stored);
  form.clear(e.b, out.type, out.stored, w);  // set on every path, or it would count as live before
  form.load(e.b, out.type, out.stored, Space::shared, from, guard, w);
  form.store(e.b, out.type, out.stored, Space::global, to, guard, w);
}

void start_input_items(Emitter& e, bool zero) {
  for (Input& in : e.inputs) {
    in.items.clear();
    if (!in.wanted) continue;
    for (uint32_t i = 0; i < e.items; ++i) {
      const encodings::Encoding& form = find(in.stored);
      in.items.push_back(form.fresh(e.b, in.type, in.stored));
      if (zero) form.clear(e.b, in.type, in.stored, in.items[i]);
    }
  }
}

void load_input(Emitter& e, Input& in, uint32_t item, int64_t beyond, Reg<Pred> guard) {
  find(in.stored).load(e.b, in.type, in.stored, in.at, beyond, guard, in.items[item]);
  in.loaded = true;
}

Element input_item(Emitter& e, const Input& in, uint32_t item) {
  return restored(e, in.type, in.stored, in.items[item]);
}

// Of an item of the loop, whose place in the tile, or number, is known.
static void load_item(Emitter& e, Input& in, uint32_t item, Reg<Pred> guard) {
  if (e.numbers.empty()) return load_input(e, in, item, e.local_offset(item), guard);
  in.at = place(e, in.type, in.stored, e.b.ld_param(in.data), e.numbers[item]);
  load_input(e, in, item, 0, guard);
}

void load_all_items(Emitter& e) {
  for (Input& in : e.inputs) in.loaded = false;
  for (uint32_t i = 0; i < e.items; ++i)
    for (Input& in : e.inputs)
      if (in.wanted) load_input(e, in, i, e.local_offset(i), {});
}

Reg<Pred> within(Emitter& e, uint32_t item) {
  if (item < e.within.size()) return e.within[item];
  return e.b.setp(Compare::gt, e.room, static_cast<int32_t>(e.local_offset(item)));
}

void load_guarded_inputs(Emitter& e, uint32_t guard) {
  for (uint32_t i = 0; i < e.items; ++i)
    for (Input& in : e.inputs)
      if (in.wanted && in.guard == guard) load_item(e, in, i, e.b.setp(Compare::ne, e.guards[guard].items[i], 0));
}

void load_items(Emitter& e) {
  Builder& b = e.b;
  for (Input& in : e.inputs) in.loaded = false;
  if (!e.numbers.empty()) {  // where there are none, they are 0, of an element that is there
    for (uint32_t i = 0; i < e.items; ++i)
      for (Input& in : e.inputs)
        if (in.wanted && !in.guard)
          load_item(e, in, i, {});
        else if (in.wanted)
          find(in.stored).clear(b, in.type, in.stored, in.items[i]);
    return;
  }
  e.within.clear();
  if (std::none_of(e.inputs.begin(), e.inputs.end(), [](const Input& in) { return in.wanted; })) return;
  constexpr uint32_t kept = 4;  // more predicates would be in the way
  for (uint32_t i = 0; i < e.items; ++i) {
    Reg<Pred> inside = b.setp(Compare::gt, e.room, static_cast<int32_t>(e.local_offset(i)));
    if (e.items <= kept) e.within.push_back(inside);
    for (Input& in : e.inputs)
      if (in.wanted && !in.guard) load_input(e, in, i, e.local_offset(i), inside);
  }
}

void store_outputs(Emitter& e) {
  for (uint32_t i = 0; i < e.items; ++i) {
    Reg<Pred> inside;
    for (const Output& out : e.outputs) {
      if (out.items.empty()) continue;
      if (!inside.valid()) inside = within(e, i);
      store_element(e, out, out.items[i], e.local_offset(i), inside);
    }
  }
}

}  // namespace rndn::codegen
