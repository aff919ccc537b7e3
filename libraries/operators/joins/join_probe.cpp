// The probe side of a join, and the driver of joins with a key.
//
// The keys of the left side are unique (the usual case: a primary key): one probe kernel. A tile of right rows looks its keys up, tests
// the residual predicates, and writes its pairs at a position that a look-back over the tiles gives. One wait, for the number of pairs.
//
// Some key occurs more than once, which the build found: the probe kernel leaves at once, and
//   places   every left row finds the slot of its key and counts there
//   sort     left rows by slot, stable: the rows of a key are neighbours and ascending; sum of the counts: where each slot's rows begin
//   count    a warp takes 32 right rows and knows how many candidates each has; candidates that pass the residual predicates are
//            counted, a look-back over the tiles gives the warp's first position
//   write    the same walk with the number of pairs known, writing
// The 32 right rows' candidates are walked as one sequence, 32 at a time, so that one right row with many matches keeps all lanes busy
// and the pairs come out in order. Two waits.
// Cost: O(left + right + candidates).
// One key whose columns both ascend is merged: merge_join.cpp.
// Leaves out: building on the smaller side; a probe that writes other columns than row numbers.
#include <algorithm>

#include "libraries/operators/joins/join.h"
#include "libraries/operators/joins/merge.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

namespace {

constexpr uint32_t probe_items = 4;
constexpr uint32_t probe_tile_rows = block_threads * probe_items;
constexpr uint32_t probe_warps = block_threads / 32;

// Bits below this lane's.
Reg<U32> lanes_before(Builder& b, const Thread& t) { return b.sub(b.shl(b.constant<U32>(1), t.lane), 1); }

// ---- unique keys

// What the host reads after the first probe.
struct ProbeAnswer {
  uint64_t pairs, duplicates, left_rows;
};

// counts: nothing but the answer is written.
uint32_t build_probe(ptx::Module& module, std::string_view name, const JoinShape& shape, JoinTable::Kind kind,
                     bool counts) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  SideCode left = side_code(b, "left", shape, shape.left_single);
  SideCode right = side_code(b, "right", shape, shape.right_single);
  TableCode table = table_code(b, shape, kind);
  const Parameter words_at = b.parameter<U64>("words"), answer_at = b.parameter<U64>("answer");
  const Parameter out_left = b.parameter<U64>("out_left"), out_right = b.parameter<U64>("out_right");
  const ptx::SharedVariable shared = b.shared<U64>(std::string(name) + "_shared", 8, 16);
  const Thread t = thread_of(b);
  left.start(b);
  right.start(b);
  table.start(b);
  Reg<U64> answer = b.ld_param(answer_at);
  Reg<U32> duplicates = b.ld<U32>(Space::global, At(table.control_at, control_duplicates));
  Reg<Pred> first_thread = b.setp(Is::eq, b.or_(b.special(ptx::SpecialRegister::ctaid_x), t.tid), 0);
  Reg<U64> duplicates64 = b.cvt<U64>(duplicates), left64 = b.cvt<U64>(left.rows);
  store_if<U64>(b, first_thread, Space::global, At(answer, 8), duplicates64);
  store_if<U64>(b, first_thread, Space::global, At(answer, 16), left64);
  const LabelId next = b.label(), done = b.label();
  b.when(b.setp(Is::ne, duplicates, 0)).bra_uni(done);
  Reg<U32> tiles = tiles_of(b, right.rows, probe_tile_rows);
  Reg<U32> last = b.sub(right.rows, 1), before_lane = lanes_before(b, t);
  Reg<Pred> no_left = b.setp(Is::eq, left.rows, 0);
  b.bind(next);
  Reg<U32> tile = take_tile(b, shared, b.add(table.control_at, control_ticket), t);
  b.when(b.setp(Is::ge, tile, tiles)).bra_uni(done);
  // A warp's rows are neighbours, and so are those of its lanes.
  Reg<U32> first = b.add(b.mad_lo(tile, probe_tile_rows, b.mul_lo(t.warp, 32 * probe_items)), t.lane);
  std::vector<Reg<U32>> rows;
  std::vector<Key> keys;
  for (uint32_t k = 0; k < probe_items; ++k) {
    Reg<U32> row = b.add(first, 32 * k);
    Reg<Pred> exists = b.setp(Is::lt, row, right.rows);
    rows.push_back(b.min(row, last));
    keys.push_back(row_key(b, shape, table, right, rows[k], exists));
  }
  const std::vector<Found> found = find_rows(b, shape, table, left, right, rows, keys);
  std::vector<Reg<U32>> masks;
  Reg<U32> count;
  for (uint32_t k = 0; k < probe_items; ++k) {
    if (!shape.rest.empty()) {  // rows that are not there stand for row 0, which is there when any is
      const LabelId tested = b.label();
      b.when(no_left).bra(tested);
      Reg<U32> row = b.selp(found[k].row, 0, found[k].hit);
      test_residuals(b, shape, left, row, right, rows[k], found[k].hit);
      b.bind(tested);
    }
    masks.push_back(b.ballot(found[k].hit));
    Reg<U32> own = b.popc(masks[k]);
    count = count.valid() ? b.add(count, own) : own;
  }
  const BlockSum sum = block_sum(b, t, count, probe_warps, shared, 16);
  Reg<U64> before = look_back(b, t, tile, sum.total, b.ld_param(words_at), At(shared, 8));
  Reg<U64> end = b.add(before, b.cvt<U64>(sum.total));
  Reg<Pred> last_tile = b.setp(Is::eq, ptx::Combine::and_, b.add(tile, 1), tiles, b.setp(Is::eq, t.tid, 0));
  store_if<U64>(b, last_tile, Space::global, At(answer), end);
  const auto store_pairs = [&] {
    Reg<U64> start = b.shl(b.add(before, b.cvt<U64>(sum.before)), 3);
    Reg<U64> left_at = b.add(b.ld_param(out_left), start), right_at = b.add(b.ld_param(out_right), start);
    Reg<U32> position = b.constant<U32>(0);
    for (uint32_t k = 0; k < probe_items; ++k) {
      Reg<U32> place = b.add(position, b.popc(b.and_(masks[k], before_lane)));
      Reg<Pred> hit = b.setp(Is::ne, b.and_(b.shr(masks[k], t.lane), 1), 0);
      const At to_left = element_at(b, left_at, place, 8), to_right = element_at(b, right_at, place, 8);
      Reg<U64> i = b.cvt<U64>(found[k].row), j = b.cvt<U64>(rows[k]);
      store_if<U64>(b, hit, Space::global, to_left, i);
      store_if<U64>(b, hit, Space::global, to_right, j);
      if (k + 1 < probe_items) b.add(position, b.popc(masks[k]), position);
    }
  };
  if (!counts) store_pairs();
  b.bra(next);
  b.bind(done);
  b.ret();
  b.finish();
  return block_threads;
}

// ---- keys that occur more than once

uint32_t build_places(ptx::Module& module, std::string_view name, const JoinShape& shape, JoinTable::Kind kind) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  SideCode left = side_code(b, "left", shape, shape.left_single);
  TableCode table = table_code(b, shape, kind);
  const Parameter places_at = b.parameter<U64>("places"), counts_at = b.parameter<U64>("counts");
  const Thread t = thread_of(b);
  left.start(b);
  table.start(b);
  Reg<U64> places = b.ld_param(places_at), counts = b.ld_param(counts_at);
  Reg<U32> last = b.sub(left.rows, 1);
  for_tiles(b, tiles_of(b, left.rows, probe_tile_rows), [&](Reg<U32> tile) {
    std::vector<Reg<U32>> rows;
    std::vector<Reg<Pred>> exists;
    std::vector<Key> keys;
    for (uint32_t k = 0; k < probe_items; ++k) {
      Reg<U32> row = b.add(b.mad_lo(tile, probe_tile_rows, t.tid), k * block_threads);
      exists.push_back(b.setp(Is::lt, row, left.rows));
      rows.push_back(b.min(row, last));
      keys.push_back(row_key(b, shape, table, left, rows[k], exists[k]));
    }
    const std::vector<Found> found = find_rows(b, shape, table, left, left, rows, keys);
    for (uint32_t k = 0; k < probe_items; ++k) {
      const At count = element_at(b, counts, found[k].place, 4), place = element_at(b, places, rows[k], 4);
      b.when(found[k].hit).red<U32>(ptx::AtomicOp::add, Space::global, count, 1);
      Reg<U32> own = b.selp(found[k].place, table.count, found[k].hit);  // rows without a key go last
      store_if<U32>(b, exists[k], Space::global, place, own);
    }
  });
  b.ret();
  b.finish();
  return block_threads;
}

// Exclusive sums of the counts: where the rows of every slot begin. In place; one more at the end.
uint32_t build_sums(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter control = b.parameter<U64>("control"), counts_at = b.parameter<U64>("counts");
  const Parameter ticket_at = b.parameter<U64>("ticket"), words_at = b.parameter<U64>("words");
  const ptx::SharedVariable shared = b.shared<U64>(std::string(name) + "_shared", 8, 16);
  const Thread t = thread_of(b);
  Reg<U32> slots = b.ld<U32>(Space::global, At(b.ld_param(control), control_slots));
  Reg<U32> tiles = b.add(b.shr(slots, 10), 1);  // the sums of all slots and the one behind them
  static_assert(probe_tile_rows == 1 << 10);
  Reg<U64> counts = b.ld_param(counts_at);
  const LabelId next = b.label(), done = b.label();
  b.bind(next);
  Reg<U32> tile = take_tile(b, shared, b.ld_param(ticket_at), t);
  b.when(b.setp(Is::ge, tile, tiles)).bra_uni(done);
  const At at = element_at(b, counts, b.mad_lo(tile, probe_tile_rows, b.shl(t.tid, 2)), 4);
  const auto own = b.ld_v4<U32>(Space::global, at);
  Reg<U32> two = b.add(own[0], own[1]), three = b.add(two, own[2]), four = b.add(three, own[3]);
  Reg<U32> inclusive = warp_sum(b, t, four);
  const BlockSum sum = block_sum(b, t, inclusive, probe_warps, shared, 16);
  Reg<U64> before = look_back(b, t, tile, sum.total, b.ld_param(words_at), At(shared, 8));
  Reg<U32> start = b.add(b.add(b.cvt<U32>(before), sum.before), b.sub(inclusive, four));
  b.st_v4<U32>(Space::global, at, start, b.add(start, own[0]), b.add(start, two), b.add(start, three));
  b.bra(next);
  b.bind(done);
  b.ret();
  b.finish();
  return block_threads;
}

// count and write: see the top. `starts`: per warp of 32 right rows the position of its first pair.
uint32_t build_probe_ranges(ptx::Module& module, std::string_view name, const JoinShape& shape, JoinTable::Kind kind,
                      bool write) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  SideCode left = side_code(b, "left", shape, shape.left_single);
  SideCode right = side_code(b, "right", shape, shape.right_single);
  TableCode table = table_code(b, shape, kind);
  const Parameter begins_at = b.parameter<U64>("begins"), grouped_at = b.parameter<U64>("grouped");
  const Parameter starts_at = b.parameter<U64>("starts"), ticket_at = b.parameter<U64>("ticket");
  const Parameter words_at = b.parameter<U64>("words"), total_at = b.parameter<U64>("total");
  const Parameter out_left = b.parameter<U64>("out_left"), out_right = b.parameter<U64>("out_right");
  const ptx::SharedVariable shared = b.shared<U64>(std::string(name) + "_shared", 2 + probe_warps, 16);
  const Thread t = thread_of(b);
  left.start(b);
  right.start(b);
  table.start(b);
  Reg<U32> tiles = tiles_of(b, right.rows, block_threads);
  Reg<U32> last = b.sub(right.rows, 1), before_lane = lanes_before(b, t);
  Reg<U64> begins = b.ld_param(begins_at), grouped = b.ld_param(grouped_at), starts = b.ld_param(starts_at);

  const auto tile_body = [&](Reg<U32> tile) {
    Reg<U32> first = b.mad_lo(tile, block_threads, b.shl(t.warp, 5));
    Reg<U32> row = b.add(first, t.lane);
    Reg<Pred> exists = b.setp(Is::lt, row, right.rows);
    b.min(row, last, row);
    const Key key = row_key(b, shape, table, right, row, exists);
    const Found found = find_rows(b, shape, table, left, right, {&row, 1}, {&key, 1})[0];
    Reg<U32> begin = b.constant<U32>(0), end = b.constant<U32>(0);
    const At range = element_at(b, begins, found.place, 4);
    load_if<U32>(b, found.hit, Space::global, range, begin, {.cache = ptx::Cache::nc});
    load_if<U32>(b, found.hit, Space::global, range.plus(4), end, {.cache = ptx::Cache::nc});
    Reg<U64> own = b.cvt<U64>(b.sub(end, begin));
    Reg<U64> inclusive = warp_sum(b, t, own);
    Reg<U64> candidates = b.shfl_sync_64(ShuffleMode::idx, inclusive, 31, 31);
    Reg<U32> behind = b.cvt<U32>(b.sub(inclusive, own));
    const At start_at = element_at(b, starts, b.shr(first, 5), 8);
    // Walks the candidates of the warp; body(left row, right row, the pair exists and passes).
    const auto walk = [&](auto&& body) {
      const LabelId loop = b.label(), over = b.label();
      Reg<U64> base = b.constant<U64>(0);
      b.bind(loop);
      b.when(b.setp(Is::ge, base, candidates)).bra_uni(over);
      // How many candidates from `base` on belong to this lane's row and those before it, at most 32.
      Reg<U64> ahead = b.sub(b.max(inclusive, base), base);
      Reg<U32> upto = b.cvt<U32>(b.min(ahead, 32));
      Reg<U32> owner = b.constant<U32>(0);  // the first lane with upto > this lane's number
      for (uint32_t step = 16; step > 0; step /= 2) {
        Reg<U32> seen = b.shfl_sync(ShuffleMode::idx, upto, b.add(owner, step - 1), 31);
        b.when(b.setp(Is::le, seen, t.lane)).add(owner, step, owner);
      }
      Reg<U32> from = b.shfl_sync(ShuffleMode::idx, begin, owner, 31);
      Reg<U32> skipped = b.shfl_sync(ShuffleMode::idx, behind, owner, 31);
      Reg<Pred> passes = b.setp(Is::lt, b.add(base, b.cvt<U64>(t.lane)), candidates);
      Reg<U32> position = b.add(from, b.sub(b.add(b.cvt<U32>(base), t.lane), skipped));
      const At at = element_at(b, grouped, position, 8);
      Reg<U64> left64 = b.constant<U64>(0);
      load_if<U64>(b, passes, Space::global, at, left64, {.cache = ptx::Cache::nc});
      Reg<U32> right_row = b.min(b.add(first, owner), last);
      test_residuals(b, shape, left, b.cvt<U32>(left64), right, right_row, passes);
      body(left64, right_row, passes);
      b.add(base, 32, base);
      b.bra(loop);
      b.bind(over);
    };
    if (!write) {
      Reg<U64> count = candidates;
      if (!shape.rest.empty()) {
        count = b.constant<U64>(0);
        walk([&](Reg<U64>, Reg<U32>, Reg<Pred> passes) { b.add(count, b.cvt<U64>(b.popc(b.ballot(passes))), count); });
      }
      // The counts of the warps of this block, then of the tiles before it.
      Reg<U32> own_place = b.mad_lo(t.warp, 8, b.address_of_32(shared, 16));
      store_if<U64>(b, b.setp(Is::eq, t.lane, 0), Space::shared, At(own_place), count);
      b.bar_sync();
      Reg<U64> earlier = b.constant<U64>(0), total = b.constant<U64>(0);
      for (uint32_t w = 0; w < probe_warps; ++w) {
        Reg<U64> its = b.ld<U64>(Space::shared, At(shared, 16 + 8 * w));
        b.when(b.setp(Is::gt, t.warp, w)).add(earlier, its, earlier);
        b.add(total, its, total);
      }
      Reg<U64> before = look_back(b, t, tile, total, b.ld_param(words_at), At(shared, 8));
      Reg<U64> start = b.add(before, earlier), all = b.add(before, total);
      store_if<U64>(b, b.setp(Is::eq, t.lane, 0), Space::global, start_at, start);
      Reg<Pred> last_tile = b.setp(Is::eq, ptx::Combine::and_, b.add(tile, 1), tiles, b.setp(Is::eq, t.tid, 0));
      Reg<U64> total_to = b.ld_param(total_at);
      store_if<U64>(b, last_tile, Space::global, At(total_to), all);
      return;
    }
    Reg<U64> start = b.shl(b.ld_nc<U64>(start_at), 3);
    Reg<U64> left_at = b.add(b.ld_param(out_left), start), right_at = b.add(b.ld_param(out_right), start);
    walk([&](Reg<U64> left64, Reg<U32> right_row, Reg<Pred> passes) {
      Reg<U32> mask = b.ballot(passes);
      Reg<U64> offset = b.cvt<U64>(b.shl(b.popc(b.and_(mask, before_lane)), 3));
      const At to_left(b.add(left_at, offset)), to_right(b.add(right_at, offset));
      Reg<U64> right64 = b.cvt<U64>(right_row);
      store_if<U64>(b, passes, Space::global, to_left, left64);
      store_if<U64>(b, passes, Space::global, to_right, right64);
      Reg<U64> written = b.cvt<U64>(b.shl(b.popc(mask), 3));
      b.add(left_at, written, left_at);
      b.add(right_at, written, right_at);
    });
  };
  if (write) {
    for_tiles(b, tiles, tile_body);
  } else {
    const LabelId next = b.label(), done = b.label();
    b.bind(next);
    Reg<U32> tile = take_tile(b, shared, b.ld_param(ticket_at), t);
    b.when(b.setp(Is::ge, tile, tiles)).bra_uni(done);
    tile_body(tile);
    b.bra(next);
    b.bind(done);
  }
  b.ret();
  b.finish();
  return block_threads;
}

const char* probe_kind_name(JoinTable::Kind kind) { return kind == JoinTable::direct ? "direct_" : "hash_"; }

Library::Row probe_kernel(const JoinShape& shape, JoinTable::Kind kind, bool counts = false) {
  return {(counts ? "join_probe_count_" : "join_probe_") + std::string(probe_kind_name(kind)) + shape.name(),
          [shape, kind, counts](ptx::Module& m, std::string_view name) {
            return build_probe(m, name, shape, kind, counts);
          }};
}
Library::Row places_kernel(const JoinShape& shape, JoinTable::Kind kind) {
  return {"join_places_" + std::string(probe_kind_name(kind)) + shape.name(),
          [shape, kind](ptx::Module& m, std::string_view name) { return build_places(m, name, shape, kind); }};
}
Library::Row ranges_kernel(const JoinShape& shape, JoinTable::Kind kind, bool write) {
  return {(write ? "join_write_" : "join_count_") + std::string(probe_kind_name(kind)) + shape.name(),
          [shape, kind, write](ptx::Module& m, std::string_view name) {
            return build_probe_ranges(m, name, shape, kind, write);
          }};
}

uint64_t row_bytes(const Side& side) {
  uint64_t bytes = 0;
  for (const Vector& v : side.columns) bytes += width(v.type);
  return bytes;
}

Result<Pairs> duplicate_pairs(Library& library, const JoinShape& shape, const JoinTable& table, const Side& left,
                              const Side& right, uint64_t left_rows, Memory& memory) {
  const JoinTable::Kind kind = table.kind;
  // The counts become the sums in place: a tile reads and writes four of them per thread.
  const uint64_t slots = table.slot_capacity, tiles = tiles_for(right.capacity, block_threads);
  const uint64_t sum_tiles = slots / probe_tile_rows + 1, counts_bytes = sum_tiles * probe_tile_rows * 4;
  const uint64_t zero_bytes = 256 + (sum_tiles + tiles) * 8;
  ASSIGN_OR_RETURN(Address zeroed, memory.temporary(zero_bytes));
  ASSIGN_OR_RETURN(Address counts, memory.temporary(counts_bytes));
  ASSIGN_OR_RETURN(Address places, memory.temporary(left_rows * 4));
  ASSIGN_OR_RETURN(Address starts, memory.temporary(tiles * probe_warps * 8));
  RETURN_IF_ERROR(library.device().fill(zeroed, 0, zero_bytes));
  RETURN_IF_ERROR(library.device().fill(counts, 0, counts_bytes));
  {
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(places_kernel(shape, kind)));
    Arguments a;
    add(a, left);
    add(a, table);
    a.add(places).add(counts);
    RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, tiles_for(left_rows, probe_tile_rows)), a,
                                   left_rows * (row_bytes(left) + 4)));
  }
  {
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel("join_sums", build_sums));
    Arguments a;
    a.add(table.control).add(counts).add(zeroed).add(zeroed + 256);
    RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, sum_tiles), a, slots * 8));
  }
  Scratch scratch(memory);
  const Vector keys{
      .type = Type::u32, .data = places, .capacity = left_rows, .min = 0, .max = static_cast<int64_t>(slots)};
  const bool ascending[] = {true};
  ASSIGN_OR_RETURN(const Vector grouped, order(library, {&keys, 1}, ascending, scratch));
  ASSIGN_OR_RETURN(device::Mapped total, memory.mapped(8));
  Pairs out;
  for (bool write : {false, true}) {
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(ranges_kernel(shape, kind, write)));
    Arguments a;
    add(a, left);
    add(a, right);
    add(a, table);
    a.add(counts).add(grouped.data).add(starts).add(zeroed + 4).add(zeroed + 256 + sum_tiles * 8).add(total.address);
    a.add(out.left.data).add(out.right.data);
    RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, tiles), a,
                                   right.capacity * row_bytes(right) + out.left.capacity * 16));
    if (write) break;
    RETURN_IF_ERROR(library.wait(memory));
    out.left.capacity = out.right.capacity = *static_cast<const volatile uint64_t*>(total.host);
    ASSIGN_OR_RETURN(out.left.data, memory.result(out.left.capacity * 8));
    ASSIGN_OR_RETURN(out.right.data, memory.result(out.left.capacity * 8));
    if (out.left.capacity == 0) break;
  }
  return out;
}

}  // namespace

// Of one key, with equal keys or none; and of one or two where each occurs once and a 64-bit number is compared besides.
void add_join_probes(KernelRows& rows) {
  rows.push_back({"join_sums", build_sums});
  const auto shape_of = [](const std::vector<Type>& types) {
    JoinShape shape;
    shape.key.form = KeyForm::narrow;
    for (Type type : types) shape.key.columns.push_back({.type = type, .rebased = true});
    shape.left_single = shape.right_single = std::vector<bool>(types.size(), false);
    return shape;
  };
  for (JoinTable::Kind kind : {JoinTable::direct, JoinTable::hash})
    for (Type type : {Type::i32, Type::i64}) {
      const JoinShape shape = shape_of({type});
      rows.insert(rows.end(), {probe_kernel(shape, kind), places_kernel(shape, kind), ranges_kernel(shape, kind, false),
                               ranges_kernel(shape, kind, true)});
    }
  for (Compare compare : {Compare::lt, Compare::leq, Compare::gt, Compare::geq})
    for (const auto& [types, kind] : {std::pair(std::vector{Type::i32}, JoinTable::direct),
                                      {{Type::i32}, JoinTable::hash},
                                      {{Type::i32, Type::i32}, JoinTable::hash}}) {
      JoinShape shape = shape_of(types);
      shape.rest.push_back({.compare = compare, .type = Type::i64});
      shape.left_single.push_back(false), shape.right_single.push_back(false);
      rows.push_back(probe_kernel(shape, kind));
    }
}

Result<Pairs> join_pairs(Library& library, const JoinShape& shape, const KeyLayout& layout, const Side& left,
                         const Side& right, Memory& memory) {
  const uint64_t tiles = tiles_for(right.capacity, probe_tile_rows);
  ASSIGN_OR_RETURN(const JoinTable table, build_join(library, shape, layout, left, tiles, memory));
  Pairs out;
  ASSIGN_OR_RETURN(device::Mapped mapped, memory.mapped(sizeof(ProbeAnswer)));
  const volatile ProbeAnswer* answer = static_cast<const volatile ProbeAnswer*>(mapped.host);
  const auto probe = [&](bool counts) -> Result<void> {
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(probe_kernel(shape, table.kind, counts)));
    Arguments a;
    add(a, left);
    add(a, right);
    add(a, table);
    a.add(table.words).add(mapped.address).add(out.left.data).add(out.right.data);
    RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, tiles), a,
                                   right.capacity * (row_bytes(right) + (counts ? 0 : 16))));
    return library.wait(memory);
  };
  uint64_t room = right.capacity;
  if (memory.counts_first(8 * room)) {
    RETURN_IF_ERROR(probe(true));
    if (answer->duplicates) return duplicate_pairs(library, shape, table, left, right, answer->left_rows, memory);
    room = answer->pairs;
    RETURN_IF_ERROR(library.device().fill(table.control + control_ticket, 0, 4));
    RETURN_IF_ERROR(library.device().fill(table.words, 0, 8 * table.word_count));
  }
  ASSIGN_OR_RETURN(out.left.data, memory.result(room * 8));
  ASSIGN_OR_RETURN(out.right.data, memory.result(room * 8));
  if (room > 0 || right.capacity == 0) RETURN_IF_ERROR(probe(false));
  if (answer->duplicates) return duplicate_pairs(library, shape, table, left, right, answer->left_rows, memory);
  out.left.capacity = out.right.capacity = answer->pairs;
  return out;
}

Result<Pairs> join(Library& library, const Options& options, std::span<const Compare> compare,
                   std::span<const Vector> left, std::span<const Vector> right, Memory& memory) {
  if (compare.size() != left.size() || compare.size() != right.size())
    return input_error("a join of {} predicates got {} and {} columns", compare.size(), left.size(), right.size());
  if (compare.empty()) return input_error("a join needs at least one predicate");
  for (size_t k = 0; k < compare.size(); ++k)
    if (left[k].type != right[k].type)
      return input_error("a join compares elements of one type, got {} and {}", type_name(left[k].type),
                         type_name(right[k].type));
  bool hash = false;
  for (Compare c : compare) hash |= c == Compare::eq;
  if (options.join == Options::Join::loop) hash = false;
  // The key's columns first.
  JoinShape shape;
  std::vector<Vector> left_columns, right_columns;
  for (bool keys : {true, false})
    for (size_t k = 0; k < compare.size(); ++k) {
      const bool is_key = hash && compare[k] == Compare::eq;
      if (is_key != keys) continue;
      left_columns.push_back(left[k]);
      right_columns.push_back(right[k]);
      if (is_key) continue;
      const bool orders = compare[k] != Compare::eq && compare[k] != Compare::neq;
      const bool ranked = orders && left[k].type == Type::u32 && left[k].ranks && right[k].ranks;
      shape.rest.push_back({compare[k], left[k].type, ranked});
    }
  ASSIGN_OR_RETURN(const Side l, make_side(std::move(left_columns)));
  ASSIGN_OR_RETURN(const Side r, make_side(std::move(right_columns)));
  shape.left_single = l.single;
  shape.right_single = r.single;
  const auto finish = [&](Pairs pairs) {
    for (Vector* v : {&pairs.left, &pairs.right}) {
      v->type = Type::i64;
      v->min = 0;
      v->max = static_cast<int64_t>(v == &pairs.left ? l.capacity : r.capacity) - 1;
    }
    return pairs;
  };
  if (l.capacity == 0 || r.capacity == 0) return finish({});
  // Few candidates are tested sooner than a table is built.
  if (options.join == Options::Join::automatic && (l.capacity <= 4 || l.capacity * r.capacity <= 1 << 14)) {
    JoinShape flat = shape;
    if (hash) {
      const KeyShape none;
      flat.key = none;
      flat.rest.clear();
      for (size_t k = 0; k < compare.size() - shape.rest.size(); ++k)
        flat.rest.push_back({Compare::eq, l.columns[k].type, false});
      flat.rest.insert(flat.rest.end(), shape.rest.begin(), shape.rest.end());
    }
    ASSIGN_OR_RETURN(Pairs pairs, loop_pairs(library, flat, l, r, memory));
    return finish(pairs);
  }
  if (!hash) {
    ASSIGN_OR_RETURN(Pairs pairs, loop_pairs(library, shape, l, r, memory));
    return finish(pairs);
  }
  if (options.join == Options::Join::automatic && compare.size() == 1 && !l.single[0] && !r.single[0] &&
      is_mergeable(l.columns[0]) && is_mergeable(r.columns[0])) {
    ASSIGN_OR_RETURN(const Pairs pairs, merge_pairs(library, l.columns[0], r.columns[0], memory));
    return finish(pairs);
  }
  const KeyLayout layout = layout_keys({l.columns.data(), l.columns.size() - shape.rest.size()});
  shape.key = layout.shape;
  ASSIGN_OR_RETURN(Pairs pairs, join_pairs(library, shape, layout, l, r, memory));
  return finish(pairs);
}

}  // namespace rndn::operators
