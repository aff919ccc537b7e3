// Enums that a program makes and looks at as row numbers only: values(enum(k, x)) is index_of(x, k), which the device has.
//
// In: main with its calls replaced, and its shapes. Out: a main without such enums, where there are any. An enum over a vector of keys that have no
// order of their own for NaN and zeros (all but floats) is replaced when every use of it is `values`; the keys and values are read where it was made, so
// that later assignments to their variables do not matter. `enum` and `index_of` agree on the first of equal keys, and on the number of keys for what is
// not among them.
// Cost: O(enums x statements). Leaves out: programs with control flow in main, keys of several columns, and enums that are fetched or stored.
#include <algorithm>

#include "outliner/editing.h"

namespace rndn::outliner {
namespace {

using hir::Builtin;
using hir::Expression;
using hir::Function;
using hir::Operand;
using hir::Statement;
using hir::StatementId;

class EnumFinder : Editing {
 public:
  EnumFinder(hir::Program& program, const Function& main, Shapes& shapes, ShapeTable& table)
      : Editing(program, shapes, table), main_(main) {}

  bool find(DiagnosticSink& sink, Function& own) {
    if (!read_main(main_)) return false;
    struct Found {
      StatementId made;
      std::vector<StatementId> uses, copies;
    };
    std::vector<Found> found;
    size_t first = order_.size();
    for (size_t place = 0; place < order_.size(); ++place) {
      if (!is_plain(place)) continue;
      Found f{order_[place], {}, {}};
      if (!uses_of(place, f.uses, f.copies)) continue;
      first = std::min(first, place);
      found.push_back(std::move(f));
    }
    if (found.empty()) return false;
    if (&own != &main_) own = main_;
    note_names(own);
    for (const Found& f : found) {
      rewrite(own, f.made, f.uses);
      for (size_t k = f.copies.size(); k-- > 0;) drop_unread(own, f.copies[k]);
      drop_unread(own, f.made);
    }
    analyse_written(own, first, sink);
    return true;
  }

 private:
  const Statement& statement(size_t place) const { return main_.statements[order_[place]]; }
  const StatementFacts& facts(size_t place) const { return shapes_.statements[order_[place]]; }
  const Expression& call(const Function& f, const Statement& s) const { return f.expressions[innermost(f, s.value)]; }

  // An enum over a vector, for a variable.
  bool is_plain(size_t place) const {
    const Statement& s = statement(place);
    if (called_builtin(main_, s) != Builtin::enum_ || !gives_variable(place)) return false;
    const auto& operands = call(main_, s).operands;
    return std::all_of(operands.begin(), operands.end(), [&](const Operand& o) {
      if (o.kind != Operand::variable) return false;
      const hir::TypeId type = main_.variables[static_cast<hir::VariableId>(o.id)].type;
      return program_.types->is_basic(type) && !hir::is_float(program_.types->basic_of(type));
    });
  }
  bool gives_variable(size_t place) const {
    const Statement& s = statement(place);
    return s.kind == Statement::assign && s.targets.size() == 1 && s.targets[0].kind == hir::Target::variable &&
           facts(place).results.size() == 1 && !is_none(facts(place).results[0].object);
  }

  // False: something else than `values` looks at it, or at a copy.
  bool uses_of(size_t made, std::vector<StatementId>& uses, std::vector<StatementId>& copies) const {
    const ObjectId object = facts(made).results[0].object;
    for (size_t at = 0; at < order_.size(); ++at) {
      const auto& operands = facts(at).operands;
      if (std::none_of(operands.begin(), operands.end(), [&](const Value& v) { return v.object == object; })) continue;
      if (gives_variable(at) && facts(at).results[0].object == object) {
        copies.push_back(order_[at]);
      } else if (called_builtin(main_, statement(at)) == Builtin::values) {
        uses.push_back(order_[at]);
      } else {
        return false;
      }
    }
    return !uses.empty();
  }

  void rewrite(Function& own, StatementId made, const std::vector<StatementId>& uses) {
    const hir::VariableId rows = fresh(own, "rows", hir::BasicType::i64);
    const Operands pair = call(own, own.statements[made]).operands;
    insert(own, made, true, {add(own, own.statements[made].span, rows, Builtin::index_of, {pair[1], pair[0]})});
    for (StatementId use : uses) {
      Expression& e = own.expressions[innermost(own, own.statements[use].value)];
      e.kind = Expression::operand;
      e.callee = {};
      e.operands = {operand(own, rows)};
    }
  }

  const Function& main_;
};

}  // namespace

bool find_enums(hir::Program& program, const Function& main, ShapeTable& table, DiagnosticSink& sink, Shapes& shapes,
                Function& own) {
  const bool any = std::any_of(main.expressions.begin(), main.expressions.end(), [](const Expression& e) {
    return e.kind == Expression::call && e.callee.kind == hir::FunctionRef::builtin &&
           e.callee.builtin_id == Builtin::enum_;
  });
  return any && EnumFinder(program, main, shapes, table).find(sink, own);
}

}  // namespace rndn::outliner
