// What each variable is in a run of a range, statement by statement, and whether columns are the keys that rows are ordered by.
#include <algorithm>

#include "outliner/split/splitter.h"

namespace rndn::outliner::splitting {

// Those of a group or an order, where they are columns of the table, or selections of such.
bool Splitter::set_keys(StatementId at) {
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
  if (orders && (!directions || (directions->size() != 1 && directions->size() != columns.size()))) return false;
  for (size_t k = 0; k < columns.size(); ++k) {
    Operand o = columns[k];
    if (o.kind != Operand::variable || !basic_of(o)) return false;
    StatementId from = made.at(o.variable_id());
    while (call_of(from).kind == Expression::call && call_of(from).callee.builtin_id == Builtin::compress) {
      o = call_of(from).operands[1];
      if (o.kind != Operand::variable) return false;
      from = made.at(o.variable_id());
    }
    const Expression& column = call_of(from);
    if (column.kind != Expression::call ||
        (column.callee.builtin_id != Builtin::column_value && column.callee.builtin_id != Builtin::column_valid))
      return false;
    if (column.operands[0].kind != Operand::variable || !is_table(call_of(made.at(column.operands[0].variable_id()))))
      return false;
    if (!basic_of(o)) return false;
    const bool valid = column.callee.builtin_id == Builtin::column_valid;
    keys_.push_back({.column = text_of(column.operands[1]),
                     .valid = valid,
                     .type = *basic_of(o),
                     .ascending = !directions || (*directions)[directions->size() == 1 ? 0 : k] != 0});
    if (!key_columns_.emplace(from, k + 1).second) return false;
  }
  return true;
}

// All keys, each once, in their order.
bool Splitter::are_keys(const std::vector<VariableId>& columns) {
  if (keys_.empty() || columns.size() != keys_.size()) return false;
  for (size_t k = 0; k < columns.size(); ++k)
    if (states_[index(columns[k])].key != k + 1 || !is_values(states_[index(columns[k])])) return false;
  return true;
}

State Splitter::of(const Operand& o) { return o.kind == Operand::variable ? states_[index(o.variable_id())] : State{}; }

State Splitter::rows(SizeId size) { return is_none(size) ? whole() : State{.kind = State::rows, .size = size}; }

State Splitter::in_order_of(const State& x, SizeId size) {
  State made = rows(size);
  made.moved = x.moved && made.is_rows();
  return made;
}

void Splitter::classify(StatementId id) {
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
  } else if (s.targets.size() == 1 && s.targets[0].kind == hir::Target::variable && !forbidden_.count(id)) {
    const VariableId target = s.targets[0].variable_id();
    const bool as_is = s.value == innermost(main(), s.value) && e.types.size() == 1 && e.types[0] == type_of(target);
    if (e.kind != Expression::operand)
      made = is_whole ? whole() : of_range(id, e, target);
    else if (as_is)
      made = of(e.operands[0]);
    else if (is_values(of(e.operands[0])))
      made = in_order_of(of(e.operands[0]), of(e.operands[0]).size);
    if (!as_is && !made.is_rows() && made.kind != State::foreign) made = whole();  // a cast of a part
    const bool is_column = e.callee.builtin_id == Builtin::column_value || e.callee.builtin_id == Builtin::column_valid;
    if (!as_is && !is_column) made.cut = false, made.key = 0;
    if (!is_none(made.counts) && made.is_rows() && basic_of(target) != BasicType::i64) made = whole();
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

// With an operand that is only known after all ranges. Numbers of groups' first rows, which are
// of other rows there, may only be gathered and used to gather: State::at says of which groups.
State Splitter::after_all(const Expression& e) {
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

void Splitter::forbid_numbers(const Expression& e) {
  for (const Operand& o : e.operands)
    if (const State s = of(o); s.kind == State::first || (s.kind == State::whole && !is_none(s.at))) forbid(s.at);
}

bool Splitter::is_values_of_group(const Operand& x, StatementId group) {
  const State& s = of(x);
  return s.is_rows() && s.size == group_size_[group] && s.moved == group_moved_[group];
}

State Splitter::elementwise(StatementId id, const Expression& e) {
  SizeId size = none<SizeId>();
  State like;
  for (size_t k = 0; k < e.operands.size(); ++k) {
    const State o = of(e.operands[k]);
    if (o.kind == State::same ? is_one(id, k) || is_set(e.callee.builtin_id, k)
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
std::vector<VariableId> Splitter::columns_of(const Operand& o) {
  if (o.kind != Operand::variable) return {};
  std::vector<VariableId> columns;
  const State& s = of(o);
  if (s.is_rows()) columns = {o.variable_id()};
  if (s.kind == State::rows_list)
    for (const Operand& part : call_of(def_[index(o.variable_id())]).operands) columns.push_back(part.variable_id());
  for (VariableId v : columns)
    if (states_[index(v)].size != states_[index(columns[0])].size ||
        !same_order(states_[index(v)], states_[index(columns[0])]))
      return {};
  return columns;
}

State Splitter::of_range(StatementId id, const Expression& e, VariableId target) {
  const auto operand = [&](size_t k) { return of(e.operands[k]); };
  const SizeId size = size_of_result(id);
  const Builtin b = e.callee.builtin_id;
  switch (b) {
    case Builtin::column_value:
    case Builtin::column_valid: {
      if (operand(0).kind != State::table) return whole();
      const bool cut = b == Builtin::column_value && is_ascending(text_of(e.operands[1]), basic_of(target));
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
      if (!is_values(operand(0)) || !operand(1).is_rows() || operand(0).size != operand(1).size ||
          !same_order(operand(0), operand(1)))
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
      return operand(0).kind == State::same && is_values(operand(1)) && is_one(id, 2) && operand(2).kind == State::same
                 ? in_order_of(operand(1), size)
                 : whole();
    case Builtin::index_a: {
      const bool value =
          operand(2).kind == State::same ? is_one(id, 2) : is_values(operand(2)) && operand(2).size == operand(1).size;
      if (!value || !operand(1).is_rows()) return whole();
      if (options_.by_keys) return whole();  // of rows that repeat the last counts
      if (is_values(operand(0)) && operand(1).counts == operand(0).size) return rows(operand(0).size);
      if (operand(0).kind == State::same && is_none(operand(1).counts) && e.operands[0].kind == Operand::variable &&
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
      return operand(0).is_rows() ? State{.kind = State::length, .size = operand(0).size, .moved = operand(0).moved}
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
      const bool keys =
          are_keys(columns) && std::all_of(keys_.begin(), keys_.end(), [](const SplitKey& k) { return k.ascending; });
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
      if (types()[made].kind != TypeKind::list || !types().is_basic(types()[made].components[0])) return whole();
      const BasicType element = types().basic_of(types()[made].components[0]);
      State result{.kind = State::per_cell, .cut = is_cut(x.at), .at = x.at, .of = x.of, .builtin = *f};
      const bool reduces = *f == Builtin::len || *f == Builtin::sum || *f == Builtin::min || *f == Builtin::max ||
                           *f == Builtin::any || *f == Builtin::all;
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
bool Splitter::is_ordered_so(const Operand& o) {
  const auto* directions = literal_of<int64_t>(o);
  if (!directions) return false;
  for (size_t k = 0; k < keys_.size(); ++k)
    if (((*directions)[directions->size() == 1 ? 0 : k] != 0) != keys_[k].ascending) return false;
  return true;
}

bool Splitter::is_summed_in_parts(const Operand& x) {
  return options_.float_sums && x.kind == Operand::variable && basic_of(x) == BasicType::f64;
}

bool Splitter::is_ascending(const std::string& column, std::optional<BasicType> type) {
  const auto& known = options_.ascending;
  if (options_.by_keys || std::none_of(known.begin(), known.end(), [&](const SplitOptions::Ascending& a) {
        return a.column == column && a.type == type;
      }))
    return false;
  if (cut_column_.empty()) cut_column_ = column;
  return cut_column_ == column;
}

State Splitter::gather(StatementId id, const Expression& e) {
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
    return {.kind = State::per_group, .at = i.at, .of = e.operands[0].variable_id(), .builtin = Builtin::index};
  if (i.kind == State::first) forbid(i.at);
  return whole();
}

// Pairs ascend by the right row.
State Splitter::join(StatementId id, const Expression& e) {
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

}  // namespace rndn::outliner::splitting
