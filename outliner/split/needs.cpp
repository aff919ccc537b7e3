// Which statements each program has: what `after` reads, what the range program computes, what is left to be run before.
#include "outliner/split/splitter.h"

namespace rndn::outliner::splitting {

void Splitter::need_all() {
  for (const Operand& o : statement(return_).results)
    if (o.kind == Operand::variable) need_after(o.variable_id());
  check_numbers(statement(return_));
  for (StatementId id : order_) {  // what may fail is run, whether its value is read or not
    const Expression& e = call_of(id);
    const VariableId v = statement(id).targets[0].variable_id();
    if (e.kind != Expression::call || !hir::can_fail(e.callee.builtin_id, basic_of(v).value_or(BasicType::i64)))
      continue;
    if (states_[index(v)].is_rows())
      need_range(v);
    else
      need_after(v);
  }
}

// Numbers of groups' first rows are no result.
void Splitter::check_numbers(const Statement& s) {
  for (const Operand& o : s.results) {
    const State& state = of(o);
    if (state.kind == State::first || (state.kind == State::whole && !is_none(state.at))) forbid(state.at);
  }
}

// `after` reads the variable.
void Splitter::need_after(VariableId v) {
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
    case State::first: {
      const VariableId groups = merged(s.at).groups;
      emit(after_made_, v, Builtin::keys, {variable(groups)}, type_of(v), statement(at).span);
      return;
    }
    case State::per_group: return merge(v);
    case State::groups:
    case State::places:
    case State::cells:
    case State::per_cell: return forbid(s.at);
    case State::pairs: return forbid(s.at);
  }
}

// Numbers of rows that are ordered by keys, and are no rows of the table.
bool Splitter::counts_in_own_order(const State& s) {
  return !is_none(s.counts) && s.counts_moved && s.counts != rows_of_table_;
}

void Splitter::refuse_own_order(VariableId v) {
  refuse("`" + std::string(program_.text(main().variables[v].name)) + "` has its rows in their own order");
}

void Splitter::refuse(std::string why) {
  if (refused_.empty()) refused_ = std::move(why);
}

void Splitter::copy_after(StatementId at) {
  for (const Operand& o : operands_of(at))
    if (o.kind == Operand::variable) need_after(o.variable_id());
  after_made_.push_back(at);
}

void Splitter::whole_after(StatementId at) {
  const Expression e = call_of(at);
  bool all_rows = false;
  std::vector<Operand> operands(e.operands.begin(), e.operands.end());
  bool changed = false;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].kind != Operand::variable) continue;
    const VariableId v = operands[k].variable_id();
    const State s = states_[index(v)];
    if (k == 0 && e.kind == Expression::call && e.callee.builtin_id == Builtin::index && s.is_rows()) {
      const State& i = of(operands[1]);
      if (i.kind == State::whole && !is_none(i.at)) {  // by the first rows of groups
        operands[0] = variable(gathered(i.at, v));
        changed = true;
        continue;
      }
      if (i.kind == State::whole &&
          !is_none(by_numbers(v, operands[1].variable_id(), statement(at).targets[0].variable_id())))
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

VariableId Splitter::part_of(VariableId x, VariableId numbers) {  // in the range program
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

VariableId Splitter::by_numbers(VariableId x, VariableId numbers, VariableId target) {
  const auto [at, fresh] = by_numbers_.try_emplace({x, numbers}, none<VariableId>());
  if (!fresh) {
    if (!is_none(target) && !is_none(at->second)) copy(target, at->second);
    return at->second;
  }
  const State s = states_[index(numbers)];
  if (s.is_rows()) {
    if (s.counts != states_[index(x)].size || s.moved || s.counts_moved != states_[index(x)].moved)
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
  if (const State picked = of(other); picked.kind == State::whole && !is_none(picked.at)) {  // by groups' first rows
    if (!of(inner).is_rows() || of(inner).counts != states_[index(x)].size) return none<VariableId>();
    of_inner = gathered(picked.at, part_of(x, inner.variable_id()));
  } else {
    of_inner = by_numbers(x, inner.variable_id());
  }
  if (is_none(of_inner)) return none<VariableId>();
  if (other.kind == Operand::variable) need_after(other.variable_id());
  const VariableId made = is_none(target) ? new_variable(type_of(x)) : target;
  emit(after_made_, made, e.callee.builtin_id,
       picks ? std::vector{variable(of_inner), other} : std::vector{other, variable(of_inner)}, type_of(x));
  return at->second = made;
}

// The range program computes the variable.
void Splitter::need_range(VariableId v) {
  if (again_ || !in_range_.insert(v).second) return;
  const State s = states_[index(v)];
  const StatementId at = def_[index(v)];
  if (s.kind == State::same && !is_cheap(at)) return read_before(v);
  for (const Operand& o : operands_of(at))
    if (o.kind == Operand::variable) need_range(o.variable_id());
  range_made_.push_back(at);
}

void Splitter::need_before(VariableId v) {
  if (!in_before_.insert(v).second) return;
  const StatementId at = def_[index(v)];
  for (const Operand& o : operands_of(at))
    if (o.kind == Operand::variable) need_before(o.variable_id());
  before_made_.push_back(at);
}

void Splitter::carry(VariableId v) {
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
  range_results_.push_back({.merge = SplitResult::carry, .table = table, .column = column, .first = first});
  load(after_made_, v, table, column);
}

}  // namespace rndn::outliner::splitting
