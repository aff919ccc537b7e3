// Accumulators of aggregates over groups, and their code. Private to this folder.
//
// Integers narrower than 64 bits are compared in 32 bits and added up in 64; floats are compared in their own type and added up in f64; an average is
// a sum and a count, divided at the end, both in f64 for floats and 64-bit integers. Every combination has a fixed order (left operand: earlier rows), so that float results repeat bit for bit.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "libraries/operators/emit.h"
#include "libraries/operators/fragments.h"

namespace rndn::operators {

enum class Held : uint8_t { s32, s64, f32, f64 };
inline uint32_t width(Held held) { return held == Held::s32 || held == Held::f32 ? 4 : 8; }

struct Accumulator {
  // distinct: rows that differ from the one before them; row: the smallest row. Both where rows are sorted by a value within their group.
  enum Op : uint8_t { add, min, max, count, distinct, row } op{};
  Held held{};          // count, distinct, row: s64
  uint32_t column = 0;  // whose elements; not for those
  bool operator==(const Accumulator&) const = default;
};

// What kernels are built for: the types of the value columns, and what is made of them.
struct AggregateShape {
  std::vector<Type> columns;
  std::vector<Accumulator> accumulators;
  std::string name() const {
    std::string out;
    for (Type t : columns) out += std::string("_") + type_name(t);
    for (const Accumulator& a : accumulators)
      out += std::string("_") + "algndr"[a.op] + std::to_string(static_cast<int>(a.held)) + std::to_string(a.column);
    return out;
  }
  bool has_distinct() const {
    for (const Accumulator& a : accumulators)
      if (a.op == Accumulator::distinct) return true;
    return false;
  }
};

// Calls f.operator()<T>() with the type of the accumulator's registers.
template <class F>
decltype(auto) with_held(Held held, F&& f) {
  switch (held) {
    case Held::s32: return f.template operator()<S32>();
    case Held::s64: return f.template operator()<S64>();
    case Held::f32: return f.template operator()<F32>();
    case Held::f64: break;
  }
  return f.template operator()<F64>();
}

template <class T>
typename T::native identity_of(Accumulator::Op op) {
  using Limits = std::numeric_limits<typename T::native>;
  switch (op) {
    case Accumulator::row:
    case Accumulator::min: return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case Accumulator::max: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    default: return 0;
  }
}

// x: of the earlier rows.
template <class T>
Reg<T> combine(Builder& b, Accumulator::Op op, Reg<T> x, Reg<T> y, Reg<T> into = {}) {
  switch (op) {
    case Accumulator::row:
    case Accumulator::min: return b.min(x, y, into);
    case Accumulator::max: return b.max(x, y, into);
    default: break;
  }
  if constexpr (ptx::FloatTag<T>)
    return b.add_rn(x, y, into);
  else
    return b.add(x, y, into);
}

template <class T>
Reg<T> shuffle(Builder& b, ShuffleMode mode, Reg<T> x, ptx::Value<U32> lane, uint32_t clamp) {
  if constexpr (T::size == 8)
    return b.shfl_sync_64(mode, x, lane, clamp);
  else
    return b.shfl_sync(mode, x, lane, clamp);
}

// An element as its accumulator takes it.
template <class T>
Reg<T> held_element(Builder& b, const Element& e) {
  if constexpr (std::same_as<T, F32>) {
    return e.f32;
  } else if constexpr (std::same_as<T, F64>) {
    return e.type == Type::f64 ? e.f64 : e.type == Type::f32 ? b.cvt<F64>(e.f32) : b.cvt<F64>(Builder::as<S64>(e.u64));
  } else if constexpr (std::same_as<T, S64>) {
    return e.type == Type::i64 ? Builder::as<S64>(e.u64) : b.cvt<S64>(Builder::as<S32>(e.u32));
  } else {
    return Builder::as<S32>(e.u32);
  }
}

// acc = acc combined with the element of its column, or counted, where `when` holds.
inline void accumulate(Builder& b, const Accumulator& a, ptx::RegisterId acc, const std::vector<Element>& elements,
                       Condition when) {
  with_held(a.held, [&]<class T>() {
    const Reg<T> into{acc};
    if constexpr (std::same_as<T, S64>)
      if (a.op == Accumulator::count) {
        b.when(when).add(into, 1, into);
        return;
      }
    const Reg<T> x = held_element<T>(b, elements[a.column]);
    b.when(when);
    combine(b, a.op, into, x, into);
  });
}

inline ptx::RegisterId identity_register(Builder& b, const Accumulator& a) {
  ptx::RegisterId id{};
  with_held(a.held, [&]<class T>() { id = b.constant<T>(identity_of<T>(a.op)).id; });
  return id;
}

// All lanes get the warp's combination: a butterfly.
template <class T>
void combine_warp(Builder& b, Accumulator::Op op, Reg<T> x) {
  for (uint32_t distance = 16; distance > 0; distance /= 2)
    combine(b, op, x, shuffle(b, ShuffleMode::bfly, x, distance, 31u), x);
}

// Value columns and accumulators in device memory.
struct AggregateInput {
  AggregateShape shape;
  std::vector<Address> columns;  // elements, by row
};

}  // namespace rndn::operators
