#include "libraries/operators/ready.h"

namespace rndn::operators {

std::vector<ReadyKernel> ready_kernels() {
  KernelRows rows;
  for (const auto add : {add_small_sorts,
                         add_sorted_cells,
                         add_row_numbers,
                         add_packs,
                         add_sweeps,
                         add_tops,
                         add_bounds,
                         add_runs,
                         add_slot_numbers,
                         add_few_groups,
                         add_folded_groups,
                         add_aggregates,
                         add_finishes,
                         add_scans,
                         add_join_tables,
                         add_join_probes,
                         add_gathers,
                         add_conversions,
                         add_decodings,
                         add_translations,
                         add_strings,
                         add_parts_of_strings,
                         add_distinct_strings,
                         add_ranks,
                         add_like,
                         add_literals})
    add(rows);
  std::vector<ReadyKernel> out;
  for (const Library::Row& row : rows) {
    ReadyKernel& kernel = out.emplace_back(ReadyKernel{.name = row.name, .module = Library::new_module()});
    kernel.block_size = row.build(kernel.module, kernel.name);
  }
  return out;
}

}  // namespace rndn::operators
