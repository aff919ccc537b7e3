// Runs of equal rows in sorted order. Private to this folder.
#pragma once
#include <span>

#include "libraries/operators/sort/radix_sort.h"

namespace rndn::operators {

// How many zeroed words `find_runs` needs for n rows.
uint64_t run_words(uint64_t n);

// What to make of the runs.
enum class Runs : uint8_t {
  groups,  // first[j]: the row at the start of run j (i64); offsets[j]: its position (u64), offsets[k] = n
  ranks,   // rank[row] (u32): the number of the run that the row is in
};
// `parts`: what makes rows differ, for sorts of several words. first: groups, n elements; offsets: groups, n + 1; ranks: n.
// Returns the number of runs: waits.
Result<uint64_t> find_runs(Library& library, Runs kind, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                           Address first, Address offsets, Address ranks, Memory& memory);

// i64, ascending: the first row of every run. Returns how many, in `out` of n elements: waits.
Result<uint64_t> first_rows(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                            Address out, Memory& memory);

// u8 per place: does its row differ from the one before it in any part; for sorts of several words.
Result<Address> differing_rows(Library& library, const Sorted& sorted, std::span<const Part> parts, uint64_t n,
                               Memory& memory);

}  // namespace rndn::operators
