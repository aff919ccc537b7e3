// Three passes. `classify` says of each variable what it is in a run of a range; where a group, a
// join or another statement turns out not to be what was hoped, it is forbidden, and all begins
// anew. `need` walks back from the results of main through `after`, and asks `range` for what it
// leaves behind. `finish` makes the three programs, whose functions share variables and statements.
#include "outliner/split.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "libraries/base/errors/check.h"
#include "outliner/analysis.h"

namespace rndn::outliner {
namespace {

using hir::BasicType;
using hir::Builtin;
using hir::Expression;
using hir::Function;
using hir::Operand;
using hir::ShapeRule;
using hir::Statement;
using hir::StatementId;
using hir::TypeId;
using hir::TypeKind;
using hir::VariableId;

// What a variable is in a run of a range.
struct State {
  enum Kind : uint8_t {
    same,       // the same in every range: it does not depend on the table
    whole,      // only known when all ranges have been run
    table,      // the table itself
    foreign,    // a foreign key of it
    rows,       // a vector with an element per row of the range, or of a selection of them
    rows_list,  // a list of such
    length,     // how many elements such a vector has
    groups,     // of such vectors: the dictionary,
    places,     // its values,
    first,      // its keys,
    cells,      // the elements of a vector by group,
    per_cell,   // a value for each of these, as cells, and
    per_group,  // as a vector
    pairs,      // of a join
    reduced,    // a value per range, which `builtin` reduces further
    carried,    // index_a into a vector of other rows
  } kind = same;
  SizeId size = none<SizeId>();          // rows, length
  SizeId counts = none<SizeId>();        // rows: whose elements are numbers of rows of that size
  SizeId counts_other = none<SizeId>();  // pairs: cell 1; `counts`: cell 0
  // rows, foreign: equal elements are never in different ranges, and later ranges have greater ones
  bool cut = false;
  StatementId at = none<StatementId>();  // groups .. per_group: the group; pairs: the join
  VariableId of = none<VariableId>();    // cells .. per_group, reduced floats: the elements
  Builtin builtin{};  // per_cell, per_group, reduced: how pieces are put together; index: of first
  // Where the rows of the table are ordered by keys: a vector that is in another order than when
  // they are not, numbers of such rows, and the how manieth key it is, from 1.
  bool moved = false, counts_moved = false, other_moved = false;
  size_t key = 0;
  bool is_rows() const { return kind == rows; }
};

class Splitter {
 public:
  Splitter(const hir::Program& program, const SplitOptions& options)
      : options_(options), program_(program) {}

  Split run() {
    Split out;
    (void)inline_calls(program_);
    out.refused = prepare();
    if (!out.refused.empty()) return out;
    if (!options_.by_keys) return attempt(std::move(out));
    out.refused = "nothing groups or orders its rows by columns";
    for (StatementId at : order_) {
      if (!set_keys(at)) continue;
      forbidden_.clear();
      out.refused.clear();
      out = attempt(std::move(out));
      if (!out.refused.empty()) continue;
      if (of(variable(statement(at).targets[0].variable_id())).kind != State::whole) return out;
      out = {.refused = "it needs all rows all the same"};
    }
    return out;
  }

  Split divide() {
    Split out;
    (void)inline_calls(program_);
    out.refused = prepare();
    if (!out.refused.empty()) return out;
    reset();
    for (StatementId id : order_)
      for (const hir::Target& t : statement(id).targets)
        if (t.kind == hir::Target::variable) def_[index(t.variable_id())] = id;
    bring_together();
    for (size_t k = 0; k < order_.size(); ++k) place_[order_[k]] = k;
    std::vector<size_t> work(order_.size() + 1);
    for (size_t k = 0; k < order_.size(); ++k) work[k + 1] = work[k] + is_work(order_[k]);
    const size_t all = work.back();
    if (all < 2) {
      describe_operation(out);
      if (out.operation.kind == Split::Operation::none)
        out.refused = all ? "`" + name_of_work() + "` alone is left" : "there is nothing to divide";
      return out;
    }
    size_t best = 0, least = SIZE_MAX;
    for (size_t place = 1; place < order_.size(); ++place) {
      if (!work[place] || work[place] == all) continue;
      const size_t first = work[place], other = all - first;
      const size_t lopsided = 8 * (first > other ? first - other : other - first) / all;
      if (lopsided >= least) continue;
      const Alive alive = alive_at(place);
      if (!alive.possible || alive.columns + lopsided >= least) continue;
      least = alive.columns + lopsided;
      best = place;
    }
    if (!best) {
      out.refused = "its statements hang together by lists";
      return out;
    }
    leave(alive_at(best), best, "h");
    return two(std::move(out));
  }

 private:
  Split attempt(Split out) {
    do {
      again_ = false;
      reset();
      for (StatementId s : order_) classify(s);
      if (!again_) need_all();
    } while (again_);
    if (!refused_.empty()) {
      out.refused = refused_;
      return out;
    }
    if (range_results_.empty()) {
      out.refused = "no statement works on its rows one by one";
      return out;
    }
    finish(out);
    return out;
  }

  // --- The program as two ---

  // What is read behind a place and made before it.
  struct Alive {
    bool possible = true;          // all of it are vectors
    std::vector<VariableId> vectors, lengths;  // to be left as columns; `len` of such a vector
    std::set<StatementId> again;   // what costs nothing: both programs have it
    size_t columns = 0;            // vectors of more than one element
  };

  Split two(Split out) {
    out.before = make(before_made_, before_vars_);
    out.after = make(after_made_, statement(return_).results, main().result_types);
    out.before_results = std::move(before_results_);
    return out;
  }

  // Those that read a list or a dictionary behind what made it, with all that they read besides.
  void bring_together() {
    std::map<StatementId, std::vector<StatementId>> readers;
    for (StatementId id : order_)
      for (const Operand& o : operands_of(id))
        if (o.kind == Operand::variable && !basic_of(o) && !is_light(def_[o.id]))
          readers[def_[o.id]].push_back(id);
    std::set<StatementId> placed;
    std::vector<StatementId> made, open;
    const std::function<void(StatementId)> put = [&](StatementId id) {
      if (!placed.insert(id).second) return;
      for (const Operand& o : operands_of(id))
        if (o.kind == Operand::variable) put(def_[o.id]);
      made.push_back(id);
      if (const auto at = readers.find(id); at != readers.end())
        open.insert(open.end(), at->second.begin(), at->second.end());
    };
    for (StatementId id : order_) {
      put(id);
      while (!open.empty()) {
        const StatementId next = open.back();
        open.pop_back();
        put(next);
      }
    }
    order_ = std::move(made);
  }

  bool is_scalar_result(StatementId id) {
    const StatementFacts& facts = shapes_.statements[id];
    return !facts.results.empty() && is_scalar(table_, facts.results[0].shape);
  }
  // Costs nothing to do again.
  bool is_light(StatementId at) {
    const Expression& e = call_of(at);
    if (e.kind == Expression::operand)
      return statement(at).value == innermost(main(), statement(at).value);
    if (e.kind != Expression::call) return false;
    switch (e.callee.builtin_id) {
      case Builtin::load_table:
      case Builtin::column_value:
      case Builtin::column_valid:
      case Builtin::list:
      case Builtin::table:
      case Builtin::range:
      case Builtin::len: return true;
      case Builtin::vector: return is_one(at, 1);
      case Builtin::values:
      case Builtin::fetch:
        return e.operands[0].kind == Operand::variable &&
               types()[type_of(e.operands[0].variable_id())].kind == TypeKind::enumeration;
      default: return false;
    }
  }
  // As many elements as a vector has.
  bool is_counted(StatementId at) {
    const Expression& e = call_of(at);
    return e.kind == Expression::call && is_light(at) &&
           (e.callee.builtin_id == Builtin::range || e.callee.builtin_id == Builtin::vector) &&
           e.operands[0].kind == Operand::variable && is_len(def_[e.operands[0].id]);
  }
  bool is_len(StatementId at) {
    const Expression& e = call_of(at);
    return e.kind == Expression::call && e.callee.builtin_id == Builtin::len;
  }
  // Works on vectors: neither free nor of single values alone, nor a cell of a list.
  bool is_work(StatementId at) {
    if (is_light(at)) return false;
    const Expression& e = call_of(at);
    if (e.kind == Expression::call && e.callee.builtin_id == Builtin::index &&
        e.operands[0].kind == Operand::variable && number_of(e.operands[1]))
      return false;
    if (!is_scalar_result(at)) return true;
    for (size_t k = 0; k < e.operands.size(); ++k)
      if (e.operands[k].kind == Operand::variable && !is_one(at, k)) return true;
    return false;
  }

  Alive alive_at(size_t place) {
    Alive alive;
    std::set<VariableId> seen;
    std::vector<VariableId> counted;  // row numbers and constants, as many as a vector has elements
    const std::function<void(const Operand&)> visit = [&](const Operand& o) {
      if (o.kind != Operand::variable || !seen.insert(o.variable_id()).second) return;
      const VariableId v = o.variable_id();
      const StatementId at = def_[index(v)];
      if (place_.at(at) >= place) return;
      if (is_len(at)) {
        alive.lengths.push_back(v);
      } else if (is_counted(at)) {
        counted.push_back(v);
      } else if (is_light(at)) {
        alive.again.insert(at);
        for (const Operand& x : operands_of(at)) visit(x);
      } else if (!basic_of(v)) {
        alive.possible = false;
      } else {
        alive.vectors.push_back(v);
        alive.columns += !is_scalar_result(at);
      }
    };
    for (size_t k = place; k < order_.size(); ++k)
      for (const Operand& o : operands_of(order_[k])) visit(o);
    for (const Operand& o : statement(return_).results) visit(o);
    // They are made again where a vector of their size is alive; else they are such a vector.
    for (VariableId v : counted) {
      const SizeId size = size_of_result(def_[index(v)]);
      const bool known = !is_none(size) &&
                         std::any_of(alive.vectors.begin(), alive.vectors.end(), [&](VariableId x) {
                           return size_of_result(def_[index(x)]) == size;
                         });
      if (!known) {
        alive.vectors.push_back(v);
        ++alive.columns;
        continue;
      }
      alive.again.insert(def_[index(v)]);
      for (const Operand& x : operands_of(def_[index(v)])) visit(x);
    }
    return alive;
  }

  // `before` is what stands before the place, `after` what stands behind it.
  void leave(const Alive& alive, size_t place, const char* kind) {
    const auto end = order_.begin() + static_cast<std::ptrdiff_t>(place);
    before_made_.assign(order_.begin(), end);
    std::map<SizeId, VariableId> by_size;  // a vector of that size
    const auto pass = [&](VariableId v) {
      const StatementId at = def_[index(v)];
      const bool one = is_scalar_result(at);
      const SizeId size = size_of_result(at);
      const std::string own = options_.prefix + "v" + std::to_string(index(v));
      before_vars_.push_back(v);
      before_results_.push_back(
          {.table = one || is_none(size) ? own : table_of(size, kind), .column = column_name(v)});
      const SplitResult& r = before_results_.back();
      if (!one) {
        if (!is_none(size)) by_size.try_emplace(size, v);
        return load(after_made_, v, r.table, r.column);
      }
      const VariableId column = new_variable(type_of(v));
      load(after_made_, column, r.table, r.column);
      emit(after_made_, v, Builtin::index, {variable(column), number(0)}, type_of(v));
    };
    for (VariableId v : alive.vectors) pass(v);
    for (VariableId v : alive.lengths) {
      const StatementId at = def_[index(v)];
      const Operand of = operands_of(at)[0];
      const SizeId size = of.kind == Operand::variable && basic_of(of)
                              ? size_of_result(def_[of.id])
                              : none<SizeId>();
      const auto known = by_size.find(size);
      if (is_none(size) || known == by_size.end())
        pass(v);
      else
        emit(after_made_, v, Builtin::len, {variable(known->second)}, type_of(v),
             statement(at).span);
    }
    for (auto at = order_.begin(); at != order_.end(); ++at)
      if (at >= end || alive.again.count(*at)) after_made_.push_back(*at);
  }

  // What the one statement is that works on vectors.
  void describe_operation(Split& out) {
    using Operation = Split::Operation;
    size_t place = 0;
    while (place < order_.size() && !is_work(order_[place])) ++place;
    if (place == order_.size()) return;
    const StatementId at = order_[place];
    const Expression e = call_of(at);
    if (e.kind != Expression::call) return;
    Operation& operation = out.operation;
    operation.builtin = e.callee.builtin_id;
    std::array<std::vector<Operand>, 2> sides;
    const auto all_of = [](size_t n) {
      std::vector<size_t> columns(n);
      for (size_t k = 0; k < n; ++k) columns[k] = k;
      return columns;
    };
    switch (e.callee.builtin_id) {
      case Builtin::index:
      case Builtin::index_or:
      case Builtin::index_a:
      case Builtin::append:
      case Builtin::reverse:
      case Builtin::take:
      case Builtin::drop:
      case Builtin::compress: operation.kind = Operation::moves; return;
      case Builtin::member:
      case Builtin::index_of:
        sides = {vectors_of(e.operands[1]), vectors_of(e.operands[0])};
        if (sides[0].size() != 1 || sides[1].size() != 1) return;
        operation.equal = {0};
        operation.kind = Operation::looks_up;
        break;
      case Builtin::join_index: {
        const size_t functions = e.operands.size() - 2;
        sides = {vectors_of(e.operands[functions]), vectors_of(e.operands[functions + 1])};
        if (sides[0].empty() || sides[0].size() != sides[1].size() ||
            (functions != 1 && functions != sides[0].size()))
          return;
        for (size_t k : all_of(sides[0].size()))
          if (function_of(e.operands[functions == 1 ? 0 : k]) == Builtin::eq)
            operation.equal.push_back(k);
        operation.kind = Operation::pairs;
        break;
      }
      case Builtin::scan_sum:
      case Builtin::scan_min:
      case Builtin::scan_max:
        sides[0] = vectors_of(e.operands[0]);
        if (const std::vector<Operand> starts = vectors_of(e.operands[1]);
            sides[0].size() == 1 && starts.size() == 1 && basic_of(starts[0]) == BasicType::boolean &&
            can_carry_on(operation.builtin, basic_of(statement(at).targets[0].variable_id()))) {
          sides[0].push_back(starts[0]);
          operation.kind = Operation::scans;
          break;
        }
        return;
      default:
        if (!is_elementwise(operation.builtin) && operation.builtin != Builtin::order) return;
        for (size_t k = 0; k < e.operands.size(); ++k) {
          if (e.operands[k].kind != Operand::variable) continue;
          const std::vector<Operand> vectors = vectors_of(e.operands[k]);
          if (vectors.empty() || is_set(operation.builtin, k)) return;
          std::vector<Operand>& side = sides[is_one(at, k)];
          side.insert(side.end(), vectors.begin(), vectors.end());
        }
        if (sides[0].empty() || !basic_of(statement(at).targets[0].variable_id())) return;
        operation.kind = Operation::zips;
    }
    const bool converts = statement(at).value != innermost(main(), statement(at).value);
    if ((converts && operation.kind != Operation::zips) || statement(at).targets.size() != 1 ||
        !leave_operation(out, at, place, sides))
      operation.kind = Operation::none;
  }
  // Running sums of f32 are rounded: what is before them is not known from them.
  static bool can_carry_on(Builtin builtin, std::optional<BasicType> made) {
    if (!made) return false;
    if (builtin == Builtin::scan_sum) return hir::is_integer(*made) || *made == BasicType::f64;
    return hir::is_real(*made) || hir::is_calendar(*made);
  }
  std::string name_of_work() {
    const auto at = std::find_if(order_.begin(), order_.end(),
                                 [&](StatementId id) { return is_work(id); });
    const Expression& e = call_of(*at);
    return e.kind == Expression::call ? std::string(hir::row(e.callee.builtin_id).name)
                                      : "check_cast";
  }
  // The vectors of a list, or the vector itself; nothing: not all of them are variables.
  std::vector<Operand> vectors_of(const Operand& o) {
    if (o.kind != Operand::variable) return {};
    if (basic_of(o)) return {o};
    const Expression& list = call_of(def_[o.id]);
    if (list.kind != Expression::call || list.callee.builtin_id != Builtin::list) return {};
    std::vector<Operand> all(list.operands.begin(), list.operands.end());
    for (const Operand& part : all)
      if (part.kind != Operand::variable || !basic_of(part)) return {};
    return all;
  }
  Operand make_list(const std::vector<Operand>& columns) {  // in the range program
    std::vector<TypeId> column_types;
    for (const Operand& o : columns) column_types.push_back(type_of(o.variable_id()));
    const VariableId list = new_variable(program_.types->tuple(column_types));
    emit(range_made_, list, Builtin::list, columns, type_of(list));
    return variable(list);
  }
  // The programs of an operation that stands at `place`; false: what is read of it is no vector.
  bool leave_operation(Split& out, StatementId at, size_t place,
                       const std::array<std::vector<Operand>, 2>& sides) {
    Split::Operation& operation = out.operation;
    const bool pairs = operation.kind == Split::Operation::pairs;
    const VariableId target = statement(at).targets[0].variable_id();
    const auto cell_of = [&](StatementId id) -> std::optional<size_t> {  // that it picks of pairs
      const Expression& e = call_of(id);
      if (e.kind != Expression::call || e.callee.builtin_id != Builtin::index ||
          e.operands[0].kind != Operand::variable || e.operands[0].variable_id() != target)
        return std::nullopt;
      const auto number = number_of(e.operands[1]);
      return number && (*number == 0 || *number == 1) ? std::optional<size_t>(*number)
                                                      : std::nullopt;
    };
    size_t behind = place + 1;
    while (pairs && behind < order_.size() && cell_of(order_[behind])) ++behind;
    const Alive alive = alive_at(behind);
    if (!alive.possible) return false;
    leave(alive, behind, "h");
    before_made_.resize(place);
    const std::vector<VariableId> read = std::exchange(before_vars_, {});
    const std::vector<SplitResult> columns = std::exchange(before_results_, {});
    const Expression e = call_of(at);
    std::vector<Operand> operands;
    for (size_t k = 0; pairs && k + 2 < e.operands.size(); ++k) operands.push_back(e.operands[k]);
    std::array<std::vector<Operand>, 2> loaded;
    for (size_t side : {0, 1}) {
      operation.sides[side] = options_.prefix + (side ? "y" : "x");
      for (const Operand& o : sides[side]) {
        before_vars_.push_back(o.variable_id());
        operation.names[side].push_back(options_.prefix + std::to_string(loaded[side].size()));
        const VariableId v = new_variable(type_of(o.variable_id()));
        load(range_made_, v, operation.sides[side], operation.names[side].back());
        loaded[side].push_back(variable(v));
      }
    }
    if (operation.kind == Split::Operation::zips) {
      std::array<size_t, 2> next{};
      for (size_t k = 0; k < e.operands.size(); ++k) {
        operands.push_back(e.operands[k]);
        if (e.operands[k].kind != Operand::variable) continue;
        const size_t side = is_one(at, k);
        const size_t parts = vectors_of(e.operands[k]).size();
        const auto first = loaded[side].begin() + static_cast<std::ptrdiff_t>(next[side]);
        operands.back() = *first;
        if (!basic_of(e.operands[k]))
          operands.back() = make_list({first, first + static_cast<std::ptrdiff_t>(parts)});
        if (side) {
          const VariableId one = new_variable(type_of(first->variable_id()));
          emit(range_made_, one, Builtin::index, {*first, number(0)}, type_of(one));
          operands.back() = variable(one);
        }
        next[side] += parts;
      }
    } else if (operation.kind == Split::Operation::looks_up) {
      operands = {loaded[1][0], loaded[0][0]};
    } else if (!pairs) {
      operands = loaded[0];
    } else {
      for (const std::vector<Operand>& side : loaded) {
        operands.push_back(side[0]);
        if (side.size() == 1) continue;
        operands.back() = make_list(side);
      }
    }
    const VariableId made = new_variable(type_of(target));
    Statement copy = main().statements[at];  // with its casts
    const hir::ExpressionId inner = copy_expressions(copy.value);
    for (size_t k = 0; k < operands.size(); ++k)
      main().expressions[inner].operands[k] = operands[k];
    copy.targets[0].id = static_cast<uint32_t>(index(made));
    copy.targets[0].name = main().variables[made].name;
    range_made_.push_back(main().statements.add(std::move(copy)));
    range_vars_ = {made};
    const TypeId i64 = types().basic(BasicType::i64);
    if (pairs) {
      range_vars_ = {new_variable(i64), new_variable(i64)};
      for (int64_t k : {0, 1})
        emit(range_made_, range_vars_[static_cast<size_t>(k)], Builtin::index,
             {variable(made), number(k)}, i64);
    }
    for (size_t i = 0; i < read.size(); ++i) {
      const StatementId by = def_[index(read[i])];
      if (place_.at(by) < place) {
        before_vars_.push_back(read[i]);
        before_results_.push_back(columns[i]);
        continue;
      }
      range_results_.push_back(columns[i]);
      operation.cells.push_back(pairs ? *cell_of(by) : 0);
    }
    out.range = make(range_made_, range_vars_);
    out.range_results = std::move(range_results_);
    out = two(std::move(out));
    return true;
  }

  // --- The program ---

  Function& main() { return program_.functions[program_.main]; }
  const Statement& statement(StatementId id) { return main().statements[id]; }
  const Expression& call_of(StatementId id) {
    return main().expressions[innermost(main(), statement(id).value)];
  }
  // A copy: what is added to the function moves its expressions.
  std::vector<Operand> operands_of(StatementId id) {
    const Expression& e = call_of(id);
    return {e.operands.begin(), e.operands.end()};
  }
  const hir::TypeTable& types() const { return *program_.types; }
  TypeId type_of(VariableId v) { return main().variables[v].type; }
  std::optional<BasicType> basic_of(VariableId v) {
    if (!types().is_basic(type_of(v))) return std::nullopt;
    return types().basic_of(type_of(v));
  }
  std::optional<BasicType> basic_of(const Operand& o) {
    if (o.kind == Operand::variable) return basic_of(o.variable_id());
    const TypeId type = o.kind == Operand::literal ? program_.literals[o.literal_id()].type
                                                   : program_.globals[o.global_id()].type;
    if (!types().is_basic(type)) return std::nullopt;
    return types().basic_of(type);
  }

  // Empty, or why the program cannot be split. Every variable gets one assignment.
  std::string prepare() {
    Function& f = main();
    if (!f.parameters.empty() || !flatten(f, f.body, order_))
      return "there is control flow in main";
    std::set<VariableId> assigned;
    for (StatementId id : order_) {
      const Statement& s = f.statements[id];
      const auto known = [&](const Operand& o) {
        return o.kind != Operand::variable || assigned.count(o.variable_id()) != 0;
      };
      bool all = std::all_of(s.results.begin(), s.results.end(), known);
      if (!is_none(s.value)) {
        const std::vector<Operand> operands = operands_of(id);
        all = all && std::all_of(operands.begin(), operands.end(), known);
      }
      if (!all) return "a variable is read that has no value";
      for (const hir::Target& t : s.targets) {
        if (t.kind == hir::Target::global) return "a global is assigned";
        if (t.kind == hir::Target::variable && s.kind == Statement::assign &&
            !assigned.insert(t.variable_id()).second)
          return "a variable is assigned twice";
      }
      if (s.kind == Statement::return_) return_ = id;
      if (is_none(s.value)) continue;
      const Expression& e = call_of(id);
      if (e.kind != Expression::call) continue;
      if (s.kind != Statement::assign) return "a statement has no result";
      if (e.callee.kind != hir::FunctionRef::builtin)
        return "main calls a function that is not known";
      if (hir::row(e.callee.builtin_id).has(hir::traits::ordered))
        return "a statement has effects or draws numbers";
      if (e.callee.builtin_id == Builtin::load_table && text_of(e.operands[0]).empty())
        return "the name of a table is no literal";
    }
    if (is_none(return_)) return "main returns nothing";
    std::erase_if(order_, [&](StatementId id) {
      return statement(id).kind == Statement::declare || id == return_;
    });
    DiagnosticSink told;
    shapes_ = analyse_shapes(program_, f, table_, told);
    if (told.has_errors()) return "its shapes are at fault";
    statements_ = f.statements.size();
    literals_ = program_.literals.size();
    variables_ = f.variables.size();
    expressions_ = f.expressions.size();
    return "";
  }

  void reset() {
    Function& f = main();  // what the last attempt added goes
    f.statements.raw().resize(statements_);
    f.variables.raw().resize(variables_);
    f.expressions.raw().resize(expressions_);
    program_.literals.raw().resize(literals_);
    states_.assign(variables_, State{});
    def_.assign(variables_, none<StatementId>());
    in_before_.clear(), in_range_.clear(), in_after_.clear();
    before_made_.clear(), range_made_.clear(), after_made_.clear();
    before_vars_.clear(), range_vars_.clear();
    before_results_.clear(), range_results_.clear();
    gathered_.clear(), merged_.clear(), by_numbers_.clear(), parts_.clear();
    tables_read_.clear(), range_how_.clear(), gathered_result_.clear();
    lengths_.clear(), whole_.clear(), cut_column_.clear();
    float_parts_.clear(), float_sums_.clear();
    cut_used_ = false;
    refused_.clear();
  }

  void forbid(StatementId s) { again_ |= forbidden_.insert(s).second; }

  // --- Keys that the rows are ordered by ---

  // Those of a group or an order, where they are columns of the table, or selections of such.
  bool set_keys(StatementId at) {
    keys_.clear();
    key_columns_.clear();
    const Statement& s = statement(at);
    if (s.kind != Statement::assign) return false;
    const Expression& e = call_of(at);
    if (e.kind != Expression::call) return false;
    const bool orders = e.callee.builtin_id == Builtin::order;
    if (!orders && e.callee.builtin_id != Builtin::group) return false;
    std::map<VariableId, StatementId> made;
    for (StatementId id : order_)
      for (const hir::Target& t : statement(id).targets)
        if (t.kind == hir::Target::variable) made[t.variable_id()] = id;
    std::vector<Operand> columns{e.operands[0]};
    if (columns[0].kind == Operand::variable) {
      const Expression& list = call_of(made.at(columns[0].variable_id()));
      if (list.kind == Expression::call && list.callee.builtin_id == Builtin::list)
        columns.assign(list.operands.begin(), list.operands.end());
    }
    const auto* directions = orders ? literal_of<int64_t>(e.operands[1]) : nullptr;
    if (orders &&
        (!directions || (directions->size() != 1 && directions->size() != columns.size())))
      return false;
    for (size_t k = 0; k < columns.size(); ++k) {
      Operand o = columns[k];
      if (o.kind != Operand::variable || !basic_of(o)) return false;
      StatementId from = made.at(o.variable_id());
      while (call_of(from).kind == Expression::call &&
             call_of(from).callee.builtin_id == Builtin::compress) {
        o = call_of(from).operands[1];
        if (o.kind != Operand::variable) return false;
        from = made.at(o.variable_id());
      }
      const Expression& column = call_of(from);
      if (column.kind != Expression::call || (column.callee.builtin_id != Builtin::column_value &&
                                              column.callee.builtin_id != Builtin::column_valid))
        return false;
      if (column.operands[0].kind != Operand::variable ||
          !is_table(call_of(made.at(column.operands[0].variable_id()))))
        return false;
      if (!basic_of(o)) return false;
      const bool valid = column.callee.builtin_id == Builtin::column_valid;
      keys_.push_back({.column = text_of(column.operands[1]),
                       .valid = valid,
                       .type = *basic_of(o),
                       .ascending = !directions ||
                                    (*directions)[directions->size() == 1 ? 0 : k] != 0});
      if (!key_columns_.emplace(from, k + 1).second) return false;
    }
    return true;
  }
  template <class T>
  const std::vector<T>* literal_of(const Operand& o) {
    return o.kind == Operand::literal
               ? std::get_if<std::vector<T>>(&program_.literals[o.literal_id()].values)
               : nullptr;
  }
  // All keys, each once, in their order.
  bool are_keys(const std::vector<VariableId>& columns) {
    if (keys_.empty() || columns.size() != keys_.size()) return false;
    for (size_t k = 0; k < columns.size(); ++k)
      if (states_[index(columns[k])].key != k + 1 || !is_values(states_[index(columns[k])]))
        return false;
    return true;
  }
  static bool same_order(const State& x, const State& y) { return x.moved == y.moved; }

  // --- What each variable is ---

  State of(const Operand& o) {
    return o.kind == Operand::variable ? states_[index(o.variable_id())] : State{};
  }
  SizeId size_of_result(StatementId id) {
    const StatementFacts& facts = shapes_.statements[id];
    if (facts.results.empty() || is_none(facts.results[0].shape)) return none<SizeId>();
    const Shape& shape = table_[facts.results[0].shape];
    return shape.kind == Shape::vector ? shape.size : none<SizeId>();
  }
  bool is_one(StatementId id, size_t operand) {
    const StatementFacts& facts = shapes_.statements[id];
    return operand < facts.operands.size() && is_scalar(table_, facts.operands[operand].shape);
  }
  static State whole() { return {.kind = State::whole}; }
  static State rows(SizeId size) {
    return is_none(size) ? whole() : State{.kind = State::rows, .size = size};
  }
  static State in_order_of(const State& x, SizeId size) {
    State made = rows(size);
    made.moved = x.moved && made.is_rows();
    return made;
  }
  // A vector of the range whose elements are values.
  static bool is_values(const State& s) { return s.is_rows() && is_none(s.counts); }

  void classify(StatementId id) {
    const Statement& s = statement(id);
    if (s.kind != Statement::assign) return;
    State made = whole();
    const Expression& e = call_of(id);
    bool depends = false, is_whole = false;
    for (const Operand& o : e.operands) {
      depends |= of(o).kind != State::same;
      is_whole |= of(o).kind == State::whole;
    }
    if (!depends) {
      made = is_table(e) ? State{.kind = State::table} : State{};
    } else if (s.targets.size() == 1 && s.targets[0].kind == hir::Target::variable &&
               !forbidden_.count(id)) {
      const VariableId target = s.targets[0].variable_id();
      const bool as_is = s.value == innermost(main(), s.value) && e.types.size() == 1 &&
                         e.types[0] == type_of(target);
      if (e.kind != Expression::operand)
        made = is_whole ? whole() : of_range(id, e, target);
      else if (as_is)
        made = of(e.operands[0]);
      else if (is_values(of(e.operands[0])))
        made = in_order_of(of(e.operands[0]), of(e.operands[0]).size);
      if (!as_is && !made.is_rows() && made.kind != State::foreign)
        made = whole();  // a cast of a part
      const bool is_column = e.callee.builtin_id == Builtin::column_value ||
                             e.callee.builtin_id == Builtin::column_valid;
      if (!as_is && !is_column) made.cut = false, made.key = 0;
      if (!is_none(made.counts) && made.is_rows() && basic_of(target) != BasicType::i64)
        made = whole();
      if (made.kind == State::whole && (e.kind == Expression::call || !as_is)) made = after_all(e);
    } else if (e.kind == Expression::call || depends) {
      made = after_all(e);
    }
    for (const hir::Target& t : s.targets)
      if (t.kind == hir::Target::variable) {
        states_[index(t.variable_id())] = made;
        def_[index(t.variable_id())] = id;
      }
  }

  bool is_table(const Expression& e) {
    return e.kind == Expression::call && e.callee.builtin_id == Builtin::load_table &&
           text_of(e.operands[0]) == options_.table;
  }
  std::string text_of(const Operand& o) {
    if (o.kind == Operand::literal)
      if (const auto* text =
              std::get_if<std::vector<std::string>>(&program_.literals[o.literal_id()].values))
        if (text->size() == 1) return text->front();
    return "";
  }
  std::optional<Builtin> function_of(const Operand& o) {
    if (o.kind == Operand::literal)
      if (const auto* f =
              std::get_if<std::vector<hir::FunctionRef>>(&program_.literals[o.literal_id()].values))
        if (f->size() == 1 && f->front().kind == hir::FunctionRef::builtin)
          return f->front().builtin_id;
    return std::nullopt;
  }
  std::optional<int64_t> number_of(const Operand& o) {
    if (o.kind == Operand::literal)
      if (const auto* n =
              std::get_if<std::vector<int64_t>>(&program_.literals[o.literal_id()].values))
        if (n->size() == 1) return n->front();
    return std::nullopt;
  }

  // With an operand that is only known after all ranges. Numbers of groups' first rows, which are
  // of other rows there, may only be gathered and used to gather: State::at says of which groups.
  State after_all(const Expression& e) {
    State made = whole();
    if (e.kind == Expression::operand) return forbid_numbers(e), made;
    for (size_t k = 0; k < e.operands.size(); ++k) {
      const State o = of(e.operands[k]);
      const bool numbers = o.kind == State::first || (o.kind == State::whole && !is_none(o.at));
      if (!numbers) continue;
      const Builtin b = e.callee.builtin_id;
      if ((b == Builtin::index && k == 0) || (b == Builtin::compress && k == 1)) {
        made.at = o.at;
      } else if (b == Builtin::index && k == 1 && is_values_of_group(e.operands[0], o.at)) {
      } else {
        forbid(o.at);
      }
    }
    return made;
  }
  void forbid_numbers(const Expression& e) {
    for (const Operand& o : e.operands)
      if (const State s = of(o);
          s.kind == State::first || (s.kind == State::whole && !is_none(s.at)))
        forbid(s.at);
  }
  bool is_values_of_group(const Operand& x, StatementId group) {
    const State& s = of(x);
    return s.is_rows() && s.size == group_size_[group] && s.moved == group_moved_[group];
  }

  bool is_elementwise(Builtin b) {
    const ShapeRule rule = hir::row(b).shape_rule;
    if (rule == ShapeRule::broadcast) return true;
    if (rule != ShapeRule::argument0 && rule != ShapeRule::member) return false;
    return b != Builtin::reverse && b != Builtin::scan_sum && b != Builtin::scan_min &&
           b != Builtin::scan_max;
  }
  // The operand of these may be any vector of other rows: a set, a pattern.
  static bool is_set(Builtin b, size_t operand) {
    return operand == 1 && (b == Builtin::member || b == Builtin::index_of || b == Builtin::like ||
                            b == Builtin::sub_string);
  }

  State elementwise(StatementId id, const Expression& e) {
    SizeId size = none<SizeId>();
    State like;
    for (size_t k = 0; k < e.operands.size(); ++k) {
      const State o = of(e.operands[k]);
      if (o.kind == State::same
              ? is_one(id, k) || is_set(e.callee.builtin_id, k)
              : is_values(o) && (is_none(size) || (o.size == size && same_order(o, like))) &&
                    !is_set(e.callee.builtin_id, k)) {
        if (o.is_rows()) size = o.size, like = o;
        continue;
      }
      return whole();
    }
    return in_order_of(like, size);
  }

  // The parts of a list, or the vector itself; nothing: they are not all vectors of one size.
  std::vector<VariableId> columns_of(const Operand& o) {
    if (o.kind != Operand::variable) return {};
    std::vector<VariableId> columns;
    const State& s = of(o);
    if (s.is_rows()) columns = {o.variable_id()};
    if (s.kind == State::rows_list)
      for (const Operand& part : call_of(def_[index(o.variable_id())]).operands)
        columns.push_back(part.variable_id());
    for (VariableId v : columns)
      if (states_[index(v)].size != states_[index(columns[0])].size ||
          !same_order(states_[index(v)], states_[index(columns[0])]))
        return {};
    return columns;
  }

  State of_range(StatementId id, const Expression& e, VariableId target) {
    const auto operand = [&](size_t k) { return of(e.operands[k]); };
    const SizeId size = size_of_result(id);
    const Builtin b = e.callee.builtin_id;
    switch (b) {
      case Builtin::column_value:
      case Builtin::column_valid: {
        if (operand(0).kind != State::table) return whole();
        const bool cut =
            b == Builtin::column_value && is_ascending(text_of(e.operands[1]), basic_of(target));
        const bool moved = options_.by_keys;
        if (types()[type_of(target)].kind == TypeKind::enumeration)
          return {.kind = State::foreign, .cut = cut, .moved = moved};
        if (!basic_of(target)) return whole();
        State made = rows(size);
        rows_of_table_ = size;
        made.cut = cut;
        made.moved = moved;
        if (const auto at = key_columns_.find(id); at != key_columns_.end()) made.key = at->second;
        return made;
      }
      case Builtin::values:
        if (operand(0).kind == State::groups) return {.kind = State::places, .at = operand(0).at};
        [[fallthrough]];
      case Builtin::fetch: {
        if (operand(0).kind != State::foreign) return whole();
        State made = in_order_of(operand(0), size);
        made.cut = b == Builtin::values && operand(0).cut;
        return made;
      }
      case Builtin::keys: {
        if (operand(0).kind != State::groups) return whole();
        if (!operand(0).cut) return {.kind = State::first, .at = operand(0).at};
        State made = rows(size);
        made.counts = group_size_[operand(0).at];
        made.counts_moved = group_moved_[operand(0).at];
        return made;
      }
      case Builtin::compress: {
        if (!is_values(operand(0)) || !operand(1).is_rows() ||
            operand(0).size != operand(1).size || !same_order(operand(0), operand(1)))
          return whole();
        State made = operand(1);
        made.size = size;
        return is_none(size) ? whole() : made;
      }
      case Builtin::where: {
        if (!is_values(operand(0))) return whole();
        State made = in_order_of(operand(0), size);
        made.counts = operand(0).size;
        made.counts_moved = operand(0).moved;
        return made;
      }
      case Builtin::index: return gather(id, e);
      case Builtin::index_or:
        return operand(0).kind == State::same && is_values(operand(1)) && is_one(id, 2) &&
                       operand(2).kind == State::same
                   ? in_order_of(operand(1), size)
                   : whole();
      case Builtin::index_a: {
        const bool value = operand(2).kind == State::same
                               ? is_one(id, 2)
                               : is_values(operand(2)) && operand(2).size == operand(1).size;
        if (!value || !operand(1).is_rows()) return whole();
        if (options_.by_keys) return whole();  // of rows that repeat the last counts
        if (is_values(operand(0)) && operand(1).counts == operand(0).size)
          return rows(operand(0).size);
        if (operand(0).kind == State::same && is_none(operand(1).counts) &&
            e.operands[0].kind == Operand::variable &&
            type_of(e.operands[0].variable_id()) == type_of(target))
          return {.kind = State::carried, .at = id};
        return whole();
      }
      case Builtin::vector:
        return operand(0).kind == State::length && operand(1).kind == State::same && is_one(id, 1)
                   ? in_order_of(operand(0), operand(0).size)
                   : whole();
      case Builtin::range: {
        if (operand(0).kind != State::length || operand(0).moved) return whole();
        State made = rows(operand(0).size);
        made.counts = made.size;
        return made;
      }
      case Builtin::len:
        return operand(0).is_rows() ? State{.kind = State::length,
                                            .size = operand(0).size,
                                            .moved = operand(0).moved}
                                    : whole();
      case Builtin::sum:
      case Builtin::avg:
        if (is_values(operand(0)) && is_summed_in_parts(e.operands[0]))
          return {.kind = State::reduced, .of = e.operands[0].variable_id(), .builtin = b};
        if (b == Builtin::avg || !basic_of(target) || hir::is_float(*basic_of(target)) ||
            !hir::is_ordered_number(*basic_of(target)))
          return whole();
        [[fallthrough]];
      case Builtin::min:
      case Builtin::max:
      case Builtin::any:
      case Builtin::all:
        if (!is_values(operand(0))) return whole();
        return {.kind = State::reduced, .builtin = b};
      case Builtin::list: {
        for (const Operand& o : e.operands)
          if (!of(o).is_rows()) return whole();
        return {.kind = State::rows_list};
      }
      case Builtin::group: {
        const std::vector<VariableId> columns = columns_of(e.operands[0]);
        if (columns.empty()) return whole();
        const State& leading = states_[index(columns[0])];
        const bool keys = are_keys(columns) && std::all_of(keys_.begin(), keys_.end(),
                                                           [](const SplitKey& k) { return k.ascending; });
        if (leading.moved && !keys) return whole();
        group_size_[id] = leading.size;
        group_moved_[id] = leading.moved;
        if (leading.cut) cut_used_ = true;
        for (VariableId v : columns)
          if (!leading.cut && !is_values(states_[index(v)])) return whole();
        return {.kind = State::groups, .cut = leading.cut || keys, .at = id};
      }
      case Builtin::each_right: {
        if (function_of(e.operands[0]) != Builtin::index || operand(2).kind != State::places ||
            !is_values_of_group(e.operands[1], operand(2).at) || !is_values(operand(1)))
          return whole();
        return {.kind = State::cells, .at = operand(2).at, .of = e.operands[1].variable_id()};
      }
      case Builtin::each: {
        const auto f = function_of(e.operands[0]);
        const State& x = operand(1);
        if (!f || (x.kind != State::cells && x.kind != State::places)) return whole();
        const TypeId made = type_of(target);
        if (types()[made].kind != TypeKind::list || !types().is_basic(types()[made].components[0]))
          return whole();
        const BasicType element = types().basic_of(types()[made].components[0]);
        State result{
            .kind = State::per_cell, .cut = is_cut(x.at), .at = x.at, .of = x.of, .builtin = *f};
        const bool reduces = *f == Builtin::len || *f == Builtin::sum || *f == Builtin::min ||
                             *f == Builtin::max || *f == Builtin::any || *f == Builtin::all;
        // Of whole groups everything; of parts of groups what the parts can say.
        const bool sums = *f == Builtin::sum || *f == Builtin::avg;
        if (result.cut ? !reduces && !sums : !reduces && *f != Builtin::avg) return whole();
        if (result.cut || !sums || (*f == Builtin::sum && !hir::is_float(element))) return result;
        return x.kind == State::cells && is_summed_in_parts(variable(x.of)) ? result : whole();
      }
      case Builtin::raze: {
        if (operand(0).kind != State::per_cell) return whole();
        State made = operand(0);
        if (made.cut) return rows(size);
        made.kind = State::per_group;
        return made;
      }
      case Builtin::order: {
        const std::vector<VariableId> columns = columns_of(e.operands[0]);
        if (columns.empty() || !are_keys(columns) || !is_ordered_so(e.operands[1])) return whole();
        State made = rows(states_[index(columns[0])].size);
        made.counts = made.size;
        made.counts_moved = states_[index(columns[0])].moved;
        return made;
      }
      case Builtin::unique: {
        if (!operand(0).cut || !operand(0).is_rows()) return whole();
        cut_used_ = true;
        State made = rows(size);
        made.counts = operand(0).size;
        return made;
      }
      case Builtin::join_index: return join(id, e);
      default: return is_elementwise(b) ? elementwise(id, e) : whole();
    }
  }

  // Are these the directions of the keys?
  bool is_ordered_so(const Operand& o) {
    const auto* directions = literal_of<int64_t>(o);
    if (!directions) return false;
    for (size_t k = 0; k < keys_.size(); ++k)
      if (((*directions)[directions->size() == 1 ? 0 : k] != 0) != keys_[k].ascending) return false;
    return true;
  }

  bool is_summed_in_parts(const Operand& x) {
    return options_.float_sums && x.kind == Operand::variable && basic_of(x) == BasicType::f64;
  }

  bool is_cut(StatementId group) { return states_[statement(group).targets[0].id].cut; }

  bool is_ascending(const std::string& column, std::optional<BasicType> type) {
    const auto& known = options_.ascending;
    if (options_.by_keys ||
        std::none_of(known.begin(), known.end(), [&](const SplitOptions::Ascending& a) {
          return a.column == column && a.type == type;
        }))
      return false;
    if (cut_column_.empty()) cut_column_ = column;
    return cut_column_ == column;
  }

  State gather(StatementId id, const Expression& e) {
    const State &x = of(e.operands[0]), &i = of(e.operands[1]);
    const SizeId size = size_of_result(id);
    if (x.kind == State::pairs) {
      const auto cell = number_of(e.operands[1]);
      if (!cell || *cell < 0 || *cell > 1) return whole();
      State made = rows(size);
      made.moved = x.other_moved;
      made.counts = *cell == 0 ? x.counts : x.counts_other;
      made.counts_moved = !is_none(made.counts) && x.other_moved;
      return made;
    }
    if (x.kind == State::same && is_values(i)) return in_order_of(i, size);
    if (x.is_rows() && i.is_rows() && i.counts == x.size && !is_none(i.counts)) {
      if (i.counts_moved != x.moved) return whole();
      State made = x;
      made.moved = i.moved;
      made.size = size;
      return is_none(size) ? whole() : made;
    }
    if (i.kind == State::first && is_values_of_group(e.operands[0], i.at))
      return {.kind = State::per_group,
              .at = i.at,
              .of = e.operands[0].variable_id(),
              .builtin = Builtin::index};
    if (i.kind == State::first) forbid(i.at);
    return whole();
  }

  // Pairs ascend by the right row.
  State join(StatementId id, const Expression& e) {
    const Operand &x = e.operands[e.operands.size() - 2], &y = e.operands.back();
    const std::vector<VariableId> left = columns_of(x), right = columns_of(y);
    State made{.kind = State::pairs, .at = id};
    if (right.empty()) return whole();
    made.counts_other = states_[index(right[0])].size;
    made.other_moved = states_[index(right[0])].moved;
    if (of(x).kind == State::same) {
      for (VariableId v : right)
        if (!is_values(states_[index(v)])) return whole();
      return made;
    }
    if (left.empty() || function_of(e.operands[0]) != Builtin::eq || !states_[index(left[0])].cut ||
        !states_[index(right[0])].cut)
      return whole();
    for (const auto* columns : {&left, &right})
      for (VariableId v : *columns)
        if (!is_values(states_[index(v)])) return whole();
    cut_used_ = true;
    made.counts = states_[index(left[0])].size;
    return made;
  }

  // --- What is needed, and where ---

  void need_all() {
    for (const Operand& o : statement(return_).results)
      if (o.kind == Operand::variable) need_after(o.variable_id());
    check_numbers(statement(return_));
    for (StatementId id : order_) {  // what may fail is run, whether its value is read or not
      const Expression& e = call_of(id);
      const VariableId v = statement(id).targets[0].variable_id();
      if (e.kind != Expression::call ||
          !hir::can_fail(e.callee.builtin_id, basic_of(v).value_or(BasicType::i64)))
        continue;
      if (states_[index(v)].is_rows())
        need_range(v);
      else
        need_after(v);
    }
  }
  // Numbers of groups' first rows are no result.
  void check_numbers(const Statement& s) {
    for (const Operand& o : s.results) {
      const State& state = of(o);
      if (state.kind == State::first || (state.kind == State::whole && !is_none(state.at)))
        forbid(state.at);
    }
  }

  // `after` reads the variable.
  void need_after(VariableId v) {
    const State s = states_[index(v)];
    const StatementId at = def_[index(v)];
    if (again_ || done_after_(v)) return;
    switch (s.kind) {
      case State::same:
      case State::table:
      case State::foreign:
      case State::rows_list: return copy_after(at);
      case State::whole: return whole_after(at);
      case State::rows:
        if ((s.moved && !is_cheap(at)) || counts_in_own_order(s)) return refuse_own_order(v);
        return send_rows(v);
      case State::length:
      case State::reduced: {
        if (!is_none(s.of)) return reduce_floats(v);
        const Builtin by = s.kind == State::length ? Builtin::sum : s.builtin;
        const VariableId pieces = new_variable(type_of(v));
        send(v, options_.prefix + "p" + std::to_string(index(v)), pieces);
        emit(after_made_, v, by, {variable(pieces)}, type_of(v), statement(at).span);
        return;
      }
      case State::carried: return carry(v);
      case State::first:
        emit(after_made_, v, Builtin::keys, {variable(merged(s.at).groups)}, type_of(v),
             statement(at).span);
        return;
      case State::per_group: return merge(v);
      case State::groups:
      case State::places:
      case State::cells:
      case State::per_cell: return forbid(s.at);
      case State::pairs: return forbid(s.at);
    }
  }
  // Numbers of rows that are ordered by keys, and are no rows of the table.
  bool counts_in_own_order(const State& s) {
    return !is_none(s.counts) && s.counts_moved && s.counts != rows_of_table_;
  }
  void refuse_own_order(VariableId v) {
    refuse("`" + std::string(program_.text(main().variables[v].name)) +
           "` has its rows in their own order");
  }
  void refuse(std::string why) {
    if (refused_.empty()) refused_ = std::move(why);
  }
  bool done_after_(VariableId v) { return !in_after_.insert(v).second; }

  void copy_after(StatementId at) {
    for (const Operand& o : operands_of(at))
      if (o.kind == Operand::variable) need_after(o.variable_id());
    after_made_.push_back(at);
  }

  void whole_after(StatementId at) {
    const Expression e = call_of(at);
    bool all_rows = false;
    std::vector<Operand> operands(e.operands.begin(), e.operands.end());
    bool changed = false;
    for (size_t k = 0; k < operands.size(); ++k) {
      if (operands[k].kind != Operand::variable) continue;
      const VariableId v = operands[k].variable_id();
      const State s = states_[index(v)];
      if (k == 0 && e.kind == Expression::call && e.callee.builtin_id == Builtin::index &&
          s.is_rows()) {
        const State& i = of(operands[1]);
        if (i.kind == State::whole && !is_none(i.at)) {  // by the first rows of groups
          operands[0] = variable(gathered(i.at, v));
          changed = true;
          continue;
        }
        if (i.kind == State::whole && !is_none(by_numbers(v, operands[1].variable_id(),
                                                          statement(at).targets[0].variable_id())))
          return;
      }
      all_rows |= s.is_rows() || s.kind == State::rows_list;
      need_after(v);
    }
    if (all_rows && e.kind == Expression::call)
      whole_.push_back({hir::row(e.callee.builtin_id).name, statement(at).span});
    if (!changed) {
      after_made_.push_back(at);
      return;
    }
    Function& f = main();
    Statement copy = f.statements[at];
    hir::ExpressionId inner = copy_expressions(copy.value);
    for (size_t k = 0; k < operands.size(); ++k) f.expressions[inner].operands[k] = operands[k];
    after_made_.push_back(f.statements.add(std::move(copy)));
  }
  // index(x, numbers), where `numbers` are picked out of numbers of rows that the range program
  // has: `after` gets x by these, not all of x, and picks from that in the same way. `target`: what
  // becomes of it, a new variable where there is none. Nothing: it is not so.
  void copy(VariableId to, VariableId from) {
    const TypeId type = type_of(to);
    emit(after_made_, to, Builtin::index, {variable(from)}, type);
    Expression& e = main().expressions[main().statements[after_made_.back()].value];
    e.kind = Expression::operand;
    e.callee = {};
  }
  VariableId part_of(VariableId x, VariableId numbers) {  // in the range program
    const auto [at, fresh] = parts_.try_emplace({x, numbers}, none<VariableId>());
    if (!fresh) return at->second;
    need_range(x);
    need_range(numbers);
    const VariableId part = new_variable(type_of(x));
    states_[index(part)] = states_[index(x)];
    states_[index(part)].size = states_[index(numbers)].size;
    in_range_.insert(part);
    emit(range_made_, part, Builtin::index, {variable(x), variable(numbers)}, type_of(x));
    return at->second = part;
  }
  VariableId by_numbers(VariableId x, VariableId numbers, VariableId target = none<VariableId>()) {
    const auto [at, fresh] = by_numbers_.try_emplace({x, numbers}, none<VariableId>());
    if (!fresh) {
      if (!is_none(target) && !is_none(at->second)) copy(target, at->second);
      return at->second;
    }
    const State s = states_[index(numbers)];
    if (s.is_rows()) {
      if (s.counts != states_[index(x)].size || s.moved ||
          s.counts_moved != states_[index(x)].moved)
        return none<VariableId>();
      const VariableId part = part_of(x, numbers), all = new_variable(type_of(x));
      send(part, table_of(s.size, "r"), all);
      return at->second = all;
    }
    if (s.kind != State::whole || !is_none(s.at)) return none<VariableId>();
    const Expression e = call_of(def_[index(numbers)]);
    const bool picks = e.kind == Expression::call && e.callee.builtin_id == Builtin::index;
    const bool selects = e.kind == Expression::call && e.callee.builtin_id == Builtin::compress;
    if (!picks && !selects) return none<VariableId>();
    const Operand inner = e.operands[picks ? 0 : 1], other = e.operands[picks ? 1 : 0];
    if (inner.kind != Operand::variable) return none<VariableId>();
    VariableId of_inner = none<VariableId>();
    if (const State picked = of(other);
        picked.kind == State::whole && !is_none(picked.at)) {  // by groups' first rows
      if (!of(inner).is_rows() || of(inner).counts != states_[index(x)].size)
        return none<VariableId>();
      of_inner = gathered(picked.at, part_of(x, inner.variable_id()));
    } else {
      of_inner = by_numbers(x, inner.variable_id());
    }
    if (is_none(of_inner)) return none<VariableId>();
    if (other.kind == Operand::variable) need_after(other.variable_id());
    const VariableId made = is_none(target) ? new_variable(type_of(x)) : target;
    emit(after_made_, made, e.callee.builtin_id,
         picks ? std::vector{variable(of_inner), other} : std::vector{other, variable(of_inner)},
         type_of(x));
    return at->second = made;
  }
  // A copy of the chain of casts; gives its innermost.
  hir::ExpressionId copy_expressions(hir::ExpressionId& value) {
    Function& f = main();
    Expression copy = f.expressions[value];
    hir::ExpressionId inner = none<hir::ExpressionId>();
    if (copy.kind == Expression::cast) inner = copy_expressions(copy.inner);
    value = f.expressions.add(std::move(copy));
    return is_none(inner) ? value : inner;
  }

  // The range program computes the variable.
  void need_range(VariableId v) {
    if (again_ || !in_range_.insert(v).second) return;
    const State s = states_[index(v)];
    const StatementId at = def_[index(v)];
    if (s.kind == State::same && !is_cheap(at)) return read_before(v);
    for (const Operand& o : operands_of(at))
      if (o.kind == Operand::variable) need_range(o.variable_id());
    range_made_.push_back(at);
  }
  void need_before(VariableId v) {
    if (!in_before_.insert(v).second) return;
    const StatementId at = def_[index(v)];
    for (const Operand& o : operands_of(at))
      if (o.kind == Operand::variable) need_before(o.variable_id());
    before_made_.push_back(at);
  }
  // What is not worth a column of its own: columns as they are, and what is no vector.
  bool is_cheap(StatementId at) {
    const Expression& e = call_of(at);
    if (statement(at).targets.size() != 1 || !basic_of(statement(at).targets[0].variable_id()))
      return true;
    if (e.kind == Expression::operand)  // a conversion is work
      return statement(at).value == innermost(main(), statement(at).value);
    switch (e.callee.builtin_id) {
      case Builtin::column_value:
      case Builtin::column_valid: return true;
      case Builtin::values:
      case Builtin::fetch:
        return e.operands[0].kind == Operand::variable &&
               types()[type_of(e.operands[0].variable_id())].kind == TypeKind::enumeration;
      default: return false;
    }
  }

  // --- Columns between the programs ---

  Operand variable(VariableId v) {
    Operand o;
    o.kind = Operand::variable;
    o.id = static_cast<uint32_t>(index(v));
    o.name = main().variables[v].name;
    return o;
  }
  Operand literal(hir::Literal literal) {
    Operand o;
    o.kind = Operand::literal;
    o.id = static_cast<uint32_t>(index(program_.literals.add(std::move(literal))));
    return o;
  }
  Operand number(int64_t n) {
    return literal(
        {.type = types().basic(BasicType::i64), .values = std::vector<int64_t>{n}, .span = {}});
  }
  Operand symbol(const std::string& text) {
    return literal({.type = types().basic(BasicType::sym),
                    .values = std::vector<std::string>{text},
                    .span = {}});
  }
  Operand function(Builtin b) {
    hir::FunctionRef f;
    f.kind = hir::FunctionRef::builtin;
    f.builtin_id = b;
    f.name = program_.names->intern(hir::row(b).name);
    return literal(
        {.type = types().function(), .values = std::vector<hir::FunctionRef>{f}, .span = {}});
  }
  VariableId new_variable(TypeId type) {
    Function& f = main();
    const auto id = f.variables.add({});
    f.variables[id].name =
        program_.names->intern("part_" + options_.prefix + std::to_string(index(id)));
    f.variables[id].type = type;
    states_.push_back({});
    def_.push_back(none<StatementId>());
    return id;
  }
  void emit(std::vector<StatementId>& to, VariableId target, Builtin b,
            std::vector<Operand> operands, TypeId type, Span span = {}) {
    Function& f = main();
    Expression e;
    e.kind = Expression::call;
    e.span = span;
    for (Operand& o : operands) e.operands.push_back(o);
    e.callee.kind = hir::FunctionRef::builtin;
    e.callee.builtin_id = b;
    e.callee.name = program_.names->intern(hir::row(b).name);
    e.types.push_back(type);
    Statement s;
    s.kind = Statement::assign;
    s.span = span;
    s.value = f.expressions.add(std::move(e));
    hir::Target t;
    t.kind = hir::Target::variable;
    t.id = static_cast<uint32_t>(index(target));
    t.name = f.variables[target].name;
    t.declares = true;
    t.declared_type = f.variables[target].type;
    t.span = span;
    s.targets.push_back(t);
    to.push_back(f.statements.add(std::move(s)));
  }
  // v = the column
  void load(std::vector<StatementId>& to, VariableId v, const std::string& table,
            const std::string& column) {
    auto [at, fresh] = tables_read_[&to].try_emplace(table, VariableId{});
    if (fresh) {
      at->second = new_variable(types().table());
      emit(to, at->second, Builtin::load_table, {symbol(table)}, types().table());
    }
    emit(to, v, Builtin::column_value, {variable(at->second), symbol(column)}, type_of(v));
  }
  std::string column_name(VariableId v) { return options_.prefix + std::to_string(index(v)); }
  // The table that a vector of that size is a column of: the one that it has a row for each of.
  std::string table_of(SizeId size, const char* kind) {
    if (table_[size].kind == Size::symbol) {
      const std::string_view name = program_.text(table_[size].name);
      if (name.starts_with("data.") && name.ends_with(".rows"))
        return std::string(name.substr(5, name.size() - 10));
    }
    return options_.prefix + kind + std::to_string(index(size));
  }

  // A result of `before`, which the range program reads.
  size_t before_result(VariableId v, SizeId size, bool one) {
    need_before(v);
    for (size_t i = 0; i < before_vars_.size(); ++i)
      if (before_vars_[i] == v) return i;
    before_vars_.push_back(v);
    before_results_.push_back(
        {.table = one ? options_.prefix + "o" + std::to_string(index(v)) : table_of(size, "b"),
         .column = column_name(v)});
    return before_results_.size() - 1;
  }
  void read_before(VariableId v) {
    const StatementId at = def_[index(v)];
    const SizeId size = size_of_result(at);
    const bool one = !is_none(size) && table_[size].kind == Size::constant;
    const std::string own = is_none(size) ? options_.prefix + "v" + std::to_string(index(v)) : "";
    const size_t result = before_result(v, size, one || is_none(size));
    const SplitResult& r = before_results_[result];
    if (one && table_[size].value == 1) {
      const VariableId column = new_variable(type_of(v));
      load(range_made_, column, r.table, r.column);
      emit(range_made_, v, Builtin::index, {variable(column), number(0)}, type_of(v));
    } else {
      load(range_made_, v, r.table, r.column);
    }
  }

  // A result of the range program, which `after` has all of in `to`.
  void send(VariableId v, const std::string& table, VariableId to) {
    need_range(v);
    const State s = states_[index(v)];
    const std::string column = column_name(v);
    const size_t result = range_results_.size();
    range_vars_.push_back(v);
    range_results_.push_back({.table = table, .column = column});
    load(after_made_, to, table, column);
    if (!s.is_rows() || is_none(s.counts)) return;
    if (s.counts_moved) {
      range_results_[result].merge = SplitResult::place;
      return;
    }
    const size_t rows = length_result(s.counts);
    range_results_[result].merge = SplitResult::rebase;
    range_results_[result].rows = rows;
  }
  void send_rows(VariableId v) {
    need_range(v);
    const State s = states_[index(v)];
    const StatementId at = def_[index(v)];
    if (is_cheap(at)) {  // the column itself
      for (const Operand& o : operands_of(at))
        if (o.kind == Operand::variable) need_after(o.variable_id());
      after_made_.push_back(at);
      return;
    }
    send(v, table_of(s.size, "r"), v);
  }
  // The result that says how many rows of that size a range has: of a vector of the range.
  size_t length_result(SizeId size) {
    if (auto known = lengths_.find(size); known != lengths_.end()) return known->second;
    for (VariableId v{}; index(v) < variables_; v = static_cast<VariableId>(index(v) + 1)) {
      if (!states_[index(v)].is_rows() || states_[index(v)].size != size || is_none(def_[index(v)]))
        continue;
      need_range(v);
      const TypeId i64 = types().basic(BasicType::i64);
      const VariableId length = new_variable(i64);
      emit(range_made_, length, Builtin::len, {variable(v)}, i64);
      range_vars_.push_back(length);
      range_results_.push_back({.table = options_.prefix + "l" + std::to_string(index(size)),
                                .column = column_name(length)});
      return lengths_[size] = range_results_.size() - 1;
    }
    CHECK(false, "rows are counted that no vector has");
    return 0;
  }

  void carry(VariableId v) {
    const StatementId at = def_[index(v)];
    const Expression e = call_of(at);
    const VariableId base = e.operands[0].variable_id();
    const SizeId size = size_of_result(def_[index(base)]);
    if (is_none(size)) return forbid(at);
    const size_t first = before_result(base, size, false);
    for (size_t k = 1; k < 3; ++k)
      if (e.operands[k].kind == Operand::variable) need_range(e.operands[k].variable_id());
    const std::string table = before_results_[first].table, column = column_name(v);
    const VariableId given = new_variable(type_of(v));
    load(range_made_, given, table, column);
    Function& f = main();
    Statement copy = f.statements[at];
    const hir::ExpressionId inner = copy_expressions(copy.value);
    f.expressions[inner].operands[0] = variable(given);
    range_made_.push_back(f.statements.add(std::move(copy)));
    range_vars_.push_back(v);
    range_results_.push_back(
        {.merge = SplitResult::carry, .table = table, .column = column, .first = first});
    load(after_made_, v, table, column);
  }

  // --- Groups ---

  static constexpr size_t sum_parts = 3;  // of a float: of 80 bits and more together
  struct Merged {
    VariableId groups, places, first_of_range;
    // Where floats are summed: the rows of a range's groups; in `after` those of the keys that come
    // with parts of sums, and the numbers and lengths of the groups; which results the keys are.
    VariableId rows_of_range = none<VariableId>(), places_of_parts = none<VariableId>(),
               numbers = none<VariableId>(), count = none<VariableId>();
    std::vector<size_t> keys_of_parts;
  };
  struct FloatSum {  // of each group
    size_t result;   // of the range program: its parts, of all groups one behind the other
    VariableId sum;  // in `after`
  };
  std::string group_table(StatementId group) {
    return options_.prefix + "g" + std::to_string(index(group));
  }

  // Of parts of sums: those of all groups one behind the other, beside the keys as often.
  std::string parts_table(StatementId group) { return group_table(group) + "p"; }

  // The group of the partial results, in `after`.
  const Merged& merged(StatementId group) {
    if (auto known = merged_.find(group); known != merged_.end()) return known->second;
    const Expression e = call_of(group);
    const std::vector<VariableId> columns = columns_of(e.operands[0]);
    const TypeId i64 = types().basic(BasicType::i64);
    Merged& m = merged_[group];
    m.first_of_range = new_variable(i64);
    need_range(statement(group).targets[0].variable_id());
    emit(range_made_, m.first_of_range, Builtin::keys,
         {variable(statement(group).targets[0].variable_id())}, i64);
    std::vector<VariableId> keys;
    for (VariableId v : columns) keys.push_back(gathered(group, v));
    const Merged again = group_again(after_made_, group, keys);
    m.groups = again.groups;
    m.places = again.places;
    return m;
  }
  Merged group_again(std::vector<StatementId>& to, StatementId group,
                     const std::vector<VariableId>& keys) {
    const TypeId i64 = types().basic(BasicType::i64),
                 dict = type_of(statement(group).targets[0].variable_id());
    std::vector<Operand> operands;
    std::vector<TypeId> key_types;
    for (VariableId key : keys) {
      operands.push_back(variable(key));
      key_types.push_back(type_of(key));
    }
    Operand all = operands[0];
    if (of(operands_of(group)[0]).kind == State::rows_list) {
      const VariableId list = new_variable(program_.types->tuple(key_types));
      emit(to, list, Builtin::list, operands, type_of(list));
      all = variable(list);
    }
    Merged m{.groups = new_variable(dict),
             .places = new_variable(program_.types->list(i64)),
             .first_of_range = none<VariableId>()};
    emit(to, m.groups, Builtin::group, {all}, dict, statement(group).span);
    emit(to, m.places, Builtin::values, {variable(m.groups)}, type_of(m.places));
    return m;
  }
  // Elements of `v` at the first row of each group of each range, as `after` has them.
  VariableId gathered(StatementId group, VariableId v) {
    if (!merged_.count(group)) (void)merged(group);
    if (auto known = gathered_.find({group, v}); known != gathered_.end()) return known->second;
    need_range(v);
    const VariableId part = new_variable(type_of(v));
    emit(range_made_, part, Builtin::index,
         {variable(v), variable(merged_.at(group).first_of_range)}, type_of(v));
    const State& of_rows = states_[index(v)];
    if (counts_in_own_order(of_rows)) refuse_own_order(v);
    states_[index(part)] = {.kind = State::rows,
                            .counts = of_rows.counts,
                            .counts_moved = of_rows.counts_moved};
    in_range_.insert(part);
    const VariableId all = new_variable(type_of(v));
    range_how_[gathered_result_[{group, v}] = range_results_.size()] = Builtin::index;
    send(part, group_table(group), all);
    return gathered_[{group, v}] = all;
  }
  void merge(VariableId v) {
    const State s = states_[index(v)];
    const Span span = statement(def_[index(v)]).span;
    const Merged m = merged(s.at);
    const TypeId type = type_of(v), i64 = types().basic(BasicType::i64);
    if (s.builtin == Builtin::index) {
      const VariableId all = gathered(s.at, s.of), first = new_variable(i64);
      emit(after_made_, first, Builtin::keys, {variable(m.groups)}, i64);
      emit(after_made_, v, Builtin::index, {variable(all), variable(first)}, type, span);
      return;
    }
    if ((s.builtin == Builtin::sum || s.builtin == Builtin::avg) &&
        is_summed_in_parts(variable(s.of)))
      return merge_floats(v);
    const VariableId parts = new_variable(type);
    range_how_[range_results_.size()] = s.builtin == Builtin::len ? Builtin::sum : s.builtin;
    send(v, group_table(s.at), parts);
    reduce_cells(after_made_, v, s.builtin == Builtin::len ? Builtin::sum : s.builtin, parts,
                 m.places, span);
  }
  // v = each of the groups' cells of `parts` reduced
  void reduce_cells(std::vector<StatementId>& to, VariableId v, Builtin by, VariableId parts,
                    VariableId places, Span span) {
    const TypeId list = program_.types->list(type_of(v));
    const VariableId cells = new_variable(list);
    emit(to, cells, Builtin::each_right,
         {function(Builtin::index), variable(parts), variable(places)}, list, span);
    emit_each(to, v, by, cells, span);
  }
  void emit_each(std::vector<StatementId>& to, VariableId v, Builtin by, VariableId cells,
                 Span span) {
    const TypeId type = type_of(v), list = program_.types->list(type);
    const VariableId each = new_variable(list);
    emit(to, each, Builtin::each, {function(by), variable(cells)}, list, span);
    emit(to, v, Builtin::raze, {variable(each)}, type, span);
  }

  // --- Sums of floats ---
  //
  // x as `sum_parts` vectors and a rest: each element's multiple of a unit, of what that leaves the
  // multiple of a smaller unit, and so on. A unit is so large that no sum of these multiples has
  // more bits than a double: sums of a part are exact, and the sum of the sums of all parts of all
  // ranges is that of x. (x + s) - s is the multiple, where s is 8 times as large as the magnitudes
  // of all elements together: T. Ogita, S. M. Rump, S. Oishi, "Accurate floating-point summation
  // part I", SIAM J. Sci. Comput. 31, 2008. Where the rest is not 0, as of infinite elements, `rest`
  // is true, and what came of the parts must not be used.
  struct Parts {
    std::array<VariableId, sum_parts> parts;
    VariableId rest;
  };
  Parts float_parts(std::vector<StatementId>& to, VariableId x) {
    const TypeId f64 = types().basic(BasicType::f64), i64 = types().basic(BasicType::i64),
                 boolean = types().basic(BasicType::boolean);
    const auto make = [&](Builtin b, std::vector<Operand> operands, TypeId type) {
      const VariableId v = new_variable(type);
      emit(to, v, b, std::move(operands), type);
      return variable(v);
    };
    const auto real = [&](double value) {
      return literal({.type = f64, .values = std::vector<double>{value}, .span = {}});
    };
    Parts made;
    const Operand most = make(Builtin::max, {make(Builtin::abs, {variable(x)}, f64)}, f64);
    const Operand count = make(Builtin::len, {variable(x)}, i64);
    const Operand eightfold = make(Builtin::mul, {count, real(8)}, f64);
    Operand s = make(Builtin::mul, {most, eightfold}, f64), left = variable(x);
    for (VariableId& part : made.parts) {
      const Operand multiple =
          make(Builtin::minus, {make(Builtin::plus, {left, s}, f64), s}, f64);
      part = multiple.variable_id();
      left = make(Builtin::minus, {left, multiple}, f64);
      // What is left of an element is at most s in 2^52.
      s = make(Builtin::mul, {make(Builtin::mul, {s, eightfold}, f64), real(0x1p-52)}, f64);
    }
    made.rest = make(Builtin::any, {make(Builtin::neq, {left, real(0)}, boolean)}, boolean)
                    .variable_id();
    return made;
  }
  // Of a vector of the range.
  const Parts& parts_of_range(VariableId x) {
    const auto [at, fresh] = float_parts_.try_emplace(x);
    if (!fresh) return at->second;
    need_range(x);
    at->second = float_parts(range_made_, x);
    range_vars_.push_back(at->second.rest);
    range_results_.push_back({.merge = SplitResult::refutes,
                              .table = options_.prefix + "f" + std::to_string(index(x)),
                              .column = column_name(at->second.rest)});
    return at->second;
  }
  VariableId append_all(std::vector<StatementId>& to, const std::vector<VariableId>& vectors) {
    VariableId all = vectors[0];
    for (size_t i = 1; i < vectors.size(); ++i) {
      const VariableId more = new_variable(type_of(all));
      emit(to, more, Builtin::append, {variable(all), variable(vectors[i])}, type_of(all));
      all = more;
    }
    return all;
  }
  VariableId repeat(std::vector<StatementId>& to, VariableId v) {  // once for each part of a sum
    return append_all(to, std::vector<VariableId>(sum_parts, v));
  }
  // A value of each range, which `after` has all of.
  VariableId pieces_of(VariableId v, VariableId of) {
    in_range_.insert(v);
    const VariableId pieces = new_variable(type_of(v));
    send(v, options_.prefix + "p" + std::to_string(index(of)), pieces);
    return pieces;
  }
  // v = the sum or the average of all elements of a vector
  void reduce_floats(VariableId v) {
    const State s = states_[index(v)];
    const Span span = statement(def_[index(v)]).span;
    const TypeId f64 = types().basic(BasicType::f64), i64 = types().basic(BasicType::i64);
    const bool average = s.builtin == Builtin::avg;
    const Parts parts = parts_of_range(s.of);
    std::vector<VariableId> pieces;
    for (VariableId part : parts.parts) {
      const VariableId sum = new_variable(f64);
      emit(range_made_, sum, Builtin::sum, {variable(part)}, f64, span);
      pieces.push_back(pieces_of(sum, v));
    }
    const VariableId sum = average ? new_variable(f64) : v;
    emit(after_made_, sum, Builtin::sum, {variable(append_all(after_made_, pieces))}, f64, span);
    if (!average) return;
    const VariableId length = new_variable(i64), count = new_variable(i64);
    emit(range_made_, length, Builtin::len, {variable(s.of)}, i64, span);
    emit(after_made_, count, Builtin::sum, {variable(pieces_of(length, v))}, i64, span);
    emit(after_made_, v, Builtin::div, {variable(sum), variable(count)}, f64, span);
  }
  // v = the sum or the average of each group's elements of a vector
  void merge_floats(VariableId v) {
    const State s = states_[index(v)];
    const Span span = statement(def_[index(v)]).span;
    const TypeId f64 = types().basic(BasicType::f64), i64 = types().basic(BasicType::i64);
    const bool average = s.builtin == Builtin::avg;
    (void)merged(s.at);
    Merged& m = merged_.at(s.at);
    if (is_none(m.rows_of_range)) {
      m.rows_of_range = new_variable(program_.types->list(i64));
      emit(range_made_, m.rows_of_range, Builtin::values,
           {variable(statement(s.at).targets[0].variable_id())}, type_of(m.rows_of_range), span);
    }
    auto [at, fresh] = float_sums_.try_emplace({s.at, s.of});
    FloatSum& made = at->second;
    if (fresh) {
      const Parts parts = parts_of_range(s.of);
      std::vector<VariableId> parts_of_groups;
      for (VariableId part : parts.parts) {
        parts_of_groups.push_back(new_variable(f64));
        reduce_cells(range_made_, parts_of_groups.back(), Builtin::sum, part, m.rows_of_range,
                     span);
      }
      const VariableId all = new_variable(f64);
      made.result = send_group(parts_table(s.at), append_all(range_made_, parts_of_groups), all);
      if (is_none(m.places_of_parts)) {
        std::vector<VariableId> keys;
        for (VariableId key : columns_of(operands_of(s.at)[0])) {
          const VariableId one = new_variable(type_of(key));
          emit(range_made_, one, Builtin::index, {variable(key), variable(m.first_of_range)},
               type_of(key));
          keys.push_back(new_variable(type_of(key)));
          m.keys_of_parts.push_back(
              send_group(parts_table(s.at), repeat(range_made_, one), keys.back()));
        }
        m.places_of_parts = group_again(after_made_, s.at, keys).places;
        const VariableId first = new_variable(i64), count = new_variable(i64);
        m.numbers = new_variable(i64);
        emit(after_made_, first, Builtin::keys, {variable(m.groups)}, i64, span);
        emit(after_made_, count, Builtin::len, {variable(first)}, i64, span);
        emit(after_made_, m.numbers, Builtin::range, {variable(count)}, i64, span);
      }
      const VariableId sums = new_variable(f64);
      reduce_cells(after_made_, sums, Builtin::sum, all, m.places_of_parts, span);
      made.sum = new_variable(f64);  // of one length with what else there is of the groups
      emit(after_made_, made.sum, Builtin::index, {variable(sums), variable(m.numbers)}, f64, span);
    }
    if (!average) return copy(v, made.sum);
    if (is_none(m.count)) {
      const VariableId lengths = new_variable(i64), all = new_variable(i64);
      emit_each(range_made_, lengths, Builtin::len, m.rows_of_range, span);
      range_how_[send_group(group_table(s.at), lengths, all)] = Builtin::sum;
      m.count = new_variable(i64);
      reduce_cells(after_made_, m.count, Builtin::sum, all, m.places, span);
    }
    emit(after_made_, v, Builtin::div, {variable(made.sum), variable(m.count)}, f64, span);
  }
  // A value of each group of a range, which `after` has all of in `to`: the result.
  size_t send_group(const std::string& table, VariableId v, VariableId to) {
    in_range_.insert(v);
    send(v, table, to);
    return range_results_.size() - 1;
  }
  // The groups of several ranges as those of one.
  void make_merge(StatementId group, Split& out) {
    std::vector<StatementId> made;
    std::map<size_t, VariableId> parts;
    const auto load_part = [&](size_t result) {
      const SplitResult& r = range_results_[result];
      const VariableId part = new_variable(type_of(range_vars_[result]));
      load(made, part, r.table, r.column);
      return part;
    };
    for (const auto& [result, how] : range_how_)
      if (range_results_[result].table == group_table(group)) parts[result] = load_part(result);
    std::vector<VariableId> keys;
    for (VariableId v : columns_of(operands_of(group)[0]))
      keys.push_back(parts.at(gathered_result_.at({group, v})));
    const Merged m = group_again(made, group, keys);
    const TypeId i64 = types().basic(BasicType::i64);
    const VariableId first = new_variable(i64);
    emit(made, first, Builtin::keys, {variable(m.groups)}, i64);
    Split::Merge merge;
    std::vector<VariableId> results;
    for (const auto& [result, part] : parts) {
      const VariableId merged = new_variable(type_of(part));
      if (range_how_[result] == Builtin::index)
        emit(made, merged, Builtin::index, {variable(part), variable(first)}, type_of(part));
      else
        reduce_cells(made, merged, range_how_[result], part, m.places, {});
      results.push_back(merged);
      merge.results.push_back(result);
    }
    std::vector<VariableId> rests, keys_of_parts;
    const auto add_result = [&](size_t result, VariableId v) {
      results.push_back(v);
      merge.results.push_back(result);
    };
    Merged of_parts{};
    for (size_t result : merged_.at(group).keys_of_parts) keys_of_parts.push_back(load_part(result));
    if (!keys_of_parts.empty()) {
      of_parts = group_again(made, group, keys_of_parts);
      of_parts.first_of_range = new_variable(i64);
      emit(made, of_parts.first_of_range, Builtin::keys, {variable(of_parts.groups)}, i64);
    }
    for (size_t k = 0; k < keys_of_parts.size(); ++k) {
      const VariableId key = keys_of_parts[k], one = new_variable(type_of(key));
      emit(made, one, Builtin::index, {variable(key), variable(of_parts.first_of_range)},
           type_of(key));
      add_result(merged_.at(group).keys_of_parts[k], repeat(made, one));
    }
    for (const auto& [of, sum] : float_sums_) {
      if (of.first != group) continue;
      const Parts again = float_parts(made, load_part(sum.result));
      std::vector<VariableId> merged;
      for (VariableId part : again.parts) {
        merged.push_back(new_variable(type_of(part)));
        reduce_cells(made, merged.back(), Builtin::sum, part, of_parts.places, {});
      }
      add_result(sum.result, append_all(made, merged));
      rests.push_back(again.rest);
    }
    results.insert(results.end(), rests.begin(), rests.end());
    merge.program = make(made, results);
    out.merges.push_back(std::move(merge));
  }

  // --- The programs ---

  hir::Program make(const std::vector<StatementId>& statements, std::vector<Operand> results,
                    std::vector<TypeId> types) {
    hir::Program p = program_;
    Function& f = p.functions[p.main];
    f.statements = {};
    f.expressions = {};
    f.blocks = {};
    hir::Block body;
    for (StatementId id : statements) {
      Statement s = main().statements[id];
      if (!is_none(s.value)) s.value = moved(f, s.value);
      body.statements.push_back(f.statements.add(std::move(s)));
    }
    Statement ret;
    ret.kind = Statement::return_;
    ret.results = std::move(results);
    ret.span = main().statements[return_].span;
    f.result_types = std::move(types);
    body.statements.push_back(f.statements.add(std::move(ret)));
    f.body = f.blocks.add(std::move(body));
    return p;
  }
  hir::ExpressionId moved(Function& to, hir::ExpressionId id) {
    Expression e = main().expressions[id];
    if (e.kind == Expression::cast) e.inner = moved(to, e.inner);
    return to.expressions.add(std::move(e));
  }
  hir::Program make(const std::vector<StatementId>& statements,
                    const std::vector<VariableId>& results) {
    std::vector<Operand> operands;
    std::vector<TypeId> result_types;
    for (VariableId v : results) {
      operands.push_back(variable(v));
      result_types.push_back(type_of(v));
    }
    return make(statements, std::move(operands), std::move(result_types));
  }
  void finish(Split& out) {
    for (const auto& [group, merged] : merged_) make_merge(group, out);
    if (!before_results_.empty()) out.before = make(before_made_, before_vars_);
    out.range = make(range_made_, range_vars_);
    out.after = make(after_made_, statement(return_).results, main().result_types);
    out.before_results = std::move(before_results_);
    out.range_results = std::move(range_results_);
    if (cut_used_) out.cut = cut_column_;
    out.keys = keys_;
    out.whole = std::move(whole_);
  }

  const SplitOptions& options_;
  hir::Program program_;
  ShapeTable table_;
  Shapes shapes_;
  std::vector<StatementId> order_;
  StatementId return_ = none<StatementId>();
  size_t statements_ = 0, literals_ = 0, variables_ = 0, expressions_ = 0;  // of the program given
  std::set<StatementId> forbidden_;  // to be part of the range program
  bool again_ = false;

  std::vector<State> states_;     // per variable
  std::vector<StatementId> def_;  // per variable
  std::map<StatementId, SizeId> group_size_;
  std::map<StatementId, bool> group_moved_;
  std::string cut_column_;
  bool cut_used_ = false;
  std::vector<SplitKey> keys_;  // the rows are ordered by them
  std::map<StatementId, size_t> key_columns_;
  SizeId rows_of_table_ = none<SizeId>();
  std::string refused_;
  std::set<VariableId> in_before_, in_range_, in_after_;
  std::vector<StatementId> before_made_, range_made_, after_made_;
  std::vector<VariableId> before_vars_, range_vars_;
  std::vector<SplitResult> before_results_, range_results_;
  std::map<const std::vector<StatementId>*, std::map<std::string, VariableId>>
      tables_read_;                      // by who reads them
  std::map<size_t, Builtin> range_how_;  // results of groups: how pieces are put together
  std::map<std::pair<StatementId, VariableId>, size_t> gathered_result_;
  std::map<SizeId, size_t> lengths_;
  std::map<StatementId, Merged> merged_;
  std::map<std::pair<StatementId, VariableId>, VariableId> gathered_;
  std::map<std::pair<VariableId, VariableId>, VariableId> by_numbers_, parts_;
  std::map<VariableId, Parts> float_parts_;
  std::map<std::pair<StatementId, VariableId>, FloatSum> float_sums_;
  std::vector<Split::Whole> whole_;
  std::map<StatementId, size_t> place_;  // in order_
};

}  // namespace

Split split(const hir::Program& program, const SplitOptions& options) {
  return Splitter(program, options).run();
}

Split divide(const hir::Program& program, const std::string& prefix) {
  return Splitter(program, {.prefix = prefix}).divide();
}

}  // namespace rndn::outliner
