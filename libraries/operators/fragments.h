// Pieces of kernels that membership, joins and text matching share beyond emit.h: rows, tiles, keys, hashes. Private to this folder.
//
// Rows are counted in 32 bits (a vector has at most 2^32 - 2 elements), byte offsets in 64.
// Loads beyond the last row are avoided by clamping the row, not by a guard: a clamped row is loaded and then not counted.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "libraries/operators/emit.h"
#include "libraries/operators/library.h"
#include "libraries/operators/api.h"
#include "ptx/lookup/lookup.h"

namespace rndn::operators {

using ptx::F32;
using ptx::F64;
using ptx::LabelId;
using Parameter = Param;

constexpr uint32_t block_threads = 256;
constexpr uint64_t max_rows = 0xFFFFFFFEu;

// Calls f.operator()<T>() with the type in memory.
template <class F>
decltype(auto) with_type(Type type, F&& f) {
  switch (type) {
    case Type::u8: return f.template operator()<ptx::U8>();
    case Type::i8: return f.template operator()<ptx::S8>();
    case Type::i16: return f.template operator()<ptx::S16>();
    case Type::i32: return f.template operator()<S32>();
    case Type::u16: return f.template operator()<ptx::U16>();
    case Type::u32: return f.template operator()<U32>();
    case Type::i64: return f.template operator()<S64>();
    case Type::f32: return f.template operator()<F32>();
    case Type::f64: break;
  }
  return f.template operator()<F64>();
}
// T: unsigned of the element's width; bytes travel in 16-bit registers.
template <class F>
void with_width(uint32_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f.template operator()<ptx::U8>();
    case 2: return f.template operator()<ptx::U16>();
    case 4: return f.template operator()<U32>();
    default: return f.template operator()<U64>();
  }
}

const char* type_name(Type type);
inline bool is_float(Type type) { return type == Type::f32 || type == Type::f64; }
inline bool is_wide(Type type) { return width(type) == 8; }

// Integers of four bytes and fewer are held in 32 bits, extended as their type says.
struct Element {
  Type type{};
  Reg<U32> u32;  // integers of 1, 2 and 4 bytes
  Reg<U64> u64;  // i64
  Reg<F32> f32;
  Reg<F64> f64;
};
// nc: memory that the kernel does not write.
Element load_element(Builder& b, Type type, At at);
// (a compare c) as the specification has it: NaN equals nothing and differs from everything.
Reg<Pred> compare_elements(Builder& b, Compare compare, const Element& a, const Element& c);
Reg<Pred> compare_elements(Builder& b, Compare compare, const Element& a, const Element& c, ptx::Combine combine,
                           Condition with, Reg<Pred> into = {});

// A vector as parameters of a kernel: data, size slot, capacity.
struct VectorParameters {
  Parameter data, slot, capacity;
};
VectorParameters vector_parameters(Builder& b, const std::string& name);
void add(Arguments& a, const Vector& v);
// How many elements there are: what the slot says, never more than the capacity.
Reg<U32> rows_of(Builder& b, Parameter slot, Parameter capacity);

// for (tile = ctaid; tile < tiles; tile += nctaid). body: the tile's number.
template <class Body>
void for_tiles(Builder& b, Reg<U32> tiles, Body&& body) {
  Reg<U32> tile = b.mov(b.special(ptx::SpecialRegister::ctaid_x));
  Reg<U32> step = b.special(ptx::SpecialRegister::nctaid_x);
  LabelId done = b.label(), loop = b.label();
  b.bind(loop);
  b.when(b.setp(ptx::Compare::ge, tile, tiles)).bra_uni(done);
  body(tile);
  b.add(tile, step, tile);
  b.bra(loop);
  b.bind(done);
}
Reg<U32> tiles_of(Builder& b, Reg<U32> rows, uint32_t tile);  // rounded up; no overflow
// A row per thread. body(row, next_row) may jump to `next_row`.
template <class Body>
void for_rows(Builder& b, const Thread& t, Reg<U32> n, Body&& body) {
  for_tiles(b, tiles_of(b, n, block_threads), [&](Reg<U32> tile) {
    const LabelId next_row = b.label();
    Reg<U32> row = b.mad_lo(tile, block_threads, t.tid);
    b.when(b.setp(ptx::Compare::ge, row, n)).bra(next_row);
    body(row, next_row);
    b.bind(next_row);
  });
}

// base + row * bytes
inline At element_at(Builder& b, Reg<U64> base, Reg<U32> row, uint32_t bytes) {
  return At(element_address(b, base, row, bytes));
}

// Tiles in order of an atomic ticket, for look-back. shared: a u32. Every thread gets the number.
Reg<U32> take_tile(Builder& b, ptx::SharedVariable shared, Reg<U64> ticket, const Thread& t);
using lookup::hash;
using lookup::next_place;
using lookup::place_of;
using lookup::tag;

// ---- keys
//
// Rows agree in their key columns exactly when their keys are equal and valid. An integer column contributes element - min, which must not
// exceed `span` for the row to be valid; a float column its bits, -0 as 0, and a NaN makes the row invalid.
enum class KeyForm : uint8_t {
  narrow,  // the columns' contributions shifted together in 32 bits
  wide,    // in 64 bits
  hashed   // 64 bits of hash: equal keys need a comparison of the columns
};
struct KeyColumn {
  Type type{};
  bool rebased = false;  // min and span come as parameters; else 0 and everything
  bool operator==(const KeyColumn&) const = default;
};
struct KeyShape {
  KeyForm form = KeyForm::narrow;
  std::vector<KeyColumn> columns;
  std::string name() const;  // for kernel names
};
// Values of a key's parameters: per column min, span, shift.
struct KeyLayout {
  KeyShape shape;
  std::vector<uint64_t> min, span;
  std::vector<uint32_t> shift;
  uint32_t bits = 0;   // of the whole key
  uint64_t range = 0;  // number of different keys when bits < 64 (all keys lie below), else 0
};
// The layout for keys of `left`; the bounds of its columns are those outside which no row can match.
KeyLayout layout_keys(std::span<const Vector> left);
void add(Arguments& a, const KeyLayout& layout);

struct KeyParameters {
  std::vector<Parameter> min, span, shift;
};
KeyParameters key_parameters(Builder& b, const KeyShape& shape);

struct Key {
  Reg<U32> narrow;
  Reg<U64> wide;  // wide and hashed
  Reg<Pred> valid;
};
// valid starts as `exists`. at[c]: where the row's element of column c is.
Key make_key(Builder& b, const KeyShape& shape, const KeyParameters& p, std::span<const At> at, Condition exists);

Result<void> check_rows(std::span<const Vector> vectors);
uint64_t tiles_for(uint64_t rows, uint32_t tile);

}  // namespace rndn::operators
