// Tables of rows by key, which kernels ask (ptx/lookup/lookup.h): filled by the library before the first kernel that asks, and
// kept as long as the run holds their columns. No wait: whether keys repeat that must not is a word of the plan's, which is read
// with the results.
#include <algorithm>

#include "runtime/run/execution.h"

namespace rndn::runtime {

Result<const operators::Lookup*> Run::lookup_table(const codegen::KernelCode::Lookup& wanted,
                                                   std::span<const ItemPtr> given, std::span<const ItemPtr> inputs) {
  Table table{.join = wanted.join};
  for (uint32_t k : wanted.columns) {
    table.columns.push_back(given[k]);
    table.domains.push_back(hir::is_text(given[k]->type) ? inputs[k]->domain : nullptr);
  }
  for (const Table& known : tables_)
    if (known.columns == table.columns && known.domains == table.domains && known.join == table.join)
      return known.lookup.words.empty() ? nullptr : &known.lookup;
  std::vector<operators::Vector> columns;
  for (uint32_t k : wanted.columns) {
    ASSIGN_OR_RETURN(columns.emplace_back(), column(inputs[k]));
  }
  table.memory = std::make_unique<OperatorMemory>(*this, engine_.buffers);
  const bool known_join =
      wanted.join && plan_.repeats && 8 * static_cast<uint64_t>(*wanted.join) < plan_.repeats->bytes;
  const device::Address repeats = known_join && wanted.once ? plan_.repeats->address + 8 * static_cast<uint64_t>(*wanted.join) : 0;
  {
    auto scope = timings_.measure(library_phase(), "lookup");
    ASSIGN_OR_RETURN(table.lookup, sql_->lookup_table(columns, repeats, *table.memory));
  }
  note_library_launches();
  if (table.lookup.words.empty() && known_join)  // the program is compiled without this look-up then
    static_cast<uint64_t*>(plan_.repeats->host)[*wanted.join] = 1;
  tables_.push_back(std::move(table));
  return tables_.back().lookup.words.empty() ? nullptr : &tables_.back().lookup;
}

void Run::drop_lookups() {
  std::erase_if(tables_, [](const Table& t) {
    return std::all_of(t.columns.begin(), t.columns.end(),
                       [](const ItemPtr& c) { return c->lifetime == Item::of_run && c.use_count() == 1; });
  });
}

}  // namespace rndn::runtime
