// Groups by a hash table (docs/decisions.md, 13): open addressing, a slot is a word of 8 bytes {tag, ~row}, 0: free.
//
// enter    every row looks for the slot of its key: a free one is claimed by one compare-and-swap; one with its tag is its own when the sortable bits
//          of the two rows agree, or at once where the tag is all of the key. The smallest row stays in the slot by a maximum of ~row. Nobody waits
//          for anybody. places[row] = the slot.
// number   the rows that their slot names are the first of their groups: a scan over the rows (look-back, emit.h) numbers them.
// Then rows are sorted by the number of their group, whose bits are as few as there are groups: stable, so that rows ascend within a group.
// A table that fits into the cache is tried first; one that turns out to be too small is left early for a larger one, of at most
// two slots per row.
// Costs: the keys and 4 bytes per row twice, a random slot per row twice; pays where keys have many more bits than there are groups.
#include "libraries/operators/groups/hash_groups.h"

#include <algorithm>
#include <bit>

#include "libraries/operators/emit.h"
#include "libraries/operators/fragments.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

using ptx::AtomicOp;
using ptx::Combine;
using ptx::LabelId;

namespace {

constexpr uint32_t hashed_block = 256, hashed_warps = hashed_block / 32, hashed_items = 4, hashed_tile_rows = hashed_block * hashed_items;
constexpr uint64_t hashed_ticket_at = 4096 + 768;  // in Library::zeroed
constexpr uint64_t most_probes = 256;       // of a table that may be too small

std::vector<Source> hashed_sources_of(std::span<const Part> parts) {
  std::vector<Source> sources;
  for (const Part& p : parts) sources.push_back(p.source);
  return sources;
}

uint32_t build_hashed_enter(ptx::Module& module, std::string_view name, std::span<const Source> sources) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_slots = b.parameter<U64>("slots"), p_count = b.parameter<U64>("count"),
        p_probes = b.parameter<U64>("probes"), p_places = b.parameter<U64>("places"), p_full = b.parameter<U64>("full");
  std::vector<PartCode> parts;
  for (size_t k = 0; k < sources.size(); ++k) parts.push_back(declare_part(b, sources[k], static_cast<uint32_t>(k)));
  b.set_block_size(hashed_block);
  const bool exact = sources.size() == 1 && !is_wide(sources[0]);  // the tag is the key
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(p_n)), last = b.sub(n, 1u), count = b.cvt<U32>(b.ld_param(p_count));
  Reg<U64> slots = b.ld_param(p_slots), places = b.ld_param(p_places), full = b.ld_param(p_full);
  const LabelId leave = b.label();
  for_tiles(b, tiles_of(b, n, hashed_tile_rows), [&](Reg<U32> tile) {
    // A table that is full needs no more rows.
    b.when(b.setp(Is::ne, b.ld<U32>(Space::global, volatile_access, At(full)), 0u)).bra(leave);
    std::vector<Reg<U32>> rows, tags, hashes;
    std::vector<Reg<Pred>> inside;
    std::vector<std::vector<Bits>> bits(hashed_items);
    for (uint32_t i = 0; i < hashed_items; ++i) {
      Reg<U32> row = b.add(b.mad_lo(tile, hashed_tile_rows, t.tid), i * hashed_block);
      inside.push_back(b.setp(Is::lt, row, n));
      rows.push_back(b.min(row, last));
      for (const PartCode& p : parts) bits[i].push_back(load_bits(b, p, rows[i]));
    }
    for (uint32_t i = 0; i < hashed_items; ++i) {
      if (exact) {
        tags.push_back(bits[i][0].narrow);
        hashes.push_back(hash(b, bits[i][0].narrow));
        continue;
      }
      Reg<U64> key;
      for (const Bits& x : bits[i]) {
        Reg<U64> wide = x.is_wide() ? x.wide : b.cvt<U64>(x.narrow);
        if (key.valid()) wide = b.xor_(wide, key);
        key = b.mul_lo(wide, 0x9E3779B97F4A7C15u);
        key = b.xor_(key, b.shr(key, 29u));
      }
      tags.push_back(tag(b, key));
      hashes.push_back(hash(b, key));
    }
    for (uint32_t i = 0; i < hashed_items; ++i) {
      const LabelId done = b.label();
      const SlotSearch search{slots,         full,    count, b.cvt<U32>(b.ld_param(p_probes)), place_of(b, hashes[i], count),
                              b.not_(rows[i]), tags[i]};
      b.unless(inside[i]).bra(done);
      find_slot(b, search, done, [&](Reg<U32> mark, LabelId other) {
        if (exact) return;
        Reg<U32> row = b.not_(mark);
        Reg<Pred> same = b.constant<Pred>(true);
        for (size_t k = 0; k < parts.size(); ++k) {
          const Bits x = load_bits(b, parts[k], row), &y = bits[i][k];
          if (x.is_wide())
            b.setp(Is::eq, Combine::and_, x.wide, y.wide, same, same);
          else
            b.setp(Is::eq, Combine::and_, x.narrow, y.narrow, same, same);
        }
        b.unless(same).bra(other);
      });
      b.st<U32>(Space::global, element_at(b, places, rows[i], 4), search.place);
      b.bind(done);
    }
  });
  b.bind(leave);
  b.ret();
  b.finish();
  return hashed_block;
}

uint32_t build_number(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  Param p_n = b.parameter<U64>("n"), p_tiles = b.parameter<U64>("tiles"), p_slots = b.parameter<U64>("slots"),
        p_places = b.parameter<U64>("places"), p_numbers = b.parameter<U64>("numbers"),
        p_words = b.parameter<U64>("words"), p_ticket = b.parameter<U64>("ticket"), p_full = b.parameter<U64>("full"),
        p_found = b.parameter<U64>("found");
  b.set_block_size(hashed_block);
  auto shared = b.shared<U64>(std::string(name) + "_shared", 2 + hashed_warps / 2, 16);
  const Thread t = thread_of(b);
  Reg<U32> tile = take_ticket(b, t, b.ld_param(p_ticket), b.cvt<U32>(b.ld_param(p_tiles)), At(shared));
  Reg<U64> slots = b.ld_param(p_slots), places = b.ld_param(p_places), numbers = b.ld_param(p_numbers);
  Reg<U64> start = b.mul_wide(tile, hashed_tile_rows);
  Reg<U32> left = b.cvt<U32>(b.min(b.sub(b.ld_param(p_n), start), uint64_t{hashed_tile_rows}));
  Reg<U32> within = b.mad_lo(t.warp, 32 * hashed_items, t.lane), first = b.add(b.cvt<U32>(start), within);
  Reg<U32> full = b.ld<U32>(Space::global, At(b.ld_param(p_full)));
  // A table that was too small has rows without a place: nothing is looked at.
  Reg<Pred> usable = b.setp(Is::eq, full, 0u);
  std::vector<Reg<Pred>> heads;
  std::vector<Reg<U32>> place(hashed_items), votes;
  for (uint32_t i = 0; i < hashed_items; ++i) {
    heads.push_back(b.setp(Is::lt, Combine::and_, b.add(within, 32 * i), left, usable));
    place[i] = b.constant<U32>(0u);
    load_if<U32>(b, heads[i], Space::global, element_at(b, places, b.add(first, 32 * i), 4), place[i]);
  }
  Reg<U32> total;
  for (uint32_t i = 0; i < hashed_items; ++i) {
    Reg<U32> mark = b.constant<U32>(0u);
    load_if<U32>(b, heads[i], Space::global, element_at(b, slots, place[i], 8), mark);
    b.setp(Is::eq, Combine::and_, b.not_(mark), b.add(first, 32 * i), heads[i], heads[i]);
    votes.push_back(b.ballot(heads[i]));
    Reg<U32> count = b.popc(votes[i]);
    total = total.valid() ? b.add(total, count) : count;
  }
  const BlockSum sum = block_sum(b, t, total, hashed_warps, shared, 16);
  Reg<U64> before = look_back(b, t, tile, sum.total, b.ld_param(p_words), At(shared, 8));
  Reg<U32> number = b.add(b.cvt<U32>(before), sum.before);
  Reg<U32> below = b.sub(b.shl(b.constant<U32>(1u), t.lane), 1u);
  for (uint32_t i = 0; i < hashed_items; ++i) {
    store_if<U32>(b, heads[i], Space::global, element_at(b, numbers, place[i], 4),
                  b.add(number, b.popc(b.and_(votes[i], below))));
    if (i + 1 < hashed_items) b.add(number, b.popc(votes[i]), number);
  }
  Reg<Pred> is_last = b.setp(Is::eq, b.add(tile, 1u), b.cvt<U32>(b.ld_param(p_tiles)));
  Reg<Pred> reports = b.setp(Is::eq, Combine::and_, t.tid, 0u, is_last);
  Reg<U64> found = b.ld_param(p_found);
  store_if<U64>(b, reports, Space::global, At(found), b.add(before, b.cvt<U64>(sum.total)));
  store_if<U64>(b, reports, Space::global, At(found, 8), b.cvt<U64>(full));
  b.ret();
  b.finish();
  return hashed_block;
}

}  // namespace

void find_slot(Builder& b, const SlotSearch& s, LabelId missing, const CompareRows& compare) {
  const LabelId probe = b.label(), seen = b.label(), other = b.label(), found = b.label();
  Reg<U64> word = b.pack<U64>(s.mark, s.tag);
  b.bind(probe);
  Reg<U64> at = element_address(b, s.slots, s.place, 8);
  Reg<U64> old = b.ld<U64>(Space::global, At(at));
  b.when(b.setp(Is::ne, old, 0)).bra(seen);
  b.atom_cas<U64>(Space::global, At(at), 0, word, {}, old);
  b.when(b.setp(Is::eq, old, 0)).bra(found);
  b.bind(seen);
  auto [old_mark, old_tag] = b.unpack(old);
  b.when(b.setp(Is::ne, old_tag, s.tag)).bra(other);
  compare(old_mark, other);
  b.when(b.setp(Is::gt, s.mark, old_mark)).red<U32>(AtomicOp::max, Space::global, At(at), s.mark);
  b.bra(found);
  b.bind(other);
  next_place(b, s.place, s.count);
  b.sub(s.probes, 1u, s.probes);
  b.when(b.setp(Is::ne, s.probes, 0u)).bra(probe);
  b.st<U32>(Space::global, volatile_access, At(s.full), 1u);
  b.bra(missing);
  b.bind(found);
}

void add_slot_numbers(KernelRows& rows) { rows.push_back({"group_number", build_number}); }

Result<NumberedSlots> number_slots(Library& library, uint64_t n, uint64_t most, uint64_t growth,
                                   const std::function<Result<void>(const SlotTable&)>& fill, Memory& memory) {
  ASSIGN_OR_RETURN(const Kernel* number, library.kernel("group_number", build_number));
  ASSIGN_OR_RETURN(Address zeroed, library.zeroed());
  ASSIGN_OR_RETURN(Address places, memory.temporary(4 * n));
  const auto slots_for = [](uint64_t rows) { return std::min<uint64_t>(2 * rows + 1, max_rows); };
  const uint64_t enough = slots_for(n), largest = slots_for(std::min(n, most)), tiles = tiles_for(n, hashed_tile_rows);
  for (uint64_t slots = std::min(largest, library.options.hash_slots);; slots = std::min(largest, growth * slots)) {
    // Slots, the words of the scan, and whether the table is full.
    const uint64_t cleared = 8 * (slots + tiles + 1);
    ASSIGN_OR_RETURN(Address table, memory.temporary(cleared));
    ASSIGN_OR_RETURN(Address numbers, memory.temporary(4 * slots));
    ASSIGN_OR_RETURN(device::Mapped found, memory.mapped(16));
    RETURN_IF_ERROR(library.device().fill(table, 0, cleared));
    const Address words = table + 8 * slots, full = words + 8 * tiles;
    RETURN_IF_ERROR(fill({table, slots, slots == enough ? UINT32_MAX : most_probes, places, full}));
    Arguments c;
    c.add(n).add(tiles).add(table).add(places).add(numbers).add(words).add(zeroed + hashed_ticket_at).add(full);
    c.add(found.address);
    RETURN_IF_ERROR(library.launch(*number, static_cast<uint32_t>(tiles), c, n * 12));
    RETURN_IF_ERROR(library.wait(memory));
    const uint64_t* results = static_cast<const uint64_t*>(found.host);
    if (results[1] == 0 || slots == enough) return NumberedSlots{table, places, numbers, slots, results[0]};
    if (slots == largest) return NumberedSlots{};
  }
}

Result<Sorted> hash_rows(Library& library, std::span<const Part> parts, uint64_t n, uint64_t scan_words,
                         Memory& memory) {
  const std::vector<Source> sources = hashed_sources_of(parts);
  ASSIGN_OR_RETURN(const Kernel* enter,
                   library.kernel("group_enter_" + source_letters(parts), [&](ptx::Module& m, std::string_view entry) {
                     return build_hashed_enter(m, entry, sources);
                   }));
  uint64_t bytes = 0;
  for (Source s : sources) bytes += is_wide(s) ? 8 : 4;
  const auto fill = [&](const SlotTable& t) -> Result<void> {
    Arguments a;
    a.add(n).add(t.slots).add(t.count).add(t.probes).add(t.places).add(t.full);
    for (const Part& p : parts) add_part(a, p);
    return library.launch(*enter, library.grid(*enter, tiles_for(n, hashed_tile_rows)), a, n * (bytes + 4));
  };
  ASSIGN_OR_RETURN(const NumberedSlots found, number_slots(library, n, n, max_rows, fill, memory));
  const Part groups{
      .source = Source::rank32, .data = found.places, .extra = found.numbers, .low = 0, .high = found.groups - 1};
  return sort_rows(library, pack_words({&groups, 1}), n, true, scan_words, memory);
}

}  // namespace rndn::operators
