// Stable least-significant-digit radix sort, "one-sweep": Adinolfi and Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for
// GPUs", 2022. Digits have 8 bits.
//
// pack    reads the columns, writes one word per row, and counts all digits of all words at once (shared memory, then global atomics).
// sweep   one launch per digit. A block takes the next tile, loads it in stripes of a warp, ranks every key among the equal digits of its
//         warp (ballots, one per bit of the digit: lanes with the same digit find each other), adds up the warps, learns by look-back how
//         many keys with each digit lie in earlier tiles (one thread per digit; four earlier tiles are read at a time), exchanges keys
//         and row numbers through shared memory so that equal digits lie together, and writes them.
//         Status words: value * 4 + state, state 0 nothing yet, 1 the tile's own count, 2 up to and including the tile; tile 0 starts from
//         the digit's place in the whole. u32 while there are fewer than 2^30 rows, u64 beyond.
//         Keys beyond the end have all bits set: they are the last of the last tile and are not written.
// Several words: the least significant is sorted first; the next is packed through the row numbers found so far.
//
// Bytes per row: pack reads the columns and writes 4 or 8; a sweep moves 2 * (4 or 8) of key and 2 * 4 of row number; the first does not
// read row numbers, the last writes 8 of them and no key, unless it is asked for. Status words add 256 * 4 * 3 per tile.
// Memory that must be zero: counters come from Library::zeroed and are set back by tile 0 (digit counts) and by who takes the last tile
// (ticket); status words are cleared one launch ahead, in two alternating buffers.
#include "libraries/operators/sort/radix_sort.h"

#include <algorithm>
#include <tuple>

#include "libraries/operators/emit.h"
#include "libraries/operators/ready.h"
#include "libraries/operators/sort/bitonic_sort.h"

namespace rndn::operators {

using ptx::AtomicOp;

namespace {

constexpr uint32_t radix_digits = 256, radix_block = 256, radix_warps = radix_block / 32;
constexpr uint32_t radix_items_of(bool wide) { return wide ? 12 : 16; }
constexpr uint32_t radix_tile_of(bool wide) { return radix_block * radix_items_of(wide); }
constexpr uint32_t pack_block = 256, pack_items = 4;

// Places in Library::zeroed: 8 digit counts of 256 u32 behind the counters of the other kernels.
constexpr uint64_t radix_ticket_at = 4096, counts_at = 8192;

// --- pack -------------------------------------------------------------------------------------------------------------------------

struct PackKind {
  std::vector<Source> sources;
  bool wide = false, gather = false;
};

uint32_t build_radix_pack(ptx::Module& module, std::string_view name, const PackKind& kind) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_rows = b.parameter<U64>("rows"), p_keys = b.parameter<U64>("keys"),
        p_counts = b.parameter<U64>("counts"), p_digits = b.parameter<U64>("digits"),
        p_clear = b.parameter<U64>("clear"), p_clears = b.parameter<U64>("clears");
  struct Scale {
    Param shift, low, factor;
  };
  std::vector<PartCode> parts;
  std::vector<Scale> scales;
  for (uint32_t k = 0; k < kind.sources.size(); ++k) {
    parts.push_back(declare_part(b, kind.sources[k], k));
    const std::string number = std::to_string(k);
    scales.push_back(
        {b.parameter<U64>("shift" + number), b.parameter<U64>("low" + number), b.parameter<U64>("factor" + number)});
  }
  b.set_block_size(pack_block);
  // Counts are kept several times, by lane, in neighbouring words: lanes with equal digits meet less often.
  const uint32_t most_digits = kind.wide ? 8 : 4, copies = kind.wide ? 2 : 4, row_bytes = 4 * radix_digits * copies;
  auto shared = b.shared<U32>(std::string(name) + "_counts", most_digits * radix_digits * copies, 16);
  const Thread t = thread_of(b);
  Reg<U32> ctaid = b.special(ptx::SpecialRegister::ctaid_x), nctaid = b.special(ptx::SpecialRegister::nctaid_x);
  Reg<U32> base = b.address_of_32(shared);
  Reg<U32> own = b.mad_lo(t.tid, 4 * copies, base);
  Reg<U32> own_copy = b.mad_lo(b.and_(t.lane, copies - 1), 4u, base);
  for (uint32_t d = 0; d < most_digits; ++d)
    for (uint32_t c = 0; c < copies; ++c) b.st<U32>(Space::shared, At(own, row_bytes * d + 4 * c), 0u);
  b.bar_sync();

  Reg<U64> n = b.ld_param(p_n);
  Reg<U64> keys = b.ld_param(p_keys), rows = b.ld_param(p_rows);
  Reg<U32> digit_count = b.cvt<U32>(b.ld_param(p_digits));
  const uint32_t tile = pack_block * pack_items;
  Reg<U64> start = b.mul_wide(ctaid, tile), step = b.mul_wide(nctaid, tile);
  Reg<U64> last = b.sub(n, 1);
  const ptx::LabelId loop = b.label(), done = b.label();
  b.bind(loop);
  b.when(b.setp(Is::ge, start, n)).bra_uni(done);
  Reg<U64> first = b.add(start, b.cvt<U64>(t.tid));
  // All loads of the tile, then what becomes of them. Rows beyond the end read the last one and write nothing.
  std::vector<Reg<U32>> row(pack_items), source_row(pack_items);
  std::vector<Reg<Pred>> inside(pack_items);
  for (uint32_t i = 0; i < pack_items; ++i) {
    Reg<U64> at = i ? b.add(first, pack_block * i) : first;
    inside[i] = b.setp(Is::lt, at, n);
    row[i] = source_row[i] = b.cvt<U32>(b.min(at, last));
    if (kind.gather) source_row[i] = b.ld<U32>(Space::global, At(element_address(b, rows, row[i], 4)));
  }
  std::vector<std::vector<Bits>> bits(pack_items);
  for (uint32_t i = 0; i < pack_items; ++i)
    for (const PartCode& p : parts) bits[i].push_back(load_bits(b, p, source_row[i]));
  for (uint32_t i = 0; i < pack_items; ++i) {
    Reg<U32> key32 = b.constant<U32>(0u);
    Reg<U64> key64 = b.constant<U64>(0);
    for (size_t k = 0; k < parts.size(); ++k) {
      Reg<U32> shift = b.cvt<U32>(b.ld_param(scales[k].shift));
      Reg<U64> low = b.ld_param(scales[k].low), factor = b.ld_param(scales[k].factor);
      const Bits& s = bits[i][k];
      if (kind.wide) {
        Reg<U64> value =
            s.is_wide() ? b.sub(b.shr(s.wide, shift), low) : b.cvt<U64>(b.sub(b.shr(s.narrow, shift), b.cvt<U32>(low)));
        key64 = parts.size() == 1 ? value : b.mad_lo(value, factor, key64);
      } else {
        Reg<U32> value =
            s.is_wide() ? b.cvt<U32>(b.sub(b.shr(s.wide, shift), low)) : b.sub(b.shr(s.narrow, shift), b.cvt<U32>(low));
        key32 = parts.size() == 1 ? value : b.mad_lo(value, b.cvt<U32>(factor), key32);
      }
    }
    if (kind.wide)
      store_if<U64>(b, inside[i], Space::global, At(element_address(b, keys, row[i], 8)), key64);
    else
      store_if<U32>(b, inside[i], Space::global, At(element_address(b, keys, row[i], 4)), key32);
    Reg<U32> low = key32, high = key32;
    if (kind.wide) std::tie(low, high) = b.unpack(key64);
    const ptx::LabelId counted = b.label();
    for (uint32_t d = 0; d < most_digits; ++d) {
      b.when(b.setp(Is::le, digit_count, d)).bra_uni(counted);
      Reg<U32> digit = b.bfe(d < 4 ? low : high, 8 * (d % 4), 8u);
      Reg<U32> at = b.mad_lo(digit, 4 * copies, own_copy);
      b.when(inside[i]).red<U32>(AtomicOp::add, Space::shared, At(at, row_bytes * d), 1u);
    }
    b.bind(counted);
  }
  b.add(start, step, start);
  b.bra(loop);
  b.bind(done);
  b.bar_sync();
  for (uint32_t d = 0; d < most_digits; ++d) {
    Reg<U32> count = b.ld<U32>(Space::shared, At(own, row_bytes * d));
    for (uint32_t c = 1; c < copies; ++c)
      count = b.add(count, b.ld<U32>(Space::shared, At(own, row_bytes * d + 4 * c)));
    Reg<U64> at = element_address(b, b.ld_param(p_counts), t.tid, 4);
    b.when(b.setp(Is::ne, count, 0u)).red<U32>(AtomicOp::add, Space::global, At(at, 4 * radix_digits * d), count);
  }
  // Status words of the scans to come.
  Reg<U64> clears = b.ld_param(p_clears);
  Reg<U64> word = b.mad_wide(ctaid, pack_block, b.cvt<U64>(t.tid));
  Reg<U64> at = b.add(b.ld_param(p_clear), b.shl(word, 3u));
  const ptx::LabelId clear = b.label(), cleared = b.label();
  b.bind(clear);
  b.when(b.setp(Is::ge, word, clears)).bra(cleared);
  b.st<U64>(Space::global, At(at), 0);
  b.add(word, b.mul_wide(nctaid, pack_block), word);
  b.add(at, b.mul_wide(nctaid, pack_block * 8), at);
  b.bra(clear);
  b.bind(cleared);
  b.ret();
  b.finish();
  return pack_block;
}

// --- sweep ------------------------------------------------------------------------------------------------------------------------

struct SweepKind {
  bool wide = false;        // u64 keys
  bool numbers = false;     // row numbers are positions: the first sweep of all
  bool keys_out = false;    // writes keys
  bool rows_out64 = false;  // writes row numbers as i64
  bool long_status = false;
};

uint32_t build_sweep(ptx::Module& module, std::string_view name, const SweepKind& kind) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_tiles = b.parameter<U64>("tiles"), p_keys_in = b.parameter<U64>("keys_in"),
        p_rows_in = b.parameter<U64>("rows_in"), p_keys_out = b.parameter<U64>("keys_out"),
        p_rows_out = b.parameter<U64>("rows_out"), p_counts = b.parameter<U64>("counts"),
        p_ticket = b.parameter<U64>("ticket"), p_status = b.parameter<U64>("status"), p_next = b.parameter<U64>("next"),
        p_shift = b.parameter<U64>("shift");
  b.set_block_size(radix_block);
  const uint32_t items = radix_items_of(kind.wide), tile_size = radix_tile_of(kind.wide);
  const uint32_t key_bytes = kind.wide ? 8 : 4, status_bytes = kind.long_status ? 8 : 4;
  // Shared memory: 16 bytes for the ticket; sums of 8 warps; per digit the place of its keys less their place in the tile; then digit
  // counts per warp, and over them, once they have been read, the exchange.
  constexpr int64_t sums_at = 16, place_at = 80, exchange_at = place_at + 4 * radix_digits;
  const uint32_t exchange_bytes = std::max<uint32_t>(radix_warps * radix_digits * 4, tile_size * key_bytes);
  auto shared =
      b.shared<U32>(std::string(name) + "_shared", (static_cast<uint32_t>(exchange_at) + exchange_bytes) / 4, 16);
  const Thread t = thread_of(b);
  Reg<U32> base = b.address_of_32(shared);
  Reg<U32> tid4 = b.shl(t.tid, 2u);
  Reg<U32> own_digit = b.add(base, tid4);
  for (uint32_t w = 0; w < radix_warps; ++w) b.st<U32>(Space::shared, At(own_digit, exchange_at + 4 * radix_digits * w), 0u);
  Reg<U32> tile = take_ticket(b, t, b.ld_param(p_ticket), b.cvt<U32>(b.ld_param(p_tiles)), At(shared));

  // Load, in stripes of a warp: the rank among equal keys follows the order in memory.
  Reg<U64> n = b.ld_param(p_n);
  Reg<U64> tile_start = b.mul_wide(tile, tile_size);
  Reg<U64> left64 = b.min(b.sub(n, tile_start), uint64_t{tile_size});
  Reg<U32> left = b.cvt<U32>(left64);
  Reg<U32> within = b.mad_lo(t.warp, 32 * items, t.lane);
  Reg<U32> first = b.add(b.cvt<U32>(tile_start), within);
  std::vector<Reg<U64>> key64(items);
  std::vector<Reg<U32>> key32(items), row(items), rank(items);
  Reg<U64> key_at = element_address(b, b.ld_param(p_keys_in), first, key_bytes);
  Reg<U64> row_at;
  if (!kind.numbers) row_at = element_address(b, b.ld_param(p_rows_in), first, 4);
  const ptx::LabelId partial = b.label(), loaded = b.label();
  for (uint32_t i = 0; i < items; ++i) {
    if (kind.wide)
      key64[i] = b.reg<U64>();
    else
      key32[i] = b.reg<U32>();
    if (!kind.numbers) row[i] = b.reg<U32>();
  }
  b.when(b.setp(Is::lt, left, tile_size)).bra_uni(partial);
  for (uint32_t i = 0; i < items; ++i) {
    if (kind.wide)
      b.ld<U64>(Space::global, At(key_at, 256 * i), key64[i]);
    else
      b.ld<U32>(Space::global, At(key_at, 128 * i), key32[i]);
  }
  if (!kind.numbers)
    for (uint32_t i = 0; i < items; ++i) b.ld<U32>(Space::global, At(row_at, 128 * i), row[i]);
  b.bra(loaded);
  b.bind(partial);
  for (uint32_t i = 0; i < items; ++i) {
    Reg<Pred> inside = b.setp(Is::lt, b.add(within, 32 * i), left);
    if (kind.wide) {
      b.constant<U64>(~uint64_t{0}, key64[i]);
      load_if<U64>(b, inside, Space::global, At(key_at, 256 * i), key64[i]);
    } else {
      b.constant<U32>(0xFFFFFFFFu, key32[i]);
      load_if<U32>(b, inside, Space::global, At(key_at, 128 * i), key32[i]);
    }
    if (!kind.numbers) {
      b.constant<U32>(0u, row[i]);
      load_if<U32>(b, inside, Space::global, At(row_at, 128 * i), row[i]);
    }
  }
  b.bind(loaded);

  // Ranks within the warp.
  Reg<U32> shift = b.cvt<U32>(b.ld_param(p_shift));
  Reg<U32> byte = b.shr(shift, 3u);
  Reg<U32> lanes_before = b.sub(b.shl(b.constant<U32>(1u), t.lane), 1u);
  Reg<U32> warp_counts = b.mad_lo(t.warp, 4 * radix_digits, base);
  // The byte of the key that is sorted by.
  const auto digit_of = [&](Reg<U64> wide, Reg<U32> narrow) {
    if (!kind.wide) return b.and_(b.shr(narrow, shift), 255u);
    const auto [low, high] = b.unpack(wide);
    return b.and_(b.prmt(low, high, byte), 255u);
  };
  for (uint32_t i = 0; i < items; ++i) {
    Reg<U32> digit = digit_of(key64[i], key32[i]);
    Reg<U32> peers = equal_digits(b, digit);
    Reg<U32> before = b.popc(b.and_(peers, lanes_before));
    Reg<U32> at = b.mad_lo(digit, 4u, warp_counts);
    Reg<U32> earlier = b.ld<U32>(Space::shared, At(at, exchange_at));
    b.bar_warp_sync();
    store_if<U32>(b, b.setp(Is::eq, before, 0u), Space::shared, At(at, exchange_at), b.add(earlier, b.popc(peers)));
    b.bar_warp_sync();
    rank[i] = b.add(earlier, before);
  }
  b.bar_sync();

  // From here on thread d is digit d. Counts per warp become sums over the warps before.
  Reg<U32> count = b.constant<U32>(0u);
  for (uint32_t w = 0; w < radix_warps; ++w) {
    const int64_t at = exchange_at + 4 * radix_digits * w;
    Reg<U32> own = b.ld<U32>(Space::shared, At(own_digit, at));
    b.st<U32>(Space::shared, At(own_digit, at), count);
    count = b.add(count, own);
  }
  // Place in the tile (low half) and, in tile 0, in the whole (high half), by one scan.
  Reg<Pred> tile0 = b.setp(Is::eq, tile, 0u);
  Reg<U64> counts = element_address(b, b.ld_param(p_counts), t.tid, 4);
  Reg<U32> whole = b.constant<U32>(0u);
  load_if<U32>(b, tile0, Space::global, At(counts), whole);
  store_if<U32>(b, tile0, Space::global, At(counts), 0u);
  Reg<U64> both = b.pack<U64>(count, whole);
  Reg<U64> sum = warp_sum(b, t, both);
  store_if<U64>(b, b.setp(Is::eq, t.lane, 31u), Space::shared, At(b.add(base, b.shl(t.warp, 3u)), sums_at), sum);
  // The tile's own count is published as early as possible; tile 0 follows when it knows its place.
  Reg<U64> status = b.ld_param(p_status);
  const auto publish = [&](Reg<U32> value, uint32_t state, Condition when) {
    Reg<U32> at = b.mad_lo(tile, radix_digits, t.tid);
    if (kind.long_status) {
      Reg<U64> word = b.add(b.shl(b.cvt<U64>(value), 2u), uint64_t{state});
      store_if<U64>(b, when, Space::global, At(element_address(b, status, at, 8)), word, volatile_access);
    } else {
      Reg<U32> word = b.add(b.shl(value, 2u), state);
      store_if<U32>(b, when, Space::global, At(element_address(b, status, at, 4)), word, volatile_access);
    }
  };
  publish(count, 1, !tile0);
  // The words of the next sweep.
  {
    Reg<U64> at = element_address(b, b.ld_param(p_next), b.mad_lo(tile, radix_digits, t.tid), status_bytes);
    if (kind.long_status)
      b.st<U64>(Space::global, At(at), 0);
    else
      b.st<U32>(Space::global, At(at), 0u);
  }
  b.bar_sync();
  Reg<U64> exclusive = b.sub(sum, both);
  for (uint32_t w = 0; w + 1 < radix_warps; ++w) {
    Reg<U64> other = b.ld<U64>(Space::shared, At(shared, sums_at + 8 * w));
    b.when(b.setp(Is::gt, t.warp, w)).add(exclusive, other, exclusive);
  }
  auto [in_tile, in_whole] = b.unpack(exclusive);

  // Look-back: where this tile's keys of the digit begin.
  Reg<U32> place = b.mov(in_whole);
  {
    const ptx::LabelId look = b.label(), known = b.label();
    publish(b.add(place, count), 2, tile0);
    b.when(tile0).bra_uni(known);
    constexpr uint32_t ahead = 4;
    Reg<S32> earlier = b.sub(Builder::as<S32>(tile), 1);
    Reg<U32> searching = b.constant<U32>(1u);
    b.bind(look);
    std::vector<Reg<U32>> values, states;
    for (uint32_t k = 0; k < ahead; ++k) {
      Reg<S32> from = b.max(k ? b.sub(earlier, static_cast<int32_t>(k)) : earlier, 0);
      Reg<U32> at = b.mad_lo(Builder::as<U32>(from), radix_digits, t.tid);
      if (kind.long_status) {
        Reg<U64> word = b.ld<U64>(Space::global, volatile_access, At(element_address(b, status, at, 8)));
        values.push_back(b.cvt<U32>(b.shr(word, 2u)));
        states.push_back(b.and_(b.cvt<U32>(word), 3u));
      } else {
        Reg<U32> word = b.ld<U32>(Space::global, volatile_access, At(element_address(b, status, at, 4)));
        values.push_back(b.shr(word, 2u));
        states.push_back(b.and_(word, 3u));
      }
    }
    // In order, until one is not there yet (try again from it) or knows everything before it.
    Reg<Pred> going = b.setp(Is::ne, searching, 0u);
    for (uint32_t k = 0; k < ahead; ++k) {
      going = b.setp(Is::ne, ptx::Combine::and_, states[k], 0u, going);
      b.when(going).add(place, values[k], place);
      b.when(going).sub(earlier, 1, earlier);
      Reg<Pred> complete = b.setp(Is::eq, ptx::Combine::and_, states[k], 2u, going);
      b.when(complete).constant<U32>(0u, searching);
      going = b.setp(Is::ne, ptx::Combine::and_, searching, 0u, going);
    }
    b.when(b.vote(VoteMode::any, b.setp(Is::ne, searching, 0u))).bra_uni(look);
    b.bind(known);
    publish(b.add(place, count), 2, !tile0);
  }
  b.st<U32>(Space::shared, At(own_digit, place_at), b.sub(place, in_tile));
  // Sums over the warps before, plus the digit's place in the tile.
  for (uint32_t w = 0; w < radix_warps; ++w) {
    const int64_t at = exchange_at + 4 * radix_digits * w;
    b.st<U32>(Space::shared, At(own_digit, at), b.add(b.ld<U32>(Space::shared, At(own_digit, at)), in_tile));
  }
  b.bar_sync();
  for (uint32_t i = 0; i < items; ++i) {
    Reg<U32> at = b.mad_lo(digit_of(key64[i], key32[i]), 4u, warp_counts);
    b.add(rank[i], b.ld<U32>(Space::shared, At(at, exchange_at)), rank[i]);
  }
  b.bar_sync();

  // Exchange: neighbouring threads write neighbouring keys.
  for (uint32_t i = 0; i < items; ++i) {
    Reg<U32> at = b.mad_lo(rank[i], key_bytes, base);
    if (kind.wide)
      b.st<U64>(Space::shared, At(at, exchange_at), key64[i]);
    else
      b.st<U32>(Space::shared, At(at, exchange_at), key32[i]);
  }
  b.bar_sync();
  std::vector<Reg<U32>> to(items);
  std::vector<Reg<Pred>> inside(items);
  Reg<U32> mine = b.mad_lo(t.tid, key_bytes, base);
  Reg<U64> keys_out = b.ld_param(p_keys_out), rows_out = b.ld_param(p_rows_out);
  for (uint32_t i = 0; i < items; ++i) {
    const int64_t at = exchange_at + int64_t{radix_block} * key_bytes * i;
    Reg<U32> position = i ? b.add(t.tid, radix_block * i) : t.tid;
    inside[i] = b.setp(Is::lt, position, left);
    Reg<U32> digit;
    Reg<U64> wide;
    Reg<U32> narrow;
    if (kind.wide)
      wide = b.ld<U64>(Space::shared, At(mine, at));
    else
      narrow = b.ld<U32>(Space::shared, At(mine, at));
    digit = digit_of(wide, narrow);
    to[i] = b.add(b.ld<U32>(Space::shared, At(b.mad_lo(digit, 4u, base), place_at)), position);
    if (!kind.keys_out) continue;
    if (kind.wide)
      store_if<U64>(b, inside[i], Space::global, At(element_address(b, keys_out, to[i], 8)), wide);
    else
      store_if<U32>(b, inside[i], Space::global, At(element_address(b, keys_out, to[i], 4)), narrow);
  }
  b.bar_sync();
  for (uint32_t i = 0; i < items; ++i) {
    Reg<U32> number = kind.numbers ? b.add(first, 32 * i) : row[i];
    b.st<U32>(Space::shared, At(b.mad_lo(rank[i], 4u, base), exchange_at), number);
  }
  b.bar_sync();
  for (uint32_t i = 0; i < items; ++i) {
    Reg<U32> number = b.ld<U32>(Space::shared, At(own_digit, exchange_at + 4 * int64_t{radix_block} * i));
    if (kind.rows_out64)
      store_if<U64>(b, inside[i], Space::global, At(element_address(b, rows_out, to[i], 8)), b.cvt<U64>(number));
    else
      store_if<U32>(b, inside[i], Space::global, At(element_address(b, rows_out, to[i], 4)), number);
  }
  b.ret();
  b.finish();
  return radix_block;
}

// --- host -------------------------------------------------------------------------------------------------------------------------

Library::Row sweep(const SweepKind& kind) {
  return {fmt::format("sweep{}{}{}{}{}", kind.wide ? 64 : 32, kind.numbers ? "_numbers" : "",
                      kind.keys_out ? "_keys" : "", kind.rows_out64 ? "_rows64" : "", kind.long_status ? "_long" : ""),
          [kind](ptx::Module& m, std::string_view entry) { return build_sweep(m, entry, kind); }};
}

Library::Row pack_kernel(const PackKind& kind) {
  return {fmt::format("pack{}{}_{}", kind.wide ? 64 : 32, kind.gather ? "_gather" : "", source_letters(kind.sources)),
          [kind](ptx::Module& m, std::string_view entry) { return build_radix_pack(m, entry, kind); }};
}

// Packs one word of every row, in the order of `rows` (u32; 0: as they are), and counts `count_digits` digits of it.
Result<void> pack(Library& library, const Word& word, uint64_t n, Address rows, Address keys, uint32_t count_digits,
                  Address clear, uint64_t clears) {
  PackKind kind{{}, word.wide(), rows != 0};
  for (const Part& p : word.parts) kind.sources.push_back(p.source);
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(pack_kernel(kind)));
  ASSIGN_OR_RETURN(Address zeroed, library.zeroed());
  Arguments a;
  a.add(n).add(rows).add(keys).add(zeroed + counts_at).add(count_digits).add(clear).add(clears);
  uint64_t bytes = (kind.wide ? 8 : 4) * n;
  for (size_t k = 0; k < word.parts.size(); ++k) {
    const Part& p = word.parts[k];
    add_part(a, p);
    a.add(p.shift).add(p.low >> p.shift).add(word.factors[k]);
    bytes += (is_wide(p.source) ? 8 : 4) * n;
  }
  const uint64_t tile = pack_block * pack_items;
  return library.launch(*kernel, library.grid(*kernel, (n + tile - 1) / tile), a, bytes);
}

Result<Sorted> by_bitonic(Library& library, std::span<const Word> words, uint64_t n, bool keys, uint64_t scan_words,
                          Memory& memory) {
  Sorted out{.wide = words.back().wide(), .complete = words.size() == 1};
  ASSIGN_OR_RETURN(out.rows, memory.result(8 * n));
  ASSIGN_OR_RETURN(out.words, memory.temporary(8 * scan_words + 8));
  ASSIGN_OR_RETURN(Address key_buffer, memory.temporary(8 * bitonic_rows(n)));
  ASSIGN_OR_RETURN(Address positions, memory.temporary(4 * bitonic_rows(n)));
  Address rows[2];
  for (Address& r : rows) {
    ASSIGN_OR_RETURN(r, memory.temporary(4 * n));
  }
  for (size_t w = 0; w < words.size(); ++w) {
    const bool last = w + 1 == words.size();
    const Address from = w ? rows[w % 2] : 0;
    RETURN_IF_ERROR(pack(library, words[w], n, from, key_buffer, 0, out.words, w ? 0 : scan_words));
    RETURN_IF_ERROR(bitonic_sort_word(library, words[w].wide(), n, key_buffer, positions));
    RETURN_IF_ERROR(bitonic_follow(library, n, positions, from, last ? out.rows : rows[(w + 1) % 2], last));
  }
  if (keys) out.keys = key_buffer;
  return out;
}

Result<Sorted> by_radix(Library& library, std::span<const Word> words, uint64_t n, bool keys, uint64_t scan_words,
                        Memory& memory) {
  Sorted out{.wide = words.back().wide(), .complete = words.size() == 1};
  const bool any_wide = std::any_of(words.begin(), words.end(), [](const Word& w) { return w.wide(); });
  const bool long_status = n > narrow_rows;
  const uint64_t most_tiles = (n + radix_tile_of(true) - 1) / radix_tile_of(true);
  const uint64_t status_bytes = most_tiles * radix_digits * (long_status ? 8 : 4);
  ASSIGN_OR_RETURN(Address zeroed, library.zeroed());
  ASSIGN_OR_RETURN(out.rows, memory.result(8 * n));
  ASSIGN_OR_RETURN(out.words, memory.temporary(8 * scan_words + 2 * status_bytes));
  Address status[2] = {out.words + 8 * scan_words, out.words + 8 * scan_words + status_bytes};
  // Sweeps read and write them by turns; the first reads no rows, the last writes none here, and keys only where they are wanted.
  uint32_t all_sweeps = 0;
  for (const Word& w : words) all_sweeps += w.digits();
  Address key_buffers[2] = {}, row_buffers[2] = {};
  for (const uint32_t k : {0u, 1u}) {
    if (k == 0 || keys || all_sweeps > 1) {
      ASSIGN_OR_RETURN(key_buffers[k], memory.temporary((any_wide ? 8 : 4) * n));
    }
    if (all_sweeps > 2 - k) {
      ASSIGN_OR_RETURN(row_buffers[k], memory.temporary(4 * n));
    }
  }
  uint32_t sweeps = 0;  // so far
  for (size_t w = 0; w < words.size(); ++w) {
    const Word& word = words[w];
    const bool wide = word.wide(), last_word = w + 1 == words.size();
    const uint64_t key_bytes = wide ? 8 : 4;
    // The first pack clears for everybody; a later one for its own sweeps, which may have more tiles than those before.
    RETURN_IF_ERROR(pack(library, word, n, w ? row_buffers[sweeps % 2] : 0, key_buffers[sweeps % 2], word.digits(),
                         w ? status[sweeps % 2] : out.words, (w ? 0 : scan_words) + status_bytes / 8));
    for (uint32_t digit = 0; digit < word.digits(); ++digit) {
      const bool last_digit = digit + 1 == word.digits(), last = last_word && last_digit;
      SweepKind kind;
      kind.wide = wide;
      kind.numbers = w == 0 && digit == 0;
      kind.keys_out = last ? keys : !last_digit;
      kind.rows_out64 = last;
      kind.long_status = long_status;
      ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(sweep(kind)));
      const uint64_t tiles = (n + radix_tile_of(wide) - 1) / radix_tile_of(wide);
      const uint32_t in = sweeps % 2, to = 1 - in;
      Arguments s;
      s.add(n).add(tiles).add(key_buffers[in]).add(row_buffers[in]).add(key_buffers[to]);
      s.add(last ? out.rows : row_buffers[to]).add(zeroed + counts_at + 4 * radix_digits * digit).add(zeroed + radix_ticket_at);
      s.add(status[in]).add(status[to]).add(8 * digit);
      RETURN_IF_ERROR(
          library.launch(*kernel, static_cast<uint32_t>(tiles), s,
                         n * ((kind.keys_out ? 2 : 1) * key_bytes + (kind.numbers ? 0 : 4) + (last ? 8 : 4))));
      ++sweeps;
      if (last) out.keys = keys ? key_buffers[to] : 0;
    }
  }
  return out;
}

}  // namespace

// Of one column, and of integers behind other words.
void add_packs(KernelRows& rows) {
  for (Source source : all_sources) {
    rows.push_back(pack_kernel({{source}, false, false}));
    if (is_wide(source)) rows.push_back(pack_kernel({{source}, true, false}));
  }
  for (Source source : {Source::u8, Source::u16, Source::u32, Source::u64})
    rows.push_back(pack_kernel({{source}, false, true}));
  rows.push_back(pack_kernel({{Source::u64}, true, true}));
}

// The first sweep, those between, the last of a word and the last of all, whose keys somebody wants or nobody.
void add_sweeps(KernelRows& rows) {
  for (bool wide : {false, true})
    for (bool numbers : {true, false})
      for (const auto& [keys_out, last] : {std::pair(true, false), {false, true}, {true, true}})
        rows.push_back(sweep({.wide = wide, .numbers = numbers, .keys_out = keys_out, .rows_out64 = last}));
  for (bool wide : {false, true}) rows.push_back(sweep({.wide = wide}));
}

Result<Sorted> sort_rows(Library& library, std::span<const Word> words, uint64_t n, bool keys, uint64_t scan_words,
                         Memory& memory) {
  // Network sizes have 32 bits.
  if (library.options.sort == Options::Sort::bitonic && n <= narrow_rows)
    return by_bitonic(library, words, n, keys, scan_words, memory);
  auto sorted = by_radix(library, words, n, keys, scan_words, memory);
  if (!sorted) library.zero_again();  // sweeps that did not run have left their counts
  return sorted;
}

}  // namespace rndn::operators
