// The assembler, pass by pass: one kernel of a PTX module to its code.
#include "assembler/pipeline.h"

#include "assembler/flow/structurize.h"
#include "assembler/optimize/optimize.h"

namespace rndn::assembler {
namespace {

void simplify(Function& f, Survey& known, isa::FormCache& forms, const Options& o) {
  known = survey(f);
  find_predicated_live_ranges(f, known);
  remove_dead_code(f, known);
  if (o.level >= 1 && o.target->family == isa::Family::volta) coalesce_copies(f, known);
  if (o.level >= 1) combine(f, known, forms);
  if (o.level >= 1 && propagate_zero(f, known)) remove_dead_code(f, known);
  if (o.level >= 2 && !f.calls) number_values(f, known);  // calls of the driver keep what PTX has alive, and no more
}

Result<void> check_code(const Function& f, const Code& code) {
  std::vector<isa::Instruction> stream;
  for (InstId i : code.order) stream.push_back(f[i].sass);
  RETURN_IF_ERROR(found(check_regions(*f.target, stream, code.addresses), "function " + f.source->name + ": "));
  return found(check_schedule(*f.target, stream, code.addresses));
}

Result<void> check_shared(const cubin::Kernel& k, const Options& o) {
  if (k.shared_bytes <= o.target->max_shared_bytes + o.target->shared_base) return {};
  return input_error("function {}: {} bytes of shared memory, {} allows {}", k.name, k.shared_bytes, o.target->name,
                     o.target->max_shared_bytes);
}

// Memory of the last kernel for the next, and back.
void lend(Workspace::Worker& memory, Function& f) {
  f.facts = std::move(memory.facts);
  f.units.begin = std::move(memory.unit_begin), f.units.items = std::move(memory.unit_items);
  f.registers = std::move(memory.registers);
}
void give_back(Function& f, Code& code, Workspace::Worker& memory) {
  memory.selection.insts = std::move(f.insts);
  for (Block& b : f.blocks) memory.selection.code.push_back(std::move(b.code));
  memory.code = std::move(code);
  memory.facts = std::move(f.facts);
  memory.unit_begin = std::move(f.units.begin), memory.unit_items = std::move(f.units.items);
  memory.registers = std::move(f.registers);
}

}  // namespace

Result<void> assemble_kernel(const ptx::Module& module, const ptx::Function& p, const SourceLines& lines,
                             const Options& o, Workspace::Worker& memory, Timings& timings, cubin::Kernel& k,
                             KernelReport& report) {
  Arena& arena = memory.arena;
  ArenaScope scratch(arena);
  const bool list = uses_list_scheduler(o);
  const auto measure = [&](Phase phase) { return timings.measure(phase, p.name); };
  Flow flow;
  {
    auto scope = measure(Phase::structure);
    ASSIGN_OR_RETURN(flow, structure(module, p, *o.target, o.level >= 1, o.branch_inlining && o.level >= 1, arena));
  }
  Function f;
  {
    auto scope = measure(Phase::select);
    if (uses_stencils(o) && !o.line_tables && o.stalls == Stalls::scheduled) {
      ASSIGN_OR_RETURN(const bool made, copy_and_patch(module, p, flow, o, memory.forms, arena, memory.selection,
                                                       memory.stencils, k, report));
      if (made) return check_shared(k, o);
    }
    ASSIGN_OR_RETURN(f,
                     select(module, p, flow, ptx::lay_out_shared(module, p), o, memory.forms, arena, memory.selection));
    lend(memory, f);
  }
  Survey known;
  {
    auto scope = measure(Phase::peephole);
    simplify(f, known, memory.forms, o);
  }
  Liveness live;
  uint32_t pressure = 0;
  {
    auto scope = measure(Phase::allocate);
    ASSIGN_OR_RETURN(pressure, reduce_pressure(f, known, memory.forms, o, live));
  }
  RETURN_IF_ERROR(schedule_and_allocate(f, live, pressure, o, timings));
  {
    auto scope = measure(Phase::peephole);
    if (o.level >= 1) peephole_allocated(f);
    if (list && o.target->family == isa::Family::volta) balance_pipes(f, memory.forms);
  }
  Code code;
  {
    auto scope = measure(Phase::schedule);
    if (list) RETURN_IF_ERROR(reorder(f, o, [&] { schedule_allocated(f); }));
    if (o.level >= 1) place_blocks(f);
    code = lay_out(f, memory.forms, std::move(memory.code));
    assign_barriers(f, code);
    lengthen_stalls(f, code, o);
  }
  auto scope = measure(Phase::encode);
  const uint32_t instructions = static_cast<uint32_t>(code.order.size()) + 1;  // emit pads
  ASSIGN_OR_RETURN(k, emit(module, f, code));
  if (o.line_tables) k.lines = lines.rows(f, code);
  if (o.verify_passes) RETURN_IF_ERROR(check_code(f, code));
  if (o.max_registers) k.max_registers = o.max_registers;
  report = {.name = p.name,
            .registers = k.registers,
            .instructions = instructions,
            .spill_bytes = f.spill_bytes,
            .shared_bytes = k.shared_bytes,
            .spill_store_bytes = f.spill_store_bytes,
            .spill_load_bytes = f.spill_load_bytes};
  give_back(f, code, memory);
  return check_shared(k, o);
}

}  // namespace rndn::assembler
