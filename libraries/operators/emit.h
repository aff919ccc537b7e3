// Pieces of kernels that several operators share. Private to this folder.
//
// Registers that every thread has, sums over a block, and single-pass scans with decoupled look-back (Merrill and Garland, "Single-pass
// Parallel Prefix Scan with Decoupled Look-back", NVIDIA technical report 2016). Who waits for an earlier tile waits for a block that
// runs, because tiles are handed out by a counter; status and value are one naturally atomic word, so that no fence stands between them;
// no lane waits for another lane of its warp.
#pragma once
#include <span>
#include <vector>

#include "libraries/operators/library.h"

namespace rndn::operators {

using ptx::Builder;
using ptx::Condition;
using ptx::Pred;
using ptx::Reg;
using ptx::S32;
using ptx::S64;
using ptx::ShuffleMode;
using ptx::Space;
using ptx::U16;
using ptx::U32;
using ptx::U64;
using ptx::U8;
using ptx::VoteMode;
using At = ptx::Address;
using Is = ptx::Compare;
using Param = ptx::ParameterOf<U64>;

inline constexpr ptx::Access volatile_access{.semantics = ptx::Semantics::volatile_};

// Every kernel of the library. It does nothing once an answer that was foreseen has turned out to be another one (Question): sizes that rest on it may
// be those of other vectors. The word is written by no kernel that some of its blocks, or warps before a barrier, have yet to read it in.
class KernelBuilder : public Builder {
 public:
  KernelBuilder(ptx::Module& module, std::string_view name) : Builder(module, std::string(name)) {
    const Param differs = parameter<U64>("differs");
    Reg<U32> is_wrong = ld<U32>(Space::global, At(ld_param(differs)));
    when(setp(Is::ne, is_wrong, 0u)).ret();
  }
};

// The parameters of what `add` gives a kernel of a Question.
struct Answer {
  Param found, differs;
  std::vector<Param> foreseen;
};
Answer answer_parameters(Builder& b, size_t words);
// Where that holds: word k of the answer, and that it is another one than was foreseen. Behind the kernel's last barrier.
void tell(Builder& b, const Answer& answer, size_t k, Condition when, Reg<U64> word);
// The second half of that, of a word that was foreseen so.
void compare_told(Builder& b, const Answer& answer, Condition when, Reg<U64> word, Reg<U64> foreseen);

// Guarded accesses. A guard holds for the next instruction that is written, so addresses must exist before it is set.
template <class T>
void store_if(Builder& b, Condition when, Space space, At at, ptx::Source<ptx::RegisterTag<T>> value,
              ptx::Access access = {}) {
  b.when(when).st<T>(space, access, at, value);
}
template <class T>
void load_if(Builder& b, Condition when, Space space, At at, Reg<ptx::RegisterTag<T>> into, ptx::Access access = {}) {
  b.when(when).ld<T>(space, access, at, into);
}

struct Thread {
  Reg<U32> tid, lane, warp;
};
inline Thread thread_of(Builder& b) {
  Thread t;
  t.tid = b.special(ptx::SpecialRegister::tid_x);
  t.lane = b.and_(t.tid, 31u);
  t.warp = b.shr(t.tid, 5u);
  return t;
}

// base + index * bytes
inline Reg<U64> element_address(Builder& b, Reg<U64> base, Reg<U32> index, uint32_t bytes) {
  return b.mad_wide(index, bytes, base);
}

// The next tile of a launch of exactly `tiles` blocks: a number from the counter, which the last one sets back to zero. `shared`: 4 bytes.
// Ends with a barrier.
Reg<U32> take_ticket(Builder& b, const Thread& t, Reg<U64> counter, Reg<U32> tiles, At shared);

// Lanes with the same 8-bit digit as this one: a ballot per bit.
Reg<U32> equal_digits(Builder& b, Reg<U32> digit);

// Inclusive sum over the lanes of a warp.
Reg<U32> warp_sum(Builder& b, const Thread& t, Reg<U32> x);
Reg<U64> warp_sum(Builder& b, const Thread& t, Reg<U64> x);

// Sum of the values of all warps before this one, and of all `warps`; `own` is the warp's value, in its last lane. `shared`: 8 bytes per
// warp for 64-bit sums, else 4, 16-byte aligned. One barrier; the next use of the same place needs another one before it.
struct BlockSum {
  Reg<U64> before64, total64;
  Reg<U32> before, total;
};
BlockSum block_sum(Builder& b, const Thread& t, Reg<U32> own, uint32_t warps, ptx::SharedVariable shared,
                   int64_t offset);

// Tile-wise scan: called by all threads of a block with the tile's count (below 2^62); gives the sum over all earlier tiles. `words`: a zero u64 per
// tile. `shared`: 8 bytes. One barrier.
Reg<U64> look_back(Builder& b, const Thread& t, Reg<U32> tile, Reg<U64> count, Reg<U64> words, At shared);
inline Reg<U64> look_back(Builder& b, const Thread& t, Reg<U32> tile, Reg<U32> count, Reg<U64> words, At shared) {
  return look_back(b, t, tile, b.cvt<U64>(count), words, shared);
}
// The same; the last of the `tiles` also stores the sum over all of them in *total.
Reg<U64> look_back(Builder& b, const Thread& t, Reg<U32> tile, Reg<U32> tiles, Reg<U32> count, Reg<U64> words,
                   Reg<U64> total, At shared);

// look_back in two parts: what later tiles can go on with, as early as may be, and then the sum over all earlier ones, which takes its time.
void publish_count(Builder& b, const Thread& t, Reg<U32> tile, Reg<U64> count, Reg<U64> words);
Reg<U64> sum_before(Builder& b, const Thread& t, Reg<U32> tile, Reg<U64> count, Reg<U64> words, At shared);

// Rows that a warp keeps, 32 at a time: kept[k] is the ballot of step k. block_sum of their numbers.
BlockSum count_kept(Builder& b, const Thread& t, std::span<const Reg<U32>> kept, uint32_t warps,
                    ptx::SharedVariable shared, int64_t offset);
// For each step, body(k, position, writes): where the lane's row goes, counted from `first`, the place of the warp's first kept row; whether it is kept.
template <class Body>
void for_kept(Builder& b, const Thread& t, std::span<const Reg<U32>> kept, Reg<U32> first, Body&& body) {
  Reg<U32> before_lane = b.sub(b.shl(b.constant<U32>(1), t.lane), 1), position = b.mov(first);
  for (size_t k = 0; k < kept.size(); ++k) {
    Reg<U32> own = b.add(position, b.popc(b.and_(kept[k], before_lane)));
    body(k, own, b.setp(Is::ne, b.and_(b.shr(kept[k], t.lane), 1), 0));
    if (k + 1 < kept.size()) b.add(position, b.popc(kept[k]), position);
  }
}

}  // namespace rndn::operators
