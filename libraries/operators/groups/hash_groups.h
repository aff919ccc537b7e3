// Groups by a hash table. Private to this folder.
#pragma once
#include <functional>
#include <span>

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
