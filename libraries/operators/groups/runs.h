// Runs of equal rows in sorted order. Private to this folder.
#pragma once
#include <span>

#include "libraries/operators/sort/radix_sort.h"

namespace rndn::operators {

// How many zeroed words `find_runs` needs for n rows.
uint64_t run_words(uint64_t n);

// All wait, but for what gives flags. Results (i64, u64) have room for all n rows, or are counted first (Memory::most_unknown).
struct Places {
  Address data = 0;
  uint64_t count = 0;
};
struct Runs {
  Address first = 0, offsets = 0;
  uint64_t count = 0;
};

// first[j]: the row at the start of run j (i64); offsets[j]: its position (u64), offsets[count] = n. `parts`: what makes rows differ, for sorts
// of several words.
Result<Runs> find_runs(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n, Memory& memory);
// How many there are: by the sort's keys, or by flags (differing_rows). Leaves sorted.words as they are.
Result<uint64_t> count_runs(Library& library, const Sorted& sorted, Address flags, uint64_t n, Memory& memory);

// Runs by flags (u8) of the places where they start; `rows`: i64 per place, `words`: run_words zeroed u64s. numbers[row] (u32): the run that the
// row is in. Returns how many.
Result<uint64_t> number_runs(Library& library, Address rows, Address flags, Address words, uint64_t n, Address numbers,
                             Memory& memory);
// The same, and i64: the row at the start of every run.
Result<Places> first_of_runs(Library& library, Address rows, Address flags, Address words, uint64_t n, Address numbers,
                             Memory& memory);
// i64, ascending: the places with a flag.
Result<Places> flagged_places(Library& library, Address flags, Address words, uint64_t n, Memory& memory);

// i64, ascending: the first row of every run.
Result<Places> first_rows(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                          Memory& memory);

// u8 per place: does its row differ from the one before it in any of the parts, which may be fewer than what was sorted by.
Result<Address> differing_rows(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                               Memory& memory);
// The same for all parts of the sort: by its keys where they are complete.
Result<Address> differing_keys(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                               Memory& memory);

}  // namespace rndn::operators
