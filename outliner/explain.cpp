// Explains an outlined program: per statement its shape, its place and what it waits for; per kernel why it holds what it holds, why it is
// apart from others, and the bytes that it must move.
//
// Runs the passes again and reads their side tables: what they decided is recorded where it was decided (Decision), nothing is worked out twice.
// Bytes are those of the data that a kernel must read and write once, elements at their width in memory: of columns the one that the caller
// knows; text as codes. What depends on how
// many elements a mask selects is an upper bound, marked "up to".
// Cost: that of the outliner, and linear in the program and its decisions: of what is said of pairs of kernels, each kernel has the first few and a
// count. Leaves out: scratch memory, sectors that gathers touch more than once.
#include "outliner/explain.h"

#include <algorithm>
#include <map>
#include <set>

#include "outliner/analysis.h"

namespace rndn::outliner {
namespace {

using hir::Function;
using hir::Statement;
using hir::StatementId;
using hir::VariableId;

struct Explainer {
  const hir::Program& program;  // with calls inlined; main is what is explained
  const Function& main;
  const SourceManager& sources;
  const Outlined& outlined;
  const ExplainOptions& how;
  const Shapes& shapes;
  ShapeTable& table;
  std::map<StatementId, size_t> kernel_of;
  std::map<StatementId, std::string_view> host_because;
  std::multimap<StatementId, TopDecision> tops;    // by the statement that orders
  std::map<SizeId, SizeId> unselected;             // of sizes that are selections: what they are selected from
  std::vector<std::pair<BlockGraph, int>> graphs;  // of every block, with its depth, outer blocks first
  std::map<VariableId, uint32_t> column_bits;      // per element, of variables of the outlined main that are columns
  std::string out;

  std::string_view text(NameId id) const { return program.text(id); }
  std::string_view kernel_name(size_t k) const {
    return outlined.program.text(outlined.program.functions[outlined.kernels[k].function].name);
  }
  std::string target(StatementId id) const {
    const Statement& s = main.statements[id];
    if (!s.targets.empty()) return std::string(text(s.targets[0].name));
    return s.span.known() ? fmt::format("line {}", sources.position(s.span).line) : "a statement";
  }
  std::string line(StatementId id) const {
    const Span span = main.statements[id].span;
    return span.known() ? std::to_string(sources.position(span).line) : "-";
  }
  // The statement as written, on one line.
  std::string source(StatementId id) const {
    const Statement& s = main.statements[id];
    switch (s.kind) {
      case Statement::if_else: return "if";
      case Statement::while_loop: return "while";
      case Statement::repeat: return "repeat";
      case Statement::block: return "{ }";
      default: break;
    }
    std::string one;
    if (s.span.known())
      for (char c : sources.text(s.span)) {
        const bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
        if (!(space && (one.empty() || one.back() == ' '))) one += space ? ' ' : c;
      }
    return one;
  }
};

void find_graphs(Explainer& x, hir::BlockId block, int depth, const Options& options) {
  std::vector<Decision> decisions;
  const size_t at = x.graphs.size();
  x.graphs.emplace_back(build_graph(x.program, x.main, block, x.shapes, x.table, options, decisions), depth);
  for (const Decision& d : decisions)
    if (is_none(d.second_at)) x.host_because[d.first_at] = d.why;
  for (size_t n = 0; n < x.graphs[at].first.nodes.size(); ++n) {
    const Statement& s = x.main.statements[x.graphs[at].first.nodes[n].statement];
    for (hir::BlockId inner : {s.body, s.otherwise})
      if (!is_none(inner)) find_graphs(x, inner, depth + 1, options);
  }
}

// Why the reader waits for the kernel of the definition.
std::string why_synchronised(const Explainer& x, const Node& from, const Node& to) {
  if (from.sync_out) {
    const auto builtin = called_builtin(x.main, x.main.statements[from.statement]);
    return fmt::format("`{}` gives its result when its kernel is done",
                       builtin ? hir::row(*builtin).name : std::string_view("it"));
  }
  const auto reader = called_builtin(x.main, x.main.statements[to.statement]);
  if (reader == hir::Builtin::gpu_fold || reader == hir::Builtin::gpu_sum_part)
    return "what is folded apart is stored first";
  if (to.length_from != none_node) return "how many elements are selected is known when their kernel is done";
  if (x.shapes.statements[to.statement].assumed) return "its length is compared before the kernel starts";
  return fmt::format("`{}` reads elements of it anywhere", reader ? hir::row(*reader).name : std::string_view("it"));
}

// --- Bytes --------------------------------------------------------------------------------------------------------------------

struct Amount {
  uint64_t bits = 0;             // per element
  SizeId size = none<SizeId>();  // times that many; none: elements of the cells of a list
  std::string what;
  bool bound = false;  // at most
};

// Elements of a size; `bound` when they are at most that many.
std::optional<uint64_t> count(Explainer& x, SizeId id, bool& bound) {
  const ShapeTable& table = x.outlined.shapes;
  if (is_none(id)) return {};
  if (table[id].kind == Size::compressed) {
    bound = true;
    std::vector<SizeId> chain;  // up to where the way on is known
    for (; !is_none(id) && table[id].kind == Size::compressed && !x.unselected.count(id); id = table[id].base)
      chain.push_back(id);
    if (const auto known = x.unselected.find(id); known != x.unselected.end()) id = known->second;
    for (SizeId link : chain) x.unselected[link] = id;
    if (is_none(id)) return {};
  }
  const Size& size = table[id];
  if (size.kind == Size::constant) return static_cast<uint64_t>(std::max<int64_t>(0, size.value));
  if (size.kind != Size::symbol || !x.how.rows) return {};
  std::string_view name = x.outlined.program.text(size.name);  // data.TABLE.rows
  if (!name.starts_with("data.") || !name.ends_with(".rows")) return {};
  return x.how.rows(name.substr(5, name.size() - 10));
}

struct Traffic {
  std::vector<Amount> reads, writes;
};

// Columns of the device, and where the outlined main has them.
void find_columns(Explainer& x) {
  if (!x.how.bits) return;
  const hir::ColumnReads reads = hir::column_reads(x.outlined.program);
  for (const hir::ColumnRead& c : reads.columns)
    if (!reads.tables[c.table].is_file)
      if (const auto bits = x.how.bits(reads.tables[c.table].name, c)) x.column_bits[c.to] = *bits;
  // The values of a foreign key are its row numbers.
  const Function& main = x.outlined.program.functions[x.outlined.program.main];
  for (const Statement& s : main.statements) {
    if (called_builtin(main, s) != hir::Builtin::values) continue;
    const hir::Operand& of = main.expressions[innermost(main, s.value)].operands[0];
    const auto known = of.kind == hir::Operand::variable ? x.column_bits.find(of.variable_id()) : x.column_bits.end();
    if (known != x.column_bits.end()) x.column_bits[s.targets[0].variable_id()] = known->second;
  }
}

// Of the kernel's parameters that are columns: bits per element.
std::map<VariableId, uint32_t> bits_of_parameters(const Explainer& x, const Kernel& kernel) {
  std::map<VariableId, uint32_t> out;
  const hir::Program& program = x.outlined.program;
  const Function &main = program.functions[program.main], &f = program.functions[kernel.function];
  for (const hir::Expression& e : main.expressions) {
    if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::user ||
        e.callee.function != kernel.function)
      continue;
    for (size_t k = 0; k < e.operands.size() && k < f.parameters.size(); ++k)
      if (e.operands[k].kind == hir::Operand::variable)
        if (const auto at = x.column_bits.find(e.operands[k].variable_id()); at != x.column_bits.end())
          out[f.parameters[k]] = at->second;
  }
  return out;
}

Traffic traffic(const Explainer& x, const Kernel& kernel) {
  const hir::Program& program = x.outlined.program;
  const Function& f = program.functions[kernel.function];
  const std::map<VariableId, uint32_t> known_bits = bits_of_parameters(x, kernel);
  const ShapeTable& table = x.outlined.shapes;
  Traffic t;
  const auto add = [&](std::vector<Amount>& to, VariableId v, ShapeId shape, bool bound) {
    const hir::TypeId type = f.variables[v].type;
    const bool list = (*program.types)[type].kind == hir::TypeKind::list;
    const auto known = known_bits.find(v);
    const uint64_t bits = known != known_bits.end() ? known->second : 8 * element_width(*program.types, type);
    to.push_back(
        {bits, list ? none<SizeId>() : table[shape].size, std::string(program.text(f.variables[v].name)), bound});
    if (list) to.push_back({64, table[shape].size, to.back().what + "'s cells", bound});
  };
  std::set<VariableId> read;
  std::set<std::pair<VariableId, ShapeId>> gathered;
  for (StatementId id : f.blocks[f.body].statements) {
    const Statement& s = f.statements[id];
    if (s.kind == Statement::return_) {
      for (const hir::Operand& o : s.results) {
        const ShapeId shape = kernel.shapes[o.variable_id()];
        bool copied = false;
        for (StatementId d : f.blocks[f.body].statements)  // index_a: what it writes over the copy
          if (called_builtin(f, f.statements[d]) == hir::Builtin::index_a &&
              f.statements[d].targets[0].variable_id() == o.variable_id())
            copied = true;
        if (copied) {
          add(t.reads, o.variable_id(), shape, false);
          t.reads.back().what = "the start of " + t.reads.back().what;
        }
        add(t.writes, o.variable_id(), shape, false);
      }
      continue;
    }
    if (is_none(s.value)) continue;
    const hir::Expression& e = f.expressions[innermost(f, s.value)];
    const auto builtin = called_builtin(f, s);
    if (builtin == hir::Builtin::len || builtin == hir::Builtin::range) continue;
    const uint32_t whole = whole_operands(program, e);
    for (size_t k = 0; k < e.operands.size(); ++k) {
      if (e.operands[k].kind != hir::Operand::variable) continue;
      const VariableId v = e.operands[k].variable_id();
      if (!f.variables[v].is_parameter || is_scalar(table, kernel.shapes[v])) continue;
      if (is_whole(whole, k)) {
        if (builtin == hir::Builtin::index_a) continue;  // counted as the start of the result
        // A mask of a look-up is read like the last column before it.
        const hir::Operand& at = e.operands[builtin == hir::Builtin::gpu_probe
                                                ? std::min(k + e.operands.size() / 2, e.operands.size() - 1)
                                                : k + 1];
        gathered.insert({v, at.kind == hir::Operand::variable ? kernel.shapes[at.variable_id()] : none<ShapeId>()});
      } else {
        read.insert(v);
      }
    }
  }
  for (VariableId v : f.parameters)
    if (read.count(v)) add(t.reads, v, kernel.shapes[v], false);
  for (const auto& [v, at] : gathered) {
    if (is_none(at)) continue;
    add(t.reads, v, at, false);
    if (table[at].kind == Shape::list) t.reads.back().size = none<SizeId>();
    t.reads.back().what = "elements of " + t.reads.back().what;
  }
  return t;
}

std::string bytes_text(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.2f} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.1f} MB", bytes / 1e6);
  if (bytes >= 1e3) return fmt::format("{:.1f} kB", bytes / 1e3);
  return fmt::format("{:.0f} B", bytes);
}

void explain_amounts(Explainer& x, const char* verb, const std::vector<Amount>& amounts, double& total, bool& bound,
                     bool& all_known) {
  std::map<SizeId, std::pair<uint64_t, std::string>> by_size;  // size -> bits per element, names
  std::vector<SizeId> order;
  for (const Amount& a : amounts) {
    auto [it, fresh] = by_size.try_emplace(a.size);
    if (fresh) order.push_back(a.size);
    it->second.first += a.bits;
    it->second.second += (it->second.second.empty() ? "" : ", ") + a.what;
    const auto n = count(x, a.size, bound);
    if (n)
      total += static_cast<double>(*n) * static_cast<double>(a.bits) / 8;
    else
      all_known = false;
  }
  for (SizeId size : order)
    x.out += fmt::format("    {:<8}{} B per {}: {}\n", verb, static_cast<double>(by_size[size].first) / 8,
                         is_none(size) ? "element of the cells" : x.outlined.shapes.text(size, x.outlined.program),
                         by_size[size].second);
}

// --- Text ---------------------------------------------------------------------------------------------------------------------

void explain_statements(Explainer& x) {
  x.out += "statements\n";
  for (const auto& [graph, depth] : x.graphs) {
    if (depth > 0) x.out += fmt::format("  in a block of depth {}\n", depth);
    for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      const Statement& s = x.main.statements[node.statement];
      const auto kernel = x.kernel_of.find(node.statement);
      const StatementFacts& facts = x.shapes.statements[node.statement];
      x.out += fmt::format("  {:>4}  {:<9} {}\n", x.line(node.statement),
                           kernel != x.kernel_of.end() ? x.kernel_name(kernel->second)
                           : node.unused               ? std::string_view("dropped")
                                                       : std::string_view("host"),
                           x.source(node.statement));
      if (s.kind == Statement::assign && !facts.results.empty()) {
        std::string line = fmt::format("shape {}", x.table.text(facts.results[0].shape, x.program));
        if (!is_none(node.geometry)) line += fmt::format(", geometry {}", x.table.text(node.geometry, x.program));
        if (!is_none(facts.results[0].size))
          line += fmt::format(", value {}", x.table.text(facts.results[0].size, x.program));
        x.out += fmt::format("                  {}\n", line);
      }
      if (const auto why = x.host_because.find(node.statement);
          why != x.host_because.end() && kernel == x.kernel_of.end() && why->second != "a literal")
        x.out += node.unused ? "                  kernels have copies of it\n"
                             : fmt::format("                  on the host: {}\n", why->second);
      const auto [first_top, last_top] = x.tops.equal_range(node.statement);
      for (auto at = first_top; at != last_top; ++at) {
        const TopDecision& top = at->second;
        x.out += is_none(top.reader)
                     ? std::string("                  top-k: only its first rows are read, nothing else is sorted\n")
                     : fmt::format("                  no top-k: {} ({}, line {})\n", top.why, x.target(top.reader),
                                   x.line(top.reader));
      }
      std::set<std::string> told;
      for (uint32_t e : graph.predecessors[n]) {
        const Edge& edge = graph.edges[e];
        if (edge.kind != Edge::true_ || !edge.synchronised) continue;
        const std::string why =
            fmt::format("                  waits for {}: {}\n", x.text(x.main.variables[edge.variable].name),
                        why_synchronised(x, graph.nodes[edge.from], node));
        if (told.insert(why).second) x.out += why;
      }
    }
  }
}

// What was decided about the kernels that came out, by kernel.
struct Decided {
  std::vector<std::pair<std::string_view, std::vector<std::string>>> one;  // pairs of statements in it, by reason
  std::map<size_t, std::string> apart;  // from later and earlier kernels; the last decision is about what they became
};
std::vector<Decided> decisions_of(const Explainer& x) {
  std::vector<Decided> decided(x.outlined.kernels.size());
  for (const Decision& d : x.outlined.decisions) {
    if (is_none(d.second_at)) continue;
    const auto a = x.kernel_of.find(d.first_at), b = x.kernel_of.find(d.second_at);
    if (a == x.kernel_of.end() || b == x.kernel_of.end()) continue;
    Decided& k = decided[a->second];
    if (d.fused && a->second == b->second) {
      auto at = std::find_if(k.one.begin(), k.one.end(), [&](const auto& r) { return r.first == d.why; });
      if (at == k.one.end()) at = k.one.insert(at, {d.why, {}});
      at->second.push_back(fmt::format("{} + {}", x.text(d.first), x.text(d.second)));
    }
    if (!d.fused && a->second != b->second)
      k.apart[b->second] = fmt::format("{} ({}, {})", d.why, x.text(d.first), x.text(d.second));
  }
  return decided;
}

void explain_kernels(Explainer& x) {
  constexpr size_t most = 6;  // lines or pairs of one kind
  x.out += "kernels\n";
  const std::vector<Decided> decided = decisions_of(x);
  // Kernels that could be one for all that their geometries say, in order.
  std::map<std::pair<bool, SizeId>, std::vector<size_t>> alike;
  for (size_t k = 0; k < x.outlined.kernels.size(); ++k)
    alike[{x.outlined.kernels[k].list, x.outlined.kernels[k].geometry}].push_back(k);
  for (size_t k = 0; k < x.outlined.kernels.size(); ++k) {
    const Kernel& kernel = x.outlined.kernels[k];
    const std::string size = x.outlined.shapes.text(kernel.geometry, x.outlined.program);
    x.out += fmt::format("  {}: {} statement{}, a thread per element of {}\n", x.kernel_name(k),
                         kernel.statements.size(), kernel.statements.size() == 1 ? "" : "s",
                         kernel.list   ? fmt::format("the cells of a list of {}", size)
                         : size == "1" ? std::string("a scalar")
                                       : fmt::format("vector<{}>", size));
    const Traffic t = traffic(x, kernel);
    double total = 0;
    bool bound = false, all_known = true;
    explain_amounts(x, "reads", t.reads, total, bound, all_known);
    explain_amounts(x, "writes", t.writes, total, bound, all_known);
    if (total > 0 && x.how.rows)
      x.out += fmt::format("    moves   {}{}{}\n", bound ? "up to " : "", bytes_text(total),
                           all_known ? "" : ", and what has no size before the program runs");
    for (const auto& [why, pairs] : decided[k].one) {
      x.out += fmt::format("    one because {}: ", why);
      for (size_t i = 0; i < pairs.size() && i < most; ++i) x.out += (i ? ", " : "") + pairs[i];
      x.out += pairs.size() > most ? fmt::format(" and {} more\n", pairs.size() - most) : "\n";
    }
    const std::vector<size_t>& same = alike[{kernel.list, kernel.geometry}];
    const std::map<size_t, std::string>& told = decided[k].apart;
    auto next = std::upper_bound(same.begin(), same.end(), k);
    auto reason = told.begin();
    size_t shown = 0, left = static_cast<size_t>(same.end() - next) + told.size();
    for (const auto& [m, why] : told) left -= m > k && std::binary_search(same.begin(), same.end(), m);
    for (; left > 0 && shown < most; ++shown, --left) {
      const bool decision = reason != told.end() && (next == same.end() || reason->first <= *next);
      const size_t m = decision ? reason->first : *next;
      x.out += fmt::format("    apart from {}: {}\n", x.kernel_name(m),
                           decision ? std::string_view(reason->second) : "one needs what follows from the other");
      if (next != same.end() && *next == m) ++next;
      if (decision) ++reason;
    }
    if (left) x.out += fmt::format("    apart from {} more\n", left);
  }
  if (x.outlined.kernels.empty()) x.out += "  none\n";
}

std::string in_quotes(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

void explain_dot(Explainer& x) {
  x.out += "digraph main {\n  node [shape=box, fontname=monospace];\n";
  std::map<StatementId, std::string> names;
  for (const auto& [graph, depth] : x.graphs)
    for (const Node& node : graph.nodes) names[node.statement] = fmt::format("s{}", index(node.statement));
  const auto label = [&](StatementId id) {
    std::string shape;
    const StatementFacts& facts = x.shapes.statements[id];
    if (!facts.results.empty() && !is_none(facts.results[0].shape))
      shape = "\\n" + x.table.text(facts.results[0].shape, x.program);
    return in_quotes(x.source(id)) + shape;
  };
  for (size_t k = 0; k < x.outlined.kernels.size(); ++k) {
    x.out += fmt::format("  subgraph cluster_{} {{\n    label=\"{}: {}{}\";\n", k, x.kernel_name(k),
                         x.outlined.kernels[k].list ? "cells of " : "",
                         in_quotes(x.outlined.shapes.text(x.outlined.kernels[k].geometry, x.outlined.program)));
    for (StatementId id : x.outlined.kernels[k].statements)
      x.out += fmt::format("    {} [label=\"{}\"];\n", names[id], label(id));
    x.out += "  }\n";
  }
  for (const auto& [graph, depth] : x.graphs) {
    for (const Node& node : graph.nodes)
      if (!node.unused && !x.kernel_of.count(node.statement))
        x.out += fmt::format("  {} [label=\"{}\", style=rounded];\n", names[node.statement], label(node.statement));
    for (const Edge& e : graph.edges) {
      const Node &from = graph.nodes[e.from], &to = graph.nodes[e.to];
      if (from.unused || to.unused) continue;
      std::string style;
      if (e.kind != Edge::true_)
        style = " [style=dashed, color=gray]";
      else if (e.synchronised)
        style = fmt::format(" [color=red, label=\"{}\"]", in_quotes(why_synchronised(x, from, to)));
      x.out += fmt::format("  {} -> {}{};\n", names[from.statement], names[to.statement], style);
    }
  }
  x.out += "}\n";
}

}  // namespace

Result<std::string> explain(const hir::Program& program, const SourceManager& sources, const Options& options,
                            const ExplainOptions& how, DiagnosticSink& sink) {
  if (is_none(program.main) || is_none(program.functions[program.main].body))
    return input_error("the program has no main with a body");
  Timings timings;
  const Outlined outlined = run(program, options, sink, timings);
  if (sink.has_errors()) return Error{Fault::input, ""};
  hir::Program inlined = program;
  (void)inline_calls(inlined);
  Function& main = inlined.functions[inlined.main];
  ShapeTable table;
  DiagnosticSink again;
  Shapes shapes = analyse_shapes(inlined, main, table, again);
  // The rewrites of pipeline.cpp that decide on probes and folds.
  while (options.tops && find_group_forms(inlined, main, table, again, options, shapes, main)) {
  }
  if (options.tops) find_group_orders(inlined, main, table, again, shapes, main);
  if (options.lists) find_group_cells(inlined, main, table, again, shapes, main);
  std::vector<uint32_t> probes, whole;
  if (options.joins) find_probes(inlined, main, table, again, options, shapes, main, probes, whole);
  if (options.joins) merge_selections(inlined, main, table, again, shapes, main);
  std::vector<TopDecision> tops;
  if (options.tops) find_tops(inlined, main, table, again, shapes, main, tops);
  std::vector<uint32_t> folds, float_folds;
  if (!outlined.folds.empty()) {
    Options as_outlined = options;
    as_outlined.not_folded = outlined.not_folded;
    find_sinks(inlined, main, table, again, as_outlined, shapes, main, folds, float_folds);
  }
  Explainer x{inlined, main, sources, outlined, how, shapes, table, {}, {}, {}, {}, {}, {}, {}};
  find_columns(x);
  for (const TopDecision& top : tops) x.tops.emplace(top.order, top);
  for (size_t k = 0; k < outlined.kernels.size(); ++k)
    for (StatementId id : outlined.kernels[k].statements) x.kernel_of[id] = k;
  find_graphs(x, main.body, 0, options);
  if (how.dot) {
    explain_dot(x);
  } else {
    explain_statements(x);
    explain_kernels(x);
  }
  return std::move(x.out);
}

Result<KernelCounts> count_kernels(const hir::Program& program, const Options& options, DiagnosticSink& sink) {
  KernelCounts counts;
  for (auto [mode, count] :
       {std::pair{Mode::none, &counts.none}, {Mode::flow, &counts.flow}, {Mode::full, &counts.full}}) {
    Timings timings;
    Options o = options;
    o.mode = mode;
    o.tops = o.joins = o.sinks = false;  // the counts are of the program as it is written
    *count = run(program, o, sink, timings).kernels.size();
    if (sink.has_errors()) return Error{Fault::input, ""};
  }
  return counts;
}

}  // namespace rndn::outliner
