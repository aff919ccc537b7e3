// Storing selections: a single-pass scan with decoupled look-back (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled
// Look-back", NVIDIA technical report 2016).
//
// Blocks take tiles in order from a counter, never by their own number: whoever waits for an earlier tile waits for a block that runs.
// Per tile and mask: threads count their selected items, warps and the block scan the counts, thread 0 publishes the tile's count, warp 0
// looks back over earlier tiles, 32 at a time, until it meets one whose inclusive position is known, and publishes its own. Then every
// thread knows where its items go.
// A status word is 64 bits, written and read as a whole: value * 4 + state; state 0 = nothing yet, 1 = the tile's own count, 2 = the
// count up to and including the tile. So no fence is needed between a value and its state. Volatile accesses keep them out of stale
// cache lines. Waiting is by whole warps: no lane waits for another lane of its warp.
// Scratch: one status word per scan and tile, zero between launches. Shared: per scan 8 warp counts and the tile's position, then room for a
// tile of the widest stored column.
#include <algorithm>
#include <bit>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {

using ptx::Access;
using ptx::Compare;
using ptx::Semantics;
using ptx::ShuffleMode;
using ptx::VoteMode;

namespace {

constexpr Access volatile_access{.semantics = Semantics::volatile_};

// Shared memory: [0] tile number; per scan at scan_base: 8 warp counts (u32), then the tile's first position (u64); then the staged column.
constexpr int64_t scan_base(uint32_t scan) { return 16 + int64_t{scan} * 48; }

}  // namespace

void declare_scan_memory(Emitter& e) {
  CHECK(e.block_size == 256, "eight warps per block");
  uint32_t widest = 1;
  for (const Scan& s : e.scans)
    for (uint32_t o : s.outputs) widest = std::max(widest, width_of(e.outputs[o].type));
  e.scan_shared = e.b.shared<U64>(e.code.name + "_scan", 2 + 6 * e.scans.size() + e.tile() * widest / 8, 16);
}

void take_tile(Emitter& e) {
  Builder& b = e.b;
  Reg<Pred> thread0 = b.setp(Compare::eq, e.tid, 0);
  const ptx::LabelId taken = b.label();
  b.unless(thread0).bra(taken);
  Reg<U32> number = b.atom<U32>(ptx::AtomicOp::add, Space::global, Address(b.ld_param(e.scratch), tile_counter), 1);
  b.st<U32>(Space::shared, Address(e.scan_shared), number);
  b.bind(taken);
  b.bar_sync();
  e.tile_number = b.ld<U32>(Space::shared, Address(e.scan_shared));
  e.base = b.mul_wide(e.tile_number, e.tile());
}

void start_scans(Emitter& e) {
  for (Scan& s : e.scans) s.flags = e.b.constant<S32>(0);
}

void note_selection(Emitter& e) {
  Builder& b = e.b;
  for (Scan& s : e.scans) {
    const Element& value = e.values[index(e.outputs[s.outputs[0]].variable)];
    b.when(active(e, value.mask)).or_(s.flags, static_cast<int32_t>(1u << e.item), s.flags);
  }
}

void store_selections(Emitter& e) {
  Builder& b = e.b;
  const uint32_t items = e.vector * e.chunks, scans = static_cast<uint32_t>(e.scans.size());
  Reg<U32> lane = b.and_(e.tid, 31), warp = b.shr(e.tid, 5);
  Reg<Pred> last_lane = b.setp(Compare::eq, lane, 31);
  Reg<U64> scratch = b.ld_param(e.scratch);
  Reg<U64> words = b.add(scratch, scratch_fixed_bytes);

  // Thread to block: each thread's position within its warp, each warp's count.
  std::vector<Reg<U32>> positions, totals;
  for (uint32_t k = 0; k < scans; ++k) {
    Reg<U32> own = b.popc(e.scans[k].flags);
    Reg<U32> sum = b.mov(own);
    for (uint32_t distance = 1; distance < 32; distance *= 2) {
      Reg<U32> other = b.shfl_sync(ShuffleMode::up, sum, distance, 0);
      b.when(b.setp(Compare::ge, lane, distance)).add(sum, other, sum);
    }
    Reg<U32> at = b.add(b.address_of_32(e.scan_shared, scan_base(k)), b.shl(warp, 2));
    b.when(last_lane).st<U32>(Space::shared, Address(at), sum);
    positions.push_back(b.sub(sum, own));
  }
  b.bar_sync();
  for (uint32_t k = 0; k < scans; ++k) {
    Reg<U32> total;
    for (uint32_t half = 0; half < 2; ++half) {
      const auto counts = b.ld_v4<U32>(Space::shared, Address(e.scan_shared, scan_base(k) + 16 * half));
      for (uint32_t w = 0; w < 4; ++w) {
        b.when(b.setp(Compare::gt, warp, 4 * half + w)).add(positions[k], counts[w], positions[k]);
        total = total.valid() ? b.add(total, counts[w]) : counts[w];
      }
    }
    totals.push_back(total);
  }

  // Block to grid, in warp 0.
  const ptx::LabelId positioned = b.label();
  b.when(b.setp(Compare::ne, warp, 0)).bra(positioned);
  Reg<Pred> lane0 = b.setp(Compare::eq, lane, 0);
  Reg<Pred> first_tile = b.setp(Compare::eq, e.tile_number, 0);
  std::vector<Reg<U64>> own_words;
  for (uint32_t k = 0; k < scans; ++k) {
    own_words.push_back(b.add(words, b.shl(b.add(b.mul_wide(e.tile_number, scans), k), 3)));
    Reg<U64> word = b.add(b.shl(b.cvt<U64>(totals[k]), 2), b.select<U64>(2, 1, first_tile));
    b.when(lane0).st<U64>(Space::global, volatile_access, Address(own_words[k]), word);
  }
  for (uint32_t k = 0; k < scans; ++k) {
    const ptx::LabelId window = b.label(), poll = b.label();
    Reg<U64> before = b.constant<U64>(0);
    Reg<S32> tile = b.sub(b.sub(Builder::as<S32>(e.tile_number), 1), Builder::as<S32>(lane));
    b.bind(window);  // the first tile leaves at once: nothing exists before it
    Reg<Pred> exists = b.setp(Compare::ge, tile, 0);
    Reg<U64> at = b.add(words, b.shl(b.add(b.mul_wide(Builder::as<U32>(tile), scans), k), 3));
    Reg<U64> word = b.constant<U64>(2);  // before the first tile: position 0, known
    b.bind(poll);
    b.when(exists).ld<U64>(Space::global, volatile_access, Address(at), word);
    Reg<U32> state = b.and_(b.cvt<U32>(word), 3);
    b.unless(b.vote(VoteMode::all, b.setp(Compare::ne, state, 0))).bra(poll);
    Reg<U32> inclusive = b.ballot(b.setp(Compare::eq, state, 2));
    // The nearest tile whose position is known ends the sum: lanes behind it do not count.
    Reg<U32> nearest = b.clz(b.brev(inclusive));  // 32 when there is none
    Reg<U64> value = b.shr(word, 2);
    b.when(b.setp(Compare::gt, lane, nearest)).constant<U64>(0, value);
    for (uint32_t distance = 16; distance > 0; distance /= 2)
      b.add(value, b.shfl_sync_64(ShuffleMode::bfly, value, distance, 31), value);
    b.add(before, value, before);
    b.sub(tile, 32, tile);
    b.when(b.setp(Compare::eq, inclusive, 0)).bra(window);
    Reg<U64> after = b.add(before, b.cvt<U64>(totals[k]));
    Reg<U64> final_word = b.add(b.shl(after, 2), 2);
    b.when(lane0).st<U64>(Space::global, volatile_access, Address(own_words[k]), final_word);
    b.when(lane0).st<U64>(Space::shared, Address(e.scan_shared, scan_base(k) + 32), before);
  }
  b.bind(positioned);
  b.bar_sync();

  // Stores, column by column: the selected elements gather in shared memory, from where neighbouring threads write neighbouring addresses. And the
  // size, when this is the last tile.
  bool staged = false;
  for (uint32_t k = 0; k < scans; ++k) {
    Reg<U64> before = b.ld<U64>(Space::shared, Address(e.scan_shared, scan_base(k) + 32));
    Reg<U64> first = b.add(before, b.cvt<U64>(e.tid));
    for (uint32_t o : e.scans[k].outputs) {
      const Output& out = e.outputs[o];
      const uint32_t width = width_of(out.type), shift = static_cast<uint32_t>(std::countr_zero(width));
      if (staged) b.bar_sync();  // the column before has been read
      staged = true;
      Reg<U32> stage = b.address_of_32(e.scan_shared, scan_base(scans));
      Reg<U32> to = b.add(stage, shift ? b.shl(positions[k], shift) : positions[k]);
      for (uint32_t i = 0; i < items; ++i) {
        Reg<Pred> selected = b.setp(Compare::ne, b.and_(e.scans[k].flags, static_cast<int32_t>(1u << i)), 0);
        store_shared(e, {out.type, out.items[i].value, {}}, to, selected);
        if (i + 1 < items) b.when(selected).add(to, width, to);
      }
      b.bar_sync();
      Reg<U64> target = b.add(b.ld_param(out.data), shift ? b.shl(first, shift) : first);
      Reg<U32> from = b.add(stage, shift ? b.shl(e.tid, shift) : e.tid);
      Reg<S32> left = b.sub(Builder::as<S32>(totals[k]), Builder::as<S32>(e.tid));
      for (uint32_t i = 0; i < items; ++i) {
        Reg<Pred> inside = b.setp(Compare::gt, left, static_cast<int32_t>(i * e.block_size));
        copy_element(e, out.type, from, target, int64_t{i} * e.block_size * width, inside);
      }
    }
    Reg<U64> end = b.add(e.base, e.tile());
    Reg<Pred> last = both(e, b.setp(Compare::ge, end, e.n), b.setp(Compare::eq, e.tid, 0));
    Reg<U64> size = b.add(before, b.cvt<U64>(totals[k]));
    for (uint32_t o : e.scans[k].outputs) {
      Reg<U64> slot = b.ld_param(e.outputs[o].size);
      b.when(last).st<U64>(Space::global, Address(slot), size);
    }
  }
}

}  // namespace rndn::codegen
