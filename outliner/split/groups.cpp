// Groups: a row per group and range, and how those of several ranges are put together.
#include "outliner/split/splitter.h"

namespace rndn::outliner::splitting {

std::string Splitter::group_table(StatementId group) { return options_.prefix + "g" + std::to_string(index(group)); }

// The group of the partial results, in `after`.
const Splitter::Merged& Splitter::merged(StatementId group) {
  if (auto known = merged_.find(group); known != merged_.end()) return known->second;
  const Expression e = call_of(group);
  const std::vector<VariableId> columns = columns_of(e.operands[0]);
  const TypeId i64 = types().basic(BasicType::i64);
  Merged& m = merged_[group];
  m.first_of_range = new_variable(i64);
  need_range(statement(group).targets[0].variable_id());
  emit(range_made_, m.first_of_range, Builtin::keys, {variable(statement(group).targets[0].variable_id())}, i64);
  std::vector<VariableId> keys;
  for (VariableId v : columns) keys.push_back(gathered(group, v));
  const Merged again = group_again(after_made_, group, keys);
  m.groups = again.groups;
  m.places = again.places;
  return m;
}

Splitter::Merged Splitter::group_again(std::vector<StatementId>& to, StatementId group,
                                       const std::vector<VariableId>& keys) {
  const TypeId i64 = types().basic(BasicType::i64), dict = type_of(statement(group).targets[0].variable_id());
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
VariableId Splitter::gathered(StatementId group, VariableId v) {
  if (!merged_.count(group)) (void)merged(group);
  if (auto known = gathered_.find({group, v}); known != gathered_.end()) return known->second;
  need_range(v);
  const VariableId part = new_variable(type_of(v));
  emit(range_made_, part, Builtin::index, {variable(v), variable(merged_.at(group).first_of_range)}, type_of(v));
  const State& of_rows = states_[index(v)];
  if (counts_in_own_order(of_rows)) refuse_own_order(v);
  states_[index(part)] = {.kind = State::rows, .counts = of_rows.counts, .counts_moved = of_rows.counts_moved};
  in_range_.insert(part);
  const VariableId all = new_variable(type_of(v));
  range_how_[gathered_result_[{group, v}] = range_results_.size()] = Builtin::index;
  send(part, group_table(group), all);
  return gathered_[{group, v}] = all;
}

void Splitter::merge(VariableId v) {
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
  if ((s.builtin == Builtin::sum || s.builtin == Builtin::avg) && is_summed_in_parts(variable(s.of)))
    return merge_floats(v);
  const VariableId parts = new_variable(type);
  range_how_[range_results_.size()] = s.builtin == Builtin::len ? Builtin::sum : s.builtin;
  send(v, group_table(s.at), parts);
  reduce_cells(after_made_, v, s.builtin == Builtin::len ? Builtin::sum : s.builtin, parts, m.places, span);
}

// v = each of the groups' cells of `parts` reduced
void Splitter::reduce_cells(std::vector<StatementId>& to, VariableId v, Builtin by, VariableId parts, VariableId places,
                            Span span) {
  const TypeId list = program_.types->list(type_of(v));
  const VariableId cells = new_variable(list);
  emit(to, cells, Builtin::each_right, {function(Builtin::index), variable(parts), variable(places)}, list, span);
  emit_each(to, v, by, cells, span);
}

void Splitter::emit_each(std::vector<StatementId>& to, VariableId v, Builtin by, VariableId cells, Span span) {
  const TypeId type = type_of(v), list = program_.types->list(type);
  const VariableId each = new_variable(list);
  emit(to, each, Builtin::each, {function(by), variable(cells)}, list, span);
  emit(to, v, Builtin::raze, {variable(each)}, type, span);
}

// A value of each group of a range, which `after` has all of in `to`: the result.
size_t Splitter::send_group(const std::string& table, VariableId v, VariableId to) {
  in_range_.insert(v);
  send(v, table, to);
  return range_results_.size() - 1;
}

// The groups of several ranges as those of one.
void Splitter::make_merge(StatementId group, Split& out) {
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
  for (VariableId v : columns_of(operands_of(group)[0])) keys.push_back(parts.at(gathered_result_.at({group, v})));
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
    emit(made, one, Builtin::index, {variable(key), variable(of_parts.first_of_range)}, type_of(key));
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

}  // namespace rndn::outliner::splitting
