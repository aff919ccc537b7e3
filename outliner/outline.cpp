// Rewrites `main`: every kernel of the partition becomes a function `kernel main_N` and a call of it.
//
// A kernel's parameters are the values it reads from outside, its results those that are read outside (in this block or, when the
// variable lives in an outer block, anywhere). Scalar literals that reach a kernel through a variable are copied into it; text and
// vector literals become variables of the host, since their encoding is known only when data is loaded, and with
// `numbers_as_parameters` single numbers of a program too.
// Statements whose results nobody reads are dropped, unless they can fail at run time.
// The result is a program like any other: it prints, parses and checks.
// Cost: O(statements x their operands). Leaves out: bodies of user functions, which stay on the host.
#include <algorithm>
#include <charconv>
#include <map>

#include "libraries/base/errors/check.h"
#include "outliner/analysis.h"

namespace rndn::outliner {
namespace {

using hir::Expression;
using hir::ExpressionId;
using hir::Function;
using hir::FunctionId;
using hir::LiteralId;
using hir::Operand;
using hir::Statement;
using hir::StatementId;
using hir::Target;
using hir::VariableId;

// A fact per variable; variables that came later have none. Lists are short and dense: no tree of nodes.
template <class T>
class ByVariable {
 public:
  explicit ByVariable(T none) : none_(none) {}
  void clear(size_t variables) { facts_.assign(variables, none_); }
  T operator[](VariableId v) const { return index(v) < facts_.size() ? facts_[index(v)] : none_; }
  void set(VariableId v, T fact) {
    if (index(v) >= facts_.size()) facts_.resize(std::max<size_t>(index(v) + 1, 2 * facts_.size()), none_);
    facts_[index(v)] = fact;
  }

 private:
  std::vector<T> facts_;
  T none_;
};

// What build_kernel needs for one kernel, kept for its memory.
struct KernelScratch {
  ByVariable<VariableId> map{none<VariableId>()};  // host variable -> kernel variable
  ByVariable<uint8_t> renamed{0};                  // 1: a host variable that has had a kernel variable before
  ByVariable<uint8_t> assigned{0};                 // 1: a host variable with a definition so far inside the kernel
  ByVariable<uint8_t> escaping{0};                 // 1: a host variable that is read outside
  ByVariable<uint32_t> last{none_node};            // host variable -> the node of the kernel that defines it last
  std::vector<VariableId> parameters, arguments;   // of the kernel; host variables, parallel to them
  std::vector<std::pair<VariableId, VariableId>> again;  // host variables that are further parameters, of other shapes
  std::vector<VariableId> written, results;
  std::vector<uint8_t> live;  // by node
  std::vector<StatementId> body;
  void clear(size_t variables, size_t nodes) {
    map.clear(variables);
    for (ByVariable<uint8_t>* facts : {&renamed, &assigned, &escaping}) facts->clear(variables);
    last.clear(variables);
    for (std::vector<VariableId>* list : {&parameters, &arguments, &written, &results}) list->clear();
    again.clear();
    body.clear();
    live.assign(nodes, 0);
  }
};

struct Rewriter {
  const Function& original;
  const Shapes& shapes;
  const Options& options;
  Outlined& out;
  Function host;                                     // becomes the new main
  std::vector<bool> function_names, variable_names;  // by name: taken
  std::map<LiteralId, VariableId> hoisted;
  KernelScratch scratch;
  uint32_t kernels = 0;
  bool asks = false;  // a statement so far does

  hir::Program& program() { return out.program; }
  static void take(std::vector<bool>& taken, NameId name) {
    if (index(name) >= taken.size()) taken.resize(2 * index(name) + 1);
    taken[index(name)] = true;
  }
  NameId unique(std::string_view stem, uint32_t& number, std::vector<bool>& taken) {
    std::string text(stem);
    text += '_';
    const size_t digits = text.size();
    for (;;) {
      text.resize(digits + 10);
      text.resize(static_cast<size_t>(std::to_chars(&text[digits], &text[digits] + 10, ++number).ptr - text.data()));
      const NameId name = program().names->intern(text);
      if (index(name) < taken.size() && taken[index(name)]) continue;
      take(taken, name);
      return name;
    }
  }
};

// Does the operator ask the device for counts to go on? Runs foresee these.
bool asks(const hir::Program& program, const Expression& e) {
  const auto is_asking = [](const hir::FunctionRef& f) {
    if (f.kind != hir::FunctionRef::builtin) return false;
    const hir::Operator operation = hir::row(f.builtin_id).operation;
    return operation == hir::Operator::order || operation == hir::Operator::group || operation == hir::Operator::unique;
  };
  return e.kind == Expression::call &&
         (is_asking(e.callee) || std::ranges::any_of(e.operands, [&](const Operand& o) {
            if (o.kind != Operand::literal) return false;
            const auto* functions = std::get_if<std::vector<hir::FunctionRef>>(&program.literals[o.literal_id()].values);
            return functions && std::ranges::any_of(*functions, is_asking);
          }));
}

// One block while it is rewritten.
struct BlockState {
  const BlockGraph& graph;
  const Partition& partition;
  std::vector<StatementId> statements;  // the new ones
  ByVariable<uint8_t> own{0};           // 1: a statement of this block declares it
  ByVariable<uint8_t> declared{0};      // of those, 1: already declared by an emitted statement
};

Operand variable_operand(const Function& f, VariableId v) {
  return {.kind = Operand::variable, .id = index(v), .name = f.variables[v].name, .span = {}};
}

// A target of the host program; declares its variable the first time.
Target host_target(Rewriter& r, BlockState& b, VariableId v) {
  const hir::Variable& variable = r.host.variables[v];
  Target t{.kind = Target::variable, .id = index(v), .name = variable.name};
  if (b.own[v] && !b.declared[v]) {
    b.declared.set(v, 1);
    t.declares = true;
    t.declared_type = variable.type;
  }
  return t;
}

void emit(Rewriter& r, BlockState& b, Statement&& s) {
  r.host.statements.raw().push_back(std::move(s));
  b.statements.push_back(static_cast<StatementId>(r.host.statements.size() - 1));
}

// --- Kernels ------------------------------------------------------------------------------------------------------------------

// The literal that is the only definition of `v` for node n, when kernels may copy it: one number.
const Operand* reaching_literal(const Rewriter& r, const BlockGraph& graph, uint32_t n, VariableId v) {
  const Operand* found = nullptr;
  for (uint32_t e : graph.predecessors[n]) {
    const Edge& edge = graph.edges[e];
    if (edge.kind != Edge::true_ || edge.variable != v) continue;
    const Statement& s = r.original.statements[graph.nodes[edge.from].statement];
    if (found || s.kind != Statement::assign || s.targets.size() != 1) return nullptr;
    const Expression& expression = r.original.expressions[s.value];
    if (expression.kind != Expression::operand || expression.operands[0].kind != Operand::literal) return nullptr;
    found = &expression.operands[0];
  }
  if (!found) return nullptr;
  const hir::Literal& literal = r.out.program.literals[found->literal_id()];
  const bool number = std::holds_alternative<std::vector<int64_t>>(literal.values) ||
                      std::holds_alternative<std::vector<double>>(literal.values);
  return number && literal.size() == 1 ? found : nullptr;
}

bool stays_literal(const hir::Literal& literal) {
  return literal.size() == 1 && !std::holds_alternative<std::vector<std::string>>(literal.values);
}

// A unit of time, a message: code generation reads it.
bool stays_operand(const Expression& e, size_t operand) {
  return e.kind == Expression::call && e.callee.kind == hir::FunctionRef::builtin &&
         hir::literal_operand(e.callee.builtin_id) == static_cast<int>(operand);
}

// A reduction walks over a vector, also one of a single element.
bool is_reduced(const Expression& e, size_t operand) {
  return operand == 0 && e.kind == Expression::call && e.callee.kind == hir::FunctionRef::builtin &&
         hir::row(e.callee.builtin_id).has(hir::traits::reduction);
}

// Is operand `a` of the call a number that kernels get as a parameter?
bool is_passed(const Rewriter& r, const Expression& e, size_t a, const hir::Literal& literal) {
  if (!r.options.numbers_as_parameters || e.kind != Expression::call ||
      e.callee.kind != hir::FunctionRef::builtin || stays_operand(e, a) || literal.size() != 1)
    return false;
  const hir::TypeTable& types = *r.out.program.types;
  const hir::BasicType type = types.basic_of(literal.type);
  // What a division by zero may fail for is known of a number in the code.
  const bool fails = types.is_basic(e.types[0]) && hir::can_fail(e.callee.builtin_id, types.basic_of(e.types[0]));
  return hir::row(e.callee.builtin_id).has(hir::traits::passes_numbers) && !fails && type != hir::BasicType::boolean &&
         type != hir::BasicType::complex && !hir::is_text(type);
}

// A kernel while it is built.
struct KernelState : KernelScratch {
  explicit KernelState(KernelScratch&& scratch) : KernelScratch(std::move(scratch)) {}
  Function function;
  Kernel kernel;

  VariableId variable(const Function& host, VariableId v, ShapeId shape, bool parameter) {
    VariableId own = map[v];
    if (is_none(own)) {
      own = function.variables.add(
          {.name = host.variables[v].name, .type = host.variables[v].type, .is_parameter = parameter});
      map.set(v, own);
      kernel.shapes.resize(function.variables.size(), none<ShapeId>());
      if (parameter) {
        parameters.push_back(own);
        arguments.push_back(v);
      }
    }
    kernel.shapes[own] = shape;
    return own;
  }
};

// The kernel's variable for host variable v, which it reads with that shape. A parameter that one statement assumes to have another size than the
// next one sees is passed twice, so that both are checked.
VariableId read_variable(Rewriter& r, KernelState& k, VariableId v, ShapeId shape) {
  const VariableId known = k.map[v];
  if (is_none(known) || k.assigned[v] || k.kernel.shapes[known] == shape) return k.variable(r.host, v, shape, true);
  for (const auto& [variable, own] : k.again)
    if (variable == v && k.kernel.shapes[own] == shape) return own;
  k.map.set(v, none<VariableId>());
  const VariableId own = k.variable(r.host, v, shape, true);
  uint32_t number = 0;
  k.function.variables[own].name = r.unique(r.program().text(r.host.variables[v].name), number, r.variable_names);
  k.map.set(v, known);
  k.again.emplace_back(v, own);
  return own;
}

VariableId hoist_literal(Rewriter& r, BlockState& b, const Operand& operand) {
  auto [it, fresh] = r.hoisted.try_emplace(operand.literal_id(), none<VariableId>());
  if (!fresh) return it->second;
  const hir::Literal& literal = r.program().literals[operand.literal_id()];
  uint32_t number = static_cast<uint32_t>(r.hoisted.size()) - 1;
  const NameId name = r.unique("literal", number, r.variable_names);
  const VariableId v = it->second = r.host.variables.add({.name = name, .type = literal.type});
  Expression e{.kind = Expression::operand, .span = literal.span, .operands = {operand}, .types = {literal.type}};
  Target t{.kind = Target::variable, .id = index(v), .name = name, .declares = true, .declared_type = literal.type};
  emit(
      r, b,
      {.kind = Statement::assign, .span = literal.span, .value = r.host.expressions.add(std::move(e)), .targets = {t}});
  return v;
}

using Operands = InlineVector<Operand, 2>;
ExpressionId clone(const Function& from, Function& to, ExpressionId id, Operands&& operands) {
  const Expression& original = from.expressions[id];
  const bool cast = original.kind == Expression::cast;
  const ExpressionId inner = cast ? clone(from, to, original.inner, std::move(operands)) : original.inner;
  Expression& e = to.expressions.raw().emplace_back();
  e.kind = original.kind;
  e.span = original.span;
  if (!cast) e.operands = std::move(operands);
  e.callee = original.callee;
  e.inner = inner;
  e.cast_type = original.cast_type;
  e.types = original.types;
  return static_cast<ExpressionId>(to.expressions.size() - 1);
}

ExpressionId copy_expression(const Function& from, Function& to, ExpressionId id) {
  return clone(from, to, id, Operands(from.expressions[innermost(from, id)].operands));
}

bool can_fail(const hir::Program& program, const Function& f, const Statement& s) {
  const Expression& e = f.expressions[innermost(f, s.value)];
  if (e.kind != Expression::call || e.callee.kind != hir::FunctionRef::builtin) return false;
  if (e.callee.builtin_id == hir::Builtin::fact || e.callee.builtin_id == hir::Builtin::require) return true;
  if (whole_operands(program, e) != 0 && e.callee.builtin_id != hir::Builtin::reverse &&
      e.callee.builtin_id != hir::Builtin::each && e.callee.builtin_id != hir::Builtin::gpu_probe)
    return true;  // an index out of range
  if (e.callee.builtin_id != hir::Builtin::div && e.callee.builtin_id != hir::Builtin::mod) return false;
  return !e.types.empty() && program.types->is_basic(e.types[0]) &&
         hir::is_integer(program.types->basic_of(e.types[0]));
}

// The length that node n of the kernel asks for, in a variable of the kernel: `len` of a vector that the kernel has anyway, or gets as a parameter.
Operand length_operand(Rewriter& r, BlockState& b, KernelState& k, uint32_t n) {
  const Node& from = b.graph.nodes[b.graph.nodes[n].length_from];
  const Statement& s = r.original.statements[from.statement];
  const StatementFacts& facts = r.shapes.statements[from.statement];
  const VariableId measured = from.reads[0], length = s.targets[0].variable_id();
  const VariableId local =
      is_none(k.map[measured]) ? k.variable(r.host, measured, facts.operands[0].shape, true) : k.map[measured];
  if (!is_none(k.map[length])) return variable_operand(k.function, k.map[length]);
  const VariableId made = k.variable(r.host, length, facts.results[0].shape, false);
  Target t{.kind = Target::variable, .id = index(made), .name = k.function.variables[made].name, .declares = true};
  t.declared_type = k.function.variables[made].type;
  t.span = s.targets[0].span;
  Statement copy{.kind = Statement::assign, .span = s.span, .targets = {t}};
  copy.value = clone(r.original, k.function, s.value, {variable_operand(k.function, local)});
  k.body.push_back(k.function.statements.add(std::move(copy)));
  return variable_operand(k.function, made);
}

void build_kernel(Rewriter& r, BlockState& b, const Group& group, KernelState& k) {
  const BlockGraph& graph = b.graph;
  const ShapeTable& shapes = r.out.shapes;
  const uint32_t own_group = b.partition.group_of[group.nodes.front()];

  // What is read outside: the last definition of each variable decides. What nobody reads is left out.
  for (uint32_t n : group.nodes) {
    const VariableId v = r.original.statements[graph.nodes[n].statement].targets[0].variable_id();
    if (k.last[v] == none_node) k.written.push_back(v);
    k.last.set(v, n);
  }
  bool any_live = false, only_scalars = true;
  for (size_t i = group.nodes.size(); i-- > 0;) {
    const uint32_t n = group.nodes[i];
    const Statement& s = r.original.statements[graph.nodes[n].statement];
    const VariableId v = s.targets[0].variable_id();
    bool escapes = k.last[v] == n && !b.own[v];
    bool used = can_fail(r.program(), r.original, s) || r.shapes.statements[graph.nodes[n].statement].assumed != 0;
    for (uint32_t e : graph.successors[n]) {
      const Edge& edge = graph.edges[e];
      if (edge.kind != Edge::true_) continue;
      escapes |= b.partition.group_of[edge.to] != own_group;
      used |= k.live[edge.to] != 0;
    }
    if (escapes) k.escaping.set(v, 1);
    if (!escapes && !used) continue;
    k.live[n] = any_live = true;
    only_scalars = only_scalars && is_scalar(shapes, graph.nodes[n].geometry);
  }
  if (!any_live) return;
  for (VariableId v : k.written)
    if (k.escaping[v]) k.results.push_back(v);

  k.kernel.looks = r.asks;
  k.kernel.geometry = shapes[group.geometry].size;
  k.kernel.list = shapes[group.geometry].kind == Shape::list;
  k.kernel.geometry_variable = none<VariableId>();
  // Scalars only are left when the statements that gave the kernel its size were dropped.
  if (only_scalars) k.kernel.geometry = r.out.shapes.constant(1), k.kernel.list = false;
  k.function.is_kernel = true;
  k.function.module = r.original.module;
  k.function.name = r.unique(r.program().text(r.original.name), r.kernels, r.function_names);
  k.function.body = k.function.blocks.add({});
  const size_t most = group.nodes.size() + 1;
  k.function.statements.raw().reserve(most);
  k.function.expressions.raw().reserve(most);
  k.function.variables.raw().reserve(2 * most);
  k.kernel.shapes.raw().reserve(2 * most);
  k.kernel.statements.reserve(most);

  for (uint32_t n : group.nodes) {
    if (!k.live[n]) continue;
    const Statement& s = r.original.statements[graph.nodes[n].statement];
    const StatementFacts& facts = r.shapes.statements[graph.nodes[n].statement];
    const ExpressionId inner = innermost(r.original, s.value);
    const uint32_t whole = whole_operands(r.program(), r.original.expressions[inner]);
    k.kernel.assumes |= facts.assumed != 0;
    Operands operands;
    const Expression& call = r.original.expressions[inner];
    const Operands& sources = call.operands;
    const auto in_kernel = [&](const Operand& operand, size_t a, ShapeId shape) {
      const hir::Literal& literal = r.program().literals[operand.literal_id()];
      const bool passed = is_passed(r, call, a, literal);
      if (!passed && (stays_operand(call, a) || (stays_literal(literal) && !is_reduced(call, a)))) return operand;
      const VariableId own = read_variable(r, k, hoist_literal(r, b, operand), shape);
      std::vector<VariableId>& values = k.kernel.by_value;
      if (passed && std::find(values.begin(), values.end(), own) == values.end()) values.push_back(own);
      return variable_operand(k.function, own);
    };
    for (size_t a = 0; a < sources.size(); ++a) {
      const ShapeId shape = facts.operands[a].shape;
      if (sources[a].kind == Operand::variable) {
        const VariableId v = sources[a].variable_id();
        if (graph.nodes[n].length_from != none_node && a == 0) {
          operands.push_back(length_operand(r, b, k, n));
          continue;
        }
        if (!k.assigned[v] && !is_whole(whole, a) && !is_reduced(call, a)) {
          if (const Operand* literal = reaching_literal(r, graph, n, v)) {
            operands.push_back(in_kernel(*literal, a, shape));
            continue;
          }
        }
        operands.push_back(variable_operand(k.function, read_variable(r, k, v, shape)));
      } else if (sources[a].kind == Operand::literal) {
        operands.push_back(in_kernel(sources[a], a, shape));
      } else {
        operands.push_back(sources[a]);
      }
    }
    const VariableId v = s.targets[0].variable_id();
    // A parameter keeps its own variable, and so does a value of another shape: shapes are by variable.
    if (const VariableId known = k.map[v]; !is_none(known) && (k.function.variables[known].is_parameter ||
                                                               k.kernel.shapes[known] != facts.results[0].shape)) {
      k.map.set(v, none<VariableId>());
      k.renamed.set(v, 1);
    }
    const bool declares = is_none(k.map[v]);
    const VariableId local = k.variable(r.host, v, facts.results[0].shape, false);
    if (declares && k.renamed[v]) {
      uint32_t number = 0;
      k.function.variables[local].name = r.unique(r.program().text(r.host.variables[v].name), number, r.variable_names);
    }
    k.assigned.set(v, 1);
    Statement& copy = k.function.statements.raw().emplace_back();
    k.body.push_back(static_cast<StatementId>(k.function.statements.size() - 1));
    copy.kind = Statement::assign;
    copy.span = s.span;
    Target& t = copy.targets.emplace_back();
    t.kind = Target::variable;
    t.id = index(local);
    t.name = k.function.variables[local].name;
    t.declares = declares;
    t.declared_type = k.function.variables[local].type;
    t.span = s.targets[0].span;
    copy.value = clone(r.original, k.function, s.value, std::move(operands));
    k.kernel.statements.push_back(graph.nodes[n].statement);
  }

  Statement ret{.kind = Statement::return_};
  Statement call{.kind = Statement::assign};
  Expression invoke{.kind = Expression::call};
  const size_t results = k.results.size();
  ret.results.reserve(results);
  k.function.result_types.reserve(results);
  k.kernel.result_shapes.reserve(results);
  for (VariableId v : k.results) {
    const VariableId local = k.map[v];
    ret.results.push_back(variable_operand(k.function, local));
    k.function.result_types.push_back(k.function.variables[local].type);
    k.kernel.result_shapes.push_back(k.kernel.shapes[local]);
    invoke.types.push_back(k.function.variables[local].type);
    call.targets.push_back(host_target(r, b, v));
  }
  if (results > 0) k.body.push_back(k.function.statements.add(std::move(ret)));
  k.function.blocks[k.function.body].statements = k.body;
  k.function.parameters = k.parameters;
  for (VariableId p : k.function.parameters) {
    if (is_none(k.kernel.geometry_variable) && k.kernel.shapes[p] == group.geometry &&
        !is_scalar(shapes, group.geometry) && shapes[group.geometry].size == k.kernel.geometry)
      k.kernel.geometry_variable = p;
  }
  for (VariableId v : k.arguments) invoke.operands.push_back(variable_operand(r.host, v));
  invoke.callee.kind = hir::FunctionRef::user;
  invoke.callee.name = k.function.name;
  invoke.callee.function = r.program().functions.next_id();
  k.kernel.function = r.program().functions.add(std::move(k.function));
  r.program().modules[r.original.module].functions.push_back(k.kernel.function);
  if (results == 0) call.kind = Statement::expression;
  call.value = r.host.expressions.add(std::move(invoke));
  emit(r, b, std::move(call));
  r.out.kernels.push_back(std::move(k.kernel));
}

// --- Host ---------------------------------------------------------------------------------------------------------------------

void rewrite_block(Rewriter& r, hir::BlockId block);

void emit_host(Rewriter& r, BlockState& b, const Node& node) {
  if (node.unused) return;
  r.out.assumes_on_host |= r.shapes.statements[node.statement].assumed != 0;
  Statement s = r.original.statements[node.statement];
  if (!is_none(s.value)) {
    r.asks |= asks(r.program(), r.original.expressions[innermost(r.original, s.value)]);
    s.value = copy_expression(r.original, r.host, s.value);
  }
  switch (s.kind) {
    case Statement::assign:
      for (Target& t : s.targets) {
        if (t.kind != Target::variable) continue;
        const Span span = t.span;
        t = host_target(r, b, t.variable_id());
        t.span = span;
      }
      break;
    case Statement::declare:
      for (const Target& t : s.targets) b.declared.set(t.variable_id(), 1);
      break;
    case Statement::if_else:
    case Statement::while_loop:
    case Statement::repeat:
    case Statement::block: {
      // Variables of this block whose declaration went into a kernel with a value that nobody reads.
      Statement declare{.kind = Statement::declare};
      std::vector<VariableId> mentioned(node.writes.begin(), node.writes.end());
      mentioned.insert(mentioned.end(), node.reads.begin(), node.reads.end());
      std::sort(mentioned.begin(), mentioned.end());
      mentioned.erase(std::unique(mentioned.begin(), mentioned.end()), mentioned.end());
      for (VariableId v : mentioned)
        if (b.own[v] && !b.declared[v]) {
          Statement one = declare;
          one.targets.push_back(host_target(r, b, v));
          emit(r, b, std::move(one));
        }
      if (!is_none(s.body)) rewrite_block(r, s.body);
      if (!is_none(s.otherwise)) rewrite_block(r, s.otherwise);
      break;
    }
    default: break;
  }
  emit(r, b, std::move(s));
}

void rewrite_block(Rewriter& r, hir::BlockId block) {
  const BlockGraph graph =
      build_graph(r.program(), r.original, block, r.shapes, r.out.shapes, r.options, r.out.decisions);
  const Partition partition = fuse(r.program(), r.original, graph, r.shapes, r.out.shapes, r.options, r.out.decisions);
  BlockState b{graph, partition, {}};
  b.own.clear(r.host.variables.size());
  b.declared.clear(r.host.variables.size());
  b.statements.reserve(partition.order.size());
  for (const Node& node : graph.nodes)
    for (const Target& t : r.original.statements[node.statement].targets)
      if (t.kind == Target::variable && t.declares) b.own.set(t.variable_id(), 1);
  for (uint32_t g : partition.order) {
    const Group& group = partition.groups[g];
    if (group.kernel()) {
      r.scratch.clear(r.host.variables.size(), graph.nodes.size());
      KernelState state(std::move(r.scratch));
      build_kernel(r, b, group, state);
      r.scratch = std::move(state);
    } else {
      emit_host(r, b, graph.nodes[group.nodes.front()]);
    }
  }
  r.host.blocks[block].statements = std::move(b.statements);
}

// Main without its statements.
Function empty_host(const Function& original) {
  Function host;
  host.name = original.name;
  host.module = original.module;
  host.is_kernel = original.is_kernel;
  host.name_span = original.name_span;
  host.span = original.span;
  host.parameters = original.parameters;
  host.result_types = original.result_types;
  host.body = original.body;
  host.variables = original.variables;
  host.statements.raw().reserve(original.statements.size());
  host.expressions.raw().reserve(original.expressions.size());
  host.blocks.resize(original.blocks.size());
  for (uint32_t b = 0; b < original.blocks.size(); ++b)
    host.blocks[static_cast<hir::BlockId>(b)].span = original.blocks[static_cast<hir::BlockId>(b)].span;
  return host;
}

}  // namespace

void outline(const Function& original, const Shapes& shapes, const Options& options, Outlined& out) {
  Rewriter r{original, shapes, options, out, empty_host(original), {}, {}, {}, {}, 0};
  for (const Function& f : out.program.functions) r.take(r.function_names, f.name);
  for (const hir::Variable& v : original.variables) r.take(r.variable_names, v.name);
  rewrite_block(r, original.body);
  out.program.functions[out.program.main] = std::move(r.host);
}

}  // namespace rndn::outliner
