// Runs of equal rows in sorted order. Private to this folder.
#pragma once
#include <span>

#include "libraries/operators/sort/radix_sort.h"

namespace rndn::operators {

// How many zeroed words `find_runs` needs for n rows.
uint64_t run_words(uint64_t n);

// first[j]: the row at the start of run j (i64); offsets[j]: its position (u64), offsets[k] = n. `parts`: what makes rows differ, for sorts of
// several words. first: n elements; offsets: n + 1. Returns the number of runs: waits.
Result<uint64_t> find_runs(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                           Address first, Address offsets, Memory& memory);

// Runs by flags (u8) of the places where they start; `rows`: i64 per place, `words`: run_words zeroed u64s. numbers[row] (u32): the run that the
// row is in; first[j] (i64; 0: not wanted): the row at the start of run j. Returns how many: waits.
Result<uint64_t> number_runs(Library& library, Address rows, Address flags, Address words, uint64_t n, Address numbers,
                             Address first, Memory& memory);
// i64, ascending: the places with a flag. Returns how many, in `out` of n elements: waits.
Result<uint64_t> flagged_places(Library& library, Address flags, Address words, uint64_t n, Address out,
                                Memory& memory);

// i64, ascending: the first row of every run. Returns how many, in `out` of n elements: waits.
Result<uint64_t> first_rows(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                            Address out, Memory& memory);

// u8 per place: does its row differ from the one before it in any of the parts, which may be fewer than what was sorted by.
Result<Address> differing_rows(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                               Memory& memory);
// The same for all parts of the sort: by its keys where they are complete.
Result<Address> differing_keys(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                               Memory& memory);

}  // namespace rndn::operators
