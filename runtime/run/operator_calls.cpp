// The steps of SQL operators: arguments become vectors of the operators' types on the device, results become items. What an operator cannot take
// because of its sizes (columns of different length) goes to the reference interpreter, which says what is wrong with it.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "frontend/builtins.h"
#include "outliner/grouping_fusion.h"
#include "runtime/reference/invariants.h"
#include "runtime/run/execution.h"

namespace rndn::runtime {

using device::Address;
using hir::BasicType;
using hir::Builtin;
using reference::Value;

// --- Memory of operators ---

Run::OperatorMemory::~OperatorMemory() = default;
void Run::OperatorMemory::clear() {
  temporaries_.clear();
  results_.clear();
}
Result<Address> Run::OperatorMemory::temporary(uint64_t bytes) {
  ASSIGN_OR_RETURN(BufferPtr buffer, run_.engine_.buffers.allocate(bytes));
  temporaries_.push_back(buffer);
  return buffer->address;
}
Result<Address> Run::OperatorMemory::result(uint64_t bytes) {
  ASSIGN_OR_RETURN(BufferPtr buffer, results_arena_.allocate(bytes));
  results_.push_back(buffer);
  return buffer->address;
}
Result<device::Mapped> Run::OperatorMemory::mapped(uint64_t bytes) {
  ASSIGN_OR_RETURN(BufferPtr buffer, run_.engine_.flags.allocate(bytes));
  std::memset(buffer->host, 0, buffer->bytes);
  run_.until_wait_.push_back(buffer);
  return device::Mapped{buffer->host, buffer->address};
}
const uint64_t* Run::OperatorMemory::foreseen(std::string_view what, const device::Mapped& found, size_t words) {
  // What is made once, for domains of texts or columns, is not asked again.
  if (this == &run_.text_memory_ || &results_arena_ != &run_.engine_.buffers) return nullptr;
  const auto at = std::find_if(run_.until_wait_.rbegin(), run_.until_wait_.rend(), [&](const BufferPtr& b) { return b->host == found.host; });
  CHECK(at != run_.until_wait_.rend(), "an operator asks where it has no memory");
  if (run_.recording_) run_.held_.push_back(*at);
  return run_.foreseeing_.answer(what, *at, words);
}
void Run::OperatorMemory::give_back(Address result) {
  std::erase_if(results_, [&](const BufferPtr& b) { return b->address == result; });
}
BufferPtr Run::OperatorMemory::buffer(Address address) const {
  for (const BufferPtr& b : results_)
    if (address >= b->address && address < b->address + b->bytes) return b;
  return nullptr;
}

namespace {

operators::Reduce reduce_of(outliner::GroupReduction reduction) {
  using outliner::GroupReduction;
  switch (reduction) {
    case GroupReduction::len: return operators::Reduce::len;
    case GroupReduction::sum: return operators::Reduce::sum;
    case GroupReduction::avg: return operators::Reduce::avg;
    case GroupReduction::min: return operators::Reduce::min;
    case GroupReduction::max: return operators::Reduce::max;
    case GroupReduction::distinct: return operators::Reduce::distinct;
  }
  return operators::Reduce::len;
}

bool find_compare(Builtin builtin, operators::Compare& compare) {
  switch (builtin) {
    case Builtin::eq: compare = operators::Compare::eq; return true;
    case Builtin::neq: compare = operators::Compare::neq; return true;
    case Builtin::lt: compare = operators::Compare::lt; return true;
    case Builtin::gt: compare = operators::Compare::gt; return true;
    case Builtin::leq: compare = operators::Compare::leq; return true;
    case Builtin::geq: compare = operators::Compare::geq; return true;
    default: return false;
  }
}

bool is_number(BasicType type) { return type == BasicType::complex || hir::is_real(type); }

// The value of an integer scalar.
std::optional<int64_t> integer_of(const Value& v) {
  if (v.kind != Value::vector || v.size != 1 || !hir::is_integer(v.type)) return std::nullopt;
  const uint32_t unused = 64 - 8 * data::plain_width(v.type);
  uint64_t bits = 0;
  std::memcpy(&bits, v.bytes->data(), data::plain_width(v.type));
  return static_cast<int64_t>(bits << unused) >> unused;
}

}  // namespace

// --- Arguments and results ---

// On the device, as operators see it: as its elements lie, where they know that form. Text: codes of the item's own domain.
Result<operators::Vector> Run::column(const ItemPtr& given, Reading reading) {
  RETURN_IF_ERROR(to_device(given));
  RETURN_IF_ERROR(learn_length(*given));
  ItemPtr v = given;
  encodings::Stored form = v->stored;
  // Without their reference elements are in the same order.
  int64_t reference = reading == Reading::order ? std::exchange(form.reference, 0) : 0;
  std::optional<operators::Type> type = operators::type_of(v->type, form);
  if (!type) {
    ASSIGN_OR_RETURN(v, plain(v));
    type = type_on_device(v->type);
    reference = 0;
  }
  operators::Vector out{.type = *type, .data = v->data, .capacity = v->capacity};
  if (!v->exact) out.size_slot = v->size_slot;
  Bounds b = v->bounds;
  if (hir::is_text(v->type) && !b.known() && v->domain && v->domain->count())
    b = {0, static_cast<int64_t>(v->domain->count()) - 1};
  if (v->type == BasicType::boolean) b = {0, 1};
  out.ascending = v->ascending && !hir::is_float(v->type) && !hir::is_text(v->type);
  if (b.known() && !hir::is_float(v->type)) {
    out.min = b.min - reference;
    out.max = b.max - reference;
  }
  return out;
}

// The columns of a vector (itself) or of a list of vectors; empty: something else. Cells that lie in one piece are
// copied out of it, each at an address of its own, as vectors are read.
Result<std::vector<ItemPtr>> Run::columns_of(const ItemPtr& v) {
  if (v->kind == Item::vector) return std::vector<ItemPtr>{v};
  std::vector<ItemPtr> columns;
  if (v->kind == Item::cells && v->parts[0]->kind == Item::vector) {
    RETURN_IF_ERROR(to_device(v->parts[0]));
    ASSIGN_OR_RETURN(const std::vector<uint64_t> offsets, offsets_of(*v));
    for (size_t k = 0; k + 1 < offsets.size(); ++k) {
      const Stretch cell{v->parts[0], offsets[k], offsets[k + 1] - offsets[k]};
      ASSIGN_OR_RETURN(columns.emplace_back(), concatenate(v->type, {&cell, 1}));
    }
    return columns;
  }
  if (v->kind == Item::picked) {
    std::vector<ItemPtr> all;
    for (size_t k = 1; k < v->parts.size(); ++k) {
      ASSIGN_OR_RETURN(const std::vector<ItemPtr> more, columns_of(v->parts[k]));
      ASSIGN_OR_RETURN(const std::vector<uint64_t> offsets, offsets_of(*v->parts[k]));
      if (more.size() + 1 != offsets.size()) return columns;  // not all are vectors
      all.insert(all.end(), more.begin(), more.end());
    }
    ASSIGN_OR_RETURN(const Value numbers, to_host(*v->parts[0]));
    for (const int64_t n : std::span(numbers.as<int64_t>(), numbers.size)) {
      if (n < 0 || static_cast<uint64_t>(n) >= all.size()) return std::vector<ItemPtr>{};
      columns.push_back(all[static_cast<size_t>(n)]);
    }
    return columns;
  }
  if (v->kind != Item::list) return columns;
  for (const ItemPtr& c : v->parts)
    if (c->kind != Item::vector) return columns;
  return v->parts;
}

ItemPtr Run::from_vector(const operators::Vector& v, BasicType type, OperatorMemory& memory) const {
  ItemPtr made = new_vector(type, v.capacity, v.size_slot == 0);
  made->stored = operators::stored_of(type, v.type);
  made->data = v.data;
  made->data_buffer = memory.buffer(v.data);
  if (v.size_slot) {
    made->size_slot = v.size_slot;
    made->size_buffer = memory.buffer(v.size_slot);
  }
  if (v.known()) made->bounds = {v.min, v.max};
  made->ascending = v.ascending;
  return made;
}

// Columns of one operator must be equally long. What the program proves need not be known by the host.
Result<bool> Run::same_lengths(std::span<const ItemPtr> columns) {
  for (const ItemPtr& c : columns) {
    const Item &a = *columns[0], &b = *c;
    if (&a == &b || (!sizes_unsure_ && !is_none(a.size_id) && a.size_id == b.size_id)) continue;
    ASSIGN_OR_RETURN(uint64_t first, size_of(*columns[0]));
    ASSIGN_OR_RETURN(uint64_t other, size_of(*c));
    if (first != other) return false;
  }
  return true;
}

Result<ItemPtr> Run::translate(const ItemPtr& v, Address table, uint64_t entries) {
  ASSIGN_OR_RETURN(operators::Vector codes, column(v));
  OperatorMemory memory(*this, arena_of(*v));
  ASSIGN_OR_RETURN(operators::Vector made, sql_->translate(codes, table, entries, memory));
  ItemPtr item = from_vector(made, v->type, memory);
  if (item->exact != v->exact && v->exact) item->exact = true;
  item->lifetime = v->lifetime;
  note_library_launches();
  return item;
}

Result<ItemPtr> Run::convert(const ItemPtr& v, BasicType to) {
  if (v->type == to) return v;
  if (hir::is_integer(v->type) && hir::is_integer(to) && encodings::plain_bytes(v->type) < encodings::plain_bytes(to)) {
    // The same elements are those of the wider type in a narrow form.
    RETURN_IF_ERROR(to_device(v));
    if (const auto form = operators::type_of(v->type, v->stored)) {
      auto made = std::make_shared<Item>(*v);
      made->host.reset();
      made->column = nullptr;
      made->fields = nullptr;
      made->decoded = nullptr;
      made->lifetime = Item::of_run;
      made->type = to;
      made->stored = operators::stored_of(to, *form);
      return made;
    }
  }
  ASSIGN_OR_RETURN(operators::Vector from, column(v));
  OperatorMemory memory(*this, engine_.buffers);
  ASSIGN_OR_RETURN(operators::Vector made, sql_->convert(from, type_on_device(to), memory));
  ItemPtr item = from_vector(made, to, memory);
  item->size_id = v->size_id;
  note_library_launches();
  return item;
}

// Two vectors whose elements are to be compared: numbers of the widest type, texts of one domain, complex numbers that have no order as i64s, where a
// NaN is equal to nothing.
Result<void> Run::to_comparable(ItemPtr& a, ItemPtr& b, bool ordered) {
  if (hir::is_text(a->type) && hir::is_text(b->type)) {
    const ItemPtr both[] = {a, b};
    const TextClasses::Class needs{.compared = true, .ordered = ordered, .comparisons = {}, .carried = {}};
    ASSIGN_OR_RETURN(DomainPtr domain, literal_domain(both, needs));
    if (!domain) {
      ASSIGN_OR_RETURN(domain, common_domain(both, needs));
    }
    ASSIGN_OR_RETURN(a, in_domain(a, domain));
    ASSIGN_OR_RETURN(b, in_domain(b, domain));
    return {};
  }
  if ((a->type == BasicType::complex || b->type == BasicType::complex) && is_number(a->type) && is_number(b->type) &&
      !ordered) {
    ItemPtr* const both[] = {&a, &b};
    return number_complex(both, false);
  }
  if (a->type == b->type || !hir::is_real(a->type) || !hir::is_real(b->type)) return {};
  const BasicType type = hir::widest(a->type, b->type);
  ASSIGN_OR_RETURN(a, convert(a, type));
  ASSIGN_OR_RETURN(b, convert(b, type));
  return {};
}

// Two vectors of one type whose elements operators compare as they lie.
Result<void> Run::to_one_form(ItemPtr& a, ItemPtr& b) {
  RETURN_IF_ERROR(to_device(a));
  RETURN_IF_ERROR(to_device(b));
  if (a->stored == b->stored) return {};
  ASSIGN_OR_RETURN(a, plain(a));
  ASSIGN_OR_RETURN(b, plain(b));
  return {};
}

void Run::note_library_launches(bool fused) {
  for (const operators::Launch& launch : sql_->take_launches()) library_launched_.push_back({launch, fused});
  pending_ = true;
}

Result<void> Run::run_operator(const Step& s) {
  auto done = [&]() -> Result<void> {
    switch (s.kind) {
      case Step::order: return order(s);
      case Step::group: return group(s);
      case Step::aggregate: return aggregate(s);
      case Step::unique: return unique(s);
      case Step::unique_cells: return unique_cells(s);
      case Step::exact_sum: return exact_sum(s);
      case Step::join: return join(s);
      case Step::member: return member(s);
      case Step::scan: return scan(s);
      case Step::index_of: return index_of(s);
      case Step::take:
      case Step::drop: return part_of(s);
      case Step::append: return append(s);
      case Step::tolist: return tolist(s);
      case Step::cells: return cells(s);
      case Step::cell_begins: return cell_begins(s);
      case Step::cell_numbers: return cell_numbers(s);
      case Step::like: return like(s);
      case Step::text_map: return text_map(s);
      default: return sub_string(s);
    }
  }();
  note_library_launches();
  if (!done) {
    return failed(fmt::format("`{}` ({})", hir::row(s.builtin).name, plan_.sources.describe(s.span)), done.error());
  }
  if (plan_.options.checks) RETURN_IF_ERROR(check_operator(s));
  if (launched_.size() + library_launched_.size() >= most_marks / 2) return wait();
  return {};
}

// What the step gave, as the host reads it, is what it must be.
Result<void> Run::check_operator(const Step& s) {
  if ((s.kind != Step::order && s.kind != Step::group && s.kind != Step::join) || s.outputs.empty() || s.outputs[0] == no_slot)
    return {};
  std::vector<Value> arguments;
  for (const uint32_t slot : s.inputs) {
    ASSIGN_OR_RETURN(const ItemPtr v, item(slot));
    ASSIGN_OR_RETURN(arguments.emplace_back(), to_host(*v));
  }
  ASSIGN_OR_RETURN(const ItemPtr made, item(s.outputs[0]));
  ASSIGN_OR_RETURN(const Value result, to_host(*made));
  const reference::Held held = reference::check_operator(s.builtin, arguments, result);
  if (!held.broken.empty())
    return Error{Fault::internal, fmt::format("{}: the result of `{}` is wrong: {}", plan_.sources.describe(s.span),
                                              hir::row(s.builtin).name, held.broken)}
        .as(Cause::finding);
  if (!held.known) return {};
  std::vector<OperatorChecks::Row>& rows = plan_.options.checks->rows;
  auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.builtin == s.builtin; });
  if (row == rows.end()) row = rows.insert(row, {.builtin = s.builtin});
  ++row->calls;
  row->rows += held.rows;
  row->incomplete += !held.complete;
  return {};
}

// --- The operators ---

Result<void> Run::order(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  ASSIGN_OR_RETURN(const std::vector<ItemPtr> columns, columns_of(in[0]));
  if (columns.empty() || in.size() < 2)
    return fall_back(s, "an argument is no vector and no list of vectors", Arguments::perhaps_wrong);
  std::optional<int64_t> most;
  if (in.size() == 3) {
    ASSIGN_OR_RETURN(const Value number, to_host(*in[2]));
    most = integer_of(number);
    if (!most) return fall_back(s, "the number of rows is not one integer", Arguments::perhaps_wrong);
  }
  ASSIGN_OR_RETURN(Value directions, to_host(*in[1]));
  if (directions.kind != Value::vector || directions.type != BasicType::boolean ||
      (directions.size != columns.size() && directions.size != 1))
    return fall_back(s, "not one direction per column", Arguments::perhaps_wrong);
  ASSIGN_OR_RETURN(bool same, same_lengths(columns));
  if (!same) return fall_back(s, "columns of different length", Arguments::perhaps_wrong);
  auto ascending = std::make_unique<bool[]>(columns.size());
  std::vector<operators::Vector> keys(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    ascending[i] = directions.as<uint8_t>()[directions.size == 1 ? 0 : i] != 0;
    ASSIGN_OR_RETURN(keys[i], column(columns[i], Reading::order));
    if (!hir::is_text(columns[i]->type)) continue;
    DomainPtr domain = domain_of(*columns[i]);
    if (domain->is_ordered()) continue;
    ASSIGN_OR_RETURN(keys[i].ranks, domain->ranks(text_tools()));
  }
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "order");
  const std::span<const bool> up(ascending.get(), columns.size());
  ASSIGN_OR_RETURN(operators::Vector made,
                   most ? sql_->top(keys, up, static_cast<uint64_t>(std::max<int64_t>(0, *most)), memory)
                        : sql_->order(keys, up, memory));
  ItemPtr result = from_vector(made, BasicType::i64, memory);
  if (!result->bounds.known())
    result->bounds = {0, static_cast<int64_t>(std::max<uint64_t>(1, columns[0]->capacity)) - 1};
  if (!most) result->size_id = columns[0]->size_id;
  assign_result(s, std::move(result));
  return {};
}

// A column as equal values have it: texts as codes of a domain of distinct texts.
Result<operators::Vector> Run::key_codes(ItemPtr v) {
  if (hir::is_text(v->type)) {
    ASSIGN_OR_RETURN(DomainPtr domain, domain_of(*v)->distinct(text_tools()));
    ASSIGN_OR_RETURN(v, in_domain(v, domain));
  }
  return column(v, Reading::order);
}

// Complex columns are two, which `parts` keeps. Codes of texts are in the order of the texts, as groups are.
Result<std::vector<operators::Vector>> Run::group_keys(std::span<const ItemPtr> columns, std::vector<ItemPtr>& parts) {
  std::vector<operators::Vector> keys;
  for (const ItemPtr& c : columns) {
    if (c->type != BasicType::complex) {
      ItemPtr v = c;
      if (hir::is_text(v->type)) {
        ASSIGN_OR_RETURN(const DomainPtr domain, ordered_domain({&c, 1}));
        ASSIGN_OR_RETURN(v, in_domain(c, domain));
      }
      ASSIGN_OR_RETURN(operators::Vector key, key_codes(v));
      keys.push_back(key);
      continue;
    }
    for (const bool imaginary : {false, true}) {
      ASSIGN_OR_RETURN(parts.emplace_back(), complex_part(c, imaginary));
      ASSIGN_OR_RETURN(operators::Vector key, column(parts.back()));
      keys.push_back(key);
    }
  }
  return keys;
}

Result<void> Run::group(const Step& s) {
  ASSIGN_OR_RETURN(ItemPtr in, item(s.inputs[0]));
  ASSIGN_OR_RETURN(const std::vector<ItemPtr> columns, columns_of(in));
  if (columns.empty()) return fall_back(s, "an argument is no vector and no list of vectors", Arguments::perhaps_wrong);
  ASSIGN_OR_RETURN(bool same, same_lengths(columns));
  if (!same) return fall_back(s, "columns of different length", Arguments::perhaps_wrong);
  std::vector<ItemPtr> parts;
  ASSIGN_OR_RETURN(const std::vector<operators::Vector> keys, group_keys(columns, parts));
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "group");
  ASSIGN_OR_RETURN(operators::Groups groups, sql_->group(keys, memory));
  const Bounds rows = {0, static_cast<int64_t>(std::max<uint64_t>(1, columns[0]->capacity)) - 1};
  ItemPtr first = from_vector(groups.keys, BasicType::i64, memory);
  ItemPtr elements = from_vector(groups.rows.elements, BasicType::i64, memory);
  first->bounds = elements->bounds = rows;
  ItemPtr cells = parts_item(Item::cells, {elements});
  cells->type = BasicType::i64;
  cells->capacity = groups.rows.count;
  cells->exact = true;
  cells->offsets = groups.rows.offsets;
  cells->offsets_buffer = memory.buffer(groups.rows.offsets);
  assign_result(s, parts_item(Item::dict, {std::move(first), std::move(cells)}));
  return {};
}

// A group and the reductions of its rows. Values that are not as long as the columns: one step after the other, as the program has them.
Result<void> Run::aggregate(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  ASSIGN_OR_RETURN(const std::vector<ItemPtr> columns, columns_of(in[0]));
  bool same = !columns.empty();
  if (same) {
    std::vector<ItemPtr> all = columns;
    for (size_t i = 1; i < in.size() && same; ++i) {
      same = in[i]->kind == Item::vector;
      all.push_back(in[i]);
    }
    if (same) {
      ASSIGN_OR_RETURN(same, same_lengths(all));
    }
  }
  if (!same) {
    std::vector<uint32_t> between;
    for (const Step& part : s.instead) {
      std::vector<Value> none;
      RETURN_IF_ERROR(step(part, none));
      for (uint32_t slot : part.outputs)
        if (slot != no_slot && std::find(s.outputs.begin(), s.outputs.end(), slot) == s.outputs.end())
          between.push_back(slot);
    }
    for (uint32_t slot : between) slots_[slot] = nullptr;
    if (!plan_.options.allow_fallback)
      return input_error(
          "{}: error: the values of a group are not as long as its columns; that runs on the reference interpreter "
          "only, which --no-fallback forbids",
          plan_.sources.describe(s.span));
    fallbacks_.push_back(
        fmt::format("{}: a fused group whose values are not as long as its columns", plan_.sources.describe(s.span)));
    return {};
  }
  std::vector<ItemPtr> parts;
  ASSIGN_OR_RETURN(const std::vector<operators::Vector> keys, group_keys(columns, parts));
  std::vector<operators::Aggregate> wanted;
  for (const Step::Reduction& r : s.reductions) {
    operators::Aggregate a{.reduce = reduce_of(r.reduce), .result = type_on_device(r.type)};
    if (a.reduce != operators::Reduce::len) {
      ItemPtr v = in[r.input];
      RETURN_IF_ERROR(to_device(v));
      const bool as_it_lies = a.reduce == operators::Reduce::distinct ||
                              (a.reduce == operators::Reduce::sum && v->stored.is_signed);
      if (!as_it_lies) {
        ASSIGN_OR_RETURN(v, plain(v));
      }
      ASSIGN_OR_RETURN(a.values, key_codes(v));
    }
    wanted.push_back(a);
  }
  note_library_launches();  // of texts: no part of the fused operator
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "group");
  auto made = sql_->aggregate(keys, wanted, plan_.sum_flags->address, memory);
  note_library_launches(true);
  if (!made) return made.error();
  ItemPtr first = from_vector(made->keys, BasicType::i64, memory);
  const auto rows = static_cast<int64_t>(std::max<uint64_t>(1, columns[0]->capacity));
  first->bounds = {0, rows - 1};
  assign(s.outputs[0], std::move(first));
  for (size_t k = 0; k < wanted.size(); ++k) {
    ItemPtr result = from_vector(made->results[k], s.reductions[k].type, memory);
    if (wanted[k].reduce == operators::Reduce::len || wanted[k].reduce == operators::Reduce::distinct) result->bounds = {0, rows};
    if (wanted[k].reduce == operators::Reduce::min || wanted[k].reduce == operators::Reduce::max)
      result->bounds = in[s.reductions[k].input]->bounds;
    assign(s.outputs[k + 1], std::move(result));
  }
  return {};
}

Result<void> Run::unique(const Step& s) {
  ASSIGN_OR_RETURN(ItemPtr v, item(s.inputs[0]));
  if (v->kind != Item::vector) return fall_back(s, "an argument is no vector", Arguments::perhaps_wrong);
  if (v->type == BasicType::complex) {
    ItemPtr* const only[] = {&v};
    RETURN_IF_ERROR(number_complex(only, true));
  }
  ASSIGN_OR_RETURN(operators::Vector keys, key_codes(v));
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "unique");
  ASSIGN_OR_RETURN(operators::Vector made, sql_->unique(keys, memory));
  ItemPtr result = from_vector(made, BasicType::i64, memory);
  result->bounds = {0, static_cast<int64_t>(std::max<uint64_t>(1, v->capacity)) - 1};
  assign_result(s, std::move(result));
  return {};
}

Result<void> Run::exact_sum(const Step& s) {
  const bool of_cells = s.builtin == Builtin::each;
  ASSIGN_OR_RETURN(ItemPtr v, item(s.inputs[of_cells ? 1 : 0]));
  Builtin builtin = s.builtin;
  if (of_cells) {
    ASSIGN_OR_RETURN(ItemPtr function, item(s.inputs[0]));
    ASSIGN_OR_RETURN(const Value named, to_host(*function));
    builtin = named.functions_.front().builtin_id;
  }
  const bool is_list = v->kind == Item::cells || v->kind == Item::list;
  if (of_cells ? !is_list : v->kind != Item::vector) return fall_back(s, "another argument", Arguments::perhaps_wrong);
  if (v->kind == Item::list && v->parts.empty()) return fall_back(s, "a list without cells");
  if (of_cells) RETURN_IF_ERROR(cells_to_device(v));
  const ItemPtr elements = of_cells ? v->parts[0] : v;
  if (!hir::is_float(elements->type) && !(elements->type == BasicType::i64 && builtin == Builtin::avg))
    return fall_back(s, "a sum of integers");
  const BasicType type = hir::is_float(elements->type) ? elements->type : BasicType::f64;
  operators::Cells cells{.count = 1};
  ASSIGN_OR_RETURN(const uint64_t flat, size_of(*elements));
  ASSIGN_OR_RETURN(cells.elements, column(elements));
  cells.elements.capacity = flat;
  if (of_cells) {
    cells.offsets = v->offsets;
    ASSIGN_OR_RETURN(cells.count, size_of(*v));
  }
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "sum");
  ASSIGN_OR_RETURN(operators::Vector made,
                   sql_->exact_sums(cells, builtin == Builtin::avg, type_on_device(type), memory));
  ItemPtr result = from_vector(made, type, memory);
  if (of_cells) {
    ItemPtr list = parts_item(Item::cells, {result});
    list->type = type;
    list->capacity = cells.count;
    list->exact = true;
    result = std::move(list);
  }
  assign_result(s, std::move(result));
  return {};
}
Result<void> Run::unique_cells(const Step& s) {
  ASSIGN_OR_RETURN(ItemPtr v, item(s.inputs[1]));
  if (v->kind != Item::cells && v->kind != Item::list)
    return fall_back(s, "an argument is no list", Arguments::perhaps_wrong);
  if (v->kind == Item::list && v->parts.empty()) return fall_back(s, "a list without cells");
  RETURN_IF_ERROR(cells_to_device(v));
  ItemPtr elements = v->parts[0];
  if (elements->type == BasicType::complex) {
    ItemPtr* const only[] = {&elements};
    RETURN_IF_ERROR(number_complex(only, true));
  }
  ASSIGN_OR_RETURN(uint64_t count, size_of(*v));
  ASSIGN_OR_RETURN(uint64_t flat, size_of(*elements));
  ASSIGN_OR_RETURN(operators::Vector keys, key_codes(elements));
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "unique");
  ASSIGN_OR_RETURN(operators::Cells made, sql_->unique_cells({keys, v->offsets, count}, memory));
  ItemPtr places = from_vector(made.elements, BasicType::i64, memory);
  places->bounds = {0, static_cast<int64_t>(std::max<uint64_t>(1, flat)) - 1};
  ItemPtr cells = parts_item(Item::cells, {std::move(places)});
  cells->type = BasicType::i64;
  cells->capacity = made.count;
  cells->exact = true;
  cells->offsets = made.offsets;
  cells->offsets_buffer = memory.buffer(made.offsets);
  assign_result(s, std::move(cells));
  return {};
}

Result<void> Run::join(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  std::vector<operators::Compare> compare;
  for (size_t i = 0; i + 2 < in.size(); ++i) {
    if (!in[i]->host || in[i]->host->kind != Value::functions)
      return fall_back(s, "a predicate is no function", Arguments::perhaps_wrong);
    for (const hir::FunctionRef& f : in[i]->host->functions_) {
      operators::Compare c{};
      if (f.kind != hir::FunctionRef::builtin || !find_compare(f.builtin_id, c))
        return fall_back(s, "a predicate is no comparison", Arguments::perhaps_wrong);
      compare.push_back(c);
    }
  }
  ASSIGN_OR_RETURN(std::vector<ItemPtr> left, columns_of(in[in.size() - 2]));
  ASSIGN_OR_RETURN(std::vector<ItemPtr> right, columns_of(in[in.size() - 1]));
  if (left.empty() || right.empty() || left.size() != right.size())
    return fall_back(s, "the sides have no columns that match", Arguments::perhaps_wrong);
  if (compare.size() == 1 && left.size() > 1) compare.resize(left.size(), compare[0]);
  if (compare.size() != left.size()) return fall_back(s, "not one predicate per column", Arguments::perhaps_wrong);
  for (std::vector<ItemPtr>* side : {&left, &right}) {  // a column of one element stands for all rows
    std::vector<ItemPtr> rows;
    for (const ItemPtr& c : *side)
      if (!(c->exact && c->capacity == 1)) rows.push_back(c);
    if (rows.empty()) continue;
    ASSIGN_OR_RETURN(bool same, same_lengths(rows));
    if (!same) return fall_back(s, "columns of different length", Arguments::perhaps_wrong);
  }
  // Numbers that stand for complex ones have a length that the host knows; then so must the columns beside them.
  const auto is_complex = [](const ItemPtr& c) { return c->type == BasicType::complex; };
  if (std::any_of(left.begin(), left.end(), is_complex) || std::any_of(right.begin(), right.end(), is_complex))
    for (const std::vector<ItemPtr>* side : {&left, &right})
      for (const ItemPtr& c : *side) {
        ASSIGN_OR_RETURN([[maybe_unused]] const uint64_t known, size_of(*c));
      }
  uint64_t rows[2] = {0, 0};
  for (int k = 0; k < 2; ++k)
    for (const ItemPtr& c : k == 0 ? left : right) rows[k] = std::max(rows[k], c->capacity);
  std::vector<operators::Vector> l(left.size()), r(right.size());
  for (size_t i = 0; i < left.size(); ++i) {
    const bool text = hir::is_text(left[i]->type);
    if (text != hir::is_text(right[i]->type)) return fall_back(s, "text against numbers", Arguments::perhaps_wrong);
    RETURN_IF_ERROR(
        to_comparable(left[i], right[i], compare[i] != operators::Compare::eq && compare[i] != operators::Compare::neq));
    if (left[i]->type == BasicType::complex)
      return fall_back(s, "complex numbers have no order", Arguments::perhaps_wrong);
    if (left[i]->type != right[i]->type && !text)
      return fall_back(s, "columns of types that do not compare", Arguments::perhaps_wrong);
    RETURN_IF_ERROR(to_one_form(left[i], right[i]));
    ASSIGN_OR_RETURN(l[i], column(left[i], Reading::order));
    ASSIGN_OR_RETURN(r[i], column(right[i], Reading::order));
  }
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "join_index");
  ASSIGN_OR_RETURN(operators::Pairs pairs, sql_->join(compare, l, r, memory));
  ItemPtr of_left = from_vector(pairs.left, BasicType::i64, memory);
  ItemPtr of_right = from_vector(pairs.right, BasicType::i64, memory);
  of_left->bounds = {0, static_cast<int64_t>(std::max<uint64_t>(1, rows[0])) - 1};
  of_right->ascending = true;
  of_right->bounds = {0, static_cast<int64_t>(std::max<uint64_t>(1, rows[1])) - 1};
  assign_result(s, parts_item(Item::list, {std::move(of_left), std::move(of_right)}));
  return {};
}

Result<void> Run::member(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  ItemPtr x = in[0], set = in[1];
  if (x->kind != Item::vector || set->kind != Item::vector || hir::is_text(x->type) != hir::is_text(set->type))
    return fall_back(s, "arguments that are no vectors of one type", Arguments::perhaps_wrong);
  RETURN_IF_ERROR(to_comparable(x, set));
  if (x->type != set->type && !hir::is_text(x->type))
    return fall_back(s, "arguments of types that do not compare", Arguments::perhaps_wrong);
  ASSIGN_OR_RETURN(operators::Vector a, column(x));
  ASSIGN_OR_RETURN(operators::Vector b, column(set));
  if (!operators::are_comparable(a.type, b.type)) {
    RETURN_IF_ERROR(to_one_form(x, set));
    ASSIGN_OR_RETURN(a, column(x));
    ASSIGN_OR_RETURN(b, column(set));
  }
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "member");
  ASSIGN_OR_RETURN(operators::Vector made, sql_->member(a, b, memory));
  ItemPtr result = from_vector(made, BasicType::boolean, memory);
  result->size_id = in[0]->size_id;
  assign_result(s, std::move(result));
  return {};
}

Result<void> Run::index_of(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  ItemPtr x = in[0], y = in[1];
  if (x->kind != Item::vector || y->kind != Item::vector || hir::is_text(x->type) != hir::is_text(y->type))
    return fall_back(s, "arguments that are no vectors of one type", Arguments::perhaps_wrong);
  RETURN_IF_ERROR(to_comparable(x, y));
  if (x->type != y->type && !hir::is_text(x->type))
    return fall_back(s, "arguments of types that do not compare", Arguments::perhaps_wrong);
  RETURN_IF_ERROR(to_one_form(x, y));
  ASSIGN_OR_RETURN(operators::Vector a, column(x, Reading::order));
  ASSIGN_OR_RETURN(operators::Vector b, column(y, Reading::order));
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "index_of");
  ASSIGN_OR_RETURN(operators::Vector made, sql_->index_of(a, b, memory));
  ItemPtr result = from_vector(made, BasicType::i64, memory);
  result->size_id = in[0]->size_id;
  assign_result(s, std::move(result));
  return {};
}

Result<void> Run::scan(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  const ItemPtr &x = in[0], &starts = in[1];
  const bool summed = s.builtin == Builtin::scan_sum;
  if (x->kind != Item::vector || starts->kind != Item::vector || starts->type != BasicType::boolean ||
      !(hir::is_real(x->type) || (!summed && hir::is_calendar(x->type))))
    return fall_back(s, "arguments that are no vectors of numbers and of bool", Arguments::perhaps_wrong);
  ASSIGN_OR_RETURN(bool same, same_lengths(in));
  if (!same) return fall_back(s, "vectors of different length", Arguments::perhaps_wrong);
  ASSIGN_OR_RETURN(operators::Vector values, column(x));
  ASSIGN_OR_RETURN(operators::Vector begins, column(starts));
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "scan");
  const auto operation = summed                            ? operators::Scan::sum
                         : s.builtin == Builtin::scan_min ? operators::Scan::min
                                                           : operators::Scan::max;
  ASSIGN_OR_RETURN(operators::Vector made, sql_->scan(operation, values, begins, memory));
  ItemPtr result = from_vector(made, summed && !hir::is_float(x->type) ? BasicType::i64 : x->type, memory);
  result->size_id = x->size_id;
  if (!summed) result->bounds = x->bounds;
  assign_result(s, std::move(result));
  return {};
}

// --- Runs of elements ---

Result<ItemPtr> Run::concatenate(BasicType type, std::span<const Stretch> parts) {
  // All in one form, in which zeros are zeros.
  std::vector<Stretch> stretches(parts.begin(), parts.end());
  std::optional<encodings::Stored> form;
  bool same = true, zeros = false;
  for (const Stretch& part : stretches) {
    zeros |= !part.from;
    if (part.from && !form) form = part.from->stored;
    same = same && (!part.from || part.from->stored == *form);
  }
  if (form && (!same || !encodings::find(*form).addressed() || (zeros && form->reference))) {
    for (Stretch& part : stretches)
      if (part.from) {
        ASSIGN_OR_RETURN(part.from, plain(part.from));
      }
    form.reset();
  }
  uint64_t count = 0;
  Bounds bounds;
  DomainPtr domain;
  bool known = true;
  for (const Stretch& part : stretches) {
    count += part.count;
    const Bounds b = part.from ? part.from->bounds : Bounds{0, 0};
    if (part.from && part.from->domain) domain = part.from->domain;
    if (part.count == 0) continue;
    known = known && b.known();
    bounds = bounds.known() ? Bounds{std::min(bounds.min, b.min), std::max(bounds.max, b.max)} : b;
  }
  ItemPtr made = new_vector(type, count, true);
  if (known) made->bounds = bounds;
  made->domain = domain;
  if (form) made->stored = *form;
  const uint64_t width = device_bytes(*made, 1);
  ASSIGN_OR_RETURN(made->data_buffer, engine_.buffers.allocate(std::max<uint64_t>(1, count * width)));
  made->data = made->data_buffer->address;
  Address to = made->data;
  for (const Stretch& part : stretches) {
    if (part.count == 0) continue;
    if (part.from)
      RETURN_IF_ERROR(device_.copy(to, part.from->data + part.first * width, part.count * width));
    else
      RETURN_IF_ERROR(device_.fill(to, 0, part.count * width));
    to += part.count * width;
  }
  RETURN_IF_ERROR(size_to_device(*made));
  pending_ = true;
  return made;
}

Result<void> Run::part_of(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  ItemPtr x = in[1];
  ASSIGN_OR_RETURN(Value number, to_host(*in[0]));
  const std::optional<int64_t> count = integer_of(number);
  if (x->kind != Item::vector || !count)
    return fall_back(s, "an argument is no vector or no number", Arguments::perhaps_wrong);
  const int64_t k = *count;
  const uint64_t wanted = k < 0 ? 0 - static_cast<uint64_t>(k) : static_cast<uint64_t>(k);
  if (s.kind == Step::take && wanted > data::longest_vector)
    return fall_back(s, "too many elements", Arguments::perhaps_wrong);
  ASSIGN_OR_RETURN(uint64_t n, size_of(*x));
  const uint64_t near = std::min(wanted, n);  // elements from the end that the sign names
  Stretch part = s.kind == Step::take ? Stretch{x, k < 0 ? n - near : 0, near} : Stretch{x, k < 0 ? 0 : near, n - near};
  Stretch padding{nullptr, 0, s.kind == Step::take ? wanted - near : 0};
  if (padding.count && hir::is_text(x->type)) {
    padding.from = host_item(reference::vector_of_texts(x->type, std::vector<std::string>(padding.count)));
    const ItemPtr both[] = {x, padding.from};
    ASSIGN_OR_RETURN(DomainPtr domain, common_domain(both, {.escapes = true, .comparisons = {}, .carried = {}}));
    ASSIGN_OR_RETURN(part.from, in_domain(x, domain));
    ASSIGN_OR_RETURN(padding.from, in_domain(padding.from, domain));
  }
  RETURN_IF_ERROR(to_device(part.from));
  const Stretch both[] = {k < 0 ? padding : part, k < 0 ? part : padding};
  ASSIGN_OR_RETURN(ItemPtr made, concatenate(x->type, both));
  if (!padding.count) made->ascending = x->ascending;
  assign_result(s, std::move(made));
  return {};
}

Result<void> Run::append(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  ItemPtr x = in[0], y = in[1];
  const bool texts = hir::is_text(x->type) && hir::is_text(y->type);
  if (x->kind != Item::vector || y->kind != Item::vector ||
      (!texts && x->type != y->type && !(is_number(x->type) && is_number(y->type))))
    return fall_back(s, "arguments that are no vectors of one type", Arguments::perhaps_wrong);
  const bool complex = x->type == BasicType::complex || y->type == BasicType::complex;
  const BasicType type = texts || x->type == y->type ? x->type
                         : complex                   ? BasicType::complex
                                                     : hir::widest(x->type, y->type);
  if (texts) {
    const ItemPtr both[] = {x, y};
    ASSIGN_OR_RETURN(DomainPtr domain, common_domain(both, {.escapes = true, .comparisons = {}, .carried = {}}));
    ASSIGN_OR_RETURN(x, in_domain(x, domain));
    ASSIGN_OR_RETURN(y, in_domain(y, domain));
  } else if (complex) {
    ASSIGN_OR_RETURN(x, to_complex(x));
    ASSIGN_OR_RETURN(y, to_complex(y));
  } else {
    ASSIGN_OR_RETURN(x, convert(x, type));
    ASSIGN_OR_RETURN(y, convert(y, type));
  }
  RETURN_IF_ERROR(to_device(x));
  RETURN_IF_ERROR(to_device(y));
  ASSIGN_OR_RETURN(uint64_t n, size_of(*x));
  ASSIGN_OR_RETURN(uint64_t m, size_of(*y));
  if (n + m > data::longest_vector) return fall_back(s, "too many elements", Arguments::perhaps_wrong);
  const Stretch both[] = {{x, 0, n}, {y, 0, m}};
  ASSIGN_OR_RETURN(ItemPtr made, concatenate(type, both));
  assign_result(s, std::move(made));
  return {};
}

// Every element a cell.
Result<void> Run::tolist(const Step& s) {
  ASSIGN_OR_RETURN(ItemPtr x, item(s.inputs[0]));
  if (x->kind != Item::vector) return fall_back(s, "the argument is no vector", Arguments::perhaps_wrong);
  RETURN_IF_ERROR(to_device(x));
  ItemPtr list = parts_item(Item::cells, {x});
  list->type = x->type;
  list->capacity = x->capacity;
  list->exact = x->exact;
  list->size_slot = x->size_slot;
  list->size_buffer = x->size_buffer ? x->size_buffer : x->data_buffer;
  assign_result(s, std::move(list));
  return {};
}

// Elements, or the cells of a list, as the cells of another.
Result<void> Run::cells(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  const ItemPtr &x = in[0], &lengths = in[1];
  if ((x->kind != Item::vector && x->kind != Item::cells && x->kind != Item::picked) ||
      lengths->kind != Item::vector)
    return fall_back(s, "the argument is no vector and no list in pieces", Arguments::perhaps_wrong);
  RETURN_IF_ERROR(to_device(x));
  ASSIGN_OR_RETURN(const CellOffsets offsets, cell_offsets(lengths));
  ItemPtr list = parts_item(Item::cells, {x});
  list->type = x->type;
  list->capacity = lengths->capacity;
  list->exact = lengths->exact;
  list->size_slot = lengths->size_slot;
  list->size_buffer = lengths->size_buffer ? lengths->size_buffer : lengths->data_buffer;
  list->offsets = offsets.vector.data;
  list->offsets_buffer = offsets.buffer;
  assign_result(s, std::move(list));
  return {};
}

// Where cells of these lengths begin, and their end. They are made once, and kept with lengths of this run.
Result<Run::CellOffsets> Run::cell_offsets(const ItemPtr& lengths) {
  ASSIGN_OR_RETURN(const operators::Vector n, column(lengths));
  CellOffsets out{{.type = operators::Type::i64, .data = lengths->offsets, .capacity = n.capacity + 1},
                  lengths->offsets_buffer};
  if (out.vector.data) return out;
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "offsets");
  ASSIGN_OR_RETURN(out.vector, sql_->offsets(n, memory));
  out.buffer = memory.buffer(out.vector.data);
  if (lengths->lifetime == Item::of_run) lengths->offsets = out.vector.data, lengths->offsets_buffer = out.buffer;
  return out;
}

Result<void> Run::cell_begins(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  if (in[0]->kind != Item::vector) return fall_back(s, "the argument is no vector", Arguments::perhaps_wrong);
  ASSIGN_OR_RETURN(const CellOffsets offsets, cell_offsets(in[0]));
  ItemPtr result = new_vector(BasicType::i64, in[0]->capacity, in[0]->exact);
  result->stored = operators::stored_of(BasicType::i64, operators::Type::i64);
  result->data = offsets.vector.data;
  result->data_buffer = offsets.buffer;
  result->size_slot = in[0]->size_slot;
  result->size_buffer = in[0]->size_buffer ? in[0]->size_buffer : in[0]->data_buffer;
  result->size_id = in[0]->size_id;
  result->ascending = true;
  assign_result(s, std::move(result));
  return {};
}

Result<void> Run::cell_numbers(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  if (std::any_of(in.begin(), in.end(), [](const ItemPtr& v) { return v->kind != Item::vector; }))
    return fall_back(s, "an argument is no vector", Arguments::perhaps_wrong);
  ASSIGN_OR_RETURN(const operators::Vector lengths, column(in[0]));
  operators::Vector like;
  if (in.size() == 2) {
    RETURN_IF_ERROR(to_device(in[1]));
    RETURN_IF_ERROR(learn_length(*in[1]));
    like.capacity = in[1]->capacity;
    if (!in[1]->exact) like.size_slot = in[1]->size_slot;
  }
  ASSIGN_OR_RETURN(const CellOffsets offsets, cell_offsets(in[0]));
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "cell_numbers");
  ASSIGN_OR_RETURN(operators::Vector made,
                   sql_->cell_numbers(lengths, offsets.vector, in.size() == 2 ? &like : nullptr, memory));
  ItemPtr result = from_vector(made, BasicType::i64, memory);
  if (in.size() == 2) result->size_id = in[1]->size_id;
  assign_result(s, std::move(result));
  return {};
}

// Once per text of the domain, then by code.
Result<void> Run::like(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  const ItemPtr& x = in[0];
  if (x->kind != Item::vector || in[1]->kind != Item::vector)
    return fall_back(s, "an argument is no vector", Arguments::perhaps_wrong);
  ASSIGN_OR_RETURN(Value pattern, to_host(*in[1]));
  if (plan_.options.like == EngineOptions::Like::cpu) return builtin(s);  // asked for, so no fallback
  if (!pattern.is_text_vector() || pattern.size != 1)
    return fall_back(s, "the pattern is not one text", Arguments::perhaps_wrong);
  DomainPtr domain = domain_of(*x);
  ItemPtr result;
  if (domain->count() == 0) {
    result = host_item(reference::vector_from_bytes(BasicType::boolean, 0, std::vector<std::byte>{}));
    assign_result(s, std::move(result));
    return {};
  }
  std::vector<BufferPtr> held;
  operators::Strings strings;
  {
    auto scope = timings_.measure(Phase::transfer, "strings");
    const bool keep = x->lifetime == Item::of_engine || !x->codes_are_rows;
    ASSIGN_OR_RETURN(strings,
                     domain->strings(text_tools(), keep && plan_.options.like != EngineOptions::Like::gpu, held));
  }
  OperatorMemory memory(*this, engine_.buffers);
  auto scope = timings_.measure(library_phase(), "like");
  ASSIGN_OR_RETURN(operators::Vector per_text, sql_->like(strings, pattern.text(0), memory));
  if (x->codes_are_rows && x->exact && x->capacity == domain->count()) {
    result = from_vector(per_text, BasicType::boolean, memory);
  } else {
    ASSIGN_OR_RETURN(operators::Vector codes, column(x));
    ASSIGN_OR_RETURN(operators::Vector made, sql_->gather(codes, operators::Type::u8, per_text.data, per_text.capacity, memory));
    result = from_vector(made, BasicType::boolean, memory);
  }
  result->size_id = x->size_id;
  assign_result(s, std::move(result));
  return {};
}

// The codes stay; what they mean is cut.
Result<void> Run::sub_string(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  const ItemPtr& x = in[0];
  if (x->kind != Item::vector || in.size() != 2) return builtin(s);
  ASSIGN_OR_RETURN(Value range, to_host(*in[1]));
  int64_t from = 0, count = 0;
  if (range.kind != Value::vector || range.size != 2) return builtin(s);
  switch (range.type) {
    case BasicType::i32: from = range.as<int32_t>()[0], count = range.as<int32_t>()[1]; break;
    case BasicType::i64: from = range.as<int64_t>()[0], count = range.as<int64_t>()[1]; break;
    default: return builtin(s);
  }
  if (from < 1 || count < 0) return builtin(s);
  auto scope = timings_.measure(Phase::cpu, "sub_string");
  const auto piece = std::make_pair(static_cast<uint64_t>(from) - 1, static_cast<uint64_t>(count));
  for (const Item::Piece& known : x->pieces)
    if (known.range == piece) {
      assign_result(s, known.item);
      return {};
    }
  DomainPtr domain = domain_of(*x);
  if (!x->codes_are_rows) RETURN_IF_ERROR(to_device(x));
  auto made = std::make_shared<Item>(*x);
  made->host.reset();
  made->column = nullptr;
  made->translated = made->decoded = nullptr;
  made->pieces.clear();
  made->domain = domain->pieces(piece.first, piece.second);
  x->pieces.push_back({piece, made});
  assign_result(s, std::move(made));
  return {};
}

}  // namespace rndn::runtime
