// Lists put together of lists and vectors, per cell and in main, and other calls on lists as wholes.
#include <algorithm>

#include "outliner/lists/flattener.h"

namespace rndn::outliner::flattening {

Result<Cellwise> Flattener::append(TypeId type, const Cellwise& x, const Cellwise& y, const Level& level) {
  if (x.kind == Cellwise::lists || y.kind == Cellwise::lists) return append_lists(x, y, level);
  const Cellwise args[] = {x, y};
  RETURN_IF_ERROR(check_vectors(args));
  const Run a = run_of(x), b = run_of(y);
  const Joined at = joined(a, b, level);
  const VariableId all = emit(Builtin::append, type, {var(a.values), var(b.values)});
  return cells(element(all, type, at.places), at.lengths, type);
}

Flattener::Joined Flattener::joined(const Run& a, const Run& b, const Level& level) {
  const VariableId both = number(Builtin::plus, {a.length, b.length});
  const VariableId n = a.lengths_vary || b.lengths_vary ? both : for_all(var(both), level);
  const VariableId c = cell_numbers(n), p = places(n);
  const Operand first = at_cell(a.length, a.lengths_vary, c);
  const VariableId in_first = mask(Builtin::lt, {var(p), first});
  const VariableId from_a = number(Builtin::plus, {at_cell(a.begin, a.begins_vary, c), var(p)});
  const VariableId shift = number(Builtin::minus, {var(p), first});
  const VariableId of_b = number(Builtin::plus, {at_cell(b.begin, b.begins_vary, c), var(shift)});
  const VariableId from_b = number(Builtin::plus, {var(of_b), var(length(a.values))});
  return {number(Builtin::select, {var(in_first), var(from_a), var(from_b)}), n};
}

// The cells of both, of which one is a list per cell.
Result<Cellwise> Flattener::append_lists(const Cellwise& x, const Cellwise& y, const Level& level) {
  const auto as_list = [&](const Cellwise& v) -> Result<Cellwise> {  // a vector is a cell
    if (v.kind == Cellwise::lists && v.parts[0].kind == Cellwise::cells) return v;
    if (v.kind == Cellwise::lists) return refuse("lists in lists of lists");
    const Cellwise only[] = {v};
    RETURN_IF_ERROR(check_vectors(only));
    Cellwise per_cell = v;
    if (v.kind == Cellwise::whole) {
      ASSIGN_OR_RETURN(per_cell, repeated(v, level));
    }
    Cellwise out = list_of(std::move(per_cell));
    out.lengths = for_all(integer(1), level);
    return out;
  };
  ASSIGN_OR_RETURN(const Cellwise a, as_list(x));
  ASSIGN_OR_RETURN(const Cellwise b, as_list(y));
  const Cellwise &u = a.parts[0], &v = b.parts[0];
  if (u.type != v.type) return refuse("lists of other cells");
  const auto cells_of = [&](const Cellwise& list) {
    return Run{per_cell(list.parts[0]), var(begins(list.lengths)), var(list.lengths), true, true};
  };
  const Joined at = joined(cells_of(a), cells_of(b), level);
  const Run first = run_of(u), second = run_of(v);
  const VariableId shift = length(u.values);
  const VariableId moved = number(Builtin::plus, {second.begin, var(shift)});
  Cellwise all{.kind = Cellwise::cells, .type = u.type};
  all.values = emit(Builtin::append, u.type, {var(u.values), var(v.values)});
  all.begins = number(Builtin::append, {first.begin, var(moved)});
  all.lengths = number(Builtin::append, {var(lengths_of(u)), var(lengths_of(v))});
  Cellwise out = list_of(view(all, at.places));
  out.lengths = at.lengths;
  return out;
}

Result<Cellwise> Flattener::raze_columns(TypeId type, const Cellwise& x, const Level* level) {
  Cellwise all = x.parts[0];
  for (size_t k = 1; k < x.parts.size(); ++k) {
    const TypeId a = all.type, b = x.parts[k].type;
    if (!types().is_basic(a) || !types().is_basic(b)) return refuse("cells that are no vectors");
    TypeId widest = type;
    if (hir::is_ordered_number(types().basic_of(a)) && hir::is_ordered_number(types().basic_of(b)))
      widest = basic(hir::widest(types().basic_of(a), types().basic_of(b)));
    ASSIGN_OR_RETURN(all, builtin(Builtin::append, widest, {all, x.parts[k]}, level));
  }
  if ((all.kind == Cellwise::whole || all.kind == Cellwise::cells) && all.type != type) return refuse("a conversion");
  return all;
}

Result<Cellwise> Flattener::of_lists(Builtin b, TypeId type, std::vector<Cellwise>& args) {
  const auto known = [](const Cellwise& v) { return v.kind == Cellwise::columns; };
  if (std::any_of(args.begin(), args.end(), known)) {
    if (b != Builtin::append || !std::all_of(args.begin(), args.end(), known)) return refuse("a list of known cells");
    args[0].parts.insert(args[0].parts.end(), args[1].parts.begin(), args[1].parts.end());
    return args[0];
  }
  for (const Cellwise& v : args)
    if (v.kind == Cellwise::lists && v.parts[0].kind != Cellwise::cells && b != Builtin::raze)
      return refuse("a list of lists");
  switch (b) {
    case Builtin::raze: {
      if (args[0].kind != Cellwise::lists || args[0].parts[0].kind != Cellwise::cells)
        return refuse("cells that are no vectors");
      const Cellwise flat = contiguous(args[0].parts[0]);
      if (flat.type != type) return refuse("a conversion");
      return whole_variable(flat.values, false);
    }
    case Builtin::append: {
      for (Cellwise& v : args) {  // a vector is a cell
        if (v.kind != Cellwise::whole) continue;
        if (!types().is_basic(v.type)) return refuse("a list and no vector");
        const Run run = run_of(v);
        const VariableId n = number(Builtin::vector, {integer(1), run.length});
        v = list_of(cells(run.values, n, v.type));
      }
      const Cellwise x = contiguous(args[0].parts[0]), y = contiguous(args[1].parts[0]);
      if (x.type != y.type) return refuse("lists of other cells");
      const VariableId values = emit(Builtin::append, x.type, {var(x.values), var(y.values)});
      if (is_none(x.lengths) && is_none(y.lengths)) return list_of(cells(values, no_variable, x.type));
      return list_of(cells(values, number(Builtin::append, {var(lengths_of(x)), var(lengths_of(y))}), x.type));
    }
    case Builtin::index: {
      if (args[0].kind != Cellwise::lists || args[1].kind != Cellwise::whole) return refuse("not one cell");
      const Cellwise& inner = args[0].parts[0];
      ASSIGN_OR_RETURN(const Operand k, number_of(args[1]));
      if (is_none(inner.lengths)) {
        const Cellwise flat = contiguous(inner);
        const VariableId cell = emit(Builtin::index, type, {var(flat.values), k});
        checked_.insert(made_.back());
        return whole_variable(cell, true);
      }
      const Run run = run_of(inner);
      const VariableId n = number(Builtin::index, {run.length, k});
      checked_.insert(made_.back());
      const VariableId begin = number(Builtin::index, {run.begin, k});
      const VariableId c = cell_numbers(n);
      const VariableId at = number(Builtin::plus, {var(begin), var(positions(c))});
      return whole_variable(element(run.values, type, at), false);
    }
    case Builtin::flip: {
      if (args[0].kind != Cellwise::lists) return refuse("no list");
      const VariableId last = number(Builtin::reverse, {var(positions(per_cell(args[0].parts[0])))});
      return list_of(view(args[0].parts[0], last));
    }
    case Builtin::replicate: return replicate(type, args);
    default: return refuse("it has no form for lists");
  }
}

Result<Cellwise> Flattener::replicate(TypeId, std::span<const Cellwise> args) {
  if (args[0].kind != Cellwise::whole) return refuse("a number for every cell");
  ASSIGN_OR_RETURN(const Operand wanted, number_of(args[0]));
  const VariableId given = number(Builtin::plus, {wanted, integer(0)});
  const VariableId some = mask(Builtin::gt, {var(given), integer(0)});
  const VariableId times = number(Builtin::select, {var(some), var(given), integer(0)});
  const VariableId rounds = cell_numbers(times);  // an element for each time
  if (args[1].kind == Cellwise::whole) return repeated_list(args[1], Level{rounds});
  if (args[1].kind != Cellwise::lists || args[1].parts[0].kind != Cellwise::cells)
    return refuse("cells that are no vectors");
  const Level level{rounds};
  const VariableId n = for_all(var(length(per_cell(args[1].parts[0]))), level);
  return list_of(view(args[1].parts[0], places(n)));
}

Result<Cellwise> Flattener::repeated_list(const Cellwise& v, const Level& level) {
  ASSIGN_OR_RETURN(Cellwise made, repeated(v, level));
  return list_of(std::move(made));
}

}  // namespace rndn::outliner::flattening
