// Selection: the rows of a relation that a mask keeps, all columns (16 at a time) in one pass.
//
// A block takes a tile of 4096 rows, writes the numbers of the kept ones to shared memory in order (a ballot per 32 rows, sums over the block), learns
// from a look-back over the earlier tiles where its rows go, and copies column by column: element k of the tile's results is the element at number k.
// Neighbouring threads read neighbours and write neighbours.
// Bytes per row: the mask, every column once, and what is kept of it once.
// Leaves out: results of the kept rows' size (there is one pass, so that room is made for all rows).
#include "libraries/sql/fragments.h"
#include "libraries/sql/operators.h"

namespace rndn::sql {

namespace {

// Tiles are large because the look-back takes some 16 ns per tile on an H200, however large it is.
constexpr uint32_t items = 16, tile_rows = block_threads * items, warps = block_threads / 32;
constexpr int64_t sums_at = 16, numbers_at = 64;  // in shared memory
constexpr size_t most_columns = 16;               // of a launch; the mask is read again for the next ones
constexpr uint32_t unroll = 4;                    // elements of a column that a thread copies at once

uint32_t build_select(ptx::Module& module, std::string_view name, std::span<const uint32_t> widths) {
  Builder b(module, std::string(name));
  b.set_block_size(block_threads);
  const Parameter n_at = b.parameter<U64>("n"), mask_at = b.parameter<U64>("mask");
  const Parameter ticket_at = b.parameter<U64>("ticket"), words_at = b.parameter<U64>("words");
  const Parameter total_at = b.parameter<U64>("total");
  std::vector<Parameter> from_at, to_at;
  for (size_t c = 0; c < widths.size(); ++c) {
    from_at.push_back(b.parameter<U64>("from" + std::to_string(c)));
    to_at.push_back(b.parameter<U64>("to" + std::to_string(c)));
  }
  const ptx::SharedVariable shared = b.shared<U64>(std::string(name) + "_shared", (numbers_at + 2 * tile_rows) / 8, 16);
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(n_at)), tiles = tiles_of(b, n, tile_rows);
  Reg<U64> mask = b.ld_param(mask_at), total_to = b.ld_param(total_at);
  Reg<U32> numbers = b.address_of_32(shared, numbers_at);
  Reg<U32> within = b.mad_lo(t.warp, 32 * items, t.lane);
  const LabelId next = b.label(), done = b.label();
  b.bind(next);
  Reg<U32> tile = take_tile(b, shared, b.ld_param(ticket_at), t);
  b.when(b.setp(Is::ge, tile, tiles)).bra(done);
  Reg<U32> first = b.mul_lo(tile, tile_rows), row = b.add(first, within);
  std::vector<Reg<U16>> flags;
  for (uint32_t k = 0; k < items; ++k) {
    Reg<U32> at = b.add(row, 32 * k);
    flags.push_back(b.constant<U16>(0));
    const At flag_at = element_at(b, mask, at, 1);
    load_if<U8>(b, b.setp(Is::lt, at, n), Space::global, flag_at, flags[k], {.cache = ptx::Cache::nc});
  }
  std::vector<Reg<U32>> kept;
  for (uint32_t k = 0; k < items; ++k) kept.push_back(b.ballot(b.setp(Is::ne, b.cvt<U32>(flags[k]), 0)));
  const BlockSum sum = count_kept(b, t, kept, warps, shared, sums_at);
  for_kept(b, t, kept, sum.before, [&](size_t k, Reg<U32> position, Reg<Pred> writes) {
    const At to(b.add(numbers, b.shl(position, 1)));
    Reg<U16> number = b.cvt<U16>(b.add(within, static_cast<uint32_t>(32 * k)));
    store_if<U16>(b, writes, Space::shared, to, number);
  });
  Reg<U64> before = look_back(b, t, tile, tiles, sum.total, b.ld_param(words_at), total_to, At(shared, 8));
  std::vector<Reg<U64>> from, to;
  for (size_t c = 0; c < widths.size(); ++c) {
    from.push_back(element_address(b, b.ld_param(from_at[c]), first, widths[c]));
    to.push_back(b.mad_lo(before, b.constant<U64>(widths[c]), b.ld_param(to_at[c])));
  }
  Reg<U32> k = b.mov(t.tid);
  const LabelId copy = b.label(), copied = b.label();
  b.bind(copy);
  b.when(b.setp(Is::ge, k, sum.total)).bra(copied);
  std::vector<Reg<U32>> at, number;
  std::vector<Reg<Pred>> exists;
  for (uint32_t u = 0; u < unroll; ++u) {
    at.push_back(b.add(k, u * block_threads));
    exists.push_back(b.setp(Is::lt, at[u], sum.total));
    Reg<U16> read = b.constant<U16>(0);
    const At number_at(b.add(numbers, b.shl(at[u], 1)));
    load_if<U16>(b, exists[u], Space::shared, number_at, read);
    number.push_back(b.cvt<U32>(read));
  }
  for (size_t c = 0; c < widths.size(); ++c) {
    with_width(widths[c], [&]<class T>() {
      std::vector<Reg<ptx::RegisterTag<T>>> values;
      for (uint32_t u = 0; u < unroll; ++u) {
        const At element = element_at(b, from[c], number[u], widths[c]);
        values.push_back(b.template constant<ptx::RegisterTag<T>>(0));
        load_if<T>(b, exists[u], Space::global, element, values[u], {.cache = ptx::Cache::nc});
      }
      for (uint32_t u = 0; u < unroll; ++u) {
        const At element = element_at(b, to[c], at[u], widths[c]);
        store_if<T>(b, exists[u], Space::global, element, values[u]);
      }
    });
  }
  b.add(k, unroll * block_threads, k);
  b.bra(copy);
  b.bind(copied);
  b.bra(next);
  b.bind(done);
  b.ret();
  b.finish();
  return block_threads;
}

}  // namespace

Result<Relation> select(Library& library, const Relation& relation, const Vector& mask, Memory& memory) {
  ASSIGN_OR_RETURN(Relation out, exact(library, relation));
  ASSIGN_OR_RETURN(const Relation m, exact(library, {mask}));
  const uint64_t n = out[0].capacity;
  if (mask.type != Type::u8 || m[0].capacity != n)
    return input_error("select expects a bool for each of {} rows, got {} of {}", n, type_name(mask.type),
                       m[0].capacity);
  const uint64_t tiles = tiles_for(n, tile_rows), zero_bytes = 256 + tiles * 8;
  ASSIGN_OR_RETURN(device::Mapped total, memory.mapped(8));
  for (size_t first = 0; first < out.size(); first += most_columns) {
    std::vector<uint32_t> widths;
    std::string name = "relation_select";
    std::vector<Address> from_to;
    uint64_t row_bytes = 0;
    for (Vector& v : std::span(out).subspan(first, std::min(most_columns, out.size() - first))) {
      widths.push_back(width(v.type));
      row_bytes += widths.back();
      name += fmt::format("_{}", widths.back());
      from_to.push_back(v.data);
      ASSIGN_OR_RETURN(v.data, memory.result(n * widths.back()));
      from_to.push_back(v.data);
    }
    if (n == 0) continue;
    ASSIGN_OR_RETURN(Address zeroed, memory.temporary(zero_bytes));
    RETURN_IF_ERROR(library.device().fill(zeroed, 0, zero_bytes));
    Arguments a;
    a.add(n).add(m[0].data).add(zeroed).add(zeroed + 256).add(total.address);
    for (Address at : from_to) a.add(at);
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(name, [&](ptx::Module& module, std::string_view called) {
      return build_select(module, called, widths);
    }));
    RETURN_IF_ERROR(library.launch(*kernel, library.grid(*kernel, tiles), a, n * (1 + row_bytes)));
  }
  if (n == 0) return out;
  RETURN_IF_ERROR(library.device().synchronize());
  for (Vector& v : out) v.capacity = *static_cast<const volatile uint64_t*>(total.host);
  return out;
}

}  // namespace rndn::sql
