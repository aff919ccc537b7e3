// Dependence graph of one block: true, anti and output dependences between its statements, with synchronisation tags.
//
// A control-flow statement is one node that may read and write whatever occurs inside it. Edges run forward in program order, so the
// graph of a block has no cycles. Statements with effects (user calls, print, random numbers, control flow) keep their order; nothing
// moves across one that may leave the block.
// An edge is synchronised when both ends are GPU statements and the definition is complete only after its kernel, or the use needs its
// argument complete; a reduction that feeds `raze` is the exception (horseir.md, 5.4).
// Cost: O(statements x live definitions). Leaves out: dependences across blocks, which the host program's order keeps.
#include <algorithm>

#include "outliner/analysis.h"

namespace rndn::outliner {
namespace {

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

void collect(const hir::Function& f, StatementId id, Node& node);
void collect_block(const hir::Function& f, hir::BlockId block, Node& node) {
  if (is_none(block)) return;
  for (StatementId id : f.blocks[block].statements) collect(f, id, node);
}

// Reads, writes and effects of a statement and of all that is nested in it.
void collect(const hir::Function& f, StatementId id, Node& node) {
  const hir::Statement& s = f.statements[id];
  if (!is_none(s.value)) {
    const hir::Expression& e = f.expressions[innermost(f, s.value)];
    for (size_t k = 0; k < e.operands.size(); ++k) {
      add_read(node, e.operands[k], static_cast<uint8_t>(std::min<size_t>(k, 7)));
      node.ordered |= e.operands[k].kind == hir::Operand::global;
    }
    if (e.kind == hir::Expression::call) {
      if (e.callee.kind != hir::FunctionRef::builtin)
        node.ordered = true;
      else
        switch (e.callee.builtin_id) {
          case hir::Builtin::print:
          case hir::Builtin::rand:
          case hir::Builtin::randk:
          case hir::Builtin::seed:
          case hir::Builtin::each:
          case hir::Builtin::each_item:
          case hir::Builtin::each_left:
          case hir::Builtin::each_right:
            node.ordered = true;  // the each forms may call user functions
            break;
          default: break;
        }
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
      collect_block(f, s.body, node);
      collect_block(f, s.otherwise, node);
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

bool is_raze(const hir::Function& f, const Node& node) {
  const hir::Statement& s = f.statements[node.statement];
  if (is_none(s.value)) return false;
  const hir::Expression& e = f.expressions[innermost(f, s.value)];
  return e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::builtin &&
         e.callee.builtin_id == hir::Builtin::raze;
}

}  // namespace

BlockGraph build_graph(const hir::Program& program, const hir::Function& function, hir::BlockId block,
                       const Shapes& shapes, ShapeTable& table, bool text_codes, std::vector<Decision>& decisions) {
  BlockGraph graph;
  for (StatementId id : function.blocks[block].statements) {
    Node node{.statement = id};
    collect(function, id, node);
    const std::string_view why = place_statement(program, function, shapes.statements[id], table, text_codes, node);
    const hir::Statement& s = function.statements[id];
    if (!why.empty() && s.kind == hir::Statement::assign && !s.targets.empty())
      decisions.push_back({.first = s.targets[0].name, .why = why});
    graph.nodes.push_back(std::move(node));
  }

  const auto synchronised = [&](const Node& from, const Node& to, uint8_t argument) {
    // A copy passes on what its source is, and must be complete where its reader asks for that.
    if (from.place == Place::host || to.place == Place::host) return false;
    if (from.reduction && is_raze(function, to)) return false;
    return from.sync_out || (to.sync_in >> argument & 1);
  };

  struct Accesses {
    std::vector<uint32_t> definitions;  // that may reach the end so far
    std::vector<uint32_t> uses;         // since the last sure definition
  };
  IdVector<VariableId, Accesses> accesses(function.variables.size());
  uint32_t last_ordered = UINT32_MAX, last_barrier = UINT32_MAX;
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    for (size_t r = 0; r < node.reads.size(); ++r) {
      Accesses& a = accesses[node.reads[r]];
      for (uint32_t d : a.definitions)
        graph.edges.push_back(
            {Edge::true_, synchronised(graph.nodes[d], node, node.read_arguments[r]), d, n, node.reads[r]});
      a.uses.push_back(n);
    }
    const hir::Statement::Kind kind = function.statements[node.statement].kind;
    const bool sure =
        kind == hir::Statement::assign || kind == hir::Statement::expression || kind == hir::Statement::declare;
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
      if (last_ordered != UINT32_MAX) graph.edges.push_back({Edge::order, false, last_ordered, n});
      last_ordered = n;
    }
    if (node.barrier) {
      for (uint32_t m = 0; m < n; ++m) graph.edges.push_back({Edge::order, false, m, n});
      last_barrier = n;
    } else if (last_barrier != UINT32_MAX) {
      graph.edges.push_back({Edge::order, false, last_barrier, n});
    }
  }
  std::stable_sort(graph.edges.begin(), graph.edges.end(),
                   [](const Edge& x, const Edge& y) { return x.from != y.from ? x.from < y.from : x.to < y.to; });
  graph.successors.resize(graph.nodes.size());
  graph.predecessors.resize(graph.nodes.size());
  for (uint32_t e = 0; e < graph.edges.size(); ++e) {
    graph.successors[graph.edges[e].from].push_back(e);
    graph.predecessors[graph.edges[e].to].push_back(e);
  }
  return graph;
}

}  // namespace rndn::outliner
