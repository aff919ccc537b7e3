// The engine and its plans: what they keep between runs. Runs themselves: run/execution.h.
#include "runtime/engine.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "assembler/assemble.h"
#include "libraries/operators/machine_code/code.h"
#include "ptx/sums/exact_sum.h"
#include "runtime/compiler/code_cache.h"
#include "runtime/memory/result_memory.h"
#include "runtime/plan/fallbacks.h"
#include "runtime/run/execution.h"
#include "runtime/run/state.h"
#include "runtime/stream/stream.h"
#include "runtime/data/tables.h"

namespace rndn::runtime {

using reference::Value;

// --- The engine ---

Engine::State::State(device::Device& d, const reference::Tables& t)
    : device(d),
      tables(t),
      memory(d),
      kept(memory, {.page_bytes = 1 << 20, .keep_pages = false}),
      buffers(memory, {.page_bytes = 4 << 20}),
      mapped(memory, {.page_bytes = 256 << 10, .mapped = true}),
      flags(memory, {.page_bytes = 64 << 10, .mapped = true}) {
  memory.evict = [this] { return evict(); };
}
Engine::State::~State() { memory.evict = nullptr; }

Result<operators::Operators*> Engine::State::operators_for(const operators::Options& options) {
  for (const OperatorSet& set : operators)
    if (set.options == options) return set.operators.get();
  const isa::Target* target = isa::find_target(device.info().target);
  if (!target)
    return world_error("{} is of a target that is not supported: {}", device.info().name, device.info().target);
  auto make = [target, this](const ptx::Module& module) -> Result<std::vector<std::byte>> {
    Timings nobodys;
    assembler::Options options;
    options.target = target;
    options.pool = pool;
    auto made = assemble(code_cache, module, options, timings ? *timings : nobodys);
    if (!made && made.error().cause == Cause::cancelled) return made.error();
    if (!made) return Error{Fault::internal, "a kernel of the library: " + made.error().message};
    for (const assembler::KernelReport& k : made->kernels) library_instructions[k.name] = k.instructions;
    return std::move(made->cubin);
  };
  auto find = [target, this](std::string_view kernel) -> std::optional<operators::KernelCode> {
    const auto code = operators::find_code(target->name, kernel);
    if (!code) return std::nullopt;
    library_instructions[std::string(kernel)] = code->instructions;
    return operators::KernelCode{code->block_size, code->cubin};
  };
  operators.push_back({options, std::make_unique<operators::Operators>(device, make, options, find)});
  return operators.back().operators.get();
}

bool Engine::State::evict() {
  const bool any = evict_one();
  evictions += any;
  return any;
}

bool Engine::State::evict_one() {
  if (buffers.trim() || kept.trim()) return true;
  const bool all = spared_after == UINT64_MAX;
  if (all && !ahead.empty()) {
    ahead.erase(ahead.begin());
    return true;
  }
  for (const Uploaded& u : uploaded)
    for (auto r = u.item->records.begin(); all && r != u.item->records.end(); ++r)
      if (r->buffer.use_count() == 1) {
        u.item->records.erase(r);
        return true;
      }
  for (const Uploaded& u : uploaded)  // they are the least that can be sent again
    if (all && u.item->vector_bounds.use_count() == 1) {
      u.item->vector_bounds = nullptr;
      return true;
    }
  // Not what a step holds at this moment: its owners are the cache and the list of what was uploaded.
  auto oldest = uploaded.end();
  for (auto u = uploaded.begin(); u != uploaded.end(); ++u)
    if (u->item.use_count() <= 2 && u->last_use <= spared_after &&
        (oldest == uploaded.end() || u->last_use < oldest->last_use))
      oldest = u;
  if (oldest != uploaded.end()) {
    Item& item = *oldest->item;
    item.data = 0;
    item.data_buffer = nullptr;
    item.translated = item.decoded = nullptr;
    item.rows_by_key = {};
    item.rows_by_key_buffer = nullptr;
    item.records.clear();
    item.vector_bounds = nullptr;
    uploaded.erase(oldest);
    return true;
  }
  if (!all) return false;
  // Strings that an operator works with at this moment have another owner.
  for (auto& [column, domain] : domains)
    if (domain->drop_strings()) return true;
  for (DomainPtr& domain : derived_domains)
    if (domain->drop_strings()) return true;
  const auto unused = std::find_if(common_domains.begin(), common_domains.end(), [](const CommonDomain& c) {
    return c.domain->is_against() && c.domain.use_count() == 1;
  });
  if (unused == common_domains.end()) return false;
  common_domains.erase(unused);
  return true;
}

Result<void> Engine::State::check_device() const {
  if (lost.empty()) return {};
  return world_error("{} is lost to this process, which must be started again, since an earlier call failed: {}",
                     device.info().name, lost)
      .as(Cause::device_lost);
}

bool Engine::State::keep_forms_alone(bool again) {
  std::map<const data::Column*, std::shared_ptr<const data::Column>> now;  // by what it stands for
  const auto keep = [&](const ItemPtr& item, const std::shared_ptr<const data::Column>& key) {
    const auto fresh = item && item->column ? forms.in_form_alone(*item->column, key, again) : nullptr;
    if (!fresh) return;
    (void)bounds.of(item->column, pool);  // while its elements are there
    now.emplace(item->column.get(), fresh);
  };
  for (const auto& [column, item] : columns)
    if (item && item->kind == Item::vector) keep(item, nullptr);
  for (const auto& [column, item] : columns)  // keys that others refer to are done
    if (item && item->kind == Item::enumeration) {
      const auto& key = item->parts[0]->column;
      const auto found = now.find(key.get());
      keep(item->parts[1], found == now.end() ? key : found->second);
    }
  // From here on nothing fails.
  std::erase_if(now, [&](const auto& entry) { return !tables.replace(*entry.first, entry.second); });
  if (now.empty()) return false;
  const std::function<void(Item&)> update = [&](Item& item) {
    if (const auto found = now.find(item.column.get()); found != now.end()) {
      item.column = found->second;
      item.host.reset();  // it holds the column as it was
    }
    for (const ItemPtr& part : item.parts) update(*part);
    for (const ItemPtr& other : {item.decoded, item.translated})
      if (other) update(*other);
  };
  for (auto* items : {&columns, &fetched}) {
    for (const auto& [column, item] : *items)
      if (item) update(*item);
    for (const auto& [before, after] : now)
      if (auto node = items->extract(before)) {
        node.key() = after.get();
        items->insert(std::move(node));
      }
  }
  for (const auto& [before, after] : now) {
    forms.move(before, after);
    bounds.move(before, after);
  }
  return true;
}

void Engine::State::unmap() {
  const std::function<void(Item&)> forget = [&](Item& item) {
    if (item.column && item.data_buffer && item.data_buffer->host) {
      item.data = 0;
      item.data_buffer = nullptr;
      ++evictions;
    }
    for (const ItemPtr& part : item.parts) forget(*part);
  };
  for (auto* items : {&columns, &fetched})
    for (const auto& [column, item] : *items)
      if (item) forget(*item);
  std::erase_if(uploaded, [](const Uploaded& u) { return u.item->column && !u.item->data; });
}

bool Engine::State::give_back_host() {
  const bool had_copies = pinned.bytes() > 0;
  unmap();
  pinned.give_back(true);
  return keep_forms_alone(true) || had_copies;
}

void Engine::State::forget(const data::Column* column) {
  columns.erase(column);
  fetched.erase(column);
  std::erase_if(uploaded, [&](const Uploaded& u) { return u.item->column.get() == column; });
}

void Engine::State::forget_domain(const void* key) {
  const auto at = domains.find(key);
  if (at == domains.end()) return;
  const DomainPtr gone = at->second;
  domains.erase(at);
  const auto rests = [&](const DomainPtr& d) { return d == gone || d->rests_on(*gone); };
  std::erase_if(common_domains, [&](const CommonDomain& c) {
    return rests(c.domain) || std::any_of(c.of.begin(), c.of.end(), rests);
  });
  std::erase_if(derived_domains, rests);
}

void Engine::State::drop_cache() {
  ++evictions;
  uploaded.clear();
  ahead.clear();
  columns.clear();
  fetched.clear();
  common_domains.clear();
  domains.clear();
  derived_domains.clear();
}

void Engine::State::end_uncached(Plan::State& plan, bool is_early) {
  plan.early.clear();
  uint64_t bytes = 0;
  for (const Uploaded& u : uploaded) bytes += u.bytes();
  if (is_early && memory.peak() + bytes <= device.info().memory_bytes / 4 * 3)
    for (const Uploaded& u : uploaded)
      if (u.item->column) plan.early.emplace(u.item->column.get(), u.item->foreign_rows);
  drop_cache();
  if (device.synchronize()) kept.rest();
}

Engine::Engine(device::Device& device, const reference::Tables& tables, CodeCache* code_cache, ThreadPool* pool)
    : state_(std::make_unique<State>(device, tables)) {
  state_->code_cache = code_cache;
  state_->pool = pool;
}
Engine::~Engine() = default;

void Engine::send_ahead(const data::Column& column, Encode encode) { state_->send_ahead(column, encode); }

void Engine::State::send_ahead(const data::Column& column, Encode as) {
  std::erase_if(ahead, [](const auto& entry) { return entry.second.of.expired(); });
  if (column.encoding == data::Encoding::text || column.is_foreign_key || !column.data || as != encode || !lost.empty()) return;
  const ColumnForm form = form_of(column, std::nullopt, Encode::narrow, nullptr);
  const uint64_t bytes = encodings::find(form.stored).bytes(column.type, form.stored, column.rows);
  const uint64_t room = std::min(memory.limit(), device.info().memory_bytes) / 2;  // the rest is for what runs make
  if (as != Encode::narrow || bytes == 0 || ahead.contains(column.data.get()) || memory.in_use() + bytes > room) return;
  if (auto sent = kept.send(column.data->data(), bytes)) ahead[column.data.get()] = {*sent, column.data};
}

BufferPtr Engine::State::take_ahead(const std::shared_ptr<data::Bytes>& bytes) {
  const auto at = ahead.find(bytes.get());
  if (at == ahead.end() || at->second.of.lock() != bytes) return nullptr;
  BufferPtr buffer = std::move(at->second.buffer);
  ahead.erase(at);
  return buffer;
}

void Engine::forget(std::span<const std::shared_ptr<const data::Column>> columns) {
  for (const auto& column : columns) {
    state_->forget(column.get());
    state_->forget_domain(domain_key(*column));
  }
  ++state_->evictions;  // graphs of runs that read them end
}

uint64_t Engine::columns_encoded() const { return state_->forms.encoded(); }
uint64_t Engine::column_bytes() const { return state_->column_bytes; }
uint64_t Engine::pinned_column_bytes() const { return state_->pinned_column_bytes; }
uint64_t Engine::mapped_column_bytes() const { return state_->mapped_column_bytes; }

Result<BufferPtr> Engine::State::send(const std::shared_ptr<const data::Bytes>& bytes, uint64_t size, bool pins) {
  PinnedBytes::Source source{.from = bytes ? bytes->data() : nullptr};
  if (pins) {
    auto scope = timings ? timings->measure(Phase::data, "pinned memory") : Timings::Scope(nullptr);
    source = pinned.of(bytes, pool);
  }
  ASSIGN_OR_RETURN(BufferPtr sent, kept.send(source.from, size));
  column_bytes += size;
  if (source.is_pinned) pinned_column_bytes += size;
  return sent;
}

Result<BufferPtr> Engine::State::map(const std::shared_ptr<const data::Bytes>& bytes) {
  auto scope = timings ? timings->measure(Phase::data, "pinned memory") : Timings::Scope(nullptr);
  ASSIGN_OR_RETURN(BufferPtr there, pinned.mapped(bytes, pool));
  mapped_column_bytes += bytes->size();
  return there;
}

uint64_t Engine::peak_bytes() const { return state_->memory.peak(); }
void Engine::limit_memory(uint64_t bytes) { state_->memory.set_limit(bytes); }
uint64_t Engine::device_bytes() const {
  return state_->memory.in_use() - state_->buffers.unused() - state_->kept.unused();
}

Result<std::shared_ptr<LoadedModule>> Engine::State::load(const std::vector<std::byte>& cubin, const std::string& ptx,
                                                          int level) {
  std::erase_if(modules, [](const auto& m) { return m.expired(); });
  if (!cubin.empty())
    for (const auto& m : modules)
      if (auto loaded = m.lock(); loaded && loaded->cubin == cubin) return loaded;
  auto handle = cubin.empty() ? device.load_ptx(ptx, level) : device.load_module(cubin);
  if (!handle) return handle.error();
  auto loaded = std::make_shared<LoadedModule>(device, *handle, cubin);
  if (!cubin.empty()) modules.push_back(loaded);
  return loaded;
}

// --- Plans ---

Engine::Plan::State::State(const Compiled& c, const SourceManager& s, const EngineOptions& o, Engine::State& e)
    : compiled(c), sources(s), options(o), engine(e), kept(e.memory, {.page_bytes = 64 << 10}), tables(&e.tables) {}

void Engine::Plan::State::lay_out() {
  steps = make_steps(compiled, sources, whole_program);
  if (!whole_program.empty()) return;
  columns = data::columns_read(compiled.outlined.program);
  const std::vector<codegen::KernelCode>& code = compiled.code.kernels;
  copied.resize(steps.constants.size());
  for (const Step& s : steps.steps)
    if (s.kind == Step::launch)
      for (int32_t from : code[s.kernel].starts_as)
        if (from >= 0) copied[s.inputs[static_cast<size_t>(from)]] = true;
  kernels.resize(code.size());
  const hir::Program& program = compiled.outlined.program;
  for (size_t i = 0; i < code.size(); ++i)
    if (code[i].refused.empty())
      kernels[i].texts = text_classes(program, program.functions[compiled.outlined.kernels[i].function]);
}

Result<void> KernelVariant::find(device::Device& device, device::ModuleHandle in,
                                 std::span<const assembler::KernelReport> reports) {
  ASSIGN_OR_RETURN(handle, device.find_kernel(in, code.name));
  ASSIGN_OR_RETURN(info, device.kernel_info(handle));
  large_bytes = UINT32_MAX;
  RETURN_IF_ERROR(make_room(device, 0));
  for (const assembler::KernelReport& r : reports)
    if (r.name == code.name) instructions = r.instructions;
  return {};
}

Result<void> KernelVariant::make_room(device::Device& device, uint32_t bytes) {
  if (large_bytes == bytes) return {};
  ASSIGN_OR_RETURN(const uint32_t blocks, device.blocks_per_multiprocessor(handle, code.block_size, bytes));
  resident_blocks = std::max(1u, blocks * device.info().multiprocessors);
  large_bytes = bytes;
  return {};
}

void KernelVariant::describe(KernelReport& report) const {
  report.registers = info.registers;
  report.shared_bytes = info.shared_bytes;
  report.instructions = instructions;
}

void Engine::Plan::State::drop_replay() {
  if (replay) (void)engine.device.free_graph(replay->graph);
  replay.reset();
}

void Engine::Plan::State::give_back() {
  drop_replay();
  scratch = size_page = nullptr;
  size_pages.clear();
  sizes.clear();
  sizes_in_page = 0;
  // Literals: their size slots are gone, and codes in another domain hold its tables.
  const std::function<void(Item&)> forget = [&](Item& item) {
    item.data = item.size_slot = item.offsets = 0;
    item.data_buffer = item.size_buffer = item.offsets_buffer = item.mapped_buffer = nullptr;
    item.mapped_data = nullptr;
    item.mapped_size = nullptr;
    item.translated = item.decoded = nullptr;
    item.pieces.clear();
    for (const ItemPtr& part : item.parts) forget(*part);
  };
  for (const ItemPtr& literal : steps.constants)
    if (literal && literal->lifetime == Item::of_plan) forget(*literal);
  kept.trim();
  if (instead) instead->state_->give_back();
}

Engine::Plan::State::~State() {
  drop_replay();
}

std::vector<uint32_t> Engine::Plan::State::take_repeats() {
  std::vector<uint32_t> found;
  if (!repeats) return found;
  auto* words = static_cast<uint64_t*>(repeats->host);
  for (uint32_t join : compiled.outlined.joins)
    if (words[join] != 0) found.push_back(join);
  std::memset(repeats->host, 0, repeats->bytes);
  return found;
}

bool Engine::Plan::State::take_without_parts() {
  return sum_flags && std::exchange(static_cast<uint32_t*>(sum_flags->host)[sums::no_parts], 0) != 0;
}

bool Engine::Plan::State::take_unsure() {
  if (!sum_flags) return false;
  const bool unsure = sums::must_run_again(static_cast<const uint32_t*>(sum_flags->host));
  std::memset(sum_flags->host, 0, sums::flag_bytes);
  return unsure;
}

bool Engine::Plan::State::take_full() {
  bool full = false;
  for (KernelState& k : kernels)
    for (KernelState::Hashed& h : k.hashed) {
      auto* words = h.report ? static_cast<uint64_t*>(h.report->host) : nullptr;
      if (!words || words[1] == codegen::fold_fits) continue;
      words[1] = codegen::fold_fits;
      h.slots = 0;
      full = true;
    }
  return full;
}

Engine::Plan::Plan() = default;
Engine::Plan::~Plan() = default;
const std::vector<std::string>& Engine::Plan::fallbacks() const {
  return state_->instead ? state_->instead->fallbacks() : state_->steps.fallbacks;
}
std::vector<std::string> Engine::Plan::host_work() const {
  return state_->stream ? state_->stream->host_work() : std::vector<std::string>();
}
size_t Engine::Plan::device_kernels() const {
  if (state_->instead) return state_->instead->device_kernels();
  if (!state_->whole_program.empty()) return 0;
  const std::vector<Step>& steps = state_->steps.steps;
  return static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.kind == Step::launch; }));
}

const Compiled& Engine::Plan::compiled() const {
  return state_->instead ? state_->instead->compiled() : state_->compiled;
}

Result<std::unique_ptr<Engine::Plan>> Engine::plan(const Compiled& compiled, const SourceManager& sources,
                                                   const EngineOptions& options, Timings& timings,
                                                   const reference::Tables* tables) {
  auto made = make_plan(compiled, sources, options, timings);
  if (!made) state_->note(made.error());
  if (made && tables) (*made)->state_->tables = tables;
  return made;
}

Result<std::unique_ptr<Engine::Plan>> Engine::make_plan(const Compiled& compiled, const SourceManager& sources,
                                                        const EngineOptions& asked, Timings& timings) {
  RETURN_IF_ERROR(state_->check_device());
  auto scope = timings.measure(Phase::overhead, "plan");
  EngineOptions options = asked;
  options.operators.ordered |= compiled.outlined.groups_ascend;
  auto plan = std::unique_ptr<Plan>(new Plan());
  plan->state_ = std::make_unique<Plan::State>(compiled, sources, options, *state_);
  Plan::State& p = *plan->state_;
  p.lay_out();
  if (!p.whole_program.empty()) {
    if (!options.allow_fallback)
      return input_error("{} (and --no-fallback forbids the reference interpreter)", p.whole_program);
    p.steps.fallbacks = {whole_program_fallback(p.whole_program)};
    return plan;
  }
  if (!p.steps.fallbacks.empty() && !options.allow_fallback) {
    std::string what = p.steps.fallbacks.front();
    if (size_t position = what.find(": "); position != std::string::npos) what.insert(position, ": error");
    return input_error("{} runs on the reference interpreter only, which --no-fallback forbids", what);
  }
  ASSIGN_OR_RETURN(p.sql, state_->operators_for(options.operators));

  auto load = timings.measure(Phase::load);
  const std::vector<codegen::KernelCode>& kernels = compiled.code.kernels;
  ASSIGN_OR_RETURN(p.errors, p.engine.flags.allocate(8 * std::max<size_t>(1, kernels.size())));
  std::memset(p.errors->host, 0, p.errors->bytes);  // the page may have served other runs
  ASSIGN_OR_RETURN(p.sum_flags, p.engine.flags.allocate(sums::flag_bytes));
  std::memset(p.sum_flags->host, 0, sums::flag_bytes);
  if (!compiled.outlined.joins.empty()) {
    const uint64_t words = 1 + *std::max_element(compiled.outlined.joins.begin(), compiled.outlined.joins.end());
    ASSIGN_OR_RETURN(p.repeats, p.engine.flags.allocate(8 * words));
    std::memset(p.repeats->host, 0, p.repeats->bytes);
  }
  if (!compiled.code.module.functions.empty()) {
    ASSIGN_OR_RETURN(p.module, state_->load(compiled.cubin, compiled.ptx, compiled.level));
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    KernelState& k = p.kernels[i];
    const codegen::KernelCode& code = kernels[i];
    k.report.name = code.name;
    if (!code.refused.empty()) continue;
    KernelVariant& v = *k.variants.emplace_back(std::make_unique<KernelVariant>());
    v.code = code;
    if (i < compiled.forms.size()) v.encodings = compiled.forms[i];
    RETURN_IF_ERROR(v.find(state_->device, p.module->handle, compiled.kernels));
    v.describe(k.report);
  }
  return plan;
}

Forecast Engine::forecast(const Compiled& compiled, const SourceManager& sources, const EngineOptions& options,
                          const reference::Tables& tables, DataChoices* choices) {
  const data::ColumnsRead read = data::columns_read(compiled.outlined.program);
  if (!read.files.empty()) return {};
  for (const auto& [table, columns] : read.tables)
    for (const std::string& column : columns)
      if (!tables.is_loaded(table, column)) return {};
  Plan::State p(compiled, sources, options, *state_);
  p.tables = &tables;
  p.lay_out();
  if (!p.whole_program.empty()) return {};
  const auto library = state_->operators_for(options.operators);
  if (!library) return {};  // said when the program is planned
  p.sql = *library;
  Timings nobodys;
  return Run(*state_, p, nobodys, nullptr).forecast(choices);
}

Result<std::vector<Value>> Engine::run_once(Plan& plan, Timings& timings, std::string* printed,
                                            std::vector<KernelReport>* kernels, std::vector<std::string>* fallbacks,
                                            uint64_t* texts_walked) {
  RETURN_IF_ERROR(state_->check_device());
  Plan::State& p = *plan.state_;
  state_->memory.begin_peak();
  const size_t printed_before = printed ? printed->size() : 0;
  if (state_->encode != p.options.encode || state_->transfer != p.options.transfer) {
    state_->drop_cache();
    state_->encode = p.options.encode;
    state_->transfer = p.options.transfer;
  }
  if (!p.stream && (p.options.range_rows || p.options.in_two) && !p.stays_whole) {
    const Error stays{Fault::usage, "no table can be cut"};
    auto stream = Stream::make(*this, *state_, plan, stays, timings);
    if (stream)
      p.stream = *std::move(stream);
    else if (stream.error().fault == Fault::usage)
      p.stays_whole = true;
    else
      return stream.error();
  }
  if (!p.stream) {
    auto results = run_whole(plan, timings, printed, kernels, fallbacks, texts_walked);
    if (results || results.error().cause != Cause::device_full) return results;
    auto stream = Stream::make(*this, *state_, plan, results.error(), timings);
    if (!stream) {
      if (printed) printed->resize(printed_before);
      return run_on_host(p, stream.error(), timings, printed, fallbacks);
    }
    p.stream = *std::move(stream);
  }
  const ResultMemory::OnHost parts;  // of a query, which are put together there
  return errors_of([&] { return p.stream->run(timings, kernels, fallbacks, texts_walked); });
}

// What the host has made of columns goes before an answer does. A limit of values is one of memory, too.
Result<std::vector<Value>> Engine::run(Plan& plan, Timings& timings, std::string* printed,
                                       std::vector<KernelReport>* kernels, std::vector<std::string>* fallbacks,
                                       uint64_t* texts_walked) {
  const size_t printed_before = printed ? printed->size() : 0, kernels_before = kernels ? kernels->size() : 0,
               fallbacks_before = fallbacks ? fallbacks->size() : 0;
  auto results = run_once(plan, timings, printed, kernels, fallbacks, texts_walked);
  if (results || results.error().cause != Cause::cancelled || results.error().fault != Fault::world || is_cancelled() ||
      !state_->give_back_host())
    return results;
  if (printed) printed->resize(printed_before);
  if (kernels) kernels->resize(kernels_before);
  if (fallbacks) fallbacks->resize(fallbacks_before);
  return run_once(plan, timings, printed, kernels, fallbacks, texts_walked);
}

Result<std::vector<Value>> Engine::run_whole(Plan& plan, Timings& timings, std::string* printed,
                                             std::vector<KernelReport>* kernels, std::vector<std::string>* fallbacks,
                                             uint64_t* texts_walked) {
  auto scope = timings.measure(Phase::overhead, "run");
  Plan::State& p = *plan.state_;
  if (p.instead) {
    p.instead->state_->tables = p.tables;
    p.instead->state_->foresees &= p.foresees;
    return run_whole(*p.instead, timings, printed, kernels, fallbacks, texts_walked);
  }
  const bool is_unlimited = state_->memory.limit() == UINT64_MAX;  // under a limit pages of other sizes would be in the way
  const uint64_t evictions = state_->evictions, kept = state_->kept.allocations();
  state_->kept.keep_pages(!p.options.cache && is_unlimited);
  const size_t printed_before = printed ? printed->size() : 0;
  if (!p.whole_program.empty()) {
    auto cpu = timings.measure(Phase::cpu, "reference interpreter");
    return errors_of([&] { return reference::run(p.compiled.program, *p.tables, p.sources, printed); });
  }
  for (KernelState& k : p.kernels) {
    k.report.launches = k.report.late = 0;
    k.report.ns = k.report.all_floor_bytes = 0;
  }
  if (p.options.transfer == Transfer::automatic && !p.options.cache && !p.mapped && p.runs > 0 && p.tables == &state_->tables) {
    DataChoices choices;
    (void)forecast(p.compiled, p.sources, p.options, *p.tables, &choices);
    const model::Calibration unknown;
    for (size_t c = 0; c < choices.columns.size(); ++c) {
      if (!p.mapped) p.mapped.emplace();
      if (choices.maps(c, p.options.model ? *p.options.model : unknown))
        p.mapped->emplace(choices.columns[c].column.get(), choices.columns[c].of_rows);
    }
  }
  Result<std::vector<Value>> results = std::vector<Value>{};
  std::vector<uint32_t> repeats, unfit, apart;
  bool unsure = false, full = false, again = false;
  {
    Run run(*state_, p, timings, printed);
    state_->timings = &timings;
    results = errors_of([&] { return run.execute(); });
    state_->timings = nullptr;
    if (!results) {
      state_->note(results.error());
      run.settle();
    }
    // What was broken off from outside has no answers of the device, and no lost device runs anything again.
    const bool broken_off = !results && (results.error().cause == Cause::cancelled || results.error().cause == Cause::device_lost ||
                                         results.error().fault == Fault::interrupted);
    const bool wrong = !broken_off && run.was_wrong(results.ok());
    if (!results || wrong) {
      // It has left memory that is to be zero as it was.
      p.drop_replay();
      p.scratch = nullptr;
      for (OperatorSet& set : state_->operators) set.operators->recover();
    }
    repeats = p.take_repeats();
    unfit = std::exchange(p.unfit, {});
    apart = std::exchange(p.apart, {});
    if (p.take_without_parts()) {
      const std::vector<uint32_t>& floats = p.compiled.outlined.float_folds;
      if (floats.empty() && results && !wrong) results = input_error("`GPU.sum_part` got a number that has no such parts");
      unfit.insert(unfit.end(), floats.begin(), floats.end());
    }
    unsure = p.take_unsure();
    full = p.take_full();
    if (wrong && kept != state_->kept.allocations()) state_->drop_cache();  // kernels that did nothing were to fill it
    if (wrong) {  // and so is what it says of joins and groups
      repeats.clear(), unfit.clear(), apart.clear();
      unsure = false, full = true;
    }
    again = full || unsure || !repeats.empty() || !unfit.empty() || !apart.empty();
    if (results) ++p.runs;
    if (texts_walked) *texts_walked = run.texts_walked();
    if (fallbacks && !again)
      for (std::string& f : run.take_fallbacks()) fallbacks->push_back(std::move(f));
    if (kernels && !again) {
      for (size_t k = 0; k < p.kernels.size(); ++k)
        if (p.compiled.code.kernels[k].refused.empty()) kernels->push_back(p.kernels[k].report);
      for (KernelReport& r : run.take_library_reports()) kernels->push_back(std::move(r));
    }
  }
  if (results && p.options.encode == Encode::packed)  // what ends this early leaves the columns as they are
    (void)errors_of([&]() -> Result<void> {
      (void)state_->keep_forms_alone(false);
      return {};
    });
  if (!p.options.cache) state_->end_uncached(p, results && state_->evictions == evictions && is_unlimited);
  if (!again && !results && results.error().fault == Fault::input && p.compiled.outlined.flattened) {
    // The error may speak of what the outliner made of calls on cells; the program as it was has the right one, or none.
    auto cpu = timings.measure(Phase::cpu, "reference interpreter");
    if (printed) printed->resize(printed_before);
    auto said = errors_of([&] { return reference::run(p.compiled.program, *p.tables, p.sources, printed); });
    if (!said) return said;
    if (!p.options.allow_fallback) return results;
    if (fallbacks) fallbacks->push_back(whole_program_fallback("cells that do not fit each other as its kernels need it"));
    return said;
  }
  if (!again) return results;
  if (full && repeats.empty() && unfit.empty() && apart.empty() && !unsure) {
    p.drop_replay();
    if (printed) printed->resize(printed_before);
    return run_whole(plan, timings, printed, kernels, fallbacks, texts_walked);
  }
  // Its results are wrong or not there, and so may be its errors: once more, and from now on, with those joins and groups as the operators that they
  // are in the program, or sums of floats in integers of as many bits as they need. A join that looked among all rows of a table looks among those
  // that its mask selects first.
  std::vector<uint32_t> not_whole = p.compiled.not_whole, not_unique = p.compiled.not_unique;
  const std::vector<uint32_t>& whole = p.compiled.outlined.whole_joins;
  for (uint32_t join : repeats)
    (std::find(whole.begin(), whole.end(), join) != whole.end() ? not_whole : not_unique).push_back(join);
  unfit.insert(unfit.end(), p.compiled.not_folded.begin(), p.compiled.not_folded.end());
  apart.insert(apart.end(), p.compiled.folds_apart.begin(), p.compiled.folds_apart.end());
  ASSIGN_OR_RETURN(Compiled instead, compile_again(p.compiled,
                                                   {.not_unique = std::move(not_unique),
                                                    .not_whole = std::move(not_whole),
                                                    .not_folded = std::move(unfit),
                                                    .folds_apart = std::move(apart),
                                                    .exact_sums = unsure || p.compiled.exact_sums},
                                                   timings));
  p.drop_replay();
  p.compiled_again = std::make_unique<Compiled>(std::move(instead));
  ASSIGN_OR_RETURN(p.instead, this->plan(*p.compiled_again, p.sources, p.options, timings));
  if (printed) printed->resize(printed_before);
  p.instead->state_->tables = p.tables;
  p.instead->state_->foresees = p.foresees;
  return run_whole(*p.instead, timings, printed, kernels, fallbacks, texts_walked);
}

}  // namespace rndn::runtime
