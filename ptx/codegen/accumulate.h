// What reductions of vectors (reduce.cpp) and of cells (cells.cpp) share: identities, combination, warps. Private to this folder.
#pragma once
#include <span>
#include <utility>
#include <vector>

#include "ptx/codegen/emitter.h"
#include "ptx/sums/exact_sum.h"

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
// The accumulators of that plan's value.
std::vector<Accumulator> value_accumulators(const AccumulatorPlan& plan, hir::VariableId argument);
// A finished sum of floats, for a reduction with that result; reports where `counts` holds (not valid: always).
Element finish_sum(Emitter& e, Builtin builtin, BasicType result, const sums::ExactSum& sum, Reg<Pred> counts);
// Result of a reduction from its finished accumulators; value and count as far as the plan has them, else the number of elements.
Element finish_reduction(Emitter& e, Builtin builtin, BasicType result, const Element& value, const Element& count);

// The type in which threads accumulate: bools as 0 and 1.
inline BasicType held_type(BasicType type) { return type == BasicType::boolean ? BasicType::i32 : type; }
// The type of partial results of warps and blocks.
inline BasicType partial_type(const Accumulator& a) { return a.count ? BasicType::i64 : held_type(a.type); }

inline bool sums_floats(const Accumulator& a) { return a.kind == Accumulator::add && !a.count && hir::is_float(a.type); }
// How many accumulators from this one on are combined as one.
inline size_t parts_of(const Accumulator& a) { return sums_floats(a) ? sums::parts : 1; }
// The sum whose first part is accumulator k, from a register per accumulator.
inline sums::ExactSum sum_of(std::span<const RegisterId> x, size_t k) { return {{x[k]}, {x[k + 1]}, {x[k + 2]}}; }
std::vector<RegisterId> ids_of(std::span<const Element> x);
// Adds an element to a sum, where `when` holds (not valid: always).
void add_to_sum(Emitter& e, const sums::ExactSum& sum, const Element& x, Reg<Pred> when);

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
Reg<T> shuffle(Builder& b, ptx::ShuffleMode mode, Reg<T> x, ptx::Value<U32> lane, uint32_t clamp) {
  if constexpr (T::size == 8)
    return b.shfl_sync_64(mode, x, lane, clamp);
  else
    return b.shfl_sync(mode, x, lane, clamp);
}

// Calls f.operator()<P>(), P the builder's type of the accumulator's partial results.
template <class F>
void with_partial(const Accumulator& a, F&& f) {
  with_number(rep_of(partial_type(a)), std::forward<F>(f));
}

// The same for accumulator k, by registers per accumulator, where `when` holds (not valid: always). Called for all of them in order: a sum of
// floats is combined when its last part comes.
inline void combine(Builder& b, std::span<const Accumulator> accumulators, size_t k, std::span<const RegisterId> x,
                    std::span<const RegisterId> y, std::span<const RegisterId> into, Reg<Pred> when = {}) {
  const Accumulator& a = accumulators[k];
  if (sums_floats(a)) {
    const size_t first = k - a.part;
    if (k + 1 == first + sums::parts) sums::add(b, sum_of(x, first), sum_of(y, first), sum_of(into, first), when);
    return;
  }
  with_partial(a, [&]<class P>() {
    if (when.valid()) b.when(when);
    combine(b, a.kind, Reg<P>{x[k]}, Reg<P>{y[k]}, Reg<P>{into[k]});
  });
}

// The same into new registers, whose numbers `into` gets.
inline void combine_anew(Builder& b, std::span<const Accumulator> accumulators, size_t k, std::span<const RegisterId> x,
                         std::span<const RegisterId> y, std::span<RegisterId> into) {
  const Accumulator& a = accumulators[k];
  if (!sums_floats(a)) {
    with_partial(a, [&]<class P>() { into[k] = combine(b, a.kind, Reg<P>{x[k]}, Reg<P>{y[k]}).id; });
  } else if (a.part + 1u == sums::parts) {
    const size_t first = k - a.part;
    const sums::ExactSum both = sums::sum_of(b, sum_of(x, first), sum_of(y, first));
    into[first] = both.high.id, into[first + 1] = both.low.id, into[first + 2] = both.error.id;
  }
}

// Calls f.operator()<P>(k) for the accumulators that are complete with accumulator k.
template <class F>
void for_parts(std::span<const Accumulator> accumulators, size_t k, F&& f) {
  const Accumulator& a = accumulators[k];
  if (k + 1 < k - a.part + parts_of(a)) return;
  for (size_t part = k - a.part; part <= k; ++part)
    with_partial(a, [&]<class P>() { f.template operator()<P>(part); });
}

// All lanes of every group of `width` neighbours get the group's combination, of all accumulators side by side; x: a register of each, changed in place.
// A loop, not a line of steps: code that runs once per block should be short.
inline void butterfly(Builder& b, std::span<const Accumulator> accumulators, std::span<const RegisterId> x,
                      uint32_t width) {
  if (accumulators.empty()) return;
  Reg<U32> distance = b.constant<U32>(width / 2);
  const ptx::LabelId loop = b.label();
  b.bind(loop);
  std::vector<RegisterId> others(x.size());
  for (size_t k = 0; k < accumulators.size(); ++k) {
    with_partial(accumulators[k], [&]<class P>() {
      others[k] = shuffle(b, ptx::ShuffleMode::bfly, Reg<P>{x[k]}, distance, 31).id;
    });
    combine(b, accumulators, k, x, others, x);
  }
  b.shr(distance, 1, distance);
  b.when(b.setp(ptx::Compare::ne, distance, 0)).bra(loop);
}

// Combine one value per thread and accumulator into the block's results, which every thread gets. Two halves with a barrier between them.
inline void to_shared(Emitter& e, std::span<const Accumulator> accumulators, std::span<const RegisterId> x,
                      Reg<U32> warp_address, Reg<Pred> lane0) {
  butterfly(e.b, accumulators, x, 32);
  for (size_t k = 0; k < accumulators.size(); ++k)
    with_partial(accumulators[k], [&]<class P>() {
      e.b.when(lane0).st<P>(Space::shared, Address(warp_address, static_cast<int64_t>(k * 8 * (e.block_size / 32))),
                            Reg<P>{x[k]});
    });
}
inline std::vector<RegisterId> from_shared(Emitter& e, std::span<const Accumulator> accumulators,
                                           Reg<U32> lane_address) {
  const uint32_t warps = e.block_size / 32;
  std::vector<RegisterId> x;
  for (size_t k = 0; k < accumulators.size(); ++k)
    with_partial(accumulators[k], [&]<class P>() {
      x.push_back(e.b.ld<P>(Space::shared, Address(lane_address, static_cast<int64_t>(k * 8 * warps))).id);
    });
  butterfly(e.b, accumulators, x, warps);
  return x;
}

}  // namespace rndn::codegen
