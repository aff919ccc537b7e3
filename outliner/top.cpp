// Top-k: an `order` of which only the first k rows are looked at becomes `GPU.top_lib`, which gives those k rows and no more.
//
// In: main with its calls replaced, and its shapes. Out: a main of which those orders are rewritten, where there are any.
// The permutation o and what is gathered by it element by element (index(x, o), x as long as o) are *heads*: their first k elements stay what
// they are when o is cut behind its k-th. An order is rewritten when all uses of all its heads come to the same with the cut ones:
//   len(head)                  whose uses are `range`, whose positions are only compared with k: lt(positions, k) and its mirror
//                              images, which gives a mask that only `where` and `compress` read; and the smaller of itself and k,
//                              select(lt(len, k), len, k) and its mirror images, which only `take` reads
//   index(x, o)                another head, where x has the length of o, so that no index error is lost
//   index(head, where(mask)), compress(mask, head), compress(mask, positions), take(k, head) with k >= 0
//   take(smaller of len and k, head)
//                              the first k themselves; what becomes of them does not matter
// k is an integer literal, or a scalar that exists before the order; of several literals the largest counts. Where all have the one k, the
// first k of a head are the head, and nothing is compared or selected any more.
// Values are followed by their data objects (shapes.cpp), so that copies and second assignments need no thought.
// Cost: O(orders x statements). Leaves out: programs with control flow in main, where objects merge.
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

class TopFinder : Editing {
 public:
  TopFinder(hir::Program& program, const Function& main, Shapes& shapes, ShapeTable& table)
      : Editing(program, shapes, table), main_(main) {}

  bool find(DiagnosticSink& sink, Function& own, std::vector<TopDecision>& decisions) {
    if (!read_main(main_)) return false;
    for (size_t place = 0; place < order_.size(); ++place) {
      if (called_builtin(main_, statement(place)) != Builtin::order || facts(place).results.size() != 1) continue;
      if (follow(place)) found_.push_back(found());
      if (!limits_.empty()) decisions.push_back({order_[place], reader_, why_});
    }
    if (found_.empty()) return false;
    if (&own != &main_) own = main_;
    for (const Found& f : found_) rewrite(own, f);
    analyse_written(own, found_.front().place, sink);
    return true;
  }

 private:
  enum Role : uint8_t { head, length, positions, mask, selection, fewer, beyond, least };
  struct Limit {
    Operand operand;
    std::optional<int64_t> value;  // a literal's
  };
  struct Found {
    size_t place = 0;
    Limit limit;
    bool same = false;                                  // all limits are this one
    std::vector<std::pair<StatementId, uint32_t>> cut;  // statements that give the first of operand k
  };

  const Statement& statement(size_t place) const { return main_.statements[order_[place]]; }
  const StatementFacts& facts(size_t place) const { return shapes_.statements[order_[place]]; }

  bool refuse(size_t place, std::string_view why) {
    reader_ = order_[place];
    why_ = why;
    return false;
  }

  // Looks at all uses of the order's heads.
  bool follow(size_t place) {
    place_ = place;
    roles_ = {{facts(place).results[0].object, head}};
    order_object_ = facts(place).results[0].object;
    shape_ = facts(place).results[0].shape;
    limits_.clear();
    cut_.clear();
    reader_ = none<StatementId>();
    why_ = {};
    bool fits = true;
    // All of them, so that heads behind a use that does not fit are found too: the order is worth a word then.
    for (size_t at = place + 1; at < order_.size(); ++at)
      if (!use(at) && fits) fits = refuse(at, "it is read beyond its first rows");
    if (limits_.empty() || !fits) return false;
    const Limit& first = limits_.front();
    const auto like_first = [&](const Limit& l) {
      return l.value == first.value &&
             (l.value || (l.operand.kind == first.operand.kind && l.operand.id == first.operand.id));
    };
    same_ = std::all_of(limits_.begin(), limits_.end(), like_first);
    if (!same_ && !std::all_of(limits_.begin(), limits_.end(), [](const Limit& l) { return l.value.has_value(); }))
      return refuse(place, "how many of its rows are read is more than one number");
    return true;
  }

  std::optional<Role> role(const Value& v) const {
    const auto at = is_none(v.object) ? roles_.end() : roles_.find(v.object);
    return at == roles_.end() ? std::nullopt : std::optional(at->second);
  }

  // False: the statement can tell a head from one that is cut.
  bool use(size_t at) {
    const StatementFacts& f = facts(at);
    std::vector<std::optional<Role>> roles;
    bool any = false;
    for (const Value& v : f.operands) {
      roles.push_back(role(v));
      any |= roles.back() && roles.back() != selection;
    }
    const bool selects = std::any_of(roles.begin(), roles.end(), [](const auto& r) { return r == selection; });
    if (!any && !selects) return true;
    const Statement& s = statement(at);
    const bool gives = s.kind == Statement::assign && s.targets.size() == 1 && f.results.size() == 1;
    if (!gives || s.targets[0].kind == hir::Target::global) return !any;
    const Expression& e = main_.expressions[innermost(main_, s.value)];
    if (e.kind == Expression::operand) return e.types.size() == 1 && s.value == innermost(main_, s.value);
    if (e.callee.kind != hir::FunctionRef::builtin) return !any;
    const auto becomes = [&](Role r) {
      if (!is_none(f.results[0].object)) roles_[f.results[0].object] = r;
      return true;
    };
    const auto is = [&](size_t k, Role r) { return k < roles.size() && roles[k] == r; };
    const auto is_free = [&](size_t k) { return k < roles.size() && !roles[k]; };
    // Operand k is a number. A length that is cut compares with it as the whole one does.
    const auto compares = [&](size_t k, Role r, int64_t more) {
      return is(1 - k, length) && number(at, e, k, more) && becomes(r);
    };
    switch (e.callee.builtin_id) {
      case Builtin::len: return is(0, head) ? becomes(length) : !any;
      case Builtin::range: return is(0, length) ? becomes(positions) : !any;
      case Builtin::lt:
        if (compares(1, fewer, 0) || compares(0, beyond, 1)) return true;
        return is(0, positions) && is_free(1) && limit(at, e, 1, 0) ? becomes(mask) : !any;
      case Builtin::leq:
        if (compares(1, fewer, 1) || compares(0, beyond, 0)) return true;
        return is(0, positions) && is_free(1) && limit(at, e, 1, 1) ? becomes(mask) : !any;
      case Builtin::gt:
        if (compares(1, beyond, 1) || compares(0, fewer, 0)) return true;
        return is(1, positions) && is_free(0) && limit(at, e, 0, 0) ? becomes(mask) : !any;
      case Builtin::geq:
        if (compares(1, beyond, 0) || compares(0, fewer, 1)) return true;
        return is(1, positions) && is_free(0) && limit(at, e, 0, 1) ? becomes(mask) : !any;
      case Builtin::select:
        if (is(0, fewer) && is(1, length) && number(at, e, 2, 0)) return becomes(least);
        if (is(0, beyond) && is(2, length) && number(at, e, 1, 0)) return becomes(least);
        return !any;
      case Builtin::where: return is(0, mask) ? becomes(selection) : !any;
      case Builtin::compress:
        if (is(0, mask) && is(1, positions)) return becomes(selection);
        if (is(0, mask) && is(1, head)) return cut(at, 1);
        return !any;
      case Builtin::index:
        if (is(0, head) && is(1, selection)) return cut(at, 0);
        // Rows of the order itself are no error; those of another vector, in the order's order, may be beyond the first.
        if (is_free(0) && f.operands[1].object == order_object_ && f.operands[0].shape == shape_) return becomes(head);
        return !any;
      case Builtin::take:
        if (is(0, least) && is(1, head)) return cut(at, 1);
        return is(1, head) && is_free(0) && limit(at, e, 0, 0) && *limits_.back().value >= 0;
      default: return !any;
    }
  }

  bool cut(size_t at, uint32_t operand) {
    cut_.emplace_back(order_[at], operand);
    return true;
  }

  // Operand k is a number of rows that the program says.
  bool number(size_t at, const Expression& e, size_t k, int64_t more) {
    const std::optional<int64_t> n = facts(at).operands[k].constant;
    return n && *n >= 0 && limit(at, e, k, more);
  }
  // Operand k is a number of rows: `more` is added to it.
  bool limit(size_t at, const Expression& e, size_t k, int64_t more) {
    const Operand& o = e.operands[k];
    const Value& v = facts(at).operands[k];
    const bool takes = e.callee.builtin_id == Builtin::take;
    if (v.constant && *v.constant < INT64_MAX - more) {
      limits_.push_back({o, *v.constant + more});
      return true;
    }
    if (takes || more || v.constant || o.kind != Operand::variable || !is_scalar(table_, v.shape)) return false;
    const hir::TypeId type = main_.variables[o.variable_id()].type;
    if (!program_.types->is_basic(type)) return false;
    const BasicType basic = program_.types->basic_of(type);
    if (basic != BasicType::i64 && basic != BasicType::i32 && basic != BasicType::i16 && basic != BasicType::i8)
      return false;
    // The variable must have the value before the order, and be assigned by nobody else.
    const auto gives = [&](StatementId id) {
      const auto& targets = main_.statements[id].targets;
      return std::any_of(targets.begin(), targets.end(),
                         [&](const hir::Target& t) { return t.kind == hir::Target::variable && t.id == o.id; });
    };
    if (writers_of(o.variable_id()) != 1 ||
        std::none_of(order_.begin(), order_.begin() + static_cast<ptrdiff_t>(place_), gives))
      return false;
    limits_.push_back({o, std::nullopt});
    return true;
  }

  Found found() const {
    const auto most = std::max_element(limits_.begin(), limits_.end(), [](const Limit& a, const Limit& b) {
      return a.value.value_or(0) < b.value.value_or(0);
    });
    return {place_, *most, same_, cut_};
  }

  void rewrite(Function& own, const Found& f) {
    const StatementId id = order_[f.place];
    Expression& e = own.expressions[innermost(own, own.statements[id].value)];
    e.callee = {.kind = hir::FunctionRef::builtin,
                .module = program_.names->intern("GPU"),
                .name = program_.names->intern("top_lib"),
                .builtin_id = Builtin::gpu_top_lib,
                .span = e.callee.span};
    Operand limit = f.limit.operand;
    if (f.limit.value) {
      const hir::LiteralId literal =
          program_.literals.add({.type = program_.types->basic(BasicType::i64),
                                 .values = std::vector<int64_t>{std::max<int64_t>(0, *f.limit.value)},
                                 .span = limit.span});
      limit = {.kind = Operand::literal, .id = index(literal), .span = limit.span};
    }
    e.operands.push_back(limit);
    if (!f.same) return;
    for (const auto& [at, k] : f.cut) {
      Expression& first = own.expressions[innermost(own, own.statements[at].value)];
      const Operand whole = first.operands[k];
      first.kind = Expression::operand;
      first.callee = {};
      first.operands = {whole};
    }
  }

  const Function& main_;
  std::vector<Found> found_;
  // Of the order that is looked at:
  size_t place_ = 0;
  std::map<ObjectId, Role> roles_;
  ObjectId order_object_{};
  ShapeId shape_{};
  std::vector<Limit> limits_;
  std::vector<std::pair<StatementId, uint32_t>> cut_;
  bool same_ = false;
  StatementId reader_ = none<StatementId>();
  std::string_view why_;
};

}  // namespace

bool find_tops(hir::Program& program, const Function& main, ShapeTable& table, DiagnosticSink& sink, Shapes& shapes,
               Function& own, std::vector<TopDecision>& decisions) {
  const bool orders = std::any_of(main.expressions.begin(), main.expressions.end(), [](const Expression& e) {
    return e.kind == Expression::call && e.callee.kind == hir::FunctionRef::builtin &&
           e.callee.builtin_id == Builtin::order;
  });
  return orders && TopFinder(program, main, shapes, table).find(sink, own, decisions);
}

}  // namespace rndn::outliner
