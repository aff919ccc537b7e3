// The assembler, pass by pass.
#include <algorithm>
#include <numeric>

#include "assembler/assemble.h"
#include "assembler/backend/backend.h"
#include "assembler/backend/line_tables.h"
#include "assembler/check/check.h"
#include "assembler/isa/make.h"
#include "assembler/optimize/optimize.h"
#include "assembler/select/selection.h"
#include "assembler/stencils/stencils.h"
#include "libraries/base/system/parallel.h"
#include "ptx/parse.h"
#include "ptx/transform/inline_calls.h"
#include "ptx/transform/legalize.h"
#include "ptx/transform/unroll.h"
#include "ptx/transform/vectorize_memory.h"

namespace rndn::assembler {

struct Workspace::Worker {
  Arena arena;
  isa::FormCache forms;
  const isa::Target* target = nullptr;  // of the forms
  SelectionRoom selection;              // memory of the last kernel
  Code code;
  RawVector<Facts> facts;
  RawVector<uint32_t> unit_begin, unit_items;
  RegisterLists registers;
  StencilCache stencils;
};
Workspace::Workspace() = default;
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

namespace {

// Up to how many live registers the scheduler may start loads early: those of the occupancy step, less what alignment costs the allocator.
uint32_t pressure_limit(const Function& f, uint32_t step, uint32_t slack) {
  const uint32_t extra = f.target->reported_registers_extra;
  return std::min(f.max_registers * 7 / 8, std::max<uint32_t>(12, std::max(step, extra + slack) - extra - slack));
}
// Whether the registers of full occupancy are not worth asking for: with this many units of general registers, or half as many again alive across
// blocks, code hardly ever gets by with them, and to ask takes the liveness of code that will change.
bool surely_exceeds(const Function& f, uint32_t crossing) {
  constexpr size_t large_function = 768;
  return f.gprs.size() > large_function || crossing > full_occupancy_registers(*f.target) * 3 / 2;
}
// Takes values out of general registers; returns whether anything changed.
bool relieve(Function& f, Survey& survey, isa::FormCache& forms) {
  const bool moved = !f.calls && move_uniform_values(f, survey, forms);
  return rematerialise(f, survey) || moved;
}
// So many may be alive at once without losing a step of occupancy, or spilling.
uint32_t enough_registers(const Function& f) {
  const uint32_t extra = f.target->reported_registers_extra;
  return std::min(full_occupancy_registers(*f.target), f.max_registers + extra) - extra;
}
// Puts blocks into another order where that makes a step of occupancy, or spills less; returns how many registers are alive at once.
uint32_t lower_pressure(Function& f, const Liveness& live, uint32_t pressure) {
  const uint32_t extra = f.target->reported_registers_extra, enough = enough_registers(f);
  if (pressure <= enough) return pressure;
  const uint32_t wanted = std::max(enough, (pressure + extra - 1) / 8 * 8 - extra);
  return std::min(pressure, order_for_registers(f, live, enough, wanted));
}
std::string first_of(const std::vector<std::string>& problems) {
  return problems.size() == 1 ? problems[0] : fmt::format("{} (and {} more)", problems[0], problems.size() - 1);
}

// Registers for results that are under way together, beyond those that are alive anyway, where some block waits for several: loads, shuffles. What a
// warp has under way grows with them faster than the number of warps falls (Volkov, "Better Performance at Lower Occupancy", 2010; measured on an H100
// with ordinary programs, docs/measurements/ordinary-programs.tsv). No more than if all that such a block waits for were under way at its begin or its end.
// Where occupancy is full, it is given up by one step for loops of many loads alone that have no room without.
uint32_t room_under_way(const Function& f, const Liveness& live, uint32_t pressure, uint32_t free_of_cost) {
  constexpr uint32_t several = 3, many = 8, one_step = 8, little = 12, lacking = 4;
  const uint32_t extra = f.target->reported_registers_extra, left = std::max(f.max_registers, pressure) - pressure;
  const bool full = pressure + extra <= free_of_cost;
  const auto alive = [&](const LiveSet& set) {
    uint32_t count = 0;
    for (uint32_t u : set) count += f.units.is_gpr(u);
    return count;
  };
  uint32_t most = 0;  // alive with all that is under way
  for (BlockId b : f.layout) {
    if (full && f.blocks[b].loop_depth == 0) continue;
    uint32_t count = 0, results = 0;
    for (InstId i : f.blocks[b].code) {
      const Facts& x = f.facts[index(i)];
      if (!(full ? x.memory == Memory::global_load : x.announced)) continue;
      ++count;
      for (Range r : x.writes()) results += r.file() == Range::gpr ? r.width() : 0;
    }
    if (count >= (full ? many : several))
      most = std::max(most, std::max(alive(live.in(b)), alive(live.out(b))) + results);
  }
  if (most <= pressure) return 0;
  if (!full) return std::min({left, most - pressure, 24 + pressure / 8});
  const uint32_t within = free_of_cost - extra - pressure;
  return within < little && most >= pressure + within + lacking ? std::min(left, within + one_step) : 0;
}

// Whether a multiprocessor holds more blocks with the lower number of registers. Where their size is open, those of 256 and of 512 threads decide: with 40 and
// 64 registers it holds more of both than with the next step (`minimod` of HeCBench).
bool holds_more_blocks(const Function& f, uint32_t lower, uint32_t registers) {
  const auto blocks = [&](uint32_t of, uint64_t threads) {
    return f.target->registers_per_sm / ((of + 7) / 8 * 8 * ((threads + 31) / 32 * 32));
  };
  const auto more = [&](uint64_t threads) { return blocks(lower, threads) > blocks(registers, threads); };
  const ptx::Function& p = *f.source;
  const auto& size = p.required_threads[0] ? p.required_threads : p.max_threads;
  if (size[0]) return more(uint64_t{size[0]} * std::max(1u, size[1]) * std::max(1u, size[2]));
  return more(256) && more(512);
}

// Runs a scheduling pass, checked when asked for.
template <class F>
Result<void> reorder(Function& f, const Options& o, F&& pass) {
  Function before;
  if (o.verify_passes) before = f;
  pass();
  if (o.verify_passes)
    if (auto problems = check_order(before, f); !problems.empty()) return Error{Fault::internal, first_of(problems)};
  return {};
}

// Longer stalls than the schedule needs, up to 11 cycles: beyond, stalls and the yield bit mean something else.
void lengthen_stalls(Function& f, const Code& code, const Options& o) {
  constexpr uint8_t longest = 11;
  uint64_t state = o.stall_seed;
  for (InstId id : code.order) {
    uint8_t& stall = f.facts[index(id)].control.stall;
    if (stall >= longest) continue;
    state = state * 6364136223846793005u + 1442695040888963407u;
    stall = o.stalls == Stalls::maximal
                ? longest
                : static_cast<uint8_t>(stall + (state >> 33) % static_cast<uint64_t>(longest - stall + 1));
  }
}

Result<void> check_parameters(const ptx::Module& m, const ptx::Function& p, const isa::Target& t) {
  const bool newer = m.version >= 81 && m.target >= 70;
  const uint32_t most = newer ? t.max_parameter_bytes_81 : t.max_parameter_bytes;
  const uint64_t bytes = ptx::lay_out_parameters(p, [](uint32_t, uint32_t, uint32_t) {});
  if (bytes <= most) return {};
  const std::string later = !newer && bytes <= t.max_parameter_bytes_81
                                ? fmt::format("; {} with .version 8.1 and .target sm_70", t.max_parameter_bytes_81)
                                : "";
  return input_error("function {}, line {}: {} bytes of parameters, {} allows {}{}", p.name, p.line, bytes, t.name,
                     most, later);
}

Result<void> check_shared(const cubin::Kernel& k, const Options& o) {
  if (k.shared_bytes <= o.target->max_shared_bytes + o.target->shared_base) return {};
  return input_error("function {}: {} bytes of shared memory, {} allows {}", k.name, k.shared_bytes, o.target->name,
                     o.target->max_shared_bytes);
}

Result<void> assemble_kernel(const ptx::Module& module, const ptx::Function& p, const SourceLines& lines,
                             const Options& o, Workspace::Worker& memory, Timings& timings, cubin::Kernel& k,
                             KernelReport& report) {
  Arena& arena = memory.arena;
  ArenaScope scratch(arena);
  const bool list = o.level >= 2 && o.scheduler == Scheduler::list;
  Flow flow;
  {
    auto scope = timings.measure(Phase::structure, p.name);
    ASSIGN_OR_RETURN(flow, structure(module, p, *o.target, o.level >= 1, o.branch_inlining && o.level >= 1, arena));
  }
  if (uses_stencils(o) && !o.line_tables && o.stalls == Stalls::scheduled) {
    auto scope = timings.measure(Phase::select, p.name);
    ASSIGN_OR_RETURN(const bool made, copy_and_patch(module, p, flow, o, memory.forms, arena, memory.selection,
                                                     memory.stencils, k, report));
    if (made) return check_shared(k, o);
  }
  Function f;
  {
    auto scope = timings.measure(Phase::select, p.name);
    ASSIGN_OR_RETURN(f,
                     select(module, p, flow, ptx::lay_out_shared(module, p), o, memory.forms, arena, memory.selection));
    f.facts = std::move(memory.facts);
    f.units.begin = std::move(memory.unit_begin), f.units.items = std::move(memory.unit_items);
    f.registers = std::move(memory.registers);
  }
  Survey known;
  {
    auto scope = timings.measure(Phase::peephole, p.name);
    known = survey(f);
    find_guarded_values(f, known);
    remove_dead_code(f, known);
    if (o.level >= 1 && o.target->family == isa::Family::volta) join_copies(f, known);
    if (o.level >= 1) combine(f, known, memory.forms);
    if (o.level >= 1 && spread_zeros(f, known)) remove_dead_code(f, known);
    if (o.level >= 2 && !f.calls) share_values(f, known);  // calls of the driver keep what PTX has alive, and no more
  }
  Liveness live;
  uint32_t pressure = 0;
  {
    auto scope = timings.measure(Phase::allocate, p.name);
    const auto measure = [&] {
      live = compute_liveness(f);
      if (list) pressure = register_pressure(f, live);
    };
    const auto loses_a_step = [&] {
      return pressure + o.target->reported_registers_extra > full_occupancy_registers(*o.target);
    };
    const bool exceeds = list && surely_exceeds(f, known.crossing);
    if (exceeds) relieve(f, known, memory.forms);
    measure();
    if (!exceeds && loses_a_step() && relieve(f, known, memory.forms)) measure();
    const uint32_t to_the_step = (pressure + o.target->reported_registers_extra - 1) % 8 + 1;
    if (loses_a_step() && remove_partly_dead_code(f, live, to_the_step)) measure();
    const auto lower = [&] { return reorder(f, o, [&] { pressure = lower_pressure(f, live, pressure); }); };
    if (list) RETURN_IF_ERROR(lower());
    if (pressure > enough_registers(f)) {  // values that are written several times may have bound the order
      const std::span<const Renamed> renamed = split_values(f, live);
      const uint32_t before = pressure;
      if (!renamed.empty()) RETURN_IF_ERROR(lower());
      if (pressure == before) join_values(f, renamed);
    }
  }
  // Registers of full occupancy are free: values may live longer in them, so that more loads are under way. Scheduled again when the registers exceed
  // the occupancy step that the code can reach: with less room for early loads in the blocks that took more than they were to, if only some did, then
  // with less everywhere.
  const uint32_t extra = o.target->reported_registers_extra, free_of_cost = (enough_registers(f) + extra) / 8 * 8,
                 room = list ? room_under_way(f, live, pressure, free_of_cost) : 0;
  uint32_t step = std::max((pressure + extra + room + 7) / 8 * 8, free_of_cost);
  // Little is left for what alignment costs at first, where that decides about full occupancy.
  const uint32_t ample = std::max<uint32_t>(8, step / 10), close = 3;
  uint32_t slack = step == free_of_cost ? close : ample;
  // The step before it was lowered for more blocks, which is given up where only less under way everywhere would do; 0: it was not.
  uint32_t as_it_was = 0;
  bool settled = !list || room == 0 || step == free_of_cost;  // the step
  const uint32_t tight = std::max<uint32_t>(24, pressure_limit(f, step, ample)) - 24;
  SchedulePlan plan;
  enum class Early {
    as_planned,
    less_where_crowded,
    less_everywhere
  } early = list ? Early::as_planned : Early::less_everywhere;
  for (bool uneven = false;;) {
    if (list) {
      auto scope = timings.measure(Phase::schedule, p.name);
      if (plan.program.empty()) plan = plan_schedule(f);
      const uint32_t limit = pressure_limit(f, step, slack), most = early == Early::less_everywhere ? tight : limit,
                     crowded = early == Early::as_planned ? limit : tight;
      RETURN_IF_ERROR(reorder(f, o, [&] { uneven = schedule(f, plan, live, most, crowded); }));
      // What is under way is not worth a step of occupancy for its last register or two, nor a block for a quarter of the registers (`crc64` of HeCBench, where
      // it is half of them, took 1.27 times as long with more blocks: docs/measurements/ordinary-programs.tsv).
      if (!settled) {
        settled = true;
        const uint32_t used = register_pressure(f, live) + extra, lower = (used - 1) / 8 * 8;
        const bool little = used <= lower + 2 && lower >= pressure + extra + close,
                   for_blocks = lower > free_of_cost && lower >= pressure + extra &&
                                used - (pressure + extra) <= used / 4 && holds_more_blocks(f, lower, used);
        if (lower >= free_of_cost && (little || for_blocks)) {
          if (!little) as_it_was = step;
          step = lower, slack = close;
          continue;
        }
      }
    }
    auto scope = timings.measure(Phase::allocate, p.name);
    Function before;
    if (o.verify_passes) before = f;
    const bool settles = early == Early::less_everywhere;
    ASSIGN_OR_RETURN(bool within, allocate_registers(f, live, list ? step - extra : 0, !settles));
    // Pairs and quads leave gaps. Where occupancy is less than full anyway, rather more registers than less under way.
    if (!within && step > free_of_cost && !as_it_was) {
      ASSIGN_OR_RETURN(within,
                       allocate_registers(f, live, std::min(step + step / 5, f.max_registers + extra) - extra, true));
    }
    if (!within && slack == close) {
      slack = ample;
      continue;
    }
    if (!within) {
      early = early == Early::as_planned && uneven ? Early::less_where_crowded : Early::less_everywhere;
      if (early == Early::less_everywhere && as_it_was)
        step = as_it_was, slack = ample, as_it_was = 0, early = Early::as_planned;
      continue;
    }
    if (o.verify_passes)
      if (auto problems = check_allocation(before, f); !problems.empty())
        return Error{Fault::internal, first_of(problems)};
    break;
  }
  {
    auto scope = timings.measure(Phase::peephole, p.name);
    if (o.level >= 1) peephole_allocated(f);
    if (list && o.target->family == isa::Family::volta) balance_pipes(f, memory.forms);
  }
  Code code;
  {
    auto scope = timings.measure(Phase::schedule, p.name);
    if (list) RETURN_IF_ERROR(reorder(f, o, [&] { schedule_allocated(f); }));
    if (o.level >= 1) place_blocks(f);
    code = lay_out(f, memory.forms, std::move(memory.code));
    assign_barriers(f, code);
    if (o.stalls != Stalls::scheduled) lengthen_stalls(f, code, o);
  }
  auto scope = timings.measure(Phase::encode, p.name);
  report.instructions = static_cast<uint32_t>(code.order.size()) + 1;
  ASSIGN_OR_RETURN(k, emit(module, f, code));
  if (o.line_tables) k.lines = lines.rows(f, code);
  if (o.verify_passes) {
    std::vector<isa::Instruction> stream;
    for (InstId i : code.order) stream.push_back(f[i].sass);
    if (auto problems = check_regions(*o.target, stream, code.addresses); !problems.empty())
      return Error{Fault::internal, fmt::format("function {}: {}", p.name, first_of(problems))};
    if (auto problems = check_schedule(*o.target, stream, code.addresses); !problems.empty())
      return Error{Fault::internal, first_of(problems)};
  }
  if (o.max_registers) k.max_registers = o.max_registers;
  report.name = p.name;
  report.registers = k.registers;
  report.spill_bytes = f.spill_bytes;
  report.shared_bytes = k.shared_bytes;
  report.spill_store_bytes = f.spill_store_bytes, report.spill_load_bytes = f.spill_load_bytes;
  RETURN_IF_ERROR(check_shared(k, o));
  memory.selection.insts = std::move(f.insts);
  for (Block& b : f.blocks) memory.selection.code.push_back(std::move(b.code));
  memory.code = std::move(code);
  memory.facts = std::move(f.facts);
  memory.unit_begin = std::move(f.units.begin), memory.unit_items = std::move(f.units.items);
  memory.registers = std::move(f.registers);
  return {};
}

// What turns modules into simpler ones before their functions are assembled one by one.
struct Rewriting {
  std::string_view name;
  Result<std::optional<ptx::Module>> (*run)(const ptx::Module&);  // none: nothing to do
  int from_level = 0;
  bool Options::*wanted = nullptr;  // none: always
};
constexpr Rewriting rewritings[] = {{"expansion", ptx::expand},
                                    {"inlining", ptx::inline_calls},
                                    {"unrolling", ptx::unroll, 2, &Options::unrolling},
                                    {"joining of words", ptx::join_words, 2}};

// Memory for so many threads.
std::span<const std::unique_ptr<Workspace::Worker>> workers(const Options& options, Workspace& own, size_t threads) {
  Workspace& w = options.workspace ? *options.workspace : own;
  while (w.workers.size() < threads) w.workers.push_back(std::make_unique_for_overwrite<Workspace::Worker>());
  for (const auto& worker : w.workers)
    if (worker->target != options.target) worker->forms.clear(), worker->target = options.target;
  return {w.workers.data(), threads};
}

// The same; what is not about a statement is about the function.
Result<void> assemble_named(const ptx::Module& module, const ptx::Function& p, const SourceLines& lines,
                            const Options& o, Workspace::Worker& memory, Timings& timings, cubin::Kernel& k,
                            KernelReport& report) {
  RETURN_IF_ERROR(check_cancelled());
  Result<void> made = assemble_kernel(module, p, lines, o, memory, timings, k, report);
  if (made) return made;
  Error error = Error(made.error()).about(p.name);
  return error.line ? error : std::move(error).at(p.line);
}

// All kernels in their order; side by side with a pool, the longest first.
Result<void> assemble_kernels(const ptx::Module& module, std::span<const ptx::Function* const> entries,
                              const SourceLines& lines, const Options& options, Timings& timings,
                              std::vector<cubin::Kernel>& kernels, std::span<KernelReport> reports) {
  kernels.resize(entries.size());
  Workspace own;
  if (!options.pool || options.pool->threads() == 1 || entries.size() < 2) {
    Workspace::Worker& worker = *workers(options, own, 1).front();
    for (size_t i = 0; i < entries.size(); ++i) {
      RETURN_IF_ERROR(assemble_named(module, *entries[i], lines, options, worker, timings, kernels[i], reports[i]));
    }
    return {};
  }
  std::vector<uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return entries[a]->instructions.size() > entries[b]->instructions.size();
  });
  const std::span<const std::unique_ptr<Workspace::Worker>> memory = workers(options, own, options.pool->threads());
  std::vector<Timings> overlap(options.pool->threads());
  std::vector<Result<void>> results(entries.size());
  auto waiting = timings.measure(Phase::encode);
  options.pool->run(entries.size(), [&](size_t n, unsigned worker) {
    const uint32_t i = order[n];
    results[i] = assemble_named(module, *entries[i], lines, options, *memory[worker],
                                worker ? overlap[worker] : timings, kernels[i], reports[i]);
  });
  for (const Timings& t : overlap) timings.add_overlap(t);
  for (Result<void>& r : results) RETURN_IF_ERROR(r);
  return {};
}

}  // namespace

Result<Assembled> assemble(const ptx::Module& input, const Options& options, Timings& timings) {
  CHECK(options.target != nullptr, "no target");
  if (input.target > options.target->sm)
    return input_error(".target sm_{} does not run on {}", input.target, options.target->name);
  for (const ptx::Function& p : input.functions)
    if (p.is_entry) RETURN_IF_ERROR(check_parameters(input, p, *options.target));
  const ptx::Module* simplest = &input;
  ptx::Module rewritten;
  for (const Rewriting& r : rewritings) {
    if (options.level < r.from_level || (r.wanted && !(options.*r.wanted))) continue;
    RETURN_IF_ERROR(check_cancelled());
    auto scope = timings.measure(Phase::structure);
    ASSIGN_OR_RETURN(std::optional<ptx::Module> made, r.run(*simplest));
    if (!made) continue;
    rewritten = *std::move(made);
    simplest = &rewritten;
    if (options.verify_passes)
      if (auto problems = ptx::verify(rewritten); !problems.empty())
        return Error{Fault::internal, fmt::format("after {}: {}", r.name, first_of(problems))};
  }
  const ptx::Module& module = *simplest;
  Assembled result;
  cubin::Image image;
  image.sm = options.target->sm;
  image.ptx_target = module.target;
  ptx::ConstantLayout constants;  // once an initial value has an address in it
  for (uint32_t id = 0; id < module.variables.size(); ++id) {
    const ptx::Variable& v = module.variables[ptx::VariableId{id}];
    if (v.space != ptx::Space::global && v.space != ptx::Space::constant) continue;
    cubin::Variable x;
    x.name = ptx::symbol_of(module, ptx::VariableId{id});
    x.size = uint64_t{ptx::type_bytes(v.type)} * (v.count ? v.count : 1);
    x.align = v.align ? v.align : std::max(1u, ptx::type_bytes(v.type));
    x.initial.assign(v.initial.begin(), v.initial.end());
    if (!x.initial.empty()) x.initial.resize(x.size);
    for (const ptx::Variable::Address& a : v.addresses) {
      const bool in_bank = !a.function && module.variables[ptx::VariableId{a.id}].space == ptx::Space::constant;
      if (in_bank && constants.offsets.empty()) constants = ptx::lay_out_constants(module);
      if (a.function || in_bank) {
        const uint64_t base = a.function ? ptx::function_address(a.id) : constants.offsets[a.id];
        const uint64_t value = base + static_cast<uint64_t>(a.addend);
        std::memcpy(x.initial.data() + a.offset, &value, 8);
      } else {
        x.relocations.push_back(
            {cubin::Relocation::generic_64, a.offset, ptx::symbol_of(module, ptx::VariableId{a.id}), a.addend});
      }
    }
    x.constant = v.space == ptx::Space::constant;
    x.visible = v.visible;
    x.managed = v.managed;
    image.variables.push_back(std::move(x));
  }
  std::vector<const ptx::Function*> entries;  // the others are inlined where they are called
  for (const ptx::Function& p : module.functions)
    if (p.is_entry) entries.push_back(&p);
  result.kernels.resize(entries.size());
  SourceLines lines;
  if (options.line_tables) lines = SourceLines(input, image);
  RETURN_IF_ERROR(assemble_kernels(module, entries, lines, options, timings, image.kernels, result.kernels));
  auto scope = timings.measure(Phase::encode);
  result.cubin = cubin::write(image);
  return result;
}

}  // namespace rndn::assembler
