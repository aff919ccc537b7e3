// Groups that a kernel folded into tables of hashed keys (ptx/codegen/sink_hash.cpp), in the order
// of their keys.
//
// collect  the slots of the last table that are taken are numbered in order (look-back, emit.h),
//          and the words of their keys are read through the tables before it
// then the order of the keys: they are few beside the rows that were folded, and all differ, so
// that the order does not depend on which slots they took
// take     every column's entries, in that order
// In: the tables, and the columns of accumulators beside the last of them. Out: the columns, an
// element per group. One wait, for the number of groups and whether the tables were large enough;
// or none, where these are few and told by a report.
// Cost: the last table once, then by the number of groups.
#include "libraries/base/errors/check.h"
#include "libraries/operators/emit.h"
#include "libraries/operators/fragments.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

namespace {

constexpr uint32_t folded_block = 256, folded_warps = folded_block / 32, folded_items = 4, tile_slots = folded_block * folded_items;
constexpr uint64_t folded_ticket_at = 4096 + 1024;  // in Library::zeroed
constexpr size_t most_words = 8;
constexpr uint32_t fits = UINT32_MAX;
constexpr uint64_t free_slot = UINT64_MAX, sign = uint64_t{1} << 63;

Reg<U64> table_at(Builder& b, Reg<U64> tables, Reg<U64> slots, size_t number) {
  return number ? b.mad_lo(slots, uint64_t{8} * number, tables) : tables;
}

uint32_t build_collect(ptx::Module& module, std::string_view name, size_t words) {
  KernelBuilder b(module, name);
  Param p_slots = b.parameter<U64>("slots"), p_tiles = b.parameter<U64>("tiles"),
        p_tables = b.parameter<U64>("tables"), p_counts = b.parameter<U64>("counts"),
        p_ticket = b.parameter<U64>("ticket"), p_state = b.parameter<U64>("state"),
        p_found = b.parameter<U64>("found"), p_size = b.parameter<U64>("size"),
        p_out = b.parameter<U64>("out");
  std::vector<Param> p_keys, p_flips;
  for (size_t w = 0; w < words; ++w) {
    p_keys.push_back(b.parameter<U64>("keys" + std::to_string(w)));
    p_flips.push_back(b.parameter<U64>("flip" + std::to_string(w)));
  }
  b.set_block_size(folded_block);
  auto shared = b.shared<U64>(std::string(name) + "_shared", 2 + folded_warps / 2, 16);
  const Thread t = thread_of(b);
  Reg<U32> tile =
      take_ticket(b, t, b.ld_param(p_ticket), b.cvt<U32>(b.ld_param(p_tiles)), At(shared));
  Reg<U64> slots = b.ld_param(p_slots), tables = b.ld_param(p_tables),
           start = b.mul_wide(tile, tile_slots);
  Reg<U32> left = b.cvt<U32>(b.min(b.sub(slots, start), uint64_t{tile_slots}));
  Reg<U32> within = b.mad_lo(t.warp, 32 * folded_items, t.lane), first = b.add(b.cvt<U32>(start), within);
  Reg<U64> last = table_at(b, tables, slots, 2 * words - 2);
  std::vector<Reg<U64>> key(folded_items);
  std::vector<Reg<U32>> taken;
  for (uint32_t i = 0; i < folded_items; ++i) {
    key[i] = b.constant<U64>(free_slot);
    load_if<U64>(b, b.setp(Is::lt, b.add(within, 32 * i), left), Space::global,
                 At(element_address(b, last, b.add(first, 32 * i), 8)), key[i]);
  }
  for (uint32_t i = 0; i < folded_items; ++i) taken.push_back(b.ballot(b.setp(Is::ne, key[i], free_slot)));
  const BlockSum sum = count_kept(b, t, taken, folded_warps, shared, 16);
  Reg<U64> before = look_back(b, t, tile, sum.total, b.ld_param(p_counts), At(shared, 8));
  Reg<U64> out = b.ld_param(p_out);
  for_kept(b, t, taken, b.add(b.cvt<U32>(before), sum.before),
           [&](size_t i, Reg<U32> place, Reg<Pred> writes) {
             store_if<U32>(b, writes, Space::global, At(element_address(b, out, place, 4)),
                           b.add(first, 32 * static_cast<uint32_t>(i)));
             // From the last word back: a pair is {slot of what is before it, slot of the word}.
             Reg<U64> pair = key[i];
             for (size_t w = words; w-- > 0;) {
               Reg<U64> word = pair;
               if (w > 0) {
                 auto [earlier, own] = b.unpack(pair);
                 word = b.constant<U64>(0);
                 load_if<U64>(b, writes, Space::global,
                              At(element_address(b, table_at(b, tables, slots, w), own, 8)), word);
                 pair = b.constant<U64>(0);
                 const size_t table = w == 1 ? 0 : words + w - 2;
                 load_if<U64>(b, writes, Space::global,
                              At(element_address(b, table_at(b, tables, slots, table), earlier, 8)),
                              pair);
               }
               store_if<U64>(b, writes, Space::global,
                             At(element_address(b, b.ld_param(p_keys[w]), place, 8)),
                             b.xor_(word, b.ld_param(p_flips[w])));
             }
           });
  Reg<Pred> is_last = b.setp(Is::eq, b.add(tile, 1u), b.cvt<U32>(b.ld_param(p_tiles)));
  Reg<Pred> reports = b.setp(Is::eq, ptx::Combine::and_, t.tid, 0u, is_last);
  Reg<U64> found = b.ld_param(p_found), state = b.ld_param(p_state), size = b.ld_param(p_size);
  Reg<U32> said = b.constant<U32>(0u);
  load_if<U32>(b, reports, Space::global, At(state), said);
  Reg<U64> groups = b.add(before, b.cvt<U64>(sum.total));
  store_if<U64>(b, reports, Space::global, At(found), groups);
  store_if<U64>(b, reports, Space::global, At(size), groups);
  store_if<U64>(b, reports, Space::global, At(found, 8), b.cvt<U64>(said));
  b.ret();
  b.finish();
  return folded_block;
}

// Column c: to[k] = from[slots[order[k]]] xor flip, for as many k as *size says.
uint32_t build_take(ptx::Module& module, std::string_view name,
                    std::span<const FoldedColumn> columns) {
  KernelBuilder b(module, name);
  Param p_size = b.parameter<U64>("size"), p_slots = b.parameter<U64>("slots"),
        p_order = b.parameter<U64>("order");
  std::vector<Param> p_from, p_to;
  for (size_t c = 0; c < columns.size(); ++c) {
    p_from.push_back(b.parameter<U64>("from" + std::to_string(c)));
    p_to.push_back(b.parameter<U64>("to" + std::to_string(c)));
  }
  b.set_block_size(folded_block);
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld<U64>(Space::global, At(b.ld_param(p_size))));
  for_tiles(b, tiles_of(b, n, folded_block), [&](Reg<U32> tile) {
    const LabelId skip = b.label();
    Reg<U32> k = b.mad_lo(tile, folded_block, t.tid);
    b.when(b.setp(Is::ge, k, n)).bra(skip);
    Reg<U32> place =
        b.cvt<U32>(b.ld<U64>(Space::global, At(element_address(b, b.ld_param(p_order), k, 8))));
    Reg<U32> slot = b.ld<U32>(Space::global, At(element_address(b, b.ld_param(p_slots), place, 4)));
    for (size_t c = 0; c < columns.size(); ++c) {
      const FoldedColumn& column = columns[c];
      const At from(element_address(b, b.ld_param(p_from[c]), slot, column.bytes));
      const At to(element_address(b, b.ld_param(p_to[c]), k, column.bytes));
      if (column.bytes == 4) {
        Reg<U32> x = b.ld<U32>(Space::global, from);
        b.st<U32>(Space::global, to, column.flip ? b.xor_(x, 1u << 31) : x);
      } else {
        Reg<U64> x = b.ld<U64>(Space::global, from);
        b.st<U64>(Space::global, to, column.flip ? b.xor_(x, sign) : x);
      }
    }
    b.bind(skip);
  });
  b.ret();
  b.finish();
  return folded_block;
}

Library::Row collect_kernel(size_t words) {
  return {fmt::format("fold_collect{}", words),
          [words](ptx::Module& m, std::string_view entry) { return build_collect(m, entry, words); }};
}
Library::Row take_kernel(const std::vector<FoldedColumn>& columns) {
  std::string name = "fold_take_";
  for (const FoldedColumn& c : columns) name += c.flip ? (c.bytes == 4 ? 'x' : 'y') : (c.bytes == 4 ? '4' : '8');
  return {std::move(name),
          [columns](ptx::Module& m, std::string_view entry) { return build_take(m, entry, columns); }};
}

}  // namespace

// Of up to three words, and of up to three sums or counts.
void add_folded_groups(KernelRows& rows) {
  for (size_t count = 1; count <= 3; ++count)
    rows.insert(rows.end(), {collect_kernel(count), take_kernel(std::vector<FoldedColumn>(count))});
}

Result<FoldedGroups> folded_groups(Library& library, const Folded& from, Memory& memory) {
  const size_t words = from.greatest.size();
  CHECK(words > 0 && words <= most_words);
  CHECK(!from.report || from.slots <= Folded::most_unwaited);
  ASSIGN_OR_RETURN(const Kernel* collect, library.kernel(collect_kernel(words)));
  ASSIGN_OR_RETURN(Address zeroed, library.zeroed());
  const uint64_t tiles = tiles_for(from.slots, tile_slots);
  ASSIGN_OR_RETURN(const Address counts, memory.temporary(8 * tiles));
  RETURN_IF_ERROR(library.device().fill(counts, 0, 8 * tiles));
  ASSIGN_OR_RETURN(const Address slots, memory.temporary(4 * from.slots));
  ASSIGN_OR_RETURN(const Address size, memory.result(8));
  device::Mapped found{.host = nullptr, .address = from.report};
  if (!from.report) {
    ASSIGN_OR_RETURN(found, memory.mapped(16));
  }
  Arguments a;
  a.add(from.slots).add(tiles).add(from.tables).add(counts).add(zeroed + folded_ticket_at).add(from.state);
  a.add(found.address).add(size).add(slots);
  std::vector<Vector> keys;
  for (uint64_t greatest : from.greatest) {
    // As integers with a sign, in the same order.
    const uint64_t flip = greatest < sign ? 0 : sign;
    ASSIGN_OR_RETURN(const Address key, memory.temporary(8 * from.slots));
    a.add(key).add(flip);
    keys.push_back({.type = Type::i64,
                    .data = key,
                    .min = static_cast<int64_t>(flip),
                    .max = static_cast<int64_t>(greatest ^ flip)});
  }
  RETURN_IF_ERROR(library.launch(*collect, static_cast<uint32_t>(tiles), a, 8 * from.slots));
  FoldedGroups out{.groups = from.slots, .size_slot = size, .state = fits, .columns = {}};
  if (!from.report) {
    RETURN_IF_ERROR(library.wait(memory));
    const uint64_t* results = static_cast<const uint64_t*>(found.host);
    out.groups = results[0];
    out.state = static_cast<uint32_t>(results[1]);
    if (out.state != fits) return out;
  }
  uint64_t bytes = 0;
  for (const FoldedColumn& c : from.columns) {
    ASSIGN_OR_RETURN(const Address to, memory.result(c.bytes * std::max<uint64_t>(out.groups, 1)));
    out.columns.push_back(to);
    bytes += 2 * c.bytes;
  }
  if (out.groups == 0) return out;
  for (Vector& k : keys) k.capacity = out.groups, k.size_slot = from.report ? size : 0;
  constexpr bool up[most_words] = {true, true, true, true, true, true, true, true};
  ASSIGN_OR_RETURN(const Vector order,
                   operators::order(library, keys, std::span(up).first(words), memory));
  ASSIGN_OR_RETURN(const Kernel* take, library.kernel(take_kernel(from.columns)));
  Arguments b;
  b.add(size).add(slots).add(order.data);
  for (size_t c = 0; c < from.columns.size(); ++c) b.add(from.columns[c].data).add(out.columns[c]);
  RETURN_IF_ERROR(library.launch(*take, library.grid(*take, tiles_for(out.groups, folded_block)), b,
                                 out.groups * (12 + bytes)));
  return out;
}

}  // namespace rndn::operators
