// Tables of rows by key, which kernels ask (ptx/lookup/lookup.h): filled by the library before the first kernel that asks, and
// kept as long as the run holds their columns. No wait: whether keys repeat that must not is a word of the plan's, which is read
// with the results.
// Of a column whose elements are all different, as the host knows, the table is a part of the column on the device: it serves
// all runs that read this column, and goes when the column goes, for want of memory or since there is another one in its place.
// A column whose elements ascend by one needs none.
// Of rows that were selected nobody knows yet how many there are. Where they may be too many for the first caches, the table has a filter if
// they turn out to be few (libraries/operators/joins/join_table.cpp), which a kernel asks that looks up at least as many keys as there may be rows.
// Left out: filters of tables that are kept, among whose rows a mask selects; kept tables of several columns, and of texts, whose codes differ from domain to domain.
#include <algorithm>

#include "ptx/lookup/lookup.h"
#include "runtime/run/execution.h"

namespace rndn::runtime {

namespace {

// What a table that outlives the run lies in.
class KeptMemory final : public operators::Memory {
 public:
  explicit KeptMemory(Arena& arena) : arena_(arena) {}
  Result<device::Address> temporary(uint64_t bytes) override {
    if (buffer) return Error{Fault::internal, "a table of rows by key in more than one piece"};
    ASSIGN_OR_RETURN(buffer, arena_.allocate(bytes));
    return buffer->address;
  }
  Result<device::Address> result(uint64_t bytes) override { return temporary(bytes); }
  Result<device::Mapped> mapped(uint64_t) override {
    return Error{Fault::internal, "a table of rows by key asks for memory of the host"};
  }
  BufferPtr buffer;

 private:
  Arena& arena_;
};

}  // namespace

uint8_t Run::kept_form(const codegen::KernelCode::Lookup& wanted, const Item& v, const operators::Lookup* table) const {
  if (!table && plan_.options.hashed_lookups) return 0;
  if (wanted.columns.size() != 1 || !has_different_elements(v) || v.column->rows == 0 || v.column->rows >> 31 != 0) return 0;
  const data::Statistics& s = v.column->statistics;
  const uint64_t span = static_cast<uint64_t>(s.max) - static_cast<uint64_t>(s.min);
  uint64_t form = s.dense && s.sorted ? lookup::ascending : span < operators::most_direct_slots(v.column->rows) ? lookup::direct : lookup::exact;
  if (table) form = table->words[lookup::form];
  return form == lookup::ascending || form == lookup::direct ? static_cast<uint8_t>(1 + form) : 0;
}

uint64_t Run::filtered_rows(const codegen::KernelCode::Lookup& wanted, std::span<const ItemPtr> inputs) const {
  if (wanted.columns.size() == 1 && has_different_elements(*inputs[wanted.columns[0]])) return 0;
  uint64_t rows = UINT64_MAX;
  for (uint32_t k : wanted.columns) {
    if (inputs[k]->exact) return 0;
    rows = std::min(rows, inputs[k]->capacity);
  }
  return rows >= plan_.options.filtered_rows ? rows : 0;
}

void Run::note_filters(std::span<const uint64_t> rows, uint64_t elements, std::vector<uint8_t>& forms) {
  for (size_t l = 0; l < rows.size(); ++l)
    if (rows[l] > 0 && elements >= rows[l]) forms[l] = codegen::KernelEncodings::filtered;
}

Result<const operators::Lookup*> Run::kept_table(const ItemPtr& column) {
  Item& v = *column;
  const data::Statistics& s = v.column->statistics;
  const bool hashed = plan_.options.hashed_lookups;
  if (v.rows_by_key.words.empty() && s.known && s.dense && s.sorted && !hashed) {
    v.rows_by_key.words = {0, 0, lookup::ascending, static_cast<uint64_t>(s.min), v.column->rows - 1, 0};
  } else if (v.rows_by_key.words.empty()) {
    ASSIGN_OR_RETURN(const operators::Vector keys, this->column(column));
    KeptMemory memory(engine_.kept);
    auto scope = timings_.measure(library_phase(), "lookup");
    ASSIGN_OR_RETURN(v.rows_by_key, sql_->lookup_table({&keys, 1}, 0, false, hashed, memory));
    v.rows_by_key_buffer = std::move(memory.buffer);
    note_library_launches();
  }
  if (recording_ && v.rows_by_key_buffer) held_.push_back(v.rows_by_key_buffer);
  return &v.rows_by_key;
}

Result<const operators::Lookup*> Run::lookup_table(const codegen::KernelCode::Lookup& wanted,
                                                   std::span<const ItemPtr> given, std::span<const ItemPtr> inputs) {
  if (wanted.columns.size() == 1 && has_different_elements(*inputs[wanted.columns[0]]))
    return kept_table(inputs[wanted.columns[0]]);
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
  if (wanted.masked && known_join) static_cast<uint64_t*>(plan_.repeats->host)[*wanted.join] = 1;
  const device::Address repeats = known_join && wanted.once ? plan_.repeats->address + 8 * static_cast<uint64_t>(*wanted.join) : 0;
  {
    auto scope = timings_.measure(library_phase(), "lookup");
    ASSIGN_OR_RETURN(table.lookup, sql_->lookup_table(columns, repeats, filtered_rows(wanted, inputs) > 0, plan_.options.hashed_lookups, *table.memory));
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
