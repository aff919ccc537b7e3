// Lists from the lengths of their cells: where the cells lie, and in which cell an element lies.
//
// offsets       the running sum of the lengths behind a zero: one pass, a tile of lengths per block, with
//               look-back between tiles (emit.h)
// cell_numbers  the segments of a flat vector as a number per element (Blelloch, "Vector Models for
//               Data-Parallel Computing", 1990, 4.3). A block takes tiles of `tile` elements: it
//               finds the cells of the first and of the last of them by binary search, which are
//               loads that all lanes share, and every element searches between these two.
// Costs: a length is read once, an offset written once; an element is written once, after log2(cells
// of its tile) loads that hit the cache.
// Leaves out: that the lengths are not negative, which the caller knows.
#include "libraries/operators/fragments.h"
#include "libraries/operators/groups/accumulate.h"
#include "libraries/operators/operators.h"

namespace rndn::operators {

namespace {

constexpr uint32_t cells_items = 8, tile = block_threads * cells_items;

// Moves `low` to the last cell below `high` that begins at `position` or before; low's does.
void find_cell(Builder& b, Reg<U64> offsets, Reg<U64> position, Reg<U32> low, Reg<U32> high) {
  const LabelId again = b.label(), found = b.label();
  Reg<U32> from = b.add(low, 1);
  b.bind(again);
  b.when(b.setp(Is::ge, from, high)).bra(found);
  Reg<U32> middle = b.add(from, b.shr(b.sub(high, from), 1));
  Reg<Pred> begins = b.setp(Is::le, b.ld_nc<U64>(element_at(b, offsets, middle, 8)), position);
  Reg<U32> next = b.add(middle, 1);
  b.when(begins).mov(middle, low);
  b.when(begins).mov(next, from);
  b.unless(begins).mov(middle, high);
  b.bra(again);
  b.bind(found);
}

uint32_t build_cells_numbers(ptx::Module& module, std::string_view name, bool wide) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter offsets_at = b.parameter<U64>("offsets");
  const Parameter cells_at = b.parameter<U64>("cells"), cells_slot = b.parameter<U64>("cells_slot");
  const Parameter rows_at = b.parameter<U64>("rows"), rows_slot = b.parameter<U64>("rows_slot");
  const Parameter out_at = b.parameter<U64>("out"), out_slot_at = b.parameter<U64>("out_slot");
  const Thread t = thread_of(b);
  Reg<U32> cells = rows_of(b, cells_slot, cells_at), rows = rows_of(b, rows_slot, rows_at);
  Reg<U64> offsets = b.ld_param(offsets_at), out = b.ld_param(out_at);
  Reg<U64> out_slot = b.ld_param(out_slot_at);
  Reg<U32> block = b.special(ptx::SpecialRegister::ctaid_x);
  Reg<Pred> tells =
      b.setp(Is::eq, ptx::Combine::and_, b.or_(block, t.tid), 0u, b.setp(Is::ne, out_slot, 0));
  store_if<U64>(b, tells, Space::global, At(out_slot), b.cvt<U64>(rows));
  Reg<U32> last_row = b.sub(rows, 1);
  for_tiles(b, tiles_of(b, rows, tile), [&](Reg<U32> number) {
    Reg<U32> begin = b.mul_lo(number, tile);
    Reg<U32> end = b.add(begin, b.min(b.sub(last_row, begin), tile - 1));
    Reg<U32> first = b.constant<U32>(0);
    find_cell(b, offsets, b.cvt<U64>(begin), first, b.mov(cells));
    Reg<U32> last = b.mov(first);
    find_cell(b, offsets, b.cvt<U64>(end), last, b.mov(cells));
    Reg<U32> limit = b.add(last, 1), offset = b.mov(t.tid);
    Reg<U32> left = b.sub(end, begin);
    const LabelId next = b.label(), done = b.label();
    b.bind(next);
    b.when(b.setp(Is::gt, offset, left)).bra(done);
    Reg<U32> row = b.add(begin, offset), cell = b.mov(first);
    find_cell(b, offsets, b.cvt<U64>(row), cell, b.mov(limit));
    if (wide)
      b.st<U64>(Space::global, element_at(b, out, row, 8), b.cvt<U64>(cell));
    else
      b.st<U32>(Space::global, element_at(b, out, row, 4), cell);
    b.add(offset, block_threads, offset);
    b.bra(next);
    b.bind(done);
  });
  b.ret();
  b.finish();
  return block_threads;
}

constexpr uint32_t lengths_per_thread = 16, cells_warps = block_threads / 32;
constexpr uint32_t lengths_tile = block_threads * lengths_per_thread;
constexpr uint64_t cells_ticket_at = 4096 + 1280;  // in Library::zeroed
constexpr int64_t cells_before_at = 8, cells_sums_at = 16;  // in shared memory, behind the ticket

// single: there is one tile, and nothing to look back to.
uint32_t build_offsets(ptx::Module& module, std::string_view name, Type type, bool single) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter lengths_at = b.parameter<U64>("lengths"), n_at = b.parameter<U64>("n");
  const Parameter slot_at = b.parameter<U64>("slot"), tiles_at = b.parameter<U64>("tiles");
  const Parameter words_at = b.parameter<U64>("words"), tickets_at = b.parameter<U64>("tickets");
  const Parameter out_at = b.parameter<U64>("out");
  auto shared = b.shared<U64>(std::string(name) + "_shared", 2 + cells_warps, 16);
  const Thread t = thread_of(b);
  Reg<U32> tile = b.constant<U32>(0);
  if (!single) {
    Reg<U32> tiles = b.cvt<U32>(b.ld_param(tiles_at));
    tile = take_ticket(b, t, b.ld_param(tickets_at), tiles, At(shared));
  }
  Reg<U32> n = rows_of(b, slot_at, n_at), last = b.sub(b.max(n, 1u), 1);
  Reg<U64> lengths = b.ld_param(lengths_at), out = b.ld_param(out_at);
  Reg<Pred> begins = b.setp(Is::eq, b.or_(tile, t.tid), 0u);
  store_if<U64>(b, begins, Space::global, At(out), b.constant<U64>(0));
  const LabelId done = b.label();
  b.when(b.setp(Is::eq, n, 0u)).bra_uni(done);
  Reg<U32> of_warp = b.mad_lo(t.warp, 32 * lengths_per_thread, t.lane);
  std::vector<Reg<U32>> rows;
  std::vector<Reg<Pred>> exists;
  std::vector<Reg<U64>> sums;
  for (uint32_t k = 0; k < lengths_per_thread; ++k) {
    rows.push_back(b.add(b.mad_lo(tile, lengths_tile, of_warp), 32 * k));
    exists.push_back(b.setp(Is::lt, rows[k], n));
    const At at = element_at(b, lengths, b.min(rows[k], last), width(type));
    Reg<S64> x = held_element<S64>(b, load_element(b, type, at));
    sums.push_back(b.selp(Builder::as<U64>(x), b.constant<U64>(0), exists[k]));
  }
  Reg<U64> total = b.constant<U64>(0), before = b.constant<U64>(0);
  for (Reg<U64>& sum : sums) {  // of the warp, up to here
    sum = b.add(warp_sum(b, t, sum), total);
    total = b.shfl_sync_64(ShuffleMode::idx, sum, 31u, 31u);
  }
  Reg<U32> own = b.add(b.address_of_32(shared, cells_sums_at), b.shl(t.warp, 3u));
  store_if<U64>(b, b.setp(Is::eq, t.lane, 31u), Space::shared, At(own), total);
  b.bar_sync();
  Reg<U64> of_tile = b.constant<U64>(0);
  for (uint32_t w = 0; w < cells_warps; ++w) {
    Reg<U64> of_other = b.ld<U64>(Space::shared, At(shared, cells_sums_at + 8 * w));
    b.when(b.setp(Is::gt, t.warp, w)).add(before, of_other, before);
    b.add(of_tile, of_other, of_tile);
  }
  if (!single) {
    const At place(shared, cells_before_at);
    before = b.add(before, look_back(b, t, tile, of_tile, b.ld_param(words_at), place));
  }
  for (uint32_t k = 0; k < lengths_per_thread; ++k) {
    Reg<U64> to = element_address(b, out, rows[k], 8);
    store_if<U64>(b, exists[k], Space::global, At(to, 8), b.add(before, sums[k]));
  }
  b.bind(done);
  b.ret();
  b.finish();
  return block_threads;
}

}  // namespace

Result<Vector> offsets(Library& library, const Vector& lengths, Memory& memory) {
  RETURN_IF_ERROR(check_rows({&lengths, 1}));
  Vector out{.type = Type::i64, .capacity = lengths.capacity + 1};
  ASSIGN_OR_RETURN(out.data, memory.result(8 * out.capacity));
  if (lengths.capacity == 0) {
    RETURN_IF_ERROR(library.device().fill(out.data, 0, 8));
    return out;
  }
  const uint64_t tiles = tiles_for(lengths.capacity, lengths_tile);
  const bool single = tiles == 1;
  Address words = 0, zeroed = 0;
  if (!single) {
    ASSIGN_OR_RETURN(words, memory.temporary(8 * tiles));
    RETURN_IF_ERROR(library.device().fill(words, 0, 8 * tiles));
    ASSIGN_OR_RETURN(zeroed, library.zeroed());
  }
  const Type type = lengths.type;
  const std::string name =
      fmt::format("cell_offsets_{}{}", type_name(type), single ? "_single" : "");
  ASSIGN_OR_RETURN(const Kernel* kernel,
                   library.kernel(name, [&](ptx::Module& to, std::string_view n) {
                     return build_offsets(to, n, type, single);
                   }));
  Arguments a;
  a.add(lengths.data).add(lengths.capacity).add(lengths.size_slot).add(tiles).add(words);
  a.add(zeroed + cells_ticket_at).add(out.data);
  RETURN_IF_ERROR(library.launch(*kernel, static_cast<uint32_t>(tiles), a,
                                 lengths.capacity * (width(type) + 8)));
  return out;
}

Result<Vector> cell_numbers(Library& library, const Vector& lengths, const Vector& offsets,
                            const Vector* like, Memory& memory) {
  Vector out{.capacity = like ? like->capacity : 0};
  if (!like) {  // how many elements there are
    uint64_t cells = lengths.capacity;
    RETURN_IF_ERROR(library.wait(memory));
    if (lengths.size_slot)
      RETURN_IF_ERROR(library.device().copy_to_host(&cells, lengths.size_slot, 8));
    RETURN_IF_ERROR(library.device().copy_to_host(&out.capacity, offsets.data + 8 * cells, 8));
    if (out.capacity > max_rows)
      return input_error(
          "the cells of a list have {} elements together, and at most {} are possible",
          out.capacity, max_rows);
  }
  const bool wide = lengths.capacity > INT32_MAX;
  out.type = wide ? Type::i64 : Type::i32;
  out.min = 0;
  out.max = static_cast<int64_t>(std::max<uint64_t>(1, lengths.capacity)) - 1;
  out.ascending = true;
  ASSIGN_OR_RETURN(out.data, memory.result(std::max<uint64_t>(1, out.capacity) * width(out.type)));
  if (like && like->size_slot) {
    ASSIGN_OR_RETURN(out.size_slot, memory.result(8));
  }
  if (out.capacity == 0) return out;
  ASSIGN_OR_RETURN(const Kernel* kernel,
                   library.kernel(wide ? "cell_numbers64" : "cell_numbers",
                                  [wide](ptx::Module& to, std::string_view n) {
                                    return build_cells_numbers(to, n, wide);
                                  }));
  Arguments a;
  a.add(offsets.data).add(lengths.capacity).add(lengths.size_slot);
  a.add(out.capacity).add(like ? like->size_slot : 0).add(out.data).add(out.size_slot);
  RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, tiles_for(out.capacity, tile)), a,
                                 out.capacity * width(out.type) + lengths.capacity * 8));
  return out;
}

}  // namespace rndn::operators
