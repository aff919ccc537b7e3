// Calls on the cells of lists: each form, functions of the program, and by which rule a builtin is made.
#include <algorithm>

#include "outliner/lists/flattener.h"

namespace rndn::outliner::flattening {

Result<Cellwise> Flattener::call(const Expression& e, TypeId type, std::vector<Cellwise> args, const Level* level) {
  if (e.callee.kind == FunctionRef::user) return follow(e.callee.function, args, level);
  if (e.callee.kind != FunctionRef::builtin) return refuse("not resolved");
  if (hir::is_each(e.callee.builtin_id)) return each_form(e.callee.builtin_id, type, std::move(args), level);
  return builtin(e.callee.builtin_id, type, std::move(args), level);
}

Result<Cellwise> Flattener::apply(const FunctionRef& f, TypeId type, std::vector<Cellwise> args, const Level* level) {
  if (f.kind == FunctionRef::user) return follow(f.function, args, level);
  if (hir::is_each(f.builtin_id)) return refuse("an each form of an each form");
  return builtin(f.builtin_id, type, std::move(args), level);
}

// f on the cells of the arguments that the form splits.
Result<Cellwise> Flattener::each_form(Builtin form, TypeId type, std::vector<Cellwise> args, const Level* level) {
  if (!is_function(args[0].operand)) return refuse("its function is only known at run time");
  const auto functions = std::get<std::vector<FunctionRef>>(program_.literals[args[0].operand.literal_id()].values);
  if (functions.size() != 1) return refuse("several functions");
  const auto is_whole = [](const Cellwise& v) { return v.kind == Cellwise::whole; };
  if (std::any_of(args.begin(), args.end(), [&](const Cellwise& v) { return is_whole(v) && is_list(v.type); })) {
    if (level || !std::all_of(args.begin(), args.end(), is_whole)) return refuse("a list as a whole");
    Operands operands;
    for (const Cellwise& v : args) operands.push_back(v.operand);
    return whole_variable(emit(form, type, std::move(operands)), false);
  }
  const unsigned split = split_operands(form);
  const Cellwise* list = nullptr;
  size_t columns = 0;
  for (size_t k = 1; k < args.size(); ++k) {
    if (!(split >> k & 1)) continue;
    if (args[k].kind == Cellwise::columns) columns = std::max(columns, args[k].parts.size());
    if (args[k].kind == Cellwise::lists) list = &args[k];
  }
  const auto of_list = [&](size_t cell) -> TypeId {
    const hir::Type& t = types()[type];
    return t.components[t.kind == TypeKind::tuple ? cell : 0];
  };
  if (columns > 0 && !list) {
    Cellwise out{.kind = Cellwise::columns};
    for (size_t c = 0; c < columns; ++c) {
      std::vector<Cellwise> of_cell;
      for (size_t k = 1; k < args.size(); ++k) {
        const bool cellwise = (split >> k & 1) && args[k].kind == Cellwise::columns;
        if (cellwise && args[k].parts.size() != columns && args[k].parts.size() != 1)
          return refuse("lists of other lengths");
        of_cell.push_back(cellwise ? args[k].parts[args[k].parts.size() == 1 ? 0 : c] : args[k]);
      }
      ASSIGN_OR_RETURN(out.parts.emplace_back(), apply(functions[0], of_list(c), std::move(of_cell), level));
    }
    return out;
  }
  if (!list) {
    args.erase(args.begin());
    return apply(functions[0], type, std::move(args), level);
  }
  if (columns > 0) return refuse("a list of unknown and one of known cells");
  if (!is_list(type)) return refuse("its result is no list");
  const VariableId counts = list->lengths;
  const Level inner{per_cell(list->parts[0])};
  std::vector<Cellwise> of_cells;
  for (size_t k = 1; k < args.size(); ++k) {
    if ((split >> k & 1) && args[k].kind == Cellwise::lists) {
      if (args[k].lengths != counts) return refuse("lists of other lengths");
      if (&args[k] != list && !level) check_counts(*list, args[k]);
      of_cells.push_back(args[k].parts[0]);
    } else if (level) {
      of_cells.push_back(seen_from(args[k], counts, inner));
    } else if (args[k].kind == Cellwise::lists) {
      of_cells.push_back(for_each_cell(args[k].parts[0], inner));
    } else {
      of_cells.push_back(args[k]);
    }
  }
  ASSIGN_OR_RETURN(Cellwise made, apply(functions[0], of_list(0), std::move(of_cells), &inner));
  if (made.kind == Cellwise::whole) {
    ASSIGN_OR_RETURN(made, repeated(made, inner));
  } else if (made.kind == Cellwise::columns) {
    ASSIGN_OR_RETURN(made, as_list(made, &inner));
  }
  Cellwise out = list_of(std::move(made));
  out.lengths = counts;
  out.count = list->count;
  return out;
}

// Two lists of main must have as many cells.
void Flattener::check_counts(const Cellwise& x, const Cellwise& y) {
  if (!is_none(x.count) && x.count == y.count) return;
  const VariableId a = per_cell(x.parts[0]), b = per_cell(y.parts[0]);
  if (a == b) return;
  const VariableId n = length(a), ok = mask(Builtin::eq, {var(n), var(length(b))});
  required(ok, var(n), basic(BasicType::i64));
}

// A function of the program, statement by statement.
Result<Cellwise> Flattener::follow(hir::FunctionId id, const std::vector<Cellwise>& args, const Level* level) {
  const Function& g = program_.functions[id];
  std::vector<StatementId> order;
  if (calls_ >= deepest_list_calls || g.parameters.size() != args.size() || is_none(g.body) ||
      g.result_types.size() != 1 || !flatten(g, g.body, order))
    return refuse("a function with control flow");
  ++calls_;
  auto made = statements_of(g, order, args, level);
  --calls_;
  return made;
}

Result<Cellwise> Flattener::statements_of(const Function& g, const std::vector<StatementId>& order,
                                          const std::vector<Cellwise>& args, const Level* level) {
  std::map<uint32_t, Cellwise> env;
  for (size_t k = 0; k < args.size(); ++k) {
    const Cellwise& v = args[k];
    const TypeId type = g.variables[g.parameters[k]].type;
    if ((v.kind == Cellwise::whole || v.kind == Cellwise::cells) && v.type != type)
      return refuse("a parameter of another type");
    env[index(g.parameters[k])] = v;
  }
  const auto read = [&](const Operand& o) -> Result<Cellwise> {
    if (o.kind == Operand::literal) return whole(o, program_.literals[o.literal_id()].type);
    if (o.kind != Operand::variable || !env.contains(o.id)) return refuse("a global, or a variable without a value");
    return env.at(o.id);
  };
  for (StatementId at : order) {
    const Statement s = g.statements[at];
    if (s.kind == Statement::return_) {
      if (at != order.back() || s.results.size() != 1) return refuse("a function that returns early");
      return read(s.results[0]);
    }
    if (s.kind != Statement::assign || s.targets.size() != 1 || s.targets[0].kind != hir::Target::variable)
      return refuse("a statement with effects");
    const Expression e = g.expressions[innermost(g, s.value)];
    const bool casts = s.value != innermost(g, s.value);
    const TypeId declared = g.variables[s.targets[0].variable_id()].type;
    Cellwise made;
    std::vector<Cellwise> operands;
    for (const Operand& o : e.operands) {
      ASSIGN_OR_RETURN(operands.emplace_back(), read(o));
    }
    if (e.kind == Expression::operand) {
      made = operands[0];
    } else {
      const TypeId type = casts && !e.types.empty() ? e.types[0] : declared;
      ASSIGN_OR_RETURN(made, call(e, type, std::move(operands), level));
    }
    if (casts) {
      for (ExpressionId c = s.value; c != innermost(g, s.value); c = g.expressions[c].inner)
        if (g.expressions[c].cast_type != declared) return refuse("a cast of a cast");
      ASSIGN_OR_RETURN(made, cast(made, declared));
    }
    if ((made.kind == Cellwise::whole || made.kind == Cellwise::cells) && made.type != declared)
      return refuse("a conversion");
    env[s.targets[0].id] = std::move(made);
  }
  return refuse("a function without a result");
}

Result<Cellwise> Flattener::builtin(Builtin b, TypeId type, std::vector<Cellwise> args, const Level* level) {
  const hir::BuiltinRow& row = hir::row(b);
  if (row.has(hir::traits::ordered) || row.device == hir::Device::cpu) {
    if (b != Builtin::list && b != Builtin::flip && b != Builtin::replicate && b != Builtin::keys &&
        b != Builtin::values)
      return refuse("it runs on the host");
  }
  if (b == Builtin::list) {
    if (args.empty()) return refuse("a list without cells");
    Cellwise out{.kind = Cellwise::columns};
    out.parts = std::move(args);
    return out;
  }
  if (b == Builtin::raze && args[0].kind == Cellwise::whole && types().is_basic(args[0].type)) return args[0];
  if (b == Builtin::flip && args[0].kind == Cellwise::columns) {
    std::reverse(args[0].parts.begin(), args[0].parts.end());
    return args[0];
  }
  if (b == Builtin::append && !level && (args[0].kind == Cellwise::columns || args[1].kind == Cellwise::columns))
    return of_lists(b, type, args);
  if (b == Builtin::raze && args[0].kind == Cellwise::columns) return raze_columns(type, args[0], level);
  if (b == Builtin::index && args[0].kind == Cellwise::columns && args[1].kind == Cellwise::whole) {
    const std::optional<int64_t> k = literal_integer(args[1].operand);
    if (!k || *k < 0 || *k >= static_cast<int64_t>(args[0].parts.size()))
      return refuse("a cell that is only known at run time");
    return args[0].parts[static_cast<size_t>(*k)];
  }
  const auto in_main = [](const Cellwise& v) {
    return v.kind == Cellwise::whole ||
           (v.kind == Cellwise::columns &&
            std::all_of(v.parts.begin(), v.parts.end(), [](const Cellwise& p) { return p.kind == Cellwise::whole; }));
  };
  if (std::all_of(args.begin(), args.end(), in_main) && (b != Builtin::replicate || !level)) {
    if (b == Builtin::replicate) return replicate(type, args);
    if (level && types().is_basic(type) && hir::can_fail(b, types().basic_of(type))) return refuse("it may fail");
    Operands operands;
    for (const Cellwise& v : args) {
      if (v.kind == Cellwise::whole) {
        operands.push_back(v.operand);
        continue;
      }
      Operands columns;
      std::vector<TypeId> column_types;
      for (const Cellwise& p : v.parts) columns.push_back(p.operand), column_types.push_back(p.type);
      operands.push_back(var(emit(Builtin::list, program_.types->tuple(column_types), std::move(columns))));
    }
    // Literals have code as scalars only.
    if (b == Builtin::index || row.has(hir::traits::reduction) || b == Builtin::reverse)
      if (operands[0].kind == Operand::literal) operands[0] = var(copy(operands[0], args[0].type));
    const bool single =
        row.has(hir::traits::reduction) ||
        (is_elementwise(b) && std::all_of(args.begin(), args.end(), [&](const Cellwise& v) { return is_single(v); }));
    return whole_variable(emit(b, type, std::move(operands)), single);
  }
  if (!level) return of_lists(b, type, args);
  if (is_elementwise(b)) return elementwise(b, type, args, *level);
  if (b == Builtin::len && (args[0].kind == Cellwise::cells || args[0].kind == Cellwise::lists)) {
    if (args[0].kind == Cellwise::lists) return cells(args[0].lengths, no_variable, type);
    return cells(lengths_of(args[0]), no_variable, type);
  }
  if (row.has(hir::traits::reduction)) {
    if (args[0].kind != Cellwise::cells) return refuse("a reduction of no vector");
    return reduced(b, type, args[0]);
  }
  switch (b) {
    case Builtin::index: return index_of_cells(type, args[0], args[1], *level);
    case Builtin::compress: return compress(type, args);
    case Builtin::where: return where(args[0]);
    case Builtin::reverse: return reverse(args[0]);
    case Builtin::take:
    case Builtin::drop: return part(b, type, args[0], args[1], *level);
    case Builtin::append: return append(type, args[0], args[1], level);
    case Builtin::unique: return unique(args[0]);
    case Builtin::order: return order(args[0], args[1], *level);
    case Builtin::group: return group(args[0]);
    case Builtin::keys:
    case Builtin::values:
      if (args[0].kind != Cellwise::dict) return refuse("no dict");
      return args[0].parts[b == Builtin::keys ? 0 : 1];
    case Builtin::member:
    case Builtin::index_of: return search(b, args[0], args[1], *level);
    case Builtin::range: return range(args[0]);
    case Builtin::vector: return vector(type, args[0], args[1]);
    case Builtin::raze: return raze(args[0]);
    case Builtin::tolist: return tolist(args[0]);
    case Builtin::scan_sum:
    case Builtin::scan_min:
    case Builtin::scan_max: return scan(b, type, args);
    case Builtin::index_a: return index_a(type, args, *level);
    default: return refuse("it has no form for cells");
  }
}

std::optional<int64_t> Flattener::literal_integer(const Operand& o) const {
  if (o.kind != Operand::literal) return {};
  const auto* n = std::get_if<std::vector<int64_t>>(&program_.literals[o.literal_id()].values);
  return n && n->size() == 1 ? std::optional(n->front()) : std::nullopt;
}

}  // namespace rndn::outliner::flattening
