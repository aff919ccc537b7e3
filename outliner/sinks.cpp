// Groups as sinks of the kernels that make their keys: `GPU.fold` reduces a value per group while the kernel scans, so
// that neither keys nor values are stored. An entry stands for a key that there may be, and empty ones are dropped by
// the compress that reads them.
//
// In: main with its calls replaced, and its shapes. Out: a main of which those groups are rewritten:
//   g = group(list(k..))                   row_t = GPU.fold(position, @min, n, k..)   n: which group of main this is
//                                          there = lt(row_t, none)
//   first = keys(g)                        first = compress(there, row_t)
//   s = raze(each(@f, each_right(@index, v, values(g))))
//                                          t = GPU.fold(v, @f, n, k..); s = compress(there, t)       f: sum, min, max
//   s = raze(each(@len, values(g)))        t = GPU.fold(k, @len, n, k..); s = compress(there, t)
//   the same, sum of f64                   p = GPU.sum_part(v, 0), q, r and u with 1 to 3; s = compress(there,
//                                          GPU.sum_of_parts(GPU.fold(p, @sum, n, k..), .. q, .. r, .. u))
//   the same, avg of f64                   that sum by GPU.fold(k, @len, n, k..)
//   the same, min of f32 or f64            i = GPU.order_key(v, 1), of max 0; s = compress(there, GPU.of_order_key(GPU.fold(i, @min, n, k..)))
// What several of them reduce alike, a sum and an average of one column, is folded once.
//   x = index(w, first)                    x = w at the rows `first`
// `position` is the row's number before any selection: where(m) for keys of compress(m, ..), and compress(m2, where(m))
// for those of a selection of that. So the first rows of groups are rows of columns, and what the program takes at them
// is evaluated anew there from columns: element-wise work, look-ups, gathers. Where that cannot be done, or something
// else reads a first row of a selection, the group stays.
// Groups ascend by their keys, as entries do (docs/horseir.md, "group").
// Keys are integers, dates and texts of columns, at most six; values are integers, of extremes such of 32 and 64 bits, dates
// and floats, of sums also truth values, sums and averages also f64, whose parts take any order (libraries/base/numbers/sum_parts.h). Where a number has no such parts, the run notices
// it, and the program is compiled again without those folds. How entries are found is the runtime's choice (runtime/run/folds.cpp); what it cannot fold well, many rows that
// look-ups select or more groups than a table is worth, is compiled again without it (runtime/engine.h).
// Values are followed by their data objects (shapes.cpp). Cost: O(groups x statements).
// Leaves out: programs with control flow in main, sums of f32, averages of integers, distinct values, variables with several
// assignments.
#include <map>
#include <set>
#include <tuple>

#include "libraries/base/errors/check.h"
#include "libraries/base/numbers/sum_parts.h"
#include "outliner/editing.h"

namespace rndn::outliner {

bool is_fold_value(hir::Builtin reduce, hir::BasicType type) {
  if (reduce == hir::Builtin::len) return true;
  if (reduce == hir::Builtin::sum)
    return type == hir::BasicType::boolean || (hir::is_integer(type) && hir::row(type).device_width <= 8);
  return (hir::is_integer(type) || hir::is_calendar(type)) && hir::row(type).device_width >= 4;
}

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

constexpr size_t most_folds = 24, most_clones = 200;
// What stands in an entry that no row has: more than any row number (ptx/codegen/sink.cpp).
constexpr int64_t no_row = 0x7FFFFFFF7FFFFFFF;

struct Sink {
  size_t place = 0;
  int64_t number = 0;
  ShapeId shape{}, root{};  // of the keys; of the columns that they are selected from
  std::vector<VariableId> keys, masks;  // the masks, outermost selection first
  std::vector<size_t> firsts;           // keys(g)
  // A reduction of values, whatever variables they are in: made once. Of a number of rows the object is none.
  using Reduction = std::tuple<Builtin, ObjectId, BasicType>;
  static bool in_parts(const Reduction& r) { return std::get<0>(r) == Builtin::sum && std::get<2>(r) == BasicType::f64; }
  static bool by_keys(const Reduction& r) { return std::get<0>(r) != Builtin::sum && hir::is_float(std::get<2>(r)); }
  static constexpr Reduction count{Builtin::len, none<ObjectId>(), BasicType::i64};
  struct Fold {
    size_t raze = 0;
    Reduction reduction;
    VariableId values{};
    bool average = false;  // the sum by the number of rows
  };
  std::vector<Fold> folds;
  std::set<Reduction> reductions;
  size_t folded = 0;  // how many calls of GPU.fold they are
  std::vector<size_t> picks, dead;  // index(w, first); what nothing reads any more
};

class Finder : Editing {
 public:
  Finder(hir::Program& program, const Function& main, const Options& options, Shapes& shapes, ShapeTable& table)
      : Editing(program, shapes, table), main_(main), options_(options) {}

  bool find(DiagnosticSink& sink, Function& own, std::vector<uint32_t>& folds, std::vector<uint32_t>& float_folds) {
    if (!read_main(main_)) return false;
    for (size_t place = 0; place < order_.size(); ++place) {
      for (const Value& v : facts(place).results)
        if (!is_none(v.object)) made_.try_emplace(v.object, place);
    }
    uint32_t number = 0;
    for (size_t place = 0; place < order_.size(); ++place) {
      if (called_builtin(main_, statement(place)) != Builtin::group) continue;
      Sink s{.place = place, .number = number++};
      const auto& stays = options_.not_folded;
      if (std::find(stays.begin(), stays.end(), s.number) != stays.end()) continue;
      if (!is_sink(s)) continue;
      for (const std::vector<size_t>* places : {&s.firsts, &s.picks}) rewritten_.insert(places->begin(), places->end());
      for (const Sink::Fold& fold : s.folds) rewritten_.insert(fold.raze);
      found_.push_back(std::move(s));
    }
    if (found_.empty()) return false;
    const bool copied = &own != &main_;
    if (copied) own = main_;
    note_names(own);
    // What the statements were stays readable while they are rewritten.
    if (!copied) before_ = main_;
    source_ = copied ? &main_ : &before_;
    for (const Sink& s : found_) {
      folds.push_back(static_cast<uint32_t>(s.number));
      if (std::any_of(s.folds.begin(), s.folds.end(), [](const Sink::Fold& f) { return Sink::in_parts(f.reduction); }))
        float_folds.push_back(static_cast<uint32_t>(s.number));
      rewrite(own, s);
    }
    size_t first = order_.size();  // that is not what it was
    for (const Sink& s : found_) {
      first = std::min(first, s.place);
      for (size_t at : s.dead) first = std::min(first, at);
    }
    analyse_written(own, first, sink);
    return true;
  }

 private:
  const Function& source() const { return source_ ? *source_ : main_; }
  const Statement& statement(size_t place) const { return source().statements[order_[place]]; }
  const StatementFacts& facts(size_t place) const { return shapes_.statements[order_[place]]; }
  const Expression& call(size_t place) const {
    return source().expressions[innermost(source(), statement(place).value)];
  }
  std::optional<Builtin> builtin(size_t place) const { return called_builtin(source(), statement(place)); }
  // x = @builtin(..) without a cast, x assigned nowhere else.
  bool is_plain(size_t place) const {
    const Statement& s = statement(place);
    return s.kind == Statement::assign && s.targets.size() == 1 && s.targets[0].kind == hir::Target::variable &&
           writers_of(s.targets[0].variable_id()) == 1 && s.value == innermost(source(), s.value);
  }
  ObjectId result(size_t place) const { return facts(place).results[0].object; }
  BasicType type_of(VariableId v) const { return program_.types->basic_of(source().variables[v].type); }
  // A vector in a variable that keeps its value.
  bool is_fixed(const Operand& o, const Value& v) const {
    return o.kind == Operand::variable && writers_of(o.variable_id()) == 1 && !is_none(v.shape) && !is_none(v.object) &&
           table_[v.shape].kind == Shape::vector &&
           program_.types->is_basic(source().variables[o.variable_id()].type);
  }

  // Every element is one of a column, so that texts have codes of their own.
  bool is_of_columns(const Operand& o, const Value& v) const {
    if (o.kind != Operand::variable || is_none(v.object)) return false;
    const auto made = made_.find(v.object);
    if (made == made_.end()) return false;
    const Expression& e = call(made->second);
    const auto& operands = facts(made->second).operands;
    if (e.kind == Expression::operand) return is_of_columns(e.operands[0], operands[0]);
    const std::optional<Builtin> b = builtin(made->second);
    if (b == Builtin::compress) return is_of_columns(e.operands[1], operands[1]);
    if (b == Builtin::index) return is_of_columns(e.operands[0], operands[0]);
    if (b == Builtin::raze) {  // of cells that a group gathers
      const auto list = made_.find(operands[0].object);
      if (is_none(operands[0].object) || list == made_.end() || builtin(list->second) != Builtin::each_right ||
          applied_builtin(program_, call(list->second)) != Builtin::index)
        return false;
      return is_of_columns(call(list->second).operands[1], facts(list->second).operands[1]);
    }
    return b && hir::row(*b).device == hir::Device::cpu;
  }

  bool find_keys(Sink& s) {
    const Operand* operands = &call(s.place).operands[0];
    const Value* values = &facts(s.place).operands[0];
    size_t count = 1;
    if (!is_none(values->shape) && table_[values->shape].kind == Shape::list) {
      const auto made = made_.find(values->object);
      if (is_none(values->object) || made == made_.end() || builtin(made->second) != Builtin::list ||
          !is_plain(made->second))
        return false;
      s.dead.push_back(made->second);
      operands = call(made->second).operands.begin();
      values = facts(made->second).operands.begin();
      count = call(made->second).operands.size();
    }
    if (count == 0 || 3 + count > hir::row(Builtin::gpu_fold).max_arity) return false;
    s.shape = values[0].shape;
    for (size_t k = 0; k < count; ++k) {
      if (!is_fixed(operands[k], values[k]) || values[k].shape != s.shape || is_scalar(table_, s.shape)) return false;
      const VariableId v = operands[k].variable_id();
      const BasicType type = type_of(v);
      if (!is_probe_key(type)) return false;
      if (hir::is_text(type) && (!options_.text_codes || !is_of_columns(operands[k], values[k]))) return false;
      s.keys.push_back(v);
    }
    // The masks of the selections that the keys are of.
    SizeId size = table_[s.shape].size;
    for (; !is_none(size) && table_[size].kind == Size::compressed; size = table_[size].base) {
      const ObjectId mask = table_[size].object;
      size_t place = 0;
      for (; place < s.place; ++place) {
        const std::optional<Builtin> b = builtin(place);
        if ((b != Builtin::compress && b != Builtin::where) || facts(place).operands[0].object != mask) continue;
        if (is_fixed(call(place).operands[0], facts(place).operands[0])) break;
      }
      if (place == s.place) return false;
      s.masks.insert(s.masks.begin(), call(place).operands[0].variable_id());
    }
    if (is_none(size)) return false;
    s.root = table_.vector(size);
    return !is_scalar(table_, s.root);
  }

  bool is_float_fold(Builtin f, BasicType type) const {
    if (f == Builtin::min || f == Builtin::max) return hir::is_float(type);
    return (f == Builtin::sum || f == Builtin::avg) && type == BasicType::f64 && !options_.exact_sums;
  }

  // raze(each(@f, ..)) of the object that `each` reads as its operand 1.
  bool find_reduction(Sink& s, size_t each, VariableId values, ObjectId object) {
    if (!is_plain(each)) return false;
    const std::optional<Builtin> f = applied_builtin(program_, call(each));
    if (!f || !(is_fold_value(*f, type_of(values)) || is_float_fold(*f, type_of(values)))) return false;
    const bool average = *f == Builtin::avg;
    if (*f != Builtin::len && *f != Builtin::sum && *f != Builtin::min && *f != Builtin::max && !average) return false;
    s.dead.push_back(each);
    bool any = false;
    for (size_t at = each + 1; at < order_.size(); ++at) {
      const auto& operands = facts(at).operands;
      for (size_t k = 0; k < operands.size(); ++k) {
        if (operands[k].object != result(each)) continue;
        if (builtin(at) != Builtin::raze || !is_plain(at)) return false;
        const hir::TypeId type = source().variables[statement(at).targets[0].variable_id()].type;
        if (!program_.types->is_basic(type)) return false;
        const BasicType result = program_.types->basic_of(type);
        const bool widens = *f == Builtin::sum && type_of(values) != BasicType::i64 && !hir::is_float(type_of(values));
        const BasicType own = *f == Builtin::len ? BasicType::i64 : widens ? BasicType::i32 : type_of(values);
        if (result != own) return false;
        const Sink::Reduction reduction =
            *f == Builtin::len ? Sink::count : Sink::Reduction(average ? Builtin::sum : *f, object, own);
        s.folds.push_back({at, reduction, values, average});
        if (s.reductions.insert(reduction).second) s.folded += Sink::in_parts(reduction) ? sum_parts::count : 1;
        if (average && s.reductions.insert(Sink::count).second) ++s.folded;
        any = true;
      }
    }
    return any;
  }

  bool find_rows(Sink& s, size_t values_at) {
    const ObjectId rows = result(values_at);
    s.dead.push_back(values_at);
    for (size_t at = values_at + 1; at < order_.size(); ++at) {
      const auto& operands = facts(at).operands;
      for (size_t k = 0; k < operands.size(); ++k) {
        if (operands[k].object != rows) continue;
        if (builtin(at) == Builtin::each && k == 1) {
          if (applied_builtin(program_, call(at)) != Builtin::len || !find_reduction(s, at, s.keys[0], none<ObjectId>()))
            return false;
          continue;
        }
        if (builtin(at) != Builtin::each_right || k != 2 || !is_plain(at) ||
            applied_builtin(program_, call(at)) != Builtin::index || !is_fixed(call(at).operands[1], operands[1]) ||
            operands[1].shape != s.shape)
          return false;
        s.dead.push_back(at);
        for (size_t user = at + 1; user < order_.size(); ++user) {
          const auto& read = facts(user).operands;
          for (size_t i = 0; i < read.size(); ++i) {
            if (read[i].object != result(at)) continue;
            if (builtin(user) != Builtin::each || i != 1 ||
                !find_reduction(s, user, call(at).operands[1].variable_id(), operands[1].object))
              return false;
          }
        }
      }
    }
    return true;
  }

  // What becomes of the first rows, and of vectors of some of them.
  bool find_picks(Sink& s) {
    std::map<ObjectId, bool> rows;
    for (size_t at : s.firsts) rows[result(at)] = true;
    for (size_t at = s.place + 1; at < order_.size(); ++at) {
      const auto& operands = facts(at).operands;
      const std::optional<Builtin> b = builtin(at);
      for (size_t k = 0; k < operands.size(); ++k) {
        if (!rows.contains(operands[k].object)) continue;
        if (b == Builtin::index && k == 1 && operands[0].shape == s.shape && is_plain(at)) {
          size_t clones = 0;
          std::map<std::pair<ObjectId, uint32_t>, Operand> known;
          const Operand& row = call(at).operands[1];
          if (row.kind == Operand::variable && writers_of(row.variable_id()) == 1 &&
              value_at(nullptr, s, call(at).operands[0], operands[0], row, known, clones, nullptr)) {
            s.picks.push_back(at);
            continue;
          }
        } else if ((b == Builtin::index && k == 0) || (b == Builtin::compress && k == 1)) {
          rows[result(at)] = true;
          continue;
        } else if (b == Builtin::len) {
          continue;
        }
        if (!s.masks.empty()) return false;  // it would see other numbers
      }
    }
    return true;
  }

  bool is_sink(Sink& s) {
    if (!is_plain(s.place) || !find_keys(s)) return false;
    const ObjectId groups = result(s.place);
    bool rows = false;
    for (size_t at = s.place + 1; at < order_.size(); ++at) {
      const auto& operands = facts(at).operands;
      for (size_t k = 0; k < operands.size(); ++k) {
        if (operands[k].object != groups) continue;
        if (!is_plain(at)) return false;
        if (builtin(at) == Builtin::keys) {
          s.firsts.push_back(at);
        } else if (builtin(at) != Builtin::values || !find_rows(s, at)) {
          return false;
        } else {
          rows = true;
        }
      }
    }
    return (rows || !s.firsts.empty()) && s.folded <= most_folds && find_picks(s);
  }

  // The operand `o`, which is as long as the keys or as their columns, at the rows of columns in `row`: a variable of as
  // many elements. Without a function only whether there is one.
  std::optional<Operand> value_at(Function* f, const Sink& s, const Operand& o, const Value& v, const Operand& row,
                                  std::map<std::pair<ObjectId, uint32_t>, Operand>& known, size_t& clones,
                                  std::vector<StatementId>* made) {
    if (o.kind == Operand::literal) return o;
    if (!is_fixed(o, v)) return {};
    if (is_scalar(table_, v.shape)) return o;
    const std::pair key(v.object, row.id);
    if (const auto at = known.find(key); at != known.end()) return at->second;
    if (++clones > most_clones) return {};
    const std::optional<Operand> there = evaluated_at(f, s, o, v, row, known, clones, made);
    if (there) known.emplace(key, *there);
    return there;
  }

  std::optional<Operand> evaluated_at(Function* f, const Sink& s, const Operand& o, const Value& v, const Operand& row,
                                      std::map<std::pair<ObjectId, uint32_t>, Operand>& known, size_t& clones,
                                      std::vector<StatementId>* made) {
    const auto gathered = [&]() -> std::optional<Operand> {
      if (v.shape != s.root) return {};
      if (!f) return o;
      const VariableId x = fresh(*f, "at", f->variables[o.variable_id()].type);
      made->push_back(add(*f, source().statements[order_[s.place]].span, x, Builtin::index, {o, row}));
      return operand(*f, x);
    };
    const auto from = made_.find(v.object);
    if (from == made_.end() || rewritten_.contains(from->second)) return gathered();
    const Statement& definition = statement(from->second);
    const Expression& e = call(from->second);
    const auto& values = facts(from->second).operands;
    const bool casts = definition.value != innermost(source(), definition.value);
    const std::optional<Builtin> b = builtin(from->second);
    Operands operands = e.operands;
    const auto take = [&](size_t k) {
      const std::optional<Operand> there = value_at(f, s, e.operands[k], values[k], row, known, clones, made);
      if (there) operands[k] = *there;
      return there.has_value();
    };
    std::optional<Operand> same;  // the value itself, before casts
    if (e.kind == Expression::operand) {
      if (!take(0)) return gathered();
      same = operands[0];
    } else if (b == Builtin::compress) {
      if (!take(1)) return {};
      same = operands[1];
    } else if (b == Builtin::where && values[0].shape == s.root) {
      same = row;
    } else if (b) {
      const hir::BuiltinRow& r = hir::row(*b);
      size_t first = 0;  // the operand from which on they are looked at element by element
      if (*b == Builtin::index || *b == Builtin::index_or)
        first = 1;
      else if (*b == Builtin::gpu_probe)
        first = 1 + e.operands.size() / 2;
      else if (*b == Builtin::reverse || r.device != hir::Device::gpu || r.geometry != hir::GeometryRule::result ||
               (r.shape_rule != hir::ShapeRule::broadcast && r.shape_rule != hir::ShapeRule::argument0))
        return gathered();
      // A cell of a list, which is no element of a vector.
      if (first == 1 && (e.operands[1].kind == Operand::literal || is_scalar(table_, values[1].shape))) return gathered();
      for (size_t k = 0; k < first; ++k)
        if (e.operands[k].kind == Operand::variable && writers_of(e.operands[k].variable_id()) != 1) return gathered();
      for (size_t k = first; k < e.operands.size(); ++k)
        if (!take(k)) return gathered();
    } else {
      return gathered();
    }
    if (same && !casts) return same;
    if (!f) return o;
    // A copy of the definition with those operands.
    ExpressionId value = f->expressions.add(e);
    if (same) {
      f->expressions[value].kind = Expression::operand;
      operands = {*same};
    }
    f->expressions[value].operands = std::move(operands);
    InlineVector<ExpressionId, 4> outer;
    for (ExpressionId c = definition.value; source().expressions[c].kind == Expression::cast;
         c = source().expressions[c].inner)
      outer.insert(outer.begin(), c);
    for (ExpressionId c : outer) {
      Expression cast = source().expressions[c];
      cast.inner = value;
      value = f->expressions.add(std::move(cast));
    }
    Statement copy{.span = definition.span};
    const VariableId x = fresh(*f, "at", f->variables[definition.targets[0].variable_id()].type);
    assign(*f, copy, x, value);
    made->push_back(f->statements.add(std::move(copy)));
    return operand(*f, x);
  }

  void rewrite(Function& f, const Sink& s) {
    const StatementId group = order_[s.place];
    const Span span = f.statements[group].span;
    const auto fold = [&](std::vector<StatementId>& made, std::string_view stem, const Operand& values,
                          const Operand& reduce, BasicType type) {
      const VariableId t = fresh(f, stem, type);
      Operands operands{values, reduce, integer(s.number)};
      for (VariableId k : s.keys) operands.push_back(operand(f, k));
      made.push_back(add(f, span, t, Builtin::gpu_fold, std::move(operands)));
      return t;
    };
    std::vector<StatementId> made;
    VariableId position = fresh(f, "position", BasicType::i64);
    if (s.masks.empty()) {
      const VariableId length = fresh(f, "length", BasicType::i64);
      made.push_back(add(f, span, length, Builtin::len, {operand(f, s.keys[0])}));
      made.push_back(add(f, span, position, Builtin::range, {operand(f, length)}));
    }
    for (size_t k = 0; k < s.masks.size(); ++k) {
      if (k == 0) {
        made.push_back(add(f, span, position, Builtin::where, {operand(f, s.masks[0])}));
        continue;
      }
      const VariableId next = fresh(f, "position", BasicType::i64);
      made.push_back(add(f, span, next, Builtin::compress, {operand(f, s.masks[k]), operand(f, position)}));
      position = next;
    }
    const VariableId row = fold(made, "row", operand(f, position), function(Builtin::min), BasicType::i64);
    const VariableId there = fresh(f, "there", BasicType::boolean);
    made.push_back(add(f, span, there, Builtin::lt, {operand(f, row), integer(no_row)}));
    insert(f, group, false, made);
    for (size_t at : s.firsts)
      becomes(f.expressions[f.statements[order_[at]].value], Builtin::compress, {operand(f, there), operand(f, row)});
    std::vector<Sink::Fold> folds = s.folds;  // in the order of the program, so that later ones read what earlier ones made
    std::sort(folds.begin(), folds.end(), [](const Sink::Fold& x, const Sink::Fold& y) { return x.raze < y.raze; });
    std::map<Sink::Reduction, VariableId> reduced;
    const auto reduce = [&](const Sink::Reduction& what, VariableId values) {
      const auto [known, is_new] = reduced.try_emplace(what);
      if (!is_new) return known->second;
      const auto& [builtin, object, type] = what;
      if (Sink::by_keys(what)) {
        const BasicType key_type = type == BasicType::f64 ? BasicType::i64 : BasicType::i32;
        const VariableId k = fresh(f, "key", key_type);
        made.push_back(add(f, span, k, Builtin::gpu_order_key, {operand(f, values), integer(builtin == Builtin::min ? 1 : 0)}));
        const VariableId t = fold(made, "fold", operand(f, k), function(builtin), key_type);
        known->second = fresh(f, "extreme", type);
        made.push_back(add(f, span, known->second, Builtin::gpu_of_order_key, {operand(f, t)}));
        return known->second;
      }
      if (!Sink::in_parts(what)) return known->second = fold(made, "fold", operand(f, values), function(builtin), type);
      Operands sums;
      for (size_t part = 0; part < sum_parts::count; ++part) {
        const VariableId p = fresh(f, "part", BasicType::i64);
        made.push_back(
            add(f, span, p, Builtin::gpu_sum_part, {operand(f, values), integer(static_cast<int64_t>(part))}));
        sums.push_back(operand(f, fold(made, "fold", operand(f, p), function(Builtin::sum), BasicType::i64)));
      }
      known->second = fresh(f, "sum", BasicType::f64);
      made.push_back(add(f, span, known->second, Builtin::gpu_sum_of_parts, std::move(sums)));
      return known->second;
    };
    for (const Sink::Fold& one : folds) {
      made.clear();
      VariableId t = reduce(one.reduction, one.values);
      if (one.average) {
        const VariableId sum = t, count = reduce(Sink::count, s.keys[0]);
        t = fresh(f, "average", BasicType::f64);
        made.push_back(add(f, span, t, Builtin::div, {operand(f, sum), operand(f, count)}));
      }
      insert(f, order_[one.raze], false, made);
      becomes(f.expressions[f.statements[order_[one.raze]].value], Builtin::compress,
              {operand(f, there), operand(f, t)});
    }
    std::map<std::pair<ObjectId, uint32_t>, Operand> known;
    for (size_t at : s.picks) {
      made.clear();
      size_t clones = 0;
      const Expression pick = call(at);
      const std::optional<Operand> value =
          value_at(&f, s, pick.operands[0], facts(at).operands[0], pick.operands[1], known, clones, &made);
      CHECK(value, "what was found once is found again");
      insert(f, order_[at], false, made);
      Expression& e = f.expressions[f.statements[order_[at]].value];
      e.kind = Expression::operand;
      e.operands = {*value};
    }
    // The group itself and what only led to the reductions, readers first.
    std::vector<size_t> dead = s.dead;
    dead.push_back(s.place);
    std::sort(dead.rbegin(), dead.rend());
    for (size_t at : dead) drop_unread(f, order_[at]);
  }

  const Function& main_;
  const Function* source_ = nullptr;
  Function before_;
  const Options& options_;
  std::map<ObjectId, size_t> made_;  // by which statement, as a place in order_
  std::vector<Sink> found_;
  std::set<size_t> rewritten_;  // places of what they read as another value than it was
};

}  // namespace

bool find_sinks(hir::Program& program, const Function& main, ShapeTable& table, DiagnosticSink& sink,
                const Options& options, Shapes& shapes, Function& own, std::vector<uint32_t>& folds,
                std::vector<uint32_t>& float_folds) {
  const bool any = std::any_of(main.expressions.begin(), main.expressions.end(), [](const Expression& e) {
    return e.kind == Expression::call && e.callee.kind == hir::FunctionRef::builtin &&
           e.callee.builtin_id == Builtin::group;
  });
  return any && Finder(program, main, options, shapes, table).find(sink, own, folds, float_folds);
}

}  // namespace rndn::outliner
