// Type inference and checking over whole functions (docs/horseir.md, "Types" and "Assignment"). The
// builtins' own rules are in type_rules.cpp.
//
// One forward pass in statement order types a function without loops, since a result type depends only on argument types. With
// loops the pass is repeated, its reports thrown away, until no variable's type changes; one more pass reports. Types only move
// from unknown (`?`) to known, or from a type to the wider declared one (`list<?>`), so this ends; the number of passes is
// bounded all the same. A function whose signature holds `?` is typed at its first call: parameters from the arguments, results
// from its returns. Cost: O(statements) for straight-line programs.
#include <algorithm>

#include "frontend/check_types.h"
#include "frontend/passes.h"

namespace rndn::hir {

namespace {

constexpr int most_passes = 64;
// Functions of unknown signature calling each other, and the blocks and casts around such calls in all of them: the
// checker recurses.
constexpr uint32_t most_inferences = 200, most_levels = 3 * most_nested;

class Checker final : public TypeChecker {
 public:
  Checker(Program& p, const Options& o, DiagnosticSink& s)
      : TypeChecker(p, o, s), reported_(s), states_(p.functions.size()), failed_(p.functions.size()) {}

  void run() {
    find_circles();
    for (uint32_t g = 0; g < program.globals.size(); ++g) global(static_cast<GlobalId>(g));
    if (!is_none(program.main)) infer(program.main);
    for (uint32_t f = 0; f < program.functions.size(); ++f) infer(static_cast<FunctionId>(f));
  }

  bool call_user(FunctionId callee, Span span, std::span<const Argument> arguments, std::string_view outer,
                 std::vector<TypeId>& results) override;

 private:
  enum class State : uint8_t { untouched, running, done };

  // What the walk over one function keeps; saved and restored around the inference of a callee.
  struct Walk {
    FunctionId id{};
    Function* function = nullptr;
    std::vector<TypeId> declared;      // by VariableId: as written
    std::vector<bool> held_unknown;    // by VariableId: declared `list<?>`, and was given one of which no more is known
    std::vector<TableFact> tables;     // by VariableId
    std::vector<TypeId> result_types;  // as written
    bool changed = false;              // a type or fact moved in this pass
    bool final_pass = false;           // unknown types are errors now
    bool has_loops = false;
  };

  void find_circles();
  void global(GlobalId id);
  void type_global(Global& g);
  void infer(FunctionId id);

  void block(BlockId id);
  void statement(Statement& s);
  void assign(Statement& s);
  void assign_target(Target& t, TypeId type, const Expression& value, const TableFact& fact);
  void set_variable(VariableId v, TypeId type, Span span, const Expression* value);
  void return_values(Statement& s);
  void condition(const Operand& o, bool count);

  void expression(ExpressionId id, TypeId target);
  void call(Expression& e, TypeId target);
  void cast(Expression& e);
  TypeId kept_column(const Expression& inner, TypeId from, TypeId to) const;
  Argument argument(const Operand& o);
  TypeId value_type(const Operand& o);
  TableFact table_fact(const Expression& e);
  std::string_view name(NameId id) const { return program.text(id); }
  bool is_list(TypeId t) const { return types[t].kind == TypeKind::list || types[t].kind == TypeKind::tuple; }

  DiagnosticSink& reported_;  // the real sink; `sink` may be a scratch one
  std::vector<State> states_;
  std::vector<bool> failed_;  // by FunctionId: a `?` result was not found out, and why was reported
  Walk walk_;
  uint32_t depth_ = 0;   // inferences that are open
  uint32_t levels_ = 0;  // blocks and casts that are open, in all of them
};

// --- Globals and functions ----------------------------------------------------------------------------------------------------

// A global's value is a literal or another global; where that leads back, one global of the circle is an error.
void Checker::find_circles() {
  std::vector<uint32_t> seen(program.globals.size(), 0);  // the walk that came by, from 1
  for (uint32_t start = 0; start < program.globals.size(); ++start) {
    GlobalId id = static_cast<GlobalId>(start);
    while (seen[index(id)] == 0) {
      seen[index(id)] = start + 1;
      const Operand& value = program.globals[id].value;
      if (value.kind == Operand::global) id = value.global_id();
    }
    Global& g = program.globals[id];
    if (seen[index(id)] != start + 1 || g.value.kind != Operand::global) continue;
    sink->error("cannot-infer", g.span, "the value of global `{}` depends on itself", name(g.name));
    g.type = no_type;
  }
}

// Types of globals along the chain of values that begins here, from its end.
void Checker::global(GlobalId id) {
  std::vector<GlobalId> chain{id};
  for (;;) {
    const Global& g = program.globals[chain.back()];
    if (g.type == no_type || g.value.kind != Operand::global) break;
    const GlobalId from = g.value.global_id();
    if (!types.is_wildcard(program.globals[from].type)) break;
    chain.push_back(from);
  }
  for (auto g = chain.rbegin(); g != chain.rend(); ++g) type_global(program.globals[*g]);
}

void Checker::type_global(Global& g) {
  if (g.type == no_type) return;
  TypeId type = no_type;
  if (g.value.kind == Operand::literal) {
    type = program.literals[g.value.literal_id()].type;
  } else if (g.value.kind == Operand::global) {
    type = program.globals[g.value.global_id()].type;
  }
  if (type == no_type) {
    g.type = no_type;
    return;
  }
  if (type == types.function() || !assignable(g.type, type)) {
    sink->error("type-mismatch", g.value.span, "global `{}` expects {}, got {}", name(g.name), types.text(g.type),
                types.text(type))
        .note(g.span, "`{}` is declared here", name(g.name));
    g.type = no_type;
  } else if (types.contains_wildcard(g.type)) {
    g.type = type;
  }
}

void Checker::infer(FunctionId id) {
  State& state = states_[index(id)];
  if (state != State::untouched) return;
  state = State::running;
  Walk saved = std::move(walk_);
  DiagnosticSink* saved_sink = sink;
  walk_ = {};
  Function& f = program.functions[id];
  walk_.id = id;
  walk_.function = &f;
  walk_.declared.reserve(f.variables.size());
  for (const Variable& v : f.variables) walk_.declared.push_back(v.type);
  walk_.held_unknown.assign(f.variables.size(), false);
  walk_.tables.resize(f.variables.size());
  walk_.result_types = f.result_types;
  for (const Statement& s : f.statements)
    walk_.has_loops = walk_.has_loops || s.kind == Statement::while_loop || s.kind == Statement::repeat;

  if (walk_.has_loops) {
    for (int i = 0; i < most_passes; ++i) {
      DiagnosticSink scratch;
      sink = &scratch;
      walk_.changed = false;
      block(f.body);
      // What failed in a settling pass is tried again with what is known by then.
      for (uint32_t v = 0; v < f.variables.size(); ++v) {
        Variable& variable = f.variables[static_cast<VariableId>(v)];
        if (variable.type == no_type) variable.type = walk_.declared[v];
      }
      for (size_t r = 0; r < f.result_types.size(); ++r)
        if (f.result_types[r] == no_type) f.result_types[r] = walk_.result_types[r];
      if (!walk_.changed) break;
    }
  }
  sink = &reported_;
  walk_.final_pass = true;
  block(f.body);

  for (uint32_t v = 0; v < f.variables.size(); ++v) {
    Variable& variable = f.variables[static_cast<VariableId>(v)];
    if (types.is_wildcard(variable.type) && !variable.is_parameter)
      sink->error("cannot-infer", variable.span, "the type of `{}` cannot be inferred: nothing is assigned to it",
                  name(variable.name));
    if (variable.type == no_type) variable.type = types.wildcard();
  }
  for (TypeId& t : f.result_types)
    if (t == no_type) {
      t = types.wildcard();
      failed_[index(id)] = true;
    }
  states_[index(id)] = State::done;
  walk_ = std::move(saved);
  sink = saved_sink;
}

// --- Statements ---------------------------------------------------------------------------------------------------------------

void Checker::block(BlockId id) {
  Function& f = *walk_.function;
  ++levels_;
  for (StatementId s : f.blocks[id].statements) statement(f.statements[s]);
  --levels_;
}

void Checker::statement(Statement& s) {
  switch (s.kind) {
    case Statement::assign: assign(s); break;
    case Statement::expression: expression(s.value, types.wildcard()); break;
    case Statement::declare: break;
    case Statement::if_else:
    case Statement::while_loop:
    case Statement::repeat:
      condition(s.condition, s.kind == Statement::repeat);
      block(s.body);
      if (!is_none(s.otherwise)) block(s.otherwise);
      break;
    case Statement::block: block(s.body); break;
    case Statement::return_: return_values(s); break;
    case Statement::break_:
    case Statement::continue_: break;
  }
}

void Checker::condition(const Operand& o, bool count) {
  TypeId type = value_type(o);
  if (type == no_type || types.is_wildcard(type)) return;
  bool fits = types.is_basic(type) && is_integer(types.basic_of(type)) &&
              !(count && types.basic_of(type) == BasicType::boolean);
  if (!fits)
    sink->error("type-mismatch", o.span, "expected {}, got {}",
                count ? "an integer as the count of `repeat`" : "bool or an integer as a condition", types.text(type));
  else if (o.kind == Operand::literal && program.literals[o.literal_id()].size() != 1)
    sink->error("expected-scalar", o.span, "expected one value, got {}", program.literals[o.literal_id()].size());
}

void Checker::assign(Statement& s) {
  Function& f = *walk_.function;
  TypeId wanted = types.wildcard();
  if (s.targets.size() == 1) {
    const Target& t = s.targets[0];
    if (t.kind == Target::variable) {
      wanted = t.declares ? t.declared_type : f.variables[t.variable_id()].type;
      if (wanted == no_type) wanted = types.wildcard();
    } else if (t.kind == Target::global) {
      wanted = program.globals[static_cast<GlobalId>(t.id)].type;
    }
  }
  expression(s.value, wanted);
  const Expression& e = f.expressions[s.value];
  if (e.types.empty() && s.targets.size() == 1 && !options.strict && !types.contains_wildcard(wanted) &&
      e.kind == Expression::call && e.callee.kind == FunctionRef::user) {
    // As a variable that nothing is assigned to: published programs contain it.
    const Function& callee = program.functions[e.callee.function];
    if (walk_.final_pass)
      sink->warning("declared-type", e.span, "`{}` returns nothing: the value is the empty vector", name(callee.name))
          .note(callee.name_span, "`{}` is declared here", name(callee.name));
    return;
  }
  if (e.types.size() != s.targets.size()) {
    bool failed = e.types.size() == 1 && e.types[0] == no_type;
    if (!failed)
      sink->error("result-count", e.span, "expected {} result{} for {} target{}, got {}", s.targets.size(),
                  s.targets.size() == 1 ? "" : "s", s.targets.size(), s.targets.size() == 1 ? "" : "s", e.types.size())
          .highlight(s.targets[0].span);
    for (Target& t : s.targets)
      if (t.kind == Target::variable) set_variable(t.variable_id(), no_type, t.span, nullptr);
    return;
  }
  TableFact fact = s.targets.size() == 1 ? table_fact(e) : TableFact{TableFact::unknown};
  for (size_t i = 0; i < s.targets.size(); ++i) assign_target(s.targets[i], e.types[i], e, fact);
}

void Checker::assign_target(Target& t, TypeId type, const Expression& value, const TableFact& fact) {
  if (type == types.function()) {
    sink->error("type-mismatch", value.span, "a function cannot be assigned: function literals are arguments only");
    type = no_type;
  }
  if (t.kind == Target::global) {
    const Global& g = program.globals[static_cast<GlobalId>(t.id)];
    if (type != no_type && g.type != no_type && !types.is_wildcard(type) && !assignable(g.type, type))
      sink->error("type-mismatch", value.span, "global `{}` expects {}, got {}", name(g.name), types.text(g.type),
                  types.text(type))
          .note(g.span, "`{}` is declared here", name(g.name));
    return;
  }
  if (t.kind != Target::variable) return;
  VariableId v = t.variable_id();
  set_variable(v, type, t.span, &value);
  TableFact& known = walk_.tables[index(v)];
  TableFact now = known.kind == TableFact::unset || known == fact ? fact : TableFact{TableFact::unknown};
  if (!(now == known)) {
    known = now;
    walk_.changed = true;
  }
}

void Checker::set_variable(VariableId id, TypeId type, Span span, const Expression* value) {
  Variable& v = walk_.function->variables[id];
  TypeId declared = walk_.declared[index(id)];
  if (v.type == no_type) return;
  if (type == no_type) {
    if (types.is_wildcard(v.type)) v.type = no_type;
    return;
  }
  if (types.is_wildcard(type)) {  // a column of unknown type, or a value that is not known yet
    if (!types.is_wildcard(v.type)) return;
    if (!walk_.final_pass) return;
    sink->error("cannot-infer", span,
                "the type of `{}` cannot be inferred: nothing here tells it; expected `check_cast` or a declared type",
                name(v.name));
    v.type = no_type;
    return;
  }
  if (types.is_wildcard(v.type)) {
    v.type = type;
    walk_.changed = true;
    return;
  }
  if (v.type == type) {
    if (types.contains_wildcard(type)) walk_.held_unknown[index(id)] = true;
    return;
  }
  if (types.contains_wildcard(declared) && !types.is_wildcard(declared) && !walk_.held_unknown[index(id)] &&
      assignable(declared, type)) {
    // Narrow `list<?>` to what it holds; widen again when it holds different things.
    TypeId next = v.type == declared ? type : declared;
    if (next != v.type) {
      // Narrowing happens at the first assignment only, or loops would not settle.
      if (next == declared || !walk_.has_loops) {
        v.type = next;
        walk_.changed = true;
      }
    }
    return;
  }
  if (assignable(v.type, type)) return;
  // Published programs name such types (docs/horseir.md, "Assignment"), and another integer type
  // for a foreign key: the variable takes the type of the value.
  const auto key_of_integers = [&](TypeId t) {
    return types[t].kind == TypeKind::enumeration && types.is_basic(types[t].components[0]) &&
           is_integer(types.basic_of(types[t].components[0]));
  };
  bool from_builtin = value && value->kind == Expression::call && value->callee.kind == FunctionRef::builtin;
  bool list_for_basic = types.is_basic(v.type) && is_list(type);
  bool float_for_less = from_builtin && types.is_basic(v.type) && is_real(types.basic_of(v.type)) &&
                        types.is_basic(type) && is_float(types.basic_of(type));
  bool another_key = key_of_integers(v.type) && key_of_integers(type);
  if (!options.strict && v.type == declared && !v.is_parameter && (list_for_basic || float_for_less || another_key)) {
    sink->warning("declared-type", span, "`{}` is declared {} and becomes {}, the type of its value", name(v.name),
                  types.text(declared), types.text(type))
        .highlight(value ? value->span : span);
    v.type = type;
    walk_.changed = true;
    return;
  }
  auto report = sink->error("type-mismatch", value ? value->span : span, "`{}` expects {}, got {}", name(v.name),
                            types.text(v.type), types.text(type));
  if (span.known() && v.span.begin != span.begin)
    report.note(v.span, "`{}` {} here", name(v.name), types.is_wildcard(declared) ? "gets its type" : "is declared");
  else
    report.highlight(v.span);
}

void Checker::return_values(Statement& s) {
  Function& f = *walk_.function;
  std::vector<TypeId> got;
  for (const Operand& o : s.results) got.push_back(value_type(o));
  if (got.size() != f.result_types.size()) {
    sink->error("result-count", s.span, "`{}` returns {} value{}, got {}", name(f.name), f.result_types.size(),
                f.result_types.size() == 1 ? "" : "s", got.size())
        .note(f.name_span, "`{}` is declared here", name(f.name));
    return;
  }
  for (size_t i = 0; i < got.size(); ++i) {
    TypeId& wanted = f.result_types[i];
    if (wanted == no_type) continue;
    if (got[i] == no_type || types.is_wildcard(got[i])) {
      if (got[i] == no_type && types.is_wildcard(wanted)) wanted = no_type;
      continue;
    }
    // docs/horseir.md, "Assignment": the function returns the other integers that it has.
    if (!options.strict && types.is_basic(wanted) && types.is_basic(got[i]) && is_integer(types.basic_of(wanted)) &&
        is_integer(types.basic_of(got[i])) && wanted != got[i]) {
      sink->warning("declared-type", s.results[i].span, "`{}` returns {}, the type of this value, not {}", name(f.name),
                    types.text(got[i]), types.text(wanted))
          .note(f.name_span, "`{}` is declared here", name(f.name));
      wanted = got[i];
      walk_.changed = true;
      continue;
    }
    if (got[i] == types.function() || !assignable(wanted, got[i])) {
      sink->error("type-mismatch", s.results[i].span, "`{}` returns {}, got {}", name(f.name), types.text(wanted),
                  types.text(got[i]))
          .note(f.name_span, "`{}` is declared here", name(f.name));
      continue;
    }
    if (types.is_wildcard(wanted)) {
      wanted = got[i];
      walk_.changed = true;
    }
  }
}

// --- Expressions --------------------------------------------------------------------------------------------------------------

TypeId Checker::value_type(const Operand& o) {
  switch (o.kind) {
    case Operand::literal: return program.literals[o.literal_id()].type;
    case Operand::global: return program.globals[o.global_id()].type;
    case Operand::variable: return walk_.function->variables[o.variable_id()].type;
    case Operand::unresolved: break;
  }
  return no_type;
}

Argument Checker::argument(const Operand& o) {
  Argument a;
  a.type = value_type(o);
  a.span = o.span;
  if (o.kind == Operand::literal) a.literal = &program.literals[o.literal_id()];
  if (o.kind == Operand::variable) a.variable = &walk_.function->variables[o.variable_id()];
  if (types.is_wildcard(a.type) && walk_.final_pass) {
    sink->error("cannot-infer", o.span, "the type of `{}` is not known here: expected an assignment before this use",
                name(o.name));
    a.type = no_type;
  }
  return a;
}

TableFact Checker::table_fact(const Expression& e) {
  const Expression* inner = &e;
  while (inner->kind == Expression::cast) inner = &walk_.function->expressions[inner->inner];
  if (inner->kind == Expression::operand && inner->operands[0].kind == Operand::variable)
    return walk_.tables[inner->operands[0].id];
  if (inner->kind != Expression::call || inner->callee.kind != FunctionRef::builtin) return {TableFact::unknown};
  auto texts = [&](const Operand& o) -> const Literal* {
    if (o.kind != Operand::literal) return nullptr;
    const Literal& l = program.literals[o.literal_id()];
    return std::holds_alternative<std::vector<std::string>>(l.values) ? &l : nullptr;
  };
  if (inner->callee.builtin_id == Builtin::load_table && inner->operands.size() == 1) {
    const Literal* l = texts(inner->operands[0]);
    if (l && l->size() == 1) return {TableFact::loaded, std::get<std::vector<std::string>>(l->values)[0]};
  }
  if (inner->callee.builtin_id == Builtin::table && inner->operands.size() == 2) {
    const Literal* l = texts(inner->operands[0]);
    TypeId cells = value_type(inner->operands[1]);
    if (l && cells != no_type && is_list(cells)) return {TableFact::built, {}, l, cells};
  }
  return {TableFact::unknown};
}

void Checker::expression(ExpressionId id, TypeId target) {
  Expression& e = walk_.function->expressions[id];
  switch (e.kind) {
    case Expression::operand: e.types = {argument(e.operands[0]).type}; break;
    case Expression::call: call(e, target); break;
    case Expression::cast: cast(e); break;
  }
}

void Checker::call(Expression& e, TypeId target) {
  constexpr size_t few = 8;
  Argument local[few];
  std::vector<Argument> many;
  std::span<Argument> arguments(local, e.operands.size());
  if (e.operands.size() > few) {
    many.resize(e.operands.size());
    arguments = many;
  }
  bool failed = false, unknown = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    arguments[i] = argument(e.operands[i]);
    failed = failed || arguments[i].type == no_type;
    unknown = unknown || types.is_wildcard(arguments[i].type);
  }
  if (e.callee.kind == FunctionRef::user) {
    std::vector<TypeId> results;
    if (failed) {  // the declared results still help what follows
      for (TypeId t : program.functions[e.callee.function].result_types)
        results.push_back(types.is_wildcard(t) ? no_type : t);
    } else if (unknown) {
      results.assign(program.functions[e.callee.function].result_types.size(), types.wildcard());
    } else if (!call_user(e.callee.function, e.callee.span, arguments, {}, results)) {
      results.clear();
      for (TypeId t : program.functions[e.callee.function].result_types)
        results.push_back(types.is_wildcard(t) ? no_type : t);
    }
    e.types.assign(results.begin(), results.end());
    return;
  }
  Call c{*this, e.callee.builtin_id, e.callee.span, arguments, {}};
  if (!check_arity(c)) failed = true;
  if (row(e.callee.builtin_id).type_rule == TypeRule::gpu_primitive) {
    std::vector<TypeId> results;
    if (failed || unknown || !apply_primitive(c, results))
      results.assign(1, failed || !unknown ? no_type : types.wildcard());
    e.types.assign(results.begin(), results.end());
    return;
  }
  TypeId result = no_type;
  if (!failed && unknown) result = types.wildcard();
  if (!failed && !unknown) {
    if (row(e.callee.builtin_id).shape_rule == ShapeRule::column_value &&
        e.operands[0].kind == Operand::variable)
      c.table = &walk_.tables[e.operands[0].id];
    // A function literal where the rule expects a value is a mismatch by the rule itself: `func` is no basic type.
    result = apply(c);
    // The sum of small integers and the mean widen to the type that the target asks for
    // (docs/horseir.md, "Assignment").
    if (e.callee.builtin_id == Builtin::sum && target == types.basic(BasicType::i64) &&
        result == types.basic(BasicType::i32))
      result = target;
    if (e.callee.builtin_id == Builtin::avg && target == types.basic(BasicType::f64) &&
        result == types.basic(BasicType::f32))
      result = target;
  }
  if (result != no_type && types.too_large(result)) {
    sink->error("too-deep", e.span,
                "the type of this result is nested too deeply or too long: expected at most 32 levels and 20000 parts");
    result = no_type;
  }
  // `len` of a function literal and the like: rules that take anything still take no functions.
  if (result != no_type && (e.callee.builtin_id == Builtin::len || e.callee.builtin_id == Builtin::match))
    for (const Argument& a : arguments)
      if (a.type == types.function()) result = mismatch(c, "values");
  e.types = {result};
}

bool Checker::call_user(FunctionId callee, Span span, std::span<const Argument> arguments, std::string_view outer,
                        std::vector<TypeId>& results) {
  Function& f = program.functions[callee];
  std::string via = outer.empty() ? std::string() : fmt::format(", as `{}` applies it", outer);
  if (arguments.size() != f.parameters.size()) {
    sink->error("arity", span, "`{}` expects {} argument{}, got {}{}", name(f.name), f.parameters.size(),
                f.parameters.size() == 1 ? "" : "s", arguments.size(), via)
        .note(f.name_span, "`{}` is declared here", name(f.name));
    return false;
  }
  bool good = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    Variable& parameter = f.variables[f.parameters[i]];
    if (types.is_wildcard(parameter.type) && arguments[i].type != types.function() &&
        states_[index(callee)] == State::untouched) {
      parameter.type = arguments[i].type;
      continue;
    }
    if (parameter.type != no_type &&
        (arguments[i].type == types.function() || !assignable(parameter.type, arguments[i].type))) {
      sink->error("type-mismatch", arguments[i].span, "`{}` expects {} for `{}`, got {}{}", name(f.name),
                  types.text(parameter.type), name(parameter.name), types.text(arguments[i].type), via)
          .note(parameter.span, "`{}` is declared here", name(parameter.name));
      good = false;
    }
  }
  if (!good) return false;
  bool open = std::any_of(f.result_types.begin(), f.result_types.end(), [&](TypeId t) { return types.is_wildcard(t); });
  if (open && states_[index(callee)] == State::untouched) {
    if (depth_ >= most_inferences) {
      sink->error("cannot-infer", span,
                  "more than {} functions without declared results call each other; expected declared result types",
                  most_inferences);
      return false;
    }
    if (levels_ >= most_levels) {
      sink->error("cannot-infer", span,
                  "functions without declared results call each other from within more than {} nested statements and "
                  "casts; expected declared result types",
                  most_levels);
      return false;
    }
    ++depth_;
    infer(callee);
    --depth_;
  }
  results = f.result_types;
  for (TypeId& t : results) {
    if (!types.is_wildcard(t)) continue;
    if (states_[index(callee)] == State::running)
      sink->error("cannot-infer", span,
                  "the result type of `{}` cannot be inferred from its own recursion; expected a declared result type",
                  name(f.name))
          .note(f.name_span, "`{}` is declared here", name(f.name));
    else if (!failed_[index(callee)])
      sink->error("cannot-infer", span, "the result type of `{}` cannot be inferred: it returns nothing", name(f.name))
          .note(f.name_span, "`{}` is declared here", name(f.name));
    t = no_type;
  }
  return true;
}

// The type that a column keeps although it is cast to `to`: text never becomes a number, fractions are not cut off, and a foreign
// key stands for its values. Published programs name such types and rely on nothing being converted. Otherwise no_type.
TypeId Checker::kept_column(const Expression& inner, TypeId from, TypeId to) const {
  const Expression* source = &inner;
  while (source->kind == Expression::cast) source = &walk_.function->expressions[source->inner];
  bool column = source->kind == Expression::call && source->callee.kind == FunctionRef::builtin &&
                source->callee.builtin_id == Builtin::column_value;
  if (!column) return no_type;
  const Type &f = types[from], &t = types[to];
  if (f.kind == TypeKind::enumeration) {
    if (t.kind == TypeKind::basic) return f.components[0];
    return t.kind == TypeKind::enumeration && !types.is_wildcard(t.components[0]) ? from : no_type;
  }
  if (f.kind != TypeKind::basic || t.kind != TypeKind::basic) return no_type;
  if (is_text(f.basic) && !is_text(t.basic)) return from;
  return is_float(f.basic) && is_integer(t.basic) ? from : no_type;
}

// check_cast: the table of docs/horseir.md, "check_cast"; lenient mode keeps the actual type of a
// column where published programs name another.
void Checker::cast(Expression& e) {
  ++levels_;
  expression(e.inner, e.cast_type);
  --levels_;
  const Expression& inner = walk_.function->expressions[e.inner];
  TypeId to = e.cast_type;
  if (inner.types.size() != 1) {
    sink->error("result-count", inner.span, "`check_cast` expects one value, got {}", inner.types.size());
    e.types = {no_type};
    return;
  }
  TypeId from = inner.types[0];
  TypeId result = to;
  if (from == no_type) {
    result = types.contains_wildcard(to) ? no_type : to;
  } else if (types.is_wildcard(from) || from == to) {
    result = to;
  } else if (TypeId kept = options.strict ? no_type : kept_column(inner, from, to); kept != no_type) {
    sink->warning("lenient-cast", e.span, "the column is {}, not {}: its values stay {}", types.text(from),
                  types.text(to), types.text(kept));
    result = kept;
  } else if (from != types.function() && types.contains_wildcard(to) && assignable(to, from)) {
    result = from;
  } else if (!(types.is_basic(from) && types.is_basic(to) && castable(types.basic_of(from), types.basic_of(to)))) {
    bool narrows =
        types.is_basic(from) && types.is_basic(to) && is_real(types.basic_of(from)) && is_real(types.basic_of(to));
    sink->error("bad-cast", e.span, "`check_cast` cannot turn {} into {}{}", types.text(from), types.text(to),
                narrows ? ": numbers are cast to types of as many bits or more" : "")
        .highlight(inner.span);
    result = no_type;
  }
  e.types = {result};
}

}  // namespace

void check_types(Program& program, const Options& options, DiagnosticSink& sink) {
  Checker(program, options, sink).run();
}

}  // namespace rndn::hir
