// Selections one after the other as one selection, where a look-up says which rows the later one keeps: it is asked for all rows, so that
// a kernel loads its columns side by side and asks its tables side by side, and does not wait for each before it knows the place of the next.
//
// In: main after find_probes (joins.cpp), and its shapes. Out: a main of which such chains are rewritten:
//   k1 = compress(m, k)                 (m, k, w: as long as the first side)
//   row = GPU.probe(n, L.., k1)         all = GPU.probe(n, L.., k); row = compress(m, all)
//   hit = geq(row, 0)                   all_hit = geq(all, 0); both = and(m, all_hit); hit = compress(m, all_hit)
//   v = compress(hit, compress(m, w))   v = compress(both, w)
//   v = compress(hit, row)              v = compress(both, all)
//   p = compress(hit, where(m))         p = where(both)
//   v = index(w, p)                     v = compress(both, w)
//   u = index(t, compress(m, r))        (stays)
//   v = compress(hit, u)                v = index(t, compress(both, r)): only rows that are left are gathered
// Every variable keeps its value; what nothing reads any more is gone. So `both` may be the m of the next link of a chain.
// Only look-ups and element-wise work that cannot fail are evaluated for more rows than before. Code generation asks a table only where the rest
// of its conjunction holds (ptx/codegen/guards.cpp). Selections by conditions without a look-up stay: they wait for no memory.
// A look-up in a table that follows from what m selects stays, too: all rows would wait for it, the selected ones are few and stored by then.
// All that `hit` selects is rewritten or nothing: of two vectors that are equally long for different reasons no kernel is made. So a first walk
// over main, which writes nothing, finds the masks that also select something else.
// Cost: O(look-ups x statements), and inserting is linear in main. Leaves out: programs with control flow in main, variables with several assignments, conversions.
#include <map>
#include <span>

#include "outliner/editing.h"

namespace rndn::outliner {
namespace {

using hir::BasicType;
using hir::Builtin;
using hir::Expression;
using hir::ExpressionId;
using hir::Function;
using hir::Operand;
using hir::Statement;
using hir::StatementId;
using hir::VariableId;

class Chains : Editing {
 public:
  Chains(hir::Program& program, Shapes& shapes, ShapeTable& table) : Editing(program, shapes, table) {}

  bool merge(const Function& main, DiagnosticSink& sink, Function& own) {
    if (!read_main(main)) return false;
    if (!has_chain(main)) return false;
    if (&own != &main) own = main;
    first_ = order_.size();
    writes_ = false;
    size_t apart = 0;
    do {  // what one mask does not select, the next may not either
      apart = apart_.size();
      walk(own);
    } while (apart_.size() > apart);
    if (first_ == order_.size()) return false;
    note_names(own);
    writes_ = true;
    walk(own);
    for (size_t k = left_.size(); k-- > 0;) drop_unread(own, left_[k]);
    analyse_written(own, first_, sink);
    return true;
  }

 private:
  // What a variable is of the vectors that one mask selects from.
  struct Form {
    enum Kind : uint8_t {
      no_form,
      column,    // compress(mask, all)
      position,  // where(mask)
      computed,  // element-wise from such columns; `all` once it was asked for
      picked,    // index(table, at), `at` a column
    } kind = no_form;
    VariableId mask = none<VariableId>(), all = none<VariableId>(), table{}, at{};
    StatementId made{};
    size_t place = 0;   // of that
    bool asks = false;  // a look-up is among what it follows from
  };

  static constexpr size_t no_place = SIZE_MAX;
  struct Known {
    Form form;
    ShapeId shape = none<ShapeId>();
    size_t place = no_place;            // of the statement that gives its only value
    ShapeId rows_of = none<ShapeId>();  // of what a look-up found: of the vectors that have these rows
  };
  Known& of(VariableId v) { return known_[index(v)]; }
  const Known& of(VariableId v) const { return known_[index(v)]; }
  bool has(VariableId v) const { return of(v).form.kind != Form::no_form; }

  static bool is_map(Builtin b, BasicType result) {
    const hir::BuiltinRow& r = hir::row(b);
    return b == Builtin::gpu_probe ||
           ((r.shape_rule == hir::ShapeRule::broadcast || r.shape_rule == hir::ShapeRule::argument0) &&
            r.geometry == hir::GeometryRule::result && r.sync_in == 0 && r.kernel != 0 && !hir::can_fail(b, result) &&
            !hir::needs_math(b, result));
  }
  bool is_fixed(const Operand& o) const { return o.kind == Operand::variable && writers_of(o.variable_id()) == 1; }
  const Form* form_of(const Operand& o) const {
    if (!is_fixed(o)) return nullptr;
    const Form& form = of(o.variable_id()).form;
    return form.kind == Form::no_form ? nullptr : &form;
  }
  bool is_scalar_here(const Operand& o, const Value& v) const {
    return o.kind == Operand::literal || (is_fixed(o) && !is_none(v.shape) && is_scalar(table_, v.shape));
  }

  // A look-up of what was selected.
  bool has_chain(const Function& f) const {
    std::vector<uint8_t> selected(f.variables.size());
    for (StatementId id : order_) {
      const Statement& s = f.statements[id];
      const std::optional<Builtin> b = called_builtin(f, s);
      if (b != Builtin::compress && b != Builtin::gpu_probe) continue;
      const Operands& operands = f.expressions[innermost(f, s.value)].operands;
      if (b == Builtin::compress && s.targets.size() == 1 && s.targets[0].kind == hir::Target::variable)
        selected[s.targets[0].id] = true;
      if (b == Builtin::gpu_probe && operands.back().kind == Operand::variable && selected[operands.back().id])
        return true;
    }
    return false;
  }

  void walk(Function& f) {
    known_.reserve(2 * f.variables.size());
    known_.assign(f.variables.size(), {});
    conjunctions_.clear();
    selected_.clear();
    both_.clear();
    left_.clear();
    first_ = order_.size();
    for (place_ = 0; place_ < order_.size(); ++place_) read(f, order_[place_]);
  }

  // A variable that the first walks talk of, and the last one makes.
  template <class Type>
  VariableId made(Function& f, std::string_view stem, Type type) {
    const VariableId v = writes_ ? fresh(f, stem, type) : static_cast<VariableId>(known_.size());
    known_.resize(index(v) + 1);
    return v;
  }
  void write(Function& f, StatementId id, Builtin b, Operands operands) {
    rewritten(place_);
    if (writes_) becomes(f.expressions[f.statements[id].value], b, std::move(operands));
  }
  // Before `at`: v = b(operands)
  StatementId write(Function& f, StatementId at, VariableId v, Builtin b, Operands operands) {
    if (!writes_) return at;
    const StatementId id = add(f, f.statements[at].span, v, b, std::move(operands));
    insert(f, at, false, {id});
    return id;
  }
  Operand named(const Function& f, VariableId v) const {
    return index(v) < f.variables.size() ? operand(f, v) : Operand{.kind = Operand::variable, .id = index(v)};
  }

  void read(Function& f, StatementId id) {
    const Statement& s = f.statements[id];
    if (s.kind != Statement::assign || s.targets.size() != 1 || s.targets[0].kind != hir::Target::variable) return;
    const VariableId v{s.targets[0].id};
    if (writers_of(v) != 1) return;
    of(v).shape = shapes_.statements[id].results[0].shape;
    of(v).place = place_;
    const std::optional<Builtin> b = called_builtin(f, s);
    if (!b || s.value != innermost(f, s.value)) return;
    const Operands& operands = f.expressions[s.value].operands;  // there until something is written
    const auto& values = shapes_.statements[id].operands;
    if (*b == Builtin::gpu_probe) of(v).rows_of = values[1].shape;
    if (*b == Builtin::compress && is_fixed(operands[0]) && is_fixed(operands[1]))
      read_compress(f, id, v, operands, values);
    else if (*b == Builtin::where && is_fixed(operands[0]))
      read_where(v, id, operands[0].variable_id());
    else if (*b == Builtin::index && is_fixed(operands[0]) && is_fixed(operands[1]))
      read_index(f, id, v, operands, values);
    else if (program_.types->is_basic(f.variables[v].type) && is_map(*b, program_.types->basic_of(f.variables[v].type)))
      read_map(f, id, v, *b, operands, values);
  }

  void note(VariableId v, StatementId id, Form form) {
    form.made = id;
    form.place = place_;
    of(v).form = form;
  }
  void rewritten(size_t place) { first_ = std::min(first_, place); }
  // Nothing may read it any more.
  void leave(const Form& form) {
    left_.push_back(form.made);
    rewritten(form.place);
  }

  // A later mask, by what a look-up says.
  bool merges(VariableId m) const {
    const Form& by = of(m).form;
    return by.kind == Form::computed && by.asks && !apart_.contains(m);
  }

  void read_where(VariableId v, StatementId id, VariableId m) {
    if (merges(m)) apart_.insert(m);  // positions among selected rows
    if (!has(m)) note(v, id, {.kind = Form::position, .mask = m});
  }

  void read_compress(Function& f, StatementId id, VariableId v, const Operands& operands,
                     const InlineVector<Value, 2>& values) {
    const VariableId m = operands[0].variable_id(), x = operands[1].variable_id();
    if (!has(m) && !has(x) && !is_none(values[0].shape) && values[0].shape == values[1].shape)
      note(v, id, {.kind = Form::column, .mask = m, .all = x});
    if (!merges(m)) return;
    if (!has(x) || of(x).form.mask != of(m).form.mask) {
      apart_.insert(m);
      return;
    }
    const VariableId both = conjunction(f, m);
    const Form from = of(x).form;
    if (from.kind == Form::position) {
      write(f, id, Builtin::where, {named(f, both)});
      note(v, id, {.kind = Form::position, .mask = both});
    } else if (from.kind == Form::picked) {
      const VariableId at = selected(f, id, both, from.at);
      write(f, id, Builtin::index, {named(f, from.table), named(f, at)});
      note(v, id, {.kind = Form::picked, .mask = both, .table = from.table, .at = at});
    } else {
      const VariableId all = all_of(f, x);
      write(f, id, Builtin::compress, {named(f, both), named(f, all)});
      note(v, id, {.kind = Form::column, .mask = both, .all = all});
    }
    leave(from);
  }

  void read_index(Function& f, StatementId id, VariableId v, const Operands& operands,
                  const InlineVector<Value, 2>& values) {
    const Form* at = form_of(operands[1]);
    if (!at) return;
    const VariableId w = operands[0].variable_id(), mask = at->mask;
    // A position that may be out of range is an error also in a row that a later mask leaves out.
    if (at->kind == Form::column && !is_none(values[0].shape) && of(at->all).rows_of == values[0].shape &&
        !(has(w) && of(w).form.mask == mask)) {
      note(v, id, {.kind = Form::picked, .mask = mask, .table = w, .at = operands[1].variable_id()});
    } else if (at->kind == Form::position && both_.contains(mask) && values[0].shape == of(mask).shape) {
      leave(*at);
      write(f, id, Builtin::compress, {named(f, mask), named(f, w)});
      note(v, id, {.kind = Form::column, .mask = mask, .all = w});
    }
  }

  void read_map(const Function& f, StatementId id, VariableId v, Builtin b, const Operands& operands,
                const InlineVector<Value, 2>& values) {
    Form out{.kind = Form::computed, .asks = b == Builtin::gpu_probe};
    // The other operands of a look-up are its table.
    const size_t first = b == Builtin::gpu_probe ? operands.size() / 2 + 1 : 0;
    for (size_t k = first; k < operands.size(); ++k) {
      if (is_scalar_here(operands[k], values[k])) continue;
      const Form* form = form_of(operands[k]);
      if (!form || (form->kind != Form::column && form->kind != Form::computed)) return;
      if (!is_none(out.mask) && out.mask != form->mask) return;
      out.mask = form->mask;
      out.asks |= form->asks;
    }
    if (is_none(out.mask)) return;
    if (b == Builtin::gpu_probe && !writes_ && follows(f, {operands.begin() + 1, first - 1}, out.mask))
      waiting_.insert(id);
    if (!waiting_.contains(id)) note(v, id, out);
  }

  // One of the operands follows from the mask. What was made before the mask does not. Only of what main was.
  bool follows(const Function& f, std::span<const Operand> operands, VariableId mask) {
    const size_t least = of(mask).place;
    seen_.assign(order_.size(), false);
    open_.assign(operands.begin(), operands.end());
    while (!open_.empty()) {
      const Operand o = open_.back();
      open_.pop_back();
      if (o.kind == Operand::literal) continue;
      const size_t at = o.kind == Operand::variable ? of(o.variable_id()).place : no_place;
      if (at == no_place || at == least) return true;
      if (at < least || seen_[at]) continue;
      seen_[at] = true;
      const auto& more = f.expressions[innermost(f, f.statements[order_[at]].value)].operands;
      open_.insert(open_.end(), more.begin(), more.end());
    }
    return false;
  }

  // The variable of which compress(mask, ..) is v.
  VariableId all_of(Function& f, VariableId v) {
    const Form form = of(v).form;
    if (!is_none(form.all)) return form.all;
    const ExpressionId value = f.statements[form.made].value;
    const size_t count = f.expressions[value].operands.size();
    const size_t first = f.expressions[value].callee.builtin_id == Builtin::gpu_probe ? count / 2 + 1 : 0;
    const auto part = [&](size_t k) {
      const Operand& o = f.expressions[value].operands[k];
      return o.kind == Operand::variable && has(o.variable_id()) ? o.variable_id() : none<VariableId>();
    };
    for (size_t k = first; k < count; ++k)
      if (const VariableId p = part(k); !is_none(p)) {
        (void)all_of(f, p);
        leave(of(p).form);
      }
    const VariableId all = made(f, "all", f.variables[v].type);
    if (writes_) {
      Expression e = f.expressions[value];
      for (size_t k = first; k < count; ++k)
        if (const VariableId p = part(k); !is_none(p)) e.operands[k] = operand(f, of(p).form.all);
      Statement before{.span = f.statements[form.made].span};
      assign(f, before, all, f.expressions.add(std::move(e)));
      insert(f, form.made, false, {f.statements.add(std::move(before))});
      becomes(f.expressions[value], Builtin::compress, {operand(f, form.mask), operand(f, all)});
    }
    leave(form);
    of(v).form.all = all;
    of(all).rows_of = of(v).rows_of;
    return all;
  }

  // and(mask, all of m), for the mask of m.
  VariableId conjunction(Function& f, VariableId m) {
    if (const auto known = conjunctions_.find(m); known != conjunctions_.end()) return known->second;
    const VariableId all = all_of(f, m);
    const Form form = of(m).form;
    const VariableId both = made(f, "both", BasicType::boolean);
    write(f, form.made, both, Builtin::and_, {named(f, form.mask), named(f, all)});
    of(both).shape = of(form.mask).shape;
    of(both).place = of(form.mask).place;  // of the first: the others follow from it
    both_.insert(both);
    conjunctions_[m] = both;
    return both;
  }

  // compress(both, all of `at`), before that statement or an earlier one.
  VariableId selected(Function& f, StatementId before, VariableId both, VariableId at) {
    const VariableId all = all_of(f, at);
    if (const auto known = selected_.find({both, all}); known != selected_.end()) return known->second;
    const VariableId v = made(f, "left", index(at) < f.variables.size() ? f.variables[at].type : hir::TypeId{});
    note(v, write(f, before, v, Builtin::compress, {named(f, both), named(f, all)}),
         {.kind = Form::column, .mask = both, .all = all});
    selected_[{both, all}] = v;
    return v;
  }

  std::vector<Known> known_;                                          // by variable
  std::map<VariableId, VariableId> conjunctions_;                     // by the later mask
  std::map<std::pair<VariableId, VariableId>, VariableId> selected_;  // by the mask and what it selects from
  std::set<StatementId> waiting_;  // look-ups in tables that follow from the selection
  std::set<VariableId> both_;      // the conjunctions
  std::set<VariableId> apart_;     // later masks that stay
  std::vector<StatementId> left_;
  std::vector<uint8_t> seen_;  // places
  std::vector<Operand> open_;
  bool writes_ = false;
  size_t first_ = 0, place_ = 0;
};

}  // namespace

bool merge_selections(hir::Program& program, const Function& main, ShapeTable& table, DiagnosticSink& sink,
                      Shapes& shapes, Function& own) {
  return Chains(program, shapes, table).merge(main, sink, own);
}

}  // namespace rndn::outliner
