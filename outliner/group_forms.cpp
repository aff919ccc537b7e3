// Groups that a program writes without `group`: they become groups, which later passes make part of kernels (sinks.cpp,
// grouping_fusion.cpp).
//
// In: main with its calls replaced, and its shapes. Out: a main in which these are groups, where there are any:
//   u = unique(x), in any order              g = group(x), u = keys(g)
//   o = order(list(k..), 1)                  g = group(list(k..)), first = keys(g), rows = values(g)
//   s = index(x, o)                          of any x as long as o
//   c = or(neq(drop(-1, s), drop(1, s))..)   where a row of the sorted keys differs from the one before
//   t = take(len(o), append(1, c))           starts of runs, b = where(t); ends, e, with append(c, 1)
//   index(s, b), index(o, b)                 index(x, first), first
//   index(scan_f(s, t), e)                   raze(each(@f, each_right(@index, x, rows)))           f: sum, min, max
//   plus(minus(e, b), 1)                     raze(each(@len, rows))
// Groups ascend by their keys as sorted rows do; the run is told that they must (Outlined::groups_ascend). Keys
// are integers, dates and texts, which are equal where they are not unequal: NaN would be a run of its own. Sums of
// floats become exact ones, rounded once, which docs/horseir.md allows ("scan_sum"). An order of which anything else is read stays, and with it all of its
// runs.
// Distinct values come in another order then: they must be counted, grouped, or put in order. They are only rewritten where groups
// are folded: `unique` is as good as a group that is sorted.
// Cost: O(orders x statements). Leaves out: programs with control flow in main, variables with several assignments,
// keys in other directions.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

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
using hir::TypeId;
using hir::VariableId;

constexpr StatementId nowhere = none<StatementId>();

class GroupForms : Editing {
 public:
  GroupForms(hir::Program& program, const Function& main, const Options& options, Shapes& shapes, ShapeTable& table)
      : Editing(program, shapes, table), main_(main), options_(options) {}

  bool find(DiagnosticSink& sink, Function& own) {
    if (!read_main(main_)) return false;
    made_.assign(main_.variables.size(), nowhere);
    for (StatementId id : order_)
      for (const hir::Target& t : main_.statements[id].targets)
        if (t.kind == hir::Target::variable && writers_of(t.variable_id()) == 1) made_[t.id] = id;
    size_t first = order_.size();  // that is not what it was
    const auto calls = [&](Builtin b) {
      return std::any_of(order_.begin(), order_.end(),
                         [&](StatementId id) { return called_builtin(main_, main_.statements[id]) == b; });
    };
    const bool edges = calls(Builtin::append);
    std::optional<Function> work;  // main, once something becomes another thing
    for (size_t place = 0; place < order_.size(); ++place) {
      const std::optional<Builtin> builtin = called_builtin(main_, main_.statements[order_[place]]);
      const bool done = builtin == Builtin::order    ? edges && runs(place, work)
                        : builtin == Builtin::unique ? distinct(place, work)
                                                     : false;
      if (done) first = std::min(first, place);
    }
    if (first == order_.size()) return false;
    own = std::move(*work);
    analyse_written(own, first, sink);
    return true;
  }

 private:
  // --- What main says ---

  // The statement that gives the operand its only value, copies aside.
  StatementId maker(Operand o) const {
    for (;;) {
      if (o.kind != Operand::variable || o.id >= made_.size()) return nowhere;
      const StatementId id = made_[o.id];
      if (is_none(id)) return nowhere;
      const Statement& s = main_.statements[id];
      if (s.kind != Statement::assign || s.targets.size() != 1 || s.value != innermost(main_, s.value)) return nowhere;
      const Expression& e = main_.expressions[s.value];
      if (e.kind != Expression::operand) return id;
      support_.insert(id);
      o = e.operands[0];
    }
  }
  // The call of that builtin that makes the operand, noted as read by runs; or null.
  const Expression* call(const Operand& o, Builtin b) {
    const StatementId id = maker(o);
    if (is_none(id) || called_builtin(main_, main_.statements[id]) != b) return nullptr;
    support_.insert(id);
    return &main_.expressions[main_.statements[id].value];
  }
  // A variable that stands for all copies of it.
  std::optional<VariableId> root(Operand o) const {
    for (;;) {
      if (o.kind != Operand::variable || o.id >= made_.size() || is_none(made_[o.id])) return {};
      const Statement& s = main_.statements[made_[o.id]];
      if (s.kind != Statement::assign || s.targets.size() != 1) return {};
      const Expression& e = main_.expressions[s.value];
      if (e.kind != Expression::operand || e.operands[0].kind != Operand::variable) return o.variable_id();
      o = e.operands[0];
    }
  }
  std::optional<int64_t> number(const Operand& o) const {
    if (o.kind != Operand::literal) return {};
    const auto* n = std::get_if<std::vector<int64_t>>(&program_.literals[o.literal_id()].values);
    return n && n->size() == 1 ? std::optional(n->front()) : std::nullopt;
  }
  std::optional<BasicType> basic_of(VariableId v) const {
    const TypeId type = main_.variables[v].type;
    return program_.types->is_basic(type) ? std::optional(program_.types->basic_of(type)) : std::nullopt;
  }
  bool is_key(VariableId v) const {
    const std::optional<BasicType> t = basic_of(v);
    return t && !hir::is_wide(*t) && (hir::is_integer(*t) || hir::is_calendar(*t) || hir::is_text(*t));
  }

  // --- Distinct values in any order ---

  bool distinct(size_t place, std::optional<Function>& own) {
    const StatementId id = order_[place];
    const Statement& s = main_.statements[id];
    if (!options_.sinks || options_.mode != Mode::full || s.kind != Statement::assign ||
        s.value != innermost(main_, s.value) || s.targets.size() != 1 || s.targets[0].kind != hir::Target::variable)
      return false;
    const VariableId u = s.targets[0].variable_id();
    const Operand x = main_.expressions[s.value].operands[0];
    if (made_[index(u)] != id || x.kind != Operand::variable || !is_key(x.variable_id())) return false;
    if (!in_any_order(u, x.variable_id())) return false;
    if (!own) own = main_;
    note_once();
    Function& work = *own;
    std::vector<StatementId> more;
    span_ = s.span;
    const VariableId g = emit(work, more, Builtin::group, dict_type(), {x});
    insert(work, id, false, more);
    becomes(work.expressions[s.value], Builtin::keys, {operand(work, g)});
    return true;
  }

  // Is it all the same in which order the places u of distinct x come, and with them the rows that are read there? Rows
  // are counted, reduced and grouped by keys that are equal when they look equal, and groups come by their keys; distinct
  // values are put in order too, and read at places of that order.
  bool in_any_order(VariableId u, VariableId x) const {
    // Vectors of those rows, of which some are distinct; places of an order; columns; and what groups of rows have.
    std::set<VariableId> rows{u}, distinct, places, columns, firsts, members, cells;
    std::map<VariableId, std::vector<VariableId>> keys;  // by list of columns, by group, and by its first rows
    const auto in = [](const std::set<VariableId>& of, const Operand& o) {
      return o.kind == Operand::variable && of.contains(o.variable_id());
    };
    const auto ours = [&](const Operand& o) {
      return in(rows, o) || in(places, o) || in(columns, o) || in(firsts, o) || in(members, o) || in(cells, o) ||
             (o.kind == Operand::variable && keys.contains(o.variable_id()));
    };
    bool any = false;
    for (StatementId id : order_) {
      const Statement& s = main_.statements[id];
      if (std::any_of(s.results.begin(), s.results.end(), ours)) return false;
      if (is_none(s.value)) continue;
      const Expression& e = main_.expressions[innermost(main_, s.value)];
      const auto& of = e.operands;
      if (std::none_of(of.begin(), of.end(), ours)) continue;
      any = true;
      const std::optional<Builtin> b = called_builtin(main_, s);
      const bool plain = b && s.value == innermost(main_, s.value) && s.targets.size() == 1 &&
                         s.targets[0].kind == hir::Target::variable && made_[s.targets[0].id] == id;
      if (!plain) return false;
      const VariableId target = s.targets[0].variable_id();
      const auto all_rows = [&] { return std::all_of(of.begin(), of.end(), [&](const Operand& o) { return in(rows, o); }); };
      switch (*b) {
        case Builtin::len:
          if (!in(rows, of[0]) && !in(places, of[0]) && !in(firsts, of[0])) return false;
          break;
        case Builtin::sum:
        case Builtin::min:
        case Builtin::max:
          if (!in(rows, of[0])) return false;
          break;
        case Builtin::index:
          if (in(rows, of[1]) && !ours(of[0])) {
            rows.insert(target);
            if (of[1].id == index(u) && in({x}, of[0]) && !is_none(made_[index(x)])) distinct.insert(target);
          } else if (in(firsts, of[1])) {
            const auto& known = keys.at(of[1].variable_id());
            if (!in(std::set<VariableId>(known.begin(), known.end()), of[0])) return false;
          } else if (!in(distinct, of[0]) || !in(places, of[1])) {
            return false;
          }
          break;
        case Builtin::order:
          if (!in(distinct, of[0]) || ours(of[1])) return false;
          places.insert(target);
          break;
        case Builtin::compress:
        case Builtin::take:
          if (!in(places, of[1]) || ours(of[0])) return false;
          places.insert(target);
          break;
        case Builtin::list:
        case Builtin::group: {
          const bool listed = b == Builtin::group && in(columns, of[0]);
          if (!listed && !all_rows()) return false;
          std::vector<VariableId> by;
          if (listed) by = keys.at(of[0].variable_id());
          else
            for (const Operand& o : of) by.push_back(o.variable_id());
          if (!std::all_of(by.begin(), by.end(), [&](VariableId k) { return is_key(k); })) return false;
          keys[target] = std::move(by);
          if (b == Builtin::list) columns.insert(target);
          break;
        }
        case Builtin::keys:
        case Builtin::values: {
          const auto known = keys.find(of[0].variable_id());
          if (known == keys.end() || in(columns, of[0]) || in(firsts, of[0])) return false;
          if (b == Builtin::values) members.insert(target);
          else
            keys[target] = known->second, firsts.insert(target);
          break;
        }
        case Builtin::each_right:
          if (applied_builtin(program_, e) != Builtin::index || !in(rows, of[1]) || !in(members, of[2])) return false;
          cells.insert(target);
          break;
        case Builtin::each: {
          const std::optional<Builtin> f = applied_builtin(program_, e);
          const bool counts = f == Builtin::len && (in(members, of[1]) || in(cells, of[1]));
          const bool reduces = (f == Builtin::sum || f == Builtin::min || f == Builtin::max) && in(cells, of[1]);
          if (!counts && !reduces) return false;
          break;
        }
        default: return false;
      }
    }
    return any;
  }

  // --- Runs of sorted rows ---

  struct Group {
    StatementId order = nowhere;
    std::vector<VariableId> keys;
    bool made = false;
    VariableId first{}, rows{};
  };

  bool runs(size_t place, std::optional<Function>& own) {
    const StatementId id = order_[place];
    const Statement& s = main_.statements[id];
    if (s.kind != Statement::assign || s.value != innermost(main_, s.value) || s.targets.size() != 1 ||
        s.targets[0].kind != hir::Target::variable || made_[s.targets[0].id] != id)
      return false;
    const Expression& e = main_.expressions[s.value];
    if (e.operands.size() != 2 || !ascends(e.operands[1])) return false;
    support_ = {id};
    Group g{.order = id, .keys = {}};
    if (const Expression* list = call(e.operands[0], Builtin::list)) {
      for (const Operand& o : list->operands)
        if (!add_key(g, o)) return false;
    } else if (!add_key(g, e.operands[0])) {
      return false;
    }
    group_ = g;
    note_once();
    Function changed = own ? *own : main_;
    bool any = false;
    for (size_t at = place + 1; at < order_.size(); ++at) {
      note_sorted(order_[at]);
      any |= rewrite(order_[at], changed);
    }
    if (!any) return false;
    for (size_t at = order_.size(); at-- > place;)
      if (support_.contains(order_[at])) drop_unread(changed, order_[at]);
    const bool stays = std::any_of(changed.blocks.begin(), changed.blocks.end(), [&](const hir::Block& b) {
      return std::find(b.statements.begin(), b.statements.end(), id) != b.statements.end();
    });
    if (stays) return false;
    own = std::move(changed);
    return true;
  }
  bool add_key(Group& g, const Operand& o) const {
    const std::optional<VariableId> k = root(o);
    if (!k || !is_key(*k)) return false;
    g.keys.push_back(*k);
    return true;
  }
  bool ascends(const Operand& o) const {
    if (o.kind != Operand::literal) return false;
    const auto* ways = std::get_if<std::vector<int64_t>>(&program_.literals[o.literal_id()].values);
    return ways && std::all_of(ways->begin(), ways->end(), [](int64_t up) { return up != 0; });
  }

  bool is_order(const Operand& o) const { return maker(o) == group_.order; }
  // x, where the operand is x in the order.
  std::optional<Operand> sorted(const Operand& o) {
    const StatementId id = maker(o);
    if (is_none(id) || called_builtin(main_, main_.statements[id]) != Builtin::index) return {};
    const Expression* e = &main_.expressions[main_.statements[id].value];
    if (!is_order(e->operands[1])) return {};
    const ShapeId rows = shapes_.statements[group_.order].results[0].shape;
    if (is_none(rows) || shapes_.statements[id].operands[0].shape != rows) return {};
    support_.insert(id);  // its places are there: it cannot fail
    const std::optional<VariableId> x = root(e->operands[0]);  // assigned once, so that it is what it was
    if (!x) return {};
    return Operand{.kind = Operand::variable, .id = index(*x), .name = main_.variables[*x].name};
  }
  // A column in the order may be read by nobody.
  void note_sorted(StatementId id) {
    const Statement& s = main_.statements[id];
    if (s.kind == Statement::assign && s.targets.size() == 1 && s.targets[0].kind == hir::Target::variable &&
        made_[s.targets[0].id] == id)
      (void)sorted({.kind = Operand::variable, .id = s.targets[0].id});
  }
  // Adds the key whose changes these are; false: they are none.
  bool change_of(const Operand& o, std::set<VariableId>& of) {
    if (const Expression* both = call(o, Builtin::or_))
      return change_of(both->operands[0], of) && change_of(both->operands[1], of);
    const Expression* e = call(o, Builtin::neq);
    if (!e) return false;
    std::optional<VariableId> key[2];
    std::set<int64_t> dropped;
    for (size_t k = 0; k < 2; ++k) {
      const Expression* drop = call(e->operands[k], Builtin::drop);
      const std::optional<Operand> x = drop ? sorted(drop->operands[1]) : std::nullopt;
      const std::optional<int64_t> n = drop ? number(drop->operands[0]) : std::nullopt;
      if (!x || !n) return false;
      key[k] = root(*x);
      dropped.insert(*n);
    }
    if (!key[0] || key[0] != key[1] || dropped != std::set<int64_t>{-1, 1}) return false;
    of.insert(*key[0]);
    return true;
  }
  // A mask of the rows that begin a run, or end one.
  bool is_edge(const Operand& o, bool start) {
    const Expression* take = call(o, Builtin::take);
    const Expression* n = take ? call(take->operands[0], Builtin::len) : nullptr;
    if (!n || !(is_order(n->operands[0]) || sorted(n->operands[0]))) return false;
    const Expression* both = call(take->operands[1], Builtin::append);
    if (!both || number(both->operands[start ? 0 : 1]) != 1) return false;
    std::set<VariableId> of;
    return change_of(both->operands[start ? 1 : 0], of) &&
           of == std::set<VariableId>(group_.keys.begin(), group_.keys.end());
  }
  bool at_edge(const Operand& o, bool start) {
    const Expression* where = call(o, Builtin::where);
    return where && is_edge(where->operands[0], start);
  }

  // --- The groups instead ---

  TypeId basic(BasicType t) const { return program_.types->basic(t); }
  TypeId dict_type() { return program_.types->dict(basic(BasicType::i64), basic(BasicType::i64)); }
  void note_once() {
    if (!std::exchange(has_names_, true)) note_names(main_);
  }
  VariableId emit(Function& f, std::vector<StatementId>& to, Builtin b, TypeId type, Operands operands) {
    const VariableId v = fresh(f, "run", type);
    to.push_back(add(f, span_, v, b, std::move(operands)));
    return v;
  }
  void make_group(Function& f) {
    if (group_.made) return;
    group_.made = true;
    std::vector<StatementId> more;
    span_ = f.statements[group_.order].span;
    const TypeId i64 = basic(BasicType::i64);
    const Operand columns = main_.expressions[main_.statements[group_.order].value].operands[0];
    const VariableId g = emit(f, more, Builtin::group, dict_type(), {columns});
    group_.first = emit(f, more, Builtin::keys, i64, {operand(f, g)});
    group_.rows = emit(f, more, Builtin::values, program_.types->list(i64), {operand(f, g)});
    insert(f, group_.order, false, more);
  }
  Operand first(const Function& f) const { return operand(f, group_.first); }

  // The statement as one of the group. False: it is none that runs have.
  bool rewrite(StatementId id, Function& f) {
    const Statement& s = main_.statements[id];
    if (s.kind != Statement::assign || s.targets.size() != 1 || s.targets[0].kind != hir::Target::variable ||
        s.value != innermost(main_, s.value))
      return false;
    const Expression& e = main_.expressions[s.value];
    const std::optional<BasicType> type = basic_of(s.targets[0].variable_id());
    if (e.kind != Expression::call || e.callee.kind != hir::FunctionRef::builtin || !type) return false;
    if (e.callee.builtin_id == Builtin::plus) return *type == BasicType::i64 && lengths(id, e, f);
    if (e.callee.builtin_id != Builtin::index) return false;
    const bool start = at_edge(e.operands[1], true);
    if (!start && !at_edge(e.operands[1], false)) return false;
    if (start && is_order(e.operands[0])) {
      make_group(f);
      return instead(id, f, Builtin::keys, {});
    }
    if (const std::optional<Operand> x = sorted(e.operands[0])) {
      const std::optional<VariableId> key = root(*x);
      const bool same = key && std::find(group_.keys.begin(), group_.keys.end(), *key) != group_.keys.end();
      if (!start && !same) return false;
      make_group(f);
      return instead(id, f, Builtin::index, {*x, first(f)});
    }
    return !start && reduced(id, e, *type, f);
  }
  bool lengths(StatementId id, const Expression& e, Function& f) {
    for (size_t k = 0; k < 2; ++k) {
      const Expression* between = number(e.operands[1 - k]) == 1 ? call(e.operands[k], Builtin::minus) : nullptr;
      if (!between || !at_edge(between->operands[0], false) || !at_edge(between->operands[1], true)) continue;
      make_group(f);
      const TypeId list = program_.types->list(basic(BasicType::i64));
      std::vector<StatementId> more;
      span_ = main_.statements[id].span;
      const VariableId n = emit(f, more, Builtin::each, list, {function(Builtin::len), operand(f, group_.rows)});
      insert(f, id, false, more);
      return instead(id, f, Builtin::raze, {operand(f, n)});
    }
    return false;
  }
  bool reduced(StatementId id, const Expression& e, BasicType type, Function& f) {
    constexpr std::pair<Builtin, Builtin> scans[] = {
        {Builtin::scan_sum, Builtin::sum}, {Builtin::scan_min, Builtin::min}, {Builtin::scan_max, Builtin::max}};
    for (const auto& [scan, reduction] : scans) {
      const Expression* running = call(e.operands[0], scan);
      if (!running || !is_edge(running->operands[1], true)) continue;
      const std::optional<Operand> x = sorted(running->operands[0]);
      const std::optional<BasicType> from = x ? basic_of(x->variable_id()) : std::nullopt;
      if (!from || hir::is_wide(*from) || *from == BasicType::boolean) return false;
      const bool widens = reduction == Builtin::sum && hir::is_integer(*from) && *from != BasicType::i64;
      if (type != (widens ? BasicType::i64 : *from)) return false;
      make_group(f);
      span_ = main_.statements[id].span;
      std::vector<StatementId> more;
      const Operand values = widens ? widened(f, more, *x) : *x;
      const TypeId list = program_.types->list(basic(type));
      const VariableId cells =
          emit(f, more, Builtin::each_right, list, {function(Builtin::index), values, operand(f, group_.rows)});
      const VariableId sums = emit(f, more, Builtin::each, list, {function(reduction), operand(f, cells)});
      insert(f, id, false, more);
      return instead(id, f, Builtin::raze, {operand(f, sums)});
    }
    return false;
  }
  Operand widened(Function& f, std::vector<StatementId>& to, const Operand& x) {
    Expression inner{.kind = Expression::operand, .span = span_};
    inner.operands.push_back(x);
    inner.types.push_back(f.variables[x.variable_id()].type);
    Expression e{.kind = Expression::cast, .span = span_};
    e.inner = f.expressions.add(std::move(inner));
    e.cast_type = basic(BasicType::i64);
    e.types.push_back(e.cast_type);
    const VariableId v = fresh(f, "run", BasicType::i64);
    Statement s{.span = span_};
    assign(f, s, v, f.expressions.add(std::move(e)));
    to.push_back(f.statements.add(std::move(s)));
    return operand(f, v);
  }
  // The statement's value is that call, of a number per group, or the first rows themselves.
  bool instead(StatementId id, Function& f, Builtin b, Operands operands) {
    const hir::ExpressionId value = main_.statements[id].value;
    if (operands.empty()) {
      f.expressions[value].kind = Expression::operand;
      f.expressions[value].callee = {};
      f.expressions[value].operands = {first(f)};
    } else {
      becomes(f.expressions[value], b, std::move(operands));
    }
    return true;
  }

  const Function& main_;
  const Options& options_;
  bool has_names_ = false;
  std::vector<StatementId> made_;          // per variable; none: nowhere, or in several places
  Group group_;                            // that is looked at
  mutable std::set<StatementId> support_;  // what its runs are made of, and what may be gone when nothing reads it
  Span span_;
};

}  // namespace

bool find_group_forms(hir::Program& program, const Function& main, ShapeTable& table, DiagnosticSink& sink,
                      const Options& options, Shapes& shapes, Function& own) {
  const auto calls = [&](Builtin b) {
    return std::any_of(main.expressions.begin(), main.expressions.end(), [&](const Expression& e) {
      return e.kind == Expression::call && e.callee.kind == hir::FunctionRef::builtin && e.callee.builtin_id == b;
    });
  };
  const bool any = calls(Builtin::unique) || (calls(Builtin::order) && calls(Builtin::append));
  return any && GroupForms(program, main, options, shapes, table).find(sink, own);
}

}  // namespace rndn::outliner
