// Lists from the lengths of their cells: where the cells lie, and in which cell an element lies.
//
// offsets       the running sum of the lengths (scan.cpp) behind a zero
// cell_numbers  the segments of a flat vector as a number per element (Blelloch, "Vector Models for
//               Data-Parallel Computing", 1990, 4.3). A block takes tiles of `tile` elements: it
//               finds the cells of the first and of the last of them by binary search, which are
//               loads that all lanes share, and every element searches between these two.
// Costs: lengths are read twice; an element is written once, after log2(cells of its tile) loads
// that hit the cache.
// Leaves out: that the lengths are not negative, which the caller knows.
#include "libraries/operators/fragments.h"
#include "libraries/operators/operators.h"

namespace rndn::operators {

namespace {

constexpr uint32_t items = 8, tile = block_threads * items;

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

uint32_t build_numbers(ptx::Module& module, std::string_view name, bool wide) {
  Builder b(module, std::string(name));
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

}  // namespace

Result<Vector> offsets(Library& library, const Vector& lengths, Memory& memory) {
  RETURN_IF_ERROR(check_rows({&lengths, 1}));
  Vector starts{
      .type = Type::u8, .data = 0, .size_slot = lengths.size_slot, .capacity = lengths.capacity};
  ASSIGN_OR_RETURN(starts.data, memory.temporary(std::max<uint64_t>(1, lengths.capacity)));
  RETURN_IF_ERROR(library.device().fill(starts.data, 0, std::max<uint64_t>(1, lengths.capacity)));
  Vector out{.type = Type::i64, .capacity = lengths.capacity + 1};
  ASSIGN_OR_RETURN(out.data, memory.result(8 * out.capacity));
  RETURN_IF_ERROR(library.device().fill(out.data, 0, 8));
  const Vector sums{.type = Type::i64, .data = out.data + 8, .capacity = lengths.capacity};
  RETURN_IF_ERROR(scan_sums(library, lengths, starts, sums, memory));
  return out;
}

Result<Vector> cell_numbers(Library& library, const Vector& lengths, const Vector* like,
                            Memory& memory) {
  ASSIGN_OR_RETURN(const Vector ends, offsets(library, lengths, memory));
  Vector out{.capacity = like ? like->capacity : 0};
  if (!like) {  // how many elements there are
    uint64_t cells = lengths.capacity;
    RETURN_IF_ERROR(library.device().synchronize());
    if (lengths.size_slot)
      RETURN_IF_ERROR(library.device().copy_to_host(&cells, lengths.size_slot, 8));
    RETURN_IF_ERROR(library.device().copy_to_host(&out.capacity, ends.data + 8 * cells, 8));
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
                                    return build_numbers(to, n, wide);
                                  }));
  Arguments a;
  a.add(ends.data).add(lengths.capacity).add(lengths.size_slot);
  a.add(out.capacity).add(like ? like->size_slot : 0).add(out.data).add(out.size_slot);
  RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, tiles_for(out.capacity, tile)), a,
                                 out.capacity * width(out.type) + lengths.capacity * 8));
  return out;
}

}  // namespace rndn::operators
