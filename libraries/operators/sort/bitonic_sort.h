// Bitonic sort of packed keys, for comparison with radix_sort.h. Private to this folder.
#pragma once
#include "libraries/operators/library.h"

namespace rndn::operators {

// Elements that the arrays below must have room for.
uint64_t bitonic_rows(uint64_t n);
// Sorts n keys (u64 when wide, else u32) in place; positions (u32) gets where each came from. Equal keys keep their order.
Result<void> bitonic_sort_word(Library& library, bool wide, uint64_t n, Address keys, Address positions);
// to[i] = from[positions[i]] (u32), or positions[i] when there is no `from`; to64: i64.
Result<void> bitonic_follow(Library& library, uint64_t n, Address positions, Address from, Address to, bool to64);

}  // namespace rndn::operators
