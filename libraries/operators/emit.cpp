#include "libraries/operators/emit.h"

namespace rndn::operators {

Answer answer_parameters(Builder& b, size_t words) {
  Answer answer{.found = b.parameter<U64>("found"), .differs = b.parameter<U64>("found_differs"), .foreseen = {}};
  for (size_t k = 0; k < words; ++k) answer.foreseen.push_back(b.parameter<U64>("foreseen" + std::to_string(k)));
  return answer;
}

void tell(Builder& b, const Answer& answer, size_t k, Condition when, Reg<U64> word) {
  store_if<U64>(b, when, Space::global, At(b.ld_param(answer.found), static_cast<int64_t>(8 * k)), word);
  compare_told(b, answer, when, word, b.ld_param(answer.foreseen[k]));
}

void compare_told(Builder& b, const Answer& answer, Condition when, Reg<U64> word, Reg<U64> foreseen) {
  Reg<Pred> is_other = b.setp(Is::ne, ptx::Combine::and_, word, foreseen, when);
  store_if<U32>(b, is_other, Space::global, At(b.ld_param(answer.differs)), 1u);
}

Reg<U32> take_ticket(Builder& b, const Thread& t, Reg<U64> counter, Reg<U32> tiles, At shared) {
  Reg<Pred> thread0 = b.setp(Is::eq, t.tid, 0u);
  const ptx::LabelId taken = b.label();
  b.unless(thread0).bra(taken);
  Reg<U32> number = b.atom<U32>(ptx::AtomicOp::add, Space::global, At(counter), 1u);
  b.st<U32>(Space::shared, shared, number);
  Reg<Pred> last = b.setp(Is::eq, b.add(number, 1u), tiles);
  store_if<U32>(b, last, Space::global, At(counter), 0u);  // nobody asks any more
  b.bind(taken);
  b.bar_sync();
  return b.ld<U32>(Space::shared, shared);
}

// Lanes with the same 8-bit digit as this one.
Reg<U32> equal_digits(Builder& b, Reg<U32> digit) {
  Reg<U32> peers;
  for (uint32_t bit = 0; bit < 8; ++bit) {
    Reg<Pred> is_clear = b.setp(Is::eq, b.and_(digit, 1u << bit), 0u);
    Reg<U32> same = b.ballot(!is_clear);
    b.when(is_clear).not_(same, same);
    peers = peers.valid() ? b.and_(peers, same) : same;
  }
  return peers;
}

Reg<U32> warp_sum(Builder& b, const Thread& t, Reg<U32> x) {
  Reg<U32> sum = b.mov(x);
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    Reg<U32> other = b.shfl_sync(ShuffleMode::up, sum, distance, 0u);
    b.when(b.setp(Is::ge, t.lane, distance)).add(sum, other, sum);
  }
  return sum;
}

Reg<U64> warp_sum(Builder& b, const Thread& t, Reg<U64> x) {
  Reg<U64> sum = b.mov(x);
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    Reg<U64> other = b.shfl_sync_64(ShuffleMode::up, sum, distance, 0u);
    b.when(b.setp(Is::ge, t.lane, distance)).add(sum, other, sum);
  }
  return sum;
}

BlockSum block_sum(Builder& b, const Thread& t, Reg<U32> own, uint32_t warps, ptx::SharedVariable shared,
                   int64_t offset) {
  BlockSum s;
  Reg<U32> at = b.add(b.address_of_32(shared, offset), b.shl(t.warp, 2u));
  store_if<U32>(b, b.setp(Is::eq, t.lane, 31u), Space::shared, At(at), own);
  b.bar_sync();
  s.before = b.constant<U32>(0u);
  for (uint32_t w = 0; w < warps; w += 4) {
    const auto counts = b.ld_v4<U32>(Space::shared, At(shared, offset + 4 * w));
    for (uint32_t k = 0; k < 4 && w + k < warps; ++k) {
      b.when(b.setp(Is::gt, t.warp, w + k)).add(s.before, counts[k], s.before);
      s.total = s.total.valid() ? b.add(s.total, counts[k]) : counts[k];
    }
  }
  return s;
}

// A word of a look-back is value * 4 + state: 0 nothing yet, 1 the tile's own count, 2 the count up to and including the tile.
static void store_count(Builder& b, Reg<Pred> storing, Reg<U32> tile, Reg<U64> count, Reg<U64> at) {
  Reg<U64> word = b.add(b.shl(count, 2u), b.select<U64>(2, 1, b.setp(Is::eq, tile, 0u)));
  store_if<U64>(b, storing, Space::global, At(at), word, volatile_access);
}

void publish_count(Builder& b, const Thread& t, Reg<U32> tile, Reg<U64> count, Reg<U64> words) {
  store_count(b, b.setp(Is::eq, t.tid, 0u), tile, count, element_address(b, words, tile, 8));
}

// published: the count is there already.
static Reg<U64> look_back(Builder& b, const Thread& t, Reg<U32> tile, Reg<U64> count, Reg<U64> words, At shared,
                          bool published) {
  const ptx::LabelId known = b.label(), window = b.label(), poll = b.label();
  b.when(b.setp(Is::ne, t.warp, 0u)).bra_uni(known);
  Reg<Pred> lane0 = b.setp(Is::eq, t.lane, 0u);
  Reg<U64> own = element_address(b, words, tile, 8);
  if (!published) store_count(b, lane0, tile, count, own);
  Reg<U64> before = b.constant<U64>(0);
  Reg<S32> earlier = b.sub(b.sub(Builder::as<S32>(tile), 1), Builder::as<S32>(t.lane));
  b.bind(window);
  Reg<Pred> exists = b.setp(Is::ge, earlier, 0);
  Reg<U64> at = element_address(b, words, Builder::as<U32>(earlier), 8);
  Reg<U64> seen = b.constant<U64>(2);  // before the first tile: nothing, known
  b.bind(poll);
  load_if<U64>(b, exists, Space::global, At(at), seen, volatile_access);
  Reg<U32> state = b.and_(b.cvt<U32>(seen), 3u);
  b.unless(b.vote(VoteMode::all, b.setp(Is::ne, state, 0u))).bra_uni(poll);
  Reg<U32> inclusive = b.ballot(b.setp(Is::eq, state, 2u));
  Reg<U32> nearest = b.clz(b.brev(inclusive));  // 32 when there is none; lanes behind it do not count
  Reg<U64> value = b.shr(seen, 2u);
  b.when(b.setp(Is::gt, t.lane, nearest)).constant<U64>(0, value);
  for (uint32_t distance = 16; distance > 0; distance /= 2)
    b.add(value, b.shfl_sync_64(ShuffleMode::bfly, value, distance, 31u), value);
  b.add(before, value, before);
  b.sub(earlier, 32, earlier);
  b.when(b.setp(Is::eq, inclusive, 0u)).bra_uni(window);
  Reg<U64> final_word = b.add(b.shl(b.add(before, count), 2u), 2);
  store_if<U64>(b, lane0, Space::global, At(own), final_word, volatile_access);
  store_if<U64>(b, lane0, Space::shared, shared, before);
  b.bind(known);
  b.bar_sync();
  return b.ld<U64>(Space::shared, shared);
}

Reg<U64> look_back(Builder& b, const Thread& t, Reg<U32> tile, Reg<U64> count, Reg<U64> words, At shared) {
  return look_back(b, t, tile, count, words, shared, false);
}

Reg<U64> sum_before(Builder& b, const Thread& t, Reg<U32> tile, Reg<U64> count, Reg<U64> words, At shared) {
  return look_back(b, t, tile, count, words, shared, true);
}

Reg<U64> look_back(Builder& b, const Thread& t, Reg<U32> tile, Reg<U32> tiles, Reg<U32> count, Reg<U64> words,
                   Reg<U64> total, At shared) {
  Reg<U64> before = look_back(b, t, tile, count, words, shared);
  Reg<Pred> last = b.setp(Is::eq, ptx::Combine::and_, b.add(tile, 1), tiles, b.setp(Is::eq, t.tid, 0));
  store_if<U64>(b, last, Space::global, At(total), b.add(before, b.cvt<U64>(count)));
  return before;
}

BlockSum count_kept(Builder& b, const Thread& t, std::span<const Reg<U32>> kept, uint32_t warps,
                    ptx::SharedVariable shared, int64_t offset) {
  Reg<U32> count = b.popc(kept[0]);
  for (Reg<U32> mask : kept.subspan(1)) count = b.add(count, b.popc(mask));
  return block_sum(b, t, count, warps, shared, offset);
}

}  // namespace rndn::operators
