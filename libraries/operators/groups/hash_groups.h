// Groups by a hash table. Private to this folder.
#pragma once
#include <span>

#include "libraries/operators/sort/radix_sort.h"

namespace rndn::operators {

// What sort_rows gives, with the numbers of the groups as keys: n >= 1 rows by group, groups by their first row. Bounds of the parts need not be
// known. Waits.
Result<Sorted> hash_rows(Library& library, std::span<const Part> parts, uint64_t n, uint64_t scan_words,
                         Memory& memory);

}  // namespace rndn::operators
