// Joins by unique keys, and membership, as look-ups that kernels do: `GPU.probe` gives every row of the right side the
// first equal row of the left side, or -1, element by element, and so is fused with what is made of it.
//
// In: main with its calls replaced, and its shapes. Out: a main of which those calls are rewritten:
//   pairs = join_index(@eq.., L, R)   row = GPU.probe(n, L.., R..)    n: which join_index of main this is; -2 - n where keys may repeat
//                                     hit = geq(row, 0)
//   l = index(pairs, 0)               l = compress(hit, row)
//   r = index(pairs, 1)               r = where(hit)
//   v = index(w, r)                   v = compress(hit, w)            w: as long as the right side
//   v = index(w, index(r, f))         v = index(u, f), where there is a u = index(w, r)
//   v = index(w, compress(m, r))      v = compress(m, compress(hit, w))
//   c = len(r), len(compress(m, r))   as if of such a v, of w = hit
//   with L = compress(m, k), of a column k of a table, where l is only a place in vectors that m selects, too:
//   pairs = join_index(@eq, L, R)     row = GPU.probe(n, k, m, R)     so that the table of k may be kept between runs
//   a = index(compress(m, x), l)      a = index(x, l)
//   m = member(x, y)                  row = GPU.probe(-1, y, x); m = geq(row, 0)
//   i = index_of(x, y)                row, hit as for member; i = select(hit, row, len(y))
//   m = member(x, (a, b, ..))         m = or(eq(x, a), or(eq(x, b), ..)), up to most_alternatives
// Pairs come by right row, and where no left key repeats there is one at most: the order of rows stays.
// Row numbers and lists of columns that nothing reads any more are gone: as positions they would keep what they are made with from other
// kernels, and selected columns would be stored for their lists alone.
// That no key repeats is taken for granted: the build of the table says when it was wrong, a look-up without a table (on the interpreter, or by
// keys that are too wide) counts as wrong, and the program is then compiled with that join in Options::not_unique (runtime/engine.h). That it was wrong of all rows of a column, where a mask selects some, is Options::not_whole. It does not matter where the right rows are only positions at which `index_a` puts
// a single value, as a semi-join of several columns is written. Membership and index_of are right whatever the keys are.
// Keys are columns of integers, dates and texts, at most six, all rows of which are there: no literals, no single rows.
// Values are followed by their data objects (shapes.cpp), so that copies and second assignments need no thought.
// Cost: O(joins x statements). Leaves out: programs with control flow in main, where objects merge; other predicates than
// equality; longer sets that stand in the program, and sets of floats.
#include <algorithm>
#include <map>
#include <set>

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

constexpr size_t most_alternatives = 8;  // of a set, compared one by one
constexpr int64_t no_join = -1;

struct Join {
  size_t place = 0;
  bool is_join = false;       // else membership or index_of
  int64_t number = no_join;
  std::optional<hir::LiteralId> set;  // membership in a set that stands in the program
  bool once = true;  // it relies on it that no key repeats
  std::vector<VariableId> left, right;
  std::vector<std::pair<StatementId, int64_t>> sides;  // index(pairs, 0 or 1)
  std::vector<StatementId> selections;                 // compress(m, right rows)
  struct Pick {
    StatementId at{};                // index(w, right rows)
    std::vector<VariableId> masks;  // that those right rows were selected by, one after the other
    ObjectId of{};                  // w
    Operand target;
    bool as_it_is = true;  // target is of w's type
  };
  std::vector<Pick> picks;
  struct Count {
    StatementId at{};  // len(right rows)
    std::vector<VariableId> masks;
  };
  std::vector<Count> counts;
  struct Again {
    StatementId at{};  // index(w, index(right rows, f)), where the pick of w is there already
    Operand picked, f;
  };
  std::vector<Again> again;
  std::vector<StatementId> moved;  // index(right rows, f)
  std::vector<size_t> lists;       // places of those of several columns, left and right
  // The left side is compress(mask, key), and its rows are only places in other compressions by that mask.
  struct Whole {
    Operand mask, key;
    struct Pick {
      StatementId at{};  // index(compress(mask, values), left rows)
      Operand values;
    };
    std::vector<Pick> picks;
    std::vector<size_t> selections;  // places of those compressions
  };
  std::optional<Whole> whole;
};

class JoinFinder : Editing {
 public:
  JoinFinder(hir::Program& program, const Function& main, const Options& options, Shapes& shapes, ShapeTable& table)
      : Editing(program, shapes, table), main_(main), options_(options) {}

  bool find(DiagnosticSink& sink, Function& own, std::vector<uint32_t>& joins, std::vector<uint32_t>& whole) {
    if (!read_main(main_)) return false;
    for (size_t place = 0; place < order_.size(); ++place) {
      for (const Value& v : facts(place).results)
        if (!is_none(v.object)) made_.try_emplace(v.object, place);
    }
    uint32_t number = 0;
    for (size_t place = 0; place < order_.size(); ++place) {
      const std::optional<Builtin> b = called_builtin(main_, statement(place));
      if (b == Builtin::join_index) {
        Join join{.place = place, .is_join = true, .number = number};
        if (matches(join) && follow(join) && !is_among(options_.not_unique, number)) {
          if (!is_among(options_.not_whole, number)) join.whole = of_all_rows(join);
          found_.push_back(std::move(join));
        }
        ++number;
      } else if (b == Builtin::member || b == Builtin::index_of) {
        Join join{.place = place};
        if (searches(join) || (b == Builtin::member && has_few_alternatives(join))) found_.push_back(std::move(join));
      }
    }
    if (found_.empty()) return false;
    if (&own != &main_) own = main_;
    note_names(own);
    for (const Join& join : found_) {
      if (join.number != no_join) joins.push_back(static_cast<uint32_t>(join.number));
      if (join.whole) whole.push_back(static_cast<uint32_t>(join.number));
      rewrite(own, join);
    }
    // What one join does not need any more, the next may read.
    for (size_t k = found_.size(); k-- > 0;) drop(own, found_[k]);
    size_t first = found_.front().place;
    for (const Join& join : found_) {
      for (size_t place : join.lists) first = std::min(first, place);
      if (join.whole)
        for (size_t place : join.whole->selections) first = std::min(first, place);
    }
    analyse_written(own, first, sink);
    return true;
  }

 private:
  const Statement& statement(size_t place) const { return main_.statements[order_[place]]; }
  const StatementFacts& facts(size_t place) const { return shapes_.statements[order_[place]]; }
  const Expression& call(size_t place) const {
    return main_.expressions[innermost(main_, statement(place).value)];
  }
  static bool is_among(const std::vector<uint32_t>& numbers, uint32_t number) {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
  }
  bool gives_variable(size_t place) const {
    const Statement& s = statement(place);
    return s.kind == Statement::assign && s.targets.size() == 1 && s.targets[0].kind == hir::Target::variable;
  }

  // A column as the key of a probe.
  bool is_key(const Operand& o, const Value& v) const {
    if (o.kind != Operand::variable || is_none(v.shape) || table_[v.shape].kind != Shape::vector ||
        is_scalar(table_, v.shape))
      return false;
    const hir::TypeId type = main_.variables[o.variable_id()].type;
    if (!program_.types->is_basic(type)) return false;
    const BasicType basic = program_.types->basic_of(type);
    return is_probe_key(basic) && (options_.text_codes || !hir::is_text(basic));
  }
  bool comparable(VariableId x, VariableId y) const {
    const BasicType a = program_.types->basic_of(main_.variables[x].type),
                    b = program_.types->basic_of(main_.variables[y].type);
    const auto is_number = [](BasicType t) {
      return hir::is_integer(t) && t != BasicType::boolean && t != BasicType::character;
    };
    return a == b || (is_number(a) && is_number(b)) || (hir::is_text(a) && hir::is_text(b));
  }

  // The columns of a side of a join: a vector, or the cells of a `list`. They have one shape.
  bool columns_of(size_t place, size_t operand, std::vector<VariableId>& out, std::vector<size_t>& lists,
                  ShapeId& shape) const {
    const Operand* operands = &call(place).operands[operand];
    const Value* values = &facts(place).operands[operand];
    size_t count = 1;
    if (!is_none(values->shape) && table_[values->shape].kind == Shape::list) {
      const auto made = made_.find(values->object);
      if (is_none(values->object) || made == made_.end() ||
          called_builtin(main_, statement(made->second)) != Builtin::list ||
          statement(made->second).value != innermost(main_, statement(made->second).value))
        return false;
      if (gives_variable(made->second)) lists.push_back(made->second);
      operands = call(made->second).operands.begin();
      values = facts(made->second).operands.begin();
      count = call(made->second).operands.size();
    }
    if (count == 0 || count > (hir::row(Builtin::gpu_probe).max_arity - 1u) / 2) return false;
    shape = values[0].shape;
    for (size_t k = 0; k < count; ++k) {
      if (!is_key(operands[k], values[k]) || values[k].shape != shape) return false;
      const VariableId v = operands[k].variable_id();
      if (count > 1 && writers_of(v) != 1) return false;  // the list keeps what it was
      out.push_back(v);
    }
    return true;
  }

  // A join by equality of columns that can be keys.
  bool matches(Join& join) {
    if (!gives_variable(join.place) || statement(join.place).value != innermost(main_, statement(join.place).value))
      return false;
    const Expression& e = call(join.place);
    const size_t functions = e.operands.size() - 2;
    size_t predicates = 0;
    for (size_t k = 0; k < functions; ++k) {
      if (e.operands[k].kind != Operand::literal) return false;
      const auto* refs =
          std::get_if<std::vector<hir::FunctionRef>>(&program_.literals[e.operands[k].literal_id()].values);
      if (!refs) return false;
      predicates += refs->size();
      for (const hir::FunctionRef& f : *refs)
        if (f.kind != hir::FunctionRef::builtin || f.builtin_id != Builtin::eq) return false;
    }
    ShapeId left{};
    if (!columns_of(join.place, functions, join.left, join.lists, left) ||
        !columns_of(join.place, functions + 1, join.right, join.lists, right_shape_) ||
        join.left.size() != join.right.size() || (predicates != 1 && predicates != join.left.size()))
      return false;
    for (size_t k = 0; k < join.left.size(); ++k)
      if (!comparable(join.left[k], join.right[k])) return false;
    return true;
  }

  // False: something else than the two row numbers is made of the pairs.
  bool follow(Join& join) {
    const ObjectId pairs = facts(join.place).results[0].object;
    std::map<ObjectId, std::vector<VariableId>> right_rows;  // and what selected them
    std::set<ObjectId> picked;  // at them
    std::map<ObjectId, std::pair<std::vector<VariableId>, Operand>> moved;  // index(right rows, f), by what selected those rows
    bool once = false;          // how often a row is among them matters
    for (size_t at = join.place + 1; at < order_.size(); ++at) {
      const StatementFacts& f = facts(at);
      const bool is_index = gives_variable(at) && called_builtin(main_, statement(at)) == Builtin::index;
      for (size_t k = 0; k < f.operands.size(); ++k) {
        if (f.operands[k].object != pairs) continue;
        if (!is_index || k != 0 || !f.operands[1].constant || f.operands[1].object == pairs) return false;
        const int64_t side = *f.operands[1].constant;
        if (side != 0 && side != 1) return false;
        join.sides.emplace_back(order_[at], side);
        if (side == 1) right_rows[f.results[0].object];
        once |= side == 0;
      }
      const std::optional<Builtin> reader = called_builtin(main_, statement(at));
      for (size_t k = 0; k < f.operands.size(); ++k) {
        const ObjectId object = f.operands[k].object;
        const bool is_row = right_rows.contains(object);
        if (!is_row && !picked.contains(object)) continue;
        once |= k != 1 || !((is_row && (reader == Builtin::compress || is_index)) ||
                            (reader == Builtin::index_a && sets_one_value(f)));
        if (is_row && is_index) picked.insert(f.results[0].object);
      }
      if (reader == Builtin::len && gives_variable(at))
        if (const auto rows = right_rows.find(f.operands[0].object); rows != right_rows.end())
          join.counts.push_back({order_[at], rows->second});
      if (f.operands.size() != 2 || !gives_variable(at)) continue;
      const auto fixed = [&](const Operand& o) { return o.kind == Operand::variable && writers_of(o.variable_id()) == 1; };
      const Operand target{.kind = Operand::variable, .id = statement(at).targets[0].id, .name = statement(at).targets[0].name};
      const bool as_it_is = statement(at).value == innermost(main_, statement(at).value);  // not converted on the way
      if (const auto from = right_rows.find(f.operands[0].object);
          is_index && as_it_is && from != right_rows.end() && fixed(call(at).operands[1])) {
        moved[f.results[0].object] = {from->second, call(at).operands[1]};
        join.moved.push_back(order_[at]);
      }
      if (const auto by = moved.find(f.operands[1].object); is_index && by != moved.end() && fixed(target)) {
        const auto pick = std::find_if(join.picks.begin(), join.picks.end(), [&](const Join::Pick& p) {
          return p.as_it_is && p.of == f.operands[0].object && p.masks == by->second.first && fixed(p.target);
        });
        if (pick != join.picks.end()) join.again.push_back({order_[at], pick->target, by->second.second});
        continue;
      }
      const auto rows = right_rows.find(f.operands[1].object);
      if (rows == right_rows.end()) continue;
      const Operand& first = call(at).operands[0];
      if (first.kind != Operand::variable) continue;
      if (is_index) {
        if (f.operands[0].shape == right_shape_ && program_.types->is_basic(main_.variables[first.variable_id()].type))
          join.picks.push_back({order_[at], rows->second, f.operands[0].object, target, as_it_is});
      } else if (reader == Builtin::compress && writers_of(first.variable_id()) == 1) {
        std::vector<VariableId> masks = rows->second;
        masks.push_back(first.variable_id());
        join.selections.push_back(order_[at]);
        right_rows[f.results[0].object] = std::move(masks);
      }
    }
    join.once = once;
    return !join.sides.empty();
  }

  // index_a(x, rows, v) of a single v: rows may stand there more than once.
  bool sets_one_value(const StatementFacts& f) const { return is_scalar(table_, f.operands[2].shape); }

  // compress(m, x) that made the object, neither converted nor of variables that change; its place.
  std::optional<size_t> compression(ObjectId object) const {
    const auto made = made_.find(object);
    if (is_none(object) || made == made_.end()) return {};
    const size_t place = made->second;
    if (called_builtin(main_, statement(place)) != Builtin::compress || !gives_variable(place) ||
        statement(place).value != innermost(main_, statement(place).value))
      return {};
    const auto& values = facts(place).operands;
    for (const Operand& o : call(place).operands)
      if (o.kind != Operand::variable || writers_of(o.variable_id()) != 1) return {};
    return is_none(values[0].shape) || values[0].shape != values[1].shape ? std::nullopt : std::optional(place);
  }

  // The column of a table that some rows of are joined.
  std::optional<Join::Whole> of_all_rows(const Join& join) const {
    if (join.left.size() != 1) return {};
    const auto keys = compression(facts(join.place).operands[call(join.place).operands.size() - 2].object);
    if (!keys) return {};
    const auto column = made_.find(facts(*keys).operands[1].object);
    const Operand key = call(*keys).operands[1], mask = call(*keys).operands[0];
    const BasicType type = program_.types->basic_of(main_.variables[key.variable_id()].type);
    if (column == made_.end() || called_builtin(main_, statement(column->second)) != Builtin::column_value ||
        !(hir::is_calendar(type) || hir::is_integer(type)) || type == BasicType::boolean || type == BasicType::character)
      return {};
    Join::Whole whole{.mask = mask, .key = key, .picks = {}, .selections = {*keys}};
    std::set<ObjectId> rows;  // of the left side
    for (const auto& [at, side] : join.sides)
      if (side == 0) rows.insert(shapes_.statements[at].results[0].object);
    for (size_t at = join.place + 1; at < order_.size() && !rows.empty(); ++at) {
      const auto& operands = facts(at).operands;
      for (size_t k = 0; k < operands.size(); ++k) {
        if (!rows.contains(operands[k].object)) continue;
        const std::optional<Builtin> reader = called_builtin(main_, statement(at));
        if (!gives_variable(at)) return {};
        if (reader == Builtin::len) continue;
        if (reader == Builtin::index && k == 1) {
          const auto values = compression(operands[0].object);
          if (!values || facts(*values).operands[0].object != facts(*keys).operands[0].object) return {};
          whole.picks.push_back({order_[at], call(*values).operands[1]});
          whole.selections.push_back(*values);
        } else if (statement(at).value != innermost(main_, statement(at).value) ||
                   !(!reader || (reader == Builtin::index && k == 0) || (reader == Builtin::compress && k == 1))) {
          return {};
        } else {
          rows.insert(facts(at).results[0].object);
        }
      }
    }
    return whole;
  }

  // member(x, y), index_of(x, y)
  bool searches(Join& join) const {
    const Expression& e = call(join.place);
    const StatementFacts& f = facts(join.place);
    if (!gives_variable(join.place) || !is_key(e.operands[0], f.operands[0]) || !is_key(e.operands[1], f.operands[1]))
      return false;
    // A set that stands in the program is small, and tested element by element.
    if (table_[table_[f.operands[1].shape].size].kind == Size::constant) return false;
    join.right = {e.operands[0].variable_id()};
    join.left = {e.operands[1].variable_id()};
    return comparable(join.left[0], join.right[0]);
  }

  bool has_few_alternatives(Join& join) const {
    const Expression& e = call(join.place);
    if (!gives_variable(join.place) || !is_key(e.operands[0], facts(join.place).operands[0]) ||
        e.operands[1].kind != Operand::literal)
      return false;
    const hir::Literal& set = program_.literals[e.operands[1].literal_id()];
    const hir::TypeId type = main_.variables[e.operands[0].variable_id()].type;
    const bool is_one_kind = hir::is_text(program_.types->basic_of(type)) ? set.type == type
                                                                         : std::holds_alternative<std::vector<int64_t>>(set.values);
    if (!is_one_kind || set.size() == 0 || set.size() > most_alternatives) return false;
    join.right = {e.operands[0].variable_id()};
    join.set = e.operands[1].literal_id();
    return true;
  }

  // ---- rewriting

  // The k-th value of a set.
  Operand alternative(hir::LiteralId set, size_t k) {
    hir::Literal one{.type = program_.literals[set].type, .values = {}, .span = program_.literals[set].span};
    std::visit([&]<class T>(const std::vector<T>& v) { one.values = std::vector<T>{v[k]}; },
               program_.literals[set].values);
    return {.kind = Operand::literal, .id = index(program_.literals.add(std::move(one)))};
  }

  // The last comparison, or the last `or`, takes the place of the call.
  void compare_one_by_one(Function& f, const Join& join) {
    const StatementId id = order_[join.place];
    const Span span = f.statements[id].span;
    const size_t count = program_.literals[*join.set].size();
    const Operand x = operand(f, join.right[0]);
    std::vector<StatementId> before;
    const auto equal = [&](size_t k) {
      const VariableId v = fresh(f, "equal", BasicType::boolean);
      before.push_back(add(f, span, v, Builtin::eq, {x, alternative(*join.set, k)}));
      return operand(f, v);
    };
    const auto replace_call = [&](Builtin builtin, Operand a, Operand b) {
      becomes(f.expressions[innermost(f, f.statements[id].value)], builtin, {a, b});
    };
    if (count == 1) {
      replace_call(Builtin::eq, x, alternative(*join.set, 0));
      return;
    }
    Operand found = equal(0);
    for (size_t k = 1; k + 1 < count; ++k) {
      const Operand next = equal(k);
      const VariableId either = fresh(f, "either", BasicType::boolean);
      before.push_back(add(f, span, either, Builtin::or_, {found, next}));
      found = operand(f, either);
    }
    const Operand last = equal(count - 1);
    replace_call(Builtin::or_, found, last);
    insert(f, id, false, before);
  }

  void rewrite(Function& f, const Join& join) {
    if (join.set) return compare_one_by_one(f, join);
    const StatementId id = order_[join.place];
    const Span span = f.statements[id].span;
    const VariableId row = fresh(f, "row", BasicType::i64);
    InlineVector<Operand, 2> columns;
    // Of a join that keys may repeat in: -2 and less.
    columns.push_back(integer(join.once || join.whole ? join.number : -2 - join.number));
    if (join.whole) {
      columns.push_back(join.whole->key);
      columns.push_back(join.whole->mask);
      for (const Join::Whole::Pick& pick : join.whole->picks)
        f.expressions[innermost(f, f.statements[pick.at].value)].operands[0] = pick.values;
    } else {
      for (VariableId v : join.left) columns.push_back(operand(f, v));
    }
    for (VariableId v : join.right) columns.push_back(operand(f, v));
    if (!join.is_join) {
      const ExpressionId inner = innermost(f, f.statements[id].value);
      const bool member = f.expressions[inner].callee.builtin_id == Builtin::member;
      std::vector<StatementId> before{add(f, span, row, Builtin::gpu_probe, std::move(columns))};
      if (member) {
        becomes(f.expressions[inner], Builtin::geq, {operand(f, row), integer(0)});
      } else {
        const VariableId hit = fresh(f, "hit", BasicType::boolean), length = fresh(f, "length", BasicType::i64);
        before.push_back(add(f, span, hit, Builtin::geq, {operand(f, row), integer(0)}));
        before.push_back(add(f, span, length, Builtin::len, {operand(f, join.left[0])}));
        becomes(f.expressions[inner], Builtin::select, {operand(f, hit), operand(f, row), operand(f, length)});
      }
      insert(f, id, false, before);
      return;
    }
    const VariableId hit = fresh(f, "hit", BasicType::boolean);
    assign(f, f.statements[id], row, Builtin::gpu_probe, std::move(columns));
    insert(f, id, true, {add(f, span, hit, Builtin::geq, {operand(f, row), integer(0)})});
    for (const auto& [at, side] : join.sides) {
      Expression& e = f.expressions[innermost(f, f.statements[at].value)];
      if (side == 0)
        becomes(e, Builtin::compress, {operand(f, hit), operand(f, row)});
      else
        becomes(e, Builtin::where, {operand(f, hit)});
    }
    // compress(m, compress(hit, w)) but for its last step; what that keeps of becomes w.
    const auto all_but_last = [&](StatementId at, const std::vector<VariableId>& masks, Operand& values) {
      Operand mask = operand(f, hit);
      const BasicType type = program_.types->basic_of(f.variables[values.variable_id()].type);
      std::vector<StatementId> before;
      for (VariableId next : masks) {
        const VariableId kept = fresh(f, "kept", type);
        before.push_back(add(f, f.statements[at].span, kept, Builtin::compress, {mask, values}));
        values = operand(f, kept);
        mask = operand(f, next);
      }
      insert(f, at, false, before);
      return mask;
    };
    for (const Join::Pick& pick : join.picks) {
      const ExpressionId inner = innermost(f, f.statements[pick.at].value);
      Operand values = f.expressions[inner].operands[0];
      const Operand mask = all_but_last(pick.at, pick.masks, values);
      becomes(f.expressions[inner], Builtin::compress, {mask, values});
    }
    // Positions would keep what they are made with, and so their number, from other kernels.
    for (const Join::Count& count : join.counts) {
      const ExpressionId inner = innermost(f, f.statements[count.at].value);
      Operand values = operand(f, hit);
      const Operand mask = all_but_last(count.at, count.masks, values);
      const VariableId kept = fresh(f, "kept", BasicType::boolean);
      insert(f, count.at, false, {add(f, f.statements[count.at].span, kept, Builtin::compress, {mask, values})});
      f.expressions[inner].operands[0] = operand(f, kept);
    }
    for (const Join::Again& one : join.again)
      becomes(f.expressions[innermost(f, f.statements[one.at].value)], Builtin::index, {one.picked, one.f});
  }

  void drop(Function& f, const Join& join) {
    for (size_t k = join.moved.size(); k-- > 0;) drop_unread(f, join.moved[k]);
    for (size_t k = join.selections.size(); k-- > 0;) drop_unread(f, join.selections[k]);
    for (const auto& [at, side] : join.sides) drop_unread(f, at);
    for (size_t place : join.lists) drop_unread(f, order_[place]);
    if (join.whole)
      for (size_t place : join.whole->selections) drop_unread(f, order_[place]);
  }

  const Function& main_;
  const Options& options_;
  std::map<ObjectId, size_t> made_;  // by which statement, as a place in order_
  std::vector<Join> found_;
  ShapeId right_shape_{};  // of the join that is looked at
};

}  // namespace

bool find_probes(hir::Program& program, const Function& main, ShapeTable& table, DiagnosticSink& sink,
                 const Options& options, Shapes& shapes, Function& own, std::vector<uint32_t>& joins,
                 std::vector<uint32_t>& whole) {
  const bool any = std::any_of(main.expressions.begin(), main.expressions.end(), [](const Expression& e) {
    return e.kind == Expression::call && e.callee.kind == hir::FunctionRef::builtin &&
           (e.callee.builtin_id == Builtin::join_index || e.callee.builtin_id == Builtin::member ||
            e.callee.builtin_id == Builtin::index_of);
  });
  return any && JoinFinder(program, main, options, shapes, table).find(sink, own, joins, whole);
}

}  // namespace rndn::outliner
