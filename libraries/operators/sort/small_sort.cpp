// A few rows: one block sorts them in shared memory, in one launch, and needs to know nothing beforehand.
//
// Column by column, the last first: sortable bits (keys.h) go to shared memory, the block finds their bounds by shuffles and subtracts the
// lowest, and a stable counting sort by 8 bits runs as often as the range has digits. What moves is row numbers; keys stay where they are.
// A digit pass: warps rank their rows by ballots in order, thread d adds up digit d over the warps, a block scan gives the places, and
// row numbers change places through shared memory. Warps without rows skip the ranking. Then rows are compared with their predecessors
// to find groups, counted by ballots.
// Rows beyond the end have all bits set, and so stay behind the others.
// Cost: the columns are read once (twice for groups); about 5 barriers per digit.
#include "libraries/operators/sort/small_sort.h"

#include "libraries/base/errors/check.h"
#include "libraries/operators/emit.h"

namespace rndn::operators {

namespace {

constexpr uint32_t block = 512, warps = block / 32, items = 4, digits = 256;
static_assert(block * items == small_rows);

// Shared memory: four figures per warp; sums of runs and of digits per warp; keys; row numbers in order; counts per warp and digit.
constexpr int64_t figures_at = 0, runs_at = 512, digit_sums_at = 576, keys_at = 640,
                  order_at = keys_at + 8 * small_rows, counts_at = order_at + 4 * small_rows,
                  shared_bytes = counts_at + 4 * warps * digits;
static_assert(shared_bytes <= 48 << 10);

struct Emission {
  Builder& b;
  Thread t;
  ptx::SharedVariable shared;
  Reg<U32> base;         // of shared memory
  Reg<U32> n, position;  // of item 0
  Reg<U32> lanes_before;
  std::vector<Reg<Pred>> inside;
  std::vector<Reg<U32>> row;  // the row at the position of every item
};

Reg<U32> key_address(Emission& e, Reg<U32> row, uint32_t bytes) { return e.b.mad_lo(row, bytes, e.base); }

// The largest x of the block, in every thread. Figure f of shared memory.
template <class T>
Reg<T> block_max(Emission& e, Reg<T> x, bool is_or, uint32_t f, bool store) {
  Builder& b = e.b;
  const auto step = [&](uint32_t distance) {
    Reg<T> other;
    if constexpr (T::size == 8)
      other = b.shfl_sync_64(ShuffleMode::bfly, x, distance, 31u);
    else
      other = b.shfl_sync(ShuffleMode::bfly, x, distance, 31u);
    x = is_or ? b.or_(x, other) : b.max(x, other);
  };
  if (store) {
    for (uint32_t distance = 16; distance > 0; distance /= 2) step(distance);
    Reg<U32> at = b.add(e.base, b.shl(e.t.warp, 3u));
    store_if<T>(b, b.setp(Is::eq, e.t.lane, 0u), Space::shared, At(at, figures_at + 8 * warps * f), x);
  } else {
    Reg<U32> at = b.add(e.base, b.shl(b.and_(e.t.lane, warps - 1), 3u));
    x = b.ld<T>(Space::shared, At(at, figures_at + 8 * warps * f));
    for (uint32_t distance = warps / 2; distance > 0; distance /= 2) step(distance);
  }
  return x;
}

// One digit: row numbers at the positions are sorted by the 8 bits of their keys from `shift` on.
template <class T>
void digit_pass(Emission& e, Reg<U32> shift) {
  Builder& b = e.b;
  constexpr uint32_t bytes = T::size;
  Reg<U32> own = b.mad_lo(e.t.tid, 4u, e.base);
  Reg<U32> warp_counts = b.mad_lo(e.t.warp, 4 * digits, e.base);
  Reg<U32> mine = b.mad_lo(e.t.lane, 4u, warp_counts);
  for (uint32_t k = 0; k < digits / 32; ++k) b.st<U32>(Space::shared, At(mine, counts_at + 128 * k), 0u);
  b.bar_warp_sync();
  const ptx::LabelId ranked = b.label();
  std::vector<Reg<U32>> digit(items), rank(items);
  for (uint32_t i = 0; i < items; ++i) digit[i] = b.constant<U32>(0u), rank[i] = b.constant<U32>(0u);
  Reg<Pred> idle = b.setp(Is::ge, b.mul_lo(e.t.warp, 32 * items), e.n);
  b.when(idle).bra_uni(ranked);
  for (uint32_t i = 0; i < items; ++i) {
    Reg<T> key = b.ld<T>(Space::shared, At(key_address(e, e.row[i], bytes), keys_at));
    Reg<T> shifted = b.shr(key, shift);
    if constexpr (bytes == 8)
      b.and_(b.cvt<U32>(shifted), 255u, digit[i]);
    else
      b.and_(shifted, 255u, digit[i]);
  }
  for (uint32_t i = 0; i < items; ++i) {
    Reg<U32> peers = equal_digits(b, digit[i]);
    Reg<U32> before = b.popc(b.and_(peers, e.lanes_before));
    Reg<U32> at = b.add(warp_counts, b.shl(digit[i], 2u));
    Reg<U32> earlier = b.ld<U32>(Space::shared, At(at, counts_at));
    b.bar_warp_sync();
    Reg<U32> next = b.add(earlier, b.popc(peers));
    store_if<U32>(b, b.setp(Is::eq, before, 0u), Space::shared, At(at, counts_at), next);
    b.bar_warp_sync();
    b.add(earlier, before, rank[i]);
  }
  b.bind(ranked);
  b.bar_sync();
  // Thread d is digit d.
  Reg<Pred> is_digit = b.setp(Is::lt, e.t.tid, digits);
  Reg<U32> count = b.constant<U32>(0u);
  std::vector<Reg<U32>> earlier_warps;
  {
    const ptx::LabelId no_digit = b.label();
    b.unless(is_digit).bra_uni(no_digit);
    std::vector<Reg<U32>> per_warp;
    for (uint32_t w = 0; w < warps; ++w)
      per_warp.push_back(b.ld<U32>(Space::shared, At(own, counts_at + 4 * digits * w)));
    for (uint32_t w = 0; w < warps; ++w) {
      b.st<U32>(Space::shared, At(own, counts_at + 4 * digits * w), count);
      b.add(count, per_warp[w], count);
    }
    b.bind(no_digit);
  }
  Reg<U32> sum = warp_sum(b, e.t, count);
  Reg<U32> sum_at = b.mad_lo(e.t.warp, 4u, e.base);
  Reg<Pred> last_of_digits = b.setp(Is::eq, ptx::Combine::and_, e.t.lane, 31u, is_digit);
  store_if<U32>(b, last_of_digits, Space::shared, At(sum_at, digit_sums_at), sum);
  b.bar_sync();
  Reg<U32> place = b.sub(sum, count);
  for (uint32_t half = 0; half < 2; ++half) {
    const auto sums = b.ld_v4<U32>(Space::shared, At(e.shared, digit_sums_at + 16 * half));
    for (uint32_t k = 0; k < 4; ++k) b.when(b.setp(Is::gt, e.t.warp, 4 * half + k)).add(place, sums[k], place);
  }
  // The place of digit d goes to its own word, behind the keys that nobody reads in this half of the pass.
  store_if<U32>(b, is_digit, Space::shared, At(own, order_at), place);
  b.bar_sync();
  std::vector<Reg<U32>> to(items);
  for (uint32_t i = 0; i < items; ++i) {
    // Rows of idle warps stay where they are.
    to[i] = b.add(e.position, 32 * i);
    Reg<U32> d = b.and_(digit[i], 255u);
    Reg<U32> d4 = b.shl(d, 2u);
    Reg<U32> before = b.ld<U32>(Space::shared, At(b.add(warp_counts, d4), counts_at));
    Reg<U32> start = b.ld<U32>(Space::shared, At(b.add(e.base, d4), order_at));
    Reg<U32> sorted = b.add(b.add(rank[i], before), start);
    b.selp(to[i], sorted, idle, to[i]);
  }
  b.bar_sync();
  for (uint32_t i = 0; i < items; ++i) b.st<U32>(Space::shared, At(b.mad_lo(to[i], 4u, e.base), order_at), e.row[i]);
  b.bar_sync();
  Reg<U32> at = b.mad_lo(e.position, 4u, e.base);
  for (uint32_t i = 0; i < items; ++i) b.ld<U32>(Space::shared, At(at, order_at + 128 * i), e.row[i]);
  b.bar_sync();
}

// Sorts by one part: bits[i] of the row that is at item i's position by number.
template <class T>
void sort_by(Emission& e, std::vector<Reg<T>> bits, bool is_float) {
  Builder& b = e.b;
  Reg<T> high = b.constant<T>(0u), low = b.constant<T>(0u), set = b.constant<T>(0u), clear = b.constant<T>(0u);
  for (uint32_t i = 0; i < items; ++i) {
    Reg<T> inverse = b.not_(bits[i]);
    b.when(e.inside[i]).max(high, bits[i], high);
    b.when(e.inside[i]).max(low, inverse, low);
    if (!is_float) continue;
    b.when(e.inside[i]).or_(set, bits[i], set);
    b.when(e.inside[i]).or_(clear, inverse, clear);
  }
  block_max(e, high, false, 0, true);
  block_max(e, low, false, 1, true);
  if (is_float) block_max(e, set, true, 2, true), block_max(e, clear, true, 3, true);
  b.bar_sync();
  high = block_max(e, high, false, 0, false);
  low = b.not_(block_max(e, low, false, 1, false));
  Reg<U32> shift = b.constant<U32>(0u);
  if (is_float) {
    // Low bits that are the same in all rows, as in whole numbers: not sorted by.
    set = block_max(e, set, true, 2, false);
    clear = block_max(e, clear, true, 3, false);
    Reg<U32> zeros = b.clz(b.brev(b.and_(set, clear)));
    shift = b.min(zeros, 8 * T::size - 1);
  }
  Reg<T> range = b.sub(b.shr(high, shift), b.shr(low, shift));
  Reg<T> lowest = b.shr(low, shift);
  Reg<U32> width = b.sub(b.constant<U32>(8 * T::size), b.clz(range));
  Reg<U32> at = key_address(e, e.position, T::size);
  for (uint32_t i = 0; i < items; ++i) {
    Reg<T> key = b.sub(b.shr(bits[i], shift), lowest);
    Reg<T> padded = b.selp(key, b.not_(b.constant<T>(0u)), e.inside[i]);
    b.st<T>(Space::shared, At(at, keys_at + 32 * T::size * i), padded);
  }
  b.bar_sync();
  Reg<U32> done_bits = b.constant<U32>(0u);
  const ptx::LabelId pass = b.label(), sorted = b.label();
  b.bind(pass);
  b.when(b.setp(Is::ge, done_bits, width)).bra_uni(sorted);
  digit_pass<T>(e, done_bits);
  b.add(done_bits, 8u, done_bits);
  b.bra(pass);
  b.bind(sorted);
}

uint32_t build_small(ptx::Module& module, std::string_view name, Small kind, std::span<const Source> sources) {
  Builder b(module, std::string(name));
  Param p_n = b.parameter<U64>("n"), p_slot = b.parameter<U64>("slot"), p_rows = b.parameter<U64>("rows"),
        p_first = b.parameter<U64>("first"), p_offsets = b.parameter<U64>("offsets"), p_size = b.parameter<U64>("size"),
        p_found = b.parameter<U64>("found"), p_most = b.parameter<U64>("most");
  std::vector<PartCode> parts;
  for (size_t k = 0; k < sources.size(); ++k) parts.push_back(declare_part(b, sources[k], static_cast<uint32_t>(k)));
  b.set_block_size(block);
  auto shared = b.shared<U64>(std::string(name) + "_shared", shared_bytes / 8, 16);
  Emission e{.b = b, .t = thread_of(b), .shared = shared};
  e.base = b.address_of_32(shared);
  Reg<Pred> thread0 = b.setp(Is::eq, e.t.tid, 0u);
  Reg<U64> n = b.ld_param(p_n), slot = b.ld_param(p_slot), size = b.ld_param(p_size), found = b.ld_param(p_found);
  load_if<U64>(b, b.setp(Is::ne, slot, 0), Space::global, At(slot), n);
  Reg<Pred> wants_size = b.setp(Is::ne, ptx::Combine::and_, size, 0, thread0);
  Reg<Pred> wants_found = b.setp(Is::ne, ptx::Combine::and_, found, 0, thread0);
  store_if<U64>(b, wants_size, Space::global, At(size), b.min(n, b.ld_param(p_most)));
  store_if<U64>(b, wants_found, Space::global, At(found), n);
  const ptx::LabelId leave = b.label();
  b.when(b.setp(Is::gt, n, small_rows)).bra_uni(leave);

  e.n = b.cvt<U32>(n);
  e.position = b.mad_lo(e.t.warp, 32 * items, e.t.lane);
  e.lanes_before = b.sub(b.shl(b.constant<U32>(1u), e.t.lane), 1u);
  Reg<U32> own_order = b.mad_lo(e.position, 4u, e.base);
  for (uint32_t i = 0; i < items; ++i) {
    e.row.push_back(b.add(e.position, 32 * i));
    e.inside.push_back(b.setp(Is::lt, e.row[i], e.n));
    b.st<U32>(Space::shared, At(own_order, order_at + 128 * i), e.row[i]);
  }
  // Rows beyond the end read row 0; there is one, or nothing is read.
  const auto bits_of = [&](const PartCode& part, std::span<const Reg<U32>> rows) {
    std::vector<Bits> bits;
    for (Reg<U32> row : rows) bits.push_back(load_bits(b, part, row));
    return bits;
  };
  const ptx::LabelId sorted = b.label();
  b.when(b.setp(Is::eq, e.n, 0u)).bra_uni(sorted);
  std::vector<Reg<U32>> here;
  for (uint32_t i = 0; i < items; ++i) here.push_back(b.selp(e.row[i], 0u, e.inside[i]));
  for (size_t k = parts.size(); k-- > 0;) {
    const std::vector<Bits> bits = bits_of(parts[k], here);
    const bool is_float = parts[k].source == Source::f32 || parts[k].source == Source::f64;
    if (is_wide(parts[k].source)) {
      std::vector<Reg<U64>> wide;
      for (const Bits& x : bits) wide.push_back(x.wide);
      sort_by<U64>(e, wide, is_float);
    } else {
      std::vector<Reg<U32>> narrow;
      for (const Bits& x : bits) narrow.push_back(x.narrow);
      sort_by<U32>(e, narrow, is_float);
    }
  }
  b.bind(sorted);
  b.bar_sync();
  const auto store_at = [&](Param data, Reg<Pred> when, Reg<U32> index, Reg<U32> value) {
    store_if<U64>(b, when, Space::global, At(element_address(b, b.ld_param(data), index, 8)), b.cvt<U64>(value));
  };
  if (kind != Small::unique)
    for (uint32_t i = 0; i < items; ++i) store_at(p_rows, e.inside[i], b.add(e.position, 32 * i), e.row[i]);
  if (kind == Small::order) {
    b.bind(leave);
    b.ret();
    b.finish();
    return block;
  }
  // Which positions start a group.
  std::vector<Reg<Pred>> starts;
  {
    std::vector<Reg<U32>> now, before;
    for (uint32_t i = 0; i < items; ++i) {
      Reg<Pred> has_before = b.setp(Is::ne, ptx::Combine::and_, b.add(e.position, 32 * i), 0u, e.inside[i]);
      now.push_back(b.selp(e.row[i], 0u, e.inside[i]));
      before.push_back(b.mov(now[i]));
      load_if<U32>(b, has_before, Space::shared, At(own_order, order_at + 128 * i - 4), before[i]);
      starts.push_back(b.setp(Is::eq, ptx::Combine::and_, b.add(e.position, 32 * i), 0u, e.inside[i]));
    }
    const ptx::LabelId compared = b.label();
    b.when(b.setp(Is::eq, e.n, 0u)).bra_uni(compared);
    for (const PartCode& part : parts) {
      const std::vector<Bits> x = bits_of(part, now), y = bits_of(part, before);
      for (uint32_t i = 0; i < items; ++i) {
        Reg<Pred> differs =
            x[i].is_wide() ? b.setp(Is::ne, x[i].wide, y[i].wide) : b.setp(Is::ne, x[i].narrow, y[i].narrow);
        b.or_(starts[i], differs, starts[i]);
      }
    }
    b.bind(compared);
  }
  if (kind == Small::unique) {
    // Flags move to the rows that they are about: over the keys, one word each.
    Reg<U32> own_key = b.mad_lo(e.position, 4u, e.base);
    b.bar_sync();
    for (uint32_t i = 0; i < items; ++i)
      b.st<U32>(Space::shared, At(b.mad_lo(e.row[i], 4u, e.base), keys_at), b.select<U32>(1u, 0u, starts[i]));
    b.bar_sync();
    for (uint32_t i = 0; i < items; ++i) {
      Reg<U32> flag = b.ld<U32>(Space::shared, At(own_key, keys_at + 128 * i));
      starts[i] = b.setp(Is::ne, ptx::Combine::and_, flag, 0u, e.inside[i]);
    }
  }
  std::vector<Reg<U32>> votes;
  Reg<U32> total;
  for (uint32_t i = 0; i < items; ++i) {
    votes.push_back(b.ballot(starts[i]));
    Reg<U32> count = b.popc(votes[i]);
    total = i ? b.add(total, count) : count;
  }
  const BlockSum sum = block_sum(b, e.t, total, warps, shared, runs_at);
  Reg<U32> run = b.mov(sum.before);
  for (uint32_t i = 0; i < items; ++i) {
    Reg<U32> position = b.add(e.position, 32 * i);
    Reg<U32> own = b.add(run, b.popc(b.and_(votes[i], e.lanes_before)));
    store_at(p_first, starts[i], own, kind == Small::unique ? position : e.row[i]);
    if (kind == Small::groups) store_at(p_offsets, starts[i], own, position);
    b.add(run, b.popc(votes[i]), run);
  }
  if (kind == Small::groups) store_at(p_offsets, thread0, sum.total, e.n);
  store_if<U64>(b, wants_found, Space::global, At(found, 8), b.cvt<U64>(sum.total));
  b.bind(leave);
  b.ret();
  b.finish();
  return block;
}

}  // namespace

Result<void> sort_small(Library& library, Small kind, const Rows& rows, std::span<const Part> parts,
                        const SmallResults& results) {
  CHECK(!parts.empty() && parts.size() <= small_parts);
  static constexpr const char* names[] = {"order", "groups", "unique"};
  const std::string name = fmt::format("small_{}_{}", names[static_cast<size_t>(kind)], source_letters(parts));
  std::vector<Source> sources;
  Arguments a;
  a.add(rows.capacity).add(rows.size_slot).add(results.rows).add(results.first).add(results.offsets);
  a.add(results.size_slot).add(results.found).add(results.most);
  for (const Part& p : parts) {
    sources.push_back(p.source);
    add_part(a, p);
  }
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(name, [&](ptx::Module& m, std::string_view entry) {
    return build_small(m, entry, kind, sources);
  }));
  return library.launch(*kernel, 1, a);
}

}  // namespace rndn::operators
