// Loads and stores of a tile: the one place that knows how elements lie in memory (plain encoding; the seam for others is
// load_chunk, which gets a chunk's bytes and unpacks them).
//
// A full tile is loaded with one access per chunk of `vector` elements: 2 to 16 bytes, aligned, since buffers are 256-byte aligned and
// tiles start at multiples of the chunk. The last, partial tile is loaded element by element under a predicate; both paths fill the same
// registers, so the statements that follow exist once. Nothing beyond the vector's end is ever touched.
// Bytes and halfwords travel packed in 32-bit words and are unpacked by shifts.
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
    default: return type == BasicType::f64 ? Type::f64 : Type::s64;
  }
}

// A fresh register for a loaded element; bools are 0 or 1 in s32 until they are used.
Operand storage_register(Builder& b, BasicType type) {
  const Rep rep = rep_of(type);
  return with_number(rep == Rep::pred ? Rep::s32 : rep, [&]<class T>() { return Builder::use(b.reg<T>()); });
}

void load_element(Builder& b, BasicType type, Operand into, Address at) {
  b.emit(Opcode::ld, memory_type(type), Modifiers{.space = Space::global}, {into}, {at.operand});
}

// Bytes and halfwords of a chunk that are loaded but not yet unpacked.
struct Packed {
  BasicType type{};
  std::vector<Operand> into;
  std::vector<Reg<S32>> words;
};

// Issues the accesses, of up to 16 bytes, for the neighbours `into`. What has to be unpacked goes to `packed`: the loads of all columns
// are issued before the first of them is waited for.
void load_chunk(Emitter& e, BasicType type, const std::vector<Operand>& into, Address at, std::vector<Packed>& packed) {
  Builder& b = e.b;
  const uint32_t width = width_of(type), count = static_cast<uint32_t>(into.size());
  if (width >= 4) {
    const uint32_t piece = std::min(count, 16 / width);
    for (uint32_t k = 0; k < count; k += piece) {
      Operand list = into[k];
      if (piece == 2) list = b.vector({into[k], into[k + 1]});
      if (piece == 4) list = b.vector({into[k], into[k + 1], into[k + 2], into[k + 3]});
      b.emit(Opcode::ld, memory_type(type), Modifiers{.space = Space::global, .vector = static_cast<uint8_t>(piece)},
             {list}, {at.plus(int64_t{k} * width).operand});
    }
    return;
  }
  if (count == 1) return load_element(b, type, into[0], at);
  Packed p{type, into, {}};
  switch (width * count) {
    case 2:
      p.words.push_back(b.reg<S32>());
      b.emit(Opcode::ld, Type::u16, Modifiers{.space = Space::global}, {Builder::use(p.words[0])}, {at.operand});
      break;
    case 4: p.words.push_back(b.ld<S32>(Space::global, at)); break;
    case 8: {
      const auto words = b.ld_v2<S32>(Space::global, at);
      p.words.assign(words.begin(), words.end());
      break;
    }
    default: {
      const auto words = b.ld_v4<S32>(Space::global, at);
      p.words.assign(words.begin(), words.end());
      break;
    }
  }
  packed.push_back(std::move(p));
}

void unpack(Emitter& e, const Packed& p) {
  Builder& b = e.b;
  const uint32_t width = width_of(p.type);
  for (uint32_t k = 0; k < p.into.size(); ++k) {
    Reg<S32> word = p.words[k * width / 4];
    Reg<S32> target{static_cast<RegisterId>(p.into[k].id)};
    const uint32_t bit = k * width * 8 % 32, bits = width * 8;
    if (p.type == BasicType::boolean) {
      b.and_(word, 1 << bit, target);  // whoever reads it only asks for non-zero
    } else if (bit + bits == 32) {
      b.shr(word, bit, target);
    } else {
      b.shr(b.shl(word, 32 - bits - bit), 32 - bits, target);
    }
  }
}

void store_word(Builder& b, Type type, Operand value, Address at, Reg<Pred> guard) {
  if (guard.valid()) b.when(guard);
  b.emit(Opcode::st, type, Modifiers{.space = Space::global}, {}, {at.operand, value});
}

// Accesses of up to 16 bytes for `count` storable neighbours.
void store_chunk(Emitter& e, BasicType type, const Element* items, uint32_t count, Address at) {
  Builder& b = e.b;
  const uint32_t width = width_of(type);
  std::vector<Operand> values;
  Type stored = memory_type(type);
  uint32_t stored_width = width;
  if (width >= 4 || count == 1) {
    for (uint32_t k = 0; k < count; ++k) values.push_back(items[k].value);
  } else {
    std::vector<Reg<S32>> words;
    for (uint32_t k = 0; k < count; ++k) {
      Reg<S32> part = b.and_(reg<S32>(items[k]), width == 1 ? 0xFF : 0xFFFF);
      const uint32_t bit = k * width * 8 % 32;
      if (bit == 0) {
        words.push_back(part);
      } else {
        words.back() = b.or_(words.back(), b.shl(part, bit));
      }
    }
    if (width * count == 2) return store_word(b, Type::u16, Builder::use(words[0]), at, {});
    for (Reg<S32> word : words) values.push_back(Builder::use(word));
    stored = Type::s32;
    stored_width = 4;
  }
  const uint32_t n = static_cast<uint32_t>(values.size()), piece = std::min(n, std::max(1u, 16 / stored_width));
  for (uint32_t k = 0; k < n; k += piece) {
    Operand list = values[k];
    if (piece == 2) list = b.vector({values[k], values[k + 1]});
    if (piece == 4) list = b.vector({values[k], values[k + 1], values[k + 2], values[k + 3]});
    b.emit(Opcode::st, stored, Modifiers{.space = Space::global, .vector = static_cast<uint8_t>(piece)}, {},
           {at.plus(int64_t{k} * stored_width).operand, list});
  }
}

int64_t byte_offset(const Emitter& e, uint32_t item, BasicType type) {
  return int64_t{e.local_offset(item)} * width_of(type);
}

}  // namespace

Element storable(Emitter& e, Element x) {
  if (rep_of(x.type) == Rep::pred) {
    x.value = x.immediate() ? in_register(e, {BasicType::i32, x.value, x.mask}).value
                            : Builder::use(e.b.select<S32>(1, 0, reg<Pred>(x)));
    return x;
  }
  return in_register(e, x);
}

Element load_scalar(Emitter& e, BasicType type, Reg<U64> address) {
  Element x{type, storage_register(e.b, type), {}};
  load_element(e.b, type, x.value, Address(address));
  if (type == BasicType::boolean)
    x.value = Builder::use(e.b.setp(Compare::ne, Reg<S32>{static_cast<RegisterId>(x.value.id)}, 0));
  return x;
}

Element gather(Emitter& e, hir::VariableId vector, const Element& at, uint32_t statement, Reg<Pred>* bad) {
  Builder& b = e.b;
  const BasicType type = e.type_of(vector);
  const Gathered& from = e.gathered.at(vector);
  Reg<U64> row = Builder::as<U64>(reg<S64>(in_register(e, convert(e, at, BasicType::i64))));
  Reg<Pred> wanted = active(e, at.mask);
  Reg<Pred> inside = b.setp(Compare::lt, row, from.size);  // unsigned: negative ones are large
  if (!bad) {
    report_error(e, both(e, b.not_(inside), wanted), statement, RuntimeError::index_out_of_range);
  } else {
    Reg<Pred> outside = both(e, b.not_(inside), wanted);
    *bad = bad->valid() ? b.or_(*bad, outside) : outside;
  }
  const uint32_t shift = static_cast<uint32_t>(std::countr_zero(width_of(type)));
  Reg<U64> address = b.add(from.data, shift ? b.shl(row, shift) : row);
  Element x{type, storage_register(b, type), at.mask};
  with_number(rep_of(type) == Rep::pred ? Rep::s32 : rep_of(type), [&]<class T>() {
    if constexpr (ptx::FloatTag<T>)
      b.assign(reg<T>(x), 0.0);
    else
      b.assign(reg<T>(x), 0);
  });
  b.when(both(e, inside, wanted));
  load_element(b, type, x.value, Address(address));
  if (type == BasicType::boolean && bad) x.type = BasicType::i8;
  if (x.type == BasicType::boolean) x.value = Builder::use(b.setp(Compare::ne, reg<S32>(x), 0));
  return x;
}

void store_element(Emitter& e, const Element& x, Reg<U64> address, int64_t offset, Reg<Pred> guard) {
  store_word(e.b, memory_type(x.type), x.value, Address(address, offset), guard);
}

void store_shared(Emitter& e, const Element& x, Reg<U32> address, Reg<Pred> guard) {
  e.b.when(guard);
  e.b.emit(Opcode::st, memory_type(x.type), Modifiers{.space = Space::shared}, {}, {Address(address).operand, x.value});
}

void copy_element(Emitter& e, BasicType type, Reg<U32> from, Reg<U64> to, int64_t offset, Reg<Pred> guard) {
  const Operand value = storage_register(e.b, type);
  with_number(rep_of(type) == Rep::pred ? Rep::s32 : rep_of(type), [&]<class T>() {
    // Set on every path, or it would count as live before.
    if constexpr (ptx::FloatTag<T>)
      e.b.assign(Reg<T>{static_cast<RegisterId>(value.id)}, 0.0);
    else
      e.b.assign(Reg<T>{static_cast<RegisterId>(value.id)}, 0);
  });
  e.b.when(guard);
  e.b.emit(Opcode::ld, memory_type(type), Modifiers{.space = Space::shared}, {value}, {Address(from, offset).operand});
  store_word(e.b, memory_type(type), value, Address(to, offset), guard);
}

void start_input_items(Emitter& e) {
  for (Input& in : e.inputs) {
    in.items.clear();
    if (!in.wanted) continue;
    for (uint32_t i = 0; i < e.vector * e.chunks; ++i)
      in.items.push_back({in.type, storage_register(e.b, in.type), {}});
  }
}

void load_full_tile(Emitter& e) {
  std::vector<Packed> packed;
  for (uint32_t c = 0; c < e.chunks; ++c)
    for (Input& in : e.inputs) {
      if (!in.wanted) continue;
      std::vector<Operand> into;
      for (uint32_t k = 0; k < e.vector; ++k) into.push_back(in.items[c * e.vector + k].value);
      load_chunk(e, in.type, into, Address(in.pointer, byte_offset(e, c * e.vector, in.type)), packed);
    }
  for (const Packed& p : packed) unpack(e, p);
}

void load_partial_tile(Emitter& e) {
  Builder& b = e.b;
  const uint32_t items = e.vector * e.chunks;
  for (Input& in : e.inputs)
    for (uint32_t i = 0; i < items && in.wanted; ++i)
      with_number(rep_of(in.type) == Rep::pred ? Rep::s32 : rep_of(in.type), [&]<class T>() {
        if constexpr (ptx::FloatTag<T>)
          b.assign(reg<T>(in.items[i]), 0.0);
        else
          b.assign(reg<T>(in.items[i]), 0);
      });
  for (uint32_t i = 0; i < items; ++i) {
    Reg<Pred> inside = b.setp(Compare::gt, e.room, static_cast<int32_t>(e.local_offset(i)));
    for (Input& in : e.inputs) {
      if (!in.wanted) continue;
      b.when(inside);
      load_element(b, in.type, in.items[i].value, Address(in.pointer, byte_offset(e, i, in.type)));
    }
  }
}

void load_inputs(Emitter& e) {
  if (std::none_of(e.inputs.begin(), e.inputs.end(), [](const Input& in) { return in.wanted; })) return;
  Builder& b = e.b;
  start_input_items(e);
  const ptx::LabelId partial = b.label(), loaded = b.label();
  b.unless(e.full).bra(partial);
  load_full_tile(e);
  b.bra(loaded);
  b.bind(partial);
  load_partial_tile(e);
  b.bind(loaded);
}

void store_outputs(Emitter& e) {
  Builder& b = e.b;
  if (std::none_of(e.outputs.begin(), e.outputs.end(), [](const Output& out) { return out.kind == Output::vector; }))
    return;
  const uint32_t items = e.vector * e.chunks;
  const ptx::LabelId partial = b.label(), stored = b.label();
  b.unless(e.full).bra(partial);
  for (const Output& out : e.outputs) {
    if (out.kind != Output::vector) continue;
    for (uint32_t c = 0; c < e.chunks; ++c)
      store_chunk(e, out.type, &out.items[c * e.vector], e.vector,
                  Address(out.pointer, byte_offset(e, c * e.vector, out.type)));
  }
  b.bra(stored);
  b.bind(partial);
  for (uint32_t i = 0; i < items; ++i) {
    Reg<Pred> inside = b.setp(Compare::gt, e.room, static_cast<int32_t>(e.local_offset(i)));
    for (const Output& out : e.outputs)
      if (out.kind == Output::vector) store_element(e, out.items[i], out.pointer, byte_offset(e, i, out.type), inside);
  }
  b.bind(stored);
}

}  // namespace rndn::codegen
