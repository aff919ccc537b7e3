// Orders, groups and look-ups of every cell, as those of all elements with the number of the cell as first key.
#include "outliner/lists/flattener.h"

namespace rndn::outliner::flattening {

Result<Cellwise> Flattener::unique(const Cellwise& x) {
  const Cellwise args[] = {x};
  RETURN_IF_ERROR(check_vectors(args));
  const TypeId places_type = basic(BasicType::i64);
  const VariableId list = list_variable_of(contiguous(x));
  const VariableId each = emit(Builtin::each, list_type(places_type), {function(Builtin::unique), var(list)});
  const VariableId counted = emit(Builtin::each, list_type(places_type), {function(Builtin::len), var(each)});
  const VariableId n = number(Builtin::raze, {var(counted)});
  return cells(number(Builtin::raze, {var(each)}), n, places_type);
}

// The rows of all cells, with their cells as the first column.
Result<Flattener::Aligned> Flattener::rows_of(const Cellwise& x) {
  if (x.kind == Cellwise::columns) return aligned(x.parts);
  const Cellwise args[] = {x};
  return aligned(args);
}

VariableId Flattener::keyed(const Aligned& a, VariableId c) {
  Operands columns{var(c)};
  std::vector<TypeId> column_types{basic(BasicType::i64)};
  for (VariableId v : a.values) columns.push_back(var(v)), column_types.push_back(f_.variables[v].type);
  return emit(Builtin::list, program_.types->tuple(column_types), std::move(columns));
}

// Directions that only the run knows, one per cell or for all: the places of both orders, of which they choose.
Result<Cellwise> Flattener::order(const Cellwise& x, const Cellwise& up, const Level& level) {
  Cellwise keys = x;
  if (x.kind == Cellwise::whole) {
    ASSIGN_OR_RETURN(keys, repeated(x, level));
  }
  ASSIGN_OR_RETURN(const Aligned a, rows_of(keys));
  const VariableId c = cell_numbers(a.lengths, a.values[0]);
  const auto places_by = [&](std::vector<int64_t> directions) {
    directions.insert(directions.begin(), 1);
    const Operand all = literal({.type = basic(BasicType::boolean), .values = std::move(directions)});
    const VariableId sorted = number(Builtin::order, {var(keyed(a, c)), all});
    const VariableId begin = number(Builtin::index, {var(begins(a.lengths)), var(c)});
    return number(Builtin::minus, {var(sorted), var(begin)});
  };
  const auto* given = up.kind == Cellwise::whole && up.operand.kind == Operand::literal
                          ? std::get_if<std::vector<int64_t>>(&program_.literals[up.operand.literal_id()].values)
                          : nullptr;
  VariableId places = no_variable;
  if (given) {
    if (given->size() != 1 && given->size() != a.values.size()) return refuse("other directions than columns");
    std::vector<int64_t> directions;
    for (size_t k = 0; k < a.values.size(); ++k) directions.push_back((*given)[given->size() == 1 ? 0 : k]);
    places = places_by(std::move(directions));
  } else {
    if (a.values.size() != 1) return refuse("directions of several columns that are no literal");
    ASSIGN_OR_RETURN(Operand ascends, number_of(up));
    if (up.kind == Cellwise::cells) ascends = var(mask(Builtin::index, {ascends, var(c)}));
    places = number(Builtin::select, {ascends, var(places_by({1})), var(places_by({0}))});
  }
  return cells(places, a.lengths, basic(BasicType::i64));
}

Flattener::Grouped Flattener::grouped(const Aligned& a, VariableId c) {
  const TypeId i64 = basic(BasicType::i64);
  const VariableId dict = emit(Builtin::group, program_.types->dict(i64, i64), {var(keyed(a, c))});
  Grouped g{};
  g.first = number(Builtin::keys, {var(dict)});
  g.row_list = emit(Builtin::values, list_type(i64), {var(dict)});
  g.rows = number(Builtin::raze, {var(g.row_list)});
  const VariableId counted = emit(Builtin::each, list_type(i64), {function(Builtin::len), var(g.row_list)});
  g.counts = number(Builtin::raze, {var(counted)});
  return g;
}

Result<Cellwise> Flattener::group(const Cellwise& x) {
  ASSIGN_OR_RETURN(const Aligned a, rows_of(x));
  const TypeId i64 = basic(BasicType::i64);
  const VariableId c = cell_numbers(a.lengths, a.values[0]);
  const Grouped g = grouped(a, c);
  const VariableId at_rows = number(Builtin::index, {var(places(a.lengths, a.values[0])), var(g.rows)});
  const VariableId at_first = number(Builtin::index, {var(places(a.lengths, a.values[0])), var(g.first)});
  const VariableId none_first = number(Builtin::vector, {var(length(a.values[0])), integer(0)});
  const VariableId firsts = number(Builtin::index_a, {var(none_first), var(g.first), integer(1)});
  const VariableId groups = sum_of_cells(firsts, a.lengths);
  Cellwise values{.kind = Cellwise::lists, .lengths = groups};
  values.parts.push_back(cells(at_rows, g.counts, i64));
  Cellwise out{.kind = Cellwise::dict};
  out.parts = {cells(at_first, groups, i64), std::move(values)};
  return out;
}

// Of every element of x the first equal one of y in the same cell: both are grouped together, y
// before x.
Result<Cellwise> Flattener::search(Builtin b, const Cellwise& x, const Cellwise& y, const Level& level) {
  const Cellwise args[] = {x, y};
  RETURN_IF_ERROR(check_vectors(args));
  if (y.kind == Cellwise::whole && b == Builtin::member) {
    const Cellwise flat = contiguous(x);
    return cells(mask(b, {var(flat.values), var(run_of(y).values)}), flat.lengths, basic(BasicType::boolean));
  }
  if (y.kind == Cellwise::whole) {
    const Cellwise flat = contiguous(x);
    return cells(number(b, {var(flat.values), var(run_of(y).values)}), flat.lengths, basic(BasicType::i64));
  }
  ASSIGN_OR_RETURN(const TypeId type, compared_as(x.type, y.type));
  ASSIGN_OR_RETURN(Cellwise per_x, cast(x, type));
  ASSIGN_OR_RETURN(const Cellwise per_y, cast(y, type));
  if (x.kind == Cellwise::whole) {
    ASSIGN_OR_RETURN(per_x, repeated(per_x, level));
  }
  const Cellwise xs = contiguous(per_x), ys = contiguous(per_y);
  const VariableId xn = lengths_of(xs), yn = lengths_of(ys);
  const VariableId xc = cell_numbers(xn, xs.values), yc = cell_numbers(yn, ys.values);
  Aligned rows;
  rows.values.push_back(emit(Builtin::append, type, {var(ys.values), var(xs.values)}));
  const Grouped g = grouped(rows, number(Builtin::append, {var(yc), var(xc)}));
  // The first row of every row's group.
  const VariableId of_rows = number(Builtin::index, {var(g.first), var(cell_numbers(g.counts, g.rows))});
  const VariableId nothing = number(Builtin::vector, {var(length(g.rows)), integer(0)});
  const VariableId first = number(Builtin::index_a, {var(nothing), var(g.rows), var(of_rows)});
  const VariableId ys_count = length(ys.values);
  const VariableId behind = number(Builtin::plus, {var(positions(xs.values)), var(ys_count)});
  const VariableId found = number(Builtin::index, {var(first), var(behind)});
  VariableId hit = mask(Builtin::lt, {var(found), var(ys_count)});
  const BasicType basic_type = types().basic_of(type);
  if (hir::is_float(basic_type) || basic_type == BasicType::complex) {  // NaN equals nothing
    const VariableId equal = mask(Builtin::eq, {var(xs.values), var(xs.values)});
    hit = mask(Builtin::and_, {var(hit), var(equal)});
  }
  if (b == Builtin::member) return cells(hit, xs.lengths, basic(BasicType::boolean));
  const VariableId begin = number(Builtin::index, {var(begins(yn)), var(xc)});
  const VariableId place = number(Builtin::minus, {var(found), var(begin)});
  const VariableId missing = number(Builtin::index, {var(yn), var(xc)});
  return cells(number(Builtin::select, {var(hit), var(place), var(missing)}), xs.lengths, basic(BasicType::i64));
}

// The type in which elements of both are compared.
Result<TypeId> Flattener::compared_as(TypeId a, TypeId b) {
  const BasicType x = types().basic_of(a), y = types().basic_of(b);
  if (x == y || (hir::is_text(x) && hir::is_text(y))) return a;
  if (!hir::is_ordered_number(x) || !hir::is_ordered_number(y)) return refuse("elements of types that do not compare");
  return basic(hir::widest(x, y));
}

}  // namespace rndn::outliner::flattening
