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
// cells may share; per cell a list of these; per cell a dict, as two of these; several columns.
// One function per kind of builtin makes such values of such values. Functions of the program
// are followed statement by statement, at any depth: inside, what is outside is found by the
// number of the outer cell. Lists made by `list` are unrolled. Lengths that must agree are
// compared by `require`; where it fails the program as it was says what is wrong
// (runtime/engine.cpp). Calls that have kernels or operators for cells stay as they are, and so
// do calls of which any step is refused.
// Cost: O(statements made), at most `most_made` of them.
// Leaves out: programs with control flow in main, functions with control flow, enums and tables
// in cells, lists of cells of several types, directions of `order` that differ from cell to cell.
#include <algorithm>
#include <map>
#include <set>

#include "libraries/base/errors/result.h"
#include "outliner/editing.h"

namespace rndn::outliner {
namespace {

using hir::BasicType;
using hir::Builtin;
using hir::Expression;
using hir::ExpressionId;
using hir::Function;
using hir::FunctionRef;
using hir::Operand;
using hir::Statement;
using hir::StatementId;
using hir::TypeId;
using hir::TypeKind;
using hir::VariableId;

constexpr size_t most_made = 4000, deepest_list_calls = 20, most_rounds = 4;
constexpr int64_t most_list_columns = 64;
constexpr VariableId no_variable = none<VariableId>();

// A value as every cell sees it.
struct Cellwise {
  enum Kind : uint8_t {
    whole,  // the same for all cells: `operand`
    cells,  // per cell a vector: elements `values`, `lengths`; without lengths each is one element
    lists,  // per cell a list: parts[0] per cell of the list, `lengths` each; in main: one list
    dict,   // per cell a dict: parts are its keys and values
    columns,  // a list that is known cell by cell
  } kind = whole;
  Operand operand{};
  bool single = false;  // whole: surely one element
  TypeId type{};        // whole: of the operand; cells: of the elements
  VariableId values = no_variable, lengths = no_variable;
  VariableId begins =
      no_variable;  // cells: where in `values` each begins; none: one behind the other
  SizeId count = none<SizeId>();  // lists, in main: how many cells, where that is a known size
  std::vector<Cellwise> parts;
};

struct Level {
  VariableId per_cell;  // a vector with an element per cell
};

class Flattener : Editing {
 public:
  Flattener(hir::Program& program, Shapes& shapes, ShapeTable& table, const Options& options,
            Function& own)
      : Editing(program, shapes, table), f_(own), options_(options) {}

  // One round over main. False: nothing was rewritten.
  bool run(DiagnosticSink& sink) {
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

 private:
  static Error refuse(std::string_view why) { return input_error("{}", why); }
  const hir::TypeTable& types() const { return *program_.types; }
  TypeId basic(BasicType t) const { return program_.types->basic(t); }
  bool is_list(TypeId t) const {
    return types()[t].kind == TypeKind::list || types()[t].kind == TypeKind::tuple;
  }

  // --- Statements of main ------------------------------------------------------------------------

  bool rewrite(StatementId id) {
    const Statement s = f_.statements[id];
    const bool plain = s.kind == Statement::assign && s.targets.size() == 1 &&
                       s.targets[0].kind == hir::Target::variable &&
                       s.value == innermost(f_, s.value);
    if (!plain) {
      for (const hir::Target& t : s.targets)
        if (t.kind == hir::Target::variable) forget(t.variable_id());
      return false;
    }
    const VariableId target = s.targets[0].variable_id();
    const Expression e = f_.expressions[s.value];
    bool done = false;
    if (e.kind == Expression::operand) {
      const auto known = e.operands[0].kind == Operand::variable
                             ? known_.find(e.operands[0].variable_id())
                             : known_.end();
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
          if (instead && instead->callee.builtin_id == Builtin::gpu_cells &&
              writers_of(target) == 1)
            caches_
                .list_of[{instead->operands[0].variable_id(), instead->operands[1].variable_id()}] =
                target;
          forget(target);
          // What else it may be is told by the statement, or may change.
          if (value->kind == Cellwise::lists || value->kind == Cellwise::dict)
            known_[target] = *value;
          done = true;
        }
      }
      if (!done) caches_ = before;
    }
    if (!done) forget(target);
    if (!done && e.callee.kind == FunctionRef::builtin) recall(target, e);
    return done;
  }

  void forget(VariableId v) {
    known_.erase(v);
    caches_.of_list.erase(v);
  }

  // What an earlier round made: its elements and lengths.
  void recall(VariableId target, const Expression& e) {
    const auto once = [&](const Operand& o) {
      return o.kind == Operand::variable && writers_of(o.variable_id()) == 1;
    };
    if (writers_of(target) != 1 || !std::all_of(e.operands.begin(), e.operands.end(), once))
      return;
    const bool cells = e.callee.builtin_id == Builtin::gpu_cells;
    if (!cells && e.callee.builtin_id != Builtin::tolist) return;
    const TypeId of = f_.variables[e.operands[0].variable_id()].type;
    if (!types().is_basic(of)) return;
    Cellwise inner{.kind = Cellwise::cells, .type = of, .values = e.operands[0].variable_id()};
    if (cells) inner.lengths = e.operands[1].variable_id();
    if (cells) caches_.list_of[{inner.values, inner.lengths}] = target;
    known_[target] = list_of(std::move(inner));
  }

  // Is it a call on lists that has neither kernel nor operator, nor costs nothing?
  bool wanted(StatementId id, const Expression& e) {
    const Builtin b = e.callee.builtin_id;
    if (hir::is_each(b)) {
      const std::optional<Builtin> applied = applied_builtin(program_, e);
      if (!applies_to_list(e)) return true;
      if (applied == Builtin::unique && !has_known_count(id, 1)) return false;
      Node node;
      node.statement = id;
      if (place_statement(program_, f_, shapes_.statements[id], table_, options_, node).empty())
        return false;
      // Sums that an operator makes.
      if (applied && hir::row(*applied).has(hir::traits::reduction) && b == Builtin::each)
        return has_scalar_cells(table_, shapes_.statements[id].operands[1].shape) ||
               has_known_count(id, 1) || reads_known(e);
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
      default: return false;
    }
  }
  // Does the form split any operand?
  bool applies_to_list(const Expression& e) const {
    const unsigned split = split_operands(e.callee.builtin_id);
    for (size_t k = 1; k < e.operands.size(); ++k)
      if ((split >> k & 1) && e.operands[k].kind == Operand::variable &&
          is_list(f_.variables[e.operands[k].variable_id()].type))
        return true;
    return false;
  }
  static unsigned split_operands(Builtin form) {
    return form == Builtin::each_item ? 0b110 : form == Builtin::each_right ? 0b100 : 0b010;
  }
  // A list of as many cells as the program says: its parts are vectors of their own.
  bool has_known_count(StatementId id, size_t k) const {
    return known_count(shapes_.statements[id].operands[k].shape) >= 0;
  }
  int64_t known_count(ShapeId id) const {
    if (is_none(id) || table_[id].kind != Shape::list || is_none(table_[id].size)) return -1;
    const Size& size = table_[table_[id].size];
    return size.kind == Size::constant ? size.value : -1;
  }
  bool reads_known(const Expression& e) const {
    return std::any_of(e.operands.begin(), e.operands.end(), [&](const Operand& o) {
      return o.kind == Operand::variable && known_.contains(o.variable_id());
    });
  }

  // The statement that gives the variable its only value.
  const Expression* only_value(const Operand& o) const {
    if (o.kind != Operand::variable || writers_of(o.variable_id()) != 1) return nullptr;
    for (StatementId id : order_) {
      const Statement& s = f_.statements[id];
      if (s.kind == Statement::assign && s.targets.size() == 1 &&
          s.targets[0].kind == hir::Target::variable && s.targets[0].id == o.id &&
          s.value == innermost(f_, s.value))
        return &f_.expressions[s.value];
    }
    return nullptr;
  }
  // A list of cells that stand in the program and are not assigned again.
  bool is_columns(const Operand& o) const {
    const Expression* e = only_value(o);
    return e && e->kind == Expression::call && e->callee.kind == FunctionRef::builtin &&
           e->callee.builtin_id == Builtin::list && !e->operands.empty() &&
           std::all_of(e->operands.begin(), e->operands.end(), [&](const Operand& cell) {
             return cell.kind == Operand::literal ||
                    (cell.kind == Operand::variable && writers_of(cell.variable_id()) == 1);
           });
  }

  Result<Cellwise> made_by(const Expression& e, TypeId type, const StatementFacts& facts) {
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
  bool is_function(const Operand& o) const {
    return o.kind == Operand::literal && std::holds_alternative<std::vector<FunctionRef>>(
                                             program_.literals[o.literal_id()].values);
  }

  Result<Cellwise> value_of(const Operand& o, ShapeId shape) {
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
        out.parts.push_back(whole(cell, is_literal ? program_.literals[cell.literal_id()].type
                                                   : f_.variables[cell.variable_id()].type));
      }
      return out;
    }
    if (const int64_t count = is_list(type) ? known_count(shape) : -1;
        count > 0 && count <= most_list_columns) {
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
  Result<Cellwise> elements_of(VariableId v, TypeId type, ShapeId shape) {
    if (is_none(shape) || table_[shape].kind != Shape::list) return refuse("an unknown shape");
    if (types()[type].kind != TypeKind::list || !types().is_basic(types()[type].components[0]))
      return refuse("its cells are no vectors of one type");
    if (const auto found = caches_.of_list.find(v); found != caches_.of_list.end())
      return found->second;
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
  std::optional<Expression> expression_of(const Cellwise& v, const Expression& original) {
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
    const Cellwise& inner = v.parts[0];
    if (inner.kind == Cellwise::cells) {
      const Cellwise flat = contiguous(inner);
      if (is_none(flat.lengths))
        becomes(e, Builtin::tolist, {var(flat.values)});
      else
        becomes(e, Builtin::gpu_cells, {var(flat.values), var(flat.lengths)});
      return e;
    }
    if (inner.kind == Cellwise::lists) {
      const std::optional<VariableId> lists = list_variable(inner.parts[0]);
      if (!lists) return {};
      becomes(e, Builtin::gpu_cells, {var(*lists), var(inner.lengths)});
      return e;
    }
    if (inner.kind == Cellwise::dict) {  // put together where it is printed
      const std::optional<VariableId> keys = list_variable(inner.parts[0]),
                                      values = list_variable(inner.parts[1]);
      if (!keys || !values) return {};
      becomes(e, Builtin::each_item, {function(Builtin::dict), var(*keys), var(*values)});
      return e;
    }
    return {};
  }
  std::optional<VariableId> list_variable(const Cellwise& v) {
    if (v.kind == Cellwise::cells) return list_variable_of(contiguous(v));
    if (v.kind != Cellwise::lists) return {};
    const std::optional<VariableId> inner = list_variable(v.parts[0]);
    if (!inner) return {};
    return emit(Builtin::gpu_cells, list_type(f_.variables[*inner].type),
                {var(*inner), var(v.lengths)});
  }

  // Takes out what was made and is read by nobody; what can fail stays.
  void prune() {
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
                         e.callee.builtin_id != Builtin::index &&
                         !hir::is_each(e.callee.builtin_id) && result_basic &&
                         hir::can_fail(e.callee.builtin_id, types().basic_of(e.types[0]));
      if (fails || checked_.contains(all[k])) continue;
      gone.insert(all[k]);
      each_operand(all[k], -1);
    }
    for (hir::Block& block : f_.blocks)
      std::erase_if(block.statements, [&](StatementId id) { return gone.contains(id); });
  }

  // --- Making statements -------------------------------------------------------------------------

  Operand var(VariableId v) const { return operand(f_, v); }
  TypeId list_type(TypeId cell) { return program_.types->list(cell); }
  VariableId emit(Builtin b, TypeId type, Operands operands) {
    const VariableId v = fresh(f_, "flat", type);
    made_.push_back(add(f_, span_, v, b, std::move(operands)));
    return v;
  }
  VariableId emit(Builtin b, BasicType type, Operands operands) {
    return emit(b, basic(type), std::move(operands));
  }
  VariableId number(Builtin b, Operands operands) {
    return emit(b, BasicType::i64, std::move(operands));
  }
  VariableId mask(Builtin b, Operands operands) {
    return emit(b, BasicType::boolean, std::move(operands));
  }
  VariableId copy(Operand o, TypeId type) {
    const VariableId v = fresh(f_, "flat", type);
    Expression e{.kind = Expression::operand, .span = span_};
    e.operands.push_back(o);
    e.types.push_back(type);
    Statement s{.span = span_};
    assign(f_, s, v, f_.expressions.add(std::move(e)));
    made_.push_back(f_.statements.add(std::move(s)));
    return v;
  }
  Operand zero(TypeId type) {
    const BasicType t = types().basic_of(type);
    hir::Literal l{.type = type, .values = std::vector<int64_t>{0}};
    if (hir::is_text(t)) l.values = std::vector<std::string>{""};
    if (hir::is_float(t)) l.values = std::vector<double>{0};
    if (t == BasicType::complex) l.values = std::vector<std::complex<double>>{0};
    if (hir::is_wide(t)) l.values = std::vector<__int128>{0};
    return literal(std::move(l));
  }
  // x, once it is sure that the mask is 1 everywhere.
  VariableId required(VariableId ok, Operand x, TypeId type) {
    Operand message = literal(
        {.type = basic(BasicType::sym), .values = std::vector<std::string>{"cells do not fit"}});
    return emit(Builtin::require, type, {var(ok), x, message});
  }

  static Cellwise whole(Operand o, TypeId type) {
    Cellwise v{.kind = Cellwise::whole, .operand = o, .type = type};
    return v;
  }
  Cellwise whole_variable(VariableId v, bool single) {
    Cellwise out = whole(var(v), f_.variables[v].type);
    out.single = single;
    return out;
  }
  static Cellwise list_of(Cellwise inner) {
    Cellwise v{.kind = Cellwise::lists};
    v.parts.push_back(std::move(inner));
    return v;
  }
  static Cellwise cells(VariableId values, VariableId lengths, TypeId type) {
    return {.kind = Cellwise::cells, .type = type, .values = values, .lengths = lengths};
  }
  bool is_single(const Cellwise& v) const {
    return v.kind == Cellwise::whole &&
           (v.single || (v.operand.kind == Operand::literal &&
                         program_.literals[v.operand.literal_id()].size() == 1));
  }
  bool is_scalar_cells(const Cellwise& v) const {
    return v.kind == Cellwise::cells && is_none(v.lengths);
  }

  // --- Elements, lengths, places -----------------------------------------------------------------

  VariableId length(VariableId v) { return number(Builtin::len, {var(v)}); }
  VariableId positions(VariableId v) { return number(Builtin::range, {var(length(v))}); }
  template <class Key>
  static VariableId& slot(std::map<Key, VariableId>& map, Key key) {
    return map.try_emplace(key, no_variable).first->second;
  }
  // Where cells of these lengths begin.
  VariableId begins(VariableId lengths) {
    VariableId& known = slot(caches_.begins, lengths);
    if (!is_none(known)) return known;
    return caches_.begins[lengths] = number(Builtin::gpu_cell_begins, {var(lengths)});
  }
  // Per element its cell. like: a vector with as many elements, where there is one.
  VariableId cell_numbers(VariableId lengths, VariableId like = no_variable) {
    VariableId& known = slot(caches_.numbers, lengths);
    if (!is_none(known)) return known;
    Operands operands{var(lengths)};
    if (!is_none(like)) operands.push_back(var(like));
    return caches_.numbers[lengths] = number(Builtin::gpu_cell_numbers, std::move(operands));
  }
  // Per element its place in its cell.
  VariableId places(VariableId lengths, VariableId like = no_variable) {
    VariableId& known = slot(caches_.places, lengths);
    if (!is_none(known)) return known;
    const VariableId c = cell_numbers(lengths, like);
    const VariableId begin = number(Builtin::index, {var(begins(lengths)), var(c)});
    const VariableId made = number(Builtin::minus, {var(positions(c)), var(begin)});
    return caches_.places[lengths] = made;
  }
  VariableId ones(VariableId values) {
    VariableId& known = slot(caches_.ones, values);
    if (!is_none(known)) return known;
    return caches_.ones[values] = number(Builtin::vector, {var(length(values)), integer(1)});
  }
  VariableId element(VariableId values, TypeId type, VariableId at) {
    return emit(Builtin::index, type, {var(values), var(at)});
  }

  Cellwise contiguous(const Cellwise& v) {
    if (is_none(v.begins)) return v;
    if (is_none(v.lengths)) return cells(element(v.values, v.type, v.begins), no_variable, v.type);
    const VariableId c = cell_numbers(v.lengths);
    const VariableId begin = number(Builtin::index, {var(v.begins), var(c)});
    const VariableId at = number(Builtin::plus, {var(begin), var(places(v.lengths))});
    return cells(element(v.values, v.type, at), v.lengths, v.type);
  }
  VariableId lengths_of(const Cellwise& v) {
    return is_none(v.lengths) ? ones(is_none(v.begins) ? v.values : v.begins) : v.lengths;
  }
  VariableId list_variable_of(const Cellwise& flat) {
    const VariableId n = lengths_of(flat);
    VariableId& known = slot(caches_.list_of, std::pair(flat.values, n));
    if (!is_none(known)) return known;
    const VariableId made =
        emit(Builtin::gpu_cells, list_type(flat.type), {var(flat.values), var(n)});
    return caches_.list_of[{flat.values, n}] = made;
  }
  // How many of a mask's elements are 1 in each cell.
  VariableId count(VariableId ones_of, VariableId lengths) {
    const VariableId counts = number(Builtin::select, {var(ones_of), integer(1), integer(0)});
    return sum_of_cells(counts, lengths);
  }
  VariableId sum_of_cells(VariableId numbers, VariableId lengths) {
    return reduced(Builtin::sum, basic(BasicType::i64),
                   cells(numbers, lengths, basic(BasicType::i64)))
        .values;
  }
  Cellwise reduced(Builtin b, TypeId type, const Cellwise& v) {
    const VariableId list = list_variable_of(contiguous(v));
    const VariableId each = emit(Builtin::each, list_type(type), {function(b), var(list)});
    return cells(emit(Builtin::raze, type, {var(each)}), no_variable, type);
  }

  // A value as a run of `values` per cell.
  struct Run {
    VariableId values;
    Operand begin, length;
    bool begins_vary, lengths_vary;  // one per cell, not one for all
  };
  Run run_of(const Cellwise& v) {
    if (v.kind == Cellwise::whole) {
      const bool stays =
          v.operand.kind == Operand::variable && writers_of(v.operand.variable_id()) == 1;
      const VariableId values = stays ? v.operand.variable_id() : copy(v.operand, v.type);
      const Operand n = is_single(v) ? integer(1) : var(length(values));
      return {values, integer(0), n, false, false};
    }
    const VariableId begin = !is_none(v.begins)   ? v.begins
                             : is_none(v.lengths) ? positions(v.values)
                                                  : begins(v.lengths);
    return {v.values, var(begin), is_none(v.lengths) ? integer(1) : var(v.lengths), true,
            !is_none(v.lengths)};
  }
  Operand at_cell(Operand per_cell, bool varies, VariableId c) {
    return varies ? var(number(Builtin::index, {per_cell, var(c)})) : per_cell;
  }

  VariableId per_cell(const Cellwise& v) const {
    switch (v.kind) {
      case Cellwise::cells:
        return !is_none(v.lengths) ? v.lengths : !is_none(v.begins) ? v.begins : v.values;
      case Cellwise::lists: return v.lengths;
      case Cellwise::dict:
      case Cellwise::columns: return per_cell(v.parts[0]);
      case Cellwise::whole: break;
    }
    return no_variable;
  }
  // A number for all cells as one per cell.
  VariableId for_all(Operand n, const Level& level) {
    return number(Builtin::vector, {var(length(level.per_cell)), n});
  }

  // --- Calls -------------------------------------------------------------------------------------

  Result<Cellwise> call(const Expression& e, TypeId type, std::vector<Cellwise> args,
                        const Level* level) {
    if (e.callee.kind == FunctionRef::user) return follow(e.callee.function, args, level);
    if (e.callee.kind != FunctionRef::builtin) return refuse("not resolved");
    if (hir::is_each(e.callee.builtin_id))
      return each_form(e.callee.builtin_id, type, std::move(args), level);
    return builtin(e.callee.builtin_id, type, std::move(args), level);
  }
  Result<Cellwise> apply(const FunctionRef& f, TypeId type, std::vector<Cellwise> args,
                         const Level* level) {
    if (f.kind == FunctionRef::user) return follow(f.function, args, level);
    if (hir::is_each(f.builtin_id)) return refuse("an each form of an each form");
    return builtin(f.builtin_id, type, std::move(args), level);
  }

  // f on the cells of the arguments that the form splits.
  Result<Cellwise> each_form(Builtin form, TypeId type, std::vector<Cellwise> args,
                             const Level* level) {
    if (!is_function(args[0].operand)) return refuse("its function is only known at run time");
    const auto functions =
        std::get<std::vector<FunctionRef>>(program_.literals[args[0].operand.literal_id()].values);
    if (functions.size() != 1) return refuse("several functions");
    const auto is_whole = [](const Cellwise& v) { return v.kind == Cellwise::whole; };
    if (std::any_of(args.begin(), args.end(),
                    [&](const Cellwise& v) { return is_whole(v) && is_list(v.type); })) {
      if (level || !std::all_of(args.begin(), args.end(), is_whole))
        return refuse("a list as a whole");
      Operands operands;
      for (const Cellwise& v : args) operands.push_back(v.operand);
      return whole_variable(emit(form, type, std::move(operands)), false);
    }
    const unsigned split = split_operands(form);
    const Cellwise* list = nullptr;
    size_t columns = 0;
    for (size_t k = 1; k < args.size(); ++k) {
      if (!(split >> k & 1)) continue;
      if (args[k].kind == Cellwise::columns) columns = std::max(columns, args[k].parts.size());
      if (args[k].kind == Cellwise::lists) list = &args[k];
    }
    const auto of_list = [&](size_t cell) -> TypeId {
      const hir::Type& t = types()[type];
      return t.components[t.kind == TypeKind::tuple ? cell : 0];
    };
    if (columns > 0 && !list) {
      Cellwise out{.kind = Cellwise::columns};
      for (size_t c = 0; c < columns; ++c) {
        std::vector<Cellwise> of_cell;
        for (size_t k = 1; k < args.size(); ++k) {
          const bool cellwise = (split >> k & 1) && args[k].kind == Cellwise::columns;
          if (cellwise && args[k].parts.size() != columns && args[k].parts.size() != 1)
            return refuse("lists of other lengths");
          of_cell.push_back(cellwise ? args[k].parts[args[k].parts.size() == 1 ? 0 : c] : args[k]);
        }
        ASSIGN_OR_RETURN(out.parts.emplace_back(),
                         apply(functions[0], of_list(c), std::move(of_cell), level));
      }
      return out;
    }
    if (!list) {
      args.erase(args.begin());
      return apply(functions[0], type, std::move(args), level);
    }
    if (columns > 0) return refuse("a list of unknown and one of known cells");
    if (!is_list(type)) return refuse("its result is no list");
    const VariableId counts = list->lengths;
    const Level inner{per_cell(list->parts[0])};
    std::vector<Cellwise> of_cells;
    for (size_t k = 1; k < args.size(); ++k) {
      if ((split >> k & 1) && args[k].kind == Cellwise::lists) {
        if (args[k].lengths != counts) return refuse("lists of other lengths");
        if (&args[k] != list && !level) check_counts(*list, args[k]);
        of_cells.push_back(args[k].parts[0]);
      } else if (level) {
        ASSIGN_OR_RETURN(of_cells.emplace_back(), seen_from(args[k], counts, inner));
      } else if (args[k].kind == Cellwise::lists && args[k].parts[0].kind == Cellwise::cells) {
        of_cells.push_back(for_each_cell(args[k].parts[0], inner));
      } else if (args[k].kind == Cellwise::whole) {
        of_cells.push_back(args[k]);
      } else {
        return refuse("a list of lists as a whole");
      }
    }
    ASSIGN_OR_RETURN(Cellwise made, apply(functions[0], of_list(0), std::move(of_cells), &inner));
    if (made.kind == Cellwise::whole) {
      ASSIGN_OR_RETURN(made, repeated(made, inner));
    }
    Cellwise out = list_of(std::move(made));
    out.lengths = counts;
    out.count = list->count;
    return out;
  }

  // Two lists of main must have as many cells.
  void check_counts(const Cellwise& x, const Cellwise& y) {
    if (!is_none(x.count) && x.count == y.count) return;
    const VariableId a = per_cell(x.parts[0]), b = per_cell(y.parts[0]);
    if (a == b) return;
    const VariableId n = length(a), ok = mask(Builtin::eq, {var(n), var(length(b))});
    required(ok, var(n), basic(BasicType::i64));
  }
  // A value of the cells outside, as the cells inside see it.
  Result<Cellwise> seen_from(const Cellwise& v, VariableId counts, const Level& inner) {
    if (v.kind == Cellwise::whole) return v;
    if (v.kind != Cellwise::cells) return refuse("a list of lists outside");
    const VariableId outer = cell_numbers(counts, inner.per_cell);
    if (is_none(v.lengths)) {
      const Cellwise flat = contiguous(v);
      return cells(element(flat.values, flat.type, outer), no_variable, flat.type);
    }
    Cellwise out = v;
    out.begins =
        number(Builtin::index, {var(is_none(v.begins) ? begins(v.lengths) : v.begins), var(outer)});
    out.lengths = number(Builtin::index, {var(v.lengths), var(outer)});
    return out;
  }
  // A list of main as every cell sees it: all its cells each time.
  Cellwise for_each_cell(const Cellwise& v, const Level& level) {
    const VariableId n = for_all(var(length(per_cell(v))), level);
    Cellwise out = list_of(view(v, places(n)));
    out.lengths = n;
    return out;
  }
  // The same for all cells as a vector per cell.
  Result<Cellwise> repeated(const Cellwise& v, const Level& level) {
    if (!types().is_basic(v.type)) return refuse("cells that are no vectors");
    if (is_single(v))
      return cells(emit(Builtin::vector, v.type, {var(length(level.per_cell)), v.operand}),
                   no_variable, v.type);
    const Run run = run_of(v);
    const VariableId n = for_all(run.length, level);
    return cells(element(run.values, v.type, places(n)), n, v.type);
  }

  // A function of the program, statement by statement.
  Result<Cellwise> follow(hir::FunctionId id, const std::vector<Cellwise>& args,
                          const Level* level) {
    const Function& g = program_.functions[id];
    std::vector<StatementId> order;
    if (calls_ >= deepest_list_calls || g.parameters.size() != args.size() || is_none(g.body) ||
        g.result_types.size() != 1 || !flatten(g, g.body, order))
      return refuse("a function with control flow");
    ++calls_;
    auto made = statements_of(g, order, args, level);
    --calls_;
    return made;
  }
  Result<Cellwise> statements_of(const Function& g, const std::vector<StatementId>& order,
                                 const std::vector<Cellwise>& args, const Level* level) {
    std::map<uint32_t, Cellwise> env;
    for (size_t k = 0; k < args.size(); ++k) {
      const Cellwise& v = args[k];
      const TypeId type = g.variables[g.parameters[k]].type;
      if ((v.kind == Cellwise::whole || v.kind == Cellwise::cells) && v.type != type)
        return refuse("a parameter of another type");
      env[index(g.parameters[k])] = v;
    }
    const auto read = [&](const Operand& o) -> Result<Cellwise> {
      if (o.kind == Operand::literal) return whole(o, program_.literals[o.literal_id()].type);
      if (o.kind != Operand::variable || !env.contains(o.id))
        return refuse("a global, or a variable without a value");
      return env.at(o.id);
    };
    for (StatementId at : order) {
      const Statement s = g.statements[at];
      if (s.kind == Statement::return_) {
        if (at != order.back() || s.results.size() != 1)
          return refuse("a function that returns early");
        return read(s.results[0]);
      }
      if (s.kind != Statement::assign || s.targets.size() != 1 ||
          s.targets[0].kind != hir::Target::variable)
        return refuse("a statement with effects");
      const Expression e = g.expressions[innermost(g, s.value)];
      const bool casts = s.value != innermost(g, s.value);
      const TypeId declared = g.variables[s.targets[0].variable_id()].type;
      Cellwise made;
      std::vector<Cellwise> operands;
      for (const Operand& o : e.operands) {
        ASSIGN_OR_RETURN(operands.emplace_back(), read(o));
      }
      if (e.kind == Expression::operand) {
        made = operands[0];
      } else {
        const TypeId type = casts && !e.types.empty() ? e.types[0] : declared;
        ASSIGN_OR_RETURN(made, call(e, type, std::move(operands), level));
      }
      if (casts) {
        for (ExpressionId c = s.value; c != innermost(g, s.value); c = g.expressions[c].inner)
          if (g.expressions[c].cast_type != declared) return refuse("a cast of a cast");
        ASSIGN_OR_RETURN(made, cast(made, declared));
      }
      if ((made.kind == Cellwise::whole || made.kind == Cellwise::cells) && made.type != declared)
        return refuse("a conversion");
      env[s.targets[0].id] = std::move(made);
    }
    return refuse("a function without a result");
  }

  Result<Cellwise> cast(const Cellwise& v, TypeId to) {
    if ((v.kind != Cellwise::whole && v.kind != Cellwise::cells) || !types().is_basic(v.type) ||
        !types().is_basic(to))
      return refuse("a cast of cells that are no vectors");
    const BasicType a = types().basic_of(v.type), b = types().basic_of(to);
    if (a == b) return v;
    if (!(hir::is_text(a) && hir::is_text(b)) &&
        !(hir::is_ordered_number(a) && hir::is_ordered_number(b)))
      return refuse("a cast that is checked at run time");
    const auto converted = [&](Operand o) {
      Expression inner{.kind = Expression::operand, .span = span_};
      inner.operands.push_back(o);
      inner.types.push_back(v.type);
      Expression e{.kind = Expression::cast, .span = span_};
      e.inner = f_.expressions.add(std::move(inner));
      e.cast_type = to;
      e.types.push_back(to);
      const VariableId made = fresh(f_, "flat", to);
      Statement s{.span = span_};
      assign(f_, s, made, f_.expressions.add(std::move(e)));
      made_.push_back(f_.statements.add(std::move(s)));
      return made;
    };
    if (v.kind == Cellwise::whole) return whole_variable(converted(v.operand), is_single(v));
    Cellwise out = contiguous(v);
    out.values = converted(var(out.values));
    out.type = to;
    return out;
  }

  // --- Builtins ----------------------------------------------------------------------------------

  Result<Cellwise> builtin(Builtin b, TypeId type, std::vector<Cellwise> args, const Level* level) {
    const hir::BuiltinRow& row = hir::row(b);
    if (row.has(hir::traits::ordered) || row.device == hir::Device::cpu) {
      if (b != Builtin::list && b != Builtin::flip && b != Builtin::replicate &&
          b != Builtin::keys && b != Builtin::values)
        return refuse("it runs on the host");
    }
    if (b == Builtin::list) {
      if (args.empty()) return refuse("a list without cells");
      Cellwise out{.kind = Cellwise::columns};
      out.parts = std::move(args);
      return out;
    }
    if (b == Builtin::raze && args[0].kind == Cellwise::whole && types().is_basic(args[0].type))
      return args[0];
    if (b == Builtin::flip && args[0].kind == Cellwise::columns) {
      std::reverse(args[0].parts.begin(), args[0].parts.end());
      return args[0];
    }
    if (b == Builtin::append && args[0].kind == Cellwise::columns) return of_lists(b, type, args);
    if (b == Builtin::raze && args[0].kind == Cellwise::columns)
      return raze_columns(type, args[0], level);
    if (b == Builtin::index && args[0].kind == Cellwise::columns &&
        args[1].kind == Cellwise::whole) {
      const std::optional<int64_t> k = literal_integer(args[1].operand);
      if (!k || *k < 0 || *k >= static_cast<int64_t>(args[0].parts.size()))
        return refuse("a cell that is only known at run time");
      return args[0].parts[static_cast<size_t>(*k)];
    }
    const auto in_main = [](const Cellwise& v) {
      return v.kind == Cellwise::whole ||
             (v.kind == Cellwise::columns &&
              std::all_of(v.parts.begin(), v.parts.end(),
                          [](const Cellwise& p) { return p.kind == Cellwise::whole; }));
    };
    if (std::all_of(args.begin(), args.end(), in_main) && (b != Builtin::replicate || !level)) {
      if (b == Builtin::replicate) return replicate(type, args);
      if (level && types().is_basic(type) && hir::can_fail(b, types().basic_of(type)))
        return refuse("it may fail");
      Operands operands;
      for (const Cellwise& v : args) {
        if (v.kind == Cellwise::whole) {
          operands.push_back(v.operand);
          continue;
        }
        Operands columns;
        std::vector<TypeId> column_types;
        for (const Cellwise& p : v.parts)
          columns.push_back(p.operand), column_types.push_back(p.type);
        operands.push_back(
            var(emit(Builtin::list, program_.types->tuple(column_types), std::move(columns))));
      }
      // Literals have code as scalars only.
      if (b == Builtin::index || row.has(hir::traits::reduction) || b == Builtin::reverse)
        if (operands[0].kind == Operand::literal)
          operands[0] = var(copy(operands[0], args[0].type));
      const bool single =
          row.has(hir::traits::reduction) ||
          (is_elementwise(b) &&
           std::all_of(args.begin(), args.end(), [&](const Cellwise& v) { return is_single(v); }));
      return whole_variable(emit(b, type, std::move(operands)), single);
    }
    if (!level) return of_lists(b, type, args);
    if (is_elementwise(b)) return elementwise(b, type, args, *level);
    if (b == Builtin::len && (args[0].kind == Cellwise::cells || args[0].kind == Cellwise::lists)) {
      if (args[0].kind == Cellwise::lists) return cells(args[0].lengths, no_variable, type);
      return cells(lengths_of(args[0]), no_variable, type);
    }
    if (row.has(hir::traits::reduction)) {
      if (args[0].kind != Cellwise::cells) return refuse("a reduction of no vector");
      return reduced(b, type, args[0]);
    }
    switch (b) {
      case Builtin::index: return index_of_cells(type, args[0], args[1], *level);
      case Builtin::compress: return compress(type, args);
      case Builtin::where: return where(args[0]);
      case Builtin::reverse: return reverse(args[0]);
      case Builtin::take:
      case Builtin::drop: return part(b, type, args[0], args[1], *level);
      case Builtin::append: return append(type, args[0], args[1], *level);
      case Builtin::unique: return unique(args[0]);
      case Builtin::order: return order(args[0], args[1]);
      case Builtin::group: return group(args[0]);
      case Builtin::keys:
      case Builtin::values:
        if (args[0].kind != Cellwise::dict) return refuse("no dict");
        return args[0].parts[b == Builtin::keys ? 0 : 1];
      case Builtin::member:
      case Builtin::index_of: return search(b, args[0], args[1], *level);
      case Builtin::range: return range(args[0]);
      case Builtin::vector: return vector(type, args[0], args[1]);
      case Builtin::raze: return raze(args[0]);
      case Builtin::tolist: return tolist(args[0]);
      case Builtin::scan_sum:
      case Builtin::scan_min:
      case Builtin::scan_max: return scan(b, type, args);
      case Builtin::index_a: return index_a(type, args, *level);
      default: return refuse("it has no form for cells");
    }
  }

  std::optional<int64_t> literal_integer(const Operand& o) const {
    if (o.kind != Operand::literal) return {};
    const auto* n = std::get_if<std::vector<int64_t>>(&program_.literals[o.literal_id()].values);
    return n && n->size() == 1 ? std::optional(n->front()) : std::nullopt;
  }

  // A vector per cell, or one for all.
  Result<void> check_vectors(std::span<const Cellwise> args) const {
    for (const Cellwise& v : args) {
      if ((v.kind != Cellwise::whole && v.kind != Cellwise::cells) || !types().is_basic(v.type))
        return refuse("cells that are no vectors");
    }
    return {};
  }

  Result<Cellwise> elementwise(Builtin b, TypeId type, std::vector<Cellwise> args,
                               const Level& level) {
    RETURN_IF_ERROR(check_vectors(args));
    bool alike = true;  // one element per cell, or cells of the same lengths, one behind the other
    VariableId lengths = no_variable, like = no_variable;
    for (Cellwise& v : args) {
      if (is_scalar_cells(v)) v = contiguous(v);
      if (v.kind == Cellwise::whole) {
        alike &= is_single(v);
      } else if (!is_none(v.lengths)) {
        if (!is_none(lengths) && v.lengths != lengths) alike = false;
        lengths = v.lengths;
        if (is_none(v.begins)) like = v.values;
      }
    }
    Operands operands;
    if (alike && is_none(lengths)) {
      for (const Cellwise& v : args)
        operands.push_back(v.kind == Cellwise::whole ? v.operand : var(v.values));
      return cells(emit(b, type, std::move(operands)), no_variable, type);
    }
    std::vector<Run> runs;
    for (const Cellwise& v : args) runs.push_back(run_of_operand(v));
    if (!alike) {
      Operand n = integer(1);
      bool varies = false, set = false;
      for (size_t k = 0; k < args.size(); ++k) {
        if (is_single(args[k]) || is_scalar_cells(args[k])) continue;
        if (!set) {
          n = runs[k].length, varies = runs[k].lengths_vary, set = true;
          continue;
        }
        if (n.kind == Operand::variable && runs[k].length.kind == Operand::variable &&
            n.id == runs[k].length.id)
          continue;
        const VariableId same = mask(Builtin::eq, {n, runs[k].length}),
                         one = mask(Builtin::eq, {n, integer(1)});
        const VariableId other_one = mask(Builtin::eq, {runs[k].length, integer(1)});
        const VariableId either = mask(Builtin::or_, {var(same), var(one)}),
                         ok = mask(Builtin::or_, {var(either), var(other_one)});
        const VariableId longer = number(Builtin::select, {var(one), runs[k].length, n});
        n = var(required(ok, var(longer), basic(BasicType::i64)));
        varies |= runs[k].lengths_vary;
      }
      lengths = varies ? n.variable_id() : for_all(n, level);
      like = no_variable;
    }
    const VariableId c = cell_numbers(lengths, like);
    for (size_t k = 0; k < args.size(); ++k) {
      const Cellwise& v = args[k];
      if (is_single(v)) {
        operands.push_back(v.operand);
      } else if (is_scalar_cells(v)) {
        operands.push_back(var(element(v.values, v.type, c)));
      } else if (v.kind == Cellwise::cells && v.lengths == lengths && is_none(v.begins)) {
        operands.push_back(var(v.values));
      } else {
        const Run& run = runs[k];
        const VariableId p = places(lengths, like);
        Operand place = var(p);
        if (v.lengths != lengths) {  // one element stands for as many as there are
          const VariableId one =
              mask(Builtin::eq, {at_cell(run.length, run.lengths_vary, c), integer(1)});
          place = var(number(Builtin::select, {var(one), integer(0), var(p)}));
        }
        const VariableId at =
            number(Builtin::plus, {at_cell(run.begin, run.begins_vary, c), place});
        operands.push_back(var(element(run.values, v.type, at)));
      }
    }
    return cells(emit(b, type, std::move(operands)), lengths, type);
  }
  // Of what `elementwise` reads by places; nothing is made for others.
  Run run_of_operand(const Cellwise& v) {
    if (is_single(v) || is_scalar_cells(v))
      return {no_variable, integer(0), integer(1), false, false};
    return run_of(v);
  }

  // Vectors that must be equally long in every cell: their elements, and the lengths.
  struct Aligned {
    std::vector<VariableId> values;
    VariableId lengths = no_variable;
  };
  Result<Aligned> aligned(std::span<const Cellwise> args) {
    RETURN_IF_ERROR(check_vectors(args));
    Aligned out;
    std::vector<Cellwise> flat;
    for (const Cellwise& v : args) {
      flat.push_back(v.kind == Cellwise::cells ? contiguous(v) : v);
      if (v.kind != Cellwise::cells) continue;
      const VariableId n = lengths_of(flat.back());
      if (is_none(out.lengths)) {
        out.lengths = n;
      } else if (n != out.lengths) {
        const VariableId ok = mask(Builtin::eq, {var(out.lengths), var(n)});
        out.lengths = required(ok, var(out.lengths), basic(BasicType::i64));
      }
    }
    if (is_none(out.lengths)) return refuse("no cells");
    for (const Cellwise& v : flat) {
      if (v.kind != Cellwise::whole) continue;
      const Run run = run_of(v);
      const VariableId ok = mask(Builtin::eq, {var(out.lengths), run.length});
      out.lengths = required(ok, var(out.lengths), basic(BasicType::i64));
    }
    for (const Cellwise& v : flat)
      out.values.push_back(v.kind == Cellwise::cells
                               ? v.values
                               : element(run_of(v).values, v.type, places(out.lengths)));
    return out;
  }

  // Elements of x at places k of the same cell.
  Result<Cellwise> index_of_cells(TypeId type, const Cellwise& x, const Cellwise& k,
                                  const Level& level) {
    const Cellwise keys[] = {k};
    RETURN_IF_ERROR(check_vectors(keys));
    if (x.kind == Cellwise::lists) return cell_of_list(x, k);
    const Cellwise vectors[] = {x};
    RETURN_IF_ERROR(check_vectors(vectors));
    if (x.kind == Cellwise::whole) {
      const Cellwise flat = contiguous(k);
      const VariableId made = element(run_of(x).values, type, flat.values);
      checked_.insert(made_.back());
      return cells(made, flat.lengths, type);
    }
    const Run run = run_of(x);
    if (is_single(k) || is_scalar_cells(k)) {
      const Operand place = is_single(k) ? k.operand : var(contiguous(k).values);
      const VariableId at = checked_place(run, place, no_variable);
      return cells(element(run.values, type, at), no_variable, type);
    }
    VariableId n = no_variable, place = no_variable, c = no_variable;
    if (k.kind == Cellwise::whole) {
      const Run keys_run = run_of(k);
      n = for_all(keys_run.length, level);
      c = cell_numbers(n);
      place = element(keys_run.values, k.type, places(n));
    } else {
      const Cellwise flat = contiguous(k);
      n = flat.lengths;
      c = cell_numbers(n, flat.values);
      place = flat.values;
    }
    return cells(element(run.values, type, checked_place(run, var(place), c)), n, type);
  }
  // The place in `run.values` of a place in the cell, which must be there.
  // c: of which cell; none: of each in turn.
  VariableId checked_place(const Run& run, Operand place, VariableId c) {
    const auto of = [&](Operand o, bool varies) { return is_none(c) ? o : at_cell(o, varies, c); };
    const VariableId least = mask(Builtin::geq, {place, integer(0)});
    const VariableId most = mask(Builtin::lt, {place, of(run.length, run.lengths_vary)});
    const VariableId ok = mask(Builtin::and_, {var(least), var(most)});
    const VariableId at = number(Builtin::plus, {of(run.begin, run.begins_vary), place});
    return required(ok, var(at), basic(BasicType::i64));
  }
  Result<Cellwise> cell_of_list(const Cellwise& x, const Cellwise& k) {
    if (x.parts[0].kind != Cellwise::cells) return refuse("lists in lists of lists");
    const Run outer{no_variable, var(begins(x.lengths)), var(x.lengths), true, true};
    ASSIGN_OR_RETURN(const Operand place, number_of(k));
    return view(x.parts[0], checked_place(outer, place, no_variable));
  }
  // The cells of those numbers.
  Cellwise view(const Cellwise& v, VariableId numbers) {
    if (is_none(v.lengths)) {
      const Cellwise flat = contiguous(v);
      return cells(element(flat.values, flat.type, numbers), no_variable, flat.type);
    }
    Cellwise out = v;
    out.begins = number(Builtin::index,
                        {var(is_none(v.begins) ? begins(v.lengths) : v.begins), var(numbers)});
    out.lengths = number(Builtin::index, {var(v.lengths), var(numbers)});
    return out;
  }

  Result<Cellwise> compress(TypeId type, std::span<const Cellwise> args) {
    ASSIGN_OR_RETURN(const Aligned a, aligned(args));
    const VariableId kept = emit(Builtin::compress, type, {var(a.values[0]), var(a.values[1])});
    return cells(kept, count(a.values[0], a.lengths), type);
  }
  Result<Cellwise> where(const Cellwise& m) {
    const Cellwise args[] = {m};
    ASSIGN_OR_RETURN(const Aligned a, aligned(args));
    const VariableId kept =
        number(Builtin::compress, {var(a.values[0]), var(places(a.lengths, a.values[0]))});
    return cells(kept, count(a.values[0], a.lengths), basic(BasicType::i64));
  }
  Result<Cellwise> reverse(const Cellwise& x) {
    const Cellwise args[] = {x};
    RETURN_IF_ERROR(check_vectors(args));
    if (is_none(x.lengths)) return x;
    const Run run = run_of(x);
    const VariableId like = is_none(x.begins) ? x.values : no_variable,
                     c = cell_numbers(x.lengths, like);
    const VariableId end = number(Builtin::plus, {run.begin, run.length});
    const VariableId last = number(Builtin::minus, {var(end), integer(1)});
    const VariableId from = number(Builtin::index, {var(last), var(c)});
    const VariableId at = number(Builtin::minus, {var(from), var(places(x.lengths, like))});
    return cells(element(x.values, x.type, at), x.lengths, x.type);
  }

  // A number for all cells, or one for each, in a vector of one element.
  Result<Operand> number_of(const Cellwise& k) {
    const Cellwise args[] = {k};
    RETURN_IF_ERROR(check_vectors(args));
    if (is_single(k)) return k.operand;
    if (k.kind == Cellwise::whole) {
      const VariableId values = run_of(k).values, n = length(values);
      const VariableId ok = mask(Builtin::eq, {var(n), integer(1)});
      const VariableId one = required(ok, var(n), basic(BasicType::i64));
      return var(element(values, k.type, number(Builtin::minus, {var(one), integer(1)})));
    }
    const Cellwise flat = contiguous(k);
    if (is_none(flat.lengths)) return var(flat.values);
    required(mask(Builtin::eq, {var(flat.lengths), integer(1)}), var(flat.lengths),
             basic(BasicType::i64));
    return var(flat.values);
  }
  // take and drop: k one number per cell, or for all.
  Result<Cellwise> part(Builtin b, TypeId type, const Cellwise& k, const Cellwise& x,
                        const Level& level) {
    const Cellwise args[] = {k, x};
    RETURN_IF_ERROR(check_vectors(args));
    ASSIGN_OR_RETURN(const Operand given, number_of(k));
    const Operand wanted = var(number(Builtin::plus, {given, integer(0)}));
    const VariableId back = mask(Builtin::lt, {wanted, integer(0)});
    const VariableId negative = number(Builtin::minus, {integer(0), wanted});
    const VariableId size = number(Builtin::select, {var(back), var(negative), wanted});
    const Run run = run_of(x);
    const bool for_every = k.kind != Cellwise::whole, varies = run.lengths_vary || for_every;
    if (b == Builtin::drop) {
      const VariableId more = mask(Builtin::gt, {var(size), run.length});
      const VariableId gone = number(Builtin::select, {var(more), run.length, var(size)});
      const VariableId left = number(Builtin::minus, {run.length, var(gone)});
      const VariableId shift = number(Builtin::select, {var(back), integer(0), var(gone)});
      const VariableId begin = number(Builtin::plus, {run.begin, var(shift)});
      Cellwise out{.kind = Cellwise::cells, .type = type, .values = run.values};
      out.lengths = varies ? left : for_all(var(left), level);
      out.begins = run.begins_vary || for_every ? begin : for_all(var(begin), level);
      return out;
    }
    const VariableId n = for_every ? size : for_all(var(size), level);
    const VariableId behind = number(Builtin::minus, {run.length, var(size)});
    const VariableId shift = number(Builtin::select, {var(back), var(behind), integer(0)});
    const VariableId c = cell_numbers(n);
    const VariableId place =
        number(Builtin::plus, {var(places(n)), at_cell(var(shift), varies, c)});
    const VariableId least = mask(Builtin::geq, {var(place), integer(0)});
    const VariableId most =
        mask(Builtin::lt, {var(place), at_cell(run.length, run.lengths_vary, c)});
    const VariableId there = mask(Builtin::and_, {var(least), var(most)});
    const VariableId at =
        number(Builtin::plus, {at_cell(run.begin, run.begins_vary, c), var(place)});
    const VariableId or_none = number(Builtin::select, {var(there), var(at), integer(-1)});
    return cells(emit(Builtin::index_or, type, {var(run.values), var(or_none), zero(type)}), n,
                 type);
  }

  Result<Cellwise> append(TypeId type, const Cellwise& x, const Cellwise& y, const Level& level) {
    if (x.kind == Cellwise::lists || y.kind == Cellwise::lists) return append_lists(x, y, level);
    const Cellwise args[] = {x, y};
    RETURN_IF_ERROR(check_vectors(args));
    const Run a = run_of(x), b = run_of(y);
    const Joined at = joined(a, b, level);
    const VariableId all = emit(Builtin::append, type, {var(a.values), var(b.values)});
    return cells(element(all, type, at.places), at.lengths, type);
  }
  // Where the elements of both runs of every cell lie in the elements of a and, behind them, of b.
  struct Joined {
    VariableId places, lengths;
  };
  Joined joined(const Run& a, const Run& b, const Level& level) {
    const VariableId both = number(Builtin::plus, {a.length, b.length});
    const VariableId n = a.lengths_vary || b.lengths_vary ? both : for_all(var(both), level);
    const VariableId c = cell_numbers(n), p = places(n);
    const Operand first = at_cell(a.length, a.lengths_vary, c);
    const VariableId in_first = mask(Builtin::lt, {var(p), first});
    const VariableId from_a = number(Builtin::plus, {at_cell(a.begin, a.begins_vary, c), var(p)});
    const VariableId shift = number(Builtin::minus, {var(p), first});
    const VariableId of_b = number(Builtin::plus, {at_cell(b.begin, b.begins_vary, c), var(shift)});
    const VariableId from_b = number(Builtin::plus, {var(of_b), var(length(a.values))});
    return {number(Builtin::select, {var(in_first), var(from_a), var(from_b)}), n};
  }
  // The cells of both, of which one is a list per cell.
  Result<Cellwise> append_lists(const Cellwise& x, const Cellwise& y, const Level& level) {
    const auto as_list = [&](const Cellwise& v) -> Result<Cellwise> {  // a vector is a cell
      if (v.kind == Cellwise::lists && v.parts[0].kind == Cellwise::cells) return v;
      if (v.kind == Cellwise::lists) return refuse("lists in lists of lists");
      const Cellwise only[] = {v};
      RETURN_IF_ERROR(check_vectors(only));
      Cellwise per_cell = v;
      if (v.kind == Cellwise::whole) {
        ASSIGN_OR_RETURN(per_cell, repeated(v, level));
      }
      Cellwise out = list_of(std::move(per_cell));
      out.lengths = for_all(integer(1), level);
      return out;
    };
    ASSIGN_OR_RETURN(const Cellwise a, as_list(x));
    ASSIGN_OR_RETURN(const Cellwise b, as_list(y));
    const Cellwise &u = a.parts[0], &v = b.parts[0];
    if (u.type != v.type) return refuse("lists of other cells");
    const auto cells_of = [&](const Cellwise& list) {
      return Run{per_cell(list.parts[0]), var(begins(list.lengths)), var(list.lengths), true, true};
    };
    const Joined at = joined(cells_of(a), cells_of(b), level);
    const Run first = run_of(u), second = run_of(v);
    const VariableId shift = length(u.values);
    const VariableId moved = number(Builtin::plus, {second.begin, var(shift)});
    Cellwise all{.kind = Cellwise::cells, .type = u.type};
    all.values = emit(Builtin::append, u.type, {var(u.values), var(v.values)});
    all.begins = number(Builtin::append, {first.begin, var(moved)});
    all.lengths = number(Builtin::append, {var(lengths_of(u)), var(lengths_of(v))});
    Cellwise out = list_of(view(all, at.places));
    out.lengths = at.lengths;
    return out;
  }

  Result<Cellwise> unique(const Cellwise& x) {
    const Cellwise args[] = {x};
    RETURN_IF_ERROR(check_vectors(args));
    const TypeId places_type = basic(BasicType::i64);
    const VariableId list = list_variable_of(contiguous(x));
    const VariableId each =
        emit(Builtin::each, list_type(places_type), {function(Builtin::unique), var(list)});
    const VariableId counted =
        emit(Builtin::each, list_type(places_type), {function(Builtin::len), var(each)});
    const VariableId n = number(Builtin::raze, {var(counted)});
    return cells(number(Builtin::raze, {var(each)}), n, places_type);
  }

  // The rows of all cells, with their cells as the first column.
  Result<Aligned> rows_of(const Cellwise& x) {
    if (x.kind == Cellwise::columns) return aligned(x.parts);
    const Cellwise args[] = {x};
    return aligned(args);
  }
  VariableId keyed(const Aligned& a, VariableId c) {
    Operands columns{var(c)};
    std::vector<TypeId> column_types{basic(BasicType::i64)};
    for (VariableId v : a.values)
      columns.push_back(var(v)), column_types.push_back(f_.variables[v].type);
    return emit(Builtin::list, program_.types->tuple(column_types), std::move(columns));
  }
  Result<Cellwise> order(const Cellwise& x, const Cellwise& up) {
    ASSIGN_OR_RETURN(const Aligned a, rows_of(x));
    const auto* given =
        up.kind == Cellwise::whole && up.operand.kind == Operand::literal
            ? std::get_if<std::vector<int64_t>>(&program_.literals[up.operand.literal_id()].values)
            : nullptr;
    if (!given || (given->size() != 1 && given->size() != a.values.size()))
      return refuse("directions that are no literal");
    std::vector<int64_t> directions{1};
    for (size_t k = 0; k < a.values.size(); ++k)
      directions.push_back((*given)[given->size() == 1 ? 0 : k]);
    const VariableId c = cell_numbers(a.lengths, a.values[0]);
    const Operand all =
        literal({.type = basic(BasicType::boolean), .values = std::move(directions)});
    const VariableId sorted = number(Builtin::order, {var(keyed(a, c)), all});
    const VariableId begin = number(Builtin::index, {var(begins(a.lengths)), var(c)});
    return cells(number(Builtin::minus, {var(sorted), var(begin)}), a.lengths,
                 basic(BasicType::i64));
  }
  // A dict per cell; what it groups is grouped in one go, cell by cell.
  struct Grouped {
    VariableId first, rows, row_list, counts;  // per group, of all rows, as a list, groups per cell
  };
  Grouped grouped(const Aligned& a, VariableId c) {
    const TypeId i64 = basic(BasicType::i64);
    const VariableId dict =
        emit(Builtin::group, program_.types->dict(i64, i64), {var(keyed(a, c))});
    Grouped g{};
    g.first = number(Builtin::keys, {var(dict)});
    g.row_list = emit(Builtin::values, list_type(i64), {var(dict)});
    g.rows = number(Builtin::raze, {var(g.row_list)});
    const VariableId counted =
        emit(Builtin::each, list_type(i64), {function(Builtin::len), var(g.row_list)});
    g.counts = number(Builtin::raze, {var(counted)});
    return g;
  }
  Result<Cellwise> group(const Cellwise& x) {
    ASSIGN_OR_RETURN(const Aligned a, rows_of(x));
    const TypeId i64 = basic(BasicType::i64);
    const VariableId c = cell_numbers(a.lengths, a.values[0]);
    const Grouped g = grouped(a, c);
    const VariableId at_rows =
        number(Builtin::index, {var(places(a.lengths, a.values[0])), var(g.rows)});
    const VariableId at_first =
        number(Builtin::index, {var(places(a.lengths, a.values[0])), var(g.first)});
    const VariableId none_first = number(Builtin::vector, {var(length(a.values[0])), integer(0)});
    const VariableId firsts = number(Builtin::index_a, {var(none_first), var(g.first), integer(1)});
    const VariableId groups = sum_of_cells(firsts, a.lengths);
    Cellwise values{.kind = Cellwise::lists, .lengths = groups};
    values.parts.push_back(cells(at_rows, g.counts, i64));
    Cellwise out{.kind = Cellwise::dict};
    out.parts = {cells(at_first, groups, i64), std::move(values)};
    return out;
  }

  // Of every element of x the first equal one of y in the same cell: both are grouped together, y
  // before x.
  Result<Cellwise> search(Builtin b, const Cellwise& x, const Cellwise& y, const Level& level) {
    const Cellwise args[] = {x, y};
    RETURN_IF_ERROR(check_vectors(args));
    if (y.kind == Cellwise::whole && b == Builtin::member) {
      const Cellwise flat = contiguous(x);
      return cells(mask(b, {var(flat.values), var(run_of(y).values)}), flat.lengths,
                   basic(BasicType::boolean));
    }
    if (y.kind == Cellwise::whole) {
      const Cellwise flat = contiguous(x);
      return cells(number(b, {var(flat.values), var(run_of(y).values)}), flat.lengths,
                   basic(BasicType::i64));
    }
    ASSIGN_OR_RETURN(const TypeId type, compared_as(x.type, y.type));
    ASSIGN_OR_RETURN(Cellwise per_x, cast(x, type));
    ASSIGN_OR_RETURN(const Cellwise per_y, cast(y, type));
    if (x.kind == Cellwise::whole) {
      ASSIGN_OR_RETURN(per_x, repeated(per_x, level));
    }
    const Cellwise xs = contiguous(per_x), ys = contiguous(per_y);
    const VariableId xn = lengths_of(xs), yn = lengths_of(ys);
    const VariableId xc = cell_numbers(xn, xs.values), yc = cell_numbers(yn, ys.values);
    Aligned rows;
    rows.values.push_back(emit(Builtin::append, type, {var(ys.values), var(xs.values)}));
    const Grouped g = grouped(rows, number(Builtin::append, {var(yc), var(xc)}));
    // The first row of every row's group.
    const VariableId of_rows =
        number(Builtin::index, {var(g.first), var(cell_numbers(g.counts, g.rows))});
    const VariableId nothing = number(Builtin::vector, {var(length(g.rows)), integer(0)});
    const VariableId first = number(Builtin::index_a, {var(nothing), var(g.rows), var(of_rows)});
    const VariableId ys_count = length(ys.values);
    const VariableId behind = number(Builtin::plus, {var(positions(xs.values)), var(ys_count)});
    const VariableId found = number(Builtin::index, {var(first), var(behind)});
    VariableId hit = mask(Builtin::lt, {var(found), var(ys_count)});
    const BasicType basic_type = types().basic_of(type);
    if (hir::is_float(basic_type) || basic_type == BasicType::complex) {  // NaN equals nothing
      const VariableId equal = mask(Builtin::eq, {var(xs.values), var(xs.values)});
      hit = mask(Builtin::and_, {var(hit), var(equal)});
    }
    if (b == Builtin::member) return cells(hit, xs.lengths, basic(BasicType::boolean));
    const VariableId begin = number(Builtin::index, {var(begins(yn)), var(xc)});
    const VariableId place = number(Builtin::minus, {var(found), var(begin)});
    const VariableId missing = number(Builtin::index, {var(yn), var(xc)});
    return cells(number(Builtin::select, {var(hit), var(place), var(missing)}), xs.lengths,
                 basic(BasicType::i64));
  }

  // The type in which elements of both are compared.
  Result<TypeId> compared_as(TypeId a, TypeId b) {
    const BasicType x = types().basic_of(a), y = types().basic_of(b);
    if (x == y || (hir::is_text(x) && hir::is_text(y))) return a;
    if (!hir::is_ordered_number(x) || !hir::is_ordered_number(y))
      return refuse("elements of types that do not compare");
    return basic(hir::widest(x, y));
  }

  Result<Cellwise> range(const Cellwise& n) {
    if (n.kind != Cellwise::cells) return refuse("not one number per cell");
    ASSIGN_OR_RETURN(const Operand given, number_of(n));
    const VariableId wanted = number(Builtin::plus, {given, integer(0)});
    const VariableId some = mask(Builtin::gt, {var(wanted), integer(0)});
    const VariableId lengths = number(Builtin::select, {var(some), var(wanted), integer(0)});
    return cells(places(lengths), lengths, basic(BasicType::i64));
  }
  // x, one element for every cell, as often as n says.
  Result<Cellwise> vector(TypeId type, const Cellwise& n, const Cellwise& x) {
    if (!is_scalar_cells(n) || (!is_single(x) && !is_scalar_cells(x)))
      return refuse("a pattern of several elements");
    const VariableId wanted = number(Builtin::plus, {var(contiguous(n).values), integer(0)});
    const VariableId ok = mask(Builtin::geq, {var(wanted), integer(0)});
    const VariableId lengths = required(ok, var(wanted), basic(BasicType::i64));
    const VariableId c = cell_numbers(lengths);
    if (is_single(x))
      return cells(emit(Builtin::vector, type, {var(length(c)), x.operand}), lengths, type);
    return cells(element(contiguous(x).values, type, c), lengths, type);
  }
  Result<Cellwise> raze(const Cellwise& x) {
    if (x.kind == Cellwise::cells) return x;
    if (x.kind != Cellwise::lists || x.parts[0].kind != Cellwise::cells)
      return refuse("cells that are no vectors");
    const Cellwise flat = contiguous(x.parts[0]);
    if (is_none(flat.lengths)) return cells(flat.values, x.lengths, flat.type);
    return cells(flat.values, sum_of_cells(flat.lengths, x.lengths), flat.type);
  }
  Result<Cellwise> raze_columns(TypeId type, const Cellwise& x, const Level* level) {
    Cellwise all = x.parts[0];
    for (size_t k = 1; k < x.parts.size(); ++k) {
      const TypeId a = all.type, b = x.parts[k].type;
      if (!types().is_basic(a) || !types().is_basic(b)) return refuse("cells that are no vectors");
      TypeId widest = type;
      if (hir::is_ordered_number(types().basic_of(a)) &&
          hir::is_ordered_number(types().basic_of(b)))
        widest = basic(hir::widest(types().basic_of(a), types().basic_of(b)));
      ASSIGN_OR_RETURN(all, builtin(Builtin::append, widest, {all, x.parts[k]}, level));
    }
    if ((all.kind == Cellwise::whole || all.kind == Cellwise::cells) && all.type != type)
      return refuse("a conversion");
    return all;
  }
  Result<Cellwise> tolist(const Cellwise& x) {
    if (x.kind != Cellwise::cells) return refuse("cells that are no vectors");
    const Cellwise flat = contiguous(x);
    Cellwise out = list_of(cells(flat.values, no_variable, flat.type));
    out.lengths = lengths_of(flat);
    return out;
  }
  Result<Cellwise> scan(Builtin b, TypeId type, std::span<const Cellwise> args) {
    ASSIGN_OR_RETURN(const Aligned a, aligned(args));
    const VariableId begin = mask(Builtin::eq, {var(places(a.lengths, a.values[0])), integer(0)});
    const VariableId starts = mask(Builtin::or_, {var(begin), var(a.values[1])});
    return cells(emit(b, type, {var(a.values[0]), var(starts)}), a.lengths, type);
  }
  Result<Cellwise> index_a(TypeId type, std::span<const Cellwise> args, const Level& level) {
    RETURN_IF_ERROR(check_vectors(args));
    if (args[0].kind != Cellwise::cells || args[1].kind != Cellwise::cells ||
        types().basic_of(args[0].type) != types().basic_of(args[2].type))
      return refuse("places for all cells");
    const Cellwise x = contiguous(args[0]);
    const Cellwise k = contiguous(args[1]);
    Cellwise v = args[2];
    VariableId n = lengths_of(k);
    Operand put = v.operand;
    const VariableId c = cell_numbers(n, k.values);
    if (is_scalar_cells(v)) {
      put = var(element(contiguous(v).values, v.type, c));
    } else if (!is_single(v)) {
      const Cellwise both[] = {k, v};
      ASSIGN_OR_RETURN(const Aligned a, aligned(both));
      put = var(a.values[1]);
    }
    (void)level;
    const VariableId at = checked_place(run_of(x), var(k.values), c);
    return cells(emit(Builtin::index_a, type, {var(x.values), var(at), put}), x.lengths, type);
  }

  // --- Lists of main as wholes -------------------------------------------------------------------

  Result<Cellwise> of_lists(Builtin b, TypeId type, std::vector<Cellwise>& args) {
    const auto known = [](const Cellwise& v) { return v.kind == Cellwise::columns; };
    if (std::any_of(args.begin(), args.end(), known)) {
      if (b != Builtin::append || !std::all_of(args.begin(), args.end(), known))
        return refuse("a list of known cells");
      args[0].parts.insert(args[0].parts.end(), args[1].parts.begin(), args[1].parts.end());
      return args[0];
    }
    for (const Cellwise& v : args)
      if (v.kind == Cellwise::lists && v.parts[0].kind != Cellwise::cells && b != Builtin::raze)
        return refuse("a list of lists");
    switch (b) {
      case Builtin::raze: {
        if (args[0].kind != Cellwise::lists || args[0].parts[0].kind != Cellwise::cells)
          return refuse("cells that are no vectors");
        const Cellwise flat = contiguous(args[0].parts[0]);
        if (flat.type != type) return refuse("a conversion");
        return whole_variable(flat.values, false);
      }
      case Builtin::append: {
        for (Cellwise& v : args) {  // a vector is a cell
          if (v.kind != Cellwise::whole) continue;
          if (!types().is_basic(v.type)) return refuse("a list and no vector");
          const Run run = run_of(v);
          const VariableId n = number(Builtin::vector, {integer(1), run.length});
          v = list_of(cells(run.values, n, v.type));
        }
        const Cellwise x = contiguous(args[0].parts[0]), y = contiguous(args[1].parts[0]);
        if (x.type != y.type) return refuse("lists of other cells");
        const VariableId values = emit(Builtin::append, x.type, {var(x.values), var(y.values)});
        if (is_none(x.lengths) && is_none(y.lengths))
          return list_of(cells(values, no_variable, x.type));
        return list_of(cells(
            values, number(Builtin::append, {var(lengths_of(x)), var(lengths_of(y))}), x.type));
      }
      case Builtin::index: {
        if (args[0].kind != Cellwise::lists || args[1].kind != Cellwise::whole)
          return refuse("not one cell");
        const Cellwise& inner = args[0].parts[0];
        ASSIGN_OR_RETURN(const Operand k, number_of(args[1]));
        if (is_none(inner.lengths)) {
          const Cellwise flat = contiguous(inner);
          const VariableId cell = emit(Builtin::index, type, {var(flat.values), k});
          checked_.insert(made_.back());
          return whole_variable(cell, true);
        }
        const Run run = run_of(inner);
        const VariableId n = number(Builtin::index, {run.length, k});
        checked_.insert(made_.back());
        const VariableId begin = number(Builtin::index, {run.begin, k});
        const VariableId c = cell_numbers(n);
        const VariableId at = number(Builtin::plus, {var(begin), var(positions(c))});
        return whole_variable(element(run.values, type, at), false);
      }
      case Builtin::flip: {
        if (args[0].kind != Cellwise::lists) return refuse("no list");
        const VariableId last =
            number(Builtin::reverse, {var(positions(per_cell(args[0].parts[0])))});
        return list_of(view(args[0].parts[0], last));
      }
      case Builtin::replicate: return replicate(type, args);
      default: return refuse("it has no form for lists");
    }
  }
  Result<Cellwise> replicate(TypeId, std::span<const Cellwise> args) {
    if (args[0].kind != Cellwise::whole) return refuse("a number for every cell");
    ASSIGN_OR_RETURN(const Operand wanted, number_of(args[0]));
    const VariableId given = number(Builtin::plus, {wanted, integer(0)});
    const VariableId some = mask(Builtin::gt, {var(given), integer(0)});
    const VariableId times = number(Builtin::select, {var(some), var(given), integer(0)});
    const VariableId rounds = cell_numbers(times);  // an element for each time
    if (args[1].kind == Cellwise::whole) return repeated_list(args[1], Level{rounds});
    if (args[1].kind != Cellwise::lists || args[1].parts[0].kind != Cellwise::cells)
      return refuse("cells that are no vectors");
    const Level level{rounds};
    const VariableId n = for_all(var(length(per_cell(args[1].parts[0]))), level);
    return list_of(view(args[1].parts[0], places(n)));
  }
  Result<Cellwise> repeated_list(const Cellwise& v, const Level& level) {
    ASSIGN_OR_RETURN(Cellwise made, repeated(v, level));
    return list_of(std::move(made));
  }

  Function& f_;
  const Options& options_;
  std::map<VariableId, Cellwise> known_;  // what variables of main hold
  // What was made already, by variables that never change.
  struct Caches {
    std::map<VariableId, VariableId> begins, numbers, places, ones;  // by lengths; by values
    std::map<std::pair<VariableId, VariableId>, VariableId> list_of;
    std::map<VariableId, Cellwise> of_list;  // by variable of main
    std::map<ShapeId, VariableId> lengths_of;
  } caches_;
  std::vector<StatementId> made_;  // for the statement at hand
  std::set<StatementId> ours_,
      checked_;  // made by this pass; of these, indexes that may be out of range
  Span span_;
  size_t total_ = 0, calls_ = 0;
};

}  // namespace

bool flatten_lists(hir::Program& program, const Function& main, ShapeTable& table,
                   DiagnosticSink& sink, const Options& options, Shapes& shapes, Function& own) {
  const hir::TypeTable& types = *program.types;
  const bool any =
      std::any_of(main.variables.begin(), main.variables.end(), [&](const hir::Variable& v) {
        return types[v.type].kind == TypeKind::list || types[v.type].kind == TypeKind::tuple;
      });
  if (!any) return false;
  bool done = false;
  Function work = main;
  for (size_t round = 0; round < most_rounds; ++round) {
    if (!Flattener(program, shapes, table, options, work).run(sink)) break;
    done = true;
  }
  if (done) own = std::move(work);
  return done;
}

}  // namespace rndn::outliner
