// Selecting the first k rows: Floyd and Rivest, "Expected time bounds for selection", CACM 18(3), 1975, in its simplest form. A sample tells
// a row behind which, almost surely, none of the first k lies; what does not lie behind it is few, and put in order.
//
// ranks   a warp per entry counts the entries that come before its own: the keys of a block's worth of entries after the other go through
//         shared memory. Who comes at place p < `most` is written there. For the sample: m rows, one at a random place of every m-th part.
// filter  reads the rows once and writes the numbers of those that do not come after the sample's r-th, in any order: a block counts
//         what it keeps of a tile by ballots and takes that much room by one atomic. Of the rows only the first column is read, and the
//         others by warps that meet an equal one. The last block tells how many there are and leaves the counters zero.
// ranks   again, of what is left; or the same again while that is more than most_candidates and another round leaves fewer.
//
// Rows are compared by their sortable bits (keys.h), column after column, and then by their numbers: no two are equal, so that neither equal
// keys nor sorted columns are special, and the order is the stable one. Random places are a hash of the place in the sample: runs repeat.
// With g = n / m rows per sample, the r-th sample has about g * r rows before it, with a deviation of about g * sqrt(r). r is chosen for a
// mean that is far above k, and the room for candidates far above the mean. Where either does not hold, nothing is given.
// Cost: per round one pass over the first column, three launches (or two) and one wait; a round leaves about 1 row of 100.
#include "libraries/operators/sort/top.h"

#include <algorithm>
#include <cmath>

#include "libraries/operators/emit.h"
#include "libraries/operators/fragments.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

using ptx::AtomicOp;
using ptx::Combine;

namespace {

constexpr uint32_t ranks_block = 512, ranks_unroll = 4;
constexpr uint32_t ranks_entries = ranks_block / 32;
constexpr uint32_t filter_items = 8, filter_tile = block_threads * filter_items, filter_warps = block_threads / 32;
// Places in Library::zeroed: blocks that are done, and rows that are kept.
constexpr int64_t done_at = 0, kept_at = 8;

std::vector<PartCode> declare_parts(Builder& b, std::span<const Source> sources) {
  std::vector<PartCode> parts;
  for (uint32_t k = 0; k < sources.size(); ++k) parts.push_back(declare_part(b, sources[k], k));
  return parts;
}

// x < y, or x == y and `equal`: the comparison of one part, given that of the parts behind it.
Reg<Pred> before(Builder& b, const Bits& x, const Bits& y, Reg<Pred> equal) {
  if (x.is_wide()) {
    Reg<Pred> same = b.setp(Is::eq, Combine::and_, x.wide, y.wide, equal);
    return b.setp(Is::lt, Combine::or_, x.wide, y.wide, same);
  }
  Reg<Pred> same = b.setp(Is::eq, Combine::and_, x.narrow, y.narrow, equal);
  return b.setp(Is::lt, Combine::or_, x.narrow, y.narrow, same);
}

uint32_t build_ranks(ptx::Module& module, std::string_view name, std::span<const Source> sources) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_slot = b.parameter<U64>("slot"), p_list = b.parameter<U64>("list"),
        p_population = b.parameter<U64>("population"), p_shift = b.parameter<U64>("shift"),
        p_most = b.parameter<U64>("most"), p_out = b.parameter<U64>("out");
  const std::vector<PartCode> parts = declare_parts(b, sources);
  b.set_block_size(ranks_block);
  const uint32_t count = static_cast<uint32_t>(parts.size());
  auto shared = b.shared<U64>(std::string(name) + "_shared", ranks_block * count + ranks_block / 2, 16);
  const int64_t rows_at = 8 * ranks_block * count;
  const Thread t = thread_of(b);
  Reg<U32> base = b.address_of_32(shared);
  Reg<U64> capacity = b.ld_param(p_n), slot = b.ld_param(p_slot), found = b.mov(capacity);
  load_if<U64>(b, b.setp(Is::ne, slot, 0), Space::global, At(slot), found);
  Reg<U32> n = b.cvt<U32>(b.min(found, capacity));
  Reg<U32> first = b.mul_lo(b.special(ptx::SpecialRegister::ctaid_x), ranks_entries);
  const LabelId leave = b.label();
  b.when(b.setp(Is::ge, first, n)).bra_uni(leave);

  Reg<U64> list = b.ld_param(p_list), population = b.ld_param(p_population);
  Reg<U32> shift = b.cvt<U32>(b.ld_param(p_shift));
  Reg<Pred> samples = b.setp(Is::ne, population, 0), lists = b.setp(Is::ne, list, 0);
  struct Entry {
    Reg<U32> row;
    std::vector<Bits> bits;
  };
  // Entries that do not exist come after all others: no row has their number.
  const auto load = [&](Reg<U32> at) {
    Reg<Pred> exists = b.setp(Is::lt, at, n);
    Reg<U32> place = b.selp(at, 0u, exists);
    Entry e;
    {
      Reg<U64> wide = b.cvt<U64>(place);
      Reg<U64> start = b.shr(b.mul_lo(wide, population), shift);
      Reg<U64> end = b.shr(b.mul_lo(b.add(wide, 1), population), shift);
      Reg<U32> within = b.mul_hi(hash(b, place), b.cvt<U32>(b.sub(end, start)));
      e.row = b.selp(b.add(b.cvt<U32>(start), within), place, samples);
    }
    const At listed(element_address(b, list, e.row, 4));
    load_if<U32>(b, lists, Space::global, listed, e.row);
    for (const PartCode& part : parts) e.bits.push_back(load_bits(b, part, e.row));
    for (Bits& x : e.bits) {
      if (x.is_wide())
        b.unless(exists).constant<U64>(~uint64_t{0}, x.wide);
      else
        b.unless(exists).constant<U32>(0xFFFFFFFFu, x.narrow);
    }
    b.unless(exists).constant<U32>(0xFFFFFFFFu, e.row);
    return e;
  };
  Reg<U32> own_at = b.add(first, t.warp);
  const Entry own = load(own_at);
  Reg<U32> rank = b.constant<U32>(0u), start = b.constant<U32>(0u);
  Reg<U32> key_at = b.mad_lo(t.tid, 8u, base), row_at = b.mad_lo(t.tid, 4u, base);
  const LabelId loop = b.label(), inner = b.label();
  b.bind(loop);
  {
    const Entry other = load(b.add(start, t.tid));
    b.bar_sync();  // nobody reads the last ones any more
    for (uint32_t k = 0; k < count; ++k) {
      const int64_t at = 8 * ranks_block * k;
      if (other.bits[k].is_wide())
        b.st<U64>(Space::shared, At(key_at, at), other.bits[k].wide);
      else
        b.st<U32>(Space::shared, At(key_at, at), other.bits[k].narrow);
    }
    b.st<U32>(Space::shared, At(row_at, rows_at), other.row);
    b.bar_sync();
    // A lane takes every 32nd. Behind the last entry are such as do not exist.
    Reg<U32> keys = b.mad_lo(t.lane, 8u, base), rows = b.mad_lo(t.lane, 4u, base);
    Reg<U32> end = b.mad_lo(b.min(b.sub(n, start), ranks_block), 4u, rows);
    b.bind(inner);
    for (uint32_t u = 0; u < ranks_unroll; ++u) {
      Reg<Pred> less = b.setp(Is::lt, b.ld<U32>(Space::shared, At(rows, rows_at + 128 * u)), own.row);
      for (uint32_t k = count; k-- > 0;) {
        const At at(keys, 8 * (ranks_block * k + 32 * u));
        Bits x;
        if (own.bits[k].is_wide())
          x.wide = b.ld<U64>(Space::shared, at);
        else
          x.narrow = b.ld<U32>(Space::shared, at);
        less = before(b, x, own.bits[k], less);
      }
      b.when(less).add(rank, 1u, rank);
    }
    b.add(keys, 256 * ranks_unroll, keys);
    b.add(rows, 128 * ranks_unroll, rows);
    b.when(b.setp(Is::lt, rows, end)).bra_uni(inner);
    b.add(start, ranks_block, start);
    b.when(b.setp(Is::lt, start, n)).bra_uni(loop);
  }
  for (uint32_t distance = 16; distance > 0; distance /= 2)
    b.add(rank, b.shfl_sync(ShuffleMode::bfly, rank, distance, 31u), rank);
  Reg<Pred> mine = b.setp(Is::lt, Combine::and_, own_at, n, b.setp(Is::eq, t.lane, 0u));
  Reg<Pred> writes = b.setp(Is::lt, Combine::and_, b.cvt<U64>(rank), b.ld_param(p_most), mine);
  const At to(element_address(b, b.ld_param(p_out), rank, 8));
  store_if<U64>(b, writes, Space::global, to, b.cvt<U64>(own.row));
  b.bind(leave);
  b.ret();
  b.finish();
  return ranks_block;
}

// listed: rows come from a list.
uint32_t build_filter(ptx::Module& module, std::string_view name, std::span<const Source> sources, bool listed) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_list = b.parameter<U64>("list"), p_last = b.parameter<U64>("last"),
        p_out = b.parameter<U64>("out"), p_room = b.parameter<U64>("room"), p_counters = b.parameter<U64>("counters"),
        p_slot = b.parameter<U64>("slot");
  const Answer answer = answer_parameters(b, 1);
  const std::vector<PartCode> parts = declare_parts(b, sources);
  b.set_block_size(block_threads);
  // Counts of the warps; where the tile's rows go.
  constexpr int64_t place_at = 4 * filter_warps;
  auto shared = b.shared<U32>(std::string(name) + "_shared", filter_warps + 4, 16);
  const Thread t = thread_of(b);
  Reg<Pred> thread0 = b.setp(Is::eq, t.tid, 0u);
  Reg<U32> n = b.cvt<U32>(b.ld_param(p_n)), room = b.cvt<U32>(b.ld_param(p_room)), last = b.sub(n, 1u);
  Reg<U64> list = b.ld_param(p_list), out = b.ld_param(p_out), counters = b.ld_param(p_counters);
  Reg<U32> last_row = b.cvt<U32>(b.ld<U64>(Space::global, At(b.ld_param(p_last))));
  std::vector<Bits> bound;
  for (const PartCode& part : parts) bound.push_back(load_bits(b, part, last_row));
  for_tiles(b, tiles_of(b, n, filter_tile), [&](Reg<U32> tile) {
    Reg<U32> first = b.mad_lo(tile, filter_tile, t.tid);
    std::vector<Reg<U32>> row;
    std::vector<Reg<Pred>> exists;
    for (uint32_t i = 0; i < filter_items; ++i) {
      Reg<U32> at = i ? b.add(first, block_threads * i) : first;
      // The last tile of 2^32 - 2 rows goes beyond what 32 bits count.
      exists.push_back(b.setp(Is::le, at, last));
      if (i) exists[i] = b.setp(Is::ge, Combine::and_, at, first, exists[i]);
      row.push_back(b.selp(at, last, exists[i]));
      if (listed) row[i] = b.ld<U32>(Space::global, At(element_address(b, list, row[i], 4)));
    }
    std::vector<Bits> x;
    for (uint32_t i = 0; i < filter_items; ++i) x.push_back(load_bits(b, parts[0], row[i]));
    std::vector<Reg<Pred>> keeps, ties;
    const auto is = [&](Is compare, const Bits& value, Reg<Pred> exists) {
      return value.is_wide() ? b.setp(compare, Combine::and_, value.wide, bound[0].wide, exists)
                             : b.setp(compare, Combine::and_, value.narrow, bound[0].narrow, exists);
    };
    Reg<Pred> tie;
    for (uint32_t i = 0; i < filter_items; ++i) {
      keeps.push_back(is(Is::lt, x[i], exists[i]));
      ties.push_back(is(Is::eq, x[i], exists[i]));
      tie = i ? b.or_(tie, ties[i]) : ties[i];
    }
    const LabelId compared = b.label();
    b.unless(b.vote(VoteMode::any, tie)).bra_uni(compared);
    for (uint32_t i = 0; i < filter_items; ++i) {
      Reg<Pred> in = b.setp(Is::le, row[i], last_row);
      for (size_t k = parts.size(); k-- > 1;) in = before(b, load_bits(b, parts[k], row[i]), bound[k], in);
      b.or_(keeps[i], b.and_(in, ties[i]), keeps[i]);
    }
    b.bind(compared);
    std::vector<Reg<U32>> kept;
    for (uint32_t i = 0; i < filter_items; ++i) kept.push_back(b.ballot(keeps[i]));
    const BlockSum sum = count_kept(b, t, kept, filter_warps, shared, 0);
    const LabelId placed = b.label();
    b.unless(b.setp(Is::ne, Combine::and_, sum.total, 0u, thread0)).bra(placed);
    b.st<U32>(Space::shared, At(shared, place_at),
              b.atom<U32>(AtomicOp::add, Space::global, At(counters, kept_at), sum.total));
    b.bind(placed);
    b.bar_sync();
    Reg<U32> place = b.constant<U32>(0u);
    load_if<U32>(b, b.setp(Is::ne, sum.total, 0u), Space::shared, At(shared, place_at), place);
    for_kept(b, t, kept, b.add(place, sum.before), [&](size_t i, Reg<U32> to, Reg<Pred> writes) {
      Reg<Pred> fits = b.setp(Is::lt, Combine::and_, to, room, writes);
      store_if<U32>(b, fits, Space::global, At(element_address(b, out, to, 4)), row[i]);
    });
  });
  // The last block to arrive tells the count.
  const LabelId leave = b.label();
  b.unless(thread0).bra(leave);
  b.membar(ptx::Scope::gpu);
  Reg<U32> arrived = b.atom<U32>(AtomicOp::add, Space::global, At(counters, done_at), 1u);
  b.when(b.setp(Is::ne, b.add(arrived, 1u), b.special(ptx::SpecialRegister::nctaid_x))).bra(leave);
  b.membar(ptx::Scope::gpu);
  Reg<U64> count = b.cvt<U64>(b.atom<U32>(AtomicOp::exch, Space::global, At(counters, kept_at), 0u));
  b.st<U64>(Space::global, At(b.ld_param(p_slot)), count);
  tell(b, answer, 0, thread0, count);
  b.st<U32>(Space::global, At(counters, done_at), 0u);
  b.bind(leave);
  b.ret();
  b.finish();
  return block_threads;
}

// --- host -------------------------------------------------------------------------------------------------------------------------

std::vector<Source> top_sources_of(std::span<const Part> parts) {
  std::vector<Source> sources;
  for (const Part& p : parts) sources.push_back(p.source);
  return sources;
}

uint64_t top_bytes_of(std::span<const Part> parts) {
  uint64_t bytes = 0;
  for (const Part& p : parts) bytes += is_wide(p.source) ? 8 : 4;
  return bytes;
}

// Some of n rows: a list of row numbers, or the rows 0 .. n - 1.
struct Some {
  uint64_t n = 0;
  Address list = 0;
  Address slot = 0;  // how many of the n there are; 0: all
};

Library::Row ranks_kernel(const std::vector<Source>& sources) {
  return {"top_ranks_" + source_letters(sources),
          [sources](ptx::Module& m, std::string_view entry) { return build_ranks(m, entry, sources); }};
}
Library::Row filter_kernel(const std::vector<Source>& sources, bool listed) {
  return {
      fmt::format("top_filter{}_{}", listed ? "_list" : "", source_letters(sources)),
      [sources, listed](ptx::Module& m, std::string_view entry) { return build_filter(m, entry, sources, listed); }};
}

// The first `most` of the rows, or of 2^shift samples of them.
Result<void> rank_rows(Library& library, std::span<const Part> parts, const Some& rows, bool samples, uint32_t shift,
                       uint64_t most, Address out) {
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(ranks_kernel(top_sources_of(parts))));
  const uint64_t entries = samples ? uint64_t{1} << shift : rows.n;
  Arguments a;
  a.add(entries).add(rows.slot).add(rows.list).add(samples ? rows.n : 0).add(shift).add(most).add(out);
  for (const Part& p : parts) add_part(a, p);
  const uint64_t blocks = (entries + ranks_entries - 1) / ranks_entries;
  return library.launch(*kernel, static_cast<uint32_t>(blocks), a, entries * top_bytes_of(parts));
}

// The rows up to `last` (the address of its number) go to `out`, at most `room`; their number to `slot` and to the question.
Result<void> filter_rows(Library& library, std::span<const Part> parts, const Some& rows, Address last, Address out,
                         uint64_t room, Address slot, const Question& question) {
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(filter_kernel(top_sources_of(parts), rows.list != 0)));
  ASSIGN_OR_RETURN(Address counters, library.zeroed());
  Arguments a;
  a.add(rows.n).add(rows.list).add(last).add(out).add(room).add(counters).add(slot);
  add(a, question, 0, 1);
  for (const Part& p : parts) add_part(a, p);
  return library.launch(*kernel, library.grid(*kernel, tiles_for(rows.n, filter_tile)), a,
                        rows.n * (top_bytes_of(parts.first(1)) + (rows.list ? 4 : 0)));
}

struct TopRound {
  uint32_t shift = 0;  // 2^shift samples
  uint64_t rank = 0;   // of the sample that bounds the candidates; 0: no such round
  uint64_t room = 0;   // for candidates
};

// For n rows of which the first `most` are wanted: the fewest samples that leave no more than most_candidates, or the most samples.
TopRound plan_round(uint64_t n, uint64_t most) {
  constexpr uint32_t fewest = 8, largest = 11;
  TopRound round;
  for (uint32_t shift = fewest; shift <= largest; ++shift) {
    const double per_sample = static_cast<double>(n) / static_cast<double>(uint64_t{1} << shift);
    const double wanted = static_cast<double>(most) / per_sample;
    const double rank = std::ceil(wanted + 4 * std::sqrt(wanted) + 8);
    const double room = std::ceil(per_sample * (rank + 5 * std::sqrt(rank) + 4));
    // Not worth a round, or not that many rows.
    if (per_sample < 2 || room > static_cast<double>(n) / 2) continue;
    round = {shift, static_cast<uint64_t>(rank), static_cast<uint64_t>(room)};
    if (round.room <= most_candidates) break;
  }
  return round;
}

}  // namespace

// By one column of 32 bits or more.
void add_tops(KernelRows& rows) {
  for (Source source : {Source::u32, Source::u64, Source::f64, Source::rank8, Source::rank16, Source::rank32})
    rows.insert(rows.end(), {ranks_kernel({source}), filter_kernel({source}, false)});
}

Result<std::optional<Address>> select_top(Library& library, std::span<const Part> parts, uint64_t n, uint64_t most,
                                          Memory& memory) {
  const std::optional<Address> nothing;
  if (most > most_candidates / 2) return nothing;
  ASSIGN_OR_RETURN(const Address out, memory.result(8 * most));
  Some rows{n};
  Address slot = 0;
  while (true) {
    const TopRound round = rows.n > most_candidates ? plan_round(rows.n, most) : TopRound{};
    if (round.rank == 0) {  // no round is worth it
      if (rows.n > most_ranked) return nothing;
      RETURN_IF_ERROR(rank_rows(library, parts, rows, false, 0, most, out));
      return std::optional(out);
    }
    ASSIGN_OR_RETURN(const Question question, library.ask("top", 1, memory));
    if (!slot) {
      ASSIGN_OR_RETURN(slot, memory.temporary(8));
    }
    ASSIGN_OR_RETURN(const Address sample, memory.temporary(8 * round.rank));
    ASSIGN_OR_RETURN(const Address kept, memory.temporary(4 * round.room));
    RETURN_IF_ERROR(rank_rows(library, parts, rows, true, round.shift, round.rank, sample));
    RETURN_IF_ERROR(
        filter_rows(library, parts, rows, sample + 8 * (round.rank - 1), kept, round.room, slot, question));
    const bool last = round.room <= most_candidates;
    if (last) RETURN_IF_ERROR(rank_rows(library, parts, {round.room, kept, slot}, false, 0, most, out));
    ASSIGN_OR_RETURN(const uint64_t* words, library.learn(question, memory));
    const uint64_t count = words[0];
    if (count < most || count > round.room) return nothing;
    if (last) return std::optional(out);
    rows = {count, kept};
  }
}

}  // namespace rndn::operators
