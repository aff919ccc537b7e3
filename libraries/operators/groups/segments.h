// Aggregates over runs of equal keys in sorted order. Private to this folder.
#pragma once
#include <span>

#include "libraries/operators/groups/accumulate.h"
#include "libraries/operators/sort/radix_sort.h"

namespace rndn::operators {

// Zeroed words that `reduce_runs` needs for n rows.
uint64_t segment_words(uint64_t n);

// With distinct counts, the rows of a group are sorted by the value that is counted, too: `value` is that part, and the accumulator `row`, which
// must be there, gets the first rows instead of `first`.
// Of every run of rows with equal keys: its first row (i64) into `first`, its accumulators into accumulators[k] (4 or 8 bytes each, as they are
// held); all with room for n. `sorted`: as sort_rows gives it, with keys and segment_words words; without `rows`, row k is at place k. `flags`: where
// keys differ (differing_rows), if the sort's keys are not those of the runs. Returns the number of runs: waits.
Result<uint64_t> reduce_runs(Library& library, const AggregateInput& input, const Sorted& sorted,
                             Address flags, uint64_t n, Address first,
                             std::span<const Address> accumulators, Memory& memory, const Part* value = nullptr);

// The same for cells that are there: the rows of cell j are rows[offsets[j]] .. rows[offsets[j + 1] - 1] (i64). A warp per cell: for cells that are
// few or small. Does not wait.
Result<void> reduce_cells(Library& library, const AggregateInput& input, uint64_t cells, Address offsets, Address rows,
                          std::span<const Address> accumulators);

}  // namespace rndn::operators
