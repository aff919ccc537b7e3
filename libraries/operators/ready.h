// Kernels whose machine code comes with the programs (libraries/operators/machine_code): those that hang on no column
// of a query, or on one and few kinds of it. Each file of operators names its own. A kernel takes about 40 KB of a
// program, for all targets, and 0.7 ms of the first run that has to make it. Private to this folder.
#pragma once
#include <vector>

#include "libraries/operators/library.h"

namespace rndn::operators {

using KernelRows = std::vector<Library::Row>;

void add_small_sorts(KernelRows& rows);
void add_sweeps(KernelRows& rows);
void add_row_numbers(KernelRows& rows);
void add_runs(KernelRows& rows);
void add_slot_numbers(KernelRows& rows);
void add_join_tables(KernelRows& rows);
void add_gathers(KernelRows& rows);
void add_translations(KernelRows& rows);
void add_like(KernelRows& rows);
void add_literals(KernelRows& rows);
void add_strings(KernelRows& rows);
void add_parts_of_strings(KernelRows& rows);
void add_distinct_strings(KernelRows& rows);
void add_ranks(KernelRows& rows);
void add_aggregates(KernelRows& rows);
void add_decodings(KernelRows& rows);
void add_bounds(KernelRows& rows);
void add_packs(KernelRows& rows);
void add_scans(KernelRows& rows);
void add_sorted_cells(KernelRows& rows);
void add_join_probes(KernelRows& rows);
void add_folded_groups(KernelRows& rows);
void add_finishes(KernelRows& rows);
void add_few_groups(KernelRows& rows);
void add_tops(KernelRows& rows);
void add_conversions(KernelRows& rows);

}  // namespace rndn::operators
