// Accumulators of aggregates over groups, and their code. Private to this folder.
//
// Integers narrower than 64 bits are compared in 32 bits and added up in 64; floats are compared in their own type and added up in f64; an average is
// a sum and a count, divided at the end, both in f64 for floats and 64-bit integers. Sums in f64 are exact and rounded once (ptx/sums/exact_sum.h): three
// accumulators each, and a result.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "libraries/operators/emit.h"
#include "libraries/operators/fragments.h"
#include "ptx/sums/exact_sum.h"

namespace rndn::operators {

enum class Held : uint8_t { s32, s64, f32, f64 };
inline uint32_t width(Held held) { return held == Held::s32 || held == Held::f32 ? 4 : 8; }

struct Accumulator {
  // distinct: rows that differ from the one before them; row: the smallest row. Both where rows are sorted by a value within their group.
  enum Op : uint8_t { add, min, max, count, distinct, row } op{};
  Held held{};          // count, distinct, row: s64
  uint32_t column = 0;  // whose elements; not for those
  sums::Round round = sums::Round::nearest;  // of a sum in f64
  uint8_t part = 0;                          // of one: high, low, error
  bool sums_floats() const { return op == add && held == Held::f64; }
  // It completes a result: of a sum of floats the last part.
  bool completes() const { return !sums_floats() || part + 1u == sums::parts; }
  bool operator==(const Accumulator&) const = default;
};

// What kernels are built for: the types of the value columns, and what is made of them.
struct AggregateShape {
  std::vector<Type> columns;
  std::vector<Accumulator> accumulators;
  std::string name() const {
    std::string out;
    for (Type t : columns) out += std::string("_") + type_name(t);
    for (const Accumulator& a : accumulators) {
      if (a.part > 0) continue;
      out += std::string("_") + "algndr"[a.op] + std::to_string(static_cast<int>(a.held)) + std::to_string(a.column);
      if (a.round == sums::Round::odd) out += "o";
    }
    return out;
  }
  bool sums_floats() const {
    for (const Accumulator& a : accumulators)
      if (a.sums_floats()) return true;
    return false;
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

// acc = acc combined with the element of its column, or counted, where `when` holds. Not for sums of floats.
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

// --- Several accumulators, by a register for each. Called for all of them in order; a sum of floats is complete with its last part.

using Registers = std::vector<ptx::RegisterId>;
inline sums::ExactSum sum_of(const Registers& x, size_t k) { return {{x[k]}, {x[k + 1]}, {x[k + 2]}}; }

// What kernels that sum floats report: where, and whether the thread met numbers of which sums overflow.
struct SumFlags {
  Param parameter{};
  Reg<ptx::Pred> huge;
};
inline SumFlags sum_flags(Builder& b, const AggregateShape& shape) {
  return shape.sums_floats() ? SumFlags{b.parameter<U64>("sum_flags"), {}} : SumFlags{};
}
inline void start_sums(Builder& b, const AggregateShape& shape, SumFlags& flags) {
  if (shape.sums_floats()) flags.huge = b.constant<ptx::Pred>(false);
}
inline void report_sums(Builder& b, const SumFlags& flags) {
  if (flags.huge.valid()) sums::report_huge(b, flags.huge, b.ld_param(flags.parameter));
}

// The element of its column is added to the sum that begins with accumulator k, where `when` holds.
inline void add_to_sum(Builder& b, const Accumulator& a, const sums::ExactSum& sum, const std::vector<Element>& elements,
                       const SumFlags& flags, Reg<ptx::Pred> when, sums::Errors errors = sums::Errors::of_sum) {
  const Element& e = elements[a.column];
  if (e.type == Type::i64) return sums::add(b, sum, Builder::as<S64>(e.u64), when, errors);
  Reg<F64> x = held_element<F64>(b, e);
  if (e.type == Type::f64) {
    if (when.valid()) x = b.selp(x, b.constant<F64>(0.0), when);
    sums::note_huge(b, x, flags.huge);
    when = {};
  }
  sums::add(b, sum, x, when, errors);
}
// The sum with that element, in new registers.
inline sums::ExactSum sum_with(Builder& b, const Accumulator& a, const sums::ExactSum& sum,
                               const std::vector<Element>& elements, const SumFlags& flags) {
  const Element& e = elements[a.column];
  if (e.type == Type::i64) return sums::sum_of(b, sum, Builder::as<S64>(e.u64));
  Reg<F64> x = held_element<F64>(b, e);
  if (e.type == Type::f64) sums::note_huge(b, x, flags.huge);
  return sums::sum_of(b, sum, x);
}
// Accumulator k, or all parts of the sum that it begins.
inline void accumulate(Builder& b, const AggregateShape& shape, size_t k, const Registers& into,
                       const std::vector<Element>& elements, const SumFlags& flags, Reg<ptx::Pred> when) {
  const Accumulator& a = shape.accumulators[k];
  if (!a.sums_floats())
    accumulate(b, a, into[k], elements, when);
  else if (a.part == 0)
    add_to_sum(b, a, sum_of(into, k), elements, flags, when);
}

inline void combine(Builder& b, const AggregateShape& shape, size_t k, const Registers& x, const Registers& y,
                    const Registers& into, Reg<ptx::Pred> when = {}) {
  const Accumulator& a = shape.accumulators[k];
  if (!a.completes()) return;
  if (a.sums_floats()) {
    const size_t first = k - a.part;
    return sums::add(b, sum_of(x, first), sum_of(y, first), sum_of(into, first), when);
  }
  with_held(a.held, [&]<class T>() {
    if (when.valid()) b.when(when);
    combine(b, a.op, Reg<T>{x[k]}, Reg<T>{y[k]}, Reg<T>{into[k]});
  });
}
// Into new registers.
inline void combine_anew(Builder& b, const AggregateShape& shape, size_t k, const Registers& x, const Registers& y,
                         Registers& into) {
  const Accumulator& a = shape.accumulators[k];
  if (!a.completes()) return;
  if (a.sums_floats()) {
    const size_t first = k - a.part;
    const sums::ExactSum both = sums::sum_of(b, sum_of(x, first), sum_of(y, first));
    into[first] = both.high.id, into[first + 1] = both.low.id, into[k] = both.error.id;
    return;
  }
  with_held(a.held, [&]<class T>() { into[k] = combine(b, a.op, Reg<T>{x[k]}, Reg<T>{y[k]}).id; });
}
// Calls f.operator()<T>(part) for the accumulators that are complete with accumulator k.
template <class F>
void for_parts(const AggregateShape& shape, size_t k, F&& f) {
  const Accumulator& a = shape.accumulators[k];
  if (!a.completes()) return;
  with_held(a.held, [&]<class T>() {
    for (size_t part = k - a.part; part <= k; ++part) f.template operator()<T>(part);
  });
}
// Calls f.operator()<T>(first, x) with the finished result of what is complete with accumulator k, which is accumulator `first`'s; reports where
// `counts` holds (not valid: always).
template <class F>
void with_result(Builder& b, const AggregateShape& shape, size_t k, const Registers& x, const SumFlags& flags,
                 Reg<ptx::Pred> counts, F&& f) {
  const Accumulator& a = shape.accumulators[k];
  if (!a.completes()) return;
  if (a.sums_floats()) {
    const size_t first = k - a.part;
    f.template operator()<F64>(
        first, sums::rounded_if_needed(b, sum_of(x, first), a.round, b.ld_param(flags.parameter), counts));
    return;
  }
  with_held(a.held, [&]<class T>() { f.template operator()<T>(k, Reg<T>{x[k]}); });
}

// All lanes get the warp's combination: a butterfly.
template <class T>
void combine_warp(Builder& b, Accumulator::Op op, Reg<T> x) {
  for (uint32_t distance = 16; distance > 0; distance /= 2)
    combine(b, op, x, shuffle(b, ShuffleMode::bfly, x, distance, 31u), x);
}

inline void combine_warp(Builder& b, const AggregateShape& shape, size_t k, const Registers& x) {
  const Accumulator& a = shape.accumulators[k];
  if (!a.sums_floats()) {
    with_held(a.held, [&]<class T>() { combine_warp(b, a.op, Reg<T>{x[k]}); });
  } else if (a.completes()) {
    for (uint32_t distance = 16; distance > 0; distance /= 2) {
      const auto other = [&](size_t part) { return shuffle(b, ShuffleMode::bfly, Reg<F64>{x[part]}, distance, 31u); };
      const sums::ExactSum sum = sum_of(x, k - a.part);
      sums::add(b, sum, {other(k - 2), other(k - 1), other(k)}, sum);
    }
  }
}

// Value columns and accumulators in device memory.
struct AggregateInput {
  AggregateShape shape;
  std::vector<Address> columns;  // elements, by row
  Address sum_flags = 0;         // ptx/sums/exact_sum.h; where floats are summed
};

}  // namespace rndn::operators
