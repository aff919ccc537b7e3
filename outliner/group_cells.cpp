// Element-wise work on the cells that groups gather becomes work on whole columns, so that groups are only reduced, which
// no list of rows is made for (grouping_fusion.cpp, sinks.cpp).
//
// In: main with its calls replaced, and its shapes. Out: a main in which, for rows = values(group(k..)),
//   c = each_right(@index, x, rows)          x: as long as the keys
//   e = each_item(@f, c, d), each_left,      y = f(x, z); e = each_right(@index, y, rows)
//       each_right, each of element-wise f
//   p = each_item(@compress, m, c), of which
//   each(@len, p)                            each(@sum, each_right(@index, select(m, 1, 0), rows))
//   each(@sum, p)                            each(@sum, each_right(@index, select(m, x, 0), rows))
// The cells of a group's rows are all rows, each once: f sees the same elements, in another order. Zeros change no exact
// sum. It is only done where everything that reads the rows of a group is a reduction or one of the above: otherwise
// the list is made anyhow.
// Cost: O(groups x statements). Leaves out: programs with control flow in main, variables with several assignments,
// functions that may fail, extremes of kept elements, of which there may be none.
#include <algorithm>
#include <map>

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

class GroupCells : Editing {
 public:
  GroupCells(hir::Program& program, const Function& main, Shapes& shapes, ShapeTable& table)
      : Editing(program, shapes, table), work_(main) {}

  bool find(DiagnosticSink& sink, Function& own) {
    if (!read_main(work_)) return false;
    size_t first = order_.size();
    for (size_t place = 0; place < order_.size(); ++place)
      if (is_plain(order_[place]) && called_builtin(work_, work_.statements[order_[place]]) == Builtin::values &&
          of_group(place))
        first = std::min(first, place);
    if (first == order_.size()) return false;
    own = std::move(work_);
    analyse_written(own, first, sink);
    return true;
  }

 private:
  // Cells of the group's rows: of x at all of them, or where the mask is 1.
  struct Cells {
    Operand x;
    TypeId type{};
    std::optional<Operand> mask;
  };

  bool is_plain(StatementId id) const {
    const Statement& s = work_.statements[id];
    return s.kind == Statement::assign && s.targets.size() == 1 && s.targets[0].kind == hir::Target::variable &&
           writers_of(s.targets[0].variable_id()) == 1 && s.value == innermost(work_, s.value);
  }
  const Expression& call(StatementId id) const { return work_.expressions[work_.statements[id].value]; }
  bool is_basic(const Operand& o) const {
    return o.kind == Operand::variable && program_.types->is_basic(work_.variables[o.variable_id()].type);
  }
  // One element, for all cells.
  bool is_single(const Operand& o, ShapeId shape) const {
    if (o.kind == Operand::literal) return program_.literals[o.literal_id()].size() == 1;
    return is_basic(o) && !is_none(shape) && is_scalar(table_, shape);
  }
  TypeId basic(BasicType t) const { return program_.types->basic(t); }

  // The shape of the keys of the group whose rows the statement gives; none: unknown.
  ShapeId keys_of(size_t place) const {
    const Operand& dict = call(order_[place]).operands[0];
    for (size_t at = 0; at < place; ++at) {
      const StatementId id = order_[at];
      if (!is_plain(id) || work_.statements[id].targets[0].id != dict.id || dict.kind != Operand::variable ||
          called_builtin(work_, work_.statements[id]) != Builtin::group)
        continue;
      ShapeId keys = shapes_.statements[id].operands[0].shape;
      if (!is_none(keys) && table_[keys].kind == Shape::list && !table_[keys].parts.empty())
        keys = table_[keys].parts[0];
      return !is_none(keys) && table_[keys].kind == Shape::vector ? keys : none<ShapeId>();
    }
    return none<ShapeId>();
  }

  struct Step {
    StatementId id{};
    enum { apply, keep, count, add } kind = apply;
    Cells cells;        // of its operand, or what it makes
    Operands operands;  // apply: of the call on columns
    Builtin f{};
  };

  bool of_group(size_t place) {
    const uint32_t rows = work_.statements[order_[place]].targets[0].id;
    const size_t variables = work_.variables.size();
    std::map<uint32_t, Cells> known;
    std::vector<Step> steps;
    const auto is_work = [](const Step& step) { return step.kind != Step::keep; };
    if (!find_steps(place, rows, known, steps) || std::none_of(steps.begin(), steps.end(), is_work)) {
      work_.variables.resize(variables);
      return false;
    }
    const Operand list{
        .kind = Operand::variable, .id = rows, .name = work_.variables[static_cast<VariableId>(rows)].name};
    for (const Step& step : steps) rewrite(step, list);
    for (size_t at = order_.size(); at-- > place;)  // what was gathered, or kept, and is read no more
      if (is_plain(order_[at]) && known.contains(work_.statements[order_[at]].targets[0].id))
        drop_unread(work_, order_[at]);
    return true;
  }

  // What becomes of the group's rows. False: they are read by something else.
  bool find_steps(size_t place, uint32_t rows, std::map<uint32_t, Cells>& known, std::vector<Step>& steps) {
    const ShapeId keys = keys_of(place);
    if (is_none(keys) || is_scalar(table_, keys)) return false;
    note();
    for (size_t at = place + 1; at < order_.size(); ++at) {
      const StatementId id = order_[at];
      const Statement& s = work_.statements[id];
      const auto is_rows = [&](const Operand& o) { return o.kind == Operand::variable && o.id == rows; };
      const auto ours = [&](const Operand& o) {
        return is_rows(o) || (o.kind == Operand::variable && known.contains(o.id));
      };
      if (std::any_of(s.results.begin(), s.results.end(), ours)) return false;
      if (is_none(s.value)) continue;
      const Expression& e = work_.expressions[innermost(work_, s.value)];
      if (std::none_of(e.operands.begin(), e.operands.end(), ours)) continue;
      const std::optional<Builtin> form = called_builtin(work_, s),
                                   f = form ? applied_builtin(program_, e) : std::nullopt;
      if (!f || !is_plain(id)) return false;
      const auto& facts = shapes_.statements[id].operands;
      const uint32_t target = s.targets[0].id;
      if (form == Builtin::each && is_rows(e.operands[1])) {
        if (f != Builtin::len) return false;
      } else if (form == Builtin::each_right && is_rows(e.operands[2])) {
        const Operand& x = e.operands[1];
        if (f != Builtin::index || !is_basic(x) || writers_of(x.variable_id()) != 1 || facts[1].shape != keys) return false;
        known[target] = {x, work_.variables[x.variable_id()].type, {}};
      } else if (form == Builtin::each && hir::row(*f).has(hir::traits::reduction)) {
        const Cells& of = known.at(e.operands[1].id);
        if (!of.mask) continue;
        const BasicType type = program_.types->basic_of(of.type);
        const bool adds = f == Builtin::sum && type != BasicType::boolean && !hir::is_wide(type) &&
                          (hir::is_integer(type) || hir::is_float(type));
        if (f != Builtin::len && !adds) return false;
        steps.push_back({.id = id, .kind = adds ? Step::add : Step::count, .cells = of, .operands = {}});
      } else {
        const hir::Type& type = (*program_.types)[work_.variables[s.targets[0].variable_id()].type];
        if (type.kind != hir::TypeKind::list || !program_.types->is_basic(type.components[0])) return false;
        Step step{.id = id, .cells = {{}, type.components[0], {}}, .f = *f};
        for (size_t k = 1; k < e.operands.size(); ++k) {
          const Operand& o = e.operands[k];
          const auto of = o.kind == Operand::variable ? known.find(o.id) : known.end();
          if (of != known.end() && of->second.mask) return false;
          const bool split = form != Builtin::each_left ? form != Builtin::each_right || k == 2 : k == 1;
          if (of == known.end() ? !is_single(o, facts[k].shape) : !split) return false;
          step.operands.push_back(of == known.end() ? o : of->second.x);
        }
        const bool all = std::all_of(e.operands.begin() + 1, e.operands.end(), ours);
        if (f == Builtin::compress && form == Builtin::each_item && all) {
          step.kind = Step::keep;
          step.cells.x = step.operands[1], step.cells.mask = step.operands[0];
        } else if (!hir::is_each(*form) || !is_elementwise(*f) ||
                   hir::can_fail(*f, program_.types->basic_of(step.cells.type))) {
          return false;
        } else {
          const VariableId y = fresh(work_, "column", step.cells.type);
          step.cells.x = operand(work_, y);
        }
        known[target] = step.cells;
        steps.push_back(std::move(step));
      }
    }
    return true;
  }

  void note() {
    if (!noted_) note_names(work_);
    noted_ = true;
  }
  void rewrite(const Step& step, const Operand& rows) {
    std::vector<StatementId> more;
    const Span span = work_.statements[step.id].span;
    const hir::ExpressionId value = work_.statements[step.id].value;
    if (step.kind == Step::keep) return;
    if (step.kind == Step::apply) {
      more.push_back(add(work_, span, step.cells.x.variable_id(), step.f, step.operands));
      insert(work_, step.id, false, more);
      becomes(work_.expressions[value], Builtin::each_right, {function(Builtin::index), step.cells.x, rows});
      return;
    }
    const bool counts = step.kind == Step::count;
    const TypeId type = counts ? basic(BasicType::i64) : step.cells.type;
    const bool is_float = hir::is_float(program_.types->basic_of(type));
    hir::Literal zero{.type = type, .values = std::vector<int64_t>{0}};
    if (is_float) zero.values = std::vector<double>{0};
    const VariableId kept = fresh(work_, "kept", type), cells = fresh(work_, "cells", program_.types->list(type));
    more.push_back(add(work_, span, kept, Builtin::select,
                       {*step.cells.mask, counts ? integer(1) : step.cells.x, literal(std::move(zero))}));
    more.push_back(
        add(work_, span, cells, Builtin::each_right, {function(Builtin::index), operand(work_, kept), rows}));
    insert(work_, step.id, false, more);
    becomes(work_.expressions[value], Builtin::each, {function(Builtin::sum), operand(work_, cells)});
  }

  Function work_;  // main, as it becomes
  bool noted_ = false;
};

}  // namespace

bool find_group_cells(hir::Program& program, const Function& main, ShapeTable& table, DiagnosticSink& sink,
                      Shapes& shapes, Function& own) {
  bool groups = false, lists = false;
  for (const Expression& e : main.expressions) {
    if (e.kind != Expression::call || e.callee.kind != hir::FunctionRef::builtin) continue;
    groups |= e.callee.builtin_id == Builtin::group;
    lists |= hir::is_each(e.callee.builtin_id);
  }
  return groups && lists && GroupCells(program, main, shapes, table).find(sink, own);
}

}  // namespace rndn::outliner
