// What reductions of vectors (reduce.cpp) and of cells (cells.cpp) share: identities, combination, warps. Private to this folder.
#pragma once
#include "ptx/codegen/emitter.h"

namespace rndn::codegen {

// reduce.cpp
int64_t identity_bits(Accumulator::Kind kind, BasicType type);
// The accumulators of a reduction over `argument` of that type: the value's, and the count's where one is needed. `kind` is meaningless in a len.
struct AccumulatorPlan {
  bool value = false, count = false;
  Accumulator::Kind kind = Accumulator::add;
  BasicType type{};  // of the value's
};
AccumulatorPlan accumulators_of(Builtin builtin, BasicType argument, bool selected);
// Result of a reduction from its finished accumulators; value and count as far as the plan has them, else the number of elements.
Element finish_reduction(Emitter& e, Builtin builtin, BasicType result, const Element& value, const Element& count);

// The type in which threads accumulate: bools as 0 and 1.
inline BasicType held_type(BasicType type) { return type == BasicType::boolean ? BasicType::i32 : type; }
// The type of partial results of warps and blocks.
inline BasicType partial_type(const Accumulator& a) { return a.count ? BasicType::i64 : held_type(a.type); }

// into = x combined with y.
template <class T>
Reg<T> combine(Builder& b, Accumulator::Kind kind, Reg<T> x, Reg<T> y, Reg<T> into = {}) {
  switch (kind) {
    case Accumulator::add:
      if constexpr (ptx::FloatTag<T>)
        return b.add_rn(x, y, into);
      else
        return b.add(x, y, into);
    case Accumulator::min:
    case Accumulator::all: return b.min(x, y, into);
    case Accumulator::max:
    case Accumulator::any: return b.max(x, y, into);
  }
  return x;
}

template <class T>
Reg<T> shuffle(Builder& b, ptx::ShuffleMode mode, Reg<T> x, uint32_t lane, uint32_t clamp) {
  if constexpr (T::size == 8)
    return b.shfl_sync_64(mode, x, lane, clamp);
  else
    return b.shfl_sync(mode, x, lane, clamp);
}

// All lanes of every group of `width` neighbours get the group's combination.
template <class T>
Reg<T> butterfly(Builder& b, Accumulator::Kind kind, Reg<T> x, uint32_t width) {
  for (uint32_t distance = width / 2; distance > 0; distance /= 2)
    x = combine(b, kind, x, shuffle(b, ptx::ShuffleMode::bfly, x, distance, 31));
  return x;
}

// Combines one value per thread into the block's result, which every thread gets. Two halves with a barrier between them.
template <class T>
void to_shared(Emitter& e, const Accumulator& a, Reg<T> x, uint32_t slot, Reg<U32> warp_address, Reg<Pred> lane0) {
  x = butterfly(e.b, a.kind, x, 32);
  e.b.when(lane0).st<T>(Space::shared, Address(warp_address, int64_t{slot} * 8 * (e.block_size / 32)), x);
}
template <class T>
Reg<T> from_shared(Emitter& e, const Accumulator& a, uint32_t slot, Reg<U32> lane_address) {
  const uint32_t warps = e.block_size / 32;
  return butterfly(e.b, a.kind, e.b.ld<T>(Space::shared, Address(lane_address, int64_t{slot} * 8 * warps)), warps);
}

}  // namespace rndn::codegen
