// What a run will do, told from the columns that it reads, before its kernels have machine code: in
// which forms their elements will lie, which is what their code hangs on, and which groups will be
// no folds, and which joins look among rows whose keys may repeat. So a first run has its kernels assembled side by side, in one module, and only those
// that it launches.
//
// In: a program whose kernels have PTX for plain elements, columns that are in memory. Out: a
// Forecast (runtime/compiler/compile.h). The steps are walked as a run walks them, on the same
// values without device memory, by the functions that a run uses (bounds_in, geometry, fold_way,
// make_output, forms_of). What an operator or the host will give is taken to be as long as it can
// be, groups to be few, as most are. Forms are checked where a kernel is launched: what comes in
// another one costs code of its own. A fold is given up here only where it would be whatever is
// unsure turns out to be.
//
// Cost: of a walk over the steps; nothing is read but columns' statistics. Left out: kernels of
// lists that lie on the host, and what reads a value of them.
#include <algorithm>
#include <cmath>

#include "frontend/builtins.h"
#include "ptx/lookup/lookup.h"
#include "runtime/run/execution.h"

namespace rndn::runtime {

using hir::BasicType;

namespace {

// As kernels take it: a vector, or a list in one piece.
bool is_for_kernels(const Item& v) { return v.kind == Item::vector || (v.kind == Item::cells && !v.parts.empty()); }

// Whether results of the step have no more rows than its arguments.
bool keeps_rows(Step::Kind kind) {
  switch (kind) {
    case Step::order:
    case Step::group:
    case Step::aggregate:
    case Step::unique:
    case Step::member:
    case Step::index_of:
    case Step::scan:
    case Step::like:
    case Step::sub_string:
    case Step::text_map:
    case Step::drop:
    case Step::length:
    case Step::len:
    case Step::launch: return true;
    default: return false;
  }
}

uint64_t longest_of(const ItemPtr& v) {
  if (!v) return 0;
  uint64_t longest = v->capacity;
  if (v->kind != Item::table)
    for (const ItemPtr& part : v->parts) longest = std::max(longest, longest_of(part));
  return longest;
}

// How many different ones of so many there are in so many draws.
double different(double draws, double of) { return of > 0 && std::isfinite(of) ? of * -std::expm1(-draws / of) : draws; }

// The share of a column's texts that a pattern of LIKE has: of texts of a sample, spread evenly.
double share_like(const data::Column& column, std::string_view pattern) {
  constexpr uint64_t most = 1024;
  auto like = text::TextFunction::make(hir::TextFunctionId::like);
  if (!like || column.rows == 0) return -1;
  const uint64_t texts = std::min(most, column.rows);
  uint64_t have = 0;
  for (uint64_t k = 0; k < texts; ++k) {
    const text::TextArgument in[] = {{.text = column.text_at(k * (column.rows / texts))}, {.text = pattern}};
    text::TextResult out;
    have += (*like)(in, out) && out.integer != 0;
  }
  return static_cast<double>(have) / static_cast<double>(texts);
}

Bounds rows_below(uint64_t rows) { return {0, static_cast<int64_t>(std::max<uint64_t>(1, rows)) - 1}; }

// Where the statement of the first call is that is wanted.
template <class Wanted>
std::string place_of_call(const SourceManager& sources, const hir::Function& f, hir::Builtin builtin, const Wanted& wanted) {
  for (hir::StatementId id : f.blocks[f.body].statements) {
    const hir::Statement& s = f.statements[id];
    if (s.kind != hir::Statement::assign) continue;
    hir::ExpressionId value = s.value;
    while (f.expressions[value].kind == hir::Expression::cast) value = f.expressions[value].inner;
    const hir::Expression& e = f.expressions[value];
    if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::builtin || e.callee.builtin_id != builtin)
      continue;
    if (wanted(e) && s.span.known()) return sources.describe(s.span);
  }
  return "no place";
}

}  // namespace

// Where the statement of that call is that has the number as an operand.
std::string Run::place_of(const hir::Function& f, hir::Builtin builtin, size_t operand,
                          std::span<const int64_t> numbers) const {
  return place_of_call(plan_.sources, f, builtin, [&](const hir::Expression& e) {
    const hir::Operand& o = e.operands[operand];
    if (o.kind != hir::Operand::literal) return false;
    const auto* number = std::get_if<std::vector<int64_t>>(&program().literals[o.literal_id()].values);
    return number && std::find(numbers.begin(), numbers.end(), number->front()) != numbers.end();
  });
}

void Run::tell_fold(bool again, const hir::Function& f, int64_t number, const std::string& what) {
  if (!choices_) return;
  (again ? choices_->again : choices_->kept)
      .push_back(fmt::format("{}: a group: {}", place_of(f, hir::Builtin::gpu_fold, 2, {&number, 1}), what));
}

void Run::tell_join(bool again, const hir::Function& f, const codegen::KernelCode::Lookup& lookup, const Item& column,
                    const std::vector<encodings::Stored>* forms) {
  if (!choices_ || !lookup.join) return;
  const int64_t numbers[] = {*lookup.join, -2 - *lookup.join};
  std::string what = "a join: ";
  if (lookup.masked)
    what += again
                ? "only among the rows that are selected, since keys of all rows may repeat"
                : "among all rows of its table, of which a mask says which count, since keys of all rows are different";
  else
    what += "among the rows that are left of its table";
  if (forms) {
    what += "; each key from the least to the greatest is there, and needs no table of rows";
    if (!forms->empty())
      what += fmt::format("; what is read of a row lies in a record of {} by key", forms->front().bytes == 1 ? "1 byte" : fmt::format("{} bytes", forms->front().bytes));
  }
  switch (const uint8_t form = again || forms ? 0 : kept_form(lookup, column, nullptr); form) {
    case 1 + lookup::ascending: what += "; keys ascend by one, and need no table of rows"; break;
    case 1 + lookup::direct:
      what += fmt::format("; a table with an entry for each key from {} to {}", column.column->statistics.min,
                          column.column->statistics.max);
      break;
    default: break;
  }
  (again ? choices_->again : choices_->kept)
      .push_back(fmt::format("{}: {}", place_of(f, hir::Builtin::gpu_probe, 0, numbers), what));
}

void Run::tell_collecting(const Step& s, uint64_t elements, std::span<const ItemPtr> inputs, std::span<const VariableBounds> bounds) {
  const codegen::KernelCode& code = plan_.compiled.code.kernels[s.kernel];
  if (!choices_ || code.collected.empty()) return;
  const double share = share_of_collected(s, elements, inputs, bounds);
  choices_->kept.push_back(fmt::format(
      "{}: {} % of its rows are left by conditions, as bounds of columns tell: {}", code.name,
      std::max(1, static_cast<int>(100 * share + 0.5)),
      collects(s, elements, inputs, bounds)
          ? std::string("warps collect them before the rest is evaluated")
          : fmt::format("evaluated where they lie; {} % or fewer, of {} rows or more, would be collected if no place that is read can be outside",
                        static_cast<int>(100 * plan_.options.most_collected + 0.5), plan_.options.collected_rows)));
}

void Run::tell_filter(const hir::Function& f, size_t lookup, uint64_t rows, uint64_t elements) {
  if (!choices_ || rows == 0) return;
  std::vector<uint8_t> form(1);
  note_filters({&rows, 1}, elements, form);
  size_t before = 0;
  const std::string place = place_of_call(plan_.sources, f, hir::Builtin::gpu_probe,
                                          [&](const hir::Expression&) { return before++ == lookup; });
  choices_->kept.push_back(fmt::format(
      "{}: a look-up of {} keys: {}", place, elements,
      form[0] ? fmt::format("a bit is read before the table, if no more than {} of the {} rows that there may be are selected",
                            rows / operators::least_absent, rows)
              : fmt::format("no bits before the table, since that may have {} rows", rows)));
}

Forecast Run::forecast(DataChoices* choices) {
  Forecast found;
  choices_ = choices;
  if (choices_) choices_->kept.clear(), choices_->work.clear(), choices_->columns.clear();
  found.forms.resize(plan_.compiled.outlined.kernels.size());
  is_forecast_ = true;
  most_rows_.assign(slots_.size(), 0);
  expected_.assign(slots_.size(), {});
  for (const Step& s : plan_.steps.steps) {
    if (s.kind == Step::results) break;
    bool known = true, sure = true;
    uint64_t rows = 0;
    for (uint32_t slot : s.inputs) {
      known &= slots_[slot] != nullptr;
      sure &= most_rows_[slot] == 0;
      rows = std::max({rows, most_rows_[slot], longest_of(slots_[slot])});
    }
    std::vector<Value> none;
    switch (s.kind) {
      case Step::copy:
      case Step::load_table:
      case Step::column_value:
      case Step::column_valid:
      case Step::check_cast:
      case Step::list:
      case Step::table:
      case Step::keys:
      case Step::values:
      case Step::fetch:
      case Step::index_list:
      case Step::raze: known = known && step(s, none).ok(); break;
      case Step::launch: known = known && forecast_launch(s, found, sure); break;
      default: known = false; break;
    }
    if (!known) expect_results(s, rows);
    const uint64_t most = known || keeps_rows(s.kind) ? rows : data::longest_vector;
    expect_of_step(s, known, rows);
    for (uint32_t slot : s.outputs)
      if (slot != no_slot) most_rows_[slot] = known && sure ? 0 : std::max<uint64_t>(1, most);
  }
  is_forecast_ = false;
  return found;
}

// What the step's results may be: of the types of their variables, with as many rows as its
// longest argument may have, or fewer.
void Run::expect_results(const Step& s, uint64_t most_rows) {
  uint64_t rows = most_rows;
  if (s.kind == Step::aggregate || s.kind == Step::group) rows = std::min(rows, least_encoded - 1);
  if (s.kind == Step::order && s.inputs.size() == 3 && slots_[s.inputs[2]])  // that many
    if (const Bounds top = slots_[s.inputs[2]]->bounds; top.known() && top.min == top.max)
      rows = std::min(rows, static_cast<uint64_t>(std::max<int64_t>(0, top.max)));
  const auto row_numbers = [&] {
    ItemPtr made = new_vector(BasicType::i64, rows, false);
    made->bounds = rows_below(most_rows);
    return made;
  };
  const hir::Function& main = program().functions[program().main];
  for (size_t i = 0; i < s.outputs.size(); ++i) {
    const uint32_t slot = s.outputs[i];
    if (slot == no_slot) continue;
    ItemPtr& made = slots_[slot];
    made = nullptr;
    BasicType type{};
    bool is_list = false;
    const bool has_type =
        slot < main.variables.size() &&
        element_type(*program().types, main.variables[static_cast<hir::VariableId>(slot)].type, type, is_list);
    switch (s.kind) {
      case Step::group: {
        ItemPtr cells = parts_item(Item::cells, {row_numbers()});
        cells->type = BasicType::i64;
        cells->capacity = rows;
        made = parts_item(Item::dict, {row_numbers(), std::move(cells)});
        break;
      }
      case Step::join: made = parts_item(Item::list, {row_numbers(), row_numbers()}); break;
      case Step::order:
      case Step::unique:
      case Step::index_of: made = row_numbers(); break;
      case Step::aggregate: made = i == 0 ? row_numbers() : new_vector(s.reductions[i - 1].type, rows, false); break;
      case Step::length:
      case Step::len:
        if (!has_type || type != BasicType::i64 || is_list) break;
        made = new_vector(type, 1, true);
        made->bounds = {0, static_cast<int64_t>(rows)};
        break;
      default:
        if (!has_type) break;
        made = new_vector(type, rows, false);
        if (is_list) {
          made = parts_item(Item::cells, {made});
          made->type = type;
          made->capacity = rows;
        }
        break;
    }
  }
}

// How long its results will be; a launch that is known has said so. What is no kernel is noted, where it works at all.
void Run::expect_of_step(const Step& s, bool known, uint64_t most) {
  if (!choices_ || (s.kind == Step::launch && known)) return;
  if (!known && s.kind != Step::length && s.kind != Step::len) {
    choices_->work.push_back({.name = s.kind == Step::launch ? plan_.compiled.code.kernels[s.kernel].name : "an operator",
                              .is_kernel = false});
    for (uint32_t slot : s.inputs)
      if (slot != no_slot && slots_[slot]) tell_read_whole(*slots_[slot]);
  }
  Expected of;
  for (uint32_t slot : s.inputs)
    if (slot != no_slot && slot < expected_.size()) of.rows = std::max(of.rows, expected_[slot].rows);
  if (s.kind == Step::like && s.inputs.size() == 2 && slots_[s.inputs[0]] && slots_[s.inputs[1]])
    if (const Item &texts = *slots_[s.inputs[0]], &pattern = *slots_[s.inputs[1]];
        texts.column && hir::is_text(texts.column->type) && pattern.host && pattern.host->is_text_vector() && pattern.host->size == 1)
      of.chance = share_like(*texts.column, pattern.host->text(0));
  if (s.kind == Step::copy && !s.inputs.empty()) of.chance = expected_[s.inputs[0]].chance;
  for (uint32_t slot : s.outputs) {
    if (slot == no_slot) continue;
    const auto longest = static_cast<double>(std::max(longest_of(slots_[slot]), slots_[slot] ? uint64_t{0} : most));
    expected_[slot] = {.rows = of.rows > 0 ? std::min(of.rows, longest) : longest, .chance = of.chance};
  }
}

// Texts are left out: a kernel may want them as codes of another domain.
uint32_t Run::column_number(const Item& v) const {
  if (!choices_ || v.kind != Item::vector || !v.column || v.lifetime != Item::of_engine || hir::is_text(v.type)) return model::no_column;
  std::vector<DataChoices::Column>& all = choices_->columns;
  const auto same = [&](const DataChoices::Column& c) { return c.column == v.column && c.of_rows == v.foreign_rows; };
  const auto at = std::find_if(all.begin(), all.end(), same);
  if (at != all.end()) return static_cast<uint32_t>(at - all.begin());
  DataChoices::Column column{.column = v.column, .name = {}, .of_rows = v.foreign_rows};
  if (const auto name = column_names_.find(v.column.get()); name != column_names_.end()) column.name = name->second;
  Item sent = v;
  sent.stored = column_form(v).stored;
  column.bytes = device_bytes(sent, v.capacity);
  all.push_back(std::move(column));
  return static_cast<uint32_t>(all.size() - 1);
}

void Run::tell_read_whole(const Item& v) const {
  if (const uint32_t column = column_number(v); column != model::no_column) choices_->columns[column].is_read_whole = true;
  for (const ItemPtr& part : v.parts)
    if (part) tell_read_whole(*part);
}

// Of the table for these keys: its slots, where it has one for each key (else 0), and how many rows it is made for.
std::pair<double, double> slots_of(const codegen::KernelCode::Lookup& lookup, std::span<const ItemPtr> inputs, bool hashed) {
  uint64_t rows = UINT64_MAX;
  double keys = 1;
  for (uint32_t k : lookup.columns) {
    const Item& v = *inputs[k];
    rows = std::min(rows, v.capacity);
    keys *= v.domain ? static_cast<double>(v.domain->count()) : v.bounds.known() ? static_cast<double>(v.bounds.max) - static_cast<double>(v.bounds.min) + 1 : HUGE_VAL;
  }
  return {!hashed && keys <= static_cast<double>(operators::most_direct_slots(rows)) ? keys : 0, static_cast<double>(rows)};
}

// Entries of a table of groups: all that there may be, or, of hashed keys, as many as so many rows have; of more than fit it gives up in the run.
template <class Way>
double places_of(Way& way, double rows) {
  if (!way.hashed()) return static_cast<double>(std::max<uint64_t>(1, way.entries()));
  double keys = 1;
  for (uint64_t greatest : way.greatest) keys *= static_cast<double>(greatest) + 1;
  return std::clamp(different(rows, keys), 1.0, static_cast<double>(std::max<uint64_t>(1, way.most_slots)));
}

// What a launch does, in figures. Rows that ascend read a table in order.
model::Work Run::work_of(const Step& s, const Estimate& estimate, double elements, std::span<const ItemPtr> inputs,
                         std::span<const Expected> expected, std::span<FoldWay> ways, std::span<const uint8_t> tables) const {
  const codegen::KernelCode& code = plan_.compiled.code.kernels[s.kernel];
  const hir::Function& f = program().functions[plan_.compiled.outlined.kernels[s.kernel].function];
  const auto parameter = [&](hir::VariableId v) -> const Item* {
    const auto at = std::find(f.parameters.begin(), f.parameters.end(), v);
    if (at == f.parameters.end()) return nullptr;
    const Item& item = *inputs[static_cast<size_t>(at - f.parameters.begin())];
    return item.kind == Item::cells && !item.parts.empty() ? item.parts[0].get() : &item;
  };
  // As long as it is expected to be.
  const auto rows_of = [&](hir::VariableId v) {
    const auto at = static_cast<size_t>(std::find(f.parameters.begin(), f.parameters.end(), v) - f.parameters.begin());
    const Item* item = parameter(v);
    return at < expected.size() && inputs[at]->kind != Item::cells ? expected[at].rows : item ? static_cast<double>(item->capacity) : 0;
  };
  const auto ascends = [&](const std::optional<hir::VariableId>& v) {
    const Item* item = v ? parameter(*v) : nullptr;
    return item && (item->ascending || (item->column && item->column->statistics.sorted));  // a foreign key: its rows do, too
  };
  double machine = 1;  // instructions for one of PTX
  for (const assembler::KernelReport& r : plan_.compiled.kernels)
    if (r.name == code.name && code.all_instructions) machine = static_cast<double>(r.instructions) / code.all_instructions;
  const auto number_of = [&](hir::VariableId v) {
    const Item* item = parameter(v);
    return item ? column_number(*item) : model::no_column;
  };
  model::Work work{.name = code.name, .rows = elements};
  std::vector<hir::VariableId> records;  // rows whose record has been read
  for (const codegen::KernelCode::Work& w : code.work) {
    using Kind = codegen::KernelCode::Work;
    double alive = estimate.chance(w.where) * (w.selected ? estimate.share(*w.selected) : 1);
    if (w.at) alive = std::min(alive, estimate.share(*w.at));  // of selected rows the places of these are read alone
    const auto gather = [&](double bytes, double rows, uint32_t column = model::no_column, double reads = 1) {  // reads: for each element that counts
      if (ascends(w.at) && rows > 0)
        work.streams.push_back({rows, bytes * 8, std::min(1.0, elements * alive * reads / rows), column});
      else
        work.gathers.push_back({elements * alive * reads, rows * bytes, bytes, column});
    };
    switch (w.kind) {
      case Kind::load: work.streams.push_back({elements, static_cast<double>(w.bits), alive, number_of(w.variable)}); break;
      case Kind::store: work.streams.push_back({elements * alive, static_cast<double>(w.bits), 1}); break;
      case Kind::gather:
        if (const Item* from = parameter(w.variable); from && from->stored.kind == encodings::Kind::record) {
          tell_read_whole(*from);
          if (std::find(records.begin(), records.end(), *w.at) != records.end()) break;
          records.push_back(*w.at);
          gather(from->stored.bytes, static_cast<double>(from->capacity));
        } else if (from) {
          gather(w.bits / 8.0, rows_of(w.variable), column_number(*from));
        }
        break;
      case Kind::probe: {
        const codegen::KernelCode::Lookup& lookup = code.lookups[w.number];
        if (tables[w.number] == 1 + lookup::ascending) break;
        const double rows = expected[lookup.columns[0]].rows, asked = elements * alive;
        const auto [slots, most_rows] = slots_of(lookup, inputs, plan_.options.hashed_lookups);
        double reads = 1;  // of the table, for each key
        if (tables[w.number] == codegen::KernelEncodings::filtered && rows * operators::least_absent <= most_rows) {
          const double bits = std::exp2(operators::filter_bits_log2(static_cast<uint64_t>(rows) + 1, static_cast<uint64_t>(slots)));
          work.gathers.push_back({asked, bits / 8, 4});
          const double hit = std::max(0.0, estimate.hit(w.variable));
          reads = std::min(1.0, hit + (1 - hit) * rows / bits);
        }
        if (slots > 0)
          gather(4, slots, model::no_column, reads);
        else
          work.gathers.push_back({asked * reads, 16 * rows, 8});  // two slots of 8 bytes for each row that there is
        break;
      }
      case Kind::fold: {
        FoldWay& way = ways[w.number];
        const double places = places_of(way, elements * alive);
        const uint64_t copies = way.hashed() ? 0 : way.words[codegen::sink_copies];
        const bool is_shared = copies > 0 || way.table != codegen::KernelEncodings::usual;
        work.adds.push_back({elements * alive * w.count, places * static_cast<double>(std::max<uint64_t>(1, copies)), is_shared});
        if (way.hashed()) work.gathers.push_back({elements * alive, 8 * places, 8});
        break;
      }
      case Kind::instructions: work.instructions += elements * alive * w.count * machine; break;
    }
  }
  // Tables of rows are made of all of a column, and so is a result that starts as a copy of one.
  for (const codegen::KernelCode::Lookup& l : code.lookups)
    for (uint32_t i : l.columns) tell_read_whole(*inputs[i]);
  for (int32_t from : code.starts_as)
    if (from >= 0) tell_read_whole(*inputs[static_cast<size_t>(from)]);
  for (size_t i = 0; i < inputs.size() && i < f.parameters.size(); ++i) {
    using Noted = codegen::KernelCode::Work;
    const bool is_noted = std::any_of(code.work.begin(), code.work.end(), [&](const Noted& w) {
      return (w.kind == Noted::load || w.kind == Noted::gather) && w.variable == f.parameters[i];
    });
    if (!is_noted || inputs[i]->kind != Item::vector) tell_read_whole(*inputs[i]);
  }
  return work;
}

// The vector as to_device will leave it; what the run has of it stays as it is.
ItemPtr Run::as_sent(const ItemPtr& v) {
  if (v->kind != Item::vector || v->data || (!v->column && !v->host)) return v;
  auto sent = std::make_shared<Item>(*v);
  sent->stored = {};
  if (hir::is_text(v->type) && v->column) sent->domain = domain_of(*sent);
  if (v->column && !sent->codes_are_rows) sent->stored = column_form(*v).stored;
  return sent;
}

// With the least bounds for what is unsure, and as many rows as there can be.
std::vector<ItemPtr> Run::least_of(const std::vector<ItemPtr>& inputs, std::span<const uint32_t> slots,
                                   uint64_t& rows) const {
  std::vector<ItemPtr> least = inputs;
  for (size_t i = 0; i < least.size(); ++i) {
    rows = std::max(rows, most_rows_[slots[i]]);
    if (most_rows_[slots[i]] == 0) continue;
    least[i] = std::make_shared<Item>(*least[i]);
    ItemPtr& elements = least[i]->kind == Item::cells ? least[i]->parts[0] : least[i];
    elements = std::make_shared<Item>(*elements);
    elements->bounds = {0, 0};
  }
  return least;
}

// False: there is no telling what it gives. `sure`: whether all that it hangs on is sure.
bool Run::forecast_launch(const Step& s, Forecast& found, bool& sure) {
  const outliner::Kernel& kernel = plan_.compiled.outlined.kernels[s.kernel];
  const hir::Function& f = program().functions[kernel.function];
  const codegen::KernelCode& code = plan_.compiled.code.kernels[s.kernel];
  std::vector<ItemPtr> inputs;
  for (uint32_t slot : s.inputs) {
    if (!is_for_kernels(*slots_[slot])) return false;
    inputs.push_back(as_sent(slots_[slot]));
  }
  std::vector<uint8_t> tables;
  std::vector<uint64_t> filtered;
  std::vector<DomainPtr> domains;
  sure &= expect_domains(plan_.kernels[s.kernel].texts, f, inputs, domains);
  const auto launched = geometry(kernel, code, f, inputs, 1);
  if (!launched) return false;
  const uint64_t elements = launched->elements;
  for (const codegen::KernelCode::Lookup& l : code.lookups) {
    const Item& column = *slots_[s.inputs[l.columns[0]]];
    const bool again = l.masked && l.join && !has_different_elements(column);
    if (again) found.not_whole.push_back(static_cast<uint32_t>(*l.join));
    const auto forms = record_forms(l, inputs, elements);
    tell_join(again, f, l, column, forms ? &*forms : nullptr);
    tables.push_back(forms ? static_cast<uint8_t>(1 + lookup::ascending) : kept_form(l, column, nullptr));
    filtered.push_back(forms ? 0 : filtered_rows(l, inputs));
    for (size_t k = 0; forms && k < forms->size(); ++k) {
      ItemPtr& field = inputs[(*l.fields)[k]];
      field = std::make_shared<Item>(*field);
      field->stored = (*forms)[k];
    }
  }
  note_filters(filtered, elements, tables);
  for (size_t l = 0; l < filtered.size(); ++l) tell_filter(f, l, filtered[l], elements);
  const std::vector<VariableBounds> bounds = bounds_in(program(), f, elements, inputs);

  std::vector<ItemPtr> outputs(f.result_types.size());
  std::vector<FoldWay> ways(code.sinks.size());
  for (size_t k = 0; k < ways.size(); ++k) {
    const codegen::KernelCode::Sink& sink = code.sinks[k];
    const std::vector<DomainPtr> of_keys = key_domains(plan_.kernels[s.kernel].texts, sink, domains);
    const FoldInput in{f, elements, bounds, of_keys, !changes_inputs(code), 0};
    if (const std::string_view unfit = fold_way(sink, in, ways[k]); !unfit.empty()) {
      uint64_t rows = elements;
      const std::vector<ItemPtr> least_inputs = least_of(inputs, s.inputs, rows);
      const std::vector<VariableBounds> least_bounds = bounds_in(program(), f, rows, least_inputs);
      const FoldInput least{f, rows, least_bounds, of_keys, !changes_inputs(code), 0};
      FoldWay none;
      if (is_own_fold(sink.number) && !fold_way(sink, least, none).empty()) {
        found.not_folded.push_back(static_cast<uint32_t>(sink.number));
        tell_fold(true, f, sink.number, fmt::format("made by an operator, since {}", unfit));
      }
      return false;
    }
    if (is_better_apart(sink, in)) {
      found.folds_apart.push_back(static_cast<uint32_t>(sink.number));
      tell_fold(true, f, sink.number,
                fmt::format("folded by a kernel of its own, over the rows that look-ups leave of {}; of {} or fewer by "
                            "the kernel that looks up",
                            elements, plan_.options.most_rows_of_selective_folds));
      return false;
    }
    tell_fold(false, f, sink.number, way_in_words(sink, in, ways[k], sure));
    sure &= !ways[k].hashed();
    for (const codegen::KernelCode::Sink::Table& t : sink.tables)
      outputs[t.result] =
          new_vector(program().types->basic_of(f.result_types[t.result]), ways[k].entries(), !ways[k].hashed());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i]) continue;
    const int32_t start = i < code.starts_as.size() ? code.starts_as[i] : -1;
    if (start >= 0) {
      ItemPtr& from = inputs[static_cast<size_t>(start)];
      from = std::make_shared<Item>(*from);
      from->stored = {};
      outputs[i] = new_vector(from->type, from->capacity, from->exact);
      outputs[i]->size_id = from->size_id;
      continue;
    }
    auto made = make_output(s, i, elements, inputs);
    if (!made) return false;
    outputs[i] = *std::move(made);
  }
  set_bounds(f, bounds, outputs);
  set_domains(plan_.kernels[s.kernel].texts, f, domains, outputs);
  tell_collecting(s, elements, inputs, bounds);
  if (choices_) {
    std::vector<Expected> expected;
    double rows = 0, most = static_cast<double>(elements);  // of the geometry
    for (size_t i = 0; i < inputs.size(); ++i) {
      expected.push_back(expected_[s.inputs[i]]);
      if (expected[i].rows <= 0) expected[i].rows = static_cast<double>(inputs[i]->capacity);
      most = std::max(most, static_cast<double>(most_rows_[s.inputs[i]]));
      if (i < f.parameters.size() && f.parameters[i] == kernel.geometry_variable && !kernel.list) rows = expected[i].rows;
    }
    if (rows <= 0) rows = static_cast<double>(elements);
    rows = std::min(rows, most);
    const Estimate estimate(program(), f, rows, inputs, expected, bounds);
    choices_->work.push_back(work_of(s, estimate, rows, inputs, expected, ways, tables));
    std::vector<Expected> made(outputs.size());
    for (hir::StatementId id : f.blocks[f.body].statements)
      if (const hir::Statement& statement = f.statements[id]; statement.kind == hir::Statement::return_)
        for (size_t k = 0; k < statement.results.size() && k < made.size(); ++k)
          if (statement.results[k].kind == hir::Operand::variable)
            made[k] = estimate.result(statement.results[k].variable_id());
    for (size_t i = 0; i < outputs.size(); ++i)
      if (i < code.starts_as.size() && code.starts_as[i] >= 0) made[i].rows = expected[static_cast<size_t>(code.starts_as[i])].rows;
    for (size_t k = 0; k < ways.size(); ++k)
      for (const codegen::KernelCode::Sink::Table& table : code.sinks[k].tables)
        made[table.result].rows = std::min(made[table.result].rows, places_of(ways[k], rows));
    for (size_t i = 0; i < s.outputs.size(); ++i)
      if (s.outputs[i] != no_slot) {
        made[i].rows = std::min(made[i].rows, std::max(most, static_cast<double>(longest_of(outputs[i]))));
        expected_[s.outputs[i]] = made[i];
      }
  }
  codegen::KernelEncodings key = forms_of(s, elements, inputs, outputs, ways, std::move(tables), bounds);
  if (codegen::KernelEncodings& first = found.forms[s.kernel]; first == codegen::KernelEncodings{})
    first = std::move(key);
  for (size_t i = 0; i < s.outputs.size(); ++i) assign(s.outputs[i], outputs[i]);
  return true;
}

}  // namespace rndn::runtime
