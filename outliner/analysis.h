// What the outliner's passes tell each other about one function. Private to this folder.
//
// Facts live in side tables that are indexed by the function's ids; passes are free functions that fill one table each.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/builtins.h"
#include "frontend/ir.h"
#include "libraries/base/errors/diagnostic.h"
#include "outliner/outliner.h"

namespace rndn::outliner {

// --- inline.cpp ---------------------------------------------------------------------------------------------------------------

// Replaces calls of user functions in main by their bodies, where that is possible. False: there was nothing to replace.
bool inline_calls(hir::Program& program);

// The main to outline: with calls replaced, in `own`, or that of `program` itself where there are none, which then is not copied. `rest` becomes
// the program whose main is left empty.
const hir::Function& take_main(const hir::Program& program, hir::Program& rest, hir::Function& own);

// --- shapes.cpp ---------------------------------------------------------------------------------------------------------------

// What is known of a value at one point of the program.
struct Value {
  ShapeId shape = none<ShapeId>();     // none: not assigned yet (Init)
  ObjectId object = none<ObjectId>();  // none: a literal
  std::optional<int64_t> constant;     // an integer scalar that is known
  SizeId size = none<SizeId>();        // an integer scalar that is that size: the result of `len`
  NameId text = none<NameId>();        // a text scalar that is known: table and column names
  Span origin;                         // where the value was made
  bool operator==(const Value& o) const {
    return shape == o.shape && object == o.object && constant == o.constant && size == o.size && text == o.text;
  }
};

struct StatementFacts {
  InlineVector<Value, 2> operands;  // of the innermost operand or call; conditions and returned values alike
  InlineVector<Value, 1> results;
  // Bit k: that operand k is as long as its shape here says is assumed, since the statement is an error (or repeats a single value) otherwise. Another
  // size may be known where the operand was made.
  uint8_t assumed = 0;
};

struct Shapes {
  IdVector<hir::StatementId, StatementFacts> statements;
  std::vector<SizeId> unseen;  // sizes that nothing may be assumed of; few
};

Shapes analyse_shapes(const hir::Program& program, const hir::Function& function, ShapeTable& table,
                      DiagnosticSink& sink);
// The same for statements that were rewritten since, and all behind them. Of a function without parameters and control flow: `order` are its statements
// as they run, `first` the first that is not what it was.
void analyse_again(const hir::Program& program, const hir::Function& function, ShapeTable& table, DiagnosticSink& sink,
                   std::span<const hir::StatementId> order, size_t first, Shapes& shapes);

// --- enums.cpp ----------------------------------------------------------------------------------------------------------------

// Rewrites the enums of main that are looked at as row numbers only, into `own`, which may be `main` itself, and gives `shapes` what follows from that.
// False: there are none.
bool find_enums(hir::Program& program, const hir::Function& main, ShapeTable& table, DiagnosticSink& sink,
                Shapes& shapes, hir::Function& own);

// --- top.cpp ------------------------------------------------------------------------------------------------------------------

// An order of which first rows are taken.
struct TopDecision {
  hir::StatementId order{};
  hir::StatementId reader = none<hir::StatementId>();  // what keeps it from being a top-k; none: it is one
  std::string_view why;                                // then
};

// Rewrites the orders of main of which only the first rows are looked at, into `own`, which may be `main` itself, and gives `shapes` what follows from
// that. False: there are none, and `own` and `shapes` are what they were.
bool find_tops(hir::Program& program, const hir::Function& main, ShapeTable& table, DiagnosticSink& sink,
               Shapes& shapes, hir::Function& own, std::vector<TopDecision>& decisions);

// --- lists/flatten.cpp ------------------------------------------------------------------------------------------------------------------

// Rewrites calls on the cells of lists in main that have no kernel into calls on vectors, into `own`, and gives `shapes` what follows from that. False:
// there are none.
bool flatten_lists(hir::Program& program, const hir::Function& main, ShapeTable& table, DiagnosticSink& sink,
                   const Options& options, Shapes& shapes, hir::Function& own);

// --- group_forms.cpp ----------------------------------------------------------------------------------------------------------

// Rewrites what main writes instead of `group` into `own`, which may be `main` itself, and gives `shapes` what follows
// from that. False: there is nothing of the kind.
bool find_group_forms(hir::Program& program, const hir::Function& main, ShapeTable& table, DiagnosticSink& sink,
                      const Options& options, Shapes& shapes, hir::Function& own);

// --- group_orders.cpp ---------------------------------------------------------------------------------------------------------

// Takes out orders of groups by their keys, which they come in, into `own`, which may be `main` itself, and gives `shapes` what follows
// from that. False: there are none.
bool find_group_orders(hir::Program& program, const hir::Function& main, ShapeTable& table, DiagnosticSink& sink,
                       Shapes& shapes, hir::Function& own);

// --- group_cells.cpp ----------------------------------------------------------------------------------------------------------

// Rewrites element-wise work on cells that groups gather, as work on columns, into `own`, which may be `main` itself, and
// gives `shapes` what follows from that. False: there is nothing of the kind.
bool find_group_cells(hir::Program& program, const hir::Function& main, ShapeTable& table, DiagnosticSink& sink,
                      Shapes& shapes, hir::Function& own);

// --- sinks.cpp ----------------------------------------------------------------------------------------------------------------

// Tag of the dynamic sizes of GPU.fold, less its number.
inline constexpr uint32_t fold_tag = 1u << 16;

// Tag of the dynamic size of the cells that GPU.cells makes of the lengths that are its object.
inline constexpr uint32_t cells_tag = 1u << 15;

// Rewrites groups of main of which only reductions and elements of first rows are asked into reductions that the kernels of their keys do, into
// `own`, which may be `main` itself, and gives `shapes` what follows from that. `folds` gets the numbers of those groups. False: there are none.
bool find_sinks(hir::Program& program, const hir::Function& main, ShapeTable& table, DiagnosticSink& sink,
                const Options& options, Shapes& shapes, hir::Function& own, std::vector<uint32_t>& folds,
                std::vector<uint32_t>& float_folds);

// GPU.fold has code for keys, and for values, of that type.
bool is_fold_value(hir::Builtin reduce, hir::BasicType type);

// --- joins.cpp ----------------------------------------------------------------------------------------------------------------

// Rewrites joins by unique keys, and membership, of main into look-ups that kernels do, into `own`, which may be `main` itself, and gives `shapes`
// what follows from that. `joins` gets the numbers of those joins, `whole` those of them that look among all rows of a table. False: there are none.
bool find_probes(hir::Program& program, const hir::Function& main, ShapeTable& table, DiagnosticSink& sink,
                 const Options& options, Shapes& shapes, hir::Function& own, std::vector<uint32_t>& joins,
                 std::vector<uint32_t>& whole);

// --- selections.cpp -----------------------------------------------------------------------------------------------------------

// Rewrites selections one after the other, of which a look-up makes the later one, into one, into `own`, which may be `main` itself, and gives
// `shapes` what follows from that. False: there are none.
bool merge_selections(hir::Program& program, const hir::Function& main, ShapeTable& table, DiagnosticSink& sink, Shapes& shapes,
                      hir::Function& own);

// --- dependencies.cpp ---------------------------------------------------------------------------------------------------------

enum class Place : uint8_t {
  host,     // runs on the CPU, or on the GPU by the hand of the runtime (library operators)
  neutral,  // a copy without a change of representation: follows its readers, else an alias on the host
  gpu,      // can be part of a kernel
};

inline constexpr uint32_t none_node = UINT32_MAX;

// A statement of a block. Control flow is one node with everything that happens inside it.
struct Node {
  hir::StatementId statement{};
  Place place = Place::host;
  bool ordered = false;  // has effects: keeps its order with other such nodes
  bool barrier = false;  // may leave the block: nothing moves across
  bool reduction = false;
  bool positional = false;   // its result depends on positions in its argument: no lazily compressed input
  bool elementwise = false;  // a scalar one may be computed by every thread of any kernel
  bool unused = false;       // its value is read by nobody and it has no effects: not emitted
  uint8_t sync_in = 0;
  bool sync_out = false;
  std::optional<hir::Builtin> builtin;  // that it calls
  // gpu and neutral: a vector with an element per thread, or a list whose cells' elements are shared among the threads
  ShapeId geometry = none<ShapeId>();
  // range, vector: the node `n = len(v)` that gives the length, where v is the same here as there. The node reads v in place of n, and the
  // kernel gets a copy of that statement. none_node: the length is a constant.
  uint32_t length_from = none_node;
  InlineVector<hir::VariableId, 3> reads;
  InlineVector<hir::VariableId, 1> writes;
  InlineVector<uint8_t, 8> read_arguments;  // parallel to reads: the argument position (bits as in sync_in)
};

struct Edge {
  enum Kind : uint8_t { true_, anti, output, order } kind = true_;
  bool synchronised = false;
  uint32_t from = 0, to = 0;  // nodes; from < to
  hir::VariableId variable = none<hir::VariableId>();
};

// Edges per node, as one array that is cut in pieces.
struct EdgeLists {
  std::vector<uint32_t> first;  // per node, and one behind the last
  std::vector<uint32_t> edges;  // indices into BlockGraph::edges
  std::span<const uint32_t> operator[](uint32_t node) const {
    return std::span(edges).subspan(first[node], first[node + 1] - first[node]);
  }
};

struct BlockGraph {
  std::vector<Node> nodes;             // in program order
  std::vector<Edge> edges;             // sorted by (from, to)
  EdgeLists successors, predecessors;  // ascending
};

// The expression that does the work: casts peeled off.
hir::ExpressionId innermost(const hir::Function& function, hir::ExpressionId id);

// The builtin that the statement calls, or nothing.
std::optional<hir::Builtin> called_builtin(const hir::Function& function, const hir::Statement& statement);

// The statements of the block as they run; false: there is control flow.
bool flatten(const hir::Function& function, hir::BlockId block, std::vector<hir::StatementId>& out);

// Is each element of the result made of one element of each operand, or of the only one?
bool is_elementwise(hir::Builtin builtin);

// The builtin that an each form applies (its function literal), or nothing when it is none.
std::optional<hir::Builtin> applied_builtin(const hir::Program& program, const hir::Expression& call);

// The function literal of a GPU.fold, or nothing when it is none.
std::optional<hir::Builtin> folded_builtin(const hir::Program& program, const hir::Expression& call);

// The operands that a thread may read anywhere, not only at its own element: what `index`, `index_a` and `reverse` take elements from, and the
// columns in which GPU.probe looks rows up. Bit k: operand k.
uint32_t whole_operands(const hir::Program& program, const hir::Expression& expression);
inline bool is_whole(uint32_t whole, size_t operand) { return operand < 32 && (whole >> operand & 1) != 0; }

// The number of a fold that is to stand apart; -1: the statement is none.
int64_t fold_apart(const hir::Program& program, const hir::Function& f, hir::StatementId id, const Options& options);

BlockGraph build_graph(const hir::Program& program, const hir::Function& function, hir::BlockId block,
                       const Shapes& shapes, ShapeTable& table, const Options& options,
                       std::vector<Decision>& decisions);

// --- geometry.cpp -------------------------------------------------------------------------------------------------------------

// Decides where the statement runs and with how many threads; fills place, geometry and flags of `node`.
// Returns why it stays on the host, or an empty view.
// What depends on other statements is build_graph's: `len` of what no kernel computes, `range` with a length, `raze`.
std::string_view place_statement(const hir::Program& program, const hir::Function& function,
                                 const StatementFacts& facts, ShapeTable& table, const Options& options, Node& node);

// Why a builtin stays on the host that needs the functions of libdevice.
inline constexpr std::string_view no_math = "the math functions of libdevice are not there";

// True when `inner` is `outer` or a compression of it, however deep.
bool is_compression_of(const ShapeTable& table, SizeId inner, SizeId outer);

// GPU.probe has code for keys of that type.
bool is_probe_key(hir::BasicType type);

// Bytes in device memory of an element of that vector type, or of the cells of that list type (text: a code). 0: of no such type.
uint32_t element_width(const hir::TypeTable& types, hir::TypeId type);

// A list whose cells are single values: a value per cell.
bool has_scalar_cells(const ShapeTable& table, ShapeId shape);

// True when a statement of geometry `inner` can be part of a kernel of geometry `outer`, as far as sizes go.
bool runs_within(const ShapeTable& table, ShapeId inner, ShapeId outer);

// True when the statement works on vectors with an element per cell of that list, element by element: a kernel of the list's geometry can do that, apart
// from the cells themselves.
bool runs_beside_cells(const ShapeTable& table, const Node& node, ShapeId list);

// --- fuse.cpp -----------------------------------------------------------------------------------------------------------------

struct Group {
  InlineVector<uint32_t, 3> nodes;     // ascending; empty: merged into another group
  ShapeId geometry = none<ShapeId>();  // none: a host statement alone
  bool kernel() const { return !is_none(geometry); }
};

struct Partition {
  std::vector<Group> groups;
  std::vector<uint32_t> group_of;  // per node
  std::vector<uint32_t> order;     // groups in an order that respects all dependences, by position in the program
};

Partition fuse(const hir::Program& program, const hir::Function& function, const BlockGraph& graph,
               const Shapes& shapes, const ShapeTable& table, const Options& options, std::vector<Decision>& decisions);

// --- outline.cpp --------------------------------------------------------------------------------------------------------------

// Makes the outlined program: every block of main, `original`, rewritten by its partition. In: out.program with all but main.
void outline(const hir::Function& original, const Shapes& shapes, const Options& options, Outlined& out);

}  // namespace rndn::outliner
