// The frame of a kernel: parameters, prologue, tile loop, epilogue (emitter.h draws it), and its statements.
//
// In: a kernel function of an outlined program with the shapes of its variables. Out: one entry and its KernelCode.
// A variable is a scalar (computed once by every thread, before the loop), has one element per item, or is a lazily masked selection of
// the items; which one follows from its shape. Statements are evaluated item by item in program order.
// Vectors that a kernel stores a selection of are evaluated in two steps: the masks for all elements, the rest for the selected ones (compress.cpp).
// Cost: O(statements x items per thread).
#include "ptx/codegen/kernel.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "ptx/codegen/cells.h"
#include "ptx/lookup/lookup.h"

#include "ptx/sums/sum_parts.h"

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

namespace {

// The latest comparison or conjunction with this result; null: none.
Conjunction* find_conjunction(Emitter& e, RegisterId result) {
  const auto at = std::find_if(e.conjunctions.rbegin(), e.conjunctions.rend(),
                               [&](const Conjunction& c) { return c.result == result; });
  return at == e.conjunctions.rend() ? nullptr : &*at;
}

// Has the comparison at `head` take the condition in: setp.CMP.and. False when the condition is not known there. Registers of predicates are
// numbered in the order in which they are written.
bool take_in(Emitter& e, uint32_t head, RegisterId condition, ptx::Combine how) {
  if (head == UINT32_MAX) return false;
  ptx::Function& f = e.b.function();
  ptx::Instruction& i = f.instructions[head];
  if (f.operands[i.first_operand].id <= index(condition)) return false;
  const uint32_t first = static_cast<uint32_t>(f.operands.size());
  for (uint32_t k = 0; k < i.operand_count; ++k) f.operands.push_back(Operand(f.operands[i.first_operand + k]));
  f.operands.push_back(Builder::use(Reg<Pred>{condition}));
  i.first_operand = first;
  ++i.operand_count;
  i.mods.combine = how;
  return true;
}

// Notes the target of a step that is a comparison, so that a conjunction can take part of it. One that the step has taken over
// from an operand, as a selection does, belongs to that, too.
void note_comparison(Emitter& e, const Step& step) {
  const VariableId target = step.target;
  const Element& x = e.values[index(target)];
  for (const hir::Operand& o : step.operands)
    if (o.kind == hir::Operand::variable && !e.values[o.id].immediate() && e.values[o.id].value.id == x.value.id)
      return;
  const ptx::Function& f = e.b.function();
  if (!e.in_loop || rep_of(x.type) != Rep::pred || x.immediate() || f.instructions.empty()) return;
  const ptx::Instruction& i = f.instructions.back();
  if (i.op != ptx::Opcode::setp || !is_none(i.guard) || i.mods.combine != ptx::Combine::none ||
      i.destination_count != 1 || f.operands[i.first_operand].id != x.value.id)
    return;
  e.conjunctions.push_back(
      {target, static_cast<RegisterId>(x.value.id), 1, static_cast<uint32_t>(f.instructions.size() - 1)});
}

// and, or of two predicates of which one is a comparison that nothing else reads: no instruction. False: it takes one.
bool merge_comparisons(Emitter& e, const Step& step, std::span<const Element> arguments) {
  if (!e.in_loop || (step.builtin != Builtin::and_ && step.builtin != Builtin::or_)) return false;
  const bool is_and = step.builtin == Builtin::and_;
  for (size_t k : {1, 0}) {
    const Element &own = arguments[k], &other = arguments[1 - k];
    if (own.immediate() || other.immediate() || rep_of(own.type) != Rep::pred || rep_of(other.type) != Rep::pred)
      return false;
    if (step.operands[k].kind != hir::Operand::variable || e.reads[step.operands[k].id] != 1) continue;
    const RegisterId own_id = static_cast<RegisterId>(own.value.id), other_id = static_cast<RegisterId>(other.value.id);
    const Conjunction* c = find_conjunction(e, own_id);
    if (!c || c->variable != step.operands[k].variable_id() || own_id == other_id) continue;
    if (!is_and && c->comparisons != 1) continue;
    if (!take_in(e, c->head, other_id, is_and ? ptx::Combine::and_ : ptx::Combine::or_)) continue;
    uint32_t head = UINT32_MAX;
    if (is_and)
      if (const Conjunction* before = find_conjunction(e, other_id);
          before && step.operands[1 - k].kind == hir::Operand::variable && e.reads[step.operands[1 - k].id] == 1 &&
          before->variable == step.operands[1 - k].variable_id())
        head = before->head;
    const Element result{BasicType::boolean, own.value,
                         arguments[0].mask.valid() ? arguments[0].mask : arguments[1].mask};
    e.values[index(step.target)] = result;
    e.conjunctions.push_back({step.target, own_id, 2, head});
    return true;
  }
  return false;
}

}  // namespace

Reg<Pred> active(Emitter& e, Reg<Pred> mask) {
  if (!e.in_loop) return {};
  if (e.all_valid) return mask;
  if (!e.valid.valid()) e.valid = within(e, e.item);
  if (!mask.valid()) return e.valid;
  for (const auto& [of, known] : e.active)
    if (of == mask.id) return known;
  // Beyond n nothing has an effect: that the mask fails there changes nothing for others that read it.
  Conjunction* c = find_conjunction(e, mask.id);
  const bool taken = c && take_in(e, c->head, e.valid.id, ptx::Combine::and_);
  if (taken)
    for (Conjunction& x : e.conjunctions)
      if (x.head == c->head && &x != c) x.head = UINT32_MAX;
  if (taken) c->head = UINT32_MAX;
  return e.active.emplace_back(mask.id, taken ? mask : e.b.and_(mask, e.valid)).second;
}

void report_error(Emitter& e, Reg<Pred> bad, uint32_t statement, RuntimeError error) {
  const uint32_t word = ErrorWord{e.kernel_index, statement, error}.packed();
  e.b.when(bad).max(e.worst, word, e.worst);
}

Element operand_element(Emitter& e, const hir::Operand& operand) {
  if (operand.kind == hir::Operand::literal) {
    const hir::Literal& literal = e.program.literals[operand.literal_id()];
    if (std::holds_alternative<std::vector<std::string>>(literal.values)) return {};  // a unit of time, a message
    return literal_element(e, literal);
  }
  return e.values[operand.id];
}

namespace {

// Addresses of data and of size slots, by kernel parameter.
using DataParameters = std::vector<std::pair<ptx::ParameterOf<U64>, ptx::ParameterOf<U64>>>;

// Puts the worst error of the thread into the error word, where the largest stays in any order of threads.
void store_error(Emitter& e) {
  if (!e.has_error) return;
  Builder& b = e.b;
  const ptx::LabelId none = b.label();
  b.when(b.setp(Compare::eq, e.worst, 0)).bra(none);
  b.red<U32>(ptx::AtomicOp::max, Space::global, Address(b.ld_param(e.error)), e.worst);
  b.bind(none);
}

void store_sum_flags(Emitter& e) {
  if (e.huge.valid()) sums::report_huge(e.b, e.huge, e.b.ld_param(e.sum_flags));
  if (e.no_parts.valid()) sums::report_no_parts(e.b, e.no_parts, e.sum_flags);
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
      store_element(e, stored, b.add(b.ld_param(out.data), offset), guard);
}

}  // namespace

// geq(GPU.probe(..), 0)
static bool asks_for_a_row(const Emitter& e, const Step& step, const Arguments& arguments) {
  return arguments[0].low.valid() && arguments[1].immediate() && arguments[1].value.value == 0 &&
         e.definitions[step.operands[0].id] == 1 && std::any_of(e.steps.begin(), e.steps.end(), [&](const Step& s) {
           return s.call && s.builtin == Builtin::gpu_probe && s.casts.empty() && index(s.target) == step.operands[0].id;
         });
}

void run_step(Emitter& e, const Step& step) {
  Arguments arguments;
  for (size_t k = 0; k < step.operands.size(); ++k)
    arguments.push_back(reads_whole(step, k) || (e.selected && masks(step, k)) ? Element{}
                                                                               : operand_element(e, step.operands[k]));
  if (step.call && step.casts.empty() && merge_comparisons(e, step, arguments)) return;
  Element x;
  if (!step.call) {
    x = arguments[0];
  } else {
    switch (step.builtin) {
      case Builtin::compress: {
        if (e.selected) {
          x = arguments[1];
          break;
        }
        const Element mask = in_register(e, arguments[0]);
        x = arguments[1];
        x.mask = both(e, reg<Pred>(mask), both(e, mask.mask, x.mask));
        break;
      }
      case Builtin::where: {
        x = e.in_loop ? item_index(e) : constant_element(BasicType::i64, 0);
        if (!e.selected) x.mask = reg<Pred>(in_register(e, arguments[0]));
        break;
      }
      case Builtin::range: x = e.in_loop ? item_index(e) : constant_element(BasicType::i64, 0); break;
      case Builtin::vector: x = convert(e, arguments[1], step.result); break;
      case Builtin::index:
        x = gather(e, step.operands[0].variable_id(), arguments[1], index(step.id), nullptr, guard_of(e, step.id),
                   is_inside(e, step));
        break;
      case Builtin::gpu_probe: {
        const ProbeItem item = probe_item(e, step);
        x = look_up(e, lookup_of(e, step), {&item, 1})[0];
        break;
      }
      case Builtin::geq:
        if (asks_for_a_row(e, step, arguments))
          x = {BasicType::boolean, Builder::use(e.b.setp(ptx::Compare::ne, arguments[0].low, -1)), arguments[0].mask};
        else
          x = element_wise(e, step.builtin, arguments, step.result, index(step.id));
        break;
      case Builtin::index_or: {
        Reg<Pred> outside;
        const Element found = gather(e, step.operands[0].variable_id(), arguments[1], index(step.id), &outside);
        const Element there{BasicType::boolean, Builder::use(e.b.not_(outside)), {}};
        const std::array<Element, 3> parts{there, convert(e, found, step.result), arguments[2]};
        x = element_wise(e, Builtin::select, parts, step.result, index(step.id));
        break;
      }
      case Builtin::reverse:
        x = e.kernel.list ? mirrored_in_cell(e, step.operands[0].variable_id())
                          : mirrored(e, step.operands[0].variable_id());
        break;
      case Builtin::datetime_add:
      case Builtin::datetime_sub: {
        const auto& unit = std::get<std::vector<std::string>>(e.program.literals[step.operands[2].literal_id()].values);
        x = calendar_shift(e, arguments[0], arguments[1], unit.front(), step.builtin == Builtin::datetime_add ? 1 : -1);
        break;
      }
      case Builtin::index_a: return scatter(e, step, arguments[1], arguments[2]);
      case Builtin::gpu_sum_part:
        if (is_part_of_folds(e, step)) {
          e.values[index(step.target)] = in_register(e, arguments[0]);
          return;
        }
        [[fallthrough]];
      default: x = element_wise(e, step.builtin, arguments, step.result, index(step.id)); break;
    }
  }
  for (BasicType cast : step.casts) x = convert(e, x, cast);
  e.values[index(step.target)] = convert(e, x, e.type_of(step.target));
  if (step.call) note_comparison(e, step);
}

Marks steps_for(const Emitter& e, Marks& needed, bool selected) {
  Marks wanted = marks(e.steps.size());
  for (size_t s = e.steps.size(); s-- > 0;) {
    const Step& step = e.steps[s];
    if (step.scalar || step.reduction || e.form(step.target) == Form::cell || !needed[index(step.target)]) continue;
    if (std::find(e.given.begin(), e.given.end(), step.target) != e.given.end()) continue;
    wanted[s] = true;
    for (size_t k = 0; k < step.operands.size(); ++k)
      if (step.operands[k].kind == hir::Operand::variable && !reads_whole(step, k) && !(selected && masks(step, k)))
        needed[step.operands[k].id] = true;
  }
  return wanted;
}

// So many items that about `wanted_bytes` are in flight per thread, what is gathered included. More would
// only make more code.
uint32_t items_of(const Emitter& e, const Marks& wanted) {
  uint32_t bits = 0, steps = 0;
  bool calls = false;  // every item has a copy of what it calls
  for (const Input& in : e.inputs)
    if (in.wanted) bits += encodings::bits_of(in.type, in.stored);
  for (size_t s = 0; s < e.steps.size(); ++s) {
    if (!wanted[s]) continue;
    const Step& step = e.steps[s];
    ++steps;
    calls |= step.call && hir::needs_math(step.builtin, step.result);
    for (size_t k = 0; k < step.operands.size(); ++k)
      if (reads_whole(step, k)) {
        const hir::VariableId v = step.operands[k].variable_id();
        bits += encodings::bits_of(e.type_of(v), e.stored(v));
      }
  }
  if (calls || bits == 0) return 1;
  const uint32_t items = std::bit_ceil((8 * e.bytes_in_flight + bits - 1) / bits);
  return std::min(items, steps <= 3 ? 8u : 4u);
}

bool reads_positions(const Emitter& e, const Marks& wanted) {
  for (size_t s = 0; s < e.steps.size(); ++s)
    if (wanted[s] && e.steps[s].call &&
        (e.steps[s].builtin == Builtin::where || e.steps[s].builtin == Builtin::range ||
         e.steps[s].builtin == Builtin::reverse))
      return true;
  return false;
}

namespace {

// Constants that the loop needs in registers are made once, before it.
void prepare_constants(Emitter& e) {
  for (const Step& step : e.steps) {
    if (step.scalar || step.reduction || !step.call) continue;
    ArgumentTypes types;
    for (const hir::Operand& o : step.operands)
      types.push_back(o.kind == hir::Operand::literal ? e.basic(e.program.literals[o.literal_id()].type)
                                                      : e.type_of(o.variable_id()));
    if (step.builtin == Builtin::gpu_probe) continue;
    const bool logical = step.builtin == Builtin::compress || step.builtin == Builtin::where ||
                         step.builtin == Builtin::vector || step.builtin == Builtin::range;
    if (step.builtin == Builtin::datetime_add || step.builtin == Builtin::datetime_sub) continue;
    for (size_t k = 0; k < step.operands.size(); ++k) {
      const hir::Operand& o = step.operands[k];
      if (o.kind != hir::Operand::literal || step.builtin == Builtin::index_a) continue;
      if (hir::literal_operand(step.builtin) == static_cast<int>(k)) continue;
      const BasicType to = logical ? types[k] : operand_type(step.builtin, types, k, step.result);
      const Element x = convert(e, literal_element(e, e.program.literals[o.literal_id()]), to);
      if (k == 0 || !fits_immediate(rep_of(to), x.value.value)) in_register(e, x);
    }
  }
}

bool is_by_value(const Emitter& e, VariableId v) {
  const std::vector<VariableId>& values = e.kernel.by_value;
  return std::find(values.begin(), values.end(), v) != values.end();
}

// A number in parameters: the low bits of a word, or two words.
Element number_in(Emitter& e, BasicType type, const std::pair<ptx::ParameterOf<U64>, ptx::ParameterOf<U64>>& at) {
  Builder& b = e.b;
  const Reg<U64> word = b.ld_param(at.first);
  switch (rep_of(type)) {
    case Rep::s32: return element(type, Builder::as<S32>(b.cvt<U32>(word)));
    case Rep::s64: return element(type, Builder::as<S64>(word));
    case Rep::f32: return element(type, b.bitcast<F32>(b.cvt<U32>(word)));
    case Rep::f64: return element(type, b.bitcast<F64>(word));
    case Rep::wide: return wide_element(word, Builder::as<S64>(b.ld_param(at.second)), {});
    case Rep::pred:
    case Rep::complex: break;
  }
  CHECK(false, "passed by value");
}

size_t word_count(const Lookup& l) { return lookup::columns + lookup::per_column * l.columns.size(); }

void declare_parameters(Emitter& e, std::vector<std::pair<ptx::ParameterOf<U64>, ptx::ParameterOf<U64>>>& data,
                        bool keeps_state, bool fails) {
  const auto declare = [&](ParameterRole role, uint32_t ordinal, BasicType type, std::string_view what) {
    e.code.parameters.push_back({role, ordinal, type});
    std::array<char, 10> digits;
    std::string name(what);
    name.append(digits.data(), std::to_chars(digits.begin(), digits.end(), ordinal).ptr);
    return e.b.parameter<U64>(std::move(name));
  };
  size_t most = 3 * (e.function.parameters.size() + e.outputs.size()) + 4;
  for (const Lookup& lookup : e.lookups) most += word_count(lookup);
  for (const Sink& s : e.sinks) most += s.word_count();
  e.b.function().parameters.reserve(most);
  e.code.parameters.reserve(most);
  data.reserve(e.function.parameters.size());
  for (uint32_t k = 0; k < e.function.parameters.size(); ++k) {
    const VariableId v = e.function.parameters[k];
    auto& entry = data.emplace_back();
    if (is_by_value(e, v)) {
      entry.first = declare(ParameterRole::input_value, k, e.type_of(v), "value");
      if (rep_of(e.type_of(v)) != Rep::wide) continue;
      entry.second = declare(ParameterRole::input_value, k, e.type_of(v), "value_high");
      e.code.parameters.back().part = 1;
      continue;
    }
    entry.first = declare(ParameterRole::input_data, k, e.type_of(v), "in");
    if (v == e.kernel.geometry_variable || e.gathered.contains(v))
      entry.second = declare(ParameterRole::input_size, k, e.type_of(v), "in_size");
    if (v == e.kernel.geometry_variable && e.kernel.list)
      e.offsets = declare(ParameterRole::input_offsets, k, BasicType::i64, "in_offsets");
    for (TileBounds& of : e.bounds)
      if (of.parameter == k) of.data = declare(ParameterRole::input_bounds, k, e.type_of(v), "in_bounds");
  }
  for (size_t l = 0; l < e.lookups.size(); ++l) {
    Lookup& lookup = e.lookups[l];
    for (uint32_t k : e.code.lookups[l].columns) lookup.data.push_back(data[k].first);
    if (lookup.mask) {
      const auto& parameters = e.function.parameters;
      lookup.mask_data = data[static_cast<size_t>(std::find(parameters.begin(), parameters.end(), *lookup.mask) - parameters.begin())].first;
    }
    for (uint32_t w = 0; w < word_count(lookup); ++w) {
      lookup.words.push_back(
          declare(ParameterRole::lookup, static_cast<uint32_t>(l), BasicType::i64, "lookup" + std::to_string(w) + "_"));
      e.code.parameters.back().part = w;
    }
  }
  for (size_t s = 0; s < e.sinks.size(); ++s)
    for (uint32_t w = 0; w < e.sinks[s].word_count(); ++w) {
      e.sinks[s].words.push_back(
          declare(ParameterRole::sink, static_cast<uint32_t>(s), BasicType::i64, "sink" + std::to_string(w) + "_"));
      e.code.parameters.back().part = w;
    }
  for (Output& out : e.outputs) {
    out.data = declare(ParameterRole::output_data, out.ordinal, out.type, "out");
    out.size = declare(ParameterRole::output_size, out.ordinal, out.type, "out_size");
  }
  if (keeps_state) e.scratch = declare(ParameterRole::scratch, 0, BasicType::i64, "scratch");
  if (sums_floats(e) || sums_parts(e)) e.sum_flags = declare(ParameterRole::sum_flags, 0, BasicType::i64, "sum_flags");
  if (fails) e.error = declare(ParameterRole::error, 0, BasicType::i64, "error");
  if (e.kernel.looks) e.differs = declare(ParameterRole::differs, 0, BasicType::i64, "differs");
  e.has_scratch = keeps_state;
  e.has_error = fails;
}

// What one pass over the elements does.
struct Pass {
  bool accumulates = false;  // fixed assignment of tiles to blocks
  bool stores = false;       // of vectors
  bool scans = false;        // tiles in order of a counter
  bool rows = false;         // of the list's cells; else of its elements, or of the geometry's vector
  bool takes(const Output& out) const { return stores && out.kind == (rows ? Output::rows : Output::vector); }
};

// The steps that the pass evaluates for all elements; marks the variables that they read, and the pass's results, in `needed`.
Marks steps_of(const Emitter& e, const Pass& pass, Marks& needed) {
  needed = marks(e.function.variables.size());
  if (pass.accumulates)
    for (const Accumulator& a : e.accumulators) needed[index(a.argument)] = true;
  if (pass.accumulates)
    for (const Sink& s : e.sinks) {
      for (hir::VariableId k : s.keys) needed[index(k)] = true;
      for (const Fold& f : s.folds) needed[index(f.values)] = true;
    }
  for (const Output& out : e.outputs)
    if (pass.takes(out) || (pass.stores && out.kind == Output::scattered)) needed[index(out.variable)] = true;
  if (pass.scans)
    for (const Scan& s : e.scans) {
      if (s.evaluate || s.early) needed[index(e.outputs[s.outputs[0]].variable)] = true;
      for (const hir::Operand& o : s.masks)
        if (o.kind == hir::Operand::variable) needed[o.id] = true;
    }
  const Marks elsewhere = evaluated_with_cells(e);
  // Statements that can fail run in the pass that stores or, without one, in the only pass; those of selected elements with their selection.
  if (pass.stores || pass.scans || e.scans.empty())
    for (size_t s = 0; s < e.steps.size(); ++s) {
      const Step& step = e.steps[s];
      if (step.scalar || step.reduction || !can_fail(e, step) || elsewhere[index(step.target)]) continue;
      if ((e.form(step.target) == Form::row) != pass.rows) continue;
      const bool with_selection =
          e.form(step.target) == Form::selected && !e.kernel.list &&
          std::any_of(e.scans.begin(), e.scans.end(), [&](const Scan& scan) {
            return scan.wanted[s] && scan.size == e.outlined.shapes[e.kernel.shapes[step.target]].size;
          });
      if (!with_selection) needed[index(step.target)] = true;
    }
  return steps_for(e, needed, false);
}

// Evaluates and uses the items of the tile (or of a part of it) whose pointers are set.
void write_items(Emitter& e, const Pass& pass, const Marks& wanted, Reg<U32> position) {
  const Marks early = early_steps(e, wanted);
  find_guards(e, wanted, early);
  note_reads(e, wanted, std::nullopt);
  const size_t written = e.b.function().instructions.size(), noted = e.noted_instructions;
  load_items(e);
  for (Output& out : e.outputs) out.items.clear();
  ItemPlan plan = start_items(e, wanted, early);
  const bool passes_by = e.guard_of_items && e.given.empty() && pass.accumulates && !pass.scans &&
                         std::none_of(e.outputs.begin(), e.outputs.end(), [&](const Output& out) {
                           return pass.takes(out) || out.kind == Output::scattered;
                         });
  for (e.item = 0; e.item < e.items; ++e.item) {
    const ptx::LabelId next = passes_by ? e.b.label() : ptx::LabelId{};
    if (passes_by) e.b.when(e.b.setp(Compare::eq, e.guards[*e.guard_of_items].items[e.item], 0)).bra(next);
    evaluate_item(e, plan);
    if (pass.accumulates) accumulate(e);
    if (pass.accumulates) fold_item(e);
    if (pass.scans)
      note_selection(e, !e.places.empty() ? e.places[e.item]
                        : e.item          ? e.b.add(position, e.local_offset(e.item))
                                          : position);
    for (Output& out : e.outputs)
      if (pass.takes(out)) out.items.push_back(storable(e, convert(e, e.values[index(out.variable)], out.type)));
    if (passes_by) e.b.bind(next);
  }
  if (pass.stores) store_outputs(e);
  note_instructions(e, written, noted, e.items, std::nullopt);
  drop_guards(e);
}

// What the conditions follow from; marks the variables that those steps read.
Marks steps_of_conditions(const Emitter& e, const Conditions& conditions, Marks& needed) {
  needed = marks(e.function.variables.size());
  for (VariableId v : conditions) needed[index(v)] = true;
  return steps_for(e, needed, false);
}

void want_inputs(Emitter& e, const Marks& needed) {
  for (Input& in : e.inputs) in.wanted = needed[index(in.variable)];
}

// Past the first elements of the thread's part of a tile.
void start_part(Emitter& e, Reg<U32> first, Reg<U32> room) {
  e.room = Builder::as<S32>(room);
  for (Input& in : e.inputs)
    if (in.wanted) in.at = place(e, in.type, in.stored, e.b.ld_param(in.data), first);
}

// The loop where what holds for all elements that count is evaluated first, and the rest for those that are left (collect.cpp).
class CollectingLoop {
 public:
  CollectingLoop(Emitter& e, const Pass& pass, const Conditions& conditions)
      : e_(e), pass_(pass), conditions_(conditions) {
    of_conditions_ = steps_of_conditions(e, conditions, needed_by_conditions_);
    e.given = conditions;
    of_rest_ = steps_of(e, pass, needed_by_rest_);
    e.given.clear();
    // Of a tile few are left, of all tiles enough: more items than one would be idle there.
    rest_items_ = pass.scans ? 1 : items_of(e, of_rest_);
    e.stride = 32;
    e.guards_items = true;
  }

  // Of selections that are stored: tile by tile, in the memory of their positions, which are no more than those collected before them.
  void write_scans() {
    Builder& b = e_.b;
    const uint32_t tile = e_.block_size * e_.scan_items, items = std::min(e_.scan_items, most_items_);
    const ptx::LabelId loop = b.label(), end = b.label(), part = b.label(),
                       past = e_.test ? b.label() : none<ptx::LabelId>();
    const size_t written = b.function().instructions.size(), noted = e_.noted_instructions;
    e_.tiles = b.max(b.shr(b.add(e_.n32, tile - 1), std::countr_zero(tile)), 1);
    b.bind(loop);
    take_tile(e_);
    b.when(b.setp(Compare::ge, e_.tile_number, e_.tiles)).bra_uni(end);
    Reg<U32> local = start_scans(e_), begin = b.shl(e_.tile_number, std::countr_zero(tile)),
             first = b.add(begin, local);
    e_.in_loop = true;
    if (e_.test) skip_tile(e_, first, e_.scan_items * e_.stride, past);
    e_.items = items;
    want_inputs(e_, needed_by_conditions_);
    start_input_items(e_, true);
    start_part(e_, first, b.sub(b.min(b.sub(e_.n32, begin), tile), local));
    Reg<U32> from = positions_of_warp(e_), cursor = b.mov(from), position = b.mov(local);
    b.bind(part);
    collect_items(e_, conditions_, of_conditions_, position, 2, cursor);
    if (items < e_.scan_items) {
      for (Input& in : e_.inputs)
        if (in.wanted) advance(e_, in.type, in.stored, in.at, items * e_.stride);
      b.sub(e_.room, static_cast<int32_t>(items * e_.stride), e_.room);
      b.add(position, items * e_.stride, position);
      b.when(b.setp(Compare::ge, b.and_(position, 32 * e_.scan_items - 1), items * e_.stride)).bra_uni(part);
    }
    b.bar_warp_sync();
    // The rest.
    const ptx::LabelId next = b.label(), done = b.label();
    Reg<U32> collected = b.shr(b.sub(cursor, from), 1), at = b.mad_lo(e_.lane, 2, from);
    Reg<S32> left = Builder::as<S32>(b.mov(collected));
    b.bind(next);
    b.when(b.setp(Compare::le, left, 0)).bra_uni(done);
    start_rest(left);
    take_collected(e_, 2, at, begin);
    write_items(e_, pass_, of_rest_, {});
    b.add(at, 2 * rest_items_ * e_.stride, at);
    b.sub(left, static_cast<int32_t>(rest_items_ * e_.stride), left);
    b.bra_uni(next);
    b.bind(done);
    end_collected(e_);
    if (e_.test) b.bind(past);
    store_selections(e_);
    b.bra_uni(loop);
    b.bind(end);
    note_instructions(e_, written, noted, items, std::nullopt);
    e_.in_loop = false;
  }

  // Of reductions: whatever tile they are of, as many as lanes take.
  void write_reductions() {
    Builder& b = e_.b;
    constexpr uint32_t items = most_items_;
    const uint32_t tile = e_.block_size * items, of_warp = items * e_.stride, taken = rest_items_ * e_.stride;
    e_.code.items_per_thread = items;
    const ptx::SharedVariable shared =
        b.shared<U32>(e_.code.name + "_collected", (of_warp + taken) * (e_.block_size / 32), 16);
    e_.lanes_below = b.special(ptx::SpecialRegister::lanemask_lt);
    e_.lane = b.and_(e_.tid, 31);
    e_.warp = b.shr(e_.tid, 5);
    const ptx::LabelId loop = b.label(), end = b.label(), next = b.label(), done = b.label();
    const ptx::LabelId past = e_.test ? b.label() : none<ptx::LabelId>();
    Reg<U32> tiles = b.shr(b.add(e_.n32, tile - 1), std::countr_zero(tile)), number = b.mov(e_.ctaid);
    Reg<U32> count = b.constant<U32>(0);
    const size_t written = b.function().instructions.size(), noted = e_.noted_instructions;
    e_.in_loop = true;
    b.when(b.setp(Compare::ge, number, tiles)).bra_uni(end);
    b.bind(loop);
    Reg<U32> begin = b.shl(number, std::countr_zero(tile)), local = b.mad_lo(e_.warp, of_warp, e_.lane),
             first = b.add(begin, local);
    Reg<U32> from = b.mad_lo(e_.warp, 4 * (of_warp + taken), b.address_of_32(shared));
    if (e_.test) skip_tile(e_, first, of_warp, past);
    e_.items = items;
    want_inputs(e_, needed_by_conditions_);
    start_input_items(e_, true);
    start_part(e_, first, b.sub(b.min(b.sub(e_.n32, begin), tile), local));
    Reg<U32> cursor = b.mad_lo(count, 4, from);
    collect_items(e_, conditions_, of_conditions_, first, 4, cursor);
    b.shr(b.sub(cursor, from), 2, count);
    if (e_.test) b.bind(past);
    b.bar_warp_sync();
    // The last ones, when there are enough, or when nothing comes any more.
    b.add(number, e_.nctaid, number);
    Reg<U32> enough = b.select<U32>(1, taken, b.setp(Compare::ge, number, tiles));
    b.bind(next);
    b.when(b.setp(Compare::lt, count, enough)).bra_uni(done);
    Reg<U32> some = b.min(count, taken);
    b.sub(count, some, count);
    start_rest(Builder::as<S32>(some));
    take_collected(e_, 4, b.mad_lo(b.add(count, e_.lane), 4, from), {});
    write_items(e_, pass_, of_rest_, {});
    b.bra_uni(next);
    b.bind(done);
    b.bar_warp_sync();
    b.when(b.setp(Compare::lt, number, tiles)).bra_uni(loop);
    b.bind(end);
    end_collected(e_);
    note_instructions(e_, written, noted, items, std::nullopt);
    e_.in_loop = false;
  }

 private:
  static constexpr uint32_t most_items_ = 8;

  void start_rest(Reg<S32> left) {
    e_.items = rest_items_;
    e_.given = conditions_;
    want_inputs(e_, needed_by_rest_);
    start_input_items(e_, false);
    e_.room = e_.b.sub(left, Builder::as<S32>(e_.lane));
  }

  Emitter& e_;
  const Pass& pass_;
  const Conditions& conditions_;
  Marks of_conditions_, of_rest_, needed_by_conditions_, needed_by_rest_;
  uint32_t rest_items_ = 1;
};

void write_loop(Emitter& e, const Pass& pass) {
  Builder& b = e.b;
  Marks needed;
  const Marks wanted = steps_of(e, pass, needed);
  want_inputs(e, needed);
  if (const Conditions conditions = pass.rows ? Conditions() : find_collected(e, wanted);
      e.encodings.collects && !conditions.empty()) {
    CollectingLoop collecting(e, pass, conditions);
    return pass.scans ? collecting.write_scans() : collecting.write_reductions();
  }
  const bool positions = reads_positions(e, wanted);
  e.items = items_of(e, wanted);
  if (pass.scans) e.items = std::min(e.items, e.scan_items);
  e.guards_items = pass.scans || (pass.accumulates && !(e.accumulators.empty() && e.sinks.empty()));
  if (!pass.scans && !pass.rows)
    e.code.items_per_thread = std::max(e.code.items_per_thread, e.scans.empty() ? e.items : 1);
  const uint32_t tile = e.block_size * (pass.scans ? e.scan_items : e.items);

  if (pass.scans) e.stride = 32;
  // Those of a scan live within a tile only: what stores the tile's selection has need of registers too.
  if (!pass.scans) start_input_items(e, true);
  Reg<U32> tiles = b.shr(b.add(e.n32, tile - 1), std::countr_zero(tile));
  if (pass.scans) tiles = b.max(tiles, 1);  // without elements too, a tile's block stores the sizes
  const ptx::LabelId loop = b.label(), end = b.label();
  const size_t written = b.function().instructions.size(), noted = e.noted_instructions;
  Reg<U32> number, local = e.tid;  // this thread's first element within the tile
  if (pass.scans) {
    e.tiles = tiles;
    b.bind(loop);
    take_tile(e);
    number = e.tile_number;
    b.when(b.setp(Compare::ge, number, tiles)).bra_uni(end);
    local = start_scans(e);
    start_input_items(e, true);
  } else {
    number = b.mov(e.ctaid);
    b.when(b.setp(Compare::ge, number, tiles)).bra_uni(end);
    b.bind(loop);
  }

  // Addresses are made anew for every tile, from parameters: kept over the loop, they would take two registers each.
  e.in_loop = true;
  Reg<U32> begin = b.shl(number, std::countr_zero(tile)), first = b.add(begin, local);
  const ptx::LabelId past = e.test ? b.label() : none<ptx::LabelId>();
  CHECK(!e.test || tile <= most_bounds_per_tile * bounds_rows);
  if (e.test) skip_tile(e, pass.scans ? first : begin, pass.scans ? e.scan_items * e.stride : tile, past);
  e.room = b.sub(Builder::as<S32>(b.min(b.sub(e.n32, begin), tile)), Builder::as<S32>(local));
  for (Input& in : e.inputs)
    if (in.wanted) in.at = place(e, in.type, in.stored, b.ld_param(in.data), first);
  for (Output& out : e.outputs)
    if (pass.takes(out)) out.at = place(e, out.type, out.stored, b.ld_param(out.data), first);
  if (positions) e.first_index = b.cvt<U64>(first);
  if (!pass.scans) {
    write_items(e, pass, wanted, {});
    if (e.test) b.bind(past);
    b.add(number, e.nctaid, number);
    b.when(b.setp(Compare::lt, number, tiles)).bra_uni(loop);
  } else {
    const uint32_t part = e.items * e.stride;
    Reg<U32> position = b.mov(local);
    const ptx::LabelId next = b.here();
    write_items(e, pass, wanted, position);
    if (e.items < e.scan_items) {
      for (Input& in : e.inputs)
        if (in.wanted) advance(e, in.type, in.stored, in.at, part);
      for (Output& out : e.outputs)
        if (pass.takes(out)) advance(e, out.type, out.stored, out.at, part);
      if (positions) b.add(e.first_index, part, e.first_index);
      b.sub(e.room, static_cast<int32_t>(part), e.room);
      b.add(position, part, position);
      // Within the warp's segment, it is the lane again at the end.
      b.when(b.setp(Compare::ge, b.and_(position, 32 * e.scan_items - 1), part)).bra_uni(next);
    }
    if (e.test) b.bind(past);
    e.within.clear();
    store_selections(e);
    b.bra_uni(loop);
  }
  b.bind(end);
  note_instructions(e, written, noted, pass.scans ? e.scan_items : e.items, std::nullopt);
  e.in_loop = false;
  e.within.clear();
}

}  // namespace

Result<KernelCode> generate_kernel(const outliner::Outlined& outlined, uint32_t kernel_index, const Options& options,
                                   ptx::Module& module, hir::StatementId& refused_at) {
  const outliner::Kernel& kernel = outlined.kernels[kernel_index];
  const hir::Function& function = outlined.program.functions[kernel.function];
  KernelCode code;
  code.name = std::string(outlined.program.text(function.name));
  Emitter e{outlined, kernel, outlined.program, function, module, Builder(module, code.name), code, kernel_index};
  if (kernel_index < options.encodings.size()) e.encodings = options.encodings[kernel_index];
  const auto moves = [&](BasicType type, const Stored& stored) {
    code.floor_bits_per_element += stored.kind == encodings::Kind::record ? stored.bits : encodings::bits_of(type, stored);
  };
  e.self = static_cast<uint32_t>(module.functions.size()) - 1;
  e.math = options.math;
  e.bytes_in_flight = options.bytes_in_flight;
  e.notes_work = options.notes_work;
  Builder& b = e.b;
  b.function().registers.raw().reserve(512);  // most kernels need no more
  b.function().instructions.reserve(1024);
  b.function().labels.raw().reserve(32);
  b.function().operands.reserve(3072);
  e.values.resize(function.variables.size());
  e.inputs.reserve(function.parameters.size());
  e.outputs.reserve(function.result_types.size());
  const auto refused = [&] {
    refused_at = e.problem_at;
    return input_error("`{}` has no GPU code yet", e.problem);
  };

  // Plan.
  if (!plan_steps(e)) return refused();
  e.reads.assign(function.variables.size(), 0);
  for (const Step& s : e.steps)
    for (const hir::Operand& o : s.operands)
      if (o.kind == hir::Operand::variable) ++e.reads[o.id];
  Marks read = marks(function.variables.size());
  bool fails = false, loops = false, rows = false;
  for (const Step& s : e.steps) {
    fails |= can_fail(e, s);
    const bool of_cells = e.form(s.target) == Form::cell;
    rows |= e.form(s.target) == Form::row;
    loops |= !s.scalar && !s.reduction && !of_cells && !kernel.list;
    const bool counts = s.reduction && s.builtin == Builtin::len;
    const bool probes = s.call && s.builtin == Builtin::gpu_probe;
    if (probes) plan_lookup(e, s);
    if (!e.problem.empty()) return refused();
    for (size_t k = 0; k < s.operands.size(); ++k) {
      const hir::Operand& o = s.operands[k];
      if (o.kind != hir::Operand::variable) continue;
      if (probes && reads_whole(s, k)) {
        moves(e.type_of(o.variable_id()), e.stored(o.variable_id()));
      } else if (reads_whole(s, k)) {
        Gathered& from = e.gathered[o.variable_id()];
        from.stored = e.stored(o.variable_id());
        if ((s.builtin == Builtin::index || s.builtin == Builtin::index_or) && s.operands.size() > 1) {
          const hir::Operand& at = s.operands[1];
          from.narrow |= rep_of(at.kind == hir::Operand::literal ? e.basic(e.program.literals[at.literal_id()].type)
                                                                 : e.type_of(at.variable_id())) == Rep::s32;
          from.narrow |= at.kind == hir::Operand::variable && e.low[at.id];
        }
        moves(e.type_of(o.variable_id()), from.stored);
      } else if (!counts) {
        read[o.id] = true;
      }
    }
    if (!s.reduction || of_cells) continue;
    if (s.builtin == Builtin::gpu_fold) {
      plan_fold(e, s);
      if (!e.problem.empty()) return refused();
      continue;
    }
    if (s.operands[0].kind != hir::Operand::variable) {
      refuse(e, std::string(hir::row(s.builtin).name) + " of a literal", s.id);
      return refused();
    }
    const VariableId argument = s.operands[0].variable_id();
    const bool selected = e.form(argument) == Form::selected;
    if (counts && !selected) continue;  // n itself, or the number of cells
    plan_reduction(e, s.target, argument, s.builtin, selected);
  }
  loops |= !e.accumulators.empty() || !e.sinks.empty();
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
        case Form::reduced:
          out.kind = std::any_of(e.sinks.begin(), e.sinks.end(),
                                 [&](const Sink& sink) {
                                   return std::any_of(sink.folds.begin(), sink.folds.end(),
                                                      [&](const Fold& f) { return f.result == v; });
                                 })
                         ? Output::folded
                     : reduced ? Output::reduced
                               : Output::scalar;
          break;
        case Form::element: out.kind = Output::vector; break;
        case Form::selected: out.kind = Output::compressed; break;
        case Form::cell: out.kind = Output::cells; break;
        case Form::row: out.kind = Output::rows; break;
        case Form::copy: out.kind = Output::scattered; break;
      }
      loops |= out.kind == Output::vector;
      code.starts_as.push_back(-1);
      code.cells_of.push_back(-1);
      code.may_be_encoded.push_back(out.kind == Output::vector || out.kind == Output::compressed);
      if (code.may_be_encoded.back() && k < e.encodings.results.size()) out.stored = e.encodings.results[k];
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
      ++e.reads[index(v)];
      e.outputs.push_back(std::move(out));
    }
  }
  for (VariableId v : function.parameters) {
    if ((e.form(v) != Form::element && e.form(v) != Form::row) || !read[index(v)]) continue;
    e.inputs.push_back({.variable = v, .type = e.type_of(v), .stored = e.stored(v)});
    // What cells have beside their elements is little.
    if (e.form(v) == Form::element) moves(e.type_of(v), e.stored(v));
  }
  for (const Output& out : e.outputs) {
    if (out.kind == Output::vector || out.kind == Output::scattered) moves(out.type, out.stored);
    if (kernel.list && (out.kind == Output::vector || out.kind == Output::compressed)) loops = true;
  }
  place_sinks(e);
  plan_fields(e);
  plan_cells(e);
  // What can fail is evaluated though nothing may read it.
  if (kernel.list && fails && !loops) {
    const Marks elsewhere = evaluated_with_cells(e);
    loops = std::any_of(e.steps.begin(), e.steps.end(), [&](const Step& s) {
      return can_fail(e, s) && (e.form(s.target) == Form::element || e.form(s.target) == Form::selected) &&
             !elsewhere[index(s.target)];
    });
  }
  const bool cells = cell_scratch_bytes(e) > 0;
  if (cells && !e.scans.empty()) {
    refuse(e, "a stored selection beside reductions of cells", none<StatementId>());
    return refused();
  }
  code.block_size = e.block_size;
  if (cells) code.items_per_thread = 8;  // cells.cpp
  if (!e.scans.empty()) {
    plan_scans(e);
    if (!e.problem.empty()) return refused();
    code.items_per_thread = e.scan_items;
  }
  find_test(e);
  DataParameters data;
  const bool keeps_state = !e.reductions.empty() || !e.scans.empty() || cells;
  if (keeps_state) {
    code.scratch_fixed_bytes = scratch_fixed_bytes;
    code.scratch_bytes_per_tile = 16 * static_cast<uint32_t>(e.scans.size());
    code.scratch_bytes_per_block = 8 * static_cast<uint32_t>(e.accumulators.size()) + cell_scratch_bytes(e);
  }
  declare_parameters(e, data, keeps_state, fails);
  b.set_block_size(e.block_size);

  // Prologue.
  e.tid = b.special(ptx::SpecialRegister::tid_x);
  e.ctaid = b.special(ptx::SpecialRegister::ctaid_x);
  e.nctaid = b.special(ptx::SpecialRegister::nctaid_x);
  if (fails) e.worst = b.constant<U32>(0);
  const outliner::Size& size = outlined.shapes[kernel.geometry];
  if (kernel.list && is_none(kernel.geometry_variable))
    return input_error("the geometry of `{}` is that of no list parameter", code.name);
  if (is_none(kernel.geometry_variable)) {
    if (size.kind != outliner::Size::constant)
      return input_error("the geometry of `{}` is neither constant nor that of a parameter", code.name);
    e.n = b.constant<U64>(static_cast<uint64_t>(size.value));
  }
  // What other kernels have made is read behind this only, but for sizes and single elements, of which addresses are known: they come together.
  const Reg<U32> differs = kernel.looks ? b.ld<U32>(Space::global, Address(b.ld_param(e.differs))) : Reg<U32>();
  const auto pass_by = [&] {
    if (kernel.looks) b.when(b.setp(Compare::ne, differs, 0u)).ret();
  };
  if (kernel.list) pass_by();
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
      e.values[index(v)] = is_by_value(e, v) ? number_in(e, e.type_of(v), data[k])
                                             : load_scalar(e, e.type_of(v), e.stored(v), b.ld_param(data[k].first));
    for (Input& in : e.inputs)
      if (in.variable == v) in.data = data[k].first;
  }
  if (!kernel.list) pass_by();
  for (Lookup& lookup : e.lookups) lookup.load(b);
  prepare_constants(e);
  for (const Step& s : e.steps) {
    if (s.scalar) run_step(e, s);
    if (s.reduction && e.form(s.target) == Form::reduced && s.builtin != Builtin::gpu_fold &&
        std::none_of(e.reductions.begin(), e.reductions.end(),
                     [&](const Reduction& r) { return r.result == s.target; }))
      e.values[index(s.target)] = element(BasicType::i64, Builder::as<S64>(kernel.list ? e.cells : e.n));
  }
  // One thread of the grid stores scalars and the sizes of vectors.
  bool single = false;
  for (const Output& out : e.outputs)
    single |= out.kind != Output::reduced && out.kind != Output::scattered && out.kind != Output::compressed;
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
        store_element(e, ready[k], b.ld_param(out.data), {});
        b.st<U64>(Space::global, Address(b.ld_param(out.size)), 1);
      } else if (out.kind == Output::vector || out.kind == Output::cells || out.kind == Output::rows) {
        const bool of_cells = out.kind != Output::vector || (out.list && kernel.list);
        b.st<U64>(Space::global, Address(b.ld_param(out.size)), of_cells ? e.cells : e.n);
      }
    }
    store_sink_sizes(e);
    b.bind(stored);
  }

  if (rows) {
    if (cells && !loops)
      for (auto& [v, from] : e.gathered) from.load(b);
    e.n32 = b.cvt<U32>(e.cells);
    write_loop(e, {.stores = true, .rows = true});
  }
  if (loops) e.n32 = b.cvt<U32>(e.n);
  start_accumulators(e);
  start_sinks(e);
  const bool scans = !e.scans.empty();
  if (scans) declare_scan_memory(e);
  if (loops) {
    write_loop(e, {.accumulates = true, .stores = true, .scans = scans});
  }
  finish_sinks(e);
  store_lengths(e);
  if (cells) {
    reduce_cells(e);
    store_sum_flags(e);
    store_error(e);
  } else {
    store_sum_flags(e);
    store_error(e);
    finish_kernel(e);
  }
  b.ret();
  note_results(e);
  code.all_instructions = static_cast<uint32_t>(b.function().instructions.size());
  b.finish();
  if (!e.problem.empty()) return refused();
  return code;
}

}  // namespace rndn::codegen
