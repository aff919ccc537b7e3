// Lists put together of lists and vectors, per cell and in main, and other calls on lists as wholes. Cells of one type
// lie in one piece. Those of several types are a piece for each, and of every cell its number in these pieces: what puts
// such lists together moves numbers, no elements.
#include <algorithm>

#include "outliner/lists/flattener.h"

namespace rndn::outliner::flattening {

Result<Cellwise> Flattener::append(TypeId type, const Cellwise& x, const Cellwise& y, const Level* level) {
  const auto is_vector = [](const Cellwise& v) { return v.kind == Cellwise::whole || v.kind == Cellwise::cells; };
  if (!is_vector(x) || !is_vector(y)) return append_lists(x, y, level);
  const Cellwise args[] = {x, y};
  RETURN_IF_ERROR(check_vectors(args));
  const Run a = run_of(x), b = run_of(y);
  const Joined at = joined(a, b, *level);
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

// A list with that value as its only cell, per cell; without a level, in main.
Result<Cellwise> Flattener::only_cell(const Cellwise& v, const Level* level) {
  Cellwise out = list_of(v);
  if (v.kind == Cellwise::columns) {
    ASSIGN_OR_RETURN(out.parts[0], as_list(v, level));
  }
  if (v.kind == Cellwise::whole) {
    if (!types().is_basic(v.type)) return refuse("a cell that is no vector");
    if (level) {
      ASSIGN_OR_RETURN(out.parts[0], repeated(v, *level));
    } else {
      const Run run = run_of(v);
      out.parts[0] = cells(run.values, number(Builtin::vector, {integer(1), run.length}), v.type);
      return out;
    }
  }
  if (level) {
    out.lengths = for_all(integer(1), *level);
    return out;
  }
  Cellwise& inner = out.parts[0];
  if (inner.kind != Cellwise::lists) return refuse("a cell that is neither vector nor list");
  inner.lengths = number(Builtin::vector, {integer(1), var(length(per_cell(inner.parts[0])))});
  return out;
}
// As a list of cells whose number is known as any list.
Result<Cellwise> Flattener::as_list(const Cellwise& v, const Level* level) {
  if (v.kind == Cellwise::lists) return v;
  if (v.kind != Cellwise::columns) return only_cell(v, level);
  ASSIGN_OR_RETURN(Cellwise all, only_cell(v.parts[0], level));
  for (size_t k = 1; k < v.parts.size(); ++k) {
    ASSIGN_OR_RETURN(const Cellwise more, only_cell(v.parts[k], level));
    ASSIGN_OR_RETURN(all, append_lists(all, more, level));
  }
  return all;
}
// The cells of both, of which one is a list, per cell; without a level, in main.
Result<Cellwise> Flattener::append_lists(const Cellwise& x, const Cellwise& y, const Level* level) {
  ASSIGN_OR_RETURN(const Cellwise a, as_list(x, level));
  ASSIGN_OR_RETURN(const Cellwise b, as_list(y, level));
  const Cellwise all = behind(a.parts[0], b.parts[0]);
  if (!level) return list_of(all);
  const auto cells_of = [&](const Cellwise& list) {
    return Run{per_cell(list.parts[0]), var(begins(list.lengths)), var(list.lengths), true, true};
  };
  const Joined at = joined(cells_of(a), cells_of(b), *level);
  Cellwise out = list_of(view(all, at.places));
  out.lengths = at.lengths;
  return out;
}

// Can cells of both lie in one piece?
bool Flattener::alike(const Cellwise& x, const Cellwise& y) const {
  if (x.kind != y.kind) return false;
  if (x.kind == Cellwise::cells) return x.type == y.type;
  if (x.kind == Cellwise::lists) return true;
  return x.kind == Cellwise::dict && alike(x.parts[0], y.parts[0]) && alike(x.parts[1].parts[0], y.parts[1].parts[0]);
}
// The cells of x, and behind them those of y.
Cellwise Flattener::behind(const Cellwise& x, const Cellwise& y) {
  if (alike(x, y)) {
    if (x.kind == Cellwise::cells) {
      Cellwise out{.kind = Cellwise::cells, .type = x.type};
      if (!is_none(x.begins) || !is_none(y.begins)) {
        const Run first = run_of(x), second = run_of(y);
        const VariableId moved = number(Builtin::plus, {second.begin, var(length(x.values))});
        out.begins = number(Builtin::append, {first.begin, var(moved)});
      }
      out.values = emit(Builtin::append, x.type, {var(x.values), var(y.values)});
      if (!is_none(x.lengths) || !is_none(y.lengths))
        out.lengths = number(Builtin::append, {var(lengths_of(x)), var(lengths_of(y))});
      return out;
    }
    Cellwise out{.kind = x.kind};
    if (x.kind == Cellwise::lists) out.lengths = number(Builtin::append, {var(x.lengths), var(y.lengths)});
    for (size_t k = 0; k < x.parts.size(); ++k) out.parts.push_back(behind(x.parts[k], y.parts[k]));
    return out;
  }
  Cellwise out{.kind = Cellwise::mixed};
  VariableId numbers[2], before = no_variable;  // how many cells the pieces of x have
  for (const Cellwise* v : {&x, &y}) {
    const bool is_mixed = v->kind == Cellwise::mixed;
    VariableId& own = numbers[v == &y];
    own = is_mixed ? v->values : positions(per_cell(*v));
    if (!is_none(before)) own = number(Builtin::plus, {var(own), var(before)});
    for (const Cellwise& piece : is_mixed ? std::span(v->parts) : std::span(v, 1)) {
      out.parts.push_back(piece);
      if (v == &y) continue;
      const VariableId n = length(per_cell(piece));
      before = is_none(before) ? n : number(Builtin::plus, {var(before), var(n)});
    }
  }
  out.values = number(Builtin::append, {var(numbers[0]), var(numbers[1])});
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
  switch (b) {
    case Builtin::raze: {
      if (args[0].kind != Cellwise::lists || args[0].parts[0].kind != Cellwise::cells)
        return refuse("cells that are no vectors");
      const Cellwise flat = contiguous(args[0].parts[0]);
      if (flat.type != type) return refuse("a conversion");
      return whole_variable(flat.values, false);
    }
    case Builtin::append: {
      const auto grows = [&](const Cellwise& v) {  // a list of known cells by cells that are known
        return v.kind == Cellwise::columns || (v.kind == Cellwise::whole && types().is_basic(v.type));
      };
      if (!grows(args[0]) || !grows(args[1])) return append_lists(args[0], args[1], nullptr);
      Cellwise out{.kind = Cellwise::columns};
      for (const Cellwise& v : args) {
        const auto parts = v.kind == Cellwise::columns ? std::span(v.parts) : std::span(&v, 1);
        out.parts.insert(out.parts.end(), parts.begin(), parts.end());
      }
      return out;
    }
    case Builtin::len:
      if (args[0].kind != Cellwise::lists) return refuse("no list");
      return whole_variable(length(per_cell(args[0].parts[0])), true);
    case Builtin::index: {
      if (args[0].kind != Cellwise::lists || args[1].kind != Cellwise::whole) return refuse("not one cell");
      const Cellwise& inner = args[0].parts[0];
      ASSIGN_OR_RETURN(const Operand k, number_of(args[1]));
      if (inner.kind == Cellwise::cells && is_none(inner.lengths)) {
        const Cellwise flat = contiguous(inner);
        const VariableId cell = emit(Builtin::index, type, {var(flat.values), k});
        checked_.insert(made_.back());
        return whole_variable(cell, true);
      }
      if (inner.kind != Cellwise::cells && inner.kind != Cellwise::lists) return refuse("a cell of another kind");
      const bool is_list = inner.kind == Cellwise::lists;
      const Run run =
          is_list ? Run{no_variable, var(begins(inner.lengths)), var(inner.lengths), true, true} : run_of(inner);
      const VariableId n = number(Builtin::index, {run.length, k});
      checked_.insert(made_.back());
      const VariableId begin = number(Builtin::index, {run.begin, k});
      const VariableId c = cell_numbers(n);
      const VariableId at = number(Builtin::plus, {var(begin), var(positions(c))});
      if (is_list) return list_of(view(inner.parts[0], at));
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
  ASSIGN_OR_RETURN(const Cellwise list, as_list(args[1], nullptr));
  const Level level{rounds};
  const VariableId n = for_all(var(length(per_cell(list.parts[0]))), level);
  return list_of(view(list.parts[0], places(n)));
}

Result<Cellwise> Flattener::repeated_list(const Cellwise& v, const Level& level) {
  ASSIGN_OR_RETURN(Cellwise made, repeated(v, level));
  return list_of(std::move(made));
}

}  // namespace rndn::outliner::flattening
