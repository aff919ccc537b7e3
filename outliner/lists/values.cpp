// Values of cells: the statements that make them, where their elements begin, how long and at which places they are.
#include "outliner/lists/flattener.h"

namespace rndn::outliner::flattening {

// The call that makes a list whose cells are those.
Result<Flattener::ListCall> Flattener::list_call(const Cellwise& v) {
  switch (v.kind) {
    case Cellwise::cells: {
      const Cellwise flat = contiguous(v);
      if (is_none(flat.lengths)) return ListCall{Builtin::tolist, {var(flat.values)}, list_type(flat.type)};
      return ListCall{Builtin::gpu_cells, {var(flat.values), var(flat.lengths)}, list_type(flat.type)};
    }
    case Cellwise::lists: {
      ASSIGN_OR_RETURN(const VariableId inner, list_variable(v.parts[0]));
      return ListCall{Builtin::gpu_cells, {var(inner), var(v.lengths)}, list_type(f_.variables[inner].type)};
    }
    case Cellwise::dict: {  // put together where it is printed
      ASSIGN_OR_RETURN(const VariableId keys, list_variable(v.parts[0]));
      ASSIGN_OR_RETURN(const VariableId values, list_variable(v.parts[1]));
      const auto cell = [&](VariableId list) { return types()[f_.variables[list].type].components[0]; };
      return ListCall{Builtin::each_item,
                      {function(Builtin::dict), var(keys), var(values)},
                      list_type(program_.types->dict(cell(keys), cell(values)))};
    }
    case Cellwise::mixed: {
      Operands operands{var(v.values)};
      for (const Cellwise& part : v.parts) {
        ASSIGN_OR_RETURN(const VariableId list, list_variable(part));
        operands.push_back(var(list));
      }
      return ListCall{Builtin::gpu_pick, std::move(operands), list_type(program_.types->wildcard())};
    }
    case Cellwise::whole:
    case Cellwise::columns: break;
  }
  return refuse("not one value of each cell");
}

Result<VariableId> Flattener::list_variable(const Cellwise& v) {
  if (v.kind == Cellwise::cells) return list_variable_of(contiguous(v));
  ASSIGN_OR_RETURN(ListCall made, list_call(v));
  return emit(made.builtin, made.type, std::move(made.operands));
}

VariableId Flattener::emit(Builtin b, TypeId type, Operands operands) {
  const VariableId v = fresh(f_, "flat", type);
  made_.push_back(add(f_, span_, v, b, std::move(operands)));
  return v;
}

VariableId Flattener::emit(Builtin b, BasicType type, Operands operands) {
  return emit(b, basic(type), std::move(operands));
}

VariableId Flattener::number(Builtin b, Operands operands) { return emit(b, BasicType::i64, std::move(operands)); }

VariableId Flattener::mask(Builtin b, Operands operands) { return emit(b, BasicType::boolean, std::move(operands)); }

VariableId Flattener::copy(Operand o, TypeId type) {
  const VariableId v = fresh(f_, "flat", type);
  Expression e{.kind = Expression::operand, .span = span_};
  e.operands.push_back(o);
  e.types.push_back(type);
  Statement s{.span = span_};
  assign(f_, s, v, f_.expressions.add(std::move(e)));
  made_.push_back(f_.statements.add(std::move(s)));
  return v;
}

Operand Flattener::zero(TypeId type) {
  const BasicType t = types().basic_of(type);
  hir::Literal l{.type = type, .values = std::vector<int64_t>{0}};
  if (hir::is_text(t)) l.values = std::vector<std::string>{""};
  if (hir::is_float(t)) l.values = std::vector<double>{0};
  if (t == BasicType::complex) l.values = std::vector<std::complex<double>>{0};
  if (hir::is_wide(t)) l.values = std::vector<__int128>{0};
  return literal(std::move(l));
}

// x, once it is sure that the mask is 1 everywhere.
VariableId Flattener::required(VariableId ok, Operand x, TypeId type) {
  Operand message = literal({.type = basic(BasicType::sym), .values = std::vector<std::string>{"cells do not fit"}});
  return emit(Builtin::require, type, {var(ok), x, message});
}

Cellwise Flattener::whole(Operand o, TypeId type) {
  Cellwise v{.kind = Cellwise::whole, .operand = o, .type = type};
  return v;
}

Cellwise Flattener::whole_variable(VariableId v, bool single) {
  Cellwise out = whole(var(v), f_.variables[v].type);
  out.single = single;
  return out;
}

Cellwise Flattener::list_of(Cellwise inner) {
  Cellwise v{.kind = Cellwise::lists};
  v.parts.push_back(std::move(inner));
  return v;
}

Cellwise Flattener::cells(VariableId values, VariableId lengths, TypeId type) {
  return {.kind = Cellwise::cells, .type = type, .values = values, .lengths = lengths};
}

bool Flattener::is_single(const Cellwise& v) const {
  return v.kind == Cellwise::whole &&
         (v.single || (v.operand.kind == Operand::literal && program_.literals[v.operand.literal_id()].size() == 1));
}

bool Flattener::is_scalar_cells(const Cellwise& v) const { return v.kind == Cellwise::cells && is_none(v.lengths); }

// Where cells of these lengths begin.
VariableId Flattener::begins(VariableId lengths) {
  VariableId& known = slot(caches_.begins, lengths);
  if (!is_none(known)) return known;
  return caches_.begins[lengths] = number(Builtin::gpu_cell_begins, {var(lengths)});
}

// Per element its cell. like: a vector with as many elements, where there is one.
VariableId Flattener::cell_numbers(VariableId lengths, VariableId like) {
  VariableId& known = slot(caches_.numbers, lengths);
  if (!is_none(known)) return known;
  Operands operands{var(lengths)};
  if (!is_none(like)) operands.push_back(var(like));
  return caches_.numbers[lengths] = number(Builtin::gpu_cell_numbers, std::move(operands));
}

// Per element its place in its cell.
VariableId Flattener::places(VariableId lengths, VariableId like) {
  VariableId& known = slot(caches_.places, lengths);
  if (!is_none(known)) return known;
  const VariableId c = cell_numbers(lengths, like);
  const VariableId begin = number(Builtin::index, {var(begins(lengths)), var(c)});
  const VariableId made = number(Builtin::minus, {var(positions(c)), var(begin)});
  return caches_.places[lengths] = made;
}

VariableId Flattener::ones(VariableId values) {
  VariableId& known = slot(caches_.ones, values);
  if (!is_none(known)) return known;
  return caches_.ones[values] = number(Builtin::vector, {var(length(values)), integer(1)});
}

VariableId Flattener::element(VariableId values, TypeId type, VariableId at) {
  return emit(Builtin::index, type, {var(values), var(at)});
}

Cellwise Flattener::contiguous(const Cellwise& v) {
  if (is_none(v.begins)) return v;
  if (is_none(v.lengths)) return cells(element(v.values, v.type, v.begins), no_variable, v.type);
  const VariableId c = cell_numbers(v.lengths);
  const VariableId begin = number(Builtin::index, {var(v.begins), var(c)});
  const VariableId at = number(Builtin::plus, {var(begin), var(places(v.lengths))});
  return cells(element(v.values, v.type, at), v.lengths, v.type);
}

VariableId Flattener::lengths_of(const Cellwise& v) {
  return is_none(v.lengths) ? ones(is_none(v.begins) ? v.values : v.begins) : v.lengths;
}

VariableId Flattener::list_variable_of(const Cellwise& flat) {
  const VariableId n = lengths_of(flat);
  VariableId& known = slot(caches_.list_of, std::pair(flat.values, n));
  if (!is_none(known)) return known;
  const VariableId made = emit(Builtin::gpu_cells, list_type(flat.type), {var(flat.values), var(n)});
  return caches_.list_of[{flat.values, n}] = made;
}

// How many of a mask's elements are 1 in each cell.
VariableId Flattener::count(VariableId ones_of, VariableId lengths) {
  const VariableId counts = number(Builtin::select, {var(ones_of), integer(1), integer(0)});
  return sum_of_cells(counts, lengths);
}

VariableId Flattener::sum_of_cells(VariableId numbers, VariableId lengths) {
  return reduced(Builtin::sum, basic(BasicType::i64), cells(numbers, lengths, basic(BasicType::i64))).values;
}

Cellwise Flattener::reduced(Builtin b, TypeId type, const Cellwise& v) {
  const VariableId list = list_variable_of(contiguous(v));
  const VariableId each = emit(Builtin::each, list_type(type), {function(b), var(list)});
  return cells(emit(Builtin::raze, type, {var(each)}), no_variable, type);
}

Flattener::Run Flattener::run_of(const Cellwise& v) {
  if (v.kind == Cellwise::whole) {
    const bool stays = v.operand.kind == Operand::variable && writers_of(v.operand.variable_id()) == 1;
    const VariableId values = stays ? v.operand.variable_id() : copy(v.operand, v.type);
    const Operand n = is_single(v) ? integer(1) : var(length(values));
    return {values, integer(0), n, false, false};
  }
  const VariableId begin = !is_none(v.begins) ? v.begins : is_none(v.lengths) ? positions(v.values) : begins(v.lengths);
  return {v.values, var(begin), is_none(v.lengths) ? integer(1) : var(v.lengths), true, !is_none(v.lengths)};
}

Operand Flattener::at_cell(Operand per_cell, bool varies, VariableId c) {
  return varies ? var(number(Builtin::index, {per_cell, var(c)})) : per_cell;
}

VariableId Flattener::per_cell(const Cellwise& v) const {
  switch (v.kind) {
    case Cellwise::cells: return !is_none(v.lengths) ? v.lengths : !is_none(v.begins) ? v.begins : v.values;
    case Cellwise::lists: return v.lengths;
    case Cellwise::dict:
    case Cellwise::columns: return per_cell(v.parts[0]);
    case Cellwise::mixed: return v.values;
    case Cellwise::whole: break;
  }
  return no_variable;
}

// A number for all cells as one per cell.
VariableId Flattener::for_all(Operand n, const Level& level) {
  return number(Builtin::vector, {var(length(level.per_cell)), n});
}

// A value of the cells outside, as the cells inside see it.
Cellwise Flattener::seen_from(const Cellwise& v, VariableId counts, const Level& inner) {
  return v.kind == Cellwise::whole ? v : view(v, cell_numbers(counts, inner.per_cell));
}

// A list of main as every cell sees it: all its cells each time.
Cellwise Flattener::for_each_cell(const Cellwise& v, const Level& level) {
  const VariableId n = for_all(var(length(per_cell(v))), level);
  Cellwise out = list_of(view(v, places(n)));
  out.lengths = n;
  return out;
}

// The same for all cells as a vector per cell.
Result<Cellwise> Flattener::repeated(const Cellwise& v, const Level& level) {
  if (!types().is_basic(v.type)) return refuse("cells that are no vectors");
  if (is_single(v))
    return cells(emit(Builtin::vector, v.type, {var(length(level.per_cell)), v.operand}), no_variable, v.type);
  const Run run = run_of(v);
  const VariableId n = for_all(run.length, level);
  return cells(element(run.values, v.type, places(n)), n, v.type);
}

Result<Cellwise> Flattener::cast(const Cellwise& v, TypeId to) {
  if ((v.kind != Cellwise::whole && v.kind != Cellwise::cells) || !types().is_basic(v.type) || !types().is_basic(to))
    return refuse("a cast of cells that are no vectors");
  const BasicType a = types().basic_of(v.type), b = types().basic_of(to);
  if (a == b) return v;
  if (!(hir::is_text(a) && hir::is_text(b)) && !(hir::is_ordered_number(a) && hir::is_ordered_number(b)))
    return refuse("a cast that is checked at run time");
  const auto converted = [&](Operand o) {
    Expression inner{.kind = Expression::operand, .span = span_};
    inner.operands.push_back(o);
    inner.types.push_back(v.type);
    Expression e{.kind = Expression::cast, .span = span_};
    e.inner = f_.expressions.add(std::move(inner));
    e.cast_type = to;
    e.types.push_back(to);
    const VariableId made = fresh(f_, "flat", to);
    Statement s{.span = span_};
    assign(f_, s, made, f_.expressions.add(std::move(e)));
    made_.push_back(f_.statements.add(std::move(s)));
    return made;
  };
  if (v.kind == Cellwise::whole) return whole_variable(converted(v.operand), is_single(v));
  Cellwise out = contiguous(v);
  out.values = converted(var(out.values));
  out.type = to;
  return out;
}

// A vector per cell, or one for all.
Result<void> Flattener::check_vectors(std::span<const Cellwise> args) const {
  for (const Cellwise& v : args) {
    if ((v.kind != Cellwise::whole && v.kind != Cellwise::cells) || !types().is_basic(v.type))
      return refuse("cells that are no vectors");
  }
  return {};
}

Result<Flattener::Aligned> Flattener::aligned(std::span<const Cellwise> args) {
  RETURN_IF_ERROR(check_vectors(args));
  Aligned out;
  std::vector<Cellwise> flat;
  for (const Cellwise& v : args) {
    flat.push_back(v.kind == Cellwise::cells ? contiguous(v) : v);
    if (v.kind != Cellwise::cells) continue;
    const VariableId n = lengths_of(flat.back());
    if (is_none(out.lengths)) {
      out.lengths = n;
    } else if (n != out.lengths) {
      const VariableId ok = mask(Builtin::eq, {var(out.lengths), var(n)});
      out.lengths = required(ok, var(out.lengths), basic(BasicType::i64));
    }
  }
  if (is_none(out.lengths)) return refuse("no cells");
  for (const Cellwise& v : flat) {
    if (v.kind != Cellwise::whole) continue;
    const Run run = run_of(v);
    const VariableId ok = mask(Builtin::eq, {var(out.lengths), run.length});
    out.lengths = required(ok, var(out.lengths), basic(BasicType::i64));
  }
  for (const Cellwise& v : flat)
    out.values.push_back(v.kind == Cellwise::cells ? v.values : element(run_of(v).values, v.type, places(out.lengths)));
  return out;
}

// The place in `run.values` of a place in the cell, which must be there.
// c: of which cell; none: of each in turn.
VariableId Flattener::checked_place(const Run& run, Operand place, VariableId c) {
  const auto of = [&](Operand o, bool varies) { return is_none(c) ? o : at_cell(o, varies, c); };
  const VariableId least = mask(Builtin::geq, {place, integer(0)});
  const VariableId most = mask(Builtin::lt, {place, of(run.length, run.lengths_vary)});
  const VariableId ok = mask(Builtin::and_, {var(least), var(most)});
  const VariableId at = number(Builtin::plus, {of(run.begin, run.begins_vary), place});
  return required(ok, var(at), basic(BasicType::i64));
}

// The cells of those numbers.
Cellwise Flattener::view(const Cellwise& v, VariableId numbers) {
  const auto picked = [&](VariableId of) { return number(Builtin::index, {var(of), var(numbers)}); };
  Cellwise out = v;
  switch (v.kind) {
    case Cellwise::whole: break;
    case Cellwise::cells:
      if (is_none(v.lengths)) {
        const Cellwise flat = contiguous(v);
        return cells(element(flat.values, flat.type, numbers), no_variable, flat.type);
      }
      out.begins = picked(is_none(v.begins) ? begins(v.lengths) : v.begins);
      out.lengths = picked(v.lengths);
      break;
    case Cellwise::lists: {
      const VariableId begin = picked(begins(v.lengths));
      out.lengths = picked(v.lengths);
      const Operand from = at_cell(var(begin), true, cell_numbers(out.lengths));
      out.parts[0] = view(v.parts[0], number(Builtin::plus, {from, var(places(out.lengths))}));
      break;
    }
    case Cellwise::dict:
    case Cellwise::columns:
      for (Cellwise& part : out.parts) part = view(part, numbers);
      break;
    case Cellwise::mixed: out.values = picked(v.values); break;
  }
  return out;
}

// A number for all cells, or one for each, in a vector of one element.
Result<Operand> Flattener::number_of(const Cellwise& k) {
  const Cellwise args[] = {k};
  RETURN_IF_ERROR(check_vectors(args));
  if (is_single(k)) return k.operand;
  if (k.kind == Cellwise::whole) {
    const VariableId values = run_of(k).values, n = length(values);
    const VariableId ok = mask(Builtin::eq, {var(n), integer(1)});
    const VariableId one = required(ok, var(n), basic(BasicType::i64));
    return var(element(values, k.type, number(Builtin::minus, {var(one), integer(1)})));
  }
  const Cellwise flat = contiguous(k);
  if (is_none(flat.lengths)) return var(flat.values);
  required(mask(Builtin::eq, {var(flat.lengths), integer(1)}), var(flat.lengths), basic(BasicType::i64));
  return var(flat.values);
}

}  // namespace rndn::outliner::flattening
