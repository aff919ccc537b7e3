// Calls of user functions in main are replaced by the function's body, so that what functions compute gets kernels too.
//
// A call is replaced when the function is not recursive, leaves by one `return` that is its last statement (or has none
// and no results), types agree without conversion, and nothing gets nested deeper than the parser allows; with control
// flow in its body, also only outside loops, where variables without a value would keep that of the iteration before.
// Parameters become variables that start as copies of the arguments, the results copies at the end. Functions that main
// calls are expanded first (depth first; a function that is being expanded is recursive). The functions themselves stay
// as they are, for calls that are not replaced and for each forms; kernels that nobody calls any more are dropped from
// their module, so that an outlined program can be outlined again.
// Cost: O(statements of the result), which is limited. Leaves out: calls under a cast, functions that return early.
#include <algorithm>
#include <map>
#include <set>

#include "outliner/analysis.h"

namespace rndn::outliner {
namespace {

using hir::BlockId;
using hir::Expression;
using hir::ExpressionId;
using hir::Function;
using hir::FunctionId;
using hir::Operand;
using hir::Statement;
using hir::StatementId;
using hir::Target;
using hir::VariableId;

constexpr size_t most_statements = 20000;  // of main when all is done
constexpr size_t deepest_calls = 200;      // the pass recurses over them,
constexpr size_t most_levels = 3 * hir::most_nested;  // and over the blocks around each

struct Inliner {
  hir::Program& program;
  std::map<FunctionId, Function> expanded;  // with their own calls replaced
  std::set<FunctionId> active, recursive;
  size_t statements = 0;  // added so far
  size_t levels = 0;      // blocks that are open, in all active functions
};

struct Body {
  bool fits = false;      // it can stand in place of a call
  bool branches = false;  // it has control flow
  size_t levels = 0;      // of statements in statements
};

void look(const Function& f, BlockId block, size_t level, Body& body) {
  body.levels = std::max(body.levels, level);
  const std::vector<StatementId>& statements = f.blocks[block].statements;
  for (size_t i = 0; i < statements.size(); ++i) {
    const Statement& s = f.statements[statements[i]];
    if (s.kind == Statement::return_ &&
        !(level == 1 && i + 1 == statements.size() && s.results.size() == f.result_types.size()))
      body.fits = false;
    body.branches |= s.kind >= Statement::if_else && s.kind <= Statement::repeat;
    for (BlockId inner : {s.body, s.otherwise})
      if (!is_none(inner)) look(f, inner, level + 1, body);
  }
}

Body body_of(const Function& f) {
  Body body;
  if (is_none(f.body)) return body;
  const std::vector<StatementId>& statements = f.blocks[f.body].statements;
  const bool returns = !statements.empty() && f.statements[statements.back()].kind == Statement::return_;
  body.fits = returns || f.result_types.empty();
  look(f, f.body, 1, body);
  return body;
}

hir::TypeId type_of(const Inliner& in, const Function& f, const Operand& o) {
  switch (o.kind) {
    case Operand::variable: return f.variables[o.variable_id()].type;
    case Operand::global: return in.program.globals[o.global_id()].type;
    case Operand::literal: return in.program.literals[o.literal_id()].type;
    case Operand::unresolved: break;
  }
  return in.program.types->wildcard();
}

bool types_agree(const Inliner& in, const Function& caller, const Statement& s, const Expression& call,
                 const Function& f) {
  if (call.operands.size() != f.parameters.size()) return false;
  for (size_t k = 0; k < f.parameters.size(); ++k)
    if (type_of(in, caller, call.operands[k]) != f.variables[f.parameters[k]].type) return false;
  if (s.targets.empty()) return true;
  const std::vector<StatementId>& statements = f.blocks[f.body].statements;
  if (statements.empty()) return false;
  const Statement& last = f.statements[statements.back()];
  if (last.kind != Statement::return_ || last.results.size() != s.targets.size()) return false;
  for (size_t k = 0; k < s.targets.size(); ++k) {
    const hir::TypeId result = type_of(in, f, last.results[k]);
    if (result != f.result_types[k]) return false;
    if (s.targets[k].kind == Target::variable && caller.variables[s.targets[k].variable_id()].type != result)
      return false;
    if (s.targets[k].kind == Target::global &&
        in.program.globals[static_cast<hir::GlobalId>(s.targets[k].id)].type != result)
      return false;
  }
  return true;
}

// Copies the body of a function into another, with variables of its own.
struct Copier {
  Inliner& in;
  const Function& from;
  Function& to;
  std::set<NameId>& names;            // of the variables of `to`
  std::vector<VariableId> variables;  // of `to`, by variable of `from`

  void add_variables() {
    for (const hir::Variable& v : from.variables) {
      NameId name = v.name;
      for (uint32_t n = 1; !names.insert(name).second; ++n)
        name = in.program.names->intern(fmt::format("{}_{}", in.program.text(v.name), n));
      variables.push_back(to.variables.add({.name = name, .type = v.type, .span = v.span}));
    }
  }
  // In another module a bare name may mean something else.
  void qualify(NameId& module, hir::ModuleId owner) const {
    if (from.module != to.module) module = in.program.modules[owner].name;
  }
  void qualify(hir::FunctionRef& f) const {
    if (f.kind == hir::FunctionRef::user) qualify(f.module, in.program.functions[f.function].module);
    if (f.kind == hir::FunctionRef::builtin && from.module != to.module) f.module = in.program.names->intern("Builtin");
  }

  Operand operand(Operand o) const {
    if (o.kind == Operand::variable) {
      o.id = index(variables[o.id]);
      o.name = to.variables[o.variable_id()].name;
    } else if (o.kind == Operand::global) {
      qualify(o.module, in.program.globals[o.global_id()].module);
    } else if (o.kind == Operand::literal && from.module != to.module) {
      hir::Literal literal = in.program.literals[o.literal_id()];
      if (auto* functions = std::get_if<std::vector<hir::FunctionRef>>(&literal.values)) {
        for (hir::FunctionRef& f : *functions) qualify(f);
        o.id = index(in.program.literals.add(std::move(literal)));
      }
    }
    return o;
  }
  ExpressionId expression(ExpressionId id) {
    Expression e = from.expressions[id];
    if (e.kind == Expression::cast) {
      e.inner = expression(e.inner);
    } else {
      for (Operand& o : e.operands) o = operand(o);
      if (e.kind == Expression::call) qualify(e.callee);
    }
    return to.expressions.add(std::move(e));
  }
  Target target(Target t) const {
    if (t.kind == Target::variable) {
      t.id = index(variables[t.id]);
      t.name = to.variables[t.variable_id()].name;
      if (t.declares) t.declared_type = to.variables[t.variable_id()].type;
    } else if (t.kind == Target::global) {
      qualify(t.module, in.program.globals[static_cast<hir::GlobalId>(t.id)].module);
    }
    return t;
  }
  StatementId statement(StatementId id) {
    Statement s = from.statements[id];
    if (!is_none(s.value)) s.value = expression(s.value);
    for (Target& t : s.targets) t = target(t);
    s.condition = operand(s.condition);
    for (BlockId* block : {&s.body, &s.otherwise})
      if (!is_none(*block)) {
        std::vector<StatementId> copied;
        for (StatementId inner : from.blocks[*block].statements) copied.push_back(statement(inner));
        *block = to.blocks.add({std::move(copied), from.blocks[*block].span});
      }
    ++in.statements;
    return to.statements.add(std::move(s));
  }
};

StatementId assign(Function& f, Target target, Operand value, hir::TypeId type, Span span) {
  Expression e{.kind = Expression::operand, .span = span, .operands = {std::move(value)}, .types = {type}};
  return f.statements.add(
      {.kind = Statement::assign, .span = span, .value = f.expressions.add(std::move(e)), .targets = {target}});
}

const Function& expand(Inliner& in, FunctionId id);

// Appends the body of `f` in place of statement s.
void splice(Inliner& in, Function& caller, const Statement& s, const Expression& call, const Function& f,
            std::set<NameId>& names, std::vector<StatementId>& out) {
  Copier copier{in, f, caller, names, {}};
  copier.add_variables();
  for (size_t k = 0; k < f.parameters.size(); ++k) {
    const VariableId v = copier.variables[index(f.parameters[k])];
    const hir::TypeId type = caller.variables[v].type;
    out.push_back(assign(caller,
                         {.kind = Target::variable,
                          .id = index(v),
                          .name = caller.variables[v].name,
                          .declares = true,
                          .declared_type = type,
                          .span = s.span},
                         call.operands[k], type, s.span));
  }
  const std::vector<StatementId>& body = f.blocks[f.body].statements;
  for (StatementId id : body) {
    const Statement& inner = f.statements[id];
    if (inner.kind != Statement::return_) {
      out.push_back(copier.statement(id));
      continue;
    }
    for (size_t k = 0; k < s.targets.size(); ++k)
      out.push_back(assign(caller, s.targets[k], copier.operand(inner.results[k]), f.result_types[k], s.span));
  }
}

// `level`: of the block in its function, 1 for the outermost.
void expand_block(Inliner& in, Function& f, BlockId block, size_t level, bool in_loop, std::set<NameId>& names) {
  ++in.levels;
  std::vector<StatementId> out;
  const std::vector<StatementId> statements = f.blocks[block].statements;
  for (StatementId id : statements) {
    const Statement s = f.statements[id];
    const bool loop = in_loop || s.kind == Statement::while_loop || s.kind == Statement::repeat;
    for (BlockId inner : {s.body, s.otherwise})
      if (!is_none(inner)) expand_block(in, f, inner, level + 1, loop, names);
    bool replaced = false;
    if ((s.kind == Statement::assign || s.kind == Statement::expression) && !is_none(s.value)) {
      const Expression call = f.expressions[s.value];
      const bool user = call.kind == Expression::call && call.callee.kind == hir::FunctionRef::user;
      if (user && in.active.count(call.callee.function)) in.recursive.insert(call.callee.function);
      if (user && !in.recursive.count(call.callee.function) && in.active.size() < deepest_calls &&
          in.levels < most_levels) {
        const Function& callee = expand(in, call.callee.function);
        const Body body = body_of(callee);
        if (body.fits && !in.recursive.count(call.callee.function) && !(in_loop && body.branches) &&
            level - 1 + body.levels <= hir::most_nested && types_agree(in, f, s, call, callee) &&
            in.statements + callee.statements.size() <= most_statements) {
          splice(in, f, s, call, callee, names, out);
          replaced = true;
        }
      }
    }
    if (!replaced) out.push_back(id);
  }
  f.blocks[block].statements = std::move(out);
  --in.levels;
}

const Function& expand(Inliner& in, FunctionId id) {
  if (const auto known = in.expanded.find(id); known != in.expanded.end()) return known->second;
  Function f = in.program.functions[id];
  in.active.insert(id);
  std::set<NameId> names;
  for (const hir::Variable& v : f.variables) names.insert(v.name);
  if (!is_none(f.body)) expand_block(in, f, f.body, 1, false, names);
  in.active.erase(id);
  return in.expanded.emplace(id, std::move(f)).first->second;
}

// The user functions that an expression names.
void mark_called(const hir::Program& program, const Expression& e, std::vector<bool>& called) {
  if (e.kind == Expression::call && e.callee.kind == hir::FunctionRef::user) called[index(e.callee.function)] = true;
  for (const Operand& o : e.operands)
    if (o.kind == Operand::literal)
      if (const auto* refs = std::get_if<std::vector<hir::FunctionRef>>(&program.literals[o.literal_id()].values))
        for (const hir::FunctionRef& r : *refs)
          if (r.kind == hir::FunctionRef::user) called[index(r.function)] = true;
}

bool calls_functions(const Function& f) {
  return std::any_of(f.expressions.begin(), f.expressions.end(), [](const Expression& e) {
    return e.kind == Expression::call && e.callee.kind == hir::FunctionRef::user;
  });
}

}  // namespace

bool inline_calls(hir::Program& program) {
  if (!calls_functions(program.functions[program.main])) return false;
  Inliner in{program, {}, {}, {}, 0};
  (void)expand(in, program.main);
  program.functions[program.main] = std::move(in.expanded.at(program.main));

  std::vector<bool> called(program.functions.size());
  for (const Function& f : program.functions)
    for (const hir::Block& b :
         f.blocks)  // expressions of replaced calls stay behind: those of statements in blocks count
      for (StatementId id : b.statements)
        for (ExpressionId e = f.statements[id].value; !is_none(e); e = f.expressions[e].inner)
          mark_called(program, f.expressions[e], called);
  for (hir::Module& m : program.modules)
    std::erase_if(m.functions, [&](FunctionId id) { return program.functions[id].is_kernel && !called[index(id)]; });
  return true;
}

const Function& take_main(const hir::Program& program, hir::Program& rest, Function& own) {
  const Function& main = program.functions[program.main];
  if (calls_functions(main)) {
    rest = program;
    (void)inline_calls(rest);
    own = std::move(rest.functions[rest.main]);
  } else {
    rest.names = program.names;
    rest.types = program.types;
    rest.modules = program.modules;
    rest.globals = program.globals;
    rest.literals = program.literals;
    rest.main = program.main;
    rest.functions.raw().reserve(program.functions.size() + 16);
    for (const Function& f : program.functions) rest.functions.add(&f == &main ? Function{} : f);
  }
  Function& empty = rest.functions[rest.main];
  empty = {};
  empty.name = main.name;
  empty.module = main.module;
  return is_none(own.body) ? main : own;
}

}  // namespace rndn::outliner
