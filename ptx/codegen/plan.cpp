// What the statements of a kernel are to its threads, before any PTX is written.
//
// In a vector kernel a variable's form follows from its shape: of size one, of the geometry's size, or of another one, which then is a lazily masked
// selection. In a list kernel it follows from the statements: the elements of list parameters and what element-wise functions make of them belong to
// items, reductions of cells belong to cells. The each family is peeled: each(@sum, x) is a sum per cell, each_right(@index, x, rows) an index of
// every element, raze a copy of the flat elements. Vectors with an element per cell, and what element-wise functions make of them, are rows.
// A statement that computes what an earlier one did is a copy of its result.
// Cost: O(statements). Leaves out: functions of users in the each family, element-wise work on results of cells, lists of lists.
#include <algorithm>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {

using hir::Expression;
using hir::ExpressionId;
using hir::Statement;
using hir::StatementId;
using hir::VariableId;

#define BUILTIN(id, text, min, max, ...) \
  static_assert((hir::Builtin::id != hir::Builtin::gpu_probe && hir::Builtin::id != hir::Builtin::gpu_fold) || max <= most_arguments);
#include "frontend/builtins.def"
#undef BUILTIN

void refuse(Emitter& e, std::string what, StatementId at) {
  if (!e.problem.empty()) return;
  e.problem = std::move(what);
  e.problem_at = at;
}

bool reads_whole(const Step& s, size_t operand) {
  if (!s.call) return false;
  if (s.builtin == Builtin::gpu_probe) return operand >= 1 && operand <= s.operands.size() / 2;
  return (hir::row(s.builtin).sync_in >> operand & 1) != 0;
}

bool masks(const Step& s, size_t operand) {
  return s.call && operand == 0 && (s.builtin == Builtin::compress || s.builtin == Builtin::where);
}

bool is_inside(const Emitter& e, const Step& s) {
  return s.place < e.encodings.inside.size() && e.encodings.inside[s.place] != 0;
}

bool can_fail(const Emitter& e, const Step& s) {
  return s.call && hir::can_fail(s.builtin, s.result) && !is_inside(e, s);
}

namespace {

bool is_list(const Emitter& e, VariableId v) {
  const hir::TypeKind kind = (*e.program.types)[e.variable(v).type].kind;
  return kind == hir::TypeKind::list || kind == hir::TypeKind::tuple;
}

bool has_scalar_shape(const Emitter& e, VariableId v) {
  return outliner::is_scalar(e.outlined.shapes, e.kernel.shapes[v]);
}

Form form_of_shape(const Emitter& e, VariableId v) {
  if (has_scalar_shape(e, v)) return Form::scalar;
  return e.outlined.shapes[e.kernel.shapes[v]].size == e.kernel.geometry ? Form::element : Form::selected;
}

// One statement of a list kernel: what its result is.
Form form_in_list_kernel(Emitter& e, const Step& s, bool each) {
  Form widest = Form::scalar;
  for (size_t k = 0; k < s.operands.size(); ++k) {
    if (reads_whole(s, k)) continue;
    const Form f = e.form(s.operands[k]);
    if (f == Form::copy) refuse(e, "a vector beside the elements of a list", s.id);
    if (f == Form::scalar || f == widest) continue;
    if (widest != Form::scalar && !(f == Form::selected && widest == Form::element) &&
        !(f == Form::element && widest == Form::selected)) {
      refuse(e, "a function of elements and of cells", s.id);
      return Form::element;
    }
    widest = std::max(widest, f);
  }
  if (!s.call) return widest;
  if (each && s.builtin == Builtin::reverse) {  // reads its list whole
    if (e.form(s.operands[0]) == Form::element && e.variable(s.operands[0].variable_id()).is_parameter)
      return Form::element;
    refuse(e, "reverse of cells that the kernel makes", s.id);
    return Form::element;
  }
  if (!each) {
    if (widest == Form::row && !s.reduction && hir::row(s.builtin).geometry == hir::GeometryRule::result)
      return Form::row;
    if (s.reduction && s.builtin == Builtin::len && widest == Form::element) return Form::reduced;
    if (widest == Form::scalar && !s.reduction) return Form::scalar;
    refuse(e, std::string(hir::row(s.builtin).name) + " of a list", s.id);
    return Form::scalar;
  }
  if (widest == Form::scalar || widest == Form::reduced || widest == Form::row) {
    refuse(e, "the each family without a list of this kernel", s.id);
    return Form::scalar;
  }
  if (widest == Form::cell) {
    refuse(e, "a function of the results of cells", s.id);
    return Form::cell;
  }
  if (s.reduction) return Form::cell;
  switch (s.builtin) {
    case Builtin::compress: return Form::selected;
    case Builtin::where:
    case Builtin::range:
    case Builtin::vector:
    case Builtin::index_a: refuse(e, std::string(hir::row(s.builtin).name) + " within cells", s.id); return widest;
    default: return widest;
  }
}

bool same_operand(const hir::Operand& a, const hir::Operand& b) { return a.kind == b.kind && a.id == b.id; }

// Makes steps copies of earlier ones that do the same, and has others read the earlier result.
void share_results(Emitter& e) {
  if (std::any_of(e.definitions.begin(), e.definitions.end(), [](uint8_t n) { return n > 1; })) return;
  std::vector<VariableId> same(e.function.variables.size());
  for (uint32_t v = 0; v < same.size(); ++v) same[v] = static_cast<VariableId>(v);
  for (size_t k = 0; k < e.steps.size(); ++k) {
    Step& s = e.steps[k];
    for (hir::Operand& o : s.operands)
      if (o.kind == hir::Operand::variable) o.id = index(same[o.id]);
    if (!s.call || s.scalar || s.reduction || s.builtin == Builtin::index_a) continue;
    const auto earlier = std::find_if(e.steps.begin(), e.steps.begin() + static_cast<ptrdiff_t>(k), [&](const Step& x) {
      return x.call && x.builtin == s.builtin && x.result == s.result && x.casts == s.casts && !x.scalar &&
             e.form(x.target) == e.form(s.target) && e.variable(x.target).type == e.variable(s.target).type &&
             std::equal(x.operands.begin(), x.operands.end(), s.operands.begin(), s.operands.end(), same_operand);
    });
    if (earlier == e.steps.begin() + static_cast<ptrdiff_t>(k)) continue;
    same[index(s.target)] = earlier->target;
    s.call = false;
    s.casts.clear();
    s.operands = {{.kind = hir::Operand::variable, .id = index(earlier->target)}};
  }
}

// Bounds of the operand's elements hold where they do for those of `from`, and what `after` reads lies inside.
bool is_bounded(const Emitter& e, const hir::Operand& o, KernelCode::Place& place, int most_steps = 8) {
  if (o.kind == hir::Operand::literal) return true;
  if (o.kind != hir::Operand::variable || e.definitions[o.id] != 1 || most_steps == 0) return false;
  const auto& parameters = e.function.parameters;
  if (const auto p = std::find(parameters.begin(), parameters.end(), o.variable_id()); p != parameters.end()) {
    if (place.from_count == place.from.size()) return false;
    place.from[place.from_count++] = static_cast<uint32_t>(p - parameters.begin());
    return true;
  }
  const auto s = std::find_if(e.steps.begin(), e.steps.end(), [&](const Step& x) { return index(x.target) == o.id; });
  if (s == e.steps.end() || s->reduction) return false;
  if (!s->call) return is_bounded(e, s->operands[0], place, most_steps - 1);
  switch (hir::row(s->builtin).bounds_rule) {
    case hir::BoundsRule::plus:
    case hir::BoundsRule::minus:
    case hir::BoundsRule::mul:
      return is_bounded(e, s->operands[0], place, most_steps - 1) && is_bounded(e, s->operands[1], place, most_steps - 1);
    case hir::BoundsRule::compress: return is_bounded(e, s->operands[1], place, most_steps - 1);
    case hir::BoundsRule::index:
      if (s->place == UINT32_MAX || place.after_count == place.after.size() || place.from_count == place.from.size()) return false;
      place.after[place.after_count++] = s->place;
      place.from[place.from_count++] = e.code.places[s->place].vector;
      return true;
    default: return false;
  }
}

// Indices of vectors that the kernel is given.
void note_places(Emitter& e) {
  const auto& parameters = e.function.parameters;
  for (Step& s : e.steps) {
    if (!s.call || s.builtin != Builtin::index || s.operands[0].kind != hir::Operand::variable ||
        s.operands[1].kind != hir::Operand::variable)
      continue;
    const auto of = std::find(parameters.begin(), parameters.end(), s.operands[0].variable_id());
    if (of == parameters.end() || e.definitions[index(*of)] != 1) continue;
    const outliner::Shape& shape = e.outlined.shapes[e.kernel.shapes[*of]];
    if (shape.kind != outliner::Shape::vector) continue;
    const outliner::Size& rows = e.outlined.shapes[shape.size];
    if (rows.kind != outliner::Size::symbol && rows.kind != outliner::Size::constant) continue;
    KernelCode::Place place{.vector = static_cast<uint32_t>(of - parameters.begin()), .at = s.operands[1].variable_id()};
    if (!is_bounded(e, s.operands[1], place)) continue;
    s.place = static_cast<uint32_t>(e.code.places.size());
    e.code.places.push_back(place);
  }
}

}  // namespace

bool plan_steps(Emitter& e) {
  const bool list_kernel = e.kernel.list;
  e.steps.reserve(e.function.statements.size());
  e.forms.assign(e.function.variables.size(), Form::scalar);
  if (list_kernel) {
    for (VariableId v : e.function.parameters) {
      const bool per_cell = e.outlined.shapes[e.kernel.shapes[v]].size == e.kernel.geometry;
      e.forms[index(v)] = is_list(e, v)            ? Form::element
                          : has_scalar_shape(e, v) ? Form::scalar
                          : per_cell               ? Form::row
                                                   : Form::copy;
    }
  } else {
    for (uint32_t v = 0; v < e.forms.size(); ++v) e.forms[v] = form_of_shape(e, static_cast<VariableId>(v));
  }
  for (StatementId id : e.function.blocks[e.function.body].statements) {
    const Statement& s = e.function.statements[id];
    if (s.kind == Statement::return_ || s.kind == Statement::declare) continue;
    Step& step = e.steps.emplace_back();
    step.id = id;
    step.target = s.targets[0].variable_id();
    ExpressionId inner = s.value;
    for (; e.function.expressions[inner].kind == Expression::cast; inner = e.function.expressions[inner].inner)
      step.casts.insert(step.casts.begin(), e.basic(e.function.expressions[inner].cast_type));
    const Expression& expression = e.function.expressions[inner];
    step.call = expression.kind == Expression::call;
    step.operands = expression.operands;
    if (step.operands.size() > most_arguments) {
      refuse(e, "a call of many arguments", id);
      return false;
    }
    if (!expression.types.empty()) step.result = e.basic(expression.types[0]);
    bool each = false;
    if (step.call) {
      step.builtin = expression.callee.builtin_id;
      each = hir::is_each(step.builtin);
      if (each) {
        const auto* f =
            step.operands[0].kind == hir::Operand::literal
                ? std::get_if<std::vector<hir::FunctionRef>>(&e.program.literals[step.operands[0].literal_id()].values)
                : nullptr;
        if (!f || f->size() != 1 || f->front().kind != hir::FunctionRef::builtin) {
          refuse(e, "the each family with a function of the program", id);
          return false;
        }
        step.builtin = f->front().builtin_id;
        step.operands.erase(step.operands.begin());
      } else if (step.builtin == Builtin::raze) {
        step.call = false;
      }
      step.reduction = step.call && hir::row(step.builtin).has(hir::traits::reduction);
    }
    Form& form = e.forms[index(step.target)];
    if (list_kernel) {
      form = form_in_list_kernel(e, step, each);
    } else if (each || (expression.kind == Expression::call && !step.call)) {
      refuse(e, std::string(hir::row(expression.callee.builtin_id).name) + " outside a kernel with list geometry", id);
      return false;
    } else if (step.reduction) {
      form = Form::reduced;
    } else if (step.call && step.builtin == Builtin::index_a) {
      form = Form::copy;
    }
    step.scalar = form == Form::scalar;
    if (!e.problem.empty()) return false;
  }
  e.definitions = marks(e.function.variables.size());
  const auto define = [&](VariableId v) {
    uint8_t& n = e.definitions[index(v)];
    n = std::min<uint8_t>(n + 1, 2);
  };
  for (VariableId v : e.function.parameters) define(v);
  for (const Step& s : e.steps) define(s.target);
  share_results(e);
  if (!list_kernel) note_places(e);
  e.low = marks(e.function.variables.size());
  for (VariableId v : e.function.parameters)
    e.low[index(v)] = encodings::find(e.stored(v)).holds_low(e.type_of(v), e.stored(v));
  for (const Step& s : e.steps) {
    if (s.call && s.builtin == Builtin::gpu_probe && s.casts.empty()) e.low[index(s.target)] = true;
    const bool copies = !s.call || s.builtin == Builtin::index, selects = s.call && s.builtin == Builtin::compress;
    if (!s.casts.empty() || (!copies && !selects)) continue;
    const hir::Operand& from = s.operands[selects ? 1 : 0];
    e.low[index(s.target)] = from.kind == hir::Operand::variable && e.low[from.id];
  }
  return true;
}

}  // namespace rndn::codegen
