// Orders of groups by their keys, which groups come in anyhow.
//
// In: main with its calls replaced, and its shapes. Out: a main in which, for first = keys(group(k..)),
//   o = order(list(a..), 1)      o = range(len(first))     a..: as many as k.., or the first of them, each what its k is at the first rows:
//                                                          index(k, first), or what makes k, of vectors at the first rows
//   y = index(x, o)              x, wherever y was read    x: as long as `first`
// Groups ascend by their keys (docs/horseir.md, "group"), and an order keeps the places of equal rows. Of groups that need not, under
// `--group hash`, the run is told (Outlined::groups_ascend). Keys are integers, dates and texts: those of floats have NaN and two zeros.
// Values are followed by who assigns them. Cost: O(orders x statements).
// Leaves out: programs with control flow in main, variables with several assignments, other directions, keys in another order.
#include "outliner/editing.h"

namespace rndn::outliner {
namespace {

using hir::BasicType;
using hir::Builtin;
using hir::Expression;
using hir::Function;
using hir::Operand;
using hir::Statement;
using hir::StatementId;
using hir::VariableId;

constexpr size_t most_steps = 8;  // from a key to the vectors that it is made of

class GroupOrders : Editing {
 public:
  GroupOrders(hir::Program& program, const Function& main, Shapes& shapes, ShapeTable& table)
      : Editing(program, shapes, table), now_(&main) {}

  bool find(DiagnosticSink& sink, Function& own) {
    if (!read_main(*now_)) return false;
    made_.assign(now_->variables.size(), nowhere);
    for (size_t place = 0; place < order_.size(); ++place)
      for (const hir::Target& t : now_->statements[order_[place]].targets)
        if (t.kind == hir::Target::variable) made_[t.id] = writers_of(t.variable_id()) == 1 ? place : nowhere;
    size_t first = order_.size();  // that is not what it was
    for (size_t place = 0; place < order_.size(); ++place)
      if (is_call(place, Builtin::order) && is_of_groups(place)) first = std::min(first, place);
    if (first == order_.size()) return false;
    own = std::move(work_);
    analyse_written(own, first, sink);
    return true;
  }

 private:
  static constexpr size_t nowhere = SIZE_MAX;

  const Statement& statement(size_t place) const { return now_->statements[order_[place]]; }
  const Expression& call(size_t place) const { return now_->expressions[innermost(*now_, statement(place).value)]; }
  // x = @builtin(..), x assigned nowhere else.
  bool is_call(size_t place, Builtin b) const {
    const Statement& s = statement(place);
    return s.kind == Statement::assign && s.targets.size() == 1 && s.targets[0].kind == hir::Target::variable &&
           made_[s.targets[0].id] == place && s.value == innermost(*now_, s.value) && called_builtin(*now_, s) == b;
  }
  // Where the operand's only value is made, copies aside.
  size_t maker(Operand o) const {
    for (;;) {
      const size_t place = o.kind == Operand::variable && o.id < made_.size() ? made_[o.id] : nowhere;
      if (place == nowhere) return nowhere;
      const Statement& s = statement(place);
      if (s.kind != Statement::assign || s.targets.size() != 1) return nowhere;
      if (s.value != innermost(*now_, s.value) || call(place).kind != Expression::operand) return place;
      o = call(place).operands[0];
    }
  }
  size_t maker(const Operand& o, Builtin b) const {
    const size_t place = maker(o);
    return place != nowhere && is_call(place, b) ? place : nowhere;
  }
  bool is_key(const Operand& o) const {
    if (o.kind != Operand::variable || !program_.types->is_basic(now_->variables[o.variable_id()].type)) return false;
    const BasicType t = program_.types->basic_of(now_->variables[o.variable_id()].type);
    return !hir::is_wide(t) && (hir::is_integer(t) || hir::is_calendar(t) || hir::is_text(t));
  }
  // The columns of an order or of a group.
  std::vector<Operand> columns_of(const Operand& o) const {
    const size_t list = maker(o, Builtin::list);
    if (list == nowhere) return {o};
    return {call(list).operands.begin(), call(list).operands.end()};
  }
  // The types of what a statement converts its value to, outermost first.
  std::vector<hir::TypeId> casts_of(size_t place) const {
    std::vector<hir::TypeId> types;
    for (hir::ExpressionId e = statement(place).value; now_->expressions[e].kind == Expression::cast;
         e = now_->expressions[e].inner)
      types.push_back(now_->expressions[e].cast_type);
    return types;
  }

  // keys(group(..)) that the vector is made of, if any.
  size_t first_rows_of(const Operand& o, size_t steps = 0) const {
    const size_t place = maker(o);
    if (place == nowhere || steps > most_steps) return nowhere;
    if (is_call(place, Builtin::keys) && maker(call(place).operands[0], Builtin::group) != nowhere) return place;
    if (call(place).kind != Expression::call && call(place).kind != Expression::operand) return nowhere;
    if (is_call(place, Builtin::index)) return first_rows_of(call(place).operands[1], steps + 1);
    for (const Operand& of : call(place).operands)
      if (const size_t found = first_rows_of(of, steps + 1); found != nowhere) return found;
    return nowhere;
  }

  // a = k at the rows `first`
  bool is_at(const Operand& a, const Operand& k, size_t first, size_t steps = 0) const {
    const size_t of_a = maker(a), of_k = maker(k);
    if (of_a == nowhere || of_k == nowhere || steps > most_steps) return false;
    if (is_call(of_a, Builtin::index) && maker(call(of_a).operands[1]) == first &&
        maker(call(of_a).operands[0]) == of_k)
      return true;
    const Expression &x = call(of_a), &y = call(of_k);
    const std::optional<Builtin> b = called_builtin(*now_, statement(of_a));
    if (x.kind != y.kind || casts_of(of_a) != casts_of(of_k) || x.operands.size() != y.operands.size()) return false;
    if (x.kind == Expression::call) {
      if (!b || b != called_builtin(*now_, statement(of_k))) return false;
      if (*b == Builtin::index)  // of one vector, at places that are made alike
        return maker(x.operands[0]) != nowhere && maker(x.operands[0]) == maker(y.operands[0]) &&
               is_at(x.operands[1], y.operands[1], first, steps + 1);
      const hir::BuiltinRow& row = hir::row(*b);
      if (row.device != hir::Device::gpu || row.geometry != hir::GeometryRule::result || row.sync_in != 0 ||
          *b == Builtin::reverse ||
          (row.shape_rule != hir::ShapeRule::broadcast && row.shape_rule != hir::ShapeRule::argument0))
        return false;
    } else if (x.kind != Expression::operand) {
      return false;
    }
    bool any = false;
    for (size_t i = 0; i < x.operands.size(); ++i) {
      if (is_same(x.operands[i], y.operands[i])) continue;
      if (!is_at(x.operands[i], y.operands[i], first, steps + 1)) return false;
      any = true;
    }
    return any;
  }
  // One element that both read.
  bool is_same(const Operand& x, const Operand& y) const {
    if (x.kind != y.kind) return false;
    if (x.kind == Operand::variable)
      return x.id == y.id && made_[x.id] != nowhere && !shapes_.statements[order_[made_[x.id]]].results.empty() &&
             is_scalar(table_, shapes_.statements[order_[made_[x.id]]].results[0].shape);
    if (x.kind != Operand::literal) return false;
    const hir::Literal &a = program_.literals[x.literal_id()], &b = program_.literals[y.literal_id()];
    const auto equal = [&]<class T>(const std::vector<T>* v) {
      const auto* w = std::get_if<std::vector<T>>(&b.values);
      return v && w && v->size() == 1 && *v == *w;
    };
    return a.type == b.type && (equal(std::get_if<std::vector<int64_t>>(&a.values)) ||
                                equal(std::get_if<std::vector<std::string>>(&a.values)));
  }

  bool is_of_groups(size_t place) {
    const Expression& e = call(place);
    const auto* ways = e.operands[1].kind == Operand::literal
                           ? std::get_if<std::vector<int64_t>>(&program_.literals[e.operands[1].literal_id()].values)
                           : nullptr;
    if (!ways || std::any_of(ways->begin(), ways->end(), [](int64_t up) { return up == 0; })) return false;
    const std::vector<Operand> by = columns_of(e.operands[0]);
    const size_t first = by.empty() ? nowhere : first_rows_of(by[0]);
    if (first == nowhere || shapes_.statements[order_[first]].results.empty()) return false;
    const size_t group = maker(call(first).operands[0], Builtin::group);
    const std::vector<Operand> keys = columns_of(call(group).operands[0]);
    if (by.size() > keys.size()) return false;
    for (size_t k = 0; k < by.size(); ++k)
      if (!is_key(keys[k]) || !is_key(by[k]) || !is_at(by[k], keys[k], first)) return false;
    rewrite(place, first);
    return true;
  }

  void rewrite(size_t place, size_t first) {
    if (now_ != &work_) {
      work_ = *now_;
      now_ = &work_;
      note_names(work_);
    }
    const StatementId id = order_[place];
    const VariableId o = statement(place).targets[0].variable_id();
    const hir::Target& rows = statement(first).targets[0];
    const Operand first_rows{
        .kind = Operand::variable, .id = rows.id, .name = work_.variables[rows.variable_id()].name};
    const ShapeId shape = shapes_.statements[order_[first]].results[0].shape;
    for (size_t at = place + 1; at < order_.size(); ++at) {
      if (!is_call(at, Builtin::index)) continue;
      const auto& operands = call(at).operands;
      const Operand x = operands[0];
      if (operands[1].kind != Operand::variable || operands[1].id != index(o) || x.kind != Operand::variable ||
          x.id == index(o) || made_[x.id] == nowhere || shapes_.statements[order_[at]].operands[0].shape != shape)
        continue;
      const Operand y{.kind = Operand::variable, .id = statement(at).targets[0].id, .name = {}};
      if (work_.variables[y.variable_id()].type != work_.variables[x.variable_id()].type) continue;
      read_instead(y, x);
      drop_unread(work_, order_[at]);
    }
    const VariableId length = fresh(work_, "groups", BasicType::i64);
    insert(work_, id, false, {add(work_, work_.statements[id].span, length, Builtin::len, {first_rows})});
    becomes(work_.expressions[work_.statements[id].value], Builtin::range, {operand(work_, length)});
    drop_unread(work_, id);
  }
  void read_instead(const Operand& y, const Operand& x) {
    const auto change = [&](auto& operands) {
      for (Operand& o : operands)
        if (o.kind == Operand::variable && o.id == y.id) o = x;
    };
    for (Expression& e : work_.expressions) change(e.operands);
    for (Statement& s : work_.statements) change(s.results);
  }

  Function work_;             // main, as it becomes, once there is something to change
  const Function* now_;       // main, or that
  std::vector<size_t> made_;  // per variable, as a place in order_; nowhere: nowhere, or in several places
};

}  // namespace

bool find_group_orders(hir::Program& program, const Function& main, ShapeTable& table, DiagnosticSink& sink,
                       Shapes& shapes, Function& own) {
  bool groups = false, orders = false;
  for (const Expression& e : main.expressions) {
    if (e.kind != Expression::call || e.callee.kind != hir::FunctionRef::builtin) continue;
    groups |= e.callee.builtin_id == Builtin::group;
    orders |= e.callee.builtin_id == Builtin::order;
  }
  return groups && orders && GroupOrders(program, main, shapes, table).find(sink, own);
}

}  // namespace rndn::outliner
