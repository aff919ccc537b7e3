// The launch plan and its execution.
//
// plan(): the straight-line `main` of the outlined program becomes a vector of steps over slots (one per variable and literal). A kernel without
// code, a user function, and a builtin that is not on the device are steps of the reference interpreter. A program with control flow on the host
// or globals that change runs there as a whole.
// run(): walks the steps. A kernel whose inputs have not the sizes that its code relies on is interpreted, and so is one that reports an error, for
// the message. A slot holds an Item: a vector on the host, on the device or both, a list or a table of items, or any other value
// on the host. Vectors move when a step needs them on the other side. Outputs of kernels get buffers of their upper bound on the first run
// and keep them; sizes stay on the device unless the host must know them.
// Small results that no kernel reads go to mapped memory and arrive without a copy.
// Leaves out: reuse of buffers after their last use within a run, CUDA graphs, batches beyond device memory.
#include "runtime/engine.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "runtime/device_memory.h"
#include "runtime/tables.h"

namespace rndn::runtime {
namespace {

using device::Address;
using hir::BasicType;
using reference::Value;

constexpr uint64_t mapped_result_limit = 64 << 10;  // bytes; larger results are copied at full speed instead

struct Item {
  enum Kind : uint8_t { vector, list, table, other } kind = other;  // other: `host` alone
  BasicType type{};
  uint64_t capacity = 0;                       // vector: upper bound of its elements
  bool exact = false;                          // the size is the capacity
  Address data = 0, size_slot = 0;             // on the device; 0: not there
  const void* mapped_data = nullptr;           // where the host sees `data` and
  const uint64_t* mapped_size = nullptr;       // `size_slot`, when they are in mapped memory
  std::shared_ptr<const data::Column> column;  // the vector is this column
  std::optional<Value> host;
  std::vector<std::shared_ptr<Item>> cells;               // list, table
  std::shared_ptr<const std::vector<std::string>> names;  // table
};
using ItemPtr = std::shared_ptr<Item>;

ItemPtr host_item(Value value) {
  auto item = std::make_shared<Item>();
  if (value.kind == Value::vector) {
    item->kind = Item::vector;
    item->type = value.type;
    item->capacity = value.size;
    item->exact = true;
  }
  item->host = std::move(value);
  return item;
}

struct Step {
  enum Kind : uint8_t {
    copy,
    load_table,
    column_value,
    check_cast,
    list,
    table,
    launch,
    call,
    interpret,
    results
  } kind = copy;
  hir::Builtin builtin{};
  uint32_t kernel = 0;                                 // index into the compiled kernels
  hir::FunctionId function = none<hir::FunctionId>();  // launch and interpret: of the outlined program
  hir::TypeId cast{};                                  // check_cast
  bool column = false;                                 // check_cast: of a table's column
  std::optional<BasicType> expected;                   // call: static type of the result
  std::vector<uint32_t> inputs;                        // slots
  std::vector<uint32_t> outputs;                       // slots; UINT32_MAX: dropped
  Span span;
};

struct KernelState {
  device::KernelHandle handle{};
  device::KernelInfo info;
  uint32_t resident_blocks = 1;  // of the whole device at once: the persistent grid
  struct Output {
    device::Mapped data, size;
    uint64_t capacity_bytes = 0;
    bool in_mapped_memory = false;
  };
  std::vector<Output> outputs;  // per result
  struct Upload {               // of an input that lives on the host, made anew in every run
    Address data = 0, size_slot = 0;
    uint64_t bytes = 0;
  };
  std::vector<Upload> uploads;  // per parameter
  KernelReport report;
  device::Mapped error_word;  // in mapped memory; zero: no error
  uint32_t first_mark = 0, last_mark = 0;
};

}  // namespace

struct Engine::State {
  device::Device& device;
  const reference::Tables& tables;
  DevicePool columns;  // data of cached columns
  struct CachedColumn {
    std::shared_ptr<const data::Column> column;  // keeps the key alive
    Address data = 0, size_slot = 0;
  };
  std::map<const void*, CachedColumn> cache;  // by the column's host storage
  // Foreign keys as enumerations, made once: their row numbers may be on the device too, in `cache` by their host storage.
  struct ForeignKey {
    std::shared_ptr<const data::Column> column;
    Value value;
  };
  std::map<const data::Column*, ForeignKey> foreign_keys;
  std::set<const void*> foreign_rows;  // the storage of their row numbers

  State(device::Device& d, const reference::Tables& t) : device(d), tables(t), columns(d, false, 1 << 20) {}
};

struct Engine::Plan::State {
  const Compiled& compiled;
  const SourceManager& sources;
  EngineOptions options;
  device::Device& device;
  std::vector<Step> steps;
  std::vector<ItemPtr> constants;  // initial contents of the slots: literals, and null for variables
  std::map<std::string, std::vector<std::string>> columns;  // per table: what steps read, not yet prefetched
  std::vector<bool> read_by_kernel;                         // per slot
  std::vector<KernelState> kernels;
  std::vector<std::string> fallbacks;
  std::string whole_program;  // why the reference interpreter runs all of it; empty: it does not
  std::optional<device::ModuleHandle> module;
  DevicePool buffers, mapped;
  Address scratch = 0;  // of all kernels: each leaves it zero
  uint64_t scratch_bytes = 0;

  State(const Compiled& c, const SourceManager& s, const EngineOptions& o, device::Device& d)
      : compiled(c), sources(s), options(o), device(d), buffers(d, false, 4 << 20), mapped(d, true, 256 << 10) {}
  ~State() {
    if (module) (void)device.unload_module(*module);
  }
};

Engine::Plan::Plan() = default;
Engine::Plan::~Plan() = default;
const std::vector<std::string>& Engine::Plan::fallbacks() const { return state_->fallbacks; }
size_t Engine::Plan::device_kernels() const {
  return static_cast<size_t>(
      std::count_if(state_->steps.begin(), state_->steps.end(), [](const Step& s) { return s.kind == Step::launch; }));
}

Engine::Engine(device::Device& device, const reference::Tables& tables)
    : state_(std::make_unique<State>(device, tables)) {}
Engine::~Engine() = default;

// --- Making the plan -----------------------------------------------------------------------------------------------------------

namespace {

// Translates the statements of main; `why` says what keeps a program from having a plan.
class Planner {
 public:
  Planner(const Compiled& compiled, const SourceManager& sources)
      : program_(compiled.outlined.program), compiled_(compiled), sources_(sources) {
    for (uint32_t i = 0; i < compiled.outlined.kernels.size(); ++i)
      kernel_of_[compiled.outlined.kernels[i].function] = i;
  }

  bool make() {
    if (is_none(program_.main)) return fail("there is no main");
    main_ = &program_.functions[program_.main];
    constants.resize(main_->variables.size());
    return block(main_->body) && (!steps.empty() && steps.back().kind == Step::results ? true : finish({}, {}));
  }

  std::vector<Step> steps;
  std::vector<ItemPtr> constants;
  std::map<std::string, std::vector<std::string>>
      columns;  // table -> the columns that steps read of it, as far as names are literals
  std::string why;
  std::vector<std::string> fallbacks;  // as Engine::Plan::fallbacks

 private:
  bool fail(std::string reason) {
    why = std::move(reason);
    return false;
  }
  bool finish(std::vector<uint32_t> slots, Span span) {
    steps.push_back({.kind = Step::results, .inputs = std::move(slots), .outputs = {}, .span = span});
    return true;
  }
  uint32_t add_slot(ItemPtr constant = nullptr) {
    constants.push_back(std::move(constant));
    return static_cast<uint32_t>(constants.size() - 1);
  }

  bool slot_of(const hir::Operand& operand, uint32_t& slot) {
    switch (operand.kind) {
      case hir::Operand::variable: slot = operand.id; return true;
      case hir::Operand::literal: slot = literal(operand.literal_id()); return true;
      case hir::Operand::global: {
        const hir::Operand& value = program_.globals[operand.global_id()].value;
        if (value.kind == hir::Operand::literal) {
          slot = literal(value.literal_id());
          return true;
        }
        return fail(
            fmt::format("global `{}` is not a literal", program_.text(program_.globals[operand.global_id()].name)));
      }
      case hir::Operand::unresolved: break;
    }
    return fail("an operand is not resolved");
  }
  uint32_t literal(hir::LiteralId id) {
    auto [at, fresh] = literals_.try_emplace(id, 0);
    if (fresh) at->second = add_slot(host_item(reference::from_literal(program_, program_.literals[id])));
    return at->second;
  }

  bool block(hir::BlockId id) {
    if (is_none(id)) return true;
    for (hir::StatementId s : main_->blocks[id].statements) {
      if (!steps.empty() && steps.back().kind == Step::results) return true;  // dead code after return
      if (!statement(main_->statements[s])) return false;
    }
    return true;
  }

  bool statement(const hir::Statement& s) {
    switch (s.kind) {
      case hir::Statement::declare: return true;
      case hir::Statement::block: return block(s.body);
      case hir::Statement::assign: {
        std::vector<uint32_t> outputs;
        for (const hir::Target& t : s.targets) {
          if (t.kind == hir::Target::global)
            return fail(fmt::format("{}: assignment to a global", sources_.describe(t.span)));
          outputs.push_back(t.kind == hir::Target::variable ? t.id : UINT32_MAX);
        }
        return expression(s.value, std::move(outputs), s.span);
      }
      case hir::Statement::expression: return expression(s.value, {}, s.span);
      case hir::Statement::return_: {
        std::vector<uint32_t> slots(s.results.size());
        for (size_t i = 0; i < slots.size(); ++i)
          if (!slot_of(s.results[i], slots[i])) return false;
        return finish(std::move(slots), s.span);
      }
      default: return fail(fmt::format("{}: control flow on the host", sources_.describe(s.span)));
    }
  }

  bool expression(hir::ExpressionId id, std::vector<uint32_t> outputs, Span span) {
    const hir::Expression& e = main_->expressions[id];
    Step step{.inputs = {}, .outputs = std::move(outputs), .span = span.known() ? span : e.span};
    if (e.kind == hir::Expression::cast) {
      uint32_t inner = add_slot();
      if (!expression(e.inner, {inner}, span)) return false;
      step.kind = Step::check_cast;
      step.cast = e.types.size() == 1 && !program_.types->is_wildcard(e.types[0]) ? e.types[0] : e.cast_type;
      const hir::Expression& of = main_->expressions[e.inner];
      step.column = of.kind == hir::Expression::call && of.callee.kind == hir::FunctionRef::builtin &&
                    of.callee.builtin_id == hir::Builtin::column_value;
      step.inputs = {inner};
      steps.push_back(std::move(step));
      return true;
    }
    for (const hir::Operand& operand : e.operands) {
      uint32_t slot = 0;
      if (!slot_of(operand, slot)) return false;
      step.inputs.push_back(slot);
    }
    if (e.kind == hir::Expression::operand) {
      step.kind = Step::copy;
      steps.push_back(std::move(step));
      return true;
    }
    if (e.callee.kind == hir::FunctionRef::user) {
      const hir::Function& f = program_.functions[e.callee.function];
      step.function = e.callee.function;
      step.outputs.resize(f.result_types.size(), UINT32_MAX);
      auto kernel = kernel_of_.find(e.callee.function);
      if (kernel == kernel_of_.end()) {
        step.kind = Step::interpret;
        fallbacks.push_back(fmt::format("{}: function `{}`", sources_.describe(step.span), program_.text(f.name)));
      } else {
        step.kind = Step::launch;
        step.kernel = kernel->second;
        const codegen::KernelCode& code = compiled_.code.kernels[step.kernel];
        std::string reason = code.refused;
        for (hir::VariableId p : f.parameters)
          if (reason.empty() && (!program_.types->is_basic(f.variables[p].type) ||
                                 hir::is_text(program_.types->basic_of(f.variables[p].type))))
            reason = fmt::format("its parameter `{}` is of type {}", program_.text(f.variables[p].name),
                                 program_.types->text(f.variables[p].type));
        for (int32_t start : code.starts_as)
          if (reason.empty() && start >= 0) reason = "it writes into a copy";
        if (!reason.empty()) {
          step.kind = Step::interpret;
          refuse(f, code, reason);
        }
      }
      steps.push_back(std::move(step));
      return true;
    }
    step.builtin = e.callee.builtin_id;
    if (e.types.size() == 1 && program_.types->is_basic(e.types[0]))
      step.expected = program_.types->basic_of(e.types[0]);
    switch (step.builtin) {
      case hir::Builtin::load_table: step.kind = Step::load_table; break;
      case hir::Builtin::column_value: step.kind = Step::column_value; break;
      case hir::Builtin::list: step.kind = Step::list; break;
      case hir::Builtin::table: step.kind = Step::table; break;
      default:
        step.kind = Step::call;
        if (device_of(e) != hir::Device::cpu)
          fallbacks.push_back(fmt::format("{}: `{}`", sources_.describe(step.span), hir::row(step.builtin).name));
        break;
    }
    steps.push_back(std::move(step));
    return true;
  }

  // Where the call should run: builtins.def, where the each family takes its function's place, and cells are the CPU's.
  hir::Device device_of(const hir::Expression& e) const {
    const hir::Operand* first = e.operands.empty() ? nullptr : &e.operands[0];
    switch (e.callee.builtin_id) {
      case hir::Builtin::each:
      case hir::Builtin::each_item:
      case hir::Builtin::each_left:
      case hir::Builtin::each_right: {
        if (!first || first->kind != hir::Operand::literal) break;
        const auto* functions =
            std::get_if<std::vector<hir::FunctionRef>>(&program_.literals[first->literal_id()].values);
        if (!functions || functions->size() != 1 || functions->front().kind != hir::FunctionRef::builtin) break;
        return hir::row(functions->front().builtin_id).device;
      }
      case hir::Builtin::append:
      case hir::Builtin::index:
        if (first && first->kind == hir::Operand::variable &&
            (*program_.types)[main_->variables[first->variable_id()].type].kind >= hir::TypeKind::list &&
            (*program_.types)[main_->variables[first->variable_id()].type].kind <= hir::TypeKind::tuple)
          return hir::Device::cpu;
        break;
      default: break;
    }
    return hir::row(e.callee.builtin_id).device;
  }

  // Notes a kernel without code: the statement at fault or the kernel's first, and its builtins.
  void refuse(const hir::Function& f, const codegen::KernelCode& code, const std::string& reason) {
    std::string builtins;
    Span at;
    auto add = [&](const hir::Statement& s) {
      if (is_none(s.value)) return;
      hir::ExpressionId id = s.value;
      while (f.expressions[id].kind == hir::Expression::cast) id = f.expressions[id].inner;
      if (f.expressions[id].kind != hir::Expression::call) return;
      if (!at.known()) at = s.span;
      std::string name = fmt::format("`{}`", hir::row(f.expressions[id].callee.builtin_id).name);
      if (builtins.find(name) == std::string::npos) builtins += (builtins.empty() ? "" : ", ") + name;
    };
    if (!is_none(code.refused_at))
      add(f.statements[code.refused_at]);
    else
      for (hir::StatementId s : f.blocks[f.body].statements) add(f.statements[s]);
    fallbacks.push_back(
        fmt::format("{}: kernel `{}` with {} ({})", sources_.describe(at), program_.text(f.name), builtins, reason));
  }

  const hir::Program& program_;
  const Compiled& compiled_;
  const SourceManager& sources_;
  const hir::Function* main_ = nullptr;
  std::map<hir::FunctionId, uint32_t> kernel_of_;
  std::map<hir::LiteralId, uint32_t> literals_;
};

}  // namespace

Result<std::unique_ptr<Engine::Plan>> Engine::plan(const Compiled& compiled, const SourceManager& sources,
                                                   const EngineOptions& options, Timings& timings) {
  auto scope = timings.measure(Phase::overhead, "plan");
  auto plan = std::unique_ptr<Plan>(new Plan());
  plan->state_ = std::make_unique<Plan::State>(compiled, sources, options, state_->device);
  Plan::State& p = *plan->state_;

  Planner planner(compiled, sources);
  if (!planner.make()) p.whole_program = planner.why;
  if (!p.whole_program.empty()) {
    if (!options.allow_fallback)
      return input_error("{} (and --no-fallback forbids the reference interpreter)", p.whole_program);
    p.fallbacks.push_back(fmt::format("the whole program ({})", p.whole_program));
    return plan;
  }
  p.steps = std::move(planner.steps);
  p.constants = std::move(planner.constants);
  p.columns = columns_read(compiled.outlined.program);
  p.read_by_kernel.resize(p.constants.size());
  for (const Step& s : p.steps) {
    if (s.kind == Step::launch)
      for (uint32_t slot : s.inputs) p.read_by_kernel[slot] = true;
    else if (s.kind == Step::copy)  // a copy may reach a kernel under another name
      p.read_by_kernel[s.inputs[0]] = true;
  }
  p.fallbacks = std::move(planner.fallbacks);
  if (!p.fallbacks.empty() && !options.allow_fallback) {
    std::string what = p.fallbacks.front();
    if (size_t position = what.find(": "); position != std::string::npos) what.insert(position, ": error");
    return input_error("{} runs on the reference interpreter only, which --no-fallback forbids", what);
  }
  if (compiled.code.module.functions.empty()) return plan;

  auto load = timings.measure(Phase::load);
  if (compiled.cubin.empty()) {
    ASSIGN_OR_RETURN(p.module, state_->device.load_ptx(compiled.ptx, compiled.level));
  } else {
    ASSIGN_OR_RETURN(p.module, state_->device.load_module(compiled.cubin));
  }
  for (const codegen::KernelCode& code : compiled.code.kernels) {
    KernelState k;
    k.report.name = code.name;
    if (!code.refused.empty()) {
      p.kernels.push_back(std::move(k));
      continue;
    }
    ASSIGN_OR_RETURN(k.handle, state_->device.find_kernel(*p.module, code.name));
    ASSIGN_OR_RETURN(k.info, state_->device.kernel_info(k.handle));
    ASSIGN_OR_RETURN(uint32_t blocks, state_->device.blocks_per_multiprocessor(k.handle, code.block_size, 0));
    k.resident_blocks = std::max(1u, blocks * state_->device.info().multiprocessors);
    k.report.registers = k.info.registers;
    k.report.shared_bytes = k.info.shared_bytes;
    for (const assembler::KernelReport& r : compiled.kernels)
      if (r.name == code.name) k.report.instructions = r.instructions;
    ASSIGN_OR_RETURN(k.error_word, p.mapped.allocate(8));
    p.kernels.push_back(std::move(k));
  }
  return plan;
}

// --- Running it ----------------------------------------------------------------------------------------------------------------

namespace {

class Run {
 public:
  Run(Engine::State& engine, Engine::Plan::State& plan, Timings& timings, std::string* printed)
      : engine_(engine),
        plan_(plan),
        device_(engine.device),
        timings_(timings),
        printed_(printed),
        slots_(plan.constants) {}

  Result<std::vector<Value>> execute() {
    std::vector<Value> results;
    for (const Step& s : plan_.steps) {
      auto done = step(s, results);
      if (!done) return located(done.error(), s.span);
    }
    return results;
  }

 private:
  // Run-time errors of the program carry the position of their statement.
  Error located(Error e, Span span) const {
    if (span.known() && (e.fault == Fault::input || e.fault == Fault::usage) &&
        e.message.find(": error: ") == std::string::npos)
      e.message = fmt::format("{}: error: {}", plan_.sources.describe(span), e.message);
    return e;
  }
  const hir::Program& program() const { return plan_.compiled.outlined.program; }

  Result<ItemPtr> item(uint32_t slot) {
    if (!slots_
            [slot]) {  // assigned on no path: the empty vector of its type (horseir.md 2.2, rule "use before assignment")
      const hir::Function& main = program().functions[program().main];
      hir::TypeId type = main.variables[static_cast<hir::VariableId>(slot)].type;
      if (!program().types->is_basic(type))
        return input_error("`{}` has no value",
                           program().text(main.variables[static_cast<hir::VariableId>(slot)].name));
      BasicType basic = program().types->basic_of(type);
      slots_[slot] = host_item(hir::is_text(basic) ? reference::vector_of_texts(basic, {})
                                                   : reference::vector_from_bytes(basic, 0, std::vector<std::byte>{}));
    }
    return slots_[slot];
  }
  void assign(uint32_t slot, ItemPtr value) {
    if (slot != UINT32_MAX) slots_[slot] = std::move(value);
  }
  // A value of the interpreter, in the type of its variable.
  void assign_value(uint32_t slot, Value value) {
    const hir::Function& main = program().functions[program().main];
    if (slot < main.variables.size())
      value = reference::as_assigned(std::move(value), *program().types,
                                     main.variables[static_cast<hir::VariableId>(slot)].type);
    assign(slot, host_item(std::move(value)));
  }

  Result<void> step(const Step& s, std::vector<Value>& results) {
    switch (s.kind) {
      case Step::copy: {
        ASSIGN_OR_RETURN(ItemPtr v, item(s.inputs[0]));
        if (!s.outputs.empty()) assign(s.outputs[0], v);
        return {};
      }
      case Step::load_table: return load_table(s);
      case Step::column_value: return column_value(s);
      case Step::check_cast: return check_cast(s);
      case Step::list: {
        auto made = std::make_shared<Item>();
        made->kind = Item::list;
        for (uint32_t slot : s.inputs) {
          ASSIGN_OR_RETURN(ItemPtr cell, item(slot));
          made->cells.push_back(std::move(cell));
        }
        if (!s.outputs.empty()) assign(s.outputs[0], std::move(made));
        return {};
      }
      case Step::table: return table(s);
      case Step::launch: return launch(s);
      case Step::call: return builtin(s);
      case Step::interpret: return interpret(s);
      case Step::results: {
        RETURN_IF_ERROR(wait());
        auto scope = timings_.measure(Phase::transfer, "results");
        for (uint32_t slot : s.inputs) {
          ASSIGN_OR_RETURN(ItemPtr v, item(slot));
          ASSIGN_OR_RETURN(Value value, to_host(*v));
          RETURN_IF_ERROR(check_table(value));
          results.push_back(std::move(value));
        }
        return {};
      }
    }
    return {};
  }

  static Result<void> check_table(const Value& v) {
    if (v.kind != Value::table || !v.cells) return {};
    for (const Value& column : v.parts())
      if (length(column) != length(v.parts()[0]))
        return input_error("`table` got columns of {} and {} rows", length(v.parts()[0]), length(column));
    return {};
  }

  Result<void> load_table(const Step& s) {
    ASSIGN_OR_RETURN(ItemPtr name, item(s.inputs[0]));
    ASSIGN_OR_RETURN(Value text, to_host(*name));
    if (!text.is_text_vector() || text.size != 1) return input_error("`load_table` expects the name of one table");
    RETURN_IF_ERROR(engine_.tables.open(text.text(0)));
    Value v;
    v.kind = Value::table;
    v.source = text.text(0);
    if (!s.outputs.empty()) assign(s.outputs[0], host_item(std::move(v)));
    return {};
  }

  Result<void> column_value(const Step& s) {
    ASSIGN_OR_RETURN(ItemPtr table, item(s.inputs[0]));
    ASSIGN_OR_RETURN(ItemPtr name_item, item(s.inputs[1]));
    ASSIGN_OR_RETURN(Value name, to_host(*name_item));
    if (table->host && table->host->kind == Value::table && !table->host->source.empty() && name.is_text_vector() &&
        name.size == 1) {
      std::shared_ptr<const data::Column> column;
      {
        auto scope = timings_.measure(Phase::data, table->host->source + "." + name.text(0));
        auto wanted = plan_.columns.find(table->host->source);
        if (wanted != plan_.columns.end()) {
          if (wanted->second.size() > 1) {
            // Its errors are left to the request of the column that is at fault.
            (void)engine_.tables.prefetch(table->host->source, wanted->second).ok();
          }
          plan_.columns.erase(wanted);
        }
        ASSIGN_OR_RETURN(column, engine_.tables.column(table->host->source, name.text(0)));
      }
      if (!column->is_foreign_key) {
        auto made = std::make_shared<Item>();
        made->kind = Item::vector;
        made->type = column->type;
        made->capacity = column->rows;
        made->exact = true;
        made->column = std::move(column);
        if (!s.outputs.empty()) assign(s.outputs[0], std::move(made));
        return {};
      }
      auto known = engine_.foreign_keys.find(column.get());
      if (known == engine_.foreign_keys.end()) {
        auto scope = timings_.measure(Phase::data, table->host->source + "." + name.text(0));
        ASSIGN_OR_RETURN(std::vector<Value> made,
                         reference::call(s.builtin, {*table->host, name}, &program(), engine_.tables, printed_));
        known = engine_.foreign_keys.emplace(column.get(), Engine::State::ForeignKey{column, made.at(0)}).first;
        if (made[0].kind == Value::enumeration) engine_.foreign_rows.insert(made[0].parts()[1].bytes.get());
      }
      if (!s.outputs.empty()) assign(s.outputs[0], host_item(known->second.value));
      return {};
    }
    return builtin(s);
  }

  Result<void> check_cast(const Step& s) {
    ASSIGN_OR_RETURN(ItemPtr v, item(s.inputs[0]));
    const hir::TypeTable& types = *program().types;
    if (!(v->kind == Item::vector && types.is_basic(s.cast) && types.basic_of(s.cast) == v->type)) {
      RETURN_IF_ERROR(wait());
      auto scope = timings_.measure(Phase::cpu, "check_cast");
      ASSIGN_OR_RETURN(Value host, to_host(*v));
      ASSIGN_OR_RETURN(Value cast, reference::check_cast(host, types, s.cast, !s.column || plan_.options.strict));
      v = host_item(std::move(cast));
    }
    if (!s.outputs.empty()) assign(s.outputs[0], std::move(v));
    return {};
  }

  Result<void> table(const Step& s) {
    ASSIGN_OR_RETURN(ItemPtr names_item, item(s.inputs[0]));
    ASSIGN_OR_RETURN(ItemPtr columns, item(s.inputs[1]));
    ASSIGN_OR_RETURN(Value names, to_host(*names_item));
    if (columns->kind != Item::list || !names.is_text_vector()) return builtin(s);
    if (names.size != columns->cells.size())
      return input_error("`table` got {} names for {} columns", names.size, columns->cells.size());
    auto made = std::make_shared<Item>();
    made->kind = Item::table;
    made->names = names.texts ? names.texts : std::make_shared<const std::vector<std::string>>();
    made->cells = columns->cells;
    if (!s.outputs.empty()) assign(s.outputs[0], std::move(made));
    return {};
  }

  // A builtin on the reference interpreter.
  Result<void> builtin(const Step& s) {
    std::vector<Value> arguments;
    RETURN_IF_ERROR(wait());
    for (uint32_t slot : s.inputs) {
      ASSIGN_OR_RETURN(ItemPtr v, item(slot));
      auto scope = timings_.measure(Phase::transfer);
      ASSIGN_OR_RETURN(Value host, to_host(*v));
      arguments.push_back(std::move(host));
    }
    auto scope = timings_.measure(Phase::cpu, hir::row(s.builtin).name);
    ASSIGN_OR_RETURN(std::vector<Value> values, reference::call(s.builtin, arguments, &program(), engine_.tables,
                                                                printed_, s.expected ? &*s.expected : nullptr));
    if (values.size() < s.outputs.size())
      return Error{Fault::internal, fmt::format("`{}` gave {} results for {} targets", hir::row(s.builtin).name,
                                                values.size(), s.outputs.size())};
    for (size_t i = 0; i < s.outputs.size(); ++i) assign_value(s.outputs[i], std::move(values[i]));
    return {};
  }

  // A function of the program on the reference interpreter.
  Result<std::vector<Value>> call(hir::FunctionId function, const std::vector<ItemPtr>& inputs) {
    RETURN_IF_ERROR(wait());
    std::vector<Value> arguments;
    for (const ItemPtr& v : inputs) {
      auto scope = timings_.measure(Phase::transfer);
      ASSIGN_OR_RETURN(Value host, to_host(*v));
      arguments.push_back(std::move(host));
    }
    auto scope = timings_.measure(Phase::cpu, program().text(program().functions[function].name));
    return reference::call(function, std::move(arguments), program(), engine_.tables, plan_.sources, printed_);
  }
  Result<void> interpret(const Step& s) {
    std::vector<ItemPtr> inputs(s.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      ASSIGN_OR_RETURN(inputs[i], item(s.inputs[i]));
    }
    ASSIGN_OR_RETURN(std::vector<Value> values, call(s.function, inputs));
    for (size_t i = 0; i < s.outputs.size() && i < values.size(); ++i) assign_value(s.outputs[i], std::move(values[i]));
    return {};
  }

  // --- Moving vectors ---

  // Waits for all launches so far and checks their error word. The time that they ran is taken from the phase that waits.
  Result<void> wait() {
    if (!pending_) return {};
    pending_ = false;
    RETURN_IF_ERROR(device_.synchronize());
    std::vector<Launched> launched = std::exchange(launched_, {});
    for (const Launched& l : launched) {
      KernelState* k = l.state;
      if (!plan_.options.measure_kernels) break;
      ASSIGN_OR_RETURN(uint64_t ns, device_.elapsed_ns(k->first_mark, k->last_mark));
      k->report.ns += ns;
      if (!device_.info().is_simulator) timings_.credit(Phase::kernels, ns, k->report.name);
    }
    const Launched* failed = nullptr;
    uint64_t word = 0;
    for (const Launched& l : launched) {
      uint64_t own = 0;
      std::memcpy(&own, l.state->error_word.host, 8);
      std::memset(l.state->error_word.host, 0, 8);
      if (own == 0 || failed) continue;
      failed = &l;
      word = own;
    }
    if (!failed) return {};
    // The interpreter meets the same error and knows the element.
    ASSIGN_OR_RETURN(std::vector<Value> values, call(failed->function, failed->inputs));
    return kernel_error(word);
  }

  // The error word of codegen.h: kernel << 48 | statement of its function << 32 | code.
  Error kernel_error(uint64_t word) {
    const auto& kernels = plan_.compiled.outlined.kernels;
    uint64_t kernel = word >> 48, statement = word >> 32 & 0xffff;
    Span span;
    std::string_view builtin = "kernel";
    if (kernel < kernels.size()) {
      const hir::Function& f = program().functions[kernels[kernel].function];
      if (statement < f.statements.size()) {
        const hir::Statement& at = f.statements[static_cast<hir::StatementId>(statement)];
        span = at.span;
        if (!is_none(at.value))
          if (const hir::Expression& e = f.expressions[at.value];
              e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::builtin)
            builtin = hir::row(e.callee.builtin_id).name;
      }
    }
    auto code = static_cast<codegen::RuntimeError>(static_cast<uint32_t>(word));
    std::string what = code == codegen::RuntimeError::division_by_zero ? "divides by zero"
                       : code == codegen::RuntimeError::index_out_of_range
                           ? "has an index that is out of range"
                           : fmt::format("fails with run-time error {}", static_cast<uint32_t>(word));
    return input_error("{}: error: `{}` {}", plan_.sources.describe(span), builtin, what);
  }

  Result<Value> to_host(Item& v) {
    if (v.host) return *v.host;
    switch (v.kind) {
      case Item::vector: {
        if (v.column) {
          v.host = reference::from_column(*v.column);
          return *v.host;
        }
        RETURN_IF_ERROR(wait());
        uint64_t size = v.capacity;
        if (!v.exact) {
          if (v.mapped_size)
            size = *v.mapped_size;
          else
            RETURN_IF_ERROR(device_.copy_to_host(&size, v.size_slot, 8));
          if (size > v.capacity)
            return Error{Fault::internal,
                         fmt::format("a kernel wrote {} elements into a vector of at most {}", size, v.capacity)};
        }
        std::vector<std::byte> bytes(size * data::plain_width(v.type));
        if (v.mapped_data && size)
          std::memcpy(bytes.data(), v.mapped_data, bytes.size());
        else
          RETURN_IF_ERROR(device_.copy_to_host(bytes.data(), v.data, bytes.size()));
        v.host = reference::vector_from_bytes(v.type, size, std::move(bytes));
        return *v.host;
      }
      case Item::list:
      case Item::table: {
        std::vector<Value> cells;
        for (const ItemPtr& cell : v.cells) {
          ASSIGN_OR_RETURN(Value value, to_host(*cell));
          cells.push_back(std::move(value));
        }
        return v.kind == Item::list ? reference::list(std::move(cells)) : reference::table(*v.names, std::move(cells));
      }
      case Item::other: break;
    }
    return Error{Fault::internal, "a value is nowhere"};
  }

  Result<void> to_device(Item& v, KernelState::Upload& upload) {
    if (v.data) return {};
    if (v.kind != Item::vector || hir::is_text(v.type))
      return Error{Fault::internal, "a kernel reads a value that is no plain vector"};
    auto scope = timings_.measure(Phase::transfer, "to device");
    const std::byte* from = nullptr;
    const void* key = nullptr;
    if (v.column) {
      if (v.column->encoding != data::Encoding::plain || v.column->width != data::plain_width(v.type))
        return Error{Fault::internal, "a kernel reads a column of an encoding that it does not know"};
      key = v.column->data.get();
      from = v.column->data ? v.column->data->data() : nullptr;
    } else {
      from = v.host->bytes ? v.host->bytes->data() : nullptr;
      if (v.host->bytes && engine_.foreign_rows.count(v.host->bytes.get())) key = v.host->bytes.get();
    }
    if (auto cached = engine_.cache.find(key); key && cached != engine_.cache.end()) {
      v.data = cached->second.data;
      v.size_slot = cached->second.size_slot;
      return {};
    }
    uint64_t bytes = v.capacity * data::plain_width(v.type);
    if (key || !upload.data || bytes > upload.bytes) {
      DevicePool& pool = key ? engine_.columns : plan_.buffers;
      ASSIGN_OR_RETURN(device::Mapped data, pool.allocate(bytes));
      ASSIGN_OR_RETURN(device::Mapped size, pool.allocate(8));
      v.data = data.address;
      v.size_slot = size.address;
      if (!key) upload = {v.data, v.size_slot, bytes};
    } else {
      v.data = upload.data;
      v.size_slot = upload.size_slot;
    }
    RETURN_IF_ERROR(device_.copy_to_device(v.data, from, bytes));
    RETURN_IF_ERROR(device_.copy_to_device(v.size_slot, &v.capacity, 8));
    RETURN_IF_ERROR(device_.synchronize());  // so that the time counts here
    if (key) engine_.cache[key] = {v.column, v.data, v.size_slot};
    return {};
  }

  // --- Kernels ---

  // The upper bound of a size at run time, from what the kernel's inputs have; false when nothing tells it.
  bool bound(const outliner::Kernel& kernel, const hir::Function& f, const std::vector<ItemPtr>& inputs,
             outliner::SizeId size, uint64_t& elements, bool& exact) {
    const outliner::ShapeTable& shapes = plan_.compiled.outlined.shapes;
    if (is_none(size)) return false;
    if (shapes[size].kind == outliner::Size::constant) {
      elements = static_cast<uint64_t>(std::max<int64_t>(0, shapes[size].value));
      exact = true;
      return true;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      outliner::ShapeId shape = kernel.shapes[f.parameters[i]];
      if (is_none(shape) || shapes[shape].kind != outliner::Shape::vector || shapes[shape].size != size) continue;
      elements = inputs[i]->capacity;
      exact = inputs[i]->exact;
      return true;
    }
    if (shapes[size].kind == outliner::Size::compressed) {
      bool base_exact = false;
      exact = false;
      return bound(kernel, f, inputs, shapes[size].base, elements, base_exact);
    }
    return false;
  }

  // The code relies on it that scalars are scalars and that vectors which the analyses found equally long are so.
  bool sizes_hold(const outliner::Kernel& kernel, const hir::Function& f, const std::vector<ItemPtr>& inputs) const {
    const outliner::ShapeTable& shapes = plan_.compiled.outlined.shapes;
    std::map<outliner::SizeId, uint64_t> lengths;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const outliner::ShapeId shape = kernel.shapes[f.parameters[i]];
      if (inputs[i]->kind != Item::vector || is_none(shape)) return false;
      const outliner::SizeId size = shapes[shape].size;
      if (!inputs[i]->exact || is_none(size)) continue;
      if (shapes[size].kind == outliner::Size::constant) {
        if (static_cast<int64_t>(inputs[i]->capacity) != shapes[size].value) return false;
      } else if (lengths.try_emplace(size, inputs[i]->capacity).first->second != inputs[i]->capacity) {
        return false;
      }
    }
    return true;
  }

  Result<void> launch(const Step& s) {
    const outliner::Kernel& kernel = plan_.compiled.outlined.kernels[s.kernel];
    const codegen::KernelCode& code = plan_.compiled.code.kernels[s.kernel];
    const hir::Function& f = program().functions[kernel.function];
    KernelState& state = plan_.kernels[s.kernel];
    std::vector<ItemPtr> inputs(s.inputs.size());
    state.uploads.resize(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      ASSIGN_OR_RETURN(inputs[i], item(s.inputs[i]));
    }
    if (!sizes_hold(kernel, f, inputs)) return interpret(s);
    for (size_t i = 0; i < inputs.size(); ++i) RETURN_IF_ERROR(to_device(*inputs[i], state.uploads[i]));

    // Threads: one per element of the geometry.
    uint64_t elements = 1;
    bool exact = false, known = false;
    for (size_t i = 0; i < f.parameters.size() && i < inputs.size(); ++i)
      if (f.parameters[i] == kernel.geometry_variable) {
        elements = inputs[i]->capacity;
        known = true;
      }
    if (!known && !bound(kernel, f, inputs, kernel.geometry, elements, exact) && !is_none(kernel.geometry))
      return Error{Fault::internal, fmt::format("the number of threads of kernel `{}` is unknown", code.name)};
    auto too_long = [](uint64_t n) {
      return input_error("a vector of {} elements is more than the {} that one vector may have", n,
                         data::longest_vector);
    };
    if (elements > data::longest_vector) return too_long(elements);
    uint64_t tile = std::max<uint64_t>(1, uint64_t{code.block_size} * code.items_per_thread);
    uint32_t grid = static_cast<uint32_t>(std::clamp<uint64_t>((elements + tile - 1) / tile, 1, state.resident_blocks));

    // Outputs, at their upper bound.
    std::vector<ItemPtr> outputs(f.result_types.size());
    state.outputs.resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      auto made = std::make_shared<Item>();
      made->kind = Item::vector;
      made->type = program().types->basic_of(f.result_types[i]);
      outliner::ShapeId shape = i < kernel.result_shapes.size() ? kernel.result_shapes[i] : none<outliner::ShapeId>();
      const outliner::ShapeTable& shapes = plan_.compiled.outlined.shapes;
      if (is_none(shape) || shapes[shape].kind != outliner::Shape::vector ||
          !bound(kernel, f, inputs, shapes[shape].size, made->capacity, made->exact)) {
        if (is_none(kernel.geometry))
          return Error{Fault::internal, fmt::format("the size of result {} of kernel `{}` is unknown", i, code.name)};
        made->capacity = elements;
        made->exact = false;
      }
      if (made->capacity > data::longest_vector) return too_long(made->capacity);
      KernelState::Output& out = state.outputs[i];
      uint64_t bytes = made->capacity * data::plain_width(made->type);
      if (!out.data.address || bytes > out.capacity_bytes) {
        uint32_t slot = i < s.outputs.size() ? s.outputs[i] : UINT32_MAX;
        out.in_mapped_memory = bytes <= mapped_result_limit && (slot == UINT32_MAX || !plan_.read_by_kernel[slot]);
        DevicePool& pool = out.in_mapped_memory ? plan_.mapped : plan_.buffers;
        ASSIGN_OR_RETURN(out.data, pool.allocate(bytes));
        ASSIGN_OR_RETURN(out.size, pool.allocate(8));
        out.capacity_bytes = bytes;
      }
      made->data = out.data.address;
      made->size_slot = out.size.address;
      if (out.in_mapped_memory) {
        made->mapped_data = out.data.host;
        made->mapped_size = static_cast<const uint64_t*>(out.size.host);
      }
      outputs[i] = std::move(made);
    }
    if (uint64_t scratch = codegen::scratch_bytes(code, elements, grid); scratch > plan_.scratch_bytes) {
      ASSIGN_OR_RETURN(device::Mapped memory, plan_.buffers.allocate(scratch));
      plan_.scratch = memory.address;
      plan_.scratch_bytes = scratch;
      RETURN_IF_ERROR(device_.fill(plan_.scratch, 0, scratch));
    }

    std::vector<uint64_t> parameters;
    for (const codegen::KernelParameter& p : code.parameters) {
      bool is_input = p.role == codegen::ParameterRole::input_data || p.role == codegen::ParameterRole::input_size;
      bool is_output = p.role == codegen::ParameterRole::output_data || p.role == codegen::ParameterRole::output_size;
      if ((is_input && p.ordinal >= inputs.size()) || (is_output && p.ordinal >= outputs.size()))
        return Error{Fault::internal, fmt::format("kernel `{}` asks for parameter {} of {}", code.name, p.ordinal,
                                                  is_input ? inputs.size() : outputs.size())};
      switch (p.role) {
        case codegen::ParameterRole::input_data: parameters.push_back(inputs[p.ordinal]->data); break;
        case codegen::ParameterRole::input_size: parameters.push_back(inputs[p.ordinal]->size_slot); break;
        case codegen::ParameterRole::input_offsets:
          return Error{Fault::internal, fmt::format("kernel `{}` reads a list", code.name)};
        case codegen::ParameterRole::output_data: parameters.push_back(outputs[p.ordinal]->data); break;
        case codegen::ParameterRole::output_size: parameters.push_back(outputs[p.ordinal]->size_slot); break;
        case codegen::ParameterRole::scratch: parameters.push_back(plan_.scratch); break;
        case codegen::ParameterRole::error: parameters.push_back(state.error_word.address); break;
      }
    }

    if (plan_.options.measure_kernels) {
      ASSIGN_OR_RETURN(state.first_mark, device_.record_mark());
    }
    {
      // The simulator runs the kernel in the call; a GPU's time is credited when the host has waited for it.
      auto scope = timings_.measure(device_.info().is_simulator ? Phase::kernels : Phase::overhead, code.name);
      RETURN_IF_ERROR(
          device_.launch(state.handle, {grid, 1, 1}, {code.block_size, 1, 1}, 0, std::as_bytes(std::span(parameters))));
    }
    if (plan_.options.measure_kernels) {
      ASSIGN_OR_RETURN(state.last_mark, device_.record_mark());
    }
    ++state.report.launches;
    state.report.floor_bytes = code.floor_bytes_per_element * elements;
    launched_.push_back({&state, s.function, std::move(inputs)});
    pending_ = true;
    for (size_t i = 0; i < s.outputs.size(); ++i) assign(s.outputs[i], outputs[i]);
    return {};
  }

  Engine::State& engine_;
  Engine::Plan::State& plan_;
  device::Device& device_;
  Timings& timings_;
  std::string* printed_;
  std::vector<ItemPtr> slots_;
  struct Launched {
    KernelState* state;
    hir::FunctionId function;
    std::vector<ItemPtr> inputs;
  };
  std::vector<Launched> launched_;
  bool pending_ = false;  // launches since the last wait
};

}  // namespace

Result<std::vector<Value>> Engine::run(Plan& plan, Timings& timings, std::string* printed,
                                       std::vector<KernelReport>* kernels) {
  auto scope = timings.measure(Phase::overhead, "run");
  Plan::State& p = *plan.state_;
  if (!p.whole_program.empty()) {
    auto cpu = timings.measure(Phase::cpu, "reference interpreter");
    return reference::run(p.compiled.program, state_->tables, p.sources, printed);
  }
  for (KernelState& k : p.kernels) {
    k.report.launches = 0;
    k.report.ns = 0;
  }
  Run run(*state_, p, timings, printed);
  Result<std::vector<Value>> results = run.execute();
  if (kernels)
    for (size_t k = 0; k < p.kernels.size(); ++k)
      if (p.compiled.code.kernels[k].refused.empty()) kernels->push_back(p.kernels[k].report);
  return results;
}

}  // namespace rndn::runtime
