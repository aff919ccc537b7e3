// Joins without a key: every pair of rows is a candidate. Also the alternative that the evaluation asks for, and the product of relations.
//
// Candidates are numbered by right row and then left row, so that the order of the numbers is the order of the result. A tile is 8192 of
// them, a warp takes 1024: 32 steps of 32 neighbours. The lanes that pass in step s become a mask that lane s keeps; a sum over the lanes
// and a look-back over the tiles then give every pair its place, and a second walk writes. The result has an assumed capacity, or none
// under a limit of memory: what is beyond it is counted and not written, and the launch is repeated with room for everything.
// Cost O(left * right), in registers and caches. Leaves out: tiles of the left side in shared memory.
#include <algorithm>

#include "libraries/operators/joins/join.h"

namespace rndn::operators {

namespace {

constexpr uint32_t warp_candidates = 1024;
constexpr uint32_t tile_candidates = warp_candidates * block_threads / 32;
constexpr uint64_t most_candidates = uint64_t{1} << 43;

uint32_t build_pair_loop(ptx::Module& module, std::string_view name, const JoinShape& shape) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  SideCode left = side_code(b, "left", shape, shape.left_single);
  SideCode right = side_code(b, "right", shape, shape.right_single);
  const Parameter ticket_at = b.parameter<U64>("ticket"), words_at = b.parameter<U64>("words");
  const Parameter out_left = b.parameter<U64>("out_left"), out_right = b.parameter<U64>("out_right");
  const Parameter room_at = b.parameter<U64>("room"), total_at = b.parameter<U64>("total");
  const ptx::SharedVariable shared = b.shared<U64>(std::string(name) + "_shared", 8, 16);
  const Thread t = thread_of(b);
  left.start(b);
  right.start(b);
  Reg<U64> candidates = b.mul_wide(left.rows, right.rows);
  Reg<U64> tiles = b.shr(b.add(candidates, tile_candidates - 1), 13);
  static_assert(tile_candidates == 1 << 13);
  Reg<U32> before_lane = b.sub(b.shl(b.constant<U32>(1), t.lane), 1);
  Reg<U64> room = b.ld_param(room_at);

  const LabelId next = b.label(), done = b.label();
  b.bind(next);
  Reg<U32> tile = take_tile(b, shared, b.ld_param(ticket_at), t);
  b.when(b.setp(Is::ge, b.cvt<U64>(tile), tiles)).bra_uni(done);
  Reg<U64> first = b.add(b.mul_wide(tile, tile_candidates), b.mul_wide(t.warp, warp_candidates));
  Reg<U64> divisor = b.cvt<U64>(left.rows);
  Reg<U64> first_right = b.div(first, divisor);
  Reg<U32> start_left = b.add(b.cvt<U32>(b.sub(first, b.mul_lo(first_right, divisor))), t.lane);
  // Beyond the last candidate: kept from wrapping around, for every row from `rows` on means the same.
  Reg<U32> start_right = b.cvt<U32>(b.min(first_right, b.cvt<U64>(right.rows)));
  // Walks the warp's candidates; body(step, left row, right row, the pair exists).
  const auto walk = [&](auto&& body) {
    Reg<U32> i = b.mov(start_left), j = b.mov(start_right), step = b.constant<U32>(0);
    const LabelId loop = b.here(), normal = b.label();
    b.when(b.setp(Is::lt, i, left.rows)).bra(normal);
    Reg<U32> whole = b.div(i, left.rows);
    b.add(j, whole, j);
    b.sub(i, b.mul_lo(whole, left.rows), i);
    b.bind(normal);
    body(step, i, j, b.setp(Is::lt, j, right.rows));
    b.add(i, 32, i);
    b.add(step, 1, step);
    b.when(b.setp(Is::lt, step, 32)).bra_uni(loop);
  };
  Reg<U32> kept = b.constant<U32>(0);
  Reg<U32> last_right = b.sub(right.rows, 1);
  walk([&](Reg<U32> step, Reg<U32> i, Reg<U32> j, Reg<Pred> passes) {
    test_residuals(b, shape, left, i, right, b.min(j, last_right), passes);
    Reg<U32> mask = b.ballot(passes);
    b.when(b.setp(Is::eq, step, t.lane)).mov(mask, kept);
  });
  Reg<U32> own = b.popc(kept);
  Reg<U32> inclusive = warp_sum(b, t, own);
  const BlockSum sum = block_sum(b, t, inclusive, block_threads / 32, shared, 16);
  Reg<U64> before = look_back(b, t, tile, sum.total, b.ld_param(words_at), At(shared, 8));
  Reg<U64> tile_end = b.add(before, b.cvt<U64>(sum.total));
  Reg<Pred> last_tile = b.setp(Is::eq, b.add(b.cvt<U64>(tile), 1), tiles);
  Reg<Pred> thread0 = b.setp(Is::eq, t.tid, 0);
  b.and_(last_tile, thread0, last_tile);
  Reg<U64> total = b.ld_param(total_at);
  store_if<U64>(b, last_tile, Space::global, At(total), tile_end);
  Reg<U64> start = b.add(before, b.cvt<U64>(sum.before));
  Reg<U32> positions = b.sub(inclusive, own);
  Reg<U64> left_at = b.ld_param(out_left), right_at = b.ld_param(out_right);
  b.when(b.setp(Is::eq, b.ballot(b.setp(Is::ne, own, 0)), 0)).bra_uni(next);
  walk([&](Reg<U32> step, Reg<U32> i, Reg<U32> j, Reg<Pred>) {
    Reg<U32> mask = b.shfl_sync(ShuffleMode::idx, kept, step, 31);
    Reg<U32> position = b.shfl_sync(ShuffleMode::idx, positions, step, 31);
    Reg<U32> bit = b.and_(b.shr(mask, t.lane), 1);
    b.add(position, b.popc(b.and_(mask, before_lane)), position);
    Reg<U64> place = b.add(start, b.cvt<U64>(position));
    Reg<Pred> writes = b.setp(Is::lt, ptx::Combine::and_, place, room, b.setp(Is::ne, bit, 0));
    Reg<U64> offset = b.shl(place, 3);
    const At to_left(b.add(left_at, offset)), to_right(b.add(right_at, offset));
    Reg<U64> i64 = b.cvt<U64>(i), j64 = b.cvt<U64>(j);
    store_if<U64>(b, writes, Space::global, to_left, i64);
    store_if<U64>(b, writes, Space::global, to_right, j64);
  });
  b.bra(next);
  b.bind(done);
  b.ret();
  b.finish();
  return block_threads;
}

}  // namespace

Result<Pairs> loop_pairs(Library& library, const JoinShape& shape, const Side& left, const Side& right,
                         Memory& memory) {
  const uint64_t l = left.capacity, r = right.capacity;
  if (l > max_rows / 2 || r > max_rows / 2 || (l && r > most_candidates / l))
    return input_error("a join of {} with {} rows that has no equality to go by is too large", l, r);
  const uint64_t tiles = tiles_for(l * r, tile_candidates);
  uint64_t room = std::min(l * r, std::max({l, r, uint64_t{1024}}));
  if (memory.counts_first(8 * room)) room = 0;
  ASSIGN_OR_RETURN(const Kernel* kernel,
                   library.kernel("join_loop_" + shape.name(),
                                  [&](ptx::Module& m, std::string_view name) { return build_pair_loop(m, name, shape); }));
  const uint64_t scratch_bytes = 256 + tiles * 8;
  ASSIGN_OR_RETURN(Address scratch, memory.temporary(scratch_bytes));
  ASSIGN_OR_RETURN(device::Mapped total, memory.mapped(8));
  Pairs out;
  for (;;) {
    ASSIGN_OR_RETURN(out.left.data, memory.result(room * 8));
    ASSIGN_OR_RETURN(out.right.data, memory.result(room * 8));
    RETURN_IF_ERROR(library.device().fill(scratch, 0, scratch_bytes));
    Arguments a;
    add(a, left);
    add(a, right);
    a.add(scratch).add(scratch + 256).add(out.left.data).add(out.right.data).add(room).add(total.address);
    RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, tiles), a));
    RETURN_IF_ERROR(library.wait(memory));
    const uint64_t count = *static_cast<const volatile uint64_t*>(total.host);
    if (count <= room) {
      out.left.capacity = out.right.capacity = count;
      return out;
    }
    room = count;
  }
}

}  // namespace rndn::operators
