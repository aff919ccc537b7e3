// The frame of a kernel: parameters, prologue, tile loop, epilogue (emitter.h draws it), and its statements.
//
// In: a kernel function of an outlined program with the shapes of its variables. Out: one entry and its KernelCode.
// A variable is a scalar (computed once by every thread, before the loop), has one element per item, or is a lazily masked selection of
// the items; which one follows from its shape. Statements are evaluated item by item in program order.
// Cost: O(statements x items per thread).
#include "ptx/codegen/kernel.h"

#include <algorithm>
#include <bit>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {

using hir::Expression;
using hir::ExpressionId;
using hir::Statement;
using hir::StatementId;
using hir::VariableId;
using ptx::Compare;

Reg<Pred> both(Emitter& e, Reg<Pred> x, Reg<Pred> y) {
  if (!x.valid() || x == y) return y;
  if (!y.valid()) return x;
  return e.b.and_(x, y);
}

Reg<Pred> active(Emitter& e, Reg<Pred> mask) {
  if (!e.in_loop) return {};
  if (!e.valid.valid()) e.valid = e.b.setp(Compare::gt, e.room, static_cast<int32_t>(e.local_offset(e.item)));
  if (!mask.valid()) return e.valid;
  auto [it, fresh] = e.active.try_emplace(mask.id);
  if (fresh) it->second = e.b.and_(mask, e.valid);
  return it->second;
}

// Any order of threads leaves the same word: the largest.
void report_error(Emitter& e, Reg<Pred> bad, uint32_t statement, RuntimeError error) {
  const uint64_t word = uint64_t{e.kernel_index << 16 | (statement & 0xFFFF)} << 32 | static_cast<uint32_t>(error);
  Reg<U64> where = e.b.ld_param(e.error);
  e.b.when(bad).red<U64>(ptx::AtomicOp::max, Space::global, Address(where), ptx::Value<U64>(word));
}

namespace {

ExpressionId innermost(const hir::Function& f, ExpressionId id) {
  while (f.expressions[id].kind == Expression::cast) id = f.expressions[id].inner;
  return id;
}

// Addresses of data and of size slots, by kernel parameter.
using DataParameters = std::vector<std::pair<ptx::ParameterOf<U64>, ptx::ParameterOf<U64>>>;

// A statement of the kernel, looked at once.
struct Step {
  StatementId id{};
  VariableId target{};
  const Expression* expression = nullptr;  // innermost
  std::vector<BasicType> casts;            // inner to outer
  bool call = false;
  Builtin builtin{};
  bool scalar = false, reduction = false;
};

bool has_scalar_shape(const Emitter& e, VariableId v) {
  return outliner::is_scalar(e.outlined.shapes, e.kernel.shapes[v]);
}

// Selected from the items by a mask: its size is neither one nor the geometry.
bool is_masked(const Emitter& e, VariableId v) {
  return !has_scalar_shape(e, v) && e.outlined.shapes[e.kernel.shapes[v]].size != e.kernel.geometry;
}

std::vector<Step> plan_steps(Emitter& e) {
  std::vector<Step> steps;
  for (StatementId id : e.function.blocks[e.function.body].statements) {
    const Statement& s = e.function.statements[id];
    if (s.kind == Statement::return_ || s.kind == Statement::declare) continue;
    Step step{.id = id, .target = s.targets[0].variable_id()};
    for (ExpressionId x = s.value; e.function.expressions[x].kind == Expression::cast;
         x = e.function.expressions[x].inner)
      step.casts.insert(step.casts.begin(), e.basic(e.function.expressions[x].cast_type));
    step.expression = &e.function.expressions[innermost(e.function, s.value)];
    step.call = step.expression->kind == Expression::call;
    if (step.call) {
      step.builtin = step.expression->callee.builtin_id;
      step.reduction = hir::row(step.builtin).reduction;
    }
    step.scalar = !step.reduction && has_scalar_shape(e, step.target);
    steps.push_back(std::move(step));
  }
  return steps;
}

Element operand_element(Emitter& e, const hir::Operand& operand) {
  if (operand.kind == hir::Operand::literal) return literal_element(e.program.literals[operand.literal_id()]);
  return e.values[operand.id];
}

// The current item's index among the kernel's elements.
Element item_index(Emitter& e) {
  const uint32_t offset = e.local_offset(e.item);
  Reg<S64> first = Builder::as<S64>(e.first_index);
  return element(BasicType::i64, offset ? e.b.add(first, offset) : first);
}

void run_step(Emitter& e, const Step& step) {
  std::vector<Element> arguments;
  for (const hir::Operand& operand : step.expression->operands) arguments.push_back(operand_element(e, operand));
  Element x;
  if (!step.call) {
    x = arguments[0];
  } else {
    const BasicType result = e.basic(step.expression->types[0]);
    switch (step.builtin) {
      case Builtin::compress: {
        const Element mask = in_register(e, arguments[0]);
        x = arguments[1];
        x.mask = both(e, reg<Pred>(mask), both(e, mask.mask, x.mask));
        break;
      }
      case Builtin::where: {
        const Element mask = in_register(e, arguments[0]);
        x = e.in_loop ? item_index(e) : constant_element(BasicType::i64, 0);
        x.mask = reg<Pred>(mask);
        break;
      }
      case Builtin::range: x = e.in_loop ? item_index(e) : constant_element(BasicType::i64, 0); break;
      case Builtin::vector: x = convert(e, arguments[1], result); break;
      case Builtin::index:
        x = gather(e, step.expression->operands[0].variable_id(), arguments[1], index(step.id));
        break;
      default: x = element_wise(e, step.builtin, arguments, result, index(step.id)); break;
    }
  }
  for (BasicType cast : step.casts) x = convert(e, x, cast);
  e.values[index(step.target)] = convert(e, x, e.type_of(step.target));
}

// Constants that the loop needs in registers are made once, before it.
void prepare_constants(Emitter& e, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (step.scalar || step.reduction || !step.call) continue;
    std::vector<BasicType> types;
    for (const hir::Operand& o : step.expression->operands)
      types.push_back(o.kind == hir::Operand::literal ? e.basic(e.program.literals[o.literal_id()].type)
                                                      : e.type_of(o.variable_id()));
    const bool logical = step.builtin == Builtin::compress || step.builtin == Builtin::where ||
                         step.builtin == Builtin::vector || step.builtin == Builtin::range;
    for (size_t k = 0; k < step.expression->operands.size(); ++k) {
      const hir::Operand& o = step.expression->operands[k];
      if (o.kind != hir::Operand::literal) continue;
      const BasicType to =
          logical ? types[k] : operand_type(step.builtin, types, k, e.basic(step.expression->types[0]));
      const Element x = convert(e, literal_element(e.program.literals[o.literal_id()]), to);
      if (k == 0 || !fits_immediate(rep_of(to), x.value.value)) in_register(e, x);
    }
  }
}

bool can_fail(const Emitter& e, const Step& s) {
  return s.call && (s.builtin == Builtin::index || ((s.builtin == Builtin::div || s.builtin == Builtin::mod) &&
                                                    hir::is_integer(e.basic(s.expression->types[0]))));
}

// The vector that an `index` takes elements from: whole, not element by element.
bool gathers_from(const Step& s, size_t operand) { return s.call && s.builtin == Builtin::index && operand == 0; }

// Elements per access and accesses per tile: up to 16 bytes per access, about 64 bytes in flight per thread. A scan wants a thread's
// items side by side: one chunk.
void choose_tile(Emitter& e) {
  uint32_t widest = 1, bytes = 0;
  for (const Input& in : e.inputs) {
    widest = std::max(widest, width_of(in.type));
    bytes += width_of(in.type);
  }
  for (const Output& out : e.outputs)
    if (out.kind == Output::vector) widest = std::max(widest, width_of(out.type));
  if (!e.scans.empty()) {
    e.vector = bytes <= 12 ? 8 : 4;
    e.chunks = 1;
  } else {
    e.vector = std::clamp(16 / widest, 2u, 4u);
    const uint32_t wanted = std::clamp(64 / std::max(bytes, 1u) + 1, 1u, 8u);
    e.chunks = std::bit_ceil((wanted + e.vector - 1) / e.vector);
  }
  e.code.block_size = e.block_size;
  e.code.items_per_thread = e.vector * e.chunks;
}

void declare_parameters(Emitter& e, std::vector<std::pair<ptx::ParameterOf<U64>, ptx::ParameterOf<U64>>>& data,
                        bool keeps_state, bool fails) {
  const auto declare = [&](ParameterRole role, uint32_t ordinal, BasicType type, const char* what) {
    e.code.parameters.push_back({role, ordinal, type});
    return e.b.parameter<U64>(fmt::format("{}_{}{}", e.code.name, what, ordinal));
  };
  for (uint32_t k = 0; k < e.function.parameters.size(); ++k) {
    const VariableId v = e.function.parameters[k];
    auto& entry = data.emplace_back();
    entry.first = declare(ParameterRole::input_data, k, e.type_of(v), "in");
    if (v == e.kernel.geometry_variable || e.gathered.count(v))
      entry.second = declare(ParameterRole::input_size, k, e.type_of(v), "in_size");
  }
  for (Output& out : e.outputs) {
    out.data = declare(ParameterRole::output_data, out.ordinal, out.type, "out");
    out.size = declare(ParameterRole::output_size, out.ordinal, out.type, "out_size");
  }
  if (keeps_state) e.scratch = declare(ParameterRole::scratch, 0, BasicType::i64, "scratch");
  if (fails) e.error = declare(ParameterRole::error, 0, BasicType::i64, "error");
  e.has_scratch = keeps_state;
  e.has_error = fails;
}

// What one pass over the elements does. Kernels have one pass, except when floats are summed beside a scan: tiles of a scan go to whoever
// comes first, and a sum must not depend on that.
struct Pass {
  bool accumulates = false;  // fixed assignment of tiles to blocks
  bool stores = false;       // of vectors
  bool scans = false;        // tiles in order of a counter
};

// Marks the variables that the pass needs.
std::vector<bool> needed_variables(const Emitter& e, const std::vector<Step>& steps, const Pass& pass) {
  std::vector<bool> needed(e.function.variables.size());
  if (pass.accumulates)
    for (const Accumulator& a : e.accumulators) needed[index(a.argument)] = true;
  for (const Output& out : e.outputs)
    if ((pass.stores && out.kind == Output::vector) || (pass.scans && out.kind == Output::compressed))
      needed[index(out.variable)] = true;
  for (size_t s = steps.size(); s-- > 0;) {
    if (steps[s].scalar || steps[s].reduction) continue;
    // Statements that can fail run in the pass that stores or, without one, in the only pass.
    const bool fails = can_fail(e, steps[s]) && (pass.stores || pass.scans || e.scans.empty());
    if (!needed[index(steps[s].target)] && !fails) continue;
    const std::vector<hir::Operand>& operands = steps[s].expression->operands;
    for (size_t k = 0; k < operands.size(); ++k)
      if (operands[k].kind == hir::Operand::variable && !gathers_from(steps[s], k)) needed[operands[k].id] = true;
  }
  return needed;
}

void write_loop(Emitter& e, const std::vector<Step>& steps, const DataParameters& data, const Pass& pass) {
  Builder& b = e.b;
  const std::vector<bool> needed = needed_variables(e, steps, pass);
  bool positions = false;
  for (const Step& s : steps)
    positions |= s.call && (s.builtin == Builtin::where || s.builtin == Builtin::range) && needed[index(s.target)];
  for (Input& in : e.inputs) in.wanted = needed[index(in.variable)];
  const auto wanted_output = [&](const Output& out) { return pass.stores && out.kind == Output::vector; };
  const auto scaled = [&](Reg<U64> elements, BasicType type) {
    const uint32_t shift = static_cast<uint32_t>(std::countr_zero(width_of(type)));
    return shift ? b.shl(elements, shift) : elements;
  };
  const auto parameter_of = [&](const Input& in) {
    const auto at = std::find(e.function.parameters.begin(), e.function.parameters.end(), in.variable);
    return data[static_cast<size_t>(at - e.function.parameters.begin())].first;
  };

  Reg<U32> thread_offset = b.mul_lo(e.tid, e.vector);
  Reg<U64> thread_start = b.cvt<U64>(thread_offset);
  Reg<U64> step;                         // elements from a block's tile to its next
  std::map<uint32_t, Reg<U64>> strides;  // the same in bytes, by element width
  const ptx::LabelId loop = b.label(), end = b.label();
  const auto set_pointers = [&] {
    Reg<U64> first = b.add(e.base, thread_start);
    for (Input& in : e.inputs)
      if (in.wanted) in.pointer = b.add(b.ld_param(parameter_of(in)), scaled(first, in.type));
    for (Output& out : e.outputs)
      if (wanted_output(out)) out.pointer = b.add(b.ld_param(out.data), scaled(first, out.type));
  };
  if (pass.scans) {
    b.bind(loop);
    take_tile(e);
    b.when(b.setp(Compare::ge, e.base, e.n)).bra(end);
    set_pointers();
    start_scans(e);
  } else {
    e.base = b.mul_wide(e.ctaid, e.tile());
    step = b.mul_wide(e.nctaid, e.tile());
    set_pointers();
    const auto add_stride = [&](BasicType type) {
      auto [it, fresh] = strides.try_emplace(width_of(type));
      if (fresh) it->second = scaled(step, type);
    };
    for (const Input& in : e.inputs)
      if (in.wanted) add_stride(in.type);
    for (const Output& out : e.outputs)
      if (wanted_output(out)) add_stride(out.type);
    b.when(b.setp(Compare::ge, e.base, e.n)).bra(end);
    b.bind(loop);
  }

  e.in_loop = true;
  Reg<U64> rest = b.sub(e.n, e.base);
  e.full = b.setp(Compare::ge, rest, e.tile());
  e.room = b.sub(Builder::as<S32>(b.cvt<U32>(b.min(rest, e.tile()))), Builder::as<S32>(thread_offset));
  if (positions) e.first_index = b.add(e.base, thread_start);
  load_inputs(e);
  for (Output& out : e.outputs) out.items.clear();
  for (e.item = 0; e.item < e.vector * e.chunks; ++e.item) {
    e.valid = {};
    e.active.clear();
    for (const Input& in : e.inputs) {
      if (!in.wanted) continue;
      Element x = in.items[e.item];
      if (in.type == BasicType::boolean) x.value = Builder::use(b.setp(Compare::ne, reg<S32>(x), 0));
      e.values[index(in.variable)] = x;
    }
    for (const Step& s : steps) {
      const bool fails = can_fail(e, s) && (pass.stores || pass.scans || e.scans.empty());
      if (!s.scalar && !s.reduction && (needed[index(s.target)] || fails)) run_step(e, s);
    }
    if (pass.accumulates) accumulate(e);
    if (pass.scans) note_selection(e);
    for (Output& out : e.outputs)
      if (wanted_output(out) || (pass.scans && out.kind == Output::compressed))
        out.items.push_back(storable(e, convert(e, e.values[index(out.variable)], out.type)));
  }
  if (pass.stores) store_outputs(e);
  if (pass.scans) {
    store_selections(e);
    b.bra(loop);
  } else {
    for (const Input& in : e.inputs)
      if (in.wanted) b.add(in.pointer, strides.at(width_of(in.type)), in.pointer);
    for (const Output& out : e.outputs)
      if (wanted_output(out)) b.add(out.pointer, strides.at(width_of(out.type)), out.pointer);
    b.add(e.base, step, e.base);
    b.when(b.setp(Compare::lt, e.base, e.n)).bra(loop);
  }
  b.bind(end);
  e.in_loop = false;
}

}  // namespace

Result<KernelCode> generate_kernel(const outliner::Outlined& outlined, uint32_t kernel_index, ptx::Module& module,
                                   hir::StatementId& refused_at) {
  const outliner::Kernel& kernel = outlined.kernels[kernel_index];
  const hir::Function& function = outlined.program.functions[kernel.function];
  KernelCode code;
  code.name = std::string(outlined.program.text(function.name));
  if (kernel.list) return input_error("lists have no GPU code yet");
  Emitter e{outlined, kernel, outlined.program, function, module, Builder(module, code.name), code, kernel_index};
  Builder& b = e.b;
  e.values.resize(function.variables.size());

  // Plan.
  const std::vector<Step> steps = plan_steps(e);
  std::vector<bool> read(function.variables.size());
  bool fails = false, loops = false;
  for (const Step& s : steps) {
    fails |= can_fail(e, s);
    loops |= !s.scalar && !s.reduction;
    const bool counts = s.reduction && s.builtin == Builtin::len;
    for (size_t k = 0; k < s.expression->operands.size(); ++k) {
      const hir::Operand& o = s.expression->operands[k];
      if (o.kind != hir::Operand::variable || counts) continue;
      if (gathers_from(s, k)) {
        e.gathered[o.variable_id()];
        code.floor_bytes_per_element += width_of(e.type_of(o.variable_id()));
      } else {
        read[o.id] = true;
      }
    }
    if (!s.reduction) continue;
    const VariableId argument = s.expression->operands[0].variable_id();
    if (counts && !is_masked(e, argument)) continue;  // n itself
    plan_reduction(e, s.target, argument, s.builtin, is_masked(e, argument));
  }
  loops |= !e.accumulators.empty();
  for (StatementId id : function.blocks[function.body].statements) {
    const Statement& s = function.statements[id];
    if (s.kind != Statement::return_) continue;
    for (uint32_t k = 0; k < s.results.size(); ++k) {
      const VariableId v = s.results[k].variable_id();
      Output out{.ordinal = k, .variable = v, .type = e.type_of(v)};
      const bool reduced =
          std::any_of(e.reductions.begin(), e.reductions.end(), [&](const Reduction& r) { return r.result == v; });
      out.kind = reduced                  ? Output::reduced
                 : has_scalar_shape(e, v) ? Output::scalar
                 : is_masked(e, v)        ? Output::compressed
                                          : Output::vector;
      loops |= out.kind == Output::vector;
      if (out.kind == Output::compressed) {
        const outliner::SizeId size = outlined.shapes[kernel.shapes[v]].size;
        auto scan = std::find_if(e.scans.begin(), e.scans.end(), [&](const Scan& x) { return x.size == size; });
        if (scan == e.scans.end()) scan = e.scans.insert(scan, Scan{.size = size});
        scan->outputs.push_back(static_cast<uint32_t>(e.outputs.size()));
      }
      read[index(v)] = true;
      e.outputs.push_back(std::move(out));
    }
  }
  for (VariableId v : function.parameters) {
    if (!has_scalar_shape(e, v) && read[index(v)]) {
      e.inputs.push_back({.variable = v, .type = e.type_of(v)});
      code.floor_bytes_per_element += width_of(e.type_of(v));
    }
  }
  for (const Output& out : e.outputs)
    if (out.kind == Output::vector) code.floor_bytes_per_element += width_of(out.type);
  choose_tile(e);
  DataParameters data;
  const bool keeps_state = !e.reductions.empty() || !e.scans.empty();
  declare_parameters(e, data, keeps_state, fails);
  if (keeps_state) {
    code.scratch_fixed_bytes = scratch_fixed_bytes;
    code.scratch_bytes_per_tile = 8 * static_cast<uint32_t>(e.scans.size());
    code.scratch_bytes_per_block = 8 * static_cast<uint32_t>(e.accumulators.size());
  }
  b.set_block_size(e.block_size);

  // Prologue.
  e.tid = b.special(ptx::SpecialRegister::tid_x);
  e.ctaid = b.special(ptx::SpecialRegister::ctaid_x);
  e.nctaid = b.special(ptx::SpecialRegister::nctaid_x);
  const outliner::Size& size = outlined.shapes[kernel.geometry];
  if (is_none(kernel.geometry_variable)) {
    if (size.kind != outliner::Size::constant)
      return input_error("the geometry of `{}` is neither constant nor that of a parameter", code.name);
    e.n = b.constant<U64>(static_cast<uint64_t>(size.value));
  }
  for (uint32_t k = 0; k < function.parameters.size(); ++k) {
    const VariableId v = function.parameters[k];
    if (v == kernel.geometry_variable) e.n = b.ld<U64>(Space::global, Address(b.ld_param(data[k].second)));
    if (const auto g = e.gathered.find(v); g != e.gathered.end())
      g->second = {b.ld_param(data[k].first), b.ld<U64>(Space::global, Address(b.ld_param(data[k].second)))};
    if (has_scalar_shape(e, v) && read[index(v)])
      e.values[index(v)] = load_scalar(e, e.type_of(v), b.ld_param(data[k].first));
  }
  prepare_constants(e, steps);
  for (const Step& s : steps) {
    if (s.scalar) run_step(e, s);
    if (s.reduction && has_scalar_shape(e, s.target) &&
        std::none_of(e.reductions.begin(), e.reductions.end(),
                     [&](const Reduction& r) { return r.result == s.target; }))
      e.values[index(s.target)] = element(BasicType::i64, Builder::as<S64>(e.n));
  }
  // One thread of the grid stores scalars and the sizes of vectors.
  bool single = false;
  for (const Output& out : e.outputs) single |= out.kind != Output::reduced;
  if (single) {
    std::vector<Element> ready(e.outputs.size());
    for (size_t k = 0; k < e.outputs.size(); ++k)
      if (e.outputs[k].kind == Output::scalar)
        ready[k] = storable(e, convert(e, e.values[index(e.outputs[k].variable)], e.outputs[k].type));
    const ptx::LabelId stored = b.label();
    b.when(b.setp(Compare::ne, b.or_(e.tid, e.ctaid), 0)).bra(stored);
    for (size_t k = 0; k < e.outputs.size(); ++k) {
      const Output& out = e.outputs[k];
      if (out.kind == Output::scalar) {
        store_element(e, {out.type, ready[k].value, {}}, b.ld_param(out.data), 0, {});
        b.st<U64>(Space::global, Address(b.ld_param(out.size)), 1);
      } else if (out.kind == Output::vector) {
        b.st<U64>(Space::global, Address(b.ld_param(out.size)), e.n);
      } else if (out.kind ==
                 Output::compressed) {  // the block with the last tile stores it; without elements there is none
        Reg<U64> slot = b.ld_param(out.size);
        b.when(b.setp(Compare::eq, e.n, 0)).st<U64>(Space::global, Address(slot), 0);
      }
    }
    b.bind(stored);
  }

  start_accumulators(e);
  const bool scans = !e.scans.empty();
  if (scans) declare_scan_memory(e);
  if (scans && depends_on_order(e)) {
    write_loop(e, steps, data, {.accumulates = true});
    write_loop(e, steps, data, {.stores = true, .scans = true});
  } else if (loops) {
    write_loop(e, steps, data, {.accumulates = true, .stores = true, .scans = scans});
  }
  finish_kernel(e);
  b.ret();
  b.finish();
  if (!e.problem.empty()) {
    refused_at = e.problem_at;
    return input_error("`{}` has no GPU code yet", e.problem);
  }
  return code;
}

}  // namespace rndn::codegen
