// Shape analysis: the shape of every value of a function, as far as it follows from the program text.
//
// In: a type-checked function. Out: per statement the shapes, data objects and known scalars of its operands and results.
// Algorithm: one forward walk with an environment variable -> Value; `if` walks both arms and merges; loops walk their body until the
// environment at their head is stable, at most three times, after which what still changes becomes Wild. A value made in a loop
// body gets a new object at the loop's head, since equal objects of two iterations are different values.
// What a call makes of its operands' shapes is in shape_rules.cpp.
// Cost: O(statements x nesting depth). Leaves out: shapes across user functions (their results are dynamic).
#include "outliner/shape_rules.h"

#include <algorithm>

#include "libraries/base/errors/check.h"

namespace rndn::outliner {

using hir::Builtin;
using hir::ExpressionId;
using hir::StatementId;
using hir::VariableId;

namespace {

Value literal_value(Analysis& a, hir::LiteralId id) {
  const hir::Literal& literal = a.program.literals[id];
  Value v{.shape = a.table.vector(a.table.constant(static_cast<int64_t>(literal.size()))), .origin = literal.span};
  if (literal.size() != 1) return v;
  if (const auto* n = std::get_if<std::vector<int64_t>>(&literal.values)) v.constant = n->front();
  if (const auto* s = std::get_if<std::vector<std::string>>(&literal.values))
    v.text = a.program.names->intern(s->front());
  return v;
}

// What `len` of such a value is, or none.
SizeId length_of(const ShapeTable& table, ShapeId id) {
  if (is_none(id)) return none<SizeId>();
  const Shape& s = table[id];
  switch (s.kind) {
    case Shape::vector:
    case Shape::list:
    case Shape::table: return s.size;
    case Shape::enumeration: return length_of(table, s.parts[1]);
    default: return none<SizeId>();
  }
}

Value operand_value(Analysis& a, const Environment& env, const hir::Operand& operand) {
  switch (operand.kind) {
    case hir::Operand::variable: return env[operand.id];
    case hir::Operand::literal: return literal_value(a, operand.literal_id());
    case hir::Operand::global: {
      // Globals may be assigned by any function: a new dynamic size each time one is read.
      const hir::Global& global = a.program.globals[operand.global_id()];
      if (!a.program.types->is_basic(global.type)) return Value{.shape = make_wild(a.table), .origin = global.span};
      auto [it, fresh] = a.more_objects.try_emplace({(uint64_t{1} << 40) + a.more_objects.size(), 0}, none<ObjectId>());
      if (fresh) it->second = a.table.add_object(global.name);
      const SizeId size = a.table.intern(Size{.kind = Size::dynamic, .object = it->second});
      a.out.unseen.push_back(size);
      return Value{.shape = a.table.vector(size), .object = it->second, .origin = global.span};
    }
    case hir::Operand::unresolved: break;
  }
  return Value{.shape = make_wild(a.table)};
}

void walk(Analysis& a, hir::BlockId block, Environment& env, bool& reachable);

void walk_assignment(Analysis& a, StatementId id, const hir::Statement& s, Environment& env) {
  StatementFacts& facts = a.out.statements[id];
  facts = {};
  NameId name = s.targets.empty() ? none<NameId>() : s.targets[0].name;
  const ExpressionId inner = innermost(a.function, s.value);
  const hir::Expression& e = a.function.expressions[inner];
  for (const hir::Operand& operand : e.operands) facts.operands.push_back(operand_value(a, env, operand));
  Call call{a, id, name, e.span, e, facts.operands, 0};
  const size_t results = std::max<size_t>(1, s.targets.size());
  for (size_t k = 0; k < results; ++k) {
    Value v;
    if (e.kind == hir::Expression::operand) {
      v = facts.operands[0];
      if (s.value != inner) v.object = call.object();  // a cast makes a new value of the same shape
    } else if (e.callee.kind == hir::FunctionRef::builtin) {
      v = Value{.shape = apply(call, e.callee.builtin_id)};
      v.object = call.object();
      if (e.callee.builtin_id == Builtin::len) {
        v.size = length_of(a.table, facts.operands[0].shape);
        if (const int64_t n = constant_size(a.table, v.size); n >= 0) v.constant = n;
      }
    } else {
      const bool basic = k < e.types.size() && a.program.types->is_basic(e.types[k]);
      v = Value{.shape = basic ? unseen_vector(call) : make_wild(a.table)};
      v.object = call.object();
    }
    v.origin = k < s.targets.size() ? s.targets[k].span : s.span;
    facts.results.push_back(v);
    if (k < s.targets.size() && s.targets[k].kind == hir::Target::variable) env[s.targets[k].id] = v;
  }
  facts.assumed = call.assumed;
}

// Merges `from` into `into`, values that differ becoming new objects of statement `at`. True when `into` changed.
bool merge(Analysis& a, StatementId at, Environment& into, const Environment& from) {
  bool changed = false;
  static const hir::Expression nothing;
  for (size_t v = 0; v < into.size(); ++v) {
    if (into[v] == from[v]) continue;
    if (is_none(from[v].shape)) continue;
    if (is_none(into[v].shape)) {
      into[v] = from[v];
      changed = true;
      continue;
    }
    const NameId name = a.function.variables[static_cast<VariableId>(v)].name;
    Call call{a, at, name, {}, nothing, {}, static_cast<uint32_t>(1000 + v * 16)};
    Value merged{.origin = into[v].origin};
    merged.object = call.object();
    merged.shape = merge_shapes(call, into[v].shape, from[v].shape);
    if (merged == into[v]) continue;
    into[v] = merged;
    changed = true;
  }
  return changed;
}

void assigned_in(const hir::Function& f, hir::BlockId block, std::vector<bool>& assigned) {
  if (is_none(block)) return;
  for (StatementId id : f.blocks[block].statements) {
    const hir::Statement& s = f.statements[id];
    for (const hir::Target& t : s.targets)
      if (t.kind == hir::Target::variable) assigned[t.id] = true;
    assigned_in(f, s.body, assigned);
    assigned_in(f, s.otherwise, assigned);
  }
}

bool size_is_fixed(const ShapeTable& t, SizeId id) {
  return is_none(id) || t[id].kind == Size::constant || t[id].kind == Size::symbol;
}
bool shape_is_fixed(const ShapeTable& t, ShapeId id) {
  if (is_none(id)) return true;
  const Shape& s = t[id];
  return size_is_fixed(t, s.size) && size_is_fixed(t, s.size2) &&
         std::all_of(s.parts.begin(), s.parts.end(), [&](ShapeId p) { return shape_is_fixed(t, p); });
}

void walk_loop(Analysis& a, StatementId id, const hir::Statement& s, Environment& env) {
  std::vector<bool> assigned(env.size());
  assigned_in(a.function, s.body, assigned);
  const bool outer_report = a.report;
  Environment head = env;
  Environment exit;
  for (int round = 0;; ++round) {
    // What the body assigns is a new value in every iteration: at the head its shape is kept only as far as it cannot change.
    for (size_t v = 0; v < head.size(); ++v) {
      if (!assigned[v] || is_none(head[v].shape)) continue;
      const NameId name = a.function.variables[static_cast<VariableId>(v)].name;
      static const hir::Expression nothing;
      Call call{a, id, name, {}, nothing, {}, static_cast<uint32_t>(500000 + v * 2)};
      const bool vector = a.table[head[v].shape].kind == Shape::vector;
      Value value{.shape = head[v].shape, .origin = head[v].origin};
      value.object = call.object();
      if (round == 2) {
        value.shape = vector ? unseen_vector(call) : make_wild(a.table);
      } else if (!shape_is_fixed(a.table, value.shape)) {
        value.shape = vector ? unseen_vector(call) : make_wild(a.table);
      }
      head[v] = value;
    }
    a.report = outer_report && round == 2;
    a.loops.emplace_back();
    Environment body = head;
    bool falls_through = true;
    walk(a, s.body, body, falls_through);
    Analysis::Loop loop = std::move(a.loops.back());
    a.loops.pop_back();
    exit = head;
    for (const Environment& e : loop.breaks) merge(a, id, exit, e);
    if (round == 2) break;
    if (falls_through) merge(a, id, head, body);
    for (const Environment& e : loop.continues) merge(a, id, head, e);
  }
  a.report = outer_report;
  env = exit;
}

void walk_statement(Analysis& a, StatementId id, Environment& env, bool& reachable) {
  const hir::Statement& s = a.function.statements[id];
  const auto record_condition = [&] { a.out.statements[id].operands = {operand_value(a, env, s.condition)}; };
  switch (s.kind) {
    case hir::Statement::assign:
    case hir::Statement::expression: walk_assignment(a, id, s, env); break;
    case hir::Statement::declare: break;
    case hir::Statement::block: walk(a, s.body, env, reachable); break;
    case hir::Statement::if_else: {
      record_condition();
      Environment other = env;
      bool then_reaches = true, else_reaches = true;
      walk(a, s.body, env, then_reaches);
      if (!is_none(s.otherwise)) walk(a, s.otherwise, other, else_reaches);
      if (then_reaches && else_reaches) {
        merge(a, id, env, other);
      } else if (else_reaches) {
        env = std::move(other);
      }
      reachable = then_reaches || else_reaches;
      break;
    }
    case hir::Statement::while_loop:
    case hir::Statement::repeat:
      record_condition();
      walk_loop(a, id, s, env);
      break;
    case hir::Statement::return_:
      a.out.statements[id].operands.clear();
      for (const hir::Operand& o : s.results) a.out.statements[id].operands.push_back(operand_value(a, env, o));
      reachable = false;
      break;
    case hir::Statement::break_:
      if (!a.loops.empty()) a.loops.back().breaks.push_back(env);
      reachable = false;
      break;
    case hir::Statement::continue_:
      if (!a.loops.empty()) a.loops.back().continues.push_back(env);
      reachable = false;
      break;
  }
}

void walk(Analysis& a, hir::BlockId block, Environment& env, bool& reachable) {
  for (StatementId id : a.function.blocks[block].statements) walk_statement(a, id, env, reachable);
}

}  // namespace

hir::ExpressionId innermost(const hir::Function& function, hir::ExpressionId id) {
  while (function.expressions[id].kind == hir::Expression::cast) id = function.expressions[id].inner;
  return id;
}

std::optional<Builtin> called_builtin(const hir::Function& function, const hir::Statement& statement) {
  if (is_none(statement.value)) return {};
  const hir::Expression& e = function.expressions[innermost(function, statement.value)];
  if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::builtin) return {};
  return e.callee.builtin_id;
}

namespace {
// The one builtin that a function literal names.
std::optional<Builtin> named_builtin(const hir::Program& program, const hir::Expression& call, size_t operand) {
  if (call.operands.size() <= operand || call.operands[operand].kind != hir::Operand::literal) return {};
  const auto* functions =
      std::get_if<std::vector<hir::FunctionRef>>(&program.literals[call.operands[operand].literal_id()].values);
  if (!functions || functions->size() != 1 || functions->front().kind != hir::FunctionRef::builtin) return {};
  return functions->front().builtin_id;
}
}  // namespace

bool is_elementwise(Builtin builtin) {
  const hir::BuiltinRow& row = hir::row(builtin);
  return row.kernel != hir::kernel_types::no_code && row.operation == hir::Operator::none &&
         builtin != Builtin::reverse && !row.has(hir::traits::reduction) &&
         (row.shape_rule == hir::ShapeRule::broadcast || row.shape_rule == hir::ShapeRule::argument0);
}

std::optional<Builtin> applied_builtin(const hir::Program& program, const hir::Expression& call) {
  return named_builtin(program, call, 0);
}
std::optional<Builtin> folded_builtin(const hir::Program& program, const hir::Expression& call) {
  return named_builtin(program, call, 1);
}

bool flatten(const hir::Function& f, hir::BlockId block, std::vector<StatementId>& out) {
  if (is_none(block)) return true;
  for (StatementId id : f.blocks[block].statements) {
    const hir::Statement& s = f.statements[id];
    if (s.kind >= hir::Statement::if_else && s.kind <= hir::Statement::repeat) return false;
    if (s.kind == hir::Statement::block && !flatten(f, s.body, out)) return false;
    if (s.kind == hir::Statement::assign || s.kind == hir::Statement::expression ||
        s.kind == hir::Statement::return_)
      out.push_back(id);
  }
  return true;
}

uint32_t whole_operands(const hir::Program& program, const hir::Expression& e) {
  if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::builtin) return 0;
  const auto whole = [](Builtin b) { return hir::row(b).kernel ? uint32_t{hir::row(b).sync_in} : 0; };
  const Builtin b = e.callee.builtin_id;
  if (b == Builtin::gpu_probe) return ((1u << e.operands.size() / 2) - 1) << 1;
  if (b == Builtin::each || b == Builtin::each_right) {  // the function's first argument is the next operand
    const auto applied = applied_builtin(program, e);
    return applied ? (whole(*applied) & 1) << 1 : 0;
  }
  return whole(b);
}

Shapes analyse_shapes(const hir::Program& program, const hir::Function& function, ShapeTable& table,
                      DiagnosticSink& sink) {
  Shapes out;
  out.statements.raw().resize(function.statements.size());
  Analysis a{program, function, table, sink, out, {}, {}, true, {}};
  a.objects.raw().resize(function.statements.size());
  Environment env(function.variables.size());
  for (VariableId p : function.parameters) {
    const hir::Variable& v = function.variables[p];
    Value value{.origin = v.span};
    value.object = table.add_object(v.name);
    value.shape =
        program.types->is_basic(v.type)
            ? table.vector(table.intern(Size{
                  .kind = Size::symbol, .name = program.names->intern("param." + std::string(program.text(v.name)))}))
            : make_wild(table);
    env[index(p)] = value;
  }
  bool reachable = true;
  if (!is_none(function.body)) walk(a, function.body, env, reachable);
  return out;
}

void analyse_again(const hir::Program& program, const hir::Function& function, ShapeTable& table, DiagnosticSink& sink,
                   std::span<const StatementId> order, size_t first, Shapes& shapes) {
  DCHECK(function.parameters.empty());
  Analysis a{program, function, table, sink, shapes, {}, {}, true, {}};
  a.objects.raw().resize(function.statements.size());
  Environment env(function.variables.size());
  for (StatementId id : order.first(first)) {
    const auto& targets = function.statements[id].targets;
    for (size_t k = 0; k < targets.size(); ++k)
      if (targets[k].kind == hir::Target::variable) env[targets[k].id] = shapes.statements[id].results[k];
  }
  bool reachable = true;
  for (StatementId id : order.subspan(first)) walk_statement(a, id, env, reachable);
}

}  // namespace rndn::outliner
