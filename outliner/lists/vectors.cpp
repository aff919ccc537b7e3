// Builtins of a vector per cell, as builtins of all elements.
#include "outliner/lists/flattener.h"

namespace rndn::outliner::flattening {

Result<Cellwise> Flattener::elementwise(Builtin b, TypeId type, std::vector<Cellwise> args, const Level& level) {
  RETURN_IF_ERROR(check_vectors(args));
  bool alike = true;  // one element per cell, or cells of the same lengths, one behind the other
  VariableId lengths = no_variable, like = no_variable;
  for (Cellwise& v : args) {
    if (is_scalar_cells(v)) v = contiguous(v);
    if (v.kind == Cellwise::whole) {
      alike &= is_single(v);
    } else if (!is_none(v.lengths)) {
      if (!is_none(lengths) && v.lengths != lengths) alike = false;
      lengths = v.lengths;
      if (is_none(v.begins)) like = v.values;
    }
  }
  Operands operands;
  if (alike && is_none(lengths)) {
    for (const Cellwise& v : args) operands.push_back(v.kind == Cellwise::whole ? v.operand : var(v.values));
    return cells(emit(b, type, std::move(operands)), no_variable, type);
  }
  std::vector<Run> runs;
  for (const Cellwise& v : args) runs.push_back(run_of_operand(v));
  if (!alike) {
    Operand n = integer(1);
    bool varies = false, set = false;
    for (size_t k = 0; k < args.size(); ++k) {
      if (is_single(args[k]) || is_scalar_cells(args[k])) continue;
      if (!set) {
        n = runs[k].length, varies = runs[k].lengths_vary, set = true;
        continue;
      }
      if (n.kind == Operand::variable && runs[k].length.kind == Operand::variable && n.id == runs[k].length.id)
        continue;
      const VariableId same = mask(Builtin::eq, {n, runs[k].length}), one = mask(Builtin::eq, {n, integer(1)});
      const VariableId other_one = mask(Builtin::eq, {runs[k].length, integer(1)});
      const VariableId either = mask(Builtin::or_, {var(same), var(one)}),
                       ok = mask(Builtin::or_, {var(either), var(other_one)});
      const VariableId longer = number(Builtin::select, {var(one), runs[k].length, n});
      n = var(required(ok, var(longer), basic(BasicType::i64)));
      varies |= runs[k].lengths_vary;
    }
    lengths = varies ? n.variable_id() : for_all(n, level);
    like = no_variable;
  }
  const VariableId c = cell_numbers(lengths, like);
  for (size_t k = 0; k < args.size(); ++k) {
    const Cellwise& v = args[k];
    if (is_single(v)) {
      operands.push_back(v.operand);
    } else if (is_scalar_cells(v)) {
      operands.push_back(var(element(v.values, v.type, c)));
    } else if (v.kind == Cellwise::cells && v.lengths == lengths && is_none(v.begins)) {
      operands.push_back(var(v.values));
    } else {
      const Run& run = runs[k];
      const VariableId p = places(lengths, like);
      Operand place = var(p);
      if (v.lengths != lengths) {  // one element stands for as many as there are
        const VariableId one = mask(Builtin::eq, {at_cell(run.length, run.lengths_vary, c), integer(1)});
        place = var(number(Builtin::select, {var(one), integer(0), var(p)}));
      }
      const VariableId at = number(Builtin::plus, {at_cell(run.begin, run.begins_vary, c), place});
      operands.push_back(var(element(run.values, v.type, at)));
    }
  }
  return cells(emit(b, type, std::move(operands)), lengths, type);
}

// Of what `elementwise` reads by places; nothing is made for others.
Flattener::Run Flattener::run_of_operand(const Cellwise& v) {
  if (is_single(v) || is_scalar_cells(v)) return {no_variable, integer(0), integer(1), false, false};
  return run_of(v);
}

// Elements of x at places k of the same cell.
Result<Cellwise> Flattener::index_of_cells(TypeId type, const Cellwise& x, const Cellwise& k, const Level& level) {
  const Cellwise keys[] = {k};
  RETURN_IF_ERROR(check_vectors(keys));
  if (x.kind == Cellwise::lists) return cell_of_list(x, k);
  const Cellwise vectors[] = {x};
  RETURN_IF_ERROR(check_vectors(vectors));
  if (x.kind == Cellwise::whole) {
    const Cellwise flat = contiguous(k);
    const VariableId made = element(run_of(x).values, type, flat.values);
    checked_.insert(made_.back());
    return cells(made, flat.lengths, type);
  }
  const Run run = run_of(x);
  if (is_single(k) || is_scalar_cells(k)) {
    const Operand place = is_single(k) ? k.operand : var(contiguous(k).values);
    const VariableId at = checked_place(run, place, no_variable);
    return cells(element(run.values, type, at), no_variable, type);
  }
  VariableId n = no_variable, place = no_variable, c = no_variable;
  if (k.kind == Cellwise::whole) {
    const Run keys_run = run_of(k);
    n = for_all(keys_run.length, level);
    c = cell_numbers(n);
    place = element(keys_run.values, k.type, places(n));
  } else {
    const Cellwise flat = contiguous(k);
    n = flat.lengths;
    c = cell_numbers(n, flat.values);
    place = flat.values;
  }
  return cells(element(run.values, type, checked_place(run, var(place), c)), n, type);
}

Result<Cellwise> Flattener::cell_of_list(const Cellwise& x, const Cellwise& k) {
  if (x.parts[0].kind != Cellwise::cells) return refuse("lists in lists of lists");
  const Run outer{no_variable, var(begins(x.lengths)), var(x.lengths), true, true};
  ASSIGN_OR_RETURN(const Operand place, number_of(k));
  return view(x.parts[0], checked_place(outer, place, no_variable));
}

Result<Cellwise> Flattener::compress(TypeId type, std::span<const Cellwise> args) {
  ASSIGN_OR_RETURN(const Aligned a, aligned(args));
  const VariableId kept = emit(Builtin::compress, type, {var(a.values[0]), var(a.values[1])});
  return cells(kept, count(a.values[0], a.lengths), type);
}

Result<Cellwise> Flattener::where(const Cellwise& m) {
  const Cellwise args[] = {m};
  ASSIGN_OR_RETURN(const Aligned a, aligned(args));
  const VariableId kept = number(Builtin::compress, {var(a.values[0]), var(places(a.lengths, a.values[0]))});
  return cells(kept, count(a.values[0], a.lengths), basic(BasicType::i64));
}

Result<Cellwise> Flattener::reverse(const Cellwise& x) {
  const Cellwise args[] = {x};
  RETURN_IF_ERROR(check_vectors(args));
  if (is_none(x.lengths)) return x;
  const Run run = run_of(x);
  const VariableId like = is_none(x.begins) ? x.values : no_variable, c = cell_numbers(x.lengths, like);
  const VariableId end = number(Builtin::plus, {run.begin, run.length});
  const VariableId last = number(Builtin::minus, {var(end), integer(1)});
  const VariableId from = number(Builtin::index, {var(last), var(c)});
  const VariableId at = number(Builtin::minus, {var(from), var(places(x.lengths, like))});
  return cells(element(x.values, x.type, at), x.lengths, x.type);
}

// take and drop: k one number per cell, or for all.
Result<Cellwise> Flattener::part(Builtin b, TypeId type, const Cellwise& k, const Cellwise& x, const Level& level) {
  const Cellwise args[] = {k, x};
  RETURN_IF_ERROR(check_vectors(args));
  ASSIGN_OR_RETURN(const Operand given, number_of(k));
  const Operand wanted = var(number(Builtin::plus, {given, integer(0)}));
  const VariableId back = mask(Builtin::lt, {wanted, integer(0)});
  const VariableId negative = number(Builtin::minus, {integer(0), wanted});
  const VariableId size = number(Builtin::select, {var(back), var(negative), wanted});
  const Run run = run_of(x);
  const bool for_every = k.kind != Cellwise::whole, varies = run.lengths_vary || for_every;
  if (b == Builtin::drop) {
    const VariableId more = mask(Builtin::gt, {var(size), run.length});
    const VariableId gone = number(Builtin::select, {var(more), run.length, var(size)});
    const VariableId left = number(Builtin::minus, {run.length, var(gone)});
    const VariableId shift = number(Builtin::select, {var(back), integer(0), var(gone)});
    const VariableId begin = number(Builtin::plus, {run.begin, var(shift)});
    Cellwise out{.kind = Cellwise::cells, .type = type, .values = run.values};
    out.lengths = varies ? left : for_all(var(left), level);
    out.begins = run.begins_vary || for_every ? begin : for_all(var(begin), level);
    return out;
  }
  const VariableId n = for_every ? size : for_all(var(size), level);
  const VariableId behind = number(Builtin::minus, {run.length, var(size)});
  const VariableId shift = number(Builtin::select, {var(back), var(behind), integer(0)});
  const VariableId c = cell_numbers(n);
  const VariableId place = number(Builtin::plus, {var(places(n)), at_cell(var(shift), varies, c)});
  const VariableId least = mask(Builtin::geq, {var(place), integer(0)});
  const VariableId most = mask(Builtin::lt, {var(place), at_cell(run.length, run.lengths_vary, c)});
  const VariableId there = mask(Builtin::and_, {var(least), var(most)});
  const VariableId at = number(Builtin::plus, {at_cell(run.begin, run.begins_vary, c), var(place)});
  const VariableId or_none = number(Builtin::select, {var(there), var(at), integer(-1)});
  return cells(emit(Builtin::index_or, type, {var(run.values), var(or_none), zero(type)}), n, type);
}

Result<Cellwise> Flattener::range(const Cellwise& n) {
  if (n.kind != Cellwise::cells) return refuse("not one number per cell");
  ASSIGN_OR_RETURN(const Operand given, number_of(n));
  const VariableId wanted = number(Builtin::plus, {given, integer(0)});
  const VariableId some = mask(Builtin::gt, {var(wanted), integer(0)});
  const VariableId lengths = number(Builtin::select, {var(some), var(wanted), integer(0)});
  return cells(places(lengths), lengths, basic(BasicType::i64));
}

// x, one element for every cell, as often as n says.
Result<Cellwise> Flattener::vector(TypeId type, const Cellwise& n, const Cellwise& x) {
  if (!is_scalar_cells(n) || (!is_single(x) && !is_scalar_cells(x))) return refuse("a pattern of several elements");
  const VariableId wanted = number(Builtin::plus, {var(contiguous(n).values), integer(0)});
  const VariableId ok = mask(Builtin::geq, {var(wanted), integer(0)});
  const VariableId lengths = required(ok, var(wanted), basic(BasicType::i64));
  const VariableId c = cell_numbers(lengths);
  if (is_single(x)) return cells(emit(Builtin::vector, type, {var(length(c)), x.operand}), lengths, type);
  return cells(element(contiguous(x).values, type, c), lengths, type);
}

Result<Cellwise> Flattener::raze(const Cellwise& x) {
  if (x.kind == Cellwise::cells) return x;
  if (x.kind != Cellwise::lists || x.parts[0].kind != Cellwise::cells) return refuse("cells that are no vectors");
  const Cellwise flat = contiguous(x.parts[0]);
  if (is_none(flat.lengths)) return cells(flat.values, x.lengths, flat.type);
  return cells(flat.values, sum_of_cells(flat.lengths, x.lengths), flat.type);
}

Result<Cellwise> Flattener::tolist(const Cellwise& x) {
  if (x.kind != Cellwise::cells) return refuse("cells that are no vectors");
  const Cellwise flat = contiguous(x);
  Cellwise out = list_of(cells(flat.values, no_variable, flat.type));
  out.lengths = lengths_of(flat);
  return out;
}

Result<Cellwise> Flattener::scan(Builtin b, TypeId type, std::span<const Cellwise> args) {
  ASSIGN_OR_RETURN(const Aligned a, aligned(args));
  const VariableId begin = mask(Builtin::eq, {var(places(a.lengths, a.values[0])), integer(0)});
  const VariableId starts = mask(Builtin::or_, {var(begin), var(a.values[1])});
  return cells(emit(b, type, {var(a.values[0]), var(starts)}), a.lengths, type);
}

Result<Cellwise> Flattener::index_a(TypeId type, std::span<const Cellwise> args, const Level& level) {
  RETURN_IF_ERROR(check_vectors(args));
  if (args[0].kind != Cellwise::cells || args[1].kind != Cellwise::cells ||
      types().basic_of(args[0].type) != types().basic_of(args[2].type))
    return refuse("places for all cells");
  const Cellwise x = contiguous(args[0]);
  const Cellwise k = contiguous(args[1]);
  Cellwise v = args[2];
  VariableId n = lengths_of(k);
  Operand put = v.operand;
  const VariableId c = cell_numbers(n, k.values);
  if (is_scalar_cells(v)) {
    put = var(element(contiguous(v).values, v.type, c));
  } else if (!is_single(v)) {
    const Cellwise both[] = {k, v};
    ASSIGN_OR_RETURN(const Aligned a, aligned(both));
    put = var(a.values[1]);
  }
  (void)level;
  const VariableId at = checked_place(run_of(x), var(k.values), c);
  return cells(emit(Builtin::index_a, type, {var(x.values), var(at), put}), x.lengths, type);
}

}  // namespace rndn::outliner::flattening
