// Groups by a hash table. Private to this folder.
#pragma once
#include <functional>
#include <span>

#include "libraries/operators/emit.h"
#include "libraries/operators/sort/radix_sort.h"

namespace rndn::operators {

// A table whose slots rows are entered into: a slot is a word of 8 bytes {tag, ~row} with the smallest row that it is for, 0: free.
struct SlotTable {
  Address slots = 0;
  uint64_t count = 0;
  uint64_t probes = 0;  // slots that a row looks at before the table is said to be full
  Address places = 0;   // u32 per row: its slot
  Address full = 0;     // u32, not 0: a row found no slot
};
// Code that looks for the slot of a row's key, from `place` on, which then is that slot. Slots are looked at by plain loads first: they may be old, but
// a free slot is confirmed by the swap, a tag never changes, and an old row only costs an atomic in vain. `compare(mark, other)` jumps to `other`
// unless the row ~mark, which has the same tag, has the same key. Where none of `probes` slots is the row's, `full` is set: to `missing`.
struct SlotSearch {
  Reg<U64> slots, full;
  Reg<U32> count, probes, place;
  Reg<U32> mark, tag;  // ~row, and what of the key the slot holds
};
using CompareRows = std::function<void(Reg<U32> mark, ptx::LabelId other)>;
void find_slot(Builder& b, const SlotSearch& s, ptx::LabelId missing, const CompareRows& compare);

// Rows by slots: those of one slot have one number, which ascend with their first rows.
struct NumberedSlots {
  Address slots = 0, places = 0;  // as above
  Address numbers = 0;            // u32 per slot; 0: there are more groups than wanted
  uint64_t count = 0;             // of the slots
  uint64_t groups = 0;
};
// `fill` launches a kernel that enters n >= 1 rows, for larger tables until one is large enough, each `growth` times the one before. `most`: groups that are wanted at most, or so. Waits.
Result<NumberedSlots> number_slots(Library& library, uint64_t n, uint64_t most, uint64_t growth,
                                   const std::function<Result<void>(const SlotTable&)>& fill, Memory& memory);

// What sort_rows gives, with the numbers of the groups as keys: n >= 1 rows by group, groups by their first row. Bounds of the parts need not be
// known. Waits.
Result<Sorted> hash_rows(Library& library, std::span<const Part> parts, uint64_t n, uint64_t scan_words,
                         Memory& memory);

}  // namespace rndn::operators
