// The steps of a run on the host: tables, columns, lists, what falls back to the reference interpreter; waiting for the device, and errors.
// A slot is emptied after its last use, so that its memory serves the steps that follow.
#include "runtime/run/execution.h"

#include <algorithm>
#include <cstring>

#include "frontend/builtins.h"
#include "ptx/sums/exact_sum.h"
#include "runtime/data/tables.h"

namespace rndn::runtime {

using hir::BasicType;
using reference::Value;

Run::Run(Engine::State& engine, Engine::Plan::State& plan, Timings& timings, std::string* printed)
    : foreseeing_(engine, plan),
      engine_(engine),
      plan_(plan),
      device_(engine.device),
      timings_(timings),
      printed_(printed),
      sql_(plan.sql),
      slots_(plan.steps.constants),
      text_memory_(*this, engine.buffers),
      sizes_unsure_(plan.steps.sizes_unsure) {
  sql_->measure(plan.options.measure_kernels);
  engine.buffers.allocate_singly(plan.options.alloc == EngineOptions::Alloc::driver);
}
Run::~Run() {
  settle();
  (void)sql_->take_launches();
}
void Run::settle() {
  if (!pending_) return;
  pending_ = false;
  (void)device_.synchronize();
  std::memset(plan_.errors->host, 0, plan_.errors->bytes);
}

Result<std::vector<Value>> Run::execute() {
  auto results = execute_once();
  if (!results) return blamed(results.error());
  return results;
}

Result<std::vector<Value>> Run::execute_once() {
  if (plan_.options.measure_kernels) {
    ASSIGN_OR_RETURN(clock_mark_, device_.record_mark());
    clock_ns_ = timings_.now();
  }
  retry_bounds();
  foreseeing_.start(runs_on_device());
  if (plan_.replay && plan_.replay->evictions == engine_.evictions) {
    ASSIGN_OR_RETURN(std::optional<std::vector<Value>> results, replay());
    if (results) return *std::move(results);
    foreseeing_.start(runs_on_device());
  }
  plan_.drop_replay();
  if (may_record()) {
    recording_ = device_.begin_graph().ok();
    plan_.graphs = recording_;
  }
  auto results = errors_of([&] { return steps(); });
  if (!recording_) return results;
  // Something in between needed the host after all, or a step went wrong. Nothing has run: once more, without a graph.
  recording_ = false;
  if (auto graph = device_.end_graph()) (void)device_.free_graph(*graph);
  plan_.graphs = false;
  engine_.drop_cache();  // what was to be made in the graph is not there
  slots_ = plan_.steps.constants;
  tables_.clear();
  launched_.clear();
  library_launched_.clear();
  (void)sql_->take_launches();
  until_wait_.clear();
  fallbacks_.clear();
  held_.clear();
  held_domains_.clear();
  foreseeing_.start(runs_on_device());
  failed_at_.clear();
  pending_ = false;
  return steps();
}

// The plan is a graph when a run of it did nothing but launch, and what it launched is not to be timed one by one.
bool Run::may_record() const {
  constexpr uint64_t runs_before = 2;
  if (!plan_.options.graphs || !plan_.graphs || !plan_.quiet || plan_.quiet_evictions != engine_.evictions ||
      plan_.runs < runs_before || plan_.options.measure_kernels || !plan_.options.cache || !device_.has_graphs())
    return false;
  return runs_on_device();
}

bool Run::runs_on_device() const {
  return std::none_of(plan_.steps.steps.begin(), plan_.steps.steps.end(),
                      [](const Step& s) { return s.kind == Step::call || s.kind == Step::interpret; });
}

namespace {
ItemPtr clone(const ItemPtr& v) {
  auto made = std::make_shared<Item>(*v);
  for (ItemPtr& part : made->parts) part = clone(part);
  return made;
}
}  // namespace

Result<void> Run::end_recording(std::span<const ItemPtr> results) {
  Replay made;
  ASSIGN_OR_RETURN(made.graph, device_.end_graph());
  recording_ = false;
  for (const ItemPtr& v : results) made.results.push_back(clone(v));
  made.held = std::move(held_);
  made.held_domains = std::move(held_domains_);
  made.launched = launched_;
  made.library_launched = library_launched_;
  made.told = foreseeing_.told();
  made.evictions = engine_.evictions;
  plan_.replay = std::move(made);
  return device_.launch_graph(plan_.replay->graph);
}

// None: a column is another one than it was.
Result<std::optional<std::vector<Value>>> Run::replay() {
  const Replay& r = *plan_.replay;
  launched_ = r.launched;
  library_launched_ = r.library_launched;
  foreseeing_.replay(r.told);
  pending_ = true;
  {
    auto scope = timings_.measure(device_.info().is_simulator ? Phase::kernels : Phase::overhead, "graph");
    RETURN_IF_ERROR(device_.launch_graph(r.graph));
  }
  // While it runs; what it reads lives as long as it.
  if (std::ranges::any_of(plan_.answers.columns, [&](const ColumnRead& read) { return !read.is_current(*plan_.tables); })) {
    settle();
    RETURN_IF_ERROR(foreseeing_.check());
    launched_.clear();
    library_launched_.clear();
    plan_.quiet = false;
    return std::optional<std::vector<Value>>();
  }
  for (const Launched& l : launched_) ++l.state->report.launches;
  std::vector<ItemPtr> items;
  for (const ItemPtr& v : r.results) items.push_back(clone(v));
  std::vector<Value> results;
  RETURN_IF_ERROR(finish(items, results));
  return std::optional(std::move(results));
}

Result<std::vector<Value>> Run::steps() {
  std::vector<Value> results;
  plan_.quiet = false;
  spared_after_ = std::min(std::exchange(plan_.began, engine_.clock), engine_.clock);
  const uint64_t host_calls = device_.host_calls();
  for (const Step& s : plan_.steps.steps) {
    foreseeing_.at_step(static_cast<size_t>(&s - plan_.steps.steps.data()));
    if (s.kind == Step::results) {
      plan_.quiet = device_.host_calls() == host_calls && fallbacks_.empty();
      plan_.quiet_evictions = engine_.evictions;
    }
    RETURN_IF_ERROR(check_cancelled());
    auto done = step(s, results);
    if (!done) return located(done.error(), s.span);
    for (uint32_t slot : s.last_uses) slots_[slot] = nullptr;
    drop_lookups();
  }
  return results;
}

// Run-time errors of the program carry the position of their statement.
Error Run::located(Error e, Span span) const {
  if (!span.known() || e.placed || (e.fault != Fault::input && e.fault != Fault::usage)) return e;
  e.message = fmt::format("{}: error: {}", plan_.sources.describe(span), e.message);
  e.placed = true;
  return e;
}

Result<ItemPtr> Run::item(uint32_t slot) {
  if (!slots_[slot]) {  // assigned on no path: the empty vector of its type (docs/horseir.md, "Variables")
    const hir::Function& main = program().functions[program().main];
    const hir::Variable& variable = main.variables[static_cast<hir::VariableId>(slot)];
    if (!program().types->is_basic(variable.type))
      return input_error("`{}` has no value", program().text(variable.name));
    BasicType basic = program().types->basic_of(variable.type);
    slots_[slot] = host_item(hir::is_text(basic) ? reference::vector_of_texts(basic, {})
                                                 : reference::vector_from_bytes(basic, 0, std::vector<std::byte>{}));
  }
  return slots_[slot];
}

Result<std::vector<ItemPtr>> Run::items(std::span<const uint32_t> slots) {
  std::vector<ItemPtr> found(slots.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSIGN_OR_RETURN(found[i], item(slots[i]));
  }
  return found;
}

Result<void> Run::assign_value(uint32_t slot, Value value) {
  const hir::Function& main = program().functions[program().main];
  if (slot < main.variables.size()) {
    ASSIGN_OR_RETURN(value, reference::as_assigned(std::move(value), *program().types,
                                                   main.variables[static_cast<hir::VariableId>(slot)].type));
  }
  assign(slot, host_item(std::move(value)));
  return {};
}

namespace {
Result<void> check_table(const Value& v) {
  if (v.kind != Value::table || !v.cells) return {};
  for (const Value& column : v.parts())
    if (reference::length(column) != reference::length(v.parts()[0]))
      return input_error("`table` got columns of {} and {} rows", reference::length(v.parts()[0]),
                         reference::length(column));
  return {};
}
}  // namespace

Result<void> Run::step(const Step& s, std::vector<Value>& results) {
  switch (s.kind) {
    case Step::copy: {
      ASSIGN_OR_RETURN(ItemPtr v, item(s.inputs[0]));
      assign_result(s, std::move(v));
      return {};
    }
    case Step::load_table: return load_table(s);
    case Step::column_value:
    case Step::column_valid: return column_part(s);
    case Step::check_cast: return check_cast(s);
    case Step::list: {
      ASSIGN_OR_RETURN(std::vector<ItemPtr> cells, items(s.inputs));
      assign_result(s, parts_item(Item::list, std::move(cells)));
      return {};
    }
    case Step::table: return table(s);
    case Step::keys: return part(s, 0);
    case Step::values: return part(s, 1);
    case Step::fetch: return fetch(s);
    case Step::index_list: return index_list(s);
    case Step::raze: return raze(s);
    case Step::pick: return pick(s);
    case Step::length: return length(s);
    case Step::len: {
      ASSIGN_OR_RETURN(ItemPtr v, item(s.inputs[0]));
      ASSIGN_OR_RETURN(ItemPtr n, length_of(v));
      assign_result(s, std::move(n));
      return {};
    }
    case Step::launch: return launch(s);
    case Step::order:
    case Step::group:
    case Step::aggregate:
    case Step::unique:
    case Step::unique_cells:
    case Step::exact_sum:
    case Step::join:
    case Step::member:
    case Step::scan:
    case Step::index_of:
    case Step::take:
    case Step::drop:
    case Step::append:
    case Step::tolist:
    case Step::cells:
    case Step::cell_begins:
    case Step::cell_numbers:
    case Step::like:
    case Step::sub_string:
    case Step::text_map: return run_operator(s);
    case Step::call: return builtin(s);
    case Step::interpret: return interpret(s);
    case Step::results: {
      ASSIGN_OR_RETURN(std::vector<ItemPtr> values, items(s.inputs));
      if (recording_) RETURN_IF_ERROR(end_recording(values));
      return finish(values, results);
    }
  }
  return {};
}

Result<void> Run::finish(std::span<const ItemPtr> items, std::vector<Value>& results) {
  RETURN_IF_ERROR(bring_back(items));
  auto scope = timings_.measure(Phase::transfer, "results");
  for (const ItemPtr& v : items) {
    ASSIGN_OR_RETURN(Value value, to_host(*v));
    ASSIGN_OR_RETURN(value, data::with_columns(std::move(value), *plan_.tables));
    RETURN_IF_ERROR(check_table(value));
    results.push_back(std::move(value));
  }
  return {};
}

// --- Tables and their columns ---

Result<void> Run::load_table(const Step& s) {
  ASSIGN_OR_RETURN(ItemPtr name, item(s.inputs[0]));
  ASSIGN_OR_RETURN(Value text, to_host(*name));
  if (!text.is_text_vector() || text.size != 1) return input_error("`load_table` expects the name of one table");
  RETURN_IF_ERROR(plan_.tables->open(text.text(0)));
  Value v;
  v.kind = Value::table;
  v.source = text.text(0);
  assign_result(s, host_item(std::move(v)));
  return {};
}

Result<void> Run::column_part(const Step& s) {
  ASSIGN_OR_RETURN(ItemPtr table, item(s.inputs[0]));
  ASSIGN_OR_RETURN(ItemPtr name_item, item(s.inputs[1]));
  ASSIGN_OR_RETURN(Value name, to_host(*name_item));
  if (!table->host || table->host->kind != Value::table || table->host->source.empty() || !name.is_text_vector() ||
      name.size != 1)
    return builtin(s);
  auto part = s.kind == Step::column_valid ? data::ColumnPart::validity : data::ColumnPart::values;
  if (s.inputs.size() == 3) {
    ASSIGN_OR_RETURN(ItemPtr flag, item(s.inputs[2]));
    ASSIGN_OR_RETURN(Value with_zeros, to_host(*flag));
    if (with_zeros.size != 1) return builtin(s);
    if (with_zeros.as<uint8_t>()[0]) part = data::ColumnPart::values_with_zeros;
  }
  const std::string& source = table->host->source;
  auto scope = timings_.measure(Phase::data, source + "." + name.text(0));
  const bool is_file = table->host->file != nullptr;
  data::ColumnsRead wanted;
  auto& of = is_file ? wanted.files : wanted.tables;
  of.insert((is_file ? plan_.columns.files : plan_.columns.tables).extract(source));
  data::prefetch(wanted, *plan_.tables);
  if (is_file) {
    const data::FileColumn at{table->host->file, name.text(0), part};
    ASSIGN_OR_RETURN(ItemPtr column, file_column(std::make_shared<const data::FileColumn>(at), s.expected));
    assign_result(s, std::move(column));
    return {};
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const data::Column> column, plan_.tables->part(source, name.text(0), part));
  foreseeing_.note_column({.table = source, .name = name.text(0), .part = part, .file = nullptr, .as = {}, .column = column});
  if (choices_) column_names_[column.get()] = source + "." + name.text(0);
  // The plain values of a foreign key are what `fetch` gives.
  const bool refers = column->is_foreign_key && part == data::ColumnPart::values;
  auto& items = column->is_foreign_key && !refers ? engine_.fetched : engine_.columns;
  ItemPtr& known = items[column.get()];
  if (refers) {
    ASSIGN_OR_RETURN(std::shared_ptr<const data::Column> key, plan_.tables->key_column(column->foreign_table));
    foreseeing_.note_column({.table = column->foreign_table, .name = {}, .file = nullptr, .as = {}, .column = key});
    if (!known || known->parts[0]->column != key) known = enumeration_item(column, std::move(key));
  } else if (!known) {
    known = column_item(column);
  }
  send_early(known);
  assign_result(s, known);
  return {};
}

// A column of a file, as the type that its fields show or another.
Result<ItemPtr> Run::file_column(std::shared_ptr<const data::FileColumn> at, std::optional<BasicType> as) {
  ASSIGN_OR_RETURN(std::shared_ptr<const data::Column> column, at->read(as));
  foreseeing_.note_column({.table = {}, .name = {}, .file = at, .as = as, .column = column});
  ItemPtr& known = engine_.columns[column.get()];
  if (!known) known = column_item(column);
  if (at->part != data::ColumnPart::validity) known->fields = std::move(at);
  return known;
}

Result<void> Run::check_cast(const Step& s) {
  ASSIGN_OR_RETURN(ItemPtr v, item(s.inputs[0]));
  const hir::TypeTable& types = *program().types;
  const hir::Type& to = types[s.cast];
  const bool same_vector = v->kind == Item::vector && to.kind == hir::TypeKind::basic && to.basic == v->type;
  const bool same_keys = v->kind == Item::enumeration && to.kind == hir::TypeKind::enumeration &&
                         v->parts[0]->kind == Item::vector &&
                         (types.is_wildcard(to.components[0]) ||
                          (types.is_basic(to.components[0]) && types.basic_of(to.components[0]) == v->parts[0]->type));
  if (!same_vector && v->fields && to.kind == hir::TypeKind::basic) {
    auto scope = timings_.measure(Phase::data, v->fields->column);
    ASSIGN_OR_RETURN(v, file_column(v->fields, to.basic));
  } else if (!same_vector && !same_keys) {
    RETURN_IF_ERROR(wait());
    auto scope = timings_.measure(Phase::cpu, "check_cast");
    ASSIGN_OR_RETURN(Value host, to_host(*v));
    ASSIGN_OR_RETURN(Value cast, reference::check_cast(host, types, s.cast, !s.column || plan_.options.strict));
    v = host_item(std::move(cast));
  }
  assign_result(s, std::move(v));
  return {};
}

Result<void> Run::table(const Step& s) {
  ASSIGN_OR_RETURN(ItemPtr names_item, item(s.inputs[0]));
  ASSIGN_OR_RETURN(ItemPtr columns, item(s.inputs[1]));
  ASSIGN_OR_RETURN(Value names, to_host(*names_item));
  if (columns->kind != Item::list || !names.is_text_vector()) return builtin(s);
  if (names.size != columns->parts.size())
    return input_error("`table` got {} names for {} columns", names.size, columns->parts.size());
  ItemPtr made = parts_item(Item::table, columns->parts);
  made->names = names.texts ? names.plain_texts() : std::make_shared<const std::vector<std::string>>();
  assign_result(s, std::move(made));
  return {};
}

// --- Parts of values: no work ---

Result<void> Run::part(const Step& s, size_t which) {
  ASSIGN_OR_RETURN(ItemPtr v, item(s.inputs[0]));
  if (v->kind != Item::dict && v->kind != Item::enumeration) return builtin(s);
  ItemPtr p = v->parts[which];
  if (v->kind == Item::dict && p->kind != Item::vector && p->kind != Item::cells && p->kind != Item::list)
    return builtin(s);
  // The values of a dict are a list of theirs.
  if (v->kind == Item::dict && which == 1 && p->kind == Item::vector) return builtin(s);
  assign_result(s, std::move(p));
  return {};
}

Result<void> Run::fetch(const Step& s) {
  ASSIGN_OR_RETURN(ItemPtr v, item(s.inputs[0]));
  // The values of a table's foreign key are the column itself.
  if (v->kind != Item::enumeration || !v->parts[1]->foreign_rows) return builtin(s);
  ItemPtr& known = engine_.fetched[v->parts[1]->column.get()];
  if (!known) known = column_item(v->parts[1]->column);
  send_early(known);
  assign_result(s, known);
  return {};
}

Result<void> Run::index_list(const Step& s) {
  ASSIGN_OR_RETURN(ItemPtr list, item(s.inputs[0]));
  ASSIGN_OR_RETURN(ItemPtr place, item(s.inputs[1]));
  if (list->kind != Item::list || place->kind != Item::vector || !place->host || !place->bounds.known() ||
      place->bounds.min < 0 || place->bounds.min >= static_cast<int64_t>(list->parts.size()) || place->capacity != 1)
    return builtin(s);
  assign_result(s, list->parts[static_cast<size_t>(place->bounds.min)]);
  return {};
}

Result<void> Run::raze(const Step& s) {
  ASSIGN_OR_RETURN(ItemPtr list, item(s.inputs[0]));
  if (list->kind != Item::cells) return fall_back(s, "the cells do not lie in one piece");
  assign_result(s, list->parts[0]);
  return {};
}

Result<void> Run::pick(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  assign_result(s, parts_item(Item::picked, std::move(in)));
  return {};
}

// A size that only the device knows is a vector of one element there already.
Result<ItemPtr> Run::length_of(const ItemPtr& v) {
  const Item* rows = v.get();  // what has as many elements
  while (rows->kind == Item::enumeration || rows->kind == Item::dict || rows->kind == Item::picked ||
         (rows->kind == Item::table && !rows->parts.empty()))
    rows = rows->parts[rows->kind == Item::enumeration ? 1 : 0].get();
  if (rows->kind == Item::list || (rows->kind == Item::vector && rows->exact) ||
      (rows->kind == Item::cells && rows->exact)) {
    const int64_t n = static_cast<int64_t>(rows->kind == Item::list ? rows->parts.size() : rows->capacity);
    return host_item(reference::vector_of<int64_t>(BasicType::i64, {n}));
  }
  if (rows->kind == Item::vector && rows->size_slot) {
    ItemPtr made = new_vector(BasicType::i64, 1, true);
    made->data = rows->size_slot;
    made->data_buffer = rows->size_buffer ? rows->size_buffer : rows->data_buffer;
    made->mapped_data = rows->mapped_size;
    made->bounds = {0, static_cast<int64_t>(rows->capacity)};
    return made;
  }
  ASSIGN_OR_RETURN(Value host, to_host(*v));
  ASSIGN_OR_RETURN(std::vector<Value> n,
                   reference::call(hir::Builtin::len, {host}, &program(), *plan_.tables, printed_, nullptr));
  return host_item(std::move(n.at(0)));
}

// A kernel of lengths.
Result<void> Run::length(const Step& s) {
  const hir::Function& f = program().functions[s.function];
  ASSIGN_OR_RETURN(std::vector<ItemPtr> inputs, items(s.inputs));
  std::vector<ItemPtr> of(f.variables.size());
  for (hir::StatementId id : f.blocks[f.body].statements) {
    const hir::Statement& statement = f.statements[id];
    if (statement.kind == hir::Statement::assign) {
      const uint32_t argument = f.expressions[statement.value].operands[0].id;
      for (size_t i = 0; i < inputs.size(); ++i)
        if (index(f.parameters[i]) == argument) {
          ASSIGN_OR_RETURN(of[statement.targets[0].id], length_of(inputs[i]));
        }
    } else if (statement.kind == hir::Statement::return_) {
      for (size_t i = 0; i < s.outputs.size() && i < statement.results.size(); ++i) {
        const hir::Operand& result = statement.results[i];
        ItemPtr v = result.kind == hir::Operand::variable ? of[result.id] : nullptr;
        for (size_t k = 0; k < inputs.size(); ++k)
          if (!v && result.kind == hir::Operand::variable && index(f.parameters[k]) == result.id) v = inputs[k];
        if (!v) return fall_back(s, "a result is neither a length nor an argument");
        assign(s.outputs[i], std::move(v));
      }
    }
  }
  return {};
}

// --- The reference interpreter ---

Result<void> Run::fall_back(const Step& s, std::string_view reason, Arguments arguments) {
  const bool is_function = s.kind == Step::launch || s.kind == Step::length;
  auto interpreted = [&] { return is_function ? interpret(s) : builtin(s); };
  // Where the specification puts a builtin on the host, this is its place (builtins.def).
  if (!is_function && hir::row(s.builtin).device == hir::Device::cpu) return interpreted();
  const std::string what =
      is_function ? fmt::format("kernel `{}` ({})", program().text(program().functions[s.function].name), reason)
                  : fmt::format("`{}` ({})", hir::row(s.builtin).name, reason);
  if (plan_.options.allow_fallback || arguments == Arguments::perhaps_wrong) RETURN_IF_ERROR(interpreted());
  if (!plan_.options.allow_fallback)
    return located(input_error("{} runs on the reference interpreter only, which --no-fallback forbids", what), s.span);
  fallbacks_.push_back(fmt::format("{}: {}", plan_.sources.describe(s.span), what));
  return {};
}

namespace {
// Texts of vectors that have several: what a step of the host may read.
uint64_t texts_in(const Value& v) {
  if (v.is_text_vector()) return v.size > 1 ? v.size : 0;
  uint64_t texts = 0;
  if (v.cells)
    for (const Value& part : v.parts()) texts += texts_in(part);
  return texts;
}
}  // namespace

Result<void> Run::builtin(const Step& s) {
  std::vector<Value> arguments;
  RETURN_IF_ERROR(wait());
  for (uint32_t slot : s.inputs) {
    ASSIGN_OR_RETURN(ItemPtr v, item(slot));
    auto scope = timings_.measure(Phase::transfer);
    ASSIGN_OR_RETURN(Value host, to_host(*v));
    texts_walked_ += texts_in(host);
    arguments.push_back(std::move(host));
  }
  auto scope = timings_.measure(Phase::cpu, hir::row(s.builtin).name);
  ASSIGN_OR_RETURN(std::vector<Value> values,
                   reference::call(s.builtin, arguments, &program(), *plan_.tables, printed_,
                                   s.expected ? &*s.expected : nullptr, &reference_state_));
  if (values.size() < s.outputs.size())
    return Error{Fault::internal, fmt::format("`{}` gave {} results for {} targets", hir::row(s.builtin).name,
                                              values.size(), s.outputs.size())};
  for (size_t i = 0; i < s.outputs.size(); ++i) RETURN_IF_ERROR(assign_value(s.outputs[i], std::move(values[i])));
  return {};
}

Result<std::vector<Value>> Run::call(hir::FunctionId function, const std::vector<ItemPtr>& inputs) {
  RETURN_IF_ERROR(wait());
  std::vector<Value> arguments;
  for (const ItemPtr& v : inputs) {
    auto scope = timings_.measure(Phase::transfer);
    ASSIGN_OR_RETURN(Value host, to_host(*v));
    texts_walked_ += texts_in(host);
    arguments.push_back(std::move(host));
  }
  auto scope = timings_.measure(Phase::cpu, program().text(program().functions[function].name));
  return reference::call(function, std::move(arguments), program(), *plan_.tables, plan_.sources, printed_,
                         &reference_state_);
}

// Only the build of a table on the device notices keys that repeat: what looks up elsewhere is taken to have some, and the program
// is compiled again without it.
void Run::note_lookups_without_table(hir::FunctionId function) {
  if (!plan_.repeats) return;
  for (const hir::Expression& e : program().functions[function].expressions.raw()) {
    if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::builtin ||
        e.callee.builtin_id != hir::Builtin::gpu_probe || e.operands[0].kind != hir::Operand::literal)
      continue;
    const auto* number = std::get_if<std::vector<int64_t>>(&program().literals[e.operands[0].literal_id()].values);
    if (number && number->front() >= 0 && 8 * static_cast<uint64_t>(number->front()) < plan_.repeats->bytes)
      static_cast<uint64_t*>(plan_.repeats->host)[number->front()] = 1;
  }
}

// The interpreter has an error for numbers without parts: the program is compiled again without folds of floats.
void Run::note_parts_without_kernel(hir::FunctionId function) {
  if (plan_.compiled.outlined.float_folds.empty()) return;
  for (const hir::Expression& e : program().functions[function].expressions.raw())
    if (e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::builtin &&
        e.callee.builtin_id == hir::Builtin::gpu_sum_part)
      static_cast<uint32_t*>(plan_.sum_flags->host)[sums::no_parts] = 1;
}

Result<void> Run::interpret(const Step& s) {
  note_lookups_without_table(s.function);
  note_parts_without_kernel(s.function);
  ASSIGN_OR_RETURN(std::vector<ItemPtr> inputs, items(s.inputs));
  ASSIGN_OR_RETURN(std::vector<Value> values, call(s.function, inputs));
  for (size_t i = 0; i < s.outputs.size() && i < values.size(); ++i)
    RETURN_IF_ERROR(assign_value(s.outputs[i], std::move(values[i])));
  return {};
}

// --- Waiting, and errors ---

Result<void> Run::wait() {
  if (is_forecast_) return Error{Fault::internal, "a forecast waits for what is not there"};
  if (!pending_) return {};
  pending_ = false;
  RETURN_IF_ERROR(device_.synchronize());
  RETURN_IF_ERROR(check_cancelled());
  RETURN_IF_ERROR(foreseeing_.check());
  until_wait_.clear();
  std::vector<Launched> launched = std::exchange(launched_, {});
  std::vector<LibraryLaunch> library = std::exchange(library_launched_, {});
  const bool measured = plan_.options.measure_kernels, simulated = device_.info().is_simulator;
  uint32_t last_mark = clock_mark_;
  uint64_t last_ns = clock_ns_;
  // The device time of a launch, which counts in the phase and, if one is wanted, is put on the device's time line.
  const auto time = [&](Phase phase, uint32_t first, uint32_t last, std::string_view name) -> Result<uint64_t> {
    ASSIGN_OR_RETURN(const uint64_t ns, device_.elapsed_ns(first, last));
    if (!simulated) timings_.credit(phase, ns);
    if (!plan_.options.timeline) return ns;
    ASSIGN_OR_RETURN(const uint64_t start, device_.elapsed_ns(clock_mark_, first));
    timings_.on_device({phase, clock_ns_ + start, ns, std::string(name)});
    if (last > last_mark) last_mark = last, last_ns = clock_ns_ + start + ns;
    return ns;
  };
  for (const Launched& l : launched) {
    l.state->report.all_floor_bytes += l.floor_bytes;
    if (!measured) continue;
    ASSIGN_OR_RETURN(const uint64_t ns, time(Phase::kernels, l.first_mark, l.last_mark, l.state->report.name));
    l.state->report.ns += ns;
  }
  for (const auto& [l, fused] : library) {
    const std::string_view kind = fused ? "fused" : "library", kernel = l.kernel;
    auto report = std::find_if(library_reports_.begin(), library_reports_.end(),
                               [&](const KernelReport& r) { return r.name == kernel && r.kind == kind; });
    if (report == library_reports_.end()) {
      report = library_reports_.insert(report, KernelReport{});
      report->name = l.kernel;
      report->kind = kind;
      report->registers = l.registers;
      report->shared_bytes = l.shared_bytes;
      if (auto known = engine_.library_instructions.find(l.kernel); known != engine_.library_instructions.end())
        report->instructions = known->second;
    }
    ++report->launches;
    report->late += l.is_late;
    report->floor_bytes = std::max(report->floor_bytes, l.floor_bytes);
    report->all_floor_bytes += l.floor_bytes;
    if (!measured) continue;
    ASSIGN_OR_RETURN(const uint64_t ns, time(Phase::library, l.first_mark, l.last_mark, l.kernel));
    report->ns += ns;
  }
  clock_mark_ = last_mark, clock_ns_ = last_ns;  // marks are kept for some time only
  // All error words lie together; the first launch at fault counts.
  const auto* words = static_cast<const uint64_t*>(plan_.errors->host);
  const size_t kernels = plan_.kernels.size();
  if (std::all_of(words, words + kernels, [](uint64_t w) { return w == 0; })) return {};
  const Launched* failed = nullptr;
  uint64_t word = 0;
  for (const Launched& l : launched) {
    word = words[l.state - plan_.kernels.data()];
    if (word == 0) continue;
    failed = &l;
    break;
  }
  std::memset(plan_.errors->host, 0, 8 * kernels);
  if (!failed) return Error{Fault::internal, "an error word is set that no launch has"};
  if (!failed->inputs) return kernel_error(word);
  return interpreted_error(failed->function, *failed->inputs, kernel_error(word));  // it knows the element
}

Error Run::interpreted_error(hir::FunctionId function, const std::vector<ItemPtr>& inputs, Error otherwise) {
  auto values = call(function, inputs);
  return values ? std::move(otherwise) : values.error();
}

Error Run::kernel_error(uint64_t word) const {
  const auto& kernels = plan_.compiled.outlined.kernels;
  const auto [kernel, statement, code] = codegen::ErrorWord::of(word);
  Span span;
  std::string_view builtin = "kernel";
  std::string subject;  // of a requirement: its message
  if (kernel < kernels.size()) {
    const hir::Function& f = program().functions[kernels[kernel].function];
    if (statement < f.statements.size()) {
      const hir::Statement& at = f.statements[static_cast<hir::StatementId>(statement)];
      span = at.span;
      if (!is_none(at.value))
        if (const hir::Expression& e = f.expressions[at.value];
            e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::builtin) {
          builtin = hir::row(e.callee.builtin_id).name;
          if (code == codegen::RuntimeError::requirement)
            subject = std::get<std::vector<std::string>>(program().literals[e.operands[2].literal_id()].values)[0];
        }
    }
  }
  std::string what = code == codegen::RuntimeError::division_by_zero     ? "divides by zero"
                     : code == codegen::RuntimeError::index_out_of_range ? "has an index that is out of range"
                     : code == codegen::RuntimeError::negative_factorial
                         ? "got a negative number"
                     : code == codegen::RuntimeError::requirement ? fmt::format("is not met: {}", subject)
                         : fmt::format("fails with run-time error {}", static_cast<uint32_t>(code));
  Error error = input_error("{}: error: `{}` {}", plan_.sources.describe(span), builtin, what);
  if (span.known()) error.line = plan_.sources.position(span).line;
  error.subject = std::move(subject);
  return error;
}

// Where a kernel's code comes from: its first statement.
std::string Run::place_of(hir::FunctionId function) const {
  const hir::Function& f = program().functions[function];
  for (hir::StatementId id : f.blocks[f.body].statements)
    if (const Span span = f.statements[id].span; span.known()) return plan_.sources.describe(span);
  return "no place";
}

// What `who` cannot do. On a GPU `blamed` says who is at fault.
Error Run::failed(std::string who, Error e) {
  if (e.cause == Cause::cancelled) return e;
  if (e.fault == Fault::world && !device_.info().is_simulator) {
    failed_at_ = std::move(who);
    return e;
  }
  if (e.fault == Fault::world || e.fault == Fault::internal) e.message = fmt::format("{}: {}", who, e.message);
  return e;
}

// On the simulator a fault of a kernel is known at once, and the kernel is ours.
Error Run::launch_error(Error e, std::string_view kernel, std::string_view place) {
  if (e.fault != Fault::world || e.cause == Cause::cancelled) return e;
  if (device_.info().is_simulator) e.fault = Fault::internal;
  return failed(fmt::format("kernel `{}` ({})", kernel, place), std::move(e));
}

// A GPU goes on after a launch. When a kernel faults, some later call fails, whatever it is for, and so does every one after it: a wait that
// fails too tells such an error from what the call itself could not do. Then it is one of the kernels launched since the last wait.
Error Run::blamed(Error e) {
  if (e.fault != Fault::world || e.cause == Cause::cancelled || device_.info().is_simulator) return e;
  const std::string at = std::exchange(failed_at_, {});
  if (device_.synchronize()) {
    if (!at.empty()) e.message = fmt::format("{}: {}", at, e.message);
    return e;
  }
  if (!at.empty()) e.message += fmt::format("; noticed at {}", at);
  constexpr size_t most = 8;
  std::vector<std::string> names;
  for (const Launched& l : launched_)
    names.push_back(fmt::format("`{}` ({})", l.state->report.name, place_of(l.function)));
  for (const auto& [l, fused] : library_launched_) names.push_back(fmt::format("`{}`", l.kernel));
  const size_t others = names.size() > most ? names.size() - most : 0;
  names.resize(names.size() - others);
  if (!names.empty()) e.message += fmt::format("; kernels since the last wait: {}", fmt::join(names, ", "));
  if (others) e.message += fmt::format(" and {} more", others);
  return e;
}

std::vector<KernelReport> Run::take_library_reports() { return std::exchange(library_reports_, {}); }

}  // namespace rndn::runtime
