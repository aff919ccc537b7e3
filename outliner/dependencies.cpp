// Dependence graph of one block: true, anti and output dependences between its statements, with synchronisation tags.
//
// A control-flow statement is one node that may read and write whatever occurs inside it. Edges run forward in program order, so the
// graph of a block has no cycles. Statements with effects (user calls, print, random numbers, control flow) keep their order; nothing
// moves across one that may leave the block.
// An edge is synchronised when both ends are GPU statements and the definition is complete only after its kernel, or the use needs its
// argument complete; a reduction that feeds `raze` is the exception. So is every edge to a fold that is to stand apart (Options::folds_apart),
// or to the parts of its numbers, which are made beside it.
// Cost: O(statements x live definitions). Leaves out: dependences across blocks, which the host program's order keeps.
#include <algorithm>

#include "outliner/analysis.h"

namespace rndn::outliner {
namespace {

using hir::Builtin;
using hir::StatementId;
using hir::VariableId;

void add_read(Node& node, const hir::Operand& operand, uint8_t argument) {
  if (operand.kind != hir::Operand::variable) return;
  node.reads.push_back(operand.variable_id());
  node.read_arguments.push_back(argument);
}
void add_write(Node& node, VariableId v) {
  if (std::find(node.writes.begin(), node.writes.end(), v) == node.writes.end()) node.writes.push_back(v);
}

void collect(const hir::Program& program, const hir::Function& f, StatementId id, Node& node);
void collect_block(const hir::Program& program, const hir::Function& f, hir::BlockId block, Node& node) {
  if (is_none(block)) return;
  for (StatementId id : f.blocks[block].statements) collect(program, f, id, node);
}

// Reads, writes and effects of a statement and of all that is nested in it.
void collect(const hir::Program& program, const hir::Function& f, StatementId id, Node& node) {
  const hir::Statement& s = f.statements[id];
  if (!is_none(s.value)) {
    const hir::Expression& e = f.expressions[innermost(f, s.value)];
    for (size_t k = 0; k < e.operands.size(); ++k) {
      add_read(node, e.operands[k], static_cast<uint8_t>(std::min<size_t>(k, 7)));
      node.ordered |= e.operands[k].kind == hir::Operand::global;
    }
    if (e.kind == hir::Expression::call) {
      // A function of the program may do anything, under an each form too.
      std::optional<hir::Builtin> called;
      if (e.callee.kind == hir::FunctionRef::builtin) called = e.callee.builtin_id;
      if (called && hir::is_each(*called)) called = applied_builtin(program, e);
      node.ordered |= !called || hir::row(*called).has(hir::traits::ordered);
    }
  }
  for (const hir::Target& t : s.targets) {
    if (t.kind == hir::Target::variable) add_write(node, t.variable_id());
    node.ordered |= t.kind == hir::Target::global;
  }
  switch (s.kind) {
    case hir::Statement::if_else:
    case hir::Statement::while_loop:
    case hir::Statement::repeat: add_read(node, s.condition, 0); [[fallthrough]];
    case hir::Statement::block:
      node.ordered = true;
      collect_block(program, f, s.body, node);
      collect_block(program, f, s.otherwise, node);
      break;
    case hir::Statement::return_:
      for (const hir::Operand& o : s.results) add_read(node, o, 0);
      [[fallthrough]];
    case hir::Statement::break_:
    case hir::Statement::continue_:
      node.ordered = true;
      node.barrier = true;
      break;
    case hir::Statement::assign:
    case hir::Statement::expression:
    case hir::Statement::declare: break;
  }
}

struct Accesses {
  InlineVector<uint32_t, 1> definitions;  // that may reach the end so far
  InlineVector<uint32_t, 4> uses;         // since the last sure definition
};

struct Builder {
  const hir::Program& program;
  const hir::Function& function;
  const Shapes& shapes;
  ShapeTable& table;
  std::vector<Decision>& decisions;
  BlockGraph graph;
  IdVector<VariableId, Accesses> accesses;
  struct Length {
    uint32_t node = 0;                      // of a `len`
    InlineVector<uint32_t, 1> definitions;  // of its argument, that reached it
  };
  std::vector<Length> measured;  // ascending

  bool explain = false;  // decisions are wanted

  void decide(const Decision& d) {
    if (explain) decisions.push_back(d);
  }
  const Length* length_at(uint32_t node) const {
    const auto at = std::lower_bound(measured.begin(), measured.end(), node,
                                     [](const Length& l, uint32_t n) { return l.node < n; });
    return at == measured.end() || at->node != node ? nullptr : &*at;
  }
};

// Leaves a GPU statement to the host.
void to_host(Builder& b, Node& node, std::string_view why) {
  node.place = Place::host;
  node.geometry = none<ShapeId>();
  b.decide({.first = b.function.statements[node.statement].targets[0].name, .why = why, .first_at = node.statement});
}

// `range` and `vector`: the length is that of a vector at hand when its only definition is `len` of it. The node reads the vector instead.
bool take_length(Builder& b, Node& node) {
  if (node.read_arguments.empty() || node.read_arguments[0] != 0) return false;
  const auto& definitions = b.accesses[node.reads[0]].definitions;
  if (definitions.size() != 1) return false;
  const Builder::Length* known = b.length_at(definitions[0]);
  if (!known) return false;
  const Node& length = b.graph.nodes[definitions[0]];
  const VariableId v = length.reads[0];
  const ShapeId shape = b.shapes.statements[length.statement].operands[0].shape;
  if (!(b.accesses[v].definitions == known->definitions) || b.table[shape].kind != Shape::vector) return false;
  node.length_from = definitions[0];
  node.reads[0] = v;
  // How many elements a mask selects is known when its kernel is done; all other sizes before a kernel starts.
  if (b.table[b.table[shape].size].kind == Size::compressed) node.sync_in |= 1;
  return true;
}

// What place_statement cannot know, since it follows from the definitions that reach the node.
void place_by_operands(Builder& b, uint32_t n) {
  Node& node = b.graph.nodes[n];
  if (node.place != Place::gpu) return;
  if (!node.builtin) return;
  const auto all_defined = [&](VariableId v, auto&& test) {
    const auto& d = b.accesses[v].definitions;
    return !d.empty() && std::all_of(d.begin(), d.end(), [&](uint32_t k) { return test(b.graph.nodes[k]); });
  };
  switch (*node.builtin) {
    case Builtin::range:
    case Builtin::vector:
      if (!b.shapes.statements[node.statement].operands[0].constant && !take_length(b, node))
        to_host(b, node, "its length is only known at run time");
      break;
    case Builtin::len:
      if (!all_defined(node.reads[0], [](const Node& d) { return d.place == Place::gpu; }))
        to_host(b, node, "the host knows the size");
      break;
    case Builtin::raze:
      if (!all_defined(node.reads[0], [](const Node& d) { return d.place == Place::gpu && d.reduction; }))
        to_host(b, node, "its cells lie in one piece");
      break;
    default: break;
  }
}

// Copies and lengths on the host that nobody reads, kernels having their own, are not emitted and read nothing themselves.
void drop_unused(Builder& b, hir::BlockId block) {
  std::vector<bool> own(b.function.variables.size());  // declared here: nobody outside reads them
  for (StatementId id : b.function.blocks[block].statements)
    for (const hir::Target& t : b.function.statements[id].targets)
      if (t.kind == hir::Target::variable && t.declares) own[t.id] = true;
  std::vector<Edge>& edges = b.graph.edges;  // still in the order of `to`
  std::vector<uint32_t> readers(b.graph.nodes.size());
  for (const Edge& e : edges) readers[e.from] += e.kind == Edge::true_;
  bool any = false;
  size_t e = edges.size();
  for (size_t n = b.graph.nodes.size(); n-- > 0;) {
    Node& node = b.graph.nodes[n];
    const bool pure =
        node.place == Place::neutral || (node.place == Place::host && b.length_at(static_cast<uint32_t>(n)));
    node.unused = pure && !node.ordered && node.writes.size() == 1 && own[index(node.writes[0])] && readers[n] == 0;
    any |= node.unused;
    for (; e > 0 && edges[e - 1].to == n; --e)
      if (node.unused && edges[e - 1].kind == Edge::true_) --readers[edges[e - 1].from];
  }
  if (any) std::erase_if(edges, [&](const Edge& x) { return x.kind == Edge::true_ && b.graph.nodes[x.to].unused; });
}

// By the nodes that they join, and the lists per node. The edges come in the order of `to`, so that counting by `from` sorts them.
void sort_edges(BlockGraph& graph) {
  const size_t nodes = graph.nodes.size(), count = graph.edges.size();
  for (EdgeLists* lists : {&graph.successors, &graph.predecessors}) {
    lists->first.assign(nodes + 1, 0);
    lists->edges.resize(count);
  }
  std::vector<uint32_t>&starts = graph.successors.first, &ends = graph.predecessors.first;
  for (const Edge& e : graph.edges) ++starts[e.from + 1], ++ends[e.to + 1];
  for (size_t n = 0; n < nodes; ++n) starts[n + 1] += starts[n], ends[n + 1] += ends[n];
  std::vector<uint32_t> next(starts.begin(), starts.end() - 1);
  std::vector<Edge> sorted(count);
  for (const Edge& e : graph.edges) sorted[next[e.from]++] = e;
  graph.edges = std::move(sorted);
  next.assign(ends.begin(), ends.end() - 1);
  for (uint32_t e = 0; e < count; ++e) {
    graph.successors.edges[e] = e;
    graph.predecessors.edges[next[graph.edges[e].to]++] = e;
  }
}

// Per variable, whether it is a part of numbers for a fold that stands apart; nothing where none does.
std::vector<bool> parts_apart(const hir::Program& program, const hir::Function& f, hir::BlockId block,
                              const Options& options) {
  if (options.folds_apart.empty()) return {};
  std::vector<bool> read(f.variables.size()), parts(f.variables.size());
  for (StatementId id : f.blocks[block].statements) {
    if (fold_apart(program, f, id, options) < 0) continue;
    const hir::Operand& values = f.expressions[innermost(f, f.statements[id].value)].operands[0];
    if (values.kind == hir::Operand::variable) read[index(values.variable_id())] = true;
  }
  for (StatementId id : f.blocks[block].statements) {
    const hir::Statement& s = f.statements[id];
    if (called_builtin(f, s) != Builtin::gpu_sum_part || s.targets[0].kind != hir::Target::variable) continue;
    const VariableId v = s.targets[0].variable_id();
    parts[index(v)] = read[index(v)];
  }
  return parts;
}

}  // namespace

int64_t fold_apart(const hir::Program& program, const hir::Function& f, StatementId id, const Options& options) {
  if (options.folds_apart.empty() || called_builtin(f, f.statements[id]) != Builtin::gpu_fold) return -1;
  const hir::Operand& number = f.expressions[innermost(f, f.statements[id].value)].operands[2];
  if (number.kind != hir::Operand::literal) return -1;
  const auto* n = std::get_if<std::vector<int64_t>>(&program.literals[number.literal_id()].values);
  if (!n || std::find(options.folds_apart.begin(), options.folds_apart.end(), n->front()) == options.folds_apart.end())
    return -1;
  return n->front();
}

BlockGraph build_graph(const hir::Program& program, const hir::Function& function, hir::BlockId block,
                       const Shapes& shapes, ShapeTable& table, const Options& options,
                       std::vector<Decision>& decisions) {
  Builder b{program, function, shapes, table, decisions, {}, {}, {}};
  b.explain = options.explain;
  b.accesses.raw().resize(function.variables.size());
  BlockGraph& graph = b.graph;
  IdVector<VariableId, Accesses>& accesses = b.accesses;
  graph.nodes.reserve(function.blocks[block].statements.size());
  graph.edges.reserve(4 * function.blocks[block].statements.size());
  const std::vector<bool> parts = parts_apart(program, function, block, options);
  const auto is_part = [&](const Node& node) { return !parts.empty() && node.writes.size() == 1 && parts[index(node.writes[0])]; };
  const auto synchronised = [&](const Node& from, const Node& to, uint8_t argument) {
    // A copy passes on what its source is, and must be complete where its reader asks for that.
    if (from.place == Place::host || to.place == Place::host) return false;
    if (!is_part(from) && (is_part(to) || fold_apart(program, function, to.statement, options) >= 0)) return true;
    if (from.reduction && to.builtin == Builtin::raze) return false;
    return from.sync_out || (to.sync_in >> argument & 1);
  };

  uint32_t last_ordered = none_node, last_barrier = none_node;
  for (StatementId id : function.blocks[block].statements) {
    const auto n = static_cast<uint32_t>(graph.nodes.size());
    Node& node = graph.nodes.emplace_back();
    node.statement = id;
    collect(program, function, id, node);
    node.builtin = called_builtin(function, function.statements[id]);
    const std::string_view why = place_statement(program, function, shapes.statements[id], table, options, node);
    const hir::Statement& s = function.statements[id];
    if (!why.empty() && s.kind == hir::Statement::assign && !s.targets.empty())
      b.decide({.first = s.targets[0].name, .why = why, .first_at = id});
    place_by_operands(b, n);
    if (s.targets.size() == 1 && !node.reads.empty() && node.builtin == Builtin::len)
      b.measured.push_back({n, accesses[node.reads[0]].definitions});
    for (size_t r = 0; r < node.reads.size(); ++r) {
      Accesses& a = accesses[node.reads[r]];
      for (uint32_t d : a.definitions)
        graph.edges.push_back(
            {Edge::true_, synchronised(graph.nodes[d], node, node.read_arguments[r]), d, n, node.reads[r]});
      a.uses.push_back(n);
    }
    const bool sure =
        s.kind == hir::Statement::assign || s.kind == hir::Statement::expression || s.kind == hir::Statement::declare;
    for (VariableId v : node.writes) {
      Accesses& a = accesses[v];
      for (uint32_t u : a.uses)
        if (u != n) graph.edges.push_back({Edge::anti, false, u, n, v});
      for (uint32_t d : a.definitions) graph.edges.push_back({Edge::output, false, d, n, v});
      if (sure) {
        a.definitions.clear();
        a.uses.clear();
      }
      a.definitions.push_back(n);
    }
    if (node.ordered) {
      if (last_ordered != none_node) graph.edges.push_back({Edge::order, false, last_ordered, n});
      last_ordered = n;
    }
    if (node.barrier) {
      for (uint32_t m = 0; m < n; ++m) graph.edges.push_back({Edge::order, false, m, n});
      last_barrier = n;
    } else if (last_barrier != none_node) {
      graph.edges.push_back({Edge::order, false, last_barrier, n});
    }
  }
  drop_unused(b, block);
  sort_edges(graph);
  return std::move(b.graph);
}

}  // namespace rndn::outliner
