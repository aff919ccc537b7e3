// Joins of two ascending columns of integers without a table: a merge (merge.h).
//
// Of equal elements the left column's come first, so that a right row's matches are the left rows of the run of equal elements that it is in.
// Two kernels write the pairs in one pass each; both columns ascend, so the pairs come by right row and then left row:
//   unique  the left column's elements are all different (taken for granted of the shorter column, which plays the left one's part: a primary key). A
//           right row's match is the left row before it; a tile's pairs become pairs of shared addresses in the slots, and go out as one piece at
//           positions from a look-back. The same pass finds out whether the assumption holds, and ends early if not.
//   runs    any columns. A tile's slots become the first left row of each right row and how many pairs come before its own; a window of pairs at a time,
//           right rows leave their slot where their pairs begin, and the last slot up to there is that of every pair's right row. Pairs for which there
//           is no room are counted only, and a second run writes them all. Where there was much room, and far fewer, they are copied.
// Unique is tried where there are more tiles than run at once: where all do, ending early saves nothing, and one kernel is enough for both.
// A tile of very many pairs would keep one block busy and others waiting. If there is one:
//   ranges  as runs, but what was in the slots goes out: per right row, the first left row and how many pairs come before its own
//   owners  the right row that each tile of pairs begins in, by binary search
//   expand  a thread per pair searches for its right row among those of the tile, so that the work is even however long the runs are
// Bytes: either column once, the pairs once; once more either column for each kernel that gave up, and with ranges three times 8 bytes per right row.
// One wait per kernel that tells the host of pairs.
// Leaves out: several keys, residual predicates, columns whose size is on the device.
#include <algorithm>
#include <optional>
#include <utility>

#include "libraries/operators/joins/join.h"
#include "libraries/operators/joins/merge.h"
#include "libraries/operators/operators.h"

namespace rndn::operators {

namespace {

constexpr uint32_t merged_warps = block_threads / 32;
constexpr int64_t merged_sums_at = 32, merged_slots_at = 64;  // in shared memory, behind the header of a merge

constexpr uint32_t merged_items = 17;
using Shape = MergeTile<merged_items>;

// What the host reads after the pass.
struct MergedAnswer {
  uint64_t pairs, duplicates;
};

template <class T>
uint32_t build_merge_join(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  MergeCode<T, merged_items> merge;
  merge.declare(b);
  const Parameter answer_at = b.parameter<U64>("answer"), out_left = b.parameter<U64>("out_left");
  const Parameter out_right = b.parameter<U64>("out_right");
  const ptx::SharedVariable shared = b.shared<U64>(
      std::string(name) + "_shared", (merged_slots_at + MergeCode<T, merged_items>::shared_bytes + 7) / 8, 16);
  const Thread t = thread_of(b);
  merge.start(b, shared, merged_slots_at);
  // For the tile whose pairs are in the slots: the row number that the first slot stands for, on either side.
  constexpr uint32_t shift = T::size == 8 ? 3 : 2;
  Reg<U32> left_bias = b.constant<U32>(0), right_bias = b.constant<U32>(0);
  const auto merge_tile_of = [&] {
    // Bit k of `lefts`: element k is left's; of `repeats`: it is equal to the one before it, in a run that has an element of left.
    Reg<U32> lefts = b.constant<U32>(0), repeats = b.constant<U32>(0);
    Reg<Pred> in_run = merge.follows_left(b);
    Reg<T> previous = merge.previous;
    std::vector<Reg<U32>>
        pairs;  // shared addresses of the left element behind the match and of the right one: left << 16 | right
    for (uint32_t k = 0; k < merged_items; ++k) {
      pairs.push_back(b.mad_lo(merge.l, 0x10000, merge.r));
      Reg<Pred> from_left = merge.takes_left(b);
      Reg<T> key = b.selp(merge.left_value, merge.right_value, from_left);
      Reg<Pred> repeated = b.setp(Is::eq, ptx::Combine::and_, key, previous, in_run);
      b.when(from_left).or_(lefts, 1u << k, lefts);
      b.when(repeated).or_(repeats, 1u << k, repeats);
      if (k + 1 < merged_items) merge.advance(b, from_left);
      in_run = b.or_(repeated, from_left);
      previous = key;
    }
    b.and_(repeats, b.sub(b.shl(b.constant<U32>(1), merge.own), 1), repeats);
    Reg<Pred> duplicate = b.setp(Is::ne, b.and_(repeats, lefts), 0);
    const At duplicates(b.ld_param(answer_at), 8);
    // One lane of the warp says so, and that no more tiles are to be taken; those that are taken are finished, since others wait for their counts.
    Reg<Pred> says = b.setp(Is::eq, ptx::Combine::and_, t.lane, 0, b.vote(VoteMode::any, duplicate));
    store_if<U64>(b, says, Space::global, duplicates, 1);
    const At ticket(b.ld_param(merge.ticket_at));
    Reg<U32> taken = b.constant<U32>(0);
    b.when(says).atom<U32>(ptx::AtomicOp::max, Space::global, ticket, merge.tiles, {}, taken);
    Reg<U32> found = b.and_(repeats, b.not_(lefts));
    Reg<U32> number = b.popc(found), inclusive = warp_sum(b, t, number);
    merge.pass_ticket(b, t, shared);
    const BlockSum sum =
        block_sum(b, t, inclusive, merged_warps, shared, merged_sums_at);  // and everything has been read
    merge.announce(b, t, b.cvt<U64>(sum.total));
    b.sub(b.sub(merge.first_left, b.shr(merge.tile_left, shift)), 1, left_bias);
    Reg<U32> first_right = b.sub(b.mul_lo(merge.pending, Shape::tile), merge.first_left);
    b.sub(first_right, b.shr(merge.tile_right, shift), right_bias);
    Reg<U32> to = b.mad_lo(b.add(sum.before, b.sub(inclusive, number)), 4, merge.slots);
    for (uint32_t k = 0; k < merged_items; ++k) {
      Reg<Pred> writes = b.setp(Is::ne, b.and_(found, 1u << k), 0);
      store_if<U32>(b, writes, Space::shared, At(to), pairs[k]);
      b.when(writes).add(to, 4, to);
    }
  };
  const auto write_tile = [&](Reg<U64> before, Reg<U32> results) {
    Reg<U64> place = b.shl(b.add(before, b.cvt<U64>(t.tid)), 3);
    Reg<U64> left_to = b.add(b.ld_param(out_left), place), right_to = b.add(b.ld_param(out_right), place);
    merge.template for_results<U32>(
        b, t, results,
        [&](uint32_t u, Reg<Pred> exists, Reg<U32> pair) {
          Reg<U64> i = b.cvt<U64>(b.add(left_bias, b.shr(pair, 16 + shift)));
          Reg<U64> j = b.cvt<U64>(b.add(right_bias, b.shr(b.and_(pair, 0xFFFF), shift)));
          store_if<U64>(b, exists, Space::global, At(left_to, int64_t{u} * block_threads * 8), i);
          store_if<U64>(b, exists, Space::global, At(right_to, int64_t{u} * block_threads * 8), j);
        },
        [&](uint64_t n) {
          b.add(left_to, n * 8, left_to);
          b.add(right_to, n * 8, right_to);
        });
  };
  merge.for_all_tiles(b, t, shared, answer_at, merge_tile_of, write_tile);
  b.ret();
  b.finish();
  return block_threads;
}

// ---- elements that repeat on both sides

// Moves `first`, the number of an element equal to `value`, to the first of the run of such elements, in steps that double and then halve.
// load(i, exists, into): loads element i if it exists.
template <class T, class Load>
void find_run(Builder& b, Reg<T> value, Reg<U32> first, Load&& load) {
  Reg<U32> step = b.constant<U32>(1);
  for (bool grows : {true, false}) {
    const LabelId again = b.label(), over = b.label();
    if (!grows) b.shr(step, 1, step);
    b.bind(again);
    if (!grows) {
      Reg<Pred> none_left = b.setp(Is::eq, step, 0);
      b.when(none_left).bra(over);
    }
    Reg<Pred> equal = b.setp(Is::ge, first, step);
    Reg<T> seen = b.mov(value);
    load(b.sub(first, step), equal, seen);
    b.setp(Is::eq, ptx::Combine::and_, seen, value, equal, equal);
    b.when(equal).sub(first, step, first);
    if (grows) {
      b.unless(equal).bra(over);
      b.shl(step, 1, step);
    } else {
      b.shr(step, 1, step);
    }
    b.bra(again);
    b.bind(over);
  }
}

// The first left row equal to the one before the thread's next, `left_row`. Runs mostly begin in the tile, which is in shared memory.
template <class T>
void find_begin(Builder& b, const MergeCode<T, merged_items>& merge, Reg<U32> left_row, Reg<T> value, Reg<U32> begin) {
  const LabelId found = b.label();
  Reg<U32> in_slots = merge.element_of(b, merge.l, merge.slots), first = b.sub(in_slots, 1);
  find_run<T>(b, value, first, [&](Reg<U32> i, Reg<Pred> exists, Reg<T> into) {
    const At at(b.mad_lo(i, T::size, merge.slots));
    load_if<T>(b, exists, Space::shared, at, into);
  });
  b.add(b.sub(left_row, in_slots), first, begin);
  b.when(b.setp(Is::ne, first, 0)).bra(found);
  find_run<T>(b, value, begin, [&](Reg<U32> i, Reg<Pred> exists, Reg<T> into) {
    const At at = element_at(b, b.ld_param(merge.left_at), i, T::size);
    load_if<T>(b, exists, Space::global, at, into, {.cache = ptx::Cache::nc});
  });
  b.bind(found);
}

// What the host reads after a pass of runs.
struct RunsAnswer {
  uint64_t pairs, is_uneven;
};
// A window is what a block writes of a tile's pairs at a time: an odd number per thread, and mostly all, where a row has a match on average.
constexpr uint32_t pair_window_items = 9, pair_window = block_threads * pair_window_items;
constexpr uint64_t most_even = 16 * pair_window;  // pairs of a tile
constexpr uint32_t longest_run =
    1 << 16;  // of left rows that a tile goes on with, as far as they are counted; more than `most_even`
static_assert(longest_run > most_even && uint64_t{longest_run + Shape::tile} * Shape::slots < UINT32_MAX);

// The pairs of the tile in the slots, `before` of them in earlier tiles, as far as there is room.
template <class T>
struct PairWriter {
  const MergeCode<T, merged_items>& merge;
  const Thread& t;
  ptx::SharedVariable shared;
  int64_t marks_at, offsets_from;
  Parameter room_at, left_at, right_at;

  // A mark of a window is the slot of the right row whose pairs begin there, by its shared address; else 0.
  At own_marks(Builder& b) const {
    return At(b.mad_lo(t.tid, 4 * pair_window_items, b.address_of_32(shared, marks_at)));
  }
  void clear_marks(Builder& b) const {
    const At own = own_marks(b);
    for (uint32_t k = 0; k < pair_window_items; ++k) b.st<U32>(Space::shared, own.plus(4 * k), 0);
  }
  void mark(Builder& b, Reg<U32> offset, Reg<U32> slot, Reg<Pred> has_pairs) const {
    Reg<Pred> is_first = b.setp(Is::lt, ptx::Combine::and_, offset, pair_window, has_pairs);
    const At place(b.mad_lo(offset, 4, b.address_of_32(shared, marks_at)));
    store_if<U32>(b, is_first, Space::shared, place, slot);
  }
  // Marks become the greatest up to each; `greatest` of those of earlier windows, and then of this one too.
  void spread_marks(Builder& b, Reg<U32> greatest) const {
    const At own = own_marks(b);
    Reg<U32> most = b.constant<U32>(0);
    for (uint32_t k = 0; k < pair_window_items; ++k) b.max(most, b.ld<U32>(Space::shared, own.plus(4 * k)), most);
    for (uint32_t distance = 1; distance < 32; distance *= 2)
      b.max(most, b.shfl_sync(ShuffleMode::up, most, distance, 0), most);  // a lane without one gets its own
    Reg<U32> running = b.selp(b.shfl_sync(ShuffleMode::up, most, 1, 0), 0u, b.setp(Is::ne, t.lane, 0));
    const At of_warp(b.mad_lo(t.warp, 4, b.address_of_32(shared, merged_sums_at)));
    store_if<U32>(b, b.setp(Is::eq, t.lane, 31), Space::shared, of_warp, most);
    b.max(running, greatest, running);
    b.bar_sync();
    for (uint32_t w = 0; w < merged_warps; ++w) {
      Reg<U32> its = b.ld<U32>(Space::shared, At(shared, merged_sums_at + 4 * w));
      b.when(b.setp(Is::gt, t.warp, w)).max(running, its, running);
      b.max(greatest, its, greatest);
    }
    for (uint32_t k = 0; k < pair_window_items; ++k) {
      const At at = own.plus(4 * k);
      b.max(running, b.ld<U32>(Space::shared, at), running);
      b.st<U32>(Space::shared, at, running);
    }
    b.bar_sync();
  }

  void write(Builder& b, Reg<U64> before, Reg<U32> first_right, Reg<U32> right_count) const {
    const LabelId next = b.label(), over = b.label();
    Reg<U64> room = b.sub(b.max(b.ld_param(room_at), before), before);
    Reg<Pred> is_even = b.setp(Is::le, merge.pending_count, most_even);
    Reg<U32> left_over = b.selp(b.cvt<U32>(b.min(room, merge.pending_count)), 0u, is_even);
    Reg<U32> base = b.constant<U32>(0), greatest = b.constant<U32>(0);
    Reg<U64> place = b.shl(b.add(before, b.cvt<U64>(t.tid)), 3);
    Reg<U64> left_to = b.add(b.ld_param(left_at), place), right_to = b.add(b.ld_param(right_at), place);
    b.when(b.setp(Is::eq, left_over, 0)).bra_uni(over);
    b.bind(next);
    spread_marks(b, greatest);
    write_window(b, left_to, right_to, left_over, base, first_right);
    b.when(b.setp(Is::le, left_over, pair_window)).bra_uni(over);
    b.sub(left_over, pair_window, left_over);
    b.add(base, pair_window, base);
    b.bar_sync();
    clear_marks(b);
    b.bar_sync();
    mark_rows(b, base, right_count);
    b.bar_sync();
    b.bra(next);
    b.bind(over);
  }

 private:
  void write_window(Builder& b, Reg<U64> left_to, Reg<U64> right_to, Reg<U32> left_over, Reg<U32> base,
                    Reg<U32> first_right) const {
    constexpr uint32_t unroll = 3;
    static_assert(pair_window_items % unroll == 0);
    const LabelId copy = b.label();
    Reg<U32> from = b.mad_lo(t.tid, 4, b.address_of_32(shared, marks_at)), place = b.add(base, t.tid);
    Reg<U32> bias = b.sub(first_right, b.shr(merge.slots, 2));
    Reg<S32> open = Builder::as<S32>(b.sub(b.min(left_over, pair_window), t.tid));
    b.bind(copy);
    for (uint32_t u = 0; u < unroll; ++u) {
      Reg<Pred> exists = b.setp(Is::gt, open, static_cast<int32_t>(u * block_threads));
      Reg<U32> owner = b.constant<U32>(0), left = b.constant<U32>(0);
      load_if<U32>(b, exists, Space::shared, At(from, int64_t{u} * block_threads * 4), owner);
      load_if<U32>(b, exists, Space::shared, At(owner), left);
      Reg<U64> left64 = b.cvt<U64>(b.add(b.add(left, place), u * block_threads));
      Reg<U64> right64 = b.cvt<U64>(b.add(bias, b.shr(owner, 2)));
      store_if<U64>(b, exists, Space::global, At(left_to, int64_t{u} * block_threads * 8), left64);
      store_if<U64>(b, exists, Space::global, At(right_to, int64_t{u} * block_threads * 8), right64);
    }
    b.add(left_to, uint64_t{unroll} * block_threads * 8, left_to);
    b.add(right_to, uint64_t{unroll} * block_threads * 8, right_to);
    b.add(from, unroll * block_threads * 4, from);
    b.add(place, unroll * block_threads, place);
    b.sub(open, static_cast<int32_t>(unroll * block_threads), open);
    b.when(b.setp(Is::gt, open, 0)).bra(copy);
  }
  // Those whose pairs begin in the window at `base`.
  void mark_rows(Builder& b, Reg<U32> base, Reg<U32> right_count) const {
    const LabelId again = b.label(), over = b.label();
    Reg<U32> row = b.mov(t.tid), end = b.cvt<U32>(merge.pending_count);
    b.bind(again);
    b.when(b.setp(Is::ge, row, right_count)).bra(over);
    const At at(b.mad_lo(row, 4, merge.slots), offsets_from);
    Reg<U32> offset = b.ld<U32>(Space::shared, at), behind = b.mov(end);
    load_if<U32>(b, b.setp(Is::lt, b.add(row, 1), right_count), Space::shared, at.plus(4), behind);
    mark(b, b.sub(offset, base), b.mad_lo(row, 4, merge.slots), b.setp(Is::ne, behind, offset));
    b.add(row, block_threads, row);
    b.bra(again);
    b.bind(over);
  }
};

// writes_pairs: runs, else ranges.
template <class T>
uint32_t build_merged_runs(ptx::Module& module, std::string_view name, bool writes_pairs) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  MergeCode<T, merged_items> merge;
  merge.declare(b);
  const Parameter total_at = b.parameter<U64>("total"), begins_at = b.parameter<U64>("begins");
  const Parameter offsets_at = b.parameter<U64>("offsets"), room_at = b.parameter<U64>("room");
  constexpr int64_t wide_slots_at = merged_sums_at + 8 * merged_warps;
  constexpr int64_t marks_at =
      wide_slots_at + (std::max<int64_t>(MergeCode<T, merged_items>::shared_bytes, 8 * Shape::slots) + 15) / 16 * 16;
  const ptx::SharedVariable shared = b.shared<U64>(
      std::string(name) + "_shared", static_cast<uint64_t>(marks_at + (writes_pairs ? 4 * pair_window : 0)) / 8, 16);
  const Thread t = thread_of(b);
  merge.start(b, shared, wide_slots_at);
  // The slots become the begins of the tile's right rows (of pairs: less their offsets), and from `offsets_from` on their offsets within the tile.
  constexpr int64_t offsets_from = 4 * Shape::slots;
  const PairWriter<T> writer{merge, t, shared, marks_at, offsets_from, room_at, begins_at, offsets_at};
  Reg<U32> first_right = b.constant<U32>(0), right_count = b.constant<U32>(0);
  const auto merge_tile_of = [&] {
    const LabelId known = b.label();
    if (writes_pairs) writer.clear_marks(b);
    // Numbers of the thread's next elements; the first left row of the run of equal elements.
    Reg<U32> left_row = b.add(merge.first_left, merge.element_of(b, merge.l, merge.tile_left));
    b.sub(b.mul_lo(merge.pending, Shape::tile), merge.first_left, first_right);
    b.sub(merge.count, merge.left_count, right_count);
    Reg<U32> begin = b.mov(left_row);
    Reg<U32> to = b.mad_lo(merge.element_of(b, merge.r, merge.tile_right), 4, merge.slots);
    Reg<Pred> in_run = merge.follows_left(b);
    Reg<T> previous = merge.previous;
    Reg<Pred> goes_on = b.setp(Is::eq, ptx::Combine::and_,
                               b.selp(merge.left_value, merge.right_value, merge.takes_left(b)), previous, in_run);
    b.unless(goes_on).bra(known);
    find_begin(b, merge, left_row, previous, begin);
    b.bind(known);
    // Of a longer run it is enough that a tile with a match of it is uneven: numbers of pairs of a tile have 32 bits.
    if (writes_pairs) b.max(begin, b.sub(b.max(left_row, longest_run), longest_run), begin);
    Reg<U32> lefts = b.constant<U32>(0), few = b.constant<U32>(0);
    std::vector<Reg<U32>> begins, counts;
    Reg<U64> sum = b.constant<U64>(0);
    for (uint32_t k = 0; k < merged_items; ++k) {
      Reg<Pred> from_left = merge.takes_left(b);
      Reg<T> key = b.selp(merge.left_value, merge.right_value, from_left);
      Reg<Pred> repeated = b.setp(Is::eq, ptx::Combine::and_, key, previous, in_run);
      Reg<Pred> opens = b.and_(from_left, b.not_(repeated));
      b.when(opens).mov(left_row, begin);
      Reg<Pred> matches = b.and_(repeated, b.not_(from_left));
      b.setp(Is::gt, ptx::Combine::and_, merge.own, k, matches, matches);
      begins.push_back(b.mov(begin));
      counts.push_back(b.selp(b.sub(left_row, begin), 0u, matches));
      if (writes_pairs)
        b.add(few, counts[k], few);
      else
        b.add(sum, b.cvt<U64>(counts[k]), sum);
      b.when(from_left).add(left_row, 1, left_row);
      b.when(from_left).or_(lefts, 1u << k, lefts);
      if (k + 1 < merged_items) merge.advance(b, from_left);
      in_run = b.or_(repeated, from_left);
      previous = key;
    }
    Reg<U32> offset;
    Reg<U64> total;
    if (writes_pairs) {
      Reg<U32> inclusive = warp_sum(b, t, few);
      merge.pass_ticket(b, t, shared);
      const BlockSum all = block_sum(b, t, inclusive, merged_warps, shared, merged_sums_at);
      offset = b.add(all.before, b.sub(inclusive, few));
      total = b.cvt<U64>(all.total);
    } else {
      Reg<U64> inclusive = warp_sum(b, t, sum);
      const At own_sum(b.mad_lo(t.warp, 8, b.address_of_32(shared, merged_sums_at)));
      store_if<U64>(b, b.setp(Is::eq, t.lane, 31), Space::shared, own_sum, inclusive);
      merge.pass_ticket(b, t, shared);
      b.bar_sync();
      Reg<U64> earlier = b.constant<U64>(0);
      total = b.constant<U64>(0);
      for (uint32_t w = 0; w < merged_warps; ++w) {
        Reg<U64> its = b.ld<U64>(Space::shared, At(shared, merged_sums_at + 8 * w));
        b.when(b.setp(Is::gt, t.warp, w)).add(earlier, its, earlier);
        b.add(total, its, total);
      }
      offset = b.cvt<U32>(b.add(earlier, b.sub(inclusive, sum)));
    }
    merge.announce(b, t, total);
    if (writes_pairs) {  // that there is a tile of too many pairs, and that no more tiles are to be taken
      Reg<Pred> says = b.setp(Is::gt, ptx::Combine::and_, total, most_even, b.setp(Is::eq, t.tid, 0));
      const At uneven(b.ld_param(total_at), 8), ticket(b.ld_param(merge.ticket_at));
      store_if<U64>(b, says, Space::global, uneven, 1);
      Reg<U32> taken = b.constant<U32>(0);
      b.when(says).atom<U32>(ptx::AtomicOp::max, Space::global, ticket, merge.tiles, {}, taken);
    }
    Reg<U32> rights = b.and_(b.not_(lefts), b.sub(b.shl(b.constant<U32>(1), merge.own), 1));
    for (uint32_t k = 0; k < merged_items; ++k) {
      Reg<Pred> writes = b.setp(Is::ne, b.and_(rights, 1u << k), 0);
      store_if<U32>(b, writes, Space::shared, At(to), writes_pairs ? b.sub(begins[k], offset) : begins[k]);
      store_if<U32>(b, writes, Space::shared, At(to, offsets_from), offset);
      if (writes_pairs) writer.mark(b, offset, to, b.setp(Is::ne, counts[k], 0));
      b.when(writes).add(to, 4, to);
      b.add(offset, counts[k], offset);
    }
  };
  const auto write_tile = [&](Reg<U64> before, Reg<U32>) {
    if (writes_pairs) return writer.write(b, before, first_right, right_count);
    Reg<U32> row = b.mov(t.tid), from = b.mad_lo(t.tid, 4, merge.slots), earlier = b.cvt<U32>(before);
    Reg<U64> begins = b.ld_param(begins_at), offsets = b.ld_param(offsets_at);
    const LabelId copy = b.label(), copied = b.label();
    b.bind(copy);
    b.when(b.setp(Is::ge, row, right_count)).bra(copied);
    Reg<U32> to = b.add(first_right, row), begin = b.ld<U32>(Space::shared, At(from));
    Reg<U32> offset = b.add(b.ld<U32>(Space::shared, At(from, offsets_from)), earlier);
    b.st<U32>(Space::global, element_at(b, begins, to, 4), begin);
    b.st<U32>(Space::global, element_at(b, offsets, to, 4), offset);
    b.add(row, block_threads, row);
    b.add(from, block_threads * 4, from);
    b.bra(copy);
    b.bind(copied);
  };
  merge.for_all_tiles(b, t, shared, total_at, merge_tile_of, write_tile);
  b.ret();
  b.finish();
  return block_threads;
}

constexpr uint32_t pair_items = 4, pair_tile = block_threads * pair_items;

// Moves `owner` to the last of the rows up to `most` whose offset is not greater than the position; its own is not. Moves `most` too.
void find_owner(Builder& b, Reg<U64> offsets, Reg<U32> position, Reg<U32> owner, Reg<U32> most) {
  const LabelId again = b.label(), found = b.label();
  b.bind(again);
  b.when(b.setp(Is::ge, owner, most)).bra(found);
  Reg<U32> middle = b.sub(most, b.shr(b.sub(most, owner), 1)), below = b.sub(middle, 1);
  Reg<Pred> not_behind = b.setp(Is::le, b.ld_nc<U32>(element_at(b, offsets, middle, 4)), position);
  b.when(not_behind).mov(middle, owner);
  b.unless(not_behind).mov(below, most);
  b.bra(again);
  b.bind(found);
}

// owners[t]: the right row of the first pair of tile t; behind them the last right row.
uint32_t build_owners(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter offsets_at = b.parameter<U64>("offsets"), rows_at = b.parameter<U64>("rows");
  const Parameter tiles_at = b.parameter<U64>("tiles"), owners_at = b.parameter<U64>("owners");
  const Thread t = thread_of(b);
  Reg<U32> tiles = b.cvt<U32>(b.ld_param(tiles_at)), most = b.sub(b.cvt<U32>(b.ld_param(rows_at)), 1);
  const LabelId done = b.label(), store = b.label();
  Reg<U32> tile = b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), block_threads, t.tid);
  b.when(b.setp(Is::gt, tile, tiles)).bra(done);
  Reg<U32> owner = b.mov(most);
  b.when(b.setp(Is::eq, tile, tiles)).bra(store);
  b.constant<U32>(0, owner);
  find_owner(b, b.ld_param(offsets_at), b.mul_lo(tile, pair_tile), owner, most);
  b.bind(store);
  b.st<U32>(Space::global, element_at(b, b.ld_param(owners_at), tile, 4), owner);
  b.bind(done);
  b.ret();
  b.finish();
  return block_threads;
}

uint32_t build_expand(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter begins_at = b.parameter<U64>("begins"), offsets_at = b.parameter<U64>("offsets");
  const Parameter owners_at = b.parameter<U64>("owners"), tiles_at = b.parameter<U64>("tiles");
  const Parameter total_at = b.parameter<U64>("total"), out_left = b.parameter<U64>("out_left");
  const Parameter out_right = b.parameter<U64>("out_right");
  const Thread t = thread_of(b);
  Reg<U64> begins = b.ld_param(begins_at), offsets = b.ld_param(offsets_at), owners = b.ld_param(owners_at);
  Reg<U64> left = b.ld_param(out_left), right = b.ld_param(out_right), total = b.ld_param(total_at);
  for_tiles(b, b.cvt<U32>(b.ld_param(tiles_at)), [&](Reg<U32> tile) {
    const At owner_at = element_at(b, owners, tile, 4);
    Reg<U32> first = b.ld_nc<U32>(owner_at), last = b.ld_nc<U32>(owner_at.plus(4));
    Reg<U64> from = b.add(b.mul_wide(tile, pair_tile), b.cvt<U64>(t.tid));
    for (uint32_t k = 0; k < pair_items; ++k) {
      Reg<U64> position = b.add(from, k * block_threads);
      Reg<U32> owner = b.mov(first);
      find_owner(b, offsets, b.cvt<U32>(position), owner, b.mov(last));
      Reg<U32> nth = b.sub(b.cvt<U32>(position), b.ld_nc<U32>(element_at(b, offsets, owner, 4)));
      Reg<U32> left_row = b.add(b.ld_nc<U32>(element_at(b, begins, owner, 4)), nth);
      Reg<U64> i = b.cvt<U64>(left_row), j = b.cvt<U64>(owner);
      Reg<U64> place = b.shl(position, 3);
      const At left_to(b.add(left, place)), right_to(b.add(right, place));
      Reg<Pred> exists = b.setp(Is::lt, position, total);
      store_if<U64>(b, exists, Space::global, left_to, i);
      store_if<U64>(b, exists, Space::global, right_to, j);
    }
  });
  b.ret();
  b.finish();
  return block_threads;
}

template <class Build>
Result<const Kernel*> kernel_of(Library& library, const char* what, Type type, Build&& build) {
  return library.kernel(what + std::string(type_name(type)), [&](ptx::Module& to, std::string_view called) {
    return with_merge_type(type, [&]<class T>() { return build.template operator()<T>(to, called); });
  });
}

Result<void> check_pairs(const Vector& left, const Vector& right, uint64_t count) {
  if (count <= max_rows) return {};
  return input_error(
      "a join of {} and {} rows gives {} pairs; merging gives at most {} (--join hash has no such limit)",
      left.capacity, right.capacity, count, max_rows);
}

Result<const Kernel*> merged_runs_kernel(Library& library, Type type, bool writes_pairs) {
  return kernel_of(
      library, writes_pairs ? "merge_runs_" : "merge_ranges_", type,
      [&]<class T>(ptx::Module& to, std::string_view n) { return build_merged_runs<T>(to, n, writes_pairs); });
}

// By ranges, owners and expand. The plan has been used.
Result<Pairs> expanded_pairs(Library& library, const Vector& left, const Vector& right, const MergePlan& plan,
                             Memory& memory) {
  const uint64_t m = right.capacity;
  ASSIGN_OR_RETURN(const Address begins, memory.temporary(m * 4));
  ASSIGN_OR_RETURN(const Address offsets, memory.temporary(m * 4));
  ASSIGN_OR_RETURN(const device::Mapped total, memory.mapped(8));
  RETURN_IF_ERROR(clear_merge(library, plan));
  {
    ASSIGN_OR_RETURN(const Kernel* kernel, merged_runs_kernel(library, left.type, false));
    Arguments a;
    add(a, left, right, plan);
    a.add(total.address).add(begins).add(offsets).add(0);
    RETURN_IF_ERROR(
        library.launch(*kernel, library.grid(*kernel, plan.tiles), a, (left.capacity + m) * width(left.type) + m * 8));
  }
  RETURN_IF_ERROR(library.wait(memory));
  Pairs out;
  const uint64_t count = *static_cast<const volatile uint64_t*>(total.host), tiles = tiles_for(count, pair_tile);
  RETURN_IF_ERROR(check_pairs(left, right, count));
  out.left.capacity = out.right.capacity = count;
  ASSIGN_OR_RETURN(out.left.data, memory.result(count * 8));
  ASSIGN_OR_RETURN(out.right.data, memory.result(count * 8));
  if (count == 0) return out;
  ASSIGN_OR_RETURN(const Address owners, memory.temporary((tiles + 1) * 4));
  {
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel("merge_owners", build_owners));
    Arguments a;
    a.add(offsets).add(m).add(tiles).add(owners);
    RETURN_IF_ERROR(library.launch(*kernel, static_cast<uint32_t>(tiles_for(tiles + 1, block_threads)), a, tiles * 12));
  }
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel("merge_expand", build_expand));
  Arguments a;
  a.add(begins).add(offsets).add(owners).add(tiles).add(count).add(out.left.data).add(out.right.data);
  RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, tiles), a, m * 8 + count * 16));
  return out;
}

void give_back(Pairs& pairs, Memory& memory) {
  for (Vector* side : {&pairs.left, &pairs.right})
    if (side->data) memory.give_back(std::exchange(side->data, 0));
}

// So many; where they do not fit there are none.
Result<void> make_room(Pairs& pairs, uint64_t room, Memory& memory) {
  for (Vector* side : {&pairs.left, &pairs.right}) {
    const auto made = memory.result(room * 8);
    if (!made) {
      give_back(pairs, memory);
      return made.error();
    }
    side->data = *made;
  }
  return {};
}

// Far fewer than there was room for do not hold all of it, where that is much: of little the copies would cost more than the merge.
Result<void> shrink(Library& library, Pairs& pairs, uint64_t room, Memory& memory) {
  const uint64_t least_room = std::min<uint64_t>(64 << 20, memory.most_unknown() / 8);  // bytes
  const uint64_t count = pairs.left.capacity;
  Pairs few = pairs;
  few.left.data = few.right.data = 0;
  if (2 * 8 * room < least_room || count >= room / 4) return {};
  if (const auto made = make_room(few, count, memory); !made) return made.error().cause == Cause::device_full ? Result<void>() : made;
  if (count > 0) {
    RETURN_IF_ERROR(library.device().copy(few.left.data, pairs.left.data, count * 8));
    RETURN_IF_ERROR(library.device().copy(few.right.data, pairs.right.data, count * 8));
  }
  give_back(pairs, memory);
  pairs = few;
  return {};
}

// Elements may repeat on both sides. A plan that is there has been used.
Result<Pairs> runs_pairs(Library& library, const Vector& left, const Vector& right, std::optional<MergePlan> used,
                         Memory& memory) {
  const uint64_t longer = std::max(left.capacity, right.capacity);
  const auto may_take = [&](uint64_t pairs) { return pairs <= max_rows && !memory.counts_first(8 * pairs); };
  // Two matches per row, or one, or what is counted: where there is no memory for more, too.
  uint64_t room = may_take(2 * longer) ? 2 * longer : may_take(longer) ? longer : 0;
  ASSIGN_OR_RETURN(const device::Mapped mapped, memory.mapped(sizeof(RunsAnswer)));
  const volatile RunsAnswer* answer = static_cast<const volatile RunsAnswer*>(mapped.host);
  MergePlan plan;
  if (used) {
    plan = *used;
    RETURN_IF_ERROR(clear_merge(library, plan));
  } else {
    ASSIGN_OR_RETURN(plan, find_splits(library, left, right, Shape::tile, memory));
  }
  ASSIGN_OR_RETURN(const Kernel* kernel, merged_runs_kernel(library, left.type, true));
  bool is_counted = false;
  for (Pairs out;;) {
    if (room > 0) {
      const auto made = make_room(out, room, memory);
      if (!made && made.error().cause == Cause::device_full && !is_counted) {
        room = room > longer ? longer : 0;
        continue;
      }
      RETURN_IF_ERROR(made);
    }
    Arguments a;
    add(a, left, right, plan);
    a.add(mapped.address).add(out.left.data).add(out.right.data).add(room);
    RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, plan.tiles), a,
                                   (left.capacity + right.capacity) * width(left.type)));
    RETURN_IF_ERROR(library.wait(memory));
    if (answer->is_uneven) {
      give_back(out, memory);
      return expanded_pairs(library, left, right, plan, memory);
    }
    const uint64_t pairs = answer->pairs;
    RETURN_IF_ERROR(check_pairs(left, right, pairs));
    out.left.capacity = out.right.capacity = pairs;
    if (pairs <= room) {
      RETURN_IF_ERROR(shrink(library, out, room, memory));
      return out;
    }
    give_back(out, memory);
    room = pairs;
    is_counted = true;
    RETURN_IF_ERROR(clear_merge(library, plan));
  }
}

}  // namespace

Result<Pairs> merge_pairs(Library& library, const Vector& left, const Vector& right, Memory& memory) {
  const bool swapped = right.capacity < left.capacity;
  const Vector &unique = swapped ? right : left, &other = swapped ? left : right;
  ASSIGN_OR_RETURN(const Kernel* runs, merged_runs_kernel(library, left.type, true));
  if (tiles_for(left.capacity + right.capacity, Shape::tile) <= runs->resident_blocks ||
      memory.counts_first(8 * other.capacity))
    return runs_pairs(library, left, right, {}, memory);
  Pairs found;
  auto& [found_unique, found_other] = found;
  if (const auto made = make_room(found, other.capacity, memory); !made) {
    if (made.error().cause != Cause::device_full) return made.error();
    return runs_pairs(library, left, right, {}, memory);
  }
  ASSIGN_OR_RETURN(const device::Mapped mapped, memory.mapped(sizeof(MergedAnswer)));
  ASSIGN_OR_RETURN(const MergePlan plan, find_splits(library, unique, other, Shape::tile, memory));
  ASSIGN_OR_RETURN(const Kernel* kernel,
                   kernel_of(library, "merge_join_", left.type,
                             []<class T>(ptx::Module& to, std::string_view n) { return build_merge_join<T>(to, n); }));
  Arguments a;
  add(a, unique, other, plan);
  a.add(mapped.address).add(found_unique.data).add(found_other.data);
  RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, plan.tiles), a,
                                 (unique.capacity + other.capacity) * width(left.type)));
  RETURN_IF_ERROR(library.wait(memory));
  const volatile MergedAnswer* answer = static_cast<const volatile MergedAnswer*>(mapped.host);
  if (answer->duplicates) {
    give_back(found, memory);
    return runs_pairs(library, left, right, swapped ? std::nullopt : std::optional(plan), memory);
  }
  found_unique.capacity = found_other.capacity = answer->pairs;
  RETURN_IF_ERROR(shrink(library, found, other.capacity, memory));
  return swapped ? Pairs{found_other, found_unique} : Pairs{found_unique, found_other};
}

}  // namespace rndn::operators
