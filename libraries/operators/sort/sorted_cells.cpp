// unique_cells: unique of (number of the cell, value) (operators/api.h); then one kernel turns rows into positions in their cells, by bisection
// of the cells' offsets, and finds where the cells of the result begin, by bisection of the rows.
#include "libraries/operators/emit.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"
#include "libraries/operators/groups/runs.h"
#include "libraries/operators/sort/small_sort.h"

namespace rndn::operators {

namespace {

constexpr uint32_t cell_block = 256;

// thread j: positions[j] = rows[j] - begin of its cell; begins[c] = how many rows lie before offsets[c], for all count + 1 of them.
uint32_t build_positions(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  Param p_rows = b.parameter<U64>("rows"), p_found = b.parameter<U64>("found"),
        p_positions = b.parameter<U64>("positions"), p_offsets = b.parameter<U64>("offsets"),
        p_cells = b.parameter<U64>("cells"), p_begins = b.parameter<U64>("begins");
  b.set_block_size(cell_block);
  const Thread t = thread_of(b);
  Reg<U32> ctaid = b.special(ptx::SpecialRegister::ctaid_x), nctaid = b.special(ptx::SpecialRegister::nctaid_x);
  Reg<U64> rows = b.ld_param(p_rows), found = b.ld_param(p_found), offsets = b.ld_param(p_offsets),
           cells = b.ld_param(p_cells);
  Reg<U64> first = b.mad_wide(ctaid, cell_block, b.cvt<U64>(t.tid)), step = b.mul_wide(nctaid, cell_block);
  // How many of `size` ascending numbers compare with the limit as asked: the first so many do.
  const auto count_up_to = [&](Reg<U64> data, Reg<U64> size, Reg<U64> limit, Is compare) {
    Reg<U64> low = b.constant<U64>(0), length = b.mov(size);
    const ptx::LabelId loop = b.label(), done = b.label();
    b.bind(loop);
    b.when(b.setp(Is::eq, length, 0)).bra(done);
    Reg<U64> half = b.shr(length, 1u);
    Reg<U64> middle = b.add(low, half);
    Reg<U64> x = b.ld<U64>(Space::global, At(b.add(data, b.shl(middle, 3u))));
    Reg<Pred> take = b.setp(compare, x, limit);
    Reg<U64> rest = b.sub(b.sub(length, half), 1);
    b.when(take).add(middle, 1, low);
    b.selp(rest, half, take, length);
    b.bra(loop);
    b.bind(done);
    return low;
  };
  {
    const ptx::LabelId loop = b.label(), done = b.label();
    Reg<U64> j = b.mov(first);
    b.bind(loop);
    b.when(b.setp(Is::ge, j, found)).bra(done);
    Reg<U64> byte = b.shl(j, 3u);
    Reg<U64> row = b.ld<U64>(Space::global, At(b.add(rows, byte)));
    Reg<U64> behind =
        count_up_to(offsets, cells, row, Is::le);  // of the cells that begin at the row or before it, the last
    Reg<U64> begin = b.ld<U64>(Space::global, At(b.add(offsets, b.shl(behind, 3u)), -8));
    b.st<U64>(Space::global, At(b.add(b.ld_param(p_positions), byte)), b.sub(row, begin));
    b.add(j, step, j);
    b.bra(loop);
    b.bind(done);
  }
  {
    const ptx::LabelId loop = b.label(), done = b.label();
    Reg<U64> c = b.mov(first);
    b.bind(loop);
    b.when(b.setp(Is::gt, c, cells)).bra(done);
    Reg<U64> byte = b.shl(c, 3u);
    Reg<U64> begin = b.ld<U64>(Space::global, At(b.add(offsets, byte)));
    Reg<U64> before = count_up_to(rows, found, begin, Is::lt);
    b.st<U64>(Space::global, At(b.add(b.ld_param(p_begins), byte)), before);
    b.add(c, step, c);
    b.bra(loop);
    b.bind(done);
  }
  b.ret();
  b.finish();
  return cell_block;
}

}  // namespace

void add_sorted_cells(KernelRows& rows) { rows.push_back({"cell_positions", build_positions}); }

Result<Cells> unique_cells(Library& library, const Cells& cells, Memory& memory) {
  const uint64_t n = cells.elements.capacity;
  RETURN_IF_ERROR(check_rows({n, 0}));
  RETURN_IF_ERROR(check_rows({cells.count, 0}));
  Cells out{.count = cells.count};
  out.elements.type = Type::i64;
  ASSIGN_OR_RETURN(out.offsets, memory.result(8 * (cells.count + 1)));
  if (n == 0) {
    ASSIGN_OR_RETURN(out.elements.data, memory.result(8));
    RETURN_IF_ERROR(library.device().fill(out.offsets, 0, 8 * (cells.count + 1)));
    return out;
  }
  Part cell{.source = Source::cell, .data = cells.offsets, .extra = cells.count, .low = 0, .high = cells.count - 1};
  std::vector<Part> parts{cell, make_part(cells.elements, true)};
  Scratch scratch(memory);
  Address rows = 0;
  uint64_t found = 0;
  if (n <= small_rows) {
    uint64_t room = n;
    if (memory.counts_first(8 * n)) {
      ASSIGN_OR_RETURN(const SmallCount counted, count_small(library, {n, 0}, parts, memory));
      room = counted.groups;
    }
    ASSIGN_OR_RETURN(rows, memory.temporary(8 * room));
    ASSIGN_OR_RETURN(const Question question, library.ask("small_sort", 2, memory));
    RETURN_IF_ERROR(sort_small(library, Small::unique, {n, 0}, parts, {.first = rows, .question = &question}));
    ASSIGN_OR_RETURN(const uint64_t* words, library.learn(question, memory));
    found = words[1];
  } else {
    RETURN_IF_ERROR(find_bounds(library, {n, 0}, parts, memory));
    ASSIGN_OR_RETURN(Sorted sorted, sort_rows(library, pack_words(parts), n, true, run_words(n), scratch));
    ASSIGN_OR_RETURN(const Places first, first_rows(library, sorted, parts, n, scratch));
    rows = first.data, found = first.count;
  }
  ASSIGN_OR_RETURN(out.elements.data, memory.result(8 * found));
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel("cell_positions", build_positions));
  Arguments a;
  a.add(rows).add(found).add(out.elements.data).add(cells.offsets).add(cells.count).add(out.offsets);
  const uint64_t work = std::max(found, cells.count + 1);
  RETURN_IF_ERROR(
      library.launch(*kernel, library.grid(*kernel, (work + cell_block - 1) / cell_block), a, 16 * found + 16 * cells.count));
  out.elements.capacity = found;
  out.elements.min = 0, out.elements.max = static_cast<int64_t>(n) - 1;
  return out;
}

}  // namespace rndn::operators
