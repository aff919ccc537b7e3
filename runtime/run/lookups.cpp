// Tables of rows by key, which kernels ask (ptx/lookup/lookup.h): filled by the library before the first kernel that asks, and
// kept as long as the run holds their columns. No wait: whether keys repeat that must not is a word of the plan's, which is read
// with the results.
// Of a column whose elements are all different, as the host knows, the table is a part of the column on the device: it serves
// all runs that read this column, and goes when the column goes, for want of memory or since there is another one in its place.
// A column whose elements ascend by one needs none.
// Where such a column is in no order, what kernels read at the rows lies in records by key (libraries/operators/joins/records.cpp), if the rows serve
// for nothing else: then the key tells the place, there is no table, and a look-up that reads nothing needs no memory. Records are parts of the key's
// column, too, and the first that go for want of memory. They pay where the table is beyond the first caches and as many rows ask as it has. A mask of the
// run would be put in the order of keys first, which costs what it saves (Kernel Weaver's c at 2^22 and 2^24 rows took 1.19 and 1.05 of the time
// of an earlier call without, H200).
// Of rows that were selected nobody knows yet how many there are. Where they may be too many for the first caches, the table has a filter if
// they turn out to be few (libraries/operators/joins/join_table.cpp), which a kernel asks that looks up at least as many keys as there may be rows.
// Left out: records of columns that ascend, which would spare reads of several columns where rows ask in no order, and of other sets of columns than a
// kernel reads; filters of tables that are kept, among whose rows a mask selects; kept tables of several columns, and of texts, whose codes differ from domain to domain.
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

std::optional<std::vector<encodings::Stored>> Run::record_forms(const codegen::KernelCode::Lookup& wanted, std::span<const ItemPtr> inputs,
                                                                uint64_t elements) const {
  if (!wanted.fields || !plan_.records_fit || plan_.options.hashed_lookups) return std::nullopt;
  const Item& keys = *inputs[wanted.columns[0]];
  if (!has_different_elements(keys)) return std::nullopt;
  const data::Statistics& s = keys.column->statistics;
  const uint64_t rows = keys.column->rows;
  if (!s.known || !s.dense || s.sorted || rows >> 31 != 0 || rows < plan_.options.recorded_rows || elements < rows)
    return std::nullopt;
  std::vector<encodings::Vector> fields;
  for (const uint32_t f : *wanted.fields) {
    const Item& v = *inputs[f];
    if (v.kind != Item::vector || !v.exact || v.capacity != rows || v.lifetime != Item::of_engine) return std::nullopt;
    fields.push_back({v.type, {.known = v.bounds.known() && !hir::is_text(v.type), .min = v.bounds.min, .max = v.bounds.max}});
  }
  return encodings::record_of(fields);
}

Result<void> Run::put_records(const Item& keys, std::span<const ItemPtr> fields, std::span<const encodings::Stored> forms, device::Address to) {
  const auto field = [](const Item& v, const encodings::Stored& form) { return operators::Field{v.type, v.stored, form, v.data}; };
  std::vector<operators::Field> of;
  for (size_t k = 0; k < fields.size(); ++k) of.push_back(field(*fields[k], forms[k]));
  auto scope = timings_.measure(library_phase(), "records");
  RETURN_IF_ERROR(sql_->put_records(field(keys, {}), keys.capacity, keys.column->statistics.min, of, to));
  note_library_launches();
  return {};
}

Result<BufferPtr> Run::records(const ItemPtr& keys, std::span<const ItemPtr> fields, std::span<const encodings::Stored> forms) {
  constexpr size_t most = 4;  // of a key: of different columns
  std::vector<Item::Records>& known = keys->records;
  std::erase_if(known, [](const Item::Records& r) {
    return std::any_of(r.of.begin(), r.of.end(), [](const std::weak_ptr<Item>& v) { return v.expired(); });
  });
  const auto same = [](const std::weak_ptr<Item>& a, const ItemPtr& b) { return a.lock() == b; };
  auto at = std::find_if(known.begin(), known.end(), [&](const Item::Records& r) {
    return std::equal(r.of.begin(), r.of.end(), fields.begin(), fields.end(), same) && std::equal(r.forms.begin(), r.forms.end(), forms.begin(), forms.end());
  });
  if (at == known.end()) {
    const Engine::State::Sparing sparing(engine_, spared_after_);
    auto buffer = engine_.kept.allocate(keys->capacity * forms[0].bytes);
    if (!buffer && buffer.error().cause == Cause::device_full) return BufferPtr{};
    if (!buffer) return buffer.error();
    RETURN_IF_ERROR(put_records(*keys, fields, forms, (*buffer)->address));
    if (known.size() == most) known.erase(known.begin());
    at = known.insert(known.end(), {{fields.begin(), fields.end()}, {forms.begin(), forms.end()}, *std::move(buffer)});
  }
  if (recording_) held_.push_back(at->buffer);
  return at->buffer;
}

Result<std::vector<uint64_t>> Run::fields_by_key(const codegen::KernelCode::Lookup& wanted, std::vector<ItemPtr>& inputs,
                                                 std::span<const encodings::Stored> forms) {
  const ItemPtr keys = inputs[wanted.columns[0]];
  std::vector<ItemPtr> fields;
  for (const uint32_t f : *wanted.fields) fields.push_back(inputs[f]);
  BufferPtr together;
  if (!fields.empty()) {
    ASSIGN_OR_RETURN(together, records(keys, fields, forms));
    if (!together) return std::vector<uint64_t>{};
  }
  for (size_t k = 0; k < forms.size(); ++k) {
    ItemPtr& v = inputs[(*wanted.fields)[k]];
    v = std::make_shared<Item>(*v);
    v->stored = forms[k];
    v->data_buffer = together;
    v->data = v->data_buffer->address;
  }
  return std::vector<uint64_t>{0, 0, lookup::ascending, static_cast<uint64_t>(keys->column->statistics.min), keys->column->rows - 1, 0};
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
