// Sums of floats of several ranges, which come out as the sum of all elements does.
//
// x as `sum_parts` vectors and a rest: each element's multiple of a unit, of what that leaves the
// multiple of a smaller unit, and so on. A unit is so large that no sum of these multiples has
// more bits than a double: sums of a part are exact, and the sum of the sums of all parts of all
// ranges is that of x. (x + s) - s is the multiple, where s is 8 times as large as the magnitudes
// of all elements together: T. Ogita, S. M. Rump, S. Oishi, "Accurate floating-point summation
// part I", SIAM J. Sci. Comput. 31, 2008. Where the rest is not 0, as of infinite elements, `rest`
// is true, and what came of the parts must not be used.
#include "outliner/split/splitter.h"

namespace rndn::outliner::splitting {

Splitter::Parts Splitter::float_parts(std::vector<StatementId>& to, VariableId x) {
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
    const Operand multiple = make(Builtin::minus, {make(Builtin::plus, {left, s}, f64), s}, f64);
    part = multiple.variable_id();
    left = make(Builtin::minus, {left, multiple}, f64);
    // What is left of an element is at most s in 2^52.
    s = make(Builtin::mul, {make(Builtin::mul, {s, eightfold}, f64), real(0x1p-52)}, f64);
  }
  made.rest = make(Builtin::any, {make(Builtin::neq, {left, real(0)}, boolean)}, boolean).variable_id();
  return made;
}

// Of a vector of the range.
const Splitter::Parts& Splitter::parts_of_range(VariableId x) {
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

VariableId Splitter::repeat(std::vector<StatementId>& to, VariableId v) {  // once for each part of a sum
  return append_all(to, std::vector<VariableId>(sum_parts, v));
}

// A value of each range, which `after` has all of.
VariableId Splitter::pieces_of(VariableId v, VariableId of) {
  in_range_.insert(v);
  const VariableId pieces = new_variable(type_of(v));
  send(v, options_.prefix + "p" + std::to_string(index(of)), pieces);
  return pieces;
}

// v = the sum or the average of all elements of a vector
void Splitter::reduce_floats(VariableId v) {
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
void Splitter::merge_floats(VariableId v) {
  const State s = states_[index(v)];
  const Span span = statement(def_[index(v)]).span;
  const TypeId f64 = types().basic(BasicType::f64), i64 = types().basic(BasicType::i64);
  const bool average = s.builtin == Builtin::avg;
  (void)merged(s.at);
  Merged& m = merged_.at(s.at);
  if (is_none(m.rows_of_range)) {
    m.rows_of_range = new_variable(program_.types->list(i64));
    emit(range_made_, m.rows_of_range, Builtin::values, {variable(statement(s.at).targets[0].variable_id())},
         type_of(m.rows_of_range), span);
  }
  auto [at, fresh] = float_sums_.try_emplace({s.at, s.of});
  FloatSum& made = at->second;
  if (fresh) {
    const Parts parts = parts_of_range(s.of);
    std::vector<VariableId> parts_of_groups;
    for (VariableId part : parts.parts) {
      parts_of_groups.push_back(new_variable(f64));
      reduce_cells(range_made_, parts_of_groups.back(), Builtin::sum, part, m.rows_of_range, span);
    }
    const VariableId all = new_variable(f64);
    made.result = send_group(parts_table(s.at), append_all(range_made_, parts_of_groups), all);
    if (is_none(m.places_of_parts)) {
      std::vector<VariableId> keys;
      for (VariableId key : columns_of(operands_of(s.at)[0])) {
        const VariableId one = new_variable(type_of(key));
        emit(range_made_, one, Builtin::index, {variable(key), variable(m.first_of_range)}, type_of(key));
        keys.push_back(new_variable(type_of(key)));
        m.keys_of_parts.push_back(send_group(parts_table(s.at), repeat(range_made_, one), keys.back()));
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

}  // namespace rndn::outliner::splitting
