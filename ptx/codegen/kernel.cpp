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
  if (e.all_valid) return mask;
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

// Addresses of data and of size slots, by kernel parameter.
using DataParameters = std::vector<std::pair<ptx::ParameterOf<U64>, ptx::ParameterOf<U64>>>;

Element operand_element(Emitter& e, const hir::Operand& operand) {
  if (operand.kind == hir::Operand::literal) {
    const hir::Literal& literal = e.program.literals[operand.literal_id()];
    if (std::holds_alternative<std::vector<std::string>>(literal.values)) return {};  // a unit of time
    return literal_element(literal);
  }
  return e.values[operand.id];
}

// The current item's index among the kernel's elements.
Element item_index(Emitter& e) {
  const uint32_t offset = e.local_offset(e.item);
  Reg<S64> first = Builder::as<S64>(e.first_index);
  return element(BasicType::i64, offset ? e.b.add(first, offset) : first);
}

// The element as far from the end as the current item is from the beginning.
Element mirrored(Emitter& e, VariableId v) {
  Reg<S64> last = e.b.sub(Builder::as<S64>(e.gathered.at(v).size), 1);
  if (e.in_loop) last = e.b.sub(last, reg<S64>(item_index(e)));
  Reg<Pred> outside;  // not reported: only items beyond the end are
  const Element x = gather(e, v, element(BasicType::i64, last), 0, &outside);
  return convert(e, x, e.type_of(v));
}

// m to the positions k of every result that this index_a makes.
void scatter(Emitter& e, const Step& step, const Element& at, const Element& value) {
  Builder& b = e.b;
  const VariableId x = step.operands[0].variable_id();
  const BasicType type = e.type_of(x);
  const Element stored = storable(e, convert(e, value, type));
  Reg<U64> row = Builder::as<U64>(reg<S64>(in_register(e, convert(e, at, BasicType::i64))));
  // Either may be selected; of two selected ones the masks are equal.
  Reg<Pred> wanted = active(e, at.mask.valid() ? at.mask : value.mask);
  Reg<Pred> inside = b.setp(Compare::lt, row, e.gathered.at(x).size);  // unsigned: negative ones are large
  report_error(e, both(e, b.not_(inside), wanted), index(step.id), RuntimeError::index_out_of_range);
  Reg<Pred> guard = both(e, inside, wanted);
  const uint32_t shift = static_cast<uint32_t>(std::countr_zero(width_of(type)));
  Reg<U64> offset = shift ? b.shl(row, shift) : row;
  for (const Output& out : e.outputs)
    if (out.kind == Output::scattered && out.variable == step.target)
      store_element(e, {type, stored.value, {}}, b.add(b.ld_param(out.data), offset), 0, guard);
}

}  // namespace

void run_step(Emitter& e, const Step& step) {
  std::vector<Element> arguments;
  for (size_t k = 0; k < step.operands.size(); ++k)
    arguments.push_back(reads_whole(step, k) ? Element{} : operand_element(e, step.operands[k]));
  Element x;
  if (!step.call) {
    x = arguments[0];
  } else {
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
      case Builtin::vector: x = convert(e, arguments[1], step.result); break;
      case Builtin::index: x = gather(e, step.operands[0].variable_id(), arguments[1], index(step.id)); break;
      case Builtin::reverse: x = mirrored(e, step.operands[0].variable_id()); break;
      case Builtin::datetime_add:
      case Builtin::datetime_sub: {
        const auto& unit = std::get<std::vector<std::string>>(e.program.literals[step.operands[2].literal_id()].values);
        x = calendar_shift(e, arguments[0], arguments[1], unit.front(), step.builtin == Builtin::datetime_add ? 1 : -1);
        break;
      }
      case Builtin::index_a: return scatter(e, step, arguments[1], arguments[2]);
      default: x = element_wise(e, step.builtin, arguments, step.result, index(step.id)); break;
    }
  }
  for (BasicType cast : step.casts) x = convert(e, x, cast);
  e.values[index(step.target)] = convert(e, x, e.type_of(step.target));
}

namespace {

// Constants that the loop needs in registers are made once, before it.
void prepare_constants(Emitter& e) {
  for (const Step& step : e.steps) {
    if (step.scalar || step.reduction || !step.call) continue;
    std::vector<BasicType> types;
    for (const hir::Operand& o : step.operands)
      types.push_back(o.kind == hir::Operand::literal ? e.basic(e.program.literals[o.literal_id()].type)
                                                      : e.type_of(o.variable_id()));
    const bool logical = step.builtin == Builtin::compress || step.builtin == Builtin::where ||
                         step.builtin == Builtin::vector || step.builtin == Builtin::range;
    if (step.builtin == Builtin::datetime_add || step.builtin == Builtin::datetime_sub) continue;
    for (size_t k = 0; k < step.operands.size(); ++k) {
      const hir::Operand& o = step.operands[k];
      if (o.kind != hir::Operand::literal || step.builtin == Builtin::index_a) continue;
      const BasicType to = logical ? types[k] : operand_type(step.builtin, types, k, step.result);
      const Element x = convert(e, literal_element(e.program.literals[o.literal_id()]), to);
      if (k == 0 || !fits_immediate(rep_of(to), x.value.value)) in_register(e, x);
    }
  }
}

// Elements per access and accesses per tile: up to 16 bytes per access, about 64 bytes in flight per thread, what is gathered included: more items
// would only make more code. A scan wants a thread's items side by side: one chunk.
void choose_tile(Emitter& e) {
  uint32_t widest = 1, bytes = 0;
  for (const Input& in : e.inputs) {
    widest = std::max(widest, width_of(in.type));
    bytes += width_of(in.type);
  }
  for (const Step& s : e.steps)
    for (size_t k = 0; !s.scalar && k < s.operands.size(); ++k)
      if (reads_whole(s, k)) bytes += width_of(e.type_of(s.operands[k].variable_id()));
  for (const Output& out : e.outputs)
    if (out.kind == Output::vector) widest = std::max(widest, width_of(out.type));
  if (!e.scans.empty()) {
    e.vector = bytes <= 24 ? 8 : 4;
    e.chunks = 1;
  } else {
    e.vector = std::clamp(16 / widest, 2u, 4u);
    const uint32_t wanted = std::clamp(64 / std::max(bytes, 1u) + 1, 1u, 8u);
    e.chunks = std::bit_ceil((wanted + e.vector - 1) / e.vector);
  }
  // Every item has a copy of what it calls.
  if (std::any_of(e.steps.begin(), e.steps.end(),
                  [](const Step& s) { return s.call && hir::needs_math(s.builtin, s.result); }))
    e.vector = 2, e.chunks = 1;
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
    if (v == e.kernel.geometry_variable && e.kernel.list)
      e.offsets = declare(ParameterRole::input_offsets, k, BasicType::i64, "in_offsets");
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

// The steps that the pass evaluates; marks the variables that they read, and the pass's results, in `needed`.
std::vector<bool> steps_of(const Emitter& e, const Pass& pass, std::vector<bool>& needed) {
  needed.assign(e.function.variables.size(), false);
  if (pass.accumulates)
    for (const Accumulator& a : e.accumulators) needed[index(a.argument)] = true;
  for (const Output& out : e.outputs)
    if ((pass.stores && (out.kind == Output::vector || out.kind == Output::scattered)) ||
        (pass.scans && out.kind == Output::compressed))
      needed[index(out.variable)] = true;
  // What only reductions of cells read is evaluated with them.
  std::vector<bool> elsewhere(e.function.variables.size()), wanted(e.steps.size());
  for (size_t s = e.steps.size(); s-- > 0;) {
    const Step& step = e.steps[s];
    if (!(step.reduction && e.form(step.target) == Form::cell) && !elsewhere[index(step.target)]) continue;
    for (const hir::Operand& o : step.operands)
      if (o.kind == hir::Operand::variable) elsewhere[o.id] = true;
  }
  for (size_t s = e.steps.size(); s-- > 0;) {
    const Step& step = e.steps[s];
    if (step.scalar || step.reduction || e.form(step.target) == Form::cell) continue;
    // Statements that can fail run in the pass that stores or, without one, in the only pass.
    const bool fails =
        can_fail(e, step) && !elsewhere[index(step.target)] && (pass.stores || pass.scans || e.scans.empty());
    if (!needed[index(step.target)] && !fails) continue;
    wanted[s] = true;
    for (size_t k = 0; k < step.operands.size(); ++k)
      if (step.operands[k].kind == hir::Operand::variable && !reads_whole(step, k)) needed[step.operands[k].id] = true;
  }
  return wanted;
}

void write_loop(Emitter& e, const Pass& pass) {
  Builder& b = e.b;
  std::vector<bool> needed;
  const std::vector<bool> wanted = steps_of(e, pass, needed);
  bool positions = false;
  for (size_t s = 0; s < e.steps.size(); ++s)
    positions |= wanted[s] && e.steps[s].call &&
                 (e.steps[s].builtin == Builtin::where || e.steps[s].builtin == Builtin::range ||
                  e.steps[s].builtin == Builtin::reverse);
  for (Input& in : e.inputs) in.wanted = needed[index(in.variable)];
  const auto wanted_output = [&](const Output& out) { return pass.stores && out.kind == Output::vector; };
  const auto scaled = [&](Reg<U64> elements, BasicType type) {
    const uint32_t shift = static_cast<uint32_t>(std::countr_zero(width_of(type)));
    return shift ? b.shl(elements, shift) : elements;
  };

  Reg<U32> thread_offset = b.mul_lo(e.tid, e.vector);
  Reg<U64> thread_start = b.cvt<U64>(thread_offset);
  Reg<U64> step;                         // elements from a block's tile to its next
  std::map<uint32_t, Reg<U64>> strides;  // the same in bytes, by element width
  const ptx::LabelId loop = b.label(), end = b.label();
  const auto set_pointers = [&] {
    Reg<U64> first = b.add(e.base, thread_start);
    for (Input& in : e.inputs)
      if (in.wanted) in.pointer = b.add(b.ld_param(in.data), scaled(first, in.type));
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
  ItemPlan plan = start_items(e, wanted);
  for (e.item = 0; e.item < e.vector * e.chunks; ++e.item) {
    evaluate_item(e, plan);
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

Result<KernelCode> generate_kernel(const outliner::Outlined& outlined, uint32_t kernel_index, const ptx::Module* math,
                                   ptx::Module& module, hir::StatementId& refused_at) {
  const outliner::Kernel& kernel = outlined.kernels[kernel_index];
  const hir::Function& function = outlined.program.functions[kernel.function];
  KernelCode code;
  code.name = std::string(outlined.program.text(function.name));
  Emitter e{outlined, kernel, outlined.program, function, module, Builder(module, code.name), code, kernel_index};
  e.self = static_cast<uint32_t>(module.functions.size()) - 1;
  e.math = math;
  Builder& b = e.b;
  e.values.resize(function.variables.size());
  const auto refused = [&] {
    refused_at = e.problem_at;
    return input_error("`{}` has no GPU code yet", e.problem);
  };

  // Plan.
  if (!plan_steps(e)) return refused();
  std::vector<bool> read(function.variables.size());
  bool fails = false, loops = false;
  for (const Step& s : e.steps) {
    fails |= can_fail(e, s);
    const bool of_cells = e.form(s.target) == Form::cell;
    loops |= !s.scalar && !s.reduction && !of_cells && !kernel.list;
    const bool counts = s.reduction && s.builtin == Builtin::len;
    for (size_t k = 0; k < s.operands.size(); ++k) {
      const hir::Operand& o = s.operands[k];
      if (o.kind != hir::Operand::variable) continue;
      if (reads_whole(s, k)) {
        e.gathered[o.variable_id()];
        code.floor_bytes_per_element += width_of(e.type_of(o.variable_id()));
      } else if (!counts) {
        read[o.id] = true;
      }
    }
    if (!s.reduction || of_cells) continue;
    if (s.operands[0].kind != hir::Operand::variable) {
      refuse(e, std::string(hir::row(s.builtin).name) + " of a literal", s.id);
      return refused();
    }
    const VariableId argument = s.operands[0].variable_id();
    const bool selected = e.form(argument) == Form::selected;
    if (counts && !selected) continue;  // n itself, or the number of cells
    plan_reduction(e, s.target, argument, s.builtin, selected);
  }
  loops |= !e.accumulators.empty();
  for (StatementId id : function.blocks[function.body].statements) {
    const Statement& s = function.statements[id];
    if (s.kind != Statement::return_) continue;
    for (uint32_t k = 0; k < s.results.size(); ++k) {
      const VariableId v = s.results[k].variable_id();
      Output out{.ordinal = k, .variable = v, .type = e.type_of(v)};
      out.list = !e.program.types->is_basic(e.variable(v).type);
      const bool reduced =
          std::any_of(e.reductions.begin(), e.reductions.end(), [&](const Reduction& r) { return r.result == v; });
      switch (e.form(v)) {
        case Form::scalar: out.kind = Output::scalar; break;
        case Form::reduced: out.kind = reduced ? Output::reduced : Output::scalar; break;
        case Form::element: out.kind = Output::vector; break;
        case Form::selected: out.kind = Output::compressed; break;
        case Form::cell: out.kind = Output::cells; break;
        case Form::copy: out.kind = Output::scattered; break;
      }
      loops |= out.kind == Output::vector;
      code.starts_as.push_back(-1);
      code.cells_of.push_back(-1);
      if (out.kind == Output::scattered) {
        const VariableId x =
            std::find_if(e.steps.begin(), e.steps.end(), [&](const Step& step) { return step.target == v; })
                ->operands[0]
                .variable_id();
        const auto at = std::find(function.parameters.begin(), function.parameters.end(), x);
        if (at == function.parameters.end() || e.type_of(x) != out.type) {
          refuse(e, "index_a of what is no parameter", none<StatementId>());
          return refused();
        }
        code.starts_as.back() = static_cast<int32_t>(at - function.parameters.begin());
      } else if (out.list && out.kind == Output::vector && kernel.list) {
        const auto at = std::find(function.parameters.begin(), function.parameters.end(), kernel.geometry_variable);
        code.cells_of.back() = static_cast<int32_t>(at - function.parameters.begin());
      } else if (out.list && out.kind == Output::compressed) {
        refuse(e, "a list of selections", none<StatementId>());
        return refused();
      }
      if (out.kind == Output::compressed) {
        // In a list kernel the shape of a razed selection is no longer that of its mask.
        const outliner::SizeId size =
            kernel.list ? static_cast<outliner::SizeId>(index(v)) : outlined.shapes[kernel.shapes[v]].size;
        auto scan = std::find_if(e.scans.begin(), e.scans.end(), [&](const Scan& x) { return x.size == size; });
        if (scan == e.scans.end()) scan = e.scans.insert(scan, Scan{.size = size});
        scan->outputs.push_back(static_cast<uint32_t>(e.outputs.size()));
      }
      read[index(v)] = true;
      e.outputs.push_back(std::move(out));
    }
  }
  for (VariableId v : function.parameters) {
    if (e.form(v) == Form::element && read[index(v)]) {
      e.inputs.push_back({.variable = v, .type = e.type_of(v)});
      code.floor_bytes_per_element += width_of(e.type_of(v));
    }
  }
  for (const Output& out : e.outputs) {
    if (out.kind == Output::vector || out.kind == Output::scattered) code.floor_bytes_per_element += width_of(out.type);
    if (kernel.list && (out.kind == Output::vector || out.kind == Output::compressed)) loops = true;
  }
  plan_cells(e);
  const bool cells = cell_scratch_bytes(e) > 0;
  if (cells && !e.scans.empty()) {
    refuse(e, "a stored selection beside reductions of cells", none<StatementId>());
    return refused();
  }
  choose_tile(e);
  if (cells) code.items_per_thread = 8;  // cells.cpp
  DataParameters data;
  const bool keeps_state = !e.reductions.empty() || !e.scans.empty() || cells;
  if (keeps_state) {
    code.scratch_fixed_bytes = scratch_fixed_bytes;
    code.scratch_bytes_per_tile = 8 * static_cast<uint32_t>(e.scans.size());
    code.scratch_bytes_per_block = 8 * static_cast<uint32_t>(e.accumulators.size()) + cell_scratch_bytes(e);
  }
  declare_parameters(e, data, keeps_state, fails);
  b.set_block_size(e.block_size);

  // Prologue.
  e.tid = b.special(ptx::SpecialRegister::tid_x);
  e.ctaid = b.special(ptx::SpecialRegister::ctaid_x);
  e.nctaid = b.special(ptx::SpecialRegister::nctaid_x);
  const outliner::Size& size = outlined.shapes[kernel.geometry];
  if (kernel.list && is_none(kernel.geometry_variable))
    return input_error("the geometry of `{}` is that of no list parameter", code.name);
  if (is_none(kernel.geometry_variable)) {
    if (size.kind != outliner::Size::constant)
      return input_error("the geometry of `{}` is neither constant nor that of a parameter", code.name);
    e.n = b.constant<U64>(static_cast<uint64_t>(size.value));
  }
  for (uint32_t k = 0; k < function.parameters.size(); ++k) {
    const VariableId v = function.parameters[k];
    if (v == kernel.geometry_variable) {
      e.n = b.ld<U64>(Space::global, Address(b.ld_param(data[k].second)));
      if (kernel.list) {
        e.cells = e.n;
        e.n = b.ld<U64>(Space::global, Address(b.add(b.ld_param(e.offsets), b.shl(e.cells, 3))));
      }
    }
    if (const auto g = e.gathered.find(v); g != e.gathered.end()) {
      g->second.data_at = data[k].first;
      g->second.size_at = data[k].second;
      if (!cells || loops) g->second.load(b);
    }
    if (e.form(v) == Form::scalar && read[index(v)])
      e.values[index(v)] = load_scalar(e, e.type_of(v), b.ld_param(data[k].first));
    for (Input& in : e.inputs)
      if (in.variable == v) in.data = data[k].first;
  }
  prepare_constants(e);
  for (const Step& s : e.steps) {
    if (s.scalar) run_step(e, s);
    if (s.reduction && e.form(s.target) == Form::reduced &&
        std::none_of(e.reductions.begin(), e.reductions.end(),
                     [&](const Reduction& r) { return r.result == s.target; }))
      e.values[index(s.target)] = element(BasicType::i64, Builder::as<S64>(kernel.list ? e.cells : e.n));
  }
  // One thread of the grid stores scalars and the sizes of vectors.
  bool single = false;
  for (const Output& out : e.outputs) single |= out.kind != Output::reduced && out.kind != Output::scattered;
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
      } else if (out.kind == Output::vector || out.kind == Output::cells) {
        const bool of_cells = out.kind == Output::cells || (out.list && kernel.list);
        b.st<U64>(Space::global, Address(b.ld_param(out.size)), of_cells ? e.cells : e.n);
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
    write_loop(e, {.accumulates = true});
    write_loop(e, {.stores = true, .scans = true});
  } else if (loops) {
    write_loop(e, {.accumulates = true, .stores = true, .scans = scans});
  }
  store_lengths(e);
  if (cells) {
    reduce_cells(e);
  } else {
    finish_kernel(e);
  }
  b.ret();
  b.finish();
  if (!e.problem.empty()) return refused();
  return code;
}

}  // namespace rndn::codegen
