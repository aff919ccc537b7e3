// Ways to compact a column, for measuring: the elements below 0.5 of n f64, in order. One pass with decoupled look-back as ptx/codegen/compress.cpp,
// but with loads that neighbouring lanes share, and with choices: block size, elements per thread, how many tiles a look-back sees at once, and
// whether a tile is put together in shared memory before it is written.
#pragma once
#include <functional>
#include <string>

#include "libraries/sql/emit.h"

namespace rndn::sql::bench {

struct CompactVariant {
  uint32_t block = 256, items = 8;  // items: even
  uint32_t window = 32;             // tiles that a look-back reads at once: a multiple of 32
  bool staged = true;
  uint32_t tile() const { return block * items; }
  std::string name() const {
    return "compact_b" + std::to_string(block) + "_i" + std::to_string(items) + "_w" + std::to_string(window) +
           (staged ? "_staged" : "_direct");
  }
};

// As look_back of emit.h; a lane reads window / 32 words that follow each other, nearest first, all of them before it looks at one.
inline Reg<U64> look_back_wide(Builder& b, const Thread& t, Reg<U32> tile, Reg<U64> count, Reg<U64> words, At shared,
                               uint32_t window) {
  const uint32_t each = window / 32;
  const ptx::LabelId known = b.label(), next = b.label();
  b.when(b.setp(Is::ne, t.warp, 0u)).bra(known);
  Reg<Pred> lane0 = b.setp(Is::eq, t.lane, 0u);
  Reg<U64> own = element_address(b, words, tile, 8);
  Reg<U64> word = b.add(b.shl(count, 2u), b.select<U64>(2, 1, b.setp(Is::eq, tile, 0u)));
  store_if<U64>(b, lane0, Space::global, At(own), word, volatile_access);
  Reg<U64> before = b.constant<U64>(0);
  // Lane l has the tiles tile - 1 - l * each - k.
  Reg<S32> nearest = b.sub(b.sub(Builder::as<S32>(tile), 1), Builder::as<S32>(b.mul_lo(t.lane, each)));
  b.bind(next);
  std::vector<Reg<U64>> seen;
  std::vector<Reg<Pred>> exists;
  std::vector<Reg<U64>> at;
  for (uint32_t k = 0; k < each; ++k) {
    Reg<S32> earlier = k ? b.sub(nearest, static_cast<int32_t>(k)) : nearest;
    exists.push_back(b.setp(Is::ge, earlier, 0));
    at.push_back(element_address(b, words, Builder::as<U32>(b.max(earlier, 0)), 8));
    seen.push_back(b.constant<U64>(2));  // before the first tile: nothing, known
  }
  const ptx::LabelId poll = b.label();
  b.bind(poll);
  for (uint32_t k = 0; k < each; ++k) load_if<U64>(b, exists[k], Space::global, At(at[k]), seen[k], volatile_access);
  // Sum of a lane's words up to the first inclusive one, which ends it; a lane whose words before that are not there yet waits, with its warp.
  Reg<U64> sum = b.constant<U64>(0);
  Reg<Pred> ended = b.constant<Pred>(false), ready = b.constant<Pred>(true);
  for (uint32_t k = 0; k < each; ++k) {
    Reg<U32> state = b.and_(b.cvt<U32>(seen[k]), 3u);
    Reg<Pred> there = b.or_(ended, b.setp(Is::ne, state, 0u));
    b.and_(ready, there, ready);
    Reg<U64> value = b.shr(seen[k], 2u);
    b.unless(ended).add(sum, value, sum);
    b.or_(ended, b.setp(Is::eq, state, 2u), ended);
  }
  b.unless(b.vote(VoteMode::all, ready)).bra(poll);
  Reg<U32> inclusive = b.ballot(ended);
  Reg<U32> last = b.clz(b.brev(inclusive));  // 32: none
  b.when(b.setp(Is::gt, t.lane, last)).constant<U64>(0, sum);
  for (uint32_t distance = 16; distance > 0; distance /= 2)
    b.add(sum, b.shfl_sync_64(ShuffleMode::bfly, sum, distance, 31u), sum);
  b.add(before, sum, before);
  b.sub(nearest, static_cast<int32_t>(window), nearest);
  b.when(b.setp(Is::eq, inclusive, 0u)).bra(next);
  Reg<U64> final_word = b.add(b.shl(b.add(before, count), 2u), 2);
  store_if<U64>(b, lane0, Space::global, At(own), final_word, volatile_access);
  store_if<U64>(b, lane0, Space::shared, shared, before);
  b.bind(known);
  b.bar_sync();
  return b.ld<U64>(Space::shared, shared);
}

// Parameters: n, tiles, in, out, words (a zeroed u64 per tile), ticket, found.
inline uint32_t build_compact(ptx::Module& module, std::string_view name, const CompactVariant& v) {
  Builder b(module, std::string(name));
  Param p_n = b.parameter<U64>("n"), p_tiles = b.parameter<U64>("tiles"), p_in = b.parameter<U64>("in"),
        p_out = b.parameter<U64>("out"), p_words = b.parameter<U64>("words"), p_ticket = b.parameter<U64>("ticket"),
        p_found = b.parameter<U64>("found");
  b.set_block_size(v.block);
  const uint32_t warps = v.block / 32, pairs = v.items / 2;
  constexpr int64_t stage_at = 128;
  auto shared = b.shared<U64>(std::string(name) + "_shared", stage_at / 8 + (v.staged ? v.tile() : 0), 16);
  const Thread t = thread_of(b);
  Reg<U32> tile = take_ticket(b, t, b.ld_param(p_ticket), b.cvt<U32>(b.ld_param(p_tiles)), At(shared));
  Reg<U64> start = b.mul_wide(tile, v.tile());
  Reg<U32> left = b.cvt<U32>(b.min(b.sub(b.ld_param(p_n), start), uint64_t{v.tile()}));
  // Lane l of a warp has the elements 2 l and 2 l + 1 of each of its pieces of 64.
  Reg<U32> within = b.mad_lo(t.warp, 32 * v.items, b.shl(t.lane, 1u));
  Reg<U64> in = b.add(b.ld_param(p_in), b.shl(b.add(start, b.cvt<U64>(within)), 3u));
  std::vector<Reg<ptx::F64>> x(v.items);
  const ptx::LabelId edge = b.label(), loaded = b.label();
  Reg<Pred> full = b.setp(Is::eq, left, v.tile());
  for (uint32_t i = 0; i < v.items; ++i) x[i] = b.constant<ptx::F64>(1.0);
  b.unless(full).bra(edge);
  for (uint32_t i = 0; i < pairs; ++i) {
    const auto two = b.ld_v2<ptx::F64>(Space::global, At(in, 512 * int64_t{i}));
    b.mov(two[0], x[2 * i]);
    b.mov(two[1], x[2 * i + 1]);
  }
  b.bra(loaded);
  b.bind(edge);
  for (uint32_t i = 0; i < v.items; ++i) {
    Reg<Pred> inside = b.setp(Is::lt, b.add(within, 64 * (i / 2) + i % 2), left);
    load_if<ptx::F64>(b, inside, Space::global, At(in, 512 * int64_t{i / 2} + 8 * int64_t{i % 2}), x[i]);
  }
  b.bind(loaded);
  std::vector<Reg<Pred>> keep;
  std::vector<Reg<U32>> votes;
  Reg<U32> total;
  for (uint32_t i = 0; i < v.items; ++i) {
    keep.push_back(b.setp(Is::lt, x[i], 0.5));
    votes.push_back(b.ballot(keep[i]));
    Reg<U32> count = b.popc(votes[i]);
    total = total.valid() ? b.add(total, count) : count;
  }
  const BlockSum sum = block_sum(b, t, total, warps, shared, 16);
  Reg<U64> before = look_back_wide(b, t, tile, b.cvt<U64>(sum.total), b.ld_param(p_words), At(shared, 8), v.window);
  Reg<U64> out = b.add(b.ld_param(p_out), b.shl(before, 3u));
  Reg<U32> below = b.sub(b.shl(b.constant<U32>(1u), t.lane), 1u), place = b.mov(sum.before);
  Reg<U32> stage = b.address_of_32(shared, stage_at);
  for (uint32_t i = 0; i < v.items; i += 2) {
    Reg<U32> even = b.add(place, b.add(b.popc(b.and_(votes[i], below)), b.popc(b.and_(votes[i + 1], below))));
    Reg<U32> odd = b.add(even, b.select<U32>(1u, 0u, keep[i]));
    for (uint32_t k = 0; k < 2; ++k) {
      Reg<U32> to = k ? odd : even;
      if (v.staged)
        store_if<ptx::F64>(b, keep[i + k], Space::shared, At(b.mad_lo(to, 8u, stage)), x[i + k]);
      else
        store_if<ptx::F64>(b, keep[i + k], Space::global, At(element_address(b, out, to, 8)), x[i + k]);
    }
    b.add(place, b.add(b.popc(votes[i]), b.popc(votes[i + 1])), place);
  }
  if (v.staged) {
    b.bar_sync();
    Reg<U64> to = element_address(b, out, t.tid, 8);
    Reg<U32> from = b.mad_lo(t.tid, 8u, stage);
    for (uint32_t i = 0; i < v.items; ++i) {
      Reg<Pred> inside = b.setp(Is::gt, sum.total, b.add(t.tid, i * v.block));
      Reg<ptx::F64> y = b.constant<ptx::F64>(0.0);
      load_if<ptx::F64>(b, inside, Space::shared, At(from, 8 * int64_t{v.block} * i), y);
      store_if<ptx::F64>(b, inside, Space::global, At(to, 8 * int64_t{v.block} * i), y);
    }
  }
  Reg<Pred> is_last = b.setp(Is::eq, b.add(tile, 1u), b.cvt<U32>(b.ld_param(p_tiles)));
  store_if<U64>(b, b.setp(Is::eq, ptx::Combine::and_, t.tid, 0u, is_last), Space::global, At(b.ld_param(p_found)),
                b.add(before, b.cvt<U64>(sum.total)));
  b.ret();
  b.finish();
  return v.block;
}

inline constexpr CompactVariant compact_variants[] = {
    {256, 8, 32, true},    {256, 8, 128, true},  {256, 8, 128, false}, {256, 16, 32, true},   {256, 16, 128, true},
    {256, 16, 128, false}, {128, 16, 128, true}, {512, 8, 128, true},  {512, 16, 128, false}, {256, 20, 128, true}};

}  // namespace rndn::sql::bench
