// Partition of a block's statements into kernels (the method is that of the rNdN thesis).
//
//   0. Folds that stand apart (Options::folds_apart), and the parts of their numbers, are one kernel from the start: they answer each other entry by
//      entry.
//   1. Pipelines. Statements in reverse order: a GPU statement joins the kernel of its readers when they are all in one kernel, no edge
//      to them is synchronised, and the geometries are equal (a scalar element-wise statement fits anywhere).
//   2. Siblings. Forward, per node: two kernels that read from it become one when their geometries are equal and no path joins them.
//   3. Parent into child. A kernel and the reader that shares most dependences with it become one when no edge between them is
//      synchronised, no other path leads from one to the other, and the reader's geometry is the parent's or a compression of it; the
//      whole then runs at the parent's size.
//   2 and 3 alternate node by node until nothing changes.
//   4. Neighbours. What is left is merged two by two where geometries are equal and no path joins them: a launch less, nothing to lose.
//
//   5. Beside cells. A kernel of element-wise work on vectors with an element per cell of a list joins a kernel of that list, when no path joins them.
//
// Invariants: the graph of groups has no cycles. In a kernel with the geometry of a vector every value has one element per thread, is a lazily
// masked selection of them, or is a scalar; with that of a list every value has the cells of that list, is a single value per cell, or is a scalar;
// values per cell from outside and values that the kernel reduces from cells do not meet in one statement.
// What a kernel reads from memory has the size of its geometry, is a scalar, or is what `index` and `index_a` take elements from, complete and of
// any size.
// In every step a fusion must stay within the budget of registers and parameters.
// Deterministic: ties go to the earlier statement. Mode none stops before 1, flow after it.
// Cost: O(statements + kernels x edges): what a path joins with a kernel is found once for all that could be merged with it.
// Leaves out: kernels that contain control flow.
#include <algorithm>
#include <optional>
#include <tuple>

#include "libraries/base/errors/check.h"
#include "outliner/analysis.h"

namespace rndn::outliner {
namespace {

// What a kernel asks of the machine. A fusion is made only while that stays within the budget (Wu et al., "Kernel Weaver", MICRO 2012): a kernel
// that spills registers loses more than a launch costs.
struct Demand {
  uint32_t bytes =
      0;  // of elements that it reads and writes, per item: registers, since items are loaded and stored several at a time
  uint32_t values = 0;        // that it reads and writes: parameters, two to three of 8 bytes each
  uint32_t accumulators = 0;  // of reductions: registers, and shared memory for the blocks' last step
  bool within_budget() const { return bytes <= 400 && values <= 150 && accumulators <= 48; }
  Demand operator+(const Demand& o) const {
    return {bytes + o.bytes, values + o.values, accumulators + o.accumulators};
  }
};

struct Fusion {
  const hir::Program& program;
  const hir::Function& function;
  const BlockGraph& graph;
  const Shapes& shapes;
  const ShapeTable& table;
  std::vector<Decision>& decisions;
  Partition p = {};
  std::vector<Demand> demand = {};  // per group, an upper bound
  Demand together = {};             // of the two groups that within_budget looked at last
  std::vector<uint32_t> seen = {};  // per group: stamp of the last search that met it
  uint32_t stamp = 0;
  std::vector<uint32_t> after = {}, before = {};  // per group: stamp of the last Related that met it on that side
  std::vector<uint32_t> stack = {};               // of searches
  std::vector<uint32_t> shared = {};              // per group: merge_child's counts, zero in between
  uint32_t merges = 0;                            // so far
  bool explain = false;                           // decisions are wanted
  // Per node: groups with nodes up to it and behind it. Edges run forward in the program, but paths of groups run back where a group spans a node.
  std::vector<uint32_t> crossed = {};

  NameId name(uint32_t group) const {
    const hir::Statement& s = function.statements[graph.nodes[p.groups[group].nodes.front()].statement];
    return s.targets.empty() ? none<NameId>() : s.targets[0].name;
  }
  void decide(uint32_t a, uint32_t b, bool fused, std::string_view why) {
    if (!explain) return;
    decisions.push_back({name(a), name(b), fused, why, graph.nodes[p.groups[a].nodes.front()].statement,
                         graph.nodes[p.groups[b].nodes.front()].statement});
  }
};

// No path leads from groups that lie behind that node as a whole to groups with nodes up to `node`.
uint32_t no_way_back(const Fusion& f, uint32_t node) {
  while (f.crossed[node]) ++node;
  return node;
}
// Nor from groups with nodes from `node` on to groups that lie before this one as a whole.
uint32_t no_way_on(const Fusion& f, uint32_t node) {
  while (node > 0 && f.crossed[node - 1]) --node;
  return node;
}

// True when a path leads from group `from` to group `to`. skip_direct: only paths with another group between them count.
bool reaches(Fusion& f, uint32_t from, uint32_t to, bool skip_direct) {
  std::vector<uint32_t>& stack = f.stack;
  const uint32_t last = no_way_back(f, f.p.groups[to].nodes.back());
  stack.assign(1, from);
  f.seen[from] = ++f.stamp;
  while (!stack.empty()) {
    const uint32_t g = stack.back();
    stack.pop_back();
    for (uint32_t n : f.p.groups[g].nodes) {
      for (uint32_t e : f.graph.successors[n]) {
        const uint32_t next = f.p.group_of[f.graph.edges[e].to];
        if (next == to && !(skip_direct && g == from)) return true;
        if (next == to || f.seen[next] == f.stamp) continue;
        if (f.p.groups[next].nodes.front() > last) continue;
        f.seen[next] = f.stamp;
        stack.push_back(next);
      }
    }
  }
  return false;
}

// The groups that a path joins with group a, in either direction, as far as they can lead to the candidates, whose nodes are first..last.
// Grows when a takes in other groups: they are candidates. One at a time.
struct Related {
  Fusion& f;
  uint32_t a, first, last, stamp;

  Related(Fusion& fusion, uint32_t group, uint32_t first_node, uint32_t last_node)
      : f(fusion),
        a(group),
        first(no_way_on(fusion, first_node)),
        last(no_way_back(fusion, last_node)),
        stamp(++fusion.stamp) {
    add(f.p.groups[a].nodes);
  }
  bool joined(uint32_t g) const { return f.after[g] == stamp || f.before[g] == stamp; }
  // `nodes` are about to be, or are, part of a.
  void add(std::span<const uint32_t> nodes) {
    walk<true>(nodes, f.graph.successors, f.after);
    walk<false>(nodes, f.graph.predecessors, f.before);
  }

 private:
  template <bool forward>
  void walk(std::span<const uint32_t> nodes, const EdgeLists& edges, std::vector<uint32_t>& met) {
    const auto from = [&](std::span<const uint32_t> at) {
      for (uint32_t n : at)
        for (uint32_t e : edges[n]) {
          const uint32_t g = f.p.group_of[forward ? f.graph.edges[e].to : f.graph.edges[e].from];
          if (met[g] == stamp || g == a) continue;
          const auto& there = f.p.groups[g].nodes;
          if (forward ? there.front() > last : there.back() < first) continue;
          met[g] = stamp;
          f.stack.push_back(g);
        }
    };
    f.stack.clear();
    from(nodes);
    while (!f.stack.empty()) {
      const uint32_t g = f.stack.back();
      f.stack.pop_back();
      from(f.p.groups[g].nodes);
    }
  }
};

// Can `node` be part of a kernel of that geometry? Looks at what the node needs of the geometry and of the operands that come from
// outside the groups a and b.
bool fits(const Fusion& f, uint32_t n, ShapeId geometry, uint32_t a, uint32_t b) {
  const Node& node = f.graph.nodes[n];
  if (node.positional && node.geometry != geometry) return false;
  if (!runs_within(f.table, node.geometry, geometry) && !(node.elementwise && is_scalar(f.table, node.geometry)))
    return false;
  const hir::Statement& s = f.function.statements[node.statement];
  const hir::Expression& e = f.function.expressions[innermost(f.function, s.value)];
  const auto& operands = f.shapes.statements[node.statement].operands;
  const uint32_t whole = whole_operands(f.program, e);
  for (size_t k = 0; k < e.operands.size(); ++k) {
    if (is_whole(whole, k) || is_scalar(f.table, operands[k].shape) || operands[k].shape == geometry)
      continue;
    bool inside = false;
    for (uint32_t edge : f.graph.predecessors[n]) {
      const Edge& d = f.graph.edges[edge];
      if (d.kind != Edge::true_ || e.operands[k].kind != hir::Operand::variable ||
          d.variable != e.operands[k].variable_id())
        continue;
      inside = f.p.group_of[d.from] == a || f.p.group_of[d.from] == b;
      if (!inside) break;
    }
    if (!inside) return false;
  }
  return true;
}

// A group fits the geometry that it has; only a change has to be checked.
bool all_fit(const Fusion& f, uint32_t a, uint32_t b, ShapeId geometry) {
  for (uint32_t g : {a, b}) {
    if (f.p.groups[g].geometry == geometry) continue;
    for (uint32_t n : f.p.groups[g].nodes)
      if (!fits(f, n, geometry, a, b)) return false;
  }
  return true;
}

// What the statements of groups a and b (or of one, twice) ask for together; exact but for values that nobody reads.
Demand demand_of(const Fusion& f, uint32_t a, uint32_t b) {
  Demand d;
  struct Read {
    hir::VariableId variable;
    uint32_t from;  // where it was defined
    uint32_t bytes;
  };
  InlineVector<Read, 16> reads;  // from outside
  const auto inside = [&](uint32_t n) { return f.p.group_of[n] == a || f.p.group_of[n] == b; };
  for (uint32_t g = a;; g = b) {
    for (uint32_t n : f.p.groups[g].nodes) {
      const Node& node = f.graph.nodes[n];
      const hir::Statement& s = f.function.statements[node.statement];
      const hir::Expression& e = f.function.expressions[innermost(f.function, s.value)];
      const StatementFacts& facts = f.shapes.statements[node.statement];
      const uint32_t whole = whole_operands(f.program, e);
      for (size_t k = 0; k < e.operands.size(); ++k) {
        if (e.operands[k].kind != hir::Operand::variable) continue;
        const hir::VariableId v = e.operands[k].variable_id();
        uint32_t from = none_node;
        for (uint32_t edge : f.graph.predecessors[n])
          if (f.graph.edges[edge].kind == Edge::true_ && f.graph.edges[edge].variable == v)
            from = f.graph.edges[edge].from;
        if (from != none_node && inside(from)) continue;
        const bool item = !is_whole(whole, k) && !is_scalar(f.table, facts.operands[k].shape);
        reads.push_back({v, from, item ? element_width(*f.program.types, f.function.variables[v].type) : 0});
      }
      if (node.reduction) d.accumulators += node.builtin == hir::Builtin::avg ? 2 : 1;
      // A look-up's table is three parameters, and three more per column.
      if (node.builtin == hir::Builtin::gpu_probe) d.values += static_cast<uint32_t>(1 + e.operands.size() / 2);
      const std::span<const uint32_t> out = f.graph.successors[n];
      if (std::all_of(out.begin(), out.end(), [&](uint32_t edge) {
            return f.graph.edges[edge].kind != Edge::true_ || inside(f.graph.edges[edge].to);
          }))
        continue;
      ++d.values;
      if (!is_scalar(f.table, facts.results[0].shape))
        d.bytes += element_width(*f.program.types, f.function.variables[s.targets[0].variable_id()].type);
    }
    if (g == b) break;
  }
  // What is read several times counts once.
  const auto key = [](const Read& r) { return std::tuple(index(r.variable), r.from, ~r.bytes); };
  if (reads.size() > 1)
    std::sort(reads.begin(), reads.end(), [&](const Read& x, const Read& y) { return key(x) < key(y); });
  for (size_t k = 0; k < reads.size(); ++k) {
    if (k > 0 && reads[k].variable == reads[k - 1].variable && reads[k].from == reads[k - 1].from) continue;
    ++d.values;
    d.bytes += reads[k].bytes;
  }
  return d;
}

// Before every merge.
bool within_budget(Fusion& f, uint32_t a, uint32_t b) {
  f.together = f.demand[a] + f.demand[b];
  if (!f.together.within_budget()) f.together = demand_of(f, a, b);
  return f.together.within_budget();
}
constexpr std::string_view over_budget = "one kernel would need too many registers or parameters";

// Scalar and element-wise throughout: any kernel can compute it in passing.
bool scalar_only(const Fusion& f, uint32_t g) {
  return std::all_of(f.p.groups[g].nodes.begin(), f.p.groups[g].nodes.end(), [&](uint32_t n) {
    return f.graph.nodes[n].elementwise && is_scalar(f.table, f.graph.nodes[n].geometry);
  });
}

void merge(Fusion& f, uint32_t into, uint32_t from, ShapeId geometry) {
  Group& a = f.p.groups[into];
  Group& b = f.p.groups[from];
  const auto cross = [&](uint32_t first, uint32_t last, uint32_t by) {
    for (uint32_t n = first; n < last; ++n) f.crossed[n] += by;
  };
  cross(a.nodes.front(), a.nodes.back(), UINT32_MAX);
  cross(b.nodes.front(), b.nodes.back(), UINT32_MAX);
  for (uint32_t n : b.nodes) f.p.group_of[n] = into;
  if (b.nodes.back() < a.nodes.front()) {
    a.nodes.insert(a.nodes.begin(), b.nodes.begin(), b.nodes.end());
  } else {
    const auto middle = static_cast<std::ptrdiff_t>(a.nodes.size());
    a.nodes.insert(a.nodes.end(), b.nodes.begin(), b.nodes.end());
    if (b.nodes.front() < a.nodes[static_cast<size_t>(middle) - 1])
      std::inplace_merge(a.nodes.begin(), a.nodes.begin() + middle, a.nodes.end());
  }
  cross(a.nodes.front(), a.nodes.back(), 1);
  a.geometry = geometry;
  f.demand[into] = f.together;
  b.nodes.clear();
  b.geometry = none<ShapeId>();
  ++f.merges;
}

// Before step 1.
void keep_folds_together(Fusion& f, const Options& options) {
  for (int64_t number : options.folds_apart) {
    uint32_t group = none_node;
    const auto join = [&](uint32_t n) {
      if (group == none_node) {
        group = f.p.group_of[n];
        f.p.groups[group].geometry = f.graph.nodes[n].geometry;
      } else if (f.p.group_of[n] != group && within_budget(f, group, n)) {
        merge(f, group, f.p.group_of[n], f.graph.nodes[n].geometry);
      }
    };
    for (uint32_t n = 0; n < f.graph.nodes.size(); ++n) {
      const Node& node = f.graph.nodes[n];
      if (node.place != Place::gpu || fold_apart(f.program, f.function, node.statement, options) != number) continue;
      join(n);
      for (uint32_t e : f.graph.predecessors[n])
        if (f.graph.nodes[f.graph.edges[e].from].builtin == hir::Builtin::gpu_sum_part) join(f.graph.edges[e].from);
    }
  }
}

// Step 1.
void pipelines(Fusion& f) {
  for (uint32_t n = static_cast<uint32_t>(f.graph.nodes.size()); n-- > 0;) {
    const Node& node = f.graph.nodes[n];
    if (node.place == Place::host) continue;
    const uint32_t own = f.p.group_of[n];
    if (node.place == Place::gpu) f.p.groups[own].geometry = node.geometry;
    uint32_t target = UINT32_MAX;
    bool one = true, synchronised = false;
    for (uint32_t e : f.graph.successors[n]) {
      const Edge& edge = f.graph.edges[e];
      if (edge.kind != Edge::true_) continue;
      const uint32_t g = f.p.group_of[edge.to];
      if (g == own) continue;
      one = one && f.p.groups[g].kernel() && (target == UINT32_MAX || target == g);
      synchronised |= edge.synchronised;
      target = g;
    }
    if (target == UINT32_MAX) continue;  // nothing reads it in this block
    if (!one) {
      f.decide(own, target, false, "not all its readers are in one kernel");
      continue;
    }
    if (synchronised) {
      f.decide(own, target, false, "its result is complete only after its kernel");
      continue;
    }
    ShapeId geometry = f.p.groups[target].geometry;
    if (node.geometry != geometry) {
      if (node.elementwise && is_scalar(f.table, node.geometry)) {
        // the kernel keeps its geometry
      } else if (scalar_only(f, target)) {
        geometry = node.geometry;
      } else if (f.table[geometry].kind == Shape::list && runs_within(f.table, geometry, node.geometry)) {
        geometry = node.geometry;  // single values of cells, from what reduces the cells
      } else if (!(f.table[geometry].kind == Shape::list && runs_within(f.table, node.geometry, geometry))) {
        f.decide(own, target, false, "their geometries differ");
        continue;
      }
    }
    if (reaches(f, own, target, true)) {
      f.decide(own, target, false, "another statement must run between them");
      continue;
    }
    if (!within_budget(f, target, own)) {
      f.decide(own, target, false, over_budget);
      continue;
    }
    const ShapeId previous = f.p.groups[own].geometry;
    f.p.groups[own].geometry = node.geometry;
    if (!all_fit(f, target, own, geometry)) {
      f.p.groups[own].geometry = previous;
      f.decide(own, target, false, "a vector that they read has another size");
      continue;
    }
    f.decide(own, target, true, "pipeline");
    merge(f, target, own, geometry);
  }
}

// The kernels that read what group g writes, in program order.
using Kernels = InlineVector<uint32_t, 8>;
Kernels readers(Fusion& f, uint32_t g) {
  Kernels out;
  f.seen[g] = ++f.stamp;
  for (uint32_t n : f.p.groups[g].nodes)
    for (uint32_t e : f.graph.successors[n]) {
      const Edge& edge = f.graph.edges[e];
      const uint32_t to = f.p.group_of[edge.to];
      if (edge.kind != Edge::true_ || f.seen[to] == f.stamp || !f.p.groups[to].kernel()) continue;
      f.seen[to] = f.stamp;
      out.push_back(to);
    }
  if (out.size() > 1)
    std::sort(out.begin(), out.end(),
              [&](uint32_t a, uint32_t b) { return f.p.groups[a].nodes.front() < f.p.groups[b].nodes.front(); });
  return out;
}

// Step 2 at a group with these readers. True when anything was merged.
bool merge_siblings(Fusion& f, const Kernels& kernels) {
  bool merged = false;
  for (size_t i = 0; i + 1 < kernels.size(); ++i) {
    const uint32_t a = kernels[i];
    const ShapeId geometry = f.p.groups[a].geometry;
    if (is_none(geometry)) continue;  // merged before
    std::optional<Related> related;
    for (size_t j = i + 1; j < kernels.size(); ++j) {
      const uint32_t b = kernels[j];
      if (geometry != f.p.groups[b].geometry) continue;
      if (!related) {
        uint32_t last = 0;
        for (size_t k = j; k < kernels.size(); ++k)
          if (f.p.groups[kernels[k]].geometry == geometry) last = std::max(last, f.p.groups[kernels[k]].nodes.back());
        related.emplace(f, a, f.p.groups[b].nodes.front(), last);
      }
      if (related->joined(b) || !within_budget(f, a, b)) continue;
      f.decide(a, b, true, "siblings with a common input");
      const auto nodes = f.p.groups[b].nodes;
      merge(f, a, b, geometry);
      related->add(nodes);
      merged = true;
    }
  }
  return merged;
}

// Why `child` cannot run inside `parent`, or an empty view.
std::string_view refuse_child(Fusion& f, uint32_t parent, uint32_t child, ShapeId geometry) {
  for (uint32_t n : f.p.groups[parent].nodes)
    for (uint32_t e : f.graph.successors[n]) {
      const Edge& edge = f.graph.edges[e];
      if (f.p.group_of[edge.to] == child && edge.synchronised) return "its result is complete only after its kernel";
    }
  const ShapeId inner = f.p.groups[child].geometry;
  if (!runs_within(f.table, inner, geometry) && !scalar_only(f, child) && !scalar_only(f, parent))
    return "their geometries differ";
  if (reaches(f, parent, child, true)) return "another statement must run between them";
  if (!all_fit(f, parent, child, geometry)) return "a vector that they read has another size";
  if (!within_budget(f, parent, child)) return over_budget;
  return {};
}

// Step 3 at group g, whose readers these are: one merge, or false.
bool merge_child(Fusion& f, uint32_t g, Kernels& children) {
  if (children.empty()) return false;
  if (children.size() > 1) {
    for (uint32_t n : f.p.groups[g].nodes)
      for (uint32_t e : f.graph.successors[n])
        f.shared[f.p.group_of[f.graph.edges[e].to]] += f.graph.edges[e].kind == Edge::true_;
    std::stable_sort(children.begin(), children.end(),
                     [&](uint32_t a, uint32_t b) { return f.shared[a] > f.shared[b]; });
    for (uint32_t n : f.p.groups[g].nodes)
      for (uint32_t e : f.graph.successors[n]) f.shared[f.p.group_of[f.graph.edges[e].to]] = 0;
  }
  for (uint32_t child : children) {
    const ShapeId geometry = scalar_only(f, g) ? f.p.groups[child].geometry : f.p.groups[g].geometry;
    if (!refuse_child(f, g, child, geometry).empty()) continue;
    f.decide(g, child, true, "reader runs at the size of its parent");
    merge(f, g, child, geometry);
    return true;
  }
  return false;
}

void siblings_and_children(Fusion& f) {
  std::vector<uint32_t> looked(f.graph.nodes.size(),
                               UINT32_MAX);  // f.merges when there was nothing to merge at the node
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t n = 0; n < f.graph.nodes.size(); ++n) {
      if (looked[n] == f.merges || f.p.groups[f.p.group_of[n]].nodes.front() != n)
        continue;  // its group has had its turn
      for (bool again = true; again;) {
        again = false;
        Kernels kernels = readers(f, f.p.group_of[n]);
        for (; merge_siblings(f, kernels); kernels = readers(f, f.p.group_of[n])) again = true;
        if (f.p.groups[f.p.group_of[n]].kernel() && merge_child(f, f.p.group_of[n], kernels)) again = true;
        changed |= again;
      }
      looked[n] = f.merges;
    }
  }
}

// Step 4.
void neighbours(Fusion& f) {
  std::vector<uint32_t> kernels;  // in program order
  for (uint32_t n = 0; n < f.graph.nodes.size(); ++n)
    if (const Group& g = f.p.groups[f.p.group_of[n]]; g.kernel() && g.nodes.front() == n)
      kernels.push_back(f.p.group_of[n]);
  std::vector<uint32_t> alike;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const uint32_t a = kernels[i];
    if (!f.p.groups[a].kernel()) continue;  // merged before
    const ShapeId geometry = f.p.groups[a].geometry;
    uint32_t last = 0;
    alike.clear();
    for (size_t j = i + 1; j < kernels.size(); ++j) {
      if (f.p.groups[kernels[j]].geometry != geometry) continue;
      alike.push_back(kernels[j]);
      last = std::max(last, f.p.groups[kernels[j]].nodes.back());
    }
    if (alike.empty()) continue;
    Related related(f, a, f.p.groups[a].nodes.front(), last);
    for (uint32_t b : alike) {
      if (related.joined(b) || !within_budget(f, a, b)) continue;
      f.decide(a, b, true, "neighbours of one size");
      const auto nodes = f.p.groups[b].nodes;
      merge(f, a, b, geometry);
      related.add(nodes);
    }
  }
}

// Step 5. One kernel per list is enough: those that could join were merged before.
void beside_cells(Fusion& f) {
  for (uint32_t n = 0; n < f.graph.nodes.size(); ++n) {
    const uint32_t list = f.p.group_of[n];
    if (!f.p.groups[list].kernel() || f.p.groups[list].nodes.front() != n) continue;
    const ShapeId geometry = f.p.groups[list].geometry;
    if (f.table[geometry].kind != Shape::list) continue;
    std::vector<uint32_t> beside;
    uint32_t first = n, last = n;
    for (uint32_t g = 0; g < f.p.groups.size(); ++g) {
      const Group& group = f.p.groups[g];
      if (!group.kernel() || !std::all_of(group.nodes.begin(), group.nodes.end(), [&](uint32_t k) {
            return runs_beside_cells(f.table, f.graph.nodes[k], geometry);
          }))
        continue;
      beside.push_back(g);
      first = std::min(first, group.nodes.front());
      last = std::max(last, group.nodes.back());
    }
    if (beside.empty()) continue;
    Related related(f, list, first, last);
    for (uint32_t g : beside) {
      if (related.joined(g) || !within_budget(f, list, g)) continue;
      f.decide(list, g, true, "an element per cell of its list");
      const auto nodes = f.p.groups[g].nodes;
      merge(f, list, g, geometry);
      related.add(nodes);
    }
  }
}

void explain_refusals(Fusion& f) {
  for (uint32_t g = 0; g < f.p.groups.size(); ++g) {
    if (!f.p.groups[g].kernel()) continue;
    for (uint32_t child : readers(f, g)) {
      const ShapeId geometry = scalar_only(f, g) ? f.p.groups[child].geometry : f.p.groups[g].geometry;
      if (const auto why = refuse_child(f, g, child, geometry); !why.empty()) f.decide(g, child, false, why);
    }
  }
}

// Topological order of the groups; among those that are ready, the one that starts first in the program.
void order_groups(Fusion& f) {
  std::vector<uint32_t> waiting(f.p.groups.size(), 0);
  for (const Edge& e : f.graph.edges)
    if (f.p.group_of[e.from] != f.p.group_of[e.to]) ++waiting[f.p.group_of[e.to]];
  const auto later = [&](uint32_t a, uint32_t b) { return f.p.groups[a].nodes.front() > f.p.groups[b].nodes.front(); };
  std::vector<uint32_t> ready;
  for (uint32_t g = 0; g < f.p.groups.size(); ++g)
    if (!f.p.groups[g].nodes.empty() && waiting[g] == 0) ready.push_back(g);
  std::make_heap(ready.begin(), ready.end(), later);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    const uint32_t g = ready.back();
    ready.pop_back();
    f.p.order.push_back(g);
    for (uint32_t n : f.p.groups[g].nodes)
      for (uint32_t e : f.graph.successors[n]) {
        const uint32_t to = f.p.group_of[f.graph.edges[e].to];
        if (to == g || --waiting[to] > 0) continue;
        ready.push_back(to);
        std::push_heap(ready.begin(), ready.end(), later);
      }
  }
  for (uint32_t w : waiting) CHECK(w == 0, "kernels that wait for each other");
}

}  // namespace

Partition fuse(const hir::Program& program, const hir::Function& function, const BlockGraph& graph,
               const Shapes& shapes, const ShapeTable& table, const Options& options,
               std::vector<Decision>& decisions) {
  Fusion f{program, function, graph, shapes, table, decisions};
  f.explain = options.explain;
  for (std::vector<uint32_t>* facts : {&f.seen, &f.after, &f.before, &f.shared, &f.crossed})
    facts->assign(graph.nodes.size(), 0);
  f.p.groups.resize(graph.nodes.size());
  f.p.group_of.resize(graph.nodes.size());
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    f.p.groups[n].nodes.push_back(n);
    f.p.group_of[n] = n;
  }
  if (options.mode == Mode::none) {
    for (uint32_t n = 0; n < graph.nodes.size(); ++n)
      if (graph.nodes[n].place == Place::gpu) f.p.groups[n].geometry = graph.nodes[n].geometry;
  } else {
    f.demand.resize(graph.nodes.size());
    for (uint32_t n = 0; n < graph.nodes.size(); ++n)
      if (graph.nodes[n].place != Place::host) f.demand[n] = demand_of(f, n, n);
    keep_folds_together(f, options);
    pipelines(f);
    if (options.mode == Mode::full) {
      siblings_and_children(f);
      neighbours(f);
      if (options.beside_cells) beside_cells(f);
    }
    if (options.explain) explain_refusals(f);
  }
  order_groups(f);
  return std::move(f.p);
}

}  // namespace rndn::outliner
