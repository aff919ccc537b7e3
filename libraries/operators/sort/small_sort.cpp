// A few rows: one block sorts them in shared memory, in one launch, and needs to know nothing beforehand.
//
// Column by column, the last first: sortable bits (keys.h) go to shared memory, the block finds their bounds by shuffles and subtracts the
// lowest, and a stable counting sort by 8 bits runs as often as the range has digits; low bits that are the same in all rows, as in whole
// numbers kept as floats, are not sorted by. What moves is row numbers; keys stay where they are.
// A digit pass: warps rank their rows by ballots in order, thread d adds up digit d over the warps, a block scan gives the places, and
// row numbers change places through shared memory. Warps without rows skip the ranking. For groups the columns go to shared memory once
// more, rows are compared with their predecessors, and the groups counted by ballots.
// Rows beyond the end have all bits set, and so stay behind the others.
// How many columns there are, and of which sources, is known at run time: the code is the same for all, so that it is made once. Keys
// have 64 bits; a column of fewer has no more digits for it.
// Cost: the columns are read once (twice for groups); about 5 barriers per digit; a branch per kind of source and column.
#include "libraries/operators/sort/small_sort.h"

#include "libraries/base/errors/check.h"
#include "libraries/base/numbers/gpu_limits.h"
#include "libraries/operators/emit.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

namespace {

constexpr uint32_t small_block = 512, small_warps = small_block / 32, small_items = 4, small_digits = 256;
static_assert(small_block * small_items == small_rows && small_warps == 16);

// Shared memory: four figures per warp; sums of runs and of digits per warp; keys; row numbers in order; counts per warp and digit; parts.
constexpr uint32_t part_words = 5;  // source, data, extra, number, flip
constexpr int64_t figures_at = 0, runs_at = 512, digit_sums_at = 576, keys_at = 640,
                  order_at = keys_at + 8 * small_rows, small_counts_at = order_at + 4 * small_rows,
                  parts_at = small_counts_at + 4 * small_warps * small_digits, shared_bytes = parts_at + 8 * part_words * small_parts;
static_assert(shared_bytes <= shared_everywhere);

struct Emission {
  Builder& b;
  Thread t;
  ptx::SharedVariable shared;
  Reg<U32> base;         // of shared memory
  Reg<U32> n, position;  // of item 0
  Reg<U32> lanes_before;
  Reg<Pred> idle;  // the warp has no rows
  std::vector<Reg<Pred>> inside;
  std::vector<Reg<U32>> row;  // the row at the position of every item
};

Reg<U32> key_address(Emission& e, Reg<U32> row) { return e.b.mad_lo(row, 8u, e.base); }

// x becomes the largest one, or all bits, of lanes whose numbers differ in bits below `lanes`.
void combine(Builder& b, Reg<U64> x, bool is_or, uint32_t lanes) {
  for (uint32_t distance = lanes / 2; distance > 0; distance /= 2) {
    Reg<U64> other = b.shfl_sync_64(ShuffleMode::bfly, x, distance, 31u);
    is_or ? b.or_(x, other, x) : b.max(x, other, x);
  }
}

// One digit: row numbers at the positions are sorted by the 8 bits of their keys from `shift` on.
void digit_pass(Emission& e, Reg<U32> shift) {
  Builder& b = e.b;
  Reg<U32> own = b.mad_lo(e.t.tid, 4u, e.base);
  Reg<U32> warp_counts = b.mad_lo(e.t.warp, 4 * small_digits, e.base);
  Reg<U32> mine = b.mad_lo(e.t.lane, 4u, warp_counts);
  for (uint32_t k = 0; k < small_digits / 32; ++k) b.st<U32>(Space::shared, At(mine, small_counts_at + 128 * k), 0u);
  b.bar_warp_sync();
  const ptx::LabelId ranked = b.label();
  std::vector<Reg<U32>> digit(small_items), rank(small_items);
  for (uint32_t i = 0; i < small_items; ++i) digit[i] = b.constant<U32>(0u), rank[i] = b.constant<U32>(0u);
  b.when(e.idle).bra_uni(ranked);
  for (uint32_t i = 0; i < small_items; ++i) {
    Reg<U64> key = b.ld<U64>(Space::shared, At(key_address(e, e.row[i]), keys_at));
    b.and_(b.cvt<U32>(b.shr(key, shift)), 255u, digit[i]);
  }
  for (uint32_t i = 0; i < small_items; ++i) {
    Reg<U32> peers = equal_digits(b, digit[i]);
    Reg<U32> before = b.popc(b.and_(peers, e.lanes_before));
    Reg<U32> at = b.add(warp_counts, b.shl(digit[i], 2u));
    Reg<U32> earlier = b.ld<U32>(Space::shared, At(at, small_counts_at));
    b.bar_warp_sync();
    Reg<U32> next = b.add(earlier, b.popc(peers));
    store_if<U32>(b, b.setp(Is::eq, before, 0u), Space::shared, At(at, small_counts_at), next);
    b.bar_warp_sync();
    b.add(earlier, before, rank[i]);
  }
  b.bind(ranked);
  b.bar_sync();
  // Thread d is digit d.
  Reg<Pred> is_digit = b.setp(Is::lt, e.t.tid, small_digits);
  Reg<U32> count = b.constant<U32>(0u);
  std::vector<Reg<U32>> earlier_warps;
  {
    const ptx::LabelId no_digit = b.label();
    b.unless(is_digit).bra_uni(no_digit);
    std::vector<Reg<U32>> per_warp;
    for (uint32_t w = 0; w < small_warps; ++w)
      per_warp.push_back(b.ld<U32>(Space::shared, At(own, small_counts_at + 4 * small_digits * w)));
    for (uint32_t w = 0; w < small_warps; ++w) {
      b.st<U32>(Space::shared, At(own, small_counts_at + 4 * small_digits * w), count);
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
  std::vector<Reg<U32>> to(small_items);
  for (uint32_t i = 0; i < small_items; ++i) {
    // Rows of idle warps stay where they are.
    to[i] = b.add(e.position, 32 * i);
    Reg<U32> d = b.and_(digit[i], 255u);
    Reg<U32> d4 = b.shl(d, 2u);
    Reg<U32> before = b.ld<U32>(Space::shared, At(b.add(warp_counts, d4), small_counts_at));
    Reg<U32> start = b.ld<U32>(Space::shared, At(b.add(e.base, d4), order_at));
    Reg<U32> sorted = b.add(b.add(rank[i], before), start);
    b.selp(to[i], sorted, e.idle, to[i]);
  }
  b.bar_sync();
  for (uint32_t i = 0; i < small_items; ++i) b.st<U32>(Space::shared, At(b.mad_lo(to[i], 4u, e.base), order_at), e.row[i]);
  b.bar_sync();
  Reg<U32> at = b.mad_lo(e.position, 4u, e.base);
  for (uint32_t i = 0; i < small_items; ++i) b.ld<U32>(Space::shared, At(at, order_at + 128 * i), e.row[i]);
  b.bar_sync();
}

// Sorts by one part: bits[i] of the row that is at item i's position by number.
void sort_by(Emission& e, std::span<const Reg<U64>> bits, Reg<Pred> is_float) {
  Builder& b = e.b;
  // high, low: the largest bits and the largest complement; set, clear: bits that are so in some row.
  Reg<U64> high = b.constant<U64>(0), low = b.constant<U64>(0), set = b.constant<U64>(0), clear = b.constant<U64>(0);
  const ptx::LabelId noted = b.label(), combined = b.label(), stored = b.label();
  b.when(e.idle).bra_uni(noted);
  for (uint32_t i = 0; i < small_items; ++i) {
    Reg<U64> inverse = b.not_(bits[i]);
    b.when(e.inside[i]).max(high, bits[i], high);
    b.when(e.inside[i]).max(low, inverse, low);
    b.when(e.inside[i]).or_(set, bits[i], set);
    b.when(e.inside[i]).or_(clear, inverse, clear);
  }
  combine(b, high, false, 32);
  combine(b, low, false, 32);
  b.unless(is_float).bra_uni(noted);
  combine(b, set, true, 32);
  combine(b, clear, true, 32);
  b.bind(noted);
  Reg<U32> own = b.add(e.base, b.shl(e.t.warp, 3u));
  Reg<Pred> lane0 = b.setp(Is::eq, e.t.lane, 0u);
  for (uint32_t f = 0; const Reg<U64> x : {high, low, set, clear})
    store_if<U64>(b, lane0, Space::shared, At(own, figures_at + 8 * small_warps * f++), x);
  b.bar_sync();
  // Half a warp takes one figure, half the other one.
  Reg<U32> figures = b.add(e.base, b.shl(e.t.lane, 3u));
  const auto combined_figures = [&](uint32_t f, bool is_or, Reg<U64> first, Reg<U64> second) {
    Reg<U64> x = b.ld<U64>(Space::shared, At(figures, figures_at + 8 * small_warps * f));
    combine(b, x, is_or, small_warps);
    b.mov(b.shfl_sync_64(ShuffleMode::idx, x, 0u, 31u), first);
    b.mov(b.shfl_sync_64(ShuffleMode::idx, x, small_warps, 31u), second);
  };
  combined_figures(0, false, high, low);
  b.not_(low, low);
  Reg<U32> shift = b.constant<U32>(0u);
  b.unless(is_float).bra_uni(combined);
  combined_figures(2, true, set, clear);
  b.min(b.clz(b.brev(b.and_(set, clear))), 63u, shift);
  b.bind(combined);
  Reg<U64> lowest = b.shr(low, shift);
  Reg<U32> width = b.sub(b.constant<U32>(64u), b.clz(b.sub(b.shr(high, shift), lowest)));
  b.when(e.idle).bra_uni(stored);
  Reg<U32> at = key_address(e, e.position);
  for (uint32_t i = 0; i < small_items; ++i) {
    Reg<U64> key = b.sub(b.shr(bits[i], shift), lowest);
    Reg<U64> padded = b.selp(key, b.not_(b.constant<U64>(0)), e.inside[i]);
    b.st<U64>(Space::shared, At(at, keys_at + 256 * i), padded);
  }
  b.bind(stored);
  b.bar_sync();
  Reg<U32> done_bits = b.constant<U32>(0u);
  const ptx::LabelId pass = b.label(), sorted = b.label();
  b.bind(pass);
  b.when(b.setp(Is::ge, done_bits, width)).bra_uni(sorted);
  digit_pass(e, done_bits);
  b.add(done_bits, 8u, done_bits);
  b.bra(pass);
  b.bind(sorted);
}

// The sortable bits of some rows, of the part whose words lie `at` in shared memory; none in warps without rows.
struct Loaded {
  std::vector<Reg<U64>> bits;
  Reg<Pred> is_float;
};
Loaded load_part(Emission& e, Reg<U32> at, std::span<const Reg<U32>> rows) {
  Builder& b = e.b;
  const auto word = [&](uint32_t k) { return b.ld<U64>(Space::shared, At(at, parts_at + 8 * k)); };
  Reg<U32> source = b.cvt<U32>(word(0));
  Loaded out{.is_float = b.setp(Is::eq, source, static_cast<uint32_t>(Source::f32))};
  b.or_(out.is_float, b.setp(Is::eq, source, static_cast<uint32_t>(Source::f64)), out.is_float);
  for (size_t i = 0; i < rows.size(); ++i) out.bits.push_back(b.constant<U64>(0));
  const ptx::LabelId loaded = b.label();
  b.when(e.idle).bra_uni(loaded);
  const PartValues values{.data = word(1), .extra = word(2), .number = word(3), .flip = word(4)};
  for (Source s : all_sources) {
    const ptx::LabelId other = b.label();
    b.when(b.setp(Is::ne, source, static_cast<uint32_t>(s))).bra_uni(other);
    for (size_t i = 0; i < rows.size(); ++i) {
      const Bits x = load_bits(b, s, values, rows[i]);
      b.mov(x.is_wide() ? x.wide : b.cvt<U64>(x.narrow), out.bits[i]);
    }
    b.bra_uni(loaded);
    b.bind(other);
  }
  b.bind(loaded);
  return out;
}

uint32_t build_small(ptx::Module& module, std::string_view name, Small kind) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_slot = b.parameter<U64>("slot"), p_rows = b.parameter<U64>("rows"),
        p_first = b.parameter<U64>("first"), p_offsets = b.parameter<U64>("offsets"), p_size = b.parameter<U64>("size"),
        p_most = b.parameter<U64>("most"), p_parts = b.parameter<U64>("parts");
  const Answer answer = answer_parameters(b, 2);
  std::vector<Param> p_words;
  for (uint32_t k = 0; k < part_words * small_parts; ++k) p_words.push_back(b.parameter<U64>("word" + std::to_string(k)));
  b.set_block_size(small_block);
  auto shared = b.shared<U64>(std::string(name) + "_shared", shared_bytes / 8, 16);
  Emission e{.b = b, .t = thread_of(b), .shared = shared};
  e.base = b.address_of_32(shared);
  Reg<Pred> thread0 = b.setp(Is::eq, e.t.tid, 0u);
  Reg<U64> n = b.ld_param(p_n), slot = b.ld_param(p_slot), size = b.ld_param(p_size);
  load_if<U64>(b, b.setp(Is::ne, slot, 0), Space::global, At(slot), n);
  Reg<Pred> wants_size = b.setp(Is::ne, ptx::Combine::and_, size, 0, thread0);
  Reg<Pred> is_asked = b.setp(Is::ne, ptx::Combine::and_, b.ld_param(answer.found), 0, thread0);
  store_if<U64>(b, wants_size, Space::global, At(size), b.min(n, b.ld_param(p_most)));
  Reg<U64> groups = b.constant<U64>(0);
  const ptx::LabelId leave = b.label();
  b.when(b.setp(Is::gt, n, small_rows)).bra_uni(leave);

  e.n = b.cvt<U32>(n);
  e.position = b.mad_lo(e.t.warp, 32 * small_items, e.t.lane);
  e.idle = b.setp(Is::ge, b.mul_lo(e.t.warp, 32 * small_items), e.n);
  e.lanes_before = b.sub(b.shl(b.constant<U32>(1u), e.t.lane), 1u);
  Reg<U32> own_order = b.mad_lo(e.position, 4u, e.base);
  for (uint32_t i = 0; i < small_items; ++i) {
    e.row.push_back(b.add(e.position, 32 * i));
    e.inside.push_back(b.setp(Is::lt, e.row[i], e.n));
    b.st<U32>(Space::shared, At(own_order, order_at + 128 * i), e.row[i]);
  }
  const ptx::LabelId described = b.label();
  b.unless(thread0).bra(described);
  for (uint32_t k = 0; k < part_words * small_parts; ++k)
    b.st<U64>(Space::shared, At(shared, parts_at + 8 * k), b.ld_param(p_words[k]));
  b.bind(described);
  std::vector<Reg<Pred>> starts;  // positions that start a group
  if (kind != Small::order)
    for (uint32_t i = 0; i < small_items; ++i)
      starts.push_back(b.setp(Is::eq, ptx::Combine::and_, b.add(e.position, 32 * i), 0u, e.inside[i]));
  // Rows beyond the end read row 0; there is one, or nothing is read.
  const ptx::LabelId sorted = b.label(), step = b.label();
  b.when(b.setp(Is::eq, e.n, 0u)).bra_uni(sorted);
  std::vector<Reg<U32>> here;
  for (uint32_t i = 0; i < small_items; ++i) here.push_back(b.selp(e.row[i], 0u, e.inside[i]));
  b.bar_sync();
  // The parts from the last to the first, to sort by; for groups once more, to compare.
  Reg<U32> parts = b.cvt<U32>(b.ld_param(p_parts));
  Reg<U32> left = b.mov(parts), at = b.mad_lo(parts, 8 * part_words, e.base);
  b.bind(step);
  b.sub(at, 8 * part_words, at);
  const auto [bits, is_float] = load_part(e, at, here);
  const auto next_part = [&](auto until) {
    b.sub(left, 1u, left);
    b.when(b.setp(Is::ne, left, until)).bra_uni(step);
  };
  if (kind == Small::order) {
    sort_by(e, bits, is_float);
    next_part(0u);
  } else {
    // left is 1 .. parts for parts to sort by; then parts + 1 .. 2 * parts for those to compare.
    const ptx::LabelId compares = b.label();
    b.when(b.setp(Is::gt, left, parts)).bra_uni(compares);
    sort_by(e, bits, is_float);
    next_part(0u);
    b.add(parts, parts, left);
    b.mad_lo(parts, 8 * part_words, e.base, at);
    b.bra_uni(step);
    b.bind(compares);
    const ptx::LabelId stored = b.label(), compared = b.label();
    b.when(e.idle).bra_uni(stored);
    Reg<U32> own_key = key_address(e, e.position);
    for (uint32_t i = 0; i < small_items; ++i) b.st<U64>(Space::shared, At(own_key, keys_at + 256 * i), bits[i]);
    b.bind(stored);
    b.bar_sync();
    b.when(e.idle).bra_uni(compared);
    for (uint32_t i = 0; i < small_items; ++i) {
      Reg<Pred> has_before = b.setp(Is::ne, ptx::Combine::and_, b.add(e.position, 32 * i), 0u, e.inside[i]);
      Reg<U32> before = b.mov(e.row[i]);
      load_if<U32>(b, has_before, Space::shared, At(own_order, order_at + 128 * i - 4), before);
      Reg<U64> x = b.ld<U64>(Space::shared, At(key_address(e, e.row[i]), keys_at));
      Reg<U64> y = b.ld<U64>(Space::shared, At(key_address(e, before), keys_at));
      b.or_(starts[i], b.setp(Is::ne, x, y), starts[i]);
    }
    b.bind(compared);
    b.bar_sync();
    next_part(parts);
  }
  b.bind(sorted);
  b.bar_sync();
  const auto store_at = [&](Param data, Reg<Pred> when, Reg<U32> index, Reg<U32> value) {
    store_if<U64>(b, when, Space::global, At(element_address(b, b.ld_param(data), index, 8)), b.cvt<U64>(value));
  };
  if (kind == Small::order || kind == Small::groups)
    for (uint32_t i = 0; i < small_items; ++i) store_at(p_rows, e.inside[i], b.add(e.position, 32 * i), e.row[i]);
  const auto finish = [&] {
    b.bind(leave);
    tell(b, answer, 0, is_asked, n);
    tell(b, answer, 1, is_asked, groups);
    b.ret();
    b.finish();
    return small_block;
  };
  if (kind == Small::order) return finish();
  if (kind == Small::unique) {
    // Flags move to the rows that they are about: over the keys, one word each.
    Reg<U32> own_key = b.mad_lo(e.position, 4u, e.base);
    b.bar_sync();
    for (uint32_t i = 0; i < small_items; ++i)
      b.st<U32>(Space::shared, At(b.mad_lo(e.row[i], 4u, e.base), keys_at), b.select<U32>(1u, 0u, starts[i]));
    b.bar_sync();
    for (uint32_t i = 0; i < small_items; ++i) {
      Reg<U32> flag = b.ld<U32>(Space::shared, At(own_key, keys_at + 128 * i));
      starts[i] = b.setp(Is::ne, ptx::Combine::and_, flag, 0u, e.inside[i]);
    }
  }
  std::vector<Reg<U32>> votes;
  Reg<U32> total;
  for (uint32_t i = 0; i < small_items; ++i) {
    votes.push_back(b.ballot(starts[i]));
    Reg<U32> count = b.popc(votes[i]);
    total = i ? b.add(total, count) : count;
  }
  const BlockSum sum = block_sum(b, e.t, total, small_warps, shared, runs_at);
  Reg<U32> run = b.mov(sum.before);
  for (uint32_t i = 0; i < small_items; ++i) {
    Reg<U32> position = b.add(e.position, 32 * i);
    Reg<U32> own = b.add(run, b.popc(b.and_(votes[i], e.lanes_before)));
    if (kind != Small::count) store_at(p_first, starts[i], own, kind == Small::unique ? position : e.row[i]);
    if (kind == Small::groups) store_at(p_offsets, starts[i], own, position);
    b.add(run, b.popc(votes[i]), run);
  }
  if (kind == Small::groups) store_at(p_offsets, thread0, sum.total, e.n);
  b.cvt<U64>(sum.total, groups);
  return finish();
}

Library::Row small_sort(Small kind) {
  static constexpr const char* names[] = {"small_order", "small_groups", "small_unique", "small_count"};
  return {names[static_cast<size_t>(kind)],
          [kind](ptx::Module& m, std::string_view entry) { return build_small(m, entry, kind); }};
}

}  // namespace

void add_small_sorts(KernelRows& rows) {
  for (Small kind : {Small::order, Small::groups, Small::unique}) rows.push_back(small_sort(kind));
}

Result<void> sort_small(Library& library, Small kind, const Rows& rows, std::span<const Part> parts,
                        const SmallResults& results) {
  CHECK(!parts.empty() && parts.size() <= small_parts);
  Arguments a;
  a.add(rows.capacity).add(rows.size_slot).add(results.rows).add(results.first).add(results.offsets);
  a.add(results.size_slot).add(results.most).add(parts.size());
  add(a, results.question ? *results.question : Question{}, 0, 2);
  for (size_t k = 0; k < small_parts; ++k) {
    const Part part = k < parts.size() ? parts[k] : Part{};
    a.add(static_cast<uint64_t>(part.source));
    add_part(a, part);
  }
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(small_sort(kind)));
  return library.launch(*kernel, 1, a);
}

Result<SmallCount> count_small(Library& library, const Rows& rows, std::span<const Part> parts, Memory& memory) {
  ASSIGN_OR_RETURN(const Question question, library.ask("small_count", 2, memory));
  RETURN_IF_ERROR(sort_small(library, Small::count, rows, parts, {.question = &question}));
  ASSIGN_OR_RETURN(const uint64_t* words, library.learn(question, memory));
  return SmallCount{words[0], words[1]};
}

}  // namespace rndn::operators
