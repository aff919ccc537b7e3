// Work on the cells of lists as work on flat vectors, so that its launches do not depend on how
// many cells there are: the flattening of nested data parallelism (Blelloch and Sabot,
// "Compiling Collection-Oriented Languages onto Massively Parallel Computers", 1990).
//
// In: main with its calls replaced, and its shapes. Out: a main in which calls on lists that
// have no kernel are calls on vectors, which have one:
//   s = each_left(@index, l, 0)   s = tolist(index(x, b))
//   r = each(@reverse, l)         c = GPU.cell_numbers(n, x), p = the place of every element in its
//                                 cell; r = GPU.cells(index(x, b[c] + n[c] - 1 - p), n)
// where x = raze(l) are the elements of all cells, n their numbers per cell and b where cells
// begin. A list that is made becomes GPU.cells(elements, lengths); where only calls read it that
// are rewritten themselves, it is never made. A value within a call on cells is one of: the same
// for all cells; per cell a vector, as elements and lengths, or as places in elements that other
// cells may share; per cell a list of these; per cell a dict, as two of these; per cell one of several
// kinds, as cells of each kind and numbers of cells, of which GPU.pick makes a list; several columns.
// One function per kind of builtin makes such values of such values. Functions of the program
// are followed statement by statement, at any depth: inside, what is outside is found by the
// number of the outer cell. Lists made by `list` are unrolled. Lengths that must agree are
// compared by `require`; where it fails the program as it was says what is wrong
// (runtime/engine.cpp). Calls that have kernels or operators for cells stay as they are, and so
// do calls of which any step is refused.
// Cost: O(statements made), at most `most_made` of them.
// Leaves out: programs with control flow in main, functions with control flow, enums and tables
// in cells, directions of several columns of `order` that are no literal.
#include <algorithm>

#include "outliner/lists/flattener.h"

namespace rndn::outliner::flattening {

// One round over main. False: nothing was rewritten.
bool Flattener::run(DiagnosticSink& sink) {
  if (!read_main(f_)) return false;
  note_names(f_);
  size_t first = order_.size();
  for (size_t place = 0; place < order_.size(); ++place) {
    if (rewrite(order_[place])) first = std::min(first, place);
  }
  if (first == order_.size()) return false;
  prune();
  analyse_written(f_, first, sink);
  return true;
}

bool Flattener::is_list(TypeId t) const {
  return types()[t].kind == TypeKind::list || types()[t].kind == TypeKind::tuple;
}

bool Flattener::rewrite(StatementId id) {
  const Statement s = f_.statements[id];
  const bool plain = s.kind == Statement::assign && s.targets.size() == 1 &&
                     s.targets[0].kind == hir::Target::variable && s.value == innermost(f_, s.value);
  if (!plain) {
    for (const hir::Target& t : s.targets)
      if (t.kind == hir::Target::variable) forget(t.variable_id());
    return false;
  }
  const VariableId target = s.targets[0].variable_id();
  const Expression e = f_.expressions[s.value];
  bool done = false;
  if (e.kind == Expression::operand) {
    const auto known =
        e.operands[0].kind == Operand::variable ? known_.find(e.operands[0].variable_id()) : known_.end();
    std::optional<Cellwise> same;
    if (known != known_.end()) same = known->second;
    forget(target);
    if (same) known_[target] = *same;
    return false;
  }
  if (e.callee.kind == FunctionRef::builtin && wanted(id, e)) {
    made_.clear();
    span_ = s.span;
    const Caches before = caches_;
    auto value = made_by(e, f_.variables[target].type, shapes_.statements[id]);
    std::optional<Expression> instead;
    if (value.ok() && total_ + made_.size() <= most_made) {
      instead = expression_of(*value, e);
      if (instead || value->kind == Cellwise::lists || value->kind == Cellwise::dict) {
        insert(f_, id, false, made_);
        total_ += made_.size();
        for (StatementId m : made_) ours_.insert(m);
        ours_.insert(id);
        if (instead) f_.expressions[s.value] = *instead;
        if (instead && instead->callee.builtin_id == Builtin::gpu_cells && writers_of(target) == 1)
          caches_.list_of[{instead->operands[0].variable_id(), instead->operands[1].variable_id()}] = target;
        forget(target);
        // What else it may be is told by the statement, or may change.
        if (value->kind == Cellwise::lists || value->kind == Cellwise::dict) known_[target] = *value;
        done = true;
      }
    }
    if (!done) caches_ = before;
  }
  if (!done) forget(target);
  if (!done && e.callee.kind == FunctionRef::builtin) recall(target, e);
  return done;
}

void Flattener::forget(VariableId v) {
  known_.erase(v);
  caches_.of_list.erase(v);
}

// What an earlier round made: its elements and lengths.
void Flattener::recall(VariableId target, const Expression& e) {
  const auto once = [&](const Operand& o) { return o.kind == Operand::variable && writers_of(o.variable_id()) == 1; };
  if (writers_of(target) != 1 || !std::all_of(e.operands.begin(), e.operands.end(), once)) return;
  const auto cells_of = [&](const Operand& o) -> const Cellwise* {
    const auto known = known_.find(o.variable_id());
    return known != known_.end() && known->second.kind == Cellwise::lists ? &known->second.parts[0] : nullptr;
  };
  Cellwise inner;
  switch (e.callee.builtin_id) {
    case Builtin::gpu_cells:
    case Builtin::tolist: {
      const VariableId values = e.operands[0].variable_id();
      const bool has_lengths = e.callee.builtin_id == Builtin::gpu_cells;
      const VariableId lengths = has_lengths ? e.operands[1].variable_id() : no_variable;
      if (const TypeId of = f_.variables[values].type; types().is_basic(of)) {
        inner = cells(values, lengths, of);
        if (has_lengths) caches_.list_of[{values, lengths}] = target;
        break;
      }
      const Cellwise* in = cells_of(e.operands[0]);
      if (!in) return;
      inner = list_of(*in);
      inner.lengths = lengths;
      break;
    }
    case Builtin::gpu_pick:
      inner = {.kind = Cellwise::mixed, .values = e.operands[0].variable_id()};
      for (size_t k = 1; k < e.operands.size(); ++k) {
        const Cellwise* in = cells_of(e.operands[k]);
        if (!in) return;
        inner.parts.push_back(*in);
      }
      break;
    default: return;
  }
  known_[target] = list_of(std::move(inner));
}

// Is it a call on lists that has neither kernel nor operator, nor costs nothing?
bool Flattener::wanted(StatementId id, const Expression& e) {
  const Builtin b = e.callee.builtin_id;
  if (hir::is_each(b)) {
    const std::optional<Builtin> applied = applied_builtin(program_, e);
    if (!applies_to_list(e)) return true;
    if (applied == Builtin::unique && !has_known_count(id, 1)) return false;
    Node node;
    node.statement = id;
    if (place_statement(program_, f_, shapes_.statements[id], table_, options_, node).empty()) return false;
    // Sums that an operator makes.
    if (applied && hir::row(*applied).has(hir::traits::reduction) && b == Builtin::each)
      return has_scalar_cells(table_, shapes_.statements[id].operands[1].shape) || has_known_count(id, 1) ||
             reads_known(e);
    return true;
  }
  const auto list = [&](size_t k) {
    return k < e.operands.size() && e.operands[k].kind == Operand::variable &&
           is_list(f_.variables[e.operands[k].variable_id()].type);
  };
  switch (b) {
    case Builtin::append: return list(0) || list(1);
    case Builtin::index: return list(0) && !has_known_count(id, 0);
    case Builtin::raze: return !list(0) || reads_known(e) || has_known_count(id, 0);
    case Builtin::flip: return list(0);
    case Builtin::replicate: return true;
    case Builtin::len: {  // of a list that need not be made
      const auto known = list(0) ? known_.find(e.operands[0].variable_id()) : known_.end();
      return known != known_.end() && known->second.kind == Cellwise::lists &&
             known->second.parts[0].kind != Cellwise::cells;
    }
    default: return false;
  }
}

// Does the form split any operand?
bool Flattener::applies_to_list(const Expression& e) const {
  const unsigned split = split_operands(e.callee.builtin_id);
  for (size_t k = 1; k < e.operands.size(); ++k)
    if ((split >> k & 1) && e.operands[k].kind == Operand::variable &&
        is_list(f_.variables[e.operands[k].variable_id()].type))
      return true;
  return false;
}

unsigned Flattener::split_operands(Builtin form) {
  return form == Builtin::each_item ? 0b110 : form == Builtin::each_right ? 0b100 : 0b010;
}

// A list of as many cells as the program says: its parts are vectors of their own.
bool Flattener::has_known_count(StatementId id, size_t k) const {
  return known_count(shapes_.statements[id].operands[k].shape) >= 0;
}

int64_t Flattener::known_count(ShapeId id) const {
  if (is_none(id) || table_[id].kind != Shape::list || is_none(table_[id].size)) return -1;
  const Size& size = table_[table_[id].size];
  return size.kind == Size::constant ? size.value : -1;
}

bool Flattener::reads_known(const Expression& e) const {
  return std::any_of(e.operands.begin(), e.operands.end(),
                     [&](const Operand& o) { return o.kind == Operand::variable && known_.contains(o.variable_id()); });
}

// The statement that gives the variable its only value.
const Expression* Flattener::only_value(const Operand& o) const {
  if (o.kind != Operand::variable || writers_of(o.variable_id()) != 1) return nullptr;
  for (StatementId id : order_) {
    const Statement& s = f_.statements[id];
    if (s.kind == Statement::assign && s.targets.size() == 1 && s.targets[0].kind == hir::Target::variable &&
        s.targets[0].id == o.id && s.value == innermost(f_, s.value))
      return &f_.expressions[s.value];
  }
  return nullptr;
}

// A list of cells that stand in the program and are not assigned again.
bool Flattener::is_columns(const Operand& o) const {
  const Expression* e = only_value(o);
  return e && e->kind == Expression::call && e->callee.kind == FunctionRef::builtin &&
         e->callee.builtin_id == Builtin::list && !e->operands.empty() &&
         std::all_of(e->operands.begin(), e->operands.end(), [&](const Operand& cell) {
           return cell.kind == Operand::literal ||
                  (cell.kind == Operand::variable && writers_of(cell.variable_id()) == 1);
         });
}

Result<Cellwise> Flattener::made_by(const Expression& e, TypeId type, const StatementFacts& facts) {
  std::vector<Cellwise> args;
  for (size_t k = 0; k < e.operands.size(); ++k) {
    if (is_function(e.operands[k])) {
      args.push_back(whole(e.operands[k], types().function()));
      continue;
    }
    ASSIGN_OR_RETURN(args.emplace_back(), value_of(e.operands[k], facts.operands[k].shape));
  }
  return call(e, type, std::move(args), nullptr);
}

bool Flattener::is_function(const Operand& o) const {
  return o.kind == Operand::literal &&
         std::holds_alternative<std::vector<FunctionRef>>(program_.literals[o.literal_id()].values);
}

Result<Cellwise> Flattener::value_of(const Operand& o, ShapeId shape) {
  if (o.kind == Operand::literal) return whole(o, program_.literals[o.literal_id()].type);
  if (o.kind != Operand::variable) return refuse("a global");
  const VariableId v = o.variable_id();
  const TypeId type = f_.variables[v].type;
  if (const auto known = known_.find(v); known != known_.end()) return known->second;
  if (is_columns(o)) {
    Cellwise out{.kind = Cellwise::columns};
    const auto cells = only_value(o)->operands;
    for (const Operand& cell : cells) {
      const bool is_literal = cell.kind == Operand::literal;
      out.parts.push_back(
          whole(cell, is_literal ? program_.literals[cell.literal_id()].type : f_.variables[cell.variable_id()].type));
    }
    return out;
  }
  if (const int64_t count = is_list(type) ? known_count(shape) : -1; count > 0 && count <= most_list_columns) {
    Cellwise out{.kind = Cellwise::columns};
    const bool alike = types()[type].kind == TypeKind::list;
    for (int64_t k = 0; k < count; ++k) {
      const TypeId cell = types()[type].components[alike ? 0 : static_cast<size_t>(k)];
      out.parts.push_back(whole_variable(emit(Builtin::index, cell, {o, integer(k)}), false));
    }
    return out;
  }
  if (!is_list(type)) {
    Cellwise out = whole(o, type);
    out.single = !is_none(shape) && is_scalar(table_, shape);
    return out;
  }
  return elements_of(v, type, shape);
}

// The elements and lengths of a list that some kernel or operator makes.
Result<Cellwise> Flattener::elements_of(VariableId v, TypeId type, ShapeId shape) {
  if (is_none(shape) || table_[shape].kind != Shape::list) return refuse("an unknown shape");
  if (types()[type].kind != TypeKind::list || !types().is_basic(types()[type].components[0]))
    return refuse("its cells are no vectors of one type");
  if (const auto found = caches_.of_list.find(v); found != caches_.of_list.end()) return found->second;
  Cellwise inner{.kind = Cellwise::cells, .type = types()[type].components[0]};
  inner.values = emit(Builtin::raze, inner.type, {var(v)});
  if (!has_scalar_cells(table_, shape)) {
    VariableId& same = slot(caches_.lengths_of, shape);
    if (is_none(shape) || is_none(same)) {
      const VariableId counted =
          emit(Builtin::each, list_type(basic(BasicType::i64)), {function(Builtin::len), var(v)});
      same = emit(Builtin::raze, basic(BasicType::i64), {var(counted)});
    }
    inner.lengths = same;
    if (writers_of(v) == 1) caches_.list_of[{inner.values, inner.lengths}] = v;
  }
  Cellwise out = list_of(std::move(inner));
  out.count = table_[shape].size;
  caches_.of_list.emplace(v, out);
  return out;
}

// What the statement of main calls to have that value; nothing: it cannot be put together.
std::optional<Expression> Flattener::expression_of(const Cellwise& v, const Expression& original) {
  Expression e = original;
  if (v.kind == Cellwise::whole) {
    e.kind = Expression::operand;
    e.callee = {};
    e.operands = {v.operand};
    return e;
  }
  if (v.kind == Cellwise::columns) {
    Operands cells;
    for (const Cellwise& part : v.parts) {
      if (part.kind != Cellwise::whole) return {};
      cells.push_back(part.operand);
    }
    becomes(e, Builtin::list, std::move(cells));
    return e;
  }
  if (v.kind != Cellwise::lists) return {};
  auto made = list_call(v.parts[0]);
  if (!made.ok()) return {};
  becomes(e, made->builtin, std::move(made->operands));
  return e;
}

// Takes out what was made and is read by nobody; what can fail stays.
void Flattener::prune() {
  std::vector<uint32_t> reads(f_.variables.size());
  const auto note = [&](const Operand& o, int by) {
    if (o.kind == Operand::variable) reads[o.id] += static_cast<uint32_t>(by);
  };
  std::vector<StatementId> all;
  (void)flatten(f_, f_.body, all);
  const auto each_operand = [&](StatementId id, int by) {
    const Statement& s = f_.statements[id];
    if (!is_none(s.value))
      for (const Operand& o : f_.expressions[innermost(f_, s.value)].operands) note(o, by);
    for (const Operand& o : s.results) note(o, by);
  };
  for (StatementId id : all) each_operand(id, 1);
  std::set<StatementId> gone;
  for (size_t k = all.size(); k-- > 0;) {
    const Statement& s = f_.statements[all[k]];
    if (!ours_.contains(all[k]) || s.targets.size() != 1 || reads[s.targets[0].id] > 0) continue;
    if (writers_of(s.targets[0].variable_id()) != 1) continue;
    const Expression& e = f_.expressions[innermost(f_, s.value)];
    const bool result_basic = !e.types.empty() && types().is_basic(e.types[0]);
    const bool fails = e.kind == Expression::call && e.callee.kind == FunctionRef::builtin &&
                       e.callee.builtin_id != Builtin::index && !hir::is_each(e.callee.builtin_id) && result_basic &&
                       hir::can_fail(e.callee.builtin_id, types().basic_of(e.types[0]));
    if (fails || checked_.contains(all[k])) continue;
    gone.insert(all[k]);
    each_operand(all[k], -1);
  }
  for (hir::Block& block : f_.blocks)
    std::erase_if(block.statements, [&](StatementId id) { return gone.contains(id); });
}

}  // namespace rndn::outliner::flattening

namespace rndn::outliner {

bool flatten_lists(hir::Program& program, const hir::Function& main, ShapeTable& table, DiagnosticSink& sink,
                   const Options& options, Shapes& shapes, hir::Function& own) {
  const hir::TypeTable& types = *program.types;
  const bool any = std::any_of(main.variables.begin(), main.variables.end(), [&](const hir::Variable& v) {
    return types[v.type].kind == hir::TypeKind::list || types[v.type].kind == hir::TypeKind::tuple;
  });
  if (!any) return false;
  bool done = false;
  hir::Function work = main;
  for (size_t round = 0; round < flattening::most_rounds; ++round) {
    if (!flattening::Flattener(program, shapes, table, options, work).run(sink)) break;
    done = true;
  }
  if (done) own = std::move(work);
  return done;
}

}  // namespace rndn::outliner
