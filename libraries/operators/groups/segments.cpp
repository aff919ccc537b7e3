// Aggregates over runs of equal keys: no list of rows is built, and what is sorted already is read once.
//
// segments   one pass over the sorted places, in tiles handed out by a counter. A thread has `items` neighbouring places: it accumulates, and writes
//            the runs that begin and end within them. A segmented scan (lanes by shuffles, warps by shared memory) brings each thread what the run
//            that is open at its first place has gathered in the tile so far; the thread where a run ends writes its result. The number of runs
//            before a tile comes by look-back (emit.h). What crosses tiles is left for the next kernel: per tile `heads`, what lies before the first
//            start, and `tails`, what lies behind the last one.
// boundaries a warp per tile that a run ends in: that run's tail, the tiles that it fills, and the head, in order.
// Distinct values are counted where the rows of a group are sorted by the value: flags tell which rows differ from the one before them.
// cells      a warp per cell of a list of rows: lanes take every 32nd row, then a butterfly.
// Costs: keys and value columns are read once (through the rows where these were sorted), results written once; 16 bytes per tile and accumulator.
#include "libraries/operators/groups/segments.h"

#include "libraries/operators/groups/runs.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

using ptx::Combine;
using ptx::LabelId;
using ptx::RegisterId;
using ptx::SpecialRegister;

namespace {

constexpr uint32_t segment_block = 256, segment_warps = segment_block / 32;
constexpr uint64_t segment_ticket_at = 4096 + 512;  // in Library::zeroed
// In shared memory: tile number, look-back, counts of warps, starts of warps, then 8 bytes per accumulator and warp.
constexpr int64_t segment_before_at = 8, segment_sums_at = 16, flags_at = 64, totals_at = 96;

enum class SegmentFrom : uint8_t { keys32, keys64, flags };  // what tells the starts

// Many columns leave fewer registers per place.
uint32_t segment_items_of(const AggregateShape& shape) { return shape.columns.size() <= 2 ? 8 : 4; }
uint32_t segment_tile_of(const AggregateShape& shape) { return segment_block * segment_items_of(shape); }

std::vector<Element> load_elements(Builder& b, const AggregateShape& shape, const std::vector<Reg<U64>>& columns,
                                   Reg<U32> row) {
  std::vector<Element> out;
  for (size_t c = 0; c < shape.columns.size(); ++c)
    out.push_back(load_element(b, shape.columns[c], element_at(b, columns[c], row, width(shape.columns[c]))));
  return out;
}

std::vector<Param> parameters(Builder& b, const char* name, size_t count) {
  std::vector<Param> out;
  for (size_t k = 0; k < count; ++k) out.push_back(b.parameter<U64>(name + std::to_string(k)));
  return out;
}
std::vector<Reg<U64>> load_all(Builder& b, const std::vector<Param>& parameters) {
  std::vector<Reg<U64>> out;
  for (Param p : parameters) out.push_back(b.ld_param(p));
  return out;
}

uint32_t build_segments(ptx::Module& module, std::string_view name, SegmentFrom from, bool gather,
                        const AggregateShape& shape) {
  Builder b(module, std::string(name));
  const size_t count = shape.accumulators.size();
  const uint32_t items = segment_items_of(shape);
  Param p_n = b.parameter<U64>("n"), p_tiles = b.parameter<U64>("tiles"), p_keys = b.parameter<U64>("keys"),
        p_rows = b.parameter<U64>("rows"), p_first = b.parameter<U64>("first"), p_words = b.parameter<U64>("words"),
        p_ticket = b.parameter<U64>("ticket"), p_found = b.parameter<U64>("found"),
        p_values = b.parameter<U64>("values");
  const bool distinct = shape.has_distinct();
  const std::vector<Param> p_columns = parameters(b, "column", shape.columns.size()),
                           p_out = parameters(b, "out", count), p_heads = parameters(b, "heads", count),
                           p_tails = parameters(b, "tails", count);
  SumFlags flags = sum_flags(b, shape);
  b.set_block_size(segment_block);
  auto shared = b.shared<U64>(std::string(name) + "_shared", totals_at / 8 + count * segment_warps, 16);
  const Thread t = thread_of(b);
  Reg<U32> tile = take_ticket(b, t, b.ld_param(p_ticket), b.cvt<U32>(b.ld_param(p_tiles)), At(shared));
  Reg<U64> n = b.ld_param(p_n), start64 = b.mul_wide(tile, segment_block * items);
  Reg<U32> left = b.cvt<U32>(b.min(b.sub(n, start64), uint64_t{segment_block * items}));
  Reg<U32> last = b.sub(left, 1u), start = b.cvt<U32>(start64), within = b.mul_lo(t.tid, items);
  Reg<U64> keys = b.ld_param(p_keys);

  // Places behind the end are the last one once more, and no starts.
  std::vector<Reg<Pred>> inside(items), starts(items);
  std::vector<Reg<U32>> places(items), rows(items);
  for (uint32_t i = 0; i < items; ++i) {
    Reg<U32> at = b.add(within, i);
    inside[i] = b.setp(Is::lt, at, left);
    places[i] = b.add(start, b.min(at, last));
  }
  if (from == SegmentFrom::flags) {
    for (uint32_t i = 0; i < items; ++i) {
      Reg<U16> flag = b.ld<U8>(Space::global, element_at(b, keys, places[i], 1));
      starts[i] = b.setp(Is::ne, Combine::and_, b.cvt<U32>(flag), 0u, inside[i]);
    }
  } else {
    const auto find = [&]<class T>(uint32_t bytes) {
      std::vector<Reg<T>> key(items);
      for (uint32_t i = 0; i < items; ++i) key[i] = b.ld<T>(Space::global, element_at(b, keys, places[i], bytes));
      Reg<Pred> has_before = b.setp(Is::ne, Combine::and_, places[0], 0u, inside[0]);
      Reg<T> before = b.mov(key[0]);
      load_if<T>(b, has_before, Space::global, At(element_address(b, keys, places[0], bytes), -int64_t{bytes}), before);
      starts[0] = b.or_(b.setp(Is::ne, Combine::and_, key[0], before, inside[0]),
                        b.setp(Is::eq, Combine::and_, places[0], 0u, inside[0]));
      for (uint32_t i = 1; i < items; ++i) starts[i] = b.setp(Is::ne, Combine::and_, key[i], key[i - 1], inside[i]);
    };
    from == SegmentFrom::keys64 ? find.template operator()<U64>(8) : find.template operator()<U32>(4);
  }
  std::vector<Reg<Pred>> differs = starts;  // from the row before, in key or value
  if (distinct)
    for (uint32_t i = 0; i < items; ++i) {
      Reg<U16> flag = b.ld<U8>(Space::global, element_at(b, b.ld_param(p_values), places[i], 1));
      differs[i] = b.or_(b.setp(Is::ne, Combine::and_, b.cvt<U32>(flag), 0u, inside[i]), starts[i]);
    }
  Reg<U64> rows_at = b.ld_param(p_rows);
  for (uint32_t i = 0; i < items; ++i)
    rows[i] = gather ? b.ld<U32>(Space::global, element_at(b, rows_at, places[i], 8)) : places[i];
  const std::vector<Reg<U64>> columns = load_all(b, p_columns);
  std::vector<std::vector<Element>> elements;
  for (uint32_t i = 0; i < items; ++i) elements.push_back(load_elements(b, shape, columns, rows[i]));

  // Which run each start opens.
  Reg<U32> own = b.select<U32>(1u, 0u, starts[0]);
  for (uint32_t i = 1; i < items; ++i) b.when(starts[i]).add(own, 1u, own);
  Reg<U32> up_to = warp_sum(b, t, own);
  const BlockSum sum = block_sum(b, t, up_to, segment_warps, shared, segment_sums_at);
  Reg<U64> before = look_back(b, t, tile, sum.total, b.ld_param(p_words), At(shared, segment_before_at));
  Reg<U32> run = b.add(b.cvt<U32>(before), b.add(sum.before, b.sub(up_to, own)));
  Reg<U32> first_run = b.mov(run);

  // A thread's own places.
  const std::vector<Reg<U64>> out = load_all(b, p_out);
  Reg<U64> first_out = b.ld_param(p_first);
  Registers sums, heads;
  start_sums(b, shape, flags);
  for (const Accumulator& a : shape.accumulators) {
    sums.push_back(identity_register(b, a));
    heads.push_back(identity_register(b, a));
  }
  // Of the run before run `at`, where `when` holds.
  const auto store_result = [&](Reg<Pred> when, size_t k, Reg<U32> at, const Registers& values) {
    const Accumulator& a = shape.accumulators[k];
    const bool rounds = a.sums_floats() && a.completes();  // which is long
    const LabelId skip = rounds ? b.label() : LabelId{};
    if (rounds) b.unless(when).bra(skip);
    with_result(b, shape, k, values, flags, {}, [&]<class T>(size_t first, Reg<T> value) {
      const At where(element_address(b, out[first], at, T::size), -int64_t{T::size});
      store_if<T>(b, when, Space::global, where, value);
    });
    if (rounds) b.bind(skip);
  };
  Reg<Pred> open;  // a run has begun in this thread
  for (uint32_t i = 0; i < items; ++i) {
    if (!distinct) store_if<U64>(b, starts[i], Space::global, element_at(b, first_out, run, 8), b.cvt<U64>(rows[i]));
    Reg<Pred> opens = open.valid() ? b.and_(starts[i], b.not_(open)) : starts[i];
    Reg<Pred> ends = open.valid() ? b.and_(starts[i], open) : Reg<Pred>();
    for (size_t k = 0; k < count; ++k) {
      const Accumulator& a = shape.accumulators[k];
      if (ends.valid()) store_result(ends, k, run, sums);
      with_held(a.held, [&]<class T>() {
        for_parts(shape, k, [&]<class>(size_t part) {
          b.when(opens).mov(Reg<T>{sums[part]}, Reg<T>{heads[part]});
          b.when(starts[i]).constant<T>(identity_of<T>(a.op), Reg<T>{sums[part]});
        });
      });
      if (a.op == Accumulator::distinct) {
        b.when(differs[i]).add(Reg<S64>{sums[k]}, 1, Reg<S64>{sums[k]});
      } else if (a.op == Accumulator::row) {
        Reg<S64> row = Builder::as<S64>(b.cvt<U64>(rows[i]));
        b.when(inside[i]).min(Reg<S64>{sums[k]}, row, Reg<S64>{sums[k]});
      } else if (a.completes()) {
        accumulate(b, shape, k - a.part, sums, elements[i], flags, inside[i]);
      }
    }
    b.when(starts[i]).add(run, 1u, run);
    open = open.valid() ? b.or_(open, starts[i]) : starts[i];
  }

  // Lanes: what the open run has gathered since its start, or since the warp's first place.
  Reg<U32> warp_starts = b.ballot(open);
  Reg<U32> below = b.sub(b.shl(b.constant<U32>(1u), t.lane), 1u);
  Reg<U32> starts_below = b.and_(warp_starts, below);
  Reg<Pred> in_warp = b.setp(Is::ne, starts_below, 0u);
  Reg<U32> up_to_lane = b.and_(warp_starts, b.or_(below, b.shl(b.constant<U32>(1u), t.lane)));
  Reg<S32> lead = b.max(b.sub(b.constant<S32>(31), Builder::as<S32>(b.clz(up_to_lane))), 0);
  Registers scan;
  for (size_t k = 0; k < count; ++k)
    with_held(shape.accumulators[k].held, [&]<class T>() { scan.push_back(b.mov(Reg<T>{sums[k]}).id); });
  for (int32_t distance = 1; distance < 32; distance *= 2) {
    Reg<Pred> joins = b.setp(Is::ge, b.sub(Builder::as<S32>(t.lane), distance), lead);
    Registers earlier(count);
    for (size_t k = 0; k < count; ++k) {
      with_held(shape.accumulators[k].held, [&]<class T>() {
        earlier[k] = shuffle(b, ShuffleMode::up, Reg<T>{scan[k]}, distance, 0u).id;
      });
      combine(b, shape, k, earlier, scan, scan, joins);
    }
  }
  // Warps.
  Reg<U32> base = b.address_of_32(shared);
  Reg<Pred> lane0 = b.setp(Is::eq, t.lane, 0u), lane31 = b.setp(Is::eq, t.lane, 31u);
  store_if<U32>(b, lane0, Space::shared, At(b.mad_lo(t.warp, 4u, base), flags_at), warp_starts);
  Reg<U32> warp_at = b.mad_lo(t.warp, 8u, base);
  for (size_t k = 0; k < count; ++k)
    with_held(shape.accumulators[k].held, [&]<class T>() {
      store_if<T>(b, lane31, Space::shared, At(warp_at, totals_at + 8 * int64_t{segment_warps} * static_cast<int64_t>(k)),
                  Reg<T>{scan[k]});
    });
  b.bar_sync();
  Registers carry, total(count), both(count);
  for (const Accumulator& a : shape.accumulators) carry.push_back(identity_register(b, a));
  Reg<Pred> in_tile = b.mov(in_warp);  // a run has begun in the tile before this thread
  for (uint32_t w = 0; w + 1 < segment_warps; ++w) {
    Reg<Pred> earlier = b.setp(Is::gt, t.warp, w);
    Reg<Pred> begins = b.setp(Is::ne, b.ld<U32>(Space::shared, At(shared, flags_at + 4 * w)), 0u);
    for (size_t k = 0; k < count; ++k) {
      with_held(shape.accumulators[k].held, [&]<class T>() {
        const int64_t at = totals_at + 8 * (int64_t{segment_warps} * static_cast<int64_t>(k) + w);
        total[k] = b.ld<T>(Space::shared, At(shared, at)).id;
      });
      combine_anew(b, shape, k, carry, total, both);
      for_parts(shape, k, [&]<class T>(size_t part) {
        b.selp(Reg<T>{total[part]}, Reg<T>{both[part]}, begins, Reg<T>{both[part]});
        b.when(earlier).mov(Reg<T>{both[part]}, Reg<T>{carry[part]});
      });
    }
    b.or_(in_tile, b.and_(earlier, begins), in_tile);
  }
  // What the run that is open at the thread's first place has gathered in the tile.
  for (size_t k = 0; k < count; ++k) {
    with_held(shape.accumulators[k].held, [&]<class T>() {
      total[k] = shuffle(b, ShuffleMode::up, Reg<T>{scan[k]}, 1u, 0u).id;
    });
    combine_anew(b, shape, k, carry, total, both);
    for_parts(shape, k, [&]<class T>(size_t part) {
      b.selp(Reg<T>{total[part]}, Reg<T>{both[part]}, in_warp, Reg<T>{both[part]});
      b.selp(Reg<T>{carry[part]}, Reg<T>{both[part]}, lane0, Reg<T>{carry[part]});
    });
  }
  Reg<Pred> ends_run = b.and_(open, in_tile), ends_tile = b.and_(open, b.not_(in_tile));
  Reg<Pred> is_last = b.setp(Is::eq, t.tid, segment_block - 1);
  for (size_t k = 0; k < count; ++k) {
    combine_anew(b, shape, k, carry, heads, both);
    store_result(ends_run, k, first_run, both);
    for_parts(shape, k, [&]<class T>(size_t part) {
      store_if<T>(b, ends_tile, Space::global, element_at(b, b.ld_param(p_heads[part]), tile, T::size),
                  Reg<T>{both[part]});
    });
    combine_anew(b, shape, k, carry, sums, both);
    for_parts(shape, k, [&]<class T>(size_t part) {
      const Reg<T> tail{both[part]};
      b.selp(Reg<T>{sums[part]}, tail, open, tail);
      store_if<T>(b, is_last, Space::global, element_at(b, b.ld_param(p_tails[part]), tile, T::size), tail);
    });
  }
  report_sums(b, flags);
  Reg<Pred> is_end = b.setp(Is::eq, b.add(tile, 1u), b.cvt<U32>(b.ld_param(p_tiles)));
  store_if<U64>(b, b.setp(Is::eq, Combine::and_, t.tid, 0u, is_end), Space::global, At(b.ld_param(p_found)),
                b.add(before, b.cvt<U64>(sum.total)));
  b.ret();
  b.finish();
  return segment_block;
}

// Warp w: the run that ends in tile w + 1, or with the last tile.
uint32_t build_boundaries(ptx::Module& module, std::string_view name, const AggregateShape& shape) {
  Builder b(module, std::string(name));
  const size_t count = shape.accumulators.size();
  Param p_tiles = b.parameter<U64>("tiles"), p_words = b.parameter<U64>("words");
  const std::vector<Param> p_out = parameters(b, "out", count), p_heads = parameters(b, "heads", count),
                           p_tails = parameters(b, "tails", count);
  const SumFlags flags = sum_flags(b, shape);
  b.set_block_size(segment_block);
  const Thread t = thread_of(b);
  Reg<U32> tiles = b.cvt<U32>(b.ld_param(p_tiles));
  Reg<U64> words = b.ld_param(p_words);
  Reg<U32> before = b.mad_lo(b.special(SpecialRegister::ctaid_x), segment_warps, t.warp);  // the last tile before the boundary
  const LabelId done = b.label(), window = b.label();
  b.when(b.setp(Is::ge, before, tiles)).bra_uni(done);
  // Runs up to and including a tile.
  const auto runs = [&](Reg<U32> tile) {
    return b.cvt<U32>(b.shr(b.ld<U64>(Space::global, element_at(b, words, tile, 8)), 2u));
  };
  Reg<U32> ended = runs(before);
  Reg<U32> tile = b.add(before, 1u);
  Reg<Pred> at_end = b.setp(Is::eq, tile, tiles);
  Reg<U32> here = b.min(tile, b.sub(tiles, 1u));
  Reg<Pred> nothing = b.setp(Is::eq, runs(here), ended);  // no run begins in the tile
  b.when(b.and_(nothing, b.not_(at_end))).bra_uni(done);

  Registers sums, window_sums(count);
  for (size_t k = 0; k < count; ++k) {
    const Accumulator& a = shape.accumulators[k];
    sums.push_back(identity_register(b, a));
    with_held(a.held, [&]<class T>() {
      load_if<T>(b, !at_end, Space::global, element_at(b, b.ld_param(p_heads[k]), here, T::size), Reg<T>{sums[k]});
    });
  }
  // 32 tiles at a time, back to the one in which the run began.
  Reg<S32> at = b.sub(Builder::as<S32>(before), Builder::as<S32>(t.lane));
  b.bind(window);
  Reg<Pred> exists = b.setp(Is::ge, at, 0);
  Reg<U32> mine = Builder::as<U32>(b.max(at, 0));
  Reg<U32> previous = b.sub(b.max(mine, 1u), 1u);
  Reg<U32> up_to = runs(mine), up_to_previous = runs(previous);
  // The first tile begins with a run.
  Reg<Pred> begins = b.or_(b.setp(Is::ne, up_to, up_to_previous), b.setp(Is::eq, mine, 0u));
  Reg<U32> votes = b.ballot(begins);
  Reg<U32> nearest = b.clz(b.brev(votes));  // 32: none
  Reg<Pred> counts = b.setp(Is::le, Combine::and_, t.lane, nearest, exists);
  for (size_t k = 0; k < count; ++k) {
    const Accumulator& a = shape.accumulators[k];
    with_held(a.held, [&]<class T>() {
      Reg<T> x = b.constant<T>(identity_of<T>(a.op));
      load_if<T>(b, counts, Space::global, element_at(b, b.ld_param(p_tails[k]), mine, T::size), x);
      window_sums[k] = x.id;
    });
    combine_warp(b, shape, k, window_sums);
    combine(b, shape, k, window_sums, sums, sums);
  }
  b.sub(at, 32, at);
  b.when(b.setp(Is::eq, votes, 0u)).bra_uni(window);
  Reg<Pred> lane0 = b.setp(Is::eq, t.lane, 0u);
  for (size_t k = 0; k < count; ++k)
    with_result(b, shape, k, sums, flags, lane0, [&]<class T>(size_t first, Reg<T> x) {
      store_if<T>(b, lane0, Space::global,
                  At(element_address(b, b.ld_param(p_out[first]), ended, T::size), -int64_t{T::size}), x);
    });
  b.bind(done);
  b.ret();
  b.finish();
  return segment_block;
}

uint32_t build_cells(ptx::Module& module, std::string_view name, const AggregateShape& shape) {
  Builder b(module, std::string(name));
  const size_t count = shape.accumulators.size();
  Param p_cells = b.parameter<U64>("cells"), p_offsets = b.parameter<U64>("offsets"), p_rows = b.parameter<U64>("rows");
  const std::vector<Param> p_columns = parameters(b, "column", shape.columns.size()),
                           p_out = parameters(b, "out", count);
  SumFlags flags = sum_flags(b, shape);
  b.set_block_size(segment_block);
  const Thread t = thread_of(b);
  start_sums(b, shape, flags);
  Reg<U32> cells = b.cvt<U32>(b.ld_param(p_cells));
  Reg<U32> cell = b.mad_lo(b.special(SpecialRegister::ctaid_x), segment_warps, t.warp);
  Reg<U32> step = b.mul_lo(b.special(SpecialRegister::nctaid_x), segment_warps);
  Reg<U64> offsets = b.ld_param(p_offsets), rows = b.ld_param(p_rows);
  const std::vector<Reg<U64>> columns = load_all(b, p_columns), out = load_all(b, p_out);
  Reg<Pred> lane0 = b.setp(Is::eq, t.lane, 0u);
  const LabelId next_cell = b.label(), done = b.label(), next_row = b.label(), end_of_cell = b.label();
  b.bind(next_cell);
  b.when(b.setp(Is::ge, cell, cells)).bra_uni(done);
  const At bounds = element_at(b, offsets, cell, 8);
  Reg<U32> place = b.add(b.ld<U32>(Space::global, bounds), t.lane);  // the low halves
  Reg<U32> end = b.ld<U32>(Space::global, bounds.plus(8));
  Registers sums;
  for (const Accumulator& a : shape.accumulators) sums.push_back(identity_register(b, a));
  b.bind(next_row);
  b.when(b.setp(Is::ge, place, end)).bra(end_of_cell);
  Reg<U32> row = b.ld<U32>(Space::global, element_at(b, rows, place, 8));
  const std::vector<Element> elements = load_elements(b, shape, columns, row);
  Reg<Pred> always = b.constant<Pred>(true);
  for (size_t k = 0; k < count; ++k) 
    accumulate(b, shape, k, sums, elements, flags, shape.accumulators[k].sums_floats() ? Reg<Pred>() : always);
  b.add(place, 32u, place);
  b.bra(next_row);
  b.bind(end_of_cell);
  b.bar_warp_sync();
  for (size_t k = 0; k < count; ++k) {
    combine_warp(b, shape, k, sums);
    with_result(b, shape, k, sums, flags, lane0, [&]<class T>(size_t first, Reg<T> x) {
      store_if<T>(b, lane0, Space::global, element_at(b, out[first], cell, T::size), x);
    });
  }
  b.add(cell, step, cell);
  b.bra(next_cell);
  b.bind(done);
  report_sums(b, flags);
  b.ret();
  b.finish();
  return segment_block;
}

Library::Row segments_kernel(SegmentFrom from, bool gather, const AggregateShape& shape) {
  return {fmt::format("segments_{}{}{}", static_cast<int>(from), gather ? "_gather" : "", shape.name()),
          [from, gather, shape](ptx::Module& m, std::string_view entry) {
            return build_segments(m, entry, from, gather, shape);
          }};
}
Library::Row boundaries_kernel(const AggregateShape& shape) {
  return {"boundaries" + shape.name(),
          [shape](ptx::Module& m, std::string_view entry) { return build_boundaries(m, entry, shape); }};
}
Library::Row cells_kernel(const AggregateShape& shape) {
  return {"cells" + shape.name(),
          [shape](ptx::Module& m, std::string_view entry) { return build_cells(m, entry, shape); }};
}

uint64_t segment_bytes_of(const AggregateShape& shape) {
  uint64_t bytes = 0;
  for (Type type : shape.columns) bytes += width(type);
  return bytes;
}

}  // namespace

// One figure of groups, or both bounds, of integers as columns hold them.
void add_aggregates(KernelRows& rows) {
  constexpr auto add = Accumulator::add, min = Accumulator::min, max = Accumulator::max;
  const AggregateShape count{{}, {{Accumulator::count, Held::s64, 0}}};
  rows.push_back(cells_kernel(count));
  for (const auto& [type, held] :
       {std::pair(Type::i8, Held::s32), {Type::i16, Held::s32}, {Type::i32, Held::s32}, {Type::i64, Held::s64}}) {
    const AggregateShape sum{{type}, {{add, Held::s64, 0}}};
    rows.push_back(cells_kernel(sum));
    rows.push_back(cells_kernel({{type}, {{min, held, 0}}}));
    rows.push_back(cells_kernel({{type}, {{max, held, 0}}}));
    rows.push_back(cells_kernel({{type}, {{min, held, 0}, {max, held, 0}}}));
    if (width(type) < 4) continue;
    for (const AggregateShape& shape : {sum, AggregateShape{{type}, {{min, held, 0}, {max, held, 0}}}}) {
      for (bool gather : {false, true}) rows.push_back(segments_kernel(SegmentFrom::keys32, gather, shape));
      rows.push_back(boundaries_kernel(shape));
    }
  }
  for (bool gather : {false, true}) rows.push_back(segments_kernel(SegmentFrom::keys32, gather, count));
  for (SegmentFrom from : {SegmentFrom::keys64, SegmentFrom::flags}) rows.push_back(segments_kernel(from, true, count));
  rows.push_back(boundaries_kernel(count));
}

uint64_t segment_words(uint64_t n, const AggregateShape& shape) { return (n + segment_tile_of(shape) - 1) / segment_tile_of(shape); }

Result<uint64_t> reduce_runs(Library& library, const AggregateInput& input, const Sorted& sorted,
                             Address flags, uint64_t n, Address first,
                             std::span<const Address> accumulators, Memory& memory, const Part* value) {
  const AggregateShape& shape = input.shape;
  const SegmentFrom from = flags ? SegmentFrom::flags : sorted.wide ? SegmentFrom::keys64 : SegmentFrom::keys32;
  const Address keys = flags ? flags : sorted.keys;
  Address values = 0;
  if (value) {
    ASSIGN_OR_RETURN(values, differing_rows(library, sorted, {value, 1}, n, memory));
  }
  const bool gather = sorted.rows != 0;
  const uint64_t tiles = segment_words(n, shape);
  std::vector<Address> heads, tails;
  for (const Accumulator& a : shape.accumulators) {
    ASSIGN_OR_RETURN(Address at, memory.temporary(2 * tiles * width(a.held)));
    heads.push_back(at);
    tails.push_back(at + tiles * width(a.held));
  }
  ASSIGN_OR_RETURN(device::Mapped found, memory.mapped(8));
  ASSIGN_OR_RETURN(Address zeroed, library.zeroed());
  ASSIGN_OR_RETURN(const Kernel* segments, library.kernel(segments_kernel(from, gather, shape)));
  Arguments a;
  a.add(n).add(tiles).add(keys).add(sorted.rows).add(first).add(sorted.words).add(zeroed + segment_ticket_at);
  a.add(found.address).add(values);
  for (Address column : input.columns) a.add(column);
  for (Address out : accumulators) a.add(out);
  for (Address at : heads) a.add(at);
  for (Address at : tails) a.add(at);
  if (shape.sums_floats()) a.add(input.sum_flags);
  const uint64_t key_bytes = from == SegmentFrom::flags ? 1 : from == SegmentFrom::keys64 ? 8 : 4;
  RETURN_IF_ERROR(
      library.launch(*segments, static_cast<uint32_t>(tiles), a, n * (key_bytes + (gather ? 8 : 0) + segment_bytes_of(shape))));
  if (!accumulators.empty()) {
    ASSIGN_OR_RETURN(const Kernel* boundaries, library.kernel(boundaries_kernel(shape)));
    Arguments c;
    c.add(tiles).add(sorted.words);
    for (Address out : accumulators) c.add(out);
    for (Address at : heads) c.add(at);
    for (Address at : tails) c.add(at);
    if (shape.sums_floats()) c.add(input.sum_flags);
    RETURN_IF_ERROR(library.launch(*boundaries, static_cast<uint32_t>((tiles + segment_warps - 1) / segment_warps), c,
                                   tiles * 24 * accumulators.size()));
  }
  RETURN_IF_ERROR(library.device().synchronize());
  return *static_cast<const uint64_t*>(found.host);
}

Result<void> reduce_cells(Library& library, const AggregateInput& input, uint64_t cells, Address offsets, Address rows,
                          std::span<const Address> accumulators) {
  if (cells == 0 || accumulators.empty()) return {};
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(cells_kernel(input.shape)));
  Arguments a;
  a.add(cells).add(offsets).add(rows);
  for (Address column : input.columns) a.add(column);
  for (Address out : accumulators) a.add(out);
  if (input.shape.sums_floats()) a.add(input.sum_flags);
  return library.launch(*kernel, library.grid(*kernel, (cells + segment_warps - 1) / segment_warps), a, cells * 16);
}

}  // namespace rndn::operators
