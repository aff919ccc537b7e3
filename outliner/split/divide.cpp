// A program as two, one behind the other, and what the statement is of which there is only one: where few vectors are
// alive.
#include <algorithm>
#include <functional>

#include "outliner/split/splitter.h"

namespace rndn::outliner::splitting {

Split Splitter::divide() {
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

Split Splitter::two(Split out) {
  out.before = make(before_made_, before_vars_);
  out.after = make(after_made_, statement(return_).results, main().result_types);
  out.before_results = std::move(before_results_);
  return out;
}

// Those that read a list or a dictionary behind what made it, with all that they read besides.
void Splitter::bring_together() {
  std::map<StatementId, std::vector<StatementId>> readers;
  for (StatementId id : order_)
    for (const Operand& o : operands_of(id))
      if (o.kind == Operand::variable && !basic_of(o) && !is_light(def_[o.id])) readers[def_[o.id]].push_back(id);
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

// As many elements as a vector has.
bool Splitter::is_counted(StatementId at) {
  const Expression& e = call_of(at);
  return e.kind == Expression::call && is_light(at) &&
         (e.callee.builtin_id == Builtin::range || e.callee.builtin_id == Builtin::vector) &&
         e.operands[0].kind == Operand::variable && is_len(def_[e.operands[0].id]);
}

bool Splitter::is_len(StatementId at) {
  const Expression& e = call_of(at);
  return e.kind == Expression::call && e.callee.builtin_id == Builtin::len;
}

// Works on vectors: neither free nor of single values alone, nor a cell of a list.
bool Splitter::is_work(StatementId at) {
  if (is_light(at)) return false;
  const Expression& e = call_of(at);
  if (e.kind == Expression::call && e.callee.builtin_id == Builtin::index && e.operands[0].kind == Operand::variable &&
      number_of(e.operands[1]))
    return false;
  if (!is_scalar_result(at)) return true;
  for (size_t k = 0; k < e.operands.size(); ++k)
    if (e.operands[k].kind == Operand::variable && !is_one(at, k)) return true;
  return false;
}

Splitter::Alive Splitter::alive_at(size_t place) {
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
    const bool known = !is_none(size) && std::any_of(alive.vectors.begin(), alive.vectors.end(), [&](VariableId x) {
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
void Splitter::leave(const Alive& alive, size_t place, const char* kind) {
  const auto end = order_.begin() + static_cast<std::ptrdiff_t>(place);
  before_made_.assign(order_.begin(), end);
  std::map<SizeId, VariableId> by_size;  // a vector of that size
  const auto pass = [&](VariableId v) {
    const StatementId at = def_[index(v)];
    const bool one = is_scalar_result(at);
    const SizeId size = size_of_result(at);
    const std::string own = options_.prefix + "v" + std::to_string(index(v));
    before_vars_.push_back(v);
    before_results_.push_back({.table = one || is_none(size) ? own : table_of(size, kind), .column = column_name(v)});
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
    const SizeId size = of.kind == Operand::variable && basic_of(of) ? size_of_result(def_[of.id]) : none<SizeId>();
    const auto known = by_size.find(size);
    if (is_none(size) || known == by_size.end())
      pass(v);
    else
      emit(after_made_, v, Builtin::len, {variable(known->second)}, type_of(v), statement(at).span);
  }
  for (auto at = order_.begin(); at != order_.end(); ++at)
    if (at >= end || alive.again.count(*at)) after_made_.push_back(*at);
}

// What the one statement is that works on vectors.
void Splitter::describe_operation(Split& out) {
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
      if (sides[0].empty() || sides[0].size() != sides[1].size() || (functions != 1 && functions != sides[0].size()))
        return;
      for (size_t k : all_of(sides[0].size()))
        if (function_of(e.operands[functions == 1 ? 0 : k]) == Builtin::eq) operation.equal.push_back(k);
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
bool Splitter::can_carry_on(Builtin builtin, std::optional<BasicType> made) {
  if (!made) return false;
  if (builtin == Builtin::scan_sum) return hir::is_integer(*made) || *made == BasicType::f64;
  return hir::is_real(*made) || hir::is_calendar(*made);
}

std::string Splitter::name_of_work() {
  const auto at = std::find_if(order_.begin(), order_.end(), [&](StatementId id) { return is_work(id); });
  const Expression& e = call_of(*at);
  return e.kind == Expression::call ? std::string(hir::row(e.callee.builtin_id).name) : "check_cast";
}

// The vectors of a list, or the vector itself; nothing: not all of them are variables.
std::vector<Operand> Splitter::vectors_of(const Operand& o) {
  if (o.kind != Operand::variable) return {};
  if (basic_of(o)) return {o};
  const Expression& list = call_of(def_[o.id]);
  if (list.kind != Expression::call || list.callee.builtin_id != Builtin::list) return {};
  std::vector<Operand> all(list.operands.begin(), list.operands.end());
  for (const Operand& part : all)
    if (part.kind != Operand::variable || !basic_of(part)) return {};
  return all;
}

Operand Splitter::make_list(const std::vector<Operand>& columns) {  // in the range program
  std::vector<TypeId> column_types;
  for (const Operand& o : columns) column_types.push_back(type_of(o.variable_id()));
  const VariableId list = new_variable(program_.types->tuple(column_types));
  emit(range_made_, list, Builtin::list, columns, type_of(list));
  return variable(list);
}

// The programs of an operation that stands at `place`; false: what is read of it is no vector.
bool Splitter::leave_operation(Split& out, StatementId at, size_t place,
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
    return number && (*number == 0 || *number == 1) ? std::optional<size_t>(*number) : std::nullopt;
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
      if (!basic_of(e.operands[k])) operands.back() = make_list({first, first + static_cast<std::ptrdiff_t>(parts)});
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
  for (size_t k = 0; k < operands.size(); ++k) main().expressions[inner].operands[k] = operands[k];
  copy.targets[0].id = static_cast<uint32_t>(index(made));
  copy.targets[0].name = main().variables[made].name;
  range_made_.push_back(main().statements.add(std::move(copy)));
  range_vars_ = {made};
  const TypeId i64 = types().basic(BasicType::i64);
  if (pairs) {
    range_vars_ = {new_variable(i64), new_variable(i64)};
    for (int64_t k : {0, 1})
      emit(range_made_, range_vars_[static_cast<size_t>(k)], Builtin::index, {variable(made), number(k)}, i64);
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

}  // namespace rndn::outliner::splitting
